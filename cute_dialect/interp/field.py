"""Arithmetic of kernels over a prime field: residues in the bits of floats.

A run over a field keeps a residue modulo a prime in the bits of each float register and memory cell. Loads, stores,
copies, shuffles, packing and swizzles move bits and need no change. Additions, products, conversions and constants are
replaced (see `instructions.field_ops`). The sum of products is exact, so two programs that compute the same polynomial
give the same bits, in any order of summation.

Two algebras share the interface `Algebra`. `Field` computes residues. `Degrees` computes an upper bound of the degree
of each value as a polynomial in the inputs: an input has degree 1, a constant 0, a sum the larger degree of its terms,
and a product the sum of the degrees of its factors.

Example: over the field of 65521 elements, 0.5 is 32761, because 2 * 32761 = 65522 = 1 modulo 65521.
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

import numpy as np

from cute_dialect.interp.errors import InterpError
from cute_dialect.interp.types import Leaf

if TYPE_CHECKING:
    import numpy.typing as npt

    from cute_dialect.interp.values import Array, Value

PRIMES = {4: 2**31 - 1, 2: 65521, 1: 251}
"""The default prime by the size in bytes of the narrowest cell."""
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_SPLIT = 1 << 16
_EXACT_TERMS = 64
"""Terms of a sum of products below 2^47 that f64 holds exactly."""


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
        self.notes: dict[str, int] = {}

    @property
    def largest(self) -> int:
        return self.prime - 1

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
                "field", f"the constant {value} has no value in a field; the kernel probably masks with it or compares"
            )
        exact = Fraction(value)
        return exact.numerator * pow(exact.denominator, -1, self.prime) % self.prime

    def integers(self, values: Array) -> Array:
        return (
            np.asarray(values.astype(object) % self.prime if values.dtype == np.uint64 else values).astype(np.int64)
            % self.prime
        )


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


def _known() -> str:
    return ", ".join(f"{p} ({8 * size}-bit floats)" for size, p in PRIMES.items())


def field_of(value: int | Algebra) -> Algebra:
    """Return the field of a prime. Raises InterpError if the number is no prime below 2^31."""
    return Field(value) if isinstance(value, int) else value


def prime_for(dtypes: Sequence[npt.DTypeLike]) -> int:
    """Return the default prime for arrays of these types: the one of the narrowest type.

    >>> prime_for(["float16", "float32"]), prime_for(["float64"])
    (65521, 2147483647)
    """
    return PRIMES[min((min(np.dtype(t).itemsize, 4) for t in dtypes), default=4)]


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
            f"use field={PRIMES[size]}",
        )


class FieldArray:
    """An array of elements of a field, for references: `+ - * @`, division by numbers, `sum`, `.T` and slices.

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

    def sum(self, axis: int | tuple[int, ...] | None = None) -> FieldArray:
        """Return the sum over all axes, or over one or several."""
        return FieldArray(self.algebra.total(self.elements, axis), self.algebra)

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
        if not isinstance(other, (int, float)) or other == 0:
            raise TypeError("an array over a field can be divided by a number other than 0 only")
        if not isinstance(self.algebra, Field):
            return self
        inverse = pow(self.algebra.constant(other), -1, self.algebra.prime)
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
