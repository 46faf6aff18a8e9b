"""Rigid inertia: the residual is the gradient of its merit, the matrix its second derivative."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.spatial.transform import Rotation

from jaxsim.dynamics.inertia import (
    merit_residual,
    merit_stiffness,
    newton_euler_residual,
    predicted_rotation,
    rotational_velocity,
    second_moment,
    spin_start,
)
from jaxsim.math.quaternion import Quaternion
from jaxsim.math.vector import Mat3, Vec3

H = jnp.asarray(0.01)
INERTIA = np.array([[2.1, 0.3, -0.2], [0.3, 3.5, 0.4], [-0.2, 0.4, 4.6]]) * 1e-3
W = np.array([3.0, -5.0, 2.0])
TURN = np.array([0.031, -0.047, 0.012])  # the first step's, but for a little


def skew(v):
    x, y, z = v
    zero = jnp.zeros_like(x)
    return jnp.stack([jnp.stack([zero, -z, y]), jnp.stack([z, zero, -x]), jnp.stack([-y, x, zero])])


def turn(v) -> Quaternion:
    return Quaternion.of(Rotation.from_rotvec(jnp.asarray(v)).as_quat())


def predicted(w=W) -> Mat3:
    w = Vec3.of(jnp.asarray(w))
    return predicted_rotation(w, spin_start(w, H), H)


def merit(z, D, P):
    """tr[(R - Rp) J (R - Rp)^T] / (2 h^2) with R = exp(z) D, in the axes of the stage start."""
    J = 0.5 * np.trace(INERTIA) * np.eye(3) - INERTIA
    turned = jnp.eye(3) + skew(z) + skew(z) @ skew(z) / 2  # exp(skew(z)) as far as two derivatives at zero see it
    off = turned @ D - jnp.eye(3) - P
    return jnp.trace(off @ J @ off.T) / (2 * H * H)


def inertia() -> Mat3:
    return Mat3.of(jnp.asarray(INERTIA))


def test_merit_residual_and_stiffness_are_derivatives_of_the_merit():
    D, P = turn(TURN).matrix().array, predicted().array
    slope = jax.grad(merit)
    gradient, hessian = jax.jit(lambda z: (slope(z, D, P), jax.jacfwd(slope)(z, D, P)))(jnp.zeros(3))
    J = second_moment(inertia())
    np.testing.assert_allclose(merit_residual(turn(TURN), predicted(), J, H).stack(), gradient, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(merit_stiffness(turn(TURN), predicted(), J, H).array, hessian, rtol=1e-10, atol=1e-9)


def test_merit_stiffness_stays_positive_far_from_the_solution():
    J = second_moment(inertia())
    far = merit_stiffness(turn([2.5, 0.3, -1.0]), predicted(), J, H).array
    assert np.linalg.eigvalsh(np.asarray(far)).min() > 0


def test_newton_euler_residual_is_the_stated_balance():
    R = np.asarray(turn(TURN).matrix().array)
    spin = R - R.T
    w = np.array([spin[2, 1], spin[0, 2], spin[1, 0]]) / 2 / H
    I = R @ INERTIA @ R.T
    expected = I @ (w - W) / H + np.cross(w, I @ w)
    found = newton_euler_residual(turn(TURN), Vec3.of(jnp.asarray(W)), inertia(), H)
    np.testing.assert_allclose(found.stack(), expected, rtol=1e-11)


def test_velocity_of_a_turn_is_its_finite_difference():
    R = np.asarray(turn(TURN).matrix().array)
    rate = (np.eye(3) - R.T) / H
    w, S = rotational_velocity(turn(TURN), H)
    np.testing.assert_allclose(np.asarray(skew(w.stack()) + S.array), rate, rtol=1e-10, atol=1e-12)


def test_a_spin_set_by_hand_predicts_a_rotation_that_keeps_it():
    P = np.eye(3) + np.asarray(predicted().array)
    np.testing.assert_allclose(P @ P.T, np.eye(3), atol=1e-15)
    # P is 1 + h (skew(w) + S), so its skew part is h w: the sine of the angle.
    np.testing.assert_allclose(np.arccos((np.trace(P) - 1) / 2), np.arcsin(H * np.linalg.norm(W)), rtol=1e-10)


def test_no_spin_predicts_no_turn_and_has_a_derivative():
    np.testing.assert_array_equal(predicted(np.zeros(3)).array, 0)
    slope = jax.jit(jax.jacfwd(lambda w: predicted(w).array))(jnp.zeros(3))
    np.testing.assert_allclose(
        slope, float(H) * np.moveaxis(np.array([skew(e) for e in jnp.eye(3)]), 0, -1), atol=1e-16
    )
