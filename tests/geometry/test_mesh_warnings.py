"""Doubts that a report raises: thin walls, few samples, odd sizes."""

import numpy as np
import pytest

from jaxsim.geometry.mesh_warnings import sampling_warnings, size_warnings, support_shrink, wall_warnings
from jaxsim.geometry.quadrature import RULES, sample_surface

trimesh = pytest.importorskip("trimesh")
pytest.importorskip("igl")


def arrays(mesh):
    return np.array(mesh.vertices), np.array(mesh.faces)


@pytest.mark.parametrize("thickness, warned", [(0.1, False), (0.02, False), (0.01, True), (0.001, True)])
def test_a_plate_thinner_than_a_64th_of_its_length_is_pointed_out(thickness, warned):
    plate = trimesh.creation.box((1.0, 0.5, thickness))
    assert bool(wall_warnings(*arrays(plate), closed=True)) == warned


def test_the_thickness_of_a_thin_shell_is_told_within_a_factor_of_two():
    ball, hollow = trimesh.creation.icosphere(3, 0.5), trimesh.creation.icosphere(3, 0.495)
    hollow.invert()
    (text,) = wall_warnings(*arrays(trimesh.util.concatenate([ball, hollow])), closed=True)
    assert "thinner than 0.00781 m" in text  # 2^-7: the wall of 0.005 m lies between 2^-8 and 2^-7


@pytest.mark.parametrize(
    "solid", [trimesh.creation.icosphere(3), trimesh.creation.cone(0.3, 1.0), trimesh.creation.box()]
)
def test_an_edge_is_no_thin_wall(solid):
    assert wall_warnings(*arrays(solid), closed=True) == []


def test_a_sheet_has_no_walls_to_measure():
    assert wall_warnings(np.eye(3), np.array([[0, 1, 2]]), closed=False) == []


def test_the_support_of_a_square_of_two_triangles_shrinks_by_a_sixth():
    square = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    triangles = np.array([[0, 1, 2], [0, 2, 3]])
    np.testing.assert_allclose(support_shrink(square, triangles), 1 / 6, rtol=1e-6)
    reach = np.asarray(sample_surface(square, triangles, RULES["P1Q3"]).position).max(axis=1)
    np.testing.assert_allclose(1 - reach[:2], 1 / 6, rtol=1e-12)


def test_subdividing_as_the_warning_says_silences_it():
    box = trimesh.creation.box((0.1, 0.2, 0.3))
    (text,) = sampling_warnings(*arrays(box))
    assert "up to 0.05 m" in text  # a sixth of the longest edge
    max_edge = float(text.split("mesh.subdivide(")[1].split(")")[0])
    assert sampling_warnings(*trimesh.remesh.subdivide_to_size(*arrays(box), max_edge)) == []


def test_a_round_body_of_many_triangles_has_no_flat_face_to_warn_of():
    assert sampling_warnings(*arrays(trimesh.creation.icosphere(2))) == []


@pytest.mark.parametrize("extent, hint", [(300.0, "unit='mm'"), (3e-4, "unit='km'")])
def test_a_doubtful_size_comes_with_the_unit_to_try(extent, hint):
    (text,) = size_warnings(extent)
    assert hint in text
