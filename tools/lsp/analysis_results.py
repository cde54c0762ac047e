"""Results of the workers of ``cute-lsp``, and quick fixes read from messages.

Lines and columns count from 0, columns in code points.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LONGEST_LABEL = 60
"""Maximum length of a hint, in characters."""


class Span(NamedTuple):
    """A half-open range of a text."""

    line: int
    column: int
    end_line: int
    end_column: int


class Related(NamedTuple):
    """A related location of a problem."""

    message: str
    file: str
    span: Span


class Problem(NamedTuple):
    """A diagnostic.  ``fix`` is the replacement of the marked text, if known."""

    severity: str
    message: str
    code: str
    span: Span
    related: tuple[Related, ...] = ()
    fix: str = ""
    file: str = ""
    """The path of the file if it is not the analysed text, else empty."""


class Hint(NamedTuple):
    """An inlay hint for a value, displayed after its name; ``whole`` is the hint without truncation."""

    line: int
    column: int
    label: str
    whole: str


class Place(NamedTuple):
    line: int
    column: int


class ValueInfo(NamedTuple):
    """The value of a Python name during tracing.

    ``text`` describes the value.  ``drawn`` is a type or layout to draw, or empty.  ``argument`` is True in the
    signature of a function.
    """

    name: str
    text: str
    drawn: str = ""
    argument: bool = False


class Analysis(NamedTuple):
    """The analysis of a text.

    ``types`` maps the locations of MLIR value definitions to types.  ``known`` maps the locations of Python names to
    their values.
    """

    problems: tuple[Problem, ...] = ()
    hints: tuple[Hint, ...] = ()
    types: dict[Place, str] = {}
    known: dict[Place, ValueInfo] = {}


class Picture(NamedTuple):
    """A type or layout as a drawing (SVG text) and as a text table; either may be empty."""

    svg: str = ""
    table: str = ""
    note: str = ""
    """The reason why there is no drawing, if known."""


class Entry(NamedTuple):
    """A name with a one-line description.

    ``properties`` maps the attributes of an op to descriptions.  ``signature`` is that of a Python function.
    """

    name: str
    summary: str
    properties: tuple[tuple[str, str], ...] = ()
    signature: str = ""


class Catalogue(NamedTuple):
    """All documented names: ops, types (without ``!``), attributes (without ``#``), ``cute-opt`` flags and passes
    (without dashes), and public Python names (``cute.arch.thread_idx``).
    """

    ops: dict[str, Entry] = {}
    types: dict[str, Entry] = {}
    attributes: dict[str, Entry] = {}
    flags: dict[str, Entry] = {}
    python: dict[str, Entry] = {}


_MEANT = re.compile(r"did you mean [`'](?P<name>[^`']+)[`']\s*\?")
_NAMED = re.compile(r"[`'](?P<name>[^`']+)[`']")


def fix_of(message: str, marked: str) -> str:
    """Return the replacement of the marked text that the message suggests, or an empty string.

    >>> fix_of("unregistered operation 'cute.sise'; did you mean 'cute.size'?", '"cute.sise"')
    '"cute.size"'
    >>> fix_of("the module has no 'sise'; did you mean 'size'?", "cute.sise")
    'cute.size'
    >>> fix_of("use of undeclared SSA value name '%x'", "%x")
    ''
    """
    meant = _MEANT.search(message)
    if meant is None or not marked:
        return ""
    name = meant["name"]
    if marked[0] == '"' == marked[-1] and len(marked) > 1:
        return f'"{name}"'
    if marked[0] in "!#%@" and name[0] != marked[0]:
        return marked[0] + name
    for said in _NAMED.finditer(message[: meant.start()]):
        wrong = said["name"]
        if marked == wrong:
            return name
        if marked.endswith(f".{wrong}") and not name.startswith(marked.rpartition(".")[0]):
            return f"{marked[: -len(wrong)]}{name}"
    return name if re.fullmatch(r"[\w.$!#-]+", marked) else ""
