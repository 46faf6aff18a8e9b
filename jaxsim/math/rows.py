"""Picking and summing along the axis of bodies (last but one) and of their samples, by tables or by world."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

Rows = np.ndarray | Int[Array, "p w"]


def take(tree, rows: Rows):
    """Leaves (..., n, worlds) picked along their bodies: (..., p, worlds)."""
    if isinstance(rows, np.ndarray):
        n = jax.tree.leaves(tree)[0].shape[-2]
        if np.array_equal(rows, np.arange(n)):
            return tree
        return jax.tree.map(lambda x: x[..., rows, :], tree)
    if rows.shape[-1] == 1:
        return jax.tree.map(lambda x: x[..., rows[:, 0], :], tree)
    lane = jnp.arange(rows.shape[-1])[None]
    return jax.tree.map(lambda x: x[..., rows, lane if x.shape[-1] > 1 else 0], tree)


def over_samples(x: Float[Array, "*c p w"]) -> Float[Array, "*c 1 p w"]:
    """Room for the sample axis in front of the pair axis."""
    return x[..., None, :, :]


def pick_samples(tree, index: Int[Array, "k p w"]):
    """Leaves (..., samples, pairs, worlds) with samples picked pair by pair: (..., k, pairs, worlds)."""

    def picked(x):
        return jnp.take_along_axis(x, index[(None,) * (x.ndim - 3)], axis=-3, mode="clip")

    return jax.tree.map(picked, tree)


def sum_over_bodies(tree, rows: Rows, n: int):
    """Per-pair quantities (..., pairs, worlds) summed over the pairs of each body: (..., n, worlds)."""
    if isinstance(rows, np.ndarray) and np.array_equal(rows, np.arange(n)):
        return tree
    if isinstance(rows, np.ndarray) or rows.shape[-1] == 1:
        flat = rows if isinstance(rows, np.ndarray) else rows[:, 0]

        def summed(x):
            return jnp.moveaxis(jax.ops.segment_sum(jnp.moveaxis(x, -2, 0), flat, n), 0, -2)

        return jax.tree.map(summed, tree)
    lane = jnp.arange(rows.shape[-1])[None]
    return jax.tree.map(lambda x: jnp.zeros((*x.shape[:-2], n, x.shape[-1]), x.dtype).at[..., rows, lane].add(x), tree)
