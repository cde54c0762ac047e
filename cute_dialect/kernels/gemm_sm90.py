"""Hopper GEMM: ``C[M,N] = A[M,K] * B[N,K]^T`` by TMA, mbarriers and warp-group MMA, as cute IR.

Persistent and warp-specialised.  Warp group 0 produces: one thread fills a ring of stages in shared memory by TMA; in a
cluster of two blocks along M each loads its own tile of A, and half of the tile of B for both (multicast).  The other
warp groups consume: each multiplies 64 rows of A by all of B per stage, accumulates in registers, converts, and writes
its rows through shared memory by TMA stores, one warp at a time.  Tiles are taken in groups of ``group`` cluster rows,
odd groups backwards, so that blocks that run at the same time share what they read through the L2 cache.

    full[s]:  one arrival (the producer's, with the bytes of the stage) and the bytes, whoever sends them
    empty[s]: one arrival of every consumer warp group of every block of the cluster

The number of blocks is the smallest one that needs as many waves as the chip's SMs allow.

>>> config = GemmConfig()
>>> config.tile, config.stages, config.smem_bytes
((128, 256, 64), 4, 229440)
>>> "cute.gemm" in gemm_sm90(config)
True
"""

from __future__ import annotations

from cute_dialect.kernels.gemm_fallback import FALLBACK_NOTE, emit_fallback
from cute_dialect.kernels.gemm_sm90_config import EVICT_FIRST, GemmConfig, Operand, head_of, one_more
from cute_dialect.kernels.gemm_sm90_epilogue import Fused
from cute_dialect.kernels.gemm_sm90_host import GemmHost
from cute_dialect.kernels.script import Script
from cute_dialect.kernels.values import Coordinate, Loop, Value

__all__ = ["GemmEmitter", "build_gemm_sm90", "gemm_sm90"]


def gemm_sm90(config: GemmConfig | None = None) -> str:
    """Return the file: kernel ``@gemm`` and host function ``@launch`` (A, B, C); without a configuration the default
    one, with a fallback.

    Raises ValueError for a bad configuration.
    """
    config = config or GemmConfig(fallback=True)
    more = f"\n//\n{FALLBACK_NOTE}" if config.fallback else ""
    return build_gemm_sm90(config).script(head_of(config) + more)


def build_gemm_sm90(config: GemmConfig) -> Script:
    """Return the module.  Raises ValueError for a bad configuration."""
    config.check()
    b = Script()
    emitter = GemmEmitter
    if config.schedule == "pingpong":
        from cute_dialect.kernels.gemm_sm90_pingpong import PingpongEmitter as emitter
    elif config.stream_k:
        from cute_dialect.kernels.gemm_sm90_stream import StreamEmitter as emitter
    gemm = emitter(b, config)
    gemm.kernel()
    gemm.host(fallback="launch_any" if config.fallback else "")
    if config.fallback:
        emit_fallback(b, config, gemm.check_shapes)
    return b


class GemmEmitter(GemmHost):
    """Emits one kernel and its host function."""

    arrivals_a_block = 0
    """Warp groups of a block that use a slot; all consumers if 0."""

    # ------------------------------------------------------------------------------------------------- kernel

    def kernel(self) -> None:
        """Emit ``@gemm``: ``tiles_m`` counts cluster rows, ``tiles_n`` tiles, ``k_tiles`` stages of K."""
        b, c = self.b, self.c
        cluster = (c.cluster, 1, 1) if c.cluster > 1 else None
        attributes = ["nvvm.minctasm = 1 : i32"]
        with b.kernel("gemm", self.parameters(), threads=c.threads, cluster=cluster, attributes=attributes) as p:
            self.load_a, self.load_b, self.store_c, self.tiles_m, self.tiles_n, self.k_tiles = p[:6]
            fused = self.epilogue_arguments()
            self.fused = Fused(b, c.epilogue, c.output, dict(zip(fused, p[len(p) - len(fused) :])))
            self.begin(p)
            self._prologue()
            # Registers that the producer gives up; 256 threads have 255 each anyway.
            give, take = {1: (0, 0), 2: (40, 232), 3: (32, 160)}[c.consumers]
            b.say("Warp group 0 produces, the others consume.")
            with b.if_else(self.group_of_warps.eq(0)) as (producer, consumer):
                with producer:
                    if give:
                        b.run("setmaxnreg", count=give, action='"decrease"')
                    with b.if_(self.warp.eq(0)), b.if_(b.arch("elect_one")):
                        self.produce()
                with consumer:
                    if take:
                        b.run("setmaxnreg", count=take, action='"increase"')
                    self._consumer()
            self._sync_cluster()

    def begin(self, parameters: tuple[Value, ...]) -> None:
        """Return which tiles this block has, and which stages of K of the first one."""
        b, c = self.b, self.c
        self.rank: Value | None = None
        b.say("This block's tiles: every grid-size-th one, from its own number on.")
        self.first_tile, self.step = b.block_id(), b.grid_size()
        if c.cluster > 1:
            self.rank = b.let("rank", b.arch("cluster_rank"))
            self.first_tile, self.step = self.first_tile // c.cluster, self.step // c.cluster
        self.tiles_of_matrix = self.tiles = self.tiles_m * self.tiles_n
        if c.batch:
            self.tiles = self.tiles_of_matrix * parameters[6]
        self.k_begin: Value | int = 0
        self.k_count = self.k_tiles
        self.start: tuple[Value, Value] | None = None  # the consumers' slot and phase before their first tile

    def _prologue(self) -> None:
        b, c = self.b, self.c
        b.say("Shared memory: the stages of A and B, two buffers a consumer for C, the barriers full and empty.")
        self.A = b.let("sA", b.alloc_smem(self.A_.smem))
        self.B = b.let("sB", b.alloc_smem(self.B_.smem))
        self.C = b.let("sC", b.alloc_smem(self.sC))
        self.barriers = b.let("barriers", b.alloc_smem(self.barriers_type))
        self.tid = b.let("tid", b.thread_id())
        warp = b.arch("warp_id")
        self.group_of_warps = b.let("warp_group", warp // 4)
        self.warp = b.let("warp", warp % 4)  # in its group
        self.lane = b.let("lane", b.arch("lane_id"))
        b.say("One thread makes the barriers.")
        with b.if_(self.tid.eq(0)):
            for tensor_map in (self.load_a, self.load_b, self.store_c):
                b.run("prefetch_tensormap", tensor_map)
            with b.for_(0, c.stages) as loop:
                b.run("mbarrier_init", self.full(loop.iv), 1)
                b.run("mbarrier_init", self.empty(loop.iv), (self.arrivals_a_block or c.consumers) * c.cluster)
            b.run("fence_mbarrier_init")
        # The producer's view of what is shared: the part that this block loads for the cluster.
        self.A_parts = b.view(b.iterator(self.A), self.A_.parts)
        self.B_parts = b.view(b.iterator(self.B), self.B_.parts)
        if c.early:
            b.say("The first loads: those that only this block's barriers see need not wait for the cluster.")
            self.early = b.minimum(self.k_count, c.stages)
            with b.if_(self.tid.eq(0)):
                place = self.place(self.early_tile())
                with b.for_(0, self.early) as loop:
                    b.run("mbarrier_arrive_expect_tx", self.full(loop.iv), c.stage_bytes)
                    for fetch, operand in ((self.fetch_a, self.A_), (self.fetch_b, self.B_)):
                        if operand.slices == 1:
                            fetch(loop.iv, loop.iv + self.k_begin, place)
        self._sync_cluster(relaxed=True)

    def _name(self, loop: Loop, iv: str, *names: str) -> tuple[Value, ...]:
        """Name a loop's values in the text; gives the carried ones."""
        for value, name in zip((loop.iv, *loop.args), (iv, *names)):
            self.b.let(name, value)
        return loop.args

    def _sync_cluster(self, *, relaxed: bool = False) -> None:
        b = self.b
        if self.c.cluster > 1:
            b.run("cluster_arrive", relaxed=relaxed)
            b.run("cluster_wait")
        elif relaxed:
            b.run("barrier")

    def full(self, stage: Value | int) -> Value:
        """Return the barrier that says that a stage is full."""
        return self.b.pointer(self.barriers, stage)

    def empty(self, stage: Value | int) -> Value:
        """Return the barrier that says that a stage is free."""
        return self.b.pointer(self.barriers, stage + self.c.stages)

    def next_slot(self, slot: Value, phase: Value) -> tuple[Value, Value]:
        """Return the next slot of the ring, and its phase."""
        b = self.b
        following = slot + 1
        wraps = following.eq(self.c.stages)
        return b.select(wraps, 0, following), phase ^ b.to_i32(wraps)

    def place(self, tile: Value) -> tuple[Value, Value, Value | None]:
        """First row and column of this block's part of a cluster tile, and the matrix."""
        b, c = self.b, self.c
        matrix = None
        if c.batch:
            matrix = tile // self.tiles_of_matrix
            tile = tile - matrix * self.tiles_of_matrix
        per_group = self.tiles_n * c.group
        group = tile // per_group
        inside = tile - group * per_group
        first = group * c.group
        rows = b.minimum(self.tiles_m - first, c.group)
        column = inside // rows
        row = first + (inside - column * rows)
        if c.serpentine:
            column = b.select((group & 1).ne(0), self.tiles_n - 1 - column, column)
        if c.cluster_m > 1 and self.rank is not None:
            row = row * c.cluster_m + self.rank
        if c.cluster_n > 1 and self.rank is not None:
            column = column * c.cluster_n + self.rank
        m0, n0 = b.let("m0", row * c.tile[0]), b.let("n0", column * c.tile[1])
        return m0, n0, matrix

    # ----------------------------------------------------------------------------------------------- producer

    def fetch_a(self, slot: Value, k_tile: Value, place: tuple[Value, Value, Value | None]) -> None:
        """Fetch A's part of a stage, by this block."""
        self._fetch(self.A_, self.load_a, self.A_parts, slot, k_tile, place[0], place[2])

    def fetch_b(self, slot: Value, k_tile: Value, place: tuple[Value, Value, Value | None]) -> None:
        """Fetch B's part of a stage, by this block."""
        self._fetch(self.B_, self.load_b, self.B_parts, slot, k_tile, place[1], place[2])

    def _fetch(
        self, operand: Operand, load: Value, parts: Value, slot: Value, k_tile: Value, row: Value, matrix: Value | None
    ) -> None:
        b, c = self.b, self.c
        shared = operand.slices > 1 and self.rank is not None
        if shared:
            assert self.rank is not None
            row = row + self.rank * operand.part
        where = b.view(b.int_tuple(operand.coordinates(k_tile * c.tile[2], row, matrix)), operand.where)
        atom = b.op("cute.atom.set_value", load, self.full(slot), field='"tma_bar"')
        if shared:
            mask = b.constant((1 << c.cluster) - 1, "i16")
            atom = b.op("cute.atom.set_value", atom, mask, field='"multicast_mask"')
        if c.stream_b and operand is self.B_:
            atom = b.op("cute.atom.set_value", atom, b.constant(EVICT_FIRST, "i64"), field='"cache_hint"')
        part: Coordinate = (None, self.rank if shared else 0, None, slot)
        b.copy(atom, where, self._stage(operand, parts, part))

    def _stage(self, operand: Operand, tensor: Value, where: Coordinate) -> Value:
        """Return a stage's tile, with a mode of one matrix where the coordinates have one."""
        b = self.b
        tile = b.slice(tensor, where)
        return b.view(b.iterator(tile), operand.tile_layout) if self.c.batch else tile

    def early_tile(self) -> Value:
        """Return the tile that is begun with."""
        return self.first_tile

    def fetch_early_shared(self) -> None:
        """Fetch what the first stages need of operands that the cluster shares."""
        b = self.b
        for fetch, operand in ((self.fetch_a, self.A_), (self.fetch_b, self.B_)):
            if operand.slices > 1:
                place = self.place(self.early_tile())
                with b.for_(0, self.early) as loop:
                    fetch(loop.iv, loop.iv + self.k_begin, place)

    def produce(self) -> None:
        """Fill the ring for all tiles."""
        self.produce_tiles(*self.begun())

    def begun(self) -> tuple[Value, Value, Value]:
        """Return the stages of the first tile that are loaded already, slot and phase of the next one."""
        b, c = self.b, self.c
        zero = b.constant(0)
        if not c.early:
            return zero, zero, zero
        self.fetch_early_shared()
        return self.early, self.early % c.stages, (self.early // c.stages) & 1

    def announce(self, slot: Value, phase: Value) -> None:
        """Wait until a slot is free, and say how many bytes come."""
        b = self.b
        b.run("mbarrier_wait", self.empty(slot), phase ^ 1)
        b.run("mbarrier_arrive_expect_tx", self.full(slot), self.c.stage_bytes)

    def produce_tiles(self, done: Value, slot: Value, phase: Value) -> None:
        """Fill the ring for this block's tiles from ``first_tile`` on, ``done`` stages of which are there."""
        b, c = self.b, self.c
        zero = b.constant(0)
        with b.for_(self.first_tile, self.tiles, self.step, [slot, phase, done, zero]) as tiles:
            slot, phase, start, flip = self._name(tiles, "tile", "slot", "phase", "start", "flip")
            place = self.place(tiles.iv)
            with b.for_(start, self.k_tiles, 1, [slot, phase]) as loop:
                slot, phase = self._name(loop, "k", "slot", "phase")
                self.announce(slot, phase)
                k = loop.iv
                if c.serpentine:  # every other tile walks K backwards: what the L2 saw last is read first
                    k = b.select(flip.ne(0), self.k_tiles - 1 - k, k)
                self.fetch_a(slot, k, place)
                self.fetch_b(slot, k, place)
                loop.next(*self.next_slot(slot, phase))
            tiles.next(*loop.results, zero, flip ^ 1)

    # ---------------------------------------------------------------------------------------------- consumers

    def _consumer(self) -> None:
        b, c = self.b, self.c
        self.consumer = self.group_of_warps - 1
        self.tiled_mma = b.op("cute.make_tiled_mma", b.atom(self.wgmma), type=self.mma)
        thread = self.thread_of_mma()
        b.say("What this warp group multiplies: 64 rows of A, all of B; its sums stay in registers.")
        self.tA = b.let("tA", b.partition("A", self.tiled_mma, self.A, thread))
        self.tB = b.let("tB", b.partition("B", self.tiled_mma, self.B, thread))
        self.accumulators = b.let("acc", b.registers(self.acc))
        self.sums = b.let("sums", b.registers(self.acc)) if c.promote else self.accumulators
        b.say("A slot is free: thread d of a warp group tells block d of the cluster.")
        self.peer = self.tid % c.cluster
        self.tells = (self.tid % 128) < c.cluster
        self._prepare_store()
        self.consume()

    def thread_of_mma(self) -> Value | int:
        """Return the first thread of this warp group in the tiled MMA."""
        return self.consumer * 128

    def row_of(self, atom: int) -> Value | int:
        """Return the first of the 64 rows in the tile that this warp group's instruction number ``atom`` gives."""
        return self.consumer * 64

    def consume(self) -> None:
        """Multiply and store this block's tiles."""
        b, c = self.b, self.c
        zero = b.constant(0)
        start = self.start or (zero, zero)
        if c.deferred and not c.promote and c.output != "f32":
            self._consume_deferred(start, zero)
            return
        with b.for_(self.first_tile, self.tiles, self.step, start) as tiles:
            slot, phase = self._name(tiles, "tile", "slot", "phase")
            place = self.place(tiles.iv)
            slot, phase = self._multiply_promoting(slot, phase) if c.promote else self.multiply(slot, phase)
            self.convert(place)
            self.store_tile(place)
            tiles.next(slot, phase)
        self.finish_stores()

    def multiply(self, slot: Value, phase: Value) -> tuple[Value, Value]:
        """Multiply all stages of K for one tile."""
        b = self.b
        self._step(slot, phase, first=True)
        following = self.next_slot(slot, phase)
        with b.for_(1, self.k_count, 1, [*following, slot]) as loop:
            self._pipelined(loop)
        return self._complete(loop.results)

    def _multiply_promoting(self, slot: Value, phase: Value) -> tuple[Value, Value]:
        """Multiply all of K for one tile; each stage's products are added in registers."""
        b, c = self.b, self.c
        b.do("cute.clear", self.sums)
        with b.for_(0, self.k_tiles, 1, [slot, phase]) as loop:
            slot, phase = self._name(loop, "k", "slot", "phase")
            self._step(slot, phase, first=True)
            b.run("wgmma_wait_group", self.accumulators, n=0)
            self._release(slot)
            with b.for_(0, c.tile[1] // 2) as each:  # register tensors: the loop is unrolled
                total = b.load(self.sums, each.iv) + b.load(self.accumulators, each.iv)
                b.store(self.sums, each.iv, total)
            loop.next(*self.next_slot(slot, phase))
        slot, phase = loop.results
        return slot, phase

    def _step(self, slot: Value, phase: Value, *, first: bool) -> None:
        b = self.b
        b.run("mbarrier_wait", self.full(slot), phase)
        b.run("wgmma_fence")
        a = b.slice(self.tA, None, None, None, slot)
        bb = b.slice(self.tB, None, None, None, slot)
        b.gemm(self.tiled_mma, self.accumulators, a, bb, None if first else self.accumulators)
        b.run("wgmma_commit_group")

    def _pipelined(self, loop: Loop) -> None:
        """Multiply one step of K while the one before it completes; then its slot is free."""
        slot, phase, previous = self._name(loop, "k", "slot", "phase", "previous")
        self._step(slot, phase, first=False)
        self.b.run("wgmma_wait_group", n=1)
        self._release(previous)
        loop.next(*self.next_slot(slot, phase), slot)

    def _complete(self, state: tuple[Value, ...]) -> tuple[Value, Value]:
        slot, phase, previous = state
        self.b.run("wgmma_wait_group", self.accumulators, n=0)
        self._release(previous)
        return slot, phase

    def _release(self, slot: Value) -> None:
        b = self.b
        if self.c.cluster > 1:
            b.run("mbarrier_arrive_cluster", self.empty(slot), self.peer, self.tells)
        else:
            with b.if_(self.tells):
                b.run("mbarrier_arrive", self.empty(slot))

    def _consume_deferred(self, start: tuple[Value, Value], zero: Value) -> None:
        """Store a tile's result while the next tile is multiplied: its chunks after the first two steps of K."""
        b, c = self.b, self.c
        chunks = range(c.tile[1] // c.chunk)
        split = len(chunks) // 2
        carried = [*start, *[zero] * (3 if c.batch else 2)]
        with b.for_(self.first_tile, self.tiles, self.step, carried) as tiles:
            slot, phase, *last = self._name(tiles, "tile", "slot", "phase", "last_m0", "last_n0", "last_l")
            place = self.place(tiles.iv)
            before = (last[0], last[1], last[2] if c.batch else None)
            again = tiles.iv.ne(self.first_tile)
            self._step(slot, phase, first=True)
            following = self.next_slot(slot, phase)
            with b.if_(again):
                for chunk in chunks[:split]:
                    self.store_chunk(chunk, before)
            with b.for_(1, b.minimum(self.k_tiles, 2), 1, [*following, slot]) as loop:
                self._pipelined(loop)
            with b.if_(again):
                for chunk in chunks[split:]:
                    self.store_chunk(chunk, before)
            with b.for_(2, self.k_tiles, 1, loop.results) as loop:
                self._pipelined(loop)
            slot, phase = self._complete(loop.results)
            self.convert(place)
            tiles.next(slot, phase, *[x for x in place if x is not None])
        last = list(tiles.results[2:])
        for chunk in chunks:
            self.store_chunk(chunk, (last[0], last[1], last[2] if c.batch else None))
        self.finish_stores()

    # ----------------------------------------------------------------------------------------------- epilogue

    def _prepare_store(self) -> None:
        """Return who of a warp group writes what of a chunk: 64 rows of 128 bytes."""
        b, c = self.b, self.c
        chunk = c.chunk
        # The accumulators of 64 x chunk lie as those of an instruction of that size.
        tv = f"((4,8,4),(2,2,{chunk // 8})):((128,1,16),(64,8,512))"
        if c.output == "f32":
            atom = "!cute_nvgpu.atom.universal_copy<f32>"
        else:
            atom = f"!cute_nvgpu.atom.stsm<val_type = {c.output}, num_matrices = 4, n>"
        self.values = f"((2,2,{chunk // 8}),1,1):((1,2,4),0,0)"
        self.store_copy = b.tiled_copy(
            f'!cute.tiled_copy<{atom}, layout_copy_tv = <"{tv}">, tiler_mn = <"[64:1;{chunk}:1]">>'
        )
        b.say("Who writes what of a chunk of C: 64 rows of 128 bytes; one warp stores 16 of them.")
        self.registers = self.sums if c.output == "f32" else b.let("result", b.registers(self.result))
        self.tC = b.partition("D", self.store_copy, b.slice(self.C, None, None, None, self.consumer), self.tid % 128)
        size = 64 * chunk
        rows = f"(16,4,{chunk},2,{c.consumers}):({chunk},{16 * chunk},1,{size},{2 * size})"
        self.warp_rows = b.slice(b.view(b.iterator(self.C), rows), None, self.warp, None, None, self.consumer)
        self.first_lane = self.lane.eq(0)

    def store_tile(self, place: tuple[Value, Value, Value | None]) -> None:
        """Store all chunks of this warp group's rows."""
        b, c = self.b, self.c
        for atom in range(self.atoms):
            for chunk in range(c.tile[1] // c.chunk):
                if c.output == "f32" and c.epilogue.active:  # no sooner: what it loads would need registers
                    values = b.view(b.pointer(self.sums, self._first(atom, chunk)), f"{c.chunk // 2}:1")
                    self.fuse(values, c.chunk, (place[0], place[1] + chunk * c.chunk, place[2]), atom)
                self.store_chunk(chunk, place, atom)

    def _first(self, atom: int, chunk: int) -> int:
        """Return the first register of a chunk."""
        return self.c.tile[1] // 2 * atom + self.c.chunk // 2 * chunk

    def fuse(self, values: Value, columns: int, place: tuple[Value, Value, Value | None], atom: int = 0) -> None:
        """Apply the epilogue to the registers of some columns; ``place`` is the first of this block's tile."""
        if self.c.epilogue.active:
            row = place[0] + self.row_of(atom) + self.warp * 16
            self.fused.apply(values, columns, (row, place[1]), self.lane, place[2])

    def convert(self, place: tuple[Value, Value, Value | None]) -> None:
        """Apply the epilogue; return the sums as elements of C."""
        b, c = self.b, self.c
        if c.output == "f32":
            return
        for atom in range(self.atoms):
            values = (
                self.sums if atom == 0 else b.view(b.pointer(self.sums, self._first(atom, 0)), f"{c.tile[1] // 2}:1")
            )
            self.fuse(values, c.tile[1], place, atom)
        with b.for_(0, self.atoms * c.tile[1] // 4) as loop:  # register tensors: the loop is unrolled
            pair = loop.iv * 2
            values = b.load_vec(b.view(b.pointer(self.sums, pair), "2:1"))
            narrow = b.op("arith.truncf", values, type=f"vector<2x{c.output}>")
            b.store_vec(narrow, b.view(b.pointer(self.registers, pair), "2:1"))

    def store_chunk(self, chunk: int, place: tuple[Value, Value, Value | None], atom: int = 0) -> None:
        """Store some columns of this warp's rows: registers, shared memory, TMA."""
        values = self.b.view(self.b.pointer(self.registers, self._first(atom, chunk)), self.values)
        # With an odd number of chunks the last one of a tile has used the buffer of the first.
        under_way = 0 if chunk == 0 and self.c.tile[1] // self.c.chunk % 2 else 1
        column = self.b.constant(chunk * self.c.chunk)
        self.store_values(values, chunk % 2, column, place, atom, under_way=under_way)

    def store_values(
        self,
        values: Value,
        buffer: int,
        column: Value,
        place: tuple[Value, Value, Value | None],
        atom: int = 0,
        *,
        under_way: int = 1,
    ) -> None:
        """Store the registers of one chunk that begins ``column`` columns into the tile, once at most ``under_way``
        stores have not read their buffers.
        """
        b, c = self.b, self.c
        m0, n0, matrix = place
        with b.if_(self.first_lane):
            b.run("bulk_wait_group", n=under_way, read=True)  # the buffer's last store has read it
        b.run("syncwarp")
        source = b.op("cute.tiled.copy.retile", self.store_copy, values)
        b.copy(self.store_copy, source, b.slice(self.tC, None, None, None, buffer))
        b.run("fence_proxy_async")
        b.run("syncwarp")
        with b.if_(self.first_lane):
            row = m0 + self.row_of(atom) + self.warp * 16
            first: tuple[Value, ...] = (n0 + column, row)
            layout = f"(16,{c.chunk}):(1@1,1@0)"
            rows = b.slice(self.warp_rows, None, None, buffer)
            if matrix is not None:
                first, layout = (*first, matrix), one_more(layout, "1@2")
                rows = b.view(b.iterator(rows), f"(16,{c.chunk},1):({c.chunk},1,0)")
            b.copy(self.store_c, rows, b.view(b.int_tuple(first), layout))
            b.run("bulk_commit_group")

    def finish_stores(self) -> None:
        """Wait until the stores by TMA have read their buffers."""
        b = self.b
        with b.if_(self.first_lane):
            b.run("bulk_wait_group", n=0, read=True)
