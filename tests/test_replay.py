"""The replay of reference trajectories, and the tool that does it."""

import pathlib

import numpy as np
import pytest
import reference
import replay

QUICK = [
    "a_spin_offset_merit_be",
    "a_spin_offset_ne_be",
    "b_cube12_drop",
    "b_cube12_tilt_drop_expl",
    "b_cube12_drop_default_solver",
    "c_incline_cinf_slip_impl",
    "c_incline_viscous",
    "c_bounce_e5_implnf",
    "d_slide",
    "e_stack_box12",
    "f_box_sdf_static",
]


def check(path: pathlib.Path):
    result = replay.replay(path)
    assert result.verdict == "PASS", result
    assert result.rows > 1


@pytest.mark.parametrize("name", QUICK)
def test_replay_reproduces_the_reference(name):
    check(reference.find(name))


@pytest.mark.slow
@pytest.mark.parametrize("path", reference.bundled("abcdef"), ids=lambda p: p.stem)
def test_replay_reproduces_every_bundled_file(path):
    check(path)


@pytest.mark.slow
def test_replay_of_the_full_set_fails_nowhere():
    results = [replay.replay(p) for p in sorted(reference.require_full_set().glob("*.npz"))]
    assert not [r for r in results if r.verdict == "FAIL"]
    assert {r.verdict for r in results if r.file[0] in "abcdef"} == {"PASS"}
    assert all(r.reason for r in results if r.verdict == "UNSUPPORTED")


def altered(tmp_path: pathlib.Path, name: str, change) -> pathlib.Path:
    with np.load(reference.find(name)) as data:
        arrays = {k: data[k].copy() for k in data.files}
    change(arrays)
    path = tmp_path / f"{name}.npz"
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    "field, error", [("pos", "position"), ("quat", "rotation"), ("linvel", "velocity"), ("force", "force")]
)
def test_a_row_that_is_off_fails(tmp_path, field, error):
    def change(arrays):
        arrays[f"body_{field}"][100, 0] += 1e-6 if field != "force" else 1e-4

    result = replay.replay(altered(tmp_path, "d_slide", change))
    assert result.verdict == "FAIL"
    assert error in result.reason


def test_a_row_that_is_not_a_number_fails(tmp_path):
    def change(arrays):
        arrays["body_pos"][-1] = np.nan

    assert replay.replay(altered(tmp_path, "d_slide", change)).verdict == "FAIL"


def test_rows_after_an_unsolved_one_do_not_count(tmp_path):
    def change(arrays):
        arrays["status"][50] = 2
        arrays["body_pos"][50:] = np.nan

    result = replay.replay(altered(tmp_path, "d_slide", change))
    assert (result.verdict, result.rows) == ("PASS", 50)


def test_the_run_reads_no_recorded_row(tmp_path):
    def change(arrays):
        for key, value in arrays.items():
            if value.dtype == float and not key.startswith("mesh_"):
                value[...] = np.nan

    runs = [
        replay.simulate(replay.read(path))["body"]
        for path in (reference.find("d_slide"), altered(tmp_path, "d_slide", change))
    ]
    for a, b in zip(*runs):
        assert np.isfinite(a).all()
        np.testing.assert_array_equal(a, b)


def test_exit_status_and_count(tmp_path, capsys):
    def change(arrays):
        arrays["body_pos"][100, 0] += 1e-6

    good, table = str(reference.find("d_slide")), str(reference.find("quadrature_rules.json"))
    assert replay.main([good, table]) == 0
    assert "1 PASS, 0 FAIL, 1 UNSUPPORTED" in capsys.readouterr().out
    bad = str(altered(tmp_path, "d_slide", change))
    assert replay.main([good, bad, "--json"]) == 1
    assert '"FAIL": 1' in capsys.readouterr().out


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-3, 2.0, np.pi])
def test_rotation_error_is_the_angle(angle):
    a = np.array([0.1, -0.7, 0.3, 0.6])
    a /= np.linalg.norm(a)
    axis = np.array([2.0, -1.0, 2.0]) / 3
    s, c = np.sin(angle / 2), np.cos(angle / 2)
    # b = a * turn
    b = np.concatenate([a[3] * s * axis + c * a[:3] + np.cross(a[:3], s * axis), [a[3] * c - s * a[:3] @ axis]])
    for sign in (1, -1):
        np.testing.assert_allclose(replay.rotation_error(a, sign * b), angle, atol=1e-15, rtol=1e-4)
