"""Analytic shapes: the signed distance is the definition, its gradient follows by autodiff.

Leaves put their components first and may carry trailing axes (body, world): a `Box` may hold half extents (3, P, W)
and is then asked with points whose components broadcast against (P, W).
"""

import abc
import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ..math.rows import Rows, take
from ..math.safe import safe_sqrt
from ..math.vector import Component, Vec3, dot, norm
from .bounds import Bounds
from .surface import Surface, unit_cube, unit_icosphere


class AbstractShape(eqx.Module):
    """A solid in its own frame."""

    @abc.abstractmethod
    def signed_distance(self, p: Vec3) -> Component:
        """Signed distance [m] of points `p` [m] in the shape's frame, negative inside; element by element."""

    def rows(self, rows: Rows) -> "AbstractShape":
        """The solids of some rows of the last axis but one, for pairs."""
        return take(self, rows)

    @abc.abstractmethod
    def bounds(self) -> Bounds:
        """Box about each solid in its own frame, for the broad phase; ValueError for one without end."""


class Plane(AbstractShape):
    """The half space n . x <= offset.

    Args:
        normal: direction out of the solid, of any positive length: it is stored at unit length.
        offset: distance [m] of the surface from the origin along the unit normal.

    Raises:
        ValueError: the normal is zero or not finite, or the offset is not finite.
    """

    normal: Float[Array, "3 *b"]
    offset: Float[Array, "*b"]

    def __init__(self, normal: Any = (0.0, 0.0, 1.0), offset: Any = 0.0):
        normal = as_float_array(normal)
        _check_leading_axis("Plane.normal", normal)
        if _is_single_value(normal, 1) and not (jnp.all(jnp.isfinite(normal)) and jnp.any(normal != 0)):
            raise ValueError(f"Plane.normal must be finite and not zero; got {normal}. Give e.g. (0, 0, 1).")
        self.normal = normal / norm(Vec3.of(normal))[None]
        self.offset = as_float_array(offset)
        if _is_single_value(self.offset, 0) and not jnp.isfinite(self.offset):
            raise ValueError(f"Plane.offset must be finite; got {self.offset}. Give metres along the normal.")

    def signed_distance(self, p: Vec3) -> Component:
        return dot(_components(self.normal, p), p) - _same_rank(self.offset, p)

    def bounds(self) -> Bounds:
        raise ValueError("a Plane has no bounds: it is near to everything")


class Sphere(AbstractShape):
    """A ball about the origin; `radius` [m] must be positive (ValueError)."""

    radius: Float[Array, "*b"]

    def __init__(self, radius: Any):
        self.radius = as_float_array(radius)
        if _is_single_value(self.radius, 0):
            check_positive("Sphere.radius", self.radius)

    def signed_distance(self, p: Vec3) -> Component:
        """Distance to the surface; at the centre, where no direction is nearest, the gradient is (1, 0, 0)."""
        square = dot(p, p)
        off_center = square >= (10.0 * jnp.finfo(square.dtype).eps) ** 2
        return jnp.where(off_center, jnp.sqrt(jnp.where(off_center, square, 1.0)), p.x) - _same_rank(self.radius, p)

    def bounds(self) -> Bounds:
        return Bounds.about_origin(Vec3(self.radius, self.radius, self.radius))


class Box(AbstractShape):
    """A box about the origin, edges along the axes; the three `half_extents` [m] must be positive (ValueError)."""

    half_extents: Float[Array, "3 *b"]

    def __init__(self, half_extents: Any):
        self.half_extents = as_float_array(half_extents)
        _check_leading_axis("Box.half_extents", self.half_extents)
        if _is_single_value(self.half_extents, 1):
            check_positive("Box.half_extents", self.half_extents)

    def signed_distance(self, p: Vec3) -> Component:
        """Euclidean distance outside, minus the depth under the nearest face inside.

        Selections, not `abs` and `max`, since JAX splits the gradient of those between tied faces: here x wins over y
        over z, and the positive face over the negative one, so that the gradient is a unit vector everywhere.
        """
        h = _components(self.half_extents, p)
        x, y, z = _outward(p.x) - h.x, _outward(p.y) - h.y, _outward(p.z) - h.z
        nearest = jnp.where((x >= y) & (x >= z), x, jnp.where(y >= z, y, z))
        # Past a single face that is also the outside distance, and an exactly flat one. Only past two faces or three is
        # a root needed; squares that underflow count as on the edge.
        past_edge = ((x > 0) & (y > 0)) | ((x > 0) & (z > 0)) | ((y > 0) & (z > 0))
        beyond = Vec3(x, y, z).map(lambda d: jnp.where(d > 0, d, 0.0))
        square = dot(beyond, beyond)
        past_edge &= square >= jnp.finfo(square.dtype).tiny
        return jnp.where(past_edge, safe_sqrt(jnp.where(past_edge, square, 1.0)), nearest)

    def bounds(self) -> Bounds:
        return Bounds.about_origin(Vec3.of(self.half_extents))


def distance_and_gradient(shape: AbstractShape, p: Vec3) -> tuple[Component, Vec3]:
    """Signed distance [m] and its gradient, of one shape in the axes of the shape, for every element of `p`.

    One reverse sweep with a cotangent of ones: the distance of an element depends on that element alone.
    """
    shape_of_result = jax.eval_shape(shape.signed_distance, p).shape
    # A component that is broadcast against the leaves would have its gradient summed over them.
    p = p.map(lambda c: jnp.broadcast_to(c, (3, *shape_of_result)))
    distance, pull = jax.vjp(shape.signed_distance, p)
    (gradient,) = pull(jnp.ones_like(distance))
    return distance, gradient


def unit_surface(kind: type[AbstractShape], subdivisions: int = 0) -> Surface:
    """Surface of a shape class at size one, as NumPy; times `size_of(shape)` it is the shape's own, at any size.

    Args:
        kind: `Box` (12 triangles at zero subdivisions) or `Sphere` (320).
        subdivisions: 0 or more, see `unit_cube` and `unit_icosphere`.

    Raises:
        ValueError: `kind` has no such surface.
    """
    surfaces = {Box: unit_cube, Sphere: unit_icosphere}
    if kind not in surfaces:
        raise ValueError(f"{kind.__name__} has no surface of unit size: {_NO_SURFACE}")
    return surfaces[kind](subdivisions)


_NO_SURFACE = (
    "only Box and Sphere sample themselves. A Plane has no surface samples and must be static; "
    "a TriMesh brings its own vertices."
)


@functools.singledispatch
def size_of(shape: AbstractShape) -> Float[Array, "3 *b"]:
    """Factors [m] from the unit surface to that of the shape: half extents, or the radius three times."""
    raise ValueError(f"{type(shape).__name__} has no size: {_NO_SURFACE}")


@size_of.register
def _(shape: Box) -> Float[Array, "3 *b"]:
    return shape.half_extents


@size_of.register
def _(shape: Sphere) -> Float[Array, "3 *b"]:
    return jnp.stack([shape.radius] * 3)


@functools.singledispatch
def surface_of(shape: AbstractShape, subdivisions: int = 0) -> Surface:
    """Triangulated surface [m] of one shape, differentiable in its size.

    Args:
        shape: a single shape, without trailing axes.
        subdivisions: 0 or more; makes a primitive's triangles finer.

    Raises:
        ValueError: the shape has no surface to sample.
    """
    unit, size = unit_surface(type(shape), subdivisions), size_of(shape)
    return Surface(jnp.asarray(unit.vertices, size.dtype) * size[None], unit.triangles)


def as_float_array(value: Any) -> Array:
    """A strongly typed floating array: its own dtype if it has a floating one, else JAX's default."""
    dtype = getattr(value, "dtype", None)
    floating = dtype is not None and jnp.issubdtype(dtype, jnp.floating)
    return jnp.asarray(value, dtype=jax.dtypes.canonicalize_dtype(dtype if floating else float))


def check_positive(field: str, value: Array) -> None:
    """ValueError naming `field` unless every entry is finite and positive."""
    if not np.all(np.isfinite(value) & (np.asarray(value) > 0)):
        raise ValueError(f"{field} must be finite and positive [m]; got {value}. Sizes are half extents and radii.")


def _components(leaf: Float[Array, "3 *b"], p: Vec3) -> Vec3:
    return Vec3.of(jnp.stack([_same_rank(c, p) for c in leaf]))


def _same_rank(leaf: Component, p: Vec3) -> Component:
    # Spelled out, for users (and our tests) who forbid broadcasting between ranks.
    return leaf[(None,) * (jnp.ndim(p.x) - leaf.ndim)]


def _outward(c: Component) -> Component:
    return jnp.where(c >= 0, c, -c)


def _check_leading_axis(field: str, value: Array) -> None:
    if value.ndim == 0 or value.shape[0] != 3:
        raise ValueError(f"{field} must have three components on its first axis; got shape {value.shape}.")


def _is_single_value(value: Array, ndim: int) -> bool:
    # Traced values cannot be read, and batched ones are made by the model from shapes already checked.
    return value.ndim == ndim and not isinstance(value, Tracer)
