"""Rewriting of expressions that may involve run-time values into calls of the runtime hooks, named ``.rt``.

``a and b`` becomes ``.rt.and_(a, lambda: b)``, ``a < b < c`` becomes
``.rt.chain(("<", "<"), a, lambda: b, lambda: c)``, a ternary ``.rt.pick(c, lambda: a, lambda: b)``, and a call ``f(x)``
becomes ``.rt.callee(f)(x)``.  An operand that sets a name stays in its frame; this works only if the preceding
condition is static (F153).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from keyword import iskeyword
from typing import Any

from cute_dialect.lang.rewrite.desugaring import LOAD, STORE, Counter, at
from cute_dialect.lang.rewrite.source import BOUND_TO_THE_FRAME
from cute_dialect.lang.tracing.errors import SyntaxErrorInKernel

RUNTIME = ".rt"
_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_ASKED = {ast.Eq: "eq", ast.NotEq: "ne", ast.In: "contains", ast.NotIn: "lacks"}
_OF_THE_FRAME = frozenset(word for word in BOUND_TO_THE_FRAME if word.isidentifier() and not iskeyword(word))
"""Builtins that inspect the frame they are called from."""


def load(name: str, position: dict[str, Any]) -> ast.Name:
    """Return a name that is read."""
    return ast.Name(name, LOAD, **position)


def store(name: str, position: dict[str, Any]) -> ast.Name:
    """Return a name that is set."""
    return ast.Name(name, STORE, **position)


def method(of: str, name: str, args: list[ast.expr], position: dict[str, Any]) -> ast.Call:
    return ast.Call(ast.Attribute(load(of, position), name, LOAD, **position), args, [], **position)


def deferred(body: ast.expr, position: dict[str, Any]) -> ast.Lambda:
    return ast.Lambda(
        ast.arguments(posonlyargs=[], args=[], vararg=None, kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[]),
        body, **position,
    )  # fmt: skip


def _stays(nodes: Sequence[ast.expr]) -> bool:
    """Return True if expressions set names or suspend, so that they cannot move into a function of their own."""
    todo: list[ast.AST] = [*nodes]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.NamedExpr | ast.Yield | ast.YieldFrom | ast.Await):
            return True
        if isinstance(node, ast.Call) and _is_of_the_frame(node):
            return True
        if not isinstance(node, ast.Lambda):
            todo += ast.iter_child_nodes(node)
    return False


def _is_of_the_frame(node: ast.Call) -> bool:
    """Return True if a call inspects its own frame, as ``super()`` without arguments does."""
    func = node.func
    return isinstance(func, ast.Name) and func.id in _OF_THE_FRAME and not (func.id == "super" and node.args)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


class Expressions:
    """Rewriter of expressions. It changes nodes in place where possible."""

    path: str
    counter: Counter
    moves = False
    """True if no expression of the function is bound to its frame."""
    handles: list[str]
    """The enclosing branches and loops, outermost first."""

    def expression(self, node: Any) -> Any:
        """Return the rewritten expression."""
        cls = type(node)
        if cls is ast.Name or cls is ast.Constant:
            return node
        own = getattr(self, "_x" + cls.__name__, None)
        return own(node) if own is not None else self.parts(node)

    def stays(self, *nodes: ast.expr) -> bool:
        """Return True if expressions are bound to their frame."""
        return not self.moves and _stays(nodes)

    def parts(self, node: Any) -> Any:
        """Rewrite the child expressions of a node."""
        for name in node._fields:
            value = getattr(node, name)
            if isinstance(value, ast.expr):
                new = self.expression(value)
                if new is not value:
                    setattr(node, name, new)
            elif isinstance(value, list):
                setattr(node, name, [self.expression(v) if isinstance(v, ast.AST) else v for v in value])  # pyright: ignore
        return node

    def condition(self, node: Any) -> Any:
        """Return the rewritten expression, of which only the truth value is used."""
        if isinstance(node, ast.BoolOp):
            return self._xBoolOp(node, truth=True)
        return self.expression(node)

    def _xBoolOp(self, node: ast.BoolOp, *, truth: bool = False) -> ast.expr:
        conjunction = isinstance(node.op, ast.And)
        name_of = ("all_" if truth else "and_") if conjunction else ("any_" if truth else "or_")
        stays = [self.stays(v) for v in node.values]
        values = [self.condition(v) if truth else self.expression(v) for v in node.values]
        made = values[-1]
        for k in range(len(values) - 2, -1, -1):
            first = values[k]
            position = at(first)
            if not any(stays[k + 1 :]):
                made = method(RUNTIME, name_of, [first, deferred(made, position)], position)
                continue
            name = f".t{self.counter.next()}"
            known = method(RUNTIME, "sure", [ast.NamedExpr(store(name, position), first, **position)], position)
            yes, no = (made, load(name, position)) if conjunction else (load(name, position), made)
            made = ast.IfExp(known, yes, no, **position)
        return made

    def _xUnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.op, ast.Not):
            return method(RUNTIME, "not_", [self.condition(node.operand)], at(node))
        return self.parts(node)

    def _xIfExp(self, node: ast.IfExp) -> ast.expr:
        stays = self.stays(node.body, node.orelse)
        position = at(node)
        test, body, orelse = self.condition(node.test), self.expression(node.body), self.expression(node.orelse)
        if stays:
            return ast.IfExp(method(RUNTIME, "sure", [test], position), body, orelse, **position)
        return method(RUNTIME, "pick", [test, deferred(body, at(body)), deferred(orelse, at(orelse))], position)

    def _xCompare(self, node: ast.Compare) -> ast.expr:
        position = at(node)
        operands = [node.left, *node.comparators]
        if len(node.ops) == 1:
            asked = _ASKED.get(type(node.ops[0]))
            if isinstance(node.ops[0], ast.Is | ast.IsNot) and not any(_is_none(x) for x in operands):
                word = ast.Constant(_OPERATORS[type(node.ops[0])], **position)
                return method(RUNTIME, "compare", [word, *map(self.expression, operands)], position)
            constant = any(isinstance(x, ast.Constant) for x in operands)
            if asked is None and any(isinstance(x, ast.Constant) and isinstance(x.value, bool) for x in operands):
                word = ast.Constant(_OPERATORS[type(node.ops[0])], **position)
                return method(RUNTIME, "compare", [word, *map(self.expression, operands)], position)
            if asked is None or (constant and asked in ("eq", "ne")):
                return self.parts(node)
            return method(RUNTIME, asked, [self.expression(x) for x in operands], position)
        stays = self.stays(*operands[2:])
        rewritten = [self.expression(x) for x in operands]
        if stays:
            return self.static_chain(node, rewritten, position)
        words = ast.Tuple([ast.Constant(_OPERATORS[type(op)], **position) for op in node.ops], LOAD, **position)
        later: list[ast.expr] = [deferred(x, position) for x in rewritten[2:]]
        return method(RUNTIME, "chain", [words, rewritten[0], rewritten[1], *later], position)

    def static_chain(self, node: ast.Compare, operands: list[Any], position: dict[str, Any]) -> ast.expr:
        """Return a comparison chain whose later operands set names. All comparisons but the last must be static."""
        names = [f".t{self.counter.next()}" for _ in operands]
        made: ast.expr | None = None
        for k in range(len(node.ops) - 1, -1, -1):
            left: ast.expr = load(names[k], position)
            if k == 0:
                left = operands[0]
            right: ast.expr = operands[k + 1]
            if k < len(node.ops) - 1:
                right = ast.NamedExpr(store(names[k + 1], position), right, **position)
            word = ast.Constant(_OPERATORS[type(node.ops[k])], **position)
            here = method(RUNTIME, "compare", [word, left, right], position)
            if made is None:
                made = here
            else:
                result = f".t{self.counter.next()}"
                known = method(RUNTIME, "sure", [ast.NamedExpr(store(result, position), here, **position)], position)
                made = ast.IfExp(known, made, load(result, position), **position)
        assert made is not None
        return made

    def _xCall(self, node: ast.Call) -> ast.expr:
        func = node.func
        if isinstance(func, ast.Constant):  # A marker from cute_dialect.lang.rewrite.desugaring.
            return method(RUNTIME, str(func.value), [self.expression(x) for x in node.args], at(node))
        if _is_of_the_frame(node):
            return self.parts(node)
        self.parts(node)
        placed = any(k.arg in ("loc", "ip") for k in node.keywords)
        node.func = method(RUNTIME, "callee_of_op" if placed else "callee", [node.func], at(func))
        return node

    def _xJoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        if not any(isinstance(v, ast.FormattedValue) for v in node.values):
            return node
        position = at(node)
        parts: list[ast.expr] = []
        for value in node.values:
            if not isinstance(value, ast.FormattedValue):
                parts.append(value)
                continue
            spec = ast.Constant("", **position) if value.format_spec is None else self.expression(value.format_spec)
            conversion = ast.Constant(value.conversion, **position)
            parts.append(ast.Tuple([self.expression(value.value), conversion, spec], LOAD, **position))
        return method(RUNTIME, "text", parts, position)

    def _xLambda(self, node: ast.Lambda) -> ast.expr:
        node.args = self.defaults(node.args)
        handles, self.handles = self.handles, []
        node.body = self.expression(node.body)
        self.handles = handles
        return node

    def defaults(self, args: ast.arguments) -> ast.arguments:
        """Rewrite parameter defaults, which belong to the enclosing scope."""
        args.defaults = [self.expression(d) for d in args.defaults]
        args.kw_defaults = [None if d is None else self.expression(d) for d in args.kw_defaults]
        return args

    def _xcomprehension(self, node: ast.comprehension) -> ast.comprehension:
        if node.is_async:
            # unreachable: async functions are rejected earlier
            raise SyntaxErrorInKernel("F150", "'async' is not supported in a kernel")
        node.iter = self.expression(node.iter)
        node.ifs = [method(RUNTIME, "clause", [self.condition(c)], at(c)) for c in node.ifs]
        return node

    def _xYield(self, node: ast.Yield) -> ast.expr:
        position = at(node)
        value = ast.Constant(None, **position) if node.value is None else self.expression(node.value)
        handles = ast.Tuple([load(h, position) for h in self.handles], LOAD, **position)
        node.value = method(RUNTIME, "yielded", [value, handles], position)
        return node

    def _xYieldFrom(self, node: ast.YieldFrom) -> ast.expr:
        position = at(node)
        handles = ast.Tuple([load(h, position) for h in self.handles], LOAD, **position)
        node.value = method(RUNTIME, "yielded_from", [self.expression(node.value), handles], position)
        return node

    def _xAwait(self, node: ast.Await) -> ast.expr:
        # unreachable: async functions are rejected earlier
        raise SyntaxErrorInKernel("F150", "'await' is not supported in a kernel")
