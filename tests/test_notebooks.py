"""The notebooks run, and match their scripts."""

from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
SCRIPTS = sorted(NOTEBOOKS.glob("*.py"))


def sources(notebook) -> list[tuple[str, str]]:
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_pair_agrees(script):
    jupytext = pytest.importorskip("jupytext")
    pair = jupytext.read(script.with_suffix(".ipynb"))
    assert sources(pair) == sources(jupytext.read(script)), f"run: jupytext --to ipynb {script}"
    assert not any(cell.get("outputs") for cell in pair.cells), "outputs are not kept in the repository"


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_runs(script):
    jupytext, nbclient = pytest.importorskip("jupytext"), pytest.importorskip("nbclient")
    notebook = jupytext.read(script.with_suffix(".ipynb"))
    resources = {"metadata": {"path": str(NOTEBOOKS.parent)}}  # so that a checkout finds its package
    nbclient.NotebookClient(notebook, timeout=900, kernel_name="python3", resources=resources).execute()
