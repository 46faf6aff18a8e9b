"""Distances asked for at will, near and far."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim as js

QUARTER = (0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5))  # about z: what lies along local x shows along world y
AT = np.array([1.0, 2.0, 3.0])
CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * [0.3, 0.2, 0.1]
FACES = np.array(
    [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1], [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4]]
    + [[1, 5, 7], [1, 7, 3]]
)


@functools.cache
def placed(kind: str):
    """One static collider, turned and far from the origin, and a ball that could meet it."""
    shape = {
        "box": js.Box((0.3, 0.2, 0.1)),
        "mesh": js.TriMesh(CORNERS, FACES),
        "sdf": js.TriMesh(CORNERS, FACES),
        "sphere": js.Sphere(0.2),
        "capsule": js.Capsule(0.1, 0.3),
        "cylinder": js.Cylinder(0.1, 0.3),
    }[kind]
    scene = js.Scene()
    collider = js.ColliderType(kind)
    scene.add_rigid(shape, static=True, position=AT, quaternion=QUARTER, collider=collider, name="it")
    scene.add_rigid(js.Sphere(0.1), mass=1.0)
    return scene.build(jnp.float64)


@pytest.mark.parametrize(
    ("kind", "offset", "expected"),
    [
        ("box", (0.0, 0.5, 0.0), 0.2),
        ("mesh", (0.0, 0.5, 0.0), 0.2),
        ("sdf", (0.0, 0.5, 0.0), 0.2),
        ("box", (4.2, 0.0, 3.1), 5.0),
        ("mesh", (4.2, 0.0, 3.1), 5.0),
        ("box", (0.15, 0.0, 0.0), -0.05),
        ("mesh", (0.15, 0.0, 0.0), -0.05),
        ("sphere", (0.0, -3.0, 4.0), 4.8),
        ("capsule", (0.0, 0.0, 0.9), 0.5),
        ("cylinder", (0.3, 0.0, 0.0), 0.2),
    ],
)
def test_distance_holds_at_any_range_in_the_actors_own_frame(kind, offset, expected):
    model, state = placed(kind)
    found = js.signed_distance(model, state, "it", AT + np.array(offset))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_points_of_any_shape_and_a_moved_actor():
    model, state = placed("box")
    points = AT + np.array([[[0.0, 0.5, 0.0], [0.3, 0.0, 0.0]]])
    np.testing.assert_allclose(js.signed_distance(model, state, "it", points), [[0.2, 0.1]], atol=1e-12)
    moved = js.set_pose(model, state, "it", AT + np.array([0.0, 0.1, 0.0]))
    np.testing.assert_allclose(js.signed_distance(model, moved, "it", points)[0, 0], 0.1, atol=1e-12)


def test_the_gradient_points_away_and_batches_over_worlds():
    model, state = placed("mesh")
    point = jnp.asarray(AT + np.array([0.02, 0.5, 0.03]))
    np.testing.assert_allclose(
        jax.grad(lambda p: js.signed_distance(model, state, "it", p))(point), [0, 1, 0], atol=1e-12
    )
    many = jax.jit(jax.vmap(lambda p: js.signed_distance(model, state, "it", p)))(jnp.stack([point, point + 1.0]))
    np.testing.assert_allclose(many[0], 0.2, atol=1e-12)

    def above(x):
        shifted = js.set_pose(model, state, "it", AT + x * np.array([0.0, 1.0, 0.0]))
        return js.signed_distance(model, shifted, "it", point)

    np.testing.assert_allclose(jax.grad(above)(0.0), -1.0, atol=1e-12)


def test_what_has_no_collider_is_refused():
    scene = js.Scene()
    scene.add_rigid(js.Box((0.1, 0.1, 0.1)), static=True, collider=js.ColliderType.NONE, name="ghost")
    scene.add_rigid(js.TriMesh(CORNERS, FACES), mass=1.0, name="lonely")
    model, state = scene.build()
    with pytest.raises(ValueError, match=r"'ghost' has no collider.*given none"):
        js.signed_distance(model, state, "ghost", np.zeros(3))
    with pytest.raises(ValueError, match=r"'lonely' has no collider.*no other body"):
        js.signed_distance(model, state, "lonely", np.zeros(3))
    model, state = placed("box")
    with pytest.raises(ValueError, match=r"shape \(\.\.\., 3\); got \(2,\)"):
        js.signed_distance(model, state, "it", np.zeros(2))
