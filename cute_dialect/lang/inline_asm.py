"""``llvm.inline_asm`` as kernels for CuTe DSL write it, by :func:`cute_dialect.lang.arch.inline_ptx`."""

from __future__ import annotations

from enum import Enum
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.front.errors import KernelTypeError

__all__ = ["AsmDialect", "inline_asm"]


class AsmDialect(Enum):
    """The syntax of the text, which is PTX anyway."""

    AD_ATT = 0
    AD_Intel = 1


def inline_asm(
    res: Any, operands_: Any, asm_string: str, constraints: str, *, has_side_effects: bool = False, **_: Any
) -> Any:
    """Emit PTX: ``$0`` is the result where ``res`` is its type (None for none), then come the operands.

    ``constraints`` say how many there are (``"=r,r,r"``); their types are those of the values.  Raises F251 where they
    do not agree.
    """
    said = [c.strip() for c in constraints.split(",") if c.strip() and not c.strip().startswith("~")]
    results = sum(c.startswith("=") for c in said)
    operands = list(operands_)
    if results != (res is not None) or len(said) - results != len(operands):
        raise KernelTypeError(
            "F251", f"inline_asm: the constraints {constraints!r} do not fit {int(res is not None)} results and "
            f"{len(operands)} operands",
        )  # fmt: skip
    return cute.arch.inline_ptx(asm_string, *operands, result=res, side_effects=has_side_effects)
