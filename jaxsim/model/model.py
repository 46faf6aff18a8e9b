"""The compiled form of a scene: static topology, and an array leaf for every physical number."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..contact.overrides import PairOverrides
from ..contact.params import ColliderType, ContactParams
from ..geometry.quadrature import SurfaceSamples
from ..geometry.shapes import AbstractShape
from ..geometry.static_array import StaticArray
from ..geometry.subsampling import SampleSubset


@dataclasses.dataclass(frozen=True)
class Actor:
    """Handle of an actor of a scene: what `Scene.add_*` returns and every query takes."""

    name: str
    index: int  # in the order of creation


@dataclasses.dataclass(frozen=True)
class BodyInfo:
    """Static description of one body.

    `row` is its place among the dynamic bodies, or among the static ones; every per-body leaf of a model holds the
    dynamic bodies first and the static ones after them.
    """

    name: str
    row: int
    static: bool
    shape: str  # "plane", "sphere", "box", "capsule", "cylinder", "mesh" or "grid"
    layer: str
    collider: ColliderType  # as resolved from AUTO
    collider_row: int  # among the colliders of that kind; -1 without one
    surface_basis: StaticArray  # (3, v, 3): weighted with the three sizes it gives the vertices in the root frame
    triangles: StaticArray  # (f, 3)
    quadrature: str
    subset: SampleSubset | None  # of the samples that the quadrature gives; None for all
    bucket: int  # sample bucket; -1 for a body that owns no samples
    bucket_row: int
    newton_euler: bool


@dataclasses.dataclass(frozen=True)
class ContactGroup:
    """Which samples meet which colliders of one kind. One vectorised kernel serves the whole group.

    Either every pair is listed, or each colliding body has a fixed number of slots that the broad phase fills at every
    step with the nearest colliders that are allowed.
    """

    kind: ColliderType
    bucket: int
    static_collider: bool
    owner_body: StaticArray  # (m,) dynamic row of each colliding body
    owner_bucket_row: StaticArray  # (m,) its row in the bucket
    owner_padded: StaticArray  # (m,) bool: it meets others at their padded threshold
    collider_body: StaticArray  # (c,) column among all bodies, for every collider of the kind
    collider_normal: StaticArray  # (c,) bool: friction acts in the plane of the collider's normal
    allowed: StaticArray  # (m, c) bool
    owner: StaticArray  # (p,) of each pair, among the colliding bodies
    collider_row: StaticArray | None  # (p,) of each pair, among those of the kind; None where the broad phase chooses
    slots: int  # pairs per colliding body that the broad phase fills
    sample_slots: int  # samples per pair that a step tests, the nearest ones; 0 where it tests all

    @property
    def body_A(self) -> np.ndarray:
        """Dynamic row of each pair's colliding body, (p,)."""
        return self.owner_body.array[self.owner.array]


class Model(eqx.Module):
    """A scene as arrays. Immutable; change a number with `replace`, `resize` or `scale_mass`.

    Leaves are component first, then body: `center_of_mass[:, i]` belongs to body `i`. Under `vmap` over models every
    leaf gains an axis and nothing is rebuilt.
    """

    gravity: Float[Array, "3"]  # [m/s^2]
    mass: Float[Array, "nb"]  # [kg], dynamic bodies
    center_of_mass: Float[Array, "3 nb"]  # [m], in the root frame
    gravity_scale: Float[Array, "nb"]  # share of gravity that acts on the body: 1 or 0
    moment_of_inertia: Float[Array, "6 nb"]  # about the COM, root axes, [ixx, ixy, ixz, iyy, iyz, izz] [kg m^2]
    size: Float[Array, "3 nall"]  # half extents, radius or scale per axis
    contact: ContactParams  # leaves (nall,)
    samples: tuple[SurfaceSamples, ...]  # per bucket, leaves (..., samples, bodies), in the root frame
    colliders: dict[str, AbstractShape]  # per kind, leaves (..., n)
    collider_center: Float[Array, "3 nall"]  # of the collider in the root frame [m]
    overrides: PairOverrides | None
    bodies: tuple[BodyInfo, ...] = eqx.field(static=True)  # in the order of creation
    groups: tuple[ContactGroup, ...] = eqx.field(static=True)

    def vertices(self, info: BodyInfo) -> Float[Array, "v 3"]:
        """Vertices of a body's surface in its root frame [m]."""
        size = self.size[:, self.column(info)]
        return jnp.tensordot(size, jnp.asarray(info.surface_basis.array, size.dtype), axes=1)

    @property
    def dynamic(self) -> tuple[BodyInfo, ...]:
        return tuple(b for b in self.bodies if not b.static)

    @property
    def n_dynamic(self) -> int:
        return sum(not b.static for b in self.bodies)

    @property
    def n_static(self) -> int:
        return sum(b.static for b in self.bodies)

    @property
    def nq(self) -> int:
        """Configuration numbers: COM position and quaternion xyzw per free body."""
        return 7 * self.n_dynamic

    @property
    def nv(self) -> int:
        """Velocity numbers: linear and angular velocity per free body."""
        return 6 * self.n_dynamic

    @property
    def coupled(self) -> bool:
        """Whether dynamic bodies may touch one another."""
        return any(not g.static_collider for g in self.groups)

    @property
    def newton_euler(self) -> np.ndarray:
        return np.array([b.newton_euler for b in self.dynamic], dtype=bool)

    def body(self, actor: "Actor | str") -> BodyInfo:
        """The body of a handle or name. ValueError for an actor of another scene."""
        name = actor if isinstance(actor, str) else actor.name
        for i, info in enumerate(self.bodies):
            if info.name == name and (isinstance(actor, str) or actor.index == i):
                return info
        known = ", ".join(repr(b.name) for b in self.bodies) or "none"
        raise ValueError(f"no actor {actor!r} in this model; it has {known}: use the handle its own Scene returned")

    def column(self, info: BodyInfo) -> int:
        """The body's place in leaves that hold all bodies."""
        return info.row + (self.n_dynamic if info.static else 0)
