"""Registry of the dialects of upstream MLIR: name and lazy factory. A dialect is imported on first use.

    ctx = Context(); register(ctx)          every dialect
    register(ctx, ["func", "arith"])        some dialects

llvm, gpu, nvvm, nvgpu, vector, memref and index are defined here. xDSL lacks some of their ops, or spells them
differently. arith, cf, func, math, scf and ub are xDSL's dialects plus the ops that xDSL lacks.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import cast

from xdsl.context import Context
from xdsl.ir import Dialect


def _own(module: str, name: str) -> Callable[[], Dialect]:
    def load() -> Dialect:
        return cast("Dialect", getattr(import_module(f"cute_dialect.upstream.{module}"), name))

    return load


def _from_table(name: str) -> Callable[[], Dialect]:
    def load() -> Dialect:
        from cute_dialect.upstream.op import table_dialect  # late: start-up

        return table_dialect(name)

    return load


def _builtin() -> Dialect:
    from xdsl.dialects.builtin import Builtin

    return Builtin


BASE_DIALECTS: dict[str, Callable[[], Dialect]] = {
    "builtin": _builtin,
    "arith": _own("arith_and_scf", "ARITH"),
    "cf": _own("arith_and_scf", "CF"),
    "dlti": _from_table("dlti"),
    "func": _own("arith_and_scf", "FUNC"),
    "gpu": _own("gpu", "GPU"),
    "index": _from_table("index"),
    "llvm": _own("llvm", "LLVM"),
    "math": _own("arith_and_scf", "MATH"),
    "memref": _from_table("memref"),
    "nvgpu": _from_table("nvgpu"),
    "nvvm": _own("nvvm", "NVVM"),
    "scf": _own("arith_and_scf", "SCF"),
    "ub": _own("arith_and_scf", "UB"),
    "vector": _own("vector", "VECTOR"),
}
"""Dialect name -> factory."""


def register(ctx: Context, names: Iterable[str] | None = None) -> None:
    """Register the dialects `names` (all if None) with `ctx`. Each is loaded when its first op or attribute is used.

    Raises KeyError for a name that is not in `BASE_DIALECTS`.
    """
    for name in BASE_DIALECTS if names is None else names:
        ctx.register_dialect(name, BASE_DIALECTS[name])
