"""The command line: what it prints, and how it refuses."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from jaxsim import cli

ROOT = Path(__file__).parents[1]

TETRAHEDRON = """v 0 0 0
v 1 0 0
v 0 1 0
v 0 0 1
f 1 3 2
f 1 2 4
f 1 4 3
f 2 3 4
"""


def refused(capsys, *arguments: str) -> str:
    """The one line on stderr of a command that exits with 2."""
    assert cli.main(arguments) == 2
    _, err = capsys.readouterr()
    assert err.count("\n") == 1 and "Traceback" not in err
    return err


def test_module_runs():
    result = subprocess.run(
        [sys.executable, "-m", "jaxsim", "--version"], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0 and result.stdout.startswith("jaxsim ")


def test_doctor_tells_versions_devices_and_dtype(capsys):
    assert cli.main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("jax ", "devices: ", "x64: on", "default dtype: float64", "extra"))


def test_doctor_names_what_is_missing_and_the_remedy(capsys, monkeypatch):
    lines = ["jax>=0.10", 'trimesh>=5.2; extra == "mesh"', 'no-such-thing>=1 ; extra == "viz"']
    monkeypatch.setattr(cli.importlib.metadata, "requires", lambda name: lines)
    assert cli.main(["doctor"]) == 0
    assert 'extra viz: missing no-such-thing: pip install "jaxsim-contact[viz]"' in capsys.readouterr().out


def test_inspect_reports_a_mesh_and_draws_it_into_the_current_folder(tmp_path, capsys, monkeypatch):
    pytest.importorskip("trimesh")
    pytest.importorskip("matplotlib")
    file = tmp_path / "tetra$hedron.obj"
    file.write_text(TETRAHEDRON)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert cli.main(["inspect", str(file), "--unit", "mm", "--axes", "y-up"]) == 0
    out = capsys.readouterr().out
    assert "4 triangles" in out and "0.001 x 0.001 x 0.001 m" in out
    assert [path.name for path in folder.iterdir()] == ["tetra$hedron_inspect.png"]
    assert (folder / "tetra$hedron_inspect.png").read_bytes().startswith(b"\x89PNG")


def test_inspect_without_a_picture_writes_nothing(tmp_path, capsys, monkeypatch):
    pytest.importorskip("trimesh")
    file = tmp_path / "tetrahedron.obj"
    file.write_text(TETRAHEDRON)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["inspect", str(file), "--no-picture"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["tetrahedron.obj"]


@pytest.mark.parametrize("option", [("--unit", "parsec"), ("--axes", "x x z"), ("--scale", "0"), ("--out", "nowhere")])
def test_inspect_refuses_wrong_options_and_writes_nothing(tmp_path, capsys, monkeypatch, option):
    pytest.importorskip("trimesh")
    (tmp_path / "tetrahedron.obj").write_text(TETRAHEDRON)
    monkeypatch.chdir(tmp_path)
    assert option[0].lstrip("-") in refused(capsys, "inspect", "tetrahedron.obj", *option)
    assert [path.name for path in tmp_path.iterdir()] == ["tetrahedron.obj"]


@pytest.mark.parametrize("name, content", [("none.obj", None), ("bad.stl", "not a mesh"), ("odd.xyzzy", "1")])
def test_inspect_refuses_what_is_no_mesh(tmp_path, capsys, monkeypatch, name, content):
    pytest.importorskip("trimesh")
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / name).write_text(content)
    assert name in refused(capsys, "inspect", str(tmp_path / name))
    assert {path.name for path in tmp_path.iterdir()} <= {name}


def test_view_refuses_a_missing_and_a_foreign_file(tmp_path, capsys):
    assert "no such file" in refused(capsys, "view", str(tmp_path / "none.npz"))
    (tmp_path / "foreign.npz").write_bytes(b"PK not really")
    assert "foreign.npz" in refused(capsys, "view", str(tmp_path / "foreign.npz"))


def test_demo_refuses_a_folder_that_is_not_there(tmp_path, capsys):
    assert "make it first" in refused(capsys, "demo", "push", "--out", str(tmp_path / "none"))


def test_demo_refuses_a_mesh_for_push(tmp_path, capsys):
    assert "throw" in refused(capsys, "demo", "push", "--mesh", "x.obj")


def test_demo_without_a_name_runs_every_demo(monkeypatch):
    pytest.importorskip("trimesh")
    ran = []
    for name in cli.DEMOS:
        demo = importlib.import_module(f"jaxsim.demos.{name}")
        monkeypatch.setattr(demo, "run", lambda *_, name=name, **__: ran.append(name))
    assert cli.main(["demo"]) == 0
    assert ran == ["push", "throw"]


def test_bench_tells_where_the_benchmarks_are(capsys, monkeypatch):
    monkeypatch.setattr(cli.importlib.util, "find_spec", lambda name: None)
    assert "checkout" in refused(capsys, "bench")


@pytest.mark.parametrize("arguments", [[], ["demo", "juggle"], ["inspect"]])
def test_usage_errors_exit_with_two(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["push", "throw"])
def test_demo_runs_and_leaves_its_files(tmp_path, capsys, name):
    pytest.importorskip("viser")
    assert cli.main(["demo", name, "--quick", "--no-progress", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "gradient check" in out and "loss" in out
    assert (tmp_path / f"jaxsim_{name}.html").stat().st_size > 100_000
    assert (tmp_path / f"jaxsim_{name}_loss.png").stat().st_size > 5_000
