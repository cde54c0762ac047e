"""Proofs about layouts of a trace: `static_assert_equal`, for all values of their run-time extents and strides.

A layout of a trace has a definition: ops of the layout algebra on kernel arguments. `LayoutTerms` runs the inference of
these ops again, on leaves whose values are polynomials over the arguments (`cute_dialect.symbolic.terms`). The prover
of `cute-prove layout` then compares two such layouts. No op is added to the kernel.

>>> from cute_dialect.lang.values.layouts import make_layout
>>> static_assert_equal(make_layout((4, 8)), make_layout(32))
>>> static_assert_equal("coalesce((M,N):(1,M))", "M*N:1")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import lcm
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf
from cute_dialect.algebra.trees import leaves as payload_leaves
from cute_dialect.algebra.trees import map_leaves
from cute_dialect.algebra.values import AnyLayout as LayoutValue
from cute_dialect.algebra.values import ComposedLayout as ComposedPayload
from cute_dialect.algebra.values import Layout as LayoutPayload
from cute_dialect.algebra.values import Payload
from cute_dialect.algebra.verify import verify_composed_layout, verify_layout
from cute_dialect.lang.tracing.errors import LayoutError
from cute_dialect.lang.tracing.tracer import active
from cute_dialect.lang.values.division import promises
from cute_dialect.lang.values.folding import facts_of
from cute_dialect.lang.values.int_tuples import dynamic_leaves_of
from cute_dialect.lang.values.layouts import AnyLayout, layout_of
from cute_dialect.symbolic.expressions import find_symbols
from cute_dialect.symbolic.layouts import (
    NO_BOUND,
    Instance,
    Question,
    Verdict,
    decide_equality,
    draw_values,
    prove_equal,
)
from cute_dialect.symbolic.terms import Domain, Term

if TYPE_CHECKING:
    from xdsl.ir import Block, Operation, SSAValue

    from cute_dialect.lang.values.dtypes import Numeric
    from cute_dialect.lang.values.signature_types import LayoutLike

P = TypeVar("P", bound=Payload)

ROUNDS = 4
"""Times that the terms are built. Each time, extents and divisors found before give the arguments better bounds."""


def static_assert_equal(a: LayoutLike | str, b: LayoutLike | str, *, where: Sequence[str] = ()) -> None:
    """Prove at compile time that two layouts have the same size and the same offset at each linear coordinate.

    Run-time extents and strides may have any value: the kernel's arguments are symbols, and `cute.assume` gives them
    divisors and bounds. Extents are at least 1, and offsets do not overflow. The kernel gets no code.

    Args:
        a: a layout, a tensor (its layout), or a text with symbols such as ``"(M,N):(1,M)"``, see ``cute-prove layout``.
        b: another one. Both or neither are texts with symbols.
        where: conditions of the symbols of texts, such as ``"M % 8 == 0"``.

    Raises:
        LayoutError: F247 if they differ for some sizes, which the message names, or if equality was not proved.

    Example::

        m = cute.assume(m, divby=8)
        tiles = cute.logical_divide(cute.make_layout((m, n)), (8, None))
        cute.static_assert_equal(tiles, cute.make_layout((m, n)))   # refused without the divisor
    """
    if isinstance(a, str) and isinstance(b, str):
        try:
            _require(prove_equal(a, b, where), a, b)
        except AlgebraError as e:
            raise LayoutError("F247", f"static_assert_equal: {e}") from None
        return
    if where:
        raise LayoutError(
            "F247", "static_assert_equal: where= is for layouts given as text", hint="use cute.assume for numbers"
        )
    sides = [_layout(x) for x in (a, b)]
    _require(_compare(sides), *map(str, sides))


def _layout(x: LayoutLike | str) -> AnyLayout:
    if isinstance(x, str) and (symbols := find_symbols(x)):
        raise LayoutError(
            "F247",
            f"static_assert_equal: the text '{x}' has the symbol {symbols[0]}, but the other layout is not a text",
            hint="build the layout from numbers, as cute.make_layout((m, n), stride=(1, m))",
        )
    found = layout_of(x)
    if not isinstance(found, AnyLayout):
        raise LayoutError("F247", f"static_assert_equal needs layouts or tensors, got {found!r}")
    return found


def _require(verdict: Verdict, a: str, b: str) -> None:
    """Raise F247 unless the verdict is "proved"."""
    if verdict.status == "proved":
        return
    pair = a if a == b else f"{a} and {b}"
    if verdict.status == "refuted":
        raise LayoutError("F247", f"static_assert_equal: {pair} differ: {verdict.reason}")
    raise LayoutError(
        "F247",
        f"static_assert_equal: {pair} are not proved equal: {verdict.reason}",
        hint="state what is known of the numbers with cute.assume(n, divby=…, range=…), or compare smaller steps",
    )


def _compare(sides: Sequence[AnyLayout]) -> Verdict:
    try:
        terms = LayoutTerms({})
        layouts = [terms.layout(x) for x in sides]
        for _ in range(ROUNDS):
            found = terms.found
            terms = LayoutTerms(found)
            layouts = [terms.layout(x) for x in sides]
            if terms.found == found:
                break
        return terms.decide(layouts)
    except AlgebraError as e:
        return Verdict("not proved", "", str(e))


class _Source(NamedTuple):
    """A scalar with no definition in the algebra: an argument, or a dynamic leaf of one."""

    value: SSAValue
    leaf: int
    """Position among the dynamic leaves in storage order; 0 for an integer."""


class _Facts(NamedTuple):
    low: int = NO_BOUND
    high: int | None = None
    divisor: int = 1

    def and_(self, low: int | None, high: int | None, divisor: int) -> _Facts:
        highs = [h for h in (self.high, high) if h is not None]
        least = self.low if low is None else max(self.low, low)
        return _Facts(least, min(highs, default=None), lcm(self.divisor, divisor))


class LayoutTerms:
    """Layouts of the current trace as layouts whose dynamic leaves carry terms over the kernel's arguments.

    Args:
        facts: bounds and divisors of sources that earlier rounds found.
    """

    def __init__(self, facts: dict[_Source, _Facts]):
        self.domain = Domain()
        self.names: dict[str, Term] = {}
        self._facts = facts
        self.found = dict(facts)
        """The given facts, and those that were found while the terms were built."""
        self._sources: dict[str, _Source] = {}
        self._computed: list[str] = []
        self._scalars: dict[SSAValue, Term] = {}
        self._payloads: dict[SSAValue, Payload] = {}
        tracer = active()
        self._promises = promises(tracer)
        self._blocks = [] if tracer is None else _enclosing(tracer.block)
        self._function = None if tracer is None else tracer.function

    # --------------------------------------------------------------------------------------------------------- payloads

    def layout(self, x: AnyLayout) -> LayoutValue:
        """Return the payload of a layout, with terms in its dynamic leaves."""
        if x.is_static:
            return x.payload
        defined = x.defined
        if defined is not None:
            return cast(LayoutValue, self.payload(defined))
        terms = iter([self.number(n, slot) for n, slot in zip(x.numbers, dynamic_leaves_of(x.payload), strict=True)])
        bound = map_leaves(lambda leaf: next(terms) if isinstance(leaf, Dyn) else leaf, x.payload)
        return self._extents(cast(LayoutValue, bound))

    def number(self, number: Numeric, slot: Dyn) -> Leaf:
        """Return a number as a dynamic leaf of the width and divisor of ``slot``."""
        if number.is_static:
            return Dyn(slot.width, slot.div, Term.constant(int(number.value)), self.domain)
        known = facts_of(number)
        self._learn(number.ssa, known.low, known.high, known.divisor)
        return Dyn(slot.width, slot.div, self.scalar(number.ssa), self.domain)

    def payload(self, value: SSAValue) -> Payload:
        """Return the payload of a value of a cute type, or of the layout of a tensor."""
        found = self._payloads.get(value)
        if found is None:
            found = self._payloads[value] = self._extents(self._payload(value))
        return found

    def _payload(self, value: SSAValue) -> Payload:
        from cute_dialect.dialect.base import CuteOp  # late: start-up
        from cute_dialect.dialect.make import MakeTreeOp  # late: start-up
        from cute_dialect.dialect.tensors import PlacedOp  # late: start-up
        from cute_dialect.dialect.typed_values import Typed, track  # late: start-up

        shown = _shown(value)
        if not dynamic_leaves_of(shown):
            return shown
        op = _definition(value)
        if op is None:
            return self._free(value, shown)
        if op.name in ("cute.get_layout", "cute.assume"):
            return self.payload(op.operands[0])
        if op.name == "cute.make_view":
            return self.payload(op.operands[1]) if len(op.operands) > 1 else self._free(value, shown)
        if isinstance(op, MakeTreeOp):
            terms = iter([self.scalar(x) for x in op.operands])
            return map_leaves(lambda d: self._bound(d, next(terms)) if isinstance(d, Dyn) else d, shown)
        if isinstance(op, PlacedOp):
            return op.place(self.payload(op.operands[0]), [self.payload(x) for x in op.operands[1:]])[0]
        if not isinstance(op, CuteOp) or type(op).infer.__func__ is CuteOp.infer.__func__:
            return self._free(value, shown)
        operands = [Typed(_kind(x), self.payload(x)) for x in op.operands]
        return op.infer(track(operands), op.properties)[list(op.results).index(value)].payload

    def _bound(self, slot: Dyn, term: Term) -> Dyn:
        return Dyn(slot.width, slot.div, term, self.domain)

    def _free(self, value: SSAValue, payload: Payload) -> Payload:
        """Return a payload whose dynamic leaves are symbols."""
        places = iter(_places(payload))
        position = iter(range(len(dynamic_leaves_of(payload))))

        def symbol(slot: Leaf) -> Leaf:
            if not isinstance(slot, Dyn):
                return slot
            i = next(position)
            return self._bound(slot, self._symbol(_Source(value, i), next(places), slot.div))

        return map_leaves(symbol, payload)

    def _extents(self, payload: P) -> P:
        """Record that the extents of a layout are at least 1."""
        if isinstance(payload, LayoutPayload):
            for leaf in payload_leaves(payload.shape):
                if isinstance(leaf, Dyn):
                    self._bound_below(self.domain.term(leaf))
        elif isinstance(payload, ComposedPayload):
            self._extents(payload.outer)
        return payload

    def _bound_below(self, extent: Term) -> None:
        """Learn that a symbol is at least 1 from an extent that is a multiple of it."""
        monomials = list(extent.monomials.items())
        if len(monomials) == 1 and monomials[0][1] > 0 and len(monomials[0][0]) == 1:
            source = self._sources.get(monomials[0][0][0].name)
            if source is not None:
                self.found[source] = self.found.get(source, _Facts()).and_(1, None, 1)

    # ---------------------------------------------------------------------------------------------------------- scalars

    def scalar(self, value: SSAValue) -> Term:
        """Return an integer of the trace as a term."""
        found = self._scalars.get(value)
        if found is None:
            found = self._scalars[value] = self._scalar(value)
            for promised, block in self._promises.get(value, ()):
                if block in self._blocks:
                    self._learn(value, promised.low, promised.high, promised.divisor)
        return found

    def _scalar(self, value: SSAValue) -> Term:
        op = _definition(value)
        if op is None:
            return self._symbol(_Source(value, 0), "", 1)
        if op.name == "cute.assume":
            divisor = getattr(value.type, "divisor", 1)
            self._learn(op.operands[0], None, None, divisor)
            return self.scalar(op.operands[0])
        if op.name == "cute.get_scalars" and "only_dynamic" in op.properties:
            slots = dynamic_leaves_of(self.payload(op.operands[0]))
            declared = dynamic_leaves_of(op.operands[0].type.data)  # type: ignore[attr-defined]
            if len(slots) == len(declared):
                return self.domain.term(slots[list(op.results).index(value)])
        build = _ARITHMETIC.get(op.name)
        term = None if build is None else build(self, op)
        return self._symbol(_Source(value, 0), "", 1) if term is None else term

    def _learn(self, value: SSAValue, low: int | None, high: int | None, divisor: int) -> None:
        """Record facts about an integer, if it is a source."""
        while (op := _definition(value)) is not None and op.name in ("cute.assume", "arith.extsi"):
            value = op.operands[0]
        if op is None or op.name not in _ARITHMETIC:
            source = _Source(value, 0)
            if op is not None and op.name == "cute.get_scalars":
                term = self.scalar(value)
                atoms = list(term.monomials.items())
                if len(atoms) != 1 or len(atoms[0][0]) != 1 or atoms[0][0][0].name not in self._sources:
                    return
                source = self._sources[atoms[0][0][0].name]
                if atoms[0][1] != self._facts.get(source, _Facts()).divisor:
                    return
            self.found[source] = self.found.get(source, _Facts()).and_(low, high, divisor)

    def _symbol(self, source: _Source, place: str, divisor: int) -> Term:
        """Return the symbol of a source, times its divisor."""
        facts = self._facts.get(source, _Facts()).and_(None, None, max(divisor, 1))
        self.found[source] = self.found.get(source, _Facts()).and_(None, None, facts.divisor)
        name = _name(source.value, place)
        while name in self.names:
            name += "'"
        d = facts.divisor
        key = name if d == 1 else f"{name}/{d}"
        low = NO_BOUND if facts.low == NO_BOUND else -(-facts.low // d)
        high = None if facts.high is None or low == NO_BOUND else facts.high // d
        if high is not None and high < low:
            high = None
        term = self.domain.symbol(key, low, None if high is None else Term.constant(high)) * d
        self._sources[key] = source
        self.names[name] = term
        if not self._is_argument(source.value):
            self._computed.append(name)
        return term

    def _is_argument(self, value: SSAValue) -> bool:
        from xdsl.ir import BlockArgument

        return isinstance(value, BlockArgument) and value.block.parent_op() is self._function

    def operation(self, op: str, *operands: SSAValue) -> Term:
        return self.domain.operation(op, *[self.scalar(x) for x in operands])

    # --------------------------------------------------------------------------------------------------------- decision

    def decide(self, layouts: Sequence[LayoutValue]) -> Verdict:
        """Return the verdict about two layouts.

        A counterexample counts only if its symbols are arguments, and outside of branches and loops of run time: a
        computed value may never have that value, and a condition may exclude the sizes.
        """

        def instances() -> Iterator[Instance]:
            for basis in draw_values(self.domain):
                values = {n: t.evaluate(basis) for n, t in self.names.items()}
                yield Instance(values, basis, self._evaluated(layouts, basis))

        verdict = decide_equality(Question(self.domain, layouts, "", instances))
        if verdict.status == "refuted" and self._computed:
            unknown = ", ".join(self._computed)
            reason = f"they differ if {verdict.reason}; the values that {unknown} can have at run time are not known"
            return Verdict("not proved", "", reason)
        if verdict.status == "refuted" and self._is_conditional():
            reason = f"they differ if {verdict.reason}; the conditions of the branches and loops around are not used"
            return Verdict("not proved", "", reason)
        return verdict

    def _is_conditional(self) -> bool:
        """Return True if the assertion is in a branch or loop of run time, which some sizes may not reach."""
        return bool(self._blocks) and self._blocks[0].parent_op() is not self._function

    def _evaluated(self, layouts: Sequence[LayoutValue], basis: dict[str, int]) -> list[LayoutValue] | None:
        """Return layouts of integers, or None if an extent would be less than 1."""

        def value(leaf: Leaf) -> Leaf:
            return self.domain.term(leaf).evaluate(basis) if isinstance(leaf, Dyn) else leaf

        try:
            found = [map_leaves(value, x) for x in layouts]
            for x in found:
                (verify_composed_layout if isinstance(x, ComposedPayload) else verify_layout)(x)
            return found if all(size(x) > 0 for x in found) else None  # type: ignore[operator]
        except (AlgebraError, ZeroDivisionError):
            return None


def _enclosing(block: Block | None) -> list[Block]:
    """Return a block and the blocks around it."""
    blocks: list[Block] = []
    while block is not None:
        blocks.append(block)
        op = block.parent_op()
        block = None if op is None else op.parent_block()
    return blocks


def _definition(value: SSAValue) -> Operation | None:
    """Return the op that defines a value, or None for an argument of a block."""
    from xdsl.ir import OpResult

    return value.op if isinstance(value, OpResult) else None


def _kind(value: SSAValue) -> str:
    from cute_dialect.dialect.types import CuteType  # late: start-up

    if isinstance(value.type, CuteType):
        return value.type.kind
    return "composed_layout" if isinstance(_shown(value), ComposedPayload) else "layout"


def _shown(value: SSAValue) -> Payload:
    """Return the payload that the type of a value shows: its own, or that of the layout of a tensor."""
    from cute_dialect.dialect.memory_types import TensorType  # late: start-up
    from cute_dialect.dialect.types import CuteType  # late: start-up

    if isinstance(value.type, TensorType):
        return value.type.layout
    assert isinstance(value.type, CuteType)
    return value.type.data


def _name(value: SSAValue, place: str) -> str:
    """Return the name of a source in messages: that of the argument, and the mode."""
    from xdsl.ir import BlockArgument

    from cute_dialect.interp.errors import location_text  # late: start-up

    if value.name_hint is not None:
        return value.name_hint + place
    if isinstance(value, BlockArgument):
        return f"argument {value.index}{place}"
    kind, register, axis = value.owner.name.rpartition("sreg.")[0], *value.owner.name.split(".")[-2:]
    if kind and register in _REGISTERS:
        return f"{_REGISTERS[register]}().{axis}"
    at = location_text(value.owner)
    return f"the value computed at {at}{place}" if at else f"a result of {axis}{place}"


_REGISTERS = {"tid": "thread_idx", "ctaid": "block_idx", "ntid": "block_dim", "nctaid": "grid_dim"}
"""Special register -> function of `cute.arch`."""


def _places(payload: Payload) -> list[str]:
    """Return the place of each dynamic leaf in storage order: ``.shape[0]``, ``.stride[1][0]``, ``[2]``."""

    def walk(tree: Payload, path: str) -> Iterator[str]:
        if isinstance(tree, LayoutPayload):
            yield from walk(tree.shape, f"{path}.shape")
            yield from walk(tree.stride, f"{path}.stride")
        elif isinstance(tree, ComposedPayload):
            yield from walk(tree.outer, path)
            yield from walk(tree.offset, f"{path}.offset")
            yield from walk(tree.inner, f"{path}.inner")
        elif isinstance(tree, tuple):
            for i, x in enumerate(tree):
                yield from walk(x, f"{path}[{i}]")
        elif dynamic_leaves_of(tree):
            yield path

    return list(walk(payload, ""))


# -------------------------------------------------------------------------------------------------------- arithmetic


Builder = Callable[["LayoutTerms", "Operation"], "Term | None"]


def _binary(name: str) -> Builder:
    return lambda terms, op: terms.operation(name, *op.operands)


def _floor(terms: LayoutTerms, op: Operation) -> Term | None:
    x, y = (terms.scalar(v) for v in op.operands)
    return terms.domain.operation("floor", x, y) if terms.domain.is_nonnegative(y - 1) else None


def _natural(name: str) -> Builder:
    """Build an operation that rounds like ours only for a dividend of at least 0 and a divisor of at least 1."""

    def build(terms: LayoutTerms, op: Operation) -> Term | None:
        x, y = (terms.scalar(v) for v in op.operands)
        if not (terms.domain.is_nonnegative(x) and terms.domain.is_nonnegative(y - 1)):
            return None
        return terms.domain.operation(name, x, y)

    return build


def _shift(name: str, *, signed: bool = True) -> Builder:
    def build(terms: LayoutTerms, op: Operation) -> Term | None:
        x, by = (terms.scalar(v) for v in op.operands)
        if by.value is None or not 0 <= by.value < 63 or not (signed or terms.domain.is_nonnegative(x)):
            return None
        return terms.domain.operation(name, x, by)

    return build


_LONGEST = 64
"""Bits of an index."""


def _width(value: SSAValue) -> int:
    from xdsl.dialects.builtin import IntegerType

    return value.type.width.data if isinstance(value.type, IntegerType) else _LONGEST


def _fits(terms: LayoutTerms, x: Term, width: int) -> bool:
    """Return True if known bounds show that a term is a signed integer of ``width`` bits."""
    half = 1 << (width - 1)
    return terms.domain.is_nonnegative(x + half) and terms.domain.is_at_most(x, half - 1)


def _shifted_left(terms: LayoutTerms, op: Operation) -> Term | None:
    """Build a left shift that loses no bit, and does not reach the sign bit."""
    x = _shift("shl")(terms, op)
    return x if x is not None and _fits(terms, x, _width(op.results[0])) else None


def _cast(terms: LayoutTerms, op: Operation) -> Term | None:
    """Build a signed cast: to a wider type, back from one, or to a narrower type that the bounds show to suffice."""
    source, width = op.operands[0], _width(op.results[0])
    x = terms.scalar(source)
    if op.name != "arith.trunci" and _width(source) == 1:
        return None  # The sign bit of an i1 is its only bit: true is -1.
    if _width(source) <= width:
        return x
    inner = _definition(source)
    if inner is not None and inner.name in ("arith.extsi", "arith.index_cast") and _width(inner.operands[0]) <= width:
        return x
    return x if _fits(terms, x, width) else None


def _constant(terms: LayoutTerms, op: Operation) -> Term | None:
    number = getattr(op.properties["value"], "value", None)
    data = getattr(number, "data", None)
    return Term.constant(data) if isinstance(data, int) else None


def _unsigned(terms: LayoutTerms, op: Operation) -> Term | None:
    x = terms.scalar(op.operands[0])
    return x if terms.domain.is_nonnegative(x) else None


_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge")


def _compared(terms: LayoutTerms, op: Operation) -> Term | None:
    number = op.properties["predicate"].value.data
    if number >= len(_PREDICATES):
        return None
    return terms.domain.comparison(_PREDICATES[number], *[terms.scalar(x) for x in op.operands])


def _selected(terms: LayoutTerms, op: Operation) -> Term:
    condition, x, y = (terms.scalar(v) for v in op.operands)
    return terms.domain.select(condition, terms.domain.leaf(x), terms.domain.leaf(y), 64)


_ARITHMETIC: dict[str, Builder] = {
    "arith.constant": _constant,
    "arith.addi": _binary("add"),
    "arith.subi": _binary("sub"),
    "arith.muli": _binary("mul"),
    "arith.divsi": _binary("div"),
    "arith.remsi": _binary("mod"),
    "arith.ceildivsi": _binary("ceil_div"),
    "arith.floordivsi": _floor,
    "arith.divui": _natural("div"),
    "arith.remui": _natural("mod"),
    "arith.minsi": _binary("min"),
    "arith.maxsi": _binary("max"),
    "arith.andi": _binary("and"),
    "arith.shli": _shifted_left,
    "arith.shrui": _shift("shr", signed=False),
    "arith.shrsi": _shift("shr"),
    "arith.extsi": _cast,
    "arith.extui": _unsigned,
    "arith.trunci": _cast,
    "arith.index_cast": _cast,
    "arith.cmpi": _compared,
    "arith.select": _selected,
}
"""Terms of arithmetic on integers. Another op gives a symbol of its own."""
