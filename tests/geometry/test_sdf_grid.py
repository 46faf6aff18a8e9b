"""Interpolated distance grids: values, gradients and derivatives, one grid and many."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from scipy.interpolate import RegularGridInterpolator
from scipy.spatial.transform import Rotation

from jaxsim.geometry.sdf_grid import SdfGrid, SdfGrids, spline_coefficients
from jaxsim.geometry.shapes import distance_and_gradient
from jaxsim.math.vector import Vec3

RNG = np.random.default_rng(8)
BOUNDS = np.array([[-0.3, 0.1, -0.2], [0.5, 0.7, 0.4]])
DIMS = (5, 4, 6)
VALUES = RNG.normal(size=DIMS)
KINDS = ("trilinear", "quadratic")
EXTENT = BOUNDS[1] - BOUNDS[0]
INSIDE = BOUNDS[0][:, None] + EXTENT[:, None] * RNG.uniform(0.01, 0.99, (3, 40))
# Every combination of below, within and above along the three axes, none on a cell's face.
OUTSIDE = np.stack(np.meshgrid(*np.stack([BOUNDS[0] - 0.17, BOUNDS.mean(0) + 0.013, BOUNDS[1] + 0.11]).T)).reshape(
    3, -1
)
ANYWHERE = np.concatenate([INSIDE, OUTSIDE], axis=1)


@jax.jit
def sample(shape, points):
    distance, gradient = distance_and_gradient(shape, Vec3.of(points))
    return distance, gradient.stack()


def grid(kind="trilinear", values=VALUES, bounds=BOUNDS):
    return SdfGrid(values, bounds, kind)


def nodes(bounds=BOUNDS, dims=DIMS):
    return np.stack(np.meshgrid(*(np.linspace(*b, n) for b, n in zip(bounds.T, dims)), indexing="ij"))


@functools.partial(jax.jit, static_argnums=0)
def of_leaves(kind, values, bounds, points):
    return sample(SdfGrid(values, bounds, kind), points)


def test_trilinear_values_are_those_of_an_independent_interpolator(dtype):
    axes = [np.linspace(*b, n) for b, n in zip(BOUNDS.T, DIMS)]
    expected = RegularGridInterpolator(axes, VALUES)(INSIDE.T)
    distance, gradient = sample(grid(values=VALUES.astype(dtype), bounds=BOUNDS.astype(dtype)), INSIDE.astype(dtype))
    assert distance.dtype == gradient.dtype == dtype
    np.testing.assert_allclose(distance, expected, atol=40 * jnp.finfo(dtype).eps)


def test_contact_distances_and_normals_are_those_of_the_reference_engine():
    data, body = np.load(reference.find("e_ball_lshape_sdf")), "ell"
    met = data[f"{body}_cp_actor_b"] == body
    position, expected, direction = (data[f"{body}_cp_{field}"][met] for field in ("pos_a", "distance", "normal"))
    shape = SdfGrid(data[f"sdf_{body}_values"].reshape(data[f"sdf_{body}_dims"]), data[f"sdf_{body}_bounds"])
    world_from_body = Rotation.from_quat(data[f"{body}_quat"][-1]).as_matrix()
    distance, gradient = sample(shape, ((position - data[f"{body}_pos"][-1]) @ world_from_body).T)
    normal = (world_from_body @ gradient).T
    normal = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    assert len(distance) > 20
    np.testing.assert_allclose(distance, expected, atol=1e-15)
    np.testing.assert_allclose(normal, direction, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_linear_field_is_reproduced_up_to_the_bounds(kind):
    slope, center = np.array([0.3, -0.7, 0.5]), BOUNDS.mean(axis=0)[:, None, None, None]
    points = center + 0.999 * (nodes() - center)
    distance, gradient = sample(grid(kind, np.tensordot(slope, nodes(), 1) + 0.1), points)
    np.testing.assert_allclose(distance, np.tensordot(slope, points, 1) + 0.1, atol=1e-15)
    np.testing.assert_allclose(gradient, np.broadcast_to(slope[:, None, None, None], gradient.shape), atol=1e-13)


def test_a_spline_through_its_coefficients_takes_the_node_values():
    distance, _ = sample(grid("quadratic", spline_coefficients(jnp.asarray(VALUES))), nodes())
    np.testing.assert_allclose(distance, VALUES, atol=1e-14)


@pytest.mark.parametrize("kind, order", [("trilinear", 2), ("quadratic", 3)])
def test_the_distance_of_a_ball_converges_at_the_order_of_the_interpolation(kind, order):
    bounds = np.array([[-1.0] * 3, [1.0] * 3])
    points = RNG.normal(size=(3, 400))
    radius = RNG.uniform(0.5, 0.9, 400)
    points *= radius / np.linalg.norm(points, axis=0)

    def error(cells: int) -> float:
        values = jnp.linalg.norm(nodes(bounds, (cells + 1,) * 3), axis=0) - 0.7
        coefficients = values if kind == "trilinear" else spline_coefficients(values)
        return np.abs(sample(grid(kind, coefficients, bounds), points)[0] - radius + 0.7).mean()

    np.testing.assert_allclose(np.log2(error(16) / error(32)), order, atol=0.15)


@pytest.mark.parametrize("kind", KINDS)
def test_outside_the_bounds_the_distance_to_them_is_added(kind):
    nearest = np.clip(OUTSIDE, *BOUNDS[:, :, None])
    at_bounds, slope = sample(grid(kind), nearest)
    distance, gradient = sample(grid(kind), OUTSIDE)
    beyond = np.linalg.norm(OUTSIDE - nearest, axis=0)
    np.testing.assert_allclose(distance, at_bounds + beyond, rtol=1e-14, atol=1e-14)
    out = nearest != OUTSIDE
    direction = (OUTSIDE - nearest) / np.where(beyond > 0, beyond, 1.0)
    np.testing.assert_allclose(gradient, np.where(out, direction, slope), atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_the_written_gradient_is_that_of_autodiff(kind):
    distance, pull = jax.vjp(lambda p: sample(grid(kind), p)[0], ANYWHERE)
    np.testing.assert_allclose(pull(jnp.ones_like(distance))[0], sample(grid(kind), ANYWHERE)[1], atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_distance_and_gradient_are_differentiable_in_values_bounds_and_points(kind):
    """The gradient is an output: its derivatives are second derivatives of the distance."""
    leaves = jnp.asarray(VALUES), jnp.asarray(BOUNDS), jnp.asarray(ANYWHERE)
    toward = tuple(jnp.asarray(RNG.normal(size=x.shape)) for x in leaves)
    out, forward = tangents(kind, leaves, toward)
    shifted = [of_leaves(kind, *(x + s * d for x, d in zip(leaves, toward))) for s in (STEP, -STEP)]
    for derivative, ahead, behind in zip(forward, *shifted):
        np.testing.assert_allclose(derivative, (ahead - behind) / (2 * STEP), rtol=1e-7, atol=1e-7)
    weights = tuple(jnp.asarray(RNG.normal(size=x.shape)) for x in out)
    backward = cotangents(kind, leaves, weights)
    inner = lambda a, b: sum(np.vdot(x, y) for x, y in zip(a, b))
    np.testing.assert_allclose(inner(backward, toward), inner(weights, forward), rtol=1e-11)


STEP = 1e-6
tangents = jax.jit(lambda kind, x, d: jax.jvp(functools.partial(of_leaves, kind), x, d), static_argnums=0)
cotangents = jax.jit(lambda kind, x, w: jax.vjp(functools.partial(of_leaves, kind), *x)[1](w), static_argnums=0)


@pytest.mark.parametrize("kind", KINDS)
def test_one_distance_depends_on_the_nodes_about_it_alone(kind):
    slope = jax.grad(lambda values: of_leaves(kind, values, BOUNDS, INSIDE[:, 0])[0])(jnp.asarray(VALUES))
    assert np.count_nonzero(slope) == {"trilinear": 8, "quadratic": 27}[kind]
    np.testing.assert_allclose(np.sum(slope), 1.0, atol=1e-14)


def test_the_gradient_jumps_between_cells_only_if_trilinear():
    face = BOUNDS[0] + EXTENT * np.array([2 / 4, 0.3, 0.4])  # on a node along x
    sides = np.stack([face - [1e-9, 0, 0], face + [1e-9, 0, 0]], axis=1)
    middle = BOUNDS[0] + EXTENT * np.array([2.5 / 4, 0.3, 0.4])  # where pieces of the spline join
    joint = np.stack([middle - [1e-9, 0, 0], middle + [1e-9, 0, 0]], axis=1)
    jump = lambda kind, p: np.abs(np.diff(sample(grid(kind), p)[1])).max()
    assert jump("trilinear", sides) > 1.0
    assert jump("quadratic", joint) < 1e-6


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e-12])
def test_derivatives_are_finite_on_nodes_faces_and_just_outside(kind, scale, dtype):
    corners = np.stack(np.meshgrid([0.0, 0.5, 1.0], [0.0, 0.5, 1.0], [0.0, 0.5, 1.0])).reshape(3, -1)
    points = (corners + np.where(corners == 0.5, 0.0, np.sign(corners - 0.5) * scale)).astype(dtype)
    unit = np.array([np.zeros(3), np.ones(3)], dtype)
    leaves = of_leaves(kind, VALUES.astype(dtype), unit, points), hessians(kind, VALUES.astype(dtype), unit, points)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(leaves))


@functools.partial(jax.jit, static_argnums=0)
def hessians(kind, values, bounds, points):
    single = lambda p: SdfGrid(values, bounds, kind).signed_distance(Vec3.of(p))
    return jax.vmap(jax.hessian(single), 1)(points)


@pytest.mark.parametrize("kind", KINDS)
def test_a_point_that_is_no_number_gives_no_number_to_itself_alone(kind):
    points = INSIDE.copy()
    points[1, 0] = np.nan
    distance, _ = sample(grid(kind), points)
    assert np.isnan(distance[0]) and np.all(np.isfinite(distance[1:]))


@pytest.mark.parametrize("kind", KINDS)
def test_vmap_over_points_and_over_grids_agrees_with_arrays(kind):
    expected = sample(grid(kind), INSIDE)
    mapped = jax.vmap(sample, (None, 1), (0, 1))(grid(kind), INSIDE)
    many = jax.tree.map(lambda leaf: jnp.stack([leaf] * 3), grid(kind))
    mapped_grids = jax.vmap(sample, (0, None))(many, INSIDE)
    for a, b, e in zip(mapped, mapped_grids, expected):
        np.testing.assert_allclose(a, e, rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(b, np.stack([e] * 3), rtol=1e-14, atol=1e-14)


OTHER = SdfGrid(RNG.normal(size=(3, 7, 4)), BOUNDS + 0.05)


@pytest.mark.parametrize("worlds", [0, 1, 2])
def test_grids_of_different_dims_in_one_array_are_each_asked_their_own(worlds):
    """Without a world axis, with one world, and with values and bounds of each world."""
    singles = [[grid(values=VALUES * (1 + w)), OTHER, grid(values=VALUES * (2 + w))] for w in range(max(worlds, 1))]
    points = RNG.uniform(-0.5, 0.9, (3, 7, 3, *(worlds,) * (worlds > 0)))
    batches = [SdfGrids.of(row) for row in singles]
    batch = batches[0] if worlds == 0 else jax.tree.map(lambda *x: jnp.stack(x, -1), *batches)
    distance, gradient = sample(batch, points)
    for row, world in np.ndindex(3, max(worlds, 1)):
        place = (..., row) if worlds == 0 else (..., row, world)
        d, g = sample(singles[world][row], points[place])
        np.testing.assert_allclose(distance[place], d, rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(gradient[place], g, rtol=1e-13, atol=1e-13)


def test_worlds_may_share_the_values_and_differ_in_their_points():
    batch = jax.tree.map(lambda x: x[..., None], SdfGrids.of([grid(), OTHER]))
    points = RNG.uniform(-0.5, 0.9, (3, 7, 2, 5))
    distance, _ = sample(batch, points)
    np.testing.assert_allclose(distance[..., 1, 3], sample(OTHER, points[..., 1, 3])[0], rtol=1e-14, atol=1e-14)


def test_rows_of_many_grids_are_taken_in_order_and_repeated():
    points = RNG.uniform(-0.5, 0.9, (3, 7, 3))
    worlds = jax.tree.map(lambda x: x[..., None], SdfGrids.of([grid(), OTHER]))
    distance, _ = sample(worlds.for_pairs(np.array([1, 0, 1])), points[..., None])
    distance = distance[..., 0]
    for column, single in enumerate([OTHER, grid(), OTHER]):
        np.testing.assert_allclose(distance[:, column], sample(single, points[..., column])[0], rtol=1e-14, atol=1e-14)


def test_a_program_for_many_grids_is_as_short_as_for_two():
    program = lambda n: jax.make_jaxpr(sample)(SdfGrids.of([grid()] * n), np.zeros((3, 7, n)))
    count = lambda n: len(program(n).jaxpr.eqns[0].params["jaxpr"].eqns)
    assert count(2) == count(9)


@pytest.mark.parametrize(
    "make, field",
    [
        (lambda: SdfGrid(VALUES.ravel(), BOUNDS), "SdfGrid.values"),
        (lambda: SdfGrid(VALUES[:1], BOUNDS), "SdfGrid.values"),
        (lambda: SdfGrid(VALUES[:2], BOUNDS, "quadratic"), "3 nodes or more"),
        (lambda: SdfGrid(np.where(VALUES > 1, np.nan, VALUES), BOUNDS), "SdfGrid.values must be finite"),
        (lambda: SdfGrid(VALUES, BOUNDS[0]), "SdfGrid.bounds"),
        (lambda: SdfGrid(VALUES, BOUNDS[::-1]), "SdfGrid.bounds"),
        (lambda: SdfGrid(VALUES, BOUNDS, "cubic"), "SdfGrid.interpolation"),
        (lambda: SdfGrids.of([]), "one or more"),
        (lambda: SdfGrids.of([grid(), grid("quadratic")]), "of one interpolation"),
    ],
)
def test_impossible_grids_are_refused_by_name(make, field):
    with pytest.raises(ValueError, match=field):
        make()
