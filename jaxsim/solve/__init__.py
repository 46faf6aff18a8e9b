"""Solvers of nonlinear and linear equations. They know functions and arrays, no physics."""
