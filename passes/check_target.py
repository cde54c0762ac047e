"""``cute-check-target``: what the chip or its version of PTX lacks is an error at the op, before LLVM is asked.

LLVM's back end aborts on an instruction that it cannot select, and cannot say where it comes from.  After
``convert-cute-algo-to-arch`` each instruction is an op: an atom knows the first chip and version that have it, other
ops of ``cute_nvgpu.arch``, ops of nvvm, intrinsics and inline PTX are looked up in :mod:`cute_dialect.arch.targets`.
Only ``gpu.module`` is looked at, and nothing is changed.

A rounding mode other than to the nearest, ties to even, is refused, too: ``arith.truncf`` with one becomes a
constrained intrinsic, whose mode only says what the environment is assumed to be (LangRef, "Constrained Floating-Point
Intrinsics"); a GPU has no such environment, and LLVM selects ``cvt.rn`` whatever the mode.

    cute_nvgpu.arch.mma_sync(%d, %a, %b, %d) {atom = !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>} : …
    // with chip=sm_75: sm_75 has no mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32, which needs sm_80
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation

from cute_dialect.arch.errors import ArchError
from cute_dialect.arch.targets import DEFAULT_CHIP, Needs, Target, find_target, instruction_needs, lacking, mnemonics
from cute_dialect.passes.base import Pass, PassContext, PassError, PassOptions

if TYPE_CHECKING:
    from cute_dialect.arch.atom import CopyAtom, MmaAtom

_IDENTIFIER = re.compile(r"[A-Za-z][\w$]*|[_$][\w$]+", re.ASCII)
_HELP = __doc__ or ""
"""The text of ``--help``: in the class, ``__doc__`` would be its own docstring."""

_ARCH = "cute_nvgpu.arch."
_TEXTS = {"nvvm.inline_ptx": "ptxCode", "llvm.inline_asm": "asm_string"}
"""Op -> the attribute that holds its PTX."""

_ORDERED = ("llvm.load", "llvm.store", "llvm.atomicrmw", "llvm.cmpxchg", "llvm.fence")
_ACQUIRE = 4
"""LLVM's number of the weakest order that orders other accesses."""
_STRENGTHS = {
    "order": ("with an order other than relaxed", Needs("sm_70", "6.0")),
    "cluster": ("of cluster scope", Needs("sm_90", "7.8")),
}


_ROUNDS = ("arith.truncf", "arith.scaling_truncf")
_CONSTRAINED = "llvm.intr.experimental.constrained."
_MODES = {
    True: {1: "downward", 2: "upward", 3: "toward_zero", 4: "to_nearest_away"},
    False: {0: "towardzero", 2: "upward", 3: "downward", 4: "tonearestaway"},
}
"""The rounding modes that a GPU does not have, of arith's ops (True) and of LLVM's constrained intrinsics."""
_LOOKED_AT = (_ARCH, "nvvm.", "llvm.inline_asm", "llvm.call_intrinsic", *_ROUNDS, _CONSTRAINED, *_ORDERED)


class CheckTargetPass(Pass):
    """Refuse instructions that the chip or its version of PTX does not have."""

    name = "cute-check-target"
    summary = "refuse what the chip or its version of PTX does not have"
    description = _HELP
    anchor = ("gpu.module",)
    counts_changes = True  # it makes none

    @dataclass(frozen=True)
    class Options(PassOptions):
        """The target to check for: its chip (``sm_90a``) and its features (``+ptx83``)."""

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
        said: set[str] = set()
        known: dict[tuple[str, int, tuple[str, ...]], str | None] = {}  # by identity: to hash an attribute takes long
        for inner in op.walk():
            if not inner.name.startswith(_LOOKED_AT):
                continue
            deciding = _deciding(inner)
            strength = _strength(inner)
            key = (inner.name, id(deciding), strength)
            if key not in known:
                known[key] = _wrong(target, inner.name, deciding, strength, inner)
            message = known[key]
            if message is not None and message not in said:
                said.add(message)
                ctx.error(message, inner)


def name_error(op: Operation) -> str | None:
    """The error for a kernel or function whose name PTX cannot spell (PTX ISA, "Identifiers"); None for other ops."""
    if op.name not in ("gpu.func", "llvm.func", "func.func") or not op.regions or not op.regions[0].blocks:
        return None
    symbol = op.properties.get("sym_name", op.attributes.get("sym_name"))
    name = symbol.data if isinstance(symbol, StringAttr) else ""
    if _IDENTIFIER.fullmatch(name) is not None:
        return None
    shown = name if len(name) <= 60 else name[:57] + "..."
    return (
        f"PTX cannot spell the name '{shown}'; a name has letters a to z, digits, _ and $, and does not begin with a "
        "digit; rename the function"
    )


def _deciding(op: Operation) -> Attribute | None:
    """Return the attribute or type that says, beside the name, which instructions an op is, or how it rounds."""
    if _is_rounding(op.name):
        return op.properties.get("roundingmode")
    if op.name.startswith(_ARCH):
        return op.properties.get("atom") or next((t for t in op.operand_types if hasattr(t, "row")), None)
    return op.properties.get("intrin" if op.name == "llvm.call_intrinsic" else _TEXTS.get(op.name, ""))


def _is_rounding(name: str) -> bool:
    return name in _ROUNDS or name.startswith(_CONSTRAINED)


def _strength(op: Operation) -> tuple[str, ...]:
    """List what an op says of memory order and scope that not every chip has: keys of :data:`_STRENGTHS`.

    Source: PTX ISA, "ld", "st", "atom": ``.acquire``, ``.release`` and ``.acq_rel`` need sm_70, scope ``.cluster``
    sm_90; a fence of before is a ``membar``, which orders both ways.
    """
    found: list[str] = []
    order, number = op.properties.get("order"), op.properties.get("ordering") or op.properties.get("success_ordering")
    named = isinstance(order, StringAttr) and order.data != "relaxed"
    if named or (isinstance(number, IntegerAttr) and number.value.data >= _ACQUIRE and op.name != "llvm.fence"):
        found.append("order")
    scope = op.properties.get("scope", op.properties.get("syncscope"))
    if isinstance(scope, StringAttr) and scope.data == "cluster":
        found.append("cluster")
    return tuple(found)


def _wrong(
    target: Target, name: str, deciding: Attribute | None, strength: tuple[str, ...], op: Operation
) -> str | None:
    if _is_rounding(name):
        mode = deciding.value.data if isinstance(deciding, IntegerAttr) else -1
        said = _MODES[name in _ROUNDS].get(mode)
        return None if said is None else f"{name}: expected rounding to nearest even, got {said}, which LLVM drops"
    strengths = [(f"{name} {_STRENGTHS[s][0]}", _STRENGTHS[s][1]) for s in strength]
    for what, needs in [*_needs(name, deciding, op), *strengths]:
        message = lacking(target, what, needs)
        if message is not None:
            return message
    return None


def _needs(name: str, deciding: Attribute | None, op: Operation) -> list[tuple[str, Needs]]:
    """List the instructions of an op and what each needs."""
    if name in _TEXTS or name == "llvm.call_intrinsic":
        text = deciding.data if isinstance(deciding, StringAttr) else ""
        names = [text.removeprefix("llvm.nvvm.")] if name == "llvm.call_intrinsic" else mnemonics(text)
        return [(what, needs) for what in names if (needs := instruction_needs(what)) is not None]
    found: list[tuple[str, Needs]] = []
    row = getattr(deciding, "row", None)
    if row is not None:
        atom = cast("CopyAtom | MmaAtom", row() if callable(row) else row)
        found.append((atom.emit.mnemonic or name, Needs(atom.arch, atom.ptx_version)))
    sync = getattr(op, "ROW", None)
    if sync is not None:
        found.append((name, Needs(f"sm_{sync.sm}", "0")))
    needs = instruction_needs(name.removeprefix(_ARCH).removeprefix("nvvm."))
    return [*found, (name, needs)] if needs is not None else found
