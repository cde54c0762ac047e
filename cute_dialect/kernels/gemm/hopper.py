"""Persistent, warp-specialized Hopper GEMM: ``C[M,N] = A[M,K] * B[N,K]^T`` with TMA, mbarriers and wgmma.

Warpgroup 0 is the producer: one of its threads fills a ring of stages in shared memory by TMA. In a cluster along M,
each block loads its own tile of A. It also loads a slice of the shared tile of B, which is multicast to all blocks. In
a cluster along N, A is shared instead. The other warpgroups are consumers. Each one multiplies 64 rows of A by the
whole tile of B and keeps the accumulator in registers. The epilogue converts it and stores it through shared memory by
TMA, 16 rows per warp.

The rasterization takes tiles in groups of ``group`` cluster rows. Odd groups go backwards, and every other tile
traverses K in reverse, so that the data read last is read again first, from the L2.

    full[s]:  one arrival, the producer's, which sets the expected bytes; then the bytes, from all loading blocks
    empty[s]: one arrival per consumer warpgroup of each block that shares the stage

The grid is the smallest number of blocks that needs no more waves than a full GPU. Consumers share a tile
(:class:`Cooperative`) or alternate between tiles (:class:`Pingpong`). Blocks compute whole tiles (:class:`Whole`), or
share them by split-K or stream-K (:mod:`~cute_dialect.kernels.gemm.split_k`).

    launch(a, b, c)                                              # arrays; the first call of a specialization compiles
    launch(a, b, c, config=GemmConfig(tile=(128, 128, 64)))

>>> "wgmma<64x256x16" in gemm_text(GemmConfig())
True
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.epilogue.combination import Addends, extents_of
from cute_dialect.kernels.epilogue.emit import Fused
from cute_dialect.kernels.gemm.block_scaling import Scales
from cute_dialect.kernels.gemm.config import BITS, GemmConfig, SplitConfig
from cute_dialect.kernels.gemm.epilogue_store import BUFFER, Result
from cute_dialect.kernels.gemm.host import (
    arguments_of,
    as_read,
    beside_maps,
    check_arguments,
    elements_of,
    layouts_of,
    load_map,
    ring_of,
    store_map,
    store_widths,
    with_modes,
)
from cute_dialect.kernels.gemm.mainloop import FromRegisters, Item, Operand, Place, Products, Shared, Tiles
from cute_dialect.kernels.gemm.operands import count_of
from cute_dialect.kernels.gemm.split_k import Parts, Stream
from cute_dialect.kernels.gemm.unaligned import any_gemm
from cute_dialect.lang import hopper, pipeline, utils
from cute_dialect.lang.nvgpu import cpasync, warpgroup

DEFAULT = GemmConfig()

TURN = 2
"""The first of two named barriers that pass the tensor cores between the warpgroups."""

REGISTERS = {2: (40, 232), 3: (32, 160)}
"""Consumers -> registers per thread of the producer and of a consumer. One consumer needs no reallocation: 256 threads
have 255 registers each."""


@cute.jit
def launch(
    A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, workspace: cute.Tensor | None = None,
    flags: cute.Tensor | None = None, counters: cute.Tensor | None = None, scale_a: cute.Tensor | None = None,
    scale_b: cute.Tensor | None = None, source: cute.Tensor | None = None, bias: cute.Tensor | None = None,
    alpha: cute.Float32 | None = None, beta: cute.Float32 | None = None, operands: Any = None,
    places: cute.Tensor | None = None, config: cute.Constexpr[Any] = DEFAULT,
):  # fmt: skip
    """Launch the kernel of a configuration.

    Args:
        A, B, C: Matrices, or batches of them, in the layouts of the configuration.
        workspace: f32 scratch for partial accumulators (split-K, stream-K).
        flags, counters: Zeroed i32 semaphores of stream-K and split-K.
        scale_a, scale_b: Block scales.
        source, bias, alpha, beta, operands: Arguments of the epilogue.
        places: Offsets of the matrices of a pointer array.
        config: A :class:`GemmConfig` or :class:`SplitConfig`.
    """
    config.check()
    c, parts = (config.base, config.parts) if isinstance(config, SplitConfig) else (config, 1)
    addends, shared = (
        Addends(source, bias, alpha, beta, operands),
        Shared(workspace, counters if flags is None else flags),
    )
    scales = Scales(scale_a, scale_b)
    behind = {"workspace": workspace, "flags": flags, "counters": counters, "scale_a": scale_a, "scale_b": scale_b}
    behind |= addends._asdict() | {"places": places}
    C = with_modes(c, C)
    check_arguments(config, A, B, C, behind)
    extents = extents_of(C)
    c.epilogue.check_shapes(C, addends, array=c.array, groups=count_of(places))
    if c.epilogue.reduces or c.epilogue.whole_tiles:
        addends = addends._replace(extents=extents[:2])
    if c.epilogue.whole_rows:
        assert extents[1] <= c.tile[1], "N must be at most the tile N, because the epilogue needs whole rows"
    if c.epilogue.reduces:
        c.epilogue.check_parts(extents[1], addends, config.piece if parts > 1 else c.part)
    fallback = any_gemm(A, B, C) if c.fallback else None
    A, B, C = as_read(c, A, B, C)
    m, n, k = c.tile
    mma = hopper.make_trivial_tiled_mma(
        A.element_type, B.element_type, "k" if c.through_registers else hopper.major(A), hopper.major(B),
        number(c.sums), (c.sharers, 1, 1), (64, n), "rmem" if c.through_registers else None,
    )  # fmt: skip
    if c.saturate:
        atom = warpgroup.MmaI8Op(A.element_type, B.element_type, cute.Int32, (64, n, 32), saturate=True)
        mma = cute.make_tiled_mma(cute.make_mma_atom(atom), (c.sharers, 1, 1))
    rings = ring_of(A, (m, k), c), ring_of(B, (n, k), c)
    tma_a, tma_b = load_map(c, A, (m, k), c.cluster_n), load_map(c, B, (n, k), c.cluster_m)
    tmas_c = {width: None if c.direct else store_map(c, C, width) for width in store_widths(config)}
    tmas_beside = beside_maps(config, addends)
    raster = utils.GroupedRaster(
        cute.ceil_div(extents[:2], (m * c.cluster_m, c.columns * c.cluster_n)), c.group, serpentine=c.serpentine,
        cluster=c.cluster, sms=c.at_once,
        matrices=places.shape[1] if c.array else extents[2] if c.batch else None,
    )  # fmt: skip
    k_tiles = cute.ceil_div(A.shape[1], k)
    grid = WORK[work_of(config)].grid(raster, k_tiles, parts)
    target = C if c.direct else None
    gemm(
        tma_a, tma_b, tmas_c, tmas_beside, mma, rings, raster, k_tiles, shared, addends, scales, places, target, config
    ).launch(grid=grid, block=c.threads, cluster=(c.cluster, 1, 1), fallback=fallback, pdl=c.dependent)


@cute.kernel(min_blocks=1)
def gemm(
    tma_a: Any, tma_b: Any, tmas_c: dict[int, Any], tmas_beside: dict[int, dict[int, Any]], mma: cute.TiledMma,
    rings: Any,
    raster: utils.GroupedRaster, k_tiles: cute.Int32, shared: Shared, addends: Addends, scales: Scales, places: Any,
    target: Any, config: cute.Constexpr[Any],
):  # fmt: skip
    c = config.base if isinstance(config, SplitConfig) else config
    m, n, k = c.tile
    # This block's tiles: every n-th tile, n being the number of clusters.
    tiles = Tiles(c, raster, places)
    work = WORK[work_of(config)](config, tiles, k_tiles, shared)
    # The producer thread prefetches only the tensor maps that it loads with, because every thread waits for its first
    # load.
    if cute.arch.thread_idx().x == 0:
        for atom, _ in (tma_a, tma_b):
            cpasync.prefetch_descriptor(atom)

    sA, sB, staging = allocate(c, (tma_a[0], tma_b[0]), rings)
    of_a, of_b = tiles.sharers()
    a = Operand(tma_a, sA, (m, k), c.cluster_n, tiles.column, k_major=c.major_a == "k", mask=of_a, batch=c.batch)
    b = Operand(
        tma_b, sB, (n, k), c.cluster_m, tiles.row, k_major=c.major_b == "k", mask=of_b, first_out=c.stream_b,
        batch=c.batch,
    )  # fmt: skip
    producer, consumer = ring_between(c)
    loads = Loads(c, a, b, producer, tiles, k_tiles)
    begin_loads(c, loads, work.first)

    def consume(group: Any) -> None:
        if not c.direct and cute.arch.thread_idx().x == 128:
            for tmas in (tmas_c, *tmas_beside.values()):
                for atom, _ in tmas.values():
                    cpasync.prefetch_descriptor(atom)
        kind = FromRegisters if c.through_registers else Products
        products = kind(c, mma, sA, sB, 0 if c.schedule == "pingpong" else group * 128, scales)
        whole = number(c.output).is_integer
        fused = Fused(c.epilogue, addends, pairs=c.major_c == "n", whole=whole, batch=c.batch, lanes=c.lanes)
        result = Result(c, tmas_c, staging, products.sums, group, fused, target, tmas_beside)
        work.consume(ROLES[c.schedule](c, consumer, products, result, tiles, k_tiles))

    take_roles(c, lambda: work.produce(loads), consume)


def allocate(c: GemmConfig, atoms: Sequence[Any], rings: Any) -> tuple[Any, Any, Any]:
    """Allocate the stages of A and B and the staging buffers, 64 rows of C each. The barriers follow them."""
    sA, sB = (cute.smem_tensor(atom.value_type, layout.outer, 1024, layout.inner) for atom, layout in zip(atoms, rings))
    return sA, sB, cute.arch.alloc_smem(cute.Uint8, c.consumers * c.buffers * BUFFER, alignment=1024)


def ring_between(c: GemmConfig, stage_bytes: int = 0, *, by_warp: bool = False) -> tuple[Any, Any]:
    """Initialize the barriers of the stage ring and return its producer and consumer ends.

    Args:
        stage_bytes: Bytes of a stage, if it has more than A and B.
        by_warp: Each warp reads a part of the stage to registers itself.
    """
    # A slot is released per warpgroup, or per warp if each warp reads a part of it.
    by_warp |= c.through_registers
    agent = pipeline.Agent.Thread if by_warp else pipeline.Agent.WarpGroup
    consumers = c.sharing * c.sharers * (4 if by_warp else 1)
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=c.stages, producer_group=1,
        consumer_group=pipeline.CooperativeGroup(agent, consumers), tx_count=stage_bytes or c.stage_bytes,
        cta_layout_vmnk=cute.make_layout((1, c.cluster_m, c.cluster_n, 1)), defer_sync=True,
    )  # fmt: skip
    return pipe.make_participants()


def begin_loads(c: GemmConfig, loads: "Loads", first: Item) -> None:
    """Synchronize the block or cluster after its barriers are initialized, and start the first loads."""
    # Loads that signal only this block's barriers start before the cluster and block barriers: the issuing thread has
    # initialized those mbarriers itself. No other thread waits for these loads to be issued.
    blocks = cute.make_layout(c.cluster)
    pipeline.pipeline_init_arrive(blocks, is_relaxed=True)
    if c.cluster == 1:
        if cute.arch.warpgroup_idx() == 0:
            cute.arch.barrier_arrive(0, c.threads)
        else:
            cute.arch.barrier(0, c.threads)
    if c.dependent:
        cute.arch.griddepcontrol_wait()
        cute.arch.griddepcontrol_launch_dependents()
    loads.early(first)
    if c.cluster > 1:
        pipeline.pipeline_init_wait(blocks)


def take_roles(c: GemmConfig, produce: Callable[[], None], consume: Callable[[Any], None]) -> None:
    """Run ``produce`` in one thread of warpgroup 0 and ``consume(index)`` in the others, then wait for the cluster."""
    warp_group, warp = cute.arch.warpgroup_idx(), cute.arch.warp_idx() % 4
    if warp_group == 0:
        if c.consumers in REGISTERS:
            cute.arch.setmaxregister_decrease(REGISTERS[c.consumers][0])
        if warp == 0 and cute.arch.elect_one():
            produce()
    else:
        if c.consumers in REGISTERS:
            cute.arch.setmaxregister_increase(REGISTERS[c.consumers][1])
        consume(warp_group - 1)
    if c.cluster > 1:
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()


class Loads:
    """Producer: one thread that fills the ring of stages."""

    def __init__(self, c: GemmConfig, a: Any, b: Any, producer: Any, tiles: Tiles, k_tiles: Any):
        self.c, self.operands, self.producer, self.tiles, self.k_tiles = c, (a, b), producer, tiles, k_tiles

    def early(self, item: Item) -> None:
        """Issue the loads of the first stages that signal only this block's barriers.

        The issuing thread need not wait, because it has initialized the barriers itself: in a full warp ``elect_one``
        always elects the same thread.
        """
        if self.c.early and cute.arch.warp_idx() == 0:
            with cute.arch.elect_one():
                pipe, place = self.producer.pipe, self.tiles.place(item.tile)
                for i in range(cute.min(item.steps, self.c.stages)):
                    cute.arch.mbarrier_arrive_and_expect_tx(pipe.full(i), pipe.tx_count)
                    self._fetch(i, pipe.full(i), item.k + i, place, shared=False)

    def begin(self, item: Any) -> Any:
        """Issue the multicast loads of the first stages, which :meth:`early` left out, and return the number of those
        stages.
        """
        if not self.c.early:
            return cute.Int32(0)
        done, pipe = cute.min(item.steps, self.c.stages), self.producer.pipe
        if self.c.cluster > 1:
            place = self.tiles.place(item.tile)
            for i in range(done):
                self._fetch(i, pipe.full(i), item.k + i, place, shared=True)
        self.producer.state.skip(done)
        return done

    def _fetch(self, index: Any, barrier: Any, k: Any, place: Place, shared: bool | None = None) -> None:
        for operand, row, matrix in zip(self.operands, place, place.of):
            if shared is None or operand.shared == shared:
                operand.fetch(index, barrier, row, k, matrix)

    def stage(self, k: Any, place: Place) -> None:
        """Fill the next stage as soon as it is free."""
        slot = self.producer.acquire_and_advance()
        self._fetch(slot.index, slot.barrier, k, place)

    def whole(self, first: Any, done: Any) -> None:
        """Load all tiles of this block from ``first`` on. The first ``done`` stages are already issued."""
        backwards = cute.Boolean(False)
        for tile in range(first, self.tiles.count(), self.tiles.step):
            place = self.tiles.place(tile)
            for i in range(done, self.k_tiles):
                self.stage(self.k_tiles - 1 - i if self.c.serpentine and backwards else i, place)
            done, backwards = cute.Int32(0), not backwards


class Cooperative:
    """Consumers that share a tile, 64 rows each."""

    def __init__(self, c: GemmConfig, consumer: Any, products: Products, result: Result, tiles: Tiles, k_tiles: Any):
        self.c, self.consumer, self.products, self.result = c, consumer, products, result
        self.tiles, self.k_tiles = tiles, k_tiles

    def whole(self, first: Any) -> None:
        """Multiply and store this block's tiles from ``first`` on."""
        if self.c.scaled or (self.c.promote and self.c.deferred):
            self._promoted(first)
            return
        if self.c.deferred and not self.result.wide:
            self._deferred(first)
            return
        for tile in range(first, self.tiles.count(), self.tiles.step):
            place = self.tiles.place(tile)
            ahead = self.result.ahead(place)
            self.products.of_tile(self.consumer, self.k_tiles, place)
            self.result.convert(place, ahead)
            self.result.store(place, ahead=ahead)
        self.result.finish()

    def _promoted(self, first: Any) -> None:
        """Main loop with two-level accumulation. The first scales of a tile are loaded before the previous tile is
        stored.

        With ``deferred``, the previous tile is stored while the first stage of this one is multiplied.
        """
        products, result, tiles, deferred = self.products, self.result, self.tiles, self.c.deferred
        place = before = tiles.nowhere()
        if first < tiles.count():
            place = tiles.place(first)
            products.ask(place)
        for tile in range(first, tiles.count(), tiles.step):
            meanwhile = partial(self._store_if, tile != first, before) if deferred else None
            products.of_tile(self.consumer, self.k_tiles, place, meanwhile=meanwhile)
            here, following = place, tile + tiles.step
            if following < tiles.count():
                place = tiles.place(following)
                products.ask(place)
            result.convert(here)
            if deferred:
                before = here
            else:
                result.store(here)
        if deferred and first < tiles.count():
            result.store(before)
        result.finish()

    def _store_if(self, there: Any, place: Any) -> None:
        if there:
            self.result.store(place)

    def _deferred(self, first: Any) -> None:
        """Main loop with a deferred store: the previous tile is stored during the first two K steps of this one."""
        consumer, products, result = self.consumer, self.products, self.result
        before = self.tiles.nowhere()
        for tile in range(first, self.tiles.count(), self.tiles.step):
            place = self.tiles.place(tile)
            ahead = result.ahead(place)
            slot = consumer.wait_and_advance()
            products.begin(slot, accumulate=False)
            if tile != first:
                result.store(before, 0)
            slot = products.go_on(consumer, slot, range(1, cute.min(self.k_tiles, 2)))
            if tile != first:
                result.store(before, 1)
            products.end(products.go_on(consumer, slot, range(2, self.k_tiles)))
            result.convert(place, ahead)
            before = place
        result.store(before)
        result.finish()


class Pingpong:
    """Consumers that alternate between tiles: one runs the main loop while the other runs its epilogue.

    Each of the two warpgroups computes all rows of its tile, and owns the tensor cores for a whole main loop. Before
    its first K step, a warpgroup waits at its named barrier. The other one arrives there after it has issued its last
    step.

    This order is also needed for correctness. An mbarrier distinguishes only two phases. A warpgroup that waits while
    the ring wraps around twice could mistake the current phase of a slot for an earlier one.

        empty[s]: one arrival per block that shares the stage, because only one warpgroup uses a slot
        turn[w]:  named barriers 2 and 3 with 256 threads; complete when the other warpgroup has issued its last step
    """

    def __init__(self, c: GemmConfig, consumer: Any, products: Products, result: Result, tiles: Tiles, k_tiles: Any):
        self.consumer, self.products, self.result, self.tiles, self.k_tiles = consumer, products, result, tiles, k_tiles

    def whole(self, first: Any) -> None:
        """Multiply and store every other tile of this block from ``first`` on."""
        consumer, products, result, tiles = self.consumer, self.products, self.result, self.tiles
        group = result.group
        mine, other = group + TURN, (group ^ 1) + TURN
        if group == 1:  # warpgroup 0 may start at once
            cute.arch.barrier_arrive(other, 256)
        consumer.state.skip(group * self.k_tiles)
        for tile in range(first + group * tiles.step, tiles.count(), tiles.step * 2):
            place = tiles.place(tile)
            ahead = result.ahead(place)
            cute.arch.barrier(mine, 256)
            slot = consumer.wait_and_advance()
            products.begin(slot, accumulate=False)
            slot = products.go_on(consumer, slot, range(1, self.k_tiles))
            if tile + tiles.step < tiles.count():
                cute.arch.barrier_arrive(other, 256)
            products.end(slot)
            result.convert(place, ahead)
            result.store(place, ahead=ahead)
            consumer.state.skip(self.k_tiles)
        result.finish()


class Whole:
    """Work of a block that computes whole tiles: every n-th tile, n being the number of clusters."""

    def __init__(self, c: Any, tiles: Tiles, k_tiles: Any, shared: Shared):
        self.tiles, self.first = tiles, Item(tiles.first, 0, k_tiles)

    @staticmethod
    def grid(raster: utils.GroupedRaster, k_tiles: Any, parts: int) -> Any:
        """Return the number of blocks to launch."""
        return raster.persistent_grid()

    def produce(self, loads: Loads) -> None:
        """Load the operands of this block's tiles."""
        loads.whole(self.tiles.first, loads.begin(self.first))

    def consume(self, role: Any) -> None:
        """Multiply and store this block's tiles."""
        role.whole(self.tiles.first)


WORK = {"whole": Whole, "stream": Stream, "split": Parts}
ROLES = {"cooperative": Cooperative, "pingpong": Pingpong}


def work_of(config: Any) -> str:
    """Return the key of :data:`WORK` for a configuration: whole tiles, stream-K or split-K."""
    return "split" if isinstance(config, SplitConfig) else "stream" if config.stream_k else "whole"


@printed
def gemm_text(config: GemmConfig | SplitConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@gemm`` and its host function ``@launch``; the default is the default kernel with a fallback.

    The launch takes A, B, C, then the arguments that :func:`arguments_of` lists.

    Raises:
        ValueError: if the configuration is not supported.
    """
    config = GemmConfig(fallback=True) if config is None else config
    config.check()
    c = config.base if isinstance(config, SplitConfig) else config
    layouts, align = layouts_of(c), ["align<16>"] * 3
    if c.fallback:  # the fallback kernel takes any layout
        layouts, align = [re.sub("{.*?}", "", x) for x in layouts], ["align<1>"] * 3
    if c.direct:
        align[2] = f"align<{BITS[c.output] // 8}>"
    matrices = [cute.Tensor[number(e), *x] for e, x in zip(elements_of(c), zip(layouts, align))]
    return cute.trace(launch, *matrices, **arguments_of(config), config=config)
