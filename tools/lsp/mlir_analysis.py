"""Analysis of MLIR text: the diagnostics of ``cute-opt`` and the types of values.

If the text does not parse, the invalid op is removed and the remaining text is parsed again, to report several errors.
Errors that only result from a removed op, whose results are undefined, are not reported.
"""

from __future__ import annotations

import re
from time import perf_counter

from xdsl.dialects.builtin import FileLineColLoc, ModuleOp

from cute_dialect.ir.context import make_context
from cute_dialect.ir.diagnostics import Diagnostic, DiagnosticEngine, Position, Source
from cute_dialect.ir.parsing import parse_module
from cute_dialect.ir.verifier import verify
from cute_dialect.tools.check_mlir import check_source
from cute_dialect.tools.lsp.analysis_results import LONGEST_LABEL, Analysis, Hint, Place, Problem, Related, Span, fix_of
from cute_dialect.tools.lsp.mlir_text import MlirText, Op

__all__ = ["analyse_mlir"]

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
