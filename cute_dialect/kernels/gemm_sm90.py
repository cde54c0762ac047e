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

from typing import NamedTuple

from cute_dialect.kernels.builder import Builder, Value

__all__ = ["GemmConfig", "build_gemm_sm90", "gemm_sm90"]

_BITS = {"f16": 16, "bf16": 16, "f8E4M3FN": 8, "f8E5M2": 8, "tf32": 32}


class GemmConfig(NamedTuple):
    """What a kernel is made for.

    ``element``: of A and B; ``output``: of C; ``tile``: (M, N, K) of a block, elements; ``cluster_m``: blocks along M
    that share B; ``group``: cluster rows in one raster group; ``sms``: of the chip; ``deferred``: a finished tile is
    stored while the next one is multiplied.
    """

    element: str = "f16"
    output: str = "f16"
    tile: tuple[int, int, int] = (128, 256, 64)
    stages: int = 4
    cluster_m: int = 2
    group: int = 8
    sms: int = 132
    deferred: bool = True
    early: bool = True
    serpentine: bool = True

    @property
    def bits(self) -> int:
        """Bits of an element of A and B."""
        return _BITS[self.element]

    @property
    def consumers(self) -> int:
        """Warp groups that multiply: 64 rows each."""
        return self.tile[0] // 64

    @property
    def threads(self) -> int:
        """Threads of a block: the producer's warp group and the consumers'."""
        return 128 * (1 + self.consumers)

    @property
    def stage_bytes(self) -> int:
        """Bytes of A and B in one stage."""
        m, n, k = self.tile
        return (m + n) * k * self.bits // 8

    @property
    def smem_bytes(self) -> int:
        """Shared memory of a block, bytes: the ring, two staging buffers a consumer, the barriers."""
        return self.stages * self.stage_bytes + self.consumers * 2 * 64 * 64 * 2 + self.stages * 16


def gemm_sm90(config: GemmConfig | None = None) -> str:
    """The file: kernel ``@gemm`` and host function ``@launch`` (A, B, C)."""
    builder, aliases = build_gemm_sm90(config or GemmConfig())
    return builder.text(aliases)


def build_gemm_sm90(config: GemmConfig) -> tuple[Builder, dict[str, str]]:
    """The module, and names for its long types."""
    b = Builder()
    gemm = _Gemm(b, config)
    gemm.kernel()
    gemm.host()
    return b, gemm.aliases()


class _Gemm:
    def __init__(self, b: Builder, config: GemmConfig):
        self.b = b
        self.c = config
        m, n, k = config.tile
        e, out, stages = config.element, config.output, config.stages
        self.half_n = n // config.cluster_m
        vector = 128 // config.bits
        self.sA = f'!cute.memref<{e}, smem, align<1024>, S<3,4,3>, "({m},{k},{stages}):({k},1,{m * k})">'
        self.sB = f'!cute.memref<{e}, smem, align<1024>, S<3,4,3>, "({n},{k},{stages}):({k},1,{n * k})">'
        self.sC = f'!cute.memref<{out}, smem, align<1024>, S<3,4,3>, "(64,64,2,{config.consumers}):(64,1,4096,8192)">'
        self.bars = f'!cute.memref<i64, smem, "({stages},2):(1,{stages})">'
        self.tma_a = f"!cute_nvgpu.atom.tma_load<{e}, box = ({k},{m}), swizzle = 128, l2 = 256>"
        self.tma_b = f"!cute_nvgpu.atom.tma_load<{e}, box = ({k},{self.half_n}), swizzle = 128, l2 = 256>"
        self.tma_c = f"!cute_nvgpu.atom.tma_store<{out}, box = (64,16), swizzle = 128, l2 = 256>"
        inst = 256 // config.bits  # K of one instruction: 32 bytes
        self.wgmma = f"!cute_nvgpu.atom.wgmma<64x{n}x{inst}, (f32,{e},{e},f32), A = smem, major = (k,k)>"
        self.mma = f'!cute.tiled_mma<{self.wgmma}, atom_layout_MNK = <"({config.consumers},1,1):(1,0,0)">>'
        self.acc = f'!cute.memref<f32, rmem, "((2,2,{n // 8}),1,1):((1,2,4),0,0)">'
        self.packed = f'!cute.memref<{out}, rmem, "((2,2,{n // 8}),1,1):((1,2,4),0,0)">'
        self.matA = f'!cute.memref<{e}, gmem, align<16>, "(?,?):(?{{div={vector}}},1)">'
        self.matC = f'!cute.memref<{out}, gmem, align<16>, "(?,?):(?{{div=8}},1)">'

    def aliases(self) -> dict[str, str]:
        return {
            "sA": self.sA, "sB": self.sB, "sC": self.sC, "barriers": self.bars, "loadA": self.tma_a, "loadB": self.tma_b,
            "storeC": self.tma_c, "wgmma": self.wgmma, "mma": self.mma, "acc": self.acc, "packed": self.packed,
            "mat": self.matA, "matC": self.matC,
        }  # fmt: skip

    # ------------------------------------------------------------------------------------------------- kernel

    def kernel(self) -> None:
        b, c = self.b, self.c
        # tiles_m counts cluster rows, tiles_n tiles, k_tiles stages of K.
        parameters = {
            "loadA": self.tma_a, "loadB": self.tma_b, "storeC": self.tma_c,
            "tiles_m": "i32", "tiles_n": "i32", "k_tiles": "i32",
        }  # fmt: skip
        cluster = (c.cluster_m, 1, 1) if c.cluster_m > 1 else None
        with b.kernel(
            "gemm", parameters, threads=c.threads, cluster=cluster, attributes=["nvvm.minctasm = 1 : i32"]
        ) as p:
            self.load_a, self.load_b, self.store_c, self.tiles_m, self.tiles_n, self.k_tiles = p
            self._prologue()
            with b.if_else(self.group_of_warps.eq(0)) as (producer, consumer):
                with producer:
                    b.run("setmaxnreg", count=40 if c.consumers == 2 else 24, action='"decrease"')
                    with b.if_(self.warp.eq(0)), b.if_(b.arch("elect_one")):
                        self._produce()
                with consumer:
                    b.run("setmaxnreg", count=232 if c.consumers == 2 else 240, action='"increase"')
                    self._consume()
            self._sync_cluster()

    def _prologue(self) -> None:
        b, c = self.b, self.c
        self.A = b.alloc_smem(self.sA)
        self.B = b.alloc_smem(self.sB)
        self.C = b.alloc_smem(self.sC)
        self.barriers = b.alloc_smem(self.bars)
        self.tid = b.thread_id()
        warp = b.arch("warp_id")
        self.group_of_warps = warp // 4
        self.warp = warp % 4  # in its group
        self.lane = b.arch("lane_id")
        if c.cluster_m > 1:
            self.rank: Value | int = b.arch("cluster_rank")
            self.first_tile = b.block_id() // c.cluster_m
            self.step = b.grid_size() // c.cluster_m
        else:
            self.rank = 0
            self.first_tile = b.block_id()
            self.step = b.grid_size()
        self.tiles = self.tiles_m * self.tiles_n
        with b.if_(self.tid.eq(0)):
            for tensor_map in (self.load_a, self.load_b, self.store_c):
                b.run("prefetch_tensormap", tensor_map)
            for s in range(c.stages):
                b.run("mbarrier_init", self._full(s), 1)
                b.run("mbarrier_init", self._empty(s), c.consumers * c.cluster_m)
            b.run("fence_mbarrier_init")
        # The producer's view of B: which half this block loads for the cluster.
        n, k = c.tile[1], c.tile[2]
        half = f"({self.half_n},{c.cluster_m},{k},{c.stages}):({k},{self.half_n * k},1,{n * k})"
        self.B_halves = b.view(b.iterator(self.B), half)
        if c.early:
            # Loads that only this block's barriers see need not wait for the cluster.
            self.early = b.minimum(self.k_tiles, c.stages)
            with b.if_(self.tid.eq(0)):
                m0, _ = self._place(self.first_tile)
                with b.for_(0, self.early) as loop:
                    b.run("mbarrier_arrive_expect_tx", self._full(loop.iv), c.stage_bytes)
                    self._fetch_a(loop.iv, loop.iv * k, m0)
                    if c.cluster_m == 1:
                        self._fetch_b(loop.iv, loop.iv * k, self._place(self.first_tile)[1])
        self._sync_cluster(relaxed=True)

    def _sync_cluster(self, *, relaxed: bool = False) -> None:
        b = self.b
        if self.c.cluster_m > 1:
            b.run("cluster_arrive", relaxed=relaxed)
            b.run("cluster_wait")
        elif relaxed:
            b.run("barrier")

    def _full(self, stage: Value | int) -> Value:
        return self.b.pointer(self.barriers, stage)

    def _empty(self, stage: Value | int) -> Value:
        return self.b.pointer(self.barriers, stage + self.c.stages)

    def _next(self, slot: Value, phase: Value) -> tuple[Value, Value]:
        """The next slot of the ring, and its phase."""
        b = self.b
        following = slot + 1
        wraps = following.eq(self.c.stages)
        return b.select(wraps, 0, following), phase ^ b.to_i32(wraps)

    def _place(self, tile: Value) -> tuple[Value, Value]:
        """First row and column of this block's part of a cluster tile."""
        b, c = self.b, self.c
        per_group = self.tiles_n * c.group
        group = tile // per_group
        inside = tile - group * per_group
        first = group * c.group
        rows = b.minimum(self.tiles_m - first, c.group)
        column = inside // rows
        row = first + (inside - column * rows)
        if c.serpentine:
            column = b.select((group & 1).ne(0), self.tiles_n - 1 - column, column)
        return (row * c.cluster_m + self.rank) * c.tile[0], column * c.tile[1]

    def _fetch_a(self, slot: Value, k: Value, m0: Value) -> None:
        b, c = self.b, self.c
        where = b.view(b.int_tuple((k, m0)), f"({c.tile[0]},{c.tile[2]}):(1@1,1@0)")
        atom = b.op("cute.atom.set_value", self.load_a, self._full(slot), field='"tma_bar"')
        b.copy(atom, where, b.slice(self.A, None, None, slot))

    def _fetch_b(self, slot: Value, k: Value, n0: Value) -> None:
        b, c = self.b, self.c
        row = n0 + self.rank * self.half_n if isinstance(self.rank, Value) else n0
        where = b.view(b.int_tuple((k, row)), f"({self.half_n},{c.tile[2]}):(1@1,1@0)")
        atom = b.op("cute.atom.set_value", self.load_b, self._full(slot), field='"tma_bar"')
        if c.cluster_m > 1:
            mask = b.constant((1 << c.cluster_m) - 1, "i16")
            atom = b.op("cute.atom.set_value", atom, mask, field='"multicast_mask"')
        b.copy(atom, where, b.slice(self.B_halves, None, self.rank, None, slot))

    def _produce(self) -> None:
        b, c = self.b, self.c
        zero = b.constant(0)
        k_size = c.tile[2]
        if c.early:
            done = self.early
            _, n0 = self._place(self.first_tile)
            if c.cluster_m > 1:
                with b.for_(0, done) as loop:
                    self._fetch_b(loop.iv, loop.iv * k_size, n0)
            slot, phase = done % c.stages, (done // c.stages) & 1
        else:
            done, slot, phase = zero, zero, zero
        with b.for_(self.first_tile, self.tiles, self.step, [slot, phase, done, zero]) as tiles:
            slot, phase, start, flip = tiles.args
            m0, n0 = self._place(tiles.iv)
            with b.for_(start, self.k_tiles, 1, [slot, phase]) as loop:
                slot, phase = loop.args
                b.run("mbarrier_wait", self._empty(slot), phase ^ 1)
                b.run("mbarrier_arrive_expect_tx", self._full(slot), c.stage_bytes)
                k = loop.iv
                if c.serpentine:  # every other tile walks K backwards: what the L2 saw last is read first
                    k = b.select(flip.ne(0), self.k_tiles - 1 - k, k)
                self._fetch_a(slot, k * k_size, m0)
                self._fetch_b(slot, k * k_size, n0)
                loop.next(*self._next(slot, phase))
            tiles.next(*loop.results, zero, flip ^ 1)

    # ---------------------------------------------------------------------------------------------- consumers

    def _consume(self) -> None:
        b, c = self.b, self.c
        zero = b.constant(0)
        self.consumer = self.group_of_warps - 1
        self.tiled_mma = b.op("cute.make_tiled_mma", b.atom(self.wgmma), type=self.mma)
        thread = self.consumer * 128
        self.tA = b.partition("A", self.tiled_mma, self.A, thread)
        self.tB = b.partition("B", self.tiled_mma, self.B, thread)
        self.accumulators = b.registers(self.acc)
        # Who tells which block of the cluster that a slot is free: thread d of a warp group tells block d.
        self.peer = self.tid % c.cluster_m
        self.tells = (self.tid % 128) < c.cluster_m
        self._prepare_store()
        if c.deferred:
            self._consume_deferred(zero)
            return
        with b.for_(self.first_tile, self.tiles, self.step, [zero, zero]) as tiles:
            slot, phase = tiles.args
            m0, n0 = self._place(tiles.iv)
            slot, phase = self._multiply(slot, phase)
            self._convert()
            for chunk in range(c.tile[1] // 64):
                self._store_chunk(chunk, m0, n0)
            tiles.next(slot, phase)
        self._finish_stores()

    def _multiply(self, slot: Value, phase: Value) -> tuple[Value, Value]:
        """All of K for one tile."""
        b = self.b
        self._step(slot, phase, first=True)
        following = self._next(slot, phase)
        with b.for_(1, self.k_tiles, 1, [*following, slot]) as loop:
            slot, phase, previous = loop.args
            self._step(slot, phase, first=False)
            b.run("wgmma_wait_group", n=1)
            self._release(previous)
            loop.next(*self._next(slot, phase), slot)
        slot, phase, previous = loop.results
        b.run("wgmma_wait_group", self.accumulators, n=0)
        self._release(previous)
        return slot, phase

    def _step(self, slot: Value, phase: Value, *, first: bool) -> None:
        b = self.b
        b.run("mbarrier_wait", self._full(slot), phase)
        b.run("wgmma_fence")
        a = b.slice(self.tA, None, None, None, slot)
        bb = b.slice(self.tB, None, None, None, slot)
        b.gemm(self.tiled_mma, self.accumulators, a, bb, None if first else self.accumulators)
        b.run("wgmma_commit_group")

    def _release(self, slot: Value) -> None:
        b = self.b
        if self.c.cluster_m > 1:
            b.run("mbarrier_arrive_cluster", self._empty(slot), self.peer, self.tells)
        else:
            with b.if_(self.tells):
                b.run("mbarrier_arrive", self._empty(slot))

    # ----------------------------------------------------------------------------------------------- epilogue

    def _prepare_store(self) -> None:
        b, c = self.b, self.c
        out = c.output
        self.registers = b.registers(self.packed)
        # A chunk is 64 columns; the accumulators of 64 x 64 lie as those of a 64 x 64 instruction.
        stsm = f"!cute_nvgpu.atom.stsm<val_type = {out}, num_matrices = 4, n>"
        tv = "((4,8,4),(2,2,8)):((128,1,16),(64,8,512))"
        self.store_copy = b.tiled_copy(
            f'!cute.tiled_copy<{stsm}, layout_copy_tv = <"{tv}">, tiler_mn = <"[64:1;64:1]">>'
        )
        self.tC = b.partition("D", self.store_copy, b.slice(self.C, None, None, None, self.consumer), self.tid % 128)
        # One warp stores 16 rows of a chunk.
        rows = b.view(b.iterator(self.C), f"(16,4,64,2,{c.consumers}):(64,1024,1,4096,8192)")
        self.warp_rows = b.slice(rows, None, self.warp, None, None, self.consumer)
        self.first_lane = self.lane.eq(0)

    def _convert(self) -> None:
        b, c = self.b, self.c
        values = b.load_vec(self.accumulators)
        narrow = b.op("arith.truncf", values, type=f"vector<{c.tile[1] // 2}x{c.output}>")
        b.store_vec(narrow, self.registers)

    def _store_chunk(self, chunk: int, m0: Value, n0: Value) -> None:
        """64 columns of this warp's rows: registers, shared memory, TMA."""
        b = self.b
        with b.if_(self.first_lane):
            b.run("bulk_wait_group", n=1, read=True)  # the buffer's last store has read it
        b.run("syncwarp")
        buffer = chunk % 2
        values = b.view(b.pointer(self.registers, 32 * chunk), "((2,2,8),1,1):((1,2,4),0,0)")
        source = b.op("cute.tiled.copy.retile", self.store_copy, values)
        b.copy(self.store_copy, source, b.slice(self.tC, None, None, None, buffer))
        b.run("fence_proxy_async")
        b.run("syncwarp")
        with b.if_(self.first_lane):
            row = m0 + self.consumer * 64 + self.warp * 16
            where = b.view(b.int_tuple((n0 + 64 * chunk, row)), "(16,64):(1@1,1@0)")
            b.copy(self.store_c, b.slice(self.warp_rows, None, None, buffer), where)
            b.run("bulk_commit_group")

    def _finish_stores(self) -> None:
        b = self.b
        with b.if_(self.first_lane):
            b.run("bulk_wait_group", n=0, read=True)

    def _consume_deferred(self, zero: Value) -> None:
        """A tile's result is stored while the next tile is multiplied: its chunks after the first two steps of K."""
        b, c = self.b, self.c
        chunks = range(c.tile[1] // 64)
        split = len(chunks) // 2
        with b.for_(self.first_tile, self.tiles, self.step, [zero, zero, zero, zero]) as tiles:
            slot, phase, last_m0, last_n0 = tiles.args
            m0, n0 = self._place(tiles.iv)
            again = tiles.iv.ne(self.first_tile)
            self._step(slot, phase, first=True)
            following = self._next(slot, phase)
            with b.if_(again):
                for chunk in chunks[:split]:
                    self._store_chunk(chunk, last_m0, last_n0)
            with b.for_(1, b.minimum(self.k_tiles, 2), 1, [*following, slot]) as loop:
                self._pipelined(loop)
            with b.if_(again):
                for chunk in chunks[split:]:
                    self._store_chunk(chunk, last_m0, last_n0)
            with b.for_(2, self.k_tiles, 1, loop.results) as loop:
                self._pipelined(loop)
            slot, phase, previous = loop.results
            b.run("wgmma_wait_group", self.accumulators, n=0)
            self._convert()
            self._release(previous)
            tiles.next(slot, phase, m0, n0)
        _, _, m0, n0 = tiles.results
        for chunk in chunks:
            self._store_chunk(chunk, m0, n0)
        self._finish_stores()

    def _pipelined(self, loop: object) -> None:
        from cute_dialect.kernels.builder import Loop

        assert isinstance(loop, Loop)
        slot, phase, previous = loop.args
        self._step(slot, phase, first=False)
        self.b.run("wgmma_wait_group", n=1)
        self._release(previous)
        loop.next(*self._next(slot, phase), slot)

    # --------------------------------------------------------------------------------------------------- host

    def host(self) -> None:
        b, c = self.b, self.c
        m, n, k = c.tile
        with b.host("launch", {"A": self.matA, "B": self.matA, "C": self.matC}) as (A, B, C):
            rows, depth = self._shape(A)
            columns, depth_b = self._shape(B)
            rows_c, columns_c = self._shape(C)
            for ok, text in (
                (depth.eq(depth_b), "A and B must have the same K"),
                (rows.eq(rows_c), "A and C must have the same M"),
                (columns.eq(columns_c), "B and C must have the same N"),
            ):
                b.do("cf.assert", ok, msg=f'"{text}"')
            load_a = self._map("load", A, self.tma_a, m, k)
            load_b = self._map("load", B, self.tma_b, self.half_n, k)
            store_c = self._map("store", C, self.tma_c, 16, 64)
            tiles_m, tiles_n = b.ceil_div(rows, m * c.cluster_m), b.ceil_div(columns, n)
            k_tiles = b.ceil_div(depth, k)
            tiles = tiles_m * tiles_n
            clusters = c.sms // c.cluster_m
            waves = b.ceil_div(tiles, clusters)
            grid = ((tiles + waves - 1) // waves) * c.cluster_m
            b.launch("gemm", [load_a, load_b, store_c, tiles_m, tiles_n, k_tiles], grid=grid, threads=c.threads)

    def _map(self, kind: str, tensor: Value, expected: str, rows: int, columns: int) -> Value:
        """The tensor map for row-major tiles of a matrix, 128 bytes a row."""
        b = self.b
        tile = b.tile(f"[{rows}:1;{columns}:1]")
        layout = b.layout(f"({rows},{columns}):({columns},1)")
        atom, _ = b.results(f"cute_nvgpu.make_tma_{kind}", tensor, layout, tile, swizzle=128, l2=256)
        if atom.type != b.type(expected):
            raise ValueError(f"expected {expected}, got {atom.type}")
        return atom

    def _shape(self, tensor: Value) -> tuple[Value, Value]:
        b = self.b
        shape = b.op("cute.get_shape", b.op("cute.get_layout", tensor))
        first, second = b.results("cute.get_scalars", shape, types=["i32", "i32"])
        return first, second
