"""A random part of a body's surface samples that stands for all of them."""

import dataclasses
import enum
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .quadrature import SurfaceSamples
from .static_array import StaticArray


class SubsamplingStrategy(enum.Enum):
    """Which samples are likelier to be kept."""

    UNIFORM_PROBABILITY = "uniform"  # all alike
    AREA_PROPORTIONAL = "area"  # in proportion to the area they stand for: evens out a mesh of uneven triangles


@dataclasses.dataclass(frozen=True)
class BoundarySubsampling:
    """Keep only some of a body's surface samples, with their weights raised so that the area stays the same.

    Args:
        density: share of the samples to keep, in (0, 1].
        key: a JAX random key, or a seed; the same key keeps the same samples.
    """

    density: float = 1.0
    strategy: SubsamplingStrategy = SubsamplingStrategy.UNIFORM_PROBABILITY
    key: Any = 0

    def __post_init__(self):
        if not 0.0 < self.density <= 1.0:
            raise ValueError(f"BoundarySubsampling: density must be in (0, 1], the share to keep; got {self.density}")

    def draw(self, weight: Float[np.ndarray, "S"]) -> "SampleSubset":
        """The samples to keep of samples of these weights [m^2]; those without weight are never kept."""
        alike = self.strategy is SubsamplingStrategy.UNIFORM_PROBABILITY
        (present,) = np.nonzero(weight)
        size = (weight[present] > 0).astype(float) if alike else weight[present]
        probability = _inclusion(size, max(1, round(self.density * len(present))))
        key = jax.random.key(self.key) if isinstance(self.key, int) else self.key
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        order = rng.permutation(len(present))
        # Systematic sampling: in random order each takes its probability on a line, and a comb of spacing one hits it.
        reached = np.round(np.cumsum(probability[order]), 9) + rng.uniform()
        hit = np.floor(reached) > np.floor(np.concatenate([[reached[0] - probability[order[0]]], reached[:-1]]))
        kept = np.sort(order[hit])
        return SampleSubset(StaticArray(present[kept]), StaticArray(1.0 / probability[kept]))


@dataclasses.dataclass(frozen=True)
class SampleSubset:
    """Samples that were kept, and how many each stands for."""

    sample: StaticArray  # (k,) ids among all samples, ascending
    count: StaticArray  # (k,) one over the probability that the sample is kept


def take_subset(samples: SurfaceSamples, subset: SampleSubset | None) -> SurfaceSamples:
    """The samples of a subset, weighted to the area [m^2] of all; all of them where there is no subset."""
    if subset is None:
        return samples
    kept = jax.tree.map(lambda x: x[..., subset.sample.array], samples)
    weight = kept.weight * jnp.asarray(subset.count.array, kept.weight.dtype)
    weight = weight * (jnp.sum(samples.weight) / jnp.sum(weight))
    return SurfaceSamples(kept.position, kept.normal, weight)


def _inclusion(size: Float[np.ndarray, "n"], count: int) -> Float[np.ndarray, "n"]:
    """Probabilities in proportion to size that add up to `count`; what would exceed one is kept for certain.

    Source: Särndal, Swensson & Wretman (1992), Model Assisted Survey Sampling, section 3.6.2.
    """
    certain = np.zeros(len(size), bool)
    while True:
        rest = np.where(certain, 0.0, size)
        share = (count - certain.sum()) * rest / max(rest.sum(), np.finfo(float).tiny)
        beyond = ~certain & (share >= 1.0 - 1e-12)
        if not beyond.any():
            return np.where(certain, 1.0, share)
        certain |= beyond
