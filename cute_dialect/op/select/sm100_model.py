"""Static bounds of GEMMs and attention on sm_100, from published rates: no kernel has been measured on the chip.

A bound is the time that one resource needs if nothing else takes time. The slowest resource gives the lower bound of a
kernel. Plans choose the tile with the lowest one.

>>> bound = bounds_of(Sm100Config(), Problem(8192, 8192, 8192, "f16", "f16", "k", "k"), NO_WORK)
>>> bound.mma, bound.limit
(917504.0, 'L2')
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.arch.targets import TARGETS
from cute_dialect.kernels.attention.sm100 import TILE, TILES, Sm100Attention
from cute_dialect.kernels.common.elements import BITS
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.sm100 import Sm100Config
from cute_dialect.kernels.gemm.sparse_sm100 import TILES as SPARSE_TILES
from cute_dialect.kernels.gemm.sparse_sm100 import SparseSm100Config
from cute_dialect.kernels.gemm.tcgen05_scales import VECTORS
from cute_dialect.op.problems.attention import Form
from cute_dialect.op.select.configurations import SCALINGS
from cute_dialect.op.select.cost_model import NO_WORK, Work
from cute_dialect.op.select.kernel_choice import Problem

_GHZ = {"sm_100a": 1.85, "sm_103a": 1.72, "sm_110a": 1.58}
"""Target -> clock that gives the published dense peaks of a B200, a B300 and a Thor with their SMs."""
FMAS = {32: 2048, 16: 4096, 8: 8192, 4: 16384}
"""Bits of an element -> multiply-adds per SM and cycle, for tiles of 128 rows; of 64 rows half as many."""
SHARED, L2, TMEM = 128, 64, 512
"""Bytes per SM and cycle of shared memory, of the L2, and of loads from tensor memory."""
_DRAM = {"sm_100a": 8e12, "sm_103a": 8e12, "sm_110a": 273e9}
"""Target -> bytes per second of DRAM."""
INSTRUCTIONS, SPECIALS = 128, 16
"""Results per SM and cycle of FMA and integer instructions, and of special functions."""
_STORED = 2.0
"""Instructions per element to convert and stage a result."""


def _assumptions(config: Sm100Config) -> str:
    """Return the rates as text."""
    dram, bits = _DRAM[config.chip], BITS[config.element] if config.scaling else 16
    rate = f"{dram / 1e12:g} TB/s of HBM" if dram >= 1e12 else f"{dram / 1e9:g} GB/s of DRAM"
    return (
        f"{config.processors} SMs at {_GHZ[config.chip]} GHz; per SM and cycle {FMAS[bits]} multiply-adds of {bits} "
        f"bits, {SHARED} bytes of shared memory, {L2} of the L2 (as on Hopper); {rate}"
    )


class Bounds(NamedTuple):
    """Cycles that each resource needs: for the tiles of the busiest block, the L2 on average but at least for a tile
    of the first block, and HBM for all blocks.
    """

    mma: float
    shared: float  # reads by the MMAs, and the staging of C
    epilogue: float  # instructions, special functions, and loads from tensor memory
    l2: float
    dram: float
    l2_bytes: int  # of all blocks
    dram_bytes: int  # each operand once
    tiles: int  # of the busiest block, or of the busiest pair of blocks
    ghz: float  # clock

    @property
    def cycles(self) -> float:
        """The lower bound."""
        return max(self[:5])

    @property
    def limit(self) -> str:
        """The slowest resource."""
        return ("MMA", "shared memory", "epilogue", "L2", "HBM")[self[:5].index(self.cycles)]

    @property
    def microseconds(self) -> float:
        """The lower bound in microseconds."""
        return self.cycles / self.ghz / 1e3


def bounds_of(config: Sm100Config, problem: Problem, work: Work) -> Bounds:
    """Return the bounds of a kernel for a problem, with the work of its epilogue."""
    (m, n), p = config.tile, problem
    steps = -(-p.k // config.depth)
    tiles = -(-p.m // m) * -(-p.n // n) * p.matrices
    each = -(-tiles // (config.processors // config.blocks))
    rows = m // config.blocks
    width, out = BITS[p.element], BITS[p.output] + work.read + work.written + work.scattered
    bits = width + 8 / VECTORS[config.scaling] if config.scaling else width  # of an element, with its part of a scale
    mma = each * max(rows, 128) * n * steps * config.depth / FMAS[width]
    shared = each * (steps * config.stage_bytes + 2 * rows * n * BITS[p.output] / 8) / SHARED
    each_element = max((work.instructions + _STORED) / INSTRUCTIONS + work.specials / SPECIALS, 4 / TMEM)
    stored = p.m * p.n * out  # TMA neither reads nor writes past the end of a matrix.
    l2_bytes = int(p.matrices * ((-(-p.n // n) * p.m + -(-p.m // m) * p.n) * p.k * bits + stored)) // 8
    of_rows, of_columns = min(rows, p.m), min(n, p.n)  # the part of a tile of the first block
    of_block = ((of_rows + min(config.loaded[1], p.n)) * p.k * bits + of_rows * of_columns * out) / 8
    l2 = max(l2_bytes / max(1, min(tiles * config.blocks, config.processors)), of_block) / L2
    ghz = _GHZ[config.chip]
    per_cycle = _DRAM[config.chip] / (ghz * 1e9)
    moved = int(p.matrices * ((p.m + p.n) * p.k * bits + stored)) // 8
    return Bounds(mma, shared, each * rows * n * each_element, l2, moved / per_cycle, l2_bytes, moved, each, ghz)


def sparse_bounds(config: SparseSm100Config, problem: Problem) -> Bounds:
    """Return the bounds of a kernel with a 2:4 sparse A, which multiplies at twice the rate of the dense one.

    An element of A has half a kept element and one bit of metadata. M and N are those of the kernel.
    """
    c, p, (m, n) = config.base, problem, config.base.tile
    steps, tiles, width, out = -(-p.k // config.depth), -(-p.m // m) * -(-p.n // n), BITS[p.element], BITS[p.output]
    each = -(-tiles // (c.processors // c.blocks))
    rows, bits = m // c.blocks, width / 2 + 1
    mma = each * rows * n * steps * config.depth / (2 * FMAS[width])
    shared = each * steps * config.stage_bytes / SHARED
    epilogue = each * rows * n * max(_STORED / INSTRUCTIONS, 4 / TMEM)
    stored = p.m * p.n * out
    l2_bytes = int((-(-p.n // n) * p.m * bits + -(-p.m // m) * p.n * width) * p.k + stored) // 8
    of_block = (rows * p.k * bits + min(c.loaded[1], p.n) * p.k * width + rows * min(n, p.n) * out) / 8
    l2 = max(l2_bytes / max(1, min(tiles * c.blocks, c.processors)), of_block) / L2
    moved, ghz = int((p.m * bits + p.n * width) * p.k + stored) // 8, _GHZ[c.chip]
    return Bounds(mma, shared, epilogue, l2, moved / (_DRAM[c.chip] / (ghz * 1e9)), l2_bytes, moved, each, ghz)


def choose_sparse(problem: Problem, chip: str, epilogue: Epilogue) -> SparseSm100Config:
    """Return the kernel with a 2:4 sparse A that has the lowest bound on a chip."""
    base = Sm100Config(problem.element, problem.output, stages=2, chip=chip, epilogue=epilogue)
    found = [SparseSm100Config(base._replace(tile=tile)) for tile in SPARSE_TILES]
    bounds = [sparse_bounds(config, problem) for config in found]
    return min(zip(found, bounds), key=lambda x: (x[1].cycles, x[1].mma))[0].deepest()


def lines_of(config: Sm100Config, problem: Problem, work: Work) -> tuple[tuple[str, str], ...]:
    """Return the bounds of a kernel as labels and texts."""
    return bound_lines(config, bounds_of(config, problem, work))


def bound_lines(config: Sm100Config, b: Bounds, *, is_sparse: bool = False) -> tuple[tuple[str, str], ...]:
    """Return bounds as labels and texts."""
    m, n = config.tile
    who = "block" if config.blocks == 1 else "pair of blocks"
    tiles = f"{b.tiles} tile{'s' * (b.tiles > 1)} of {m} x {n} per {who}"
    return (
        ("MMA", f"{b.mma:.0f} cycles: {tiles}"),
        ("shared", f"{b.shared:.0f} cycles: reads by the MMAs{', staging of D' * (not is_sparse)}"),
        ("epilogue", f"{b.epilogue:.0f} cycles"),
        ("L2", f"{b.l2:.0f} cycles: {b.l2_bytes / 1e6:.3g} MB"),
        ("HBM" if _DRAM[config.chip] >= 1e12 else "DRAM", f"{b.dram:.0f} cycles: {b.dram_bytes / 1e6:.3g} MB"),
        ("at least", f"{b.cycles:.0f} cycles, {b.microseconds:.1f} us, by the {b.limit}; not a prediction"),
        ("assumes", _assumptions(config) + ("; twice as many multiply-adds with a sparse A" if is_sparse else "")),
    )


_PER_SCORE = 3.5
"""Instructions per score of the softmax: half a maximum, half a sum, a fused multiply-add, half a conversion, and one
for the mask or the address."""
_TMEM_BYTES = 6
"""Bytes per score that the softmax loads from tensor memory and stores there: f32 and 16 bits."""


def attention_steps(config: Sm100Attention, form: Form) -> tuple[int, int]:
    """Return the steps of all blocks, and those of the longest block. A step is that of two tiles.

    Packed sequences have equal lengths here.

    >>> form = Form("bf16", "bhsd", False, 2, 4, 1, 300, 300, 128, 0.1, "right", True, 0, 0, False, None)
    >>> attention_steps(Sm100Attention(mask="right"), form)
    (40, 3)
    """
    queries, keys = form.queries, form.keys
    if form.packed:  # The lengths are known to the GPU only.
        queries, keys = (-(-x // max(1, form.batch)) for x in (queries, keys))
    shift = form.right + (keys - queries) * form.from_end
    rows = TILES * TILE
    blocks = range(-(-queries // rows))
    ends = [min((i + 1) * rows + shift, keys) if config.mask == "right" else keys for i in blocks]
    steps = [max(1, -(-end // TILE)) for end in ends]
    return sum(steps) * form.heads * form.batch, max(steps, default=1)


def attention_lines(config: Sm100Attention, form: Form, moved: int) -> tuple[tuple[str, str], ...]:
    """Return the bounds of attention as labels and texts. ``moved`` counts the bytes of each operand once."""
    steps, longest = attention_steps(config, form)
    sms, ghz = TARGETS[config.chip].sms, _GHZ[config.chip]
    busiest, scores = max(steps / sms, longest), TILES * TILE * TILE
    mma = busiest * scores * 2 * config.head / FMAS[16]
    softmax = busiest * scores * max(_PER_SCORE / INSTRUCTIONS + 1 / SPECIALS, _TMEM_BYTES / TMEM)
    shared = busiest * TILES * 3 * config.tile_bytes / SHARED  # of K, V and Q
    l2 = busiest * 2 * config.tile_bytes / L2
    dram = moved / (_DRAM[config.chip] / (ghz * 1e9))
    found = {"MMA": mma, "softmax": softmax, "shared": shared, "L2": l2}
    found["HBM" if _DRAM[config.chip] >= 1e12 else "DRAM"] = dram
    limit, cycles = max(found.items(), key=lambda x: x[1])
    notes = {"MMA": f": {busiest:.1f} steps of the busiest SM", "softmax": ": instructions and exponentials"}
    lines = [(name, f"{x:.0f} cycles{notes.get(name, '')}") for name, x in found.items()]
    least = f"{cycles:.0f} cycles, {cycles / ghz / 1e3:.1f} us, by the {limit}; not a prediction"
    rates = (
        f"{sms} SMs at {ghz} GHz; per SM and cycle {FMAS[16]} multiply-adds, {SPECIALS} exponentials, {INSTRUCTIONS} "
        f"other results, {L2} bytes of the L2 (as on Hopper){'; sequences of equal lengths' * form.packed}"
    )
    return (*lines, ("at least", least), ("assumes", rates))


def bound_of_tile(tile: tuple[int, int], problem: Problem, chip: str) -> float:
    """Return the lower bound of a kernel with a tile (M, N) on a chip, in cycles."""
    config = Sm100Config(problem.element, problem.output, tile=tile, chip=chip, scaling=SCALINGS.get(problem.sums, ""))
    return bounds_of(config, problem, NO_WORK).cycles
