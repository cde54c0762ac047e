"""Table of all passes: name, summary, and location of the class, which is imported on first use.

A pass without a class belongs to upstream MLIR and runs there, after the hand-off
(:mod:`cute_dialect.pipelines.runner`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from cute_dialect.passes.base import Pass

Scope: TypeAlias = Literal["cute", "base", "generic"]
"""Scope of a pass: ``--dialects=cute`` selects cute and generic, ``--dialects=base`` base and generic."""


class PassInfo(NamedTuple):
    """One entry of the table.

    Args:
        name, summary: name and one-line help.
        scope: dialects that the pass works on.
        module: module of the class, starting with a dot in this package; empty for a pass of upstream MLIR.
        class_name: name of the class.
        anchor: ops that an upstream pass runs on.
        options: option names of an upstream pass.
        both: the pass exists here and in upstream, and runs on the side that holds the IR.
        origin: package or module of a pass of another package (:mod:`.outside`); empty for passes of this package.
    """

    name: str
    summary: str
    scope: Scope
    module: str = ""
    class_name: str = ""
    anchor: tuple[str, ...] | None = None
    options: tuple[str, ...] | None = ()
    """option names of an upstream pass; None: upstream checks them"""
    both: bool = False
    origin: str = ""

    @property
    def upstream(self) -> bool:
        """True if only upstream MLIR can run the pass."""
        return not self.module

    def goes_with(self, dialects: str) -> bool:
        """Return True if the pass is available with ``--dialects=cute|base|all``."""
        return dialects == "all" or self.scope in (dialects, "generic")

    def load(self) -> type[Pass]:
        """Import the class of a pass that runs here.  Raises KeyError for a pass of upstream."""
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
        "report instructions that the chip or its PTX version lacks",
        "base",
        ".check_target",
        "CheckTargetPass",
    ),
    PassInfo(
        "cute-to-base", "lower cute types and the remaining cute ops to base ops", "cute", ".to_base", "ToBasePass"
    ),
    PassInfo("convert-nvgpu-to-nvvm", "lower nvgpu ops of cute-to-base{arch-dialect=nvgpu} to nvvm", "base"),
    PassInfo("cute-drop-asserts", "remove cf.assert from kernels", "base", ".drop_asserts", "DropAssertsPass"),
    PassInfo(
        "cute-strong-atomics",
        "convert atomics whose order or scope LLVM would drop to inline PTX",
        "base",
        ".strong_atomics",
        "StrongAtomicsPass",
    ),
    PassInfo(
        "cute-wgmma-registers",
        "join consecutive wgmma and keep their accumulators in PTX registers",
        "base",
        ".wgmma_registers",
        "WgmmaRegistersPass",
    ),
    PassInfo("base-prepare", "canonicalize, cse, hoist and reconcile casts (base IR)", "base", anchor=_MODULE),
    PassInfo("one-shot-convert-to-llvm", "base IR to llvm and nvvm, device and host", "base", anchor=_MODULE),
    PassInfo(
        "ensure-debug-info-scope-on-llvm-func",
        "give functions of the llvm dialect a debug scope, so that PTX has line info",
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


def in_scope(dialects: str) -> Iterable[PassInfo]:
    """Yield the passes available with ``--dialects=cute|base|all``."""
    return (row for row in _ROWS if row.goes_with(dialects))


def load(name: str) -> type[Pass]:
    """Import the class of a pass that runs here.  Raises KeyError for an unknown name or a pass of upstream."""
    return PASSES[name].load()
