"""`diagnose` says beforehand which step size, stiffness and sampling let contact be missed; steps bear it out."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim as js

SPEED = 5.0
STIFF = js.ContactParams(penalty_smoothing_half_distance=5e-4)


@functools.cache
def plate(mass=0.02, contact=STIFF, subdivisions=0):
    """A block flies at a static plate, 2 mm thick."""
    scene = js.Scene(gravity=(0, 0, 0))
    scene.add_rigid(js.Box((0.2, 0.2, 0.001)), static=True, contact=contact, name="plate")
    scene.add_rigid(
        js.Box((0.02, 0.02, 0.02)),
        mass=mass,
        position=(0, 0, 0.05),
        linear_velocity=(0, 0, -SPEED),
        contact=contact,
        subdivisions=subdivisions,
        name="block",
    )
    return scene.build(jnp.float64)


@jax.jit
def share_through(h):
    """Share of 24 starts, five steps' ways apart from first to last, from which the block gets through."""
    model, start = plate()

    def height(gap):
        state = js.set_pose(model, start, "block", position=jnp.zeros(3).at[2].set(0.022 + gap))
        state = js.set_velocity(model, state, "block", jnp.array([0.0, 0.0, -SPEED]))
        state = jax.lax.fori_loop(0, 20, lambda _, s: js.step(model, s, None, h)[0], state)
        return js.pose(model, state, "block").position[2]

    return jnp.mean(jax.vmap(height)(jnp.linspace(0.0, 5 * SPEED * h, 24, endpoint=False)) < 0)


def test_a_plate_stops_what_hits_it_up_to_the_step_that_is_told_and_not_far_beyond():
    found = js.diagnose(*plate(), 1e-3)
    assert found.longest_step == pytest.approx((0.001 + 0.001) / SPEED, rel=2e-3)
    assert any("'block' meeting 'plate' at 5 m/s" in text and "h <= 0.0004 s" in text for text in found.warnings)
    assert share_through(0.99 * found.longest_step) == 0.0
    assert share_through(2.0 * found.longest_step) > 0.0
    assert share_through(4.0 * found.longest_step) > 0.3


def test_a_penalty_too_soft_for_the_blow_is_told():
    """With the default smoothing, half a thin plate hardly resists."""
    soft = js.diagnose(*plate(mass=1.0, contact=js.ContactParams()), 1e-4)
    assert any("penalty_smoothing_half_distance" in text for text in soft.warnings)
    assert not any("penalty_coefficient" in text for text in js.diagnose(*plate(), 1e-4).warnings)


def test_the_area_that_stops_a_body_is_that_of_the_energy_balance():
    (pair,) = js.diagnose(*plate(), 1e-4).pairs
    ramp = 0.001 + 0.001 - 5e-4
    assert pair.stopping_area * 1e9 * ramp**2 / 2 == pytest.approx(0.02 * SPEED**2 / 2, rel=5e-3)


def test_what_fits_between_samples_is_told_until_they_are_dense_enough():
    coarse, fine = (js.diagnose(*plate(subdivisions=n), 1e-4) for n in (0, 7))
    assert any("fit between its samples" in text for text in coarse.warnings)
    assert fine.pairs[0].sample_spacing < 0.0025 < coarse.pairs[0].sample_spacing
    assert not any("met edge on" in text for text in js.diagnose(*plate(subdivisions=9), 1e-4).warnings)


@pytest.mark.parametrize(
    ("shape", "thickness"),
    [
        (js.Sphere(0.1), 0.2),
        (js.Box((0.1, 0.2, 0.01)), 0.02),
        (js.Capsule(0.05, 0.2), 0.1),
        (js.Cylinder(0.05, 0.01), 0.02),
        (js.Plane(), np.inf),
    ],
    ids=lambda x: type(x).__name__ if not isinstance(x, float) else f"{x}",
)
def test_the_thickness_of_a_shape_is_its_shortest_way_through(shape, thickness):
    scene = js.Scene()
    scene.add_rigid(shape, static=True, name="wall")
    scene.add_rigid(js.Box((0.1, 0.1, 0.1)), position=(0, 0, 1), name="block")
    (pair,) = js.diagnose(*scene.build(jnp.float64), 0.01).pairs
    # Triangles of a round surface lie inside of it, and so do the ways that begin there.
    assert pair.thickness == pytest.approx(thickness, rel=0.05)


def test_bodies_at_rest_and_empty_scenes_are_in_no_danger():
    model, state = plate()
    still = js.set_velocity(model, state, "block", jnp.zeros(3))
    assert js.diagnose(model, still, 0.01).longest_step == np.inf
    assert js.diagnose(model, still, 0.01, speed=SPEED).longest_step == pytest.approx(4e-4, rel=2e-3)
    assert js.diagnose(*js.Scene().build(jnp.float64), 0.01).warnings == ()


@pytest.mark.parametrize(("h", "speed"), [(0.0, None), (-1.0, None), (float("nan"), None), (0.01, 0.0)])
def test_step_sizes_and_speeds_that_are_none_are_refused(h, speed):
    with pytest.raises(ValueError, match=r"diagnose: (h|speed) must be one positive, finite number; got"):
        js.diagnose(*plate(), h, speed)
