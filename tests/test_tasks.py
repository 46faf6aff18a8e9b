"""Tasks with known answers, solved by gradients through contact."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxsim as js

MU, GRAVITY = 0.5, 9.81
SINGLE_IS_SLOW = [pytest.param("float64"), pytest.param("float32", marks=pytest.mark.slow)]


def rest_height(half_extent: float, mass: float, contact: js.ContactParams) -> float:
    """Height at which m g = A k psi psi' for a cube on a plane, psi the ramp of the contact law."""
    s, threshold = float(contact.penalty_smoothing_half_distance), float(contact.penalty_threshold_default)
    k = float(contact.penalty_coefficient) * (2 * half_extent) ** 2

    def force(gap: float) -> float:
        y = (threshold - s - gap) / s
        psi = s * (3 / 16 + y / 2 + 3 * y**2 / 8 - y**4 / 16) if y < 1 else y * s
        return k * psi * (0.5 + 0.75 * y - 0.25 * y**3 if y < 1 else 1.0)

    low, high = threshold - 4 * s, threshold
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if force(middle) > mass * GRAVITY else (low, middle)
    return half_extent + middle


def cube_on_plane(half_extent: float, contact: js.ContactParams, dtype):
    scene = js.Scene(gravity=(0, 0, -GRAVITY))
    scene.add_plane(contact=contact)
    z = rest_height(half_extent, 1.0, contact)
    cube = scene.add_rigid(js.Box((half_extent,) * 3), mass=1.0, position=(0, 0, z), contact=contact)
    return *scene.build(dtype), cube


# T1: which initial velocity makes a sliding cube stop at a mark.

H, STEPS, MARK = 0.01, 100, 1.0
# Backward Euler applies the friction of the step's end: d = v^2 / (2 mu g) - v h / 2.
ORACLE = MU * GRAVITY * H / 2 + math.sqrt((MU * GRAVITY * H / 2) ** 2 + 2 * MU * GRAVITY * MARK)


def slide_to_mark(dtype):
    """Final x [m] of the cube as a function of its initial speed [m/s]."""
    contact = js.ContactParams(penalty_coefficient=1e8, coulomb_friction_coefficient=MU, friction_falloff_vel=0.01)
    model, state, cube = cube_on_plane(0.05, contact, dtype)

    def final_x(speed):
        start = js.set_velocity(model, state, cube, linear=speed * jnp.array([1.0, 0.0, 0.0], dtype))
        final, _ = js.rollout(model, start, None, H, js.SolverParams.gradient(), steps=STEPS)
        return js.com_position(model, final, cube)[0]

    return final_x


@pytest.mark.parametrize("dtype", SINGLE_IS_SLOW)
def test_slide_to_mark(dtype):
    assert abs(ORACLE - 3.157) < 5e-4
    final_x = slide_to_mark(dtype)
    loss = lambda speed: (final_x(speed) - MARK) ** 2
    start = jnp.array(1.0, dtype)
    for optimizer, steps in ((optax.lbfgs(), 30), (optax.adam(0.1), 150)):
        result = js.optimize(loss, start, optimizer, steps, progress=False)
        assert abs(float(result.best) - 3.157) < 0.01
        assert math.sqrt(result.best_loss) < 2e-3
        assert result.iterations <= steps


# T2: push a block to a goal, and leave it there at rest.

KNOTS, HOLD, LIMIT = 10, 5, 20.0
GOAL = np.array([0.0, 1.0, 0.25])


def block_to_goal(dtype, friction_falloff_vel: float = 0.01):
    """Loss of the forces (10, 3) [N], and the final COM position and velocity beside it."""
    contact = js.ContactParams(coulomb_friction_coefficient=MU, friction_falloff_vel=friction_falloff_vel)
    model, state, block = cube_on_plane(0.25, contact, dtype)
    goal = jnp.asarray(GOAL, dtype)

    def loss(forces):
        controls = jax.vmap(lambda f: js.apply_force(model, js.Control.zeros(model), block, f))(forces)
        params = js.SolverParams.gradient()
        final, _ = js.rollout(model, state, controls, 0.02, params, steps=KNOTS * HOLD, substeps=HOLD)
        p, v = js.com_position(model, final, block), js.velocity(model, final, block).linear
        return 10 * jnp.sum((p - goal) ** 2) + jnp.sum(v**2) + 1e-4 * jnp.sum(forces**2), (p, v)

    return loss


@pytest.mark.parametrize("dtype", SINGLE_IS_SLOW)
def test_block_to_goal(dtype):
    start = jnp.zeros((KNOTS, 3), dtype)
    result = js.optimize(
        block_to_goal(dtype), start, optax.adam(0.5), 200, progress=False, bounds=(-LIMIT, LIMIT), has_aux=True
    )
    p, v = result.aux
    assert result.gradient_norms[0] > 0  # sticking friction lets a little through
    assert np.linalg.norm(p - GOAL) < 0.010
    assert np.linalg.norm(v) < 0.020
    assert np.max(np.abs(result.best)) <= LIMIT


@pytest.mark.slow
def test_block_at_rest_has_a_gradient(dtype):
    loss = block_to_goal(dtype, friction_falloff_vel=1e-3)
    grad, _ = jax.jit(jax.grad(loss, has_aux=True))(jnp.zeros((KNOTS, 3), dtype))
    assert np.all(np.isfinite(grad))
    assert np.linalg.norm(grad) > 0
