"""Grids of signed distances from triangle meshes, node for node those of the reference engine. NumPy, done once.

Here and not in `io`, since a scene that gives a mesh a grid collider has to build it.
"""

import dataclasses
import enum

import numpy as np
from jaxtyping import Bool, Float, Int

from .mass import volume_properties
from .mesh import TriMesh
from .sdf_grid import SdfGrid, nodes_per_axis, spline_coefficients
from .surface import Surface, edges_of, irregular_edges

_MOST_CELLS = 1e9
_ON_SURFACE = 1e-9  # of the diagonal: nodes closer than this have no sign to compare


class GridSdfResolutionMode(enum.Enum):
    """Length that `resolution_delta` is a multiple of: of the mesh's bounding box, of its edges, or one metre."""

    LARGEST_AXIS = "largest_axis"
    SMALLEST_AXIS = "smallest_axis"
    MEAN_AXIS = "mean_axis"
    LARGEST_EDGE = "largest_edge"
    SMALLEST_EDGE = "smallest_edge"
    MEAN_EDGE = "mean_edge"
    EXPLICIT = "explicit"


@dataclasses.dataclass(frozen=True)
class GridSdfParams:
    """How fine a grid is and how far it reaches; names and defaults are those of the reference engine.

    Args:
        resolution_mode: the reference length.
        resolution_delta: largest cell edge per axis (or one for all) over the reference length; in metres if EXPLICIT.
        min_grid_resolution: least number of cells per axis (or one for all).
        boundary_padding_dist: how far the grid reaches beyond the mesh's bounding box [m]. It should exceed the
            distance at which contact sets in; farther out the grid only bounds the distance from above. (The reference
            engine puts its threshold plus extra padding here for an actor whose mesh brings no grid of its own.)

    Raises:
        ValueError: a number that is negative, not finite, or of a wrong shape.
    """

    resolution_mode: GridSdfResolutionMode = GridSdfResolutionMode.MEAN_EDGE
    resolution_delta: float | tuple[float, float, float] = 0.25
    min_grid_resolution: int | tuple[int, int, int] = 6
    boundary_padding_dist: float = 0.005

    def __post_init__(self):
        for field, least in (
            ("resolution_delta", 0.0),
            ("min_grid_resolution", 0.5),
            ("boundary_padding_dist", -1e-30),
        ):
            value = np.asarray(getattr(self, field), float)
            shapes = [(), (3,)] if field != "boundary_padding_dist" else [()]
            if value.shape not in shapes or not np.all(np.isfinite(value) & (value > least)):
                raise ValueError(
                    f"GridSdfParams.{field} must be finite and {'positive' if least >= 0 else 'not negative'}, of "
                    f"shape {' or '.join(map(str, shapes))}; got {getattr(self, field)}."
                )


@dataclasses.dataclass(frozen=True)
class SdfReport:
    """What was built, and how far its sign can be trusted."""

    cells: tuple[int, int, int]
    spacing: tuple[float, float, float]  # [m]
    sign: str  # "pseudo-normals" or "winding number"
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        size = " x ".join(map(str, self.cells))
        edges = " x ".join(f"{h:.4g}" for h in self.spacing)
        lines = [f"grid of {size} cells of {edges} m, sign by {self.sign}"]
        return "\n".join(lines + [f"  warning: {text}" for text in self.warnings])


def build_sdf(
    mesh: TriMesh | Surface, params: GridSdfParams | None = None, *, interpolation: str = "trilinear", dtype=None
) -> tuple[SdfGrid, SdfReport]:
    """Exact distances to a mesh at the nodes of a grid.

    The sign is that of the angle-weighted pseudo-normal at the nearest point (Baerentzen & Aanaes 2005,
    doi:10.1109/TVCG.2005.49), if the mesh is verified: each edge has two faces run through in opposite senses, and the
    winding number agrees at every node. If not, the winding number decides (Barill et al. 2018,
    doi:10.1145/3197517.3201337) and the report says so.

    Args:
        mesh: triangles, anticlockwise seen from outside.
        params: resolution and padding; the reference engine's if None.
        interpolation: of the grid. With "quadratic" the nodes' distances become spline coefficients.
        dtype: of the grid; JAX's default if None. Distances are found in double precision.

    Raises:
        ValueError: the mesh is inside out, has no reference length, or would need too many cells.
        ImportError: libigl is not installed.
    """
    params = GridSdfParams() if params is None else params
    vertices, triangles = np.asarray(mesh.vertices, np.float64), np.asarray(mesh.triangles, np.int64)
    bounds, cells = grid_lattice(vertices, triangles, params, nodes_per_axis(interpolation) - 1)
    spacing = (bounds[1] - bounds[0]) / cells
    axes = [low + h * np.arange(n + 1) for low, h, n in zip(bounds[0], spacing, cells)]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    distance, sign, warnings = _signed_distance(vertices, triangles, nodes)
    if not np.any(distance < 0):
        warnings += ("no node lies inside: the solid is thinner than the cells, or a sheet; make the cells smaller",)
    values = np.asarray(distance.reshape(cells + 1), dtype)
    if interpolation == "quadratic":
        values = spline_coefficients(values)
    report = SdfReport(tuple(cells.tolist()), tuple(spacing.tolist()), sign, warnings)
    return SdfGrid(values, np.asarray(bounds, dtype), interpolation), report


def grid_lattice(
    vertices: Float[np.ndarray, "V 3"], triangles: Int[np.ndarray, "F 3"], params: GridSdfParams, least_cells: int = 1
) -> tuple[Float[np.ndarray, "2 3"], Int[np.ndarray, "3"]]:
    """Bounds [m] and number of cells per axis, see `build_sdf`."""
    box = vertices[np.unique(triangles)]
    low, high = box.min(axis=0) - params.boundary_padding_dist, box.max(axis=0) + params.boundary_padding_dist
    # One rounding error wider, as in the reference engine: extents that are a multiple of the cell get one cell more.
    slack = (high - low) * np.finfo(np.float64).eps
    low, high = low - slack, high + slack
    delta = np.asarray(params.resolution_delta) * _reference_length(vertices, triangles, params.resolution_mode)
    cells = np.maximum(np.maximum(np.ceil((high - low) / delta), params.min_grid_resolution), least_cells)
    if not (np.all(high > low) and cells.prod() < _MOST_CELLS):
        raise ValueError(
            f"an SDF grid over {high - low} m with cells of {np.broadcast_to(delta, 3)} m would have {cells} cells: "
            f"it must have some extent along every axis and fewer than {_MOST_CELLS:.0e} cells. Change "
            "GridSdfParams.resolution_mode, resolution_delta or boundary_padding_dist."
        )
    return np.stack([low, high]), np.ceil(cells).astype(int)


def _reference_length(vertices: np.ndarray, triangles: np.ndarray, mode: GridSdfResolutionMode) -> float:
    if mode is GridSdfResolutionMode.EXPLICIT:
        return 1.0
    choice, of = mode.value.split("_")
    if of == "axis":
        lengths = np.ptp(vertices[np.unique(triangles)], axis=0)
    else:
        lengths = np.linalg.norm(np.subtract(*vertices[edges_of(triangles)[0].T]), axis=1)
    length = float({"largest": np.max, "smallest": np.min, "mean": np.mean}[choice](lengths))
    if not length > 0:
        raise ValueError(
            f"GridSdfParams.resolution_mode {mode.name} gives a reference length of {length} m on this mesh; choose "
            "another mode, or EXPLICIT."
        )
    return length


def _signed_distance(
    vertices: np.ndarray, triangles: np.ndarray, points: np.ndarray
) -> tuple[Float[np.ndarray, "n"], str, tuple[str, ...]]:
    import igl  # here, since only building a grid needs it

    by_normal, no_sign = igl.SIGNED_DISTANCE_TYPE_PSEUDONORMAL, igl.SIGNED_DISTANCE_TYPE_UNSIGNED
    signed, distance = (
        np.asarray(igl.signed_distance(points, vertices, triangles, kind)[0]) for kind in (by_normal, no_sign)
    )
    inside = np.asarray(igl.fast_winding_number(vertices, triangles, points)) > 0.5
    irregular = irregular_edges(triangles)
    if len(irregular):
        text = (
            f"{len(irregular)} edges, the first between vertices {irregular[0].tolist()}, do not have two faces wound "
            "alike: near holes the sign is a guess. Close the mesh"
        )
        return np.where(inside, -distance, distance), "winding number", (text,)
    volume_properties(Surface(vertices, triangles))  # refuses a mesh that is inside out
    tolerance = _ON_SURFACE * np.linalg.norm(np.ptp(vertices, axis=0))
    doubtful: Bool[np.ndarray, "n"] = (distance > tolerance) & (inside != (signed < 0))
    if np.any(doubtful) or not np.all(np.isfinite(signed)):
        text = (
            f"pseudo-normals and winding number disagree at {doubtful.sum()} of {len(points)} nodes: the surface cuts "
            "itself, or has triangles of no area. Make the union of its parts"
        )
        return np.where(inside, -distance, distance), "winding number", (text,)
    return signed, "pseudo-normals", ()
