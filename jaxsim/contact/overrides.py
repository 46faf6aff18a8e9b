"""Contact parameters that hold for a pair of actors alone."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..geometry.static_array import StaticArray
from ..math.rows import Rows, take
from .params import PairParams

OVERRIDABLE = (
    "penalty_coefficient",
    "coulomb_friction_coefficient",
    "friction_falloff_vel",
    "viscous_friction_coefficient",
    "normal_viscous_damping_coefficient",
)


class PairOverrides(eqx.Module):
    """Values that stand in for the combined ones, for some unordered pairs of actors."""

    values: dict[str, Float[Array, "k"]]  # per field and overridden pair; zero where it does not override the field
    given: dict[str, StaticArray] = eqx.field(static=True)  # (k,) bool per field
    index: StaticArray = eqx.field(static=True)  # (nall, nall) place of a pair among the k; -1 for none

    @staticmethod
    def of(pairs: dict[tuple[int, int], dict[str, float]], n: int) -> "PairOverrides | None":
        """From the columns of two bodies and the fields they override."""
        if not pairs:
            return None
        index = np.full((n, n), -1)
        for k, (a, b) in enumerate(pairs):
            index[a, b] = index[b, a] = k
        return PairOverrides(
            values={f: np.array([v.get(f, 0.0) for v in pairs.values()]) for f in OVERRIDABLE},  # type: ignore[misc]
            given={f: StaticArray(np.array([f in v for v in pairs.values()])) for f in OVERRIDABLE},
            index=StaticArray(index),
        )

    def applied(self, params: PairParams, a: Rows, b: Rows) -> PairParams:
        """The parameters of pairs of bodies, by their columns, with what they override put in its place."""
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            which = jnp.asarray(self.index.array[a, b])[:, None]
        else:
            which = jnp.asarray(self.index.array)[jnp.asarray(a).reshape(len(a), -1), b]
        row = jnp.maximum(which, 0)
        changed = {}
        for field, value in self.values.items():
            overrides: Bool[Array, "p w"] = (which >= 0) & jnp.asarray(self.given[field].array)[row]
            changed[field] = jnp.where(overrides, take(value, row), getattr(params, field))
        return dataclasses.replace(params, **changed)
