"""GEMM with cp.async and mma.sync: ``C[M,N] = A[M,K] * B[N,K]^T``, f16 or bf16, any M, N, K, as cute IR.

A block computes one tile of C.  Tiles of A and B go through a ring of stages in shared memory (swizzled over 128
bytes), filled by ``cp.async`` while earlier ones are multiplied; ``ldmatrix`` (``.trans`` where an operand is stored
with M or N contiguous) brings them to registers; the result goes back through the same shared memory so that rows of C
are written in whole vectors.  Everything outside of the matrices is filled with zeros on the way in and masked on the
way out.  The incomplete part of K, if there is one, comes first; so the loop has no flags along K.

``@gemm_16``, ``@gemm_8``, ``@gemm_4`` move 16, 8, 4 bytes at a time and take matrices whose strides, extents along the
contiguous mode and addresses are multiples of that; ``@gemm`` takes any, by loads of single elements.  The launch takes
the first whose types hold.

>>> "cute_nvgpu.atom.simt_async_copy" in gemm_sm80(GemmConfig())
True
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.kernels.copies import mma_copy, tile_copy
from cute_dialect.kernels.script import Script
from cute_dialect.kernels.values import Value

__all__ = ["GemmConfig", "gemm_sm80"]

MAJORS = ("k", "mn")


class GemmConfig(NamedTuple):
    """The configuration of a GEMM's module.

    ``element``: of A, B and C, f16 or bf16; ``tile``: (M, N, K) of a block; ``warps``: along M and N; ``stages``: tiles
    of K in shared memory; ``majors``: which index is contiguous in A and in B, "k" or "mn"; ``group``: rows of tiles
    that are computed side by side, so that their B is shared in the L2 cache; ``vectors``: elements that one copy
    moves, one kernel each: first that of the launch, then its variants, the strongest first.
    """

    element: str = "f16"
    tile: tuple[int, int, int] = (128, 128, 32)
    warps: tuple[int, int] = (2, 2)
    stages: int = 3
    majors: tuple[str, str] = ("k", "k")
    group: int = 8
    vectors: tuple[int, ...] = (1, 8, 4, 2)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps[0] * self.warps[1]

    @property
    def name(self) -> str:
        """``f16-128x128x32-3-kk``"""
        m, n, k = self.tile
        return f"{self.element}-{m}x{n}x{k}-{self.stages}-{''.join(x[0] for x in self.majors)}"


def gemm_sm80(config: GemmConfig | None = None) -> str:
    """Return the file: kernels ``@gemm…`` and host function ``@launch`` (A, B, C)."""
    config = config or GemmConfig()
    b = Script()
    kernels = [_Gemm(b, config, vector) for vector in config.vectors]
    for kernel in kernels:
        for name, t in kernel.names().items():
            b.name_type(name, t)
    for kernel in kernels:
        kernel.kernel()
    _host(b, kernels)
    m, n, k = config.tile
    head = _HEAD.format(
        element=config.element, m=m, n=n, k=k, threads=config.threads, wm=config.warps[0], wn=config.warps[1],
        stages=config.stages,
    )  # fmt: skip
    return b.script("\n".join(f"// {line}".rstrip() for line in head.strip().splitlines()))


_HEAD = """\
C[M,N] = A[M,K] * B[N,K]^T in {element}, accumulated in f32; any M, N, K.

A block of {threads} threads computes a tile of {m} x {n}, in warps of {wm} x {wn}; tiles of {k} along K go through
{stages} stages of shared memory: cp.async fills them while earlier ones are multiplied by ldmatrix and mma.sync.
Shared memory is swizzled (S<3,4,3>: 16-byte units among 128 bytes): no bank conflicts.
What lies outside of the matrices is filled with zeros.  The last, perhaps incomplete tile of K is taken first.

The kernels differ in what one copy moves: @gemm_16 16 bytes … and @gemm, which no alignment stops, one element.
The launch takes the first whose types hold for the arguments.
"""


class _Operand:
    """A or B: its matrix, its tiles, how they are copied."""

    def __init__(self, config: GemmConfig, name: str, mma: str, vector: int):
        self.name = name
        self.rows = config.tile[0 if name == "A" else 1]
        self.depth = config.tile[2]
        self.major = config.majors[0 if name == "A" else 1]
        self.vector = vector
        e = config.element
        self.contiguous = 1 if self.major == "k" else 0
        size = 2 * vector
        if vector == 1:
            self.atom = f"!cute_nvgpu.atom.universal_copy<{e}>"
        else:
            cache = "global" if size == 16 else "always"
            self.atom = f"!cute_nvgpu.atom.simt_async_copy<{e}, cache = {cache}, {8 * size} b>"
        self.copy = tile_copy(self.atom, (self.rows, self.depth), config.threads, vector, contiguous=self.contiguous)
        self.matrix = _matrix(e, vector, self.contiguous)
        self.ldsm = f"!cute_nvgpu.atom.ldsm<val_type = {e}, num_matrices = 4, {'n' if self.major == 'k' else 't'}>"
        # One stage in shared memory: runs of 128 bytes (64 of K: 32) along the contiguous mode.
        rows, depth = self.rows, self.depth
        if self.major == "k":
            width = min(64, depth)
            k_mode = f"({width},{depth // width}):(1,{rows * width})" if depth > width else f"{depth}:1"
            self.smem = _join(f"{rows}:{width}", k_mode, f"{config.stages}:{rows * depth}")
        else:
            width = min(64, rows)
            row_mode = f"({width},{rows // width}):(1,{depth * width})" if rows > width else f"{rows}:1"
            self.smem = _join(row_mode, f"{depth}:{width}", f"{config.stages}:{rows * depth}")
        self.elements = rows * depth * config.stages


def _join(*modes: str) -> str:
    shapes, strides = zip(*[m.split(":") for m in modes])
    return f"({','.join(shapes)}):({','.join(strides)})"


def _matrix(element: str, vector: int, contiguous: int) -> str:
    """Return the type of a matrix whose rows (or columns) are runs of whole vectors."""
    if vector == 1:
        strides = "(1,?)" if contiguous == 0 else "(?,1)"
        return f'!cute.memref<{element}, gmem, "(?,?):{strides}">'
    d = f"?{{div={vector}}}"
    layout = f"({d},?):(1,{d})" if contiguous == 0 else f"(?,{d}):({d},1)"
    return f'!cute.memref<{element}, gmem, align<{2 * vector}>, "{layout}">'


class _Gemm:
    """One kernel; ``vector``: elements that one copy moves."""

    def __init__(self, b: Script, config: GemmConfig, vector: int):
        from cute_dialect.cute_nvgpu.tiled_mma.types import TiledMmaType

        if vector == 1:
            # Elements on their way are held in registers: not too many at a time.
            config = config._replace(tile=(*config.tile[:2], min(config.tile[2], 32)))
        self.b = b
        self.c = config
        self.vector = vector
        self.name = "gemm" if vector == 1 else f"gemm_{2 * vector}"
        e = config.element
        wm, wn = config.warps
        self.mma_atom = f"!cute_nvgpu.atom.mma_sync<16x8x16, (f32,{e},{e},f32)>"
        # Two instructions along N lie side by side in a warp, so that one ldmatrix serves both.
        self.mma = (
            f'!cute.tiled_mma<{self.mma_atom}, atom_layout_MNK = <"({wm},{wn},1):(1,{wm},0)">, '
            f'permutation_MNK = <"[{16 * wm}:1;{16 * wn}:1;16:1]">>'
        )
        mma_type = b.type(self.mma)
        assert isinstance(mma_type, TiledMmaType)
        self.operands = [_Operand(config, name, self.mma, vector) for name in "AB"]
        self.loads = [mma_copy(o.ldsm, mma_type, o.name) for o in self.operands]
        self.matrix_c = _matrix(e, vector, 1)
        total = max(sum(o.elements for o in self.operands), config.tile[0] * config.tile[1])
        self.smem = f'!cute.memref<{e}, smem, align<1024>, S<3,4,3>, "{total}:1">'
        m, n, _ = config.tile
        self.smem_c = f"({m},(64,{n // 64})):(64,(1,{64 * m}))" if n > 64 else f"({m},{n}):({n},1)"
        self.plain = f"!cute_nvgpu.atom.universal_copy<{e}>"
        self.to_smem = mma_copy(self.plain, mma_type, "C")
        self.to_matrix = tile_copy(self.plain, (m, n), config.threads, vector, contiguous=1)

    def names(self) -> dict[str, str]:
        """Names of the types that the kernels share, and of this kernel's."""
        suffix = "" if self.vector == 1 else f"_{2 * self.vector}"
        a, b = self.operands
        return {
            "mma_atom": self.mma_atom, "mma": self.mma, "ldmatrixA": a.ldsm, "ldmatrixB": b.ldsm,
            "loadA": self.loads[0], "loadB": self.loads[1],
            "element": self.plain, "storeS": self.to_smem, f"storeC{suffix}": self.to_matrix,
            f"copy{suffix}": a.atom, f"fillA{suffix}": a.copy, f"fillB{suffix}": b.copy,
            f"mat{suffix}": self.matrix_c, f"matA{suffix}": a.matrix, f"matB{suffix}": b.matrix,
        }  # fmt: skip

    # ------------------------------------------------------------------------------------------------- kernel

    def kernel(self) -> None:
        b, c = self.b, self.c
        parameters = {"A": self.operands[0].matrix, "B": self.operands[1].matrix, "C": self.matrix_c}
        with b.kernel(self.name, parameters, threads=c.threads) as (A, B, C):
            self.tid = b.let("tid", b.thread_id())
            self.thread = b.let("thr", b.coord(self.tid))
            self.M, self.K = _extents(b, A, "M", "K")
            self.N, _ = _extents(b, B, "N", "_")
            self.k_tiles = b.let("k_tiles", b.ceil_div(self.K, c.tile[2]))
            self._place()
            b.say("The stages of A, then those of B; at the end C.")
            self.buffer = b.iterator(b.let("smem", b.alloc_smem(self.smem)))
            self.sources = [
                _Source(self, o, matrix, start, extent, offset)
                for o, matrix, start, extent, offset in (
                    (self.operands[0], A, self.m0, self.M, 0),
                    (self.operands[1], B, self.n0, self.N, self.operands[0].elements),
                )
            ]
            self.tiled_mma = b.let("tiled_mma", b.op("cute.make_tiled_mma", b.atom(self.mma_atom), type=self.mma))
            self._multiply()
            self._store(C)

    def _place(self) -> None:
        """First row and column of this block's tile; ``group`` rows of tiles at a time."""
        b, c = self.b, self.c
        tiles_m, tiles_n = b.ceil_div(self.M, c.tile[0]), b.ceil_div(self.N, c.tile[1])
        b.say(f"Tiles of C: {c.group} rows of tiles at a time, column by column.")
        tile = b.let("tile", b.block_id())
        per_group = tiles_n * c.group
        group = tile // per_group
        inside = tile - group * per_group
        first = group * c.group
        rows = b.minimum(tiles_m - first, c.group)
        column = inside // rows
        self.tile_m, self.tile_n = b.let("tile_m", first + (inside - column * rows)), b.let("tile_n", column)
        self.m0, self.n0 = b.let("m0", self.tile_m * c.tile[0]), b.let("n0", self.tile_n * c.tile[1])

    def _multiply(self) -> None:
        b, c = self.b, self.c
        m, n, _ = c.tile
        wm, wn = c.warps
        layout = f"((2,2),{m // (16 * wm)},{n // (8 * wn)}):((1,2),4,{m // (4 * wm)})"
        self.accumulators = b.let("acc", b.registers(f'!cute.memref<f32, rmem, "{layout}">'))
        b.do("cute.clear", self.accumulators)
        b.say("The last tile of K, with zeros beyond K, comes first; the others follow from tile 0 on.")
        last = b.let("last", self.k_tiles - 1)
        left = b.let("left", b.minimum(self.K - last * c.tile[2], self.K))  # nothing, if K is 0
        for source in self.sources:
            source.fetch_residue(last, left)
        self._commit()
        for stage in range(1, c.stages - 1):
            with b.if_(b.compare("ult", b.constant(stage), self.k_tiles)):
                for source in self.sources:
                    source.move(b.constant(stage - 1), b.constant(stage), source.row_flags)
            self._commit()
        zero = b.constant(0)
        with b.for_(0, self.k_tiles, 1, [zero, b.constant(c.stages - 1)]) as loop:
            read, write = b.let("read", loop.args[0]), b.let("write", loop.args[1])
            self._wait(c.stages - 2)
            b.run("barrier")
            b.say(f"The stage that was read in the last step is filled with the tile {c.stages - 1} steps ahead.")
            ahead = b.let("ahead", loop.iv + (c.stages - 1))
            more = b.let("more", ahead < self.k_tiles)
            if self.vector > 1:
                with b.if_(more):
                    for source in self.sources:
                        source.move(ahead - 1, write, source.row_flags)
                self._commit()
                self._step(read)
            else:
                held = [source.held() for source in self.sources]
                with b.if_(more):
                    for source, h in zip(self.sources, held):
                        source.read(ahead - 1, h, source.row_flags)
                self._step(read)
                with b.if_(more):
                    for source, h in zip(self.sources, held):
                        source.write(h, write)
            loop.next(self._next(read), self._next(write))
        self._wait(0)
        b.run("barrier")

    def _commit(self) -> None:
        if self.vector > 1:
            self.b.run("cp_async_commit_group")

    def _wait(self, groups: int) -> None:
        if self.vector > 1:
            self.b.run("cp_async_wait_group", n=groups)

    def _next(self, stage: Value) -> Value:
        b = self.b
        following = stage + 1
        return b.select(following.eq(self.c.stages), 0, following)

    def _step(self, stage: Value) -> None:
        """Multiply one tile of K."""
        b, c = self.b, self.c
        fragments = [f.fragment(stage) for f in self.sources]
        views = [f.retiled(x) for f, x in zip(self.sources, fragments)]
        with b.for_(0, c.tile[2] // 16) as loop:  # register tensors: the loops are unrolled
            k = b.let("k", loop.iv)
            for source, view in zip(self.sources, views):
                source.load(view, stage, k)
        with b.for_(0, c.tile[2] // 16) as loop:
            k = b.let("k", loop.iv)
            x, y = (b.let(f"f{s.o.name}k", b.slice(f, None, None, k)) for f, s in zip(fragments, self.sources))
            b.gemm(self.tiled_mma, self.accumulators, x, y, self.accumulators)

    # ----------------------------------------------------------------------------------------------- epilogue

    def _store(self, C: Value) -> None:
        """Store accumulators, narrowed, to shared memory; from there rows in whole vectors to C."""
        b, c = self.b, self.c
        m, n, _ = c.tile
        e = c.element
        count = m * n // c.threads
        t = str(self.accumulators.type)
        b.say("The result in the type of C.")
        narrow = b.let("fC", b.registers(t.replace("f32", e, 1)))
        with b.for_(0, count // 2) as loop:
            values = b.load_vec(b.view(b.pointer(self.accumulators, loop.iv * 2), "2:1"))
            b.store_vec(
                b.op("arith.truncf", values, type=f"vector<2x{e}>"), b.view(b.pointer(narrow, loop.iv * 2), "2:1")
            )
        b.say("Through shared memory, so that rows of C are written in whole vectors.")
        tile = b.let("sC", b.view(self.buffer, self.smem_c))
        to_smem = b.tiled_copy(self.to_smem)
        rC = b.let("rC", b.op("cute.tiled.copy.retile", to_smem, narrow))
        b.copy(to_smem, rC, b.let("tCs", self.part("D", to_smem, tile)))
        b.run("barrier")
        to_matrix = b.tiled_copy(self.to_matrix)
        source = b.let("sCv", self.part("S", to_matrix, tile))
        block = b.let("gC", b.local_tile(C, f"[{m}:1;{n}:1]", (self.tile_m, self.tile_n)))
        target = b.let("tC", self.part("D", to_matrix, block))
        ids = b.let("idC", b.view(b.int_tuple((self.m0, self.n0)), f"({m},{n}):(1@0,1@1)"))
        where = b.let("tIdC", self.part("S", to_matrix, ids))
        limit = b.shape((self.M, self.N))
        steps = count // self.vector
        rest_m, rest_n = _rest(source)
        b.say("At the edges of C each element has a flag.")
        inside = b.let("inside", b.binary("and", (self.m0 + m) <= self.M, (self.n0 + n) <= self.N))
        with b.if_else(inside) as (whole, edge):
            with whole, b.for_(0, steps) as loop:
                i, j = _split(loop.iv, rest_m, rest_n)
                held = b.fragment_like(b.slice(source, None, i, j))
                b.copy(to_matrix, b.slice(source, None, i, j), held)
                b.copy(to_matrix, held, b.slice(target, None, i, j))
            with edge, b.for_(0, steps) as loop:
                i, j = _split(loop.iv, rest_m, rest_n)
                coordinates = b.slice(where, None, i, j)
                flags = b.fragment_like(coordinates, "i1")
                with b.for_(0, self.vector) as values:
                    flag = b.op("cute.elem_less", b.load(coordinates, values.iv), limit)
                    b.store(flags, values.iv, flag)
                held = b.fragment_like(b.slice(source, None, i, j))
                b.copy(to_matrix, b.slice(source, None, i, j), held)
                b.copy(to_matrix, held, b.slice(target, None, i, j), pred=flags)

    def part(self, side: str, tiled: Value, tensor: Value) -> Value:
        """Return this thread's part."""
        kind = "copy" if side in "SD" else "mma"
        return self.b.op(f"cute.tiled.{kind}.partition_{side}", tiled, tensor, self.thread)


def _split(i: Value, rest_m: int, rest_n: int) -> tuple[Value | int, Value | int]:
    if rest_n == 1:
        return i, 0
    return (0, i) if rest_m == 1 else (i % rest_m, i // rest_m)


def _rest(part: Value) -> tuple[int, int]:
    """Steps of a partitioned tile along its two modes."""
    from cute_dialect.algebra.evaluation import size
    from cute_dialect.algebra.values import Layout, layout_modes
    from cute_dialect.memory_types import MemRefType

    t = part.type
    assert isinstance(t, MemRefType) and isinstance(t.layout, Layout)
    sizes = [size(m) for m in layout_modes(t.layout)[1:3]]
    first, second = sizes
    assert isinstance(first, int) and isinstance(second, int)
    return first, second


def _extents(b: Script, matrix: Value, *names: str) -> tuple[Value, Value]:
    layout = b.op("cute.get_layout", matrix)
    found: list[Value] = []
    for mode, name in enumerate(names):
        (extent,) = b.results("cute.get_scalars", b.op("cute.size", layout, mode=f"array<i32: {mode}>"), types=["i32"])
        found.append(b.let(name, extent))
    return found[0], found[1]


_TILES = {
    "A": "Tiles of A for this block; what this thread copies, from where to where; what it loads into fragments.",
    "B": "The same of B.",
}
_FLAGS = {"A": "A flag an instruction: is its row inside of A?", "B": "A flag an instruction: is its row inside of B?"}


class _Source:
    """A or B in a kernel: its tiles in global memory, the ring in shared memory, its fragments."""

    def __init__(self, gemm: _Gemm, operand: _Operand, matrix: Value, start: Value, extent: Value, offset: int):
        b = gemm.b
        self.gemm, self.b, self.o = gemm, b, operand
        self.extent = extent
        x = operand.name
        rows, depth = operand.rows, operand.depth
        tile = gemm.tile_m if x == "A" else gemm.tile_n
        at = b.op("cute.add_offset", gemm.buffer, b.int_tuple(offset)) if offset else gemm.buffer
        self.ring = b.let(f"s{x}", b.view(at, operand.smem))
        copy = self.copy = b.let(f"fill{x}", b.tiled_copy(operand.copy))
        b.say(_TILES[x])
        block = b.let(f"g{x}", b.local_tile(matrix, f"[{rows}:1;{depth}:1]", (tile, None)))
        self.tiles = b.let(f"t{x}", gemm.part("S", copy, block))
        self.target = b.let(f"t{x}s", gemm.part("D", copy, self.ring))
        self.rest = _rest(self.target)
        self.load_copy = b.let(f"load{x}", b.tiled_copy(gemm.loads[0 if x == "A" else 1]))
        self.load_from = b.let(f"l{x}s", gemm.part("S", self.load_copy, self.ring))
        b.say(_FLAGS[x])
        ids = b.let(f"id{x}", b.view(b.int_tuple((start, 0)), f"({rows},{depth}):(1@0,1@1)"))
        self.where = b.let(f"tId{x}", gemm.part("S", copy, ids))
        first, second = self.rest
        flags = f'!cute.memref<i1, rmem, "(1,{first},{second}):(0,1,0)">'
        self.row_flags = b.let(f"flags{x}", b.registers(flags))
        with b.for_(0, first) as loop:
            row, _ = self._coordinate(loop.iv, 0)
            b.store(self.row_flags, (0, loop.iv, 0), row < extent)

    def _coordinate(self, i: Value | int, j: Value | int) -> tuple[Value, Value]:
        b = self.b
        found = b.load(self.where, (0, i, j))
        row, column = b.results("cute.get_scalars", found, types=["i32", "i32"])
        return row, column

    def fetch_residue(self, last: Value, left: Value) -> None:
        """Fetch the last tile of K, of which ``left`` columns are left, into stage 0."""
        b = self.b
        first, second = self.rest
        flags = b.registers(f'!cute.memref<i1, rmem, "(1,{first},{second}):(0,1,{first})">')
        b.let(f"residue{self.o.name}", flags)
        with b.for_(0, first) as rows, b.for_(0, second) as steps:
            i, j = rows.iv, steps.iv
            _, k = self._coordinate(i, j)
            row = b.load(self.row_flags, (0, i, 0))
            b.store(flags, (0, i, j), b.binary("and", row, k < left))
        self.move(last, b.constant(0), flags)

    def move(self, tile: Value, stage: Value, flags: Value) -> None:
        """Move tile ``tile`` of K into a stage; zeros where a flag is false."""
        b = self.b
        if self.o.vector == 1:
            held = self.held()
            self.read(tile, held, flags)
            self.write(held, stage)
            return
        source = b.let(f"t{self.o.name}k", b.slice(self.tiles, None, None, None, tile))
        target = b.let(f"t{self.o.name}sk", b.slice(self.target, None, None, None, stage))
        b.copy(self.copy, source, target, pred=flags)

    def held(self) -> Value:
        """Return registers for a tile on its way, all zero."""
        b = self.b
        held = b.let(f"h{self.o.name}", b.fragment_like(b.slice(self.target, None, None, None, 0)))
        b.do("cute.clear", held)
        return held

    def read(self, tile: Value, held: Value, flags: Value) -> None:
        """Read a tile of K into registers."""
        b = self.b
        source = b.let(f"t{self.o.name}k", b.slice(self.tiles, None, None, None, tile))
        b.copy(self.copy, source, held, pred=flags)

    def write(self, held: Value, stage: Value) -> None:
        """Write registers into a stage."""
        b = self.b
        target = b.let(f"t{self.o.name}sk", b.slice(self.target, None, None, None, stage))
        b.copy(self.copy, held, target)

    def fragment(self, stage: Value) -> Value:
        """Return registers for one tile of K."""
        b, x = self.b, self.o.name
        part = self.gemm.part(x, self.gemm.tiled_mma, b.slice(self.ring, None, None, stage))
        return b.let(f"f{x}", b.op(f"cute.tiled.mma.make_fragment_{x}", self.gemm.tiled_mma, b.let(f"p{x}", part)))

    def retiled(self, fragment: Value) -> Value:
        """Return the fragment in the order in which ldmatrix fills it."""
        return self.b.let(f"r{self.o.name}", self.b.op("cute.tiled.copy.retile", self.load_copy, fragment))

    def load(self, view: Value, stage: Value, k: Value) -> None:
        """Load the fragments of step ``k`` of a tile, by ldmatrix."""
        b = self.b
        b.copy(self.load_copy, b.slice(self.load_from, None, None, k, stage), b.slice(view, None, None, k))


def _host(b: Script, kernels: list[_Gemm]) -> None:
    plain = kernels[0]
    c = plain.c
    parameters = {"A": plain.operands[0].matrix, "B": plain.operands[1].matrix, "C": plain.matrix_c}
    with b.host("launch", parameters) as (A, B, C):
        rows, depth = _extents(b, A, "M", "K")
        columns, depth_b = _extents(b, B, "N", "KB")
        rows_c, columns_c = _extents(b, C, "MC", "NC")
        for ok, text in (
            (depth.eq(depth_b), "A and B must have the same K"),
            (rows.eq(rows_c), "A and C must have the same M"),
            (columns.eq(columns_c), "B and C must have the same N"),
        ):
            b.do("cf.assert", ok, msg=f'"{text}"')
        grid = b.ceil_div(rows, c.tile[0]) * b.ceil_div(columns, c.tile[1])
        b.launch(plain.name, [A, B, C], grid=grid, threads=c.threads, variants=[k.name for k in kernels[1:]])
