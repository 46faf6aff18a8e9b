"""Linear systems of a stage whose bodies meet only static ones: one 6 x 6 block per body."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..math.dense import factor_lu, solve_ldlt, solve_lu
from ..math.kernel import kernel


@kernel
def newton_direction(lower, r: Float[Array, "6 nb w"]) -> Float[Array, "6 nb w"]:
    """d with A d = r for the symmetric positive blocks that `assemble` gives as lower triangles."""
    return jnp.stack(solve_ldlt(lower, list(r)))


def solve_blocks(K, b: Float[Array, "6 nb w"]) -> Float[Array, "6 nb w"]:
    """x with K x = b for an exact, unsymmetric slope K, block by block.

    Where K is singular or not finite x is zero: the derivative of a lost step must not spread. (The test looks at K
    alone, since x has to stay linear in b.)
    """
    n = b.shape[0]
    one = jnp.ones_like(b)
    # The blocks do not see each other, so six products with K give all of them at once.
    columns = jax.vmap(lambda e: K(e[:, None, None] * one))(jnp.eye(n, dtype=b.dtype))
    usable = jnp.isfinite(columns).all((0, 1))
    eye = jnp.eye(n, dtype=b.dtype)[..., None, None]
    columns = jnp.where(usable[None, None], columns, eye)
    factors, inverse = factor_lu([[columns[j, i] for j in range(n)] for i in range(n)])
    usable = usable & jnp.isfinite(jnp.stack(inverse)).all(0)
    inverse = [jnp.where(usable, p, 0.0) for p in inverse]
    b = jnp.where(usable[None], b, 0.0)
    return jnp.stack(solve_lu(factors, inverse, list(b)))
