"""Element types of a GEMM: operands, accumulator and results.

Operands of two types are named by both: ``i8_ui8`` stands for signed bytes in A and unsigned bytes in B.

>>> factors("f16"), factors("i8_ui8"), swapped("i8_ui8")
(('f16', 'f16'), ('i8', 'ui8'), 'ui8_i8')
>>> sums_of("i8_ui8"), sums_of("f16"), sums_of("f16", "f16")
('i32', 'f32', 'f16')
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.lang.values.dtypes import type_of_mlir

_BYTES = (("i8", "ui8"), ("f8E4M3FN", "f8E5M2"))
"""Groups of 8-bit types. Any two types of a group can be multiplied."""

FACTORS = {
    "f16": 16, "bf16": 16, "tf32": 32,
    **{a if a == b else f"{a}_{b}": 8 for group in _BYTES for a in group for b in group},
}  # fmt: skip
"""Operand types -> bits of an element."""

OUTPUTS = {"f16": 16, "bf16": 16, "f32": 32, "i32": 32, "i8": 8, "ui8": 8, "f8E4M3FN": 8, "f8E5M2": 8, "f64": 64}
"""Result types -> bits of an element."""

BITS = {**OUTPUTS, **FACTORS, "i64": 64, "f4E2M1FN": 4}

_LIMITS = {"i8": (-128, 127), "ui8": (0, 255)}


def vector_width(element: str) -> int:
    """Return the number of elements in a vector of 16 bytes."""
    return 128 // BITS[element]


def factors(element: str) -> tuple[str, str]:
    """Return the types of A and B."""
    a, _, b = element.partition("_")
    return a, b or a


def swapped(element: str) -> str:
    """Return the operand types of the transposed problem, in which A and B are exchanged."""
    a, b = factors(element)
    return element if a == b else f"{b}_{a}"


def sums_of(element: str, accumulator: str = "") -> str:
    """Return the accumulator type. ``accumulator`` is the requested type, or empty for the default."""
    return "i32" if factors(element)[0] in _BYTES[0] else accumulator or "f32"


def outputs_of(element: str) -> tuple[str, ...]:
    """Return the supported result types.

    >>> outputs_of("i8")
    ('i32', 'i8', 'ui8', 'f16', 'bf16', 'f32')
    """
    if sums_of(element) == "i32":
        return ("i32", "i8", "ui8", "f16", "bf16", "f32")
    if element == "f64":
        return ("f64",)
    return ("f16", "bf16", "f32") if element in ("tf32", "f32") else ("f16", "bf16", "f32", "f8E4M3FN", "f8E5M2")


def number(name: str) -> Any:
    """Return the numeric type of a name.

    >>> number("ui8"), number("bf16")
    (Uint8, BFloat16)
    """
    return type_of_mlir(name.removeprefix("u"), signed=not name.startswith("u"))


def rounded(values: Any, kind: Any) -> Any:
    """Convert values in registers to the result type.

    Floats round to nearest even. Conversions to integers and to 8-bit floats saturate; NaN becomes integer 0.
    """
    if not kind.is_integer or values.element_type is kind:
        return values.load().to(kind)
    found = cute.make_rmem_tensor_like(values, kind)
    low, high = _LIMITS.get(f"{'' if kind.signed else 'u'}{kind.mlir_type}", (None, None))
    if values.element_type.is_integer and values.element_type.width > kind.width and low is None:
        low, high = -(2 ** (kind.width - 1)), 2 ** (kind.width - 1) - 1
    for i in range(cute.size(values)):  # held in registers, so the passes unroll this loop
        x = values[i]
        if not values.element_type.is_integer:
            # fptosi is undefined for values that do not fit.
            x = cute.arch.inline_ptx("cvt.rni.s32.f32 $0, $1;", x, result=cute.Int32, side_effects=False)
        found[i] = (x if low is None else cute.max(cute.min(x, high), low)).to(kind)
    return found.load()
