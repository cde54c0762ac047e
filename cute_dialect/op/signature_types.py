"""Types of arguments in the signatures of operations, such as ``Array``.

They document a parameter for readers.  To a type checker each of them is ``Any``, because arrays belong to any library
and are checked at the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from cute_dialect.lang.values.signature_types import Array

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.interp import Progress, RunReport

__all__ = ["Array", "Arrays", "Epilogue", "Factor", "Interpreted", "Operand", "Sizes", "Window"]

Arrays: TypeAlias = Any
"""An array, or a sequence of arrays, one per GEMM or group."""
Factor: TypeAlias = Any
"""A number, or where the operation allows it an array of numbers."""
Epilogue: TypeAlias = Any
"""A function of the accumulator and further arguments, plain or traced."""
Operand: TypeAlias = Any
"""An array, a number, or a traced value of an epilogue."""
Sizes: TypeAlias = Any
"""An integer, or one integer per dimension."""
Window: TypeAlias = tuple[int | None, int | None] | tuple[int | None, int | None, str]
"""Numbers of visible keys before and after the key aligned with a query, None for no limit, and the alignment."""


class Interpreted(TypedDict, total=False):
    """Options of a call with ``device="cpu"``; see :class:`cute_dialect.runtime.launch.KernelCall`.

    ``checks`` is off by default.  ``report`` is called with the interpreter's report of each launch.
    """

    checks: Sequence[str] | str | None
    reports: Sequence[str]
    schedule: str
    seed: int
    max_steps: int | None
    blocks: Sequence[int] | str | None
    progress: Callable[[Progress], None] | None
    report: Callable[[RunReport], object]
