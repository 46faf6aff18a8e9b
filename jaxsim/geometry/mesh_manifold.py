"""Surfaces that touch taken apart: around each edge, two faces of one solid and no others."""

import numpy as np
from jaxtyping import Float, Int

from .connectivity import connected
from .surface import edges_of

_SAME_ANGLE = 1e-6  # [rad], of faces that lie on each other


def separate(
    vertices: Float[np.ndarray, "V 3"], triangles: Int[np.ndarray, "F 3"]
) -> tuple[Float[np.ndarray, "W 3"], Int[np.ndarray, "F 3"], int]:
    """The surface with vertices doubled wherever only an edge or a vertex joins it, and how many were added.

    Solids that touch have their edges in common after welding. Around such an edge each face belongs with the next one
    across the material, so that two boxes with a wall in common become two boxes, not one with a wall in it. Edges
    whose faces do not balance stay as they are: there is no telling which belong together.

    Args:
        vertices: [m].
        triangles: wound alike and outwards (`orient`).
    """
    _, edge_id, direction = edges_of(triangles)
    count = np.bincount(edge_id)
    balance = np.bincount(edge_id, weights=direction)
    order = np.argsort(edge_id, kind="stable")
    ends = np.cumsum(count)
    crowded = (count > 2) & (balance == 0)
    a, b = order[:-1], order[1:]
    plain = (edge_id[a] == edge_id[b]) & ~crowded[edge_id[a]]
    pairs = [np.stack([a[plain], b[plain]], axis=1)]
    for edge in np.flatnonzero(crowded):
        sides = order[ends[edge] - count[edge] : ends[edge]]
        pairs.append(_across_material(vertices, triangles, sides, direction[sides]))
    return _with_own_corners(vertices, triangles, np.concatenate(pairs), direction)


def _across_material(
    vertices: np.ndarray, triangles: np.ndarray, sides: np.ndarray, direction: np.ndarray
) -> np.ndarray:
    """Pairs of the sides that meet at one edge, each with the one that bounds the same wedge of material.

    Seen along the edge, its faces in order of their angle: one run through backwards opens a wedge of material, one
    run through forwards closes it, as brackets do.
    """
    face, k = sides // 3, sides % 3
    start, end, apex = (vertices[triangles[face, (k + step) % 3]] for step in range(3))
    forwards = direction[0]
    low, along = (start[0], end[0] - start[0]) if forwards > 0 else (end[0], start[0] - end[0])
    along = along / max(np.linalg.norm(along), np.finfo(float).tiny)
    arm = apex - low
    arm = arm - (arm @ along)[:, None] * along
    x = arm[0] / max(np.linalg.norm(arm[0]), np.finfo(float).tiny)
    turn = np.arctan2(arm @ np.cross(along, x), arm @ x)
    step = np.round(turn / _SAME_ANGLE) % np.round(2.0 * np.pi / _SAME_ANGLE)
    # Of faces on each other the closing one comes first: between two solids that touch is no material.
    # Of solids that end in the same face the first in the file keeps the first copy of it, as brackets nest.
    order = np.lexsort((-direction * sides, -direction, step))
    material = np.cumsum(-direction[order])
    order = np.roll(order, -1 - np.argmin(material))  # to begin outside, so that each bracket opens before it closes
    opened, pairs = [], []
    for i in order:
        if direction[i] < 0:
            opened.append(i)
        else:
            pairs.append((sides[opened.pop()], sides[i]))
    return np.array(pairs)


def _with_own_corners(
    vertices: np.ndarray, triangles: np.ndarray, pairs: np.ndarray, direction: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """One vertex for all corners that joined sides have in common, the old ones first come first served."""
    i, j = pairs.T
    i_next, j_next = i - i % 3 + (i + 1) % 3, j - j % 3 + (j + 1) % 3
    opposed = direction[i] == direction[j]  # wound against each other, so that their starts coincide
    same = np.concatenate(
        [np.stack([i, np.where(opposed, j, j_next)], axis=1), np.stack([i_next, np.where(opposed, j_next, j)], axis=1)]
    )
    corner = connected(triangles.size, same)
    _, first, corner = np.unique(corner, return_index=True, return_inverse=True)
    old = triangles.ravel()[first]
    order = np.argsort(old, kind="stable")
    rank = np.empty(len(order), int)
    rank[order] = np.arange(len(order))
    return vertices[old[order]], rank[corner].reshape(-1, 3), len(old) - len(np.unique(old))
