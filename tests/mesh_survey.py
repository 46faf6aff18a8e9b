"""Loads every small mesh of the `test-assets` packages: `python -m tests.mesh_survey [--full]` prints a table.

A file passes when it loads with a report, has a finite mass, and the sign of its signed distance agrees with the exact
winding number at 1,000 points; a surface that is open or passes through itself after `close`, as its report advises.
What is refused says what to do.
"""

import argparse
import collections
import dataclasses
import importlib.metadata
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import igl
import numpy as np

from jaxsim.geometry.mass import mass_properties
from jaxsim.geometry.mesh import TriMesh
from jaxsim.geometry.mesh_solids import Closure

PACKAGES = ("gymnasium", "mujoco-mjx", "example-robot-data")
SUFFIXES = {".stl", ".obj", ".dae", ".ply", ".off", ".glb", ".gltf"}
LARGEST = 1_000_000  # bytes
POINTS = 1000
CLEARANCE = 1e-6  # of the diagonal: nearer to the surface, rounding may decide the sign

SignedDistance = Callable[[TriMesh, np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Row:
    """What became of one file."""

    path: Path
    closure: Closure | None = None  # None: refused
    united: int = 0
    rebuilt: bool = False  # by `close`
    mass: float = np.nan  # [kg] at 1000 kg/m^3
    wrong_signs: int = 0  # of POINTS
    warnings: tuple[str, ...] = ()
    refusal: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        name = "/".join(self.path.parts[-3:])
        if self.closure is None:
            return f"{name}: REFUSED {self.refusal}"
        return (
            f"{name}: {self.closure.value}{f', united {self.united}' * bool(self.united)}{', rebuilt' * self.rebuilt}, "
            f"{self.mass:.4g} kg, {self.wrong_signs} wrong signs, {self.seconds:.1f} s"
        )

    @property
    def passed(self) -> bool:
        return not self.refusal and np.isfinite(self.mass) and self.mass > 0 and self.wrong_signs == 0


def files() -> list[Path]:
    """Mesh files of the installed packages that are small enough, each once."""
    found = set()
    for package in PACKAGES:
        try:
            contents = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        paths = (Path(str(file.locate())) for file in contents if file.suffix.lower() in SUFFIXES)
        found |= {path.resolve() for path in paths if path.stat().st_size < LARGEST}
    return sorted(found)


def pseudonormal_distance(mesh: TriMesh, points: np.ndarray) -> np.ndarray:
    """Signed distance [m] with the sign of the nearest face's, edge's or vertex's mean normal."""
    vertices, triangles = np.asarray(mesh.vertices, float), mesh.triangles.astype(np.int64)
    return igl.signed_distance(points, vertices, triangles, sign_type=igl.SIGNED_DISTANCE_TYPE_PSEUDONORMAL)[0]


def survey(signed_distance: SignedDistance = pseudonormal_distance, every: int = 1) -> Iterator[Row]:
    """One row per file, or per `every`-th; `signed_distance` is what is under test."""
    for path in files()[::every]:
        start = time.perf_counter()
        row = _examine(path, signed_distance)
        yield dataclasses.replace(row, seconds=time.perf_counter() - start)


def _examine(path: Path, signed_distance: SignedDistance) -> Row:
    try:
        mesh, report = TriMesh.load_with_report(path)
        crosses_itself = report.closure is Closure.OVERLAPPING and any("close()" in text for text in report.warnings)
        closed = report.closure is Closure.OPEN or crosses_itself
        solid = mesh.close() if closed else mesh
        mass = float(mass_properties(solid, density=1000.0).mass)
    except ValueError as error:
        return Row(path, refusal=str(error))
    return Row(path, report.closure, report.united, closed, mass, _wrong_signs(solid, signed_distance), report.warnings)


def _wrong_signs(mesh: TriMesh, signed_distance: SignedDistance) -> int:
    vertices, triangles = np.asarray(mesh.vertices, float), mesh.triangles.astype(np.int64)
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    margin = 0.1 * (high - low)
    points = np.random.default_rng(0).uniform(low - margin, high + margin, (POINTS, 3))
    # The winding number is exact here; the tree's approximation is what the package itself uses.
    inside = igl.winding_number(vertices, triangles, points) > 0.5
    distance = signed_distance(mesh, points)
    clear = np.abs(distance) > CLEARANCE * np.linalg.norm(high - low)
    return int(np.sum(clear & (inside != (distance < 0))))


def summary(rows: list[Row]) -> str:
    """The counts, in lines."""
    found = collections.Counter("refused" if row.closure is None else row.closure.value for row in rows)
    warnings = collections.Counter(next(k for k in _KINDS if k in text) for row in rows for text in row.warnings)
    wrong = [row for row in rows if row.wrong_signs]
    return "\n".join(
        [
            f"{len(rows)} files in {sum(row.seconds for row in rows):.0f} s; {sum(row.passed for row in rows)} passed",
            "found: " + ", ".join(f"{n} {name}" for name, n in found.most_common()),
            f"united: {sum(row.united > 0 for row in rows)} files",
            f"rebuilt by close: {sum(row.rebuilt for row in rows)} files",
            f"wrong signs: {sum(row.wrong_signs for row in rows)} points, of {POINTS} each, in {len(wrong)} files",
            "warnings: " + ", ".join(f"{n} x '{name}'" for name, n in warnings.most_common()),
        ]
    )


_KINDS = ("open", "one-sided", "without area", "not known", "passes through itself", "long", "thinner", "are few")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="a line for every file, not only those that do not pass")
    parser.add_argument("--every", type=int, default=1, help="take only each N-th file")
    arguments = parser.parse_args()
    rows = []
    for row in survey(every=arguments.every):
        rows.append(row)
        if arguments.full or not row.passed:
            print(row, flush=True)
    print(summary(rows))


if __name__ == "__main__":
    main()
