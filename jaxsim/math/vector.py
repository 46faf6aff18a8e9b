"""Vectors and matrices of three, stored component by component.

A `Vec3` holds three arrays of one shape, so that a law written for one sample serves whole arrays of samples, bodies
and worlds by broadcasting. XLA on CPU fuses such code without the strided middle-axis reductions that slow an
array with a components axis (docs/design_notes.md has the measurement).
"""

import dataclasses
from collections.abc import Callable
from typing import overload

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .safe import safe_sqrt

Component = Float[Array, "*b"]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, slots=True)
class Vec3:
    """Three components, each an array of the same (or broadcastable) shape."""

    x: Component
    y: Component
    z: Component

    @staticmethod
    def of(array: Float[Array, "3 *b"]) -> "Vec3":
        """From an array whose leading axis holds the components."""
        return Vec3(array[0], array[1], array[2])

    @staticmethod
    def of_last(array: Float[Array, "*b 3"]) -> "Vec3":
        """From an array whose last axis holds the components."""
        return Vec3(array[..., 0], array[..., 1], array[..., 2])

    def stack(self, axis: int = 0) -> Array:
        """The components as one array; axis 0 puts them first, axis -1 last."""
        return jnp.stack(jnp.broadcast_arrays(self.x, self.y, self.z), axis)

    def map(self, f: Callable[[Component], Component]) -> "Vec3":
        return Vec3(f(self.x), f(self.y), f(self.z))

    def __add__(self, other: "Vec3") -> "Vec3":
        return Vec3(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other: "Vec3") -> "Vec3":
        return Vec3(self.x - other.x, self.y - other.y, self.z - other.z)

    def __neg__(self) -> "Vec3":
        return Vec3(-self.x, -self.y, -self.z)

    def __mul__(self, scale) -> "Vec3":
        return Vec3(self.x * scale, self.y * scale, self.z * scale)

    __rmul__ = __mul__

    def __truediv__(self, scale) -> "Vec3":
        return Vec3(self.x / scale, self.y / scale, self.z / scale)


def dot(a: Vec3, b: Vec3) -> Component:
    return a.x * b.x + a.y * b.y + a.z * b.z


def cross(a: Vec3, b: Vec3) -> Vec3:
    return Vec3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)


def norm(a: Vec3) -> Component:
    """Length, with gradient zero at zero."""
    return safe_sqrt(dot(a, a))


def select(condition: Array, a: Vec3, b: Vec3) -> Vec3:
    """`a` where the condition holds, else `b`, component by component."""
    return Vec3(jnp.where(condition, a.x, b.x), jnp.where(condition, a.y, b.y), jnp.where(condition, a.z, b.z))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, slots=True)
class Mat3:
    """A 3 x 3 matrix as three rows."""

    r0: Vec3
    r1: Vec3
    r2: Vec3

    @staticmethod
    def of(array: Float[Array, "3 3 *b"]) -> "Mat3":
        return Mat3(Vec3.of(array[0]), Vec3.of(array[1]), Vec3.of(array[2]))

    @staticmethod
    def symmetric(six: Float[Array, "6 *b"]) -> "Mat3":
        """From `[xx, xy, xz, yy, yz, zz]`."""
        xx, xy, xz, yy, yz, zz = six
        return Mat3(Vec3(xx, xy, xz), Vec3(xy, yy, yz), Vec3(xz, yz, zz))

    @staticmethod
    def diagonal(x: Component, y: Component, z: Component) -> "Mat3":
        zero = jnp.zeros_like(x)
        return Mat3(Vec3(x, zero, zero), Vec3(zero, y, zero), Vec3(zero, zero, z))

    def stack(self) -> Float[Array, "3 3 *b"]:
        return jnp.stack([self.r0.stack(), self.r1.stack(), self.r2.stack()])

    @property
    def rows(self) -> tuple[Vec3, Vec3, Vec3]:
        return self.r0, self.r1, self.r2

    @property
    def T(self) -> "Mat3":
        a, b, c = self.r0, self.r1, self.r2
        return Mat3(Vec3(a.x, b.x, c.x), Vec3(a.y, b.y, c.y), Vec3(a.z, b.z, c.z))

    def __add__(self, other: "Mat3") -> "Mat3":
        return Mat3(self.r0 + other.r0, self.r1 + other.r1, self.r2 + other.r2)

    def __sub__(self, other: "Mat3") -> "Mat3":
        return Mat3(self.r0 - other.r0, self.r1 - other.r1, self.r2 - other.r2)

    def __neg__(self) -> "Mat3":
        return Mat3(-self.r0, -self.r1, -self.r2)

    def __mul__(self, scale) -> "Mat3":
        return Mat3(self.r0 * scale, self.r1 * scale, self.r2 * scale)

    __rmul__ = __mul__

    def __truediv__(self, scale) -> "Mat3":
        return Mat3(self.r0 / scale, self.r1 / scale, self.r2 / scale)

    @overload
    def __matmul__(self, other: Vec3) -> Vec3: ...
    @overload
    def __matmul__(self, other: "Mat3") -> "Mat3": ...
    def __matmul__(self, other: "Vec3 | Mat3") -> "Vec3 | Mat3":
        """Matrix times `Vec3` or `Mat3`."""
        if isinstance(other, Vec3):
            return Vec3(dot(self.r0, other), dot(self.r1, other), dot(self.r2, other))
        columns = other.T
        return Mat3(columns @ self.r0, columns @ self.r1, columns @ self.r2)


def trace(a: Mat3) -> Component:
    return a.r0.x + a.r1.y + a.r2.z


def skew(a: Vec3) -> Mat3:
    """The matrix with `skew(a) @ b == cross(a, b)`."""
    zero = jnp.zeros_like(a.x)
    return Mat3(Vec3(zero, -a.z, a.y), Vec3(a.z, zero, -a.x), Vec3(-a.y, a.x, zero))


def axial(a: Mat3) -> Vec3:
    """Vector of the skew part: `axial(skew(a)) == a`."""
    return Vec3(a.r2.y - a.r1.z, a.r0.z - a.r2.x, a.r1.x - a.r0.y) * 0.5


def outer(a: Vec3, b: Vec3) -> Mat3:
    return Mat3(b * a.x, b * a.y, b * a.z)


def add_to_diagonal(a: Mat3, d: Component) -> Mat3:
    return Mat3(Vec3(a.r0.x + d, a.r0.y, a.r0.z), Vec3(a.r1.x, a.r1.y + d, a.r1.z), Vec3(a.r2.x, a.r2.y, a.r2.z + d))
