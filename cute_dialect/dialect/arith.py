"""Arithmetic on trees and comparison of values."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i1
from xdsl.interfaces import ConditionallySpeculatableInterface
from xdsl.ir import Attribute
from xdsl.irdl import EqAttrConstraint, operand_def, result_def, traits_def
from xdsl.traits import NoMemoryEffect

from cute_dialect.algebra.arithmetic import elem_less, equal, shape_div, tuple_add, tuple_sub
from cute_dialect.algebra.leaf import AlgebraError, Condition
from cute_dialect.algebra.tiling import ceil_div
from cute_dialect.algebra.trees import tree_leaves
from cute_dialect.dialect.base import AlgebraOp, InferredOp, cute_op, ops_of
from cute_dialect.dialect.typed_values import (
    ARITH,
    COMPARABLE,
    ORDERABLE,
    SHAPE,
    OneOfKinds,
    Properties,
    Typed,
    track,
    typed,
)
from cute_dialect.dialect.types import CuteType


class TupleArithOp(AlgebraOp):
    """Base of the sum and the difference of two trees of the same kind."""

    lhs = operand_def(ARITH)
    rhs = operand_def(ARITH)
    result = result_def(ARITH)


def check_same_kind(operands: Sequence[Typed]) -> None:
    """Raise AlgebraError unless both operands are of the same kind."""
    (lhs, _), (rhs, _) = operands
    if lhs != rhs:
        raise AlgebraError(f"expected operands of the same kind, got !cute.{lhs} and !cute.{rhs}")


@cute_op
class TupleAddOp(TupleArithOp):
    """Adds two trees.

    Inference:
        The sum of each pair of leaves. If one tuple is longer, its extra elements are copied. Both operands must have
        the same kind. At the top level a static 0 is the identity, and any other scalar combined with a tuple is
        rejected.

    Example:
        %r = cute.tuple_add(%a, %b) : (!cute.shape<"(1,2,3)">, !cute.shape<"(4,5)">) -> !cute.shape<"(5,7,3)">
    """

    name = "cute.tuple_add"

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        check_same_kind(operands)
        (kind, lhs), (_, rhs) = operands
        return [Typed(kind, tuple_add(lhs, rhs))]


@cute_op
class TupleSubOp(TupleArithOp):
    """Subtracts two trees.

    Inference:
        The difference of each pair of leaves. If one tuple is longer, its extra elements are copied without negation,
        even those of the right operand. Both operands must have the same kind. At the top level a static 0 on the right
        is the identity, and any other scalar combined with a tuple is rejected.

    Example:
        %r = cute.tuple_sub(%a, %b) : (!cute.shape<"(7,8)">, !cute.shape<"(1,2,5)">) -> !cute.shape<"(6,6,5)">
    """

    name = "cute.tuple_sub"

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        check_same_kind(operands)
        (kind, lhs), (_, rhs) = operands
        return [Typed(kind, tuple_sub(lhs, rhs))]


# ------------------------------------------------------------------------------------------------------------ division


class DivisionOp(InferredOp, ConditionallySpeculatableInterface):
    """Base of the division ops.

    They have no memory effect, but may be hoisted only if the divisor is static and nonzero.
    """

    traits = traits_def(NoMemoryEffect())

    def is_speculatable(self) -> bool:
        divisor = self.operands[1].type
        if not isinstance(divisor, CuteType) or divisor.kind == "tile":
            return False
        return all(isinstance(leaf, int) and leaf != 0 for leaf in tree_leaves(divisor.data))  # pyright: ignore[reportArgumentType]


@cute_op
class ShapeDivOp(DivisionOp):
    """Divides a shape by a shape; in each pair of scalars one must divide the other.

    Inference:
        The quotient:

        * Tuple by tuple: mode by mode.
        * Tuple by scalar: each mode divides out its common part of the divisor, and the next mode is divided by the
          remaining part.
        * Scalar by tuple: the scalar is divided by the product of the tuple.
        * Scalar by scalar: the truncated quotient. If the quotient is 0, the product of the two signs.

    Example:
        %r = cute.shape_div(%a, %b) : (!cute.shape<"(6,4)">, !cute.shape<"12">) -> !cute.shape<"(1,2)">
    """

    name = "cute.shape_div"
    lhs = operand_def(SHAPE)
    rhs = operand_def(SHAPE)
    result = result_def(SHAPE)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        (_, lhs), (_, rhs) = operands
        return [Typed("shape", shape_div(lhs, rhs))]


@cute_op
class CeilDivOp(DivisionOp):
    """Returns the number of tiles that cover a shape: the quotient of two shapes, rounded up.

    Inference:
        The quotients, rounded up:

        * Tuple by tuple: mode by mode. Extra modes of the input are copied.
        * Tuple by scalar: each mode divides out its common part of the divisor, and the next mode is divided by the
          remaining part.
        * Scalar by tuple: the scalar is divided by the product of the tuple.
        * By a tile: mode by mode. A layout slot gives the shape of its complement in the mode.

        Underscores and static zeros in the divisor are rejected.

    Example:
        %r = cute.ceil_div(%s, %t) : (!cute.shape<"(7,9,4)">, !cute.int_tuple<"(2,4)">) -> !cute.shape<"(4,3,4)">
        %q = cute.ceil_div(%u, %v) : (!cute.shape<"(8,18)">, !cute.tile<"[2:1;4:1]">) -> !cute.shape<"(4,5)">
    """

    name = "cute.ceil_div"
    input = operand_def(ARITH)
    tiler = operand_def(OneOfKinds("int_tuple", "shape", "tile"))
    result = result_def(ARITH)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        (kind, value), (_, tiler) = operands
        return [Typed(kind, ceil_div(value, tiler))]


# ---------------------------------------------------------------------------------------------------------- comparison


class ComparisonOp(AlgebraOp):
    """Base of the ops that return an ``i1``."""

    result = result_def(EqAttrConstraint(i1))

    @classmethod
    def infer_condition(cls, operands: Sequence[Typed]) -> Condition:
        """Return the condition if the operand types decide it, otherwise an ``i1`` leaf.

        Raises AlgebraError under the same conditions as ``infer``.
        """
        raise NotImplementedError(cls.name)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        cls.check_operand_kinds(operand_types)
        cls.infer_condition(track([typed(t) for t in operand_types]))
        return [i1]


@cute_op
class ElemLessOp(ComparisonOp):
    """Returns true if each leaf of one tree is less than the matching leaf of another.

    Inference:
        ``i1``. The comparison is signed; two empty tuples ``()`` compare true. The trees must be congruent but may be
        of different kinds. A coordinate must not contain ``_``.

    Example:
        %p = cute.elem_less(%c, %s) : (!cute.coord<"(?,3)">, !cute.shape<"(6,?)">) -> i1
    """

    name = "cute.elem_less"
    lhs = operand_def(ORDERABLE)
    rhs = operand_def(ORDERABLE)

    @classmethod
    def infer_condition(cls, operands: Sequence[Typed]) -> Condition:
        (_, lhs), (_, rhs) = operands
        return elem_less(lhs, rhs)


@cute_op
class EqualOp(ComparisonOp):
    """Returns true if two values of the same kind are equal.

    Inference:
        ``i1``. The result is false if the structures differ. Otherwise all scalars are compared, in the order of
        ``cute.get_scalars``.

    Example:
        %p = cute.equal(%a, %b) : (!cute.layout<"(?,6):(6,1)">, !cute.layout<"(4,6):(6,1)">) -> i1
    """

    name = "cute.equal"
    lhs = operand_def(COMPARABLE)
    rhs = operand_def(COMPARABLE)

    @classmethod
    def infer_condition(cls, operands: Sequence[Typed]) -> Condition:
        check_same_kind(operands)
        (_, lhs), (_, rhs) = operands
        return equal(lhs, rhs)


OPS = ops_of(__name__)
