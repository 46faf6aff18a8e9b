"""Symmetric 3 x 3 matrices: eigenvalues, definiteness and square root in closed form, for whole arrays of them.

Only forward solvers use these: their derivatives are not finite at equal eigenvalues.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool

from .vector import Mat3, Vec3, add_to_diagonal, trace


def eigenvalues(a: Mat3) -> Vec3:
    """Eigenvalues in descending order (trigonometric form). Source: Smith (1961), doi:10.1145/355578.366316."""
    mean = trace(a) / 3
    b = add_to_diagonal(a, -mean)
    p = jnp.sqrt(jnp.sum(b.array * b.array, axis=(0, 1)) / 6)
    # Scaled before the determinant is formed: the cube of a spread near rounding would underflow.
    xx, xy, xz, yy, yz, zz = (b * (1.0 / jnp.where(p > 0, p, 1.0))).upper()
    det = xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz)
    angle = jnp.arccos(jnp.clip(det / 2, -1.0, 1.0)) / 3
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


def is_positive(a: Mat3) -> Bool[Array, "*b"]:
    """Whether a symmetric matrix is positive definite, by its leading minors (Sylvester)."""
    xx, xy, xz, yy, yz, zz = a.upper()
    minor = xx * yy - xy * xy
    det = zz * minor - xx * yz * yz - yy * xz * xz + 2 * xy * yz * xz
    return (xx > 0) & (minor > 0) & (det > 0)
