"""Conversion of Python functions into traceable twins, once per code object.

The twin has the globals, closure, defaults and names of the function.  Its code calls the methods of a runtime object,
named ``.rt``, wherever a value might be known only at run time.  The caller of the conversion creates that object; it
is a :class:`cute_dialect.lang.control.runtime.Hooks`.

``a and b`` becomes ``.rt.and_(a, lambda: b)``, ``a < b < c`` becomes
``.rt.chain(("<", "<"), a, lambda: b, lambda: c)``, a ternary ``.rt.pick(c, lambda: a, lambda: b)``, and a call ``f(x)``
becomes ``.rt.callee(f)(x)``.  An operand that sets a name stays in its frame; this works only if the preceding
condition is static (F153).  An ``if`` becomes::

    .s1 = .rt.If(test, 0)                       # 0: the number of the site
    for .k1 in .s1:                             # static: one side; run time: both, one after the other
        if .k1 > 1:                             # run time: each side starts with the values from before the branch
            x, = .s1.enter(.rt.locals())        # names that may be read before they are assigned
            if x is .rt.U: del x                # restore unbound names
        if .k1 & 1: …
        else: …
        if .k1 > 1: .s1.leave(.rt.locals())
    if .k1 > 1:
        x, = .s1.results()                      # names that may be read later
        if x is .rt.U: del x

Loops are rewritten likewise.  No code is duplicated, locals stay locals of one frame, and new nodes
keep the positions of those they replace.
"""

from __future__ import annotations

import ast
import weakref
from collections.abc import Callable, Mapping, Sequence
from inspect import CO_GENERATOR
from keyword import iskeyword
from types import CellType, CodeType, FunctionType
from typing import Any

from cute_dialect.errors import CompileError
from cute_dialect.lang.rewrite.analysis import Site, analyse, forget_names, free_stores, names_in, place_in, stored
from cute_dialect.lang.rewrite.desugaring import DELETE, LOAD, STORE, Counter, at, remove_jumps, without_carries
from cute_dialect.lang.rewrite.source import (
    BOUND_TO_THE_FRAME,
    FunctionNode,
    class_of,
    codes_in,
    compiled_in,
    node_of,
    text_of,
)
from cute_dialect.lang.tracing.errors import SyntaxErrorInKernel
from cute_dialect.lang.tracing.tracer import called

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


Position = dict[str, Any]
_WITH_SUITES = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match)


def _if(test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt], p: Position) -> ast.stmt:
    return ast.If(test, body, orelse, **p) if body else ast.Pass(**p)


def _run_time(flag: str, p: Position) -> ast.expr:
    return ast.Compare(load(flag, p), [ast.Gt()], [ast.Constant(1, **p)], **p)


def _rolled(handle: str, p: Position) -> ast.expr:
    return ast.Attribute(load(handle, p), "rolled", LOAD, **p)


def _enters(handle: str, p: Position) -> ast.expr:
    return ast.Attribute(load(handle, p), "enters", LOAD, **p)


def _locals(p: Position) -> ast.expr:
    return method(RUNTIME, "locals", [], p)


def name_super(function: ast.FunctionDef) -> None:
    """Replace ``super()`` by ``super(__class__, self)``, which also works in a function of its own."""
    args = [*function.args.posonlyargs, *function.args.args]
    todo: list[ast.AST] = [*function.body] if args else []
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            p = at(node)
            node.args = [load("__class__", p), load(args[0].arg, p)]
        todo += ast.iter_child_nodes(node)


class Rewriter(Expressions):
    """Rewriter of a function and its nested functions. ``sites`` are its branches and loops, by number."""

    def __init__(self, path: str, owner: str | None, *, tight: bool = False):
        self.path = path
        self.tight = tight
        self.owner = owner
        self.counter = Counter()
        self.sites: list[Site] = []
        self.handles: list[str] = []
        self.never: frozenset[str] = frozenset()

    def function(self, node: FunctionNode) -> None:
        """Rewrite a definition in place."""
        if isinstance(node, ast.AsyncFunctionDef):
            raise self.refused(node, "'async' functions are not supported in a kernel")
        self.moves = self.moves or getattr(node, "_moves", False)
        handles, self.handles = self.handles, []
        if isinstance(node, ast.Lambda):
            node.body = self.expression(node.body)
        else:
            never = self.never
            name_super(node)
            forget_names(node)  # The enclosing function has cached them.
            remove_jumps(node, self.path, self.counter, tight=self.tight)
            free = free_stores(node)
            analyse(node, self.path, self.mangled)
            self.never = frozenset[str]().union(*(names_in(s).module for s in node.body))
            node.body = self.suite(node.body)
            if free:
                documented = ast.get_docstring(node, clean=False) is not None
                node.body.insert(int(documented), ast.Nonlocal(free, **at(node.body[0])))
            self.never = never
        self.handles = handles

    def mangled(self, name: str) -> str:
        """Return a private name as mangled by the enclosing class."""
        if self.owner is None or not name.startswith("__") or name.endswith("__"):
            return name
        owner = self.owner.lstrip("_")
        return f"_{owner}{name}" if owner else name

    def refused(self, node: ast.AST, text: str, code: str = "F150") -> SyntaxErrorInKernel:
        """Return the error for an unsupported construct."""
        return SyntaxErrorInKernel(code, text, place=place_in(self.path, node))

    def suite(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Rewrite statements."""
        made: list[ast.stmt] = []
        for s in body:
            if refused := self.never & self.own_stores(s):
                p = at(s)
                for name in sorted(refused):
                    made.append(ast.Expr(method(RUNTIME, "stores_global", [ast.Constant(name, **p)], p), **p))
            own = getattr(self, "_s" + type(s).__name__, None)
            made += own(s) if own is not None else [self.parts(s)]
        return made

    def own_stores(self, s: Any) -> frozenset[str]:
        """Return the names that a statement sets, excluding its nested statements."""
        if not isinstance(s, _WITH_SUITES):
            return names_in(s).stores
        parts: list[ast.AST] = [getattr(s, n) for n in ("test", "iter", "subject") if hasattr(s, n)]
        parts += getattr(s, "items", ())
        parts += [part for case in getattr(s, "cases", ()) for part in (case.pattern, case.guard) if part is not None]
        named = [handler.name for handler in getattr(s, "handlers", ()) if handler.name]
        return stored(parts).union(named)

    def names(self, *words: str) -> list[str]:
        """Return names for a branch or loop. Consecutive ones share names, because few locals are faster to read."""
        return [f".{word}{len(self.handles)}" for word in words]

    def number(self, node: Any, p: Position) -> ast.expr:
        """Return the number of a statement's site."""
        self.sites.append(node._site)
        return ast.Constant(len(self.sites) - 1, **p)

    def restored(self, site: Site, which: tuple[int, ...], value: ast.expr, p: Position) -> list[ast.stmt]:
        """Return statements that assign the result of a call to names of a site, and delete those without a value."""
        names = [site.names[i] for i in which]
        if not names:
            return [ast.Expr(value, **p)]
        targets: list[ast.expr] = [store(n, p) for n in names]
        made: list[ast.stmt] = [ast.Assign([ast.Tuple(targets, STORE, **p)], value, **p)]
        ops: list[ast.cmpop] = [ast.Is()]
        unbound: list[ast.expr] = [ast.Attribute(load(RUNTIME, p), "U", LOAD, **p)]
        for n in names:
            test = ast.Compare(load(n, p), ops, unbound, **p)
            made.append(ast.If(test, [ast.Delete([ast.Name(n, DELETE, **p)], **p)], [], **p))
        return made

    # --------------------------------------------------------------------------------------------------- branches

    def _sIf(self, s: ast.If) -> list[ast.stmt]:
        p = at(s.test)
        site: Site = s._site  # pyright: ignore
        handle, side = self.names("s", "k")
        test = self.condition(s.test)
        self.handles.append(handle)
        body, orelse = self.suite(s.body), self.suite(s.orelse)
        self.handles.pop()
        odd = ast.BinOp(load(side, p), ast.BitAnd(), ast.Constant(1, **p), **p)
        chosen = ast.If(odd, body, orelse, **p)
        return self.branch(s, method(RUNTIME, "If", [test, self.number(s, p)], p), [chosen], site, handle, side, p)

    def branch(
        self, s: Any, made: ast.expr, inner: list[ast.stmt], site: Site, handle: str, side: str, p: Position
    ) -> list[ast.stmt]:
        """Return a branch, in which ``inner`` runs once per side."""
        enter = self.restored(site, site.entering, method(handle, "enter", [_locals(p)], p), p)
        leave = ast.Expr(method(handle, "leave", [_locals(p)], p), **p)
        results = self.restored(site, site.leaving, method(handle, "results", [], p), p)
        body = [_if(_run_time(side, p), enter, [], p), *inner, _if(_run_time(side, p), [leave], [], p)]
        return [
            ast.Assign([store(handle, p)], made, **p),
            ast.For(store(side, p), load(handle, p), body, [], **p),
            _if(_run_time(side, p), results, [], p),
        ]

    def _sWith(self, s: ast.With) -> list[ast.stmt]:
        if len(s.items) > 1:
            inner = ast.With([*s.items[1:]], s.body, **at(s.items[1].context_expr))
            inner._site = s._site  # pyright: ignore
            s.items, s.body = s.items[:1], [inner]
        (item,) = s.items
        p = at(item.context_expr)
        handle, side, manager = self.names("s", "k", "w")
        context = self.expression(item.context_expr)
        self.handles.append(handle)
        s.body = self.suite(s.body)
        self.handles.pop()
        item.context_expr = method(RUNTIME, "manager", [load(manager, p)], p)
        if item.optional_vars is not None:
            item.optional_vars = self.expression(item.optional_vars)
        odd = ast.BinOp(load(side, p), ast.BitAnd(), ast.Constant(1, **p), **p)
        inside: list[ast.stmt] = [ast.If(odd, [s], [], **p)]
        made = method(RUNTIME, "With", [load(manager, p), self.number(s, p)], p)
        site: Site = s._site  # pyright: ignore
        return [ast.Assign([store(manager, p)], context, **p), *self.branch(s, made, inside, site, handle, side, p)]

    def _sMatch(self, s: ast.Match) -> list[ast.stmt]:
        s.subject = self.expression(s.subject)
        for case in s.cases:
            if case.guard is not None:
                case.guard = method(RUNTIME, "sure", [self.expression(case.guard)], at(case.guard))
            case.body = self.suite(case.body)
        return [s]

    # ------------------------------------------------------------------------------------------------------ loops

    def _sWhile(self, s: ast.While) -> list[ast.stmt]:
        if hasattr(s, "_dead"):
            return [s]
        p = at(s.test)
        handle, side, error = self.names("s", "k", "e")
        site: Site = s._site  # pyright: ignore
        self.handles.append(handle)
        test = method(handle, "test", [self.condition(s.test), _locals(p)], p)
        body = self.suite(s.body)
        self.handles.pop()
        enter = self.restored(site, site.entering, method(handle, "enter", [], p), p)
        turn: list[ast.stmt] = [
            _if(_enters(handle, p), enter, [], p), ast.If(test, body, [], **p),
            _if(_rolled(handle, p), [ast.Expr(method(handle, "leave", [_locals(p)], p), **p)], [], p),
        ]  # fmt: skip
        return self.loop(s, method(RUNTIME, "While", [self.number(s, p), _locals(p)], p), turn, handle, side, error, p)

    def _sFor(self, s: ast.For) -> list[ast.stmt]:
        p = at(s.iter)
        handle, error = self.names("s", "e")
        assert isinstance(s.target, ast.Name)
        site: Site = s._site  # pyright: ignore
        iterable = self.expression(s.iter)
        self.handles.append(handle)
        body = self.suite(s.body)
        self.handles.pop()
        enter = self.restored(site, site.entering, method(handle, "enter", [], p), p)
        leave: list[ast.stmt] = [ast.Expr(method(handle, "leave", [_locals(p)], p), **p)]
        over: list[ast.stmt] = []
        flags: tuple[str, ...] = s._flags  # pyright: ignore
        if flags:
            ended = method(handle, "over", [ast.Tuple([load(f, p) for f in flags], LOAD, **p)], p)
            over = [ast.If(ended, [ast.Break(**p)], [], **p)]
        turn: list[ast.stmt] = [_if(_enters(handle, p), enter, [], p), *body, _if(_rolled(handle, p), leave, over, p)]
        made = method(RUNTIME, "For", [iterable, self.number(s, p), _locals(p)], p)
        return self.loop(s, made, turn, handle, s.target.id, error, p)

    def loop(
        self, s: Any, made: ast.expr, turn: list[ast.stmt], handle: str, target: str, error: str, p: Position
    ) -> list[ast.stmt]:
        """Return a loop with body ``turn``, which runs once per iteration, or once per trace of a run-time loop."""
        settled = ast.UnaryOp(ast.Not(), method(handle, "again", [load(error, p)], p), **p)
        again = ast.If(settled, [ast.Raise(None, None, **p)], [], **p)
        caught = ast.ExceptHandler(ast.Attribute(load(handle, p), "caught", LOAD, **p), error, [again], **p)
        results = self.restored(s._site, s._site.leaving, method(handle, "results", [], p), p)
        return [
            ast.Assign([store(handle, p)], made, **p),
            ast.For(store(target, p), load(handle, p), [ast.Try(turn, [caught], [], [], **p)], [], **p),
            _if(_rolled(handle, p), results, [], p),
        ]

    # -------------------------------------------------------------------------------------------- other statements

    def _sAssign(self, s: ast.Assign) -> list[ast.stmt]:
        self.parts(s)
        if len(s.targets) == 1 and isinstance(s.targets[0], ast.Name) and not isinstance(s.value, ast.Constant):
            name = s.targets[0].id
            if name[0] != ".":
                p = at(s.value)
                s.value = method(RUNTIME, "let", [ast.Constant(name, **p), s.value], p)
        elif len(s.targets) == 1 and isinstance(s.targets[0], ast.Tuple):
            names = [t.id if isinstance(t, ast.Name) else "." for t in s.targets[0].elts]
            if not any("." in name for name in names):
                p = at(s.value)
                s.value = method(RUNTIME, "let_each", [ast.Constant(tuple(names), **p), s.value], p)
        return [s]

    def _sAnnAssign(self, s: ast.AnnAssign) -> list[ast.stmt]:
        s.target = self.expression(s.target)
        if s.value is not None:
            p = at(s.annotation)
            kind = deferred(s.annotation, p)
            s.value = method(RUNTIME, "declared", [kind, self.expression(s.value)], at(s.value))
        return [s]

    def _sAssert(self, s: ast.Assert) -> list[ast.stmt]:
        p = at(s)
        message: list[ast.expr] = []
        if s.msg is not None:
            message = [deferred(self.expression(s.msg), at(s.msg))]
        return [ast.Expr(method(RUNTIME, "check", [self.condition(s.test), *message], p), **p)]

    def _sTry(self, s: Any) -> list[ast.stmt]:
        p = at(s.body[0])
        mark = f".b{self.counter.next()}"
        s.body, s.orelse, s.finalbody = self.suite(s.body), self.suite(s.orelse), self.suite(s.finalbody)
        for handler in s.handlers:
            h = at(handler.type or handler)
            if handler.type is not None:
                handler.type = self.expression(handler.type)
            check = ast.Expr(method(RUNTIME, "caught", [load(mark, h)], h), **h)
            handler.body = [check, *self.suite(handler.body)]
        return [ast.Assign([store(mark, p)], method(RUNTIME, "mark", [], p), **p), s]

    _sTryStar = _sTry

    def _sFunctionDef(self, s: ast.FunctionDef) -> list[ast.stmt]:
        s.decorator_list = [self.expression(d) for d in s.decorator_list]
        s.args = self.defaults(s.args)
        self.function(s)
        return [s]

    def _sAsyncFunctionDef(self, s: ast.AsyncFunctionDef) -> list[ast.stmt]:
        raise self.refused(s, "'async' functions are not supported in a kernel")

    def _sAsyncFor(self, s: ast.AST) -> list[ast.stmt]:
        # unreachable: async functions are rejected earlier
        raise self.refused(s, "'async for' is not supported in a kernel")

    def _sAsyncWith(self, s: ast.AST) -> list[ast.stmt]:
        # unreachable: async functions are rejected earlier
        raise self.refused(s, "'async with' is not supported in a kernel")

    def _sClassDef(self, s: ast.ClassDef) -> list[ast.stmt]:
        owner, self.owner = self.owner, s.name
        for inner in s.body:
            if isinstance(inner, ast.FunctionDef):
                self.function(inner)
        self.owner = owner
        return [s]

    def _keep(self, s: ast.stmt) -> list[ast.stmt]:
        return [s]

    _sGlobal = _sNonlocal = _sPass = _sImport = _sImportFrom = _sBreak = _sContinue = _keep


Runtime = Callable[["list[Site]", Mapping[str, Any]], object]
"""Creates the runtime object of a function from its branches and loops and its globals."""

_codes: dict[int, tuple[weakref.ref[CodeType], Conversion | None]] = {}
_made: dict[int, CodeType] = {}


class Conversion:
    """The converted twin of a code object."""

    __slots__ = ("cells", "code", "last", "last_made", "runtime")

    def __init__(self, code: CodeType, module_globals: Mapping[str, object], runtime: Runtime):
        for tight in (False, True):
            node = node_of(code, module_globals)
            if code.co_flags & CO_GENERATOR:
                without_carries(node, module_globals, code.co_filename)
            rewriter = Rewriter(code.co_filename, class_of(code.co_qualname), tight=tight)
            rewriter.function(node)
            try:
                made = compiled_in(node, code, (RUNTIME,))
                break
            except SyntaxError as e:
                if "nested blocks" not in str(e):
                    raise
        else:
            raise SyntaxErrorInKernel(
                "F150", f"'{code.co_name}' nests too many blocks", hint="move inner blocks into other functions"
            )
        self.code = made.replace(co_qualname=code.co_qualname)
        self.runtime = CellType(runtime(rewriter.sites, module_globals))
        self.cells = tuple(-1 if name == RUNTIME else code.co_freevars.index(name) for name in self.code.co_freevars)
        self.last: weakref.ref[FunctionType] | None = None
        self.last_made: FunctionType | None = None
        _made.update((id(c), c) for c in codes_in(self.code))

    def bind(self, f: FunctionType) -> FunctionType:
        """Return the converted twin of a function with this code."""
        called(f)
        made = self.last_made
        if self.last is not None and self.last() is f and made is not None and made.__defaults__ is f.__defaults__:
            made.__kwdefaults__ = f.__kwdefaults__
            return made
        closure = f.__closure__ or ()
        cells = tuple(self.runtime if k < 0 else closure[k] for k in self.cells)
        made = FunctionType(self.code, f.__globals__, f.__name__, f.__defaults__, cells)
        made.__kwdefaults__ = f.__kwdefaults__
        made.__qualname__ = f.__qualname__
        if not closure:
            self.last, self.last_made = weakref.ref(f), made
        return made


def is_converted(code: CodeType) -> bool:
    """Return True for code produced by a conversion."""
    return id(code) in _made


def conversion_of(code: CodeType, module_globals: Mapping[str, object], runtime: Runtime) -> Conversion | None:
    """Return the conversion of a code object, or None if it has no source."""
    key = id(code)
    known = _codes.get(key)
    if known is not None and known[0]() is code:
        return known[1]
    text_of(code)  # Read the text for the digest first: it must not be newer than the converted code.
    try:
        made = Conversion(code, module_globals, runtime)
    except CompileError as e:
        if e.code != "F102":
            raise
        made = None
    codes = _codes  # The module's global may already be gone when the process ends.
    codes[key] = (weakref.ref(code, lambda _: codes.pop(key, None)), made)
    return made
