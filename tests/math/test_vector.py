"""Component-wise vectors and matrices against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.math.safe import safe_divide, safe_norm, safe_sqrt
from jaxsim.math.vector import Mat3, Vec3, add_to_diagonal, axial, cross, dot, norm, outer, select, skew, trace

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(2, 3, 5))  # components first, five of each
M, N = RNG.normal(size=(2, 3, 3, 5))


def close(actual, expected):
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-14, atol=1e-14)


def test_vector_algebra_is_that_of_numpy():
    a, b = Vec3.of(A), Vec3.of(B)
    close((a + b - 2.0 * a / 3.0).stack(), A + B - 2.0 * A / 3.0)
    close(dot(a, b), (A * B).sum(0))
    close(cross(a, b).stack(), np.cross(A, B, axis=0))
    close(norm(a), np.linalg.norm(A, axis=0))
    close(outer(a, b).stack(), np.einsum("ik,jk->ijk", A, B))
    close((-a).stack(-1), -A.T)
    close(select(A[0] > 0, a, b).stack(), np.where(A[0] > 0, A, B))


def test_leading_and_trailing_components_give_the_same_vector():
    close(Vec3.of_last(A.T).stack(), Vec3.of(A).stack())


def test_matrix_algebra_is_that_of_numpy():
    m, n, a = Mat3.of(M), Mat3.of(N), Vec3.of(A)
    close((m @ n).stack(), np.einsum("ijk,jlk->ilk", M, N))
    close((m @ a).stack(), np.einsum("ijk,jk->ik", M, A))
    close((m.T + n - 2.0 * m / 3.0).stack(), M.transpose(1, 0, 2) + N - 2.0 * M / 3.0)
    close((-m).stack(), -M)
    close(trace(m), np.trace(M))
    close(add_to_diagonal(m, A[0]).stack(), M + A[0] * np.eye(3)[..., None])


def test_symmetric_matrix_of_six_numbers():
    close(Mat3.symmetric(np.arange(1.0, 7.0)).stack(), [[1, 2, 3], [2, 4, 5], [3, 5, 6]])


def test_skew_matrix_makes_the_cross_product_and_axial_takes_it_back():
    a, b = Vec3.of(A), Vec3.of(B)
    close((skew(a) @ b).stack(), cross(a, b).stack())
    close(axial(skew(a)).stack(), A)


@pytest.mark.parametrize("f", [safe_sqrt, lambda x: safe_norm(jnp.stack([x, x])), lambda x: safe_divide(x, x)])
def test_degenerate_points_have_zero_value_and_zero_derivatives(f):
    assert f(jnp.array(0.0)) == 0
    assert jax.grad(f)(0.0) == 0
    assert jax.grad(jax.grad(f))(0.0) == 0


def test_one_zero_row_does_not_spoil_the_others():
    gradient = jax.grad(lambda x: safe_norm(x).sum())(jnp.array([[0.0, 0.0, 0.0], [3.0, 0.0, 4.0]]))
    close(gradient, [[0, 0, 0], [0.6, 0, 0.8]])
