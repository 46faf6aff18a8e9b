"""The solids that a surface bounds: which parts are closed, which are cavities, which overlap, and their union."""

import dataclasses
import enum

import numpy as np
from jaxtyping import Float, Int

from .connectivity import connected, members
from .mesh_library import mesh_library
from .surface import boundary_edges, edges_of
from .winding import winding_number_of

Vertices = Float[np.ndarray, "V 3"]
Triangles = Int[np.ndarray, "F 3"]

NEGLIGIBLE = 1e-4  # of the volume: parts that share less are taken to touch


class Closure(enum.Enum):
    """How a surface encloses volume."""

    CLOSED = "closed"  # one solid, with or without cavities
    SEVERAL = "several closed parts"  # that share no volume
    OVERLAPPING = "overlapping closed parts"
    OPEN = "open"  # some edge lacks a partner


@dataclasses.dataclass(frozen=True)
class Solids:
    """The closed parts of a surface.

    Args:
        faces: of each solid, those of its cavities included.
        components: number of parts, cavities and open ones included.
    """

    faces: tuple[Int[np.ndarray, "n"], ...]
    components: int


def solids_of(vertices: Vertices, triangles: Triangles) -> Solids:
    """The solids of a surface wound outwards, whose parts have no vertices in common (`orient`, `separate`).

    A closed part turned inwards is a cavity, and belongs to the smallest solid around it.
    """
    parts = _parts(triangles)
    closed = [faces for faces in parts if not len(boundary_edges(triangles[faces]))]
    corners = [vertices[triangles[faces]] for faces in closed]
    volume = np.array([np.linalg.det(c - c.mean(axis=(0, 1))).sum() for c in corners])
    solids = {k: [closed[k]] for k in np.flatnonzero(volume > 0)}
    for k in np.flatnonzero(volume < 0):
        around = [j for j in solids if winding_number_of(corners[k][0, 0], corners[j]) > 0.5]
        if around:
            solids[min(around, key=lambda j: volume[j])].append(closed[k])
    return Solids(tuple(np.sort(np.concatenate(faces)) for faces in solids.values()), len(parts))


def overlap(vertices: Vertices, triangles: Triangles, solids: Solids) -> float:
    """Volume [m^3] by which the solids together exceed their union; zero without a look where bounding boxes differ.

    Raises:
        ImportError: manifold3d is not installed.
        ValueError: manifold3d refuses a part.
    """
    if len(solids.faces) < 2:
        return 0.0
    corners = [vertices[triangles[faces]] for faces in solids.faces]
    low = np.array([c.min(axis=(0, 1)) for c in corners])
    high = np.array([c.max(axis=(0, 1)) for c in corners])
    meet = np.all((low[:, None] < high[None]) & (low[None] < high[:, None]), axis=-1)
    near = np.flatnonzero(meet.sum(axis=1) > 1)
    if not near.size:
        return 0.0
    manifolds = [_manifold(vertices, triangles[solids.faces[k]]) for k in near]
    return sum(m.volume() for m in manifolds) - _united(manifolds).volume()


def union(vertices: Vertices, triangles: Triangles, solids: Solids) -> tuple[Vertices, Triangles]:
    """The surface of what the solids occupy together.

    Raises:
        ImportError: manifold3d is not installed.
        ValueError: manifold3d refuses a part.
    """
    mesh = _united([_manifold(vertices, triangles[faces]) for faces in solids.faces]).to_mesh64()
    return np.asarray(mesh.vert_properties)[:, :3], np.asarray(mesh.tri_verts).astype(np.int64)


def _parts(triangles: Triangles) -> list[np.ndarray]:
    """Sets of faces joined by edges."""
    _, edge_id, _ = edges_of(triangles)
    order = np.argsort(edge_id, kind="stable")
    a, b = order[:-1], order[1:]
    same = edge_id[a] == edge_id[b]
    return members(connected(len(triangles), np.stack([a[same] // 3, b[same] // 3], axis=1)))


def _manifold(vertices: Vertices, triangles: Triangles):
    manifold3d = mesh_library("manifold3d", "finding and uniting parts that overlap")
    used, index = np.unique(triangles, return_inverse=True)
    mesh = manifold3d.Mesh64(np.ascontiguousarray(vertices[used], np.float64), index.reshape(-1, 3).astype(np.uint64))
    solid = manifold3d.Manifold(mesh)
    if solid.status() != manifold3d.Error.NoError:
        raise ValueError(
            f"manifold3d refuses a part of {len(triangles)} triangles ({solid.status().name}); "
            "rebuild the mesh on a grid: mesh.close()."
        )
    return solid


def _united(solids: list):
    manifold3d = mesh_library("manifold3d", "finding and uniting parts that overlap")
    return manifold3d.Manifold.batch_boolean(solids, manifold3d.OpType.Add)
