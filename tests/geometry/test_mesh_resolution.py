"""Finer and coarser meshes, and the distance between them."""

import numpy as np
import pytest

from jaxsim.geometry.mass import mass_properties
from jaxsim.geometry.mesh import TriMesh
from jaxsim.geometry.mesh_resolution import areas_of, deviation, spread_points
from jaxsim.geometry.surface import boundary_edges, edges_of, unit_icosphere

trimesh = pytest.importorskip("trimesh")
pytest.importorskip("igl")
pytest.importorskip("fast_simplification")

BOX = trimesh.creation.box((0.1, 0.2, 0.3))
SQUARE = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]), np.array([[0, 1, 2], [0, 2, 3]])


def ball(level):
    surface = unit_icosphere(level)
    return TriMesh(0.1 * np.asarray(surface.vertices), surface.triangles)


def longest_edge(mesh):
    edges, _, _ = edges_of(mesh.triangles)
    return np.linalg.norm(np.diff(np.asarray(mesh.vertices)[edges], axis=1), axis=-1).max()


@pytest.mark.parametrize("max_edge", [1.0, 0.1, 0.013])
def test_subdivision_bounds_every_edge_and_keeps_the_solid(max_edge):
    box = TriMesh(BOX.vertices, BOX.faces)
    fine = box.subdivide(max_edge)
    assert longest_edge(fine) <= max_edge
    assert not len(boundary_edges(fine.triangles))
    np.testing.assert_allclose(mass_properties(fine, density=1.0).mass, 0.006, rtol=1e-12)
    assert (len(fine.triangles) == 12) == (max_edge == 1.0)


def test_subdivision_copes_with_needles():
    needle = TriMesh(np.array([[0, 0, 0], [1, 0, 0], [0.5, 1e-5, 0]]), np.array([[0, 1, 2]]))
    assert longest_edge(needle.subdivide(0.01)) <= 0.01


@pytest.mark.parametrize("max_edge", [0.0, -1.0, np.nan, 1e-6])
def test_an_edge_out_of_range_is_refused_with_one_to_try(max_edge):
    with pytest.raises(ValueError, match=r"max_edge must be positive.*Try"):
        TriMesh(BOX.vertices, BOX.faces).subdivide(max_edge)


@pytest.mark.parametrize("bound", [1e-3, 5e-3])
def test_decimation_keeps_the_bound_in_both_directions(bound):
    fine = ball(2)  # 5120 triangles
    coarse, measured = fine.decimate(bound)
    # Quadric decimation keeps no bound by itself: with 1200 triangles it is 1.15 mm off, with 1502 0.74 mm.
    assert 0 < measured <= bound and len(coarse.triangles) < len(fine.triangles) / 3
    # On other points than the search used: the corners' distance from the ball, the ball's points' from the mesh.
    tolerance = bound + 0.1 * (1 - np.cos(0.02))  # the ball itself is made of triangles 0.004 m long
    radii = np.linalg.norm(np.asarray(coarse.vertices), axis=1)
    assert np.abs(radii - 0.1).max() < tolerance
    middle = np.linalg.norm(np.asarray(coarse.vertices)[coarse.triangles].mean(axis=1), axis=1)
    assert 0.1 - middle.min() < tolerance


def test_a_wider_bound_leaves_fewer_triangles():
    counts = [len(ball(2).decimate(bound).mesh.triangles) for bound in (5e-4, 2e-3, 8e-3)]
    assert counts[0] > 1.5 * counts[1] > 1.5**2 * counts[2]


def test_a_decimated_solid_stays_a_solid():
    coarse = ball(2).decimate(2e-3).mesh
    assert not len(boundary_edges(coarse.triangles))
    exact = float(mass_properties(ball(2), density=1.0).mass)
    np.testing.assert_allclose(mass_properties(coarse, density=1.0).mass, exact, rtol=0.06)  # area times the bound


def test_a_flat_mesh_decimates_to_its_corners_without_deviation():
    box = TriMesh(BOX.vertices, BOX.faces).subdivide(0.03)
    coarse, measured = box.decimate(1e-6)
    assert measured < 1e-6 and len(coarse.triangles) < len(box.triangles) / 5


def test_a_bound_that_nothing_meets_gives_the_mesh_back():
    rough = ball(0)
    same, measured = rough.decimate(1e-9)
    assert measured == 0.0
    np.testing.assert_array_equal(same.triangles, rough.triangles)


@pytest.mark.parametrize("bound", [0.0, -1.0, np.inf])
def test_a_bound_that_is_none_is_refused(bound):
    with pytest.raises(ValueError, match="max_deviation"):
        ball(0).decimate(bound)


def test_deviation_sees_a_spike_of_either_surface():
    vertices, triangles = SQUARE
    tip = np.concatenate([vertices, [[0.5, 0.5, 0.3]]])
    spike = np.array([[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]])
    np.testing.assert_allclose(deviation(vertices, triangles, tip, spike), 0.3, rtol=1e-6)
    np.testing.assert_allclose(deviation(tip, spike, vertices, triangles), 0.3, rtol=1e-6)
    assert deviation(vertices, triangles, vertices, triangles) < 1e-7


def test_spread_points_share_the_area_evenly():
    vertices, triangles = np.array([[0.0, 0, 0], [3, 0, 0], [0, 1, 0], [0, 0, 1]]), np.array([[0, 1, 2], [0, 2, 3]])
    points, on = spread_points(vertices, triangles, 1000)
    np.testing.assert_allclose(np.bincount(on), 1000 * areas_of(vertices, triangles) / 2.0, atol=1)
    np.testing.assert_allclose(points[on == 0].mean(axis=0), [1, 1 / 3, 0], atol=0.01)
    assert np.all(points >= 0) and np.all(points[on == 0] @ [1 / 3, 1, 0] <= 1 + 1e-12)
