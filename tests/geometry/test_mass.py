"""Mass properties against independent answers, their scaling laws, and the checks on given ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jaxsim.geometry.mass import (
    MassProperties,
    check_mass_properties,
    inertia_from_cad_products,
    inertia_matrix,
    inertia_six,
    mass_properties,
    rotate_inertia,
    translate_inertia,
    translate_inertia_to_center,
)
from jaxsim.geometry.mesh import TriMesh
from jaxsim.geometry.shapes import Box, Capsule, Cylinder, Plane, Sphere, surface_of
from jaxsim.geometry.surface import Surface, unit_icosphere

RNG = np.random.default_rng(4)
SIX = np.array([2.0, 0.1, -0.2, 3.0, 0.3, 4.0])
TETRAHEDRON = Surface(
    np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]),
    np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]),
)
of_density = jax.jit(lambda solid, density: mass_properties(solid, density=density))
of_mass = jax.jit(lambda solid, mass: mass_properties(solid, mass=mass))


def close(actual, expected, rtol=1e-13, atol=1e-13):
    """Arrays, or `MassProperties` field by field."""
    if not isinstance(actual, MassProperties):
        actual, expected = np.asarray(actual), np.asarray(expected)
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def moved(surface: Surface, scale=1.0, rotation=None, offset=(0, 0, 0)) -> Surface:
    turn = np.eye(3) if rotation is None else rotation.as_matrix()
    return Surface(scale * np.asarray(surface.vertices) @ turn.T + np.asarray(offset), surface.triangles)


def test_box_formula_and_surface_integrals_agree():
    box = Box((0.1, 0.2, 0.3))
    assert np.isclose(of_density(box, 1000.0).mass, 48.0)
    close(of_density(surface_of(box, 2), 1000.0), of_density(box, 1000.0))
    a, b, c = 0.2, 0.4, 0.6  # edges
    close(of_mass(box, 12.0).moment_of_inertia, [b * b + c * c, 0, 0, a * a + c * c, 0, a * a + b * b])


def test_icosphere_converges_to_the_ball_at_second_order():
    ball = 8 * np.pi / 15
    coarse, fine = (ball - of_density(unit_icosphere(level), 1.0).moment_of_inertia[0] for level in (0, 1))
    np.testing.assert_allclose(coarse / fine, 4.0, rtol=0.03)


@pytest.mark.parametrize("solid", [Capsule(0.3, 0.5), Cylinder(0.3, 0.5)])
def test_round_surfaces_converge_to_their_formulas_at_second_order(solid):
    exact = of_density(solid, 2.0)
    coarse, fine = (of_density(surface_of(solid, n), 2.0) for n in (1, 3))  # edges of half the length
    close(fine.center_of_mass, exact.center_of_mass, atol=1e-15)
    for field in (lambda m: m.mass, lambda m: m.moment_of_inertia[jnp.array([0, 3, 5])]):
        assert np.all(field(exact) > field(fine))  # corners on the surface: inside a convex solid
        ratio = (field(exact) - field(coarse)) / (field(exact) - field(fine))
        np.testing.assert_allclose(ratio, 4.0, rtol=0.01)


def test_a_capsule_without_length_is_a_ball_and_a_flat_cylinder_a_disk():
    close(of_mass(Capsule(0.3, 1e-9), 2.0).moment_of_inertia, of_mass(Sphere(0.3), 2.0).moment_of_inertia, rtol=1e-8)
    close(of_mass(Cylinder(0.3, 1e-9), 2.0).moment_of_inertia, np.array([1, 0, 0, 1, 0, 2]) * 0.5 * 0.3**2, rtol=1e-12)


def test_unit_tetrahedron_has_its_textbook_properties():
    properties = of_density(TETRAHEDRON, 6.0)
    close(properties.mass, 1.0)
    close(properties.center_of_mass, np.full(3, 0.25))
    # integral of x^2 is 1/60, of x y 1/120, times 6; about the origin
    about_origin = translate_inertia(properties.moment_of_inertia, 1.0, properties.center_of_mass)
    close(about_origin, np.array([2, -0.5, -0.5, 2, -0.5, 2]) / 10)


def test_surface_integrals_agree_with_random_points():
    turned = moved(surface_of(Box((0.1, 0.2, 0.3))), rotation=Rotation.from_rotvec([0.3, 0.5, -0.2]), offset=(1, 2, 3))
    x = RNG.uniform(-1, 1, (400_000, 3)) * [0.1, 0.2, 0.3] @ Rotation.from_rotvec([0.3, 0.5, -0.2]).as_matrix().T
    covariance = x.T @ x / len(x)
    properties = of_mass(turned, 1.0)
    close(properties.center_of_mass, [1, 2, 3])
    close(inertia_matrix(properties.moment_of_inertia), np.trace(covariance) * np.eye(3) - covariance, atol=2e-4)


def test_far_from_the_origin_no_digits_are_lost_to_the_offset():
    near, far = (of_density(moved(TETRAHEDRON, offset=(x, 0, 0)), 1.0) for x in (0.0, 1024.0))
    close(far.moment_of_inertia, near.moment_of_inertia, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("scale", [0.1, 3.0])
def test_scaling_a_mesh_scales_mass_by_its_cube_and_inertia_by_its_fifth_power(scale):
    shape = moved(TETRAHEDRON, offset=(0.2, 0.1, -0.3))
    before, after = of_density(shape, 7.0), of_density(moved(shape, scale), 7.0)
    close(after.mass, before.mass * scale**3)
    close(after.center_of_mass, before.center_of_mass * scale)
    close(after.moment_of_inertia, before.moment_of_inertia * scale**5)
    at_fixed_mass = of_mass(moved(shape, scale), before.mass)
    close(at_fixed_mass.moment_of_inertia, before.moment_of_inertia * scale**2)


def test_turning_a_mesh_turns_its_inertia():
    rotation = Rotation.random(rng=RNG)
    before, after = of_density(TETRAHEDRON, 1.0), of_density(moved(TETRAHEDRON, rotation=rotation), 1.0)
    close(after.moment_of_inertia, rotate_inertia(before.moment_of_inertia, rotation.as_quat()))
    close(after.center_of_mass, rotation.as_matrix() @ np.asarray(before.center_of_mass))


def test_inertia_is_differentiable_in_vertices_and_size():
    by_formula = jax.jacobian(lambda h: mass_properties(Box(h), density=2.0).moment_of_inertia)
    by_vertices = jax.jacobian(lambda h: mass_properties(surface_of(Box(h)), density=2.0).moment_of_inertia)
    half = jnp.array([0.5, 0.7, 1.1])
    close(jax.jit(by_vertices)(half), jax.jit(by_formula)(half))


def test_trailing_axes_give_one_body_each(dtype):
    half = RNG.uniform(0.1, 1, (3, 4, 2)).astype(dtype)
    many = of_density(Box(half), 3.0)
    assert many.mass.dtype == many.moment_of_inertia.dtype == dtype
    one = of_density(Box(half[:, 1, 1]), 3.0)
    close(jax.tree.map(lambda leaf: leaf[..., 1, 1], many), one, rtol=1e-6)
    masses = of_mass(Sphere(half[0]), half[1])
    np.testing.assert_allclose(masses.moment_of_inertia[3], 0.4 * half[1] * half[0] ** 2, rtol=1e-6)


def test_given_mass_wins_over_density():
    assert mass_properties(Box((1, 1, 1)), density=1.0, mass=5.0).mass == 5.0


@pytest.mark.parametrize(
    "solid, given, message",
    [
        (Sphere(1.0), {}, "density"),
        (Plane(), {"density": 1.0}, "Plane encloses no known volume"),
        (Surface(TETRAHEDRON.vertices, TETRAHEDRON.triangles[1:]), {"density": 1.0}, "not closed"),
        (TriMesh(TETRAHEDRON.vertices, TETRAHEDRON.triangles[1:]), {"density": 1.0}, "moment_of_inertia, or close"),
        (Surface(TETRAHEDRON.vertices, TETRAHEDRON.triangles[:, ::-1]), {"density": 1.0}, "anticlockwise"),
    ],
)
def test_mass_of_what_encloses_no_volume_is_refused(solid, given, message):
    with pytest.raises(ValueError, match=message):
        mass_properties(solid, **given)


def test_six_numbers_and_matrix_are_the_same_tensor():
    matrix = inertia_matrix(SIX)
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(inertia_six(matrix), SIX)


def test_parallel_axes_there_and_back():
    offset = np.array([0.3, -0.4, 0.5])
    there = translate_inertia(SIX, 2.0, offset)
    close(inertia_matrix(there), inertia_matrix(SIX) + 2.0 * (offset @ offset * np.eye(3) - np.outer(offset, offset)))
    close(translate_inertia_to_center(there, 2.0, offset), SIX)


def test_cad_products_change_sign():
    """Two points at +-(1, 1, 0): the product sum m x y is +2, the tensor's entry -2."""
    close(inertia_from_cad_products(ixx=2, iyy=2, izz=4, pxy=2, pxz=0, pyz=0.0), [2, -2, 0, 2, 0, 4])


def test_possible_mass_properties_pass():
    check_mass_properties("plate", 1.0, np.zeros(3), np.array([1.0, 0, 0, 1.0, 0, 2.0]))  # flat: equality
    check_mass_properties("solid", 2.0, np.ones(3), SIX)


@pytest.mark.parametrize(
    "mass, center, inertia, message",
    [
        (0.0, np.zeros(3), SIX, "mass must be positive"),
        (-1.0, np.zeros(3), SIX, "mass must be positive"),
        (np.nan, np.zeros(3), SIX, "mass must be finite"),
        (1.0, np.array([0, np.inf, 0]), SIX, "center_of_mass must be finite"),
        (1.0, np.zeros(3), np.eye(3), r"shape \(6,\)"),
        (1.0, np.zeros(3), np.array([1.0, 2.0, 0, 1.0, 0, 1.0]), "has negative principal moments"),
        (1.0, np.zeros(3), np.array([1.0, 0, 0, 1.0, 0, 2.1]), "largest above the sum"),
    ],
)
def test_impossible_mass_properties_are_refused_by_actor_and_field(mass, center, inertia, message):
    with pytest.raises(ValueError, match=f"actor 'cube'.*{message}"):
        check_mass_properties("cube", mass, center, inertia)
