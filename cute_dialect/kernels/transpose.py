"""Matrix transpose ``B = A^T`` through swizzled shared memory, as text.

Two kernels and the host function that launches them.  ``@transpose_v`` takes matrices whose rows are contiguous and
whose pointers and row strides are multiples of 16 bytes: a thread reads a square of ``v`` vectors of ``v`` elements
(``v`` elements are 16 bytes), exchanges rows and columns in registers, and writes it to shared memory by vectors; the
block then writes rows of ``B`` by vectors.  ``@transpose`` takes any strides and moves single elements, a warp 32 next
to each other on both sides.  No shared-memory access has a bank conflict.  A tile at an edge is moved element by
element under a test of its coordinates.

>>> config = TransposeConfig("f16")
>>> config.tile, config.threads
((64, 128), 128)
>>> "cute.memref.alloc_smem" in transpose("f16")
True
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.kernels.script import Script
from cute_dialect.kernels.values import Value

__all__ = ["BYTES", "TransposeConfig", "transpose"]

BYTES = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "f16": 2, "bf16": 2, "i16": 2, "i8": 1}
"""Element types the kernel is made for, and their bytes."""


class TransposeConfig(NamedTuple):
    """``element``; ``rows``: the tile has ``rows`` times 128 bytes of rows of A (0: 256 threads or 16 KiB)."""

    element: str = "f32"
    rows: int = 0

    @property
    def vector(self) -> int:
        """Elements of 16 bytes."""
        return 16 // BYTES[self.element]

    @property
    def factor(self) -> int:
        """Return how many times 8 vectors of rows a tile has."""
        return self.rows or max(1, BYTES[self.element] // 2)

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of A in one tile."""
        return 8 * self.vector * self.factor, 16 * self.vector

    @property
    def threads(self) -> int:
        """Threads of a block, one a square of ``vector`` rows and columns."""
        return 128 * self.factor


def transpose(element: str = "f32", rows: int = 0) -> str:
    """Return the file.  Raises ValueError for an element type that is not in :data:`BYTES`."""
    if element not in BYTES:
        raise ValueError(f"expected an element type of {', '.join(BYTES)}, got '{element}'")
    c = TransposeConfig(element, rows)
    s = Script()
    v = c.vector
    any_ = f'!cute.memref<{element}, gmem, "(?,?):(?,?)">'
    vec = f'!cute.memref<{element}, gmem, align<16>, "(?,?):({f"?{{div={v}}}" if v > 1 else "?"},1)">'
    s.name_type("any", any_)
    s.name_type("vec", vec)
    _kernel(s, c, "transpose", any_, vectors=False)
    _kernel(s, c, "transpose_v", vec, vectors=True)
    with s.host("launch", {"mA": any_, "mB": any_}) as (a, b):
        m, n = s.extents(a)
        columns, lines = s.extents(b)
        for ok, text in (
            (columns.eq(n), "B must have as many rows as A has columns"),
            (lines.eq(m), "B must have as many columns as A has rows"),
        ):
            s.do("cf.assert", ok, msg=f'"{text}"')
        s.say("One block a tile.")
        s.launch("transpose", [a, b], grid=_tiles(s, m, c.tile[0]) * _tiles(s, n, c.tile[1]), threads=c.threads,
                 variants=["transpose_v"])  # fmt: skip
    tm, tn = c.tile
    return s.script(f"""\
// B = A^T for matrices of {element}, any shape, any strides.
//
// A block of {c.threads} threads takes a tile of {tm} x {tn} elements of A through shared memory.  @transpose assumes
// nothing of the strides and moves single elements.  @transpose_v takes contiguous rows, row strides of whole 16 bytes
// and aligned pointers: all accesses inside the matrix have 128 bits.  The launch takes @transpose_v when it can.
""")


def _tiles(s: Script, extent: Value, tile: int) -> Value:
    return s.op("arith.ceildivsi", extent, tile, type="i32")


def _kernel(s: Script, c: TransposeConfig, name: str, matrix: str, *, vectors: bool) -> None:
    (tm, tn), e = c.tile, c.element
    with s.kernel(name, {"mA": matrix, "mB": matrix}, threads=c.threads) as (a, b):
        s.say("This block's tile of A, of B seen as (m, n), and of the coordinates.")
        tid, bid = s.let("tid", s.thread_id()), s.let("bid", s.block_id())
        across = s.let("across", _tiles(s, s.extents(a)[1], tn))
        where = (s.op("arith.divsi", bid, across, type="i32"), s.op("arith.remsi", bid, across, type="i32"))
        mn = s.let("mn", s.shape_of(a))
        g_a = s.let("gA", s.tile_at(a, c.tile, where))
        g_b = s.let("gB", s.tile_at(s.let("mBt", s.transposed(b)), c.tile, where))
        ids = s.let("ids", s.tile_at(s.let("mIds", s.identity(a)), c.tile, where), type_name="ids_tile")
        whole = s.let("whole", s.inside(ids, tm * tn - 1, mn))
        atom = s.let("atom", s.atom(f"!cute_nvgpu.atom.universal_copy<{e}>"))
        load, store, smem = _by_vectors(c) if vectors else _by_elements(c)
        tile_s = s.let("sT", s.alloc_smem(smem), type_name="smem_v" if vectors else "smem")
        tiler = f'tiler_mn = <"[{tm}:1;{tn}:1]">'
        copy = f'!cute.tiled_copy<!cute_nvgpu.atom.universal_copy<{e}>, layout_copy_tv = <"%s">, {tiler}>'

        with s.if_else(whole) as (inside, edge):
            with inside:
                s.say("A thread's elements of A, through registers to shared memory.")
                tc = s.let("load", s.tiled_copy(copy % load), type_name="load_v" if vectors else "load")
                t_a = s.let("tA", s.partition("S", tc, g_a, tid))
                t_s = s.let("tS", s.partition("D", tc, tile_s, tid))
                r = s.let("r", s.fragment_like(t_a), type_name="regs")
                s.copy(atom, t_a, r)
                s.copy(atom, r, t_s)
            with edge:
                s.say("At an edge, element by element along the rows of A.")
                _by_coordinates(s, c, ids, mn, g_a, tile_s, tid, along=1)
        s.barrier()
        with s.if_else(whole) as (inside, edge):
            with inside:
                s.say("The tile as rows of B.")
                tc = s.let("store", s.tiled_copy(copy % store), type_name="store_v" if vectors else "store")
                t_s = s.let("tT", s.partition("S", tc, tile_s, tid))
                t_b = s.let("tB", s.partition("D", tc, g_b, tid))
                r = s.let("q", s.fragment_like(t_s), type_name="regs")
                s.copy(atom, t_s, r)
                s.copy(atom, r, t_b)
            with edge:
                s.say("At an edge, element by element along the rows of B.")
                _by_coordinates(s, c, ids, mn, tile_s, g_b, tid, along=0)


def _by_coordinates(
    s: Script, c: TransposeConfig, ids: Value, mn: Value, source: Value, destination: Value, tid: Value, *, along: int
) -> None:
    """Move the elements of a tile that lie in the matrix; consecutive threads go along one mode."""
    tm, tn = c.tile
    n = c.tile[along]
    with s.for_(tid, tm * tn, c.threads) as loop:
        fast, slow = loop.iv % n, loop.iv // n
        where = s.coord((fast, slow) if along == 0 else (slow, fast))
        inside = s.op("cute.elem_less", s.op("cute.memref.load", ids, where), mn)
        with s.if_(inside):
            s.do("cute.memref.store", destination, where, s.op("cute.memref.load", source, where))


def _by_vectors(c: TransposeConfig) -> tuple[str, str, str]:
    """Return Thread-value layouts over (m, n) of loading and storing, and the tile in shared memory.

    Rows of 128 bytes along m, one for each n.  The n of equal number within their vectors lie together, so that the
    threads of a quarter warp, which hold n at a distance of one vector, write 8 rows next to each other: the swizzle
    puts their chunks of 16 bytes into different banks.
    """
    v, k = c.vector, c.factor
    tm, _ = c.tile
    load = f"((16,{8 * k}),({v},{v})):(({v * tm},{v}),({tm},1))"
    store = f"(({8 * k},16),({v},{v})):(({v},{v * tm}),(1,{tm}))"
    row = 8 * v
    m_mode = (str(row), "1") if k == 1 else (f"({row},{k})", f"(1,{row * 16 * v})")
    layout = f"({m_mode[0]},({v},16)):({m_mode[1]},({16 * row},{row}))"
    return load, store, f'!cute.memref<{c.element}, smem, align<1024>, S<3,4,3>, "{layout}">'


def _by_elements(c: TransposeConfig) -> tuple[str, str, str]:
    """Return what :func:`_by_vectors` does, for single elements.

    Rows of 128 bytes along n, one for each m; a warp writes along a row, and reads a column of 32 rows, whose words the
    swizzle puts into different banks.
    """
    (tm, tn), t = c.tile, c.threads
    across, down = min(tn, t), max(1, t // tn)
    load = f"(({across},{down}),({tn // across},{tm // down})):(({tm},1),({across * tm},{down}))"
    rows, columns = min(tm, t), max(1, t // tm)
    store = f"(({rows},{columns}),({tm // rows},{tn // columns})):((1,{tm}),({rows},{columns * tm}))"
    row = 128 // BYTES[c.element]
    base = max(2, BYTES[c.element].bit_length() - 1)
    bits = 7 - base
    layout = f"({tm},({row},{tn // row})):({row},(1,{tm * row}))"
    swizzle = f"align<{1 << (7 + bits)}>, S<{bits},{base},{bits}>"
    return load, store, f'!cute.memref<{c.element}, smem, {swizzle}, "{layout}">'
