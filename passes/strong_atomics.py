"""``cute-strong-atomics``: convert atomics whose order or scope LLVM would drop to inline PTX.

NVPTX of LLVM 22 selects one instruction for most ``llvm.atomicrmw`` ops, and drops their order and scope::

    llvm.atomicrmw add %p, %v acq_rel : !llvm.ptr<1>, i32      // atom.global.add.u32: relaxed, gpu scope

(PTX ISA, "atom": the default of ``.sem`` is ``.relaxed``, the default of ``.scope`` is ``.gpu``.)  LLVM keeps both for
loads, stores, fences, ``llvm.cmpxchg``, and for the ``cas`` loops that it expands other atomics to.

This pass converts the affected atomics to inline PTX with their order and scope.  Additions of 16-bit floats are an
instruction only on some chips, so they become subtractions of the negated value, which are a loop on all chips.
Relaxed atomics of ``gpu`` scope or narrower do not change.

Before::

    %r = llvm.atomicrmw add %p, %v syncscope("device") acquire : !llvm.ptr<1>, i32

After::

    %r = llvm.inline_asm has_side_effects "atom.acquire.gpu.global.add.u32 $0, [$1], $2;", "=r,l,r,~{memory}" %p, %v
      : (!llvm.ptr<1>, i32) -> i32

The pass runs on every ``gpu.module``, including hand-written ones.  A custom pass pipeline to PTX must include it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, cast

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Operation

from cute_dialect.dialect.memory_types import integer_width
from cute_dialect.ir.editing import all_ops
from cute_dialect.ir.xdsl_compat import insert_op
from cute_dialect.passes.base import Pass, PassContext
from cute_dialect.spaces import AddressSpace
from cute_dialect.upstream import llvm
from cute_dialect.upstream.spec import enum_cases

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.ir import Attribute

_HELP = __doc__ or ""
"""Text of ``--help``: inside the class, ``__doc__`` would be the docstring of the class."""

_ATOMIC = "llvm.atomicrmw"

_ORDERS = {"unordered": "relaxed", "monotonic": "relaxed", "acquire": "acquire", "release": "release",
           "acq_rel": "acq_rel", "seq_cst": "acquire"}  # fmt: skip
"""LLVM's ordering -> PTX's.  A separate fence precedes ``seq_cst`` atomics, as LLVM emits for ``cas``."""

_SCOPES = {"": "sys", "device": "gpu", "cluster": "cluster", "block": "cta"}
_QUALIFIERS = {space.llvm: space.ptx for space in AddressSpace if space.addressable}
_SHARED = {space.llvm for space in AddressSpace if space.shared}

_INTEGERS = {
    "add": "add.u", "sub": "add.u", "min": "min.s", "max": "max.s", "umin": "min.u", "umax": "max.u", "_and": "and.b",
    "_or": "or.b", "_xor": "xor.b", "xchg": "exch.b",
}  # fmt: skip
_OTHERS = {
    ("fadd", "f32"): "add.f32", ("fadd", "f64"): "add.f64", ("xchg", "f32"): "exch.b32", ("xchg", "f64"): "exch.b64",
    ("uinc_wrap", "i32"): "inc.u32", ("udec_wrap", "i32"): "dec.u32",
}  # fmt: skip
_LETTERS = {"i32": "r", "i64": "l", "f32": "f", "f64": "d"}


class StrongAtomicsPass(Pass):
    """Convert atomics whose order or scope LLVM would drop to inline PTX."""

    name = "cute-strong-atomics"
    summary = "convert atomics whose order or scope LLVM would drop to inline PTX"
    scope = "base"
    description = _HELP
    anchor = ("gpu.module",)
    counts_changes = True

    def run(self, op: Operation, ctx: PassContext) -> None:
        for atomic in all_ops(op):
            strength = _strength(atomic)
            if strength is not None:
                _rewrite(atomic, strength)
                ctx.count("atomics made inline PTX")

    def legal_after(self, op: Operation) -> Iterable[Operation]:
        """Yield the atomics whose order or scope LLVM would drop."""
        for holder in op.walk():
            if holder.name == "gpu.module":
                yield from (inner for inner in holder.walk() if _strength(inner) is not None)


class _Strength(NamedTuple):
    """Order, scope and address space of an atomic that LLVM would weaken, and its PTX instruction.

    ``order`` is a key of :data:`_ORDERS`.  An empty instruction stands for a subtraction of the negated value.
    """

    order: str
    scope: str
    space: str
    ptx: str


def _strength(op: Operation) -> _Strength | None:
    """Return the strength of an atomic that LLVM would drop; ``None`` for other ops and if LLVM keeps it."""
    if op.name != _ATOMIC:
        return None
    kind, order = _case(op, "bin_op", "AtomicBinOp"), _case(op, "ordering", "AtomicOrdering")
    given = op.properties.get("syncscope")
    scope = _SCOPES.get(given.data if isinstance(given, StringAttr) else "")
    pointer, t = op.operands[0].type, op.operands[1].type
    space = pointer.addr_space if isinstance(pointer, llvm.LLVMPointerType) else 0
    # Only the GPU can access shared memory, so system scope equals GPU scope there.
    strong = _ORDERS[order] != "relaxed" or (scope == "sys" and space not in _SHARED)
    if not strong or scope is None or space not in _QUALIFIERS:
        return None
    ptx = "" if kind == "fadd" and str(t) in ("f16", "bf16") else _instruction(kind, t)
    return None if ptx is None else _Strength(order, scope, _QUALIFIERS[space], ptx)


def _instruction(kind: str, t: Attribute) -> str | None:
    """Return operation and type of the ``atom`` that LLVM selects for an ``atomicrmw``; ``None`` if it emits a loop.

    Determined by compiling every combination of kind, type, order, scope and address space (test_strong_atomics.py).

    >>> from xdsl.dialects.builtin import f32, i64
    >>> _instruction("umax", i64), _instruction("xchg", f32), _instruction("fmin", f32)
    ('max.u64', 'exch.b32', None)
    """
    if isinstance(t, llvm.LLVMPointerType):
        return "exch.b64" if kind == "xchg" else None
    bits = integer_width(t)
    if bits in (32, 64) and kind in _INTEGERS:
        return f"{_INTEGERS[kind]}{bits}"
    return _OTHERS.get((kind, str(t)))


def _rewrite(op: Operation, strength: _Strength) -> None:
    """Replace an atomic by ops that keep its order and scope."""
    order, scope, space, ptx = strength
    pointer, operand = op.operands
    t = operand.type
    new: list[Operation] = []
    if not ptx:
        new.append(llvm.OPS["fneg"](operand, result_types=[t]))
        properties = {**op.properties, "bin_op": IntegerAttr(enum_cases("llvm", "AtomicBinOp")["fsub"], 64)}
        new.append(type(op).create(operands=[pointer, new[-1].results[0]], result_types=[t], properties=properties))
    else:
        if _case(op, "bin_op", "AtomicBinOp") == "sub":
            new.append(llvm.ConstantOp(0, t))
            new.append(llvm.OPS["sub"](new[-1].results[0], operand, result_types=[t]))
            operand = new[-1].results[0]
        fence = f"fence.sc.{scope}; " if order == "seq_cst" else ""
        letter = _LETTERS.get(str(t), "l")
        code = f"{fence}atom.{_ORDERS[order]}.{scope}{space}.{ptx} $0, [$1], $2;"
        constraints = f"={letter},l,{letter},~{{memory}}"
        new.append(llvm.InlineAsmOp(code, constraints, [pointer, operand], t, has_side_effects=True))
    for made in new:
        made.location = op.location
        insert_op(made, op)
    new[-1].results[0].name_hint = op.results[0].name_hint
    op.results[0].replace_all_uses_with(new[-1].results[0])
    op.detach()
    op.erase()


def _case(op: Operation, name: str, enum: str) -> str:
    """Return the name of an enum property's value."""
    number = cast("IntegerAttr", op.properties[name]).value.data
    return next((case for case, n in enum_cases("llvm", enum).items() if n == number), "")
