"""Cost model of GEMM kernels, which predicts their times so that one can be chosen without measurement.

A block iterates over K in steps of 128 bytes.  A step takes the maximum of the time of the tensor cores, of the L2
traffic of all running blocks, and of the latency that the pipeline does not hide.  Added are the launch, the first
loads, the stores, the part of a store that is not hidden between waves, and the synchronization of split-K blocks.
DRAM traffic is a lower bound.

The constants of a GPU (:class:`Costs`) are fitted to measurements by ``cute-bench gemm --fit``.  Files for some GPUs
are in this package (``tables/costs-*``).  The user's files are in ``CUTE_CONFIG_DIR``, like tuned tables
(:mod:`cute_dialect.op.select.kernel_choice`).

>>> best(Problem(8192, 8192, 8192), COSTS).config.tile
(128, 256, 64)
>>> round(predict(best(Problem(8192, 8192, 8192), COSTS), Problem(8192, 8192, 8192), COSTS) / 1600, 0)
1.0
"""

# pyright does not know the types of numpy results for numbers or arrays.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cute_dialect.files import replace_file
from cute_dialect.kernels.common.elements import BITS
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.config import at_once, selects
from cute_dialect.op.select.candidates import FEW, SPLIT, STREAM, TURNS, Menu, menu, one, suiting
from cute_dialect.op.select.kernel_choice import Choice, Problem, TableError
from cute_dialect.runtime.settings import user_folder

if TYPE_CHECKING:  # pragma: no cover
    from numpy.typing import NDArray

FORMAT = 1
_COUNTS = ("sms", "fours", "eights")


class Work(NamedTuple):
    """Work of an epilogue per element of the accumulator."""

    instructions: float = 0.0  # of the FMA and integer pipes; those of half the rate count twice
    specials: float = 0.0  # exponentials, reciprocals and roots
    read: float = 0.0  # bits of matrices like the result
    written: float = 0.0  # bits of results other than D that kernels may store like D
    scattered: float = 0.0  # bits of other results
    reduced: float = 0.0  # number of row reductions
    prefetched: float = 0.0  # bits of ``read`` that kernels may prefetch
    whole: bool = False  # the epilogue is applied to all columns of a tile at once

    @property
    def prefetch_limit(self) -> int:
        """Most accumulator registers per thread of kernels that prefetch; with more, registers spill."""
        return 0 if not self.prefetched else 128 if self.instructions <= 40 and not self.whole else 96


NO_WORK = Work()


class Costs(NamedTuple):
    """Constants of a GPU; times are in microseconds, those of a tile for 128 x 256 elements.

    Ping-pong kernels have consumers that take turns.  A line is 128 bytes of an operand.
    """

    sms: int = 132  # multiprocessors
    fours: int = 30  # clusters of four blocks that run at once
    eights: int = 14  # clusters of eight blocks that run at once
    ghz: float = 1.758  # sustained clock
    mma: float = 1.001  # cycles of a step relative to the peak of the tensor cores
    mma_tf32: float = 0.9962  # factor for tf32
    mma_8: float = 1.05  # factor for 8-bit elements
    step_cycles: float = 9.894  # overhead of a step
    l2_bytes: float = 33.97  # bytes per cycle and SM through L2 while all SMs read
    dram: float = 4.092  # TB/s
    latency: float = 1.339  # of a load
    other_major: float = 1.008  # factor for steps whose A or B is not contiguous along K
    launch: float = 3.436
    first_loads: float = 1.403
    clusters_meet: float = 1.396  # relative to first_loads: of a cluster that shares A or B
    clusters_share: float = 0.9913  # relative to first_loads: of a cluster that shares A and B
    store: float = 0.4581
    store_tile: float = 1.022  # of a tile of 16-bit results
    not_hidden: float = 0.2201  # fraction of a store that the next tile does not hide
    wave: float = 0.1873  # overhead between tiles
    alone: float = 1.198  # factor for the MMAs of the only tile of a ping-pong block
    split: float = 2.516  # split-K: synchronization
    split_tile: float = 2.72  # split-K: of a tile
    split_add: float = 2.122  # split-K: of the additions
    stream: float = 5.365  # stream-K: synchronization
    collect_tile: float = 2.08  # stream-K: of a tile
    few_launch: float = 3.406  # launch of a few-rows kernel
    few_split: float = 0.4213  # few-rows kernels: synchronization of split-K
    sharpness: float = 3.658  # exponent of the sums of powers that approximate a maximum
    shared: float = 0.9881  # cycles of a read of 128 bytes of shared memory
    torn: float = 1.232  # factor for lines that are not aligned to 128 bytes
    torn_latency: float = 0.8045  # exponent of ``torn`` for their latency
    store_columns: float = 0.8017  # factor for stores of columns
    sm_bytes: float = 73.0  # maximum of bytes per cycle that one SM reads through L2
    torn_dram: float = 1.137  # factor for DRAM reads of lines that are not aligned
    turns: float = 0.933  # factor for the MMAs of ping-pong consumers
    torn_sm: float = 1.918  # exponent of ``torn`` for the reads of one SM
    halves: float = 1.325  # factor for lines of 64 bytes or less
    few_tile: float = 1.77  # few-rows kernels: of a tile
    odd: float = 1.378  # factor for lines half of which begin in the middle of 32 bytes
    odd_store: float = 1.184  # factor for stores of such lines
    together: float = 0.4605  # fraction of concurrent reads of a line that L2 serves once
    through: float = 60.0  # extra cycles of a step that loads A to registers (an upper estimate, not measured)
    promote: float = 113.0  # two-level accumulation: cycles between two steps of a warpgroup, without additions
    promote_two: float = 47.0  # the same with two accumulators
    promote_add: float = 1.62  # cycles of an addition
    promote_scaled: float = 23.0  # extra cycles of a step with block scales
    promote_select: float = 6.9  # cycles to select one of two scales
    promote_cluster: float = 64.0  # extra cycles of a step whose operands a cluster shares
    epilogue: float = 1.0  # cycles of an instruction of an epilogue for 128 elements
    epilogue_special: float = 6.5  # the same for an exponential or a reciprocal
    epilogue_read: float = 2.9  # of a tile of 16-bit elements that the epilogue reads
    epilogue_read_full: float = 1.9  # factor if the accumulator leaves few registers for loads in flight
    epilogue_prefetched: float = 1.6  # of such a tile that is prefetched
    epilogue_swapped: float = 1.5  # factor for long epilogues of the transposed problem
    epilogue_written: float = 0.6  # of a tile of results other than D, stored with TMA
    epilogue_scattered: float = 3.9  # the same, stored by lanes
    epilogue_turns: float = 0.3  # fraction of these that ping-pong consumers do not hide


COSTS = Costs()
"""Constants of an H200 (2026-11-23).

They are fitted to sweeps of 718 problems (seeds 202, 303, 404, 505 and 606) with 14 to 22 kernels each, and of 68 slow
problems (seeds 17 and 18) with 30 to 40 each.
"""

GIVEN = (
    "sms", "fours", "eights", "ghz", "epilogue", "epilogue_special", "epilogue_read", "epilogue_read_full",
    "epilogue_prefetched", "epilogue_swapped", "epilogue_written", "epilogue_scattered", "epilogue_turns",
)  # fmt: skip
"""Constants that are not fitted to plain GEMMs: numbers of SMs and clusters, the clock, and costs of epilogues.

The costs of epilogues are measured on an H200: 66 pairs of problem and epilogue, with 9 to 11 tiles each.
"""

RANGES = {"sharpness": (1.5, 20.0), "not_hidden": (0.01, 1.0), "wave": (0.001, 1.0), "alone": (0.8, 1.5)}
"""Bounds for the fit of a constant; those of other constants are 0.1 to 10 times the value in :data:`COSTS`."""


def predict(choice: Choice, problem: Problem, costs: Costs = COSTS, work: Work = NO_WORK) -> float:
    """Return the predicted time of a kernel for a problem in microseconds, with operands in DRAM.

    Args:
        work: the work of its epilogue.

    >>> p = Problem(4096, 4096, 4096)
    >>> 150 < predict(best(p), p) < 250
    True
    """
    return float(times(one(choice), problem, costs, work)[0])


class CostQuery(NamedTuple):
    """Properties of a problem in the model; for many problems at once, arrays with an entry per kernel."""

    m: Any
    n: Any
    k: Any
    matrices: Any
    bits: Any
    out_bits: Any
    torn_a: Any
    torn_b: Any
    odd_a: Any
    odd_b: Any
    odd_out: Any
    straight_a: Any
    straight_b: Any

    @classmethod
    def of(cls, p: Problem) -> CostQuery:
        """Return the properties of a problem.

        ``torn``: the lines of A or B are not aligned to 128 bytes.  ``odd``: half the lines of A, B or the result
        begin in the middle of 32 bytes.  ``straight``:  A or B is contiguous along K.
        """
        bits, out_bits = BITS[p.element], BITS[p.output]
        long_a, long_b = ((p.k if major == "k" else x) * bits for major, x in _lines(p))
        torn = long_a % 1024 != 0, long_b % 1024 != 0
        odd = long_a % 256 != 0, long_b % 256 != 0, p.n * out_bits % 256 != 0
        straight = p.major_a == "k", p.major_b == "k"
        return cls(p.m, p.n, p.k, p.matrices, bits, out_bits, *torn, *odd, *straight)


def _at_once(sms: int, fours: int, eights: int, cluster: Any) -> Any:
    """Return the number of clusters of a size that run at once."""
    return np.where(cluster > 4, eights, np.where(cluster == 4, fours, np.maximum(1, sms // cluster)))


def _lines(p: Problem) -> tuple[tuple[str, int], tuple[str, int]]:
    return (p.major_a, p.m), (p.major_b, p.n)


class _Fixed:
    """The parts of the times of a menu's kernels that do not depend on the problem, cached for the last costs."""

    def __init__(self, k: Menu, x: Costs):
        self.costs, cycle, s = x, 1e-3 / x.ghz, x.sharpness
        self.few, self.turns, self.stream, self.split = (k.way == way for way in (FEW, TURNS, STREAM, SPLIT))
        self.streams, self.swapped = bool(self.stream.any()), k.swapped
        self.cluster_m, self.cluster_n, self.parts, self.deferred = k.cluster_m, k.cluster_n, k.parts, k.deferred
        self.cluster = k.cluster_m * k.cluster_n
        self.down, self.wide = k.rows * k.cluster_m, k.columns * k.cluster_n  # extents of the tile of a cluster
        # A kernel launches as many clusters as usually run at once; clusters that do not run wait until others end.
        self.slots = _at_once(x.sms, at_once(x.sms, 4), at_once(x.sms, 8), self.cluster)
        self.together = _at_once(x.sms, x.fours, x.eights, self.cluster)
        self.few_together = _at_once(x.sms, x.fours, x.eights, k.parts)
        self.at_once = self.slots * self.cluster
        self.mma, self.step_cycles = k.rows * k.columns / 32 * x.mma * cycle, x.step_cycles * cycle
        if k.base.promote:
            # A warpgroup adds after its MMAs, or, with two accumulators, during the next MMAs; meanwhile another warp
            # group may issue MMAs.
            groups = np.where(k.rows == 256, 2, k.rows / 64)
            added = k.rows / 64 / groups * k.columns / 2 * x.promote_add
            if k.base.scaled:
                added = added + x.promote_scaled
                if not k.base.scaled_columns:
                    selected = np.array([selects(int(n)) for n in np.atleast_1d(k.columns)]).reshape(
                        np.shape(k.columns)
                    )
                    added = added + selected * k.rows / 64 / groups * x.promote_select
            alone = np.where(
                k.accumulators == 2, (added + x.promote_two) * cycle, self.mma / groups + (added + x.promote) * cycle
            )
            meet = np.where(self.cluster > 1, x.promote_cluster * cycle, 0.0)
            self.mma = (self.mma**s + alone**s) ** (1 / s) + meet
        self.reads = (k.rows * (1 + k.columns / 64) * x.shared * cycle) ** s
        self.stages = k.stages ** (-s)
        self.narrow = k.columns % 64 != 0
        self.rows, self.columns = k.live / k.cluster_n, k.columns / k.cluster_m
        self.raster = k.cluster_m * 8
        self.tile = tile = k.rows * k.columns / 32768
        self.stored = np.where(k.swapped, x.store_columns, 1.0)
        added = x.split_add * (k.parts * tile / k.finishers)
        self.shared = x.split + x.split_tile * tile + added
        self.exchanged = np.where(k.parts > 1, x.few_split * (1 + 0.2 * k.parts) + x.few_tile * tile, 0.0)
        # Loads that a cluster shares wait until the whole cluster is running.
        both = np.minimum(k.cluster_m, k.cluster_n) > 1
        meet = np.where(self.cluster == 1, 0.0, np.where(both, x.clusters_share, x.clusters_meet))
        self.begin = np.where(self.few, x.few_launch, x.launch + x.first_loads * meet) + x.first_loads

    def by_order(self, of_a: Any, of_b: Any) -> Any:
        """Return the value for the rows of a kernel: that of A, or of B if the problem is transposed."""
        if not isinstance(of_a, np.ndarray) and not isinstance(of_b, np.ndarray) and of_a == of_b:
            return of_a
        return np.where(self.swapped, of_b, of_a)


def _fixed(found: Menu, costs: Costs) -> _Fixed:
    """Return the cached parts of the times of a menu."""
    kept = found.kept
    if not isinstance(kept, _Fixed) or kept.costs != costs:
        found.kept = kept = _Fixed(found, costs)
    return kept


def _either(which: Any, yes: float, no: float) -> Any:
    """Return one of two numbers; for an array, one per entry."""
    if isinstance(which, np.ndarray):
        return np.where(which, yes, no)
    return yes if which else no


def _epilogue(found: Menu, f: _Fixed, x: Costs, p: CostQuery, work: Work) -> tuple[Any, Any]:
    """Return the time of the epilogue of a tile in microseconds, and the part that ping-pong consumers do not hide.

    The second one excludes special functions.
    """
    tile = 32768 / 128 * 1e-3 / x.ghz * x.epilogue
    # The pipes work concurrently; as for steps, a sum of powers approximates the maximum.
    # Kernels of the transposed problem reduce rows with shuffles between lanes, to a partial result per 16 columns.
    instructions = work.instructions + np.where(f.swapped, 2.0 * work.reduced, 0.0)
    pipes = (instructions**4 + (work.specials * x.epilogue_special) ** 4) ** 0.25
    atoms = np.where((found.rows == 256) | (f.turns & (found.rows == 128)), 2, 1)
    registers = atoms * found.columns / 2  # accumulator registers per thread
    # An epilogue that is applied to a whole tile holds the accumulator and the result, and spills earlier.
    full = np.where(registers >= (120 if work.whole else 176), x.epilogue_read_full, 1.0)
    moved = work.read / 16 * x.epilogue_read * full
    if work.prefetched:
        may = ~(f.deferred | f.swapped | f.few | f.split | f.stream) & (found.rows != 192)
        ahead = work.prefetched / 16 * x.epilogue_prefetched
        moved = np.where(may & (registers <= work.prefetch_limit), ahead, moved)
    staged = ~(f.few | f.split | f.stream)
    # The blocks that share a few-rows tile do not speed up stores by lanes.
    by_lanes = np.where(f.few, found.parts, 1) * x.epilogue_scattered
    moved = moved + work.written / 16 * np.where(staged, x.epilogue_written, by_lanes)
    partial = np.where(f.swapped, 2.0 * work.reduced, 0.0)  # bits per element of the result
    moved = moved + (work.scattered + partial) / 16 * by_lanes
    # Shorter epilogues with one result are not measured.
    long = work.written > 0 or work.reduced > 0 or work.instructions > 20
    size = f.tile * np.where(f.swapped & long, x.epilogue_swapped, 1.0)
    return (pipes * tile + moved) * size, (instructions * tile + moved) * size * x.epilogue_turns


def times(found: Menu, problem: Problem | CostQuery, costs: Costs = COSTS, work: Work = NO_WORK) -> NDArray[np.float64]:
    """Return the predicted times of all kernels of a menu in microseconds, see :func:`predict`."""
    p = problem if isinstance(problem, CostQuery) else CostQuery.of(problem)
    x, f = costs, _fixed(found, costs)
    m, n = f.by_order(p.m, p.n), f.by_order(p.n, p.m)
    down, wide = np.ceil(m / f.down), np.ceil(n / f.wide)
    tiles = down * wide * p.matrices
    steps = np.ceil(p.k * p.bits / 1024)
    running = tiles * f.parts * f.cluster  # blocks, if all ran at once
    over = running - np.floor(running / f.at_once) * f.at_once  # numpy's remainder of floats is slow
    last = np.where(over > 0, over, f.at_once)  # blocks of the last wave
    several = running > last
    busy = np.where(f.stream | several if f.streams else several, f.at_once, last)

    # A step of K: MMAs, reads of shared memory, L2 traffic, latency.
    cycle, sharp = 1e-3 / x.ghz, x.sharpness
    kind = _either(p.bits == 32, x.mma_tf32, _either(p.bits == 8, x.mma_8, 1.0))
    torn_a, torn_b = (
        _either(torn, x.torn, 1.0) * _either(odd, x.odd, 1.0)
        for torn, odd in ((p.torn_a, p.odd_a), (p.torn_b, p.odd_b))
    )
    # Lines along N are 64 bytes or less if the number of columns is not a multiple of 64.
    halves = np.where(
        f.narrow, f.by_order(_either(p.straight_b, 1.0, x.halves), _either(p.straight_a, 1.0, x.halves)), 1.0
    )
    columns = f.columns * halves
    rows_alone, columns_alone = (
        f.by_order(*y) for y in ((torn_a**x.torn_sm, torn_b**x.torn_sm), (torn_b**x.torn_sm, torn_a**x.torn_sm))
    )
    alone = (f.rows * rows_alone + columns * columns_alone) * (128 / x.sm_bytes * cycle)
    rows, columns = f.rows * f.by_order(torn_a, torn_b), columns * f.by_order(torn_b, torn_a)
    down, wide = down * f.cluster_m, wide * f.cluster_n
    most_down, of_rows, of_columns = np.minimum(down, f.raster), rows * f.cluster_n, columns * f.cluster_m

    def loads(busy: Any) -> Any:
        # L2 serves concurrent reads of a line once, in part.
        of_all = busy / f.parts
        across = np.minimum(wide, np.ceil(of_all / most_down))
        along = np.minimum(down, np.ceil(of_all / across))
        again = np.maximum(1.0, of_all / (across * along))
        once = f.parts * again * (along * of_rows + across * of_columns)
        lines = x.together * once + (1 - x.together) * busy * (rows + columns)
        return np.maximum(lines * (128 / x.sms / x.l2_bytes * cycle), alone)

    latency = x.latency * np.maximum(torn_a, torn_b) ** x.torn_latency
    along_k = np.logical_and(p.straight_a, p.straight_b)
    registers = _either(np.logical_and(~along_k, np.not_equal(p.bits, 16)), x.through * cycle, 0.0)
    # A sum of powers approximates the maximum.
    others = (f.mma * kind + (f.step_cycles + registers)) ** sharp + f.reads + latency**sharp * f.stages
    major = _either(along_k, 1.0, x.other_major)
    step, last_step = ((others + loads(n) ** sharp) ** (1 / sharp) * major for n in (busy, last))

    odd_store = _either(p.odd_out, x.odd_store, 1.0)
    store = (x.store + x.store_tile * odd_store * p.out_bits / 16 * f.tile) * f.stored
    part_steps = np.ceil(steps / f.parts)
    waves = np.ceil(tiles / f.slots)
    waves = waves * np.where(np.ceil(tiles / waves) > f.together, 2, 1)
    product, last_product = steps * step, steps * last_step
    after, seen = (0.0, 0.0) if work == NO_WORK else _epilogue(found, f, x, p, work)
    products = (waves - 1) * product + last_product
    # One time per schedule.
    between = store * np.where(f.deferred, x.not_hidden, 1.0) + x.wave
    body = products + (waves - 1) * (between + after) + store + after
    again = np.maximum(np.maximum(0.0, store + after - product) / 2, seen) + x.wave
    in_turns = np.where(
        waves > 1, products * x.turns + store + after + (waves - 1) * again, last_product * x.alone + store + after
    )
    body = np.where(f.turns, in_turns, body)
    finished = after / found.finishers
    body = np.where(f.split, part_steps * last_step + store + f.shared + finished, body)
    of_few = part_steps * step + store + after / found.parts
    body = np.where(f.few, np.ceil(tiles / f.few_together) * of_few + f.exchanged, body)
    if f.streams:
        streamed = _shared_last_wave(x, found, tiles, f.slots, steps, step, store) + waves * after
        body = np.where(f.stream, streamed, body)
    scattered = x.torn_dram - 1
    read = p.k * (p.m * (1 + scattered * p.torn_a) + p.n * (1 + scattered * p.torn_b)) * p.bits / 8
    moved = (read + p.m * p.n * (p.out_bits + work.read + work.written + work.scattered) / 8) * p.matrices
    return f.begin + (body**sharp + (moved / x.dram / 1e6) ** sharp) ** (1 / sharp)


def _shared_last_wave(x: Costs, k: Menu, tiles: Any, slots: Any, steps: int, step: Any, store: Any) -> Any:
    """Return the time of a stream-K kernel, in which all blocks share the tiles of the last wave."""
    whole, left = np.divmod(tiles, slots)
    tile = k.rows * k.columns / 32768
    # With too few steps the last wave is not shared.
    as_ever = (whole + (left > 0)) * steps * step + (whole + 1) * store / 2 + store
    body = whole * steps * step + np.maximum(0, whole - 1) * store * x.not_hidden + np.where(whole > 0, store, 0.0)
    gathered = x.stream + x.collect_tile * tile * np.maximum(1.0, slots / np.maximum(1, left)) + store
    body = body + np.where(left > 0, np.ceil(left * steps / slots) * step + gathered, 0.0)
    return np.where(left * steps < slots, as_ever, body)


def ranked(
    problem: Problem, costs: Costs = COSTS, count: int | None = None, work: Work = NO_WORK
) -> list[tuple[float, Choice]]:
    """Return the kernels that can compute a problem with their predicted microseconds, the fastest first.

    Args:
        count: number of kernels; default: all.
        work: the work of their epilogue.
    """
    found, taken = _suiting(problem, costs, work)
    order = np.argsort(taken, kind="stable")[: np.count_nonzero(np.isfinite(taken))][:count]
    return [(float(taken[i]), found.choice(int(i))) for i in order]


@lru_cache(maxsize=4096)
def best(problem: Problem, costs: Costs = COSTS, work: Work = NO_WORK) -> Choice:
    """Return the kernel that is predicted to be the fastest, the first of :func:`ranked`."""
    found, taken = _suiting(problem, costs, work)
    return found.choice(int(taken.argmin()))


def _suiting(problem: Problem, costs: Costs, work: Work) -> tuple[Menu, NDArray[np.float64]]:
    """Return a menu and the times of its kernels; infinite for kernels that cannot compute the problem."""
    found = menu(problem, costs.sms)
    return found, np.where(suiting(found, problem), times(found, problem, costs, work), np.inf)


def forget() -> None:
    """Clear the cache of choices."""
    best.cache_clear()


# ---------------------------------------------------------------------------------------------------------------- files


def _name(gpu: str) -> str:
    return f"costs-{re.sub(r'[^a-z0-9]+', '-', gpu.lower()).strip('-')}.json"


def costs_path(gpu: str) -> Path:
    """Return the path of the user's costs for a GPU; ``gpu``: its name as reported by the driver."""
    return Path(user_folder("CUTE_CONFIG_DIR", "XDG_CONFIG_HOME", ".config")) / "gemm" / _name(gpu)


_TOLD: dict[tuple[str, int], tuple[int, int]] = {}


def tell_clusters(gpu: str, sms: int, fours: int, eights: int) -> None:
    """Set the numbers of clusters of four and of eight blocks that a GPU runs at once, as reported by its driver.

    They differ among chips of one name.
    """
    _TOLD[gpu, sms] = fours, eights
    costs_of.cache_clear()


@cache
def costs_of(gpu: str, sms: int = 132) -> Costs:
    """Return the costs of a GPU: the user's, those of this package, or those of an H200 with its number of SMs.

    The numbers of :func:`tell_clusters` replace those of a file.  Raises TableError for a file that cannot be read.
    """
    found, told = _costs_of(gpu, sms), _TOLD.get((gpu, sms))
    return found._replace(fours=told[0], eights=told[1]) if told else found


def _paths(gpu: str) -> tuple[Path, Path]:
    """Return the paths of the user's costs of a GPU, and of those of this package."""
    return costs_path(gpu), Path(__file__).parent / "tables" / _name(gpu)


def _costs_of(gpu: str, sms: int) -> Costs:
    for path in _paths(gpu):
        found = read_costs(path)
        if found is not None:
            return found
    return COSTS._replace(sms=sms, fours=at_once(sms, 4), eights=at_once(sms, 8))


def has_costs(gpu: str) -> bool:
    """Return True if the costs of a GPU were measured, by the user or for this package."""
    return gpu == "NVIDIA H200" or any(path.exists() for path in _paths(gpu))


def read_costs(path: Path) -> Costs | None:
    """Return the costs in a file; None if there is no file, or its format is another one.  Raises TableError."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        found = json.loads(text)
        if found["format"] != FORMAT:
            return None
        values = found["costs"]
        unknown = sorted({*values} - {*Costs._fields})
        if unknown:
            raise ValueError(f"unknown costs {', '.join(unknown)}")
        for name, value in values.items():
            least = 1 if name in _COUNTS else 0
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < float("inf"):
                raise ValueError(f"{name} is {value!r}")
        sms = int(values.get("sms", COSTS.sms))
        counts = {"sms": sms, "fours": at_once(sms, 4), "eights": at_once(sms, 8)}
        return Costs(**{**values, **{name: int(values.get(name, n)) for name, n in counts.items()}})
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise TableError(f"{path} is not a file of GPU costs ({e}); write one with cute-bench gemm --fit") from None


def write_costs(path: Path, gpu: str, costs: Costs, said: Iterable[tuple[str, object]] = ()) -> None:
    """Write the costs of a GPU with metadata (date, command, quality); the file is replaced atomically."""
    values = {n: v if n in _COUNTS else float(f"{v:.6g}") for n, v in costs._asdict().items()}
    text = json.dumps({"format": FORMAT, "gpu": gpu, **dict(said), "costs": values}, indent=1)
    replace_file(path, f"{text}\n".encode())
    costs_of.cache_clear()


# ---------------------------------------------------------------------------------------------------- work of epilogues


_INSTRUCTIONS: dict[str, tuple[float, float]] = {
    "accum": (0, 0), "constant": (0, 0), "load": (0, 0), "even": (0, 0), "odd": (0, 0), "interleave": (0, 0),
    "row": (0, 0), "column": (0, 0), "matrix": (0, 0), "identity": (0, 0), "negative": (0, 0), "abs": (0, 0),
    "relu": (2, 0), "leaky_relu": (3, 0), "prelu": (3, 0), "relu6": (4, 0), "hardsigmoid": (5, 0), "hardswish": (8, 0),
    "sigmoid": (3, 2), "silu": (6, 2), "tanh": (14, 2), "gelu": (13, 1), "gelu_tanh": (9, 2), "softplus": (30, 2),
    "elu": (28, 1), "mish": (11, 2), "square_relu": (3, 0), "d_relu": (4, 0), "d_leaky_relu": (4, 0), "d_relu6": (4, 0),
    "d_hardsigmoid": (4, 0), "d_hardswish": (5, 0), "d_sigmoid": (6, 2), "d_silu": (14, 4), "d_tanh": (8, 2),
    "d_gelu": (20, 2), "d_gelu_tanh": (20, 4), "d_softplus": (3, 2), "d_elu": (5, 1), "d_mish": (18, 2),
    "divide": (10, 1), "floor_divide": (14, 1), "remainder": (16, 1), "sqrt": (8, 1), "rsqrt": (4, 1), "exp": (3, 1),
    "exp2": (2, 1), "log": (10, 1), "erf": (20, 1), "maximum": (2, 0), "minimum": (2, 0), "power_of_two": (4, 0),
    "cast": (2, 0), "random": (30, 0), "whole": (4, 0), "block": (4, 0), "hook": (4, 0),
}  # fmt: skip
"""Operation of a graph -> instructions and special functions; other operations are one instruction."""
_VECTOR = 2.5
"""Instructions per element of a per-column vector: an exchange between lanes, and a conversion."""
_REDUCED = 3.0
"""Instructions per element of a reduction."""


@lru_cache(maxsize=1024)
def work_of(epilogue: Epilogue | None, output: str) -> Work:
    """Return the work of an epilogue; none for None.

    Args:
        output: element of the result, and of a source that does not belong to a graph.
    """
    graph = None if epilogue is None else epilogue.as_graph()
    if graph is None:
        return NO_WORK
    counts = [_INSTRUCTIONS.get(node.op, (1.0, 0.0)) for node in graph.nodes]
    share = [0.5 if half else 1.0 for half in graph.halves]
    vectors = sum(_VECTOR - 1.0 for x in graph.inputs if x.kind == "row")
    reduced = sum(_REDUCED for x in graph.outputs if x.reduce)
    own = {} if epilogue is None or epilogue.graph is not None else {"f32": BITS[output]}
    read = sum(
        own.get(x.element, BITS.get(x.element, 32)) * (0.5 if x.half else 1.0) for x in graph.inputs if x.kind == "aux"
    )
    bits = [
        (x.tma and x.element in ("", output) and BITS[output] == 16, BITS[x.element or output] * share[x.node])
        for x in graph.outputs[1:] if not x.reduce and not x.block
    ]  # fmt: skip
    instructions = sum(n * part for (n, _), part in zip(counts, share)) + vectors + reduced
    # Short epilogues of whole tiles are not faster with prefetched matrices.
    is_short = graph.reduces and instructions <= 20
    return Work(
        instructions,
        sum(n * part for (_, n), part in zip(counts, share)),
        read,
        sum(n for like, n in bits if like),
        sum(n for like, n in bits if not like),
        float(sum(x.reduce != "" and x.axis == "n" for x in graph.outputs)),
        0 if is_short or epilogue is None or BITS[output] == 32 else _prefetched_bits(epilogue),
        graph.reduces,
    )


def _prefetched_bits(epilogue: Epilogue) -> int:
    """Return the bits of a 16-bit matrix that may be prefetched; more matrices take too many registers."""
    graph = epilogue.graph
    if graph is None or graph.paired or epilogue.whole_tiles:
        return 0
    read = [x for x in graph.inputs if x.kind == "aux"]
    bits = sum(BITS.get(x.element, 32) for x in read)
    return bits if bits <= 16 and all(x.pairs for x in read) else 0
