"""Newton's method with line search for many independent systems in one loop.

Every lane (body, world) carries its own solve: step length, iteration count and outcome; bodies of one island carry the
same, as they are solved together. The line search is part of the same loop, as a state machine with one assembly per
trip, so that a lane which backtracks does not make the others assemble twice. A lane that is done is frozen: its result
does not depend on its neighbours.
"""

import enum
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .islands import Islands
from .results import Status, StopReason

Lane = Float[Array, "n w"]


class ConvergenceMode(enum.Enum):
    """What is compared with the tolerance."""

    PER_ACTOR_WEIGHTED = "per_actor_weighted"  # each actor's residual as a share of its weight
    GLOBAL = "global"  # plain 2-norm of the residual


class LineSearchType(enum.Enum):
    """When a shortened step is accepted."""

    NONE = "none"
    RESIDUAL_NORM = "residual_norm"  # when the plain norm of the residual does not grow


class NewtonSettings(eqx.Module):
    """Numbers are leaves, choices are static."""

    abs_tol: Float[Array, ""]
    rel_tol: Float[Array, ""]
    rel_step_tol: Float[Array, ""]
    abs_div_tol: Float[Array, ""]
    rel_div_tol: Float[Array, ""]
    max_iter: Int[Array, ""]
    line_search_alpha: Float[Array, ""]
    line_search_max_iter: Int[Array, ""]
    line_search_type: LineSearchType = eqx.field(static=True)
    convergence_mode: ConvergenceMode = eqx.field(static=True)
    start_fitted: bool = eqx.field(static=True)
    stop_if_no_improvement: bool = eqx.field(static=True)


class Solution(NamedTuple):
    """Outcome per lane."""

    x: Any
    status: Int[Array, "n w"]
    reason: Int[Array, "n w"]
    iterations: Int[Array, "n w"]
    residual_norm: Lane  # in the measure of the convergence mode


class _Carry(NamedTuple):
    x: Any  # last accepted iterate
    direction: Float[Array, "k n w"]
    alpha: Lane
    halvings: Int[Array, "n w"]
    fitted: Bool[Array, "n w"]
    raw: Lane  # norm at x
    first_raw: Lane
    first_error: Lane
    error: Lane
    iterations: Int[Array, "n w"]
    status: Int[Array, "n w"]
    reason: Int[Array, "n w"]
    started: Bool[Array, ""]


def solve(
    assemble: Callable[[Any, Bool[Array, "n w"]], tuple[Float[Array, "k n w"], Any]],
    direction: Callable[[Any, Float[Array, "k n w"], Bool[Array, "n w"]], Float[Array, "k n w"]],
    move: Callable[[Any, Float[Array, "k n w"]], Any],
    x0: Any,
    weights: Float[Array, "k n w"],
    size: Callable[[Any], Lane],
    settings: NewtonSettings,
    islands: Islands | None = None,
) -> Solution:
    """Solve r(x) = 0 lane by lane.

    Args:
        assemble: residual and matrix at an iterate; the flags ask, per lane, for the stiffer fitted matrix.
        direction: solution d of matrix d = r, in the lanes that go on.
        move: the iterate displaced by an increment.
        weights: scale of each residual row in the weighted measure.
        size: 2-norm of the configuration of an iterate, for the step tolerance.
        islands: lanes that are solved together; each lane on its own when None.

    After a line search that finds nothing, a lane whose matrix was not fitted reassembles it fitted at the same point
    and tries again; after that it stops at its best iterate, or, without `stop_if_no_improvement`, takes the shortest
    step all the same. Order of the tests at an accepted iterate: divergence, residual, iteration limit, small step.
    Source: SuperDex Physics 1.0.1, `newton_solver.cpp`.
    """
    zero = jnp.zeros_like(weights[0])
    count = jnp.zeros(zero.shape, jnp.int32)
    searching = settings.line_search_type is LineSearchType.RESIDUAL_NORM

    def norm(x: Float[Array, "k n w"]) -> Lane:
        square = jnp.sum(x * x, axis=0)
        return jnp.sqrt(square if islands is None else islands.sum(square))

    def measure(r):
        raw = norm(r)
        if settings.convergence_mode is ConvergenceMode.GLOBAL:
            return raw, raw
        scaled = r * weights
        each = jnp.sqrt(jnp.sum(scaled * scaled, axis=0))
        # Every actor has to pass by itself.
        return raw, each if islands is None else islands.max(each)

    def trip(c: _Carry) -> _Carry:
        running = c.status == Status.NONE
        trial = move(c.x, c.direction * -c.alpha[None])
        r, matrix = assemble(trial, c.fitted)
        raw, error = measure(r)
        first = ~c.started
        reassembled = c.alpha == 0  # the fitted matrix at the same point
        exhausted = c.halvings >= settings.line_search_max_iter
        improved = (raw <= c.raw) | reassembled | (not searching)
        nothing_found = running & ~improved & exhausted & c.fitted
        stalled = nothing_found & settings.stop_if_no_improvement
        accept = running & (improved | nothing_found) & ~stalled
        retry = running & ~improved & exhausted & ~c.fitted
        shorten = running & ~improved & ~exhausted

        iterations = c.iterations + (accept & ~reassembled).astype(jnp.int32)
        first_raw = jnp.where(first, raw, c.first_raw)
        first_error = jnp.where(first, error, c.first_error)
        lost = ~jnp.isfinite(raw)
        grown = (iterations > 0) & ((raw > settings.rel_div_tol * first_raw) | (raw > settings.abs_div_tol))
        converged = (error <= settings.abs_tol) | ((iterations > 0) & (error <= settings.rel_tol * first_error))
        small = (iterations > 0) & ~reassembled & (norm(c.direction) <= settings.rel_step_tol * norm(size(trial)[None]))
        reason = jnp.select(
            [lost, grown, converged, iterations >= settings.max_iter, small],
            [StopReason.NONFINITE, StopReason.GROWTH, StopReason.RESIDUAL, StopReason.MAX_ITERATIONS]
            + [StopReason.SMALL_STEP],
            StopReason.NONE,
        ).astype(jnp.int32)
        status = jnp.select(
            [lost | grown, converged, reason != StopReason.NONE],
            [Status.DIVERGED, Status.CONVERGED, Status.STOPPED],
            Status.NONE,
        ).astype(jnp.int32)

        def keep(new, old, where=accept):
            return jax.tree.map(lambda a, b: jnp.where(where[(None,) * (a.ndim - 2)], a, b), new, old)

        going = accept & (status == Status.NONE)
        alpha = jnp.where(shorten, c.alpha * settings.line_search_alpha, jnp.where(retry, 0.0, c.alpha))
        return _Carry(
            # A lost lane stays where it was: its own trips must remain finite, or they would spoil what it touches.
            x=keep(trial, c.x, accept & ~lost),
            direction=keep(direction(matrix, r, going), c.direction, going),
            alpha=jnp.where(accept, jnp.where(going, 1.0, 0.0), alpha),
            halvings=jnp.where(accept | retry, 0, c.halvings + shorten),
            # A fitted matrix serves the search it was made for; the next iterate starts afresh.
            fitted=jnp.where(retry, True, jnp.where(accept & ~reassembled, settings.start_fitted, c.fitted)),
            raw=keep(raw, c.raw),
            first_raw=first_raw,
            first_error=first_error,
            error=keep(error, c.error),
            iterations=jnp.where(running, iterations, c.iterations),
            status=jnp.where(stalled, Status.STOPPED, keep(status, c.status)).astype(jnp.int32),
            reason=jnp.where(stalled, StopReason.NO_IMPROVEMENT, keep(reason, c.reason)).astype(jnp.int32),
            started=jnp.array(True),
        )

    # The first trip evaluates the start: a step of length zero, accepted whatever its residual.
    start = _Carry(
        x=x0,
        direction=jnp.zeros_like(weights),
        alpha=zero,
        halvings=count,
        fitted=jnp.full(zero.shape, settings.start_fitted),
        raw=jnp.full_like(zero, jnp.inf),
        first_raw=zero,
        first_error=zero,
        error=zero,
        iterations=count,
        status=count,
        reason=count,
        started=jnp.array(False),
    )
    end = lax.while_loop(lambda c: jnp.any(c.status == Status.NONE), trip, start)
    return Solution(end.x, end.status, end.reason, end.iterations, end.error)
