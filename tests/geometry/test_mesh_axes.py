"""Units and axes of mesh files."""

import numpy as np
import pytest

from jaxsim.geometry.mass import mass_properties
from jaxsim.geometry.mesh import TriMesh
from jaxsim.geometry.mesh_axes import AXES, conversion

TETRAHEDRON = TriMesh(
    np.array([[0.0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]]), np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
)


@pytest.mark.parametrize("axes", [axes for axes in AXES if "y-up" in axes])
def test_up_of_a_y_up_file_becomes_z(axes):
    np.testing.assert_array_equal(conversion(axes=axes) @ [0, 1, 0], [0, 0, 1])


def test_up_of_an_x_up_file_becomes_z():
    np.testing.assert_array_equal(conversion(axes="x-up") @ [1, 0, 0], [0, 0, 1])


@pytest.mark.parametrize("axes", AXES)
def test_only_left_handed_axes_mirror(axes):
    np.testing.assert_allclose(np.linalg.det(conversion(axes=axes)), -1.0 if "left" in axes else 1.0)


@pytest.mark.parametrize("axes", [*AXES, "-x -z -y", "y z x"])
def test_a_converted_solid_has_its_volume_still(axes):
    mesh = TETRAHEDRON.convert(2.0, axes=axes)
    np.testing.assert_allclose(mass_properties(mesh, density=1.0).mass, 8.0, rtol=1e-12)  # negative if inside out


@pytest.mark.parametrize("unit, metres", [("mm", 1e-3), ("inch", 0.0254), ("ft", 0.3048)])
def test_units_are_metres_times_a_factor(unit, metres):
    np.testing.assert_allclose(TETRAHEDRON.convert(unit=unit).vertices, metres * TETRAHEDRON.vertices, rtol=1e-15)


def test_scale_counts_in_the_axes_of_the_file():
    np.testing.assert_array_equal(conversion((1.0, 2.0, 3.0), axes="y-up") @ [1, 1, 1], [1, -3, 2])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"unit": "parsec"}, "unit must be one of m, cm"),
        ({"axes": "x y"}, "axes must be one of"),
        ({"axes": "x x z"}, "got 'x x z'"),
        ({"axes": "x --y z"}, "axes must be one of"),
        ({"axes": ""}, "axes must be one of"),
        ({"scale": (1.0, 2.0)}, "scale must be one number or three"),
    ],
)
def test_unknown_units_and_axes_are_refused_with_the_known_ones(options, message):
    with pytest.raises(ValueError, match=message):
        conversion(**options)
