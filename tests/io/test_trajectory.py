"""Records of rollouts come back with what they recorded."""

import dataclasses
import json

import chex
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim as js


@pytest.fixture(scope="module")
def rolled():
    scene = js.Scene()
    scene.add_plane()
    scene.add_rigid(js.Box((0.1, 0.1, 0.1)), position=(0, 0, 0.1), linear_velocity=(0.2, 0, 0), name="cube")
    model, state = scene.build()
    controls = jax.tree.map(lambda x: jnp.stack([x, x]), js.Control.zeros(model))
    return js.rollout(model, state, controls, 5e-3, js.SolverParams.gradient(), steps=4, substeps=2)[1]


def observing(trajectory, rows):
    return dataclasses.replace(trajectory, rows=rows, observed=True)


def same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    chex.assert_trees_all_equal(a, b)
    chex.assert_trees_all_equal_dtypes(a, b)


def test_a_record_comes_back(rolled, tmp_path):
    rolled.save(tmp_path / "t.npz")
    loaded = js.Trajectory.load(tmp_path / "t.npz")
    same(rolled, loaded)
    assert loaded.summaries.preset == "gradient" and loaded.options.explicit_normals
    same(rolled.reports.stage, loaded.reports.stage)


def test_batches_and_missing_controls_come_back(rolled, tmp_path):
    batch = jax.tree.map(lambda x: jnp.stack([x, 2 * x]), eqx.tree_at(lambda t: t.controls, rolled, None))
    batch.save(tmp_path / "t.npz")
    same(batch, js.Trajectory.load(tmp_path / "t.npz"))


@pytest.mark.parametrize(
    "rows",
    [
        jnp.arange(5.0),
        {"z": jnp.ones((5, 3)), "odd /../ name": (jnp.zeros(5, bool), [jnp.zeros(5, jnp.int32)]), "": None},
        js.Pose(jnp.zeros((5, 3)), jnp.ones((5, 4))),
        (),
    ],
)
def test_observations_come_back(rolled, tmp_path, rows):
    observing(rolled, rows).save(tmp_path / "t.npz")
    loaded = js.Trajectory.load(tmp_path / "t.npz")
    same(loaded.rows, rows)
    with pytest.raises(ValueError, match="recorded observations"):
        _ = loaded.states


class Odd(eqx.Module):
    x: jax.Array


@pytest.mark.parametrize(
    "rows, word",
    [
        (Odd(jnp.zeros(5)), "Odd"),
        ({1: jnp.zeros(5)}, "dict"),
        (jnp.zeros(5, jnp.bfloat16), "bfloat16"),
        ({"a": jnp.zeros(4)}, r"\['a'\] has shape \(4,\)"),
    ],
)
def test_other_observations_are_refused(rolled, tmp_path, rows, word):
    with pytest.raises(ValueError, match=word) as caught:
        observing(rolled, rows).save(tmp_path / "t.npz")
    assert "t.npz" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_files_of_the_other_kind_are_refused(rolled, tmp_path):
    js.save(tmp_path / "s.npz", rolled.model)
    with pytest.raises(ValueError, match=r"s\.npz.*jaxsim\.load"):
        js.Trajectory.load(tmp_path / "s.npz")
    rolled.save(tmp_path / "t.npz")
    with pytest.raises(ValueError, match=r"t\.npz.*Trajectory\.load"):
        js.load(tmp_path / "t.npz")


@pytest.mark.parametrize(
    "name, change, word",
    [
        ("rows.q", lambda x: x[:-1], "different leading axes"),
        ("rows.q", lambda x: x[:, :-1], r"rows\.q has shape \(5, 6\)"),
        ("summaries.status", lambda x: x[:-1], "leading axes"),
        ("controls.loads", lambda x: x.astype("f4"), "float32"),
    ],
)
def test_parts_that_do_not_fit_are_refused(rolled, tmp_path, name, change, word):
    path = tmp_path / "t.npz"
    rolled.save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    np.savez(path, **arrays | {name: change(arrays[name])})
    with pytest.raises(ValueError, match=word):
        js.Trajectory.load(path)


@pytest.mark.parametrize("substeps", [0, "2", 2.5, True])
def test_substeps_that_cannot_be_are_refused(rolled, tmp_path, substeps):
    path = tmp_path / "t.npz"
    rolled.save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    header = json.loads(arrays.pop("header").tobytes())
    header["content"]["substeps"] = substeps
    np.savez(path, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)
    with pytest.raises(ValueError, match="substeps"):
        js.Trajectory.load(path)
