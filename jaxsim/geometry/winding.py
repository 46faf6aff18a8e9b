"""Winding numbers: how often a surface encloses a point, which tells inside from outside even where it has holes."""

import numpy as np
from jaxtyping import Float, Int

from .mesh_library import mesh_library


def winding_number_of(point: Float[np.ndarray, "3"], corners: Float[np.ndarray, "F 3 3"]) -> float:
    """Exact winding number of triangles, given by their corners, about one point; a whole number if they close.

    Source: van Oosterom & Strackee (1983), doi:10.1109/TBME.1983.325207.
    """
    a, b, c = (corners - point).transpose(1, 0, 2)
    la, lb, lc = (np.linalg.norm(side, axis=1) for side in (a, b, c))
    dots = (a * b).sum(1) * lc + (b * c).sum(1) * la + (c * a).sum(1) * lb
    angle = np.arctan2(np.linalg.det(np.stack([a, b, c], axis=1)), la * lb * lc + dots)
    return float(angle.sum() / (2.0 * np.pi))


def winding_numbers(
    points: Float[np.ndarray, "n 3"], vertices: Float[np.ndarray, "V 3"], triangles: Int[np.ndarray, "F 3"]
) -> Float[np.ndarray, "n"]:
    """Winding numbers about many points, far triangles taken together in a tree: right to about 1e-2.

    Source: Barill et al. (2018), doi:10.1145/3197517.3201337.
    """
    igl = mesh_library("igl", "telling the inside of a mesh")
    return igl.fast_winding_number(
        np.ascontiguousarray(vertices, np.float64),
        np.ascontiguousarray(triangles, np.int64),
        np.ascontiguousarray(points, np.float64),
    )
