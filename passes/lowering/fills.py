"""``convert-cute-algo-to-arch`` for ``cute.fill`` and ``cute.clear``.

Registers are written element by element, and memory with the widest accesses that the type allows.  A few accesses are
unrolled; more become a loop::

    cute.clear(%s) : (!cute.memref<f32, smem, align<16>, "1024:1">) -> ()

becomes 256 iterations of one 16-byte store.
"""

from __future__ import annotations

from math import prod
from typing import cast

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import AnyFloat, FloatAttr, VectorType, i32
from xdsl.ir import Attribute, Block, Region, SSAValue

from cute_dialect.algebra.evaluation import evaluate
from cute_dialect.algebra.leaf import Dyn, Leaf
from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import Layout
from cute_dialect.dialect import memory, views
from cute_dialect.dialect.memory_types import MemRefType, integer_width
from cute_dialect.dialect.types import LayoutType
from cute_dialect.ir.editing import make_op
from cute_dialect.passes.lowering.copying import MAX_BITS, Mode, Side, plan, side_of
from cute_dialect.passes.lowering.insertion import InsertionPoint
from cute_dialect.spaces import AddressSpace

MAX_UNROLLED = 32
"""Largest number of accesses that are unrolled."""


def clear(site: InsertionPoint, tensor: SSAValue) -> None:
    """Set every element of a tensor with static shape to zero."""
    t = tensor.type
    assert isinstance(t, MemRefType)
    fill(site, tensor, _zero(site, t.element))


def _zero(site: InsertionPoint, element: Attribute) -> SSAValue:
    if integer_width(element) is not None:
        return site.constant(0, element)
    return site.emit(arith.ConstantOp(FloatAttr(0.0, cast("AnyFloat", element)), element))


def fill(site: InsertionPoint, tensor: SSAValue, value: SSAValue) -> None:
    """Set every element of a tensor with static shape.  Raises AlgebraError for layouts that cannot be planned."""
    t = tensor.type
    assert isinstance(t, MemRefType)
    layout = t.layout if is_static(t.layout) else site.bound(site.emit(views.GetLayoutOp(tensor)))
    side = side_of(t, layout)  # type: ignore[arg-type]
    # Plan a copy from a source with one register per element.
    source = Side(
        MemRefType(t.data._replace(ptr=t.data.ptr._replace(space=AddressSpace.rmem, align=0, swizzle=None))),
        side.layout,
    )
    chosen = plan([source, side], MAX_BITS)
    if t.space.per_thread or (chosen.width == 1 and prod(m.extent for m in chosen.loops) <= MAX_UNROLLED):
        for step in chosen.steps():
            index = chosen.offset(step, 2)
            assert isinstance(index, int)
            site.add(memory.StoreOp(tensor, site.coordinate(index), value))
        return
    it = site.emit(views.GetIterOp(tensor))
    new = _splat(site, value, chosen.width)
    view = site.static(LayoutType(Layout(chosen.width, 1)))

    def store(offset: Leaf) -> None:
        moved = site.moved(it, side.place(offset))
        site.add(memory.StoreVecOp(new, site.emit(views.MakeViewOp(moved, view))))

    if prod(m.extent for m in chosen.loops) <= MAX_UNROLLED:
        for step in chosen.steps():
            store(chosen.offset(step, 1))
        return
    _loop(site, chosen.loops, store)


def _loop(site: InsertionPoint, loops: tuple[Mode, ...], store: object) -> None:
    shape = tuple(m.extent for m in loops)
    over = Layout(shape, tuple(m.strides[1] for m in loops))
    low, high, step = (site.constant(n, i32) for n in (0, prod(shape), 1))
    body = Block(arg_types=[i32])
    with site.block(body):
        offset = evaluate(Dyn(32, 1, body.args[0], site.emitter), over)
        assert isinstance(offset, int | Dyn) and callable(store)
        store(offset)
        site.add(scf.YieldOp())
    site.add(scf.ForOp.create(operands=[low, high, step], regions=[Region(body)]))


def _splat(site: InsertionPoint, value: SSAValue, n: int) -> SSAValue:
    from cute_dialect.upstream.vector import OPS  # late: start-up

    broadcast = OPS["broadcast"]
    return site.emit(make_op(broadcast, [value], [VectorType(value.type, [n])]))
