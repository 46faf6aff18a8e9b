"""Rotation constructors for users: quaternions as arrays `(..., 4)`, order xyzw, world_from_local (Hamilton)."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from . import quaternion
from .quaternion import Quaternion
from .vector import Mat3, Vec3


def identity() -> Float[Array, "4"]:
    """The quaternion (0, 0, 0, 1)."""
    return jnp.array([0.0, 0.0, 0.0, 1.0])


def from_rotation_vector(rotation_vector: Float[Array, "*b 3"]) -> Float[Array, "*b 4"]:
    """Rotation about the vector's direction by its length [rad]."""
    return quaternion.exp(Vec3.of_last(jnp.asarray(rotation_vector, float))).stack(-1)


def from_axis_angle(axis: Float[Array, "*b 3"], angle: Float[Array, "*b"]) -> Float[Array, "*b 4"]:
    """Rotation about `axis` (any positive length) by `angle` [rad]."""
    axis = jnp.asarray(axis, float)
    unit = axis / jnp.linalg.norm(axis, axis=-1, keepdims=True)
    return from_rotation_vector(unit * jnp.asarray(angle, float)[..., None])


def about_x(angle: Float[Array, "*b"]) -> Float[Array, "*b 4"]:
    """Rotation about x by `angle` [rad]."""
    return _about(0, angle)


def about_y(angle: Float[Array, "*b"]) -> Float[Array, "*b 4"]:
    """Rotation about y by `angle` [rad]."""
    return _about(1, angle)


def about_z(angle: Float[Array, "*b"]) -> Float[Array, "*b 4"]:
    """Rotation about z by `angle` [rad]."""
    return _about(2, angle)


def _about(axis: int, angle) -> Array:
    half = 0.5 * jnp.asarray(angle, float)
    zero = jnp.zeros_like(half)
    parts = [zero, zero, zero, jnp.cos(half)]
    parts[axis] = jnp.sin(half)
    return jnp.stack(parts, -1)


def from_rpy(roll, pitch, yaw) -> Float[Array, "4"]:
    """Rz(yaw) Ry(pitch) Rx(roll) [rad], the order of URDF."""
    return multiply(about_z(yaw), multiply(about_y(pitch), about_x(roll)))


def from_matrix(matrix: Float[Array, "*b 3 3"]) -> Float[Array, "*b 4"]:
    """Quaternion of a rotation matrix."""
    m = jnp.asarray(matrix, float)
    rows = (Vec3.of_last(m[..., i, :]) for i in range(3))
    return quaternion.from_matrix(Mat3(*rows)).stack(-1)


def multiply(a: Float[Array, "*b 4"], b: Float[Array, "*b 4"]) -> Float[Array, "*b 4"]:
    """The rotation `b` followed by `a`."""
    return (Quaternion.of_last(jnp.asarray(a)) @ Quaternion.of_last(jnp.asarray(b))).stack(-1)


def conjugate(q: Float[Array, "*b 4"]) -> Float[Array, "*b 4"]:
    """The inverse rotation."""
    return Quaternion.of_last(jnp.asarray(q)).conj.stack(-1)


def rotate(q: Float[Array, "*b 4"], vector: Float[Array, "*b 3"]) -> Float[Array, "*b 3"]:
    """The vector carried from local to world axes."""
    return (Quaternion.of_last(jnp.asarray(q)) @ Vec3.of_last(jnp.asarray(vector))).stack(-1)


def to_rotation_vector(q: Float[Array, "*b 4"]) -> Float[Array, "*b 3"]:
    """Axis times angle [rad], length at most pi."""
    return quaternion.log(Quaternion.of_last(jnp.asarray(q))).stack(-1)


def to_matrix(q: Float[Array, "*b 4"]) -> Float[Array, "*b 3 3"]:
    """Rotation matrix, columns the local axes in world."""
    m = Quaternion.of_last(jnp.asarray(q)).matrix()
    return jnp.stack([m.r0.stack(-1), m.r1.stack(-1), m.r2.stack(-1)], -2)
