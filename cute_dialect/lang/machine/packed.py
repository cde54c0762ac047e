"""Arithmetic on pairs of Float32: ``add``, ``mul`` and ``fma`` of ``.f32x2`` (PTX ISA, sm_100).

Each element is rounded once, to nearest even, as in the scalar instructions.  All architectures give the same bits;
those without packed instructions use two scalar ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cute_dialect.lang.machine.operands import in_kernel
from cute_dialect.lang.tracing.emission import fastmath
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.values.dtypes import Float32
from cute_dialect.lang.values.math import fma
from cute_dialect.lang.values.numeric import as_number

if TYPE_CHECKING:
    from cute_dialect.lang.values.signature_types import Number


__all__ = ["add_packed_f32x2", "fma_packed_f32x2", "mul_packed_f32x2"]


def _packed(
    name: str, compute: Callable[..., Any], pairs: tuple[Any, ...], rnd: Any, ftz: bool
) -> tuple[Any, Any]:  # fmt: skip
    """Apply a function to the first elements of pairs, and to the second elements."""
    what = f"cute.arch.{name}_packed_f32x2"
    in_kernel(what)
    if str(getattr(rnd, "name", rnd or "rn")).lower() != "rn" or ftz:
        raise KernelTypeError(
            "F251", f"{what}: rnd must be 'rn' and ftz must be False, got {rnd} and {ftz}",
            hint="scalar instructions are used, which round to nearest and keep denormals",
        )  # fmt: skip
    columns: list[tuple[Any, Any]] = []
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise KernelTypeError("F236", f"{what}: the operands must be pairs of Float32, got {pair!r}")
        numbers = tuple(Float32(x) if isinstance(x, float) else as_number(x) for x in pair)
        for number in numbers:
            if type(number) is not Float32:
                raise KernelTypeError("F236", f"{what}: the operands must be pairs of Float32, got {number.describe()}")
        columns.append((numbers[0], numbers[1]))
    with fastmath("none"):  # Multiplication and addition are not fused.
        return compute(*[x for x, _ in columns]), compute(*[y for _, y in columns])


def add_packed_f32x2(
    src_a: tuple[Number, Number], src_b: tuple[Number, Number], *, rnd: str | None = None, ftz: bool = False
) -> tuple[Float32, Float32]:
    """Return the elementwise sum of two pairs of Float32.

    ``rnd`` and ``ftz`` are accepted for compatibility.  F251 is raised unless they select round-to-nearest without
    flushing. ``x, y = cute.arch.add_packed_f32x2((x, y), (1.0, 2.0))``
    """
    return _packed("add", lambda a, b: a + b, (src_a, src_b), rnd, ftz)


def mul_packed_f32x2(
    src_a: tuple[Number, Number], src_b: tuple[Number, Number], *, rnd: str | None = None, ftz: bool = False
) -> tuple[Float32, Float32]:
    """Return the elementwise product of two pairs of Float32; see :func:`add_packed_f32x2`."""
    return _packed("mul", lambda a, b: a * b, (src_a, src_b), rnd, ftz)


def fma_packed_f32x2(
    src_a: tuple[Number, Number],
    src_b: tuple[Number, Number],
    src_c: tuple[Number, Number],
    *,
    rnd: str | None = None,
    ftz: bool = False,
) -> tuple[Float32, Float32]:
    """Return ``a * b + c`` of three pairs of Float32 with a single rounding; see :func:`add_packed_f32x2`."""
    return _packed("fma", fma, (src_a, src_b, src_c), rnd, ftz)
