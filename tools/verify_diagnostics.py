"""Comparison of reported diagnostics with ``expected-*`` comments (``--verify-diagnostics``).

    // expected-error@below {{expects mode index in [0, 2)}}
    %0 = cute.size<[5]>(%l) : …

The syntax is that of upstream MLIR.  A comment ends its line and has the form

    expected-error|warning|remark|note [-re] [@+N | @-N | @above | @below | @unknown] [count] {{text}}

``@above`` and ``@below`` refer to the nearest line without such a comment, ``@unknown`` to a diagnostic without a line.
The message must contain the text; with ``-re``, parts of the text in ``{{…}}`` are regular expressions.  A count
(``expected-error 2 {{…}}``) is exact; without a count, at least one diagnostic must match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from cute_dialect.ir.diagnostics import Diagnostic, Position, Severity

_EXPECTED = re.compile(
    r"expected-(error|note|remark|warning)(-re)? *(?:@([+-]\d+|above|below|unknown))? *(\d+)? *\{\{(.*)\}\}$"
)
_LOOKS_LIKE = re.compile(r"//.*\bexpected-(error|note|remark|warning)\b")


class Expectation:
    """An ``expected-*`` comment.  ``line`` is 0 for a diagnostic without a line."""

    def __init__(self, severity: Severity, text: str, is_regex: bool, line: int, count: int | None, at: Position):
        self.severity = severity
        self.text = text
        self.line = line
        self.count = count
        self.at = at
        self.matched = 0
        self._pattern = _compile(text) if is_regex else None

    def matches(self, message: str) -> bool:
        """Return True if the message matches the text."""
        return self._pattern.search(message) is not None if self._pattern else self.text in message


def _compile(text: str) -> re.Pattern[str]:
    """Compile the pattern of an ``-re`` text.  Raises ValueError.

    >>> bool(_compile("type {{.*}} here").search("a type i32 here"))
    True
    """
    out: list[str] = []
    rest = text
    while rest:
        literal, opened, rest = rest.partition("{{")
        out.append(re.escape(literal))
        if opened:
            inner, closed, rest = rest.partition("}}")
            if not closed:
                raise ValueError("expected '}}' to close the regular expression")
            try:
                re.compile(inner)
            except re.error as e:
                raise ValueError(f"invalid regular expression '{inner}': {e}") from None
            out.append(f"(?:{inner})")
    return re.compile("".join(out))


def expectations(text: str, file: str, line_offset: int = 0) -> tuple[list[Expectation], list[Diagnostic]]:
    """Return the expectations in the comments of a text, and errors for malformed comments."""
    found: list[Expectation] = []
    errors: list[Diagnostic] = []
    waiting: list[Expectation] = []
    last_plain = 0
    for number, line in enumerate(text.split("\n"), 1 + line_offset):
        line = line.rstrip()
        m = _EXPECTED.search(line)
        if m is None:
            if _LOOKS_LIKE.search(line):
                at = line.index("expected-") + 1
                errors.append(Diagnostic("error", "malformed expected-* comment", Position(file, number, at)))
            for expectation in waiting:
                expectation.line = number
            waiting.clear()
            last_plain = number
            continue
        severity: Severity = m.group(1)  # pyright: ignore[reportAssignmentType]
        at = Position(file, number, m.start() + 1, m.end() + 1)
        where = m.group(3) or ""
        target = number
        if where == "unknown":
            target = 0
        elif where == "above":
            target = last_plain
        elif where and where != "below":
            target = number + int(where)
        count = int(m.group(4)) if m.group(4) else None
        try:
            expectation = Expectation(severity, m.group(5), m.group(2) is not None, target, count, at)
        except ValueError as e:
            errors.append(Diagnostic("error", str(e), at))
            continue
        found.append(expectation)
        if where == "below":
            waiting.append(expectation)
    for expectation in waiting:
        errors.append(Diagnostic("error", "no line follows this comment", expectation.at))
    return found, errors


def _flatten(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    for diagnostic in diagnostics:
        if not diagnostic.context:
            yield diagnostic
            yield from _flatten(diagnostic.notes)


def compare(text: str, file: str, seen: Iterable[Diagnostic], line_offset: int = 0) -> list[Diagnostic]:
    """Return errors for the differences between the comments in ``text`` and the diagnostics ``seen``.

    Notes that only give context (``see current operation``) are optional.
    """
    expected, problems = expectations(text, file, line_offset)
    for diagnostic in _flatten(seen):
        position = diagnostic.position
        line = position.line if position.file == file else 0
        candidates = [e for e in expected if e.line == line and e.matches(diagnostic.message)]
        same = [e for e in candidates if e.severity == diagnostic.severity]
        open_ = [e for e in same if not e.matched or (e.count is not None and e.matched < e.count)]
        chosen = next(iter(open_ or [e for e in same if e.count is None]), None)
        if chosen is not None:
            chosen.matched += 1
            continue
        message = f"unexpected {diagnostic.severity}: {diagnostic.message}"
        if candidates and not same:
            message = f"'{diagnostic.severity}' diagnostic emitted when expecting a '{candidates[0].severity}'"
        problems.append(Diagnostic("error", message, position))
    for e in expected:
        missing = (e.count if e.count is not None else 1) - e.matched
        if missing > 0:
            times = f" ({e.matched} of {e.count} times)" if e.count is not None and e.matched else ""
            problems.append(Diagnostic("error", f'expected {e.severity} "{e.text}" was not produced{times}', e.at))
    return problems
