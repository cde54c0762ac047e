"""Copies between rows with any alignment and rows that TMA can access.

``launch`` copies one or two matrices to aligned rows.

A thread produces 16 bytes of a row: it reads five aligned words and shifts them by ``prmt``. Bytes past the end of a
row are zero. Elements are treated as bytes, so their type does not matter.

    launch(x, y, length, pitch, step)              # x: all bytes, y (lines, words, matrices) of words
    launch(x, y, …, u, v, …)                       # two matrices in one launch

``length`` is the number of bytes of a row, ``pitch`` the distance between rows, and ``step`` that between matrices.

``launch_dense`` copies aligned rows of 16-bit elements to rows without gaps. A thread writes 16 bytes, which may belong
to several rows.

    launch_dense(x, y)                             # x (columns, rows), y: all elements
"""

# pyright: basic, reportOptionalMemberAccess=false, reportArgumentType=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.traced_text import printed

_THREADS = 256
_PIECE = 8
"""Elements that a thread writes."""


class Lines(NamedTuple):
    """One or more matrices to copy: their bytes, the target, and the sizes of the module's docstring."""

    bytes: Any
    target: Any
    length: Any
    pitch: Any
    step: Any


@cute.jit
def launch(
    X: cute.Tensor, Y: cute.Tensor, length: cute.Int32, pitch: cute.Int64, step: cute.Int64,
    U: cute.Tensor | None = None, V: cute.Tensor | None = None, second_length: cute.Int32 | None = None,
    second_pitch: cute.Int64 | None = None, second_step: cute.Int64 | None = None,
):  # fmt: skip
    """Launch one thread per 16 bytes of Y, and of V."""
    found, pieces = [Lines(X, Y, length, pitch, step)], []
    if U is not None:
        found.append(Lines(U, V, second_length, second_pitch, second_step))
    for x in found:
        assert x.length <= x.target.shape[1] * 4, "rows of the copy must be at least as long as the original rows"
        pieces.append(x.target.shape[0] * (x.target.shape[1] // 4) * x.target.shape[2])
    blocks = [cute.ceil_div(n, _THREADS) for n in pieces]
    pad(found, pieces, blocks[0]).launch(grid=sum(blocks[1:], blocks[0]), block=_THREADS)


@cute.kernel(min_blocks=4)
def pad(found: Any, pieces: Any, blocks: cute.Int32):
    """Copy 16 bytes per thread. Blocks before ``blocks`` copy the first matrix, the others the second one."""
    block = cute.arch.block_idx().x
    if len(found) == 1 or block < blocks:
        _copy(found[0], pieces[0], block)
    else:
        _copy(found[1], pieces[1], block - blocks)


def _copy(of: Lines, pieces: Any, block: Any) -> None:
    """Copy this thread's 16 bytes."""
    piece = block * _THREADS + cute.arch.thread_idx().x
    if piece < pieces:
        x, y = of.bytes, of.target
        a_line = y.shape[1] // 4
        line, at = piece // a_line, piece % a_line
        line, matrix = line % y.shape[0], line // y.shape[0]
        end = cute.Int64(cute.size(x))
        start = line * of.pitch + matrix * of.step + at * 16
        words, bytes = cute.recast_ptr(x.iterator, dtype=cute.Uint32), x.iterator
        first = start // 4
        held = cute.make_rmem_tensor(5, cute.Uint32)
        if first * 4 + 20 <= end:
            for i in cute.range_constexpr(5):
                held[i] = cute.make_tensor(words + (first + i), cute.make_layout(1))[0]
        else:  # the last words are read byte by byte
            for i in cute.range_constexpr(5):
                word = cute.Uint32(0)
                for b in cute.range_constexpr(4):
                    place = (first + i) * 4 + b
                    if place < end:
                        one = cute.make_tensor(bytes + place, cute.make_layout(1))[0].to(cute.Uint32)
                        word = word | (one << (8 * b))
                held[i] = word
        # Selects four bytes of two words, from the first one's offset on.
        order = cute.Uint32(0x3210) + cute.Uint32(start % 4) * 0x1111
        out = cute.make_rmem_tensor(4, cute.Uint32)
        for i in cute.range_constexpr(4):
            left = 8 * (of.length - at * 16 - 4 * i)  # bits of the row from this word on
            mask = cute.where(left < 32, (cute.Uint32(1) << cute.Uint32(cute.max(left, 0) % 32)) - 1, 0xFFFFFFFF)
            out[i] = cute.arch.prmt(held[i], held[i + 1], order) & mask
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Uint32, num_bits_per_copy=128)
        target = (y[line, None, matrix].iterator + at * 4).align(16)
        cute.copy(atom, out, cute.make_tensor(target, cute.make_layout(4)))


@printed
def pad_text(matrices: int = 1) -> cute.Compiled:
    """Trace the kernel and the host function, for one or two matrices."""
    x = cute.Tensor[cute.Uint8, "?:1", "align<4>"]
    y = cute.Tensor[cute.Uint32, "(?,?,?):(?{div=4},1,?{div=4})", "align<16>"]
    sizes = cute.Int32(0), cute.Int64(0), cute.Int64(0)
    return cute.trace(launch, *(x, y, *sizes) * matrices)


@cute.jit
def launch_dense(X: cute.Tensor, Y: cute.Tensor):
    """Launch one thread per 8 elements of Y."""
    columns, rows = X.shape
    assert cute.size(Y) == columns * rows, "the copy must have as many elements as the matrix"
    pieces = cute.ceil_div(cute.size(Y), _PIECE)
    dense(X, Y, pieces).launch(grid=cute.ceil_div(pieces, _THREADS), block=_THREADS)


@cute.kernel(min_blocks=4)
def dense(X: cute.Tensor, Y: cute.Tensor, pieces: cute.Int32):
    """Copy 8 elements per thread."""
    piece = cute.arch.block_idx().x * _THREADS + cute.arch.thread_idx().x
    by, total = cute.fast_divmod_create_divisor(cute.max(X.shape[0], 1)), cute.size(Y)
    atom, one = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Y.element_type), cute.make_layout(1)
    if piece < pieces:
        held = cute.make_rmem_tensor((1, _PIECE), Y.element_type)
        for i in cute.range_constexpr(_PIECE):
            row, column = divmod(cute.min(piece * _PIECE + i, total - 1), by)
            cute.copy(atom, cute.make_tensor(X[None, row].iterator + column, one), held[None, i])
        first = Y.iterator + piece * _PIECE
        if piece * _PIECE + _PIECE <= total:
            cute.autovec_copy(held, cute.make_tensor(first.align(16), held.layout))
        else:
            for i in cute.range_constexpr(_PIECE):
                _put(first, i, piece * _PIECE + i < total, held[0, i])


def _put(first: Any, i: int, flag: Any, value: Any) -> None:
    if flag:
        cute.make_tensor(first + i, cute.make_layout(1))[0] = value


@printed
def dense_text() -> cute.Compiled:
    """Trace the kernel ``@dense`` and its host function ``@launch_dense``."""
    x = cute.Tensor[cute.Uint16, "(?,?):(1,?{div=8})", "align<16>"]
    return cute.trace(launch_dense, x, cute.Tensor[cute.Uint16, "?:1", "align<16>"])
