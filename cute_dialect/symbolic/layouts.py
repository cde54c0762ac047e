"""Questions about layouts for all extents: equality, injectivity, coverage, disjointness.

A question is about layouts whose extents and strides are symbols.  The layout algebra runs on symbolic leaves
(:mod:`cute_dialect.symbolic.terms`), and both sides become terms over the coordinates of one of them.  Equal normal
forms are a proof.  If a term keeps an operation of coordinates with static extents, such as a swizzle, those
coordinates are enumerated.  A refutation names extents and an index, and integer layouts have confirmed it.

>>> print(prove_equal("coalesce((M,N):(1,M))", "M*N:1"))
proved for all M, N >= 1
>>> print(prove_equal("(M,N):(1,M+1)", "M*N:1"))
refuted: M = 1, N = 2: index 1 maps to 2 and to 1
>>> print(prove_injective("(M,N):(1,S)", where=["S >= M"]))
proved for all M, N >= 1, S >= M
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Literal, NamedTuple

from cute_dialect.algebra import AlgebraError, AnyLayout, ComposedLayout, IntTuple, Layout, Leaf, evaluate, leaves, size
from cute_dialect.algebra.text import TextError
from cute_dialect.symbolic.expressions import as_layout, evaluate_sum, evaluate_text, find_symbols
from cute_dialect.symbolic.terms import Domain, Term, all_variables, variables_inside

CASES = 4096
"""Largest number of values of coordinates that are enumerated in a proof."""
SAMPLES = 200
"""Assignments of small integers to the symbols that are tried for a counterexample."""
ELEMENTS = 1024
"""Largest size of a layout that is enumerated for a counterexample."""
STATIC_ELEMENTS = 1 << 16
"""Largest size of a layout of integers that is enumerated."""
SHOWN = 120
"""Largest number of characters of a term in a reason."""
NO_BOUND = -(1 << 63)
"""Lower bound of a symbol of which nothing is known."""

_CONDITION = re.compile(r"\s*(\w+)\s*(%\s*(\d+)\s*==\s*0|>=|<=|==|>|<)\s*(.*)$")


@dataclass(frozen=True)
class Verdict:
    """Answer to a question about layouts.

    Attributes:
        status: "proved", "refuted" or "not proved".
        reason: the counterexample, or what could not be shown.
        conditions: what the symbols satisfy, such as "M, N >= 1".
        symbols: values of the symbols in the counterexample.
    """

    status: Literal["proved", "refuted", "not proved"]
    conditions: str
    reason: str = ""
    symbols: dict[str, int] = field(default_factory=dict[str, int])

    def __bool__(self) -> bool:
        return self.status == "proved"

    def __str__(self) -> str:
        if self.status == "proved":
            return f"proved for all {self.conditions}" if self.conditions else "proved"
        return f"{self.status}: {self.reason}"


def parse_condition(text: str) -> tuple[str, str, str]:
    """Return the symbol, the relation and the bound of a condition; the relation of a divisor is "%"."""
    found = _CONDITION.match(text)
    if not found:
        raise AlgebraError(
            f"the condition '{text}' is not understood; write 'M % 8 == 0', 'S >= M', 'M <= 64' or 'S == 2*M'"
        )
    name, op, divisor, bound = found.groups()
    if divisor is not None and int(divisor) < 1:
        raise AlgebraError(f"the condition '{text}' divides by 0; the divisor must be at least 1")
    return (name, "%", divisor) if divisor else (name, op, bound)


def symbols_of(texts: Sequence[str], where: Sequence[str]) -> list[str]:
    """Return the symbols of expressions and of the bounds that conditions give them."""
    described = [parse_condition(w) for w in where]
    names = list(dict.fromkeys(n for text in texts for n in find_symbols(text)))
    for name in names:  # Grows by the symbols of the bounds.
        bounds = [n for symbol, _, bound in described if symbol == name for n in find_symbols(bound)]
        names.extend(n for n in dict.fromkeys(bounds) if n not in names)
    return names


class Conditions:
    """Symbols of a question and the facts about them, as substitutions.

    ``M % 8 == 0`` replaces M by 8 times a new symbol, ``S >= M`` replaces S by M plus a natural number, and
    ``S == M*2`` replaces S.  ``M <= 64`` gives M an upper bound.  A symbol without a lower bound or an equation is at
    least 1.

    Raises:
        AlgebraError: a condition is not of these forms, uses a symbol that is described later, or contradicts another.
    """

    def __init__(self, texts: Sequence[str], where: Sequence[str]):
        self.domain = Domain()
        self.leaves: dict[str, Leaf] = {}
        self.names = symbols_of(texts, where)
        self.where = [w.strip() for w in where]
        self.described = [parse_condition(w) for w in where]
        for (name, _, _), text in zip(self.described, self.where):
            if name not in self.names:
                raise AlgebraError(
                    f"the condition '{text}' is about {name}, but the question has the symbols {', '.join(self.names)}"
                )
        for name in self.names:
            self._define(name, ())

    def _define(self, name: str, waiting: tuple[str, ...]) -> None:
        if name in self.leaves:
            return
        if name in waiting:
            names = " and ".join(dict.fromkeys(waiting))
            raise AlgebraError(
                f"the conditions of {names} refer to each other: {', '.join(self.where)}; give one another bound"
            )
        domain, facts = self.domain, [d for d in self.described if d[0] == name]
        for _, _, bound in facts:
            for other in find_symbols(bound):
                self._define(other, (*waiting, name))
        divisors = [int(b) for _, op, b in facts if op == "%"]
        equal = [self._bound(b) for _, op, b in facts if op == "=="]
        least = [self._bound(b) + (op == ">") for _, op, b in facts if op in (">=", ">")]
        most = [self._bound(b) - (op == "<") for _, op, b in facts if op in ("<=", "<")]
        if equal and len(facts) > 1:
            raise AlgebraError(
                f"an equation of {name} replaces its other conditions, found {', '.join(self.where)}; keep the equation"
            )
        if len(least) > 1 or len(most) > 1 or len(divisors) > 1:
            raise AlgebraError(
                f"more than one condition of a kind for {name}: {', '.join(self.where)}; keep the strongest"
            )
        divisor = divisors[0] if divisors else 1
        if equal:
            term = equal[0]
        elif divisor > 1 or most or not least or least[0].value is not None:
            low, high = (least[0].value if least else 1), most[0] if most else None
            if low is None or (high is not None and divisor > 1):
                raise AlgebraError(f"these conditions of {name} cannot be combined: {', '.join(self.where)}")
            if high is not None and not domain.is_at_most(Term.constant(low), high):
                raise AlgebraError(f"it is not shown that a {name} with {low} <= {name} <= {high} exists")
            term = domain.symbol(
                name if divisor == 1 else f"{name}/{divisor}", max(-(-low // divisor), 1 if divisor > 1 else low), high
            )
            term = term * divisor
        else:
            term = least[0] + domain.symbol(f"({name} - {least[0]})", 0)
        self.leaves[name] = domain.leaf(term, divisor)

    def _bound(self, text: str) -> Term:
        return self.domain.term(evaluate_sum(text, self.leaves))

    def __str__(self) -> str:
        free = [n for n in self.names if not any(d[0] == n and d[1] in (">=", ">", "==") for d in self.described)]
        return ", ".join([f"{', '.join(free)} >= 1"] * bool(free) + self.where)

    def samples(self) -> Iterator[tuple[dict[str, int], dict[str, int]]]:
        """Yield small integers that satisfy the conditions: those of the question's symbols, and of the domain's."""
        for values in draw_values(self.domain):
            yield {n: self.domain.term(self.leaves[n]).evaluate(values) for n in self.names}, values


def draw_values(domain: Domain) -> Iterator[dict[str, int]]:
    """Yield small values of the symbols of a domain, within their bounds. Small sums come first."""
    basis = list(domain.least)
    if not basis:
        yield {}
        return
    generator = random.Random(0)
    small = itertools.islice(itertools.product(range(4), repeat=len(basis)), SAMPLES // 2)
    drawn = ([generator.choice((0, 1, 2, 3, 4, 5, 6, 7, 9, 12)) for _ in basis] for _ in range(SAMPLES))
    ordered = sorted(small, key=lambda x: (sum(x), x))
    for steps in itertools.chain(ordered, drawn):
        values = {
            n: domain.least[n] + step if domain.least[n] > NO_BOUND else (1, 2, 0, -1, step)[min(step, 4)]
            for n, step in zip(basis, steps)
        }
        for n, most in domain.cap.items():
            if generator.random() < 0.3:
                values[n] = most.evaluate(values)
        if all(domain.least[n] <= values[n] <= most.evaluate(values) for n, most in domain.cap.items()):
            yield values


def index_of(domain: Domain, layout: AnyLayout, coordinate: object) -> Term:
    """Return the index of a coordinate as a term."""
    index = evaluate(coordinate, layout)  # type: ignore[arg-type]
    if isinstance(index, tuple):
        raise AlgebraError(f"expected integer strides, found the basis strides of {layout}")
    return domain.term(index)


def indices_of(domain: Domain, layout: AnyLayout, coordinate: object) -> tuple[Term, ...]:
    """Return the index of a coordinate as one term, or as one for each mode of the result of a coordinate layout."""
    index = evaluate(coordinate, layout)  # type: ignore[arg-type]
    return tuple(domain.term(x) for x in leaves(index))  # type: ignore[arg-type]


def coordinates(domain: Domain, shape: IntTuple, prefix: str) -> IntTuple:
    """Return one bounded variable per leaf of a shape, as leaves."""
    if isinstance(shape, tuple):
        return tuple(coordinates(domain, s, f"{prefix}{i}") for i, s in enumerate(shape))
    return domain.leaf(domain.variable(prefix, domain.term(shape)))


def _outer(layout: AnyLayout) -> Layout:
    return layout.outer if isinstance(layout, ComposedLayout) else layout


def _linear(domain: Domain, shape: IntTuple, coordinate: IntTuple) -> Term:
    """Return the column-major index of a coordinate."""
    extents, digits = leaves(shape), leaves(coordinate)
    step, index = Term.constant(1), Term.constant(0)
    for extent, digit in zip(extents, digits):
        index = index + domain.term(digit) * step  # type: ignore[arg-type]
        step = step * domain.term(extent)  # type: ignore[arg-type]
    return index


class Instance(NamedTuple):
    """Layouts of integers for one choice of the symbols."""

    values: dict[str, int]
    """Value of each symbol that a counterexample names."""
    basis: dict[str, int]
    """Value of each symbol of the domain."""
    layouts: list[AnyLayout] | None
    """None if an operation refuses these values."""


class Question:
    """Symbolic layouts of one domain, and their instances for small integers.

    Args:
        domain: symbols of the layouts.
        layouts: layouts whose dynamic leaves carry terms of the domain.
        conditions: what the symbols satisfy, for the verdict.
        instances: returns layouts of integers, for counterexamples.
    """

    def __init__(
        self,
        domain: Domain,
        layouts: Sequence[AnyLayout],
        conditions: str,
        instances: Callable[[], Iterator[Instance]],
    ):
        self.domain = domain
        self.layouts = layouts
        self.conditions = conditions
        self.instances = instances

    @staticmethod
    def of_texts(texts: Sequence[str], where: Sequence[str]) -> Question:
        """Return the question about layout expressions under conditions."""
        where = [where] if isinstance(where, str) else where
        if not all(isinstance(x, str) for x in (*texts, *where)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise AlgebraError(f"layouts and conditions are texts, found {[*texts, *where]}; write '(M,N):(1,M)'")
        conditions = Conditions(texts, where)
        try:
            layouts = [as_layout(evaluate_text(t, conditions.leaves)) for t in texts]
        except TextError:
            raise
        except AlgebraError as e:
            if "?{i64" not in str(e):
                raise
            raise AlgebraError(
                str(e).replace("?{i64}", "?").replace("?{i64 ", "?{") + " (? is a symbolic number)"
            ) from None

        def instances() -> Iterator[Instance]:
            for values, basis in conditions.samples():
                try:
                    yield Instance(values, basis, [as_layout(evaluate_text(t, values)) for t in texts])
                except AlgebraError:
                    yield Instance(values, basis, None)

        return Question(conditions.domain, layouts, str(conditions), instances)

    def verdict(self, shown: bool, why: str, counterexample: Callable[[list[AnyLayout]], str | None]) -> Verdict:
        """Return "proved" if it was shown.  Otherwise search a counterexample among layouts of small integers."""
        stated = self.conditions
        if shown:
            return Verdict("proved", stated)
        refused = inexact = 0
        limit = ELEMENTS if self.domain.least else STATIC_ELEMENTS
        for values, basis, layouts in self.instances():
            try:
                if layouts is not None and any(size(x) > limit for x in layouts):  # type: ignore[operator]
                    continue
                found = None if layouts is None else counterexample(layouts)
            except AlgebraError:
                layouts = found = None
            if layouts is None:
                refused += 1
                continue
            inexact += any(self.domain.term(size(a)).evaluate(basis) != size(b) for a, b in zip(self.layouts, layouts))
            if found:
                where = ", ".join(f"{n} = {v}" for n, v in values.items())
                return Verdict("refuted", stated, f"{where}: {found}" if where else found, values)
            if not self.domain.least:  # Layouts of integers have one instance, and all of its elements were compared.
                return Verdict("proved", stated)
        notes = [why, "no counterexample among small sizes"]
        if refused:
            notes.append(f"the operations refuse {refused} of the sizes that were tried")
        if inexact:
            notes.append(
                "the operations give another size for dynamic extents than for static ones; "
                "add a condition such as 'M % 8 == 0'"
            )
        return Verdict("not proved", stated, "; ".join(notes))

    def are_equal(self, a: Term, b: Term) -> bool:
        """Return True if two terms are shown to be equal for all symbols and coordinates."""
        if a == b:
            return True
        difference = a - b
        names = [n for n in variables_inside(difference) if self.domain.extents[n].value is not None]
        extents = [self.domain.extents[n].value or 1 for n in names]
        if not names or prod(extents) > CASES:
            return False
        for values in itertools.product(*map(range, extents)):
            case = dict(zip(names, values))
            if self.domain.substitute(a, case) != self.domain.substitute(b, case):
                return False
        return True


def prove_equal(a: str, b: str, where: Sequence[str] = ()) -> Verdict:
    """Prove that two layouts have the same size and the same index at each linear coordinate.

    Args:
        a: a layout expression, see :mod:`cute_dialect.symbolic.expressions`.
        b: another one.
        where: conditions of the symbols: ``M % 8 == 0``, ``S >= M``, ``M <= 64``, ``S == 2*M``.

    Raises:
        AlgebraError: an expression or a condition is not understood, or an operation refuses the symbolic layout.
    """
    return decide_equality(Question.of_texts([a, b], where))


def decide_equality(question: Question) -> Verdict:
    """Decide if the two layouts of a question have the same size, and the same index at each linear coordinate."""
    domain, (left, right) = question.domain, question.layouts

    def counterexample(pair: list[AnyLayout]) -> str | None:
        x, y = pair
        if size(x) != size(y):
            return f"the sizes are {size(x)} and {size(y)}"
        for i in range(size(x)):  # type: ignore[arg-type]
            if evaluate(i, x) != evaluate(i, y):
                return f"index {i} maps to {evaluate(i, x)} and to {evaluate(i, y)}"
        return None

    sizes = [domain.term(size(x)) for x in (left, right)]
    if sizes[0] != sizes[1]:
        return question.verdict(False, f"the sizes {sizes[0]} and {sizes[1]} are not shown to be equal", counterexample)
    why = ""
    for k, (first, second) in enumerate(((left, right), (right, left))):
        shape = _outer(first).shape
        coordinate = coordinates(domain, shape, "xy"[k])
        here = indices_of(domain, first, coordinate)
        there = indices_of(domain, second, domain.leaf(_linear(domain, shape, coordinate)))
        if len(here) != len(there):
            why = why or "the indices have different numbers of modes"
            continue
        unequal = next(((x, y) for x, y in zip(here, there) if not question.are_equal(x, y)), None)
        if unequal is None:
            return question.verdict(True, "", counterexample)
        why = why or f"{_short(unequal[0])} and {_short(unequal[1])} are not shown to be equal"
    return question.verdict(False, why, counterexample)


def _short(term: Term) -> str:
    text = str(term)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def prove_injective(a: str, where: Sequence[str] = ()) -> Verdict:
    """Prove that a layout maps no two coordinates to one index.  Arguments and errors are those of `prove_equal`."""
    question = Question.of_texts([a], where)

    def counterexample(layouts: list[AnyLayout]) -> str | None:
        seen: dict[object, int] = {}
        for i in range(size(layouts[0])):  # type: ignore[arg-type]
            index = evaluate(i, layouts[0])
            if index in seen:
                return f"coordinates {seen[index]} and {i} map to the index {index}"
            seen[index] = i
        return None

    outer = _outer(question.layouts[0])
    inner = question.layouts[0].inner if isinstance(question.layouts[0], ComposedLayout) else None
    # A swizzle is a bijection, so only the layout under it matters.  Another inner layout is not analysed.
    shown = not isinstance(inner, Layout) and separated(question.domain, outer) is not None
    return question.verdict(shown, "no order of the modes separates their strides", counterexample)


def separated(domain: Domain, layout: Layout) -> list[tuple[Term, Term]] | None:
    """Return (extent, stride) of the modes so that each stride exceeds the largest index of the modes before it.

    None means that no such order is shown.  Modes of extent 1 are left out.  Such a layout is injective: the last mode
    in which two coordinates differ moves the index by more than all modes before it can.
    """
    pairs = zip(leaves(layout.shape), leaves(layout.stride))
    modes = [(domain.term(s), domain.term(d)) for s, d in pairs]  # type: ignore[arg-type]
    return _separate(domain, [m for m in modes if m[0].value != 1], [], Term.constant(0))


def _separate(
    domain: Domain, modes: list[tuple[Term, Term]], chosen: list[tuple[Term, Term]], reach: Term
) -> list[tuple[Term, Term]] | None:
    if not modes:
        return chosen
    for i, (extent, stride) in enumerate(modes):
        if domain.is_nonnegative(stride - reach - 1):
            rest = [*modes[:i], *modes[i + 1 :]]
            found = _separate(domain, rest, [*chosen, (extent, stride)], reach + (extent - 1) * stride)
            if found is not None:
                return found
    return None


def prove_covers(a: str, count: str, where: Sequence[str] = ()) -> Verdict:
    """Prove that the indices of a layout are exactly ``0 … count - 1``, each at least once.

    Args:
        a: a layout expression.
        count: an integer expression such as ``M*N``.
        where: conditions, as of :func:`prove_equal`.
    """
    question = Question.of_texts([a, f"({count}):1"], where)
    domain = question.domain

    def counterexample(layouts: list[AnyLayout]) -> str | None:
        found = {evaluate(i, layouts[0]) for i in range(size(layouts[0]))}  # type: ignore[arg-type]
        wanted = set(range(size(layouts[1])))  # type: ignore[arg-type]
        if wanted - found:
            return f"no coordinate maps to {min(wanted - found)}"
        outside = found - wanted
        return f"the index {min(outside)} is not below {len(wanted)}" if outside else None  # type: ignore[type-var]

    layout, total = question.layouts[0], domain.term(size(question.layouts[1]))
    if isinstance(layout, ComposedLayout):
        return question.verdict(
            False, "covers does not support swizzled layouts; ask about the outer layout", counterexample
        )
    pairs = zip(leaves(layout.shape), leaves(layout.stride))
    modes = [(domain.term(s), domain.term(d)) for s, d in pairs]  # type: ignore[arg-type]
    modes = _separate(domain, [m for m in modes if m[0].value != 1 and m[1].value != 0], [], Term.constant(0))
    last = None if modes is None else sum(((s - 1) * d for s, d in modes), Term.constant(1))
    elements = None if modes is None else _product([s for s, _ in modes])
    # An injective map of `total` elements into [0, total) is onto.
    shown = last == total and elements == total
    return question.verdict(shown, f"the layout is not shown to be a permutation of {total} indices", counterexample)


def _product(terms: list[Term]) -> Term:
    out = Term.constant(1)
    for t in terms:
        out = out * t
    return out


def prove_disjoint(a: str, b: str, where: Sequence[str] = ()) -> Verdict:
    """Prove that two layouts share no index.  A layout with an offset is ``big:1 o offset o layout``."""
    question = Question.of_texts([a, b], where)
    domain = question.domain

    def counterexample(layouts: list[AnyLayout]) -> str | None:
        x, y = ({evaluate(i, z) for i in range(size(z))} for z in layouts)  # type: ignore[arg-type]
        return f"both contain the index {min(x & y)}" if x & y else None  # type: ignore[type-var]

    indices = [index_of(domain, x, coordinates(domain, _outer(x).shape, p)) for x, p in zip(question.layouts, "xy")]
    gap = indices[0] - indices[1]
    shown = domain.is_nonnegative(gap - 1) or domain.is_nonnegative(gap * -1 - 1)
    shown = shown or _residues_differ(gap, domain)
    return question.verdict(shown, "the ranges of the indices overlap or are not shown to be apart", counterexample)


def _residues_differ(gap: Term, domain: Domain) -> bool:
    """Return True if two indices differ modulo the common divisor of the larger steps, as interleaved layouts do."""
    for n in sorted({abs(c) for m, c in gap.monomials.items() if m and abs(c) > 1}):
        low = Term({m: c for m, c in gap.monomials.items() if c % n})
        if low.monomials and all_variables(low).issubset(domain.extents):
            bounds = domain.is_nonnegative(low - 1) and domain.is_at_most(low, n - 1)
            if bounds or (domain.is_nonnegative(low * -1 - 1) and domain.is_at_most(low * -1, n - 1)):
                return True
    return False
