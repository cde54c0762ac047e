"""Insertion point of ops: before one op, or at the end of a nested block, with that op's location."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import cast

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from cute_dialect.algebra.leaf import Dyn, Leaf
from cute_dialect.algebra.trees import map_leaves
from cute_dialect.algebra.values import IntTuple
from cute_dialect.dialect.access import GetScalarsOp
from cute_dialect.dialect.make import StaticOp
from cute_dialect.dialect.typed_values import bind, dynamic_leaves
from cute_dialect.dialect.types import CoordType, CuteType, IntTupleType, Payload
from cute_dialect.dialect.views import AddOffsetOp
from cute_dialect.ir.editing import make_op
from cute_dialect.ir.xdsl_compat import append_op, insert_op
from cute_dialect.passes.emitter import ArithEmitter, integer_attr, rebuild
from cute_dialect.passes.lowering.copying import MAX_OPS, too_many
from cute_dialect.upstream.typed import width


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
