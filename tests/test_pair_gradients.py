"""Derivatives through contact of two free bodies, against central differences (float64)."""

import functools

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim as js
from jaxsim.geometry.shapes import surface_of

STEPS, H = 4, 0.004
OVERRIDDEN = ("penalty_coefficient", "coulomb_friction_coefficient")
PARAMS = js.SolverParams.gradient(abs_tol=1e-12)


def block(half):
    surface = surface_of(js.Box(half))
    return js.TriMesh(surface.vertices, surface.triangles)


@functools.cache
def collision():
    """A spinning box hits a mesh off its centre, both free; they slide on each other while the loss is read."""
    scene = js.Scene()
    contact = js.ContactParams(
        penalty_coefficient=1e7,
        penalty_threshold_default=3e-3,
        coulomb_friction_coefficient=0.3,
        friction_falloff_vel=0.05,
        viscous_friction_coefficient=0.05,
        normal_viscous_damping_coefficient=0.1,
    )
    common = {"contact": contact, "mass": 1.0}
    scene.add_rigid(block((0.06, 0.05, 0.03)), angular_velocity=(0.1, -0.2, 0.1), name="anvil", **common)
    scene.add_rigid(
        js.Box((0.03, 0.03, 0.03)),
        position=(0.02, 0.01, 0.0605),
        quaternion=js.rotation.from_rotation_vector((0.05, -0.03, 0.2)),
        linear_velocity=(0.3, 0.1, -0.8),
        angular_velocity=(0.5, -0.4, 1.0),
        name="hammer",
        **common,
    )
    scene.override_pair("anvil", "hammer", penalty_coefficient=2e7, coulomb_friction_coefficient=0.4)
    return scene.build(jnp.float64)


def inputs():
    model, state = collision()
    x = {}
    for name in ("anvil", "hammer"):
        x[name] = {"position": js.pose(model, state, name).position, "rotation": jnp.zeros(3)}
    x["scale"] = jnp.ones(())
    x["sdf_values"] = js.get(model, "anvil", "sdf_values")
    x["pair"] = {
        f: js.get(model, ("anvil", "hammer"), f) for f in ("penalty_coefficient", "coulomb_friction_coefficient")
    }
    return x


def losses(x):
    """Of the motion, of the force on one body, and of the wrench from the other alone; and whether all solved."""
    model, state = collision()
    model = js.resize(model, "anvil", scale=x["scale"])
    model = js.replace(model, "anvil", sdf_values=x["sdf_values"] * x["scale"])
    model = js.replace(model, ("hammer", "anvil"), **x["pair"])
    for name in ("anvil", "hammer"):
        turned = js.rotation.multiply(
            js.rotation.from_rotation_vector(x[name]["rotation"]), js.pose(model, state, name).quaternion
        )
        velocity = js.velocity(model, state, name)
        state = js.set_pose(model, state, name, x[name]["position"], turned)
        state = js.set_velocity(model, state, name, velocity.linear, velocity.angular)
    state, trajectory = js.rollout(model, state, None, H, PARAMS, steps=STEPS - 1)
    state, report = js.step(model, state, None, H, PARAMS)
    weights = jnp.sin(1.0 + jnp.arange(14.0))
    wrench = js.contact_force(model, report, "anvil", "hammer")
    values = [
        weights @ state.q + 0.01 * jnp.sin(jnp.arange(12.0)) @ state.v,
        js.contact_force(model, report, "hammer").force @ jnp.array([0.3, -0.5, 1.0]),
        wrench.torque @ jnp.array([0.7, 0.2, -0.4]) + 0.1 * wrench.force[2],
    ]
    converged = jnp.all(trajectory.summaries.status == js.Status.CONVERGED) & jnp.all(
        report.status == js.Status.CONVERGED
    )
    return jnp.stack(values), converged


@pytest.fixture(scope="module")
def derivatives():
    """Jacobian in every coordinate but the nodes, along two directions of those; by reverse mode and differences."""
    x = inputs()
    nodes = x.pop("sdf_values")
    flat, unravel = jax.flatten_util.ravel_pytree(x)
    scale = jnp.where(jnp.abs(flat) > 0.5, jnp.abs(flat), 0.1)
    sway = 0.01 * jax.random.normal(jax.random.key(0), (2, *nodes.shape))

    def moved(d):
        return unravel(flat + d[:-2] * scale) | {"sdf_values": nodes + jnp.tensordot(d[-2:], sway, axes=1)}

    n = flat.size + 2
    by_reverse = jax.jit(jax.jacrev(lambda d: losses(moved(d)), has_aux=True))
    jacobian, converged = by_reverse(jnp.zeros(n))
    assert converged
    forward = jax.jit(lambda t: jax.jvp(lambda d: losses(moved(d))[0], (jnp.zeros(n),), (t,))[1])
    shifts = jnp.concatenate([s * sign * jnp.eye(n) for s in (2e-6, 1e-6) for sign in (1, -1)])
    values, all_converged = jax.jit(jax.vmap(lambda d: losses(moved(d))))(shifts)
    assert all_converged.all()
    up2, down2, up1, down1 = np.split(np.asarray(values), 4)
    coarse, fine = (up2 - down2).T / 4e-6, (up1 - down1).T / 2e-6
    return np.asarray(jacobian), forward, (4 * fine - coarse) / 3


@pytest.mark.parametrize("row", range(3), ids=["motion", "force", "wrench of the pair"])
def test_reverse_mode_matches_central_differences_in_both_poses_nodes_scale_and_pair(derivatives, row):
    jacobian, _, differences = (derivatives[0][row], None, derivatives[2][row])
    size = np.linalg.norm(jacobian)
    np.testing.assert_allclose(jacobian, differences, atol=1e-6 * size)
    assert np.all(np.abs(jacobian) > 1e-9 * size), "an input has no effect"


def test_forward_mode_equals_reverse_mode(derivatives):
    jacobian, forward, _ = derivatives
    direction = np.random.default_rng(1).standard_normal(jacobian.shape[1])
    np.testing.assert_allclose(forward(jnp.asarray(direction)), jacobian @ direction, rtol=1e-9)


def test_a_balls_force_turns_with_the_normal_of_the_ball_it_rests_on():
    """Off centre, the slope of the force has a part from the turning of the normals: load times curvature."""
    scene = js.Scene()
    for name, x in (("low", 0.0), ("high", 0.06)):
        scene.add_rigid(js.Sphere(0.05), position=(x, 0.0, 0.0 if name == "low" else 0.0795), name=name)
    scene.disable_contact("low", "high", one_way=True)
    model, state = scene.build(jnp.float64)
    start = js.pose(model, state, "high")

    def points(shift):
        return js.evaluate_contacts(model, js.set_pose(model, state, "high", start.position + shift, start.quaternion))

    force = lambda shift: jnp.sum(points(shift).force, axis=0)
    fixed = jax.lax.stop_gradient(points(jnp.zeros(3)))
    held = lambda shift: jnp.sum(jnp.sum(points(shift).force * points(shift).normal, -1)[:, None] * fixed.normal, 0)
    whole, without_turning = jax.jacfwd(force)(jnp.zeros(3)), jax.jacfwd(held)(jnp.zeros(3))
    differences = np.stack([force(1e-7 * e) - force(-1e-7 * e) for e in np.eye(3)], axis=1) / 2e-7
    size = np.abs(whole).max()
    np.testing.assert_allclose(whole, differences, atol=1e-6 * size)

    load = jnp.sum(fixed.force * fixed.normal, -1)
    n = fixed.normal
    curvature = (jnp.eye(3)[None] - n[:, :, None] * n[:, None, :]) / (0.05 + fixed.distance)[:, None, None]
    np.testing.assert_allclose(whole - without_turning, jnp.sum(load[:, None, None] * curvature, 0), atol=1e-9 * size)
    # Along the direction in which the gap does not change it is nearly all there is.
    along = jnp.array([0.0, 1.0, 0.0])
    share = jnp.linalg.norm((whole - without_turning) @ along) / jnp.linalg.norm(whole @ along)
    assert share > 0.1
