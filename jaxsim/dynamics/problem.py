"""The equations of one implicit stage, written down as data: everything that the residual depends on.

Arrays are in kernel form: component, body, world. A single world has a last axis of length one.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from ..contact.law import ContactOptions
from ..contact.pairs import Placement
from ..math import quaternion
from ..math.kernel import kernel
from ..math.quaternion import Quaternion
from ..math.symmetric import square_root
from ..math.vector import Component, Mat3, Vec3, axial, cross, select
from ..model.control import Control, ForceMode
from ..model.model import Model
from ..model.state import State
from .inertia import predicted_rotation, rotate_tensor, spin_start
from .pairing import BodyPoses, BroadPhase, broad_phase


class Displacement(NamedTuple):
    """Motion of every free body since the stage start: the unknown of a stage."""

    linear: Vec3  # of the COM [m]
    turn: Quaternion  # world axes, from the left


class StageProblem(eqx.Module):
    """All inputs of a stage. Whatever is differentiated travels in here."""

    model: Model
    position: Vec3  # COM at the stage start [m]
    rotation: Quaternion
    linear_velocity: Vec3  # [m/s]
    angular_velocity: Vec3  # [rad/s]
    predicted: Mat3  # predicted rotation of the stage less the identity
    force: Vec3  # external, at the COM [N]
    torque: Vec3  # about the COM [N m]
    statics: Placement
    near: BroadPhase
    h: Float[Array, "1 w"]  # stage length [s]
    options: ContactOptions = eqx.field(static=True)


def lanes(tree):
    """The arrays of one world in kernel form: with a last axis of length one."""
    return jax.tree.map(lambda x: x[..., None], tree)


def body_columns(flat: Float[Array, "n w"], size: int) -> Float[Array, "size nb w"]:
    """Per-body numbers of a flat vector, component first."""
    return jnp.swapaxes(flat.reshape(-1, size, flat.shape[-1]), 0, 1)


def flat_rows(columns: Float[Array, "size nb w"]) -> Float[Array, "n w"]:
    """Inverse of `body_columns`."""
    return jnp.swapaxes(columns, 0, 1).reshape(-1, columns.shape[-1])


def stage_problem(
    model: Model, state: State, control: Control | None, h: Float[Array, ""], options: ContactOptions
) -> tuple[StageProblem, Bool[Array, "nb w"]]:
    """The Backward Euler stage of one world, and which bodies have only finite inputs.

    Bodies with a non-finite input are put at rest at the origin, so that neither they nor the derivative that passes
    them can spread a NaN; the caller reports them as diverged.
    """
    model, state, control, h = lanes((model, state, control, h))
    h = h[None]
    q, v = body_columns(state.q, 7), body_columns(state.v, 6)
    finite = jnp.isfinite(q).all(0) & jnp.isfinite(v).all(0) & jnp.isfinite(state.symmetric_rate).all(0)
    position, rotation = Vec3.of(q[:3]), Quaternion.of(q[3:])
    force, torque = _gravity(model), Vec3.of(jnp.zeros_like(v[:3]))
    if control is not None:
        applied, turned = _loads(model, control, position, rotation, h)
        force, torque = force + applied, torque + turned
        finite = finite & jnp.isfinite(control.loads).all((0, 1, 2))

    position, force, torque = (select(finite, x, x.map(jnp.zeros_like)) for x in (position, force, torque))
    linear, angular = (select(finite, x, x.map(jnp.zeros_like)) for x in (Vec3.of(v[:3]), Vec3.of(v[3:])))
    rotation = Quaternion(
        select(finite, rotation.v, rotation.v.map(jnp.zeros_like)), jnp.where(finite, rotation.w, 1.0)
    ).normalized()
    fresh = state.history == 0
    symmetric = jnp.where(
        fresh[None], spin_start(angular, h).upper(), jnp.where(finite[None], state.symmetric_rate, 0.0)
    )
    statics = _statics(state, control, h)
    problem = StageProblem(
        model=model,
        position=position,
        rotation=rotation,
        linear_velocity=linear,
        angular_velocity=angular,
        predicted=predicted_rotation(angular, Mat3.symmetric(symmetric), h),
        force=force,
        torque=torque,
        statics=statics,
        near=_near(model, BodyPoses(position, rotation, linear, angular), statics, h),
        h=h,
        options=options,
    )
    return problem, finite


def _gravity(model: Model) -> Vec3:
    return Vec3.of(model.gravity[:, None] * (model.mass * model.gravity_scale)[None])


def _statics(state: State, control: Control | None, h: Component) -> Placement:
    """Static bodies, from where the last step left them to where the user puts or carries them."""
    before = Quaternion.of(state.static_quaternion_before)
    after = Quaternion.of(state.static_quaternion)
    start = Vec3.of(state.static_position_before)
    shift = Vec3.of(state.static_position) - start
    if control is not None:
        shift = shift + Vec3.of(control.static_velocity[:3]) * h
        after = quaternion.exp(Vec3.of(control.static_velocity[3:]) * h) @ after
    return Placement(start, before, shift, after @ before.conj)


def _near(model: Model, dynamic: BodyPoses, statics: Placement, h: Component) -> BroadPhase:
    """The broad phase of the step. Which pairs it picks has no derivative."""
    turn = statics.turn.minus_identity()
    carried = BodyPoses(statics.position, statics.rotation, statics.displacement / h, axial(turn) / h)
    every = jax.tree.map(lambda a, b: jnp.concatenate([a, b], axis=-2), dynamic, carried)
    return broad_phase(*lax.stop_gradient((model, every, h)))


@kernel
def _loads(model: Model, control: Control, position: Vec3, rotation: Quaternion, h: Component) -> tuple[Vec3, Vec3]:
    """Force [N] and torque about the COM [N m] of the applied loads, held over the step."""
    inertia_W = rotate_tensor(rotation, Mat3.symmetric(model.moment_of_inertia))
    force = torque = Vec3.of(jnp.zeros_like(control.loads[0, 0, :3]))
    for mode in ForceMode:
        world, local, origin = (
            (Vec3.of(control.loads[mode.value, k, :3]), Vec3.of(control.loads[mode.value, k, 3:])) for k in range(3)
        )
        linear = world[0] + rotation @ local[0] + origin[0]
        angular = world[1] + rotation @ local[1] + origin[1] - cross(position, origin[0])
        if mode in (ForceMode.ACCELERATION, ForceMode.VELOCITY_CHANGE):
            linear, angular = linear * model.mass, inertia_W @ angular
        if mode in (ForceMode.IMPULSE, ForceMode.VELOCITY_CHANGE):
            linear, angular = linear * (1.0 / h), angular * (1.0 / h)
        force, torque = force + linear, torque + angular
    return force, torque


@kernel
def weights(problem: StageProblem) -> Float[Array, "6 nb w"]:
    """Scale that turns a rigid body's residual rows into shares of its weight.

    Translation: 1 / (m a); rotation, axis i: 1 / (a sqrt(m) sqrt(I_W)_ii), the matrix root of the world inertia, with
    a = max(|g|, 1). Source: SuperDex Physics 1.0.1, per-actor convergence.
    """
    model = problem.model
    a = jnp.maximum(jnp.linalg.norm(model.gravity, axis=0), 1.0)[None]
    root = square_root(rotate_tensor(problem.rotation, Mat3.symmetric(model.moment_of_inertia)))
    zero = jnp.zeros_like(problem.position.array)
    diagonal = jnp.stack([root.array[i, i] for i in range(3)])
    linear, angular = (1.0 / (model.mass * a))[None], 1.0 / ((a * jnp.sqrt(model.mass))[None] * diagonal)
    return jnp.concatenate([linear + zero, angular + zero])


def identity_displacement(problem: StageProblem) -> Displacement:
    zero = jnp.zeros_like(problem.position.x)
    return Displacement(Vec3(zero, zero, zero), Quaternion.identity_like(zero))


@kernel
def move(displacement: Displacement, dz: Float[Array, "6 nb w"]) -> Displacement:
    """The displacement followed by an increment: COM shift [m] and world rotation vector [rad]."""
    turn = (quaternion.exp(Vec3.of(dz[3:])) @ displacement.turn).normalized()
    return Displacement(displacement.linear + Vec3.of(dz[:3]), turn)
