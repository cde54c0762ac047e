"""``convert-cute-algo-to-arch`` lowering of ``make_tma_load_im2col``, ``…_store_…`` and ``…_reduce_…`` to scalars."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from xdsl.dialects.builtin import i64
from xdsl.ir import Operation, SSAValue

from cute_dialect.algebra.leaf import Leaf
from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import Layout
from cute_dialect.cute_nvgpu.tma import im2col_ops as im2col
from cute_dialect.cute_nvgpu.tma.im2col_types import Im2colAtomType
from cute_dialect.dialect import views
from cute_dialect.dialect.memory_types import MemRefType, element_bits
from cute_dialect.passes.lowering.insertion import InsertionPoint


def _make(op: Operation) -> None:
    site = InsertionPoint(op)
    gmem = op.operands[0]
    t, atom = gmem.type, op.results[0].type
    assert isinstance(t, MemRefType) and isinstance(atom, Im2colAtomType)
    layout = t.layout if is_static(t.layout) else site.bound(site.emit(views.GetLayoutOp(gmem)))
    assert isinstance(layout, Layout)
    size = element_bits(t.element) // 8
    extents = [_wide(site, n, 1) for n in cast("tuple[Leaf, ...]", layout.shape)]
    strides = [_wide(site, n, size) for n in cast("tuple[Leaf, ...]", layout.stride)[1:]]
    made = im2col.MakeIm2colMapOp(site.emit(views.GetIterOp(gmem)), extents, strides, atom)
    op.results[0].replace_all_uses_with(site.emit(made))


def _wide(site: InsertionPoint, leaf: Leaf, times: int) -> SSAValue:
    """Return the product of a leaf and a constant as an i64."""
    if isinstance(leaf, int):
        return site.constant(leaf * times, i64)
    return site.emitter.value(leaf, 64) if times == 1 else site.emitter.binary("mul", leaf, times, 64)


HANDLERS: Mapping[str, Callable[[Operation], None]] = {
    "cute_nvgpu.make_tma_load_im2col": _make,
    "cute_nvgpu.make_tma_store_im2col": _make,
    "cute_nvgpu.make_tma_reduce_im2col": _make,
}
"""Op name -> function that lowers it in place."""
