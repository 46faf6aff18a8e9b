"""Solve one stage: forward by Newton without any gradient, then the gradient of the solution."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jaxtyping import Array, Float, Int

from ..dynamics.linear import newton_direction, solve_exactly
from ..dynamics.problem import Displacement, StageProblem, identity_displacement, move, weights
from ..dynamics.residual import assemble, prepare, residual, slope
from ..math.vector import dot
from ..math.worlds import merge_worlds, split_worlds
from ..solve import newton
from ..solve.implicit import implicit_zero
from ..solve.newton import NewtonSettings
from ..solve.results import Status

# Worlds per solve on CPU: one chunk's arrays stay in cache, and its loop ends with its own slowest world.
LANES_PER_CHUNK = 64


class StageOutcome(NamedTuple):
    """How each body's solve ended: arrays (bodies, worlds)."""

    status: Int[Array, "nb w"]
    reason: Int[Array, "nb w"]
    iterations: Int[Array, "nb w"]
    residual_norm: Float[Array, "nb w"]


def solve_stage(
    problem: StageProblem, settings: NewtonSettings, force_single_island: bool = False
) -> tuple[Displacement, StageOutcome]:
    """Displacement that solves a stage, differentiable in everything that the problem holds.

    Where a body's solve diverged the displacement is zero. `force_single_island` lets all bodies of a world converge
    together, as if they touched.
    """
    islands = problem.near.islands
    if force_single_island and islands is not None:
        problem = eqx.tree_at(lambda p: p.near.islands.label, problem, jnp.zeros_like(islands.label))
    found, outcome = lax.stop_gradient(_forward(lax.stop_gradient(problem), lax.stop_gradient(settings)))
    # Reverse mode keeps these per step instead of solving the step again: the status is the mask of lost bodies.
    found, status = jax.tree.map(lambda x: checkpoint_name(x, "solution"), (found, outcome.status))
    outcome = outcome._replace(status=status)
    z = jnp.zeros((6, *outcome.status.shape), problem.h.dtype)
    z = implicit_zero(residual, lambda z, at, b: solve_exactly(slope(z, at), b), z, (found, problem))
    return move(found, z), outcome


@jax.custom_batching.custom_vmap
def _forward(problem: StageProblem, settings: NewtonSettings) -> tuple[Displacement, StageOutcome]:
    """The forward solve, with all worlds on the last axis. It has no derivative."""
    stage = prepare(problem)

    def size(displacement: Displacement) -> Float[Array, "nb w"]:
        position = problem.position + displacement.linear
        # The chord of the turn stands for its angle: this only has to scale a step tolerance.
        return jnp.sqrt(dot(position, position) + 4 * dot(displacement.turn.v, displacement.turn.v))

    solution = newton.solve(
        lambda x, fitted: assemble(stage, x, fitted),
        lambda system, r, going: newton_direction(system, r, problem.near.islands, going),
        move,
        identity_displacement(problem),
        weights(problem),
        size,
        settings,
        problem.near.islands,
    )
    lost = solution.status == Status.DIVERGED
    rest = identity_displacement(problem)
    found = jax.tree.map(lambda x, r: jnp.where(lost[(None,) * (x.ndim - 2)], r, x), solution.x, rest)
    return found, StageOutcome(solution.status, solution.reason, solution.iterations, solution.residual_norm)


@_forward.def_vmap
def _(axis_size, in_batched, problem, settings):
    """Worlds that `vmap` adds go to the last axis, where the kernels want them, and are solved in chunks."""
    problem_batched, settings_batched = in_batched
    width = problem.position.array.shape[-1]
    merged = jax.tree.map(lambda x, batched: merge_worlds(x, batched, axis_size, width), problem, problem_batched)
    # The loop takes its shape from the positions, so they are given in full even where no world varies them.
    full = jax.tree.map(lambda x: jnp.broadcast_to(x, (*x.shape[:-1], width * axis_size)), merged.position)
    merged = eqx.tree_at(lambda p: p.position, merged, full)
    if any(jax.tree.leaves(settings_batched)):
        raise ValueError("SolverParams cannot be batched by vmap: give every world the same settings")
    found, outcome = _in_chunks(merged, settings, width * axis_size)
    out = jax.tree.map(lambda x: split_worlds(x, axis_size), (found, outcome))
    return out, jax.tree.map(lambda _: True, out)


def _in_chunks(problem: StageProblem, settings: NewtonSettings, n: int):
    if n <= LANES_PER_CHUNK or jax.default_backend() != "cpu":
        return _forward(problem, settings)
    chunks = -(-n // LANES_PER_CHUNK)
    padding = chunks * LANES_PER_CHUNK - n
    varying, common = eqx.partition(problem, jax.tree.map(lambda x: x.shape[-1] > 1, problem))

    def split(x):
        # The last world again: a padded lane then takes no longer than a real one.
        x = jnp.concatenate([x, jnp.repeat(x[..., -1:], padding, axis=-1)], axis=-1)
        return jnp.moveaxis(x.reshape(*x.shape[:-1], chunks, LANES_PER_CHUNK), -2, 0)

    found, outcome = lax.map(lambda part: _forward(eqx.combine(part, common), settings), jax.tree.map(split, varying))

    def join(x):
        x = jnp.moveaxis(x, 0, -2)
        return x.reshape(*x.shape[:-2], -1)[..., :n]

    return jax.tree.map(join, (found, outcome))
