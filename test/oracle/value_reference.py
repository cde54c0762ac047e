"""Reference values of scalar PTX instructions, from exact rational and integer arithmetic rounded once.

Operands and results are bit patterns. `evaluate("fma.rz.f32", [0x3F800001, 0x3F800001, 0])` returns the bits of the
result. `accepts` returns True if the given bits are a correct result. All NaNs are equal. An approximate instruction
must meet the error bound of the PTX ISA. Bitwise pseudo-code of the PTX ISA is copied literally.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple


class Layout(NamedTuple):
    """Exponent and fraction bits. With `extra` the highest exponent encodes numbers, and no infinity exists (e4m3).

    With `finite` no NaN exists either.
    """

    exponent: int
    fraction: int
    extra: bool = False
    finite: bool = False

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1


LAYOUTS = {
    "f64": Layout(11, 52), "f32": Layout(8, 23), "f16": Layout(5, 10), "bf16": Layout(8, 7),
    "e4m3": Layout(4, 3, True), "e5m2": Layout(5, 2), "tf32": Layout(8, 10),
    "e2m3": Layout(2, 3, True, True), "e3m2": Layout(3, 2, True, True), "e2m1": Layout(2, 1, True, True),
}  # fmt: skip
SIZES = {
    **{f"{k}{n}": n for k in "sub" for n in (8, 16, 32, 64)}, "f64": 64, "f32": 32, "f16": 16, "bf16": 16, "tf32": 32,
    "f16x2": 32, "bf16x2": 32, "s16x2": 32, "u16x2": 32, "e4m3x2": 16, "e5m2x2": 16, "pred": 1,
    "e4m3": 8, "e5m2": 8, "e2m3": 8, "e3m2": 8, "ue8m0": 8, "e2m1": 4, "f32x2": 64,
    **{f"{name}x2": 16 for name in ("e2m3", "e3m2", "ue8m0")}, "e2m1x2": 8, "e2m1x4": 16,
    **{f"{name}x4": 32 for name in ("e4m3", "e5m2", "e2m3", "e3m2")},
}  # fmt: skip


class Number(NamedTuple):
    """A float as sign and magnitude. The magnitude is a float for infinity and None for NaN."""

    negative: bool
    size: Fraction | float | None

    @property
    def nan(self) -> bool:
        return self.size is None

    @property
    def infinite(self) -> bool:
        return isinstance(self.size, float)

    @property
    def value(self) -> Fraction:
        assert isinstance(self.size, Fraction)
        return -self.size if self.negative else self.size


NAN = Number(False, None)
ZERO = Number(False, Fraction(0))
ONE = Number(False, Fraction(1))


def power(n: int) -> Fraction:
    return Fraction(1 << n) if n >= 0 else Fraction(1, 1 << -n)


def decode(bits: int, name: str) -> Number:
    """Return the number that the bits encode."""
    layout = LAYOUTS[name]
    if name == "tf32":
        return decode(bits, "f32")
    negative = bool(bits >> (layout.exponent + layout.fraction) & 1)
    e = bits >> layout.fraction & (1 << layout.exponent) - 1
    f = bits & (1 << layout.fraction) - 1
    top = (1 << layout.exponent) - 1
    if e == top:
        if layout.extra:
            if f == (1 << layout.fraction) - 1 and not layout.finite:
                return Number(negative, None)
        else:
            return Number(negative, None if f else math.inf)
    if e == 0:
        return Number(negative, f * power(1 - layout.bias - layout.fraction))
    return Number(negative, (f + (1 << layout.fraction)) * power(e - layout.bias - layout.fraction))


def encode(x: Number, name: str) -> int:
    """Return the bits of a number that the format can represent."""
    if name == "tf32":
        return encode(x, "f32")
    layout = LAYOUTS[name]
    sign = int(x.negative) << (layout.exponent + layout.fraction)
    top = (1 << layout.exponent) - 1
    if x.size is None:
        return (1 << (layout.exponent + layout.fraction)) - 1
    if isinstance(x.size, float):
        return (
            sign | top << layout.fraction if not layout.extra else sign | (1 << (layout.exponent + layout.fraction)) - 1
        )
    units = x.size / power(1 - layout.bias - layout.fraction)
    if units < 1 << layout.fraction:
        assert units.denominator == 1
        return sign | units.numerator
    e = 0
    while units >= 2 << layout.fraction:
        units /= 2
        e += 1
    assert units.denominator == 1
    return sign | (e << layout.fraction) + units.numerator


def largest(name: str) -> Fraction:
    layout = LAYOUTS[name]
    e = (1 << layout.exponent) - (1 if layout.extra else 2) - layout.bias
    return power(e) * (2 - power(-layout.fraction) * (2 if layout.extra and not layout.finite else 1))


def least(name: str) -> Fraction:
    return power(1 - LAYOUTS[name].bias)


def whole(x: Fraction, mode: str, negative: bool) -> int:
    """Round a magnitude to an integer."""
    k, rest = divmod(x.numerator, x.denominator)
    twice = 2 * rest - x.denominator
    if mode == "rn":
        return k + (twice > 0 or (twice == 0 and k % 2 == 1))
    if mode == "rna":
        return k + (twice >= 0)
    return k + (rest > 0 and ((mode == "rp" and not negative) or (mode == "rm" and negative)))


def to_format(x: Number, name: str, mode: str) -> Number:
    """Round a number once to the format."""
    if x.nan or x.infinite:
        return x
    size = abs(x.value)
    if size == 0:
        return x
    low = 1 - LAYOUTS[name].bias
    e = size.numerator.bit_length() - size.denominator.bit_length() - 1
    while power(e + 1) <= size:
        e += 1
    unit = power(max(e, low) - LAYOUTS[name].fraction)
    r = whole(size / unit, mode, x.negative) * unit
    if r > largest(name):
        up = mode in ("rn", "rna") or (mode == "rp" and not x.negative) or (mode == "rm" and x.negative)
        return Number(x.negative, math.inf if up else largest(name))
    return Number(x.negative, r)


# ----------------------------------------------------------------------------------------------------------- arithmetic


def negate(x: Number) -> Number:
    return Number(not x.negative, x.size)


def add(x: Number, y: Number, mode: str) -> Number:
    if x.nan or y.nan or (x.infinite and y.infinite and x.negative != y.negative):
        return NAN
    if x.infinite or y.infinite:
        return x if x.infinite else y
    total = x.value + y.value
    if total == 0:
        negative = x.negative if x.negative == y.negative else mode == "rm"
        return Number(negative, Fraction(0))
    return Number(total < 0, abs(total))


def mul(x: Number, y: Number) -> Number:
    negative = x.negative != y.negative
    if x.nan or y.nan or (x.infinite and y.size == 0) or (y.infinite and x.size == 0):
        return NAN
    if x.infinite or y.infinite:
        return Number(negative, math.inf)
    return Number(negative, abs(x.value * y.value))


def div(x: Number, y: Number) -> Number:
    negative = x.negative != y.negative
    if x.nan or y.nan or (x.infinite and y.infinite) or (x.size == 0 and y.size == 0):
        return NAN
    if x.infinite or y.size == 0:
        return Number(negative, math.inf)
    return Number(negative, Fraction(0) if y.infinite else abs(x.value / y.value))


def sqrt(x: Number) -> Number:
    """Return the square root with more bits than any format has. The last bit is set if the root is inexact."""
    if x.nan or x.size == 0:
        return x
    if x.negative:
        return NAN
    if x.infinite:
        return x
    n = x.value.numerator * x.value.denominator << 600
    root = math.isqrt(n)
    return Number(False, Fraction(2 * root + (root * root != n), x.value.denominator << 301))


def flushed(x: Number, name: str) -> Number:
    return Number(x.negative, Fraction(0)) if isinstance(x.size, Fraction) and x.size < least(name) else x


def finished(x: Number, words: Sequence[str], name: str) -> Number:
    """Apply `.ftz`, `.sat` and `.relu` to a rounded result."""
    if "ftz" in words:
        x = flushed(x, name)
    if "sat" in words:
        if x.nan or x.negative or x.size == 0:
            return ZERO
        return ONE if x.infinite or x.value > 1 else x
    if "relu" in words and not x.nan and (x.negative or x.size == 0):
        return ZERO
    return x


def less(x: Number, y: Number) -> bool:
    """Return True if x < y. Neither is NaN, and -0 is less than +0."""

    def key(v: Number) -> tuple[float, Fraction, bool]:
        if v.infinite:
            return (-1.0 if v.negative else 1.0), Fraction(0), False
        return 0.0, v.value, not v.negative

    return key(x) < key(y)


def minmax(words: Sequence[str], a: Number, b: Number) -> Number:
    """Evaluate min or max by the pseudo-code of PTX ISA 9.7.3.12."""
    sign = a.negative != b.negative
    if "abs" in words:
        a, b = Number(False, a.size), Number(False, b.size)
    if (a.nan and b.nan) or ("NaN" in words and (a.nan or b.nan)):
        return NAN
    if a.nan or b.nan:
        d = b if a.nan else a
    else:
        d = (a if less(b, a) else b) if words[0] == "max" else (a if less(a, b) else b)
    return Number(sign, d.size) if "abs" in words else d


def compares(word: str, x: Number, y: Number) -> bool:
    if word in ("num", "nan"):
        return (x.nan or y.nan) == (word == "nan")
    unordered = word.endswith("u") and len(word) == 3
    if x.nan or y.nan:
        return unordered
    zero = x.size == 0 and y.size == 0
    below, above = (False, False) if zero else (less(x, y), less(y, x))
    return {
        "eq": not below and not above, "ne": below or above, "lt": below, "le": not above, "gt": above, "ge": not below,
    }[word[:2]]  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- integers


def as_int(bits: int, name: str) -> int:
    n = SIZES[name]
    return bits - (1 << n) if name[0] == "s" and bits >> (n - 1) else bits


def limits(name: str) -> tuple[int, int]:
    n = SIZES[name]
    return (-(1 << (n - 1)), (1 << (n - 1)) - 1) if name[0] == "s" else (0, (1 << n) - 1)


def clamp(x: int, name: str) -> int:
    lo, hi = limits(name)
    return lo if x < lo else hi if x > hi else x


def bit(x: int, i: int) -> int:
    return x >> i & 1


def bfe(t: str, a: int, pos: int, count: int) -> int:
    pos, count, msb = pos & 255, count & 255, SIZES[t] - 1
    sbit = 0 if t[0] == "u" or count == 0 else bit(a, min(pos + count - 1, msb))
    return sum((bit(a, pos + i) if i < count and pos + i <= msb else sbit) << i for i in range(msb + 1))


def bfi(t: str, a: int, b: int, pos: int, count: int) -> int:
    pos, count, msb = pos & 255, count & 255, SIZES[t] - 1
    f = [bit(b, i) for i in range(msb + 1)]
    for i in range(count):
        if pos + i <= msb:
            f[pos + i] = bit(a, i)
    return sum(v << i for i, v in enumerate(f))


def szext(t: str, mode: str, a: int, b: int) -> int:
    b1 = b & 31
    too_large = b >= 32 and mode == "clamp"
    mask = 0 if too_large else ~0 << b1
    sign = bit(a, (b1 - 1) & 31) if t == "s32" and b1 and not too_large else 0
    return a & ~mask | (mask if sign else 0)


def bmsk(mode: str, a: int, b: int) -> int:
    a1, b1 = a & 31, b & 31
    mask0, total = ~0 << a1, a1 + b1
    mask1 = ~0 << total
    position = width = False
    if mode == "clamp":
        position, width = a >= 32, b >= 32
        mask0 = 0 if position else mask0
    if total >= 32 or position or width:
        mask1 = 0
    elif b1 == 0:
        mask1 = ~0
    return mask0 & ~mask1


def prmt(mode: str, a: int, b: int, c: int) -> int:
    pool = [(b << 32 | a) >> 8 * i & 255 for i in range(8)]
    rows = {
        "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
        "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
        "rc8": ((0,) * 4, (1,) * 4, (2,) * 4, (3,) * 4),
        "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
        "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
        "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
    }
    if mode in rows:
        return sum(pool[k] << 8 * i for i, k in enumerate(rows[mode][c & 3]))
    out = 0
    for i in range(4):
        s = c >> 4 * i & 15
        byte = pool[s & 7]
        out |= (byte if not s & 8 else 255 if byte & 128 else 0) << 8 * i
    return out


def dot(words: Sequence[str], a: int, b: int, c: int) -> int:
    n = 2 if words[0] == "dp2a" else 4
    size = 32 // n
    total = c
    for i in range(n):
        x = a >> size * i & (1 << size) - 1
        y = b >> 8 * (i + (2 if "hi" in words else 0)) & 255
        x -= (1 << size) if words[-2] == "s32" and x >> (size - 1) else 0
        y -= 256 if words[-1] == "s32" and y >> 7 else 0
        total += x * y
    return total


def lop3(a: int, b: int, c: int, table: int) -> int:
    return sum(bit(table, bit(a, i) << 2 | bit(b, i) << 1 | bit(c, i)) << i for i in range(32))


def shf(words: Sequence[str], a: int, b: int, c: int) -> int:
    n = min(c, 32) if "clamp" in words else c & 31
    return b << n | a >> (32 - n) if words[1] == "l" else b << (32 - n) | a >> n


def towards_zero(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def mul24(words: Sequence[str], x: int, y: int) -> int:
    def low(v: int) -> int:
        v &= 0xFFFFFF
        return v - 0x1000000 if words[-1] == "s32" and v & 0x800000 else v

    product = low(x) * low(y)
    part = product >> 16 if "hi" in words else product
    return as_int(part & 0xFFFFFFFF, words[-1])


def integer(words: Sequence[str], t: str, v: Sequence[int]) -> int:
    """Evaluate an instruction of PTX ISA 9.7.1, 9.7.2 or 9.7.8 on one element."""
    name, n = words[0], SIZES[t]

    def saturate(x: int) -> int:
        return clamp(x, t) if "sat" in words else x

    if name in ("mul", "mad"):
        product = v[0] * v[1]
        part = product >> n if "hi" in words else product if "wide" in words else as_int(product & (1 << n) - 1, t)
        return saturate(part + v[2]) if name == "mad" else part
    table: dict[str, Callable[[], int]] = {
        "add": lambda: saturate(v[0] + v[1]),
        "sub": lambda: saturate(v[0] - v[1]),
        "mul24": lambda: mul24(words, v[0], v[1]),
        "mad24": lambda: saturate(mul24(words, v[0], v[1]) + v[2]),
        "sad": lambda: v[2] + max(v[0] - v[1], v[1] - v[0]),
        "div": lambda: towards_zero(v[0], v[1]),
        "rem": lambda: v[0] - v[1] * towards_zero(v[0], v[1]),
        "abs": lambda: -v[0] if v[0] < 0 else v[0],
        "neg": lambda: 0 - v[0],
        "min": lambda: max(min(v), 0) if "relu" in words else min(v),
        "max": lambda: max(*v, 0) if "relu" in words else max(v),
        "popc": lambda: sum(bit(v[0], i) for i in range(n)),
        "clz": lambda: next((n - 1 - i for i in reversed(range(n)) if bit(v[0], i)), n),
        "brev": lambda: sum(bit(v[0], i) << (n - 1 - i) for i in range(n)),
        "bfe": lambda: bfe(t, *v),
        "bfi": lambda: bfi(t, *v),
        "szext": lambda: szext(t, words[1], *v),
        "bmsk": lambda: bmsk(words[1], *v),
        "dp4a": lambda: dot(words, *v),
        "dp2a": lambda: dot(words, *v),
        "and": lambda: v[0] & v[1],
        "or": lambda: v[0] | v[1],
        "xor": lambda: v[0] ^ v[1],
        "not": lambda: ~v[0],
        "cnot": lambda: int(v[0] == 0),
        "lop3": lambda: lop3(*v),
        "shf": lambda: shf(words, *v),
        "shl": lambda: v[0] << v[1] if v[1] < n else 0,
        "shr": lambda: v[0] >> min(v[1], n),
        "prmt": lambda: prmt(words[-1], *v),
        "bfind": lambda: _bfind(words, t, v[0]),
    }
    return table[name]()


def _bfind(words: Sequence[str], t: str, a: int) -> int:
    msb = SIZES[t] - 1
    if a < 0:
        a = ~a
    d = next((i for i in range(msb, -1, -1) if bit(a, i)), -1)
    return msb - d if "shiftamt" in words and d != -1 else d


# ---------------------------------------------------------------------------------------------------------- conversions


def float_to_int(x: Number, source: str, target: str, mode: str) -> int:
    n = SIZES[target]
    if x.nan:
        return 1 << (n - 1) if source == "f64" or n == 64 else 0
    lo, hi = limits(target)
    if x.infinite:
        return lo if x.negative else hi
    k = whole(abs(x.value), mode, x.negative)
    return clamp(-k if x.negative else k, target)


def mode_of(words: Sequence[str]) -> str:
    for w in words:
        if w in ("rn", "rz", "rm", "rp", "rna"):
            return w
        if w in ("rni", "rzi", "rmi", "rpi"):
            return w[:2]
    return "rn"


def convert(words: Sequence[str], source: str, target: str, bits: int) -> int:
    """Evaluate `cvt` on the bits of one element."""
    mode = mode_of(words)
    if source in LAYOUTS:
        x = decode(bits, source)
        if "ftz" in words and source == "f32" and target != "f16":  # matches an H200
            x = flushed(x, "f32")
        if target not in LAYOUTS:
            return float_to_int(x, source, target, mode)
        if any(w in words for w in ("rni", "rzi", "rmi", "rpi")) and isinstance(x.size, Fraction):
            x = Number(x.negative, Fraction(whole(x.size, mode, x.negative)))
            mode = "rn"
        if "relu" in words and not x.nan and x.negative:
            x = ZERO
        x = to_format(x, target, mode)
        if "satfinite" in words and x.infinite:
            x = Number(x.negative, largest(target))
        if x.nan and LAYOUTS[target].finite:  # "a positive MAX_NORM" (9.7.9.21)
            x = Number(False, largest(target))
        return encode(finished(x, words if target == "f32" else [w for w in words if w != "ftz"], target), target)
    v = as_int(bits, source)
    if target not in LAYOUTS:
        return clamp(v, target) if "sat" in words else v
    return encode(finished(to_format(Number(v < 0, Fraction(abs(v))), target, mode), words, target), target)


def random_bits(name: str, count: int, bits: int) -> list[Fraction]:
    """Return the fractions that `cvt.rs` adds to its operands, first operand first."""
    high, low = bits >> 16, bits & 0xFFFF
    if name == "f16":
        return [Fraction(x % 8192, 8192) for x in (high, low)]
    if name == "e2m1":
        b = bits.to_bytes(4, "little")
        high, low = b[3] << 8 | b[1], b[2] << 8 | b[0]
    return [Fraction(x, 65536) for x in (high, low) for _ in range(count // 2)]


def stochastic(words: Sequence[str], name: str, bits: int, fraction: Fraction) -> int:
    """Evaluate `cvt.rs` on the bits of an f32."""
    x = decode(bits, "f32")
    if "relu" in words and not x.nan and x.negative:
        x = ZERO
    if isinstance(x.size, Fraction) and x.size:
        e = math.frexp(float(x.size))[1] - 1
        unit = power(max(e, 1 - LAYOUTS[name].bias) - LAYOUTS[name].fraction)
        size = math.floor(x.size / unit + fraction) * unit
        x = Number(x.negative, size if size <= largest(name) else math.inf)
    if x.infinite and "satfinite" in words:
        x = Number(x.negative, largest(name))
    if x.nan and LAYOUTS[name].finite:
        x = Number(False, largest(name))
    return encode(x, name)


def exponent(words: Sequence[str], source: str, bits: int) -> int:
    """Evaluate `cvt` to ue8m0 on the bits of an f32 or bf16."""
    x = decode(bits, source)
    if x.nan:
        return 255
    if x.infinite:
        return 254 if "satfinite" in words else 255
    for code in range(255):
        if power(code - 127) >= abs(x.value):
            above = power(code - 127) > abs(x.value)
            return code - 1 if above and "rz" in words and code else code
    return 254 if "satfinite" in words or "rz" in words else 255


# ------------------------------------------------------------------------------------------------------- approximations


def _decimal(x: Fraction) -> decimal.Decimal:
    return decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator)


def _sine(x: Fraction, start: int) -> Fraction:
    """Evaluate the Taylor series of sine (start 1) or cosine (start 0), with x reduced by π to 60 digits."""
    turns = round(x / (2 * PI))
    x -= 2 * PI * turns
    term, total, n = (x if start else Fraction(1)), Fraction(0), start
    while abs(term) > power(-160):
        total += term
        term = -term * x * x / ((n + 1) * (n + 2))
        term = Fraction(round(term * power(220)), 1 << 220)
        n += 2
    return total


PI = Fraction("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798")


def function(name: str, x: Number) -> Number:
    """Evaluate sin, cos, lg2, ex2, tanh or rsqrt to 50 digits."""
    if x.nan:
        return NAN
    if name in ("sin", "cos"):
        if x.infinite:
            return NAN
        if x.size == 0:
            return x if name == "sin" else ONE
        r = _sine(x.value, int(name == "sin"))
        return Number(r < 0, abs(r))
    if name == "rsqrt":
        if x.size == 0:
            return Number(x.negative, math.inf)
        return NAN if x.negative else div(ONE, sqrt(x))
    with decimal.localcontext(decimal.Context(prec=60, Emax=10**6, Emin=-(10**6))):
        two = decimal.Decimal(2)
        if name == "lg2":
            if x.size == 0:
                return Number(True, math.inf)
            if x.negative:
                return NAN
            if x.infinite:
                return x
            r = Fraction(_decimal(x.value).ln() / two.ln())
            return Number(r < 0, abs(r))
        if x.infinite:
            if name == "ex2":
                return ZERO if x.negative else x
            return Number(x.negative, Fraction(1))
        if name == "ex2":
            if abs(x.value) > 5000:
                return Number(False, power(-6000) if x.negative else power(6000))
            return Number(False, Fraction((_decimal(x.value) * two.ln()).exp()))
        if x.size == 0 or abs(x.value) > 100:
            return x if x.size == 0 else Number(x.negative, Fraction(1))
        if abs(x.value) < power(-60):
            return x
        e = (2 * _decimal(abs(x.value))).exp()
        return Number(x.negative, Fraction((e - 1) / (e + 1)))


def ulp(x: Fraction, name: str) -> Fraction:
    """Return the spacing of the format's numbers around x."""
    e = max(x.numerator.bit_length() - x.denominator.bit_length(), 1 - LAYOUTS[name].bias)
    return power(e - LAYOUTS[name].fraction)


def allowed_error(words: Sequence[str], name: str, exact: Fraction, x: Number) -> Fraction | None:
    """Return the error bound that the PTX ISA states for an approximate result, or None."""
    stem = words[0]

    def two_power(e: float) -> Fraction:
        return Fraction(2.0**e)

    if stem == "ex2":
        return 2 * ulp(exact, name) if name == "f32" else abs(exact) * two_power(-9.9 if name == "f16" else -7)
    if stem == "tanh":
        return {"f32": abs(exact) * power(-11), "f16": two_power(-10.987), "bf16": power(-8)}[name]
    if stem == "rsqrt":
        return abs(exact) * two_power(-22.9) if name == "f32" else None
    if stem == "lg2":
        inside = Fraction(1, 2) < x.value < 2
        return power(-22) if inside else abs(exact) * power(-22)
    if stem in ("sin", "cos"):
        if abs(x.value) <= 2 * PI:
            return two_power(-20.5)
        return two_power(-14.7) if abs(x.value) <= 100 * PI else None
    if stem == "sqrt":
        return abs(exact) * power(-23)
    return {"rcp": 1, "div": 2}[stem] * ulp(exact, name)


def approximates(words: Sequence[str], name: str, args: Sequence[Number], bits: int) -> bool:
    """Return True if an approximate instruction may give these bits.

    A result must be within the error bound, or equal if it is a special value. A subnormal result may be flushed if the
    bound allows it, and always with `.ftz`.
    """
    x = args[0]
    if words[0] == "div":
        exact = div(*args)
        y = args[1]
        if words[1] == "approx" and isinstance(y.size, Fraction) and y.size > power(126):
            exact = NAN if x.infinite or x.nan else Number(exact.negative, Fraction(0))
        elif words[1] == "approx" and isinstance(y.size, Fraction) and 0 < y.size < power(-126):
            return True  # no stated bound
    else:
        exact = {"rcp": lambda: div(ONE, x), "sqrt": lambda: sqrt(x)}.get(words[0], lambda: function(words[0], x))()
    got = decode(bits, name)
    if exact.nan or got.nan:
        return exact.nan and got.nan
    if "ftz" in words:
        exact = flushed(exact, name)
    if exact.infinite or (exact.size == 0 and words[0] not in ("sin", "cos", "lg2")):
        return got == exact
    assert isinstance(exact.size, Fraction)
    if exact.size > largest(name):
        return got.infinite and got.negative == exact.negative
    bound = allowed_error(words, name, exact.value, x) if exact.size else Fraction(0)
    if bound is None:
        return True
    if got.infinite:
        return largest(name) + ulp(largest(name), name) <= exact.size + bound
    if exact.size < least(name):  # A relative bound does not hold for subnormals.
        bound = max(bound, least(name) if "ftz" in words else ulp(exact.size, name))
    return abs(got.value - exact.value) <= bound


# --------------------------------------------------------------------------------------------------------- instructions


def _halves(bits: int) -> tuple[int, int]:
    return bits & 0xFFFF, bits >> 16 & 0xFFFF


def _float(words: Sequence[str], name: str, bits: Sequence[int]) -> int:
    """Evaluate an instruction exactly on one float of the format."""
    mode = mode_of(words)
    raw = [decode(b, name) for b in bits]
    v = [flushed(x, name) for x in raw] if "ftz" in words else raw
    stem = words[0]
    if stem in ("min", "max"):
        if len(v) == 3:
            rest = [w for w in words if w != "abs"]
            a, b, c = (Number(False, x.size) if "abs" in words else x for x in v)
            return encode(minmax(rest, minmax(rest, a, b), c), name)
        return encode(minmax(words, *v), name)
    if stem in ("abs", "neg"):
        return encode(Number(False, v[0].size) if stem == "abs" else negate(v[0]), name)
    if stem == "copysign":
        sign = LAYOUTS[name].exponent + LAYOUTS[name].fraction
        return bits[1] & (1 << sign) - 1 | bits[0] & 1 << sign
    exact: dict[str, Callable[[], Number]] = {
        "add": lambda: add(v[0], v[1], mode),
        "sub": lambda: add(v[0], negate(v[1]), mode),
        "mul": lambda: mul(v[0], v[1]),
        "fma": lambda: add(mul(v[0], v[1]), v[2], mode),
        "mad": lambda: add(mul(v[0], v[1]), v[2], mode),
        "div": lambda: div(v[0], v[1]),
        "rcp": lambda: div(ONE, v[0]),
        "sqrt": lambda: sqrt(v[0]),
    }
    return encode(finished(to_format(exact[stem](), name, mode), words, name), name)


def types_of(words: Sequence[str]) -> list[str]:
    return [w for w in words[1:] if w in SIZES]


def is_approximate(words: Sequence[str]) -> bool:
    return "approx" in words or "full" in words


def compared(words: Sequence[str], t: str, bits: Sequence[int]) -> bool:
    if t in LAYOUTS:
        x, y = (flushed(decode(b, t), t) if "ftz" in words else decode(b, t) for b in bits[:2])
        return compares(words[1], x, y)
    a, b = (as_int(v, t) for v in bits[:2])
    short = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(words[1], words[1])
    return {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[short]


def _testp(word: str, t: str, bits: int) -> bool:
    x = decode(bits, t)
    finite = not x.nan and not x.infinite
    normal = finite and isinstance(x.size, Fraction) and (x.size >= least(t) or not x.size)
    return {
        "finite": finite, "infinite": x.infinite, "number": not x.nan, "notanumber": x.nan, "normal": normal,
        "subnormal": finite and not normal,
    }[word]  # fmt: skip


def evaluate(opcode: str, bits: Sequence[int]) -> list[int]:
    """Return the bits of the results of an exact instruction."""
    words = opcode.split(".")
    types = types_of(words)
    t, stem = (types or ["b32"])[-1], words[0]
    if stem in ("setp", "set"):
        held = compared(words, t, bits)
        pair = [held, not held]
        if len(bits) == 3:
            c = bool(bits[2])
            pair = [p and c if "and" in words else p or c if "or" in words else p != c for p in pair]
        if stem == "setp":
            return [int(p) for p in pair]
        return [(0x3F800000 if types[0] == "f32" else 0xFFFFFFFF) if pair[0] else 0]
    if stem == "testp":
        return [int(_testp(words[1], t, bits[0]))]
    if stem == "selp":
        return [bits[0] if bits[2] else bits[1]]
    if stem == "slct":
        if t == "f32":
            c = flushed(decode(bits[2], t), t) if "ftz" in words else decode(bits[2], t)
            return [bits[0] if compares("ge", c, ZERO) else bits[1]]
        return [bits[0] if as_int(bits[2], t) >= 0 else bits[1]]
    if stem == "cvt":
        target, source = types[0], types[-1]
        size = (1 << SIZES[target]) - 1
        if "rs" in words:
            name, count = target[:-2], len(bits) - 1
            fractions = random_bits(name, count, bits[-1])
            parts = [stochastic(words, name, b, r) for b, r in zip(bits, fractions)]
            return [sum(part << SIZES[target] // count * i for i, part in enumerate(reversed(parts)))]
        if target.endswith("x2"):
            name = target.removesuffix("x2")
            if source.endswith("x2"):
                shift = SIZES[source] // 2
                parts = [bits[0] & (1 << shift) - 1, bits[0] >> shift]
                source = source.removesuffix("x2")
            else:
                parts = [bits[1], bits[0]]
            if name == "ue8m0":
                low, high = (exponent(words, source, p) for p in parts)
            elif source == "ue8m0":
                low, high = (0x7FFF if p == 255 else 0x40 if p == 0 else p << 7 for p in parts)
            else:
                low, high = (convert(words, source, name, p) for p in parts)
            return [high << SIZES[target] // 2 | low]
        return [convert(words, source, target, bits[0]) & size]
    if t.endswith("x2"):
        name = t.removesuffix("x2")
        width = SIZES[t] // 2
        columns = zip(*((b & (1 << width) - 1, b >> width) for b in bits))
        if name in LAYOUTS:
            low, high = (_float(words, name, c) for c in columns)
        else:
            low, high = (integer(words, name, [as_int(b, name) for b in c]) & 0xFFFF for c in columns)
        return [high << width | low]
    if t in LAYOUTS:
        return [_float(words, t, bits)]
    if stem in ("dp4a", "dp2a"):
        c = as_int(bits[2], "s32" if "s32" in types else "u32")
        return [integer(words, t, [bits[0], bits[1], c]) & 0xFFFFFFFF]
    if stem in ("and", "or", "xor", "not") and t == "pred":
        return [integer(words, "b8", bits) & 1]
    values = list(bits)
    fixed = {"bfe": 1, "szext": 1, "shl": 1, "shr": 1, "bfi": 2, "lop3": 3}.get(stem, len(bits))
    for i in range(fixed):
        kind = t
        if stem == "mad" and "wide" in words and i == 2:
            kind = f"{t[0]}{2 * SIZES[t]}"
        values[i] = as_int(bits[i], kind)
    if stem == "szext":
        values[0] = bits[0]
    if stem == "bfe":
        values[0] = bits[0]
    width = 2 * SIZES[t] if "wide" in words else 32 if stem in ("popc", "clz", "bfind") else SIZES[t]
    return [integer(words, t, values) & (1 << width) - 1]


def same(name: str, got: int, want: int) -> bool:
    """Return True if two results are equal; all NaNs are equal."""
    base, count = (name[:-2], int(name[-1])) if name[-2:] in ("x2", "x4") else (name, 1)
    if count > 1:
        part = SIZES[name] // count
        mask = (1 << part) - 1
        return all(same(base, got >> part * i & mask, want >> part * i & mask) for i in range(count))
    if got != want and base in LAYOUTS:
        return decode(got, base).nan and decode(want, base).nan
    return got == want


def accepts(opcode: str, result: str, bits: Sequence[int], got: int, index: int = 0) -> bool:
    """Return True if `got` is a correct result of the instruction on these bits: result `index`, of type `result`."""
    words = opcode.split(".")
    if not is_approximate(words):
        return same(result, got, evaluate(opcode, bits)[index])
    base = result.removesuffix("x2")
    columns = [tuple(_halves(b) if base != result else (b,)) for b in bits]
    parts = _halves(got) if base != result else (got,)
    for i, part in enumerate(parts):
        args = [decode(c[i], base) for c in columns]
        if "ftz" in words:
            args = [flushed(x, base) for x in args]
        if not approximates(words, base, args, part):
            return False
    return True
