"""From a mesh file to a clean surface and a report on it."""

import os
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from .mesh_axes import conversion, convert
from .mesh_file import parts_of_file, refusal
from .mesh_manifold import separate
from .mesh_repair import drop_degenerate, drop_duplicates, drop_unused_vertices, orient, weld_parts
from .mesh_report import MeshReport
from .mesh_resolution import areas_of, volume_of
from .mesh_solids import NEGLIGIBLE, Closure, Solids, overlap, solids_of, union
from .mesh_warnings import crossing_warnings, sampling_warnings, size_warnings, surface_warnings, wall_warnings
from .surface import boundary_edges

Vertices = Float[np.ndarray, "V 3"]
Triangles = Int[np.ndarray, "F 3"]


def read_mesh(
    path: str | os.PathLike[str],
    scale: float | tuple[float, float, float] = 1.0,
    unit: str = "m",
    axes: str = "z-up",
    unite: bool = True,
) -> tuple[Vertices, Triangles, MeshReport]:
    """Vertices [m], triangles and report of a file; the arguments and errors of `TriMesh.load_with_report`."""
    matrix = conversion(scale, unit, axes)
    parts = [convert(*part, matrix) for part in parts_of_file(Path(path))]
    vertices, triangles, welded = weld_parts(parts)
    triangles, degenerate, slivers = drop_degenerate(vertices, triangles)
    triangles, duplicate = drop_duplicates(triangles)
    if not len(triangles):
        raise refusal(path, "all its triangles are degenerate", "export it again, in finer units")
    orientation = orient(vertices, triangles)
    vertices, triangles = drop_unused_vertices(vertices, orientation.triangles)
    vertices, triangles, split = separate(vertices, triangles)

    open_edges = len(boundary_edges(triangles))
    solids = solids_of(vertices, triangles)
    shared, doubts = (0.0, []) if open_edges else _shared_volume(vertices, triangles, solids)
    united = len(solids.faces) if unite and shared > 0 else 0
    if united:
        vertices, triangles = union(vertices, triangles, solids)
    after = solids_of(vertices, triangles) if united else solids
    crossings = crossing_warnings(vertices, triangles, closed=not open_edges)
    if open_edges:
        closure = Closure.OPEN
    elif crossings or shared > 0:
        closure = Closure.OVERLAPPING
    else:
        closure = Closure.CLOSED if len(solids.faces) == 1 else Closure.SEVERAL

    extents = np.ptp(vertices, axis=0)
    report = MeshReport(
        path=str(path),
        vertices=len(vertices),
        faces=len(triangles),
        welded=welded,
        split=split,
        dropped_degenerate=degenerate,
        dropped_duplicate=duplicate,
        flipped=orientation.flipped,
        closure=closure,
        components=after.components,
        solids=len(after.faces),
        united=united,
        overlap=shared,
        watertight=open_edges == 0,
        extents=(float(extents[0]), float(extents[1]), float(extents[2])),
        volume=volume_of(vertices, triangles),
        area=float(areas_of(vertices, triangles).sum()),
        warnings=(
            *surface_warnings(open_edges, slivers, orientation.one_sided),
            *doubts,
            *crossings,
            *size_warnings(float(extents.max())),
            *wall_warnings(vertices, triangles, closed=not open_edges),
            *sampling_warnings(vertices, triangles),
        ),
    )
    return vertices, triangles, report


def _shared_volume(vertices: Vertices, triangles: Triangles, solids: Solids) -> tuple[float, list[str]]:
    """Volume [m^3] that solids have in common, zero where they only touch; and why it is not known."""
    try:
        shared = overlap(vertices, triangles, solids)
    except ValueError as error:
        return 0.0, [f"whether its closed parts overlap is not known: {error}"]
    return (shared if shared > NEGLIGIBLE * abs(volume_of(vertices, triangles)) else 0.0), []
