"""Paths that users pass, atomic replacement of files, and names of GPU tables."""

from __future__ import annotations

import os
import re
from errno import ENOTDIR
from pathlib import Path
from typing import cast

__all__ = ["PACKAGE", "checked_path", "gpu_file_name", "not_mlir", "replace_file"]

PACKAGE = os.path.dirname(__file__) + "/"
"""Folder of the package as in its code objects: a path like ``./cute_dialect/`` is not normalized."""


def checked_path(call: str, name: str, given: object, error: type[Exception]) -> str:
    """Return a path that a user passed, as text.

    Raises ``error`` if it is not a path, or if it contains a NUL, for which Python raises ValueError.

    >>> checked_path("save", "folder", Path("out"), ValueError)
    'out'
    >>> checked_path("save", "folder", 3, ValueError)
    Traceback (most recent call last):
        ...
    ValueError: save: folder must be a path, got 3
    """
    path: object = os.fspath(cast("str | os.PathLike[str]", given)) if isinstance(given, str | os.PathLike) else None
    if not isinstance(path, str) or "\0" in path:
        raise error(f"{call}: {name} must be a path, got {given!r}")
    return path


def replace_file(path: Path, data: bytes) -> None:
    """Write a file under a temporary name in the same folder, then rename it.  Raises OSError.

    Concurrent readers see the old or the new file.  Creates the folder if needed.  The permissions are those of any
    new file.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR), str(path.parent)) from None
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as f:
            f.write(data)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def gpu_file_name(gpu: str) -> str:
    """Return the file name of a GPU's table.

    >>> gpu_file_name("NVIDIA H200")
    'nvidia-h200.json'
    """
    return re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-") + ".json"


def not_mlir(program: str, file: str, cure: str) -> str:
    """Return the error message of a program that reads MLIR and was given a Python file.

    >>> not_mlir("cute-run", "x.py", "run it with python")
    'x.py is a Python program, and cute-run reads .mlir: run it with python'
    """
    return f"{file} is a Python program, and {program} reads .mlir: {cure}"
