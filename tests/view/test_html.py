"""The page stands alone, leaves nothing behind, and in a real browser its body moves."""

import io
import re
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("viser", reason='viser is missing: pip install "jaxsim-contact[viz]"')

from chromium import EXECUTABLE, Chromium

from jaxsim.view.html import show, to_html, write_html
from jaxsim.view.scene import Animation, VisualMesh, VisualPlane

CORNERS = 0.1 * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
QUADS = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
FACES = [triangle for a, b, c, d in QUADS for triangle in ((a, b, c), (a, c, d))]
GREEN = (0.0, 0.6, 0.0)


def falling_cube(up=(0.0, 0.0, 1.0), frames=60):
    """A green cube that falls one metre in two seconds and rests on the ground."""
    up, times = np.array(up), np.linspace(0.0, 2.0, frames)
    positions = np.clip(1.1 - 0.55 * times, 0.1, None)[:, None, None] * up
    arrows = np.concatenate([np.zeros((frames, 1, 3)), positions * (times > 1.0)[:, None, None]], axis=-1)
    return Animation(
        title="Falling <cube>",
        meshes=[VisualMesh("cube", CORNERS, FACES, color=GREEN)],
        planes=[VisualPlane("ground", up, 0.0)],
        times=times,
        positions=positions,
        quaternions=np.tile([0.0, 0.0, 0.0, 1.0], (frames, 1, 1)),
        arrows=arrows,
        up=up,
    )


def test_the_page_stands_alone_and_carries_its_title(capfd):
    page = to_html(falling_cube())
    assert capfd.readouterr() == ("", "")
    assert "<title>Falling &lt;cube&gt;</title>" in page
    assert "grid 0.2 m" in page
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", page)
    assert len(page) < 1_200_000


def test_no_server_stays(tmp_path):
    code = f"""
import sys, threading
sys.path.insert(0, {str(__file__.rpartition("/")[0])!r})
from test_html import falling_cube, to_html
import psutil
to_html(falling_cube())
assert not [c for c in psutil.Process().net_connections() if c.status == psutil.CONN_LISTEN]
assert threading.active_count() == 1, threading.enumerate()
"""
    pytest.importorskip("psutil")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_still_picture_needs_neither_motion_nor_planes():
    still = falling_cube(frames=2)
    one = Animation("still", still.meshes, [], still.times[:1], still.positions[:1], still.quaternions[:1])
    assert "<title>still</title>" in to_html(one)


def test_files_are_whole_or_absent(tmp_path):
    path = write_html(falling_cube(frames=2), tmp_path / "cube.html")
    assert path.read_text().rstrip().endswith("</html>")
    assert [p.name for p in tmp_path.iterdir()] == ["cube.html"]
    with pytest.raises(FileNotFoundError, match="missing does not exist"):
        write_html(falling_cube(frames=2), tmp_path / "missing" / "cube.html")


def test_show_outside_a_notebook_names_a_file():
    path = show(falling_cube(frames=2))
    assert path.read_text().rstrip().endswith("</html>")
    path.unlink()


def test_show_in_a_notebook_is_an_inline_frame(monkeypatch):
    pytest.importorskip("IPython")
    monkeypatch.setattr("jaxsim.view.html._in_notebook", lambda: True)
    data = show(falling_cube(frames=2), height=321).data
    assert data.startswith("<div><iframe srcdoc=")
    assert 'height="321"' in data


def test_a_missing_viewer_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(ImportError, match=re.escape('pip install "jaxsim-contact[viz]"')):
        to_html(falling_cube(frames=2))


def green_centroid(png: bytes) -> np.ndarray | None:
    """(2,) column and row [px] of the middle of the green pixels; None when there are too few."""
    from matplotlib.image import imread

    red, green, blue = np.moveaxis(imread(io.BytesIO(png))[..., :3], -1, 0)
    rows, columns = np.nonzero((green > red + 0.2) & (green > blue + 0.2))
    return np.array([columns.mean(), rows.mean()]) if rows.size > 60 else None


@pytest.mark.slow
@pytest.mark.skipif(EXECUTABLE is None, reason="neither chromium nor google-chrome is on PATH")
@pytest.mark.parametrize("up", [(0, 0, 1), (0, 1, 0)], ids=["z_up", "y_up"])
def test_the_body_falls_down_the_screen(tmp_path, up):
    pytest.importorskip("matplotlib")
    page = write_html(falling_cube(up), tmp_path / "cube.html")
    seen, deadline = [], time.monotonic() + 90.0
    # Wide, so that viser's note about software rendering, at the left, does not cover the cube.
    with Chromium(tmp_path / "profile", 800, 420) as browser:
        browser.open(page.as_uri())
        while time.monotonic() < deadline and (len(seen) < 2 or np.ptp(seen, axis=0)[1] < 60):
            time.sleep(0.3)
            centroid = green_centroid(browser.screenshot())
            if centroid is not None:
                seen.append(centroid)
        assert seen, f"no green cube in the picture; the page said {browser.messages}"
        across, down = np.ptp(seen, axis=0)
        assert down >= 60, f"the cube moved by {down:.0f} pixels only"
        assert across < 0.1 * down
        assert not browser.messages
        assert {url.partition(":")[0] for url in browser.requests} <= {"file", "data", "blob"}
