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

from collections.abc import Callable
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.front.dtypes import type_of_mlir
from cute_dialect.kernels.cp_async_mainloop import Staged, WarpsOfK, over_k, tile_copy, tile_layout
from cute_dialect.kernels.gemm.epilogue import Addends, Epilogue
from cute_dialect.kernels.gemm.epilogue_emit import Fused
from cute_dialect.kernels.gemm.operands import PLACES, check_extents, count_of, layouts_of, of_matrix
from cute_dialect.kernels.traced_text import printed
from cute_dialect.lang import utils
from cute_dialect.lang.nvgpu import warp

__all__ = ["AmpereConfig", "AmpereGemm", "ampere_gemm_text", "compute_tile"]


class AmpereConfig(NamedTuple):
    """The configuration of a GEMM.

    ``element``: of A and B, f16 or bf16; ``output``: of C, f16, bf16 or f32, by default as A and B; ``tile``: (M, N, K)
    of a block; ``warps``: along M and N; ``stages``: tiles of K in shared memory; ``majors``: which index is contiguous
    in A and in B, "k" or "mn"; ``group``: rows of tiles that are computed side by side, so that their B is shared in
    the L2 cache; ``vectors``: elements that one copy moves, a kernel each; ``batch``: A, B and C have a third mode, of
    matrices, which may be 1 in A or B, for all (of matrices that are given it need not be said); ``epilogue``: what
    becomes of the sums; ``array``: of a ``batch``, whose matrices lie
    anywhere (:func:`~cute_dialect.kernels.gemm.operands.places_of`); ``warps_k``: warps along K;
    ``sums``: f32, or f16 of f16; ``step``: K of an instruction, 8 or 16.
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
    array: bool = False
    warps_k: int = 1
    sums: str = "f32"
    step: int = 16

    @property
    def result(self) -> str:
        """The type of C."""
        return self.output or self.element

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps[0] * self.warps[1] * self.warps_k

    @property
    def name(self) -> str:
        """``f16-128x128x32-3-kk``"""
        m, n, k = self.tile
        more = "-b" * self.batch + "-v" * self.array
        warps = (*self.warps, self.warps_k)
        more += f"-w{'x'.join(map(str, warps))}" if warps != (2, 2, 1) else ""
        more += "-a" * (self.sums == "f16") + "-k8" * (self.step == 8)
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
        operands: Any = None, places: cute.Tensor | None = None,
    ):  # fmt: skip
        """Multiply matrices, or batches of them, their third mode; behind C what the epilogue wants."""
        kinds, addends = {x.element_type for x in (A, B)}, Addends(source, bias, alpha, beta, operands)
        if len(kinds) > 1 or not kinds <= {cute.Float16, cute.BFloat16}:
            raise TypeError(f"expected matrices of one type, Float16 or BFloat16, got {A}, {B}, {C}")
        if C.element_type not in (cute.Float16, cute.BFloat16, cute.Float32):
            raise TypeError(f"expected C of Float16, BFloat16 or Float32, got {C}")
        self.config.epilogue.check_shapes(C, addends, pairs=False, array=self.config.array, groups=count_of(places))
        if C.leading_dim == 0:
            raise ValueError(f"expected C with contiguous rows, got {C}")
        matrices = check_extents(A, B, C, places=places)
        m, n, _ = self.config.tile
        tiles = utils.GroupedRaster(cute.ceil_div(C.shape[:2], (m, n)), self.config.group, matrices=matrices)
        kernels = {8: self.gemm_16, 4: self.gemm_8, 2: self.gemm_4, 1: self.gemm}
        launches = []
        for vector in sorted(self.config.vectors, reverse=True):
            # A result of another type goes to C element by element.
            given = [cute.promise_vectors(x, vector) for x in ((A, B, C) if C.element_type in kinds else (A, B))]
            promised = given if len(given) == 3 else [*given, C]
            if all(x is not None for x in promised):
                launches.append(kernels[vector](*promised, tiles, addends, places))
                if all(x is y for x, y in zip(promised, (A, B, C))):
                    break  # it takes them all
        launches[0].launch(grid=tiles.count(), block=self.config.threads, fallback=launches[1:])

    @cute.kernel
    def gemm_16(self, A: Any, B: Any, C: Any, tiles: utils.GroupedRaster, addends: Addends, places: Any):
        """Multiply matrices of whole vectors of 16 bytes."""
        _multiply(self.config, A, B, C, tiles, addends, places, 8)

    @cute.kernel
    def gemm_8(self, A: Any, B: Any, C: Any, tiles: utils.GroupedRaster, addends: Addends, places: Any):
        """Multiply matrices of whole vectors of 8 bytes."""
        _multiply(self.config, A, B, C, tiles, addends, places, 4)

    @cute.kernel
    def gemm_4(self, A: Any, B: Any, C: Any, tiles: utils.GroupedRaster, addends: Addends, places: Any):
        """Multiply matrices of whole vectors of 4 bytes."""
        _multiply(self.config, A, B, C, tiles, addends, places, 2)

    @cute.kernel
    def gemm(self, A: Any, B: Any, C: Any, tiles: utils.GroupedRaster, addends: Addends, places: Any):
        """Multiply any matrices."""
        _multiply(self.config, A, B, C, tiles, addends, places, 1)


def _multiply(
    c: AmpereConfig, A: Any, B: Any, C: Any, tiles: utils.GroupedRaster, addends: Addends, places: Any, vector: int
) -> None:  # fmt: skip
    """Compute one tile of a raster; copies move ``vector`` elements."""
    row, column, *matrix = tiles.place(cute.arch.block_idx().x)
    A, B, C, addends = of_matrix(A, B, C, addends, matrix, places)
    compute_tile(c, A, B, C, addends, (row, column), vector, matrix[0] if matrix else None)


def compute_tile(
    c: AmpereConfig, A: Any, B: Any, C: Any, addends: Addends, where: tuple[Any, Any], vector: int, matrix: Any = None,
    seen: Callable[[Any], Any] | None = None,
) -> None:  # fmt: skip
    """Compute the tile in row and column ``where``; copies move ``vector`` elements.

    ``matrix``: of a batch, for the epilogue; ``seen``: gives the places of elements that the epilogue sees, of those in
    C, where they differ.
    """
    m, n, k = c.tile
    if vector == 1:  # elements on their way are held in registers: not too many at a time
        k = min(k, max(32, 16 * c.warps_k))
    c = c._replace(tile=(m, n, k))
    kind, thread = A.element_type, cute.arch.thread_idx().x
    row, column = where
    wm, wn = c.warps
    # Two instructions along N lie side by side in a warp, so that one ldmatrix serves both.
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
        for i in range(cute.size(acc)):  # registers: the passes unroll it
            if cute.elem_less(ids[i], C.shape):
                target[i] = acc[i].to(C.element_type)


def _store(
    c: AmpereConfig, C: Any, acc: Any, mma: Any, buffer: Any, where: Any, vector: int, thread: Any, of_k: WarpsOfK
) -> None:  # fmt: skip
    """Store the sums in the type of C to shared memory, and from there to C."""
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


@printed
def ampere_gemm_text(config: AmpereConfig | None = None) -> cute.Compiled:
    """Return kernels and host function as text: ``launch(A, B, C)``, for whole vectors of the fewest elements."""
    config = config or AmpereConfig()
    v = min(config.vectors)
    rows, columns = layouts_of(batch=config.batch, array=config.array, div=v)

    def matrix(layout: str, element: str = config.element) -> Any:
        return cute.Tensor[type_of_mlir(element), layout, f"align<{2 * v}>"]

    if config.result != config.element:  # element by element
        rows_of_c, _ = layouts_of(batch=config.batch, array=config.array)
        c: Any = cute.Tensor[type_of_mlir(config.result), rows_of_c]
    else:
        c = matrix(rows)
    a, b = (rows if major == "k" else columns for major in config.majors)
    behind = config.epilogue.arguments(config.result, batch=config.batch, vectors=False, array=config.array)
    behind |= {"places": PLACES} if config.array else {}
    return cute.trace(AmpereGemm(config), matrix(a), matrix(b), c, **behind)
