"""Exact signed distance to a closed triangle mesh: nearest face, edge or corner, sign of its pseudo-normal.

The search for the nearest feature has no derivative; distance and gradient are then formed from the corners of that
feature alone, so that derivatives in points and vertices are exact wherever the nearest feature is unique.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from ..math.safe import safe_divide, safe_norm
from ..math.vector import Component, Vec3, cross, dot, norm, select
from .bounds import Bounds
from .mesh import TriMesh
from .shapes import AbstractShape, distance_and_gradient
from .static_array import StaticArray
from .surface import edges_of, irregular_edges

_CHUNK = 64  # triangles tested at once: bounds the memory of the search at this many numbers per point


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
        low, high = self.vertices.min(0), self.vertices.max(0)
        return Bounds(Vec3.of((low + high) / 2), Vec3.of((high - low) / 2))


@distance_and_gradient.register
def _(shape: MeshSolid, p: Vec3) -> tuple[Component, Vec3]:
    ask = lambda vertices, p: mesh_distance(vertices, shape.table.array, shape.across.array, p)
    vertices = shape.vertices
    if vertices.ndim == 2:
        return ask(vertices, p)
    if vertices.shape[2] == 1:
        return ask(vertices[..., 0], p)
    return jax.vmap(ask, in_axes=-1, out_axes=-1)(vertices, p)


def mesh_distance(
    vertices: Float[Array, "V 3"], triangles: Int[np.ndarray, "F 3"], across: Int[np.ndarray, "F 3"], p: Vec3
) -> tuple[Component, Vec3]:
    """Signed distance [m] and its unit gradient at points `p` [m] of any trailing shape.

    On an edge or a corner, where no direction is nearest, the gradient is the pseudo-normal there.

    Source: Baerentzen & Aanaes (2005), Signed distance computation using the angle weighted pseudonormal,
    doi:10.1109/TVCG.2005.49.
    """
    fixed = lax.stop_gradient(vertices)
    nearest = nearest_feature(fixed, triangles, p.map(lax.stop_gradient))
    normals = pseudo_normals(fixed, triangles, across)
    a, b, c = (
        Vec3.of_last(vertices[corner]) for corner in jnp.moveaxis(jnp.asarray(triangles)[nearest.triangle], -1, 0)
    )
    normal = Vec3.of_last(normals[nearest.triangle, nearest.feature])
    # Where the feature begins and ends; a corner begins at itself and ends anywhere.
    f = nearest.feature
    start = select((f == 2) | (f == 5), b, select((f == 3) | (f == 6), c, a))
    end = select(f == 1, b, select(f == 2, c, a))
    side, from_start = end - start, p - start
    along = jnp.where((f >= 1) & (f <= 3), safe_divide(dot(from_start, side), dot(side, side)), 0.0)
    distance, gradient = _beside_a_curve(from_start - side * along, normal)
    flat = cross(b - a, c - a)
    face_normal = flat * safe_divide(jnp.ones_like(distance), norm(flat))
    on_face = f == 0
    return jnp.where(on_face, dot(face_normal, p - a), distance), select(on_face, face_normal, gradient)


def _beside_a_curve(separation: Vec3, normal: Vec3) -> tuple[Component, Vec3]:
    """Signed length and direction of the separation from an edge or corner with this pseudo-normal."""
    height = dot(separation, normal)
    square = dot(separation, separation)
    apart = square >= (10.0 * jnp.finfo(square.dtype).eps) ** 2
    length = jnp.sqrt(jnp.where(apart, square, 1.0))
    sign = jnp.where(height >= 0, 1.0, -1.0).astype(square.dtype)
    return jnp.where(apart, sign * length, height), select(apart, separation * (sign / length), normal)


class NearestFeature(NamedTuple):
    """For every point: a triangle, and which part of it: 0 the face, 1-3 the sides 01 12 20, 4-6 the corners."""

    triangle: Int[Array, "*b"]
    feature: Int[Array, "*b"]


def nearest_feature(vertices: Float[Array, "V 3"], triangles: Int[np.ndarray, "F 3"], p: Vec3) -> NearestFeature:
    """Search over all triangles, a chunk at a time; among equals the first triangle."""
    faces = len(triangles)
    chunks = -(-faces // _CHUNK)
    # The last chunk is filled up with repetitions of the last triangle, which never win against it.
    order = np.minimum(np.arange(chunks * _CHUNK), faces - 1).reshape(chunks, _CHUNK)
    corners = vertices[triangles[order]].transpose(0, 2, 3, 1)  # (chunks, corner, component, triangle)
    many = (...,) + (None,) * (p.array.ndim - 1)

    def nearer(best, chunk):
        corner, index = chunk
        a, b, c = (Vec3.of(x[many]) for x in corner)
        square, feature = _square_distance(a, b, c, Vec3.of(p.array[:, None]))
        first = jnp.argmin(square, axis=0)
        square, feature = (jnp.take_along_axis(x, first[None], axis=0)[0] for x in (square, feature))
        better = square < best[0]
        return (
            jnp.where(better, square, best[0]),
            jnp.where(better, index[first], best[1]),
            jnp.where(better, feature, best[2]),
        ), None

    shape = p.array.shape[1:]
    none = jnp.zeros(shape, jnp.int32)
    start = jnp.full(shape, jnp.inf, p.array.dtype), none, none
    (_, triangle, feature), _ = lax.scan(nearer, start, (corners, jnp.asarray(order, jnp.int32)))
    return NearestFeature(triangle, feature)


def _square_distance(a: Vec3, b: Vec3, c: Vec3, p: Vec3) -> tuple[Component, Int[Array, "*b"]]:
    """Squared distance to a triangle and its nearest feature, each element its own; no area and no length are fine."""
    tolerance = (10.0 * jnp.finfo(p.array.dtype).eps) ** 2  # [m^2], of points on a side or a corner
    sides, from_corner = (b - a, c - b, a - c), (p - a, p - b, p - c)
    normal = cross(sides[0], sides[1])
    area = dot(normal, normal)
    over = area > 0
    for side, q in zip(sides, from_corner):
        inward = dot(cross(normal, side), q)
        over &= (inward > 0) & (inward * inward > tolerance * area * dot(side, side))
    height = dot(normal, from_corner[0])
    best = jnp.where(over, safe_divide(height * height, area), jnp.inf)
    feature = jnp.zeros(best.shape, jnp.int32)
    for k, (side, q) in enumerate(zip(sides, from_corner)):
        length = dot(side, side)
        t = safe_divide(dot(q, side), length)
        at_start, at_end = ((s < 0) | (s * s * length <= tolerance) for s in (t, 1.0 - t))
        separation = q - side * jnp.where(at_start, 0.0, jnp.where(at_end, 1.0, t))
        square = dot(separation, separation)
        nearer = square < best
        corner = jnp.where(at_start, 4 + k, jnp.where(at_end, 4 + (k + 1) % 3, 1 + k))
        best, feature = jnp.where(nearer, square, best), jnp.where(nearer, corner, feature)
    return best, feature


def pseudo_normals(
    vertices: Float[Array, "V 3"], triangles: Int[np.ndarray, "F 3"], across: Int[np.ndarray, "F 3"]
) -> Float[Array, "F 7 3"]:
    """Unit normals of the features of each triangle: its own, of its sides, and angle-weighted of its corners."""
    corners = vertices[triangles]
    sides = jnp.roll(corners, -1, axis=1) - corners
    flat = jnp.cross(sides[:, 0], sides[:, 1])
    face = safe_divide(flat, safe_norm(flat)[:, None])
    back = -jnp.roll(sides, 1, axis=1)
    angle = jnp.arctan2(safe_norm(jnp.cross(sides, back)), jnp.sum(sides * back, axis=-1))
    corner = jnp.zeros_like(vertices).at[triangles].add(angle[..., None] * face[:, None])
    normals = jnp.concatenate([face[:, None], face[:, None] + face[across], corner[triangles]], axis=1)
    return safe_divide(normals, safe_norm(normals)[..., None])


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
