"""A ladder of kernels for ``C = A * B`` in f32 on plain FMAs, each rung one step faster than the one before, as text.

1. ``naive``: a thread an element of C; the threads of a warp lie below each other.
2. ``coalesced``: they lie beside each other.
3. ``smem``: a block multiplies tiles in shared memory.
4. ``tile1d``: a thread has 8 elements of a column of C.
5. ``tile2d``: a thread has 8 x 8 elements.
6. ``vector``: 128-bit accesses to global and shared memory; the tile of A lies transposed.
7. ``warptile``: the tile of C is dealt out to warps, then to lanes; three stages by ``cp.async``, swizzled.
8. ``pipelined``: a thread has 8 x 16 elements and loads operands one step ahead; tiles come by TMA.

All take row-major matrices of any size: what lies outside counts as zero and is not written.  Rungs 6 and 7 have a
variant ``@sgemm_v`` for matrices of whole vectors of 16 bytes; rung 8 is for those, and falls back to rung 7.  After
S. Boehm, "How to optimize a CUDA matmul kernel".

>>> [r for r in RUNGS][-1]
'pipelined'
>>> "cute.gemm" in sgemm("tile2d")
True
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.kernels.script import Script
from cute_dialect.kernels.values import Scalar, Value

__all__ = ["RUNGS", "Rung", "sgemm"]

FMA = "!cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32)>"
ANY = '!cute.memref<f32, gmem, "(?,?):(?,1)">'
VECTOR = '!cute.memref<f32, gmem, align<16>, "(?,?{div=4}):(?{div=4},1)">'


class Rung(NamedTuple):
    """``tile``: (M, N, K) of a block; ``threads`` of a block; ``mma``: how the threads lie over the tile of C, and the
    permutation of its rows and columns; ``smem_a``: layout of the tile of A; ``k_step``: of the tile's K that is in
    registers at once; ``vectors``: there is a variant for whole vectors; ``stages``: tiles in flight (1: none);
    ``blocks``: on one SM at least, which bounds the registers (0: as many as fit);
    ``fallback``: tiles come by TMA, and this rung is for matrices that it cannot describe.
    """

    title: str
    tile: tuple[int, int, int]
    threads: int
    mma: str = ""
    smem_a: str = ""
    k_step: int = 1
    vectors: bool = False
    stages: int = 1
    blocks: int = 0
    fallback: str = ""


RUNGS: dict[str, Rung] = {
    "naive": Rung("a thread computes one element; the threads of a warp lie in one column of C", (32, 32, 1), 1024),
    "coalesced": Rung("a thread computes one element; the threads of a warp lie in one row of C", (32, 32, 1), 1024),
    "smem": Rung(
        "a thread computes one element; the block multiplies tiles of 32 x 32 in shared memory",
        (32, 32, 32), 1024, 'atom_layout_MNK = <"(32,32,1):(32,1,0)">', "(32,32):(32,1)", 4,
    ),
    "tile1d": Rung(
        "a thread computes 8 elements of one column of a tile of 64 x 64",
        (64, 64, 8), 512, 'atom_layout_MNK = <"(8,64,1):(64,1,0)">', "(64,8):(8,1)", 1,
    ),
    "tile2d": Rung(
        "a thread computes 8 x 8 elements of a tile of 128 x 128",
        (128, 128, 8), 256, 'atom_layout_MNK = <"(16,16,1):(16,1,0)">', "(128,8):(8,1)", 1,
    ),
    "vector": Rung(
        "a thread computes 8 x 8 elements, four side by side; accesses of 128 bits; A lies transposed",
        (128, 128, 8), 256,
        'atom_layout_MNK = <"(16,16,1):(16,1,0)">, permutation_MNK = <"[(16,4,2):(4,1,64);(16,4,2):(4,1,64);_]">',
        "(128,8):(1,132)", 1, True,
    ),
    "warptile": Rung(
        "8 warps have tiles of 32 x 64, their lanes 8 x 8 elements; three stages in flight by cp.async",
        (128, 128, 16), 256,
        'atom_layout_MNK = <"((4,4),(8,2),1):((8,64),(1,32),0)">, '
        'permutation_MNK = <"[(4,4,8):(1,32,4);(8,2,4,2):(4,64,1,32);_]">',
        "(128,16,3):(16,1,2048)", 2, True, 3, 2,
    ),
    "pipelined": Rung(
        "4 warps have tiles of 64 x 64, their lanes 8 x 16 elements, loaded one step ahead; four stages by TMA",
        (128, 128, 16), 128,
        'atom_layout_MNK = <"((8,2),(4,2),1):((4,32),(1,64),0)">, '
        'permutation_MNK = <"[(8,2,8):(1,64,8);(4,2,4,4):(4,64,1,16);_]">',
        stages=4, blocks=2, fallback="warptile",
    ),
}  # fmt: skip
"""Name -> rung, slowest first."""


def sgemm(name: str) -> str:
    """Return the file of one rung.  Raises ValueError for a name that is not in :data:`RUNGS`."""
    if name not in RUNGS:
        raise ValueError(f"expected one of {', '.join(RUNGS)}, got '{name}'")
    rung = RUNGS[name]
    s = Script()
    s.name_type("mat", ANY)
    if rung.vectors or rung.fallback:
        s.name_type("vec", VECTOR)
    about = ""
    if rung.fallback:
        _ahead(s, rung)
        _module(s, rung.fallback, suffix="_any")
        about = (
            "\n// TMA wants rows of whole aligned vectors of 16 bytes; for other matrices the launch falls back to"
            "\n// @launch_any, which is the rung before."
        )
    else:
        _module(s, name)
    if rung.vectors:
        about = (
            "\n// @sgemm_v is for matrices whose rows are whole aligned vectors of 16 bytes; the launch takes it if it "
            "can."
        )
    return s.script(f"""\
// C = A * B in f32 for row-major matrices of any size:
// {rung.title}.{about}
""")


def _module(s: Script, name: str, suffix: str = "") -> None:
    """Return the kernels and the host function of a rung."""
    rung = RUNGS[name]
    body = _one_element if rung.tile[2] == 1 else _pipelined if rung.stages > 1 else _tiled
    # As a fallback: only what no vector fits.
    vector = rung.vectors and not suffix
    for kernel, matrix in ((f"sgemm{suffix}", ANY), *((("sgemm_v", VECTOR),) if vector else ())):
        attributes = [f"nvvm.minctasm = {rung.blocks} : i32"] if rung.blocks else []
        parameters = {"mA": matrix, "mB": matrix, "mC": matrix}
        with s.kernel(kernel, parameters, threads=rung.threads, attributes=attributes) as matrices:
            body(s, name, rung, *matrices, vectors=matrix == VECTOR)
    bm, bn, _ = rung.tile
    with s.host(f"launch{suffix}", {"mA": ANY, "mB": ANY, "mC": ANY}) as (a, b, c):
        m, n = _fitting(s, a, b, c)
        s.say("One block a tile of C.")
        grid = _ceil_div(s, m, bm) * _ceil_div(s, n, bn)
        variants = ["sgemm_v"] if vector else []
        s.launch(f"sgemm{suffix}", [a, b, c], grid=grid, threads=rung.threads, variants=variants)


def _ahead(s: Script, rung: Rung) -> None:
    """Return the kernel and the host function of the rung that loads by TMA."""
    from cute_dialect.kernels.sgemm_pipelined import Tile, load_map, multiply_ahead, place

    bm, bn, bk = rung.tile
    tile = Tile(bm, bn, bk, rung.stages)
    s.name_type("loadA", tile.load_a)
    s.name_type("loadB", tile.load_b)
    parameters = {"loadA": tile.load_a, "loadB": tile.load_b, "tiles": "i32", "mC": VECTOR}
    attributes = [f"nvvm.minctasm = {rung.blocks} : i32"]
    with s.kernel("sgemm", parameters, threads=rung.threads, attributes=attributes) as (load_a, load_b, tiles, c):
        tid = s.let("tid", s.thread_id())
        m, n = s.extents(c)
        row, column = place(s, tile, s.ceil_div(m, bm), s.ceil_div(n, bn))
        mma, t_c, acc = _accumulators(s, rung, c, row, column, tid)
        multiply_ahead(s, tile, mma, acc, (load_a, load_b), (row, column), tiles, tid)
        s.say("The sums in registers of their own: a store of 128 bits wants four in a row, the FMAs want free choice.")
        done = s.let("sums", s.fragment_like(acc))
        with s.for_(0, bm * bn // rung.threads) as loop:
            s.store(done, loop.iv, s.load(acc, loop.iv) + s.constant(0.0, "f32"))
        _finish(s, rung, c, row, column, mma, tid, t_c, done)
    with s.host("launch", {"mA": VECTOR, "mB": VECTOR, "mC": VECTOR}, fallback="launch_any") as (a, b, c):
        m, n = _fitting(s, a, b, c)
        s.say("One block a tile of C.")
        maps = [load_map(s, a, "A", tile), load_map(s, s.let("mBt", s.transposed(b)), "B", tile)]
        tiles = s.ceil_div(s.extents(a)[1], bk)
        grid = _ceil_div(s, m, bm) * _ceil_div(s, n, bn)
        s.launch("sgemm", [*maps, tiles, c], grid=grid, threads=rung.threads)


def _fitting(s: Script, a: Value, b: Value, c: Value) -> tuple[Value, Value]:
    """Emit host code: assert that the shapes of the matrices fit; gives M and N."""
    rows, depth = s.extents(a)
    depth_b, columns = s.extents(b)
    m, n = s.extents(c)
    for ok, text in (
        (depth.eq(depth_b), "A and B must have the same K"),
        (rows.eq(m), "A and C must have the same M"),
        (columns.eq(n), "B and C must have the same N"),
    ):
        s.do("cf.assert", ok, msg=f'"{text}"')
    return m, n


def _ceil_div(s: Script, a: Value, b: int) -> Value:
    return s.op("arith.ceildivsi", a, b, type="i32")


def _block(s: Script, rung: Rung, c: Value) -> tuple[Value, Value]:
    """Return the row and column of this block's tile of C."""
    across = s.let("across", _ceil_div(s, s.extents(c)[1], rung.tile[1]))
    bid = s.let("bid", s.block_id())
    row = s.let("row", s.op("arith.divsi", bid, across, type="i32"))
    return row, s.let("column", s.op("arith.remsi", bid, across, type="i32"))


def _one_element(s: Script, name: str, rung: Rung, a: Value, b: Value, c: Value, *, vectors: bool) -> None:
    bm, bn, _ = rung.tile
    s.say("This block's rows of A, columns of B, and tile of C.")
    tid = s.let("tid", s.thread_id())
    row, column = _block(s, rung, c)
    g_a = s.let("gA", s.local_tile(a, f"[{bm}:1]", (row,)))
    g_b = s.let("gB", s.local_tile(s.let("mBt", s.transposed(b)), f"[{bn}:1]", (column,)))
    g_c = s.let("gC", s.tile_at(c, (bm, bn), (row, column)))
    ids = s.let("ids", s.tile_at(s.let("mIds", s.identity(c)), (bm, bn), (row, column)), type_name="ids_tile")
    below = "Threads of a warp: one column." if name == "naive" else "Threads of a warp: one row."
    s.say(below)
    fast, slow = tid % 32, tid // 32
    m, n = (fast, slow) if name == "naive" else (slow, fast)
    s.let("m", m)
    s.let("n", n)
    where = s.let("where", s.coord((m, n)))
    inside = s.let("inside", s.op("cute.elem_less", s.op("cute.memref.load", ids, where), s.shape_of(c)))
    with s.if_(inside):
        zero = s.constant(0.0, "f32")
        with s.for_(0, s.extents(a)[1], 1, [zero]) as loop:
            x = s.let("a", s.load(g_a, (m, loop.iv)))
            y = s.let("b", s.load(g_b, (n, loop.iv)))
            loop.next(s.op("math.fma", x, y, loop.args[0], type="f32"))
        s.do("cute.memref.store", g_c, where, loop.results[0])


# ------------------------------------------------------------------------------------------------------- tiles


class _Loader:
    """Moves the tile of one operand, ``(rows, k)``, to shared memory; zeros where the matrix ends.

    ``k_fast``: the matrix is contiguous along k.  A thread's values are ``((v,1),RestM,RestK)``, with a flag for each
    vector.
    """

    def __init__(
        self, s: Script, name: str, rung: Rung, matrix: Value, block: Value, rows: int, *, k_fast: bool, vectors: bool
    ):
        self.s, self.name, self.block = s, name, block
        self.matrix = matrix
        self.tile = (rows, rung.tile[2])
        v = 4 if vectors else 1
        t = rung.threads
        if k_fast:
            fast = self.tile[1] // v
            slow = min(t // fast, rows)
            tv, tiler = f"(({fast},{slow}),{v}):(({v * slow},1),{slow})", (slow, fast * v)
        else:
            fast = min(rows // v, t)
            slow = min(t // fast, self.tile[1])
            tv, tiler = f"(({fast},{slow}),{v}):(({v},{v * fast}),1)", (fast * v, slow)
        assert fast * slow == t, (name, fast, slow)
        bits = f", {32 * v} b" if vectors or rung.stages > 1 else ""
        cache = "global" if vectors else "always"
        kind = f"simt_async_copy<f32, cache = {cache}{bits}>" if rung.stages > 1 else f"universal_copy<f32{bits}>"
        self.atom = s.atom(f"!cute_nvgpu.atom.{kind}")
        tiler_text = f"[{tiler[0]}:1;{tiler[1]}:1]"
        suffix = "_v" if vectors else ""
        self.copy = s.let(
            f"load{name}",
            s.tiled_copy(
                f'!cute.tiled_copy<!cute_nvgpu.atom.{kind}, layout_copy_tv = <"{tv}">, tiler_mn = <"{tiler_text}">>'
            ),
            type_name=f"load{name}{suffix}",
        )
        self.rest = (rows // tiler[0], self.tile[1] // tiler[1])
        self.ids = s.let(f"ids{name}", s.identity(matrix), type_name="ids")
        self.shape = s.let(f"shape{name}", s.shape_of(matrix))

    def source(self, tid: Value, k: Scalar) -> tuple[Value, Value]:
        """Return this thread's part of tile ``k`` of the matrix, and the flags of its vectors."""
        s = self.s
        where = (self.block, k)
        part = s.let(f"t{self.name}", s.partition("S", self.copy, s.tile_at(self.matrix, self.tile, where), tid))
        ids = s.let(f"x{self.name}", s.partition("S", self.copy, s.tile_at(self.ids, self.tile, where), tid))
        m, n = self.rest
        flags = s.let(f"p{self.name}", s.registers(f'!cute.memref<i1, rmem, "(1,{m},{n}):(0,1,{m})">'))
        first, each = s.slice(ids, 0, None, None), s.slice(flags, 0, None, None)
        with s.for_(0, m * n) as loop:
            s.store(each, loop.iv, s.inside(first, loop.iv, self.shape))
        return part, flags

    def destination(self, tid: Value, smem: Value) -> Value:
        """Return this thread's part of the tile in shared memory."""
        return self.s.let(f"d{self.name}", self.s.partition("D", self.copy, smem, tid))


def _setup(
    s: Script, rung: Rung, a: Value, b: Value, c: Value, *, vectors: bool
) -> tuple[Value, Value, Value, Value, _Loader, _Loader, Value, Value]:
    bm, bn, _ = rung.tile
    tid = s.let("tid", s.thread_id())
    row, column = _block(s, rung, c)
    s.say("How tiles of A (m, k) and of B, seen as (n, k), come to shared memory.")
    load_a = _Loader(s, "A", rung, a, row, bm, k_fast=True, vectors=vectors)
    load_b = _Loader(s, "B", rung, s.let("mBt", s.transposed(b)), column, bn, k_fast=False, vectors=vectors)
    mma, t_c, acc = _accumulators(s, rung, c, row, column, tid)
    return tid, row, column, mma, load_a, load_b, t_c, acc


def _accumulators(s: Script, rung: Rung, c: Value, row: Value, column: Value, tid: Value) -> tuple[Value, Value, Value]:
    """Return how the threads multiply, this thread's elements of C, and their sums, which are zero."""
    s.say("How the threads multiply; this thread's elements of C.")
    mma = s.let("mma", s.op("cute.make_tiled_mma", s.atom(FMA), type=f"!cute.tiled_mma<{FMA}, {rung.mma}>"))
    g_c = s.let("gC", s.tile_at(c, (rung.tile[0], rung.tile[1]), (row, column)))
    t_c = s.let("tC", s.partition("C", mma, g_c, tid))
    acc = s.let("acc", s.op("cute.tiled.mma.make_fragment_C", mma, t_c))
    s.do("cute.clear", acc)
    return mma, t_c, acc


def _multiply(
    s: Script, rung: Rung, mma: Value, acc: Value, tile_a: Value, tile_b: Value, tid: Value, k: Scalar
) -> None:
    """Emit ``acc += tile_a * tile_b`` over ``k_step`` columns at block ``k`` of them, through registers: those of A at
    once, those of B one after the other.
    """
    atom = s.atom("!cute_nvgpu.atom.universal_copy<f32>")
    (bm, bn, _), step = rung.tile, rung.k_step

    def registers(name: str, block: Value) -> Value:
        part = s.let(f"s{name}k", s.partition(name, mma, block, tid))
        r = s.let(f"r{name}", s.op(f"cute.tiled.mma.make_fragment_{name}", mma, part))
        s.copy(atom, part, r)
        return r

    a = registers("A", s.tile_at(tile_a, (bm, step), (0, k)))
    if step == 1:
        s.gemm(mma, acc, a, registers("B", s.tile_at(tile_b, (bn, 1), (0, k))), acc)
        return
    block = s.tile_at(tile_b, (bn, step), (0, k))
    for i in range(step):
        b = registers("B", s.tile_at(block, (bn, 1), (0, i)))
        s.gemm(mma, acc, s.slice(a, None, None, i), s.slice(b, None, None, 0), acc)


def _tiled(s: Script, name: str, rung: Rung, a: Value, b: Value, c: Value, *, vectors: bool) -> None:
    _, bn, bk = rung.tile
    tid, row, column, mma, load_a, load_b, t_c, acc = _setup(s, rung, a, b, c, vectors=vectors)
    s_a = s.let("sA", s.alloc_smem(f'!cute.memref<f32, smem, align<16>, "{rung.smem_a}">'))
    s_b = s.let("sB", s.alloc_smem(f'!cute.memref<f32, smem, align<16>, "({bn},{bk}):(1,{bn})">'))
    tiles = s.let("tiles", _ceil_div(s, s.extents(a)[1], bk))
    atom = s.let("atom", s.atom("!cute_nvgpu.atom.universal_copy<f32>"))
    with s.for_(0, tiles) as loop:
        s.say("The next tiles, through registers.")
        moved: list[tuple[Value, Value]] = []
        for load, smem in ((load_a, s_a), (load_b, s_b)):
            part, flags = load.source(tid, loop.iv)
            r = s.let(f"next{load.name}", s.fragment_like(part))
            s.do("cute.clear", r)
            s.copy(load.atom, part, r, flags)
            moved.append((r, load.destination(tid, smem)))
        for r, d in moved:
            s.copy(atom, r, d)
        s.barrier()
        s.say("Multiply them.")
        with s.for_(0, bk // rung.k_step) as inner:
            _multiply(s, rung, mma, acc, s_a, s_b, tid, inner.iv)
        s.barrier()
    _finish(s, rung, c, row, column, mma, tid, t_c, acc)


def _pipelined(s: Script, name: str, rung: Rung, a: Value, b: Value, c: Value, *, vectors: bool) -> None:
    _, bn, bk = rung.tile
    stages = rung.stages
    tid, row, column, mma, load_a, load_b, t_c, acc = _setup(s, rung, a, b, c, vectors=vectors)
    s_a = s.let("sA", s.alloc_smem(f'!cute.memref<f32, smem, align<512>, S<2,4,3>, "{rung.smem_a}">'))
    s_b = s.let("sB", s.alloc_smem(f'!cute.memref<f32, smem, align<16>, "({bn},{bk},{stages}):(1,{bn},{bn * bk})">'))
    tiles = s.let("tiles", _ceil_div(s, s.extents(a)[1], bk))

    def fetch(tile: Scalar, stage: Scalar) -> None:
        for load, smem in ((load_a, s_a), (load_b, s_b)):
            part, flags = load.source(tid, tile)
            s.copy(load.atom, part, load.destination(tid, s.slice(smem, None, None, stage)), flags)
        s.run("cp_async_commit_group")

    s.say(f"The first {stages - 1} tiles; a tile beyond the last one is zeros.")
    for i in range(stages - 1):
        fetch(i, i)
    with s.for_(0, tiles) as loop:
        s.say("Wait for this tile, and for all to be done with the last one; ask for another in its place.")
        s.run("cp_async_wait_group", n=stages - 2)
        s.barrier()
        ahead = s.let("ahead", loop.iv + (stages - 1))
        fetch(ahead, ahead % stages)
        s.say("Multiply, two columns at a time.")
        stage = s.let("stage", loop.iv % stages)
        tile_a, tile_b = (s.slice(x, None, None, stage) for x in (s_a, s_b))
        with s.for_(0, bk // rung.k_step) as inner:
            _multiply(s, rung, mma, acc, tile_a, tile_b, tid, inner.iv)
    s.run("cp_async_wait_group", n=0)
    _finish(s, rung, c, row, column, mma, tid, t_c, acc)


def _finish(
    s: Script, rung: Rung, c: Value, row: Value, column: Value, mma: Value, tid: Value, t_c: Value, acc: Value
) -> None:
    """Write this thread's elements of C."""
    bm, bn, _ = rung.tile
    s.say("Write C; at an edge, the elements that lie in it.")
    shape = s.let("shapeC", s.shape_of(c))
    ids = s.let("idsC", s.tile_at(s.let("mIds", s.identity(c), type_name="ids"), (bm, bn), (row, column)))
    whole = s.let("whole", s.inside(ids, bm * bn - 1, shape))
    atom = s.let("store", s.atom("!cute_nvgpu.atom.universal_copy<f32>"))
    with s.if_else(whole) as (inside, edge):
        with inside:
            s.copy(atom, acc, t_c)
        with edge:
            x = s.let("xC", s.partition("C", mma, ids, tid))
            flags = s.let("pC", s.fragment_like(x, "i1"))
            with s.for_(0, bm * bn // rung.threads) as loop:
                s.store(flags, loop.iv, s.inside(x, loop.iv, shape))
            s.copy(atom, acc, t_c, flags)
