"""Statements replaced before control flow is rewritten: jumps, ``match``, and loops that carry values with ``yield``.

Jumps become flags, after which control flow follows the text of a function.  ``break`` and ``continue`` each set a
local flag of their loop.  A ``return`` before the last statement sets two flags of the function.  Statements after a
jump move under a test of the flags, or into the ``else`` of an ``if`` whose body always jumps.  The flags are ordinary
values: under static conditions they are Python's, and the tests fold.  The attribute ``_flags`` of a ``while`` names
the flags that end it early.

``match`` becomes a chain of ``if``.  Tests of the subject's *structure* (the length of a tuple, its class, its keys)
are decided at compile time and come first.  Comparisons of values follow.  ``case (0, y) if y > 2: …`` on ``m``
becomes::

    .g = False
    if <m is a sequence of 2>:
        .v = m[0] == 0
        if .v: y = m[1]
        .g = .v and m[1] > 2        # the guard sees the captured values, under names of their own
    if .g: y = m[1]; body
    else: …                         # the remaining cases

A call of a constant, ``"is_sequence"(m, 2)``, becomes a call of that method of the runtime hooks when expressions are
rewritten.

A loop with explicit carried values becomes a plain loop, which carries ``.c`` like any other name::

    for k, tmp in range_(n, iter_args=[zero]):         .c = zero; out = .c
        tmp += a[k]                             ->      for k in range_(n):
        out = yield tmp                                     tmp = .c
                                                            tmp += a[k]
                                                            .c = tmp; out = .c

After the rewriting the function is not a generator.  A third target receives the loop's results, as in upstream's
``scf.for_``.  With several ``iter_args`` the second target is a tuple.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cute_dialect.errors import Place
from cute_dialect.lang.rewrite.analysis import names_in, place_in
from cute_dialect.lang.rewrite.source import FunctionNode
from cute_dialect.lang.tracing.errors import SyntaxErrorInKernel

# ----------------------------------------------------------------------------------------------------- match statements


Position = dict[str, Any]


def asked(name: str, args: list[ast.expr], p: Position) -> ast.expr:
    """Return a call of a method of the runtime hooks."""
    return ast.Call(ast.Constant(name, **p), args, [], **p)


@dataclass
class _Wanted:
    """The tests of a pattern (structure and values), and its captures."""

    structure: list[ast.expr] = field(default_factory=list[ast.expr])
    values: list[ast.expr] = field(default_factory=list[ast.expr])
    captures: list[tuple[str, ast.expr]] = field(default_factory=list[tuple[str, ast.expr]])


class _Undecided(Exception):
    """The pattern must be left to Python."""


class Patterns:
    """The chains of one function. ``number`` generates unique numbers, ``position`` returns a node's position."""

    def __init__(self, number: Callable[[], int], position: Callable[[Any], Position]):
        self.number = number
        self.position = position

    def chain(self, s: ast.Match) -> list[ast.stmt] | None:
        """Return a ``match`` as a chain of ``if``, or None if it must be left to Python.

        Python handles it if alternatives capture names, or a guard after a capture assigns some.
        """
        p = self.position(s.subject)
        subject = f".m{self.number()}"
        try:
            wanted = [self.wanted(case.pattern, ast.Name(subject, ast.Load(), **p)) for case in s.cases]
            chain: list[ast.stmt] = []
            for case, asks in zip(reversed(s.cases), reversed(wanted)):
                chain = self.case(case, asks, chain)
        except _Undecided:
            return None
        return [self.assign(subject, s.subject, p), *chain]

    def case(self, case: ast.match_case, asks: _Wanted, later: list[ast.stmt]) -> list[ast.stmt]:
        """Return one case, followed by the later cases."""
        q = self.position(case.pattern)
        tests = [*asks.structure, *asks.values]
        captured: list[ast.stmt] = [self.assign(name, e, q) for name, e in asks.captures]
        guard = case.guard
        if guard is None or not asks.captures:
            tests += [] if guard is None else [guard]
            if not tests:
                return [*captured, *case.body]
            return [ast.If(_all(tests, q), [*captured, *case.body], later, **q)]
        if not tests:
            return [*captured, ast.If(guard, case.body, later, **q)]
        if any(isinstance(node, ast.NamedExpr) for node in ast.walk(guard)):
            raise _Undecided
        n = self.number()
        holds, goes = f".v{n}", f".g{n}"
        values = _all(asks.values, q) if asks.values else ast.Constant(True, **q)
        seen = _Renamed({name: f".c{n}_{name}" for name, _ in asks.captures}, q)
        inside: list[ast.stmt] = [
            *(self.assign(seen.names[name], e, q) for name, e in asks.captures),
            self.assign(holds, values, q),
            ast.If(ast.Name(holds, ast.Load(), **q), captured, [], **q),
            self.assign(goes, _all([ast.Name(holds, ast.Load(), **q), seen.visit(guard)], q), q),
        ]
        begin: list[ast.stmt] = [self.assign(goes, ast.Constant(False, **q), q)]
        begin += [ast.If(_all(asks.structure, q), inside, [], **q)] if asks.structure else inside
        again: list[ast.stmt] = [self.assign(name, e, q) for name, e in asks.captures]
        return [*begin, ast.If(ast.Name(goes, ast.Load(), **q), [*again, *case.body], later, **q)]

    def assign(self, name: str, value: ast.expr, p: Position) -> ast.stmt:
        return ast.Assign([ast.Name(name, ast.Store(), **p)], value, **p)

    def wanted(self, pattern: ast.pattern, subject: ast.expr) -> _Wanted:
        """Return the tests and captures of a pattern on a subject."""
        found = _Wanted()
        self.ask(pattern, subject, found)
        return found

    def ask(self, pattern: ast.pattern, subject: ast.expr, into: _Wanted) -> None:
        """Add the tests and captures of a pattern on a subject to ``into``."""
        method: Callable[..., None] = getattr(self, f"_{type(pattern).__name__}")
        method(pattern, subject, into, self.position(pattern))

    def _MatchValue(self, pattern: ast.MatchValue, subject: ast.expr, into: _Wanted, p: Position) -> None:
        into.values.append(ast.Compare(subject, [ast.Eq()], [pattern.value], **p))

    def _MatchSingleton(self, pattern: ast.MatchSingleton, subject: ast.expr, into: _Wanted, p: Position) -> None:
        into.values.append(ast.Compare(subject, [ast.Is()], [ast.Constant(pattern.value, **p)], **p))

    def _MatchAs(self, pattern: ast.MatchAs, subject: ast.expr, into: _Wanted, p: Position) -> None:
        if pattern.pattern is not None:
            self.ask(pattern.pattern, subject, into)
        if pattern.name is not None:
            into.captures.append((pattern.name, subject))

    def _MatchOr(self, pattern: ast.MatchOr, subject: ast.expr, into: _Wanted, p: Position) -> None:
        sides = [self.wanted(q, subject) for q in pattern.patterns]
        if any(side.captures for side in sides):
            raise _Undecided
        tests: list[ast.expr] = []
        for side in sides:
            asks = [*side.structure, *side.values]
            tests.append(_all(asks, p) if asks else ast.Constant(True, **p))
        into.values.append(ast.BoolOp(ast.Or(), tests, **p))

    def _MatchSequence(self, pattern: ast.MatchSequence, subject: ast.expr, into: _Wanted, p: Position) -> None:
        stars = [n for n, q in enumerate(pattern.patterns) if isinstance(q, ast.MatchStar)]
        count = len(pattern.patterns) - len(stars)
        into.structure.append(
            asked("is_sequence", [subject, ast.Constant(count, **p), ast.Constant(bool(stars), **p)], p)
        )
        for n, q in enumerate(pattern.patterns):
            behind = n - len(pattern.patterns)
            if isinstance(q, ast.MatchStar):
                if q.name is not None:
                    ends = [ast.Constant(n, **p), ast.Constant(behind + 1 or None, **p)]
                    into.captures.append((q.name, asked("part_of", [subject, *ends], p)))
            else:
                at = ast.Constant(behind if stars and n > stars[0] else n, **p)
                self.ask(q, ast.Subscript(subject, at, ast.Load(), **p), into)

    def _MatchMapping(self, pattern: ast.MatchMapping, subject: ast.expr, into: _Wanted, p: Position) -> None:
        into.structure.append(asked("has_keys", [subject, *pattern.keys], p))
        for key, q in zip(pattern.keys, pattern.patterns):
            self.ask(q, ast.Subscript(subject, key, ast.Load(), **p), into)
        if pattern.rest is not None:
            into.captures.append((pattern.rest, asked("rest_of", [subject, *pattern.keys], p)))

    def _MatchClass(self, pattern: ast.MatchClass, subject: ast.expr, into: _Wanted, p: Position) -> None:
        count = ast.Constant(len(pattern.patterns), **p)
        names: list[ast.expr] = [ast.Constant(name, **p) for name in pattern.kwd_attrs]
        into.structure.append(asked("is_instance", [subject, pattern.cls, count, *names], p))
        for n, q in enumerate(pattern.patterns):
            self.ask(q, asked("attribute_of", [subject, pattern.cls, ast.Constant(n, **p)], p), into)
        for name, q in zip(pattern.kwd_attrs, pattern.kwd_patterns):
            self.ask(q, ast.Attribute(subject, name, ast.Load(), **p), into)


def _all(tests: list[ast.expr], p: Position) -> ast.expr:
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests, **p)


class _Renamed(ast.NodeTransformer):
    """Renames captured values in a guard."""

    def __init__(self, names: dict[str, str], position: Position):
        self.names = names
        self.position = position

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        """Rename in a lambda the captured names that are not its parameters."""
        args = node.args
        own = {a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg) if a}
        names, self.names = self.names, {k: v for k, v in self.names.items() if k not in own}
        self.generic_visit(node)
        self.names = names
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Rename a captured name."""
        if node.id not in self.names:
            return node
        return ast.Name(self.names[node.id], node.ctx, **{k: getattr(node, k) for k in self.position})


# ---------------------------------------------------------------------------------------------------------------- jumps


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


# -------------------------------------------------------------------------------------------- loops with carried values


def without_carries(node: FunctionNode, names: Mapping[str, object], path: str) -> None:
    """Rewrite the loops of a function that carry values with ``yield``.  Raises F150 for unsupported forms."""
    if not isinstance(node, ast.Lambda):
        node.body = _Carries(names, path).block(node.body)


class _Carries:
    def __init__(self, names: Mapping[str, object], path: str):
        self.names = names
        self.path = path
        self.count = 0

    def block(self, body: list[ast.stmt], carry: _Carry | None = None) -> list[ast.stmt]:
        """Return the rewritten statements of a block. ``carry`` is the enclosing loop."""
        return [made for statement in body for made in self.statement(statement, carry)]

    def statement(self, node: ast.stmt, carry: _Carry | None) -> list[ast.stmt]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return [node]
        if isinstance(node, ast.For) and self.is_carrying(node.iter):
            return self.loop(node)
        if carry is not None and isinstance(node, ast.Assign | ast.Expr) and isinstance(node.value, ast.Yield):
            return carry.yielded(node, node.value)
        for name in ("body", "orelse", "finalbody"):
            if isinstance(inner := getattr(node, name, None), list):
                setattr(node, name, self.block(inner, carry))
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            part.body = self.block(part.body, carry)
        return [node]

    def is_carrying(self, call: ast.expr) -> bool:
        """Return True if the iterable is :func:`cute_dialect.compat.extras.range_` with ``iter_args``."""
        if not isinstance(call, ast.Call) or not any(k.arg == "iter_args" for k in call.keywords):
            return False
        parts: list[str] = []
        at = call.func
        while isinstance(at, ast.Attribute):
            parts.append(at.attr)
            at = at.value
        found = self.names.get(at.id) if isinstance(at, ast.Name) else None
        for name in reversed(parts):
            found = getattr(found, name, None)
        return bool(getattr(found, "__cute_carries__", False))

    def loop(self, node: ast.For) -> list[ast.stmt]:
        call: Any = node.iter
        initial = next(k.value for k in call.keywords if k.arg == "iter_args")
        targets = node.target.elts if isinstance(node.target, ast.Tuple) else []
        if not isinstance(initial, ast.List | ast.Tuple) or not initial.elts:
            raise self.refused(initial, "iter_args must be a list of the initial values, iter_args=[…]")
        if len(targets) not in (2, 3) or node.orelse:
            raise self.refused(
                node.target,
                "a loop with iter_args needs the targets 'index, carried' or 'index, carried, results' and no 'else'",
            )
        self.count += 1
        carry = _Carry(f".c{self.count}", targets[2] if len(targets) == 3 else None)
        first = initial.elts[0] if len(initial.elts) == 1 else ast.Tuple(initial.elts, ast.Load())
        call.keywords = [k for k in call.keywords if k.arg != "iter_args"]
        body = self.block(node.body, carry)
        if not carry.count:
            raise self.refused(node.target, "this loop has iter_args but never yields the next values")
        node.target = targets[0]
        node.body = [carry.to(targets[1], node), *body]
        before = [_assign(carry.stored(), first, node)]
        return [*before, *[carry.to(t, node) for t in carry.results], node]

    def refused(self, node: ast.expr, text: str) -> SyntaxErrorInKernel:
        place = Place(self.path, node.lineno, node.col_offset + 1, node.end_lineno or 0, (node.end_col_offset or 0) + 1)
        return SyntaxErrorInKernel("F150", text, place=place)


class _Carry:
    """The carried values of one loop, held in a name of their own, and the targets of its results."""

    def __init__(self, name: str, results: ast.expr | None):
        self.name = name
        self.results = [results] if results is not None else []
        self.fixed = len(self.results)
        self.count = 0

    def stored(self) -> ast.expr:
        return ast.Name(self.name, ast.Store())

    def to(self, target: ast.expr, where: ast.stmt) -> ast.stmt:
        """Return the statement that assigns the carried values to a target."""
        return _assign(copy.deepcopy(target), ast.Name(self.name, ast.Load()), where)

    def yielded(self, node: ast.Assign | ast.Expr, value: ast.Yield) -> list[ast.stmt]:
        self.count += 1
        own: list[ast.expr] = node.targets if isinstance(node, ast.Assign) else []
        following = value.value or ast.Constant(None)
        if isinstance(following, ast.List):
            following = following.elts[0] if len(following.elts) == 1 else ast.Tuple(following.elts, ast.Load())
        made: list[ast.stmt] = [_assign(self.stored(), following, node)]
        made += [self.to(t, node) for t in (*self.results[: self.fixed], *own)]
        self.results += own
        return made


def _assign(target: ast.expr, value: ast.expr, where: ast.stmt) -> ast.stmt:
    made = ast.Assign([target], value)
    for new in ast.walk(made):
        if isinstance(new, ast.expr | ast.stmt) and not hasattr(new, "lineno"):
            ast.copy_location(new, where)
    return made
