"""What a tab of the page holds: tables whose rows belong to lines, drawings, texts; and the marks beside lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

__all__ = ["Cell", "Column", "Mark", "Part", "Picture", "Row", "Tab", "Table", "Words", "code", "number", "words"]

Cell: TypeAlias = "str | int"


class Column(NamedTuple):
    """A column of a table: its head, and whether it holds "words", a "number" or "code"."""

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
    """A row: its cells, the groups that a click lights up, the line of the source that it shows (from 0; -1: none).

    ``bad``: whether it is what one looks for here, such as a bank conflict.
    """

    cells: Sequence[Cell]
    groups: Sequence[int] = ()
    line: int = -1
    bad: bool = False


class Table(NamedTuple):
    """A table."""

    columns: Sequence[Column]
    rows: Sequence[Row]


class Picture(NamedTuple):
    """A drawing, as an HTML element."""

    html: str


class Words(NamedTuple):
    """Text in lines, as a terminal shows it."""

    text: str


Part: TypeAlias = "Table | Picture | Words"


@dataclass
class Tab:
    """A tab: what it says above its parts.  ``count``: how many bad things it tells of, beside its title."""

    key: str
    title: str
    says: str = ""
    parts: list[Part] = field(default_factory=list[Part])
    count: int = 0


class Mark(NamedTuple):
    """What stands beside the lines of some groups: a few letters, and a sentence where one points at them."""

    groups: Sequence[int]
    short: str
    text: str
