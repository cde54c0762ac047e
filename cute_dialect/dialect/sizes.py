"""Sizes and indices: extents, products, evaluation of layouts, coordinates, indices, rank padding."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def

from cute_dialect.algebra.evaluation import cosize, crd2idx, evaluate, idx2crd, increment_coord, size
from cute_dialect.algebra.layout import append_to_rank, prepend_to_rank
from cute_dialect.algebra.leaf import AlgebraError, Dyn, divisibility
from cute_dialect.algebra.trees import get, leaves, product, product_each
from cute_dialect.algebra.values import AnyLayout, ComposedLayout, Layout, Payload
from cute_dialect.dialect.access import MODE
from cute_dialect.dialect.asm import (
    int_property,
    mode_of,
)
from cute_dialect.dialect.base import AlgebraOp, cute_op, ops_of
from cute_dialect.dialect.typed_values import (
    ANY_LAYOUT,
    ARITH,
    COORD,
    INT_TUPLE,
    SHAPE,
    TUPLE_OR_LAYOUT,
    OneOfKinds,
    Properties,
    Typed,
    outer,
)

# ---------------------------------------------------------------------------------------------------------------- size


LAYOUTS = frozenset({"layout", "composed_layout"})


def check_width(result: Payload, least: int, what: str, path: Sequence[int]) -> None:
    """Raise AlgebraError if a dynamic result is at least ``least`` and ``least`` does not fit in its width.

    Extents of layouts are positive, so static extents are a lower bound of a product. For example, the size of
    ``(?,65536,65536)`` is at least 2^32 and overflows ``i32``.
    """
    if isinstance(result, Dyn) and least >= 1 << (result.width - 1):
        mode = f"mode {list(path)}" if path else "the layout"
        raise AlgebraError(
            f"expected the {what} of {mode} to fit i{result.width}, got at least {least}; "
            "make a dynamic extent 64 bits wide, ?{i64}"
        )


def least_size(layout: AnyLayout) -> int:
    """Return a lower bound of the number of elements of a layout, from its static extents."""
    extents = leaves(outer(layout).shape)
    return prod(max(divisibility(n), 1) if isinstance(n, Dyn) else n for n in extents if isinstance(n, int | Dyn))


def least_cosize(layout: AnyLayout) -> int:
    """Return a lower bound of the cosize of a layout, in elements, from its static extents and integer strides."""
    flat = outer(layout)
    pairs = zip(leaves(flat.shape), leaves(flat.stride))
    return 1 + sum((n - 1) * abs(d) for n, d in pairs if isinstance(n, int) and isinstance(d, int))


class SizeLikeOp(AlgebraOp):
    """Base of ``size`` and ``cosize``: one operand and an optional mode path."""

    SPACED = True
    mode = opt_prop_def(MODE)
    result = result_def(INT_TUPLE)


@cute_op
class SizeOp(SizeLikeOp):
    """Returns the number of elements of a value.

    Inference:
        A scalar int tuple: the product of the extents of the mode at the path, or of all modes if there is no path. The
        path must satisfy the rules of ``cute.get``.

    Example:
        %n = cute.size<[1]> (%s) : (!cute.shape<"(6,(2,?))">) -> !cute.int_tuple<"?">
    """

    name = "cute.size"
    LIFT = True
    input = operand_def(OneOfKinds("shape", "int_tuple", "layout", "composed_layout"))

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        ((kind, value),) = operands
        path = mode_of(properties)
        part = get(value, path)
        result = size(part)
        if kind in LAYOUTS:
            assert isinstance(part, Layout | ComposedLayout)
            check_width(result, least_size(part), "size", path)
        return [Typed("int_tuple", result)]


@cute_op
class CosizeOp(SizeLikeOp):
    """Returns the cosize of a layout: its largest index plus one.

    Inference:
        ``|L|(size - 1) + 1``, where ``|L|`` is the mode at the path with the absolute values of its strides. For basis
        strides, the product of the cosizes of the components. For a composed layout whose inner part is a swizzle, the
        cosize of the outer layout.

    Example:
        %n = cute.cosize<[1]> (%l) : (!cute.layout<"(5,3):(1,7)">) -> !cute.int_tuple<"15">
    """

    name = "cute.cosize"
    input = operand_def(ANY_LAYOUT)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        ((_, value),) = operands
        path = mode_of(properties)
        part = get(value, path)
        assert isinstance(part, Layout | ComposedLayout)
        result = cosize(part)
        check_width(result, least_cosize(part), "cosize", path)
        return [Typed("int_tuple", result)]


class ArithUnaryOp(AlgebraOp):
    """Base of the ops that multiply the leaves of a tuple."""

    input = operand_def(ARITH)
    result = result_def(ARITH)


@cute_op
class TupleProductOp(ArithUnaryOp):
    """Returns the product of all leaves.

    Inference:
        A scalar of the same kind as the operand.

    Example:
        %p = cute.tuple_product(%s) : (!cute.shape<"(6,(?,2))">) -> !cute.shape<"?">
    """

    name = "cute.tuple_product"

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        ((kind, tree),) = operands
        return [Typed(kind, product(tree))]


@cute_op
class TupleProductEachOp(ArithUnaryOp):
    """Returns the product of each top-level mode.

    Inference:
        A tuple of depth 1 and of the same kind as the operand. A scalar gives a tuple of one element.

    Example:
        %p = cute.tuple_product_each(%s) : (!cute.shape<"(6,(?,2),())">) -> !cute.shape<"(6,?,1)">
    """

    name = "cute.tuple_product_each"

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        ((kind, tree),) = operands
        return [Typed(kind, product_each(tree))]


# --------------------------------------------------------------------------------------------- indices and coordinates


@cute_op
class LayoutEvalOp(AlgebraOp):
    """Applies a layout to a coordinate.

    Inference:
        The index, or an arithmetic tuple if the strides are basis elements. For a composed layout, ``A(offset +
        B(coord))``. ``_`` counts as 0. Coordinates out of range are accepted. The ranks must match.

    Example:
        %i = cute.layout_eval(%c, %l) : (!cute.coord<"(?,2)">, !cute.layout<"(6,5):(1@0,3@1)">) -> !cute.int_tuple<"(?,6)">
    """  # noqa: E501

    name = "cute.layout_eval"
    coord = operand_def(COORD)
    layout = operand_def(ANY_LAYOUT)
    result = result_def(INT_TUPLE)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        (_, coord), (_, layout) = operands
        return [Typed("int_tuple", evaluate(coord, layout))]


@cute_op
class Crd2IdxOp(AlgebraOp):
    """Converts a coordinate in a shape to its column-major index.

    Inference:
        ``coord`` applied to the column-major layout of ``shape``. Coordinates in modes of extent 1 are ignored. The
        coordinate must be weakly congruent with the shape. If the second operand is a layout, the op is equivalent to
        ``cute.layout_eval``.

    Example:
        %i = cute.crd2idx(%c, %s) : (!cute.coord<"(1,(1,2))">, !cute.shape<"(2,(3,4))">) -> !cute.int_tuple<"15">
    """

    name = "cute.crd2idx"
    coord = operand_def(COORD)
    shape = operand_def(OneOfKinds("shape", "layout", "composed_layout"))
    result = result_def(INT_TUPLE)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        (_, coord), (kind, shape) = operands
        if kind != "shape":
            return [Typed("int_tuple", evaluate(coord, shape))]
        return [Typed("int_tuple", crd2idx(coord, shape))]


@cute_op
class Idx2CrdOp(AlgebraOp):
    """Converts a column-major index to a coordinate in a shape.

    Inference:
        The digits of the index in the mixed radix given by the shape. The last mode is not reduced modulo its extent. A
        tuple of indices is converted element by element.

    Example:
        %c = cute.idx2crd(%i, %s) : (!cute.int_tuple<"20">, !cute.shape<"(6,3)">) -> !cute.coord<"(2,3)">
    """

    name = "cute.idx2crd"
    index = operand_def(INT_TUPLE)
    shape = operand_def(SHAPE)
    result = result_def(COORD)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        (_, index), (_, shape) = operands
        return [Typed("coord", idx2crd(index, shape))]


@cute_op
class IncrementCoordOp(AlgebraOp):
    """Returns the next coordinate in a shape; the first leaf varies fastest.

    Inference:
        The coordinate after one step of an odometer. The last leaf does not wrap. If the types do not decide whether a
        leaf wraps, the leaf is dynamic. Coordinate and shape must be congruent and must not contain underscores.

    Example:
        %n = cute.increment_coord(%c, %s) : (!cute.coord<"(5,1)">, !cute.shape<"(6,3)">) -> !cute.coord<"(0,2)">
    """

    name = "cute.increment_coord"
    coord = operand_def(COORD)
    shape = operand_def(SHAPE)
    result = result_def(COORD)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        (_, coord), (_, shape) = operands
        return [Typed("coord", increment_coord(coord, shape))]


# ---------------------------------------------------------------------------------------------------------------- rank


class PadRankOp(AlgebraOp):
    """Base of ``append_to_rank`` and ``prepend_to_rank``."""

    FORM = "inferred"
    SPACED = True
    FRONT = False
    input = operand_def(TUPLE_OR_LAYOUT)
    element = operand_def(TUPLE_OR_LAYOUT)
    rank = prop_def(IntegerAttr.constr(i32))
    result = result_def(TUPLE_OR_LAYOUT)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        (kind, value), (element_kind, element) = operands
        wanted = "layout" if kind == "composed_layout" else kind
        if element_kind != wanted:
            raise AlgebraError(f"expected an element of kind {wanted}, got {element_kind}")
        pad = prepend_to_rank if cls.FRONT else append_to_rank
        return [Typed(kind, pad(value, element, int_property(properties, "rank")))]


@cute_op
class AppendToRankOp(PadRankOp):
    """Appends modes to a value until it has a given rank.

    Inference:
        The input if its rank is large enough, otherwise its modes followed by copies of the element. The element must
        have the kind of the input. A composed layout takes a layout as element, and its outer layout is padded.

    Example:
        %r = cute.append_to_rank<3> (%l, %e) : !cute.layout<"6:2">, !cute.layout<"1:0">
    """

    name = "cute.append_to_rank"


@cute_op
class PrependToRankOp(PadRankOp):
    """Prepends modes to a value until it has a given rank.

    Inference:
        The rules of ``cute.append_to_rank`` apply; the copies precede the modes.

    Example:
        %r = cute.prepend_to_rank<3> (%l, %e) : !cute.layout<"(6,2):(2,12)">, !cute.layout<"1:0">
    """

    name = "cute.prepend_to_rank"
    FRONT = True


OPS = ops_of(__name__)
