"""Exact mesh distance: against libigl and closed forms, and where the nearest feature is an edge or a corner."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.geometry.mesh import TriMesh
from jaxsim.geometry.mesh_distance import MeshSolid
from jaxsim.geometry.shapes import Box, distance_and_gradient, surface_of, unit_surface
from jaxsim.math.vector import Vec3

RNG = np.random.default_rng(9)


@jax.jit
def sample(solid, points):
    distance, gradient = distance_and_gradient(solid, Vec3.of(points))
    return distance, gradient.stack()


def dented_cube() -> MeshSolid:
    """A cube of 48 triangles with one corner pushed in and the other vertices jittered: convex and concave features."""
    surface = unit_surface(Box, 1)
    vertices = np.array(surface.vertices) + RNG.uniform(-0.15, 0.15, surface.vertices.shape)
    vertices[np.argmax(vertices.sum(axis=1))] = 0.1
    return MeshSolid(TriMesh(vertices, surface.triangles))


SOLID = dented_cube()
CUBE = MeshSolid(TriMesh(surface_of(Box((1.0, 1.0, 1.0))).vertices, surface_of(Box((1.0, 1.0, 1.0))).triangles))
POINTS = RNG.uniform(-1.5, 1.5, (3, 300))


def test_distance_and_gradient_are_those_of_libigl(dtype):
    igl = pytest.importorskip("igl")
    vertices, triangles = np.asarray(SOLID.vertices), SOLID.table.array.astype(np.int64)
    kind = igl.SIGNED_DISTANCE_TYPE_PSEUDONORMAL
    expected, _, nearest, _ = igl.signed_distance(np.ascontiguousarray(POINTS.T), vertices, triangles, kind)
    solid = jax.tree.map(lambda leaf: leaf.astype(dtype), SOLID)
    distance, gradient = sample(solid, POINTS.astype(dtype))
    assert distance.dtype == gradient.dtype == dtype
    eps = jnp.finfo(dtype).eps
    np.testing.assert_allclose(distance, expected, atol=16 * eps)
    np.testing.assert_allclose(np.linalg.norm(gradient, axis=0), 1.0, rtol=8 * eps)
    far = np.abs(expected) > 0.05
    direction = (POINTS.T - nearest) / expected[:, None]
    np.testing.assert_allclose(gradient[:, far], direction[far].T, atol=1000 * eps)


def test_a_cube_has_the_distance_of_the_box():
    box = Box((1.0, 1.0, 1.0))
    distance, gradient = sample(CUBE, POINTS)
    expected, normal = sample(box, POINTS)
    np.testing.assert_allclose(distance, expected, atol=1e-15)
    np.testing.assert_allclose(gradient, normal, atol=1e-14)


STEP = 1e-6
of_leaves = lambda vertices, points: sample_at(SOLID, vertices, points)


def sample_at(solid, vertices, points):
    moved = MeshSolid(TriMesh(vertices, solid.table.array))
    return sample(moved, points)


tangents = jax.jit(lambda x, d: jax.jvp(of_leaves, x, d))
cotangents = jax.jit(lambda x, w: jax.vjp(of_leaves, *x)[1](w))


def test_distance_and_gradient_are_differentiable_in_vertices_and_points():
    """Faces, edges and corners all occur; the derivative of the gradient is their curvature."""
    leaves = SOLID.vertices, jnp.asarray(POINTS)
    toward = tuple(jnp.asarray(RNG.uniform(-1, 1, size=x.shape)) for x in leaves)
    out, forward = tangents(leaves, toward)
    ahead, behind = (of_leaves(*(x + s * d for x, d in zip(leaves, toward))) for s in (STEP, -STEP))
    same = np.linalg.norm(ahead[1] - behind[1], axis=0) < 1e-3  # the step crosses no border between features
    assert same.mean() > 0.99
    for derivative, a, b in zip(forward, ahead, behind):
        np.testing.assert_allclose(derivative[..., same], ((a - b) / (2 * STEP))[..., same], rtol=1e-6, atol=1e-6)
    weights = tuple(jnp.asarray(RNG.normal(size=x.shape)) for x in out)
    inner = lambda a, b: sum(np.vdot(x, y) for x, y in zip(a, b))
    np.testing.assert_allclose(inner(cotangents(leaves, weights), toward), inner(weights, forward), rtol=1e-11)


def test_the_written_gradient_is_that_of_autodiff():
    distance, pull = jax.vjp(lambda p: sample(SOLID, p)[0], POINTS)
    np.testing.assert_allclose(pull(jnp.ones_like(distance))[0], sample(SOLID, POINTS)[1], atol=1e-13)


@pytest.mark.parametrize(
    "point, normal",
    [
        ((1.0, 0.3, 0.2), (1, 0, 0)),  # on a face
        ((1.0, 0.5, 0.5), (1, 0, 0)),  # on the diagonal between two triangles of a face
        ((1.0, 1.0, 0.3), (1, 1, 0)),  # on an edge
        ((-1.0, 0.2, 1.0), (-1, 0, 1)),
        ((1.0, 1.0, 1.0), (1, 1, 1)),  # on corners, of four to six triangles: the angles weight them alike
        ((1.0, -1.0, 1.0), (1, -1, 1)),
        ((1.0, -1.0, -1.0), (1, -1, -1)),
    ],
)
def test_on_the_surface_the_gradient_is_the_pseudo_normal(point, normal, dtype):
    solid = jax.tree.map(lambda leaf: leaf.astype(dtype), CUBE)
    points = np.array(point, dtype)[:, None]
    distance, gradient = sample(solid, points)
    np.testing.assert_allclose(distance, [0.0], atol=0)
    np.testing.assert_allclose(gradient[:, 0], normal / np.linalg.norm(normal), atol=4 * jnp.finfo(dtype).eps)


second = jax.jit(lambda solid, p: jax.vmap(jax.hessian(lambda p: solid.signed_distance(Vec3.of(p))), 1)(p))


@pytest.mark.parametrize("offset", [0.0, 1e-16, 1e-8])
def test_derivatives_are_finite_at_every_feature_of_the_mesh(offset, dtype):
    corners = np.asarray(CUBE.vertices)[CUBE.table.array]
    points = np.concatenate([corners[:, 0], corners[:, :2].mean(1), corners.mean(1), np.zeros((1, 3))]) + offset
    solid = jax.tree.map(lambda leaf: leaf.astype(dtype), CUBE)
    distance, gradient = sample(solid, points.T.astype(dtype))
    np.testing.assert_allclose(np.linalg.norm(gradient, axis=0), 1.0, rtol=1e-6)
    assert np.all(np.isfinite(distance)) and np.all(np.isfinite(second(solid, points.T.astype(dtype))))


def test_moving_the_mesh_moves_its_distance():
    """The envelope: to first order the nearest point does not slide."""
    shift = jnp.array([0.3, -0.2, 0.5])
    every = jnp.tile(shift, (len(SOLID.vertices), 1))
    _, along = jax.jvp(lambda v: of_leaves(v, POINTS)[0], (SOLID.vertices,), (every,))
    np.testing.assert_allclose(along, -shift @ sample(SOLID, POINTS)[1], atol=1e-13)


def test_triangles_without_area_change_nothing():
    """A needle on the diagonal of one face: three corners in line, as a T junction needs to stay closed."""
    surface = surface_of(Box((1.0, 1.0, 1.0)))
    a, b, c = surface.triangles[0]
    ends = np.asarray(surface.vertices)[[a, b]]
    middle = len(surface.vertices)
    triangles = np.concatenate([surface.triangles[1:], [[a, middle, c], [middle, b, c], [a, b, middle]]])
    solid = MeshSolid(TriMesh(np.concatenate([surface.vertices, ends.mean(0)[None]]), triangles))
    for actual, expected in zip(sample(solid, POINTS), sample(CUBE, POINTS)):
        np.testing.assert_allclose(actual, expected, atol=1e-14)


def test_vmap_and_any_trailing_shape_agree_with_arrays():
    expected = sample(SOLID, POINTS[:, :20])
    mapped = jax.vmap(sample, (None, 1), (0, 1))(SOLID, POINTS[:, :20])
    folded = sample(SOLID, POINTS[:, :20].reshape(3, 4, 5, 1))
    for a, b, e in zip(mapped, folded, expected):
        np.testing.assert_allclose(a, e, rtol=1e-15, atol=1e-15)
        np.testing.assert_allclose(b.reshape(e.shape), e, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("sizes", [[1.0], [1.0, 1.2]])
def test_every_world_may_have_its_own_vertices(sizes):
    scaled = [jax.tree.map(lambda v, s=s: v * s, CUBE) for s in sizes]
    worlds = jax.tree.map(lambda *v: jnp.stack(v, axis=-1), *scaled)
    points = np.stack([POINTS[:, :20], POINTS[:, 20:40]], axis=-1)
    distance, gradient = sample(worlds, points)
    for world in range(2):
        d, g = sample(scaled[world % len(sizes)], points[..., world])
        np.testing.assert_allclose(distance[:, world], d, atol=1e-15)
        np.testing.assert_allclose(gradient[..., world], g, atol=1e-14)


def test_an_open_mesh_is_refused_by_name():
    with pytest.raises(ValueError, match=r"MeshSolid.mesh must be closed.*3 edges.*grid"):
        MeshSolid(TriMesh(CUBE.vertices, CUBE.table.array[1:]))
