"""Analyses of a text in the workers of ``cute-lsp``: diagnostics, types, and values of traced functions.

MLIR gets the diagnostics of ``cute-opt``.  If the text does not parse, the invalid op is removed and the remaining text
is parsed again, to report several errors.

Python gets the diagnostics of ``cute-check`` and the values of names in traced functions.  A Python trace function runs
after each line of the text.  When a name is first bound to a new value, the value is recorded at the location of the
binding.  Inspecting a value must not emit ops, so only the text of a layout is read.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from types import FrameType, ModuleType
from typing import Any, NamedTuple, cast

from xdsl.dialects.builtin import FileLineColLoc, ModuleOp

from cute_dialect.ir.context import make_context
from cute_dialect.ir.diagnostics import Diagnostic, DiagnosticEngine, Position, Source
from cute_dialect.ir.parsing import parse_module
from cute_dialect.ir.verifier import verify
from cute_dialect.lang.values.dtypes import Numeric
from cute_dialect.tools.check_mlir import check_source
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
from cute_dialect.tools.lsp.mlir_text import MlirText, Op
from cute_dialect.viz.dispatch import layouts_in

# ----------------------------------------------------------------------------------------------------------------- MLIR


_MARKED = re.compile(r'["%@!#^]?[\w.$]+"?')
_UNDECLARED = re.compile(r"use of undeclared SSA value name '(%[^']+)'")
_SEPARATOR = re.compile(r"^// -----[ \t\r]*$", re.MULTILINE)
_MOST_ERRORS = 20
_SECONDS = 3.0
"""Time limit in seconds for finding further errors."""


def analyse_mlir(file: str, text: str, pipeline: str = "base") -> Analysis:
    """Return the diagnostics of a text, as from ``cute-opt --pipeline=…``, and the types of its values.

    A line ``// -----`` splits the text into separate modules.

    Args:
        pipeline: the pipeline to run if the text parses and verifies; "none" to run no passes.
    """
    problems: list[Problem] = []
    hints: list[Hint] = []
    types: dict[Place, str] = {}
    begin = 0
    for end in [*(m.start() for m in _SEPARATOR.finditer(text)), len(text)]:
        piece = Source(file, text[begin:end], text.count("\n", 0, begin))
        found, modules = _errors(piece)
        if modules:
            _types(modules[0], piece, types, hints)
        if not found and pipeline != "none":
            found = _deeper(piece, pipeline)
        problems += [problem_of(d, piece) for d in found]
        begin = text.find("\n", end) + 1 if end < len(text) else end
        if not begin and end < len(text):
            break
    return Analysis(tuple(problems), tuple(hints), types)


def _errors(source: Source) -> tuple[list[Diagnostic], list[ModuleOp]]:
    """Return the parse and verification errors, and the module if the text parses."""
    found: list[Diagnostic] = []
    text, names, gone = source.text, MlirText(source.text), set[str]()
    since = perf_counter()
    while True:
        engine = DiagnosticEngine(None, source.name)
        module = parse_module(
            make_context(allow_unregistered=False), Source(source.name, text, source.line_offset), engine
        )
        if module is not None:
            if not found:
                verify(module, engine)
            return found + engine.seen, [module]
        for d in engine.seen:
            undeclared = _UNDECLARED.match(d.message)
            if undeclared is None or undeclared[1] not in gone:
                found.append(d)
        at = engine.seen[0].position
        wrong = _statement(names, source.offset(at.line, at.col), text) if at.line else None
        if wrong is None or len(found) >= _MOST_ERRORS or perf_counter() - since > _SECONDS:
            return found, []
        gone.update(wrong.results)
        hole = "".join(c if c == "\n" else " " for c in text[wrong.start : wrong.end])
        text = text[: wrong.start] + hole + text[wrong.end :]


def _statement(names: MlirText, offset: int, text: str) -> Op | None:
    """Return the innermost remaining op that contains an offset, or else the last one before it."""
    inner = [op for op in names.ops if op.start <= offset <= op.end and text[op.at : op.end].strip()]
    if inner:
        return inner[-1]
    before = [op for op in names.ops if op.end <= offset and text[op.at : op.end].strip()]
    return max(before, key=lambda op: op.end) if before else None


def _deeper(source: Source, pipeline: str) -> list[Diagnostic]:
    """Return the diagnostics of the passes for a valid text."""
    padded = Source(source.name, "\n" * source.line_offset + source.text) if source.line_offset else source
    return check_source(padded, pipeline)


def _types(module: ModuleOp, source: Source, types: dict[Place, str], hints: list[Hint]) -> None:
    """Record the types of all values of a module, and hints for types that the text omits."""
    names = MlirText(source.text)
    by_name_of_op = {source.line_col(op.at): op for op in names.ops}
    for op in module.walk():
        for region in op.regions:
            for block in region.blocks:
                for argument in block.args:
                    if isinstance(argument.location, FileLineColLoc):
                        line, column = argument.location.line.data, argument.location.column.data
                        types[Place(line - 1, column - 1)] = str(argument.type)
        if not op.results or not isinstance(op.location, FileLineColLoc):
            continue
        written = by_name_of_op.get((op.location.line.data, op.location.column.data))
        if written is None:
            continue
        said = source.text[written.start : written.end]
        shown = [str(result.type) for result in op.results]
        defined = [n for n in names.between(written.start, written.at) if n.definition]
        for i, name in enumerate(defined):
            mine = shown if len(defined) == 1 else shown[i : i + 1]
            line, column = source.line_col(name.start)
            whole = ", ".join(mine)
            types[Place(line - 1, column - 1)] = whole
            if any(t.startswith("!cute") and not _is_written(t, said) for t in mine):
                label = whole if len(whole) <= LONGEST_LABEL else whole[: LONGEST_LABEL - 1] + "…"
                hints.append(Hint(line - 1, column - 1 + name.end - name.start, f": {label}", whole))


def _is_written(type_text: str, statement: str) -> bool:
    _, arrow, results = statement.rpartition("->")
    quoted = re.search(r'"[^"]*"', type_text)
    where = results if arrow else statement
    return type_text in where or (quoted is not None and quoted[0] in where)


def problem_of(d: Diagnostic, source: Source) -> Problem:
    """Convert a compiler diagnostic to a problem that marks the range underlined by ``cute-opt``."""
    span = _span(d.position, source)
    line = source.line(d.position.line) or ""
    marked = line[span.column : span.end_column]
    related = tuple(
        Related(n.message, n.position.file, _span(n.position, source))
        for n in d.notes
        if n.position.line and not n.context
    )
    notes = [n.message for n in d.notes if not n.position.line]
    return Problem(d.severity, "\n".join([d.message, *notes]), "mlir", span, related, fix_of(d.message, marked))


def _span(p: Position, source: Source) -> Span:
    """Return the span of a position; without an end it is a word, without a line the start of the text."""
    if not p.line or p.file != source.name:
        at = max(p.line - 1, 0)
        return Span(at, max(p.col - 1, 0), at, max(p.col, 1))
    text = source.line(p.line) or ""
    start = min(max(p.col - 1, 0), len(text))
    word = _MARKED.match(text, start)
    end = p.end - 1 if p.end else word.end() if word is not None else start + 1
    return Span(p.line - 1, start, p.line - 1, max(min(end, len(text)), start))


# ------------------------------------------------------------------------------------------- values of traced functions


_LONGEST = 2000
"""Maximum length of the text of a value."""

_DEEPEST = 3
_SHOWN = 16
"""Maximum number of tuple elements in the text."""


class Binding(NamedTuple):
    """The location of a binding; ``argument`` is True for function parameters."""

    place: Place
    argument: bool = False


def bindings(text: str) -> dict[int, dict[str, Binding]]:
    """Map each line, from 1, to the bindings of the statement or signature that contains it.

    >>> [(name, b.place.line, b.argument) for name, b in bindings("def f(a,\\n  b):\\n  c = a")[2].items()]
    [('a', 0, True), ('b', 1, True)]
    """
    lines = text.splitlines()
    found: dict[int, dict[str, Binding]] = {}
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return found
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        body = cast("Sequence[ast.stmt]", getattr(node, "body", ()))
        end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
        bound: dict[str, Binding] = {}
        for part in _header(node):
            if isinstance(part, ast.arg):
                bound.setdefault(part.arg, Binding(_place(part, lines), True))
            elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                bound.setdefault(part.id, Binding(_place(part, lines)))
        for line in range(node.lineno, max(end, node.lineno) + 1):
            found.setdefault(line, {}).update(bound)
    return found


def _header(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a statement without nested statements."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.stmt | ast.Lambda):
            yield child
            yield from _header(child)


def _place(node: ast.arg | ast.Name, lines: Sequence[str]) -> Place:
    """Return the location of a node, whose column counts UTF-8 bytes."""
    column = node.col_offset
    line = lines[node.lineno - 1]
    return Place(
        node.lineno - 1, len(line.encode()[:column].decode(errors="replace")) if not line.isascii() else column
    )


@contextmanager
def watched(file: str, text: str) -> Generator[dict[Place, ValueInfo]]:
    """Context manager that records the values of names in frames of a file, by location."""
    places = bindings(text)
    found: dict[Place, ValueInfo] = {}
    seen: dict[FrameType, tuple[int, dict[str, object]]] = {}

    def note(frame: FrameType) -> None:
        line, before = seen.get(frame, (frame.f_code.co_firstlineno, {}))
        now: dict[str, object] = dict(frame.f_locals)
        here = places.get(line, {})
        for name, (at, argument) in here.items():
            if at in found or name not in now or (name in before and before[name] is now[name]):
                continue
            known = described(name, now[name])
            if known is not None:
                found[at] = known._replace(argument=argument)
        seen[frame] = (frame.f_lineno, now)

    def step(frame: FrameType, event: str, argument: object) -> Any:
        if event in ("line", "return"):
            note(frame)
        if event == "return":
            seen.pop(frame, None)
        return step

    def entered(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename != file:
            return None
        note(frame)
        return step

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        yield found
    finally:
        sys.settrace(before)


def described(name: str, value: object, depth: int = _DEEPEST) -> ValueInfo | None:
    """Describe a value; None for modules, functions, classes and objects of unknown types.

    ``depth`` limits the nesting of tuples.

    >>> described("n", (3, True))
    ValueInfo(name='n', text='(3, True)', drawn='', argument=False)
    """
    if value is None or isinstance(value, bool | int | float | str):
        return ValueInfo(name, repr(value)[:_LONGEST])
    if isinstance(value, tuple | list):
        items = cast("Sequence[object]", value)
        parts = [described("", v, depth - 1) if depth else None for v in items[:_SHOWN]]
        more = ", …" if len(items) > _SHOWN else ""
        return ValueInfo(name, f"({', '.join(p.text if p is not None else '…' for p in parts)}{more})"[:_LONGEST])
    kind = type(value)
    if isinstance(value, ModuleType | type) or not kind.__module__.startswith("cute_dialect."):
        return None
    decorated = kind.__module__ in ("cute_dialect.lang.calls.decorators", "cute_dialect.lang.calls.traced")
    if kind.__repr__ is object.__repr__ or decorated:
        return None
    try:
        text = repr(value)
        drawn = "" if isinstance(value, Numeric) else text if text.startswith("!") else next(iter(layouts_in(text)), "")
    except Exception:  # An exception here would propagate into the user's function.
        return None
    says_its_kind = text.startswith("!") or text.lower().startswith(kind.__name__.lower())
    shown = text if says_its_kind or isinstance(value, Numeric) else f"{kind.__name__} {text}"
    return ValueInfo(name, shown[:_LONGEST], drawn)


# --------------------------------------------------------------------------------------------------------------- Python


_PYTHON_WORD = re.compile(r"[\w.]+")


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
    span = _finding_span(f, [] if elsewhere else lines)
    marked = lines[span.line][span.column : span.end_column] if not elsewhere and span.line < len(lines) else ""
    message = f"{f.message}\nhint: {f.hint}" if f.hint else f.message
    related = tuple(
        Related(r.message, r.file, Span(r.line - 1, max(r.col - 1, 0), r.line - 1, max(r.col, 1)))
        for r in f.related
        if r.line
    )
    fix = fix_of(message, marked) if span.line == span.end_line else ""
    return Problem(f.severity, message, f.code, span, related, fix, elsewhere)


def _finding_span(f: Finding, lines: list[str]) -> Span:
    """Return the span of a finding: a word without an end, a line without a column, the text start without a line."""
    line = min(max(f.line - 1, 0), max(len(lines) - 1, 0)) if lines else max(f.line - 1, 0)
    here = lines[line] if line < len(lines) else ""
    if f.line and f.end_line:
        return Span(line, max(f.col - 1, 0), f.end_line - 1, max(f.end_col - 1, 0))
    column = max(f.col - 1, 0) if f.col else len(here) - len(here.lstrip())
    word = _PYTHON_WORD.match(here, column)
    end = len(here) if not f.col else word.end() if word is not None else column + 1
    return Span(line, column, line, max(end, column + 1))
