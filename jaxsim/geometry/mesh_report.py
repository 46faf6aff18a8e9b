"""What a mesh file held, what was done to it and what is doubtful."""

import dataclasses
from typing import Any

from .mesh_solids import Closure


@dataclasses.dataclass(frozen=True)
class MeshReport:
    """What a mesh file held, and what was done to it."""

    path: str
    vertices: int  # in the result
    faces: int  # in the result
    welded: int  # vertices merged with another
    split: int  # vertices doubled, where parts touch
    dropped_degenerate: int  # faces
    dropped_duplicate: int  # faces
    flipped: int  # faces turned over
    closure: Closure  # as found, before any union
    components: int  # parts of the result that share no edge
    solids: int  # of the result: closed parts with their cavities
    united: int  # overlapping parts that the result has as one surface; zero when left alone
    overlap: float  # [m^3] that the parts had in common
    watertight: bool
    extents: tuple[float, float, float]  # [m]
    volume: float  # [m^3], meaningless unless watertight
    area: float  # [m^2]
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The fields, for JSON."""
        return dataclasses.asdict(self) | {"closure": self.closure.value}

    def __str__(self) -> str:
        x, y, z = self.extents
        closed = f"watertight, volume {self.volume:.6g} m^3" if self.watertight else "not watertight"
        lines = [
            f"{self.path}: {self.vertices} vertices, {self.faces} triangles, {self.components} component(s), "
            f"{self.solids} solid(s), {closed}",
            f"  found {self.closure.value}; extents {x:.4g} x {y:.4g} x {z:.4g} m, area {self.area:.6g} m^2",
            f"  welded {self.welded} vertices, split {self.split}; dropped {self.dropped_degenerate} degenerate and "
            f"{self.dropped_duplicate} duplicate faces; flipped {self.flipped} faces",
        ]
        if self.united:
            lines.append(
                f"  united {self.united} closed parts, whose overlap of {self.overlap:.6g} m^3 counted more than once"
            )
        return "\n".join(lines + [f"  warning: {text}" for text in self.warnings])
