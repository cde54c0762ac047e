"""Accumulators in registers declared in PTX: same machine code, and only if no two values are live at once."""

from __future__ import annotations

import pytest
from pipelines_support import kernel, module, with_registers
from xdsl.dialects.builtin import ModuleOp

from cute_dialect.passes.wgmma_registers import RegisterTypes, Webs, find_webs
from cute_dialect.pipelines.compiler import parse_module
from cute_dialect.pipelines.handoff import handoff_text
from cute_dialect.pipelines.ptxas import assemble
from cute_dialect.pipelines.upstream import UpstreamModule

N = 8
S = f"!llvm.struct<({', '.join(['f32'] * N)})>"
OUTPUTS, INPUTS = ",".join(["=f"] * N), ",".join(str(i) for i in range(N))
FENCE = "nvvm.wgmma.fence.aligned\n"
COMMIT = "nvvm.wgmma.commit.group.sync.aligned\n"
UNDEFINED = f"%u = llvm.mlir.undef : {S}\n%c2 = arith.constant 2 : i64\n"


def wgmma(name: str, start: str, scale: str = "one", a: str = "a1") -> str:
    return (
        f"%{name} = nvvm.wgmma.mma_async %{a}, %a2, %{start}, #nvvm.shape<m = 64, n = 16, k = 16>, "
        f"D [<f32>, <{scale}>], A [<f16>, <one>, <row>], B [<f16>, <one>, <col>] : {S} -> {S}\n"
    )


def tied(name: str, source: str, code: str, more: str = "") -> str:
    """Return inline PTX with all accumulators as read-write operands. ``more`` names an extra 64-bit operand."""
    taken = "".join(f"%{name}t{i} = llvm.extractvalue %{source}[{i}] : {S}\n" for i in range(N))
    operands = ", ".join([f"%{name}t{i}" for i in range(N)] + ([f"%{more}"] if more else []))
    types = ", ".join(["f32"] * N + (["i64"] if more else []))
    constraints = f"{OUTPUTS},{INPUTS}" + (",l" if more else "")
    return (
        f'{taken}%{name} = llvm.inline_asm has_side_effects "{code}", "{constraints}" {operands} : ({types}) -> {S}\n'
    )


def stored(source: str, base: int = 0) -> str:
    """Return ops that store each accumulator register to memory."""
    return "".join(
        f"%{source}x{i} = llvm.extractvalue %{source}[{i}] : {S}\n"
        f"%{source}p{i} = llvm.getelementptr %a0[{base + i}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32\n"
        f"llvm.store %{source}x{i}, %{source}p{i} : f32, !llvm.ptr<1>\n"
        for i in range(N)
    )


def loop(carried: str, body: str, result: str = "r") -> str:
    """Return an ``scf.for``. The body yields ``%y`` unless it contains its own ``scf.yield``.

    ``carried`` lists the loop-carried values as ``%arg = %init``, separated by commas.
    """
    count = carried.count("=")
    types = ", ".join([S] * count)
    end = "" if "scf.yield" in body else f"scf.yield %y : {S}\n"
    many = f"%{result}:{count}" if count > 1 else f"%{result}"
    return (
        f"{many} = scf.for %{result}i = %c2 to %a1 step %c2 iter_args({carried}) -> ({types}) : i64 {{\n{body}{end}}}\n"
    )


def while_(carried: str, before: str, after: str, passed: str, result: str = "r") -> str:
    """Return an ``scf.while`` with the regions ``before`` and ``after``.

    ``carried`` is one struct as ``%arg = %init``, or empty. If it is not empty, ``after`` yields ``%y``.
    ``passed`` names the value that ``before`` passes to ``after`` as ``%z``, or is empty.
    """
    types, more = S if carried else "", ", " if carried else ""
    out = f"(i64{', ' + S if passed else ''})"
    return (
        f"%{result}i{', %' + result if passed else ''} = ".replace(f"%{result}i, %{result}", f"%{result}:2")
        + f"scf.while ({carried}{more}%{result}n = %c2) : ({types}{more}i64) -> {out} {{\n{before}"
        + f"%{result}m = arith.cmpi slt, %{result}n, %a1 : i64\n"
        + f"scf.condition(%{result}m) %{result}n{', %' + passed if passed else ''} : {out.strip('()')}\n}} do {{\n"
        + f"^bb0(%{result}o: i64{', %z: ' + S if passed else ''}):\n{after}"
        + f"%{result}p = arith.addi %{result}o, %c2 : i64\n"
        + f"scf.yield {'%y, ' if carried else ''}%{result}p : {types}{more}i64\n}}\n"
    )


# The wait after a loop differs from a wait in the loop. Otherwise LLVM would merge them in front of the branch.
WAIT = "wgmma.wait_group.sync.aligned 0;"
REGISTERS_OF_A = (
    "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 "
    "{" + ", ".join(f"${i}" for i in range(N)) + "}, $16, $16, 1, 1, 1, 0, 0;"
)

HELD = {
    "straight": FENCE
    + wgmma("d0", "u", "zero")
    + "%n = arith.addi %a1, %c2 : i64\n"
    + wgmma("d1", "d0", a="n")
    + COMMIT
    + tied("w", "d1", WAIT)
    + stored("w"),
    "loop": FENCE
    + wgmma("d0", "u", "zero")
    + COMMIT
    + loop("%d = %d0", FENCE + wgmma("d1", "d") + wgmma("y", "d1") + COMMIT)
    + tied("w", "r", WAIT)
    + stored("w"),
    "a tile a round": loop(
        "%d = %u",
        FENCE
        + wgmma("d0", "u", "zero")
        + loop("%e = %d0", FENCE + wgmma("d1", "e") + COMMIT + f"scf.yield %d1 : {S}\n", "q")
        + tied("y", "q", WAIT)
        + stored("y")
        + f"scf.yield %y : {S}\n",
    ),
    "while": FENCE
    + wgmma("d0", "u", "zero")
    + COMMIT
    + while_("%d = %d0", "", FENCE + wgmma("d1", "z") + wgmma("y", "d1") + COMMIT, "d")
    + tied("w", "r#1", WAIT)
    + stored("w"),
    "written before the test": FENCE
    + while_("%d = %u", FENCE + wgmma("x", "d") + COMMIT, tied("y", "z", WAIT) + stored("y"), "x")
    + tied("w", "r#1", WAIT + " ")
    + stored("w", N),
    "a tile a round of while": while_(
        "%d = %u",
        "",
        FENCE
        + wgmma("d0", "u", "zero")
        + loop("%e = %d0", FENCE + wgmma("d1", "e") + COMMIT + f"scf.yield %d1 : {S}\n", "q")
        + tied("y", "q", WAIT)
        + stored("y"),
        "d",
    ),
    "made anew in each round of while": while_(
        "", "", FENCE + wgmma("d0", "u", "zero") + COMMIT + tied("w", "d0", WAIT) + stored("w"), ""
    ),
    "passed on, not carried": while_(
        "", FENCE + wgmma("x", "u", "zero") + COMMIT, tied("w", "z", WAIT) + stored("w"), "x"
    )
    + tied("v", "r#1", WAIT + " ")
    + stored("v", N),
    "while in while": while_(
        "%d = %u",
        FENCE + wgmma("x", "u", "zero") + COMMIT,
        while_("%e = %z", "", FENCE + wgmma("y", "z2") + COMMIT, "e", "q").replace("%z:", "%z2:")
        + tied("y", "q#1", WAIT)
        + stored("y"),
        "x",
    ),
    "inline PTX": FENCE
    + wgmma("d0", "u", "zero")
    + tied("d1", "d0", REGISTERS_OF_A, "a1")
    + COMMIT
    + tied("w", "d1", WAIT)
    + stored("w"),
    "waits between": FENCE
    + wgmma("d0", "u", "zero")
    + COMMIT
    + tied("w", "d0", WAIT)
    + stored("w")
    + tied("f", "w", "wgmma.fence.sync.aligned;")
    + wgmma("d1", "f")
    + COMMIT
    + tied("v", "d1", WAIT)
    + stored("v", N),
    "two at a time": FENCE
    + wgmma("d0", "u", "zero")
    + wgmma("e0", "u", "zero", a="a2")
    + wgmma("d1", "d0")
    + COMMIT
    + tied("w", "d1", WAIT)
    + tied("v", "e0", "")
    + stored("w")
    + stored("v", N),
    "in a branch": "%b = arith.cmpi slt, %a1, %c2 : i64\nscf.if %b {\n"
    + FENCE
    + wgmma("d0", "u", "zero")
    + COMMIT
    + tied("w", "d0", WAIT)
    + stored("w")
    + "}\n",
}


def program(body: str) -> str:
    return module(kernel("k", ["o", "i64", "i64", "s"], ["!llvm.ptr<1>", "i64", "i64", S], UNDEFINED + body))


def webs_of(m: ModuleOp) -> Webs:
    """Return the webs of the module's only kernel."""
    (holder,) = [op for op in m.ops if op.name == "gpu.module"]
    return find_webs(holder.regions[0].block.first_op.regions[0].block, RegisterTypes())  # type: ignore[union-attr]


def ptx(text: str) -> str:
    m = UpstreamModule.from_text(text)
    m.run("base-prepare")
    m.run("one-shot-convert-to-llvm")
    m.run("attach-nvvm-target", {"chip": "sm_90a", "features": "+ptx83", "opt-level": "3"})
    m.run("emit-gpu-binary")
    (code,) = m.ptx().values()
    return code


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("name", HELD)
def test_the_machine_code_is_the_same(name: str) -> None:
    m = parse_module(program(HELD[name]))
    webs = webs_of(m)
    assert len(set(webs.number.values())) == (2 if name == "two at a time" else 1)
    ours, theirs = ptx(handoff_text(with_registers(m))), ptx(handoff_text(m))
    assert "%acc0_<8>" in ours and "%acc" not in theirs
    assert assemble(ours, "sm_90a").cubin == assemble(theirs, "sm_90a").cubin


REFUSED = {
    "read before the wait": wgmma("d0", "u", "zero") + stored("d0"),
    "used twice": wgmma("d0", "u", "zero")
    + wgmma("d1", "d0")
    + wgmma("d2", "d0")
    + tied("w", "d1", WAIT)
    + tied("v", "d2", "")
    + stored("w")
    + stored("v", N),
    "used again and again": wgmma("d0", "u", "zero")
    + loop("%d = %u", wgmma("y", "d0"))
    + tied("w", "r", WAIT)
    + stored("w"),
    "written before the last was read": wgmma("d0", "u", "zero")
    + loop("%d = %d0", wgmma("y", "u", "zero") + tied("w", "d", WAIT) + stored("w"))
    + tied("v", "r", WAIT)
    + stored("v", N),
    "exchanged": wgmma("d0", "u", "zero")
    + wgmma("e0", "u", "zero")
    + loop("%d = %d0, %e = %e0", f"scf.yield %e, %d : {S}, {S}\n")
    + tied("w", "r#0", WAIT)
    + stored("w"),
    "exchanged, of nothing": loop(
        "%d = %u, %e = %u", wgmma("x", "d") + wgmma("y", "e") + f"scf.yield %y, %x : {S}, {S}\n"
    )
    + tied("w", "r#0", WAIT)
    + stored("w"),
    "taken by every round": wgmma("d0", "u", "zero")
    + "scf.for %i = %c2 to %a1 step %c2 : i64 {\n"
    + wgmma("d1", "d0")
    + tied("w", "d1", WAIT)
    + stored("w")
    + "}\n",
    "overwritten in a branch": wgmma("d0", "u", "zero")
    + "%b = arith.cmpi slt, %a1, %c2 : i64\nscf.if %b {\n"
    + wgmma("d1", "d0")
    + tied("w", "d1", WAIT)
    + stored("w")
    + "}\n"
    + tied("v", "d0", WAIT)
    + stored("v", N),
    "yielded after it went on": wgmma("d0", "u", "zero")
    + loop("%d = %d0", wgmma("y", "d") + wgmma("z", "y"))
    + tied("w", "r", WAIT)
    + stored("w"),
    "carried after it went on": wgmma("d0", "u", "zero")
    + wgmma("d1", "d0")
    + tied("v", "d1", WAIT)
    + stored("v", N)
    + loop("%d = %d0", wgmma("y", "d"))
    + tied("w", "r", WAIT)
    + stored("w"),
    "while: used again and again": wgmma("d0", "u", "zero")
    + while_("%d = %u", "", wgmma("y", "d0"), "d")
    + tied("w", "r#1", WAIT)
    + stored("w"),
    "while: written before the last was read": wgmma("d0", "u", "zero")
    + while_("%d = %d0", wgmma("x", "u", "zero") + tied("w", "d", WAIT) + stored("w"), wgmma("y", "z"), "x")
    + tied("v", "r#1", WAIT)
    + stored("v", N),
    "while: the one before the last is left": wgmma("d0", "u", "zero")
    + while_("%d = %d0", wgmma("x", "d"), wgmma("y", "z"), "d")
    + tied("v", "r#1", WAIT)
    + stored("v", N),
    "while: yielded after it went on": wgmma("d0", "u", "zero")
    + while_("%d = %d0", "", wgmma("y", "z") + wgmma("k", "y"), "d")
    + tied("w", "r#1", WAIT)
    + stored("w"),
    "while: outlived by its start": wgmma("d0", "u", "zero")
    + while_("%d = %d0", wgmma("x", "d"), wgmma("y", "z"), "x")
    + tied("v", "d0", WAIT)
    + stored("v", N),
    "an argument": wgmma("d0", "a3") + tied("w", "d0", WAIT) + stored("w"),
    "made of values": f"%z = arith.constant 0.0 : f32\n%s = llvm.insertvalue %z, %u[0] : {S}\n"
    + wgmma("d0", "s")
    + tied("w", "d0", WAIT)
    + stored("w"),
    "a result read": wgmma("d0", "u", "zero") + loop("%d = %d0", tied("y", "d", WAIT)) + stored("r"),
    "from one of two": f"%b = arith.cmpi slt, %a1, %c2 : i64\n{wgmma('d0', 'u', 'zero')}%r = scf.if %b -> {S} {{\n"
    + wgmma("d1", "d0")
    + f"scf.yield %d1 : {S}\n}} else {{\nscf.yield %d0 : {S}\n}}\n"
    + tied("w", "r", WAIT)
    + stored("w"),
}


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_values_stay_unchanged(name: str) -> None:
    m = parse_module(program(REFUSED[name]))
    assert not webs_of(m).number
    text = handoff_text(with_registers(m))
    assert "%acc" not in text
    UpstreamModule.from_text(text)


def test_only_kernels_declare_registers() -> None:
    text = program(HELD["straight"]).replace("nvvm.kernel, ", "").replace("gpu.kernel, ", "")
    assert "%acc" not in handoff_text(with_registers(parse_module(text)))


def test_unsupported_web_does_not_affect_others() -> None:
    body = HELD["straight"] + wgmma("e0", "u", "zero") + stored("e0", N)
    webs = webs_of(parse_module(program(body)))
    assert set(webs.number.values()) == {0} and len(webs.number) == 3
