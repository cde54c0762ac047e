"""Layout algebra: composition, coalescing, complement, inverses, slicing, regrouping."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from cute_dialect.algebra.complements import complement
from cute_dialect.algebra.compose import composition
from cute_dialect.algebra.inverses import left_inverse, right_inverse
from cute_dialect.algebra.layout import (
    coalesce,
    dice,
    group_modes,
    recast_layout,
    slice_,
)
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.trees import flatten, is_static, tree_flatten
from cute_dialect.ops.asm import int_property, parse_ints, print_ints
from cute_dialect.ops.base import CuteOp, cute_op
from cute_dialect.ops.typed_values import (
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
class CompositionOp(CuteOp):
    """A layout read through another: ``c -> lhs(rhs(c))``.

    Syntax:
        ``cute.composition(`` lhs ``,`` rhs ``)`` attr-dict ``:`` functional-type

    Inference:
        By a layout: functional composition; a step that neither divides nor covers a mode of ``lhs`` is rejected.  By a
        tile: mode by mode, surplus modes of ``lhs`` are dropped, ``_`` keeps a mode.  By a shape: as by the tile of
        ``n:1``, of ``1:0`` for 1.  Of a composed layout the outer part is composed.

    Example:
        %r = cute.composition(%a, %b) : (!cute.layout<"(6,10):(10,1)">, !cute.layout<"(3,4):(2,6)">) -> !cute.layout<"(3,4):(20,1)">
        %q = cute.composition(%a, %t) : (!cute.layout<"(6,10):(10,1)">, !cute.tile<"[3:2;_]">) -> !cute.layout<"(3,10):(20,1)">
    """  # noqa: E501

    name = "cute.composition"
    LIFT = True
    lhs = operand_def(ANY_LAYOUT)
    rhs = operand_def(OneOfKinds("layout", "shape", "tile"))
    result = result_def(ANY_LAYOUT)
    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation, result_type: Attribute | None = None):
        self.build_inferred([lhs, rhs], result_types=result_type and [result_type])

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        (_, lhs), (_, rhs) = operands
        return [layout_like(composition(lhs, rhs))]


@cute_op
class CoalesceOp(CuteOp):
    """The same function with as few modes as possible.

    Syntax:
        ``cute.coalesce(`` input [``,`` profile] ``)`` attr-dict ``:`` functional-type

    Inference:
        Flattened, neighbours merged where they continue each other, extents 1 dropped; depth at most 1.  With a profile
        (a coordinate; its structure counts) every mode by itself.  Dynamic modes are never merged.  A profile of larger
        rank than the layout is rejected.

    Example:
        %r = cute.coalesce(%l) : (!cute.layout<"(2,(1,6)):(1,(6,2))">) -> !cute.layout<"12:1">
        %q = cute.coalesce(%m, %p) : (!cute.layout<"(5,(4,2)):(1,(5,20))">, !cute.coord<"(1,1)">) -> !cute.layout<"(5,8):(1,5)">
    """  # noqa: E501

    name = "cute.coalesce"
    LIFT = True
    input = operand_def(ANY_LAYOUT)
    profile = opt_operand_def(COORD)
    result = result_def(ANY_LAYOUT)
    traits = traits_def(Pure())

    def __init__(
        self,
        input: SSAValue | Operation,
        profile: SSAValue | Operation | None = None,
        result_type: Attribute | None = None,
    ):
        self.build_inferred([input] if profile is None else [input, profile], None, result_type and [result_type])

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        _, value = operands[0]
        profile = operands[1].payload if len(operands) > 1 else None
        return [layout_like(coalesce(value, profile))]


@cute_op
class FlattenOp(CuteOp):
    """The modes without nesting.

    Syntax:
        ``cute.flatten(`` input ``)`` attr-dict ``:`` functional-type

    Inference:
        The tuple of the leaves; a scalar stays a scalar.  Of a layout shape and stride, of a composed layout the outer
        part, of a tile its slots.

    Example:
        %r = cute.flatten(%l) : (!cute.layout<"(2,(5,(3))):(15,(3,(1)))">) -> !cute.layout<"(2,5,3):(15,3,1)">
    """

    name = "cute.flatten"
    LIFT = True
    input = operand_def(INDEXABLE)
    result = result_def(INDEXABLE)
    traits = traits_def(Pure())

    def __init__(self, input: SSAValue | Operation, result_type: Attribute | None = None):
        self.build_inferred([input], None, result_type and [result_type])

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        ((kind, value),) = operands
        return [Typed(kind, (tree_flatten if kind == "tile" else flatten)(value))]


@cute_op
class ComplementOp(CuteOp):
    """The layout that reaches what another leaves out.

    Syntax:
        ``cute.complement(`` input [``,`` cotarget] ``)`` attr-dict ``:`` functional-type

    Inference:
        Without a cotarget: the gaps of a static layout, and last a mode of extent 1 with the stride at which it would
        repeat.  With a cotarget (a shape, or the shape of a layout): up to its size.  Rejects layouts that are not
        injective.

    Example:
        %r = cute.complement(%l) : (!cute.layout<"(2,3):(4,12)">) -> !cute.layout<"(4,1):(1,36)">
        %q = cute.complement(%l, %m) : (!cute.layout<"(2,3):(4,12)">, !cute.shape<"48">) -> !cute.layout<"(4,2):(1,36)">
    """

    name = "cute.complement"
    input = operand_def(LAYOUT)
    cotarget = opt_operand_def(OneOfKinds("shape", "layout"))
    result = result_def(LAYOUT)
    traits = traits_def(Pure())

    def __init__(
        self,
        input: SSAValue | Operation,
        cotarget: SSAValue | Operation | None = None,
        result_type: Attribute | None = None,
    ):
        self.build_inferred([input] if cotarget is None else [input, cotarget], None, result_type and [result_type])

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        _, layout = operands[0]
        if len(operands) > 1:
            return [Typed("layout", complement(layout, operands[1].payload))]
        if not is_static(layout):
            raise AlgebraError(f"expected a static layout where there is no cotarget, got {payload_text(layout)}")
        return [Typed("layout", complement(layout))]


@cute_op
class GroupModesOp(CuteOp):
    """Some neighbouring modes wrapped into one.

    Syntax:
        ``cute.group_modes<`` begin ``,`` end ``> (`` input ``)`` attr-dict ``:`` functional-type

    Inference:
        Top-level modes ``begin … end-1`` become one tuple mode; a scalar counts as one mode.  Needs
        ``0 <= begin < end <= rank``.

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
    traits = traits_def(Pure())

    def __init__(self, input: SSAValue | Operation, begin: int, end: int, result_type: Attribute | None = None):
        properties = {"begin": IntegerAttr(begin, i32), "end": IntegerAttr(end, i32)}
        self.build_inferred([input], properties, result_type and [result_type])

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        ((kind, value),) = operands
        begin, end = int_property(properties, "begin"), int_property(properties, "end")
        return [Typed(kind, group_modes(value, begin, end))]

    @classmethod
    def parse_prefix(cls, parser: Parser) -> dict[str, Attribute]:
        return parse_ints(parser, "begin", "end")

    def print_prefix(self, printer: Printer) -> None:
        print_ints(printer, self.properties, "begin", "end")


@cute_op
class RecastLayoutOp(CuteOp):
    """A layout of elements of one width in units of another.

    Syntax:
        ``cute.recast_layout<`` new bits ``,`` old bits ``> (`` src ``)`` attr-dict ``:`` type ``->`` type

    Inference:
        Wider elements divide extents and strides (rounding up), narrower ones multiply; otherwise both by way of the
        common factor.  Of a composed layout all three parts.  Basis strides are rejected.

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
    traits = traits_def(Pure())

    def __init__(
        self, src: SSAValue | Operation, new_type_bits: int, old_type_bits: int, result_type: Attribute | None = None
    ):
        properties = {
            "new_type_bits": IntegerAttr(new_type_bits, i32),
            "old_type_bits": IntegerAttr(old_type_bits, i32),
        }
        self.build_inferred([src], properties, result_type and [result_type])

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        ((_, src),) = operands
        new, old = int_property(properties, "new_type_bits"), int_property(properties, "old_type_bits")
        return [layout_like(recast_layout(src, new, old))]

    @classmethod
    def parse_prefix(cls, parser: Parser) -> dict[str, Attribute]:
        return parse_ints(parser, "new_type_bits", "old_type_bits")

    def print_prefix(self, printer: Printer) -> None:
        print_ints(printer, self.properties, "new_type_bits", "old_type_bits")


# ------------------------------------------------------------------------------------------------------------- slicing


class SliceLikeOp(CuteOp):
    """Base of ``slice`` and ``dice``."""

    FORM = "inferred"
    LIFT = True
    input = operand_def(SLICEABLE)
    coord = operand_def(COORD)
    result = result_def(SLICEABLE)
    traits = traits_def(Pure())

    def __init__(self, input: SSAValue | Operation, coord: SSAValue | Operation, result_type: Attribute | None = None):
        self.build_inferred([input, coord], None, result_type and [result_type])


@cute_op
class SliceOp(SliceLikeOp):
    """The modes of a value that a coordinate leaves open.

    Syntax:
        ``cute.slice(`` input ``,`` coord ``)`` attr-dict ``:`` type ``,`` type

    Inference:
        Keeps what stands at ``_`` and drops the integers; the offset that they contribute is ``cute.layout_eval``.  A
        composed layout keeps it: in the offset if the inner part is a layout.  A swizzled layout must be static; where
        the swizzle acts affinely on the kept modes the result is a plain layout.

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
    """The modes of a value that a coordinate fixes.

    Syntax:
        ``cute.dice(`` input ``,`` coord ``)`` attr-dict ``:`` type ``,`` type

    Inference:
        Keeps what stands at an integer and drops ``_``; of a composed layout in the outer part.  The coordinate must be
        static.

    Example:
        %r = cute.dice(%l, %c) : !cute.layout<"((3,2),5):((2,1),6)">, !cute.coord<"((1,_),_)">
    """

    name = "cute.dice"

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        (kind, value), (_, coord) = operands
        return [Typed(kind, dice(coord, value))]


# ------------------------------------------------------------------------------------------------------------ inverses


class InverseOp(CuteOp):
    """Base of the inverses."""

    input = operand_def(LAYOUT)
    result = result_def(LAYOUT)
    traits = traits_def(Pure())

    def __init__(self, input: SSAValue | Operation, result_type: Attribute | None = None):
        self.build_inferred([input], None, result_type and [result_type])


@cute_op
class RightInverseOp(InverseOp):
    """The layout ``R`` with ``L(R(i)) = i`` on the longest contiguous start of the codomain.

    Syntax:
        ``cute.right_inverse(`` input ``)`` attr-dict ``:`` functional-type

    Inference:
        Needs a static shape; a dynamic stride ends the inverse.

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
    """The layout ``R`` with ``R(L(i)) = i`` on the domain.

    Syntax:
        ``cute.left_inverse(`` input ``)`` attr-dict ``:`` functional-type

    Inference:
        Needs a static layout whose strides, in order, are multiples of the extent below them.

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


OPS: list[type[CuteOp]] = [
    CompositionOp,
    CoalesceOp,
    FlattenOp,
    ComplementOp,
    GroupModesOp,
    RecastLayoutOp,
    SliceOp,
    DiceOp,
    RightInverseOp,
    LeftInverseOp,
]
"""All ops of this module."""
