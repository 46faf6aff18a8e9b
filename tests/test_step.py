"""One step: what it promises about dtypes, retraces, worlds that fail, and inputs that are wrong."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim as js


@functools.cache
def sliding(dtype=jnp.float64):
    scene = js.Scene()
    scene.add_plane(name="ground")
    scene.add_rigid(js.Box((0.05, 0.05, 0.05)), position=(0, 0, 0.0497), linear_velocity=(1, 0.2, 0), name="cube")
    return scene.build(dtype)


@functools.cache
def batched_step(count):
    model, _ = sliding()
    return jax.jit(jax.vmap(lambda s: js.step(model, s, None, 0.005)))


def worlds(n, seed=0):
    model, state = sliding()
    kicks = jnp.asarray(np.random.default_rng(seed).standard_normal((n, 6)) * 0.3)
    return jax.vmap(lambda k: js.set_velocity(model, state, "cube", k[:3], k[3:]))(kicks)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_a_step_serves_its_own_output_without_retrace(dtype):
    model, state = sliding(dtype)
    step = jax.jit(lambda s: js.step(model, s, None, 0.01))
    before = jax.tree.map(lambda x: (x.dtype, x.weak_type, x.shape), state)
    for _ in range(3):
        state, _ = step(state)
    assert jax.tree.map(lambda x: (x.dtype, x.weak_type, x.shape), state) == before
    assert step._cache_size() == 1


def test_worlds_under_vmap_equal_single_worlds():
    model, _ = sliding()
    states = worlds(64)
    one = jax.jit(lambda s: js.step(model, s, None, 0.005))
    many = batched_step(64)
    after, _ = many(states)
    singles = [one(jax.tree.map(lambda x, i=i: x[i], states))[0] for i in range(64)]
    chex.assert_trees_all_close(after, jax.tree.map(lambda *x: jnp.stack(x), *singles), atol=1e-12)


def test_a_hundred_steps_of_worlds_equal_single_worlds():
    model, _ = sliding()
    states = worlds(64)
    run = jax.jit(lambda s: js.rollout(model, s, None, 0.005, steps=100)[0].q)
    many = jax.jit(lambda s: js.rollout_batch(model, s, None, 0.005, steps=100)[0].q)(states)
    few = jnp.stack([run(jax.tree.map(lambda x, i=i: x[i], states)) for i in range(8)])
    np.testing.assert_allclose(many[:8], few, atol=1e-9)


def test_nested_vmap_equals_flat_vmap():
    model, _ = sliding()
    states = worlds(6)
    flat = jax.jit(jax.vmap(lambda s: js.step(model, s, None, 0.005)[0].q))(states)
    nested_states = jax.tree.map(lambda x: x.reshape(2, 3, *x.shape[1:]), states)
    nested = jax.jit(jax.vmap(jax.vmap(lambda s: js.step(model, s, None, 0.005)[0].q)))(nested_states)
    np.testing.assert_allclose(nested.reshape(6, -1), flat, atol=1e-14)


def test_worlds_may_differ_in_parameters_alone():
    model, state = sliding()
    mu = jnp.array([0.1, 0.5, 0.9])
    many = jax.jit(
        jax.vmap(lambda m: js.step(js.replace(model, "cube", coulomb_friction_coefficient=m), state, None, 0.005)[0].v)
    )(mu)
    assert many[0, 0] > many[1, 0] > many[2, 0] > 0


@pytest.mark.parametrize(
    "poison",
    [
        lambda s: s.__class__(**{**vars(s), "q": s.q.at[3, 2].set(jnp.nan)}),  # a NaN position
        lambda s: s.__class__(**{**vars(s), "v": s.v.at[3].set(1e160)}),  # a velocity that overflows
    ],
)
def test_a_lost_world_changes_no_bit_of_the_others_and_is_reported(poison):
    states = worlds(8, seed=1)
    healthy, _ = batched_step(8)(states)
    sick, report = batched_step(8)(poison(states))
    others = np.array([0, 1, 2, 4, 5, 6, 7])
    chex.assert_trees_all_equal(*(jax.tree.map(lambda x: x[others], s) for s in (healthy, sick)))
    assert report.status[3] == js.Status.DIVERGED
    assert np.all(sick.v[3] == 0)


def test_a_lost_world_spoils_no_shared_gradient():
    model, _ = sliding()
    states = worlds(4)
    states = states.__class__(**{**vars(states), "q": states.q.at[1, 0].set(jnp.nan)})

    def total(mu):
        world = js.replace(model, "cube", coulomb_friction_coefficient=mu)
        after, _ = jax.vmap(lambda s: js.step(world, s, None, 0.005))(states)
        return jnp.sum(jnp.where(jnp.isfinite(after.q), after.q, 0.0))

    assert np.isfinite(jax.jit(jax.grad(total))(0.5))


def test_empty_static_only_and_zero_step_scenes_work():
    empty, state = js.Scene().build()
    after, report = js.step(empty, state, None, 0.01)
    assert after.q.shape == (0,) and report.status == js.Status.NONE
    scene = js.Scene()
    ground = scene.add_plane()
    model, state = scene.build()
    after, report = js.step(model, state, js.Control.zeros(model), 0.01)
    assert report.status == js.Status.NONE and after.time == 0.01
    np.testing.assert_array_equal(js.contact_force(model, report, ground).force, 0.0)
    model, state = sliding()
    end, trajectory = js.rollout(model, state, None, 0.01, steps=0)
    chex.assert_trees_all_equal(end, state)
    assert trajectory.times.shape == (1,)


def test_a_scene_without_contact_falls_freely():
    scene = js.Scene(gravity=(0, 0, -10.0))
    scene.add_rigid(js.Sphere(0.1), position=(0, 0, 1.0), name="ball")
    model, state = scene.build()
    end, _ = js.rollout(model, state, None, 0.1, steps=4)
    np.testing.assert_allclose(end.q[2], 1.0 - 1.0, atol=1e-12)  # Backward Euler: -.1 -.3 -.6 -1.0
    points = js.evaluate_contacts(model, end)
    assert points.force.shape == (0, 3)


def test_a_batch_of_one_and_chunks_equal_the_single_run():
    model, _ = sliding()
    states = worlds(5)
    single, _ = js.rollout(model, jax.tree.map(lambda x: x[0], states), None, 0.005, steps=10)
    batch, _ = js.rollout_batch(model, jax.tree.map(lambda x: x[:1], states), None, 0.005, steps=10)
    chunked, _ = js.rollout_batch(model, states, None, 0.005, steps=10, chunk=2)
    np.testing.assert_allclose(batch.q[0], single.q, atol=1e-12)
    np.testing.assert_allclose(chunked.q[0], single.q, atol=1e-12)


def test_forces_balance_weight_at_rest_and_act_oppositely_on_the_ground():
    scene = js.Scene()
    ground = scene.add_plane()
    cube = scene.add_rigid(js.Box((0.05, 0.05, 0.05)), mass=1.0, position=(0.3, 0, 0.0497))
    model, state = scene.build()
    _, trajectory = js.rollout(model, state, None, 0.02, steps=100)
    on_cube = js.contact_force(model, trajectory.report(99), cube, ground)
    on_ground = js.contact_force(model, trajectory.report(99), ground)
    np.testing.assert_allclose(on_cube.force, (0, 0, 9.81), atol=1e-6)
    np.testing.assert_allclose(on_ground.force, -on_cube.force, atol=1e-12)
    np.testing.assert_allclose(on_ground.torque, (0, 0.3 * 9.81, 0), atol=1e-5)
    points = js.contact_points(model, trajectory.report(99))
    np.testing.assert_allclose(points.force.sum(0), on_cube.force, atol=1e-12)


@pytest.mark.parametrize(
    "build, words",
    [
        (lambda s: s.add_rigid(js.Box((1, 1, 1)), mass=-1.0, name="a"), ("'a'", "mass", "-1.0", "positive")),
        (lambda s: s.add_rigid(js.Box((1, 1, 1)), quaternion=(0, 0, 0, 2), name="a"), ("'a'", "quaternion", "2")),
        (lambda s: s.add_rigid(js.Box((1, 1, 1)), position=(0, 0), name="a"), ("'a'", "position", "(3,)")),
        (lambda s: s.add_rigid(js.Box((1, 1, 1)), position=(0, np.nan, 0), name="a"), ("'a'", "position", "finite")),
        (lambda s: s.add_rigid(js.Box((1, -1, 1))), ("half_extents", "-1")),
        (lambda s: s.add_rigid(js.Plane((0, 0, 1)), name="a"), ("'a'", "static=True")),
        (lambda s: s.add_rigid(js.Box((1, 1, 1)), quadrature="P9", name="a"), ("'a'", "quadrature", "P9")),
        (
            lambda s: s.add_rigid(js.TriMesh(np.full((4, 3), np.nan), [[0, 1, 2]]), name="a"),
            ("vertices", "nan"),
        ),
        (
            lambda s: s.add_rigid(
                js.Box((1, 1, 1)), contact=js.ContactParams(coulomb_friction_coefficient=-0.1), name="a"
            ),
            ("'a'", "coulomb_friction_coefficient", "-0.1"),
        ),
    ],
)
def test_a_bad_actor_is_refused_by_name_field_and_value(build, words):
    with pytest.raises(ValueError) as error:
        build(js.Scene())
    for word in words:
        assert word.lower() in str(error.value).lower()


@pytest.mark.parametrize("h", [0.0, -0.01, np.nan, np.inf])
def test_a_step_length_that_is_not_positive_is_refused(h):
    model, state = sliding()
    with pytest.raises(ValueError, match="h must be a positive"):
        js.step(model, state, None, h)


def test_contradicting_solver_flags_are_refused():
    with pytest.raises(ValueError, match="implicit_normal_force_for_dissipation"):
        js.SolverParams(explicit_normals=True, implicit_normal_force_for_dissipation=True)


def test_unknown_parameters_and_foreign_states_are_refused():
    model, state = sliding()
    with pytest.raises(ValueError, match="no parameter named 'friction'"):
        js.get(model, "cube", "friction")
    with pytest.raises(ValueError, match="no actor 'ball'"):
        js.pose(model, state, "ball")
    other, _ = sliding(jnp.float32)
    with pytest.raises(ValueError, match="float64 but the model is float32"):
        js.step(other, state, None, 0.01)
    with pytest.raises(ValueError, match="multiple of substeps"):
        js.rollout(model, state, None, 0.01, steps=5, substeps=2)
