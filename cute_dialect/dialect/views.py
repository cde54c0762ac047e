"""Iterators and layouts of tensors, and arithmetic on iterators.

A tensor is an iterator with a layout: ``make_view(get_iter(%t), get_layout(%t))`` is ``%t``. Slicing a tensor advances
its iterator by the value of the layout at the fixed coordinates, and keeps the layout of the free ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, cast

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, result_def, traits_def
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.arithmetic import tuple_add
from cute_dialect.algebra.leaf import AlgebraError, Dyn
from cute_dialect.algebra.values import AnyLayout, ComposedLayout, IntTuple, Layout, Payload
from cute_dialect.dialect.asm import defined_type, parse_one_operand, parse_operand_list, print_operand_list
from cute_dialect.dialect.base import CuteOp, cute_op, ops_of, plural
from cute_dialect.dialect.memory_types import (
    ConstrainedIntType,
    CoordTensor,
    CoordTensorType,
    MemRef,
    MemRefType,
    PtrType,
    TensorType,
    derived_alignment,
    integer_width,
    ptr,
)
from cute_dialect.dialect.typed_values import Properties, Typed, payload_text, tracked, type_weaker_or_equal, wrap
from cute_dialect.dialect.types import ComposedLayoutType, CuteType, IntTupleType, LayoutType
from cute_dialect.ir.editing import fill_op


def expect(attribute: Attribute, classes: type | tuple[type, ...], index: int, what: str) -> None:
    """Raise AlgebraError unless operand ``index`` is of one of these type classes."""
    if not isinstance(attribute, classes):
        raise AlgebraError(f"operand #{index} must be {what}, got {attribute}")


def expect_operands(types: Sequence[Attribute], least: int, most: int | None = None) -> None:
    """Raise AlgebraError unless there are ``least`` to ``most`` operands."""
    most = least if most is None else most
    if not least <= len(types) <= most:
        count = plural(least, "operand") if least == most else f"{least} to {most} operands"
        raise AlgebraError(f"expected {count}, got {len(types)}")


def layout_type(layout: AnyLayout) -> CuteType:
    """Return the type of a plain or composed layout."""
    return wrap(Typed("composed_layout" if isinstance(layout, ComposedLayout) else "layout", layout))


def layout_of(attribute: Attribute) -> AnyLayout:
    """Return the payload of a layout type."""
    assert isinstance(attribute, LayoutType | ComposedLayoutType)
    assert isinstance(attribute.data, Layout | ComposedLayout)
    return attribute.data


class MemoryOp(CuteOp):
    """Base of the ops on tensors and iterators. Subclasses implement ``infer_types`` on types, not payloads."""

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        raise NotImplementedError(cls.name)


def parse_result_form(cls: type[CuteOp], parser: Parser) -> Operation:
    """Parse ``op(%a, %b) : RESULT``. The operand types come from the definitions of the operands."""
    values = [parser.resolve_operand(o, defined_type(parser, o)) for o in parse_operand_list(parser)]
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    return cls.create(operands=values, result_types=[parser.parse_type()], attributes=attributes)


def print_result_form(op: Operation, printer: Printer) -> None:
    """Print an op in the format that :func:`parse_result_form` reads."""
    print_operand_list(printer, op.operands)
    if op.attributes:
        printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_attribute(op.results[0].type)


def parse_no_result(cls: type[CuteOp], parser: Parser) -> Operation:
    """Parse ``op(%a, %b) : (T, T) -> ()``."""
    return parse_operand_types(cls, parser, parse_operand_list(parser))


def parse_operand_types(cls: type[CuteOp], parser: Parser, operands: Sequence[UnresolvedOperand]) -> Operation:
    """Parse the attributes and ``: (T, T) -> ()`` after the operands of an op without results."""
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    at = parser.pos
    types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    parser.parse_punctuation("->")
    parser.parse_punctuation("(")
    parser.parse_punctuation(")")
    return cls.create(operands=parser.resolve_operands(operands, types, at), attributes=attributes)


def print_no_result(op: Operation, printer: Printer) -> None:
    """Print an op in the format that :func:`parse_no_result` reads."""
    print_operand_list(printer, op.operands)
    print_operand_types(op, printer)


def print_operand_types(op: Operation, printer: Printer) -> None:
    """Print what :func:`parse_operand_types` reads."""
    if op.attributes:
        printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    with printer.in_parens():
        printer.print_list(op.operand_types, printer.print_attribute)
    printer.print_string(" -> ()")


class ResultFormOp(MemoryOp):
    """Base of the ops that are written ``op(%a, %b) : RESULT``."""

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        return parse_result_form(cls, parser)

    def print(self, printer: Printer) -> None:
        print_result_form(self, printer)


class RecastOp(MemoryOp):
    """Base of the ops that are written ``op(%a) : T to RESULT``."""

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        operand = parse_one_operand(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        source = parser.parse_type()
        parser.parse_keyword("to")
        target = parser.parse_type()
        return cls.create(
            operands=[parser.resolve_operand(operand, source)], result_types=[target], attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        print_operand_list(printer, self.operands)
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operands[0].type)
        printer.print_string(" to ")
        printer.print_attribute(self.results[0].type)


class EffectOp(MemoryOp):
    """Base of the ops without results, written ``op(%a, %b) : (T, T) -> ()``."""

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        return parse_no_result(cls, parser)

    def print(self, printer: Printer) -> None:
        print_no_result(self, printer)


class InstructionOp(MemoryOp):
    """Op of the form ``op(%a, …) {property = …} : (T, …) -> ()``; properties are in the attribute dictionary."""

    WRITES: ClassVar[Literal["all", "first", "none", "struct", "tied"]] = "all"
    """Register operands that the op writes:

    * "all": each operand;
    * "first": only the first;
    * "none": none;
    * "struct": the first, as one struct of registers;
    * "tied": none, but the registers of the operands pass through the instruction.
    """
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        return []

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        op = parse_no_result(cls, parser)
        for name in cls.get_irdl_definition().properties:
            if name in op.attributes:
                op.properties[name] = op.attributes.pop(name)
        return op

    def print(self, printer: Printer) -> None:
        print_operand_list(printer, self.operands)
        if self.properties or self.attributes:
            printer.print_op_attributes({**self.properties, **self.attributes})
        printer.print_string(" : ")
        with printer.in_parens():
            printer.print_list(self.operand_types, printer.print_attribute)
        printer.print_string(" -> ()")


# ------------------------------------------------------------------------------------------------ the parts of a tensor


@cute_op
class GetIterOp(MemoryOp):
    """Returns the iterator of a tensor: a pointer, or an int tuple for a coordinate tensor.

    Syntax: ``%it = cute.get_iter(%t) : T``

    Inference:
        ``!cute.memref<E, S, L>`` gives ``!cute.ptr<E, S>`` with the same alignment and swizzle.

    Example:
        %it = cute.get_iter(%t) : !cute.memref<f32, gmem, "(?,?):(?,1)">
    """

    name = "cute.get_iter"
    FORM = "inferred"
    tensor = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, tensor: SSAValue):
        super().__init__(operands=[tensor], result_types=self.infer_types([tensor.type], {}))

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 1)
        t = operand_types[0]
        expect(t, TensorType, 0, "a tensor")
        return [iter_type(t)]


def iter_type(tensor: Attribute) -> Attribute:
    """Return the type of a tensor's iterator."""
    if isinstance(tensor, MemRefType):
        return PtrType(tensor.data.ptr)
    assert isinstance(tensor, CoordTensorType)
    return IntTupleType(tensor.data.iter)


@cute_op
class GetLayoutOp(MemoryOp):
    """Returns the layout of a tensor.

    Syntax: ``%l = cute.get_layout(%t) : T``

    Inference:
        The layout in the tensor type, as ``!cute.layout`` or ``!cute.composed_layout``.

    Example:
        %l = cute.get_layout(%t) : !cute.memref<f32, gmem, "(?,?):(?,1)">
    """

    name = "cute.get_layout"
    FORM = "inferred"
    tensor = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, tensor: SSAValue):
        super().__init__(operands=[tensor], result_types=self.infer_types([tensor.type], {}))

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 1)
        t = operand_types[0]
        expect(t, TensorType, 0, "a tensor")
        assert isinstance(t, TensorType)
        return [layout_type(t.layout)]


@cute_op
class MakeViewOp(ResultFormOp):
    """Builds a tensor from an iterator and a layout. Without a layout, the tensor has the layout ``1:0``.

    Syntax: ``%t = cute.make_view(%it, %layout) : T``

    Inference:
        A pointer gives a memref with the pointer's element type, memory space, alignment and swizzle. An int tuple
        gives a coordinate tensor. The written type may have a smaller alignment or weaker divisibility.

    Example:
        %it = cute.get_iter(%a) : !cute.memref<f32, gmem, "(?,?):(?,1)">
        %l = cute.get_layout(%a) : !cute.memref<f32, gmem, "(?,?):(?,1)">
        %t = cute.make_view(%it, %l) : !cute.memref<f32, gmem, "(?,?):(?,1)">
    """

    name = "cute.make_view"
    iter = operand_def()
    layout = opt_operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, iter: SSAValue, layout: SSAValue | None = None, result_type: Attribute | None = None):
        operands = [iter] if layout is None else [iter, layout]
        inferred = self.infer_types([o.type for o in operands], {})
        fill_op(self, operands, inferred if result_type is None else [result_type])

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 1, 2)
        it = operand_types[0]
        expect(it, (PtrType, IntTupleType), 0, "a pointer (!cute.ptr) or a tuple (!cute.int_tuple)")
        if len(operand_types) == 2:
            expect(operand_types[1], (LayoutType, ComposedLayoutType), 1, "a layout")
            layout = layout_of(operand_types[1])
        else:
            layout = Layout(1, 0)
        if isinstance(it, PtrType):
            return [MemRefType(MemRef(it.data, layout))]
        assert isinstance(it, IntTupleType)
        return [CoordTensorType(CoordTensor(cast("IntTuple", it.data), layout))]


# -------------------------------------------------------------------------------------------------- iterator arithmetic


@cute_op
class AddOffsetOp(MemoryOp):
    """Advances an iterator by an offset: elements for a pointer, a tuple sum for a coordinate iterator.

    Syntax: ``%q = cute.add_offset(%p, %o) : (P, !cute.int_tuple<"…">) -> P``

    Inference:
        The alignment of the result is the largest power of two, in bytes, that divides both the alignment of the
        pointer and the offset.

    Example:
        %q = cute.add_offset(%p, %o) : (!cute.ptr<f32, gmem, align<16>>, !cute.int_tuple<"?{div=2}">) -> !cute.ptr<f32, gmem, align<8>>
    """  # noqa: E501

    name = "cute.add_offset"
    iter = operand_def()
    offset = operand_def(IntTupleType)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, iter: SSAValue, offset: SSAValue, result_type: Attribute | None = None):
        inferred = [result_type] if result_type is not None else self.infer_types([iter.type, offset.type], {})
        super().__init__(operands=[iter, offset], result_types=inferred)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 2)
        it, offset = operand_types
        expect(it, (PtrType, IntTupleType), 0, "a pointer (!cute.ptr) or a tuple (!cute.int_tuple)")
        expect(offset, IntTupleType, 1, "a tuple (!cute.int_tuple)")
        assert isinstance(offset, IntTupleType)
        return [offset_iter_type(it, offset.data)]


def offset_iter_type(it: Attribute, offset: Payload) -> Attribute:
    """Return the type of an iterator advanced by an offset (a payload). Raises AlgebraError if they do not fit."""
    if isinstance(it, PtrType):
        if not isinstance(offset, int | Dyn):
            raise AlgebraError(f"expected a scalar offset for a pointer, got {payload_text(offset)}")
        p = it.data
        align = derived_alignment(p.alignment, offset, p.element)
        return PtrType(ptr(p.element, p.space, align, p.swizzle))
    assert isinstance(it, IntTupleType)
    return IntTupleType(tuple_add(cast("IntTuple", tracked(it.data)), cast("IntTuple", tracked(offset))))


@cute_op
class RecastIterOp(RecastOp):
    """Reinterprets a pointer as a pointer to another element type. Address, alignment and swizzle (in bytes) are kept.

    Syntax: ``%q = cute.recast_iter(%p) : P to Q``

    Inference:
        The written result type. Its alignment must not exceed that of the operand.

    Example:
        %q = cute.recast_iter(%p) : !cute.ptr<f32, gmem, align<16>> to !cute.ptr<i32, gmem, align<16>>
    """

    name = "cute.recast_iter"
    iter = operand_def(PtrType)
    result = result_def(PtrType)
    traits = traits_def(Pure())

    def __init__(self, iter: SSAValue, result_type: PtrType):
        super().__init__(operands=[iter], result_types=[result_type])

    def verify_(self) -> None:
        source, target = self.iter.type, self.result.type
        assert isinstance(source, PtrType) and isinstance(target, PtrType)
        a, b = source.data, target.data
        if a.space != b.space or a.swizzle != b.swizzle or a.alignment % b.alignment:
            raise VerifyException(
                f"'{self.name}' op cannot change the memory space or the swizzle of a pointer, or raise its alignment "
                f"of {a.alignment} bytes: {source} to {target}"
            )


@cute_op
class AssumeOp(MemoryOp):
    """Promises a divisibility or an alignment. The behaviour is undefined if the promise does not hold.

    Syntax: ``%y = cute.assume(%x) : (T) -> T'``

    Inference:
        ``i32 -> !cute.i32<divby N>``, ``int_tuple<"?"> -> int_tuple<"?{div=N}">``, ``ptr<…> -> ptr<…, align<N>>``. The
        result type must imply the operand type.

    Example:
        %y = cute.assume(%x) : (i32) -> !cute.i32<divby 4>
    """

    name = "cute.assume"
    value = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, value: SSAValue, result_type: Attribute):
        super().__init__(operands=[value], result_types=[result_type])

    def verify_(self) -> None:
        if not assume_is_legal(self.value.type, self.result.type):
            raise VerifyException(
                f"'{self.name}' op expected a result type at least as strong as the operand type, "
                f"got {self.value.type} -> {self.result.type}"
            )


def assume_is_legal(source: Attribute, target: Attribute) -> bool:
    """Return True if ``target`` is ``source`` with a stronger divisibility or alignment."""
    if isinstance(target, ConstrainedIntType):
        if isinstance(source, ConstrainedIntType):
            return source.width == target.width and target.divisor % source.divisor == 0
        return integer_width(source) == target.width
    return type_weaker_or_equal(source, target)


OPS = ops_of(__name__)
