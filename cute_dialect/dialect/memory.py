"""Element access and register tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryAllocEffect, MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.arithmetic import tuple_add
from cute_dialect.algebra.evaluation import cosize, evaluate, size
from cute_dialect.algebra.layout import make_layout_like
from cute_dialect.algebra.leaf import AlgebraError, mul
from cute_dialect.algebra.trees import is_static, leaves, map_leaves, weakly_congruent
from cute_dialect.algebra.values import Basis, ComposedLayout, Coord, IntTuple, Layout, Stride
from cute_dialect.dialect import views
from cute_dialect.dialect.asm import parse_one_operand, print_operand_list
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.memory_types import (
    CoordTensorType,
    MemRef,
    MemRefType,
    TensorType,
    element_bits,
    ptr,
)
from cute_dialect.dialect.typed_values import Properties, payload_text, tracked
from cute_dialect.dialect.types import CoordType, IntTupleType
from cute_dialect.dialect.views import (
    EffectOp,
    MemoryOp,
    ResultFormOp,
    expect,
    expect_operands,
)
from cute_dialect.spaces import AddressSpace


def check_reach(tensor: MemRefType) -> None:
    """Raise AlgebraError for tensors in memory that threads cannot load from or store to."""
    space = tensor.space
    if not space.addressable:
        raise AlgebraError(
            f"expected a tensor that threads can load and store; only {space.accessed_by} access {space.words}, got "
            f"{tensor}"
        )


def element_at(tensor: Attribute, coord: Coord) -> Attribute:
    """Return the type of one element: the element type, or an int tuple for a coordinate tensor.

    Raises AlgebraError for a coordinate that does not fit.
    """
    assert isinstance(tensor, TensorType)
    layout = tensor.layout
    shape = layout.outer.shape if isinstance(layout, ComposedLayout) else layout.shape
    if not weakly_congruent(coord, shape):
        raise AlgebraError(
            f"expected a coordinate weakly congruent to the shape {payload_text(shape)}, got {payload_text(coord)}"
        )
    if isinstance(tensor, MemRefType):
        check_reach(tensor)
        return tensor.element
    assert isinstance(tensor, CoordTensorType)
    offset = evaluate(tracked(coord), tracked(layout))
    return IntTupleType(tuple_add(tracked(tensor.data.iter), offset))


@cute_op
class LoadOp(MemoryOp):
    """Loads one element of a tensor. For a coordinate tensor, returns the coordinate as an int tuple.

    Syntax: ``%x = cute.memref.load(%t, %c) : (T, !cute.coord<"…">) -> E``

    Inference:
        The element type of a memref; ``iter + layout(c)`` for a coordinate tensor.

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
        return [element_at(operand_types[0], cast("Coord", coord.data))]


@cute_op
class StoreOp(EffectOp):
    """Stores one element to a tensor. Coordinate tensors cannot be stored to.

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
        element = element_at(operand_types[0], cast("Coord", coord.data))
        if operand_types[2] != element:
            raise AlgebraError(f"operand #2 must be the element type {element}, got {operand_types[2]}")
        return []


def fragment_vector(tensor: Attribute) -> VectorType:
    """Return ``vector<size x E>`` for a memref of static shape. Raises AlgebraError for other types."""
    if not isinstance(tensor, MemRefType):
        raise AlgebraError(f"expected a !cute.memref, got {tensor}")
    check_reach(tensor)
    layout = tensor.layout
    shape = layout.outer.shape if isinstance(layout, ComposedLayout) else layout.shape
    n = size(shape)
    if not isinstance(n, int):
        raise AlgebraError(f"expected a static shape, got {payload_text(shape)}")
    return VectorType(tensor.element, [n])


def _parse_fragment(cls: type[MemoryOp], parser: Parser) -> tuple[dict[str, Attribute], Attribute, VectorType]:
    """Parse the attributes and the type of a tensor; also return the type of its vector."""
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    at = parser.pos
    t = parser.parse_type()
    try:
        return attributes, t, fragment_vector(t)
    except AlgebraError as e:
        parser.raise_error(f"'{cls.name}' op {e}", at, parser.pos)


@cute_op
class LoadVecOp(MemoryOp):
    """Loads all elements of a tensor of static shape as a vector, in colexicographic order of the coordinates.

    Syntax: ``%v = cute.memref.load_vec %t : T``

    Inference:
        ``vector<size x E>``.

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
        attributes, t, result = _parse_fragment(cls, parser)
        return cls.create(operands=[parser.resolve_operand(operand, t)], result_types=[result], attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.tensor)
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.tensor.type)


@cute_op
class StoreVecOp(MemoryOp):
    """Stores a vector to a tensor of static shape, in colexicographic order of the coordinates.

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
        attributes, t, vector = _parse_fragment(cls, parser)
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


# ----------------------------------------------------------------------------------------------------------- allocation


MAX_LOCAL_BYTES = 512 << 10
"""Maximum local memory per thread in bytes.

Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability" (512 KB).
"""


def check_register_tensor(t: MemRefType) -> None:
    """Raise VerifyException unless the tensor fits in the local memory of a thread."""
    n = cosize(t.layout)
    n_bytes = n * element_bits(t.element) // 8 if isinstance(n, int) else 0
    if n_bytes > MAX_LOCAL_BYTES:
        raise VerifyException(
            f"expected a register tensor of at most {MAX_LOCAL_BYTES} bytes, the local memory of a thread, got "
            f"{n_bytes} bytes in {t}"
        )


@cute_op
class AllocaOp(ResultFormOp):
    """Allocates a register tensor, private to each thread. The layout must be static.

    Syntax: ``%f = cute.memref.alloca() : T``

    If all indices are known at compile time, after loops with static bounds are unrolled, the elements become SSA
    values.

    Example:
        %f = cute.memref.alloca() : !cute.memref<f32, rmem, align<32>, "((1,(4,4)),1,1):((0,(1,4)),0,0)">
    """

    name = "cute.memref.alloca"
    result = result_def(MemRefType)
    traits = traits_def(MemoryAllocEffect())

    def __init__(self, result_type: MemRefType):
        super().__init__(result_types=[result_type])

    def verify_(self) -> None:
        t = self.result.type
        assert isinstance(t, MemRefType)
        if not t.space.per_thread or not is_static(t.layout):
            raise VerifyException(f"'{self.name}' op expected an rmem tensor with a static layout, got {t}")
        check_register_tensor(t)


@cute_op
class MakeFragmentLikeOp(MemoryOp):
    """Allocates a register tensor with the shape of another tensor.

    Syntax: ``%f = cute.make_fragment_like(%t) [E] : T -> T'``

    Inference:
        A compact layout. Mode 0 comes first, with its elements in the order of the source strides. The other modes
        follow, in the order of theirs. Modes of stride 0 keep stride 0. The element type defaults to that of the
        source.

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
        t = self.result.type
        assert isinstance(t, MemRefType)
        try:
            expected = fragment_like(self.tensor.type, t.element)
        except AlgebraError as e:
            raise VerifyException(f"'{self.name}' op {e}") from None
        if expected.layout != t.layout or not t.space.per_thread:
            raise VerifyException(f"'{self.name}' op result #0: expected {expected}, got {t}")
        check_register_tensor(t)

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        operand = parse_one_operand(parser)
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
    """Return the type of the register tensor that ``make_fragment_like`` allocates. Raises AlgebraError for a dynamic
    shape.
    """
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
    return rmem_type(element, compact_like(plain))


def compact_like(layout: Layout) -> Layout:
    """Return a compact layout: mode 0 in the order of its strides, then the other modes in theirs. Stride 0 is kept."""
    layout = Layout(layout.shape, _integer_order(layout.stride))
    shape, stride = layout.shape, layout.stride
    if not isinstance(shape, tuple) or len(shape) < 2:
        return make_layout_like(layout)
    assert isinstance(stride, tuple)
    first = make_layout_like(Layout(shape[0], stride[0]))
    rest = make_layout_like(Layout(shape[1:], stride[1:]))
    step = cosize(first)
    shapes = rest.shape if isinstance(rest.shape, tuple) else (rest.shape,)
    scaled = cast("Stride", map_leaves(lambda d: mul(d, step), rest.stride))
    strides = scaled if isinstance(scaled, tuple) else (scaled,)
    return Layout((first.shape, *shapes), (first.stride, *strides))


def _integer_order(stride: Stride) -> IntTuple:
    """Convert basis strides to integers of the same order: the innermost tensor mode varies fastest in memory."""
    found = [x for x in leaves(stride) if isinstance(x, Basis)]
    if not found:
        return cast("IntTuple", stride)
    order = sorted({(tuple(-i for i in b.path), b.value) for b in found}, key=repr)
    rank_of = {key: i + 1 for i, key in enumerate(order)}

    def number(d: Stride) -> IntTuple:
        if isinstance(d, tuple):
            return tuple([number(x) for x in d])
        return rank_of[(tuple(-i for i in d.path), d.value)] if isinstance(d, Basis) else d

    return number(stride)


def rmem_type(element: Attribute, layout: Layout) -> MemRefType:
    """Return the type of a register tensor. Its alignment is its size in bytes, rounded up to a power of two, at most
    32.
    """
    n = cosize(layout)
    assert isinstance(n, int)
    n_bytes = max(1, n * element_bits(element) // 8)
    align = min(32, 1 << (n_bytes - 1).bit_length())
    return MemRefType(MemRef(ptr(element, AddressSpace.rmem, align), layout))


OPS: list[type[Operation]] = [*views.OPS, *ops_of(__name__)]

__all__ = ["OPS"]
