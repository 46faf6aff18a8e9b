"""Poses, twists and wrenches with their frame and point rules."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from . import rotation


class Pose(eqx.Module):
    """A frame L in a frame W: `x_W = R_WL x_L + position`. Quaternion xyzw, world_from_local."""

    position: Float[Array, "*b 3"]  # [m]
    quaternion: Float[Array, "*b 4"]

    def __matmul__(self, other: "Pose") -> "Pose":
        """Composition: `(T_WL @ T_LM) == T_WM`."""
        return Pose(self.apply(other.position), rotation.multiply(self.quaternion, other.quaternion))

    def inverse(self) -> "Pose":
        back = rotation.conjugate(self.quaternion)
        return Pose(-rotation.rotate(back, self.position), back)

    def apply(self, points: Float[Array, "*b 3"]) -> Float[Array, "*b 3"]:
        """Points given in L, in W [m]; directions want `rotation.rotate` instead."""
        turned = rotation.rotate(self.quaternion, points)
        return turned + self.position[(None,) * (turned.ndim - self.position.ndim)]


class Twist(eqx.Module):
    """Linear velocity of a point [m/s] and angular velocity [rad/s], both in world axes."""

    linear: Float[Array, "*b 3"]
    angular: Float[Array, "*b 3"]


class Wrench(eqx.Module):
    """Force [N] and torque [N m] about a stated point, in stated axes."""

    force: Float[Array, "*b 3"]
    torque: Float[Array, "*b 3"]

    def shift(self, from_point: Float[Array, "*b 3"], to_point: Float[Array, "*b 3"]) -> "Wrench":
        """The same load, its torque taken about `to_point` instead of `from_point` [m]."""
        lever = jnp.asarray(from_point) - jnp.asarray(to_point)
        return Wrench(self.force, self.torque + jnp.cross(lever, self.force))

    def rotate(self, quaternion: Float[Array, "*b 4"]) -> "Wrench":
        """The same load about the same point, in the axes that `quaternion` carries the present ones to."""
        return Wrench(rotation.rotate(quaternion, self.force), rotation.rotate(quaternion, self.torque))
