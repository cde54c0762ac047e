"""Copy of rows with any alignment to rows that TMA can read, for one or two matrices in one launch.

A thread produces 16 bytes of a row: it reads five aligned words and shifts them by ``prmt``. Bytes past the end of a
row are zero. Elements are treated as bytes, so their type does not matter.

    launch(x, y, length, pitch, step)              # x: all bytes, y (lines, words, matrices) of words
    launch(x, y, …, u, v, …)                       # two matrices in one launch

``length`` is the number of bytes of a row, ``pitch`` the distance between rows, and ``step`` that between matrices.
"""

# pyright: basic, reportOptionalMemberAccess=false, reportArgumentType=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.traced_text import printed

__all__ = ["Lines", "launch", "pad_text"]

_THREADS = 256


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
