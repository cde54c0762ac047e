"""Endless loops are reported early, and finite loops may run for far more ops than the step limit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from interp_support import DSMEM, kernel, run_kernel

from cute_dialect.interp import InterpError, Pointer
from cute_dialect.tools.cute_run import main

SCHEDULES = ("round-robin", "reverse", "random", "adversarial")
CLOSED = "the loop condition never changes"
SAME = "the values that the loop condition depends on do not change"
HEAD = "%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n%n = arith.constant 5000 : i32\n"


def loop(body: str, carried: str = "", types: str = "", after: str = "") -> str:
    """Return a loop that ends in scf.condition(%again), with or without a counter %i that starts at 0."""
    again = f"{after}\nscf.yield{' %j : i32' if carried else ''}"
    start = "(%i = %c0) : (i32) -> i32" if carried else ": () -> ()"
    passed = " %i : i32" if carried else ""
    argument = "^bb0(%k: i32):\n" if carried else ""
    result = "%r = " if carried else ""
    return f"{result}scf.while {start} {{\n{body}\nscf.condition(%again){passed}\n}} do {{\n{argument}{again}\n}}"


COUNTS = loop("%again = arith.cmpi slt, %i, %n : i32", "i", after="%j = arith.addi %k, %c1 : i32")
UNUSED = loop("%again = arith.constant true", "i", after="%j = arith.addi %k, %c1 : i32")
STAYS = loop("%again = arith.cmpi slt, %i, %n : i32", "i", after="%j = arith.muli %k, %c1 : i32")
FLIPS = loop("%again = arith.cmpi slt, %i, %n : i32", "i", after="%j = arith.xori %k, %c1 : i32")
ZERO = "%again = arith.cmpi eq, %v, %c0 : i32"
PLAIN = loop(f"%v = llvm.load %a : !llvm.ptr<1> -> i32\n{ZERO}")
LOCK = loop("%v0 = llvm.atomicrmw xchg %a, %c1 acquire : !llvm.ptr<1>, i32\n%v = arith.subi %v0, %c1 : i32\n" + ZERO)
POLLS = loop(f"%v = llvm.load volatile %a : !llvm.ptr<1> -> i32\n{ZERO}")
POLLS_AND_STORES = loop(
    f"%v = llvm.load volatile %a : !llvm.ptr<1> -> i32\n{ZERO}\nllvm.store %c1, %b : i32, !llvm.ptr<1>"
)
POLLS_AND_COUNTS = loop(
    f"%v = llvm.load volatile %a : !llvm.ptr<1> -> i32\n{ZERO}\n"
    "%x = llvm.atomicrmw add %b, %c1 monotonic : !llvm.ptr<1>, i32"
)
INNER = loop("%again = arith.constant true", after=COUNTS.replace("%n", "%c1").replace("%r", "%s"))
IN_FOR = loop("%again = arith.constant true", after="scf.for %q = %c0 to %n step %c1 : i32 {\n}")
FOR = f"scf.for %q = %c0 to %n step %c1 : i32 {{\n{UNUSED}\n}}"
CF = "llvm.br ^a(%c0 : i32)\n^a(%i: i32):\n%j = arith.addi %i, %c1 : i32\nllvm.br ^a(%j : i32)"
CF_NESTED = """llvm.br ^a
^a:
llvm.br ^b(%c0 : i32)
^b(%i: i32):
%j = arith.addi %i, %c1 : i32
%more = arith.cmpi slt, %j, %n : i32
llvm.cond_br %more, ^b(%j : i32), ^a"""
CF_STAYS = """llvm.br ^a(%c0 : i32)
^a(%i: i32):
%more = arith.cmpi slt, %i, %n : i32
llvm.cond_br %more, ^a(%i : i32), ^b
^b:"""
CF_RIGHT = """llvm.br ^a(%c0 : i32)
^a(%o: i32):
llvm.br ^b(%c0 : i32)
^b(%i: i32):
%j = arith.addi %i, %c1 : i32
%more = arith.cmpi slt, %j, %n : i32
llvm.cond_br %more, ^b(%j : i32), ^c
^c:
%p = arith.addi %o, %c1 : i32
%six = arith.constant 6 : i32
%again = arith.cmpi slt, %p, %six : i32
llvm.cond_br %again, ^a(%p : i32), ^d
^d:"""
ENDLESS = {
    "no end": (UNUSED, CLOSED),
    "a bound that is not approached": (STAYS, SAME),
    "back and forth": (FLIPS, SAME),
    "a plain load": (PLAIN, SAME),
    "a loop with loops that end": (INNER, CLOSED),
    "a loop with a loop of known length": (IN_FOR, CLOSED),
    "in a loop of known length": (FOR, CLOSED),
    "blocks": (CF, CLOSED),
    "blocks, a loop with loops that end": (CF_NESTED, CLOSED),
    "blocks, a bound that is not approached": (CF_STAYS, SAME),
    "a poll that counts": (POLLS_AND_COUNTS, SAME),
}
NO_WAY_OUT = ("blocks", "blocks, a loop with loops that end")


@pytest.mark.parametrize("block", [32, 256])
@pytest.mark.parametrize("name", ENDLESS)
def test_endless(name: str, block: int) -> None:
    body, why = ENDLESS[name]
    end = "" if name in NO_WAY_OUT else "llvm.return"
    with pytest.raises(InterpError) as e:
        run_kernel(
            kernel(f"{HEAD}{body}\n{end}", "%a: !llvm.ptr<1>, %b: !llvm.ptr<1>"),
            "k",
            [Pointer(np.zeros(4, np.int32)) for _ in range(2)],
            block=block,
            max_steps=2000,
        )
    assert e.value.kind == "limit"
    assert why in e.value.notes


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("body", [POLLS, POLLS_AND_STORES, LOCK.replace("arith.subi %v0, %c1", "arith.subi %c1, %v0")])
def test_endless_polls(body: str, schedule: str) -> None:
    """Eight warps poll a flag that is never set, or a lock that is never released."""
    with pytest.raises(InterpError) as e:
        run_kernel(
            kernel(f"{HEAD}{body}\nllvm.return", "%a: !llvm.ptr<1>, %b: !llvm.ptr<1>"),
            "k",
            [Pointer(np.zeros(4, np.int32)) for _ in range(2)],
            block=256,
            schedule=schedule,
            max_steps=100_000,
        )
    assert e.value.kind in ("deadlock", "limit")
    assert any("polls" in n for n in e.value.notes)


def test_a_plain_load_is_named() -> None:
    with pytest.raises(InterpError) as e:
        run_kernel(
            kernel(f"{HEAD}{PLAIN}\nllvm.return", "%a: !llvm.ptr<1>"),
            "k",
            [Pointer(np.zeros(4, np.int32))],
            block=32,
            max_steps=1000,
        )
    assert str(e.value) == (
        "error: step limit of 1000 ops of threads in lockstep reached: the loop may not terminate\n"
        "  op: scf.while\n"
        "  thread (0, 0, 0) of block (0, 0, 0)\n"
        "  note: the values that the loop condition depends on do not change\n"
        "  note: the condition uses a plain load (llvm.load), which need not see writes by other threads; use a "
        "volatile, relaxed or acquire load\n"
        "  note: raise max_steps (cute-run --max-steps) if the loop does terminate"
    )


IN_MEMORY = loop(
    "%v = llvm.load %a : !llvm.ptr<1> -> i32\n%w = arith.addi %v, %c1 : i32\n"
    "llvm.store %w, %a : i32, !llvm.ptr<1>\n%again = arith.cmpi slt, %w, %n : i32"
)
SEARCHES = loop(
    "%p = llvm.getelementptr %b[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32\n"
    f"%v = llvm.load %p : !llvm.ptr<1> -> i32\n{ZERO}",
    "i",
    after="%j = arith.addi %k, %c1 : i32",
)
RELAXES = loop(  # Sets one element per iteration until the last. The polled flag is unchanged until then.
    "%t = llvm.load %a : !llvm.ptr<1> -> i32\n%t1 = arith.addi %t, %c1 : i32\nllvm.store %t1, %a : i32, !llvm.ptr<1>\n"
    "%p = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32\n"
    "llvm.store %c1, %p : i32, !llvm.ptr<1>\n%q = llvm.getelementptr %b[1999] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32\n"
    f"%v = llvm.load %q : !llvm.ptr<1> -> i32\n{ZERO}"
)
RIGHT = {
    "counts": COUNTS,
    "counts in a loop": f"scf.for %q = %c0 to %c1 step %c1 : i32 {{\n{COUNTS}\n}}",
    "loops of known length": "scf.for %q = %c0 to %n step %c1 : i32 {\nscf.for %u = %c0 to %c1 step %c1 : i32 {\n}\n}",
    "blocks in blocks": CF_RIGHT,
    "counts in memory": IN_MEMORY,
    "searches": SEARCHES,
    "converges": RELAXES,
}


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("name", RIGHT)
def test_finite_loops_are_accepted(name: str) -> None:
    """Loops that make progress may execute far more ops than the step limit."""
    a, b = np.zeros(1, np.int32), np.zeros(2000, np.int32)
    b[-1] = name == "searches"
    module = kernel(f"{HEAD}{RIGHT[name]}\nllvm.return", "%a: !llvm.ptr<1>, %b: !llvm.ptr<1>")
    report = run_kernel(module, "k", [Pointer(a), Pointer(b)], block=1, max_steps=100)
    assert report.ops > 4000


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_polling_while_other_warps_progress(schedule: str) -> None:
    """Warp 0 polls a flag that is set after two other warps have met at a barrier 300 times."""
    body = f"""
        %c32 = arith.constant 32 : i32
        %c64 = arith.constant 64 : i32
        %first = arith.cmpi slt, %tid, %c32 : i32
        scf.if %first {{
          {POLLS}
        }} else {{
          %t = arith.constant 300 : i32
          scf.for %q = %c0 to %t step %c1 : i32 {{
            nvvm.barrier id = %c1 number_of_threads = %c64
          }}
          %last = arith.cmpi eq, %tid, %c32 : i32
          scf.if %last {{
            llvm.store volatile %c1, %a : i32, !llvm.ptr<1>
          }}
        }}
        llvm.return
    """
    module = kernel(HEAD + body, "%a: !llvm.ptr<1>", DSMEM)
    run_kernel(module, "k", [Pointer(np.zeros(1, np.int32))], block=96, max_steps=1000, schedule=schedule)


ENDLESS_FILE = """gpu.module @m {
  llvm.func @k(%a: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    %c0 = arith.constant 0 : i32
    scf.while : () -> () {
      %v = llvm.load %a : !llvm.ptr<1> -> i32
      %again = arith.cmpi eq, %v, %c0 : i32
      scf.condition(%again)
    } do {
      scf.yield
    }
    llvm.return
  }
}
"""


def test_max_steps_of_cute_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "spin.mlir"
    path.write_text(ENDLESS_FILE)
    options = [str(path), "--device=cpu", "--in", "4xi32:zeros", "--grid=1,1,1", "--block=32,1,1"]
    assert main([*options, "--max-steps=5000"]) == 1
    assert capsys.readouterr().err == (
        f"cute-run: error: {path}:4:5: error: step limit of 5000 ops of threads in lockstep reached: the loop may not "
        "terminate\n"
        "  op: scf.while\n"
        "  thread (0, 0, 0) of block (0, 0, 0)\n"
        "  note: the values that the loop condition depends on do not change\n"
        f"  note: the condition uses a plain load (llvm.load at {path}:5:12), which need not see writes by other "
        "threads; use a volatile, relaxed or acquire load\n"
        "  note: raise max_steps (cute-run --max-steps) if the loop does terminate\n"
    )
    assert main([*options, "--max-steps=0"]) == 1
    assert "max_steps is 0; it must be 1 or more" in capsys.readouterr().err
