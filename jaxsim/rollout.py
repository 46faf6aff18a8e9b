"""Many steps, and many worlds."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, PRNGKeyArray

from .integrate.params import SolverParams
from .model.control import Control
from .model.model import Model
from .model.state import State
from .step import advance, check_step_inputs
from .trajectory import Trajectory

Policy = Callable[[State, Float[Array, ""], PRNGKeyArray], Control]
Observer = Callable[[Model, State, Any], Any]


def rollout(
    model: Model,
    state: State,
    controls: Control | Policy | None,
    h: float | Float[Array, ""],
    params: SolverParams | None = None,
    *,
    steps: int,
    substeps: int = 1,
    observe: Observer | None = None,
    key: PRNGKeyArray | None = None,
) -> tuple[State, Trajectory]:
    """Advance one world by `steps` steps of `h` seconds.

    Args:
        controls: None; a `Control` with a leading axis, each entry held for `substeps` steps; or a pure function
            `policy(state, t, key) -> Control`, asked at the first of every `substeps` steps.
        steps: physics steps in all, a multiple of `substeps`; zero is allowed.
        observe: `observe(model, state, report) -> pytree` recorded instead of the states. For the start it sees the
            report of no step: all zeros, contact forces invalid.
        key: for the policy; split once per call of it.

    Returns:
        The final state and the record. Reverse mode stores one state, displacement and status per step, no iterates.

    Raises:
        ValueError: arguments that do not fit the model or each other.
    """
    params = SolverParams() if params is None else params
    check_step_inputs(model, state, None, h)
    _check_counts(controls, steps, substeps)
    h = jnp.asarray(h, model.gravity.dtype)
    key = jax.random.key(0) if key is None else key
    return _recorded(model, state, controls, h, params, key, int(steps), int(substeps), observe)


@functools.partial(jax.jit, static_argnames=("steps", "substeps", "observe", "policy"))
def _scan(model, state, controls, h, params, key, steps, substeps, observe, policy):
    # Reverse mode keeps the converged solution of a step and recomputes the rest: it never solves again.
    @functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.save_only_these_names("solution"))
    def one(model, state, control, h, params):
        after, report = advance(model, state, control, h, params)
        summary = eqx.tree_at(lambda r: r.stage, report, None)
        return after, (after if observe is None else observe(model, after, report), summary)

    def held(carry, control):
        state, key = carry
        if policy is not None:
            key, sub = jax.random.split(key)
            control = policy(state, state.time, sub)
        state, record = lax.scan(lambda s, _: one(model, s, control, h, params), state, None, length=substeps)
        return (state, key), (record, control)

    (final, _), (record, controls) = lax.scan(held, (state, key), controls, length=steps // substeps)
    rows, summaries = jax.tree.map(lambda x: x.reshape(steps, *x.shape[2:]), record)
    first = state if observe is None else observe(model, state, _no_report(model, state, controls, h, params))
    rows = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, rows)
    return final, rows, summaries, controls


def _no_report(model, state, controls, h, params):
    """The report of no step: zeros and NONE, at the start state."""
    control = jax.tree.map(lambda x: x[0] if x.shape[0] else jnp.zeros(x.shape[1:], x.dtype), controls)
    blank = jax.eval_shape(lambda: advance(model, state, control, h, params)[1])
    report = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), blank)
    return eqx.tree_at(lambda r: (r.stage.before, r.stage.after, r.stage.h), report, (state, state, h))


def _recorded(model, state, controls, h, params, key, steps, substeps, observe) -> tuple[State, Trajectory]:
    policy = None if controls is None or isinstance(controls, Control) else controls
    given = controls if policy is None else None
    final, rows, summaries, controls = _scan(model, state, given, h, params, key, steps, substeps, observe, policy)
    options = params.contact_options
    return final, Trajectory(model, rows, summaries, controls, h, substeps, observe is not None, options)


def rollout_batch(
    model: Model,
    states: State,
    controls: Control | Policy | None,
    h: float | Float[Array, ""],
    params: SolverParams | None = None,
    *,
    steps: int,
    substeps: int = 1,
    observe: Observer | None = None,
    key: PRNGKeyArray | None = None,
    model_axes: Any = None,
    chunk: int | None = None,
    devices: Sequence[Any] | None = None,
) -> tuple[State, Trajectory]:
    """`rollout` of many worlds: states (and a `Control`) carry a leading world axis.

    Args:
        model_axes: `vmap` axes of the model (a prefix tree: 0 where a leaf carries a world axis, None where not);
            None when the worlds share one model.
        chunk: worlds that run together from start to end, one chunk after the other; all when None. It bounds memory.
        devices: devices over which the worlds are spread evenly; the default device when None.

    Returns:
        Final states and the record, world axis first. A world's result does not depend on the others.

    Raises:
        ValueError: as `rollout`, or a number of worlds that `devices` does not divide.
    """
    params = SolverParams() if params is None else params
    n = states.q.shape[0]
    varying, common = _split_model(model, model_axes)
    first = jax.tree.map(lambda x: x[0], (varying, states))
    check_step_inputs(eqx.combine(first[0], common), first[1], None, h)
    given = controls if isinstance(controls, Control) else None
    _check_counts(controls if given is None else jax.tree.map(lambda x: x[0], given), steps, substeps)
    h = jnp.asarray(h, model.gravity.dtype)
    keys = jax.random.split(jax.random.key(0) if key is None else key, n)
    worlds = (varying, states, given, keys)
    if devices is not None:
        if n % len(devices):
            raise ValueError(f"rollout_batch: {n} worlds do not spread evenly over {len(devices)} devices")
        mesh = jax.sharding.Mesh(np.asarray(devices), ("world",))
        worlds = jax.device_put(worlds, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("world")))
    policy = None if controls is None or given is not None else controls
    final, rows, summaries, recorded = _scan_worlds(
        common, worlds, h, params, int(steps), int(substeps), observe, policy, chunk
    )
    h = jnp.broadcast_to(h, (n,))
    options = params.contact_options
    return final, Trajectory(model, rows, summaries, recorded, h, int(substeps), observe is not None, options)


@functools.partial(jax.jit, static_argnames=("steps", "substeps", "observe", "policy", "chunk"))
def _scan_worlds(common, worlds, h, params, steps, substeps, observe, policy, chunk):
    def one(world):
        varying, state, controls, key = world
        model = eqx.combine(varying, common)
        return _scan(model, state, controls, h, params, key, steps, substeps, observe, policy)

    return jax.vmap(one)(worlds) if chunk is None else lax.map(one, worlds, batch_size=chunk)


def _split_model(model: Model, axes: Any) -> tuple[Model, Model]:
    """The leaves that differ from world to world (leading axis), and those that all share."""
    spec = jax.tree.broadcast(axes, model, is_leaf=lambda x: x is None)
    return eqx.partition(model, jax.tree.map(lambda a: a == 0, spec, is_leaf=lambda x: x is None))


def _check_counts(controls, steps: int, substeps: int) -> None:
    if steps != int(steps) or steps < 0:
        raise ValueError(f"rollout: steps must be a whole number >= 0; got {steps}")
    if substeps != int(substeps) or substeps < 1 or steps % substeps:
        raise ValueError(f"rollout: steps={steps} must be a multiple of substeps={substeps}, a whole number >= 1")
    if isinstance(controls, Control) and (controls.loads.ndim, controls.loads.shape[0]) != (5, steps // substeps):
        raise ValueError(
            f"rollout: controls must have a leading axis of steps / substeps = {steps // substeps}; "
            f"control.loads has shape {controls.loads.shape}"
        )
