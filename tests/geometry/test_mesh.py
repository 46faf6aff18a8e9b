"""Triangle meshes: what is accepted, and what reading a file repairs, reports or refuses."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.geometry.mass import mass_properties
from jaxsim.geometry.mesh import TriMesh
from jaxsim.geometry.mesh_repair import drop_duplicates, orient, weld
from jaxsim.geometry.shapes import Box, Sphere, distance_and_gradient, surface_of
from jaxsim.math.vector import Vec3

trimesh = pytest.importorskip("trimesh")

RNG = np.random.default_rng(5)
BOX = trimesh.creation.box((0.1, 0.2, 0.3))
BALL = trimesh.creation.icosphere(2, 0.1)
CORNERS, TRIANGLE = np.eye(3), np.array([[0, 1, 2]])


def write(path, *meshes):
    trimesh.util.concatenate(meshes).export(path)
    return path


def load(path, scale=1.0):
    return TriMesh.load_with_report(path, scale)


def turned_over(mesh, which=slice(None)):
    faces = mesh.faces.copy()
    faces[which] = faces[which][:, ::-1]
    return trimesh.Trimesh(mesh.vertices, faces, process=False)


@pytest.mark.parametrize(
    "vertices, triangles, message",
    [
        (np.zeros((3, 2)), TRIANGLE, r"vertices must have shape \(V, 3\)"),
        (np.array([[0, 0, 0], [1, np.nan, 0], [0, 1, 0]]), TRIANGLE, "vertex 1"),
        (CORNERS, np.zeros((1, 4), int), r"triangles must have shape \(F, 3\)"),
        (CORNERS, TRIANGLE.astype(float), "integers"),
        (CORNERS, np.zeros((0, 3), int), "empty"),
        (CORNERS, np.array([[0, 1, 2], [1, 2, 3]]), "triangle 1"),
        (CORNERS, np.array([[0, 1, -1]]), "triangle 0"),
    ],
)
def test_malformed_meshes_are_refused(vertices, triangles, message):
    with pytest.raises(ValueError, match=message):
        TriMesh(vertices, triangles)


def test_a_mesh_has_no_analytic_distance():
    with pytest.raises(ValueError, match="collider"):
        distance_and_gradient(TriMesh(CORNERS, TRIANGLE), Vec3.of(jnp.zeros(3)))


def test_a_mesh_is_a_pytree_whose_vertices_may_be_traced():
    def volume(scale):
        return mass_properties(TriMesh(scale * BOX.vertices, BOX.faces), density=1.0).mass

    np.testing.assert_allclose(jax.jit(jax.grad(volume))(1.0), 3 * 0.006)
    doubled = jax.tree.map(lambda leaf: 2 * leaf, TriMesh(BOX.vertices, BOX.faces))
    np.testing.assert_array_equal(surface_of(doubled).vertices, 2 * BOX.vertices)
    with pytest.raises(ValueError, match="subdivisions"):
        surface_of(doubled, 1)


@pytest.mark.parametrize("suffix", ["stl", "obj", "ply", "off", "glb"])
def test_every_format_gives_the_same_solid(tmp_path, suffix):
    mesh, report = load(write(tmp_path / f"box.{suffix}", BOX))
    assert (report.vertices, report.faces, report.components, report.watertight) == (8, 12, 1, True)
    assert report.welded == (28 if suffix == "stl" else 0)
    expected = mass_properties(Box((0.05, 0.1, 0.15)), density=1000.0)
    for a, b in zip(jax.tree.leaves(mass_properties(mesh, density=1000.0)), jax.tree.leaves(expected)):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)  # STL is single precision


def test_load_prints_the_report_unless_silenced(tmp_path, capsys):
    path = write(tmp_path / "box.stl", BOX)
    TriMesh.load(path, verbose=False)
    assert capsys.readouterr().out == ""
    TriMesh.load(path)
    assert "12 triangles" in capsys.readouterr().out


def test_the_report_is_a_dictionary_too(tmp_path):
    report = load(write(tmp_path / "box.stl", BOX))[1].as_dict()
    np.testing.assert_allclose(report["extents"], [0.1, 0.2, 0.3], rtol=1e-6)
    np.testing.assert_allclose([report["volume"], report["area"]], [0.006, 0.22], rtol=1e-6)


def test_scale_multiplies_and_a_mirror_stays_outward(tmp_path):
    path = write(tmp_path / "box.ply", BOX)
    np.testing.assert_allclose(load(path, 0.1)[1].volume, 6e-6, rtol=1e-6)
    _, mirrored = load(path, (1.0, -1.0, 2.0))
    assert mirrored.flipped == 0
    np.testing.assert_allclose(mirrored.volume, 0.012, rtol=1e-6)


def test_scenes_are_flattened_with_the_transforms_of_their_nodes(tmp_path):
    mirrored = np.diag([1.0, -1.0, 1.0, 1.0])
    mirrored[0, 3] = 1.0
    scene = trimesh.Scene()
    scene.add_geometry(BOX)
    scene.add_geometry(BALL, transform=mirrored)
    scene.export(tmp_path / "scene.glb")
    _, report = load(tmp_path / "scene.glb")
    assert (report.components, report.watertight, report.flipped) == (2, True, 0)
    np.testing.assert_allclose(report.extents[0], 1.15, rtol=1e-6)
    np.testing.assert_allclose(report.volume, BOX.volume + BALL.volume, rtol=1e-5)


@pytest.mark.parametrize("share", [0.2, 0.8, 1.0])
def test_scrambled_winding_is_made_consistent_and_outward(tmp_path, share):
    which = RNG.random(len(BALL.faces)) < share
    _, report = load(write(tmp_path / "ball.ply", turned_over(BALL, which)))
    assert report.flipped == which.sum()
    np.testing.assert_allclose(report.volume, BALL.volume, rtol=1e-6)


@pytest.mark.parametrize("inverted", [False, True])
def test_a_cavity_remains_a_cavity(tmp_path, inverted):
    shell = trimesh.util.concatenate([BALL, turned_over(trimesh.creation.icosphere(2, 0.05))])
    _, report = load(write(tmp_path / "shell.ply", turned_over(shell) if inverted else shell))
    assert report.components == 2 and report.flipped == (len(shell.faces) if inverted else 0)
    np.testing.assert_allclose(report.volume, BALL.volume * 7 / 8, rtol=1e-6)


@pytest.mark.parametrize("offset", [(0.1, 0, 0), (0.1, 0.2, 0), (0.5, 0, 0)])  # a wall in common, an edge, nothing
def test_solids_that_touch_stay_two_closed_solids(tmp_path, offset):
    other = BOX.copy()
    other.apply_translation(offset)
    _, report = load(write(tmp_path / "two.ply", BOX, other))
    assert report.watertight
    np.testing.assert_allclose(report.volume, 0.012, rtol=1e-6)


def test_degenerate_and_duplicate_faces_go_and_are_counted(tmp_path):
    faces = np.concatenate([BOX.faces, BOX.faces[:2], [[0, 0, 1]]])
    _, report = load(write(tmp_path / "box.ply", trimesh.Trimesh(BOX.vertices, faces, process=False)))
    assert (report.dropped_degenerate, report.dropped_duplicate, report.faces) == (1, 2, 12)
    assert report.watertight


def test_a_sliver_goes_unless_the_surface_needs_it(tmp_path):
    vertices = np.concatenate([BOX.vertices, BOX.vertices[BOX.faces[0, :2]].mean(axis=0, keepdims=True)])
    a, b, c = BOX.faces[0]
    loose = np.concatenate([BOX.faces, [[a, b, 8]]])
    _, report = load(write(tmp_path / "loose.ply", trimesh.Trimesh(vertices, loose, process=False)))
    assert report.dropped_degenerate == 1 and report.watertight
    needed = np.concatenate([BOX.faces[1:], [[a, 8, c], [8, b, c], [b, 8, a]]])  # the neighbour keeps the long edge
    _, report = load(write(tmp_path / "needed.ply", trimesh.Trimesh(vertices, needed, process=False)))
    assert report.dropped_degenerate == 0 and report.watertight
    assert any("without area" in text for text in report.warnings)


def test_vertices_closer_than_a_millionth_of_the_diagonal_are_welded():
    soup = BOX.vertices[BOX.faces].reshape(-1, 3) + RNG.uniform(-3e-8, 3e-8, (36, 3))
    triangles, welded = weld(soup, np.arange(36).reshape(-1, 3))
    assert welded == 28 and len(np.unique(triangles)) == 8


def test_a_face_and_its_reverse_are_no_duplicates():
    triangles, dropped = drop_duplicates(np.array([[0, 1, 2], [2, 1, 0], [1, 2, 0]]))
    assert dropped == 1
    np.testing.assert_array_equal(triangles, [[0, 1, 2], [2, 1, 0]])


def test_a_moebius_strip_is_found_one_sided():
    strip = np.array([[i % 8, (i + 1) % 8, (i + 2) % 8] for i in range(6)] + [[6, 7, 1], [7, 1, 0]])
    vertices = RNG.normal(size=(8, 3))
    assert orient(vertices, strip).one_sided in (0, 8)
    twisted = np.array([[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 0], [4, 0, 1]])  # five triangles, the smallest
    assert orient(vertices, twisted).one_sided == 5


def test_an_open_mesh_loads_with_a_warning_but_has_no_mass(tmp_path):
    sheet = trimesh.Trimesh(BOX.vertices, BOX.faces[2:], process=False)
    mesh, report = load(write(tmp_path / "open.ply", sheet))
    assert not report.watertight
    assert any("open" in text for text in report.warnings) and "not watertight" in str(report)
    with pytest.raises(ValueError, match="not closed"):
        mass_properties(mesh, density=1.0)


@pytest.mark.parametrize("scale, hint", [(1000.0, "unit='mm'"), (1e-3, "unit='km'"), (1.0, "12 triangles")])
def test_doubtful_units_and_few_faces_are_pointed_out(tmp_path, scale, hint):
    _, report = load(write(tmp_path / "box.ply", BOX), scale)
    assert any(hint in text for text in report.warnings)


def test_a_fine_mesh_of_ordinary_size_gives_no_warning(tmp_path):
    mesh, report = load(write(tmp_path / "ball.stl", BALL))
    assert report.warnings == ()
    assert (
        mass_properties(mesh, mass=1.0).moment_of_inertia[0]
        < mass_properties(Sphere(0.1), mass=1.0).moment_of_inertia[0]
    )


def cut(data: bytes) -> bytes:
    return data[: len(data) * 2 // 3]


@pytest.mark.parametrize(
    "name, content, cause",
    [
        ("none.stl", None, "no file of that name"),
        ("empty.obj", b"", "empty"),
        ("solid.step", b"ISO-10303-21;", "unknown format '.step'"),
        ("cut.stl", cut(BOX.export(file_type="stl")), "cut short"),
        ("text.stl", cut(BOX.export(file_type="stl_ascii").encode()), "cut short"),
        ("cut.ply", cut(BOX.export(file_type="ply")), "cannot be read"),
        ("cut.glb", cut(BOX.export(file_type="glb")), "cannot be read"),
        ("cut.off", cut(BOX.export(file_type="off").encode()), "cannot be read"),
        ("points.ply", trimesh.PointCloud(CORNERS).export(file_type="ply"), "no triangles"),
        ("nan.obj", b"v 0 0 0\nv 1 0 nan\nv 0 1 0\nf 1 2 3\n", "vertex 1"),
        ("index.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n", "cannot be read"),
        ("flat.obj", b"v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3\n", "degenerate"),
    ],
)
def test_a_bad_file_is_refused_by_path_and_cause(tmp_path, name, content, cause):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=cause) as refusal:
        TriMesh.load(path)
    assert str(path) in str(refusal.value)


@pytest.mark.parametrize("scale", [0.0, np.nan, (1.0, 0.0, 1.0)])
def test_a_scale_of_nothing_is_refused(tmp_path, scale):
    with pytest.raises(ValueError, match="scale"):
        load(write(tmp_path / "box.stl", BOX), scale)


def test_without_trimesh_the_extra_is_named(tmp_path, monkeypatch):
    path = write(tmp_path / "box.stl", BOX)
    monkeypatch.setitem(sys.modules, "trimesh", None)
    with pytest.raises(ImportError, match=r'pip install "jaxsim-contact\[mesh\]"'):
        TriMesh.load(path)
