"""Signed distances sampled on regular grids.

Nodes span the bounds inclusively, z fastest. Inside the bounds the values are interpolated; outside, the value at the
nearest point of the bounds plus the distance to it, which no 1-Lipschitz distance exceeds. The gradient is that of this
function, written by hand and not made a unit vector: it comes from the same gathered nodes as the distance.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from ..math.rows import Rows, take
from ..math.vector import Component, Vec3, dot
from .bounds import Bounds
from .shapes import AbstractShape, as_float_array, distance_and_gradient
from .static_array import StaticArray

_NODES = {"trilinear": 2, "quadratic": 3}


def nodes_per_axis(interpolation: str) -> int:
    """How many nodes along each axis an interpolated value depends on; ValueError for an unknown interpolation."""
    if interpolation not in _NODES:
        raise ValueError(f"SdfGrid.interpolation must be one of {', '.join(_NODES)}; got {interpolation!r}.")
    return _NODES[interpolation]


class SdfGrid(AbstractShape):
    """A solid given by signed distances on a grid.

    Args:
        values: (nx, ny, nz) signed distances at the nodes [m], negative inside, differentiable. With "quadratic" they
            are spline coefficients, see `spline_coefficients`.
        bounds: (2, 3) lowest and highest node [m], differentiable.
        interpolation: "trilinear" (gradient jumps from cell to cell) or "quadratic" (a B-spline, whose gradient is
            continuous inside the bounds).

    Raises:
        ValueError: wrong shape, too few nodes, a value that is not finite, an empty box, an unknown interpolation.
    """

    values: Float[Array, "nx ny nz"]
    bounds: Float[Array, "2 3"]
    interpolation: str = eqx.field(static=True)

    def __init__(self, values: Any, bounds: Any, interpolation: str = "trilinear"):
        self.values, self.bounds, self.interpolation = as_float_array(values), as_float_array(bounds), interpolation
        least = nodes_per_axis(interpolation)
        if self.values.ndim != 3 or min(self.values.shape) < least:
            raise ValueError(
                f"SdfGrid.values must have shape (nx, ny, nz) with {least} nodes or more per axis for {interpolation} "
                f"interpolation; got {self.values.shape}. Reshape a flat array to its dims, x slowest."
            )
        if self.bounds.shape != (2, 3):
            raise ValueError(
                f"SdfGrid.bounds must have shape (2, 3), lowest and highest node; got {self.bounds.shape}."
            )
        if not isinstance(self.values, Tracer) and not np.all(np.isfinite(self.values)):
            raise ValueError(
                f"SdfGrid.values must be finite; {np.sum(~np.isfinite(self.values))} of {self.values.size} are not. "
                "Sample the distance of a finite solid."
            )
        if not isinstance(self.bounds, Tracer) and not np.all(self.bounds[1] > self.bounds[0]):
            raise ValueError(f"SdfGrid.bounds must be finite and rise along every axis [m]; got {self.bounds}.")

    def signed_distance(self, p: Vec3) -> Component:
        return distance_and_gradient(self, p)[0]

    def bounds_of(self) -> Bounds:
        return _box(self.bounds)


class SdfGrids(AbstractShape):
    """Many grids, of any dims, end to end in one array: what one vectorised contact group collides with.

    `values` and `bounds` may have a last axis of worlds. Asked with points whose trailing axes are (..., grids) or
    (..., grids, worlds), grid by grid.
    """

    values: Float[Array, "N *w"]
    bounds: Float[Array, "2 3 g *w"]
    first: StaticArray = eqx.field(static=True)  # (g,) place of each grid's first node in `values`
    dims: StaticArray = eqx.field(static=True)  # (3, g) nodes per axis
    interpolation: str = eqx.field(static=True)

    @staticmethod
    def of(grids: Sequence[SdfGrid]) -> "SdfGrids":
        """One or more grids as one shape.

        Raises:
            ValueError: none is given, or they are not all interpolated alike.
        """
        kinds = sorted({grid.interpolation for grid in grids})
        if len(kinds) != 1:
            raise ValueError(
                f"SdfGrids takes one or more grids of one interpolation; got {len(grids)} grids with {kinds or 'none'}."
            )
        dims = np.array([grid.values.shape for grid in grids]).T
        first = np.concatenate([[0], np.cumsum(dims.prod(axis=0))[:-1]])
        return SdfGrids(
            values=jnp.concatenate([grid.values.ravel() for grid in grids]),
            bounds=jnp.stack([grid.bounds for grid in grids], axis=-1),
            first=StaticArray(first.astype(np.int32)),
            dims=StaticArray(dims.astype(np.int32)),
            interpolation=kinds[0],
        )

    def span(self, row: int) -> slice:
        """The nodes of one grid in `values`."""
        start = int(self.first.array[row])
        return slice(start, start + int(self.dims.array[:, row].prod()))

    def grid(self, row: int) -> SdfGrid:
        """One of the grids."""
        values = self.values[self.span(row)].reshape(self.dims.array[:, row])
        return SdfGrid(values, self.bounds[..., row], self.interpolation)

    def scaled(self, row: int, factor: Float[Array, ""]) -> "SdfGrids":
        """With one grid, and the solid in it, larger by a factor."""
        return eqx.tree_at(
            lambda s: (s.values, s.bounds),
            self,
            (self.values.at[self.span(row)].multiply(factor), self.bounds.at[:, :, row].multiply(factor)),
        )

    def for_pairs(self, rows: Rows) -> "SdfGridsOfPairs":
        first, dims = (jnp.asarray(table.array)[..., None] for table in (self.first, self.dims))
        bounds, first, dims = (x[..., None, :, :] for x in take((self.bounds, first, dims), rows))
        return SdfGridsOfPairs(self.values, bounds, first, dims, self.interpolation)

    def bounds_of(self) -> Bounds:
        return _box(self.bounds)

    def signed_distance(self, p: Vec3) -> Component:
        return distance_and_gradient(self, p)[0]


class SdfGridsOfPairs(AbstractShape):
    """The grid of each pair, over the values of all grids: what `SdfGrids.for_pairs` gives."""

    values: Float[Array, "N w"]
    bounds: Float[Array, "2 3 1 p w"]
    first: Int[Array, "1 p w"]
    dims: Int[Array, "3 1 p w"]
    interpolation: str = eqx.field(static=True)

    def signed_distance(self, p: Vec3) -> Component:
        return distance_and_gradient(self, p)[0]

    def bounds_of(self) -> Bounds:
        return _box(self.bounds)


def _box(bounds: Float[Array, "2 3 *b"]) -> Bounds:
    return Bounds(Vec3.of((bounds[0] + bounds[1]) / 2), Vec3.of((bounds[1] - bounds[0]) / 2))


@distance_and_gradient.register
def _(shape: SdfGrid, p: Vec3) -> tuple[Component, Vec3]:
    dims = np.array(shape.values.shape, np.int32)
    lower, inverse_spacing = _lattice(shape.bounds, dims)
    return sample_grid(
        shape.values.reshape(-1), np.zeros((), np.int32), dims, lower, inverse_spacing, p, shape.interpolation
    )


@distance_and_gradient.register
def _(shape: SdfGrids, p: Vec3) -> tuple[Component, Vec3]:
    worlds = (1,) * (shape.bounds.ndim - 3)
    first, dims = (a.reshape(*a.shape, *worlds) for a in (shape.first.array, shape.dims.array))
    lower, inverse_spacing = _lattice(shape.bounds, dims)
    return sample_grid(shape.values, first, dims, lower, inverse_spacing, p, shape.interpolation)


@distance_and_gradient.register
def _(shape: SdfGridsOfPairs, p: Vec3) -> tuple[Component, Vec3]:
    lower, inverse_spacing = _lattice(shape.bounds, shape.dims)
    return sample_grid(shape.values, shape.first, shape.dims, lower, inverse_spacing, p, shape.interpolation)


def _lattice(bounds: Float[Array, "2 3 *b"], dims: Int[np.ndarray, "3 *b"]) -> tuple[Vec3, Vec3]:
    lower = bounds[0]
    return Vec3.of(lower), Vec3.of((dims - 1).astype(bounds.dtype) / (bounds[1] - lower))


def sample_grid(
    values: Float[Array, "N *w"],
    first: Int[np.ndarray, "*b"],
    dims: Int[np.ndarray, "3 *b"],
    lower: Vec3,
    inverse_spacing: Vec3,
    p: Vec3,
    interpolation: str = "trilinear",
) -> tuple[Component, Vec3]:
    """Signed distance [m] and its gradient in flat grids, which may differ from element to element of `p`.

    Differentiable in values, lattice and points, in both modes; the cell that a point lies in is held fixed.

    Args:
        values: nodes of all grids [m]; a second axis, if any, goes with the last axis of `p`.
        first: place of the first node of the grid to ask, broadcast against `p`.
        dims: nodes per axis, likewise, after the component axis.
        lower: lowest node [m].
        inverse_spacing: [1/m].
        p: points [m].
        interpolation: "trilinear" or "quadratic".
    """
    shape = np.broadcast_shapes(p.array.shape[1:], lower.array.shape[1:], np.shape(first), values.shape[1:])
    low, scale, nodes = (_aligned(a, len(shape), 1) for a in (lower.array, inverse_spacing.array, dims))
    last = (nodes - 1).astype(scale.dtype)
    u = jnp.broadcast_to((_aligned(p.array, len(shape), 1) - low) * scale, (3, *shape))  # in cells from the lowest node
    below, above = u < 0, u > last
    inside = jnp.where(below, 0.0, jnp.where(above, last, u))
    basis = _linear(inside, last) if interpolation == "trilinear" else _quadratic(inside, last)
    stride = (nodes[1] * nodes[2], nodes[2])
    x, y, z = basis.node
    node = _aligned(first, len(shape)) + x * stride[0] + y * stride[1] + z
    runs = _gather(values, node, stride, nodes_per_axis(interpolation))
    value, slope = _contract(runs, basis)
    far, direction = _norm_and_direction(Vec3.of((u - inside) / scale))
    gradient = jnp.where(below | above, direction.array, slope.array * scale)
    return value + far, Vec3.of(gradient)


def spline_coefficients(values: Float[Array, "nx ny nz"]) -> Float[Array, "nx ny nz"]:
    """Coefficients of the quadratic spline that takes these values at the nodes; at least three per axis.

    Distances that are themselves taken as coefficients are smoothed: by h^2/4r at the nodes about a sphere of radius
    r, on cells of edge h.
    """
    values = as_float_array(values)
    for axis, n in enumerate(values.shape):
        matrix = 0.75 * np.eye(n) + 0.125 * (np.eye(n, k=1) + np.eye(n, k=-1))
        matrix[0, :3] = matrix[-1, :-4:-1] = 1.125, -0.25, 0.125  # where the last piece goes on to the bounds
        inverse = jnp.asarray(np.linalg.inv(matrix), values.dtype)
        values = jnp.moveaxis(jnp.tensordot(inverse, values, axes=(1, axis)), 0, axis)
    return values


class _Basis(NamedTuple):
    """Basis functions at points: (k, 3, *b) weights and slopes of the k nodes per axis from `node` (3, *b) on."""

    node: Int[Array, "3 *b"]
    weight: Sequence[Float[Array, "3 *b"]]
    slope: Sequence[Float[Array, "3 *b"]]


def _linear(u: Float[Array, "3 *b"], last: Array) -> _Basis:
    cell = _clipped(jnp.floor(u), jnp.zeros_like(last), last - 1)
    t = u - cell
    one = jnp.ones_like(t)
    return _Basis(cell.astype(jnp.int32), (1 - t, t), (-one, one))


def _quadratic(u: Float[Array, "3 *b"], last: Array) -> _Basis:
    """The piece about the nearest node; up to the bounds, the piece about the last node but one goes on."""
    middle = _clipped(jnp.floor(u + 0.5), jnp.ones_like(last), last - 1)
    t = u - middle
    weight = (0.5 * (0.5 - t) ** 2, 0.75 - t * t, 0.5 * (0.5 + t) ** 2)
    return _Basis(middle.astype(jnp.int32) - 1, weight, (t - 0.5, -2 * t, t + 0.5))


def _clipped(index: Array, low: Array, high: Array) -> Array:
    # Comparisons that are false of NaN: a point that is none finds a node, and a NaN by its weight.
    index = lax.stop_gradient(index)
    return jnp.where(index > low, jnp.where(index < high, index, high), low)


def _gather(
    values: Float[Array, "N *w"], node: Int[Array, "*b"], stride: tuple[np.ndarray, np.ndarray], k: int
) -> list[list[Float[Array, "k *b"]]]:
    """Runs of k nodes along z from `node` on, k by k of them along x and y.

    k^2 slices, not k^3 elements, and no copy of the nodes packed cell by cell: docs/design_notes.md has the times.
    """
    table = values.reshape(len(values), -1)
    world = jnp.broadcast_to(jnp.arange(table.shape[1], dtype=node.dtype), node.shape or (1,)).reshape(node.shape)
    numbers = lax.GatherDimensionNumbers(offset_dims=(0,), collapsed_slice_dims=(1,), start_index_map=(0, 1))

    def run(i: int, j: int):
        start = jnp.stack([node + i * stride[0] + j * stride[1], world], axis=-1)
        return lax.gather(table, start, numbers, (k, 1), mode="promise_in_bounds")

    return [[run(i, j) for j in range(k)] for i in range(k)]


def _contract(runs: list[list[Array]], basis: _Basis) -> tuple[Component, Vec3]:
    """Value and slope per cell of the tensor product: along z, then y, then x."""
    (wx, wy, wz), (sx, sy, sz) = ([[b[axis] for b in of] for axis in range(3)] for of in (basis.weight, basis.slope))
    along_z = [[(_sum(run, wz), _sum(run, sz)) for run in row] for row in runs]
    along_y = []
    for row in along_z:
        value, slope = zip(*row)
        along_y.append((_sum(value, wy), _sum(value, sy), _sum(slope, wy)))
    value, slope_y, slope_z = zip(*along_y)
    return _sum(value, wx), Vec3(_sum(value, sx), _sum(slope_y, wx), _sum(slope_z, wx))


def _sum(values: Sequence[Array], weights: Sequence[Array]) -> Array:
    return sum((v * w for v, w in zip(values[1:], weights[1:])), values[0] * weights[0])


def _norm_and_direction(e: Vec3) -> tuple[Component, Vec3]:
    """Length and unit vector; both zero at zero, with zero derivative."""
    # Scaled by the largest component, so that no square underflows. The norm does not depend on that scale.
    x, y, z = lax.stop_gradient(jnp.abs(e.array))
    largest = jnp.maximum(jnp.maximum(x, y), z)
    beyond = largest > 0
    scale = jnp.where(beyond, largest, 1.0)
    unit = e / scale
    root = jnp.sqrt(jnp.where(beyond, dot(unit, unit), 1.0))
    return jnp.where(beyond, scale * root, 0.0), unit / root


def _aligned(leaf, ndim: int, components: int = 0):
    """An array with room for the leading ones of `ndim` trailing axes, behind its component axes."""
    shape = np.shape(leaf)
    axes = (1,) * (ndim + components - len(shape))
    return leaf.reshape((*shape[:components], *axes, *shape[components:]))
