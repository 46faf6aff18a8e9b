"""Quadrature rules and surface samples."""

import itertools
import json
from math import factorial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.geometry.quadrature import RULES, QuadratureRule, sample_surface
from jaxsim.geometry.shapes import Box, surface_of

GOLDEN = Path(__file__).parents[1] / "data" / "quadrature_rules.json"


def monomial_error(rule: QuadratureRule, degree: int) -> float:
    """Largest error of the monomials of one degree in the barycentric coordinates."""
    errors = []
    for i, j in itertools.product(range(degree + 1), repeat=2):
        if (k := degree - i - j) >= 0:
            exact = 2 * factorial(i) * factorial(j) * factorial(k) / factorial(degree + 2)
            errors.append(abs(rule.weights @ np.prod(rule.barycentric ** [i, j, k], axis=1) - exact))
    return max(errors)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_rules_are_exact_to_their_degree_and_no_further(rule):
    assert max(monomial_error(rule, degree) for degree in range(rule.degree + 1)) < 5e-15
    assert monomial_error(rule, rule.degree + 1) > 1e-6


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_rules_have_the_points_their_name_says_inside_the_triangle(rule):
    assert rule.n == int(rule.name.removeprefix("P1Q"))
    assert np.all(rule.barycentric > 0) and np.all(rule.weights > 0)


@pytest.mark.parametrize("name", RULES)
def test_samples_come_in_the_order_of_superdex(name):
    table = json.loads(GOLDEN.read_text())
    samples = (table.get(name) or table[f"EXPERIMENTAL_{name}"])["samples"]
    digits = 5e-15 if name == "P1Q12" else 1e-15  # there the reference carries 13 digits of Dunavant's 15
    np.testing.assert_allclose(RULES[name].barycentric, [s["barycentric"] for s in samples], atol=digits, rtol=0)
    np.testing.assert_allclose(RULES[name].weights, [s["weight_over_area"] for s in samples], atol=digits, rtol=0)


def test_a_mistyped_rule_is_refused():
    with pytest.raises(AssertionError):
        QuadratureRule("bad", np.full((1, 3), 1 / 3), np.array([0.9]), 1)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_samples_lie_on_their_triangle_and_share_its_area(rule):
    vertices, triangles = np.array([[0.0, 0, 1], [2, 0, 1], [0, 3, 1], [0, 0, -1]]), np.array([[0, 1, 2], [0, 2, 3]])
    samples = sample_surface(vertices, triangles, rule)
    assert samples.position.shape == samples.normal.shape == (3, 2 * rule.n)
    first, second = slice(0, rule.n), slice(rule.n, None)
    np.testing.assert_allclose(samples.position[:, first], (rule.barycentric @ vertices[triangles[0]]).T, atol=1e-15)
    np.testing.assert_allclose(samples.normal[:, first].T, [[0, 0, 1]] * rule.n)
    np.testing.assert_allclose(samples.normal[:, second].T, [[-1, 0, 0]] * rule.n)
    np.testing.assert_allclose(samples.weight[first], 3.0 * rule.weights)
    np.testing.assert_allclose(samples.weight.sum(), 6.0)


def test_cube_samples_point_outwards_and_weigh_its_area():
    surface = surface_of(Box((0.1, 0.2, 0.3)))
    samples = sample_surface(surface.vertices, surface.triangles, RULES["P1Q3"])
    assert samples.weight.shape == (36,)
    np.testing.assert_allclose(samples.weight.sum(), 8 * (0.02 + 0.03 + 0.06))
    # Divergence theorem: the flux of x is three times the volume.
    flux = jnp.sum(samples.weight * jnp.sum(samples.position * samples.normal, axis=0))
    np.testing.assert_allclose(flux, 3 * 8 * 0.006)


@pytest.mark.parametrize("corners", [[[0, 0, 0]] * 3, [[0, 0, 0], [1, 0, 0], [2, 0, 0]]])
def test_triangles_without_area_weigh_nothing_and_spoil_no_derivative(corners, dtype):
    def total(vertices):
        samples = sample_surface(vertices, np.array([[0, 1, 2]]), RULES["P1Q3"])
        return samples.weight.sum() + samples.normal.sum()

    vertices = jnp.asarray(corners, dtype)
    value, gradient, hessian = jax.jit(lambda v: (total(v), jax.grad(total)(v), jax.hessian(total)(v)))(vertices)
    assert value == 0
    assert np.all(gradient == 0)
    assert np.all(np.isfinite(hessian))


def test_samples_are_differentiable_in_the_vertices_and_keep_their_precision(dtype):
    vertices, triangles = jnp.asarray([[0, 0, 0], [1, 0, 0], [0, 1, 0]], dtype), np.array([[0, 1, 2]])
    area = lambda v: sample_surface(v, triangles, RULES["P1Q6"]).weight.sum()
    gradient = jax.jit(jax.grad(area))(vertices)
    assert gradient.dtype == dtype
    np.testing.assert_allclose(gradient, [[-0.5, -0.5, 0], [0.5, 0, 0], [0, 0.5, 0]], atol=1e-6)
