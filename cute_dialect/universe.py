"""xDSL plug-in: dialects and passes for ``xdsl-opt`` and other xDSL tools (entry point ``xdsl.universe``).

    xdsl-opt layouts.mlir -p cute-fold-static,cute-expand-ops,cute-to-base,canonicalize

:data:`CUTE_UNIVERSE` omits dialects and passes whose names xDSL uses itself, because xDSL rejects duplicates.  In
``xdsl-opt``, ``canonicalize``, ``cse`` and the dialects ``llvm``, ``gpu`` and ``arith`` are therefore xDSL's, with the
ops and attributes added that they lack.  ``cute-to-base`` creates ``llvm`` ops of :mod:`cute_dialect.upstream`, which
print in upstream MLIR's syntax.  xDSL's ``gpu`` dialect parses generic form only, as printed by ``cute-opt
--mlir-print-op-generic``.

The universe holds factories, so a dialect is imported on first use.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import XDSL_UNIVERSE, Universe

from cute_dialect.passes.registry import PASSES
from cute_dialect.upstream.registry import BASE_DIALECTS


def _pass_factory(name: str) -> Callable[[], type[ModulePass]]:
    def factory() -> type[ModulePass]:
        from cute_dialect.passes.base import as_module_pass  # late: start-up
        from cute_dialect.passes.registry import load  # late: start-up

        return as_module_pass(load(name))

    return factory


def _cute() -> Dialect:
    from cute_dialect.dialect.registry import get_cute_dialect  # late: start-up

    return get_cute_dialect()


def _cute_nvgpu() -> Dialect:
    from cute_dialect.dialect.registry import get_cute_nvgpu_dialect  # late: start-up

    return get_cute_nvgpu_dialect()


def _missing_upstream() -> dict[str, Callable[[], Dialect]]:
    """Return the dialects of upstream MLIR that this version of xDSL lacks."""
    return {name: get for name, get in BASE_DIALECTS.items() if name not in XDSL_UNIVERSE.all_dialects}


def _completed(theirs: Callable[[], Dialect], ours: Callable[[], Dialect]) -> Callable[[], Dialect]:
    """Return the factory of a dialect of xDSL with the ops and attributes of upstream MLIR that it lacks."""

    def factory() -> Dialect:
        old, new = theirs(), ours()
        ops, attributes = ({x.name for x in had} for had in (old.operations, old.attributes))
        return Dialect(
            old.name,
            [*old.operations, *(op for op in new.operations if op.name not in ops)],
            [*old.attributes, *(attribute for attribute in new.attributes if attribute.name not in attributes)],
        )

    return factory


def _complete_xdsl() -> None:
    """Complete the dialects of xDSL in place, since a plug-in cannot replace a dialect.

    Otherwise xDSL could not read lowered kernels: its ``llvm`` lacks 212 ops, such as ``llvm.extractelement``.
    """
    dialects = XDSL_UNIVERSE.all_dialects
    for name in sorted(dialects.keys() & BASE_DIALECTS.keys() - {"builtin"}):
        dialects[name] = _completed(dialects[name], BASE_DIALECTS[name])


CUTE_UNIVERSE = Universe(
    all_dialects={"cute": _cute, "cute_nvgpu": _cute_nvgpu, **_missing_upstream()},
    all_passes={row.name: _pass_factory(row.name) for row in PASSES.values() if row.scope == "cute"},
)
"""The dialects ``cute`` and ``cute_nvgpu`` with their passes, and ``nvvm``, ``nvgpu``, ``index``."""

_complete_xdsl()
