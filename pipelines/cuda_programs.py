"""Paths of NVIDIA's programs: ptxas and nvdisasm.

ptxas is searched in ``CUTE_PTXAS``, in the ``nvidia-cuda-nvcc`` wheel (``nvidia/cu13/bin/ptxas``), and on PATH.
"""

from __future__ import annotations

import os
import sys

from cute_dialect.runtime.settings import program

__all__ = ["INSTALL_HINT", "PtxasError", "PtxasMissing", "find_program", "find_ptxas"]

INSTALL_HINT = (
    "no ptxas found: pip install nvidia-cuda-nvcc (any CUDA 13 wheel), or set CUTE_PTXAS to the path of a ptxas, or "
    "put one on PATH"
)


class PtxasError(Exception):
    """ptxas rejected the PTX; the message holds its first errors."""


class PtxasMissing(PtxasError):
    """ptxas was not found; the message names the package to install."""


def find_ptxas() -> str:
    """Return the path of ptxas.  Raises :class:`PtxasMissing`, or ``SettingError`` for a bad ``CUTE_PTXAS``."""
    found = program("CUTE_PTXAS") or find_program("ptxas", "cuda_nvcc")
    if found is None:
        raise PtxasMissing(INSTALL_HINT)
    return found


def find_program(name: str, wheel: str) -> str | None:
    """Return the path of a CUDA program in NVIDIA's wheels or on PATH.  ``wheel``: its folder in releases before 13."""
    from shutil import which

    for base in sys.path:
        for folder in ("cu14", "cu13", wheel):
            path = os.path.join(base, "nvidia", folder, "bin", name)
            if os.access(path, os.X_OK):
                return path
    return which(name)
