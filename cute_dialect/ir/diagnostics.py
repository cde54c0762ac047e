"""Diagnostics: errors, warnings, remarks and notes with a source position, and their rendering.

A diagnostic is rendered in the usual format of compilers, with the source line and a caret::

    gemm.mlir:12:8: error: 'cute.size' op mode index 5 out of range [0, 2)
      %0 = cute.size<[5]>(%l) : (!cute.layout<"(6,5):(5,1)">) -> !cute.int_tuple<"5">
           ^~~~~~~~~
    gemm.mlir:3:1: note: …

A :class:`DiagnosticEngine` passes diagnostics in order of occurrence to one handler.  The driver prints them
(:class:`StreamHandler`), ``--verify-diagnostics`` compares them with expectations, and tests collect them.  Lines and
columns start at 1, and 0 means unknown.  Columns count Unicode code points.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast

from cute_dialect.runtime.settings import SettingError, folder

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Block, Operation

Severity: TypeAlias = Literal["error", "warning", "remark", "note"]

_WORD = re.compile(r'["%@!#^]?[\w.$]+"?')
"""Text that is underlined at a position without an end: the name of an op, of a value …"""

_AROUND = 120
"""Number of characters of a long line shown before the position; twice as many follow it."""

_COLORS: Mapping[str, str] = {"error": "\33[1;31m", "warning": "\33[1;35m", "remark": "\33[1;34m", "note": "\33[1;30m"}


class Position(NamedTuple):
    """A position in a source file.  ``end`` is the column after the last underlined character, or 0 for one
    character.
    """

    file: str
    line: int = 0
    col: int = 0
    end: int = 0

    def __str__(self) -> str:
        """Return ``file:line:col``, or ``file`` if the line is unknown."""
        return f"{self.file}:{self.line}:{self.col}" if self.line else self.file


class Diagnostic(NamedTuple):
    """A message.  ``context`` marks notes that only give context, which tests of diagnostics need not expect."""

    severity: Severity
    message: str
    position: Position
    notes: tuple[Diagnostic, ...] = ()
    context: bool = False


class Source:
    """A source text with a map from offsets to lines and columns.

    >>> Source("f", "ab\\ncd\\n").line_col(4)
    (2, 2)
    """

    def __init__(self, name: str, text: str, line_offset: int = 0):
        """``line_offset`` is added to line numbers if the text is a piece of a larger file."""
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
        """Return line and column (from 1) of an offset (from 0)."""
        index = bisect_right(self._starts, offset) - 1
        return index + 1 + self.line_offset, offset - self._starts[index] + 1

    def position(self, start: int, end: int | None = None) -> Position:
        """Return the position of ``text[start:end]``; only its first line is underlined."""
        line, col = self.line_col(min(start, len(self.text)))
        return Position(self.name, line, col, 0 if end is None or end <= start else col + end - start)

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a line and column, or 0 if there is no such line: the inverse of :meth:`line_col`."""
        index = line - 1 - self.line_offset
        return self._starts[index] + column - 1 if 0 <= index < len(self._starts) else 0

    def line(self, number: int) -> str | None:
        """Return a line by its number, without its line break, or None if there is no such line."""
        index = number - 1 - self.line_offset
        if not 0 <= index < len(self._starts):
            return None
        stop = self._starts[index + 1] - 1 if index + 1 < len(self._starts) else len(self.text)
        return self.text[self._starts[index] : stop].removesuffix("\r")


class Frame(NamedTuple):
    """A position and the name of the function that contains it, if the location has one."""

    position: Position
    function: str = ""


def location_frames(location: Attribute) -> tuple[Frame, ...]:
    """Return the frames of a location: the innermost first, then its callers.

    For a fused location, the first known part is used.  A named callee
    (``callsite("f"("x.py":3:5) at "x.py":9:1)``) gives the name of the function.  Any other name belongs to a value and
    is dropped.

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
    """Return the position of a location: the callee of a call site, the first known part of a fused location."""
    frames = location_frames(location)
    return frames[0].position if frames else None


def op_frames(op: Operation) -> tuple[Frame, ...]:
    """Return the frames of an op's location; see :func:`location_frames`.

    An op without a location has those of the nearest enclosing op with one.
    """
    here: Operation | None = op
    while here is not None:
        found = location_frames(here.location)
        if found:
            return found
        here = here.parent_op()
    return ()


def op_position(op: Operation) -> Position | None:
    """Return the position of an op, or that of the nearest enclosing op with one."""
    frames = op_frames(op)
    return frames[0].position if frames else None


def callers(frames: Sequence[Frame]) -> list[tuple[str, Position]]:
    """Return the text and position of the "called from here" notes of the frames."""
    return [
        (f"in '{inner.function}', called from here" if inner.function else "called from here", outer.position)
        for inner, outer in pairwise(frames)
    ]


_LARGEST = 1 << 22
"""Largest file, in bytes, that is read to show a line of it."""


def source_line(file: str, number: int) -> str | None:
    """Return a line of a file or notebook cell without its line break, or None if it is not available.

    Cells and other sources that are not files are read from the cache of :mod:`linecache`.
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
    """Return the position of the op that contains a block."""
    parent = block.parent_op()
    return op_position(parent) if parent is not None else None


def op_summary(op: Operation, limit: int = 200) -> str:
    """Return an op in generic form on one line without its regions, for ``see current operation: …``.

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
    """Return the text of a diagnostic and its notes, with source lines from ``sources`` or files.  Ends with a
    newline.
    """
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
    """Return a source line, or a part of a long one, and the line that underlines a position in it."""
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
    """Counts errors and passes diagnostics to a handler.  All diagnostics are also kept in :attr:`seen`."""

    def __init__(self, handler: Handler | None = None, file: str = "-"):
        self.file = file
        """File of diagnostics that have no position."""
        self.seen: list[Diagnostic] = []
        self.errors = 0
        self._handler = handler

    def emit(self, diagnostic: Diagnostic) -> None:
        """Record a diagnostic and pass it to the handler."""
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
        """Report a diagnostic at an op or position.  An inlined op gets notes with its call sites."""
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
        """Return a note, to be attached to a diagnostic, without reporting it."""
        return Diagnostic("note", message, self.position(at), (), context)

    def position(self, at: Operation | Position | None) -> Position:
        """Return the position at which a diagnostic is shown."""
        if isinstance(at, Position):
            return at
        return (op_position(at) if at is not None else None) or Position(self.file)


class StreamHandler:
    """A handler that prints each diagnostic to a stream."""

    def __init__(self, stream: IO[str], sources: Mapping[str, Source], color: bool = False):
        self._stream = stream
        self._sources = sources
        self._color = color

    def __call__(self, diagnostic: Diagnostic) -> None:
        """Print a diagnostic.  With ``CUTE_ERROR_SVG`` draw the layouts in an error and add a note with the file."""
        if diagnostic.severity == "error" and (picture := error_picture(diagnostic.message)):
            note = Diagnostic("note", picture, diagnostic.position)
            diagnostic = diagnostic._replace(notes=(*diagnostic.notes, note))
        self._stream.write(render(diagnostic, self._sources, self._color))
        self._stream.flush()


def limit_message(error: BaseException) -> str | None:
    """Return the message for an exception caused by a resource limit of this machine, or None for any other exception.

    >>> limit_message(RecursionError("maximum recursion depth exceeded"))
    'the IR is nested too deeply'
    """
    if isinstance(error, RecursionError):
        return "the IR is nested too deeply"
    if isinstance(error, MemoryError):
        return "the IR needs more memory than is available"
    if isinstance(error, ValueError) and "integer string conversion" in str(error):
        return "the IR contains an integer with too many digits"
    if isinstance(error, OverflowError) and "index-sized integer" in str(error):
        return "the IR has more elements than fit in memory"
    return None


def nearest(word: str, known: Iterable[str], count: int = 1) -> list[str]:
    """Return the known words most similar to ``word``, best first, or an empty list if none is similar.

    >>> nearest("cute-expand-op", ["cute-expand-ops", "cse"])
    ['cute-expand-ops']
    """
    from difflib import get_close_matches

    candidates: Sequence[str] = list(known)
    return get_close_matches(word, candidates, count, 0.6)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"``, or an empty string if no known word is similar."""
    found = nearest(word, known)
    return f"; did you mean '{found[0]}'?" if found else ""


def error_picture(message: str) -> str:
    """Draw the layouts named in a message and return a note with the path of the file.

    Return "" if drawings are off or the message names no layout.  A failure to draw is returned as text, so that it
    does not hide the original error.
    """
    try:
        into = folder("CUTE_ERROR_SVG")
        if into is None:
            return ""
        from cute_dialect.viz.dispatch import draw_message  # late: start-up

        os.makedirs(into, exist_ok=True)
        path = draw_message(message, into)
    except SettingError as e:
        return str(e)
    except OSError as e:
        return f"CUTE_ERROR_SVG: {e.strerror}: '{e.filename}'"
    return f"drawn in {path}" if path else ""
