"""What is drawn: meshes that move rigidly, fixed planes, arrows. Plain NumPy, checked once when made."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

# Told apart with every common colour blindness. Source: Okabe & Ito (2008), Color Universal Design.
COLOR_CYCLE = (
    np.array(
        [(0, 114, 178), (213, 94, 0), (0, 158, 115), (204, 121, 167), (86, 180, 233), (230, 159, 0), (240, 228, 66)]
    )
    / 255.0
)

UNIT_TOLERANCE = 1e-2  # on the norm of a quaternion: wide enough for float32 drift, too narrow for a wrong layout


def _finite_array(owner: str, field: str, value: ArrayLike, shape: tuple[int | None, ...]) -> np.ndarray:
    """`value` as float64, of that shape (None: any length) and finite.

    Raises:
        ValueError: it is not; the message names owner, field and what was given.
    """
    array = np.asarray(value, dtype=float)
    if array.ndim != len(shape) or any(n not in (None, m) for n, m in zip(shape, array.shape, strict=True)):
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise ValueError(f"{owner}: {field} must have shape ({wanted}); got {array.shape}")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{owner}: {field} must be finite; got {array[where]} at index {where}")
    return array


def _unit_vector(owner: str, field: str, value: ArrayLike) -> np.ndarray:
    """`value` of shape (3,) scaled to length one; ValueError when it is zero, not finite or of another shape."""
    vector = _finite_array(owner, field, value, (3,))
    length = np.linalg.norm(vector)
    if length == 0.0:
        raise ValueError(f"{owner}: {field} must not be the zero vector")
    return vector / length


@dataclasses.dataclass(frozen=True, eq=False)
class VisualMesh:
    """A triangle mesh that moves rigidly.

    Args:
        name: shown in the viewer's scene tree and in error messages.
        vertices: (V, 3), in the body's root frame [m].
        triangles: (F, 3), indices into `vertices`, counter-clockwise seen from outside.
        color: red, green, blue in 0..1; None takes the mesh's turn in a colour-blind-safe cycle.
        opacity: 0 (invisible) to 1 (solid).
    Raises:
        ValueError: a shape, a value or an index is out of place.
    """

    name: str
    vertices: np.ndarray
    triangles: np.ndarray
    color: Sequence[float] | np.ndarray | None = None
    opacity: float = 1.0

    def __post_init__(self) -> None:
        owner = f"VisualMesh {self.name!r}"
        vertices = _finite_array(owner, "vertices", self.vertices, (None, 3))
        triangles = _finite_array(owner, "triangles", self.triangles, (None, 3))
        if triangles.size == 0:
            raise ValueError(f"{owner}: triangles is empty, so there is nothing to draw")
        if (triangles != np.round(triangles)).any() or triangles.min() < 0 or triangles.max() >= len(vertices):
            raise ValueError(
                f"{owner}: triangles must be whole numbers from 0 to {len(vertices) - 1}, the last vertex; "
                f"got {triangles.min():g} to {triangles.max():g}"
            )
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "triangles", triangles.astype(np.int32))
        if self.color is not None:
            color = _finite_array(owner, "color", self.color, (3,))
            if color.min() < 0.0 or color.max() > 1.0:
                raise ValueError(f"{owner}: color must lie in 0..1; got {tuple(color.tolist())} (divide bytes by 255)")
            object.__setattr__(self, "color", color)
        if not 0.0 <= self.opacity <= 1.0:
            raise ValueError(f"{owner}: opacity must lie in 0..1; got {self.opacity}")


@dataclasses.dataclass(frozen=True, eq=False)
class VisualPlane:
    """The fixed plane of points p with normal . p = offset, drawn as a large grid.

    Args:
        name: shown in the viewer's scene tree.
        normal: (3,), world axes, out of the solid side; scaled to length one.
        offset: distance of the plane from the world origin along the unit normal [m].
    Raises:
        ValueError: the normal is zero, or a value is not finite.
    """

    name: str
    normal: np.ndarray
    offset: float = 0.0

    def __post_init__(self) -> None:
        owner = f"VisualPlane {self.name!r}"
        object.__setattr__(self, "normal", _unit_vector(owner, "normal", self.normal))
        object.__setattr__(self, "offset", float(_finite_array(owner, "offset", self.offset, ())))


@dataclasses.dataclass(frozen=True, eq=False)
class Animation:
    """n meshes and their poses at T instants.

    Args:
        title: heading of the picture.
        meshes: the n meshes.
        planes: fixed planes; empty lets the viewer put a reference grid under the motion.
        times: (T,), increasing [s].
        positions: (T, n, 3), root frame origins in the world [m].
        quaternions: (T, n, 4), xyzw, world_from_root, of unit length to within one per cent.
        arrows: (T, m, 6), world point [m] and vector in any one unit (contact forces, say), or None. The longest
            arrow of the animation sets the drawn scale; a zero vector draws nothing.
        up: (3,), the direction drawn upwards; scaled to length one.
    Raises:
        ValueError: shapes disagree, times do not increase, or a pose is not finite; the last names body and frame.
    """

    title: str
    meshes: Sequence[VisualMesh]
    planes: Sequence[VisualPlane]
    times: np.ndarray
    positions: np.ndarray
    quaternions: np.ndarray
    arrows: np.ndarray | None = None
    up: np.ndarray = dataclasses.field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))

    def __post_init__(self) -> None:
        owner = f"Animation {self.title!r}"
        times = _finite_array(owner, "times", self.times, (None,))
        if times.size == 0 or (np.diff(times) <= 0.0).any():
            raise ValueError(f"{owner}: times must be increasing, with at least one instant; got {times}")
        count = len(self.meshes)
        if count == 0:
            raise ValueError(f"{owner}: meshes is empty, so there is nothing to draw")
        positions, quaternions = np.asarray(self.positions, float), np.asarray(self.quaternions, float)
        for field, array, width in (("positions", positions, 3), ("quaternions", quaternions, 4)):
            wanted = (times.size, count, width)
            if array.shape != wanted:
                raise ValueError(
                    f"{owner}: {field} must have shape (times, meshes, {width}) = {wanted}; got {array.shape}"
                )
            lost = np.argwhere(~np.isfinite(array).all(axis=-1))
            if lost.size:
                frame, body = (int(i) for i in lost[0])
                raise ValueError(
                    f"{owner}: {field} of body {self.meshes[body].name!r} (index {body}) are not finite at frame "
                    f"{frame}, t = {times[frame]:g} s: {array[frame, body]}; look for a diverged step just before it"
                )
        norms = np.linalg.norm(quaternions, axis=-1)
        skew = np.argwhere(np.abs(norms - 1.0) > UNIT_TOLERANCE)
        if skew.size:
            frame, body = (int(i) for i in skew[0])
            raise ValueError(
                f"{owner}: quaternions of body {self.meshes[body].name!r} (index {body}) must have unit length; "
                f"norm {norms[frame, body]:g} at frame {frame}"
            )
        object.__setattr__(self, "meshes", tuple(self.meshes))
        object.__setattr__(self, "planes", tuple(self.planes))
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "positions", positions)
        object.__setattr__(self, "quaternions", quaternions / norms[..., None])
        object.__setattr__(self, "up", _unit_vector(owner, "up", self.up))
        if self.arrows is not None:
            object.__setattr__(self, "arrows", _finite_array(owner, "arrows", self.arrows, (times.size, None, 6)))

    def color(self, index: int) -> np.ndarray:
        """Red, green, blue in 0..1 of that mesh: its own, or its turn in the cycle."""
        own = self.meshes[index].color
        return COLOR_CYCLE[index % len(COLOR_CYCLE)] if own is None else np.asarray(own)
