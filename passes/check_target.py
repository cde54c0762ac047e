"""``cute-check-target``: report instructions that the chip or its PTX version lacks, at the op.

LLVM's back end aborts on an instruction that it cannot select, without naming its source.  After
``convert-cute-algo-to-arch`` each instruction is an op.  An atom has a minimum chip and PTX version; other
``cute_nvgpu.arch`` ops, nvvm ops, intrinsics and inline PTX are looked up in :mod:`cute_dialect.arch.targets`.  The
pass checks only ``gpu.module`` and changes nothing.

Rounding modes other than to nearest even are errors, too.  ``arith.truncf`` with such a mode becomes a constrained
intrinsic, whose mode only states an assumption about the environment (LangRef, "Constrained Floating-Point
Intrinsics").  A GPU has no such environment, and LLVM always selects ``cvt.rn``.

    cute_nvgpu.arch.mma_sync(%d, %a, %b, %d) {atom = !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>} : …
    // with chip=sm_75: sm_75 has no mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32, which needs sm_80
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import IntegerAttr, StringAttr, f32, i16
from xdsl.ir import Attribute, Operation

from cute_dialect.arch.elements import element
from cute_dialect.arch.errors import ArchError
from cute_dialect.arch.targets import (
    DEFAULT_CHIP,
    TCGEN05,
    Needs,
    Target,
    find_target,
    instruction_needs,
    lacking,
    statements,
)
from cute_dialect.dialect.memory_types import element_bits
from cute_dialect.passes.base import Pass, PassContext, PassError, PassOptions

if TYPE_CHECKING:
    from cute_dialect.arch.atom import CopyAtom, MmaAtom

_IDENTIFIER = re.compile(r"[A-Za-z][\w$]*|[_$][\w$]+", re.ASCII)
_HELP = __doc__ or ""
"""Text of ``--help``: inside the class, ``__doc__`` would be the docstring of the class."""

_ARCH = "cute_nvgpu.arch."
_TEXTS = {"nvvm.inline_ptx": "ptxCode", "llvm.inline_asm": "asm_string"}
"""Op -> the attribute that holds its PTX."""

_ORDERED = ("llvm.load", "llvm.store", "llvm.atomicrmw", "llvm.cmpxchg", "llvm.fence")
_ACQUIRE = 4
"""LLVM's code for ``acquire``, the weakest ordering that orders other accesses."""
_STRENGTHS = {
    "order": ("with an order other than relaxed", Needs("sm_70", "6.0")),
    "cluster": ("of cluster scope", Needs("sm_90", "7.8")),
    "scale_d": ("with scale_d", Needs("sm_100f", "8.6")),
    "pair": ("with cta_group 2", Needs(TCGEN05, "8.6")),
    "gather4": ("of mode gather4", Needs("sm_100", "8.6")),
    "gather4 in clusters": ("of mode gather4 to the shared memory of a cluster", Needs(TCGEN05, "8.6")),
    "gather4 prefetch": ("of mode gather4", Needs(TCGEN05, "8.6")),
    "scatter4": ("of mode scatter4", Needs(TCGEN05, "8.6")),
    "wide": ("of mode im2col::w", Needs(TCGEN05, "8.6")),
    "narrow": ("of elements of 4 or 6 bits", Needs("sm_100", "8.6")),
}


_ROUNDS = ("arith.truncf", "arith.scaling_truncf")
_CONSTRAINED = "llvm.intr.experimental.constrained."
_MODES = {
    True: {1: "downward", 2: "upward", 3: "toward_zero", 4: "to_nearest_away"},
    False: {0: "towardzero", 2: "upward", 3: "downward", 4: "tonearestaway"},
}
"""Rounding modes that a GPU lacks: of arith ops (True), and of LLVM's constrained intrinsics (False)."""
_LOOKED_AT = (_ARCH, "nvvm.", "llvm.inline_asm", "llvm.call_intrinsic", *_ROUNDS, _CONSTRAINED, *_ORDERED)


class CheckTargetPass(Pass):
    """Report instructions that the chip or its PTX version lacks."""

    name = "cute-check-target"
    summary = "report instructions that the chip or its PTX version lacks"
    scope = "base"
    description = _HELP
    anchor = ("gpu.module",)
    counts_changes = True  # it changes nothing

    @dataclass(frozen=True)
    class Options(PassOptions):
        """The target: chip (``sm_90a``) and features (``+ptx83``)."""

        chip: str = DEFAULT_CHIP
        features: str = ""

    def run(self, op: Operation, ctx: PassContext) -> None:
        options = self.options_as(self.Options)
        try:
            target = find_target(options.chip, options.features)
        except ArchError as e:
            raise PassError(str(e)) from e
        for inner in op.walk():
            message = name_error(inner)
            if message is not None:
                ctx.error(message, inner)
        reported: set[str] = set()
        # Keyed by identity, because hashing an attribute is slow.
        known: dict[tuple[str, int | str, tuple[str, ...]], str | None] = {}
        for inner in op.walk():
            if not inner.name.startswith(_LOOKED_AT):
                continue
            deciding = _deciding(inner)
            strength = _strength(inner)
            key = (inner.name, deciding if isinstance(deciding, str) else id(deciding), strength)
            if key not in known:
                known[key] = _wrong(target, inner.name, deciding, strength, inner)
            message = known[key]
            if message is not None and message not in reported:
                reported.add(message)
                ctx.error(message, inner)


def name_error(op: Operation) -> str | None:
    """Return the error for a function whose name is not a PTX identifier (PTX ISA, "Identifiers"), or None."""
    if op.name not in ("gpu.func", "llvm.func", "func.func") or not op.regions or not op.regions[0].blocks:
        return None
    symbol = op.properties.get("sym_name", op.attributes.get("sym_name"))
    name = symbol.data if isinstance(symbol, StringAttr) else ""
    if _IDENTIFIER.fullmatch(name) is not None:
        return None
    shown = name if len(name) <= 60 else name[:57] + "..."
    return (
        f"the name '{shown}' is not a PTX identifier; use letters a to z, digits, _ and $, without a leading "
        "digit; rename the function"
    )


def _deciding(op: Operation) -> Attribute | str | None:
    """Return the attribute or type that, with the op name, determines the instructions of an op or its rounding.

    For an op that is several instructions, depending on its types and properties, it is the name in PTX.
    """
    if op.name in _INSTRUCTION_OF:
        return _INSTRUCTION_OF[op.name](op)
    if _is_rounding(op.name):
        return op.properties.get("roundingmode")
    if op.name.startswith(_ARCH):
        return op.properties.get("atom") or next((t for t in op.operand_types if hasattr(t, "row")), None)
    return op.properties.get("intrin" if op.name == "llvm.call_intrinsic" else _TEXTS.get(op.name, ""))


def _conversion(op: Operation) -> str:
    """Return the PTX name of an ``nvvm.convert`` op."""
    source, _, target = op.name.removeprefix("nvvm.convert.").partition(".to.")
    narrow = op.properties.get("dstTy", op.properties.get("srcType"))
    count = "x4" if target.endswith("x4") else "x2"
    kinds = {"f32x2": "f32", "f32x4": "f32"}
    names = [kinds.get(target, target), kinds.get(source, source)]
    if narrow is not None:
        names["srcType" in op.properties] = f"{element(narrow.name).ptx}{count}"
    mode = "rs" if count == "x4" or "rs" in str(op.properties.get("rnd", "")) else "rn"
    return f"cvt.{mode}.{'.'.join(names)}"


def _redux(op: Operation) -> str:
    return "redux.sync.f32" if op.operand_types[0] == f32 else "redux.sync"


def _try_cancel(op: Operation) -> str:
    return f"clusterlaunchcontrol.try_cancel{'.multicast' if 'multicast' in op.properties else ''}"


def _matrix_copy(op: Operation) -> str:
    shape = "".join(re.findall(r"\w", str(op.properties.get("shape")).partition("<")[2]))
    return f"{op.name.removeprefix('nvvm.')}.sync.aligned.{shape}"


_CONVERSIONS = (
    *(f"f32x2.to.{kind}" for kind in ("f4x2", "f6x2", "f8x2", "f16x2", "bf16x2")),
    *(f"f32x4.to.{kind}" for kind in ("f4x4", "f6x4", "f8x4")),
    *(f"{kind}.to.f16x2" for kind in ("f4x2", "f6x2", "f8x2")),
    *("f16x2.to.f8x2", "bf16x2.to.f8x2", "f8x2.to.bf16x2"),
)
_INSTRUCTION_OF: Mapping[str, Callable[[Operation], str]] = {
    **{f"nvvm.convert.{kinds}": _conversion for kinds in _CONVERSIONS},
    "nvvm.redux.sync": _redux,
    f"{_ARCH}redux_sync_f32": _redux,
    "nvvm.clusterlaunchcontrol.try.cancel": _try_cancel,
    f"{_ARCH}clc_try_cancel": _try_cancel,
    "nvvm.ldmatrix": _matrix_copy,
    "nvvm.stmatrix": _matrix_copy,
}
"""Op -> the function that returns its PTX name, as far as it matters for the requirements."""


def _is_rounding(name: str) -> bool:
    return name in _ROUNDS or name.startswith(_CONSTRAINED)


def _strength(op: Operation) -> tuple[str, ...]:
    """Return the properties of an op that not every chip supports, as keys of :data:`_STRENGTHS`.

    Source: PTX ISA, "ld", "st", "atom": ``.acquire``, ``.release`` and ``.acq_rel`` need sm_70, scope ``.cluster``
    needs sm_90.  Fences exist on older chips as ``membar``, which orders both ways.
    """
    found: list[str] = []
    order, number = op.properties.get("order"), op.properties.get("ordering") or op.properties.get("success_ordering")
    named = isinstance(order, StringAttr) and order.data != "relaxed"
    if named or (isinstance(number, IntegerAttr) and number.value.data >= _ACQUIRE and op.name != "llvm.fence"):
        found.append("order")
    scope = op.properties.get("scope", op.properties.get("syncscope"))
    if isinstance(scope, StringAttr) and scope.data == "cluster":
        found.append("cluster")
    scale = op.properties.get("scale_d")
    if isinstance(scale, IntegerAttr) and scale.value.data:
        found.append("scale_d")
    if _is_load_of_pair(op):
        found.append("pair")
    if _is_narrow_copy(op):
        found.append("narrow")
    return (*found, *_row_modes(op))


def _row_modes(op: Operation) -> tuple[str, ...]:
    """Return the keys of a TMA copy of rows by index, or of pixels along W (PTX ISA, "cp.async.bulk.tensor")."""
    if "im2col_w" in str(op.properties.get("mode", "")):
        return ("wide",)
    if op.name.startswith(_ARCH):
        mode = getattr(getattr(op.operand_types[0], "data", None), "mode", "") if op.operands else ""
        in_cluster = any(t == i16 for t in op.operand_types)
        prefetches = op.name == f"{_ARCH}tma_prefetch"
    else:
        mode = re.sub(r".*_mode<tile_|>|.*_mode<.*", "", str(op.properties.get("mode", "")))
        in_cluster = op.name.endswith("shared.cluster.global") and str(op.properties.get("isCTAOnly")) != "true"
        prefetches = op.name.endswith("prefetch")
    if mode in ("w", "w_128"):
        return ("wide",)
    if mode != "gather4":
        return (mode,) if mode == "scatter4" else ()
    return ("gather4 prefetch",) if prefetches else ("gather4", "gather4 in clusters") if in_cluster else ("gather4",)


def _is_narrow_copy(op: Operation) -> bool:
    """Return True for a TMA copy of elements of less than a byte (CUDA driver API, CUtensorMapDataType)."""
    if not op.name.startswith(f"{_ARCH}tma_") or not op.operands:
        return False
    element = getattr(getattr(op.operand_types[0], "data", None), "element", None)
    return element is not None and element_bits(element) < 8


def _is_load_of_pair(op: Operation) -> bool:
    """Return True for a TMA load whose mbarrier is that of a pair of blocks (PTX ISA, "cp.async.bulk.tensor")."""
    if op.name == "nvvm.cp.async.bulk.tensor.shared.cluster.global":
        return "group" in op.properties
    return op.name.startswith(f"{_ARCH}tma_load") and getattr(op.operand_types[0], "cta_group", 1) == 2


def _wrong(
    target: Target, name: str, deciding: Attribute | str | None, strength: tuple[str, ...], op: Operation
) -> str | None:
    if _is_rounding(name):
        mode = deciding.value.data if isinstance(deciding, IntegerAttr) else -1
        mode_name = _MODES[name in _ROUNDS].get(mode)
        return (
            None
            if mode_name is None
            else f"{name}: a GPU rounds to nearest even, got {mode_name}; remove the rounding mode"
        )
    strengths = [(f"{name} {_STRENGTHS[s][0]}", _STRENGTHS[s][1]) for s in strength]
    for what, needs in [*_needs(name, deciding, op), *strengths]:
        message = lacking(target, what, needs)
        if message is not None:
            return message
    return None


def _needs(name: str, deciding: Attribute | str | None, op: Operation) -> list[tuple[str, Needs]]:
    """Return the instructions of an op with their requirements."""
    if isinstance(deciding, str):
        shown = f"{name} ({deciding})" if name.startswith("nvvm.convert.") else name
        shown += " with multicast" * deciding.endswith(".multicast")
        return [(shown, needs) for needs in instruction_needs(deciding)]
    if name in _TEXTS or name == "llvm.call_intrinsic":
        text = deciding.data if isinstance(deciding, StringAttr) else ""
        intrinsic = name == "llvm.call_intrinsic"
        found = [(text.removeprefix("llvm.nvvm."), None)] if intrinsic else statements(text)
        return [(what, needs) for what, operands in found for needs in instruction_needs(what, operands)]
    rows: list[tuple[str, Needs]] = []
    row = getattr(deciding, "row", None)
    if row is not None:
        atom = cast("CopyAtom | MmaAtom", row() if callable(row) else row)
        rows.append((atom.emit.mnemonic or name, Needs(atom.arch, atom.ptx_version)))
    sync = getattr(op, "ROW", None)
    if sync is not None:
        rows.append((name, Needs(sync.rule, "0")))
    plain = name.removeprefix(_ARCH).removeprefix("nvvm.")
    return [*rows, *((name, needs) for needs in instruction_needs(plain))]
