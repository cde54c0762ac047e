"""GEMM of f32 on plain FMAs: ``C[M,N] = A[M,K] * B[N,K]^T``, each sum in f32, each product as exact as an FMA is.

Any strides with a contiguous mode, any extents, batches, the epilogues of the Hopper GEMM
(:mod:`cute_dialect.kernels.gemm.epilogue`).  Where A is contiguous along K, B along N, and TMA can read both, the
kernel is the last rung of the ladder (:mod:`cute_dialect.kernels.sgemm`); else elements come one by one, by
``cp.async``, which also transposes.  For few tiles there are ``small`` ones, of which blocks may share K.

    launch(a, b, c)                                              # arrays; compiled at the first call of a kind

>>> ExactConfig(major_b="k", batch=True).name, ExactConfig(small=True, parts=3).name
('f32-f32-kk-exact-b', 'f32-f32-kn-exact-64x64-p3')
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from collections.abc import Callable
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.cp_async_mainloop import BlocksOfK, TileStore
from cute_dialect.kernels.gemm.epilogue import Addends, Epilogue
from cute_dialect.kernels.gemm.epilogue_emit import Fused
from cute_dialect.kernels.gemm.mainloop import Shared
from cute_dialect.kernels.gemm.operands import PLACES, check_extents, count_of, layouts_of, of_matrix, places_of
from cute_dialect.kernels.sgemm import RUNGS, Product, Rung, multiply_stages
from cute_dialect.kernels.sgemm_pipelined import Slots, load_maps, multiply_ahead
from cute_dialect.kernels.traced_text import printed
from cute_dialect.lang import utils

__all__ = ["SMALL", "THREADS", "TILE", "ExactConfig", "compute_tile", "exact_gemm_text", "launch"]

_FAST, _ANY = RUNGS["pipelined"], RUNGS["warptile"]
SMALL = Rung(
    "4 warps have tiles of 32 x 32, their lanes 8 x 4 elements; six stages in flight by cp.async",
    (64, 64, 16), 128, "((4,2),(8,2),1):((8,64),(1,32),0)", ("(4,2,8):(1,32,4)", "(8,2,4):(4,32,1)"),
    "(64,16,6):(16,1,1024)", 4, True, 6,
)  # fmt: skip
"""The kernel for few tiles."""
TILE, THREADS = _ANY.tile, _ANY.threads
"""The tile of a block, and its threads, where matrices are of any strides."""


class ExactConfig(NamedTuple):
    """The configuration of a kernel.

    ``major_a``: ``k`` or ``m``, the contiguous mode of A, ``major_b``: ``k`` or ``n``; ``batch``: A, B and C have a
    third mode, of matrices; that of A or B may be 1, for all; ``epilogue``: what becomes of the sums;
    ``array``: of a ``batch``, whose matrices lie anywhere (:func:`~cute_dialect.kernels.gemm.operands.places_of`);
    ``small``: a block has a tile of 64 x 64, else of 128 x 128; ``parts``: blocks that share the K of a ``small`` tile,
    whose launch takes a workspace of :meth:`workspace` behind C.
    """

    major_a: str = "k"
    major_b: str = "n"
    batch: bool = False
    epilogue: Epilogue = Epilogue()
    array: bool = False
    small: bool = False
    parts: int = 1

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of a block."""
        return (SMALL if self.small else _FAST).tile[:2]

    def workspace(self, m: int, n: int, matrices: int = 1) -> tuple[int, int]:
        """Return floats and counters that the blocks of a problem share; none unless they share K."""
        if self.parts == 1:
            return 0, 0
        tiles = -(-m // self.tile[0]) * -(-n // self.tile[1]) * matrices
        return tiles * self.parts * self.tile[0] * self.tile[1], tiles

    def check(self) -> None:
        """Raise ValueError unless there is such a kernel."""
        if self.parts < 1 or (self.parts > 1 and not self.small):
            raise ValueError(f"expected small tiles where blocks share K, got {self.parts} parts")
        self.epilogue.check()

    @property
    def name(self) -> str:
        """Names the kernel."""
        more = "-b" * self.batch + "-v" * self.array + (f"-{self.epilogue.name}" if self.epilogue.active else "")
        more = "-64x64" * self.small + f"-p{self.parts}" * (self.parts > 1) + more
        return f"f32-f32-{self.major_a}{self.major_b}-exact{more}"


DEFAULT = ExactConfig()


@cute.jit
def launch(
    A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, workspace: cute.Tensor | None = None,
    counters: cute.Tensor | None = None, source: cute.Tensor | None = None, bias: cute.Tensor | None = None,
    alpha: cute.Float32 | None = None, beta: cute.Float32 | None = None, operands: Any = None,
    places: cute.Tensor | None = None,
    config: cute.Constexpr[Any] = DEFAULT,
):  # fmt: skip
    """Launch a block a tile of C, or a part of its K; behind C stands what blocks share, then the arguments of the
    epilogue.
    """
    for x in (A, B, C):
        if x.element_type is not cute.Float32:
            raise TypeError(f"expected matrices of Float32, got {x}")
    if C.leading_dim == 0:
        raise ValueError(f"expected C with contiguous rows, got {C}")
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
    loads: Any, C: cute.Tensor, raster: utils.GroupedRaster, addends: Addends, places: Any,
    config: cute.Constexpr[Any],
):  # fmt: skip
    """Compute a tile of C; TMA brings those of A and B."""
    thread, _, _ = cute.arch.thread_idx()
    row, column, *matrix = raster.place(cute.arch.block_idx().x)
    _, _, C, addends = of_matrix(None, None, C, addends, matrix, places)
    product = Product(_FAST, C, row, column, thread)
    slots = Slots(loads, _FAST.tile, _FAST.stages, row, column, *[places_of(places, i)[:2] for i in matrix])
    multiply_ahead(slots, product.mma, product.acc, thread)
    # The sums in registers of their own: a store of 128 bits wants four in a row, the FMAs want free choice.
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
    """Compute a tile of C, of matrices of any strides."""
    row, column, *matrix = raster.place(cute.arch.block_idx().x)
    A, B, C, addends = of_matrix(A, B, C, addends, matrix, places)
    compute_tile(config, A, B, C, addends, (row, column), matrix[0] if matrix else None)


@cute.kernel(name="gemm_small_v", min_blocks=3)
def exact_small_v(
    A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, raster: utils.GroupedRaster, addends: Addends, places: Any,
    shared: Shared, config: cute.Constexpr[Any],
):  # fmt: skip
    """Compute a small tile of C, or a part of its K, of matrices of whole vectors of 16 bytes."""
    _compute_small(config, A, B, C, raster, addends, places, shared, vectors=True)


@cute.kernel(name="gemm_small", min_blocks=3)
def exact_small(
    A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, raster: utils.GroupedRaster, addends: Addends, places: Any,
    shared: Shared, config: cute.Constexpr[Any],
):  # fmt: skip
    """Compute a small tile of C, or a part of its K, of matrices of any strides."""
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
    """Compute the tile in row and column ``where``, of :data:`TILE`.

    ``matrix``: of a batch, for the epilogue; ``seen``: gives the places of elements that the epilogue sees, of those in
    C, where they differ; ``vectors``: A, along K, and B, along N, are copied 16 bytes at once.
    """
    k_fast = A.leading_dim == 1, B.leading_dim == 1
    product = multiply_stages(A, cute.select(B, [1, 0]), C, _ANY, place=where, k_fast=k_fast, vectors=vectors)
    _fuse(config, addends, product, product.acc, matrix, seen)
    product.store(product.acc)


def _fuse(
    config: ExactConfig, addends: Addends, product: Product, sums: Any, matrix: Any,
    seen: Callable[[Any], Any] | None = None,
) -> None:  # fmt: skip
    """Apply the epilogue to this thread's sums."""
    if config.epilogue.active:
        tile = cute.local_tile(
            cute.make_identity_tensor(product.mC.shape), product.rung.tile[:2], (product.row, product.column)
        )
        fused = Fused(config.epilogue, addends)
        ids = product.part.partition_C(tile)
        fused.apply_each(sums, ids if seen is None else seen(ids), matrix)


@printed
def exact_gemm_text(config: ExactConfig | None = None) -> cute.Compiled:
    """Return kernels and host function as text: ``launch(A, B, C)``, then the arguments of the epilogue."""
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
