"""Settings of a step."""

import math

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..contact.law import ContactOptions
from ..contact.params import FrictionModel
from ..solve.newton import ConvergenceMode, LineSearchType, NewtonSettings

Number = float | Float[Array, ""] | None
Count = int | Int[Array, ""]


def _static(**kw):
    return eqx.field(static=True, **kw)


class SolverParams(eqx.Module):
    """Settings of the step's solver and contact law. Numbers are leaves (no retrace), choices are static.

    The default is accurate and safe for gradients: enough iterations, a tolerance near what the dtype can reach.
    `parity()` has the reference engine's loose defaults, `gradient()` the smoothest law with the tightest tolerance.

    A tolerance of None depends on the dtype of the model: see `newton_settings`.
    """

    abs_tol: Number = None
    rel_tol: Number = 0.0
    rel_step_tol: Number = None
    abs_div_tol: Number = 1e9
    rel_div_tol: Number = 1e4
    max_iter: Count = 60
    line_search_alpha: Number = 0.5
    line_search_max_iter: Count = 10
    line_search_type: LineSearchType = _static(default=LineSearchType.RESIDUAL_NORM)
    convergence_mode: ConvergenceMode = _static(default=ConvergenceMode.PER_ACTOR_WEIGHTED)
    fitted_contact_friction: bool = _static(default=False)
    friction_model: FrictionModel = _static(default=FrictionModel.C1_REGULARIZED)
    explicit_normals: bool = _static(default=False)
    fade_friction: bool = _static(default=True)
    implicit_normal_force_for_dissipation: bool = _static(default=False)
    stop_if_no_improvement: bool = _static(default=True)
    force_single_island: bool = _static(default=False)
    preset: str = _static(default="default")

    def __check_init__(self):
        _ = self.contact_options  # refuses combinations that contradict each other
        for name in ("abs_tol", "rel_tol", "rel_step_tol", "abs_div_tol", "rel_div_tol", "line_search_alpha"):
            value = getattr(self, name)
            if isinstance(value, int | float) and not (math.isfinite(value) and value >= 0):
                raise ValueError(f"SolverParams: {name} must be a finite number >= 0; got {value}")
        for name in ("max_iter", "line_search_max_iter"):
            value = getattr(self, name)
            if isinstance(value, int | float) and (value != int(value) or value < 0):
                raise ValueError(f"SolverParams: {name} must be a whole number >= 0; got {value}")

    @staticmethod
    def parity(**changes) -> "SolverParams":
        """The defaults of SuperDex Physics 1.0.1: at most 4 iterations to 1e-3 of the weight.

        It stops unconverged on many sliding steps; gradients are then off by several percent.
        """
        return SolverParams(
            **{
                "abs_tol": 1e-3,
                "rel_tol": 1e-6,
                "max_iter": 4,
                "line_search_max_iter": 4,
                "fitted_contact_friction": True,
                "stop_if_no_improvement": False,
                "preset": "parity",
            }
            | changes
        )

    @staticmethod
    def gradient(**changes) -> "SolverParams":
        """Explicit normals and no fade, which keep the step smooth where samples come and go, and a tight tolerance."""
        return SolverParams(
            **{"explicit_normals": True, "fade_friction": False, "max_iter": 100, "preset": "gradient"} | changes
        )

    @property
    def contact_options(self) -> ContactOptions:
        return ContactOptions(
            friction_model=self.friction_model,
            explicit_normals=self.explicit_normals,
            fade_friction=self.fade_friction,
            implicit_normal_force_for_dissipation=self.implicit_normal_force_for_dissipation,
        )

    def newton_settings(self, dtype) -> NewtonSettings:
        """The numbers as arrays of one dtype, tolerances that were left open filled in.

        Open tolerances: float64 1e-10 of the weight (`gradient`: 1e-12) and steps below one rounding unit; float32
        1e-4, about what a stiff contact resolves a few decimetres from the origin, and steps below half a unit.
        """
        double = jnp.finfo(dtype).bits == 64
        abs_tol = self.abs_tol
        if abs_tol is None:
            abs_tol = (1e-12 if self.preset == "gradient" else 1e-10) if double else 1e-4
        rel_step_tol = self.rel_step_tol
        if rel_step_tol is None:
            rel_step_tol = float(jnp.finfo(dtype).eps) * (0.01 if double else 0.1)

        def number(x):
            return jnp.asarray(x, dtype)

        return NewtonSettings(
            abs_tol=number(abs_tol),
            rel_tol=number(self.rel_tol),
            rel_step_tol=number(rel_step_tol),
            abs_div_tol=number(self.abs_div_tol),
            rel_div_tol=number(self.rel_div_tol),
            max_iter=jnp.asarray(self.max_iter, jnp.int32),
            line_search_alpha=number(self.line_search_alpha),
            line_search_max_iter=jnp.asarray(self.line_search_max_iter, jnp.int32),
            line_search_type=self.line_search_type,
            convergence_mode=self.convergence_mode,
            start_fitted=self.fitted_contact_friction,
            stop_if_no_improvement=self.stop_if_no_improvement,
        )
