"""Triangulations of the primitives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.geometry.shapes import (
    Box,
    Capsule,
    Cylinder,
    Plane,
    Sphere,
    size_of,
    surface_basis,
    surface_of,
    unit_surface,
)
from jaxsim.geometry.static_array import StaticArray
from jaxsim.geometry.surface import boundary_edges, irregular_edges
from jaxsim.math.vector import Vec3


@pytest.mark.parametrize(
    "kind, subdivisions, triangles",
    [(Box, 0, 12), (Box, 1, 48), (Box, 5, 432), (Sphere, 0, 320), (Sphere, 1, 1280)],
)
def test_surfaces_are_closed_wound_outwards_and_as_fine_as_asked(kind, subdivisions, triangles):
    surface = unit_surface(kind, subdivisions)
    assert surface.triangles.shape == (triangles, 3)
    assert len(boundary_edges(surface.triangles)) == 0
    assert np.all(np.linalg.det(surface.vertices[surface.triangles]) > 0)
    assert len(np.unique(surface.vertices.round(12), axis=0)) == len(surface.vertices) == triangles // 2 + 2  # Euler


def test_sphere_vertices_lie_on_the_sphere_and_box_vertices_on_the_box():
    np.testing.assert_allclose(np.linalg.norm(unit_surface(Sphere).vertices, axis=1), 1.0, rtol=1e-15)
    assert np.all(np.abs(unit_surface(Box, 2).vertices).max(axis=1) == 1.0)


@pytest.mark.parametrize("shape", [Box((0.1, 0.2, 0.3)), Sphere(0.5)])
def test_a_surface_is_the_unit_surface_times_the_size(shape):
    surface = surface_of(shape, 1)
    np.testing.assert_array_equal(surface.vertices, unit_surface(type(shape), 1).vertices * np.array(size_of(shape)))


@pytest.mark.parametrize("shape", [Capsule(0.3, 0.7), Cylinder(0.3, 0.7), Capsule(0.3, 0.01)])
@pytest.mark.parametrize("subdivisions", [0, 2])
def test_round_surfaces_are_closed_and_wound_outwards_with_vertices_on_the_solid(shape, subdivisions):
    surface = surface_of(shape, subdivisions)
    assert len(boundary_edges(surface.triangles)) == 0
    assert len(surface.vertices) == len(surface.triangles) // 2 + 2  # Euler: none occurs twice
    corners = np.asarray(surface.vertices)[surface.triangles]
    assert np.all(np.linalg.det(corners) > 0)
    np.testing.assert_allclose(shape.signed_distance(Vec3.of_last(surface.vertices)), 0.0, atol=1e-15)


def test_round_surfaces_have_about_as_many_triangles_as_the_sphere():
    assert len(surface_of(Capsule(1, 1)).triangles) == 352
    assert len(surface_of(Cylinder(1, 1)).triangles) == 224


@pytest.mark.parametrize("shape", [Box((0.1, 0.2, 0.3)), Sphere(0.5), Capsule(0.3, 0.7), Cylinder(0.3, 0.7)])
def test_a_surface_is_linear_in_its_size(shape):
    basis, triangles = surface_basis(type(shape), 1)
    surface = surface_of(shape, 1)
    np.testing.assert_allclose(surface.vertices, sum(s * b for s, b in zip(size_of(shape), basis)), rtol=1e-15)
    np.testing.assert_array_equal(surface.triangles, triangles)


def test_a_capsule_grows_in_length_without_changing_its_ends():
    slope = jax.jacfwd(lambda h: surface_of(Capsule(0.3, h)).vertices)(0.7)
    z = np.asarray(surface_of(Capsule(0.3, 0.7)).vertices)[:, 2]
    np.testing.assert_array_equal(slope[:, :2], 0.0)
    np.testing.assert_allclose(slope[:, 2], np.clip(z / 0.7, -1.0, 1.0), atol=1e-15)


def test_a_capsule_is_no_stretched_unit_surface():
    with pytest.raises(ValueError, match="surface_basis"):
        unit_surface(Capsule)


def test_vertices_are_differentiable_in_the_size_and_keep_its_precision(dtype):
    area = lambda r: jnp.sum(surface_of(Sphere(r)).vertices ** 2)  # 162 r^2
    gradient = jax.grad(area)(jnp.asarray(2.0, dtype))
    assert gradient.dtype == dtype
    np.testing.assert_allclose(gradient, 2 * 162 * 2.0, rtol=1e-5)


def test_size_of_keeps_trailing_axes():
    assert size_of(Sphere(np.ones((4, 2)))).shape == (3, 4, 2)


def test_a_plane_has_no_samples():
    with pytest.raises(ValueError, match="must be static"):
        surface_of(Plane())
    with pytest.raises(ValueError, match="must be static"):
        size_of(Plane())


def test_negative_subdivisions_are_refused():
    with pytest.raises(ValueError, match="subdivisions"):
        surface_of(Box((1, 1, 1)), -1)


def test_missing_and_turned_triangles_show_as_boundary():
    triangles = unit_surface(Box).triangles
    assert len(boundary_edges(triangles[1:])) == 3
    assert len(boundary_edges(np.concatenate([triangles[1:], triangles[:1, ::-1]]))) == 3


def test_equal_surfaces_do_not_retrace():
    traces = []
    count = jax.jit(lambda surface: (traces.append(1), surface.vertices.sum())[1])
    for size in (1.0, 2.0):
        count(surface_of(Box((size, size, size))))
    assert len(traces) == 1


def test_static_arrays_compare_by_content_and_cannot_be_changed():
    a, b = StaticArray(np.array([[0, 1, 2]])), StaticArray(np.array([[0, 1, 2]]))
    assert a == b and hash(a) == hash(b) and a != StaticArray(np.array([[0, 2, 1]]))
    with pytest.raises(ValueError):
        a.array[0] = 1


def test_an_edge_of_four_triangles_is_irregular_though_it_bounds_nothing():
    cube = unit_surface(Box).triangles
    twin = np.where(np.isin(cube, cube[0, :2]), cube, cube + 8)  # a second cube about one edge of the first
    assert len(irregular_edges(cube)) == 0
    assert len(boundary_edges(np.concatenate([cube, twin]))) == 0
    np.testing.assert_array_equal(irregular_edges(np.concatenate([cube, twin])), [np.sort(cube[0, :2])])
