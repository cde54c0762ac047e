"""Correct kernels with asynchronous copies and block synchronization, mutated by `test_broken_async_kernels`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from interp_corpus import CONSTANTS, FULL, MAP, PAIR, Kernel

from cute_dialect.interp import Pointer, TensorMap
from cute_dialect.interp.memory.arguments import Argument

# -- a TMA load of 16 x 32 floats; all threads wait for it -------------------------------------------------------------

LOAD = (
    CONSTANTS
    + FULL
    + """
    %bytes = arith.constant 2048 : i32
    %full1 = llvm.getelementptr %d[2048] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %first = arith.cmpi eq, %tid, %c0 : i32
    scf.if %first {
      nvvm.mbarrier.init %full1, %c1 : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
    }
    nvvm.barrier0
    %to = llvm.addrspacecast %d : !llvm.ptr<3> to !llvm.ptr<7>
    scf.if %first {
      nvvm.mbarrier.arrive.expect_tx %full1, %bytes : !llvm.ptr<3>, i32
      nvvm.cp.async.bulk.tensor.shared.cluster.global %to, %ta, %full1, box[%c0, %c0] : !llvm.ptr<7>, !llvm.ptr
    }
    nvvm.mbarrier.try_wait.parity %full1, %c0, %tk : !llvm.ptr<3>, i32, i32
    scf.for %i = %tid to %c256 step %c64 : i32 {
      %s = llvm.getelementptr %d[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %v = llvm.load %s : !llvm.ptr<3> -> i32
      %q = llvm.getelementptr %b[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %v, %q : i32, !llvm.ptr<1>
    }
    llvm.return
    """
)


def _load_args() -> tuple[list[Argument], Callable[[], bool]]:
    a, b = np.arange(512, dtype=np.float32).reshape(16, 32), np.zeros((8, 32), np.float32)
    tm = TensorMap("f32", (32, 16), (128,), (32, 16), pointer=Pointer(a))
    return [tm, Pointer(b)], lambda: np.array_equal(b, a[:8])


# -- the same load as a bulk copy -------------------------------------------------------------------------------------

BULK = LOAD.replace(
    "nvvm.cp.async.bulk.tensor.shared.cluster.global %to, %ta, %full1, box[%c0, %c0] : !llvm.ptr<7>, !llvm.ptr",
    "nvvm.cp.async.bulk.shared.cluster.global %to, %a, %full1, %bytes : !llvm.ptr<7>, !llvm.ptr<1>",
)


def _bulk_args() -> tuple[list[Argument], Callable[[], bool]]:
    a, b = np.arange(512, dtype=np.float32), np.zeros(256, np.float32)
    return [Pointer(a), Pointer(b)], lambda: np.array_equal(b, a[:256])


# -- two blocks exchange values in every iteration --------------------------------------------------------------------

EXCHANGE = (
    CONSTANTS
    + FULL
    + """
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %peer = arith.xori %rank, %c1 : i32
    %mine = llvm.getelementptr %d[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %far = nvvm.mapa %mine, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
    nvvm.cluster.arrive.relaxed {aligned} // running
    nvvm.cluster.wait {aligned} // running
    scf.for %i = %c0 to %c3 step %c1 : i32 {
      %r0 = arith.muli %i, %c2 : i32
      %r1 = arith.addi %r0, %rank : i32
      %r2 = arith.muli %r1, %c64 : i32
      %at = arith.addi %r2, %tid : i32
      %p = llvm.getelementptr %a[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %v = llvm.load %p : !llvm.ptr<1> -> i32
      llvm.store %v, %mine : i32, !llvm.ptr<3>
      nvvm.cluster.arrive {aligned} // written
      nvvm.cluster.wait {aligned} // written
      %w = llvm.load %far : !llvm.ptr<7> -> i32
      %q = llvm.getelementptr %b[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %w, %q : i32, !llvm.ptr<1>
      nvvm.cluster.arrive {aligned} // read
      nvvm.cluster.wait {aligned} // read
    }
    llvm.return
    """
)


def _exchange_args() -> tuple[list[Argument], Callable[[], bool]]:
    a, b = np.arange(384, dtype=np.int32), np.zeros(384, np.int32)
    return [Pointer(a), Pointer(b)], lambda: np.array_equal(b.reshape(3, 2, 64), a.reshape(3, 2, 64)[:, ::-1])


# -- a TMA multicast of 8 x 32 floats by block 1; both blocks of the cluster wait for it -------------------------------

MULTICAST = (
    CONSTANTS
    + FULL
    + """
    %both = arith.constant 3 : i16
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %full1 = llvm.getelementptr %d[2048] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %to = llvm.addrspacecast %d : !llvm.ptr<3> to !llvm.ptr<7>
    %first = arith.cmpi eq, %tid, %c0 : i32
    %second = arith.cmpi eq, %rank, %c1 : i32
    %does = arith.andi %second, %first : i1
    scf.if %first {
      nvvm.mbarrier.init %full1, %c1 : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
      nvvm.mbarrier.arrive.expect_tx %full1, %c1024 : !llvm.ptr<3>, i32
    }
    nvvm.cluster.arrive {aligned} // running
    nvvm.cluster.wait {aligned} // running
    scf.if %does {
      nvvm.cp.async.bulk.tensor.shared.cluster.global %to, %ta, %full1, box[%c0, %c0] multicast_mask = %both
        : !llvm.ptr<7>, !llvm.ptr
    }
    nvvm.mbarrier.try_wait.parity %full1, %c0, %tk : !llvm.ptr<3>, i32, i32
    %r = arith.muli %rank, %c256 : i32
    scf.for %i = %tid to %c256 step %c64 : i32 {
      %s = llvm.getelementptr %d[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %v = llvm.load %s : !llvm.ptr<3> -> i32
      %n = arith.addi %r, %i : i32
      %q = llvm.getelementptr %b[%n] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %v, %q : i32, !llvm.ptr<1>
    }
    llvm.return
    """
)
BULK_MULTICAST = MULTICAST.replace("bulk.tensor", "bulk").replace(
    "%ta, %full1, box[%c0, %c0] multicast_mask = %both\n        : !llvm.ptr<7>, !llvm.ptr",
    "%a, %full1, %c1024 multicast_mask = %both : !llvm.ptr<7>, !llvm.ptr<1>",
)


def _multicast_args() -> tuple[list[Argument], Callable[[], bool]]:
    a, b = np.arange(256, dtype=np.float32).reshape(8, 32), np.zeros((2, 8, 32), np.float32)
    tm = TensorMap("f32", (32, 8), (128,), (32, 8), pointer=Pointer(a))
    return [tm, Pointer(b)], lambda: bool((b == a).all())


def _bulk_multicast_args() -> tuple[list[Argument], Callable[[], bool]]:
    a, b = np.arange(256, dtype=np.float32), np.zeros((2, 256), np.float32)
    return [Pointer(a), Pointer(b)], lambda: bool((b == a).all())


# -- cp.async, then a store to its source after the wait --------------------------------------------------------------

SOURCE = (
    CONSTANTS
    + FULL
    + """
    %tb = arith.muli %tid, %c4 : i32
    %src = llvm.getelementptr %a[%tb] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
    %dst = llvm.getelementptr %d[%tb] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    nvvm.cp.async.shared.global %dst, %src, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0 // wait
    llvm.store %c0, %src : i32, !llvm.ptr<1> // clear
    nvvm.bar.warp.sync %full : i32 // meet
    %other = arith.xori %tid, %c1 : i32
    %s = llvm.getelementptr %d[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %v = llvm.load %s : !llvm.ptr<3> -> i32
    %q = llvm.getelementptr %b[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %v, %q : i32, !llvm.ptr<1>
    llvm.return
    """
)


def _source_args() -> tuple[list[Argument], Callable[[], bool]]:
    a, b = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    return [Pointer(a), Pointer(b)], lambda: np.array_equal(b, np.arange(64) ^ 1) and not a.any()


# -- cp.async whose completion arrives at an mbarrier -----------------------------------------------------------------

TOLD = (
    CONSTANTS
    + FULL
    + """
    %bar = llvm.getelementptr %d[256] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %first = arith.cmpi eq, %tid, %c0 : i32
    scf.if %first {
      nvvm.mbarrier.init %bar, %c64 : !llvm.ptr<3>, i32
    }
    nvvm.barrier0
    %tb = arith.muli %tid, %c4 : i32
    %src = llvm.getelementptr %a[%tb] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
    %dst = llvm.getelementptr %d[%tb] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    nvvm.cp.async.shared.global %dst, %src, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.mbarrier.arrive %bar {noinc = true} : !llvm.ptr<3>
    nvvm.mbarrier.try_wait.parity %bar, %c0, %tk : !llvm.ptr<3>, i32, i32
    %v = llvm.load %dst : !llvm.ptr<3> -> i32
    %q = llvm.getelementptr %b[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %v, %q : i32, !llvm.ptr<1>
    llvm.return
    """
)


def _told_args() -> tuple[list[Argument], Callable[[], bool]]:
    a, b = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    return [Pointer(a), Pointer(b)], lambda: np.array_equal(b, a)


# -- programmatic dependent launch: the kernel starts while its predecessor runs --------------------------------------

DEPENDENT = (
    CONSTANTS
    + """
    %p = llvm.getelementptr %a[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %q = llvm.getelementptr %b[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %r = llvm.getelementptr %w[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %weight = llvm.load %r : !llvm.ptr<1> -> i32
    %first = arith.cmpi eq, %tid, %c0 : i32
    scf.if %first {
      nvvm.griddepcontrol wait // wait
    }
    nvvm.barrier0 // all
    %v = llvm.load %p : !llvm.ptr<1> -> i32
    %x = arith.muli %v, %weight : i32
    llvm.store %x, %q : i32, !llvm.ptr<1>
    llvm.return
    """
)


def _dependent_args() -> tuple[list[Argument], Callable[[], bool]]:
    a, w, b = np.arange(64, dtype=np.int32), np.arange(64, dtype=np.int32) + 2, np.zeros(64, np.int32)
    return [Pointer(a), Pointer(w), Pointer(b)], lambda: np.array_equal(b, a * w)


# -- two pairs of warps, each with its own named barrier, reverse a row ------------------------------------------------

GROUPS = (
    CONSTANTS
    + FULL
    + """
    %pair = arith.divui %tid, %c64 : i32
    %t = arith.remui %tid, %c64 : i32
    %m0 = arith.subi %c64, %t : i32
    %m = arith.subi %m0, %c1 : i32
    %base = arith.muli %pair, %c64 : i32
    %other = arith.addi %base, %m : i32
    %s = llvm.getelementptr %d[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %u = llvm.getelementptr %d[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %first = arith.cmpi eq, %pair, %c0 : i32
    scf.for %i = %c0 to %c2 step %c1 : i32 {
      %v = arith.addi %tid, %i : i32
      llvm.store %v, %s : i32, !llvm.ptr<3>
      scf.if %first {
        nvvm.barrier id = %c1 number_of_threads = %c64 // one
      } else {
        nvvm.barrier id = %c2 number_of_threads = %c64 // two
      }
      %w = llvm.load %u : !llvm.ptr<3> -> i32
      %q = llvm.getelementptr %b[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %w, %q : i32, !llvm.ptr<1>
      scf.if %first {
        nvvm.barrier id = %c1 number_of_threads = %c64 // done one
      } else {
        nvvm.barrier id = %c2 number_of_threads = %c64 // done two
      }
    }
    llvm.return
    """
)


def _groups_args() -> tuple[list[Argument], Callable[[], bool]]:
    b = np.zeros(128, np.int32)
    want = np.arange(128).reshape(2, 64)[:, ::-1].reshape(-1) + 1
    return [Pointer(b)], lambda: np.array_equal(b, want)


# -- warps of a warpgroup change their register count twice ------------------------------------------------------------

REGISTERS = (
    CONSTANTS
    + """
    %wg = arith.divui %tid, %c128 : i32
    %warp = arith.divui %tid, %c32 : i32
    %gives = arith.cmpi eq, %wg, %c0 : i32
    %leads = arith.cmpi ne, %warp, %c1 : i32
    scf.if %gives {
      nvvm.setmaxregister decrease 80 // first
      nvvm.barrier id = %c1 number_of_threads = %c128 // between
      nvvm.setmaxregister decrease 40 // second
    }
    llvm.return
    """
)

# -- block 1 accesses the shared memory of block 0 by one of the operations in REMOTE ----------------------------------

REMOTE = {
    "load": "%v = llvm.load %far : !llvm.ptr<7> -> i32",
    "vector load": "%v = llvm.load %far {alignment = 16 : i64} : !llvm.ptr<7> -> vector<4xi32>",
    "store": "llvm.store %tid, %far : i32, !llvm.ptr<7>",
    "vector store": "llvm.store %four, %far {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<7>",
    "generic load": "%v = llvm.load %generic : !llvm.ptr -> i32",
    "generic store": "llvm.store %tid, %generic : i32, !llvm.ptr",
    "inline load": 'nvvm.inline_ptx "ld.shared::cluster.b32 $0, [$1];" ro(%far : !llvm.ptr<7>) -> i32',
    "inline store": 'nvvm.inline_ptx "st.shared::cluster.b32 [$0], $1;" ro(%far, %tid : !llvm.ptr<7>, i32)',
    "atomic": "%v = llvm.atomicrmw add %far, %c1 monotonic : !llvm.ptr<7>, i32",
    "exchange": "%v = llvm.cmpxchg %far, %c0, %c1 monotonic monotonic : !llvm.ptr<7>, i32",
    "reduction": 'nvvm.inline_ptx "red.shared::cluster.add.u32 [$0], $1;" ro(%far, %tid : !llvm.ptr<7>, i32)',
    "arrival": 'nvvm.inline_ptx "mbarrier.arrive.shared::cluster.b64 _, [$0];" ro(%farbar : !llvm.ptr<7>)',
    "expectation": "nvvm.mbarrier.arrive.expect_tx %farbar, %c16 : !llvm.ptr<7>, i32",
    "st.async": (
        'nvvm.inline_ptx "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [$0], $1, [$2];" '
        "ro(%far, %tid, %farbar : !llvm.ptr<7>, i32, !llvm.ptr<7>)"
    ),
    "red.async": (
        'nvvm.inline_ptx "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [$0], $1, '
        '[$2];" ro(%far, %tid, %farbar : !llvm.ptr<7>, i32, !llvm.ptr<7>)'
    ),
    "bulk copy": (
        'nvvm.inline_ptx "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];"'
        " ro(%far, %d, %c16, %farbar : !llvm.ptr<7>, !llvm.ptr<3>, i32, !llvm.ptr<7>)"
    ),
}
MEET = "nvvm.cluster.arrive {aligned} // end\n    nvvm.cluster.wait {aligned} // end"


def remote(access: str) -> Kernel:
    """Build a kernel in which block 1 accesses block 0 by one operation of `REMOTE`, followed by a cluster barrier."""
    body = (
        CONSTANTS
        + FULL
        + f"""
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %bar = llvm.getelementptr %d[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %away = llvm.getelementptr %d[512] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %lead = arith.cmpi eq, %tid, %c0 : i32
    %zero4 = arith.constant dense<0> : vector<4xi32>
    %four = arith.constant dense<4> : vector<4xi32>
    scf.if %lead {{
      nvvm.mbarrier.init %bar, %c64 : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
      llvm.store %zero4, %d {{alignment = 16 : i64}} : vector<4xi32>, !llvm.ptr<3>
      llvm.store %zero4, %away {{alignment = 16 : i64}} : vector<4xi32>, !llvm.ptr<3>
      nvvm.fence.proxy {{kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}}
    }}
    %far = nvvm.mapa %away, %c0 : !llvm.ptr<3> -> !llvm.ptr<7>
    %farbar = nvvm.mapa %bar, %c0 : !llvm.ptr<3> -> !llvm.ptr<7>
    %generic = llvm.addrspacecast %far : !llvm.ptr<7> to !llvm.ptr
    nvvm.cluster.arrive {{aligned}} // running
    nvvm.cluster.wait {{aligned}} // running
    %second = arith.cmpi eq, %rank, %c1 : i32
    %does = arith.andi %second, %lead : i1
    scf.if %does {{
      {REMOTE[access]}
    }}
    {MEET}
    llvm.return
    """
    )
    return Kernel(body, "", lambda: ([], lambda: True), 64, 1152, 2, 2)


MAPPED = f"%ta: {MAP}, %b: !llvm.ptr<1>"
ASYNC_KERNELS = {
    "load": Kernel(LOAD, MAPPED, _load_args, 64, 2056),
    "bulk": Kernel(BULK, PAIR, _bulk_args, 64, 2056),
    "told": Kernel(TOLD, PAIR, _told_args, 64, 264),
    "source": Kernel(SOURCE, PAIR, _source_args, 64, 256),
    "dependent": Kernel(
        DEPENDENT, "%a: !llvm.ptr<1>, %w: !llvm.ptr<1> {cute.independent}, %b: !llvm.ptr<1>", _dependent_args, 64
    ),
    "groups": Kernel(GROUPS, "%b: !llvm.ptr<1>", _groups_args, 128, 512),
    "registers": Kernel(REGISTERS, "", lambda: ([], lambda: True), 256),
    "exchange": Kernel(EXCHANGE, PAIR, _exchange_args, 64, 256, 2, 2),
    "multicast": Kernel(MULTICAST, MAPPED, _multicast_args, 64, 2056, 2, 2),
    "bulk multicast": Kernel(BULK_MULTICAST, PAIR, _bulk_multicast_args, 64, 2056, 2, 2),
}
