"""Solids of a mesh: told apart where they touch, united where they overlap, closed where they are open."""

import sys

import jax
import numpy as np
import pytest

from jaxsim.geometry.mass import inertia_matrix, inertia_six, mass_properties, translate_inertia
from jaxsim.geometry.mesh import TriMesh
from jaxsim.geometry.mesh_manifold import separate
from jaxsim.geometry.mesh_repair import weld_parts
from jaxsim.geometry.mesh_solids import Closure, overlap, solids_of
from jaxsim.geometry.shapes import Box, Sphere
from jaxsim.geometry.surface import boundary_edges, unit_cube
from jaxsim.geometry.winding import winding_number_of, winding_numbers

trimesh = pytest.importorskip("trimesh")
pytest.importorskip("manifold3d")
pytest.importorskip("igl")

RNG = np.random.default_rng(6)
HALF = np.array([0.05, 0.1, 0.15])
BOX = trimesh.creation.box(2 * HALF)
BALL = trimesh.creation.icosphere(3, 0.1)


def moved(mesh, offset):
    copy = mesh.copy()
    copy.apply_translation(offset)
    return copy


def turned_over(mesh):
    return trimesh.Trimesh(mesh.vertices, mesh.faces[:, ::-1], process=False)


def joined(*meshes):
    whole = trimesh.util.concatenate(meshes)
    return TriMesh(np.array(whole.vertices), np.array(whole.faces))


def load(folder, *meshes, **options):
    path = folder / "mesh.ply"
    trimesh.util.concatenate(meshes).export(path)
    return TriMesh.load_with_report(path, **options)


def close(actual, expected, rtol=1e-9):
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.max(np.abs(b), initial=1e-300) + 1e-12)


def boxes_together(signed_boxes):
    """Mass, COM and inertia about it, at density one, of boxes (sign, half extents, center) added and taken away."""
    mass, first, about_origin = 0.0, np.zeros(3), np.zeros((3, 3))
    for sign, half, center in signed_boxes:
        part = mass_properties(Box(half), density=1.0)
        mass += sign * float(part.mass)
        first += sign * float(part.mass) * np.asarray(center)
        about_origin += sign * np.asarray(inertia_matrix(translate_inertia(part.moment_of_inertia, part.mass, center)))
    center = first / mass
    about_center = about_origin - mass * (center @ center * np.eye(3) - np.outer(center, center))
    return mass, center, np.asarray(inertia_six(about_center))


@pytest.mark.parametrize("offset, shared", [((0.1, 0, 0), 4), ((0.1, 0.2, 0), 2), ((0.1, 0.2, 0.3), 1)])
def test_solids_that_touch_are_taken_apart(tmp_path, offset, shared):
    mesh, report = load(tmp_path, BOX, moved(BOX, offset))  # a wall, an edge, a corner in common
    assert (report.closure, report.solids, report.components, report.split) == (Closure.SEVERAL, 2, 2, shared)
    assert report.welded == shared and report.united == 0 and len(mesh.vertices) == 16


def test_a_row_of_boxes_wall_to_wall_gives_as_many_solids(tmp_path):
    grid = np.stack(np.meshgrid(*[range(2)] * 3), axis=-1).reshape(-1, 3)
    _, report = load(tmp_path, *(moved(BOX, 2 * HALF * cell) for cell in grid))
    assert (report.closure, report.solids) == (
        Closure.SEVERAL,
        8,
    )  # up to eight triangles at an edge, eight boxes at a corner
    np.testing.assert_allclose(report.volume, 8 * 0.006, rtol=1e-6)


def test_a_surface_that_touches_nothing_is_left_as_it_is():
    cube = unit_cube(2)
    vertices, triangles, split = separate(np.asarray(cube.vertices), cube.triangles)
    assert split == 0
    np.testing.assert_array_equal(vertices, cube.vertices)
    np.testing.assert_array_equal(triangles, cube.triangles)


def test_three_sheets_at_an_edge_stay_joined():
    vertices = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, -1, 0]])
    triangles = np.array([[0, 1, 2], [0, 1, 3], [1, 0, 4]])
    assert separate(vertices, triangles)[2] == 0


def test_closed_parts_of_a_file_are_not_welded_to_one_another():
    box = np.array(BOX.vertices), np.array(BOX.faces)
    _, triangles, welded = weld_parts([box, box])
    assert welded == 0 and len(np.unique(triangles)) == 16


def test_open_parts_of_a_file_that_close_one_another_are_welded(tmp_path):
    scene = trimesh.Scene()
    for k, faces in enumerate(np.split(BOX.faces, [5])):
        scene.add_geometry(trimesh.Trimesh(BOX.vertices, faces, process=False), geom_name=str(k))
    scene.export(tmp_path / "halves.glb")
    _, report = TriMesh.load_with_report(tmp_path / "halves.glb")
    assert report.closure is Closure.CLOSED and report.vertices == 8


def test_solids_that_end_in_the_same_face_both_stay_closed(tmp_path):
    half = trimesh.creation.box(2 * HALF * [0.5, 1, 1])
    _, report = load(tmp_path, BOX, moved(half, (HALF[0] / 2, 0, 0)))
    assert report.watertight and report.dropped_duplicate == 0
    np.testing.assert_allclose(report.volume, 0.006, rtol=1e-6)


def test_a_closed_mesh_is_one_solid_with_its_cavities(tmp_path):
    cavities = [turned_over(trimesh.creation.icosphere(2, 0.02).apply_translation((0, y, 0))) for y in (-0.05, 0.05)]
    _, report = load(tmp_path, BALL, *cavities)
    assert (report.closure, report.solids, report.components) == (Closure.CLOSED, 1, 3)


def test_a_solid_in_a_cavity_is_a_solid_of_its_own(tmp_path):
    cavity = turned_over(trimesh.creation.icosphere(2, 0.08))
    _, report = load(tmp_path, BALL, cavity, trimesh.creation.icosphere(2, 0.05))
    assert (report.closure, report.solids, report.overlap) == (Closure.SEVERAL, 2, 0.0)


@pytest.mark.parametrize("offset", [(0.05, 0, 0), (0.03, 0.04, 0.05)])
def test_overlapping_boxes_weigh_and_turn_as_their_union(tmp_path, offset):
    offset = np.array(offset)
    common = (-1, HALF - offset / 2, offset / 2)
    expected = boxes_together([(1, HALF, np.zeros(3)), (1, HALF, offset), common])
    mesh, report = load(tmp_path, BOX, moved(BOX, offset))
    assert (report.closure, report.united, report.solids) == (Closure.OVERLAPPING, 2, 1)
    np.testing.assert_allclose(report.overlap, 8 * np.prod(common[1]), rtol=1e-6)  # the file is single precision
    close(mass_properties(mesh, density=1.0), expected, rtol=1e-6)
    assert "united 2 closed parts" in str(report)


def test_a_part_inside_another_counts_once(tmp_path):
    mesh, report = load(tmp_path, BOX, trimesh.creation.icosphere(2, 0.03))
    assert report.closure is Closure.OVERLAPPING
    np.testing.assert_allclose(mass_properties(mesh, density=1.0).mass, 0.006, rtol=1e-6)


def test_a_union_keeps_a_cavity_and_what_another_part_leaves_of_it(tmp_path):
    cavity = turned_over(trimesh.creation.box(HALF))  # half as large
    plug = trimesh.creation.box((1.0, 0.02, 0.02))
    mesh, _ = load(tmp_path, BOX, cavity, plug)
    expected = 0.006 - 0.006 / 8 + 0.05 * 0.02**2 + 0.9 * 0.02**2  # box, cavity, plug within the cavity, and outside
    np.testing.assert_allclose(mass_properties(mesh, density=1.0).mass, expected, rtol=1e-6)


def test_without_union_the_parts_stay_and_mass_is_refused(tmp_path):
    mesh, report = load(tmp_path, BOX, moved(BOX, (0.05, 0, 0)), union=False)
    assert (report.closure, report.united, report.faces) == (Closure.OVERLAPPING, 0, 24)
    with pytest.raises(ValueError, match=r"overlap by 0.003 m\^3.*mesh.union\(\)"):
        mass_properties(mesh, density=1.0)
    close(mass_properties(mesh.union(), density=1.0).mass, 0.009, rtol=1e-6)


def test_solids_that_touch_have_the_mass_of_both():
    close(mass_properties(joined(BOX, moved(BOX, (0.1, 0, 0))), density=1.0).mass, 0.012)


def test_a_union_of_an_open_mesh_is_refused():
    with pytest.raises(ValueError, match=r"open; close it first: mesh.close\(\)"):
        TriMesh(BOX.vertices, BOX.faces[1:]).union()


def test_new_triangles_are_refused_while_tracing():
    with pytest.raises(ValueError, match="traced"):
        jax.jit(lambda v: TriMesh(v, BOX.faces).union().vertices)(np.array(BOX.vertices))


def test_without_manifold3d_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "manifold3d", None)
    with pytest.raises(ImportError, match=r'pip install "jaxsim-contact\[mesh\]"'):
        joined(BOX, moved(BOX, (0.05, 0, 0))).union()


def test_parts_whose_bounding_boxes_are_apart_need_no_manifold3d(monkeypatch):
    monkeypatch.setitem(sys.modules, "manifold3d", None)
    far = joined(BOX, moved(BOX, (0.5, 0, 0)))
    vertices, triangles = np.asarray(far.vertices), far.triangles
    assert overlap(vertices, triangles, solids_of(vertices, triangles)) == 0.0


def mirrored_six(six):
    return np.asarray(six) * [1, -1, 1, 1, -1, 1]  # y reversed


@pytest.mark.parametrize("options", [{"scale": (1.0, -1.0, 1.0)}, {"axes": "x -y z"}])
def test_a_mirrored_mesh_has_mirrored_mass_properties(tmp_path, options):
    lump = moved(trimesh.creation.box((0.1, 0.06, 0.08)), (0.08, 0.07, 0.02))
    plain = mass_properties(load(tmp_path, BOX, lump)[0], density=1.0)
    mesh, report = load(tmp_path, BOX, lump, **options)
    assert report.flipped == 0
    mirrored = mass_properties(mesh, density=1.0)
    close(mirrored.mass, plain.mass)
    close(mirrored.center_of_mass, plain.center_of_mass * np.array([1, -1, 1]))
    close(mirrored.moment_of_inertia, mirrored_six(plain.moment_of_inertia))


def test_a_surface_through_itself_is_found_and_closing_it_counts_it_once(tmp_path):
    # A ring of square section that runs twice around: one closed part, inside itself all along.
    turn = np.linspace(0.0, 4.0 * np.pi, 65)[:-1]
    radius = 0.1 + 0.01 * np.array([-1, 1, 1, -1])[None] + 0.0 * turn[:, None]
    height = 0.01 * np.array([-1, -1, 1, 1])[None] + 0.002 * np.cos(turn / 2 + 0.05)[:, None]
    ring = np.stack([radius * np.cos(turn)[:, None], radius * np.sin(turn)[:, None], height], axis=-1).reshape(-1, 3)
    i, j = np.meshgrid(np.arange(64), np.arange(4), indexing="ij")
    a, b, c, d = (4 * (i % 64) + j), (4 * ((i + 1) % 64) + j), (4 * ((i + 1) % 64) + (j + 1) % 4), 4 * i + (j + 1) % 4
    faces = np.stack([a, b, c, a, c, d], axis=-1).reshape(-1, 3)
    mesh, report = load(tmp_path, trimesh.Trimesh(ring, faces, process=False))
    assert report.watertight and report.closure is Closure.OVERLAPPING and report.united == 0
    assert any("passes through itself" in text for text in report.warnings)
    one_turn = 2 * np.pi * 0.1 * 0.02**2
    assert report.volume > 1.9 * one_turn
    closed = mesh.close(0.002)
    assert 0.98 * one_turn < mass_properties(closed, density=1.0).mass < 1.3 * one_turn  # the turns are 0.004 m apart


def test_closing_a_box_without_a_lid_gives_the_box():
    lidless = TriMesh(BOX.vertices, BOX.faces[np.array(BOX.face_normals)[:, 2] < 0.5])
    with pytest.raises(ValueError, match="not closed"):
        mass_properties(lidless, density=1.0)
    closed = lidless.close(0.005)
    assert not len(boundary_edges(closed.triangles))
    # Half the solid angle of the lid is where its centre bulges: the winding number passes one half there.
    np.testing.assert_allclose(mass_properties(closed, density=1.0).mass, 0.006, rtol=0.1)


def test_closing_a_ball_is_second_order_in_the_cell():
    ball = joined(BALL)
    exact = float(mass_properties(ball, density=1.0).mass)
    coarse, fine = (abs(float(mass_properties(ball.close(c), density=1.0).mass) - exact) for c in (0.02, 0.01))
    assert fine < 0.35 * coarse and coarse < 0.05 * exact


def test_closing_what_is_open_everywhere_ends_at_the_grid():
    lid = np.array(BOX.face_normals)[:, 0] > -0.5  # a box without one of its largest sides: more open than closed
    assert not len(boundary_edges(TriMesh(BOX.vertices, BOX.faces[lid]).close().triangles))


def test_a_sheet_encloses_nothing():
    with pytest.raises(ValueError, match=r"enclose nothing.*convex_hull"):
        TriMesh(BOX.vertices, BOX.faces[:1]).close()


@pytest.mark.parametrize("cell", [0.0, -1.0, np.nan, 1e-6])
def test_a_cell_out_of_range_is_refused(cell):
    with pytest.raises(ValueError, match="cell must be positive"):
        joined(BOX).close(cell)


def test_the_convex_hull_of_an_open_box_is_the_box():
    hull = TriMesh(BOX.vertices, BOX.faces[3:]).convex_hull()
    close(mass_properties(hull, density=1.0), mass_properties(Box(HALF), density=1.0))
    with pytest.raises(ValueError, match="in a plane"):
        TriMesh(np.eye(3), np.array([[0, 1, 2]])).convex_hull()


def test_winding_numbers_tell_inside_from_outside():
    points = RNG.uniform(-0.12, 0.12, (200, 3))
    radius = np.linalg.norm(points, axis=1)
    points = points[abs(radius - 0.1) > 0.002]  # the ball is made of triangles
    inside = np.linalg.norm(points, axis=1) < 0.1
    corners = np.array(BALL.vertices)[BALL.faces]
    np.testing.assert_allclose([winding_number_of(p, corners) for p in points], inside, atol=1e-9)
    tree = winding_numbers(points, np.array(BALL.vertices), np.array(BALL.faces))
    np.testing.assert_allclose(tree, inside, atol=0.02)


def test_a_closed_ball_weighs_like_the_ball(tmp_path):
    mesh, _ = load(tmp_path, trimesh.creation.icosphere(4, 0.1))
    close(mass_properties(mesh, density=1.0).mass, mass_properties(Sphere(0.1), density=1.0).mass, rtol=5e-3)
