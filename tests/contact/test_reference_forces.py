"""The law alone: contact forces at the poses that a reference file itself went through, row by row."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
import replay

import jaxsim as js
from jaxsim.integrate.report import StageInputs

contact_points = jax.jit(js.contact_points)
QUICK = ["b_cube12_tilt_drop_expl", "c_incline_both", "c_bounce_e5_implnf"]


def states_and_reports(recipe: replay.Recipe, recorded):
    """States that pass through the recorded poses, and one report per step between them."""
    rows = max(recipe.steps, replay.SHARED_STEPS) + 1  # the last pose repeated: files then share what is compiled

    def filled(x):
        return np.concatenate([x, np.repeat(x[-1:], rows - len(x), 0)])

    q = filled(np.concatenate([recorded["body_com"], recorded["body_quat"]], 1))
    v = filled(np.concatenate([recorded["body_linvel"], recorded["body_angvel"]], 1))
    states = jax.tree.map(lambda x: jnp.broadcast_to(x, (rows, *x.shape)), recipe.state)
    states = js.State(**(vars(states) | {"q": jnp.asarray(q), "v": jnp.asarray(v)}))
    before, after = jax.tree.map(lambda x: x[:-1], states), jax.tree.map(lambda x: x[1:], states)
    n = rows - 1
    one, number, per_body = jnp.ones(n, jnp.int32), jnp.zeros(n), jnp.ones((n, 1), jnp.int32)
    stage = StageInputs(
        before, after, None, jnp.full(n, recipe.h), jnp.ones((n, 1), bool), recipe.params.contact_options
    )
    overflow = jnp.zeros(n, bool)
    return states, js.StepReport(
        one, one, number, per_body, per_body, per_body, jnp.zeros((n, 1)), overflow, stage, recipe.params.preset
    )


def evaluated(path):
    recipe = replay.read(path)
    with np.load(path) as data:
        recorded = {k: data[k] for k in data.files}
    states, reports = states_and_reports(recipe, recorded)
    return recipe, recorded, states, reports


def check_forces(path):
    recipe, recorded, states, reports = evaluated(path)
    found = jax.tree.map(np.asarray, replay.observe(recipe.model, states, reports, "body"))
    weight, size = replay.weight_and_size(recipe.model, "body")
    n = recipe.steps + 1
    force = np.linalg.norm(found.force[:n] - recorded["body_force"], axis=1) / weight
    torque = np.linalg.norm(found.torque[:n] - recorded["body_torque"], axis=1) / (weight * size)
    assert np.abs(recorded["body_force"]).max() > 0.5 * weight  # there is something to compare
    assert force.max() < 1e-9, (force.argmax(), force.max())
    assert torque.max() < 1e-9, (torque.argmax(), torque.max())


@pytest.mark.parametrize("name", QUICK)
def test_force_and_torque_of_every_row(name):
    check_forces(reference.find(name))


@pytest.mark.slow
@pytest.mark.parametrize("path", reference.bundled("bcd"), ids=lambda p: p.stem)
def test_force_and_torque_of_every_row_of_every_file(path):
    check_forces(path)


def check_samples(path):
    """The list of touching samples after the last step."""
    recipe, recorded, _, reports = evaluated(path)
    last = jax.tree.map(lambda x: x[recipe.steps - 1], reports)
    points = jax.tree.map(np.asarray, contact_points(recipe.model, last))
    listed = recorded["body_cp_index"][:, 0]
    # The engine lists what is near; what it leaves out carries no force.
    near = points.distance <= float(js.get(recipe.model, "plane", "penalty_threshold_default"))
    assert set(points.sample[points.active & points.force.any(1)]) <= set(listed) <= set(points.sample[near])
    row = {int(s): i for i, s in enumerate(points.sample)}
    at = np.array([row[int(i)] for i in listed])
    scale = replay.weight_and_size(recipe.model, "body")[0]
    np.testing.assert_allclose(points.weight[at], recorded["body_cp_weight"], rtol=1e-12)
    np.testing.assert_allclose(points.position[at], recorded["body_cp_pos_a"], atol=1e-14)
    np.testing.assert_allclose(points.distance[at], recorded["body_cp_distance"], atol=1e-15)
    np.testing.assert_allclose(points.normal[at], recorded["body_cp_normal"], atol=1e-14)
    np.testing.assert_allclose(points.force[at], recorded["body_cp_force"], atol=1e-9 * scale)
    # The sum over the samples is the force on the body.
    np.testing.assert_allclose(points.force.sum(0), recorded["body_force"][-1], atol=1e-9 * scale)


@pytest.mark.parametrize("name", ["b_cube12_tilt_drop_expl", "c_incline_both"])
def test_samples_of_the_last_row(name):
    check_samples(reference.find(name))


@pytest.mark.slow
@pytest.mark.parametrize("path", reference.bundled("bcd"), ids=lambda p: p.stem)
def test_samples_of_the_last_row_of_every_file(path):
    check_samples(path)
