"""Optimisation through a simulation."""
