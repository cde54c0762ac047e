"""Hopper GEMM with a 2:4 sparse A: ``C[M,N] = A[M,K] * B[N,K]^T`` by ``wgmma.mma_async.sp``, and the compression of A.

The kept half of A and the metadata with its positions are the operands A and E of ``cute.sparse_gemm``
(PTX ISA 9.0, 9.7.14.6.1 "Sparse matrix storage"). :func:`compress` computes them with NumPy, row-major:

>>> import numpy as np
>>> a = np.array([[0, 7, 0, 8, 0, 0, 0, 9] + 8 * [0]], np.float16)
>>> kept, metadata = compress(a, "f16")
>>> kept.tolist(), [f"{int(w):016b}" for w in metadata[0]]
([[7.0, 8.0, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0]], ['0100010011001101'])
>>> bool((expand(kept, metadata, "f16") == a).all())
True

The first 4 bits, 1101, are elements 01 and 11 of the first group of four.

The kernel of :func:`launch_compress` orders the metadata for the kernel of the GEMM: word ``t`` of a tile of 64 x 64 is
that of thread ``t``, for two MMAs. The GEMM is that of :mod:`cute_dialect.kernels.gemm.hopper`, with its producer, its
schedules and its epilogue. A stage has 64 kept elements of a row of A, 128 elements of a row of B, and the metadata.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.arch.elements import bits_of
from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.epilogue.combination import Addends
from cute_dialect.kernels.epilogue.emit import Fused
from cute_dialect.kernels.gemm.block_scaling import Scales
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.kernels.gemm.epilogue_store import BUFFER, Result
from cute_dialect.kernels.gemm.hopper import ROLES, Loads, Whole, allocate, begin_loads, ring_between, take_roles
from cute_dialect.kernels.gemm.host import load_map, ring_of, store_map, store_widths
from cute_dialect.kernels.gemm.mainloop import FromRegisters, Operand, Place, Products, Shared, Tiles
from cute_dialect.lang import utils
from cute_dialect.lang.nvgpu import BulkCopyOp, cpasync, warpgroup
from cute_dialect.lang.values.signature_types import Int, Value

if TYPE_CHECKING:  # pragma: no cover
    from typing import Any, TypeAlias

    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class Compressed(NamedTuple):
    """A compressed matrix."""

    kept: "Array"  # (M, K / 2), of the type of the matrix
    metadata: "Array"  # (M, K / columns per word), int16 or int32


def _group(element: str) -> tuple[int, int, int]:
    # Elements per group; units per group, half of which are kept; groups per metadata word.
    group, units, words = {32: (2, 2, 4), 16: (4, 4, 4), 8: (4, 4, 8), 4: (8, 4, 8)}[bits_of(element)]
    return group, units, words


def compress(matrix: "Array", element: str) -> Compressed:
    """Compress a matrix ``(M, K)`` with enough zeros.

    A group keeps 2 of 4 elements; for tf32 1 of 2, and for 4-bit integers 2 pairs of 4. Elements of 4-bit integers are
    stored one per byte here.

    Args:
        matrix: The matrix.
        element: Its type as in atoms: f16, bf16, tf32, i8, ui4, …

    Raises:
        ValueError: if a group has more nonzero elements, or K is not a multiple of the columns per metadata word.
    """
    import numpy as np

    group, units, per_word = _group(element)
    m, k = matrix.shape
    if k % (group * per_word):
        raise ValueError(f"compress: the matrix has {k} columns; {element} needs a multiple of {group * per_word}")
    parts = matrix.reshape(m, k // group, units, group // units)
    there = (parts != 0).any(axis=-1)
    half = units // 2
    over = np.argwhere(there.sum(axis=-1) > half)
    if len(over):
        r, g = over[0].tolist()
        what = "element" if group == units else "pair"
        raise ValueError(
            f"compress: columns {g * group} to {g * group + group - 1} of row {r} have {int(there[r, g].sum())} "
            "nonzero "
            f"{what}s; at most {half} {'are' if half > 1 else 'is'} allowed"
        )
    # Nonzero units first, then the others, each in order. The chosen ones are sorted.
    chosen = np.sort(np.argsort(~there, axis=-1, kind="stable")[..., :half], axis=-1)
    kept = np.take_along_axis(parts, chosen[..., None], axis=2).reshape(m, k // 2)
    bits = np.where(chosen[..., 0] == 0, 0b0100, 0b1110) if half == 1 else chosen[..., 0] | chosen[..., 1] << 2
    words = (bits.reshape(m, -1, per_word).astype(np.uint32) << (4 * np.arange(per_word, dtype=np.uint32))).sum(-1)
    if per_word == 4:
        return Compressed(np.ascontiguousarray(kept), words.astype(np.uint16).view(np.int16))
    return Compressed(np.ascontiguousarray(kept), words.astype(np.uint32).view(np.int32))


def expand(kept: "Array", metadata: "Array", element: str) -> "Array":
    """Return the matrix ``(M, K)`` of a compressed form; the inverse of :func:`compress`.

    Raises:
        ValueError: if the metadata are invalid.
    """
    import numpy as np

    from cute_dialect.arch.sparse_mma import metadata as held  # late: start-up

    group, _, per_word = _group(element)
    m, half = kept.shape
    words = metadata.astype(np.int64)[..., None] >> (4 * np.arange(per_word))
    bits = (words & 15).reshape(m, -1)
    table = np.full((16, group // 2), -1)
    for key, elements in held(16, group * per_word, element).kept.items():
        table[key] = elements
    where = table[bits]
    wrong = np.argwhere(where[..., 0] < 0)
    if len(wrong):
        r, g = wrong[0].tolist()
        raise ValueError(f"expand: metadata {int(bits[r, g]):04b} of group {g} of row {r} are invalid")
    out = np.zeros((m, bits.shape[1], group), kept.dtype)
    np.put_along_axis(out, where, kept.reshape(where.shape), axis=-1)
    return out.reshape(m, 2 * half)


def order_by_lanes(metadata: "Array") -> "Array":
    """Return the metadata of :func:`compress` in the order of tensor memory, int32, one row per lane.

    The instructions of ``tcgen05`` read a column of the result per step of K, or two for elements of 8 bits and less.
    Words of int32 keep their places. Lane ``l`` holds the half words of row ``l % 8 + 16 * (l // 16)`` and of the row 8
    further, for the first half of each step of K if ``l // 8`` is even, else for the second half.

    Args:
        metadata: The metadata (M, words), int16 with an even number of words, or int32. M is a multiple of 16.

    Raises:
        ValueError: if M or the number of words is no such multiple.

    >>> import numpy as np
    >>> words = np.zeros((16, 2), np.int16)
    >>> words[3, 1], words[11, 1] = 5, 6
    >>> held = order_by_lanes(words)
    >>> held.shape, int(held[11, 0]) == 5 | 6 << 16
    ((16, 1), True)
    """
    import numpy as np

    m, words = metadata.shape
    if metadata.dtype != np.int16:
        return metadata
    if m % 16 or words % 2:
        raise ValueError(
            f"order_by_lanes: the metadata have the shape {metadata.shape}; pass a multiple of 16 rows and of 2 words"
        )
    parts = metadata.reshape(m // 16, 2, 8, words // 2, 2).transpose(0, 4, 2, 3, 1)
    return np.ascontiguousarray(parts).reshape(m, words).view(np.int32)


# ------------------------------------------------------------------------------------------------------------ kernels

ROWS, DEPTH = 64, 64
"""Rows and columns of a tile of metadata, which has a 32-bit word per thread of a warpgroup."""

STEP = 128
"""K of a stage: 64 kept elements of A, two tiles of metadata."""

THREADS = 128

_CODES = sum(
    (pair[0] | pair[1] << 2) << 4 * mask
    for mask, pair in enumerate(sorted(sorted(range(4), key=lambda i: not mask >> i & 1)[:2]) for mask in range(16))
)
"""Metadata of a group by the mask of its nonzero elements, four bits each."""


class CompressConfig(NamedTuple):
    """Configuration of the kernels that compress and expand weights.

    >>> CompressConfig("bf16").name
    'sparse-compress-bf16'
    """

    element: str = "f16"  # f16 or bf16

    @property
    def name(self) -> str:
        """Unique name of the kernel that compresses."""
        return f"sparse-compress-{self.element}"


class SparseConfig(NamedTuple):
    """Configuration of the GEMM with a sparse A.

    >>> SparseConfig().name, SparseConfig().smem_bytes
    ('sparse-f16-128x256-q2-c2-d', 200736)
    """

    base: GemmConfig = GemmConfig(tile=(128, 256, 64), stages=2, major_c="m")
    """The GEMM of the kept elements: its tile K, 64, is half the K of a stage."""

    @property
    def stage_bytes(self) -> int:
        """Bytes of A, B and metadata in one stage."""
        m, n, _ = self.base.tile
        return m * STEP + n * STEP * 2 + m * STEP // 8

    @property
    def smem_bytes(self) -> int:
        """Shared memory of a block in bytes: stages, staging buffers and barriers."""
        return self.base.stages * (self.stage_bytes + 16) + self.base.consumers * self.base.buffers * BUFFER

    @property
    def name(self) -> str:
        """Unique name of the kernel."""
        c = self.base
        (m, n, _), flags = c.tile, "d" * c.deferred + "t" * (c.schedule == "pingpong")
        words = ["sparse", c.element, f"{m}x{n}", f"q{c.stages}", c.cluster_name, *[flags] * bool(flags)]
        words += [f"b{c.buffers}"] * (c.buffers != 2) + ["bias"] * bool(c.epilogue.bias)
        return "-".join(words + [f"s{c.sms}"] * (c.sms != 132))

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        c = self.base
        c.check()
        if c.bits != 16 or c.tile[2] != STEP // 2 or (c.major_a, c.major_b, c.major_c) != ("k", "k", "m"):
            raise ValueError("a sparse GEMM needs 16-bit elements, a tile K of 64, K-major A and B and M-major C")
        if c.stream_k or c.batch or c.promote or c.fallback or c.direct or c.accumulator or c.dependent:
            raise ValueError(f"a sparse GEMM has no stream_k, batch, promote, fallback, direct or accumulator, got {c}")
        if self.smem_bytes > DEFAULT_TARGET.shared:
            raise ValueError(
                f"the kernel needs {self.smem_bytes} bytes of shared memory; at most {DEFAULT_TARGET.shared} are "
                "available, use fewer stages"
            )


class Metadata:
    """Metadata of a tile of A: a bulk copy of the words of each 64 rows, into the stages of shared memory."""

    def __init__(self, c: GemmConfig, words: cute.Tensor, smem: cute.Tensor):
        self.c, self.words, self.smem = c, words, smem
        self.atom = cute.make_copy_atom(BulkCopyOp(), cute.Uint32)

    def fetch(self, slot: Int, barrier: cute.Pointer, row: Int, k: Int) -> None:
        """Issue the copies for tile (row, k) to a slot."""
        for i in cute.range_constexpr(self.c.tile[0] // ROWS):
            # The last tile may have fewer rows; its surplus rows repeat the last ones.
            at = cute.min(row * (self.c.tile[0] // ROWS) + i, self.words.shape[0] - 1)
            source = cute.local_tile(self.words[at, None], (2 * THREADS,), (k,))
            cute.copy(self.atom, source, self.smem[None, i, slot], tma_bar_ptr=barrier)


class SparseLoads(Loads):
    """Producer that also loads the metadata."""

    def __init__(self, metadata: Metadata, *given: Value):
        super().__init__(*given)
        self.metadata = metadata

    def _fetch(self, index: Int, barrier: cute.Pointer, k: Int, place: Place, shared: bool | None = None) -> None:
        super()._fetch(index, barrier, k, place, shared)
        if not shared:
            self.metadata.fetch(index, barrier, place.row, k)


class SparseProducts(FromRegisters):
    """MMA main loop of a warpgroup with a sparse A.

    A stage is two groups of MMAs, each with its own registers for metadata: a thread's word holds those of its two rows
    for two MMAs, which read it from the even and the odd pairs of lanes (the selector).
    """

    def __init__(self, c: GemmConfig, mmas: Sequence[cute.TiledMma], sA: Value, sB: Value, sE: Value, thread: Int):
        Products.__init__(self, c, mmas[0], sA, sB, thread, Scales())
        self.mmas, self.sE = mmas, sE
        self.group = thread // THREADS if c.sharers > 1 else 0
        self.rE = [mmas[0].make_fragment_E(mmas[0].partition_shape_E((c.tile[0], 2))) for _ in range(2)]

    def fragment(self, part: cute.ThrMma, sA: Value) -> cute.Tensor:
        """Return the A operand of the MMA: descriptors of tiles in shared memory."""
        return Products.fragment(self, part, sA)

    def _multiply(self, slot: Value, group: int, *, accumulate: bool) -> None:
        """Load the metadata of a group to registers, and issue its MMAs."""
        words = cute.recast_tensor(self.rE[group], cute.Uint32)
        for atom in cute.range_constexpr(self.c.atoms):
            at = group * THREADS + cute.arch.thread_idx().x % THREADS
            words[atom] = self.sE[at, atom * self.c.sharers + self.group, slot.index]
        warpgroup.fence()
        for i in cute.range_constexpr(2):
            at = (None, None, 2 * group + i, slot.index)
            cute.sparse_gemm(
                self.mmas[i],
                self.acc,
                self.rA[at],
                self.rB[at],
                self.rE[group][None, None, 0],
                accumulate=accumulate or group + i > 0,
            )
        warpgroup.commit_group()


DEFAULT = SparseConfig()


@cute.jit
def launch(
    A: cute.Tensor,
    B: cute.Tensor,
    C: cute.Tensor,
    metadata: cute.Tensor,
    bias: cute.Tensor | None = None,
    config: cute.Constexpr[SparseConfig] = DEFAULT,
):
    """Launch the GEMM ``C = A B^T`` of a configuration.

    Args:
        A: (M, K / 2), the kept elements.
        B: (N, K).
        C: (M, N), contiguous along M.
        metadata: (ceil(M / 64), words), which :func:`launch_compress` fills.
        bias: (M,), or None.
    """
    c, (m, n, _) = config.base, config.base.tile
    assert A.shape[1] * 2 == B.shape[1], "A must have half the columns of B"
    assert A.shape[0] == C.shape[0], "A and C must have the same M"
    assert B.shape[0] == C.shape[1], "B must have as many rows as C has columns"
    k_tiles = cute.ceil_div(B.shape[1], STEP)
    assert metadata.shape[0] == cute.ceil_div(A.shape[0], ROWS), "metadata must have a row per 64 rows of A"
    assert metadata.shape[1] == k_tiles * (2 * THREADS), "metadata must have 256 words per 128 of K"
    kind = number(c.element)
    mmas = tuple(
        [
            cute.make_tiled_mma(
                cute.make_mma_atom(warpgroup.MmaSparseOp(kind, kind, cute.Float32, (ROWS, n, 32), selector=i)),
                (c.sharers, 1, 1),
            )
            for i in range(2)
        ]
    )
    rings = ring_of(A, (m, STEP // 2), c), ring_of(B, (n, STEP), c)
    tma_a, tma_b = load_map(c, A, (m, STEP // 2), c.cluster_n), load_map(c, B, (n, STEP), c.cluster_m)
    tmas_c = {width: store_map(c, C, width) for width in store_widths(c)}
    raster = utils.GroupedRaster(
        cute.ceil_div((C.shape[0], C.shape[1]), (m * c.cluster_m, n * c.cluster_n)),
        c.group,
        serpentine=c.serpentine,
        cluster=c.cluster,
        sms=c.at_once,
    )
    grid = Whole.grid(raster, k_tiles, 1)
    sparse_gemm((tma_a, tma_b), tmas_c, mmas, rings, raster, k_tiles, metadata, Addends(bias=bias), config).launch(
        grid=grid, block=c.threads, cluster=(c.cluster, 1, 1)
    )


@cute.kernel(min_blocks=1)
def sparse_gemm(
    tmas: tuple[Value, Value],
    tmas_c: dict[int, Value],
    mmas: Value,
    rings: Value,
    raster: utils.GroupedRaster,
    k_tiles: cute.Int32,
    metadata: cute.Tensor,
    addends: Addends,
    config: cute.Constexpr[SparseConfig],
):
    c, (m, n, _) = config.base, config.base.tile
    tiles = Tiles(c, raster)
    work = Whole(c, tiles, k_tiles, Shared())
    if cute.arch.thread_idx().x == 0:
        for atom, _ in tmas:
            cpasync.prefetch_descriptor(atom)
    sA, sB, staging = allocate(c, [atom for atom, _ in tmas], rings)
    sE = cute.smem_tensor(cute.Uint32, cute.make_layout((2 * THREADS, m // ROWS, c.stages)), 128)
    of_a, of_b = tiles.sharers()
    a = Operand(tmas[0], sA, (m, STEP // 2), c.cluster_n, tiles.column, mask=of_a)
    b = Operand(tmas[1], sB, (n, STEP), c.cluster_m, tiles.row, mask=of_b)
    producer, consumer = ring_between(c, config.stage_bytes, by_warp=True)
    loads = SparseLoads(Metadata(c, metadata, sE), c, a, b, producer, tiles, k_tiles)
    begin_loads(c, loads, work.first)

    def consume(group: Int) -> None:
        if cute.arch.thread_idx().x == THREADS:
            for atom, _ in tmas_c.values():
                cpasync.prefetch_descriptor(atom)
        products = SparseProducts(c, mmas, sA, sB, sE, 0 if c.schedule == "pingpong" else group * THREADS)
        fused = Fused(c.epilogue, addends, pairs=False, whole=False, batch=False, lanes=c.lanes)
        result = Result(c, tmas_c, staging, products.sums, group, fused, None, {})
        work.consume(ROLES[c.schedule](c, consumer, products, result, tiles, k_tiles))

    take_roles(c, lambda: work.produce(loads), consume)


def _elements(t: cute.Tensor, row: Int, column: Int, count: int) -> cute.Tensor:
    """Return consecutive elements of a row, which are aligned."""
    at = t[row, None].iterator + column
    return cute.make_tensor(at.align(count * t.element_type.width // 8), cute.make_layout(count))


@cute.kernel
def compress_2_4(w: cute.Tensor, kept: cute.Tensor, metadata: cute.Tensor, wrong: cute.Tensor):
    tile, block, _ = cute.arch.block_idx()
    thread, lane = cute.arch.thread_idx().x, cute.arch.lane_idx()
    column, word, bad = tile * DEPTH + lane % 4 * 16, cute.Uint32(0), cute.Int32(0)
    for half in cute.range_constexpr(2):
        row = block * ROWS + thread // 32 * 16 + lane // 4 + 8 * half
        held, chosen = cute.make_rmem_tensor(16, w.element_type), cute.make_rmem_tensor(8, w.element_type)
        held.fill(0)
        inside = (row < w.shape[0]) & (column < w.shape[1])
        if inside:
            for i in cute.range_constexpr(2):
                part = cute.make_tensor(held.iterator + 8 * i, cute.make_layout(8))
                cute.autovec_copy(_elements(w, row, column + 8 * i, 8), part)
        for group in cute.range_constexpr(4):
            values, mask = [held[4 * group + i] for i in range(4)], cute.Uint32(0)
            for i, x in enumerate(values):
                mask = mask | cute.where(x.to(cute.Float32) != 0.0, cute.Uint32(1 << i), cute.Uint32(0))
            bad = bad + cute.where(cute.math.popc(mask) > 2, 1, 0)
            code = ((cute.Uint64(_CODES) >> (mask * 4).to(cute.Uint64)) & cute.Uint64(15)).to(cute.Uint32)
            word = word | code << (16 * half + 4 * group)
            for i, place in enumerate((code & 3, code >> 2)):
                x = values[0]
                for j in range(1, 4):
                    x = cute.where(place == j, values[j], x)
                chosen[2 * group + i] = x
        if inside:
            cute.autovec_copy(chosen, _elements(kept, row, column // 2, 8))
    metadata[block, tile * THREADS + thread] = word.to(cute.Int32)
    if bad > 0:
        cute.arch.atomic_add(wrong.iterator, bad)


@cute.jit
def launch_compress(w: cute.Tensor, kept: cute.Tensor, metadata: cute.Tensor, wrong: cute.Tensor):
    """Compress a matrix.

    Args:
        w: (M, K), K a multiple of 16.
        kept: (M, K / 2), the result.
        metadata: (ceil(M / 64), 128 ceil(K / 64) or more) words, the result. Word ``t`` of a tile of 64 x 64 belongs to
            thread ``t``.
        wrong: (1,), i32, increased by the number of groups with more than two nonzero elements.
    """
    assert kept.shape[1] * 2 == w.shape[1], "kept must have half the columns of w"
    grid = (metadata.shape[1] // THREADS, metadata.shape[0], 1)
    compress_2_4(w, kept, metadata, wrong).launch(grid=grid, block=THREADS)


@cute.kernel
def expand_2_4(kept: cute.Tensor, metadata: cute.Tensor, w: cute.Tensor):
    tile, block, _ = cute.arch.block_idx()
    thread, lane = cute.arch.thread_idx().x, cute.arch.lane_idx()
    column, word = tile * DEPTH + lane % 4 * 16, metadata[block, tile * THREADS + thread].to(cute.Uint32)
    for half in cute.range_constexpr(2):
        row = block * ROWS + thread // 32 * 16 + lane // 4 + 8 * half
        if (row < w.shape[0]) & (column < w.shape[1]):
            chosen, held = cute.make_rmem_tensor(8, w.element_type), cute.make_rmem_tensor(16, w.element_type)
            cute.autovec_copy(_elements(kept, row, column // 2, 8), chosen)
            for group in cute.range_constexpr(4):
                code = word >> (16 * half + 4 * group)
                for i in cute.range_constexpr(4):
                    x = cute.where((code & 3) == i, chosen[2 * group], w.element_type(0))
                    held[4 * group + i] = cute.where(((code >> 2) & 3) == i, chosen[2 * group + 1], x)
            for i in cute.range_constexpr(2):
                part = cute.make_tensor(held.iterator + 8 * i, cute.make_layout(8))
                cute.autovec_copy(part, _elements(w, row, column + 8 * i, 8))


@cute.jit
def launch_expand(kept: cute.Tensor, metadata: cute.Tensor, w: cute.Tensor):
    """Write the matrix (M, K) of a compressed form; the inverse of :func:`launch_compress`."""
    assert kept.shape[1] * 2 == w.shape[1], "kept must have half the columns of w"
    grid = (metadata.shape[1] // THREADS, metadata.shape[0], 1)
    expand_2_4(kept, metadata, w).launch(grid=grid, block=THREADS)


_ROWS_OF_8 = "(?,?):(?{div=8},1)"


@printed
def sparse_gemm_text(config: SparseConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@sparse_gemm`` and its host function ``@launch``.

    Raises:
        ValueError: if the configuration is not supported.
    """
    config = config or DEFAULT
    config.check()
    c, kind = config.base, number(config.base.element)
    matrix = cute.Tensor[kind, _ROWS_OF_8, "align<16>"]
    result = cute.Tensor[number(c.output), "(?,?):(1,?{div=8})", "align<16>"]
    words = cute.Tensor[cute.Int32, "(?,?):(?{div=4},1)", "align<16>"]
    bias = cute.Tensor[number(c.epilogue.bias_type), "?:1"] if c.epilogue.bias else None
    return cute.trace(launch, matrix, matrix, result, words, bias, config=config)


@printed
def compress_text(config: CompressConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@compress_2_4`` and its host function ``@launch_compress``."""
    matrix = cute.Tensor[number((config or CompressConfig()).element), _ROWS_OF_8, "align<16>"]
    words = cute.Tensor[cute.Int32, "(?,?):(?,1)"]
    return cute.trace(launch_compress, matrix, matrix, words, cute.Tensor[cute.Int32, "?:1"])


@printed
def expand_text(config: CompressConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@expand_2_4`` and its host function ``@launch_expand``."""
    matrix = cute.Tensor[number((config or CompressConfig()).element), _ROWS_OF_8, "align<16>"]
    return cute.trace(launch_expand, matrix, cute.Tensor[cute.Int32, "(?,?):(?,1)"], matrix)
