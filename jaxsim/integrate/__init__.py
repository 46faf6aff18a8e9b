"""Time integration: what the equations of a step are, how they are solved, and what follows from the solution."""
