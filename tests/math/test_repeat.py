import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.math.repeat import repeat

X = jnp.arange(10.0).reshape(2, 5)
WEIGHT = jnp.sin(jnp.arange(30.0)).reshape(2, 3, 5)


def test_repeat_is_a_broadcast_along_a_new_axis():
    for axis, shape in ((0, (3, 2, 5)), (1, (2, 3, 5)), (2, (2, 5, 3))):
        expected = np.broadcast_to(np.expand_dims(X, axis), shape)
        np.testing.assert_array_equal(repeat(X, 3, axis), expected)
        np.testing.assert_array_equal(jax.jit(repeat, static_argnums=(1, 2))(X, 3, axis), expected)


def test_its_transpose_is_the_sum_and_the_sum_is_transposed_back():
    quadratic = lambda x: jnp.sum(WEIGHT * repeat(x, 3, 1) ** 2) / 2
    diagonal = WEIGHT.sum(1)
    np.testing.assert_allclose(jax.grad(quadratic)(X), diagonal * X, atol=1e-12)
    for hessian in (
        jax.jacfwd(jax.grad(quadratic)),
        jax.jacrev(jax.grad(quadratic)),
        jax.jacfwd(jax.jacfwd(quadratic)),
    ):
        np.testing.assert_allclose(hessian(X).reshape(10, 10), np.diag(diagonal.ravel()), atol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_worlds_on_any_axis_are_repeated_and_summed_one_by_one(axis):
    worlds = jnp.stack([X, 2 * X, -X], axis)
    both = jax.vmap(
        jax.value_and_grad(lambda x: jnp.sum(WEIGHT * repeat(x, 3, 1) ** 2)), in_axes=axis, out_axes=(0, axis)
    )
    each = [jax.value_and_grad(lambda x: jnp.sum(WEIGHT * repeat(x, 3, 1) ** 2))(scale * X) for scale in (1, 2, -1)]
    value, gradient = both(worlds)
    np.testing.assert_allclose(value, [v for v, _ in each])
    np.testing.assert_allclose(gradient, jnp.stack([g for _, g in each], axis), atol=1e-12)


def test_the_transpose_needs_no_reduction_over_components():
    """A reduction over three entries is what XLA on CPU is slow at, so the sum is one of slices."""
    gradient = jax.jit(jax.grad(lambda x: jnp.sum(repeat(jnp.sin(x), 3, 1) * WEIGHT)))
    alike = jax.jit(jax.grad(lambda x: jnp.sum(jnp.sin(x)[:, None] * WEIGHT)))
    assert "reduce" in alike.lower(X).as_text()
    assert "reduce" not in gradient.lower(X).as_text()
