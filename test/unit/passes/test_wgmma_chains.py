"""Chains of consecutive wgmma ops as one block of inline PTX, compared with upstream's lowering of each op."""

from __future__ import annotations

import re

import pytest
from pipelines_support import kernel, module, with_registers
from xdsl.dialects.builtin import ModuleOp

from cute_dialect.passes.wgmma_registers import RegisterTypes, find_chains
from cute_dialect.pipelines.compiler import parse_module
from cute_dialect.pipelines.handoff import handoff_text
from cute_dialect.pipelines.upstream import UpstreamModule

Instruction = tuple[int, str, str, str, str, str, str]
"""N, the types of D, A, B, the layouts of A and B, what stands behind the type of D."""

FORMS: tuple[Instruction, ...] = (
    (16, "f32", "f16", "f16", "row", "col", ""),
    (8, "f32", "f16", "f16", "col", "row", ""),
    (8, "f32", "bf16", "bf16", "row", "row", ""),
    (24, "f16", "f16", "f16", "col", "col", ""),
    (8, "f32", "tf32", "tf32", "row", "col", ""),
    (8, "f32", "e4m3", "e5m2", "row", "col", ""),
    (8, "s32", "s8", "u8", "row", "col", ""),
    (16, "s32", "u8", "u8", "row", "col", ""),
)


def struct_of(form: Instruction) -> str:
    register = "f32" if form[1] == "f32" else "i32"
    count = form[0] // (4 if form[1] == "f16" else 2)
    return f"!llvm.struct<({', '.join([register] * count)})>"


def wgmma(form: Instruction, name: str, start: str, a: str, b: str, scale: str = "one", sign: str = "one") -> str:
    n, d, first, second, layout_a, layout_b, saturate = form
    k = {"f16": 16, "bf16": 16, "tf32": 8}.get(first, 32)
    s = struct_of(form)
    return (
        f"%{name} = nvvm.wgmma.mma_async %{a}, %{b}, %{start}, #nvvm.shape<m = 64, n = {n}, k = {k}>, "
        f"D [<{d}>, <{scale}>{saturate}], A [<{first}>, <{sign}>, <{layout_a}>], B [<{second}>, <one>, <{layout_b}>] : "
        f"{s} -> {s}\n"
    )


def program(form: Instruction, body: str) -> ModuleOp:
    s = struct_of(form)
    register = s[s.index("(") + 1 :].split(",")[0].rstrip(")>")
    head = f"%u = llvm.mlir.undef : {s}\n%c1 = arith.constant 2 : i64\n"
    tail = f"%x = llvm.extractvalue %last[1] : {s}\nllvm.store %x, %a0 : {register}, !llvm.ptr<1>\n"
    types = ["!llvm.ptr<1>", "i64", "i64"]
    return parse_module(module(kernel("k", ["o", "i64", "i64"], types, head + body + tail)))


def lengths(m: ModuleOp) -> list[int]:
    """Return the number of instructions in each chain of a module."""
    types = RegisterTypes()
    holders = [op for op in m.ops if op.name == "gpu.module"]
    return [len(chain) for h in holders for f in h.regions[0].block.ops for chain in find_chains(f, types)]


def ptx(text: str) -> list[str]:
    """Return the wgmma statements in the kernel's PTX, with normalized register names."""
    m = UpstreamModule.from_text(text)
    m.run("base-prepare")
    m.run("one-shot-convert-to-llvm")
    m.run("attach-nvvm-target", {"chip": "sm_90a", "features": "+ptx84", "opt-level": "3"})
    m.run("emit-gpu-binary")
    (code,) = m.ptx().values()
    statements = [" ".join(line.split()) for line in code.splitlines() if "wgmma" in line or "setp" in line]
    numbers: dict[str, str] = {}
    plain = [re.sub(r"%[a-z]+\d+", lambda r: numbers.setdefault(r[0], f"%{len(numbers)}"), line) for line in statements]
    flag, found = "", list[str]()
    for line in plain:
        flag = line.split()[-2] if line.startswith("setp") else flag
        if line.startswith("wgmma.mma"):
            line = line.replace(" p,", f" p={flag}")
        if not line.startswith("setp"):
            found.append(line)
    return found


@pytest.mark.parametrize("form", FORMS, ids=lambda f: ".".join(str(x) for x in f if x))
def test_chain_matches_the_lowering_of_its_instructions(form: Instruction) -> None:
    sign = "one" if form[1] == "s32" else "neg"
    body = (
        wgmma(form, "d0", "u", "a1", "a2", "zero")
        + "%p = arith.addi %a1, %c1 : i64\n%q = arith.addi %a2, %c1 : i64\n"
        + wgmma(form, "d1", "d0", "p", "q", sign=sign)
        + wgmma(form, "last", "d1", "q", "p")
        + "nvvm.wgmma.commit.group.sync.aligned\n"
    )
    m = program(form, body)
    text = handoff_text(with_registers(m))
    assert "nvvm.wgmma.mma_async" not in text and text.count("llvm.inline_asm") == 1
    ours, theirs = ptx(text), ptx(handoff_text(m))
    assert ours == theirs
    assert len([x for x in ours if x.startswith("wgmma.mma")]) == 3


def test_a_chain_goes_on_with_accumulators() -> None:
    form = FORMS[0]
    body = (
        wgmma(form, "d0", "u", "a1", "a2", "zero")
        + "nvvm.wgmma.commit.group.sync.aligned\n"
        + wgmma(form, "d1", "d0", "a1", "a2")
        + wgmma(form, "last", "d1", "a2", "a1")
    )
    m = program(form, body)
    text = handoff_text(with_registers(m))
    assert text.count("nvvm.wgmma.mma_async") == 1, "the one before the commit is alone"
    assert ptx(text) == ptx(handoff_text(m))


FENCE = "nvvm.wgmma.fence.aligned\n"
STORE = "%y = llvm.extractvalue %d0[0] : {s}\nllvm.store %y, %a0 : f32, !llvm.ptr<1>\n"


@pytest.mark.parametrize("between", [FENCE, STORE, "nvvm.barrier0\n"], ids=["fence", "use", "barrier"])
def test_no_chain_across_effects(between: str) -> None:
    form = FORMS[0]
    body = (
        wgmma(form, "d0", "u", "a1", "a2", "zero")
        + between.format(s=struct_of(form))
        + wgmma(form, "last", "d0", "a1", "a2")
    )
    m = program(form, body)
    assert lengths(m) == [1, 1]
    assert "inline_asm" not in handoff_text(with_registers(m))


def test_no_chain_over_other_accumulators_nor_with_a_second_use() -> None:
    form = FORMS[0]
    first = wgmma(form, "d0", "u", "a1", "a2", "zero")
    others = wgmma(form, "e", "u", "a2", "a1", "zero")
    last = wgmma(form, "last", "d0", "a1", "a2")
    assert lengths(program(form, first + others + last)) == [1, 1, 1], "the order of the instructions stays"
    twice = first + wgmma(form, "e", "d0", "a2", "a1") + last
    assert lengths(program(form, twice)) == [1, 1, 1], "both go on from the same accumulators"


def test_saturating_instructions_are_not_chained() -> None:
    form = (*FORMS[-1][:-1], ", <satfinite>")
    body = wgmma(form, "d0", "u", "a1", "a2", "zero") + wgmma(form, "last", "d0", "a1", "a2")
    assert lengths(program(form, body)) == [], "where upstream writes .satfinite is its own affair"


def test_no_chain_into_a_loop() -> None:
    form = FORMS[0]
    s = struct_of(form)
    body = (
        wgmma(form, "d0", "u", "a1", "a2", "zero")
        + f"%last = scf.for %i = %c1 to %a1 step %c1 iter_args(%d = %d0) -> ({s}) : i64 {{\n"
        + wgmma(form, "d1", "d", "a1", "a2")
        + wgmma(form, "d2", "d1", "a1", "a2")
        + f"scf.yield %d2 : {s}\n}}\n"
    )
    m = program(form, body)
    assert lengths(m) == [1, 2], "those in the loop"
    assert ptx(handoff_text(with_registers(m))) == ptx(handoff_text(m))
