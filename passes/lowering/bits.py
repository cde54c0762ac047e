"""Possible bits of lowered integers: upper bounds derived from the ops that compute them.

A *mask* has 32 bits (64 for wider values).  A bit that is clear in the mask is clear in every value of the op.  Thread
ids have the bounds of their range, and products and sums of bounded numbers are bounded.  An unknown value has all
bits.  A number that may be negative has all bits from its lowest possible one up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, SSAValue

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.dialect.memory_types import integer_width
from cute_dialect.passes.lowering.build import inserted_at
from cute_dialect.passes.lowering.folding import constant_of

_LIMITS = {
    "nvvm.read.ptx.sreg.tid.x": DEFAULT_TARGET.threads - 1,
    "nvvm.read.ptx.sreg.tid.y": DEFAULT_TARGET.threads - 1,
    "nvvm.read.ptx.sreg.tid.z": DEFAULT_TARGET.threads_z - 1,
    "nvvm.read.ptx.sreg.laneid": DEFAULT_TARGET.warp - 1,
}
"""Largest value of each special register."""

_MAX_DEPTH = 48


def low_zeros(mask: int) -> int:
    """Return the number of clear low bits; 64 for 0.

    >>> low_zeros(0b1011000), low_zeros(0)
    (3, 64)
    """
    return (mask & -mask).bit_length() - 1 if mask else 64


def up_to(largest: int, zeros: int = 0) -> int:
    """Return the mask of the bits that any number from 0 to ``largest`` with ``zeros`` clear low bits may set.

    >>> bin(up_to(20, 2))
    '0b11100'
    """
    return ((1 << largest.bit_length()) - 1) >> zeros << zeros


class PossibleBits:
    """Masks of the bits that values of one lowered function may set, cached by value."""

    def __init__(self) -> None:
        self.limits = dict(_LIMITS)
        self._known: dict[SSAValue, int] = {}

    def block_size(self, sizes: Sequence[int]) -> None:
        """Set the block size (threads along x, y and z) of the kernel."""
        for axis, n in zip("xyz", sizes):
            self.limits[f"nvvm.read.ptx.sreg.tid.{axis}"] = n - 1

    def mask(self, value: SSAValue, depth: int = 0) -> int:
        """Return the bits of ``value`` that may be set."""
        known = self._known.get(value)
        if known is None:
            known = self._known[value] = self._compute(value, depth) & _full(value)
        return known

    def _compute(self, value: SSAValue, depth: int) -> int:
        full = _full(value)
        found, path = inserted_at(value, ())
        if path or depth > _MAX_DEPTH:
            return full
        if found is not value:
            return self.mask(found, depth + 1)
        constant = constant_of(value)
        if constant is not None:
            return constant & full
        owner = value.owner
        if isinstance(owner, Block):
            return self._argument(value, owner, depth) if owner.args and owner.args[0] is value else full
        name = owner.name
        bounded = _ranged(owner, self.limits)
        if bounded is not None:
            return bounded
        if name == "nvvm.shfl.sync" and value.type == owner.operands[1].type:
            return self.mask(owner.operands[1], depth + 1)  # a value of another lane has the same bound
        if name in _CASTS:
            return self.mask(owner.operands[0], depth + 1) if _positive(self._of(owner, 0, depth), owner) else full
        rule = _RULES.get(name)
        if rule is None:
            return full
        sign = (full >> 1) + 1
        a, b = self._of(owner, 0, depth), self._of(owner, 1, depth)
        result = rule(a, b, constant_of(owner.operands[1]), sign)
        if result > full or (name not in _BITWISE and result & sign):
            # The result may wrap or be negative, so only the low zeros are certain.
            zeros = min(low_zeros(result), full.bit_length())
            return full >> zeros << zeros
        return result

    def _of(self, owner: Operation, i: int, depth: int) -> int:
        return self.mask(owner.operands[i], depth + 1) if i < len(owner.operands) else 0

    def _argument(self, value: SSAValue, block: Block, depth: int) -> int:
        # Bound the induction variable of a loop with constant bounds.
        loop = block.parent_op()
        if loop is None or loop.name != "scf.for":
            return _full(value)
        first, end, step = loop.operands[:3]
        start, stop = constant_of(first), constant_of(end)
        by = low_zeros(self.mask(step, depth + 1))
        if start is None or start < 0 or stop is None:
            zeros = min(by, low_zeros(self.mask(first, depth + 1)), 31)
            return _full(value) >> zeros << zeros
        return up_to(max(stop - 1, start), min(by, low_zeros(start)))


def _full(value: SSAValue) -> int:
    bits = 64 if isinstance(value.type, IndexType) else integer_width(value.type) or 64
    return (1 << bits) - 1


_RANGE = re.compile(r"<i\d+, (\d{1,10}), (\d{1,10})>$")
"""Matches ``#llvm.constant_range<i32, 0, 128>``."""


def _ranged(op: Operation, limits: Mapping[str, int]) -> int | None:
    limit = limits.get(op.name)
    given = op.properties.get("range")
    if given is not None:
        found = _RANGE.search(str(given))
        return up_to(int(found[2]) - 1) if found is not None and int(found[1]) < int(found[2]) else None
    return None if limit is None else up_to(limit)


def _positive(mask: int, op: Operation) -> bool:
    # Truncation keeps the low bits; extension keeps a number whose sign bit is clear.
    if op.name in ("arith.trunci", "arith.extui"):
        return True
    source = (_full(op.operands[0]) >> 1) + 1
    return not mask & source


def _add(a: int, b: int, _: int | None, __: int) -> int:
    return a | b if not a & b else up_to(a + b, min(low_zeros(a), low_zeros(b)))


def _sub(a: int, b: int, _: int | None, sign: int) -> int:
    # The result may be negative, because the mask does not tell which bits of a are certainly set.
    if b == 0:
        return a
    zeros = min(low_zeros(a), low_zeros(b))
    return (2 * sign - 1) >> zeros << zeros


def _mul(a: int, b: int, c: int | None, _: int) -> int:
    if c is not None and c > 0 and c & (c - 1) == 0:
        return a * c
    return up_to(a * b, min(low_zeros(a) + low_zeros(b), 63)) if a and b else 0


def _shl(a: int, _: int, c: int | None, sign: int) -> int:
    return a << c if c is not None and 0 <= c < sign.bit_length() else 2 * sign - 1


def _shr(a: int, _: int, c: int | None, sign: int) -> int:
    return a >> c if c is not None and 0 <= c < sign.bit_length() else 2 * sign - 1


def _div(a: int, _: int, c: int | None, sign: int) -> int:
    if c is None or c <= 0 or a & sign:
        return 2 * sign - 1
    return a >> (c.bit_length() - 1) if c & (c - 1) == 0 else up_to(a // c)


def _rem(a: int, _: int, c: int | None, sign: int) -> int:
    if c is None or c <= 0 or a & sign:
        return 2 * sign - 1
    if c & (c - 1) == 0:
        return a & (c - 1)
    return up_to(min(a, c - 1), min(low_zeros(a), low_zeros(c)))


_RULES: dict[str, Callable[[int, int, int | None, int], int]] = {
    "arith.addi": _add,
    "arith.subi": _sub,
    "arith.muli": _mul,
    "arith.shli": _shl,
    "arith.shrui": _shr,
    "arith.shrsi": lambda a, b, c, sign: 2 * sign - 1 if a & sign else _shr(a, b, c, sign),
    "arith.divsi": _div,
    "arith.divui": _div,
    "arith.remsi": _rem,
    "arith.remui": _rem,
    "arith.andi": lambda a, b, c, sign: a & b,
    "arith.ori": lambda a, b, c, sign: a | b,
    "arith.xori": lambda a, b, c, sign: a | b,
    "arith.minsi": lambda a, b, c, sign: 2 * sign - 1 if (a | b) & sign else up_to(min(a, b)),
    "arith.maxsi": lambda a, b, c, sign: 2 * sign - 1 if (a | b) & sign else up_to(max(a, b)),
}
_BITWISE = frozenset(("arith.andi", "arith.ori", "arith.xori", "arith.shrui"))
_CASTS = frozenset(("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.index_castui"))
