"""The GEMM that a Hopper GEMM falls back to where TMA cannot read a matrix: SM80's ``mma.sync``, any strides.

A file that has it launches it where an address or a row is no multiple of 16 bytes.  It is small rather than fast, so
that the file compiles nearly as quickly as without it: 256 threads compute a tile of 64 x 64, elements come one by one
(what no wider access could read) through shared memory, other blocks of the SM run while one waits, and every loop
stays one.  For speed on such matrices there is :mod:`cute_dialect.kernels.gemm_sm80`, which ``op.gemm.mm`` takes.

8-bit floats become f16 on the way, which holds all their values: ``mma.sync`` of 8-bit floats needs a newer PTX than
the rest of the file.
"""

from __future__ import annotations

from collections.abc import Callable

from cute_dialect.kernels.gemm_sm90_config import BITS, GemmConfig
from cute_dialect.kernels.script import Script
from cute_dialect.kernels.values import Value

__all__ = ["FALLBACK_NOTE", "emit_fallback"]

FALLBACK_NOTE = """\
// TMA wants addresses and rows of whole 16 bytes.  For other matrices the launch falls back to @launch_any: its kernel
// multiplies by mma.sync and reads element by element."""
"""The head of a file with a fallback."""

_ROWS, _COLUMNS, _THREADS = 64, 64, 256
_PAD = 8
"""Floats between rows of the result's tile in shared memory: the 64-bit stores of a half warp hit all banks once."""


def emit_fallback(b: Script, c: GemmConfig, checks: Callable[[Value, Value, Value], list[Value]]) -> None:
    """Emit kernel ``@gemm_any`` and host function ``@launch_any`` (A, B, C) for the types, majors and batches of ``c``.

    ``checks(A, B, C)``: emits the host function's checks of shapes, gives M, N, K and a batch's number of matrices.
    """
    _Fallback(b, c).emit(checks)


class _Fallback:
    def __init__(self, b: Script, c: GemmConfig):
        self.b, self.c = b, c
        self.e = {"f8E4M3FN": "f16", "f8E5M2": "f16"}.get(c.element, c.element)
        depth = 256 // BITS[self.e]  # K of one instruction
        self.k = 2 * depth
        self.word = f"i{BITS[self.e]}"
        self.atom = f"!cute_nvgpu.atom.mma_sync<16x8x{depth}, (f32,{self.e},{self.e},f32)>"
        self.mma = f'!cute.tiled_mma<{self.atom}, atom_layout_MNK = <"(2,4,1):(1,2,0)">>'
        row = self.k + 128 // BITS[self.e]  # 16 bytes apart: reads of fragments hit all banks once
        self.tile = f"({_ROWS},{self.k}):({row},1)"
        self.matrices = {
            "A": self._matrix(c.element, k_major=c.major_a == "k"),
            "B": self._matrix(c.element, k_major=c.major_b == "k"),
            "C": self._matrix(c.output, k_major=True),
        }
        for name, t in (("mma_any", self.mma), *((f"{n}_any", t) for n, t in self.matrices.items())):
            b.name_type(name, t)

    def _matrix(self, element: str, *, k_major: bool) -> str:
        strides = "?,1" if k_major else "1,?"
        layout = f"(?,?,?):({strides},?)" if self.c.batch else f"(?,?):({strides})"
        return f'!cute.memref<{element}, gmem, "{layout}">'

    def emit(self, checks: Callable[[Value, Value, Value], list[Value]]) -> None:
        b = self.b
        with b.kernel("gemm_any", self.matrices, threads=_THREADS) as matrices:
            self._kernel(*matrices)
        with b.host("launch_any", self.matrices) as (x, y, z):
            rows, columns, _, *more = checks(x, y, z)
            grid = b.ceil_div(rows, _ROWS) * b.ceil_div(columns, _COLUMNS)
            for batch in more:
                grid = grid * batch
            b.launch("gemm_any", [x, y, z], grid=grid, threads=_THREADS)

    def _kernel(self, a: Value, b_: Value, c: Value) -> None:
        b = self.b
        tid = self.tid = b.let("tid", b.thread_id())
        M, K, *_ = b.extents(a)
        N = b.extents(b_)[0]
        b.say("This block's tile of C, and the matrix.")
        tile, tiles_m = b.block_id(), b.ceil_div(M, _ROWS)
        if self.c.batch:
            tiles = tiles_m * b.ceil_div(N, _COLUMNS)
            matrix = b.let("matrix", tile // tiles)
            tile = tile % tiles
            a, b_, c = (b.slice(x, None, None, matrix) for x in (a, b_, c))
        m0, n0 = b.let("m0", (tile % tiles_m) * _ROWS), b.let("n0", (tile // tiles_m) * _COLUMNS)
        b.say("Tiles of A and B in shared memory; at the end the sums.")
        smem = f'!cute.memref<{self.e}, smem, align<16>, "{self.tile}">'
        sA, sB = (b.let(f"s{x}", b.alloc_smem(smem)) for x in "AB")
        sums = f'!cute.memref<f32, smem, align<16>, "({_ROWS},{_COLUMNS}):({_COLUMNS + _PAD},1)">'
        sC = b.let("sums", b.alloc_smem(sums))
        mma = b.let("tiled_mma", b.op("cute.make_tiled_mma", b.atom(self.atom), type=self.mma))
        tA, tB, tC = (b.partition(n, mma, x, tid) for n, x in (("A", sA), ("B", sB), ("C", sC)))
        acc = b.let("acc", b.op("cute.tiled.mma.make_fragment_C", mma, tC))
        b.do("cute.clear", acc)

        sources = [
            (self._words(matrix), self._words(stages), first, extent, major)
            for matrix, stages, first, extent, major in (
                (a, sA, m0, M, self.c.major_a), (b_, sB, n0, N, self.c.major_b)
            )
        ]  # fmt: skip

        pair = b.atom(f"!cute_nvgpu.atom.universal_copy<{self.e}, 32 b>")
        with b.for_(0, b.ceil_div(K, self.k)) as loop:
            for source in sources:
                self._fetch(*source, loop.iv * self.k, K)
            b.barrier()
            with b.for_(0, 2) as step:
                x, y = (b.slice(t, None, None, step.iv) for t in (tA, tB))
                fA, fB = (b.op(f"cute.tiled.mma.make_fragment_{n}", mma, t) for n, t in (("A", x), ("B", y)))
                b.copy(pair, x, fA)
                b.copy(pair, y, fB)
                b.gemm(mma, acc, fA, fB, acc)
            b.barrier()
        b.say("Through shared memory, so that neighbours write neighbours.")
        b.copy(b.atom("!cute_nvgpu.atom.universal_copy<f32, 64 b>"), acc, tC)
        b.barrier()
        with b.for_(0, _ROWS * _COLUMNS // _THREADS) as loop:
            at = loop.iv * _THREADS + tid
            m, n = at // _COLUMNS, at % _COLUMNS
            with b.if_(b.binary("and", m0 + m < M, n0 + n < N)):
                value = b.load(sC, (m, n))
                if self.c.output != "f32":
                    value = b.op("arith.truncf", value, type=self.c.output)
                b.store(c, (m0 + m, n0 + n), value)

    def _words(self, tensor: Value) -> Value:
        """Return the tensor's elements as integers."""
        from cute_dialect.memory_types import MemRefType
        from cute_dialect.ops.tensors import recast_type

        t = tensor.type
        assert isinstance(t, MemRefType)
        word = self.b.type(f"i{BITS[str(t.element)]}")
        return self.b.op("cute.recast_tensor", tensor, type=recast_type(t, word))

    def _fetch(
        self, source: Value, target: Value, first: Value, extent: Value, major: str, k0: Value, K: Value
    ) -> None:
        """Fetch a tile of A or B, one element at a time; zeros outside of the matrix."""
        b = self.b
        with b.for_(0, _ROWS * self.k // _THREADS) as loop:
            at = loop.iv * _THREADS + self.tid
            row, k = (at // self.k, at % self.k) if major == "k" else (at % _ROWS, at // _ROWS)
            m, depth = first + row, k0 + k
            inside = b.binary("and", m < extent, depth < K)
            value = b.load(source, (b.minimum(m, extent - 1), b.minimum(depth, K - 1)))
            value = b.select(inside, self._widened(value), 0)
            b.store(target, (row, k), value)

    def _widened(self, value: Value) -> Value:
        """Return the bits of an 8-bit float as those of the f16 of the same value.

        Below the sign are exponent and mantissa.  f8E5M2 is the upper half of an f16.  f8E4M3FN has one bit of exponent
        less: as an f16 it is 2^8 too small (7 and 15 are the biases); its only NaN has all bits set.
        """
        b = self.b
        if self.c.element not in ("f8E4M3FN", "f8E5M2"):
            return value
        wide = b.op("arith.extui", value, type="i16")
        if self.c.element == "f8E5M2":
            return wide << 8
        rest = wide & 0x7F
        bits = ((wide & 0x80) << 8) | (rest << 7)
        small = b.op("arith.bitcast", bits, type="f16")
        scaled = b.op("arith.bitcast", small * b.constant(256.0, "f16"), type="i16")
        return b.select(rest.eq(0x7F), 0x7E00, scaled)
