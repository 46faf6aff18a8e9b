"""Reading of mesh files."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from .mesh_library import mesh_library

Part = tuple[Float[np.ndarray, "V 3"], Int[np.ndarray, "F 3"]]

_EXPORT_AGAIN = "export or download it again"


def parts_of_file(path: Path) -> list[Part]:
    """Vertices and triangles of each node of a file, in one frame and otherwise as they stand there.

    Raises:
        ValueError: the file is missing, unreadable, of unknown format, holds no triangles, or a vertex is not finite.
        ImportError: trimesh is not installed.
    """
    if not path.is_file():
        raise refusal(path, "there is no file of that name", f"check the path (working folder: {Path.cwd()})")
    if path.stat().st_size == 0:
        raise refusal(path, "the file is empty", "export it again")
    trimesh = mesh_library("trimesh", "reading mesh files")
    formats = trimesh.available_formats()
    if path.suffix.lower().lstrip(".") not in formats:
        raise refusal(path, f"unknown format '{path.suffix}'", f"convert it to one of {', '.join(sorted(formats))}")
    if _is_cut_short(path):
        raise refusal(path, "it is cut short, or is no STL", _EXPORT_AGAIN)
    try:
        # Our own welding counts what it does and ignores texture seams, so trimesh is to leave the vertices alone.
        scene = trimesh.load_scene(path, process=False)
        parts = [_part(scene, node, trimesh.Trimesh) for node in scene.graph.nodes_geometry]
    except Exception as error:  # each of trimesh's readers raises its own kind
        raise refusal(path, f"it cannot be read ({type(error).__name__}: {error})", _EXPORT_AGAIN) from error
    parts = [part for part in parts if part is not None]
    if not parts:
        raise refusal(path, "it holds no triangles (a point cloud, curves, or cut short)", "export a triangle mesh")
    for vertices, triangles in parts:
        if triangles.min() < 0 or triangles.max() >= len(vertices):
            raise refusal(path, "a triangle refers to a vertex that is not there", _EXPORT_AGAIN)
        bad = np.flatnonzero(~np.all(np.isfinite(vertices), axis=1))
        if bad.size:
            raise refusal(path, f"vertex {bad[0]} is {vertices[bad[0]]}, not finite", _EXPORT_AGAIN)
    return parts


def refusal(path: str | os.PathLike[str], cause: str, remedy: str) -> ValueError:
    """The error that names file, cause and remedy."""
    return ValueError(f"cannot load mesh '{os.fspath(path)}': {cause}; {remedy}.")


def _part(scene: Any, node: str, kind: type) -> Part | None:
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
