"""Correct base-level kernels that `test_broken_kernels` mutates, with launch parameters and expected results.

The mutations edit the text of a kernel by search and replace, so each line does one thing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from interp_support import DSMEM, kernel, run_kernel

from cute_dialect.interp import Pointer, RunReport, TensorMap
from cute_dialect.interp.memory.arguments import Argument
from cute_dialect.interp.memory.buffers import SMEM_ORIGIN

MAP = "!llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}"


@dataclass(frozen=True)
class Kernel:
    """A kernel and its launch. `make` returns the arguments and a function that checks the result."""

    body: str
    params: str
    make: Callable[[], tuple[list[Argument], Callable[[], bool]]]
    block: int
    smem: int = 0
    grid: int = 1
    cluster: int = 1
    attrs: str = ""
    checks: tuple[str, ...] = ("race", "oob", "uninit", "sync")

    def run(
        self, body: str | None = None, schedule: str = "round-robin", width: str = "auto"
    ) -> tuple[RunReport, bool]:
        """Run the text, or a mutation of it, under all checks; return True if the result is right."""
        args, right = self.make()
        module = kernel(self.body if body is None else body, self.params, DSMEM, self.attrs)
        report = run_kernel(
            module,
            "k",
            args,
            grid=self.grid,
            block=self.block,
            cluster=self.cluster,
            dynamic_smem=self.smem,
            schedule=schedule,
            width=width,
            checks=list(self.checks),
            max_steps=200_000,
        )
        return report, right()


CONSTANTS = "\n".join(
    f"%c{n} = arith.constant {n} : i32"
    for n in (0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 64, 127, 128, 255, 256, 1024, 8192, 16384)
)
FULL = """
    %full = arith.constant -1 : i32
    %tk = arith.constant 10000 : i32
    %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
"""

# -- a GEMM of 64 x 64 with TMA, a ring of two stages, wgmma and a TMA store ------------------------------------------

ACC = f"!llvm.struct<({', '.join(['f32'] * 32)})>"
HIGH = (1 << 62) | (64 << 32) | (1 << 16)


def _gemm() -> str:
    lines = [CONSTANTS, FULL]
    lines.append(
        f"""
    %stages = arith.constant 2 : i32
    %kt = arith.constant 4 : i32
    %bytes = arith.constant 16384 : i32
    %fullcount = arith.constant 1 : i32
    %emptycount = arith.constant 1 : i32
    %high = arith.constant {HIGH} : i64
    %barriers = llvm.getelementptr %d[40960] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %empties = llvm.getelementptr %barriers[16] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %first = arith.cmpi eq, %tid, %c0 : i32
    scf.if %first {{
      %full1 = llvm.getelementptr %barriers[1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i64
      %empty1 = llvm.getelementptr %empties[1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i64
      nvvm.mbarrier.init %barriers, %fullcount : !llvm.ptr<3>, i32
      nvvm.mbarrier.init %full1, %fullcount : !llvm.ptr<3>, i32
      nvvm.mbarrier.init %empties, %emptycount : !llvm.ptr<3>, i32
      nvvm.mbarrier.init %empty1, %emptycount : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
    }}
    nvvm.barrier0 // start
    %wg = arith.divui %tid, %c128 : i32
    %produces = arith.cmpi eq, %wg, %c0 : i32
    scf.if %produces {{
      scf.if %first {{
        %p:2 = scf.for %i = %c0 to %kt step %c1 iter_args(%slot = %c0, %ph = %c0) -> (i32, i32) : i32 {{
          %e = llvm.getelementptr %empties[%slot] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
          %eph = arith.xori %ph, %c1 : i32
          nvvm.mbarrier.try_wait.parity %e, %eph, %tk : !llvm.ptr<3>, i32, i32
          %f = llvm.getelementptr %barriers[%slot] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
          nvvm.mbarrier.arrive.expect_tx %f, %bytes : !llvm.ptr<3>, i32
          %at = arith.muli %slot, %c16384 : i32
          %k = arith.muli %i, %c64 : i32
          %a = llvm.getelementptr %d[%at] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
          %b = llvm.getelementptr %a[8192] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
          %ac = llvm.addrspacecast %a : !llvm.ptr<3> to !llvm.ptr<7>
          %bc = llvm.addrspacecast %b : !llvm.ptr<3> to !llvm.ptr<7>
          nvvm.cp.async.bulk.tensor.shared.cluster.global %ac, %ta, %f, box[%k, %c0] : !llvm.ptr<7>, !llvm.ptr
          nvvm.cp.async.bulk.tensor.shared.cluster.global %bc, %tb, %f, box[%k, %c0] : !llvm.ptr<7>, !llvm.ptr
          %next = arith.addi %slot, %c1 : i32
          %wrap = arith.cmpi eq, %next, %stages : i32
          %slot1 = arith.select %wrap, %c0, %next : i32
          %flip = arith.extui %wrap : i1 to i32
          %ph1 = arith.xori %ph, %flip : i32
          scf.yield %slot1, %ph1 : i32, i32
        }}
      }}
    }} else {{
      %ct = arith.subi %tid, %c128 : i32
      %leads = arith.cmpi eq, %ct, %c0 : i32
      %u = llvm.mlir.zero : {ACC}
      %base = arith.constant {SMEM_ORIGIN >> 4} : i32
      %r:3 = scf.for %i = %c0 to %kt step %c1 iter_args(%acc = %u, %slot = %c0, %ph = %c0) -> ({ACC}, i32, i32) : i32 {{
        %f = llvm.getelementptr %barriers[%slot] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        nvvm.mbarrier.try_wait.parity %f, %ph, %tk : !llvm.ptr<3>, i32, i32
        %off = arith.muli %slot, %c1024 : i32
        %da = arith.addi %base, %off : i32
        nvvm.wgmma.fence.aligned"""
    )
    acc = "%acc"
    for k in range(4):
        lines.append(
            f"""
        %s{k} = arith.constant {2 * k} : i32
        %da{k} = arith.addi %da, %s{k} : i32
        %bo{k} = arith.constant {512 + 2 * k} : i32
        %db{k} = arith.addi %da, %bo{k} : i32
        %xa{k} = arith.extui %da{k} : i32 to i64
        %xb{k} = arith.extui %db{k} : i32 to i64
        %la{k} = arith.ori %xa{k}, %high : i64
        %lb{k} = arith.ori %xb{k}, %high : i64
        %m{k} = nvvm.wgmma.mma_async %la{k}, %lb{k}, {acc}, #nvvm.shape<m = 64, n = 64, k = 16>, \
D [<f32>, #nvvm.wgmma_scale_out<one>], A [<f16>, #nvvm.wgmma_scale_in<one>, <row>], \
B [<f16>, #nvvm.wgmma_scale_in<one>, <col>] : {ACC} -> {ACC}"""
        )
        acc = f"%m{k}"
    lines.append(
        f"""
        nvvm.wgmma.commit.group.sync.aligned
        nvvm.wgmma.wait.group.sync.aligned 0
        %e = llvm.getelementptr %empties[%slot] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        scf.if %leads {{
          nvvm.mbarrier.arrive %e : !llvm.ptr<3>
        }}
        %next = arith.addi %slot, %c1 : i32
        %wrap = arith.cmpi eq, %next, %stages : i32
        %slot1 = arith.select %wrap, %c0, %next : i32
        %flip = arith.extui %wrap : i1 to i32
        %ph1 = arith.xori %ph, %flip : i32
        scf.yield %m3, %slot1, %ph1 : {ACC}, i32, i32
      }}
      %warp = arith.divui %ct, %c32 : i32
      %lane = arith.remui %ct, %c32 : i32
      %g = arith.divui %lane, %c4 : i32
      %t = arith.remui %lane, %c4 : i32
      %w16 = arith.muli %warp, %c16 : i32
      %row = arith.addi %w16, %g : i32
      %pitch = arith.constant 128 : i32
      %rb = arith.muli %row, %pitch : i32
      %t4 = arith.muli %t, %c4 : i32
      %rt = arith.addi %rb, %t4 : i32
      %stage = llvm.getelementptr %d[32768] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %out = llvm.getelementptr %stage[%rt] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8"""
    )
    for i in range(16):
        lines.append(
            f"""
      %lo{i} = llvm.extractvalue %r#0[{2 * i}] : {ACC}
      %hi{i} = llvm.extractvalue %r#0[{2 * i + 1}] : {ACC}
      %pk{i} = llvm.call_intrinsic "llvm.nvvm.ff2f16x2.rn"(%hi{i}, %lo{i}) : (f32, f32) -> vector<2xf16>
      %q{i} = llvm.getelementptr %out[{i // 2 * 16 + i % 2 * 1024}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      llvm.store %pk{i}, %q{i} : vector<2xf16>, !llvm.ptr<3>"""
        )
    lines.append(
        """
      nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
      nvvm.barrier id = %c1 number_of_threads = %c128
      scf.if %leads {
        nvvm.cp.async.bulk.tensor.global.shared.cta %tc, %stage, box[%c0, %c0] : !llvm.ptr, !llvm.ptr<3>
        nvvm.cp.async.bulk.commit.group
        nvvm.cp.async.bulk.wait_group 0
      }
    }
    llvm.return
    """
    )
    return "\n".join(lines)


def _gemm_args() -> tuple[list[Argument], Callable[[], bool]]:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, (64, 256)).astype(np.float16) for _ in range(2))
    c = np.zeros((64, 64), np.float16)
    want = (a.astype(np.float32) @ b.astype(np.float32).T).astype(np.float16)
    load = [TensorMap("f16", (256, 64), (512,), (64, 64), swizzle=128, pointer=Pointer(x)) for x in (a, b)]
    return [*load, TensorMap("f16", (64, 64), (128,), (64, 64), pointer=Pointer(c))], lambda: np.array_equal(c, want)


# -- a copy through a ring of two stages with cp.async ----------------------------------------------------------------

PIPELINE = (
    CONSTANTS
    + FULL
    + """
    %n = arith.constant 4 : i32
    %row = arith.constant 512 : i32
    %tb = arith.muli %tid, %c16 : i32
    %mirror0 = arith.subi %c31, %tid : i32
    %mirror = arith.muli %mirror0, %c16 : i32
    %src0 = llvm.getelementptr %a[%tb] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
    %dst0 = llvm.getelementptr %d[%tb] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    nvvm.cp.async.shared.global %dst0, %src0, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group // first
    scf.for %i = %c0 to %n step %c1 : i32 {
      %j = arith.addi %i, %c1 : i32
      %more = arith.cmpi slt, %j, %n : i32
      scf.if %more {
        %go = arith.muli %j, %row : i32
        %stage = arith.andi %j, %c1 : i32
        %so = arith.muli %stage, %row : i32
        %g1 = llvm.getelementptr %src0[%go] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
        %s1 = llvm.getelementptr %dst0[%so] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
        nvvm.cp.async.shared.global %s1, %g1, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
      }
      nvvm.cp.async.commit.group // next
      nvvm.cp.async.wait.group 1
      nvvm.barrier0 // arrived
      %now = arith.andi %i, %c1 : i32
      %no = arith.muli %now, %row : i32
      %base = llvm.getelementptr %d[%no] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %from = llvm.getelementptr %base[%mirror] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %v = llvm.load %from {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
      %oo = arith.muli %i, %row : i32
      %o1 = llvm.getelementptr %b[%oo] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
      %o2 = llvm.getelementptr %o1[%tb] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
      llvm.store %v, %o2 {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
      nvvm.barrier0 // released
    }
    llvm.return
    """
)


def _pipeline_args() -> tuple[list[Argument], Callable[[], bool]]:
    a = np.arange(4 * 128, dtype=np.int32).reshape(4, 32, 4)
    b = np.zeros_like(a)
    return [Pointer(a), Pointer(b)], lambda: np.array_equal(b, a[:, ::-1])


# -- a transpose through padded shared memory -------------------------------------------------------------------------

TRANSPOSE = (
    CONSTANTS
    + FULL
    + """
    %pitch = arith.constant 33 : i32
    %width = arith.constant 64 : i32
    %height = arith.constant 32 : i32
    %x = arith.remui %tid, %c32 : i32
    %y = arith.divui %tid, %c32 : i32
    scf.for %tile = %c0 to %c2 step %c1 : i32 {
      %x0 = arith.muli %tile, %c32 : i32
      %gx = arith.addi %x0, %x : i32
      scf.for %r = %y to %c32 step %c4 : i32 {
        %go = arith.muli %r, %width : i32
        %gi = arith.addi %go, %gx : i32
        %gp = llvm.getelementptr %a[%gi] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %v = llvm.load %gp : !llvm.ptr<1> -> f32
        %so = arith.muli %r, %pitch : i32
        %si = arith.addi %so, %x : i32
        %sp = llvm.getelementptr %d[%si] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
        llvm.store %v, %sp : f32, !llvm.ptr<3>
      }
      nvvm.barrier0 // written
      scf.for %r = %y to %c32 step %c4 : i32 {
        %so = arith.muli %x, %pitch : i32
        %si = arith.addi %so, %r : i32
        %sp = llvm.getelementptr %d[%si] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
        %v = llvm.load %sp : !llvm.ptr<3> -> f32
        %row = arith.addi %x0, %r : i32
        %go = arith.muli %row, %height : i32
        %gi = arith.addi %go, %x : i32
        %gp = llvm.getelementptr %b[%gi] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        llvm.store %v, %gp : f32, !llvm.ptr<1>
      }
      nvvm.barrier0 // read
    }
    llvm.return
    """
)


def _transpose_args() -> tuple[list[Argument], Callable[[], bool]]:
    a = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)
    b = np.zeros((64, 32), np.float32)
    return [Pointer(a), Pointer(b)], lambda: np.array_equal(b, a.T)


# -- a block-wide sum: warp shuffles, then one slot of shared memory per warp -----------------------------------------

REDUCE = (
    CONSTANTS
    + FULL
    + """
    %n = arith.constant 1000 : i32
    %zero = arith.constant 0 : i32
    %s = scf.for %i = %tid to %n step %c128 iter_args(%acc = %zero) -> (i32) : i32 {
      %p = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %v = llvm.load %p : !llvm.ptr<1> -> i32
      %t = arith.addi %acc, %v : i32
      scf.yield %t : i32
    }
    %x16 = nvvm.shfl.sync bfly %full, %s, %c16, %c31 : i32 -> i32
    %s16 = arith.addi %s, %x16 : i32
    %x8 = nvvm.shfl.sync bfly %full, %s16, %c8, %c31 : i32 -> i32
    %s8 = arith.addi %s16, %x8 : i32
    %x4 = nvvm.shfl.sync bfly %full, %s8, %c4, %c31 : i32 -> i32
    %s4 = arith.addi %s8, %x4 : i32
    %x2 = nvvm.shfl.sync bfly %full, %s4, %c2, %c31 : i32 -> i32
    %s2 = arith.addi %s4, %x2 : i32
    %x1 = nvvm.shfl.sync bfly %full, %s2, %c1, %c31 : i32 -> i32
    %s1 = arith.addi %s2, %x1 : i32
    %warp = arith.divui %tid, %c32 : i32
    %lane = arith.remui %tid, %c32 : i32
    %lead = arith.cmpi eq, %lane, %c0 : i32
    %slot = llvm.getelementptr %d[%warp] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    scf.if %lead {
      llvm.store %s1, %slot : i32, !llvm.ptr<3>
    }
    nvvm.barrier0 // partials
    %one = arith.cmpi eq, %tid, %c0 : i32
    scf.if %one {
      %total = scf.for %w = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> (i32) : i32 {
        %p = llvm.getelementptr %d[%w] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
        %v = llvm.load %p : !llvm.ptr<3> -> i32
        %t = arith.addi %acc, %v : i32
        scf.yield %t : i32
      }
      llvm.store %total, %b : i32, !llvm.ptr<1>
    }
    llvm.return
    """
)


def _reduce_args() -> tuple[list[Argument], Callable[[], bool]]:
    a, b = np.arange(1000, dtype=np.int32), np.zeros(1, np.int32)
    return [Pointer(a), Pointer(b)], lambda: int(b[0]) == int(a.sum())


# -- an elementwise kernel with a partial last block ------------------------------------------------------------------

SCALE = (
    CONSTANTS
    + """
    %n = arith.constant 1000 : i32
    %o = arith.muli %cta, %ntid overflow<nsw> : i32
    %i = arith.addi %o, %tid overflow<nsw> : i32
    %in = arith.cmpi slt, %i, %n : i32
    scf.if %in {
      %p = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %v = llvm.load %p : !llvm.ptr<1> -> i32
      %w = arith.muli %v, %c3 overflow<nsw> : i32
      %q = llvm.getelementptr %b[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %w, %q : i32, !llvm.ptr<1>
    }
    llvm.return
    """
)


def _scale_args() -> tuple[list[Argument], Callable[[], bool]]:
    a = np.arange(1000, dtype=np.int32)
    b = np.zeros(1000, np.int32)
    return [Pointer(a), Pointer(b)], lambda: np.array_equal(b, 3 * a)


# -- a histogram with atomics -----------------------------------------------------------------------------------------

HISTOGRAM = (
    CONSTANTS
    + FULL
    + """
    %in = arith.cmpi slt, %tid, %c16 : i32
    %mine = llvm.getelementptr %d[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    scf.if %in {
      llvm.store %c0, %mine : i32, !llvm.ptr<3>
    }
    nvvm.barrier0 // cleared
    %p = llvm.getelementptr %a[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %v = llvm.load %p : !llvm.ptr<1> -> i32
    %bin = arith.andi %v, %c15 : i32
    %slot = llvm.getelementptr %d[%bin] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %x = llvm.atomicrmw add %slot, %c1 monotonic : !llvm.ptr<3>, i32
    nvvm.barrier0 // counted
    scf.if %in {
      %r = llvm.load %mine : !llvm.ptr<3> -> i32
      %q = llvm.getelementptr %b[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %y = llvm.atomicrmw add %q, %r monotonic : !llvm.ptr<1>, i32
    }
    llvm.return
    """
)


def _histogram_args() -> tuple[list[Argument], Callable[[], bool]]:
    a = (np.arange(64, dtype=np.int32) * 7) % 23
    b = np.zeros(16, np.int32)
    want = 2 * np.bincount(a & 15, minlength=16)
    return [Pointer(a), Pointer(b)], lambda: np.array_equal(b, want)


# -- two blocks of a cluster exchange a row through distributed shared memory -----------------------------------------

CLUSTER = (
    CONSTANTS
    + FULL
    + """
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %peer = arith.xori %rank, %c1 : i32
    %mine = llvm.getelementptr %d[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %far = nvvm.mapa %mine, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
    %o = arith.muli %rank, %c64 : i32
    %i = arith.addi %o, %tid : i32
    %p = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %v = llvm.load %p : !llvm.ptr<1> -> i32
    nvvm.cluster.arrive.relaxed {aligned} // running
    nvvm.cluster.wait {aligned} // running
    llvm.store %v, %far : i32, !llvm.ptr<7>
    nvvm.cluster.arrive {aligned} // sent
    nvvm.cluster.wait {aligned} // sent
    %m0 = arith.subi %c64, %tid : i32
    %m = arith.subi %m0, %c1 : i32
    %s = llvm.getelementptr %d[%m] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %w = llvm.load %s : !llvm.ptr<3> -> i32
    %q = llvm.getelementptr %b[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %w, %q : i32, !llvm.ptr<1>
    llvm.return
    """
)


def _cluster_args() -> tuple[list[Argument], Callable[[], bool]]:
    a, b = np.arange(128, dtype=np.int32), np.zeros(128, np.int32)
    want = a.reshape(2, 64)[::-1, ::-1].reshape(-1)
    return [Pointer(a), Pointer(b)], lambda: np.array_equal(b, want)


# -- lanes of a warp exchange values through shared memory ------------------------------------------------------------

WARP = (
    CONSTANTS
    + FULL
    + """
    %mine = llvm.getelementptr %d[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %other = arith.xori %tid, %c31 : i32
    %theirs = llvm.getelementptr %d[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    scf.for %i = %c0 to %c3 step %c1 : i32 {
      %v = arith.addi %tid, %i : i32
      llvm.store %v, %mine : i32, !llvm.ptr<3>
      nvvm.bar.warp.sync %full : i32 // written
      %w = llvm.load %theirs : !llvm.ptr<3> -> i32
      nvvm.bar.warp.sync %full : i32 // read
      %q = llvm.getelementptr %b[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %w, %q : i32, !llvm.ptr<1>
    }
    llvm.return
    """
)


def _warp_args() -> tuple[list[Argument], Callable[[], bool]]:
    b = np.zeros(64, np.int32)
    want = (np.arange(64) ^ 31) + 2
    return [Pointer(b)], lambda: np.array_equal(b, want)


# -- named barriers: one warp produces, one consumes ------------------------------------------------------------------

NAMED = (
    CONSTANTS
    + FULL
    + """
    %warp = arith.divui %tid, %c32 : i32
    %lane = arith.remui %tid, %c32 : i32
    %produces = arith.cmpi eq, %warp, %c0 : i32
    %mine = llvm.getelementptr %d[%lane] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    scf.if %produces {
      scf.for %i = %c0 to %c3 step %c1 : i32 {
        nvvm.barrier id = %c2 number_of_threads = %c64 // empty
        %v = arith.addi %lane, %i : i32
        llvm.store %v, %mine : i32, !llvm.ptr<3>
        nvvm.barrier.arrive id = %c1 number_of_threads = %c64 // full
      }
    } else {
      scf.for %i = %c0 to %c3 step %c1 : i32 {
        nvvm.barrier.arrive id = %c2 number_of_threads = %c64 // free
        nvvm.barrier id = %c1 number_of_threads = %c64 // filled
        %v = llvm.load %mine : !llvm.ptr<3> -> i32
        %o = arith.muli %i, %c32 : i32
        %at = arith.addi %o, %lane : i32
        %q = llvm.getelementptr %b[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        llvm.store %v, %q : i32, !llvm.ptr<1>
      }
    }
    llvm.return
    """
)


def _named_args() -> tuple[list[Argument], Callable[[], bool]]:
    b = np.zeros(96, np.int32)
    want = (np.arange(3)[:, None] + np.arange(32)).reshape(-1)
    return [Pointer(b)], lambda: np.array_equal(b, want)


# -- register reallocation between warpgroups (setmaxregister) --------------------------------------------------------

REGISTERS = (
    CONSTANTS
    + """
    %wg = arith.divui %tid, %c128 : i32
    %produces = arith.cmpi eq, %wg, %c0 : i32
    scf.if %produces {
      nvvm.setmaxregister decrease 40
    } else {
      nvvm.setmaxregister increase 232
    }
    llvm.return
    """
)

PAIR = "%a: !llvm.ptr<1>, %b: !llvm.ptr<1>"
ONE = "%b: !llvm.ptr<1>"
KERNELS = {
    "gemm": Kernel(_gemm(), f"%ta: {MAP}, %tb: {MAP}, %tc: {MAP}", _gemm_args, 256, 40992),
    "pipeline": Kernel(PIPELINE, PAIR, _pipeline_args, 32, 1024),
    "transpose": Kernel(TRANSPOSE, PAIR, _transpose_args, 128, 32 * 33 * 4),
    "reduce": Kernel(REDUCE, PAIR, _reduce_args, 128, 16),
    "scale": Kernel(SCALE, PAIR, _scale_args, 128, 0, 8),
    "histogram": Kernel(HISTOGRAM, PAIR, _histogram_args, 64, 64, 2),
    "cluster": Kernel(CLUSTER, PAIR, _cluster_args, 64, 256, 2, 2),
    "warp": Kernel(WARP, ONE, _warp_args, 64, 256),
    "named": Kernel(NAMED, ONE, _named_args, 64, 128),
    "registers": Kernel(REGISTERS, "", lambda: ([], lambda: True), 384),
}
