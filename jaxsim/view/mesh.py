"""A still picture of a triangle mesh, with matplotlib."""

from typing import TYPE_CHECKING

import numpy as np

from .optional import import_optional
from .scene import COLOR_CYCLE, VisualMesh

if TYPE_CHECKING:
    from mpl_toolkits.mplot3d.axes3d import Axes3D

_LIGHT = np.array([0.3, -0.5, 0.8]) / np.linalg.norm([0.3, -0.5, 0.8])  # direction towards the light
_AMBIENT = 0.45  # share of the light that comes from everywhere
_EDGES_UP_TO = 5000  # triangles; more of them and their edges would blacken the picture
_MOST_DRAWN = 40_000  # triangles; of larger meshes, those of the largest area


def plot_mesh(mesh: VisualMesh) -> "Axes3D":
    """The mesh in axes at equal scale [m], lit from above.

    Args:
        mesh: colour and opacity are used, too.
    Returns:
        The axes drawn into, of a figure of their own.
    Raises:
        ImportError: matplotlib is missing.
    """
    figure = import_optional("matplotlib.figure").Figure(figsize=(6.4, 5.6), layout="constrained")
    ax = figure.add_subplot(projection="3d")
    corners = mesh.vertices[mesh.triangles]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    double_area = np.linalg.norm(normal, axis=1)
    drawn = np.argsort(-double_area)[:_MOST_DRAWN]
    unit = normal[drawn] / np.maximum(double_area[drawn], np.finfo(float).tiny)[:, None]
    light = _AMBIENT + (1.0 - _AMBIENT) * np.clip(unit @ _LIGHT, 0.0, 1.0)
    color = np.asarray(COLOR_CYCLE[0] if mesh.color is None else mesh.color)
    art3d = import_optional("mpl_toolkits.mplot3d.art3d")
    edge = "black" if len(drawn) <= _EDGES_UP_TO else "none"
    ax.add_collection3d(
        art3d.Poly3DCollection(
            corners[drawn], facecolors=light[:, None] * color, edgecolors=edge, linewidths=0.15, alpha=mesh.opacity
        )
    )
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    margin = 0.02 * max(np.max(high - low), np.finfo(float).tiny)
    for axis, a, b in zip("xyz", low - margin, high + margin):
        ax.set(**{f"{axis}lim": (a, b), f"{axis}label": f"{axis} [m]"})
    ax.set_box_aspect(high - low + 2.0 * margin)
    ax.locator_params(nbins=4)
    ax.set_title(mesh.name, parse_math=False)  # a dollar sign in a file name starts no formula
    return ax
