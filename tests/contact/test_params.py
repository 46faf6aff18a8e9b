"""Parameters of a pair, the restitution fit, and settings that contradict each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim as js
from jaxsim.contact.params import combine


def combined(a: dict, b: dict, static: bool, padded: bool = False):
    return combine(js.ContactParams(**a), js.ContactParams(**b), static_collider=static, padded=jnp.asarray(padded))


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize(
    "field",
    ["coulomb_friction_coefficient", "viscous_friction_coefficient", "normal_viscous_damping_coefficient"],
)
def test_dissipation_combines_by_geometric_mean(field, static):
    np.testing.assert_allclose(getattr(combined({field: 0.2}, {field: 0.8}, static), field), 0.4, rtol=1e-15)
    assert getattr(combined({field: 0.0}, {field: 0.8}, static), field) == 0
    assert getattr(combined({field: 0.8}, {field: 0.0}, static), field) == 0
    slope = jax.grad(lambda mu: getattr(combined({field: mu}, {field: 0.8}, static), field))
    np.testing.assert_allclose(slope(0.2), 1.0, rtol=1e-14)  # d sqrt(a b) / da = sqrt(b / a) / 2
    assert slope(0.0) == 0


@pytest.mark.parametrize(
    "field, a, b, mean", [("penalty_coefficient", 4e9, 1e9, 2e9), ("friction_falloff_vel", 0.02, 0.005, 0.01)]
)
def test_stiffness_and_falloff_are_the_colliding_actors_against_a_static_one(field, a, b, mean):
    np.testing.assert_allclose(getattr(combined({field: a}, {field: b}, False), field), mean, rtol=1e-15)
    assert getattr(combined({field: a}, {field: b}, True), field) == a


def test_geometry_like_fields_are_the_colliders():
    a = {"penalty_smoothing_half_distance": 1.0, "penalty_threshold_default": 2.0, "max_alignment_normals": 0.5}
    b = {"penalty_smoothing_half_distance": 3e-3, "penalty_threshold_default": 1e-3, "max_alignment_normals": -0.1}
    b["penalty_threshold_extra_padding"] = 4e-3
    for padded, threshold in ((False, 1e-3), (True, 5e-3)):
        p = combined(a, b, True, padded)
        found = [p.smoothing_half_distance, p.threshold, p.max_alignment_normals]
        np.testing.assert_allclose(found, [3e-3, threshold, -0.1], rtol=1e-15)


def test_restitution_calibration_and_its_inverse():
    damping = js.calibrate_normal_viscous_damping_coefficient
    np.testing.assert_allclose(damping(0.5, 2.0), 0.5 * 3.25 / (0.5 * (1 + 4 / 3)) / 2.0, rtol=1e-15)
    assert damping(1.0, 3.0) == 0
    for e in (0.05, 0.2, 0.5, 0.9, 1.0):
        for v in (0.1, 1.4, 10.0):
            np.testing.assert_allclose(js.effective_coefficient_of_restitution(damping(e, v), v), e, rtol=1e-12)


def test_contradicting_load_settings_are_refused():
    with pytest.raises(ValueError, match="explicit_normals"):
        js.SolverParams(explicit_normals=True, implicit_normal_force_for_dissipation=True)
