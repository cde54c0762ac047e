"""Accessors of the parts, leaves, scalars and modes of a value, and casts between tree types."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IntegerType, UnitAttr, i32
from xdsl.ir import Attribute, Operation
from xdsl.irdl import BaseAttr, operand_def, opt_prop_def, prop_def, result_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf, width_of
from cute_dialect.algebra.trees import get, select, tile_layouts, tile_shape, tree_get, tree_leaves, tree_select
from cute_dialect.algebra.values import UNDERSCORE, Basis, ComposedLayout, Layout, Payload, Swizzle
from cute_dialect.dialect.asm import mode_of, parse_operand_list, parse_type
from cute_dialect.dialect.base import AlgebraOp, CuteOp, cute_op, ops_of
from cute_dialect.dialect.typed_values import (
    ANY_CUTE,
    COORD,
    INDEXABLE,
    INNER,
    INT_TUPLE,
    LAYOUT,
    SHAPE,
    STRIDE,
    TUPLE_LIKE,
    OneOfKinds,
    Properties,
    Typed,
    outer,
    payload_text,
    typed,
)

# ---------------------------------------------------------------------------------------------------- parts of a value


class PartOp(AlgebraOp):
    """Base of the ops that return one part of their only operand."""

    FORM = "arrow"


@cute_op
class GetShapeOp(PartOp):
    """Returns the shape of a layout or a tile.

    Syntax:
        ``cute.get_shape(`` input ``)`` attr-dict ``:`` type ``->`` type; also accepted: ``: (type) -> type``

    Inference:
        The shape of the layout. For a composed layout, the shape of its outer layout. For a tile, the tree of the
        shapes of its layouts; a tile that contains `_` is rejected.

    Example:
        %s = cute.get_shape(%t) : !cute.tile<"[6:1;[(2,5):(5,1);3:1]]"> -> !cute.shape<"(6,((2,5),3))">
    """

    name = "cute.get_shape"
    LIFT = True
    input = operand_def(OneOfKinds("layout", "composed_layout", "tile"))
    result = result_def(SHAPE)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        ((kind, value),) = operands
        return [Typed("shape", tile_shape(value) if kind == "tile" else outer(value).shape)]


@cute_op
class GetStrideOp(PartOp):
    """Returns the stride of a layout.

    Syntax:
        ``cute.get_stride(`` input ``)`` attr-dict ``:`` type ``->`` type, the operand type stripped; also accepted:
        ``: (type) -> type``, and the name ``cute.get_strides``

    Inference:
        The stride. Basis elements such as ``1@0`` are kept.

    Example:
        %d = cute.get_stride(%l) : <"(6,5):(1@1,1@0)"> -> !cute.stride<"(1@1,1@0)">
    """

    name = "cute.get_stride"
    input = operand_def(OneOfKinds("layout", stripped=True))
    result = result_def(STRIDE)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        ((_, layout),) = operands
        return [Typed("stride", layout.stride)]


@cute_op
class GetStridesOp(PartOp):
    """Alias of ``cute.get_stride``. It is accepted on input and parsed as ``cute.get_stride``."""

    name = "cute.get_strides"
    input = operand_def(OneOfKinds("layout", stripped=True))
    result = result_def(STRIDE)

    @classmethod
    def create(cls, **parts: object) -> Operation:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Create a ``cute.get_stride``, because the alias exists only in the assembly."""
        return GetStrideOp.create(**parts)  # pyright: ignore[reportArgumentType]


@cute_op
class ComposedGetInnerOp(PartOp):
    """Returns the inner part ``A`` of the composed layout ``A o offset o B``.

    Syntax:
        ``cute.composed_get_inner(`` input ``)`` attr-dict ``:`` type ``->`` type, the operand type stripped

    Inference:
        ``A``: a swizzle or a layout.

    Example:
        %a = cute.composed_get_inner(%c) : <"S<2,3,3> o 5 o (8,8):(1,8)"> -> !cute.swizzle<"S<2,3,3>">
    """

    name = "cute.composed_get_inner"
    input = operand_def(OneOfKinds("composed_layout", stripped=True))
    result = result_def(INNER)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        inner = operands[0].payload.inner
        return [Typed("swizzle" if isinstance(inner, Swizzle) else "layout", inner)]


@cute_op
class ComposedGetOffsetOp(PartOp):
    """Returns the offset of the composed layout ``A o offset o B``.

    Syntax:
        ``cute.composed_get_offset(`` input ``)`` attr-dict ``:`` type ``->`` type, the operand type stripped

    Inference:
        The offset, an int tuple.

    Example:
        %o = cute.composed_get_offset(%c) : <"S<2,3,3> o 5 o (8,8):(1,8)"> -> !cute.int_tuple<"5">
    """

    name = "cute.composed_get_offset"
    input = operand_def(OneOfKinds("composed_layout", stripped=True))
    result = result_def(INT_TUPLE)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        return [Typed("int_tuple", operands[0].payload.offset)]


@cute_op
class ComposedGetOuterOp(PartOp):
    """Returns the outer layout ``B`` of the composed layout ``A o offset o B``.

    Syntax:
        ``cute.composed_get_outer(`` input ``)`` attr-dict ``:`` type ``->`` type, both types stripped

    Inference:
        ``B``, a layout.

    Example:
        %b = cute.composed_get_outer(%c) : <"S<2,3,3> o 5 o (8,8):(1,8)"> -> <"(8,8):(1,8)">
    """

    name = "cute.composed_get_outer"
    input = operand_def(OneOfKinds("composed_layout", stripped=True))
    result = result_def(OneOfKinds("layout", stripped=True))

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        return [Typed("layout", operands[0].payload.outer)]


# -------------------------------------------------------------------------------------------------- leaves and scalars


@cute_op
class GetLeavesOp(AlgebraOp):
    """Returns the leaves of a tree, one result per leaf.

    Syntax:
        results ``= cute.get_leaves(`` input ``)`` attr-dict ``:`` type

    Inference:
        One result per leaf, in depth-first order. Each has the type kind of the input, except that a layout slot of a
        tile gives a layout.

    Example:
        %a, %b, %c = cute.get_leaves(%s) : !cute.shape<"(6,(?,2))">
    """

    name = "cute.get_leaves"
    FORM = "inferred"
    input = operand_def(TUPLE_LIKE)
    leaves = var_result_def(OneOfKinds("shape", "stride", "coord", "int_tuple", "tile", "layout"))

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        ((kind, tree),) = operands
        return [Typed("layout" if isinstance(leaf, Layout) else kind, leaf) for leaf in tree_leaves(tree)]


def scalar_payloads(payload: Payload, only_dynamic: bool = False) -> list[Leaf]:
    """List the scalars of a value in the order of ``cute.get_scalars``.

    >>> scalar_payloads((Basis(1, (0,)), Basis(Dyn(), (1,))))
    [1, 0, Dyn(?), 1]
    """
    found: list[Leaf] = []

    def visit(value: Payload) -> None:
        if isinstance(value, Dyn):
            found.append(value)
        elif isinstance(value, int):
            if not only_dynamic:
                found.append(value)
        elif isinstance(value, tuple):
            for branch in value:
                visit(branch)
        elif isinstance(value, Basis):
            visit(value.value)
            if not only_dynamic:
                found.extend(value.path)
        elif isinstance(value, Layout):
            visit(value.shape)
            visit(value.stride)
        elif isinstance(value, ComposedLayout):
            visit(value.outer)
            visit(value.offset)
            visit(value.inner)
        elif isinstance(value, Swizzle):
            visit((value.bits, value.base, value.shift))
        else:
            assert value is UNDERSCORE, value

    visit(payload)
    return found


@cute_op
class GetScalarsOp(AlgebraOp):
    """Returns the integers of a value as builtin integers.

    Syntax:
        results ``= cute.get_scalars`` [``<{only_dynamic}>``] ``(`` input ``)`` attr-dict ``:`` type; also accepted:
        ``<{only_dynamic}>`` after the operand

    Inference:
        One result per scalar:

        * A tree gives its leaves in depth-first order.
        * A basis element gives its value and then its path, outermost mode first.
        * A layout gives its shape and then its stride.
        * A composed layout gives its outer layout, its offset and its inner part, in this order.

        With ``only_dynamic``, static scalars are skipped. A dynamic scalar keeps its width. A static scalar is ``i32``
        if it fits, otherwise ``i64``.

    Example:
        %v:2 = cute.get_scalars<{only_dynamic}> (%l) : !cute.layout<"(?,6):(6,?{i64})">
        %w:4 = cute.get_scalars (%l) : !cute.layout<"(?,6):(6,?{i64})">
    """

    name = "cute.get_scalars"
    FORM = "inferred"
    SPACED = True
    input = operand_def(ANY_CUTE)
    only_dynamic = opt_prop_def(UnitAttr)
    scalars = var_result_def(BaseAttr(IntegerType))

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        cls.check_operand_kinds(operand_types)
        scalars = scalar_payloads(typed(operand_types[0]).payload, "only_dynamic" in properties)
        return [IntegerType(width_of(s)) for s in scalars]

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        at = parser.pos
        properties = _parse_only_dynamic(parser)
        operands = parse_operand_list(parser)
        properties = properties or _parse_only_dynamic(parser)
        attributes = cls.parse_attributes(parser)
        parser.parse_punctuation(":")
        type_ = parse_type(parser, ANY_CUTE)
        if len(operands) != 1:
            parser.raise_error(f"expected 1 operand, got {len(operands)}", at)
        value = parser.resolve_operand(operands[0], type_)
        try:
            results = cls.infer_types([type_], properties)
        except AlgebraError as e:
            parser.raise_error(f"'{cls.name}' op {e}", at)
        return cls.create(operands=[value], result_types=results, properties=properties, attributes=attributes)

    def print_prefix(self, printer: Printer) -> None:
        if self.only_dynamic is not None:
            printer.print_string("<{only_dynamic}>")


def _parse_only_dynamic(parser: Parser) -> dict[str, Attribute]:
    at = parser.pos
    properties = parser.parse_optional_properties_dict()
    if any(name != "only_dynamic" or not isinstance(a, UnitAttr) for name, a in properties.items()):
        parser.raise_error(f"unknown property {', '.join(properties)}; only only_dynamic is allowed", at)
    return properties


# --------------------------------------------------------------------------------------------------------------- modes


MODE = DenseArrayBase.constr(i32)


@cute_op
class GetOp(AlgebraOp):
    """Returns the mode at a path.

    Inference:
        The mode at the path, or the input itself if there is no path. A slot of a tile is returned as a tile. For a
        composed layout, the path selects a mode of the outer layout. Each index must be in ``[0, rank)`` of the mode
        that it indexes, and the path must not continue below a leaf.

    Example:
        %r = cute.get<[1, 0]> (%l) : !cute.layout<"(6,(2,5)):(10,(5,1))"> -> !cute.layout<"2:5">
    """

    name = "cute.get"
    FORM = "arrow"
    SPACED = True
    input = operand_def(INDEXABLE)
    mode = opt_prop_def(MODE)
    result = result_def(INDEXABLE)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        ((kind, value),) = operands
        return [Typed(kind, (tree_get if kind == "tile" else get)(value, mode_of(properties)))]


@cute_op
class SelectOp(AlgebraOp):
    """Returns a tuple of selected top-level modes.

    Inference:
        The tuple of the selected modes, in the given order. A mode may be selected more than once. For a composed
        layout, the modes of the outer layout are selected.

    Example:
        %r = cute.select<[2, 0]> (%l) : !cute.layout<"(6,5,2):(10,2,1)"> -> !cute.layout<"(2,6):(1,10)">
    """

    name = "cute.select"
    FORM = "arrow"
    SPACED = True
    LIFT = True
    input = operand_def(INDEXABLE)
    mode = prop_def(MODE)
    result = result_def(INDEXABLE)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        ((kind, value),) = operands
        return [Typed(kind, (tree_select if kind == "tile" else select)(value, mode_of(properties)))]


@cute_op
class GetLayoutsFromTileOp(AlgebraOp):
    """Returns the layouts of a tile, one result per layout.

    Syntax:
        results ``= cute.get_layouts_from_tile(`` tile ``)`` attr-dict ``:`` type, stripped

    Inference:
        One layout per layout slot, in depth-first order. Underscores are skipped. A tile without layouts is rejected.

    Example:
        %a, %b = cute.get_layouts_from_tile(%t) : <"[6:1;_;[(2,?):(?,1);_]]">
    """

    name = "cute.get_layouts_from_tile"
    FORM = "inferred"
    tile = operand_def(OneOfKinds("tile", stripped=True))
    layouts = var_result_def(LAYOUT)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        ((_, tile),) = operands
        return [Typed("layout", layout) for layout in tile_layouts(tile)]


# --------------------------------------------------------------------------------------------------------------- casts


@cute_op
class ToIntTupleOp(PartOp):
    """Casts a shape, stride or coordinate to an int tuple.

    Inference:
        The same tree as an int tuple. Underscores and basis elements are rejected.

    Example:
        %i = cute.to_int_tuple(%s) : !cute.shape<"(6,(?,2))"> -> !cute.int_tuple<"(6,(?,2))">
    """

    name = "cute.to_int_tuple"
    input = operand_def(OneOfKinds("shape", "stride", "coord", "int_tuple"))
    result = result_def(INT_TUPLE)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        ((kind, tree),) = operands
        for leaf in tree_leaves(tree):
            if not isinstance(leaf, int | Dyn):
                raise AlgebraError(f"expected a {kind} whose leaves are integers, got the leaf '{payload_text(leaf)}'")
        return [Typed("int_tuple", tree)]


class FromIntTupleOp(PartOp):
    """Base of the casts from an int tuple."""

    input = operand_def(INT_TUPLE)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        return [Typed(cls.name.removeprefix("cute.to_"), operands[0].payload)]


@cute_op
class ToShapeOp(FromIntTupleOp):
    """Casts an int tuple to a shape.

    Inference:
        The same tree as a shape.

    Example:
        %s = cute.to_shape(%i) : !cute.int_tuple<"(6,?{i64})"> -> !cute.shape<"(6,?{i64})">
    """

    name = "cute.to_shape"
    result = result_def(SHAPE)


@cute_op
class ToStrideOp(FromIntTupleOp):
    """Casts an int tuple to a stride.

    Inference:
        The same tree as a stride.

    Example:
        %d = cute.to_stride(%i) : !cute.int_tuple<"(1,?)"> -> !cute.stride<"(1,?)">
    """

    name = "cute.to_stride"
    result = result_def(STRIDE)


@cute_op
class ToCoordOp(FromIntTupleOp):
    """Casts an int tuple to a coordinate.

    Inference:
        The same tree as a coordinate.

    Example:
        %c = cute.to_coord(%i) : !cute.int_tuple<"(3,?)"> -> !cute.coord<"(3,?)">
    """

    name = "cute.to_coord"
    result = result_def(COORD)


ALIASES: list[type[CuteOp]] = [GetStridesOp]
"""Alternative op names that the parser accepts."""
OPS = [op for op in ops_of(__name__) if op not in ALIASES]
