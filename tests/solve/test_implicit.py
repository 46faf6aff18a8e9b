"""Derivatives of a solution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from jaxsim.solve.implicit import implicit_zero


def residual(z, theta):
    """Root of x^3 + a x = c at x = start + z, lane by lane."""
    start, a, c = theta
    x = start + z
    return x**3 + a * x - c


def divide(z, theta, b):
    start, a, _ = theta
    return b / (3 * (start + z) ** 2 + a)


@jax.jit
def root(a, c):
    """Forward by plain Newton, derivative by the rule."""
    a = jnp.reshape(a, (1, 1, 1))  # shared by all lanes and worlds
    at, ct = jax.lax.stop_gradient((a, c))
    x = jax.lax.fori_loop(0, 30, lambda _, x: x - (x**3 + at * x - ct) / (3 * x * x + at), jnp.ones_like(c))
    x = jax.lax.stop_gradient(x)
    return x + implicit_zero(residual, divide, jnp.zeros_like(x), (x, a, c))


C = jnp.asarray([2.0, 10.0, -4.0])[None, None]


def test_value_is_untouched_and_the_slope_exact():
    x = root(1.0, C)
    np.testing.assert_allclose(x**3 + x, C, rtol=1e-14)
    slope = jax.grad(lambda c: root(1.0, c).sum())(C)
    np.testing.assert_allclose(slope, 1 / (3 * x * x + 1), rtol=1e-13)


def test_first_and_second_derivatives_in_both_modes():
    check_grads(root, (1.5, C), order=2, modes=["fwd", "rev"], atol=1e-6, rtol=1e-6)


def test_second_derivative_is_that_of_the_root():
    x = root(1.0, C)
    second = jax.grad(lambda c: jax.grad(lambda c: root(1.0, c).sum())(c).sum())(C)
    np.testing.assert_allclose(second, -6 * x / (3 * x * x + 1) ** 3, rtol=1e-12)


def test_vmap_agrees_with_a_loop():
    a = jnp.asarray([0.5, 1.0, 2.0])
    slope = jax.jit(jax.grad(lambda a: root(a, C).sum()))
    np.testing.assert_allclose(jax.vmap(slope)(a), [slope(x) for x in a], rtol=1e-14)


@pytest.mark.parametrize("outer", [jax.jacfwd, jax.jacrev])
@pytest.mark.parametrize("inner", [jax.jacfwd, jax.jacrev])
def test_second_derivatives_survive_a_scan_and_a_checkpoint(inner, outer):
    """Two roots in a row, as two steps of a rollout: y(y(c)), differentiated by the chain rule."""

    def twice(c):
        body = jax.checkpoint(lambda x, _: (root(1.0, x), None))
        return jax.lax.scan(body, c, None, length=2)[0].sum()

    c = jnp.full((1, 1, 1), 10.0)
    x = root(1.0, c)
    y = root(1.0, x)
    slope_x, slope_y = 1 / (3 * x * x + 1), 1 / (3 * y * y + 1)
    expected = -6 * y * slope_y**3 * slope_x**2 - slope_y * 6 * x * slope_x**3
    np.testing.assert_allclose(outer(inner(twice))(c).ravel(), expected.ravel(), rtol=1e-12)


def test_slope_of_a_batch_that_shares_its_zeros():
    slope = jax.grad(lambda a: jax.vmap(root, in_axes=(0, None))(a, C).sum())(jnp.asarray([0.5, 1.0]))
    np.testing.assert_allclose(slope, [jax.grad(lambda a: root(a, C).sum())(a) for a in (0.5, 1.0)], rtol=1e-14)


def test_a_constant_equation_has_no_slope():
    frozen = lambda x: x * root(1.0, jax.lax.stop_gradient(C)).sum()
    np.testing.assert_allclose(jax.grad(jax.grad(frozen))(2.0), 0.0)


def test_second_derivatives_of_a_batch_are_those_of_each_world_wherever_its_axis_lies():
    """The Hessian has seed axes outside of the batch, and `a` is shared by the lanes of a world, not by the worlds."""
    hessian = jax.jit(jax.hessian(lambda both: root(both[0], C * both[1]).sum()))
    both = jnp.asarray([[0.5, 1.0], [1.0, 0.7], [2.0, 1.3]])
    expected = [hessian(x) for x in both]
    np.testing.assert_allclose(jax.vmap(hessian)(both), expected, rtol=1e-12)
    last = jax.vmap(hessian, in_axes=-1, out_axes=-1)(both.T)
    np.testing.assert_allclose(last, np.moveaxis(expected, 0, -1), rtol=1e-12)
    slope = jax.grad(lambda c: jax.vmap(lambda a, c: root(a, c).sum(), in_axes=(0, -1))(both[:, 0], c).sum())
    wide = C[..., None] * both[:, 1][None, None, None]
    each = [jax.grad(lambda c, a=a: root(a, c).sum())(wide[..., i]) for i, a in enumerate(both[:, 0])]
    np.testing.assert_allclose(slope(wide), np.stack(each, -1), rtol=1e-12)
