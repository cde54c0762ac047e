"""Packed weights: their format, checks of the arguments that make them, and the problem of a GEMM.

A format names the stored type, the elements of K that share a scale, and the type of the scales:

>>> f = format_of("mm_packed", "ui4-g128-bf16-z")
>>> f.weight, f.group, f.scale, f.zeros, str(f)
('ui4', 128, 'bf16', True, 'ui4-g128-bf16-z')
>>> f.shape(8192, 4096)                                     # 4.19 bits per weight
(128, 34304)
"""

from __future__ import annotations

from itertools import product
from numbers import Integral
from typing import NamedTuple, TypeGuard

from cute_dialect.kernels.gemm.mixed_input import FLOATS, GROUPS, ROWS, WEIGHTS, Chunk
from cute_dialect.op.errors import ArgumentError, DtypeError, ShapeError, UnsupportedError
from cute_dialect.op.keywords import type_name
from cute_dialect.op.problems.compressed_weights import PackedWeight

SCALES = ("f16", "bf16", "f32")
"""Types of scales."""

ACTIVATIONS = ("f16", "bf16")
"""Types of ``x``."""

RESULTS = ("f16", "bf16", "f32")
"""Types of results."""


class Format(NamedTuple):
    """Storage of weights: types, and the elements that share a scale."""

    weight: str  # stored type: ui4, i8 or f8E4M3FN
    group: int  # elements of K that share a scale; 0: a row
    scale: str  # type of the scales
    zeros: bool  # there are zero points

    @property
    def chunk(self) -> Chunk:
        return Chunk(self.weight, self.group, self.scale, self.zeros)

    @property
    def bits(self) -> int:
        """Bits of a weight."""
        return WEIGHTS[self.weight]

    def shape(self, n: int, k: int) -> tuple[int, int]:
        """Return the shape of the packed array, in 32-bit words."""
        return -(-n // ROWS), self.chunk.line(k)

    def groups(self, k: int) -> int:
        """Return the number of scales of a row."""
        return -(-k // self.group) if self.group else 1

    def __str__(self) -> str:
        group = f"g{self.group}" if self.group else "row"
        return f"{self.weight}-{group}-{self.scale}{'-z' if self.zeros else ''}"


_FORMATS = {
    str(f): f
    for f in (Format(*x) for x in product(WEIGHTS, GROUPS, SCALES, (False, True)))
    if not (f.zeros and f.weight in FLOATS)
}
"""All formats by name."""


def format_of(call: str, text: object, *, is_packed: bool = True) -> Format:
    """Return the format of a name.  Raises ArgumentError.

    Args:
        is_packed: True if the name belongs to packed weights, False if it is an argument ``format``.
    """
    found = _FORMATS.get(text) if isinstance(text, str) else None
    if found is not None:
        return found
    if is_packed:
        raise ArgumentError(
            f"{call}: packed has the format {text!r}, which is unknown; pass the result of op.pack_weight, "
            "op.pack_gptq or op.pack_awq"
        )
    groups = ", ".join(f"g{g}" if g else "row" for g in GROUPS)
    raise ArgumentError(
        f'{call}: format is {text!r}; pass "WEIGHT-GROUP-SCALE", such as "ui4-g128-f16", with a WEIGHT of '
        f'{", ".join(WEIGHTS)}, a GROUP of {groups} and a SCALE of {", ".join(SCALES)}; "-z" at the end adds zero '
        "points of integers"
    )


def checked_packed(call: str, packed: object) -> Format:
    """Return the format of an argument, whose data may be None.  Raises DtypeError, ShapeError, ArgumentError."""
    if not isinstance(packed, PackedWeight):
        raise DtypeError(
            f"{call}: packed is of type {type_name(packed)}; pass the result of op.pack_weight, op.pack_gptq or "
            "op.pack_awq"
        )
    found = format_of(call, packed.format)
    wanted = found.shape(packed.n, packed.k)
    shape = wanted if packed.data is None else tuple(packed.data.shape)
    if shape != wanted:
        raise ShapeError(
            f"{call}: packed.data has shape {shape}, but {packed.n} x {packed.k} weights of {packed.format} need "
            f"{wanted}; pass the packed weights unchanged"
        )
    return found


def group_of(call: str, k: int, groups: int, group: object, lines: str = "columns") -> int:
    """Return the elements of K that share a scale, 0 for a row.  Raises ArgumentError, ShapeError.

    Args:
        k: columns of the weights.
        groups: scales of a row of weights.
        group: the requested number, or None to derive it.
        lines: "columns" or "rows" of the array of scales, whose number is ``groups``.
    """
    sizes = [g for g in GROUPS if g]
    if group is None:
        for size in (0, *reversed(sizes)):
            if groups == (-(-k // size) if size else 1):
                return size
    elif not _is_integer(group) or group not in sizes:
        allowed = ", ".join(map(str, sizes))
        raise ArgumentError(f"{call}: group={group!r} is not supported; use {allowed}, or None with one scale per row")
    elif groups == -(-k // int(group)):
        return int(group)
    else:
        raise ShapeError(
            f"{call}: scales has {groups} {lines}, but groups of {group} of K = {k} need {-(-k // int(group))}"
        )
    counts: dict[int, str] = {}
    for size in sizes:
        counts.setdefault(-(-k // size), f"groups of {size}")
    counts[1] = f"one group of K = {k}"
    known = ", ".join(f"{count} ({what})" for count, what in counts.items())
    raise ShapeError(f"{call}: scales has {groups} {lines}, but K is {k}; pass one of {known}")


def check_bits(call: str, bits: object) -> int:
    """Return the bits of a weight.  Raises ArgumentError."""
    if not _is_integer(bits) or bits not in WEIGHTS.values():
        raise ArgumentError(f"{call}: bits={bits!r} is not supported; use 4 or 8")
    return int(bits)


def _is_integer(x: object) -> TypeGuard[int]:
    """Return True for an integer of Python or NumPy, but not for a bool."""
    return type(x) is not bool and isinstance(x, Integral)


def check_zero(call: str, zero: int, bits: int, *, is_signed: bool) -> int:
    """Return a zero point that all groups share.  Raises ArgumentError."""
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    if not low <= zero <= high:
        raise ArgumentError(f"{call}: zeros={zero} is outside of the range of w; use {low} to {high}")
    return zero


def stored_type(bits: int) -> str:
    """Return the stored type of integer weights of ``bits`` bits."""
    return next(weight for weight, found in WEIGHTS.items() if found == bits)


def check_problem(call: str, n: int, k: int) -> None:
    """Raise ShapeError or UnsupportedError for weights that cannot be packed."""
    if n < 1 or k < 1:
        raise ShapeError(f"{call}: w has shape {(n, k)}; it must not be empty")
    if n * k >= 1 << 33 or n >= 1 << 30 or k >= 1 << 24:
        raise UnsupportedError(f"{call}: w has shape {(n, k)}, which exceeds the limits; split it along N")
