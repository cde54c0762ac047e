"""Hopper GEMM for few rows: ``C[M,N] = A[M,K] * B[N,K]^T`` where reading B is all that takes time.

One tile a block, nothing persistent.  The first loads are on their way before the block's threads have met.  Blocks of
a cluster may share A (``share``: neighbours along N, each loads a part for all) and K (``parts``: each multiplies some
of it and sends sums to the block that finishes them, through distributed shared memory).  B is read once, so its lines
are the first to leave the L2 (``hint``): they neither drive out what is used again nor have to wait until modified
lines of others are written back.

    full[s]:  one arrival (the producer's, with the bytes of the stage) and the bytes, whoever sends them
    empty[s]: one arrival of every consumer of the blocks that share A, for stages that are filled again

>>> config = SkinnyConfig(columns=128, stages=6, parts=2)
>>> config.name, config.smem_bytes
('f16-f16-kk-128x128-y-p2-q6-h-e', 229472)
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.kernels.builder import Value
from cute_dialect.kernels.gemm_sm90_config import BITS, EVICT_FIRST, GemmConfig, Operand
from cute_dialect.kernels.script import Script

__all__ = ["SkinnyConfig", "gemm_sm90_skinny"]

_SMEM = 232448


class SkinnyConfig(NamedTuple):
    """``element``: of A and B; ``output``: of C; ``rows``, ``columns``: of a tile; ``stages``: of 128 bytes of K;
    ``share``: blocks that share A; ``parts``: blocks that share the K of a tile; ``hint``: B leaves the L2 first;
    ``direct``: results go from registers to memory, not through shared memory and TMA.
    """

    element: str = "f16"
    output: str = "f16"
    rows: int = 128
    columns: int = 64
    stages: int = 9
    share: int = 1
    parts: int = 1
    hint: bool = True
    direct: bool = True

    @property
    def base(self) -> GemmConfig:
        """What the operands' tiles need to know."""
        k = 1024 // BITS[self.element]
        return GemmConfig(
            element=self.element,
            output=self.output,
            tile=(self.rows, self.columns, k),
            stages=self.stages,
            cluster_m=1,
            cluster_n=self.share,
            deferred=False,
        )

    @property
    def cluster(self) -> int:
        """Blocks of a cluster: those that share K side by side, then those that share A."""
        return self.share * self.parts

    @property
    def consumers(self) -> int:
        """Warp groups that multiply."""
        return self.rows // 64

    @property
    def threads(self) -> int:
        """Threads of a block: the consumers', and one warp that loads."""
        return 128 * self.consumers + 32

    @property
    def pieces(self) -> int:
        """Pieces of the columns of a consumer that are finished by different blocks."""
        return max(1, self.parts // self.consumers)

    @property
    def inbox(self) -> tuple[int, int]:
        """Sums that a block receives: f32 values from each sender, senders."""
        return 64 * self.columns // self.pieces * max(1, self.consumers // self.parts), self.parts - 1

    @property
    def smem_bytes(self) -> int:
        """Shared memory of a block, bytes: the ring, the sums of others, the barriers."""
        values, senders = self.inbox
        return self.stages * self.base.stage_bytes + 4 * values * senders + 16 * self.stages

    @property
    def name(self) -> str:
        """Names the kernel: types, tile, what is shared."""
        options = f"-a{self.share}" * (self.share > 1) + f"-p{self.parts}" * (self.parts > 1)
        more = f"-q{self.stages}{'-h' * self.hint}{'' if self.direct else '-t'}"
        return f"{self.element}-{self.output}-kk-{self.rows}x{self.columns}-y{options}{more}"

    def check(self) -> None:
        """Raise ValueError unless there is such a kernel."""
        if self.element not in BITS or self.output not in ("f16", "bf16", "f32"):
            raise ValueError(f"expected elements of {', '.join(BITS)} and f16, bf16 or f32 out, got {self}")
        if self.rows not in (64, 128, 192) or self.columns % 8 or not 8 <= self.columns <= 256:
            raise ValueError(f"expected 64, 128 or 192 rows and 8 to 256 columns, got {self.rows} x {self.columns}")
        if self.share < 1 or self.rows % (8 * self.share) or self.cluster > 8 or self.stages < 2:
            raise ValueError(f"expected clusters of up to 8 blocks that share A in rows of 8, 2 stages, got {self}")
        units = self.consumers * self.pieces
        if self.parts < 1 or units % self.parts or self.columns % (8 * self.pieces):
            raise ValueError(f"expected parts that divide {self.consumers} warp groups, or the reverse, got {self}")
        if not self.direct and (self.parts > 1 or self.columns * BITS[self.output] % 1024 or self.output == "f32"):
            raise ValueError(f"expected whole K and chunks of 128 bytes of 16-bit output for TMA stores, got {self}")
        if not self.direct and self.columns * BITS[self.output] // 1024 > self.stages:
            raise ValueError(f"expected as many stages as chunks of a tile, got {self}")
        if self.smem_bytes > _SMEM:
            raise ValueError(f"expected at most {_SMEM} bytes of shared memory, got {self.smem_bytes}: fewer stages")


def gemm_sm90_skinny(config: SkinnyConfig | None = None) -> str:
    """The file: kernel ``@gemm`` and host function ``@launch`` (A, B, C).

    Raises ValueError for a bad configuration.
    """
    config = config or SkinnyConfig()
    config.check()
    b = Script()
    gemm = _Skinny(b, config)
    gemm.kernel()
    gemm.host()
    return b.script(_head(config))


def _head(c: SkinnyConfig) -> str:
    shared = [f"{c.share} blocks share A"] * (c.share > 1) + [f"{c.parts} blocks share the K of a tile"] * (c.parts > 1)
    lines = [
        f"C[M,N] = A[M,K] * B[N,K]^T for few rows: A and B of {c.element}, sums in f32, C of {c.output}.",
        "",
        f"A block computes one tile of {c.rows} x {c.columns}; {c.stages} stages of 128 bytes of K are loaded ahead.",
        *([f"In a cluster {' and '.join(shared)}."] if shared else []),
    ]
    return "\n".join(f"// {line}".rstrip() for line in lines)


class _Skinny:
    def __init__(self, b: Script, config: SkinnyConfig):
        self.b, self.c = b, config
        c, base = config, config.base
        self.A_ = Operand(base, c.rows, c.share, "k")
        self.B_ = Operand(base, c.columns, 1, "k")
        self.k = base.tile[2]
        e = c.element
        self.wgmma = f"!cute_nvgpu.atom.wgmma<64x{c.columns}x{256 // base.bits}, (f32,{e},{e},f32), A = smem>"
        self.mma = f'!cute.tiled_mma<{self.wgmma}, atom_layout_MNK = <"({c.consumers},1,1):(1,0,0)">>'
        self.acc = f'!cute.memref<f32, rmem, "((2,2,{c.columns // 8}),1,1):((1,2,4),0,0)">'
        self.barriers_type = f'!cute.memref<i64, smem, "({c.stages},2):(1,{c.stages})">'
        out = 128 // BITS[c.output]
        self.matrix = f'!cute.memref<{c.output}, gmem, align<16>, "(?,?):(?{{div={out}}},1)">'
        self.tma_c = f"!cute_nvgpu.atom.tma_store<{c.output}, box = ({base.chunk}, 16), swizzle = 128, l2 = 256>"
        for name, text in {
            "sA": self.A_.smem, "sB": self.B_.smem, "loadA": self.A_.atom, "loadB": self.B_.atom,
            "barriers": self.barriers_type, "mma": self.mma, "A": self.A_.matrix, "C": self.matrix,
        }.items():  # fmt: skip
            b.name_type(name, text)

    # ------------------------------------------------------------------------------------------------- kernel

    def kernel(self) -> None:
        b, c = self.b, self.c
        to = {"C": self.matrix} if c.direct else {"storeC": self.tma_c}
        parameters = {"loadA": self.A_.atom, "loadB": self.B_.atom, **to, "k_tiles": "i32"}
        cluster = (1, c.cluster, 1) if c.cluster > 1 else None
        with b.kernel(
            "gemm", parameters, threads=c.threads, cluster=cluster, attributes=["nvvm.minctasm = 1 : i32"]
        ) as p:
            self.load_a, self.load_b, self.to, self.k_tiles = p
            self._begin()
            self._prologue()
            b.say("One warp loads, the warp groups multiply.")
            with b.if_else(self.group.eq(c.consumers)) as (producer, consumer):
                with producer:
                    with b.if_(b.arch("elect_one")):
                        self._produce()
                    if c.parts > 1:
                        self._meet()
                with consumer:
                    self._consume()

    def _begin(self) -> None:
        b, c = self.b, self.c
        b.say("Which tile, and which part of K: blocks side by side share a tile.")
        block = b.block_id("y")
        self.part: Value | int = 0
        self.column_tile = block
        self.k_begin: Value | int = 0
        self.k_count = self.k_tiles
        if c.parts > 1:
            self.column_tile = block // c.parts
            self.part = part = b.let("part", block % c.parts)
            self.k_begin = b.let("k_begin", part * self.k_tiles // c.parts)
            self.k_count = b.let("k_count", (part + 1) * self.k_tiles // c.parts - self.k_begin)
        self.neighbour = self.column_tile % c.share if c.share > 1 else None
        self.m0 = b.let("m0", b.block_id("x") * c.rows)
        self.n0 = b.let("n0", self.column_tile * c.columns)

    def _prologue(self) -> None:
        b, c = self.b, self.c
        self.A = b.let("sA", b.alloc_smem(self.A_.smem))
        self.B = b.let("sB", b.alloc_smem(self.B_.smem))
        if c.parts > 1:
            values, senders = c.inbox
            inbox = f'!cute.memref<f32, smem, align<16>, "({values},{senders}):(1,{values})">'
            self.inbox = b.let("inbox", b.alloc_smem(inbox))
        self.barriers = b.let("barriers", b.alloc_smem(self.barriers_type))
        self.tid = b.let("tid", b.thread_id())
        warp = b.arch("warp_id")
        self.group = b.let("warp_group", warp // 4)
        self.warp = b.let("warp", warp % 4)
        self.lane = b.let("lane", b.arch("lane_id"))
        self.A_parts = b.view(b.iterator(self.A), self.A_.parts)
        self.B_parts = b.view(b.iterator(self.B), self.B_.parts)
        b.say("The thread that loads makes the barriers, and starts what needs no other block.")
        self.early = b.minimum(self.k_count, c.stages)
        with b.if_(self.tid.eq(128 * c.consumers)):
            with b.for_(0, c.stages) as loop:
                b.run("mbarrier_init", self._full(loop.iv), 1)
                b.run("mbarrier_init", self._empty(loop.iv), c.consumers * c.share)
            b.run("fence_mbarrier_init")
            with b.for_(0, self.early) as loop:
                b.run("mbarrier_arrive_expect_tx", self._full(loop.iv), c.base.stage_bytes)
                self._fetch_b(loop.iv, loop.iv)
                if c.share == 1:
                    self._fetch_a(loop.iv, loop.iv)
        if c.cluster > 1:
            b.run("cluster_arrive", relaxed=True)
            b.run("cluster_wait")
        else:
            b.run("barrier")

    def _full(self, slot: Value | int) -> Value:
        return self.b.pointer(self.barriers, slot)

    def _empty(self, slot: Value | int) -> Value:
        return self.b.pointer(self.barriers, slot + self.c.stages)

    # ----------------------------------------------------------------------------------------------- producer

    def _produce(self) -> None:
        b, c = self.b, self.c
        if c.share > 1:
            with b.for_(0, self.early) as loop:
                self._fetch_a(loop.iv, loop.iv)
        slot, phase = self.early % c.stages, (self.early // c.stages) & 1
        with b.for_(self.early, self.k_count, 1, [slot, phase]) as loop:
            slot, phase = loop.args
            b.run("mbarrier_wait", self._empty(slot), phase ^ 1)
            b.run("mbarrier_arrive_expect_tx", self._full(slot), c.base.stage_bytes)
            self._fetch_b(slot, loop.iv)
            self._fetch_a(slot, loop.iv)
            loop.next(*self._next(slot, phase))

    def _next(self, slot: Value, phase: Value) -> tuple[Value, Value]:
        b = self.b
        following = slot + 1
        wraps = following.eq(self.c.stages)
        return b.select(wraps, 0, following), phase ^ b.to_i32(wraps)

    def _fetch_a(self, slot: Value, k_tile: Value) -> None:
        b, c = self.b, self.c
        row = self.m0
        atom = b.op("cute.atom.set_value", self.load_a, self._full(slot), field='"tma_bar"')
        if self.neighbour is not None:
            row = row + self.neighbour * self.A_.part
            mask = b.constant(sum(1 << i * c.parts for i in range(c.share)), "i16")
            if isinstance(self.part, Value):
                mask = mask << b.op("arith.trunci", self.part, type="i16", overflowFlags="#arith.overflow<none>")
            atom = b.op("cute.atom.set_value", atom, mask, field='"multicast_mask"')
        self._fetch(self.A_, atom, self.A_parts, slot, k_tile, row, self.neighbour)

    def _fetch_b(self, slot: Value, k_tile: Value) -> None:
        b = self.b
        atom = b.op("cute.atom.set_value", self.load_b, self._full(slot), field='"tma_bar"')
        if self.c.hint:
            atom = b.op("cute.atom.set_value", atom, b.constant(EVICT_FIRST, "i64"), field='"cache_hint"')
        self._fetch(self.B_, atom, self.B_parts, slot, k_tile, self.n0, None)

    def _fetch(
        self, operand: Operand, atom: Value, parts: Value, slot: Value, k_tile: Value, row: Value, piece: Value | None
    ) -> None:
        b = self.b
        k = (k_tile + self.k_begin) * self.k
        where = b.view(b.int_tuple((k, row)), operand.where)
        b.copy(atom, where, b.slice(parts, None, 0 if piece is None else piece, None, slot))

    # ---------------------------------------------------------------------------------------------- consumers

    def _consume(self) -> None:
        b, c = self.b, self.c
        self.tiled_mma = b.op("cute.make_tiled_mma", b.atom(self.wgmma), type=self.mma)
        self.tA = b.let("tA", b.partition("A", self.tiled_mma, self.A, self.group * 128))
        self.tB = b.let("tB", b.partition("B", self.tiled_mma, self.B, self.group * 128))
        self.sums = b.let("acc", b.registers(self.acc))
        self._step(b.constant(0), b.constant(0), first=True)
        one, zero = b.constant(1), b.constant(0)
        with b.for_(1, self.k_count, 1, [one, zero, zero]) as loop:
            slot, phase, previous = loop.args
            self._step(slot, phase, first=False)
            b.run("wgmma_wait_group", n=1)
            self._release(previous, loop.iv)
            loop.next(*self._next(slot, phase), slot)
        b.run("wgmma_wait_group", self.sums, n=0)
        if c.parts > 1:
            self._send()
            self._meet()
            self._receive()
        elif c.direct:
            self._store(self.sums, 0, c.columns, self.group)
        else:
            self._store_chunks()

    def _step(self, slot: Value, phase: Value, *, first: bool) -> None:
        b = self.b
        b.run("mbarrier_wait", self._full(slot), phase)
        b.run("wgmma_fence")
        a, bb = (b.slice(t, None, None, None, slot) for t in (self.tA, self.tB))
        b.gemm(self.tiled_mma, self.sums, a, bb, None if first else self.sums)
        b.run("wgmma_commit_group")

    def _release(self, slot: Value, k: Value) -> None:
        """The slot of step ``k - 1`` is free.  Nobody waits for those that are not filled again, so that a block that
        is told is still there.
        """
        b, c = self.b, self.c
        again = k + (c.stages - 1) < self.k_count
        tells = b.binary("and", (self.tid % 128) < c.share, again)
        if c.share == 1:
            with b.if_(tells):
                b.run("mbarrier_arrive", self._empty(slot))
            return
        b.run("mbarrier_arrive_cluster", self._empty(slot), (self.tid % c.share) * c.parts + self.part, tells)

    # ------------------------------------------------------------------------------------------------ exchange

    def _owner(self, consumer: Value, piece: int) -> Value:
        """The part whose block finishes this piece of a consumer's columns."""
        c = self.c
        return (consumer * c.pieces + piece) * c.parts // (c.consumers * c.pieces)

    def _slots(self, values: Value, senders: Value | int) -> Value:
        """16 bytes a thread: (values of a vector, vectors) of this thread in an inbox."""
        b, c = self.b, self.c
        vectors = c.columns // c.pieces // 8
        group = max(1, c.consumers // c.parts)
        size = c.inbox[0]
        layout = f"(4,{vectors},128,{group},{max(1, c.parts - 1)}):(1,512,4,{64 * c.columns},{size})"
        return b.slice(b.view(values, layout), None, None, self.tid % 128, self.group % group, senders)

    def _send(self) -> None:
        b, c = self.b, self.c
        assert isinstance(self.part, Value)
        first = (self.neighbour * c.parts) if self.neighbour is not None else 0
        copy = b.atom("!cute_nvgpu.atom.universal_copy<f32, 128 b>")
        width = c.columns // 2 // c.pieces
        for piece in range(c.pieces):
            owner = self._owner(self.group, piece)
            with b.if_(owner.ne(self.part)):
                # Parts take the places of the inbox in turn, counted from the owner.
                place = (self.part + (c.parts - 1) - owner) % c.parts
                far = b.arch("map_cluster", b.iterator(self.inbox), owner + first)
                mine = b.view(b.pointer(self.sums, piece * width), f"(4,{width // 4}):(1,4)")
                b.copy(copy, mine, self._slots(far, place))

    def _meet(self) -> None:
        self.b.run("cluster_arrive", relaxed=False)
        self.b.run("cluster_wait")

    def _receive(self) -> None:
        b, c = self.b, self.c
        copy = b.atom("!cute_nvgpu.atom.universal_copy<f32, 128 b>")
        width = c.columns // 2 // c.pieces
        for piece in range(c.pieces):
            with b.if_(self._owner(self.group, piece).eq(self.part)):
                mine = b.view(b.pointer(self.sums, piece * width), f"{width}:1")
                layout = f"(4,{width // 4}):(1,4)"
                found = [b.registers(f'!cute.memref<f32, rmem, align<32>, "{layout}">') for _ in range(c.parts - 1)]
                for sender, values in enumerate(found):
                    b.copy(copy, self._slots(b.iterator(self.inbox), sender), values)
                for values in found:
                    with b.for_(0, width) as each:  # register tensors: the loop is unrolled
                        b.store(mine, each.iv, b.load(mine, each.iv) + b.load(values, each.iv))
                self._store(mine, piece * (c.columns // c.pieces), c.columns // c.pieces, self.group)

    # ------------------------------------------------------------------------------------------------ epilogue

    def _narrow(self, values: Value, pair: Value) -> Value:
        """Two neighbours of a row, as elements of C."""
        b, c = self.b, self.c
        two = b.load_vec(b.view(b.pointer(values, pair * 2), "2:1"))
        return two if c.output == "f32" else b.op("arith.truncf", two, type=f"vector<2x{c.output}>")

    def _store(self, values: Value, first: int, columns: int, consumer: Value) -> None:
        """Registers to memory: a thread has two neighbours in each group of 8 columns of two rows."""
        b, c = self.b, self.c
        rows, width = b.extents(self.to)
        column = self.n0 + first + (self.lane % 4) * 2
        bytes_ = 2 * BITS[c.output] // 8
        for half in range(2):
            row = self.m0 + consumer * 64 + self.warp * 16 + self.lane // 4 + 8 * half
            with b.if_(row < rows):
                line = b.pointer(b.slice(self.to, row, None), column)
                line = b.op("cute.assume", line, type=f"!cute.ptr<{c.output}, gmem, align<{bytes_}>>")
                step = b.view(line, f"(2,{columns // 8}):(1,8)")
                # Register tensors: the loop is unrolled.
                with b.for_(0, columns // 8) as loop, b.if_(column + loop.iv * 8 < width):
                    b.store_vec(self._narrow(values, loop.iv * 2 + half), b.slice(step, None, loop.iv))

    def _store_chunks(self) -> None:
        """Registers to the stages, which are free now, and from there by TMA; a warp stores its 16 rows."""
        b, c = self.b, self.c
        chunk = c.base.chunk
        atom = f"!cute_nvgpu.atom.stsm<val_type = {c.output}, num_matrices = 4, n>"
        tv = f"((4,8,4),(2,2,{chunk // 8})):((128,1,16),(64,8,512))"
        copy = b.tiled_copy(f'!cute.tiled_copy<{atom}, layout_copy_tv = <"{tv}">, tiler_mn = <"[64:1;{chunk}:1]">>')
        out = b.registers(f'!cute.memref<{c.output}, rmem, "((2,2,{c.columns // 8}),1,1):((1,2,4),0,0)">')
        with b.for_(0, c.columns // 4) as loop:  # register tensors: the loop is unrolled
            b.store_vec(self._narrow(self.sums, loop.iv), b.view(b.pointer(out, loop.iv * 2), "2:1"))
        # A stage of A begins with the rows of this consumer: 64 rows of 128 bytes, which only it has read.
        start = b.op("cute.recast_iter", b.iterator(self.A), type=f"!cute.ptr<{c.output}, smem, align<1024>, S<3,4,3>>")
        size = c.rows * chunk
        staged = b.view(start, f"(64,{chunk},{c.consumers},{c.stages}):({chunk},1,{64 * chunk},{size})")
        rows = b.view(start, f"(16,4,{chunk},{c.consumers},{c.stages}):({chunk},{16 * chunk},1,{64 * chunk},{size})")
        for i in range(c.columns // chunk):
            values = b.view(b.pointer(out, chunk // 2 * i), f"((2,2,{chunk // 8}),1,1):((1,2,4),0,0)")
            source = b.op("cute.tiled.copy.retile", copy, values)
            mine = b.partition("D", copy, b.slice(staged, None, None, self.group, i), self.tid % 128)
            b.copy(copy, source, mine)
            b.run("fence_proxy_async")
            b.run("syncwarp")
            with b.if_(self.lane.eq(0)):
                row = self.m0 + self.group * 64 + self.warp * 16
                where = b.view(b.int_tuple((self.n0 + i * chunk, row)), f"(16,{chunk}):(1@1,1@0)")
                b.copy(self.to, b.slice(rows, None, self.warp, None, self.group, i), where)
                b.run("bulk_commit_group")
        with b.if_(self.lane.eq(0)):
            b.run("bulk_wait_group", n=0, read=True)

    # --------------------------------------------------------------------------------------------------- host

    def host(self) -> None:
        """``@launch(A, B, C)``: the tensor maps and the grid."""
        b, c = self.b, self.c
        matrices = {"A": self.A_.matrix, "B": self.B_.matrix, "C": self.matrix}
        with b.host("launch", matrices) as (A, B, C):
            (rows, depth), (columns, depth_b), (rows_c, columns_c) = b.extents(A), b.extents(B), b.extents(C)
            k_tiles = b.ceil_div(depth, self.k)
            for ok, text in (
                (depth.eq(depth_b), "A and B must have the same K"),
                (rows.eq(rows_c), "A and C must have the same M"),
                (columns.eq(columns_c), "B and C must have the same N"),
                *([(k_tiles >= c.parts, f"K has fewer than {c.parts} stages")] if c.parts > 1 else []),
            ):
                b.do("cf.assert", ok, msg=f'"{text}"')
            load_a = self._map("load", A, f"[{self.A_.part}:1;{self.k}:1]", self.A_.tile_layout)
            load_b = self._map("load", B, f"[{c.columns}:1;{self.k}:1]", self.B_.tile_layout)
            chunk = c.base.chunk
            to = C if c.direct else self._map("store", C, f"[16:1;{chunk}:1]", f"(16,{chunk}):({chunk},1)")
            grid_y = b.ceil_div(columns, c.columns * c.share) * c.cluster
            grid = (b.ceil_div(rows, c.rows), grid_y, 1)
            b.launch("gemm", [load_a, load_b, to, k_tiles], grid=grid, threads=c.threads)

    def _map(self, kind: str, tensor: Value, tile: str, layout: str) -> Value:
        b = self.b
        atom, _ = b.results(f"cute_nvgpu.make_tma_{kind}", tensor, b.layout(layout), b.tile(tile), swizzle=128, l2=256)
        return atom
