"""Compute types and result types of elementwise functions.

The rules for two tensors are torch's.  8-bit floats are added: combined with a 16-bit or 32-bit type, the result has
that type.

>>> result_element("f", ["i64", "f16"]), result_element("f", ["i32"]), result_element("b", ["f16"])
('f16', 'f32', 'i1')
"""

from __future__ import annotations

from collections.abc import Sequence

from cute_dialect.op.arrays.dtypes import element_name


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
    """Return the type of a result.  Results of kind "b" (booleans) have ``i1``, others depend on the arrays' types."""
    if kind == "b":
        return "i1"
    compute = compute_type(elements, None)
    if compute in ("i32", "i64"):
        return compute if kind == "i" else "f32"
    floats = [e for e in elements if e not in ("i1", "i32", "i64")]
    return "f64" if compute == "f64" else _result_of(floats)


def _result_of(elements: Sequence[str]) -> str:
    """Return the type of results of floats or of 8-bit integers.

    >>> _result_of(["f16", "f16"]), _result_of(["bf16", "i8"]), _result_of(["f16", "bf16"])
    ('f16', 'bf16', 'f32')
    """
    kinds = set(elements)
    if len(kinds) > 1:
        kinds -= {"i8", "ui8", "f8E4M3FN", "f8E5M2"}
    return kinds.pop() if len(kinds) == 1 else "f32"
