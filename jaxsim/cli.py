"""The command line: demos, inspection of files, and a look at the installation."""

import argparse
import importlib.metadata
import importlib.util
import platform
import re
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim as js

DISTRIBUTION = "jaxsim-contact"
CORE = ("jax", "jaxlib", "numpy", "equinox", "jaxtyping", "optax", "chex")
USER_EXTRAS = ("mesh", "viz", "robots", "soft")
DEMOS = ("push", "throw")


class Mistake(Exception):
    """Something for the user to correct; its text is all that is shown."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Exit codes: 0 success, 2 a mistake of the user, told in one line on stderr."""
    arguments = _parser().parse_args(argv)
    try:
        arguments.command(arguments)
    except (Mistake, ImportError, FileNotFoundError, PermissionError) as error:
        print(f"jaxsim: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="jaxsim", description="Differentiable contact simulation in pure JAX.")
    parser.add_argument("--version", action="version", version=f"jaxsim {js.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(command=command)
        return sub

    demo = add("demo", _demo, "optimise through contact; writes an animation (HTML) and a plot of the loss (PNG)")
    demo.add_argument("name", nargs="?", default="all", choices=(*DEMOS, "all"), help="which (default: all)")
    demo.add_argument("--quick", action="store_true", help="fewer iterations")
    demo.add_argument("--out", type=Path, default=Path(), metavar="DIR", help="where to write (default: here)")
    demo.add_argument("--no-progress", action="store_true", help="no progress bar")
    demo.add_argument("--mesh", type=Path, metavar="FILE", help="throw this mesh")
    demo.add_argument("--scale", type=float, default=1.0, help="metres per unit of --mesh (default: 1)")

    inspect = add(
        "inspect", _inspect, "report on a mesh file: what it holds, what was repaired, what is doubtful; a PNG"
    )
    inspect.add_argument("file", type=Path)
    inspect.add_argument("--scale", type=float, default=1.0, help="factor on top of the unit (default: 1)")
    inspect.add_argument("--unit", default="m", help="of the file: m, cm, mm, um, km, inch, ft (default: m)")
    inspect.add_argument("--axes", default="z-up", help="of the file, as in TriMesh.load (default: z-up)")
    inspect.add_argument("--no-union", action="store_true", help="leave parts that overlap as they are")
    inspect.add_argument(
        "--out", type=Path, default=Path(), metavar="DIR", help="folder to write to (default: this one)"
    )
    inspect.add_argument("--no-picture", action="store_true", help="only print")

    add("doctor", _doctor, "versions, devices, number types, optional packages")

    view = add("view", _view, "animation (HTML) of a trajectory saved as .npz")
    view.add_argument("file", type=Path)
    view.add_argument("--out", type=Path, default=Path(), metavar="DIR", help="where to write (default: here)")

    bench = add("bench", _bench, "measure speed, from a checkout of the repository")
    bench.add_argument("arguments", nargs=argparse.REMAINDER, help="passed on to the benchmark")
    return parser


def _folder(path: Path) -> Path:
    if not path.is_dir():
        raise Mistake(f"--out: {path} is not a folder; make it first")
    return path


def _demo(arguments: argparse.Namespace) -> None:
    from .demos import push, throw

    names = DEMOS if arguments.name == "all" else (arguments.name,)
    if arguments.mesh is not None and "throw" not in names:
        raise Mistake("--mesh belongs to the demo throw: jaxsim demo throw --mesh FILE")
    options = {"folder": _folder(arguments.out), "quick": arguments.quick, "progress": not arguments.no_progress}
    with jax.enable_x64(True):
        for name in names:
            if name == "push":
                push.run(**options)
            else:
                with _file_trouble():
                    shape, report = throw.load(arguments.mesh, arguments.scale)
                throw.run(shape, report, **options)


class _file_trouble:
    """Turns the ValueError of a reader of files into a Mistake."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind, error, traceback) -> None:
        if isinstance(error, ValueError):
            raise Mistake(str(error)) from None


def _inspect(arguments: argparse.Namespace) -> None:
    folder = _folder(arguments.out)
    with _file_trouble(), jax.enable_x64(True):
        mesh, report = js.TriMesh.load_with_report(
            arguments.file, arguments.scale, unit=arguments.unit, axes=arguments.axes, union=not arguments.no_union
        )
    print(report)
    if not arguments.no_picture:
        from .view.mesh import plot_mesh
        from .view.plot import save_png
        from .view.scene import VisualMesh

        axes = plot_mesh(VisualMesh(arguments.file.name, np.asarray(mesh.vertices), mesh.triangles))
        print(f"wrote {save_png(axes, folder / f'{arguments.file.stem}_inspect.png')}")


def _view(arguments: argparse.Namespace) -> None:
    folder = _folder(arguments.out)
    if not arguments.file.is_file():
        raise Mistake(f"{arguments.file}: there is no such file")
    with _file_trouble():
        trajectory = js.Trajectory.load(str(arguments.file))
    page = folder / f"{arguments.file.stem}.html"
    trajectory.to_html(str(page))
    print(f"wrote {page}")


def _doctor(arguments: argparse.Namespace) -> None:
    print(f"jaxsim {js.__version__}, Python {platform.python_version()}, {platform.platform()}")
    print("packages: " + ", ".join(f"{name} {_version(name) or 'MISSING'}" for name in CORE))
    devices = jax.devices()
    print(f"devices: {len(devices)} x {devices[0].device_kind} ({jax.default_backend()})")
    x64 = "on" if jax.config.read("jax_enable_x64") else 'off; float64 needs jax.config.update("jax_enable_x64", True)'
    print(f"x64: {x64}")
    print(f"default dtype: {jnp.zeros(0).dtype}")
    extras = _extras()
    if not extras:
        print(f"extras: unknown, {DISTRIBUTION} is not installed (running from a checkout); pip install -e .")
    for extra, names in extras.items():
        missing = [name for name in names if _version(name) is None]
        remedy = f'missing {", ".join(missing)}: pip install "{DISTRIBUTION}[{extra}]"' if missing else "complete"
        print(f"extra {extra}: {remedy}")


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _extras() -> dict[str, list[str]]:
    """Packages of each extra that a user may want, from the metadata of the installed distribution."""
    try:
        requirements = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    found: dict[str, list[str]] = {extra: [] for extra in USER_EXTRAS}
    for line in requirements:
        marker = re.search(r"""extra\s*==\s*['"]([\w-]+)['"]""", line)
        if marker and marker[1] in found:
            found[marker[1]].append(re.split(r"[^\w-]", line)[0])
    return found


def _bench(arguments: argparse.Namespace) -> None:
    if importlib.util.find_spec("benchmarks") is None or importlib.util.find_spec("benchmarks.rigid") is None:
        raise Mistake(
            "the benchmarks are not part of the installed package: "
            "in the folder of a checkout run `python -m benchmarks.rigid` (see benchmarks/README.md)"
        )
    previous, sys.argv = sys.argv, ["benchmarks.rigid", *arguments.arguments]
    try:
        runpy.run_module("benchmarks.rigid", run_name="__main__", alter_sys=True)
    finally:
        sys.argv = previous
