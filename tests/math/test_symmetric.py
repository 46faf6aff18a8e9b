import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.math.symmetric import eigenvalues, is_positive, square_root
from jaxsim.math.vector import Mat3


def random_positive(rng, spread, n=200):
    rotations = np.linalg.qr(rng.standard_normal((n, 3, 3)))[0]
    values = 1e-3 * (1.0 + spread * rng.random((n, 3)))
    return np.einsum("nij,nj,nkj->nik", rotations, values, rotations)


@pytest.mark.parametrize("spread", [0.0, 1e-9, 1e-3, 10.0])
def test_eigenvalues_and_square_root_match_linear_algebra(spread):
    matrices = random_positive(np.random.default_rng(0), spread)
    m = Mat3.of(jnp.moveaxis(jnp.asarray(matrices), 0, -1))
    np.testing.assert_allclose(eigenvalues(m).stack(-1), np.linalg.eigvalsh(matrices)[:, ::-1], atol=1e-11)
    root = jnp.moveaxis(square_root(m).array, -1, 0)
    np.testing.assert_allclose(root @ root, matrices, atol=1e-10)
    assert is_positive(m).all() and not is_positive(-m).any()


def test_a_nearly_isotropic_matrix_stays_finite_in_float32():
    # A cube's inertia, turned by a rounding error: cubes of the spread underflow in float32.
    six = jnp.array([1.0, 1e-8, -2e-8, 1.0, 3e-8, 1.0], jnp.float32)[:, None] * 1.6667e-3
    m = Mat3.symmetric(six)
    assert jnp.isfinite(square_root(m).array).all()
    np.testing.assert_allclose(square_root(m).array[0, 0], np.sqrt(1.6667e-3), rtol=1e-6)
