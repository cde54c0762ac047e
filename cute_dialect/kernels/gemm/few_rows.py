"""Hopper GEMM for few rows: ``C[M,N] = A[M,K] * B[N,K]^T``, bound by the bandwidth of reading B.

The kernel is not persistent: each block computes one tile, and the first loads are issued before the block barrier. A
cluster has two uses:

- ``share``: neighbors along N share A. Each loads a slice, which is multicast.
- ``parts``: split-K. Each block multiplies one slice of K and sends its partial accumulator through distributed shared
  memory to the block that finishes those columns.

B is read once, so ``hint`` marks its lines evict-first in the L2. They do not displace data that is used again, and do
not wait until dirty lines are written back.

A problem with few columns is the transposed problem with few rows, whose C has contiguous columns.

A and B have separate rings, each filled by its own warp:

    full[s]:  one arrival, the producer's, which sets the expected bytes; then the bytes, from all loading blocks
    empty[s]: one arrival per consumer of the blocks that share the stage, if the stage is filled again

    launch(a, b, c)                                              # arrays; the first call of a specialization compiles

>>> "map_cluster" in few_rows_text(SkinnyConfig(columns=128, stages_a=6, stages=6, parts=2))
True
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.epilogue.combination import Addends
from cute_dialect.kernels.epilogue.emit import Fused
from cute_dialect.kernels.epilogue.fragment_layout import lanes_of
from cute_dialect.kernels.gemm.config import SkinnyConfig
from cute_dialect.kernels.gemm.epilogue_store import ColumnStore, RowStore
from cute_dialect.kernels.gemm.host import elements_of, layouts_of, store_map
from cute_dialect.kernels.gemm.mainloop import Operand
from cute_dialect.kernels.gemm.operands import check_extents
from cute_dialect.lang import hopper, pipeline, utils
from cute_dialect.lang.nvgpu import cpasync, warpgroup
from cute_dialect.lang.values.dtypes import type_of_mlir

DEFAULT = SkinnyConfig()
SW128 = cute.make_swizzle(3, 4, 3)
"""Swizzle of 128-byte lines in shared memory."""


@cute.jit
def launch(
    A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, source: cute.Tensor | None = None, bias: cute.Tensor | None = None,
    alpha: cute.Float32 | None = None, beta: cute.Float32 | None = None, operands: Any = None,
    config: cute.Constexpr[Any] = DEFAULT,
):  # fmt: skip
    """Launch one block per tile. The arguments after C belong to the epilogue."""
    c = config
    along = (("A", A, c.major_a == "k"), ("B", B, c.major_b == "k"), ("C", C, c.major_c == "n"))
    for name, x, row_major in along:
        if x.leading_dim != row_major:
            raise ValueError(f"launch: {name} must be contiguous along mode {int(row_major)}, got {x}")
    k_tiles = cute.ceil_div(A.shape[1], c.depth)
    check_extents(A, B, C)
    if c.parts > 1:
        assert k_tiles >= c.parts, f"K has fewer than {c.parts} stages"
    if c.live:
        assert A.shape[0] <= c.live, f"A has more than {c.live} rows"
    addends = Addends(source, bias, alpha, beta, operands)
    c.epilogue.check_shapes(C, addends)
    if c.epilogue.reduces:
        addends = addends._replace(extents=(C.shape[0], C.shape[1]))
        c.epilogue.check_parts(C.shape[1], addends, c.columns // c.pieces)
    mma = hopper.make_trivial_tiled_mma(
        A.element_type, B.element_type, hopper.major(A), hopper.major(B), cute.Float32, (c.consumers, 1, 1),
        (64, c.columns),
    )  # fmt: skip
    load = cpasync.G2SMulticast() if c.share > 1 else cpasync.G2S()
    tma_a, tma_b = _tma(load, A, (c.part_a, c.depth), 128), _tma(cpasync.G2S(), B, (c.columns, c.depth), c.l2)
    rings = _stages(A, (c.rows, c.depth), c.stages_a), _stages(B, (c.columns, c.depth), c.stages)
    to = C if c.direct else store_map(c.base, C, c.chunk)
    grid = (cute.ceil_div(C.shape[0], c.rows), cute.ceil_div(C.shape[1], c.columns * c.share) * c.cluster, 1)
    few_rows(tma_a, tma_b, to, mma, rings, k_tiles, addends, c).launch(
        grid=grid, block=c.threads, cluster=(1, c.cluster, 1), pdl=c.dependent
    )


def _stages(matrix: Any, tile: tuple[int, int], stages: int) -> Any:
    """Return the shared-memory layout (rows, K, stages) of stages: 128-byte lines, swizzled, along K or along rows."""
    rows, depth = tile
    if matrix.leading_dim == 1:
        layout = cute.make_layout((rows, depth, stages), stride=(depth, 1, rows * depth))
        return cute.make_composed_layout(SW128, 0, layout)
    order = utils.LayoutEnum.from_tensor(matrix)
    return hopper.make_smem_layout_a(order, (rows, None, depth), matrix.element_type, stages)


def _tma(op: Any, matrix: Any, tile: tuple[int, int], l2: int) -> Any:
    """Return the TMA atom that loads tiles of a matrix, and its coordinate tensor."""
    stages = _stages(matrix, tile, 1)
    stage = cute.make_composed_layout(stages.inner, 0, cute.slice_(stages.outer, (None, None, 0)))
    return cpasync.make_tiled_tma_atom(op, matrix, stage, tile, l2_promotion=l2)


@cute.kernel(name="gemm", min_blocks=1)
def few_rows(
    tma_a: Any, tma_b: Any, to: Any, mma: cute.TiledMma, rings: Any, k_tiles: cute.Int32, addends: Addends,
    config: cute.Constexpr[SkinnyConfig],
):  # fmt: skip
    """Compute one tile, or this block's slice of it."""
    c = config
    tile = _Tile(c, k_tiles)
    a = _Stages(c, tma_a, rings[0], c.rows_a, c.share, (tile.row, tile), k_major=c.major_a == "k")
    b = _Stages(c, tma_b, rings[1], c.columns, 1, (tile.column, tile), k_major=c.major_b == "k", first_out=c.hint)
    exchange = _Exchange(c, tile) if c.parts > 1 else None

    # The producer threads initialize the barriers. They start loads that need no other block before the cluster
    # barrier.
    thread, group = cute.arch.thread_idx().x, cute.arch.warpgroup_idx()
    if thread == 128 * c.consumers:
        a.init_barriers()
    if thread == 128 * c.consumers + 32:
        b.init_barriers()
    blocks = cute.make_layout(c.cluster)
    pipeline.pipeline_init_arrive(blocks, is_relaxed=True)
    if c.cluster == 1:
        pipeline.pipeline_init_wait(blocks)
    if c.dependent:
        cute.arch.griddepcontrol_wait()
        cute.arch.griddepcontrol_launch_dependents()
    if thread == 128 * c.consumers:
        a.begin(fetch=c.share == 1)
    if thread == 128 * c.consumers + 32:
        b.begin()
    if c.cluster > 1:
        pipeline.pipeline_init_wait(blocks)

    # Two warps are producers, the warpgroups are consumers.
    if group == c.consumers:
        if cute.arch.warp_idx() % 4 == 0:
            if cute.arch.elect_one():
                a.produce(fetched=c.share == 1)
        else:
            if cute.arch.elect_one():
                b.produce()
        if exchange is not None:
            exchange.meet()
    else:
        sums = _multiply(c, mma, a, b, tile, group)
        fused = Fused(c.epilogue, addends, pairs=c.major_c == "n")
        store = _Store(c, to, fused, tile, group, a.smem.iterator)
        if exchange is None:
            store(sums, 0, c.columns)
        else:
            exchange.send(sums, group)
            exchange.meet()
            exchange.receive(sums, group, store)


class _Tile:
    """Coordinates of a tile and of a slice of K. Adjacent blocks share a tile."""

    def __init__(self, c: SkinnyConfig, k_tiles: Any):
        self.row, block, _ = cute.arch.block_idx()
        self.column, self.part, self.k, self.steps = block, 0, 0, k_tiles
        if c.parts > 1:
            self.column, self.part = block // c.parts, block % c.parts
            self.k = self.part * k_tiles // c.parts
            self.steps = (self.part + 1) * k_tiles // c.parts - self.k
        self.neighbour = self.column % c.share if c.share > 1 else 0


class _Stages(pipeline.PipelineAsync):
    """Ring of an operand: TMA loads 128-byte lines to stages in shared memory.

    ``loaded`` is the number of tile rows that are loaded, and ``blocks`` the number of blocks that share them.
    """

    def __init__(
        self, c: SkinnyConfig, tma: Any, ring: Any, loaded: int, blocks: int, place: tuple[Any, _Tile], *,
        k_major: bool, first_out: bool = False,
    ):  # fmt: skip
        self.smem = cute.smem_tensor(tma[0].value_type, ring.outer, 1024, ring.inner)
        rows, _, stages = cute.product_each(cute.shape(self.smem))
        super().__init__(cute.arch.alloc_smem(cute.Int64, 2 * stages, alignment=8), stages, 1, c.consumers * blocks)
        here = self.smem
        if loaded < rows:
            strides = (c.depth, 1, rows * c.depth)
            here = cute.make_tensor(here.iterator, cute.make_layout((loaded, c.depth, stages), stride=strides))
        self.row, self.tile = place
        shape, rank = (loaded, c.depth), self.tile.neighbour
        self.operand = Operand(tma, here, shape, blocks, rank, k_major=k_major, first_out=first_out)
        if blocks > 1:  # the blocks of the cluster with the same slice of K
            self.operand.mask = sum(1 << i * c.parts for i in range(blocks)) << self.tile.part
        self.bytes = 128 * loaded

    def init_barriers(self) -> None:
        """Initialize the barriers, in one thread."""
        for stage in range(self.num_stages):
            cute.arch.mbarrier_init(self.full(stage), 1)
            cute.arch.mbarrier_init(self.empty(stage), self.consumers)
        cute.arch.mbarrier_init_fence()

    def fetch(self, slot: Any, step: Any) -> None:
        """Issue the load of this block's part of a stage."""
        self.operand.fetch(slot, self.full(slot), self.row, self.tile.k + step, None)

    def announce(self, slot: Any) -> None:
        """Set the expected bytes of a stage."""
        cute.arch.mbarrier_arrive_and_expect_tx(self.full(slot), self.bytes)

    def early(self) -> Any:
        """Return the number of stages that are filled without waiting."""
        return cute.min(self.tile.steps, self.num_stages)

    def begin(self, *, fetch: bool = True) -> None:
        """Set the expected bytes of the first stages, and issue their loads if ``fetch``."""
        for slot in range(self.early()):
            self.announce(slot)
            if fetch:
                self.fetch(slot, slot)

    def produce(self, *, fetched: bool = True) -> None:
        """Issue the loads of all stages. With ``fetched``, those of the first stages are already in flight."""
        early = self.early()
        if not fetched:
            for slot in range(early):
                self.fetch(slot, slot)
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.num_stages)
        state.skip(early)
        for step in range(early, self.tile.steps):
            self.producer_acquire(state)
            self.announce(state.index)
            self.fetch(state.index, step)
            state.advance()

    def filled_again(self, step: Any) -> Any:
        """Return True if the slot of step ``step - 1`` is filled again."""
        return step + (self.num_stages - 1) < self.tile.steps


def _multiply(c: SkinnyConfig, mma: Any, a: _Stages, b: _Stages, tile: _Tile, group: Any) -> Any:
    """Run the main loop and return the accumulator of a warpgroup: its rows of A times the tile of B."""
    part = mma.get_slice(group * 128)
    rA, rB = mma.make_fragment_A(part.partition_A(a.smem)), mma.make_fragment_B(part.partition_B(b.smem))
    sums = mma.make_fragment_C(mma.partition_shape_C((c.rows, c.columns)))
    thread = cute.arch.thread_idx().x % 128
    of_a, of_b = a.make_consumer(), b.make_consumer()
    before_a, before_b = _step(mma, sums, rA, rB, of_a, of_b, accumulate=False)
    for step in range(1, tile.steps):
        slot_a, slot_b = _step(mma, sums, rA, rB, of_a, of_b, accumulate=True)
        warpgroup.wait_group(1)
        # Slots that are not filled again are not released: the block that waits for the arrival could have exited.
        if (thread < 1) & b.filled_again(step):
            cute.arch.mbarrier_arrive(b.empty(before_b))
        again = (thread < c.share) & a.filled_again(step)
        if c.share > 1:
            peer = cute.arch.thread_idx().x % c.share * c.parts + tile.part
            cute.arch.mbarrier_arrive(a.empty(before_a), peer, pred=again)
        elif again:
            cute.arch.mbarrier_arrive(a.empty(before_a))
        before_a, before_b = slot_a, slot_b
    warpgroup.wait_group(0, sums)
    return sums


def _step(mma: Any, sums: Any, rA: Any, rB: Any, of_a: Any, of_b: Any, *, accumulate: bool) -> Any:
    """Issue the MMAs of one stage and return its slots."""
    slot_b = of_b.wait_and_advance().index
    slot_a = of_a.wait_and_advance().index
    warpgroup.fence()
    every = (None, None, None)
    cute.gemm(mma, sums, rA[(*every, slot_a)], rB[(*every, slot_b)], accumulate=accumulate)
    warpgroup.commit_group()
    return slot_a, slot_b


class _Exchange:
    """Split-K reduction through distributed shared memory. Each piece of a consumer's columns has an owner that reduces
    it.
    """

    def __init__(self, c: SkinnyConfig, tile: _Tile):
        self.c, self.tile = c, tile
        values, senders = c.inbox
        self.inbox = cute.smem_tensor(cute.Float32, cute.make_layout(values * senders), 16).iterator
        self.width = c.columns // 2 // c.pieces  # registers of a piece
        self.copy = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=128)

    def owner(self, group: Any, piece: int) -> Any:
        """Return the slice whose block finishes a piece."""
        c = self.c
        return (group * c.pieces + piece) * c.parts // (c.consumers * c.pieces)

    def slots(self, inbox: Any, group: Any, sender: Any) -> Any:
        """Return this thread's 16-byte vectors (4, vectors) in an inbox."""
        c = self.c
        groups = max(1, c.consumers // c.parts)
        layout = cute.make_layout(
            (4, self.width // 4, 128, groups, c.parts - 1), stride=(1, 512, 4, 64 * c.columns, c.inbox[0])
        )
        return cute.make_tensor(inbox, layout)[None, None, cute.arch.thread_idx().x % 128, group % groups, sender]

    def registers(self, sums: Any, piece: int) -> Any:
        """Return the accumulator of a piece, as vectors."""
        return cute.make_tensor(sums.iterator + piece * self.width, cute.make_layout((4, self.width // 4)))

    def send(self, sums: Any, group: Any) -> None:
        """Send the pieces that other blocks finish."""
        c, part = self.c, self.tile.part
        for piece in cute.range_constexpr(c.pieces):
            owner = self.owner(group, piece)
            if owner != part:
                # Senders use the inbox slots in order, counted from the owner.
                place = (part + (c.parts - 1) - owner) % c.parts
                far = cute.arch.map_dsmem_ptr(self.inbox, self.tile.neighbour * c.parts + owner)
                cute.copy(self.copy, self.registers(sums, piece), self.slots(far, group, place))

    def meet(self) -> None:
        """Wait until all blocks of the cluster have sent their pieces."""
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()

    def receive(self, sums: Any, group: Any, store: Any) -> None:
        """Add the received partial accumulators in a fixed order, and store the result."""
        c = self.c
        columns = c.columns // c.pieces
        for piece in cute.range_constexpr(c.pieces):
            if self.owner(group, piece) == self.tile.part:
                mine = self.registers(sums, piece)
                found = [cute.make_rmem_tensor((4, self.width // 4), cute.Float32) for _ in range(c.parts - 1)]
                for sender in cute.range_constexpr(c.parts - 1):
                    cute.copy(self.copy, self.slots(self.inbox, group, sender), found[sender])
                for sender in cute.range_constexpr(c.parts - 1):
                    for i in range(self.width):  # held in registers, so the passes unroll this loop
                        mine[i] = mine[i] + found[sender][i]
                store(mine, piece * columns, columns)


class _Store:
    """Epilogue of a warpgroup, for a range of columns at a time.

    ``memory`` is the stages of A, which are free by now. A stage begins with the rows of the first consumer, 64 lines
    of 128 bytes, followed by those of the next one. Each consumer stages its results in its own rows, which only it has
    read.
    """

    def __init__(self, c: SkinnyConfig, to: Any, fused: Fused, tile: _Tile, group: Any, memory: Any):
        self.c, self.to, self.fused, self.group = c, to, fused, group
        self.warp, self.lane = cute.arch.warp_idx() % 4, cute.arch.lane_idx()
        self.row, self.column = tile.row * c.rows + group * 64, tile.column * c.columns
        self.kind = type_of_mlir(c.output)
        self.store = None
        if not c.direct:
            kind = RowStore if c.major_c == "n" else ColumnStore
            self.store = kind(to, c.chunk, memory, c.stages_a * c.consumers, group, lanes_of(0))

    def __call__(self, sums: Any, first: int, columns: int) -> None:
        """Apply the epilogue to ``columns`` columns from ``first`` on, and store them."""
        values = cute.make_tensor(sums.iterator, cute.make_layout(columns // 2))
        self.fused.apply(values, columns, self.row + self.warp * 16, self.column + first)
        out = values
        if self.kind is not cute.Float32:
            out = cute.make_rmem_tensor(columns // 2, self.kind)
            for i in range(columns // 4):  # in pairs, which one instruction converts
                two, narrow = (cute.make_tensor(x.iterator + i * 2, cute.make_layout(2)) for x in (values, out))
                narrow.store(two.load().to(self.kind))
        if self.store is not None:
            self.by_chunks(self.store, out, self.column + first, columns)
        else:
            for half in cute.range_constexpr(2):
                row = self.row + self.warp * 16 + self.lane // 4 + 8 * half
                if row < self.to.shape[0]:
                    directly = self.along_a_row if self.c.major_c == "n" else self.across
                    directly(out, row, half, self.column + first, columns)

    def along_a_row(self, out: Any, row: Any, half: int, first: Any, columns: int) -> None:
        """Store registers to row-major memory. A thread has two adjacent elements in each 8 columns of two rows."""
        width = self.to.shape[1]
        column = first + self.lane % 4 * 2
        pairs = cute.make_layout((2, columns // 8), stride=(1, 8))
        start = (self.to[row, None].iterator + column).align(2 * self.kind.width // 8)
        line = cute.make_tensor(start, pairs)
        for j in range(columns // 8):  # held in registers, so the passes unroll this loop
            if column + j * 8 + 1 < width:
                two = cute.make_tensor(out.iterator + (j * 2 + half) * 2, cute.make_layout(2))
                line[None, j].store(two.load())
        if width % 2 == 1:  # an odd N leaves the last column without a neighbor
            for j in range(columns // 8):
                if column + j * 8 + 1 == width:
                    line[0, j] = out[(j * 2 + half) * 2]

    def across(self, out: Any, row: Any, half: int, first: Any, columns: int) -> None:
        """Store registers to column-major memory. Eight lanes have adjacent elements."""
        column = first + self.lane % 4 * 2
        line = self.to[row, None]
        for j in cute.range_constexpr(columns // 8):
            for i in cute.range_constexpr(2):
                if column + (j * 8 + i) < self.to.shape[1]:
                    line[column + (j * 8 + i)] = out[(j * 2 + half) * 2 + i]

    def by_chunks(self, store: Any, out: Any, first: Any, columns: int) -> None:
        """Store registers to shared memory, and from there by TMA."""
        c, chunk = self.c, self.c.chunk
        for i in cute.range_constexpr(columns // chunk):
            buffer = i % c.stages_a * c.consumers + self.group
            at = (self.row, first + chunk * i)
            store.put(store.registers(out, chunk // 2 * i), buffer, at, c.stages_a - 1)
        store.wait(0)


@printed
def few_rows_text(config: SkinnyConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@gemm`` and its host function ``@launch``, which takes A, B, C and the epilogue's arguments.

    Raises:
        ValueError: if the configuration is not supported.
    """
    config = config or DEFAULT
    config.check()

    c = config.base
    matrices = [cute.Tensor[type_of_mlir(e), layout, "align<16>"] for e, layout in zip(elements_of(c), layouts_of(c))]
    more = c.epilogue.arguments(c.output, row_major=c.major_c == "n")
    return cute.trace(launch, *matrices, **more, config=config)
