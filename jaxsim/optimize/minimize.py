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

from .loss import as_variables, shared_value_and_grad
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
        loss: a scalar, or (scalar, aux) with `has_aux`. Compiled once; the same loss and optimiser objects are not
            compiled again in a later call.
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
    trip = functools.partial(_trip, _hashable(loss), optax.with_extra_args_support(optimizer), has_aux)
    value = jnp.zeros((), jnp.result_type(*jax.tree.leaves(variables)))
    point = _Point(variables, optimizer.init(variables), value, jax.tree.map(jnp.zeros_like, variables))
    point = jax.tree.map(_settled, point)

    losses: list[float] = []
    norms: list[float] = []
    best, best_aux, final, unchanged = variables, None, variables, 0
    reason = EndReason.STEPS
    with progress_display(steps, progress) as show:
        for iteration in range(int(steps) + 1):
            point, norm, aux, moved = trip(point, lower, upper, jnp.array(iteration == 0))
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


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _trip(loss, optimizer, has_aux, point: _Point, lower, upper, first: Bool[Array, ""]):
    """Update, clip, evaluate. The first trip only clips and evaluates, so that the loss is compiled once."""
    value_and_grad, value_fn = shared_value_and_grad(loss, has_aux)

    def update(point: _Point):
        updates, memory = optimizer.update(
            point.grad, point.memory, point.variables, value=point.value, grad=point.grad, value_fn=value_fn
        )
        variables = optax.apply_updates(point.variables, updates)
        return jax.tree.map(
            lambda new, old: new.astype(old.dtype), (variables, memory), (point.variables, point.memory)
        )

    variables, memory = lax.cond(first, lambda p: (p.variables, p.memory), update, point)
    variables = jax.tree.map(jnp.clip, variables, lower, upper)
    moved = [jnp.any(a != b) for a, b in zip(jax.tree.leaves(variables), jax.tree.leaves(point.variables))]
    (value, aux), grad = value_and_grad(variables)
    # Finite entries may have a square that overflows, and then the norm counts as not finite: nothing can be done.
    norm = optax.tree.norm(grad)
    return _Point(variables, memory, value.astype(point.value.dtype), grad), norm, aux, jnp.any(jnp.stack(moved))


def _settled(x: Any) -> Array:
    """An array of definite dtype: one that is weakly typed at the start would be compiled for twice."""
    x = jnp.asarray(x)
    return lax.convert_element_type(x, x.dtype)


def _hashable(loss: Callable) -> Callable:
    try:
        hash(loss)
    except TypeError:
        return lambda variables: loss(variables)
    return loss


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
