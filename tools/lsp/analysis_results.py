"""What a worker finds out about a text.  Lines and columns count from 0, columns in code points."""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "LONGEST_LABEL",
    "Analysis",
    "Catalogue",
    "Entry",
    "Hint",
    "Known",
    "Picture",
    "Place",
    "Problem",
    "Related",
    "Span",
]

LONGEST_LABEL = 60
"""Characters of a hint."""


class Span(NamedTuple):
    """A piece of a text, up to and without its end."""

    line: int
    column: int
    end_line: int
    end_column: int


class Related(NamedTuple):
    """Another place that a problem speaks of."""

    message: str
    file: str
    span: Span


class Problem(NamedTuple):
    """A diagnostic.  ``fix``: what the marked text should be, where that is known."""

    severity: str
    message: str
    code: str
    span: Span
    related: tuple[Related, ...] = ()
    fix: str = ""
    file: str = ""
    """Another file that it is in; empty for the text itself."""


class Hint(NamedTuple):
    """What a value is, to be shown behind its name; ``whole``: the same at full length."""

    line: int
    column: int
    label: str
    whole: str


class Place(NamedTuple):
    """A line and a column."""

    line: int
    column: int


class Known(NamedTuple):
    """What a name of Python was bound to: ``text`` says it; ``drawn``: what of it can be drawn, a type or a layout.

    ``argument``: whether the place is in the signature of a function.
    """

    name: str
    text: str
    drawn: str = ""
    argument: bool = False


class Analysis(NamedTuple):
    """All about one text.

    ``types``: of values of MLIR, by the place of the name that defines them; ``known``: what names of Python were
    bound to, by their place.
    """

    problems: tuple[Problem, ...] = ()
    hints: tuple[Hint, ...] = ()
    types: dict[Place, str] = {}
    known: dict[Place, Known] = {}


class Picture(NamedTuple):
    """A type or a layout as a drawing (the text of an SVG file) and as a table in text; empty where there is none."""

    svg: str = ""
    table: str = ""
    note: str = ""
    """Why there is no drawing, where that can be said."""


class Entry(NamedTuple):
    """What can be named, and what it is in a line.

    ``properties``: of an op, the names of its attributes and what they are; ``signature``: of a function of Python.
    """

    name: str
    summary: str
    properties: tuple[tuple[str, str], ...] = ()
    signature: str = ""


class Catalogue(NamedTuple):
    """All that can be named, by its name: ops, types (without ``!``), attributes (without ``#``), flags of
    ``cute-opt`` (without dashes; passes among them), and public names of Python (``cute.arch.thread_idx``).
    """

    ops: dict[str, Entry] = {}
    types: dict[str, Entry] = {}
    attributes: dict[str, Entry] = {}
    flags: dict[str, Entry] = {}
    python: dict[str, Entry] = {}
