"""How a solve ended, as numbers that live in compiled code."""

import enum


class Status(enum.IntEnum):
    """Outcome of a step, per body and (the worst) per world."""

    NONE = 0  # nothing was solved: no free body
    CONVERGED = 1
    STOPPED = 2  # usable but above tolerance; the reason says why
    DIVERGED = 3  # the body was put back, at rest; its contact forces are invalid and its gradient is zero


class StopReason(enum.IntEnum):
    """Why a solve ended."""

    NONE = 0
    RESIDUAL = 1  # tolerance reached
    MAX_ITERATIONS = 2  # raise max_iter, loosen abs_tol, or shorten the step
    SMALL_STEP = 3  # the last increment was below rounding: the tolerance is finer than the dtype allows
    NONFINITE = 4  # NaN or infinity: look first at the state and controls that were given
    GROWTH = 5  # the residual exploded: look for deep overlap or a step far too long
    NO_IMPROVEMENT = 6  # no shorter step lowers the residual: rounding, or an equation with a jump and no root
