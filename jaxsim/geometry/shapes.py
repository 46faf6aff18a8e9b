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
from jaxtyping import Array, Float, Int

from ..math.rows import Rows, take
from ..math.safe import safe_sqrt
from ..math.vector import Component, Vec3, dot, norm
from .bounds import Bounds
from .revolution import unit_capsule, unit_cylinder
from .surface import Surface, unit_cube, unit_icosphere


class AbstractShape(eqx.Module):
    """A solid in its own frame."""

    @abc.abstractmethod
    def signed_distance(self, p: Vec3) -> Component:
        """Signed distance [m] of points `p` [m] in the shape's frame, negative inside; element by element."""

    def for_pairs(self, rows: Rows) -> "AbstractShape":
        """Of solids stacked along the last axis but one, those of each pair: leaves (..., 1, pairs, worlds).

        The axis of length one is that of a pair's samples.
        """
        return jax.tree.map(lambda x: x[..., None, :, :], take(self, rows))

    @abc.abstractmethod
    def bounds_of(self) -> Bounds:
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

    def bounds_of(self) -> Bounds:
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
        return _length(p) - _same_rank(self.radius, p)

    def bounds_of(self) -> Bounds:
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

    def bounds_of(self) -> Bounds:
        return Bounds.about_origin(Vec3.of(self.half_extents))


class Capsule(AbstractShape):
    """Points within `radius` [m] of the segment |z| <= `half_length` [m]; both must be positive (ValueError)."""

    radius: Float[Array, "*b"]
    half_length: Float[Array, "*b"]

    def __init__(self, radius: Any, half_length: Any):
        self.radius, self.half_length = _radius_and_half_length("Capsule", radius, half_length)

    def signed_distance(self, p: Vec3) -> Component:
        """Distance to the surface; on the segment, where no direction is nearest, the gradient is (1, 0, 0)."""
        h = _same_rank(self.half_length, p)
        beyond = jnp.where(p.z > h, p.z - h, jnp.where(p.z < -h, p.z + h, 0.0))
        return _length(Vec3(p.x, p.y, beyond)) - _same_rank(self.radius, p)

    def bounds_of(self) -> Bounds:
        return Bounds.about_origin(Vec3(self.radius, self.radius, self.radius + self.half_length))


class Cylinder(AbstractShape):
    """The solid x^2 + y^2 <= radius^2, |z| <= half_length; both sizes [m] must be positive (ValueError)."""

    radius: Float[Array, "*b"]
    half_length: Float[Array, "*b"]

    def __init__(self, radius: Any, half_length: Any):
        self.radius, self.half_length = _radius_and_half_length("Cylinder", radius, half_length)

    def signed_distance(self, p: Vec3) -> Component:
        """Euclidean distance outside, minus the depth under the nearer of side and end inside.

        As in `Box.signed_distance`, selections keep the gradient a unit vector: the side wins over an end, the upper
        end over the lower one, and on the axis the side lies along x.
        """
        side = _length(Vec3(p.x, p.y, jnp.zeros_like(p.x))) - _same_rank(self.radius, p)
        end = _outward(p.z) - _same_rank(self.half_length, p)
        square = side * side + end * end
        past_rim = (side > 0) & (end > 0) & (square >= jnp.finfo(square.dtype).tiny)
        return jnp.where(past_rim, safe_sqrt(jnp.where(past_rim, square, 1.0)), jnp.where(side >= end, side, end))

    def bounds_of(self) -> Bounds:
        return Bounds.about_origin(Vec3(self.radius, self.radius, self.half_length))


@functools.singledispatch
def distance_and_gradient(shape: AbstractShape, p: Vec3) -> tuple[Component, Vec3]:
    """Signed distance [m] and its gradient, of one shape in the axes of the shape, for every element of `p`.

    Shapes with a gradient of their own register it. All others take one reverse sweep with a cotangent of ones: the
    distance of an element depends on that element alone.
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
        kind: `Box` (12 triangles at zero subdivisions), `Sphere` (320) or `Cylinder` (224).
        subdivisions: 0 or more, see `unit_cube`, `unit_icosphere` and `unit_cylinder`.

    Raises:
        ValueError: `kind` has no such surface; a `Capsule` has a `surface_basis`.
    """
    surfaces = {Box: unit_cube, Sphere: unit_icosphere, Cylinder: unit_cylinder}
    if kind not in surfaces:
        raise ValueError(f"{kind.__name__} has no surface of unit size: {_NO_SURFACE}")
    return surfaces[kind](subdivisions)


_NO_SURFACE = (
    "only Box, Sphere, Cylinder and, by its surface_basis, Capsule sample themselves. A Plane has no surface samples "
    "and must be static; a TriMesh brings its own vertices."
)


def surface_basis(
    kind: type[AbstractShape], subdivisions: int = 0
) -> tuple[Float[np.ndarray, "3 V 3"], Int[np.ndarray, "F 3"]]:
    """The vertices of a shape class per entry of its size, and its triangles: a surface is linear in its size.

    The vertices of one shape are sum_k size_of(shape)[k] * basis[k]. All but the capsule are unit surfaces stretched
    along the axes; a capsule keeps round ends at any length.

    Raises:
        ValueError: `kind` has no such surface, or `subdivisions` is negative.
    """
    if kind is Capsule:
        unit, height = unit_capsule(subdivisions)
    else:
        unit, height = unit_surface(kind, subdivisions), None
    basis = stretched(np.asarray(unit.vertices))
    if height is not None:
        basis = np.stack([basis[0] + basis[2], basis[1], height[:, None] * np.eye(3)[2]])
    return basis, unit.triangles


def stretched(vertices: Float[np.ndarray, "V 3"]) -> Float[np.ndarray, "3 V 3"]:
    """The basis of a surface whose three sizes stretch it along the axes."""
    return vertices.T[:, :, None] * np.eye(3)[:, None, :]


@functools.singledispatch
def size_of(shape: AbstractShape) -> Float[Array, "3 *b"]:
    """Three numbers [m] that the surface is linear in, see `surface_basis`.

    Half extents of a box, the radius three times of a sphere; radius, radius and half length of cylinder and capsule.
    """
    raise ValueError(f"{type(shape).__name__} has no size: {_NO_SURFACE}")


@size_of.register
def _(shape: Box) -> Float[Array, "3 *b"]:
    return shape.half_extents


@size_of.register
def _(shape: Sphere) -> Float[Array, "3 *b"]:
    return jnp.stack([shape.radius] * 3)


@size_of.register(Capsule)
@size_of.register(Cylinder)
def _(shape: Capsule | Cylinder) -> Float[Array, "3 *b"]:
    return jnp.stack([shape.radius, shape.radius, shape.half_length])


@functools.singledispatch
def surface_of(shape: AbstractShape, subdivisions: int = 0) -> Surface:
    """Triangulated surface [m] of one shape, differentiable in its size.

    Args:
        shape: a single shape, without trailing axes.
        subdivisions: 0 or more; makes a primitive's triangles finer.

    Raises:
        ValueError: the shape has no surface to sample.
    """
    size = size_of(shape)
    basis, triangles = surface_basis(type(shape), subdivisions)
    return Surface(jnp.einsum("k,kvc->vc", size, jnp.asarray(basis, size.dtype)), triangles)


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


def _length(p: Vec3) -> Component:
    # Within rounding of zero it becomes the x component, whose gradient is a unit vector.
    square = dot(p, p)
    off_center = square >= (10.0 * jnp.finfo(square.dtype).eps) ** 2
    return jnp.where(off_center, jnp.sqrt(jnp.where(off_center, square, 1.0)), p.x)


def _outward(c: Component) -> Component:
    return jnp.where(c >= 0, c, -c)


def _radius_and_half_length(shape: str, radius: Any, half_length: Any) -> tuple[Array, Array]:
    values = as_float_array(radius), as_float_array(half_length)
    for field, value in zip(("radius", "half_length"), values):
        if _is_single_value(value, 0):
            check_positive(f"{shape}.{field}", value)
    return values


def _check_leading_axis(field: str, value: Array) -> None:
    if value.ndim == 0 or value.shape[0] != 3:
        raise ValueError(f"{field} must have three components on its first axis; got shape {value.shape}.")


def _is_single_value(value: Array, ndim: int) -> bool:
    # Traced values cannot be read, and batched ones are made by the model from shapes already checked.
    return value.ndim == ndim and not isinstance(value, Tracer)
