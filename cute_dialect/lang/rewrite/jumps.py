"""Replacement of jumps by flags, after which control flow follows the text of a function.

``break`` and ``continue`` each set a local flag of their loop.  A ``return`` before the last statement sets two flags
of the function.  Statements after a jump move under a test of the flags, or into the ``else`` of an ``if`` whose body
always jumps.  The flags are ordinary values: under static conditions they are Python's, and the tests fold.

The attribute ``_flags`` of a ``while`` names the flags that end it early.
"""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from cute_dialect.lang.rewrite.analysis import names_in, place_in
from cute_dialect.lang.rewrite.match_statements import Patterns
from cute_dialect.lang.tracing.errors import SyntaxErrorInKernel

__all__ = ["DEEPEST", "DELETE", "LOAD", "RETURNED", "STORE", "VALUE", "Counter", "remove_jumps"]

RETURNED = ".ret"
VALUE = ".val"
DEEPEST = 6
"""Maximum nesting that flag tests may add to a suite. Further tests are placed one after another."""
LONGEST = 8
"""Maximum length of an ``elif`` chain; the rest follows it. CPython allows at most 20 nested blocks."""


class Counter:
    """Source of unique numbers for generated names."""

    def __init__(self) -> None:
        self.n = 0

    def next(self) -> int:
        self.n += 1
        return self.n


class _Suite(NamedTuple):
    body: list[ast.stmt]
    may: frozenset[str]
    """The flags of enclosing loops and functions that it may set."""
    must: bool
    """True if it always ends in a jump."""


_NONE: frozenset[str] = frozenset()
LOAD, STORE, DELETE = ast.Load(), ast.Store(), ast.Del()
"""Contexts of names. One object of each serves all names."""


def at(node: Any) -> dict[str, Any]:
    """Return the position of a node as keyword arguments."""
    return {
        "lineno": node.lineno, "col_offset": node.col_offset, "end_lineno": node.end_lineno,
        "end_col_offset": node.end_col_offset,
    }  # fmt: skip


def assign(name: str, value: Any, position: dict[str, Any]) -> ast.Assign:
    if not isinstance(value, ast.expr):
        value = ast.Constant(value, **position)
    return ast.Assign(targets=[ast.Name(name, STORE, **position)], value=value, **position)


def any_of(flags: Any, position: dict[str, Any]) -> ast.expr:
    names: list[ast.expr] = [ast.Name(f, LOAD, **position) for f in sorted(flags)]
    return names[0] if len(names) == 1 else ast.BoolOp(ast.Or(), names, **position)


def none_of(flags: Any, position: dict[str, Any]) -> ast.expr:
    return ast.UnaryOp(ast.Not(), any_of(flags, position), **position)


class _Jumps:
    def __init__(self, path: str, counter: Counter, *, tight: bool):
        self.path = path
        self.counter = counter
        self.deepest, self.longest = (1, 2) if tight else (DEEPEST, LONGEST)
        self.loops: list[tuple[str, str]] = []
        self.finals = 0
        self.final_loops: list[int] = []

    def suite(self, body: list[ast.stmt], depth: int = 0) -> _Suite:
        out: list[ast.stmt] = []
        may, must, guard = _NONE, False, _NONE
        for i, s in enumerate(body):
            made = self.statement(s)
            new = made.body
            if guard:  # flat: under its own test
                new = [self.guarded(guard, new, s)]
            out += new
            may |= made.may
            rest = body[i + 1 :]
            if made.must and not guard:
                must = True
                if rest:  # It is never reached, but its names are local.
                    out.append(_dead(rest))
                break
            if not made.may or not rest:
                must = must or (made.must and not rest)
                continue
            if depth >= self.deepest:
                guard |= made.may
                continue
            last = out[-1]
            later = self.suite(rest, depth + 1)
            falls = getattr(last, "_falls", None) if not guard and len(new) == 1 else None
            if falls is not None:  # One side always jumps, the other never does.
                setattr(last, falls, [*getattr(last, falls), *later.body])
                last._falls = None  # pyright: ignore
            else:
                out.append(self.guarded(made.may, later.body, rest[0]))
            may |= later.may
            must = later.must
            break
        return _Suite(out, may, must)

    def guarded(self, flags: frozenset[str], body: list[ast.stmt], like: ast.stmt) -> ast.stmt:
        position = at(like)
        made: Any = ast.If(test=none_of(flags, position), body=body, orelse=[], **position)
        made._head = like
        made._text = " or ".join(_WORDS[f.lstrip(".")[:3]] for f in sorted(flags))
        return made

    def statement(self, s: ast.stmt) -> _Suite:
        method = getattr(self, type(s).__name__, None)
        return method(s) if method is not None else _Suite([s], _NONE, False)

    def jump(self, name: str, s: ast.stmt) -> _Suite:
        return _Suite([assign(name, True, at(s))], frozenset((name,)), True)

    def Break(self, s: ast.Break) -> _Suite:
        self.leaves_final(s, "break")
        return self.jump(self.loops[-1][0], s)

    def Continue(self, s: ast.Continue) -> _Suite:
        self.leaves_final(s, "continue")
        return self.jump(self.loops[-1][1], s)

    def Return(self, s: ast.Return) -> _Suite:
        if self.finals:
            raise self.refused(s, "'return' in a 'finally' block is not supported in a kernel")
        value = s.value or ast.Constant(None, **at(s))
        return _Suite([assign(VALUE, value, at(s)), assign(RETURNED, True, at(s))], frozenset((RETURNED,)), True)

    def leaves_final(self, s: ast.stmt, word: str) -> None:
        if self.finals and self.final_loops[-1] == len(self.loops):
            raise self.refused(s, f"'{word}' out of a 'finally' block is not supported in a kernel")

    def refused(self, s: ast.stmt, text: str) -> SyntaxErrorInKernel:
        return SyntaxErrorInKernel("F150", text, place=place_in(self.path, s))

    def If(self, s: ast.If) -> _Suite:
        last, length = s, 1
        while len(last.orelse) == 1 and isinstance(last.orelse[0], ast.If) and length < self.longest:
            last, length = last.orelse[0], length + 1
        if len(last.orelse) == 1 and isinstance(last.orelse[0], ast.If):  # The rest follows after the chain.
            p = at(last.orelse[0].test)
            go = f".go{self.counter.next()}"
            rest = ast.If(ast.Name(go, LOAD, **p), last.orelse, [], **p)
            last.orelse = [assign(go, True, p)]
            return self.suite([assign(go, False, at(s.test)), s, rest])
        body, orelse = self.suite(s.body), self.suite(s.orelse)
        s.body, s.orelse = body.body, orelse.body
        if body.must and not orelse.may:
            s._falls = "orelse"  # pyright: ignore
        elif orelse.must and not body.may:
            s._falls = "body"  # pyright: ignore
        return _Suite([s], body.may | orelse.may, body.must and orelse.must)

    def With(self, s: ast.With) -> _Suite:
        made = self.suite(s.body)
        s.body = made.body
        return _Suite([s], made.may, False)

    def Try(self, s: Any) -> _Suite:
        made = self.suite(s.body)
        s.body = made.body
        may = made.may
        orelse = self.suite(s.orelse)
        if s.orelse:
            s.orelse = [self.guarded(made.may, orelse.body, s.orelse[0])] if made.may else orelse.body
            may |= orelse.may
        for handler in s.handlers:
            inner = self.suite(handler.body)
            handler.body = inner.body
            may |= inner.may
        self.finals += 1
        self.final_loops.append(len(self.loops))
        final = self.suite(s.finalbody)
        self.final_loops.pop()
        self.finals -= 1
        s.finalbody = final.body
        return _Suite([s], may, False)

    TryStar = Try

    def Match(self, s: ast.Match) -> _Suite:
        chain = Patterns(self.counter.next, at).chain(s)
        if chain is not None:
            made = self.suite(chain)
            return _Suite(made.body, made.may, made.must)
        may = _NONE
        for case in s.cases:
            made = self.suite(case.body)
            case.body = made.body
            may |= made.may
        return _Suite([s], may, False)

    def While(self, s: ast.While) -> _Suite:
        return self.loop(s)

    def For(self, s: ast.For) -> _Suite:
        return self.loop(s)

    def loop(self, s: Any) -> _Suite:
        n = self.counter.next()
        broken, next_turn = f".brk{n}", f".cnt{n}"
        self.loops.append((broken, next_turn))
        made = self.suite(s.body)
        self.loops.pop()
        first = s.body[0]
        body = made.body
        if next_turn in made.may:
            body = [assign(next_turn, False, at(first)), *body]
        flags = made.may & {broken, RETURNED}
        if isinstance(s, ast.For):
            item = f".i{n}"
            where = at(s.target)
            s._targets = tuple(sorted(names_in(s.target).stores))  # pyright: ignore
            body = [ast.Assign([s.target], ast.Name(item, LOAD, **where), **where), *body]
            s.target = ast.Name(item, STORE, **where)
        before: list[ast.stmt] = [assign(broken, False, at(s))] if broken in made.may else []
        ends = flags
        if flags:
            body = [*(assign(f, False, at(first)) for f in sorted(flags)), *body]
            if isinstance(s, ast.For):
                body = [self.guarded(flags, body, first)]
            elif any(isinstance(node, ast.NamedExpr) for node in ast.walk(s.test)):
                body, end = self.rotated(s, body, n)
                before.append(assign(end, False, at(s)))
                ends = flags | {end}
                s.test = none_of(ends, at(s.test))
            else:
                where = at(s.test)
                certain = isinstance(s.test, ast.Constant) and s.test.value
                s.test = (
                    none_of(flags, where)
                    if certain
                    else ast.BoolOp(ast.And(), [none_of(flags, where), s.test], **where)
                )
        s.body = body
        s._flags = tuple(sorted(ends))
        may = made.may & {RETURNED}
        after: list[ast.stmt] = []
        if s.orelse:
            orelse = self.suite(s.orelse)
            after = [self.guarded(flags, orelse.body, s.orelse[0])] if flags else orelse.body
            may |= orelse.may
            s.orelse = []
        return _Suite([*before, s, *after], may, False)

    def rotated(self, s: Any, body: list[ast.stmt], n: int) -> tuple[list[ast.stmt], str]:
        """Return the body of a ``while`` whose test sets names, with the test moved into it, and the flag of its end.

        The first iteration always starts, so the names set by the test have values after the loop.
        """
        where = at(s.test)
        end, tested = f".end{n}", f".c{n}"
        s._once = True
        chosen: Any = ast.If(ast.Name(tested, LOAD, **where), body, [assign(end, True, where)], **where)
        return [assign(end, False, where), assign(tested, s.test, where), chosen], end


_WORDS = {"brk": "'break'", "end": "end", "cnt": "'continue'", "ret": "'return'"}


def _dead(rest: list[ast.stmt]) -> ast.stmt:
    """Return unreachable code, kept for the names that it makes local. A loop around it absorbs its jumps."""
    position = at(rest[0])
    made: Any = ast.While(test=ast.Constant(False, **position), body=rest, orelse=[], **position)
    made._dead = True
    return made


def _has(body: list[ast.stmt]) -> bool:
    """Return True if a function has a return before its last statement."""
    todo: list[ast.AST] = [*body]
    last = body[-1]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Return) and node is not last:
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef | ast.expr):
            todo += ast.iter_child_nodes(node)
    return False


def remove_jumps(function: ast.FunctionDef, path: str, counter: Counter, *, tight: bool = False) -> None:
    """Remove the jumps of a function, in place. ``tight`` adds the least possible nesting."""
    jumps = _Jumps(path, counter, tight=tight)
    body = function.body
    last = body[-1]
    if not _has(body):
        ending: list[ast.stmt] = [last] if isinstance(last, ast.Return) else []
        made = jumps.suite(body[:-1] if ending else body)
        function.body = [*made.body, *ending]
        return
    if not isinstance(last, ast.Return):
        position = at(last)
        position["lineno"] = position["end_lineno"]
        position["col_offset"] = max(0, (position["end_col_offset"] or 1) - 1)
        body = [*body, ast.Return(None, **position)]
    else:
        position = at(last)
    made = jumps.suite(body)
    function.body = [
        assign(RETURNED, False, at(body[0])), *made.body,
        ast.Return(ast.Name(VALUE, LOAD, **position), **position),
    ]  # fmt: skip
