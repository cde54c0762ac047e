"""Errors of the front-end: a code, what was expected and found, the user's line, both places, the cure.

>>> e = KernelTypeError("F203", "'x' is Float32 or Float16", hint="convert one with .to(…)")
>>> str(e)
"error F203: 'x' is Float32 or Float16\\nhint: convert one with .to(…)"
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from cute_dialect.errors import CompileError, CuteError, Place

__all__ = [
    "CompileError",
    "CuteError",
    "KernelTypeError",
    "LayoutError",
    "LimitError",
    "LoopError",
    "MergeError",
    "NotCompiled",
    "Place",
    "StaticError",
    "SyntaxErrorInKernel",
    "UnboundError",
]


_ABOUT_LAYOUTS = ("F24", "F25")
"""How the codes of errors begin that name layouts."""


def _picture(message: str, hint: str) -> str:
    """Return where the layouts of an error are drawn, "" unless that is asked for."""
    if "CUTE_ERROR_SVG" not in os.environ:
        return ""
    from cute_dialect.runtime.error_pictures import error_picture

    return error_picture(f"{message}\n{hint}")


class _WithPicture(CompileError):
    """Base of the errors that can name layouts: notes the drawing's path if ``CUTE_ERROR_SVG`` is set."""

    def __init__(
        self, code: str, message: str, *, hint: str = "", notes: Sequence[tuple[str, Place | None]] = (),
        place: Place | None = None,
    ):  # fmt: skip
        super().__init__(code, message, hint=hint, notes=notes, place=place)
        if code[:3] in _ABOUT_LAYOUTS and (picture := _picture(message, hint)):
            self.notes.append((picture, None))


class NotCompiled(CompileError):
    """A kind is not in the compile cache, and the compiler is not here (F105)."""


class SyntaxErrorInKernel(CompileError):
    """A construct that a kernel cannot have (F10x, F15x)."""


class StaticError(CompileError, TypeError):
    """A number was needed while compiling, and is known only when the kernel runs (F14x)."""


class KernelTypeError(_WithPicture, TypeError):
    """Values whose types do not go together (F11x–F13x, F23x, F25x, F26x)."""


class UnboundError(CompileError, UnboundLocalError):
    """A name that is not set on every path (F210, F222)."""


class MergeError(CompileError, TypeError):
    """What two paths leave behind cannot be one value (F20x)."""


class LoopError(CompileError, TypeError):
    """A value that changes from one turn of a loop to the next in a way that one loop cannot have (F22x)."""


class LayoutError(_WithPicture, ValueError):
    """What the layout algebra refuses (F24x)."""


class LimitError(CompileError):
    """A limit was met (F17x)."""
