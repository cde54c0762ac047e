"""Public names: the packages that have them, and the spelling of each in programs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

__all__ = ["MODULES", "PACKAGES", "public_modules", "public_names"]

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "cute_dialect.lang",
    "cute_dialect.lang.nvgpu",
    "cute_dialect.op",
    "cute_dialect.op.epilogue",
    "cute_dialect.algebra",
    "cute_dialect.arch",
    "cute_dialect.interp",
    "cute_dialect.viz",
    "cute_dialect.kernels.gemm",
    "cute_dialect.pipelines",
    "cute_dialect.pipelines.embed",
    "cute_dialect.runtime",
    "cute_dialect.runtime.progress",
)
"""Packages and modules with public names, listed in a stub ``__init__.pyi`` or in ``__all__``."""

MODULES: Mapping[str, str] = {
    "cute_dialect.lang": "cute",
    "cute_dialect.lang.arch": "cute.arch",
    "cute_dialect.lang.nvgpu": "cute.nvgpu",
    "cute_dialect.lang.nvgpu.cpasync": "cute.nvgpu.cpasync",
    "cute_dialect.lang.nvgpu.warp": "cute.nvgpu.warp",
    "cute_dialect.lang.nvgpu.warpgroup": "cute.nvgpu.warpgroup",
    "cute_dialect.lang.lib.hopper": "cute.hopper",
    "cute_dialect.lang.lib.pipeline": "cute.pipeline",
    "cute_dialect.lang.lib.schedulers": "cute.utils",
    "cute_dialect.lang.math": "cute.math",
    "cute_dialect.lang.runtime": "cute.runtime",
    "cute_dialect.compat.testing": "cute.testing",
    "cute_dialect.compat.cuda": "cute.cuda",
    "cute_dialect.compat.torch": "cute.torch",
    "cute_dialect.interp": "interp",
    "cute_dialect.op": "op",
    "cute_dialect.op.emit": "op.emit",
    "cute_dialect.op.compiler": "op.compiler",
    "cute_dialect.op.nn": "op.nn",
    "cute_dialect.op.epilogue": "op.epilogue",
    "cute_dialect.op.epilogue.library": "op.epilogue.library",
}
"""Public modules -> their names in programs."""


def public_names(package: str) -> list[str]:
    """Return the public names of a package in the order of its stub, or else of ``__all__``."""
    stub = ROOT.joinpath(*package.split("."), "__init__.pyi")
    if not stub.exists():
        return list(import_module(package).__all__)
    names: dict[str, None] = {}
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            names.update((alias.asname or alias.name, None) for alias in node.names)
        elif isinstance(node, ast.Assign):
            names.update((target.id, None) for target in node.targets if isinstance(target, ast.Name))
    return list(names)


def public_modules() -> Iterator[tuple[str, str]]:
    """Yield each public name that is not a module, as (module, name)."""
    for module in MODULES:
        for name in sorted(public_names(module), key=str.lower):
            # A submodule is not imported: op.nn needs torch.
            is_package = hasattr(import_module(module), "__path__")
            if not (is_package and find_spec(f"{module}.{name}")) and name != "viz":
                yield module, name
