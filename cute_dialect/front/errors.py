"""Errors of the front-end: a code, what was expected and found, the user's line, both places, the cure.

>>> e = KernelTypeError("F203", "'x' is Float32 or Float16", hint="convert one with .to(…)")
>>> str(e)
"error F203: 'x' is Float32 or Float16\\nhint: convert one with .to(…)"
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

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


_SHOWN = 6
"""The calls that are shown of many, next to the error and next to the user's call."""


_ABOUT_LAYOUTS = ("F24", "F25")
"""How the codes of errors begin that name layouts."""


def _picture(message: str, hint: str) -> str:
    """Return where the layouts of an error are drawn, "" unless that is asked for."""
    if "CUTE_ERROR_SVG" not in os.environ:
        return ""
    from cute_dialect.runtime.error_pictures import error_picture

    return error_picture(f"{message}\n{hint}")


class Place(NamedTuple):
    """A range of a user's source: file, lines and columns, both counted from 1 (0: unknown)."""

    file: str
    line: int
    col: int
    end_line: int = 0
    end_col: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}"

    def encloses(self, other: Place) -> bool:
        """Tell whether another place is a part of this one."""
        return self.file == other.file and (self.line, self.col) <= (other.line, other.col) and (
            (other.end_line, other.end_col) <= (self.end_line, self.end_col)
        )  # fmt: skip

    def text(self) -> str:
        """Return what stands there, of its first line only."""
        import linecache

        line = linecache.getline(self.file, self.line).rstrip("\n")
        if self.end_line in (0, self.line):
            return line[self.col - 1 : self.end_col - 1] if self.end_col > self.col > 0 else line.strip()
        return line[max(self.col - 1, 0) :] + " …"

    def picture(self) -> str:
        """Return the source line with a caret range under it, or nothing where the line cannot be read."""
        import linecache

        text = linecache.getline(self.file, self.line).rstrip("\n")
        if not text or not self.line:
            return ""
        end = self.end_col if self.end_line in (0, self.line) and self.end_col > self.col else self.col + 1
        if self.end_line > self.line:
            end = len(text) + 1
        gutter = f"{self.line:5} | "
        before = "".join("\t" if c == "\t" else " " for c in text[: self.col - 1])
        return f"{gutter}{text}\n{' ' * (len(gutter) - 2)}| {before}{'^' * max(1, end - self.col)}"


class CuteError(Exception):
    """What every error of the language is.

    ``code``: its class in the documentation.  ``place``: the user's line, None until it is known.  ``notes``: further
    places with a text each.  ``hint``: what would cure it.  ``calls``: the calls that led there, innermost first.
    """

    def __init__(
        self, code: str, message: str, *, hint: str = "", notes: Sequence[tuple[str, Place | None]] = (),
        place: Place | None = None,
    ):  # fmt: skip
        Exception.__init__(self, code, message)  # not that of a class it is derived from beside this one
        self.code = code
        self.message = message
        self.hint = hint
        self.notes = list(notes)
        self.place = place
        if code[:3] in _ABOUT_LAYOUTS and (picture := _picture(message, hint)):
            self.notes.append((picture, None))
        self.calls: list[Place] = []
        self.is_located = False
        self.stated: Place | None = None
        """The place that it was made with, once the frames that led to it have been looked at."""

    def __str__(self) -> str:
        head = f"{self.place}: " if self.place is not None else ""
        lines = [f"{head}error {self.code}: {self.message}"]
        if self.place is not None and (picture := self.place.picture()):
            lines.append(picture)
        for text, place in self.notes:
            lines.append(f"{place}: note: {text}" if place is not None else f"note: {text}")
            if place is not None and (picture := place.picture()):
                lines.append(picture)
        if self.hint:
            lines.append(f"hint: {self.hint}")
        calls = [f"called from {place}  {place.text()}".rstrip() for place in self.calls]
        if len(calls) > 2 * _SHOWN:
            calls[_SHOWN:-_SHOWN] = [f"… {len(calls) - 2 * _SHOWN} more calls"]
        lines += calls
        return "\n".join(lines)


class CompileError(CuteError):
    """A function cannot be compiled."""


class NotCompiled(CompileError):
    """A kind is not in the compile cache, and the compiler is not here (F105)."""


class SyntaxErrorInKernel(CompileError):
    """A construct that a kernel cannot have (F10x, F15x)."""


class StaticError(CompileError, TypeError):
    """A number was needed while compiling, and is known only when the kernel runs (F14x)."""


class KernelTypeError(CompileError, TypeError):
    """Values whose types do not go together (F11x–F13x, F23x, F25x, F26x)."""


class UnboundError(CompileError, UnboundLocalError):
    """A name that is not set on every path (F210, F222)."""


class MergeError(CompileError, TypeError):
    """What two paths leave behind cannot be one value (F20x)."""


class LoopError(CompileError, TypeError):
    """A value that changes from one turn of a loop to the next in a way that one loop cannot have (F22x)."""


class LayoutError(CompileError, ValueError):
    """What the layout algebra refuses (F24x)."""


class LimitError(CompileError):
    """A limit was met (F17x)."""
