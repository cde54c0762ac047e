"""Synchronization on the interpreter: barriers, mbarriers, cp.async, clusters, limits and deadlocks."""

from __future__ import annotations

import numpy as np
import pytest
from interp_support import DSMEM, kernel, run_kernel

from cute_dialect.interp import InterpError, Pointer

STORE = """
    %p = llvm.getelementptr %a[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %r, %p : i32, !llvm.ptr<1>
    llvm.return
"""


def test_barrier_in_divergent_code_is_reported() -> None:
    module = kernel(
        """
        %c5 = arith.constant 5 : i32
        %c = arith.cmpi slt, %tid, %c5 : i32
        scf.if %c {
          "nvvm.barrier0"() : () -> ()
        }
        llvm.return
        """
    )
    with pytest.raises(InterpError, match=r"divergent code: 5 threads reached it, but thread \(5, 0, 0\)") as e:
        run_kernel(module, "k", [], block=(32,))
    assert e.value.kind == "divergence"


def test_deadlock_names_each_warp() -> None:
    module = kernel(
        """
        %c32 = arith.constant 32 : i32
        %c64 = arith.constant 64 : i32
        %c1 = arith.constant 1 : i32
        %c = arith.cmpi slt, %tid, %c32 : i32
        scf.if %c {
          "nvvm.barrier"(%c1, %c64) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (i32, i32) -> ()
        }
        "nvvm.barrier0"() : () -> ()
        llvm.return
        """
    )
    with pytest.raises(InterpError) as e:
        run_kernel(module, "k", [], block=(64,))
    assert e.value.kind == "deadlock"
    assert "block (0, 0, 0) warp 0 waits at barrier 1 for 64 threads (nvvm.barrier)" in e.value.notes
    assert "block (0, 0, 0) warp 1 waits at barrier 0 for all threads (nvvm.barrier0)" in e.value.notes


@pytest.mark.parametrize("schedule", ["round-robin", "reverse", "random"])
def test_warps_synchronize_at_different_barrier_ops(schedule: str) -> None:
    """Producer and consumer warps run different barrier ops: their own barrier 0, then arrive or sync on barrier 1."""
    module = kernel(
        """
        %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
        %c32 = arith.constant 32 : i32
        %c64 = arith.constant 64 : i32
        %c1 = arith.constant 1 : i32
        %c = arith.cmpi slt, %tid, %c32 : i32
        %r = scf.if %c -> (i32) {
          %s = llvm.getelementptr %d[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
          %v = arith.muli %tid, %tid : i32
          llvm.store %v, %s : i32, !llvm.ptr<3>
          "nvvm.barrier.arrive"(%c1, %c64) : (i32, i32) -> ()
          "nvvm.barrier0"() : () -> ()
          scf.yield %v : i32
        } else {
          "nvvm.barrier"(%c1, %c64) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (i32, i32) -> ()
          %l = arith.subi %tid, %c32 : i32
          %s = llvm.getelementptr %d[%l] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
          %v = llvm.load %s : !llvm.ptr<3> -> i32
          "nvvm.barrier0"() : () -> ()
          scf.yield %v : i32
        }
        """
        + STORE,
        "%a: !llvm.ptr<1>",
        DSMEM,
    )
    a = np.zeros(64, np.int32)
    report = run_kernel(module, "k", [Pointer(a)], block=(64,), dynamic_smem=128, schedule=schedule, seed=3)
    assert a.tolist() == [t * t for t in range(32)] * 2
    assert report.warnings == []


def test_barrier_reduction() -> None:
    body = (
        """
        %c3 = arith.constant 3 : i32
        %m = arith.remsi %tid, %c3 : i32
        %r = "nvvm.barrier"(%m) <{operandSegmentSizes = array<i32: 0, 0, 1>, reductionOp = #nvvm.reduction<KIND>}>
            : (i32) -> i32
    """
        + STORE
    )
    for kind, want in (("popc", sum(t % 3 != 0 for t in range(64))), ("and", 0), ("or", 1)):
        for width in ("auto", "warp"):
            a = np.zeros(64, np.int32)
            run_kernel(
                kernel(body.replace("KIND", kind), "%a: !llvm.ptr<1>"), "k", [Pointer(a)], block=(64,), width=width
            )
            assert a.tolist() == [want] * 64


def test_exited_warps_do_not_block_a_barrier() -> None:
    module = kernel(
        """
        %c40 = arith.constant 40 : i32
        %c32 = arith.constant 32 : i32
        %c7 = arith.constant 7 : i32
        %c = arith.cmpi sge, %tid, %c32 : i32
        cf.cond_br %c, ^out, ^in
      ^in:
        "nvvm.barrier0"() : () -> ()
        %p = llvm.getelementptr %a[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        llvm.store %c7, %p : i32, !llvm.ptr<1>
        llvm.return
      ^out:
        llvm.return
        """,
        "%a: !llvm.ptr<1>",
    )
    a = np.zeros(96, np.int32)
    run_kernel(module, "k", [Pointer(a)], block=(96,))
    assert a.tolist() == [7] * 32 + [0] * 64


PIPE = (
    """
    %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %c32 = arith.constant 32 : i32
    %tk = arith.constant 1000 : i32
    %full = llvm.getelementptr %d[0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i64
    %empty = llvm.getelementptr %d[1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i64
    %data = llvm.getelementptr %d[2] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i64
    %first = arith.cmpi eq, %tid, %c0 : i32
    scf.if %first {
      "nvvm.mbarrier.init"(%full, %c32) : (!llvm.ptr<3>, i32) -> ()
      "nvvm.mbarrier.init"(%empty, EMPTY) : (!llvm.ptr<3>, i32) -> ()
    }
    "nvvm.barrier0"() : () -> ()
    %c = arith.cmpi slt, %tid, %c32 : i32
    %l = arith.remsi %tid, %c32 : i32
    %slot = llvm.getelementptr %data[%l] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %r = scf.if %c -> (i32) {
      scf.for %i = %c0 to %c4 step %c1 : i32 {
        %par0 = arith.andi %i, %c1 : i32
        %par = arith.xori %par0, %c1 : i32
        "nvvm.mbarrier.try_wait.parity"(%empty, %par, %tk) : (!llvm.ptr<3>, i32, i32) -> ()
        %v = arith.addi %i, %tid : i32
        llvm.store %v, %slot : i32, !llvm.ptr<3>
        "nvvm.mbarrier.arrive"(%full) : (!llvm.ptr<3>) -> ()
      }
      scf.yield %c0 : i32
    } else {
      %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %c0) -> (i32) : i32 {
        %par = arith.andi %i, %c1 : i32
        scf.while () : () -> () {
          %ok = "nvvm.mbarrier.try_wait"(%full, %par) : (!llvm.ptr<3>, i32) -> i1
          %t = arith.constant true
          %again = arith.xori %ok, %t : i1
          scf.condition(%again)
        } do {
          scf.yield
        }
        %v = llvm.load %slot : !llvm.ptr<3> -> i32
        "nvvm.mbarrier.arrive"(%empty) : (!llvm.ptr<3>) -> ()
        %s1 = arith.addi %s, %v : i32
        scf.yield %s1 : i32
      }
      scf.yield %sum : i32
    }
"""
    + STORE
)


@pytest.mark.parametrize(("schedule", "seed"), [("round-robin", 0), ("reverse", 0), ("random", 1), ("random", 2)])
def test_mbarrier_pipeline(schedule: str, seed: int) -> None:
    """A producer and a consumer warp exchange data through a single-stage pipeline for four iterations."""
    a = np.zeros(64, np.int32)
    module = kernel(PIPE.replace("EMPTY", "%c32"), "%a: !llvm.ptr<1>", DSMEM)
    run_kernel(module, "k", [Pointer(a)], block=(64,), dynamic_smem=16 + 128, schedule=schedule, seed=seed)
    assert a.tolist() == [0] * 32 + [sum(i + t for i in range(4)) for t in range(32)]


def test_mbarrier_with_a_wrong_count_deadlocks() -> None:
    module = kernel(PIPE.replace("EMPTY", "%tk"), "%a: !llvm.ptr<1>", DSMEM)
    with pytest.raises(InterpError) as e:
        run_kernel(module, "k", [Pointer(np.zeros(64, np.int32))], block=(64,), dynamic_smem=16 + 128)
    assert e.value.kind == "deadlock"
    assert any("968 of 1000 arrivals" in n for n in e.value.notes)


def test_mbarrier_errors() -> None:
    head = """
        %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
        %c1 = arith.constant 1 : i32
    """
    arrive = '"nvvm.mbarrier.arrive"(%d) : (!llvm.ptr<3>) -> ()\n'
    init = '"nvvm.mbarrier.init"(%d, %c1) : (!llvm.ptr<3>, i32) -> ()\n'
    with pytest.raises(InterpError, match="no mbarrier is initialized at shared memory byte offset 0"):
        run_kernel(kernel(head + arrive + "llvm.return", "", DSMEM), "k", [], dynamic_smem=8)
    bad = "%q = llvm.getelementptr %d[4] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8\n" + init.replace("%d,", "%q,")
    with pytest.raises(InterpError, match="an mbarrier must be aligned to 8 bytes, got byte offset 4"):
        run_kernel(kernel(head + bad + "llvm.return", "", DSMEM), "k", [], dynamic_smem=16)


CP_ASYNC = """
    %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
    %c4 = arith.constant 4 : i32
    %e = arith.muli %tid, %c4 : i32
    %g = llvm.getelementptr %a[%e] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %s = llvm.getelementptr %d[%e] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    "nvvm.cp.async.shared.global"(%s, %g, %n) <{modifier = #nvvm<load_cache_modifier cg>, size = 16 : i32}>
        : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()
    "nvvm.cp.async.commit.group"() : () -> ()
    WAIT
    %v = llvm.load %s {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
    %q = llvm.getelementptr %o[%e] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %v, %q {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
    llvm.return
"""


def test_cp_async_with_zero_fill() -> None:
    module = kernel(
        CP_ASYNC.replace("WAIT", '"nvvm.cp.async.wait.group"() <{n = 0 : i32}> : () -> ()'),
        "%a: !llvm.ptr<1>, %o: !llvm.ptr<1>, %n: i32",
        DSMEM,
    )
    for n in (16, 8, 0):
        a, o = np.arange(1, 129, dtype=np.int32).reshape(32, 4), np.zeros((32, 4), np.int32)
        run_kernel(module, "k", [Pointer(a), Pointer(o), n], block=(32,), dynamic_smem=512)
        want = a.copy()
        want[:, n // 4 :] = 0
        assert np.array_equal(o, want)


def test_cp_async_is_not_seen_before_the_wait() -> None:
    wait = '"nvvm.cp.async.wait.group"() <{n = 1 : i32}> : () -> ()'  # n = 1 allows the only group to remain in flight.
    module = kernel(CP_ASYNC.replace("WAIT", wait), "%a: !llvm.ptr<1>, %o: !llvm.ptr<1>, %n: i32", DSMEM)
    a, o = np.arange(1, 129, dtype=np.int32), np.zeros(128, np.int32)
    report = run_kernel(module, "k", [Pointer(a), Pointer(o), 16], block=(32,), dynamic_smem=512)
    assert (o == -1).all()
    assert any("nothing has written" in w for w in report.warnings)
    assert any("never waited for" in w for w in report.warnings)


def test_cluster_of_two_blocks_exchanges_through_distributed_shared_memory() -> None:
    module = kernel(
        """
        %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
        %c1 = arith.constant 1 : i32
        %c100 = arith.constant 100 : i32
        %rank = "nvvm.read.ptx.sreg.cluster.ctarank"() : () -> i32
        %s = llvm.getelementptr %d[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
        %b = arith.muli %cta, %c100 : i32
        %v = arith.addi %b, %tid : i32
        llvm.store %v, %s : i32, !llvm.ptr<3>
        "nvvm.cluster.arrive"() <{aligned}> : () -> ()
        "nvvm.cluster.wait"() <{aligned}> : () -> ()
        %peer = arith.xori %rank, %c1 : i32
        %m = "nvvm.mapa"(%s, %peer) : (!llvm.ptr<3>, i32) -> !llvm.ptr<7>
        %w = llvm.load %m : !llvm.ptr<7> -> i32
        "nvvm.cluster.arrive"() <{aligned}> : () -> ()
        "nvvm.cluster.wait"() <{aligned}> : () -> ()
        %o = arith.muli %cta, %ntid : i32
        %i = arith.addi %o, %tid : i32
        %p = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        llvm.store %w, %p : i32, !llvm.ptr<1>
        llvm.return
        """,
        "%a: !llvm.ptr<1>",
        DSMEM,
        ", nvvm.cluster_dim = array<i32: 2, 1, 1>",
    )
    a = np.zeros((4, 64), np.int32)
    run_kernel(module, "k", [Pointer(a)], grid=(4,), block=(64,), dynamic_smem=256)
    assert np.array_equal(a, 100 * np.array([1, 0, 3, 2])[:, None] + np.arange(64))
    with pytest.raises(InterpError, match="is not a multiple of the cluster"):
        run_kernel(module, "k", [Pointer(a)], grid=(3,), block=(64,), dynamic_smem=256)


def test_blocks_that_wait_for_later_blocks_become_resident() -> None:
    """Block 0 polls a flag that block 1 sets, so both blocks must be resident."""
    module = kernel(
        """
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %first = arith.cmpi eq, %cta, %c0 : i32
        scf.if %first {
          scf.while () : () -> () {
            %f = "llvm.load"(%a) <{alignment = 4 : i64, ordering = 4 : i64}> : (!llvm.ptr<1>) -> i32
            %again = arith.cmpi eq, %f, %c0 : i32
            scf.condition(%again)
          } do {
            scf.yield
          }
          %q = llvm.getelementptr %a[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
          llvm.store %c1, %q : i32, !llvm.ptr<1>
        } else {
          "llvm.store"(%c1, %a) <{alignment = 4 : i64, ordering = 5 : i64}> : (i32, !llvm.ptr<1>) -> ()
        }
        llvm.return
        """,
        "%a: !llvm.ptr<1>",
    )
    a = np.zeros(2, np.int32)
    run_kernel(module, "k", [Pointer(a)], grid=(2,), block=(1,))
    assert a.tolist() == [1, 1]
    a[:] = 0
    with pytest.raises(InterpError, match="deadlock") as e:
        run_kernel(module, "k", [Pointer(a)], grid=(2,), block=(1,), blocks=[0])
    assert any("polls memory" in n for n in e.value.notes)


def test_the_number_of_resident_blocks_is_that_of_the_chip() -> None:
    """All other blocks poll a flag that the last block sets. The kernel ends only if all blocks are resident."""
    module = kernel(
        """
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %c69 = arith.constant 69 : i32
        %last = arith.cmpi eq, %cta, %c69 : i32
        scf.if %last {
          "llvm.store"(%c1, %a) <{alignment = 4 : i64, ordering = 5 : i64}> : (i32, !llvm.ptr<1>) -> ()
        } else {
          scf.while () : () -> () {
            %f = "llvm.load"(%a) <{alignment = 4 : i64, ordering = 4 : i64}> : (!llvm.ptr<1>) -> i32
            %again = arith.cmpi eq, %f, %c0 : i32
            scf.condition(%again)
          } do {
            scf.yield
          }
        }
        llvm.return
        """,
        "%a: !llvm.ptr<1>",
    )
    a = np.zeros(2, np.int32)
    run_kernel(module, "k", [Pointer(a)], grid=(70,), block=(1,), chip="sm_87")
    assert a.tolist() == [1, 0]
    a[:] = 0
    with pytest.raises(InterpError, match="deadlock") as e:
        run_kernel(module, "k", [Pointer(a)], grid=(70,), block=(1,), chip="sm_53")
    assert any("at most 64 blocks" in n and "(2 SMs of sm_53, 32 blocks an SM)" in n for n in e.value.notes)
    with pytest.raises(InterpError, match="unknown chip 'sm_5'; use one of sm_50, "):
        run_kernel(module, "k", [Pointer(a)], chip="sm_5")


@pytest.mark.parametrize("loop", ["scf", "cf"])
def test_step_limit(loop: str) -> None:
    bodies = {
        "scf": """
            scf.while () : () -> () {
              %t = arith.constant true
              scf.condition(%t)
            } do {
              scf.yield
            }
            llvm.return
        """,
        "cf": "llvm.br ^a\n^a:\nllvm.br ^a",
    }
    with pytest.raises(InterpError, match=r"step limit of 1000 ops of (a warp|threads in lockstep) reached") as e:
        run_kernel(kernel(bodies[loop]), "k", [], max_steps=1000)
    assert e.value.kind == "limit"


def test_step_limit_reports_the_position_of_each_warp() -> None:
    """Warp 1 waits at a barrier for warp 0, which loops forever. The step limit applies to each warp separately."""
    body = """
        %c32 = arith.constant 32 : i32
        %spins = arith.cmpi slt, %tid, %c32 : i32
        scf.if %spins {
          scf.while : () -> () {
            %t = arith.constant true
            scf.condition(%t)
          } do {
            scf.yield
          }
        }
        %c1 = arith.constant 1 : i32
        %n = arith.constant 64 : i32
        nvvm.barrier id = %c1 number_of_threads = %n
        llvm.return
    """
    with pytest.raises(InterpError) as e:
        run_kernel(kernel(body), "k", [], block=(64,), max_steps=1000, schedule="reverse")
    assert str(e.value) == (
        "error: step limit of 1000 ops of a warp reached: the loop may not terminate\n"
        "  op: scf.while\n"
        "  thread (0, 0, 0) of block (0, 0, 0)\n"
        "  note: the loop condition never changes\n"
        "  note: raise max_steps (cute-run --max-steps) if the loop does terminate\n"
        "  note: block (0, 0, 0) warp 1 waits at barrier 1 for 64 threads (nvvm.barrier)"
    )


@pytest.mark.parametrize("bound", ["%big", "%far"])
def test_empty_loops_end(bound: str) -> None:
    body = f"""
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %big = arith.constant 2000000000 : i32
        %far = arith.subi %big, %tid : i32
        scf.for %i = %c0 to {bound} step %c1 : i32 {{
        }}
        llvm.return
    """
    with pytest.raises(InterpError, match="step limit of 500000 ops of threads in lockstep reached"):
        run_kernel(kernel(body), "k", [], block=(32,), max_steps=500)


def test_wrong_max_steps() -> None:
    with pytest.raises(InterpError, match="max_steps is 0; it must be 1 or more"):
        run_kernel(kernel("llvm.return"), "k", [], max_steps=0)


def test_flag_that_is_never_set() -> None:
    body = """
        %c0 = arith.constant 0 : i32
        scf.while : () -> () {
          %f = llvm.load volatile %a : !llvm.ptr<1> -> i32
          %again = arith.cmpi eq, %f, %c0 : i32
          scf.condition(%again)
        } do {
          scf.yield
        }
        llvm.return
    """
    with pytest.raises(InterpError) as e:
        run_kernel(kernel(body, "%a: !llvm.ptr<1>"), "k", [Pointer(np.zeros(4, np.int32))], block=(32,))
    assert e.value.notes == (
        "block (0, 0, 0) warp 0 polls memory, argument 0 at byte offset 0, element (0), and reads 0 (llvm.load)",
        "the polled value never changes: no other warp can write it, and no copy is in flight",
    )


def test_memory_limit() -> None:
    module = kernel(
        "%n = arith.constant 1000000 : i32\n%f = llvm.alloca %n x f32 : (i32) -> !llvm.ptr\nllvm.return",
    )
    with pytest.raises(InterpError, match="memory limit"):
        run_kernel(module, "k", [], block=(256,), memory_limit=1 << 20)


def test_shared_memory_limit_and_launch_bounds() -> None:
    module = kernel("llvm.return", "", DSMEM, ", nvvm.reqntid = array<i32: 64, 1, 1>")
    with pytest.raises(InterpError, match=r"the kernel requires blocks of \[64, 1, 1\] threads, got \[32, 1, 1\]"):
        run_kernel(module, "k", [], block=(32,))
    used = kernel("%d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>\nllvm.return", "", DSMEM)
    with pytest.raises(InterpError, match="300000 bytes of shared memory exceed the limit of 232448 bytes"):
        run_kernel(used, "k", [], block=(32,), dynamic_smem=300000)


def test_unknown_op_and_wrong_arguments() -> None:
    with pytest.raises(InterpError, match=r"is not supported by the interpreter") as e:
        run_kernel(kernel('"cute.make_shape"() : () -> ()\nllvm.return'), "k", [])
    assert e.value.op == "cute.make_shape"
    module = kernel("llvm.return", "%a: !llvm.ptr<1>, %s: !llvm.struct<(i32, struct<()>)>")
    with pytest.raises(InterpError, match="takes 2 arguments, got 1"):
        run_kernel(module, "k", [1])
    with pytest.raises(InterpError, match="argument 0 is of type float; a pointer parameter needs a Pointer"):
        run_kernel(module, "k", [1.5, (1, ())])
    with pytest.raises(InterpError, match=r"argument 1\[0\] does not fit i32"):
        run_kernel(module, "k", [Pointer(np.zeros(1)), (1 << 40, ())])
    with pytest.raises(InterpError, match="there is no function @nope; functions: @k"):
        run_kernel(module, "nope", [])


@pytest.mark.parametrize("end", ["uniform", "by lane"])
def test_barriers_in_a_while_loop(end: str) -> None:
    """Each iteration reads the neighbour's value. Barriers are legal if all threads iterate equally often."""
    ends = {
        "uniform": "%stop = arith.addi %c3, %c0 : i32",
        "by lane": "%w = arith.remui %tid, %c2 : i32\n%stop = arith.addi %c3, %w : i32",
    }
    body = f"""
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %c2 = arith.constant 2 : i32
        %c3 = arith.constant 3 : i32
        {ends[end]}
        %base = "llvm.mlir.addressof"() <{{global_name = @dsmem}}> : () -> !llvm.ptr<3>
        %own = llvm.getelementptr %base[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
        %next = arith.addi %tid, %c1 : i32
        %right = arith.remui %next, %ntid : i32
        %other = llvm.getelementptr %base[%right] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
        %r:2 = scf.while (%i = %c0, %x = %tid) : (i32, i32) -> (i32, i32) {{
          %more = arith.cmpi slt, %i, %stop : i32
          scf.condition(%more) %i, %x : i32, i32
        }} do {{
        ^bb0(%i: i32, %x: i32):
          llvm.store %x, %own : i32, !llvm.ptr<3>
          nvvm.barrier
          %y = llvm.load %other : !llvm.ptr<3> -> i32
          nvvm.barrier
          %j = arith.addi %i, %c1 : i32
          scf.yield %j, %y : i32, i32
        }}
        %p = llvm.getelementptr %a[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        llvm.store %r#1, %p : i32, !llvm.ptr<1>
        llvm.return
    """
    out = np.zeros(64, np.int32)
    module = kernel(body, "%a: !llvm.ptr<1>", DSMEM)
    if end == "uniform":
        run_kernel(module, "k", [Pointer(out)], block=(64,), dynamic_smem=256, checks=("race", "sync", "uninit"))
        assert np.array_equal(out, (np.arange(64) + 3) % 64)
        return
    with pytest.raises(InterpError, match=r"nvvm\.barrier in divergent code: 16 threads reached it"):
        run_kernel(module, "k", [Pointer(out)], block=(64,), dynamic_smem=256)
