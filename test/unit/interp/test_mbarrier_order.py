"""Memory order of mbarrier arrivals and waits: relaxed, with fences, with scopes, and across blocks."""

from __future__ import annotations

import numpy as np
import pytest
from interp_support import DSMEM, kernel, run_kernel

from cute_dialect.interp import InterpError, Pointer

PTX = "nvvm.inline_ptx"
WAIT_LOOP = "{{ .reg .pred p; again: {} p, [$0], $1; @p bra done; bra again; done: }}"
KERNEL = """
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %t32 = arith.constant 32 : i32
    %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
    %data = llvm.getelementptr %d[64] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %leader = arith.cmpi eq, %tid, %c0 : i32
    %second = arith.cmpi eq, %tid, %t32 : i32
    %near = arith.cmpi eq, %rank, %c0 : i32
    %far = arith.cmpi ne, %rank, %c0 : i32
    %start = arith.andi %leader, %near : i1
    scf.if %start {
      nvvm.mbarrier.init %d, %c1 : !llvm.ptr<3>, i32
    }
    nvvm.fence.mbarrier.init
    nvvm.cluster.arrive
    nvvm.cluster.wait
    %consumer = arith.andi %leader, %near : i1
    PRODUCER
    scf.if %producer {
      STORE
      BEFORE
      ARRIVE
    }
    MEET
    scf.if %consumer {
      WAIT
      AFTER
      LOAD
    }
    nvvm.cluster.arrive
    nvvm.cluster.wait
    llvm.return
"""
OWN = {
    "PRODUCER": "%producer = arith.andi %second, %near : i1",
    "STORE": "llvm.store %c1, %data : i32, !llvm.ptr<3>",
    "LOAD": "%v = llvm.load %data : !llvm.ptr<3> -> i32",
    "POINTER": "!llvm.ptr<3>",
    "BAR": "%d",
}
OTHER = {
    "PRODUCER": (
        "%producer = arith.andi %leader, %far : i1\n%there = nvvm.mapa %d, %c0 : !llvm.ptr<3> -> !llvm.ptr<7>\n"
    ),
    "STORE": "llvm.store %c1, %a : i32, !llvm.ptr<1>",
    "LOAD": "%v = llvm.load %a : !llvm.ptr<1> -> i32",
    "POINTER": "!llvm.ptr<7>",
    "BAR": "%there",
}
UNFENCED = (
    "missing fence (or .acquire), of a scope that includes both threads, between the read of the flag (or the relaxed "
    "wait) and this access"
)
NO_ORDER = "missing barrier, or mbarrier arrive and wait, between the two threads"


def run(arrive: str, wait: str, before: str = "", after: str = "", meet: str = "", *, other: bool = False) -> str:
    """Return the report on data passed between two threads of a block or cluster, or ""."""
    words = dict(OTHER if other else OWN)
    words |= {"ARRIVE": arrive, "WAIT": wait, "MEET": meet}
    words["BEFORE"], words["AFTER"] = (f'{PTX} "{t};"' if t else "" for t in (before, after))
    text = KERNEL
    for name in ("ARRIVE", "WAIT", "MEET", "BEFORE", "AFTER", "STORE", "LOAD", "PRODUCER", "POINTER", "BAR"):
        text = text.replace(name, words[name])
    module = kernel(text, "%a: !llvm.ptr<1>", DSMEM)
    array = Pointer(np.zeros(16, np.int32))
    try:
        run_kernel(module, "k", [array], 2, 64, dynamic_smem=128, cluster=2, checks=["race"])
    except InterpError as e:
        assert e.kind == "race", e
        return e.message.split(": ", 1)[1]
    return ""


def arrive(order: str) -> str:
    space = ".shared::cluster.b64 _, [$0]"
    return f'{PTX} "mbarrier.arrive{order}{space};" ro(BAR : POINTER)'


def wait(order: str, how: str = "try_wait") -> str:
    text = WAIT_LOOP.format(f"mbarrier.{how}.parity{order}.shared::cta.b64")
    return f'{PTX} "{text}" ro(%d, %c0 : !llvm.ptr<3>, i32)'


@pytest.mark.parametrize("how", ["try_wait", "test_wait"])
@pytest.mark.parametrize(
    ("first", "second", "before", "after", "expected"),
    [
        ("", "", "", "", ""),
        (".release.cta", ".acquire.cta", "", "", ""),
        (".release.cluster", ".acquire.cluster", "", "", ""),
        (".relaxed.cta", "", "", "", NO_ORDER),
        (".relaxed.cluster", ".acquire.cluster", "", "", NO_ORDER),
        (".relaxed.cta", "", "fence.acq_rel.cta", "", ""),
        (".relaxed.cluster", "", "fence.release.cluster", "", ""),
        (".relaxed.cluster", "", "fence.acquire.cluster", "", NO_ORDER),
        ("", ".relaxed.cta", "", "", UNFENCED),
        ("", ".relaxed.cluster", "", "", UNFENCED),
        ("", ".relaxed.cta", "", "fence.acquire.cta", ""),
        ("", ".relaxed.cta", "", "fence.release.cta", UNFENCED),
        (".relaxed.cta", ".relaxed.cta", "fence.acq_rel.cta", "fence.acq_rel.cta", ""),
        (".relaxed.cta", ".relaxed.cta", "fence.acq_rel.cta", "", UNFENCED),
        (".relaxed.cta", ".relaxed.cta", "", "fence.acq_rel.cta", NO_ORDER),
    ],
)
def test_relaxed_arrivals_and_waits_in_a_block(
    first: str, second: str, before: str, after: str, expected: str, how: str
) -> None:
    assert run(arrive(first), wait(second, how), before, after) == expected


@pytest.mark.parametrize(
    ("first", "second", "before", "after", "expected"),
    [
        ("", "", "", "", ""),
        (".release.cluster", ".acquire.cluster", "", "", ""),
        (".release.cta", ".acquire.cluster", "", "", NO_ORDER),
        (".release.cluster", ".acquire.cta", "", "", NO_ORDER),
        (".relaxed.cluster", ".relaxed.cluster", "fence.acq_rel.cluster", "fence.acq_rel.cluster", ""),
        (".relaxed.cluster", ".relaxed.cluster", "fence.acq_rel.gpu", "fence.acq_rel.gpu", ""),
        (".relaxed.cluster", ".relaxed.cluster", "fence.acq_rel.cta", "fence.acq_rel.cluster", NO_ORDER),
        (".relaxed.cluster", ".relaxed.cluster", "fence.acq_rel.cluster", "fence.acq_rel.cta", UNFENCED),
        (".relaxed.cta", ".relaxed.cluster", "fence.acq_rel.cluster", "fence.acq_rel.cluster", NO_ORDER),
        (".relaxed.cluster", ".relaxed.cta", "fence.acq_rel.cluster", "fence.acq_rel.cluster", NO_ORDER),
    ],
)
def test_the_scope_of_an_arrival_at_another_block(
    first: str, second: str, before: str, after: str, expected: str
) -> None:
    assert run(arrive(first), wait(second), before, after, other=True) == expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("", "", ""),
        (" {relaxed = false}", " {scope = #nvvm.mem_scope<cta>}", ""),
        (" {relaxed = true}", "", NO_ORDER),
        ("", " {relaxed = true}", UNFENCED),
        ("", " {relaxed = true, scope = #nvvm.mem_scope<cluster>}", UNFENCED),
    ],
)
def test_relaxed_ops(first: str, second: str, expected: str) -> None:
    arrives = f"nvvm.mbarrier.arrive %d{first} : !llvm.ptr<3>"
    waits = f"""
      scf.while : () -> () {{
        %done = nvvm.mbarrier.try_wait %d, %c0{second} : !llvm.ptr<3>, i32 -> i1
        %true = arith.constant true
        %again = arith.xori %done, %true : i1
        scf.condition(%again)
      }} do {{
        scf.yield
      }}"""
    assert run(arrives, waits) == expected


@pytest.mark.parametrize(("scope", "expected"), [("", NO_ORDER), ("cta", NO_ORDER), ("cluster", ""), ("gpu", "")])
def test_a_relaxed_arrival_at_the_cluster_barrier_after_a_fence(scope: str, expected: str) -> None:
    fence = f"fence.acq_rel.{scope}" if scope else ""
    assert run("", "", fence, "", "nvvm.cluster.arrive.relaxed\nnvvm.cluster.wait", other=True) == expected
