"""Random functions of numbers, run as plain Python and traced: both must agree, or tracing must reject the function.

The functions use branches, loops, ``break``, ``continue``, early returns, lists, objects, dicts, dataclasses,
ternaries, chained comparisons, assignment expressions, helpers and generators.  Functions, lambdas, classes and
generators are defined at any depth and change enclosing variables through ``nonlocal``.  Lists, dicts and objects are
replaced, exchanged and aliased.

Multiplications are reduced and floats are small dyadic numbers, so 32 bits hold every value exactly and Python's
numbers are the reference.
"""

from __future__ import annotations

import ast
import linecache
import random
import textwrap
from collections import Counter
from typing import Any, NamedTuple

from traced import Traced

from cute_dialect.errors import CuteError
from cute_dialect.lang.values.dtypes import Boolean, Float32, Int32

HEADER = """
from dataclasses import dataclass, replace
from typing import NamedTuple

class Box:
    def __init__(self, v):
        self.v = v
        self.w = 0
        self.q = [v, 1]
    def add(self, x):
        if x > 1:
            self.v = (self.v + x) % 97
        elif x == 0:
            return self.w
        else:
            self.w -= 1
        return self.v

@dataclass
class Point:
    m: int
    n: int

class Pair(NamedTuple):
    p: int
    q: int

def helper(x, s):
    if x > 2:
        s.v += 1
        return x
    return s.w

def clamp(x, low, high=9):
    for _ in range(2):
        if x < low:
            return low
    return high if x > high else x

def swap(t):
    return Pair(t.q, t.p)

def count(n, k):
    i = 0
    while i < n:
        yield i + k
        i += 1

def renewed(v, c):
    if c > 1:
        v = [c, v[0]]
    elif c < 0:
        return [v[1], v[0]]
    v[0] += 1
    return v

def each(values):
    for value in values:
        yield value, value + 1
"""


class _Writer:
    """Generates one random function ``f(a, b, n, h, flag)``."""

    def __init__(self, seed: int):
        self.r = random.Random(seed)
        self.depth = 0
        self.loops = 0
        self.made = 0
        self.nested = 0
        self.ints = ["x", "y", "z"]

    def pick(self, *choices: str) -> str:
        return self.r.choice(choices)

    def atom(self) -> str:
        names = ("a", "b", "s.v", "xs[0]", "xs[1]", "d['p']", "o.m", "t.q", "k", "acc.m", "Acc.n",
            "ys[0]", "ys[1]", "ps[0][1]", "ps[1][0]", "s.q[0]")  # fmt: skip
        return self.pick(*self.ints, *self.ints, *names, str(self.r.randint(-3, 6)))

    def int(self, depth: int = 0) -> str:
        k = self.r.random()
        if depth > 2 or k < 0.34:
            return self.atom()
        x, y = self.int(depth + 1), self.int(depth + 1)
        if k < 0.60:
            return f"({x} {self.pick('+', '-', '+', '-', '&', '|', '^')} {y})"
        if k < 0.68:
            return self.pick(f"({x} * {y}) % 13", f"({x} // 3)", f"({x} % 5)", f"(-{x})", f"({x} ** 2 % 7)")
        if k < 0.76:
            return f"({x} if {self.bool(depth + 1)} else {y})"
        if k < 0.82:
            return self.pick(
                f"min({x}, {y})", f"max({x}, {y})", f"abs({x})", f"sum([{x}, {y}, 1])", f"divmod({x}, 4)[1]"
            )
        if k < 0.88:
            return self.pick(
                f"helper({x}, s)", f"clamp({x}, {self.r.randint(0, 3)})", f"s.add({x})", f"swap(t).p + {x}"
            )
        if k < 0.91:
            return self.pick(f"({x} and {y})", f"({x} or {y})")
        if k < 0.94:
            return self.pick(
                f"add({x})", f"(lambda u: u + {y})({x})", f"sum(e for e in (1, {x}, 2))", f"acc.bump({x})",
                f"(lambda u={x}: acc.bump(u) + {y})()",
            )  # fmt: skip
        return self.pick(
            f"[e + 1 for e in xs][{self.r.randint(0, 1)}]", f"({x}, {y})[{self.r.randint(0, 1)}]", "len(xs)"
        )

    def bool(self, depth: int = 0) -> str:
        k = self.r.random()
        x, y = self.int(depth + 2), self.int(depth + 2)
        if depth > 2 or k < 0.5:
            return f"({x} {self.pick('<', '>', '==', '!=', '<=', '>=')} {y})"
        if k < 0.62:
            return f"({self.bool(depth + 1)} {self.pick('and', 'or')} {self.bool(depth + 1)})"
        if k < 0.70:
            return f"(not {self.bool(depth + 1)})"
        if k < 0.78:
            return f"({x} {self.pick('<', '<=')} {y} {self.pick('<', '!=')} {self.int(depth + 2)})"
        if k < 0.86:
            return self.pick(
                f"({x} in (1, {y}, 3))", f"({x} not in xs)", f"any([{x} > 1, {y} == 0])", f"all([{x} < 9, ok])"
            )
        if k < 0.92:
            return self.pick(f"(({x}, 1) == ({y}, 1))", f"(t == ({x}, {y}))", "(h < g)", "(g == 0.5)")
        return self.pick("flag", "ok", "not flag", "(x is None)")

    def float(self) -> str:
        k = self.r.random()
        if k < 0.5:
            return self.pick("h", "g", "0.5", "2.0", "-1.5")
        if k < 0.8:
            return f"({self.pick('h', 'g', '1.0')} {self.pick('+', '-')} {self.pick('h', '0.25', '3.0')})"
        return self.pick(
            f"({self.bool(1)} and 1.5 or 0.5)" if False else f"(g if {self.bool(1)} else h)", "min(g, h)", "-h"
        )

    def target(self) -> str:
        return self.pick(*self.ints, *self.ints, "s.v", "s.w", "xs[0]", "xs[1]", "d['p']", "d['r']", "o.m", "o.n",
            "ys[0]", "ps[0][1]", "ps[1][0]", "s.q[0]", "s.q[1]")  # fmt: skip

    def statement(self) -> str:
        k = self.r.random()
        self.depth += 1
        try:
            return self.compound(k) if self.depth <= 4 else f"{self.target()} = {self.int()}"
        finally:
            self.depth -= 1

    def compound(self, k: float) -> str:
        if self.nested < 3 and self.r.random() < 0.08:
            return self.nested_function()
        if k < 0.30:
            return f"{self.target()} {self.pick('=', '=', '=', '+=', '-=')} {self.int()}"
        if k < 0.36:
            return self.pick(
                f"g = {self.float()}", f"ok = {self.bool()}", f"x, y = y, {self.int()}", f"t = Pair({self.int()}, t.p)",
                "t = swap(t)", f"k = k + {self.int()}", f"z{'' if self.nested else ': int'} = {self.int()}",
                f"bump({self.int()})", "Acc.clear()",
                f"o = replace(o, m={self.int()})" if self.r.random() < 0.1 else "o.n = o.m",
            )  # fmt: skip
        if k < 0.60:
            orelse = ""
            while self.r.random() < 0.25:
                orelse += f"\nelif {self.bool()}:\n{self.body()}"
            if self.r.random() < 0.5:
                orelse += f"\nelse:\n{self.body()}"
            return f"if {self.bool()}:\n{self.body()}{orelse}"
        if k < 0.76:
            return self.loop()
        if k < 0.83 and self.loops:
            return f"if {self.bool()}:\n    {self.pick('break', 'continue', 'break')}"
        if k < 0.87:
            value = self.int() if self.nested else f"({self.int()}, {self.int()}, {self.int()}, g, ok)"
            return f"if {self.bool()}:\n    return {value}"
        if k < 0.90:
            self.made += 1
            w = f"w{self.made}"
            return f"if ({w} := {self.int()}) > 1:\n{self.body()}\nx = {w}"
        if k < 0.91:
            return f"match {self.int()}:\n    case 1 | 2:\n{self.body(8)}\n    case _:\n{self.body(8)}"
        if k < 0.94:
            return f"try:\n{self.body()}\nfinally:\n    x = {self.int()}"
        if self.r.random() < 0.5:
            return self.replaced()
        return self.pick(
            f"if {self.bool()}:\n    u = {self.int()}\nelse:\n    u = 3\nx = u", f"u = {self.int()}\ny = u",
            f"e = s\ne.v = {self.int()}", "xs.append(x)\nxs.pop()", f"xs = [{self.int()}, {self.int()}]",
            f"with Manager():\n{self.body()}",
        )  # fmt: skip

    def replaced(self) -> str:
        """Return a statement that replaces a list, dict or object by another one, or aliases it."""
        name = self.pick("xs", "ys", "s.q", "ps[0]", "ps[1]")
        two = f"[{self.int()}, {self.int()}]"
        k = self.r.random()
        if k < 0.4:
            return f"{name} = {two}"
        if k < 0.55:
            return self.pick(
                "xs, ys = ys, xs", "ps = [ps[1], ps[0]]", f"ps = [{two}, ps[0]]", "xs, s.q = s.q, xs",
                "ps[0], ps[1] = ps[1], ps[0]", f"{name} = [{name}[1], {name}[0] + 1]",
            )  # fmt: skip
        if k < 0.7:
            return self.pick(
                f"s = Box({self.int()})", f"o = Point({self.int()}, {self.int()})", f"acc = Acc({self.int()})",
                f"d = {{'p': {self.int()}, 'r': {self.int()}}}", f"d = {{'r': d['p'], 'p': {self.int()}}}",
            )  # fmt: skip
        if k < 0.8:
            return f"{name} = {name} if {self.bool()} else {two}"
        if k < 0.9:
            return f"{name} = renewed({self.pick(name, two, 'list(xs)')}, {self.int()})"
        if k < 0.95:
            return f"{name} = list({self.pick('xs', 'ys', 's.q')})"
        return f"e = {name}\n{name} = {two}\nx = e[0]\n{self.pick('e[1] = 4', 'ys = e', 'pass')}"

    def nested_function(self) -> str:
        """Return the definition of a nested function, method or generator, and statements that use it."""
        self.made += 1
        name, parameter = f"g{self.made}", f"p{self.made}"
        loops, self.loops = self.loops, 0
        self.nested += 1
        self.ints.append(parameter)
        body = self.body(0)
        shadow = ""
        if self.r.random() < 0.1:  # A local variable that shadows the outer one.
            shadow = self.pick("x", "y", "z")
            body = f"{shadow} = {self.int()}\n{body}"
        result = self.int()
        self.ints.remove(parameter)
        self.nested -= 1
        self.loops = loops
        outer = sorted((_stores(body) & {*_SHARED}) - {shadow})
        head = f"nonlocal {', '.join(outer)}\n" if outer else ""
        argument, target = self.int(), self.target()
        kind = self.r.random()
        if kind < 0.5:
            made = f"def {name}({parameter}):\n{textwrap.indent(f'{head}{body}', '    ')}\n    return {result}"
            return f"{made}\n{target} = {name}({argument})"
        if kind < 0.75:
            method = f"def m(self, {parameter}):\n{textwrap.indent(f'{head}{body}', '    ')}\n    return {result}"
            made = f"class {name}:\n{textwrap.indent(method, '    ')}"
            return f"{made}\n{target} = {name}().m({argument})"
        body = "\n".join(
            line.partition("return")[0] + "pass" if "return " in line else line for line in body.split("\n")
        )
        made = f"def {name}({parameter}):\n{textwrap.indent(f'{head}yield {argument}', '    ')}"
        made += f"\n{textwrap.indent(body, '    ')}\n    yield {result}"
        made = made.replace(f"yield {argument}", f"yield {parameter}", 1)
        return f"{made}\nfor e in {name}({argument}):\n    {target} = e"

    def loop(self) -> str:
        self.made += 1
        w = f"i{self.made}"
        k = self.r.random()
        self.loops += 1
        self.ints.append(w) if k < 0.62 else None
        body = self.body()
        if k < 0.62:
            self.ints.remove(w)
        self.loops -= 1
        orelse = f"\nelse:\n{self.body()}" if self.r.random() < 0.12 else ""
        if k < 0.45:
            bounds = self.pick("3", "n", "n", "1, n", "n, 0, -1", "0, 6, 2", "2", "n, n + 2", "b, 4")
            return f"for {w} in range({bounds}):\n{body}{orelse}"
        if k < 0.62:
            values = self.pick("[1, 2, y]", "xs", "(a, b)", "enumerate_", "count(n, 1)", "count(2, b)")
            if values == "enumerate_":
                return f"for j, {w} in enumerate([a, 1, b]):\n{body}{orelse}"
            return f"for {w} in {values}:\n{body}{orelse}"
        test = self.pick("3", "n", "4")
        if k < 0.9:
            return f"{w} = 0\nwhile {w} < {test} and {self.bool()}:\n    {w} += 1\n{body}{orelse}"
        return f"{w} = 0\nwhile True:\n    {w} += 1\n    if {w} > {test}:\n        break\n{body}"

    def body(self, indent: int = 4) -> str:
        count = self.r.choice((1, 1, 2, 2, 3))
        return textwrap.indent("\n".join(self.statement() for _ in range(count)), " " * indent)

    def function(self) -> str:
        body = "\n".join(self.statement() for _ in range(self.r.randint(2, 6)))
        return f"""
class Manager:
    def __enter__(self):
        return self
    def __exit__(self, *exc):
        return False

def f(a, b, n, h, flag):
    x, y, z, k = 1, a, 0, 0
    g = 0.5
    ok = False
    s = Box(b)
    xs = [a, 2]
    ys = [b, a]
    ps = [[1, a], [b, 3]]
    d = {{"p": b, "r": 1}}
    o = Point(a, 3)
    t = Pair(b, 2)
    def add(v):
        return v + y
    def bump(v):
        nonlocal k
        if v > 0:
            k += 1
    class Acc:
        n = 0
        def __init__(self, m=0):
            self.m = m
        def bump(self, v):
            nonlocal k
            if v > 1:
                k = (k + v) % 97
                self.m += 1
            else:
                Acc.n = (Acc.n + 1) % 7
            return k
        @staticmethod
        def clear():
            nonlocal z
            z = 0
    acc = Acc()
{textwrap.indent(body, "    ")}
    y += s.v * 3 + xs[0] + acc.m + Acc.n + ys[1] * 7 + ps[0][0] * 11
    x += ys[0] * 5 + ps[0][1] + ps[1][0] * 3 + ps[1][1] * 17 + s.q[0] * 19 + s.q[1] * 23
    return (x + o.m * 2 + d["p"] + k, y, z + s.w + xs[1] + o.n + t.p * 5 + d["r"], g, ok)
"""


_SHARED = ("x", "y", "z", "k", "g", "ok", "s", "xs", "ys", "ps", "d", "o", "t", "acc")
"""Variables of a random function that its nested functions may change."""


def _stores(body: str) -> set[str]:
    """Return the names that statements assign, including those that nested functions assign through ``nonlocal``."""
    names: set[str] = set()
    todo: list[ast.AST] = [ast.parse(f"while 1:\n{textwrap.indent(body, '    ')}")]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            names.update(n for part in ast.walk(node) if isinstance(part, ast.Nonlocal) for n in part.names)
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        todo += ast.iter_child_nodes(node)
    return names


class Outcome(NamedTuple):
    """Result of a check.

    ``kind`` is agrees, refused, unbound (Python's own error) or skipped; ``code`` is the error code.
    """

    kind: str
    code: str = ""
    text: str = ""


class Wrong(AssertionError):
    """A trace behaves differently from Python."""


def check(seed: int, inputs: int = 5) -> Outcome:
    """Generate a function, trace it with some dynamic parameters, and compare. Raise Wrong if the results differ."""
    r = random.Random(seed)
    text = HEADER + _Writer(seed).function()
    path = f"<function {seed}>"
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    scope: dict[str, Any] = {"__name__": f"random_{seed}"}
    try:
        exec(compile(text, path, "exec", dont_inherit=True), scope)
    except SyntaxError:
        raise Wrong(f"the generator made no Python:\n{text}") from None
    f = scope["f"]
    kinds = [Int32, Int32, Int32, Float32, Boolean]
    fixed = _numbers(r)
    dynamic = [r.random() < 0.7 for _ in kinds]
    try:
        traced = Traced(f, [k if dyn else ("is", v) for k, dyn, v in zip(kinds, dynamic, fixed)])
    except CuteError as e:
        unbound = e.code in ("F210", "F222") or "where it is not associated with a value" in e.message
        return Outcome("unbound" if unbound else "refused", e.code, f"{text}\n{e}")
    except UnboundLocalError as e:
        return Outcome("unbound", "Python", str(e))
    except TypeError as e:  # The function computes with a None that a generator returns.
        if "NoneType" not in str(e):
            raise
        return Outcome("unbound", "Python", str(e))
    finally:
        linecache.cache.pop(path, None)
    for _ in range(inputs):
        numbers = [v if dyn else w for v, w, dyn in zip(_numbers(r), fixed, dynamic)]
        try:
            want = f(*numbers)
        except UnboundLocalError as e:
            raise Wrong(f"accepted, but Python says: {e}\n{text}") from e
        except TypeError as e:
            if "NoneType" not in str(e):
                raise
            continue
        try:
            got = traced.run(*(v for v, dyn in zip(numbers, dynamic) if dyn))
        except OverflowError:  # Python integers do not wrap.
            continue
        if tuple(got) != tuple(want):
            raise Wrong(f"seed {seed}, {numbers}, of run time {dynamic}: want {want}, got {got}\n{text}")
    return Outcome("agrees")


def _numbers(r: random.Random) -> list[Any]:
    return [r.randint(-3, 6), r.randint(-3, 6), r.randint(0, 4), r.randint(-8, 8) / 4, r.random() < 0.5]


def tally(first: int, count: int) -> tuple[Counter[str], Counter[str]]:
    """Check many functions. Return the number of functions per outcome, and of rejections per error code."""
    kinds, codes = Counter[str](), Counter[str]()
    for seed in range(first, first + count):
        outcome = check(seed)
        kinds[outcome.kind] += 1
        if outcome.code:
            codes[outcome.code] += 1
    return kinds, codes
