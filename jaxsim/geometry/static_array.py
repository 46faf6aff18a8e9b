"""NumPy arrays that may stand as static metadata of a pytree: index tables, reference vertices."""

import numpy as np


class StaticArray:
    """An immutable NumPy array that hashes and compares by content, so that it may be a static field.

    The hash is formed once; a jitted function that is called again with the same model compares identities first.
    """

    __slots__ = ("_hash", "array")

    def __init__(self, array: np.ndarray):
        array = np.array(array, order="C")  # a copy, so that the caller cannot change it behind the hash
        array.flags.writeable = False
        self.array = array
        self._hash = hash((array.shape, array.dtype.str, array.tobytes()))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, StaticArray)
            and self._hash == other._hash
            and self.array.dtype == other.array.dtype
            and np.array_equal(self.array, other.array)
        )

    def __repr__(self) -> str:
        return f"StaticArray(shape={self.array.shape}, dtype={self.array.dtype})"
