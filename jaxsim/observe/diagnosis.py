"""How fast bodies may meet, and how finely they must be sampled, before contact is missed."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..contact.law import poly_relu
from ..contact.params import ColliderType
from ..geometry.mesh_resolution import spread_points
from ..geometry.sdf_grid import SdfGrids
from ..model.model import BodyInfo, ContactGroup, Model
from ..model.pair_params import effective_params
from ..model.state import State
from .distance import distance_to_collider

_PROBES = 500  # points of a surface where the body's thickness is measured
_THIN_SHARE = 0.05  # of the surface may be thinner than the thickness that counts: sharp edges are
_SKIN = 1e-3  # of the longest side: where a way through the body begins, and its shortest stride
_STRIDES = 200
_SHOWN = 12  # warnings that are printed


@dataclasses.dataclass(frozen=True)
class PairLimits:
    """What contact of one body's samples with another body's collider can bear."""

    colliding: str  # owns the samples
    collider: str
    speed: float  # at which they may meet [m/s]
    thickness: float  # of the collider, where it is thin [m]; infinite for a plane
    longest_step: float  # [s]: in a longer one a sample may pass the middle of the collider and be pushed out behind
    sample_spacing: float  # of the colliding body, where it is coarsest [m]
    stopping_area: float  # [m^2] that must touch for the penalty to stop the colliding body before that middle
    surface_area: float  # of the colliding body's samples [m^2]


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """Limits of contact, pair by pair, against a step size. Print it."""

    h: float  # [s]
    pairs: tuple[PairLimits, ...]

    @property
    def longest_step(self) -> float:
        """The largest step size [s] in which no pair passes through another; infinite where nothing moves."""
        return min((pair.longest_step for pair in self.pairs), default=np.inf)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is in danger of being missed, with the remedy; empty where all is well."""
        mutual = {(pair.colliding, pair.collider): pair for pair in self.pairs}
        found = []
        for pair in self.pairs:
            who = f"{pair.colliding!r} meeting {pair.collider!r}"
            if pair.longest_step < self.h:
                found.append(
                    f"{who} at {pair.speed:.3g} m/s: it moves {pair.speed * self.h:.3g} m in a step of {self.h:.3g} s "
                    f"and may pass through {pair.thickness:.3g} m; take h <= {pair.longest_step:.2g} s"
                )
            if pair.stopping_area > pair.surface_area / 2:
                found.append(
                    f"{who} at {pair.speed:.3g} m/s: the penalty stops it within the {pair.thickness:.3g} m only where "
                    f"{pair.stopping_area:.2g} m^2 touch, and its whole surface has {pair.surface_area:.2g} m^2; raise "
                    "penalty_coefficient, or lower penalty_smoothing_half_distance"
                )
            other = mutual.get((pair.collider, pair.colliding))
            missed_by_other = other is None or other.sample_spacing > other.thickness
            if pair.sample_spacing > pair.thickness and missed_by_other:
                found.append(
                    f"{who}: met edge on, {pair.thickness:.3g} m fit between its samples, which are up to "
                    f"{pair.sample_spacing:.3g} m apart; sample it more finely (quadrature=, subdivisions=, or "
                    "TriMesh.subdivide)"
                )
        return tuple(found)

    def __str__(self) -> str:
        found = self.warnings
        lines = [f"{len(self.pairs)} pairs; longest safe step {self.longest_step:.3g} s, asked for {self.h:.3g} s"]
        lines += [f"  ! {text}" for text in found[:_SHOWN]] or ["  no pair is in danger of being missed"]
        if len(found) > _SHOWN:
            lines.append(f"  ... and {len(found) - _SHOWN} more in .warnings")
        return "\n".join(lines)


def diagnose(model: Model, state: State, h: float, speed: float | None = None) -> Diagnosis:
    """Whether steps of `h` can miss contact: bodies that pass through thin ones, or through between samples.

    A sample that starts a step beyond the contact threshold must not end it past the collider's middle, where the
    distance's gradient turns round: speed * h <= thickness / 2 + threshold. The penalty's energy per area at that
    depth, k ramp^2 / 2, must add up to the kinetic energy of the approach.

    Args:
        h: step size [s].
        speed: at which any two bodies may meet [m/s]; the state's own relative speed, turning included, when None.

    Raises:
        ValueError: `h` or `speed` is not positive and finite.
    """
    for name, value in (("h", h), ("speed", speed)):
        if value is not None and not (np.ndim(value) == 0 and np.isfinite(value) and value > 0):
            raise ValueError(f"diagnose: {name} must be one positive, finite number; got {value}")
    bodies = [*model.dynamic, *(b for b in model.bodies if b.static)]
    thickness = np.array([_thickness(model, body) for body in bodies])
    spacing, area = np.array([_sampling(model, body) for body in bodies]).reshape(-1, 2).T
    motion = _motion(model, state, bodies)
    pairs = []
    for group in model.groups:
        a, b = _allowed(group)
        fastest = np.full(len(a), speed) if speed is not None else _speeds(motion, a, b)
        way, energy = _yielding(model, group, a, b, thickness[b])
        longest = np.divide(way, fastest, out=np.full(len(a), np.inf), where=fastest > 0)
        needed = _reduced_mass(model, a, b) * fastest**2 / 2
        stopping = np.divide(needed, energy, out=np.where(needed > 0, np.inf, 0.0), where=energy > 0)
        columns = (fastest, thickness[b], longest, spacing[a], stopping, area[a])
        for k, (i, j) in enumerate(zip(a, b)):
            pairs.append(PairLimits(bodies[i].name, bodies[j].name, *(float(column[k]) for column in columns)))
    return Diagnosis(float(h), tuple(pairs))


def _allowed(group: ContactGroup) -> tuple[np.ndarray, np.ndarray]:
    """Columns of the two bodies of every pair that may meet."""
    owner, collider = np.nonzero(group.allowed.array)
    return group.owner_body.array[owner], group.collider_body.array[collider]


def _yielding(
    model: Model, group: ContactGroup, a: np.ndarray, b: np.ndarray, thickness: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """From the threshold to the middle of the collider: the way there [m], and the penalty's energy [J/m^2]."""
    padded = np.array([body.collider.padded for body in model.dynamic])[a][:, None]
    one_world = jax.tree.map(lambda x: x[..., None], model)
    params = effective_params(one_world, a, b, static_collider=group.static_collider, padded=padded)
    threshold, smooth = (np.asarray(x)[:, 0] for x in (params.threshold, params.smoothing_half_distance))
    way = thickness / 2 + threshold
    ramp = np.asarray(poly_relu(jnp.asarray(np.minimum(way, 1e6) - smooth), jnp.asarray(smooth)).value)
    return way, np.asarray(params.penalty_coefficient)[:, 0] * ramp**2 / 2


def _reduced_mass(model: Model, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    inverse = np.append(1.0 / np.asarray(model.mass, float), np.zeros(model.n_static))
    return 1.0 / (inverse[a] + inverse[b])


def _motion(model: Model, state: State, bodies: list[BodyInfo]) -> tuple[np.ndarray, np.ndarray]:
    """Velocity of each body's COM, and how much faster [m/s] its farthest point moves because the body turns."""
    linear, turning = np.zeros((len(bodies), 3)), np.zeros(len(bodies))
    v = np.asarray(state.v, float).reshape(-1, 6)
    linear[: len(v)] = v[:, :3]
    for k, body in enumerate(model.dynamic):
        arms = np.asarray(model.vertices(body)) - np.asarray(model.center_of_mass)[:, body.row]
        turning[k] = np.linalg.norm(v[k, 3:]) * np.linalg.norm(arms, axis=1).max(initial=0.0)
    return linear, turning


def _speeds(motion: tuple[np.ndarray, np.ndarray], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    linear, turning = motion
    return np.linalg.norm(linear[a] - linear[b], axis=1) + turning[a] + turning[b]


def _sampling(model: Model, body: BodyInfo) -> tuple[float, float]:
    """Side of the largest patch that one sample stands for [m], and the area of all [m^2]."""
    if body.bucket < 0:
        return 0.0, 0.0
    weight = np.asarray(model.samples[body.bucket].weight)[:, body.bucket_row]
    return float(np.sqrt(weight.max(initial=0.0))), float(weight.sum())


def _thickness(model: Model, body: BodyInfo) -> float:
    """How thick the body's collider is [m] where it is thin: ways straight through it, from points of its surface."""
    if body.collider_row < 0 or body.collider is ColliderType.PLANE:
        return np.inf
    vertices, triangles = np.asarray(model.vertices(body), float), body.triangles.array
    if not len(triangles):
        return 2.0 * _depth(model, body)
    points, on = spread_points(vertices, triangles, _PROBES)
    a, b, c = vertices[triangles[on]].transpose(1, 0, 2)
    normal = np.cross(b - a, c - a)
    normal = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    points = points - np.asarray(model.collider_center)[:, model.column(body)]
    through = np.asarray(_ways_through(model, body, jnp.asarray(points), jnp.asarray(normal)))
    return float(np.quantile(through, _THIN_SHARE))


def _ways_through(
    model: Model, body: BodyInfo, points: Float[Array, "n 3"], normal: Float[Array, "n 3"]
) -> Float[Array, "n"]:
    """Length of the straight ways that lead inwards from points at the surface until they are outside again [m]."""
    least = _SKIN * jnp.max(jnp.ptp(points, axis=0))

    def stride(_, way):
        inside = -distance_to_collider(model, body, (points - way[:, None] * normal).astype(model.gravity.dtype))
        return way + jnp.where(inside > 0, jnp.maximum(inside, least), 0.0).astype(way.dtype)

    return jax.lax.fori_loop(0, _STRIDES, stride, jnp.full(len(points), least))


def _depth(model: Model, body: BodyInfo) -> float:
    """Largest distance [m] of a node inside a grid that has no surface."""
    grids = model.colliders[body.collider.value]
    assert isinstance(grids, SdfGrids)  # planes apart, only a grid is a body without a surface
    return float(np.maximum(-np.min(np.asarray(grids.grid(body.collider_row).values)), 0.0))
