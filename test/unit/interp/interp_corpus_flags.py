"""Correct kernels whose blocks synchronize through global memory, mutated by `test_broken_flag_kernels`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from interp_corpus import CONSTANTS, FULL, Kernel

from cute_dialect.interp import Pointer
from cute_dialect.interp.memory.arguments import Argument

# -- message passing: block 0 writes 64 numbers and a flag; block 1 polls it and reverses them -------------------------

MESSAGE = (
    CONSTANTS
    + """
    %n63 = arith.constant 63 : i32
    %started = llvm.getelementptr %b[128] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %done = llvm.getelementptr %b[129] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %lead = arith.cmpi eq, %tid, %c0 : i32
    %produces = arith.cmpi eq, %cta, %c0 : i32
    scf.if %produces {
      scf.if %lead {
        llvm.store volatile %c1, %started : i32, !llvm.ptr<1>
      }
      %p = llvm.getelementptr %a[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %v = llvm.load %p : !llvm.ptr<1> -> i32
      %q = llvm.getelementptr %b[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %v, %q : i32, !llvm.ptr<1>
      nvvm.barrier0 // written
      scf.if %lead {
        llvm.fence syncscope("device") acq_rel // release
        llvm.store volatile %c1, %done : i32, !llvm.ptr<1>
      }
    } else {
      scf.if %lead {
        scf.while : () -> () {
          %f = llvm.load volatile %done : !llvm.ptr<1> -> i32
          %wait = arith.cmpi eq, %f, %c0 : i32
          scf.condition(%wait)
        } do {
          scf.yield
        }
        llvm.fence syncscope("device") acq_rel // acquire
      }
      nvvm.barrier0 // arrived
      %m = arith.subi %n63, %tid : i32
      %q = llvm.getelementptr %b[%m] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %v = llvm.load %q : !llvm.ptr<1> -> i32
      %o = arith.addi %tid, %c64 : i32
      %r = llvm.getelementptr %b[%o] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %v, %r : i32, !llvm.ptr<1>
    }
    llvm.return
    """
)


def _message_args() -> tuple[list[Argument], Callable[[], bool]]:
    a, b = np.arange(64, dtype=np.int32), np.zeros(130, np.int32)
    return [Pointer(a), Pointer(b)], lambda: np.array_equal(b[64:128], a[::-1])


# -- split-K with a counter: 4 blocks write partial sums; the last to arrive adds them ---------------------------------

COUNTER = (
    CONSTANTS
    + FULL
    + """
    %last = arith.constant 3 : i32
    %count = llvm.getelementptr %b[320] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %lead = arith.cmpi eq, %tid, %c0 : i32
    %row = arith.muli %cta, %c64 : i32
    %at = arith.addi %row, %tid : i32
    %p = llvm.getelementptr %a[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %v = llvm.load %p : !llvm.ptr<1> -> i32
    %q = llvm.getelementptr %b[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %v, %q : i32, !llvm.ptr<1>
    nvvm.barrier0 // written
    scf.if %lead {
      llvm.fence syncscope("device") acq_rel // release
      %old = llvm.atomicrmw add %count, %c1 syncscope("device") monotonic : !llvm.ptr<1>, i32
      llvm.fence syncscope("device") acq_rel // acquire
      llvm.store %old, %d : i32, !llvm.ptr<3>
    }
    nvvm.barrier0 // told
    %arrived = llvm.load %d : !llvm.ptr<3> -> i32
    %mine = arith.cmpi eq, %arrived, %last : i32
    scf.if %mine {
      %s = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %c0) -> (i32) : i32 {
        %r = arith.muli %i, %c64 : i32
        %k = arith.addi %r, %tid : i32
        %w = llvm.getelementptr %b[%k] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        %x = llvm.load %w : !llvm.ptr<1> -> i32
        %t = arith.addi %acc, %x : i32
        scf.yield %t : i32
      }
      %o = arith.addi %tid, %c256 : i32
      %out = llvm.getelementptr %b[%o] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %s, %out : i32, !llvm.ptr<1>
    }
    llvm.return
    """
)


def _counter_args() -> tuple[list[Argument], Callable[[], bool]]:
    a, b = np.arange(256, dtype=np.int32), np.zeros(321, np.int32)
    return [Pointer(a), Pointer(b)], lambda: np.array_equal(b[256:320], a.reshape(4, 64).sum(0))


# -- serial split-K: block i waits for semaphore value i, adds its part, sets it to i + 1 ------------------------------

TURNS = (
    CONSTANTS
    + """
    %sem = llvm.getelementptr %b[64] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %lead = arith.cmpi eq, %tid, %c0 : i32
    scf.if %lead {
      scf.while : () -> () {
        %f = nvvm.inline_ptx "ld.acquire.gpu.global.b32 $0, [$1];" ro(%sem : !llvm.ptr<1>) -> i32
        %wait = arith.cmpi ne, %f, %cta : i32
        scf.condition(%wait)
      } do {
        scf.yield
      }
    }
    nvvm.barrier0 // my turn
    %row = arith.muli %cta, %c64 : i32
    %at = arith.addi %row, %tid : i32
    %p = llvm.getelementptr %a[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %v = llvm.load %p : !llvm.ptr<1> -> i32
    %q = llvm.getelementptr %b[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %x = llvm.load %q : !llvm.ptr<1> -> i32
    %y = arith.addi %x, %v : i32
    llvm.store %y, %q : i32, !llvm.ptr<1>
    nvvm.barrier0 // added
    scf.if %lead {
      %next = arith.addi %cta, %c1 : i32
      nvvm.inline_ptx "st.release.gpu.global.b32 [$0], $1;" ro(%sem, %next : !llvm.ptr<1>, i32)
    }
    llvm.return
    """
)


def _turns_args() -> tuple[list[Argument], Callable[[], bool]]:
    a, b = np.arange(256, dtype=np.int32), np.zeros(65, np.int32)
    return [Pointer(a), Pointer(b)], lambda: np.array_equal(b[:64], a.reshape(4, 64).sum(0))


# -- an accumulation guarded by a lock --------------------------------------------------------------------------------

LOCK = (
    CONSTANTS
    + """
    %lock = llvm.getelementptr %b[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %lead = arith.cmpi eq, %tid, %c0 : i32
    scf.if %lead {
      scf.while : () -> () {
        %got = llvm.cmpxchg %lock, %c0, %c1 acquire monotonic : !llvm.ptr<1>, i32
        %held = llvm.extractvalue %got[0] : !llvm.struct<(i32, i1)>
        %wait = arith.cmpi ne, %held, %c0 : i32
        scf.condition(%wait)
      } do {
        scf.yield
      }
      %x = llvm.load %b : !llvm.ptr<1> -> i32
      %y = arith.addi %x, %c1 : i32
      llvm.store %y, %b : i32, !llvm.ptr<1>
      %z = llvm.atomicrmw xchg %lock, %c0 release : !llvm.ptr<1>, i32
    }
    llvm.return
    """
)


def _lock_args() -> tuple[list[Argument], Callable[[], bool]]:
    b = np.zeros(2, np.int32)
    return [Pointer(b)], lambda: b.tolist() == [5, 0]


# -- two warps of one block with a flag in shared memory ---------------------------------------------------------------

WARPS = (
    CONSTANTS
    + FULL
    + """
    %flag = llvm.getelementptr %d[32] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i32
    %lead = arith.cmpi eq, %tid, %c0 : i32
    scf.if %lead {
      llvm.store volatile %c0, %flag : i32, !llvm.ptr<3>
    }
    nvvm.barrier0 // cleared
    %lane = arith.remui %tid, %c32 : i32
    %warp = arith.divui %tid, %c32 : i32
    %p = llvm.getelementptr %d[%lane] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %first = arith.cmpi eq, %warp, %c0 : i32
    scf.if %first {
      llvm.store %tid, %p : i32, !llvm.ptr<3>
      nvvm.bar.warp.sync %full : i32
      scf.if %lead {
        llvm.fence syncscope("block") acq_rel // release
        llvm.store volatile %c1, %flag : i32, !llvm.ptr<3>
      }
    } else {
      scf.while : () -> () {
        %f = llvm.load volatile %flag : !llvm.ptr<3> -> i32
        %wait = arith.cmpi eq, %f, %c0 : i32
        scf.condition(%wait)
      } do {
        scf.yield
      }
      llvm.fence syncscope("block") acq_rel // acquire
      %v = llvm.load %p : !llvm.ptr<3> -> i32
      %q = llvm.getelementptr %b[%lane] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %v, %q : i32, !llvm.ptr<1>
    }
    llvm.return
    """
)


def _warps_args() -> tuple[list[Argument], Callable[[], bool]]:
    b = np.zeros(32, np.int32)
    return [Pointer(b)], lambda: np.array_equal(b, np.arange(32))


PAIR = "%a: !llvm.ptr<1>, %b: !llvm.ptr<1>"
FLAG_KERNELS = {
    "message": Kernel(MESSAGE, PAIR, _message_args, 64, 0, 2),
    "counter": Kernel(COUNTER, PAIR, _counter_args, 64, 16, 4),
    "turns": Kernel(TURNS, PAIR, _turns_args, 64, 0, 4),
    "lock": Kernel(LOCK, "%b: !llvm.ptr<1>", _lock_args, 32, 0, 5),
    "warps": Kernel(WARPS, "%b: !llvm.ptr<1>", _warps_args, 64, 256),
}
