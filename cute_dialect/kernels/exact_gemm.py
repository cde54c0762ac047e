"""GEMM of f32 on plain FMAs: ``C[M,N] = A[M,K] * B[N,K]^T``, each sum in f32, each product as exact as an FMA is.

Any strides with a contiguous mode, any extents, batches, the epilogues of the Hopper GEMM
(:mod:`cute_dialect.kernels.gemm.epilogue`).  Where A is contiguous along K, B along N, and TMA can read both, the
kernel is the last rung of the ladder (:mod:`cute_dialect.kernels.sgemm`); else elements come one by one, by
``cp.async``, which also transposes.

    launch(a, b, c)                                              # arrays; compiled at the first call of a kind

>>> ExactConfig(major_b="k", batch=True).name
'f32-f32-kk-exact-b'
"""

# Operators and attributes are those of values in a trace.
# pyright: basic, reportOptionalMemberAccess=false

from collections.abc import Callable
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.gemm.epilogue import Addends, Epilogue
from cute_dialect.kernels.gemm.fused import Fused
from cute_dialect.kernels.gemm.operands import PLACES, check_extents, count_of, layouts_of, of_matrix, places_of
from cute_dialect.kernels.printed import printed
from cute_dialect.kernels.sgemm import RUNGS, Product, multiply_stages
from cute_dialect.kernels.sgemm_pipelined import Slots, load_maps, multiply_ahead
from cute_dialect.lang import utils

__all__ = ["THREADS", "TILE", "ExactConfig", "compute_tile", "exact_gemm_text", "launch"]

_FAST, _ANY = RUNGS["pipelined"], RUNGS["warptile"]
TILE, THREADS = _ANY.tile, _ANY.threads
"""The tile of a block, and its threads, where matrices are of any strides."""


class ExactConfig(NamedTuple):
    """The configuration of a kernel.

    ``major_a``: ``k`` or ``m``, the contiguous mode of A, ``major_b``: ``k`` or ``n``; ``batch``: A, B and C have a
    third mode, of matrices; that of A or B may be 1, for all; ``epilogue``: what becomes of the sums;
    ``array``: of a ``batch``, whose matrices lie anywhere (:func:`~cute_dialect.kernels.gemm.operands.places_of`).
    """

    major_a: str = "k"
    major_b: str = "n"
    batch: bool = False
    epilogue: Epilogue = Epilogue()
    array: bool = False

    @property
    def name(self) -> str:
        """Names the kernel."""
        more = "-b" * self.batch + "-v" * self.array + (f"-{self.epilogue.name}" if self.epilogue.active else "")
        return f"f32-f32-{self.major_a}{self.major_b}-exact{more}"


DEFAULT = ExactConfig()


@cute.jit
def launch(
    A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, source: cute.Tensor | None = None, bias: cute.Tensor | None = None,
    alpha: cute.Float32 | None = None, beta: cute.Float32 | None = None, operands: Any = None,
    places: cute.Tensor | None = None,
    config: cute.Constexpr[Any] = DEFAULT,
):  # fmt: skip
    """Launch a block a tile of C; what stands behind C are the arguments of the epilogue."""
    for x in (A, B, C):
        if x.element_type is not cute.Float32:
            raise TypeError(f"expected matrices of Float32, got {x}")
    if C.leading_dim == 0:
        raise ValueError(f"expected C with contiguous rows, got {C}")
    matrices = check_extents(A, B, C, places=places)
    addends = Addends(source, bias, alpha, beta, operands)
    config.epilogue.check_shapes(C, addends, pairs=False, array=config.array, groups=count_of(places))
    (bm, bn, _) = _FAST.tile
    raster = utils.GroupedRaster(cute.ceil_div(C.shape[:2], (bm, bn)), matrices=matrices)
    other, sizes = exact_any(A, B, C, raster, addends, places, config), {"grid": raster.count(), "block": _ANY.threads}
    if (A.leading_dim, B.leading_dim) == (1, 0):
        by_rows, by_columns = layouts_of(batch=config.batch, array=config.array, div=4)
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
    c.epilogue.check()
    rows, columns = layouts_of(batch=c.batch, array=c.array)

    def matrix(row_major: bool) -> Any:
        return cute.Tensor[cute.Float32, rows if row_major else columns]

    behind = c.epilogue.arguments("f32", batch=c.batch, vectors=False, array=c.array)
    behind |= {"places": PLACES} if c.array else {}
    return cute.trace(launch, matrix(c.major_a == "k"), matrix(c.major_b == "k"), matrix(True), **behind, config=c)
