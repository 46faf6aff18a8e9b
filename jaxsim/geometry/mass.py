"""Mass, centre of mass and inertia of solids, and the bookkeeping of inertia tensors.

An inertia is six numbers `[ixx, ixy, ixz, iyy, iyz, izz]` [kg m^2] with the signs of the tensor (ixy = -sum m x y),
components on the first axis.
"""

import functools
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ..math.quaternion import Quaternion
from ..math.vector import Mat3, Vec3, add_to_diagonal, dot, outer
from .shapes import AbstractShape, Box, Capsule, Cylinder, Sphere, as_float_array
from .surface import Surface, boundary_edges

Solid = AbstractShape | Surface


class MassProperties(eqx.Module):
    """What Newton and Euler need to know of a rigid body."""

    mass: Float[Array, "*b"]  # [kg]
    center_of_mass: Float[Array, "3 *b"]  # [m], in the shape's frame
    moment_of_inertia: Float[Array, "6 *b"]  # [kg m^2], about the centre of mass, in the shape's axes


def mass_properties(
    solid: Solid, *, density: Float[Array, "*b"] | float | None = None, mass: Float[Array, "*b"] | float | None = None
) -> MassProperties:
    """Mass properties of a homogeneous solid, exact and differentiable in its size or vertices.

    Args:
        solid: a `Box`, `Sphere`, `Cylinder` or `Capsule`, or a closed triangle surface.
        density: [kg/m^3].
        mass: [kg]; wins over `density`.

    Returns:
        Numbers in the precision of the solid.

    Raises:
        ValueError: neither is given, the shape encloses no volume, or its surface is open or turned inside out.
    """
    if density is None and mass is None:
        raise ValueError(f"mass_properties of {type(solid).__name__} needs density [kg/m^3] or mass [kg]; got neither.")
    volume, center, specific_inertia = volume_properties(solid)
    total = volume * jnp.asarray(density, volume.dtype) if mass is None else jnp.asarray(mass, volume.dtype)
    return MassProperties(total, center, jnp.stack([i * total for i in specific_inertia]))


@functools.singledispatch
def volume_properties(solid: Solid) -> tuple[Float[Array, "*b"], Float[Array, "3 *b"], Float[Array, "6 *b"]]:
    """Volume [m^3], centroid [m] and inertia about it per unit of mass [m^2].

    Raises:
        ValueError: see `mass_properties`.
    """
    raise ValueError(
        f"{type(solid).__name__} encloses no known volume; make the actor static, or give mass, center_of_mass and "
        "moment_of_inertia."
    )


@volume_properties.register
def _(solid: Box):
    h = solid.half_extents
    x, y, z = h * h / 3.0
    zero = jnp.zeros_like(x)
    return 8.0 * h[0] * h[1] * h[2], jnp.zeros_like(h), jnp.stack([y + z, zero, zero, x + z, zero, x + y])


@volume_properties.register
def _(solid: Sphere):
    r = solid.radius
    zero = jnp.zeros_like(r)
    i = 0.4 * r * r
    return 4.0 / 3.0 * jnp.pi * r**3, jnp.stack([zero] * 3), jnp.stack([i, zero, zero, i, zero, i])


@volume_properties.register
def _(solid: Cylinder):
    r, h = solid.radius, solid.half_length
    across, along = 0.25 * r * r + h * h / 3.0, 0.5 * r * r
    return 2.0 * jnp.pi * r * r * h, *_about_z(across, along)


@volume_properties.register
def _(solid: Capsule):
    """A cylinder between two half balls, whose centroids lie 3/8 of the radius beyond its ends."""
    r, h = solid.radius, solid.half_length
    barrel, ball = 2.0 * jnp.pi * r * r * h, 4.0 / 3.0 * jnp.pi * r**3
    across = barrel * (0.25 * r * r + h * h / 3.0) + ball * (0.4 * r * r + h * h + 0.75 * h * r)
    along = barrel * 0.5 * r * r + ball * 0.4 * r * r
    volume = barrel + ball
    return volume, *_about_z(across / volume, along / volume)


def _about_z(across: Float[Array, "*b"], along: Float[Array, "*b"]):
    """Centroid and inertia of a solid that is symmetric about z and about z = 0."""
    zero = jnp.zeros_like(along)
    return jnp.stack([zero] * 3), jnp.stack([across, zero, zero, across, zero, along])


@volume_properties.register
def _(solid: Surface):
    """Signed tetrahedra from a common apex to every triangle: the divergence theorem with exact integrals.

    Source: Eberly (2002), Polyhedral Mass Properties (Revisited); here about an apex inside, against cancellation.
    """
    open_edges = boundary_edges(solid.triangles)
    if len(open_edges):
        raise ValueError(
            f"the surface is not closed, or its triangles are not wound alike: {len(open_edges)} edges lack a partner, "
            f"the first between vertices {open_edges[0].tolist()}, so it encloses no volume. Give mass, center_of_mass "
            "and moment_of_inertia, or close the mesh."
        )
    # Known vertices are summed by NumPy: JAX would compile each of these operations anew for every size of mesh.
    known = not isinstance(solid.vertices, Tracer)
    xp: Any = np if known else jnp
    vertices = xp.asarray(solid.vertices)
    apex = xp.mean(vertices, axis=0)
    a, b, c = (vertices - apex[None])[solid.triangles].transpose(1, 0, 2)
    six_volumes = xp.sum(a * xp.cross(b, c), axis=-1)
    volume = xp.sum(six_volumes) / 6.0
    if known and not volume > 0:
        raise ValueError(
            f"the surface encloses the volume {volume} m^3: wind its triangles anticlockwise seen from outside."
        )
    total = a + b + c
    first = six_volumes @ total / 24.0
    second = sum(xp.einsum("f,fi,fj->ij", six_volumes, p, p, optimize=True) for p in (a, b, c, total)) / 120.0
    center = first / volume
    covariance = second / volume - xp.outer(center, center)
    inertia = xp.trace(covariance) * xp.eye(3, dtype=vertices.dtype) - covariance
    return jnp.asarray(volume), jnp.asarray(apex + center), inertia_six(inertia)


def inertia_matrix(six: Float[Array, "6 *b"]) -> Float[Array, "3 3 *b"]:
    """The symmetric tensor of `[xx, xy, xz, yy, yz, zz]`."""
    return Mat3.symmetric(jnp.asarray(six)).stack()


def inertia_six(matrix: Float[Array, "3 3 *b"]) -> Float[Array, "6 *b"]:
    """`[xx, xy, xz, yy, yz, zz]` of a symmetric tensor."""
    m = jnp.asarray(matrix)
    return jnp.stack([m[0, 0], m[0, 1], m[0, 2], m[1, 1], m[1, 2], m[2, 2]])


def translate_inertia(
    six: Float[Array, "6 *b"], mass: Float[Array, "*b"], offset: Float[Array, "3 *b"]
) -> Float[Array, "6 *b"]:
    """Inertia about a point, from the inertia about the centre of mass (parallel axis theorem).

    Args:
        six: about the centre of mass [kg m^2].
        mass: [kg].
        offset: vector between centre of mass and point [m], either way round.
    """
    return jnp.asarray(six) + _point_mass_inertia(mass, offset)


def translate_inertia_to_center(
    six: Float[Array, "6 *b"], mass: Float[Array, "*b"], offset: Float[Array, "3 *b"]
) -> Float[Array, "6 *b"]:
    """Inertia about the centre of mass, from the inertia about a point; the inverse of `translate_inertia`."""
    return jnp.asarray(six) - _point_mass_inertia(mass, offset)


def _point_mass_inertia(mass: Float[Array, "*b"], offset: Float[Array, "3 *b"]) -> Float[Array, "6 *b"]:
    d = Vec3.of(jnp.asarray(offset))
    return inertia_six((add_to_diagonal(-outer(d, d), dot(d, d)) * mass).stack())


def rotate_inertia(six: Float[Array, "6 *b"], quaternion: Float[Array, "4 *b"]) -> Float[Array, "6 *b"]:
    """R I R^T: the inertia in the axes that the unit quaternion (xyzw) carries the present ones from."""
    rotation = Quaternion.of(jnp.asarray(quaternion)).matrix()
    return inertia_six((rotation @ Mat3.symmetric(jnp.asarray(six)) @ rotation.T).stack())


def inertia_from_cad_products(
    *,
    ixx: Float[Array, "*b"] | float,
    iyy: Float[Array, "*b"] | float,
    izz: Float[Array, "*b"] | float,
    pxy: Float[Array, "*b"] | float,
    pxz: Float[Array, "*b"] | float,
    pyz: Float[Array, "*b"] | float,
) -> Float[Array, "6 *b"]:
    """Inertia with tensor signs, from CAD programs that list moments and positive products (pxy = +sum m x y)."""
    return jnp.stack([as_float_array(i) for i in (ixx, -pxy, -pxz, iyy, -pyz, izz)])


_TRIANGLE_TOLERANCE = 1e-6  # relative; leaves room for single precision and for files with seven digits


def check_mass_properties(
    actor_name: str,
    mass: Float[np.ndarray, ""] | float,
    center_of_mass: Float[np.ndarray, "3"],
    moment_of_inertia: Float[np.ndarray, "6"],
) -> None:
    """Refuse numbers that no rigid body can have.

    Args:
        actor_name: named in the message.
        mass: [kg].
        center_of_mass: [m].
        moment_of_inertia: about the centre of mass [kg m^2].

    Raises:
        ValueError: a value is not finite, the mass is not positive, a principal moment is negative, or one exceeds the
            sum of the other two. Names actor, field, value and remedy.
    """
    fields = {
        "mass": (mass, ()),
        "center_of_mass": (center_of_mass, (3,)),
        "moment_of_inertia": (moment_of_inertia, (6,)),
    }
    for field, (value, shape) in fields.items():
        if np.shape(value) != shape or not np.all(np.isfinite(value)):
            raise ValueError(
                f"actor '{actor_name}': {field} must be finite and of shape {shape}; got {value}. Check its source, "
                "or leave it out and give a density."
            )
    if mass <= 0:
        raise ValueError(f"actor '{actor_name}': mass must be positive; got {mass} kg. Give a mass, or static=True.")
    a, b, c = np.linalg.eigvalsh(np.asarray(inertia_matrix(jnp.asarray(moment_of_inertia)), np.float64))
    tolerance = _TRIANGLE_TOLERANCE * max(abs(a), abs(c))
    shown = f"principal moments {a:.6g}, {b:.6g}, {c:.6g} kg m^2"
    if a < -tolerance:
        raise ValueError(
            f"actor '{actor_name}': moment_of_inertia {moment_of_inertia} has negative {shown}. Check the order [ixx, "
            "ixy, ixz, iyy, iyz, izz] and the signs (CAD products: inertia_from_cad_products)."
        )
    if c > a + b + tolerance:
        raise ValueError(
            f"actor '{actor_name}': moment_of_inertia {moment_of_inertia} has {shown}, the largest above the sum of "
            "the others, which no mass distribution has. Check that it is about the center of mass (if not, "
            "translate_inertia_to_center), its units and its order."
        )
