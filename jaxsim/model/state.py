"""The state of one world, and the setters that place its bodies."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..math import rotation
from ..math.spatial import Pose, Twist
from .model import Actor, BodyInfo, Model


class State(eqx.Module):
    """What a step reads and returns: an immutable pytree with nothing derived in it.

    `q` holds, per free body in order of creation, the COM position [m] and the quaternion xyzw, world_from_root; `v`
    the COM velocity [m/s] and the angular velocity [rad/s], world axes.
    """

    q: Float[Array, "nq"]
    v: Float[Array, "nv"]
    symmetric_rate: Float[Array, "6 nb"]  # S of the finite-difference rotation [1/s], [xx, xy, xz, yy, yz, zz]
    history: Int[Array, "nb"]  # steps since a body was last placed by hand; S counts from the first on
    static_position: Float[Array, "3 ns"]  # of the static bodies' roots [m]
    static_quaternion: Float[Array, "4 ns"]
    static_position_before: Float[Array, "3 ns"]  # at the end of the last step: a moved static body drags
    static_quaternion_before: Float[Array, "4 ns"]
    step_count: Int[Array, ""]
    time: Float[Array, ""]  # [s]


def pose(model: Model, state: State, actor: Actor | str) -> Pose:
    """World pose of the actor's root frame (the frame its shape is given in)."""
    body = model.body(actor)
    if body.static:
        return Pose(state.static_position[:, body.row], state.static_quaternion[:, body.row])
    quaternion = _quaternion(state, body)
    return Pose(
        _com(state, body) - rotation.rotate(quaternion, model.center_of_mass[:, body.row]),
        quaternion,
    )


def com_position(model: Model, state: State, actor: Actor | str) -> Float[Array, "3"]:
    """World position of the centre of mass [m]; the root's for a static actor."""
    body = model.body(actor)
    return state.static_position[:, body.row] if body.static else _com(state, body)


def velocity(model: Model, state: State, actor: Actor | str, point: Float[Array, "3"] | None = None) -> Twist:
    """Velocity of the centre of mass, or of the body's material point at world `point` [m]; world axes."""
    body = model.body(actor)
    if body.static:
        return Twist(jnp.zeros_like(state.static_position[:, 0]), jnp.zeros_like(state.static_position[:, 0]))
    linear, angular = state.v[6 * body.row : 6 * body.row + 3], state.v[6 * body.row + 3 : 6 * body.row + 6]
    if point is not None:
        linear = linear + jnp.cross(angular, jnp.asarray(point, linear.dtype) - _com(state, body))
    return Twist(linear, angular)


def set_pose(
    model: Model,
    state: State,
    actor: Actor | str,
    position: Float[Array, "3"] | None = None,
    quaternion: Float[Array, "4"] | None = None,
) -> State:
    """The state with the actor's root frame at a world pose; what is not given stays. Clears the actor's history.

    A dynamic body keeps its velocity. A static body that is moved drags what touches it in the next step, as a
    conveyor does; it is then at rest again.
    """
    body = model.body(actor)
    old = pose(model, state, actor)
    dtype = state.q.dtype
    position = old.position if position is None else _vector(actor, "position", position, 3, dtype)
    quaternion = old.quaternion if quaternion is None else _vector(actor, "quaternion", quaternion, 4, dtype)
    quaternion = quaternion / jnp.linalg.norm(quaternion)
    if body.static:
        return eqx.tree_at(
            lambda s: (s.static_position, s.static_quaternion),
            state,
            (
                state.static_position.at[:, body.row].set(position),
                state.static_quaternion.at[:, body.row].set(quaternion),
            ),
        )
    com = position + rotation.rotate(quaternion, model.center_of_mass[:, body.row])
    q = state.q.at[7 * body.row : 7 * body.row + 7].set(jnp.concatenate([com, quaternion]))
    return eqx.tree_at(lambda s: (s.q, s.history), state, (q, state.history.at[body.row].set(0)))


def set_velocity(
    model: Model,
    state: State,
    actor: Actor | str,
    linear: Float[Array, "3"] | None = None,
    angular: Float[Array, "3"] | None = None,
) -> State:
    """The state with the actor's COM velocity [m/s] and angular velocity [rad/s] set, world axes. Clears its history.

    The first step after it turns by asin(h |w|), so that it keeps w. Refused for a static actor: move it by
    `set_pose`, or carry it with `Control.static_velocity`.
    """
    body = model.body(actor)
    if body.static:
        raise ValueError(
            f"actor {body.name!r}: a static actor has no velocity to set; use Control.static_velocity or set_pose"
        )
    at = 6 * body.row
    v = state.v
    if linear is not None:
        v = v.at[at : at + 3].set(_vector(actor, "linear", linear, 3, v.dtype))
    if angular is not None:
        v = v.at[at + 3 : at + 6].set(_vector(actor, "angular", angular, 3, v.dtype))
    return eqx.tree_at(lambda s: (s.v, s.history), state, (v, state.history.at[body.row].set(0)))


def _vector(actor, field: str, value, length: int, dtype) -> Array:
    value = jnp.asarray(value, dtype)
    if value.shape != (length,):
        name = actor if isinstance(actor, str) else actor.name
        raise ValueError(f"actor {name!r}: {field} must have shape ({length},); got {value.shape}")
    return value


def _com(state: State, body: BodyInfo) -> Float[Array, "3"]:
    return state.q[7 * body.row : 7 * body.row + 3]


def _quaternion(state: State, body: BodyInfo) -> Float[Array, "4"]:
    return state.q[7 * body.row + 3 : 7 * body.row + 7]
