"""Tile choice and predicted time of GEMMs without wgmma.

They use ``mma.sync`` (:mod:`cute_dialect.kernels.gemm.mma_sync`), where wgmma cannot read the operands or for f64, or
FMAs for f32 (:mod:`cute_dialect.kernels.gemm.simt`).

A block iterates over K in steps of 128 bytes.  A step takes the maximum of its MMAs, its L2 traffic (of all blocks of
a multiprocessor), and the latency that the stages do not hide.  The launch, the first loads, the stores and the
reduction of split-K slices are added.  The alternative is a copy of an operand and a wgmma kernel; :func:`copies` is
its extra cost.

>>> Cut((64, 64), (2, 2)).blocks(Problem(513, 513, 513, "tf32", "f32"))
81
>>> cut_for(Problem(4096, 4096, 4096, "f64", "f64")).tile
(128, 128)
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.kernels.common.elements import factors, sums_of
from cute_dialect.kernels.gemm.config import BITS
from cute_dialect.op.select.cost_model import COSTS, Costs
from cute_dialect.op.select.kernel_choice import Problem


class WarpCosts(NamedTuple):
    """Constants of an H200, in microseconds; steps are those of a 64 x 64 tile on one multiprocessor."""

    launch: float = 4.9  # until the first load is issued, and after the last store
    latency: float = 0.5  # of a load while others are in flight
    sm_bytes: float = 5.9e4  # bytes per microsecond that a multiprocessor reads through L2
    step: float = 0.14  # overhead of a step, for barriers
    tf32: float = 0.216  # MMAs of a step
    f64: float = 0.37
    f32: float = 0.97  # FMAs
    f32_large: float = 0.71  # FMAs in tiles of 128 x 128
    f32_alone: float = 1.6  # factor if a multiprocessor has a single f32 tile
    integers: float = 0.15
    floats: float = 0.23  # 8-bit floats
    bytes: float = 0.24  # per 8-bit operand that is not contiguous along K, whose bytes are loaded one by one
    single: float = 1.05  # if lines are not aligned to 4 bytes, so that single bytes are loaded
    meet: float = 3.05  # synchronization of split-K blocks
    added: float = 1.06e5  # bytes per microsecond that the last split-K block reads
    stored: float = 5.5e4  # bytes per microsecond that a multiprocessor stores
    transpose: float = 5.3  # launch that copies an operand to another major
    transposed: float = 0.9e6  # bytes per microsecond of that copy
    pad: float = 4.0  # launch that copies operands to 16-byte aligned lines
    padded: float = 2.0e6  # bytes per microsecond of that copy
    host: float = 4.0  # extra host time of a call with copies that is counted, of 200 us
    unaligned: float = 0.037  # K step of one element, of f16 and bf16 whose rows TMA cannot read
    unaligned_block: float = 5.5  # rest of a block of 128 x 128
    unaligned_launch: float = 3.0
    unaligned_bytes: float = 1.7e6  # bytes per microsecond that are read and written
    direct: float = 2.0e5  # elements per microsecond that wgmma kernels store to rows that TMA cannot write


WARP_COSTS = WarpCosts()
"""Constants of an H200 (2026-11-27), fitted with a root mean square error of 11 %.

The data are 113 cuts of 13 small problems of ``cute-bench gemm --random 300 --seed 23`` with A and B along M and N.
Copies are from 50 of these problems, f32 and ``single`` from ``cute-bench op --groups types``.
"""

TILES = (((128, 128), (4, 2)), ((64, 128), (2, 2)), ((64, 64), (2, 2)))
"""Tiles with their warps."""

_PARTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
_SHARED = 220 * 1024
"""Bytes of shared memory per multiprocessor."""


class Cut(NamedTuple):
    """Tile, warps and pipeline of a kernel."""

    tile: tuple[int, int]
    warps: tuple[int, int]
    parts: int = 1  # split-K slices
    stages: int = 3

    def blocks(self, p: Problem) -> int:
        """Return the number of blocks."""
        return -(-p.m // self.tile[0]) * -(-p.n // self.tile[1]) * p.matrices * self.parts

    def at_once(self, p: Problem) -> int:
        """Return the number of blocks per multiprocessor that registers allow: the accumulator and about 64 per
        thread.
        """
        threads, sums = 32 * self.warps[0] * self.warps[1], 2 if p.element == "f64" else 1
        return max(1, 65536 // (self.tile[0] * self.tile[1] * sums + 64 * threads))

    def stage(self, p: Problem) -> int:
        """Return the maximum number of bytes of a stage in shared memory: 128 per row, and the padding of each line."""
        pad = 32 if p.element == "f64" else 16
        return sum([max(rows * (128 + pad), rows * 128 + 2048) for rows in self.tile])


def cut_for(p: Problem, costs: Costs = COSTS, *, share: bool = True, single: bool = False) -> Cut:
    """Return the tile with the shortest predicted time.

    Args:
        share: allow split-K.
        single: see :func:`predict_cut`.
    """
    steps = _steps(p)

    def parts(tile: Cut) -> list[int]:
        """Return the numbers of split-K slices to try, each slice with two steps or more; 1 if there are many tiles."""
        tiles = tile.blocks(p)
        if not share or tiles >= 4 * costs.sms:
            return [1]
        filling = [n * costs.sms // tiles for n in (1, 2)]
        return sorted({1, *(n for n in (*_PARTS, *filling) if 1 <= n <= _PARTS[-1] and 2 * n <= steps)})

    if p.element == "f32" and not p.sums:
        one = Cut((64, 64), (2, 2))
        found = [one._replace(parts=n) for n in parts(one)]  # six stages of half a step
    else:
        found = [_with_stages(Cut(*x, n), p, costs.sms) for x in TILES for n in parts(Cut(*x))]
    return min(found, key=lambda cut: predict_cut(cut, p, costs, single=single))


def _with_stages(cut: Cut, p: Problem, sms: int) -> Cut:
    """Return a cut with as many stages as fit its blocks, one or two per multiprocessor, at most those of all of K."""
    together = min(1 + (cut.blocks(p) > sms), cut.at_once(p))
    all_, most = -(-_steps(p) // cut.parts) + 1, 8 if cut.blocks(p) <= sms else 4
    return cut._replace(stages=max(2, min(all_, most, _SHARED // cut.stage(p) // together)))


def _steps(p: Problem) -> int:
    return -(-p.k * BITS[factors(p.element)[0]] // 1024)


def predict_cut(cut: Cut, p: Problem, costs: Costs = COSTS, *, single: bool = False) -> float:
    """Return the predicted time in microseconds, with operands in DRAM.

    Args:
        single: lines are not aligned to 4 bytes.

    >>> p = Problem(64, 64, 8192, "tf32", "f32", "m", "n")
    >>> predict_cut(cut_for(p), p) < predict_cut(Cut((64, 64), (2, 2)), p)
    True
    """
    x, area = WARP_COSTS, cut.tile[0] * cut.tile[1]
    bits, sums = BITS[factors(p.element)[0]], 8 if p.element == "f64" else 4
    blocks = cut.blocks(p)
    steps = -(-_steps(p) // cut.parts)
    of_all = -(-blocks // costs.sms)  # of one multiprocessor, sequential or concurrent
    room = min(_SHARED // (cut.stages * cut.stage(p)), cut.at_once(p))
    waves = -(-of_all // max(1, room))
    alone = x.f32_alone if p.element == "f32" and not p.sums and of_all == 1 else 1.0
    products = (x.step + _products(p, single) * area / 4096) * alone
    through = sum(cut.tile) * 128 / x.sm_bytes
    body = max(of_all * steps * max(products, through), waves * steps * x.latency / (cut.stages - 1))
    body += (waves - 1) * x.latency  # first loads of each wave
    # each block writes its accumulator, and the last blocks read those of all slices
    added = of_all + -(-of_all // cut.parts) * cut.parts
    meet = x.meet + added * area * sums / x.added if cut.parts > 1 else 0.0
    store = of_all / cut.parts * area * BITS[p.output] / 8 / x.stored
    moved = ((p.m + p.n) * p.k * bits + p.m * p.n * BITS[p.output]) / 8 * p.matrices
    s = costs.sharpness
    return x.launch + x.latency + ((body + meet + store) ** s + (moved / costs.dram / 1e6) ** s) ** (1 / s)


def _products(p: Problem, single: bool) -> float:
    """Return the time of the MMAs of a step of a 64 x 64 tile in microseconds."""
    x, kind = WARP_COSTS, factors(p.element)[0]
    if BITS[kind] >= 32:
        return x.f64 if kind == "f64" else x.f32 if kind == "f32" and not p.sums else x.tf32
    across = (p.major_a != "k") + (p.major_b != "k")
    of_kind = x.integers if sums_of(p.element) == "i32" else x.floats
    return of_kind + x.bytes * across + x.single * single


def predict_exact(p: Problem, costs: Costs = COSTS) -> float:
    """Return the predicted time of an f32 GEMM with FMAs in large tiles, in microseconds.

    >>> round(2 * 4.096**3 / predict_exact(Problem(4096, 4096, 4096, "f32", "f32")) * 1e3, -1)  # TFLOP/s
    50.0
    """
    x, blocks = WARP_COSTS, Cut((128, 128), (2, 2)).blocks(p)
    of_all = -(-blocks // costs.sms)
    step = 4 * x.f32_large * (x.f32_alone if of_all == 1 else 1.0)
    return x.launch + x.latency + of_all * (_steps(p) * step + 128 * 128 * 4 / x.stored)


def predict_unaligned(p: Problem, sms: int = 132) -> float:
    """Return the predicted time of an f16 or bf16 GEMM whose rows TMA cannot read, in microseconds.

    >>> p = Problem(2645, 79, 63)
    >>> predict_unaligned(p) < predict_unaligned(p._replace(k=800))
    True
    """
    x, blocks = WARP_COSTS, p.matrices * -(-p.m // 128) * -(-p.n // 128)
    moved = p.matrices * (p.m * p.n + p.m * p.k + p.n * p.k) * 2 / x.unaligned_bytes
    return x.unaligned_launch + max(moved, -(-blocks // sms) * (p.k * x.unaligned + x.unaligned_block))


def predict_direct(elements: int) -> float:
    """Return the time to store a result whose rows TMA cannot write, in microseconds; it overlaps with the GEMM."""
    return elements / WARP_COSTS.direct


def is_stored_directly(elements: int, output: str) -> bool:
    """Return True if direct stores to unaligned rows are faster than a padded result that the array library copies.

    >>> is_stored_directly(10**5, "f16"), is_stored_directly(10**7, "f16")
    (True, False)
    """
    x = WARP_COSTS
    copied = x.unaligned_launch + 2 * elements * BITS[output] / 8 / x.unaligned_bytes
    return predict_direct(elements) < copied


def copies(sizes: list[int], *, transposed: bool, recorded: bool = False) -> float:
    """Return the time of operand copies in microseconds.

    Args:
        sizes: bytes of each operand.
        transposed: copies to another major, one launch each; otherwise one launch pads all operands.
        recorded: the call is replayed, so that its host time does not count.

    >>> copies([1 << 20], transposed=True) > copies([1 << 20], transposed=False)
    True
    """
    x = WARP_COSTS
    if not sizes:
        return 0.0
    if transposed:
        return x.host + sum(x.transpose + size / x.transposed for size in sizes)
    return (0.0 if recorded else x.host) + x.pad + sum(sizes) / x.padded
