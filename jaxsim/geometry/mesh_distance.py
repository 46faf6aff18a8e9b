"""Exact signed distance to a closed triangle mesh: nearest face, edge or corner, sign of its pseudo-normal.

The search for the nearest feature has no derivative; distance and gradient are then formed from the corners of that
feature alone, so that derivatives in points and vertices are exact wherever the nearest feature is unique.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from ..math.safe import safe_divide, safe_norm
from ..math.vector import Component, Vec3, cross, dot, norm, select

_CHUNK = 64  # triangles tested at once: bounds the memory of the search at this many numbers per point


class Faces(NamedTuple):
    """Triangles of one mesh or of several end to end, and which of them each point is tested against."""

    corners: Int[np.ndarray, "F 3"]
    across: Int[np.ndarray, "F 3"]  # triangle on the other side of sides 01, 12, 20
    first: Int[Array, "*b"] | Int[np.ndarray, "*b"]  # broadcast against the points
    count: Int[Array, "*b"] | Int[np.ndarray, "*b"]
    longest: int  # bound of `count`


def mesh_distance(vertices: Float[Array, "V 3 *w"], faces: Faces, p: Vec3) -> tuple[Component, Vec3]:
    """Signed distance [m] and its unit gradient at points `p` [m] of any trailing shape.

    On an edge or a corner, where no direction is nearest, the gradient is the pseudo-normal there.

    Args:
        vertices: [m]; their last axis of worlds, if any, goes with the last axis of the points.

    Source: Baerentzen & Aanaes (2005), Signed distance computation using the angle weighted pseudonormal,
    doi:10.1109/TVCG.2005.49.
    """
    fixed = lax.stop_gradient(vertices)
    nearest = nearest_feature(fixed, faces, p.map(lax.stop_gradient))
    normals = pseudo_normals(fixed, faces.corners, faces.across)
    a, b, c = _corners(vertices, faces.corners, nearest.triangle)
    normal = Vec3.of_last(_at(normals, (nearest.triangle, nearest.feature)))
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


def _corners(vertices: Float[Array, "V 3 *w"], corners: Int[np.ndarray, "F 3"], triangle: Array) -> list[Vec3]:
    return [Vec3.of_last(_at(vertices, (jnp.asarray(corners)[triangle, k],))) for k in range(3)]


def _at(table: Float[Array, "..."], index: tuple[Array, ...]) -> Float[Array, "*b 3"]:
    """Rows of a table whose last axis, if it has worlds, goes with the last axis of the index."""
    if table.ndim == len(index) + 1:
        return table[index]
    world = jnp.arange(table.shape[-1]) if table.shape[-1] > 1 else 0
    return table[(*index, slice(None), world)]


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


def nearest_feature(vertices: Float[Array, "V 3 *w"], faces: Faces, p: Vec3) -> NearestFeature:
    """Search over all triangles of each point's mesh, a chunk at a time; among equals the first triangle."""
    rank = p.array.ndim - 1
    first, count = (
        jnp.asarray(x, jnp.int32).reshape((1,) * (1 + rank - np.ndim(x)) + np.shape(x))
        for x in (faces.first, faces.count)
    )
    offset = jnp.arange(_CHUNK, dtype=jnp.int32).reshape(-1, *(1,) * rank)

    def nearer(best, chunk):
        # The last chunk is filled up with repetitions of the last triangle, which never win against it.
        index = first + jnp.minimum(chunk * _CHUNK + offset, count - 1)
        a, b, c = _corners(vertices, faces.corners, index)
        square, feature = _square_distance(a, b, c, Vec3.of(p.array[:, None]))
        nearest = jnp.argmin(square, axis=0)[None]
        index = jnp.broadcast_to(index, square.shape)
        square, feature, index = (jnp.take_along_axis(x, nearest, axis=0)[0] for x in (square, feature, index))
        better = square < best[0]
        return (
            jnp.where(better, square, best[0]),
            jnp.where(better, index, best[1]),
            jnp.where(better, feature, best[2]),
        ), None

    shape = np.broadcast_shapes(p.array.shape[1:], first.shape[1:], (1,) * (rank - 1) + vertices.shape[2:])
    none = jnp.zeros(shape, jnp.int32)
    start = jnp.full(shape, jnp.inf, p.array.dtype), jnp.broadcast_to(first[0], shape).astype(jnp.int32), none
    chunks = jnp.arange(-(-faces.longest // _CHUNK), dtype=jnp.int32)
    (_, triangle, feature), _ = lax.scan(nearer, start, chunks)
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
    vertices: Float[Array, "V 3 *w"], triangles: Int[np.ndarray, "F 3"], across: Int[np.ndarray, "F 3"]
) -> Float[Array, "F 7 3 *w"]:
    """Unit normals of the features of each triangle: its own, of its sides, and angle-weighted of its corners."""
    if vertices.ndim == 3:
        return jax.vmap(lambda v: pseudo_normals(v, triangles, across), in_axes=-1, out_axes=-1)(vertices)
    corners = vertices[triangles]
    sides = jnp.roll(corners, -1, axis=1) - corners
    flat = jnp.cross(sides[:, 0], sides[:, 1])
    face = safe_divide(flat, safe_norm(flat)[:, None])
    back = -jnp.roll(sides, 1, axis=1)
    angle = jnp.arctan2(safe_norm(jnp.cross(sides, back)), jnp.sum(sides * back, axis=-1))
    corner = jnp.zeros_like(vertices).at[triangles].add(angle[..., None] * face[:, None])
    normals = jnp.concatenate([face[:, None], face[:, None] + face[across], corner[triangles]], axis=1)
    return safe_divide(normals, safe_norm(normals)[..., None])
