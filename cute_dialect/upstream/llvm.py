"""The llvm dialect of upstream MLIR. Functions, globals and calls are in `llvm_func.py`.

Ops that the passes use have typed constructors. The others are accessed by name (`llvm.FpextOp`) and built with the
constructor of `TableOp`.
"""

from collections.abc import Sequence
from typing import ClassVar, Self, cast

from xdsl.dialects.builtin import IntegerAttr, IntegerType, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from cute_dialect.upstream.attrs import attr, attrs
from cute_dialect.upstream.directives import GEP_DYNAMIC
from cute_dialect.upstream.infer import container_element
from cute_dialect.upstream.lazy import TableDialect
from cute_dialect.upstream.llvm_func import CallIntrinsicOp, CallOp, FuncOp, GlobalOp
from cute_dialect.upstream.llvm_types import (
    TYPES,
    LLVMArrayType,
    LLVMFunctionType,
    LLVMPointerType,
    LLVMStructType,
    LLVMVoidType,
)
from cute_dialect.upstream.op import FormatOp, Operand, TableOp, make_ops
from cute_dialect.upstream.spec import enum_cases
from cute_dialect.upstream.typed import numbers

_I64 = IntegerType(64)
_I32 = IntegerType(32)


class CmpOp(TableOp):
    """Base of `llvm.icmp` and `llvm.fcmp`: `llvm.icmp "eq" %a, %b : i32`."""

    enum: ClassVar[str]

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation, predicate: str) -> None:
        super().__init__(lhs, rhs, predicate=IntegerAttr(self.cases()[predicate], _I64))

    @classmethod
    def cases(cls) -> dict[str, int]:
        """Return the predicates with their numbers."""
        return enum_cases("llvm", cls.enum)

    @property
    def predicate_word(self) -> str:
        """Predicate in upstream's spelling: `slt`, `oeq`."""
        number = cast("IntegerAttr", self.properties["predicate"]).value.data
        return next(word for word, value in self.cases().items() if value == number)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        pos = parser.pos
        word = parser.parse_optional_str_literal() or parser.parse_identifier()
        if word not in cls.cases():
            parser.raise_error(f"expected one of {', '.join(cls.cases())}, got '{word}'", pos)
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        rhs = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        operands = [parser.resolve_operand(lhs, type_), parser.resolve_operand(rhs, type_)]
        made = cls(operands[0], operands[1], word)
        return cls.create(
            operands=operands, result_types=made.result_types, properties=made.properties, attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f' "{self.predicate_word}" ')
        printer.print_list(self.operands, printer.print_ssa_value)
        shown = {k: v for k, v in self.properties.items() if k != "predicate" and v != attr("llvm.fastmath", "none")}
        printer.print_op_attributes(shown | self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operands[0].type)


class ICmpOp(CmpOp):
    """`llvm.icmp "slt" %a, %b : i32`"""

    name = "llvm.icmp"
    enum = "ICmpPredicate"


class FCmpOp(CmpOp):
    """`llvm.fcmp "olt" %a, %b : f32`"""

    name = "llvm.fcmp"
    enum = "FCmpPredicate"


class AllocaOp(TableOp):
    """`llvm.alloca %n x i32 {alignment = 8 : i64} : (i64) -> !llvm.ptr`"""

    name = "llvm.alloca"

    def __init__(
        self, size: SSAValue | Operation, elem_type: Attribute, *, alignment: int | None = None, addr_space: int = 0
    ) -> None:
        super().__init__(size, elem_type=elem_type, alignment=alignment, result_types=[LLVMPointerType(addr_space)])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        inalloca = parser.parse_optional_keyword("inalloca")
        size = parser.parse_unresolved_operand()
        parser.parse_keyword("x")
        element = parser.parse_type()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        pos = parser.pos
        signature = parser.parse_function_type()
        operands = parser.resolve_operands([size], signature.inputs.data, pos)
        properties: dict[str, Attribute] = {"elem_type": element}
        if inalloca is not None:
            properties["inalloca"] = cls.spec().attrs["inalloca"].convert(True)
        return cls.create(
            operands=operands, result_types=signature.outputs.data, properties=properties, attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" inalloca " if "inalloca" in self.properties else " ")
        printer.print_ssa_value(self.operands[0])
        printer.print_string(" x ")
        printer.print_attribute(self.properties["elem_type"])
        shown = {k: v for k, v in self.properties.items() if k not in ("elem_type", "inalloca")}
        printer.print_op_attributes(shown | self.attributes)
        printer.print_string(" : ")
        printer.print_operation_type(self)


class LoadOp(FormatOp):
    """`llvm.load %p {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>`"""

    name = "llvm.load"

    def __init__(
        self,
        addr: SSAValue | Operation,
        type: Attribute,
        *,
        alignment: int | None = None,
        volatile: bool = False,
        nontemporal: bool = False,
        invariant: bool = False,
        ordering: str | None = None,
        syncscope: str | None = None,
    ) -> None:
        super().__init__(
            addr, result_types=[type], alignment=alignment, volatile_=volatile, nontemporal=nontemporal,
            invariant=invariant, ordering=ordering, syncscope=syncscope,
        )  # fmt: skip


class StoreOp(FormatOp):
    """`llvm.store %v, %p {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>`"""

    name = "llvm.store"

    def __init__(
        self,
        value: SSAValue | Operation,
        addr: SSAValue | Operation,
        *,
        alignment: int | None = None,
        volatile: bool = False,
        nontemporal: bool = False,
        ordering: str | None = None,
        syncscope: str | None = None,
    ) -> None:
        super().__init__(
            value, addr, alignment=alignment, volatile_=volatile, nontemporal=nontemporal, ordering=ordering,
            syncscope=syncscope,
        )  # fmt: skip


class GEPOp(FormatOp):
    """`llvm.getelementptr %p[%i, 2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32`: the address of an element.

    `indices` are numbers or values. The first index is in units of `elem_type`; the others select elements in it.
    """

    name = "llvm.getelementptr"

    def __init__(
        self,
        base: SSAValue | Operation,
        indices: Sequence[int | SSAValue | Operation],
        elem_type: Attribute,
        *,
        inbounds: bool = False,
        result_type: Attribute | None = None,
    ) -> None:
        dynamic = [i for i in indices if not isinstance(i, int)]
        raw = [i if isinstance(i, int) else GEP_DYNAMIC for i in indices]
        super().__init__(
            base, dynamic, rawConstantIndices=raw, elem_type=elem_type, noWrapFlags=3 if inbounds else None,
            result_types=[result_type or SSAValue.get(base).type],
        )  # fmt: skip


class ExtractValueOp(FormatOp):
    """`llvm.extractvalue %s[0, 1] : !llvm.struct<…>`"""

    name = "llvm.extractvalue"

    def __init__(self, container: SSAValue | Operation, position: Sequence[int]) -> None:
        super().__init__(container, position=position)

    def verify_(self) -> None:
        super().verify_()
        _check_position(self, self.operands[0].type, self.results[0].type)


class InsertValueOp(FormatOp):
    """`llvm.insertvalue %v, %s[0, 1] : !llvm.struct<…>`"""

    name = "llvm.insertvalue"

    def __init__(self, container: SSAValue | Operation, value: SSAValue | Operation, position: Sequence[int]) -> None:
        super().__init__(container, value, position=position)

    def verify_(self) -> None:
        super().verify_()
        _check_position(self, self.operands[0].type, self.operands[1].type)


def _check_position(op: TableOp, container: Attribute, element: Attribute) -> None:
    from xdsl.utils.exceptions import VerifyException

    position = numbers(op.properties["position"])
    inner = container_element(container, position)
    if inner != element:
        raise VerifyException(f"element {list(position)} of {container} is {inner}, got {element}")


class _ValueOp(FormatOp):
    """Base of the ops that return a value of their result type: poison, undef, zero."""

    def __init__(self, type: Attribute) -> None:
        super().__init__(result_types=[type])


class PoisonOp(_ValueOp):
    """`llvm.mlir.poison : T`"""

    name = "llvm.mlir.poison"


class UndefOp(_ValueOp):
    """`llvm.mlir.undef : T`"""

    name = "llvm.mlir.undef"


class ZeroOp(_ValueOp):
    """`llvm.mlir.zero : T`: all bits are zero."""

    name = "llvm.mlir.zero"


class ConstantOp(FormatOp):
    """`llvm.mlir.constant(42 : i32) : i32`"""

    name = "llvm.mlir.constant"

    def __init__(self, value: Attribute | int, type: Attribute) -> None:
        if isinstance(value, int):
            value = IntegerAttr(value, cast("IntegerType", type))
        super().__init__(value=value, result_types=[type])


class AddressOfOp(FormatOp):
    """`llvm.mlir.addressof @name : !llvm.ptr<3>`"""

    name = "llvm.mlir.addressof"

    def __init__(self, global_name: str | SymbolRefAttr, type: Attribute) -> None:
        super().__init__(global_name=global_name, result_types=[type])


class ReturnOp(FormatOp):
    """`llvm.return %v : T`"""

    name = "llvm.return"

    def __init__(self, value: SSAValue | Operation | None = None) -> None:
        super().__init__(value)


class InlineAsmOp(FormatOp):
    """`llvm.inline_asm has_side_effects "bar.sync 0;", "~{memory}" : () -> ()`"""

    name = "llvm.inline_asm"

    def __init__(
        self,
        asm_string: str,
        constraints: str,
        operands: Operand = (),
        result_type: Attribute | None = None,
        *,
        has_side_effects: bool = False,
        is_align_stack: bool = False,
    ) -> None:
        super().__init__(
            operands, asm_string=StringAttr(asm_string), constraints=StringAttr(constraints),
            has_side_effects=has_side_effects, is_align_stack=is_align_stack,
            asm_dialect=0, result_types=[] if result_type is None else [result_type],
        )  # fmt: skip


OWN = (
    ICmpOp, FCmpOp, AllocaOp, LoadOp, StoreOp, GEPOp,
    ExtractValueOp, InsertValueOp, PoisonOp, UndefOp, ZeroOp, ConstantOp,
    AddressOfOp, ReturnOp, InlineAsmOp, FuncOp, CallOp, CallIntrinsicOp, GlobalOp,
)  # fmt: skip
OPS = make_ops("llvm", OWN)
"""All ops of the dialect by name without prefix: `OPS["intr.fma"]`."""

LLVM = TableDialect("llvm", OPS, attrs("llvm"), TYPES)


def __getattr__(name: str) -> type[TableOp]:
    """Return the op class `name`, for example `llvm.AddrspacecastOp` or `llvm.IntrFmaOp`."""
    found = OPS.by_class(name)
    if found is not None:
        return found
    raise AttributeError(f"module 'llvm' has no op class '{name}'")


__all__ = [
    "LLVM", "OPS", "AddressOfOp", "AllocaOp", "CallIntrinsicOp",
    "CallOp", "ConstantOp", "ExtractValueOp", "FCmpOp", "FuncOp",
    "GEPOp", "GlobalOp", "ICmpOp", "InlineAsmOp",
    "InsertValueOp", "LLVMArrayType", "LLVMFunctionType", "LLVMPointerType",
    "LLVMStructType", "LLVMVoidType", "LoadOp", "PoisonOp",
    "ReturnOp", "StoreOp", "UndefOp", "ZeroOp",
]  # fmt: skip
