"""Poses, wrenches and twists: what stays the same when frame and point change."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.math import rotation
from jaxsim.math.spatial import Pose, Wrench

RNG = np.random.default_rng(2)


def random_pose() -> Pose:
    return Pose(jnp.asarray(RNG.normal(size=3)), rotation.from_rotation_vector(RNG.normal(size=3)))


def matrix(pose: Pose) -> np.ndarray:
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = rotation.to_matrix(pose.quaternion), pose.position
    return out


def test_poses_compose_and_invert_as_4x4_matrices_do():
    a, b = random_pose(), random_pose()
    np.testing.assert_allclose(matrix(a @ b), matrix(a) @ matrix(b), atol=1e-14)
    np.testing.assert_allclose(matrix(a.inverse()), np.linalg.inv(matrix(a)), atol=1e-14)
    np.testing.assert_allclose(matrix(a @ a.inverse()), np.eye(4), atol=1e-14)


@pytest.mark.parametrize("shape", [(), (5,), (2, 5)])
def test_one_pose_applies_to_many_points(shape):
    pose, points = random_pose(), RNG.normal(size=(*shape, 3))
    expected = points @ matrix(pose)[:3, :3].T + matrix(pose)[:3, 3]
    np.testing.assert_allclose(pose.apply(jnp.asarray(points)), expected, atol=1e-14)


def test_shifting_a_wrench_keeps_its_power():
    force, torque, v, omega, a, b = RNG.normal(size=(6, 3))
    there = Wrench(jnp.asarray(force), jnp.asarray(torque)).shift(a, b)
    power_at_a = force @ v + torque @ omega
    power_at_b = there.force @ (v + np.cross(omega, b - a)) + there.torque @ omega
    np.testing.assert_allclose(power_at_b, power_at_a, rtol=1e-13)


def test_rotating_a_wrench_turns_force_and_torque_alike():
    q = rotation.about_z(np.pi / 2)
    turned = Wrench(jnp.array([1.0, 0, 0]), jnp.array([0, 1.0, 0])).rotate(q)
    np.testing.assert_allclose(turned.force, [0, 1, 0], atol=1e-15)
    np.testing.assert_allclose(turned.torque, [-1, 0, 0], atol=1e-15)


def test_root_of_a_body_that_spins_about_an_offset_center_moves_at_omega_cross_minus_c():
    center, omega, dt = np.array([0.3, -0.1, 0.2]), np.array([0.5, 2.0, -1.0]), 1e-6

    def root(t):  # of a body whose centre of mass stays at the origin of the world
        q = rotation.from_rotation_vector(omega * t)
        return -np.asarray(rotation.rotate(q, jnp.asarray(center)))

    np.testing.assert_allclose((root(dt) - root(-dt)) / (2 * dt), np.cross(omega, -center), rtol=1e-9)
