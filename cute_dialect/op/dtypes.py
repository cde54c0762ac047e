"""Types of elements: their names, which are multiplied, and what comes out of it."""

from __future__ import annotations

from cute_dialect.kernels.gemm.elements import FACTORS, outputs_of
from cute_dialect.op.errors import DtypeError, UnsupportedError

__all__ = [
    "FAST",
    "MATHS",
    "OUTPUTS",
    "arithmetic_of",
    "both",
    "can_mix",
    "check_types",
    "element_name",
    "element_of",
    "listed",
    "result_of",
    "tf32_allowed",
    "torch_name",
]

OUTPUTS = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2",
    "int8": "i8", "uint8": "ui8", "int32": "i32", "float64": "f64",
}  # fmt: skip
"""Types of results and biases: torch's names, and ours."""

_SHORT = {**OUTPUTS, "int16": "i16", "int64": "i64", "bool": "i1"}
_TORCH = {short: long for long, short in _SHORT.items()}
_OTHERS = {"half": "f16", "float": "f32", "double": "f64", "e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}

_ELEMENTS = tuple(element for element in OUTPUTS.values() if element != "i32")
"""Types of factors."""

FAST = {"fast_f16": "f16", "fast_bf16": "bf16"}
"""What f32 is rounded to before it is multiplied."""

MATHS = ("default", "tf32", "3xtf32", "exact", *FAST, "promote")
"""What ``math`` may be: of f32, and ``promote`` of f16, bf16 and 8-bit floats."""

_MIXED = [{"i8", "ui8"}, {"f8E4M3FN", "f8E5M2"}]
"""Types that are multiplied with each other."""


def element_name(dtype: object) -> str:
    """Return our name of an element type: of a name, of a type of torch or numpy, of Python's ``float``.

    >>> import numpy
    >>> element_name("torch.float16"), element_name(numpy.float32), element_name(numpy.dtype("int8"))
    ('f16', 'f32', 'i8')
    """
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    name = str(name).removeprefix("torch.")
    return _SHORT.get(name) or _OTHERS.get(name, name)


def torch_name(element: str) -> str:
    """Return torch's, and numpy's, name of a type: ``float16`` of ``f16``."""
    return _TORCH.get(element, element)


def listed(names: tuple[str, ...]) -> str:
    """Return names as a sentence has them.

    >>> listed(("f16", "bf16", "f32"))
    'f16, bf16 or f32'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def can_mix(a: str, b: str) -> bool:
    """Tell whether elements of two types are multiplied with each other.

    >>> can_mix("f16", "f16"), can_mix("i8", "ui8"), can_mix("f16", "bf16")
    (True, True, False)
    """
    return a == b or {a, b} in _MIXED


def both(a: str, b: str) -> str:
    """Return the name of the types of two factors.

    >>> both("i8", "i8"), both("i8", "ui8")
    ('i8', 'i8*ui8')
    """
    return a if a == b else f"{a}*{b}"


def result_of(dtype: str) -> str:
    """Return the type of a product for which none was asked, of factors of a type.

    >>> result_of("ui8"), result_of("f8E5M2"), result_of("f16")
    ('i32', 'bf16', 'f16')
    """
    return {"i8": "i32", "ui8": "i32", "f8E4M3FN": "bf16", "f8E5M2": "bf16"}.get(dtype, dtype)


def tf32_allowed() -> bool:
    """Tell whether torch's own products of f32 may be multiplied as tf32: its ``fp32_precision``, and before there was
    that ``allow_tf32``.
    """
    import torch

    matmul = torch.backends.cuda.matmul
    precision = getattr(matmul, "fp32_precision", None)
    return bool(matmul.allow_tf32) if precision is None else precision == "tf32"


def arithmetic_of(dtype: str, math: str, accumulator: object, allowed: bool) -> str:
    """Return how elements are multiplied and added up: of f32 ``tf32``, ``3xtf32`` or ``exact``; of others ``two``, in
    two levels, ``f16``, in f16, ``block`` or ``columns``, with scales, or nothing, as is usual.

    ``dtype``: of the factors, see :func:`both`; ``math``, ``accumulator``: what a call says; ``allowed``: the default
    of f32 is tf32.  Raises UnsupportedError for what there is not.

    >>> arithmetic_of("f32", "default", None, False), arithmetic_of("f16", "default", "f16", False)
    ('exact', 'f16')
    """
    if isinstance(accumulator, str) and accumulator in ("block", "columns"):  # scaled_mm says so
        return accumulator
    if math not in MATHS:
        raise UnsupportedError(f"expected math of {listed(MATHS)}, got {math!r}")
    kind = dtype.partition("*")[0]
    usual = {"i8": "i32", "ui8": "i32", "f64": "f64"}.get(kind, "f32")
    sums = usual if accumulator is None else element_name(accumulator)
    if sums != usual and (sums, dtype) != ("f16", "f16"):
        why = " (wgmma has f16 sums for f16 only)" if sums == "f16" else ""
        raise UnsupportedError(f"expected sums in {usual} for {dtype}, got {sums}{why}")
    fitting = MATHS[:-1] if kind == "f32" else ("default",) if usual != "f32" else ("default", "promote")
    if math not in fitting:
        raise UnsupportedError(f"expected math of {listed(fitting)} for {dtype}, got {math!r}")
    if math in FAST:
        return ""
    if kind == "f32":
        return math if math != "default" else "tf32" if allowed else "exact"
    if math == "promote" and sums == "f16":
        raise UnsupportedError("expected sums in f32 to promote, got f16")
    return "two" if math == "promote" else "f16" if sums == "f16" else ""


def element_of(dtype: str, arithmetic: str = "") -> str:
    """Return the type of elements that are multiplied; of two types, as :func:`both` names them.  Raises DtypeError.

    >>> element_of("f32", "tf32"), element_of("f32"), element_of("i8*ui8")
    ('tf32', 'f32', 'i8_ui8')
    """
    found = dtype.split("*")
    if not {*found} <= {*_ELEMENTS}:
        raise DtypeError(f"expected elements of {', '.join(_ELEMENTS)}, got {dtype}")
    element = "_".join(found)
    if element in ("f32", "f64"):
        return "tf32" if arithmetic in ("tf32", "3xtf32") else element
    if element not in FACTORS:
        raise DtypeError(f"expected b of {found[0]}, as a, got {found[-1]}")
    return element


def check_types(dtype: str, result: str, arithmetic: str = "") -> None:
    """Check that there are kernels for factors and results of these types.  Raises DtypeError."""
    taken = outputs_of(element_of(dtype, arithmetic))
    if result not in taken:
        raise DtypeError(f"expected a result of {listed(taken)} for {dtype}, got {result}")
