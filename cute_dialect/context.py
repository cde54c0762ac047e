"""Which dialects a tool knows: made lazily, so that a file pays for the dialects it uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from xdsl.context import Context
from xdsl.ir import Dialect

DialectScope: TypeAlias = Literal["cute", "base", "all"]

_BASE = (
    "arith", "builtin", "cf", "func", "gpu", "index", "llvm", "math", "memref", "nvgpu", "nvvm", "scf", "ub", "vector",
)  # fmt: skip
_UPSTREAM: Mapping[str, tuple[str, ...]] = {
    "cute": ("arith", "builtin", "func", "gpu", "llvm", "math", "scf", "ub"),
    "base": _BASE,
    "all": _BASE,
}


def make_context(dialects: DialectScope = "all", *, allow_unregistered: bool = False) -> Context:
    """A context in which the dialects of a scope can be used.

    ``cute`` is what a program is written in before it is lowered, ``base`` what is left after ``cute-to-base`` (so that
    a cute op that leaked is an unregistered one), ``all`` both.
    """
    from cute_dialect.upstream.registry import register

    context = Context(allow_unregistered=allow_unregistered)
    register(context, _UPSTREAM[dialects])
    if dialects != "base":
        context.register_dialect("cute", _cute)
        context.register_dialect("cute_nvgpu", _cute_nvgpu)
    return context


def _cute() -> Dialect:
    from cute_dialect.dialect import get_cute_dialect

    return get_cute_dialect()


def _cute_nvgpu() -> Dialect:
    from cute_dialect.dialect import get_cute_nvgpu_dialect

    return get_cute_nvgpu_dialect()
