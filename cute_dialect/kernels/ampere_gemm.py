"""GEMM of sm_80 in the language: ``C[M,N] = A[M,K] * B[N,K]^T`` by cp.async, ldmatrix and mma.sync; f16 or bf16.

A block computes one tile of C.  Tiles of A and B go through a ring of stages in shared memory, swizzled over 128 bytes:
cp.async fills them while earlier ones are multiplied.  The result goes back through the same shared memory, so that
rows of C are written in whole vectors.  What lies outside of the matrices is filled with zeros on the way in and masked
on the way out.  The last, perhaps incomplete part of K is taken first; so the loop has no flags along K.

    gemm = AmpereGemm()
    gemm(a, b, c)                        # torch tensors; compiled at the first call of a kind
"""

# ruff: noqa: F821  (the strings in annotations are names of extents)
# pyright: basic

import math
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.lang import utils
from cute_dialect.lang.nvgpu import LoadCacheMode, cpasync, warp

__all__ = ["AmpereGemm"]


class AmpereGemm:
    """A GEMM of one configuration.

    ``tile``: (M, N, K) of a block, elements; ``warps`` along M and N; ``stages`` of K in shared memory; ``group``: rows
    of tiles that are computed side by side, so that their B is shared in the L2 cache.
    """

    def __init__(
        self, tile: tuple[int, int, int] = (128, 128, 32), *, warps: tuple[int, int] = (2, 2), stages: int = 3,
        group: int = 8,
    ):  # fmt: skip
        self.tile, self.warps, self.stages, self.group = tile, warps, stages, group
        self.threads = 32 * warps[0] * warps[1]

    @cute.jit
    def __call__(self, A: cute.Tensor[None, "m", "k"], B: cute.Tensor[None, "n", "k"], C: cute.Tensor[None, "m", "n"]):
        """Multiply."""
        kinds = {x.element_type for x in (A, B, C)}
        if len(kinds) > 1 or not kinds <= {cute.Float16, cute.BFloat16}:
            raise TypeError(f"expected matrices of one type, Float16 or BFloat16, got {A}, {B}, {C}")
        if C.leading_dim == 0:
            raise ValueError(f"expected C with contiguous rows, got {C}")
        m, n, k = self.tile
        tiles = utils.GroupedRaster(cute.ceil_div(C.shape, (m, n)), self.group)
        k_tiles = cute.ceil_div(A.shape[1], k)
        vector = min(_aligned(x) for x in (A, B, C))
        whole = A.shape[_contiguous(A)] % vector == 0 and B.shape[_contiguous(B)] % vector == 0
        if whole:
            self.kernel(A, B, C, tiles, k_tiles, vector).launch(grid=tiles.count(), block=self.threads)
        else:  # rows end amid a vector
            self.kernel(A, B, C, tiles, k_tiles, 1).launch(grid=tiles.count(), block=self.threads)

    @cute.kernel
    def kernel(
        self, A: Any, B: Any, C: Any, tiles: utils.GroupedRaster, k_tiles: cute.Int32, vector: cute.Constexpr
    ):  # fmt: skip
        """Compute one tile; copies move ``vector`` elements."""
        m, n, k = self.tile
        kind, thread = A.element_type, cute.arch.thread_idx().x
        row, column = tiles.place(cute.arch.block_idx().x)
        wm, wn = self.warps
        # Two instructions along N lie side by side in a warp, so that one ldmatrix serves both.
        mma = cute.make_tiled_mma(warp.MmaF16BF16Op(kind, cute.Float32), (wm, wn, 1), (16 * wm, 16 * wn, 16))
        size = max((m + n) * k * self.stages, m * n)
        buffer = cute.smem_tensor(kind, cute.make_layout(size), 1024, cute.make_swizzle(3, 4, 3)).iterator
        a = _Operand(self, A, m, row, buffer, vector, thread)
        b = _Operand(self, B, n, column, buffer + m * k * self.stages, vector, thread)
        load_a, load_b = cute.make_tiled_copy_A(a.matrices, mma), cute.make_tiled_copy_B(b.matrices, mma)
        from_a, from_b = load_a.get_slice(thread).partition_S(a.ring), load_b.get_slice(thread).partition_S(b.ring)
        part = mma.get_slice(thread)
        acc = mma.make_fragment_C(mma.partition_shape_C((m, n)))
        acc.fill(0)

        last = k_tiles - 1
        left = cute.min(A.shape[1] - last * k, A.shape[1])  # nothing, if K is 0
        for x in (a, b):
            x.move(last, 0, x.flags_of_last(left))
        cute.arch.cp_async_commit_group()
        for stage in cute.range_constexpr(1, self.stages - 1):
            if stage < k_tiles:
                for x in (a, b):
                    x.move(stage - 1, stage, x.flags)
            cute.arch.cp_async_commit_group()
        read, write = cute.Int32(0), cute.Int32(self.stages - 1)
        for i in range(k_tiles):
            cute.arch.cp_async_wait_group(self.stages - 2)
            cute.arch.sync_threads()
            # The stage that was read in the last step is filled with the tile that comes ``stages - 1`` steps later.
            ahead = i + (self.stages - 1)
            more = ahead < k_tiles
            held = [x.held() for x in (a, b)]
            if more:
                for x, h in zip((a, b), held):
                    x.begin(ahead - 1, write, h)
            cute.arch.cp_async_commit_group()
            rA = mma.make_fragment_A(part.partition_A(a.ring[None, None, read]))
            rB = mma.make_fragment_B(part.partition_B(b.ring[None, None, read]))
            to_a, to_b = load_a.retile(rA), load_b.retile(rB)
            for j in cute.range_constexpr(k // 16):
                cute.copy(load_a, from_a[None, None, j, read], to_a[None, None, j])
                cute.copy(load_b, from_b[None, None, j, read], to_b[None, None, j])
            for j in cute.range_constexpr(k // 16):
                cute.gemm(mma, acc, rA[None, None, j], rB[None, None, j], accumulate=True)
            if more:
                for x, h in zip((a, b), held):
                    x.end(write, h)
            read, write = self._next(read), self._next(write)
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        self._store(C, acc, mma, buffer, (row, column), vector, thread)

    def _next(self, stage: Any) -> Any:
        return 0 if stage + 1 == self.stages else stage + 1

    def _store(self, C: Any, acc: Any, mma: Any, buffer: Any, where: Any, vector: int, thread: Any) -> None:
        """Store the sums in the type of C to shared memory, and from there to C."""
        m, n, _ = self.tile
        plain = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), C.element_type)
        sC = cute.make_tensor(buffer, _rows(m, n))
        out = cute.make_rmem_tensor_like(acc, C.element_type)
        out.store(acc.load().to(C.element_type))
        to_smem = cute.make_tiled_copy_C(plain, mma).get_slice(thread)
        cute.copy(to_smem, to_smem.retile(out), to_smem.partition_D(sC))
        cute.arch.sync_threads()
        copy = _tile_copy(plain, (m, n), 1, vector, self.threads).get_slice(thread)
        ids = copy.partition_S(cute.local_tile(cute.make_identity_tensor(C.shape), (m, n), where))
        source, target = copy.partition_S(sC), copy.partition_D(cute.local_tile(C, (m, n), where))
        source, target, ids = (cute.group_modes(x, 1, 3) for x in (source, target, ids))
        inside = (where[0] * m + m <= C.shape[0]) & (where[1] * n + n <= C.shape[1])
        steps = cute.size(source, mode=[1])
        if inside:
            for i in range(steps):
                held = cute.make_rmem_tensor_like(source[None, i])
                cute.copy(copy, source[None, i], held)
                cute.copy(copy, held, target[None, i])
        else:  # a flag an element
            for i in range(steps):
                held = cute.make_rmem_tensor_like(source[None, i])
                flags = cute.make_rmem_tensor_like(held, cute.Boolean)
                for j in cute.range_constexpr(vector):
                    flags[j] = cute.elem_less(ids[None, i][j], C.shape)
                cute.copy(copy, source[None, i], held)
                cute.copy(copy, held, target[None, i], pred=flags)


class _Operand:
    """A or B in a kernel: its tiles in global memory, its ring in shared memory, what this thread copies."""

    def __init__(self, gemm: AmpereGemm, matrix: Any, rows: int, tile: Any, buffer: Any, vector: int, thread: Any):
        kind, depth, contiguous = matrix.element_type, gemm.tile[2], _contiguous(matrix)
        self.vector, self.matrices = vector, cute.make_copy_atom(warp.LdMatrix8x8x16bOp(contiguous == 0, 4), kind)
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), kind)
        if vector > 1:
            mode = LoadCacheMode.GLOBAL if vector == 8 else LoadCacheMode.ALWAYS
            atom = cute.make_copy_atom(cpasync.CopyG2SOp(mode), kind, num_bits_per_copy=16 * vector)
        self.copy = _tile_copy(atom, (rows, depth), contiguous, vector, gemm.threads).get_slice(thread)
        stages = cute.make_layout(gemm.stages, stride=rows * depth)
        one = _rows(rows, depth) if contiguous == 1 else cute.select(_rows(depth, rows), [1, 0])
        self.ring = cute.make_tensor(buffer, cute.append(one, stages))
        self.source = self.copy.partition_S(cute.local_tile(matrix, (rows, depth), (tile, None)))
        self.target = self.copy.partition_D(self.ring)
        ids = cute.local_tile(cute.make_identity_tensor(matrix.shape), (rows, depth), (tile, 0))
        self.ids = self.copy.partition_S(ids)
        _, self.first, self.second = cute.shape(self.ids)
        # A flag an instruction: is its row inside?
        self.flags = cute.make_rmem_tensor(
            cute.make_layout((1, self.first, self.second), stride=(0, 1, 0)), cute.Boolean
        )
        for i in cute.range_constexpr(self.first):
            self.flags[0, i, 0] = self.ids[0, i, 0][0] < matrix.shape[0]

    def flags_of_last(self, left: Any) -> Any:
        """Return flags for the last tile of K, of which ``left`` columns are left."""
        flags = cute.make_rmem_tensor((1, self.first, self.second), cute.Boolean)
        for i in cute.range_constexpr(self.first):
            for j in cute.range_constexpr(self.second):
                flags[0, i, j] = self.flags[0, i, 0] & (self.ids[0, i, j][1] < left)
        return flags

    def move(self, tile: Any, stage: Any, flags: Any) -> None:
        """Move a tile of K into a stage; zeros where a flag is false."""
        if self.vector > 1:
            cute.copy(self.copy, self.source[None, None, None, tile], self.target[None, None, None, stage], pred=flags)
        else:
            held = self.held()
            cute.copy(self.copy, self.source[None, None, None, tile], held, pred=flags)
            self.end(stage, held)

    def held(self) -> Any:
        """Return zeroed registers for a tile on its way, where cp.async cannot bring it."""
        if self.vector > 1:
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


def _aligned(matrix: Any) -> int:
    """Return how many elements a copy may move: 8, 4, 2, or 1 where rows lie anyhow."""
    if matrix.leading_dim is None:
        return 1
    others = cute.max_alignment(cute.select(matrix.layout, [1 - _contiguous(matrix)]))
    return math.gcd(matrix.iterator.alignment // 2, others, 8)


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
