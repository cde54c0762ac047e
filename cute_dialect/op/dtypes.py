"""Types of elements: torch's names and those of the kernels; which are multiplied, and what comes out of it."""

from __future__ import annotations

from cute_dialect.kernels.gemm.elements import FACTORS
from cute_dialect.op.errors import DtypeError

__all__ = ["OUTPUTS", "both", "can_mix", "element_of", "output_of", "result_of"]

OUTPUTS = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2",
    "int8": "i8", "uint8": "ui8", "int32": "i32",
}  # fmt: skip
"""Types of results and biases, by torch's names."""

_ELEMENTS = {name: {"f32": "tf32"}.get(element, element) for name, element in OUTPUTS.items() if element != "i32"}

_MIXED = [{"int8", "uint8"}, {"float8_e4m3fn", "float8_e5m2"}]
"""Types that are multiplied with each other."""


def _name(dtype: object) -> str:
    return str(dtype).removeprefix("torch.")


def can_mix(a: object, b: object) -> bool:
    """Tell whether elements of two types are multiplied with each other.

    >>> can_mix("float16", "float16"), can_mix("torch.int8", "torch.uint8"), can_mix("float16", "bfloat16")
    (True, True, False)
    """
    return a == b or {_name(a), _name(b)} in _MIXED


def both(a: object, b: object) -> str:
    """Return the name of the types of two factors.

    >>> both("torch.int8", "torch.int8"), both("torch.int8", "torch.uint8")
    ('int8', 'int8*uint8')
    """
    x, y = _name(a), _name(b)
    return x if x == y else f"{x}*{y}"


def result_of(dtype: object) -> str:
    """Return the type of a product for which none was asked, of factors of a type.

    >>> result_of("torch.uint8"), result_of("float8_e5m2"), result_of("float16")
    ('int32', 'bfloat16', 'float16')
    """
    name = _name(dtype)
    return {"int8": "int32", "uint8": "int32", "float8_e4m3fn": "bfloat16", "float8_e5m2": "bfloat16"}.get(name, name)


def output_of(dtype: str) -> str:
    """Return the type of a result, or a bias.  Raises DtypeError."""
    found = OUTPUTS.get(_name(dtype))
    if found is None:
        raise DtypeError(f"expected a result and a bias of {', '.join(OUTPUTS)}, got {dtype}")
    return found


def element_of(dtype: str) -> str:
    """Return the type of elements that are multiplied; of two types, as :func:`both` names them.  Raises DtypeError.

    >>> element_of("torch.float32"), element_of("int8*uint8")
    ('tf32', 'i8_ui8')
    """
    found = [_ELEMENTS.get(name, "") for name in _name(dtype).split("*")]
    if "" in found:
        raise DtypeError(f"expected elements of {', '.join(_ELEMENTS)}, got {dtype}")
    element = "_".join(found)
    if element not in FACTORS:
        raise DtypeError(f"expected b of {found[0]}, as a, got {found[-1]}")
    return element
