"""Pointers, views and element access: the ops that give a layout an address.

``make_view(get_iter(%t), get_layout(%t))`` is ``%t``; slicing a tensor moves its iterator by the layout's value at the
fixed coordinates and keeps the layout of the free ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IntegerType, VectorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryAllocEffect, MemoryReadEffect, MemoryWriteEffect, Pure

from cute_dialect.algebra.int_tuple import depth, is_static, rank, tuple_add
from cute_dialect.algebra.layout import Layout, evaluate, size
from cute_dialect.algebra.leaf import AlgebraError, divisibility
from cute_dialect.algebra.swizzle import ComposedLayout
from cute_dialect.memory_types import (
    ConstrainedIntType,
    CoordTensor,
    CoordTensorType,
    MemRef,
    MemRefType,
    PtrType,
    TensorType,
    derived_alignment,
    element_bits,
    ptr,
)
from cute_dialect.ops.base import (
    CuteOp,
    Properties,
    parse_operand_list,
    payload_text,
    print_operand_list,
    tracked,
    wrap,
    Typed,
)
from cute_dialect.types import CoordType, IntTupleType, LayoutType, ComposedLayoutType, CuteType


def expect(attribute: Attribute, classes: type | tuple[type, ...], index: int, what: str) -> None:
    """Raise AlgebraError unless operand ``index`` has one of these type classes."""
    if not isinstance(attribute, classes):
        raise AlgebraError(f"operand #{index} must be {what}, got {attribute}")


def expect_operands(types: Sequence[Attribute], least: int, most: int | None = None) -> None:
    """Raise AlgebraError unless the number of operands lies in ``[least, most]``."""
    most = least if most is None else most
    if not least <= len(types) <= most:
        count = str(least) if least == most else f"{least} to {most}"
        raise AlgebraError(f"expected {count} operands, got {len(types)}")


def layout_type(layout: object) -> CuteType:
    """The type of a plain or composed layout."""
    return wrap(Typed("composed_layout" if isinstance(layout, ComposedLayout) else "layout", layout))


def layout_of(attribute: Attribute) -> Layout | ComposedLayout:
    """The payload of a layout type."""
    assert isinstance(attribute, LayoutType | ComposedLayoutType)
    assert isinstance(attribute.data, Layout | ComposedLayout)
    return attribute.data


class MemoryOp(CuteOp):
    """Base of the ops of this half; each says its inference over types."""

    operand_kinds: ClassVar[tuple[frozenset[str], ...]] = ()

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        raise NotImplementedError(cls.name)


def parse_result_form(cls: type[CuteOp], parser: Parser) -> Operation:
    """``op(%a, %b) : RESULT``: operand types are those of the (already defined) operands."""
    operands = parse_operand_list(parser)
    values: list[SSAValue] = []
    for o in operands:
        known = parser.ssa_values.get(o.operand_name)
        if known is None:
            parser.raise_error(f"{cls.name} needs %{o.operand_name} to be defined before it", o.span)
        if o.index >= len(known):
            parser.raise_error(f"%{o.operand_name} has {len(known)} values, got index {o.index}", o.span)
        values.append(known[o.index])
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    return cls.create(operands=values, result_types=[parser.parse_type()], attributes=attributes)


def print_result_form(op: Operation, printer: Printer) -> None:
    """The counterpart of :func:`parse_result_form`."""
    print_operand_list(printer, op.operands)
    if op.attributes:
        printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_attribute(op.results[0].type)


# ------------------------------------------------------------------------------------------------ the parts of a tensor


@irdl_op_definition
class GetIterOp(MemoryOp):
    """The iterator of a tensor: a pointer, or an int tuple for a coordinate tensor.

    Syntax: ``%it = cute.get_iter(%t) : T``

    Inference: ``!cute.memref<E, S, L>`` gives ``!cute.ptr<E, S>`` with the same alignment and swizzle.

    Example:
        %it = cute.get_iter(%t) : !cute.memref<f32, gmem, "(?,?):(?,1)">
    """

    name = "cute.get_iter"
    form = "inferred"
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
    """The type of a tensor's iterator."""
    if isinstance(tensor, MemRefType):
        return PtrType(tensor.data.ptr)
    assert isinstance(tensor, CoordTensorType)
    return IntTupleType(tensor.data.iter)


@irdl_op_definition
class GetLayoutOp(MemoryOp):
    """The layout of a tensor.

    Syntax: ``%l = cute.get_layout(%t) : T``

    Inference: the layout in the type, as ``!cute.layout`` or ``!cute.composed_layout``.

    Example:
        %l = cute.get_layout(%t) : !cute.memref<f32, gmem, "(?,?):(?,1)">
    """

    name = "cute.get_layout"
    form = "inferred"
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


@irdl_op_definition
class MakeViewOp(MemoryOp):
    """A tensor from an iterator and a layout; with the iterator alone the layout is ``1:0``.

    Syntax: ``%t = cute.make_view(%it, %layout) : T``

    Inference: a pointer gives a memref with its element, space, alignment and swizzle; an int tuple gives a coordinate
    tensor.  The written type may promise less.

    Example:
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
        super().__init__(operands=[iter, layout], result_types=inferred if result_type is None else [result_type])

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
        return [CoordTensorType(CoordTensor(it.data, layout))]

    parse = classmethod(parse_result_form)  # pyright: ignore
    print = print_result_form  # pyright: ignore


# -------------------------------------------------------------------------------------------------- iterator arithmetic


@irdl_op_definition
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


def offset_iter_type(it: Attribute, offset: object) -> Attribute:
    """The type of an iterator moved by an offset (payload).  Raises AlgebraError if they do not fit."""
    if isinstance(it, PtrType):
        if depth(offset) != 0:
            raise AlgebraError(f"expected a scalar offset for a pointer, got {payload_text(offset)}")
        p = it.data
        align = derived_alignment(p.alignment, offset, p.element)  # pyright: ignore[reportArgumentType]
        return PtrType(ptr(p.element, p.space, align, p.swizzle))
    assert isinstance(it, IntTupleType)
    return IntTupleType(tuple_add(tracked(it.data), tracked(offset)))


@irdl_op_definition
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
        from xdsl.utils.exceptions import VerifyException

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
        (operand,) = parse_operand_list(parser)
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


@irdl_op_definition
class AssumeOp(MemoryOp):
    """Promise a divisibility or an alignment; undefined behaviour if it does not hold.

    Syntax: ``%y = cute.assume(%x) : (T) -> T'``

    Inference: ``i32 -> !cute.i32<divby N>``, ``int_tuple<"?"> -> int_tuple<"?{div=N}">``, ``ptr<…> -> ptr<…, align<N>>``;
    the result must imply what is known of the operand.

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
        from xdsl.utils.exceptions import VerifyException

        if not assume_is_legal(self.value.type, self.result.type):
            raise VerifyException(
                f"'{self.name}' op expected a result type that says at least what the operand's says, "
                f"got {self.value.type} -> {self.result.type}"
            )


def assume_is_legal(source: Attribute, target: Attribute) -> bool:
    """Whether ``target`` is ``source`` with a stronger promise."""
    from cute_dialect.ops.base import type_weaker_or_equal

    if isinstance(target, ConstrainedIntType):
        if isinstance(source, ConstrainedIntType):
            return source.width == target.width and target.divisor % source.divisor == 0
        return isinstance(source, IntegerType) and source.width.data == target.width
    return type_weaker_or_equal(source, target)


# --------------------------------------------------------------------------------------------------------- element access


def element_at(tensor: Attribute, coord: object) -> Attribute:
    """The type of one element: the element type, or an int tuple for a coordinate tensor.  Raises AlgebraError."""
    from cute_dialect.algebra.int_tuple import weakly_congruent

    assert isinstance(tensor, TensorType)
    layout = tensor.layout
    shape = layout.outer.shape if isinstance(layout, ComposedLayout) else layout.shape
    if not weakly_congruent(coord, shape):
        raise AlgebraError(
            f"expected a coordinate weakly congruent to the shape {payload_text(shape)}, got {payload_text(coord)}"
        )
    if isinstance(tensor, MemRefType):
        return tensor.element
    assert isinstance(tensor, CoordTensorType)
    offset = evaluate(tracked(coord), tracked(layout))  # pyright: ignore[reportArgumentType]
    return IntTupleType(tuple_add(tracked(tensor.data.iter), offset))


@irdl_op_definition
class LoadOp(MemoryOp):
    """One element of a tensor; an int tuple for a coordinate tensor.

    Syntax: ``%x = cute.memref.load(%t, %c) : (T, !cute.coord<"…">) -> E``

    Inference: the element type of a memref; ``iter + layout(c)`` for a coordinate tensor.

    Example:
        %x = cute.memref.load(%t, %c) : (!cute.memref<f32, gmem, "(?,?):(?,1)">, !cute.coord<"(?,?)">) -> f32
    """

    name = "cute.memref.load"
    tensor = operand_def()
    coord = operand_def(CoordType)
    result = result_def()
    traits = traits_def(MemoryReadEffect())

    def __init__(self, tensor: SSAValue, coord: SSAValue):
        super().__init__(operands=[tensor, coord], result_types=self.infer_types([tensor.type, coord.type], {}))

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 2)
        expect(operand_types[0], TensorType, 0, "a tensor")
        expect(operand_types[1], CoordType, 1, "a !cute.coord")
        coord = operand_types[1]
        assert isinstance(coord, CoordType)
        return [element_at(operand_types[0], coord.data)]


@irdl_op_definition
class StoreOp(MemoryOp):
    """Write one element.  Coordinate tensors cannot be written.

    Syntax: ``cute.memref.store(%t, %c, %x) : (T, !cute.coord<"…">, E) -> ()``

    Example:
        cute.memref.store(%t, %c, %x) : (!cute.memref<f32, gmem, "(?,?):(?,1)">, !cute.coord<"(?,?)">, f32) -> ()
    """

    name = "cute.memref.store"
    tensor = operand_def(MemRefType)
    coord = operand_def(CoordType)
    value = operand_def()
    traits = traits_def(MemoryWriteEffect())

    def __init__(self, tensor: SSAValue, coord: SSAValue, value: SSAValue):
        super().__init__(operands=[tensor, coord, value])

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 3)
        expect(operand_types[0], MemRefType, 0, "a !cute.memref")
        expect(operand_types[1], CoordType, 1, "a !cute.coord")
        coord = operand_types[1]
        assert isinstance(coord, CoordType)
        element = element_at(operand_types[0], coord.data)
        if operand_types[2] != element:
            raise AlgebraError(f"operand #2 must be the element type {element}, got {operand_types[2]}")
        return []

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        return parse_no_result(cls, parser)

    def print(self, printer: Printer) -> None:
        print_no_result(self, printer)


def parse_no_result(cls: type[CuteOp], parser: Parser) -> Operation:
    """``op(%a, %b) : (T, T) -> ()``"""
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
    """The counterpart of :func:`parse_no_result`."""
    print_operand_list(printer, op.operands)
    if op.attributes:
        printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    with printer.in_parens():
        printer.print_list(op.operand_types, printer.print_attribute)
    printer.print_string(" -> ()")


def fragment_vector(tensor: Attribute) -> VectorType:
    """``vector<size x E>`` of a static memref.  Raises AlgebraError for others."""
    if not isinstance(tensor, MemRefType):
        raise AlgebraError(f"expected a !cute.memref, got {tensor}")
    layout = tensor.layout
    shape = layout.outer.shape if isinstance(layout, ComposedLayout) else layout.shape
    n = size(shape)
    if not isinstance(n, int):
        raise AlgebraError(f"expected a static shape, got {payload_text(shape)}")
    return VectorType(tensor.element, [n])


@irdl_op_definition
class LoadVecOp(MemoryOp):
    """All elements of a tensor with static shape, in colexicographic order of its coordinates.

    Syntax: ``%v = cute.memref.load_vec %t : T``

    Inference: ``vector<size x E>``.

    Example:
        %v = cute.memref.load_vec %t : !cute.memref<f32, rmem, "(4,4):(1,4)">
    """

    name = "cute.memref.load_vec"
    tensor = operand_def(MemRefType)
    result = result_def(VectorType)
    traits = traits_def(MemoryReadEffect())

    def __init__(self, tensor: SSAValue):
        super().__init__(operands=[tensor], result_types=[fragment_vector(tensor.type)])

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 1)
        return [fragment_vector(operand_types[0])]

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        operand = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        at = parser.pos
        t = parser.parse_type()
        try:
            result = fragment_vector(t)
        except AlgebraError as e:
            parser.raise_error(f"'{cls.name}' op {e}", at, parser.pos)
        return cls.create(operands=[parser.resolve_operand(operand, t)], result_types=[result], attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.tensor)
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.tensor.type)


@irdl_op_definition
class StoreVecOp(MemoryOp):
    """Write all elements of a tensor with static shape, in colexicographic order of its coordinates.

    Syntax: ``cute.memref.store_vec %v, %t : T``

    Example:
        cute.memref.store_vec %v, %t : !cute.memref<f32, rmem, "(4,4):(1,4)">
    """

    name = "cute.memref.store_vec"
    value = operand_def(VectorType)
    tensor = operand_def(MemRefType)
    traits = traits_def(MemoryWriteEffect())

    def __init__(self, value: SSAValue, tensor: SSAValue):
        super().__init__(operands=[value, tensor])

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 2)
        expected = fragment_vector(operand_types[1])
        if operand_types[0] != expected:
            raise AlgebraError(f"operand #0 must be {expected}, got {operand_types[0]}")
        return []

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        tensor = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        at = parser.pos
        t = parser.parse_type()
        try:
            vector = fragment_vector(t)
        except AlgebraError as e:
            parser.raise_error(f"'{cls.name}' op {e}", at, parser.pos)
        operands = [parser.resolve_operand(value, vector), parser.resolve_operand(tensor, t)]
        return cls.create(operands=operands, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(", ")
        printer.print_ssa_value(self.tensor)
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.tensor.type)


# ------------------------------------------------------------------------------------------------------------- allocation


@irdl_op_definition
class AllocaOp(MemoryOp):
    """A register tensor, one per thread; the layout must be static.

    Syntax: ``%f = cute.memref.alloca() : T``

    Its elements become SSA values when every index is known at compile time (after loops with static bounds over it are
    unrolled).

    Example:
        %f = cute.memref.alloca() : !cute.memref<f32, rmem, align<32>, "((1,(4,4)),1,1):((0,(1,4)),0,0)">
    """

    name = "cute.memref.alloca"
    result = result_def(MemRefType)
    traits = traits_def(MemoryAllocEffect())

    def __init__(self, result_type: MemRefType):
        super().__init__(result_types=[result_type])

    def verify_(self) -> None:
        from xdsl.utils.exceptions import VerifyException

        t = self.result.type
        assert isinstance(t, MemRefType)
        if t.space != "rmem" or not is_static(t.layout):
            raise VerifyException(f"'{self.name}' op expected an rmem tensor with a static layout, got {t}")

    parse = classmethod(parse_result_form)  # pyright: ignore
    print = print_result_form  # pyright: ignore


@irdl_op_definition
class MakeFragmentLikeOp(MemoryOp):
    """A register tensor of the shape of a tensor, compact in the order of its strides.

    Syntax: ``%f = cute.make_fragment_like(%t) [E] : T -> T'``

    Inference: mode 0 compact first in the order of the source strides, the other modes compact after it in theirs;
    stride-0 modes stay 0.  The element type may be given, default that of the source.

    Example:
        %f = cute.make_fragment_like(%t) : !cute.memref<f32, gmem, "((1,(4,4)),1,1):((0,(1,?)),0,0)"> -> !cute.memref<f32, rmem, align<32>, "((1,(4,4)),1,1):((0,(1,4)),0,0)">
    """  # noqa: E501

    name = "cute.make_fragment_like"
    tensor = operand_def()
    result = result_def(MemRefType)
    traits = traits_def(MemoryAllocEffect())

    def __init__(self, tensor: SSAValue, element: Attribute | None = None):
        super().__init__(operands=[tensor], result_types=[fragment_like(tensor.type, element)])

    def verify_(self) -> None:
        from xdsl.utils.exceptions import VerifyException

        t = self.result.type
        assert isinstance(t, MemRefType)
        try:
            expected = fragment_like(self.tensor.type, t.element)
        except AlgebraError as e:
            raise VerifyException(f"'{self.name}' op {e}") from None
        if expected.layout != t.layout or t.space != "rmem":
            raise VerifyException(f"'{self.name}' op result #0: expected {expected}, got {t}")

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        (operand,) = parse_operand_list(parser)
        element = None
        if parser.parse_optional_punctuation("[") is not None:
            element = parser.parse_type()
            parser.parse_punctuation("]")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        source = parser.parse_type()
        parser.parse_punctuation("->")
        at = parser.pos
        target = parser.parse_type()
        if element is not None and not (isinstance(target, MemRefType) and target.element == element):
            parser.raise_error(f"expected a memref of {element}, got {target}", at, parser.pos)
        return cls.create(
            operands=[parser.resolve_operand(operand, source)], result_types=[target], attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        print_operand_list(printer, self.operands)
        source, target = self.tensor.type, self.result.type
        assert isinstance(target, MemRefType)
        if not (isinstance(source, MemRefType) and source.element == target.element):
            printer.print_string(" [")
            printer.print_attribute(target.element)
            printer.print_string("]")
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(source)
        printer.print_string(" -> ")
        printer.print_attribute(target)


def fragment_like(tensor: Attribute, element: Attribute | None = None) -> MemRefType:
    """The register tensor that ``make_fragment_like`` gives.  Raises AlgebraError for a dynamic shape."""
    from cute_dialect.algebra.layout import make_layout_like

    if not isinstance(tensor, TensorType):
        raise AlgebraError(f"expected a tensor, got {tensor}")
    if element is None:
        if not isinstance(tensor, MemRefType):
            raise AlgebraError("expected an element type for the fragment of a coordinate tensor")
        element = tensor.element
    layout = tensor.layout
    plain = layout.outer if isinstance(layout, ComposedLayout) else layout
    if not is_static(plain.shape):
        raise AlgebraError(f"expected a static shape, got {payload_text(plain.shape)}")
    result = compact_like(plain, make_layout_like)
    return rmem_type(element, result)


def compact_like(layout: Layout, like: object) -> Layout:
    """Mode 0 compact in the order of its strides, then the others compact after it in theirs; stride 0 stays 0."""
    from cute_dialect.algebra.layout import cosize

    assert callable(like)
    layout = Layout(layout.shape, _integer_order(layout.stride))
    if not isinstance(layout.shape, tuple) or rank(layout.shape) < 2:
        return like(layout)
    shape, stride = layout.shape, layout.stride
    assert isinstance(stride, tuple)
    first: Layout = like(Layout(shape[0], stride[0]))
    rest: Layout = like(Layout(shape[1:], stride[1:]))
    step = cosize(first)
    return Layout((first.shape, *_modes(rest.shape)), (first.stride, *_scaled(rest.stride, step)))


def _modes(shape: object) -> tuple[object, ...]:
    return shape if isinstance(shape, tuple) else (shape,)


def _scaled(stride: object, by: object) -> tuple[object, ...]:
    from cute_dialect.algebra.int_tuple import map_leaves
    from cute_dialect.algebra.leaf import mul

    return _modes(map_leaves(lambda d: mul(d, by), stride))  # pyright: ignore


def _integer_order(stride: object) -> object:
    """Basis strides as integers that sort like them: the innermost mode of the tensor varies fastest in memory."""
    from cute_dialect.algebra.int_tuple import Basis, leaves, map_leaves

    found = [x for x in leaves(stride) if isinstance(x, Basis)]
    if not found:
        return stride
    order = sorted({(tuple(-i for i in b.path), b.value) for b in found}, key=repr)
    rank_of = {key: i + 1 for i, key in enumerate(order)}
    return map_leaves(lambda x: rank_of[(tuple(-i for i in x.path), x.value)] if isinstance(x, Basis) else x, stride)


def rmem_type(element: Attribute, layout: Layout) -> MemRefType:
    """An rmem tensor type; alignment ``min(32, next power of two of its bytes)``."""
    from cute_dialect.algebra.layout import cosize

    n = cosize(layout)
    assert isinstance(n, int)
    n_bytes = max(1, n * element_bits(element) // 8)
    align = min(32, 1 << (n_bytes - 1).bit_length())
    return MemRefType(MemRef(ptr(element, "rmem", align), layout))


OPS: list[type[Operation]] = [
    GetIterOp,
    GetLayoutOp,
    MakeViewOp,
    AddOffsetOp,
    RecastIterOp,
    AssumeOp,
    LoadOp,
    StoreOp,
    LoadVecOp,
    StoreVecOp,
    AllocaOp,
    MakeFragmentLikeOp,
]
