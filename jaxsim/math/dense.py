"""Factorisation of many small symmetric systems at once, component by component.

XLA on CPU runs batched Cholesky as one library call per matrix; unrolled over the components it is one vectorised
kernel for all bodies and worlds, and for six unknowns about ten times as fast (docs/design_notes.md).
"""

from collections.abc import Sequence

from .vector import Component


def solve_ldlt(lower: Sequence[Sequence[Component]], b: Sequence[Component]) -> list[Component]:
    """x with A x = b for a symmetric positive A, by LDL^T without pivoting.

    Args:
        lower: rows of the lower triangle, `lower[i][j]` for j <= i.
        b: right-hand side.

    Unrolled: meant for at most about six unknowns.
    """
    n = len(b)
    a = [list(row) for row in lower]
    x = list(b)
    inverse_pivot: list[Component] = []
    for k in range(n):
        inverse_pivot.append(1.0 / a[k][k])
        for i in range(k + 1, n):
            factor = a[i][k] * inverse_pivot[k]
            for j in range(k + 1, i + 1):
                a[i][j] = a[i][j] - factor * a[j][k]
            x[i] = x[i] - factor * x[k]
    for k in reversed(range(n)):
        x[k] = (
            (x[k] - sum(a[i][k] * x[i] for i in range(k + 1, n))) * inverse_pivot[k]
            if k < n - 1
            else (x[k] * inverse_pivot[k])
        )
    return x


def factor_lu(rows: Sequence[Sequence[Component]]) -> tuple[list[list[Component]], list[Component]]:
    """L and U of a general A whose leading minors do not vanish, in one table, and the inverse pivots.

    Without pivoting: meant for the derivative of a step, where inertia keeps the diagonal blocks far from singular and
    friction only makes them unsymmetric. A pivot that is zero or not finite shows as an inverse that is not finite.
    Unrolled: for at most about six unknowns.
    """
    n = len(rows)
    a = [list(row) for row in rows]
    inverse: list[Component] = []
    for k in range(n):
        inverse.append(1.0 / a[k][k])
        for i in range(k + 1, n):
            a[i][k] = a[i][k] * inverse[k]
            for j in range(k + 1, n):
                a[i][j] = a[i][j] - a[i][k] * a[k][j]
    return a, inverse


def solve_lu(a: Sequence[Sequence[Component]], inverse: Sequence[Component], b: Sequence[Component]) -> list[Component]:
    """x with L U x = b from `factor_lu`; linear in b."""
    n = len(b)
    x = list(b)
    for k in range(n):
        for j in range(k):
            x[k] = x[k] - a[k][j] * x[j]
    for k in reversed(range(n)):
        for j in range(k + 1, n):
            x[k] = x[k] - a[k][j] * x[j]
        x[k] = x[k] * inverse[k]
    return x
