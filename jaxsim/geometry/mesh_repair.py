"""Repair of triangle soups: welding, cleaning and consistent outward winding. NumPy, done once at loading."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int

from .connectivity import connected, members
from .surface import boundary_edges, edges_of, odd_edges
from .winding import winding_number_of

Vertices = Float[np.ndarray, "V 3"]
Triangles = Int[np.ndarray, "F 3"]

_WELD = 1e-6  # of the diagonal of the bounding box
_NO_AREA = 1e-14  # of the square of the diagonal: the area of a triangle whose corners the file's rounding put in line


def weld(vertices: Vertices, triangles: Triangles) -> tuple[Triangles, int]:
    """Triangles over the first vertex of each cluster closer than 1e-6 of the diagonal, and how many merged.

    By neighbour search, not by rounding to a grid, which separates close points on either side of a cell's edge.
    """
    from scipy.spatial import KDTree  # here, since only mesh files need it

    used = np.unique(triangles)
    distinct, cluster = np.unique(vertices[used], axis=0, return_inverse=True)
    pairs = KDTree(distinct).query_pairs(_WELD * _diagonal(vertices[used]), output_type="ndarray")
    label = connected(len(distinct), pairs)[cluster.ravel()]
    _, first = np.unique(label, return_index=True)
    target = np.arange(len(vertices))
    target[used] = used[first[label]]
    return target[triangles], len(used) - len(first)


def weld_parts(parts: list[tuple[Vertices, Triangles]]) -> tuple[Vertices, Triangles, int]:
    """The parts of a file as one mesh, each welded by itself, those that are not closed then with one another.

    Closed parts are solids of their own, even where they touch; open ones may be sides of one solid.
    """
    total, vertices, triangles, is_open = 0, [], [], []
    for part_vertices, part_triangles in parts:
        part_triangles, welded = weld(part_vertices, part_triangles)
        is_open.append(np.full(len(part_triangles), odd_edges(part_triangles) > 0))
        triangles.append(part_triangles + sum(map(len, vertices)))
        vertices.append(part_vertices)
        total += welded
    vertices, triangles, is_open = (np.concatenate(x) for x in (vertices, triangles, is_open))
    if len(parts) > 1 and is_open.any():
        triangles[is_open], welded = weld(vertices, triangles[is_open])
        total += welded
    return vertices, triangles, total


def drop_degenerate(vertices: Vertices, triangles: Triangles) -> tuple[Triangles, int, int]:
    """Triangles without those of no area; how many went, and how many stayed to keep the surface closed."""
    a, b, c = triangles.T
    collapsed = (a == b) | (b == c) | (c == a)
    kept = triangles[~collapsed]
    corners = vertices[kept]
    double_area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    thin = double_area <= 2.0 * _NO_AREA * _diagonal(vertices[np.unique(triangles)]) ** 2
    # Three corners in line may close the gap between a long edge and two short ones: then they have to stay.
    if thin.any() and len(boundary_edges(kept[~thin])) > len(boundary_edges(kept)):
        return kept, int(collapsed.sum()), int(thin.sum())
    return kept[~thin], int(collapsed.sum() + thin.sum()), 0


def drop_duplicates(triangles: Triangles) -> tuple[Triangles, int]:
    """Triangles without repetitions of the same corners in the same sense, and how many went.

    A triangle and its reverse both stay: they are the wall between two solids that share it. All stay where the surface
    would be open without one: two solids may end in the same face.
    """
    start = np.argmin(triangles, axis=1)
    cyclic = np.take_along_axis(triangles, (start[:, None] + np.arange(3)) % 3, axis=1)
    _, first = np.unique(cyclic, axis=0, return_index=True)
    distinct = triangles[np.sort(first)]
    if odd_edges(distinct) > odd_edges(triangles):
        return triangles, 0
    return distinct, len(triangles) - len(distinct)


def drop_unused_vertices(vertices: Vertices, triangles: Triangles) -> tuple[Vertices, Triangles]:
    """The vertices that some triangle uses, in their order, and the triangles over them."""
    used, index = np.unique(triangles, return_inverse=True)
    return vertices[used], index.reshape(-1, 3)


@dataclasses.dataclass(frozen=True)
class Orientation:
    """Triangles wound alike and outwards."""

    triangles: Triangles
    flipped: int  # faces turned over
    components: int  # sets of faces joined by edges
    one_sided: int  # faces on surfaces that have no consistent winding


def orient(vertices: Vertices, triangles: Triangles) -> Orientation:
    """Wind neighbours alike, and closed components outwards.

    Neighbours across an edge of exactly two faces agree afterwards, following the majority of them. A closed component
    inside another is turned with that one, not by itself, so that a cavity remains one.
    """
    joints, opposed, pairs = _joints(triangles)
    flip, one_sided = _consistent_flips(len(triangles), joints[pairs], opposed[pairs])
    wound = np.where(flip[:, None], triangles[:, ::-1], triangles)

    component = connected(len(triangles), joints)
    patch = connected(len(triangles), joints[pairs])
    # A component closed as a whole is turned as a whole; else those of its patches that are closed by themselves.
    whole = np.array([not len(boundary_edges(wound[faces])) for faces in members(component)])
    group = np.where(whole[component], component, len(whole) + patch)
    solids = [faces for faces in members(group) if not len(boundary_edges(wound[faces]))]
    for faces in _inside_out(vertices, wound, solids):
        wound[faces], flip[faces] = wound[faces][:, ::-1], ~flip[faces]
    return Orientation(wound, int(flip.sum()), len(whole), int(one_sided.sum()))


def _joints(triangles: Triangles) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of faces that follow one another around an edge; whether they are wound against each other; and whether
    they are the only two there."""
    _, edge_id, direction = edges_of(triangles)
    count = np.bincount(edge_id)
    order = np.argsort(edge_id, kind="stable")
    a, b = order[:-1], order[1:]
    same = edge_id[a] == edge_id[b]
    a, b = a[same], b[same]
    return np.stack([a // 3, b // 3], axis=1), direction[a] == direction[b], count[edge_id[a]] == 2


def _consistent_flips(faces: int, joints: np.ndarray, opposed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which faces to turn, and which cannot agree with their neighbours.

    Each face stands twice in a graph, as it is and turned, joined to what it agrees with: the two halves of a component
    are the two windings of it, and they coincide on a one-sided surface.
    """
    i, j = joints.T
    turned = np.where(opposed, faces, 0)
    joined = np.concatenate([np.stack([i, j + turned], axis=1), np.stack([i + faces, j + faces - turned], axis=1)])
    label = connected(2 * faces, joined)
    as_is, turned_over = label[:faces], label[faces:]
    flip = as_is > turned_over
    patch = np.minimum(as_is, turned_over)
    majority = np.bincount(patch, weights=np.where(flip, 1, -1), minlength=2 * faces)[patch] > 0
    one_sided = as_is == turned_over
    return (flip ^ majority) & ~one_sided, one_sided


def _inside_out(vertices: Vertices, triangles: Triangles, solids: list[np.ndarray]) -> list[np.ndarray]:
    """The closed components to turn over: those of negative volume, and what lies within them."""
    corners = [vertices[triangles[faces]] for faces in solids]
    volume = np.array([np.linalg.det(c - c.mean(axis=(0, 1))).sum() for c in corners])
    low = np.array([c.min(axis=(0, 1)) for c in corners])
    high = np.array([c.max(axis=(0, 1)) for c in corners])
    turn = []
    for k, faces in enumerate(solids):
        around = np.flatnonzero(np.all((low < low[k]) & (high > high[k]), axis=1))
        holders = [j for j in around if abs(winding_number_of(corners[k][0, 0], corners[j])) > 0.5]
        outermost = max(holders, key=lambda j: abs(volume[j]), default=k)
        if volume[outermost] < 0:
            turn.append(faces)
    return turn


def _diagonal(vertices: Vertices) -> float:
    return float(np.linalg.norm(np.ptp(vertices, axis=0)))
