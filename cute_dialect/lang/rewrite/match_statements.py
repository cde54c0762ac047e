"""``match`` statements as chains of ``if``, for patterns whose comparisons may be known only at run time.

Tests of the subject's *structure* (the length of a tuple, its class, its keys) are decided at compile time and come
first.  Comparisons of values follow.  ``case (0, y) if y > 2: …`` on ``m`` becomes::

    .g = False
    if <m is a sequence of 2>:
        .v = m[0] == 0
        if .v: y = m[1]
        .g = .v and m[1] > 2        # the guard sees the captured values, under names of their own
    if .g: y = m[1]; body
    else: …                         # the remaining cases

A call of a constant, ``"is_sequence"(m, 2)``, becomes a call of that method of the runtime hooks when expressions are
rewritten.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Patterns", "asked"]

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
