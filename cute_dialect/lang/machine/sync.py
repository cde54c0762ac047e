"""Synchronization: barriers, mbarriers, fences, groups of asynchronous copies, clusters, registers of warpgroups."""

from __future__ import annotations

from enum import StrEnum
from math import prod
from typing import TYPE_CHECKING, Any

from cute_dialect.arch.targets import BLACKWELL
from cute_dialect.lang.machine.atomics import element
from cute_dialect.lang.machine.instructions import emit_machine, in_kernel, instruction, operand, pointer
from cute_dialect.lang.machine.warps import whole_warp
from cute_dialect.lang.tracing.errors import KernelTypeError, StaticError
from cute_dialect.lang.tracing.tracer import require_chip
from cute_dialect.lang.values.dtypes import Boolean, Int32
from cute_dialect.lang.values.dynamic import is_dynamic
from cute_dialect.lang.values.numeric import as_number
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from cute_dialect.lang.values.pointers import Pointer
    from cute_dialect.lang.values.signature_types import Condition, Int, Number

__all__ = [
    "ProxyKind", "SharedSpace", "barrier", "barrier_arrive", "clc_query", "clc_try_cancel", "cluster_arrive",
    "cluster_arrive_relaxed", "cluster_wait", "cp_async_bulk_commit_group", "cp_async_bulk_wait_group",
    "cp_async_commit_group",
    "cp_async_mbarrier_arrive", "cp_async_mbarrier_arrive_noinc", "cp_async_wait_group", "fence_acq_rel_cluster",
    "fence_acq_rel_cta", "fence_acq_rel_gpu", "fence_acq_rel_sys", "fence_proxy", "fence_view_async_shared",
    "griddepcontrol_launch_dependents", "griddepcontrol_wait", "map_dsmem_ptr", "mbarrier_arrive",
    "mbarrier_arrive_and_expect_tx", "mbarrier_conditional_try_wait", "mbarrier_expect_tx", "mbarrier_init",
    "mbarrier_init_fence", "mbarrier_inval", "mbarrier_try_wait", "mbarrier_wait", "setmaxregister_decrease",
    "setmaxregister_increase", "store_async", "sync_threads", "sync_warp", "warpgroup_reg_alloc",
    "warpgroup_reg_dealloc",
]  # fmt: skip
"""The names of ``cute.arch``."""


# ------------------------------------------------------------------------------------------------------- barriers

sync_threads = instruction(
    "sync_threads", "", "Wait for all threads of the block, and order their memory accesses.", op="barrier"
)


def sync_warp(mask: int = 0xFFFFFFFF) -> None:
    """Wait for all threads of the warp, and order their memory accesses."""
    whole_warp(mask, "cute.arch.sync_warp")
    emit_machine("syncwarp", what="cute.arch.sync_warp")


def _named(name: str, op: str, barrier_id: Any, threads: Any) -> None:
    what = f"cute.arch.{name}"
    if threads is None:
        sizes = in_kernel(what).launch.block
        if None in sizes:
            raise KernelTypeError(
                "F251", f"{what}: number_of_threads is required, because the block size is not a constant of the launch"
            )
        threads = prod(n for n in sizes if n is not None)
    if isinstance(barrier_id, int) and not 0 <= barrier_id < 16:
        raise KernelTypeError("F251", f"{what}: barrier_id must be 0 to 15, got {barrier_id}")
    if isinstance(threads, int) and (threads <= 0 or threads % 32):
        raise KernelTypeError("F251", f"{what}: number_of_threads must be a positive multiple of 32, got {threads}")
    emit_machine(op, [operand("i32", barrier_id, what), operand("i32", threads, what)], what=what)


def barrier(barrier_id: Int | None = None, number_of_threads: Int | None = None) -> None:
    """Wait at a named barrier.

    Args:
        barrier_id: the barrier, 0 to 15.
        number_of_threads: the number of threads that must arrive, a multiple of 32; by default the block's threads.

    Without arguments this is :func:`sync_threads`.
    """
    if barrier_id is None and number_of_threads is None:
        sync_threads()
    else:
        _named("barrier", "named_barrier", 0 if barrier_id is None else barrier_id, number_of_threads)


def barrier_arrive(barrier_id: Int = 0, number_of_threads: Int | None = None) -> None:
    """Arrive at barrier ``barrier_id`` without waiting; see :func:`barrier`."""
    _named("barrier_arrive", "named_barrier_arrive", barrier_id, number_of_threads)


def cluster_arrive(aligned: bool = True, relaxed: bool = False) -> None:
    """Arrive at the cluster's barrier. Earlier accesses are released unless ``relaxed``."""
    if not aligned:
        raise KernelTypeError(
            "F253", "cute.arch.cluster_arrive: aligned=False is not supported; all threads of the warp must arrive"
        )
    emit_machine("cluster_arrive", relaxed=relaxed)


def cluster_arrive_relaxed(aligned: bool = True) -> None:
    """Arrive at the cluster's barrier without releasing earlier accesses."""
    cluster_arrive(aligned, relaxed=True)


def cluster_wait(aligned: bool = True) -> None:
    """Wait until all threads of the cluster have arrived."""
    if not aligned:
        raise KernelTypeError(
            "F253", "cute.arch.cluster_wait: aligned=False is not supported; all threads of the warp must wait"
        )
    emit_machine("cluster_wait")


# ------------------------------------------------------------------------------------------- cluster launch control


def clc_try_cancel(response: Pointer, ptr: Pointer, multicast: bool = False) -> None:
    """Request the work of a cluster that has not started (sm_100). One thread calls it.

    The response arrives asynchronously; read it with :func:`clc_query` after a wait on the mbarrier, which must expect
    16 bytes. Before the next request into the same memory, all readers execute ``fence_proxy("async.shared",
    space="cta")`` and arrive at a barrier. After an unsuccessful response no other request is allowed.

    Args:
        response: 16 bytes of shared memory, aligned to 16 bytes.
        ptr: the mbarrier.
        multicast: True to write the response and complete the bytes in each block of the cluster, at the same offsets.
    """
    what = "cute.arch.clc_try_cancel"
    operands = [operand("smem", response, f"'response' of {what}"), operand("bar", ptr, f"'ptr' of {what}")]
    if multicast:
        require_chip(f"{what} with multicast", BLACKWELL)
    emit_machine("clc_try_cancel", operands, what=what, multicast=multicast)


def clc_query(response: Pointer) -> tuple[Boolean, Int32, Int32, Int32]:
    """Return a Boolean for success, and the coordinates of the first block of the canceled cluster.

    The coordinates of an unsuccessful request are 0.
    """
    what = "cute.arch.clc_query"
    made = emit_machine("clc_query", [operand("smem", response, f"'response' of {what}")], what=what).results
    return Boolean.of(made[0]), Int32.of(made[1]), Int32.of(made[2]), Int32.of(made[3])


# ------------------------------------------------------------------------------------------------------ mbarriers

mbarrier_init = instruction(
    "mbarrier_init",
    "ptr:bar, cnt:i32",
    "Initialize an mbarrier that expects ``cnt`` arrivals. Call it from one thread.",
)
mbarrier_init_fence = instruction(
    "mbarrier_init_fence", "", "Make initialized mbarriers visible to the cluster and to asynchronous copies.",
    op="fence_mbarrier_init",
)  # fmt: skip
mbarrier_inval = instruction("mbarrier_inval", "ptr:bar", "Invalidate an mbarrier.")
mbarrier_wait = instruction(
    "mbarrier_wait", "ptr:bar, phase:i32", "Wait until the phase with this parity (0 for the first) has completed."
)
mbarrier_try_wait = instruction(
    "mbarrier_try_wait", "ptr:bar, phase:i32",
    "Return True if the phase with this parity has completed. The call may suspend for a limited time.", result=Boolean,
)  # fmt: skip


def mbarrier_arrive(
    ptr: Pointer, peer_cta_rank_in_cluster: Int | None = None, *, pred: Condition | None = None
) -> None:
    """Arrive once at an mbarrier.

    Args:
        ptr: the mbarrier in this block's shared memory.
        peer_cta_rank_in_cluster: arrive at the same address in this block of the cluster instead.
        pred: arrive only if true, without a branch; only with ``peer_cta_rank_in_cluster``.
    """
    bar = operand("bar", ptr, "'ptr' of cute.arch.mbarrier_arrive")
    if peer_cta_rank_in_cluster is None:
        if pred is not None:
            raise TypeError("cute.arch.mbarrier_arrive: 'pred' needs 'peer_cta_rank_in_cluster'; use an if statement")
        emit_machine("mbarrier_arrive", [bar])
    else:
        rank = operand("i32", peer_cta_rank_in_cluster, "'peer_cta_rank_in_cluster' of cute.arch.mbarrier_arrive")
        more = [] if pred is None else [operand("i1", pred, "'pred' of cute.arch.mbarrier_arrive")]
        emit_machine("mbarrier_arrive_cluster", [bar, rank, *more], what="cute.arch.mbarrier_arrive of a peer")


def mbarrier_arrive_and_expect_tx(ptr: Pointer, bytes: Int, peer_cta_rank_in_cluster: Int | None = None) -> None:
    """Increase the phase's expected transaction bytes, and arrive once.

    Args:
        ptr: the mbarrier in this block's shared memory.
        bytes: the number of bytes.
        peer_cta_rank_in_cluster: arrive at the same address in this block of the cluster instead.
    """
    what = "cute.arch.mbarrier_arrive_and_expect_tx"
    operands = [operand("bar", ptr, f"'ptr' of {what}"), operand("i32", bytes, f"'bytes' of {what}")]
    if peer_cta_rank_in_cluster is not None:
        operands.append(operand("i32", peer_cta_rank_in_cluster, f"'peer_cta_rank_in_cluster' of {what}"))
    emit_machine("mbarrier_arrive_expect_tx", operands, what=what)


mbarrier_expect_tx = instruction(
    "mbarrier_expect_tx", "ptr:bar, bytes:i32", "Increase the phase's expected transaction bytes."
)


def mbarrier_conditional_try_wait(cond: Condition, ptr: Pointer, phase: Int) -> Boolean:
    """Return :func:`mbarrier_try_wait` if ``cond`` is true, otherwise True without testing the barrier."""
    asked = Boolean(as_number(cond))
    if asked.is_static:
        return mbarrier_try_wait(ptr, phase) if asked.value else Boolean.exactly(True)
    from xdsl.ir import Block, Region

    tracer = in_kernel("cute.arch.mbarrier_conditional_try_wait")
    then, other = Block(), Block()
    with tracer.into(then):
        tracer.op("scf.yield", [mbarrier_try_wait(ptr, phase).ssa])
    with tracer.into(other):
        tracer.op("scf.yield", [Boolean.exactly(True).ssa])
    made = tracer.op("scf.if", [asked.ssa], [Boolean.attribute], regions=[Region(then), Region(other)])
    return Boolean.of(made.results[0])


# --------------------------------------------------------------------------------------------------------- fences

_PROXIES = {
    ("async.shared", "cta"): "shared_cta", ("async.shared", "cluster"): "shared_cluster",
    ("async.shared", ""): "shared_cta", ("async.global", ""): "global", ("async", ""): "all",
}  # fmt: skip


class ProxyKind(StrEnum):
    """Kinds of accesses that :func:`fence_proxy` orders."""

    async_ = "async"
    async_global = "async.global"
    async_shared = "async.shared"


class SharedSpace(StrEnum):
    """Shared memory scopes of :func:`fence_proxy`."""

    shared_cta = "cta"
    shared_cluster = "cluster"


def fence_proxy(kind: str, space: str | None = None) -> None:
    """Order generic-proxy accesses before accesses through the async proxy (asynchronous copies, matrix instructions).

    Args:
        kind: ``"async"`` (all memory), ``"async.global"`` or ``"async.shared"``.
        space: ``"cta"`` or ``"cluster"``, only for ``"async.shared"``.
    """
    found = _PROXIES.get((kind, space or ""))
    if found is None:
        known = ", ".join(f"{k!r}{f' with space={s!r}' if s else ''}" for k, s in _PROXIES)
        raise KernelTypeError(
            "F251", f"cute.arch.fence_proxy: kind must be one of {known}, got {kind!r}, space={space!r}"
        )
    emit_machine("fence_proxy_async", what="cute.arch.fence_proxy", space=found)


def fence_view_async_shared() -> None:
    """Order generic-proxy accesses of shared memory before those of the async proxy."""
    fence_proxy("async.shared", "cta")


def _fence(scope: str, name: str) -> Any:
    return instruction(
        f"fence_acq_rel_{scope}",
        "",
        f"Acquire-release fence among the threads of {name}.",
        op="fence_acq_rel",
        scope=scope,
    )


fence_acq_rel_cta = _fence("cta", "the block")
fence_acq_rel_cluster = _fence("cluster", "the cluster")
fence_acq_rel_gpu = _fence("gpu", "the GPU")
fence_acq_rel_sys = _fence("sys", "the whole system")

# ------------------------------------------------------------------------------- groups of copies, registers, grids

cp_async_commit_group = instruction(
    "cp_async_commit_group", "", "Commit the thread's preceding cp.async operations as a group."
)
cp_async_mbarrier_arrive = instruction(
    "cp_async_mbarrier_arrive", "ptr:bar", "Make an mbarrier also wait for the thread's earlier cp.async operations."
)
cp_async_mbarrier_arrive_noinc = instruction(
    "cp_async_mbarrier_arrive_noinc", "ptr:bar",
    "Arrive at an mbarrier once the thread's earlier cp.async complete, as an expected arrival.",
    op="cp_async_mbarrier_arrive", noinc=True,
)  # fmt: skip
cp_async_bulk_commit_group = instruction(
    "cp_async_bulk_commit_group", "", "Commit the thread's preceding bulk stores as a group.", op="bulk_commit_group"
)


def _static(n: Any, what: str) -> int:
    if is_dynamic(n):
        raise StaticError("F144", f"{what} must be known at compile time, got {n.describe()}")
    return int(n)


def cp_async_wait_group(n: int) -> None:
    """Wait until at most ``n`` of the thread's most recent cp.async groups are pending."""
    emit_machine("cp_async_wait_group", n=_static(n, "the 'n' of cute.arch.cp_async_wait_group"))


def cp_async_bulk_wait_group(group: int, *, read: bool = False) -> None:
    """Wait until at most ``group`` of the thread's most recent bulk groups are pending.

    ``read``: wait only until the sources of the others have been read.
    """
    n = _static(group, "the 'group' of cute.arch.cp_async_bulk_wait_group")
    emit_machine("bulk_wait_group", what="cute.arch.cp_async_bulk_wait_group", n=n, read=read)


def _registers(action: str, count: Any) -> None:
    what = f"cute.arch.setmaxregister_{action}"
    emit_machine("setmaxnreg", what=what, count=_static(count, f"the 'reg_count' of {what}"), action=action)


def setmaxregister_increase(reg_count: int) -> None:
    """Increase the registers per thread of the warpgroup to ``reg_count``, a multiple of 8 up to 256."""
    _registers("increase", reg_count)


def setmaxregister_decrease(reg_count: int) -> None:
    """Decrease the registers per thread of the warpgroup to ``reg_count``, a multiple of 8 and at least 24."""
    _registers("decrease", reg_count)


warpgroup_reg_alloc = setmaxregister_increase
warpgroup_reg_dealloc = setmaxregister_decrease


griddepcontrol_wait = instruction(
    "griddepcontrol_wait", "", "Wait for the prerequisite grids to finish and their writes to be visible."
)
griddepcontrol_launch_dependents = instruction(
    "griddepcontrol_launch_dependents", "", "Allow the dependent grids to start."
)

# ------------------------------------------------------------------------------------------------------- clusters


def map_dsmem_ptr(ptr: Pointer, peer_cta_rank_in_cluster: Int) -> Pointer:
    """Return the pointer to the same address in the shared memory of another block of the cluster."""
    from cute_dialect.lang.values.pointers import Pointer  # late: start-up

    what = "cute.arch.map_dsmem_ptr"
    at = operand("smem", ptr, f"'ptr' of {what}")
    rank = operand("i32", peer_cta_rank_in_cluster, f"'peer_cta_rank_in_cluster' of {what}")
    return Pointer.of(emit_machine("map_cluster", [at, rank], what=what).results[0])  # pyright: ignore


def store_async(ptr: Pointer, value: Number, mbar_ptr: Pointer) -> None:
    """Write asynchronously to the shared memory of a block in the cluster. The mbarrier there counts the bytes.

    ``ptr`` and ``mbar_ptr`` come from :func:`map_dsmem_ptr`.
    """
    what = "cute.arch.store_async"
    at = pointer(ptr, f"'ptr' of {what}", "", (AddressSpace.dsmem,))
    bar = pointer(mbar_ptr, f"'mbar_ptr' of {what}", "i64", (AddressSpace.dsmem,))
    emit_machine("store_async", [at, element(ptr, at, value, what).ssa, bar], what=what)
