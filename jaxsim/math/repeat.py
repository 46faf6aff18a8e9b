"""One field for all components: a broadcast over a short axis whose transpose XLA can vectorise."""

import jax.numpy as jnp
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float

# JAX transposes a broadcast to a reduction. Over an axis of three XLA on CPU hands that to a library whose start costs
# more than the sum does: it took half of a batched gradient. So these two are each other's transposes, and the sum is
# one of slices (docs/design_notes.md has the numbers).
_repeat_p = Primitive("repeat_components")
_sum_p = Primitive("sum_components")


def repeat(x: Float[Array, "*b"], size: int, axis: int = 0) -> Float[Array, "*c"]:
    """`x` `size` times along a new axis."""
    return _repeat_p.bind(jnp.asarray(x), size=size, axis=axis)


def _repeated(x, *, size, axis):
    return jnp.broadcast_to(jnp.expand_dims(x, axis), (*x.shape[:axis], size, *x.shape[axis:]))


def _summed(x, *, size, axis):
    first, *rest = (lax.index_in_dim(x, i, axis, keepdims=False) for i in range(size))
    return sum(rest, start=first)


for _p, _function, _transpose in ((_repeat_p, _repeated, _sum_p), (_sum_p, _summed, _repeat_p)):
    _p.def_impl(_function)
    mlir.register_lowering(_p, mlir.lower_fun(_function, multiple_results=False))
    ad.deflinear2(_p, lambda ct, _, _transpose=_transpose, **options: [_transpose.bind(ct, **options)])


@_repeat_p.def_abstract_eval
def _(x, *, size, axis):
    return x.update(shape=(*x.shape[:axis], size, *x.shape[axis:]))


@_sum_p.def_abstract_eval
def _(x, *, size, axis):
    return x.update(shape=(*x.shape[:axis], *x.shape[axis + 1 :]))


def _repeat_batch(args, axes, *, size, axis):
    return _repeat_p.bind(jnp.moveaxis(args[0], axes[0], 0), size=size, axis=axis + 1), 0


def _sum_batch(args, axes, *, size, axis):
    return _sum_p.bind(jnp.moveaxis(args[0], axes[0], 0), size=size, axis=axis + 1), 0


batching.primitive_batchers[_repeat_p] = _repeat_batch
batching.primitive_batchers[_sum_p] = _sum_batch
