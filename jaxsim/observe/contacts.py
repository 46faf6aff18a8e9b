"""Contact read-back: the step's own law at the step's own poses.

A report keeps the poses, not the forces, so that forces nobody reads cost nothing and every force is differentiable.
Values belong to the end of the step and are forces [N], not impulses.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..dynamics.problem import Displacement, StageProblem, body_columns, identity_displacement, stage_problem
from ..dynamics.residual import Evaluation, Stage, prepare, respond
from ..integrate.params import SolverParams
from ..integrate.report import StageInputs, StepReport
from ..math.quaternion import Quaternion
from ..math.spatial import Wrench
from ..math.vector import Vec3
from ..model.model import Actor, Model
from ..model.state import State


class ContactPoints(NamedTuple):
    """Every surface sample of every pair, in a fixed number of slots; the force is on A, by B."""

    actor_A: np.ndarray  # (n,) index of the colliding actor, in the order of creation
    actor_B: np.ndarray  # (n,)
    sample: np.ndarray  # (n,) sample id on A: triangle * rule size + point
    position: Float[Array, "n 3"]  # of A's sample, world [m]
    normal: Float[Array, "n 3"]  # out of B, unit, world
    distance: Float[Array, "n"]  # signed, negative inside B [m]
    weight: Float[Array, "n"]  # area the sample stands for [m^2]
    force: Float[Array, "n 3"]  # world [N], already times the weight
    active: Bool[Array, "n"]  # within the contact threshold, opposed normals, and the step's forces valid


def contact_points(model: Model, report: StepReport) -> ContactPoints:
    """Contact of the step that made `report`, sample by sample, with the model that made the step."""
    inputs = _inputs(report)
    return _points(model, *_evaluated(model, inputs), inputs.valid)


def evaluate_contacts(model: Model, state: State, params: SolverParams | None = None) -> ContactPoints:
    """Contact of a state as it stands, without a step: the penalty forces, and no friction since nothing moves."""
    params = SolverParams() if params is None else params
    problem, finite = stage_problem(model, state, None, jnp.ones((), state.q.dtype), params.contact_options)
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
    partner = None if other is None else model.body(other)
    inputs = _inputs(report)
    _, evaluations = _evaluated(model, inputs)
    after = inputs.after
    total = Wrench(jnp.zeros(3, after.q.dtype), jnp.zeros(3, after.q.dtype))
    for group, evaluation in zip(model.groups, evaluations, strict=True):
        a, b = group.body_A.array, group.body_B.array
        valid = inputs.valid[a]
        mine = b == model.column(body) if body.static else a == body.row
        if partner is not None:
            theirs = a == partner.row if not partner.static else b == model.column(partner)
            if partner.static == body.static:
                theirs = np.zeros_like(mine)
            mine = mine & theirs
        share = jnp.where(jnp.asarray(mine) & valid, 1.0, 0.0).astype(after.q.dtype)[:, None]
        force, torque = evaluation.force.stack(-1)[0, :, 0], evaluation.torque.stack(-1)[0, :, 0]
        if body.static:
            com = after.q.reshape(-1, 7)[:, :3]
            lever = com[a] - after.static_position[:, body.row][None]
            force, torque = -force, -(torque + jnp.cross(lever, force))
        total = Wrench(total.force + jnp.sum(share * force, 0), total.torque + jnp.sum(share * torque, 0))
    return total


def _inputs(report: StepReport) -> StageInputs:
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
    order = {(b.static, b.row): i for i, b in enumerate(model.bodies)}
    tables: dict[str, list] = {f: [] for f in ContactPoints._fields}
    for group, prepared, e in zip(model.groups, stage.groups, evaluations, strict=True):
        a, b = group.body_A.array, group.body_B.array
        collider = prepared.collider
        samples, pairs = prepared.pair.weight.shape[:2]
        response = e.response
        gradient = response.now.gradient
        length = jnp.sqrt(gradient.x**2 + gradient.y**2 + gradient.z**2)
        unit = gradient * (1.0 / jnp.where(length > 0, length, 1.0))
        position = e.axes @ response.point + (collider.position + collider.displacement)
        active = response.load.active & valid[a][None, :, None] & (prepared.pair.weight > 0)
        force = e.axes @ (response.traction * prepared.pair.weight)

        tables["actor_A"].append(np.repeat([order[False, i] for i in a], samples))
        tables["actor_B"].append(np.repeat([order[True, i - model.n_dynamic] for i in b], samples))
        tables["sample"].append(np.tile(np.arange(samples), pairs))
        tables["position"].append(_vectors(position))
        tables["normal"].append(_vectors(e.axes @ unit))
        tables["distance"].append(_rows(response.now.gap))
        tables["weight"].append(_rows(prepared.pair.weight))
        tables["force"].append(jnp.where(_rows(active)[:, None], _vectors(force), 0.0))
        tables["active"].append(_rows(active))
    return ContactPoints(**{f: _joined(f, parts, model.gravity.dtype) for f, parts in tables.items()})


def _rows(x: Array) -> Array:
    """(samples, pairs, one world) as one axis, pair by pair."""
    return jnp.swapaxes(x[..., 0], 0, 1).reshape(-1)


def _vectors(v: Vec3) -> Float[Array, "n 3"]:
    return jnp.stack([_rows(v.x), _rows(v.y), _rows(v.z)], -1)


def _joined(field: str, parts: list, dtype) -> Any:
    if field in ("actor_A", "actor_B", "sample"):
        return np.concatenate(parts) if parts else np.zeros(0, int)
    if parts:
        return jnp.concatenate(parts)
    empty = jnp.zeros((0, 3) if field in ("position", "normal", "force") else (0,), dtype)
    return empty.astype(bool) if field == "active" else empty
