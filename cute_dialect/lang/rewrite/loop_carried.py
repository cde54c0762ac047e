"""Loops with explicit carried values, ``for k, tmp in range_(n, iter_args=[tmp])``, rewritten as plain loops.

::

    for k, tmp in range_(n, iter_args=[zero]):         .c = zero; out = .c
        tmp += a[k]                             ->      for k in range_(n):
        out = yield tmp                                     tmp = .c
                                                            tmp += a[k]
                                                            .c = tmp; out = .c

After the rewriting the function is not a generator, and the loop carries ``.c`` like any other name.  A third target
receives the loop's results, as in upstream's ``scf.for_``.  With several ``iter_args`` the second target is a tuple.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from cute_dialect.lang.rewrite.source import FunctionNode
from cute_dialect.lang.tracing.errors import Place, SyntaxErrorInKernel

__all__ = ["without_carries"]


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
        return _assign(_again(target), ast.Name(self.name, ast.Load()), where)

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


def _again(target: ast.expr) -> ast.expr:
    import copy

    return copy.deepcopy(target)
