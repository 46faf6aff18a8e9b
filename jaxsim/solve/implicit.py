"""Derivatives of the solution of an equation, not of the iterations that found it."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float

from ..math.worlds import merge_worlds, split_worlds

Residual = Callable[[Float[Array, "k n w"], Any], Float[Array, "k n w"]]
SlopeSolve = Callable[[Float[Array, "k n w"], Any, Float[Array, "k n w"]], Float[Array, "k n w"]]


def implicit_zero(
    residual: Residual, solve_slope: SlopeSolve, z: Float[Array, "k n w"], theta: Any
) -> Float[Array, "k n w"]:
    """The increment that keeps `residual(z, theta) = 0`, at a theta where the root is `z` = 0.

    Its value is `z` (give zeros); its derivative is -K^-1 dR/dtheta with K = dR/dz. Since K is taken at the increment
    itself, which moves with theta, derivatives of any order and in any mix of modes are those of the root.

    Args:
        residual: a pure function; whatever is differentiated travels in theta, and nothing in a closure. It treats the
            last axis, of worlds, entry by entry: every array of theta has one, of length w or one.
        solve_slope: x with K x = b, given z, theta and b; linear and transposable in b, differentiable in z and theta.
            K is the exact slope, unsymmetric as friction makes it: a forward solver's approximation has no say here.
    """
    leaves, structure = jax.tree.flatten(theta)

    def slope(z, leaves, varying: tuple[int, ...], dots):
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
    varying = tuple(i for i, dot in enumerate(tangents[1:]) if not _is_zero(dot))
    # Bound again and handed to the rule, so that a second derivative sees z move with theta.
    z = _implicit_p.bind(z, *leaves, slope=slope)
    if not varying:
        return z, jnp.zeros_like(z)
    dots = [tangents[1 + i] for i in varying]
    (z_dot,) = _slope_p.bind(z, *leaves, *dots, slope=slope, varying=varying, transposed=False, seeds=0)
    return z, z_dot


def _is_zero(dot) -> bool:
    return isinstance(dot, ad.Zero) or dot.dtype == jax.dtypes.float0


def _batch(args, axes, *, slope):
    size, z, leaves = _worlds_last(args, axes, ())
    return split_worlds(_implicit_p.bind(z, *leaves, slope=slope), size), 0


ad.primitive_jvps[_implicit_p] = _jvp
batching.primitive_batchers[_implicit_p] = _batch


# The derivative as a linear map, from the tangents of the varying leaves to that of the increment, or `transposed` from
# the increment's cotangent to theirs. It is a primitive so that `vmap`, which comes after differentiation, still finds
# it whole and can bring the worlds to the last axis, where the kernels are fast (docs/design_notes.md).
# `seeds`: how many leading axes the vectors have that z and theta do not, as the rows of a Jacobian. K serves them all.
_slope_p = Primitive("implicit_slope")
_slope_p.multiple_results = True


def _apply(*args, slope, varying, transposed, seeds):
    z, leaves, vectors = _parted(args, varying, transposed)

    def linear(*dots):
        return [slope(z, leaves, varying, dots)]

    if transposed:
        backward = jax.linear_transpose(linear, *(leaves[i] for i in varying))
        linear = lambda *cotangents: backward(list(cotangents))
    for _ in range(seeds):
        linear = jax.vmap(linear)
    return list(linear(*vectors))


def _parted(args, varying, transposed):
    """z, the leaves of theta, and the vectors that the map is applied to."""
    n = len(args) - (1 if transposed else len(varying))
    z, *leaves = args[:n]
    return z, leaves, list(args[n:])


def _slope_shapes(*args, slope, varying, transposed, seeds):
    z, leaves, vectors = _parted(args, varying, transposed)
    results = [leaves[i] for i in varying] if transposed else [z]
    return [x.update(shape=(*vectors[0].shape[:seeds], *x.shape), weak_type=False) for x in results]


def _slope_jvp(primals, tangents, **options):
    """Linear in the vectors; what it is linear by, K and dR/dtheta, moves with z and theta."""
    n = len(primals) - len(_parted(primals, options["varying"], options["transposed"])[2])
    at, vectors = primals[:n], primals[n:]
    out = _slope_p.bind(*primals, **options)
    if all(_is_zero(dot) for dot in tangents[n:]):
        dots = [jnp.zeros_like(x) for x in out]
    else:
        moved = [jnp.zeros_like(x) if _is_zero(d) else d for x, d in zip(vectors, tangents[n:])]
        dots = _slope_p.bind(*at, *moved, **options)
    moving = [i for i in range(n) if not _is_zero(tangents[i])]
    if moving:

        def of(values):
            filled = list(at)
            for i, value in zip(moving, values, strict=True):
                filled[i] = value
            return _apply(*filled, *vectors, **options)

        _, curvature = jax.jvp(of, ([at[i] for i in moving],), ([tangents[i] for i in moving],))
        dots = [a + b for a, b in zip(dots, curvature)]
    return out, dots


def _slope_transpose(cotangents, *args, slope, varying, transposed, seeds):
    z, leaves, _ = _parted(args, varying, transposed)
    given = [ad.instantiate_zeros(ct) for ct in cotangents]
    out = _slope_p.bind(z, *leaves, *given, slope=slope, varying=varying, transposed=not transposed, seeds=seeds)
    return [None] * (1 + len(leaves)) + list(out)


def _slope_batch(args, axes, *, slope, varying, transposed, seeds):
    options = dict(slope=slope, varying=varying, transposed=transposed)
    z, leaves, vectors = _parted(args, varying, transposed)
    n = 1 + len(leaves)
    if all(axis is None for axis in axes[:n]):
        size = next(x.shape[axis] for x, axis in zip(vectors, axes[n:]) if axis is not None)
        vectors = [batching.bdim_at_front(x, axis, size) for x, axis in zip(vectors, axes[n:])]
        out = _slope_p.bind(z, *leaves, *vectors, **options, seeds=seeds + 1)
        return out, [0] * len(out)
    # A leaf that varies has a tangent, and a cotangent, of each world.
    wide = (*(1 + i for i in varying), *range(n, len(args)))
    size, z_wide, rest = _worlds_last(args, axes, wide)
    out = [split_worlds(x, size) for x in _slope_p.bind(z_wide, *rest, **options, seeds=seeds)]
    if transposed:
        # A leaf that the worlds of before the batch shared has the sum of their cotangents.
        last = [jnp.moveaxis(leaves[i], axes[1 + i] or 0, 0).shape[-1] for i in varying]
        out = [x.sum(-1, keepdims=True) if width == 1 else x for x, width in zip(out, last)]
    return out, [0] * len(out)


def _worlds_last(args, axes, wide: Sequence[int]):
    """The size of a batch, z, and all else with its worlds on the last axis; in full where `wide` says so."""
    size = next(x.shape[axis] for x, axis in zip(args, axes) if axis is not None)
    args = [x if axis is None else jnp.moveaxis(x, axis, 0) for x, axis in zip(args, axes)]
    width = args[0].shape[-1]
    merged = [merge_worlds(x, axis is not None, size, width) for x, axis in zip(args, axes)]
    for i in (0, *wide):  # the increment varies wherever theta does
        merged[i] = jnp.broadcast_to(merged[i], (*merged[i].shape[:-1], width * size))
    return size, merged[0], merged[1:]


_slope_p.def_impl(_apply)
_slope_p.def_abstract_eval(_slope_shapes)
mlir.register_lowering(_slope_p, mlir.lower_fun(_apply, multiple_results=True))
ad.primitive_jvps[_slope_p] = _slope_jvp
ad.primitive_transposes[_slope_p] = _slope_transpose
batching.primitive_batchers[_slope_p] = _slope_batch
