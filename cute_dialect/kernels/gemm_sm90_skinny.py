"""Hopper GEMM for few rows: ``C[M,N] = A[M,K] * B[N,K]^T`` where reading B is all that takes time.

One tile a block, nothing persistent.  The first loads are on their way before the block's threads have met.  Blocks of
a cluster may share A (``share``: neighbours along N, each loads a part for all) and K (``parts``: each multiplies some
of it and sends sums to the block that finishes them, through distributed shared memory).  B is read once, so its lines
are the first to leave the L2 (``hint``): they neither drive out what is used again nor have to wait until modified
lines of others are written back.

A and B have rings of their own, filled by a warp each.  Of each ring

    full[s]:  one arrival (the producer's, with the bytes of the stage) and the bytes, whoever sends them
    empty[s]: one arrival of every consumer of the blocks that it is filled for, for stages that are filled again

>>> "map_cluster" in gemm_sm90_skinny(SkinnyConfig(columns=128, stages_a=6, stages=6, parts=2))
True
"""

from __future__ import annotations

from collections.abc import Callable

from cute_dialect.kernels.gemm_sm90_config import BITS, EVICT_FIRST, Operand
from cute_dialect.kernels.gemm_sm90_epilogue import Fused, arguments, checks
from cute_dialect.kernels.gemm_sm90_skinny_config import SkinnyConfig
from cute_dialect.kernels.script import Script
from cute_dialect.kernels.values import Value

__all__ = ["gemm_sm90_skinny"]


def gemm_sm90_skinny(config: SkinnyConfig | None = None) -> str:
    """Return the file: kernel ``@gemm`` and host function ``@launch`` (A, B, C).

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
        f"A block computes one tile of {c.rows} x {c.columns}; stages of 128 bytes of K are loaded",
        f"ahead, {c.stages_a} of A and {c.stages} of B.",
        *([f"In a cluster {' and '.join(shared)}."] if shared else []),
    ]
    return "\n".join(f"// {line}".rstrip() for line in lines)


class _Ring:
    """One operand's stages and barriers."""

    def __init__(self, b: Script, operand: Operand, stages: int, bytes_: int, consumers: int, neighbour: Value | None):
        self.b, self.operand, self.stages, self.bytes, self.consumers = b, operand, stages, bytes_, consumers
        self.neighbour = neighbour
        self.tensor = b.alloc_smem(operand.smem)
        self.barriers = b.alloc_smem(f'!cute.memref<i64, smem, "({stages},2):(1,{stages})">')
        self.parts = b.view(b.iterator(self.tensor), operand.parts)

    def full(self, slot: Value | int) -> Value:
        return self.b.pointer(self.barriers, slot)

    def empty(self, slot: Value | int) -> Value:
        return self.b.pointer(self.barriers, slot + self.stages)

    def init(self) -> None:
        """Make the barriers, by one thread."""
        b = self.b
        with b.for_(0, self.stages) as loop:
            b.run("mbarrier_init", self.full(loop.iv), 1)
            b.run("mbarrier_init", self.empty(loop.iv), self.consumers)
        b.run("fence_mbarrier_init")

    def next(self, slot: Value, phase: Value) -> tuple[Value, Value]:
        b = self.b
        following = slot + 1
        wraps = following.eq(self.stages)
        return b.select(wraps, 0, following), phase ^ b.to_i32(wraps)

    def fetch(self, atom: Value, slot: Value, k: Value, row: Value) -> None:
        """Fetch this block's part of a stage."""
        b = self.b
        where = b.view(b.int_tuple((k, row)), self.operand.where)
        part = 0 if self.neighbour is None else self.neighbour
        b.copy(atom, where, b.slice(self.parts, None, part, None, slot))


class _Skinny:
    def __init__(self, b: Script, config: SkinnyConfig):
        self.b, self.c = b, config
        c, base = config, config.base
        self.A_ = Operand(base._replace(stages=c.stages_a), c.rows, c.share, "k", live=c.live)
        self.B_ = Operand(base, c.columns, 1, "k", l2=c.l2)
        self.k = base.tile[2]
        e = c.element
        self.wgmma = f"!cute_nvgpu.atom.wgmma<64x{c.columns}x{256 // base.bits}, (f32,{e},{e},f32), A = smem>"
        self.mma = f'!cute.tiled_mma<{self.wgmma}, atom_layout_MNK = <"({c.consumers},1,1):(1,0,0)">>'
        self.acc = f'!cute.memref<f32, rmem, "((2,2,{c.columns // 8}),1,1):((1,2,4),0,0)">'
        out = 128 // BITS[c.output]
        self.matrix = f'!cute.memref<{c.output}, gmem, align<16>, "(?,?):(?{{div={out}}},1)">'
        self.swizzle = c.chunk * BITS[c.output] // 8
        box = f"box = ({c.chunk}, 16), swizzle = {self.swizzle}, l2 = 256"
        self.tma_c = f"!cute_nvgpu.atom.tma_store<{c.output}, {box}>"
        for name, text in {
            "sA": self.A_.smem, "sB": self.B_.smem, "loadA": self.A_.atom, "loadB": self.B_.atom,
            "mma": self.mma, "A": self.A_.matrix, "C": self.matrix,
        }.items():  # fmt: skip
            b.name_type(name, text)

    # ------------------------------------------------------------------------------------------------- kernel

    def kernel(self) -> None:
        b, c = self.b, self.c
        to = {"C": self.matrix} if c.direct else {"storeC": self.tma_c}
        fused = arguments(c.epilogue, c.output)
        parameters = {"loadA": self.A_.atom, "loadB": self.B_.atom, **to, "k_tiles": "i32", **fused}
        cluster = (1, c.cluster, 1) if c.cluster > 1 else None
        attributes = ["nvvm.minctasm = 1 : i32"]
        with b.kernel("gemm", parameters, threads=c.threads, cluster=cluster, attributes=attributes) as p:
            self.load_a, self.load_b, self.to, self.k_tiles = p[:4]
            self.fused = Fused(b, c.epilogue, c.output, dict(zip(fused, p[4:])))
            self._begin()
            self._prologue()
            b.say("Two warps load, the warp groups multiply.")
            with b.if_else(self.group.eq(c.consumers)) as (producer, consumer):
                with producer:
                    with b.if_else(self.warp.eq(0)) as (of_a, of_b):
                        with of_a, b.if_(b.arch("elect_one")):
                            self._produce(self.a, self._fetch_a, c.share > 1)
                        with of_b, b.if_(b.arch("elect_one")):
                            self._produce(self.b_, self._fetch_b, False)
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
        consumers = c.consumers * c.share
        self.a = _Ring(b, self.A_, c.stages_a, 128 * c.rows_a, consumers, self.neighbour)
        self.b_ = _Ring(b, self.B_, c.stages, 128 * c.columns, c.consumers, None)
        if c.parts > 1:
            values, senders = c.inbox
            inbox = f'!cute.memref<f32, smem, align<16>, "({values},{senders}):(1,{values})">'
            self.inbox = b.let("inbox", b.alloc_smem(inbox))
        if c.staging:
            layout = f"(64,{c.chunk},{c.consumers},2):({c.chunk},1,{64 * c.chunk},{64 * c.chunk * c.consumers})"
            self.staging = b.alloc_smem(f'!cute.memref<{c.output}, smem, align<1024>, S<2,4,3>, "{layout}">')
        for name, value in (("sA", self.a.tensor), ("sB", self.b_.tensor)):
            b.let(name, value)
        self.tid = b.let("tid", b.thread_id())
        warp = b.arch("warp_id")
        self.group = b.let("warp_group", warp // 4)
        self.warp = b.let("warp", warp % 4)
        self.lane = b.let("lane", b.arch("lane_id"))
        b.say("The threads that load make the barriers, and start what needs no other block.")
        first = 128 * c.consumers
        with b.if_(self.tid.eq(first)):
            self.a.init()
            if c.share == 1:
                self._start(self.a, self._fetch_a)
            else:
                self._announce(self.a)
        with b.if_(self.tid.eq(first + 32)):
            self.b_.init()
            self._start(self.b_, self._fetch_b)
        if c.cluster > 1:
            b.run("cluster_arrive", relaxed=True)
            b.run("cluster_wait")
        else:
            b.run("barrier")

    # ----------------------------------------------------------------------------------------------- producer

    def _announce(self, ring: _Ring) -> None:
        """Announce the bytes of the first stages."""
        b = self.b
        with b.for_(0, self._early(ring)) as loop:
            b.run("mbarrier_arrive_expect_tx", ring.full(loop.iv), ring.bytes)

    def _start(self, ring: _Ring, fetch: Callable[[Value, Value], None]) -> None:
        """Start the first stages."""
        b = self.b
        with b.for_(0, self._early(ring)) as loop:
            b.run("mbarrier_arrive_expect_tx", ring.full(loop.iv), ring.bytes)
            fetch(loop.iv, loop.iv)

    def _early(self, ring: _Ring) -> Value:
        return self.b.minimum(self.k_count, ring.stages)

    def _produce(self, ring: _Ring, fetch: Callable[[Value, Value], None], all_stages: bool) -> None:
        b = self.b
        early = self._early(ring)
        if all_stages:
            with b.for_(0, early) as loop:
                fetch(loop.iv, loop.iv)
        slot, phase = early % ring.stages, (early // ring.stages) & 1
        with b.for_(early, self.k_count, 1, [slot, phase]) as loop:
            slot, phase = loop.args
            b.run("mbarrier_wait", ring.empty(slot), phase ^ 1)
            b.run("mbarrier_arrive_expect_tx", ring.full(slot), ring.bytes)
            fetch(slot, loop.iv)
            loop.next(*ring.next(slot, phase))

    def _fetch_a(self, slot: Value, k_tile: Value) -> None:
        b, c = self.b, self.c
        row = self.m0
        atom = b.op("cute.atom.set_value", self.load_a, self.a.full(slot), field='"tma_bar"')
        if self.neighbour is not None:
            row = row + self.neighbour * self.A_.part
            mask = b.constant(sum(1 << i * c.parts for i in range(c.share)), "i16")
            if isinstance(self.part, Value):
                mask = mask << b.op("arith.trunci", self.part, type="i16", overflowFlags="#arith.overflow<none>")
            atom = b.op("cute.atom.set_value", atom, mask, field='"multicast_mask"')
        self.a.fetch(atom, slot, (k_tile + self.k_begin) * self.k, row)

    def _fetch_b(self, slot: Value, k_tile: Value) -> None:
        b = self.b
        atom = b.op("cute.atom.set_value", self.load_b, self.b_.full(slot), field='"tma_bar"')
        if self.c.hint:
            atom = b.op("cute.atom.set_value", atom, b.constant(EVICT_FIRST, "i64"), field='"cache_hint"')
        self.b_.fetch(atom, slot, (k_tile + self.k_begin) * self.k, self.n0)

    # ---------------------------------------------------------------------------------------------- consumers

    def _consume(self) -> None:
        b, c = self.b, self.c
        self.tiled_mma = b.op("cute.make_tiled_mma", b.atom(self.wgmma), type=self.mma)
        self.tA = b.let("tA", b.partition("A", self.tiled_mma, self.a.tensor, self.group * 128))
        self.tB = b.let("tB", b.partition("B", self.tiled_mma, self.b_.tensor, self.group * 128))
        self.sums = b.let("acc", b.registers(self.acc))
        one, zero = b.constant(1), b.constant(0)
        self._step(zero, zero, zero, zero, first=True)
        with b.for_(1, self.k_count, 1, [one, zero, zero, one, zero, zero]) as loop:
            slot_a, phase_a, previous_a, slot_b, phase_b, previous_b = loop.args
            self._step(slot_a, phase_a, slot_b, phase_b, first=False)
            b.run("wgmma_wait_group", n=1)
            self._release(previous_a, previous_b, loop.iv)
            loop.next(*self.a.next(slot_a, phase_a), slot_a, *self.b_.next(slot_b, phase_b), slot_b)
        b.run("wgmma_wait_group", self.sums, n=0)
        if c.parts > 1:
            self._send()
            self._meet()
            self._receive()
        else:
            self._store(self.sums, 0, c.columns)

    def _step(self, slot_a: Value, phase_a: Value, slot_b: Value, phase_b: Value, *, first: bool) -> None:
        b = self.b
        b.run("mbarrier_wait", self.b_.full(slot_b), phase_b)
        b.run("mbarrier_wait", self.a.full(slot_a), phase_a)
        b.run("wgmma_fence")
        a, bb = b.slice(self.tA, None, None, None, slot_a), b.slice(self.tB, None, None, None, slot_b)
        b.gemm(self.tiled_mma, self.sums, a, bb, None if first else self.sums)
        b.run("wgmma_commit_group")

    def _release(self, slot_a: Value, slot_b: Value, k: Value) -> None:
        """Free the slots of step ``k - 1``.  Nobody waits for those that are not filled again, so that a block that
        is told is still there.
        """
        b, c = self.b, self.c
        thread = self.tid % 128

        def tells(ring: _Ring, threads: int) -> Value:
            return b.binary("and", thread < threads, k + (ring.stages - 1) < self.k_count)

        with b.if_(tells(self.b_, 1)):
            b.run("mbarrier_arrive", self.b_.empty(slot_b))
        again = tells(self.a, c.share)
        if c.share == 1:
            with b.if_(again):
                b.run("mbarrier_arrive", self.a.empty(slot_a))
        else:
            peer = (self.tid % c.share) * c.parts + self.part
            b.run("mbarrier_arrive_cluster", self.a.empty(slot_a), peer, again)

    # ------------------------------------------------------------------------------------------------ exchange

    def _owner(self, consumer: Value, piece: int) -> Value:
        """Return the part whose block finishes this piece of a consumer's columns."""
        c = self.c
        return (consumer * c.pieces + piece) * c.parts // (c.consumers * c.pieces)

    def _slots(self, values: Value, senders: Value | int) -> Value:
        """Return 16 bytes a thread: (values of a vector, vectors) of this thread in an inbox."""
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
                self._store(mine, piece * (c.columns // c.pieces), c.columns // c.pieces)

    # ------------------------------------------------------------------------------------------------ epilogue

    def _store(self, values: Value, first: int, columns: int) -> None:
        if self.c.epilogue.active:
            row = self.m0 + self.group * 64 + self.warp * 16
            self.fused.apply(values, columns, (row, self.n0 + first), self.lane, None)
        if self.c.direct:
            self._store_directly(values, first, columns)
        else:
            self._store_chunks(values, first, columns)

    def _narrow(self, values: Value, pair: Value) -> Value:
        """Narrow two neighbours of a row, as elements of C."""
        b, c = self.b, self.c
        two = b.load_vec(b.view(b.pointer(values, pair * 2), "2:1"))
        return two if c.output == "f32" else b.op("arith.truncf", two, type=f"vector<2x{c.output}>")

    def _store_directly(self, values: Value, first: int, columns: int) -> None:
        """Store registers to memory: a thread has two neighbours in each group of 8 columns of two rows."""
        b, c = self.b, self.c
        rows, width = b.extents(self.to)
        column = self.n0 + first + (self.lane % 4) * 2
        bytes_ = 2 * BITS[c.output] // 8
        for half in range(2):
            row = self.m0 + self.group * 64 + self.warp * 16 + self.lane // 4 + 8 * half
            with b.if_(row < rows):
                line = b.pointer(b.slice(self.to, row, None), column)
                line = b.op("cute.assume", line, type=f"!cute.ptr<{c.output}, gmem, align<{bytes_}>>")
                step = b.view(line, f"(2,{columns // 8}):(1,8)")
                # Register tensors: the loop is unrolled.
                with b.for_(0, columns // 8) as loop, b.if_(column + loop.iv * 8 < width):
                    b.store_vec(self._narrow(values, loop.iv * 2 + half), b.slice(step, None, loop.iv))

    def _store_chunks(self, values: Value, first: int, columns: int) -> None:
        """Store registers to the stages of A, which are free now, and from there by TMA; a warp stores its 16 rows."""
        b, c = self.b, self.c
        chunk = c.chunk
        atom = f"!cute_nvgpu.atom.stsm<val_type = {c.output}, num_matrices = 4, n>"
        tv = f"((4,8,4),(2,2,{chunk // 8})):((128,1,16),(64,8,512))"
        copy = b.tiled_copy(f'!cute.tiled_copy<{atom}, layout_copy_tv = <"{tv}">, tiler_mn = <"[64:1;{chunk}:1]">>')
        out = b.registers(f'!cute.memref<{c.output}, rmem, "((2,2,{columns // 8}),1,1):((1,2,4),0,0)">')
        with b.for_(0, columns // 4) as loop:  # register tensors: the loop is unrolled
            b.store_vec(self._narrow(values, loop.iv), b.view(b.pointer(out, loop.iv * 2), "2:1"))
        size = 64 * chunk
        if c.staging:
            buffers, stage = c.staging, size * c.consumers
            pattern, start = "S<2,4,3>", self.staging
        else:
            # A stage of A begins with the rows of this consumer: 64 rows of 128 bytes, which only it has read.
            buffers, stage = c.stages_a, c.rows * chunk
            pattern, start = "S<3,4,3>", self.a.tensor
        pointer = f"!cute.ptr<{c.output}, smem, align<1024>, {pattern}>"
        start = b.op("cute.recast_iter", b.iterator(start), type=pointer)
        modes, strides = f"{chunk},{c.consumers},{buffers}", f"1,{size},{stage}"
        staged = b.view(start, f"(64,{modes}):({chunk},{strides})")
        rows = b.view(start, f"(16,4,{modes}):({chunk},{16 * chunk},{strides})")
        for i in range(columns // chunk):
            part = b.view(b.pointer(out, chunk // 2 * i), f"((2,2,{chunk // 8}),1,1):((1,2,4),0,0)")
            source = b.op("cute.tiled.copy.retile", copy, part)
            if i >= buffers:
                with b.if_(self.lane.eq(0)):
                    b.run("bulk_wait_group", n=buffers - 1, read=True)
                b.run("syncwarp")
            buffer = i % buffers
            mine = b.partition("D", copy, b.slice(staged, None, None, self.group, buffer), self.tid % 128)
            b.copy(copy, source, mine)
            b.run("fence_proxy_async")
            b.run("syncwarp")
            with b.if_(self.lane.eq(0)):
                row = self.m0 + self.group * 64 + self.warp * 16
                where = b.view(b.int_tuple((self.n0 + (first + i * chunk), row)), f"(16,{chunk}):(1@1,1@0)")
                b.copy(self.to, b.slice(rows, None, self.warp, None, self.group, buffer), where)
                b.run("bulk_commit_group")
        with b.if_(self.lane.eq(0)):
            b.run("bulk_wait_group", n=0, read=True)

    # --------------------------------------------------------------------------------------------------- host

    def host(self) -> None:
        """Emit ``@launch(A, B, C)``: the tensor maps and the grid."""
        b, c = self.b, self.c
        matrices = {"A": self.A_.matrix, "B": self.B_.matrix, "C": self.matrix}
        fused = arguments(c.epilogue, c.output)
        with b.host("launch", matrices | fused) as (A, B, C, *others):
            (rows, depth), (columns, depth_b), (rows_c, columns_c) = b.extents(A), b.extents(B), b.extents(C)
            k_tiles = b.ceil_div(depth, self.k)
            for ok, text in (
                (depth.eq(depth_b), "A and B must have the same K"),
                (rows.eq(rows_c), "A and C must have the same M"),
                (columns.eq(columns_c), "B and C must have the same N"),
                *([(k_tiles >= c.parts, f"K has fewer than {c.parts} stages")] if c.parts > 1 else []),
                *([(rows <= c.live, f"A has more than {c.live} rows")] if c.live else []),
            ):
                b.do("cf.assert", ok, msg=f'"{text}"')
            checks(c.epilogue, b, dict(zip(fused, others)), rows, columns, [])
            load_a = self._map("load", A, f"[{self.A_.part}:1;{self.k}:1]", self.A_.tile_layout, 128)
            load_b = self._map("load", B, f"[{c.columns}:1;{self.k}:1]", self.B_.tile_layout, 128, c.l2)
            tile, layout = f"[16:1;{c.chunk}:1]", f"(16,{c.chunk}):({c.chunk},1)"
            to = C if c.direct else self._map("store", C, tile, layout, self.swizzle)
            grid_y = b.ceil_div(columns, c.columns * c.share) * c.cluster
            grid = (b.ceil_div(rows, c.rows), grid_y, 1)
            b.launch("gemm", [load_a, load_b, to, k_tiles, *others], grid=grid, threads=c.threads)

    def _map(self, kind: str, tensor: Value, tile: str, layout: str, swizzle: int, l2: int = 256) -> Value:
        b = self.b
        name, boxes = f"cute_nvgpu.make_tma_{kind}", (b.layout(layout), b.tile(tile))
        atom, _ = b.results(name, tensor, *boxes, swizzle=swizzle, l2=l2)
        return atom
