"""Memref types of array arguments, which become part of the specialization's key.

A *raw* array (from torch, cupy, numpy, …) has dynamic extents and dynamic strides, except for the contiguous stride (1)
and broadcast strides (0).  If the address and all other strides are multiples of 16 bytes the type records this
alignment.  Such arrays get a specialization with vector loads.

>>> raw_type(ArrayView(4096, (8, 12), (12, 1), "f32", -1, "numpy", None))
'!cute.memref<f32, gmem, align<16>, "(?,?):(?{div=4},1)">'
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from cute_dialect.lang.values.dtypes import type_of_mlir
from cute_dialect.runtime.arrays import ArrayView
from cute_dialect.runtime.binding import MAX_EXTENT_I32 as MAX_STATIC

if TYPE_CHECKING:
    from cute_dialect.lang.values.dtypes import NumericType

__all__ = [
    "MAX_STATIC",
    "VECTOR_BYTES",
    "element_bytes",
    "is_array",
    "leading_dimension",
    "raw_type",
    "type_of_element",
]

VECTOR_BYTES = 16
"""Alignment of an aligned array, in bytes: the widest access of one thread."""


@lru_cache(maxsize=64)
def element_bytes(element: str) -> int:
    """Return the size of an element in memory, in bytes, from its MLIR type.

    >>> element_bytes("f16"), element_bytes("i1"), element_bytes("f8E4M3FN")
    (2, 1, 1)
    """
    digits = "".join(c for c in element.partition("E")[0] if c.isdigit())
    return max(8, int(digits)) // 8


@lru_cache(maxsize=64)
def type_of_element(dtype: str) -> NumericType:
    """Return the number type of an array's elements.

    >>> type_of_element("ui8"), type_of_element("bf16")
    (Uint8, BFloat16)
    """
    return type_of_mlir(dtype.removeprefix("u"), signed=not dtype.startswith("u"))


@lru_cache(maxsize=256)
def _is_array_type(kind: type) -> bool:
    return any(
        hasattr(kind, name) for name in ("__dlpack__", "__cuda_array_interface__")
    ) and not kind.__module__.startswith("cute_dialect.")


def is_array(value: object) -> bool:
    """Return True if ``value`` is an array of some library. NumPy scalars are not arrays."""
    return _is_array_type(type(value))


def leading_dimension(shape: tuple[int, ...], strides: tuple[int, ...]) -> int | None:
    """Return the last dimension of stride 1, or None. A dimension with several elements comes first.

    >>> leading_dimension((4, 8), (8, 1)), leading_dimension((8, 1), (1, 1)), leading_dimension((8, 8), (16, 2))
    (1, 1, None)
    """
    ones = [i for i, d in enumerate(strides) if d == 1]
    return ones[-1] if ones else None


def raw_type(view: ArrayView) -> str:
    """Return the memref type of a raw array."""
    return _raw_type(view.shape, view.strides, view.dtype, view.pointer % VECTOR_BYTES == 0)


@lru_cache(maxsize=4096)
def _raw_type(shape: tuple[int, ...], strides: tuple[int, ...], dtype: str, aligned: bool) -> str:
    size = element_bytes(dtype)
    lead = leading_dimension(shape, strides)
    per = VECTOR_BYTES // size
    used = [n > 1 and 0 not in shape for n in shape]
    whole = aligned and all(d % per == 0 for i, d in enumerate(strides) if i != lead and used[i])
    extents = ",".join("?" if n <= MAX_STATIC else "?{i64}" for n in shape)
    leaves: list[str] = []
    for i, d in enumerate(strides):
        if i == lead or (d == 0 and used[i]):
            leaves.append("1" if i == lead else "0")
            continue
        # Tile strides along a mode are computed at this leaf's width and do not exceed the extent of the mode in
        # memory.
        facts = [] if abs(d) * shape[i] < 1 << 31 else ["i64"]
        facts += [f"div={per}"] if whole and per > 1 else []
        leaves.append("?" + (f"{{{' '.join(facts)}}}" if facts else ""))
    align = f"align<{VECTOR_BYTES}>, " if whole else ""
    dtype = dtype.removeprefix("u")
    return f'!cute.memref<{dtype}, gmem, {align}"({extents}):({",".join(leaves)})">'
