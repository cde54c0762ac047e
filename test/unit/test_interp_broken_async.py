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


CORPUS = [
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
