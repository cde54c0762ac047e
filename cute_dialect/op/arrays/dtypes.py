"""Element types and layouts: names in the spellings that callers use, supported combinations and result types.

>>> element_name("float16"), element_name(float), layout_name("t"), layout_name(ColumnMajor)
('f16', 'f32', 'row', 'column')
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from cute_dialect.kernels.common.elements import FACTORS, outputs_of
from cute_dialect.op.errors import DtypeError, LayoutError, OpError, UnsupportedError

OUTPUTS = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2",
    "int8": "i8", "uint8": "ui8", "int32": "i32", "float64": "f64",
}  # fmt: skip
"""Types of results and biases: torch's name -> MLIR name."""

_SHORT = {**OUTPUTS, "int16": "i16", "int64": "i64", "bool": "i1"}
_TORCH = {short: long for long, short in _SHORT.items()}
_OTHERS = {"half": "f16", "float": "f32", "double": "f64", "e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}

OPERANDS = tuple(element for element in OUTPUTS.values() if element != "i32")
"""Types of the operands ``a`` and ``b``."""

FAST = {"fast_f16": "f16", "fast_bf16": "bf16"}
"""Values of ``math`` -> the type that f32 operands are rounded to."""

MATHS = ("default", "tf32", "3xtf32", "exact", *FAST, "promote")
"""Values of ``math``: ``promote`` is for f16, bf16 and 8-bit floats, the others are for f32."""

_MIXED = [{"i8", "ui8"}, {"f8E4M3FN", "f8E5M2"}]
"""Types that ``a`` and ``b`` may mix."""


def element_name(dtype: object) -> str:
    """Return the MLIR name of an element type, given a name, a type of torch or numpy, or Python's ``float``.

    >>> import numpy
    >>> element_name("torch.float16"), element_name(numpy.float32), element_name(numpy.dtype("int8"))
    ('f16', 'f32', 'i8')
    """
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    name = str(name).removeprefix("torch.")
    return _SHORT.get(name) or _OTHERS.get(name, name)


def torch_name(element: str) -> str:
    """Return the name of a type in torch and numpy: ``float16`` for ``f16``."""
    return _TORCH.get(element, element)


def listed(names: tuple[str, ...]) -> str:
    """Return names as an enumeration.

    >>> listed(("f16", "bf16", "f32"))
    'f16, bf16 or f32'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def can_mix(a: str, b: str) -> bool:
    """Return True if ``a`` and ``b`` may have these two types.

    >>> can_mix("f16", "f16"), can_mix("i8", "ui8"), can_mix("f16", "bf16")
    (True, True, False)
    """
    return a == b or {a, b} in _MIXED


def both(a: str, b: str) -> str:
    """Return one name for the types of ``a`` and ``b``.

    >>> both("i8", "i8"), both("i8", "ui8")
    ('i8', 'i8*ui8')
    """
    return a if a == b else f"{a}*{b}"


def result_of(dtype: str) -> str:
    """Return the default result type for operands of a type.

    >>> result_of("ui8"), result_of("f8E5M2"), result_of("f16")
    ('i32', 'bf16', 'f16')
    """
    return {"i8": "i32", "ui8": "i32", "f8E4M3FN": "bf16", "f8E5M2": "bf16"}.get(dtype, dtype)


def tf32_allowed() -> bool:
    """Return True if torch allows TF32 in its f32 matmuls.

    The setting is ``fp32_precision``, or ``allow_tf32`` in older releases.
    """
    get = _precision_getter()
    if get is not None:
        return get("cuda", "matmul") == "tf32"
    import torch

    matmul = torch.backends.cuda.matmul
    precision = getattr(matmul, "fp32_precision", None)
    return bool(matmul.allow_tf32) if precision is None else precision == "tf32"


@cache
def _precision_getter() -> Callable[[str, str], str] | None:
    """Return the function behind ``torch.backends.cuda.matmul.fp32_precision``, which takes an eighth of its time.

    Return None if this release of torch does not have it.
    """
    import torch

    library: Any = torch
    get: Any = getattr(library._C, "_get_fp32_precision_getter", None)
    try:
        return get if get("cuda", "matmul") == torch.backends.cuda.matmul.fp32_precision else None
    except Exception:  # the function is private and may change its arguments
        return None


def is_of_torch(x: object) -> bool:
    """Return True for a torch tensor. Arrays of NumPy and CuPy have one interface, which differs from torch's."""
    return type(x).__module__.partition(".")[0] == "torch"


def arithmetic_of(dtype: str, math: str, accumulator: object, allowed: bool) -> str:
    """Return the arithmetic of a GEMM.

    For f32 operands it is ``tf32``, ``3xtf32`` or ``exact``.  For others it is ``two`` (two-level accumulation),
    ``f16`` (f16 accumulator), ``block`` or ``columns`` (block scales), or empty for the default.

    Args:
        dtype: type of the operands, as returned by :func:`both`.
        math: argument of the call.
        accumulator: argument of the call; None selects the default type.
        allowed: the default of f32 is tf32.

    Raises UnsupportedError for a combination without a kernel.

    >>> arithmetic_of("f32", "default", None, False), arithmetic_of("f16", "default", "f16", False)
    ('exact', 'f16')
    """
    if isinstance(accumulator, str) and accumulator in ("block", "columns"):  # scaled_mm passes these
        return accumulator
    if math not in MATHS:
        raise UnsupportedError(f"math={math!r} is not supported; use {listed(MATHS)}")
    kind = dtype.partition("*")[0]
    usual = {"i8": "i32", "ui8": "i32", "f64": "f64"}.get(kind, "f32")
    sums = usual if accumulator is None else element_name(accumulator)
    if sums != usual and (sums, dtype) != ("f16", "f16"):
        why = " (only f16 operands have an f16 accumulator)" if sums == "f16" else ""
        raise UnsupportedError(f"accumulator {sums} is not supported for {dtype} operands{why}; use {usual}")
    fitting = MATHS[:-1] if kind == "f32" else ("default",) if usual != "f32" else ("default", "promote")
    if math not in fitting:
        raise UnsupportedError(f"math={math!r} is not supported for {dtype} operands; use {listed(fitting)}")
    if math in FAST:
        return ""
    if kind == "f32":
        return math if math != "default" else "tf32" if allowed else "exact"
    if math == "promote" and sums == "f16":
        raise UnsupportedError("math='promote' needs an f32 accumulator, got f16; use accumulator='f32'")
    return "two" if math == "promote" else "f16" if sums == "f16" else ""


def checked_arithmetic(call: str, dtype: str, result: str, math: str, accumulator: object, tf32: bool) -> str:
    """Return the arithmetic of a GEMM (:func:`arithmetic_of`) if a kernel has it.

    Args:
        call: name of the function.
        result: type of the result.
        tf32: the default arithmetic of f32 is tf32.

    Raises DtypeError, UnsupportedError.
    """
    try:
        found = arithmetic_of(dtype, math, accumulator, tf32 and dtype == "f32" and math == "default")
        check_types(dtype, result, found)
    except OpError as e:
        raise type(e)(f"{call}: {e}") from None
    return found


def element_of(dtype: str, arithmetic: str = "") -> str:
    """Return the type of the elements that are multiplied, for operand types named by :func:`both`.

    Raises DtypeError.

    >>> element_of("f32", "tf32"), element_of("f32"), element_of("i8*ui8")
    ('tf32', 'f32', 'i8_ui8')
    """
    found = dtype.split("*")
    if not {*found} <= {*OPERANDS}:
        raise DtypeError(f"operands of {dtype} are not supported; use {', '.join(OPERANDS)}")
    element = "_".join(found)
    if element in ("f32", "f64"):
        return "tf32" if arithmetic in ("tf32", "3xtf32") else element
    if element not in FACTORS:
        raise DtypeError(f"b has dtype {found[-1]}, but a has dtype {found[0]}; pass operands of one dtype")
    return element


def check_types(dtype: str, result: str, arithmetic: str = "") -> None:
    """Raise DtypeError if no kernel has these types of operands and result."""
    taken = outputs_of(element_of(dtype, arithmetic))
    if result not in taken:
        raise DtypeError(f"a result of {result} is not supported for {dtype} operands; use {listed(taken)}")


# ------------------------------------------------------------------------------------------- types and layouts of plans


SIZES: Mapping[str, int] = {
    "f16": 2, "bf16": 2, "tf32": 4, "f32": 4, "f64": 8, "i8": 1, "ui8": 1, "i32": 4, "f8E4M3FN": 1, "f8E5M2": 1,
}  # fmt: skip
"""Element type -> size in bytes."""

float16, bfloat16, tfloat32, float32, float64 = "f16", "bf16", "tf32", "f32", "f64"
int8, uint8, int32 = "i8", "ui8", "i32"
e4m3, e5m2 = "f8E4M3FN", "f8E5M2"
void = "void"
"""No matrix: ``element_C=void``."""


def checked_element(value: object, what: str = "element") -> str:
    """Return the MLIR name of an element type of a plan, as :func:`element_name` does.  Raises DtypeError.

    >>> import numpy
    >>> checked_element(numpy.float64), checked_element("tfloat32"), checked_element("u8")
    ('f64', 'tf32', 'ui8')
    """
    name = element_name(value)
    found = {"tfloat32": "tf32", "u8": "ui8"}.get(name, name)
    if found not in SIZES:
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


def compute_type(elements: Sequence[str], dtype: object) -> str:
    """Return the type in which a function of arrays is computed.

    It is ``f64`` if an array has that type.  It is an integer type if all arrays are integers and one has 32 bits or
    more. Otherwise it is ``f32``.

    >>> compute_type(["i32", "f16"], None), compute_type(["i32", "i1"], None), compute_type(["i1"], None)
    ('f32', 'i32', 'i64')
    """
    kinds = set(elements)
    if "f64" in kinds or (dtype is not None and element_name(dtype) == "f64"):
        return "f64"
    if kinds & {"i32", "i64"} and kinds <= {"i1", "i8", "ui8", "i32", "i64"}:
        return "i64" if "i64" in kinds else "i32"
    return "i64" if kinds == {"i1"} else "f32"


def result_element(kind: str, elements: Sequence[str]) -> str:
    """Return the type of a result.  Results of kind "b" (booleans) have ``i1``, others depend on the arrays' types.

    The rules for two tensors are torch's.  8-bit floats are added: combined with a 16-bit or 32-bit type, the result
    has that type.

    >>> result_element("f", ["i64", "f16"]), result_element("f", ["i32"]), result_element("b", ["f16"])
    ('f16', 'f32', 'i1')
    """
    if kind == "b":
        return "i1"
    compute = compute_type(elements, None)
    if compute in ("i32", "i64"):
        return compute if kind == "i" else "f32"
    floats = [e for e in elements if e not in ("i1", "i32", "i64")]
    return "f64" if compute == "f64" else _common_float(floats)


def _common_float(elements: Sequence[str]) -> str:
    """Return the type of results of floats or of 8-bit integers.

    >>> _common_float(["f16", "f16"]), _common_float(["bf16", "i8"]), _common_float(["f16", "bf16"])
    ('f16', 'bf16', 'f32')
    """
    kinds = set(elements)
    if len(kinds) > 1:
        kinds -= {"i8", "ui8", "f8E4M3FN", "f8E5M2"}
    return kinds.pop() if len(kinds) == 1 else "f32"
