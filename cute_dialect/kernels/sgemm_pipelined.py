"""The last rung of the SGEMM ladder: TMA brings the tiles, and registers are filled one step ahead of their use.

A block of 128 threads multiplies tiles of 128 x 128; a thread has 8 x 16 elements of C.  Of A it holds 8 rows of four
k, of B one k of 16 columns, each twice: while the products of one k are summed, the next operands are on their way from
shared memory.  That is 6 loads of 128 bits for 128 products.  Four tiles of A and B are under way by TMA, which makes
zeros of what lies outside, so that the loop has no flags and no addresses:

    full[s]: the bytes of tile ``k`` are in slot ``s = k % stages``
    barrier: all threads are done with the tile before, whose slot is filled again

Three tiles beyond the last one are asked for, which are zeros and are not multiplied.

What bounds the loop is the register file: an FMA that finds one operand in the reuse cache reads two registers, which
takes one cycle only if one is even and one is odd.
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.kernels.pipeline import Position, TmaRing
from cute_dialect.kernels.script import Script
from cute_dialect.kernels.values import Scalar, Value

__all__ = ["Tile", "load_map", "multiply_ahead", "place"]

_QUAD = 4
"""k of A that a load of 128 bits brings."""


class Tile(NamedTuple):
    """Shape of a block's tile, stages under way, rows of blocks that run together."""

    m: int = 128
    n: int = 128
    k: int = 16
    stages: int = 4
    group: int = 8

    @property
    def load_a(self) -> str:
        """The TMA atom for tiles of A, whose rows of ``4 * k`` bytes are swizzled."""
        return f"!cute_nvgpu.atom.tma_load<f32, box = ({self.k}, {self.m}), swizzle = {4 * self.k}, l2 = 256>"

    @property
    def load_b(self) -> str:
        """The TMA atom for tiles of B."""
        return f"!cute_nvgpu.atom.tma_load<f32, box = ({self.n}, {self.k}), l2 = 256>"


def place(s: Script, tile: Tile, rows: Value, columns: Value) -> tuple[Value, Value]:
    """Return the row and column of this block's tile, of ``rows`` and ``columns``: groups of rows, column by column."""
    bid = s.let("bid", s.block_id())
    per_group = columns * tile.group
    group = bid // per_group
    inside = bid - group * per_group
    first = group * tile.group
    height = s.minimum(rows - first, tile.group)
    column = inside // height
    return s.let("row", first + (inside - column * height)), s.let("column", column)


def load_map(s: Script, matrix: Value, operand: str, tile: Tile) -> Value:
    """Make on the host the tensor map for tiles ``(m, k)`` of A, or ``(n, k)`` of B seen as (n, k)."""
    if operand == "A":
        rows, strides, swizzle, expected = tile.m, f"{tile.k},1", 4 * tile.k, tile.load_a
    else:
        rows, strides, swizzle, expected = tile.n, f"1,{tile.n}", 0, tile.load_b
    layout, where = s.layout(f"({rows},{tile.k}):({strides})"), s.tile(f"[{rows}:1;{tile.k}:1]")
    options = {"swizzle": s.type(f"{swizzle} : i32")} if swizzle else {}
    atom, _ = s.results("cute_nvgpu.make_tma_load", matrix, layout, where, l2=256, types=None, segments=None, **options)
    assert atom.type == s.type(expected), str(atom.type)
    return atom


def multiply_ahead(
    s: Script,
    tile: Tile,
    mma: Value,
    acc: Value,
    load: tuple[Value, Value],
    at: tuple[Value, Value],
    tiles: Value,
    tid: Value,
) -> None:
    """Emit ``acc += A * B`` over all of ``tiles`` along k.

    ``load``: the atoms of A and B; ``at``: row and column of this block's tile of C.
    """
    m, n, k, stages, _ = tile
    swizzle = (k // _QUAD).bit_length() - 1
    s.say("Slots of shared memory, and the barriers that say they are full; thread 0 fills them.")
    s_a = s.alloc_smem(f'!cute.memref<f32, smem, align<1024>, S<{swizzle},4,3>, "({m},{k},{stages}):({k},1,{m * k})">')
    s_b = s.alloc_smem(f'!cute.memref<f32, smem, align<1024>, "({n},{k},{stages}):(1,{n},{n * k})">')
    s.let("sA", s_a)
    s.let("sB", s_b)
    ring = TmaRing(s, stages=stages, n_bytes=4 * (m + n) * k)
    m0, n0 = s.let("m0", at[0] * m), s.let("n0", at[1] * n)

    def fetch(k_tile: Scalar, slot: Scalar) -> None:
        full = ring.full(slot)
        s.run("mbarrier_arrive_expect_tx", full, ring.n_bytes)
        k0 = k_tile * k
        places = ((load[0], s_a, (k0, m0), f"({m},{k}):(1@1,1@0)"), (load[1], s_b, (n0, k0), f"({n},{k}):(1@0,1@1)"))
        for atom, smem, first, layout in places:
            atom = s.op("cute.atom.set_value", atom, full, field='"tma_bar"')
            s.copy(atom, s.view(s.int_tuple(first), layout), s.slice(smem, None, None, slot))

    leader = s.let("leader", tid.eq(0))
    with s.if_(leader):
        with s.for_(0, stages) as loop:
            s.run("mbarrier_init", ring.full(loop.iv), 1)
        s.run("fence_mbarrier_init")
        for i in range(stages - 1):
            fetch(i, i)
    s.barrier()

    s.say("What this thread multiplies: of A four k at once, of B one, each twice.")
    t_a = s.let("tA", s.partition("A", mma, s_a, tid))
    t_b = s.let("tB", s.partition("B", mma, s_b, tid))
    copy = s.atom("!cute_nvgpu.atom.universal_copy<f32>")
    quads = [s.let(f"a{i}", s.registers('!cute.memref<f32, rmem, align<16>, "(1,8,4):(0,4,1)">')) for i in range(2)]
    lines = [s.let(f"b{i}", s.registers('!cute.memref<f32, rmem, align<16>, "(1,(4,4)):(0,(1,4))">')) for i in range(2)]

    def load_a(quad: int, slot: Scalar) -> None:
        rows = s.tile(f"[1:1;8:1;{_QUAD}:1]")
        source = s.op("cute.local_tile", s.slice(t_a, None, None, None, slot), rows, s.coord((0, 0, quad)))
        s.copy(copy, source, quads[quad % 2])

    def load_b(j: int, slot: Scalar) -> None:
        s.copy(copy, s.slice(t_b, None, None, j, slot), lines[j % 2])

    zero = s.constant(0)
    s.run("mbarrier_wait", ring.full(0), zero)
    load_a(0, zero)
    load_b(0, zero)
    with s.for_(0, tiles, 1, ring.start()) as loop:
        slot, phase = loop.args
        s.let("slot", slot)
        s.let("phase", phase)
        following = ring.next(Position(slot, phase))
        for j in range(k):
            if j == k - _QUAD + 1:
                s.say(
                    "All are done with the tile before: its slot gets the tile that comes last.  The next one is there."
                )
                s.barrier()
                with s.if_(leader):
                    fetch(loop.iv + (stages - 1), (slot + (stages - 1)) % stages)
                s.run("mbarrier_wait", ring.full(following.slot), following.phase)
            last = j == k - 1
            load_b(0 if last else j + 1, following.slot if last else slot)
            if j % _QUAD == 1:
                quad = j // _QUAD + 1
                load_a(quad % (k // _QUAD), following.slot if quad == k // _QUAD else slot)
            s.gemm(mma, acc, s.slice(quads[j // _QUAD % 2], None, None, j % _QUAD), lines[j % 2], acc)
        loop.next(*following)
    s.say("Tiles that are still under way.")
    at_end = ring.next(Position(*loop.results))
    for _ in range(stages - 2):
        ring.wait(at_end)
        at_end = ring.next(at_end)
