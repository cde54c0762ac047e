"""``llvm`` as kernels for CuTe DSL call it: ``inline_asm``, by :func:`cute_dialect.lang.arch.inline_ptx`, and what
takes its results apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.front.errors import KernelTypeError
from cute_dialect.lang.mlir.packs import Pack, bits_as, element, number_type, with_element

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
    """The syntax of the text, which is PTX anyway."""

    AD_ATT = 0
    AD_Intel = 1


class StructType:
    """Types of structures."""

    @staticmethod
    def get_literal(body: Sequence[Any], **_: Any) -> tuple[Any, ...]:
        """Return the type of a structure of numbers.

        >>> StructType.get_literal([cute.Float32, cute.Int32])
        (Float32, Int32)
        """
        return number_type(tuple(body))


_REGISTERS = {"h": cute.Int16, "r": cute.Int32, "l": cute.Int64}
"""Constraint letters of integer registers -> their types."""


def inline_asm(
    res: Any, operands_: Any, asm_string: str, constraints: str, *, has_side_effects: bool = False, **_: Any
) -> Any:
    """Emit PTX.  ``$0`` is the result where ``res`` is its type (None for none); the operands follow.

    A structure of types gives as many results, as a :class:`~cute_dialect.lang.mlir.packs.Pack`.  Numbers narrower than
    16 bits (Boolean, Int8) are zero- or sign-extended to the register that the constraint names, and truncated back.

    Args:
        constraints: one per result and operand (``"=r,r,r"``); clobbers (``~{…}``) are ignored.

    Raises:
        KernelTypeError: F251, where the constraints do not fit the results and operands.
    """
    said = [c.strip() for c in constraints.split(",") if c.strip() and not c.strip().startswith("~")]
    results = sum(c.startswith("=") for c in said)
    operands = list(operands_)
    res = number_type(res)
    several = isinstance(res, tuple)
    kinds = list(res) if several else [] if res is None else [res]
    if results != len(kinds) or len(said) - results != len(operands):
        raise KernelTypeError(
            "F251", f"inline_asm: the constraints {constraints!r} do not fit {len(kinds)} results and "
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
    """Return the type of the register that a result of a type is in."""
    return _REGISTERS.get(letter, cute.Int32) if getattr(kind, "width", 32) < 16 else kind


def _in_register(x: Any, letter: str) -> Any:
    narrow = isinstance(x, cute.Numeric | bool) and getattr(type(x), "width", 1) < 16
    return _REGISTERS.get(letter, cute.Int32)(x) if narrow else x


def _out_of_register(kind: Any, x: Any) -> Any:
    if getattr(kind, "width", 32) >= 16:
        return x
    return (x & 1) != 0 if kind is cute.Boolean else kind(x)


def extractvalue(res: Any, container: Any, position: Any, **_: Any) -> Any:
    """Return a number of a structure, at a static place."""
    return element(container, position)


def insertvalue(container: Any, value: Any, position: Any, **_: Any) -> Pack:
    """Return a structure with another number at a static place."""
    return with_element(container, position, value)


def extractelement(vector: Any, position: Any, **_: Any) -> Any:
    """Return a number of a vector, at a static place."""
    return element(vector, position)


def insertelement(vector: Any, value: Any, position: Any, **_: Any) -> Pack:
    """Return a vector with another number at a static place."""
    return with_element(vector, position, value)


def mlir_undef(res: Any, **_: Any) -> Any:
    """Return a number or a pack of a type whose values nobody reads: zeros."""
    res = number_type(res)
    return Pack(kind(0) for kind in res) if isinstance(res, tuple) else res(0)


def bitcast(res: Any, arg: Any, **_: Any) -> Any:
    """Return the bits of a number or vector as those of another type."""
    return bits_as(res, arg)
