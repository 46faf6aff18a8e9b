"""One time step."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .dynamics.inertia import rotational_velocity
from .dynamics.left_out import left_out_may_touch
from .dynamics.problem import Displacement, body_columns, flat_rows, stage_problem
from .integrate.params import SolverParams
from .integrate.report import StageInputs, StepReport
from .integrate.stage import StageOutcome, solve_stage
from .math.quaternion import Quaternion, exp
from .math.vector import Vec3
from .model.control import Control
from .model.model import Model
from .model.state import State
from .solve.results import Status


def step(
    model: Model,
    state: State,
    control: Control | None,
    h: float | Float[Array, ""],
    params: SolverParams | None = None,
) -> tuple[State, StepReport]:
    """Advance one world by `h` seconds with Backward Euler.

    Args:
        control: loads and carried static bodies, held over the step; None for none.
        h: step length [s], positive and finite.
        params: solver settings; `SolverParams()` when None.

    Returns:
        The new state, and the report: the step's status per world and body, iterations and residual. Trouble is
        reported, not raised: a body that diverged is back at its previous pose, at rest, with zero gradient, and so are
        those it touched.

    Raises:
        ValueError: h not positive or not finite, or arguments whose dtype or shape does not fit the model.
    """
    params = SolverParams() if params is None else params
    check_step_inputs(model, state, control, h)
    return _jitted_step(model, state, control, jnp.asarray(h, model.gravity.dtype), params)


def check_step_inputs(model: Model, state: State, control: Control | None, h) -> None:
    """ValueError for inputs that can be seen to be wrong before anything runs."""
    if not isinstance(h, Tracer) and not (np.all(np.isfinite(h)) and np.all(np.asarray(h) > 0)):
        raise ValueError(f"step: h must be a positive, finite number of seconds; got {h}")
    dtype = model.gravity.dtype
    for name, value, shape in (("q", state.q, (model.nq,)), ("v", state.v, (model.nv,))):
        if value.shape != shape:
            raise ValueError(
                f"step: state.{name} has shape {value.shape}, this model needs {shape}; "
                "pass the state that the model's own scene.build returned (batches go through vmap or rollout_batch)"
            )
        if value.dtype != dtype:
            raise ValueError(
                f"step: state.{name} is {value.dtype} but the model is {dtype}; build both with scene.build(dtype=...)"
            )
    if control is not None:
        shape = (4, 3, 6, model.n_dynamic)
        if control.loads.shape != shape:
            raise ValueError(
                f"step: control.loads has shape {control.loads.shape}, this model needs {shape}; "
                "make it with Control.zeros(model) (a sequence of controls goes to rollout)"
            )
        if control.loads.dtype != dtype:
            raise ValueError(
                f"step: control is {control.loads.dtype} but the model is {dtype}; use Control.zeros(model)"
            )


@jax.jit
def _jitted_step(model, state, control, h, params):
    return advance(model, state, control, h, params)


def advance(
    model: Model, state: State, control: Control | None, h: Float[Array, ""], params: SolverParams
) -> tuple[State, StepReport]:
    """`step` without its checks, for compiled code."""
    if model.n_dynamic == 0:
        return _advance_statics(model, state, control, h, params)
    problem, finite = stage_problem(model, state, control, h, params.contact_options)
    displacement, outcome = solve_stage(problem, params.newton_settings(state.q.dtype), params.force_single_island)
    outcome = outcome._replace(status=jnp.where(finite, outcome.status, Status.DIVERGED))
    after = _advanced_state(state, control, h, problem.position, problem.rotation, displacement, outcome)
    overflow = problem.near.overflow | left_out_may_touch(*jax.lax.stop_gradient((problem, displacement)))
    return after, _report(state, after, control, h, params, outcome, overflow[0])


def _advanced_state(
    state: State,
    control: Control | None,
    h: Float[Array, ""],
    position: Vec3,
    rotation: Quaternion,
    displacement: Displacement,
    outcome: StageOutcome,
) -> State:
    angular, symmetric = rotational_velocity(displacement.turn, h)
    q = jnp.concatenate([(position + displacement.linear).stack(), (displacement.turn @ rotation).normalized().stack()])
    v = jnp.concatenate([(displacement.linear * (1.0 / h)).stack(), angular.stack()])
    lost = outcome.status == Status.DIVERGED
    # A lost body is back where it was, at rest; no gradient passes it.
    q = jnp.where(lost[None], jax.lax.stop_gradient(body_columns(state.q[:, None], 7)), q)
    v = jnp.where(lost[None], 0.0, v)
    rate = jnp.where(lost[None], 0.0, symmetric.upper())[..., 0]
    statics = _moved_statics(state, control, h)
    return State(
        q=flat_rows(q)[:, 0],
        v=flat_rows(v)[:, 0],
        symmetric_rate=rate,
        history=jnp.where(lost[:, 0], 0, state.history + 1),
        static_position=statics[0],
        static_quaternion=statics[1],
        static_position_before=statics[0],
        static_quaternion_before=statics[1],
        step_count=state.step_count + 1,
        time=state.time + h,
    )


def _moved_statics(state: State, control: Control | None, h) -> tuple[Array, Array]:
    """Poses of the static bodies at the step's end."""
    if control is None:
        return state.static_position, state.static_quaternion
    turn = exp(Vec3.of(control.static_velocity[3:]) * h)
    return (
        state.static_position + control.static_velocity[:3] * h,
        (turn @ Quaternion.of(state.static_quaternion)).normalized().stack(),
    )


def _report(
    before: State,
    after: State,
    control: Control | None,
    h,
    params: SolverParams,
    outcome: StageOutcome,
    overflow: Array,
) -> StepReport:
    status, reason, iterations, norm = (x[:, 0] for x in outcome)
    # Order of badness: NONE < CONVERGED < STOPPED < DIVERGED, as the numbers are.
    stage = StageInputs(before, after, control, h, status != Status.DIVERGED, params.contact_options)
    return StepReport(
        status=jnp.max(status, initial=0),
        iterations=jnp.max(iterations, initial=0),
        residual_norm=jnp.sqrt(jnp.sum(norm * norm)),
        body_status=status,
        body_reason=reason,
        body_iterations=iterations,
        body_residual_norm=norm,
        overflow=overflow,
        stage=stage,
        preset=params.preset,
    )


def _advance_statics(model, state, control, h, params) -> tuple[State, StepReport]:
    """A world without free bodies: time passes and static bodies move; nothing is solved."""
    statics = _moved_statics(state, control, h)
    after = eqx.tree_at(
        lambda s: (
            s.static_position,
            s.static_quaternion,
            s.static_position_before,
            s.static_quaternion_before,
            s.step_count,
            s.time,
        ),
        state,
        (*statics, *statics, state.step_count + 1, state.time + h),
    )
    none = jnp.zeros((0, 1), jnp.int32)
    outcome = StageOutcome(none, none, none, jnp.zeros((0, 1), h.dtype))
    return after, _report(state, after, control, h, params, outcome, jnp.array(False))
