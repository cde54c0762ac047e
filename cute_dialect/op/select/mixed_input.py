"""Choice of the kernel of ``op.mm_packed``: packed or unpacked weights; the tile, split-K slices and stages.

:data:`COSTS` predicts the time of each tile of its table, and the fastest is chosen. With few rows of x the bytes of
the weights bound the kernel. All SMs must load at once, hence the blocks of a cluster share the K of a tile while the
grid has fewer blocks than fit. More stages than a tile has here delay the first MMA: with 16 instead of 6, a row takes
18.4 us instead of 17.1 on an H200.

With many rows, unpacking the weights first and an ordinary GEMM may be faster. :func:`choose_plan` compares their
predicted time with that of the kernel.

>>> choose_config(1, 8192, 8192, Format("ui4", 128, "bf16", False), "bf16", "bf16").name
'mixed-ui4-g128-bf16-bf16-bf16-128x8-q7-p2-h'
>>> choose_config(2048, 8192, 8192, Format("ui4", 32, "bf16", False), "bf16", "bf16").name
'mixed-ui4-g32-bf16-bf16-bf16-128x256-q3-x2-s-t'
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import NamedTuple

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.kernels.common.elements import BITS
from cute_dialect.kernels.gemm.mixed_input import DEPTH, MixedConfig
from cute_dialect.op.problems.packed_weights import Format
from cute_dialect.op.select.gemm_dispatch import predict_padded
from cute_dialect.op.select.kernel_choice import Problem
from cute_dialect.op.select.mma_sync_model import predict_unaligned


class PackedPlan(NamedTuple):
    """Plan of an ``op.mm_packed`` call: packed or unpacked weights, whichever is predicted to be faster."""

    config: MixedConfig | None  # kernel that reads packed weights; None: unpack them for an ordinary GEMM
    microseconds: float  # predicted time
    other: float  # predicted time of the other way, or a lower bound of it


class Tile(NamedTuple):
    """A tile of the kernel and its costs."""

    columns: int  # rows of x
    rows: int  # rows of the weights
    share: int  # blocks of a cluster that share x; 1 or 2
    blocks: int  # blocks per SM, which determine the stages
    waves: int  # blocks per SM up to which K is split
    step: float  # microseconds per step of K and wave
    wave: float  # microseconds per wave besides its steps
    groups: tuple[float, float] = (1.0, 1.0)  # factors of a step with groups of 64 and 32
    convert: float = 1.0  # factor of a step if scales and x have different types


class Costs(NamedTuple):
    """Costs in microseconds, and the tiles."""

    tiles: tuple[Tile, ...]
    start: float  # of a kernel
    part: float  # per doubling of split-K slices
    bytes: float  # of packed weights, per microsecond
    unpack: float  # start of the kernel that unpacks weights
    unpacked_bytes: float  # that it reads and writes, per microsecond
    gemm: float  # least time of a GEMM
    margin: float  # least predicted gain of unpacking, for the host time of its second launch


COSTS = Costs(
    (
        Tile(8, 128, 1, 3, 1, 0.32, 0.15, (1.0, 1.2)),
        Tile(16, 128, 1, 2, 1, 0.34, 0.3, (1.0, 1.2)),
        Tile(32, 128, 1, 2, 1, 0.40, 0.6, (1.0, 1.2)),
        Tile(64, 64, 1, 2, 2, 0.28, 1.2, (1.0, 1.2)),
        Tile(128, 128, 1, 1, 1, 0.74, 2.5, convert=1.1),
        Tile(128, 128, 2, 1, 1, 0.70, 2.5, convert=1.1),
        Tile(256, 128, 1, 1, 1, 1.35, 4.5),
        Tile(256, 128, 2, 1, 1, 1.30, 4.5),
    ),
    start=5.3, part=0.37, bytes=2.8e6, unpack=3.5, unpacked_bytes=3.3e6, gemm=5.0, margin=1.5,
)  # fmt: skip
"""Costs on an H200. Those of tiles of up to 64 rows of x, and of the unpacking kernel, were fitted to the times of 121
problems (random ones and layers of models)."""

EXACT_ROWS = 64
"""Rows of x up to which scales multiply accumulators. With more rows they multiply weights, which are rounded."""

_LEAST_STEPS = 4
"""Steps of K, of 128 each, of a split-K slice."""


def candidates(
    m: int, n: int, k: int, format: Format, element: str, output: str, bias: bool = False, sms: int = 132
) -> Iterator[tuple[float, MixedConfig]]:
    """Yield the predicted time in microseconds, and the configuration, of each tile that serves a problem.

    Args:
        m: rows of x.
        n, k: rows and columns of the weights.
        format, element, output: formats of the weights, of x and of the result.
        bias: there is a bias.
        sms: SMs of the GPU.
    """
    steps = -(-k // DEPTH)
    for tile in COSTS.tiles:
        rows, columns, parts = -(-n // tile.rows), -(-m // tile.columns), 1
        if tile.share > rows or (m <= EXACT_ROWS < tile.columns and format.group):
            continue
        while parts < 8 and rows * columns * parts * 2 <= sms * tile.waves and steps >= 2 * parts * _LEAST_STEPS:
            parts *= 2
        c = MixedConfig(
            *format, element=element, output=output, rows=tile.rows, columns=tile.columns, share=tile.share,
            scaled=format.group > 0 and m > EXACT_ROWS, hint=columns == 1, bias=bias,
            parts=parts if tile.share == 1 else 1,
        )  # fmt: skip
        c = c._replace(stages=_stages(c, tile.blocks, -(-steps // c.parts)))
        if c.smem_bytes + DEFAULT_TARGET.reserved_shared > DEFAULT_TARGET.shared:  # partial accumulators of wide tiles
            c = c._replace(parts=1, stages=_stages(c._replace(parts=1), tile.blocks, steps))
        if c.columns >= 64 and c.parts == 1 and output != "f32" and n % 8 == 0:
            c = c._replace(staged=True)
        yield _predict(tile, c, m, n, k, format, sms), c


@lru_cache(maxsize=1024)
def _fastest(
    m: int, n: int, k: int, format: Format, element: str, output: str, bias: bool, sms: int
) -> tuple[float, MixedConfig]:
    return min(candidates(m, n, k, format, element, output, bias, sms), key=lambda found: found[0])


def choose_config(
    m: int, n: int, k: int, format: Format, element: str, output: str, bias: bool = False, sms: int = 132
) -> MixedConfig:
    """Return the configuration for ``m`` rows of x and ``n`` x ``k`` weights, as in :func:`candidates`."""
    return _fastest(m, n, k, format, element, output, bias, sms)[1]


@lru_cache(maxsize=1024)
def choose_plan(
    m: int,
    n: int,
    k: int,
    format: Format,
    element: str,
    output: str,
    bias: bool = False,
    sms: int = 132,
    *,
    exact: bool = False,
) -> PackedPlan:
    """Return the way that is predicted to be faster.

    With few rows of x the least time of a GEMM decides, without the milliseconds of host time of its cost model.

    Args:
        m, n, k, format, element, output, bias, sms: as in :func:`candidates`.
        exact: predict both times even if a lower bound decides; the choice is the same.
    """
    packed, c = _fastest(m, n, k, format, element, output, bias, sms)
    unpacked = COSTS.unpack + (_bytes(n, k, format) + 2 * n * k) / COSTS.unpacked_bytes
    if not exact and unpacked + COSTS.gemm + COSTS.margin >= packed:
        return PackedPlan(c, packed, unpacked + COSTS.gemm)
    unpacked += max(COSTS.gemm, _predict_gemm(Problem(m, n, k, element, output, "k", "k"), sms))
    if unpacked + COSTS.margin < packed:
        return PackedPlan(None, unpacked, packed)
    return PackedPlan(c, packed, unpacked)


def _predict(tile: Tile, c: MixedConfig, m: int, n: int, k: int, format: Format, sms: int) -> float:
    """Return the predicted time of the kernel that reads packed weights, in microseconds.

    With few rows of x the time is bound by the bytes of the weights, with many by the steps of all waves. In between
    both count, as in a norm.
    """
    step = tile.step * {64: tile.groups[0], 32: tile.groups[1]}.get(c.group, 1.0)
    step *= tile.convert if c.scaled and c.scale != c.element else 1.0
    blocks = -(-n // (c.rows * c.share)) * c.share * -(-m // c.columns) * c.parts
    steps = -(-k // (DEPTH * c.parts))  # of a split-K slice, rounded up
    computed, loaded = -(-blocks // sms) * (tile.wave + steps * step), _bytes(n, k, format) / COSTS.bytes
    return COSTS.start + COSTS.part * (c.parts.bit_length() - 1) + (loaded**4 + computed**4) ** 0.25


def _predict_gemm(p: Problem, sms: int) -> float:
    """Return the predicted time of the ordinary GEMM, in microseconds."""
    direct = p.n * BITS[p.output] % 128 != 0
    if p.k % 8 == 0:
        return predict_padded(p, [], "", sms, direct=direct)
    sizes = [2 * p.m * p.k, 2 * p.n * p.k]
    return min(predict_padded(p, sizes, "", sms, direct=direct), predict_unaligned(p, sms))


def _bytes(n: int, k: int, format: Format) -> int:
    """Return the bytes of packed weights."""
    return 4 * prod(format.shape(n, k))


def _stages(c: MixedConfig, blocks: int, steps: int) -> int:
    """Return the stages that fit if ``blocks`` blocks share an SM; no more than there are steps.

    Large stages, of which fewer than four would fit, get an SM of their own.
    """
    reserved = 2 * DEFAULT_TARGET.reserved_shared + 2048 * c.owned * (c.parts - 1)
    shared, alone = (
        (DEFAULT_TARGET.sm_shared // sharing - reserved) // (c.stage_bytes + 16) for sharing in (blocks, 1)
    )
    return max(2, min(max(shared, min(4, alone)), steps))
