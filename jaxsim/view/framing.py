"""Where the camera stands, how large the grid cells are, which frames are drawn.

Everything is drawn on a *stage*: axes S with z up, its origin in the middle of the whole motion, lengths divided by
the radius of the motion. So one camera, one light and one grid suit a grain of sand and a crane alike.
"""

import dataclasses

import numpy as np

from . import rotation
from .scene import Animation

FRAME_RATE = 30.0  # [1/s] of simulated time, at most
CAMERA_FOV = float(np.deg2rad(35.0))  # vertical; narrow, so that a cube looks like a cube
CAMERA_DIRECTION = np.array([0.50, -0.80, 0.40]) / np.linalg.norm([0.50, -0.80, 0.40])  # from the motion to the eye
NARROWEST_ASPECT = 1.2  # width over height of the narrowest window that still shows the whole motion
MARGIN = 1.1
CELLS_PER_RADIUS = 3.0
SMALLEST_RADIUS = 1e-9  # [m]


def frames_to_draw(times: np.ndarray, rate: float = FRAME_RATE) -> np.ndarray:
    """Increasing indices of at most `rate` frames per second of `times` (T,) [s], the first and the last included."""
    ticks = int((times[-1] - times[0]) * rate * (1.0 + 1e-9)) + 1
    if times.size <= ticks:
        return np.arange(times.size)
    wanted = np.linspace(times[0], times[-1], max(ticks, 2))
    after = np.searchsorted(times, wanted).clip(1, times.size - 1)
    return np.unique(after - (wanted - times[after - 1] < times[after] - wanted))


def nice_length(target: float) -> float:
    """The largest of 1, 2, 5 times a power of ten that does not exceed `target` > 0 [m]."""
    power = 10.0 ** np.floor(np.log10(target))
    return float(power * max(step for step in (1.0, 2.0, 5.0) if step * power <= target * (1.0 + 1e-9)))


@dataclasses.dataclass(frozen=True, eq=False)
class Stage:
    """The axes S that an animation is drawn in.

    Args:
        q_SW: (4,) xyzw, takes world directions to the stage, the up direction to z.
        center: (3,), middle of the motion, in the world [m].
        radius: half the diagonal of the box around the motion; the stage's unit of length [m].
        half_size: (3,), half the sides of that box, in units of `radius`.
    """

    q_SW: np.ndarray
    center: np.ndarray
    radius: float
    half_size: np.ndarray

    def place(self, p_W: np.ndarray) -> np.ndarray:
        """(..., 3) stage coordinates of world points (..., 3) [m]."""
        return rotation.rotate(self.q_SW, p_W - self.center) / self.radius

    def cell(self) -> float:
        """Side of a grid cell [m]."""
        return nice_length(self.radius / CELLS_PER_RADIUS)

    def camera_position(self) -> np.ndarray:
        """(3,) nearest place on the stage along the camera direction from where the whole box is in view."""
        right = np.cross([0.0, 0.0, 1.0], CAMERA_DIRECTION)
        right /= np.linalg.norm(right)
        axes = np.stack([right, np.cross(CAMERA_DIRECTION, right), CAMERA_DIRECTION])
        corners = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 3), axis=-1).reshape(-1, 3) * self.half_size
        x, y, depth = axes @ corners.T
        slope = np.tan(CAMERA_FOV / 2.0)
        distance = depth + MARGIN * np.maximum(np.abs(y), np.abs(x) / NARROWEST_ASPECT) / slope
        return distance.max() * CAMERA_DIRECTION


def stage_of(animation: Animation) -> Stage:
    """The stage that fits every frame of an animation, and the ground below it where that is near."""
    q_SW = rotation.between(animation.up, [0.0, 0.0, 1.0])
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for body, mesh in enumerate(animation.meshes):
        # The box around a turning box, or the sphere around it where that is the smaller: exact enough, and cheap.
        middle = (mesh.vertices.max(axis=0) + mesh.vertices.min(axis=0)) / 2.0
        half = (mesh.vertices.max(axis=0) - mesh.vertices.min(axis=0)) / 2.0
        reach = np.linalg.norm(mesh.vertices - middle, axis=1).max()
        turned = rotation.multiply(q_SW, animation.quaternions[:, body])
        spread = np.minimum(np.abs(rotation.matrix(turned)) @ half, reach)
        centers = rotation.rotate(q_SW, animation.positions[:, body]) + rotation.rotate(turned, middle)
        low = np.minimum(low, (centers - spread).min(axis=0))
        high = np.maximum(high, (centers + spread).max(axis=0))
    for plane in animation.planes:
        normal, middle = rotation.rotate(q_SW, plane.normal), (low + high) / 2.0
        foot = middle + (plane.offset - normal @ middle) * normal
        if np.linalg.norm(foot - middle) < np.linalg.norm(high - low):
            low, high = np.minimum(low, foot), np.maximum(high, foot)
    radius = max(float(np.linalg.norm(high - low)) / 2.0, SMALLEST_RADIUS)
    center = rotation.rotate(rotation.conjugate(q_SW), (low + high) / 2.0)
    return Stage(q_SW, center, radius, (high - low) / 2.0 / radius)
