"""Constructors: ``static``, the ``make_*`` ops that build trees from scalars, and layouts from their parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import TypeVar
from xdsl.dialects.builtin import IntegerType
from xdsl.interfaces import HasFolderInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrConstraint,
    IntConstraint,
    VerificationContext,
    operand_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, Pure
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.layout import make_identity_layout, make_layout_like, make_ordered_layout
from cute_dialect.algebra.leaf import AlgebraError, Dyn
from cute_dialect.algebra.trees import congruent
from cute_dialect.algebra.values import ComposedLayout, raw_layout
from cute_dialect.dialect.asm import defined_type, parse_operand_list, parse_type
from cute_dialect.dialect.base import AlgebraOp, CuteOp, cute_op, ops_of, plural
from cute_dialect.dialect.memory_types import ConstrainedIntType, CoordTensorType, is_tensor
from cute_dialect.dialect.typed_values import (
    ANY_LAYOUT,
    COORD,
    INNER,
    INT_TUPLE,
    LAYOUT,
    SHAPE,
    STRIDE,
    TILE,
    OneOfKinds,
    Properties,
    Typed,
    dynamic_leaves,
    payload_text,
)
from cute_dialect.dialect.types import CuteType, IntTupleType
from cute_dialect.ir.editing import fill_op


@cute_op
class StaticOp(CuteOp, HasFolderInterface):
    """Returns the value that the result type describes completely.

    Syntax:
        ``cute.static`` attr-dict ``:`` type

    Inference:
        None. The result type is written and must be static. The op folds to the attribute with the same payload.

    Example:
        %l = cute.static : !cute.layout<"(6,(2,4)):(8,(4,1))">
        %k = cute.static : !cute.coord<"(_,3)">
        %w = cute.static : !cute.swizzle<"S<2,3,3>">
    """

    name = "cute.static"
    result = result_def(AnyAttr())
    traits = traits_def(Pure(), ConstantLike())

    def __init__(self, result_type: Attribute):
        fill_op(self, result_types=[result_type])

    def fold(self) -> Sequence[SSAValue | Attribute] | None:
        type_ = self.result.type
        return [type_.value_attr()] if isinstance(type_, CuteType) else None

    def check_types(self) -> None:
        type_ = self.results[0].type
        if isinstance(type_, CuteType):
            static = type_.is_static()
        elif is_tensor(type_):
            # A memref is never static: its address is known only at run time.
            static = isinstance(type_, CoordTensorType) and type_.is_static()
        else:
            raise AlgebraError(f"result #0: expected a cute value, got {type_}")
        if not static:
            raise AlgebraError(f"result #0: expected a static type, got {type_}")

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        return cls.create(result_types=[parser.parse_type()], attributes=attributes)

    def print(self, printer: Printer) -> None:
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.results[0].type)


# -------------------------------------------------------------------------------------------------- trees from scalars


class ScalarInt(AttrConstraint[Attribute]):
    """``i32``, ``i64``, a constrained integer ``!cute.i32<divby N>``, or an ``!cute.int_tuple`` of depth 0."""

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        if scalar_int(attr) is None:
            raise VerifyException(f"expected {_SCALAR_INT_TEXT}, got {attr}")

    def mapping_type_vars(self, type_var_mapping: Mapping[TypeVar, AttrConstraint | IntConstraint]) -> ScalarInt:
        return self


_SCALAR_INT_TEXT = "i32, i64 or a scalar !cute.int_tuple"


def scalar_int(attribute: Attribute) -> int | Dyn | None:
    """Return the value of a scalar operand type, as an int or as a dynamic leaf. Return None for other types."""
    if isinstance(attribute, IntegerType):
        return Dyn(attribute.bitwidth) if attribute.bitwidth in (32, 64) else None
    if isinstance(attribute, IntTupleType):
        leaf = attribute.data
        return leaf if isinstance(leaf, int | Dyn) else None
    if isinstance(attribute, ConstrainedIntType):
        return Dyn(attribute.width, attribute.divisor)
    return None


def check_fills(slot: Dyn, scalar: int | Dyn) -> None:
    """Raise AlgebraError unless a scalar may fill a dynamic leaf: same width, and a multiple of its ``div``.

    A static scalar must be representable in the width of the leaf.
    """
    div = slot.div or 1
    if isinstance(scalar, int):
        half = 1 << (slot.width - 1)
        if not -half <= scalar < half:
            raise AlgebraError(f"expected a value of {slot.width} bits for '{slot}', got {scalar}")
        if scalar % div:
            raise AlgebraError(f"expected a multiple of {div} for '{slot}', got {scalar}")
    else:
        if scalar.width != slot.width:
            raise AlgebraError(f"expected {slot.width} bits for '{slot}', got {scalar.width}")
        if (scalar.div or 1) % div:
            raise AlgebraError(f"expected a known multiple of {div} for '{slot}', got a multiple of {scalar.div or 1}")


class MakeTreeOp(CuteOp):
    """Base of the ops that build a tree; operands fill the dynamic leaves of the result type."""

    scalars = var_operand_def(ScalarInt())
    traits = traits_def(Pure())

    def __init__(self, scalars: Sequence[SSAValue | Operation], result_type: Attribute):
        fill_op(self, [SSAValue.get(s) for s in scalars], [result_type])

    def check_types(self) -> None:
        (kinds,) = self.RESULT_KINDS
        assert kinds is not None
        if len(self.results) != 1 or not kinds.accepts(self.results[0].type):
            got = ", ".join(map(str, self.result_types))
            raise AlgebraError(f"result #0: expected {kinds}, got {got}")
        result = self.results[0].type
        assert isinstance(result, CuteType)
        slots = dynamic_leaves(result.data)
        if len(slots) != len(self.operands):
            raise AlgebraError(f"expected {len(slots)} operands, one per '?' of {result}, got {len(self.operands)}")
        for i, (slot, operand) in enumerate(zip(slots, self.operands)):
            scalar = scalar_int(operand.type)
            if scalar is None:
                raise AlgebraError(f"operand #{i}: expected {_SCALAR_INT_TEXT}, got {operand.type}")
            try:
                check_fills(slot, scalar)
            except AlgebraError as e:
                raise AlgebraError(f"operand #{i}: {e}") from None


@cute_op
class MakeIntTupleOp(MakeTreeOp):
    """Builds an int tuple from scalars that fill its dynamic leaves.

    Syntax:
        ``cute.make_int_tuple(`` scalars ``)`` attr-dict ``:`` functional-type

    Inference:
        None. The written result type is built. There is one operand for each ``?``, in depth-first order and of the
        same width. A static ``!cute.int_tuple`` operand fills a leaf with a constant. A leaf ``?{div=M}`` accepts
        ``!cute.i32<divby N>`` and ``!cute.int_tuple<"?{div=N}">`` if ``M`` divides ``N``.

    Example:
        %t = cute.make_int_tuple(%m) : (i32) -> !cute.int_tuple<"(6,?)">
    """

    name = "cute.make_int_tuple"
    result = result_def(INT_TUPLE)


@cute_op
class MakeShapeOp(MakeTreeOp):
    """Builds a shape from scalars that fill its dynamic leaves.

    Syntax:
        ``cute.make_shape(`` scalars ``)`` attr-dict ``:`` functional-type

    Inference:
        None. The rules of ``cute.make_int_tuple`` apply.

    Example:
        %s = cute.make_shape(%m, %n) : (i32, i64) -> !cute.shape<"(?,(8,?{i64}))">
    """

    name = "cute.make_shape"
    result = result_def(SHAPE)


@cute_op
class MakeStrideOp(MakeTreeOp):
    """Builds a stride from scalars that fill its dynamic leaves.

    Syntax:
        ``cute.make_stride(`` scalars ``)`` attr-dict ``:`` functional-type

    Inference:
        None. The rules of ``cute.make_int_tuple`` apply. A scaled basis element ``?@p`` is one leaf.

    Example:
        %d = cute.make_stride(%ld) : (i32) -> !cute.stride<"(?@0,1@1)">
    """

    name = "cute.make_stride"
    result = result_def(STRIDE)


@cute_op
class MakeCoordOp(MakeTreeOp):
    """Builds a coordinate from scalars that fill its dynamic leaves.

    Syntax:
        ``cute.make_coord(`` scalars ``)`` attr-dict ``:`` functional-type

    Inference:
        None. The rules of ``cute.make_int_tuple`` apply. An underscore has no operand.

    Example:
        %c = cute.make_coord(%i) : (i32) -> !cute.coord<"((_,_),?)">
    """

    name = "cute.make_coord"
    result = result_def(COORD)


@cute_op
class MakeTileOp(MakeTreeOp):
    """Builds a tile from scalars that fill its dynamic leaves.

    Syntax:
        ``cute.make_tile(`` scalars ``)`` attr-dict ``:`` functional-type

    Inference:
        None. The rules of ``cute.make_int_tuple`` apply. The leaves are ordered slot by slot; in each layout the shape
        precedes the stride.

    Example:
        %t = cute.make_tile(%a, %b) : (i32, i32) -> !cute.tile<"[(?,4):(1,?);_]">
    """

    name = "cute.make_tile"
    result = result_def(TILE)


# -------------------------------------------------------------------------------------------- layouts from their parts


@cute_op
class MakeLayoutOp(AlgebraOp):
    """Builds the layout with a given shape and stride.

    Syntax:
        ``cute.make_layout(`` shape ``,`` stride ``)`` attr-dict ``:`` functional-type;
        also accepted: ``:`` result-type, with operands that are defined above

    Inference:
        ``S:D``. Shape and stride must be congruent, and static extents must be at least 1.

    Example:
        %l = cute.make_layout(%s, %d) : (!cute.shape<"(?,6)">, !cute.stride<"(6,1)">) -> !cute.layout<"(?,6):(6,1)">
    """

    name = "cute.make_layout"
    shape = operand_def(SHAPE)
    stride = operand_def(STRIDE)
    result = result_def(LAYOUT)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        (_, shape), (_, stride) = operands
        if not congruent(shape, stride):
            raise AlgebraError(
                f"expected congruent shape and stride, got {payload_text(shape)} and {payload_text(stride)}"
            )
        return [Typed("layout", raw_layout(shape, stride))]

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        operands = parse_operand_list(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        if parser.parse_optional_punctuation("(") is None:  # The short form omits the parentheses.
            operand_types = [defined_type(parser, o) for o in operands]
        else:
            at = parser.pos
            operand_types = [parse_type(parser, SHAPE)]
            if parser.parse_optional_punctuation(",") is not None:
                operand_types.append(parse_type(parser, STRIDE))
            parser.parse_punctuation(")")
            parser.parse_punctuation("->")
            if len(operand_types) != len(operands):
                parser.raise_error(
                    f"expected {plural(len(operands), 'operand type')}, got {len(operand_types)}", at, parser.pos
                )
        result = parse_type(parser, LAYOUT)
        values = [parser.resolve_operand(o, t) for o, t in zip(operands, operand_types)]
        return cls.create(operands=values, result_types=[result], attributes=attributes)


@cute_op
class MakeComposedLayoutOp(AlgebraOp):
    """Builds the composed layout ``inner o offset o outer``. Its three parts stay separate.

    Syntax:
        ``cute.make_composed_layout(`` inner ``,`` offset ``,`` outer ``)`` attr-dict ``:`` functional-type,
        the types of offset, outer and result stripped

    Inference:
        ``inner o offset o outer``. An identity swizzle with offset 0 is rejected, because the result would be the outer
        layout itself.

    Example:
        %c = cute.make_composed_layout(%w, %o, %b) : (!cute.swizzle<"S<2,3,3>">, <"?">, <"(8,8):(8,1)">) -> <"S<2,3,3> o ? o (8,8):(8,1)">
    """  # noqa: E501

    name = "cute.make_composed_layout"
    inner = operand_def(INNER)
    offset = operand_def(OneOfKinds("int_tuple", stripped=True))
    outer = operand_def(OneOfKinds("layout", stripped=True))
    result = result_def(OneOfKinds("composed_layout", stripped=True))

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        (_, inner), (_, offset), (_, outer) = operands
        return [Typed("composed_layout", ComposedLayout(inner, offset, outer))]


@cute_op
class MakeLayoutLikeOp(AlgebraOp):
    """Builds a compact layout with the shape of a layout and its modes in the same stride order.

    Inference:
        ``S : ordered(S', D)`` for the layout ``S:D``, or for the outer layout of a swizzled layout. ``S'`` is ``S``
        with extent 1 for each mode of static stride 0. Modes are ordered by static stride; modes with a dynamic stride
        follow from left to right. Basis strides are rejected, and so are composed layouts whose inner part is a layout.

    Example:
        %l = cute.make_layout_like(%x) : !cute.layout<"(6,5,2):(0,2,20)"> -> !cute.layout<"(6,5,2):(0,1,5)">
    """

    name = "cute.make_layout_like"
    FORM = "arrow"
    src = operand_def(ANY_LAYOUT)
    result = result_def(LAYOUT)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        ((_, src),) = operands
        return [Typed("layout", make_layout_like(src))]


@cute_op
class MakeOrderedLayoutOp(AlgebraOp):
    """Builds a compact layout with the modes in a given order.

    Inference:
        ``S : ordered(S, order)``. The mode with the smallest order value has stride 1. The order must be static and
        weakly congruent with the shape.

    Example:
        %l = cute.make_ordered_layout(%s, %o) : (!cute.shape<"(6,?,2)">, !cute.int_tuple<"(1,0,2)">) -> !cute.layout<"(6,?,2):(?,1,?)">
    """  # noqa: E501

    name = "cute.make_ordered_layout"
    shape = operand_def(SHAPE)
    order = operand_def(INT_TUPLE)
    result = result_def(LAYOUT)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        (_, shape), (_, order) = operands
        return [Typed("layout", make_ordered_layout(shape, order))]


@cute_op
class MakeIdentityLayoutOp(AlgebraOp):
    """Builds the layout that maps each coordinate of a shape to itself.

    Inference:
        ``S : E(S)``. The leaf at path ``(p0,…,pk)`` has the stride ``1@pk@…@p0``. A scalar shape has the stride 1.

    Example:
        %l = cute.make_identity_layout(%s) : !cute.shape<"(6,(2,?))"> -> !cute.layout<"(6,(2,?)):(1@0,(1@0@1,1@1@1))">
    """

    name = "cute.make_identity_layout"
    FORM = "arrow"
    shape = operand_def(SHAPE)
    result = result_def(LAYOUT)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        ((_, shape),) = operands
        return [Typed("layout", make_identity_layout(shape))]


OPS = ops_of(__name__)
