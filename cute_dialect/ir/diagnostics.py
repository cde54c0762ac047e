"""Diagnostics: errors, warnings, remarks and notes with a position, and how they are shown.

A diagnostic prints the way compilers print it, with the source line and a caret::

    gemm.mlir:12:8: error: 'cute.size' op mode index 5 out of range [0, 2)
      %0 = cute.size<[5]>(%l) : (!cute.layout<"(6,5):(5,1)">) -> !cute.int_tuple<"5">
           ^~~~~~~~~
    gemm.mlir:3:1: note: …

An :class:`DiagnosticEngine` receives them in the order in which they arise and hands each to one handler: the driver
prints (:class:`StreamHandler`), ``--verify-diagnostics`` compares, tests collect.  Lines and columns start at 1;
columns count Unicode code points; 0 means unknown.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Block, Operation

Severity: TypeAlias = Literal["error", "warning", "remark", "note"]

_WORD = re.compile(r'["%@!#^]?[\w.$]+"?')
"""What is marked at a position without an end: the name of an op, of a value …"""

_AROUND = 120
"""How much of a long line is shown before what is marked; after it twice as much."""

_COLORS: Mapping[str, str] = {"error": "\33[1;31m", "warning": "\33[1;35m", "remark": "\33[1;34m", "note": "\33[1;30m"}


class Position(NamedTuple):
    """A place in a source file; ``end`` is the column after the last marked character (0: mark one character)."""

    file: str
    line: int = 0
    col: int = 0
    end: int = 0

    def __str__(self) -> str:
        """``file:line:col``, or ``file`` alone when the line is unknown."""
        return f"{self.file}:{self.line}:{self.col}" if self.line else self.file


class Diagnostic(NamedTuple):
    """One message.  ``context`` marks a note that only shows where we are; tests of diagnostics need not expect it."""

    severity: Severity
    message: str
    position: Position
    notes: tuple[Diagnostic, ...] = ()
    context: bool = False


class Source:
    """A source text, and the line and column of each offset into it.

    >>> Source("f", "ab\\ncd\\n").line_col(4)
    (2, 2)
    """

    def __init__(self, name: str, text: str, line_offset: int = 0):
        """``line_offset`` is added to each line number: the text may be a piece of a larger file."""
        self.name = name
        self.text = text
        self.line_offset = line_offset
        starts = [0]
        at = text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = text.find("\n", at + 1)
        self._starts = starts

    def line_col(self, offset: int) -> tuple[int, int]:
        """Line and column (from 1) of an offset (from 0)."""
        index = bisect_right(self._starts, offset) - 1
        return index + 1 + self.line_offset, offset - self._starts[index] + 1

    def position(self, start: int, end: int | None = None) -> Position:
        """Return the position of ``text[start:end]``; what is marked stays on one line."""
        line, col = self.line_col(min(start, len(self.text)))
        return Position(self.name, line, col, 0 if end is None or end <= start else col + end - start)

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a line and column, the inverse of :meth:`line_col`; 0 of a line that is not there."""
        index = line - 1 - self.line_offset
        return self._starts[index] + column - 1 if 0 <= index < len(self._starts) else 0

    def line(self, number: int) -> str | None:
        """Return the text of a line by its number, without its end; None if there is no such line."""
        index = number - 1 - self.line_offset
        if not 0 <= index < len(self._starts):
            return None
        stop = self._starts[index + 1] - 1 if index + 1 < len(self._starts) else len(self.text)
        return self.text[self._starts[index] : stop].removesuffix("\r")


class Frame(NamedTuple):
    """A place in a source and the function that it is in, as far as the location names it."""

    position: Position
    function: str = ""


def location_frames(location: Attribute) -> tuple[Frame, ...]:
    """Return the places that a location stands for: the innermost first, then where each was called from.

    Of a fused location the first part that is known counts.  A name around a place is that of the function that it is
    in, where the place was called (``callsite("f"("x.py":3:5) at "x.py":9:1)``); else it names a value, and is dropped.

    >>> location_frames(CallSiteLoc(FileLineColLoc("x.py", 3, 5), FileLineColLoc("x.py", 9, 1)))      # doctest: +SKIP
    (Frame("x.py:3:5"), Frame("x.py:9:1"))
    """
    from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FileLineColLoc, FusedLoc, NameLoc

    if isinstance(location, FileLineColLoc):
        return (Frame(Position(location.filename.data, location.line.data, location.column.data)),)
    if isinstance(location, CallSiteLoc):
        callee = location_frames(location.callee)
        if isinstance(location.callee, NameLoc) and len(callee) == 1:
            callee = (callee[0]._replace(function=location.callee.desc.data),)
        return callee + location_frames(location.caller)
    if isinstance(location, NameLoc):
        return location_frames(location.location)
    if isinstance(location, FusedLoc) and isinstance(location.locations, ArrayAttr):
        for part in cast("ArrayAttr[Attribute]", location.locations):  # pyright: ignore[reportUnknownMemberType]
            found = location_frames(part)
            if found:
                return found
    return ()


def location_position(location: Attribute) -> Position | None:
    """Return the position that a location stands for: of a call site its callee, of a fused one the first known."""
    frames = location_frames(location)
    return frames[0].position if frames else None


def op_frames(op: Operation) -> tuple[Frame, ...]:
    """Return the places of an op in the source, as :func:`location_frames` lists them; an op made without a location
    takes those of the nearest op around it.
    """
    here: Operation | None = op
    while here is not None:
        found = location_frames(here.location)
        if found:
            return found
        here = here.parent_op()
    return ()


def op_position(op: Operation) -> Position | None:
    """Return where an op stands in the source; an op made without a location takes that of the nearest op around it."""
    frames = op_frames(op)
    return frames[0].position if frames else None


def callers(frames: Sequence[Frame]) -> list[tuple[str, Position]]:
    """Return what to say of the places from which the innermost one was reached, and where they are."""
    return [
        (f"in '{inner.function}', called from here" if inner.function else "called from here", outer.position)
        for inner, outer in pairwise(frames)
    ]


_LARGEST = 1 << 22
"""Bytes of a file that is read for a line of it."""


def source_line(file: str, number: int) -> str | None:
    """Return a line of a file or of a cell of a notebook, without its end; None where it cannot be had.

    Cells, and what else is no file, are those that :mod:`linecache` was told of.
    """
    import linecache
    import os

    if file not in linecache.cache:
        try:
            if not os.path.isfile(file) or os.path.getsize(file) > _LARGEST:
                return None
        except (OSError, ValueError):
            return None
    return linecache.getline(file, number).rstrip("\r\n") or None


def block_position(block: Block) -> Position | None:
    """Return the position of the op that holds a block."""
    parent = block.parent_op()
    return op_position(parent) if parent is not None else None


def op_summary(op: Operation, limit: int = 200) -> str:
    """Return one line of an op in generic form, its regions left out, for ``see current operation: …``.

    >>> op_summary(add)                                                             # doctest: +SKIP
    '%2 = "arith.addi"(%0, %1) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32'
    """
    from io import StringIO

    from xdsl.printer import Printer

    out = StringIO()
    printer = Printer(stream=out, print_generic_format=True)
    if op.results:
        printer.print_list(op.results, printer.print_ssa_value)
        out.write(" = ")
    out.write(f'"{op.name}"')
    printer.print_operands(op.operands)
    if op.properties:
        out.write(" <")
        printer.print_attr_dict(op.properties)
        out.write(">")
    if op.regions:
        out.write(" ({…})")
    printer.print_op_attributes(op.attributes)
    out.write(" : ")
    printer.print_function_type(op.operand_types, op.result_types)
    text = out.getvalue().replace("\n", " ")
    return text if len(text) <= limit else text[: limit - 1] + "…"


def render(diagnostic: Diagnostic, sources: Mapping[str, Source] | None = None, color: bool = False) -> str:
    """Return the text of a diagnostic and its notes, with source lines that ``sources`` has; ends with a newline."""
    position = diagnostic.position
    kind = f"{diagnostic.severity}: "
    if color:
        kind = f"{_COLORS[diagnostic.severity]}{kind}\33[0m"
    lines = [f"{position}: {kind}{diagnostic.message}"]
    source = (sources or {}).get(position.file)
    if source is not None:
        text = source.line(position.line) if position.line else None
    else:
        text = source_line(position.file, position.line) if position.line else None
    if text is not None and text.strip():
        lines += marked_line(text, position)
    out = "\n".join(lines) + "\n"
    return out + "".join(render(note, sources, color) for note in diagnostic.notes)


def marked_line(text: str, position: Position) -> list[str]:
    """Return a line of a source, or a part of a long one, and below it the mark of a position in it."""
    at = max(min(position.col - 1, len(text)), 0)
    start = at - _AROUND if at > 2 * _AROUND else 0
    text, at = text[start : at + 2 * _AROUND], at - start
    word = _WORD.match(text, at)
    end = position.end or (word.end() + 1 if word is not None else 0)
    width = max(min(end - position.col, len(text) - at), 1)
    margin = "".join(c if c == "\t" else " " for c in text[:at])
    return [text, margin + "^" + "~" * (width - 1)]


Handler: TypeAlias = Callable[[Diagnostic], None]


class DiagnosticEngine:
    """Receives diagnostics, counts errors, hands each to its handler (by default it keeps them in :attr:`seen`)."""

    def __init__(self, handler: Handler | None = None, file: str = "-"):
        self.file = file
        """The file that a diagnostic without a position of its own is about."""
        self.seen: list[Diagnostic] = []
        self.errors = 0
        self._handler = handler

    def emit(self, diagnostic: Diagnostic) -> None:
        """Take one diagnostic."""
        self.errors += diagnostic.severity == "error"
        self.seen.append(diagnostic)
        if self._handler is not None:
            self._handler(diagnostic)

    def report(
        self,
        severity: Severity,
        message: str,
        at: Operation | Position | None = None,
        notes: Iterable[Diagnostic] = (),
    ) -> None:
        """Make a diagnostic at an op or a position, and take it; an op that was inlined has notes of the calls."""
        frames = op_frames(at) if at is not None and not isinstance(at, Position) else ()
        calls = [Diagnostic("note", text, where, (), True) for text, where in callers(frames)]
        position = frames[0].position if frames else self.position(at if isinstance(at, Position) else None)
        self.emit(Diagnostic(severity, message, position, (*calls, *notes)))

    def error(self, message: str, at: Operation | Position | None = None, notes: Iterable[Diagnostic] = ()) -> None:
        """Report an error."""
        self.report("error", message, at, notes)

    def warning(self, message: str, at: Operation | Position | None = None, notes: Iterable[Diagnostic] = ()) -> None:
        """Report a warning."""
        self.report("warning", message, at, notes)

    def remark(self, message: str, at: Operation | Position | None = None, notes: Iterable[Diagnostic] = ()) -> None:
        """Report a remark."""
        self.report("remark", message, at, notes)

    def note(self, message: str, at: Operation | Position | None = None, *, context: bool = False) -> Diagnostic:
        """Make a note (to be attached to a diagnostic); nothing is reported."""
        return Diagnostic("note", message, self.position(at), (), context)

    def position(self, at: Operation | Position | None) -> Position:
        """Return the position of what a message is about."""
        if isinstance(at, Position):
            return at
        return (op_position(at) if at is not None else None) or Position(self.file)


class StreamHandler:
    """A handler that prints each diagnostic to a stream as it comes."""

    def __init__(self, stream: IO[str], sources: Mapping[str, Source], color: bool = False):
        self._stream = stream
        self._sources = sources
        self._color = color

    def __call__(self, diagnostic: Diagnostic) -> None:
        """Print one; with ``CUTE_ERROR_SVG``, the layouts that an error names are drawn and their file is noted."""
        if diagnostic.severity == "error" and "CUTE_ERROR_SVG" in os.environ:
            from cute_dialect.runtime.error_pictures import error_picture

            if picture := error_picture(diagnostic.message):
                note = Diagnostic("note", picture, diagnostic.position)
                diagnostic = diagnostic._replace(notes=(*diagnostic.notes, note))
        self._stream.write(render(diagnostic, self._sources, self._color))
        self._stream.flush()


def limit_message(error: BaseException) -> str | None:
    """Say which limit of this machine an input has met, if that is what an exception means; None if it is a bug.

    >>> limit_message(RecursionError("maximum recursion depth exceeded"))
    'the IR is nested too deeply'
    """
    if isinstance(error, RecursionError):
        return "the IR is nested too deeply"
    if isinstance(error, MemoryError):
        return "the IR needs more memory than there is"
    if isinstance(error, ValueError) and "integer string conversion" in str(error):
        return "the IR holds an integer of too many digits"
    if isinstance(error, OverflowError) and "index-sized integer" in str(error):
        return "the IR asks for more elements than memory has"
    return None


def nearest(word: str, known: Iterable[str], count: int = 1) -> list[str]:
    """Return the known words most like ``word``, best first; empty if none is close.

    >>> nearest("cute-expand-op", ["cute-expand-ops", "cse"])
    ['cute-expand-ops']
    """
    from difflib import get_close_matches

    candidates: Sequence[str] = list(known)
    return get_close_matches(word, candidates, count, 0.6)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"``, or nothing when no known word is close."""
    found = nearest(word, known)
    return f"; did you mean '{found[0]}'?" if found else ""
