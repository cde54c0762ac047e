"""Layout ops applied to tensors: the op transforms the layout and keeps the iterator.

``slice`` also advances the iterator. For example, ``zipped_divide`` of ``!cute.memref<f32, gmem, "(?,?):(?,1)">`` by
``(16,128)`` is ``!cute.memref<f32, gmem, "((16,128),(?,?)):((?,1),(?{div=16},128))">``. Divisibility is always tracked
on tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from xdsl.ir import Attribute

from cute_dialect.algebra.arithmetic import tuple_add
from cute_dialect.algebra.leaf import Dyn
from cute_dialect.algebra.slicing import slice_and_offset
from cute_dialect.algebra.values import AnyLayout, ComposedLayout, Coord, IntTuple, Layout, Payload
from cute_dialect.dialect.memory_types import (
    CoordTensor,
    CoordTensorType,
    MemRef,
    MemRefType,
    TensorType,
    derived_alignment,
    ptr,
)
from cute_dialect.dialect.typed_values import Properties, Typed, tracked, wrap
from cute_dialect.dialect.types import CuteType

if TYPE_CHECKING:
    from cute_dialect.dialect.base import CuteOp

OFFSET_OPS = frozenset({"cute.slice"})
"""Ops that also advance the iterator, by the value of the layout at the fixed coordinates."""


def infer_lifted(cls: type[CuteOp], operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
    """Infer the result types of a layout op whose first operand is a tensor. Raises AlgebraError."""
    tensor = operand_types[0]
    assert isinstance(tensor, TensorType)
    layout = tracked(tensor.layout)
    rest = [Typed(t.kind, tracked(t.data)) for t in operand_types[1:] if isinstance(t, CuteType)]
    assert len(rest) == len(operand_types) - 1, "the kinds of the operands have been checked"
    kind = "composed_layout" if isinstance(layout, ComposedLayout) else "layout"
    cls.check_operand_kinds([wrap(Typed(kind, tensor.layout)), *operand_types[1:]])
    results = cls.infer([Typed(kind, layout), *rest], properties)
    types: list[Attribute] = []
    for r in results:
        if not isinstance(r.payload, Layout | ComposedLayout):
            types.append(wrap(r))
            continue
        offset = slice_offset(layout, rest[0].payload) if cls.name in OFFSET_OPS else None
        types.append(tensor_with(tensor, r.payload, offset))
    return types


def slice_offset(layout: Payload, coord: Payload) -> IntTuple:
    """Return the offset, in elements, that ``slice`` adds to the iterator of a tensor. Raises AlgebraError."""
    return slice_and_offset(cast("Coord", coord), layout)[1]


def tensor_with(tensor: TensorType, layout: AnyLayout, offset: IntTuple | None) -> Attribute:
    """Return the type of ``tensor`` with another layout and its iterator advanced by ``offset`` (None: by 0)."""
    if isinstance(tensor, MemRefType):
        p = tensor.data.ptr
        if offset is not None:
            assert isinstance(offset, int | Dyn), "the strides of a memref are integers"
            align = derived_alignment(p.alignment, offset, p.element)
            p = ptr(p.element, p.space, align, p.swizzle)
        return MemRefType(MemRef(p, layout))
    assert isinstance(tensor, CoordTensorType)
    it = tensor.data.iter if offset is None else tuple_add(tracked(tensor.data.iter), offset)
    return CoordTensorType(CoordTensor(it, layout))
