"""Curves go where they are told to, and nowhere else."""

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason='matplotlib is missing: pip install "jaxsim-contact[viz]"')

from jaxsim.view.plot import plot_loss, plot_series, save_png


def test_series_has_one_labelled_curve_per_column():
    ax = plot_series(np.arange(3), np.arange(6).reshape(3, 2), ["x", "y"], "position [m]")
    assert [line.get_label() for line in ax.lines] == ["x", "y"]
    assert ax.lines[1].get_ydata().tolist() == [1, 3, 5]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time [s]", "position [m]")
    assert plot_series(np.arange(3), np.arange(3), ["z"], "z [m]", ax=ax) is ax


def test_series_of_the_wrong_shape_is_refused():
    with pytest.raises(ValueError, match=r"= \(3, 1\); got \(3, 2\)"):
        plot_series(np.arange(3), np.zeros((3, 2)), ["x"], "x [m]")


@pytest.mark.parametrize(
    "losses, scale",
    [
        ([100.0, 1.0], "log"),
        ([5.0, 1.0], "linear"),
        ([100.0, 0.0], "linear"),
        ([100, np.nan, 1], "log"),
        ([], "linear"),
    ],
)
def test_loss_is_logarithmic_over_decades(losses, scale):
    assert plot_loss(losses).get_yscale() == scale


def test_png_is_whole_or_absent(tmp_path):
    ax = plot_loss([3.0, 2.0, 1.0])
    for thing, name in ((ax, "axes.png"), (ax.figure, "figure.png")):
        assert save_png(thing, tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["axes.png", "figure.png"]
    with pytest.raises(FileNotFoundError, match="missing does not exist"):
        save_png(ax, tmp_path / "missing" / "axes.png")


def test_pyplot_stays_out():
    code = """
import sys
from jaxsim.view.plot import plot_loss
plot_loss([2, 1])
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)
