"""An animation is checked when it is made, and says what is wrong with it."""

import numpy as np
import pytest

from jaxsim.view.scene import COLOR_CYCLE, Animation, VisualMesh, VisualPlane

TETRAHEDRON = VisualMesh("tet", np.vstack([np.zeros(3), np.eye(3)]), [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def animation(frames=4, bodies=2, **changes):
    fields = {
        "title": "test",
        "meshes": [TETRAHEDRON] * bodies,
        "planes": [],
        "times": np.arange(frames) / 10.0,
        "positions": np.zeros((frames, bodies, 3)),
        "quaternions": np.tile([0.0, 0.0, 0.0, 1.0], (frames, bodies, 1)),
    }
    return Animation(**(fields | changes))


def test_a_lost_pose_names_body_and_frame():
    positions = np.zeros((4, 2, 3))
    positions[2, 1, 0] = np.nan
    with pytest.raises(ValueError, match=r"positions of body 'tet' \(index 1\) are not finite at frame 2, t = 0.2 s"):
        animation(positions=positions)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"times": [0.0, 0.1, 0.1, 0.2]}, "times must be increasing"),
        ({"times": []}, "times must be increasing"),
        ({"positions": np.zeros((3, 2, 3))}, r"positions must have shape .* = \(4, 2, 3\); got \(3, 2, 3\)"),
        ({"quaternions": np.zeros((4, 2, 4))}, "must have unit length"),
        ({"quaternions": np.zeros((4, 2, 3))}, "quaternions must have shape"),
        ({"arrows": np.zeros((4, 3))}, r"arrows must have shape \(4, any, 6\)"),
        ({"arrows": np.full((4, 1, 6), np.inf)}, "arrows must be finite"),
        ({"up": np.zeros(3)}, "up must not be the zero vector"),
        ({"meshes": []}, "meshes is empty"),
    ],
)
def test_wrong_fields_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        animation(**changes)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"vertices": np.zeros((4, 2))}, r"vertices must have shape \(any, 3\)"),
        ({"triangles": [[0, 1, 4]]}, "from 0 to 3"),
        ({"triangles": [[0, 1, -1]]}, "from 0 to 3"),
        ({"triangles": np.zeros((0, 3))}, "nothing to draw"),
        ({"color": (255, 0, 0)}, "divide bytes by 255"),
        ({"opacity": 1.5}, "opacity must lie in 0..1"),
    ],
)
def test_wrong_meshes_are_refused(changes, message):
    fields = {"name": "tet", "vertices": TETRAHEDRON.vertices, "triangles": TETRAHEDRON.triangles}
    with pytest.raises(ValueError, match=f"'tet': .*{message}"):
        VisualMesh(**(fields | changes))


def test_directions_and_quaternions_are_normalised():
    assert VisualPlane("wall", (0, 3, 4), 2).normal == pytest.approx([0, 0.6, 0.8])
    drifted = np.tile([0.0, 0.0, 0.0, 1.001], (4, 2, 1))
    assert np.linalg.norm(animation(quaternions=drifted).quaternions, axis=-1) == pytest.approx(np.ones((4, 2)))
    with pytest.raises(ValueError, match="normal must not be the zero vector"):
        VisualPlane("wall", (0, 0, 0))


def test_colors_are_the_meshes_own_or_their_turn_in_the_cycle():
    red = VisualMesh("red", TETRAHEDRON.vertices, TETRAHEDRON.triangles, color=(1, 0, 0))
    scene = animation(meshes=[red, TETRAHEDRON])
    assert scene.color(0).tolist() == [1, 0, 0]
    assert scene.color(1).tolist() == COLOR_CYCLE[1].tolist()
