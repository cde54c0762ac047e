"""The atomics that LLVM would make weaker than they say, as the text of the hand-off has them.

NVPTX of LLVM 22 selects one instruction for most ``llvm.atomicrmw`` and drops order and scope there::

    llvm.atomicrmw add %p, %v acq_rel : !llvm.ptr<1>, i32      // atom.global.add.u32: relaxed, of gpu scope

(PTX ISA, "atom": without ``.sem`` it is ``.relaxed``, without ``.scope`` it is ``.gpu``).  Loads, stores, fences,
``llvm.cmpxchg`` and the loops around ``cas`` that LLVM makes of the rest keep both.  So those cross as inline PTX
that say what the op says; additions of 16-bit floats, which are an instruction on some chips only, as subtractions of
the negated value, which are a loop on all.  A relaxed one of ``gpu`` scope or a narrower one crosses as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from cute_dialect.memory_types import integer_width
from cute_dialect.upstream import llvm
from cute_dialect.upstream.spec import enum_cases

if TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable

    from xdsl.dialects.builtin import IntegerAttr, StringAttr
    from xdsl.ir import Attribute, Operation, SSAValue

__all__ = ["ATOMIC", "atomic_text"]

ATOMIC = "llvm.atomicrmw"

_ORDERS = {"unordered": "relaxed", "monotonic": "relaxed", "acquire": "acquire", "release": "release",
           "acq_rel": "acq_rel", "seq_cst": "acquire"}  # fmt: skip
"""LLVM's order -> that of the instruction; a fence of its own comes before a ``seq_cst`` one, as before a ``cas``."""

_SCOPES = {"": "sys", "device": "gpu", "cluster": "cluster", "block": "cta"}
_SPACES = {0: "", 1: ".global", 3: ".shared", 7: ".shared::cluster"}
_SHARED = (3, 7)

_INTEGERS = {
    "add": "add.u", "sub": "add.u", "min": "min.s", "max": "max.s", "umin": "min.u", "umax": "max.u", "_and": "and.b",
    "_or": "or.b", "_xor": "xor.b", "xchg": "exch.b",
}  # fmt: skip
_OTHERS = {
    ("fadd", "f32"): "add.f32", ("fadd", "f64"): "add.f64", ("xchg", "f32"): "exch.b32", ("xchg", "f64"): "exch.b64",
    ("uinc_wrap", "i32"): "inc.u32", ("udec_wrap", "i32"): "dec.u32",
}  # fmt: skip
_LETTERS = {"i32": "r", "i64": "l", "f32": "f", "f64": "d"}


def _instruction(kind: str, t: Attribute) -> str | None:
    """Operation and type of the ``atom`` that LLVM selects for an ``atomicrmw``; ``None`` where it makes a loop.

    Found by compiling every kind with every type, order, scope and address space (test_handoff_atomics.py).

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


def atomic_text(op: Operation, value: Callable[[SSAValue], str], text: Callable[[Attribute], str]) -> str | None:
    """The lines of an ``llvm.atomicrmw``, without a location; ``None`` where LLVM keeps what it says.

    ``value`` and ``text`` give names and types.
    """
    kind, order = _case(op, "bin_op", "AtomicBinOp"), _case(op, "ordering", "AtomicOrdering")
    given = op.properties.get("syncscope")
    scope = _SCOPES.get("" if given is None else cast("StringAttr", given).data)
    pointer, operand = op.operands
    t = operand.type
    space = pointer.type.addr_space if isinstance(pointer.type, llvm.LLVMPointerType) else 0
    # Nobody outside of the GPU reaches shared memory: there all of the system is the GPU.
    strong = _ORDERS[order] != "relaxed" or (scope == "sys" and space not in _SHARED)
    if not strong or scope is None or space not in _SPACES:
        return None
    result = value(op.results[0])
    number = result[1:]  # what is computed here has the number of the result
    types = f"({text(pointer.type)}, {text(t)}) -> ({text(t)})"
    if kind == "fadd" and str(t) in ("f16", "bf16"):
        properties = {**op.properties}
        cases = enum_cases("llvm", "AtomicBinOp")
        del properties["bin_op"]
        kept = "".join(f', "{name}" = {text(attribute)}' for name, attribute in properties.items())
        return (
            f'%a{number} = "llvm.fneg"({value(operand)}) : ({text(t)}) -> ({text(t)})\n'
            f'{result} = "llvm.atomicrmw"({value(pointer)}, %a{number}) <{{"bin_op" = {cases["fsub"]} : i64{kept}}}> : '
            f"{types}"
        )
    ptx = _instruction(kind, t)
    if ptx is None:
        return None
    lines = ""
    added = value(operand)
    if kind == "sub":
        added = f"%a{number}"
        lines = (
            f'%z{number} = "llvm.mlir.constant"() <{{"value" = 0 : {text(t)}}}> : () -> ({text(t)})\n'
            f'{added} = "llvm.sub"(%z{number}, {value(operand)}) : ({text(t)}, {text(t)}) -> ({text(t)})\n'
        )
    fence = f"fence.sc.{scope}; " if order == "seq_cst" else ""
    code = f"{fence}atom.{_ORDERS[order]}.{scope}{_SPACES[space]}.{ptx} $0, [$1], $2;"
    letter = _LETTERS.get(str(t), "l")
    return (
        f'{lines}{result} = "llvm.inline_asm"({value(pointer)}, {added}) <{{"asm_string" = "{code}", '
        f'"constraints" = "={letter},l,{letter},~{{memory}}", "has_side_effects"}}> : {types}'
    )


def _case(op: Operation, name: str, enum: str) -> str:
    """The case of an enum property, which is a number."""
    number = cast("IntegerAttr", op.properties[name]).value.data
    return next((case for case, n in enum_cases("llvm", enum).items() if n == number), "")
