"""Residual of rigid inertia over one stage: the variational (merit) form and the Newton-Euler form.

All quantities are in world axes; a rotation is D R0 with R0 the stage start. Source: SuperDex Physics 1.0.1,
`rigid_body_utils.h`; restated in closed form for differences, so that nothing cancels at small steps.
"""

import jax.numpy as jnp

from ..math.kernel import kernel
from ..math.quaternion import Quaternion
from ..math.safe import safe_sqrt
from ..math.symmetric import is_positive
from ..math.vector import Component, Mat3, Vec3, add_to_diagonal, axial, cross, dot, outer, skew, trace


def second_moment(inertia: Mat3) -> Mat3:
    """J = tr(I)/2 - I, the second-moment matrix of a body with inertia I."""
    return add_to_diagonal(-inertia, 0.5 * trace(inertia))


def spin_start(angular_velocity: Vec3, h: Component) -> Mat3:
    """Symmetric velocity S [1/s] after a velocity was set by hand.

    With it the predicted rotation h (skew(w) + S) is a true rotation by asin(h |w|) about w, so that the first step
    keeps w. S = (sqrt(1 - h^2 w^2) - 1)/h (1 - u u^T), u = w/|w|, written so that w = 0 needs no division.
    """
    w_sq = dot(angular_velocity, angular_velocity)
    cos = safe_sqrt(1.0 - h * h * w_sq)
    return add_to_diagonal(outer(angular_velocity, angular_velocity), -w_sq) * (h / (1.0 + cos))


def rotational_velocity(turn: Quaternion, h: Component) -> tuple[Vec3, Mat3]:
    """Angular velocity [rad/s] and symmetric velocity S [1/s] of a finite rotation: parts of (1 - D^T) / h."""
    v = turn.v
    angular = v * (2.0 * turn.w / h)
    symmetric = add_to_diagonal(-outer(v, v), dot(v, v)) * (2.0 / h)
    return angular, symmetric


def merit_residual(turn: Quaternion, predicted: Mat3, second_moment_W: Mat3, h: Component) -> Vec3:
    """Gradient [N m] of the rotational merit over a left increment.

    The merit is tr[(R - Rp) J (R - Rp)^T] / (2 h^2) with Rp = (1 + predicted) R0 and R = D R0; M = -R J Rp^T / h^2.

    Args:
        predicted: h (skew(w) + S), the predicted rotation less the identity.
        second_moment_W: J of the body in world axes at the stage start.
    """
    M = _merit_matrix(turn, predicted, second_moment_W)
    return axial(M) * (2.0 / (h * h))


@kernel
def _merit_matrix(turn: Quaternion, predicted: Mat3, J: Mat3) -> Mat3:
    """h^2 times -M, less the symmetric J: D J P^T - J with D = 1 + E and P = 1 + G."""
    E, G = turn.minus_identity(), predicted
    JGt = J @ G.T
    return E @ J + JGt + E @ JGt


def merit_stiffness(turn: Quaternion, predicted: Mat3, second_moment_W: Mat3, h: Component) -> Mat3:
    """Positive approximation of the merit's second derivative [N m]: sym(M) - tr(M).

    Where that is not positive, as for turns of a quarter and more in one step, the inertia at the start stands in.
    """
    M = second_moment_W + _merit_matrix(turn, predicted, second_moment_W)
    return _positive_hessian(M, second_moment_W) * (1.0 / (h * h))


@kernel
def _positive_hessian(M: Mat3, second_moment_W: Mat3) -> Mat3:
    def hessian(m):
        return add_to_diagonal((m + m.T) * -0.5, trace(m))

    own, plain = hessian(M), hessian(second_moment_W)
    return Mat3.of(jnp.where(is_positive(own)[None, None], own.array, plain.array))


@kernel
def newton_euler_residual(turn: Quaternion, start_angular_velocity: Vec3, inertia_W0: Mat3, h: Component) -> Vec3:
    """I (w - w0)/h + w x I w [N m], with the present inertia and the finite-difference velocity."""
    w, _ = rotational_velocity(turn, h)
    inertia = rotate_tensor(turn, inertia_W0)
    return inertia @ ((w - start_angular_velocity) * (1.0 / h)) + cross(w, inertia @ w)


@kernel
def rotate_tensor(rotation: Quaternion, tensor: Mat3) -> Mat3:
    """R T R^T."""
    R = rotation.matrix()
    return R @ tensor @ R.T


def predicted_rotation(angular_velocity: Vec3, symmetric: Mat3, h: Component) -> Mat3:
    """h (skew(w) + S): the predicted rotation less the identity."""
    return (skew(angular_velocity) + symmetric) * h
