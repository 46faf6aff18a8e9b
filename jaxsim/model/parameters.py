"""The one way to read and change a model's numbers by name."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ..contact.overrides import PairOverrides
from ..contact.params import ColliderType, ContactParams
from ..geometry.mass import check_mass_properties, inertia_matrix, inertia_six
from ..geometry.mesh_solid import MeshSolids
from ..geometry.point_cloud import PointClouds
from ..geometry.quadrature import RULES, SurfaceSamples, sample_surface
from ..geometry.sdf_grid import SdfGrids
from ..geometry.shapes import Cylinder
from ..geometry.subsampling import take_subset
from .compile import pad_samples
from .model import Actor, BodyInfo, Model

_BODY_FIELDS = ("mass", "center_of_mass", "moment_of_inertia", "gravity_scale")
_CONTACT_FIELDS = tuple(f.name for f in dataclasses.fields(ContactParams) if f.name != "friction_with_collider_normal")
# Parameters that are leaves of a collider, and what they are called there.
_COLLIDER_FIELDS = {"normal": "normal", "offset": "offset", "point_cloud_radius": "radius"}
# The sizes of each shape, and which of the three numbers of `Model.size` each sets.
_SIZES: dict[str, dict[str, tuple[int, ...]]] = {
    "box": {"half_extents": (0, 1, 2)},
    "sphere": {"radius": (0, 1, 2)},
    "capsule": {"radius": (0, 1), "half_length": (2,)},
    "cylinder": {"radius": (0, 1), "half_length": (2,)},
    "mesh": {"scale": (0, 1, 2)},
}


Pair = tuple[Actor | str, Actor | str]


def get(model: Model, actor: Actor | str | Pair | None, name: str) -> Array:
    """A parameter by name: of an actor, of a pair that overrides it, or of the world (`"gravity"`) with actor None.

    Names: mass, center_of_mass, moment_of_inertia, gravity_scale; every field of `ContactParams`; half_extents of a
    box, radius and half_length of the round shapes, scale of a mesh; normal and offset of a plane; sdf_values of a body
    with a grid collider, (nx, ny, nz); point_cloud_radius of one that is met as a cloud of balls.

    Raises:
        ValueError: the actor has no such parameter; the message lists those it has.
    """
    if actor is None:
        _known("world", name, ("gravity",))
        return model.gravity
    if isinstance(actor, tuple):
        overrides, k = _override(model, actor, name)
        return overrides.values[name][k]
    body = model.body(actor)
    _known(body.name, name, (*_names(body), *_derived(body)))
    if name in _CONTACT_FIELDS:
        return getattr(model.contact, name)[model.column(body)]
    if name in _BODY_FIELDS:
        return getattr(model, name)[..., body.row]
    if name in _COLLIDER_FIELDS:
        return getattr(model.colliders[body.collider.value], _COLLIDER_FIELDS[name])[..., body.collider_row]
    if name == "sdf_values":
        grids = model.colliders["sdf"]
        assert isinstance(grids, SdfGrids)
        return grids.grid(body.collider_row).values
    size = model.size[:, model.column(body)]
    return size if name in ("half_extents", "scale") else size[_SIZES[body.shape][name][0]]


def replace(model: Model, actor: Actor | str | Pair | None = None, **values) -> Model:
    """The model with parameters changed, by the names of `get`; traced and differentiable.

    Nothing else follows from a changed number: see `scale_mass` for mass with inertia and `resize` for sizes.

    Raises:
        ValueError: an unknown name (the message lists the known ones), a wrong shape, or, outside compiled code, a
            value that no body can have.
    """
    if actor is None:
        for name in values:
            _known("world", name, ("gravity",))
        return eqx.tree_at(lambda m: m.gravity, model, _fitting("world", "gravity", values["gravity"], model.gravity))
    if isinstance(actor, tuple):
        for name, value in values.items():
            overrides, k = _override(model, actor, name)
            value = _fitting(f"{actor[0]}, {actor[1]}", name, value, overrides.values[name][k])
            changed = overrides.values | {name: overrides.values[name].at[k].set(value)}
            model = eqx.tree_at(lambda m, changed=changed: m.overrides.values, model, changed)
        return model
    body = model.body(actor)
    for name, value in values.items():
        if name in _derived(body):
            raise ValueError(
                f"actor {body.name!r}: {name} is changed with resize, which recomputes what follows from it"
            )
        _known(body.name, name, _names(body))
        value = _fitting(body.name, name, value, get(model, body.name, name))
        model = eqx.tree_at(lambda m, n=name: _leaf(m, body, n)[0], model, _set(model, body, name, value))
    if not body.static and any(n in _BODY_FIELDS for n in values):
        _check_mass(model, body)
    return model


def scale_mass(model: Model, actor: Actor | str, factor: float | Float[Array, ""]) -> Model:
    """The model with an actor's mass and inertia times `factor` (as a change of density does)."""
    body = model.body(actor)
    if body.static:
        raise ValueError(f"actor {body.name!r}: a static actor has no mass to scale")
    factor = jnp.asarray(factor, model.mass.dtype)
    model = eqx.tree_at(
        lambda m: (m.mass, m.moment_of_inertia),
        model,
        (
            model.mass.at[body.row].multiply(factor),
            model.moment_of_inertia.at[:, body.row].multiply(factor),
        ),
    )
    _check_mass(model, body)
    return model


def resize(model: Model, actor: Actor | str, **size) -> Model:
    """The model with an actor of another size, at the same density: by the names that `get` has for it.

    Surface samples, mass, centre of mass, inertia and the actor's own collider follow; traced and differentiable.
    `scale` of a mesh is relative to the mesh as it was added.

    Raises:
        ValueError: not the size of this actor's shape, a wrong shape, or a value that is not positive.
    """
    body = model.body(actor)
    fields = _SIZES.get(body.shape, {})
    if body.shape == "capsule":
        raise ValueError(f"actor {body.name!r}: a capsule cannot be resized, its inertia is not stretched; add another")
    if not size or not set(size) <= set(fields):
        known = "it takes " + ", ".join(f"{f}=" for f in fields) if fields else f"a {body.shape} has no size"
        raise ValueError(f"actor {body.name!r}: resize got {', '.join(size) or 'nothing'}; {known}")
    column = model.column(body)
    value = model.size[:, column]
    for field, given in size.items():
        number = jnp.asarray(given, value.dtype)
        shapes = {"half_extents": ((3,),), "scale": ((), (3,))}.get(field, ((),))
        if number.shape not in shapes:
            raise ValueError(f"actor {body.name!r}: {field} has the wrong shape {number.shape}")
        if not isinstance(number, Tracer) and not np.all(np.isfinite(number) & (np.asarray(number) > 0)):
            raise ValueError(f"actor {body.name!r}: {field} must be positive and finite [m]; got {given}")
        if _has_grid(body) and number.shape:
            raise ValueError(
                f"actor {body.name!r}: {field} has three values, but the distances of a grid collider only scale "
                "alike along all axes; give one number"
            )
        value = value.at[np.array(fields[field])].set(number)
    ratio = value / model.size[:, column]
    model = eqx.tree_at(
        lambda m: (m.size, m.collider_center),
        model,
        (model.size.at[:, column].set(value), model.collider_center.at[:, column].multiply(ratio)),
    )
    if body.collider_row >= 0:
        model = _resize_collider(model, body, ratio)
    return model if body.static else _resize_dynamic(model, body, value, ratio)


def _resize_collider(model: Model, body: BodyInfo, ratio: Float[Array, "3"]) -> Model:
    kind, row = body.collider.value, body.collider_row
    shape = model.colliders[kind]
    if isinstance(shape, SdfGrids):
        shape = shape.scaled(row, ratio[0])
    elif isinstance(shape, MeshSolids):
        shape = shape.scaled(row, ratio)
    elif isinstance(shape, PointClouds):
        shape = shape.replaced(row, _samples_of(model, body))
    elif isinstance(shape, Cylinder):
        shape = eqx.tree_at(
            lambda c: (c.radius, c.half_length),
            shape,
            (shape.radius.at[row].multiply(ratio[0]), shape.half_length.at[row].multiply(ratio[2])),
        )
    else:
        # A sphere about a mesh must still hold it, so it follows the axis that grows most.
        factor = ratio if kind == "box" else jnp.max(ratio)
        shape = jax.tree.map(lambda x: x.at[..., row].multiply(factor), shape)
    return eqx.tree_at(lambda m: m.colliders[kind], model, shape)


def _samples_of(model: Model, body: BodyInfo) -> SurfaceSamples:
    """The body's surface samples at its present size."""
    samples = sample_surface(model.vertices(body), body.triangles.array, RULES[body.quadrature])
    return take_subset(samples, body.subset)


def _resize_dynamic(model: Model, body: BodyInfo, size: Float[Array, "3"], ratio: Float[Array, "3"]) -> Model:
    samples = _samples_of(model, body)
    stack = model.samples[body.bucket]
    samples = pad_samples(samples, stack.weight.shape[0])
    stack = jax.tree.map(lambda all_, one: all_.at[..., body.bucket_row].set(one), stack, samples)
    volume = jnp.prod(ratio)
    # Stretching the axes maps the second-moment matrix by the same stretch on both sides.
    inertia = inertia_matrix(model.moment_of_inertia[:, body.row])
    eye = jnp.eye(3, dtype=size.dtype)
    moment = 0.5 * jnp.trace(inertia) * eye - inertia
    moment = volume * ratio[:, None] * moment * ratio[None, :]
    return eqx.tree_at(
        lambda m: (m.samples[body.bucket], m.mass, m.center_of_mass, m.moment_of_inertia),
        model,
        (
            stack,
            model.mass.at[body.row].multiply(volume),
            model.center_of_mass.at[:, body.row].multiply(ratio),
            model.moment_of_inertia.at[:, body.row].set(inertia_six(jnp.trace(moment) * eye - moment)),
        ),
    )


def _override(model: Model, pair: Pair, name: str) -> tuple[PairOverrides, int]:
    """The overrides of a model, and which of them is that of a pair; ValueError where the pair does not override."""
    a, b = (model.body(actor) for actor in pair)
    overrides = model.overrides
    k = -1 if overrides is None else int(overrides.index.array[model.column(a), model.column(b)])
    if overrides is None or k < 0 or name not in overrides.given or not overrides.given[name].array[k]:
        raise ValueError(
            f"actors {a.name!r} and {b.name!r}: the pair does not override {name!r}; name it in Scene.override_pair"
        )
    return overrides, k


def _names(body: BodyInfo) -> tuple[str, ...]:
    own = {
        ColliderType.PLANE: ("normal", "offset"),
        ColliderType.SDF: ("sdf_values",),
        ColliderType.POINT_CLOUD: ("point_cloud_radius",),
    }
    of_collider = own.get(body.collider, ()) if body.collider_row >= 0 else ()
    return (*(() if body.static else _BODY_FIELDS), *_CONTACT_FIELDS, *of_collider)


def _derived(body: BodyInfo) -> tuple[str, ...]:
    return tuple(_SIZES.get(body.shape, ()))


def _known(who: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise ValueError(f"actor {who!r}: no parameter named {name!r}; known are {', '.join(known)}")


def _has_grid(body: BodyInfo) -> bool:
    return body.collider is ColliderType.SDF and body.collider_row >= 0


def _leaf(model: Model, body: BodyInfo, name: str) -> tuple[Array, tuple]:
    """The leaf that holds a parameter, and the index of the actor's share."""
    if name in _CONTACT_FIELDS:
        return getattr(model.contact, name), (model.column(body),)
    if name in _BODY_FIELDS:
        return getattr(model, name), (..., body.row)
    if name == "sdf_values":
        grids = model.colliders["sdf"]
        assert isinstance(grids, SdfGrids)
        return grids.values, (grids.span(body.collider_row),)
    return getattr(model.colliders[body.collider.value], _COLLIDER_FIELDS[name]), (..., body.collider_row)


def _set(model: Model, body: BodyInfo, name: str, value: Array) -> Array:
    leaf, index = _leaf(model, body, name)
    return leaf.at[index].set(value.ravel() if name == "sdf_values" else value)


def _fitting(who: str, name: str, value, like: Array) -> Array:
    value = jnp.asarray(value, like.dtype)
    if value.shape != like.shape:
        raise ValueError(f"actor {who!r}: {name} must have shape {like.shape}; got {value.shape}")
    if name == "normal":
        value = value / jnp.linalg.norm(value)
    if not isinstance(value, Tracer) and not np.all(np.isfinite(value)):
        raise ValueError(f"actor {who!r}: {name} must be finite; got {value}")
    if name == "point_cloud_radius" and not isinstance(value, Tracer) and not value > 0:
        raise ValueError(f"actor {who!r}: {name} must be positive [m]; got {value}")
    return value


def _check_mass(model: Model, body: BodyInfo) -> None:
    properties = [getattr(model, n)[..., body.row] for n in ("mass", "center_of_mass", "moment_of_inertia")]
    if not any(isinstance(p, Tracer) for p in properties):
        check_mass_properties(body.name, *(np.asarray(p, float) for p in properties))
