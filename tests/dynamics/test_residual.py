"""The residual of a stage against its parts, and the solver's matrix against the residual's own derivative."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim as js
from jaxsim.contact.law import ContactOptions
from jaxsim.dynamics.linear import newton_direction, solve_exactly
from jaxsim.dynamics.problem import identity_displacement, stage_problem, weights
from jaxsim.dynamics.residual import assemble, prepare, residual, respond, slope

MASS, DEPTH, H = 2.0, 1e-3, 0.005
INERTIA = (0.004, 0.0, 0.0, 0.005, 0.0, 0.006)


@pytest.fixture(scope="module")
def stage():
    """A box at rest, pressed flat into a frictionless plane: nothing that the solver's matrix drops is there, but for
    the turning of the arms under load."""
    scene = js.Scene()
    smooth = js.ContactParams(coulomb_friction_coefficient=0.0)
    scene.add_plane(contact=smooth)
    box = scene.add_rigid(
        js.Box((0.05, 0.06, 0.07)),
        mass=MASS,
        center_of_mass=(0.01, 0.0, -0.02),
        moment_of_inertia=INERTIA,
        position=(0.3, 0.2, 0.07 - DEPTH),
        contact=smooth,
    )
    model, state = scene.build("float64")
    problem, finite = jax.jit(stage_problem)(model, state, None, jnp.asarray(H), ContactOptions())
    assert finite.all()
    return model, state, box, problem


@pytest.fixture(scope="module")
def found(stage):
    """Residual, the solver's matrix, the exact slope, and the force of the contact: compiled as one."""
    _, _, _, problem = stage
    here = identity_displacement(problem)

    @jax.jit
    def all_of_it(problem):
        prepared = prepare(problem)
        r, system = assemble(prepared, here, jnp.zeros((1, 1), bool))
        _, K = jax.linearize(lambda z: residual(z, (here, problem)), jnp.zeros((6, 1, 1)))
        exact = jax.vmap(K, out_axes=-1)(jnp.eye(6)[..., None, None])
        evaluation = respond(prepared, here)[0]
        traction, weight, arm = evaluation.response.traction, prepared.groups[0].pair.weight, evaluation.response.arm
        K = slope(jnp.zeros((6, 1, 1)), (here, problem))
        directions = newton_direction(system, r, None, jnp.ones((1, 1), bool)), solve_exactly(K, r)
        return r, system.diagonal, exact, traction.stack() * weight[None], arm.stack(), *directions

    r, diagonal, exact, force, arm, d, step = all_of_it(problem)
    matrix = np.asarray(diagonal)[:, :, 0, 0]
    flat = [np.asarray(x).reshape(3, -1) for x in (force, arm)]
    return np.asarray(r)[:, 0, 0], matrix, np.asarray(exact)[:, 0, 0], *flat, d[:, 0, 0], step[:, 0, 0]


def test_residual_is_inertia_less_weight_less_contact(found):
    r, _, _, force, arm, *_ = found
    y = (1e-3 - 5e-3 + DEPTH) / 5e-3
    psi, slope = 5e-3 * (3 / 16 + y / 2 + 3 / 8 * y**2 - y**4 / 16), 0.5 + 0.75 * y - 0.25 * y**3
    lift = 1e9 * psi * slope * 0.1 * 0.12
    np.testing.assert_allclose(force.sum(1), [0, 0, lift], rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(r[:3], [0, 0, MASS * 9.81 - lift], rtol=1e-12, atol=1e-9)
    # At rest only the contact turns the body: the face's middle is off the centre of mass by (-0.01, 0).
    np.testing.assert_allclose(r[3:], [0, -lift * 0.01, 0], rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(np.cross(arm, force, axis=0).sum(1), -r[3:], rtol=1e-10, atol=1e-9)


def test_the_matrix_is_the_exact_slope_but_for_the_turning_of_loaded_arms(found):
    _, matrix, exact, force, arm, *_ = found
    scale = np.abs(exact).max()
    np.testing.assert_allclose(matrix[:3], exact[:3], rtol=1e-10, atol=1e-12 * scale)
    np.testing.assert_allclose(matrix[3:, :3], exact[3:, :3], rtol=1e-10, atol=1e-12 * scale)
    # An arm r under a force f, turned by w: (w x r) x f = r (f . w) - w (r . f).
    geometric = arm @ force.T - np.sum(arm * force) * np.eye(3)
    np.testing.assert_allclose(matrix[3:, 3:] - geometric, exact[3:, 3:], rtol=1e-9, atol=1e-12 * scale)


def test_the_matrix_is_symmetric_positive_and_solved_exactly(found):
    r, matrix, exact, _, _, direction, step = found
    assert np.linalg.eigvalsh(matrix).min() > 0
    np.testing.assert_allclose(direction, np.linalg.solve(matrix, r), rtol=1e-8)
    np.testing.assert_allclose(step, np.linalg.solve(exact, r), rtol=1e-8)


def test_weights_are_shares_of_the_weight(stage):
    *_, problem = stage
    principal = np.array(INERTIA)[[0, 3, 5]]
    expected = [*(1 / (MASS * 9.81),) * 3, *1 / (9.81 * np.sqrt(MASS * principal))]
    np.testing.assert_allclose(weights(problem)[:, 0, 0], expected, rtol=1e-13)
