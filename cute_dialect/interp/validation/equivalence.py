"""Equality of a program and a reference over a prime field, with an error bound.

Both sides compute polynomials of the inputs. If the polynomials differ, they differ at a random point with probability
at least 1 - d/p for each element, where d is the degree and p the prime (Schwartz-Zippel lemma). n points leave
(d/p)^n. The union bound over all elements gives the error bound of the verdict. The degree is computed by one more run,
over the algebra `Degrees`.

A difference is explained by bisection: arrays and parts of arrays are set to zero while the element still differs. One
term remains, such as `a[3, 32] * b[5, 32]`, with the coefficient that was computed and the one expected.

Example: a GEMM that drops the last k has coefficient 0 for the term `a[0, K-1] * b[0, K-1]` of `c[0, 0]`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from cute_dialect.interp.errors import InterpError
from cute_dialect.interp.field import (
    Algebra,
    Choice,
    Degrees,
    Field,
    FieldArray,
    FunctionDegrees,
    Functions,
    cell_bits,
    elements_of,
    held,
    is_float,
    primes_for,
)

if TYPE_CHECKING:
    from cute_dialect.interp.reports.run_report import RunReport
    from cute_dialect.interp.values import Array

BOUND = 2.0**-40
"""The default limit of the probability that a difference is not found."""
_MOST_RUNS = 64
Contents: TypeAlias = "Mapping[str, FieldArray | Array]"


class Side(NamedTuple):
    """One comparison: the elements of both sides, of the same shape."""

    name: str
    got: Array
    want: Array


Compare: TypeAlias = "Callable[[Contents, Contents], Sequence[Side]]"
"""Returns the comparisons, from the arrays by name before and after the run."""


class Difference(NamedTuple):
    """The first element that differs."""

    name: str
    place: tuple[int, ...]
    got: int
    want: int
    wrong: int  # number of elements that differ
    size: int
    term: str = ""  # the term with a wrong coefficient, empty if there is no single one
    line: str = ""  # the source line that wrote the element

    def __str__(self) -> str:
        place = f"{self.name}[{', '.join(map(str, self.place))}]"
        term = f"\n  {self.term}" if self.term else ""
        term += f"\n  {self.name} was written at {self.line}" if self.line else ""
        values = f"got {self.got}, expected {self.want}"
        return f"{self.wrong} of {self.size} elements differ, the first is {place}: {values}{term}"


class Verdict(NamedTuple):
    """The result of a comparison.

    `bound` limits the probability that a difference was not found. It holds for differences that remain modulo each
    of `moduli`.
    """

    prime: int  # modulus of the first run, or of the run that found the difference
    runs: int
    degree: int
    elements: int
    bound: float
    notes: tuple[str, ...]
    difference: Difference | None
    moduli: tuple[int, ...] = ()  # of all runs; each run takes the next one

    def __str__(self) -> str:
        if self.difference is not None:
            return f"different modulo {self.prime}: {self.difference}"
        notes = f"\n  not modelled: {', '.join(self.notes)}" if self.notes else ""
        return (
            f"{self.elements} elements equal modulo {' and '.join(map(str, self.moduli))} "
            f"in {self.runs} run{'s' if self.runs != 1 else ''}, polynomials of degree {self.degree}; "
            f"a difference modulo these is missed with probability <= {self.bound:.1e}{notes}"
        )


class Subject(NamedTuple):
    """A program and the arrays it runs on, which are updated in place.

    - run: runs the program over an algebra; with True also for the line that writes each element
    - arrays: the arrays by name; those of floats hold elements of the algebra during a run
    - fixed: names of arrays whose numbers are kept; other arrays of floats get random elements
    """

    run: Callable[[Algebra, bool], RunReport | None]
    arrays: Mapping[str, Array]
    fixed: Sequence[str] = ()


def compare(
    subject: Subject,
    compare: Compare,
    *,
    prime: int | None = None,
    runs: int | None = None,
    bound: float = BOUND,
    seed: int = 0,
    explain: bool = True,
    allow_unchecked: bool = False,
) -> Verdict:
    """Compare a program with a reference over a field.

    Args:
        subject: The program and its arrays.
        compare: The comparisons after a run.
        prime: The prime; None selects those of the narrowest array of floats.
        runs: The number of random points; None selects it from `bound`, and at least one per modulus.
        bound: The limit of the probability of a missed difference.
        seed: Seed of the random elements.
        explain: Search the term and the source line of a difference.
        allow_unchecked: Return a verdict, which names them, if comparisons had one outcome.

    Raises:
        InterpError: kind "field", if an op has no value over a field, or if equal values are no verdict.
    """
    before = {name: array.copy() for name, array in subject.arrays.items()}
    floats = [name for name, array in before.items() if is_float(array.dtype)]
    types = [before[name].dtype for name in floats]
    trial = _Trial(subject, compare, before, floats, explain)
    try:
        primes = primes_for(types) if prime is None else (prime,)
        return _compare(trial, [Field(p) for p in primes], runs, bound, seed)
    except InterpError as e:
        if e.kind != "function" or prime is not None:
            raise
        bits, choices = cell_bits(types), dict[object, Choice]()
        pairs = [Functions(bits, i, choices) for i in range(len(Functions.PAIRS[bits]))]
        verdict = _compare(trial, pairs, runs, bound, seed, choices)
        if verdict.difference is None and not allow_unchecked:
            _check_choices(choices.values())
        return verdict
    finally:
        trial.restore()


def _compare(
    trial: _Trial,
    fields: Sequence[Field],
    runs: int | None,
    bound: float,
    seed: int,
    choices: Mapping[object, Choice] = MappingProxyType({}),
) -> Verdict:
    wanted = runs if runs is not None else len(fields)
    degree, elements = 0, 0
    done = redrawn = 0
    base = min(f.q if isinstance(f, Functions) else f.prime for f in fields)
    moduli = tuple(f.p if isinstance(f, Functions) else f.prime for f in fields)
    while done < wanted:
        field = fields[done % len(fields)]
        given, sides, again = _drawn(trial, field, seed + done + redrawn)
        redrawn += again
        done += 1
        wrong = next((s for s in sides if np.any(s.got != s.want)), None)
        if wrong is not None:
            found = trial.explain(field, given, sides.index(wrong), wrong)
            return Verdict(field.prime, done, degree, elements, 1.0, _notes(fields), found, moduli)
        if done == 1:
            elements = sum(s.got.size for s in sides)
            degree = trial.degree(FunctionDegrees(dict(choices)) if isinstance(field, Functions) else Degrees())
            largest = FunctionDegrees.largest if isinstance(field, Functions) else Degrees.largest
            if runs is None:
                wanted = max(runs_for(elements, degree, base, bound, largest), len(fields))
            elif error_bound(elements, degree, base, runs) > bound:
                raise InterpError(
                    "argument",
                    f"{runs} run{'s' if runs != 1 else ''} may miss a difference with probability "
                    f"{error_bound(elements, degree, base, runs):.1e}, more than the bound {bound:.1e}; "
                    "use more runs, a larger prime or a larger bound",
                )
    first, notes = fields[0], list(_notes(fields))
    if redrawn:
        notes.append(f"{redrawn} points with a division by 0 were drawn again")
    notes += [f"not checked: {c.name}{_at(c)} was never true" for c in choices.values() if _is_unequal(c)]
    notes += [f"not checked: {c.name}{_at(c)} had one outcome" for c in choices.values() if _is_one_sided(c)]
    probability = error_bound(elements, degree, base, done)
    return Verdict(first.prime, done, degree, elements, probability, tuple(notes), None, moduli[:done])


def _drawn(trial: _Trial, field: Field, seed: int) -> tuple[dict[str, Array], Sequence[Side], int]:
    """Return a random point without divisions by 0, its comparisons, and the number of points drawn before."""
    for again in range(_MOST_RUNS):
        given = trial.draw(field, seed + again)
        sides = trial.sides(field, given)
        if not isinstance(field, Functions) or not trial.take_zero_divisors(field):
            return given, sides, again
    modulus = field.p if isinstance(field, Functions) else field.prime
    raise InterpError(
        "field",
        f"a divisor is 0 at all {_MOST_RUNS} points modulo {modulus}, so there is no verdict; "
        "correct the divisor, or use wider floats or fewer elements if it can be different from 0",
    )


def _at(choice: Choice) -> str:
    return f" at {choice.line}" if choice.line else ""


def _is_unequal(choice: Choice) -> bool:
    return choice.name == "the equality" and (choice.less or choice.more) and not choice.same


def _is_one_sided(choice: Choice) -> bool:
    return choice.name != "the equality" and choice.is_decided


def _check_choices(choices: Iterable[Choice]) -> None:
    """Raise InterpError if a comparison, or a minimum or maximum with a constant, had one outcome in all runs."""
    for c in choices:
        if _is_one_sided(c) and (c.name == "the comparison" or c.is_against_constant):
            raise InterpError(
                "field",
                f"{c.name}{_at(c)} had one outcome in all runs, so the other one is not checked and there is no "
                "verdict; residues have another order than real numbers; check it with assert_close, and pass "
                "allow_unchecked=True to assert_equivalent for the other values",
            )


def error_bound(elements: int, degree: int, prime: int, runs: int) -> float:
    """Return the limit of the probability that a difference is missed.

    >>> error_bound(8, 2, 64, 2)
    0.0078125
    """
    return min(1.0, elements * (degree / prime) ** runs)


def runs_for(elements: int, degree: int, prime: int, bound: float, largest: int = Degrees.largest) -> int:
    """Return the number of runs that an error bound needs. Raises InterpError if it cannot be reached.

    >>> runs_for(256 * 256, 2, 65521, 2.0**-40), runs_for(256 * 256, 2, 251, 2.0**-40)
    (4, 9)
    """
    if degree >= min(prime, largest):
        raise InterpError(
            "field",
            f"values are polynomials of degree {degree} or more, too large for the prime {prime}; no error bound holds",
        )
    if elements == 0 or degree == 0:
        return 1
    needed = max(1, math.ceil(math.log(elements / bound) / math.log(prime / degree)))
    if needed > _MOST_RUNS:
        raise InterpError("argument", f"the bound {bound:.1e} needs {needed} runs; at most {_MOST_RUNS} are supported")
    return needed


def coefficient(element: int, prime: int) -> str:
    """Format an element as a small dyadic rational if it is one.

    >>> coefficient(65520, 65521), coefficient(32761, 65521), coefficient(12345, 65521)
    ('-1', '1/2', '12345')
    """
    for power in range(11):
        value = (element << power) % prime
        value -= prime if value > prime // 2 else 0
        if abs(value) * 8 << power < prime // 8:
            return str(Fraction(value, 1 << power))
    return str(element)


def _notes(fields: Sequence[Field]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(note for f in fields for note in f.notes))


class _Trial:
    """Runs of a subject on chosen elements."""

    def __init__(
        self, subject: Subject, compare: Compare, before: Mapping[str, Array], floats: Sequence[str], explains: bool
    ) -> None:
        self._subject = subject
        self._compare = compare
        self._before = before
        self._floats = floats
        self._explains = explains

    def draw(self, field: Field, seed: int) -> dict[str, Array]:
        """Return random elements for each array of floats, and those of the numbers of fixed arrays."""
        rng = np.random.default_rng(seed)
        out: dict[str, Array] = {}
        for name in self._floats:
            first = self._before[name]
            if name in self._subject.fixed:
                numbers = first.astype(np.float64)
                out[name] = np.asarray(np.vectorize(field.constant, otypes=[np.int64])(numbers)).reshape(first.shape)
            else:
                out[name] = rng.integers(0, field.prime, first.shape)
        return out

    def sides(self, algebra: Algebra, given: Mapping[str, Array]) -> Sequence[Side]:
        """Run the program on elements and return the comparisons."""
        arrays = self._subject.arrays
        for name, array in arrays.items():
            array[...] = held(given[name], array.dtype) if name in given else self._before[name]
        self._subject.run(algebra, False)
        first: dict[str, FieldArray | Array] = {n: FieldArray(e.copy(), algebra) for n, e in given.items()}
        first.update({n: a for n, a in self._before.items() if n not in given})
        last: dict[str, FieldArray | Array] = dict(arrays)
        last.update({n: FieldArray(elements_of(np.array(arrays[n])), algebra) for n in given})
        sides = self._compare(first, last)
        if not isinstance(algebra, Field):
            return sides
        return [Side(s.name, algebra.comparable(s.got), algebra.comparable(s.want)) for s in sides]

    def take_zero_divisors(self, functions: Functions) -> int:
        """Return the number of divisions by 0 since the last call."""
        count, functions.zero_divisors = functions.zero_divisors, 0
        return count

    def degree(self, degrees: Degrees) -> int:
        """Return the largest degree of an element of either side."""
        given = {n: np.full(self._before[n].shape, n not in self._subject.fixed, np.int64) for n in self._floats}
        sides = self.sides(degrees, given)
        if isinstance(degrees, FunctionDegrees):
            return max((max(degrees.degree(s.got), degrees.degree(s.want)) for s in sides), default=0)
        return max((int(max(s.got.max(initial=0), s.want.max(initial=0))) for s in sides), default=0)

    def _line(self, field: Field, name: str, index: tuple[int, ...]) -> str:
        """Return the source line that writes an element, from one more run that records writes."""
        if name not in self._subject.arrays:
            return ""
        try:
            report = self._subject.run(field, True)
        except InterpError:  # The recording run also finds races.
            return ""
        return "" if report is None else report.line_of_write(self._subject.arrays[name], index)

    def restore(self) -> None:
        """Restore the contents of the arrays."""
        for name, array in self._subject.arrays.items():
            array[...] = self._before[name]

    def explain(self, field: Field, given: dict[str, Array], number: int, side: Side) -> Difference:
        """Return the first element that differs, and the term that does."""
        wrong = side.got != side.want
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        got, want = int(side.got[index]), int(side.want[index])
        line = self._line(field, side.name, index) if self._explains else ""
        found = Difference(side.name, index, got, want, int(wrong.sum()), side.got.size, line=line)

        if isinstance(field, Functions) or not self._explains:
            return found  # A value is not a sum of terms.

        def both() -> tuple[int, int]:
            now = self.sides(field, given)[number]
            return int(now.got[index]), int(now.want[index])

        def differs() -> bool:
            got, want = both()
            return got != want

        factors: list[str] = []
        for name in self._floats:
            if name in self._subject.fixed:
                continue
            place = self._bisect(given, name, differs)
            if place is not None:
                given[name][place] = 1
                factors.append(f"{name}[{', '.join(map(str, place))}]")
        got, want = both()
        if not factors or got == want:
            return found
        term = " * ".join(factors)
        coefficients = [coefficient(x, field.prime) for x in (got, want)]
        return found._replace(term=f"the term {term} has the coefficient {coefficients[0]}, expected {coefficients[1]}")

    def _bisect(self, given: dict[str, Array], name: str, differs: Callable[[], bool]) -> tuple[int, ...] | None:
        """Keep one element of an array, zero the others, so that a difference remains. None if it needs no element."""
        values = given[name]
        given[name] = np.zeros_like(values)
        if differs():
            return None
        low, high = 0, values.size
        flat = values.reshape(-1)
        while high - low > 1:
            middle = (low + high) // 2
            kept = np.zeros_like(flat)
            kept[low:middle] = flat[low:middle]
            given[name] = kept.reshape(values.shape)
            low, high = (low, middle) if differs() else (middle, high)
        kept = np.zeros_like(flat)
        kept[low] = flat[low]
        given[name] = kept.reshape(values.shape)
        return tuple(int(i) for i in np.unravel_index(low, values.shape))
