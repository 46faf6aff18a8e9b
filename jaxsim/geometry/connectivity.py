"""Connected components of graphs given as pairs."""

import numpy as np
from jaxtyping import Int


def connected(n: int, pairs: Int[np.ndarray, "p 2"]) -> Int[np.ndarray, "n"]:
    """The component, numbered from 0, of each of `n` nodes that the pairs join."""
    from scipy.sparse import coo_array  # here, since only mesh files need it
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(pairs), bool), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    return connected_components(graph, directed=False)[1]


def members(label: Int[np.ndarray, "n"]) -> list[Int[np.ndarray, "m"]]:
    """The nodes of each label, in the order of the labels."""
    order = np.argsort(label, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(label[order])) + 1)
