"""Minimise a loss over any pytree with an optax optimiser."""

import dataclasses
import enum
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, Bool, Float, PyTree

from .loss import as_variables, evaluate, hashable, shared_value_and_grad
from .progress import progress_display

UNCHANGED_ITERATIONS = 5  # so many in a row that change no variable end the search


class EndReason(enum.Enum):
    """Why an optimisation ended."""

    STEPS = "all steps were taken"
    TOLERANCE = "the loss reached the tolerance"
    CALLBACK = "the callback asked to stop"
    UNCHANGED = "the variables no longer change: the gradient is zero, or the line search finds no better point"
    NONFINITE = "the loss or its gradient was not finite; the last good variables are kept"


class Iterate(NamedTuple):
    """What a callback is told."""

    iteration: int  # 0 is the start
    variables: Any
    loss: float
    gradient_norm: float
    aux: Any  # None unless the loss has_aux


@dataclasses.dataclass(frozen=True)
class Optimized:
    """Outcome of an optimisation. Histories have one entry per good iterate, the start first."""

    best: Any  # variables with the lowest loss
    final: Any  # variables of the last good iterate
    losses: Float[np.ndarray, "iterations_1"]
    gradient_norms: Float[np.ndarray, "iterations_1"]
    iterations: int
    reason: EndReason
    aux: Any  # beside the loss at `best`; None unless the loss has_aux

    @property
    def best_loss(self) -> float:
        """The lowest loss; NaN when even the start was not finite."""
        return float(self.losses.min()) if self.losses.size else math.nan

    def __str__(self) -> str:
        if not self.losses.size:
            return f"optimize: no iteration: {self.reason.value}"
        return (
            f"optimize: loss {self.losses[0]:.4g} -> {self.best_loss:.4g} in {self.iterations} iterations, "
            f"gradient norm {self.gradient_norms[-1]:.3g}: {self.reason.value}"
        )


def optimize(
    loss: Callable[[Any], Any],
    variables: PyTree,
    optimizer: optax.GradientTransformation,
    steps: int,
    *,
    progress: bool = True,
    callback: Callable[[Iterate], Any] | None = None,
    tolerance: float | None = None,
    bounds: tuple[PyTree, PyTree] | None = None,
    has_aux: bool = False,
) -> Optimized:
    """Minimise `loss(variables)`.

    Args:
        loss: a scalar, or (scalar, aux) with `has_aux`. Compiled once: a later call with the same function object,
            of `gradient_check` too, uses it again (line searches are compiled together with their loss).
        variables: the start, a pytree of floating-point arrays or numbers.
        optimizer: any of optax, such as `optax.adam(0.1)`; `optax.lbfgs()` with its line search too.
        steps: iterations at most. One of L-BFGS evaluates the loss several times.
        progress: a bar on stderr, by tqdm if it is there, else a few lines of text.
        callback: called with every good `Iterate`; a true value stops.
        tolerance: stop once the loss is at most this.
        bounds: (lower, upper), each shaped as `variables` or a prefix of it (one number bounds all); the variables
            are clipped to them at the start and after every update. L-BFGS knows nothing of the clipping: where many
            bounds are active take a first-order optimiser.

    Returns:
        Best and last variables and the histories. A loss or gradient that is not finite ends the search with
        `EndReason.NONFINITE` and is not recorded.

    Raises:
        ValueError: negative `steps`, a variable that is not floating-point, a loss that is not a scalar, bounds that
            do not fit or contradict each other.
    """
    if steps != int(steps) or steps < 0:
        raise ValueError(f"optimize: steps must be a whole number >= 0; got {steps}")
    variables = as_variables("optimize", variables)
    lower, upper = _bounds_like(variables, bounds)
    loss = hashable(loss)
    value = jnp.zeros((), jnp.result_type(*jax.tree.leaves(variables)))
    point = _Point(variables, optimizer.init(variables), value, jax.tree.map(jnp.zeros_like, variables))
    point = jax.tree.map(_settled, point)
    trip = functools.partial(_line_search_trip if _searches(optimizer, point) else _trip, loss, optimizer, has_aux)

    losses: list[float] = []
    norms: list[float] = []
    best, best_aux, final, unchanged = variables, None, variables, 0
    reason = EndReason.STEPS
    with progress_display(steps, progress) as show:
        for iteration in range(int(steps) + 1):
            point, norm, aux, moved = trip(point, lower, upper, iteration == 0)
            value, norm = float(point.value), float(norm)
            if not (math.isfinite(value) and math.isfinite(norm)):
                reason = EndReason.NONFINITE
                break
            if not losses or value < min(losses):
                best, best_aux = point.variables, aux
            losses.append(value)
            norms.append(norm)
            final = point.variables
            show(iteration, value, norm)
            unchanged = 0 if iteration == 0 or moved else unchanged + 1
            if callback is not None and callback(Iterate(iteration, final, value, norm, aux)):
                reason = EndReason.CALLBACK
            elif tolerance is not None and value <= tolerance:
                reason = EndReason.TOLERANCE
            elif unchanged == UNCHANGED_ITERATIONS:
                reason = EndReason.UNCHANGED
            else:
                continue
            break
    return Optimized(best, final, np.array(losses), np.array(norms), max(len(losses) - 1, 0), reason, best_aux)


class _Point(NamedTuple):
    """Carry of the iteration."""

    variables: Any
    memory: Any  # of the optimiser
    value: Float[Array, ""]
    grad: Any


def _trip(loss, optimizer, has_aux: bool, point: _Point, lower, upper, first: bool):
    """Update, clip, evaluate; the first trip leaves out the update."""
    variables, memory, moved = _clipped(point, lower, upper) if first else _update(optimizer, point, lower, upper)
    ((value, aux), grad), norm = evaluate(loss, has_aux, variables)
    return _Point(variables, memory, value.astype(point.value.dtype), grad), norm, aux, moved


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _line_search_trip(loss, optimizer, has_aux: bool, point: _Point, lower, upper, first: Bool[Array, ""]):
    """`_trip` for an optimiser that evaluates the loss itself, all in one, so that the loss is compiled once."""
    value_and_grad, value_fn = shared_value_and_grad(loss, has_aux)
    variables, memory, moved = lax.cond(
        first,
        lambda p: _clipped(p, lower, upper),
        lambda p: _update(optimizer, p, lower, upper, value_fn),
        point,
    )
    ((value, aux), grad), norm = value_and_grad(variables)
    return _Point(variables, memory, value.astype(point.value.dtype), grad), norm, aux, moved


@functools.partial(jax.jit, static_argnums=(0, 4))
def _update(optimizer, point: _Point, lower, upper, value_fn=None):
    given = {} if value_fn is None else {"value_fn": value_fn}
    updates, memory = optax.with_extra_args_support(optimizer).update(
        point.grad, point.memory, point.variables, value=point.value, grad=point.grad, **given
    )
    variables = optax.apply_updates(point.variables, updates)
    variables, memory = jax.tree.map(lambda new, old: new.astype(old.dtype), (variables, memory), point[:2])
    variables, memory, _ = _clipped(point._replace(variables=variables, memory=memory), lower, upper)
    moved = [jnp.any(a != b) for a, b in zip(jax.tree.leaves(variables), jax.tree.leaves(point.variables))]
    return variables, memory, jnp.any(jnp.stack(moved))


def _clipped(point: _Point, lower, upper):
    return jax.tree.map(jnp.clip, point.variables, lower, upper), point.memory, jnp.array(True)


def _searches(optimizer: optax.GradientTransformation, point: _Point) -> bool:
    """Whether the optimiser evaluates the loss itself, found out by handing it a constant one."""
    asked = []

    def probe(variables):
        asked.append(True)
        return jnp.zeros_like(point.value)

    update = optax.with_extra_args_support(optimizer).update
    jax.eval_shape(lambda p: update(p.grad, p.memory, p.variables, value=p.value, grad=p.grad, value_fn=probe), point)
    return bool(asked)


def _settled(x: Any) -> Array:
    """An array of definite dtype: one that is weakly typed at the start would be compiled for twice."""
    x = jnp.asarray(x)
    return lax.convert_element_type(x, x.dtype)


def _bounds_like(variables: PyTree, bounds: tuple[PyTree, PyTree] | None) -> tuple[PyTree, PyTree]:
    """Lower and upper bounds with the structure, shapes and dtypes of the variables."""
    sides = []
    for name, side, free in zip(("lower", "upper"), bounds or (None, None), (-jnp.inf, jnp.inf)):
        side = free if side is None else side
        try:
            side = jax.tree.broadcast(side, variables)
            sides.append(jax.tree.map(lambda b, x: jnp.broadcast_to(jnp.asarray(b, x.dtype), x.shape), side, variables))
        except ValueError as e:
            raise ValueError(
                f"optimize: {name} bounds must have the structure and shapes of the variables, or be one number; {e}"
            ) from None
    for (path, low), high in zip(jax.tree_util.tree_leaves_with_path(sides[0]), jax.tree.leaves(sides[1])):
        if not np.all(np.asarray(low) <= np.asarray(high)):
            where = jax.tree_util.keystr(path)
            raise ValueError(
                f"optimize: bounds of variables{where}: lower {low} must not exceed upper {high}; swap them"
            )
    return sides[0], sides[1]
