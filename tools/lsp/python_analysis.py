"""Analysis of Python text: the diagnostics of ``cute-check`` and the values of names in traced functions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from cute_dialect.tools.check_python import Unchecked, check_python
from cute_dialect.tools.check_report import Finding
from cute_dialect.tools.lsp.analysis_results import (
    LONGEST_LABEL,
    Analysis,
    Hint,
    Place,
    Problem,
    Related,
    Span,
    ValueInfo,
    fix_of,
)
from cute_dialect.tools.lsp.traced_values import watched

__all__ = ["analyse_python"]

_WORD = re.compile(r"[\w.]+")


def analyse_python(file: str, text: str, chip: str | None) -> Analysis:
    """Return the diagnostics of a text, as from ``cute-check``, and the values of names in traced functions."""
    with watched(os.path.abspath(file), text) as known:
        found, count, unchecked = check_python(file, chip, True, False, text)
    lines = text.splitlines()
    problems = [_problem(f, file, lines) for f in found]
    if not count:
        problems += [_not_traced(u, lines) for u in unchecked]
    return Analysis(tuple(problems), tuple(_hints(known)), {}, known)


def _hints(known: dict[Place, ValueInfo]) -> Iterator[Hint]:
    """Yield inlay hints for names that statements bind to values with layouts."""
    for at, one in sorted(known.items()):
        if one.drawn and not one.argument:
            label = one.text if len(one.text) <= LONGEST_LABEL else one.text[: LONGEST_LABEL - 1] + "…"
            yield Hint(at.line, at.column + len(one.name), f": {label}", one.text)


def _not_traced(u: Unchecked, lines: list[str]) -> Problem:
    """Return a note on a function that was not traced."""
    at = next((n for n in range(u.line - 1, len(lines)) if re.search(rf"def\s+{u.name}\b", lines[n])), u.line - 1)
    column = max(lines[at].find(u.name), 0) if at < len(lines) else 0
    message = f"not traced: no example and incomplete annotations. Add an example such as:\n{u.advice}"
    return Problem("note", message, "no-example", Span(at, column, at, column + len(u.name)))


def _problem(f: Finding, file: str, lines: list[str]) -> Problem:
    elsewhere = f.file if os.path.abspath(f.file) != os.path.abspath(file) else ""
    span = _span(f, [] if elsewhere else lines)
    marked = lines[span.line][span.column : span.end_column] if not elsewhere and span.line < len(lines) else ""
    message = f"{f.message}\nhint: {f.hint}" if f.hint else f.message
    related = tuple(
        Related(r.message, r.file, Span(r.line - 1, max(r.col - 1, 0), r.line - 1, max(r.col, 1)))
        for r in f.related
        if r.line
    )
    fix = fix_of(message, marked) if span.line == span.end_line else ""
    return Problem(f.severity, message, f.code, span, related, fix, elsewhere)


def _span(f: Finding, lines: list[str]) -> Span:
    """Return the span of a finding: a word without an end, a line without a column, the text start without a line."""
    line = min(max(f.line - 1, 0), max(len(lines) - 1, 0)) if lines else max(f.line - 1, 0)
    here = lines[line] if line < len(lines) else ""
    if f.line and f.end_line:
        return Span(line, max(f.col - 1, 0), f.end_line - 1, max(f.end_col - 1, 0))
    column = max(f.col - 1, 0) if f.col else len(here) - len(here.lstrip())
    word = _WORD.match(here, column)
    end = len(here) if not f.col else word.end() if word is not None else column + 1
    return Span(line, column, line, max(end, column + 1))
