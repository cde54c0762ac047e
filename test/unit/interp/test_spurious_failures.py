"""Instructions with unspecified outcomes: try_wait, weak compare-and-swap and elect.sync."""

from __future__ import annotations

import numpy as np
import pytest
from interp_support import parse, run_kernel

import cute_dialect.lang as cute
from cute_dialect.interp import InterpError, Pointer
from cute_dialect.interp.machine.group import MAX_FAILURES
from cute_dialect.runtime.call_options import SCHEDULES

CHECKS = ("race", "uninit", "oob", "sync")


@cute.kernel
def exchange(a: cute.Tensor, b: cute.Tensor, how: cute.Constexpr):
    t = cute.arch.thread_idx().x
    bar = cute.arch.alloc_smem(cute.Int64, 1, alignment=8)
    s = cute.smem_tensor(cute.Float32, cute.make_layout(64))
    if t == 0:
        cute.arch.mbarrier_init(bar, 64)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    s[t] = a[t]
    cute.arch.mbarrier_arrive(bar)
    if how == "ignored":
        cute.arch.mbarrier_try_wait(bar, 0)
    elif how == "ignored often":
        for _ in range(20):
            cute.arch.mbarrier_try_wait(bar, 0)
    elif how == "once more":
        if not cute.arch.mbarrier_try_wait(bar, 0):
            cute.arch.mbarrier_try_wait(bar, 0)
    elif how == "counted":
        asked = cute.Int32(0)
        while asked < 2 and not cute.arch.mbarrier_try_wait(bar, 0):
            asked += 1
    elif how == "loop":
        while not cute.arch.mbarrier_try_wait(bar, 0):
            pass
    elif how == "token":
        if not cute.arch.mbarrier_try_wait(bar, 0):
            cute.arch.mbarrier_wait(bar, 0)
    elif how == "guarded":  # noqa: SIM102
        if not cute.arch.mbarrier_try_wait(bar, 0):
            cute.arch.sync_warp()
            while not cute.arch.mbarrier_try_wait(bar, 0):
                pass
    b[t] = s[63 - t]


@cute.jit
def run_exchange(a: cute.Tensor, b: cute.Tensor, how: cute.Constexpr):
    exchange(a, b, how).launch(grid=1, block=64)


def launch_exchange(how: str, schedule: str, checks: tuple[str, ...] = CHECKS) -> np.ndarray:
    a, b = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    run_exchange(a, b, how, device="cpu", checks=checks, schedule=schedule)
    return b


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("how", ["ignored", "ignored often", "once more"])
def test_ignored_try_wait_results_are_found(how: str, schedule: str) -> None:
    if how == "once more" and schedule in ("round-robin", "reverse"):
        assert (launch_exchange(how, schedule) == np.arange(63, -1, -1)).all()  # The first wait suffices.
        return
    with pytest.raises(InterpError) as caught:
        for _ in range(1 if schedule != "random" else 8):
            launch_exchange(how, schedule)
    assert caught.value.kind in ("race", "uninit")


def test_bounded_tries_fail_under_the_adversarial_schedule() -> None:
    assert MAX_FAILURES > 2
    with pytest.raises(InterpError):
        launch_exchange("counted", "adversarial")


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("how", ["loop", "token", "guarded"])
def test_try_wait_loops_pass_under_every_schedule(how: str, schedule: str) -> None:
    assert (launch_exchange(how, schedule) == np.arange(63, -1, -1)).all()


KERNEL = """
gpu.module @m {{
  llvm.mlir.global internal @bar() {{addr_space = 3 : i32, alignment = 8 : i64}} : i64
  llvm.mlir.global internal @s() {{addr_space = 3 : i32, alignment = 16 : i64}} : !llvm.array<64 x i32>
  llvm.func @k(%out: !llvm.ptr<1>) attributes {{gpu.kernel, nvvm.kernel}} {{
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c63 = llvm.mlir.constant(63 : i32) : i32
    %c64 = llvm.mlir.constant(64 : i32) : i32
    %bar = llvm.mlir.addressof @bar : !llvm.ptr<3>
    %s = llvm.mlir.addressof @s : !llvm.ptr<3>
    %first = llvm.icmp "eq" %t, %c0 : i32
    scf.if %first {{
      nvvm.mbarrier.init %bar, %c64 : !llvm.ptr<3>, i32
    }}
    nvvm.barrier0
    %p = llvm.getelementptr %s[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %t, %p : i32, !llvm.ptr<3>
    nvvm.mbarrier.arrive %bar : !llvm.ptr<3>
    {wait}
    %o = llvm.sub %c63, %t : i32
    %q = llvm.getelementptr %s[%o] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %x = llvm.load %q : !llvm.ptr<3> -> i32
    %d = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %x, %d : i32, !llvm.ptr<1>
    llvm.return
  }}
}}
"""
TRY = "mbarrier.try_wait.parity.shared::cta.b64"


def _ptx(text: str) -> str:
    return f'nvvm.inline_ptx "{text}" ro(%bar, %c0 : !llvm.ptr<3>, i32)'


def run_text(wait: str, schedule: str, threads: int = 64) -> np.ndarray:
    out = np.zeros(threads, np.int32)
    module = parse(KERNEL.format(wait=wait))
    run_kernel(module, "k", [Pointer(out)], block=threads, schedule=schedule, checks=("race", "uninit"))
    return out


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    "wait",
    [
        _ptx("{ .reg .pred P; AGAIN: " + TRY + " P, [$0], $1; @P bra DONE; bra AGAIN; DONE: }"),
        _ptx("{ .reg .pred P; AGAIN: " + TRY + " P, [$0], $1; @!P bra AGAIN; }"),
        "nvvm.mbarrier.try_wait.parity %bar, %c0, %c64 : !llvm.ptr<3>, i32, i32",
    ],
)
def test_repeated_tries_are_waits(wait: str, schedule: str) -> None:
    assert (run_text(wait, schedule) == np.arange(63, -1, -1)).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    "wait",
    [
        _ptx("{ .reg .pred P; " + TRY + " P, [$0], $1; }"),
        _ptx("{ .reg .pred P; " + TRY + " P, [$0], $1; @P bra DONE; bra DONE; DONE: }"),
        _ptx("{ .reg .pred P; AGAIN: " + TRY + " P, [$0], $1; @P bra AGAIN; }"),
        "%done = nvvm.mbarrier.try_wait %bar, %c0 : !llvm.ptr<3>, i32 -> i1",
        '%done = nvvm.inline_ptx "{ .reg .pred P; ' + TRY + ' P, [$1], $2; selp.b32 $0, 1, 0, P; }" '
        "ro(%bar, %c0 : !llvm.ptr<3>, i32) -> i32",
    ],
)
def test_single_tries_are_not_waits(wait: str, schedule: str) -> None:
    with pytest.raises(InterpError) as caught:
        run_text(wait, schedule)
    assert caught.value.kind in ("race", "uninit")


CAS = """
gpu.module @m {{
  llvm.func @k(%out: !llvm.ptr<1>) attributes {{gpu.kernel, nvvm.kernel}} {{
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %r = llvm.cmpxchg {weak}%out, %c0, %c1 monotonic monotonic : !llvm.ptr<1>, i32
    llvm.return
  }}
}}
"""


@pytest.mark.parametrize(("weak", "expected"), [("weak ", 0), ("", 1)])
def test_a_weak_compare_and_swap_may_fail(weak: str, expected: int) -> None:
    out = np.zeros(1, np.int32)
    run_kernel(parse(CAS.format(weak=weak)), "k", [Pointer(out)], schedule="adversarial")
    assert out[0] == expected


@cute.kernel
def elects(out: cute.Tensor):
    t = cute.arch.thread_idx().x
    for i in range(2):
        if cute.arch.elect_one():
            out[i] = t


@cute.jit
def run_elects(out: cute.Tensor):
    elects(out).launch(grid=1, block=32)


@pytest.mark.parametrize(
    ("schedule", "seed", "lane"), [("round-robin", 0, 0), ("adversarial", 0, 31), ("random", 5, 5)]
)
def test_any_lane_may_be_elected_and_the_same_one_each_time(schedule: str, seed: int, lane: int) -> None:
    out = np.full(2, -1, np.int32)
    run_elects(out, device="cpu", schedule=schedule, seed=seed)
    assert out.tolist() == [lane, lane]


REGISTERS = """
gpu.module @m {{
  llvm.func @k() attributes {{gpu.kernel, nvvm.kernel}} {{
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c128 = llvm.mlir.constant(128 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %w = llvm.icmp "slt" %t, %c128 : i32
    scf.if %w {{
      nvvm.setmaxregister increase {first}
      nvvm.barrier id = %c1 number_of_threads = %c128
      nvvm.setmaxregister increase {second}
    }} else {{
      nvvm.setmaxregister decrease 24
    }}
    llvm.return
  }}
}}
"""


@pytest.mark.parametrize(("first", "second", "right"), [(240, 200, False), (200, 240, True), (240, 240, True)])
def test_setmaxnreg_cannot_increase_to_fewer_registers(first: int, second: int, right: bool) -> None:
    module = parse(REGISTERS.format(first=first, second=second))
    if right:
        run_kernel(module, "k", [], block=256)
        return
    with pytest.raises(InterpError, match=f"the warp has 240 registers, .*, got {second}"):
        run_kernel(module, "k", [], block=256)
