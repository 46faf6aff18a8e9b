"""Steps against formulas: rest, creep, slip, spin, fall, loads, and static bodies that are moved.

All worlds of this file are one kind of scene, a box over a plane. They run side by side, each with its own numbers, so
that one compiled program serves every test.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import jaxsim as js

WIDTH = 8  # worlds of the compiled program
G = 9.81
TILT = np.deg2rad(20.0)
FAR = 10.0  # above the plane [m], where nothing touches


def scene():
    s = js.Scene()
    s.add_plane(name="ground")
    s.add_rigid(js.Box((0.05, 0.05, 0.05)), mass=1.0, name="box")
    return s.build("float64")


MODEL, STATE = scene()


def world(model=None, state=None, control=None, h=0.01, **fields):
    """A world: fields go to box and plane alike when they are contact parameters, else to the box."""
    model = MODEL if model is None else model
    state = STATE if state is None else state
    contact = set(vars(model.contact))
    for name, value in fields.items():
        for actor in ("box", "ground") if name in contact else ("box",):
            model = js.replace(model, actor, **{name: value})
    return model, state, js.Control.zeros(model) if control is None else control, jnp.asarray(h)


def placed(height, linear=(0, 0, 0), angular=(0, 0, 0), quaternion=None):
    state = js.set_pose(MODEL, STATE, "box", position=jnp.asarray([0.0, 0.0, height]), quaternion=quaternion)
    return js.set_velocity(MODEL, state, "box", linear=jnp.asarray(linear, float), angular=jnp.asarray(angular, float))


@jax.jit
def _run(models, states, controls, h, params, n):
    def one(model, state, control, h):
        return jax.lax.fori_loop(0, n, lambda _, s: js.step(model, s, control, h, params)[0], state)

    return jax.vmap(one)(models, states, controls, h)


def run(worlds, steps, params=None):
    """The states of the worlds after so many steps."""
    padded = [*worlds, *[worlds[-1]] * (WIDTH - len(worlds))]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *padded)
    states = _run(*stacked, js.SolverParams() if params is None else params, jnp.asarray(steps))
    return [jax.tree.map(lambda x, i=i: x[i], states) for i in range(len(worlds))]


def position(state):
    return np.asarray(js.pose(MODEL, state, "box").position)


def linear(state):
    return np.asarray(js.velocity(MODEL, state, "box").linear)


def angular(state):
    return np.asarray(js.velocity(MODEL, state, "box").angular)


def ramp(z, s):
    """The smoothed ramp and its slope."""
    if z >= s:
        return z, 1.0
    if z <= -s:
        return 0.0, 0.0
    y = z / s
    return s * (3 / 16 + y / 2 + 3 / 8 * y**2 - y**4 / 16), 0.5 + 0.75 * y - 0.25 * y**3


def rest_gap(k, s, threshold, mass=1.0, area=0.01):
    """Height of the lower face where the penalty carries the weight."""

    def excess(gap):
        value, slope = ramp(threshold - s - gap, s)
        return area * k * value * slope - mass * G

    return brentq(excess, threshold - 0.05, threshold - 1e-12, xtol=1e-16, rtol=1e-14)


def test_rest_gap():
    cases = [
        (1e9, 5e-3, 1e-3, -3.0831628e-4),
        (1e8, 5e-3, 1e-3, -1.117628e-3),
        (1e7, 5e-3, 1e-3, -2.48771e-3),
        (1e10, 5e-3, 1e-3, 1.8458251647e-4),
        (1e9, 1e-3, 5e-4, 1.3409861918e-4),
        (1e9, 0.0, 0.0, -9.81e-7),
    ]
    names = ("penalty_coefficient", "penalty_smoothing_half_distance", "penalty_threshold_default")
    worlds = [world(state=placed(0.05), h=1 / 60, **dict(zip(names, case))) for case in cases]
    for (*case, tabled), state in zip(cases, run(worlds, 1500)):
        np.testing.assert_allclose(rest_gap(*case), tabled, rtol=1e-5)
        np.testing.assert_allclose(position(state)[2] - 0.05, rest_gap(*case), atol=1e-10)


def on_slope(mu_box, mu_ground, **fields):
    """A tilted world: the plane stays level, gravity leans."""
    tilted = js.replace(MODEL, gravity=jnp.asarray([G * np.sin(TILT), 0.0, -G * np.cos(TILT)]))
    model, *rest = world(tilted, placed(0.0497), h=1 / 240, **fields)
    model = js.replace(model, "box", coulomb_friction_coefficient=mu_box)
    return js.replace(model, "ground", coulomb_friction_coefficient=mu_ground), *rest


CREEP = {
    js.FrictionModel.C1_REGULARIZED: lambda t: 1 - np.sqrt(1 - t),
    js.FrictionModel.CINF_REGULARIZED: lambda t: t / np.sqrt(1 - t * t) / 2,
}


@pytest.mark.parametrize("model", list(CREEP))
def test_creep_and_slip_on_an_incline(model):
    params = js.SolverParams(friction_model=model)
    worlds = [on_slope(0.6, 0.6), on_slope(0.2, 0.8), on_slope(0.6, 0.6, friction_falloff_vel=0.05), on_slope(0.2, 0.2)]
    early, late = run(worlds, 240, params), run(worlds, 480, params)
    for state, mu, falloff in zip(late, (0.6, 0.4, 0.6), (0.01, 0.01, 0.05)):
        # The load is that of the step start to first order, which is off by a few parts in 1e5 while the box leans.
        np.testing.assert_allclose(linear(state)[0], falloff * CREEP[model](np.tan(TILT) / mu), rtol=3e-4)
    acceleration = linear(late[3])[0] - linear(early[3])[0]  # one second apart
    np.testing.assert_allclose(acceleration, G * (np.sin(TILT) - 0.2 * np.cos(TILT)), rtol=5e-5)


def test_viscous_friction_ends_at_its_terminal_speed():
    only_viscous = on_slope(0.0, 0.0, viscous_friction_coefficient=0.5)
    (state,) = run([only_viscous], 240 * 3)
    # m v' = m g (sin - c v cos): Backward Euler of a linear equation in closed form.
    rate = 0.5 * G * np.cos(TILT) / 240
    expected = np.tan(TILT) / 0.5 * (1 - (1 + rate) ** (-240 * 3))
    np.testing.assert_allclose(linear(state)[0], expected, rtol=1e-3)


def test_free_fall_of_backward_euler():
    falling = js.replace(MODEL, gravity=jnp.asarray([0.0, 0.0, -10.0]))
    for steps, drop, speed in ((1, 0.1, 1), (2, 0.3, 2), (3, 0.6, 3), (4, 1.0, 4)):
        (state,) = run([world(falling, placed(FAR), h=0.1)], steps)
        np.testing.assert_allclose(FAR - position(state)[2], drop, rtol=1e-12)
        np.testing.assert_allclose(linear(state), [0, 0, -speed], atol=1e-12)
        assert state.step_count == steps
        np.testing.assert_allclose(state.time, 0.1 * steps, rtol=1e-15)


def test_spin_decays_as_backward_euler_lets_it():
    worlds = [world(state=placed(FAR, angular=w)) for w in ((0, 0, 20.0), (0, 20.0, 0), (12.0, 0, 16.0))]
    axes = np.array([(0, 0, 1), (0, 1, 0), (0.6, 0, 0.8)])
    # The first step keeps a spin set by hand; then sin(a') = sin(atan2(sin a, 2 - cos a)).
    angle, decay = np.arcsin(0.01 * 20.0), []
    for _ in range(4):
        decay.append(np.sin(angle) / 0.01)
        angle = np.arctan2(np.sin(angle), 2 - np.cos(angle))
    np.testing.assert_allclose(decay, [20, 19.2377, 18.5570, 17.9441], atol=5e-5)
    for steps, w in enumerate(decay, start=1):
        for axis, state in zip(axes, run(worlds, steps)):
            np.testing.assert_allclose(angular(state), w * axis, atol=1e-11)


def test_the_first_step_turns_by_the_arcsine():
    (state,) = run([world(state=placed(FAR, angular=(0, 0, 20.0)))], 1)
    q = np.asarray(js.pose(MODEL, state, "box").quaternion)
    np.testing.assert_allclose(2 * np.arctan2(q[2], q[3]), np.arcsin(0.2), rtol=1e-12)


def push(force=(0, 0, 0), **how):
    how = {k: jnp.asarray(v, float) if k in ("torque", "point") else v for k, v in how.items()}
    return js.apply_force(MODEL, js.Control.zeros(MODEL), "box", jnp.asarray(force, float), **how)


def floating(control, state=None, h=0.01):
    """Two kilograms without weight."""
    model = js.replace(js.scale_mass(MODEL, "box", 2.0), gravity=jnp.zeros(3))
    return model, placed(FAR) if state is None else state, control, jnp.asarray(h)


def test_the_four_force_modes():
    mode = js.ForceMode
    cases = [
        (mode.FORCE, 10, 0.05),
        (mode.IMPULSE, 10, 5.0),
        (mode.ACCELERATION, 3, 0.03),
        (mode.VELOCITY_CHANGE, 3, 3.0),
    ]
    pushes = [push((x, 0, 0), mode=m) for m, x, _ in cases]
    inertia = 2.0 * 0.1**2 / 6
    turns = [(mode.FORCE, 0.1, 0.001 / inertia), (mode.IMPULSE, 0.001, 0.001 / inertia)]
    turns += [(mode.ACCELERATION, 3, 0.03), (mode.VELOCITY_CHANGE, 3, 3.0)]
    pushes += [push(torque=(0, 0, x), mode=m) for m, x, _ in turns]
    states = run([floating(c) for c in pushes], 1)
    for (_, _, v), state in zip(cases, states[:4]):
        np.testing.assert_allclose(linear(state), [v, 0, 0], atol=1e-12)
        np.testing.assert_allclose(angular(state), 0, atol=1e-12)
    for (_, _, w), state in zip(turns, states[4:]):
        # Velocities are finite differences of rotations, so this is exact from rest.
        np.testing.assert_allclose(angular(state), [0, 0, w], rtol=1e-9, atol=1e-12)


def test_local_axes_and_lever_arms():
    quarter = jnp.asarray([0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)])  # x of the box is y of the world
    turned = placed(FAR, quaternion=quarter)
    com = np.array([0.0, 0.0, FAR])
    controls = [
        push((10, 0, 0), frame="local"),
        push((10, 0, 0), frame="local", point=(0, 0.05, 0)),
        push((0, 10, 0), point=com + [-0.05, 0, 0]),  # the same in world axes
        push((0, 10, 0), torque=(0, 0, -0.5)),  # the same as force and torque
        push((0, 0.1, 0), point=com + [-0.05, 0, 0], mode=js.ForceMode.IMPULSE),
    ]
    straight, *levered = run([floating(c, turned) for c in controls], 1)
    np.testing.assert_allclose(linear(straight), [0, 0.05, 0], atol=1e-12)
    np.testing.assert_allclose(angular(straight), 0, atol=1e-12)
    for state in levered:
        np.testing.assert_allclose(linear(state), [0, 0.05, 0], atol=1e-12)
        np.testing.assert_allclose(angular(state), [0, 0, -0.5 * 0.01 / (2.0 * 0.1**2 / 6)], rtol=1e-9, atol=1e-11)


def test_a_moved_plane_drags_the_box():
    (rest,) = run([world(state=placed(0.0497), h=1 / 60)], 600)
    h, velocity = 0.01, jnp.asarray([0.5, 0.0, 0.0])
    carried = js.Control(js.Control.zeros(MODEL).loads, jnp.zeros((6, 1)).at[:3, 0].set(velocity))
    moved = js.set_pose(MODEL, rest, "ground", position=velocity * h)
    by_pose, by_control, unmoved = run([world(state=moved), world(state=rest, control=carried), world(state=rest)], 1)
    np.testing.assert_allclose(linear(by_pose), linear(by_control), atol=1e-13)
    np.testing.assert_allclose(by_pose.q, by_control.q, atol=1e-15)
    for state in (by_pose, by_control):
        np.testing.assert_allclose(np.asarray(state.static_position)[:, 0], velocity * h, atol=1e-15)
        # Slip far beyond the falloff: the full Coulomb force of one step.
        np.testing.assert_allclose(linear(state)[0], 0.5 * G * h, rtol=2e-3)
    np.testing.assert_allclose(linear(unmoved), 0, atol=1e-9)


def test_a_turned_plane_drags_like_a_turntable():
    (rest,) = run([world(state=placed(0.0497), h=1 / 60)], 600)
    carried = js.Control(js.Control.zeros(MODEL).loads, jnp.zeros((6, 1)).at[5, 0].set(2.0))
    half = 0.5 * 2.0 * 0.01
    moved = js.set_pose(MODEL, rest, "ground", quaternion=jnp.asarray([0.0, 0.0, np.sin(half), np.cos(half)]))
    by_pose, by_control = run([world(state=moved), world(state=rest, control=carried)], 1)
    np.testing.assert_allclose(angular(by_pose), angular(by_control), atol=1e-12)
    assert angular(by_pose)[2] > 0.1
    np.testing.assert_allclose(linear(by_pose)[:2], 0, atol=1e-3)
