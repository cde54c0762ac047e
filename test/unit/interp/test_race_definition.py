"""Race detection in lockstep and warp execution, compared with a definition that checks all pairs of accesses."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from interp_support import DSMEM, kernel, run_kernel

from cute_dialect.interp import InterpError, Pointer

THREADS, BLOCKS, PLACES = 64, 2, 128


class Step(NamedTuple):
    """A barrier, or an access by each thread t < active of block b to element (t * scale + add + b * far) mod 128."""

    what: str
    scale: int = 1
    add: int = 0
    far: int = 0
    active: int = THREADS

    def place(self, t: int, b: int) -> int:
        return (t * self.scale + self.add + b * self.far) % PLACES


def steps() -> st.SearchStrategy[Step]:
    access = st.builds(
        Step,
        st.sampled_from(["load", "store", "add", "load global", "store global", "add global"]),
        st.sampled_from([0, 1, 1, 1, 2, 3]),
        st.sampled_from([0, 0, 1, 63, 64]),
        st.sampled_from([0, 64]),
        st.sampled_from([1, 32, 64, 64]),
    )
    return st.one_of(access, access, st.just(Step("barrier")))


def has_race(program: list[Step]) -> bool:
    """Return True if two threads access one location without a barrier between, one writes, and not both are atomic."""
    seen: dict[tuple[bool, int, int], list[tuple[int, int, int, str]]] = {}
    phase = 0
    for step in program:
        if step.what == "barrier":
            phase += 1
            continue
        in_global = step.what.endswith("global")
        for b, t in itertools.product(range(BLOCKS), range(step.active)):
            key = (in_global, 0 if in_global else b, step.place(t, b))
            seen.setdefault(key, []).append((b, t, phase, step.what.split()[0]))
    for accesses in seen.values():
        for (b0, t0, p0, w0), (b1, t1, p1, w1) in itertools.combinations(accesses, 2):
            unordered = b0 != b1 or (t0 != t1 and p0 == p1)
            if unordered and {w0, w1} not in ({"load"}, {"add"}):
                return True
    return False


def text(program: list[Step]) -> str:
    lines = ["%d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>", f"%mod = arith.constant {PLACES - 1} : i32"]
    for i, s in enumerate(program):
        if s.what == "barrier":
            lines.append("nvvm.barrier0")
            continue
        base, space = ("%a", 1) if s.what.endswith("global") else ("%d", 3)
        lines += [f"%{n}{i} = arith.constant {v} : i32" for n, v in zip("cefh", (s.scale, s.add, s.far, s.active))]
        lines += [
            f"%m{i} = arith.muli %tid, %c{i} : i32",
            f"%n{i} = arith.addi %m{i}, %e{i} : i32",
            f"%o{i} = arith.muli %cta, %f{i} : i32",
            f"%q{i} = arith.addi %n{i}, %o{i} : i32",
            f"%r{i} = arith.andi %q{i}, %mod : i32",
            f"%p{i} = llvm.getelementptr {base}[%r{i}] : (!llvm.ptr<{space}>, i32) -> !llvm.ptr<{space}>, i32",
            f"%g{i} = arith.cmpi ult, %tid, %h{i} : i32",
            f"scf.if %g{i} {{",
        ]
        pointer = f"!llvm.ptr<{space}>"
        lines.append(
            {
                "load": f"%v{i} = llvm.load %p{i} : {pointer} -> i32",
                "store": f"llvm.store %tid, %p{i} : i32, {pointer}",
                "add": f"%v{i} = llvm.atomicrmw add %p{i}, %tid monotonic : {pointer}, i32",
            }[s.what.split()[0]]
        )
        lines.append("}")
    return "\n".join([*lines, "llvm.return"])


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@example([Step("load", 0, 0, 0, 1), Step("add", 0, 0, 0, 1), Step("add", 3, 1, 64, 32)])
@example([Step("store", 0, 0, 0, 1), Step("add", 0, 0, 0, 1), Step("add", 3, 1, 64, 32)])
@given(st.lists(steps(), min_size=2, max_size=6))
def test_both_detectors_match_the_definition(program: list[Step]) -> None:
    module = kernel(text(program), "%a: !llvm.ptr<1>", DSMEM)
    want = has_race(program)
    for width in ("auto", "warp"):
        try:
            run_kernel(
                module, "k", [Pointer(np.zeros(PLACES, np.int32))], BLOCKS, THREADS, dynamic_smem=4 * PLACES,
                checks=["race"], width=width,
            )  # fmt: skip
            found = False
        except InterpError as e:
            assert e.kind == "race", e
            found = True
        assert found == want, (width, program)


def test_reported_race() -> None:
    program = [Step("store"), Step("load", 1, 1)]
    try:
        run_kernel(
            kernel(text(program), "%a: !llvm.ptr<1>", DSMEM), "k", [Pointer(np.zeros(PLACES, np.int32))],
            BLOCKS, THREADS, dynamic_smem=4 * PLACES, checks=["race"],
        )  # fmt: skip
        raise AssertionError("a race")
    except InterpError as e:
        assert (e.thread, e.block, e.address) == ((0, 0, 0), (0, 0, 0), 1024 + 4)
        assert "read-after-write race on shared memory at byte offset 4" in str(e)
        assert "the earlier store is by thread (1, 0, 0) of block (0, 0, 0)" in str(e)
