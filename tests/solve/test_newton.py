"""Newton's method on small algebraic problems, and how it says what became of each."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.solve import newton
from jaxsim.solve.newton import ConvergenceMode, LineSearchType, NewtonSettings
from jaxsim.solve.results import Status, StopReason


def settings(**changes) -> NewtonSettings:
    values = {
        "abs_tol": 1e-12,
        "rel_tol": 0.0,
        "rel_step_tol": 0.0,
        "abs_div_tol": 1e9,
        "rel_div_tol": 1e4,
        "max_iter": 50,
        "line_search_alpha": 0.5,
        "line_search_max_iter": 20,
    } | changes
    counts = {"max_iter", "line_search_max_iter"}
    choices = {"line_search_type": LineSearchType.RESIDUAL_NORM, "convergence_mode": ConvergenceMode.GLOBAL}
    choices |= {"start_fitted": False, "stop_if_no_improvement": False}
    for name in choices.keys() & values.keys():
        choices[name] = values.pop(name)
    return NewtonSettings(**{k: jnp.asarray(v, int if k in counts else float) for k, v in values.items()}, **choices)


def solve(residual, x0, settings, slope=None, weights=None):
    """One unknown per lane; the lanes are the worlds of one body."""

    def assemble(x, fitted):
        r = residual(x)
        if slope is None:
            return r, jax.jvp(residual, (x,), (jnp.ones_like(x),))[1]
        return r, slope(x, fitted)

    x0 = jnp.asarray(x0, float)[None, None]
    weights = jnp.ones_like(x0) if weights is None else jnp.asarray(weights, float)[None, None]

    @jax.jit
    def run(x0, settings):
        return newton.solve(
            assemble, lambda m, r, going: r / m, lambda x, dx: x + dx, x0, weights, lambda x: jnp.abs(x[0]), settings
        )

    found = run(x0, settings)
    return newton.Solution(*(np.asarray(v).reshape(-1) for v in found))


def plain_newton(f, df, x, tol):
    count = 0
    while abs(f(x)) > tol:
        x, count = x - f(x) / df(x), count + 1
    return x, count


def test_converges_as_newton_does():
    c = np.array([8.0, 27.0, 1e3])
    found = solve(lambda x: x**3 - c[None, None], [3.0, 4.0, 11.0], settings(abs_tol=1e-9))
    np.testing.assert_allclose(found.x, np.cbrt(c), rtol=1e-12)
    assert (found.status == Status.CONVERGED).all() and (found.reason == StopReason.RESIDUAL).all()
    for i, (ci, x) in enumerate(zip(c, (3.0, 4.0, 11.0))):
        _, count = plain_newton(lambda x, c=ci: x**3 - c, lambda x: 3 * x * x, x, 1e-9)
        assert found.iterations[i] == count


def test_a_start_that_solves_takes_no_iteration():
    found = solve(lambda x: x - 1.0, [1.0], settings())
    assert (found.status[0], found.iterations[0], found.residual_norm[0]) == (Status.CONVERGED, 0, 0)


def test_relative_tolerance():
    found = solve(lambda x: x**3, [1.0], settings(abs_tol=0.0, rel_tol=1e-2))
    assert (found.status[0], found.reason[0]) == (Status.CONVERGED, StopReason.RESIDUAL)
    # The cube falls by 8/27 per iteration.
    assert found.iterations[0] == 4
    np.testing.assert_allclose(found.residual_norm[0], (8 / 27) ** 4, rtol=1e-12)


def test_iteration_limit_keeps_the_last_iterate():
    found = solve(lambda x: x**3, [1.0], settings(max_iter=2))
    assert (found.status[0], found.reason[0], found.iterations[0]) == (Status.STOPPED, StopReason.MAX_ITERATIONS, 2)
    np.testing.assert_allclose(found.x[0], 4 / 9, rtol=1e-14)


def test_a_residual_at_rounding_stops_for_its_small_step():
    found = solve(lambda x: x * x - 2.0, [1.5], settings(abs_tol=0.0, rel_step_tol=1e-15))
    assert (found.status[0], found.reason[0]) == (Status.STOPPED, StopReason.SMALL_STEP)
    np.testing.assert_allclose(found.x[0], np.sqrt(2), rtol=1e-15)


def test_line_search_saves_a_start_from_which_newton_runs_away():
    searched = solve(jnp.arctan, [3.0], settings())
    assert searched.status[0] == Status.CONVERGED
    np.testing.assert_allclose(searched.x[0], 0, atol=1e-12)
    plain = solve(jnp.arctan, [3.0], settings(line_search_type=LineSearchType.NONE))
    assert (plain.status[0], plain.reason[0]) == (Status.DIVERGED, StopReason.NONFINITE)


def test_a_start_that_is_not_finite_diverges():
    found = solve(jnp.sqrt, [-1.0], settings())
    assert (found.status[0], found.reason[0]) == (Status.DIVERGED, StopReason.NONFINITE)
    assert found.iterations[0] == 0


def test_growth_diverges():
    wrong = functools.partial(solve, slope=lambda x, fitted: -1e-3 * jnp.ones_like(x))
    off = {"line_search_type": LineSearchType.NONE, "rel_div_tol": 1e2}
    found = wrong(lambda x: x, [1.0], settings(**off))
    assert (found.status[0], found.reason[0], found.iterations[0]) == (Status.DIVERGED, StopReason.GROWTH, 1)
    large = wrong(lambda x: x, [1e8], settings(**off | {"rel_div_tol": 1e9}))
    assert (large.status[0], large.reason[0]) == (Status.DIVERGED, StopReason.GROWTH)  # beyond the absolute limit


def test_a_search_that_finds_nothing_tries_the_fitted_matrix():
    def slope(x, fitted):
        return jnp.where(fitted, 1.0, -1.0)[None] * jnp.ones_like(x)

    found = solve(lambda x: x, [1.0], settings(line_search_max_iter=3), slope=slope)
    assert (found.status[0], found.iterations[0], found.x[0]) == (Status.CONVERGED, 1, 0.0)


def test_with_the_fitted_matrix_the_shortest_step_is_taken_all_the_same():
    found = solve(
        lambda x: x, [1.0], settings(line_search_max_iter=3, max_iter=1), slope=lambda x, fitted: -jnp.ones_like(x)
    )
    assert (found.status[0], found.iterations[0]) == (Status.STOPPED, 1)
    np.testing.assert_allclose(found.x[0], 1 + 0.5**3, rtol=1e-15)


def test_a_solve_that_cannot_improve_stops_where_it_is():
    found = solve(
        lambda x: x,
        [1.0],
        settings(line_search_max_iter=3, stop_if_no_improvement=True),
        slope=lambda x, fitted: -jnp.ones_like(x),
    )
    assert (found.status[0], found.reason[0]) == (Status.STOPPED, StopReason.NO_IMPROVEMENT)
    assert (found.x[0], found.iterations[0], found.residual_norm[0]) == (1.0, 0, 1.0)


def test_weighted_measure():
    mode = {"convergence_mode": ConvergenceMode.PER_ACTOR_WEIGHTED, "abs_tol": 1e-3}
    light, heavy = (solve(lambda x: x**3, [1.0], settings(**mode), weights=[w]) for w in (1e-2, 1.0))
    assert light.iterations[0] < heavy.iterations[0]
    np.testing.assert_allclose(light.residual_norm[0], 1e-2 * light.x[0] ** 3, rtol=1e-14)


PROBLEM = [3.0, -1.0, 40.0, 1e-3]  # from here the first converges, the second is lost, the third takes many iterations


@pytest.mark.parametrize("lane", range(len(PROBLEM)))
def test_a_lane_does_not_see_its_neighbours(lane):
    def residual(x):
        return jnp.sqrt(x) * x * x - 2.0

    together = solve(residual, PROBLEM, settings(max_iter=8))
    alone = solve(residual, PROBLEM[lane : lane + 1], settings(max_iter=8))
    assert len(set(together.iterations)) > 1 and Status.DIVERGED in together.status
    for a, b in zip(together, alone):
        np.testing.assert_array_equal(a[lane], b[0])
