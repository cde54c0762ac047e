"""The base classes of the errors that users of this package see, and positions in their source.

``CuteError`` is the root: ``CompileError``, ``LaunchError``, ``InterpError``, ``OpError`` and ``CudaError`` derive from
it, as does every error of a setting, an array or a layout.

>>> e = CompileError("F203", "'x' is Float32 or Float16", hint="convert one with .to(…)")
>>> str(e)
"error F203: 'x' is Float32 or Float16\\nhint: convert one with .to(…)"
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from cute_dialect.type_text import language_terms

__all__ = ["CompileError", "CuteError", "OpError", "Place", "UsageError"]


_SHOWN = 6
"""Number of calls shown at each end of a long call chain."""


def no_such(what: str, number: int, count: int | None) -> str:
    """Return the text of an error for a number that is not less than a count; None for an unknown count.

    >>> no_such("rank", 2, 2), no_such("slot", 7, 1)
    ('there is no rank 2; ranks are 0 to 1', 'there is no slot 7; the only slot is 0')
    >>> no_such("slot", -1, None)
    'there is no slot -1; slots start at 0'
    """
    known = f"the only {what} is 0" if count == 1 else f"{what}s are 0 to {(count or 0) - 1}"
    return f"there is no {what} {number}; {f'{what}s start at 0' if count is None else known}"


class Place(NamedTuple):
    """A range of a user's source file. Lines and columns count from 1; 0 means unknown."""

    file: str
    line: int
    col: int
    end_line: int = 0
    end_col: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}"

    def encloses(self, other: Place) -> bool:
        """Return True if ``other`` lies within this range."""
        return self.file == other.file and (self.line, self.col) <= (other.line, other.col) and (
            (other.end_line, other.end_col) <= (self.end_line, self.end_col)
        )  # fmt: skip

    def text(self) -> str:
        """Return the source text of the range; only the first line if there are several."""
        import linecache

        line = linecache.getline(self.file, self.line).rstrip("\n")
        if self.end_line in (0, self.line):
            return line[self.col - 1 : self.end_col - 1] if self.end_col > self.col > 0 else line.strip()
        return line[max(self.col - 1, 0) :] + " …"

    def picture(self) -> str:
        """Return the source line with carets under the range, or "" if the file cannot be read."""
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
    """Base class of every error that this package raises for a mistake in a user's program."""

    shown_lines: frozenset[tuple[str, int]] = frozenset()
    """Files and lines that a traceback above the message shows. The message does not repeat them."""

    def repeats(self, place: Place | None) -> bool:
        """Return True if the traceback above the message shows the line of ``place``."""
        return place is not None and (place.file, place.line) in self.shown_lines


class UsageError(CuteError, ValueError, TypeError):
    """An argument of a function or class of the language has an invalid value or type."""


def _is_compiling() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()


class OpError(CuteError, ValueError):
    """Base class of the errors of ``cute_dialect.op``, raised before anything is compiled or written."""

    hides_frames: Callable[[Any], bool] | None = None
    """Decides whether pytest hides the package's frames for an error that it caught. ``tracebacks.install`` sets it."""

    def __init__(self, *_: object) -> None:
        # Exception.__new__ has stored the arguments.  torch.compile cannot trace super().__init__ here.
        if OpError.hides_frames is not None and "pytest" in sys.modules and not _is_compiling():
            # Shortening tracebacks with a wrapper would slow every call of `op`, so pytest hides the frames instead.
            import inspect

            frame = inspect.currentframe()
            while frame is not None:
                if str(frame.f_globals.get("__name__")).startswith("cute_dialect."):
                    frame.f_globals.setdefault("__tracebackhide__", OpError.hides_frames)
                frame = frame.f_back


class CompileError(CuteError):
    """A function or a module cannot be compiled.

    Attributes:
        code: the error code, such as ``"F209"``; the language reference lists the groups of codes.
        message: the error in one sentence, with types as the kernel language prints them.
        hint: the cure, or "".
        notes: further positions, each with a text.
        place: the position in the user's source; None until the tracer has found it.
        calls: the calls that led to ``place``, innermost first.
        original: Python's own error that this one reports, or None.
    """

    def __init__(
        self, code: str, message: str, *, hint: str = "", notes: Sequence[tuple[str, Place | None]] = (),
        place: Place | None = None,
    ):  # fmt: skip
        # Call Exception.__init__ directly: a subclass may also derive from TypeError or UnboundLocalError.
        message = language_terms(message)
        Exception.__init__(self, code, message)
        self.code = code
        self.message = message
        self.hint = language_terms(hint)
        self.notes = list(notes)
        self.place = place
        self.calls: list[Place] = []
        self.original: BaseException | None = None
        self.is_located = False
        self.stated: Place | None = None
        """The position given to the constructor, or None. ``lang.tracing.tracer.locate`` sets it."""

    def __str__(self) -> str:
        head = f"{self.place}: " if self.place is not None else ""
        # A traceback names the class, and shows the line with carets.
        message = self.message.removeprefix(f"{type(self).__name__}: ") if self.shown_lines else self.message
        lines = [f"{head}error {self.code}: {message}"]
        if self.place is not None and not self.repeats(self.place) and (picture := self.place.picture()):
            lines.append(picture)
        for text, place in self.notes:
            lines.append(f"{place}: note: {text}" if place is not None else f"note: {text}")
            if place is not None and (picture := place.picture()):
                lines.append(picture)
        if self.hint:
            lines.append(f"hint: {self.hint}")
        calls = [f"called from {place}  {place.text()}".rstrip() for place in self.calls if not self.repeats(place)]
        if len(calls) > 2 * _SHOWN:
            calls[_SHOWN:-_SHOWN] = [f"… {len(calls) - 2 * _SHOWN} more calls"]
        lines += calls
        return "\n".join(lines)
