"""f32 operands split into two tf32 terms, for a GEMM in three passes: ``A B ~ lo(A) hi(B) + hi(A) lo(B) + hi(A)
hi(B)``.

In ``x = hi + lo + error``, ``hi`` is x rounded to the 10 mantissa bits of tf32 and ``lo`` the difference, rounded in
the same way. The error is below 2^-23 of x. A matrix with K columns becomes one with three slices of K, which the
Hopper GEMM multiplies as any tf32 matrix. The small terms are accumulated before the large ones.

    A:  lo | hi | hi
    B:  hi | lo | hi          each of ``padded(K)`` columns, zero past K

    launch(x, out, order="a")                                    # x (rows, K), out (rows, 3 * padded(K)), or batches

Infinities have no ``lo``, which would be NaN. An infinity times a number that tf32 represents exactly is NaN.
"""

# pyright: basic, reportOptionalMemberAccess=false, reportArgumentType=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.kernel_names import differing
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.lang import utils

ORDERS = {"a": (1, 0, 0), "b": (0, 1, 0)}
"""Operand -> its three slices, 0 for hi and 1 for lo."""

_TILE, _THREADS = 64, 256


class PartsConfig(NamedTuple):
    """Configuration of the split.

    >>> PartsConfig("b", row_major=False).name
    'split-b-column'
    """

    order: str = "a"  # slices of "a" or of "b"
    row_major: bool = True  # the operand has contiguous rows
    batch: bool = False  # the operand has a batch mode

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return f"split-{self.order}-{'row' if self.row_major else 'column'}{differing(self, {'batch': '-b'})}"


def padded(k: int) -> int:
    """Return the columns of a slice: K rounded up to 16 bytes.

    >>> padded(1), padded(64)
    (4, 64)
    """
    return -(-k // 4) * 4


@cute.jit
def launch(X: cute.Tensor, Y: cute.Tensor, order: cute.Constexpr[str] = "a"):
    """Launch one block per 64 x 64 elements of a slice of Y."""
    if X.element_type is not cute.Float32 or Y.element_type is not cute.Float32:
        raise TypeError(f"split_tf32: X and Y must be of Float32, got {X} and {Y}")
    if Y.leading_dim != 1:
        raise ValueError(f"split_tf32: Y must have contiguous rows, got {Y}")
    columns = Y.shape[1] // 3
    assert X.shape[0] == Y.shape[0], "X and Y must have the same number of rows"
    assert columns * 3 == Y.shape[1], "the columns of Y must be a multiple of three"
    assert columns >= X.shape[1], "a third of the columns of Y must be at least the columns of X"
    matrices = None
    if cute.rank(X) == 3:
        matrices = Y.shape[2]
        assert X.shape[2] == matrices, "X and Y must have the same number of matrices"
    tiles = utils.GroupedRaster(cute.ceil_div((X.shape[0], columns), (_TILE, _TILE)), matrices=matrices)
    split(X, Y, tiles, order).launch(grid=tiles.count(), block=_THREADS)


@cute.kernel(min_blocks=4)
def split(X: Any, Y: Any, tiles: utils.GroupedRaster, order: cute.Constexpr[str]):
    """Split a tile. It goes through shared memory, so that loads and stores are coalesced."""
    row, column, *matrix = tiles.place(cute.arch.block_idx().x)
    X, Y = (x[None, None, number] for x in (X, Y) for number in matrix) if matrix else (X, Y)
    thread, part = cute.arch.thread_idx().x, Y.shape[1] // 3
    rows, columns = X.shape
    held = cute.smem_tensor(cute.Float32, cute.make_layout((_TILE, _TILE), stride=(_TILE + 1, 1)), 16)
    for i in cute.range_constexpr(_TILE * _TILE // _THREADS):
        at = i * _THREADS + thread
        r, k = (at % _TILE, at // _TILE) if X.leading_dim == 0 else (at // _TILE, at % _TILE)
        inside = (row * _TILE + r < rows) & (column * _TILE + k < columns)
        held[r, k] = X[row * _TILE + r, column * _TILE + k] if inside else cute.Float32(0)
    cute.arch.sync_threads()
    for i in cute.range_constexpr(_TILE * _TILE // _THREADS):
        at = i * _THREADS + thread
        r, k = at // _TILE, at % _TILE
        to, where = column * _TILE + k, row * _TILE + r
        if (where < rows) & (to < part):
            parts = parts_of(held[r, k])
            for j, which in enumerate(ORDERS[order]):
                Y[where, to + part * j] = parts[which]


def parts_of(x: Any) -> tuple[Any, Any]:
    """Return hi and lo of an f32, both as f32."""
    hi = x.to(cute.TFloat32).to(cute.Float32)
    bits, limit = x.bitcast(cute.Int32) & 0x7FFFFFFF, 0x7F800000
    # Values near the largest f32 would round to infinity, so they are truncated. Infinities and NaNs have no lo.
    large = (bits < limit) & ((hi.bitcast(cute.Int32) & 0x7FFFFFFF) == limit)
    hi = (x.bitcast(cute.Int32) & -8192).bitcast(cute.Float32) if large else hi
    return hi, (x - hi if bits < limit else cute.Float32(0))


@printed
def split_text(config: PartsConfig) -> cute.Compiled:
    """Trace the kernel and the host function ``launch(X, Y)``."""
    more = ",?" if config.batch else ""
    by_rows = f"(?,?{more}):(?,1{more})"
    layouts = by_rows if config.row_major else f"(?,?{more}):(1,?{more})", by_rows
    x, y = (cute.Tensor[cute.Float32, layout] for layout in layouts)
    return cute.trace(launch, x, y, order=config.order)
