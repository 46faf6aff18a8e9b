"""Throw a mesh onto a mark: the release velocity, found by gradients through flight, impact, sliding and stopping."""

import importlib.util
import tempfile
from pathlib import Path

import jax.numpy as jnp
import optax

import jaxsim as js

from .result import present

MARK = (1.5, 0.4)  # on the floor [m]
H, STEPS = 0.0125, 120
DENSITY = 200.0  # of light wood [kg/m^3]
RELEASE = (0.0, 0.0, 0.8)  # [m]
SHIPPED = ("mjx", "test_data", "shadow_hand", "assets", "forearm_collision.obj")
GUESS = {"linear": (1.0, 0.0, 1.5), "angular": (0.0, 0.0, 0.0)}  # [m/s], [rad/s]


def run(
    shape: js.TriMesh,
    report: object,
    folder: Path = Path(),
    quick: bool = False,
    progress: bool = True,
) -> js.Optimized:
    """Optimise the throw of what `load` returned, print, and write an animation and a plot into the folder."""
    print(f"throw: {report}")
    scene = js.Scene()
    # Stiff against the step (plastic contact): the impact is absorbed, which keeps the gradient smooth.
    contact = js.ContactParams(penalty_coefficient=1e8, coulomb_friction_coefficient=0.5, friction_falloff_vel=0.02)
    scene.add_plane(contact=contact)
    body = scene.add_rigid(shape, density=DENSITY, position=RELEASE, contact=contact, name="body")
    plate = js.Box((0.12, 0.12, 1e-3))
    scene.add_rigid(plate, static=True, collider=js.ColliderType.NONE, position=(*MARK, 0.0), name="mark")  # to be seen
    model, state = scene.build()
    mark = jnp.array(MARK)

    def throw(release):
        start = js.set_velocity(model, state, body, **release)
        return js.rollout(model, start, None, H, js.SolverParams.gradient(), steps=STEPS)

    def loss(release):
        final, trajectory = throw(release)
        p, v = js.com_position(model, final, body), js.velocity(model, final, body).linear
        # What is not at rest yet is charged with the way it would still go in a tenth of a second.
        return jnp.sum((p[:2] - mark) ** 2) + jnp.sum((0.1 * v) ** 2), (p, v, trajectory)

    start = {name: jnp.array(value) for name, value in GUESS.items()}
    steps = 40 if quick else 100
    optimizer = optax.adam(optax.cosine_decay_schedule(0.1, steps))
    result = js.optimize(loss, start, optimizer, steps, progress=progress, has_aux=True)
    p, v, trajectory = result.aux
    check = js.gradient_check(loss, result.best, has_aux=True)
    velocity = ", ".join(f"{x:.3f}" for x in result.best["linear"])
    miss, speed = 1e3 * jnp.linalg.norm(p[:2] - mark), 1e3 * jnp.linalg.norm(v)
    print(f"throw: released at ({velocity}) m/s it stops {miss:.1f} mm from the mark, at {speed:.1f} mm/s")
    present("throw", result, check, trajectory, folder)
    return result


def load(mesh: Path | None = None, scale: float = 1.0) -> tuple[js.TriMesh, object]:
    """The mesh to throw, and the report on its file.

    Args:
        mesh: the file; when None, the forearm of a robot hand that the package mujoco-mjx ships, or else a cylinder,
            written to a temporary STL file and read back.
        scale: metres per unit of that file.
    """
    if mesh is not None:
        return js.TriMesh.load_with_report(mesh, scale)
    spec = importlib.util.find_spec("mujoco")
    for package in (spec.submodule_search_locations or []) if spec else []:
        shipped = Path(package).joinpath(*SHIPPED)
        if shipped.exists():
            return js.TriMesh.load_with_report(shipped, scale=1e-3)
    print("throw: mujoco-mjx, whose robot hand this demo throws, is not installed: a cylinder stands in for it")
    try:
        import trimesh
    except ImportError:
        raise ImportError('a mesh needs trimesh, which is missing: pip install "jaxsim-contact[mesh]"') from None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cylinder.stl"
        trimesh.creation.cylinder(radius=0.075, height=0.18, sections=24).subdivide().export(path)
        return js.TriMesh.load_with_report(path)
