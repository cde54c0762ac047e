"""Views of documents: text, names, and conversion of positions."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate

from lsprotocol import types
from pygls.workspace import TextDocument

from cute_dialect.tools.lsp.analysis_results import Place, Span
from cute_dialect.tools.lsp.mlir_text import MlirText

__all__ = ["View"]


class View:
    """The current text of a document.  Offsets and columns count code points; the client may use another unit."""

    def __init__(self, document: TextDocument):
        self.text = document.source
        self.uri = document.uri
        self.lines = tuple(self.text.splitlines(keepends=True)) or ("",)
        self._codec = document.position_codec
        self._starts = [0, *accumulate(map(len, self.lines))]

    @cached_property
    def names(self) -> MlirText:
        """The names in an MLIR text."""
        return MlirText(self.text)

    def offset(self, position: types.Position) -> int:
        """Return the offset of a client position; a position outside the text is clamped."""
        if position.line >= len(self.lines):
            return len(self.text)
        column = self._codec.position_from_client_units(self.lines, position).character
        return min(self._starts[position.line] + min(column, self.length(position.line)), len(self.text))

    def length(self, line: int) -> int:
        """Return the length of a line without its line ending."""
        return len(self.lines[line].rstrip("\r\n"))

    def place(self, offset: int) -> Place:
        """Return the line and column of an offset."""
        line = min(max(bisect_right(self._starts, offset) - 1, 0), len(self.lines) - 1)
        return Place(line, offset - self._starts[line])

    def line_before(self, offset: int) -> str:
        """Return the part of a line before the offset."""
        return self.text[self._starts[self.place(offset).line] : offset]

    def line_at(self, offset: int) -> str:
        """Return the line that contains an offset."""
        return self.lines[self.place(offset).line].rstrip("\r\n")

    def position(self, place: Place) -> types.Position:
        """Convert a location to client units."""
        return self._codec.position_to_client_units(self.lines, types.Position(place.line, place.column))

    def range(self, start: int, end: int) -> types.Range:
        """Convert a range of offsets to client units."""
        return types.Range(self.position(self.place(start)), self.position(self.place(end)))

    def span(self, span: Span) -> types.Range:
        """Convert a span to client units."""
        end = max(span.end_column, span.column) if span.line == span.end_line else span.end_column
        return types.Range(
            self.position(Place(span.line, span.column)), self.position(Place(max(span.end_line, span.line), end))
        )

    def word(self, offset: int, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Return the match of a pattern that contains the offset or ends at it, within its line."""
        column = self.place(offset).column
        found = (m for m in pattern.finditer(self.line_at(offset)) if m.start() <= column <= m.end())
        return max(found, key=lambda m: m.start(), default=None)
