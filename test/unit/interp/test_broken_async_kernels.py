"""Mutations of asynchronous kernels: the interpreter detects each one under every schedule."""

from __future__ import annotations

import re

import pytest
from interp_corpus import KERNELS
from interp_corpus_async import ASYNC_KERNELS, MEET, REMOTE, remote
from test_broken_kernels import Broken, mutated

from cute_dialect.interp import InterpError

SCHEDULES = ("round-robin", "reverse", "random", "adversarial")
TOLD_COPY = "nvvm.cp.async.shared.global %dst, %src, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>"
TOLD_ARRIVE = "nvvm.cp.async.mbarrier.arrive %bar {noinc = true} : !llvm.ptr<3>"
WAIT = "nvvm.mbarrier.try_wait.parity %full1, %c0, %tk : !llvm.ptr<3>, i32, i32"
READ = "scf.for %i = %tid to %c256 step %c64"
NOTHING = "scf.for %i = %c256 to %c256 step %c64"


def cluster_barrier(name: str, how: str = "") -> str:
    return f"nvvm.cluster.arrive{how} {{aligned}} // {name}\n      nvvm.cluster.wait {{aligned}} // {name}"


FIRST = "nvvm.setmaxregister decrease 80 // first"
SECOND = "nvvm.setmaxregister decrease 40 // second"
BETWEEN = "nvvm.barrier id = %c1 number_of_threads = %c128 // between"
IN_USE = "barrier 1 may still be in use|nothing has written them"

CP_WAIT = "nvvm.cp.async.wait.group 0 // wait"
CLEAR = "llvm.store %c0, %src : i32, !llvm.ptr<1> // clear"
SYNC = "nvvm.bar.warp.sync %full : i32 // meet"
GRIDS = "nvvm.griddepcontrol wait // wait"
EARLY = "of argument [012] at byte offset .* before griddepcontrol.wait"
LATE = "write-after-read race on argument 0 .*: missing cp.async.wait_group"

ONE = ("%kt = arith.constant 4", "%kt = arith.constant 1")
NEXT = "nvvm.mbarrier.try_wait.parity %next1, %c0, %tk : !llvm.ptr<3>, i32, i32"
ALL = {**KERNELS, **ASYNC_KERNELS}

CORPUS = [
    # -- bugs found in released versions of other compilers
    Broken(
        "gemm",
        "one iteration, a wait for the second",
        (
            ONE,
            (
                "      %warp = arith.divui %ct, %c32",
                f"      %next1 = llvm.getelementptr %barriers[1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i64\n      {NEXT}\n"
                "      %warp = arith.divui %ct, %c32",
            ),
        ),
        "deadlock",
        "waits at the mbarrier at shared memory byte offset 40968 for phase parity 0: it is in phase 0, 1 of 1 "
        "arrivals missing",
    ),
    Broken(
        "gemm",
        "one iteration, the parity of the second",
        (
            ONE,
            (
                "nvvm.mbarrier.try_wait.parity %f, %ph, %tk",
                "%late = arith.xori %ph, %c1 : i32\nnvvm.mbarrier.try_wait.parity %f, %late, %tk",
            ),
        ),
        "deadlock|race",
        "waits at the mbarrier|race on shared memory",
    ),
    Broken(
        "gemm",
        "loads more than it expects",
        (("%bytes = arith.constant 16384", "%bytes = arith.constant 8192"),),
        "sync",
        "in flight; raise expect_tx from 8192 to at least 16384 bytes",
    ),
    Broken(
        "gemm",
        "loads less than it expects",
        (("%bytes = arith.constant 16384", "%bytes = arith.constant 16400"),),
        "deadlock",
        "16 bytes missing: 16400 expected, 16384 delivered",
    ),
    Broken("pipeline", "no barrier on the back edge", (("nvvm.barrier0 // released", ""),), "race", "write-after-read"),
    Broken("transpose", "no barrier on the back edge", (("nvvm.barrier0 // read", ""),), "race", "write-after-read"),
    Broken(
        "named",
        "no barriers on the back edge",
        (
            ("nvvm.barrier id = %c2 number_of_threads = %c64 // empty", ""),
            ("nvvm.barrier.arrive id = %c2 number_of_threads = %c64 // free", ""),
        ),
        "race",
        f"{IN_USE}|write-after-read",
    ),
    Broken(
        "pipeline",
        "the first copy into the wrong stage",
        (
            (
                "nvvm.cp.async.shared.global %dst0, %src0",
                "%wrong = llvm.getelementptr %dst0[512] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8\n"
                "    nvvm.cp.async.shared.global %wrong, %src0",
            ),
        ),
        "race",
        "write-after-write race on shared memory .*: missing cp.async.wait_group",
    ),
    Broken(
        "pipeline",
        "the next copy into the stage that is read",
        (("%stage = arith.andi %j, %c1", "%stage = arith.andi %i, %c1"),),
        "race",
        "race on shared memory .*: missing cp.async.wait_group",
    ),
    # -- cp.async
    Broken(
        "source", "source overwritten before the wait", ((CLEAR, ""), (CP_WAIT, f"{CLEAR}\n{CP_WAIT}")), "race", LATE
    ),
    Broken(
        "source",
        "source overwritten behind a barrier",
        ((CLEAR, ""), (CP_WAIT, f"nvvm.barrier0\n{CLEAR}\n{CP_WAIT}")),
        "race",
        LATE,
    ),
    Broken(
        "source", "read by another thread of the warp", ((SYNC, ""),), "race", "read-after-write race on shared memory"
    ),
    Broken(
        "source",
        "waits after the warp has met",
        ((CP_WAIT, ""), (SYNC, f"{SYNC}\n{CP_WAIT}")),
        "race",
        "cp.async.wait_group",
    ),
    Broken(
        "source",
        "one lane waits",
        ((CP_WAIT, f"%one = arith.cmpi eq, %tid, %c0 : i32\nscf.if %one {{\n{CP_WAIT}\n}}"),),
        "race",
        "cp.async.wait_group",
    ),
    Broken(
        "source",
        "never waits",
        ((CP_WAIT, ""), (CLEAR, ""), ("%v = llvm.load %s : !llvm.ptr<3> -> i32", "%v = arith.addi %tid, %c0 : i32")),
        "race",
        r"may write shared memory .* after the end of block \(0, 0, 0\).*missing cp.async.wait_group before",
    ),
    Broken(
        "told",
        "reads what it copied itself without the wait",
        (("nvvm.mbarrier.try_wait.parity %bar, %c0, %tk : !llvm.ptr<3>, i32, i32", ""),),
        "race",
        "read-after-write race on shared memory .*: missing cp.async.wait_group",
    ),
    Broken(
        "told",
        "arrives before it copies",
        ((f"{TOLD_ARRIVE}\n", ""), (f"{TOLD_COPY}\n", f"{TOLD_ARRIVE}\n{TOLD_COPY}\n")),
        "race",
        "read-after-write race on shared memory .*: missing cp.async.wait_group",
    ),
    Broken(
        "told",
        "commits after it has arrived, and waits for the group before",
        (
            (f"{TOLD_ARRIVE}\n", ""),
            (
                f"{TOLD_COPY}\n",
                f"{TOLD_ARRIVE}\nnvvm.cp.async.commit.group\n{TOLD_COPY}\nnvvm.cp.async.commit.group\n"
                "nvvm.cp.async.wait.group 1\n",
            ),
        ),
        "race",
        "read-after-write race on shared memory .*: missing cp.async.wait_group",
    ),
    # -- programmatic dependent launch
    Broken(
        "dependent",
        "reads before the wait",
        (("nvvm.barrier0 // all", ""), ("%x = arith", "nvvm.barrier0\n%x = arith")),
        "race",
        EARLY,
    ),
    Broken(
        "dependent",
        "only one warp knows",
        (
            ("nvvm.barrier0 // all", "nvvm.bar.warp.sync %full : i32"),
            ("%p = llvm", "%full = arith.constant -1 : i32\n%p = llvm"),
        ),
        "race",
        EARLY,
    ),
    Broken(
        "dependent",
        "writes before the wait",
        (("%weight = ", "llvm.store %c0, %q : i32, !llvm.ptr<1>\n%weight = "),),
        "race",
        EARLY,
    ),
    Broken(
        "dependent",
        "atomic before the wait",
        (("%weight = ", "%z = llvm.atomicrmw add %q, %c1 monotonic : !llvm.ptr<1>, i32\n%weight = "),),
        "race",
        EARLY,
    ),
    # -- named barriers
    Broken("groups", "one barrier for two groups", (("id = %c2", "id = %c1"),), "race|uninit", IN_USE),
    Broken(
        "groups",
        "one barrier, two numbers of threads",
        (("id = %c2 number_of_threads = %c64", "id = %c1 number_of_threads = %c128"),),
        "race|sync",
        f"{IN_USE}|barrier 1: this warp specifies (64|128) threads, but warps that arrived earlier specified "
        "(64|128) threads",
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
        "second setmaxnreg, but warp 1 of the warpgroup may not have executed the first",
    ),
    Broken(
        "registers",
        "one warp does not, at last",
        ((SECOND, f"scf.if %leads {{\n{SECOND}\n}}"),),
        "sync",
        "all warps of a warpgroup must execute the same setmaxnreg, but warp 1 ended without it",
    ),
    Broken(
        "registers",
        "the same from two places",
        ((SECOND, f"scf.if %leads {{\n{SECOND}\n}} else {{\n{SECOND}\n}}"),),
        "sync",
        "but warp [0-3] executed another one",
    ),
    Broken("registers", "no barrier between", ((BETWEEN, ""),), "race", "missing barrier of the warpgroup between"),
    # -- blocks that exit with a copy in flight
    *(
        Broken(
            name,
            "block ends with a load in flight",
            ((WAIT, ""), (READ, NOTHING)),
            "race|sync",
            r"after the end of block \(0, 0, 0\), which owns that shared memory: missing wait for that phase|has ended",
        )
        for name in ("load", "bulk")
    ),
    # -- cluster barriers in a loop
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


ENDED = r"after the end of block \([01], 0, 0\).*missing wait for that phase of the mbarrier|block [01] .* has ended"
FIRST_ENDED = ENDED.replace("[01]", "0")
NOT_BEGUN = "no mbarrier is initialized at .* of a multicast receiver|to which its initialization is not visible"
MULTICASTS = [
    case
    for kernel in ("multicast", "bulk multicast")
    for case in (
        Broken(kernel, "no block waits", ((WAIT, ""), (READ, NOTHING)), "race|sync", ENDED),
        Broken(
            kernel,
            "the block that does not issue it does not wait",
            ((WAIT, f"scf.if %second {{ {WAIT} }}"), (READ, NOTHING)),
            "race|sync",
            FIRST_ENDED,
        ),
        Broken(
            kernel,
            "a copy to the other block alone, for which it does not wait",
            (("constant 3 : i16", "constant 1 : i16"), (WAIT, ""), (READ, NOTHING)),
            "race|sync",
            FIRST_ENDED,
        ),
        Broken(
            kernel,
            "a barrier of the block alone before it",
            ((cluster_barrier("running").replace("\n      ", "\n    "), "nvvm.barrier0"),),
            "race|sync",
            NOT_BEGUN,
        ),
    )
]


def error_of(b: Broken, schedule: str) -> InterpError:
    kernel = ALL[b.kernel]
    with pytest.raises(InterpError) as e:
        kernel.run(mutated(kernel.body, b), schedule)
    return e.value


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("b", [*CORPUS, *MULTICASTS], ids=lambda b: f"{b.kernel}: {b.name}")
def test_broken(b: Broken, schedule: str) -> None:
    error = error_of(b, schedule)
    assert re.fullmatch(b.kind, error.kind), error
    assert re.search(b.message, str(error)), error
    assert error.op or error.kind == "deadlock"


@pytest.mark.parametrize("name", ASYNC_KERNELS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_correct_kernels_pass(name: str, schedule: str) -> None:
    report, right = ASYNC_KERNELS[name].run(schedule=schedule)
    assert right
    assert report.warnings == []


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_one_iteration_has_no_race(schedule: str) -> None:
    kernel = ALL["gemm"]
    assert ONE[0] in kernel.body
    kernel.run(kernel.body.replace(*ONE), schedule)


def test_inline_wait_for_grids() -> None:
    kernel = ALL["dependent"]
    kernel.run(kernel.body.replace(GRIDS, 'nvvm.inline_ptx "griddepcontrol.wait;"'))
    body = kernel.body.replace(GRIDS, 'nvvm.inline_ptx "griddepcontrol.launch_dependents;"')
    with pytest.raises(InterpError, match=EARLY):
        kernel.run(body.replace("llvm.return", f"{GRIDS}\nllvm.return"))


def test_write_after_the_end() -> None:
    """The report names the copy, its location, the block and the missing wait."""
    kernel = ALL["bulk"]
    with pytest.raises(InterpError) as e:
        kernel.run(kernel.body.replace(WAIT, "").replace(READ, NOTHING))
    assert str(e.value) == (
        "error: this may write shared memory at byte offset 0 after the end of block (0, 0, 0), which owns that "
        "shared memory: missing wait for that phase of the mbarrier before the end of the block\n"
        '  op: "nvvm.cp.async.bulk.shared.cluster.global"(%to, %a, %full1, %bytes) '
        "<{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}> : "
        "(!llvm.ptr<7>, !llvm.ptr<1>, !llvm.ptr<3>, i32) -> ()\n"
        "  note: it signals the mbarrier at shared memory byte offset 2048"
    )


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("access", REMOTE)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_access_to_a_block_that_may_have_ended(access: str, schedule: str) -> None:
    kernel = remote(access)
    # These accesses complete at an mbarrier, so the cluster barrier alone does not order them.
    if access not in ("st.async", "red.async", "bulk copy"):
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
    with pytest.raises(InterpError, match=r"block \(0, 0, 0\) of the cluster, which may not have started") as e:
        kernel.run(kernel.body.replace(relaxed, ""))
    assert e.value.thread == (0, 0, 0) and e.value.block == (1, 0, 0)
