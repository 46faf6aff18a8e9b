"""The traction on one surface sample: smooth penalty, regularised Coulomb friction, tangential and normal damping.

Written for one sample and broadcasting over any shape. All vectors are in the collider's axes. Source: SuperDex
Physics 1.0.1, `contact_utils.h` and `activations.h`.
"""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool

from ..math.kernel import kernel
from ..math.safe import safe_divide
from ..math.vector import Component, Mat3, Vec3, add_to_diagonal, dot, norm, outer, select
from .params import FrictionModel, PairParams


class ContactOptions(eqx.Module):
    """Choices of the law that select code."""

    friction_model: FrictionModel = eqx.field(static=True, default=FrictionModel.C1_REGULARIZED)
    explicit_normals: bool = eqx.field(static=True, default=False)
    fade_friction: bool = eqx.field(static=True, default=True)
    implicit_normal_force_for_dissipation: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        if self.explicit_normals and self.implicit_normal_force_for_dissipation:
            raise ValueError(
                "SolverParams: implicit_normal_force_for_dissipation=True takes the load at the present distance, "
                "explicit_normals=True at the stage start; set at most one of them"
            )


class Ramp(NamedTuple):
    """Value, slope and curvature of the smoothed ramp."""

    value: Component  # [m]
    slope: Component
    curvature: Component  # [1/m]


def poly_relu(z: Component, s: Component) -> Ramp:
    """max(z, 0) [m], rounded to a quartic within half width `s` [m]; `s = 0` gives the sharp ramp."""
    # Where s is zero the quartic is never selected, but its derivative is still formed: it must not divide by zero.
    width = jnp.where(s > 0, s, 1.0)
    y = z / width
    below, above = z <= -s, z >= s

    def choose(quartic, linear):
        return jnp.where(above, linear, jnp.where(below, 0.0, quartic))

    return Ramp(
        choose(width * (3 / 16 + y / 2 + 3 * y * y / 8 - y * y * y * y / 16), z),
        choose(0.5 + 0.75 * y - 0.25 * y * y * y, 1.0),
        choose(0.75 * (1 - y * y) / width, 0.0),
    )


class Slip(NamedTuple):
    """Derivatives of the friction potential f(r) over the slip distance r."""

    slope_over_slip: Component  # f'(r) / r [1/m]
    curvature: Component  # f''(r) [1/m]


def friction_potential(r: Component, eps: Component, model: FrictionModel) -> Component:
    """Regularised slip distance f(r) [m]: quadratic at zero, growing like r beyond `eps` [m]."""
    if model is FrictionModel.C1_REGULARIZED:
        return jnp.where(r < eps, r * r / eps * (1 - r / (3 * eps)), r - eps / 3)
    return jnp.sqrt(r * r + eps * eps / 4) - eps / 2


@partial(kernel, static_argnums=2)
def friction_slope(r: Component, eps: Component, model: FrictionModel) -> Slip:
    """f'/r and f'' of `friction_potential`, regular at zero slip (both are 2/eps there)."""
    if model is FrictionModel.C1_REGULARIZED:
        # f'/r is a polynomial below eps, so zero slip needs neither root nor quotient.
        sticking = r < eps
        return Slip(
            jnp.where(sticking, (2 - r / eps) / eps, safe_divide(jnp.ones_like(r), jnp.where(sticking, 1.0, r))),
            jnp.where(sticking, 2 * (1 - r / eps) / eps, 0.0),
        )
    eps = jnp.maximum(eps, jnp.finfo(eps.dtype).eps)
    root = jnp.sqrt(r * r + eps * eps / 4)
    return Slip(1 / root, eps * eps / (4 * root * root * root))


class SampleGeometry(NamedTuple):
    """One sample relative to one collider, at one instant."""

    gap: Component  # signed distance [m]
    gradient: Vec3  # raw gradient of the distance: not unit on a sampled grid
    normal_A: Vec3  # outward unit normal of A's surface


class Load(NamedTuple):
    """What dissipation is proportional to, and in which plane it acts."""

    pressure: Component  # N [Pa]
    normal: Vec3  # unit
    active: Bool[Array, "*b"]
    slip: Vec3  # tangential part of the relative displacement [m]
    approach: Component  # normal part [m]
    friction: Slip


@kernel
def penalty_pressure(gap: Component, pair: PairParams) -> tuple[Component, Component]:
    """Pressure along the distance gradient [Pa] and its (Gauss-Newton) stiffness [Pa/m]; zero beyond the threshold."""
    ramp = poly_relu(pair.threshold - pair.smoothing_half_distance - gap, pair.smoothing_half_distance)
    pressure = pair.penalty_coefficient * ramp.value * ramp.slope
    return pressure, pair.penalty_coefficient * (ramp.slope * ramp.slope + ramp.value * ramp.curvature)


def fade(alignment: Component, pair: PairParams) -> Component:
    """Share of the load that drives dissipation: one for opposed normals, zero at the rejection limit."""
    m = pair.max_alignment_normals
    return jnp.where(m > -1.0, (m - alignment) / jnp.where(m > -1.0, m + 1.0, 1.0), 1.0)


@kernel
def friction_normal(sample: SampleGeometry, with_collider_normal: Bool[Array, "*b"]) -> Vec3:
    """Unit normal of the friction plane: the collider's, or the sample's where asked for or where there is no other."""
    length = norm(sample.gradient)
    usable = with_collider_normal & (length > 100 * jnp.finfo(length.dtype).eps)
    unit = sample.gradient * (1.0 / jnp.where(usable, length, 1.0))
    return select(usable, unit, -sample.normal_A)


def dissipation_load(
    now: SampleGeometry,
    start: SampleGeometry,
    displacement: Vec3,
    pair: PairParams,
    with_collider_normal: Bool[Array, "*b"],
    h: Component,
    options: ContactOptions,
) -> Load:
    """Load, plane and activity of one sample.

    Args:
        now: the sample at the present iterate.
        start: the sample at the stage start; only read with `explicit_normals`.
        displacement: relative displacement of the sample over the stage [m], in the collider's axes.
        with_collider_normal: friction acts in the plane of the collider's normal, else of the sample's.
        h: stage length [s].
    """
    reference = start if options.explicit_normals else now
    alignment = _dot(reference.gradient, reference.normal_A)
    active = now.gap <= pair.threshold
    if options.explicit_normals:
        # What touched at the stage start keeps counting, so that the residual stays continuous over the iterates.
        gap = start.gap
        active = active | (start.gap <= pair.threshold)
    elif options.implicit_normal_force_for_dissipation:
        gap = now.gap
    else:
        gap = now.gap - dot(now.gradient, displacement)  # the old distance, to first order
    active = active & (alignment <= pair.max_alignment_normals)

    pressure, _ = penalty_pressure(gap, pair)
    if options.fade_friction:
        pressure = pressure * fade(alignment, pair)
    normal = friction_normal(reference, with_collider_normal)
    approach = _dot(displacement, normal)
    slip = _tangential(displacement, normal, approach)
    friction = friction_slope(_norm(slip), pair.friction_falloff_vel * h, options.friction_model)
    return Load(jnp.where(active, pressure, 0.0), normal, active, slip, approach, friction)


_dot, _norm = kernel(dot), kernel(norm)


@kernel
def _tangential(displacement: Vec3, normal: Vec3, approach: Component) -> Vec3:
    return displacement - normal * approach


def traction(now: SampleGeometry, load: Load, pair: PairParams, h: Component) -> Vec3:
    """Force per area on A [Pa]. This is the residual's own law: its derivative is left to autodiff."""
    pressure, _ = penalty_pressure(now.gap, pair)
    rates = _friction_rates(load, pair, h)
    return _traction(now.gradient, load, jnp.where(load.active, pressure, 0.0), *rates)


@kernel
def _friction_rates(load: Load, pair: PairParams, h: Component) -> tuple[Component, Component]:
    """Tangential and normal damping of the load [Pa/m]."""
    tangential = pair.coulomb_friction_coefficient * load.friction.slope_over_slip + (
        pair.viscous_friction_coefficient / h
    )
    return load.pressure * tangential, load.pressure * (pair.normal_viscous_damping_coefficient / h)


@kernel
def _traction(gradient: Vec3, load: Load, pressure: Component, tangential: Component, normal: Component) -> Vec3:
    return gradient * pressure - load.slip * tangential - load.normal * (normal * load.approach)


def stiffness(now: SampleGeometry, load: Load, pair: PairParams, h: Component, fitted: Bool[Array, "*b"]) -> Mat3:
    """Symmetric positive approximation of minus the traction's derivative [Pa/m].

    For the forward solver only: the derivatives of load, friction plane and distance gradient are dropped. `fitted`
    takes the secant f'/r of the friction for its tangent f'' along the slip, which is stiffer and safer far from the
    solution.
    """
    _, pressing = penalty_pressure(now.gap, pair)
    tangential, damping = _friction_rates(load, pair, h)
    return _stiffness(
        now.gradient,
        load,
        jnp.where(load.active, pressing, 0.0),
        tangential,
        damping,
        _softening(load, pair, fitted),
    )


@kernel
def _softening(load: Load, pair: PairParams, fitted: Bool[Array, "*b"]) -> Component:
    """How much less stiff friction is along the slip than across it, over the squared slip [Pa/m^3]."""
    slip_sq = dot(load.slip, load.slip)
    moving = ~fitted & (slip_sq > 1e-22)
    less = load.friction.curvature - load.friction.slope_over_slip
    scale = pair.coulomb_friction_coefficient * load.pressure / jnp.where(moving, slip_sq, 1.0)
    return jnp.where(moving, scale * less, 0.0)


@kernel
def _stiffness(
    gradient: Vec3, load: Load, pressing: Component, tangential: Component, damping: Component, softening: Component
) -> Mat3:
    return add_to_diagonal(
        outer(gradient, gradient * pressing)
        + outer(load.normal, load.normal * (damping - tangential))
        + outer(load.slip, load.slip * softening),
        tangential,
    )
