"""Mutations of kernels with tensor memory: the interpreter reports each one with the right diagnosis."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from interp_corpus_tensor import AFTER, BEFORE, TENSOR_KERNELS, call, commit, mma, wait
from test_broken_kernels import Broken, mutated

from cute_dialect.interp import InterpError

SCHEDULES = ("round-robin", "reverse", "random", "adversarial")
LOADED = f"{call('wait.ld')} // loaded"
RELEASED = "nvvm.mbarrier.arrive %ae : !llvm.ptr<3> // accumulator empty"
SECOND = call("ld.32x32b.x16", "%t1, %no", "!llvm.ptr<6>, i1", "vector<16xi32>")
DEALLOC = f"{call('dealloc.cg1', '%whole, %columns', '!llvm.ptr<6>, i32')} // dealloc"
ALLOC = f"{call('alloc.shared.cg1', '%slot, %columns', '!llvm.ptr<3>, i32')} // alloc"
RELINQUISH = f"{call('relinq.alloc.permit.cg1')} // relinquish"
ACCUMULATE = f"{mma('%la0', '%lb0', '%on')} // mma0"
STAGE, DONE = f"{commit('%e')} // stage", f"{commit('%af')} // accumulator"
SHAPE = "%shape = arith.constant 134742032 : i32"
HIGH = f"%high = arith.constant {1 << 46 | 2 << 61 | 64 << 32 | 1 << 16} : i64"


def shape(m: int = 128, n: int = 32, more: int = 16) -> tuple[tuple[str, str], ...]:
    """Return the edit of the instruction descriptor. `more` are the bits other than M and N."""
    return ((SHAPE, f"%shape = arith.constant {m // 16 << 24 | n // 8 << 17 | more} : i32"),)


def high(version: int = 1, swizzle: int = 2, sbo: int = 64, lbo: int = 1) -> tuple[tuple[str, str], ...]:
    """Return the edit of the upper fields of the descriptors of shared memory."""
    value = version << 46 | swizzle << 61 | sbo << 32 | lbo << 16
    return ((HIGH, f"%high = arith.constant {value - (1 << 64) if value >> 63 else value} : i64"),)


def gemm(name: str, edits: tuple[tuple[str, str], ...], kind: str, message: str) -> Broken:
    return Broken("gemm", name, edits, kind, message)


WRONG = ("", "")
"""Kind and message of a mutation that gives a wrong result without an error."""

EARLY = f"""%early = arith.cmpi eq, %i, %c2 : i32
          %af_ = llvm.getelementptr %accfull[%buf] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
          scf.if %early {{
            {commit("%af_")}
          }}
          {wait("%f", "%ph")}"""
RELEASED_EARLY = f"""%ae_ = llvm.getelementptr %accempty[%buf] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        nvvm.mbarrier.arrive %ae_ : !llvm.ptr<3>
        {LOADED}"""
OTHER = f"""%other = arith.xori %buf, %c1 : i32
        %af_ = llvm.getelementptr %accfull[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        {commit("%af_")}"""
FULL, ACC_FULL, ACC_EMPTY = (
    f"{wait(bar, phase)} // {name}"
    for bar, phase, name in (
        ("%f", "%ph", "full"),
        ("%af", "%ap", "accumulator full"),
        ("%ae", "%ap", "accumulator empty"),
    )
)
LANES = "%lane = arith.shli %quarter, %c21 : i32"
OFFSET = "%shift = arith.muli %buf, %c32 : i32\n        %column"
COLUMNS = "%columns = arith.constant 64 : i32"
LAST = f"{mma('%la3', '%lb3', '%yes')} // mma3"
ISSUES = "%issues = arith.cmpi eq, %tid, %c32 : i32"
START = "nvvm.barrier0 // start"

CORPUS = [
    gemm("1: no commit of a stage", ((STAGE, ""),), "deadlock", "waits at the mbarrier"),
    gemm("1: no commit of the accumulator", ((DONE, ""),), "deadlock", "waits at the mbarrier"),
    gemm(
        "2: commit of a stage before the last mma",
        ((LAST, ""), (STAGE, f"{STAGE}\n{mma('%la3', '%lb3', '%yes')}")),
        "race",
        "write-after-read race on shared memory .* tcgen05.commit signals after it",
    ),
    gemm(
        "2: commit of the accumulator before the last k block",
        ((DONE, ""), (FULL, EARLY)),
        "race",
        "race on tensor memory",
    ),
    gemm("3: commit to the barrier of the other accumulator", ((DONE, OTHER),), "deadlock", "waits at the mbarrier"),
    gemm("3: commit of a stage to the wrong barrier", ((STAGE, commit("%f")),), "sync|race|deadlock", "mbarrier"),
    gemm("4: no wait for the data", ((FULL, ""),), "race", "race on shared memory .* missing wait for the phase"),
    gemm("5: no wait for the accumulator", ((ACC_FULL, ""),), "race|uninit", "tensor memory"),
    gemm("6: no wait for an empty accumulator", ((ACC_EMPTY, ""),), "race", "race on tensor memory"),
    gemm(
        "7: accumulator released before the loads are complete",
        ((RELEASED, ""), (LOADED, RELEASED_EARLY)),
        "race",
        "race on tensor memory",
    ),
    gemm("8: no wait for the loads", ((LOADED, ""),), "tcgen05|race", "missing tcgen05.wait::ld"),
    gemm(
        "10: the first k block accumulates",
        ((ACCUMULATE, mma("%la0", "%lb0", "%yes")),),
        "uninit",
        "accumulates on tensor memory that nothing has written",
    ),
    gemm("12: wrong N", shape(n=64), "oob|race", "memory"),
    gemm("12: wrong N, smaller", shape(n=16), "uninit", "tensor memory at lane"),
    gemm("12: wrong M", shape(m=64), "uninit|race|oob", "tensor memory"),
    gemm("12: impossible M", shape(m=256), "tcgen05", "M .* is 256; use 64 or 128"),
    gemm("12: type bf16", shape(more=16 | 1 << 7), "tcgen05", "the type of B .* both must be equal"),
    gemm(
        "12: type of another kind", shape(more=16 | 5 << 7), "tcgen05", "the type of A .* is 5; use 0 .f16., 1 .bf16."
    ),
    gemm("12: type of D", shape(more=2 << 4), "tcgen05", "the type of D .* is 2; use 0 .f16., 1 .f32."),
    gemm("12: reserved bit", shape(more=16 | 1 << 23), "tcgen05", "reserved bit 23"),
    gemm("12: sparse bit", shape(more=16 | 4), "tcgen05", "the sparsity bit"),
    gemm("13: version of Hopper", high(version=0), "tcgen05", "it must be 1 .0 is the version of Hopper"),
    gemm("13: swizzle code that does not exist", high(swizzle=3), "tcgen05", "the swizzle .* is 3"),
    gemm(
        "13: stride of the stages",
        (("%stageunits = arith.constant 1280 : i32", "%stageunits = arith.constant 1024 : i32"),),
        "race",
        "race on shared memory",
    ),
    gemm(
        "14: lanes of another warp",
        ((LANES, LANES.replace("%quarter", "%c0")),),
        "tcgen05",
        "at lane 0; a warp reaches lanes",
    ),
    gemm("15: accumulators overlap", ((OFFSET, OFFSET.replace("%c32", "%c16")),), "race|uninit", "tensor memory"),
    gemm(
        "16: too few columns",
        ((COLUMNS, COLUMNS.replace("64", "32")),),
        "oob",
        "tensor memory .*(which is not allocated|it has 128 lanes)",
    ),
    gemm(
        "16: columns that cannot be allocated",
        ((COLUMNS, COLUMNS.replace("64", "48")),),
        "tcgen05",
        "48 columns; use 32, 64, 128, 256 or 512",
    ),
    gemm("17: no dealloc", ((DEALLOC, ""),), "tcgen05", "the block ends, but columns .* are not freed"),
    gemm("17: freed twice", ((DEALLOC, f"{DEALLOC}\n{DEALLOC}"),), "tcgen05", "already been freed"),
    gemm(
        "17: another size freed",
        ((DEALLOC, DEALLOC.replace("%columns", "%c32")),),
        "tcgen05",
        "32 columns of an allocation of 64",
    ),
    gemm(
        "18: freed before the last load",
        (("nvvm.barrier0 // end", ""),),
        "race|oob|tcgen05",
        "missing|after it was freed|in flight",
    ),
    gemm(
        "19: alloc after the permit was given up",
        ((RELINQUISH, f"{RELINQUISH}\n{ALLOC}"),),
        "tcgen05",
        "after tcgen05.relinquish_alloc_permit",
    ),
    gemm(
        "19: a larger allocation after a smaller one",
        ((RELINQUISH, ALLOC.replace("%columns", "%c128")),),
        "tcgen05",
        "128 columns after one of 64",
    ),
    gemm(
        "20: slot read without a barrier",
        ((START, "nvvm.bar.warp.sync %full : i32"),),
        "race|sync|uninit|oob",
        "initializ|nothing has written|race on shared memory",
    ),
    gemm(
        "mma by a whole warp",
        ((ISSUES, ISSUES.replace("%tid, %c32", "%warp, %c1")),),
        "tcgen05",
        "executed by 32 threads",
    ),
    gemm(
        "30: cta_group 2 in a cluster of one",
        ((ACCUMULATE, ACCUMULATE.replace("%c0, %c1, %c0)", "%c0, %c2, %c0)")),),
        "tcgen05",
        "cta_group 2 in a cluster of 1",
    ),
    # -- the fences that the text of the PTX ISA requires
    gemm("39: no fence after the wait for data", ((f"{AFTER} // full", ""),), "race", "missing tcgen05.fence::after"),
    gemm(
        "39: no fence after the wait for the accumulator",
        ((f"{AFTER} // accumulator full", ""),),
        "race",
        "missing tcgen05.fence::after_thread_sync",
    ),
    gemm(
        "39: no fence before the accumulator is released",
        ((f"{BEFORE} // loaded", ""),),
        "race",
        "missing tcgen05.fence::before_thread_sync",
    ),
]

WRONG_RESULTS = [
    gemm(
        "11: a later k block does not accumulate", ((mma("%la2", "%lb2", "%yes"), mma("%la2", "%lb2", "%no")),), *WRONG
    ),
    gemm("12: negated A", shape(more=16 | 1 << 13), *WRONG),
    gemm("13: stride of 8 rows", high(sbo=32), *WRONG),
    gemm("13: swizzle of 64 bytes", high(swizzle=4), *WRONG),
    gemm("13: step of K", (("%ka1 = arith.constant 2 : i32", "%ka1 = arith.constant 1 : i32"),), *WRONG),
]


@pytest.mark.sample(every=53)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("b", CORPUS, ids=lambda b: f"{b.kernel}: {b.name}")
def test_broken(b: Broken, schedule: str) -> None:
    k = TENSOR_KERNELS[b.kernel]
    with pytest.raises(InterpError) as e:
        k.run(mutated(k.body, b), schedule=schedule)
    error = e.value
    assert re.fullmatch(b.kind, error.kind), error
    assert re.search(b.message, str(error)), error
    assert error.op or error.kind == "deadlock"


@pytest.mark.sample(every=11)
@pytest.mark.parametrize("b", WRONG_RESULTS, ids=lambda b: f"{b.kernel}: {b.name}")
def test_wrong_result(b: Broken) -> None:
    k = TENSOR_KERNELS[b.kernel]
    assert not k.run(mutated(k.body, b))[1]


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", TENSOR_KERNELS)
def test_correct_kernels_pass(name: str, schedule: str) -> None:
    report, right = TENSOR_KERNELS[name].run(schedule=schedule)
    assert right
    assert report.warnings == []


def test_fences_are_only_required_by_the_strict_check() -> None:
    k = replace(TENSOR_KERNELS["gemm"], checks=("race", "uninit"))
    report, right = k.run(k.body.replace(AFTER, "").replace(BEFORE, ""))
    assert right
    assert any("missing tcgen05.fence::after_thread_sync" in w for w in report.warnings)
