"""A loss as optimisers want it: checked, and with its gradient compiled once however often it is called."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import PyTree

from ..math.kernel import kernel


def as_variables(caller: str, variables: PyTree) -> PyTree:
    """The variables as arrays of definite dtype. ValueError naming the leaf that is not floating-point."""
    if not jax.tree.leaves(variables):
        raise ValueError(f"{caller}: variables hold no array; got {variables!r}")

    def convert(path, x):
        dtype = getattr(x, "dtype", None) or np.result_type(type(x)) if np.isscalar(x) or hasattr(x, "dtype") else None
        if dtype is None or not jnp.issubdtype(dtype, jnp.floating):
            raise ValueError(
                f"{caller}: variables{jax.tree_util.keystr(path)} must be floating-point to have a gradient; "
                f"got {x!r}: convert it, or keep it out of the variables"
            )
        x = jnp.asarray(x)
        return lax.convert_element_type(x, x.dtype)

    return jax.tree_util.tree_map_with_path(convert, variables)


def value_and_grad(loss: Callable[[Any], Any], has_aux: bool) -> Callable[[Any], tuple[tuple[Any, Any], Any]]:
    """`variables -> (((value, aux), gradient), its norm)`. ValueError while tracing when the loss is not a scalar."""

    def checked(variables):
        out = loss(variables)
        if has_aux and not (isinstance(out, tuple) and len(out) == 2):
            raise ValueError(f"loss: with has_aux it must return (scalar, aux); got {type(out).__name__}")
        value, aux = out if has_aux else (out, None)
        value = value if isinstance(value, tuple | list | dict) else jnp.asarray(value)
        if not isinstance(value, jax.Array) or value.shape or not jnp.issubdtype(value.dtype, jnp.floating):
            got = f"shape {value.shape}, dtype {value.dtype}" if isinstance(value, jax.Array) else type(value).__name__
            raise ValueError(f"loss: must return a floating-point scalar; got {got}: sum or average it to one number")
        return lax.convert_element_type(value, value.dtype), aux

    both = jax.value_and_grad(checked, has_aux=True)

    def with_norm(variables):
        out, grad = both(variables)
        return (out, grad), optax.tree.norm(grad)

    return with_norm


@functools.partial(jax.jit, static_argnums=(0, 1))
def evaluate(loss: Callable[[Any], Any], has_aux: bool, variables: PyTree):
    """`value_and_grad`, compiled once per loss object."""
    return value_and_grad(loss, has_aux)(variables)


def hashable(loss: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The loss, wrapped if it is an object that compiled code cannot be filed under."""
    try:
        hash(loss)
    except TypeError:
        return lambda variables: loss(variables)
    return loss


def shared_value_and_grad(loss: Callable[[Any], Any], has_aux: bool):
    """`value_and_grad` of a loss, and the plain loss for line searches, which make the two of one compiled unit.

    A line search differentiates the function it is given, in several places. Here value and gradient always come
    together from the one unit, so that a long rollout is compiled once and not once per place.
    """
    together = kernel(value_and_grad(loss, has_aux))

    @jax.custom_vjp
    def value_fn(variables):
        return together(variables)[0][0][0]

    def forward(variables):
        ((value, _), grad), _ = together(variables)
        return value, grad

    def backward(grad, cotangent):
        return (jax.tree.map(lambda g: cotangent.astype(g.dtype) * g, grad),)

    value_fn.defvjp(forward, backward)
    return together, value_fn
