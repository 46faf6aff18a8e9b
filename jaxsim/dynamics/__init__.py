"""Dynamics: the residual of a stage, its forward approximation, and the moves between configurations."""
