"""Contact of many (colliding body, collider) pairs at once, on arrays of shape (samples, pairs, worlds).

Everything that a stage keeps is brought into the collider's stage-start axes once; an iterate then only moves each
pair by one rigid relative motion. Displacements, not positions, enter the dissipation, so that it keeps its precision
far from the origin.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from ..geometry.shapes import AbstractShape, distance_and_gradient
from ..math.kernel import kernel
from ..math.quaternion import Quaternion
from ..math.vector import Component, Mat3, Vec3, cross, cross_rows
from .law import ContactOptions, Load, SampleGeometry, dissipation_load, stiffness, traction
from .params import PairParams


class Placement(NamedTuple):
    """Where bodies are at a stage start and how far they have moved since: arrays (..., bodies, worlds)."""

    position: Vec3  # point that the displacement moves: the COM, or a static body's root [m]
    rotation: Quaternion
    displacement: Vec3  # [m]
    turn: Quaternion  # rotation since the stage start, world axes, from the left


class PairStart(eqx.Module):
    """Stage-start quantities of one contact group, in the colliders' stage-start axes."""

    shape: AbstractShape  # leaves (..., 1, pairs, worlds)
    point: Vec3  # sample positions [m], (samples, pairs, worlds)
    arm: Vec3  # from A's COM to the samples [m]
    normal_A: Vec3  # outward normals of A
    weight: Component  # [m^2]
    params: PairParams  # (1, pairs, worlds)
    with_collider_normal: Bool[Array, "1 p 1"]
    start: SampleGeometry  # of the stage start, only read with explicit normals


class PairResponse(NamedTuple):
    """What a group does at one iterate, per sample, in the colliders' present axes."""

    now: SampleGeometry
    load: Load
    traction: Vec3  # on A [Pa]
    arm: Vec3  # from A's COM [m]
    point: Vec3  # in the collider's frame [m]


def place_samples(
    shape: AbstractShape,
    position_A: Vec3,
    normal_A: Vec3,
    weight: Component,
    a: Placement,
    b: Placement,
    params: PairParams,
    with_collider_normal: Bool[Array, "1 p 1"],
) -> PairStart:
    """Samples given relative to A's COM in A's axes, brought into B's axes at the stage start."""
    rotation, com = _over_samples(_pose_in(a, b), position_A.array.shape[-3])
    arm, point, normal = _in_collider(rotation, com, position_A, normal_A)
    gap, gradient = _distance(shape, point)
    start = SampleGeometry(gap, gradient, normal)
    return PairStart(shape, point, arm, normal, weight, params, with_collider_normal, start)


@kernel
def _pose_in(a: Placement, b: Placement) -> tuple[Quaternion, Vec3]:
    """Rotation of A and its COM in B's axes."""
    to_B = b.rotation.conj
    return to_B @ a.rotation, to_B @ (a.position - b.position)


def _repeated_samples(tree, count: int):
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (*x.shape[:-3], count, *x.shape[-2:])), tree)


# A unit of its own for the sake of its transpose, a sum over samples: XLA on CPU gives the sum of a product to a
# library that takes many times longer than the product and the sum apart.
_over_samples = kernel(_repeated_samples, static_argnums=1)


@kernel
def _in_collider(rotation: Quaternion, com: Vec3, position_A: Vec3, normal_A: Vec3) -> tuple[Vec3, Vec3, Vec3]:
    arm = rotation @ position_A
    return arm, com + arm, rotation @ normal_A


@kernel
def relative_motion(a: Placement, b: Placement) -> tuple[Vec3, Mat3]:
    """Motion of A as seen from B since the stage start, in B's stage-start axes.

    Returns:
        Displacement u of A's COM [m] and E, a rotation minus the identity: a sample with arm r moves by u + E r.
    """
    to_B = b.rotation.conj
    u = b.turn.conj.minus_identity() @ (a.position - b.position) + b.turn.conj @ (a.displacement - b.displacement)
    turn = to_B @ (b.turn.conj @ a.turn) @ b.rotation
    return to_B @ u, turn.minus_identity()


def respond(pair: PairStart, u: Vec3, E: Mat3, h: Component, options: ContactOptions) -> PairResponse:
    """Distance, load and traction of every sample after the relative motion (u, E)."""
    turned = _apply(E, pair.arm)
    displacement = _add(u, turned)
    point = _add(pair.point, displacement)
    gap, gradient = _distance(pair.shape, point)
    now = SampleGeometry(gap, gradient, _add(pair.normal_A, _apply(E, pair.normal_A)))
    load = dissipation_load(now, pair.start, displacement, pair.params, pair.with_collider_normal, h, options)
    return PairResponse(now, load, traction(now, load, pair.params, h), _add(pair.arm, turned), point)


_distance = kernel(distance_and_gradient)


@kernel
def _apply(m: Mat3, v: Vec3) -> Vec3:
    return m @ v


@kernel
def _add(a: Vec3, b: Vec3) -> Vec3:
    return a + b


def pair_wrench(pair: PairStart, response: PairResponse) -> tuple[Vec3, Vec3]:
    """Force [N] and torque about A's COM [N m] on A, per pair (1, pairs, worlds), in B's present axes."""
    force = _scaled(response.traction, pair.weight)
    return _sum_samples((force, _cross(response.arm, force)))


def pair_stiffness(
    pair: PairStart, response: PairResponse, h: Component, fitted: Bool[Array, "1 p w"]
) -> tuple[Mat3, Mat3, Mat3]:
    """Blocks of the Gauss-Newton 6 x 6 of A's motion, per pair, in B's present axes.

    With J = [1, -skew(arm)] and the sample stiffness H: (sum H, sum skew(arm) H, sum skew(arm) H skew(arm)^T), the
    translation block, the rotation-translation block and the rotation block.
    """
    H = _scaled(stiffness(response.now, response.load, pair.params, h, fitted), pair.weight)
    # H is symmetric, so that H skew(r)^T is the transpose of skew(r) H.
    HS = _cross_rows(response.arm, H)
    return _sum_samples((H, HS.T, _cross_rows(response.arm, HS.T)))


@kernel
def _scaled(m, weight: Component):
    return m * weight


_cross, _cross_rows = kernel(cross), kernel(cross_rows)


@kernel
def _sum_samples(tree):
    """Sum over the sample axis, which is kept."""
    return jax.tree.map(lambda x: jnp.sum(x, axis=-3, keepdims=True), tree)
