"""The optimiser on losses with known answers."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxsim as js

SOLUTION = {"a": jnp.array([1.0, -2.0]), "b": jnp.array(0.5)}
START = {"a": jnp.zeros(2), "b": jnp.array(3.0)}


def bowl(x):
    return sum(jnp.sum((p - q) ** 2) for p, q in zip(jax.tree.leaves(x), jax.tree.leaves(SOLUTION)))


def rosenbrock(x):
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def quiet(loss, start, optimizer, steps, **options):
    return js.optimize(loss, start, optimizer, steps, progress=False, **options)


@pytest.mark.parametrize("optimizer", [optax.adam(0.1), optax.sgd(0.1, momentum=0.5), optax.lbfgs()])
def test_finds_the_minimum_of_a_pytree(optimizer):
    result = quiet(bowl, START, optimizer, 300)
    chex.assert_trees_all_close(result.best, SOLUTION, atol=1e-4)
    assert len(result.losses) == len(result.gradient_norms) == result.iterations + 1
    assert result.losses[0] == bowl(START)
    assert result.best_loss == result.losses.min()


def test_lbfgs_climbs_down_a_curved_valley(dtype):
    result = quiet(rosenbrock, jnp.array([-1.2, 1.0], dtype), optax.lbfgs(), 60)
    assert result.best.dtype == dtype
    np.testing.assert_allclose(result.best, 1.0, atol=1e-3)


def test_lbfgs_ends_when_nothing_changes():
    result = quiet(bowl, START, optax.lbfgs(), 100)
    assert result.reason is js.EndReason.UNCHANGED
    assert result.iterations < 20


@pytest.mark.parametrize("optimizer", [optax.adam(0.1), optax.lbfgs()])
def test_the_loss_is_traced_a_fixed_number_of_times(optimizer):
    calls = []

    def counted(x):
        calls.append(True)
        return rosenbrock(x)

    quiet(counted, jnp.array([-1.2, 1.0]), optimizer, 20)
    traces = len(calls)
    assert traces <= 2
    quiet(counted, jnp.array([0.3, 0.4]), optimizer, 5)
    assert len(calls) == traces


def test_check_and_first_order_optimisers_share_the_compiled_loss():
    calls = []

    def counted(x):
        calls.append(True)
        return rosenbrock(x)

    x = jnp.array([-1.2, 1.0])
    js.gradient_check(counted, x)
    for rate in (0.1, 0.01):
        quiet(counted, x, optax.adam(rate), 3)
    assert len(calls) == 1


def test_zero_steps_evaluate_the_start():
    result = quiet(bowl, START, optax.adam(0.1), 0)
    chex.assert_trees_all_equal(result.final, START)
    assert result.losses == [bowl(START)]
    assert result.reason is js.EndReason.STEPS


def test_tolerance_stops_early():
    result = quiet(bowl, START, optax.adam(0.1), 1000, tolerance=1e-3)
    assert result.reason is js.EndReason.TOLERANCE
    assert result.losses[-1] <= 1e-3 < result.losses[-2]


def test_callback_sees_every_iterate_and_stops():
    seen = []

    def callback(iterate):
        seen.append(iterate)
        return iterate.iteration == 3

    result = quiet(bowl, START, optax.adam(0.1), 10, callback=callback)
    assert [i.iteration for i in seen] == [0, 1, 2, 3]
    assert [i.loss for i in seen] == list(result.losses)
    assert result.reason is js.EndReason.CALLBACK


@pytest.mark.parametrize("optimizer", [optax.sgd(0.2), optax.lbfgs()])
def test_a_loss_that_leaves_the_finite_keeps_the_last_good_variables(optimizer):
    edge = lambda x: jnp.where(x > 0.5, jnp.nan, 1.0) * (x - 2.0) ** 2
    result = quiet(edge, jnp.array(0.0), optimizer, 50)
    assert np.isfinite(result.best) and np.isfinite(result.final)
    assert np.all(np.isfinite(result.losses)) and np.all(np.isfinite(result.gradient_norms))
    assert result.reason in (js.EndReason.NONFINITE, js.EndReason.UNCHANGED)


def test_a_gradient_that_is_not_finite_stops():
    result = quiet(lambda x: jnp.sqrt(jnp.sum(x)), jnp.zeros(2), optax.adam(0.1), 50)
    assert result.reason is js.EndReason.NONFINITE
    assert result.losses.size == 0 and np.isnan(result.best_loss)
    np.testing.assert_array_equal(result.best, 0.0)
    assert "not finite" in str(result)


@pytest.mark.parametrize("optimizer", [optax.adam(0.2), optax.lbfgs()])
def test_bounds_hold_and_are_active_at_the_answer(optimizer):
    upper = {"a": jnp.array([0.5, 5.0]), "b": 5.0}
    result = quiet(bowl, START, optimizer, 300, bounds=(-1.5, upper))
    chex.assert_trees_all_close(result.best, {"a": jnp.array([0.5, -1.5]), "b": jnp.array(0.5)}, atol=1e-3)


def test_bounds_clip_the_start():
    assert quiet(bowl, START, optax.adam(0.1), 0, bounds=(None, 2.0)).final["b"] == 2.0


def test_best_is_not_last_and_aux_belongs_to_best():
    result = quiet(lambda x: (x**2, {"x": x}), jnp.array(1.0), optax.sgd(0.9, momentum=0.9), 30, has_aux=True)
    assert result.best_loss < result.losses[-1]
    assert result.aux["x"] == result.best


def test_python_numbers_become_arrays():
    assert quiet(lambda x: (x - 2.0) ** 2, 1.0, optax.adam(0.1), 3).best.dtype == jnp.float64


def test_progress_is_on_stderr_with_and_without_tqdm(capsys, monkeypatch):
    js.optimize(bowl, START, optax.adam(0.1), 20)
    assert "loss" in capsys.readouterr().err
    monkeypatch.setitem(__import__("sys").modules, "tqdm", None)  # as if it were not installed
    js.optimize(bowl, START, optax.adam(0.1), 20)
    out, err = capsys.readouterr()
    assert "iteration 20/20: loss" in err and len(err.splitlines()) <= 12 and not out


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((bowl, START, optax.adam(0.1), -1), ("steps", "-1")),
        ((bowl, START, optax.adam(0.1), 1.5), ("steps", "1.5")),
        ((lambda x: x["a"], START, optax.adam(0.1), 1), ("scalar", "(2,)", "sum")),
        ((lambda x: (x["b"], 1), START, optax.adam(0.1), 1), ("scalar", "tuple")),
        ((bowl, {"a": jnp.arange(2), "b": jnp.array(0.0)}, optax.adam(0.1), 1), ("['a']", "floating", "keep it out")),
        ((bowl, {"a": 1, "b": 0.0}, optax.adam(0.1), 1), ("['a']", "floating")),
        ((bowl, {}, optax.adam(0.1), 1), ("variables", "no array")),
    ],
)
def test_wrong_use_is_refused(arguments, words):
    with pytest.raises(ValueError) as error:
        quiet(*arguments)
    assert all(word in str(error.value) for word in words), error.value


@pytest.mark.parametrize(
    "bounds, words", [((2.0, 1.0), ("lower", "upper")), (({"a": 0.0}, None), ("lower", "structure"))]
)
def test_wrong_bounds_are_refused(bounds, words):
    with pytest.raises(ValueError) as error:
        quiet(bowl, START, optax.adam(0.1), 1, bounds=bounds)
    assert all(word in str(error.value) for word in words), error.value


def test_gradient_check_agrees_with_a_smooth_loss(dtype):
    check = js.gradient_check(rosenbrock, jnp.array([-1.2, 1.0], dtype), directions=4)
    assert check.derivatives.shape == (4,) and check.differences.shape == (2, 4)
    assert check.error < (1e-7 if dtype == jnp.float64 else 1e-3)
    assert "relative error" in str(check)


def test_gradient_check_finds_a_wrong_gradient():
    wrong = jax.custom_vjp(lambda x: jnp.sum(x**2))
    wrong.defvjp(lambda x: (jnp.sum(x**2), x), lambda x, ct: (3.0 * ct * x,))
    assert js.gradient_check(wrong, jnp.array([1.0, 2.0])).error == pytest.approx(1 / 3, abs=1e-6)


@pytest.mark.parametrize("options", [{"directions": 0}, {"step": 0.0}])
def test_gradient_check_refuses_wrong_use(options):
    with pytest.raises(ValueError):
        js.gradient_check(rosenbrock, jnp.ones(2), **options)
