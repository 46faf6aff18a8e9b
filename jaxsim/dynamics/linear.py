"""Linear systems of a stage: one 6 x 6 block per body, and blocks between bodies that touch."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from ..math.dense import factor_lu, solve_ldlt, solve_lu
from ..math.kernel import kernel
from ..math.rows import Rows, sum_over_bodies, take
from ..solve.conjugate_gradient import conjugate_gradient
from ..solve.islands import Islands

# Up to so many bodies a dense factorisation is faster than iterating.
_DENSE_BODIES = 10


class Coupling(eqx.Module):
    """Blocks of the pairs of one contact group."""

    a: Rows
    b: Rows
    AB: Float[Array, "6 6 p w"]  # rows of A, columns of B
    BA: Float[Array, "6 6 p w"]


class BlockSystem(eqx.Module):
    """A matrix over all bodies' increments."""

    diagonal: Float[Array, "6 6 n w"]
    couplings: tuple[Coupling, ...]

    def __matmul__(self, x: Float[Array, "6 n w"]) -> Float[Array, "6 n w"]:
        y = _product(self.diagonal, x)
        n = x.shape[1]
        for c in self.couplings:
            y = y + sum_over_bodies(_product(c.AB, take(x, c.b)), c.a, n)
            y = y + sum_over_bodies(_product(c.BA, take(x, c.a)), c.b, n)
        return y

    def transposed(self) -> "BlockSystem":
        flipped = tuple(Coupling(c.a, c.b, jnp.swapaxes(c.BA, 0, 1), jnp.swapaxes(c.AB, 0, 1)) for c in self.couplings)
        return BlockSystem(jnp.swapaxes(self.diagonal, 0, 1), flipped)

    def dense(self) -> Float[Array, "w k k"]:
        """The whole matrix, worlds first, body by body."""
        n, width = self.diagonal.shape[-2:]
        table = jnp.zeros((n, n, width, 6, 6), self.diagonal.dtype)
        own = np.arange(n)
        table = table.at[own, own].add(jnp.moveaxis(self.diagonal, (2, 3), (0, 1)))
        for c in self.couplings:
            a, b = (jnp.asarray(r).reshape(c.AB.shape[2], -1) for r in (c.a, c.b))
            lane = jnp.arange(width)[None]
            table = table.at[a, b, lane].add(jnp.moveaxis(c.AB, (2, 3), (0, 1)))
            table = table.at[b, a, lane].add(jnp.moveaxis(c.BA, (2, 3), (0, 1)))
        return jnp.transpose(table, (2, 0, 3, 1, 4)).reshape(width, 6 * n, 6 * n)


@kernel
def _product(block: Float[Array, "6 6 m w"], x: Float[Array, "6 m w"]) -> Float[Array, "6 m w"]:
    return sum(block[:, k] * x[k][None] for k in range(6))  # type: ignore[return-value]


@kernel
def _solve_diagonal(diagonal: Float[Array, "6 6 n w"], r: Float[Array, "6 n w"]) -> Float[Array, "6 n w"]:
    return jnp.stack(solve_ldlt([[diagonal[i, j] for j in range(i + 1)] for i in range(6)], list(r)))


def newton_direction(
    system: BlockSystem, r: Float[Array, "6 nb w"], islands: Islands | None, going: Bool[Array, "nb w"]
) -> Float[Array, "6 nb w"]:
    """d with A d = r for the symmetric positive system that `assemble` gives, where a body's solve is going on."""
    if not system.couplings or islands is None:
        return _solve_diagonal(system.diagonal, r)
    if r.shape[1] <= _DENSE_BODIES:
        return _unflat(_solve_positive(system.dense(), _flat(r)), r.shape)
    return conjugate_gradient(
        lambda x: system @ x, lambda x: _solve_diagonal(system.diagonal, x), jnp.where(going[None], r, 0.0), islands
    )


def _solve_positive(matrix: Float[Array, "w k k"], b: Float[Array, "w k"]) -> Float[Array, "w k"]:
    factor = lax.linalg.cholesky(matrix)
    y = lax.linalg.triangular_solve(factor, b[..., None], left_side=True, lower=True)
    return lax.linalg.triangular_solve(factor, y, left_side=True, lower=True, transpose_a=True)[..., 0]


def _flat(x: Float[Array, "6 n w"]) -> Float[Array, "w k"]:
    return jnp.transpose(x, (2, 1, 0)).reshape(x.shape[2], -1)


def _unflat(x: Float[Array, "w k"], shape: tuple[int, ...]) -> Float[Array, "6 n w"]:
    return jnp.transpose(x.reshape(shape[2], shape[1], 6), (2, 1, 0))


def solve_exactly(K: BlockSystem, b: Float[Array, "6 nb w"]) -> Float[Array, "6 nb w"]:
    """x with K x = b for the exact, unsymmetric slope; linear and transposable in b, differentiable in K.

    Where K is singular or not finite x is zero: the derivative of a lost step must not spread. (The test looks at K
    alone, since x has to stay linear in b.)
    """
    if not K.couplings:
        return _solve_blocks(K.diagonal, b)
    usable = jnp.isfinite(K.diagonal).all((0, 1))
    for c in K.couplings:
        broken = ~(jnp.isfinite(c.AB).all((0, 1)) & jnp.isfinite(c.BA).all((0, 1)))
        for rows in (c.a, c.b):
            usable = usable & ~(sum_over_bodies(broken.astype(b.dtype), rows, b.shape[1]) > 0)
    eye = jnp.eye(6, dtype=b.dtype)[..., None, None]
    K = eqx.tree_at(lambda k: k.diagonal, K, jnp.where(usable[None, None], K.diagonal, eye))
    K = eqx.tree_at(
        lambda k: [x for c in k.couplings for x in (c.AB, c.BA)],
        K,
        [
            jnp.where((take(usable, c.a) & take(usable, c.b))[None, None], x, 0.0)
            for c in K.couplings
            for x in (c.AB, c.BA)
        ],
    )
    b = jnp.where(usable[None], b, 0.0)
    if b.shape[1] <= _DENSE_BODIES:
        return _unflat(jnp.linalg.solve(K.dense(), _flat(b)[..., None])[..., 0], b.shape)
    return lax.custom_linear_solve(
        lambda x: K @ x,
        b,
        solve=lambda _, b: _iterated(K, b),
        transpose_solve=lambda _, b: _iterated(K.transposed(), b),
    )


def _iterated(K: BlockSystem, b: Float[Array, "6 n w"]) -> Float[Array, "6 n w"]:
    """Restarted GMRES with the bodies' own blocks as preconditioner."""
    tolerance = float(jnp.finfo(b.dtype).eps) * 100
    x, _ = jax.scipy.sparse.linalg.gmres(
        lambda x: K @ x, b, tol=tolerance, restart=60, maxiter=20, M=lambda r: _solve_blocks(K.diagonal, r)
    )
    return x


def _solve_blocks(columns: Float[Array, "6 6 n w"], b: Float[Array, "6 n w"]) -> Float[Array, "6 n w"]:
    """x with K x = b for a block diagonal K, zero where a block is singular or not finite."""
    n = b.shape[0]
    usable = jnp.isfinite(columns).all((0, 1))
    eye = jnp.eye(n, dtype=b.dtype)[..., None, None]
    columns = jnp.where(usable[None, None], columns, eye)
    factors, inverse = factor_lu([[columns[i, j] for j in range(n)] for i in range(n)])
    usable = usable & jnp.isfinite(jnp.stack(inverse)).all(0)
    inverse = [jnp.where(usable, p, 0.0) for p in inverse]
    b = jnp.where(usable[None], b, 0.0)
    return jnp.stack(solve_lu(factors, inverse, list(b)))
