"""Surfaces of revolution about z: the cylinder and the capsule, as functions of their sizes."""

import functools

import numpy as np
from jaxtyping import Float

from .surface import Surface, refinement

_SEGMENTS = 16  # around the axis at zero subdivisions: 352 triangles on a capsule, near the 320 of the sphere


@functools.cache
def unit_cylinder(subdivisions: int = 0) -> Surface:
    """The cylinder of radius 1 and half length 1: 224 triangles at zero subdivisions, rim and sides on the solid's."""
    n = refinement(subdivisions)
    radius, height = np.linspace(0.0, 1.0, 2 * n + 1), np.linspace(-1.0, 1.0, 4 * n + 1)
    rho = np.concatenate([radius[:-1], np.ones_like(height), radius[-2::-1]])
    z = np.concatenate([-np.ones(2 * n), height, np.ones(2 * n)])
    return _revolve(rho, z, _SEGMENTS * n)


@functools.cache
def unit_capsule(subdivisions: int = 0) -> tuple[Surface, Float[np.ndarray, "V"]]:
    """A sphere of radius 1 with a band of no height at its equator, and the height of each vertex per half length.

    The surface of a capsule is radius * vertices plus half_length * height along z: linear in both, but no stretched
    sphere. 352 triangles at zero subdivisions.
    """
    n = refinement(subdivisions)
    angle = np.linspace(-np.pi / 2, 0.0, 4 * n + 1)
    cap, band = np.cos(angle), np.linspace(-1.0, 1.0, 4 * n + 1)
    cap[0] = 0.0  # the pole, not 6e-17 beside it
    rho = np.concatenate([cap, np.ones(4 * n - 1), cap[::-1]])
    z = np.concatenate([np.sin(angle), np.zeros(4 * n - 1), -np.sin(angle)[::-1]])
    height = np.concatenate([-np.ones(4 * n), band, np.ones(4 * n)])
    around = _SEGMENTS * n
    return _revolve(rho, z, around), np.concatenate([height[:1], np.repeat(height[1:-1], around), height[-1:]])


def _revolve(rho: Float[np.ndarray, "r"], z: Float[np.ndarray, "r"], around: int) -> Surface:
    """Rings of vertices at radii `rho` and heights `z`, from the lower pole to the upper one, both on the axis."""
    angle = 2.0 * np.pi * np.arange(around) / around
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    rings = len(rho) - 2
    ring = np.concatenate(
        [rho[1:-1, None, None] * circle, np.broadcast_to(z[1:-1, None, None], (rings, around, 1))], axis=2
    )
    vertices = np.concatenate([[[0.0, 0.0, z[0]]], ring.reshape(-1, 3), [[0.0, 0.0, z[-1]]]])
    index = 1 + np.arange(rings * around).reshape(rings, around)
    after = np.roll(index, -1, axis=1)
    low, high = np.zeros(around, int), np.full(around, len(vertices) - 1)
    a, b, c, d = index[:-1].ravel(), after[:-1].ravel(), after[1:].ravel(), index[1:].ravel()
    triangles = [
        np.stack([low, after[0], index[0]], axis=1),
        np.stack([a, b, c, a, c, d], axis=1).reshape(-1, 3),
        np.stack([index[-1], after[-1], high], axis=1),
    ]
    return Surface(vertices, np.concatenate(triangles))
