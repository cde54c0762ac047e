"""Kernels with work in flight and blocks that meet, broken: every mutation is found under every schedule."""

from __future__ import annotations

import re

import pytest
from interp_corpus_async import ASYNC_KERNELS, MEET, REMOTE, remote
from test_interp_broken import Broken, mutated

from cute_dialect.interp import InterpError

SCHEDULES = ("round-robin", "reverse", "random", "adversarial")
WAIT = "nvvm.mbarrier.try_wait.parity %full1, %c0, %tk : !llvm.ptr<3>, i32, i32"
READ = "scf.for %i = %tid to %c256 step %c64"
NOTHING = "scf.for %i = %c256 to %c256 step %c64"


def cluster_barrier(name: str, how: str = "") -> str:
    return f"nvvm.cluster.arrive{how} {{aligned}} // {name}\n      nvvm.cluster.wait {{aligned}} // {name}"


FIRST = "nvvm.setmaxregister decrease 80 // first"
SECOND = "nvvm.setmaxregister decrease 40 // second"
BETWEEN = "nvvm.barrier id = %c1 number_of_threads = %c128 // between"
IN_USE = "barrier 1 is still in use|nothing has written them"

CORPUS = [
    # -- named barriers
    Broken("groups", "one barrier for two groups", (("id = %c2", "id = %c1"),), "race|uninit", IN_USE),
    Broken(
        "groups",
        "one barrier, two numbers of threads",
        (("id = %c2 number_of_threads = %c64", "id = %c1 number_of_threads = %c128"),),
        "race|sync",
        f"{IN_USE}|barrier 1: expected (64|128) threads as the warps that arrived first said, got (64|128) threads",
    ),
    Broken(
        "groups",
        "shared in one place",
        (("id = %c2 number_of_threads = %c64 // done two", "id = %c1 number_of_threads = %c64"),),
        "race|deadlock|uninit",
        f"{IN_USE}|waits at barrier",
    ),
    Broken(
        "groups",
        "arrives where it should wait",
        (
            (
                "nvvm.barrier id = %c1 number_of_threads = %c64 // one",
                "nvvm.barrier.arrive id = %c1 number_of_threads = %c64",
            ),
        ),
        "race|uninit",
        f"{IN_USE}|race on shared memory",
    ),
    # -- registers
    Broken(
        "registers",
        "one warp does not",
        ((FIRST, f"scf.if %leads {{\n{FIRST}\n}}"),),
        "race",
        "setmaxnreg twice, and warp 1 of the warpgroup may not have executed the first",
    ),
    Broken(
        "registers",
        "one warp does not, at last",
        ((SECOND, f"scf.if %leads {{\n{SECOND}\n}}"),),
        "sync",
        "expected the same instruction in all warps of the warpgroup, got warp 1, which has ended without",
    ),
    Broken(
        "registers",
        "the same from two places",
        ((SECOND, f"scf.if %leads {{\n{SECOND}\n}} else {{\n{SECOND}\n}}"),),
        "sync",
        "got warp [0-3], which executed another",
    ),
    Broken("registers", "no barrier between", ((BETWEEN, ""),), "race", "expected a barrier of the warpgroup between"),
    # -- the block ends with a copy in flight
    *(
        Broken(
            name,
            "block ends with a load in flight",
            ((WAIT, ""), (READ, NOTHING)),
            "race|sync",
            r"after the end of block \(0, 0, 0\), whose shared memory it is: expected a wait for that phase|has ended",
        )
        for name in ("load", "bulk")
    ),
    # -- blocks that meet in a loop
    Broken("exchange", "no cluster barrier before the read", ((cluster_barrier("written"), ""),), "race|uninit", ""),
    Broken("exchange", "no cluster barrier after the read", ((cluster_barrier("read"), ""),), "race|sync", ""),
    Broken(
        "exchange",
        "relaxed arrival before the read",
        ((cluster_barrier("written"), cluster_barrier("x", ".relaxed")),),
        "race",
        "read-after-write",
    ),
    Broken(
        "exchange",
        "relaxed arrival after the read",
        ((cluster_barrier("read"), cluster_barrier("x", ".relaxed")),),
        "race",
        "write-after-read",
    ),
]


def error_of(b: Broken, schedule: str) -> InterpError:
    kernel = ASYNC_KERNELS[b.kernel]
    with pytest.raises(InterpError) as e:
        kernel.run(mutated(kernel.body, b), schedule)
    return e.value


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("b", CORPUS, ids=lambda b: f"{b.kernel}: {b.name}")
def test_broken(b: Broken, schedule: str) -> None:
    error = error_of(b, schedule)
    assert re.fullmatch(b.kind, error.kind), error
    assert re.search(b.message, str(error)), error
    assert error.op or error.kind == "deadlock"


@pytest.mark.parametrize("name", ASYNC_KERNELS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_right(name: str, schedule: str) -> None:
    report, right = ASYNC_KERNELS[name].run(schedule=schedule)
    assert right
    assert report.warnings == []


@pytest.mark.parametrize("access", REMOTE)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_access_to_a_block_that_may_have_ended(access: str, schedule: str) -> None:
    kernel = remote(access)
    if access not in ("st.async", "bulk copy"):  # what signals an mbarrier is waited for there
        kernel.run(schedule=schedule)
    with pytest.raises(InterpError) as e:
        kernel.run(kernel.body.replace(MEET, ""), schedule)
    assert e.value.kind in ("race", "sync"), e.value
    assert re.search(r"after the end of block \([01], 0, 0\)|block 0 .* has ended", str(e.value)), e.value
    assert e.value.op, e.value


def test_access_to_a_block_that_may_not_have_begun() -> None:
    kernel = remote("store")
    relaxed = cluster_barrier("running").replace("\n      ", "\n    ")
    assert relaxed in kernel.body
    with pytest.raises(InterpError, match=r"block \(0, 0, 0\) of the cluster, which may not have begun") as e:
        kernel.run(kernel.body.replace(relaxed, ""))
    assert e.value.thread == (0, 0, 0) and e.value.block == (1, 0, 0)
