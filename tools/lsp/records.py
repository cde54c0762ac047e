"""What a worker finds out about a text.  Lines and columns count from 0, columns in code points."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Analysis", "Hint", "Place", "Problem", "Related", "Span"]


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


class Analysis(NamedTuple):
    """All about one text.  ``types``: of values, by the place of the name that defines them."""

    problems: tuple[Problem, ...] = ()
    hints: tuple[Hint, ...] = ()
    types: dict[Place, str] = {}
