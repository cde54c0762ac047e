"""GEMM of f32 on plain FMAs: ``C[M,N] = A[M,K] * B[N,K]^T``, with f32 products and accumulators.

Matrices have any strides with a contiguous mode, and any extents. Batches and the epilogues of the Hopper GEMM
(:mod:`cute_dialect.kernels.epilogue.combination`) are supported. If A is K-major and B N-major, and TMA can read both,
the kernel is the last rung of the ladder (:mod:`cute_dialect.kernels.gemm.sgemm`). Otherwise ``cp.async`` copies single
elements, which also transposes. Problems with few tiles use ``small`` tiles, optionally with split-K.

    launch(a, b, c)                                              # arrays; the first call of a specialization compiles

>>> ExactConfig(major_b="k", batch=True).name, ExactConfig(small=True, parts=3).name
('f32-f32-kk-exact-b', 'f32-f32-kn-exact-64x64-p3')
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from collections.abc import Callable
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.kernel_names import differing
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.epilogue.combination import Addends, Epilogue
from cute_dialect.kernels.epilogue.emit import Fused
from cute_dialect.kernels.gemm.cp_async_mainloop import BlocksOfK, TileStore
from cute_dialect.kernels.gemm.mainloop import Shared
from cute_dialect.kernels.gemm.operands import PLACES, check_extents, count_of, layouts_of, of_matrix, places_of
from cute_dialect.kernels.gemm.sgemm import RUNGS, Product, Rung, Slots, load_maps, multiply_ahead, multiply_stages
from cute_dialect.lang import utils

_FAST, _ANY = RUNGS["pipelined"], RUNGS["warptile"]
SMALL = Rung(
    "4 warps have tiles of 32 x 32, their lanes 8 x 4 elements; six stages in flight by cp.async",
    (64, 64, 16), 128, "((4,2),(8,2),1):((8,64),(1,32),0)", ("(4,2,8):(1,32,4)", "(8,2,4):(4,32,1)"),
    "(64,16,6):(16,1,1024)", 4, True, 6,
)  # fmt: skip
"""The rung for problems with few tiles."""
TILE, THREADS = _ANY.tile, _ANY.threads
"""Tile and threads of a block for matrices with any strides."""


class ExactConfig(NamedTuple):
    """Configuration of a GEMM on plain FMAs."""

    major_a: str = "k"  # contiguous mode of A, "k" or "m"
    major_b: str = "n"  # contiguous mode of B, "k" or "n"
    batch: bool = False  # A, B and C have a batch mode; its extent may be 1 for A or B (broadcast)
    epilogue: Epilogue = Epilogue()
    array: bool = False  # pointer-array batch (see gemm/operands.py, places_of)
    small: bool = False  # use tiles of 64 x 64 instead of 128 x 128
    parts: int = 1  # split-K slices of a small tile; the launch takes a workspace after C (see ``workspace``)

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of a block's tile."""
        return (SMALL if self.small else _FAST).tile[:2]

    def workspace(self, m: int, n: int, matrices: int = 1) -> tuple[int, int]:
        """Return the f32 elements and the counters that split-K needs for a problem; both 0 without split-K."""
        if self.parts == 1:
            return 0, 0
        tiles = -(-m // self.tile[0]) * -(-n // self.tile[1]) * matrices
        return tiles * self.parts * self.tile[0] * self.tile[1], tiles

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        if self.parts < 1 or (self.parts > 1 and not self.small):
            raise ValueError(f"parts is {self.parts}; split-K needs at least 1 part and small=True")
        self.epilogue.check()

    @property
    def name(self) -> str:
        """Name of the kernel."""
        more = differing(self, {"small": "-64x64", "parts": "-p{}", "batch": "-b", "array": "-v"})
        return f"f32-f32-{self.major_a}{self.major_b}-exact{more}{self.epilogue.suffix}"


DEFAULT = ExactConfig()


@cute.jit
def launch(
    A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, workspace: cute.Tensor | None = None,
    counters: cute.Tensor | None = None, source: cute.Tensor | None = None, bias: cute.Tensor | None = None,
    alpha: cute.Float32 | None = None, beta: cute.Float32 | None = None, operands: Any = None,
    places: cute.Tensor | None = None,
    config: cute.Constexpr[Any] = DEFAULT,
):  # fmt: skip
    """Launch one block per tile of C, or per split-K slice of it.

    The arguments after C are the split-K workspace, then those of the epilogue.
    """
    for x in (A, B, C):
        if x.element_type is not cute.Float32:
            raise TypeError(f"launch: matrices must be of Float32, got {x}")
    if C.leading_dim == 0:
        raise ValueError(f"launch: C must have contiguous rows, got {C}")
    matrices = check_extents(A, B, C, places=places)
    addends = Addends(source, bias, alpha, beta, operands)
    config.epilogue.check_shapes(C, addends, pairs=False, array=config.array, groups=count_of(places))
    raster = utils.GroupedRaster(cute.ceil_div(C.shape[:2], config.tile), matrices=matrices)
    if config.small:
        shared, sizes = Shared(workspace, counters), {"grid": raster.count() * config.parts, "block": SMALL.threads}
        any_small = exact_small(A, B, C, raster, addends, places, shared, config)
        if (A.leading_dim, B.leading_dim) == (1, 0):
            vA, vB = (cute.promise_vectors(x, 4) for x in (A, B))
            exact_small_v(vA, vB, C, raster, addends, places, shared, config).launch(**sizes, fallback=any_small)
        else:
            any_small.launch(**sizes)
        return
    other, sizes = exact_any(A, B, C, raster, addends, places, config), {"grid": raster.count(), "block": _ANY.threads}
    if (A.leading_dim, B.leading_dim) == (1, 0):
        by_rows, by_columns = layouts_of(batch=config.batch, array=config.array, div=4, whole=False)
        promised = [cute.promise(x, layout, align=16) for x, layout in zip((A, B, C), (by_rows, by_columns, by_rows))]
        vA, vB, vC = (x.view for x in promised)
        exact_tma(
            load_maps(vA, vB, _FAST.tile, turned=True, batch=config.batch), vC, raster, addends, places, config
        ).launch(grid=raster.count(), block=_FAST.threads, fallback=other.on(**sizes))
    else:
        other.launch(**sizes)


@cute.kernel(name="gemm", min_blocks=2)
def exact_tma(
    loads: Any, C: cute.Tensor, raster: utils.GroupedRaster, addends: Addends, places: Any, config: cute.Constexpr[Any]
):
    """Compute a tile of C; TMA loads the tiles of A and B."""
    thread, _, _ = cute.arch.thread_idx()
    row, column, *matrix = raster.place(cute.arch.block_idx().x)
    _, _, C, addends = of_matrix(None, None, C, addends, matrix, places)
    product = Product(_FAST, C, row, column, thread)
    slots = Slots(loads, _FAST.tile, _FAST.stages, row, column, *[places_of(places, i)[:2] for i in matrix])
    multiply_ahead(slots, product.mma, product.acc, thread)
    # Copy the accumulator. A 128-bit store needs four consecutive registers, which would constrain those of the FMAs.
    sums = cute.make_fragment_like(product.acc)
    for i in range(cute.size(sums)):
        sums[i] = product.acc[i] + 0.0
    _fuse(config, addends, product, sums, matrix[0] if matrix else None)
    product.store(sums)


@cute.kernel(name="gemm_any", min_blocks=2)
def exact_any(
    A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, raster: utils.GroupedRaster, addends: Addends, places: Any,
    config: cute.Constexpr[Any],
):  # fmt: skip
    """Compute a tile of C for matrices with any strides."""
    row, column, *matrix = raster.place(cute.arch.block_idx().x)
    A, B, C, addends = of_matrix(A, B, C, addends, matrix, places)
    compute_tile(config, A, B, C, addends, (row, column), matrix[0] if matrix else None)


@cute.kernel(name="gemm_small_v", min_blocks=3)
def exact_small_v(
    A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, raster: utils.GroupedRaster, addends: Addends, places: Any,
    shared: Shared, config: cute.Constexpr[Any],
):  # fmt: skip
    """Compute a small tile of C, or a split-K slice of it, for matrices whose rows are multiples of 16 bytes."""
    _compute_small(config, A, B, C, raster, addends, places, shared, vectors=True)


@cute.kernel(name="gemm_small", min_blocks=3)
def exact_small(
    A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, raster: utils.GroupedRaster, addends: Addends, places: Any,
    shared: Shared, config: cute.Constexpr[Any],
):  # fmt: skip
    """Compute a small tile of C, or a split-K slice of it, for matrices with any strides."""
    _compute_small(config, A, B, C, raster, addends, places, shared, vectors=False)


def _compute_small(
    config: ExactConfig, A: Any, B: Any, C: Any, raster: Any, addends: Addends, places: Any, shared: Shared, *,
    vectors: bool,
) -> None:  # fmt: skip
    tile, thread, blocks, some = cute.arch.block_idx().x, cute.arch.thread_idx().x, None, None
    if config.parts > 1:
        tile, mine = tile // config.parts, tile % config.parts
        blocks = BlocksOfK(shared.workspace, shared.flags, config.parts, tile, mine, thread, SMALL.threads)
    row, column, *matrix = raster.place(tile)
    A, B, C, addends = of_matrix(A, B, C, addends, matrix, places)
    if blocks is not None:
        first, extent = blocks.begin(A.shape[1], SMALL.tile[2])
        some = first, cute.ceil_div(extent, SMALL.tile[2])
    k_fast = A.leading_dim == 1, B.leading_dim == 1
    product = multiply_stages(
        A, cute.select(B, [1, 0]), C, SMALL, place=(row, column), k_fast=k_fast, vectors=vectors, some=some
    )
    size = TileStore.size(cute.Float32, config.tile[0], config.tile[1])
    store = TileStore(
        C, config.tile, (row, column), product.part, config.tile[0],
        cute.smem_tensor(cute.Uint8, size, 128).iterator, thread, SMALL.threads,
    )  # fmt: skip
    if True if blocks is None else blocks.add_up(product.acc):
        _fuse(config, addends, product, product.acc, matrix[0] if matrix else None)
        store.write(product.acc)


def compute_tile(
    config: ExactConfig, A: Any, B: Any, C: Any, addends: Addends, where: tuple[Any, Any], matrix: Any = None,
    seen: Callable[[Any], Any] | None = None, *, vectors: bool = False,
) -> None:  # fmt: skip
    """Compute the tile in row and column ``where``; its size is :data:`TILE`.

    Args:
        config: The configuration.
        A, B, C, addends: The operands of one matrix.
        where: Row and column of the tile.
        matrix: Index in a batch, for the epilogue.
        seen: Maps coordinates in C to those that the epilogue uses, if they differ.
        vectors: Copy 16 bytes at once, for K-major A and N-major B.
    """
    k_fast = A.leading_dim == 1, B.leading_dim == 1
    product = multiply_stages(A, cute.select(B, [1, 0]), C, _ANY, place=where, k_fast=k_fast, vectors=vectors)
    _fuse(config, addends, product, product.acc, matrix, seen)
    product.store(product.acc)


def _fuse(
    config: ExactConfig, addends: Addends, product: Product, sums: Any, matrix: Any,
    seen: Callable[[Any], Any] | None = None,
) -> None:  # fmt: skip
    """Apply the epilogue to this thread's accumulator."""
    if config.epilogue.active:
        tile = cute.local_tile(
            cute.make_identity_tensor(product.mC.shape), product.rung.tile[:2], (product.row, product.column)
        )
        fused = Fused(config.epilogue, addends)
        ids = product.part.partition_C(tile)
        fused.apply_each(sums, ids if seen is None else seen(ids), matrix)


@printed
def exact_gemm_text(config: ExactConfig | None = None) -> cute.Compiled:
    """Trace the kernels and the host function ``launch(A, B, C)``, followed by the arguments of the epilogue."""
    c = config or DEFAULT
    c.check()
    rows, columns = layouts_of(batch=c.batch, array=c.array)

    def matrix(row_major: bool) -> Any:
        return cute.Tensor[cute.Float32, rows if row_major else columns]

    behind: dict[str, Any] = {}
    if c.parts > 1:
        behind["workspace"] = cute.Tensor[cute.Float32, "?:1", "align<16>"]
        behind["counters"] = cute.Tensor[cute.Int32, "?:1"]
    behind |= c.epilogue.arguments("f32", batch=c.batch, vectors=False, array=c.array)
    behind |= {"places": PLACES} if c.array else {}
    return cute.trace(launch, matrix(c.major_a == "k"), matrix(c.major_b == "k"), matrix(True), **behind, config=c)
