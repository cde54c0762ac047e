"""``cute.unroll`` of ``scf.for``: an unrolled loop and a remainder loop run the same iterations in the same order."""

from __future__ import annotations

import random
import re
from typing import NamedTuple

import numpy as np
import pytest
from register_programs import For, If, Rotate, Set, While, check, random_body

from cute_dialect.interp import InterpError
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines.compiler import lower_to_base
from cute_dialect.runtime.launch import Kernel

THREADS = 8


class Loop(NamedTuple):
    """Loop bounds of type ``t``: constants if named in ``known``, else arguments.  ``unroll`` is the unroll factor."""

    t: str
    unsigned: bool
    lower: int
    upper: int
    step: int
    known: str
    unroll: int


def kernel(loop: Loop, by_thread: bool) -> str:
    """Build a kernel in which each thread stores a hash of all iterations in their order.

    ``by_thread`` adds the thread number to the lower bound.
    """
    t = loop.t
    names = [n for n in ("lower", "upper", "step") if n not in loop.known]
    arguments = "".join(f", %{n}_given: i64" for n in names)
    bounds = "\n".join(
        (f"%{n}_wide = arith.addi %{n}_given, %zero : i64" if n in names else f"%{n}_wide = arith.constant 0 : i64")
        + (
            f"\n%{n} = arith.constant {getattr(loop, n)} : {t}"
            if n not in names
            else f"\n%{n} = arith.index_cast %{n}_wide : i64 to index"
            if t == "index"
            else f"\n%{n} = arith.addi %{n}_wide, %zero : i64"
            if t == "i64"
            else f"\n%{n} = arith.trunci %{n}_wide : i64 to {t}"
        )
        for n in ("lower", "upper", "step")
    )
    to = "arith.index_cast" if t == "index" else "arith.trunci" if t == "i64" else "arith.extsi"
    number = f"%v = {to} %i : {t} to i32" if t != "i32" else "%v = arith.addi %i, %zero32 : i32"
    start = "%own = arith.addi %lower, %mine : i32" if by_thread else ""
    first = "%own" if by_thread else "%lower"
    return f"""
module attributes {{gpu.container_module}} {{
  gpu.module @m {{
    gpu.func @k(%g: !cute.memref<i32, gmem, "{THREADS}:1">{arguments})
        kernel attributes {{known_block_size = array<i32: {THREADS}, 1, 1>}} {{
      %zero = arith.constant 0 : i64
      %zero32 = arith.constant 0 : i32
      %mine = nvvm.read.ptx.sreg.tid.x : i32
      {bounds}
      {start}
      %seven = arith.constant 7 : i32
      %r = scf.for {"unsigned " if loop.unsigned else ""}%i = {first} to %upper step %step
          iter_args(%x = %seven) -> (i32) {": " + t if t != "index" else ""} {{
        {number}
        %y = arith.muli %x, %seven : i32
        %z = arith.addi %y, %v : i32
        scf.yield %z : i32
      }} {{cute.unroll = {loop.unroll} : i32}}
      %c = cute.make_coord(%mine) : (i32) -> !cute.coord<"?">
      cute.memref.store(%g, %c, %r) : (!cute.memref<i32, gmem, "{THREADS}:1">, !cute.coord<"?">, i32) -> ()
      gpu.return
    }}
  }}
}}
"""


def turns(loop: Loop, more: int = 0) -> list[int]:
    """Return the signed induction variable of each iteration. ``more`` is added to the lower bound."""
    bits = {"index": 64}.get(loop.t) or int(loop.t[1:])
    mask = 2**bits - 1 if loop.unsigned else -1
    half = 2 ** (bits - 1)
    return [(i + half) % (2 * half) - half for i in range((loop.lower & mask) + more, loop.upper & mask, loop.step)]


def run(kernel: Kernel, loop: Loop, by_thread: bool = False) -> None:
    """Run the kernel and compare each thread's hash with the result in Python."""
    out = np.zeros(THREADS, np.int32)
    given = [np.int64(getattr(loop, n)) for n in ("lower", "upper", "step") if n not in loop.known]
    kernel(out, *given, grid=(1, 1, 1), device="cpu")
    expected: list[int] = []
    for thread in range(THREADS):
        x = 7
        for i in turns(loop, thread * by_thread):
            x = (x * 7 + i) % 2**32
        expected.append(x)
    assert out.view(np.uint32).tolist() == expected, loop


def compiled(loop: Loop, by_thread: bool = False) -> Kernel:
    return compile_cute(kernel(loop, by_thread), emit="base").kernel("k")


KNOWN = ("", "lower", "step", "lower upper", "lower step", "upper step", "lower upper step")


def random_loop(rng: random.Random) -> Loop:
    """Return a random loop of at most 40 iterations, often near the limits of its type."""
    t = rng.choice(("i8", "i16", "i32", "i64", "index"))
    bits = {"index": 64}.get(t) or int(t[1:])
    unsigned = t != "index" and rng.random() < 0.3
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    turns = rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 40))
    step = rng.choice((1, 1, 2, 3, 4, 7, 2 ** rng.randint(0, bits - 2), 2 ** (bits - 1) - 1))
    step = max(1, min(step, (high - low) // max(turns, 1)))
    span = min(turns * step - rng.randrange(step), high - low) if turns else -rng.randint(0, 3)
    lower = rng.choice((0, low, high - max(span, 0), rng.randint(low, high)))
    lower = min(max(lower, low - min(span, 0)), high - max(span, 0))

    def stored(n: int) -> int:
        return (n - low) % 2**bits + low if not unsigned else (n + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)

    copies = rng.choice((0, 1, 2, 3, 4, 5, 8, turns, turns + 1, 100))
    return Loop(t, unsigned, stored(lower), stored(lower + span), step, rng.choice(KNOWN), copies)


@pytest.mark.sample("0")
@pytest.mark.parametrize("seed", range(25))
def test_random_bounds(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(8):
        loop = random_loop(rng)
        run(compiled(loop), loop)


ENDS = (-128, -127, -3, 0, 5, 127)


@pytest.mark.slow
@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize("copies", [2, 4, 7])
def test_the_ends_of_a_type(copies: int, unsigned: bool) -> None:
    """8-bit loops in which the trip count or the unrolled step overflows the type."""
    for known in ("", "step"):
        for step in (1, 3, 40, 64, 127):
            one = Loop("i8", unsigned, 0, 0, step, known, copies)
            if known or step == 1:
                loop = compiled(one)
            for lower in ENDS:
                for upper in ENDS:
                    run(loop, one._replace(lower=lower, upper=upper))


@pytest.mark.parametrize("lower", [-100, 3])
@pytest.mark.parametrize("upper", [-90, 9])
@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize("copies", [4, 100])
def test_constant_bounds_of_both_signs(lower: int, upper: int, unsigned: bool, copies: int) -> None:
    loop = Loop("i8", unsigned, lower, upper, 3, "lower upper step", copies)
    run(compiled(loop), loop)


@pytest.mark.parametrize("upper", [-5, 5])
def test_zero_step_is_an_error_of_the_loop(upper: int) -> None:
    loop = Loop("i32", False, 0, upper, 0, "", 4)
    with pytest.raises(InterpError, match="the loop step is 0; it must be positive"):
        run(compiled(loop), loop)


@pytest.mark.parametrize("copies", [2, 3, 4, 9])
@pytest.mark.parametrize("known", KNOWN)
def test_every_thread_has_its_own_bounds(known: str, copies: int) -> None:
    loop = Loop("i32", False, -3, 9, 2, known, copies)
    run(compiled(loop, by_thread=True), loop, by_thread=True)


@pytest.mark.sample(every=14)
@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int) -> None:
    """Random nests of loops and branches that write register tensors give the right values."""
    check(random_body(random.Random(100 + seed), 3, (0, 1, 2, 3, 8)))


@pytest.mark.slow
def test_a_register_tensor_in_a_loop_of_copies() -> None:
    body = [Set(0, 1, 0, 5), If(0, True, [Rotate()], [Set(3, 0, 3, 1)]), While(2, True, [], [Set(2, 3, 0, 1)])]
    for n in range(7):
        check([For(n, [*body], 3), For(n, [For(2, [*body], 2)], 2, known=True)])


def lowered(lower: str, upper: str, step: int, unroll: str, inner: str = "") -> str:
    text = f"""
gpu.module @m {{
  gpu.func @k(%g: !cute.memref<i32, gmem, "64:1">, %n: i32) kernel {{
    %lower = arith.constant {lower} : i32
    %upper = arith.constant {upper} : i32
    %step = arith.constant {step} : i32
    scf.for %i = %lower to {"%n" if upper == "0" else "%upper"} step %step : i32 {{
      %c = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
      cute.memref.store(%g, %c, %i) : (!cute.memref<i32, gmem, "64:1">, !cute.coord<"?">, i32) -> ()
      {inner}
    }} {unroll}
    gpu.return
  }}
}}
"""
    return lower_to_base(text, pipeline="base")


def shape(text: str) -> tuple[int, int]:
    """Return the numbers of loops and of stores in a lowered kernel."""
    return len(re.findall(r"scf\.for", text)), len(re.findall(r"llvm\.store", text))


@pytest.mark.parametrize(
    ("upper", "step", "copies", "expected"),
    [
        ("0", 1, 0, (1, 1)),
        ("0", 1, 1, (1, 1)),
        ("0", 1, 4, (2, 5)),
        ("0", 2**30, 2, (1, 1)),  # Twice the step overflows i32.
        ("12", 1, 4, (1, 4)),
        ("13", 1, 4, (2, 5)),
        ("13", 3, 4, (2, 5)),
        ("12", 3, 4, (0, 4)),
        ("4", 1, 4, (0, 4)),
        ("4", 1, 100, (0, 4)),
        ("1", 1, 1, (1, 1)),
        ("-1", 1, 4, (0, 0)),
    ],
)
def test_copies(upper: str, step: int, copies: int, expected: tuple[int, int]) -> None:
    text = lowered("0", upper, step, f"{{cute.unroll = {copies} : i32}}")
    assert shape(text) == expected and "cute.unroll" not in text


def test_other_attributes_stay() -> None:
    text = lowered("0", "0", 1, '{cute.unroll = 2 : i32, my.note = "a"}')
    assert text.count('my.note = "a"') == 2


def test_unroll_factor_one_does_nothing() -> None:
    for copies in (0, 1):
        assert lowered("0", "0", 1, f"{{cute.unroll = {copies} : i32}}") == lowered("0", "0", 1, "")
