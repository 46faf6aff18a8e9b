"""Candidate lists: what the broad phase leaves out does not matter, and what does not fit is told."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim as js

COUNT, H = 4, 0.002


@functools.cache
def row(capacity):
    """Boxes pressed side by side on a plane, one a little higher than the next: each has two near ones at most."""
    scene = js.Scene()
    scene.add_plane(name="ground")
    for i in range(COUNT):
        scene.add_rigid(
            js.Box((0.05, 0.05, 0.05)),
            density=1000.0,
            position=(0.0995 * i, 0.002 * i, 0.0495 + 0.0002 * i),
            linear_velocity=(0.2 - 0.1 * i, 0.05 * i, -0.1),
            quadrature="P1Q1",
            name=f"box{i}",
        )
    model, state = scene.build(jnp.float64, contact_capacity=capacity)
    return model, state, jax.jit(lambda s: js.step(model, s, None, H))


def test_a_step_with_candidate_lists_equals_one_with_all_pairs():
    (few, state, with_lists), (every, _, with_all) = row(2), row(COUNT)
    assert any(g.collider_row is None for g in few.groups) and not any(g.collider_row is None for g in every.groups)
    for _ in range(3):
        (listed, report), (whole, complete) = with_lists(state), with_all(state)
        assert not report.overflow and report.status == complete.status == js.Status.CONVERGED
        np.testing.assert_allclose(listed.q, whole.q, atol=1e-12)
        np.testing.assert_allclose(listed.v, whole.v, atol=1e-12 / H)
        state = whole
    neighbours = [js.contact_force(every, complete, "box2", f"box{k}").force for k in (1, 3)]
    assert all(np.linalg.norm(f) > 1.0 for f in neighbours)  # there was contact to be found


def test_worlds_choose_their_own_candidates():
    _, state, with_lists = row(2)
    _, _, with_all = row(COUNT)
    apart = state.q.reshape(COUNT, 7).at[:, 0].set(0.0995 * jnp.array([2.0, 0.0, 3.0, 1.0])).reshape(-1)
    states = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    states = js.State(**(vars(states) | {"q": jnp.stack([state.q, apart])}))
    together = jax.vmap(lambda s: with_lists(s)[0].q)(states)
    for k in range(2):
        np.testing.assert_allclose(together[k], with_all(jax.tree.map(lambda x, k=k: x[k], states))[0].q, atol=1e-12)


def test_too_few_slots_are_told():
    _, state, crowded = row(1)
    assert crowded(state)[1].overflow


def test_a_resting_stack_presses_on_the_ground_with_its_weight():
    scene = js.Scene()
    scene.add_plane(name="ground")
    for i in range(2):
        scene.add_rigid(
            js.Box((0.05, 0.05, 0.05)), mass=1.0 + i, position=(0.01 * i, 0, 0.0495 + 0.099 * i), name=f"b{i}"
        )
    model, state = scene.build(jnp.float64)
    _, trajectory = js.rollout(model, state, None, 0.01, steps=300)
    report = trajectory.report(299)
    np.testing.assert_allclose(trajectory.states.v[-1], 0.0, atol=1e-4)  # regularised friction creeps a little
    weight = 3.0 * 9.81
    assert js.contact_force(model, report, "ground").force[2] == pytest.approx(-weight, rel=1e-6)
    assert js.contact_force(model, report, "b0", "ground").force[2] == pytest.approx(weight, rel=1e-6)
    assert js.contact_force(model, report, "b1", "b0").force[2] == pytest.approx(2.0 * 9.81, rel=1e-6)


@functools.cache
def balls(sample_capacity):
    """Two balls of 60 samples, one on the other, on a plane."""
    scene = js.Scene()
    scene.add_plane(name="ground")
    for i in range(2):
        scene.add_rigid(
            js.Sphere(0.05),
            mass=1.0,
            position=(0.01 * i, 0, 0.0495 + 0.098 * i),
            linear_velocity=(0, 0.1 * i, 0),
            quadrature="P1Q1",
            name=f"ball{i}",
        )
    model, state = scene.build(jnp.float64, sample_capacity=sample_capacity)
    return model, state, jax.jit(lambda s: js.step(model, s, None, H))


def test_a_step_with_the_nearest_samples_alone_equals_one_with_all():
    (_, state, with_nearest), (model, _, with_all) = balls(60), balls(None)
    for _ in range(3):
        (near, report), (whole, complete) = with_nearest(state), with_all(state)
        assert not report.overflow and report.status == complete.status == js.Status.CONVERGED
        np.testing.assert_allclose(near.q, whole.q, atol=1e-12)
        np.testing.assert_allclose(near.v, whole.v, atol=1e-12 / H)
        state = whole
    assert np.linalg.norm(js.contact_force(model, complete, "ball1").force) > 0.1


def test_points_of_the_nearest_samples_carry_their_own_ids():
    (few, state, with_nearest), (every, _, with_all) = balls(60), balls(None)
    tables = []
    for model, step in ((few, with_nearest), (every, with_all)):
        points = jax.tree.map(np.asarray, js.contact_points(model, step(state)[1]))
        key = zip(points.actor_A, points.actor_B, points.sample)
        tables.append({k: f for k, f, active in zip(key, points.force, points.active) if active})
    assert tables[0].keys() == tables[1].keys() and len(tables[0]) > 4
    for k, force in tables[0].items():
        np.testing.assert_allclose(force, tables[1][k], atol=1e-9)


def test_too_few_samples_are_told():
    _, state, starved = balls(2)
    assert starved(state)[1].overflow


def test_contact_without_a_step_tests_every_sample():
    (few, state, _), (every, _, _) = balls(2), balls(None)
    found, whole = js.evaluate_contacts(few, state), js.evaluate_contacts(every, state)
    assert found.active.sum() == whole.active.sum() > 4
