"""Mutations of kernels with tensor memory: the interpreter reports each one with the right diagnosis."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from interp_corpus_tensor import (
    AFTER,
    BEFORE,
    LEADER,
    TENSOR_KERNELS,
    commit,
    copy,
    mma,
    multicast,
    pair_mma,
    scaled,
    wait,
)
from tensor_programs import call
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
    gemm("12: wrong N, smaller", shape(n=16), "uninit", "unwritten tensor memory .lane"),
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
        "tensor memory .*(which is not allocated; allocate more columns|has allocated columns [0-9]+ to [0-9]+)",
    ),
    gemm(
        "16: columns past the last",
        ((OFFSET, "%far = arith.constant 512 : i32\n        " + OFFSET.replace("%c32", "%far")),),
        "oob",
        "columns [0-9]+ to [0-9]+ of tensor memory .*it has 128 lanes and 512 columns, of which the block has "
        "allocated columns [0-9]+ to [0-9]+",
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
        "30: mma of a pair",
        ((ACCUMULATE, ACCUMULATE.replace("%c0, %c1, %c0)", "%c0, %c2, %c0)")),),
        "tcgen05",
        "cta_group 2 in a kernel that uses cta_group 1",
    ),
    # -- the fences that the text of the PTX ISA requires
    gemm("39: no fence after the wait for data", ((f"{AFTER} // full", ""),), "race", "add tcgen05.fence::after"),
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


def chain(name: str, edits: tuple[tuple[str, str], ...], kind: str, message: str) -> Broken:
    return Broken("chain", name, edits, kind, message)


STORE_P = f"{call('st.32x32b.x16', '%s, %z16, %no', '!llvm.ptr<6>, vector<16xi32>, i1')} // P"
LOAD_2 = call("ld.32x32b.x16", "%s1, %no", "!llvm.ptr<6>, i1", "vector<16xi32>")
FIRST_O = call(
    "mma.tensor",
    "%o, %acc, %v0, %shape1, %no, %c0, %c1, %c0",
    "!llvm.ptr<6>, !llvm.ptr<6>, i64, i32, i1, i32, i32, i32",
)
FENCE_PROXY = "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}"

CORPUS += [
    chain("1: no commit", ((f"{commit('%scores')} // scores", ""),), "deadlock", "waits at the mbarrier"),
    chain("5: no wait for the scores", ((f"{wait('%scores', '%c0')} // scores", ""),), "race|uninit", "tensor memory"),
    chain("8: no wait for the loads", ((f"{call('wait.ld')} // scores", ""),), "tcgen05", "missing tcgen05.wait::ld"),
    chain(
        "9: no wait for the stores of P",
        ((f"{call('wait.st')} // P", ""),),
        "race",
        "missing tcgen05.wait::st by the warp",
    ),
    chain(
        "9: no barrier after the stores of P",
        ((f"{wait('%stored', '%c0')} // P", ""),),
        "race|uninit",
        "race on tensor memory|A from tensor memory",
    ),
    chain("10: O accumulates", ((FIRST_O, FIRST_O.replace("%no", "%yes")),), "uninit", "accumulates on tensor memory"),
    chain(
        "32: P stored over S before it is loaded",
        ((f"{call('wait.ld')} // scores", ""), (STORE_P, f"{STORE_P}\n{call('wait.ld')}")),
        "tcgen05|race",
        "missing tcgen05.wait::ld",
    ),
    chain("4: no proxy fence", ((FENCE_PROXY, ""),), "race", "missing fence.proxy.async"),
    chain("39: no fence before", ((f"{BEFORE} // P", ""),), "race", "missing tcgen05.fence::before_thread_sync"),
    chain(
        "39: no fence after the stores", ((f"{AFTER} // P", ""),), "race", "missing tcgen05.fence::after_thread_sync"
    ),
    chain(
        "39: no fence after the scores", ((f"{AFTER} // scores", ""),), "race", "missing tcgen05.fence::after_thread"
    ),
    chain("39: no fence after O", ((f"{AFTER} // O", ""),), "race", "missing tcgen05.fence::after_thread_sync"),
    chain("39: no fence at the start", ((f"{AFTER} // start", ""),), "race", "add tcgen05.fence::after_thread_sync"),
    chain("39: no fence at the end", ((f"{BEFORE} // end", ""),), "race", "missing tcgen05.fence::before_thread_sync"),
]


def block_scaled(name: str, edits: tuple[tuple[str, str], ...], kind: str, message: str) -> Broken:
    return Broken("scaled", name, edits, kind, message)


REUSED = f"{wait('%buffer0', '%c0')} // buffer of block 2\n{AFTER} // buffer of block 2"
COPY_A, COPY_B = f"{copy('%sa0', '%fa0')} // A of block 0", f"{copy('%sb1', '%fb1')} // B of block 1"
LAST_MMA = f"{scaled('%a1_3', '%b1_3', '%shape3', '%yes', 1)} // mma 1_3"

CORPUS += [
    block_scaled(
        "21: scale factors overlap D",
        (("%sb1_o = arith.constant 44", "%sb1_o = arith.constant 28"),),
        "race",
        "race on tensor memory .*destination.*accumulator",
    ),
    block_scaled(
        "23: cp after the first mma that needs it",
        (
            (COPY_A, ""),
            (
                f"{scaled('%a0_0', '%b0_0', '%shape0', '%no', 0)} // mma 0_0",
                f"{scaled('%a0_0', '%b0_0', '%shape0', '%no', 0)}\n{copy('%sa0', '%fa0')}",
            ),
        ),
        "race|uninit",
        "scale factor|write-after-read race on tensor memory",
    ),
    block_scaled(
        "23: cp of a block after all of its mma",
        ((COPY_B, ""), (LAST_MMA, f"{LAST_MMA}\n{copy('%sb1', '%fb1')}")),
        "race|uninit",
        "scale factor|write-after-read race on tensor memory",
    ),
    block_scaled(
        "40: scale factors in one buffer",
        ((REUSED, ""),),
        "race",
        "race on tensor memory .*destination.* missing tcgen05.commit to an mbarrier after the earlier one"
        ", and a wait for its phase; or use other columns for one of the two",
    ),
    block_scaled(
        "39: no fence before a buffer is overwritten",
        ((f"{AFTER} // buffer of block 2", ""),),
        "race",
        "missing tcgen05.fence::after_thread_sync",
    ),
    block_scaled(
        "12: scale factor id that does not exist",
        (
            (
                "%shape1 = arith.constant",
                "%shape1_ = arith.constant 0 : i32\n%shape1 = arith.constant 8 : i32\n%shape1__ = arith.constant",
            ),
        ),
        "tcgen05",
        "instruction descriptor",
    ),
    block_scaled(
        "12: type of the scale",
        (
            (
                "%shape1 = arith.constant ",
                f"%shape1 = arith.constant {0x08080000 | 1 << 29 | 1 << 4} : i32\n%unused = arith.constant ",
            ),
        ),
        "tcgen05",
        "the scale type .* is 0 .ue4m3.; ue4m3 needs kind mxf4nvf4",
    ),
]


def pair(name: str, edits: tuple[tuple[str, str], ...], kind: str, message: str) -> Broken:
    return Broken("pair", name, edits, kind, message)


PAIR_FIRST = f"{pair_mma('%la0', '%lb0', '%on')} // mma0"
PAIR_DONE, PAIR_STAGE = f"{multicast('%accfull')} // accumulator", f"{multicast('%e')} // stage"
PAIR_END = "nvvm.cluster.arrive {aligned} // end\n    nvvm.cluster.wait {aligned} // end"
PAIR_FULL = f"{wait('%accfull', '%c0')} // accumulator full"
PAIR_ALLOC = call("alloc.shared.cg2", "%slot, %columns", "!llvm.ptr<3>, i32")
ISSUED_TWICE = """%second = arith.constant 64 : i32
    %isother = arith.cmpi eq, %tid, %second : i32
    %isany = arith.ori %ismma, %isother : i1
    %issues = arith.andi %isany, %leads : i1"""

CORPUS += [
    pair(
        "25: a second thread also issues the mma",
        (("%issues = arith.andi %ismma, %leads : i1", ISSUED_TWICE),),
        "race|sync|tcgen05|deadlock",
        "race on tensor memory|arrivals",
    ),
    pair(
        "25: the other block also issues the mma",
        (("%issues = arith.andi %ismma, %leads : i1", "%issues = arith.andi %ismma, %yes : i1"),),
        "deadlock|sync|race",
        "waits at the mbarrier|arrivals|race on",
    ),
    pair(
        "26: a stage is released in one block", ((PAIR_STAGE, multicast("%e", "%one")),), "deadlock", "waits at the mb"
    ),
    pair(
        "26: the accumulator is signalled in one block",
        ((PAIR_DONE, multicast("%accfull", "%one")),),
        "deadlock",
        "waits",
    ),
    pair(
        "27: bytes of one block expected",
        (("%bytes = arith.constant 36864", "%bytes = arith.constant 18432"),),
        "sync|deadlock|race",
        "raise expect_tx|bytes more delivered|missing wait for the phase of|not ordered after the copies of",
    ),
    pair(
        "28: barrier of the own block",
        ((LEADER, LEADER.replace("arith.andi %fi, %evenmask", "arith.ori %fi, %c0")),),
        "deadlock|sync",
        "bytes missing|waits at the mbarrier|in flight",
    ),
    pair("29: no wait for the accumulator", ((PAIR_FULL, ""),), "race|uninit", "tensor memory"),
    pair(
        "18: freed without a barrier of the cluster",
        ((PAIR_END, ""),),
        "race|tcgen05|sync|oob",
        "tensor memory|in flight|columns",
    ),
    pair(
        "30: mma of one block",
        ((PAIR_FIRST, pair_mma("%la0", "%lb0", "%on", "%c1")),),
        "tcgen05",
        "cta_group 1 in a kernel that uses cta_group 2",
    ),
    pair(
        "30: allocation of one block",
        ((PAIR_ALLOC, PAIR_ALLOC.replace("cg2", "cg1")),),
        "tcgen05",
        "cta_group 2 in a kernel that uses cta_group 1",
    ),
    pair("39: no fence after the wait for data", ((f"{AFTER} // full", ""),), "race", "add tcgen05.fence::after"),
    pair(
        "39: no fence after the wait for D",
        ((f"{AFTER} // accumulator full", ""),),
        "race",
        "missing tcgen05.fence::after",
    ),
    pair(
        "39: no fence before the end",
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
    block_scaled(
        "22: scale factor id not advanced",
        ((scaled("%a1_2", "%b1_2", "%shape2", "%yes", 1), scaled("%a1_2", "%b1_2", "%shape1", "%yes", 1)),),
        *WRONG,
    ),
    block_scaled("38: scale factors of A and B exchanged", ((copy("%sa1", "%fa1"), copy("%sa1", "%fb1")),), *WRONG),
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


def test_scale_factors_in_one_buffer_are_accepted_in_practice() -> None:
    k = replace(TENSOR_KERNELS["scaled"], checks=("race", "uninit"))
    report, right = k.run(k.body.replace(REUSED, ""))
    assert right
    assert any("tcgen05.cp is ordered after tcgen05.mma in practice" in w for w in report.warnings)


CALL = re.compile(r'llvm\.call_intrinsic "llvm\.nvvm\.tcgen05\.([\w.]+)"\((.*?)\) : \((.*?)\) -> (\S+)')


def as_op(m: re.Match[str]) -> str:
    """Return the nvvm op of an intrinsic."""
    name, operands, types, result = m.groups()
    group = "cta_2" if "cg2" in name or (name.startswith("mma") and "%c2, %c0" in operands) else "cta_1"
    attribute = f"group = #nvvm.cta_group<{group}>"
    words = operands.split(", ")
    if name.startswith(("alloc", "dealloc")):
        return f"nvvm.tcgen05.{name.split('.')[0]} {operands} {{{attribute}}} : {types}"
    if name.startswith("relinq"):
        return f"nvvm.tcgen05.relinquish_alloc_permit {{{attribute}}}"
    if name.startswith("fence"):
        return f"nvvm.tcgen05.fence <{name.split('.')[1]}>"
    if name.startswith("wait"):
        return f"nvvm.tcgen05.wait <{'load' if name.endswith('ld') else 'store'}>"
    if name.startswith("commit"):
        mask = f", multicast_mask = {words[1]}" if len(words) > 1 else ""
        return f"nvvm.tcgen05.commit {words[0]}{mask} {{{attribute}}} : {types}"
    if name.startswith(("ld", "st")):
        shape = f"shape = #nvvm.tcgen05_ldst_shape<shape_{name.split('.')[1]}>"
        kind = result if name.startswith("ld") else ", ".join(types.split(", ")[1:-1])
        return f"nvvm.tcgen05.{name[:2]} {', '.join(words[:-1])} {{{shape}}} : {kind}"
    if name.startswith("cp"):
        shape = "shape = #nvvm.tcgen05_cp_shape<shape_32x128b>, multicast = #nvvm.tcgen05_cp_multicast<warpx4>"
        return f"nvvm.tcgen05.cp {operands} {{{shape}, {attribute}}}"
    scaled = "block_scale" in name
    kind = "block_scale_kind<mxf8f6f4>" if scaled else "tcgen05_mma_kind<f16>"
    count = 7 if scaled else 5
    taken = ", ".join(types.split(", ")[:count])
    attributes = f"kind = #nvvm.{kind}, ctaGroup = #nvvm.cta_group<{group}>"
    op = "mma.block_scale" if scaled else "mma"
    return f"nvvm.tcgen05.{op} {', '.join(words[:count])} {{{attributes}}} : ({taken})"


@pytest.mark.sample("scaled")
@pytest.mark.parametrize("name", TENSOR_KERNELS)
def test_kernels_in_nvvm_ops(name: str) -> None:
    k = TENSOR_KERNELS[name]
    text = CALL.sub(as_op, k.body)
    assert "tcgen05" not in "".join(line for line in text.splitlines() if "call_intrinsic" in line)
    report, right = k.run(text)
    assert right
    assert report.warnings == []
