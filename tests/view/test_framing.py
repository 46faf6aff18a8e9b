"""The camera sees the whole motion, up is up, and frames are thinned in real time."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jaxsim.view import rotation
from jaxsim.view.framing import CAMERA_FOV, NARROWEST_ASPECT, frames_to_draw, nice_length, stage_of
from jaxsim.view.scene import Animation, VisualMesh, VisualPlane

CORNERS = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
FACES = [[0, 1, 2], [3, 4, 5], [5, 6, 7]]


def tumbling(rng, up=(0.0, 0.0, 1.0), size=0.1, planes=()):
    quaternions = Rotation.random(40, rng).as_quat().reshape(20, 2, 4)
    positions = np.cumsum(rng.normal(size=(20, 2, 3)), axis=0) * size
    meshes = [VisualMesh(name, size * CORNERS * scale, FACES) for name, scale in (("a", [1, 1, 1]), ("b", [3, 1, 0.2]))]
    return Animation("tumbling", meshes, planes, np.arange(20) / 30.0, positions, quaternions, up=np.array(up))


@pytest.mark.parametrize("up", [(0, 0, 1), (0, 1, 0), (-1, 0, 0), (0, 0, -1), (1, 1, 1)])
@pytest.mark.parametrize("size", [1e-4, 0.1, 1e3])
def test_every_corner_of_every_frame_is_in_the_picture(up, size):
    animation = tumbling(np.random.default_rng(0), up, size)
    stage = stage_of(animation)
    eye = stage.camera_position()
    forward = -eye / np.linalg.norm(eye)
    right = np.cross(forward, [0, 0, 1]) / np.linalg.norm(np.cross(forward, [0, 0, 1]))
    for body, mesh in enumerate(animation.meshes):
        turned = rotation.rotate(animation.quaternions[:, body, None], mesh.vertices)
        p = stage.place(turned + animation.positions[:, body, None]) - eye
        depth = p @ forward
        half_height = depth * np.tan(CAMERA_FOV / 2)
        assert (depth > 0).all()
        assert (np.abs(p @ np.cross(right, forward)) < half_height).all()
        assert (np.abs(p @ right) < NARROWEST_ASPECT * half_height).all()
    assert rotation.rotate(stage.q_SW, animation.up) == pytest.approx([0, 0, 1], abs=1e-12)


def test_near_ground_is_in_the_picture_and_far_ground_is_not():
    ground = [VisualPlane("ground", (0, 0, 1), -1.0)]
    bare, near = (stage_of(tumbling(np.random.default_rng(1), planes=planes)) for planes in ([], ground))
    far = stage_of(tumbling(np.random.default_rng(1), planes=[VisualPlane("ground", (0, 0, 1), -100.0)]))
    assert near.center[2] - near.half_size[2] * near.radius == pytest.approx(-1.0)
    assert far.radius == bare.radius


@pytest.mark.parametrize("rate, frames", [(1000, 2001), (100, 201), (50, 101), (30, 61), (20, 41), (1, 3)])
def test_at_most_thirty_frames_per_second(rate, frames):
    times = 5.0 + np.arange(frames) / rate
    kept = frames_to_draw(times)
    assert kept.size == min(frames, 61)
    assert (kept[0], kept[-1]) == (0, frames - 1)
    assert (np.diff(kept) > 0).all()
    assert np.ptp(np.diff(times[kept])) < 1.01 / rate


def test_short_and_single_frames_stay():
    assert frames_to_draw(np.array([3.0])).tolist() == [0]
    assert frames_to_draw(np.linspace(0.0, 1e-3, 50)).tolist() == [0, 49]


@pytest.mark.parametrize(
    "target, length", [(0.12, 0.1), (0.5, 0.5), (0.1, 0.1), (4.9, 2.0), (70.0, 50.0), (3e-9, 2e-9)]
)
def test_grid_cells_are_round_numbers(target, length):
    assert nice_length(target) == pytest.approx(length)


def test_rotations_agree_with_scipy():
    rng = np.random.default_rng(2)
    a, b, v = Rotation.random(9, rng), Rotation.random(9, rng), rng.normal(size=(9, 3))
    qa, qb = a.as_quat(), b.as_quat()
    assert Rotation.from_quat(rotation.multiply(qa, qb)).as_matrix() == pytest.approx((a * b).as_matrix())
    assert rotation.rotate(qa, v) == pytest.approx(a.apply(v))
    assert rotation.matrix(qa) == pytest.approx(a.as_matrix())
    assert rotation.rotate(rotation.conjugate(qa), rotation.rotate(qa, v)) == pytest.approx(v)
    assert rotation.wxyz(np.array([1, 2, 3, 4])).tolist() == [4, 1, 2, 3]
    for start, end in [([0, 0, 1], [0, 0, -1]), ([1, 0, 0], [0, 1, 0]), ([0, 1, 0], [0, 1, 0])]:
        assert rotation.rotate(rotation.between(start, end), start) == pytest.approx(end)
