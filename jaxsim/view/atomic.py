"""Files that appear whole or not at all."""

import os
import secrets
from pathlib import Path


def write_atomically(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write `content` beside `path` under another name, then move it into place; an earlier file stays until then.

    Returns:
        The path written.
    Raises:
        FileNotFoundError: the folder of `path` does not exist; it is not made, since the path may be mistyped.
        IsADirectoryError: `path` is a folder.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: the folder {path.parent.absolute()} does not exist")
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder; add a file name")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path
