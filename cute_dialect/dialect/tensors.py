"""Tiles, partitions and offsets of tensors.

Each op changes the layout of a tensor and advances its iterator. One function of the algebra computes both. Inference
calls it with the payloads of types, and ``cute-expand-ops`` calls it with SSA values.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import cast

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.evaluation import evaluate
from cute_dialect.algebra.layout import recast_layout
from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf, add, divisibility
from cute_dialect.algebra.tiled_copy import local_partition, local_tile
from cute_dialect.algebra.tiling import Tiler
from cute_dialect.algebra.trees import depth, is_static, leaves, weakly_congruent
from cute_dialect.algebra.values import UNDERSCORE, AnyLayout, ComposedLayout, Coord, IntTuple, Layout, Payload
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.memory_types import MemRef, MemRefType, TensorType, element_bits, natural_alignment, ptr
from cute_dialect.dialect.tensor_lifting import tensor_with
from cute_dialect.dialect.typed_values import (
    DIVIDER,
    OneOfKinds,
    Properties,
    payload_text,
    tracked,
    type_weaker_or_equal,
)
from cute_dialect.dialect.types import CoordType, CuteType, LayoutType
from cute_dialect.dialect.views import MemoryOp, RecastOp, expect, expect_operands

Placed = tuple[AnyLayout, "IntTuple | None"]
"""New layout, and the offset added to the iterator (None: no offset)."""


class PlacedOp(MemoryOp):
    """Base of the ops that give a tensor another layout and advance its iterator.

    Subclasses implement :meth:`place`, which works on payloads; their dynamic leaves may carry SSA values.
    """

    @classmethod
    def check_kinds(cls, operand_types: Sequence[Attribute]) -> None:
        """Raise AlgebraError unless the operands after the tensor have the kinds that the op accepts."""
        raise NotImplementedError(cls.name)

    @classmethod
    def place(cls, layout: AnyLayout, operands: Sequence[Payload]) -> Placed:
        """Return the new layout and the offset. ``operands`` are the payloads of the operands after the tensor."""
        raise NotImplementedError(cls.name)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        tensor = operand_types[0]
        expect(tensor, TensorType, 0, "a tensor")
        assert isinstance(tensor, TensorType)
        cls.check_kinds(operand_types)
        payloads = [tracked(cast("CuteType", t).data) for t in operand_types[1:]]
        layout = tracked(tensor.layout)
        assert isinstance(layout, Layout | ComposedLayout)
        new, offset = cls.place(layout, payloads)
        return [tensor_with(tensor, new, offset)]


def _expect_kind(t: Attribute, kinds: OneOfKinds, index: int) -> None:
    if not kinds.accepts(t):
        raise AlgebraError(f"operand #{index} must be {kinds}, got {t}")


@cute_op
class LocalTileOp(PlacedOp):
    """Returns the tile of a tensor at a tile coordinate.

    Syntax: ``%b = cute.local_tile(%t, %tiler, %coord [, %proj]) : (T, TILER, COORD [, COORD]) -> T'``

    Inference:
        ``zipped_divide`` by the tiler, whose rest modes are then sliced at the coordinate: ``(tile…, rest…)``. Rest
        modes at ``_`` in the coordinate, or past its rank, are kept. An optional projection ``%proj`` has ``_`` for
        each element of tiler and coordinate without a mode in the tensor; these elements are skipped. The values of its
        other elements do not matter.

    Example:
        %b = cute.local_tile(%t, %tiler, %c) : (!cute.memref<f32, gmem, "(64,32):(32,1)">, !cute.tile<"[16:1;8:1]">, !cute.coord<"(1,2)">) -> !cute.memref<f32, gmem, "(16,8):(32,1)">
    """  # noqa: E501

    name = "cute.local_tile"
    tensor = operand_def()
    tiler = operand_def()
    coord = operand_def(CoordType)
    proj = opt_operand_def(CoordType)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, tensor: SSAValue, tiler: SSAValue, coord: SSAValue, proj: SSAValue | None = None):
        operands = [tensor, tiler, coord] if proj is None else [tensor, tiler, coord, proj]
        super().__init__(
            operands=[tensor, tiler, coord, proj], result_types=self.infer_types([o.type for o in operands], {})
        )

    @classmethod
    def check_kinds(cls, operand_types: Sequence[Attribute]) -> None:
        expect_operands(operand_types, 3, 4)
        _expect_kind(operand_types[1], DIVIDER, 1)
        for i, t in enumerate(operand_types[2:], 2):
            expect(t, CoordType, i, "a !cute.coord")

    @classmethod
    def place(cls, layout: AnyLayout, operands: Sequence[Payload]) -> Placed:
        tiler, coord, *proj = operands
        return local_tile(layout, cast("Tiler", tiler), cast("Coord", coord), cast("Coord", proj[0]) if proj else None)


@cute_op
class LocalPartitionOp(PlacedOp):
    """Returns one thread's partition of a tensor whose elements are distributed over a thread layout.

    Syntax: ``%p = cute.local_partition(%t, %threads, %tid) : (T, !cute.layout<"…">, !cute.coord<"?">) -> T'``

    Inference:
        ``zipped_divide`` by the mode sizes of the thread layout. The tile mode is then sliced at the coordinate ``(tid
        / stride_i) % extent_i`` of the thread; the rest modes are kept.

    Example:
        %p = cute.local_partition(%t, %threads, %tid) : (!cute.memref<f32, smem, "(8,16):(16,1)">, !cute.layout<"(4,8):(8,1)">, !cute.coord<"?">) -> !cute.memref<f32, smem, "(2,2):(64,8)">
    """  # noqa: E501

    name = "cute.local_partition"
    tensor = operand_def()
    threads = operand_def(LayoutType)
    tid = operand_def(CoordType)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, tensor: SSAValue, threads: SSAValue, tid: SSAValue):
        types = [tensor.type, threads.type, tid.type]
        super().__init__(operands=[tensor, threads, tid], result_types=self.infer_types(types, {}))

    @classmethod
    def check_kinds(cls, operand_types: Sequence[Attribute]) -> None:
        expect_operands(operand_types, 3)
        expect(operand_types[1], LayoutType, 1, "a !cute.layout")
        expect(operand_types[2], CoordType, 2, "a !cute.coord")

    @classmethod
    def place(cls, layout: AnyLayout, operands: Sequence[Payload]) -> Placed:
        threads, tid = operands
        assert isinstance(threads, Layout)
        if depth(tid) != 0 or tid is UNDERSCORE:
            raise AlgebraError(f"operand #2 must be a thread index, got {payload_text(tid)}")
        if not is_static(threads):
            raise AlgebraError(f"expected a static thread layout, got {payload_text(threads)}")
        return local_partition(layout, threads, cast("Leaf", tid))


@cute_op
class DomainOffsetOp(PlacedOp):
    """Shifts the domain of a tensor: coordinate ``c`` of the result is coordinate ``c + offset`` of the operand.

    Syntax: ``%u = cute.domain_offset(%t, %coord) : (T, !cute.coord<"…">) -> T'``

    Inference:
        The iterator advances by ``layout(coord)``; for a swizzled layout, the offset before the swizzle changes. The
        shape is unchanged, and coordinates are not checked against the bounds of the operand.

    Example:
        %u = cute.domain_offset(%t, %c) : (!cute.memref<f32, gmem, "(8,16):(16,1)">, !cute.coord<"(2,4)">) -> !cute.memref<f32, gmem, "(8,16):(16,1)">
    """  # noqa: E501

    name = "cute.domain_offset"
    tensor = operand_def()
    coord = operand_def(CoordType)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, tensor: SSAValue, coord: SSAValue):
        super().__init__(operands=[tensor, coord], result_types=self.infer_types([tensor.type, coord.type], {}))

    @classmethod
    def check_kinds(cls, operand_types: Sequence[Attribute]) -> None:
        expect_operands(operand_types, 2)
        expect(operand_types[1], CoordType, 1, "a !cute.coord")

    @classmethod
    def place(cls, layout: AnyLayout, operands: Sequence[Payload]) -> Placed:
        coord = cast("Coord", operands[0])
        plain = layout.outer if isinstance(layout, ComposedLayout) else layout
        if not weakly_congruent(coord, plain.shape):
            raise AlgebraError(
                f"expected a coordinate weakly congruent to the shape {payload_text(plain.shape)}, "
                f"got {payload_text(coord)}"
            )
        moved = evaluate(coord, plain)
        if isinstance(layout, ComposedLayout):
            if not isinstance(layout.offset, int | Dyn) or not isinstance(moved, int | Dyn):
                raise AlgebraError(f"expected an integer offset in the composed layout, got {payload_text(layout)}")
            return ComposedLayout(layout.inner, add(layout.offset, moved), layout.outer), None
        return layout, moved


def recast(tensor: TensorType, layout: AnyLayout, element: Attribute) -> AnyLayout:
    """Return the layout of a memref reinterpreted as elements of another width. Raises AlgebraError."""
    assert isinstance(tensor, MemRefType)
    new, old = element_bits(element), element_bits(tensor.element)
    if new > old:
        _check_whole(layout, new // gcd(new, old), f"{element} ({new} bits)")
    if isinstance(layout, ComposedLayout):
        return recast_layout(layout, new, old)
    return recast_layout(layout, new, old)


def _check_whole(layout: AnyLayout, n: int, wide: str) -> None:
    """Raise AlgebraError unless each element of the recast tensor consists of ``n`` adjacent elements of the tensor."""
    plain = layout.outer if isinstance(layout, ComposedLayout) else layout
    for s, d in zip(leaves(plain.shape), leaves(plain.stride)):
        if s == 1 or d == 0 or divisibility(cast("Leaf", d)) % n == 0:
            continue
        if not (isinstance(d, int) and n % d == 0 and divisibility(cast("Leaf", s)) % (n // abs(d)) == 0):
            raise AlgebraError(
                f"expected modes divisible into elements of {wide}, each {n} elements of the tensor, got "
                f"{payload_text(s)}:{payload_text(d)} in {payload_text(layout)}"
            )


def recast_type(tensor: Attribute, element: Attribute) -> MemRefType:
    """Return the type of a tensor recast to an element type. Raises AlgebraError."""
    expect(tensor, MemRefType, 0, "a !cute.memref")
    assert isinstance(tensor, MemRefType)
    layout = tracked(tensor.layout)
    assert isinstance(layout, Layout | ComposedLayout)
    new = recast(tensor, layout, element)
    p = tensor.data.ptr
    natural = natural_alignment(element)
    if p.alignment % natural:
        raise AlgebraError(
            f"expected an alignment of at least the {natural} bytes of {element}, got {p.alignment}; "
            f"write align<{natural}> in the type of the tensor"
        )
    return MemRefType(MemRef(ptr(element, p.space, p.alignment, p.swizzle), new))


@cute_op
class RecastTensorOp(RecastOp):
    """Reinterprets the elements of a tensor as another type.

    Syntax: ``%u = cute.recast_tensor(%t) : T to T'``

    Inference:
        The element type of the result type is given. Its layout is ``recast_layout`` of the operand's layout; alignment
        and swizzle (in bytes) are kept.

    Example:
        %u = cute.recast_tensor(%t) : !cute.memref<f16, smem, align<16>, "(8,64):(64,1)"> to !cute.memref<i32, smem, align<16>, "(8,32):(32,1)">
    """  # noqa: E501

    name = "cute.recast_tensor"
    tensor = operand_def(MemRefType)
    result = result_def(MemRefType)
    traits = traits_def(Pure())

    def __init__(self, tensor: SSAValue, element: Attribute):
        super().__init__(operands=[tensor], result_types=[recast_type(tensor.type, element)])

    def verify_(self) -> None:
        t = self.result.type
        assert isinstance(t, MemRefType)
        try:
            expected = recast_type(self.tensor.type, t.element)
        except AlgebraError as e:
            raise VerifyException(f"'{self.name}' op {e}") from None
        if not type_weaker_or_equal(t, expected):
            raise VerifyException(f"'{self.name}' op result #0: expected {expected}, got {t}")


OPS = ops_of(__name__)
