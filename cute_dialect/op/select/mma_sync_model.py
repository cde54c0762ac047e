"""How a product without wgmma is cut to blocks, and how long it takes, predicted: by ``mma.sync``
(:mod:`cute_dialect.kernels.mma_sync_gemm`), where wgmma cannot multiply the factors as they lie, and of f64; of f32 by
FMAs (:mod:`cute_dialect.kernels.simt_gemm`).

A block does steps of K, 128 bytes of it each.  A step takes what its products take, or what its bytes take through the
L2, of all blocks of a multiprocessor, or what the stages do not hide of the latency.  Around the steps lie the launch,
the first loads and the stores, and where blocks share K what adding up takes.  The other way is a copy of a factor and
a kernel by wgmma: :func:`copies` says what it takes more.

>>> Cut((64, 64), (2, 2)).blocks(Problem(513, 513, 513, "tf32", "f32"))
81
>>> cut_for(Problem(4096, 4096, 4096, "f64", "f64")).tile
(128, 128)
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.kernels.gemm.config import BITS
from cute_dialect.kernels.gemm.elements import factors, sums_of
from cute_dialect.op.select.cost_model import COSTS, Costs
from cute_dialect.op.select.kernel_choice import Problem

__all__ = ["WARP_COSTS", "Cut", "WarpCosts", "copies", "cut_for", "predict_cut", "predict_exact"]


class WarpCosts(NamedTuple):
    """Numbers of an H200; microseconds, those of a step of a tile of 64 x 64 on one multiprocessor.

    ``launch``: until the first load is asked for, and after the last store; ``latency``: of a load, while others are on
    their way; ``sm_bytes``: that a multiprocessor reads through the L2 a microsecond; ``step``: more of each step, of
    barriers; ``tf32``, ``f64``, ``f32`` (by FMAs), ``integers``, ``floats`` (of 8 bits): of a step's products,
    ``f32_large``: in tiles of 128 x 128, ``f32_alone``: factor where a multiprocessor has only one tile of f32;
    ``bytes``: more of 8-bit elements, for each factor that does not lie along K and comes to registers a byte at a
    time; ``single``: more where lines do not begin at multiples of 4 bytes, so that single bytes are loaded; ``meet``:
    of blocks that share K, and ``added``: bytes a microsecond that the last one of them reads; ``stored``: bytes a
    microsecond that a multiprocessor stores.  ``transpose``: a launch that copies a factor to another major, ``pad``:
    one that copies factors to lines of whole 16 bytes; ``transposed``, ``padded``: bytes of them a microsecond;
    ``host``: what the host does more of a call that copies (200 us), as far as it is to count.
    """

    launch: float = 4.9
    latency: float = 0.5
    sm_bytes: float = 5.9e4
    step: float = 0.14
    tf32: float = 0.216
    f64: float = 0.37
    f32: float = 0.97
    f32_large: float = 0.71
    f32_alone: float = 1.6
    integers: float = 0.15
    floats: float = 0.23
    bytes: float = 0.24
    single: float = 1.05
    meet: float = 3.05
    added: float = 1.06e5
    stored: float = 5.5e4
    transpose: float = 5.3
    transposed: float = 0.9e6
    pad: float = 4.0
    padded: float = 2.0e6
    host: float = 4.0


WARP_COSTS = WarpCosts()
"""Of an H200 (2026-11-27): fitted to 113 cuts of 13 small problems of ``cute-bench gemm --random 300 --seed 23`` whose
A and B lie along M and N, to 11 % (root mean square); copies from 50 problems of it, f32 and ``single`` from those of
``cute-bench op --groups types``.
"""

TILES = (((128, 128), (4, 2)), ((64, 128), (2, 2)), ((64, 64), (2, 2)))
"""Tiles, and the warps of each."""

_PARTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
_SHARED = 220 * 1024
"""Bytes of shared memory that the blocks of a multiprocessor have."""


class Cut(NamedTuple):
    """How a problem is cut: a tile, its warps, blocks that share its K, and stages that hide the latency."""

    tile: tuple[int, int]
    warps: tuple[int, int]
    parts: int = 1
    stages: int = 3

    def blocks(self, p: Problem) -> int:
        """Return how many blocks there are."""
        return -(-p.m // self.tile[0]) * -(-p.n // self.tile[1]) * p.matrices * self.parts

    def at_once(self, p: Problem) -> int:
        """Return how many blocks a multiprocessor has registers for: those of sums, and about 64 more a thread."""
        threads, sums = 32 * self.warps[0] * self.warps[1], 2 if p.element == "f64" else 1
        return max(1, 65536 // (self.tile[0] * self.tile[1] * sums + 64 * threads))

    def stage(self, p: Problem) -> int:
        """Return the bytes of a stage in shared memory at the most: 128 of each row, and what pads each line."""
        pad = 32 if p.element == "f64" else 16
        return sum([max(rows * (128 + pad), rows * 128 + 2048) for rows in self.tile])


def cut_for(p: Problem, costs: Costs = COSTS, *, share: bool = True, single: bool = False) -> Cut:
    """Return how a problem is cut: so that it takes the shortest, as predicted; ``share``: blocks may share K;
    ``single``: see :func:`predict_cut`.
    """
    steps = _steps(p)

    def parts(tile: Cut) -> list[int]:
        """Return by how many blocks a tile may be shared, each with two steps or more: where there are few tiles."""
        tiles = tile.blocks(p)
        if not share or tiles >= 4 * costs.sms:
            return [1]
        filling = [n * costs.sms // tiles for n in (1, 2)]
        return sorted({1, *(n for n in (*_PARTS, *filling) if 1 <= n <= _PARTS[-1] and 2 * n <= steps)})

    if p.element == "f32" and not p.sums:
        one = Cut((64, 64), (2, 2))
        found = [one._replace(parts=n) for n in parts(one)]  # six of half a step in its stages
    else:
        found = [_with_stages(Cut(*x, n), p, costs.sms) for x in TILES for n in parts(Cut(*x))]
    return min(found, key=lambda cut: predict_cut(cut, p, costs, single=single))


def _with_stages(cut: Cut, p: Problem, sms: int) -> Cut:
    """Return it with as many stages as its blocks, alone on a multiprocessor or two of them, have room for; no more
    than hold all of K.
    """
    together = min(1 + (cut.blocks(p) > sms), cut.at_once(p))
    all_, most = -(-_steps(p) // cut.parts) + 1, 8 if cut.blocks(p) <= sms else 4
    return cut._replace(stages=max(2, min(all_, most, _SHARED // cut.stage(p) // together)))


def _steps(p: Problem) -> int:
    return -(-p.k * BITS[factors(p.element)[0]] // 1024)


def predict_cut(cut: Cut, p: Problem, costs: Costs = COSTS, *, single: bool = False) -> float:
    """Return the microseconds that a problem takes, its operands in DRAM; ``single``: lines do not begin at multiples
    of 4 bytes.

    >>> p = Problem(64, 64, 8192, "tf32", "f32", "m", "n")
    >>> predict_cut(cut_for(p), p) < predict_cut(Cut((64, 64), (2, 2)), p)
    True
    """
    x, area = WARP_COSTS, cut.tile[0] * cut.tile[1]
    bits, sums = BITS[factors(p.element)[0]], 8 if p.element == "f64" else 4
    blocks = cut.blocks(p)
    steps = -(-_steps(p) // cut.parts)
    of_all = -(-blocks // costs.sms)  # of one multiprocessor, one after the other or at the same time
    room = min(_SHARED // (cut.stages * cut.stage(p)), cut.at_once(p))
    waves = -(-of_all // max(1, room))
    alone = x.f32_alone if p.element == "f32" and not p.sums and of_all == 1 else 1.0
    products = (x.step + _products(p, single) * area / 4096) * alone
    through = sum(cut.tile) * 128 / x.sm_bytes
    body = max(of_all * steps * max(products, through), waves * steps * x.latency / (cut.stages - 1))
    body += (waves - 1) * x.latency  # of the first loads of each
    added = of_all + -(-of_all // cut.parts) * cut.parts  # each writes its sums, the last ones read those of all
    meet = x.meet + added * area * sums / x.added if cut.parts > 1 else 0.0
    store = of_all / cut.parts * area * BITS[p.output] / 8 / x.stored
    moved = ((p.m + p.n) * p.k * bits + p.m * p.n * BITS[p.output]) / 8 * p.matrices
    s = costs.sharpness
    return x.launch + x.latency + ((body + meet + store) ** s + (moved / costs.dram / 1e6) ** s) ** (1 / s)


def _products(p: Problem, single: bool) -> float:
    """Return the microseconds of the products of a step of a tile of 64 x 64."""
    x, kind = WARP_COSTS, factors(p.element)[0]
    if BITS[kind] >= 32:
        return x.f64 if kind == "f64" else x.f32 if kind == "f32" and not p.sums else x.tf32
    across = (p.major_a != "k") + (p.major_b != "k")
    of_kind = x.integers if sums_of(p.element) == "i32" else x.floats
    return of_kind + x.bytes * across + x.single * single


def predict_exact(p: Problem, costs: Costs = COSTS) -> float:
    """Return the microseconds of a product of f32 in large tiles, by FMAs.

    >>> round(2 * 4.096**3 / predict_exact(Problem(4096, 4096, 4096, "f32", "f32")) * 1e3, -1)  # TFLOP/s
    50.0
    """
    x, blocks = WARP_COSTS, Cut((128, 128), (2, 2)).blocks(p)
    of_all = -(-blocks // costs.sms)
    step = 4 * x.f32_large * (x.f32_alone if of_all == 1 else 1.0)
    return x.launch + x.latency + of_all * (_steps(p) * step + 128 * 128 * 4 / x.stored)


def copies(sizes: list[int], *, transposed: bool) -> float:
    """Return the microseconds that copies of factors take, of such ``sizes`` in bytes; ``transposed``: to another
    major, a launch each, else one launch pads them.

    >>> copies([1 << 20], transposed=True) > copies([1 << 20], transposed=False)
    True
    """
    x = WARP_COSTS
    if not sizes:
        return 0.0
    if transposed:
        return x.host + sum(x.transpose + size / x.transposed for size in sizes)
    return x.host + x.pad + sum(sizes) / x.padded
