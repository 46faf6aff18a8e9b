"""Derivatives of the solution of an equation, not of the iterations that found it."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float

Residual = Callable[[Float[Array, "k n w"], Any], Float[Array, "k n w"]]
SlopeSolve = Callable[[Float[Array, "k n w"], Any, Float[Array, "k n w"]], Float[Array, "k n w"]]


def implicit_zero(
    residual: Residual, solve_slope: SlopeSolve, z: Float[Array, "k n w"], theta: Any
) -> Float[Array, "k n w"]:
    """The increment that keeps `residual(z, theta) = 0`, at a theta where the root is `z` = 0.

    Its value is `z` (give zeros); its derivative is -K^-1 dR/dtheta with K = dR/dz. Since K is taken at the increment
    itself, which moves with theta, derivatives of any order and in any mix of modes are those of the root.

    Args:
        residual: a pure function; whatever is differentiated travels in theta, and nothing in a closure.
        solve_slope: x with K x = b, given z, theta and b; linear and transposable in b, differentiable in z and theta.
            K is the exact slope, unsymmetric as friction makes it: a forward solver's approximation has no say here.
    """
    leaves, structure = jax.tree.flatten(theta)

    def slope(varying: tuple[int, ...], z, leaves, dots):
        # Only what really varies is differentiated: a model of which nothing varies costs nothing.
        def at(values):
            filled = list(leaves)
            for i, value in zip(varying, values, strict=True):
                filled[i] = value
            return residual(z, jax.tree.unflatten(structure, filled))

        _, r_dot = jax.jvp(at, ([leaves[i] for i in varying],), (list(dots),))
        return solve_slope(z, jax.tree.unflatten(structure, leaves), -r_dot)

    return _implicit_p.bind(z, *leaves, slope=slope)


# A primitive and not a `custom_jvp`: JAX drops the rule of a custom_jvp where it splits a `lax.scan` for reverse mode.
# The increment's own derivative, and with it every second derivative of a rollout, would be lost without a word.
_implicit_p = Primitive("implicit_zero")


@_implicit_p.def_impl
def _(z, *leaves, slope):
    return z


@_implicit_p.def_abstract_eval
def _(z, *leaves, slope):
    return z


mlir.register_lowering(_implicit_p, lambda ctx, z, *leaves, slope: [z])


def _jvp(primals, tangents, *, slope):
    z, *leaves = primals
    dots = [None if _is_zero(dot) else dot for dot in tangents[1:]]
    varying = tuple(i for i, dot in enumerate(dots) if dot is not None)
    # Bound again and handed to the rule, so that a second derivative sees z move with theta.
    z = _implicit_p.bind(z, *leaves, slope=slope)
    if not varying:
        return z, jnp.zeros_like(z)
    return z, slope(varying, z, leaves, [dots[i] for i in varying])


def _is_zero(dot) -> bool:
    return isinstance(dot, ad.Zero) or dot.dtype == jax.dtypes.float0


def _batch(args, axes, *, slope):
    z, *leaves = args
    size = next(x.shape[axis] for x, axis in zip(args, axes) if axis is not None)
    # The increment varies wherever theta does, even if the zeros do not.
    z = jnp.broadcast_to(z, (size, *z.shape)) if axes[0] is None else jnp.moveaxis(z, axes[0], 0)

    def batched(varying, z, leaves, dots):
        along = (0, list(axes[1:]), [axes[1:][i] for i in varying])
        return jax.vmap(lambda z, leaves, dots: slope(varying, z, leaves, dots), in_axes=along)(z, leaves, dots)

    return _implicit_p.bind(z, *leaves, slope=batched), 0


ad.primitive_jvps[_implicit_p] = _jvp
batching.primitive_batchers[_implicit_p] = _batch
