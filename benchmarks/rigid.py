"""The cube slide: time per step alone and in a batch, compile time, gradient and its ratio to the forward run.

    python -m benchmarks.rigid [--json FILE] [--quick]

A 0.1 m, 1 kg cube slides on a plane from about 1 m/s, h = 0.01 s, 100 steps, float32, the convergence cap and tolerance
that the peers were measured with (12 iterations, 1e-3 of the weight). Batched worlds start from perturbed velocities.
"""

import argparse
import json
import platform
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim as js

from .timing import alternate, compile_seconds, matmul_calibration, median_window_seconds

STEPS = 100


def scene():
    """The cube on its plane, float32."""
    s = js.Scene()
    s.add_plane(name="ground")
    s.add_rigid(js.Box((0.05, 0.05, 0.05)), position=(0, 0, 0.0497), linear_velocity=(1, 0, 0), name="cube")
    return s.build(jnp.float32)


def slide(model, state, params, steps=STEPS):
    """A function of the initial velocity: final position, and the status of each step."""

    def run(velocity):
        start = js.set_velocity(model, state, "cube", velocity)
        end, trajectory = js.rollout(
            model, start, None, 0.01, params, steps=steps, observe=lambda m, s, report: report.status
        )
        return end.q[:3], trajectory.rows[1:]

    return run


def measure(quick: bool) -> dict:
    """All figures of the benchmark, in one run."""
    model, state = scene()
    params = js.SolverParams(abs_tol=1e-3, max_iter=12, line_search_max_iter=4)
    run = slide(model, state, params)
    rng = np.random.default_rng(0)
    rows = []
    trace_and_compile = compile_seconds(jax.jit(run), jnp.array([1.0, 0.0, 0.0], jnp.float32))
    for worlds in (1, 64) if quick else (1, 64, 1024):
        kicks = 0.1 * rng.standard_normal((worlds, 3)) * (1.0, 1.0, 0.0) if worlds > 1 else np.zeros((1, 3))
        velocity = jnp.asarray(np.array([1.0, 0.0, 0.0]) + kicks, jnp.float32)
        many = jax.jit(jax.vmap(run)) if worlds > 1 else jax.jit(run)
        argument = velocity if worlds > 1 else velocity[0]
        _, status = many(argument)
        seconds = median_window_seconds(many, argument)
        rows.append(
            {
                "worlds": worlds,
                "us_per_step": 1e6 * seconds / (STEPS * worlds),
                "unconverged": float(np.mean(np.asarray(status) != js.Status.CONVERGED)),
            }
        )

    gradient_params = js.SolverParams.gradient(abs_tol=1e-4)
    gradients = []
    for steps in (100,) if quick else (100, 500):
        run = slide(model, state, gradient_params, steps)
        final_x = lambda v, run=run: run(v)[0][0]
        for worlds in (1, 64):
            kicks = 0.1 * rng.standard_normal((worlds, 3)) * (1.0, 1.0, 0.0)
            velocity = (jnp.asarray(np.array([1.0, 0.0, 0.0]) + kicks, jnp.float32),)
            value, gradient = (jax.jit(jax.vmap(f)) for f in (final_x, jax.grad(final_x)))
            seconds = alternate({"value": (value, velocity), "gradient": (gradient, velocity)})
            gradients.append(
                {
                    "steps": steps,
                    "worlds": worlds,
                    "us_per_step": 1e6 * seconds["gradient"] / (steps * worlds),
                    "over_forward": seconds["gradient"] / seconds["value"],
                }
            )
    return {
        "machine": platform.processor() or platform.machine(),
        "jax": jax.__version__,
        "device": str(jax.devices()[0]),
        "dtype": "float32",
        "matmul_gflops": matmul_calibration(),
        "first_step": trace_and_compile,
        "slide": rows,
        "gradient": gradients,
    }


def main(argv: list[str] | None = None) -> int:
    """Print the figures, and write them as JSON when asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--quick", action="store_true", help="fewer worlds and steps")
    options = parser.parse_args(argv)
    figures = measure(options.quick)
    print(json.dumps(figures, indent=2))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
