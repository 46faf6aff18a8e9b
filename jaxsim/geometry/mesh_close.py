"""A closed surface around what open or self-crossing triangles enclose, rebuilt on a grid."""

import numpy as np
from jaxtyping import Float, Int

from .mesh_library import mesh_library
from .winding import winding_numbers

CELLS = 64  # along the longest side, unless a cell is given
_MOST_NODES = 8_000_000
_CLEARANCE = 1e-3  # of a cell, from every node: spares triangles of no area


def close_surface(
    vertices: Float[np.ndarray, "V 3"], triangles: Int[np.ndarray, "F 3"], cell: float
) -> tuple[Float[np.ndarray, "W 3"], Int[np.ndarray, "G 3"]]:
    """The surface where the winding number passes one half, from the signed distance on the nodes of a grid.

    Second order in `cell` on smooth parts and first order at edges; what is thinner than a cell may vanish, and holes
    are closed where they are seen from inside and outside alike.

    Raises:
        ValueError: `cell` is out of range, or nothing is enclosed.
        ImportError: libigl is not installed.
    Source: Jacobson, Kavan & Sorkine-Hornung (2013), doi:10.1145/2461912.2461916 (inside by winding number).
    """
    igl = mesh_library("igl", "closing a mesh")
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    if not (np.isfinite(cell) and cell > 0 and np.prod((high - low) / cell + 5.0) <= _MOST_NODES):
        raise ValueError(
            f"close: cell must be positive and give at most {_MOST_NODES} grid nodes over {high - low} m; got {cell} "
            f"m. Try {np.max(high - low) / CELLS:.4g}."
        )
    axes = [np.arange(a - 2.0 * cell, b + 3.0 * cell, cell) for a, b in zip(low, high)]
    shape = tuple(len(axis) for axis in axes[::-1])
    nodes = np.stack(np.meshgrid(*axes[::-1], indexing="ij"), axis=-1).reshape(-1, 3)[:, ::-1]  # x runs fastest
    winding = winding_numbers(nodes, vertices, triangles)
    inside = np.zeros(shape, bool)  # the outermost nodes always outside, else a wide hole would stay one
    inside[1:-1, 1:-1, 1:-1] = (winding > 0.5).reshape(shape)[1:-1, 1:-1, 1:-1]
    if not inside.any():
        raise ValueError(
            f"close: the triangles enclose nothing on a grid of {cell:.4g} m (largest winding number "
            f"{winding.max():.2f}, one half is inside): it is a sheet, or thinner than a cell. Give a smaller cell, "
            "take mesh.convex_hull(), or give mass, center_of_mass and moment_of_inertia."
        )
    value = np.where(inside, -cell, cell).ravel()
    near = np.flatnonzero(_borders(inside))  # the others bound no edge of the grid that the surface crosses
    squared, _, _ = igl.point_mesh_squared_distance(
        np.ascontiguousarray(nodes[near]), np.ascontiguousarray(vertices, np.float64), triangles.astype(np.int64)
    )
    value[near] = np.sign(value[near]) * np.maximum(np.sqrt(squared), _CLEARANCE * cell)
    corner, cells, _ = igl.marching_cubes(value, np.ascontiguousarray(nodes), *shape[::-1], 0.0)
    return corner, cells


def _borders(inside: np.ndarray) -> np.ndarray:
    """Nodes with a neighbour, along an axis, on the other side."""
    found = np.zeros_like(inside)
    for axis in range(3):
        low, high = [slice(None)] * 3, [slice(None)] * 3
        low[axis], high[axis] = slice(None, -1), slice(1, None)
        differ = inside[tuple(low)] != inside[tuple(high)]
        found[tuple(low)] |= differ
        found[tuple(high)] |= differ
    return found
