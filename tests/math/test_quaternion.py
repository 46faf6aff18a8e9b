"""Quaternions: conventions, exponential and logarithm, and their derivatives at the awkward places."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jaxsim.math import quaternion, rotation
from jaxsim.math.quaternion import Quaternion
from jaxsim.math.vector import Vec3

RNG = np.random.default_rng(1)


@jax.jit
def exp(r):
    return quaternion.exp(Vec3.of(r)).stack()


@jax.jit
def log(q):
    return quaternion.log(Quaternion.of(q)).stack()


@jax.jit
def minus_identity(q):
    return Quaternion.of(q).minus_identity().stack()


def unit(axis):
    return np.asarray(axis, float) / np.linalg.norm(axis)


AXES = [unit(a) for a in ((1, 0, 0), (0, -1, 0), (1, 2, 3), (-3, 1, -0.1))]
ANGLES = [0.0, 1e-160, 1e-12, 1e-5, 0.0999, 0.1001, 1.0, 3.0, np.pi - 1e-9]


def test_quaternions_are_xyzw_so_1000_is_a_half_turn_about_x():
    half_turn = jnp.array([1.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(rotation.rotate(half_turn, jnp.array([1.0, 2.0, 3.0])), [1, -2, -3])
    np.testing.assert_array_equal(rotation.to_matrix(rotation.identity()), np.eye(3))


@pytest.mark.parametrize("axis", AXES)
def test_log_undoes_exp_and_exp_is_the_rotation_of_scipy(axis):
    for angle in ANGLES:
        q = exp(jnp.asarray(axis * angle))
        np.testing.assert_allclose(q, Rotation.from_rotvec(axis * angle).as_quat(), rtol=1e-14, atol=4e-16)
        np.testing.assert_allclose(log(q), axis * angle, rtol=3e-15, atol=1e-15 * angle)


@pytest.mark.parametrize("axis", AXES)
def test_log_at_pi_is_one_of_the_two_axes(axis):
    r = log(jnp.array([*axis, 0.0]))
    np.testing.assert_allclose(np.cross(r, axis), 0, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(r), np.pi, rtol=1e-15)


def test_both_signs_of_a_quaternion_have_the_same_log():
    q = exp(jnp.array([0.3, -0.2, 0.9]))
    np.testing.assert_array_equal(log(-q), log(q))


@pytest.mark.parametrize(
    "f, points",
    [
        (exp, [length * AXES[2] for length in (0.0, 1e-9, 1e-3, 0.0999999, 0.1000001, 1.0)]),
        (log, [exp(angle * AXES[3]) for angle in (0.0, 1e-9, 1e-3, 1.999e-3, 2.001e-3, 1.0)]),
    ],
    ids=["exp", "log"],
)
def test_first_and_second_derivatives_are_central_differences_in_both_modes(f, points):
    x, step = jnp.asarray(points), 1e-5
    first = jax.jit(jax.vmap(jax.jacfwd(f)))
    both = jax.jit(jax.vmap(lambda x: (jax.jacrev(f)(x), jax.jacfwd(jax.jacrev(f))(x), jax.jacrev(jax.jacfwd(f))(x))))
    reverse, second, second_reverse = both(x)
    np.testing.assert_allclose(first(x), reverse, atol=1e-14)
    np.testing.assert_allclose(second, second_reverse, atol=1e-13)
    for axis, shift in enumerate(step * np.eye(x.shape[1])):
        ahead, behind = x + shift[None], x - shift[None]
        difference = (jax.vmap(f)(ahead) - jax.vmap(f)(behind)) / (2 * step)
        np.testing.assert_allclose(reverse[..., axis], difference, atol=1e-9)
        difference = (first(ahead) - first(behind)) / (2 * step)
        np.testing.assert_allclose(second[..., axis], difference, atol=1e-8)


def test_derivative_of_log_after_exp_is_the_identity_up_to_pi():
    jacobian = jax.jit(jax.jacrev(lambda r: log(exp(r))))
    for angle in (0.0, 1e-10, 0.5, np.pi - 1e-6):
        np.testing.assert_allclose(jacobian(jnp.asarray(AXES[2] * angle)), np.eye(3), atol=1e-9)


def test_derivatives_are_finite_at_zero_and_at_pi(dtype):
    for f, points in ((exp, np.zeros((1, 3))), (log, [[0, 0, 0, 1], [0, 0, 0, -1], [1, 0, 0, 0], [0.6, 0, 0.8, 0]])):
        hessians = jax.jit(jax.vmap(jax.jacfwd(jax.jacrev(f))))(jnp.asarray(points, dtype))
        assert hessians.dtype == dtype
        assert np.all(np.isfinite(hessians))


def test_exp_is_as_smooth_as_rounding_allows_where_its_branches_meet():
    second = jax.jit(jax.vmap(jax.grad(jax.grad(lambda t: exp(t * AXES[2])[3]))))
    angles = np.array([0.0999, 0.1, 0.1001])
    np.testing.assert_allclose(second(angles), -0.25 * np.cos(angles / 2), rtol=1e-12)


def test_minus_identity_keeps_the_digits_of_tiny_rotations():
    r = np.array([1e-12, -2e-12, 3e-12])
    expected = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
    actual = minus_identity(exp(jnp.asarray(r)))
    off_diagonal = ~np.eye(3, dtype=bool)
    np.testing.assert_allclose(actual[off_diagonal], expected[off_diagonal], rtol=1e-11)  # next order: |r|^2
    np.testing.assert_allclose(np.diag(actual), np.diag(np.outer(r, r)) / 2 - r @ r / 2, rtol=1e-14)


def test_matrices_compose_as_quaternions_do():
    p, q = Rotation.random(2, rng=RNG)
    product = rotation.multiply(jnp.asarray(p.as_quat()), jnp.asarray(q.as_quat()))
    np.testing.assert_allclose(rotation.to_matrix(product), (p * q).as_matrix(), atol=1e-15)
    x = RNG.normal(size=(7, 3))
    np.testing.assert_allclose(rotation.rotate(jnp.asarray(p.as_quat()), jnp.asarray(x)), p.apply(x), atol=1e-15)


there_and_back = jax.jit(lambda matrix: rotation.to_matrix(rotation.from_matrix(matrix)))
derivative_of_from_matrix = jax.jit(jax.jacfwd(rotation.from_matrix))


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("angle", [0.0, 1e-9, 1.0, np.pi - 1e-8, np.pi, np.pi + 1e-8])
def test_quaternion_of_a_matrix_is_right_near_pi_too(axis, angle):
    matrix = Rotation.from_rotvec(axis * angle).as_matrix()
    np.testing.assert_allclose(there_and_back(jnp.asarray(matrix)), matrix, atol=1e-15)
    assert np.all(np.isfinite(derivative_of_from_matrix(jnp.asarray(matrix))))


def test_roll_pitch_yaw_follow_the_order_of_urdf():
    expected = Rotation.from_euler("xyz", [0.3, -0.7, 1.9]).as_matrix()
    np.testing.assert_allclose(rotation.to_matrix(rotation.from_rpy(0.3, -0.7, 1.9)), expected, atol=1e-15)


def test_axis_angle_takes_any_length_of_axis():
    for axis, about in zip(np.eye(3), (rotation.about_x, rotation.about_y, rotation.about_z)):
        np.testing.assert_allclose(rotation.from_axis_angle(5.0 * axis, 0.4), about(0.4), atol=1e-16)
