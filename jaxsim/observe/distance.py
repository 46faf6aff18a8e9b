"""Distance of any points to an actor, whether or not anything is in contact."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..contact.params import ColliderType
from ..math import rotation
from ..math.vector import Vec3
from ..model.model import Actor, BodyInfo, Model
from ..model.state import State, pose


def signed_distance(model: Model, state: State, actor: Actor | str, points: Float[Array, "*n 3"]) -> Float[Array, "*n"]:
    """Signed distance [m] of world points [m] to the actor's collider, negative inside: what contact is computed from.

    Holds at any range, and is differentiable in the points, the pose and the collider's size or grid values. Outside
    the box of a distance grid it is an upper bound: the value at the nearest point of the box plus the way there.

    Raises:
        ValueError: the actor has no collider, or the points do not have three components.
    """
    body = model.body(actor)
    points = jnp.asarray(points, model.gravity.dtype)
    if points.ndim == 0 or points.shape[-1] != 3:
        raise ValueError(f"signed_distance from {body.name!r}: points must have shape (..., 3); got {points.shape}")
    if body.collider_row < 0:
        unbuilt = "none was built, as no other body of the scene can meet it: add one, or give another collider"
        reason = "it was given none" if body.collider is ColliderType.NONE else unbuilt
        raise ValueError(f"signed_distance: actor {body.name!r} has no collider ({reason})")
    frame = pose(model, state, body.name)
    inverse = rotation.conjugate(frame.quaternion)
    local = rotation.rotate(inverse, points - jnp.broadcast_to(frame.position, points.shape))
    local = local - jnp.broadcast_to(model.collider_center[:, model.column(body)], points.shape)
    return distance_to_collider(model, body, local)


def distance_to_collider(model: Model, body: BodyInfo, points: Float[Array, "*n 3"]) -> Float[Array, "*n"]:
    """Signed distance [m] of points in the frame of a body's collider, which it must have."""
    # One pair in one world, its samples being the points.
    one_world = jax.tree.map(lambda x: x[..., None], model.colliders[body.collider.value])
    shape = one_world.for_pairs(np.array([body.collider_row]))
    p = Vec3.of(points.reshape(-1, 3).T[..., None, None])
    return shape.signed_distance(p).reshape(points.shape[:-1])
