"""Which states and controls a model takes: the fingerprint of its topology, and the shapes that follow from it."""

from typing import Any

import numpy as np

from ..model.control import Control
from ..model.model import Model
from ..model.state import State
from .codec import CodecError


def topology(model: Model) -> dict[str, Any]:
    """Counts, names and shapes as JSON; equal when a state of one model means the same to the other."""
    return {
        "dynamic": model.n_dynamic,
        "static": model.n_static,
        "bodies": [
            {
                "name": b.name,
                "static": b.static,
                "shape": b.shape,
                "collider": b.collider.name,
                "vertices": b.surface_basis.array.shape[1],
                "triangles": len(b.triangles.array),
                "quadrature": b.quadrature,
            }
            for b in model.bodies
        ],
    }


def check_same_topology(found: dict[str, Any], model: Model) -> None:
    """CodecError naming the first difference between a file's fingerprint and a model."""
    wanted = topology(model)
    remedy = "load it without model=, or build the scene it was saved with"
    for count in ("dynamic", "static"):
        if found.get(count) != wanted[count]:
            raise CodecError(f"it has {found.get(count)} {count} bodies, the given model has {wanted[count]}; {remedy}")
    for index, (theirs, ours) in enumerate(zip(found["bodies"], wanted["bodies"], strict=True)):
        for field, value in ours.items():
            if theirs.get(field) != value:
                raise CodecError(
                    f"its body {index} ({theirs.get('name')!r}) has {field} {theirs.get(field)!r}, "
                    f"the given model's has {value!r}; {remedy}"
                )


def check_model(model: Model) -> None:
    """CodecError when a model's leaves do not fit its own bodies; axes of worlds may stand in front."""
    nb, every = model.n_dynamic, len(model.bodies)
    dtype = getattr(model.gravity, "dtype", None)
    if dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise CodecError(f"model.gravity must be an array of float32 or float64; got {dtype}")
    wanted: dict[str, tuple[int, ...]] = {
        "gravity": (3,),
        "mass": (nb,),
        "center_of_mass": (3, nb),
        "gravity_scale": (nb,),
        "moment_of_inertia": (6, nb),
        "size": (3, every),
        "collider_center": (3, every),
    }
    for name, tail in wanted.items():
        _check_tail(f"model.{name}", getattr(model, name), tail, np.dtype(dtype))


def check_state(model: Model, state: State, name: str = "state") -> tuple[int, ...]:
    """The axes in front (worlds, time) of a state that fits the model; CodecError when it does not."""
    nb, ns, dtype = model.n_dynamic, model.n_static, np.dtype(model.gravity.dtype)
    whole = np.dtype(np.int32)
    wanted = {
        "q": ((model.nq,), dtype),
        "v": ((model.nv,), dtype),
        "symmetric_rate": ((6, nb), dtype),
        "history": ((nb,), whole),
        "static_position": ((3, ns), dtype),
        "static_quaternion": ((4, ns), dtype),
        "static_position_before": ((3, ns), dtype),
        "static_quaternion_before": ((4, ns), dtype),
        "step_count": ((), whole),
        "time": ((), dtype),
    }
    return _check_leaves(name, state, wanted)


def check_control(model: Model, control: Control, name: str = "control") -> tuple[int, ...]:
    """The axes in front (worlds, time) of a control that fits the model; CodecError when it does not."""
    dtype = np.dtype(model.gravity.dtype)
    wanted = {"loads": ((4, 3, 6, model.n_dynamic), dtype), "static_velocity": ((6, model.n_static), dtype)}
    return _check_leaves(name, control, wanted)


def _check_leaves(name: str, tree: Any, wanted: dict[str, tuple[tuple[int, ...], np.dtype]]) -> tuple[int, ...]:
    fronts = {f: _check_tail(f"{name}.{f}", getattr(tree, f), *of) for f, of in wanted.items()}
    if len(set(fronts.values())) > 1:
        raise CodecError(f"{name} has leaves with different leading axes, {fronts}; give them all the same")
    return next(iter(fronts.values()))


def _check_tail(name: str, leaf: Any, tail: tuple[int, ...], dtype: np.dtype) -> tuple[int, ...]:
    shape = np.shape(leaf)
    front, back = shape[: len(shape) - len(tail)], shape[len(shape) - len(tail) :]
    if len(shape) < len(tail) or back != tail:
        raise CodecError(
            f"{name} has shape {shape}, the model needs {tail} (axes of worlds or time in front); "
            "pass what belongs to that model"
        )
    found = getattr(leaf, "dtype", type(leaf).__name__)
    if found != dtype:
        raise CodecError(f"{name} is {found}, the model needs {dtype}; build both with the same dtype")
    return front
