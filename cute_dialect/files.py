"""Writing files that others may read meanwhile: they see the old one or the new one, never half of one; their names."""

from __future__ import annotations

import os
import re
from errno import ENOTDIR
from pathlib import Path

__all__ = ["PACKAGE", "gpu_file_name", "replace_file"]

PACKAGE = os.path.dirname(__file__) + "/"
"""The folder of the package as its code objects spell it: a path like ``./cute_dialect/`` is not normalised."""


def replace_file(path: Path, data: bytes) -> None:
    """Write a file under a temporary name beside it, then rename it; makes the folder.  Raises OSError.

    Its permissions are those of any new file.
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
    """Return the name of a table of a GPU.

    >>> gpu_file_name("NVIDIA H200")
    'nvidia-h200.json'
    """
    return re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-") + ".json"
