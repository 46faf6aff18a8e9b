"""Triangle meshes as shapes."""

import os
from typing import Any

import equinox as eqx
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from ..math.vector import Component, Vec3
from .bounds import Bounds
from .mass import volume_properties
from .mesh_file import MeshReport, read_mesh
from .shapes import AbstractShape, as_float_array, surface_of
from .static_array import StaticArray
from .surface import Surface


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
        path: str | os.PathLike[str], scale: float | tuple[float, float, float] = 1.0, verbose: bool = True
    ) -> "TriMesh":
        """Mesh of a file, cleaned, with a printed report of what was found and changed; see `load_with_report`."""
        mesh, report = TriMesh.load_with_report(path, scale)
        if verbose:
            print(report)
        return mesh

    @staticmethod
    def load_with_report(
        path: str | os.PathLike[str], scale: float | tuple[float, float, float] = 1.0
    ) -> tuple["TriMesh", MeshReport]:
        """Mesh of a file and the report on it.

        Args:
            path: any format that trimesh reads; a scene is flattened with the transforms of its nodes.
            scale: metres per unit of the file, one number or one per axis (negative ones mirror).

        Raises:
            ValueError: the file is missing, unreadable, of unknown format, or holds no triangles.
            ImportError: trimesh is not installed.
        """
        vertices, triangles, report = read_mesh(path, scale)
        return TriMesh(vertices, triangles), report


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
    return volume_properties(surface_of(solid))


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
