"""Helpers for tests of the expansion passes: typed concrete values, functions of one op, and their evaluation.

A test draws *concrete* values (:mod:`brute`) and turns some of their integers into dynamic leaves (a width, a
divisor, a number).  It wraps the op in a function, expands the function and runs it on the numbers.  The result is
compared with the definition of the op, applied to the concrete values.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import brute
from brute import ALL, C, E, L, S, Tree
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, IntegerType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region

from cute_dialect.algebra.leaf import AlgebraError, Dyn
from cute_dialect.algebra.values import UNDERSCORE, Basis, ComposedLayout, Layout, Swizzle, raw_layout
from cute_dialect.dialect.base import CuteOp
from cute_dialect.dialect.types import TYPES, CuteType, Payload
from cute_dialect.interp import run_function
from cute_dialect.interp.validation.evaluator import Evaluator, Undefined, Value, arranged, flatten
from cute_dialect.passes.base import Pass, PassContext
from cute_dialect.passes.expand_ops import ExpandOpsPass
from cute_dialect.passes.fold_static import FoldStaticPass
from cute_dialect.passes.to_base import ToBasePass

SCALE = int(os.environ.get("CUTE_TEST_EXAMPLES", "50"))
"""Number of cases to draw, in percent of a test's default; ``CUTE_TEST_EXAMPLES=2000`` is a thorough run."""

Typed = tuple[str, Tree]
"""A kind (``"layout"``, ``"shape"``, …) and a concrete value."""


def static(n: int) -> int:
    """Keep an integer as a static leaf."""
    return n


@dataclass
class Chooser:
    """Chooses which integers become dynamic leaves, and collects their values in storage order."""

    random: Random
    share: float = 0.4
    """Fraction of the integers that become dynamic."""
    div: bool = False
    """True if dynamic leaves may have a known divisor."""
    numbers: list[int] = field(default_factory=list)

    def __call__(self, n: int) -> int | Dyn:
        if self.random.random() >= self.share:
            return n
        self.numbers.append(n)
        width = 64 if not -(1 << 31) <= n < 1 << 31 or self.random.random() < 0.25 else 32
        divisor = 0
        if self.div and n and self.random.random() < 0.5:
            divisor = self.random.choice([d for d in range(1, abs(n) + 1) if n % d == 0][-3:])
        return Dyn(width, divisor)


def payload(x: object, leaf: Callable[[int], int | Dyn] = static, *, static_outer: bool = False) -> Payload:
    """Return the payload of a concrete value, calling ``leaf`` for each integer in storage order."""
    if isinstance(x, int):
        return leaf(x)
    if isinstance(x, tuple):
        return tuple([payload(t, leaf) for t in x])
    if isinstance(x, E):
        return Basis(leaf(x.value), x.path)
    if isinstance(x, L):
        shape = payload(x.shape, leaf)
        return raw_layout(shape, payload(x.stride, leaf))
    if isinstance(x, S):
        return Swizzle(x.b, x.m, x.s)
    if isinstance(x, C):
        outer = payload(x.outer, static if static_outer else leaf)
        offset = payload(x.offset, leaf)
        return ComposedLayout(payload(x.inner, leaf), offset, outer)
    assert x == ALL, x
    return UNDERSCORE


def concrete(p: Payload, numbers: Sequence[int]) -> object:
    """Return the concrete value of a payload; ``numbers`` are the values of its dynamic leaves in storage order."""
    left = iter(numbers)

    def read(p: Payload) -> object:
        if isinstance(p, Dyn):
            return next(left)
        if isinstance(p, int):
            return p
        if isinstance(p, tuple):
            return tuple([read(t) for t in p])
        if isinstance(p, Basis):
            return E(read(p.value), p.path)
        if isinstance(p, Layout):
            shape = read(p.shape)
            return L(shape, read(p.stride))
        if isinstance(p, Swizzle):
            return S(p.bits, p.base, p.shift)
        if isinstance(p, ComposedLayout):
            outer = read(p.outer)
            offset = read(p.offset)
            return C(read(p.inner), offset, outer)
        assert p is UNDERSCORE, p
        return ALL

    value = read(p)
    assert next(left, None) is None, (p, numbers)
    return value


@dataclass(frozen=True)
class Case:
    """Operands on which to test an op."""

    operands: Sequence[Typed]
    properties: Mapping[str, Attribute] = field(default_factory=dict)
    keep_static: Sequence[int] = ()
    """Indices of operands whose integers all stay static."""
    static_outer: bool = False
    """True if the outer part of composed layouts stays static."""


@dataclass(frozen=True)
class Outcome:
    """Result of an op: concrete results, and whether any was computed at run time."""

    results: tuple[object, ...]
    dynamic: bool
    operands: tuple[Payload, ...]
    """Payloads of the operand types, with their dynamic leaves."""
    lowered: str = ""
    """Text of the expanded function, if ``keep_text`` is set."""


def function(op: Operation, arguments: Sequence[Attribute], block: Block) -> ModuleOp:
    """Return a module with ``@f``, which contains one op and returns its results."""
    block.add_ops([op, ReturnOp(*op.results)])
    f = FuncOp("f", FunctionType.from_lists(list(arguments), list(op.result_types)), Region(block))
    return ModuleOp([f])


def apply(module: ModuleOp, *passes: Pass, verify: bool) -> None:
    """Run passes and check the postcondition of each."""
    ctx = PassContext(Context())
    for p in passes:
        p.run(module, ctx)
        left = list(p.legal_after(module))
        assert not left, f"{p.name} left {left[0]}"
    if verify:
        module.verify()


def run(op_class: type[CuteOp], case: Case, choose: Chooser, *, keep_text: bool = False) -> Outcome | None:
    """Evaluate the op on these values, directly and after expansion.

    Return None if the op rejects the values or is undefined on them. If the op rejects dynamic operands, it is tried
    with static ones.
    """
    operands, properties = case.operands, dict(case.properties)
    for attempt in (choose, Chooser(choose.random, 0.0)):
        payloads: list[Payload] = []
        arguments: list[tuple[int, ...]] = []
        for i, (_, value) in enumerate(operands):
            attempt.numbers = []
            leaf = static if i in case.keep_static else attempt
            payloads.append(payload(value, leaf, static_outer=case.static_outer))
            arguments.append(tuple(attempt.numbers))
        types: list[CuteType] = [TYPES[kind](p) for (kind, _), p in zip(operands, payloads)]
        try:
            result_types = op_class.infer_types(types, properties)
        except AlgebraError:
            continue
        block = Block(arg_types=types)
        op = op_class.create(operands=block.args, result_types=result_types, properties=properties)
        module = function(op, types, block)
        try:
            direct = Evaluator(module).call("f", arguments)
        except Undefined:  # A dynamic divisor is zero.
            return None
        expected = list(flatten(direct))
        verify = keep_text or choose.random.random() < 0.3
        fold: list[Pass] = [FoldStaticPass()] if choose.random.random() < 0.5 else []
        apply(module, *fold, ExpandOpsPass(), verify=verify)
        expanded = Evaluator(module).call("f", arguments)
        assert list(flatten(expanded)) == expected, f"{arguments}: {direct} != {expanded}\n{module}"
        text = str(module) if keep_text else ""
        apply(module, ToBasePass(), verify=verify)
        for base in on_base(module, arguments, interpret=verify):
            assert base == expected, f"{arguments}: {direct} != {base}\n{module}"
        return Outcome(
            tuple(_result(t, v) for t, v in zip(result_types, expanded)),
            any(isinstance(t, IntegerType) or not t.is_static() for t in result_types),  # pyright: ignore
            tuple(payloads),
            text,
        )
    return None


def on_base(module: ModuleOp, arguments: Sequence[Sequence[int]], *, interpret: bool) -> Iterator[list[object]]:
    """Yield the results of ``@f`` after ``cute-to-base``, in storage order, and those of the kernel interpreter."""
    evaluator = Evaluator(module)
    types = [a.type for a in evaluator.functions["f"].regions[0].block.args]
    values = [arranged(t, a) for t, a in zip(types, arguments, strict=True)]
    yield list(flatten(evaluator.call("f", values)))
    if interpret:
        yield [int(x) for x in flatten(run_function(module, "f", values))]


def _result(t: Attribute, value: Value) -> object:
    if isinstance(t, CuteType):
        assert isinstance(value, tuple)
        return concrete(t.data, value)  # pyright: ignore
    return value


def check(
    op_class: type[CuteOp],
    draw: Callable[[Random], Case],
    verdict: Callable[[Case, Outcome], None],
    examples: int = 80,
    accepted: float = 0.5,
    dynamic: float = 0.25,
    *,
    keep_text: bool = False,
) -> None:
    """Draw cases, run them, and check each outcome with ``verdict``, which contains asserts.

    At least the fraction ``accepted`` of the cases must be legal, and the fraction ``dynamic`` computed at run time.
    With ``keep_text`` the outcome includes the text of the expanded function.
    """
    seen: Counter[str] = Counter()

    def try_one(seed: int, keep_text: bool = False) -> tuple[Case, Outcome | None]:
        r = Random(seed)
        case = draw(r)
        choose = Chooser(r, r.choice((0.2, 0.5, 1.0)), r.random() < 0.4)
        return case, run(op_class, case, choose, keep_text=keep_text)

    @settings(max_examples=examples * SCALE // 100, deadline=None, database=None)
    @given(st.integers(0, (1 << 32) - 1))
    def one(seed: int) -> None:
        case, outcome = try_one(seed, keep_text)
        seen["drawn"] += 1
        if outcome is not None:
            seen["accepted"] += 1
            seen["dynamic"] += outcome.dynamic
            try:
                verdict(case, outcome)
            except AssertionError as e:
                _, again = try_one(seed, True)
                text = again.lowered if again is not None else ""
                raise AssertionError(f"{e}\n{case}\n{outcome.results}\n{text}") from e

    one()
    assert seen["accepted"] >= accepted * seen["drawn"], seen
    assert seen["dynamic"] >= dynamic * seen["drawn"], seen


# ----------------------------------------------------------------------------------------------------- random values


def split(r: Random, n: int, parts: int) -> list[int]:
    """Return ``n`` as a product of the given number of factors."""
    out: list[int] = []
    for _ in range(parts - 1):
        f = r.choice([d for d in range(1, n + 1) if n % d == 0])
        out.append(f)
        n //= f
    r.shuffle(out)
    return [*out, n]


def nest(r: Random, flat: Sequence[Tree], depth: int = 2) -> Tree:
    """Return a random tree with these leaves in order; one leaf may stay a scalar."""
    if len(flat) == 1 and r.random() < 0.6:
        return flat[0]
    if depth == 0 or len(flat) == 1:
        return tuple(flat)
    out: list[Tree] = []
    i = 0
    while i < len(flat):
        n = r.choice((1, 1, 1, 2, 3))
        part = flat[i : i + n]
        out.append(part[0] if len(part) == 1 and r.random() < 0.85 else nest_tuple(r, part, depth - 1))
        i += n
    return tuple(out)


def nest_tuple(r: Random, flat: Sequence[Tree], depth: int) -> Tree:
    """Return a random tuple with these leaves."""
    tree = nest(r, flat, depth)
    return tree if isinstance(tree, tuple) else (tree,)


def extents(r: Random, most: int = 4, limit: int = 200, *, power_of_two: bool = False) -> list[int]:
    """Return random extents whose product does not exceed the limit."""
    out: list[int] = []
    total = 1
    for _ in range(r.randint(1, most)):
        n = r.choice((1, 2, 4, 8)) if power_of_two else r.choice((1, 2, 2, 3, 3, 4, 5, 6, 8))
        if total * n <= limit:
            out.append(n)
            total *= n
    return out or [1]


def shape(r: Random, most: int = 4, limit: int = 200) -> Tree:
    """Return a random shape."""
    return nest(r, extents(r, most, limit))


def compact(r: Random, s: Tree, *, gaps: bool = False) -> L:
    """Return an injective layout of this shape, with the strides of a random order of its leaves.

    With ``gaps`` there may be unused space between the modes.
    """
    flat = brute.leaves(s)
    order = list(range(len(flat)))
    r.shuffle(order)
    strides = [0] * len(flat)
    step = r.choice((1, 1, 2, 3)) if gaps else 1
    for i in order:
        strides[i] = step
        step *= flat[i] * (r.choice((1, 1, 1, 2, 3)) if gaps else 1)  # pyright: ignore
    return L(s, brute.rebuild(s, iter(strides)))


def loose(r: Random, s: Tree) -> L:
    """Return a layout of this shape with arbitrary strides: zero, negative or large."""
    strides = [r.choice((0, 1, 2, 3, 4, 8, 16, 7, -1, -4, 100)) for _ in brute.leaves(s)]
    return L(s, brute.rebuild(s, iter(strides)))


def based(r: Random, s: Tree) -> L:
    """Return a layout of this shape with basis strides."""
    paths = [(0,), (1,), (2,), (0,), (1,)] if r.random() < 0.7 else [(0, 0), (0, 1), (1,), (2, 0)]
    strides = [E(r.choice((1, 1, 2, 3, 16)), r.choice(paths)) for _ in brute.leaves(s)]
    return L(s, brute.rebuild(s, iter(strides)))


def layout(r: Random, *, bases: bool = True, limit: int = 200) -> L:
    """Return a random layout of any kind."""
    s = shape(r, limit=limit)
    what = r.random()
    if what < 0.4:
        return compact(r, s, gaps=True)
    if what < 0.55 and bases:
        return based(r, s)
    return loose(r, s)


def composed(r: Random, *, layouts: bool = True, limit: int = 200) -> C:
    """Return a random composed layout, whose inner part is a swizzle or a layout."""
    if layouts and r.random() < 0.35:
        inner: L | S = compact(r, shape(r, limit=limit), gaps=True)
        return C(inner, r.randint(0, 5), compact(r, shape(r, limit=limit), gaps=True))
    b = r.choice((1, 2, 3))
    inner = S(b, r.choice((0, 1, 2, 4)), r.choice((b, b + 1, 3, -b)) if b < 3 else r.choice((3, -3, 4)))
    return C(inner, r.choice((0, 0, 4, 16, 40)), compact(r, shape(r, limit=limit)))


def any_layout(r: Random, **options: bool) -> tuple[str, L | C]:
    """Return a random plain or composed layout."""
    if r.random() < 0.3:
        return "composed_layout", composed(r, layouts=options.get("layouts", True))
    return "layout", layout(r, bases=options.get("bases", True))


def natural_coordinate(r: Random, s: Tree, beyond: float = 0.1) -> Tree:
    """Return a coordinate congruent with a shape, occasionally out of bounds."""
    if isinstance(s, tuple):
        return tuple(natural_coordinate(r, t, beyond) for t in s)
    return r.randrange(s + (3 if r.random() < beyond else 0))  # pyright: ignore


def coordinate(r: Random, s: Tree, *, underscores: bool = False) -> Tree:
    """Return a coordinate weakly congruent with a shape."""
    if underscores and r.random() < 0.4:
        return ALL
    if isinstance(s, tuple) and s and r.random() < 0.8:
        return tuple(coordinate(r, t, underscores=underscores) for t in s)
    return r.randrange(brute.size(s) + (2 if r.random() < 0.1 else 0))


def int_tuple(r: Random, most: int = 4, low: int = -20, high: int = 40) -> Tree:
    """Return a random integer tuple."""
    return nest(r, [r.randint(low, high) for _ in range(r.randint(1, most))])
