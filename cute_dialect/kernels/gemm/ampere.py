"""GEMM for sm_80: ``C[M,N] = A[M,K] * B[N,K]^T`` of f16 or bf16 with cp.async, ldmatrix and mma.sync.

A block computes one tile of C. Tiles of A and B go through a ring of stages in shared memory, with a 128-byte swizzle:
cp.async fills later stages while earlier ones are multiplied. The result goes back through the same shared memory, so
that rows of C are written in whole vectors. Out-of-bounds elements are zero on loads and predicated on stores. The last
tile of K, which may be partial, is loaded first, so that the loop needs no predicates along K.

Kernels ``gemm_16``, ``gemm_8`` and ``gemm_4`` copy 16, 8 and 4 bytes at a time. They need addresses, strides and
contiguous extents that are multiples of that. ``gemm`` takes any matrix, by loads of single elements. The launch picks
the first one whose requirements are met. Epilogues are those of the Hopper GEMM
(:mod:`~cute_dialect.kernels.epilogue.combination`). Results of a type other than that of A and B are stored from
registers.

    gemm = AmpereGemm()
    gemm(a, b, c)                        # torch tensors; the first call of a specialization compiles

>>> "cute_nvgpu.atom.simt_async_copy" in ampere_gemm_text(AmpereConfig())
True
"""

# pyright: basic

from collections.abc import Callable
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.kernel_names import by, differing
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.epilogue.combination import Addends, Epilogue
from cute_dialect.kernels.epilogue.emit import Fused
from cute_dialect.kernels.gemm.cp_async_mainloop import Staged, WarpsOfK, over_k, tile_copy, tile_layout
from cute_dialect.kernels.gemm.operands import PLACES, check_extents, count_of, layouts_of, of_matrix
from cute_dialect.lang import utils
from cute_dialect.lang.nvgpu import warp
from cute_dialect.lang.values.dtypes import type_of_mlir


class AmpereConfig(NamedTuple):
    """Configuration of a GEMM for sm_80."""

    element: str = "f16"  # type of A and B: f16 or bf16
    tile: tuple[int, int, int] = (128, 128, 32)  # (M, N, K) of a block
    warps: tuple[int, int] = (2, 2)  # along M and N
    stages: int = 3  # stages in shared memory
    majors: tuple[str, str] = ("k", "k")  # contiguous mode of A and of B, "k" or "mn"
    group: int = 8  # tile rows of a raster group, which share their B in the L2
    vectors: tuple[int, ...] = (8, 4, 2, 1)  # elements per copy, one kernel each
    batch: bool = False  # A, B and C have a batch mode; needed only for the printed kernel
    output: str = ""  # type of C: f16, bf16 or f32; empty for that of A and B
    epilogue: Epilogue = Epilogue()
    array: bool = False  # pointer-array batch (see gemm/operands.py, places_of)
    warps_k: int = 1  # warps along K
    sums: str = "f32"  # accumulator type: f32, or f16 for f16 operands
    step: int = 16  # K of an MMA, 8 or 16

    @property
    def result(self) -> str:
        """The type of C."""
        return self.output or self.element

    @property
    def threads(self) -> int:
        return 32 * self.warps[0] * self.warps[1] * self.warps_k

    @property
    def name(self) -> str:
        """Name of the kernel, as ``f16-128x128x32-3-kk``."""
        warps = (*self.warps, self.warps_k)
        more = differing(self, {"batch": "-b", "array": "-v"}) + f"-w{by(warps)}" * (warps != (2, 2, 1))
        more += differing(self, {"sums": "-a", "step": "-k{}"}) + f"-{self.output}" * (self.result != self.element)
        majors = "".join(x[0] for x in self.majors)
        return f"{self.element}-{by(self.tile)}-{self.stages}-{majors}{more}{self.epilogue.suffix}"


class AmpereGemm:
    """GEMM of one configuration. Element types and majors are those of the matrices."""

    def __init__(self, config: AmpereConfig | None = None):
        self.config = config or AmpereConfig()

    @cute.jit(name="launch")
    def __call__(
        self, A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, source: cute.Tensor | None = None,
        bias: cute.Tensor | None = None, alpha: cute.Float32 | None = None, beta: cute.Float32 | None = None,
        operands: Any = None, places: cute.Tensor | None = None,
    ):  # fmt: skip
        """Multiply matrices or batches of them. The arguments after C belong to the epilogue."""
        kinds, addends = {x.element_type for x in (A, B)}, Addends(source, bias, alpha, beta, operands)
        if len(kinds) > 1 or not kinds <= {cute.Float16, cute.BFloat16}:
            raise TypeError(f"launch: A and B must be of one type, Float16 or BFloat16, got {A}, {B}")
        if C.element_type not in (cute.Float16, cute.BFloat16, cute.Float32):
            raise TypeError(f"launch: C must be of Float16, BFloat16 or Float32, got {C}")
        self.config.epilogue.check_shapes(C, addends, pairs=False, array=self.config.array, groups=count_of(places))
        if C.leading_dim == 0:
            raise ValueError(f"launch: C must have contiguous rows, got {C}")
        matrices = check_extents(A, B, C, places=places)
        m, n, _ = self.config.tile
        tiles = utils.GroupedRaster(cute.ceil_div(C.shape[:2], (m, n)), self.config.group, matrices=matrices)
        kernels = {8: self.gemm_16, 4: self.gemm_8, 2: self.gemm_4, 1: self.gemm}
        launches = []
        for vector in sorted(self.config.vectors, reverse=True):
            # A result of another type is stored element by element.
            given = [cute.promise_vectors(x, vector) for x in ((A, B, C) if C.element_type in kinds else (A, B))]
            promised = given if len(given) == 3 else [*given, C]
            if all(x is not None for x in promised):
                launches.append(kernels[vector](*promised, tiles, addends, places))
                if all(x is y for x, y in zip(promised, (A, B, C))):
                    break  # this kernel accepts all matrices
        launches[0].launch(grid=tiles.count(), block=self.config.threads, fallback=launches[1:])

    @cute.kernel
    def gemm_16(self, A: Any, B: Any, C: Any, tiles: utils.GroupedRaster, addends: Addends, places: Any):
        """Multiply matrices whose rows are multiples of 16 bytes."""
        _multiply(self.config, A, B, C, tiles, addends, places, 8)

    @cute.kernel
    def gemm_8(self, A: Any, B: Any, C: Any, tiles: utils.GroupedRaster, addends: Addends, places: Any):
        """Multiply matrices whose rows are multiples of 8 bytes."""
        _multiply(self.config, A, B, C, tiles, addends, places, 4)

    @cute.kernel
    def gemm_4(self, A: Any, B: Any, C: Any, tiles: utils.GroupedRaster, addends: Addends, places: Any):
        """Multiply matrices whose rows are multiples of 4 bytes."""
        _multiply(self.config, A, B, C, tiles, addends, places, 2)

    @cute.kernel
    def gemm(self, A: Any, B: Any, C: Any, tiles: utils.GroupedRaster, addends: Addends, places: Any):
        """Multiply matrices of any alignment."""
        _multiply(self.config, A, B, C, tiles, addends, places, 1)


def _multiply(
    c: AmpereConfig, A: Any, B: Any, C: Any, tiles: utils.GroupedRaster, addends: Addends, places: Any, vector: int
) -> None:
    """Compute one tile of a raster; copies move ``vector`` elements."""
    row, column, *matrix = tiles.place(cute.arch.block_idx().x)
    A, B, C, addends = of_matrix(A, B, C, addends, matrix, places)
    compute_tile(c, A, B, C, addends, (row, column), vector, matrix[0] if matrix else None)


def compute_tile(
    c: AmpereConfig, A: Any, B: Any, C: Any, addends: Addends, where: tuple[Any, Any], vector: int, matrix: Any = None,
    seen: Callable[[Any], Any] | None = None,
) -> None:  # fmt: skip
    """Compute the tile in row and column ``where``.

    Args:
        c: The configuration.
        A, B, C, addends: The operands of one matrix.
        where: Row and column of the tile.
        vector: Elements per copy.
        matrix: Index in a batch, for the epilogue.
        seen: Maps coordinates in C to those that the epilogue uses, if they differ.
    """
    m, n, k = c.tile
    if vector == 1:  # single elements in flight are held in registers, which limits their number
        k = min(k, max(32, 16 * c.warps_k))
    c = c._replace(tile=(m, n, k))
    kind, thread = A.element_type, cute.arch.thread_idx().x
    row, column = where
    wm, wn = c.warps
    # Two MMAs along N are adjacent in a warp, so that one ldmatrix serves both.
    of_k = WarpsOfK(c.warps_k, 32 * wm * wn, thread)
    product = warp.MmaF16BF16Op(kind, type_of_mlir(c.sums), (16, 8, c.step))
    mma = cute.make_tiled_mma(product, (wm, wn, 1), (16 * wm, 16 * wn, 16))
    size = max((m + n) * k * c.stages, m * n * (2 if c.warps_k > 1 and c.sums == "f32" else 1))
    buffer = cute.smem_tensor(kind, cute.make_layout(size), 1024, cute.make_swizzle(3, 4, 3)).iterator
    a = Staged(A, (m, k), row, buffer, c.stages, vector, thread, c.threads)
    b = Staged(B, (n, k), column, buffer + m * k * c.stages, c.stages, vector, thread, c.threads)
    load_a, load_b = cute.make_tiled_copy_A(a.matrices, mma), cute.make_tiled_copy_B(b.matrices, mma)
    from_a, from_b = (x.get_slice(of_k.lane).partition_S(y.ring) for x, y in ((load_a, a), (load_b, b)))
    part = mma.get_slice(of_k.lane)
    acc = mma.make_fragment_C(mma.partition_shape_C((m, n)))
    acc.fill(0)

    def multiply(read: Any) -> None:
        rA = mma.make_fragment_A(part.partition_A(a.ring[None, None, read]))
        rB = mma.make_fragment_B(part.partition_B(b.ring[None, None, read]))
        to_a, to_b = load_a.retile(rA), load_b.retile(rB)
        for j in range(k // 16 // c.warps_k):
            cute.copy(load_a, from_a[None, None, of_k.step(j), read], to_a[None, None, j])
            cute.copy(load_b, from_b[None, None, of_k.step(j), read], to_b[None, None, j])
        for j in range(k // c.step // c.warps_k):
            cute.gemm(mma, acc, rA[None, None, j], rB[None, None, j], accumulate=True)

    over_k(a, b, A.shape[1], k, c.stages, multiply)
    of_k.add_up(acc, buffer)
    cute.arch.sync_threads()
    fused, same = Fused(c.epilogue, addends), C.element_type == kind
    if c.epilogue.active or not same:
        ids = part.partition_C(cute.local_tile(cute.make_identity_tensor(C.shape), (m, n), (row, column)))
    if c.epilogue.active:
        acc = fused.taken(acc)
        if of_k.leads:
            fused.apply_each(acc, ids if seen is None else seen(ids), matrix)
    if same:
        _store(c, C, acc, mma, buffer, (row, column), vector, thread, of_k)
        return
    target = part.partition_C(cute.local_tile(C, (m, n), (row, column)))
    if of_k.leads:
        for i in range(cute.size(acc)):  # held in registers, so the passes unroll this loop
            if cute.elem_less(ids[i], C.shape):
                target[i] = acc[i].to(C.element_type)


def _store(
    c: AmpereConfig, C: Any, acc: Any, mma: Any, buffer: Any, where: Any, vector: int, thread: Any, of_k: WarpsOfK
) -> None:
    """Convert the accumulator to the type of C, and store it through shared memory."""
    m, n, _ = c.tile
    plain = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), C.element_type)
    sC = cute.make_tensor(buffer, tile_layout(m, n))
    out = cute.make_rmem_tensor_like(acc, C.element_type)
    out.store(acc.load().to(C.element_type))
    to_smem = cute.make_tiled_copy_C(plain, mma).get_slice(of_k.lane)
    if of_k.leads:
        cute.copy(to_smem, to_smem.retile(out), to_smem.partition_D(sC))
    cute.arch.sync_threads()
    copy = tile_copy(plain, (m, n), 1, vector, c.threads).get_slice(thread)
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
    else:  # one predicate per element
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


@printed
def ampere_gemm_text(config: AmpereConfig | None = None) -> cute.Compiled:
    """Trace the kernels and the host function ``launch(A, B, C)``, for matrices aligned to the smallest vector."""
    config = config or AmpereConfig()
    v = min(config.vectors)
    rows, columns = layouts_of(batch=config.batch, array=config.array, div=v)

    def matrix(layout: str, element: str = config.element) -> Any:
        return cute.Tensor[type_of_mlir(element), layout, f"align<{2 * v}>"]

    if config.result != config.element:  # stored element by element
        rows_of_c, _ = layouts_of(batch=config.batch, array=config.array)
        c: Any = cute.Tensor[type_of_mlir(config.result), rows_of_c]
    else:
        c = matrix(rows)
    a, b = (rows if major == "k" else columns for major in config.majors)
    behind = config.epilogue.arguments(config.result, batch=config.batch, vectors=False, array=config.array)
    behind |= {"places": PLACES} if config.array else {}
    return cute.trace(AmpereGemm(config), matrix(a), matrix(b), c, **behind)
