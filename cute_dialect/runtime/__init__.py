"""Launcher for compiled kernels: needs only the CUDA driver, cuda-python, and numpy, torch or CuPy.

    from cute_dialect.runtime import load

    add = load("build/add").kernel("add")
    add(a, b, c)

This package imports neither xDSL nor MLIR. From the rest of the project it uses only ``algebra`` and ``arch``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # pragma: no cover
    import os

    from cute_dialect.runtime.launch import CompiledModule

__all__ = ["load"]


def load(folder: str | os.PathLike[str]) -> CompiledModule:
    """Load a compiled module that ``CompiledModule.save`` or ``compile(save=…)`` wrote.

    Raises ``ArtifactError``.
    """
    from cute_dialect.files import checked_path  # late: start-up
    from cute_dialect.runtime.artifact import ArtifactError, load_artifact  # late: start-up
    from cute_dialect.runtime.launch import CompiledModule  # late: start-up

    return CompiledModule(load_artifact(checked_path("load", "folder", folder, ArtifactError)))
