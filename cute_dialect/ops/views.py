"""The parts of tensors and the arithmetic of iterators.

``make_view(get_iter(%t), get_layout(%t))`` is ``%t``; slicing a tensor moves its iterator by the layout's value at the
fixed coordinates and keeps the layout of the free ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, cast

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.arithmetic import tuple_add
from cute_dialect.algebra.leaf import AlgebraError, Dyn
from cute_dialect.algebra.values import AnyLayout, ComposedLayout, IntTuple, Layout, Payload
from cute_dialect.ir.editing import fill_op
from cute_dialect.memory_types import (
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
from cute_dialect.ops.asm import defined_type, parse_one_operand, parse_operand_list, print_operand_list
from cute_dialect.ops.base import CuteOp, cute_op, plural
from cute_dialect.ops.typed_values import Properties, Typed, payload_text, tracked, type_weaker_or_equal, wrap
from cute_dialect.types import ComposedLayoutType, CuteType, IntTupleType, LayoutType


def expect(attribute: Attribute, classes: type | tuple[type, ...], index: int, what: str) -> None:
    """Raise AlgebraError unless operand ``index`` has one of these type classes."""
    if not isinstance(attribute, classes):
        raise AlgebraError(f"operand #{index} must be {what}, got {attribute}")


def expect_operands(types: Sequence[Attribute], least: int, most: int | None = None) -> None:
    """Raise AlgebraError unless the number of operands lies in ``[least, most]``."""
    most = least if most is None else most
    if not least <= len(types) <= most:
        count = plural(least, "operand") if least == most else f"{least} to {most} operands"
        raise AlgebraError(f"expected {count}, got {len(types)}")


def layout_type(layout: AnyLayout) -> CuteType:
    """Build the type of a plain or composed layout."""
    return wrap(Typed("composed_layout" if isinstance(layout, ComposedLayout) else "layout", layout))


def layout_of(attribute: Attribute) -> AnyLayout:
    """Read the payload of a layout type."""
    assert isinstance(attribute, LayoutType | ComposedLayoutType)
    assert isinstance(attribute.data, Layout | ComposedLayout)
    return attribute.data


class MemoryOp(CuteOp):
    """Base of the ops of this half; each says its inference over types."""

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        raise NotImplementedError(cls.name)


def parse_result_form(cls: type[CuteOp], parser: Parser) -> Operation:
    """Parse ``op(%a, %b) : RESULT``: operand types are those of the (already defined) operands."""
    values = [parser.resolve_operand(o, defined_type(parser, o)) for o in parse_operand_list(parser)]
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    return cls.create(operands=values, result_types=[parser.parse_type()], attributes=attributes)


def print_result_form(op: Operation, printer: Printer) -> None:
    """Print an op as :func:`parse_result_form` reads it."""
    print_operand_list(printer, op.operands)
    if op.attributes:
        printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_attribute(op.results[0].type)


def parse_no_result(cls: type[CuteOp], parser: Parser) -> Operation:
    """Parse ``op(%a, %b) : (T, T) -> ()``."""
    operands = parse_operand_list(parser)
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    at = parser.pos
    types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    parser.parse_punctuation("->")
    parser.parse_punctuation("(")
    parser.parse_punctuation(")")
    return cls.create(operands=parser.resolve_operands(operands, types, at), attributes=attributes)


def print_no_result(op: Operation, printer: Printer) -> None:
    """Print an op as :func:`parse_no_result` reads it."""
    print_operand_list(printer, op.operands)
    if op.attributes:
        printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    with printer.in_parens():
        printer.print_list(op.operand_types, printer.print_attribute)
    printer.print_string(" -> ()")


class InstructionOp(MemoryOp):
    """``op(%a, …) {property = …} : (T, …) -> ()``: properties stand in the attribute dictionary."""

    WRITES: ClassVar[Literal["all", "first", "none", "struct", "tied"]] = "all"
    """Which operands in registers it writes: any, the first alone, none, the first as one struct of registers; "tied":
    none, but their registers pass through it."""
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
    """The iterator of a tensor: a pointer, or an int tuple for a coordinate tensor.

    Syntax: ``%it = cute.get_iter(%t) : T``

    Inference: ``!cute.memref<E, S, L>`` gives ``!cute.ptr<E, S>`` with the same alignment and swizzle.

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
    """The layout of a tensor.

    Syntax: ``%l = cute.get_layout(%t) : T``

    Inference: the layout in the type, as ``!cute.layout`` or ``!cute.composed_layout``.

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
class MakeViewOp(MemoryOp):
    """A tensor from an iterator and a layout; with the iterator alone the layout is ``1:0``.

    Syntax: ``%t = cute.make_view(%it, %layout) : T``

    Inference: a pointer gives a memref with its element, space, alignment and swizzle; an int tuple gives a coordinate
    tensor.  The written type may promise less.

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
        expect(it, (PtrType, IntTupleType), 0, "a !cute.ptr or an !cute.int_tuple")
        if len(operand_types) == 2:
            expect(operand_types[1], (LayoutType, ComposedLayoutType), 1, "a layout")
            layout = layout_of(operand_types[1])
        else:
            layout = Layout(1, 0)
        if isinstance(it, PtrType):
            return [MemRefType(MemRef(it.data, layout))]
        assert isinstance(it, IntTupleType)
        return [CoordTensorType(CoordTensor(cast("IntTuple", it.data), layout))]

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        return parse_result_form(cls, parser)

    def print(self, printer: Printer) -> None:
        print_result_form(self, printer)


# -------------------------------------------------------------------------------------------------- iterator arithmetic


@cute_op
class AddOffsetOp(MemoryOp):
    """An iterator moved by an offset: elements for a pointer, a tuple sum for a coordinate iterator.

    Syntax: ``%q = cute.add_offset(%p, %o) : (P, !cute.int_tuple<"…">) -> P``

    Inference: the alignment of the result is the gcd of the pointer's and of the offset's divisibility in bytes,
    rounded down to a power of two.

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
        expect(it, (PtrType, IntTupleType), 0, "a !cute.ptr or an !cute.int_tuple")
        expect(offset, IntTupleType, 1, "an !cute.int_tuple")
        assert isinstance(offset, IntTupleType)
        return [offset_iter_type(it, offset.data)]


def offset_iter_type(it: Attribute, offset: Payload) -> Attribute:
    """Build the type of an iterator moved by an offset (payload).  Raises AlgebraError if they do not fit."""
    if isinstance(it, PtrType):
        if not isinstance(offset, int | Dyn):
            raise AlgebraError(f"expected a scalar offset for a pointer, got {payload_text(offset)}")
        p = it.data
        align = derived_alignment(p.alignment, offset, p.element)
        return PtrType(ptr(p.element, p.space, align, p.swizzle))
    assert isinstance(it, IntTupleType)
    return IntTupleType(tuple_add(cast("IntTuple", tracked(it.data)), cast("IntTuple", tracked(offset))))


@cute_op
class RecastIterOp(MemoryOp):
    """A pointer reinterpreted to another element type; address, alignment and (byte) swizzle stay.

    Syntax: ``%q = cute.recast_iter(%p) : P to Q``

    Inference: the result's alignment must not exceed what is known of the operand.

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
                f"'{self.name}' op expected the same space and swizzle and at most the operand's alignment of "
                f"{a.alignment} bytes, got {source} to {target}"
            )

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
        printer.print_attribute(self.iter.type)
        printer.print_string(" to ")
        printer.print_attribute(self.result.type)


@cute_op
class AssumeOp(MemoryOp):
    """Promise a divisibility or an alignment; undefined behaviour if it does not hold.

    Syntax: ``%y = cute.assume(%x) : (T) -> T'``

    Inference: ``i32 -> !cute.i32<divby N>``, ``int_tuple<"?"> -> int_tuple<"?{div=N}">``,
    ``ptr<…> -> ptr<…, align<N>>``; the result must imply what is known of the operand.

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
                f"'{self.name}' op expected a result type that says at least what the operand's says, "
                f"got {self.value.type} -> {self.result.type}"
            )


def assume_is_legal(source: Attribute, target: Attribute) -> bool:
    """Tell whether ``target`` is ``source`` with a stronger promise."""
    if isinstance(target, ConstrainedIntType):
        if isinstance(source, ConstrainedIntType):
            return source.width == target.width and target.divisor % source.divisor == 0
        return integer_width(source) == target.width
    return type_weaker_or_equal(source, target)


OPS: list[type[Operation]] = [GetIterOp, GetLayoutOp, MakeViewOp, AddOffsetOp, RecastIterOp, AssumeOp]
