"""Vectors and matrices of three, their components on the leading axes of one array.

A law written for one sample then serves whole arrays of samples, bodies and worlds by broadcasting over the trailing
axes, and XLA makes one kernel of each vector, not three (docs/design_notes.md has the measurements). Reductions
over components are written as sums of slices: XLA on CPU does not vectorise a reduction over a short axis.
"""

from collections.abc import Callable
from typing import overload

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .repeat import repeat
from .safe import safe_sqrt

Component = Float[Array, "*b"]


@jax.tree_util.register_pytree_node_class
class Vec3:
    """Three components on the leading axis of `array`; what follows broadcasts."""

    __slots__ = ("array",)
    array: Float[Array, "3 *b"]

    def __init__(self, x: Component, y: Component, z: Component):
        self.array = jnp.stack(jnp.broadcast_arrays(x, y, z))

    @staticmethod
    def of(array: Float[Array, "3 *b"]) -> "Vec3":
        """From an array whose leading axis holds the components."""
        vector = object.__new__(Vec3)
        vector.array = array
        return vector

    @staticmethod
    def of_last(array: Float[Array, "*b 3"]) -> "Vec3":
        """From an array whose last axis holds the components."""
        return Vec3.of(jnp.moveaxis(jnp.asarray(array), -1, 0))

    def tree_flatten(self):
        return (self.array,), None

    @classmethod
    def tree_unflatten(cls, _, children) -> "Vec3":
        return Vec3.of(children[0])

    @property
    def x(self) -> Component:
        return self.array[0]

    @property
    def y(self) -> Component:
        return self.array[1]

    @property
    def z(self) -> Component:
        return self.array[2]

    def stack(self, axis: int = 0) -> Array:
        """The components as one array; axis 0 has them first, axis -1 last."""
        return jnp.moveaxis(self.array, 0, axis)

    def map(self, f: Callable[[Array], Array]) -> "Vec3":
        """`f` of the array of components."""
        return Vec3.of(f(self.array))

    def __add__(self, other: "Vec3") -> "Vec3":
        return Vec3.of(self.array + other.array)

    def __sub__(self, other: "Vec3") -> "Vec3":
        return Vec3.of(self.array - other.array)

    def __neg__(self) -> "Vec3":
        return Vec3.of(-self.array)

    def __mul__(self, scale: Component | float) -> "Vec3":
        return Vec3.of(self.array * _lifted(scale, 1))

    __rmul__ = __mul__

    def __truediv__(self, scale: Component | float) -> "Vec3":
        return Vec3.of(self.array / _lifted(scale, 1))


def _lifted(scale, axes: int):
    """A component's array once for each component in front."""
    if jnp.ndim(scale) == 0:
        return scale
    for _ in range(axes):
        scale = repeat(scale, 3)
    return scale


def dot(a: Vec3, b: Vec3) -> Component:
    product = a.array * b.array
    return product[0] + product[1] + product[2]


def cross(a: Vec3, b: Vec3) -> Vec3:
    return Vec3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)


def norm(a: Vec3) -> Component:
    """Length, with gradient zero at zero."""
    return safe_sqrt(dot(a, a))


def select(condition: Array, a: Vec3, b: Vec3) -> Vec3:
    """`a` where the condition holds, else `b`."""
    return Vec3.of(jnp.where(condition[None], a.array, b.array))


@jax.tree_util.register_pytree_node_class
class Mat3:
    """A 3 x 3 matrix, row and column on the leading axes of `array`."""

    __slots__ = ("array",)
    array: Float[Array, "3 3 *b"]

    def __init__(self, r0: Vec3, r1: Vec3, r2: Vec3):
        self.array = jnp.stack(jnp.broadcast_arrays(r0.array, r1.array, r2.array))

    @staticmethod
    def of(array: Float[Array, "3 3 *b"]) -> "Mat3":
        matrix = object.__new__(Mat3)
        matrix.array = array
        return matrix

    def tree_flatten(self):
        return (self.array,), None

    @classmethod
    def tree_unflatten(cls, _, children) -> "Mat3":
        return Mat3.of(children[0])

    @staticmethod
    def symmetric(six: Float[Array, "6 *b"]) -> "Mat3":
        """From `[xx, xy, xz, yy, yz, zz]`."""
        xx, xy, xz, yy, yz, zz = six
        return Mat3(Vec3(xx, xy, xz), Vec3(xy, yy, yz), Vec3(xz, yz, zz))

    def upper(self) -> Float[Array, "6 *b"]:
        """`[xx, xy, xz, yy, yz, zz]` of a symmetric matrix."""
        a = self.array
        return jnp.concatenate([a[0], a[1, 1:], a[2, 2:]])

    @property
    def rows(self) -> tuple[Vec3, Vec3, Vec3]:
        return self.r0, self.r1, self.r2

    @property
    def r0(self) -> Vec3:
        return Vec3.of(self.array[0])

    @property
    def r1(self) -> Vec3:
        return Vec3.of(self.array[1])

    @property
    def r2(self) -> Vec3:
        return Vec3.of(self.array[2])

    def stack(self) -> Float[Array, "3 3 *b"]:
        return self.array

    @property
    def T(self) -> "Mat3":
        return Mat3.of(jnp.swapaxes(self.array, 0, 1))

    def __add__(self, other: "Mat3") -> "Mat3":
        return Mat3.of(self.array + other.array)

    def __sub__(self, other: "Mat3") -> "Mat3":
        return Mat3.of(self.array - other.array)

    def __neg__(self) -> "Mat3":
        return Mat3.of(-self.array)

    def __mul__(self, scale: Component | float) -> "Mat3":
        return Mat3.of(self.array * _lifted(scale, 2))

    __rmul__ = __mul__

    def __truediv__(self, scale: Component | float) -> "Mat3":
        return Mat3.of(self.array / _lifted(scale, 2))

    @overload
    def __matmul__(self, other: Vec3) -> Vec3: ...
    @overload
    def __matmul__(self, other: "Mat3") -> "Mat3": ...
    def __matmul__(self, other: "Vec3 | Mat3") -> "Vec3 | Mat3":
        """Matrix times `Vec3` or `Mat3`."""
        a, b = self.array, other.array
        if isinstance(other, Vec3):
            return Vec3.of(sum(a[:, k] * repeat(b[k], 3) for k in range(3)))
        return Mat3.of(sum(repeat(a[:, k], 3, axis=1) * repeat(b[k], 3) for k in range(3)))


def trace(a: Mat3) -> Component:
    return a.array[0, 0] + a.array[1, 1] + a.array[2, 2]


def skew(a: Vec3) -> Mat3:
    """The matrix with `skew(a) @ b == cross(a, b)`."""
    zero = jnp.zeros_like(a.x)
    return Mat3(Vec3(zero, -a.z, a.y), Vec3(a.z, zero, -a.x), Vec3(-a.y, a.x, zero))


def axial(a: Mat3) -> Vec3:
    """Vector of the skew part: `axial(skew(a)) == a`."""
    m = a.array
    return Vec3(m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]) * 0.5


def outer(a: Vec3, b: Vec3) -> Mat3:
    return Mat3.of(repeat(a.array, 3, axis=1) * repeat(b.array, 3))


def add_to_diagonal(a: Mat3, d: Component) -> Mat3:
    eye = jnp.eye(3, dtype=a.array.dtype).reshape(3, 3, *(1,) * (a.array.ndim - 2))
    return Mat3.of(a.array + eye * _lifted(d, 2))


def cross_rows(a: Vec3, m: Mat3) -> Mat3:
    """The rows `cross(a, row)` of a matrix: `m @ skew(a).T`."""
    x, y, z = m.array[:, 0], m.array[:, 1], m.array[:, 2]
    ax, ay, az = (repeat(c, 3) for c in (a.x, a.y, a.z))
    return Mat3.of(jnp.stack([ay * z - az * y, az * x - ax * z, ax * y - ay * x], axis=1))
