"""Unit quaternions `xyzw` (Hamilton, world_from_local), component by component, and their exponential and logarithm."""

import dataclasses
from typing import overload

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .safe import safe_sqrt
from .vector import Component, Mat3, Vec3, add_to_diagonal, cross, dot, outer, skew


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, slots=True)
class Quaternion:
    """Vector part `v` = (x, y, z) and scalar part `w`."""

    v: Vec3
    w: Component

    @staticmethod
    def of(array: Float[Array, "4 *b"]) -> "Quaternion":
        """From an array whose leading axis is x, y, z, w."""
        return Quaternion(Vec3.of(array[:3]), array[3])

    @staticmethod
    def of_last(array: Float[Array, "*b 4"]) -> "Quaternion":
        """From an array whose last axis is x, y, z, w."""
        return Quaternion(Vec3.of_last(array[..., :3]), array[..., 3])

    @staticmethod
    def identity_like(a: Component) -> "Quaternion":
        zero = jnp.zeros_like(a)
        return Quaternion(Vec3(zero, zero, zero), jnp.ones_like(a))

    def stack(self, axis: int = 0) -> Array:
        return jnp.moveaxis(jnp.concatenate([self.v.array, self.w[None]]), 0, axis)

    @property
    def conj(self) -> "Quaternion":
        return Quaternion(-self.v, self.w)

    @overload
    def __matmul__(self, other: "Quaternion") -> "Quaternion": ...
    @overload
    def __matmul__(self, other: Vec3) -> Vec3: ...
    def __matmul__(self, other: "Quaternion | Vec3") -> "Quaternion | Vec3":
        """Composition with another quaternion, or rotation of a `Vec3`."""
        if isinstance(other, Quaternion):
            a, b = self, other
            return Quaternion(cross(a.v, b.v) + b.v * a.w + a.v * b.w, a.w * b.w - dot(a.v, b.v))
        t = cross(self.v, other) * 2.0
        return other + t * self.w + cross(self.v, t)

    def normalized(self) -> "Quaternion":
        scale = 1.0 / jnp.sqrt(dot(self.v, self.v) + self.w * self.w)
        return Quaternion(self.v * scale, self.w * scale)

    def minus_identity(self) -> Mat3:
        """R - 1 of a unit quaternion, without the cancellation of forming R first."""
        v = self.v
        return add_to_diagonal(outer(v, v) * 2.0 + skew(v * (2.0 * self.w)), dot(v, v) * -2.0)

    def matrix(self) -> Mat3:
        return add_to_diagonal(self.minus_identity(), jnp.ones_like(self.w))


def exp(r: Vec3) -> Quaternion:
    """Rotation by the rotation vector `r` [rad]: axis times angle. Smooth at zero, to every order that is used."""
    # Both factors are smooth functions of the squared angle; near zero their series avoids the root.
    s = dot(r, r)
    near = s < 1e-2
    half = 0.5 * jnp.sqrt(jnp.where(near, 1.0, s))
    sinc = jnp.where(near, 0.5 - s / 48.0 + s * s / 3840.0 - s * s * s / 645120.0, jnp.sin(half) / (2.0 * half))
    cos = jnp.where(near, 1.0 - s / 8.0 + s * s / 384.0 - s * s * s / 46080.0, jnp.cos(half))
    return Quaternion(r * sinc, cos).normalized()


def log(q: Quaternion) -> Vec3:
    """Rotation vector [rad] of length at most pi; the inverse of `exp`. At exactly pi one of the two axes is taken."""
    sign = jnp.where(q.w < 0, -1.0, 1.0)
    v, w = q.v * sign, q.w * sign
    s = dot(v, v)
    near = s < 1e-6
    w_near = jnp.where(near, w, 1.0)
    u = s / (w_near * w_near)
    length = safe_sqrt(jnp.where(near, 1.0, s))
    far = 2.0 * jnp.arctan2(length, w) / length
    return v * jnp.where(near, (2.0 - u * (2.0 / 3.0) + u * u * (2.0 / 5.0)) / w_near, far)


def from_matrix(m: Mat3) -> Quaternion:
    """Unit quaternion of a rotation matrix, by the largest of the four candidates; differentiable."""
    xx, yy, zz = m.r0.x, m.r1.y, m.r2.z
    four = jnp.stack(jnp.broadcast_arrays(1 + xx - yy - zz, 1 - xx + yy - zz, 1 - xx - yy + zz, 1 + xx + yy + zz))
    best = jnp.argmax(four, axis=0)
    a, b, c = m.r2.y - m.r1.z, m.r0.z - m.r2.x, m.r1.x - m.r0.y
    d, e, f = m.r0.y + m.r1.x, m.r0.z + m.r2.x, m.r1.z + m.r2.y
    table = [[four[0], d, e, a], [d, four[1], f, b], [e, f, four[2], c], [a, b, c, four[3]]]
    x, y, z, w = (jnp.select([best == k for k in range(4)], [table[k][i] for k in range(4)]) for i in range(4))
    return Quaternion(Vec3(x, y, z), w).normalized()
