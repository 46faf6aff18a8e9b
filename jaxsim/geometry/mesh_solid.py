"""Closed meshes as solids with their exact distance, alone or many in one array."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..math.rows import Rows
from ..math.vector import Component, Vec3
from .bounds import Bounds
from .mesh import TriMesh
from .mesh_distance import Faces, mesh_distance
from .shapes import AbstractShape, distance_and_gradient
from .static_array import StaticArray
from .surface import edges_of, irregular_edges


class MeshSolid(AbstractShape):
    """The inside of a closed mesh, with its exact distance; every question searches all triangles.

    `vertices` may have a last axis of worlds, which goes with the last axis of the points.

    Args:
        mesh: each edge has two triangles, run through in opposite senses; anticlockwise seen from outside.

    Raises:
        ValueError: an edge has one triangle, more than two, or two that are not wound alike.
    """

    vertices: Float[Array, "V 3 *w"]
    table: StaticArray = eqx.field(static=True)  # (F, 3) corners
    across: StaticArray = eqx.field(static=True)  # (F, 3) triangle on the other side of sides 01, 12, 20

    def __init__(self, mesh: TriMesh):
        self.vertices, self.table = mesh.vertices, mesh.table
        self.across = StaticArray(_neighbours(mesh.triangles))

    def signed_distance(self, p: Vec3) -> Component:
        return distance_and_gradient(self, p)[0]

    def bounds_of(self) -> Bounds:
        return _box(self.vertices)


class MeshSolids(AbstractShape):
    """Many closed meshes end to end in one array: what one vectorised contact group collides with."""

    vertices: Float[Array, "V 3 *w"]
    table: StaticArray = eqx.field(static=True)  # (F, 3) corners of all triangles
    across: StaticArray = eqx.field(static=True)  # (F, 3)
    triangles_end: StaticArray = eqx.field(static=True)  # (g,) where each mesh's triangles end
    vertices_end: StaticArray = eqx.field(static=True)  # (g,) where its vertices end

    @staticmethod
    def of(solids: Sequence[MeshSolid]) -> "MeshSolids":
        """One or more solids as one shape."""
        vertices_end = np.cumsum([len(s.vertices) for s in solids])
        triangles_end = np.cumsum([len(s.table.array) for s in solids])
        return MeshSolids(
            vertices=jnp.concatenate([s.vertices for s in solids]),
            table=_joined([s.table for s in solids], vertices_end),
            across=_joined([s.across for s in solids], triangles_end),
            triangles_end=StaticArray(triangles_end),
            vertices_end=StaticArray(vertices_end),
        )

    def span(self, row: int) -> slice:
        """The vertices of one mesh."""
        return slice(*(int(x) for x in _starts_and_end(self.vertices_end.array)[row : row + 2]))

    def scaled(self, row: int, ratio: Float[Array, "3"]) -> "MeshSolids":
        """With one mesh stretched along its axes."""
        return eqx.tree_at(lambda s: s.vertices, self, self.vertices.at[self.span(row)].multiply(ratio[None]))

    def for_pairs(self, rows: Rows) -> "MeshSolidsOfPairs":
        ends = _starts_and_end(self.triangles_end.array).astype(np.int32)
        count = np.diff(ends)
        first, count = (
            table[rows][None, :, None] if isinstance(rows, np.ndarray) else jnp.asarray(table)[rows][None]
            for table in (ends[:-1], count)
        )
        return MeshSolidsOfPairs(
            self.vertices, jnp.asarray(first), jnp.asarray(count), self.table, self.across, int(np.diff(ends).max())
        )

    def bounds_of(self) -> Bounds:
        boxes = [_box(self.vertices[self.span(row)]) for row in range(len(self.vertices_end.array))]
        return Bounds(*(Vec3.of(jnp.stack([b.array for b in side], axis=1)) for side in zip(*boxes)))

    def signed_distance(self, p: Vec3) -> Component:
        raise ValueError("MeshSolids is asked pair by pair: take for_pairs first")


class MeshSolidsOfPairs(AbstractShape):
    """The mesh of each pair, over the vertices of all meshes: what `MeshSolids.for_pairs` gives."""

    vertices: Float[Array, "V 3 w"]
    first: Int[Array, "1 p w"]
    count: Int[Array, "1 p w"]
    table: StaticArray = eqx.field(static=True)
    across: StaticArray = eqx.field(static=True)
    longest: int = eqx.field(static=True)

    def signed_distance(self, p: Vec3) -> Component:
        return distance_and_gradient(self, p)[0]

    def bounds_of(self) -> Bounds:
        raise ValueError("bounds are those of MeshSolids")


@distance_and_gradient.register
def _(shape: MeshSolid, p: Vec3) -> tuple[Component, Vec3]:
    count = len(shape.table.array)
    faces = Faces(shape.table.array, shape.across.array, np.zeros((), np.int32), np.array(count, np.int32), count)
    return mesh_distance(shape.vertices, faces, p)


@distance_and_gradient.register
def _(shape: MeshSolidsOfPairs, p: Vec3) -> tuple[Component, Vec3]:
    faces = Faces(shape.table.array, shape.across.array, shape.first, shape.count, shape.longest)
    return mesh_distance(shape.vertices, faces, p)


def _box(vertices: Float[Array, "V 3 *w"]) -> Bounds:
    low, high = vertices.min(0), vertices.max(0)
    return Bounds(Vec3.of((low + high) / 2), Vec3.of((high - low) / 2))


def _joined(tables: list[StaticArray], ends: np.ndarray) -> StaticArray:
    """Index tables end to end, each counting from where its own targets begin."""
    starts = _starts_and_end(ends)
    return StaticArray(np.concatenate([t.array + start for t, start in zip(tables, starts)]).astype(np.int32))


def _starts_and_end(ends: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], ends])


def _neighbours(triangles: Int[np.ndarray, "F 3"]) -> Int[np.ndarray, "F 3"]:
    irregular = irregular_edges(triangles)
    if len(irregular):
        raise ValueError(
            f"MeshSolid.mesh must be closed, each edge between two triangles wound alike; {len(irregular)} edges are "
            f"not, the first between vertices {irregular[0].tolist()}. Repair the mesh, or collide with a grid "
            "(build_sdf), whose sign tolerates holes."
        )
    _, edge_id, _ = edges_of(triangles)
    order = np.argsort(edge_id, kind="stable").reshape(-1, 2)  # the two triangle sides of every edge
    across = np.empty(triangles.size, np.int32)
    across[order[:, 0]], across[order[:, 1]] = order[:, 1] // 3, order[:, 0] // 3
    return across.reshape(-1, 3)
