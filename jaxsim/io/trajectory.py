"""The record of a rollout on disk."""

import jax
import numpy as np

from ..contact.law import ContactOptions
from ..integrate.report import StepReport
from ..model.control import Control
from ..model.model import Model
from ..model.state import State
from ..trajectory import Trajectory
from .codec import CodecError
from .container import PathLike, naming, read, write
from .topology import check_control, check_model, check_state, topology

_CLASSES = {"model": Model, "summaries": StepReport, "options": ContactOptions}
_FIELDS = ("model", "rows", "summaries", "controls", "h", "substeps", "observed", "options")


def save_trajectory(trajectory: Trajectory, path: PathLike) -> None:
    """Write a record to one `.npz` file of exactly that name, whole or not at all.

    Observations may be arrays, and tuples, lists, dicts with string keys and jaxsim's own classes of them.

    Raises:
        ValueError: observations of another kind, named by their place.
        FileNotFoundError: the folder does not exist.
    """
    with naming(path, "save"):
        _check(trajectory)
        model = trajectory.model
        about = {"dtype": str(model.gravity.dtype), "topology": topology(model)}
        write(path, "trajectory", {name: getattr(trajectory, name) for name in _FIELDS}, about)


def load_trajectory(path: PathLike) -> Trajectory:
    """A record that `save_trajectory` wrote.

    Raises:
        ValueError: no file of a trajectory, a damaged one, or one of a newer version; the message names the file, what
            was found and the remedy.
        FileNotFoundError: there is no such file.
    """
    with naming(path, "load"):
        _, content = read(path, "trajectory")
        if set(content) != set(_FIELDS):
            raise CodecError(f"it holds {', '.join(content) or 'nothing'}, not {', '.join(_FIELDS)}; save it again")
        trajectory = Trajectory(**content)
        _check(trajectory)
    return trajectory


def _check(trajectory: Trajectory) -> None:
    """CodecError unless the parts of a record fit one another."""
    for name, kind in _CLASSES.items():
        if type(getattr(trajectory, name)) is not kind:
            raise CodecError(f"its {name} must be a {kind.__name__}; got a {type(getattr(trajectory, name)).__name__}")
    if type(trajectory.substeps) is not int or trajectory.substeps < 1 or type(trajectory.observed) is not bool:
        raise CodecError(
            f"its substeps must be a whole number >= 1 and observed a bool; got {trajectory.substeps!r} and "
            f"{trajectory.observed!r}"
        )
    if not isinstance(trajectory.h, jax.Array | np.ndarray):
        raise CodecError(f"its h must be an array; got a {type(trajectory.h).__name__}")
    check_model(trajectory.model)
    *worlds, steps = np.shape(trajectory.summaries.status)
    rows = (*worlds, steps + 1)
    if trajectory.observed:
        for path, leaf in jax.tree_util.tree_leaves_with_path(trajectory.rows):
            if np.shape(leaf)[: len(rows)] != rows:
                at = jax.tree_util.keystr(path)
                raise CodecError(f"its observation {at} has shape {np.shape(leaf)}, which must start with {rows}")
    elif type(trajectory.rows) is not State:
        raise CodecError(f"its rows must be a State; got a {type(trajectory.rows).__name__}")
    elif (found := check_state(trajectory.model, trajectory.rows, "rows")) != rows:
        raise CodecError(f"its rows have leading axes {found}, its {steps} steps need {rows}")
    if trajectory.controls is not None:
        if type(trajectory.controls) is not Control:
            raise CodecError(f"its controls must be a Control; got a {type(trajectory.controls).__name__}")
        wanted = (*worlds, steps // trajectory.substeps)
        if (found := check_control(trajectory.model, trajectory.controls, "controls")) != wanted:
            raise CodecError(f"its controls have leading axes {found}, its steps need {wanted}")
