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
QUICK = ["b_cube12_tilt_drop_expl", "c_incline_both", "c_bounce_e5_implnf", "e_stack_mix", "f_torus_static"]
LISTED = ("actor_a", "actor_b", "index", "weight", "pos_a", "distance", "normal", "force")


def states_and_reports(recipe: replay.Recipe, recorded):
    """States that pass through the recorded poses, and one report per step between them."""
    rows = max(recipe.steps, replay.SHARED_STEPS) + 1  # the last pose repeated: files then share what is compiled

    def filled(x):
        return np.concatenate([x, np.repeat(x[-1:], rows - len(x), 0)])

    def joined(*fields):
        return filled(np.concatenate([recorded[f"{b.name}_{f}"] for b in recipe.model.dynamic for f in fields], 1))

    q, v = joined("com", "quat"), joined("linvel", "angvel")
    states = jax.tree.map(lambda x: jnp.broadcast_to(x, (rows, *x.shape)), recipe.state)
    states = js.State(**(vars(states) | {"q": jnp.asarray(q), "v": jnp.asarray(v)}))
    before, after = jax.tree.map(lambda x: x[:-1], states), jax.tree.map(lambda x: x[1:], states)
    n = rows - 1
    bodies = recipe.model.n_dynamic
    one, number, per_body = jnp.ones(n, jnp.int32), jnp.zeros(n), jnp.ones((n, bodies), jnp.int32)
    stage = StageInputs(
        before, after, None, jnp.full(n, recipe.h), jnp.ones((n, bodies), bool), recipe.params.contact_options
    )
    overflow = jnp.zeros(n, bool)
    return states, js.StepReport(
        one, one, number, per_body, per_body, per_body, jnp.zeros((n, bodies)), overflow, stage, recipe.params.preset
    )


def evaluated(path):
    recipe = replay.read(path)
    with np.load(path) as data:
        recorded = {k: data[k] for k in data.files}
    states, reports = states_and_reports(recipe, recorded)
    return recipe, recorded, states, reports


def check_forces(path):
    recipe, recorded, states, reports = evaluated(path)
    for body in recipe.model.dynamic:
        found = jax.tree.map(np.asarray, replay.observe(recipe.model, states, reports, body.name))
        weight, size = replay.weight_and_size(recipe.model, body.name)
        n = recipe.steps + 1
        force = np.linalg.norm(found.force[:n] - recorded[f"{body.name}_force"], axis=1) / weight
        torque = np.linalg.norm(found.torque[:n] - recorded[f"{body.name}_torque"], axis=1) / (weight * size)
        assert np.abs(recorded[f"{body.name}_force"]).max() > 0.5 * weight  # there is something to compare
        assert force.max() < 1e-9, (body.name, force.argmax(), force.max())
        assert torque.max() < 1e-9, (body.name, torque.argmax(), torque.max())


@pytest.mark.parametrize("name", QUICK)
def test_force_and_torque_of_every_row(name):
    check_forces(reference.find(name))


@pytest.mark.slow
@pytest.mark.parametrize("path", reference.bundled("bcdef"), ids=lambda p: p.stem)
def test_force_and_torque_of_every_row_of_every_file(path):
    check_forces(path)


def holds_samples(path):
    with np.load(path) as data:
        return any("_cp_" in k for k in data.files)


def check_samples(path):
    """The list of touching samples after the last step."""
    recipe, recorded, _, reports = evaluated(path)
    last = jax.tree.map(lambda x: x[recipe.steps - 1], reports)
    points = jax.tree.map(np.asarray, contact_points(recipe.model, last))
    names = np.array([b.name for b in recipe.model.bodies])
    key = list(zip(names[points.actor_A].tolist(), names[points.actor_B].tolist(), points.sample.tolist()))
    threshold = np.array([float(js.get(recipe.model, name, "penalty_threshold_default")) for name in names])
    row = {k: i for i, k in enumerate(key)}
    for body in recipe.model.dynamic:
        listed = {f: recorded[f"{body.name}_cp_{f}"] for f in LISTED}
        listed_keys = list(zip(listed["actor_a"].tolist(), listed["actor_b"].tolist(), listed["index"][:, 0].tolist()))
        # The engine lists what is near, or loaded by what it touched at the stage start; of what has left since then it
        # gives the threshold as the distance, and no normal of the last pose.
        mine = np.array([body.name in k[:2] for k in key])
        near = mine & (points.distance <= threshold[points.actor_B])
        loaded = mine & points.active & points.force.any(1)
        assert {key[i] for i in np.flatnonzero(loaded)} <= set(listed_keys)
        assert set(listed_keys) <= {key[i] for i in np.flatnonzero(near | loaded)}
        at = np.array([row[k] for k in listed_keys])
        scale = replay.weight_and_size(recipe.model, body.name)[0]
        np.testing.assert_allclose(points.weight[at], listed["weight"], rtol=1e-12)
        np.testing.assert_allclose(points.position[at], listed["pos_a"], atol=1e-14)
        distance = np.minimum(points.distance, threshold[points.actor_B])[at]
        np.testing.assert_allclose(distance, listed["distance"], atol=1e-15)
        np.testing.assert_allclose(points.normal[at][near[at]], listed["normal"][near[at]], atol=1e-12)
        np.testing.assert_allclose(points.force[at], listed["force"], atol=1e-9 * scale)
        # The sum over the samples is the force on the body: what it suffers less what it exerts.
        sign = np.where(names[points.actor_A] == body.name, 1.0, -1.0) * mine
        np.testing.assert_allclose(sign @ points.force, recorded[f"{body.name}_force"][-1], atol=1e-9 * scale)


@pytest.mark.parametrize("name", ["b_cube12_tilt_drop_expl", "c_incline_both", "e_stack_mix", "f_torus_static"])
def test_samples_of_the_last_row(name):
    check_samples(reference.find(name))


@pytest.mark.slow
@pytest.mark.parametrize("path", [p for p in reference.bundled("bcdef") if holds_samples(p)], ids=lambda p: p.stem)
def test_samples_of_the_last_row_of_every_file(path):
    check_samples(path)
