"""Machine-level ops on the CPU interpreter."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from sync_kernels import BAR, CASES, HANDSHAKES, OUT, Case, blank, kernel, produce_and_consume, store, unary
from sync_support import run

from cute_dialect.interp import InterpError


@pytest.mark.sample(every=13)
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_op(case: Case) -> None:
    case.check(run)


def test_shuffle_of_bf16_moves_bits() -> None:
    x = np.arange(32).astype(ml_dtypes.bfloat16)
    o = np.zeros(32, ml_dtypes.bfloat16)
    op = "%i = arith.constant 1 : i32\n%r = cute_nvgpu.arch.shfl_sync(%v, %i) : (bf16, i32) -> bf16"
    run(unary(op, "bf16"), x, o)
    assert o.tolist() == (np.arange(32) ^ 1).tolist()


def test_atomics_return_the_old_value() -> None:
    """``atomic_add``, ``atomic_cas`` and ``atomic_exch`` on one counter each return the value before the update."""
    body = (
        '%p = cute.get_iter(%n) : !cute.memref<i32, gmem, "4:1">\n%one = arith.constant 1 : i32\n'
        '%r = cute_nvgpu.arch.atomic_add(%p, %one) {order = "acq_rel"} : (!cute.ptr<i32, gmem>, i32) -> i32'
    )
    counter, o = np.zeros(4, np.int32), blank(64)
    parameters = '%n: !cute.memref<i32, gmem, "4:1">, ' + OUT
    run(kernel(body + store("i32"), parameters, 64), counter, o, threads=64)
    assert sorted(o.tolist()) == list(range(64)) and counter.tolist() == [64, 0, 0, 0]
    cas = (
        '%p = cute.get_iter(%n) : !cute.memref<i32, gmem, "4:1">\n%k = arith.constant 64 : i32\n'
        "%t = arith.addi %tid, %k : i32\n"
        "%r = cute_nvgpu.arch.atomic_cas(%p, %t, %k) : (!cute.ptr<i32, gmem>, i32, i32) -> i32"
    )
    run(kernel(cas + store("i32"), parameters, 64), counter, o, threads=64)
    assert o.tolist().count(64) >= 1 and 64 <= counter[0] < 128
    swap = body.replace("atomic_add", "atomic_exch").replace("%p, %one", "%p, %tid")
    before = int(counter[0])
    run(kernel(swap + store("i32"), parameters, 64), counter, o, threads=64)
    assert sorted([*o.tolist(), int(counter[0])]) == sorted([before, *range(64)])


def test_a_wait_for_arrivals_that_never_come_is_a_deadlock() -> None:
    body = produce_and_consume(HANDSHAKES["mbarrier"][0], "cute_nvgpu.arch.syncwarp() : () -> ()")
    with pytest.raises(InterpError, match="deadlock") as e:
        run(kernel(body, OUT, 64), blank(32), threads=64)
    assert any("for phase parity 0" in n and "32 of 32 arrivals missing" in n for n in e.value.notes)


def test_phase_waits_for_expected_bytes() -> None:
    """``try_wait`` succeeds on a complete phase; a wait for bytes that never arrive is a deadlock."""
    body = (
        f"%bars = cute.memref.alloc_smem() : {BAR}\n%b = cute.get_iter(%bars) : {BAR}\n"
        "%one = arith.constant 1 : i32\n%zero = arith.constant 0 : i32\n%n = arith.constant 64 : i32\n"
        "%e = cute_nvgpu.arch.elect_one() : () -> i1\nscf.if %e {\n"
        "  cute_nvgpu.arch.mbarrier_init(%b, %one) : (!cute.ptr<i64, smem>, i32) -> ()\n"
        "  cute_nvgpu.arch.mbarrier_arrive(%b) : (!cute.ptr<i64, smem>) -> ()\n}\n"
        "cute_nvgpu.arch.syncwarp() : () -> ()\n"
        "%f = cute_nvgpu.arch.mbarrier_try_wait(%b, %zero) : (!cute.ptr<i64, smem>, i32) -> i1\n"
        "%r = arith.extui %f : i1 to i32"
    )
    o = blank(32)
    run(kernel(body + store("i32"), OUT), o)
    assert (o == 1).all()
    stuck = body.replace("mbarrier_arrive(%b) : (!cute.ptr<i64, smem>)",
                         "mbarrier_arrive_expect_tx(%b, %n) : (!cute.ptr<i64, smem>, i32)")  # fmt: skip
    with pytest.raises(InterpError) as e:
        run(kernel(stuck + store("i32"), OUT), o)
    assert any("64 bytes missing" in n for n in e.value.notes)


def test_flags_and_fences_of_one_thread() -> None:
    body = (
        '%p = cute.get_iter(%o) : !cute.memref<i32, gmem, "?:1">\n%k = arith.constant 5 : i32\n'
        "cute_nvgpu.arch.store_release(%p, %k) : (!cute.ptr<i32, gmem>, i32) -> ()\n"
        'cute_nvgpu.arch.fence_acq_rel() {scope = "sys"} : () -> ()\n'
        'cute_nvgpu.arch.fence_proxy_async() {space = "all"} : () -> ()\n'
        "cute_nvgpu.arch.griddepcontrol_wait() : () -> ()\n"
        "cute_nvgpu.arch.griddepcontrol_launch_dependents() : () -> ()\n"
        "cute_nvgpu.arch.cp_async_commit_group() : () -> ()\n"
        "cute_nvgpu.arch.cp_async_wait_group() {n = 0 : i32} : () -> ()\n"
        "cute_nvgpu.arch.bulk_commit_group() : () -> ()\n"
        "cute_nvgpu.arch.bulk_wait_group() {n = 0 : i32} : () -> ()\n"
        "%v = cute_nvgpu.arch.load_acquire(%p) : (!cute.ptr<i32, gmem>) -> i32\n"
        "%w = arith.addi %v, %v : i32\n"
        "cute_nvgpu.arch.store_release(%p, %w) : (!cute.ptr<i32, gmem>, i32) -> ()"
    )
    o = blank(32)
    run(kernel(body, OUT), o)
    assert o.tolist() == [10] + [77] * 31
