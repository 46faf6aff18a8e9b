"""Functions that XLA compiles as units of their own."""

import functools
from collections.abc import Callable
from typing import Any

import jax
from jax.experimental.xla_metadata import set_xla_metadata


def kernel(function: Callable[..., Any], static_argnums: int | None = None) -> Callable[..., Any]:
    """Decorator: calls of the function are not inlined into what surrounds them.

    XLA on CPU fuses a chain of cheap operations into each of its consumers and forms it again for every one; a law
    with a dozen outputs is then compiled, and run, a dozen times over. The call boundary makes every output once, and
    a function that is called twice is compiled once. Measured in docs/design_notes.md. Values and derivatives are
    those of the plain function. Other backends fuse several outputs into one kernel and are left alone.
    """
    compiled = jax.jit(function, static_argnums=static_argnums)

    @functools.wraps(function)
    def call(*args):
        if jax.default_backend() != "cpu":
            return function(*args)
        with set_xla_metadata(inlineable="false"):
            return compiled(*args)

    return call
