"""Signed distances and their gradients, at ordinary points and where distance functions have corners."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.geometry.shapes import Box, Capsule, Cylinder, Plane, Sphere, distance_and_gradient
from jaxsim.math.vector import Vec3

RNG = np.random.default_rng(3)
HALF = np.array([0.3, 0.5, 0.2])
SHAPES = {
    "plane": Plane((1.0, -2.0, 2.0), 0.1),
    "sphere": Sphere(0.4),
    "box": Box(HALF),
    "capsule": Capsule(0.3, 0.2),
    "cylinder": Cylinder(0.3, 0.2),
}


@jax.jit
def distance_gradient(shape, points):
    """Arrays with components first, instead of `Vec3`."""
    distance, gradient = distance_and_gradient(shape, Vec3.of(points))
    return distance, gradient.stack()


def single_distance(shape, point):
    return shape.signed_distance(Vec3.of(point))


derivatives = jax.jit(
    lambda shape, points: jax.vmap(jax.hessian(single_distance, argnums=(0, 1)), (None, 1))(shape, points)
)


def box_by_hand(p):
    """The two textbook cases of one point."""
    beyond = np.maximum(np.abs(p) - HALF, 0.0)
    return np.linalg.norm(beyond) if beyond.any() else -np.min(HALF - np.abs(p))


def cylinder_by_hand(p):
    """The box formula in the half plane through the axis."""
    q = np.array([np.hypot(p[0], p[1]) - 0.3, abs(p[2]) - 0.2])
    return np.linalg.norm(np.maximum(q, 0.0)) if (q > 0).any() else q.max()


POINTS = RNG.uniform(-0.8, 0.8, size=(3, 400))
CLOSED_FORMS = {
    "plane": POINTS.T @ np.array([1, -2, 2]) / 3 - 0.1,
    "sphere": np.linalg.norm(POINTS, axis=0) - 0.4,
    "box": np.array([box_by_hand(p) for p in POINTS.T]),
    "capsule": np.linalg.norm(POINTS.T - np.clip(POINTS[2], -0.2, 0.2)[:, None] * [0, 0, 1], axis=1) - 0.3,
    "cylinder": np.array([cylinder_by_hand(p) for p in POINTS.T]),
}


@pytest.mark.parametrize("name", SHAPES)
def test_distance_is_the_closed_form(name, dtype):
    shape = jax.tree.map(lambda leaf: leaf.astype(dtype), SHAPES[name])
    distance, gradient = distance_gradient(shape, POINTS.astype(dtype))
    assert distance.dtype == gradient.dtype == dtype
    np.testing.assert_allclose(distance, CLOSED_FORMS[name], atol=4 * jnp.finfo(dtype).eps)


@pytest.mark.parametrize("name", SHAPES)
def test_gradient_is_the_unit_central_difference(name):
    shape, step = SHAPES[name], 1e-6
    _, gradient = distance_gradient(shape, POINTS)
    for axis in range(3):
        shift = step * np.eye(3)[:, axis : axis + 1]
        ahead, behind = (distance_gradient(shape, POINTS + sign * shift)[0] for sign in (1, -1))
        np.testing.assert_allclose(gradient[axis], (ahead - behind) / (2 * step), atol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(gradient, axis=0), 1.0, rtol=1e-14)


@pytest.mark.parametrize(
    "point, distance, normal",
    [
        ((0, 0, 0), -1, (1, 0, 0)),  # centre: x wins, its positive side wins
        ((-0.0, 0, 0), -1, (1, 0, 0)),
        ((0, 0.5, 0.5), -0.5, (0, 1, 0)),  # y over z
        ((0.5, -0.5, 0.5), -0.5, (1, 0, 0)),  # x over both
        ((0, 0, -0.5), -0.5, (0, 0, -1)),
        ((-1, 0, 0), 0, (-1, 0, 0)),  # on a face
        ((0, 1, -1), 0, (0, 1, 0)),  # on an edge
        ((1, 1, 1), 0, (1, 0, 0)),  # on a corner
        ((1, 1, 2), 1, (0, 0, 1)),  # above a corner
        ((0, 2, 2), np.sqrt(2), (0, np.sqrt(0.5), np.sqrt(0.5))),
        ((-2, -2, -2), np.sqrt(3), (-(3**-0.5),) * 3),
        ((1 + 2e-16, 1, 0), 2.220446049250313e-16, (1, 0, 0)),
    ],
)
def test_cube_decides_ties_and_stays_smooth(point, distance, normal):
    points = np.array(point, float)[:, None]
    cube = Box((1.0, 1.0, 1.0))
    d, n = distance_gradient(cube, points)
    np.testing.assert_allclose(d, [distance], atol=1e-16, rtol=1e-15)
    np.testing.assert_allclose(n[:, 0], normal, atol=1e-15)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(derivatives(cube, points)))


def test_a_box_is_flat_beside_its_faces_and_round_beyond_its_edges():
    cube = Box((1.0, 1.0, 1.0))
    points = np.array([[1.5, 0.2, 0.3], [2.0, 2.0, 0.0]]).T
    _, (_, second) = derivatives(cube, points)
    np.testing.assert_array_equal(second[0], np.zeros((3, 3)))
    curvature = 1 / np.sqrt(2)  # of a cylinder of radius sqrt(2) about the edge
    np.testing.assert_allclose(second[1], curvature * np.array([[0.5, -0.5, 0], [-0.5, 0.5, 0], [0, 0, 0]]), atol=1e-15)


@pytest.mark.parametrize("offset", [0.0, 1e-16, 1e-14, 1e-3])
def test_sphere_has_a_gradient_at_its_center(offset, dtype):
    point = np.array([[0.0], [offset], [0.0]], dtype)
    shape = jax.tree.map(lambda leaf: leaf.astype(dtype), Sphere(0.4))
    distance, gradient = distance_gradient(shape, point)
    at_center = offset < 10 * jnp.finfo(dtype).eps
    np.testing.assert_allclose(distance, offset - 0.4, rtol=2 * jnp.finfo(dtype).eps, atol=1e-14)
    np.testing.assert_array_equal(gradient[:, 0], [1, 0, 0] if at_center else [0, 1, 0])
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(derivatives(shape, point)))


@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e-10, 1e-7])
def test_box_edge_is_finite_in_single_precision_at_any_distance(scale):
    """The square of a tiny distance underflows: the root must never see it."""
    box = Box(np.full(3, 1e-30, np.float32))
    point = np.full((3, 1), scale, np.float32)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(derivatives(box, point)))


@pytest.mark.parametrize(
    "shape, point, distance, normal",
    [
        (Capsule(1.0, 2.0), (0, 0, 0), -1, (1, 0, 0)),  # on the segment no direction is nearest
        (Capsule(1.0, 2.0), (0, 0, 2), -1, (1, 0, 0)),
        (Capsule(1.0, 2.0), (0, 0, 2.5), -0.5, (0, 0, 1)),
        (Capsule(1.0, 2.0), (0, -1, -2), 0, (0, -1, 0)),  # where side and end join
        (Capsule(1.0, 2.0), (3, 0, -6), 4, (0.6, 0, -0.8)),
        (Cylinder(1.0, 2.0), (0, 0, 0), -1, (1, 0, 0)),  # on the axis
        (Cylinder(1.0, 2.0), (0, 0, -1.5), -0.5, (0, 0, -1)),
        (Cylinder(2.0, 1.0), (0, 0, 0), -1, (0, 0, 1)),  # the upper end wins
        (Cylinder(1.0, 2.0), (0, 0.5, 1.5), -0.5, (0, 1, 0)),  # the side wins
        (Cylinder(1.0, 2.0), (0, -1, 2), 0, (0, -1, 0)),  # on the rim
        (Cylinder(1.0, 2.0), (-1, 0, 3), 1, (0, 0, 1)),  # above the rim
        (Cylinder(1.0, 2.0), (0, 4, -6), 5, (0, 0.6, -0.8)),
    ],
)
def test_round_shapes_decide_ties_and_stay_smooth(shape, point, distance, normal):
    points = np.array(point, float)[:, None]
    d, n = distance_gradient(shape, points)
    np.testing.assert_allclose(d, [distance], atol=1e-16, rtol=1e-15)
    np.testing.assert_allclose(n[:, 0], normal, atol=1e-15)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(derivatives(shape, points)))


@pytest.mark.parametrize("kind", [Capsule, Cylinder])
def test_distance_is_differentiable_in_radius_and_half_length(kind):
    sizes = jnp.array([0.3, 0.2])
    distances = jax.jit(lambda sizes: kind(*sizes).signed_distance(Vec3.of(POINTS)))
    step = 1e-6 * np.eye(2)
    numeric = np.stack([(distances(sizes + s) - distances(sizes - s)) / 2e-6 for s in step], axis=1)
    for mode in (jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(mode(distances)(sizes), numeric, atol=1e-7)


def test_leaves_with_trailing_axes_broadcast_over_the_points():
    half = RNG.uniform(0.1, 0.5, size=(3, 4, 2))  # (component, pair, world)
    points = RNG.uniform(-1, 1, size=(3, 7, 4, 2))
    distance, gradient = distance_gradient(Box(half), points)
    for pair, world in np.ndindex(4, 2):
        d, g = distance_gradient(Box(half[:, pair, world]), points[..., pair, world])
        np.testing.assert_array_equal(distance[:, pair, world], d)
        np.testing.assert_array_equal(gradient[..., pair, world], g)


def test_one_point_against_many_shapes_has_one_gradient_each():
    radii = np.array([0.1, 0.2, 0.3])
    distance, gradient = distance_gradient(Sphere(radii), np.array([[0.0], [1.0], [0.0]]))
    np.testing.assert_allclose(distance, 1 - radii)
    np.testing.assert_array_equal(gradient, [[0] * 3, [1] * 3, [0] * 3])


@pytest.mark.parametrize("name", SHAPES)
def test_vmap_jit_and_arrays_agree(name):
    shape, points = SHAPES[name], POINTS[:, :20]
    expected = distance_gradient(shape, points)
    mapped = jax.vmap(distance_gradient, (None, 1), (0, 1))(shape, points)
    many = jax.tree.map(lambda leaf: jnp.stack([leaf] * 20), shape)
    mapped_shapes = jax.vmap(distance_gradient, (0, 1), (0, 1))(many, points)
    for actual in (mapped, mapped_shapes):
        for a, b in zip(actual, expected):
            np.testing.assert_allclose(a, b, rtol=1e-15, atol=1e-16)


def test_distance_is_differentiable_in_the_size_made_from_a_traced_number():
    slope = jax.jit(jax.grad(lambda r: single_distance(Sphere(r), jnp.array([1.0, 0.0, 0.0]))))
    assert slope(0.3) == -1.0
    slope = jax.grad(lambda n: single_distance(Plane(n, 0.0), jnp.array([0.0, 0.0, 2.0])))
    np.testing.assert_allclose(slope(jnp.array([0.0, 0.0, 3.0])), 0.0, atol=1e-16)  # only the direction counts


def test_plane_normal_is_made_unit():
    np.testing.assert_allclose(Plane((0, 0, 7), 0.5).normal, [0, 0, 1])


@pytest.mark.parametrize(
    "make, field",
    [
        (lambda: Sphere(0.0), "Sphere.radius"),
        (lambda: Sphere(float("nan")), "Sphere.radius"),
        (lambda: Box((1.0, -1.0, 1.0)), "Box.half_extents"),
        (lambda: Box((1.0, np.inf, 1.0)), "Box.half_extents"),
        (lambda: Box((1.0, 1.0)), "Box.half_extents"),
        (lambda: Box(1.0), "Box.half_extents"),
        (lambda: Capsule(-0.1, 1.0), "Capsule.radius"),
        (lambda: Capsule(0.1, 0.0), "Capsule.half_length"),
        (lambda: Cylinder(0.1, float("nan")), "Cylinder.half_length"),
        (lambda: Plane((0.0, 0.0, 0.0)), "Plane.normal"),
        (lambda: Plane((0.0, float("nan"), 1.0)), "Plane.normal"),
        (lambda: Plane((0.0, 0.0, 1.0), float("inf")), "Plane.offset"),
    ],
)
def test_impossible_sizes_are_refused_by_name(make, field):
    with pytest.raises(ValueError, match=field):
        make()


def test_leaves_keep_the_precision_they_are_given(dtype):
    assert Box(np.ones(3, dtype)).half_extents.dtype == dtype
    assert Sphere(1).radius.dtype == jnp.float64
    assert not Sphere(1.0).radius.weak_type
