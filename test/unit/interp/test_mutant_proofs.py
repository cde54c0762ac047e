"""Proofs of ``test/oracle/mutant_proofs.py`` on small kernels: each holds for a kernel and not for its variants."""

from __future__ import annotations

import pytest
from interp_support import parse
from mutant_kernels import Subject
from mutant_proofs import proof
from mutations import find, mutations

SUBJECT = Subject("a kernel", str, "k", [], lambda _: True)

RING = """gpu.module @m {
  llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
  llvm.func @k(%n: i32) attributes {gpu.kernel, nvvm.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %ticks = arith.constant 1000 : i32
    %base = llvm.mlir.addressof @smem : !llvm.ptr<3>
    %e0 = llvm.getelementptr %base[8] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %e1 = llvm.getelementptr %base[2] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i64
    nvvm.mbarrier.init %e0, %c1 : !llvm.ptr<3>, i32
    nvvm.mbarrier.init %e1, %c1 : !llvm.ptr<3>, i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %produces = arith.cmpi eq, %t, %c0 : i32
    scf.if %produces {
      scf.for %i = %c0 to %n step %c1 : i32 {
        %parity = arith.andi %i, %c1 : i32
        nvvm.mbarrier.try_wait.parity %e0, %parity, %ticks : !llvm.ptr<3>, i32, i32
        nvvm.mbarrier.try_wait.parity %e1, %parity, %ticks : !llvm.ptr<3>, i32, i32
      }
    } else {
      scf.for %i = %c0 to %n step %c1 : i32 {
        %a = arith.cmpi eq, %t, %c1 : i32
        scf.if %a {
          nvvm.mbarrier.arrive %e1 : !llvm.ptr<3>
        }
        %b = arith.cmpi eq, %t, %c1 : i32
        scf.if %b {
          nvvm.mbarrier.arrive %e0 : !llvm.ptr<3>
        }
      }
    }
    llvm.return
  }
}
"""


def reason(text: str, what: str, nth: int = 0) -> str:
    """Return the proof of the nth mutation with this description."""
    kernel = find(parse(text), "k")
    mutation = [m for m in mutations(kernel) if f"{m.kind} {m.what}" == what][nth]
    return proof(SUBJECT, mutation, list(kernel.walk())[mutation.place])


def test_a_wait_for_what_is_released_earlier_is_not_needed() -> None:
    assert "release another one afterwards" in reason(RING, "drop nvvm.mbarrier.try_wait.parity", 1)
    assert reason(RING, "drop nvvm.mbarrier.try_wait.parity", 0) == ""


@pytest.mark.parametrize(
    "changes",
    [
        [("arrive %e1", "arrive %x"), ("arrive %e0", "arrive %e1"), ("arrive %x", "arrive %e0")],  # in the other order
        [("init %e1, %c1", "init %e1, %ticks")],  # other numbers of arrivals
        [("%b = arith.cmpi eq", "%b = arith.cmpi ne")],  # other threads
        [("%b = arith.cmpi eq, %t, %c1", "%b = arith.cmpi eq, %i, %c1")],  # other iterations
        [("nvvm.mbarrier.arrive %e1", "nvvm.mbarrier.arrive %e1 : !llvm.ptr<3>\nnvvm.mbarrier.arrive %e1")],
        [("try_wait.parity %e1, %parity", "try_wait.parity %e1, %i")],  # another phase
        [("%base[2] : (!llvm.ptr<3>)", "%base[%n] : (!llvm.ptr<3>, i32)")],  # an unknown mbarrier
    ],
)
def test_a_wait_is_needed_if_the_releases_differ(changes: list[tuple[str, str]]) -> None:
    text = RING
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    assert reason(text, "drop nvvm.mbarrier.try_wait.parity", 1) == ""


FENCE = "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}"
MMA = 'llvm.inline_asm has_side_effects asm_dialect = att "wgmma.mma_async.sync.aligned;", "" : () -> ()'
LOOP = "scf.for %i = %c0 to %n step %c1 : i32 {"


def fenced(*after: str) -> str:
    """Return a kernel with a store, a proxy fence, and the lines that follow."""
    return "\n".join(
        [
            "gpu.module @m {",
            "llvm.mlir.global external @smem() {addr_space = 3 : i32} : !llvm.array<64 x i32>",
            "llvm.func @k(%n: i32, %some: i1) attributes {gpu.kernel, nvvm.kernel} {",
            "%c0 = arith.constant 0 : i32",
            "%c1 = arith.constant 1 : i32",
            "%base = llvm.mlir.addressof @smem : !llvm.ptr<3>",
            "llvm.store %n, %base : i32, !llvm.ptr<3>",
            FENCE,
            *after,
            "llvm.return",
            "}",
            "}",
        ]
    )


@pytest.mark.parametrize(
    "after",
    [
        [FENCE, MMA],
        [LOOP, FENCE, MMA, "}"],
        [LOOP, FENCE, MMA, "}", FENCE, MMA],
        ["scf.if %some {", FENCE, MMA, "} else {", FENCE, "}", MMA],
        ["nvvm.barrier id = %c1 number_of_threads = %c1", "scf.if %some {", FENCE, MMA, "}"],
    ],
)
def test_a_proxy_fence_before_another_one_is_not_needed(after: list[str]) -> None:
    assert "the next proxy fence" in reason(fenced(*after), "drop nvvm.fence.proxy")


@pytest.mark.parametrize(
    "after",
    [
        [MMA, FENCE],
        [LOOP, MMA, FENCE, "}"],
        [LOOP, FENCE, "}", MMA],  # without iterations there is no fence
        ["scf.if %some {", FENCE, "}", MMA],
        ["scf.if %some {", MMA, "} else {", FENCE, "}"],
        # Other threads pass the same barrier, and issue an MMA.
        [
            "nvvm.barrier id = %c1 number_of_threads = %c1",
            FENCE,
            "scf.if %some {",
            "nvvm.barrier id = %c1 number_of_threads = %c1",
            MMA,
            "}",
        ],
        [],
    ],
)
def test_a_proxy_fence_is_needed_if_an_mma_may_come_before_the_next(after: list[str]) -> None:
    assert reason(fenced(*after), "drop nvvm.fence.proxy") == ""


ARRIVE = 'llvm.call_intrinsic "llvm.nvvm.barrier.cta.arrive.aligned.count"(%c1, %c1) : (i32, i32) -> ()'
LOG = 'llvm.call_intrinsic "llvm.nvvm.lg2.approx.f"(%x) : (f32) -> f32'


def test_arrivals_at_named_barriers_are_mutated_and_crossed() -> None:
    text = fenced(f"%x = arith.constant 1.0 : f32\n%y = {LOG}", ARRIVE, "%z = llvm.load %base : !llvm.ptr<3> -> i32")
    kinds = [m.kind for m in mutations(find(parse(text), "k")) if "call_intrinsic" in m.what]
    assert kinds == ["drop", "move", "move"]
    assert "path of causality" in reason(text, "move nvvm.fence.proxy later")
    assert "later it orders more" in reason(text, "move llvm.call_intrinsic later")
    assert reason(text, "drop llvm.call_intrinsic") == ""
    text = fenced("%all = arith.constant -1 : i32", "nvvm.bar.warp.sync %all : i32", ARRIVE)
    assert "only makes it converge" in reason(text, "move llvm.call_intrinsic earlier")


COPY = "nvvm.cp.async.shared.global %base, %from, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>"
COPIED = "nvvm.cp.async.mbarrier.arrive %full {noinc = true} : !llvm.ptr<3>"
WAIT = "nvvm.mbarrier.try_wait.parity %empty, %c0, %c1 : !llvm.ptr<3>, i32, i32"


def test_an_arrival_after_copies_is_covered_by_the_next() -> None:
    text = fenced(COPY, COPIED, WAIT, COPY, COPIED)
    text = text.replace("%some: i1", "%full: !llvm.ptr<3>, %empty: !llvm.ptr<3>, %from: !llvm.ptr<1>")
    moved = "move nvvm.cp.async.mbarrier.arrive"
    assert "the next arrival covers the copies" in reason(text, f"{moved} earlier", 0)
    assert reason(text, f"{moved} earlier", 1) == ""
    assert "later it covers more" in reason(text, f"{moved} later", 0)
    assert reason(text, "drop nvvm.cp.async.mbarrier.arrive") == ""
