"""Names of element types and layouts in the spellings that callers use.

>>> element_name("float16"), element_name("f16"), element_name(float), layout_name("t"), layout_name(ColumnMajor)
('f16', 'f16', 'f32', 'row', 'column')
"""

from __future__ import annotations

from collections.abc import Mapping

from cute_dialect.op.errors import DtypeError, LayoutError, UnsupportedError

__all__ = [
    "SIZES", "ColumnMajor", "ColumnMajorInterleaved32", "LayoutType", "RowMajor", "RowMajorInterleaved32", "TensorNHWC",
    "bfloat16",
    "e4m3", "e5m2", "element_name", "float16", "float32", "float64", "int8", "int32", "layout_name", "tfloat32",
    "uint8", "void",
]  # fmt: skip

SIZES: Mapping[str, int] = {
    "f16": 2, "bf16": 2, "tf32": 4, "f32": 4, "f64": 8, "i8": 1, "ui8": 1, "i32": 4, "f8E4M3FN": 1, "f8E5M2": 1,
}  # fmt: skip
"""Element type -> size in bytes."""

_OTHERS = {
    "float16": "f16", "half": "f16", "bfloat16": "bf16", "float32": "f32", "float": "f32", "tfloat32": "tf32",
    "float64": "f64", "double": "f64", "int8": "i8", "uint8": "ui8", "u8": "ui8", "int32": "i32",
    "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2", "e4m3": "f8E4M3FN", "e5m2": "f8E5M2",
}  # fmt: skip

float16, bfloat16, tfloat32, float32, float64 = "f16", "bf16", "tf32", "f32", "f64"
int8, uint8, int32 = "i8", "ui8", "i32"
e4m3, e5m2 = "f8E4M3FN", "f8E5M2"
void = "void"
"""No matrix: ``element_C=void``."""


def element_name(value: object, what: str = "element") -> str:
    """Return the MLIR name of an element type, given a name, a type of torch or numpy, or Python's ``float``.

    Raises DtypeError.

    >>> import numpy
    >>> element_name(numpy.float64), element_name(numpy.dtype("int8"))
    ('f64', 'i8')
    """
    if value is float:
        return "f32"
    text = value if isinstance(value, str) else getattr(value, "__name__", None) or str(getattr(value, "name", value))
    text = text.removeprefix("torch.")
    found = text if text in SIZES else _OTHERS.get(text)
    if found is None:
        raise DtypeError(f"{what}: {value!r} is not an element type; use {', '.join(SIZES)}")
    return found


class LayoutType(str):
    """The layout of a matrix; it selects the contiguous mode."""

    __slots__ = ()


RowMajor = LayoutType("row")
ColumnMajor = LayoutType("column")
RowMajorInterleaved32 = LayoutType("row-interleaved-32")
ColumnMajorInterleaved32 = LayoutType("column-interleaved-32")
TensorNHWC = LayoutType("nhwc")
"""Images (N, H, W, C) and filters (K, R, S, C) with contiguous channels."""

_LAYOUTS = {
    "row": "row",
    "column": "column",
    "t": "row",
    "n": "column",
    "rowmajor": "row",
    "columnmajor": "column",
    "nhwc": "row",
}


def layout_name(value: object, what: str = "layout", *, interleaved: bool = False) -> str:
    """Return ``row`` (the last mode is contiguous) or ``column``; ``interleaved`` also allows the interleaved layouts.

    Raises LayoutError, UnsupportedError.
    """
    if interleaved and value in (RowMajorInterleaved32, ColumnMajorInterleaved32):
        return str(value)
    found = _LAYOUTS.get(value.lower()) if isinstance(value, str) else None
    if found is None:
        if isinstance(value, str) and "interleaved" in value.lower():
            raise UnsupportedError(
                f"{what}: interleaved layout {value} is not supported here; use op.TensorDescription"
            )
        raise LayoutError(f"{what}: {value!r} is not a layout; use row or column (also t, n)")
    return found
