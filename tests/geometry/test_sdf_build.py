"""Grids built from meshes: node for node those of the reference engine, and honest about bad meshes."""

import json
import os

import jax.numpy as jnp
import numpy as np
import pytest
import reference

from jaxsim.geometry.mesh import TriMesh
from jaxsim.geometry.sdf_build import GridSdfParams, GridSdfResolutionMode, build_sdf, grid_lattice
from jaxsim.geometry.shapes import Box, surface_of
from jaxsim.geometry.surface import Surface
from jaxsim.math.vector import Vec3

pytest.importorskip("igl")
CUBE = surface_of(Box((0.05, 0.05, 0.05)))
EXPLICIT = GridSdfResolutionMode.EXPLICIT


def check_against(file: str | os.PathLike[str], body: str) -> None:
    data = np.load(file)
    stored = json.loads(str(data["meta_json"]))["sdf"][body]["params"]
    params = GridSdfParams(
        resolution_mode=GridSdfResolutionMode[stored["resolution_mode"]],
        resolution_delta=tuple(stored["resolution_delta"]),
        min_grid_resolution=tuple(map(int, stored["min_grid_resolution"])),
        boundary_padding_dist=stored["boundary_padding_dist"],
    )
    grid, report = build_sdf(TriMesh(data[f"mesh_{body}_V"], data[f"mesh_{body}_F"]), params)
    np.testing.assert_array_equal(grid.values.shape, data[f"sdf_{body}_dims"])
    np.testing.assert_allclose(grid.bounds, data[f"sdf_{body}_bounds"], rtol=0, atol=1e-15)
    np.testing.assert_allclose(grid.values.ravel(), data[f"sdf_{body}_values"], rtol=0, atol=1e-15)
    assert report.sign == "pseudo-normals" and not report.warnings


@pytest.mark.parametrize(
    "name, body",
    [
        ("e_ball_torus_sdf", "torus"),
        ("e_ball_lshape_sdf", "ell"),
        ("f_box_sdf_static", "base"),
        ("f_torus_static", "torus"),
        ("f_bowl_static", "bowl"),
    ],
)
def test_grids_are_those_of_the_reference_engine(name, body):
    check_against(reference.find(name), body)


def test_a_cube_with_default_cells_has_the_corners_that_the_engine_gives_it():
    """The engine pads the grid that it makes for an actor by the contact threshold, 1 mm; measured to 0.01 mm."""
    grid, report = build_sdf(CUBE, GridSdfParams(boundary_padding_dist=1e-3))
    assert report.cells == (6, 6, 6)
    points = np.array([[0.05, 0, 0], [0.05, 0.05, 0], [0.05, 0.05, 0.05], [0, 0, 0], [0.06, 0, 0]])
    distance = grid.signed_distance(Vec3.of_last(points))
    np.testing.assert_allclose(distance, [0, 1.31e-3, 1.67e-3, -0.05, 0.01], atol=5e-6)


@pytest.mark.parametrize(
    "mode, length",
    [
        ("LARGEST_AXIS", 3.0),
        ("SMALLEST_AXIS", 1.0),
        ("MEAN_AXIS", 2.0),
        ("LARGEST_EDGE", np.sqrt(13)),
        ("SMALLEST_EDGE", 1.0),
        ("MEAN_EDGE", (4 * (1 + 2 + 3) + 2 * (np.sqrt(5) + np.sqrt(10) + np.sqrt(13))) / 18),
        ("EXPLICIT", 1.0),
    ],
)
def test_cells_are_as_large_as_the_reference_length_allows(mode, length):
    """An edge counts once, though two triangles share it."""
    box = surface_of(Box((0.5, 1.0, 1.5)))
    for share in (0.0999, 0.271):
        params = GridSdfParams(GridSdfResolutionMode[mode], share, 1, 0.1 * length)
        bounds, cells = grid_lattice(np.asarray(box.vertices), box.triangles, params)
        extent = np.array([1.0, 2.0, 3.0]) + 0.2 * length
        np.testing.assert_allclose(bounds, [-extent / 2, extent / 2], rtol=1e-15)
        np.testing.assert_array_equal(cells, np.ceil(extent / (share * length)))


def test_each_axis_may_have_its_own_cells():
    _, report = build_sdf(CUBE, GridSdfParams(EXPLICIT, (0.011, 0.02, 0.05), (1, 7, 3), 0.0))
    assert report.cells == (10, 7, 3)


def test_extents_that_are_a_multiple_of_the_cell_get_one_cell_more():
    _, report = build_sdf(CUBE, GridSdfParams(EXPLICIT, 0.0125, 1, 0.0))
    assert report.cells == (9, 9, 9)


def test_a_spline_grid_takes_the_distances_at_its_nodes():
    params = GridSdfParams(boundary_padding_dist=0.01)
    linear, spline = (build_sdf(CUBE, params, interpolation=kind)[0] for kind in ("trilinear", "quadratic"))
    axes = [np.linspace(*linear.bounds[:, i], n) for i, n in enumerate(linear.values.shape)]
    nodes = Vec3.of(jnp.asarray(np.stack(np.meshgrid(*axes, indexing="ij"))))
    np.testing.assert_allclose(spline.signed_distance(nodes), linear.values, atol=1e-15)


def test_a_mesh_with_a_hole_is_signed_by_winding_number_and_says_so():
    _, whole = build_sdf(CUBE)
    grid, report = build_sdf(Surface(CUBE.vertices, CUBE.triangles[1:]))
    assert report.sign == "winding number" and "3 edges" in str(report) and "Close the mesh" in str(report)
    assert grid.signed_distance(Vec3.of(jnp.zeros(3))) < 0 < grid.values[0, 0, 0]
    assert whole.sign == "pseudo-normals" and "warning" not in str(whole)


def test_solids_that_overlap_are_signed_by_winding_number_and_say_so():
    vertices = np.asarray(CUBE.vertices)
    vertices = np.concatenate([vertices, vertices + [0.05, 0.02, 0.01]])
    both = Surface(vertices, np.concatenate([CUBE.triangles, CUBE.triangles + 8]))
    grid, report = build_sdf(both, GridSdfParams(EXPLICIT, 0.01))
    assert report.sign == "winding number" and "union" in str(report)
    inside_one = np.array([[-0.01, 0.02, 0.01], [0.03, 0.02, 0.01], [0.07, 0.02, 0.01]])
    assert np.all(grid.signed_distance(Vec3.of_last(inside_one)) < 0)


def test_a_sheet_thinner_than_its_cells_says_that_nothing_lies_inside():
    plate = surface_of(Box((0.1, 0.1, 1e-4)))
    _, report = build_sdf(plate, GridSdfParams(EXPLICIT, 0.02, (2, 2, 5), 0.01))
    assert "no node lies inside" in str(report)


def test_the_grid_has_the_precision_asked_for(dtype):
    grid, _ = build_sdf(CUBE, dtype=dtype)
    assert grid.values.dtype == grid.bounds.dtype == dtype


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: GridSdfParams(boundary_padding_dist=-1.0), "boundary_padding_dist"),
        (lambda: GridSdfParams(resolution_delta=(0.1, 0.0, 0.1)), "resolution_delta"),
        (lambda: GridSdfParams(resolution_delta=float("nan")), "resolution_delta"),
        (lambda: GridSdfParams(min_grid_resolution=(6, 6)), "min_grid_resolution"),
        (lambda: build_sdf(CUBE, interpolation="cubic"), "SdfGrid.interpolation"),
        (lambda: build_sdf(CUBE, GridSdfParams(EXPLICIT, 1e-5)), "fewer than 1e.09 cells"),
        (lambda: build_sdf(Surface(CUBE.vertices, CUBE.triangles[:, ::-1])), "anticlockwise"),
        (
            lambda: build_sdf(surface_of(Box((0.1, 0.1, 0.1))), GridSdfParams(GridSdfResolutionMode.MEAN_EDGE, 1e-4)),
            "fewer than",
        ),
    ],
)
def test_bad_parameters_and_meshes_are_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()
