"""Atomic replacement of files, so that concurrent readers see the old or the new file; names of GPU tables."""

from __future__ import annotations

import os
import re
from errno import ENOTDIR
from pathlib import Path

__all__ = ["PACKAGE", "gpu_file_name", "replace_file"]

PACKAGE = os.path.dirname(__file__) + "/"
"""Folder of the package as in its code objects: a path like ``./cute_dialect/`` is not normalized."""


def replace_file(path: Path, data: bytes) -> None:
    """Write a file under a temporary name in the same folder, then rename it.  Raises OSError.

    Creates the folder if needed.  The permissions are those of any new file.
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
