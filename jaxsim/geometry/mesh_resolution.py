"""Finer and coarser meshes: bisection of long edges, decimation within a bound, and the distance between surfaces."""

import numpy as np
from jaxtyping import Float, Int

from .mesh_library import mesh_library
from .surface import boundary_edges, edges_of

Vertices = Float[np.ndarray, "V 3"]
Triangles = Int[np.ndarray, "F 3"]

_MOST_TRIANGLES = 5_000_000
_PROBES = 6000  # on each surface, beside its vertices
_AGGRESSION = (2.0, 3.0, 5.0, 7.0)  # gentle is ten times nearer on closed parts, but may stop before the target
_GROWTH = 1.5  # from one number of triangles tried to the next
_CLOSE_ENOUGH = 1.05  # ratio of the number of triangles that passed to the next smaller one that did not


def subdivide(vertices: Vertices, triangles: Triangles, max_edge: float) -> tuple[Vertices, Triangles]:
    """The same surface with every edge at most `max_edge` [m] long, neighbours still matching.

    Raises:
        ValueError: `max_edge` is not positive, or so small that millions of triangles would result.
        ImportError: trimesh is not installed.
    """
    remesh = mesh_library("trimesh.remesh", "subdividing a mesh")
    edges, _, _ = edges_of(triangles)
    longest = np.linalg.norm(vertices[edges[:, 0]] - vertices[edges[:, 1]], axis=1).max()
    area = areas_of(vertices, triangles).sum()
    if not (np.isfinite(max_edge) and max_edge > 0 and 4.0 * area / max_edge**2 <= _MOST_TRIANGLES):
        raise ValueError(
            f"subdivide: max_edge must be positive and leave fewer than {_MOST_TRIANGLES} triangles; got {max_edge} m "
            f"for an area of {area:.4g} m^2. Try {longest / 4:.4g}."
        )
    # A round halves every edge over the bound, and may add diagonals over it where only two of three were: hence twice.
    rounds = 2 * int(np.ceil(np.log2(max(longest / max_edge, 1.0)))) + 8
    return remesh.subdivide_to_size(vertices, triangles, max_edge, max_iter=rounds)


def decimate(vertices: Vertices, triangles: Triangles, max_deviation: float) -> tuple[Vertices, Triangles, float]:
    """Few triangles within `max_deviation` [m] of the surface, and the deviation measured.

    Numbers of triangles are tried from few to many, each half as many again, until one is within the bound
    (`deviation`) and neither opens a closed surface nor turns it over; then between that one and the last. A bisection
    alone would not do: one trial of many triangles may be spoilt where those of fewer are not. The surface itself
    comes back where no trial is within the bound.

    Raises:
        ValueError: `max_deviation` is not positive.
        ImportError: fast-simplification or libigl is not installed.
    """
    if not (np.isfinite(max_deviation) and max_deviation > 0):
        raise ValueError(f"decimate: max_deviation must be finite and positive [m]; got {max_deviation}.")
    simplify = mesh_library("fast_simplification", "decimating a mesh").simplify
    closed = not len(boundary_edges(triangles))
    soup = np.array(vertices, np.float64), np.array(triangles, np.int64)  # copies, as it wants to write to them

    def within(target: int) -> tuple[Vertices, Triangles, float] | None:
        for aggression in _AGGRESSION:
            trial, faces = simplify(*soup, target_count=target, agg=aggression)
            faces = faces.astype(np.int64)
            if not 0 < len(faces) <= target:
                continue
            if closed and _is_spoilt(vertices, triangles, trial, faces):
                continue
            found = deviation(vertices, triangles, trial, faces)
            if found <= max_deviation:
                return trial, faces, found
        return None

    few = many = 3
    best = None
    while best is None:
        few, many = many, min(int(np.ceil(_GROWTH * many)), len(triangles))
        best = within(many) if many < len(triangles) else (vertices, triangles, 0.0)
    while many > _CLOSE_ENOUGH * few and many - few > 1:
        target = max(few + 1, int(np.sqrt(few * many)))
        found = within(target)
        few, many, best = (target, many, best) if found is None else (few, target, found)
    return best


def deviation(a: Vertices, a_triangles: Triangles, b: Vertices, b_triangles: Triangles) -> float:
    """Largest distance [m] found from points of either surface to the other: an estimate of the Hausdorff distance.

    The points are all vertices and 6000 spread evenly over the area, so between them it may be larger, by less than
    their spacing.

    Raises:
        ImportError: libigl is not installed.
    Source: Cignoni, Rocchini & Scopigno (1998), doi:10.1111/1467-8659.00236 (the sampling).
    """
    return max(_one_sided(a, a_triangles, b, b_triangles), _one_sided(b, b_triangles, a, a_triangles))


def spread_points(vertices: Vertices, triangles: Triangles, n: int) -> tuple[Float[np.ndarray, "n 3"], np.ndarray]:
    """Points that share the area evenly, the same at every call, and the triangle each lies on."""
    reached = np.cumsum(areas_of(vertices, triangles))
    on = np.searchsorted(reached, (np.arange(n) + 0.5) / n * reached[-1]).clip(max=len(triangles) - 1)
    # The plastic numbers' sequence fills the triangle evenly. Source: Roberts (2018), additive recurrence R2.
    u, v = np.modf(np.outer([0.7548776662466927, 0.5698402909980532], np.arange(1, n + 1)))[0]
    u, v = np.where(u + v > 1.0, 1.0 - u, u), np.where(u + v > 1.0, 1.0 - v, v)
    a, b, c = vertices[triangles[on]].transpose(1, 0, 2)
    return a + u[:, None] * (b - a) + v[:, None] * (c - a), on


def _one_sided(a: Vertices, a_triangles: Triangles, b: Vertices, b_triangles: Triangles) -> float:
    igl = mesh_library("igl", "measuring the distance between meshes")
    points = np.concatenate([a[np.unique(a_triangles)], spread_points(a, a_triangles, _PROBES)[0]])
    squared, _, _ = igl.point_mesh_squared_distance(points, np.ascontiguousarray(b), b_triangles.astype(np.int64))
    return float(np.sqrt(squared.max()))


def _is_spoilt(vertices: Vertices, triangles: Triangles, trial: Vertices, faces: Triangles) -> bool:
    """Whether the trial of a closed surface is open or inside out."""
    return len(boundary_edges(faces)) > 0 or volume_of(trial, faces) * volume_of(vertices, triangles) <= 0


def areas_of(vertices: Vertices, triangles: Triangles) -> Float[np.ndarray, "F"]:
    """Area [m^2] of each triangle."""
    a, b, c = vertices[triangles].transpose(1, 0, 2)
    return np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2.0


def volume_of(vertices: Vertices, triangles: Triangles) -> float:
    """Signed volume [m^3], meaningful on a closed surface."""
    return float(np.linalg.det(vertices[triangles] - vertices.mean(axis=0)).sum() / 6.0)
