"""Distances between points, and the near pairs of two clouds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import KDTree

from jaxsim.geometry.point_cloud import ball_distance, near_pairs
from jaxsim.math.vector import Vec3

RNG = np.random.default_rng(12)
FIRST, SECOND = RNG.uniform(size=(3, 200)), RNG.uniform(size=(3, 150))
search = jax.jit(near_pairs, static_argnames="capacity")


def pairs_of(found) -> set[tuple[int, int]]:
    return {(int(i), int(found.index[i, k])) for i, k in zip(*np.nonzero(np.asarray(found.used)))}


def distances(points, centers):
    distance, gradient = ball_distance(Vec3.of(points), Vec3.of(centers), jnp.asarray(0.1, points.dtype))
    return distance, gradient.stack()


def test_distance_and_gradient_are_those_of_a_ball(dtype):
    p, c = FIRST[:, :150].astype(dtype), SECOND.astype(dtype)
    distance, gradient = distances(p, c)
    length = np.linalg.norm(FIRST[:, :150] - SECOND, axis=0)
    np.testing.assert_allclose(distance, length - 0.1, atol=4 * jnp.finfo(dtype).eps)
    np.testing.assert_allclose(gradient, (FIRST[:, :150] - SECOND) / length, atol=40 * jnp.finfo(dtype).eps)


def test_points_that_coincide_have_a_unit_gradient_and_finite_derivatives(dtype):
    p = jnp.zeros((3, 1), dtype)
    distance, gradient = distances(p, p)
    np.testing.assert_array_equal(gradient[:, 0], [1, 0, 0])
    np.testing.assert_allclose(distance, -0.1, rtol=1e-6)
    for mode in (jax.jacfwd, jax.jacrev):
        slopes = mode(distances, argnums=(0, 1))(p, p)
        np.testing.assert_array_equal(slopes[0][0][0, :, 0], [1, 0, 0])
        assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(slopes))


def test_the_written_gradient_is_that_of_autodiff_in_both_points():
    to_point, to_center = jax.grad(lambda p, c: distances(p, c)[0].sum(), argnums=(0, 1))(FIRST[:, :150], SECOND)
    gradient = distances(FIRST[:, :150], SECOND)[1]
    np.testing.assert_allclose(to_point, gradient, atol=1e-14)
    np.testing.assert_allclose(to_center, -gradient, atol=1e-14)


def test_near_pairs_are_those_of_a_tree():
    found = search(FIRST, SECOND, 0.15, capacity=16)
    trees = KDTree(FIRST.T).query_ball_tree(KDTree(SECOND.T), 0.15)
    assert pairs_of(found) == {(i, j) for i, near in enumerate(trees) for j in near}
    assert not found.overflow


def test_too_few_slots_keep_true_pairs_and_say_so():
    whole, cut = (search(FIRST, SECOND, 0.15, capacity=k) for k in (16, 2))
    assert cut.overflow and pairs_of(cut) < pairs_of(whole)
    np.testing.assert_array_equal(cut.used.sum(1), np.minimum(whole.used.sum(1), 2))


def test_slots_that_just_suffice_do_not_overflow():
    most = int(search(FIRST, SECOND, 0.15, capacity=16).used.sum(1).max())
    assert not search(FIRST, SECOND, 0.15, capacity=most).overflow
    assert search(FIRST, SECOND, 0.15, capacity=most - 1).overflow


def test_a_folded_sheet_meets_itself_but_not_its_neighbours():
    """A strip of points 0.1 apart, folded over itself at height 0.05."""
    s = np.arange(20) * 0.1
    rest = np.stack([s, 0 * s, 0 * s])
    folded = np.stack([np.where(s < 1, s, 1.9 - s), 0 * s, np.where(s < 1, 0.0, 0.05)])
    found = search(folded, folded, 0.08, capacity=4, rest=(rest, rest), least_rest_distance=0.15)
    assert pairs_of(found) == {(i, 19 - i) for i in range(20) if abs(19 - 2 * i) > 1}


def test_vmap_over_worlds_agrees_with_single_searches():
    worlds = np.stack([FIRST, FIRST + 0.05, FIRST * 0.5])
    many = jax.vmap(lambda first: near_pairs(first, SECOND, 0.15, 16))(worlds)
    for world in range(3):
        one = search(worlds[world], SECOND, 0.15, capacity=16)
        for a, b in zip(many, one):
            np.testing.assert_array_equal(a[world], b)


def test_searching_has_no_derivative_and_does_not_hinder_one():
    def energy(first):
        found = near_pairs(first, jnp.asarray(SECOND), 0.15, 16)
        centers = Vec3.of(jnp.asarray(SECOND)[:, found.index])
        distance, _ = ball_distance(Vec3.of(first[:, :, None]), centers, jnp.asarray(0.15))
        return jnp.sum(jnp.where(found.used, distance**2, 0.0))

    slope, step = jax.jit(jax.grad(energy))(FIRST), 1e-6
    toward = RNG.normal(size=FIRST.shape)
    numeric = (energy(FIRST + step * toward) - energy(FIRST - step * toward)) / (2 * step)
    np.testing.assert_allclose(np.vdot(slope, toward), numeric, rtol=1e-6)


def test_no_slots_are_refused():
    with pytest.raises(ValueError, match=r"near_pairs.capacity must be at least 1; got 0"):
        near_pairs(jnp.asarray(FIRST), jnp.asarray(SECOND), 0.1, 0)
