"""red.async: reductions in distributed shared memory that signal an mbarrier."""

from __future__ import annotations

import numpy as np
import pytest
from interp_corpus import CONSTANTS, FULL
from interp_support import DSMEM, kernel, run_kernel
from xdsl.dialects.builtin import ModuleOp

from cute_dialect.interp import InterpError, Pointer

SCHEDULES = ("round-robin", "reverse", "random", "adversarial")
RED = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes."
REDUCE = """
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %bar = llvm.getelementptr %d[64] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %bytes = arith.constant BYTES : i32
    %was = arith.constant WAS : i32
    %lead = arith.cmpi eq, %tid, %c0 : i32
    %base = arith.cmpi eq, %rank, %c0 : i32
    %wide = arith.extsi %tid : i32 to i64
    %before = arith.extsi %was : i32 to i64
    scf.if %lead {
      llvm.store %VALUE, %d : TYPE, !llvm.ptr<3>
      nvvm.mbarrier.init %bar, %c1 : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
      nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
      nvvm.mbarrier.arrive.expect_tx %bar, %bytes : !llvm.ptr<3>, i32
    }
    %far = nvvm.mapa %d, %c0 : !llvm.ptr<3> -> !llvm.ptr<7>
    %farbar = nvvm.mapa %bar, %c0 : !llvm.ptr<3> -> !llvm.ptr<7>
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    nvvm.inline_ptx "INSTRUCTION [$0], $1, [$2];" ro(%far, %OPERAND, %farbar : !llvm.ptr<7>, TYPE, !llvm.ptr<7>)
    scf.if %base {
      nvvm.mbarrier.try_wait.parity %bar, %c0, %tk : !llvm.ptr<3>, i32, i32 // told
      scf.if %lead {
        %v = llvm.load %d : !llvm.ptr<3> -> TYPE
        llvm.store %v, %b : TYPE, !llvm.ptr<1>
      }
    }
    llvm.return
"""
THREADS = [t for t in range(64) for _ in range(2)]
REDUCED = {
    "add.u32": (7, 7 + sum(THREADS)),
    "add.s32": (-9, sum(THREADS) - 9),
    "add.u64": (-1, sum(THREADS) - 1),
    "min.s32": (-5, -5),
    "min.u32": (-5, 0),
    "max.s32": (-5, 63),
    "max.u32": (-5, -5),
    "and.b32": (-1, 0),
    "or.b32": (64, 127),
    "xor.b32": (5, 5),
}


def reduction(operation: str, was: int, left_out: str = "") -> tuple[ModuleOp, np.ndarray]:
    wide = operation.endswith("64")
    body = REDUCE.replace(f"{left_out} // told", "") if left_out else REDUCE
    for name, text in {
        "BYTES": str(128 * (8 if wide else 4)),
        "WAS": str(was),
        "VALUE": "before" if wide else "was",
        "TYPE": "i64" if wide else "i32",
        "OPERAND": "wide" if wide else "tid",
        "INSTRUCTION": RED + operation,
    }.items():
        body = body.replace(name, text)
    return kernel(CONSTANTS + FULL + body, "%b: !llvm.ptr<1>", DSMEM), np.zeros(1, np.int64 if wide else np.int32)


@pytest.mark.sample(every=6)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("operation", REDUCED)
def test_red_async(operation: str, schedule: str) -> None:
    """All threads of two blocks reduce into one location in an unspecified order."""
    was, want = REDUCED[operation]
    module, out = reduction(operation, was)
    run_kernel(
        module, "k", [Pointer(out)], 2, 64, cluster=2, dynamic_smem=1024, checks=["race", "uninit"], schedule=schedule
    )
    assert out[0] == want


def test_red_async_counts() -> None:
    """inc and dec wrap at their operand, here the thread index, so the result depends on the order."""
    for operation in ("inc.u32", "dec.u32"):
        module, out = reduction(operation, 3)
        run_kernel(module, "k", [Pointer(out)], 2, 64, cluster=2, dynamic_smem=1024, checks=["race"])
        assert 0 <= out[0] <= 64


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_red_async_broken(schedule: str) -> None:
    def run(module: ModuleOp) -> InterpError:
        with pytest.raises(InterpError) as e:
            run_kernel(
                module, "k", [Pointer(np.zeros(1, np.int32))], 2, 64, cluster=2, dynamic_smem=1024, checks=["race"],
                schedule=schedule,
            )  # fmt: skip
        return e.value

    wait = "nvvm.mbarrier.try_wait.parity %bar, %c0, %tk : !llvm.ptr<3>, i32, i32"
    assert run(reduction("add.u32", 0, wait)[0]).kind in ("race", "sync")
    error = run(reduction("add.f32", 0)[0])
    assert error.kind == "unsupported", error
    assert error.message.startswith(f"{RED}add.f32 is not supported; use red.async"), error
