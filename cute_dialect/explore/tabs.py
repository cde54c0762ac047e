"""Contents of the page's tabs: tables with rows linked to lines, drawings and texts; and marks next to lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

__all__ = ["Cell", "Column", "Mark", "Part", "Picture", "Row", "Tab", "Table", "Words", "code", "number", "words"]

Cell: TypeAlias = "str | int"


class Column(NamedTuple):
    """A column of a table: its header, and its kind, which is "words", "number" or "code"."""

    head: str
    kind: str


def words(head: str) -> Column:
    """Return a column of plain text."""
    return Column(head, "words")


def number(head: str) -> Column:
    """Return a column of numbers."""
    return Column(head, "number")


def code(head: str) -> Column:
    """Return a column of source text."""
    return Column(head, "code")


class Row(NamedTuple):
    """A row: its cells, the groups that a click highlights, and the source line that it shows (from 0; -1 for none).

    ``bad`` marks the rows that the table is meant to find, such as bank conflicts.
    """

    cells: Sequence[Cell]
    groups: Sequence[int] = ()
    line: int = -1
    bad: bool = False


class Table(NamedTuple):
    columns: Sequence[Column]
    rows: Sequence[Row]


class Picture(NamedTuple):
    """A drawing, as an HTML element."""

    html: str


class Words(NamedTuple):
    """Preformatted text, as in a terminal."""

    text: str


Part: TypeAlias = "Table | Picture | Words"


@dataclass
class Tab:
    """A tab.

    ``says`` is introductory text. ``count`` is the number of problems, shown next to the title.
    """

    key: str
    title: str
    says: str = ""
    parts: list[Part] = field(default_factory=list[Part])
    count: int = 0


class Mark(NamedTuple):
    """A mark next to the lines of some groups: a short label, and a sentence shown on hover."""

    groups: Sequence[int]
    short: str
    text: str
