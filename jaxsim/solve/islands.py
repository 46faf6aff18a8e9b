"""Islands: sets of bodies that touch one another, and sums over them."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int


class Islands(NamedTuple):
    """Which bodies have to be solved together, per world; every body carries the lowest row of its island."""

    label: Int[Array, "n w"]

    def sum(self, x: Float[Array, "*c n w"]) -> Float[Array, "*c n w"]:
        """Sum over the members of each body's island, given back to every member."""
        return self._pooled(x, lambda table, at: table.at[at].add(x), 0.0)

    def max(self, x: Float[Array, "*c n w"]) -> Float[Array, "*c n w"]:
        """Largest value of each body's island, of numbers that are not negative."""
        return self._pooled(x, lambda table, at: table.at[at].max(x), 0.0)

    def _pooled(self, x, scatter, start):
        # By scattering and gathering, never by masks: a NaN then stays within its own island.
        label = jnp.broadcast_to(self.label, x.shape[-2:])
        at = (..., label, jnp.arange(x.shape[-1])[None])
        return scatter(jnp.full_like(x, start), at)[at]


def connected(n: int, a: Int[Array, "p w"], b: Int[Array, "p w"], touching: Bool[Array, "p w"]) -> Islands:
    """Connected components of the graph whose edges are the touching pairs (a, b)."""
    width = touching.shape[-1]
    lane = jnp.arange(width)[None]
    a, b = jnp.broadcast_to(a, touching.shape), jnp.broadcast_to(b, touching.shape)

    def spread(carry):
        label, _ = carry
        low = jnp.where(touching, jnp.minimum(label[a, lane], label[b, lane]), n)
        lower = label.at[a, lane].min(low).at[b, lane].min(low)
        lower = lower[lower, lane]  # what my representative has learnt, I know too: long chains halve at each pass
        return lower, jnp.any(lower != label)

    start = jnp.broadcast_to(jnp.arange(n, dtype=jnp.int32)[:, None], (n, width))
    label, _ = lax.while_loop(lambda carry: carry[1], spread, (start, jnp.array(True)))
    return Islands(jax.lax.stop_gradient(label))
