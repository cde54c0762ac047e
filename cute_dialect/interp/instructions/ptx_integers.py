"""Integer, logic and shift instructions of PTX (PTX ISA 9.7.1, 9.7.2, 9.7.8), exact modulo 2^width.

Intermediate results that do not fit 64 bits are Python integers.
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cute_dialect.interp.errors import Fault
from cute_dialect.interp.instructions.ptx_rows import KINDS, Row, Words
from cute_dialect.interp.values import Array

U64 = np.uint64


def _exact(f: Callable[..., object]) -> Callable[..., Array]:
    """Apply a function of Python integers element by element, modulo 2^64."""

    def compute(m: Words, *given: Array) -> Array:
        rows = zip(*(x.reshape(-1).tolist() for x in given))
        return np.array([int(f(m, *row)) & (1 << 64) - 1 for row in rows], U64).reshape(given[0].shape)  # type: ignore[call-overload]

    return compute


def _bounds(m: Words) -> tuple[int, int]:
    info = np.iinfo(KINDS[m.types[-1]].dtype)
    return int(info.min), int(info.max)


def _clamped(m: Words, x: int) -> int:
    lo, hi = _bounds(m)
    return min(max(x, lo), hi) if "sat" in m else x


def _wrap(f: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    return lambda m, a, b: f(a, b)


def _add(m: Words, a: Array, b: Array) -> Array:
    return _exact(lambda m, x, y: _clamped(m, x + y))(m, a, b) if "sat" in m else a + b


def _sub(m: Words, a: Array, b: Array) -> Array:
    return _exact(lambda m, x, y: _clamped(m, x - y))(m, a, b) if "sat" in m else a - b


def _part(m: Words, product: int) -> int:
    """Return the part of a product that `.hi`, `.lo` or `.wide` selects."""
    return product >> m.width if "hi" in m else product


def _mul24(m: Words, x: int, y: int) -> int:
    """Return the product of the low 24 bits, or its bits 47 to 16 with `.hi` (9.7.1.5)."""

    def cut(v: int) -> int:
        v &= (1 << 24) - 1
        return v - (1 << 24) if m.types[-1] == "s32" and v >> 23 else v

    return cut(x) * cut(y) >> (16 if "hi" in m else 0)


def _mad(m: Words, x: int, y: int, z: int) -> int:
    return _clamped(m, _part(m, x * y) + z)


def _mad24(m: Words, x: int, y: int, z: int) -> int:
    product = _mul24(m, x, y) & 0xFFFFFFFF
    if m.types[-1] == "s32" and product >> 31:
        product -= 1 << 32
    return _clamped(m, product + z)


def _quotient(x: int, y: int) -> int:
    if not y:
        return 0  # Division by zero is reported separately.
    q = abs(x) // abs(y)
    return q if (x < 0) == (y < 0) else -q


def _minmax(m: Words, a: Array, b: Array) -> Array:
    r = np.maximum(a, b) if m.all[0] == "max" else np.minimum(a, b)
    return np.maximum(r, 0) if "relu" in m else r


def _bfind(m: Words, x: int) -> int:
    """Return the highest non-sign bit, -1 if there is none.

    With `.shiftamt`, return its distance from the top (9.7.1.17).
    """
    top = (~x if x < 0 else x).bit_length() - 1
    return m.width - 1 - top if "shiftamt" in m and top >= 0 else top


def _brev(m: Words, x: int) -> int:
    return int(f"{x:0{m.width}b}"[::-1], 2)


def _eight_bits(m: Words, n: int) -> int:
    """Return a position or length, which is "restricted to 0..255". Raises Fault for a larger one in a 64-bit field.

    An H200 uses the low 8 bits for 32-bit fields and behaves differently for 64-bit fields.
    """
    if n > 255 and m.width == 64:
        raise Fault("poison", f"{m.all[0]}: position and length must be in [0, 255], got {n}")
    return n & 255


def _bfe(m: Words, x: int, pos: int, count: int) -> int:
    """Return the bits from `pos` on, sign-extended for signed types (9.7.1.19)."""
    pos, count, width = _eight_bits(m, pos), _eight_bits(m, count), m.width
    sign = 0
    if m.types[-1][0] == "s" and count:
        sign = x >> min(pos + count - 1, width - 1) & 1
    raw = x & (1 << width) - 1
    valid = min(count, max(width - pos, 0))
    return raw >> pos & (1 << valid) - 1 | (-1 << valid if sign else 0)


def _bfi(m: Words, a: int, b: int, pos: int, count: int) -> int:
    """Return `b` with the low `count` bits of `a` inserted at `pos` (9.7.1.20)."""
    pos, count = _eight_bits(m, pos), _eight_bits(m, count)
    mask = ((1 << count) - 1 << pos) & (1 << m.width) - 1
    return b & ~mask | a << pos & mask


def _szext(m: Words, x: int, n: int) -> int:
    """Return the low `n` bits, sign- or zero-extended (9.7.1.21)."""
    if n >= 32 and "clamp" in m:
        return x
    n &= 31
    low = x & (1 << n) - 1
    return low | (-1 << n if m.types[-1] == "s32" and n and low >> (n - 1) else 0)


def _bmsk(m: Words, pos: int, count: int) -> int:
    """Return `count` ones starting at bit `pos` (9.7.1.22)."""
    if "clamp" in m:
        return ((1 << min(count, 32)) - 1 << pos) & 0xFFFFFFFF if pos < 32 else 0
    return ((1 << (count & 31)) - 1 << (pos & 31)) & 0xFFFFFFFF


def _bytes(x: int, signed: bool) -> list[int]:
    raw = (x & 0xFFFFFFFF).to_bytes(4, "little")
    return [b - 256 if signed and b > 127 else b for b in raw]


def _dp4a(m: Words, a: int, b: int, c: int) -> int:
    x, y = _bytes(a, m.types[0] == "s32"), _bytes(b, m.types[1] == "s32")
    return c + sum(p * q for p, q in zip(x, y))


def _dp2a(m: Words, a: int, b: int, c: int) -> int:
    raw = a & 0xFFFFFFFF
    halves = [raw & 0xFFFF, raw >> 16]
    if m.types[0] == "s32":
        halves = [h - 65536 if h > 32767 else h for h in halves]
    y = _bytes(b, m.types[1] == "s32")
    return c + sum(p * q for p, q in zip(halves, y[2:] if "hi" in m else y[:2]))


def _lop3(m: Words, a: int, b: int, c: int, table: int) -> int:
    """Look up each result bit in `table`, indexed by the three input bits with `a` highest (9.7.8.6)."""
    r = 0
    for i in range(8):
        if table >> i & 1:
            r |= (a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c)
    return r & 0xFFFFFFFF


def _shift(m: Words, x: int, n: int) -> int:
    """Shift. Amounts are clamped to the width, which shifts out all bits (9.7.8.8, 9.7.8.9)."""
    n = min(n, m.width)
    return x << n if m.all[0] == "shl" else x >> n


def _shf(m: Words, a: int, b: int, c: int) -> int:
    """Return a funnel shift of `b:a` (9.7.8.7)."""
    n = min(c, 32) if "clamp" in m else c & 31
    both = b << 32 | a
    return both << n >> 32 if "l" in m else both >> n


_MODES: dict[str, Callable[[int], tuple[int, int, int, int]]] = {
    "f4e": lambda n: (n, n + 1, n + 2, n + 3),
    "b4e": lambda n: (n, n - 1, n - 2, n - 3),
    "rc8": lambda n: (n, n, n, n),
    "ecl": lambda n: (max(n, 0), max(n, 1), max(n, 2), max(n, 3)),
    "ecr": lambda n: (min(n, 0), min(n, 1), min(n, 2), min(n, 3)),
    "rc16": lambda n: ((n & 1) * 2, (n & 1) * 2 + 1, (n & 1) * 2, (n & 1) * 2 + 1),
}


def _prmt(m: Words, a: int, b: int, c: int) -> int:
    """Select four of the eight bytes of `b:a`. Bit 3 of a selector replicates its byte's sign (9.7.9.7)."""
    pool = (b << 32 | a).to_bytes(8, "little")
    mode = m.all[-1]
    if mode in _MODES:
        return int.from_bytes(bytes(pool[i % 8] for i in _MODES[mode](c & 3)), "little")
    out = 0
    for i in range(4):
        nibble = c >> 4 * i & 15
        byte = pool[nibble & 7]
        out |= (0xFF * (byte >> 7) if nibble & 8 else byte) << 8 * i
    return out


def _by_zero(m: Words, a: Array, b: Array) -> Array:
    return b == 0


_INT = "(.s16,.u16,.s32,.u32,.s64,.u64)"
_SIGNED = "(.s16,.s32,.s64)"
_NARROW = "(.s16,.u16,.s32,.u32)"
_DIVISION = (_by_zero, "division by zero, whose result is undefined in PTX")

ROWS: tuple[Row, ...] = (
    Row(f"add{_INT}", "t = t t", _add, "9.7.1.1"),
    Row("add.sat.s32", "t = t t", _add, "9.7.1.1"),
    Row("add(.s16x2,.u16x2)", "t = t t", _add, "9.7.1.1"),
    Row(f"sub{_INT}", "t = t t", _sub, "9.7.1.2"),
    Row("sub.sat.s32", "t = t t", _sub, "9.7.1.2"),
    Row(f"mul(.lo,.hi){_INT}", "t = t t", _exact(lambda m, x, y: _part(m, x * y)), "9.7.1.3"),
    Row(f"mul.wide{_NARROW}", "w = t t", _exact(lambda m, x, y: x * y), "9.7.1.3"),
    Row(f"mad(.lo,.hi){_INT}", "t = t t t", _exact(_mad), "9.7.1.4"),
    Row("mad.hi.sat.s32", "t = t t t", _exact(_mad), "9.7.1.4"),
    Row(f"mad.wide{_NARROW}", "w = t t w", _exact(lambda m, x, y, z: x * y + z), "9.7.1.4"),
    Row("mul24(.lo,.hi)(.s32,.u32)", "t = t t", _exact(_mul24), "9.7.1.5"),
    Row("mad24(.lo,.hi)(.s32,.u32)", "t = t t t", _exact(_mad24), "9.7.1.6"),
    Row("mad24.hi.sat.s32", "t = t t t", _exact(_mad24), "9.7.1.6"),
    Row(f"sad{_INT}", "t = t t t", _exact(lambda m, x, y, z: z + abs(x - y)), "9.7.1.7"),
    Row(f"div{_INT}", "t = t t", _exact(lambda m, x, y: _quotient(x, y)), "9.7.1.8", undefined=_DIVISION),
    Row(f"rem{_INT}", "t = t t", _exact(lambda m, x, y: x - _quotient(x, y) * y), "9.7.1.9", undefined=_DIVISION),
    Row(f"abs{_SIGNED}", "t = t", _exact(lambda m, x: abs(x)), "9.7.1.10"),
    Row(f"neg{_SIGNED}", "t = t", _exact(lambda m, x: -x), "9.7.1.11"),
    Row(f"(min,max){_INT}", "t = t t", _minmax, "9.7.1.12, 9.7.1.13"),
    Row("(min,max).relu.s32", "t = t t", _minmax, "9.7.1.12, 9.7.1.13"),
    Row("(min,max).u16x2", "t = t t", _minmax, "9.7.1.12, 9.7.1.13"),
    Row("(min,max){.relu}.s16x2", "t = t t", _minmax, "9.7.1.12, 9.7.1.13"),
    Row("popc(.b32,.b64)", "u32 = t", _exact(lambda m, x: x.bit_count()), "9.7.1.14"),
    Row("clz(.b32,.b64)", "u32 = t", _exact(lambda m, x: m.width - x.bit_length()), "9.7.1.15"),
    Row("bfind{.shiftamt}(.s32,.u32,.s64,.u64)", "u32 = t", _exact(_bfind), "9.7.1.16"),
    Row("brev(.b32,.b64)", "t = t", _exact(_brev), "9.7.1.18"),
    Row("bfe(.s32,.u32,.s64,.u64)", "t = t u32 u32", _exact(_bfe), "9.7.1.19"),
    Row("bfi(.b32,.b64)", "t = t t u32 u32", _exact(_bfi), "9.7.1.20"),
    Row("szext(.clamp,.wrap)(.s32,.u32)", "t = t u32", _exact(_szext), "9.7.1.21"),
    Row("bmsk(.clamp,.wrap).b32", "t = t t", _exact(_bmsk), "9.7.1.22"),
    Row("dp4a(.s32,.u32)(.s32,.u32)", "dot = s t dot", _exact(_dp4a), "9.7.1.23"),
    Row("dp2a(.lo,.hi)(.s32,.u32)(.s32,.u32)", "dot = s t dot", _exact(_dp2a), "9.7.1.24"),
    Row("and(.b16,.b32,.b64,.pred)", "t = t t", _wrap(np.bitwise_and), "9.7.8.1"),
    Row("or(.b16,.b32,.b64,.pred)", "t = t t", _wrap(np.bitwise_or), "9.7.8.2"),
    Row("xor(.b16,.b32,.b64,.pred)", "t = t t", _wrap(np.bitwise_xor), "9.7.8.3"),
    Row("not(.b16,.b32,.b64,.pred)", "t = t", lambda m, a: ~a, "9.7.8.4"),
    Row("cnot(.b16,.b32,.b64)", "t = t", lambda m, a: a == 0, "9.7.8.5"),
    Row("lop3.b32", "t = t t t u32", _exact(_lop3), "9.7.8.6"),
    Row("shf(.l,.r)(.clamp,.wrap).b32", "t = t t u32", _exact(_shf), "9.7.8.7"),
    Row("shl(.b16,.b32,.b64)", "t = t u32", _exact(_shift), "9.7.8.8"),
    Row("shr(.b16,.b32,.b64,.u16,.u32,.u64,.s16,.s32,.s64)", "t = t u32", _exact(_shift), "9.7.8.9"),
    Row("prmt.b32{.f4e,.b4e,.rc8,.ecl,.ecr,.rc16}", "b32 = b32 b32 b32", _exact(_prmt), "9.7.9.7"),
)

__all__ = ["ROWS"]
