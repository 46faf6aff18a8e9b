"""Replays reference trajectories: `python -m tests.replay PATH... [--json]`.

A file holds what one scene of the reference engine did. The scene is built from the file's `meta_json`, meshes and grids
alone and runs once, freely, from its start; only then are the recorded rows read and compared. Rows from the first one
that the reference engine itself did not solve are left out.
"""

import argparse
import collections
import dataclasses
import functools
import json
import math
import pathlib
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxsim as js

CONVERGED = 1
# Every scene runs at least so many steps, so that files of like scenes share one compiled rollout.
SHARED_STEPS = 300


class Tolerance(NamedTuple):
    """Largest errors that pass, and in `Result` the largest found."""

    position: float  # of the root frame [m]
    rotation: float  # [rad]
    velocity: float  # of the COM [m/s] and angular [rad/s]
    force: float  # contact force as a share of the weight m max(|g|, 1), torque as a share of weight times size


TIGHT = Tolerance(position=1e-9, rotation=1e-8, velocity=1e-7, force=1e-6)
# The engine's default settings stop at a thousandth of the weight: two solvers then agree to that and no better.
LOOSE = Tolerance(position=1e-5, rotation=1e-5, velocity=1e-2, force=1e-2)


@dataclasses.dataclass
class Result:
    file: str
    verdict: str  # PASS, FAIL or UNSUPPORTED
    reason: str = ""
    rows: int = 0  # compared, of
    of_rows: int = 0
    errors: Tolerance | None = None
    tolerance: Tolerance | None = None
    seconds: float = 0.0


class Recipe(NamedTuple):
    """A file read as a scene: what the run needs and nothing of what it should give."""

    model: js.Model
    state: js.State
    h: float
    steps: int
    params: js.SolverParams
    bodies: tuple[str, ...]  # whose recorded rows are compared
    tolerance: Tolerance


class Run(NamedTuple):
    """Rows 0 to `steps` of one body; forces of row 0 are zero, as in the files."""

    pos: np.ndarray
    quat: np.ndarray
    com: np.ndarray
    linvel: np.ndarray
    angvel: np.ndarray
    force: np.ndarray
    torque: np.ndarray


class Unsupported(Exception):
    """A scene with something that this simulator does not have yet."""


def replay(path: pathlib.Path) -> Result:
    """Build, run, compare one file."""
    start = time.perf_counter()
    try:
        recipe = read(path)
        simulated = simulate(recipe)
        result = compare(path, recipe, simulated)
    except Unsupported as e:
        return Result(path.name, "UNSUPPORTED", str(e))
    result.seconds = time.perf_counter() - start
    return result


def read(path: pathlib.Path) -> Recipe:
    """The scene of a file, from its metadata and meshes alone. Raises `Unsupported`."""
    if path.suffix == ".json":
        raise Unsupported("a JSON table, not a trajectory")
    with np.load(path) as data:
        meta = json.loads(str(data["meta_json"]))
        shapes = {k: data[k] for k in data.files if k.startswith(("mesh_", "sdf_"))}
    return builder_of(meta)(meta, shapes)


def builder_of(meta: dict[str, Any]) -> Callable[[dict[str, Any], dict[str, np.ndarray]], Recipe]:
    """The builder for a kind of scene. A new kind is one more builder here."""
    bodies = meta["bodies"]
    several = len(bodies) > 2 or sum(not b["static"] for b in bodies) > 1
    met = {b["collider_type"] for b in bodies if b["static"] or several} - {"PLANE", "BOX", "SPHERE", "SDF", "NONE"}
    blockers = [
        (meta["deformables"], "deformable bodies (soft, shell, rod)"),
        (meta["articulations"], "articulations"),
        (met, f"a {'/'.join(sorted(met))} collider"),
        (meta["integration_method"] != "BACKWARD_EULER", f"the integrator {meta['integration_method']}"),
    ]
    missing = [what for found, what in blockers if found]
    if missing:
        raise Unsupported("not there yet: " + ", ".join(missing))
    return rigid_scene


def rigid_scene(meta: dict[str, Any], shapes: dict[str, np.ndarray]) -> Recipe:
    """Rigid bodies, free and static."""
    scene = js.Scene(gravity=meta["gravity"])
    for body in meta["bodies"]:
        if "normal" in body:
            scene.add_plane(body["normal"], body["distance"], contact=contact_of(body), name=body["name"])
            continue
        placed = body["world_from_local"]
        dynamic: dict[str, Any] = {}
        if not body["static"]:
            dynamic = {
                "mass": body["mass"],
                "center_of_mass": body["center_of_mass_local"],
                "moment_of_inertia": body["inertia_local_xx_xy_xz_yy_yz_zz"],
                "linear_velocity": body["initial_linear_velocity"],
                "angular_velocity": body["initial_angular_velocity"],
                "newton_euler_inertia": body["newton_euler_inertia"],
                "has_gravity": body["has_gravity"],
            }
        scene.add_rigid(
            js.TriMesh(shapes[f"mesh_{body['name']}_V"], shapes[f"mesh_{body['name']}_F"]),
            position=placed["translation"],
            quaternion=placed["quat_xyzw"],
            static=body["static"],
            contact=contact_of(body),
            collider=js.ColliderType[body["collider_type"]],
            sdf=grid_of(body["name"], shapes),
            quadrature=body["boundary_element_type"],
            name=body["name"],
            **dynamic,
        )
    model, state = scene.build("float64")
    loose = meta["scenario"].endswith("default_solver")
    return Recipe(
        model=model,
        state=state,
        h=meta["h"],
        steps=meta["steps"],
        params=solver_of(meta, loose),
        bodies=tuple(b.name for b in model.dynamic),
        tolerance=LOOSE if loose else TIGHT,
    )


def grid_of(name: str, shapes: dict[str, np.ndarray]) -> js.SdfGrid | None:
    """The grid that the engine baked for a body, where the file holds one."""
    if f"sdf_{name}_values" not in shapes:
        return None
    values = shapes[f"sdf_{name}_values"].reshape(shapes[f"sdf_{name}_dims"])
    return js.SdfGrid(values, shapes[f"sdf_{name}_bounds"])


def contact_of(body: dict[str, Any]) -> js.ContactParams:
    known = {f.name for f in dataclasses.fields(js.ContactParams)}
    return js.ContactParams(**{k: v for k, v in body["contact_params"].items() if k in known})


def solver_of(meta: dict[str, Any], parity: bool) -> js.SolverParams:
    """Settings of a file: its own numbers, or our preset that stands for the engine's defaults."""
    newton = meta["solver_params"]["non_linear_solver"]
    law = meta["solver_params"]["experimental_eval"]
    choices = {
        "friction_model": js.FrictionModel[law["friction_model"]],
        "explicit_normals": law["explicit_normals"],
        "fade_friction": law["fade_friction"],
        "implicit_normal_force_for_dissipation": law["implicit_normal_force_for_dissipation"],
    }
    if parity:
        return js.SolverParams.parity(**choices)
    own = ("abs_tol", "rel_tol", "max_iter", "line_search_max_iter", "stop_if_no_improvement")
    return js.SolverParams(
        **{k: newton[k] for k in own},
        **choices,
        fitted_contact_friction=law["fitted_saturation_hessian"]["contact_friction"],
        convergence_mode=js.ConvergenceMode[newton["convergence_mode"]],
    )


def simulate(recipe: Recipe) -> dict[str, Run]:
    """One free run from the start."""
    steps = max(recipe.steps, SHARED_STEPS)
    _, trajectory = js.rollout(recipe.model, recipe.state, None, recipe.h, recipe.params, steps=steps)
    return {name: _rows(recipe.model, trajectory, name, recipe.steps) for name in recipe.bodies}


def _rows(model: js.Model, trajectory: js.Trajectory, name: str, steps: int) -> Run:
    run = jax.tree.map(np.asarray, observe(model, trajectory.states, trajectory.reports, name))
    return jax.tree.map(lambda x: x[: steps + 1], run)


@functools.partial(jax.jit, static_argnames="name")
def observe(model, states, reports, name) -> Run:
    def moving(state):
        pose, velocity = js.pose(model, state, name), js.velocity(model, state, name)
        return pose.position, pose.quaternion, js.com_position(model, state, name), velocity.linear, velocity.angular

    wrench = jax.vmap(lambda report: js.contact_force(model, report, name))(reports)
    force, torque = (jax.numpy.pad(x, ((1, 0), (0, 0))) for x in (wrench.force, wrench.torque))
    return Run(*jax.vmap(moving)(states), force, torque)


def compare(path: pathlib.Path, recipe: Recipe, simulated: dict[str, Run]) -> Result:
    """Largest errors over the rows that the reference engine solved."""
    with np.load(path) as data:
        recorded = {k: data[k] for k in data.files if k != "meta_json"}
    bad = np.flatnonzero(recorded["status"][1:] != CONVERGED)
    rows = 1 + (int(bad[0]) if len(bad) else recipe.steps)
    found = [_errors(recipe.model, name, run, recorded, rows) for name, run in simulated.items()]
    # NaN, in the run or in the file, is as wrong as can be.
    errors = Tolerance(*(float(np.max(np.nan_to_num(e, nan=np.inf))) for e in zip(*found)))
    good = all(e <= t for e, t in zip(errors, recipe.tolerance))
    failed = [f for f, e, t in zip(Tolerance._fields, errors, recipe.tolerance) if not e <= t]
    return Result(
        file=path.name,
        verdict="PASS" if good else "FAIL",
        reason="" if good else f"{', '.join(failed)} beyond tolerance",
        rows=rows,
        of_rows=recipe.steps + 1,
        errors=errors,
        tolerance=recipe.tolerance,
    )


def _errors(model: js.Model, name: str, run: Run, recorded: dict[str, np.ndarray], rows: int) -> tuple[float, ...]:
    reference = Run(*(recorded[f"{name}_{field}"] for field in Run._fields))
    run, reference = (jax.tree.map(lambda x: x[:rows], r) for r in (run, reference))
    weight, size = weight_and_size(model, name)

    def distance(field: str) -> np.ndarray:
        return np.linalg.norm(getattr(run, field) - getattr(reference, field), axis=-1)

    return (
        np.max(np.maximum(distance("pos"), distance("com"))),
        np.max(rotation_error(run.quat, reference.quat)),
        np.max(np.maximum(distance("linvel"), distance("angvel"))),
        np.max(np.maximum(distance("force"), distance("torque") / size)) / weight,
    )


def weight_and_size(model: js.Model, name: str) -> tuple[float, float]:
    """m max(|g|, 1) [N] and half the diagonal of the bounding box [m]: what forces and torques are measured by."""
    body = model.body(name)
    vertices = np.asarray(model.vertices(body))
    weight = float(js.get(model, name, "mass")) * max(float(np.linalg.norm(model.gravity)), 1.0)
    return weight, float(np.linalg.norm(np.ptp(vertices, axis=0))) / 2


def rotation_error(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Angle between unit quaternions xyzw [rad], exact for small angles too."""
    va, wa, vb, wb = a[..., :3], a[..., 3:], b[..., :3], b[..., 3:]
    vector = np.linalg.norm(wa * vb - wb * va - np.cross(va, vb), axis=-1)
    scalar = np.abs(np.sum(a * b, axis=-1))
    return 2 * np.arctan2(vector, scalar)


def _files(paths: Sequence[str]) -> list[pathlib.Path]:
    found: list[pathlib.Path] = []
    for path in map(pathlib.Path, paths):
        if path.is_dir():
            found += sorted(p for p in path.iterdir() if p.suffix in (".npz", ".json"))
        elif path.is_file():
            found.append(path)
        else:
            sys.exit(f"replay: no such file or folder: {path}")
    return found


def _line(r: Result) -> str:
    if r.errors is None or r.tolerance is None:
        return f"{r.file:<36} {r.verdict} ({r.reason})"
    numbers = "  ".join(f"{e:8.1e}/{t:.0e}" for e, t in zip(r.errors, r.tolerance))
    why = f" ({r.reason})" if r.reason else ""
    return f"{r.file:<36} {numbers}  {r.rows:>4}/{r.of_rows:<4} {r.seconds:5.1f} s  {r.verdict}{why}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.replay", description=__doc__)
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a reference file, or a folder of them")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    options = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    if not options.json:
        heads = "  ".join(f"{h:<14}" for h in ("position m", "rotation rad", "velocity", "force/weight"))
        print(f"{'file (largest error/tolerance)':<36} {heads}  {'rows':<9}")
    results = []
    for path in _files(options.paths):
        results.append(replay(path))
        if not options.json:
            print(_line(results[-1]), flush=True)
    counts = collections.Counter(r.verdict for r in results)
    if options.json:
        print(json.dumps({"counts": counts, "files": [_plain(r) for r in results]}, indent=1))
    else:
        print(", ".join(f"{counts[v]} {v}" for v in ("PASS", "FAIL", "UNSUPPORTED")))
    return 1 if counts["FAIL"] else 0


def _plain(r: Result) -> dict[str, Any]:
    def named(t: Tolerance | None):
        return t and {k: v if math.isfinite(v) else str(v) for k, v in t._asdict().items()}

    return dataclasses.asdict(r) | {"errors": named(r.errors), "tolerance": named(r.tolerance)}


if __name__ == "__main__":
    sys.exit(main())
