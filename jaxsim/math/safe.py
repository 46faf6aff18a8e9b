"""Functions whose value and derivatives stay finite at their degenerate point."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def safe_sqrt(x: Float[Array, "*b"]) -> Float[Array, "*b"]:
    """Square root with value and derivative zero, not infinity or NaN, for x <= 0."""
    # `where` differentiates both branches, so the root must never see the zero: the input is masked, not the output.
    positive = x > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, x, 1.0)), 0.0)


def safe_divide(a: Float[Array, "*b"], b: Float[Array, "*b"]) -> Float[Array, "*b"]:
    """a / b, and zero with zero derivative where b is exactly zero."""
    nonzero = b != 0
    return jnp.where(nonzero, a / jnp.where(nonzero, b, 1.0), 0.0)


def safe_norm(x: Float[Array, "*b n"]) -> Float[Array, "*b"]:
    """Euclidean norm over the last axis, row by row; gradient zero, not NaN, at a zero row."""
    return safe_sqrt(jnp.sum(x * x, axis=-1))
