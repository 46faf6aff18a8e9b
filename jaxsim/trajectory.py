"""The record of a rollout."""

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .contact.law import ContactOptions
from .integrate.report import StageInputs, StepReport
from .model.control import Control
from .model.model import Model


class Trajectory(eqx.Module):
    """States of a rollout, or what was observed of them, with the reports of its steps.

    Batches of worlds put their axes in front of time. Saving and drawing belong to higher floors, which register
    themselves here when the package is imported: see `present_with`.
    """

    model: Model
    rows: Any  # `State`, or what `observe` returned; time axis of length steps + 1, the first is the start
    summaries: StepReport  # without their stages; time axis of length steps
    controls: Control | None  # time axis of length steps / substeps
    h: Float[Array, "*b"]  # step length [s]
    substeps: int = eqx.field(static=True)
    observed: bool = eqx.field(static=True)  # whether `rows` are observations instead of states
    options: ContactOptions = eqx.field(static=True)

    _presenters: ClassVar[dict[str, Callable[..., Any]]] = {}

    @property
    def steps(self) -> int:
        return self.summaries.status.shape[-1]

    @property
    def times(self) -> Float[Array, "*b rows"]:
        """Time of each row since the start [s]."""
        return jnp.arange(self.steps + 1) * self.h[..., None]

    @property
    def states(self) -> Any:
        """The states, start first. ValueError when the rollout recorded observations instead."""
        if self.observed:
            raise ValueError("trajectory: rollout(observe=...) recorded observations, not states; roll out without it")
        return self.rows

    @property
    def reports(self) -> StepReport:
        """One report per step, good for `contact_force` and `contact_points` under `vmap`."""
        states = self.states
        axis = self.summaries.status.ndim - 1
        before = jax.tree.map(lambda x: _along(x, axis, slice(None, -1)), states)
        after = jax.tree.map(lambda x: _along(x, axis, slice(1, None)), states)
        controls = jax.tree.map(lambda x: jnp.repeat(x, self.substeps, axis), self.controls)
        h = jnp.broadcast_to(self.h[..., None], self.summaries.status.shape)
        valid = self.summaries.body_status != 3
        stage = StageInputs(before, after, controls, h, valid, self.options)
        return eqx.tree_at(lambda r: r.stage, self.summaries, stage, is_leaf=lambda x: x is None)

    def report(self, step: int) -> StepReport:
        """The report of one step of a single world."""
        return jax.tree.map(lambda x: x[step], self.reports)

    def state(self, row: int) -> Any:
        """One row of a single world; row 0 is the start."""
        return jax.tree.map(lambda x: x[row], self.rows)

    @classmethod
    def present_with(cls, **presenters: Callable[..., Any]) -> None:
        """Register what a higher floor does with a trajectory: `save`, `plot`, `to_html`, `show`."""
        cls._presenters.update(presenters)

    def save(self, path: str) -> None:
        """Write the record to an `.npz` file, atomically."""
        self._presenters["save"](self, path)

    @classmethod
    def load(cls, path: str) -> "Trajectory":
        """A record written by `save`. ValueError naming the file if it is foreign, truncated or of another version."""
        return cls._presenters["load"](path)

    def plot(self, **options):
        """Positions and speeds over time, as matplotlib axes. Needs the extra `viz`."""
        return self._presenters["plot"](self, **options)

    def to_html(self, path: str | None = None, **options) -> str:
        """A self-contained animation as HTML, also written to `path` when given. Needs the extra `viz`."""
        return self._presenters["to_html"](self, path, **options)

    def show(self, **options):
        """The animation in a notebook cell. Needs the extra `viz`."""
        return self._presenters["show"](self, **options)


def _along(x: Array, axis: int, part: slice) -> Array:
    return x[(slice(None),) * axis + (part,)]
