"""The shape of the package: imports point down, few dependencies, no effect of an import, small files."""

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeGuard

import pytest

import jaxsim

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "jaxsim"

FLOORS = (
    ("math",),
    ("geometry", "solve"),
    ("contact", "energy", "actuation"),
    ("model",),
    ("dynamics",),
    ("integrate",),
    ("step", "trajectory", "rollout"),
    ("observe", "robot", "optimize", "env"),
    ("io", "view"),
    ("cli", "demos", "__main__"),
)
FLOOR_OF = {name: floor for floor, names in enumerate(FLOORS) for name in names}
# On one floor, and still a user of the other:
NEIGHBOURS = {("rollout", "step"), ("rollout", "trajectory"), ("__main__", "cli"), ("cli", "demos")}
CORE = {"jax", "jaxlib", "numpy", "equinox", "jaxtyping", "optax", "chex"}
DISTRIBUTION_OF = {
    "igl": "libigl",
    "collada": "pycollada",
    "PIL": "pillow",
    "jaxlib": "jax",
    "mpl_toolkits": "matplotlib",
}
HOST = {"IPython"}  # there whenever a notebook asks for what needs it
VAGUE = {"utils", "util", "helpers", "helper", "misc", "common"}


class Import(NamedTuple):
    """One imported module: its absolute dotted name, where, and whether importing the importer needs it."""

    name: str
    line: int
    eager: bool


def is_type_checking(node: ast.AST) -> TypeGuard[ast.If]:
    return isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def imports_of(source: str, package: str) -> Iterator[Import]:
    """All imports in a module that lies in `package`, inside functions too; relative names made absolute."""

    def walk(node: ast.AST, eager: bool) -> Iterator[Import]:
        match node:
            case ast.Import(names=names):
                yield from (Import(alias.name, node.lineno, eager) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                parents = package.split(".")
                base = (parents[: len(parents) + 1 - level] if level else []) + ([module] if module else [])
                for alias in names:  # `from jaxsim import math` imports jaxsim.math
                    yield Import(".".join([*base, alias.name]), node.lineno, eager)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                eager = False
        if is_type_checking(node):
            for child in node.body:
                yield from walk(child, False)
            for child in node.orelse:
                yield from walk(child, eager)
        else:
            for child in ast.iter_child_nodes(node):
                yield from walk(child, eager)

    return walk(ast.parse(source), True)


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def dotted_package(path: Path) -> str:
    """The package a file's relative imports start from."""
    return ".".join(path.relative_to(ROOT).parts[:-1])


def top_of(path: Path) -> str:
    """The name right below `jaxsim` that a file belongs to."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def exists(name: str) -> bool:
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()


def upward(importer: str, imported: str) -> str | None:
    """Why a file below `jaxsim.<importer>` must not import `imported` (absolute), or None if it may."""
    parts = imported.split(".")
    if parts[0] != "jaxsim" or importer == "__init__":
        return None
    if len(parts) == 1 or (parts[1] not in FLOOR_OF and not exists(parts[1])):
        return None if importer in FLOORS[-1] else "imports the whole package"
    target = parts[1]
    if importer not in FLOOR_OF or target not in FLOOR_OF:
        return None  # test_every_top_level_name_has_a_floor tells
    here, there = FLOOR_OF[importer], FLOOR_OF[target]
    if there > here:
        return f"floor {here} imports jaxsim.{target} of floor {there}"
    if there == here and target != importer and (importer, target) not in NEIGHBOURS:
        return f"imports its neighbour jaxsim.{target} on floor {here}"
    return None


def all_imports() -> Iterator[tuple[Path, Import]]:
    for path in modules():
        for item in imports_of(path.read_text(encoding="utf-8"), dotted_package(path)):
            yield path, item


def where(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def test_every_top_level_name_has_a_floor():
    unknown = {top_of(path) for path in modules()} - set(FLOOR_OF) - {"__init__"}
    assert not unknown, f"on no floor: {sorted(unknown)}; give each its place in FLOORS, as low as it can be"


def test_imports_point_down():
    wrong = [
        f"{where(path, item.line)}: {reason}"
        for path, item in all_imports()
        if (reason := upward(top_of(path), item.name))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "importer, source, refused",
    [
        ("math", "from ..model import Model", True),
        ("math", "def f():\n    from jaxsim.model.state import State", True),
        ("math", "from .. import model", True),
        ("math", "import jaxsim", True),
        ("math", "from jaxsim import Model", True),
        ("geometry", "from ..solve import newton", True),
        ("geometry", "from .shapes import Box\nfrom ..math import safe\nfrom jaxsim.math.safe import safe_norm", False),
        ("model", "from ..contact.params import ContactParams", False),
        ("model", "import jax.numpy as jnp", False),
    ],
)
def test_the_walk_itself(importer, source, refused):
    reasons = [upward(importer, item.name) for item in imports_of(source, f"jaxsim.{importer}")]
    assert any(reasons) == refused


def third_party_imports() -> Iterator[tuple[Path, Import, str]]:
    for path, item in all_imports():
        root = item.name.split(".")[0]
        if root != "jaxsim" and root not in sys.stdlib_module_names:
            yield path, item, root


def test_import_needs_core_dependencies_only():
    wrong = [
        f"{where(path, item.line)}: {root} is an extra; import it in the function that needs it"
        for path, item, root in third_party_imports()
        if item.eager and root not in CORE
    ]
    assert not wrong, "\n".join(wrong)


def test_every_third_party_import_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = project["dependencies"] + [line for extra in extras.values() for line in extra]
    declared = {re.split(r"[^\w-]", line)[0].replace("-", "_").lower() for line in wanted}
    wrong = [
        f"{where(path, item.line)}: {root} is in no dependency list of pyproject.toml"
        for path, item, root in third_party_imports()
        if root not in HOST and DISTRIBUTION_OF.get(root, root).replace("-", "_").lower() not in declared
    ]
    assert not wrong, "\n".join(wrong)


def run_python(code: str) -> None:
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr


def test_import_changes_no_jax_configuration():
    run_python("""
import jax, equinox, jaxtyping, optax, chex
before = dict(jax.config.values)
import jaxsim
after = dict(jax.config.values)
assert before == after, {k: (before.get(k), v) for k, v in after.items() if before.get(k) != v}
""")


def test_import_starts_no_backend():
    # An array made at import takes its dtype and device before the user could choose them.
    run_python("""
import jax, jaxsim
jax.config.update("jax_num_cpu_devices", 3)  # refused once a backend runs
jax.config.update("jax_platforms", "cpu")
assert jax.device_count() == 3
""")


def test_files_are_short():
    lengths = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}
    long = {name: lines for name, lines in lengths.items() if lines > 400}
    assert not long, f"over 400 lines, so probably two concepts: {long}"


def test_no_file_has_a_vague_name():
    inside = [path.relative_to(ROOT).with_suffix("") for path in modules()]
    vague = [str(path) for path in inside if VAGUE & set(path.parts)]
    assert not vague, f"name the concept instead: {vague}"


def lacks_docstring(value: object) -> bool:
    if not (callable(value) or inspect.ismodule(value)):
        return False
    text = (value.__doc__ or "").strip()
    # A dataclass without a docstring is given its own signature as one.
    return not text or (inspect.isclass(value) and text.startswith(f"{value.__name__}("))


def test_public_names_exist_and_have_docstrings():
    public = getattr(jaxsim, "__all__", [])
    assert len(public) == len(set(public)), "a name stands twice in jaxsim.__all__"
    missing = [name for name in public if not hasattr(jaxsim, name)]
    assert not missing, f"in jaxsim.__all__, but not there: {missing}"
    bare = [name for name in public if lacks_docstring(getattr(jaxsim, name))]
    assert not bare, f"public, without a docstring: {bare}"
