"""Which bodies may touch, and with what parameters: filters, overrides, and what a pair ends up with."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim as js


def stacked(prepare=None, upper=None, lower=None, h=0.0):
    """A cube resting in another, which rests in the ground, each by 1 mm; overlap is all that makes contact."""
    scene = js.Scene()
    scene.add_plane(name="ground", layer="world")
    box = js.Box((0.05, 0.05, 0.05))
    scene.add_rigid(box, position=(0, 0, 0.049), name="lower", layer="things", contact=lower)
    scene.add_rigid(box, position=(0, 0, 0.148 + h), name="upper", layer="things", contact=upper)
    if prepare is not None:
        prepare(scene)
    return scene.build(jnp.float64)


def directions(model, state):
    """Ordered pairs (A, B) whose samples carry load at the start."""
    points = js.evaluate_contacts(model, state)
    names = [b.name for b in model.bodies]
    on = np.asarray(points.active)
    return {(names[a], names[b]) for a, b in zip(np.asarray(points.actor_A)[on], np.asarray(points.actor_B)[on])}


ALL = {("lower", "ground"), ("lower", "upper"), ("upper", "lower")}


@pytest.mark.parametrize(
    ("prepare", "left"),
    [
        (lambda s: None, ALL),
        (lambda s: s.disable_contact("upper", "lower"), {("lower", "ground")}),
        (lambda s: s.disable_contact("upper", "lower", one_way=True), ALL - {("upper", "lower")}),
        (lambda s: s.disable_layer_contact("things", "things"), {("lower", "ground")}),
        (lambda s: s.disable_layer_contact("things", "world"), ALL - {("lower", "ground")}),
        (lambda s: s.disable_layer_contact("world", "things", one_way=True), ALL),
        (
            lambda s: (s.disable_contact("upper", "lower"), s.enable_contact("lower", "upper", one_way=True)),
            ALL - {("upper", "lower")},
        ),
        # Both levels have to allow a pair.
        (
            lambda s: (s.disable_layer_contact("things", "things"), s.enable_contact("upper", "lower")),
            {("lower", "ground")},
        ),
    ],
    ids=["none", "actors", "actors one way", "layer", "two layers", "not owned", "half undone", "both levels"],
)
def test_filters_leave_the_directions_they_should(prepare, left):
    assert directions(*stacked(prepare)) == left


def test_an_unknown_or_foreign_actor_is_refused():
    foreign = js.Scene().add_plane(name="elsewhere")
    scene = js.Scene()
    scene.add_plane(name="ground")
    for actor in ("grond", foreign):
        with pytest.raises(ValueError, match=r"no actor .*'ground'"):
            scene.disable_contact(actor, "ground")


def test_a_pair_uses_combined_parameters_by_direction():
    a = js.ContactParams(coulomb_friction_coefficient=0.25, penalty_coefficient=1e7, friction_falloff_vel=0.02)
    b = js.ContactParams(coulomb_friction_coefficient=1.0, penalty_coefficient=4e7, penalty_threshold_default=2e-3)
    model, _ = stacked(upper=a, lower=b)
    there, back = js.pair_parameters(model, "upper", "lower"), js.pair_parameters(model, "lower", "upper")
    assert float(there.coulomb_friction_coefficient) == float(back.coulomb_friction_coefficient) == pytest.approx(0.5)
    assert float(there.penalty_coefficient) == pytest.approx(float(back.penalty_coefficient), rel=1e-14)
    # The distance at which contact sets in is the collider's own.
    assert float(there.threshold) - float(back.threshold) == pytest.approx(1e-3)
    with pytest.raises(ValueError, match=r"'ground'.*owns no samples"):
        js.pair_parameters(model, "ground", "upper")


def test_an_override_holds_for_its_pair_in_both_directions_and_for_no_other():
    model, _ = stacked(lambda s: s.override_pair("upper", "lower", coulomb_friction_coefficient=0.9))
    plain, _ = stacked()
    for pair, changed in {("upper", "lower"): True, ("lower", "upper"): True, ("lower", "ground"): False}.items():
        mine, other = (jax.tree.map(float, js.pair_parameters(m, *pair)) for m in (model, plain))
        expected = {"coulomb_friction_coefficient": 0.9} if changed else {}
        assert vars(mine) == pytest.approx(vars(other) | expected)


def test_force_of_an_overridden_pair_scales_with_its_coefficient_and_so_does_the_gradient():
    model, state = stacked(lambda s: s.override_pair("upper", "lower", penalty_coefficient=1e7))

    def force(k):
        points = js.evaluate_contacts(js.replace(model, ("upper", "lower"), penalty_coefficient=k), state)
        on_upper = points.actor_A == [b.name for b in model.bodies].index("upper")
        return jnp.sum(jnp.where(on_upper, points.force[:, 2], 0.0))

    at, slope = jax.value_and_grad(force)(2e7)
    assert at == pytest.approx(2.0 * float(force(1e7)), rel=1e-12)
    assert slope == pytest.approx(float(at) / 2e7, rel=1e-12)
    assert float(js.get(model, ("lower", "upper"), "penalty_coefficient")) == 1e7
    with pytest.raises(ValueError, match=r"'ground' and 'upper'.*does not override 'penalty_coefficient'"):
        js.replace(model, ("ground", "upper"), penalty_coefficient=1.0)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"penalty_threshold_default": 1.0}, "no field 'penalty_threshold_default'.*known are penalty_coefficient"),
        ({"coulomb_friction_coefficient": -1.0}, "coulomb_friction_coefficient.*>= 0.*-1.0"),
        ({"friction_falloff_vel": 0.0}, "friction_falloff_vel must be positive"),
    ],
)
def test_a_wrong_override_is_refused(values, words):
    with pytest.raises(ValueError, match=f"'lower' and 'upper'.*{words}"):
        stacked(lambda s: s.override_pair("upper", "lower", **values))


def test_a_coefficient_that_one_side_lacks_is_told_once_and_not_where_it_is_overridden():
    damped = js.ContactParams(normal_viscous_damping_coefficient=100.0)
    with pytest.warns(
        UserWarning, match=r"normal_viscous_damping_coefficient is zero for one of 'lower' and .*override_pair"
    ) as told:
        stacked(lower=damped)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stacked(lambda s: (s.disable_contact("upper", "lower"), s.disable_contact("upper", "ground")), upper=damped)
