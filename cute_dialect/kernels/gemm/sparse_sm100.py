"""GEMM for sm_100 with a 2:4 sparse A: ``C[M,N] = A[M,K] * B[N,K]^T`` by ``tcgen05.mma.sp``, with C contiguous along M.

The kernel is that of :mod:`.sm100`, with its roles and its two accumulators. A holds the kept elements, half of K. The
metadata E are words of 32 bits in the order of the lanes, as :func:`~cute_dialect.kernels.gemm.sparse.order_by_lanes`
returns them: 128 rows x 4 words for 128 of K, 2 KiB of a stage. Before the MMAs of a stage, the thread that issues them
copies the words to 4 columns of tensor memory. There are two sets of columns, as for scale factors
(:mod:`.tcgen05_scales`).

    stage of a block    A, kept: 128 x 64     B: N x 128     E: 128 x 4 words
    MMAs                4, of K = 32

A thread of the epilogue has one row of the accumulator. It adds the bias of the row, and stores the elements. The 32
threads of a warp store consecutive elements of each column.

The kernel has been assembled and interpreted, but never run on the chip.

>>> SparseSm100Config(Sm100Config(tile=(128, 128), stages=4)).name
'f16-f16-kk-128x128x128-4-sm100-sparse'
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from collections.abc import Callable, Sequence
from typing import NamedTuple

import cute_dialect.lang as cute
from cute_dialect.arch.targets import TARGETS
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.common.kernel_names import differing
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.host import load_map, ring_of
from cute_dialect.kernels.gemm.mainloop import Operand, Place, Tiles
from cute_dialect.kernels.gemm.sm100 import (
    CHIP,
    COLUMNS,
    LANE,
    THREADS,
    Held,
    Mmas,
    Sizes,
    Sm100Config,
    Work,
    take_roles,
)
from cute_dialect.kernels.gemm.tcgen05_scales import SETS, wait_for_set
from cute_dialect.lang import blackwell, pipeline, utils
from cute_dialect.lang.nvgpu import cpasync, tcgen05

TILES = ((128, 192), (128, 128), (128, 64), (256, 192), (256, 128), (256, 64))
"""Tiles (M, N) that calls use."""
ROWS, WORDS = 128, 4
"""Rows of a block of metadata, one per lane, and its words per row: one for each MMA of a stage."""
_WIDTH = 32
"""Columns of the accumulator that a thread of the epilogue loads at once."""


class SparseSm100Config(NamedTuple):
    """Configuration of a GEMM for sm_100 with a sparse A."""

    base: Sm100Config = Sm100Config(tile=(128, 128), stages=4)
    """The GEMM; its K of 128 bytes is that of the kept elements. The epilogue may only have a bias per row."""

    @property
    def depth(self) -> int:
        """K of a stage."""
        return 2 * self.base.line

    @property
    def stage_bytes(self) -> int:
        """Bytes of A, B and the metadata in a stage of a block."""
        rows, columns = self.base.loaded
        return rows * 128 + columns * 256 + ROWS * WORDS * 4

    @property
    def columns(self) -> int:
        """Columns of tensor memory to allocate."""
        needed = self.base.accumulators * self.base.tile[1] + SETS * WORDS
        return max(32, 1 << (needed - 1).bit_length())

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block: the ring, the mbarriers and the address."""
        barriers = 16 * self.base.slots + 8 * (self.base.blocks - 1)
        return self.base.stages * (self.stage_bytes + 16) + barriers + 4

    @property
    def most_stages(self) -> int:
        """Number of stages of this tile that fit in shared memory, at most 16."""
        rest = self._replace(base=self.base._replace(stages=0)).shared_bytes
        return min(16, (TARGETS[self.base.chip].shared - rest) // (self.stage_bytes + 16))

    def deepest(self) -> "SparseSm100Config":
        """Return the configuration with as many stages as fit in shared memory."""
        return self._replace(base=self.base._replace(stages=self.most_stages))

    @property
    def name(self) -> str:
        """Name of the kernel."""
        c, chip = self.base, TARGETS[self.base.chip].number
        (m, n), bias = c.tile, f"-b{c.epilogue.bias_type}" if c.epilogue.bias else ""
        others = differing(c, {"sms": "-s{}", "group": "-g{}", "accumulators": "-a{}"})
        return f"{c.element}-{c.output}-kk-{m}x{n}x{self.depth}-{c.stages}-sm{chip}-sparse{others}{bias}"

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        c, target = self.base, TARGETS[self.base.chip]
        m, n = c.tile
        if c.element not in ("f16", "bf16") or c.output not in ("f16", "bf16", "f32"):
            raise ValueError(f"element {c.element!r} with output {c.output!r} is not supported; use f16 or bf16")
        if (c.major_a, c.major_b) != ("k", "k") or c.batch or c.direct or c.scaling:
            raise ValueError(f"a sparse GEMM has K-major operands, and no batch, direct or scaling, got {c.name}")
        e = c.epilogue
        if e != Epilogue(bias=e.bias, bias_type=e.bias_type) or e.bias not in ("", "m"):
            raise ValueError(f"epilogue {e.suffix} is not supported; use a bias per row, or none")
        if m not in (128, 256) or n % 32 or not 32 <= n <= 256 or self.columns > COLUMNS:
            raise ValueError(
                f"a tile of {m} x {n} with {c.accumulators} accumulators is not supported; M must be 128, or 256 for a "
                f"pair of blocks, and N a multiple of 32, with at most {COLUMNS - SETS * WORDS} columns of accumulators"
            )
        if c.stages < 2 or self.shared_bytes > target.shared:
            raise ValueError(f"stages is {c.stages}; use 2 to {self.most_stages} for a tile of {m} x {n}")


DEFAULT = SparseSm100Config()


class MetadataOperand:
    """The metadata of a block in shared memory.

    Args:
        load: The TMA atom and its coordinates.
        stages: Number of stages.
    """

    def __init__(self, load: tuple[cute.CopyAtom, cute.Tensor], stages: int):
        self.atom, coords = load
        self.last = cute.ceil_div(coords.shape[0], ROWS) - 1
        words = cute.arch.alloc_smem(cute.Int32, stages * ROWS * WORDS, alignment=128)
        layout = cute.make_layout((ROWS, WORDS, stages), stride=(WORDS, 1, ROWS * WORDS))
        self.stages = cute.make_tensor(words, layout)
        self.slots, self.tiles = cpasync.tma_partition(
            self.atom,
            0,
            cute.make_layout(1),
            cute.group_modes(self.stages, 0, 2),
            cute.group_modes(cute.flat_divide(coords, (ROWS, WORDS)), 0, 2),
        )

    def fetch(self, stage: cute.Int32, barrier: cute.Pointer, first: cute.Int32, k: cute.Int32 | int) -> None:
        """Issue the load of a stage, of the rows of block ``first``."""
        row = cute.min(first, self.last)  # A block of a pair may have no rows; it needs valid metadata.
        cute.copy(self.atom, self.tiles[None, row, k], self.slots[None, stage], tma_bar_ptr=barrier)


class SparseMmas(Mmas):
    """Issue of the copies of metadata and of the MMAs of a stage, by one thread.

    Args:
        mma: The MMA.
        operands: A and B in shared memory, by MMAs.
        tile: M and N of a tile.
        metadata: The metadata in shared memory.
        memory: The columns of tensor memory of both sets.
    """

    def __init__(
        self,
        mma: cute.TiledMma,
        operands: Sequence[cute.Tensor],
        tile: tuple[int, int],
        metadata: MetadataOperand,
        memory: cute.Pointer,
    ):
        super().__init__(mma, operands, tile)
        self.metadata, self.memory = metadata, memory
        self.held = blackwell.make_tmem_layout_e(mma, (*tile, WORDS * mma.shape_mnk[2]))
        self.copy = cute.make_copy_atom(tcgen05.Cp128x128bOp(mma.op.cta_group), cute.Int32)
        self.set = cute.Int32(0)

    def wait(self, consumer: pipeline.PipelineConsumer) -> pipeline.Slot:
        """Return the next stage when it is full, and the MMAs of two stages before it are complete."""
        return wait_for_set(consumer)

    def multiply(
        self, acc: cute.Tensor, stage: cute.Int32, first: cute.Int32 | int, accumulate: cute.Boolean | bool
    ) -> None:
        """Copy the metadata of a stage to tensor memory, and multiply."""
        memory = self.memory + self.set * WORDS
        lanes = cute.make_layout((ROWS, WORDS), stride=(LANE, 1))
        target = cute.make_tensor(cute.recast_ptr(memory, dtype=cute.Int32), lanes)
        copy = tcgen05.make_s2t_copy(self.copy, target)
        thread = copy.get_slice(0)
        cute.copy(copy, thread.partition_S(self.metadata.stages[None, None, stage]), thread.partition_D(target))
        self.set = self.set ^ 1
        e, at = cute.make_tensor(cute.recast_ptr(memory, dtype=cute.Int16), self.held), (None, None, None, stage)
        cute.sparse_gemm(self.mma, acc, self.a[at], self.b[at], e, accumulate=accumulate)


class ColumnResult:
    """Epilogue of accumulators in tensor memory: a thread has one row, and a warp stores 32 elements of each column.

    Args:
        config: The configuration.
        C: The result.
        bias: One element per row, or None.
    """

    def __init__(self, config: SparseSm100Config, C: cute.Tensor, bias: cute.Tensor | None):
        self.config, self.C, self.bias = config.base, C, bias
        self.thread, self.kind = cute.arch.thread_idx().x, number(config.base.output)

    def ahead(self, place: Place) -> cute.Float32 | None:
        """Return the bias of the thread's row, loaded before the accumulator is complete."""
        if self.bias is None:
            return None
        last = cute.size(self.bias) - 1
        return self.bias[cute.min(self._row(place), last)].to(cute.Float32)

    def _row(self, place: Place) -> cute.Int32:
        return place.row * ROWS + self.thread

    def tile(self, acc: cute.Pointer, place: Place, ahead: cute.Float32 | None, release: Callable[[], None]) -> None:
        """Load a tile, add the bias and store it.

        Args:
            acc: The accumulator.
            place: The tile.
            ahead: The result of :meth:`ahead`.
            release: Called when the accumulator is in registers.
        """
        columns, row = self.config.tile[1], self._row(place)
        rows, extent = self.C.shape
        for start in cute.range_constexpr(0, columns, _WIDTH):
            part = cute.make_tensor(acc + start, cute.make_layout((ROWS, _WIDTH), stride=(LANE, 1)))
            op = tcgen05.Ld32x32bOp(tcgen05.Repetition(_WIDTH))
            load = tcgen05.make_tmem_copy(cute.make_copy_atom(op, cute.Float32), part).get_slice(self.thread)
            values = cute.make_rmem_tensor((_WIDTH, 1, 1), cute.Float32)
            cute.copy(load, load.partition_S(part), values)
            if start + _WIDTH == columns:
                release()
            first = place.column * columns + start
            if row < rows:
                for i in cute.range_constexpr(_WIDTH):
                    if first + i < extent:
                        value = values[i] if ahead is None else values[i] + ahead
                        self.C[row, first + i] = value.to(self.kind)

    def finish(self) -> None:
        """Wait for stores; they are complete when the kernel ends."""


@cute.jit(options=f"--gpu-arch {CHIP}")
def launch(
    A: cute.Tensor,
    B: cute.Tensor,
    C: cute.Tensor,
    metadata: cute.Tensor,
    bias: cute.Tensor | None = None,
    config: cute.Constexpr[SparseSm100Config] = DEFAULT,
):
    """Launch persistent blocks, at most one per multiprocessor.

    Args:
        A: (M, K / 2), the kept elements.
        B: (N, K).
        C: (M, N), contiguous along M.
        metadata: (M, K / 32) words in the order of the lanes; M a multiple of 128 here, and K of 128.
        bias: (M,), or None.
        config: The configuration.
    """
    config.check()
    base = config.base
    c, (m, n) = base.base, base.loaded
    assert A.shape[1] * 2 == B.shape[1], "A must have half the columns of B"
    assert A.shape[0] == C.shape[0], "A and C must have the same M"
    assert B.shape[0] == C.shape[1], "B must have as many rows as C has columns"
    steps = cute.ceil_div(B.shape[1], config.depth)
    assert metadata.shape[0] == cute.ceil_div(A.shape[0], ROWS) * ROWS, "metadata must have 128 rows per 128 of A"
    assert metadata.shape[1] == steps * WORDS, "metadata must have 4 words per 128 of K"
    group = tcgen05.CtaGroup(base.blocks)
    rings = ring_of(A, (m, base.line), c), ring_of(B, (n, config.depth), c)
    loads = load_map(c, A, (m, base.line), 1, group), load_map(c, B, (n, config.depth), 1, group)
    stage = cute.make_layout((ROWS, WORDS), stride=(WORDS, 1))
    words = cpasync.make_tiled_tma_atom(cpasync.G2S(group), metadata, stage, (ROWS, WORDS))
    raster = utils.GroupedRaster(
        cute.ceil_div(C.shape, base.tile), base.group, cluster=base.blocks, sms=base.processors, matrices=None
    )
    kind = number(base.element)
    mma = cute.make_tiled_mma(tcgen05.MmaSparseOp(kind, kind, cute.Float32, (*base.tile, 32), group))
    sparse_gemm(loads, (words.atom, words.tma_tensor), C, mma, rings, raster, steps, bias, config).launch(
        grid=raster.persistent_grid(), block=THREADS, cluster=(base.blocks, 1, 1)
    )


@cute.kernel(min_blocks=1)
def sparse_gemm(
    loads: Sequence[tuple[cute.CopyAtom, cute.Tensor]],
    words: tuple[cute.CopyAtom, cute.Tensor],
    C: cute.Tensor,
    mma: cute.TiledMma,
    rings: Sequence[cute.ComposedLayout],
    raster: utils.GroupedRaster,
    steps: cute.Int32,
    bias: cute.Tensor | None,
    config: cute.Constexpr[SparseSm100Config],
):
    """Compute every n-th tile of C, n being the number of blocks, or of pairs."""
    base = config.base
    c, (m, n) = base.base, base.loaded

    def fetches(
        tiles: Tiles, sA: cute.Tensor, sB: cute.Tensor
    ) -> Callable[[pipeline.Slot, Place, cute.Int32 | int], None]:
        a, b = Operand(loads[0], sA, (m, base.line), 1, 0), Operand(loads[1], sB, (n, config.depth), 1, 0)

        def fetch(stage: pipeline.Slot, place: Place, i: cute.Int32 | int) -> None:
            a.fetch(stage.index, stage.barrier, place.row, i, place.of[0])
            b.fetch(stage.index, stage.barrier, place.column * base.blocks + tiles.rank, i, place.of[1])

        return fetch

    def held() -> Held:
        metadata = MetadataOperand(words, base.stages)
        return Held([metadata], lambda operands, memory: SparseMmas(mma, operands, base.tile, metadata, memory))

    work = Work(lambda: Tiles(c, raster), fetches, lambda staging: ColumnResult(config, C, bias), held)
    sizes = Sizes(config.stage_bytes, config.columns, config.depth, buffers=0)
    take_roles(base, (*loads, words), rings, steps, work, sizes)


@printed
def sparse_sm100_text(config: SparseSm100Config | None = None) -> cute.Compiled:
    """Trace the kernel and its host function ``@launch``.

    Raises:
        ValueError: if the configuration is not supported.
    """
    config = config or DEFAULT
    config.check()
    c = config.base
    matrix = cute.Tensor[number(c.element), "(?,?):(?{div=8},1)", "align<16>"]
    result = cute.Tensor[number(c.output), "(?,?):(1,?)"]
    words = cute.Tensor[cute.Int32, "(?,?):(?{div=4},1)", "align<16>"]
    bias = cute.Tensor[number(c.epilogue.bias_type), "?:1"] if c.epilogue.bias else None
    return cute.trace(launch, matrix, matrix, result, words, bias, config=config)
