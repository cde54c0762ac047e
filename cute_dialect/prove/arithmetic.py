"""Evaluation of the relevant ops of a kernel on abstract values, with questions about symbols."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, gcd, lcm
from typing import TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from cute_dialect.interp.errors import attr_of
from cute_dialect.interp.instructions.moves import enum_word
from cute_dialect.interp.memory.buffers import WINDOW_BITS
from cute_dialect.interp.types import stride_of, type_of
from cute_dialect.prove.attributes import integer_of, integers_of
from cute_dialect.prove.decisions import Known, Restart, interval_of, is_above, lowest, remainder_of, threshold
from cute_dialect.prove.facts import Actor, Facts, Table
from cute_dialect.prove.program import Program
from cute_dialect.prove.sequences import reads_array, varies
from cute_dialect.prove.signs import is_false
from cute_dialect.prove.state import ALL_LANES, State, Warp
from cute_dialect.prove.values import (
    ANY,
    COMPARE,
    EXACT,
    PREDICATES,
    UNKNOWN,
    Accumulator,
    Argument,
    Atom,
    Base,
    Counter,
    Guard,
    Linear,
    Spread,
    Strided,
    Struct,
    Terms,
    Value,
    compare,
    compute,
    guard_of,
    join_lanes,
    normalized,
    split_lanes,
    symbol,
    trips_of,
    uniform,
    wrapped,
)
from cute_dialect.prove.verdict import NotProved, Violation

_CASTS = (
    "arith.extsi",
    "arith.extui",
    "arith.trunci",
    "arith.index_cast",
    "arith.index_castui",
    "llvm.ptrtoint",
    "llvm.inttoptr",
    "llvm.sext",
    "llvm.zext",
    "llvm.trunc",
)
_SAME = ("llvm.addrspacecast", "builtin.unrealized_conversion_cast", "llvm.freeze", "llvm.intr.ssa.copy", "ub.freeze")
_UNSIGNED_CASTS = ("arith.extui", "arith.index_castui", "llvm.zext", "llvm.ptrtoint", "llvm.inttoptr")
_DYNAMIC = -(2**31)
_TENSOR, _GLOBAL = "!llvm.ptr<6>", "!llvm.ptr<1>"
_QUOTIENTS: dict[Hashable, bool] = {
    "divui": False,
    "divsi": False,
    "floordivsi": False,
    "shrui": True,
    "shrsi": True,
}
"""Ops whose results are quotients of sizes. True for shifts, by the logarithm of the divisor."""
MOST_REMAINDERS = 16
"""Largest divisor for which the remainder of a size is decided: twice the number of stages of a ring."""
MOST_DECIDED = 8
"""Largest number up to which sizes are decided for the whole launch."""
_SHIFTED = "a left shift of a size or iteration may reach the sign bit; multiply instead"
_SMALL = 1 << 31
_UNSIGNED_ABOVE = 8
_MIRRORED = (0, 1, 4, 5, 2, 3, 8, 9, 6, 7)
"""The predicate of arith.cmpi that compares the operands in the other order."""
Reader: TypeAlias = "Callable[[Warp], Value]"
Run: TypeAlias = "Callable[[State, Warp, int], Value]"
"""Computes the result of an op, for a warp and its active lanes."""
_NOTHING = State(Facts(Table(0)))  # Values that depend on the thread alone ask no questions.


@dataclass
class Learned(Known):
    """Facts about a kernel that a search finds, and that change how it compares states. They only grow.

    The least values of symbols and the divisors of their remainders are those of `Known`.

    Attributes:
        classes: Lanes of each warp that always act together, as masks.
        unit: Bytes of the smallest piece of shared memory that accesses distinguish.
        loop_bases: Bases of loops of unknown length.
        outer: Loops that contain such loops, and their bases if their length is unknown, too.
        askers: Ops that compare a base with a number that is not relative to its loop.
        modulus: Divisors of induction variables, by base.
        threshold: Largest numbers that induction variables are compared with, by base.
        launch: Numbers below which a base has the same value in all tiles, by base.
        skipped: Offsets of mbarriers at which a wait skips a phase, see `Machine._may_pass`.
        holders: Number of the bit of each holder of facts.
        ranges: Products of a base that must fit a type, assumed: the largest factor by base and width in bits.
        small: Sums that are assumed to be from 0 to 2^30 - 1, because only their higher bits matter.
        skips: True if a condition on sizes was not asked, because only accesses depend on it.
        asks_all: True if such conditions must be asked, because memory is read that an access under one may write.
        excluded: The violation at the value that a least value excludes, by base.
    """

    classes: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    unit: int = 16
    loop_bases: set[Terms] = field(default_factory=set[Terms])
    outer: set[Operation] = field(default_factory=set[Operation])
    outer_bases: set[Terms] = field(default_factory=set[Terms])
    askers: dict[Operation, set[Terms]] = field(default_factory=dict[Operation, set[Terms]])
    modulus: dict[Terms, int] = field(default_factory=dict[Terms, int])
    threshold: dict[Terms, int] = field(default_factory=dict[Terms, int])
    launch: dict[Terms, int] = field(default_factory=dict[Terms, int])
    skipped: set[int] = field(default_factory=set[int])
    holders: dict[Actor, int] = field(default_factory=dict[Actor, int])
    ranges: dict[tuple[Terms, int], int] = field(default_factory=dict[tuple[Terms, int], int])
    small: set[Terms] = field(default_factory=set[Terms])
    skips: bool = False
    asks_all: bool = False
    excluded: dict[Terms, Violation] = field(default_factory=dict[Terms, Violation])


class Evaluator:
    """Computes the values of one warp. Questions about symbols go to the decisions of the state."""

    def __init__(self, program: Program, learned: Learned) -> None:
        self.program, self.learned = program, learned
        self._entry = program.kernel.regions[0].block
        self._readers: dict[SSAValue, Reader] = {}
        self._runs: dict[Operation, Run] = {}

    # -- questions ----------------------------------------------------------------------------------------------------

    def base(self, w: Warp, terms: Terms) -> Base:
        """Return the base of a sum of symbols as a warp sees it now."""
        is_inner = terms in self.learned.loop_bases and terms not in self.learned.outer_bases
        return terms, w.tile if is_inner or varies(terms) else None

    def is_positive(self, s: State, w: Warp, difference: Linear, op: Operation, relative: Base | None = None) -> bool:
        """Return True if a sum is positive. Raises Undecided if earlier decisions do not tell.

        Args:
            op: The op that asks.
            relative: The loop whose induction variable is part of the constant, if any.
        """
        terms, bound, positive = self._question_of(difference)
        base = self.base(w, terms)
        if base != relative and all(f.static != base for f in w.frames):
            if terms not in self.learned.askers.setdefault(op, set()):
                self.learned.askers[op].add(terms)
                raise Restart
            if base in s.shifted:
                raise NotProved("asks for a trip count that other warps have already passed", op)
        self._decide_product(s, w, base, bound, op)
        return self._is_above(s, base, bound) is positive

    def _question_of(self, difference: Linear) -> tuple[Terms, int, bool]:
        """Return the question whether a sum is positive, see `threshold`.

        A loop over the difference of two sizes counts a symbol of its own, which is the difference if that is not
        negative. A comparison of the difference with such a number is a question about the symbol.
        """
        terms, bound, positive = threshold(difference)
        if len(terms) > 1:
            trips = trips_of(Linear(terms)).terms
            if bound >= 0 and trips in self.learned.loop_bases:
                return trips, bound, positive
            opposite = Linear(terms) * -1
            assert isinstance(opposite, Linear)
            trips = trips_of(opposite).terms
            if bound < 0 and trips in self.learned.loop_bases:
                return trips, -bound - 1, not positive
        return terms, bound, positive

    def _decide_product(self, s: State, w: Warp, base: Base, bound: int, op: Operation) -> None:
        """Decide whether a product is positive by the signs of its factors, of which one is not negative.

        Roles that skip a tile without steps and roles whose loop over `tiles * heads` has no iteration then agree.
        """
        factors = _factors(base[0])
        low, high = interval_of(s.decisions, base, self.learned)
        if factors is None or bound < 0 or base in s.shifted or (low or 0) > 0 or (high is not None and high <= bound):
            return
        if not any(map(self._is_natural, factors)):
            return
        self.learned.ranges.setdefault((base[0], 32), 1)
        positive = all([self.is_positive(s, w, factor, op) for factor in factors])
        s.decisions[base] = (1, high) if positive else (low, 0)

    def _is_above(self, s: State, base: Base, bound: int) -> bool:
        """Return True if the value of a base is above `bound`. Raises Undecided.

        A symbol is the same in all tiles. Up to a number, it is decided once for the whole launch.
        """
        decisions, learned = s.decisions, self.learned
        if base[0] in learned.divisors and not varies(base[0]):
            remainder_of(decisions, base[0], learned)
        most = self.learned.launch.get(base[0], 0) if base[1] is not None and base not in s.shifted else 0
        if most:
            is_above(decisions, (base[0], None), min(bound, most - 1), learned)
        return is_above(decisions, base, bound, learned)

    def _operand(self, s: State, w: Warp, value: int | Linear, op: Operation) -> Value:
        """Return an operand as a number, if decisions bound it on both sides.

        A size whose remainders are decided stays a symbol unless it is decided for the launch. Its quotients are needed
        for remainders, which the number of iterations of one tile does not give.
        """
        if isinstance(value, Linear) and any(((atom, 1),) in self.learned.divisors for atom, _ in value.terms):
            known = self._of_launch(s, w, value)
            return value if known is None else known
        return self.concrete(s, w, value, op)

    def _of_launch(self, s: State, w: Warp, value: Linear) -> int | None:
        """Return the number that a size is in the whole launch, if that is decided.

        This decision is about the size itself. It is never renumbered, unlike those of tiles and of the loop over them.
        """
        total = value.const
        for atom, factor in value.terms:
            terms = ((atom, 1),)
            if self.base(w, terms)[1] is None or varies(terms):
                return None
            low, high = interval_of(s.decisions, (terms, None), self.learned)
            if low is None or low != high:
                return None
            total += factor * low
        return total

    def learn_launch(self, s: State, terms: Terms) -> None:
        """Decide small values of a size once for the launch. Raises Restart if that is new.

        With as many steps per tile as the ring has stages, the warps are at most one tile apart. An mbarrier per stage
        and direction is assumed.
        """
        if terms not in self.learned.launch:
            most = min(MOST_DECIDED, len(s.mbarriers) // self.program.blocks // 2 + 1)
            self.learned.launch[terms] = most
            self.learned.threshold[terms] = max(self.learned.threshold.get(terms, -1), most - 1)
            raise Restart

    def concrete(self, s: State, w: Warp, value: Value, op: Operation) -> Value:
        """Return the number that a symbol is, if decisions bound it on both sides."""
        if isinstance(value, Linear) and len(value.terms) > 1:
            return self._concrete_distance(s, w, value, op)
        if not isinstance(value, Linear) or len(value.terms) != 1 or value.terms[0][1] < 0:
            return value
        terms = ((value.terms[0][0], 1),)
        base = self.base(w, terms)
        if (known := self._of_launch(s, w, value)) is not None:
            return known
        low, high = interval_of(s.decisions, base, self.learned)
        if low is None or high is None:
            return value
        for guess in range(low, high + 1):  # Even if low == high, ask: an answer about a shifted counter is refused.
            if not self.is_positive(s, w, Linear(terms, -guess), op):
                return guess * value.terms[0][1] + value.const
        raise AssertionError(f"a symbol is above its upper bound {high}")

    def _concrete_distance(self, s: State, w: Warp, value: Linear, op: Operation) -> Value:
        """Return the number that the distance of two sizes is, if a loop over it has a known, positive length."""
        span = Linear(value.terms)
        trips = trips_of(span).terms
        if trips not in self.learned.loop_bases:
            return value
        low, high = interval_of(s.decisions, self.base(w, trips), self.learned)
        if low is None or high is None or low < 1:
            return value
        for guess in range(low, high + 1):
            if not self.is_positive(s, w, Linear(value.terms, -guess), op):
                return guess + value.const
        raise AssertionError(f"a distance is above its upper bound {high}")

    # -- values -------------------------------------------------------------------------------------------------------

    def get(self, w: Warp, value: SSAValue) -> Value:
        """Return the value that a warp has computed."""
        return self.reader(value)(w)

    def reader(self, value: SSAValue) -> Reader:
        """Return a function that returns the value that a warp has computed."""
        got = self._readers.get(value)
        if got is None:
            got = self._readers[value] = self._new_reader(value)
        return got

    def _new_reader(self, value: SSAValue) -> Reader:
        if self.program.is_invariant(value):
            op, fixed = value.owner, dict[int, Value]()
            assert isinstance(op, Operation)

            def invariant(w: Warp) -> Value:
                got = fixed.get(w.number)
                if got is None:
                    got = fixed[w.number] = self.compiled(op)(_NOTHING, w, ALL_LANES)
                return got

            return invariant
        if isinstance(value, BlockArgument) and value.block is self._entry:
            is_struct = str(value.type).startswith("!llvm.struct")
            argument = Argument(value.index) if is_struct else symbol(("argument", value.index, ()))
            return lambda w: argument
        slot = self.program.slot(value)
        return lambda w: w.env.get(slot, UNKNOWN)

    def evaluate(self, s: State, w: Warp, op: Operation, active: int) -> Value:
        """Return the result of a relevant op."""
        return self.compiled(op)(s, w, active)

    def compiled(self, op: Operation) -> Run:
        """Return a function that returns the result of a relevant op."""
        got = self._runs.get(op)
        if got is None:
            got = self._runs[op] = self._compile(op)
        return got

    def _compile(self, op: Operation) -> Run:
        name = op.name
        if name in ("arith.constant", "llvm.mlir.constant", "index.constant"):
            literal = attr_of(op, "value")
            return _constant(int(literal.value.data) if isinstance(literal, IntegerAttr) else UNKNOWN)
        if name in ("ub.poison", "llvm.mlir.undef", "llvm.mlir.poison"):
            return _constant(Struct() if str(op.results[0].type).startswith("!llvm.struct") else UNKNOWN)
        if name == "llvm.mlir.addressof":
            symbol_name = getattr(getattr(attr_of(op, "global_name"), "root_reference", None), "data", "")
            return _constant(self.program.symbols.get(symbol_name, UNKNOWN))
        if name.startswith("nvvm.read.ptx.sreg."):
            register = name.removeprefix("nvvm.read.ptx.sreg.")
            return lambda s, w, active: self._register(w, register)
        if name == "nvvm.elect.sync":
            return lambda s, w, active: np.asarray(np.arange(32) == (active & -active).bit_length() - 1, np.int64)
        x = [self.reader(v) for v in op.operands]
        if name == "llvm.load" and self.program.is_constant_load(op):
            kind = f"load {op.results[0].type}"
            return lambda s, w, active: _loaded(kind, x[0](w))
        if name == "nvvm.mapa":
            return lambda s, w, active: _peer(x[0](w), x[1](w))
        if name == "nvvm.shfl.sync":
            return lambda s, w, active: self._shuffle(op, [read(w) for read in x])
        if name in _SAME or (name == "llvm.bitcast" and str(op.operands[0].type).startswith("!llvm.ptr")):
            return lambda s, w, active: x[0](w)
        if name in _CASTS:
            return self._compile_cast(op, x[0])
        if name == "llvm.getelementptr":
            return self._element(op, x)
        if name == "llvm.extractvalue":
            path, is_struct = _path(op), str(op.results[0].type).startswith("!llvm.struct")
            return lambda s, w, active: _extract(x[0](w), path, is_struct)
        if name == "llvm.insertvalue":
            into = _path(op)
            return lambda s, w, active: _insert(x[1](w), x[0](w), into)
        if name in ("arith.select", "llvm.select"):
            return lambda s, w, active: self._select(x[0](w), x[1](w), x[2](w))
        if name == "arith.cmpf":
            return _constant(0 if is_false(op) else UNKNOWN)
        if name == "arith.cmpi":
            return self._compile_compare(op, *x)
        if name.startswith("arith.") and len(x) == 2 and len(op.results) == 1:
            return self._compile_binary(op, *x)
        return _constant(UNKNOWN)

    def _compile_cast(self, op: Operation, read: Reader) -> Run:
        target = width_of(op.results[0].type)
        is_same = op.name not in _UNSIGNED_CASTS and width_of(op.operands[0].type) > 1

        def cast_to(s: State, w: Warp, active: int) -> Value:
            value = read(w)
            if type(value) is int and -_SMALL < value < _SMALL and target > 31 and (is_same or value > 1):
                return value
            return self._cast(op, value)

        return cast_to

    def _compile_compare(self, op: Operation, left: Reader, right: Reader) -> Run:
        predicate, width = integer_of(op, "predicate"), width_of(op.operands[0].type)
        run = COMPARE[PREDICATES[predicate]] if predicate < 6 else None

        def compared(s: State, w: Warp, active: int) -> Value:
            a, b = left(w), right(w)
            if type(a) is int and type(b) is int:
                return int(run(a, b)) if run else compare(predicate, a, b, width)
            return self._compare(s, w, op, (a, b))

        return compared

    def _compile_binary(self, op: Operation, left: Reader, right: Reader) -> Run:
        name, width = op.name.removeprefix("arith."), width_of(op.results[0].type)
        run = EXACT.get(name)

        def computed(s: State, w: Warp, active: int) -> Value:
            a, b = left(w), right(w)
            if run and type(a) is int and type(b) is int:
                got = run(a, b)
                return got if -_SMALL < got < _SMALL and width > 31 else wrapped(got, width)
            return self._binary(s, w, op, (a, b))

        return computed

    def _register(self, w: Warp, name: str) -> Value:
        if name == "tid.x":
            return w.lanes
        if name in ("tid.y", "tid.z"):
            return 0
        if name == "laneid":
            return w.lanes & 31
        if name == "warpid":
            return w.number
        if name == "ntid.x":
            return self.program.threads
        if name in ("ntid.y", "ntid.z"):
            return 1
        blocks = self.program.blocks
        if name == "cluster.ctarank" or (name == "cluster.ctaid.x" and blocks > 1):
            return w.rank
        if name in ("cluster.nctarank", "cluster.nctaid.x"):
            return blocks
        if name == "ctaid.x" and blocks > 1:
            return symbol(("register", "clusterid.x")) * blocks + w.rank
        if name == "nctaid.x" and blocks > 1:
            return symbol(("register", "nclusterid.x")) * blocks
        if name.startswith(("ctaid.", "nctaid.", "clusterid.", "nclusterid.")):
            return symbol(("register", name))
        return UNKNOWN

    def _shuffle(self, op: Operation, x: Sequence[Value]) -> Value:
        value, lane = x[1], x[2]
        if isinstance(value, (int, Linear)):
            return value
        if enum_word(attr_of(op, "kind")) == "idx" and isinstance(value, np.ndarray) and isinstance(lane, int):
            return int(value[lane & 31]) if x[3] == 31 else UNKNOWN
        return UNKNOWN

    def _cast(self, op: Operation, value: Value) -> Value:
        source, target = (width_of(v.type) for v in (op.operands[0], op.results[0]))
        if isinstance(value, (int, np.ndarray)):
            if op.name in _UNSIGNED_CASTS:
                value = value & ((1 << min(source, 63)) - 1) if source < 64 else value
            elif source == 1 and op.name in ("arith.extsi", "llvm.sext"):
                value = -value
            got = wrapped(value, target) if target < 64 or isinstance(value, int) else value
            return got
        if isinstance(value, (Strided, Spread)):
            return value if target >= source and op.name not in _UNSIGNED_CASTS else UNKNOWN
        if isinstance(value, Guard):
            return UNKNOWN
        if not isinstance(value, (Linear, Counter)):
            return value
        if target < source and not _is_extended(op.operands[0], target):
            if isinstance(value, Linear):
                return symbol((ANY, f"trunci to i{target}", value))
            if target == 1:
                return self._count(op, "andi", value, 1)
            raise NotProved(f"a size or iteration is truncated to {target} bits, and may not fit", op)
        if op.name in _UNSIGNED_CASTS and target > source and not self._is_natural(value):
            if isinstance(value, Linear):
                return symbol((ANY, f"extui from i{source}", value))
            raise NotProved("a value that may be negative is extended as an unsigned integer", op)
        if source == 1 and target > 1:
            return symbol(("extui", value)) if _is_opaque(value, 0) and op.name in _UNSIGNED_CASTS else UNKNOWN
        return value

    def _is_natural(self, value: Value) -> bool:
        """Return True if a value is at least 0 for all sizes and iterations."""
        if isinstance(value, Linear):
            terms, factor, const = normalized(value)
            least = lowest(terms, self.learned.minimum)
            return factor > 0 and least is not None and factor * least + const >= 0
        if isinstance(value, Counter):
            return value.value >= 0 and value.slope > 0
        return isinstance(value, int) and value >= 0

    def _element(self, op: Operation, x: Sequence[Reader]) -> Run:
        kind, raw = attr_of(op, "elem_type"), integers_of(op, "rawConstantIndices")
        if kind is None or len(raw) != 1:
            return _constant(UNKNOWN)
        stride, at = stride_of(kind), raw[0]
        space = str(op.results[0].type)
        read, index_of = x[0], x[1] if at == _DYNAMIC else None

        def element(s: State, w: Warp, active: int) -> Value:
            base, index = read(w), index_of(w) if index_of else at
            if isinstance(base, (int, np.ndarray)) and isinstance(index, (int, np.ndarray)):
                return base + stride * index
            if isinstance(base, Linear) and isinstance(index, int) and space in (_TENSOR, _GLOBAL):
                return base + stride * index
            if isinstance(base, Linear) and isinstance(index, Linear) and space == _GLOBAL:
                return base + index * stride
            if isinstance(index, Counter) and isinstance(base, int):
                raise NotProved("an address depends on the iteration of a loop of unknown length", op)
            return UNKNOWN

        return element

    def _compare(self, s: State, w: Warp, op: Operation, x: Sequence[Value]) -> Value:
        predicate = integer_of(op, "predicate")
        a, b = x
        if isinstance(a, (int, np.ndarray)) and isinstance(b, (int, np.ndarray)):
            return compare(predicate, a, b, width_of(op.operands[0].type))
        if isinstance(a, Strided) or isinstance(b, Strided):
            return self._compare_strided(s, w, op, a, b)
        symbolic = (int, Linear, Counter)
        if not isinstance(a, symbolic) or not isinstance(b, symbolic):
            return self._compare_lanes(predicate, a, b)
        if self._is_idle(op, a, b):
            return self._compare_lanes(predicate, a, b)
        if _is_opaque(a, b) and not any(u.operation.name == "scf.if" for u in op.results[0].uses):
            return symbol((f"cmpi {predicate} i{width_of(op.operands[0].type)}", a, b))
        word = PREDICATES[predicate]
        if predicate == _UNSIGNED_ABOVE and b == 0:
            word, predicate = "!=", 1
        if predicate >= 6 and not (self._is_natural(a) and self._is_natural(b)):
            if isinstance(a, (int, Linear)) and isinstance(b, (int, Linear)):
                return symbol((ANY, f"cmpi {predicate}", a, b))
            raise NotProved("compares a value that may be negative as an unsigned integer", op)
        if word in ("==", "!="):
            above = self._above(s, w, a, b, op)
            equal = not above and not self._above(s, w, b, a, op)
            return int(equal == (word == "=="))
        if word in (">", "<="):
            return int(self._above(s, w, a, b, op) == (word == ">"))
        return int(self._above(s, w, b, a, op) == (word == "<"))

    def _compare_lanes(self, predicate: int, a: Value, b: Value) -> Value:
        """Return the comparison of sums with a number per lane as a condition per lane.

        Both sides must be fixed during the launch, since a condition of an iteration is no condition of a later one.
        """
        word, left, right = PREDICATES[predicate], split_lanes(a), split_lanes(b)
        if left is None or right is None or word in ("==", "!="):
            return UNKNOWN
        if predicate >= 6 and not all(self._is_natural(Linear(t, int(n.min()))) for t, n in (left, right) if t):
            return UNKNOWN
        if predicate >= 6 and any(not t and int(n.min()) < 0 for t, n in (left, right)):
            return UNKNOWN
        if word in ("<", "<="):
            left, right = right, left
        difference = Linear(left[0]) - Linear(right[0])
        if not isinstance(difference, Linear) or varies(difference.terms):
            return UNKNOWN
        return guard_of(difference.terms, left[1] - right[1] + (word in ("<=", ">=")))

    def _is_idle(self, op: Operation, *values: Value) -> bool:
        """Return True if a question about sizes only decides whether some thread accesses memory.

        It is not asked, as both answers are covered by an access that may happen. Trip counts are decided anyway, and
        all sizes are if memory is read that such an access may have to write first.
        """
        if (
            self.learned.asks_all
            or op.results[0] in self.program.essential
            or not all(isinstance(v, (int, Linear)) for v in values)
        ):
            return False
        atoms = {atom for v in values if isinstance(v, Linear) for atom, _ in v.terms}
        idle = not any(atom in atoms for terms in self.learned.loop_bases for atom, _ in terms)
        self.learned.skips |= idle
        return idle

    def _compare_strided(self, s: State, w: Warp, op: Operation, a: Value, b: Value) -> Value:
        """Compare the induction variable of a loop with one of its values, such as the first."""
        predicate = integer_of(op, "predicate")
        if isinstance(b, Strided):
            a, b, predicate = b, a, _MIRRORED[predicate]
        word = PREDICATES[predicate]
        if isinstance(a, Strided) and a.step == -1 and isinstance(b, (int, Linear)) and predicate < 6:
            return self._compare_remaining(s, w, op, a, word, b)
        if not isinstance(a, Strided) or not isinstance(b, (int, Linear)) or word not in ("==", "!=", "<", ">="):
            return UNKNOWN
        if word in ("<", ">=") and predicate < 6:
            return self._compare_end(s, w, op, a, word, b)
        distance = (b if isinstance(b, Linear) else Linear((), b)) - a.lower
        n = _quotient(distance, a.step)
        if n is None:
            return UNKNOWN
        equal = not self._above(s, w, a.counter, n, op) and not self._above(s, w, n, a.counter, op)
        return int(equal == (word == "=="))

    def _compare_end(self, s: State, w: Warp, op: Operation, a: Strided, word: str, end: int | Linear) -> Value:
        """Compare the induction variable of a loop, or a later value of it, with the end of the loop.

        `lower + step * n < end` is `n < ceil((end - lower) / step)`, for n >= 0 and a positive step. The right side is
        the number of iterations that all loops over these numbers share.
        """
        if not isinstance(a.step, Linear) or a.counter.slope != 1 or a.counter.value < 0:
            return UNKNOWN
        trips = trips_between(a.lower, end, a.step)
        if self.base(w, trips.terms) != a.counter.loop:
            return UNKNOWN
        difference = trips - a.counter.value
        assert isinstance(difference, Linear)
        is_less = self.is_positive(s, w, difference, op, a.counter.loop)
        return int(is_less == (word == "<"))

    def _compare_remaining(self, s: State, w: Warp, op: Operation, a: Strided, word: str, b: int | Linear) -> Value:
        """Compare the number of iterations that are left with a number, or the last index with a size."""
        left = a.lower - b if isinstance(a.lower, Linear) else a.lower
        if not isinstance(left, Linear) or a.counter.slope != 1:
            return UNKNOWN
        if self.base(w, self._question_of(Linear(left.terms))[0]) != a.counter.loop:
            return UNKNOWN

        def above(n: int) -> bool:
            return self.is_positive(s, w, Linear(left.terms, left.const - a.counter.value - n), op, a.counter.loop)

        if word in ("==", "!="):
            return int((above(-1) and not above(0)) == (word == "=="))
        return int(above(0 if word in (">", "<=") else -1) == (word in (">", ">=")))

    def _above(self, s: State, w: Warp, a: int | Linear | Counter, b: int | Linear | Counter, op: Operation) -> bool:
        """Return True if a > b."""
        if isinstance(a, Counter) and isinstance(b, Counter):
            if a.loop != b.loop or a.slope != b.slope:
                raise NotProved("compares the iterations of two loops", op)
            return a.value > b.value
        counter = a if isinstance(a, Counter) else b if isinstance(b, Counter) else None
        other = b if counter is a else a
        if counter is not None and isinstance(other, int):
            self._limit(w, counter, other, op)
        relative = None
        if counter is not None and isinstance(other, Linear):
            if counter.slope != 1:
                raise NotProved("compares a quotient of an iteration with a symbol", op)
            relative = counter.loop
        left, right = (v.value if isinstance(v, Counter) else v for v in (a, b))
        difference = (left if isinstance(left, Linear) else Linear((), left)) - right
        if isinstance(difference, int):
            return difference > 0
        terms, _, _ = self._question_of(difference)
        if relative is not None and self.base(w, terms) != relative:
            raise NotProved("compares the iteration of a loop with another symbol than its bound", op)
        return self.is_positive(s, w, difference, op, relative)

    def _limit(self, w: Warp, counter: Counter, bound: int, op: Operation) -> None:
        """Keep the iterations of a loop apart up to a number that they are compared with."""
        frame = next((f for f in w.frames if f.loop == counter.loop), None)
        if frame is None or counter.slope <= 0:
            raise NotProved("compares an iteration of a loop that has ended, or that counts down", op)
        terms = counter.loop[0]
        # Above this position the value is above the bound. A quotient is off by less than 1 from that of the position.
        offset = abs(counter.value - counter.slope * frame.position)
        offset += counter.slope.denominator > 1
        need = int((abs(bound) + offset) / Fraction(counter.slope))
        if self.learned.threshold.get(terms, -1) < need:
            self.learned.threshold[terms] = need
            raise Restart

    def _divisor(self, counter: Counter, by: int) -> None:
        """Keep the iterations of a loop apart modulo what a quotient or remainder needs."""
        terms = counter.loop[0]
        step = Fraction(by) / counter.slope
        need = lcm(self.learned.modulus.get(terms, 1), step.numerator)
        if need != self.learned.modulus.get(terms, 1):
            self.learned.modulus[terms] = need
            raise Restart

    def _binary(self, s: State, w: Warp, op: Operation, x: Sequence[Value]) -> Value:
        name, width = op.name.removeprefix("arith."), width_of(op.results[0].type)
        a, b = x
        if isinstance(a, (int, np.ndarray)) and isinstance(b, (int, np.ndarray)):
            return compute(name, a, b, width)
        if isinstance(a, Strided) and isinstance(b, (int, Linear)) and name in ("addi", "subi"):
            n = _quotient(b, a.step)  # the iteration that is n iterations later
            ahead = None if n is None else a.counter.value + (n if name == "addi" else -n)
            return UNKNOWN if ahead is None else replace(a, counter=replace(a.counter, value=ahead))
        for known, other in ((a, b), (b, a)):
            if name == "andi" and isinstance(known, int) and known == 0:
                return 0
            if name == "ori" and width == 1 and isinstance(known, int) and known == 1:
                return 1
            if name in ("andi", "muli") and width == 1 and isinstance(known, int) and known == 1:
                return other
        if isinstance(a, Counter) or isinstance(b, Counter):
            return self._fits(op, self._count(op, name, a, b), width)
        if name in ("andi", "muli") and width == 1 and (both := _both(a, b)) is not None:
            return both
        if not isinstance(a, (int, Linear)) or not isinstance(b, (int, Linear)):
            return self._spread(name, a, b, width)
        if name == "subi" and isinstance(a, Linear) and op.results[0] in self.program.essential:
            if isinstance(b, int) and (known := self._of_launch(s, w, a)) is not None:
                return compute(name, known, b, width)
            by = _divisor_of_rest(a, b)
            if by and (got := self._remainder(s, a, by)) is not None:
                return got
        if name in ("addi", "subi"):
            left = a if isinstance(a, Linear) else Linear((), a)
            return self._fits(op, left + b if name == "addi" else left - b, width)
        if name == "muli" and isinstance(a, Linear) and isinstance(b, int):
            return self._fits(op, a * b, width)
        if name == "muli" and isinstance(b, Linear) and isinstance(a, int):
            return self._fits(op, b * a, width)
        if name in ("minui", "minsi", "maxui", "maxsi"):
            if 0 in (a, b) and name == "minui":
                return 0
            if _is_opaque(a, b):
                return self._opaque_bound(name, width, a, b)
            if self._is_idle(op, a, b) or (name.endswith("ui") and not (self._is_natural(a) and self._is_natural(b))):
                return UNKNOWN
            return (
                (b if self._above(s, w, a, b, op) else a)
                if "min" in name
                else (a if self._above(s, w, a, b, op) else b)
            )
        if name in ("shrsi", "shrui") and width == 32 and b == 30 and self._may_be_small(a):
            assert isinstance(a, Linear)
            self.learned.small.add(a.terms)
            return 0
        if isinstance(a, Linear) and isinstance(b, int) and op.results[0] in self.program.essential:
            by = b + 1 if name == "andi" and b & (b + 1) == 0 else b if name in ("remui", "remsi") else 0
            if by > 0 and (got := self._remainder(s, a, by)) is not None:
                return got
        if name != "muli":  # the same symbol in all roles, see _decide_product
            a, b = self._operand(s, w, a, op), self._operand(s, w, b, op)
        if isinstance(a, int) and isinstance(b, int):
            return compute(name, a, b, width)
        if isinstance(a, Linear) and isinstance(b, int) and self._is_natural(a):
            by = b if not name.startswith("shr") else 1 << b if 0 <= b < 31 else 0
            if by > 0 and all(factor % by == 0 for _, factor in a.terms):
                if name in ("shrui", "shrsi", "divui", "divsi", "floordivsi"):
                    return Linear(tuple((atom, factor // by) for atom, factor in a.terms), a.const // by)
                if name in ("remui", "remsi"):
                    return a.const % by
        # A symbol is at least 0, and so is the result of these ops on such operands, except for a shift to the left.
        natural = name != "shli" and self._is_natural(a) and self._is_natural(b)
        operands = cast("Hashable", a), cast("Hashable", b)
        return symbol((name, *operands)) if natural else symbol((ANY, f"{name} i{width}", *operands))

    def _may_be_small(self, value: Value) -> bool:
        """Return True if a size is from 0 to 2^30 - 1 provided that its terms are."""
        return isinstance(value, Linear) and (not value.const or (value.const < 0 and self._is_natural(value)))

    def _spread(self, name: str, a: Value, b: Value, width: int) -> Value:
        """Compute with a sum of symbols and a number per lane."""
        left, right = split_lanes(a), split_lanes(b)
        if left is None or right is None or width < 32 or name not in ("addi", "subi", "muli"):
            return UNKNOWN
        if name == "muli":
            if isinstance(a, int):
                left, b = right, a
            if not isinstance(b, int) or not b:
                return UNKNOWN
            symbols, lanes = Linear(left[0]) * b, left[1] * b
        else:
            sign = 1 if name == "addi" else -1
            symbols, lanes = Linear(left[0]) + Linear(right[0]) * sign, left[1] + right[1] * sign
        if isinstance(symbols, Linear):
            self._fits(None, symbols, width)
        return join_lanes(symbols, lanes)

    def _remainder(self, s: State, value: Linear, by: int) -> int | None:
        """Return the remainder of a size that is not negative, decided once per launch. None if it is not modelled.

        Every term is reduced by itself: (x + y) mod n is ((x mod n) + (y mod n)) mod n. The remainder of a quotient
        follows from that of its dividend: (x div d) mod n is (x mod d*n) div d.
        """
        if by > MOST_REMAINDERS or not self._is_natural(value):
            return None
        total = value.const
        for atom, factor in value.terms:
            needed = by // gcd(factor, by)
            got = self._remainder_of_symbol(s, atom, needed) if needed > 1 else 0
            if got is None:
                return None
            total += factor * got
        return total % by

    def _remainder_of_symbol(self, s: State, atom: Atom, by: int) -> int | None:
        """Return the remainder of a symbol, None if it is not modelled."""
        terms = ((atom, 1),)
        if by > MOST_REMAINDERS or atom[0] == ANY or varies(terms):
            return None
        if (quotient := _as_quotient(atom)) is not None:
            dividend, divisor = quotient
            got = self._remainder(s, dividend, divisor * by)
            return None if got is None else got // divisor
        self.learn_launch(s, terms)
        divisors = self.learned.divisors
        if divisors.get(terms, 1) % by:
            every = lcm(divisors.get(terms, 1), by)
            if every > MOST_REMAINDERS:
                return None
            divisors[terms] = every
            raise Restart
        return remainder_of(s.decisions, terms, self.learned) % by

    def _opaque_bound(self, name: str, width: int, a: int | Linear, b: int | Linear) -> Linear:
        """Return the minimum or maximum of values of a tile as a symbol."""
        natural = [self._is_natural(a), self._is_natural(b)]
        if any(natural) if name == "maxsi" else all(natural):
            return symbol((name, a, b))
        return symbol((ANY, f"{name} i{width}", a, b))

    def _select(self, c: Value, one: Value, other: Value) -> Value:
        if isinstance(c, int):
            return one if c else other
        numbers = (int, np.ndarray)
        if isinstance(c, np.ndarray) and isinstance(one, numbers) and isinstance(other, numbers):
            return uniform(np.where(c, one, other))
        if not isinstance(c, Linear) or not isinstance(one, (int, Linear)) or not isinstance(other, (int, Linear)):
            return UNKNOWN
        if not _is_opaque(c, 0):
            return UNKNOWN
        is_natural = self._is_natural(one) and self._is_natural(other)
        return symbol(("select", c, one, other) if is_natural else (ANY, "select", c, one, other))

    def _fits(self, op: Operation | None, value: Value, width: int) -> Value:
        """Record the assumption that a sum or product does not overflow, and return it."""
        if isinstance(value, Linear):
            terms, factor, _ = normalized(value)
        elif isinstance(value, Counter):
            terms, factor = value.loop[0], ceil(value.slope)
        else:
            return value
        if width < 32:
            raise NotProved(f"an integer of {width} bits is computed from a size or iteration, and may not fit", op)
        if abs(factor) > self.learned.ranges.get((terms, width), 1):
            self.learned.ranges[terms, width] = abs(factor)
        return value

    def _count(self, op: Operation, name: str, a: Value, b: Value) -> Value:
        """Compute with an induction variable of a loop of unknown length."""
        if isinstance(a, Counter) and isinstance(b, Counter) and a.loop == b.loop and name in ("addi", "subi"):
            sign = 1 if name == "addi" else -1
            value, slope = a.value + sign * b.value, a.slope + sign * b.slope
            return Counter(a.loop, value, slope) if slope else value
        if isinstance(b, Counter) and isinstance(a, int) and name in ("addi", "muli"):
            a, b = b, a
        if isinstance(a, Linear) and isinstance(b, Counter) and name == "subi" and b.slope == 1:
            return Strided(b, a, -1)  # the iterations that are left
        if not isinstance(a, Counter) or not isinstance(b, int):
            return UNKNOWN
        if name in ("addi", "subi"):
            return Counter(a.loop, a.value + (b if name == "addi" else -b), a.slope)
        if name == "muli":
            return Counter(a.loop, a.value * b, a.slope * b) if b else 0
        if name == "shli":
            raise NotProved(_SHIFTED, op)
        by = 1 << b if name in ("shrui", "shrsi") and 0 <= b < 32 else b
        if name in ("shrui", "shrsi", "divui", "divsi", "floordivsi") and by > 0 and self._is_natural(a):
            self._divisor(a, by)
            slope = Fraction(a.slope) / by
            return Counter(a.loop, a.value // by, int(slope) if slope.denominator == 1 else slope)
        if name == "andi" and b > 0 and b & (b + 1) == 0:
            self._divisor(a, b + 1)
            return a.value & b
        if name in ("remui", "remsi") and by > 0 and self._is_natural(a):
            self._divisor(a, by)
            return a.value % by
        return UNKNOWN


def _both(a: Value, b: Value) -> Guard | None:
    """Return the condition that holds where both do, if one compares sums per lane and the other is known."""
    if isinstance(b, Guard) and not isinstance(a, Guard):
        a, b = b, a
    if isinstance(a, Guard) and isinstance(b, Guard):
        return a & b
    return a.where(b) if isinstance(a, Guard) and isinstance(b, np.ndarray) else None


def _as_quotient(atom: Atom) -> tuple[Linear, int] | None:
    """Return (x, d) if a symbol is x div d, with a positive integer d."""
    if atom[0] not in _QUOTIENTS:
        return None
    _, dividend, divisor = atom
    if not isinstance(dividend, Linear) or not isinstance(divisor, int) or divisor < 0:
        return None
    by = divisor if not _QUOTIENTS[atom[0]] else 1 << divisor if divisor < 31 else 0
    return (dividend, by) if by else None


def _divisor_of_rest(a: Linear, b: int | Linear) -> int:
    """Return d if b is d * (a div d), so that a - b is a mod d. 0 for anything else."""
    if not isinstance(b, Linear) or b.const or len(b.terms) != 1:
        return 0
    ((atom, factor),) = b.terms
    return factor if _as_quotient(atom) == (a, factor) else 0


def trips_between(lower: int | Linear, upper: int | Linear, grain: int | Linear) -> Linear:
    """Return the number of iterations from a bound to another, which may be negative if the step is 1."""
    span = (upper if isinstance(upper, Linear) else Linear((), upper)) - lower
    return span if grain == 1 and isinstance(span, Linear) else symbol(("trips", span, grain))


def _quotient(value: int | Linear, step: int | Linear) -> int | None:
    """Return n with value = n * step for every positive step, None if there is none."""
    if value == 0:
        return 0
    if not isinstance(value, Linear) or not isinstance(step, Linear):
        return None
    _, factor, _ = normalized(value)
    _, by, _ = normalized(step)
    return factor // by if step * (factor // by) == value else None


def _is_extended(value: SSAValue, width: int) -> bool:
    """Return True if a value was extended from a type of at most `width` bits, so that a truncation restores it."""
    op = value.owner
    return (
        isinstance(op, Operation)
        and op.name
        in ("arith.extsi", "arith.extui", "llvm.sext", "llvm.zext", "arith.index_cast", "arith.index_castui")
        and width_of(op.operands[0].type) <= width
    )


def width_of(kind: Attribute) -> int:
    """Return the bits of an integer type, 64 for a pointer or index."""
    return cast("IntegerType", kind).width.data if isinstance(kind, IntegerType) else 64


def size_in_bytes(kind: Attribute) -> int:
    """Return the bytes that a load or store of a type accesses."""
    found = type_of(kind)
    return found.size


def _path(op: Operation) -> tuple[int, ...]:
    return integers_of(op, "position")


def _constant(value: Value) -> Run:
    return lambda s, w, active: value


def _loaded(kind: str, address: Value) -> Value:
    """Return the element of a constant array."""
    return symbol((ANY, kind, address)) if isinstance(address, Linear) else UNKNOWN


def _peer(address: Value, rank: Value) -> Value:
    """Return the address of another block of the cluster for an address of the own block."""
    if not isinstance(address, (int, np.ndarray)) or not isinstance(rank, (int, np.ndarray)):
        return UNKNOWN
    peer = ((rank + 1) << WINDOW_BITS) + (address & ((1 << WINDOW_BITS) - 1))
    return uniform(peer) if isinstance(peer, np.ndarray) else peer


def _factors(terms: Terms) -> tuple[Linear, Linear] | None:
    """Return the factors of a product of two sizes, None if the terms are no such product."""
    if len(terms) != 1:
        return None
    atom = terms[0][0]
    name, *rest = atom[1:] if atom[0] == ANY else atom
    if str(name).partition(" ")[0] != "muli":
        return None
    a, b = rest
    return (a, b) if isinstance(a, Linear) and isinstance(b, Linear) else None


def _is_opaque(a: Value, b: Value) -> bool:
    """Return True if a comparison or bound depends on the tile of a while loop, or on an element of an array.

    Its result is a symbol then, so only a branch on it asks a question.
    """
    if not isinstance(a, (int, Linear)) or not isinstance(b, (int, Linear)):
        return False
    return any(isinstance(v, Linear) and (varies(v.terms) or reads_array(v.terms)) for v in (a, b))


def _extract(value: Value, path: tuple[int, ...], is_struct: bool) -> Value:
    if isinstance(value, Struct):
        got = value.extract(path)
        return UNKNOWN if isinstance(got, Struct) and not got.fields else got
    if isinstance(value, Argument):
        whole = value.path + path
        return Argument(value.index, whole) if is_struct else symbol(("argument", value.index, whole))
    if isinstance(value, Accumulator):
        return Accumulator(value.number, False)
    return UNKNOWN


def _insert(value: Value, struct: Value, path: tuple[int, ...]) -> Value:
    registers = [v for v in (value, struct) if isinstance(v, Accumulator)]
    if registers:
        return Accumulator(max(r.number for r in registers), False)
    return struct.insert(path, value) if isinstance(struct, Struct) else UNKNOWN
