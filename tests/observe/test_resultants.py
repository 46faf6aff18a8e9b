"""Contact summed by pair, by vertex and over time: a box that slides on a slab, and a ball beside them."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim as js

H = 0.004


@functools.cache
def scene():
    """A box slides on a slab that rests on the ground; a ball lands on the ground apart from both."""
    contact = js.ContactParams(coulomb_friction_coefficient=0.3)
    scene = js.Scene()
    scene.add_plane(contact=contact, name="ground")
    scene.add_rigid(js.Box((0.2, 0.2, 0.02)), mass=2.0, position=(0, 0, 0.0199), contact=contact, name="slab")
    scene.add_rigid(
        js.Box((0.05, 0.04, 0.03)),
        mass=1.0,
        position=(0.01, 0.02, 0.0697),
        linear_velocity=(0.3, 0.1, 0.0),
        contact=contact,
        name="box",
    )
    scene.add_rigid(
        js.Sphere(0.03), mass=0.1, position=(0.6, 0, 0.0312), linear_velocity=(0, 0, -1.0), contact=contact, name="ball"
    )
    model, state = scene.build(jnp.float64)
    return model, state, jax.jit(lambda s: js.step(model, s, None, H))


@functools.cache
def reports():
    _, state, step = scene()
    seen = []
    for _ in range(3):
        state, report = step(state)
        seen.append(report)
    return seen


def test_the_resultant_is_the_pairs_force_moved_to_the_pressure_centroid():
    model, report = scene()[0], reports()[2]
    pair = js.contact_resultant(model, report, "box", "slab")
    about_com = js.contact_force(model, report, "box", "slab")
    np.testing.assert_allclose(pair.wrench.force, about_com.force, rtol=1e-12)
    assert pair.normal_force > 1.0 and pair.area > 0
    moved = about_com.shift(js.com_position(model, report.stage.after, "box"), pair.center)
    np.testing.assert_allclose(pair.wrench.torque, moved.torque, atol=1e-12 * pair.normal_force)
    # Normal forces have no torque in the plane there; friction acts in that plane, within the depth of the contact.
    assert np.linalg.norm(pair.wrench.torque[:2]) < 1e-3 * pair.normal_force


def test_seen_from_the_other_actor_the_resultant_is_opposite():
    model, report = scene()[0], reports()[2]
    mine, theirs = (js.contact_resultant(model, report, *names) for names in (("box", "slab"), ("slab", "box")))
    np.testing.assert_allclose(mine.wrench.force, -theirs.wrench.force, rtol=1e-12)
    np.testing.assert_allclose(mine.wrench.torque, -theirs.wrench.torque, atol=1e-12)
    np.testing.assert_allclose(mine.center, theirs.center, rtol=1e-12)


def test_without_contact_the_resultant_is_zero_at_the_com_and_so_is_its_derivative():
    model, report = scene()[0], reports()[2]
    apart = js.contact_resultant(model, report, "box", "ball")
    np.testing.assert_array_equal(apart.wrench.force, 0.0)
    np.testing.assert_array_equal(apart.wrench.torque, 0.0)
    np.testing.assert_array_equal(apart.center, js.com_position(model, report.stage.after, "box"))

    def torque(q):
        moved = eqx.tree_at(lambda r: r.stage.after.q, report, q)
        return js.contact_resultant(model, moved, "box", "ball").wrench.torque.sum()

    np.testing.assert_array_equal(jax.grad(torque)(report.stage.after.q), 0.0)


def test_the_centroid_follows_a_shift_of_the_box_by_its_derivative():
    model, report = scene()[0], reports()[2]

    def center(shift):
        q = report.stage.after.q.at[7:10].add(shift)
        return js.contact_resultant(model, eqx.tree_at(lambda r: r.stage.after.q, report, q), "box", "slab").center

    slope = jax.jacfwd(center)(jnp.zeros(3))
    reverse = jax.jacrev(center)(jnp.zeros(3))
    np.testing.assert_allclose(slope, reverse, atol=1e-12)
    step = 1e-6
    for k in range(3):
        e = step * jnp.eye(3)[k]
        np.testing.assert_allclose(slope[:, k], (center(e) - center(-e)) / (2 * step), atol=1e-6)


def test_vertex_forces_keep_force_and_torque():
    model, report = scene()[0], reports()[2]
    after = report.stage.after
    forces = js.node_forces(model, report, "slab")
    points = js.contact_points(model, report)
    own = (points.actor_A == 1) & points.active
    np.testing.assert_allclose(forces.sum(0), points.force[own].sum(0), rtol=1e-12)
    vertices = js.pose(model, after, "slab").apply(model.vertices(model.body("slab")))
    torque = np.cross(points.position[own], points.force[own]).sum(0)
    np.testing.assert_allclose(np.cross(vertices, forces).sum(0), torque, atol=1e-9)
    assert np.linalg.norm(forces.sum(0)) > 1.0
    with pytest.raises(ValueError, match="'ground' is static"):
        js.node_forces(model, report, "ground")


def test_contact_is_found_when_the_ball_lands_and_lost_when_it_is_lifted():
    model, _, step = scene()
    ground, slab, box, ball = range(4)
    down = reports()[2]
    _, up = step(js.set_pose(model, down.stage.after, "ball", (0.6, 0.0, 0.5)))
    assert js.touching(model, down)[ground, ball] and not js.touching(model, up)[ground, ball]
    landing, lifting = js.contact_changes(model, up, down), js.contact_changes(model, down, up)
    assert landing.found[ground, ball] and landing.found[ball, ground] and landing.found.sum() == 2
    assert lifting.lost[ground, ball] and lifting.lost.sum() == 2 and not lifting.found.any()
    for changes in (landing, lifting):
        assert changes.kept[slab, box] and changes.kept[ground, slab] and not changes.kept[box, ball]


def test_a_diverged_step_touches_nothing():
    model, state, step = scene()
    _, report = step(js.set_velocity(model, state, "ball", (jnp.nan, 0.0, 0.0)))
    assert report.status == js.Status.DIVERGED
    assert not js.touching(model, report)[3].any()
