"""The residual of a stage, the single authority on the physics, and the forward solver's approximation of its slope."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..contact import pairs
from ..contact.pairs import PairResponse, PairStart, Placement
from ..contact.params import combine
from ..math.kernel import kernel
from ..math.quaternion import Quaternion
from ..math.vector import Mat3, Vec3, add_to_diagonal, select
from ..model.model import ContactGroup
from .inertia import (
    merit_residual,
    merit_stiffness,
    newton_euler_residual,
    rotate_tensor,
    second_moment,
)
from .problem import Displacement, StageProblem, identity_displacement, move, take

LowerTriangle = list[list[Float[Array, "nb w"]]]


class PreparedGroup(eqx.Module):
    """A contact group at the stage start."""

    pair: PairStart
    collider: Placement  # (1, pairs, worlds), at the colliders' own origins


class Stage(eqx.Module):
    """A stage problem with everything formed that does not change from iterate to iterate."""

    problem: StageProblem
    inertia_W: Mat3
    second_moment_W: Mat3
    groups: tuple[PreparedGroup, ...]


class Evaluation(NamedTuple):
    """One evaluation of a contact group."""

    response: PairResponse
    force: Vec3  # on A, per pair (1, pairs, worlds), world axes [N]
    torque: Vec3  # about A's COM [N m]
    axes: Quaternion  # world from the colliders' present axes


def prepare(problem: StageProblem) -> Stage:
    """Bring a problem into the form that iterates are evaluated in."""
    inertia_W = rotate_tensor(problem.rotation, Mat3.symmetric(problem.model.moment_of_inertia))
    groups = tuple(_prepare_group(problem, group) for group in problem.model.groups)
    return Stage(problem, inertia_W, second_moment(inertia_W), groups)


def _prepare_group(problem: StageProblem, group: ContactGroup) -> PreparedGroup:
    model = problem.model
    a, b = group.body_A.array, group.body_B.array
    samples = take(model.samples[group.bucket], group.bucket_row.array)
    com = take(Vec3.of(model.center_of_mass), a)
    at_rest = _placement_of(problem, a, None)
    collider = _collider_placement(problem, b)
    shape = take(model.colliders[group.kind.value], group.collider_row.array)
    params = combine(
        take(model.contact, a),
        take(model.contact, b),
        static_collider=group.static_collider,
        padded=group.padded.array[:, None],
    )
    pair = pairs.place_samples(
        jax.tree.map(_over_samples, shape),
        Vec3.of(samples.position) - jax.tree.map(_over_samples, com),
        Vec3.of(samples.normal),
        samples.weight,
        at_rest,
        collider,
        jax.tree.map(_over_samples, params),
        jnp.asarray(group.with_collider_normal.array)[None, :, None],
    )
    return PreparedGroup(pair, collider)


def _over_samples(x: Float[Array, "*c p w"]) -> Float[Array, "*c 1 p w"]:
    """Room for the sample axis in front of the pair axis."""
    return x[..., None, :, :]


def _placement_of(problem: StageProblem, rows: np.ndarray, displacement: Displacement | None) -> Placement:
    """Dynamic bodies of a group, at the stage start or displaced; arrays (1, pairs, worlds)."""
    if displacement is None:
        displacement = identity_displacement(problem)
    placement = Placement(problem.position, problem.rotation, displacement.linear, displacement.turn)
    return jax.tree.map(_over_samples, take(placement, rows))


def _collider_placement(problem: StageProblem, rows: np.ndarray) -> Placement:
    """Frames of static colliders: the body's root frame moved to the collider's centre."""
    model = problem.model
    body = take(problem.statics, rows - model.n_dynamic)
    center = body.rotation @ take(Vec3.of(model.collider_center), rows)
    shift = body.displacement + body.turn.minus_identity() @ center
    return jax.tree.map(_over_samples, Placement(body.position + center, body.rotation, shift, body.turn))


def respond(stage: Stage, displacement: Displacement) -> list[Evaluation]:
    """Every contact group at one iterate."""
    problem = stage.problem
    evaluations = []
    for group, prepared in zip(problem.model.groups, stage.groups, strict=True):
        a = _placement_of(problem, group.body_A.array, displacement)
        u, E = pairs.relative_motion(a, prepared.collider)
        response = pairs.respond(prepared.pair, u, E, problem.h[None], problem.options)
        axes, force, torque = _in_world(prepared.collider, *pairs.pair_wrench(prepared.pair, response))
        evaluations.append(Evaluation(response, force, torque, axes))
    return evaluations


@kernel
def _in_world(collider: Placement, force: Vec3, torque: Vec3) -> tuple[Quaternion, Vec3, Vec3]:
    axes = collider.turn @ collider.rotation
    return axes, axes @ force, axes @ torque


def _residual(stage: Stage, displacement: Displacement, evaluations: list[Evaluation]) -> Float[Array, "6 nb w"]:
    """Inertia less loads [N; N m]: zero at the solution."""
    problem, h = stage.problem, stage.problem.h
    model = problem.model
    acceleration = (displacement.linear * (1.0 / h) - problem.linear_velocity) * (1.0 / h)
    force = acceleration * model.mass - problem.force
    inertial = merit_residual(displacement.turn, problem.predicted, stage.second_moment_W, h)
    if model.newton_euler.any():
        other = newton_euler_residual(displacement.turn, problem.angular_velocity, stage.inertia_W, h)
        inertial = select(jnp.asarray(model.newton_euler)[:, None], other, inertial)
    torque = inertial - problem.torque
    for group, evaluation in zip(model.groups, evaluations, strict=True):
        force = force - _to_bodies(evaluation.force, group, model.n_dynamic)
        torque = torque - _to_bodies(evaluation.torque, group, model.n_dynamic)
    return jnp.concatenate([force.stack(), torque.stack()])


def _to_bodies(per_pair, group: ContactGroup, n: int):
    """Sum of per-pair quantities (1, pairs, worlds) over the pairs of each colliding body: (bodies, worlds)."""
    rows = group.body_A.array
    if np.array_equal(rows, np.arange(n)):
        return jax.tree.map(lambda x: x[..., 0, :, :], per_pair)

    def gathered(x):
        rows_first = jax.ops.segment_sum(jnp.moveaxis(x[..., 0, :, :], -2, 0), rows, n)
        return jnp.moveaxis(rows_first, 0, -2)

    return jax.tree.map(gathered, per_pair)


def residual(z: Float[Array, "6 nb w"], at: tuple[Displacement, StageProblem]) -> Float[Array, "6 nb w"]:
    """Residual at the displacement of `at` followed by the increment z: what derivatives are taken of."""
    displacement, problem = at
    moved = move(displacement, z)
    stage = prepare(problem)
    return _residual(stage, moved, respond(stage, moved))


def assemble(
    stage: Stage, displacement: Displacement, fitted: Bool[Array, "nb w"]
) -> tuple[Float[Array, "6 nb w"], LowerTriangle]:
    """Residual and, per body, the lower triangle of a symmetric positive approximation of its slope.

    Only the forward solver uses the matrix: contact enters by Gauss-Newton, rotation by a lifted Hessian. It is checked
    against autodiff of `residual` where the two must agree.
    """
    problem, h = stage.problem, stage.problem.h
    model = problem.model
    evaluations = respond(stage, displacement)
    r = _residual(stage, displacement, evaluations)

    rotation = merit_stiffness(displacement.turn, problem.predicted, stage.second_moment_W, h)
    if model.newton_euler.any():
        plain = rotate_tensor(displacement.turn, stage.inertia_W) * (1.0 / (h * h))
        mask = jnp.asarray(model.newton_euler)[None, None, :, None]
        rotation = jax.tree.map(lambda a, b: jnp.where(mask, a, b), plain, rotation)
    coupling = jax.tree.map(jnp.zeros_like, rotation)
    translation = add_to_diagonal(coupling, model.mass / (h * h))
    for group, prepared, evaluation in zip(model.groups, stage.groups, evaluations, strict=True):
        blocks = pairs.pair_stiffness(
            prepared.pair, evaluation.response, h[None], take(fitted, group.body_A.array)[None]
        )
        H, SH, SHS = (_to_bodies(rotate_tensor(evaluation.axes, block), group, model.n_dynamic) for block in blocks)
        translation, coupling, rotation = translation + H, coupling + SH, rotation + SHS
    a, c, b = (block.array for block in (translation, coupling, rotation))
    return r, [
        [a[0, 0]],
        [a[1, 0], a[1, 1]],
        [a[2, 0], a[2, 1], a[2, 2]],
        [c[0, 0], c[0, 1], c[0, 2], b[0, 0]],
        [c[1, 0], c[1, 1], c[1, 2], b[1, 0], b[1, 1]],
        [c[2, 0], c[2, 1], c[2, 2], b[2, 0], b[2, 1], b[2, 2]],
    ]
