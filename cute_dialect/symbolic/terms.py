"""Symbolic integers: polynomials over symbols, bounded variables and floor quotients, in a normal form.

The layout algebra runs on leaves that carry a run-time value and an emitter of instructions
(:mod:`cute_dialect.algebra.leaf`).  Here the value is a :class:`Term` and the emitter, a :class:`Domain`, builds terms
instead of instructions.  The algebra itself is therefore what is proved, not a second implementation of it.

Equal normal forms are equal functions.  A remainder has no form of its own: ``x mod d`` is ``x - d*(x div d)``, so the
digits of a coordinate recombine to the index by plain arithmetic.

>>> domain = Domain()
>>> m, n = domain.symbol("m"), domain.symbol("n")
>>> i = domain.variable("i", m * 8)
>>> domain.divide(i + m * n * 8, m * 8)
(Term(n), Term(i))
>>> q, r = domain.divide(i, Term.constant(8))
>>> (q, q * 8 + r == i)
(Term(i div 8), True)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from math import gcd

from cute_dialect.algebra import AlgebraError, Dyn, Leaf
from cute_dialect.algebra.leaf import Emitter

MAX_FACTORS = 64
"""Largest degree of a term."""
BUDGET = 20_000
"""Steps of one test of a sign.  A test that exceeds them counts as not shown."""


@dataclass(frozen=True)
class Atom:
    """A symbol, a bounded variable, or an operation that has no polynomial form.

    Attributes:
        op: "symbol", "variable", or the operation: div (rounds down, of a dividend >= 0), floor (the same, of any
            dividend), tdiv (rounds toward 0), min, max, and, or, xor, shr, abs, select or a comparison.
        name: name of a symbol or variable, else "".
        args: operands of the operation.
    """

    op: str
    name: str
    args: tuple[Term, ...] = ()

    @cached_property
    def text(self) -> str:
        if self.name:
            return self.name
        if len(self.args) == 2:
            a, b = (f"({x})" if len(x.monomials) > 1 else str(x) for x in self.args)
            return f"{a} {self.op} {b}"
        return f"{self.op}({', '.join(map(str, self.args))})"

    @cached_property
    def height(self) -> int:
        """Nesting depth of operations."""
        return 1 + max((x.height for x in self.args), default=-1)

    @cached_property
    def _hash(self) -> int:
        return hash((self.op, self.name, self.args))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Atom)
            and self._hash == other._hash
            and (self.op, self.name, self.args) == (other.op, other.name, other.args)
        )


Monomial = tuple[Atom, ...]


def _order(atom: Atom) -> tuple[int, str]:
    return atom.height, atom.text


class Term:
    """An integer polynomial over atoms: a map from monomials (sorted tuples of atoms) to coefficients other than 0."""

    __slots__ = ("_hash", "monomials")

    def __init__(self, monomials: Mapping[Monomial, int]):
        self.monomials = {m: c for m, c in monomials.items() if c}
        self._hash = hash(frozenset(self.monomials.items()))

    @staticmethod
    def constant(n: int) -> Term:
        return Term({(): n})

    @staticmethod
    def of(atom: Atom) -> Term:
        return Term({(atom,): 1})

    @property
    def value(self) -> int | None:
        """The integer of a constant, else None."""
        if not self.monomials:
            return 0
        return self.monomials.get(()) if len(self.monomials) == 1 else None

    @property
    def atoms(self) -> set[Atom]:
        """Atoms of the monomials, without those inside of operations."""
        return {a for m in self.monomials for a in m}

    @property
    def height(self) -> int:
        return max((a.height for m in self.monomials for a in m), default=0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Term) and self._hash == other._hash and self.monomials == other.monomials

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: Term | int) -> Term:
        out = dict(self.monomials)
        for m, c in as_term(other).monomials.items():
            out[m] = out.get(m, 0) + c
        return Term(out)

    def __sub__(self, other: Term | int) -> Term:
        return self + as_term(other) * -1

    def __mul__(self, other: Term | int) -> Term:
        if isinstance(other, int):
            return Term({m: c * other for m, c in self.monomials.items()})
        out: dict[Monomial, int] = {}
        for m, c in self.monomials.items():
            for n, d in other.monomials.items():
                if len(m) + len(n) > MAX_FACTORS:
                    raise AlgebraError(
                        f"expected products of at most {MAX_FACTORS} symbols, found one of {len(m) + len(n)}"
                    )
                product = tuple(sorted(m + n, key=_order)) if m and n else m or n
                out[product] = out.get(product, 0) + c * d
        return Term(out)

    def replace(self, atom: Atom, by: Term) -> Term:
        """Substitute a term for an atom of the monomials, not for those inside of operations."""
        out = Term({})
        for m, c in self.monomials.items():
            rest = tuple(a for a in m if a != atom)
            part = Term({rest: c})
            for _ in range(len(m) - len(rest)):
                part = part * by
            out = out + part
        return out

    def evaluate(self, values: Mapping[str, int]) -> int:
        """Return the integer for given symbols and variables."""
        return sum(
            c * reduce(operator.mul, (_evaluate_atom(a, values) for a in m), 1) for m, c in self.monomials.items()
        )

    def __str__(self) -> str:
        if not self.monomials:
            return "0"
        parts: list[str] = []
        for m, c in sorted(self.monomials.items(), key=lambda x: ([-len(x[0])], [a.text for a in x[0]])):
            factors = [f"({a.text})" if " " in a.text and (len(m) > 1 or abs(c) != 1) else a.text for a in m]
            text = "*".join([str(abs(c))] * (abs(c) != 1 or not m) + factors)
            parts.append(f"{'-' if c < 0 else '+'} {text}")
        first = parts[0].removeprefix("+ ").replace("- ", "-")
        return " ".join([first, *parts[1:]])

    def __repr__(self) -> str:
        return f"Term({self})"


def as_term(x: Term | int) -> Term:
    return x if isinstance(x, Term) else Term.constant(x)


_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "slt": operator.lt,
    "sle": operator.le,
    "sgt": operator.gt,
    "sge": operator.ge,
}
_NUMERIC: dict[str, Callable[[int, int], int]] = {
    "div": lambda a, b: a // b,
    "floor": lambda a, b: a // b,
    "tdiv": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "min": min,
    "max": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shr": lambda a, b: a >> b,
    **_COMPARISONS,
}


def _evaluate_atom(atom: Atom, values: Mapping[str, int]) -> int:
    if atom.name:
        return values[atom.name]
    args = [x.evaluate(values) for x in atom.args]
    if atom.op == "abs":
        return abs(args[0])
    if atom.op == "select":
        return args[1] if args[0] else args[2]
    return int(_NUMERIC[atom.op](*args))


class Domain(Emitter):
    """Symbols with lower bounds and variables with upper bounds; simplifies operations by what it can show from them.

    Every symbol is at least its lower bound, and a variable lies in ``[0, extent)``.
    """

    def __init__(self) -> None:
        self.least: dict[str, int] = {}
        self.extents: dict[str, Term] = {}
        self.cap: dict[str, Term] = {}  # Inclusive upper bounds of symbols.
        self._known: dict[Term, bool] = {}
        self._steps = 0

    def symbol(self, name: str, least: int = 1, most: Term | None = None) -> Term:
        """Add a symbol that is at least ``least`` and at most ``most``."""
        self.least[name] = least
        if most is not None:
            self.cap[name] = most
        self._known.clear()
        return Term.of(Atom("symbol", name))

    def variable(self, name: str, extent: Term | int) -> Term:
        """Add a variable in ``[0, extent)``.  The variable of an extent of 1 is 0."""
        extent = as_term(extent)
        if extent.value == 1:
            return Term.constant(0)
        self.extents[name] = extent
        self._known.clear()
        return Term.of(Atom("variable", name))

    def leaf(self, term: Term, divisor: int = 1) -> Leaf:
        """Return the leaf of the layout algebra whose value is a term."""
        return Dyn(64, divisor, term, self) if term.value is None else term.value

    def term(self, leaf: Leaf) -> Term:
        """Return the term of a leaf."""
        if isinstance(leaf, int):
            return Term.constant(leaf)
        assert isinstance(leaf.value, Term), f"a leaf without a term: {leaf!r}"
        return leaf.value

    # ----------------------------------------------------------------------------------------------------------- signs

    def is_nonnegative(self, term: Term) -> bool:
        """Return True if a term is shown to be at least 0 for all values of its symbols and variables."""
        found = self._known.get(term)
        if found is None:
            self._steps = 0
            found = self._known[term] = self._nonnegative(term)
        return found

    def is_at_most(self, a: Term, b: Term | int) -> bool:
        return self.is_nonnegative(as_term(b) - a)

    def _nonnegative(self, term: Term) -> bool:
        if all(c >= 0 for c in term.monomials.values()) and all(self._is_natural(a) for a in term.atoms):
            return True
        self._steps += 1
        if self._steps > BUDGET:
            return False
        value = term.value
        if value is not None:
            return value >= 0
        atom = max(term.atoms, key=self._elimination_order)
        degree = max(m.count(atom) for m in term.monomials)
        if atom.op == "symbol" and atom.name not in self.cap:
            return self._nonnegative_symbols(term)
        if degree > 1:
            return False
        slope = Term({tuple(a for a in m if a != atom): c for m, c in term.monomials.items() if atom in m})
        rest = Term({m: c for m, c in term.monomials.items() if atom not in m})
        return self._linear(atom, slope, rest)

    def _linear(self, atom: Atom, slope: Term, rest: Term) -> bool:
        """Return True if ``slope*atom + rest`` is shown to be at least 0, for a slope and a rest without the atom."""
        match atom.op:
            case "variable":
                return self._nonnegative(rest) and self._nonnegative(rest + slope * (self.extents[atom.name] - 1))
            case "symbol":
                low = Term.constant(self.least[atom.name])
                return self._nonnegative(rest + slope * low) and self._nonnegative(rest + slope * self.cap[atom.name])
            case "div":
                return self._quotient_and_rest(atom.args[0], atom.args[1], slope, rest)
            case "min" | "max":
                return all(self._nonnegative(slope * x + rest) for x in atom.args)
            case "select":
                return all(self._nonnegative(slope * x + rest) for x in atom.args[1:])
            case "and":
                # The result is natural if an operand is, and at most that operand.
                bounds = [x for x in atom.args if self._nonnegative(x)]
                if not bounds or not self._nonnegative(rest):
                    return False
                return self._nonnegative(slope) or any(self._nonnegative(rest + slope * x) for x in bounds)
            case "xor" | "or":
                return self._is_natural(atom) and self._nonnegative(slope) and self._nonnegative(rest)
            case _:
                return False

    def _quotient_and_rest(self, x: Term, d: Term, slope: Term, rest: Term) -> bool:
        # q = x div d satisfies d*q <= x <= d*q + d - 1; q >= n is the same as x >= n*d, and q <= n as x < (n + 1)*d.
        factor = slope.value
        if factor is not None and all(c % factor == 0 for c in rest.monomials.values()):
            other = Term({m: c // abs(factor) for m, c in rest.monomials.items()})
            return self._nonnegative(x + other * d if factor > 0 else (other + 1) * d - x - 1)
        if self._nonnegative(slope):
            return self._nonnegative(rest) or self._nonnegative(slope * (x - d + 1) + rest * d)
        return self._nonnegative(slope * -1) and self._nonnegative(slope * x + rest * d)

    def _elimination_order(self, atom: Atom) -> tuple[int, tuple[int, str]]:
        # A bound may only use atoms that are eliminated later: extents of variables use symbols and their quotients.
        if atom.name:
            rank = 3 if atom.op == "variable" else int(atom.name in self.cap)
        else:
            rank = 4 if any(all_variables(x) for x in atom.args) else 2
        return rank, _order(atom)

    def _is_natural(self, atom: Atom) -> bool:
        if atom.op == "symbol":
            return self.least[atom.name] >= 0
        if atom.op in ("variable", "div") or atom.op in _COMPARISONS:
            return True
        if atom.op in ("min", "max", "and", "xor", "or", "shr", "abs"):
            return all(self._nonnegative(x) for x in atom.args)
        return False

    def _nonnegative_symbols(self, term: Term) -> bool:
        # With each symbol written as its lower bound plus a natural number, no coefficient may be negative.
        shifted = term
        for atom in term.atoms:
            shifted = shifted.replace(atom, Term.of(atom) + self.least[atom.name])
        return all(c >= 0 for c in shifted.monomials.values())

    # -------------------------------------------------------------------------------------------------------- division

    def divide(self, x: Term, d: Term) -> tuple[Term, Term]:
        """Return the floor quotient and the remainder of ``x >= 0`` and ``d >= 1``."""
        if d.value == 1:
            return x, Term.constant(0)
        whole, rest = _multiples(x, d)
        if whole.monomials and not self.is_nonnegative(rest):
            # A difference such as 8*m - 1 has the remainder 7 and the quotient m - 1.
            step = d * _borrow(rest, d)
            if self.is_nonnegative(rest + step):
                whole, rest = whole - _borrow(rest, d), rest + step
        if self.is_nonnegative(rest) and self.is_at_most(rest, d - 1):
            return whole, rest
        if not self.is_nonnegative(rest):
            whole, rest = Term.constant(0), x
        quotient = whole + self._quotient(rest, d)
        return quotient, x - d * quotient

    def _quotient(self, x: Term, d: Term) -> Term:
        if len(x.monomials) == 1:
            (monomial, c), *_ = x.monomials.items()
            if c == 1 and len(monomial) == 1 and monomial[0].op == "div":
                inner, e = monomial[0].args
                return self.divide(inner, d * e)[0]
        common = _common_factor(x, d)
        if common is not None:
            return self.divide(*common)[0]
        return Term.of(Atom("div", "", (x, d)))

    # --------------------------------------------------------------------------------------------- operations of leaves

    def binary(self, op: str, a: Leaf, b: Leaf, width: int) -> Term:
        return self.operation(op, self.term(a), self.term(b))

    def operation(self, op: str, x: Term, y: Term) -> Term:
        """Return the simplified term of a scalar operation of the algebra: add, sub, mul, div, mod, min, xor, …"""
        match op:
            case "add":
                return x + y
            case "sub":
                return x - y
            case "mul":
                return x * y
            case "div" | "mod" | "ceil_div":
                return self._division(op, x, y)
            case "floor":
                if self.is_nonnegative(x) and self.is_nonnegative(y - 1):
                    return self.divide(x, y)[0]
                return self._opaque("floor", x, y)
            case "min" | "max":
                low, high = (x, y) if self.is_at_most(x, y) else (y, x)
                if self.is_at_most(low, high):
                    return low if op == "min" else high
                return self._opaque(op, *sorted((x, y), key=str))
            case "and":
                return self._and(x, y)
            case "xor" | "or":
                return self._xor(op, x, y)
            case "shl":
                assert y.value is not None
                return x * (1 << y.value)
            case "shr":
                assert y.value is not None
                if self.is_nonnegative(x):
                    return self.divide(x, Term.constant(1 << y.value))[0]
                return self._opaque("shr", x, y)
            case _:
                raise NotImplementedError(op)

    def _division(self, op: str, x: Term, d: Term) -> Term:
        if not (self.is_nonnegative(x) and self.is_nonnegative(d - 1)):
            if op == "ceil_div" and self.is_nonnegative(d - 1):
                return Term.constant(0) - self._opaque("floor", x * -1, d)
            quotient = self._opaque("tdiv", x, d)
            return quotient if op == "div" else x - d * quotient
        if op == "ceil_div":
            return self.divide(x + d - 1, d)[0]
        return self.divide(x, d)[op == "mod"]

    def _and(self, x: Term, y: Term) -> Term:
        mask = y.value
        if mask is None:
            x, mask = y, x.value
        if mask is not None and mask > 0 and self.is_nonnegative(x):
            low = mask & -mask
            if (mask // low + 1) & (mask // low) == 0:  # The set bits are contiguous.
                digits = self.divide(x, Term.constant(low))[0]
                return self.divide(digits, Term.constant(mask // low + 1))[1] * low
        return self._opaque("and", *sorted((x, y), key=str))

    def _xor(self, op: str, x: Term, y: Term) -> Term:
        for a, b in ((x, y), (y, x)):
            if b.value == 0:
                return a
        if x == y:
            return Term.constant(0) if op == "xor" else x
        if self.is_nonnegative(x) and self.is_nonnegative(y):
            for a, b in ((x, y), (y, x)):
                bits = next((n for n in range(32) if self.is_at_most(b, (1 << n) - 1)), None)
                if bits is not None:
                    # Bits of one operand above those of the other pass through.
                    high, low = self.divide(a, Term.constant(1 << bits))
                    return high * (1 << bits) + self._opaque(op, *sorted((low, b), key=str))
        return self._opaque(op, *sorted((x, y), key=str))

    def _opaque(self, op: str, *args: Term) -> Term:
        values = [x.value for x in args]
        atom = Atom(op, "", args)
        if None not in values:
            return Term.constant(_evaluate_atom(atom, {}))
        return Term.of(atom)

    def unary(self, op: str, a: Leaf, width: int) -> Term:
        x = self.term(a)
        assert op == "abs"
        if self.is_nonnegative(x):
            return x
        return x * -1 if self.is_nonnegative(x * -1) else self._opaque("abs", x)

    def compare(self, predicate: str, a: Leaf, b: Leaf, width: int) -> Term:
        return self.comparison(predicate, self.term(a), self.term(b))

    def comparison(self, predicate: str, x: Term, y: Term) -> Term:
        """Return 1, 0 or an undecided comparison."""
        match predicate:
            case "slt" | "sge":
                truths = self.is_nonnegative(y - x - 1), self.is_nonnegative(x - y)
            case "sgt" | "sle":
                truths = self.is_nonnegative(x - y - 1), self.is_nonnegative(y - x)
            case _:
                truths = x == y, self.is_nonnegative(x - y - 1) or self.is_nonnegative(y - x - 1)
        if predicate in ("sge", "sle", "ne"):
            truths = truths[1], truths[0]
        if True in truths:
            return Term.constant(int(truths[0]))
        return self._opaque(predicate, x, y)

    def select(self, condition: object, a: Leaf, b: Leaf, width: int) -> Term:
        assert isinstance(condition, Term)
        x, y = self.term(a), self.term(b)
        if condition.value is not None:
            return x if condition.value else y
        return x if x == y else self._opaque("select", condition, x, y)

    def same(self, a: object, b: object) -> bool:
        return a == b

    # ------------------------------------------------------------------------------------------------------ case splits

    def substitute(self, term: Term, values: Mapping[str, int]) -> Term:
        """Replace variables by integers, also inside of operations, and simplify again."""
        out = Term({})
        for m, c in term.monomials.items():
            part = Term.constant(c)
            for atom in m:
                part = part * self._substitute_atom(atom, values)
            out = out + part
        return out

    def _substitute_atom(self, atom: Atom, values: Mapping[str, int]) -> Term:
        if atom.name:
            return Term.constant(values[atom.name]) if atom.name in values else Term.of(atom)
        args = [self.substitute(x, values) for x in atom.args]
        if atom.op == "select":
            return self.select(args[0], self.leaf(args[1]), self.leaf(args[2]), 64)
        if atom.op == "abs":
            return self.unary("abs", self.leaf(args[0]), 64)
        if atom.op in _COMPARISONS:
            return self.comparison(atom.op, *args)
        if atom.op == "tdiv":
            return self.operation("div", *args)
        return self.operation(atom.op, *args)


def variables_inside(term: Term) -> set[str]:
    """Return the variables inside of operations."""
    return {name for a in term.atoms if not a.name for x in a.args for name in all_variables(x)}


def all_variables(term: Term) -> set[str]:
    """Return the variables of a term, also those inside of operations."""
    direct = {a.name for a in term.atoms if a.op == "variable"}
    return direct.union(*(all_variables(x) for a in term.atoms for x in a.args))


def _multiples(x: Term, d: Term) -> tuple[Term, Term]:
    """Write x as ``whole*d + rest``, taking every multiple of d that the monomials show."""
    whole, rest = Term({}), x
    n = d.value
    if n is not None:
        whole = Term({m: c // n for m, c in x.monomials.items()})
        return whole, x - whole * n
    lead, scale = max(d.monomials.items(), key=lambda item: (len(item[0]), sorted(map(_order, item[0]))))
    for m, c in x.monomials.items():
        quotient = _without(m, lead)
        if quotient is not None and c % scale == 0:
            part = Term({quotient: c // scale})
            if len(d.monomials) == 1 or all(_contains(x, part * Term({k: v})) for k, v in d.monomials.items()):
                whole, rest = whole + part, rest - part * d
    return whole, rest


def _contains(x: Term, part: Term) -> bool:
    return all(m in x.monomials for m in part.monomials)


def _borrow(rest: Term, d: Term) -> int:
    """Return the number of times that d must be added to a negative constant rest to make it natural."""
    constant, n = rest.monomials.get((), 0), d.value
    if constant >= 0:
        return 0
    return -(constant // n) if n else 1


def _without(monomial: Monomial, factor: Monomial) -> Monomial | None:
    """Return a monomial divided by another, or None if it is not a multiple of it."""
    left = list(monomial)
    for atom in factor:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def _common_factor(x: Term, d: Term) -> tuple[Term, Term] | None:
    """Cancel an atom or an integer that divides every monomial of both terms; None if there is none."""
    if not x.monomials:
        return None
    monomials = [*x.monomials, *d.monomials]
    common = gcd(*x.monomials.values(), *d.monomials.values())
    shared = next((a for a in monomials[0] if all(a in m for m in monomials)), None)
    factor = () if shared is None else (shared,)
    if common == 1 and not factor:
        return None
    a, b = (Term({_without(m, factor) or (): c // common for m, c in t.monomials.items()}) for t in (x, d))
    return a, b
