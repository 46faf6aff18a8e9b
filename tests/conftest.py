"""What every test shares: double precision, strict shapes, a quiet CPU backend."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # before JAX is imported; set it yourself to test an accelerator
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # XLA: errors only

import jax
import jax.numpy as jnp
import pytest

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")  # broadcasting by accident hides a wrong axis
logging.getLogger("jax").setLevel(logging.WARNING)

# No compilation cache by default: tests that count or time compilations must meet the real ones.
if cache := os.environ.get("JAXSIM_TEST_CACHE"):
    jax.config.update("jax_compilation_cache_dir", cache)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


@pytest.fixture(params=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> jnp.dtype:
    """Both floating-point types, one after the other."""
    return jnp.dtype(request.param)


@pytest.fixture(scope="module", autouse=True)
def _few_compiled_functions() -> Iterator[None]:
    """Drop compiled functions between two modules before the process holds more than Linux maps.

    XLA on CPU maps each kernel three times and a process may hold 65,530 maps (vm.max_map_count); the whole suite in
    one process holds more, and LLVM aborts at the one that fails.
    """
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > 30_000:
        jax.clear_caches()
