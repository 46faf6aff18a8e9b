"""A trajectory as an animation, and as curves over time."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from ..geometry.shapes import Plane
from ..integrate.report import StepReport
from ..model.model import BodyInfo, Model
from ..model.state import State, pose
from ..observe.contacts import contact_points
from ..solve.results import Status
from ..trajectory import Trajectory
from . import html, rotation
from .atomic import write_atomically
from .optional import import_optional
from .plot import plot_series
from .scene import COLOR_CYCLE, Animation, VisualMesh, VisualPlane

if TYPE_CHECKING:
    from IPython.display import HTML
    from matplotlib.figure import Figure

STATIC_COLOR = (0.62, 0.64, 0.66)
LEAST_TOP = 1e-6  # [m/s, rad/s, N] of an axis of magnitudes: below is rounding
MOST_IN_LEGEND = 14

# Axes of one world's leaf, by the end of its path in the model; one that has more has worlds in front.
_NDIM = {
    **dict.fromkeys(("gravity", "mass", "gravity_scale", "contact", "plane.offset", "sdf.values"), 1),
    **dict.fromkeys(("sphere.radius", "capsule.radius", "cylinder.radius"), 1),
    **dict.fromkeys(("capsule.half_length", "cylinder.half_length"), 1),
    **dict.fromkeys(("center_of_mass", "moment_of_inertia", "size", "collider_center"), 2),
    **dict.fromkeys(("plane.normal", "box.half_extents", "samples.weight"), 2),
    **dict.fromkeys(("samples.position", "samples.normal", "sdf.bounds"), 3),
}


def animation(trajectory: Trajectory, title: str | None = None, forces: bool = False, world: int = 0) -> Animation:
    """What to draw of one world of a trajectory.

    Args:
        title: heading; by default the number of steps and their length.
        forces: also draws the contact force on each dynamic body, as an arrow at its centre of mass.
        world: which of a batch, counted along all its axes.
    Raises:
        ValueError: observations were recorded instead of states, there is no such world, or nothing to draw.
    """
    trajectory = one_world(trajectory, world)
    model, states = trajectory.model, trajectory.states
    shown = [b for b in model.bodies if len(b.triangles.array)]
    poses = [jax.vmap(lambda s, name=b.name: pose(model, s, name))(states) for b in shown]
    rows = trajectory.steps + 1
    return Animation(
        title=_heading(trajectory) if title is None else title,
        meshes=[_mesh(model, b) for b in shown],
        planes=[_plane(model, states, b) for b in model.bodies if b.shape == "plane" and b.collider_row >= 0],
        times=np.asarray(trajectory.times, float),
        positions=np.stack([p.position for p in poses], axis=1) if poses else np.zeros((rows, 0, 3)),
        quaternions=np.stack([p.quaternion for p in poses], axis=1) if poses else np.zeros((rows, 0, 4)),
        arrows=_arrows(trajectory) if forces else None,
        up=_up(model),
    )


def trajectory_to_html(
    trajectory: Trajectory,
    path: str | os.PathLike[str] | None = None,
    title: str | None = None,
    forces: bool = False,
    world: int = 0,
) -> str:
    """A self-contained page that plays one world, also written to `path` when given. Arguments as for `animation`."""
    page = html.to_html(animation(trajectory, title, forces, world))
    if path is not None:
        write_atomically(path, page.encode())
    return page


def show_trajectory(
    trajectory: Trajectory, height: int = 480, title: str | None = None, forces: bool = False, world: int = 0
) -> "HTML | Path":
    """One world in a notebook cell of that `height` [px]; outside a notebook the path of a page to open."""
    return html.show(animation(trajectory, title, forces, world), height)


def plot_trajectory(trajectory: Trajectory, world: int = 0, figure: "Figure | None" = None) -> np.ndarray:
    """Position, speed, angular speed and contact force over time, one curve per dynamic body.

    A force that is invalid, since its step diverged, leaves a gap.

    Args:
        world: which of a batch, counted along all its axes.
        figure: an empty one to draw into, such as `plt.figure(figsize=(9, 6))`; None makes one.
    Returns:
        The matplotlib axes (3, 2): x, y, z of the centre of mass on the left.
    Raises:
        ValueError: observations were recorded instead of states, there is no such world, or no dynamic body.
    """
    trajectory = one_world(trajectory, world)
    states = trajectory.states
    names = [b.name for b in trajectory.model.dynamic]
    if not names:
        raise ValueError("plot: this trajectory has no dynamic body, so there is nothing to plot")
    times = np.asarray(trajectory.times, float)
    q = np.asarray(states.q, float).reshape(times.size, len(names), 7)
    v = np.asarray(states.v, float).reshape(times.size, len(names), 6)
    force = np.linalg.norm(contact_forces(trajectory), axis=-1)
    force[np.asarray(trajectory.summaries.body_status) == Status.DIVERGED] = np.nan
    speed, spin = np.linalg.norm(v[..., :3], axis=-1), np.linalg.norm(v[..., 3:], axis=-1)

    if figure is None:
        figure = import_optional("matplotlib.figure").Figure(figsize=(9.0, 6.0), layout="constrained")
    assert figure is not None
    axes = figure.subplots(3, 2, sharex=True)
    for row, name in enumerate("xyz"):
        plot_series(times, q[..., row], names, f"{name} of COM [m]", axes[row, 0])
    plot_series(times, speed, names, "speed of COM [m/s]", axes[0, 1])
    plot_series(times, spin, names, "angular speed [rad/s]", axes[1, 1])
    # A force belongs to the end of its step, so the start has none.
    plot_series(times[1:], force, names, "contact force [N]", axes[2, 1])
    for ax in axes.flat:
        if ax.get_legend() is not None:
            ax.get_legend().remove()  # one for all, below
    for ax in axes[:-1].flat:
        ax.set_xlabel("")
    for ax in axes[:, 0]:
        _hide_rounding(ax)
    for ax in axes[:, 1]:
        ax.set_ylim(0.0, max(ax.get_ylim()[1], LEAST_TOP))
    figure.suptitle(_heading(trajectory), fontsize="medium")
    if len(names) <= MOST_IN_LEGEND:
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(len(names), 7))
    return axes


def contact_forces(trajectory: Trajectory) -> np.ndarray:
    """(steps, dynamic bodies, 3) total contact force on each dynamic body of a single world, world axes [N]."""
    forces = _contact_forces(trajectory.model, trajectory.reports)
    return np.asarray(forces, float)[:, [i for i, b in enumerate(trajectory.model.bodies) if not b.static]]


@jax.jit
def _contact_forces(model: Model, reports: StepReport) -> jax.Array:
    """(steps, bodies in order of creation, 3): every sample once, whatever the number of bodies."""

    def forces(report: StepReport) -> jax.Array:
        points = contact_points(model, report)
        total = jnp.zeros((len(model.bodies), 3), points.force.dtype)
        return total.at[points.actor_A].add(points.force).at[points.actor_B].add(-points.force)

    return jax.lax.map(forces, reports)  # one by one: as fast on a CPU as batched, compiled three times sooner


def one_world(trajectory: Trajectory, world: int) -> Trajectory:
    """A trajectory of a single world, out of a batch counted along all its axes. ValueError when there is none such."""
    shape = trajectory.summaries.status.shape[:-1]
    count = int(np.prod(shape, dtype=int))
    if world != int(world) or not 0 <= world < count:
        raise ValueError(f"trajectory: world must be a whole number from 0 to {count - 1}; got {world}")
    if not shape:
        return trajectory
    index = tuple(int(i) for i in np.unravel_index(int(world), shape))

    def own(path: Any, leaf: jax.Array) -> jax.Array:
        top, *rest = [getattr(k, "name", getattr(k, "key", None)) for k in path]
        if top != "model":
            return leaf[index]
        if rest[0] == "samples":
            name = f"samples.{rest[-1]}"
        else:
            name = f"{rest[1]}.{rest[2]}" if rest[0] == "colliders" else rest[0]
        return leaf[index] if leaf.ndim > _NDIM[name] else leaf

    return jax.tree_util.tree_map_with_path(own, trajectory)


def _mesh(model: Model, body: BodyInfo) -> VisualMesh:
    color = STATIC_COLOR if body.static else COLOR_CYCLE[body.row % len(COLOR_CYCLE)]  # that of its curves
    return VisualMesh(body.name, np.asarray(model.vertices(body), float), body.triangles.array, color)


def _plane(model: Model, states: State, body: BodyInfo) -> VisualPlane:
    """The plane where it is at the start: one that is carried along itself, as a conveyor is, stays the same."""
    plane = model.colliders["plane"]
    assert isinstance(plane, Plane)
    position = np.asarray(states.static_position, float)[0, :, body.row]
    quaternion = np.asarray(states.static_quaternion, float)[0, :, body.row]
    normal = rotation.rotate(quaternion, np.asarray(plane.normal, float)[:, body.collider_row])
    return VisualPlane(body.name, normal, float(plane.offset[body.collider_row]) + normal @ position)


def _arrows(trajectory: Trajectory) -> np.ndarray:
    """(rows, dynamic bodies, 6): a row has the force of the step that led to it, the start none."""
    force = contact_forces(trajectory)
    com = np.asarray(trajectory.states.q, float).reshape(len(force) + 1, force.shape[1], 7)[..., :3]
    return np.concatenate([com, np.concatenate([np.zeros_like(com[:1]), force])], axis=-1)


def _up(model: Model) -> np.ndarray:
    gravity = np.asarray(model.gravity, float)
    return -gravity if gravity.any() else np.array([0.0, 0.0, 1.0])


def _heading(trajectory: Trajectory) -> str:
    """Steps and their length, and how many did not converge: a picture should not hide it."""
    status = np.asarray(trajectory.summaries.status)
    counts = {s: int((status == s).sum()) for s in (Status.STOPPED, Status.DIVERGED)}
    trouble = "".join(f", {n} {s.name.lower()}" for s, n in counts.items() if n)
    return f"{trajectory.steps} steps of {float(trajectory.h):g} s{trouble}"


def _hide_rounding(ax: Any) -> None:
    """Widen a range of lengths that only rounding fills, so that what stays the same looks so."""
    low, high = ax.dataLim.intervaly
    if high - low < 1e-5 * max(abs(low), abs(high)) + 1e-9:
        margin = 0.05 * max(abs(low), abs(high)) + 1e-3
        ax.set_ylim(low - margin, high + margin)
