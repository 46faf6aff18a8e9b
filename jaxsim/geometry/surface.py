"""Triangulated surfaces, and those of the cube and the sphere of unit size."""

import functools
import itertools

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int

from .static_array import StaticArray


class Surface(eqx.Module):
    """Triangles over vertices [m]; anticlockwise seen from outside, so that flat normals point out."""

    vertices: Float[Array, "V 3"] | Float[np.ndarray, "V 3"]
    table: StaticArray = eqx.field(static=True)

    def __init__(self, vertices: Float[Array, "V 3"] | Float[np.ndarray, "V 3"], triangles: Int[np.ndarray, "F 3"]):
        self.vertices = vertices
        self.table = StaticArray(np.asarray(triangles, np.int32))

    @property
    def triangles(self) -> Int[np.ndarray, "F 3"]:
        """Vertex indices, read-only."""
        return self.table.array


def boundary_edges(triangles: Int[np.ndarray, "F 3"]) -> Int[np.ndarray, "E 2"]:
    """Directed edges whose reverse does not occur as often as they do; none on a closed, consistently wound surface.

    That balance is what the divergence theorem needs; two solids that touch along an edge (four faces at it) pass.
    """
    edges, edge_id, direction = edges_of(triangles)
    balance = np.bincount(edge_id, weights=direction, minlength=len(edges))
    return edges[balance != 0]


def odd_edges(triangles: Int[np.ndarray, "F 3"]) -> int:
    """Number of edges with an odd number of faces; none on a closed surface, however it is wound."""
    _, edge_id, direction = edges_of(triangles)
    return int(np.sum(np.bincount(edge_id, weights=direction != 0) % 2))


def irregular_edges(triangles: Int[np.ndarray, "F 3"]) -> Int[np.ndarray, "E 2"]:
    """Edges without exactly two triangles wound alike; none on a closed manifold.

    Stricter than `boundary_edges`: inside and outside can be told from the normals at the nearest point only here.
    """
    edges, edge_id, sense = edges_of(triangles)
    balance = np.bincount(edge_id, weights=sense, minlength=len(edges))
    return edges[(np.bincount(edge_id, minlength=len(edges)) != 2) | (balance != 0)]


def edges_of(
    triangles: Int[np.ndarray, "F 3"],
) -> tuple[Int[np.ndarray, "E 2"], Int[np.ndarray, "3F"], Int[np.ndarray, "3F"]]:
    """Edges, lower vertex first; the edge of each triangle side (01, 12, 20); and the sense it is run through.

    The sense is +1 from the lower to the higher vertex, -1 back, and 0 on a side without length.
    """
    a, b = triangles.astype(np.int64).ravel(), np.roll(triangles, -1, axis=1).astype(np.int64).ravel()
    stride = triangles.max(initial=0) + np.int64(1)
    # One integer per edge: sorting rows takes ten times as long.
    key, edge_id = np.unique(np.minimum(a, b) * stride + np.maximum(a, b), return_inverse=True)
    return np.stack([key // stride, key % stride], axis=1), edge_id, np.sign(b - a)


@functools.cache
def unit_cube(subdivisions: int = 0) -> Surface:
    """The cube [-1, 1]^3: six faces of (subdivisions + 1)^2 squares, two triangles each.

    The diagonal of each square runs from its low to its high corner, so opposite faces are translates of each other.
    """
    n = refinement(subdivisions)
    squares = []
    for axis, side in itertools.product(range(3), (0, n)):
        for i, j in itertools.product(range(n), repeat=2):
            corners = np.array([[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]])
            node = np.full((4, 3), side)
            node[:, (axis + 1) % 3], node[:, (axis + 2) % 3] = corners.T
            # Seen from the positive end of `axis` these corners run anticlockwise; the low face is seen from behind.
            squares.append(node if side else node[[0, 3, 2, 1]])
    nodes, index = np.unique(np.concatenate(squares), axis=0, return_inverse=True)
    a, b, c, d = index.reshape(-1, 4).T
    return Surface(2.0 * nodes / n - 1.0, np.stack([a, b, c, a, c, d], axis=1).reshape(-1, 3))


@functools.cache
def unit_icosphere(subdivisions: int = 0) -> Surface:
    """The icosahedron, each triangle cut in four 2 + `subdivisions` times: 320 triangles at zero, vertices on the
    sphere of radius 1."""
    golden = (1.0 + np.sqrt(5.0)) / 2.0
    corners = [np.roll([0.0, s, t * golden], k) for k in range(3) for s in (-1, 1) for t in (-1, 1)]
    vertices = np.array(corners) / np.hypot(1.0, golden)
    triples = np.array(list(itertools.combinations(range(12), 3)))
    p = vertices[triples]
    edge = 2.0 / np.hypot(1.0, golden)
    faces = np.all(np.isclose(np.linalg.norm(p - np.roll(p, 1, axis=1), axis=-1), edge), axis=1)
    outward = np.linalg.det(p) > 0
    triangles = np.where(outward[:, None], triples, triples[:, ::-1])[faces]
    for _ in range(1 + refinement(subdivisions)):
        vertices, triangles = _cut_in_four(vertices, triangles)
    return Surface(vertices, triangles)


def _cut_in_four(vertices: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    edges, edge_id, _ = edges_of(triangles)
    middle = vertices[edges].sum(axis=1)
    middle /= np.linalg.norm(middle, axis=1, keepdims=True)
    a, b, c = triangles.T
    ab, bc, ca = len(vertices) + edge_id.reshape(-1, 3).T
    parts = np.stack([a, ab, ca, b, bc, ab, c, ca, bc, ab, bc, ca], axis=1)
    return np.concatenate([vertices, middle]), parts.reshape(-1, 3)


def refinement(subdivisions: int) -> int:
    """How often an edge is cut: one more than the subdivisions, which must be zero or more (ValueError)."""
    if subdivisions < 0:
        raise ValueError(f"subdivisions must be zero or more; got {subdivisions}.")
    return subdivisions + 1
