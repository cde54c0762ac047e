"""Errors of the kernel language.

Each error has a code, a message with the value found, the position in the user's source, and a hint with the cure.

>>> e = KernelTypeError("F203", "'x' is Float32 or Float16", hint="convert one with .to(…)")
>>> str(e)
"error F203: 'x' is Float32 or Float16\\nhint: convert one with .to(…)"
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from cute_dialect.errors import CompileError, Place

_ABOUT_LAYOUTS = ("F24", "F25")
"""Prefixes of the codes whose messages name layouts."""


def _picture(message: str, hint: str) -> str:
    """Return the path of a drawing of the layouts in the message, or "" if ``CUTE_ERROR_SVG`` is not set."""
    if "CUTE_ERROR_SVG" not in os.environ:
        return ""
    from cute_dialect.ir.diagnostics import error_picture  # late: start-up

    return error_picture(f"{message}\n{hint}")


class _WithPicture(CompileError):
    """Base class of errors whose messages name layouts. It adds the path of a drawing if ``CUTE_ERROR_SVG`` is set."""

    def __init__(
        self, code: str, message: str, *, hint: str = "", notes: Sequence[tuple[str, Place | None]] = (),
        place: Place | None = None,
    ):  # fmt: skip
        super().__init__(code, message, hint=hint, notes=notes, place=place)
        if code[:3] in _ABOUT_LAYOUTS and (picture := _picture(message, hint)):
            self.notes.append((picture, None))


class NotCompiled(CompileError):
    """F105: the specialization is not in the compile cache and the compiler is not installed."""


class SyntaxErrorInKernel(CompileError):
    """F10x, F15x: a Python construct that kernels do not support."""


class StaticError(CompileError, TypeError):
    """F14x: a value that must be known at compile time is known only at run time."""


class KernelTypeError(_WithPicture, TypeError):
    """F11x–F13x, F23x, F25x, F26x: operands or arguments of incompatible types."""


class UnboundError(CompileError, UnboundLocalError):
    """F210, F222: a name that is not assigned on every path."""


class MergeError(CompileError, TypeError):
    """F20x: the two sides of a branch leave values that cannot be merged."""


class LoopError(CompileError, TypeError):
    """F22x: a variable whose type or structure changes between iterations of a loop."""


class LayoutError(_WithPicture, ValueError):
    """F24x: an operation that the layout algebra does not define."""


class LimitError(CompileError):
    """F17x: a limit of the compiler was exceeded."""
