"""GEMM with cp.async and mma.sync: ``C[M,N] = A[M,K] * B[N,K]^T``, f16 or bf16, any M, N, K, as cute IR.

A block computes one tile of C.  Tiles of A and B go through a ring of stages in shared memory (swizzled over 128
bytes), filled by ``cp.async`` while earlier ones are multiplied; ``ldmatrix`` (``.trans`` where an operand is stored with
M or N contiguous) brings them to registers; the result goes back through the same shared memory so that rows of C are
written in whole vectors.  Everything outside of the matrices is filled with zeros on the way in and masked on the way
out.  The incomplete part of K, if there is one, comes first; so the loop has no flags along K.

``@gemm_16``, ``@gemm_8``, ``@gemm_4`` move 16, 8, 4 bytes at a time and take matrices whose strides, extents along the
contiguous mode and addresses are multiples of that; ``@gemm`` takes any, by loads of single elements.  The launch takes
the first whose types hold.

>>> "cute_nvgpu.atom.simt_async_copy" in gemm_sm80(GemmConfig())
True
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.kernels.builder import Builder, Value
from cute_dialect.kernels.copies import mma_copy, tile_copy

__all__ = ["GemmConfig", "build_gemm_sm80", "gemm_sm80"]

MAJORS = ("k", "mn")


class GemmConfig(NamedTuple):
    """What a module is made for.

    ``element``: of A, B and C, f16 or bf16; ``tile``: (M, N, K) of a block; ``warps``: along M and N; ``stages``: tiles
    of K in shared memory; ``majors``: which index is contiguous in A and in B, "k" or "mn"; ``group``: rows of tiles
    that are computed side by side, so that their B is shared in the L2 cache.
    """

    element: str = "f16"
    tile: tuple[int, int, int] = (128, 128, 32)
    warps: tuple[int, int] = (2, 2)
    stages: int = 3
    majors: tuple[str, str] = ("k", "k")
    group: int = 8

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
    """The file: kernels ``@gemm…`` and host function ``@launch`` (A, B, C)."""
    builder, aliases = build_gemm_sm80(config or GemmConfig())
    return builder.text(aliases)


def build_gemm_sm80(config: GemmConfig) -> tuple[Builder, dict[str, str]]:
    """The module, and names for its long types."""
    b = Builder()
    kernels = [_Gemm(b, config, vector) for vector in (1, 8, 4, 2)]
    for kernel in kernels:
        kernel.kernel()
    _host(b, kernels)
    aliases: dict[str, str] = {}
    for kernel in kernels:
        aliases |= kernel.aliases()
    return b, aliases


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
    """The type of a matrix whose rows (or columns) are runs of whole vectors."""
    if vector == 1:
        strides = "(1,?)" if contiguous == 0 else "(?,1)"
        return f'!cute.memref<{element}, gmem, "(?,?):{strides}">'
    d = f"?{{div={vector}}}"
    layout = f"({d},?):(1,{d})" if contiguous == 0 else f"(?,{d}):({d},1)"
    return f'!cute.memref<{element}, gmem, align<{2 * vector}>, "{layout}">'


class _Gemm:
    """One kernel; ``vector``: elements that one copy moves."""

    def __init__(self, b: Builder, config: GemmConfig, vector: int):
        from cute_dialect.nvgpu_mma_types import TiledMmaType

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
        plain = f"!cute_nvgpu.atom.universal_copy<{e}>"
        self.to_smem = mma_copy(plain, mma_type, "C")
        self.to_matrix = tile_copy(plain, (m, n), config.threads, 8, contiguous=1)

    def aliases(self) -> dict[str, str]:
        suffix = "" if self.vector == 1 else f"_{2 * self.vector}"
        a, b = self.operands
        named = {
            f"A{suffix}": a.matrix,
            f"B{suffix}": b.matrix,
            f"C{suffix}": self.matrix_c,
            f"copyA{suffix}": a.copy,
            f"copyB{suffix}": b.copy,
            f"copy{suffix}": a.atom,
        }
        if self.vector == 1:
            named |= {
                "mma": self.mma, "mma_atom": self.mma_atom, "smem": self.smem, "loadA": self.loads[0],
                "loadB": self.loads[1], "ldsmA": a.ldsm, "ldsmB": b.ldsm, "storeS": self.to_smem,
                "storeC": self.to_matrix,
            }  # fmt: skip
        return named

    # ------------------------------------------------------------------------------------------------- kernel

    def kernel(self) -> None:
        b, c = self.b, self.c
        parameters = {"A": self.operands[0].matrix, "B": self.operands[1].matrix, "C": self.matrix_c}
        with b.kernel(self.name, parameters, threads=c.threads) as (A, B, C):
            self.tid = b.thread_id()
            self.M, self.K = _extents(b, A)
            self.N, _ = _extents(b, B)
            self.k_tiles = b.ceil_div(self.K, c.tile[2])
            self._place()
            smem = b.alloc_smem(self.smem)
            self.buffer = b.iterator(smem)
            self.sources = [
                _Source(self, o, matrix, start, extent, offset)
                for o, matrix, start, extent, offset in (
                    (self.operands[0], A, self.m0, self.M, 0),
                    (self.operands[1], B, self.n0, self.N, self.operands[0].elements),
                )
            ]
            self.tiled_mma = b.op("cute.make_tiled_mma", b.atom(self.mma_atom), type=self.mma)
            self._multiply()
            self._store(C)

    def _place(self) -> None:
        """First row and column of this block's tile; ``group`` rows of tiles at a time."""
        b, c = self.b, self.c
        tiles_m, tiles_n = b.ceil_div(self.M, c.tile[0]), b.ceil_div(self.N, c.tile[1])
        tile = b.block_id()
        per_group = tiles_n * c.group
        group = tile // per_group
        inside = tile - group * per_group
        first = group * c.group
        rows = b.minimum(tiles_m - first, c.group)
        column = inside // rows
        self.tile_m, self.tile_n = first + (inside - column * rows), column
        self.m0, self.n0 = self.tile_m * c.tile[0], self.tile_n * c.tile[1]

    def _multiply(self) -> None:
        b, c = self.b, self.c
        m, n, _ = c.tile
        wm, wn = c.warps
        self.accumulators = b.registers(
            f'!cute.memref<f32, rmem, "((2,2),{m // (16 * wm)},{n // (8 * wn)}):((1,2),4,{m // (4 * wm)})">'
        )
        b.do("cute.clear", self.accumulators)
        # Tile 0 of the walk is the last, perhaps incomplete one; the others follow from the first on.
        for source in self.sources:
            source.fetch_residue()
        self._commit()
        for stage in range(1, c.stages - 1):
            for source in self.sources:
                source.fetch(stage, self.k_tiles)
            self._commit()
        zero = b.constant(0)
        with b.for_(0, self.k_tiles, 1, [zero, b.constant(c.stages - 1)]) as loop:
            read, write = loop.args
            self._wait(c.stages - 2)
            b.run("barrier")
            ahead = loop.iv + (c.stages - 1)
            for source in self.sources:
                source.prepare(ahead, write)
            self._commit()
            self._step(read)
            for source in self.sources:
                source.finish(ahead, write)
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
        steps = c.tile[2] // 16
        fragments = [s.fragment(stage) for s in self.sources]
        for k in range(steps):
            for s, f in zip(self.sources, fragments):
                s.load(f, stage, k)
        for k in range(steps):
            a, bb = (b.slice(f, None, None, k) for f in fragments)
            b.gemm(self.tiled_mma, self.accumulators, a, bb, self.accumulators)

    # ----------------------------------------------------------------------------------------------- epilogue

    def _store(self, C: Value) -> None:
        """Accumulators, narrowed, to shared memory; from there rows in whole vectors to C."""
        b, c = self.b, self.c
        m, n, _ = c.tile
        e = c.element
        count = m * n // c.threads
        t = str(self.accumulators.type)
        narrow = b.registers(t.replace("f32", e, 1))
        with b.for_(0, count // 2) as loop:  # register tensors: the loop is unrolled
            values = b.load_vec(b.view(b.pointer(self.accumulators, loop.iv * 2), "2:1"))
            b.store_vec(
                b.op("arith.truncf", values, type=f"vector<2x{e}>"), b.view(b.pointer(narrow, loop.iv * 2), "2:1")
            )
        tile = b.view(self.buffer, self.smem_c)
        to_smem = b.tiled_copy(self.to_smem)
        b.copy(
            to_smem,
            b.op("cute.tiled.copy.retile", to_smem, narrow),
            b.partition("D", to_smem, tile, self.tid),
        )
        b.run("barrier")
        to_matrix = b.tiled_copy(self.to_matrix)
        source = b.partition("S", to_matrix, tile, self.tid)
        block = b.local_tile(C, f"[{m}:1;{n}:1]", (self.tile_m, self.tile_n))
        target = b.partition("D", to_matrix, block, self.tid)
        where = b.partition("S", to_matrix, b.view(b.int_tuple((self.m0, self.n0)), f"({m},{n}):(1@0,1@1)"), self.tid)
        limit = b.shape((self.M, self.N))
        steps = count // 8
        rest_m, rest_n = _rest(source)
        inside = ((self.m0 + m) <= self.M).builder.binary("and", (self.m0 + m) <= self.M, (self.n0 + n) <= self.N)
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
                for v in range(8):
                    b.store(flags, v, b.op("cute.elem_less", b.load(coordinates, v), limit))
                held = b.fragment_like(b.slice(source, None, i, j))
                b.copy(to_matrix, b.slice(source, None, i, j), held)
                b.copy(to_matrix, held, b.slice(target, None, i, j), pred=flags)


def _split(i: Value, rest_m: int, rest_n: int) -> tuple[Value | int, Value | int]:
    if rest_n == 1:
        return i, 0
    return (0, i) if rest_m == 1 else (i % rest_m, i // rest_m)


def _rest(part: Value) -> tuple[int, int]:
    """Steps of a partitioned tile along its two modes."""
    from cute_dialect.algebra.layout import size
    from cute_dialect.algebra.values import Layout, layout_modes
    from cute_dialect.memory_types import MemRefType

    t = part.type
    assert isinstance(t, MemRefType) and isinstance(t.layout, Layout)
    sizes = [size(m) for m in layout_modes(t.layout)[1:3]]
    first, second = sizes
    assert isinstance(first, int) and isinstance(second, int)
    return first, second


def _extents(b: Builder, matrix: Value) -> tuple[Value, Value]:
    layout = b.op("cute.get_layout", matrix)
    first = b.results("cute.get_scalars", b.op("cute.size", layout, mode="array<i32: 0>"), types=["i32"])
    second = b.results("cute.get_scalars", b.op("cute.size", layout, mode="array<i32: 1>"), types=["i32"])
    return first[0], second[0]


class _Source:
    """A or B in a kernel: its tiles in global memory, the ring in shared memory, its fragments."""

    def __init__(self, gemm: _Gemm, operand: _Operand, matrix: Value, start: Value, extent: Value, offset: int):
        b = gemm.b
        self.gemm, self.b, self.o = gemm, b, operand
        self.extent = extent
        rows, depth = operand.rows, operand.depth
        tile = gemm.tile_m if operand.name == "A" else gemm.tile_n
        self.ring = b.view(
            b.op("cute.add_offset", gemm.buffer, b.int_tuple(offset)) if offset else gemm.buffer, operand.smem
        )
        copy = b.tiled_copy(operand.copy)
        self.copy = copy
        self.tiles = b.partition("S", copy, b.local_tile(matrix, f"[{rows}:1;{depth}:1]", (tile, None)), gemm.tid)
        self.target = b.partition("D", copy, self.ring, gemm.tid)
        self.rest = _rest(self.target)
        self.load_copy = b.tiled_copy(gemm.loads[0 if operand.name == "A" else 1])
        self.load_from = b.partition("S", self.load_copy, self.ring, gemm.tid)
        # Flags: is the row inside the matrix?  One an instruction; those of a step along K are shared.
        where = b.view(b.int_tuple((start, 0)), f"({rows},{depth}):(1@0,1@1)")
        self.where = b.partition("S", copy, where, gemm.tid)
        first, second = self.rest
        self.row_flags = b.registers(f'!cute.memref<i1, rmem, "(1,{first},{second}):(0,1,0)">')
        for i in range(first):
            row, _ = self._coordinate(i, 0)
            b.store(self.row_flags, (0, i, 0), row < extent)

    def _coordinate(self, i: int, j: int) -> tuple[Value, Value]:
        b = self.b
        found = b.load(self.where, (0, i, j))
        row, column = b.results("cute.get_scalars", found, types=["i32", "i32"])
        return row, column

    def fetch_residue(self) -> None:
        """The last tile of K into stage 0, zeros beyond K."""
        b = self.b
        last = self.gemm.k_tiles - 1
        first, second = self.rest
        flags = b.registers(f'!cute.memref<i1, rmem, "(1,{first},{second}):(0,1,{first})">')
        left = b.minimum(self.gemm.K - last * self.o.depth, self.gemm.K)  # nothing, if K is 0
        for j in range(second):
            for i in range(first):
                _, k = self._coordinate(i, j)
                row = b.load(self.row_flags, (0, i, 0))
                b.store(flags, (0, i, j), b.binary("and", row, k < left))
        self._move(last, b.constant(0), flags)

    def fetch(self, stage: int, k_tiles: Value) -> None:
        """Tile ``stage`` of the walk, if there is one."""
        b = self.b
        with b.if_(b.compare("ult", b.constant(stage), k_tiles)):
            self._move(b.constant(stage - 1), b.constant(stage), self.row_flags)

    def prepare(self, ahead: Value, stage: Value) -> None:
        """Start to fetch tile ``ahead`` of the walk, before a step is multiplied."""
        b = self.b
        if self.o.vector > 1:
            with b.if_(ahead < self.gemm.k_tiles):
                self._move(ahead - 1, stage, self.row_flags)
            return
        self.held = b.fragment_like(b.slice(self.target, None, None, None, 0))
        b.do("cute.clear", self.held)
        with b.if_(ahead < self.gemm.k_tiles):
            b.copy(self.copy, b.slice(self.tiles, None, None, None, ahead - 1), self.held, pred=self.row_flags)

    def finish(self, ahead: Value, stage: Value) -> None:
        """Complete what :meth:`prepare` began, after the step."""
        b = self.b
        if self.o.vector == 1:
            with b.if_(ahead < self.gemm.k_tiles):
                b.copy(self.copy, self.held, b.slice(self.target, None, None, None, stage))

    def _move(self, tile: Value, stage: Value, flags: Value) -> None:
        b = self.b
        source = b.slice(self.tiles, None, None, None, tile)
        target = b.slice(self.target, None, None, None, stage)
        if self.o.vector > 1:
            b.copy(self.copy, source, target, pred=flags)
            return
        held = b.fragment_like(target)
        b.do("cute.clear", held)
        b.copy(self.copy, source, held, pred=flags)
        b.copy(self.copy, held, target)

    def fragment(self, stage: Value) -> Value:
        """Registers for one tile of K."""
        b = self.b
        tile = b.slice(self.ring, None, None, stage)
        part = b.partition(self.o.name, self.gemm.tiled_mma, tile, self.gemm.tid)
        return b.op(f"cute.tiled.mma.make_fragment_{self.o.name}", self.gemm.tiled_mma, part)

    def load(self, fragment: Value, stage: Value, k: int) -> None:
        """The fragments of step ``k`` of a tile, by ldmatrix."""
        b = self.b
        view = b.op("cute.tiled.copy.retile", self.load_copy, fragment)
        b.copy(self.load_copy, b.slice(self.load_from, None, None, k, stage), b.slice(view, None, None, k))


def _host(b: Builder, kernels: list[_Gemm]) -> None:
    plain = kernels[0]
    c = plain.c
    parameters = {"A": plain.operands[0].matrix, "B": plain.operands[1].matrix, "C": plain.matrix_c}
    with b.host("launch", parameters) as (A, B, C):
        rows, depth = _extents(b, A)
        columns, depth_b = _extents(b, B)
        rows_c, columns_c = _extents(b, C)
        for ok, text in (
            (depth.eq(depth_b), "A and B must have the same K"),
            (rows.eq(rows_c), "A and C must have the same M"),
            (columns.eq(columns_c), "B and C must have the same N"),
        ):
            b.do("cf.assert", ok, msg=f'"{text}"')
        grid = b.ceil_div(rows, c.tile[0]) * b.ceil_div(columns, c.tile[1])
        b.launch(plain.name, [A, B, C], grid=grid, threads=c.threads, variants=[k.name for k in kernels[1:]])
