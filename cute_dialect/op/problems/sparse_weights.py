"""Weights with 2:4 sparsity: the compressed form, checks of arguments, and the kernel of a GEMM.

>>> choose_config(4096, 4096, "f16").name, choose_config(8, 4096, "bf16").base.tile
('sparse-f16-256x128-q3-c2-d-b1', (128, 16, 64))
"""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.kernels.gemm.sparse import ROWS, STEP, THREADS, SparseConfig
from cute_dialect.op.arrays.dtypes import is_of_torch
from cute_dialect.op.errors import DtypeError, ShapeError, UnsupportedError
from cute_dialect.op.keywords import type_name
from cute_dialect.op.problems.compressed_weights import SparseWeight

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.signature_types import Array

ELEMENTS = ("f16", "bf16")
"""Supported types."""


def metadata_shape(n: int, k: int) -> tuple[int, int]:
    """Return the shape of the metadata of (N, K) weights.

    >>> metadata_shape(72, 144)
    (2, 512)
    """
    return -(-n // ROWS), -(-k // STEP) * 2 * THREADS


def check_problem(call: str, n: int, k: int, name: str = "w") -> None:
    """Raise ShapeError or UnsupportedError for weights that cannot be compressed."""
    if n < 1 or k < 1 or n % 8 or k % 16:
        raise ShapeError(f"{call}: {name} has shape {(n, k)}; pass a multiple of 8 rows and of 16 columns")
    if n * k >= 1 << 33 or n >= 1 << 30 or k >= 1 << 24:
        raise UnsupportedError(f"{call}: {name} has shape {(n, k)}, which exceeds the limits; split it by rows")


def check_sparse(call: str, w: object) -> None:
    """Raise DtypeError or ShapeError for an argument that is not the result of ``compress_2_4``."""
    if not isinstance(w, SparseWeight):
        raise DtypeError(f"{call}: w is of type {type_name(w)}; pass the result of op.compress_2_4")
    check_problem(call, *w.shape)
    wanted = metadata_shape(*w.shape)
    if tuple(w.metadata.shape) != wanted:
        raise ShapeError(
            f"{call}: w.metadata has shape {tuple(w.metadata.shape)}, but weights of {w.shape} need {wanted}; pass the "
            "compressed weights unchanged"
        )


_VALID = 0x44444444
"""Metadata that keep the first two elements of each group."""


def metadata_by_lanes(words: Array, n: int, k: int) -> Array:
    """Return the metadata of (N, K) weights in the order of the lanes of tensor memory, (128 ceil(N / 128), words).

    A word holds 16 elements along K of two rows, which are 8 apart. The words of 64 rows and 64 of K are in the order
    of the threads of ``wgmma``: four along K for each of 8 rows, for each of four warps. A row of the result has four
    words for 128 of K, one for each step of 32: of 16 lanes, the first 8 have those of its first half.

    Args:
        words: the metadata of ``compress_2_4``.
        n, k: shape of the weights.

    >>> import numpy as np
    >>> words = np.zeros((2, 256), np.int32)
    >>> words[0, 128 + 7] = 1  # the second 64 of K, row 1, the last 16 elements
    >>> np.argwhere(metadata_by_lanes(words, 128, 128)).tolist()
    [[9, 3]]
    """
    blocks, tiles = metadata_shape(n, k)[0], -(-k // STEP)
    wide = -(-blocks // 2) * 2
    if wide > blocks:  # Rows of no weights need valid metadata, too.
        shape = (wide, words.shape[1])
        padded = words.new_full(shape, _VALID) if is_of_torch(words) else np.full_like(words, _VALID, shape=shape)
        padded[:blocks] = words
        words = padded
    # Blocks of 64 rows, steps of 128 along K, of 64, warps, rows of a warp, steps of 32 and of 16 along K.
    split = words.reshape(wide, tiles, 2, 4, 8, 2, 2)
    turn = getattr(split, "permute" if is_of_torch(words) else "transpose")
    return turn((0, 3, 6, 4, 1, 2, 5)).reshape(wide * ROWS, tiles * 4)


_TILES = (
    # rows of w, rows of x, stages, staging buffers
    (128, 16, 4, 2),
    (128, 32, 4, 2),
    (128, 64, 4, 2),
    (128, 128, 3, 2),
    (256, 128, 3, 1),
)
"""Tiles by their area. On an H200, 4096 x 4096 x 4096 takes 127 us with 256 x 128, 155 with 128 x 128 and 168 with
128 x 256, which leave room for only two stages."""


def choose_config(m: int, n: int, element: str, *, has_bias: bool = False, sms: int = 132) -> SparseConfig:
    """Return the configuration for ``m`` rows of x and ``n`` rows of weights.

    The largest tile whose last wave is not emptier than that of smaller ones takes the least time.
    """
    best, least = _TILES[0], float("inf")
    for tile in _TILES:
        rows, columns, *_ = tile
        waves = -(-(-(-n // rows) * -(-m // columns)) // sms)
        # Small tiles read more bytes per operation.
        time = waves * (rows * columns + 64 * (rows + columns))
        if time <= least:
            best, least = tile, time
    rows, columns, stages, buffers = best
    cluster = 2 if -(-n // rows) >= 2 and columns >= 64 else 1
    base = GemmConfig(
        element,
        element,
        tile=(rows, columns, STEP // 2),
        stages=stages,
        buffers=buffers,
        major_c="m",
        cluster_m=cluster,
        sms=sms,
        epilogue=Epilogue(bias="m" if has_bias else "", bias_type=element),
    )
    return SparseConfig(base)
