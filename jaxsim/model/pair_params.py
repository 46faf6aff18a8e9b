"""Effective contact parameters of pairs: those of both actors combined, then what a pair overrides."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Bool

from ..contact.params import PairParams, combine
from ..math.rows import Rows, take
from .model import Actor, Model


def effective_params(model: Model, a: Rows, b: Rows, *, static_collider: bool, padded: Bool[Any, "p 1"]) -> PairParams:
    """Parameters (pairs, worlds) of pairs of bodies, by their columns, in a model in kernel form.

    Args:
        a: owners of the samples.
        b: colliders.
        padded: whether A's collider asks for the padded threshold.
    """
    params = combine(take(model.contact, a), take(model.contact, b), static_collider=static_collider, padded=padded)
    return params if model.overrides is None else model.overrides.applied(params, a, b)


def pair_parameters(model: Model, colliding: Actor | str, collider: Actor | str) -> PairParams:
    """What contact of one actor's samples with another's collider really uses: combined, then overridden.

    The two directions of a pair differ in what comes from the collider alone.

    Raises:
        ValueError: an actor of another scene, or a static `colliding` actor, which owns no samples.
    """
    a, b = model.body(colliding), model.body(collider)
    if a.static:
        raise ValueError(f"actor {a.name!r}: a static actor owns no samples; ask for the pair the other way round")
    columns = [np.array([model.column(body)]) for body in (a, b)]
    one_world = jax.tree.map(lambda x: x[..., None], model)
    padded = np.array([[a.collider.padded]])
    params = effective_params(one_world, *columns, static_collider=b.static, padded=padded)
    return jax.tree.map(lambda x: x[0, 0], params)
