"""What acts on a world during one step besides gravity and contact."""

import enum

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .model import Actor, Model
from .state import _vector


class ForceMode(enum.Enum):
    """What an applied load's number means; the step turns each into a force held over the step."""

    FORCE = 0  # [N], [N m]
    IMPULSE = 1  # [N s], [N m s]: divided by h
    ACCELERATION = 2  # [m/s^2], [rad/s^2]: times mass, world inertia
    VELOCITY_CHANGE = 3  # [m/s], [rad/s]: times mass, world inertia, divided by h


class Control(eqx.Module):
    """Inputs of a step: arrays, zero by default, all differentiable. Held over a step, given anew for each.

    `loads` are kept apart by mode and by how they are expressed, so that a control needs no state to be written down:
    axis 1 is (world axes about the COM; body axes about the COM; world axes about the world origin).
    """

    loads: Float[Array, "4 3 6 nb"]  # (mode, expression, [linear; angular], dynamic body)
    static_velocity: Float[Array, "6 ns"]  # [m/s; rad/s] at which static bodies are carried during the step, world

    @staticmethod
    def zeros(model: Model) -> "Control":
        dtype = model.gravity.dtype
        return Control(jnp.zeros((4, 3, 6, model.n_dynamic), dtype), jnp.zeros((6, model.n_static), dtype))


def apply_force(
    model: Model,
    control: Control,
    actor: Actor | str,
    force: Float[Array, "3"],
    torque: Float[Array, "3"] | None = None,
    point: Float[Array, "3"] | None = None,
    mode: ForceMode = ForceMode.FORCE,
    frame: str = "world",
) -> Control:
    """The control with a load added to an actor.

    Args:
        force: in the unit of `mode`.
        torque: about the COM, added to what `point` makes of the force.
        point: where the force acts [m], in `frame` (a local point in the root frame); the COM when not given.
            Only for FORCE and IMPULSE: a prescribed acceleration has no lever arm.
        frame: "world", or "local" for force, torque and point in the axes of the body at the step start.

    Raises:
        ValueError: a static actor, an unknown frame, a wrong shape, or a point with an acceleration mode.
    """
    body = model.body(actor)
    if body.static:
        raise ValueError(f"actor {body.name!r}: a static actor takes no load; make it dynamic or use static_velocity")
    if frame not in ("world", "local"):
        raise ValueError(f"actor {body.name!r}: frame must be 'world' or 'local'; got {frame!r}")
    if point is not None and mode in (ForceMode.ACCELERATION, ForceMode.VELOCITY_CHANGE):
        raise ValueError(f"actor {body.name!r}: mode {mode.name} takes no point; use FORCE or IMPULSE")
    dtype = control.loads.dtype
    force = _vector(actor, "force", force, 3, dtype)
    torque = jnp.zeros(3, dtype) if torque is None else _vector(actor, "torque", torque, 3, dtype)
    loads = control.loads
    expression = 0 if frame == "world" else 1
    if point is not None:
        point = _vector(actor, "point", point, 3, dtype)
        if frame == "world":
            # The torque about the COM is known only when the step knows the COM: keep the moment about the origin.
            origin = jnp.concatenate([force, jnp.cross(point, force)])
            loads = loads.at[mode.value, 2, :, body.row].add(origin)
            force = jnp.zeros(3, dtype)
        else:
            torque = torque + jnp.cross(point - model.center_of_mass[:, body.row], force)
    loads = loads.at[mode.value, expression, :, body.row].add(jnp.concatenate([force, torque]))
    return eqx.tree_at(lambda c: c.loads, control, loads)
