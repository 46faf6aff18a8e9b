"""Bodies that others meet as clouds of balls: contact is a double sum over samples and points."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim as js

H, RADIUS = 0.002, 0.03
CLOUD = js.ColliderType.POINT_CLOUD
SHARP = js.ContactParams(penalty_smoothing_half_distance=0.0, coulomb_friction_coefficient=0.0)
SOFT = js.ContactParams(penalty_coefficient=1e7)
TILT = js.rotation.from_rotation_vector((0.3, -0.2, 0.4))


@functools.cache
def pressed(sample_capacity=None, dtype=jnp.float64):
    """A tilted cube pressed into a flat one, both moving; each is a cloud to the other."""
    scene = js.Scene()
    common = {"collider": CLOUD, "quadrature": "P1Q1", "point_cloud_radius": RADIUS, "contact": SOFT}
    scene.add_rigid(
        js.Box((0.1, 0.1, 0.05)), mass=2.0, position=(0.01, 0.02, 0.0), subdivisions=1, name="slab", **common
    )
    scene.add_rigid(
        js.Box((0.05, 0.05, 0.05)),
        mass=1.0,
        position=(0.0, 0.0, 0.114),
        quaternion=TILT,
        linear_velocity=(0.3, 0.1, -0.5),
        subdivisions=1,
        name="box",
        **common,
    )
    return scene.build(dtype, sample_capacity=sample_capacity)


@functools.cache
def stepped(sample_capacity=None, dtype=jnp.float64):
    model, _ = pressed(sample_capacity, dtype)
    return jax.jit(lambda state: js.step(model, state, None, H))


def test_force_is_the_double_sum_over_samples_and_balls():
    scene = js.Scene()
    still = {"static": True, "collider": CLOUD, "quadrature": "P1Q1", "point_cloud_radius": RADIUS}
    scene.add_rigid(js.Box((0.05, 0.05, 0.05)), contact=SHARP, subdivisions=1, name="block", **still)
    at = np.array([0.02, 0.01, 0.12])
    scene.add_rigid(
        js.Box((0.05, 0.05, 0.05)), mass=1.0, position=at, contact=SHARP, quadrature="P1Q1", subdivisions=2, name="top"
    )
    model, state = scene.build(jnp.float64)

    def samples(name):
        """Position, outward normal and area of each triangle, in world axes (neither body is turned)."""
        body = model.body(name)
        corners = np.asarray(model.vertices(body))[body.triangles.array]
        cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        twice = np.linalg.norm(cross, axis=1)
        return corners.mean(1), cross / twice[:, None], twice / 2

    (x, normal, area), (center, _, patch) = samples("top"), samples("block")
    apart = (x + at)[:, None] - center
    length = np.linalg.norm(apart, axis=2)
    gradient = apart / length[:, :, None]
    depth = np.maximum(1e-3 - (length - RADIUS), 0.0) * (np.sum(gradient * normal[:, None], axis=2) <= 0.0)
    by_pair = 1e9 * depth * area[:, None] * patch / RADIUS**2
    expected = np.sum(by_pair[:, :, None] * gradient, axis=(0, 1))

    found = js.evaluate_contacts(model, state)
    assert np.count_nonzero(by_pair) > 10
    np.testing.assert_allclose(found.force.sum(0), expected, rtol=1e-12, atol=1e-9)
    assert int(jnp.sum(jnp.any(found.force != 0, axis=1))) == np.count_nonzero(by_pair)


def test_two_clouds_exchange_momentum_and_lose_none():
    model, state = pressed()
    model = js.replace(model, gravity=jnp.zeros(3))
    mass = np.array([2.0, 1.0])
    before = mass @ np.asarray(state.v).reshape(2, 6)[:, :3]
    after, report = js.step(model, state, None, H)
    assert report.status == js.Status.CONVERGED and not report.overflow
    np.testing.assert_allclose(mass @ np.asarray(after.v).reshape(2, 6)[:, :3], before, atol=1e-9)
    on_box, on_slab = (js.contact_force(model, report, *names).force for names in (("box", "slab"), ("slab", "box")))
    np.testing.assert_allclose(on_box, -on_slab, rtol=1e-12)
    assert np.linalg.norm(on_box) > 10.0


def test_the_nearest_point_pairs_alone_give_the_same_step():
    model, state = pressed()
    pairs = np.count_nonzero(np.any(js.contact_points(model, stepped()(state)[1]).force, axis=1))
    near, report = stepped(2000)(state)
    whole, _ = stepped()(state)
    assert 4 < pairs < 2000 and not report.overflow
    np.testing.assert_allclose(near.q, whole.q, atol=1e-12)
    np.testing.assert_allclose(near.v, whole.v, atol=1e-12 / H)
    assert stepped(4)(state)[1].overflow


INPUTS = {
    "slab": jnp.zeros(3),
    "box": jnp.zeros(3),
    "radius": jnp.array(RADIUS),
    "half_extents": jnp.full(3, 0.05),
    "stiffness": jnp.array(1e7),
}


@functools.cache
def loss():
    model, state = pressed()

    def value(inputs):
        changed = js.resize(model, "box", half_extents=inputs["half_extents"])
        changed = js.replace(changed, "slab", point_cloud_radius=inputs["radius"])
        changed = js.replace(changed, "box", penalty_coefficient=inputs["stiffness"])
        q = state.q.at[:3].add(inputs["slab"]).at[7:10].add(inputs["box"])
        start = js.State(**(vars(state) | {"q": q}))
        for _ in range(2):
            start, report = js.step(changed, start, None, H, js.SolverParams.gradient())
        return jnp.vdot(start.v, jnp.linspace(1.0, 2.0, 12)) + 1e-3 * js.contact_force(changed, report, "box").force[0]

    return jax.jit(value)


forward_slope = jax.jit(lambda inputs, toward: jax.jvp(loss(), (inputs,), (toward,))[1])


@pytest.fixture(scope="module")
def slopes():
    return jax.jit(jax.grad(loss()))(INPUTS)


@pytest.mark.parametrize("name", INPUTS)
def test_gradient_in_both_modes_is_that_of_differences(name, slopes):
    toward = jax.tree.map(jnp.zeros_like, INPUTS)
    unit = jnp.linspace(1.0, 0.5, max(INPUTS[name].size, 1)).reshape(INPUTS[name].shape)
    scale = {"stiffness": 1e7, "radius": 0.02, "half_extents": 0.05}.get(name, 1e-2)
    toward[name] = unit * scale

    def difference(step):
        plus, minus = (jax.tree.map(lambda x, d, s=s: x + s * step * d, INPUTS, toward) for s in (1, -1))
        return float(loss()(plus) - loss()(minus)) / (2 * step)

    numeric = difference(1e-5)
    assert abs(numeric) > 1e-4
    assert numeric == pytest.approx(difference(5e-6), rel=1e-6)
    assert float(jnp.vdot(slopes[name], toward[name])) == pytest.approx(numeric, rel=1e-6)
    assert float(forward_slope(INPUTS, toward)) == pytest.approx(numeric, rel=1e-6)


def test_worlds_of_clouds_equal_single_ones():
    model, state = pressed(2000)
    kicks = jnp.array([[0.3, 0.1, -0.5], [0.0, 0.4, -1.0]])
    step = jax.jit(lambda v: js.step(model, js.set_velocity(model, state, "box", v), None, H)[0].q)
    np.testing.assert_allclose(jax.vmap(step)(kicks), jnp.stack([step(v) for v in kicks]), atol=1e-12)


def test_single_precision_follows_double():
    single, double = stepped(None, jnp.float32)(pressed(None, jnp.float32)[1]), stepped()(pressed()[1])
    assert single[1].status == js.Status.CONVERGED and single[0].q.dtype == jnp.float32
    np.testing.assert_allclose(single[0].q, double[0].q, atol=1e-5)


def test_a_cloud_survives_saving(tmp_path):
    model, state = pressed()
    js.save(tmp_path / "cloud.npz", model=model, state=state)
    again = js.load(tmp_path / "cloud.npz").model
    np.testing.assert_array_equal(js.step(again, state, None, H)[0].q, stepped()(state)[0].q)
    assert js.get(again, "slab", "point_cloud_radius") == RADIUS


@pytest.mark.parametrize("radius", [0.0, -0.01, float("nan"), (0.1, 0.2)])
def test_a_radius_that_no_ball_has_is_refused(radius):
    with pytest.raises(ValueError, match=r"actor 'ball': point_cloud_radius must be positive \[m\]; got"):
        js.Scene().add_rigid(js.Sphere(0.1), collider=CLOUD, point_cloud_radius=radius, name="ball")


def test_changing_to_such_a_radius_is_refused_too():
    model, _ = pressed()
    with pytest.raises(ValueError, match=r"actor 'slab': point_cloud_radius must be positive \[m\]; got -0.1"):
        js.replace(model, "slab", point_cloud_radius=-0.1)


def test_more_point_pairs_than_a_step_should_test_have_to_be_asked_for():
    def scene():
        scene = js.Scene()
        for name in ("one", "two"):
            scene.add_rigid(js.Sphere(0.1), collider=CLOUD, subdivisions=1, name=name)
        return scene

    with pytest.raises(ValueError, match=r"samples times .* give build\(sample_capacity=\)"):
        scene().build()
    assert scene().build(sample_capacity=100)[0].groups[0].sample_slots == 100
