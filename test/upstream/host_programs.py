"""Random host programs of cute ops that print everything they compute, and what they must print.

A program takes the numbers of its dynamic leaves as arguments, so that nothing is known at compile time.  The output
it must print is computed by the eager algebra from the same values with every leaf known: the inference of an op over
static types is a call of :mod:`cute_dialect.algebra`.  If the form of a result depends on known values
(``coalesce`` cannot merge what it does not know to fit), that says nothing; such a result is printed, but no other op
takes it.  Values are printed where they are made, or go through a call, a loop or a branch first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random

import brute
from expand_support import composed, coordinate, int_tuple, layout, payload, shape
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FunctionType, IntegerAttr, IntegerType, ModuleOp, i32, i64
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra import text
from cute_dialect.algebra.leaf import AlgebraError, Dyn
from cute_dialect.algebra.values import Basis, ComposedLayout, Layout
from cute_dialect.interp.validation.evaluator import Evaluator
from cute_dialect.interp.validation.scalars import Undefined
from cute_dialect.ops import access, algebra, make, sizes, tile
from cute_dialect.ops import arith as cute_arith
from cute_dialect.ops.diag import PrintOp
from cute_dialect.ops.typed_values import dynamic_leaves
from cute_dialect.types import TYPES, CuteType, Payload

MAKERS: dict[str, type[make.MakeTreeOp]] = {
    "int_tuple": make.MakeIntTupleOp, "shape": make.MakeShapeOp, "stride": make.MakeStrideOp,
    "coord": make.MakeCoordOp, "tile": make.MakeTileOp,
}  # fmt: skip
UNARY: Sequence[Callable[[SSAValue], Operation]] = (
    sizes.SizeOp, sizes.CosizeOp, sizes.TupleProductOp, sizes.TupleProductEachOp,
    access.GetShapeOp, access.GetStrideOp, access.ToIntTupleOp, access.ToCoordOp, access.ComposedGetInnerOp,
    access.ComposedGetOffsetOp, access.ComposedGetOuterOp, make.MakeLayoutLikeOp, make.MakeIdentityLayoutOp,
    algebra.CoalesceOp, algebra.FlattenOp, algebra.RightInverseOp, algebra.LeftInverseOp,
    lambda v: access.GetOp(v, [0]), lambda v: access.GetOp(v, [1]), lambda v: access.SelectOp(v, [1, 0]),
    lambda v: sizes.SizeOp(v, [1]), lambda v: algebra.GroupModesOp(v, 0, 2),
)  # fmt: skip
BINARY: Sequence[Callable[[SSAValue, SSAValue], Operation]] = (
    algebra.CompositionOp, algebra.SliceOp, algebra.DiceOp, make.MakeLayoutOp, make.MakeOrderedLayoutOp,
    tile.LogicalProductOp, tile.ZippedProductOp, tile.TiledProductOp, tile.FlatProductOp, tile.BlockedProductOp,
    tile.RakedProductOp, tile.LogicalDivideOp, tile.ZippedDivideOp, tile.TiledDivideOp, tile.FlatDivideOp,
    sizes.LayoutEvalOp, sizes.Crd2IdxOp, sizes.Idx2CrdOp, sizes.IncrementCoordOp,
    cute_arith.TupleAddOp, cute_arith.TupleSubOp, cute_arith.ShapeDivOp, cute_arith.CeilDivOp,
    lambda a, b: sizes.AppendToRankOp(a, b, 3),
)  # fmt: skip
ORDERING = (make.MakeLayoutLikeOp, make.MakeOrderedLayoutOp)
"""Ops whose strides depend on what is known: a mode known to have one element gets the stride 0."""

LIMIT = 1_000_000
"""Numbers beyond it are not wanted: that 32 bits wrap is not what is tested here."""


@dataclass
class Value:
    """A value of the program: its name in the body of ``@f``, and what it is."""

    ssa: SSAValue
    known: CuteType
    """its type with every leaf static"""


@dataclass
class Program:
    """A module with ``@main``, and the lines that it prints."""

    module: ModuleOp
    lines: list[CuteType | None] = field(default_factory=list["CuteType | None"])
    """what each line is the text of; None where the eager algebra does not say"""
    ops: set[str] = field(default_factory=set[str])
    output: list[str] = field(default_factory=list[str])
    """the lines by the definition of each op, evaluated one by one over numbers"""


class _Maker:
    def __init__(self, random: Random):
        self.random = random
        self.body = Block()
        self.numbers: list[tuple[int, IntegerType]] = []
        self.pool: list[Value] = []
        self.helpers: list[FuncOp] = []
        self.program = Program(ModuleOp([]))

    def leaf(self, n: int) -> int | Dyn:
        """Perhaps an argument in place of a number."""
        if self.random.random() < 0.5:
            return n
        width = self.random.choice((32, 32, 32, 64))
        self.numbers.append((n, i64 if width == 64 else i32))
        return Dyn(width)

    def tree(self, kind: str, known: Payload, dynamic: Payload) -> SSAValue:
        """Make a value of some kind out of the newest arguments."""
        made = TYPES[kind](dynamic)
        if made.is_static():
            return self.add(make.StaticOp(made))
        if kind == "layout":
            assert isinstance(dynamic, Layout) and isinstance(known, Layout)
            s = self.tree("shape", known.shape, dynamic.shape)
            return self.add(make.MakeLayoutOp(s, self.tree("stride", known.stride, dynamic.stride)))
        return self.add(MAKERS[kind]([self.argument() for _ in dynamic_leaves(dynamic)], made))

    def argument(self) -> SSAValue:
        """The next argument."""
        return self.body.insert_arg(self.numbers[len(self.body.args)][1], len(self.body.args))

    def add(self, op: Operation) -> SSAValue:
        """An op at the end of the body."""
        self.body.add_op(op)
        return op.results[0]

    def draw(self, kind: str, value: object) -> None:
        """A value with some of its numbers dynamic."""
        known, dynamic = payload(value), payload(value, self.leaf)
        if kind == "composed_layout":
            assert not isinstance(known, int | tuple)
            parts = [("swizzle" if not isinstance(known.inner, Layout) else "layout", "inner"), ("int_tuple", "offset"),
                     ("layout", "outer")]  # fmt: skip
            values: dict[str, SSAValue] = {}
            for k, name in reversed(parts):  # storage order: outer, offset, inner
                values[name] = self.tree(k, getattr(known, name), getattr(dynamic, name))
            ssa = self.add(make.MakeComposedLayoutOp(values["inner"], values["offset"], values["outer"]))
        else:
            ssa = self.tree(kind, known, dynamic)
        self.keep(ssa, TYPES[kind](known))

    def keep(self, ssa: SSAValue, known: CuteType) -> None:
        """A value goes to the pool, and out."""
        self.pool.append(Value(ssa, known))
        how = self.random.choice((self.plain, self.plain, self.call, self.loop, self.branch))
        how(ssa, known)

    def plain(self, ssa: SSAValue, known: CuteType | None) -> None:
        """Print it here."""
        self.body.add_op(PrintOp(ssa))
        self.program.lines.append(known)

    def call(self, ssa: SSAValue, known: CuteType) -> None:
        """Print it in a function that gives it back, and once more."""
        name = f"show{len(self.helpers)}"
        block = Block(arg_types=[ssa.type])
        block.add_ops([PrintOp(block.args[0]), ReturnOp(block.args[0])])
        self.helpers.append(FuncOp(name, ([ssa.type], [ssa.type]), Region(block)))
        self.plain(self.add(CallOp(name, [ssa], [ssa.type])), known)
        self.program.lines.append(known)

    def loop(self, ssa: SSAValue, known: CuteType) -> None:
        """Carry it round a loop, printing it each time; its result is printed too."""
        index = [self.add(arith.ConstantOp(IntegerAttr.from_index_int_value(n))) for n in (0, 2, 1)]
        block = Block(arg_types=[index[0].type, ssa.type])
        block.add_ops([PrintOp(block.args[1]), scf.YieldOp(block.args[1])])
        self.plain(self.add(scf.ForOp(*index, [ssa], Region(block))), known)
        self.program.lines += [known, known]

    def branch(self, ssa: SSAValue, known: CuteType) -> None:
        """Choose it, or another value of its type, by a number that is an argument."""
        others = [v for v in self.pool if v.ssa.type == ssa.type]
        other = self.random.choice(others)
        truth = self.random.random() < 0.5
        self.numbers.append((int(truth), IntegerType(1)))  # pyright: ignore
        blocks = [Block([scf.YieldOp(v)]) for v in (ssa, other.ssa)]
        op = scf.IfOp(self.argument(), [ssa.type], Region(blocks[0]), Region(blocks[1]))
        self.plain(self.add(op), known if truth else other.known)

    def step(self) -> bool:
        """Try a random op on random values of the pool; give whether one could be added."""
        unary = self.random.random() < 0.4
        build = self.random.choice(UNARY if unary else BINARY)
        return any(self.attempt(build, 1 if unary else 2) for _ in range(30))

    def attempt(self, build: Callable[..., Operation], operands: int) -> bool:
        """Try an op on random values of the pool; give whether it could be added."""
        chosen = [self.random.choice(self.pool) for _ in range(operands)]
        try:
            statics = Block(arg_types=[v.known for v in chosen])
            known = build(*statics.args)
            op = build(*[v.ssa for v in chosen])
        except (AlgebraError, VerifyException):
            return False
        (result,) = known.result_types
        if not isinstance(result, CuteType) or _large(result) or len(str(op.results[0].type)) > 120:
            op.erase()
            return False
        self.program.ops.add(op.name)
        value = self.add(op)
        if isinstance(op, ORDERING) or not instance(value.type.data, result.data):  # pyright: ignore
            self.plain(value, None)
        else:
            self.keep(value, result)
        return True

    def finish(self) -> Program:
        """The module."""
        self.body.add_op(ReturnOp())
        types: list[Attribute] = [t for _, t in self.numbers]
        f = FuncOp("f", FunctionType.from_lists(types, []), Region(self.body))
        main = Block()
        constants = [arith.ConstantOp(IntegerAttr(n, t)) for n, t in self.numbers]
        main.add_ops([*constants, CallOp("f", constants, []), ReturnOp()])
        ops = [*self.helpers, f, FuncOp("main", ([], []), Region(main))]
        self.program.module.body.block.add_ops(ops)
        self.program.module.verify()
        return self.program


def instance(dynamic: Payload, known: Payload) -> bool:
    """Return True if a static value belongs to a type: equal trees, and equal numbers where the type has numbers."""
    if isinstance(dynamic, Dyn):
        return isinstance(known, int)
    if isinstance(dynamic, tuple):
        alike = isinstance(known, tuple) and len(dynamic) == len(known)
        return alike and all(map(instance, dynamic, known))  # pyright: ignore
    if type(dynamic) is not type(known):
        return False
    parts = {Basis: ("value", "path"), Layout: ("shape", "stride"), ComposedLayout: ("inner", "offset", "outer")}
    if type(dynamic) in parts:
        return all(instance(getattr(dynamic, p), getattr(known, p)) for p in parts[type(dynamic)])
    return dynamic == known


def _large(t: CuteType) -> bool:
    numbers = [int(n) for n in "".join(c if c.isdigit() else " " for c in text.to_text(t.data)).split()]
    return any(n > LIMIT for n in numbers)


def program(seed: int) -> Program:
    """A random program that does nothing undefined, such as dividing by a number that turns out to be zero."""
    for attempt in count():
        found = _program(Random(f"{seed} {attempt}"))
        evaluator = Evaluator(found.module)
        try:
            evaluator.call("main", [])
        except Undefined:
            continue
        found.output = "".join(evaluator.output).splitlines()
        return found
    raise AssertionError


def _program(r: Random) -> Program:
    m = _Maker(r)
    first = layout(r, limit=60)
    m.draw("layout", first)
    m.draw("layout", layout(r, bases=False, limit=60))
    m.draw("composed_layout", composed(r, limit=60))
    m.draw("shape", shape(r, limit=60))
    m.draw("coord", coordinate(r, first.shape, underscores=r.random() < 0.5))
    m.draw("stride", layout(r, limit=60).stride)
    m.draw("int_tuple", int_tuple(r, low=1))
    m.draw("int_tuple", r.randint(1, 12))
    m.draw("tile", (layout(r, bases=False, limit=8), brute.ALL))
    m.draw("swizzle", composed(r, layouts=False).inner)
    made = 0
    while made < 14:
        made += m.step()
    return m.finish()
