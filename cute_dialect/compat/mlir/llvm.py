"""The builders of the ``llvm`` dialect that programs for CuTe DSL call.

``inline_asm`` is implemented with :func:`cute_dialect.lang.arch.inline_ptx`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.compat.mlir.packs import Pack, bits_as, element, number_type, with_element
from cute_dialect.lang.tracing.errors import KernelTypeError

__all__ = [
    "AsmDialect",
    "StructType",
    "bitcast",
    "extractelement",
    "extractvalue",
    "inline_asm",
    "insertelement",
    "insertvalue",
    "mlir_undef",
]


class AsmDialect(Enum):
    """The assembly syntax; ignored, because the text is always PTX."""

    AD_ATT = 0
    AD_Intel = 1


class StructType:
    """Structure types."""

    @staticmethod
    def get_literal(body: Sequence[Any], **_: Any) -> tuple[Any, ...]:
        """Return the type of a structure of numbers.

        >>> StructType.get_literal([cute.Float32, cute.Int32])
        (Float32, Int32)
        """
        return number_type(tuple(body))


_REGISTERS = {"h": cute.Int16, "r": cute.Int32, "l": cute.Int64}
"""Types of integer registers by constraint letter."""


def inline_asm(
    res: Any, operands_: Any, asm_string: str, constraints: str, *, has_side_effects: bool = False, **_: Any
) -> Any:
    """Emit inline PTX.

    The results are ``$0`` and following, and the operands follow them. A tuple of types as ``res`` gives that many
    results, as a :class:`~cute_dialect.compat.mlir.packs.Pack`. Numbers narrower than 16 bits (Boolean, Int8) are zero-
    or sign-extended to the register of the constraint, and results are truncated.

    Args:
        res: the type of the result; None if there is none.
        constraints: one per result and operand (``"=r,r,r"``). Clobbers (``~{…}``) are ignored.

    Raises:
        KernelTypeError: F251, if the constraints do not match the results and operands.
    """
    said = [c.strip() for c in constraints.split(",") if c.strip() and not c.strip().startswith("~")]
    results = sum(c.startswith("=") for c in said)
    operands = list(operands_)
    res = number_type(res)
    several = isinstance(res, tuple)
    kinds = list(res) if several else [] if res is None else [res]
    if results != len(kinds) or len(said) - results != len(operands):
        raise KernelTypeError(
            "F251", f"inline_asm: the constraints {constraints!r} do not match {len(kinds)} results and "
            f"{len(operands)} operands",
        )  # fmt: skip
    letters = [c.lstrip("=+&")[:1] for c in said]
    held = [_held(kind, letter) for kind, letter in zip(kinds, letters)]
    operands = [_in_register(x, letter) for x, letter in zip(operands, letters[results:])]
    made = cute.arch.inline_ptx(
        asm_string, *operands, result=tuple(held) if several else held[0] if held else None,
        side_effects=has_side_effects,
    )  # fmt: skip
    if not several:
        return _out_of_register(kinds[0], made) if kinds else None
    return Pack(_out_of_register(kind, x) for kind, x in zip(kinds, made))


def _held(kind: Any, letter: str) -> Any:
    """Return the type of the register that holds a result of type ``kind``."""
    return _REGISTERS.get(letter, cute.Int32) if getattr(kind, "width", 32) < 16 else kind


def _in_register(x: Any, letter: str) -> Any:
    narrow = isinstance(x, cute.Numeric | bool) and getattr(type(x), "width", 1) < 16
    return _REGISTERS.get(letter, cute.Int32)(x) if narrow else x


def _out_of_register(kind: Any, x: Any) -> Any:
    if getattr(kind, "width", 32) >= 16:
        return x
    return (x & 1) != 0 if kind is cute.Boolean else kind(x)


def extractvalue(res: Any, container: Any, position: Any, **_: Any) -> Any:
    """Return the element of a structure at a static index."""
    return element(container, position)


def insertvalue(container: Any, value: Any, position: Any, **_: Any) -> Pack:
    """Return a copy of a structure with the element at a static index replaced."""
    return with_element(container, position, value)


def extractelement(vector: Any, position: Any, **_: Any) -> Any:
    """Return the element of a vector at a static index."""
    return element(vector, position)


def insertelement(vector: Any, value: Any, position: Any, **_: Any) -> Pack:
    """Return a copy of a vector with the element at a static index replaced."""
    return with_element(vector, position, value)


def mlir_undef(res: Any, **_: Any) -> Any:
    """Return an undefined number or pack of a type; its values are zeros."""
    res = number_type(res)
    return Pack(kind(0) for kind in res) if isinstance(res, tuple) else res(0)


def bitcast(res: Any, arg: Any, **_: Any) -> Any:
    """Reinterpret the bits of a number or vector as another type."""
    return bits_as(res, arg)
