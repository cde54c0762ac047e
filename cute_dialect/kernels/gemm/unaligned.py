"""Fallback of a Hopper GEMM for matrices that TMA cannot read: ``mma.sync`` with any strides.

It is launched if an address or a row stride is not a multiple of 16 bytes. It is small rather than fast, so that it
adds little compile time: 256 threads compute a tile of 64 x 64, elements are copied one by one through shared memory,
and no loop is unrolled. While one block waits, other blocks of the SM run. The faster kernel for such matrices is
:mod:`cute_dialect.kernels.gemm.ampere`, which ``op.mm`` uses.

8-bit floats are converted to f16, which represents them exactly. ``mma.sync`` of 8-bit floats would need a newer PTX
version than the rest.

    kernel(…).launch(grid=…, block=…, fallback=any_gemm(A, B, C))     # in a host function
"""

# pyright: basic, reportOptionalMemberAccess=false, reportArgumentType=false

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.lang.nvgpu import warp

_ROWS, _COLUMNS, _THREADS = 64, 64, 256
_PAD = 8
"""Row padding, in floats, of the result's tile in shared memory: 64-bit stores of a half warp map to all banks once."""


def any_gemm(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor) -> Any:
    """Return the launch of :func:`gemm_any` as the ``fallback`` of another one, for ``(M,K)``, ``(N,K)``, ``(M,N)``.

    Each may have a third mode, of matrices; its extent may be 1 for A or B (broadcast).
    """
    rows, columns, *matrices = C.shape
    tiles = cute.ceil_div(rows, _ROWS) * cute.ceil_div(columns, _COLUMNS)
    for n in matrices:
        tiles = tiles * n
    return gemm_any(A, B, C).on(grid=tiles, block=_THREADS)


# Given that two blocks fit an SM, ptxas allows a thread enough registers for all its loads at once. Otherwise it
# alternates between a few loads and their stores, which takes 2.5 times as long.
@cute.kernel(min_blocks=2)
def gemm_any(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor):
    """Compute one tile of C of f16, bf16, tf32 or 8-bit floats, with an f32 accumulator."""
    kind = cute.Float16 if A.element_type.width == 8 else A.element_type
    depth = 256 // kind.width  # K of one MMA
    step = 2 * depth
    thread = cute.arch.thread_idx().x
    # This block's tile of C, and its matrix.
    tile = cute.arch.block_idx().x
    tiles_m, tiles_n = cute.ceil_div((C.shape[0], C.shape[1]), (_ROWS, _COLUMNS))
    if cute.rank(C) == 3:
        tiles = tiles_m * tiles_n
        A, B, C = (x[None, None, cute.min(tile // tiles, x.shape[2] - 1)] for x in (A, B, C))
        tile = tile % tiles
    m0, n0 = (tile % tiles_m) * _ROWS, (tile // tiles_m) * _COLUMNS

    # Tiles of A and B in shared memory, then the result. Rows are padded by 16 bytes, so that fragment reads map to all
    # banks once.
    rows = cute.make_layout((_ROWS, step), stride=(step + 128 // kind.width, 1))
    sA, sB = cute.smem_tensor(kind, rows, 16), cute.smem_tensor(kind, rows, 16)
    sums = cute.smem_tensor(cute.Float32, cute.make_layout((_ROWS, _COLUMNS), stride=(_COLUMNS + _PAD, 1)), 16)
    mma = cute.make_tiled_mma(_instruction(kind), cute.make_layout((2, 4, 1), stride=(1, 2, 0)))
    part = mma.get_slice(thread)
    of_a, of_b, of_c = part.partition_A(sA), part.partition_B(sB), part.partition_C(sums)
    acc = mma.make_fragment_C(of_c)
    acc.fill(0)
    pair = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), kind, num_bits_per_copy=32)
    for k in range(cute.ceil_div(A.shape[1], step)):
        _fetch(A, sA, m0, k * step, thread)
        _fetch(B, sB, n0, k * step, thread)
        cute.arch.sync_threads()
        for j in range(step // depth):
            a, b = of_a[None, None, j], of_b[None, None, j]
            rA, rB = mma.make_fragment_A(a), mma.make_fragment_B(b)
            cute.copy(pair, a, rA)
            cute.copy(pair, b, rB)
            cute.gemm(mma, acc, rA, rB, accumulate=True)
        cute.arch.sync_threads()
    # Store through shared memory, so that stores are coalesced.
    cute.copy(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=64), acc, of_c)
    cute.arch.sync_threads()
    for i in range(_ROWS * _COLUMNS // _THREADS):
        at = i * _THREADS + thread
        row, column = at // _COLUMNS, at % _COLUMNS
        if (m0 + row < C.shape[0]) & (n0 + column < C.shape[1]):
            C[m0 + row, n0 + column] = sums[row, column].to(C.element_type)


def _instruction(kind: Any) -> Any:
    return warp.MmaTF32Op((16, 8, 8)) if kind is cute.TFloat32 else warp.MmaF16BF16Op(kind, cute.Float32, (16, 8, 16))


def _fetch(source: Any, target: Any, first: Any, k0: Any, thread: Any) -> None:
    """Copy a tile of A or B, one element at a time, along its contiguous mode, with zeros out of bounds."""
    depth, kind = target.shape[1], target.element_type
    extent, K = source.shape
    for i in range(_ROWS * depth // _THREADS):
        at = i * _THREADS + thread
        row, k = (at % _ROWS, at // _ROWS) if source.leading_dim == 0 else (at // depth, at % depth)
        value = source[cute.min(first + row, extent - 1), cute.min(k0 + k, K - 1)].to(kind)
        target[row, k] = value if (first + row < extent) & (k0 + k < K) else kind(0)
