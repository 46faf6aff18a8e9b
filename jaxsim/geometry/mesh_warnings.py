"""Doubts about a mesh that is to be simulated, each with a number and a remedy."""

import numpy as np
from jaxtyping import Float, Int

from .connectivity import connected, members
from .mesh_resolution import areas_of, spread_points
from .quadrature import RULES
from .surface import edges_of
from .winding import winding_numbers

Vertices = Float[np.ndarray, "V 3"]
Triangles = Int[np.ndarray, "F 3"]

_LARGEST, _SMALLEST = 5.0, 1e-3  # [m] extents beyond which the unit of the file is in doubt
_PROBES = 1000  # points of the surface where walls are measured
_SKIN = 1e-5  # of the longest side: just below the surface
_THIN = 2.0 ** -np.arange(6.0, 12.0)  # of the longest side: depths a thin wall is looked for at, largest first
_THIN_SHARE = 0.05  # of the area; sharp edges are thin on a smaller one
_CROSSING_SHARE = 0.01  # of the area
_FLAT = 1e-6  # one minus the cosine between normals of triangles in one plane
_LARGE_SHARE = 0.05  # of the area: flat regions on which a body may come to rest
_SHRINK = 0.02  # of the longest side
_RULE = RULES["P1Q3"]  # the default of `Scene.add_rigid`


def surface_warnings(open_edges: int, slivers: int, one_sided: int) -> list[str]:
    """Doubts about the surface as such."""
    found = []
    if open_edges:
        found.append(
            f"the surface is open ({open_edges} unpaired edges): good for display and sampling, but it has no mass of "
            "its own and no inside; for a density or a grid collider take mesh.close() or mesh.convex_hull()"
        )
    if one_sided:
        found.append(f"{one_sided} faces lie on a one-sided (Moebius) surface, whose winding cannot be made consistent")
    if slivers:
        found.append(f"{slivers} triangles without area are kept, since the surface would be open without them")
    return found


def size_warnings(extent: float) -> list[str]:
    """Doubts about the unit, from the longest side [m]."""
    if extent > _LARGEST:
        return [f"it is {extent:.4g} m long: if the file is in millimetres, load it with unit='mm'"]
    if extent < _SMALLEST:
        return [f"it is only {extent:.4g} m long: if the file is in kilometres, load it with unit='km'"]
    return []


def crossing_warnings(vertices: Vertices, triangles: Triangles, closed: bool) -> list[str]:
    """Whether a closed surface passes through itself: right below it the winding number should be one."""
    if not closed:
        return []
    points, normals = _probes(vertices, triangles)
    below = winding_numbers(points - _SKIN * _length(vertices) * normals, vertices, triangles)
    share = float(np.mean(np.abs(below - 1.0) > 0.5))
    if share <= _CROSSING_SHARE:
        return []
    return [
        f"the surface passes through itself ({share:.0%} of its area lies inside the rest or is inside out), so that "
        "mass counts what overlaps twice; mesh.close() rebuilds it on a grid"
    ]


def wall_warnings(vertices: Vertices, triangles: Triangles, closed: bool) -> list[str]:
    """Whether walls of a closed surface are thin against its length: below a point of the surface it is outside again.

    At most 7000 winding numbers, so a wall is known to a factor of two.
    """
    if not closed:
        return []
    points, normals = _probes(vertices, triangles)
    depths = _THIN * _length(vertices)
    below = points[None] - depths[:, None, None] * normals[None]
    outside = winding_numbers(below.reshape(-1, 3), vertices, triangles).reshape(len(depths), -1) < 0.5
    # Deeper down it may be inside of another wall, so thin at one depth is thin at all larger ones.
    shares = np.logical_or.accumulate(outside[::-1], axis=0)[::-1].mean(axis=1)
    thin = np.flatnonzero(shares > _THIN_SHARE)
    if not thin.size:
        return []
    widest, finest = shares[0], depths[thin[-1]]
    return [
        f"{widest:.0%} of its area bounds walls thinner than {depths[0]:.3g} m, {shares[thin[-1]]:.0%} thinner than "
        f"{finest:.3g} m: a grid collider sees them with cells of at most {finest / 2:.2g} m; keep the way per step "
        "shorter than that too"
    ]


def sampling_warnings(vertices: Vertices, triangles: Triangles) -> list[str]:
    """By how much the contact samples of large flat faces fall short of the faces' edges."""
    area = areas_of(vertices, triangles)
    regions = [faces for faces in _flat_regions(vertices, triangles) if area[faces].sum() > _LARGE_SHARE * area.sum()]
    largest = sorted(regions, key=lambda faces: -area[faces].sum())[:3]
    shrink = max((support_shrink(vertices, triangles[faces]) for faces in largest), default=0.0)
    length = _length(vertices)
    if shrink <= _SHRINK * length:
        return []
    # The outermost sample of a right triangle lies a sixth of its edge inside.
    return [
        f"{len(triangles)} triangles are few: with {_RULE.name} the samples of its largest flat faces end up to "
        f"{shrink:.3g} m inside their edges, so it rests and tips as if that much smaller; "
        f"mesh.subdivide({3.0 * _SHRINK * length:.2g}) leaves {_SHRINK * length / 2.0:.2g} m"
    ]


def support_shrink(vertices: Vertices, triangles: Triangles) -> float:
    """Largest distance [m] from an edge of a flat region's convex hull to the hull of its contact samples."""
    from scipy.spatial import ConvexHull

    corners = vertices[triangles]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]).sum(axis=0)
    plane = np.linalg.svd(normal[None])[2][1:]  # two axes across the normal
    flat = corners @ plane.T
    samples = np.einsum("qk,fkd->fqd", _RULE.barycentric, flat).reshape(-1, 2)
    edges = np.unique(ConvexHull(flat.reshape(-1, 2)).equations.round(9), axis=0)
    outward, offset = edges[:, :2], -edges[:, 2]
    return float(np.max(offset - (samples @ outward.T).max(axis=0)))


def _flat_regions(vertices: Vertices, triangles: Triangles) -> list[np.ndarray]:
    """Sets of faces in one plane, joined by edges of two faces."""
    a, b, c = vertices[triangles].transpose(1, 0, 2)
    normal = np.cross(b - a, c - a)
    normal = normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), np.finfo(float).tiny)
    _, edge_id, _ = edges_of(triangles)
    order = np.argsort(edge_id, kind="stable")
    i, j = order[:-1], order[1:]
    pair = (edge_id[i] == edge_id[j]) & (np.bincount(edge_id)[edge_id[i]] == 2)
    i, j = i[pair] // 3, j[pair] // 3
    flat = np.sum(normal[i] * normal[j], axis=1) > 1.0 - _FLAT
    return members(connected(len(triangles), np.stack([i[flat], j[flat]], axis=1)))


def _probes(vertices: Vertices, triangles: Triangles) -> tuple[np.ndarray, np.ndarray]:
    points, on = spread_points(vertices, triangles, _PROBES)
    a, b, c = vertices[triangles[on]].transpose(1, 0, 2)
    normal = np.cross(b - a, c - a)
    return points, normal / np.linalg.norm(normal, axis=1, keepdims=True)


def _length(vertices: Vertices) -> float:
    return float(np.ptp(vertices, axis=0).max())
