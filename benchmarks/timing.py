"""Honest clocks: long wall-time windows, medians, competitors in turns, compilation apart.

Every function waits for the result inside the clock, since JAX returns before the work is done.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

WINDOW = 0.06  # [s]; far above the 4 ms ticks and the time slices of a scheduler
ROUNDS = 7


def _window(fn: Callable[..., Any], args: tuple, window: float) -> float:
    """Mean wall time per call [s] over as many calls as fill `window` [s]."""
    calls = 0
    start = time.perf_counter()
    while (elapsed := time.perf_counter() - start) < window or calls == 0:
        jax.block_until_ready(fn(*args))
        calls += 1
    return elapsed / calls


def median_window_seconds(fn: Callable[..., Any], *args: Any, window: float = WINDOW, rounds: int = ROUNDS) -> float:
    """Median over `rounds` windows of the wall time per call [s], after one call to compile and warm up."""
    return alternate({"": (fn, args)}, window=window, rounds=rounds)[""]


def alternate(
    competitors: Mapping[str, tuple[Callable[..., Any], tuple]], *, window: float = WINDOW, rounds: int = ROUNDS
) -> dict[str, float]:
    """Median wall time per call [s] of each competitor, measured in turns so that a busy machine slows all alike.

    Args:
        competitors: by name, a function and its arguments. Functions must not donate their arguments.
        window: least wall time of one measurement [s].
        rounds: measurements of each competitor.
    """
    for fn, args in competitors.values():
        jax.block_until_ready(fn(*args))
    seconds: dict[str, list[float]] = {name: [] for name in competitors}
    for turn in range(rounds):
        order = list(competitors.items())
        for name, (fn, args) in order if turn % 2 == 0 else reversed(order):  # nobody always inherits a hot cache
            seconds[name].append(_window(fn, args, window))
    return {name: statistics.median(values) for name, values in seconds.items()}


class CompileSeconds(NamedTuple):
    """Wall time [s] of the three stages before a first run."""

    trace: float
    lower: float
    compile: float


def compile_seconds(fn: Callable[..., Any], *args: Any) -> CompileSeconds:
    """Time to trace, lower and compile `fn(*args)` from nothing; JAX's in-memory caches are cleared first.

    Raises:
        ValueError: a persistent compilation cache is on, which would answer instead of the compiler.
    """
    if jax.config.jax_compilation_cache_dir:  # pyright: ignore[reportAttributeAccessIssue]
        raise ValueError("jax_compilation_cache_dir is set: unset it, or the compiler is not what gets timed")
    jax.clear_caches()
    arrays, rest = eqx.partition(args, eqx.is_array)

    def of_arrays(arrays: Any) -> Any:
        return eqx.filter(fn(*eqx.combine(arrays, rest)), eqx.is_array)

    start = time.perf_counter()
    traced = jax.jit(of_arrays).trace(arrays)
    trace = time.perf_counter()
    lowered = traced.lower()
    lower = time.perf_counter()
    lowered.compile()
    return CompileSeconds(trace - start, lower - trace, time.perf_counter() - lower)


def matmul_calibration(size: int = 1024, *, window: float = WINDOW, rounds: int = ROUNDS) -> float:
    """Speed of this machine, now, at a float32 matrix product of `size`: GFLOP/s, to print beside any seconds."""
    a = jax.random.normal(jax.random.key(0), (size, size), jnp.float32)
    return 2e-9 * size**3 / median_window_seconds(jax.jit(jnp.matmul), a, a, window=window, rounds=rounds)
