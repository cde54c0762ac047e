"""Name analysis of functions: the names that each branch and loop assigns and reads, and their liveness.

The function must be free of jumps (:mod:`cute_dialect.lang.rewrite.desugaring`), so that control flow follows the text.
Liveness is conservative: it may contain too many names, but a name that is not live after a branch is not merged there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from cute_dialect.errors import Place
from cute_dialect.lang.rewrite.module_state import state_of

NO_NAMES: frozenset[str] = frozenset()


@dataclass(slots=True)
class Site:
    """A branch or loop of the source.

    Attributes:
        names: the names that it assigns.
        roots: the names that it reads or assigns.
        live: the names that may be read after it.
        head: the names that may be read at the start of an iteration.
    """

    kind: str
    path: str
    node: ast.AST
    names: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    live: frozenset[str] = NO_NAMES
    head: frozenset[str] = NO_NAMES
    entering: tuple[int, ...] = ()
    """Indices of the names that get a value at the start of a side or iteration. Others are assigned before any read.
    """
    leaving: tuple[int, ...] = ()
    """Indices of the names that get a value after it."""
    flags: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    """The targets of a ``for``."""
    reads: frozenset[str] = NO_NAMES
    """The names that an iteration may read before it assigns them."""
    once: bool = False
    """True if the first iteration of the loop always runs."""
    text: str = ""
    attributes: frozenset[str] = NO_NAMES
    """The attribute names in its text. If an object is a module they name the module's globals."""
    globals: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The globals of its function."""
    memory: dict[object, Any] = field(default_factory=dict[object, Any])

    @property
    def place(self) -> Place:
        """Its position in the source."""
        return place_in(self.path, self.node)

    def rooted(self, values: Mapping[str, Any]) -> list[Any]:
        """Return the values of the names in ``roots`` (locals or globals).

        If one is a module, the state that the text may reach through it is added.
        """
        found: list[Any] = []
        for name in self.roots:
            if name in values:
                found.append(values[name])
            elif name in self.globals:
                found.append(self.globals[name])
        for value in [*found]:
            if type(value) is ModuleType:
                found += state_of(value, self.attributes)
        return found


def place_in(path: str, node: Any) -> Place:
    """Return the position of a node in a file."""
    return Place(path, node.lineno, node.col_offset + 1, node.end_lineno or 0, (node.end_col_offset or 0) + 1)


@dataclass(slots=True)
class Names:
    """The names that a node sets, deletes and reads in the scope of its function.

    For nested functions and classes this includes the names that they read. Names that they declare ``nonlocal`` count
    as set, because a call of such a function sets them.
    """

    stores: frozenset[str] = NO_NAMES
    loads: frozenset[str] = NO_NAMES
    captured: frozenset[str] = NO_NAMES
    outer: frozenset[str] = NO_NAMES
    """Names declared ``nonlocal``, here or in nested functions, that are not local to those functions."""
    module: frozenset[str] = NO_NAMES
    """Names declared ``global`` here."""
    attributes: frozenset[str] = NO_NAMES
    """Names of attributes, including those in nested functions."""
    direct: frozenset[str] = NO_NAMES
    """Names set here rather than only in nested functions."""
    declared: frozenset[str] = NO_NAMES
    """Names declared ``nonlocal`` here."""


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_NAMING = (ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping)
_ON_THEIR_OWN = (ast.stmt, *_SCOPES, *_COMPREHENSIONS, *_NAMING)
"""Nodes whose names differ from the union of their parts, or are queried repeatedly."""


def names_in(node: Any) -> Names:
    """Return the names of a node. The result is cached on the node."""
    known = getattr(node, "_names", None)
    if known is None:
        known = node._names = _names_in(node)
    return known


def forget_names(function: ast.AST) -> None:
    """Clear the cached names of all nodes of a function that is about to be rewritten."""
    for node in ast.walk(function):
        node.__dict__.pop("_names", None)


class _Found:
    """Accumulator for the names of a node."""

    __slots__ = ("attributes", "captured", "declared", "direct", "loads", "module", "outer", "stores")

    def __init__(self) -> None:
        self.stores, self.loads, self.captured, self.attributes = set[str](), set[str](), set[str](), set[str]()
        self.direct = set[str]()
        self.outer, self.module, self.declared = NO_NAMES, NO_NAMES, NO_NAMES

    def add(self, node: ast.AST) -> None:
        cls = type(node)
        if cls is ast.Name:
            if type(node.ctx) is ast.Load:  # pyright: ignore
                self.loads.add(node.id)  # pyright: ignore
            else:
                self.stores.add(node.id)  # pyright: ignore
                self.direct.add(node.id)  # pyright: ignore
        elif cls is ast.Constant:
            pass
        elif isinstance(node, _ON_THEIR_OWN):
            found = names_in(node)
            self.stores |= found.stores
            self.loads |= found.loads
            self.captured |= found.captured
            self.outer |= found.outer
            self.module |= found.module
            self.attributes |= found.attributes
            self.direct |= found.direct
            self.declared |= found.declared
        else:
            if cls is ast.Attribute:
                self.attributes.add(node.attr)  # pyright: ignore
            self.parts(node)

    def parts(self, node: ast.AST) -> None:
        """Add the names of the child nodes."""
        for field_name in node._fields:
            value = getattr(node, field_name, None)
            if isinstance(value, list):
                for part in value:  # pyright: ignore[reportUnknownVariableType]
                    if isinstance(part, ast.AST):
                        self.add(part)
            elif isinstance(value, ast.AST):
                self.add(value)


def _names_in(node: ast.AST) -> Names:
    if isinstance(node, ast.Nonlocal):
        return Names(outer=frozenset(node.names), declared=frozenset(node.names))
    if isinstance(node, ast.Global):
        return Names(module=frozenset(node.names))
    found = _Found()
    if isinstance(node, ast.Name | ast.Attribute):
        found.add(node)
    else:
        found.parts(node)
    stores, loads, captured, module, outer = found.stores, found.loads, found.captured, found.module, found.outer
    direct, declared = found.direct, found.declared
    if isinstance(node, _SCOPES):
        own = stores
        inner = loads | captured
        if isinstance(node, ast.ClassDef):
            inner |= own
        else:
            outer -= parameters(node) | (found.direct - found.declared - module)
        captured = inner | outer
        module = NO_NAMES
        defaults = node.bases if isinstance(node, ast.ClassDef) else [node.args]
        stores = {c.target.id for d in defaults for c in ast.walk(d) if isinstance(c, ast.NamedExpr)}
        if not isinstance(node, ast.Lambda):
            stores.add(node.name)
        direct, declared = {*stores}, NO_NAMES
        stores |= outer
        loads = set(captured)
    elif isinstance(node, _COMPREHENSIONS):
        targets = {n for g in node.generators for n in names_in(g.target).stores}
        stores -= targets
        direct -= targets
        # A comprehension reads its names immediately, a generator expression later.
        if isinstance(node, ast.GeneratorExp):
            captured |= loads
    elif isinstance(node, ast.ExceptHandler):
        if node.name:
            stores.add(node.name)
            direct.add(node.name)
    elif isinstance(node, ast.Import | ast.ImportFrom):
        imported = {a.asname or a.name.split(".")[0] for a in node.names}
        stores |= imported
        direct |= imported
    elif isinstance(node, ast.MatchAs | ast.MatchStar):
        if node.name:
            stores.add(node.name)
            direct.add(node.name)
    elif isinstance(node, ast.MatchMapping) and node.rest:
        stores.add(node.rest)
        direct.add(node.rest)
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        loads.add(node.target.id)
    return Names(
        frozenset(stores), frozenset(loads), frozenset(captured), outer, module, frozenset(found.attributes),
        frozenset(direct), declared,
    )  # fmt: skip


def parameters(node: Any) -> frozenset[str]:
    args: ast.arguments = node.args
    every = (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg)
    return frozenset(a.arg for a in every if a is not None)


def stored(nodes: Iterable[ast.AST]) -> frozenset[str]:
    return frozenset[str]().union(*(names_in(n).stores for n in nodes))


def free_stores(function: Any) -> list[str]:
    """Return variables of enclosing functions that only nested functions declare ``nonlocal``.

    Branches and loops set them, so this function must declare them too.
    """
    names = [names_in(s) for s in function.body]
    outer, direct, declared, module = (
        frozenset[str]().union(*sets) for sets in zip(*((n.outer, n.direct, n.declared, n.module) for n in names))
    )
    return sorted(outer - declared - module - parameters(function) - direct)


_READS_ALL = frozenset(("locals", "eval", "exec", "vars", "dir"))


class _Analysis:
    """Backward analysis that builds the sites of one function."""

    def __init__(self, function: Any, path: str, mangle: Any, always: frozenset[str], exclude: frozenset[str]):
        self.path = path
        self.mangle = mangle
        self.always = always
        self.exclude = exclude
        self.quiet = False
        self.gens: dict[int, frozenset[str]] = {}

    def gen(self, loop: Any) -> frozenset[str]:
        """Return the names that an iteration of a loop reads from before it.

        The live names of a suite are ``G | (live - K)``, so the fixed point of a loop needs only its ``G``.  It is
        computed once, without building sites, which keeps nested loops linear.
        """
        found = self.gens.get(id(loop))
        if found is None:
            was, self.quiet = self.quiet, True
            found = self.gens[id(loop)] = self.suite(loop.body, NO_NAMES)
            self.quiet = was
        return found

    def site(
        self,
        kind: str,
        node: Any,
        parts: Iterable[ast.AST],
        out: frozenset[str],
        head: frozenset[str] = NO_NAMES,
        reads: frozenset[str] = NO_NAMES,
        into: frozenset[str] = NO_NAMES,
        **more: Any,
    ) -> None:
        if self.quiet:
            return
        parts = list(parts)
        stores = stored(parts) - self.exclude
        names = sorted(stores)
        leaving = tuple(i for i, n in enumerate(names) if n in out or n in self.always)
        entering = tuple(i for i, n in enumerate(names) if n in out or n in head or n in into or n in self.always)
        loads = frozenset[str]().union(*(names_in(n).loads for n in parts))
        attributes = frozenset[str]().union(*(names_in(n).attributes for n in parts))
        mangle = self.mangle
        node._site = Site(
            kind, self.path, getattr(node, "_head", None) or getattr(node, "test", None) or getattr(node, "iter", node),
            tuple(mangle(n) for n in names), tuple(mangle(n) for n in sorted(stores | loads)),
            frozenset(mangle(n) for n in (out | self.always) & stores),
            head=frozenset(mangle(n) for n in (head | self.always) & stores),
            reads=frozenset(mangle(n) for n in (reads | self.always) & stores),
            entering=entering, leaving=leaving, attributes=attributes, **more,
        )  # fmt: skip

    def suite(self, body: list[ast.stmt], live: frozenset[str]) -> frozenset[str]:
        for statement in reversed(body):
            live = self.statement(statement, live)
        return live

    def statement(self, s: Any, out: frozenset[str]) -> frozenset[str]:
        method = getattr(self, type(s).__name__, None)
        if method is not None:
            return method(s, out)
        found = names_in(s)
        return (out - (found.stores - found.loads)) | found.loads

    def Delete(self, s: ast.Delete, out: frozenset[str]) -> frozenset[str]:
        return out | names_in(s).loads | names_in(s).stores

    def If(self, s: ast.If, out: frozenset[str]) -> frozenset[str]:
        sides = self.suite(s.body, out) | self.suite(s.orelse, out)
        self.site("if", s, [*s.body, *s.orelse], out, into=sides, text=getattr(s, "_text", ""))
        into = sides | names_in(s.test).loads
        return into - (names_in(s.test).stores - names_in(s.test).loads)

    def While(self, s: ast.While, out: frozenset[str]) -> frozenset[str]:
        if hasattr(s, "_dead"):
            return out
        test = names_in(s.test)
        reads = self.gen(s) | test.loads
        once = hasattr(s, "_once")
        head = (out | reads) - (test.stores - test.loads)
        if not self.quiet:
            self.suite(s.body, head)
        self.site("while", s, [s.test, *s.body], out, head=head, flags=getattr(s, "_flags", ()), once=once, reads=reads)
        return head

    def For(self, s: ast.For, out: frozenset[str]) -> frozenset[str]:
        flags: tuple[str, ...] = getattr(s, "_flags", ())
        reads = self.gen(s) - names_in(s.target).stores
        head = out.union(flags) | reads
        if not self.quiet:
            self.suite(s.body, head)
        targets = tuple(self.mangle(n) for n in s._targets)  # pyright: ignore
        self.site("for", s, s.body, out, head=head, flags=flags, targets=targets, reads=reads)
        return head | names_in(s.iter).loads

    def With(self, s: ast.With, out: frozenset[str]) -> frozenset[str]:
        into = self.suite(s.body, out)
        self.site("with", s, [*s.items, *s.body], out, into=into)
        for item in s.items:
            into |= names_in(item).loads
        return into

    def Try(self, s: Any, out: frozenset[str]) -> frozenset[str]:
        final = self.suite(s.finalbody, out)
        later = final | out
        for handler in s.handlers:
            later |= self.suite(handler.body, final | out) | names_in(handler).loads
        orelse = self.suite(s.orelse, later)
        return self.suite(s.body, orelse | later) | later

    TryStar = Try

    def Match(self, s: ast.Match, out: frozenset[str]) -> frozenset[str]:
        into = out
        for case in s.cases:
            into |= self.suite(case.body, out) | names_in(case).loads
        return into | names_in(s.subject).loads


def analyse(function: Any, path: str, mangle: Any, never_local: frozenset[str] = NO_NAMES) -> None:
    """Attach a :class:`Site` to every branch and loop of a function without jumps (attribute ``_site``)."""
    body: list[ast.stmt] = function.body
    captured = frozenset[str]().union(*(names_in(s).captured for s in body))
    loads = frozenset[str]().union(*(names_in(s).loads for s in body))
    outer = frozenset[str]().union(*(names_in(s).outer for s in body))
    exclude = frozenset[str]().union(*(names_in(s).module for s in body))
    every = stored(body) if loads & _READS_ALL else NO_NAMES
    _Analysis(function, path, mangle, captured | outer | every | never_local, exclude).suite(body, NO_NAMES)
