"""Register tensors in ``scf.while``, with ``scf.for`` and ``scf.if`` around and inside of it: not in local memory."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from xdsl.ir import Operation

from cute_dialect.ir.printing import ir_text
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines.ptxas import assemble

EXAMPLE = Path(__file__).parents[2] / "examples" / "gemm_sm90.mlir"
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
    """Two vectors of four cells change places, each plus one."""


@dataclass
class If:
    """Both sides under ``f[cell] + (tid or 0) even``."""

    cell: int
    divergent: bool
    then: Body
    other: Body


@dataclass
class For:
    """``n`` turns."""

    n: int
    body: Body


@dataclass
class While:
    """``before``, and ``after`` as long as a counter from 0 is less than ``n`` (plus the thread's number modulo 3)."""

    n: int
    divergent: bool
    before: Body
    after: Body


Body = list["Set | Rotate | If | For | While"]


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
        even = self.new(f"arith.cmpi eq, {bit}, {self.constant(0)} : i32")
        self.lines.append(f"scf.if {even} {{")
        self.body(s.then)
        if s.other:
            self.lines.append("} else {")
            self.body(s.other)
        self.lines.append("}")

    def write_for(self, s: For) -> None:
        bounds = [self.constant(x) for x in (0, s.n, 1)]
        end = self.binary("addi", bounds[1], "%zero")  # not a constant for the pass
        self.names += 1
        self.lines.append(f"scf.for %i{self.names} = {bounds[0]} to {end} step {bounds[2]} : i32 {{")
        self.body(s.body)
        self.lines.append("}")

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
    """What a thread's cells are in the end, in exact integers."""
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
    made = compile_cute(program(body), emit="base")
    assert not made.remarks
    lowered = made.lowered()
    assert isinstance(lowered, Operation) and "llvm.alloca" not in ir_text(lowered)
    x = np.random.default_rng(7).integers(0, 1000, (THREADS, CELLS), dtype=np.int32)
    expected = [evaluated(body, [int(v) for v in row], tid) for tid, row in enumerate(x)]
    made.kernel("k")(x, np.int32(0), grid=(1, 1, 1), device="cpu")
    assert np.array_equal(x.view(np.uint32), np.array(expected, np.uint32))


A, B, C = Set(0, 1, 0, 5), Set(3, 0, 3, 1), Set(1, 3, 7, 2)
SHAPES: dict[str, Body] = {
    "written after": [While(3, False, [], [A, B])],
    "written before": [While(3, False, [A, B], [])],
    "written in both": [While(3, False, [A], [B, C]), C],
    "no turn": [While(0, False, [A], [B])],
    "as many turns as the thread says": [While(1, True, [A], [Rotate(), B])],
    "while in for": [For(3, [While(2, True, [A], [Rotate()]), B])],
    "for in while": [While(2, True, [For(2, [A])], [For(3, [B, Rotate()])])],
    "if in while": [While(4, True, [If(0, True, [A], [])], [If(1, False, [B], [Rotate()])])],
    "switch": [If(0, True, [A], [B, Rotate()], switch=True), If(1, False, [], [C], switch=True)],
    "while in if": [If(0, True, [While(2, True, [A], [B])], [C]), A],
    "while in while": [While(2, True, [While(1, False, [A], [B])], [While(2, True, [C], [Rotate()])])],
    "vectors": [While(5, True, [], [Rotate()])],
    "read in a branch and after it": [If(0, False, [For(2, [Set(0, 5, 6, 0)])], []), Set(1, 5, 6, 0)],
    "read after a loop that reads": [While(2, False, [Set(0, 5, 6, 0)], [For(2, [Set(1, 5, 6, 0)])]), Set(5, 6, 5, 1)],
}


@pytest.mark.parametrize("name", SHAPES)
def test_loops_carry_registers(name: str) -> None:
    check(SHAPES[name])


def random_body(rng: random.Random, depth: int) -> Body:
    body: Body = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.choice(("set", "set", "rotate", "if", "for", "while", "while") if depth else ("set", "rotate"))
        inner = [random_body(rng, depth - 1) if rng.random() < 0.8 else [] for _ in range(2)] if depth else []
        n, divergent, cell = rng.randint(0, 3), rng.random() < 0.5, rng.randrange(CELLS)
        if kind == "set":
            body.append(Set(cell, rng.randrange(CELLS), rng.randrange(CELLS), rng.randint(0, 9)))
        elif kind == "rotate":
            body.append(Rotate())
        elif kind == "if":
            body.append(If(cell, divergent, inner[0], inner[1]))
        elif kind == "for":
            body.append(For(n, inner[0]))
        else:
            body.append(While(n, divergent, inner[0], inner[1]))
    return body


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int) -> None:
    check(random_body(random.Random(seed), 3))


LOOP = re.compile(
    r"( *)(%\w+):4 = scf\.for %tile = (%\w+) to (%\w+) step (%\w+) iter_args\((.*?)\) -> \((.*?)\) : i32 \{\n(.*?)\n"
    r"\1  scf\.yield (.*?) : .*?\n\1\}\n",
    re.DOTALL,
)


def tile_loop_as_while(found: re.Match[str]) -> str:
    """The loop over the tiles of a block, as a scheduler that is asked for the next one writes it."""
    pad, name, first, end, step, carried, types, body, yielded = found.groups()
    pairs = [pair.split(" = ") for pair in carried.split(", ")]
    starts = ", ".join(f"{n}_now = {start}" for n, start in pairs)
    now, arguments = ", ".join(f"{n}_now" for n, _ in pairs), ", ".join(f"{n}: i32" for n, _ in pairs)
    return f"""\
{pad}{name}:5 = scf.while ({starts}, %tile_now = {first}) : ({types}, i32) -> ({types}, i32) {{
{pad}  %more = arith.cmpi slt, %tile_now, {end} : i32
{pad}  scf.condition(%more) {now}, %tile_now : {types}, i32
{pad}}} do {{
{pad}^bb0({arguments}, %tile: i32):
{body}
{pad}  %next_tile = arith.addi %tile, {step} : i32
{pad}  scf.yield {yielded}, %next_tile : {types}, i32
{pad}}}
"""


def persistent_gemm() -> tuple[str, str]:
    """The Hopper GEMM, its tile loops ``scf.for`` and ``scf.while``."""
    text = EXAMPLE.read_text()
    found, loops = LOOP.subn(tile_loop_as_while, text)
    assert loops == 2
    return text, found


def test_a_persistent_gemm_keeps_its_accumulators() -> None:
    ours, theirs = (compile_cute(text, emit="ptx", chip="sm_90a") for text in reversed(persistent_gemm()))
    assert not ours.remarks
    code, expected = ours.ptx, theirs.ptx
    assert ".local" not in code and "%acc0_<128>" in code
    for word in ("wgmma.mma_async", "mov.b32", "bar.sync", "mbarrier."):
        assert code.count(word) == expected.count(word), word
    kernels = [{k.name: k for k in assemble(text, "sm_90a").kernels}["gemm"] for text in (code, expected)]
    assert kernels[0].spill_stores == kernels[0].spill_loads == 0
    assert kernels[0].registers == kernels[1].registers


def test_a_persistent_gemm_multiplies() -> None:
    """All tiles by one cluster, turn by turn."""
    text = persistent_gemm()[1].replace("arith.constant 66 : i32", "arith.constant 1 : i32")
    text = text.replace("%c65_i32 = arith.constant 65 : i32", "%c65_i32 = arith.constant 0 : i32")
    rng = np.random.default_rng(3)
    a = rng.integers(-2, 3, (392, 136)).astype(np.float16)
    b = rng.integers(-2, 3, (520, 136)).astype(np.float16)
    out = np.full((392, 520), np.nan, np.float16)
    launch = compile_cute(text, emit="base").kernel("launch")
    assert launch.plan(a, b, out).shape.grid[0] == 2
    launch(a, b, out, device="cpu", checks=("race", "sync", "oob", "uninit"))
    assert (out == (a.astype(np.float64) @ b.astype(np.float64).T)).all()
