"""Names in MLIR text: definitions and uses of values, symbols, aliases and blocks; the text need not parse.

The scope of a value is the braces around its definition.  A value defined in a header (``scf.for %i = …``, function
arguments) is scoped to the braces that follow.  Values from outside are not visible in an op that is isolated from
above.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*)
    |(?P<value>%(?:[0-9]+|[a-zA-Z$._-][a-zA-Z0-9$._-]*)(?:\#[0-9]+)?)
    |(?P<symbol>@(?:[a-zA-Z_][a-zA-Z0-9_$.]*|"(?:[^"\\\n]|\\.)*"))
    |(?P<string>"(?:[^"\\\n]|\\.)*"?)
    |(?P<alias>[!\#][a-zA-Z_][a-zA-Z0-9_$.]*)
    |(?P<block>\^[a-zA-Z0-9$._-]+)
    |(?P<word>[a-zA-Z_][a-zA-Z0-9_$.]*)
    |(?P<arrow>->)
    |(?P<mark>[{}()\[\]<>=,:])
    """,
    re.VERBOSE,
)
_ISOLATED = frozenset(("func.func", "gpu.func", "llvm.func", "gpu.module", "builtin.module", "module"))
_DEFINES_SYMBOL = frozenset(
    (
        "func.func",
        "gpu.func",
        "llvm.func",
        "gpu.module",
        "builtin.module",
        "module",
        "memref.global",
        "llvm.mlir.global",
    )
)
_SEPARATOR = "// -----"


class Name(NamedTuple):
    """A name at an offset.  ``kind``: "value", "symbol", "alias" or "block"; ``scope``: the index of its braces."""

    kind: str
    text: str
    start: int
    end: int
    scope: int
    definition: bool


class Op(NamedTuple):
    """An op: the offsets of its results (or its name, if none), of its name and of its end."""

    name: str
    start: int
    at: int
    end: int
    depth: int
    results: tuple[str, ...]


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


class MlirText:
    """The names in a text and their references.

    >>> text = MlirText("%a = test.op : i32\\n%b = test.use %a : i32")
    >>> [n.start for n in text.references(0)]
    [0, 33]
    """

    def __init__(self, text: str):
        self.text = text
        self.names: list[Name] = []
        self.ops: list[Op] = []
        self.parents: list[int] = [-1]
        """The enclosing braces of each pair of braces."""
        self.isolated: set[int] = {0}
        self.opened: list[tuple[int, int]] = [(0, len(text))]
        """The start and end offsets of each pair of braces."""
        self._read()
        self._starts = [n.start for n in self.names]
        self._begins = [start for start, _ in self.opened]
        self._op_starts = [op.start for op in self.ops]
        self._around = _around(self.ops)
        self._same: dict[tuple[str, str], list[Name]] = {}
        self._defined: dict[tuple[str, str], dict[int, Name]] = {}
        self._values: dict[int, list[Name]] = {}
        for n in self.names:
            self._same.setdefault((n.kind, n.text), []).append(n)
            if n.definition:
                self._defined.setdefault((n.kind, n.text), {}).setdefault(n.scope, n)
                if n.kind == "value":
                    self._values.setdefault(n.scope, []).append(n)

    def _read(self) -> None:
        tokens = [_Token(m.lastgroup or "", m[0], m.start(), m.end()) for m in _TOKEN.finditer(self.text)]
        stack, pending, parens = [0], list[int](), 0  # pending: names scoped to the next braces
        header = ""
        open_ops: list[tuple[str, int, int, int, tuple[str, ...]]] = []
        results_from: int | None = None
        results: list[str] = []
        code = [t for t in tokens if t.kind != "comment" or t.text.rstrip() == _SEPARATOR]

        def close(depth: int, at: int) -> None:
            while open_ops and open_ops[-1][3] >= depth:
                name, start, op_at, op_depth, named = open_ops.pop()
                while at > op_at and self.text[at - 1].isspace():
                    at -= 1
                self.ops.append(Op(name, start, op_at, at, op_depth, named))

        for i, token in enumerate(code):
            kind, text, start, end = token
            before = code[i - 1] if i else _Token("mark", "{", 0, 0)
            after = code[i + 1] if i + 1 < len(code) else _Token("mark", "}", len(self.text), len(self.text))
            fresh = parens == 0 and (before.text in "{}" or "\n" in self.text[before.end : start] or i == 0)
            if kind == "comment":  # ``// -----`` splits the file.
                close(0, start)
                for number in stack:
                    self.opened[number] = (self.opened[number][0], start)
                stack = [len(self.parents)]
                self.parents.append(-1)
                self.isolated.add(stack[0])
                self.opened.append((end, len(self.text)))
                pending, parens, header, results_from = [], 0, "", None
            elif kind == "value":
                if results_from is None and fresh and after.text in ("=", ",", ":"):
                    results_from, results = start, []
                bare = text.partition("#")[0]
                end = start + len(bare)
                is_result = results_from is not None
                argument = not is_result and (
                    after.text == "=" or (after.text == ":" and (header in _ISOLATED or before.text in ("(", ",")))
                )
                if argument and after.text == ":" and header not in _ISOLATED and not self._labelled(code, i):
                    argument = False
                if not argument and not is_result and header in ("scf.parallel", "scf.forall", "gpu.launch"):
                    argument = self._grouped(code, i)
                here = Name("value", bare, start, end, stack[-1], is_result or argument)
                if is_result:
                    results.append(bare)
                if argument and not self._labelled(code, i):
                    pending.append(len(self.names))
                self.names.append(here)
            elif kind in ("word", "string"):
                name = text.strip('"')
                begins = (fresh or (before.text == "=" and results_from is not None)) and parens == 0
                if begins and (kind == "word" or "." in name) and after.text != "=":
                    close(len(stack), results_from if results_from is not None else start)
                    first = results_from if results_from is not None else start
                    open_ops.append(
                        (name, first, start, len(stack), tuple(results) if results_from is not None else ())
                    )
                    header, results_from, results = name, None, []
            elif kind == "symbol":
                defines = header in _DEFINES_SYMBOL and not any(
                    n.kind == "symbol" and n.start > open_ops[-1][2] for n in self.names[-3:] if open_ops
                )
                near = defines and bool(open_ops) and self.text.find("{", open_ops[-1][2], start) < 0
                self.names.append(Name("symbol", text, start, end, 0, near))
            elif kind == "alias":
                if "." not in text:
                    self.names.append(Name("alias", text, start, end, 0, fresh and after.text == "="))
            elif kind == "block":
                self.names.append(Name("block", text, start, end, stack[-1], fresh and after.text in ("(", ":")))
                if fresh and after.text in ("(", ":"):
                    close(len(stack), start)
                    header = ""
            elif text in "([":
                parens += 1
            elif text in ")]":
                parens = max(parens - 1, 0)
            elif text == "{":
                number = len(self.parents)
                self.parents.append(stack[-1])
                self.opened.append((start, len(self.text)))
                if header in _ISOLATED:
                    self.isolated.add(number)
                if parens == 0 and not self._is_dictionary(code, i):
                    for at in pending:
                        self.names[at] = self.names[at]._replace(scope=number)
                    pending = []
                    header, parens = "", 0
                stack.append(number)
            elif text == "}":
                close(len(stack), start)
                if len(stack) > 1:
                    number = stack.pop()
                    self.opened[number] = (self.opened[number][0], end)
        close(0, len(self.text))
        self.ops.sort(key=lambda op: op.start)

    @staticmethod
    def _is_dictionary(code: list[_Token], i: int) -> bool:
        """Return True if braces hold attributes: they start with a name and ``=`` or a comma, or with ``<{``."""
        if i and code[i - 1].text == "<":
            return True
        inside = [t for t in code[i + 1 : i + 3]]
        if len(inside) < 2:
            return False
        named = inside[0].kind in ("word", "string")
        return named and (inside[1].text in ("=", ",") or (inside[1].text == "}" and "." not in inside[0].text))

    @staticmethod
    def _labelled(code: list[_Token], i: int) -> bool:
        """Return True if a value is among the arguments of a block label."""
        depth = 0
        for token in reversed(code[max(0, i - 400) : i]):
            depth += token.text in (")", "]")
            depth -= token.text in ("(", "[")
            if token.kind == "block":
                return depth < 0
            if token.text in ("{", "}", "="):
                return False
        return False

    @staticmethod
    def _grouped(code: list[_Token], i: int) -> bool:
        """Return True if a value is in brackets followed by ``=`` or ``in``."""
        for j in range(i + 1, min(i + 40, len(code) - 1)):
            if code[j].text == ")":
                return code[j + 1].text in ("=", "in")
            if code[j].kind != "value" and code[j].text != ",":
                return False
        return False

    def at(self, offset: int) -> Name | None:
        """Return the name that contains an offset or ends at it."""
        i = bisect_right(self._starts, offset) - 1
        found = self.names[i] if i >= 0 else None
        return found if found is not None and found.start <= offset <= found.end else None

    def between(self, start: int, end: int) -> list[Name]:
        """Return the names that start in a half-open range of offsets."""
        return self.names[bisect_left(self._starts, start) : bisect_left(self._starts, end)]

    def op_at(self, offset: int) -> Op | None:
        """Return the innermost op that contains an offset."""
        return next(self.ops_around(offset), None)

    def ops_around(self, offset: int) -> Iterator[Op]:
        """Yield the ops that contain an offset, innermost first."""
        i = bisect_right(self._op_starts, offset) - 1
        while i >= 0:
            if self.ops[i].end >= offset:
                yield self.ops[i]
            i = self._around[i]

    def scope_at(self, offset: int) -> int:
        """Return the index of the innermost braces around an offset."""
        number = max(bisect_right(self._begins, offset) - 1, 0)
        while self.parents[number] != -1:
            start, end = self.opened[number]
            if start < offset < end:
                break
            number = self.parents[number]
        return number

    def visible(self, scope: int) -> Iterator[int]:
        """Yield the indices of the braces whose values are visible in a scope, innermost first."""
        while scope >= 0:
            yield scope
            if scope in self.isolated:
                return
            scope = self.parents[scope]

    def definition(self, name: Name) -> Name | None:
        if name.definition:
            return name
        same = self._defined.get((name.kind, name.text), {})
        if name.kind in ("symbol", "alias"):
            return next(iter(same.values()), None)
        return next((same[scope] for scope in self.visible(name.scope) if scope in same), None)

    def references(self, offset: int) -> list[Name]:
        """Return all references of the name at an offset, including its definition."""
        name = self.at(offset)
        if name is None:
            return []
        origin = self.definition(name)
        same = self._same[name.kind, name.text]
        if origin is None:
            return [n for n in same if self.definition(n) is None]
        return [n for n in same if self.definition(n) == origin]

    def values_at(self, offset: int) -> list[Name]:
        """Return the values visible at an offset, those of the innermost braces first."""
        own = [(op.start, op.at) for op in self.ops_around(offset)]  # Results of enclosing ops are not defined yet.
        found = (n for s in self.visible(self.scope_at(offset)) for n in reversed(self._values.get(s, [])))
        return [n for n in found if n.end < offset and not any(a <= n.start < b for a, b in own)]

    def definitions(self, kind: str) -> list[Name]:
        """Return the definitions of names of a kind in text order."""
        return [n for n in self.names if n.kind == kind and n.definition]


def _around(ops: list[Op]) -> list[int]:
    """Return for each op, sorted by start, the index of its enclosing op, or -1."""
    around: list[int] = []
    stack: list[int] = []
    for i, op in enumerate(ops):
        while stack and ops[stack[-1]].end <= op.start:
            stack.pop()
        around.append(stack[-1] if stack else -1)
        stack.append(i)
    return around
