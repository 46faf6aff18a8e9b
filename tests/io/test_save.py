"""What is saved comes back, whatever else is refused, and no failure costs an earlier file."""

import dataclasses
import io
import json
import os
import zipfile

import chex
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim as js

H = 5e-3


def build(dtype="float64", name="cube", extra=False):
    scene = js.Scene()
    scene.add_plane(normal=(0.1, 0.0, 1.0), contact=js.ContactParams(friction_with_collider_normal=False))
    scene.add_rigid(js.Box((0.1, 0.2, 0.3)), position=(0, 0, 0.3), linear_velocity=(0.3, 0, 0), name=name)
    scene.add_rigid(js.Sphere(0.1), static=True, layer="other", name="ball")
    if extra:
        scene.add_plane(name="wall", normal=(1, 0, 0), offset=-3.0)
    return scene.build(dtype)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "world.npz"
    js.save(path, *build())
    return path


def entries(path):
    with np.load(path) as archive:
        return dict(archive)


def rewritten(path, change_header=None, change_arrays=None):
    """The file with parts of it changed by hand."""
    arrays = entries(path)
    header = json.loads(arrays.pop("header").tobytes())
    if change_header is not None:
        header = change_header(header) or header
    if change_arrays is not None:
        change_arrays(arrays)
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    np.savez(path, header=np.frombuffer(text, np.uint8), **arrays)


def refused(path, *words, **options):
    with pytest.raises(ValueError) as caught:
        js.load(path, **options)
    message = str(caught.value)
    assert str(path) in message
    for word in words:
        assert word in message, message


@pytest.mark.parametrize("batch", [False, True])
def test_everything_comes_back_to_the_bit(tmp_path, dtype, batch):
    model, state = build(dtype)
    control = js.Control.zeros(model)
    control = js.apply_force(model, control, "cube", jnp.array([0.1, -0.0, 1e-40], dtype))
    if batch:
        state, control = jax.tree.map(lambda x: jnp.stack([x, x]), (state, control))
    params = js.SolverParams.gradient(rel_tol=jnp.asarray(0.1, dtype), friction_model=js.FrictionModel.CINF_REGULARIZED)
    key = jax.random.key(3, impl="rbg")
    js.save(tmp_path / "no suffix", model, state, control, params, key)
    saved = js.load(tmp_path / "no suffix")
    assert [p.name for p in tmp_path.iterdir()] == ["no suffix"]
    for ours, theirs in zip((model, state, control, params), saved[:-1]):
        assert jax.tree.structure(ours) == jax.tree.structure(theirs)
        for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs)):
            assert type(a) is type(b)
            if isinstance(a, jax.Array):
                assert (a.dtype, a.weak_type) == (b.dtype, b.weak_type)
                assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
            else:
                assert a == b
    assert saved.params.abs_tol is None
    assert jax.random.key_impl(saved.key) == jax.random.key_impl(key)
    chex.assert_trees_all_equal(jax.random.key_data(saved.key), jax.random.key_data(key))


def test_parts_that_were_not_saved_are_none(tmp_path):
    _, state = build()
    js.save(tmp_path / "state.npz", state=state)
    saved = js.load(tmp_path / "state.npz")
    assert [x is None for x in saved] == [True, False, True, True, True]
    chex.assert_trees_all_equal(saved.state, state)


def test_a_run_continues_as_if_nothing_had_happened(tmp_path):
    traced = []

    @jax.jit
    def push(model, state, params):
        traced.append(None)
        return js.step(model, state, None, H, params)[0]

    model, state = build()
    params = js.SolverParams()
    for _ in range(3):
        state = push(model, state, params)
    js.save(tmp_path / "pause.npz", model, state, params=params)
    saved = js.load(tmp_path / "pause.npz")
    ours, theirs = push(model, state, params), push(saved.model, saved.state, saved.params)
    chex.assert_trees_all_equal(ours, theirs)
    assert len(traced) == 1


def test_equal_tables_are_stored_once(tmp_path):
    scene = js.Scene()
    for _ in range(3):
        scene.add_rigid(js.Sphere(0.1), static=True)
    js.save(tmp_path / "a.npz", scene.build()[0])
    assert sum("surface_basis" in name for name in entries(tmp_path / "a.npz")) == 1
    model = js.load(tmp_path / "a.npz").model
    assert model.bodies[0].surface_basis is model.bodies[2].surface_basis


def test_the_header_says_what_it_is(file):
    header = json.loads(entries(file)["header"].tobytes())
    assert (header["format"], header["version"], header["package"]) == ("jaxsim", 1, js.__version__)
    assert header["dtype"] == "float64"
    assert [b["name"] for b in header["topology"]["bodies"]] == ["plane0", "cube", "ball"]


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"")
    refused(path, "empty")
    path.write_text("v 0 0 0")
    refused(path, "no .npz archive")
    np.savez(path.open("wb"), weights=np.zeros(3))
    refused(path, "archive of weights", "give a file that jaxsim saved")
    np.savez(path.open("wb"), header=np.array([object()]))
    refused(path, "damaged or no jaxsim file")
    with pytest.raises(FileNotFoundError):
        js.load(tmp_path / "none.npz")


def test_no_truncation_passes(file):
    whole = file.read_bytes()
    for length in np.linspace(0, len(whole) - 1, 25).astype(int):
        file.write_bytes(whole[:length])
        refused(file)


def test_flipped_bits_are_refused_or_harmless(file):
    before, rng = js.load(file), np.random.default_rng(0)
    whole = file.read_bytes()
    for at in [*range(0, 120, 7), *rng.integers(0, len(whole), 60)]:
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.integers(8)
        file.write_bytes(damaged)
        try:
            after = js.load(file)
        except ValueError as e:
            assert str(file) in str(e)
        else:
            chex.assert_trees_all_equal(before.model, after.model)
            chex.assert_trees_all_equal(before.state, after.state)


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda h: h.update(version=2, package="9.9"), ["version 2", "jaxsim 9.9", "upgrade"]),
        (lambda h: h.update(version="1"), ["version is '1'"]),
        (lambda h: h.update(version=float("nan")), ["NaN", "header cannot be read"]),
        (lambda h: h.update(format="other"), ["'other'"]),
        (lambda h: h.update(kind="trajectory"), ["Trajectory.load"]),
        (lambda h: h.pop("content"), ["no content"]),
        (lambda h: h["content"].pop("key"), ["it holds model, state"]),
        (lambda h: h["content"].update(model=3), ["model must be a Model"]),
        (lambda h: h["content"].update(model={"class": ["os.system", {}]}), ["does not know"]),
        (lambda h: h["content"]["state"]["class"][1].pop("q"), ["State", "(q)"]),
        (lambda h: b"{" * 9, ["header cannot be read"]),
        (lambda h: b"[1]", ["header cannot be read"]),
    ],
)
def test_changed_headers_are_refused(file, change, words):
    def header(h):
        out = change(h)
        return out if isinstance(out, bytes) else None

    rewritten(file, header)
    refused(file, *words)


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda a: a.pop("state.q"), ["'state.q' is missing"]),
        (lambda a: a.update({"state.q": a["state.q"][:-1]}), ["state.q has shape (6,)", "(7,)"]),
        (lambda a: a.update({"state.v": a["state.v"].astype("f4")}), ["state.v is float32", "float64"]),
        (lambda a: a.update({"state.q": a["state.q"][None]}), ["different leading axes"]),
        (lambda a: a.update({"model.mass": np.ones(2)}), ["model.mass has shape (2,)"]),
    ],
)
def test_arrays_that_do_not_fit_are_refused(file, change, words):
    rewritten(file, change_arrays=change)
    refused(file, *words)


def test_settings_that_cannot_be_are_refused(tmp_path):
    path = tmp_path / "p.npz"
    js.save(path, params=js.SolverParams())
    rewritten(path, lambda h: h["content"]["params"]["class"][1].update(abs_tol={"float": "nan"}))
    refused(path, "abs_tol", "nan")


def test_a_model_of_another_topology_is_refused(file, tmp_path):
    model, state = build()
    assert js.load(file, model=js.replace(model, "cube", mass=3.0)).state is not None
    refused(file, "body 1", "'cube'", "'die'", model=build(name="die")[0])
    refused(file, "2 static bodies", "has 3", model=build(extra=True)[0])
    js.save(tmp_path / "s.npz", state=state)
    refused(tmp_path / "s.npz", "static_position", "(3, 3)", model=build(extra=True)[0])
    refused(tmp_path / "s.npz", "float64", "float32", model=build("float32")[0])


def test_double_precision_is_not_narrowed_in_silence(file):
    with jax.enable_x64(False):
        refused(file, "float64", "jax_enable_x64")


@pytest.mark.parametrize(
    "values, word",
    [
        (lambda m, s: {}, "nothing"),
        (lambda m, s: {"model": s}, "model must be a Model"),
        (lambda m, s: {"key": jax.random.key_data(jax.random.key(0))}, "typed key"),
        (lambda m, s: {"model": m, "state": build("float32")[1]}, "float32"),
        (lambda m, s: {"model": build(extra=True)[0], "state": s}, "static_position"),
        (lambda m, s: {"state": eqx.tree_at(lambda s: s.q, s, s.q.astype(jnp.bfloat16))}, "bfloat16"),
        (lambda m, s: {"state": eqx.tree_at(lambda s: s.q, s, {1, 2})}, "builtins.set"),
    ],
)
def test_what_a_file_cannot_hold_is_not_written(tmp_path, values, word):
    with pytest.raises(ValueError, match=word) as caught:
        js.save(tmp_path / "a.npz", **values(*build()))
    assert "a.npz" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_saving_inside_compiled_code_is_refused(tmp_path):
    with pytest.raises(ValueError, match="traced"):
        jax.jit(lambda s: js.save(tmp_path / "a.npz", state=s))(build()[1])


@pytest.mark.parametrize("broken", ["os.replace", "numpy.savez"])
def test_a_failed_save_leaves_the_earlier_file(file, monkeypatch, broken):
    before = file.read_bytes()

    def fail(*args, **kwargs):
        if broken == "numpy.savez":
            args[0].write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(broken, fail)
    with pytest.raises(KeyboardInterrupt):
        js.save(file, *build("float32"))
    assert file.read_bytes() == before
    assert os.listdir(file.parent) == [file.name]


def test_folders_are_not_made(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing does not exist"):
        js.save(tmp_path / "missing" / "a.npz", build()[0])
    with pytest.raises(IsADirectoryError, match="add a file name"):
        js.save(tmp_path, build()[0])
    assert not list(tmp_path.iterdir())


def test_pickles_are_never_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was run",))

    content = io.BytesIO()
    np.lib.format.write_array(content, np.array([Bomb()], object), allow_pickle=True)
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        archive.writestr("header.npy", content.getvalue())
    refused(tmp_path / "b.npz", "damaged or no jaxsim file")


def test_every_class_of_a_model_can_be_saved():
    from jaxsim.io.codec import CLASSES

    for shape in (js.Plane, js.Sphere, js.Box):
        assert shape in CLASSES.values()
    assert all(dataclasses.is_dataclass(c) or hasattr(c, "_fields") for c in CLASSES.values())
