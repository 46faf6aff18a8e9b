"""Reading of mesh files, with a report of what was found, changed and is doubtful."""

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from .mesh_repair import drop_degenerate, drop_duplicates, drop_unused_vertices, orient, weld
from .surface import boundary_edges

_LARGEST, _SMALLEST = 5.0, 1e-3  # [m] extents beyond which the unit of the file is in doubt
_FEW_FACES = 100


@dataclasses.dataclass(frozen=True)
class MeshReport:
    """What a mesh file held, and what was done to it."""

    path: str
    vertices: int  # in the result
    faces: int  # in the result
    welded: int  # vertices merged with another
    dropped_degenerate: int  # faces
    dropped_duplicate: int  # faces
    flipped: int  # faces turned over
    components: int  # parts that share no edge
    watertight: bool
    extents: tuple[float, float, float]  # [m]
    volume: float  # [m^3], meaningless unless watertight
    area: float  # [m^2]
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The fields, for JSON."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        x, y, z = self.extents
        closed = f"watertight, volume {self.volume:.6g} m^3" if self.watertight else "not watertight"
        lines = [
            f"{self.path}: {self.vertices} vertices, {self.faces} triangles, {self.components} component(s), {closed}",
            f"  extents {x:.4g} x {y:.4g} x {z:.4g} m, area {self.area:.6g} m^2",
            f"  welded {self.welded} vertices; dropped {self.dropped_degenerate} degenerate and "
            f"{self.dropped_duplicate} duplicate faces; flipped {self.flipped} faces",
        ]
        return "\n".join(lines + [f"  warning: {text}" for text in self.warnings])


def read_mesh(
    path: str | os.PathLike[str], scale: float | tuple[float, float, float] = 1.0
) -> tuple[Float[np.ndarray, "V 3"], Int[np.ndarray, "F 3"], MeshReport]:
    """Vertices [m], triangles and report of a file; the arguments and errors of `TriMesh.load_with_report`."""
    factors = np.broadcast_to(np.asarray(scale, float), (3,))
    if not np.all(np.isfinite(factors) & (factors != 0)):
        raise ValueError(f"scale must be finite and not zero; got {scale}. Give metres per unit of the file.")
    vertices, triangles = _triangles_of_file(Path(path))
    vertices = vertices * factors
    if np.prod(factors) < 0:
        triangles = triangles[:, ::-1]

    triangles, welded = weld(vertices, triangles)
    triangles, degenerate, slivers = drop_degenerate(vertices, triangles)
    triangles, duplicate = drop_duplicates(triangles)
    if not len(triangles):
        raise _refusal(path, "all its triangles are degenerate", "export it again, in finer units")
    orientation = orient(vertices, triangles)
    vertices, triangles = drop_unused_vertices(vertices, orientation.triangles)

    corners = vertices[triangles]
    extents = np.ptp(vertices, axis=0)
    open_edges = len(boundary_edges(triangles))
    report = MeshReport(
        path=str(path),
        vertices=len(vertices),
        faces=len(triangles),
        welded=welded,
        dropped_degenerate=degenerate,
        dropped_duplicate=duplicate,
        flipped=orientation.flipped,
        components=orientation.components,
        watertight=open_edges == 0,
        extents=(float(extents[0]), float(extents[1]), float(extents[2])),
        volume=float(np.linalg.det(corners - vertices.mean(axis=0)).sum() / 6.0),
        area=float(np.linalg.norm(_double_area_vectors(corners), axis=1).sum() / 2.0),
        warnings=tuple(_warnings(extents.max(), len(triangles), open_edges, slivers, orientation.one_sided)),
    )
    return vertices, triangles, report


def _warnings(extent: float, faces: int, open_edges: int, slivers: int, one_sided: int) -> list[str]:
    found = []
    if open_edges:
        found.append(
            f"the surface is open ({open_edges} unpaired edges): good for display and sampling, but it has no mass of "
            "its own and no inside; close it for a density or a grid collider"
        )
    if one_sided:
        found.append(f"{one_sided} faces lie on a one-sided (Moebius) surface, whose winding cannot be made consistent")
    if slivers:
        found.append(f"{slivers} triangles without area are kept, since the surface would be open without them")
    if extent > _LARGEST:
        found.append(f"it is {extent:.4g} m long: if the file is in millimetres, load it with scale=0.001")
    if extent < _SMALLEST:
        found.append(f"it is only {extent:.4g} m long: if the file is in kilometres, load it with scale=1000")
    if faces < _FEW_FACES:
        found.append(
            f"only {faces} triangles carry the contact samples: refine flat faces for smooth tipping and rolling"
        )
    return found


def _triangles_of_file(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """All triangles of a file in one frame, as read."""
    if not path.is_file():
        raise _refusal(path, "there is no file of that name", f"check the path (working folder: {Path.cwd()})")
    if path.stat().st_size == 0:
        raise _refusal(path, "the file is empty", "export it again")
    try:
        import trimesh
    except ImportError as error:
        raise ImportError('reading mesh files needs trimesh: pip install "jaxsim-contact[mesh]"') from error
    formats = trimesh.available_formats()
    if path.suffix.lower().lstrip(".") not in formats:
        raise _refusal(path, f"unknown format '{path.suffix}'", f"convert it to one of {', '.join(sorted(formats))}")
    if _is_cut_short(path):
        raise _refusal(path, "it is cut short, or is no STL", _EXPORT_AGAIN)
    try:
        # Our own welding counts what it does and ignores texture seams, so trimesh is to leave the vertices alone.
        scene = trimesh.load_scene(path, process=False)
        parts = [_part(scene, node, trimesh.Trimesh) for node in scene.graph.nodes_geometry]
    except Exception as error:  # each of trimesh's readers raises its own kind
        raise _refusal(path, f"it cannot be read ({type(error).__name__}: {error})", _EXPORT_AGAIN) from error
    parts = [part for part in parts if part is not None]
    if not parts:
        raise _refusal(path, "it holds no triangles (a point cloud, curves, or cut short)", "export a triangle mesh")
    starts = np.cumsum([0] + [len(vertices) for vertices, _ in parts[:-1]])
    vertices = np.concatenate([vertices for vertices, _ in parts])
    triangles = np.concatenate([triangles + start for (_, triangles), start in zip(parts, starts)])
    if triangles.min() < 0 or triangles.max() >= len(vertices):
        raise _refusal(path, "a triangle refers to a vertex that is not there", _EXPORT_AGAIN)
    bad = np.flatnonzero(~np.all(np.isfinite(vertices), axis=1))
    if bad.size:
        raise _refusal(path, f"vertex {bad[0]} is {vertices[bad[0]]}, not finite", _EXPORT_AGAIN)
    return vertices, triangles


_EXPORT_AGAIN = "export or download it again"


def _part(scene: Any, node: str, kind: type) -> tuple[np.ndarray, np.ndarray] | None:
    transform, name = scene.graph[node]
    geometry = scene.geometry[name]
    if not isinstance(geometry, kind) or not len(geometry.faces):
        return None
    vertices = np.asarray(geometry.vertices, float) @ transform[:3, :3].T + transform[:3, 3]
    triangles = np.asarray(geometry.faces, int)
    return vertices, triangles if np.linalg.det(transform[:3, :3]) > 0 else triangles[:, ::-1]


def _is_cut_short(path: Path) -> bool:
    """Whether an STL lacks its end; of this format trimesh takes what there is, without a word."""
    if path.suffix.lower() not in (".stl", ".stl_ascii"):
        return False
    content = path.read_bytes()
    whole_text = content.lstrip().lower().startswith(b"solid") and b"endsolid" in content[-400:].lower()
    whole_binary = len(content) >= 84 and len(content) >= 84 + 50 * int.from_bytes(content[80:84], "little")
    return not (whole_text or whole_binary)


def _double_area_vectors(corners: np.ndarray) -> np.ndarray:
    return np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])


def _refusal(path: str | os.PathLike[str], cause: str, remedy: str) -> ValueError:
    return ValueError(f"cannot load mesh '{os.fspath(path)}': {cause}; {remedy}.")
