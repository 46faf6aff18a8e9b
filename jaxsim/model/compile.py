"""From checked actor specifications to the arrays and index tables of a model."""

import dataclasses
import itertools
import warnings
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..contact.overrides import OVERRIDABLE, PairOverrides
from ..contact.params import ColliderType, ContactParams
from ..geometry.mesh import TriMesh
from ..geometry.mesh_solid import MeshSolid, MeshSolids
from ..geometry.point_cloud import PointClouds
from ..geometry.quadrature import RULES, SurfaceSamples, sample_surface
from ..geometry.sdf_grid import SdfGrid, SdfGrids
from ..geometry.shapes import AbstractShape, Box, Capsule, Cylinder, Plane, Sphere
from ..geometry.static_array import StaticArray
from ..geometry.subsampling import take_subset
from ..math import rotation
from .filters import ContactFilter
from .model import BodyInfo, ContactGroup, Model
from .spec import RigidSpec, SpecSurface
from .state import State

# (sample, point) pairs of one pair of bodies that are all tested; more have to be asked for.
_MOST_POINT_PAIRS = 20_000

_SHAPE_NAMES = {
    Plane: "plane",
    Sphere: "sphere",
    Box: "box",
    Capsule: "capsule",
    Cylinder: "cylinder",
    TriMesh: "mesh",
    SdfGrid: "grid",
}


def compile_scene(
    gravity: np.ndarray,
    specs: list[RigidSpec],
    dtype,
    contact_capacity: int,
    sample_capacity: int | None,
    contact_filter: ContactFilter,
    overrides: dict[frozenset[str], dict[str, float]],
) -> tuple[Model, State]:
    """Model and initial state of a list of actors, in `dtype`."""
    dynamic = [s for s in specs if not s.static]
    static = [s for s in specs if s.static]
    ordered = dynamic + static
    surfaces = {s.name: s.surface() for s in ordered}

    subsets, buckets, samples = _sample_buckets(dynamic, surfaces)
    colliders, collider_rows, centers = _colliders(ordered, surfaces)
    infos = []
    for spec in specs:
        surface = surfaces[spec.name]
        bucket, bucket_row = buckets.get(spec.name, (-1, -1))
        infos.append(
            BodyInfo(
                name=spec.name,
                row=(static if spec.static else dynamic).index(spec),
                static=spec.static,
                shape=_SHAPE_NAMES[type(spec.shape)],
                layer=spec.layer,
                collider=spec.collider,
                collider_row=collider_rows.get(spec.name, -1),
                surface_basis=StaticArray(surface.basis),
                triangles=StaticArray(surface.triangles),
                quadrature=spec.quadrature,
                subset=subsets.get(spec.name),
                bucket=bucket,
                bucket_row=bucket_row,
                newton_euler=spec.newton_euler,
            )
        )
    clouds = colliders.get(ColliderType.POINT_CLOUD.value)
    mass = [s.mass_properties for s in dynamic]
    named = {i.name: i for i in infos}
    by_name = {s.name: s for s in specs}
    column = {s.name: i for i, s in enumerate(ordered)}
    _warn_of_lost_coefficients(dynamic, ordered, contact_filter, overrides)
    model = Model(
        gravity=gravity,
        mass=np.array([m[0] for m in mass]),
        center_of_mass=_columns([m[1] for m in mass], 3),
        gravity_scale=np.array([s.gravity_scale for s in dynamic]),
        moment_of_inertia=_columns([m[2] for m in mass], 6),
        size=_columns([surfaces[s.name].size for s in ordered], 3),
        contact=_stack_contact([s.contact for s in ordered]),
        samples=samples,
        colliders=colliders,
        collider_center=_columns([centers.get(s.name, np.zeros(3)) for s in ordered], 3),
        bodies=tuple(infos),
        groups=_groups(
            [named[s.name] for s in ordered],
            by_name,
            contact_capacity,
            sample_capacity,
            contact_filter,
            [len(s.weight) for s in samples],
            len(clouds.weight) if isinstance(clouds, PointClouds) else 0,
        ),
        overrides=PairOverrides.of(
            {tuple(sorted(column[name] for name in pair)): fields for pair, fields in overrides.items()}, len(ordered)
        ),
    )
    return (
        jax.tree.map(lambda x: jnp.asarray(x, dtype), model),
        _initial_state(dynamic, static, dtype),
    )


def _columns(rows: list[np.ndarray], size: int) -> np.ndarray:
    return np.stack(rows, axis=-1) if rows else np.zeros((size, 0))


def _stack_contact(params: list[ContactParams]) -> ContactParams:
    fields = [f.name for f in dataclasses.fields(ContactParams) if f.name != "friction_with_collider_normal"]
    return ContactParams(**{f: np.array([float(getattr(p, f)) for p in params]) for f in fields})


def _sample_buckets(dynamic: list[RigidSpec], surfaces):
    """Samples of all colliding bodies, in arrays of like length, so that padding wastes less than half."""
    sampled, subsets = {}, {}
    for spec in dynamic:
        surface = surfaces[spec.name]
        samples = sample_surface(surface.vertices, surface.triangles, RULES[spec.quadrature])
        subsets[spec.name] = subset = spec.subset(np.asarray(samples.weight))
        sampled[spec.name] = take_subset(samples, subset)
    place, groups = {}, {}
    for name, s in sampled.items():
        groups.setdefault(int(np.ceil(np.log2(s.weight.shape[-1]))), []).append(name)
    stacked = []
    for bucket, key in enumerate(sorted(groups)):
        names = groups[key]
        longest = max(sampled[n].weight.shape[-1] for n in names)
        place |= {n: (bucket, row) for row, n in enumerate(names)}
        stacked.append(jax.tree.map(lambda *x: np.stack(x, -1), *(pad_samples(sampled[n], longest) for n in names)))
    return subsets, place, tuple(stacked)


def pad_samples(samples: SurfaceSamples, length: int) -> SurfaceSamples:
    """Samples filled up with ones of no weight."""
    return jax.tree.map(
        lambda x: jnp.concatenate([x, jnp.zeros((*x.shape[:-1], length - x.shape[-1]), x.dtype)], -1), samples
    )


def _colliders(ordered: list[RigidSpec], surfaces: dict[str, SpecSurface]):
    """Collider shapes stacked per kind, each actor's row, and the colliders' centres in the root frames."""
    found: dict[str, list[AbstractShape]] = {}
    rows, centers = {}, {}
    moving = sum(not s.static for s in ordered)
    for spec in ordered:
        # What no body can meet needs neither grid nor search tables.
        costly = spec.collider in (ColliderType.SDF, ColliderType.MESH)
        if spec.collider is ColliderType.NONE or (costly and moving <= (not spec.static)):
            continue
        shape = spec.shape
        if costly:
            shape = spec.grid() if spec.collider is ColliderType.SDF else spec.solid()
        elif spec.collider is ColliderType.POINT_CLOUD:
            surface = surfaces[spec.name]
            samples = sample_surface(surface.vertices, surface.triangles, RULES[spec.quadrature])
            samples = take_subset(samples, spec.subset(np.asarray(samples.weight)))
            shape = PointClouds(samples.position, samples.weight, jnp.asarray(spec.point_cloud_radius))
        elif spec.collider in (ColliderType.BOX, ColliderType.SPHERE):
            vertices = surfaces[spec.name].vertices
            low, high = vertices.min(0), vertices.max(0)
            centers[spec.name] = (low + high) / 2
            half = (high - low) / 2
            if not isinstance(shape, Sphere if spec.collider is ColliderType.SPHERE else Box):
                shape = Box(half) if spec.collider is ColliderType.BOX else Sphere(half.max())
        kind = found.setdefault(spec.collider.value, [])
        rows[spec.name] = len(kind)
        kind.append(shape)
    stacked = {kind: _stacked(shapes) for kind, shapes in found.items()}
    return stacked, rows, centers


def _stacked(shapes: list[AbstractShape]) -> AbstractShape:
    grids = [shape for shape in shapes if isinstance(shape, SdfGrid)]
    solids = [shape for shape in shapes if isinstance(shape, MeshSolid)]
    if isinstance(shapes[0], PointClouds):
        return PointClouds.of(shapes)
    if grids or solids:
        return SdfGrids.of(grids) if grids else MeshSolids.of(solids)
    return jax.tree.map(lambda *x: jnp.stack(x, -1), *shapes)


def _warn_of_lost_coefficients(
    dynamic: list[RigidSpec],
    ordered: list[RigidSpec],
    contact_filter: ContactFilter,
    overrides: dict[frozenset[str], dict[str, float]],
) -> None:
    """One warning where a coefficient that one actor sets is lost, since the other's is zero."""
    fields = [f for f in OVERRIDABLE if f.endswith("coefficient") and f != "penalty_coefficient"]
    lost = []
    for a, b in itertools.product(dynamic, ordered):
        if a is b or b.collider is ColliderType.NONE or not contact_filter.allows((a.name, a.layer), (b.name, b.layer)):
            continue
        for f in fields:
            one_sided = (float(getattr(a.contact, f)) > 0) != (float(getattr(b.contact, f)) > 0)
            if one_sided and f not in overrides.get(frozenset((a.name, b.name)), {}):
                lost.append((a.name, b.name, f))
    if lost:
        a, b, f = lost[0]
        warnings.warn(
            f"scene: {f} is zero for one of {a!r} and {b!r} and so for the pair, as the geometric mean of both "
            f"({len(lost)} such cases in all): set it on both, or with override_pair",
            stacklevel=4,
        )


def _groups(
    ordered: list[BodyInfo],
    specs: dict[str, RigidSpec],
    capacity: int,
    sample_capacity: int | None,
    contact_filter: ContactFilter,
    counts: list[int],
    points: int,
) -> tuple[ContactGroup, ...]:
    """One group per kind of collider, sample bucket, and whether the colliders move; bodies dynamic first.

    Args:
        counts: samples per body of each bucket.
        points: of a point cloud.
    """
    columns = {info.name: column for column, info in enumerate(ordered)}
    buckets: dict[int, list[BodyInfo]] = {}
    kinds: dict[ColliderType, list[BodyInfo]] = {}
    for info in ordered:
        if info.bucket >= 0:
            buckets.setdefault(info.bucket, []).append(info)
        if info.collider_row >= 0:
            kinds.setdefault(info.collider, []).append(info)  # in the order of their rows
    groups = []
    for kind, colliders in sorted(kinds.items(), key=lambda item: item[0].value):
        for bucket, owners in sorted(buckets.items()):
            for static in (True, False):
                allowed = np.array(
                    [
                        [
                            b.static == static
                            and a is not b
                            and contact_filter.allows((a.name, a.layer), (b.name, b.layer))
                            for b in colliders
                        ]
                        for a in owners
                    ]
                )
                if not allowed.any():
                    continue
                # A plane is near to everything, so that nothing could be left out.
                chosen = kind is not ColliderType.PLANE and int(allowed.sum(1).max()) > capacity
                owner, row = np.nonzero(allowed)
                if chosen:
                    owner = np.repeat(np.arange(len(owners)), capacity)
                groups.append(
                    ContactGroup(
                        kind=kind,
                        bucket=bucket,
                        static_collider=static,
                        owner_body=_table(a.row for a in owners),
                        owner_bucket_row=_table(a.bucket_row for a in owners),
                        owner_padded=_table(a.collider.padded for a in owners),
                        collider_body=_table(columns[b.name] for b in colliders),
                        collider_normal=_table(
                            bool(specs[b.name].contact.friction_with_collider_normal) for b in colliders
                        ),
                        allowed=StaticArray(allowed),
                        owner=StaticArray(owner),
                        collider_row=None if chosen else StaticArray(row),
                        slots=capacity if chosen else 1,
                        sample_slots=_sample_slots(kind, counts[bucket], points, sample_capacity),
                    )
                )
    return tuple(groups)


def _sample_slots(kind: ColliderType, samples: int, points: int, capacity: int | None) -> int:
    """Samples per pair, or (sample, point) pairs, that a step tests; 0 for all samples as they are."""
    if kind is not ColliderType.POINT_CLOUD:
        return 0 if capacity is None or samples <= capacity else capacity
    every = samples * points
    if capacity is None and every > _MOST_POINT_PAIRS:
        raise ValueError(
            f"scene: a pair of bodies, one with a POINT_CLOUD collider, has {samples} samples times {points} points to "
            f"test; give build(sample_capacity=) the number of nearest ones to test, such as {2 * samples}"
        )
    return every if capacity is None else min(every, capacity)


def _table(values: Iterable[Any]) -> StaticArray:
    return StaticArray(np.array(list(values)))


def _initial_state(dynamic: list[RigidSpec], static: list[RigidSpec], dtype) -> State:
    q = [
        [*(s.position + np.asarray(rotation.rotate(s.quaternion, s.mass_properties[1]))), *s.quaternion]
        for s in dynamic
    ]
    v = [[*s.linear_velocity, *s.angular_velocity] for s in dynamic]
    position = jnp.asarray(_columns([s.position for s in static], 3), dtype)
    quaternion = jnp.asarray(_columns([s.quaternion for s in static], 4), dtype)
    return State(
        q=jnp.asarray(np.reshape(q, -1), dtype),
        v=jnp.asarray(np.reshape(v, -1), dtype),
        symmetric_rate=jnp.zeros((6, len(dynamic)), dtype),
        history=jnp.zeros(len(dynamic), jnp.int32),
        static_position=position,
        static_quaternion=quaternion,
        static_position_before=position,
        static_quaternion_before=quaternion,
        step_count=jnp.zeros((), jnp.int32),
        time=jnp.zeros((), dtype),
    )
