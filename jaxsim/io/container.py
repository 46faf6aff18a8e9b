"""The file format: one `.npz` with a JSON header, written whole or not at all, read without pickle."""

import contextlib
import json
import os
import secrets
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .codec import CodecError, decode, encode

FORMAT = "jaxsim"
VERSION = 1  # of the file; raised when an older reader would misread it
HEADER = "header"  # the archive's entry of that name: UTF-8 JSON as bytes

PathLike = str | os.PathLike[str]


@contextlib.contextmanager
def naming(path: PathLike, verb: str) -> Iterator[None]:
    """Turns a refusal inside into one ValueError that names the file."""
    try:
        yield
    except CodecError as e:
        raise ValueError(f"cannot {verb} {os.fspath(path)}: {e}") from None


def write(path: PathLike, kind: str, content: dict[str, Any], about: dict[str, Any]) -> None:
    """Write `content`, by name, under a header that adds `about`; an earlier file stays until the new one is whole.

    Raises:
        CodecError: a value that a file cannot hold.
        FileNotFoundError, IsADirectoryError: no folder to write into, or a folder in the place of the file.
    """
    arrays: dict[str, np.ndarray] = {}
    nodes = {name: encode(value, name, arrays) for name, value in content.items()}
    package = sys.modules[__name__.partition(".")[0]].__version__  # its own top is above this floor
    header = {"format": FORMAT, "version": VERSION, "package": package, "kind": kind, **about, "content": nodes}
    text = json.dumps(header, allow_nan=False).encode()
    with _replaced(Path(path)) as file:
        # Through an open file: NumPy appends .npz to names.
        np.savez(file, allow_pickle=False, **{HEADER: np.frombuffer(text, np.uint8)}, **arrays)


def read(path: PathLike, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and content of a file of that kind.

    Raises:
        CodecError: not such a file, damaged, or of a newer version.
        OSError: there is no file, or it may not be read.
    """
    entries = _entries(Path(path))
    if HEADER not in entries:
        found = ", ".join(list(entries)[:4]) or "nothing"
        raise CodecError(f"it is an archive of {found}, without a jaxsim header; give a file that jaxsim saved")
    header = _header(entries.pop(HEADER))
    if header.get("format") != FORMAT:
        raise CodecError(f"its format is {header.get('format')!r}, not {FORMAT!r}; give a file that jaxsim saved")
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise CodecError(f"its version is {version!r}, not a whole number; the header is damaged")
    if version > VERSION:
        raise CodecError(
            f"it has version {version} of the format (jaxsim {header.get('package')}), this one reads up to {VERSION}; "
            "upgrade jaxsim"
        )
    if header.get("kind") != kind:
        readers = {"save": "jaxsim.load", "trajectory": "Trajectory.load"}
        remedy = readers.get(str(header.get("kind")), "the function that belongs to it")
        raise CodecError(f"it holds a {header.get('kind')}, not a {kind}; read it with {remedy}")
    if not isinstance(header.get("content"), dict):
        raise CodecError("its header has no content; the file is damaged")
    return header, {name: decode(node, entries) for name, node in header["content"].items()}


@contextlib.contextmanager
def _replaced(path: Path) -> Iterator[BinaryIO]:
    """A file beside `path` that takes its place once it is written, and is gone if that fails."""
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"cannot write {path}: the folder {path.parent.absolute()} does not exist; make it first"
        )
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder; add a file name")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _entries(path: Path) -> dict[str, np.ndarray]:
    with open(path, "rb") as file:
        start = file.read(4)
        file.seek(0)
        if start != b"PK\x03\x04":
            found = "empty" if not start else f"no .npz archive (it starts with {start!r})"
            raise CodecError(f"it is {found}; give a file that jaxsim saved")
        try:
            with zipfile.ZipFile(file) as archive:
                if (bad := archive.testzip()) is not None:
                    raise CodecError(f"its entry {bad!r} is damaged (checksum); copy or save it again")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        except CodecError:
            raise
        except Exception as e:  # zipfile, zlib and NumPy raise a dozen kinds on damaged bytes
            raise CodecError(f"it is truncated, damaged or no jaxsim file ({e}); copy or save it again") from None


def _header(entry: np.ndarray) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    try:
        if entry.dtype != np.uint8 or entry.ndim != 1:
            raise ValueError(f"an array of {entry.dtype}, not text")
        header = json.loads(entry.tobytes().decode(), parse_constant=refuse)
        if not isinstance(header, dict):
            raise ValueError("not an object")
    except (ValueError, RecursionError) as e:
        raise CodecError(f"its header cannot be read ({e}); give a file that jaxsim saved") from None
    return header
