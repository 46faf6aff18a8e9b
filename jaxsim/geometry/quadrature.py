"""Quadrature rules on a triangle, and the surface samples they give."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..math.safe import safe_divide, safe_norm


@dataclasses.dataclass(frozen=True, eq=False)
class QuadratureRule:
    """Points and weights over a triangle.

    Args:
        name: the key in `RULES`.
        barycentric: (n, 3) coordinates of the points; each row sums to one.
        weights: (n,) shares of the triangle's area, positive, summing to one.
        degree: highest total degree of the polynomials that are integrated exactly.
    """

    name: str
    barycentric: Float[np.ndarray, "n 3"]
    weights: Float[np.ndarray, "n"]
    degree: int

    def __post_init__(self):  # a mistyped coefficient fails at import, not in a box that drifts
        n = len(self.weights)
        assert self.barycentric.shape == (n, 3) and np.all(self.barycentric > 0) and np.all(self.weights > 0), self.name
        assert np.allclose(self.barycentric.sum(axis=1), 1.0, rtol=0, atol=1e-14), self.name
        assert np.isclose(self.weights.sum(), 1.0, rtol=0, atol=1e-14), self.name

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.weights)


# An orbit is a weight, the coordinates that symmetry permutes, and the permutations in the order of the samples: sample
# ids appear in users' data, so the order is part of the rule. The order is that of SuperDex Physics.
_ABC = {"a": 0, "b": 1, "c": 2}


def _rule(name: str, degree: int, orbits: list[tuple[float, tuple[float, ...], tuple[str, ...]]]) -> QuadratureRule:
    points, weights = [], []
    for weight, values, permutations in orbits:
        points += [[values[_ABC[letter]] for letter in permutation] for permutation in permutations]
        weights += [weight] * len(permutations)
    barycentric = np.array(points)
    # The tables are rounded to 15 digits; each row and the weights still have to sum to one.
    return QuadratureRule(
        name, barycentric / barycentric.sum(axis=1, keepdims=True), np.array(weights) / sum(weights), degree
    )


# Source of P1Q3 (interior points), P1Q6: Strang & Fix (1973), An Analysis of the Finite Element Method, table 4.1.
# P1Q7 (there due to Radon), P1Q12, P1Q16: Dunavant (1985), doi:10.1002/nme.1620210612, degrees 5, 6, 8, to 15 digits.
RULES: dict[str, QuadratureRule] = {
    rule.name: rule
    for rule in (
        _rule("P1Q1", 1, [(1.0, (1 / 3,), ("aaa",))]),
        _rule("P1Q3", 2, [(1 / 3, (2 / 3, 1 / 6), ("bab", "bba", "abb"))]),
        _rule(
            "P1Q6",
            4,
            [
                (0.223381589678011, (0.108103018168070, 0.445948490915965), ("abb", "bba", "bab")),
                (0.109951743655322, (0.816847572980459, 0.091576213509771), ("abb", "bba", "bab")),
            ],
        ),
        _rule(
            "P1Q7",
            5,
            [
                (0.225, (1 / 3,), ("aaa",)),
                (0.125939180544827, (0.797426985353087, 0.101286507323456), ("bab", "bba", "abb")),
                (0.132394152788506, (0.059715871789770, 0.470142064105115), ("bba", "bab", "abb")),
            ],
        ),
        _rule(
            "P1Q12",
            6,
            [
                (0.116786275726379, (0.501426509658179, 0.249286745170910), ("abb", "bab", "bba")),
                (0.050844906370207, (0.873821971016996, 0.063089014491502), ("abb", "bab", "bba")),
                (
                    0.082851075618374,
                    (0.636502499121399, 0.310352451033784, 0.053145049844817),
                    ("abc", "bac", "acb", "cba", "bca", "cab"),
                ),
            ],
        ),
        _rule(
            "P1Q16",
            8,
            [
                (0.144315607677787, (1 / 3,), ("aaa",)),
                (0.095091634267285, (0.081414823414554, 0.459292588292723), ("abb", "bab", "bba")),
                (0.103217370534718, (0.658861384496480, 0.170569307751760), ("bba", "bab", "abb")),
                (
                    0.027230314174435,
                    (0.728492392955404, 0.263112829634638, 0.008394777409958),
                    ("acb", "abc", "bac", "bca", "cba", "cab"),
                ),
                (0.032458497623198, (0.898905543365938, 0.050547228317031), ("bba", "bab", "abb")),
            ],
        ),
    )
}


class SurfaceSamples(eqx.Module):
    """Points that carry contact for their share of a surface; sample id = triangle * n + point of the rule."""

    position: Float[Array, "3 S"]  # [m]
    normal: Float[Array, "3 S"]  # flat face normal, unit length; zero on a triangle of no area
    weight: Float[Array, "S"]  # [m^2]


def sample_surface(
    vertices: Float[Array, "V 3"], triangles: Int[np.ndarray, "F 3"], rule: QuadratureRule
) -> SurfaceSamples:
    """Samples of a triangulated surface, differentiable in its vertices.

    Args:
        vertices: corner positions [m].
        triangles: vertex indices, anticlockwise seen from outside.
        rule: one of `RULES`.

    Returns:
        Samples in the order of the triangles. A triangle of no area gives weight and normal zero, and no NaN.
    """
    vertices = jnp.asarray(vertices)
    corners = vertices[np.asarray(triangles)]  # (F, 3 corners, 3)
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    twice_area_vector = jnp.cross(b - a, c - a)
    twice_area = safe_norm(twice_area_vector)
    normal = safe_divide(twice_area_vector, twice_area[:, None])
    barycentric, weights = jnp.asarray(rule.barycentric, vertices.dtype), jnp.asarray(rule.weights, vertices.dtype)
    position = jnp.einsum("qk,fkc->cfq", barycentric, corners).reshape(3, -1)
    weight = (0.5 * twice_area[:, None] * weights[None, :]).reshape(-1)
    return SurfaceSamples(position, jnp.repeat(normal.T, rule.n, axis=1), weight)
