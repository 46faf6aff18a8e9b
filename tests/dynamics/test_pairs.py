"""Contact between free bodies: the slope of their residual, reactions, momentum, islands."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim as js
from jaxsim.contact.law import ContactOptions
from jaxsim.dynamics.linear import newton_direction, solve_exactly
from jaxsim.dynamics.problem import identity_displacement, move, stage_problem
from jaxsim.dynamics.residual import assemble, prepare, residual, slope

H = 0.005


def pile(capacity: int = 12, count: int = 3, dtype="float64"):
    """Boxes pressed askew upon one another, and one far away."""
    scene = js.Scene()
    scene.add_plane()
    for i in range(count - 1):
        scene.add_rigid(
            js.Box((0.05, 0.05, 0.05)),
            mass=1.0 + i,
            position=(0.01 * i, -0.01 * i, 0.0495 + 0.0985 * i),
            quaternion=js.rotation.from_rotation_vector((0.002 * i, -0.003 * i, 0.1 * i)),
            linear_velocity=(0.1 * i, 0.05, -0.01 * i),
            angular_velocity=(0.1, 0.2 * i, 0.3),
        )
    scene.add_rigid(js.Sphere(0.04), mass=0.5, position=(1.0, 0.0, 0.0385), linear_velocity=(0.3, 0.0, 0.0))
    return scene.build(dtype, contact_capacity=capacity)


@pytest.fixture(scope="module")
def systems():
    """At a displaced iterate: the exact slope by blocks and by autodiff of the whole residual, and both solves."""
    model, state = pile()

    @jax.jit
    def all_of_it(model, state):
        problem, _ = stage_problem(model, state, None, jnp.asarray(H), ContactOptions())
        n = model.n_dynamic
        z = 1e-4 * jax.random.normal(jax.random.key(0), (6, n, 1))
        at = move(identity_displacement(problem), z), problem
        zero = jnp.zeros_like(z)
        K = slope(zero, at)
        whole = jax.jacfwd(lambda z: residual(z, at))(zero)
        r, A = assemble(prepare(problem), at[0], jnp.zeros((n, 1), bool))
        islands = problem.near.islands
        d = newton_direction(A, r, islands, jnp.ones((n, 1), bool))
        x = solve_exactly(K, r)
        return K, K @ x, K.transposed().dense(), whole, r, A, A @ d, islands.label

    return all_of_it(model, state)


def flattened(whole):
    """(row, body, 1, column, body, 1) as a matrix ordered body by body."""
    whole = np.asarray(whole)[:, :, 0, :, :, 0]
    n = whole.shape[1]
    return whole.transpose(1, 0, 3, 2).reshape(6 * n, 6 * n)


def test_slope_by_pairs_is_the_jacobian_of_the_residual(systems):
    K, _, transposed, whole, *_ = systems
    expected = flattened(whole)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(K.dense()[0], expected, atol=1e-12 * scale)
    np.testing.assert_allclose(transposed[0], expected.T, atol=1e-12 * scale)
    assert np.abs(expected - expected.T).max() > 1e-6 * scale  # friction and turning normals make it unsymmetric


def test_the_solvers_matrix_is_symmetric_positive_and_close_to_the_slope(systems):
    K, _, _, _, _, A, *_ = systems
    matrix, exact = np.asarray(A.dense()[0]), np.asarray(K.dense()[0])
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12 * np.abs(matrix).max())
    assert np.linalg.eigvalsh(matrix).min() > 0
    assert np.linalg.norm(matrix - exact) < 0.2 * np.linalg.norm(exact)


def test_both_solves_solve_their_systems(systems):
    _, Kx, _, _, r, _, Ad, _ = systems
    scale = np.abs(r).max()
    np.testing.assert_allclose(Kx, r, atol=1e-9 * scale)
    np.testing.assert_allclose(Ad, r, atol=1e-9 * scale)


def test_touching_bodies_form_an_island_and_the_distant_one_is_alone(systems):
    *_, label = systems
    assert label[:, 0].tolist() == [0, 0, 2]


@pytest.fixture(scope="module")
def collision():
    """Two boxes in free flight that meet off centre, with friction."""
    scene = js.Scene(gravity=(0, 0, 0))
    for i, sign in enumerate((-1.0, 1.0)):
        scene.add_rigid(
            js.Box((0.05, 0.05, 0.05)),
            mass=1.0 + i,
            position=(sign * 0.052, sign * 0.01, 0.0),
            quaternion=js.rotation.from_rotation_vector((0.0, 0.1 * i, 0.05)),
            linear_velocity=(-sign * 0.5, 0.1 * sign, 0.0),
            name=f"box{i}",
        )
    model, state = scene.build("float64")
    final, trajectory = js.rollout(model, state, None, 0.002, js.SolverParams.gradient(), steps=20)
    return model, state, final, trajectory


def test_action_equals_reaction_and_linear_momentum_is_conserved(collision):
    model, state, final, trajectory = collision
    momentum = [np.asarray(s.v.reshape(2, 6)[:, :3] * model.mass[:, None]).sum(0) for s in (state, final)]
    np.testing.assert_allclose(momentum[1], momentum[0], atol=1e-10)
    assert np.abs(final.v - state.v).max() > 0.1  # they did collide
    forces = []
    for k in range(20):
        report = trajectory.report(k)
        on = [js.contact_force(model, report, f"box{i}", f"box{1 - i}") for i in range(2)]
        np.testing.assert_allclose(on[0].force, -on[1].force, rtol=1e-12)
        com = report.stage.after.q.reshape(2, 7)[:, :3]
        about_0 = on[1].torque + np.cross(com[1] - com[0], on[1].force)
        np.testing.assert_allclose(about_0, -on[0].torque, atol=1e-12 * max(1.0, np.abs(on[0].force).max()))
        forces.append(np.linalg.norm(on[0].force))
    assert max(forces) > 10.0


def test_contact_points_name_both_actors_and_sum_to_the_force(collision):
    model, *_, trajectory = collision
    report = trajectory.report(
        max(range(20), key=lambda k: float(jnp.abs(trajectory.states.v[k + 1] - trajectory.states.v[k]).max()))
    )
    points = js.contact_points(model, report)
    on_0 = points.force[points.actor_A == 0].sum(0) - points.force[points.actor_B == 0].sum(0)
    np.testing.assert_allclose(on_0, js.contact_force(model, report, "box0").force, rtol=1e-10)
    assert set(np.unique(points.actor_A)) == set(np.unique(points.actor_B)) == {0, 1}
