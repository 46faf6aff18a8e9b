"""Values as JSON plus named arrays, and back: an explicit list of classes, and no pickle.

A node of the JSON is null, a number, a string or a dict with one key that says what it is. Classes come back field by
field without their `__init__`, so that no number is converted or normalised a second time.
"""

import dataclasses
import enum
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..contact.law import ContactOptions
from ..contact.overrides import PairOverrides
from ..contact.params import ColliderType, ContactParams, FrictionModel
from ..geometry.mesh_solid import MeshSolids
from ..geometry.point_cloud import PointClouds
from ..geometry.quadrature import SurfaceSamples
from ..geometry.sdf_grid import SdfGrids
from ..geometry.shapes import Box, Capsule, Cylinder, Plane, Sphere
from ..geometry.static_array import StaticArray
from ..geometry.subsampling import SampleSubset
from ..integrate.params import SolverParams
from ..integrate.report import StageInputs, StepReport
from ..math.spatial import Pose, Twist, Wrench
from ..model.control import Control
from ..model.model import BodyInfo, ContactGroup, Model
from ..model.state import State
from ..observe.contacts import ContactPoints
from ..solve.newton import ConvergenceMode, LineSearchType

# A name in this list is in users' files: a class that is renamed keeps its old name here.
CLASSES: dict[str, type] = {
    c.__name__: c
    for c in (
        *(
            Model,
            BodyInfo,
            ContactGroup,
            ContactParams,
            SurfaceSamples,
            Plane,
            Sphere,
            Box,
            Capsule,
            Cylinder,
            SdfGrids,
            MeshSolids,
            PointClouds,
            PairOverrides,
            SampleSubset,
        ),
        *(State, Control, SolverParams, ContactOptions, StepReport, StageInputs),
        *(Pose, Twist, Wrench, ContactPoints),
    )
}
ENUMS: dict[str, type[enum.Enum]] = {
    c.__name__: c for c in (ColliderType, FrictionModel, LineSearchType, ConvergenceMode)
}
_NAMES = {c: name for name, c in (CLASSES | ENUMS).items()}
_PLAIN_KINDS = "biufc"  # bool, integers, floats, complex: what a .npy file holds without pickle


class CodecError(ValueError):
    """A value that cannot be written, or a node that cannot be read; the message lacks the file's name."""


def encode(value: Any, where: str, arrays: dict[str, np.ndarray]) -> Any:
    """The JSON node of a value; its arrays are added to `arrays` under dotted names that start with `where`.

    Raises:
        CodecError: a value of a kind that no file can hold, named by its place.
    """
    return _Encoder(arrays).node(value, where)


class _Encoder:
    """Writes equal static tables once: a hundred bodies of one mesh share it."""

    def __init__(self, arrays: dict[str, np.ndarray]):
        self._arrays = arrays
        self._tables: dict[StaticArray, str] = {}

    def node(self, value: Any, where: str) -> Any:
        if isinstance(value, enum.Enum) and type(value) in _NAMES:
            return {"enum": [_NAMES[type(value)], value.name]}
        if value is None or (isinstance(value, bool | int | str) and not isinstance(value, enum.Enum)):
            return value
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else {"float": str(float(value))}
        if isinstance(value, StaticArray):
            name = self._tables.setdefault(value, where)
            if name == where:
                self._store(where, value.array)
            return {"table": name}
        if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            self._store(where, jax.random.key_data(value))
            return {"key": [where, str(jax.random.key_impl(value))]}
        if isinstance(value, jax.Array):
            self._store(where, value)
            return {"array": where}
        if isinstance(value, np.ndarray | np.generic):
            self._store(where, value)
            return {"numpy": where}
        if type(value) in _NAMES:
            fields = _field_names(type(value))
            return {"class": [_NAMES[type(value)], {f: self.node(getattr(value, f), f"{where}.{f}") for f in fields}]}
        if type(value) in (tuple, list):
            return {type(value).__name__: [self.node(x, f"{where}.{i}") for i, x in enumerate(value)]}
        if type(value) is dict and all(isinstance(k, str) for k in value):
            # A key may hold anything, and archive members are file names: odd keys are numbered.
            parts = [k if k.isidentifier() else str(i) for i, k in enumerate(value)]
            return {"dict": {k: self.node(x, f"{where}.{p}") for p, (k, x) in zip(parts, value.items(), strict=True)}}
        raise CodecError(
            f"{where} is a {type(value).__module__}.{type(value).__qualname__}, which a file cannot hold; give arrays, "
            "numbers, tuples, lists, dicts with string keys, or jaxsim's own classes"
        )

    def _store(self, name: str, value: Any) -> None:
        if isinstance(value, Tracer):
            raise CodecError(f"{name} is being traced: save outside jit, grad and vmap, where values are known")
        array = np.asarray(value)
        if array.dtype.kind not in _PLAIN_KINDS:
            raise CodecError(f"{name} has dtype {array.dtype}, which a .npz file cannot hold; convert it to a float")
        self._arrays[name] = array


def decode(node: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The value of a node of `encode`.

    Raises:
        CodecError: a node that `encode` does not write, a missing array, or a dtype that JAX would narrow.
    """
    return _Decoder(arrays).value(node)


class _Decoder:
    """Reads each static table once, so that bodies of one mesh share it again."""

    def __init__(self, arrays: dict[str, np.ndarray]):
        self._arrays = arrays
        self._tables: dict[str, StaticArray] = {}

    def value(self, node: Any) -> Any:
        if not isinstance(node, dict):
            if isinstance(node, list):
                raise CodecError("the header holds a bare list; the file is damaged or was edited")
            return node
        match node:
            case {"enum": [str(kind), str(name)]} if kind in ENUMS and name in ENUMS[kind].__members__:
                return ENUMS[kind][name]
            case {"float": ("nan" | "inf" | "-inf") as text}:
                return float(text)
            case {"table": str(name)}:
                if name not in self._tables:
                    self._tables[name] = StaticArray(self._array(name))
                return self._tables[name]
            case {"key": [str(name), str(impl)]}:
                try:
                    return jax.random.wrap_key_data(self._on_device(name), impl=impl)
                except (ValueError, TypeError) as e:
                    raise CodecError(f"random key {name} of kind {impl!r} cannot be made here: {e}") from None
            case {"array": str(name)}:
                return self._on_device(name)
            case {"numpy": str(name)}:
                return self._array(name)
            case {"class": [str(name), dict(fields)]} if name in CLASSES:
                return self._instance(CLASSES[name], fields)
            case {"tuple": list(items)}:
                return tuple(self.value(x) for x in items)
            case {"list": list(items)}:
                return [self.value(x) for x in items]
            case {"dict": dict(items)}:
                return {k: self.value(x) for k, x in items.items()}
        raise CodecError(
            f"the header holds {str(node)[:80]!r}, which this jaxsim does not know; "
            "upgrade jaxsim, or save it again if the file is damaged"
        )

    def _array(self, name: str) -> np.ndarray:
        if name not in self._arrays:
            raise CodecError(f"array {name!r} is missing; the file is damaged or was edited, save it again")
        return self._arrays[name]

    def _on_device(self, name: str) -> jax.Array:
        array = self._array(name)
        if jax.dtypes.canonicalize_dtype(array.dtype) != array.dtype:
            raise CodecError(
                f"array {name!r} is {array.dtype}, which JAX would narrow; "
                'call jax.config.update("jax_enable_x64", True) first'
            )
        return jnp.asarray(array)

    def _instance(self, kind: type, nodes: dict[str, Any]) -> Any:
        names = _field_names(kind)
        if set(nodes) != set(names):
            odd = ", ".join(sorted(set(nodes) ^ set(names)))
            raise CodecError(f"{kind.__name__} does not have the fields of this jaxsim ({odd}); save it again")
        values = {name: self.value(nodes[name]) for name in names}
        if not dataclasses.is_dataclass(kind):
            return kind(**values)
        made = object.__new__(kind)
        for name, value in values.items():
            object.__setattr__(made, name, value)
        return made


def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else kind._fields
