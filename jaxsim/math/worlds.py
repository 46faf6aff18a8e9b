"""Axes that `vmap` adds, moved to where the kernels want the worlds: last (docs/design_notes.md has the numbers)."""

import jax.numpy as jnp
from jaxtyping import Array


def merge_worlds(x: Array, batched: bool, size: int, width: int) -> Array:
    """(size, ..., w) as (..., width * size), w being `width` or one; what no world varies keeps a last axis of one."""
    if not batched:
        if x.shape[-1] == 1:
            return x
        return jnp.repeat(x, size, axis=-1)
    x = jnp.moveaxis(x, 0, -1)
    x = jnp.broadcast_to(x, (*x.shape[:-2], width, size))
    return x.reshape(*x.shape[:-2], width * size)


def split_worlds(x: Array, size: int) -> Array:
    """(..., width * size) as (size, ..., width): the inverse of merging a batched array."""
    return jnp.moveaxis(x.reshape(*x.shape[:-1], -1, size), -1, 0)
