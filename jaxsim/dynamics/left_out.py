"""Whether samples that a step did not test could have touched after all."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from ..contact.pairs import Placement, relative_motion
from ..contact.params import ColliderType
from ..math.rows import over_samples, take
from ..math.vector import Vec3, norm
from ..model.pair_params import effective_params
from .pairing import bodies_B
from .problem import Displacement, StageProblem

# How much faster than a point the distance there can change: a trilinear grid's gradient may be longer than one.
_STEEPEST = {ColliderType.SDF: 3.0**0.5}


def left_out_may_touch(problem: StageProblem, displacement: Displacement) -> Bool[Array, "w"]:
    """Per world: where False, the solution found with the nearest samples alone is that with all of them.

    A sample that was left out was at least as far as `Candidates.beyond` at the stage start, and came nearer by no more
    than the relative motion of its pair, which is known once the step is solved.
    """
    model = problem.model
    moving = Placement(problem.position, problem.rotation, displacement.linear, displacement.turn)
    every = jax.tree.map(lambda a, b: jnp.concatenate([a, b], axis=-2), moving, problem.statics)
    com = Vec3.of(model.center_of_mass)
    found = jnp.zeros(problem.position.array.shape[-1], bool)
    for group, chosen in zip(model.groups, problem.near.chosen, strict=True):
        if chosen is None or chosen.candidates is None:
            continue
        a, b = group.body_A, bodies_B(group, chosen)
        u, E = relative_motion(take(every, a), take(every, b))
        samples = take(Vec3.of(model.samples[group.bucket].position), group.owner_bucket_row.array)
        radius = jnp.max(norm(samples - take(com, group.owner_body.array).map(over_samples)), axis=0)
        turned = jnp.sqrt(jnp.sum(E.array**2, axis=(0, 1)))
        nearer = _STEEPEST.get(group.kind, 1.0) * (norm(u) + turned * take(radius, group.owner.array))
        padded = group.owner_padded.array[group.owner.array][:, None]
        params = effective_params(model, a, b, static_collider=group.static_collider, padded=padded)
        reached = chosen.candidates.beyond - nearer <= params.threshold
        found |= jnp.any(chosen.live & reached, axis=0)
    return found
