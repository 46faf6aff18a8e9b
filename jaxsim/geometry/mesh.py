"""Triangle meshes as shapes."""

import os
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from ..math.vector import Component, Vec3
from .bounds import Bounds
from .mass import volume_properties
from .mesh_axes import conversion, convert
from .mesh_close import CELLS, close_surface
from .mesh_hull import hull
from .mesh_load import read_mesh
from .mesh_manifold import separate
from .mesh_report import MeshReport
from .mesh_resolution import decimate, subdivide, volume_of
from .mesh_solids import NEGLIGIBLE, overlap, solids_of, union
from .shapes import AbstractShape, as_float_array, surface_of
from .static_array import StaticArray
from .surface import Surface, boundary_edges


class TriMesh(AbstractShape):
    """A solid or a sheet given by triangles, anticlockwise seen from outside.

    Args:
        vertices: (V, 3) corner positions [m]; may be traced, to optimise a shape.
        triangles: (F, 3) integer vertex indices, known while tracing.

    Raises:
        ValueError: wrong shape or dtype, no triangles, an index out of range, a vertex that is not finite.
    """

    vertices: Float[Array, "V 3"]
    table: StaticArray = eqx.field(static=True)

    def __init__(self, vertices: Any, triangles: Any):
        self.vertices = as_float_array(vertices)
        if self.vertices.ndim != 2 or self.vertices.shape[1] != 3:
            raise ValueError(f"TriMesh.vertices must have shape (V, 3); got {self.vertices.shape}.")
        if not isinstance(self.vertices, Tracer):
            bad = np.flatnonzero(~np.all(np.isfinite(self.vertices), axis=1))
            if bad.size:
                raise ValueError(
                    f"TriMesh.vertices must be finite; vertex {bad[0]} is {self.vertices[bad[0]]}, {bad.size} are bad "
                    "in all. Repair the mesh."
                )
        self.table = StaticArray(_checked_triangles(np.asarray(triangles), self.vertices.shape[0]))

    @property
    def triangles(self) -> Int[np.ndarray, "F 3"]:
        """Vertex indices, read-only."""
        return self.table.array

    def signed_distance(self, p: Vec3) -> Component:
        """A mesh has no distance of its own.

        Raises:
            ValueError: always.
        """
        raise ValueError(
            "a TriMesh has no analytic signed distance: collide with its grid or exact-mesh collider (ColliderType), "
            "or stand a Box, Sphere or Plane in for it."
        )

    def bounds_of(self) -> Bounds:
        low, high = self.vertices.min(0), self.vertices.max(0)
        return Bounds(Vec3.of((low + high) / 2), Vec3.of((high - low) / 2))

    @staticmethod
    def load(
        path: str | os.PathLike[str],
        scale: float | tuple[float, float, float] = 1.0,
        verbose: bool = True,
        *,
        unit: str = "m",
        axes: str = "z-up",
        union: bool = True,
    ) -> "TriMesh":
        """Mesh of a file, cleaned, with a printed report of what was found and changed; see `load_with_report`."""
        mesh, report = TriMesh.load_with_report(path, scale, unit=unit, axes=axes, union=union)
        if verbose:
            print(report)
        return mesh

    @staticmethod
    def load_with_report(
        path: str | os.PathLike[str],
        scale: float | tuple[float, float, float] = 1.0,
        *,
        unit: str = "m",
        axes: str = "z-up",
        union: bool = True,
    ) -> tuple["TriMesh", MeshReport]:
        """Mesh of a file and the report on it.

        Args:
            path: any format that trimesh reads; a scene is flattened with the transforms of its nodes.
            scale: factor on top of `unit`, one number or one per axis of the file (negative ones mirror).
            unit: of the file: "m", "cm", "mm", "um", "km", "inch" or "ft".
            axes: of the file: "z-up", "y-up", "x-up", "left-handed y-up", "left-handed z-up", or the three signed axes
                that become x, y and z, such as "x -z y". Left-handed ones mirror, and the triangles are turned over.
            union: replace closed parts that overlap by their union, so that mass counts no volume twice.

        Raises:
            ValueError: the file is missing, unreadable, of unknown format, or holds no triangles; or an argument is.
            ImportError: a package of the extra `mesh` is not installed.
        """
        vertices, triangles, report = read_mesh(path, scale, unit, axes, union)
        return TriMesh(vertices, triangles), report

    def convert(
        self, scale: float | tuple[float, float, float] = 1.0, *, unit: str = "m", axes: str = "z-up"
    ) -> "TriMesh":
        """The mesh in metres, right-handed and z up, from other units and axes; arguments as in `load_with_report`."""
        return TriMesh(*convert(*self._known("convert"), conversion(scale, unit, axes)))

    def union(self) -> "TriMesh":
        """The surface of what the closed parts occupy together, exact; cavities stay.

        Raises:
            ValueError: the mesh is open or manifold3d refuses a part.
            ImportError: manifold3d is not installed.
        """
        vertices, triangles = self._known("union")
        if len(boundary_edges(triangles)):
            raise ValueError("union: the mesh is open; close it first: mesh.close().")
        vertices, triangles, _ = separate(vertices, triangles)
        return TriMesh(*union(vertices, triangles, solids_of(vertices, triangles)))

    def close(self, cell: float | None = None) -> "TriMesh":
        """A closed mesh around what the triangles enclose, rebuilt on a grid: for open and self-crossing surfaces.

        Args:
            cell: of the grid [m]; details below it are lost. None: the longest side over 64.

        Raises:
            ValueError: nothing is enclosed, or `cell` is out of range.
            ImportError: libigl is not installed.
        """
        vertices, triangles = self._known("close")
        cell = float(np.ptp(vertices, axis=0).max()) / CELLS if cell is None else cell
        return TriMesh(*close_surface(vertices, triangles, cell))

    def convex_hull(self) -> "TriMesh":
        """The convex hull of the vertices.

        Raises:
            ValueError: the vertices lie in a plane.
        """
        vertices, _ = self._known("convex_hull")
        return TriMesh(*hull(vertices))

    def subdivide(self, max_edge: float) -> "TriMesh":
        """The same surface with more triangles, and so more contact samples.

        Args:
            max_edge: length [m] that no edge exceeds afterwards.

        Raises:
            ValueError: `max_edge` is not positive or asks for millions of triangles.
            ImportError: trimesh is not installed.
        """
        return TriMesh(*subdivide(*self._known("subdivide"), max_edge))

    def decimate(self, max_deviation: float) -> "Decimated":
        """A mesh of fewer triangles that stays near, and how far off it is.

        Args:
            max_deviation: bound [m] on the distance from either surface to the other, measured at its vertices and
                at 6000 points spread over it.

        Raises:
            ValueError: `max_deviation` is not positive.
            ImportError: fast-simplification or libigl is not installed.
        """
        vertices, triangles, measured = decimate(*self._known("decimate"), max_deviation)
        return Decimated(TriMesh(vertices, triangles), measured)

    def _known(self, what: str) -> tuple[Float[np.ndarray, "V 3"], Int[np.ndarray, "F 3"]]:
        if isinstance(self.vertices, Tracer):
            raise ValueError(f"{what}: the vertices are traced, and new triangles need numbers; call it outside jit.")
        return np.asarray(self.vertices, np.float64), self.triangles.astype(np.int64)


class Decimated(NamedTuple):
    """What `TriMesh.decimate` found."""

    mesh: TriMesh
    deviation: float  # [m], the largest distance measured between the surfaces


@surface_of.register
def _(shape: TriMesh, subdivisions: int = 0) -> Surface:
    if subdivisions:
        raise ValueError(
            f"a TriMesh samples its own triangles; got subdivisions={subdivisions}. Refine the mesh, or take a rule "
            "with more points."
        )
    return Surface(shape.vertices, shape.triangles)


@volume_properties.register
def _(solid: TriMesh):
    found = volume_properties(surface_of(solid))
    if not isinstance(solid.vertices, Tracer):
        _refuse_overlap(np.asarray(solid.vertices, np.float64), solid.triangles.astype(np.int64))
    return found


def _refuse_overlap(vertices: Float[np.ndarray, "V 3"], triangles: Int[np.ndarray, "F 3"]) -> None:
    vertices, triangles, _ = separate(vertices, triangles)
    solids = solids_of(vertices, triangles)
    shared = overlap(vertices, triangles, solids)
    if shared > NEGLIGIBLE * volume_of(vertices, triangles):
        raise ValueError(
            f"{len(solids.faces)} closed parts of the mesh overlap by {shared:.6g} m^3, which a density would count "
            "more than once: take mesh.union(), or give mass, center_of_mass and moment_of_inertia."
        )


def _checked_triangles(triangles: np.ndarray, vertices: int) -> np.ndarray:
    if triangles.ndim != 2 or triangles.shape[1] != 3:
        raise ValueError(f"TriMesh.triangles must have shape (F, 3); got {triangles.shape}. Split polygons first.")
    if not np.issubdtype(triangles.dtype, np.integer):
        raise ValueError(f"TriMesh.triangles must be integers; got dtype {triangles.dtype}.")
    if len(triangles) == 0:
        raise ValueError("TriMesh.triangles is empty: a mesh needs at least one triangle.")
    outside = np.flatnonzero(np.any((triangles < 0) | (triangles >= vertices), axis=1))
    if outside.size:
        raise ValueError(
            f"TriMesh.triangles must index the {vertices} vertices, from 0; triangle {outside[0]} is "
            f"{triangles[outside[0]].tolist()}, {outside.size} are bad in all."
        )
    return triangles
