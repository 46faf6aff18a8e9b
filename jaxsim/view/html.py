"""An animation as one HTML page that needs neither a network nor a server, drawn by viser's own web client."""

import contextlib
import html
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import rotation
from .atomic import write_atomically
from .framing import CAMERA_FOV, Stage, frames_to_draw, stage_of
from .optional import import_optional
from .scene import Animation, VisualMesh, VisualPlane

if TYPE_CHECKING:
    from IPython.display import HTML

LAST_FRAME_HOLD = 0.5  # [s] the last frame rests before the motion starts again
CREASE_ANGLE = float(np.deg2rad(35.0))  # edges sharper than this stay sharp; the rest is shaded smoothly
ARROW_COLOR = (0.80, 0.12, 0.16)
GRID_SIZE = 12.0  # in radii of the motion, as are the lengths below
LONGEST_ARROW = 0.6
ARROW_HEAD = 0.07
ARROW_SHAFT_RADIUS = 0.009


def to_html(animation: Animation) -> str:
    """One self-contained HTML page, about 0.9 MB and up, that plays the animation in a loop in real time.

    At most 30 frames per second of simulated time are kept, and the last one rests for half a second. The world's up
    axis is up, the first view shows the whole motion, and the heading names the side of a grid cell.

    Raises:
        ImportError: viser is missing.
    """
    stage = stage_of(animation)
    page = _record(animation, stage)
    heading = (
        '<div style="position:fixed;top:10px;right:14px;text-align:right;z-index:5;pointer-events:none;color:#222;'
        'font:15px/1.35 system-ui,sans-serif">'
        f"<b>{html.escape(animation.title)}</b><br>"
        f'<span style="font-size:12px;color:#666">grid {stage.cell():g} m</span></div>'
    )
    page = page.replace("<title>Viser</title>", f"<title>{html.escape(animation.title)}</title>", 1)
    before, _, after = page.rpartition("</body>")
    return f"{before}{heading}</body>{after}"


def write_html(animation: Animation, path: str | os.PathLike[str]) -> Path:
    """Write the page of `to_html`, whole or not at all.

    Returns:
        The path written.
    Raises:
        FileNotFoundError: the folder of `path` does not exist.
        ImportError: viser is missing.
    """
    return write_atomically(path, to_html(animation).encode())


def show(animation: Animation, height: int = 480) -> "HTML | Path":
    """The animation, to look at now.

    Args:
        animation: what to draw.
        height: of the picture in a notebook [px].
    Returns:
        In a notebook, an object that displays the page inline when it ends a cell; elsewhere the path of a temporary
        page to open in a browser.
    Raises:
        ImportError: viser is missing.
    """
    page = to_html(animation)
    if not _in_notebook():
        with tempfile.NamedTemporaryFile("w", prefix="jaxsim-", suffix=".html", delete=False, encoding="utf-8") as file:
            file.write(page)
        return Path(file.name)
    from IPython.display import HTML

    # Inside a div, since IPython warns about a bare iframe.
    return HTML(
        f'<div><iframe srcdoc="{html.escape(page)}" width="100%" height="{height}" '
        'style="border:1px solid #ddd"></iframe></div>'
    )


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this code; IPython is not imported to find out."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell is not None and hasattr(shell, "kernel")


@contextlib.contextmanager
def _silent_server() -> Iterator[Any]:
    """A viser server on a free local port, which nobody connects to: viser records a scene through one only.

    It announces itself through rich whatever it is told, so rich is silenced while it lives.
    """
    viser, rich = import_optional("viser"), import_optional("rich")
    console = rich.get_console()
    was_quiet, console.quiet = console.quiet, True
    try:
        server = viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
        try:
            yield server
        finally:
            server.stop()
    finally:
        console.quiet = was_quiet


def _record(animation: Animation, stage: Stage) -> str:
    """viser's page of the animation on its stage."""
    frames = frames_to_draw(animation.times)
    times, positions = animation.times[frames], stage.place(animation.positions[frames])
    wxyz = rotation.wxyz(rotation.multiply(stage.q_SW, animation.quaternions[frames]))
    arrows = None if animation.arrows is None else _arrow_ends(animation.arrows, frames, stage)
    with _silent_server() as server:
        with server.atomic():
            server.initial_camera.position = stage.camera_position()
            server.initial_camera.look_at = np.zeros(3)
            server.initial_camera.up = np.array([0.0, 0.0, 1.0])
            server.initial_camera.fov = CAMERA_FOV
            for index, plane in enumerate(animation.planes or [_plane_below(animation, stage)]):
                _add_plane(server, f"/plane {index} {_node_name(plane.name)}", plane, stage)
            bodies = [
                _add_mesh(server, f"/{index} {_node_name(mesh.name)}", mesh, animation.color(index), stage.radius)
                for index, mesh in enumerate(animation.meshes)
            ]
            recording = server.get_scene_serializer()
            for frame in range(len(frames)):
                if frame > 0:
                    recording.insert_sleep(float(times[frame] - times[frame - 1]))
                for body, handle in enumerate(bodies):
                    handle.position, handle.wxyz = positions[frame, body], wxyz[frame, body]
                if arrows is not None:
                    _draw_arrows(server, arrows[frame])
            if len(frames) > 1:
                recording.insert_sleep(LAST_FRAME_HOLD)
        return recording.as_html()


def _node_name(name: str) -> str:
    """`name` without the slash, which viser reads as a parent."""
    return name.replace("/", "_")


def _add_mesh(server: Any, node: str, mesh: VisualMesh, color: np.ndarray, radius: float) -> Any:
    """The mesh as a node of the scene: smooth where its surface is, sharp at its edges."""
    trimesh = import_optional("trimesh")
    merged = trimesh.Trimesh(mesh.vertices / radius, mesh.triangles, process=True)
    shaded = trimesh.graph.smooth_shade(merged, angle=CREASE_ANGLE)
    return server.scene.add_mesh_simple(
        node,
        vertices=np.asarray(shaded.vertices, np.float32),
        faces=np.asarray(shaded.faces, np.uint32),
        color=tuple(color.tolist()),
        opacity=None if mesh.opacity == 1.0 else mesh.opacity,
        side="double",
    )


def _plane_below(animation: Animation, stage: Stage) -> VisualPlane:
    """A plane that touches the lowest point of the motion, for an animation without one."""
    lowest = animation.up @ stage.center - stage.half_size[2] * stage.radius
    return VisualPlane("grid", animation.up, lowest)


def _add_plane(server: Any, node: str, plane: VisualPlane, stage: Stage) -> None:
    """The plane as a grid whose lines lie at whole multiples of the cell from the world origin, fading far out."""
    q_WP = rotation.between([0.0, 0.0, 1.0], plane.normal)
    cell = stage.cell()
    x, y, _ = np.round(rotation.rotate(rotation.conjugate(q_WP), stage.center) / cell) * cell
    server.scene.add_grid(
        node,
        width=GRID_SIZE,
        height=GRID_SIZE,
        cell_size=cell / stage.radius,
        section_size=5.0 * cell / stage.radius,
        cell_color=(205, 205, 205),
        section_color=(150, 150, 150),
        fade_distance=GRID_SIZE / 2.0,
        fade_from="origin",
        shadow_opacity=0.3,
        plane_color=(238, 240, 243),
        plane_opacity=0.7,
        wxyz=rotation.wxyz(rotation.multiply(stage.q_SW, q_WP)),
        position=stage.place(rotation.rotate(q_WP, [x, y, plane.offset])),
    )


def _arrow_ends(arrows: np.ndarray, frames: np.ndarray, stage: Stage) -> list[np.ndarray]:
    """Per frame the (k, 2, 3) ends, on the stage, of the arrows long enough to see."""
    longest = np.linalg.norm(arrows[..., 3:], axis=-1).max(initial=0.0)
    scale = LONGEST_ARROW / longest if longest > 0.0 else 0.0
    starts, vectors = stage.place(arrows[frames, :, :3]), rotation.rotate(stage.q_SW, arrows[frames, :, 3:])
    ends = np.stack([starts, starts + scale * vectors], axis=2)
    return [e[np.linalg.norm(e[:, 1] - e[:, 0], axis=-1) > ARROW_HEAD] for e in ends]


def _draw_arrows(server: Any, ends: np.ndarray) -> None:
    """Put the arrows (k, 2, 3) of this frame in the place of the last frame's."""
    server.scene.add_arrows(
        "/arrows",
        points=ends,
        colors=ARROW_COLOR,
        shaft_radius=ARROW_SHAFT_RADIUS,
        head_radius=2.5 * ARROW_SHAFT_RADIUS,
        head_length=ARROW_HEAD,
        visible=len(ends) > 0,
    )
