"""Symmetric 3 x 3 matrices: smallest eigenvalue and square root in closed form, for whole arrays of them.

Only forward solvers use these: their derivatives are not finite at equal eigenvalues.
"""

import jax.numpy as jnp

from .vector import Component, Mat3, Vec3, add_to_diagonal, trace


def eigenvalues(a: Mat3) -> Vec3:
    """Eigenvalues in descending order (trigonometric form). Source: Smith (1961), doi:10.1145/355578.366316."""
    mean = trace(a) / 3
    b = add_to_diagonal(a, -mean)
    off = a.r0.y**2 + a.r0.z**2 + a.r1.z**2
    p = jnp.sqrt((b.r0.x**2 + b.r1.y**2 + b.r2.z**2 + 2 * off) / 6)
    det = (
        b.r0.x * (b.r1.y * b.r2.z - b.r1.z * b.r1.z)
        - b.r0.y * (b.r0.y * b.r2.z - b.r1.z * b.r0.z)
        + b.r0.z * (b.r0.y * b.r1.z - b.r1.y * b.r0.z)
    )
    scale = jnp.where(p > 0, p, 1.0)
    angle = jnp.arccos(jnp.clip(det / (2 * scale * scale * scale), -1.0, 1.0)) / 3
    first = mean + 2 * p * jnp.cos(angle)
    last = mean + 2 * p * jnp.cos(angle + 2 * jnp.pi / 3)
    return Vec3(first, 3 * mean - first - last, last)


def square_root(a: Mat3) -> Mat3:
    """Positive square root of a positive matrix, from its invariants.

    Source: Hoger & Carlson (1984), doi:10.1090/qam/736510 (Cayley-Hamilton form).
    """
    roots = eigenvalues(a).map(lambda e: jnp.sqrt(jnp.maximum(e, 0.0)))
    one = roots.x + roots.y + roots.z
    two = roots.x * roots.y + roots.y * roots.z + roots.z * roots.x
    three = roots.x * roots.y * roots.z
    denominator = one * two - three
    raw = a * (one * one - two) - a @ a
    return add_to_diagonal(raw, one * three) * (1.0 / jnp.where(denominator > 0, denominator, 1.0))


def shift_to_positive(a: Mat3, floor: Component) -> Mat3:
    """`a` plus the smallest multiple of the identity that lifts its eigenvalues to `floor`."""
    return add_to_diagonal(a, jnp.maximum(floor - eigenvalues(a).z, 0.0))
