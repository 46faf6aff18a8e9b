"""Distances between clouds of points, and the pairs of them that are near: what shells and rods collide by."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from ..math.vector import Component, Vec3, dot, select

_CHUNK = 128  # points compared with a whole cloud at once: bounds the memory of the search


def ball_distance(p: Vec3, center: Vec3, radius: Component) -> tuple[Component, Vec3]:
    """Signed distance [m] to balls, element by element, and its unit gradient; (1, 0, 0) where points coincide."""
    apart = p - center
    square = dot(apart, apart)
    distinct = square >= (10.0 * jnp.finfo(square.dtype).eps) ** 2
    length = jnp.sqrt(jnp.where(distinct, square, 1.0))
    along_x = Vec3(jnp.ones_like(square), jnp.zeros_like(square), jnp.zeros_like(square))
    return jnp.where(distinct, length, apart.x) - radius, select(distinct, apart / length, along_x)


class NearPairs(NamedTuple):
    """Near points of a second cloud for each of a first one."""

    index: Int[Array, "n k"]  # in the second cloud, ascending; 0 in unused slots
    used: Bool[Array, "n k"]
    overflow: Bool[Array, ""]  # some point has more near ones than there are slots; the last ones were left out


def near_pairs(
    first: Float[Array, "3 n"],
    second: Float[Array, "3 m"],
    reach: Float[Array, ""] | float,
    capacity: int,
    *,
    rest: tuple[Float[Array, "3 n"], Float[Array, "3 m"]] | None = None,
    least_rest_distance: Float[Array, ""] | float = 0.0,
) -> NearPairs:
    """Pairs of points not farther apart than `reach`, in a fixed number of slots; without derivative.

    Args:
        first: points [m], each with slots of its own, so that forces on them need no scatter.
        second: points [m]; may be the same cloud.
        reach: [m], band and motion until the next search included.
        capacity: slots per point of `first`; static.
        rest: positions of both clouds in the rest shape [m], for contact of a body with itself.
        least_rest_distance: pairs closer than this at rest [m] are left out: they are neighbours of the same surface,
            held apart by its elasticity. A point and itself are at distance zero.

    Raises:
        ValueError: `capacity` is below one.
    """
    if capacity < 1:
        raise ValueError(f"near_pairs.capacity must be at least 1; got {capacity}. Give slots per point.")
    first, second, reach, rest, least = lax.stop_gradient((first, second, reach, rest, least_rest_distance))

    def search(point):
        position, at_rest = point
        near = _square_distances(position, second) <= reach**2
        if at_rest is not None and rest is not None:
            near &= _square_distances(at_rest, rest[1]) >= least**2
        (index,) = jnp.nonzero(near, size=capacity, fill_value=0)
        count = jnp.sum(near)
        return index.astype(jnp.int32), jnp.arange(capacity) < count, count > capacity

    index, used, overflow = lax.map(search, (first.T, None if rest is None else rest[0].T), batch_size=_CHUNK)
    return NearPairs(index, used, jnp.any(overflow))


def _square_distances(point: Float[Array, "3"], cloud: Float[Array, "3 m"]) -> Float[Array, "m"]:
    apart = cloud - point[:, None]
    return apart[0] ** 2 + apart[1] ** 2 + apart[2] ** 2
