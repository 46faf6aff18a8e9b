"""Geometry: shapes and their signed distance, triangulated surfaces and their samples, mass properties."""
