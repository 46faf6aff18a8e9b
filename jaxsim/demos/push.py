"""Push a block to a goal, and leave it there at rest: forces over time, found by gradients through sliding contact."""

from pathlib import Path

import jax
import jax.numpy as jnp
import optax

import jaxsim as js

from .result import present

SIDE = 0.5  # [m]
GOAL = (0.0, 1.0, 0.25)  # [m]
KNOTS, HOLD, H = 10, 5, 0.02  # forces, steps for which each is held, step [s]
LIMIT = 20.0  # on each component of the force [N]


def run(folder: Path = Path(), quick: bool = False, progress: bool = True) -> js.Optimized:
    """Optimise, print, and write an animation and a plot into the folder."""
    scene = js.Scene()
    ground = js.ContactParams(coulomb_friction_coefficient=0.5)
    scene.add_plane(contact=ground)
    block = scene.add_rigid(js.Box((SIDE / 2,) * 3), mass=1.0, position=(0, 0, SIDE / 2), contact=ground, name="block")
    plate = js.Box((SIDE / 2, SIDE / 2, 1e-3))
    scene.add_rigid(
        plate, static=True, collider=js.ColliderType.NONE, position=(*GOAL[:2], 0.0), name="goal"
    )  # to be seen
    model, state = scene.build()
    goal = jnp.array(GOAL)

    def push(forces):
        controls = jax.vmap(lambda f: js.apply_force(model, js.Control.zeros(model), block, f))(forces)
        params = js.SolverParams.gradient()
        return js.rollout(model, state, controls, H, params, steps=KNOTS * HOLD, substeps=HOLD)

    def loss(forces):
        final, trajectory = push(forces)
        p, v = js.com_position(model, final, block), js.velocity(model, final, block).linear
        value = 10 * jnp.sum((p - goal) ** 2) + jnp.sum(v**2) + 1e-4 * jnp.sum(forces**2)
        return value, (p, v, trajectory)

    print(f"push: {KNOTS} forces of at most {LIMIT:g} N move a 1 kg block to {GOAL} in {KNOTS * HOLD * H:g} s")
    start = jnp.zeros((KNOTS, 3))
    steps = 60 if quick else 200
    result = js.optimize(loss, start, optax.adam(0.5), steps, bounds=(-LIMIT, LIMIT), progress=progress, has_aux=True)
    p, v, trajectory = result.aux
    check = js.gradient_check(loss, result.best, has_aux=True)
    miss, speed = 1e3 * jnp.linalg.norm(p - goal), 1e3 * jnp.linalg.norm(v)
    print(f"push: {miss:.1f} mm from the goal, at {speed:.1f} mm/s")
    present("push", result, check, trajectory, folder)
    return result
