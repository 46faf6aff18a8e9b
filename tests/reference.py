"""Where the reference trajectories lie: a part of them beside the tests, the full set in a checkout that has it."""

import pathlib

import pytest

DATA = pathlib.Path(__file__).parent / "data"
_ROOT = pathlib.Path(__file__).resolve().parents[1]
_FULL = [base / "shared" / "reference" / "superdex" for base in (_ROOT, _ROOT.parent)]


def full_set() -> pathlib.Path | None:
    """Folder of the full set of reference files, None when this checkout has none."""
    return next((folder for folder in _FULL if folder.is_dir()), None)


def find(name: str) -> pathlib.Path:
    """A reference file by name; `.npz` is added when it has no ending. Skips the test that asks when it is absent."""
    if "." not in name:
        name += ".npz"
    folders = [DATA, full_set()]
    for folder in folders:
        if folder is not None and (folder / name).is_file():
            return folder / name
    pytest.skip(f"{name} is not in tests/data, and this checkout has no full set of reference files")


def bundled(families: str) -> list[pathlib.Path]:
    """The trajectories in `tests/data` whose names start with one of these letters, in order."""
    return sorted(p for p in DATA.glob("*.npz") if p.name[0] in families)


def require_full_set() -> pathlib.Path:
    """Folder of the full set; skips the test when it is absent."""
    folder = full_set()
    if folder is None:
        pytest.skip("needs the full set of reference files in shared/reference/superdex, beside or above the checkout")
    return folder
