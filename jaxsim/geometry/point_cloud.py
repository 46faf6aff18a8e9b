"""Clouds of points that each carry a ball, and pairs of points that are near: what shells and rods collide by."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from ..math.rows import pick_samples
from ..math.vector import Component, Vec3, dot, select
from .bounds import Bounds
from .quadrature import SurfaceSamples
from .shapes import AbstractShape, distance_and_gradient

_CHUNK = 128  # points compared with a whole cloud at once: bounds the memory of the search


def ball_distance(p: Vec3, center: Vec3, radius: Component) -> tuple[Component, Vec3]:
    """Signed distance [m] to balls, element by element, and its unit gradient; (1, 0, 0) where points coincide."""
    apart = p - center
    square = dot(apart, apart)
    distinct = square >= (10.0 * jnp.finfo(square.dtype).eps) ** 2
    length = jnp.sqrt(jnp.where(distinct, square, 1.0))
    along_x = Vec3(jnp.ones_like(square), jnp.zeros_like(square), jnp.zeros_like(square))
    return jnp.where(distinct, length, apart.x) - radius, select(distinct, apart / length, along_x)


class Balls(AbstractShape):
    """A ball for every element that is asked for."""

    center: Float[Array, "3 *b"]  # [m]
    radius: Float[Array, "*b"]  # [m]

    def signed_distance(self, p: Vec3) -> Component:
        return distance_and_gradient(self, p)[0]

    def bounds_of(self) -> Bounds:
        return Bounds(Vec3.of(self.center), Vec3.of(jnp.stack([self.radius] * 3)))


@distance_and_gradient.register
def _(shape: Balls, p: Vec3) -> tuple[Component, Vec3]:
    return ball_distance(p, Vec3.of(shape.center), shape.radius)


class PointClouds(AbstractShape):
    """Bodies that others meet by their surface samples, each a ball of one radius: contact is a double integral.

    Points of no weight fill up clouds that have fewer than the largest.
    """

    position: Float[Array, "3 m *b"]  # in the body's frame [m]
    weight: Float[Array, "m *b"]  # area that a point stands for [m^2]
    radius: Float[Array, "*b"]  # [m]

    @staticmethod
    def of(clouds: "Sequence[PointClouds]") -> "PointClouds":
        """Clouds of one body each, stacked along a last axis."""
        most = max(len(c.weight) for c in clouds)

        def stacked(field: str):
            parts = [getattr(c, field) for c in clouds]
            return jnp.stack([jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, most - x.shape[-1])]) for x in parts], -1)

        return PointClouds(stacked("position"), stacked("weight"), jnp.stack([c.radius for c in clouds]))

    def replaced(self, row: int, samples: SurfaceSamples) -> "PointClouds":
        """With the points of one body changed."""
        m = len(samples.weight)
        points = self.position.at[:, :m, row].set(samples.position), self.weight.at[:m, row].set(samples.weight)
        return PointClouds(*points, self.radius)

    def distances(self, p: Vec3) -> Float[Array, "m *b"]:
        """Distance [m] to the ball of every point; infinite for points of no weight."""
        distance, _ = ball_distance(p.map(lambda x: x[:, None]), Vec3.of(self.position), self.radius[None])
        return jnp.where(self.weight > 0, distance, jnp.inf)

    def signed_distance(self, p: Vec3) -> Component:
        """To the union of the balls; exact outside of it."""
        return jnp.min(self.distances(p), axis=0)

    def balls(self, point: Int[Array, "k p w"]) -> tuple[Balls, Float[Array, "k p w"]]:
        """Of clouds of pairs, leaves (..., m, 1, pairs, worlds), the balls of chosen points.

        Returns:
            The balls, and what the weight of a sample that meets one is multiplied by: the point's area over the
            radius squared, so that a penalty coefficient keeps its unit.
        """
        position, weight = pick_samples((self.position[..., 0, :, :], self.weight[..., 0, :, :]), point)
        return Balls(position, self.radius), weight / self.radius**2

    def bounds_of(self) -> Bounds:
        real = self.weight > 0
        low = jnp.where(real, self.position, jnp.inf).min(1) - self.radius[None]
        high = jnp.where(real, self.position, -jnp.inf).max(1) + self.radius[None]
        return Bounds(Vec3.of((low + high) / 2), Vec3.of((high - low) / 2))


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
