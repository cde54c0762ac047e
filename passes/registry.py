"""Every pass by name: what it is called, what it does, where its class is.  Nothing is imported to build the table.

A pass without a class is upstream MLIR's: it runs there, after the hand-off (:mod:`cute_dialect.pipelines.runner`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from cute_dialect.passes.base import Pass

Scope: TypeAlias = Literal["cute", "base", "generic"]
"""Scopes of passes: ``--dialects=cute`` has cute and generic, ``--dialects=base`` base and generic."""


class PassInfo(NamedTuple):
    """One row: ``module`` holds the class (its name begins with a dot if it is one of this package), it is empty for a
    pass that upstream MLIR runs.

    ``both`` marks a pass that exists on either side of the hand-off: it runs where the IR is.  ``origin`` is empty for
    this package's, and names the package or the module of a pass from outside (:mod:`.outside`).
    """

    name: str
    summary: str
    scope: Scope
    module: str = ""
    class_name: str = ""
    anchor: tuple[str, ...] | None = None
    options: tuple[str, ...] | None = ()
    """names of the options of an upstream pass; None: not known here, upstream checks them"""
    both: bool = False
    origin: str = ""

    @property
    def upstream(self) -> bool:
        """Whether only upstream MLIR can run it."""
        return not self.module

    def goes_with(self, dialects: str) -> bool:
        """Tell whether the pass is there under ``--dialects=cute|base|all``."""
        return dialects == "all" or self.scope in (dialects, "generic")

    def load(self) -> type[Pass]:
        """Import the class of a pass that runs here.  Raises KeyError for one of upstream's."""
        if self.upstream:
            raise KeyError(self.name)
        return getattr(import_module(self.module, "cute_dialect.passes"), self.class_name)


_MODULE = ("builtin.module",)

_ROWS: tuple[PassInfo, ...] = (
    PassInfo("cute-fold-static", "make static layout values constants", "cute", ".fold_static", "FoldStaticPass"),
    PassInfo("cute-expand-ops", "expand algebra ops to scalar arithmetic", "cute", ".expand_ops", "ExpandOpsPass"),
    PassInfo(
        "convert-cute-algo-to-arch",
        "lower tiled copy, tiled mma and partitions to the atoms of an architecture",
        "cute",
        ".algo_to_arch",
        "AlgoToArchPass",
    ),
    PassInfo(
        "cute-check-target",
        "refuse what the chip or its version of PTX does not have",
        "base",
        ".check_target",
        "CheckTargetPass",
    ),
    PassInfo(
        "cute-to-base", "lower cute types and the remaining cute ops to base ops", "cute", ".to_base", "ToBasePass"
    ),
    PassInfo("convert-nvgpu-to-nvvm", "nvgpu ops, as cute-to-base{arch-dialect=nvgpu} leaves, to nvvm", "base"),
    PassInfo("cute-drop-asserts", "take cf.assert out of kernels", "base", ".drop_asserts", "DropAssertsPass"),
    PassInfo(
        "cute-strong-atomics",
        "make inline PTX of the atomics whose order or scope LLVM would drop",
        "base",
        ".strong_atomics",
        "StrongAtomicsPass",
    ),
    PassInfo(
        "cute-wgmma-registers",
        "join consecutive wgmma, make their accumulators registers of PTX",
        "base",
        ".wgmma_registers",
        "WgmmaRegistersPass",
    ),
    PassInfo("base-prepare", "canonicalize, cse, hoist and reconcile casts (base IR)", "base", anchor=_MODULE),
    PassInfo("one-shot-convert-to-llvm", "base IR to llvm and nvvm, device and host", "base", anchor=_MODULE),
    PassInfo(
        "ensure-debug-info-scope-on-llvm-func",
        "give functions of the llvm dialect a scope, so that PTX says which line an instruction is from",
        "base",
        anchor=_MODULE,
        options=("emission-kind",),
    ),
    PassInfo(
        "attach-nvvm-target",
        "add #nvvm.target to every gpu.module",
        "base",
        anchor=_MODULE,
        options=("chip", "features", "opt-level"),
    ),
    PassInfo(
        "emit-gpu-binary",
        "compile every gpu.module: PTX, cubin or bitcode",
        "base",
        anchor=_MODULE,
        options=("compilation-target",),
    ),
    PassInfo("canonicalize", "fold, simplify, remove dead ops", "generic", ".generic", "CanonicalizePass", both=True),
    PassInfo("cse", "eliminate common subexpressions", "generic", ".generic", "CsePass", both=True),
    PassInfo(
        "loop-invariant-code-motion",
        "hoist invariant ops out of loops",
        "generic",
        ".generic",
        "LoopInvariantCodeMotionPass",
        both=True,
    ),
    PassInfo(
        "reconcile-unrealized-casts",
        "remove casts that cancel out",
        "generic",
        ".generic",
        "ReconcileUnrealizedCastsPass",
        both=True,
    ),
    PassInfo("strip-debuginfo", "drop source locations", "generic", ".generic", "StripDebugInfoPass", both=True),
    PassInfo("control-flow-sink", "sink ops into the branch that uses them", "generic", options=None),
    PassInfo("inline", "inline function calls", "generic", options=None),
    PassInfo("mem2reg", "promote memory slots to values", "generic", options=None),
    PassInfo("remove-dead-values", "remove arguments and results that nothing uses", "generic", options=None),
    PassInfo("sccp", "propagate constants through control flow", "generic", options=None),
    PassInfo("sroa", "split aggregates in memory into their scalars", "generic", options=None),
    PassInfo("symbol-dce", "remove private symbols that nothing uses", "generic", options=None),
)

PASSES: Mapping[str, PassInfo] = {row.name: row for row in _ROWS}
"""Name → row."""


def in_scope(dialects: str) -> Iterable[PassInfo]:
    """Yield the passes that go with ``--dialects=cute|base|all``."""
    return (row for row in _ROWS if row.goes_with(dialects))


def load(name: str) -> type[Pass]:
    """Import the class of a pass that runs here.  Raises KeyError for a name that no pass has, or one of upstream's."""
    return PASSES[name].load()
