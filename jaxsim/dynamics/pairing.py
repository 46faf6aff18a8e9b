"""Who meets whom: the pairs of a contact group, and the broad phase of a step."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from ..geometry.bounds import Bounds, placed, separation
from ..geometry.point_cloud import PointClouds
from ..math.quaternion import Quaternion
from ..math.rows import Rows, over_samples, take
from ..math.vector import Component, Vec3, norm
from ..model.model import ContactGroup, Model
from ..solve.islands import Islands, connected

# Distance [m] that the broad phase adds to a body's possible motion.
_MARGIN = 0.01


class Candidates(NamedTuple):
    """The samples of each pair that were nearest at the stage start, and that alone are tested in the step."""

    sample: Int[Array, "k p w"]  # rows among the samples of A
    point: Int[Array, "k p w"] | None  # of the cloud, where B is one
    beyond: Float[Array, "p w"]  # distance [m] of the nearest that was left out


class Chosen(NamedTuple):
    """What the broad phase found for the pairs of a contact group."""

    collider_row: Int[Array, "p w"] | None  # None where the group lists its pairs
    live: Bool[Array, "p w"]  # near enough to touch within the step
    candidates: Candidates | None  # None where all samples of a pair count


class BroadPhase(NamedTuple):
    """What is near to what at a step. It holds for the whole step and is not differentiated."""

    chosen: tuple[Chosen | None, ...]  # per contact group; None where all its listed pairs count
    islands: Islands | None  # None where no two dynamic bodies can touch
    overflow: Bool[Array, "w"]  # whether a body was near to more colliders than it has slots


def collider_rows(group: ContactGroup, chosen: Chosen | None) -> Rows:
    """Row of each pair's collider among those of its kind."""
    if group.collider_row is not None:
        return group.collider_row.array
    assert chosen is not None and chosen.collider_row is not None
    return chosen.collider_row


def bodies_B(group: ContactGroup, chosen: Chosen | None) -> Rows:
    """Column of each pair's collider body among all bodies."""
    rows, table = collider_rows(group, chosen), group.collider_body.array
    return table[rows] if isinstance(rows, np.ndarray) else jnp.asarray(table)[rows]


class BodyPoses(NamedTuple):
    """All bodies at the stage start: dynamic ones by their COM, static ones by their root; (bodies, worlds)."""

    position: Vec3
    rotation: Quaternion
    linear_velocity: Vec3
    angular_velocity: Vec3


def broad_phase(model: Model, poses: BodyPoses, h: Component) -> BroadPhase:
    """Choose pairs and find islands from the boxes about the bodies, grown by how far they may move in the step.

    Args:
        h: step length [s], (1, worlds).
    """
    width = poses.position.array.shape[-1]
    overflow = jnp.zeros(width, bool)
    choices: list[Chosen | None] = []
    edges: list[tuple[Array, Array, Array]] = []
    for group in model.groups:
        chosen = None
        if group.collider_row is None or not group.static_collider:
            owner, collider = _boxes(model, group, poses, h)
            if group.collider_row is None:
                chosen, crowded = _nearest(group, owner, collider)
                overflow |= crowded
            else:
                gap = separation(take(owner, group.owner.array), take(collider, group.collider_row.array))
                chosen = Chosen(None, gap <= 0, None)
            if not group.static_collider:
                near = chosen.live
                a, b = (jnp.asarray(rows).reshape(len(near), -1) for rows in (group.body_A, bodies_B(group, chosen)))
                edges.append(tuple(jnp.broadcast_to(x, (len(near), width)) for x in (a, b, near)))
        if group.sample_slots:
            if chosen is None:
                chosen = Chosen(None, jnp.ones((len(group.body_A), width), bool), None)
            chosen = chosen._replace(candidates=_candidates(model, group, chosen, poses))
        choices.append(chosen)
    islands = connected(model.n_dynamic, *map(jnp.concatenate, zip(*edges))) if edges else None
    return BroadPhase(tuple(choices), islands, overflow)


def _boxes(model: Model, group: ContactGroup, poses: BodyPoses, h: Component) -> tuple[Bounds, Bounds]:
    """Grown boxes about the colliding bodies' samples and about the colliders of a group."""
    a, b = group.owner_body.array, group.collider_body.array
    com = _all_com(model)
    samples = take(Vec3.of(model.samples[group.bucket].position), group.owner_bucket_row.array).array
    low, high = samples.min(1), samples.max(1)
    own = Bounds(Vec3.of((low + high) / 2) - take(com, a), Vec3.of((high - low) / 2))
    shapes = model.colliders[group.kind.value].bounds_of()
    theirs = Bounds(take(Vec3.of(model.collider_center), b) + shapes.center - take(com, b), shapes.half)
    # Samples act from the collider's threshold on.
    contact = take(model.contact, b)
    reach = contact.penalty_threshold_default + contact.penalty_threshold_extra_padding + _MARGIN
    return _grown(model, own, take(poses, a), h, 0.0), _grown(model, theirs, take(poses, b), h, reach)


def _grown(model: Model, bounds: Bounds, poses: BodyPoses, h: Component, reach) -> Bounds:
    g = jnp.linalg.norm(model.gravity, axis=0)[None]
    radius = norm(bounds.center) + norm(bounds.half)
    speed = norm(poses.linear_velocity) + norm(poses.angular_velocity) * radius
    motion = h * (2.0 * speed + (400.0 + g) * h)
    box = placed(bounds, poses.position, poses.rotation)
    return Bounds(box.center, box.half.map(lambda x: x + (motion + reach)[None]))


def _all_com(model: Model) -> Vec3:
    """COM of every body in its root frame; static bodies are placed by their root."""
    com = model.center_of_mass
    return Vec3.of(jnp.concatenate([com, jnp.zeros((3, model.n_static, com.shape[-1]), com.dtype)], axis=1))


def _nearest(group: ContactGroup, owner: Bounds, collider: Bounds) -> tuple[Chosen, Bool[Array, "w"]]:
    """The nearest allowed colliders of each colliding body, and whether there were more than it has slots."""
    each, every = (jax.tree.map(lambda x, i=i: jnp.expand_dims(x, i), box) for box, i in ((owner, -2), (collider, -3)))
    gap = jnp.where(jnp.asarray(group.allowed.array)[..., None], separation(each, every), jnp.inf)  # (m, c, w)
    nearness, rows = lax.top_k(jnp.moveaxis(-gap, 1, -1), group.slots)
    crowded = jnp.any(jnp.sum(gap <= 0, axis=1) > group.slots, axis=0)

    def per_pair(x):
        return jnp.moveaxis(x, -1, 1).reshape(-1, x.shape[1])

    return Chosen(per_pair(rows.astype(jnp.int32)), per_pair(nearness >= 0), None), crowded


def _candidates(model: Model, group: ContactGroup, chosen: Chosen, poses: BodyPoses) -> Candidates:
    """The nearest samples of each pair, or (sample, point) pairs where the collider is a cloud."""
    a, b = group.body_A, bodies_B(group, chosen)
    samples = take(model.samples[group.bucket], group.owner_bucket_row.array[group.owner.array])
    shape = model.colliders[group.kind.value].for_pairs(collider_rows(group, chosen))
    com, center = _all_com(model), Vec3.of(model.collider_center)
    com_A, origin = take(com, a), take(center, b) - take(com, b)
    of_A, of_B = take(poses, a), take(poses, b)
    arm = Vec3.of(samples.position) - com_A.map(over_samples)
    apart, turn, origin = jax.tree.map(
        over_samples,
        (of_B.rotation.conj @ (of_A.position - of_B.position), of_B.rotation.conj @ of_A.rotation, origin),
    )
    at = apart + turn @ arm - origin
    points = 1
    if isinstance(shape, PointClouds):
        gap = shape.distances(at)  # (points, samples, p, w)
        points = len(gap)
        gap = jnp.where(samples.weight > 0, gap, jnp.inf)
        gap = jnp.swapaxes(gap, 0, 1).reshape(-1, *gap.shape[2:])
    else:
        gap = jnp.where(samples.weight > 0, shape.signed_distance(at), jnp.inf)
    if group.sample_slots == len(gap):
        index = jnp.broadcast_to(jnp.arange(len(gap))[:, None, None], gap.shape)
        beyond = jnp.full(gap.shape[1:], jnp.inf, gap.dtype)
    else:
        nearness, index = lax.top_k(jnp.moveaxis(-gap, 0, -1), group.sample_slots + 1)
        beyond, index = -nearness[..., -1], jnp.moveaxis(index[..., :-1], -1, 0)
    return Candidates(
        (index // points).astype(jnp.int32),
        (index % points).astype(jnp.int32) if isinstance(shape, PointClouds) else None,
        beyond,
    )
