"""The scene builder: collects actors, checks them once, and compiles them into a `Model` and a `State`."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..contact.overrides import OVERRIDABLE
from ..contact.params import ColliderType, ContactParams
from ..geometry.mass import check_mass_properties, mass_properties
from ..geometry.sdf_build import GridSdfParams
from ..geometry.sdf_grid import SdfGrid
from ..geometry.shapes import AbstractShape, Box, Capsule, Cylinder, Plane, Sphere
from ..geometry.subsampling import BoundarySubsampling
from .compile import compile_scene
from .filters import ContactFilter, switch
from .model import Actor, Model
from .spec import RigidSpec
from .state import State

_COLLIDERS = {
    Plane: ColliderType.PLANE,
    Sphere: ColliderType.SPHERE,
    Box: ColliderType.BOX,
    Capsule: ColliderType.CAPSULE,
    Cylinder: ColliderType.CYLINDER,
}


class Scene:
    """Collects the actors of a world.

    Args:
        gravity: [m/s^2], any direction; z is up by default.

    Every `add_*` checks what it is given and raises one ValueError that names the actor, the field, the value and the
    remedy. Actors are numbered in the order of creation.
    """

    def __init__(self, gravity=(0.0, 0.0, -9.81)):
        self.gravity = _finite("scene", "gravity", gravity, (3,))
        self._specs: list[RigidSpec] = []
        self._filter = ContactFilter()
        self._overrides: dict[frozenset[str], dict[str, float]] = {}

    def add_plane(
        self,
        normal=(0.0, 0.0, 1.0),
        offset: float = 0.0,
        contact: ContactParams | None = None,
        layer: str = "default",
        name: str | None = None,
    ) -> Actor:
        """A static half space below the plane `normal . x = offset` [m]; the normal need not be of unit length."""
        return self.add_rigid(Plane(normal, offset), static=True, contact=contact, layer=layer, name=name)

    def add_rigid(
        self,
        shape: AbstractShape,
        density: float | None = None,
        mass: float | None = None,
        center_of_mass=None,
        moment_of_inertia=None,
        position=(0.0, 0.0, 0.0),
        quaternion=(0.0, 0.0, 0.0, 1.0),
        linear_velocity=(0.0, 0.0, 0.0),
        angular_velocity=(0.0, 0.0, 0.0),
        contact: ContactParams | None = None,
        collider: ColliderType = ColliderType.AUTO,
        sdf: SdfGrid | GridSdfParams | None = None,
        point_cloud_radius: float = 0.01,
        quadrature: str = "P1Q3",
        subdivisions: int = 0,
        subsampling: BoundarySubsampling | None = None,
        layer: str = "default",
        static: bool = False,
        has_gravity: bool = True,
        newton_euler_inertia: bool = False,
        name: str | None = None,
    ) -> Actor:
        """A rigid body; static ones are colliders that only the user moves.

        Args:
            density: [kg/m^3]; 1000 when neither it nor `mass` is given. `mass` [kg] wins over it.
            center_of_mass: [m], in the root frame (the frame of the shape); needs `moment_of_inertia` beside it.
            moment_of_inertia: about the COM, root axes, `[ixx, ixy, ixz, iyy, iyz, izz]` with tensor signs [kg m^2].
            position, quaternion: world pose of the root frame [m], xyzw.
            linear_velocity, angular_velocity: of the COM [m/s] and [rad/s], world axes.
            collider: what others are tested against; AUTO takes it from the shape.
            sdf: the grid of an SDF collider, or how fine one is built; by default as the reference engine builds it.
            point_cloud_radius: of the balls of a POINT_CLOUD collider [m].
            quadrature: samples per surface triangle, "P1Q1" to "P1Q16"; `subdivisions` makes a primitive finer.
            subsampling: keep only a random part of the samples, for speed on fine meshes; all when None.
            newton_euler_inertia: the Newton-Euler form of rotational inertia instead of the variational one.
        """
        name = self._name(name, type(shape).__name__.lower() if isinstance(shape, AbstractShape) else "rigid")
        if not isinstance(shape, AbstractShape):
            raise ValueError(
                f"actor {name!r}: shape must be a Box, Sphere, Capsule, Cylinder, Plane, TriMesh or SdfGrid; "
                f"got {shape!r}"
            )
        if isinstance(shape, Plane) and not static:
            raise ValueError(f"actor {name!r}: a Plane has no surface or mass; pass static=True or use add_plane")
        if isinstance(shape, SdfGrid) and not static:
            raise ValueError(
                f"actor {name!r}: an SdfGrid has no surface samples or mass; pass static=True, or add a TriMesh with "
                "the grid as sdf="
            )
        if sdf is not None and not isinstance(sdf, SdfGrid | GridSdfParams):
            raise ValueError(f"actor {name!r}: sdf must be an SdfGrid or GridSdfParams; got {sdf!r}")
        if subsampling is not None and not isinstance(subsampling, BoundarySubsampling):
            raise ValueError(f"actor {name!r}: subsampling must be a BoundarySubsampling; got {subsampling!r}")
        if not (np.ndim(point_cloud_radius) == 0 and np.isfinite(point_cloud_radius) and point_cloud_radius > 0):
            raise ValueError(f"actor {name!r}: point_cloud_radius must be positive [m]; got {point_cloud_radius}")
        contact = ContactParams() if contact is None else contact
        _check_contact(name, contact)
        spec = RigidSpec(
            name=name,
            shape=shape,
            static=static,
            position=_finite(name, "position", position, (3,)),
            quaternion=_unit_quaternion(name, quaternion),
            linear_velocity=_finite(name, "linear_velocity", linear_velocity, (3,)),
            angular_velocity=_finite(name, "angular_velocity", angular_velocity, (3,)),
            contact=contact,
            collider=_resolve_collider(name, shape, collider),
            sdf=sdf,
            point_cloud_radius=point_cloud_radius,
            quadrature=quadrature,
            subdivisions=subdivisions,
            subsampling=subsampling,
            layer=layer,
            gravity_scale=1.0 if has_gravity else 0.0,
            newton_euler=newton_euler_inertia,
            mass_properties=() if static else _mass(name, shape, density, mass, center_of_mass, moment_of_inertia),
        )
        if static and (np.any(spec.linear_velocity) or np.any(spec.angular_velocity)):
            raise ValueError(
                f"actor {name!r}: a static actor has no velocity; leave it zero and use Control.static_velocity"
            )
        spec.check_quadrature()
        self._specs.append(spec)
        return Actor(name, len(self._specs) - 1)

    def disable_contact(self, a: Actor | str, b: Actor | str, one_way: bool = False) -> None:
        """No contact between two actors.

        Args:
            one_way: only samples of `a` stop being tested against the collider of `b`.
        """
        switch(self._filter.actors, self._known(a), self._known(b), False, one_way)

    def enable_contact(self, a: Actor | str, b: Actor | str, one_way: bool = False) -> None:
        """Undo `disable_contact`. It cannot undo `disable_layer_contact`: both levels have to allow a pair."""
        switch(self._filter.actors, self._known(a), self._known(b), True, one_way)

    def disable_layer_contact(self, a: str, b: str, one_way: bool = False) -> None:
        """No contact between actors of two layers (or of one, when they are the same); layers come into being by name.

        Args:
            one_way: only samples of actors in `a` stop being tested against colliders in `b`.
        """
        switch(self._filter.layers, a, b, False, one_way)

    def enable_layer_contact(self, a: str, b: str, one_way: bool = False) -> None:
        """Undo `disable_layer_contact`."""
        switch(self._filter.layers, a, b, True, one_way)

    def override_pair(self, a: Actor | str, b: Actor | str, **values: float) -> None:
        """Contact parameters that hold between two actors, in both directions, in place of the combined ones.

        Fields: penalty_coefficient, coulomb_friction_coefficient, friction_falloff_vel, viscous_friction_coefficient,
        normal_viscous_damping_coefficient. See `pair_parameters` for what a pair ends up with.
        """
        pair = frozenset((self._known(a), self._known(b)))
        who = " and ".join(repr(name) for name in sorted(pair))
        if len(pair) != 2:
            raise ValueError(f"override_pair: an actor does not touch itself; got {who} twice")
        for field, value in values.items():
            if field not in OVERRIDABLE:
                raise ValueError(f"override_pair of {who}: no field {field!r}; known are {', '.join(OVERRIDABLE)}")
            if not (np.ndim(value) == 0 and np.isfinite(value) and value >= 0):
                raise ValueError(f"override_pair of {who}: {field} must be one finite number >= 0; got {value}")
            if field == "friction_falloff_vel" and not value > 0:
                raise ValueError(f"override_pair of {who}: friction_falloff_vel must be positive; got {value}")
        self._overrides.setdefault(pair, {}).update(values)

    def _known(self, actor: Actor | str) -> str:
        """Name of an actor of this scene."""
        name = actor if isinstance(actor, str) else actor.name
        names = [s.name for s in self._specs]
        if name not in names or (not isinstance(actor, str) and names.index(name) != actor.index):
            raise ValueError(f"no actor {actor!r} in this scene; it has {', '.join(map(repr, names)) or 'none'}")
        return name

    def build(
        self, dtype: Any = None, contact_capacity: int = 12, sample_capacity: int | None = None
    ) -> tuple[Model, State]:
        """The model and its initial state.

        Args:
            dtype: float32 or float64; JAX's default float when None.
            contact_capacity: colliders of one kind that a body can be near to at the same time. Where a scene holds
                more, each step looks for the nearest; `report.overflow` tells when there were more than fit.
            sample_capacity: samples of a body that are tested against one collider in a step, the nearest ones; all of
                them when None. On fine surfaces few suffice; `report.overflow` tells when others could have touched.
                With a POINT_CLOUD collider it counts pairs of a sample and a point.
        """
        dtype = jnp.dtype(jax.dtypes.canonicalize_dtype(float if dtype is None else dtype))
        if dtype not in (jnp.dtype(jnp.float32), jnp.dtype(jnp.float64)):
            raise ValueError(f"scene: dtype must be float32 or float64; got {dtype}")
        if contact_capacity != int(contact_capacity) or contact_capacity < 1:
            raise ValueError(f"scene: contact_capacity must be a whole number >= 1; got {contact_capacity}")
        if sample_capacity is not None and (sample_capacity != int(sample_capacity) or sample_capacity < 1):
            raise ValueError(f"scene: sample_capacity must be a whole number >= 1, or None; got {sample_capacity}")
        slots = None if sample_capacity is None else int(sample_capacity)
        return compile_scene(
            self.gravity, self._specs, dtype, int(contact_capacity), slots, self._filter, self._overrides
        )

    def _name(self, name: str | None, kind: str) -> str:
        taken = {s.name for s in self._specs}
        if name is None:
            return next(n for n in (f"{kind}{i}" for i in range(len(taken) + 1)) if n not in taken)
        if name in taken:
            raise ValueError(f"actor {name!r}: the name is taken; names must be unique in a scene")
        return name


def _mass(name: str, shape, density, mass, center_of_mass, moment_of_inertia):
    for field, value in (("mass", mass), ("density", density)):
        if value is not None and not (np.ndim(value) == 0 and np.isfinite(value) and value > 0):
            raise ValueError(f"actor {name!r}: {field} must be a positive, finite number; got {value}")
    if moment_of_inertia is not None and mass is not None and center_of_mass is not None:
        properties = (mass, center_of_mass, moment_of_inertia)
    else:
        by_mass = mass is not None
        try:
            whole = mass_properties(shape, mass=mass) if by_mass else mass_properties(shape, density=density or 1000.0)
        except ValueError as e:
            raise ValueError(f"actor {name!r}: {e}") from None
        if center_of_mass is not None and moment_of_inertia is None:
            raise ValueError(
                f"actor {name!r}: center_of_mass={center_of_mass} without moment_of_inertia: the shape's own "
                "inertia is about its centroid; give the inertia about the centre of mass too"
            )
        properties = (
            whole.mass,
            whole.center_of_mass if center_of_mass is None else center_of_mass,
            whole.moment_of_inertia if moment_of_inertia is None else moment_of_inertia,
        )
    mass_, com, inertia = (np.asarray(p, float) for p in properties)
    for field, value, shape_ in (("center_of_mass", com, (3,)), ("moment_of_inertia", inertia, (6,))):
        if value.shape != shape_:
            raise ValueError(f"actor {name!r}: {field} must have shape {shape_}; got {value.shape}")
    check_mass_properties(name, mass_, com, inertia)
    return mass_, com, inertia


def _resolve_collider(name: str, shape: AbstractShape, collider: ColliderType) -> ColliderType:
    if collider is ColliderType.AUTO:
        collider = _COLLIDERS.get(type(shape), ColliderType.SDF)
    # A box, a ball, a grid, triangles or samples may stand in for a finite body; an exact shape only for its own.
    stand_ins = {ColliderType.SDF: not isinstance(shape, Plane)}
    surfaced = (ColliderType.BOX, ColliderType.SPHERE, ColliderType.MESH, ColliderType.POINT_CLOUD)
    stand_ins |= dict.fromkeys(surfaced, not isinstance(shape, Plane | SdfGrid))
    own = _COLLIDERS.get(type(shape))
    if not (collider in (own, ColliderType.NONE) or stand_ins.get(collider, False)):
        raise ValueError(f"actor {name!r}: collider {collider.name} does not fit a {type(shape).__name__}")
    return collider


def _check_contact(name: str, contact: ContactParams) -> None:
    if not isinstance(contact, ContactParams):
        raise ValueError(f"actor {name!r}: contact must be a ContactParams; got {contact!r}")
    for field, value in vars(contact).items():
        if field == "friction_with_collider_normal":
            continue
        value = np.asarray(value)
        if value.shape != () or not np.isfinite(value):
            raise ValueError(f"actor {name!r}: contact.{field} must be one finite number; got {value}")
        signed = field in ("penalty_threshold_default", "max_alignment_normals", "penalty_threshold_extra_padding")
        if not signed and value < 0:
            raise ValueError(f"actor {name!r}: contact.{field} must not be negative; got {value}")
    if not contact.friction_falloff_vel > 0:
        raise ValueError(
            f"actor {name!r}: contact.friction_falloff_vel must be positive, it rounds friction at rest; "
            f"got {contact.friction_falloff_vel}"
        )


def _finite(name: str, field: str, value, shape: tuple[int, ...]) -> np.ndarray:
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        raise ValueError(f"actor {name!r}: {field} must be numbers of shape {shape}; got {value!r}") from None
    if array.shape != shape:
        raise ValueError(f"actor {name!r}: {field} must have shape {shape}; got shape {array.shape}")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"actor {name!r}: {field} must be finite; got {value}")
    return array


def _unit_quaternion(name: str, value) -> np.ndarray:
    q = _finite(name, "quaternion", value, (4,))
    length = np.linalg.norm(q)
    if abs(length - 1.0) > 1e-4:
        raise ValueError(
            f"actor {name!r}: quaternion must have unit length (order xyzw, identity (0, 0, 0, 1)); "
            f"got {value} of length {length:.6g}: normalise it or use jaxsim.rotation"
        )
    return q / length
