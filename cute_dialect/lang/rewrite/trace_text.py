"""Text of a trace that reads like its source: comments above the ops, and aliases for long types.

Each op belongs to the user's statement that emitted it, and to the enclosing statements of its callers.  A comment at
the end of a statement's line is placed above the statement's first op.  A comment above a statement is placed above the
first op of its paragraph, which ends at the next blank line.  The docstring of a kernel or host function is placed
above the function.  The type of ``%gA`` becomes ``!gA``.
"""

from __future__ import annotations

import ast
import inspect
import io
import linecache
import re
import tokenize
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.lang.rewrite.source import parsed

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation, SSAValue

# ------------------------------------------------------------------------------------------------------------- comments


_FOR_TOOLS = re.compile(r"(^|\s*#\s*)(noqa|type:|pyright:|pylint:|mypy:|fmt:|ruff:|isort:|pragma:).*")
_HOISTED = (
    "arith.constant", "cute.static", "cute.atom", "cute.make_tiled_copy", "cute.make_tiled_mma", "cute.get_layout",
    "cute.get_iter", "cute.get_scalars",
)  # fmt: skip
"""Ops placed near their operands, possibly far above the other ops of their statement."""


class Comment(NamedTuple):
    """A comment: the number of its last line, and its lines."""

    line: int
    text: tuple[str, ...]


def comments_of(module: Operation, *, host: bool = True) -> dict[Operation, list[str]]:
    """Return the comment lines to print above ops of a trace. Each comment appears once per function.

    ``host`` is False for a generated host function, which has no source.
    """
    sources: dict[str, _Source] = {}
    found: dict[Operation, list[str]] = {}
    for function in module.walk():
        if function.name == "gpu.func" or (host and function.name == "func.func"):
            _of_function(function, sources, found)
    return found


def _of_function(function: Operation, sources: dict[str, _Source], found: dict[Operation, list[str]]) -> None:
    said: dict[tuple[str, Comment], Operation] = {}
    documented = False
    end = function.regions[0].blocks[0].last_op  # The terminator belongs to the launch.
    for op in function.walk():
        if op is end:
            continue
        for depth, (file, line) in enumerate(_places(op)):
            if file not in sources:
                sources[file] = _source("".join(linecache.getlines(file)))
            source = sources[file]
            if depth == 0 and not documented:
                documented = True
                if doc := source.docstring(line):
                    found[function] = doc
            for comment in source.comments(line):
                before = said.get((file, comment))
                if before is None or (before.name in _HOISTED and op.name not in _HOISTED):
                    said[file, comment] = op
    for (_, comment), op in said.items():
        found.setdefault(op, []).extend(comment.text)


def _places(op: Operation) -> Iterator[tuple[str, int]]:
    """Yield the user's source lines of an op: that of the kernel first, then those of called functions."""
    from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, NameLoc

    at: object = op.location
    chain: list[object] = []
    while isinstance(at, CallSiteLoc):
        chain.append(at.callee)
        at = at.caller
    for place in (at, *reversed(chain)):
        while isinstance(place, NameLoc):
            place = place.location
        if isinstance(place, FileLineColLoc):
            yield place.filename.data, place.line.data


@lru_cache(maxsize=128)
def _source(text: str) -> _Source:
    """Return the parsed text of a file, cached across traces."""
    return _Source(text)


class _Source:
    """The statements and comments of a file."""

    def __init__(self, text: str):
        self._lines = text.splitlines()
        self._own: dict[int, str] = {}
        """Maps a line to the comment that is all of it."""
        self._ends: dict[int, str] = {}
        """Maps a line to the comment at its end."""
        self._known: dict[int, list[Comment]] = {}
        try:
            self._tree: ast.Module = parsed(text)
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                if token.type == tokenize.COMMENT:
                    there = self._ends if token.line[: token.start[1]].strip() else self._own
                    there[token.start[0]] = token.string.lstrip("#").strip()
        except (SyntaxError, tokenize.TokenError):  # The file changed since it was traced.
            self._tree = ast.Module([], [])

    def _around(self, line: int) -> list[ast.stmt]:
        """Return the statements that contain a line, outermost first."""
        around: list[ast.stmt] = []
        body: list[ast.AST] = [self._tree]
        while body:
            node = body.pop()
            if isinstance(node, ast.stmt):
                decorators = getattr(node, "decorator_list", [])
                first = min([node.lineno, *[d.lineno for d in decorators]])
                if not first <= line <= (node.end_lineno or first):
                    continue
                around.append(node)
                body.clear()
            body.extend(ast.iter_child_nodes(node))
        return around

    def docstring(self, line: int) -> list[str]:
        """Return the docstring of the function that contains a line."""
        for node in reversed(self._around(line)):
            if isinstance(node, ast.FunctionDef):
                doc = ast.get_docstring(node, clean=False)
                return inspect.cleandoc(doc).splitlines() if doc else []
        return []

    def comments(self, line: int) -> list[Comment]:
        """Return the comments of the statements that contain a line, within its function, outermost first."""
        known = self._known.get(line)
        if known is None:
            around = self._around(line)
            functions = [i for i, node in enumerate(around) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
            own = around[functions[-1] + 1 :] if functions else around
            known = self._known[line] = [c for node in own for c in (self._above(node), self._beside(node)) if c.text]
        return known

    def _above(self, node: ast.stmt) -> Comment:
        """Return the comment at the start of a statement's paragraph."""
        at = node.lineno - 1
        while at > 0 and (indent := self._indent(at)) >= node.col_offset:
            if at in self._own and indent == node.col_offset:
                break
            at -= 1
        last, lines = at, list[str]()
        while at in self._own:
            lines.insert(0, self._own[at])
            at -= 1
        return Comment(last, _for_people(lines))

    def _beside(self, node: ast.stmt) -> Comment:
        """Return the comments at the ends of a statement's lines; for a compound statement, those of its header."""
        inner = getattr(node, "body", None)
        last = inner[0].lineno - 1 if isinstance(inner, list) and inner else node.end_lineno or node.lineno
        return Comment(last, _for_people([self._ends[n] for n in range(node.lineno, last + 1) if n in self._ends]))

    def _indent(self, line: int) -> int:
        """Return the indentation of a line, or -1 if it is blank."""
        text = self._lines[line - 1]
        return len(text) - len(text.lstrip()) if text.strip() else -1


def _for_people(lines: list[str]) -> tuple[str, ...]:
    said = [_FOR_TOOLS.sub("", line) for line in lines]
    return tuple([line for line in said if line])


# ----------------------------------------------------------------------------------------------------- aliases of types


LONG = 30
"""Minimum length of a type that gets an alias, in characters."""


def type_names(module: Operation) -> dict[str, Attribute]:
    """Return an alias for each long type: the name of the first named value of that type, else the type's kind."""
    named: dict[Attribute, str | None] = {}
    for value in _values(module):
        if named.get(value.type) is None and value.type.name.startswith(("cute.", "cute_nvgpu.")):
            named[value.type] = value.name_hint
    made: dict[str, Attribute] = {}
    for type, hint in named.items():
        if len(str(type)) >= LONG:
            made[_free(hint or type.name.rpartition(".")[2], made)] = type
    return made


def _values(module: Operation) -> Iterator[SSAValue]:
    for op in module.walk():
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def _free(name: str, taken: dict[str, Attribute]) -> str:
    if name not in taken:
        return name
    return next(made for i in range(2, 1 << 20) if (made := f"{name}_{i}") not in taken)
