"""``cute.arch``: threads, barriers, fences, atomics and machine instructions."""

from __future__ import annotations

from enum import StrEnum

from cute_dialect.lang.machine.atomics import atomic_add as atomic_add
from cute_dialect.lang.machine.atomics import atomic_and as atomic_and
from cute_dialect.lang.machine.atomics import atomic_cas as atomic_cas
from cute_dialect.lang.machine.atomics import atomic_exch as atomic_exch
from cute_dialect.lang.machine.atomics import atomic_fmax as atomic_fmax
from cute_dialect.lang.machine.atomics import atomic_fmin as atomic_fmin
from cute_dialect.lang.machine.atomics import atomic_max as atomic_max
from cute_dialect.lang.machine.atomics import atomic_min as atomic_min
from cute_dialect.lang.machine.atomics import atomic_or as atomic_or
from cute_dialect.lang.machine.atomics import atomic_xor as atomic_xor
from cute_dialect.lang.machine.atomics import load as load
from cute_dialect.lang.machine.atomics import red as red
from cute_dialect.lang.machine.atomics import store as store
from cute_dialect.lang.machine.elect import issues as issues
from cute_dialect.lang.machine.ids import WARP_SIZE as WARP_SIZE
from cute_dialect.lang.machine.ids import Dim3 as Dim3
from cute_dialect.lang.machine.ids import block_dim as block_dim
from cute_dialect.lang.machine.ids import block_idx as block_idx
from cute_dialect.lang.machine.ids import block_idx_in_cluster as block_idx_in_cluster
from cute_dialect.lang.machine.ids import block_in_cluster_dim as block_in_cluster_dim
from cute_dialect.lang.machine.ids import block_in_cluster_idx as block_in_cluster_idx
from cute_dialect.lang.machine.ids import canonical_warp_idx_sync as canonical_warp_idx_sync
from cute_dialect.lang.machine.ids import cluster_dim as cluster_dim
from cute_dialect.lang.machine.ids import cluster_idx as cluster_idx
from cute_dialect.lang.machine.ids import cluster_size as cluster_size
from cute_dialect.lang.machine.ids import elect_one as elect_one
from cute_dialect.lang.machine.ids import grid_dim as grid_dim
from cute_dialect.lang.machine.ids import lane_idx as lane_idx
from cute_dialect.lang.machine.ids import thread_idx as thread_idx
from cute_dialect.lang.machine.ids import warp_idx as warp_idx
from cute_dialect.lang.machine.ids import warpgroup_idx as warpgroup_idx
from cute_dialect.lang.machine.instructions import add_packed_f32x2 as add_packed_f32x2
from cute_dialect.lang.machine.instructions import clock64 as clock64
from cute_dialect.lang.machine.instructions import exp as exp
from cute_dialect.lang.machine.instructions import exp2 as exp2
from cute_dialect.lang.machine.instructions import fma_packed_f32x2 as fma_packed_f32x2
from cute_dialect.lang.machine.instructions import fmax as fmax
from cute_dialect.lang.machine.instructions import fmin as fmin
from cute_dialect.lang.machine.instructions import globaltimer as globaltimer
from cute_dialect.lang.machine.instructions import inline_ptx as inline_ptx
from cute_dialect.lang.machine.instructions import log2_approx as log2_approx
from cute_dialect.lang.machine.instructions import mul_packed_f32x2 as mul_packed_f32x2
from cute_dialect.lang.machine.instructions import nanosleep as nanosleep
from cute_dialect.lang.machine.instructions import opaque as opaque
from cute_dialect.lang.machine.instructions import prmt as prmt
from cute_dialect.lang.machine.instructions import rcp_approx as rcp_approx
from cute_dialect.lang.machine.instructions import rsqrt_approx as rsqrt_approx
from cute_dialect.lang.machine.instructions import smid as smid
from cute_dialect.lang.machine.instructions import sqrt_approx as sqrt_approx
from cute_dialect.lang.machine.instructions import tanh_approx as tanh_approx
from cute_dialect.lang.machine.sync import barrier as barrier
from cute_dialect.lang.machine.sync import barrier_arrive as barrier_arrive
from cute_dialect.lang.machine.sync import cluster_arrive as cluster_arrive
from cute_dialect.lang.machine.sync import cluster_arrive_relaxed as cluster_arrive_relaxed
from cute_dialect.lang.machine.sync import cluster_wait as cluster_wait
from cute_dialect.lang.machine.sync import cp_async_bulk_commit_group as cp_async_bulk_commit_group
from cute_dialect.lang.machine.sync import cp_async_bulk_wait_group as cp_async_bulk_wait_group
from cute_dialect.lang.machine.sync import cp_async_commit_group as cp_async_commit_group
from cute_dialect.lang.machine.sync import cp_async_mbarrier_arrive as cp_async_mbarrier_arrive
from cute_dialect.lang.machine.sync import cp_async_mbarrier_arrive_noinc as cp_async_mbarrier_arrive_noinc
from cute_dialect.lang.machine.sync import cp_async_wait_group as cp_async_wait_group
from cute_dialect.lang.machine.sync import fence_acq_rel_cluster as fence_acq_rel_cluster
from cute_dialect.lang.machine.sync import fence_acq_rel_cta as fence_acq_rel_cta
from cute_dialect.lang.machine.sync import fence_acq_rel_gpu as fence_acq_rel_gpu
from cute_dialect.lang.machine.sync import fence_acq_rel_sys as fence_acq_rel_sys
from cute_dialect.lang.machine.sync import fence_proxy as fence_proxy
from cute_dialect.lang.machine.sync import fence_view_async_shared as fence_view_async_shared
from cute_dialect.lang.machine.sync import griddepcontrol_launch_dependents as griddepcontrol_launch_dependents
from cute_dialect.lang.machine.sync import griddepcontrol_wait as griddepcontrol_wait
from cute_dialect.lang.machine.sync import map_dsmem_ptr as map_dsmem_ptr
from cute_dialect.lang.machine.sync import mbarrier_arrive as mbarrier_arrive
from cute_dialect.lang.machine.sync import mbarrier_arrive_and_expect_tx as mbarrier_arrive_and_expect_tx
from cute_dialect.lang.machine.sync import mbarrier_conditional_try_wait as mbarrier_conditional_try_wait
from cute_dialect.lang.machine.sync import mbarrier_expect_tx as mbarrier_expect_tx
from cute_dialect.lang.machine.sync import mbarrier_init as mbarrier_init
from cute_dialect.lang.machine.sync import mbarrier_init_fence as mbarrier_init_fence
from cute_dialect.lang.machine.sync import mbarrier_inval as mbarrier_inval
from cute_dialect.lang.machine.sync import mbarrier_try_wait as mbarrier_try_wait
from cute_dialect.lang.machine.sync import mbarrier_wait as mbarrier_wait
from cute_dialect.lang.machine.sync import setmaxregister_decrease as setmaxregister_decrease
from cute_dialect.lang.machine.sync import setmaxregister_increase as setmaxregister_increase
from cute_dialect.lang.machine.sync import store_async as store_async
from cute_dialect.lang.machine.sync import sync_threads as sync_threads
from cute_dialect.lang.machine.sync import sync_warp as sync_warp
from cute_dialect.lang.machine.warps import FULL_MASK as FULL_MASK
from cute_dialect.lang.machine.warps import make_warp_uniform as make_warp_uniform
from cute_dialect.lang.machine.warps import match_any as match_any
from cute_dialect.lang.machine.warps import shuffle_sync as shuffle_sync
from cute_dialect.lang.machine.warps import shuffle_sync_bfly as shuffle_sync_bfly
from cute_dialect.lang.machine.warps import shuffle_sync_down as shuffle_sync_down
from cute_dialect.lang.machine.warps import shuffle_sync_op as shuffle_sync_op
from cute_dialect.lang.machine.warps import shuffle_sync_up as shuffle_sync_up
from cute_dialect.lang.machine.warps import vote_all_sync as vote_all_sync
from cute_dialect.lang.machine.warps import vote_any_sync as vote_any_sync
from cute_dialect.lang.machine.warps import vote_ballot_sync as vote_ballot_sync
from cute_dialect.lang.machine.warps import vote_uni_sync as vote_uni_sync
from cute_dialect.lang.machine.warps import warp_reduction as warp_reduction
from cute_dialect.lang.machine.warps import warp_reduction_max as warp_reduction_max
from cute_dialect.lang.machine.warps import warp_reduction_min as warp_reduction_min
from cute_dialect.lang.machine.warps import warp_reduction_sum as warp_reduction_sum
from cute_dialect.lang.machine.warps import warp_redux_sync as warp_redux_sync
from cute_dialect.lang.values.math import popc as popc
from cute_dialect.lang.values.shared_memory import alloc_smem as alloc_smem
from cute_dialect.lang.values.shared_memory import dynamic_smem_size as dynamic_smem_size
from cute_dialect.lang.values.shared_memory import get_dyn_smem as get_dyn_smem

__all__ = [
    "FULL_MASK", "WARP_SIZE", "Dim3", "ProxyKind", "SharedSpace", "add_packed_f32x2", "alloc_smem", "atomic_add",
    "atomic_and", "atomic_cas", "atomic_exch", "atomic_fmax", "atomic_fmin", "atomic_max", "atomic_min",
    "atomic_or", "atomic_xor", "barrier", "barrier_arrive", "block_dim", "block_idx", "block_idx_in_cluster",
    "block_in_cluster_dim", "block_in_cluster_idx", "canonical_warp_idx_sync", "clock64", "cluster_arrive",
    "cluster_arrive_relaxed", "cluster_dim", "cluster_idx", "cluster_size", "cluster_wait",
    "cp_async_bulk_commit_group", "cp_async_bulk_wait_group", "cp_async_commit_group", "cp_async_mbarrier_arrive",
    "cp_async_mbarrier_arrive_noinc", "cp_async_wait_group", "dynamic_smem_size", "elect_one", "exp", "exp2",
    "fence_acq_rel_cluster", "fence_acq_rel_cta", "fence_acq_rel_gpu", "fence_acq_rel_sys", "fence_proxy",
    "fence_view_async_shared", "fma_packed_f32x2", "fmax", "fmin", "get_dyn_smem", "globaltimer", "grid_dim",
    "griddepcontrol_launch_dependents", "griddepcontrol_wait", "inline_ptx", "issues", "lane_idx", "load",
    "log2_approx", "make_warp_uniform", "map_dsmem_ptr", "match_any", "mbarrier_arrive",
    "mbarrier_arrive_and_expect_tx", "mbarrier_conditional_try_wait", "mbarrier_expect_tx", "mbarrier_init",
    "mbarrier_init_fence", "mbarrier_inval", "mbarrier_try_wait", "mbarrier_wait", "mul_packed_f32x2", "nanosleep",
    "opaque", "popc", "prmt", "rcp_approx", "red", "rsqrt_approx", "setmaxregister_decrease",
    "setmaxregister_increase", "shuffle_sync", "shuffle_sync_bfly", "shuffle_sync_down", "shuffle_sync_op",
    "shuffle_sync_up", "smid", "sqrt_approx", "store", "store_async", "sync_threads", "sync_warp", "tanh_approx",
    "thread_idx", "vote_all_sync", "vote_any_sync", "vote_ballot_sync", "vote_uni_sync", "warp_idx",
    "warp_reduction", "warp_reduction_max", "warp_reduction_min", "warp_reduction_sum", "warp_redux_sync",
    "warpgroup_idx", "warpgroup_reg_alloc", "warpgroup_reg_dealloc",
]  # fmt: skip


class ProxyKind(StrEnum):
    """Kinds of accesses that :func:`fence_proxy` orders."""

    async_ = "async"
    async_global = "async.global"
    async_shared = "async.shared"


class SharedSpace(StrEnum):
    """Shared memory scopes of :func:`fence_proxy`."""

    shared_cta = "cta"
    shared_cluster = "cluster"


warpgroup_reg_alloc = setmaxregister_increase
warpgroup_reg_dealloc = setmaxregister_decrease


def __dir__() -> list[str]:
    return sorted(__all__)
