"""Products, divides and tilings of layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.irdl import operand_def, opt_operand_def, result_def

from cute_dialect.algebra import tiling
from cute_dialect.algebra.values import AnyLayout, Layout
from cute_dialect.dialect.base import AlgebraOp, cute_op, ops_of
from cute_dialect.dialect.typed_values import ANY_LAYOUT, DIVIDER, INT_TUPLE, LAYOUT, SHAPE, Properties, Typed

# ------------------------------------------------------------------------------------------------------------ products


class ProductOp(AlgebraOp):
    """Base of the product ops: ``rhs`` determines the number and the order of the repetitions of ``lhs``."""

    lhs = operand_def(ANY_LAYOUT)
    rhs = operand_def(LAYOUT)
    result = result_def(ANY_LAYOUT)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        (kind, lhs), (_, rhs) = operands
        product: Callable[[AnyLayout, Layout], AnyLayout] = getattr(tiling, cls.name.removeprefix("cute."))
        return [Typed(kind, product(lhs, rhs))]


@cute_op
class LogicalProductOp(ProductOp):
    """Repeats a layout in the order of another layout: ``(lhs, repetitions)``.

    Inference:
        ``(A, complement(A) o B)`` for ``lhs = A`` and ``rhs = B``. ``lhs`` must be static, ``rhs`` must not have basis
        strides, and the repetitions must fit in the gaps of ``lhs``.

    Example:
        %r = cute.logical_product(%a, %b) : (!cute.layout<"(2,5):(5,1)">, !cute.layout<"(3,4):(1,3)">) -> !cute.layout<"((2,5),(3,4)):((5,1),(10,30))">
    """  # noqa: E501

    name = "cute.logical_product"


@cute_op
class ZippedProductOp(ProductOp):
    """Logical product with the tile and the repetitions as one mode each: ``(lhs, repetitions)``.

    Inference:
        The result of ``cute.logical_product``, with two modes at the top level.

    Example:
        %r = cute.zipped_product(%a, %b) : (!cute.layout<"(2,5):(5,1)">, !cute.layout<"(3,4):(1,3)">) -> !cute.layout<"((2,5),(3,4)):((5,1),(10,30))">
    """  # noqa: E501

    name = "cute.zipped_product"


@cute_op
class TiledProductOp(ProductOp):
    """Logical product with the modes of the repetitions at the top level: ``(lhs, repetition, repetition, …)``.

    Inference:
        The result of ``cute.logical_product``, with the modes of the repetitions at the top level.

    Example:
        %r = cute.tiled_product(%a, %b) : (!cute.layout<"(2,5):(5,1)">, !cute.layout<"(3,4):(1,3)">) -> !cute.layout<"((2,5),3,4):((5,1),10,30)">
    """  # noqa: E501

    name = "cute.tiled_product"


@cute_op
class FlatProductOp(ProductOp):
    """Logical product with the modes of the tile and of the repetitions at the top level.

    Inference:
        The result of ``cute.logical_product``, with the modes of both parts at the top level.

    Example:
        %r = cute.flat_product(%a, %b) : (!cute.layout<"(2,5):(5,1)">, !cute.layout<"(3,4):(1,3)">) -> !cute.layout<"(2,5,3,4):(5,1,10,30)">
    """  # noqa: E501

    name = "cute.flat_product"


@cute_op
class BlockedProductOp(ProductOp):
    """Logical product with tile and repetitions paired mode by mode, as contiguous blocks.

    Inference:
        The result of ``cute.logical_product`` of the operands padded to the same rank. Mode ``i`` of the result is
        ``(lhs_i, repetitions_i)``.

    Example:
        %r = cute.blocked_product(%a, %b) : (!cute.layout<"(2,5):(5,1)">, !cute.layout<"(3,4):(1,3)">) -> !cute.layout<"((2,3),(5,4)):((5,10),(1,30))">
    """  # noqa: E501

    name = "cute.blocked_product"


@cute_op
class RakedProductOp(ProductOp):
    """Logical product with tile and repetitions paired mode by mode, interleaved.

    Inference:
        The result of ``cute.blocked_product`` with each pair swapped to ``(repetitions_i, lhs_i)``, coalesced mode by
        mode.

    Example:
        %r = cute.raked_product(%a, %b) : (!cute.layout<"(2,5):(5,1)">, !cute.layout<"(3,4):(1,3)">) -> !cute.layout<"((3,2),(4,5)):((10,5),(30,1))">
    """  # noqa: E501

    name = "cute.raked_product"


# ------------------------------------------------------------------------------------------------------------- divides


class DivideOp(AlgebraOp):
    """Base of the divide ops, which split the input into tiles and the rest."""

    LIFT = True
    input = operand_def(ANY_LAYOUT)
    tiler = operand_def(DIVIDER)
    result = result_def(ANY_LAYOUT)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        (kind, value), (_, tiler) = operands
        divide: Callable[[AnyLayout, tiling.Tiler], AnyLayout] = getattr(tiling, cls.name.removeprefix("cute."))
        return [Typed(kind, divide(value, tiler))]


@cute_op
class LogicalDivideOp(DivideOp):
    """Splits each mode into ``(tile, rest)``.

    Inference:
        The rule depends on the kind of the tiler:

        * Layout ``T``: ``A o (T, complement(T, shape(A)))``.
        * Tile: mode by mode. ``_`` keeps a mode, and modes beyond the rank of the tile are kept.
        * Shape: the same as the tile with a slot ``n:1`` for each extent ``n``, and ``1:0`` for extent 1. A size that
          is not a multiple of the tile is rounded up.

    Example:
        %r = cute.logical_divide(%l, %t) : (!cute.layout<"(12,10):(10,1)">, !cute.shape<"(4,5)">) -> !cute.layout<"((4,3),(5,2)):((10,40),(1,5))">
    """  # noqa: E501

    name = "cute.logical_divide"


@cute_op
class ZippedDivideOp(DivideOp):
    """Splits a layout into tiles and gathers the tile modes: ``((tiles), (rests))``.

    Inference:
        The result of ``cute.logical_divide`` with the tiles in mode 0, and the rests and undivided modes in mode 1.
        Each divided mode must have rank 2.

    Example:
        %r = cute.zipped_divide(%l, %t) : (!cute.layout<"(?,?):(?,1)">, !cute.shape<"(16,128)">) -> !cute.layout<"((16,128),(?,?)):((?,1),(?,128))">
    """  # noqa: E501

    name = "cute.zipped_divide"


@cute_op
class TiledDivideOp(DivideOp):
    """Splits a layout into tiles with the rest modes at the top level: ``((tiles), rest, rest, …)``.

    Inference:
        The result of ``cute.zipped_divide`` with the modes of the rest at the top level.

    Example:
        %r = cute.tiled_divide(%l, %t) : (!cute.layout<"(12,10,3):(10,1,120)">, !cute.shape<"(4,5)">) -> !cute.layout<"((4,5),3,2,3):((10,1),40,5,120)">
    """  # noqa: E501

    name = "cute.tiled_divide"


@cute_op
class FlatDivideOp(DivideOp):
    """Splits a layout into tiles with all modes at the top level: ``(tile, …, rest, …)``.

    Inference:
        The result of ``cute.zipped_divide`` with the modes of both parts at the top level.

    Example:
        %r = cute.flat_divide(%l, %t) : (!cute.layout<"(12,10,3):(10,1,120)">, !cute.shape<"(4,5)">) -> !cute.layout<"(4,5,3,2,3):(10,1,40,5,120)">
    """  # noqa: E501

    name = "cute.flat_divide"


@cute_op
class TileToShapeOp(AlgebraOp):
    """Repeats a block until it covers a shape.

    Inference:
        The blocked product with as many blocks per mode as cover the shape. The order of the modes is a static
        permutation; by default the first mode varies fastest. The rank of the block must not exceed the rank of the
        shape.

    Example:
        %r = cute.tile_to_shape(%b, %s, %o) : (!cute.layout<"(2,3):(3,1)">, !cute.shape<"(4,6)">, !cute.int_tuple<"(1,0)">) -> !cute.layout<"((2,2),(3,2)):((3,12),(1,6))">
    """  # noqa: E501

    name = "cute.tile_to_shape"
    LIFT = True
    input = operand_def(ANY_LAYOUT)
    shape = operand_def(SHAPE)
    order = opt_operand_def(INT_TUPLE)
    result = result_def(ANY_LAYOUT)

    @classmethod
    def infer(cls, operands: Sequence[Typed], properties: Properties) -> Sequence[Typed]:
        (kind, value), (_, shape) = operands[:2]
        order = operands[2].payload if len(operands) > 2 else None
        return [Typed(kind, tiling.tile_to_shape(value, shape, order))]


OPS = ops_of(__name__)
