"""Axis-aligned boxes about bodies, for the broad phase."""

from typing import NamedTuple

import jax.numpy as jnp

from ..math.quaternion import Quaternion
from ..math.vector import Component, Vec3


class Bounds(NamedTuple):
    """A box by its centre and its half extents [m]."""

    center: Vec3
    half: Vec3

    @staticmethod
    def about_origin(half: Vec3) -> "Bounds":
        return Bounds(half.map(jnp.zeros_like), half)


def placed(bounds: Bounds, position: Vec3, rotation: Quaternion) -> Bounds:
    """The axis-aligned box about a box that is turned and moved."""
    reach = rotation.matrix().array
    half = bounds.half.array
    return Bounds(
        position + rotation @ bounds.center, Vec3.of(sum(jnp.abs(reach[:, k]) * half[k][None] for k in range(3)))
    )


def separation(a: Bounds, b: Bounds) -> Component:
    """Gap [m] between boxes along the axis that separates them most; not positive where they overlap."""
    gap = jnp.abs(a.center.array - b.center.array) - (a.half.array + b.half.array)
    return jnp.maximum(gap[0], jnp.maximum(gap[1], gap[2]))
