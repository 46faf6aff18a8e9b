"""Derivatives of whole rollouts against central differences (float64, `SolverParams.gradient()`)."""

import functools
import json
from pathlib import Path

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim as js

PARAMS = js.SolverParams.gradient(abs_tol=1e-13)
CONTACT = (
    "penalty_coefficient",
    "coulomb_friction_coefficient",
    "friction_falloff_vel",
    "viscous_friction_coefficient",
    "normal_viscous_damping_coefficient",
)
PLANE_CONTACT = ("penalty_smoothing_half_distance", "penalty_threshold_default")


@functools.cache
def tumbling():
    """A cube that bounces, slides and spins: every mechanism of the law takes part."""
    scene = js.Scene()
    contact = js.ContactParams(
        penalty_coefficient=1e7,
        coulomb_friction_coefficient=0.3,
        friction_falloff_vel=0.05,
        viscous_friction_coefficient=0.05,
        normal_viscous_damping_coefficient=0.1,
    )
    scene.add_plane(contact=contact, name="ground")
    scene.add_rigid(
        js.Box((0.05, 0.04, 0.06)),
        mass=1.0,
        position=(0, 0, 0.07),
        quaternion=js.rotation.from_rotation_vector((0.2, -0.1, 0.3)),
        linear_velocity=(0.8, 0.3, -0.5),
        angular_velocity=(1.0, -2.0, 3.0),
        contact=contact,
        name="cube",
    )
    return scene.build()


def inputs(model, state):
    """Every kind of input that a rollout is differentiable in, at its present value."""
    cube = js.pose(model, state, "cube")
    twist = js.velocity(model, state, "cube")
    return {
        "position": cube.position,
        "rotation": jnp.zeros(3),
        "linear_velocity": twist.linear,
        "angular_velocity": twist.angular,
        "force": jnp.array([[0.3, -0.2, 0.1], [0.1, 0.2, -0.3]]),
        "gravity": model.gravity,
        "mass": js.get(model, "cube", "mass"),
        "center_of_mass": js.get(model, "cube", "center_of_mass"),
        "moment_of_inertia": js.get(model, "cube", "moment_of_inertia"),
        "half_extents": js.get(model, "cube", "half_extents"),
        "plane_velocity": jnp.array([0.1, 0.05, 0.0, 0.0, 0.0, 0.2]),
        "cube_contact": {name: js.get(model, "cube", name) for name in CONTACT},
        "plane_contact": {name: js.get(model, "ground", name) for name in PLANE_CONTACT},
    }


def final(model, state, x, steps):
    model = js.resize(model, "cube", half_extents=x["half_extents"])
    model = js.replace(model, gravity=x["gravity"])
    model = js.replace(
        model,
        "cube",
        mass=x["mass"],
        center_of_mass=x["center_of_mass"],
        moment_of_inertia=x["moment_of_inertia"],
        **x["cube_contact"],
    )
    model = js.replace(model, "ground", **x["plane_contact"])
    turned = js.rotation.multiply(
        js.rotation.from_rotation_vector(x["rotation"]), js.pose(model, state, "cube").quaternion
    )
    state = js.set_pose(model, state, "cube", x["position"], turned)
    state = js.set_velocity(model, state, "cube", x["linear_velocity"], x["angular_velocity"])
    control = js.Control.zeros(model)
    controls = jax.vmap(lambda f: js.apply_force(model, control, "cube", f))(x["force"])
    controls = js.Control(controls.loads, jnp.broadcast_to(x["plane_velocity"][:, None], (2, 6, 1)))
    return js.rollout(model, state, controls, 0.005, PARAMS, steps=steps, substeps=steps // 2)


def loss(x, steps=100):
    model, state = tumbling()
    end, trajectory = final(model, state, x, steps)
    weights = jnp.array([1.0, 0.5, 2.0, 0.3, -0.2, 0.1, 0.4])
    value = weights @ end.q + 0.1 * jnp.sum(end.v * jnp.array([1.0, -1.0, 0.5, 0.1, 0.2, -0.1]))
    return value, jnp.all(trajectory.summaries.status == js.Status.CONVERGED)


@pytest.fixture(scope="module")
def tumble():
    model, state = tumbling()
    x = inputs(model, state)
    flat, unravel = jax.flatten_util.ravel_pytree(x)
    scale = jnp.where(flat == 0, 0.1, jnp.abs(flat))
    value_and_grad = jax.jit(jax.value_and_grad(loss, has_aux=True))
    (_, converged), gradient = value_and_grad(x)
    assert converged

    # One batch of worlds: every coordinate up and down, at two step sizes.
    steps = (2e-6, 1e-6)
    shifts = jnp.concatenate([s * sign * jnp.diag(scale) for s in steps for sign in (1, -1)])
    values, all_converged = jax.jit(jax.vmap(lambda d: loss(unravel(flat + d))))(shifts)
    assert all_converged.all()
    up2, down2, up1, down1 = np.split(np.asarray(values), 4)
    coarse, fine = (up2 - down2) / (2 * steps[0]), (up1 - down1) / (2 * steps[1])
    return x, flat, unravel, scale, jax.flatten_util.ravel_pytree(gradient)[0] * scale, coarse, fine


def test_reverse_mode_matches_central_differences_in_every_input(tumble):
    _, _, _, _, gradient, coarse, fine = tumble
    size = np.linalg.norm(gradient)
    np.testing.assert_allclose(coarse, fine, atol=1e-6 * size)
    np.testing.assert_allclose(gradient, (4 * fine - coarse) / 3, atol=1e-7 * size)


def test_no_input_has_a_zero_gradient(tumble):
    gradient = tumble[4]
    # The coordinates that symmetry leaves without effect are none in this scene.
    assert np.all(np.abs(gradient) > 0)


def test_forward_mode_equals_reverse_mode(tumble):
    x, _, unravel, scale, gradient, _, _ = tumble
    direction = jax.random.normal(jax.random.key(1), scale.shape)
    _, tangent = jax.jit(lambda d: jax.jvp(lambda y: loss(y)[0], (x,), (d,)))(unravel(direction * scale))
    np.testing.assert_allclose(tangent, direction @ gradient, rtol=1e-9)


def hessian_vector_product(advance):
    """The product, and the difference of gradients it should equal, of two steps on the plane."""
    model, state = tumbling()
    state = js.set_pose(model, state, "cube", (0.0, 0.0, 0.0399), (0.0, 0.0, 0.0, 1.0))
    low = js.resize(model, "cube", half_extents=(0.05, 0.05, 0.04))

    def value(v):
        end = advance(low, js.set_velocity(low, state, "cube", v[:3], v[3:]))
        return jnp.sum(end.q * jnp.arange(1.0, 8.0)) + end.v @ end.v

    v = jnp.array([0.3, 0.1, -0.2, 0.2, -0.4, 0.5])
    d = jnp.array([0.4, -0.3, 0.2, 0.5, 0.1, -0.6])
    gradient = jax.jit(jax.grad(value))
    product = jax.jit(lambda v, d: jax.jvp(jax.grad(value), (v,), (d,))[1])(v, d)
    return product, (gradient(v + 1e-5 * d) - gradient(v - 1e-5 * d)) / 2e-5


def test_hessian_vector_product_of_composed_steps_matches_differences_of_the_gradient():
    def two_steps(model, state):
        for _ in range(2):
            state, _ = js.step(model, state, None, 0.005, PARAMS)
        return state

    product, by_difference = hessian_vector_product(two_steps)
    np.testing.assert_allclose(product, by_difference, atol=1e-5 * np.linalg.norm(by_difference))


@pytest.mark.slow  # three compilations of a rollout
def test_hessian_vector_product_of_a_rollout_matches_differences_of_the_gradient():
    product, by_difference = hessian_vector_product(
        lambda model, state: js.rollout(model, state, None, 0.005, PARAMS, steps=2)[0]
    )
    np.testing.assert_allclose(product, by_difference, atol=1e-5 * np.linalg.norm(by_difference))


@functools.cache
def step_gradient(dtype):
    scene = js.Scene()
    scene.add_plane(name="ground")
    scene.add_rigid(js.Box((0.05, 0.05, 0.05)), name="cube")
    model, state = scene.build(dtype)

    def value(position, rotation, linear, angular, mu):
        world = js.replace(model, "cube", coulomb_friction_coefficient=mu)
        start = js.set_pose(world, state, "cube", position, js.rotation.from_rotation_vector(rotation))
        start = js.set_velocity(world, start, "cube", linear, angular)
        end, report = js.step(world, start, None, 0.01, js.SolverParams.gradient())
        return jnp.sum(end.q) + jnp.sum(end.v), report.status

    return jax.jit(jax.vmap(jax.grad(value, argnums=(0, 1, 2, 3, 4), has_aux=True)))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_step_gradients_are_finite_for_4096_random_states(dtype):
    rng = np.random.default_rng(0)
    n = 4096
    height = rng.choice([0.2, 0.051, 0.05, 0.0499, 0.045, 0.03], n)  # apart, touch-down distance, grazing, deep
    rotation = rng.standard_normal((n, 3)) * rng.choice([0.0, 1e-9, 0.3, np.pi], (n, 1))
    linear = rng.standard_normal((n, 3)) * rng.choice([0.0, 1e-12, 0.01, 1.0], (n, 1))
    angular = rng.standard_normal((n, 3)) * rng.choice([0.0, 1e-12, 1.0, 30.0], (n, 1))
    position = np.stack([np.zeros(n), np.zeros(n), height], -1)
    args = [jnp.asarray(a, dtype) for a in (position, rotation, linear, angular, np.full(n, 0.5))]
    gradients, status = step_gradient(dtype)(*args)
    for g in gradients:
        assert np.isfinite(g).all()
    assert not (status == js.Status.DIVERGED).any()


def test_gradients_match_finite_differences_of_the_reference_engine():
    data = Path(__file__).parent / "data"
    reference = json.loads((data / "gradients.json").read_text())["sliding_cube"]
    with np.load(data / "d_slide.npz") as file:
        mesh = js.TriMesh(file["mesh_body_V"], file["mesh_body_F"])
    contact = js.ContactParams(coulomb_friction_coefficient=0.3)
    scene = js.Scene()
    scene.add_plane(contact=contact, name="ground")
    scene.add_rigid(mesh, density=1000.0, contact=contact, name="cube")
    model, state = scene.build()
    params = js.SolverParams(explicit_normals=True, abs_tol=1e-12)

    def end(x):
        world = model
        for actor in ("ground", "cube"):
            world = js.replace(world, actor, coulomb_friction_coefficient=x["mu"])
        start = js.set_pose(world, state, "cube", x["position"])
        start = js.set_velocity(world, start, "cube", x["v0"], x["w0"])
        control = js.apply_force(world, js.Control.zeros(world), "cube", jnp.stack([x["force"], 0.0, 0.0]))
        controls = jax.tree.map(lambda c: c[None], control)
        final_state, _ = js.rollout(world, start, controls, 1 / 240, params, steps=40, substeps=40)
        position = js.pose(world, final_state, "cube").position
        return position[0] + 0.5 * position[1], position

    x = {
        "position": jnp.array([0.0, 0.0, 0.0497]),
        "v0": jnp.array(reference["v0"]),
        "w0": jnp.array(reference["w0"]),
        "force": jnp.array(0.0),
        "mu": jnp.array(0.3),
    }
    gradient, position = jax.jit(jax.grad(end, has_aux=True))(x)
    expected = reference["finite_difference"]
    np.testing.assert_allclose(position, reference["x_T"], atol=1e-11)
    # The engine's own differences are only so good: their steps are 1e-5, for the height 1e-7.
    np.testing.assert_allclose(gradient["v0"], expected["v0"], atol=1e-7)
    np.testing.assert_allclose(gradient["w0"], expected["w0"], atol=1e-8)
    np.testing.assert_allclose(gradient["position"], expected["position"], rtol=1e-5)
    np.testing.assert_allclose(gradient["force"], expected["constant_force_x"], rtol=1e-6)
    np.testing.assert_allclose(gradient["mu"], expected["mu_on_both_actors"], rtol=1e-6)


def test_reverse_mode_of_a_rollout_solves_no_step_again():
    """One loop of unknown length in the whole program: the forward solve. The rest are scans over the steps."""
    model, state = tumbling()

    def height(velocity):
        start = js.set_velocity(model, state, "cube", velocity)
        return js.rollout(model, start, None, 0.005, PARAMS, steps=4)[0].q[2]

    program = jax.jit(jax.grad(height)).lower(jnp.ones(3)).compile().as_text()
    loops = [line for line in program.splitlines() if " while(" in line]
    assert len(loops) >= 3
    assert sum("known_trip_count" not in line for line in loops) == 1
