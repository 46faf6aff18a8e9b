"""A NumPy table of indices that may stand as static metadata of a pytree."""

import functools

import numpy as np


class IndexTable:
    """An immutable integer array, hashed and compared by content.

    A bare NumPy array cannot be a static field: `jit` hashes static fields and compares them with `==`. Its hash is
    taken once, so that a large mesh costs nothing per call.
    """

    def __init__(self, array: np.ndarray):
        self.array = np.array(array, dtype=np.int32)  # a copy, so that the caller cannot change it behind the hash
        self.array.setflags(write=False)

    @functools.cached_property
    def _hash(self) -> int:
        return hash((self.array.shape, self.array.tobytes()))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, IndexTable) and np.array_equal(self.array, other.array)

    def __repr__(self) -> str:
        return f"IndexTable{self.array.shape}"
