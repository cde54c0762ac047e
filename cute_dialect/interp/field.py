"""Arithmetic of kernels over a prime field: residues in the bits of floats.

A run over a field keeps a residue modulo a prime in the bits of each float register and memory cell. Loads, stores,
copies, shuffles, packing and swizzles move bits and need no change. Additions, products, conversions and constants are
replaced (see `instructions.field_ops`). The sum of products is exact, so two programs that compute the same polynomial
give the same bits, in any order of summation.

The algebras share the interface `Algebra`. `Field` computes residues. `Degrees` computes an upper bound of the degree
of each value as a polynomial in the inputs: an input has degree 1, a constant 0, a sum the larger degree of its terms,
and a product the sum of the degrees of its factors.

`Functions` adds exponentials, division, comparisons and other functions of real numbers to a ring of residues.

Example: over the field of 65521 elements, 0.5 is 32761, because 2 * 32761 = 65522 = 1 modulo 65521.
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from cute_dialect.interp.errors import InterpError
from cute_dialect.interp.types import Leaf

if TYPE_CHECKING:
    import numpy.typing as npt

    from cute_dialect.interp.values import Array, Value

PRIMES = {4: (2**31 - 1, 2**31 - 19), 2: (65521, 65519), 1: (251, 241, 239, 233)}
"""The default primes by the size in bytes of the narrowest cell. Runs take them in turn."""
_LARGEST = float(np.finfo(np.float32).max)
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_SPLIT = 1 << 16
_EXACT_INTEGERS = 4096
"""Integers below it have the order of real numbers."""
_EXACT_TERMS = 64
"""Terms of a sum of products below 2^47 that f64 holds exactly."""


class Choice:
    """The outcomes of one comparison, minimum or maximum over all elements of all runs.

    Outcomes between equal elements, and with infinities, the largest f32 and NaN are those of real numbers and do not
    count. Those between small integers are also certain, but count as outcomes.
    """

    def __init__(self, name: str, line: str) -> None:
        self.name = name
        """The name of the op."""
        self.line = line
        """`FILE:LINE:COL` of the op, empty if unknown."""
        self.less = self.more = self.same = False
        """Outcomes that occurred."""
        self.has_constant = False
        """True if an operand does not depend on the inputs."""
        self._is_uncertain = False
        self._first: dict[tuple[int, int], int] = {}
        self._varied: set[int] = set()

    @property
    def is_decided(self) -> bool:
        """True if one of two outcomes occurred, and real numbers may have the other one."""
        return self._is_uncertain and self.less != self.more

    @property
    def is_against_constant(self) -> bool:
        """Return True if an operand is a constant, or was the same in all elements and runs."""
        return self.has_constant or not {0, 1} <= self._varied

    def see(self, algebra: Functions | FunctionDegrees, a: Array, b: Array) -> None:
        """Record a comparison of elements."""
        a, b = np.broadcast_arrays(a, b)
        if isinstance(algebra, FunctionDegrees):
            self.has_constant |= bool(np.any((a == 0) != (b == 0)))
            return
        small = min(_EXACT_INTEGERS, algebra.prime // 8)
        finite = ~(algebra.is_extreme(a) | algebra.is_extreme(b))
        apart = finite & (a % algebra.p != b % algebra.p)
        self.same |= bool(np.any(finite & ~apart))
        for side, values in enumerate((a[apart], b[apart])):
            if values.size and side not in self._varied:
                first = self._first.setdefault((side, algebra.prime), int(values[0]))
                if np.any(values != first):
                    self._varied.add(side)
        self._is_uncertain |= bool(np.any(apart & ((a >= small) | (b >= small))))
        self.less |= bool(np.any(apart & (a < b)))
        self.more |= bool(np.any(apart & (a > b)))


class Algebra(Protocol):
    """Arithmetic on the integers that float cells hold. Arguments and results are int64 arrays."""

    notes: dict[str, int]
    """Effects that the algebra does not model -> the number of ops that have them."""

    @property
    def largest(self) -> int:
        """The largest integer that a cell holds."""
        ...

    def add(self, a: Array, b: Array) -> Array: ...

    def subtract(self, a: Array, b: Array) -> Array: ...

    def multiply(self, a: Array, b: Array) -> Array: ...

    def negate(self, a: Array) -> Array: ...

    def matmul(self, a: Array, b: Array) -> Array:
        """Return the matrix products of the last two axes."""
        ...

    def total(self, a: Array, axis: int | tuple[int, ...] | None) -> Array:
        """Return the totals over axes, over all of them for None."""
        ...

    def constant(self, value: float) -> int:
        """Return the element that represents a number. Raises InterpError for infinity and NaN."""
        ...

    def integers(self, values: Array) -> Array:
        """Return the elements that represent integers."""
        ...


class Field:
    """The integers modulo a prime below 2^31.

    >>> Field(65521).constant(-0.25), Field(251).matmul(np.array([[250, 2]]), np.array([[1], [3]])).tolist()
    (16380, [[5]])
    """

    def __init__(self, prime: int) -> None:
        if not 2 < prime < 1 << 31 or any(prime % d == 0 for d in range(2, math.isqrt(prime) + 1)):
            raise InterpError("argument", f"field: {prime} is not an odd prime below 2^31; use {_known()}")
        self.prime = prime
        """The modulus."""
        self.notes: dict[str, int] = {}

    @property
    def largest(self) -> int:
        return self.prime - 1

    def comparable(self, a: Array) -> Array:
        """Return the part of elements that a comparison of results looks at."""
        return a

    def add(self, a: Array, b: Array) -> Array:
        return (a % self.prime + b % self.prime) % self.prime

    def subtract(self, a: Array, b: Array) -> Array:
        return (a % self.prime - b % self.prime) % self.prime

    def multiply(self, a: Array, b: Array) -> Array:
        return (a % self.prime) * (b % self.prime) % self.prime

    def negate(self, a: Array) -> Array:
        return -(a % self.prime) % self.prime

    def total(self, a: Array, axis: int | tuple[int, ...] | None) -> Array:
        return np.asarray((a % self.prime).sum(axis=axis)) % self.prime

    def matmul(self, a: Array, b: Array) -> Array:
        p = self.prime
        x, y = np.asarray(a).astype(np.int64) % p, np.asarray(b).astype(np.float64) % p
        if p < _SPLIT:  # Products are below 2^32, so f64 holds sums of 2^20 terms.
            return (x.astype(np.float64) @ y).astype(np.int64) % p
        high, low = (x // _SPLIT).astype(np.float64), (x % _SPLIT).astype(np.float64)
        shape = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        out = np.zeros((*shape, x.shape[-2], y.shape[-1]), np.int64)
        for k in range(0, x.shape[-1], _EXACT_TERMS):
            part = slice(k, k + _EXACT_TERMS)
            upper = (high[..., part] @ y[..., part, :]).astype(np.int64) % p
            out += (upper * _SPLIT + (low[..., part] @ y[..., part, :]).astype(np.int64)) % p
        return out % p

    def constant(self, value: float) -> int:
        if not math.isfinite(value):
            raise InterpError(
                "function",
                f"the constant {value} has no value in a field; the kernel probably masks with it or compares",
            )
        exact = Fraction(value)
        return exact.numerator * pow(exact.denominator, -1, self.prime) % self.prime

    def integers(self, values: Array) -> Array:
        return (
            np.asarray(values.astype(object) % self.prime if values.dtype == np.uint64 else values).astype(np.int64)
            % self.prime
        )


class Functions(Field):
    """Residues modulo N = p q, for primes with p = 2 q + 1, with exponentials, quotients and an order.

    A residue stands for a pair (x mod p, x mod q). For p = 7 modulo 8, 2 has the order q modulo p, so ``exp2(x)`` is
    2^(x mod q) modulo p (and 1 modulo q). It is a function of residues, ``exp2(1) = 2``, and
    ``exp2(a + b) = exp2(a) exp2(b)`` holds for all of them. Results are compared modulo p. An exponential is no
    exponent, because it is 1 modulo q: `FunctionDegrees` refuses that.

    Three codes above the residues are -inf, +inf and NaN. Comparisons and maxima use the order -inf, the smallest f32,
    0, 1, …, N - 1, the largest f32, +inf. It is not that of the real numbers, but total, so the maximum of several
    values does not depend on the order in which they are visited; a softmax is the same for any maximum. Roots and
    logarithms are fixed random functions.

    >>> f = Functions(16)
    >>> a, b = np.array([1000]), np.array([2000])
    >>> int(f.exp2(a + b)[0]) == int(f.multiply(f.exp2(a), f.exp2(b))[0])
    True
    >>> f.exp2(np.array([f.constant(-math.inf)])).tolist()
    [0]
    """

    PAIRS: ClassVar = {
        8: ((23, 11), (7, 3)),
        16: ((359, 179), (263, 131)),
        32: ((65063, 32531), (64319, 32159)),
    }
    """Pairs (p, q) by the bits of the narrowest cell. Runs take them in turn."""

    def __init__(self, bits: int, pair: int = 0, choices: dict[object, Choice] | None = None) -> None:
        self.p, self.q = self.PAIRS[bits][pair]
        self.choices: dict[object, Choice] = {} if choices is None else choices
        """Comparisons, minima and maxima by their op."""
        self.prime = self.p * self.q
        self.notes = {}
        self.minus, self.plus, self.undefined = self.prime, self.prime + 1, self.prime + 2
        self.highest = super().constant(_LARGEST)
        self.lowest = super().constant(-_LARGEST)
        self.zero_divisors = 0
        """Divisions by 0 modulo p."""
        self._powers = np.array([pow(2, i, self.p) for i in range(self.q)], np.int64)
        self._to_p = self.q * pow(self.q, -1, self.p)  # 1 modulo p, 0 modulo q
        self._to_q = self.p * pow(self.p, -1, self.q)
        self._inverse_p, self._inverse_q = (
            np.array([0, *(pow(i, -1, n) for i in range(1, n))], np.int64) for n in (self.p, self.q)
        )

    @property
    def largest(self) -> int:
        return self.undefined

    def comparable(self, a: Array) -> Array:
        return np.where(a < self.prime, a % self.p, a)

    def add(self, a: Array, b: Array) -> Array:
        out = super().add(a, b)
        return self._coded(out, (a, b), opposite=True)

    def subtract(self, a: Array, b: Array) -> Array:
        return self.add(a, self.negate(b))

    def multiply(self, a: Array, b: Array) -> Array:
        return self._coded(super().multiply(a, b), (a, b), opposite=False)

    def negate(self, a: Array) -> Array:
        swapped = np.where(a == self.minus, self.plus, np.where(a == self.plus, self.minus, a))
        return np.where(a < self.prime, super().negate(a), swapped)

    def total(self, a: Array, axis: int | tuple[int, ...] | None) -> Array:
        out = super().total(a, axis)
        for code in (self.plus, self.minus, self.undefined):
            out = np.where((a == code).any(axis=axis), code, out)
        return out

    def matmul(self, a: Array, b: Array) -> Array:
        if a.max(initial=0) >= self.prime or b.max(initial=0) >= self.prime:
            raise InterpError("arithmetic", "an operand of a matrix product is infinite or NaN")
        return super().matmul(a, b)

    def constant(self, value: float) -> int:
        if math.isfinite(value):
            return super().constant(value)
        return self.undefined if math.isnan(value) else self.plus if value > 0 else self.minus

    def _coded(self, out: Array, operands: tuple[Array, Array], *, opposite: bool) -> Array:
        """Return a sum or product, whose operands may be infinite. A product with an infinity has its sign."""
        a, b = operands
        if max(np.max(a, initial=0), np.max(b, initial=0)) < self.prime:
            return out
        minus, plus = ((a == code) | (b == code) for code in (self.minus, self.plus))
        undefined = (a == self.undefined) | (b == self.undefined) | (minus & plus if opposite else False)
        out = np.where(plus, self.plus, out)
        return np.where(undefined, self.undefined, np.where(minus, self.minus, out))

    def exp2(self, x: Array) -> Array:
        """Return 2 to the power of x: 0 for -inf."""
        r = (self._powers[x % self.q] * self._to_p + self._to_q) % self.prime
        return np.where(x < self.prime, r, np.where(x == self.minus, 0, x))

    def inverse(self, x: Array) -> Array:
        """Return 1 / x: 0 for an infinity. A component of 0 stays 0, and is counted modulo p."""
        self.zero_divisors += int(np.sum((x < self.prime) & (x % self.p == 0)))
        r = (self._inverse_p[x % self.p] * self._to_p + self._inverse_q[x % self.q] * self._to_q) % self.prime
        return np.where(x < self.prime, r, np.where(x == self.undefined, x, 0))

    def function(self, name: str, x: Array) -> Array:
        """Return a fixed random function of x."""
        note = f"{name} is a random function"
        self.notes[note] = self.notes.get(note, 0) + 1
        r = x
        for i, word in enumerate(name.encode()):
            r = (r * r + (word + 1) * 7919 * r + i + word) % self.prime
        return np.where(x < self.prime, r, x)

    def order(self, x: Array) -> Array:
        """Return keys in the order of the elements. NaN has the largest key."""
        finite = np.where(x == self.lowest, -1, np.where(x == self.highest, self.prime, x))
        return np.where(x == self.minus, -2, np.where(x == self.plus, self.prime + 1, finite))

    def is_extreme(self, x: Array) -> Array:
        """Return True for infinities, NaN, and the largest and smallest f32, which have the order of real numbers."""
        return (x >= self.prime) | (x == self.lowest) | (x == self.highest)

    def maximum(self, a: Array, b: Array, *, number: bool = False) -> Array:
        """Return the larger of two elements. With ``number``, that of NaN and a number is the number."""
        self._note_order()
        larger = np.where(self.order(a) >= self.order(b), a, b)
        return np.where(larger == self.undefined, np.where(a == larger, b, a), larger) if number else larger

    def minimum(self, a: Array, b: Array, *, number: bool = False) -> Array:
        """Return the smaller of two elements, as `maximum`."""
        self._note_order()
        smaller = np.where(self.order(a) <= self.order(b), a, b)
        return smaller if number else np.where((a == self.undefined) | (b == self.undefined), self.undefined, smaller)

    def compare(self, word: str, a: Array, b: Array) -> Array:
        """Return a comparison by a word of PTX: "lt", or "ltu", which is also true for NaN."""
        unordered = (a == self.undefined) | (b == self.undefined)
        if word in ("num", "nan"):
            return unordered if word == "nan" else ~unordered
        stem = word.removesuffix("u")
        if stem not in ("eq", "ne"):
            self._note_order()
        x, y = self.order(a), self.order(b)
        same = (x == y) | ((a < self.prime) & (b < self.prime) & (a % self.p == b % self.p))
        less = (x < y) & ~same
        more = ~(less | same)
        words = {"eq": same, "ne": ~same, "lt": less, "le": less | same, "gt": more, "ge": more | same}
        return words[stem] & ~unordered if word == stem else words[stem] | unordered

    def _note_order(self) -> None:
        self.notes["comparisons follow the order of residues"] = 1


class Degrees:
    """Upper bounds of the degrees of polynomials, at most `largest`, which stands for every larger degree."""

    largest = 250

    def __init__(self) -> None:
        self.notes: dict[str, int] = {}

    def add(self, a: Array, b: Array) -> Array:
        return np.minimum(np.maximum(a, b), self.largest)

    subtract = add

    def multiply(self, a: Array, b: Array) -> Array:
        return np.minimum(a + b, self.largest)

    def negate(self, a: Array) -> Array:
        return np.minimum(a, self.largest)

    def matmul(self, a: Array, b: Array) -> Array:
        x, y = np.asarray(a).astype(np.int64), np.asarray(b).astype(np.int64)
        terms = [x[..., :, k, None] + y[..., None, k, :] for k in range(x.shape[-1])]
        return np.minimum(np.maximum.reduce(terms), self.largest)

    def total(self, a: Array, axis: int | tuple[int, ...] | None) -> Array:
        return np.asarray(self.negate(a).max(axis=axis))

    def constant(self, value: float) -> int:
        return 0

    def integers(self, values: Array) -> Array:
        return np.zeros(values.shape, np.int64)


class FunctionDegrees(Degrees):
    """Degrees of values with exponentials and other functions, which count as new variables of degree 1.

    Quotients are compared after multiplication with their denominators, so the degrees of both parts are added.
    The bit `_EXPONENTIAL` of an element marks a value that depends on an exponential.
    """

    largest = 120
    _EXPONENTIAL = 128

    def __init__(self, choices: dict[object, Choice] | None = None) -> None:
        super().__init__()
        self.choices: dict[object, Choice] = {} if choices is None else choices

    def _degree(self, a: Array) -> Array:
        return a & (self._EXPONENTIAL - 1)

    def _marked(self, degree: Array, *operands: Array) -> Array:
        out = np.minimum(degree, self.largest)
        for x in operands:
            out = out | (x & self._EXPONENTIAL)
        return out

    def degree(self, a: Array) -> int:
        """Return the largest degree of elements, 0 if there are none."""
        return int(self._degree(a).max(initial=0))

    def add(self, a: Array, b: Array) -> Array:
        return self._marked(np.maximum(self._degree(a), self._degree(b)), a, b)

    subtract = add

    def multiply(self, a: Array, b: Array) -> Array:
        return self._marked(self._degree(a) + self._degree(b), a, b)

    def negate(self, a: Array) -> Array:
        return self._marked(self._degree(a), a)

    def matmul(self, a: Array, b: Array) -> Array:
        x, y = np.asarray(a).astype(np.int64), np.asarray(b).astype(np.int64)
        marks = [np.bitwise_or.reduce(m & self._EXPONENTIAL, axis=k) for m, k in ((x, -1), (y, -2))]
        degrees = super().matmul(self._degree(x), self._degree(y))
        return degrees | marks[0][..., :, None] | marks[1][..., None, :]

    def total(self, a: Array, axis: int | tuple[int, ...] | None) -> Array:
        marks = np.asarray(np.bitwise_or.reduce(a & self._EXPONENTIAL, axis=axis))
        return np.asarray(super().total(self._degree(a), axis)) | marks

    def exp2(self, x: Array) -> Array:
        if np.any(x & self._EXPONENTIAL):
            raise InterpError(
                "field",
                "the exponent of an exponential depends on another exponential; over a field exponentials have no "
                "value as exponents, so there is no verdict",
            )
        return np.minimum(x, 1) | self._EXPONENTIAL

    def inverse(self, x: Array) -> Array:
        return x

    def function(self, name: str, x: Array) -> Array:
        return self._marked(np.minimum(self._degree(x), 1), x)

    def maximum(self, a: Array, b: Array, *, number: bool = False) -> Array:
        return self.add(a, b)

    minimum = maximum

    def compare(self, word: str, a: Array, b: Array) -> Array:
        """Return the comparison of the degrees: a value that depends on the input is larger than a constant."""
        if word in ("num", "nan"):
            return np.full(np.broadcast_shapes(a.shape, b.shape), word == "num")
        found: Callable[[Array, Array], Array] = getattr(operator, word.removesuffix("u"))
        return np.asarray(found(self._degree(a), self._degree(b)))


LOG2_E = float(np.float32(1.4426950408889634))


def functions_of(algebra: Algebra, name: str) -> Functions | FunctionDegrees:
    """Return an algebra that has functions of real numbers.

    Raises:
        InterpError: kind "function", if it has none.
    """
    if isinstance(algebra, Functions | FunctionDegrees):
        return algebra
    raise InterpError(
        "function",
        f"{name} has no value over a field of one prime; "
        'use assert_equivalent with field="auto", which models order, quotients, exponentials and roots',
    )


def _known() -> str:
    return ", ".join(f"{p[0]} ({8 * size}-bit floats)" for size, p in PRIMES.items())


def field_of(value: int | Algebra) -> Algebra:
    """Return the field of a prime. Raises InterpError if the number is no prime below 2^31."""
    return Field(value) if isinstance(value, int) else value


def primes_for(dtypes: Sequence[npt.DTypeLike]) -> tuple[int, ...]:
    """Return the default primes for arrays of these types: those of the narrowest type.

    >>> primes_for(["float16", "float32"]), primes_for(["float64"])
    ((65521, 65519), (2147483647, 2147483629))
    """
    return PRIMES[min((min(np.dtype(t).itemsize, 4) for t in dtypes), default=4)]


def cell_bits(dtypes: Sequence[npt.DTypeLike]) -> int:
    """Return the size in bits of the narrowest type, at most 32."""
    return 8 * min((min(np.dtype(t).itemsize, 4) for t in dtypes), default=4)


def is_float(dtype: np.dtype[np.generic]) -> bool:
    """Return True for floating point types, including the narrow ones that numpy lacks."""
    return dtype.kind == "f" or (dtype.kind == "V" and "float" in dtype.name)


def elements_of(v: Value) -> Array:
    """Return the integers in the bits of floats."""
    a = np.asarray(v)
    return a.view(_UNSIGNED[a.dtype.itemsize]).astype(np.int64)


def held(elements: Array, dtype: np.dtype[np.generic]) -> Value:
    """Return integers in the bits of floats of a type: an array, or a scalar for a 0-d array."""
    out = np.array(elements, dtype=_UNSIGNED[dtype.itemsize], order="C").view(dtype)
    return out if out.ndim else out[()]


def check_width(algebra: Algebra, leaf: Leaf) -> None:
    """Raise InterpError if the elements do not fit in the bits of a float type."""
    size = leaf.dtype.itemsize
    if leaf.width < 8 * size:
        raise InterpError("field", f"{leaf.name} has {leaf.width} bits; a field needs floats of at least 8 bits")
    if algebra.largest >= 1 << (8 * size):
        raise InterpError(
            "field",
            f"residues modulo {algebra.largest + 1} do not fit in {leaf.name} ({8 * size} bits); "
            f"use field={PRIMES[size][0]}",
        )


class FieldArray:
    """An array of elements of a field, for references: `+ - * @`, division by numbers, `sum`, `.T` and slices.

    `max`, `exp2`, `exp`, `rsqrt`, `log2` and division by arrays need `Functions`, which `assert_equivalent` selects.

    Numbers in an expression become elements: `0.5 * x` is exact. Assignment to a slice changes the array in place.

    >>> x = FieldArray(np.array([[1, 2], [3, 4]]), Field(251))
    >>> (x @ x.T / 2).elements.tolist()
    [[128, 131], [131, 138]]
    """

    __array_ufunc__ = None

    def __init__(self, elements: Array, algebra: Algebra) -> None:
        self.elements = elements
        self.algebra = algebra

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return self.elements.shape

    @property
    def T(self) -> FieldArray:
        """The transposed array."""
        return FieldArray(self.elements.T, self.algebra)

    def reshape(self, *shape: int) -> FieldArray:
        """Return the array with other extents."""
        return FieldArray(self.elements.reshape(*shape), self.algebra)

    def sum(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> FieldArray:
        """Return the sum over all axes, or over one or several."""
        out = self.algebra.total(self.elements, axis)
        if keepdims:
            out = np.expand_dims(out, tuple(range(self.elements.ndim)) if axis is None else axis)
        return FieldArray(out, self.algebra)

    def max(self, axis: int, keepdims: bool = False) -> FieldArray:
        """Return the maximum over an axis, in the order of residues."""
        algebra = functions_of(self.algebra, "max")
        parts = np.moveaxis(self.elements, axis, 0)
        out = parts[0]
        for part in parts[1:]:
            out = algebra.maximum(out, part)
        return FieldArray(np.expand_dims(out, axis) if keepdims else out, self.algebra)

    def exp2(self) -> FieldArray:
        """Return 2 to the power of each element."""
        return FieldArray(functions_of(self.algebra, "exp2").exp2(self.elements), self.algebra)

    def exp(self) -> FieldArray:
        """Return e to the power of each element: ``exp2(x * LOG2_E)``, with the constant rounded to f32."""
        return (self * LOG2_E).exp2()

    def rsqrt(self) -> FieldArray:
        """Return the reciprocal square root, a fixed random function."""
        return FieldArray(functions_of(self.algebra, "rsqrt").function("rsqrt", self.elements), self.algebra)

    def log2(self) -> FieldArray:
        """Return the logarithm to base 2, a fixed random function."""
        return FieldArray(functions_of(self.algebra, "log2").function("lg2", self.elements), self.algebra)

    def __getitem__(self, index: object) -> FieldArray:
        return FieldArray(np.asarray(self.elements[index]), self.algebra)  # type: ignore[index]

    def __setitem__(self, index: object, value: object) -> None:
        self.elements[index] = self._other(value)  # type: ignore[index]

    def __neg__(self) -> FieldArray:
        return FieldArray(self.algebra.negate(self.elements), self.algebra)

    def __add__(self, other: object) -> FieldArray:
        return FieldArray(self.algebra.add(self.elements, self._other(other)), self.algebra)

    def __sub__(self, other: object) -> FieldArray:
        return FieldArray(self.algebra.subtract(self.elements, self._other(other)), self.algebra)

    def __rsub__(self, other: object) -> FieldArray:
        return FieldArray(self.algebra.subtract(self._other(other), self.elements), self.algebra)

    def __mul__(self, other: object) -> FieldArray:
        return FieldArray(self.algebra.multiply(self.elements, self._other(other)), self.algebra)

    def __truediv__(self, other: object) -> FieldArray:
        if isinstance(other, FieldArray):
            inverse = functions_of(self.algebra, "division").inverse(other.elements)
            return FieldArray(self.algebra.multiply(self.elements, inverse), self.algebra)
        if not isinstance(other, (int, float)) or other == 0:
            raise TypeError("an array over a field can be divided by an array, or by a number other than 0")
        if not isinstance(self.algebra, Field):
            return self
        divisor = self.algebra.constant(other)
        if math.gcd(divisor, self.algebra.prime) != 1:
            raise InterpError("field", f"the divisor {other} has no inverse modulo {self.algebra.prime}")
        inverse = pow(divisor, -1, self.algebra.prime)
        return FieldArray(self.algebra.multiply(self.elements, np.asarray(inverse)), self.algebra)

    def __matmul__(self, other: object) -> FieldArray:
        return FieldArray(self.algebra.matmul(self.elements, self._other(other)), self.algebra)

    __radd__ = __add__
    __rmul__ = __mul__

    def _other(self, value: object) -> Array:
        if isinstance(value, FieldArray):
            return value.elements
        a = np.asarray(value)
        if a.dtype.kind in "iub":
            return self.algebra.integers(a)
        if a.dtype.kind != "f":
            raise TypeError(f"{type(value).__name__} cannot be combined with an array over a field; use numbers")
        return np.asarray(np.vectorize(self.algebra.constant, otypes=[np.int64])(a))
