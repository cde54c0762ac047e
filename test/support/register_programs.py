"""Small programs over one register tensor, as MLIR, with their results in exact integers.

Every thread holds eight numbers.  Statements change them in loops and branches, whose conditions depend on the thread
index and on the numbers.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from xdsl.ir import Operation

from cute_dialect.ir.printing import ir_text
from cute_dialect.pipelines import compile as compile_cute

CELLS, THREADS = 8, 32
F = f'!cute.memref<i32, rmem, align<16>, "{CELLS}:1">'
ROW = f'!cute.memref<i32, gmem, align<16>, "({CELLS}):(1)">'


@dataclass
class Set:
    """``f[to] = 3 f[a] + f[b] + tid + add``."""

    to: int
    a: int
    b: int
    add: int


@dataclass
class Rotate:
    """Swap the two halves of the tensor, four cells each, and add one to every cell."""


@dataclass
class If:
    """Run ``then`` if ``f[cell] + (tid or 0)`` is even, otherwise ``other``.

    With ``switch``, the branches are cases of a switch in a region that runs once.
    """

    cell: int
    divergent: bool
    then: Body
    other: Body
    switch: bool = False


@dataclass
class For:
    """Run ``body`` ``n`` times, unrolled ``unroll`` times. With ``known`` the bounds are constants."""

    n: int
    body: Body
    unroll: int = 0
    known: bool = False


@dataclass
class While:
    """Run ``before``, then ``after`` and ``before`` ``n`` times (plus the thread index modulo 3 if ``divergent``)."""

    n: int
    divergent: bool
    before: Body
    after: Body


Body: TypeAlias = "list[Set | Rotate | If | For | While]"


class Text:
    """Writes a program as MLIR."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names = 0

    def new(self, line: str) -> str:
        self.names += 1
        self.lines.append(f"%v{self.names} = {line}")
        return f"%v{self.names}"

    def constant(self, n: int) -> str:
        return self.new(f"arith.constant {n} : i32")

    def at(self, cell: int) -> str:
        return self.new(f'cute.static : !cute.coord<"{cell}">')

    def load(self, cell: int) -> str:
        return self.new(f'cute.memref.load(%f, {self.at(cell)}) : ({F}, !cute.coord<"{cell}">) -> i32')

    def binary(self, op: str, a: str, b: str) -> str:
        return self.new(f"arith.{op} {a}, {b} : i32")

    def body(self, body: Body) -> None:
        for s in body:
            getattr(self, f"write_{type(s).__name__.lower()}")(s)

    def write_set(self, s: Set) -> None:
        x = self.binary("addi", self.binary("muli", self.load(s.a), self.constant(3)), self.load(s.b))
        x = self.binary("addi", self.binary("addi", x, "%tid"), self.constant(s.add))
        self.lines.append(f'cute.memref.store(%f, {self.at(s.to)}, {x}) : ({F}, !cute.coord<"{s.to}">, i32) -> ()')

    def write_rotate(self, _: Rotate) -> None:
        half = '!cute.memref<i32, rmem, align<16>, "4:1">'
        it = self.new(f"cute.get_iter(%f) : {F}")
        layout = self.new('cute.static : !cute.layout<"4:1">')
        views: list[str] = []
        for i in (0, 4):
            offset = self.new(f'cute.static : !cute.int_tuple<"{i}">')
            p = "!cute.ptr<i32, rmem, align<16>>"
            views.append(self.new(f'cute.add_offset({it}, {offset}) : ({p}, !cute.int_tuple<"{i}">) -> {p}'))
        views = [self.new(f"cute.make_view({v}, {layout}) : {half}") for v in views]
        values = [self.new(f"cute.memref.load_vec {v} : {half}") for v in views]
        one = self.new("arith.constant dense<1> : vector<4xi32>")
        for view, value in zip(views, reversed(values)):
            x = self.new(f"arith.addi {value}, {one} : vector<4xi32>")
            self.lines.append(f"cute.memref.store_vec {x}, {view} : {half}")

    def write_if(self, s: If) -> None:
        x = self.load(s.cell)
        if s.divergent:
            x = self.binary("addi", x, "%tid")
        bit = self.binary("andi", x, self.constant(1))
        if s.switch:
            index = self.new(f"arith.index_cast {bit} : i32 to index")
            self.lines.append(f"scf.execute_region {{\nscf.index_switch {index}\ncase 0 {{")
            self.body(s.then)
            self.lines.append("scf.yield\n}\ndefault {")
            self.body(s.other)
            self.lines.append("scf.yield\n}\nscf.yield\n}")
            return
        even = self.new(f"arith.cmpi eq, {bit}, {self.constant(0)} : i32")
        self.lines.append(f"scf.if {even} {{")
        self.body(s.then)
        if s.other:
            self.lines.append("} else {")
            self.body(s.other)
        self.lines.append("}")

    def write_for(self, s: For) -> None:
        bounds = [self.constant(x) for x in (0, s.n, 1)]
        end = bounds[1] if s.known else self.binary("addi", bounds[1], "%zero")
        self.names += 1
        self.lines.append(f"scf.for %i{self.names} = {bounds[0]} to {end} step {bounds[2]} : i32 {{")
        self.body(s.body)
        self.lines.append(f"}} {{cute.unroll = {s.unroll} : i32}}" if s.unroll else "}")

    def write_while(self, s: While) -> None:
        start, end = self.constant(0), self.constant(s.n)
        if s.divergent:
            end = self.binary("addi", end, self.binary("remui", "%tid", self.constant(3)))
        self.names += 1
        b, a = f"%b{self.names}", f"%a{self.names}"
        self.lines.append(f"scf.while ({b} = {start}) : (i32) -> (i32) {{")
        self.body(s.before)
        more = self.new(f"arith.cmpi slt, {b}, {end} : i32")
        self.lines.append(f"scf.condition({more}) {b} : i32\n}} do {{\n^bb0({a}: i32):")
        self.body(s.after)
        self.lines.append(f"scf.yield {self.binary('addi', a, self.constant(1))} : i32\n}}")


def program(body: Body) -> str:
    """Return the module of a program."""
    text = Text()
    text.body(body)
    return f"""
module attributes {{gpu.container_module}} {{
  gpu.module @m {{
    gpu.func @k(%g: !cute.memref<i32, gmem, align<16>, "({THREADS},{CELLS}):({CELLS},1)">, %zero: i32)
        kernel attributes {{known_block_size = array<i32: {THREADS}, 1, 1>}} {{
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %c = cute.make_coord(%tid) : (i32) -> !cute.coord<"(?,_)">
      %row = cute.slice(%g, %c) : !cute.memref<i32, gmem, align<16>, "({THREADS},{CELLS}):({CELLS},1)">,
        !cute.coord<"(?,_)">
      %f = cute.memref.alloca() : {F}
      %x = cute.memref.load_vec %row : {ROW}
      cute.memref.store_vec %x, %f : {F}
      {chr(10).join(text.lines)}
      %y = cute.memref.load_vec %f : {F}
      cute.memref.store_vec %y, %row : {ROW}
      gpu.return
    }}
  }}
}}
"""


def evaluated(body: Body, f: list[int], tid: int) -> list[int]:
    """Return the final cell values of a thread, in exact integers."""
    for s in body:
        if isinstance(s, Set):
            f[s.to] = (3 * f[s.a] + f[s.b] + tid + s.add) % 2**32
        elif isinstance(s, Rotate):
            f[:] = [(x + 1) % 2**32 for x in f[4:] + f[:4]]
        elif isinstance(s, If):
            evaluated(s.other if (f[s.cell] + tid * s.divergent) % 2 else s.then, f, tid)
        elif isinstance(s, For):
            for _ in range(s.n):
                evaluated(s.body, f, tid)
        else:
            evaluated(s.before, f, tid)
            for _ in range(s.n + (tid % 3 if s.divergent else 0)):
                evaluated(s.after, f, tid)
                evaluated(s.before, f, tid)
    return f


def check(body: Body) -> None:
    """Check that a program uses no local memory and computes the expected values."""
    made = compile_cute(program(body), emit="base")
    assert not made.remarks
    lowered = made.lowered()
    assert isinstance(lowered, Operation) and "llvm.alloca" not in ir_text(lowered)
    x = np.random.default_rng(7).integers(0, 1000, (THREADS, CELLS), dtype=np.int32)
    expected = [evaluated(body, [int(v) for v in row], tid) for tid, row in enumerate(x)]
    made.kernel("k")(x, np.int32(0), grid=(1, 1, 1), device="cpu")
    assert np.array_equal(x.view(np.uint32), np.array(expected, np.uint32))


def random_body(rng: random.Random, depth: int, unroll: tuple[int, ...] = (0,)) -> Body:
    """Return a random program with at most ``depth`` levels of nesting.

    ``unroll`` lists the unroll factors of loops.
    """
    body: Body = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.choice(("set", "set", "rotate", "if", "for", "while", "while") if depth else ("set", "rotate"))
        inner = [random_body(rng, depth - 1, unroll) if rng.random() < 0.8 else [] for _ in range(2)] if depth else []
        n, divergent, cell = rng.randint(0, 3), rng.random() < 0.5, rng.randrange(CELLS)
        if kind == "set":
            body.append(Set(cell, rng.randrange(CELLS), rng.randrange(CELLS), rng.randint(0, 9)))
        elif kind == "rotate":
            body.append(Rotate())
        elif kind == "if":
            body.append(If(cell, divergent, inner[0], inner[1], rng.random() < 0.3))
        elif kind == "for":
            body.append(For(rng.randint(0, 7), inner[0], rng.choice(unroll), rng.random() < 0.3))
        else:
            body.append(While(n, divergent, inner[0], inner[1]))
    return body
