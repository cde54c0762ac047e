"""Mutations of the correct kernels in `interp_corpus`: the interpreter reports each with the right diagnosis.

A mutation lists the kernel, pairs of old and new text, the kind of the error and a pattern of its message.  Each old
text occurs once in the kernel.  The unmodified kernels pass all checks and give the right result under every schedule.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from interp_corpus import KERNELS

from cute_dialect.interp import InterpError


class Broken(NamedTuple):
    """A mutation. `edits` are pairs of old and new text."""

    kernel: str
    name: str
    edits: tuple[tuple[str, str], ...]
    kind: str
    message: str


FENCE = "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}"
RELEASE = """        scf.if %leads {
          nvvm.mbarrier.arrive %e : !llvm.ptr<3>
        }"""
WAIT = "nvvm.wgmma.wait.group.sync.aligned 0"
EMPTY_WAIT = "nvvm.mbarrier.try_wait.parity %e, %eph, %tk : !llvm.ptr<3>, i32, i32"
EXPECT = "nvvm.mbarrier.arrive.expect_tx %f, %bytes : !llvm.ptr<3>, i32"
EMPTY = "%e = llvm.getelementptr %empties[%slot] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64\n"

CORPUS = [
    # -- the GEMM: fences and waits
    Broken("gemm", "no proxy fence", ((FENCE, ""),), "race", "missing fence.proxy.async"),
    Broken(
        "gemm",
        "no barrier before the TMA store",
        (("nvvm.barrier id = %c1 number_of_threads = %c128", ""),),
        "race",
        "read-after-write race on shared memory",
    ),
    Broken("gemm", "no wgmma fence", (("nvvm.wgmma.fence.aligned", ""),), "wgmma", "missing wgmma.fence"),
    Broken("gemm", "wgmma waited for too late", ((WAIT, WAIT[:-1] + "1"),), "race|wgmma", "wgmma"),
    Broken("gemm", "no wgmma wait", ((WAIT, ""),), "race|wgmma", "wgmma"),
    Broken("gemm", "no wgmma commit", (("nvvm.wgmma.commit.group.sync.aligned", ""),), "race|wgmma", "wgmma"),
    Broken(
        "gemm",
        "stage released before the wgmma is done",
        ((EMPTY + RELEASE, ""), (WAIT, EMPTY + RELEASE + "\n" + WAIT)),
        "race",
        "write-after-read race .* missing wgmma.wait_group",
    ),
    Broken("gemm", "no mbarrier fence", (("nvvm.fence.mbarrier.init", ""),), "race", "initialization is not visible"),
    Broken("gemm", "no barrier at the start", (("nvvm.barrier0 // start", ""),), "sync|race", "initializ"),
    Broken(
        "gemm",
        "bulk store not waited for",
        (("nvvm.cp.async.bulk.wait_group 0", ""),),
        "race",
        "bulk copy may still read shared memory",
    ),
    Broken(
        "gemm",
        "bulk store not committed",
        (("nvvm.cp.async.bulk.commit.group", ""),),
        "race",
        "bulk copy may still read shared memory",
    ),
    # -- the GEMM: counts and phases
    Broken("gemm", "stage not released", ((RELEASE, ""),), "deadlock", "1 of 1 arrivals missing"),
    Broken(
        "gemm",
        "empty barrier counts two",
        (("%emptycount = arith.constant 1", "%emptycount = arith.constant 2"),),
        "deadlock",
        "1 of 2 arrivals missing",
    ),
    Broken(
        "gemm",
        "full barrier counts two",
        (("%fullcount = arith.constant 1", "%fullcount = arith.constant 2"),),
        "deadlock",
        "1 of 2 arrivals missing",
    ),
    Broken(
        "gemm",
        "every thread releases",
        ((RELEASE, "nvvm.mbarrier.arrive %e : !llvm.ptr<3>"),),
        "deadlock",
        "it is in phase 128, 1 of 1 arrivals missing",
    ),
    Broken(
        "gemm",
        "expects too few bytes",
        (("%bytes = arith.constant 16384", "%bytes = arith.constant 8192"),),
        "sync",
        "in flight; raise expect_tx from 8192 to at least 16384 bytes",
    ),
    Broken(
        "gemm",
        "expects too many bytes",
        (("%bytes = arith.constant 16384", "%bytes = arith.constant 16400"),),
        "deadlock",
        "16 bytes missing: 16400 expected, 16384 delivered",
    ),
    Broken(
        "gemm",
        "producer waits for the wrong parity",
        (("%eph = arith.xori %ph, %c1", "%eph = arith.xori %ph, %c0"),),
        "deadlock",
        "waits at the mbarrier",
    ),
    Broken(
        "gemm",
        "bytes expected before the wait for the empty stage",
        ((EMPTY_WAIT, ""), (EXPECT, EXPECT + "\n" + EMPTY_WAIT)),
        "race|sync",
        r"in phase 1 is not ordered after the copies of phase 0: .* wait for that phase first|arrivals with only",
    ),
    Broken(
        "gemm",
        "producer does not wait",
        ((EMPTY_WAIT, ""),),
        "race|sync",
        "write-after-|arrivals with only|not ordered after the copies",
    ),
    Broken(
        "gemm",
        "consumer does not wait",
        (("nvvm.mbarrier.try_wait.parity %f, %ph, %tk : !llvm.ptr<3>, i32, i32", ""),),
        "race",
        "race on shared memory .*(phase of the mbarrier|missing wgmma.wait_group)",
    ),
    Broken(
        "gemm",
        "phase does not flip",
        (("scf.yield %m3, %slot1, %ph1", "scf.yield %m3, %slot1, %ph"),),
        "race",
        "race on shared memory .*(phase of the mbarrier|missing wgmma.wait_group)",
    ),
    Broken(
        "gemm",
        "phase flips every time",
        (("scf.yield %slot1, %ph1 : i32, i32", "%ph2 = arith.xori %ph, %c1 : i32\nscf.yield %slot1, %ph2 : i32, i32"),),
        "deadlock|race",
        "",
    ),
    # -- the GEMM: addresses
    Broken(
        "gemm",
        "both stages load into the first",
        (("%at = arith.muli %slot, %c16384", "%at = arith.muli %c0, %c16384"),),
        "race|uninit",
        "write-after-",
    ),
    Broken(
        "gemm",
        "reads the other stage",
        (
            (
                "%off = arith.muli %slot, %c1024",
                "%other = arith.xori %slot, %c1 : i32\n%off = arith.muli %other, %c1024",
            ),
        ),
        "race|uninit",
        "read-after-write race|nothing has written",
    ),
    Broken(
        "gemm",
        "B lies half a stage too low",
        (("llvm.getelementptr %a[8192]", "llvm.getelementptr %a[4096]"),),
        "race",
        "write-after-write race",
    ),
    Broken(
        "gemm",
        "destination of TMA not aligned",
        (("llvm.getelementptr %a[8192]", "llvm.getelementptr %a[8208]"),),
        "misaligned",
        "offset 8208 of shared memory, which is not a multiple of 128",
    ),
    Broken(
        "gemm",
        "mbarrier not aligned",
        (("llvm.getelementptr %barriers[16]", "llvm.getelementptr %barriers[20]"),),
        "misaligned",
        "mbarrier must be aligned to 8 bytes",
    ),
    Broken(
        "gemm",
        "barriers overlap",
        (("llvm.getelementptr %barriers[16]", "llvm.getelementptr %barriers[8]"),),
        "deadlock|sync|race",
        "mbarrier",
    ),
    Broken(
        "gemm",
        "swapped strides of the staging tile",
        (("%pitch = arith.constant 128", "%pitch = arith.constant 256"),),
        "oob",
        "out-of-bounds store .* in shared memory",
    ),
    Broken(
        "gemm",
        "half of the staging tile not written",
        (("%rb = arith.muli %row, %pitch", "%rb0 = arith.divui %row, %c2 : i32\n%rb = arith.muli %rb0, %pitch"),),
        "race|uninit",
        "different values to the same address",
    ),
    Broken(
        "gemm",
        "too few coordinates",
        (("%ac, %ta, %f, box[%k, %c0]", "%ac, %ta, %f, box[%k]"),),
        "tma",
        "the tensor map has 2 dimensions",
    ),
    Broken(
        "gemm",
        "a warp takes no part in the wgmma",
        (
            (
                "%produces = arith.cmpi eq, %wg, %c0",
                "%c160 = arith.constant 160 : i32\n%produces = arith.cmpi ult, %tid, %c160",
            ),
        ),
        "deadlock|sync|oob|misaligned",
        "",
    ),
    # -- cp.async
    Broken("pipeline", "copies not waited for", (("nvvm.cp.async.wait.group 1", ""),), "race", "cp.async.wait_group"),
    Broken(
        "pipeline",
        "waits for one group too few",
        (("nvvm.cp.async.wait.group 1", "nvvm.cp.async.wait.group 2"),),
        "race",
        "cp.async.wait_group",
    ),
    Broken(
        "pipeline",
        "first group not committed",
        (("nvvm.cp.async.commit.group // first", ""),),
        "race",
        "cp.async.wait_group|write-after-",
    ),
    Broken(
        "pipeline",
        "no barrier after the wait",
        (("nvvm.barrier0 // arrived", ""),),
        "race",
        "by the thread that issued it",
    ),
    Broken(
        "pipeline", "stage overwritten too early", (("nvvm.barrier0 // released", ""),), "race", "write-after-read race"
    ),
    Broken(
        "pipeline",
        "writes the stage that is read",
        (("%stage = arith.andi %j, %c1", "%stage = arith.andi %i, %c1"),),
        "race",
        "race on shared memory",
    ),
    Broken(
        "pipeline",
        "one row too many",
        (("%more = arith.cmpi slt, %j, %n", "%more = arith.cmpi sle, %j, %n"),),
        "oob",
        "past its end",
    ),
    Broken(
        "pipeline",
        "source not aligned",
        (("%go = arith.muli %j, %row", "%go0 = arith.muli %j, %row : i32\n%go = arith.addi %go0, %c8"),),
        "misaligned",
        "cp.async read",
    ),
    # -- shared memory and barriers
    Broken(
        "transpose", "no barrier after writing", (("nvvm.barrier0 // written", ""),), "race", "read-after-write race"
    ),
    Broken("transpose", "no barrier after reading", (("nvvm.barrier0 // read", ""),), "race", "write-after-read race"),
    Broken(
        "transpose",
        "swapped strides",
        (("%go = arith.muli %row, %height", "%go = arith.muli %row, %width"),),
        "oob",
        "past its end",
    ),
    Broken(
        "transpose",
        "pitch too large",
        (("%pitch = arith.constant 33", "%pitch = arith.constant 34"),),
        "oob",
        "in shared memory",
    ),
    Broken(
        "transpose",
        "rows overlap",
        (("%pitch = arith.constant 33", "%pitch = arith.constant 31"),),
        "race",
        "race on shared memory",
    ),
    Broken(
        "transpose",
        "last row not loaded",
        (
            (
                "scf.for %r = %y to %c32 step %c4 : i32 {\n        %go",
                "scf.for %r = %y to %c31 step %c4 : i32 {\n        %go",
            ),
        ),
        "uninit",
        "nothing has written",
    ),
    Broken(
        "transpose",
        "barrier in divergent code",
        (
            (
                "nvvm.barrier0 // written",
                "%half = arith.cmpi ult, %x, %c16 : i32\nscf.if %half {\nnvvm.barrier0\n}",
            ),
        ),
        "divergence",
        "in divergent code: 16 threads reached it",
    ),
    Broken(
        "transpose",
        "a warp skips the barrier",
        (
            (
                "nvvm.barrier0 // written",
                "%some = arith.cmpi ne, %y, %c0 : i32\nscf.if %some {\nnvvm.barrier0\n}",
            ),
        ),
        "deadlock|race",
        "barrier",
    ),
    Broken(
        "reduce",
        "no barrier before the sum",
        (("nvvm.barrier0 // partials", ""),),
        "race|uninit",
        "race|nothing has written",
    ),
    Broken(
        "reduce",
        "every lane writes its own partial sum",
        (
            ("scf.if %lead {", "%all = arith.cmpi sge, %lane, %c0 : i32\nscf.if %all {"),
            ("%s1 = arith.addi %s2, %x1", "%s1 = arith.addi %s2, %lane0"),
            ("%x1 = nvvm.shfl", "%lane0 = arith.remui %tid, %c32 : i32\n%x1 = nvvm.shfl"),
        ),
        "race",
        "different values to the same address",
    ),
    Broken(
        "reduce",
        "one partial sum too many",
        (("%total = scf.for %w = %c0 to %c4", "%total = scf.for %w = %c0 to %c5"),),
        "oob",
        "in shared memory",
    ),
    Broken(
        "reduce",
        "shuffle in divergent code",
        (
            (
                "%x1 = nvvm.shfl.sync bfly %full, %s2, %c1, %c31 : i32 -> i32",
                "%low = arith.cmpi ult, %tid, %c16 : i32\n%x1 = scf.if %low -> (i32) {\n"
                "%x = nvvm.shfl.sync bfly %full, %s2, %c1, %c31 : i32 -> i32\nscf.yield %x : i32\n} else {\n"
                "scf.yield %s2 : i32\n}",
            ),
        ),
        "sync",
        "still running but did not arrive",
    ),
    # -- global memory
    Broken("scale", "off by one", (("arith.cmpi slt, %i, %n", "arith.cmpi sle, %i, %n"),), "oob", "past its end"),
    Broken(
        "scale",
        "blocks overlap",
        (("%o = arith.muli %cta, %ntid", "%o = arith.muli %cta, %c127"),),
        "race",
        "after the one in another block",
    ),
    Broken(
        "scale",
        "index overflows",
        (
            (
                "%w = arith.muli %v, %c3 overflow<nsw> : i32",
                "%big = arith.constant 2147483 : i32\n%w1 = arith.muli %v, %big overflow<nsw> : i32\n"
                "%w2 = arith.muli %w1, %c3 overflow<nsw> : i32\n%w = arith.addi %w2, %c0 : i32",
            ),
        ),
        "overflow",
        "",
    ),
    Broken(
        "histogram",
        "not atomic in shared memory",
        (
            (
                "%x = llvm.atomicrmw add %slot, %c1 monotonic : !llvm.ptr<3>, i32",
                "%x0 = llvm.load %slot : !llvm.ptr<3> -> i32\n%x = arith.addi %x0, %c1 : i32\n"
                "llvm.store %x, %slot : i32, !llvm.ptr<3>",
            ),
        ),
        "race",
        "race on shared memory|different values",
    ),
    Broken(
        "histogram",
        "not atomic in global memory",
        (
            (
                "%y = llvm.atomicrmw add %q, %r monotonic : !llvm.ptr<1>, i32",
                "%y0 = llvm.load %q : !llvm.ptr<1> -> i32\n%y = arith.addi %y0, %r : i32\n"
                "llvm.store %y, %q : i32, !llvm.ptr<1>",
            ),
        ),
        "race",
        "after the one in another block",
    ),
    Broken(
        "histogram", "not cleared before counting", (("nvvm.barrier0 // cleared", ""),), "race", "race on shared memory"
    ),
    Broken("histogram", "read before counted", (("nvvm.barrier0 // counted", ""),), "race", "race on shared memory"),
    # -- clusters
    Broken(
        "cluster",
        "no cluster barrier",
        (("nvvm.cluster.arrive {aligned} // sent", ""), ("nvvm.cluster.wait {aligned} // sent", "")),
        "race|sync|uninit",
        "race on shared memory|nothing has written|has ended",
    ),
    Broken(
        "cluster",
        "relaxed cluster barrier",
        (("nvvm.cluster.arrive {aligned} // sent", "nvvm.cluster.arrive.relaxed {aligned}"),),
        "race",
        "read-after-write race",
    ),
    Broken(
        "cluster",
        "no cluster wait",
        (("nvvm.cluster.wait {aligned} // sent", ""),),
        "race|uninit",
        "race|nothing has written",
    ),
    Broken(
        "cluster", "peer outside of the cluster", (("arith.xori %rank, %c1", "arith.xori %rank, %c2"),), "oob", "rank"
    ),
    Broken(
        "cluster",
        "block barrier where a cluster barrier is needed",
        (("nvvm.cluster.arrive {aligned} // sent", "nvvm.barrier0"), ("nvvm.cluster.wait {aligned} // sent", "")),
        "race|sync|uninit",
        "race on shared memory|nothing has written|has ended",
    ),
    # -- warps and named barriers
    Broken("warp", "no warp barrier", (("nvvm.bar.warp.sync %full : i32 // written", ""),), "race", "bar.warp.sync"),
    Broken(
        "warp", "no second warp barrier", (("nvvm.bar.warp.sync %full : i32 // read", ""),), "race", "bar.warp.sync"
    ),
    Broken(
        "warp",
        "warp barrier of half the warp",
        (
            (
                "nvvm.bar.warp.sync %full : i32 // written",
                "%m = arith.constant 65535 : i32\nnvvm.bar.warp.sync %m : i32",
            ),
        ),
        "sync",
        "member mask does not contain the calling thread",
    ),
    Broken(
        "named",
        "wrong barrier id",
        (
            (
                "nvvm.barrier.arrive id = %c1 number_of_threads = %c64 // full",
                "nvvm.barrier.arrive id = %c3 number_of_threads = %c64",
            ),
        ),
        "deadlock",
        "waits at barrier 1",
    ),
    Broken(
        "named",
        "wrong number of threads",
        (
            (
                "nvvm.barrier id = %c1 number_of_threads = %c64 // filled",
                "nvvm.barrier id = %c1 number_of_threads = %c128",
            ),
        ),
        "sync|deadlock",
        "128 threads",
    ),
    Broken(
        "named",
        "does not wait for the stage to be free",
        (
            (
                "nvvm.barrier id = %c2 number_of_threads = %c64 // empty",
                "nvvm.barrier.arrive id = %c2 number_of_threads = %c64",
            ),
        ),
        "race|deadlock",
        "race on shared memory|waits at barrier|barrier 2 may still be in use",
    ),
    Broken(
        "named",
        "no arrival",
        (("nvvm.barrier.arrive id = %c1 number_of_threads = %c64 // full", ""),),
        "deadlock",
        "waits at barrier",
    ),
    # -- registers
    Broken(
        "registers",
        "registers are not given back",
        (("nvvm.setmaxregister decrease 40", ""),),
        "deadlock",
        "more registers per thread",
    ),
    Broken(
        "registers",
        "increase below what is there",
        (("nvvm.setmaxregister increase 232", "nvvm.setmaxregister increase 104"),),
        "sync",
        "must be at least 168",
    ),
]


def mutated(text: str, b: Broken) -> str:
    """Return the kernel text with the edits applied. Each edit must match exactly once."""
    for old, new in b.edits:
        assert old in text, f"the corpus has changed: {old!r} is not in {b.kernel}"
        text = text.replace(old, new, 1) if old.count("\n") or text.count(old) > 1 else text.replace(old, new)
    return text


@pytest.mark.sample(every=31)
@pytest.mark.parametrize("width", ["auto", "warp"])
@pytest.mark.parametrize("b", CORPUS, ids=lambda b: f"{b.kernel}: {b.name}")
def test_broken(b: Broken, width: str) -> None:
    with pytest.raises(InterpError) as e:
        KERNELS[b.kernel].run(mutated(KERNELS[b.kernel].body, b), width=width)
    error = e.value
    assert re.fullmatch(b.kind, error.kind), error
    assert re.search(b.message, str(error)), error
    assert error.op or error.kind == "deadlock"


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("schedule", ["round-robin", "reverse", "random", "adversarial"])
def test_correct_kernels_pass(name: str, schedule: str) -> None:
    report, right = KERNELS[name].run(schedule=schedule)
    assert right
    assert report.warnings == []


def test_size_of_the_corpus() -> None:
    assert len(CORPUS) >= 40
    assert len({(b.kernel, b.name) for b in CORPUS}) == len(CORPUS)
