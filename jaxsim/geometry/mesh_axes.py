"""Units and axes of mesh files."""

import numpy as np
from jaxtyping import Float, Int

METRES_PER = {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "km": 1e3, "inch": 0.0254, "ft": 0.3048}

# Three signed axes of the file, which become x, y and z. A y-up file seen along its -z stands seen along +y.
AXES = {"z-up": "x y z", "y-up": "x -z y", "x-up": "-z y x", "left-handed y-up": "x z y", "left-handed z-up": "x -y z"}


def conversion(
    scale: float | tuple[float, float, float] = 1.0, unit: str = "m", axes: str = "z-up"
) -> Float[np.ndarray, "3 3"]:
    """The matrix from coordinates of a file to metres, right-handed and z up.

    Args:
        scale: factor on top of the unit, one number or one per axis of the file (negative ones mirror).
        unit: of the file, a key of `METRES_PER`.
        axes: a key of `AXES`, or three signed axes of the file such as "x -z y": what becomes x, y and z. Left-handed
            axes give a matrix of negative determinant, which turns every triangle inside out: see `convert`.

    Raises:
        ValueError: `scale` is zero or not finite, or unit or axes are unknown.
    """
    factors = np.asarray(scale, float)
    if factors.shape not in ((), (1,), (3,)) or not np.all(np.isfinite(factors) & (factors != 0)):
        raise ValueError(f"scale must be one number or three, finite and not zero; got {scale}.")
    if unit not in METRES_PER:
        raise ValueError(f"unit must be one of {', '.join(METRES_PER)}; got {unit!r}. For another one give scale.")
    names = AXES.get(axes, axes).split()
    if sorted(name.lstrip("-") for name in names) != ["x", "y", "z"] or any(name.count("-") > 1 for name in names):
        raise ValueError(
            f"axes must be one of {', '.join(map(repr, AXES))}, or name each axis of the file once, as in 'x -z y'; "
            f"got {axes!r}."
        )
    signed = np.array([np.eye(3)["xyz".index(name[-1])] * (-1.0 if name[0] == "-" else 1.0) for name in names])
    return METRES_PER[unit] * signed * factors


def convert(
    vertices: Float[np.ndarray, "V 3"], triangles: Int[np.ndarray, "F 3"], matrix: Float[np.ndarray, "3 3"]
) -> tuple[Float[np.ndarray, "V 3"], Int[np.ndarray, "F 3"]]:
    """A mesh under a linear map; one that mirrors also turns the triangles over, so that they still face outwards."""
    return vertices @ matrix.T, triangles if np.linalg.det(matrix) > 0 else triangles[:, ::-1]
