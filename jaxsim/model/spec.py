"""One actor as it was asked for, before a model is made of it."""

import dataclasses
import warnings
from typing import NamedTuple

import numpy as np

from ..contact.params import ColliderType, ContactParams
from ..geometry.mesh import TriMesh
from ..geometry.mesh_solid import MeshSolid
from ..geometry.quadrature import RULES
from ..geometry.sdf_build import GridSdfParams, build_sdf
from ..geometry.sdf_grid import SdfGrid
from ..geometry.shapes import AbstractShape, Plane, size_of, stretched, surface_basis
from ..geometry.subsampling import BoundarySubsampling, SampleSubset


@dataclasses.dataclass(frozen=True)
class RigidSpec:
    """One rigid actor as it was asked for, checked."""

    name: str
    shape: AbstractShape
    static: bool
    position: np.ndarray
    quaternion: np.ndarray
    linear_velocity: np.ndarray
    angular_velocity: np.ndarray
    contact: ContactParams
    collider: ColliderType
    sdf: SdfGrid | GridSdfParams | None
    point_cloud_radius: float
    quadrature: str
    subdivisions: int
    subsampling: BoundarySubsampling | None
    layer: str
    gravity_scale: float
    newton_euler: bool
    mass_properties: tuple[np.ndarray, ...]  # mass, COM, inertia; empty for a static actor

    def check_quadrature(self) -> None:
        if self.quadrature not in RULES:
            raise ValueError(
                f"actor {self.name!r}: quadrature {self.quadrature!r} is unknown; choose one of {', '.join(RULES)}"
            )
        if self.subdivisions != int(self.subdivisions) or self.subdivisions < 0:
            raise ValueError(f"actor {self.name!r}: subdivisions must be a whole number >= 0; got {self.subdivisions}")

    def grid(self) -> SdfGrid:
        """The actor's grid collider: the one it was given, or one built from its surface."""
        if isinstance(self.sdf, SdfGrid):
            return self.sdf
        if isinstance(self.shape, SdfGrid):
            return self.shape
        params = self.sdf
        if params is None:
            # As the reference engine has it: just far enough for the distance at which contact sets in.
            reach = self.contact.penalty_threshold_default + self.contact.penalty_threshold_extra_padding
            params = GridSdfParams(boundary_padding_dist=float(max(reach, 0.0)))
        surface = self.surface()
        try:
            grid, report = build_sdf(TriMesh(surface.vertices, surface.triangles), params, dtype=np.float64)
        except ValueError as error:
            raise ValueError(f"actor {self.name!r}: {error}") from None
        for text in report.warnings:
            warnings.warn(f"actor {self.name!r}: grid collider: {text}", stacklevel=4)
        return grid

    def solid(self) -> MeshSolid:
        """The actor's collider of exact distance, from the triangles of its surface."""
        surface = self.surface()
        try:
            return MeshSolid(TriMesh(surface.vertices, surface.triangles))
        except ValueError as error:
            raise ValueError(f"actor {self.name!r}: collider MESH: {error}") from None

    def subset(self, weight: np.ndarray) -> SampleSubset | None:
        """Which of the surface samples with these weights [m^2] are kept; None for all."""
        return None if self.subsampling is None else self.subsampling.draw(weight)

    def surface(self) -> "SpecSurface":
        """Of a plane and a grid, which own no samples, an empty one."""
        if isinstance(self.shape, TriMesh):
            vertices = np.asarray(self.shape.vertices)
            return SpecSurface(stretched(vertices), self.shape.triangles, np.ones(3))
        if isinstance(self.shape, Plane | SdfGrid):
            return SpecSurface(np.zeros((3, 0, 3)), np.zeros((0, 3), np.int32), np.ones(3))
        basis, triangles = surface_basis(type(self.shape), int(self.subdivisions))
        return SpecSurface(basis, triangles, np.asarray(size_of(self.shape)))


class SpecSurface(NamedTuple):
    """A surface that is linear in three sizes."""

    basis: np.ndarray  # (3, v, 3)
    triangles: np.ndarray
    size: np.ndarray

    @property
    def vertices(self) -> np.ndarray:
        return np.tensordot(self.size, self.basis, axes=1)
