"""Unit quaternions xyzw in NumPy, for drawing only; `jaxsim.math` has the differentiable ones."""

import numpy as np
from numpy.typing import ArrayLike


def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(..., 4) the rotation that does `b` first, then `a`."""
    va, wa, vb, wb = a[..., :3], a[..., 3:], b[..., :3], b[..., 3:]
    vector = wa * vb + wb * va + np.cross(va, vb)
    return np.concatenate([vector, wa * wb - np.sum(va * vb, axis=-1, keepdims=True)], axis=-1)


def conjugate(q: np.ndarray) -> np.ndarray:
    """(..., 4) the opposite rotation."""
    return q * np.array([-1.0, -1.0, -1.0, 1.0])


def rotate(q: np.ndarray, v: ArrayLike) -> np.ndarray:
    """(..., 3) vectors `v` (..., 3) turned by `q` (..., 4)."""
    v = np.asarray(v, float)
    twice = 2.0 * np.cross(q[..., :3], v)
    return v + q[..., 3:] * twice + np.cross(q[..., :3], twice)


def matrix(q: np.ndarray) -> np.ndarray:
    """(..., 3, 3) whose columns are the turned axes."""
    return np.stack([rotate(q, axis) for axis in np.eye(3)], axis=-1)


def between(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """(4,) the shortest rotation that takes unit vector `a` (3,) to unit vector `b` (3,)."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    q = np.append(np.cross(a, b), 1.0 + a @ b)
    if np.linalg.norm(q) < 1e-6:  # opposite: half a turn about anything perpendicular
        q = np.append(np.cross(a, np.eye(3)[np.argmin(np.abs(a))]), 0.0)
    return q / np.linalg.norm(q)


def wxyz(q: np.ndarray) -> np.ndarray:
    """(..., 4) the same rotation in viser's order of components."""
    return np.roll(q, 1, axis=-1)
