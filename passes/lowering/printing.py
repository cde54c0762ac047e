"""``cute.print``: prints the text of the type on one line, with every ``?`` replaced by its run-time value.

Device code uses ``gpu.printf``; host code calls ``@printf`` with a format global of the enclosing module.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp, StringAttr, i8, i32
from xdsl.ir import Operation, SSAValue

from cute_dialect.algebra import text
from cute_dialect.algebra.values import ComposedLayout
from cute_dialect.dialect.memory_types import integer_width
from cute_dialect.dialect.typed_values import dynamic_leaves
from cute_dialect.dialect.types import CuteType
from cute_dialect.ir.editing import make_op
from cute_dialect.passes.lowering.build import BaseBuilder
from cute_dialect.upstream import gpu, llvm

_LEAF = re.compile(r"\?(\{[^}]*\})?")


def format_string(t: CuteType) -> str:
    """Return the ``printf`` format of a value of this type, including a newline.

    >>> # stride<"(?@0,1@1)">  ->  "(%d@0,1@1)\\n"
    """

    def spec(m: re.Match[str]) -> str:
        return "%lld" if m.group(1) is not None and "i64" in m.group(1) else "%d"

    return _LEAF.sub(spec, text.to_text(t.data).replace("%", "%%")) + "\n"


def print_order(t: CuteType, values: Sequence[SSAValue]) -> list[SSAValue]:
    """Reorder leaf values from storage order (B, offset, A) to print order (A, offset, B)."""
    payload = t.data
    if not isinstance(payload, ComposedLayout):
        return list(values)
    b, o = len(dynamic_leaves(payload.outer)), len(dynamic_leaves(payload.offset))
    return [*values[b + o :], *values[b : b + o], *values[:b]]


def lower_print(
    build: BaseBuilder, op: Operation, t: CuteType, values: Sequence[SSAValue], formats: Formats | None, *, device: bool
) -> None:
    """Emit the print of a value whose dynamic leaves are ``values``, in storage order."""
    arguments = [_promoted(build, v) for v in print_order(t, values)]
    fmt = format_string(t)
    if device or _inside_launch(op):
        build.add(make_op(gpu.PrintfOp, arguments, properties={"format": StringAttr(fmt)}))
        return
    assert formats is not None, "a pass runs on a module"
    formats.declare_printf()
    name = formats.add(fmt)
    pointer = llvm.LLVMPointerType()
    address = build.emit(llvm.AddressOfOp(name, pointer))
    text_type = llvm.LLVMArrayType(len(fmt.encode()) + 1, i8)
    first = build.emit(llvm.GEPOp(address, [0, 0], text_type))
    signature = llvm.LLVMFunctionType([pointer], i32, is_variadic=True)
    build.add(llvm.CallOp("printf", [first, *arguments], i32, var_callee_type=signature))


def _promoted(build: BaseBuilder, value: SSAValue) -> SSAValue:
    from xdsl.dialects import arith

    width = integer_width(value.type)
    assert width is not None
    return build.emit(arith.ExtSIOp(value, i32)) if width < 32 else value


def _inside_launch(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None:
        if parent.name in ("gpu.module", "gpu.launch"):
            return True
        parent = parent.parent_op()
    return False


class Formats:
    """Format globals of a module, and its declaration of ``printf``; existing symbols are collected once."""

    def __init__(self, module: ModuleOp):
        self._module = module
        names = (o.properties.get("sym_name", o.attributes.get("sym_name")) for o in module.body.block.ops)
        self._taken = {n.data for n in names if isinstance(n, StringAttr)}
        self._number = 0

    def declare_printf(self) -> None:
        """Declare ``llvm.func @printf(!llvm.ptr, ...) -> i32``, once."""
        if "printf" not in self._taken:
            self._taken.add("printf")
            signature = llvm.LLVMFunctionType([llvm.LLVMPointerType()], i32, is_variadic=True)
            self._prepend(llvm.FuncOp("printf", signature))

    def add(self, fmt: str) -> str:
        """Add a global with a NUL-terminated text and return its name:

        ``printfFormat_N`` with the smallest free ``N``.
        """
        while (name := f"printfFormat_{self._number}") in self._taken:
            self._number += 1
        self._taken.add(name)
        t = llvm.LLVMArrayType(len(fmt.encode()) + 1, i8)
        self._prepend(llvm.GlobalOp(name, t, constant=True, value=StringAttr(fmt + "\0")))
        return name

    def _prepend(self, op: Operation) -> None:
        block = self._module.body.block
        if block.first_op is None:
            block.add_op(op)
        else:
            block.insert_op_before(op, block.first_op)
