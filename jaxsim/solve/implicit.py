"""Derivatives of the solution of an equation, not of the iterations that found it."""

import functools
from collections.abc import Callable
from typing import Any

import jax
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Float

Residual = Callable[[Float[Array, "k n w"], Any], Float[Array, "k n w"]]
LinearSolve = Callable[[Callable[[Array], Array], Array], Array]


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def implicit_zero(
    residual: Residual, linear_solve: LinearSolve, z: Float[Array, "k n w"], theta: Any
) -> Float[Array, "k n w"]:
    """The increment that keeps `residual(z, theta) = 0`, at a theta where the root is `z` = 0.

    Its value is `z` (give zeros); its derivative is -K^-1 dR/dtheta with K = dR/dz, in forward and reverse mode.
    Second derivatives are right too, except inside `lax.scan`: there the increment loses its own (known fault).

    Args:
        residual: a module-level function; whatever is differentiated travels in theta, and nothing in a closure.
        linear_solve: x with K x = b, given K's product and b; linear and transposable in b.
    """
    del residual, linear_solve, theta
    return z


@functools.partial(implicit_zero.defjvp, symbolic_zeros=True)
def _(residual, linear_solve, primals, tangents):
    z, theta = primals
    theta_dot = tangents[1]
    # The rule calls the function itself, so that a second derivative sees z move with theta.
    z = implicit_zero(residual, linear_solve, z, theta)
    # Only what really varies is differentiated: a model of which nothing varies costs nothing.
    leaves, structure = jax.tree.flatten(theta)
    dots = structure.flatten_up_to(theta_dot)
    varying = [i for i, dot in enumerate(dots) if not isinstance(dot, SymbolicZero)]

    def at(values):
        filled = list(leaves)
        for i, value in zip(varying, values, strict=True):
            filled[i] = value
        return residual(z, jax.tree.unflatten(structure, filled))

    _, r_dot = jax.jvp(at, ([leaves[i] for i in varying],), ([dots[i] for i in varying],))
    # K is the exact slope, unsymmetric as friction makes it; the forward solver's approximation has no say here.
    _, K = jax.linearize(lambda z: residual(z, theta), z)
    return z, linear_solve(K, -r_dot)
