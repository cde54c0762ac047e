"""Arithmetic on pairs of Float32: what ``add``, ``mul`` and ``fma`` of ``.f32x2`` give (PTX ISA, sm_100).

Each element is rounded once, to nearest even, as the instructions of single numbers round: so all chips give the same
bits, by two instructions where there is no packed one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cute_dialect.front.dtypes import Float32
from cute_dialect.front.emission import fastmath
from cute_dialect.front.errors import KernelTypeError
from cute_dialect.front.machine import in_kernel
from cute_dialect.front.numeric import as_number

__all__ = ["add_packed_f32x2", "fma_packed_f32x2", "mul_packed_f32x2"]


def _packed(
    name: str, compute: Callable[..., Any], pairs: tuple[Any, ...], rnd: Any, ftz: bool
) -> tuple[Any, Any]:  # fmt: skip
    """Return what a function gives for the first elements of pairs, and for the second ones."""
    what = f"cute.arch.{name}_packed_f32x2"
    in_kernel(what)
    if str(getattr(rnd, "name", rnd or "rn")).lower() != "rn" or ftz:
        raise KernelTypeError(
            "F251", f"{what}: expected rnd = 'rn' and ftz = False, got {rnd} and {ftz}",
            hint="these are instructions of single numbers, which round to nearest and flush nothing",
        )  # fmt: skip
    columns: list[tuple[Any, Any]] = []
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise KernelTypeError("F236", f"{what}: expected pairs of Float32, got {pair!r}")
        numbers = tuple(Float32(x) if isinstance(x, float) else as_number(x) for x in pair)
        for number in numbers:
            if type(number) is not Float32:
                raise KernelTypeError("F236", f"{what}: expected pairs of Float32, got {number.describe()}")
        columns.append((numbers[0], numbers[1]))
    with fastmath("none"):  # a product and a sum are not fused
        return compute(*[x for x, _ in columns]), compute(*[y for _, y in columns])


def add_packed_f32x2(src_a: Any, src_b: Any, *, rnd: Any = None, ftz: bool = False) -> tuple[Any, Any]:
    """Return the sums of two pairs of Float32.

    ``rnd`` and ``ftz`` are there for programs that say them.  Raises F251 for another rounding, and for flushing.

        x, y = cute.arch.add_packed_f32x2((x, y), (1.0, 2.0))
    """
    return _packed("add", lambda a, b: a + b, (src_a, src_b), rnd, ftz)


def mul_packed_f32x2(src_a: Any, src_b: Any, *, rnd: Any = None, ftz: bool = False) -> tuple[Any, Any]:
    """Return the products of two pairs of Float32; see :func:`add_packed_f32x2`."""
    return _packed("mul", lambda a, b: a * b, (src_a, src_b), rnd, ftz)


def fma_packed_f32x2(src_a: Any, src_b: Any, src_c: Any, *, rnd: Any = None, ftz: bool = False) -> tuple[Any, Any]:
    """Return ``a * b + c`` of three pairs of Float32, each rounded once; see :func:`add_packed_f32x2`."""
    from cute_dialect.front.math_ops import fma

    return _packed("fma", fma, (src_a, src_b, src_c), rnd, ftz)
