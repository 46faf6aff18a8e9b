"""Preconditioned conjugate gradients that run in every island on its own."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .islands import Islands

Vector = Float[Array, "k n w"]


class _Carry(NamedTuple):
    x: Vector
    r: Vector
    p: Vector
    rho: Float[Array, "n w"]
    going: Bool[Array, "n w"]
    iterations: Int[Array, ""]


def conjugate_gradient(
    matrix: Callable[[Vector], Vector],
    precondition: Callable[[Vector], Vector],
    b: Vector,
    islands: Islands,
    rel_tol: float = 1e-6,
    max_iter: int = 500,
) -> Vector:
    """x with A x = b for a symmetric positive A that does not connect different islands.

    An island stops, and is left alone, when its residual in the norm of the preconditioner has shrunk by `rel_tol`; one
    whose search direction has no positive curvature stops where it is.
    Source: Saad (2003), Iterative Methods for Sparse Linear Systems, algorithm 9.1.
    """

    def dot(u, v):
        return islands.sum(jnp.sum(u * v, axis=0))

    z = precondition(b)
    first = dot(b, z)
    goal = rel_tol * rel_tol * first

    def body(c: _Carry) -> _Carry:
        Ap = matrix(c.p)
        curvature = dot(c.p, Ap)
        usable = c.going & (curvature > 0)
        alpha = jnp.where(usable, c.rho / jnp.where(usable, curvature, 1.0), 0.0)
        x, r = _where(usable, c.x + alpha[None] * c.p, c.x), _where(usable, c.r - alpha[None] * Ap, c.r)
        z = precondition(r)
        rho = jnp.where(usable, dot(r, z), c.rho)
        beta = jnp.where(usable, rho / jnp.where(usable, c.rho, 1.0), 0.0)
        going = usable & (rho > goal)
        # Where nothing goes on nothing may be left that a product with a lost body's block could spread.
        p = _where(going, z + beta[None] * c.p, 0.0)
        return _Carry(x, r, p, rho, going, c.iterations + 1)

    going = first > 0
    start = _Carry(jnp.zeros_like(b), b, _where(going, z, 0.0), first, going, jnp.zeros((), jnp.int32))
    end = lax.while_loop(lambda c: jnp.any(c.going) & (c.iterations < max_iter), body, start)
    return end.x


def _where(lane: Bool[Array, "n w"], new, old) -> Vector:
    return jnp.where(lane[None], new, old)
