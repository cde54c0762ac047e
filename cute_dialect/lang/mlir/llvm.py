"""``llvm`` as kernels for CuTe DSL call it: ``inline_asm``, by :func:`cute_dialect.lang.arch.inline_ptx`, and what
takes its results apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.front.errors import KernelTypeError
from cute_dialect.lang.mlir.packs import Pack, bits_as, element, with_element

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
        return tuple(body)


def inline_asm(
    res: Any, operands_: Any, asm_string: str, constraints: str, *, has_side_effects: bool = False, **_: Any
) -> Any:
    """Emit PTX: ``$0`` is the result where ``res`` is its type (None for none), then come the operands.

    A structure of types gives as many results, as a :class:`~cute_dialect.lang.mlir.packs.Pack`.  ``constraints`` say
    how many there are (``"=r,r,r"``); their types are those of the values.  Raises F251 where they do not agree.
    """
    said = [c.strip() for c in constraints.split(",") if c.strip() and not c.strip().startswith("~")]
    results = sum(c.startswith("=") for c in said)
    operands = list(operands_)
    several = isinstance(res, tuple)
    wanted = len(res) if several else int(res is not None)
    if results != wanted or len(said) - results != len(operands):
        raise KernelTypeError(
            "F251", f"inline_asm: the constraints {constraints!r} do not fit {wanted} results and "
            f"{len(operands)} operands",
        )  # fmt: skip
    made = cute.arch.inline_ptx(asm_string, *operands, result=res, side_effects=has_side_effects)
    return Pack(made) if several else made


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
    return Pack(kind(0) for kind in res) if isinstance(res, tuple) else res(0)


def bitcast(res: Any, arg: Any, **_: Any) -> Any:
    """Return the bits of a number or vector as those of another type."""
    return bits_as(res, arg)
