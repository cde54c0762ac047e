"""Layout algebra: composition, coalescing, complement, inverses, slicing and grouping of modes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.irdl import operand_def, opt_operand_def, prop_def, result_def

from cute_dialect.algebra.complements import complement
from cute_dialect.algebra.compose import composition
from cute_dialect.algebra.inverses import left_inverse, right_inverse
from cute_dialect.algebra.layout import (
    coalesce,
    group_modes,
    recast_layout,
)
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.slicing import dice, slice_
from cute_dialect.algebra.trees import flatten, is_static, tree_flatten
from cute_dialect.dialect.asm import int_property
from cute_dialect.dialect.base import AlgebraOp, cute_op, ops_of
from cute_dialect.dialect.typed_values import (
    ANY_LAYOUT,
    COORD,
    INDEXABLE,
    LAYOUT,
    SLICEABLE,
    OneOfKinds,
    Properties,
    Typed,
    layout_like,
    payload_text,
)


@cute_op
class CompositionOp(AlgebraOp):
    """Composes two layouts: ``c -> lhs(rhs(c))``.

    Inference:
        The rule depends on the kind of ``rhs``:

        * Layout: functional composition. Each stride of ``rhs`` must divide, or be divisible by, the extents of ``lhs``
          that it steps over.
        * Tile: composition of each mode of ``lhs`` with the matching slot. ``_`` keeps a mode. Modes of ``lhs`` without
          a slot are dropped.
        * Shape: the same as the tile with a slot ``n:1`` for each extent ``n``, and ``1:0`` for extent 1.

        If ``lhs`` is a composed layout, its outer layout is composed with ``rhs``.

    Example:
        %r = cute.composition(%a, %b) : (!cute.layout<"(6,10):(10,1)">, !cute.layout<"(3,4):(2,6)">) -> !cute.layout<"(3,4):(20,1)">
        %q = cute.composition(%a, %t) : (!cute.layout<"(6,10):(10,1)">, !cute.tile<"[3:2;_]">) -> !cute.layout<"(3,10):(20,1)">
    """  # noqa: E501

    name = "cute.composition"
    LIFT = True
    lhs = operand_def(ANY_LAYOUT)
    rhs = operand_def(OneOfKinds("layout", "shape", "tile"))
    result = result_def(ANY_LAYOUT)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        (_, lhs), (_, rhs) = operands
        return [layout_like(composition(lhs, rhs))]


@cute_op
class CoalesceOp(AlgebraOp):
    """Merges modes of a layout; the result is the same function with as few modes as possible.

    Inference:
        A layout of depth at most 1. Adjacent modes are merged if the second continues the first, and modes of extent 1
        are removed. With a profile, each mode of the profile is coalesced separately; only the structure of the profile
        coordinate matters. Dynamic modes are never merged. The rank of the profile must not exceed the rank of the
        layout.

    Example:
        %r = cute.coalesce(%l) : (!cute.layout<"(2,(1,6)):(1,(6,2))">) -> !cute.layout<"12:1">
        %q = cute.coalesce(%m, %p) : (!cute.layout<"(5,(4,2)):(1,(5,20))">, !cute.coord<"(1,1)">) -> !cute.layout<"(5,8):(1,5)">
    """  # noqa: E501

    name = "cute.coalesce"
    LIFT = True
    input = operand_def(ANY_LAYOUT)
    profile = opt_operand_def(COORD)
    result = result_def(ANY_LAYOUT)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        _, value = operands[0]
        profile = operands[1].payload if len(operands) > 1 else None
        return [layout_like(coalesce(value, profile))]


@cute_op
class FlattenOp(AlgebraOp):
    """Removes the nesting of modes.

    Inference:
        The tuple of the leaves; a scalar remains a scalar. For a layout, both shape and stride are flattened. For a
        composed layout, the outer layout is flattened. For a tile, the slots are flattened.

    Example:
        %r = cute.flatten(%l) : (!cute.layout<"(2,(5,(3))):(15,(3,(1)))">) -> !cute.layout<"(2,5,3):(15,3,1)">
    """

    name = "cute.flatten"
    LIFT = True
    input = operand_def(INDEXABLE)
    result = result_def(INDEXABLE)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        ((kind, value),) = operands
        return [Typed(kind, (tree_flatten if kind == "tile" else flatten)(value))]


@cute_op
class ComplementOp(AlgebraOp):
    """Returns the complement: a layout whose indices fill the gaps between the indices of the input.

    Inference:
        Without a cotarget, the input must be static. The result covers the gaps of the input. It ends with a mode of
        extent 1, whose stride is the distance between repetitions of the input. With a cotarget (a shape, or a layout
        whose shape is used), the repetitions extend to the size of the cotarget. Layouts that are not injective are
        rejected.

    Example:
        %r = cute.complement(%l) : (!cute.layout<"(2,3):(4,12)">) -> !cute.layout<"(4,1):(1,36)">
        %q = cute.complement(%l, %m) : (!cute.layout<"(2,3):(4,12)">, !cute.shape<"48">) -> !cute.layout<"(4,2):(1,36)">
    """

    name = "cute.complement"
    input = operand_def(LAYOUT)
    cotarget = opt_operand_def(OneOfKinds("shape", "layout"))
    result = result_def(LAYOUT)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        _, layout = operands[0]
        if len(operands) > 1:
            return [Typed("layout", complement(layout, operands[1].payload))]
        if not is_static(layout):
            raise AlgebraError(
                f"expected a static layout or a cotarget, got the dynamic layout {payload_text(layout)} and no cotarget"
            )
        return [Typed("layout", complement(layout))]


@cute_op
class GroupModesOp(AlgebraOp):
    """Groups adjacent top-level modes into one mode.

    Inference:
        Top-level modes ``begin`` to ``end - 1`` become one tuple mode. A scalar counts as one mode. ``0 <= begin < end
        <= rank`` must hold.

    Example:
        %r = cute.group_modes<0, 2> (%l) : (!cute.layout<"(2,3,4):(1,2,6)">) -> !cute.layout<"((2,3),4):((1,2),6)">
    """

    name = "cute.group_modes"
    SPACED = True
    LIFT = True
    input = operand_def(ANY_LAYOUT)
    begin = prop_def(IntegerAttr.constr(i32))
    end = prop_def(IntegerAttr.constr(i32))
    result = result_def(ANY_LAYOUT)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        ((kind, value),) = operands
        begin, end = int_property(properties, "begin"), int_property(properties, "end")
        return [Typed(kind, group_modes(value, begin, end))]


@cute_op
class RecastLayoutOp(AlgebraOp):
    """Converts a layout of elements of one width to a layout of elements of another width.

    Syntax:
        ``cute.recast_layout<`` new bits ``,`` old bits ``> (`` src ``)`` attr-dict ``:`` type ``->`` type

    Inference:
        If the new elements are wider, extents and strides are divided by the ratio of the widths, rounding up. If they
        are narrower, extents and strides are multiplied. If neither width divides the other, the layout is converted by
        way of their greatest common divisor. All three parts of a composed layout are converted. Basis strides are
        rejected.

    Example:
        %r = cute.recast_layout<16, 8> (%l) : !cute.layout<"(10,3):(1,10)"> -> !cute.layout<"(5,3):(1,5)">
    """

    name = "cute.recast_layout"
    FORM = "arrow"
    SPACED = True
    src = operand_def(ANY_LAYOUT)
    new_type_bits = prop_def(IntegerAttr.constr(i32))
    old_type_bits = prop_def(IntegerAttr.constr(i32))
    dst = result_def(ANY_LAYOUT)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        ((_, src),) = operands
        new, old = int_property(properties, "new_type_bits"), int_property(properties, "old_type_bits")
        return [layout_like(recast_layout(src, new, old))]


# ------------------------------------------------------------------------------------------------------------- slicing


class SliceLikeOp(AlgebraOp):
    """Base of ``slice`` and ``dice``."""

    FORM = "inferred"
    LIFT = True
    input = operand_def(SLICEABLE)
    coord = operand_def(COORD)
    result = result_def(SLICEABLE)


@cute_op
class SliceOp(SliceLikeOp):
    """Keeps the modes of a value at which the coordinate has ``_``.

    Inference:
        The modes at ``_``; modes at integers are dropped. ``cute.layout_eval`` computes the offset of the integers for
        a plain layout. A composed layout whose inner part is a layout adds this offset to its own. A swizzled layout
        must be static; if the swizzle is affine on the kept modes, the result is a plain layout.

    Example:
        %r = cute.slice(%l, %c) : !cute.layout<"(3,5,(2,4)):(40,8,(4,1))">, !cute.coord<"(_,2,(_,0))">
    """

    name = "cute.slice"

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        (kind, value), (_, coord) = operands
        part = slice_(coord, value)
        return [layout_like(part) if kind == "composed_layout" else Typed(kind, part)]


@cute_op
class DiceOp(SliceLikeOp):
    """Keeps the modes of a value at which the coordinate has an integer.

    Inference:
        The modes at integers; modes at ``_`` are dropped. For a composed layout, modes of the outer layout are dropped.
        The coordinate must be static.

    Example:
        %r = cute.dice(%l, %c) : !cute.layout<"((3,2),5):((2,1),6)">, !cute.coord<"((1,_),_)">
    """

    name = "cute.dice"

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        (kind, value), (_, coord) = operands
        return [Typed(kind, dice(coord, value))]


# ------------------------------------------------------------------------------------------------------------ inverses


class InverseOp(AlgebraOp):
    """Base of ``right_inverse`` and ``left_inverse``."""

    input = operand_def(LAYOUT)
    result = result_def(LAYOUT)


@cute_op
class RightInverseOp(InverseOp):
    """Returns the layout ``R`` with ``L(R(i)) = i`` on the longest range of indices of ``L`` that starts at 0.

    Inference:
        The right inverse. The shape must be static. The inverse ends before the first mode with a dynamic stride.

    Example:
        %r = cute.right_inverse(%l) : (!cute.layout<"(5,3):(3,1)">) -> !cute.layout<"(3,5):(5,1)">
    """

    name = "cute.right_inverse"

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        ((_, layout),) = operands
        if not is_static(layout.shape):
            raise AlgebraError(f"expected a static shape, got {payload_text(layout.shape)}")
        return [Typed("layout", right_inverse(layout))]


@cute_op
class LeftInverseOp(InverseOp):
    """Returns the layout ``R`` with ``R(L(i)) = i`` for each index ``i`` in the domain of ``L``.

    Inference:
        The left inverse. The layout must be static and injective. In ascending order, each stride must be a multiple of
        the previous stride.

    Example:
        %r = cute.left_inverse(%l) : (!cute.layout<"(3,4):(8,2)">) -> !cute.layout<"(2,4,3):(0,3,1)">
    """

    name = "cute.left_inverse"

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        ((_, layout),) = operands
        if not is_static(layout):
            raise AlgebraError(f"expected a static layout, got {payload_text(layout)}")
        return [Typed("layout", left_inverse(layout))]


OPS = ops_of(__name__)
