"""Convex hulls."""

import numpy as np
from jaxtyping import Float, Int

from .mesh_library import mesh_library


def hull(points: Float[np.ndarray, "n 3"]) -> tuple[Float[np.ndarray, "V 3"], Int[np.ndarray, "F 3"]]:
    """Vertices and triangles, wound outwards, of the convex hull of points.

    Raises:
        ValueError: the points lie in a plane.
        ImportError: scipy is not installed.
    """
    spatial = mesh_library("scipy.spatial", "a convex hull")
    try:
        found = spatial.ConvexHull(points)
    except spatial.QhullError as error:
        raise ValueError(
            f"convex_hull: the {len(points)} vertices lie in a plane, so the hull has no volume; give a Box."
        ) from error
    used, index = np.unique(found.simplices, return_inverse=True)
    vertices, triangles = points[used], index.reshape(-1, 3)
    a, b, c = vertices[triangles].transpose(1, 0, 2)
    inward = np.sum(np.cross(b - a, c - a) * found.equations[:, :3], axis=1) < 0
    return vertices, np.where(inward[:, None], triangles[:, ::-1], triangles)
