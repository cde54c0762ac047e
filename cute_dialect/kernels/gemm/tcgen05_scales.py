"""Scale factors of the GEMM for sm_100: from global to shared to tensor memory, and the MMAs that read them.

The factors of A and B are blocks of 512 bytes, for 128 rows and 4 factors along K: that of row ``m`` and factor ``s``
is byte ``16 * (m % 32) + 4 * (m // 32) + s``. The blocks along K are adjacent, as in torch and cuBLAS.

TMA loads the blocks of a stage with A and B. Before the MMAs of the stage, the same thread copies each block to 4
columns of tensor memory, 32 rows per column. There are two sets of columns. A set is written when the MMAs that read it
two stages before are complete, which the barrier of their stage signals.

    stage of                K     MMAs   blocks of A, and of each 128 columns of B    factors of an MMA
    mx, 8-bit floats        128   4      1                                            1
    mx, f4E2M1FN            256   4      2                                            2
    nv, f4E2M1FN            256   4      4                                            4

A tile whose first column is no multiple of 128 starts inside of a block: its MMAs read the columns of tensor memory
from that row on.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from collections.abc import Sequence
from typing import NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.gemm.mainloop import Tiles
from cute_dialect.lang import blockscaled, pipeline
from cute_dialect.lang.nvgpu import cpasync, tcgen05

VECTORS = {"mx": 32, "nv": 16}
"""Scaling -> elements along K that share a scale factor."""
ROWS, FACTORS, BYTES, COLUMNS = 128, 4, 512, 4
"""Rows and factors along K of a block, its bytes, and its columns of tensor memory."""
SETS = 2
"""Sets of columns of tensor memory. The factors of a stage are copied to one while the MMAs read the other."""
FP4 = "f4E2M1FN"
"""Elements of 4 bits, two per byte."""
_MMAS = 4
"""MMAs of a stage."""
_ROWS_OF_COLUMN = 32
"""Rows whose factors a column of tensor memory holds."""


class ScaleBlocks(NamedTuple):
    """Blocks of scale factors of a tile."""

    along_k: int  # blocks of a stage along K
    of_b: int  # blocks of 128 columns of B that a tile can touch

    @property
    def stage_bytes(self) -> int:
        """Bytes of the factors of a stage of a block."""
        return (1 + self.of_b) * self.along_k * BYTES

    @property
    def columns(self) -> int:
        """Columns of tensor memory of a set."""
        return (1 + self.of_b) * self.along_k * COLUMNS


def blocks_of(scaling: str, depth: int, columns: int) -> ScaleBlocks:
    """Return the blocks of a tile.

    Args:
        scaling: A key of :data:`VECTORS`.
        depth: K of a stage.
        columns: Columns of the tile, a multiple of 64.

    >>> blocks_of("nv", 256, 192), blocks_of("mx", 128, 64).columns
    (ScaleBlocks(along_k=4, of_b=2), 8)
    """
    return ScaleBlocks(depth // VECTORS[scaling] // FACTORS, -(-columns // ROWS))


def load_map(
    factors: cute.Tensor, rows: cute.Int32, blocks: cute.Int32, along_k: int, group: tcgen05.CtaGroup
) -> tuple[cute.CopyAtom, cute.Tensor]:
    """Return the TMA atom that loads the blocks of a stage of 128 rows, and its coordinates (row block, K block, i16).

    Args:
        factors: All factors, as bytes.
        rows: Number of rows of the matrix.
        blocks: Number of blocks along K.
        along_k: Blocks of a stage.
        group: The blocks whose barrier a load signals; see :func:`~cute_dialect.kernels.gemm.host.load_map`.
    """
    words = BYTES // 2
    layout = cute.make_layout((cute.ceil_div(rows, ROWS), blocks, words), stride=(blocks * words, words, 1))
    matrix = cute.make_tensor(cute.recast_ptr(factors.iterator, dtype=cute.Uint16), layout)
    box = (1, along_k, words)
    stage = cute.make_layout(box, stride=(along_k * words, words, 1))
    found = cpasync.make_tiled_tma_atom(cpasync.G2S(group), matrix, stage, box)
    return found.atom, found.tma_tensor


class ScaleOperand:
    """The factors of an operand, A or B, in shared memory.

    Args:
        load: The TMA atom and its coordinates.
        stages: Number of stages.
        rows: Blocks of 128 rows of a stage.
        along_k: Blocks of a stage along K.
    """

    def __init__(self, load: tuple[cute.CopyAtom, cute.Tensor], stages: int, rows: int, along_k: int):
        self.atom, self.coords = load
        self.count, self.rows, self.along_k = stages, rows, along_k
        self.memory = cute.arch.alloc_smem(cute.Uint16, stages * rows * along_k * BYTES // 2, alignment=128)

    def fetch(self, stage: cute.Int32, barrier: cute.Pointer, first: cute.Int32, k: cute.Int32 | int) -> None:
        """Issue the loads of a stage, from row block ``first`` on."""
        words, tile = BYTES // 2, (1, self.along_k, BYTES // 2)
        tiles = cute.group_modes(cute.flat_divide(self.coords, tile), 0, 3)
        for row in cute.range_constexpr(self.rows):
            layout = cute.make_layout(tile, stride=(self.along_k * words, words, 1))
            at = self.memory + (stage * self.rows + row) * (self.along_k * words)
            here = cute.group_modes(cute.make_tensor(at, layout), 0, 3)
            target, source = cpasync.tma_partition(self.atom, 0, cute.make_layout(1), here, tiles)
            cute.copy(self.atom, source[None, first + row, k, 0], target, tma_bar_ptr=barrier)

    def stages(self, element: type[cute.Numeric], layout: cute.Layout) -> cute.Tensor:
        """Return the factors of all stages in the modes of their ``layout`` in tensor memory, and a mode of stages.

        Blocks along K are adjacent here, so that one load has them all.
        """
        shape, row = layout.shape, self.along_k * BYTES
        stride = (((16, 4, row), (0, 1)), 0, (cute.size(shape, mode=[0, 1, 1]), BYTES))
        stages = cute.make_layout((*shape, self.count), stride=(*stride, self.rows * row))
        return cute.make_tensor(cute.recast_ptr(self.memory, dtype=element), stages)


def wait_for_set(consumer: pipeline.PipelineConsumer) -> pipeline.Slot:
    """Return the next stage when it is full, and the MMAs of two stages before it are complete."""
    stages = consumer.pipe.num_stages
    if stages > SETS:  # Otherwise the next stage is full only after those MMAs.
        index, phase = consumer.state.index, consumer.state.phase
        wraps = index < SETS
        index = index + (stages - SETS) if wraps else index - SETS
        cute.arch.mbarrier_wait(consumer.pipe.empty(index), phase ^ 1 if wraps else phase)
    return consumer.wait_and_advance()


class ScaledMmas:
    """Issue of the copies of scale factors and of the MMAs of a stage, by one thread.

    Args:
        mma: The MMA.
        scaling: A key of :data:`VECTORS`.
        operands: A and B in shared memory by MMAs, in bytes or elements of 8 bits.
        factors: Those of A and B.
        memory: The columns of tensor memory of both sets of factors.
    """

    def __init__(
        self,
        mma: cute.TiledMma,
        scaling: str,
        operands: Sequence[cute.Tensor],
        factors: Sequence[ScaleOperand],
        memory: cute.Pointer,
    ):
        self.mma, self.memory = mma, memory
        m, n, k = mma.shape_mnk
        a, b = (cute.recast_tensor(x, cute.Float4E2M1FN) if x.element_type.is_integer else x for x in operands)
        self.operands = mma.make_fragment_A(a), mma.make_fragment_B(b)
        tile, vector = (m, n, _MMAS * k), VECTORS[scaling]
        self.layout, self.columns_of_tile = mma.make_fragment_C(mma.partition_shape_C((m, n))).layout, n
        self.element = cute.Float8E8M0FNU if scaling == "mx" else cute.Float8E4M3FN
        sfa, sfb = (
            make(mma, tile, vector, 1)[None, None, None, 0]
            for make in (blockscaled.make_smem_layout_sfa, blockscaled.make_smem_layout_sfb)
        )
        self.layouts = (
            blockscaled.make_tmem_layout_sfa(mma, tile, vector, sfa),
            blockscaled.make_tmem_layout_sfb(mma, tile, vector, sfb),
        )
        self.factors = [x.stages(self.element, y) for x, y in zip(factors, self.layouts)]
        self.copy = cute.make_copy_atom(tcgen05.Cp4x32x128bOp(mma.op.cta_group), self.element)
        a, b = factors
        self.starts = (0, a.along_k * COLUMNS)  # first columns of a set for A and B
        self.columns = self.starts[1] + b.rows * b.along_k * COLUMNS
        self.set = cute.Int32(0)

    def accumulator(self, memory: cute.Pointer) -> cute.Tensor:
        """Return the accumulator at an address."""
        return cute.make_tensor(memory, self.layout)

    def first(self, tiles: Tiles, tile: cute.Int32 | int) -> cute.Int32 | int:
        """Return the columns of tensor memory before those of the factors of the first column of a tile."""
        n = self.columns_of_tile
        return tiles.place(tile).column * n % ROWS // _ROWS_OF_COLUMN if n % ROWS else 0

    def wait(self, consumer: pipeline.PipelineConsumer) -> pipeline.Slot:
        """Return the next stage when it is full, and the MMAs of two stages before it are complete."""
        return wait_for_set(consumer)

    def multiply(
        self, acc: cute.Tensor, stage: cute.Int32, first: cute.Int32 | int, accumulate: cute.Boolean | bool
    ) -> None:
        """Copy the factors of a stage to tensor memory, and multiply.

        Args:
            acc: The accumulator.
            stage: The stage.
            first: The result of :meth:`first`.
            accumulate: Add to the accumulator; otherwise the first MMA overwrites it.
        """
        memory = self.memory + self.set * self.columns
        pairs = []
        for operand, source, layout, start, offset in zip(
            self.operands, self.factors, self.layouts, self.starts, (0, first)
        ):
            held = self._held(memory + start, layout)
            copy = tcgen05.make_s2t_copy(self.copy, cute.filter_zeros(held))
            thread = copy.get_slice(0)
            source = thread.partition_S(cute.filter_zeros(source))[None, None, None, None, stage]
            cute.copy(copy, source, thread.partition_D(cute.filter_zeros(held)))
            pairs.append([operand[None, None, None, stage], self._held(memory + (start + offset), layout)])
        self.set = self.set ^ 1
        cute.gemm(self.mma, acc, *pairs, accumulate=accumulate)

    def _held(self, memory: cute.Pointer, layout: cute.Layout) -> cute.Tensor:
        """Return factors in tensor memory from a column on."""
        return cute.make_tensor(cute.recast_ptr(memory, dtype=self.element), layout)
