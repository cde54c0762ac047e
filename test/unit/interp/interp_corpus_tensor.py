"""Correct kernels with tensor memory and tcgen05, mutated by `test_broken_tensor_kernels`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from interp_corpus import CONSTANTS, FULL, MAP, Kernel

from cute_dialect.interp import Pointer, TensorMap
from cute_dialect.interp.memory.arguments import Argument
from cute_dialect.interp.memory.buffers import SMEM_ORIGIN

STRICT = ("race", "oob", "uninit", "sync", "strict")
HIGH = 1 << 46 | 2 << 61 | 64 << 32 | 1 << 16  # version 1, 128-byte swizzle, 8 rows of 128 bytes
SHAPE = 128 // 16 << 24 | 32 // 8 << 17 | 1 << 4  # f16 x f16 -> f32, 128 x 32, both K-major


def call(name: str, operands: str = "", types: str = "", result: str = "()") -> str:
    """Return a call of a tcgen05 intrinsic."""
    return f'llvm.call_intrinsic "llvm.nvvm.tcgen05.{name}"({operands}) : ({types}) -> {result}'


BEFORE, AFTER = call("fence.before.thread.sync"), call("fence.after.thread.sync")


def mma(a: str, b: str, enable: str, d: str = "%acc", shape: str = "%shape") -> str:
    """Return an MMA of kind f16 with operands in shared memory."""
    return call(
        "mma.shared",
        f"{d}, {a}, {b}, {shape}, {enable}, %c0, %c1, %c0",
        "!llvm.ptr<6>, i64, i64, i32, i1, i32, i32, i32",
    )


def commit(bar: str) -> str:
    """Return a commit to an mbarrier."""
    return call("commit.shared.cg1", bar, "!llvm.ptr<3>")


def wait(bar: str, phase: str) -> str:
    """Return a wait for a phase of an mbarrier."""
    return f"nvvm.mbarrier.try_wait.parity {bar}, {phase}, %tk : !llvm.ptr<3>, i32, i32"


# -- a persistent GEMM: two tiles of 128 x 32, a ring of two stages, two accumulators ----------------------------------
# warp 0 loads by TMA, one thread of warp 1 multiplies, warps 4 to 7 store the tiles


def _gemm() -> str:
    lines = [
        CONSTANTS,
        FULL,
        f"""
    %stages = arith.constant 2 : i32
    %kt = arith.constant 3 : i32
    %tiles = arith.constant 3 : i32
    %columns = arith.constant 64 : i32
    %bytes = arith.constant 20480 : i32
    %stagebytes = arith.constant 20480 : i32
    %stageunits = arith.constant 1280 : i32
    %high = arith.constant {HIGH} : i64
    %shape = arith.constant {SHAPE} : i32
    %first1 = arith.constant false
    %yes = arith.constant true
    %no = arith.constant false
    %full_ = llvm.getelementptr %d[40960] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %empty = llvm.getelementptr %full_[16] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %accfull = llvm.getelementptr %full_[32] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %accempty = llvm.getelementptr %full_[48] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %slot = llvm.getelementptr %full_[64] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %first = arith.cmpi eq, %tid, %c0 : i32
    %warp = arith.divui %tid, %c32 : i32
    %allocates = arith.cmpi eq, %warp, %c1 : i32
    scf.if %first {{""",
    ]
    for name, count in (("full_", "%c1"), ("empty", "%c1"), ("accfull", "%c1"), ("accempty", "%c128")):
        lines.append(f"""
      %{name}1 = llvm.getelementptr %{name}[1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i64
      nvvm.mbarrier.init %{name}, {count} : !llvm.ptr<3>, i32
      nvvm.mbarrier.init %{name}1, {count} : !llvm.ptr<3>, i32""")
    lines.append(f"""
      nvvm.fence.mbarrier.init
    }}
    scf.if %allocates {{
      {call("alloc.shared.cg1", "%slot, %columns", "!llvm.ptr<3>, i32")} // alloc
      {call("relinq.alloc.permit.cg1")} // relinquish
    }}
    nvvm.barrier0 // start
    {AFTER} // start
    %base = llvm.load %slot : !llvm.ptr<3> -> i32
    %issues = arith.cmpi eq, %tid, %c32 : i32
    scf.if %first {{
      %pp:2 = scf.for %t = %c0 to %tiles step %c1 iter_args(%s0 = %c0, %p0 = %c1) -> (i32, i32) : i32 {{
        %p:2 = scf.for %i = %c0 to %kt step %c1 iter_args(%s = %s0, %ph = %p0) -> (i32, i32) : i32 {{
          %e = llvm.getelementptr %empty[%s] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
          {wait("%e", "%ph")} // empty
          %f = llvm.getelementptr %full_[%s] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
          nvvm.mbarrier.arrive.expect_tx %f, %bytes : !llvm.ptr<3>, i32
          %at = arith.muli %s, %stagebytes : i32
          %k = arith.muli %i, %c64 : i32
          %n = arith.muli %t, %c32 : i32
          %sa = llvm.getelementptr %d[%at] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
          %sb = llvm.getelementptr %sa[16384] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
          %ac = llvm.addrspacecast %sa : !llvm.ptr<3> to !llvm.ptr<7>
          %bc = llvm.addrspacecast %sb : !llvm.ptr<3> to !llvm.ptr<7>
          nvvm.cp.async.bulk.tensor.shared.cluster.global %ac, %ta, %f, box[%k, %c0] : !llvm.ptr<7>, !llvm.ptr
          nvvm.cp.async.bulk.tensor.shared.cluster.global %bc, %tb, %f, box[%k, %n] : !llvm.ptr<7>, !llvm.ptr
          {_advance()}
          scf.yield %s1, %ph1 : i32, i32
        }}
        scf.yield %p#0, %p#1 : i32, i32
      }}
    }}
    scf.if %issues {{
      %origin = arith.constant {SMEM_ORIGIN >> 4} : i32
      %pp:4 = scf.for %t = %c0 to %tiles step %c1 iter_args(%s0 = %c0, %p0 = %c0, %buf = %c0, %ap = %c1) \
-> (i32, i32, i32, i32) : i32 {{
        %ae = llvm.getelementptr %accempty[%buf] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        {wait("%ae", "%ap")} // accumulator empty
        %shift = arith.muli %buf, %c32 : i32
        %column = arith.addi %base, %shift : i32
        %acc = llvm.inttoptr %column : i32 to !llvm.ptr<6>
        %p:3 = scf.for %i = %c0 to %kt step %c1 iter_args(%s = %s0, %ph = %p0, %on = %no) -> (i32, i32, i1) : i32 {{
          %f = llvm.getelementptr %full_[%s] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
          {wait("%f", "%ph")} // full
          {AFTER} // full
          %off = arith.muli %s, %stageunits : i32
          %da = arith.addi %origin, %off : i32""")
    for k in range(4):
        lines.append(f"""
          %ka{k} = arith.constant {2 * k} : i32
          %da{k} = arith.addi %da, %ka{k} : i32
          %kb{k} = arith.constant {1024 + 2 * k} : i32
          %db{k} = arith.addi %da, %kb{k} : i32
          %xa{k} = arith.extui %da{k} : i32 to i64
          %xb{k} = arith.extui %db{k} : i32 to i64
          %la{k} = arith.ori %xa{k}, %high : i64
          %lb{k} = arith.ori %xb{k}, %high : i64
          {mma(f"%la{k}", f"%lb{k}", "%yes" if k else "%on")} // mma{k}""")
    lines.append(f"""
          %e = llvm.getelementptr %empty[%s] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
          {commit("%e")} // stage
          {_advance()}
          scf.yield %s1, %ph1, %yes : i32, i32, i1
        }}
        %af = llvm.getelementptr %accfull[%buf] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        {commit("%af")} // accumulator
        {_advance("buf", "ap")}
        scf.yield %p#0, %p#1, %buf1, %ap1 : i32, i32, i32, i32
      }}
    }}
    %stores = arith.cmpi uge, %warp, %c4 : i32
    scf.if %stores {{
      %quarter = arith.subi %warp, %c4 : i32
      %c21 = arith.constant 21 : i32
      %lane = arith.shli %quarter, %c21 : i32
      %row = arith.subi %tid, %c128 : i32
      %pitch = arith.constant 96 : i32
      %r0 = arith.muli %row, %pitch : i32
      %mine = arith.addi %base, %lane : i32
      %pp:2 = scf.for %t = %c0 to %tiles step %c1 iter_args(%buf = %c0, %ap = %c0) -> (i32, i32) : i32 {{
        %af = llvm.getelementptr %accfull[%buf] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        {wait("%af", "%ap")} // accumulator full
        {AFTER} // accumulator full
        %shift = arith.muli %buf, %c32 : i32
        %at = arith.addi %mine, %shift : i32
        %at1 = arith.addi %at, %c16 : i32
        %t0 = llvm.inttoptr %at : i32 to !llvm.ptr<6>
        %t1 = llvm.inttoptr %at1 : i32 to !llvm.ptr<6>
        %v0 = {call("ld.32x32b.x16", "%t0, %no", "!llvm.ptr<6>, i1", "vector<16xi32>")}
        %v1 = {call("ld.32x32b.x16", "%t1, %no", "!llvm.ptr<6>, i1", "vector<16xi32>")}
        {call("wait.ld")} // loaded
        {BEFORE} // loaded
        %ae = llvm.getelementptr %accempty[%buf] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        nvvm.mbarrier.arrive %ae : !llvm.ptr<3> // accumulator empty
        %n = arith.muli %t, %c32 : i32
        %o0 = arith.addi %r0, %n : i32
        %q0 = llvm.getelementptr %c[%o0] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        %q1 = llvm.getelementptr %q0[16] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
        llvm.store %v0, %q0 {{alignment = 64 : i64}} : vector<16xi32>, !llvm.ptr<1>
        llvm.store %v1, %q1 {{alignment = 64 : i64}} : vector<16xi32>, !llvm.ptr<1>
        {_advance("buf", "ap")}
        scf.yield %buf1, %ap1 : i32, i32
      }}
    }}
    nvvm.barrier0 // end
    scf.if %allocates {{
      %whole = llvm.inttoptr %base : i32 to !llvm.ptr<6>
      {call("dealloc.cg1", "%whole, %columns", "!llvm.ptr<6>, i32")} // dealloc
    }}
    llvm.return
    """)
    return "\n".join(lines)


def _advance(at: str = "s", phase: str = "ph") -> str:
    """Return the step to the next of two buffers."""
    return f"""%next_{at} = arith.addi %{at}, %c1 : i32
          %wrap_{at} = arith.cmpi eq, %next_{at}, %stages : i32
          %{at}1 = arith.select %wrap_{at}, %c0, %next_{at} : i32
          %flip_{at} = arith.extui %wrap_{at} : i1 to i32
          %{phase}1 = arith.xori %{phase}, %flip_{at} : i32"""


def _gemm_args() -> tuple[list[Argument], Callable[[], bool]]:
    rng = np.random.default_rng(1)
    a = rng.integers(-4, 5, (128, 192)).astype(np.float16)
    b = rng.integers(-4, 5, (96, 192)).astype(np.float16)
    c = np.zeros((128, 96), np.float32)
    ta = TensorMap("f16", (192, 128), (384,), (64, 128), swizzle=128, pointer=Pointer(a))
    tb = TensorMap("f16", (192, 96), (384,), (64, 32), swizzle=128, pointer=Pointer(b))
    return [ta, tb, Pointer(c)], lambda: np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


TENSOR_KERNELS: dict[str, Kernel] = {
    "gemm": Kernel(_gemm(), f"%ta: {MAP}, %tb: {MAP}, %c: !llvm.ptr<1>", _gemm_args, 256, 41216, checks=STRICT),
}
