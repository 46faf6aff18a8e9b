"""What contact adds up to: per pair of actors, per vertex, and from one step to the next.

All are sums over the contact points of a step, so that they hold at its end and are differentiable.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..geometry.quadrature import RULES
from ..integrate.report import StepReport
from ..math.safe import safe_divide
from ..math.spatial import Wrench
from ..model.model import Actor, Model
from ..model.state import com_position
from .contacts import contact_points, step_inputs


class ContactResultant(NamedTuple):
    """Contact of one actor with another as one force at one place."""

    wrench: Wrench  # on the actor, by the other [N] and, about `center`, [N m]; world axes
    center: Float[Array, "3"]  # pressure centroid, world [m]; without contact the actor's COM (a static one's root)
    normal_force: Float[Array, ""]  # sum of the samples' forces along their normals [N]
    area: Float[Array, ""]  # what the samples in contact stand for [m^2]; of both surfaces where both own samples


def contact_resultant(model: Model, report: StepReport, actor: Actor | str, other: Actor | str) -> ContactResultant:
    """Contact between two actors at the end of the step, about the centroid of its pressure.

    The centroid weighs each sample's place with its force along the normal, so that there the normal forces of a flat
    face have no torque in the plane; friction's torque about the normal remains. All zero without contact, or where
    the step diverged (`report.stage.valid`).
    """
    body, partner = model.body(actor), model.body(other)
    mine, theirs = model.bodies.index(body), model.bodies.index(partner)
    points = contact_points(model, report)
    as_A = points.active & (points.actor_A == mine) & (points.actor_B == theirs)
    as_B = points.active & (points.actor_A == theirs) & (points.actor_B == mine)
    between = as_A | as_B
    force = jnp.where(between[:, None], points.force, 0.0)
    normal = jnp.where(between, jnp.sum(points.force * points.normal, axis=1), 0.0)
    position = jnp.where(between[:, None], points.position, 0.0)
    total = jnp.sum(normal)
    com = com_position(model, step_inputs(report).after, body.name)
    center = jnp.where(total > 0, safe_divide(normal @ position, total), com)
    signed = jnp.where(as_B[:, None], -force, force)
    torque = jnp.cross(jnp.where(between[:, None], position - center[None], 0.0), signed)
    wrench = Wrench(jnp.sum(signed, axis=0), jnp.sum(torque, axis=0))
    return ContactResultant(wrench, center, total, jnp.sum(jnp.where(between, points.weight, 0.0)))


def node_forces(model: Model, report: StepReport, actor: Actor | str) -> Float[Array, "v 3"]:
    """Contact forces [N], world, on the vertices of the actor's surface, in the order of its vertices.

    Each sample's force is shared among its triangle's corners as its position is, so that sum and torque are kept. Only
    samples of the actor itself: what other actors' samples exert on its collider acts at no vertex, see
    `contact_force` for the total.

    Raises:
        ValueError: the actor is static and owns no samples.
    """
    body = model.body(actor)
    if body.static:
        raise ValueError(f"node_forces: actor {body.name!r} is static and owns no samples; ask for what touches it")
    points = contact_points(model, report)
    rule, triangles = RULES[body.quadrature], body.triangles.array
    own = (points.actor_A == model.bodies.index(body)) & points.active
    force = jnp.where(own[:, None], points.force, 0.0)
    triangle = jnp.where(own, points.sample // rule.n, 0)
    shares = jnp.asarray(rule.barycentric, force.dtype)[points.sample % rule.n]
    nodes = jnp.zeros((body.surface_basis.array.shape[1], 3), force.dtype)
    return nodes.at[jnp.asarray(triangles)[triangle]].add(shares[:, :, None] * force[:, None, :])


class ContactChanges(NamedTuple):
    """Pairs of actors that touch, as symmetric tables over actors in the order of creation."""

    found: Bool[Array, "n n"]  # touch now and did not before
    lost: Bool[Array, "n n"]  # touched before
    kept: Bool[Array, "n n"]


def touching(model: Model, report: StepReport) -> Bool[Array, "n n"]:
    """Which actors touch at the end of the step: a symmetric table over actors in the order of creation."""
    points = contact_points(model, report)
    n = len(model.bodies)
    table = jnp.zeros((n, n), bool).at[points.actor_A, points.actor_B].max(points.active)
    return table | table.T


def contact_changes(model: Model, earlier: StepReport, later: StepReport) -> ContactChanges:
    """Pairs of actors found and lost between the ends of two steps of the same model.

    A pair one of whose bodies diverged in a step counts as apart there.
    """
    before, now = touching(model, earlier), touching(model, later)
    return ContactChanges(now & ~before, before & ~now, before & now)
