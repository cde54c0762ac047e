"""The plug-in for xDSL: what ``xdsl-opt`` and other tools of xDSL see of this project (entry point ``xdsl.universe``).

    xdsl-opt layout.mlir -p cute-fold-static,cute-expand-ops,cute-to-base

Names that xDSL has itself (``canonicalize``, ``cse``, ``reconcile-unrealized-casts`` …) are left out: xDSL refuses two
passes or dialects of one name.  Factories only; nothing is imported before it is used.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe

from cute_dialect.passes.registry import PASSES


def _pass_factory(name: str) -> Callable[[], type[ModulePass]]:
    def factory() -> type[ModulePass]:
        from cute_dialect.passes.base import as_module_pass
        from cute_dialect.passes.registry import load

        return as_module_pass(load(name))

    return factory


def _cute() -> Dialect:
    from cute_dialect.dialect import get_cute_dialect

    return get_cute_dialect()


def _cute_nvgpu() -> Dialect:
    from cute_dialect.dialect import get_cute_nvgpu_dialect

    return get_cute_nvgpu_dialect()


CUTE_UNIVERSE = Universe(
    all_dialects={"cute": _cute, "cute_nvgpu": _cute_nvgpu},
    all_passes={row.name: _pass_factory(row.name) for row in PASSES.values() if row.scope == "cute"},
)
"""The dialects ``cute`` and ``cute_nvgpu``, and the passes on them."""
