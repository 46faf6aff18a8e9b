"""What stands in for a body where others touch it: AUTO and the stand-ins, exact meshes among them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim as js

CUBE = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
FACES = [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1]]
FACES += [[2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]]


def cube(half):
    return js.TriMesh(CUBE * half, np.array(FACES))


def wedge(half):
    """Five faces of eight triangles: another count than a cube's."""
    points = np.array([[x, -1, z] for x in (-1, 1) for z in (-1, 1)] + [[-1, 1, -1], [1, 1, -1]], float)
    faces = [[0, 2, 3], [0, 3, 1], [0, 4, 5], [0, 5, 2], [1, 3, 5], [1, 5, 4], [0, 1, 4], [2, 5, 3]]
    return js.TriMesh(points * half, np.array(faces))


def pile(collider, dtype=jnp.float64):
    """A tilted cube falls on one that stands still, beside which a wedge lies; all three are meshes."""
    scene = js.Scene()
    tilt = js.rotation.from_rotation_vector((0.2, 0.1, 0.3))
    scene.add_rigid(cube(0.05), position=(0, 0, 0.05), static=True, collider=collider, name="low")
    scene.add_rigid(wedge(0.05), position=(0.1, 0, 0.05), static=True, collider=js.ColliderType.MESH, name="wedge")
    scene.add_rigid(
        cube(0.04), mass=1.0, position=(0.01, 0.005, 0.143), quaternion=tilt, linear_velocity=(0, 0, -1), name="high"
    )
    return scene.build(dtype)


def test_auto_says_what_it_became():
    scene = js.Scene()
    shapes = {"PLANE": js.Plane(), "SPHERE": js.Sphere(0.1), "BOX": js.Box((0.1, 0.1, 0.1)), "SDF": cube(0.1)}
    shapes |= {"CAPSULE": js.Capsule(0.1, 0.2), "CYLINDER": js.Cylinder(0.1, 0.2)}
    for name, shape in shapes.items():
        scene.add_rigid(shape, static=True, name=name)
    model, _ = scene.build()
    assert {b.collider.name: b.name for b in model.bodies} == {name: name for name in shapes}


def test_an_exact_cube_of_triangles_collides_as_a_box_does():
    runs = {}
    for collider in (js.ColliderType.MESH, js.ColliderType.BOX):
        model, state = pile(collider)
        _, trajectory = js.rollout(model, state, None, 0.005, steps=12)
        assert np.all(trajectory.summaries.status == js.Status.CONVERGED)
        runs[collider.name] = np.asarray(trajectory.states.q)
    assert np.abs(runs["BOX"][-1, 0] - runs["BOX"][0, 0]) > 1e-6, "the cubes never met"
    np.testing.assert_allclose(runs["MESH"], runs["BOX"], atol=1e-9)


def test_worlds_of_exact_meshes_equal_single_ones():
    model, state = pile(js.ColliderType.MESH)
    kicks = jnp.array([[0.0, 0.0, -1.0], [0.2, 0.1, -1.5]])
    step = jax.jit(lambda v: js.step(model, js.set_velocity(model, state, "high", v), None, 0.01)[0].q)
    np.testing.assert_allclose(jax.vmap(step)(kicks), jnp.stack([step(v) for v in kicks]), atol=1e-12)


def test_an_exact_collider_grows_with_its_mesh_and_passes_the_derivative():
    model, state = pile(js.ColliderType.MESH)

    def least(scale):
        points = js.evaluate_contacts(js.resize(model, "low", scale=scale), state)
        high = points.actor_A == [b.name for b in model.bodies].index("high")
        on_low = high & (points.actor_B == [b.name for b in model.bodies].index("low"))
        return jnp.min(jnp.where(on_low, points.distance, jnp.inf))

    slope = jax.grad(least)(1.0)
    assert slope == pytest.approx(float(least(1.0 + 1e-6) - least(1.0 - 1e-6)) / 2e-6, rel=1e-6)
    assert slope < -0.04  # its top, half an edge high, rises under a little tilted corner


def test_an_open_mesh_is_refused_as_an_exact_collider_by_the_actors_name():
    scene = js.Scene()
    scene.add_plane()
    scene.add_rigid(js.Box((0.1, 0.1, 0.1)), name="block")
    inertia = {"mass": 1.0, "center_of_mass": (0, 0, 0), "moment_of_inertia": (1, 0, 0, 1, 0, 1)}
    sheet = js.TriMesh(CUBE, np.array(FACES[:-1]))
    scene.add_rigid(sheet, collider=js.ColliderType.MESH, name="sheet", **inertia)
    with pytest.raises(ValueError, match=r"actor 'sheet': collider MESH.*3 edges"):
        scene.build()
