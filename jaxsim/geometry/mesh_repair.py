"""Repair of triangle soups: welding, cleaning and consistent outward winding. NumPy, done once at loading."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int

from .surface import boundary_edges, edges_of

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
    label = _components(len(distinct), pairs)[cluster.ravel()]
    _, first = np.unique(label, return_index=True)
    target = np.arange(len(vertices))
    target[used] = used[first[label]]
    return target[triangles], len(used) - len(first)


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

    A triangle and its reverse both stay: they are the wall between two solids that share it.
    """
    start = np.argmin(triangles, axis=1)
    cyclic = np.take_along_axis(triangles, (start[:, None] + np.arange(3)) % 3, axis=1)
    _, first = np.unique(cyclic, axis=0, return_index=True)
    return triangles[np.sort(first)], len(triangles) - len(first)


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

    component = _components(len(triangles), joints)
    patch = _components(len(triangles), joints[pairs])
    # A component closed as a whole is turned as a whole; else those of its patches that are closed by themselves.
    whole = np.array([not len(boundary_edges(wound[faces])) for faces in _sets(component)])
    group = np.where(whole[component], component, len(whole) + patch)
    solids = [faces for faces in _sets(group) if not len(boundary_edges(wound[faces]))]
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
    label = _components(2 * faces, joined)
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
        holders = [j for j in around if abs(_winding_number(corners[k][0, 0], corners[j])) > 0.5]
        outermost = max(holders, key=lambda j: abs(volume[j]), default=k)
        if volume[outermost] < 0:
            turn.append(faces)
    return turn


def _winding_number(point: np.ndarray, corners: np.ndarray) -> float:
    """How often a closed surface encloses the point.

    Source: van Oosterom & Strackee (1983), doi:10.1109/TBME.1983.325207.
    """
    a, b, c = (corners - point).transpose(1, 0, 2)
    la, lb, lc = (np.linalg.norm(side, axis=1) for side in (a, b, c))
    dots = (a * b).sum(1) * lc + (b * c).sum(1) * la + (c * a).sum(1) * lb
    angle = np.arctan2(np.linalg.det(np.stack([a, b, c], axis=1)), la * lb * lc + dots)
    return float(angle.sum() / (2.0 * np.pi))


def _components(n: int, pairs: np.ndarray) -> np.ndarray:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(pairs), bool), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    return connected_components(graph, directed=False)[1]


def _sets(label: np.ndarray) -> list[np.ndarray]:
    """Members of each label, in the order of the labels."""
    order = np.argsort(label, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(label[order])) + 1)


def _diagonal(vertices: Vertices) -> float:
    return float(np.linalg.norm(np.ptp(vertices, axis=0)))
