"""A simulation on disk: model, state, control, settings and random key, in one file."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from ..integrate.params import SolverParams
from ..model.control import Control
from ..model.model import Model
from ..model.state import State
from .codec import CodecError
from .container import PathLike, naming, read, write
from .topology import check_control, check_model, check_same_topology, check_state, topology


class Saved(NamedTuple):
    """What a file holds; None where nothing was saved."""

    model: Model | None
    state: State | None
    control: Control | None
    params: SolverParams | None
    key: PRNGKeyArray | None


_CLASSES = {"model": Model, "state": State, "control": Control, "params": SolverParams}


def save(
    path: PathLike,
    model: Model | None = None,
    state: State | None = None,
    control: Control | None = None,
    params: SolverParams | None = None,
    key: PRNGKeyArray | None = None,
) -> None:
    """Write a simulation to one `.npz` file of exactly that name, whole or not at all.

    States, controls and keys may have axes of worlds in front. A run that is continued from the file is bit for bit
    the run that was not interrupted, on the same machine and JAX. The file holds arrays and JSON, no pickle.

    Args:
        path: where to; its folder must exist, an earlier file is replaced.
        key: a typed key, of `jax.random.key`.

    Raises:
        ValueError: nothing to save, a value of a wrong kind, or a state or control that does not fit the model.
        FileNotFoundError: the folder does not exist.
    """
    saved = Saved(model, state, control, params, key)
    with naming(path, "save"):
        _check(saved)
        dtype = next((x.dtype for x in jax.tree.leaves((model, state, control)) if hasattr(x, "dtype")), None)
        about = {"dtype": None if dtype is None else str(dtype), "topology": None if model is None else topology(model)}
        write(path, "save", saved._asdict(), about)


def load(path: PathLike, model: Model | None = None) -> Saved:
    """What `save` wrote. A model that comes back equals the one saved, so compiled code is not compiled again.

    Args:
        model: one you built yourself, to use the state with; it must have the topology (counts, names and shapes of
            bodies) of the model that was saved. Its masses and other numbers may differ.

    Raises:
        ValueError: no file of jaxsim, a damaged one, one of a newer version or of another topology; the message names
            the file, what was found and the remedy.
        FileNotFoundError: there is no such file.
    """
    with naming(path, "load"):
        _, content = read(path, "save")
        if set(content) != set(Saved._fields):
            raise CodecError(
                f"it holds {', '.join(content) or 'nothing'}, not {', '.join(Saved._fields)}; save it again"
            )
        saved = Saved(**content)
        _check(saved)
        if model is not None:
            if saved.model is not None:
                check_same_topology(topology(saved.model), model)
            _check_fit(model, saved)
    return saved


def _check(saved: Saved) -> None:
    if all(x is None for x in saved):
        raise CodecError("there is nothing in it; give model=, state=, control=, params= or key=")
    for name, kind in _CLASSES.items():
        value = getattr(saved, name)
        if value is not None and type(value) is not kind:
            raise CodecError(f"{name} must be a {kind.__name__}; got a {type(value).__name__}")
    if saved.key is not None and not _is_key(saved.key):
        raise CodecError(
            f"key must be a typed key of jax.random.key(seed); got a {type(saved.key).__name__} "
            "(jax.random.wrap_key_data makes one of raw numbers)"
        )
    if saved.params is not None:
        try:
            saved.params.__check_init__()
        except (ValueError, TypeError) as e:
            raise CodecError(f"its params are refused: {e}") from None
    if saved.model is not None:
        check_model(saved.model)
        _check_fit(saved.model, saved)


def _check_fit(model: Model, saved: Saved) -> None:
    if saved.state is not None:
        check_state(model, saved.state)
    if saved.control is not None:
        check_control(model, saved.control)


def _is_key(value: Any) -> bool:
    return isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
