"""Contact read-back: the step's own law at the step's own poses.

A report keeps the poses, not the forces, so that forces nobody reads cost nothing and every force is differentiable.
Values belong to the end of the step and are forces [N], not impulses.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..contact.law import ContactOptions
from ..contact.params import ColliderType
from ..dynamics.pairing import Chosen, bodies_B
from ..dynamics.problem import Displacement, StageProblem, body_columns, identity_displacement, stage_problem
from ..dynamics.residual import Evaluation, Stage, prepare, respond
from ..geometry.point_cloud import PointClouds
from ..integrate.params import SolverParams
from ..integrate.report import StageInputs, StepReport
from ..math.quaternion import Quaternion
from ..math.spatial import Wrench
from ..math.vector import Vec3
from ..model.model import Actor, ContactGroup, Model
from ..model.state import State


class ContactPoints(NamedTuple):
    """Every surface sample of every pair, in a fixed number of slots; the force is on A, by B."""

    actor_A: Int[Array, "n"]  # index of the colliding actor, in the order of creation
    actor_B: Int[Array, "n"]
    sample: Int[Array, "n"]  # sample id on A: triangle * rule size + point
    position: Float[Array, "n 3"]  # of A's sample, world [m]
    normal: Float[Array, "n 3"]  # out of B, unit, world
    distance: Float[Array, "n"]  # signed, negative inside B [m]
    weight: Float[Array, "n"]  # area the sample stands for [m^2]
    force: Float[Array, "n 3"]  # world [N], already times the weight
    active: Bool[Array, "n"]  # within the contact threshold, opposed normals, and the step's forces valid


def contact_points(model: Model, report: StepReport) -> ContactPoints:
    """Contact of the step that made `report`, sample by sample, with the model that made the step."""
    return _points_of_step(model, step_inputs(report))


@jax.jit
def _points_of_step(model: Model, inputs: StageInputs) -> ContactPoints:
    return _points(model, *_evaluated(model, inputs), inputs.valid)


def evaluate_contacts(model: Model, state: State, params: SolverParams | None = None) -> ContactPoints:
    """Contact of a state as it stands, without a step: the penalty forces, and no friction since nothing moves."""
    return _points_of_state(model, state, (SolverParams() if params is None else params).contact_options)


def _all(model: Model, group: ContactGroup) -> int:
    """The `sample_slots` with which a group tests everything."""
    if group.kind is not ColliderType.POINT_CLOUD:
        return 0
    cloud = model.colliders[group.kind.value]
    assert isinstance(cloud, PointClouds)
    return len(model.samples[group.bucket].weight) * len(cloud.weight)


@functools.partial(jax.jit, static_argnames="options")
def _points_of_state(model: Model, state: State, options: ContactOptions) -> ContactPoints:
    # Without a step nothing tells whether the nearest samples are enough, so all are tested.
    model = dataclasses.replace(
        model, groups=tuple(dataclasses.replace(g, sample_slots=_all(model, g)) for g in model.groups)
    )
    problem, finite = stage_problem(model, state, None, jnp.ones((), state.q.dtype), options)
    # Where static bodies were put by hand they are, and nothing has moved since.
    still = problem.statics
    settled = still._replace(
        position=still.position + still.displacement,
        rotation=still.turn @ still.rotation,
        displacement=still.displacement.map(jnp.zeros_like),
        turn=Quaternion.identity_like(still.turn.w),
    )
    problem = eqx.tree_at(lambda p: p.statics, problem, settled)
    stage = prepare(problem)
    return _points(model, stage, respond(stage, identity_displacement(problem)), finite[:, 0])


def contact_force(model: Model, report: StepReport, actor: Actor | str, other: Actor | str | None = None) -> Wrench:
    """Total contact force on an actor [N] and its torque about the actor's COM [N m] (a static actor's root), world.

    Args:
        other: only what this actor exerts.

    Zero where the step diverged: `report.stage.valid` tells that from no contact.
    """
    body = model.body(actor)
    partner = None if other is None else model.column(model.body(other))
    mine = model.column(body)
    return _force_of_step(model, step_inputs(report), mine, partner)


@functools.partial(jax.jit, static_argnames=("mine", "partner"))
def _force_of_step(model: Model, inputs: StageInputs, mine: int, partner: int | None) -> Wrench:
    """Force and torque on the body of a column, by all others or by that of another column."""
    stage, evaluations = _evaluated(model, inputs)
    after = inputs.after
    total = jnp.zeros(6, after.q.dtype)
    origins = jnp.concatenate([after.q.reshape(-1, 7)[:, :3].T, after.static_position], axis=1)
    for group, chosen, evaluation in zip(model.groups, stage.problem.near.chosen, evaluations, strict=True):
        a, b = jnp.asarray(group.body_A), _single(bodies_B(group, chosen))
        force, torque = evaluation.force.stack(-1)[:, 0], evaluation.torque.stack(-1)[:, 0]
        valid = inputs.valid[a]
        as_A = valid & (a == mine) & (True if partner is None else b == partner)
        as_B = valid & (b == mine) & (True if partner is None else a == partner)
        # The reaction acts along the same line, so that its torque only changes sign about the same point.
        lever = (origins[:, a] - origins[:, mine, None]).T
        reaction = -jnp.concatenate([force, torque + jnp.cross(lever, force)], axis=1)
        total = total + jnp.sum(jnp.where(as_A[:, None], jnp.concatenate([force, torque], axis=1), 0.0), axis=0)
        total = total + jnp.sum(jnp.where(as_B[:, None], reaction, 0.0), axis=0)
    return Wrench(total[:3], total[3:])


def _single(rows) -> Int[Array, "p"]:
    """Rows of pairs in a single world."""
    return jnp.asarray(rows).reshape(rows.shape[0])


def step_inputs(report: StepReport) -> StageInputs:
    """What the step's forces are functions of; ValueError for a summary, which does not hold it."""
    if report.stage is None:
        raise ValueError(
            "contact read-back: a trajectory's summaries hold no poses; use trajectory.report(k) or .reports"
        )
    return report.stage


def _evaluated(model: Model, inputs: StageInputs) -> tuple[Stage, list[Evaluation]]:
    """The step's law at the step's converged poses."""
    problem, _ = stage_problem(model, inputs.before, inputs.control, inputs.h, inputs.options)
    stage = prepare(problem)
    return stage, respond(stage, _displacement(problem, inputs))


def _displacement(problem: StageProblem, inputs: StageInputs) -> Displacement:
    after = inputs.after
    rotation = Quaternion.of(body_columns(after.q[:, None], 7)[3:])
    # The velocity of the step is its displacement over h, and has not lost digits to the position it is added to.
    linear = Vec3.of(body_columns(after.v[:, None], 6)[:3] * inputs.h)
    return Displacement(linear, rotation @ problem.rotation.conj)


def _points(model: Model, stage: Stage, evaluations: list[Evaluation], valid: Bool[Array, "nb"]) -> ContactPoints:
    # Dynamic bodies come first in columns, actors in the order of creation.
    actor = np.argsort([model.column(b) for b in model.bodies])
    tables: dict[str, list] = {f: [] for f in ContactPoints._fields}
    near = stage.problem.near.chosen
    for group, chosen, prepared, e in zip(model.groups, near, stage.groups, evaluations, strict=True):
        a, b = group.body_A, _single(bodies_B(group, chosen))
        collider = e.collider
        samples = len(prepared.pair.weight)
        response = e.response
        gradient = response.now.gradient
        length = jnp.sqrt(gradient.x**2 + gradient.y**2 + gradient.z**2)
        unit = gradient * (1.0 / jnp.where(length > 0, length, 1.0))
        position = e.axes @ response.point + (collider.position + collider.displacement)
        active = response.load.active & valid[a][None, :, None] & (prepared.pair.weight > 0)
        if chosen is not None:
            active = active & chosen.live[None]
        force = e.axes @ (response.traction * prepared.pair.weight)

        tables["actor_A"].append(jnp.repeat(jnp.asarray(actor[a]), samples))
        tables["actor_B"].append(jnp.repeat(jnp.asarray(actor)[b], samples))
        tables["sample"].append(_sample_ids(model, group, chosen))
        tables["position"].append(_vectors(position))
        tables["normal"].append(_vectors(e.axes @ unit))
        tables["distance"].append(_rows(response.now.gap))
        tables["weight"].append(_rows(prepared.pair.weight))
        tables["force"].append(jnp.where(_rows(active)[:, None], _vectors(force), 0.0))
        tables["active"].append(_rows(active))
    return ContactPoints(**{f: _joined(f, parts, model.gravity.dtype) for f, parts in tables.items()})


def _sample_ids(model: Model, group: ContactGroup, chosen: Chosen | None) -> Int[Array, "n"]:
    """Ids on their bodies of the samples of a group, pair by pair."""
    ids = np.tile(np.arange(len(model.samples[group.bucket].weight)), (len(group.owner_body.array), 1))
    for row, dynamic in enumerate(group.owner_body.array):
        subset = model.dynamic[dynamic].subset
        if subset is not None:
            ids[row, : len(subset.sample.array)] = subset.sample.array
    of_pairs = jnp.asarray(ids[group.owner.array])
    if chosen is not None and chosen.candidates is not None:
        of_pairs = jnp.take_along_axis(of_pairs, chosen.candidates.sample[..., 0].T, axis=1)
    return of_pairs.reshape(-1)


def _rows(x: Array) -> Array:
    """(samples, pairs, one world) as one axis, pair by pair."""
    return jnp.swapaxes(x[..., 0], 0, 1).reshape(-1)


def _vectors(v: Vec3) -> Float[Array, "n 3"]:
    return jnp.stack([_rows(v.x), _rows(v.y), _rows(v.z)], -1)


def _joined(field: str, parts: list, dtype) -> Any:
    if parts:
        return jnp.concatenate(parts)
    if field in ("actor_A", "actor_B", "sample"):
        return jnp.zeros(0, int)
    empty = jnp.zeros((0, 3) if field in ("position", "normal", "force") else (0,), dtype)
    return empty.astype(bool) if field == "active" else empty
