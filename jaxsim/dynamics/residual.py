"""The residual of a stage, the single authority on the physics; its slope, and the forward solver's simpler slope."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..contact import pairs
from ..contact.pairs import PairResponse, PairStart, Placement
from ..geometry.point_cloud import PointClouds
from ..math.kernel import kernel
from ..math.quaternion import Quaternion
from ..math.rows import Rows, over_samples, pick_samples, sum_over_bodies, take
from ..math.vector import Mat3, Vec3, add_to_diagonal, cross, select, skew
from ..model.model import ContactGroup
from ..model.pair_params import effective_params
from .inertia import (
    merit_residual,
    merit_stiffness,
    newton_euler_residual,
    rotate_tensor,
    second_moment,
)
from .linear import BlockSystem, Coupling
from .pairing import Chosen, bodies_B, collider_rows
from .problem import Displacement, StageProblem, identity_displacement, move


class PreparedGroup(eqx.Module):
    """A contact group at the stage start."""

    pair: PairStart
    collider: Placement  # (1, pairs, worlds), at the colliders' own origins; static ones with their motion
    collider_arm: Vec3  # from the COM of a moving B to its collider's origin [m]
    between: Vec3  # from B's COM to A's [m], (pairs, worlds); only read of moving B


class Stage(eqx.Module):
    """A stage problem with everything formed that does not change from iterate to iterate."""

    problem: StageProblem
    inertia_W: Mat3
    second_moment_W: Mat3
    groups: tuple[PreparedGroup, ...]


class Evaluation(NamedTuple):
    """One evaluation of a contact group; per pair (pairs, worlds) and in world axes where not said otherwise."""

    response: PairResponse
    force: Vec3  # on A [N]
    torque: Vec3  # about A's COM [N m]
    lever: Vec3  # from B's COM to A's [m]; of moving B
    axes: Quaternion  # (1, pairs, worlds), world from the colliders' present axes
    collider: Placement  # (1, pairs, worlds)


def prepare(problem: StageProblem) -> Stage:
    """Bring a problem into the form that iterates are evaluated in."""
    inertia_W = rotate_tensor(problem.rotation, Mat3.symmetric(problem.model.moment_of_inertia))
    groups = tuple(
        _prepare_group(problem, group, chosen)
        for group, chosen in zip(problem.model.groups, problem.near.chosen, strict=True)
    )
    return Stage(problem, inertia_W, second_moment(inertia_W), groups)


def _prepare_group(problem: StageProblem, group: ContactGroup, chosen: Chosen | None) -> PreparedGroup:
    model = problem.model
    owner, a = group.owner.array, group.body_A
    rows, b = collider_rows(group, chosen), bodies_B(group, chosen)
    samples = take(model.samples[group.bucket], group.owner_bucket_row.array[owner])
    com = take(Vec3.of(model.center_of_mass), a)
    at_rest = _placement(problem, a, take(identity_displacement(problem), a))
    center = take(Vec3.of(model.collider_center), b)
    if group.static_collider:
        collider, arm, between = _static_placement(problem, b, center), center, center
    else:
        arm = take(problem.rotation, b) @ (center - take(Vec3.of(model.center_of_mass), b))
        collider = _moving_placement(problem, b, take(identity_displacement(problem), b), arm)
        between = take(problem.position, a) - take(problem.position, b)
    shape = model.colliders[group.kind.value].for_pairs(rows)
    if chosen is not None and chosen.candidates is not None:
        samples = pick_samples(samples, chosen.candidates.sample)
        if isinstance(shape, PointClouds):
            assert chosen.candidates.point is not None
            shape, share = shape.balls(chosen.candidates.point)
            samples = eqx.tree_at(lambda s: s.weight, samples, samples.weight * share)
    padded = group.owner_padded.array[owner][:, None]
    params = effective_params(model, a, b, static_collider=group.static_collider, padded=padded)
    pair = pairs.place_samples(
        shape,
        Vec3.of(samples.position) - jax.tree.map(over_samples, com),
        Vec3.of(samples.normal),
        samples.weight,
        at_rest,
        collider,
        jax.tree.map(over_samples, params),
        over_samples(_table_rows(group.collider_normal.array, rows)),
    )
    return PreparedGroup(pair, collider, arm, between)


def _table_rows(table: np.ndarray, rows: Rows) -> Array:
    """Entries of a static table, (pairs, worlds)."""
    return jnp.asarray(table[rows])[:, None] if isinstance(rows, np.ndarray) else jnp.asarray(table)[rows]


def _placement(problem: StageProblem, rows: Rows, displacement: Displacement) -> Placement:
    """Dynamic bodies of pairs, displaced pair by pair; arrays (1, pairs, worlds)."""
    position, rotation = take((problem.position, problem.rotation), rows)
    return jax.tree.map(over_samples, Placement(position, rotation, displacement.linear, displacement.turn))


def _moving_placement(problem: StageProblem, rows: Rows, displacement: Displacement, arm: Vec3) -> Placement:
    """Frames of dynamic colliders: the body's COM moved by the arm to the collider's origin."""
    position, rotation = take((problem.position, problem.rotation), rows)
    shift = displacement.linear + displacement.turn.minus_identity() @ arm
    return jax.tree.map(over_samples, Placement(position + arm, rotation, shift, displacement.turn))


def _static_placement(problem: StageProblem, columns: Rows, center: Vec3) -> Placement:
    """Frames of static colliders: the body's root frame moved to the collider's origin, and its motion in the step."""
    body = take(problem.statics, columns - problem.model.n_dynamic)
    center = body.rotation @ center
    shift = body.displacement + body.turn.minus_identity() @ center
    return jax.tree.map(over_samples, Placement(body.position + center, body.rotation, shift, body.turn))


def respond(stage: Stage, displacement: Displacement) -> list[Evaluation]:
    """Every contact group at one iterate."""
    evaluations = []
    for index, (group, chosen) in enumerate(zip(stage.problem.model.groups, stage.problem.near.chosen, strict=True)):
        of_B = None if group.static_collider else take(displacement, bodies_B(group, chosen))
        evaluations.append(_respond_group(stage, index, take(displacement, group.body_A), of_B))
    return evaluations


def _respond_group(stage: Stage, index: int, of_A: Displacement, of_B: Displacement | None) -> Evaluation:
    """One group with displacements given pair by pair."""
    problem = stage.problem
    group, chosen, prepared = problem.model.groups[index], problem.near.chosen[index], stage.groups[index]
    a, b, lever = _placement(problem, group.body_A, of_A), prepared.collider, prepared.between
    if of_B is not None:
        b = _moving_placement(problem, bodies_B(group, chosen), of_B, prepared.collider_arm)
        lever = lever + (of_A.linear - of_B.linear)
    u, E = pairs.relative_motion(a, b)
    response = pairs.respond(prepared.pair, u, E, problem.h[None], problem.options)
    axes, force, torque = _in_world(b, *pairs.pair_wrench(prepared.pair, response))
    force, torque = jax.tree.map(lambda x: _live(x[..., 0, :, :], chosen), (force, torque))
    return Evaluation(response, force, torque, lever, axes, b)


def _live(x: Float[Array, "*c p w"], chosen: Chosen | None) -> Float[Array, "*c p w"]:
    """Nothing from pairs that cannot touch: not even a NaN, when one of the two is lost."""
    return x if chosen is None else jnp.where(chosen.live[(None,) * (x.ndim - 2)], x, 0.0)


@kernel
def _in_world(collider: Placement, force: Vec3, torque: Vec3) -> tuple[Quaternion, Vec3, Vec3]:
    axes = collider.turn @ collider.rotation
    return axes, axes @ force, axes @ torque


def _inertial(stage: Stage, displacement: Displacement) -> tuple[Vec3, Vec3]:
    """Inertia less applied loads [N] and [N m], per body."""
    problem, h = stage.problem, stage.problem.h
    model = problem.model
    acceleration = (displacement.linear * (1.0 / h) - problem.linear_velocity) * (1.0 / h)
    force = acceleration * model.mass - problem.force
    torque = merit_residual(displacement.turn, problem.predicted, stage.second_moment_W, h)
    if model.newton_euler.any():
        other = newton_euler_residual(displacement.turn, problem.angular_velocity, stage.inertia_W, h)
        torque = select(jnp.asarray(model.newton_euler)[:, None], other, torque)
    return force, torque - problem.torque


def _residual(stage: Stage, displacement: Displacement, evaluations: list[Evaluation]) -> Float[Array, "6 nb w"]:
    """Inertia less loads [N; N m]: zero at the solution."""
    model, near = stage.problem.model, stage.problem.near
    force, torque = _inertial(stage, displacement)
    for group, chosen, evaluation in zip(model.groups, near.chosen, evaluations, strict=True):
        on_A = (evaluation.force, evaluation.torque)
        f, t = sum_over_bodies(on_A, group.body_A, model.n_dynamic)
        force, torque = force - f, torque - t
        if not group.static_collider:
            f, t = sum_over_bodies(_reaction(evaluation), bodies_B(group, chosen), model.n_dynamic)
            force, torque = force - f, torque - t
    return jnp.concatenate([force.stack(), torque.stack()])


def _reaction(evaluation: Evaluation) -> tuple[Vec3, Vec3]:
    """Force on B [N] and torque about B's COM [N m]: the same line of action, turned round."""
    return -evaluation.force, -(evaluation.torque + cross(evaluation.lever, evaluation.force))


def residual(z: Float[Array, "6 nb w"], at: tuple[Displacement, StageProblem]) -> Float[Array, "6 nb w"]:
    """Residual at the displacement of `at` followed by the increment z: what derivatives are taken of."""
    displacement, problem = at
    moved = move(displacement, z)
    stage = prepare(problem)
    return _residual(stage, moved, respond(stage, moved))


def slope(z: Float[Array, "6 nb w"], at: tuple[Displacement, StageProblem]) -> BlockSystem:
    """The residual's exact slope over z, unsymmetric as friction makes it; differentiable itself.

    Bodies do not see each other in the first six products: they give the diagonal blocks of inertia and of contact with
    static bodies. Contact of moving bodies is differentiated pair by pair, each with its own copies of the increments.
    """
    displacement, problem = at
    model, stage = problem.model, prepare(problem)

    def own(z):
        moved = move(displacement, z)
        force, torque = _inertial(stage, moved)
        for index, group in enumerate(model.groups):
            if group.static_collider:
                e = _respond_group(stage, index, take(moved, group.body_A), None)
                f, t = sum_over_bodies((e.force, e.torque), group.body_A, model.n_dynamic)
                force, torque = force - f, torque - t
        return jnp.concatenate([force.stack(), torque.stack()])

    diagonal = _columns(own, z)
    couplings = []
    for index, (group, chosen) in enumerate(zip(model.groups, problem.near.chosen, strict=True)):
        if group.static_collider:
            continue
        a, b = group.body_A, bodies_B(group, chosen)

        def wrenches(both, index=index, a=a, b=b):
            moved = [move(take(displacement, rows), both[k]) for k, rows in enumerate((a, b))]
            e = _respond_group(stage, index, *moved)
            on_B = _reaction(e)
            return -jnp.stack([jnp.concatenate([x.stack() for x in w]) for w in ((e.force, e.torque), on_B)])

        blocks = _columns(wrenches, jnp.stack([take(z, a), take(z, b)]), axes=2)  # (row body, row, column body, column)
        diagonal = diagonal + sum_over_bodies(blocks[0, :, 0], a, model.n_dynamic)
        diagonal = diagonal + sum_over_bodies(blocks[1, :, 1], b, model.n_dynamic)
        couplings.append(Coupling(a, b, blocks[0, :, 1], blocks[1, :, 0]))
    return BlockSystem(diagonal, tuple(couplings))


def _columns(function, at: Float[Array, "*c n w"], axes: int = 1) -> Float[Array, "... n w"]:
    """Slope of a function of component-first columns that does not mix columns."""
    shape = at.shape[:axes]
    _, K = jax.linearize(function, at)
    seeds = jnp.eye(int(np.prod(shape)), dtype=at.dtype).reshape(-1, *shape, 1, 1)
    columns = jax.vmap(lambda seed: K(seed * jnp.ones_like(at)))(seeds)
    columns = jnp.moveaxis(columns, 0, axes)
    return columns.reshape(*columns.shape[:axes], *shape, *at.shape[axes:])


def assemble(
    stage: Stage, displacement: Displacement, fitted: Bool[Array, "nb w"]
) -> tuple[Float[Array, "6 nb w"], BlockSystem]:
    """Residual and a symmetric positive approximation of its slope.

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
    diagonal = (translation, coupling, rotation)
    couplings = []
    for index, (group, evaluation) in enumerate(zip(model.groups, evaluations, strict=True)):
        pair = stage.groups[index].pair
        blocks = pairs.pair_stiffness(pair, evaluation.response, h[None], take(fitted, group.body_A)[None])
        chosen = problem.near.chosen[index]
        M = tuple(Mat3.of(_live(rotate_tensor(evaluation.axes, x).array[:, :, 0], chosen)) for x in blocks)
        diagonal = jax.tree.map(jnp.add, diagonal, sum_over_bodies(M, group.body_A, model.n_dynamic))
        if not group.static_collider:
            b = bodies_B(group, chosen)
            AB, BB = _transported(*M, evaluation.lever)
            diagonal = jax.tree.map(jnp.add, diagonal, sum_over_bodies(BB, b, model.n_dynamic))
            couplings.append(Coupling(group.body_A, b, AB, jnp.swapaxes(AB, 0, 1)))
    translation, coupling, rotation = (block.array for block in diagonal)
    upper = jnp.concatenate([translation, jnp.swapaxes(coupling, 0, 1)], axis=1)
    lower = jnp.concatenate([coupling, rotation], axis=1)
    return r, BlockSystem(jnp.concatenate([upper, lower]), tuple(couplings))


@kernel
def _transported(H: Mat3, SH: Mat3, SHS: Mat3, lever: Vec3) -> tuple[Float[Array, "6 6 p w"], tuple[Mat3, Mat3, Mat3]]:
    """Blocks of a pair's Gauss-Newton matrix that B's motion adds to M, that of A's.

    A sample moves with B as with A moved by T: J_B = -J_A T, T = [[1, -skew(lever)], [0, 1]], the lever going from B's
    COM to A's. So AB = -M T, and BB = T^T M T.
    """
    S = skew(lever)
    right = SH.T - H @ S  # of M T, upper right
    turning = SHS - SH @ S  # of M T, lower right
    AB = jnp.concatenate(
        [jnp.concatenate([H.array, right.array], axis=1), jnp.concatenate([SH.array, turning.array], axis=1)]
    )
    return -AB, (H, S @ H + SH, S @ right + turning)
