"""The contact law of one sample: closed forms, autodiff, and a plain restatement of the formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim as js
from jaxsim.contact.law import (
    ContactOptions,
    SampleGeometry,
    dissipation_load,
    friction_potential,
    friction_slope,
    penalty_pressure,
    poly_relu,
    stiffness,
    traction,
)
from jaxsim.contact.params import PairParams
from jaxsim.math.vector import Vec3

MODELS = list(js.FrictionModel)


def pair(**changes) -> PairParams:
    values = {
        "penalty_coefficient": 1e9,
        "smoothing_half_distance": 5e-3,
        "threshold": 1e-3,
        "max_alignment_normals": 0.0,
        "coulomb_friction_coefficient": 0.5,
        "friction_falloff_vel": 0.01,
        "viscous_friction_coefficient": 0.0,
        "normal_viscous_damping_coefficient": 0.0,
    } | changes
    return PairParams(**{k: jnp.asarray(v, float) for k, v in values.items()})


@pytest.mark.parametrize(
    "y, value, slope, curvature",
    [
        (-1.5, 0, 0, 0),
        (-1, 0, 0, 0),
        (-0.5, 3 / 16 - 1 / 4 + 3 / 32 - 1 / 256, 0.15625, 9 / 16),
        (0, 3 / 16, 1 / 2, 3 / 4),
        (0.5, 0.52734375, 0.84375, 9 / 16),
        (1, 1, 1, 0),
        (4, 4, 1, 0),
    ],
)
def test_smooth_ramp_table(y, value, slope, curvature):
    s = 5e-3
    ramp = poly_relu(jnp.asarray(y * s), jnp.asarray(s))
    np.testing.assert_allclose([ramp.value / s, ramp.slope, ramp.curvature * s], [value, slope, curvature], atol=1e-14)


def test_smooth_ramp_slope_and_curvature_are_its_derivatives():
    z, s = jnp.linspace(-2e-3, 2e-3, 41) + 1e-5, jnp.asarray(1e-3)
    ramp = poly_relu(z, s)
    derivative = jax.jit(jax.vmap(jax.grad(lambda z, field: poly_relu(z, s)[field]), (0, None)), static_argnums=1)
    for field in range(2):
        np.testing.assert_allclose(derivative(z, field), ramp[field + 1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("z", [-1e-3, 0.0, 1e-3])
def test_no_smoothing_gives_the_sharp_ramp_and_finite_derivatives(z):
    ramp = poly_relu(jnp.asarray(z), jnp.asarray(0.0))
    assert (ramp.value, ramp.curvature) == (max(z, 0.0), 0.0)
    assert ramp.slope in (0.0, 1.0)
    assert np.isfinite(jax.jit(jax.grad(lambda z, s: poly_relu(z, s).value, (0, 1)))(z, 0.0)).all()


def test_penalty_sets_in_at_the_threshold_and_is_linear_deep_inside():
    p = pair()
    assert penalty_pressure(jnp.asarray(1e-3), p)[0] == 0
    assert penalty_pressure(jnp.asarray(1e-3 - 1e-6), p)[0] > 0
    gap = jnp.asarray(-0.02)
    pressure, slope = penalty_pressure(gap, p)
    np.testing.assert_allclose(pressure, 1e9 * (0.02 - 5e-3 + 1e-3), rtol=1e-14)
    # A patch of 1e-4 m^2 is then a spring of 1e5 N/m.
    np.testing.assert_allclose(slope * 1e-4, 1e5, rtol=1e-14)
    np.testing.assert_allclose(jax.grad(lambda g: penalty_pressure(g, p)[0])(gap) * 1e-4, -1e5, rtol=1e-14)


def test_penalty_pressure_is_the_derivative_of_its_energy():
    p = pair()
    gap = jnp.linspace(-9e-3, 2e-3, 23)

    def energy(gap):
        return 0.5 * p.penalty_coefficient * poly_relu(p.threshold - p.smoothing_half_distance - gap, 5e-3).value ** 2

    pressure, slope = penalty_pressure(gap, p)
    first = jax.grad(energy)
    by_gap = jax.jit(jax.vmap(lambda gap: (first(gap), jax.grad(first)(gap))))
    force, stiff = by_gap(gap)
    np.testing.assert_allclose(-force, pressure, rtol=1e-12, atol=1e-6)
    np.testing.assert_allclose(stiff, slope, rtol=1e-11, atol=1e-3)


@pytest.mark.parametrize("model", MODELS)
def test_friction_slope_and_curvature_are_derivatives_of_the_potential(model):
    eps = jnp.asarray(1e-4)
    r = eps * jnp.asarray([1e-3, 0.1, 0.5, 0.9, 1.1, 2.0, 100.0])
    slip = friction_slope(r, eps, model)
    slope = jax.grad(lambda r: friction_potential(r, eps, model))
    first, second = jax.jit(jax.vmap(lambda r: (slope(r), jax.grad(slope)(r))))(r)
    np.testing.assert_allclose(slip.slope_over_slip * r, first, rtol=1e-12)
    np.testing.assert_allclose(slip.curvature, second, rtol=1e-9, atol=1e-8)
    assert (first <= 1 + 1e-15).all()  # never beyond the Coulomb bound


@pytest.mark.parametrize("model", MODELS)
def test_friction_at_zero_slip(model):
    eps = jnp.asarray(1e-4)
    slip = friction_slope(jnp.asarray(0.0), eps, model)
    np.testing.assert_allclose([slip.slope_over_slip, slip.curvature], 2 / eps, rtol=1e-14)
    assert friction_potential(jnp.asarray(0.0), eps, model) == 0
    assert np.isfinite(jax.jit(jax.jacfwd(lambda r: jnp.stack(friction_slope(r, eps, model))))(0.0)).all()


def test_friction_shares_of_the_bound():
    eps = jnp.asarray(1e-4)
    c1, cinf = (lambda x, m=m: float(friction_slope(x * eps, eps, m).slope_over_slip * x * eps) for m in MODELS)
    np.testing.assert_allclose([c1(0.5), c1(1.0), c1(7.0)], [0.75, 1, 1], rtol=1e-14)
    np.testing.assert_allclose([cinf(0.5), cinf(1.0)], [1 / np.sqrt(2), 2 / np.sqrt(5)], rtol=1e-14)
    np.testing.assert_allclose(friction_potential(3 * eps, eps, MODELS[0]), 3 * eps - eps / 3, rtol=1e-14)


def random_sample(seed):
    """A touching sample with a raw gradient off unit length, tilted normals and some slip."""
    rng = np.random.default_rng(seed)
    gradient = rng.normal([0, 0, 1], 0.1)
    gradient0 = gradient + rng.normal(0, 0.02, 3)
    normal, normal0 = (-v / np.linalg.norm(v) for v in rng.normal([0, 0, 1], 0.3, (2, 3)))
    move = rng.normal(0, 1, 3) * [2e-5, 2e-5, 1e-4] * 10.0 ** rng.uniform(-1.5, 0.5)
    gap = rng.uniform(-3e-3, 0)
    return gap, gradient, normal, gap - 1e-4 * rng.normal(), gradient0, normal0, move


def plain_traction(sample, p, with_collider, h, model, explicit, fading, implicit):
    """The law once more, in NumPy."""
    gap, gradient, normal, gap0, gradient0, normal0, move = sample
    p = {k: float(v) for k, v in vars(p).items()}

    def pressure(d):
        s = p["smoothing_half_distance"]
        y = np.clip((p["threshold"] - s - d) / s, -1, None)
        value = s * (3 / 16 + y / 2 + 3 / 8 * y**2 - y**4 / 16) if y < 1 else s * y
        return p["penalty_coefficient"] * value * (0.5 + 0.75 * y - 0.25 * y**3 if y < 1 else 1.0)

    g, n = (gradient0, normal0) if explicit else (gradient, normal)
    a, m = g @ n, p["max_alignment_normals"]
    if a > m or (gap > p["threshold"] and not (explicit and gap0 <= p["threshold"])):
        return np.zeros(3)
    load = pressure(gap0 if explicit else gap if implicit else gap - gradient @ move)
    load *= (m - a) / (m + 1) if fading else 1.0
    plane = g / np.linalg.norm(g) if with_collider else -n
    approach = move @ plane
    u = move - approach * plane
    r, eps = np.linalg.norm(u), p["friction_falloff_vel"] * h
    if model is js.FrictionModel.C1_REGULARIZED:
        slope = (2 - r / eps) / eps if r < eps else 1 / r
    else:
        slope = 1 / np.sqrt(r * r + eps * eps / 4)
    friction = p["coulomb_friction_coefficient"] * slope * u + p["viscous_friction_coefficient"] / h * u
    friction += p["normal_viscous_damping_coefficient"] / h * approach * plane
    return pressure(gap) * gradient - load * friction


@pytest.mark.parametrize(
    "model, explicit, fading, implicit",
    [
        (MODELS[0], False, True, False),  # the default
        (MODELS[0], True, True, False),
        (MODELS[0], False, False, True),
        (MODELS[1], False, False, False),
        (MODELS[1], True, False, False),
        (MODELS[1], False, True, True),
    ],
)
def test_traction_is_the_stated_law(model, explicit, fading, implicit):
    p = pair(viscous_friction_coefficient=0.3, normal_viscous_damping_coefficient=0.7, max_alignment_normals=-0.85)
    options = ContactOptions(model, explicit, fading, implicit)
    h = jnp.asarray(2e-3)
    samples = [random_sample(seed) for seed in range(40)]

    @jax.jit
    def evaluate(batch, with_collider):
        gap, gradient, normal, gap0, gradient0, normal0, move = (jnp.moveaxis(x, 0, -1) for x in batch)
        now = SampleGeometry(gap, Vec3.of(gradient), Vec3.of(normal))
        start = SampleGeometry(gap0, Vec3.of(gradient0), Vec3.of(normal0))
        load = dissipation_load(now, start, Vec3.of(move), broadcast, with_collider, h[None], options)
        return traction(now, load, broadcast, h[None]).stack(-1)

    broadcast = jax.tree.map(lambda x: x[None], p)
    batch = tuple(jnp.asarray(np.stack(x)) for x in zip(*samples))
    for with_collider in (True, False):
        ours = evaluate(batch, jnp.asarray([with_collider]))
        plain = [plain_traction(s, p, with_collider, 2e-3, model, explicit, fading, implicit) for s in samples]
        assert any(not t.any() for t in plain) and any(t.any() for t in plain)  # some rejected, some not
        np.testing.assert_allclose(ours, plain, rtol=1e-10, atol=1e-6)


def test_penalty_stiffness_is_the_derivative_of_the_traction():
    """Without dissipation on a plane nothing is dropped."""
    p = pair(coulomb_friction_coefficient=0.0)
    h, options = jnp.asarray(2e-3), ContactOptions()
    up = jnp.asarray([0.0, 0.6, 0.8])

    def at(x):
        now = SampleGeometry(up @ x, Vec3.of(up), Vec3.of(-up))
        return now, dissipation_load(now, now, Vec3.of(x), p, jnp.asarray(True), h, options)

    x = jnp.asarray([1e-3, -1e-3, -5e-4])
    slope = jax.jit(jax.jacfwd(lambda x: traction(*at(x), p, h).stack()))(x)
    matrix = jax.jit(lambda x: stiffness(*at(x), p, h, jnp.asarray(False)).array)(x)
    np.testing.assert_allclose(matrix, -slope, rtol=1e-12, atol=1e-4)


@pytest.mark.parametrize("model", MODELS)
def test_friction_stiffness_is_the_derivative_at_fixed_load(model):
    """Explicit normals freeze load and plane, so the tangent is exact; the fitted matrix is the secant, and stiffer."""
    p = pair(viscous_friction_coefficient=0.2, normal_viscous_damping_coefficient=0.4)
    h, options = jnp.asarray(2e-3), ContactOptions(friction_model=model, explicit_normals=True)
    up = jnp.asarray([0.0, 0.0, 1.0])
    start = SampleGeometry(jnp.asarray(-1e-3), Vec3.of(up), Vec3.of(-up))

    def at(move):
        now = SampleGeometry(-1e-3 + up @ move, Vec3.of(up), Vec3.of(-up))
        return now, dissipation_load(now, start, Vec3.of(move), p, jnp.asarray(True), h, options)

    move = jnp.asarray([8e-6, 5e-6, -1e-5])
    slope = jax.jit(jax.jacfwd(lambda x: traction(*at(x), p, h).stack()))(move)
    matrix = jax.jit(lambda x, fitted: stiffness(*at(x), p, h, fitted).array)
    tangent, fitted = (matrix(move, jnp.asarray(f)) for f in (False, True))
    np.testing.assert_allclose(tangent, -slope, rtol=1e-9, atol=1e-3)
    assert np.linalg.eigvalsh(fitted - tangent).min() > -1e-3
