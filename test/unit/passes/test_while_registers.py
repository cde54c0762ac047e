"""Register tensors in ``scf.while``, nested with ``scf.for`` and ``scf.if``, are not moved to local memory."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from register_programs import Body, For, If, Rotate, Set, While, check, random_body

from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines.ptxas import assemble

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


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("name", SHAPES)
def test_loops_carry_registers(name: str) -> None:
    check(SHAPES[name])


@pytest.mark.sample(every=10)
@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int) -> None:
    check(random_body(random.Random(seed), 3))


LOOP = re.compile(
    r"( *)(%\w+):5 = scf\.for (%tile\w*) = (%\w+) to (%\w+) step (%\w+) iter_args\((.*?)\) -> \((.*?)\) : i32 \{\n"
    r"(.*?)\n"
    r"\1  scf\.yield (.*?) : .*?\n\1\}\n",
    re.DOTALL,
)


def tile_loop_as_while(found: re.Match[str]) -> str:
    """Rewrite a tile loop as ``scf.while``, the form emitted by schedulers that fetch one tile at a time."""
    pad, name, tile, first, end, step, carried, types, body, yielded = found.groups()
    pairs = [pair.split(" = ") for pair in carried.split(", ")]
    starts = ", ".join(f"{n}_now = {start}" for n, start in pairs)
    now = ", ".join(f"{n}_now" for n, _ in pairs)
    arguments = ", ".join(f"{n}: {type}" for (n, _), type in zip(pairs, types.split(", ")))
    return f"""\
{pad}{name}:6 = scf.while ({starts}, %tile_now = {first}) : ({types}, i32) -> ({types}, i32) {{
{pad}  %more = arith.cmpi slt, %tile_now, {end} : i32
{pad}  scf.condition(%more) {now}, %tile_now : {types}, i32
{pad}}} do {{
{pad}^bb0({arguments}, {tile}: i32):
{body}
{pad}  %next_tile = arith.addi {tile}, {step} : i32
{pad}  scf.yield {yielded}, %next_tile : {types}, i32
{pad}}}
"""


def persistent_gemm(sms: int = 132) -> tuple[str, str]:
    """Return the text of the Hopper GEMM twice: with its tile loops as ``scf.for``, and as ``scf.while``."""
    text = gemm_text(GemmConfig(sms=sms))
    found, loops = LOOP.subn(tile_loop_as_while, text)
    assert loops == 2
    return text, found


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("unroll", ["", " {cute.unroll = 2 : i32}"])
def test_a_persistent_gemm_multiplies(unroll: str) -> None:
    """One cluster computes all tiles correctly, with and without the K loops unrolled by 2."""
    text = persistent_gemm(sms=2)[1]
    # The K loops of the consumers, which keep one wgmma group in flight.
    k_loop = re.compile(r"(n = 1 : i32\} : \(\) -> \(\)\n(?: {12}.*\n)* {10}\})")
    assert len(k_loop.findall(text)) == 2
    text = k_loop.sub(rf"\1{unroll}", text)
    rng = np.random.default_rng(3)
    a = rng.integers(-2, 3, (392, 328)).astype(np.float16)
    b = rng.integers(-2, 3, (520, 328)).astype(np.float16)
    out = np.full((392, 520), np.nan, np.float16)
    module = compile_cute(text, emit="ptx", chip="sm_90a")
    assert module.ptx.count("wgmma.mma_async") == (28 if unroll else 12) and ".local" not in module.ptx
    launch = compile_cute(text, emit="base").kernel("launch")
    assert launch.plan(a, b, out).shape.grid[0] == 2
    launch(a, b, out, device="cpu", checks=("race", "sync", "oob", "uninit"))
    assert (out == (a.astype(np.float64) @ b.astype(np.float64).T)).all()
