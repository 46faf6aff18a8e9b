"""Reverse-mode gradients against differences of the loss itself."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray, PyTree

from .loss import as_variables, evaluate, hashable

STEP_RATIO = 10.0  # of the two step sizes
STEP_OF_BITS = {64: 1e-6, 32: 3e-3}


@dataclasses.dataclass(frozen=True)
class GradientCheck:
    """Derivatives of a loss along random directions of unit length. Print it."""

    loss: float
    gradient_norm: float
    derivatives: Float[np.ndarray, "d"]  # by reverse mode
    differences: Float[np.ndarray, "2 d"]  # central, at `steps`
    steps: tuple[float, float]

    @property
    def errors(self) -> Float[np.ndarray, "d"]:
        """Relative error per direction, at the better of the two step sizes; NaN if something is not finite."""
        scale = np.maximum(np.abs(self.differences), np.abs(self.derivatives))
        both = np.abs(self.differences - self.derivatives) / np.where(scale > 0, scale, 1.0)
        return np.min(both, axis=0)

    @property
    def error(self) -> float:
        """The largest of `errors`."""
        return float(np.max(self.errors))

    def __str__(self) -> str:
        small, large = self.steps
        lines = [f"{'gradient':>16}{f'step {small:.0e}':>16}{f'step {large:.0e}':>16}{'relative error':>16}"]
        for row in zip(self.derivatives, *self.differences, self.errors):
            lines.append("".join(f"{x:16.8g}" for x in row[:3]) + f"{row[3]:16.1e}")
        return "\n".join(lines)


def gradient_check(
    loss: Callable[[Any], Any],
    variables: PyTree,
    directions: int = 3,
    *,
    key: PRNGKeyArray | None = None,
    step: float | None = None,
    has_aux: bool = False,
) -> GradientCheck:
    """Compare the gradient of `loss` at `variables` with central differences at two step sizes.

    Args:
        directions: how many random ones.
        step: length of the smaller difference step along a direction, in the unit of the variables; the larger is ten
            times as long. When None, 1e-6 in float64 and 3e-3 in float32, where differences are rough.

    Through contact the loss is smooth only piecewise: where the two differences disagree with each other, a kink lies
    between, and no gradient agrees with both.

    Raises:
        ValueError: as `optimize`, and for fewer than one direction or a step that is not positive.
    """
    if directions < 1:
        raise ValueError(f"gradient_check: directions must be at least 1; got {directions}")
    if step is not None and not (np.isfinite(step) and step > 0):
        raise ValueError(f"gradient_check: step must be positive and finite; got {step}")
    variables = as_variables("gradient_check", variables)
    leaves, structure = jax.tree.flatten(variables)
    if step is None:
        step = STEP_OF_BITS.get(min(jnp.finfo(x.dtype).bits for x in leaves), 3e-2)
    loss = hashable(loss)

    def value_at(tangent, length):
        moved = [x + jnp.asarray(length, x.dtype) * t for x, t in zip(leaves, tangent)]
        ((value, _), _), _ = evaluate(loss, has_aux, jax.tree.unflatten(structure, moved))
        return float(value)

    ((value, _), grad), norm = evaluate(loss, has_aux, variables)
    grad = [np.asarray(g, float) for g in jax.tree.leaves(grad)]
    steps = (step, STEP_RATIO * step)
    derivatives, differences = [], []
    for k in jax.random.split(jax.random.key(0) if key is None else key, directions):
        tangent = _unit_direction(k, leaves)
        derivatives.append(sum(float(np.sum(g * np.asarray(t))) for g, t in zip(grad, tangent)))
        differences.append([(value_at(tangent, s) - value_at(tangent, -s)) / (2 * s) for s in steps])
    return GradientCheck(float(value), float(norm), np.array(derivatives), np.array(differences).T, steps)


def _unit_direction(key: PRNGKeyArray, leaves: list) -> list:
    keys = jax.random.split(key, len(leaves))
    tangent = [jax.random.normal(k, x.shape, x.dtype) for k, x in zip(keys, leaves)]
    length = jnp.sqrt(sum(jnp.sum(t * t) for t in tangent))
    return [t / length.astype(t.dtype) for t in tangent]
