"""Insertion point of ops: before one op, or at the end of a nested block, with that op's location.

**Fills.** Registers are written element by element, and memory with the widest accesses that the type allows.  A few
accesses are unrolled; more become a loop::

    cute.clear(%s) : (!cute.memref<f32, smem, align<16>, "1024:1">) -> ()

becomes 256 iterations of one 16-byte store.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from math import prod
from typing import cast

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, VectorType, i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from cute_dialect.algebra.evaluation import evaluate
from cute_dialect.algebra.leaf import Dyn, Leaf
from cute_dialect.algebra.trees import is_static, map_leaves
from cute_dialect.algebra.values import IntTuple, Layout
from cute_dialect.dialect import memory, views
from cute_dialect.dialect.access import GetScalarsOp
from cute_dialect.dialect.make import StaticOp
from cute_dialect.dialect.memory_types import MemRefType, integer_width
from cute_dialect.dialect.typed_values import bind, dynamic_leaves
from cute_dialect.dialect.types import CoordType, CuteType, IntTupleType, LayoutType, Payload
from cute_dialect.dialect.views import AddOffsetOp
from cute_dialect.ir.editing import make_op
from cute_dialect.ir.xdsl_compat import append_op, insert_op
from cute_dialect.passes.emitter import ArithEmitter, integer_attr, rebuild
from cute_dialect.passes.lowering.copying import MAX_BITS, MAX_OPS, Mode, Side, plan, side_of, too_many
from cute_dialect.spaces import AddressSpace
from cute_dialect.upstream.constraints import width


class InsertionPoint:
    """Inserts before ``anchor``; inside :meth:`block`, at the end of that block."""

    def __init__(self, anchor: Operation):
        self.anchor = anchor
        self._block: Block | None = None
        self._shared: dict[tuple[Block | None, object], SSAValue] = {}
        self._count = 0
        self.emitter = ArithEmitter(self.add, self.constant)

    def add(self, op: Operation) -> Operation:
        """Insert an op.  Raises AlgebraError after :data:`MAX_OPS` ops."""
        self._count += 1
        if self._count > MAX_OPS:
            raise too_many()
        op.location = self.anchor.location
        if self._block is not None:
            append_op(self._block, op)
        else:
            insert_op(op, self.anchor)
        return op

    def emit(self, op: Operation) -> SSAValue:
        """Insert an op and return its first result."""
        self.add(op)
        return op.results[0]

    def once(self, key: object, make: Callable[[], Operation]) -> SSAValue:
        """Return the result of the op with this key in this block, or create it."""
        known = self._shared.get((self._block, key))
        if known is None:
            known = self._shared[self._block, key] = self.emit(make())
        return known

    def constant(self, value: int, type: Attribute) -> SSAValue:
        """Return a constant, shared within this block."""

        def make() -> Operation:
            attribute = integer_attr(value, bits) if bits else IntegerAttr(value, cast("IndexType", type))
            return make_op(arith.ConstantOp, (), [type], {"value": attribute})

        bits = width(type)
        return self.once((value, bits or type), make)

    def static(self, type: CuteType) -> SSAValue:
        """Return ``cute.static`` of a type, shared within this block."""
        return self.once(type, lambda: StaticOp(type))

    def coordinate(self, index: int) -> SSAValue:
        """Return a static linear coordinate, shared within this block."""
        return self.once(("coordinate", index), lambda: StaticOp(CoordType(index)))

    def bound(self, ssa: SSAValue) -> Payload:
        """Return the payload of a value with tracked divisibility; ``cute.get_scalars`` supplies its dynamic leaves."""
        t = ssa.type
        assert isinstance(t, CuteType)
        if t.is_static():
            return t.data
        scalars = GetScalarsOp(ssa, only_dynamic=True)
        self.add(scalars)
        leaves = dynamic_leaves(t.data)
        bound = [Dyn(d.width, d.div or 1, v, self.emitter) for d, v in zip(leaves, scalars.results)]
        return bind(t.data, bound)

    def make(self, declared: CuteType, payload: Payload) -> SSAValue:
        """Create a value of exactly this type from a payload."""
        return rebuild(declared, payload, self.emitter)

    def offset(self, leaf: Leaf) -> SSAValue:
        """Create an offset, a depth-0 int tuple with all known divisibility in its type."""
        t = IntTupleType(Dyn(leaf.width, leaf.div) if isinstance(leaf, Dyn) else leaf)
        return self.static(t) if isinstance(leaf, int) else self.make(t, leaf)

    def moved(self, it: SSAValue, offset: IntTuple) -> SSAValue:
        """Advance an iterator by an offset payload: elements for pointers, an arithmetic tuple for coordinates."""
        if isinstance(offset, int) and offset == 0:
            return it
        if not isinstance(offset, tuple):
            return self.emit(AddOffsetOp(it, self.offset(offset)))
        t = IntTupleType(map_leaves(lambda x: Dyn(x.width, x.div) if isinstance(x, Dyn) else x, offset))
        return self.emit(AddOffsetOp(it, self.make(t, offset)))

    @contextmanager
    def block(self, block: Block) -> Generator[None]:
        """Insert at the end of ``block``."""
        saved, self._block = self._block, block
        try:
            yield
        finally:
            self._block = saved

    @contextmanager
    def if_(self, condition: SSAValue) -> Generator[Block]:
        """Create ``scf.if`` without results, insert into its first block, and yield the block of the else branch."""
        then, other = Block(), Block()
        with self.block(then):
            yield other
            self.add(make_op(scf.YieldOp))
        regions = [Region(then), Region()]
        if other.ops:
            with self.block(other):
                self.add(make_op(scf.YieldOp))
            regions[1] = Region(other)
        self.add(scf.IfOp.create(operands=[condition], regions=regions))


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
