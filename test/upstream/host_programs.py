"""Random host programs of cute ops that print every value they compute, and their expected output.

A program takes the values of its dynamic leaves as arguments, so they are unknown at compile time.  The eager algebra
computes the expected output from the same values with every leaf static: the inference of an op over static types calls
:mod:`cute_dialect.algebra`.  Some results take another form when their leaves are static; for example, ``coalesce``
merges only modes that are known to be contiguous.  Such a result is printed, but no other op uses it.  Values are
printed where they are defined, or after they pass through a call, a loop or a branch.
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
from cute_dialect.dialect import access, algebra, make, sizes, tile
from cute_dialect.dialect import arith as cute_arith
from cute_dialect.dialect.diag import PrintOp
from cute_dialect.dialect.typed_values import dynamic_leaves
from cute_dialect.dialect.types import TYPES, CuteType, Payload
from cute_dialect.interp.validation.evaluator import Evaluator, Undefined

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
"""Ops whose strides depend on static extents: a mode with the static extent 1 gets the stride 0."""

LIMIT = 1_000_000
"""Limit of the numbers, so that 32-bit arithmetic does not wrap, which these tests do not cover."""


@dataclass
class Value:
    """A value of the program: its SSA value in the body of ``@f``, and its type with every leaf static."""

    ssa: SSAValue
    known: CuteType
    """Type with every leaf static."""


@dataclass
class Program:
    """A module with ``@main``, and its expected output."""

    module: ModuleOp
    lines: list[CuteType | None] = field(default_factory=list["CuteType | None"])
    """Values of the printed lines; None where the eager algebra does not determine the line."""
    ops: set[str] = field(default_factory=set[str])
    output: list[str] = field(default_factory=list[str])
    """Expected lines, from the definition of each op, evaluated one by one over numbers."""


class _Maker:
    def __init__(self, random: Random):
        self.random = random
        self.body = Block()
        self.numbers: list[tuple[int, IntegerType]] = []
        self.pool: list[Value] = []
        self.helpers: list[FuncOp] = []
        self.program = Program(ModuleOp([]))

    def leaf(self, n: int) -> int | Dyn:
        """Return the number itself, or a dynamic leaf whose value becomes an argument of the program."""
        if self.random.random() < 0.5:
            return n
        width = self.random.choice((32, 32, 32, 64))
        self.numbers.append((n, i64 if width == 64 else i32))
        return Dyn(width)

    def tree(self, kind: str, known: Payload, dynamic: Payload) -> SSAValue:
        """Build a value of the given kind from static values and the newest arguments."""
        made = TYPES[kind](dynamic)
        if made.is_static():
            return self.add(make.StaticOp(made))
        if kind == "layout":
            assert isinstance(dynamic, Layout) and isinstance(known, Layout)
            s = self.tree("shape", known.shape, dynamic.shape)
            return self.add(make.MakeLayoutOp(s, self.tree("stride", known.stride, dynamic.stride)))
        return self.add(MAKERS[kind]([self.argument() for _ in dynamic_leaves(dynamic)], made))

    def argument(self) -> SSAValue:
        """Add the next argument to the body."""
        return self.body.insert_arg(self.numbers[len(self.body.args)][1], len(self.body.args))

    def add(self, op: Operation) -> SSAValue:
        """Append an op to the body and return its result."""
        self.body.add_op(op)
        return op.results[0]

    def draw(self, kind: str, value: object) -> None:
        """Add a value, with some of its integers dynamic, to the program."""
        known, dynamic = payload(value), payload(value, self.leaf)
        if kind == "composed_layout":
            assert not isinstance(known, int | tuple)
            parts = [("swizzle" if not isinstance(known.inner, Layout) else "layout", "inner"), ("int_tuple", "offset"),
                     ("layout", "outer")]  # fmt: skip
            values: dict[str, SSAValue] = {}
            for k, name in reversed(parts):  # Arguments are in storage order: outer, offset, inner.
                values[name] = self.tree(k, getattr(known, name), getattr(dynamic, name))
            ssa = self.add(make.MakeComposedLayoutOp(values["inner"], values["offset"], values["outer"]))
        else:
            ssa = self.tree(kind, known, dynamic)
        self.keep(ssa, TYPES[kind](known))

    def keep(self, ssa: SSAValue, known: CuteType) -> None:
        """Add a value to the pool, and print it in a randomly chosen way."""
        self.pool.append(Value(ssa, known))
        how = self.random.choice((self.plain, self.plain, self.call, self.loop, self.branch))
        how(ssa, known)

    def plain(self, ssa: SSAValue, known: CuteType | None) -> None:
        """Print the value at the end of the body."""
        self.body.add_op(PrintOp(ssa))
        self.program.lines.append(known)

    def call(self, ssa: SSAValue, known: CuteType) -> None:
        """Print the value in a function that also returns it, and print the returned value."""
        name = f"show{len(self.helpers)}"
        block = Block(arg_types=[ssa.type])
        block.add_ops([PrintOp(block.args[0]), ReturnOp(block.args[0])])
        self.helpers.append(FuncOp(name, ([ssa.type], [ssa.type]), Region(block)))
        self.plain(self.add(CallOp(name, [ssa], [ssa.type])), known)
        self.program.lines.append(known)

    def loop(self, ssa: SSAValue, known: CuteType) -> None:
        """Pass the value through a loop that prints it in each iteration, and print the result."""
        index = [self.add(arith.ConstantOp(IntegerAttr.from_index_int_value(n))) for n in (0, 2, 1)]
        block = Block(arg_types=[index[0].type, ssa.type])
        block.add_ops([PrintOp(block.args[1]), scf.YieldOp(block.args[1])])
        self.plain(self.add(scf.ForOp(*index, [ssa], Region(block))), known)
        self.program.lines += [known, known]

    def branch(self, ssa: SSAValue, known: CuteType) -> None:
        """Select the value or another one of its type with a boolean argument, and print the result."""
        others = [v for v in self.pool if v.ssa.type == ssa.type]
        other = self.random.choice(others)
        truth = self.random.random() < 0.5
        self.numbers.append((int(truth), IntegerType(1)))  # pyright: ignore
        blocks = [Block([scf.YieldOp(v)]) for v in (ssa, other.ssa)]
        op = scf.IfOp(self.argument(), [ssa.type], Region(blocks[0]), Region(blocks[1]))
        self.plain(self.add(op), known if truth else other.known)

    def step(self) -> bool:
        """Try a random op on random values of the pool. Return True if one was added."""
        unary = self.random.random() < 0.4
        build = self.random.choice(UNARY if unary else BINARY)
        return any(self.attempt(build, 1 if unary else 2) for _ in range(30))

    def attempt(self, build: Callable[..., Operation], operands: int) -> bool:
        """Try an op on random values of the pool. Return True if it was added."""
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
        """Complete the module and return the program."""
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
    """Return True if a static value is an instance of a dynamic one: equal trees, and equal static leaves."""
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
    """Return a random program without undefined behaviour, such as a division by a dynamic zero."""
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
