"""GEMM of sm_80 in the language: ``C[M,N] = A[M,K] * B[N,K]^T`` by cp.async, ldmatrix and mma.sync; f16 or bf16.

A block computes one tile of C.  Tiles of A and B go through a ring of stages in shared memory, swizzled over 128 bytes:
cp.async fills them while earlier ones are multiplied.  The result goes back through the same shared memory, so that
rows of C are written in whole vectors.  What lies outside of the matrices is filled with zeros on the way in and masked
on the way out.  The last, perhaps incomplete part of K is taken first; so the loop has no flags along K.

Kernels ``gemm_16``, ``gemm_8`` and ``gemm_4`` move 16, 8 and 4 bytes at a time, and take matrices whose strides,
extents along the contiguous mode and addresses are multiples of that; ``gemm`` takes any, by loads of single elements.
The launch takes the first whose promises hold.  What becomes of the sums is an epilogue, as of the Hopper GEMM
(:mod:`~cute_dialect.kernels.gemm.epilogue`); results of another type than A and B go to C from registers.

    gemm = AmpereGemm()
    gemm(a, b, c)                        # torch tensors; compiled at the first call of a kind

>>> "cute_nvgpu.atom.simt_async_copy" in ampere_gemm_text(AmpereConfig())
True
"""

# pyright: basic

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.front.dtypes import type_of_mlir
from cute_dialect.kernels.gemm.epilogue import Addends, Epilogue
from cute_dialect.kernels.gemm.fused import Fused
from cute_dialect.lang import utils
from cute_dialect.lang.nvgpu import LoadCacheMode, cpasync, warp

__all__ = ["AmpereConfig", "AmpereGemm", "Operand", "ampere_gemm_text"]


class AmpereConfig(NamedTuple):
    """The configuration of a GEMM.

    ``element``: of A and B, f16 or bf16; ``output``: of C, f16, bf16 or f32, by default as A and B; ``tile``: (M, N, K)
    of a block; ``warps``: along M and N; ``stages``: tiles of K in shared memory; ``majors``: which index is contiguous
    in A and in B, "k" or "mn"; ``group``: rows of tiles that are computed side by side, so that their B is shared in
    the L2 cache; ``vectors``: elements that one copy moves, a kernel each; ``batch``: A, B and C have a third mode, of
    matrices, which may be 1 in A or B, for all (of matrices that are given it need not be said); ``epilogue``: what
    becomes of the sums.
    """

    element: str = "f16"
    tile: tuple[int, int, int] = (128, 128, 32)
    warps: tuple[int, int] = (2, 2)
    stages: int = 3
    majors: tuple[str, str] = ("k", "k")
    group: int = 8
    vectors: tuple[int, ...] = (8, 4, 2, 1)
    batch: bool = False
    output: str = ""
    epilogue: Epilogue = Epilogue()

    @property
    def result(self) -> str:
        """The type of C."""
        return self.output or self.element

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps[0] * self.warps[1]

    @property
    def name(self) -> str:
        """``f16-128x128x32-3-kk``"""
        m, n, k = self.tile
        more = "-b" if self.batch else ""
        more += f"-{self.output}" if self.result != self.element else ""
        more += f"-{self.epilogue.name}" if self.epilogue.active else ""
        return f"{self.element}-{m}x{n}x{k}-{self.stages}-{''.join(x[0] for x in self.majors)}{more}"


class AmpereGemm:
    """A GEMM of one configuration; element types and majors are those of the matrices."""

    def __init__(self, config: AmpereConfig | None = None):
        self.config = config or AmpereConfig()

    @cute.jit(name="launch")
    def __call__(
        self, A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, source: cute.Tensor | None = None,
        bias: cute.Tensor | None = None, alpha: cute.Float32 | None = None, beta: cute.Float32 | None = None,
        operands: Any = None,
    ):  # fmt: skip
        """Multiply matrices, or batches of them, their third mode; behind C what the epilogue wants."""
        kinds, addends = {x.element_type for x in (A, B)}, Addends(source, bias, alpha, beta, operands)
        if len(kinds) > 1 or not kinds <= {cute.Float16, cute.BFloat16}:
            raise TypeError(f"expected matrices of one type, Float16 or BFloat16, got {A}, {B}, {C}")
        if C.element_type not in (cute.Float16, cute.BFloat16, cute.Float32):
            raise TypeError(f"expected C of Float16, BFloat16 or Float32, got {C}")
        self.config.epilogue.check_shapes(C, addends, pairs=False)
        if C.leading_dim == 0:
            raise ValueError(f"expected C with contiguous rows, got {C}")
        assert A.shape[1] == B.shape[1], "A and B must have the same K"
        assert A.shape[0] == C.shape[0], "A and C must have the same M"
        assert B.shape[0] == C.shape[1], "B and C must have the same N"
        if {cute.rank(x) for x in (A, B, C)} not in ({2}, {3}):
            raise ValueError(f"expected matrices or batches of them, got {A}, {B}, {C}")
        matrices = C.shape[2] if cute.rank(C) == 3 else None
        if matrices is not None:
            for name, x in (("A", A), ("B", B)):
                several = cute.Boolean(x.shape[2] == matrices)
                assert several | (x.shape[2] == 1), f"{name} must have as many matrices as C, or one for all"
        m, n, _ = self.config.tile
        tiles = utils.GroupedRaster(cute.ceil_div(C.shape[:2], (m, n)), self.config.group, matrices=matrices)
        kernels = {8: self.gemm_16, 4: self.gemm_8, 2: self.gemm_4, 1: self.gemm}
        launches = []
        for vector in sorted(self.config.vectors, reverse=True):
            # A result of another type goes to C element by element.
            given = [cute.promise_vectors(x, vector) for x in ((A, B, C) if C.element_type in kinds else (A, B))]
            promised = given if len(given) == 3 else [*given, C]
            if all(x is not None for x in promised):
                launches.append(kernels[vector](*promised, tiles, addends))
                if all(x is y for x, y in zip(promised, (A, B, C))):
                    break  # it takes them all
        launches[0].launch(grid=tiles.count(), block=self.config.threads, fallback=launches[1:])

    @cute.kernel
    def gemm_16(self, A: Any, B: Any, C: Any, tiles: utils.GroupedRaster, addends: Addends):
        """Multiply matrices of whole vectors of 16 bytes."""
        _multiply(self.config, A, B, C, tiles, addends, 8)

    @cute.kernel
    def gemm_8(self, A: Any, B: Any, C: Any, tiles: utils.GroupedRaster, addends: Addends):
        """Multiply matrices of whole vectors of 8 bytes."""
        _multiply(self.config, A, B, C, tiles, addends, 4)

    @cute.kernel
    def gemm_4(self, A: Any, B: Any, C: Any, tiles: utils.GroupedRaster, addends: Addends):
        """Multiply matrices of whole vectors of 4 bytes."""
        _multiply(self.config, A, B, C, tiles, addends, 2)

    @cute.kernel
    def gemm(self, A: Any, B: Any, C: Any, tiles: utils.GroupedRaster, addends: Addends):
        """Multiply any matrices."""
        _multiply(self.config, A, B, C, tiles, addends, 1)


def _multiply(
    c: AmpereConfig, A: Any, B: Any, C: Any, tiles: utils.GroupedRaster, addends: Addends, vector: int
) -> None:
    """Compute one tile; copies move ``vector`` elements."""
    m, n, k = c.tile
    if vector == 1:  # elements on their way are held in registers: not too many at a time
        k = min(k, 32)
    c = c._replace(tile=(m, n, k))
    kind, thread = A.element_type, cute.arch.thread_idx().x
    row, column, *matrix = tiles.place(cute.arch.block_idx().x)
    for number in matrix:
        A, B, C = (x[None, None, cute.min(number, x.shape[2] - 1)] for x in (A, B, C))
        if addends.source is not None:
            addends = addends._replace(source=addends.source[None, None, number])
    wm, wn = c.warps
    # Two instructions along N lie side by side in a warp, so that one ldmatrix serves both.
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(kind, cute.Float32), (wm, wn, 1), (16 * wm, 16 * wn, 16))
    size = max((m + n) * k * c.stages, m * n)
    buffer = cute.smem_tensor(kind, cute.make_layout(size), 1024, cute.make_swizzle(3, 4, 3)).iterator
    a = Operand(c, A, m, row, buffer, vector, thread)
    b = Operand(c, B, n, column, buffer + m * k * c.stages, vector, thread)
    load_a, load_b = cute.make_tiled_copy_A(a.matrices, mma), cute.make_tiled_copy_B(b.matrices, mma)
    from_a, from_b = load_a.get_slice(thread).partition_S(a.ring), load_b.get_slice(thread).partition_S(b.ring)
    part = mma.get_slice(thread)
    acc = mma.make_fragment_C(mma.partition_shape_C((m, n)))
    acc.fill(0)

    k_tiles = cute.ceil_div(A.shape[1], k)
    last = k_tiles - 1
    left = cute.min(A.shape[1] - last * k, A.shape[1])  # nothing, if K is 0
    for x in (a, b):
        x.move(last, 0, x.flags_of_last(left))
    _commit(vector)
    for stage in cute.range_constexpr(1, c.stages - 1):
        if stage < k_tiles:
            for x in (a, b):
                x.move(stage - 1, stage, x.flags)
        _commit(vector)
    read, write = cute.Int32(0), cute.Int32(c.stages - 1)
    for i in range(k_tiles):
        _wait(vector, c.stages - 2)
        cute.arch.sync_threads()
        # The stage that was read in the last step is filled with the tile that comes ``stages - 1`` steps later.
        ahead = i + (c.stages - 1)
        more = ahead < k_tiles
        held = [x.held() for x in (a, b)]
        if more:
            for x, h in zip((a, b), held):
                x.begin(ahead - 1, write, h)
        _commit(vector)
        rA = mma.make_fragment_A(part.partition_A(a.ring[None, None, read]))
        rB = mma.make_fragment_B(part.partition_B(b.ring[None, None, read]))
        to_a, to_b = load_a.retile(rA), load_b.retile(rB)
        for j in range(k // 16):
            cute.copy(load_a, from_a[None, None, j, read], to_a[None, None, j])
            cute.copy(load_b, from_b[None, None, j, read], to_b[None, None, j])
        for j in range(k // 16):
            cute.gemm(mma, acc, rA[None, None, j], rB[None, None, j], accumulate=True)
        if more:
            for x, h in zip((a, b), held):
                x.end(write, h)
        read, write = (0 if x + 1 == c.stages else x + 1 for x in (read, write))
    _wait(vector, 0)
    cute.arch.sync_threads()
    fused, same = Fused(c.epilogue, addends), C.element_type == kind
    if c.epilogue.active or not same:
        ids = part.partition_C(cute.local_tile(cute.make_identity_tensor(C.shape), (m, n), (row, column)))
        fused.apply_each(acc, ids, matrix[0] if matrix else None)
    if same:
        _store(c, C, acc, mma, buffer, (row, column), vector, thread)
        return
    target = part.partition_C(cute.local_tile(C, (m, n), (row, column)))
    for i in range(cute.size(acc)):  # registers: the passes unroll it
        if cute.elem_less(ids[i], C.shape):
            target[i] = acc[i].to(C.element_type)


def _commit(vector: int) -> None:
    """Commit a stage's copies, where they are asynchronous."""
    if vector > 1:
        cute.arch.cp_async_commit_group()


def _wait(vector: int, stages: int) -> None:
    """Wait until all but so many stages are there."""
    if vector > 1:
        cute.arch.cp_async_wait_group(stages)


def _store(c: AmpereConfig, C: Any, acc: Any, mma: Any, buffer: Any, where: Any, vector: int, thread: Any) -> None:
    """Store the sums in the type of C to shared memory, and from there to C."""
    m, n, _ = c.tile
    plain = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), C.element_type)
    sC = cute.make_tensor(buffer, _rows(m, n))
    out = cute.make_rmem_tensor_like(acc, C.element_type)
    out.store(acc.load().to(C.element_type))
    to_smem = cute.make_tiled_copy_C(plain, mma).get_slice(thread)
    cute.copy(to_smem, to_smem.retile(out), to_smem.partition_D(sC))
    cute.arch.sync_threads()
    copy = _tile_copy(plain, (m, n), 1, vector, c.threads).get_slice(thread)
    ids = copy.partition_S(cute.local_tile(cute.make_identity_tensor(C.shape), (m, n), where))
    source, target = copy.partition_S(sC), copy.partition_D(cute.local_tile(C, (m, n), where))
    inside = (where[0] * m + m <= C.shape[0]) & (where[1] * n + n <= C.shape[1])
    _, first, second = cute.shape(source)
    if inside:
        for i in range(first * second):
            at = _place(i, first, second)
            held = cute.make_rmem_tensor_like(source[at])
            cute.copy(copy, source[at], held)
            cute.copy(copy, held, target[at])
    else:  # a flag an element
        for i in range(first * second):
            at = _place(i, first, second)
            held = cute.make_rmem_tensor_like(source[at])
            flags = cute.make_rmem_tensor_like(held, cute.Boolean)
            for j in range(vector):
                flags[j] = cute.elem_less(ids[at][j], C.shape)
            cute.copy(copy, source[at], held)
            cute.copy(copy, held, target[at], pred=flags)


def _place(i: Any, first: int, second: int) -> Any:
    """Return the coordinate of copy ``i`` in a partition of ``first`` by ``second``."""
    if second == 1:
        return (None, i, 0)
    return (None, 0, i) if first == 1 else (None, i % first, i // first)


class Operand:
    """A or B in a kernel: its tiles in global memory, its ring in shared memory, what this thread copies, ``vector``
    elements at once.
    """

    def __init__(self, c: AmpereConfig, matrix: Any, rows: int, tile: Any, buffer: Any, vector: int, thread: Any):
        kind, depth, contiguous = matrix.element_type, c.tile[2], _contiguous(matrix)
        bits = kind.width * vector
        self.direct, self.matrices = bits >= 32, self.fragments(kind, contiguous)
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), kind)
        if self.direct:
            mode = LoadCacheMode.GLOBAL if bits == 128 else LoadCacheMode.ALWAYS
            atom = cute.make_copy_atom(cpasync.CopyG2SOp(mode), kind, num_bits_per_copy=bits)
        self.copy = _tile_copy(atom, (rows, depth), contiguous, vector, c.threads).get_slice(thread)
        self.ring = cute.make_tensor(buffer, self.layout(rows, depth, contiguous, c.stages))
        self.source = self.copy.partition_S(cute.local_tile(matrix, (rows, depth), (tile, None)))
        self.target = self.copy.partition_D(self.ring)
        ids = cute.local_tile(cute.make_identity_tensor(matrix.shape), (rows, depth), (tile, 0))
        self.ids = self.copy.partition_S(ids)
        _, self.first, self.second = cute.shape(self.ids)
        # A flag an instruction: is its row inside?
        self.flags = cute.make_rmem_tensor(
            cute.make_layout((1, self.first, self.second), stride=(0, 1, 0)), cute.Boolean
        )
        for i in range(self.first):
            self.flags[0, i, 0] = self.ids[0, i, 0][0] < matrix.shape[0]

    @staticmethod
    def fragments(kind: Any, contiguous: int) -> Any:
        """Return the atom that brings fragments to registers."""
        return cute.make_copy_atom(warp.LdMatrix8x8x16bOp(contiguous == 0, 4), kind)

    @staticmethod
    def layout(rows: int, depth: int, contiguous: int, stages: int) -> Any:
        """Return the layout of the ring: (rows, K, stages)."""
        behind = cute.make_layout(stages, stride=rows * depth)
        one = _rows(rows, depth) if contiguous == 1 else cute.select(_rows(depth, rows), [1, 0])
        return cute.append(one, behind)

    def flags_of_last(self, left: Any) -> Any:
        """Return flags for the last tile of K, of which ``left`` columns are left."""
        flags = cute.make_rmem_tensor((1, self.first, self.second), cute.Boolean)
        for i in range(self.first):
            for j in range(self.second):
                flags[0, i, j] = self.flags[0, i, 0] & (self.ids[0, i, j][1] < left)
        return flags

    def move(self, tile: Any, stage: Any, flags: Any) -> None:
        """Move a tile of K into a stage; zeros where a flag is false."""
        if self.direct:
            cute.copy(self.copy, self.source[None, None, None, tile], self.target[None, None, None, stage], pred=flags)
        else:
            held = self.held()
            cute.copy(self.copy, self.source[None, None, None, tile], held, pred=flags)
            self.end(stage, held)

    def held(self) -> Any:
        """Return zeroed registers for a tile on its way, where cp.async cannot bring it."""
        if self.direct:
            return None
        held = cute.make_rmem_tensor_like(self.target[None, None, None, 0])
        held.fill(0)
        return held

    def begin(self, tile: Any, stage: Any, held: Any) -> None:
        """Begin to move a tile of K into a stage, which ``end`` completes."""
        if held is None:
            self.move(tile, stage, self.flags)
        else:
            cute.copy(self.copy, self.source[None, None, None, tile], held, pred=self.flags)

    def end(self, stage: Any, held: Any) -> None:
        """Write what registers hold to a stage."""
        if held is not None:
            cute.copy(self.copy, held, self.target[None, None, None, stage])


def _contiguous(matrix: Any) -> int:
    return 0 if matrix.leading_dim == 0 else 1


def _rows(rows: int, columns: int) -> Any:
    """Return the layout of a tile in shared memory: its rows in runs of 128 bytes."""
    run = min(64, columns)
    if columns == run:
        return cute.make_layout((rows, columns), stride=(run, 1))
    return cute.make_layout((rows, (run, columns // run)), stride=(run, (1, rows * run)))


def _tile_copy(atom: Any, tile: tuple[int, int], contiguous: int, vector: int, threads: int) -> Any:
    """Return the tiled copy whose threads lie side by side along the contiguous mode, ``vector`` elements each."""
    runs = min(tile[contiguous] // vector, threads)
    across = threads // runs
    if contiguous == 1:
        of_threads, of_values = cute.make_layout((across, runs), stride=(runs, 1)), cute.make_layout((1, vector))
    else:
        of_threads, of_values = cute.make_layout((runs, across)), cute.make_layout((vector, 1))
    return cute.make_tiled_copy_tv(atom, of_threads, of_values)


def ampere_gemm_text(config: AmpereConfig | None = None) -> str:
    """Return kernels and host function as text: ``launch(A, B, C)``, for whole vectors of the fewest elements."""
    config = config or AmpereConfig()
    v = min(config.vectors)
    d = f"?{{div={v}}}" if v > 1 else "?"
    rows, columns = f"(?,{d}):({d},1)", f"({d},?):(1,{d})"
    if config.batch:
        rows, columns = f"(?,{d},?):({d},1,{d})", f"({d},?,?):(1,{d},{d})"

    def matrix(layout: str, element: str = config.element) -> Any:
        return cute.Tensor[type_of_mlir(element), layout, f"align<{2 * v}>"]

    if config.result != config.element:  # element by element
        rows_of_c = "(?,?,?):(?,1,?)" if config.batch else "(?,?):(?,1)"
        c: Any = cute.Tensor[type_of_mlir(config.result), rows_of_c]
    else:
        c = matrix(rows)
    a, b = (rows if major == "k" else columns for major in config.majors)
    behind = config.epilogue.arguments(config.result, batch=config.batch, vectors=False)
    traced = cute.trace(AmpereGemm(config), matrix(a), matrix(b), c, **behind)
    return traced.mlir(aliases=True, comments=True)
