"""Where NVIDIA's programs are: ptxas, nvdisasm.

ptxas is the one that ``CUTE_PTXAS`` names, else that of the ``nvidia-cuda-nvcc`` wheel (``nvidia/cu13/bin/ptxas``),
else the one on PATH.
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
    """ptxas refused the PTX; the message holds its first errors."""


class PtxasMissing(PtxasError):
    """No ptxas can be found; the message says what to install."""


def find_ptxas() -> str:
    """Find the path of the ptxas to use.  Raises :class:`PtxasMissing`; ``SettingError`` for a bad ``CUTE_PTXAS``."""
    found = program("CUTE_PTXAS") or find_program("ptxas", "cuda_nvcc")
    if found is None:
        raise PtxasMissing(INSTALL_HINT)
    return found


def find_program(name: str, wheel: str) -> str | None:
    """Find a program of CUDA in NVIDIA's packages (``wheel``: the folder of a release before 13), else on PATH."""
    from shutil import which

    for base in sys.path:
        for folder in ("cu14", "cu13", wheel):
            path = os.path.join(base, "nvidia", folder, "bin", name)
            if os.access(path, os.X_OK):
                return path
    return which(name)
