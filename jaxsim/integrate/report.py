"""What a step tells about itself."""

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int

from ..contact.law import ContactOptions
from ..model.control import Control
from ..model.state import State


class StageInputs(eqx.Module):
    """What contact forces of a step are functions of. Kept in their stead: forces that nobody reads cost nothing.

    Read-backs evaluate the step's own law at these inputs, with the model that made the step.
    """

    before: State
    after: State
    control: Control | None
    h: Float[Array, ""]
    valid: Bool[Array, "nb"]  # whether the body's contact forces mean anything
    options: ContactOptions = eqx.field(static=True)


class StepReport(eqx.Module):
    """Outcome of a step; numbers are `Status` and `StopReason` values."""

    status: Int[Array, ""]  # the worst of the bodies
    iterations: Int[Array, ""]  # most Newton updates of any body
    residual_norm: Float[Array, ""]  # 2-norm over the bodies, in the measure of the convergence mode
    body_status: Int[Array, "nb"]
    body_reason: Int[Array, "nb"]
    body_iterations: Int[Array, "nb"]
    body_residual_norm: Float[Array, "nb"]
    overflow: Bool[Array, ""]  # a body was near to more colliders than `contact_capacity`: contacts may be missing
    stage: StageInputs | None  # None in a trajectory's summaries, which hold the states themselves
    preset: str = eqx.field(static=True)  # of the SolverParams
