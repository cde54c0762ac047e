"""How the operands of the generator of the Hopper GEMM for few rows lie in shared memory, and how TMA brings them."""

from __future__ import annotations

from cute_dialect.kernels.gemm.config import BITS, EVICT_FIRST, GemmConfig
from cute_dialect.kernels.values import Value

__all__ = ["BITS", "EVICT_FIRST", "Operand"]


class Operand:
    """A or B: how its tile lies in shared memory, and how TMA brings it there.

    K-major: rows of 128 bytes of K.  Otherwise blocks of 64 rows (128 bytes), each of all K.  A tile comes in
    ``slices``, the part of one block of the cluster; with ``live`` (K-major), only so many of its rows come.
    """

    def __init__(self, c: GemmConfig, rows: int, slices: int, major: str, *, live: int = 0, l2: int = 256):
        k, stages = c.tile[2], c.stages
        self.k_major = major == "k"
        self.batch = c.batch
        self.rows, self.k, self.slices = rows, k, slices
        size, part = rows * k, live or rows // slices
        self.part = part
        if self.k_major:
            tile, step, parts = f"({rows},{k},{stages}):({k},1,{size})", "", f"({part},{slices},{k},{stages})"
            parts += f":({k},{part * k},1,{size})"
            self.where = f"({part},{k}):(1@1,1@0)"
            self.tile_layout = f"({part},{k}):({k},1)"
            box = (k, part)
        else:
            blocks = f"(64,{rows // 64})" if rows > 64 else "64"
            step = f"(1,{64 * k})" if rows > 64 else "1"
            tile = f"({blocks},{k},{stages}):({step},64,{size})"
            inner, inner_step = (f"(64,{part // 64})", f"(1,{64 * k})") if part > 64 else ("64", "1")
            parts = f"({inner},{slices},{k},{stages}):({inner_step},{part * k},64,{size})"
            basis = "(1@0,64@0)" if part > 64 else "1@0"
            self.where = f"({inner},{k}):({basis},1@1)"
            self.tile_layout = f"({inner},{k}):({inner_step},64)"
            box = (64, k)
        self.smem = f'!cute.memref<{c.element}, smem, align<1024>, S<3,4,3>, "{tile}">'
        self.parts = parts
        if c.batch:
            box = (*box, 1)
            self.where = one_more(self.where, "1@2")
            self.tile_layout = one_more(self.tile_layout, "0")
        extents = ", ".join(map(str, box))
        self.atom = f"!cute_nvgpu.atom.tma_load<{c.element}, box = ({extents}), swizzle = 128, l2 = {l2}>"
        d = f"?{{div={128 // c.bits}}}"
        strides = f"{d},1" if self.k_major else f"1,{d}"
        shape = "(?,?)"
        if c.batch:
            strides, shape = strides + f",{d}", "(?,?,?)"
        self.matrix = f'!cute.memref<{c.element}, gmem, align<16>, "{shape}:({strides})">'

    def coordinates(self, k: Value, row: Value, matrix: Value | None) -> tuple[Value, ...]:
        """Return of the first element, TMA's innermost dimension first."""
        inner = (k, row) if self.k_major else (row, k)
        return (*inner, matrix) if matrix is not None else inner


def one_more(layout: str, stride: str) -> str:
    """Return a flat layout with one more mode, of extent 1."""
    shape, strides = layout.split(":")
    return f"{shape[:-1]},1):{strides[:-1]},{stride})"
