"""Helpers for kernels: the major mode of a matrix, properties of the GPU, and tile schedulers.

The names are those of CuTe DSL, except :class:`GroupedRaster`. The schedulers are written in the kernel language: their
methods run on the host to compute the grid, and in kernels to compute tiles.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import cute_dialect.lang as cute
from cute_dialect.arch.targets import TARGETS
from cute_dialect.errors import UsageError
from cute_dialect.lang.nvgpu.cpasync import TensorMapManager, TensorMapUpdateMode
from cute_dialect.lang.tracing.tracer import multiprocessors
from cute_dialect.lang.values.shared_memory import SmemAllocator
from cute_dialect.viz.dispatch import draw
from cute_dialect.viz.threads import draw_tv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cute_dialect.lang.machine.threads import Dim3
    from cute_dialect.lang.nvgpu.common import OperandMajorMode
    from cute_dialect.lang.values.dtypes import Numeric
    from cute_dialect.lang.values.layouts import Layout
    from cute_dialect.lang.values.pointers import Pointer
    from cute_dialect.lang.values.signature_types import Condition, Coord, Int, LayoutLike, Shape
    from cute_dialect.lang.values.tensors import Tensor


__all__ = [
    "ClcDynamicPersistentTileScheduler", "ClcDynamicPersistentTileSchedulerParams", "GroupSearchResult",
    "GroupedGemmGroupSearchState", "GroupedGemmTileSchedulerHelper", "GroupedRaster",
    "HardwareInfo", "LayoutEnum", "PersistentTileSchedulerParams", "SmemAllocator", "StaticPersistentTileScheduler",
    "TensorMapManager", "TensorMapUpdateMode", "TmemAllocator", "WorkTileInfo", "compute_epilogue_tile_shape",
    "create_initial_search_state",
    "get_num_tmem_alloc_cols", "get_smem_capacity_in_bytes", "print_latex", "print_latex_tv",
]  # fmt: skip


class LayoutEnum(Enum):
    """The contiguous mode of a matrix."""

    ROW_MAJOR = "row_major"
    COL_MAJOR = "col_major"

    @staticmethod
    def from_tensor(tensor: Tensor) -> LayoutEnum:
        """Return the layout of the first two modes of a tensor. Raises UsageError if neither has stride 1."""
        leading = tensor.leading_dim
        if leading == 1:
            return LayoutEnum.ROW_MAJOR
        if leading == 0:
            return LayoutEnum.COL_MAJOR
        raise UsageError(f"the first or second mode of the tensor must have stride 1, got {tensor}")

    def is_k_major_a(self) -> bool:
        """Return True if A (M, K) is contiguous along K."""
        return self is LayoutEnum.ROW_MAJOR

    def is_m_major_a(self) -> bool:
        """Return True if A (M, K) is contiguous along M."""
        return self is LayoutEnum.COL_MAJOR

    def is_k_major_b(self) -> bool:
        """Return True if B (N, K) is contiguous along K."""
        return self is LayoutEnum.ROW_MAJOR

    def is_n_major_b(self) -> bool:
        """Return True if B (N, K) is contiguous along N."""
        return self is LayoutEnum.COL_MAJOR

    def is_n_major_c(self) -> bool:
        """Return True if C (M, N) is contiguous along N."""
        return self is LayoutEnum.ROW_MAJOR

    def is_m_major_c(self) -> bool:
        """Return True if C (M, N) is contiguous along M."""
        return self is LayoutEnum.COL_MAJOR

    def sm90_mma_major_mode(self) -> OperandMajorMode:
        """Return the major mode of a wgmma operand with this layout."""
        modes = cute.nvgpu.warpgroup.OperandMajorMode
        return modes.K if self is LayoutEnum.ROW_MAJOR else modes.MN

    mma_major_mode = sm90_mma_major_mode


def print_latex(layout: LayoutLike) -> None:
    """Print a LaTeX document that draws a static layout."""
    print(draw(layout).latex, end="")


def print_latex_tv(layout_tv: LayoutLike, tile_mn: Shape) -> None:
    """Print a LaTeX document that draws which thread holds which value of an ``(M, N)`` tile."""
    print(draw_tv(layout_tv, tile_mn).latex, end="")


def get_smem_capacity_in_bytes(chip: str = "sm_90") -> int:
    """Return the maximum shared memory of a block in bytes.

    >>> get_smem_capacity_in_bytes("sm_90")
    232448
    """
    if chip not in TARGETS:
        raise UsageError(f"chip must be one of {', '.join(TARGETS)}, got {chip!r}")
    return TARGETS[chip].shared


class HardwareInfo:
    """Properties of the current GPU."""

    def __init__(self, device_id: int = 0):
        self.device_id = device_id

    def get_device_multiprocessor_count(self) -> int:
        """Return the number of SMs; without a GPU that of an H100 or H200 SXM."""
        return multiprocessors(self.device_id)

    def get_max_active_clusters(self, cluster_size: int) -> int:
        """Return the number of clusters of ``cluster_size`` blocks that run at once with one block per SM."""
        if cluster_size < 1:
            raise UsageError(f"cluster_size must be at least 1, got {cluster_size}")
        return multiprocessors(self.device_id) // cluster_size


class WorkTileInfo(NamedTuple):
    """A work tile.

    Attributes:
        tile_idx: its coordinates (M, N, L).
        is_valid_tile: whether the tile exists.
    """

    tile_idx: Coord
    is_valid_tile: Condition


class PersistentTileSchedulerParams:
    """The tiles of a problem, and the order in which clusters process them.

    Args:
        problem_shape_ntile_mnl: the numbers of tiles (M, N, L).
        cluster_shape_mnk: the numbers of blocks of a cluster; 1 along K.
        swizzle_size: the number of adjacent rows of clusters that are processed together. Blocks that run at once then
            share more of their input.
        raster_along_m: True if consecutive clusters advance along M, False for N.
    """

    def __init__(
        self,
        problem_shape_ntile_mnl: Shape,
        cluster_shape_mnk: Shape,
        swizzle_size: int = 1,
        raster_along_m: bool = True,
    ):
        if cluster_shape_mnk[2] != 1:
            raise UsageError(f"cluster_shape_mnk must be 1 along K, got {cluster_shape_mnk}")
        if swizzle_size < 1:
            raise UsageError(f"swizzle_size must be at least 1, got {swizzle_size}")
        self.swizzle_size = swizzle_size
        self.raster_along_m = raster_along_m
        self.problem_shape_ntile_mnl = problem_shape_ntile_mnl
        self.cluster_shape_mn = tuple(cluster_shape_mnk[:2])
        m, n, matrices = problem_shape_ntile_mnl
        self.clusters_mnl = (
            cute.ceil_div(m, self.cluster_shape_mn[0]), cute.ceil_div(n, self.cluster_shape_mn[1]), matrices
        )  # fmt: skip

    def get_grid_shape(self, max_active_clusters: Int) -> Shape:
        """Return the grid, with clusters along z: as many as run at once, or fewer if there are fewer tiles."""
        clusters = cute.size(self.clusters_mnl)
        return (*self.cluster_shape_mn, cute.min(clusters, max_active_clusters))


class StaticPersistentTileScheduler:
    """Static tile scheduler: each cluster processes every n-th tile, where n is the number of clusters."""

    def __init__(self, params: PersistentTileSchedulerParams, step: Any, current: Any, in_cluster: Any):
        self.params = params
        self.step = step
        self.current = current
        self.in_cluster = in_cluster
        self.executed = cute.Int32(0)

    @staticmethod
    def create(params: PersistentTileSchedulerParams, block_idx: Dim3, grid_dim: Dim3) -> StaticPersistentTileScheduler:
        """Return the scheduler of this block."""
        m, n = params.cluster_shape_mn
        return StaticPersistentTileScheduler(params, grid_dim[2], block_idx[2], (block_idx[0] % m, block_idx[1] % n))

    @staticmethod
    def get_grid_shape(params: PersistentTileSchedulerParams, max_active_clusters: Int) -> Shape:
        """Return the grid; see :meth:`PersistentTileSchedulerParams.get_grid_shape`."""
        return params.get_grid_shape(max_active_clusters)

    def get_current_work(self) -> WorkTileInfo:
        """Return the current tile."""
        clusters_m, clusters_n, _ = self.params.clusters_mnl
        along_m, swizzle = self.params.raster_along_m, self.params.swizzle_size
        along, across = (clusters_m, clusters_n) if along_m else (clusters_n, clusters_m)
        current = cute.assume(self.current, range=(0, None))
        if swizzle == 1:
            rest, first = divmod(current, along)
            matrix, second = divmod(rest, across)
        else:
            matrix, inside = divmod(current, clusters_m * clusters_n)
            group, inside = divmod(inside, along * swizzle)
            width = cute.min(across - group * swizzle, swizzle)  # The last group may be narrower.
            first, side = divmod(inside, width)
            second = group * swizzle + side
        m, n = (first, second) if along_m else (second, first)
        cluster_m, cluster_n = self.params.cluster_shape_mn
        where = (m * cluster_m + self.in_cluster[0], n * cluster_n + self.in_cluster[1], matrix)
        return WorkTileInfo(where, self.current < cute.size(self.params.clusters_mnl))

    def initial_work_tile_info(self) -> WorkTileInfo:
        """Return the first tile."""
        return self.get_current_work()

    def advance_to_next_work(self, *, advance_count: int = 1) -> None:
        """Advance to the next tile."""
        self.current = self.current + self.step * advance_count
        self.executed = self.executed + 1

    @property
    def num_tiles_executed(self) -> Int:
        """The number of tiles processed so far."""
        return self.executed


class ClcDynamicPersistentTileSchedulerParams:
    """The tiles of a problem for :class:`ClcDynamicPersistentTileScheduler`.

    Args:
        problem_shape_ntile_mnl: the numbers of tiles (M, N, L).
        cluster_shape_mnk: the numbers of blocks of a cluster; 1 along K.
    """

    def __init__(self, problem_shape_ntile_mnl: Shape, cluster_shape_mnk: Shape):
        if cluster_shape_mnk[2] != 1:
            raise UsageError(
                f"ClcDynamicPersistentTileSchedulerParams: cluster_shape_mnk must be 1 along K, got {cluster_shape_mnk}"
            )
        self.problem_shape_ntile_mnl = problem_shape_ntile_mnl
        self.cluster_shape_mn = tuple(cluster_shape_mnk[:2])

    def get_grid_shape(self) -> Shape:
        """Return the grid: one block per tile, rounded up to whole clusters."""
        m, n, matrices = self.problem_shape_ntile_mnl
        cluster_m, cluster_n = self.cluster_shape_mn
        return cute.ceil_div(m, cluster_m) * cluster_m, cute.ceil_div(n, cluster_n) * cluster_n, matrices


class ClcDynamicPersistentTileScheduler:
    """Dynamic tile scheduler by cluster launch control (sm_100): a cluster continues with tiles of clusters that have
    not started.

    The grid has one block per tile. One thread of the cluster calls :meth:`advance_to_next_work` with an mbarrier that
    each block has armed for 16 bytes. After the wait on it, every thread calls :meth:`get_current_work`. Then it fences
    (``fence_proxy("async.shared", space="cta")``) and arrives at a barrier before the next request.
    """

    def __init__(self, params: ClcDynamicPersistentTileSchedulerParams, first: Any, in_cluster: Any, response_ptr: Any):
        self.params = params
        self.first = first
        self.in_cluster = in_cluster
        self.response_ptr = response_ptr

    @staticmethod
    def create(
        params: ClcDynamicPersistentTileSchedulerParams, block_idx: Dim3, grid_dim: Dim3, response_ptr: Pointer
    ) -> ClcDynamicPersistentTileScheduler:
        """Return the scheduler of this block. ``response_ptr`` are 16 aligned bytes of shared memory."""
        m, n = params.cluster_shape_mn
        in_cluster = block_idx[0] % m, block_idx[1] % n
        return ClcDynamicPersistentTileScheduler(params, tuple(block_idx), in_cluster, response_ptr)

    @staticmethod
    def get_grid_shape(params: ClcDynamicPersistentTileSchedulerParams) -> Shape:
        """Return the grid; see :meth:`ClcDynamicPersistentTileSchedulerParams.get_grid_shape`."""
        return params.get_grid_shape()

    def initial_work_tile_info(self) -> WorkTileInfo:
        """Return the tile of the block itself, which may be past the end of a problem that clusters do not divide."""
        return WorkTileInfo(self.first, cute.Boolean(True))

    def get_current_work(self) -> WorkTileInfo:
        """Return the tile of the last response. It is not valid if the request was unsuccessful."""
        canceled, x, y, z = cute.arch.clc_query(self.response_ptr)
        return WorkTileInfo((x + self.in_cluster[0], y + self.in_cluster[1], z), canceled)

    def advance_to_next_work(self, mbarrier_addr: Pointer) -> None:
        """Request the next tile. One thread or warp of the cluster calls it; the response arrives at the mbarrier.

        In a cluster of several blocks each block gets the response.
        """
        several = cute.size(self.params.cluster_shape_mn) > 1
        if cute.arch.issues():
            cute.arch.clc_try_cancel(self.response_ptr, mbarrier_addr, multicast=several)


class NamedBarrier(Protocol):
    """The barrier of a :class:`TmemAllocator`, such as ``cute.pipeline.NamedBarrier``."""

    def arrive_and_wait(self) -> None:
        """Wait until all threads have arrived."""
        ...


class TmemAllocator:
    """Allocation of tensor memory by one warp of the block (sm_100, sm_110).

    All threads call the methods::

        tmem = utils.TmemAllocator(slot, barrier_for_retrieve=pipeline.NamedBarrier(1, 128))
        tmem.allocate(256)
        tmem.wait_for_alloc()
        pointer = tmem.retrieve_ptr(cute.Float32)
        …
        tmem.relinquish_alloc_permit()
        pipeline.sync(1)                     # all loads are complete
        tmem.free(pointer)

    Args:
        alloc_result_dst_smem_ptr: a pointer to an Int32 in shared memory, for the address.
        barrier_for_retrieve: the barrier of all threads that use the memory.
        allocator_warp_id: the warp that allocates and frees.
        is_two_cta: allocate in both blocks of a pair.
        num_allocated_columns: columns allocated before.
        two_cta_tmem_dealloc_mbar_ptr: a pointer to an Int64 in shared memory, for the mbarrier at which a block of a
            pair waits until the other block has no more accesses.
    """

    def __init__(
        self,
        alloc_result_dst_smem_ptr: Pointer,
        barrier_for_retrieve: NamedBarrier,
        allocator_warp_id: int = 0,
        is_two_cta: bool = False,
        num_allocated_columns: int = 0,
        two_cta_tmem_dealloc_mbar_ptr: Pointer | None = None,
    ):
        if is_two_cta and two_cta_tmem_dealloc_mbar_ptr is None:
            raise UsageError("TmemAllocator: is_two_cta needs two_cta_tmem_dealloc_mbar_ptr, a pointer to an Int64")
        self.slot = alloc_result_dst_smem_ptr
        self.barrier = barrier_for_retrieve
        self.warp = allocator_warp_id
        self.columns = num_allocated_columns
        self.is_two_cta = is_two_cta
        self.done = two_cta_tmem_dealloc_mbar_ptr
        if is_two_cta and self._is_allocator():
            with cute.arch.elect_one():
                cute.arch.mbarrier_init(self.done, 1)
                cute.arch.mbarrier_init_fence()

    def _is_allocator(self) -> Condition:
        return cute.arch.make_warp_uniform(cute.arch.warp_idx()) == self.warp

    def allocate(self, num_columns: int) -> None:
        """Allocate 32, 64, 128, 256 or 512 columns. The allocating warp waits until they are free."""
        if self._is_allocator():
            cute.arch.alloc_tmem(num_columns, self.slot, self.is_two_cta)
        self.columns = num_columns

    def wait_for_alloc(self) -> None:
        """Wait at the barrier until the address is written."""
        cute.nvgpu.tcgen05.fence_before_thread_sync()
        self.barrier.arrive_and_wait()
        cute.nvgpu.tcgen05.fence_after_thread_sync()

    def retrieve_ptr(self, dtype: type[Numeric] = cute.Float32) -> Pointer:
        """Return the pointer to the allocated memory, after :meth:`wait_for_alloc`."""
        return cute.arch.retrieve_tmem_ptr(dtype, 16, self.slot)

    def relinquish_alloc_permit(self) -> None:
        """Declare that the block allocates no more."""
        if self._is_allocator():
            cute.arch.relinquish_tmem_alloc_permit(self.is_two_cta)

    def free(self, tmem_ptr: Pointer, num_columns: int = 0) -> None:
        """Free the columns, by default all. Call it after a barrier that follows the last access in this block."""
        if self._is_allocator():
            if self.is_two_cta:
                peer = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster()) ^ 1
                with cute.arch.elect_one():
                    cute.arch.mbarrier_arrive(self.done, peer)
                cute.arch.mbarrier_wait(self.done, 0)
            cute.nvgpu.tcgen05.fence_after_thread_sync()
            cute.arch.dealloc_tmem(tmem_ptr, num_columns or self.columns, self.is_two_cta)


def get_num_tmem_alloc_cols(
    tmem_tensors: Tensor | Sequence[Tensor], rounding: bool = True, arch: str = "sm_100"
) -> int:
    """Return the number of columns to allocate for tensors in tensor memory one after another.

    Args:
        tmem_tensors: one tensor or several, such as results of ``make_fragment_C``.
        rounding: round up to a number that can be allocated.
        arch: ignored; all chips have the same sizes.
    """
    del arch
    tensors = tmem_tensors if isinstance(tmem_tensors, tuple | list) else [tmem_tensors]
    columns = sum(cute.nvgpu.tcgen05.find_tmem_tensor_col_offset(t) for t in tensors)
    if columns > cute.arch.get_max_tmem_alloc_cols():
        raise UsageError(f"get_num_tmem_alloc_cols: the tensors need {columns} columns, but a block has 512")
    if not rounding:
        return columns
    return max(cute.arch.get_min_tmem_alloc_cols(), 1 << (columns - 1).bit_length())


def compute_epilogue_tile_shape(
    cta_tile_shape: Shape,
    use_2cta_instrs: bool,
    layout_d: LayoutEnum,
    elem_ty_d: type[Numeric],
    *,
    layout_c: LayoutEnum | None = None,
    elem_ty_c: type[Numeric] | None = None,
) -> tuple[Int, Int | Layout]:
    """Return the tile (M, N) of the accumulator that the epilogue of a Blackwell GEMM processes at once.

    The rules are those of CUTLASS (``epilogue/collective/builders/sm100_builder.inl``, BSD-3). If the two halves of the
    columns lie in different lanes, as for a pair of blocks with 64 rows each, the tile has columns of both halves, and
    its mode N is a layout.

    Args:
        cta_tile_shape: the tile (M, N, …) of one block.
        use_2cta_instrs: a pair of blocks executes the MMAs.
        layout_d, elem_ty_d: the layout and the element type of D.
        layout_c, elem_ty_c: those of a source that the epilogue loads, if there is one.
    """
    m, n = cta_tile_shape[0], cta_tile_shape[1]
    warps_m, warps_n = (2, 2) if use_2cta_instrs and m == 64 else (4, 1)
    rows = min(m, 32 * warps_m)
    bits = max(elem_ty_d.width, elem_ty_c.width if elem_ty_c is not None else 0)
    if elem_ty_c is None:
        columns = (8192 if bits == 4 else 4096) // rows
    elif bits == 32:
        columns = 16 if m > 64 and n <= 128 else 32
    else:
        columns = 32 if bits == 16 and n <= 128 else 64
    least = [8 * warps_n if layout_d.is_m_major_c() else 128 // elem_ty_d.width * warps_n]
    if elem_ty_c is not None and layout_c is not None:
        least.append(8 * warps_n if layout_c.is_m_major_c() else 128 // elem_ty_c.width * warps_n)
    if n < max(least):
        raise UsageError(f"compute_epilogue_tile_shape: the tile has {n} columns; use at least {max(least)}")
    columns = min(n, max(columns, *least))
    columns = columns if n % columns == 0 else n
    if warps_n == 1 or columns == n:
        return rows, columns
    return rows, cute.make_layout((columns // warps_n, warps_n), stride=(1, n // warps_n))


class GroupSearchResult(NamedTuple):
    """The problem of a grouped GEMM to which a tile belongs, and its tile.

    Attributes:
        group_idx: the index of the problem.
        cta_tile_idx_m, cta_tile_idx_n: the coordinates of the block's tile in the problem.
        problem_shape_m, problem_shape_n, problem_shape_k: the extents of the problem.
        cta_tile_count_k: the number of tiles along K.
    """

    group_idx: Int
    cta_tile_idx_m: Int
    cta_tile_idx_n: Int
    problem_shape_m: Int
    problem_shape_n: Int
    problem_shape_k: Int
    cta_tile_count_k: Int


class GroupedGemmGroupSearchState:
    """The problem at which the last search ended, and the number of cluster tiles of the problems before it."""

    def __init__(self, start_group_idx: Int, tile_count_prev_group: Int):
        self.start_group_idx = start_group_idx
        self.tile_count_prev_group = tile_count_prev_group


def create_initial_search_state() -> GroupedGemmGroupSearchState:
    """Return the state of a search that starts at the first problem."""
    return GroupedGemmGroupSearchState(cute.Int32(0), cute.Int32(0))


class GroupedGemmTileSchedulerHelper:
    """Search for the problem of a grouped GEMM to which a tile belongs.

    The tiles of all problems are numbered one after another, within a problem along M first.

    Args:
        group_count: the number of problems.
        tile_sched_params: the parameters of the tile scheduler, which numbers the cluster tiles along L.
        cluster_tile_shape_mnk: the extents of a cluster tile.
        search_state: the state returned by :func:`create_initial_search_state`.
    """

    def __init__(
        self,
        group_count: Int,
        tile_sched_params: PersistentTileSchedulerParams,
        cluster_tile_shape_mnk: Shape,
        search_state: GroupedGemmGroupSearchState,
    ):
        self.group_count = group_count
        self.tile_sched_params = tile_sched_params
        self.cluster_tile_shape_mnk = cluster_tile_shape_mnk
        self.search_state = search_state

    def delinearize_z(self, cta_tile_coord: Coord, problem_shape_mnkl: Tensor) -> GroupSearchResult:
        """Return the problem and the tile of a block.

        Args:
            cta_tile_coord: the block's place in its cluster along M and N, and the number of the cluster tile.
            problem_shape_mnkl: the extents (M, N, K, L) of each problem, shape (groups, 4).
        """
        tile_m, tile_n, tile_k = self.cluster_tile_shape_mnk
        m, n, tile = cta_tile_coord
        state = self.search_state
        group, before = state.start_group_idx, state.tile_count_prev_group
        if tile < before:  # The search only goes forward.
            group, before = cute.Int32(0), cute.Int32(0)
        clusters_m = cute.ceil_div(problem_shape_mnkl[group, 0], tile_m)
        count = clusters_m * cute.ceil_div(problem_shape_mnkl[group, 1], tile_n)
        while tile >= before + count and group + 1 < self.group_count:
            group += 1
            before += count
            clusters_m = cute.ceil_div(problem_shape_mnkl[group, 0], tile_m)
            count = clusters_m * cute.ceil_div(problem_shape_mnkl[group, 1], tile_n)
        state.start_group_idx, state.tile_count_prev_group = group, before
        inside = cute.assume(tile - before, range=(0, None))
        column, row = divmod(inside, cute.max(clusters_m, 1))
        cluster_m, cluster_n = self.tile_sched_params.cluster_shape_mn
        size_m, size_n, size_k = [problem_shape_mnkl[group, i] for i in range(3)]
        return GroupSearchResult(
            group, row * cluster_m + m, column * cluster_n + n, size_m, size_n, size_k, cute.ceil_div(size_k, tile_k)
        )


class GroupedRaster:
    """Order of tiles in groups of rows, column by column within a group, so that concurrent blocks share their inputs.

    Each block processes every n-th cluster tile, where n is the number of clusters.

    Args:
        tiles: the numbers of cluster tiles (M, N).
        group: the number of rows in a group.
        serpentine: True to reverse N in odd groups.
        cluster: the number of blocks in a cluster.
        sms: the number of SMs of the GPU.
        matrices: the number of matrices in a batch, or None without a batch.
    """

    def __init__(
        self, tiles: Shape, group: int = 8, *, serpentine: bool = False, cluster: int = 1, sms: int = 132,
        matrices: Int = None,
    ):  # fmt: skip
        self.tiles_mn = tiles
        self.group = group
        self.serpentine = serpentine
        self.cluster = cluster
        self.sms = sms
        self.matrices = matrices

    def count(self) -> Int:
        """Return the number of cluster tiles; it must fit the type of the extents."""
        tiles = self._of_matrix()
        return tiles if self.matrices is None else cute.assume(tiles * self.matrices, range=(0, None))

    def _of_matrix(self) -> Any:
        return cute.assume(self.tiles_mn[0] * self.tiles_mn[1], range=(0, None))

    def persistent_grid(self) -> Shape:
        """Return the smallest number of blocks that needs the minimum number of waves; 0 if there are no tiles."""
        tiles = self.count()
        waves = cute.max(cute.ceil_div(tiles, self.sms // self.cluster), 1)
        return cute.ceil_div(tiles, waves) * self.cluster

    def place(self, tile: Int) -> Coord:
        """Return the row and the column of a cluster tile, in cluster tiles, and for a batch also the matrix.

        ``tile`` must be less than :meth:`count`; compiled asserts check this, and so does the interpreter.
        """
        tiles_m, tiles_n = self.tiles_mn
        tile, more = cute.assume(tile, range=(0, None)), ()
        if self.matrices is not None:
            matrix, tile = divmod(tile, self._of_matrix())
            more = (matrix,)
        group, inside = divmod(tile, tiles_n * self.group)
        first = cute.assume(group * self.group, range=(0, tiles_m))
        rows = cute.assume(cute.min(tiles_m - first, self.group), range=(1, None))
        column, row = divmod(inside, rows)
        row = cute.assume(first + row, range=(0, tiles_m))
        column = cute.assume(column, range=(0, tiles_n))
        if self.serpentine:
            column = tiles_n - 1 - column if (group & 1) != 0 else column
        return (row, column, *more)


def __dir__() -> list[str]:
    return sorted(__all__)
