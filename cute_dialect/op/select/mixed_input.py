"""Choice of the kernel of ``op.mm_packed``: packed or unpacked weights; the tile, split-K slices and stages.

:data:`COSTS` predicts the time of each tile of its table, and the fastest is chosen. With few rows of x the bytes of
the weights bound the kernel. All SMs must load at once, hence the blocks of a cluster share the K of a tile while the
grid has fewer blocks than fit. More stages than a tile has here delay the first MMA: with 16 instead of 6, a row takes
18.4 us instead of 17.1 on an H200.

With many rows, unpacking the weights first and an ordinary GEMM may be faster. :func:`choose_plan` compares their
predicted time with that of the kernel.

>>> choose_config(1, 8192, 8192, Format("ui4", 128, "bf16", False), "bf16", "bf16").name
'mixed-ui4-g128-bf16-bf16-bf16-128x8-q7-p2-l1-h'
>>> choose_config(2048, 8192, 8192, Format("ui4", 32, "bf16", False), "bf16", "bf16").name
'mixed-ui4-g32-bf16-bf16-bf16-128x256-q3-s-t'
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import NamedTuple

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.kernels.common.elements import BITS
from cute_dialect.kernels.gemm.mixed_input import DEPTH, WEIGHTS, MixedConfig
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
    """A tile of the kernel, and the time of a step of 128 of K with 4-bit weights."""

    columns: int  # rows of x
    step: float  # microseconds per step and wave
    blocks: int = 1  # blocks per SM, which determine the stages
    rows: int = 128  # rows of the weights
    waves: int = 1  # blocks per SM of a wave, and up to which K is split
    alone: float = 1.0  # factor of a step if there are no more blocks than SMs


class Costs(NamedTuple):
    """Costs in microseconds, and the tiles.

    Pairs of factors of a step are for tiles of up to 128 columns, and of more.
    """

    tiles: tuple[Tile, ...]
    start: float  # of a kernel
    part: tuple[float, float]  # per doubling of split-K slices; per 128 partial accumulators that a block sends
    wave: tuple[float, float, float]  # per wave besides its steps: of any tile, per column, and per column if staged
    bytes: float  # of packed weights, per microsecond
    operations: float  # of all SMs, per microsecond, which the power of the GPU sustains
    outside: float  # per step and row of a tile past the end of x, beyond 16 rows: TMA fills them slowly
    groups: tuple[float, float]  # factors of unscaled groups of 64 and 32
    scaled: tuple[float, float]  # of scaled weights
    convert: tuple[float, float]  # of scaled weights if scales and x have different types
    wide: tuple[float, float]  # of weights of 8 bits
    zeros: tuple[float, float]  # of zero points
    unpack: float  # start of the kernel that unpacks weights
    unpacked_bytes: float  # that it reads and writes, per microsecond
    gemm: float  # least time of a GEMM
    margin: float  # least predicted gain of unpacking, for the host time of its second launch


COSTS = Costs(
    (
        Tile(8, 0.281, 3), Tile(16, 0.311, 2), Tile(32, 0.353, 2), Tile(48, 0.396, 2),
        Tile(64, 0.435, 2, 64, 2, 0.625), Tile(64, 0.442), Tile(80, 0.479), Tile(96, 0.518), Tile(112, 0.563),
        Tile(128, 0.608), Tile(144, 0.719), Tile(160, 0.784), Tile(176, 0.874), Tile(192, 0.955), Tile(208, 1.04),
        Tile(224, 1.116), Tile(240, 1.196), Tile(256, 1.277),
    ),
    start=4.83, part=(0.248, 0.0416), wave=(1.52, 0.0177, 0.0087), bytes=3.55e6, operations=8.4e8, outside=0.007,
    groups=(1.07, 1.19), scaled=(1.06, 0.977), convert=(1.28, 1.05), wide=(1.22, 1.13), zeros=(1.1, 1.04),
    unpack=3.5, unpacked_bytes=3.3e6, gemm=5.0, margin=1.5,
)  # fmt: skip
"""Costs on an H200, fitted to 226 times of 72 problems with a mean error of 4%. Steps of 112, 192, 224 and 240 columns
are interpolated. Split-K slices of 48, 80 and more than 128 columns are corrected for a slower reduction."""

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
    steps, scaled = -(-k // DEPTH), format.group > 0 and m > exact_rows(format.group)
    for tile in COSTS.tiles:
        if tile.columns > 64 and format.group and not scaled:
            continue
        rows, columns, parts, pieces = -(-n // tile.rows), -(-m // tile.columns), 1, tile.rows * tile.columns // 512
        most = 8 if pieces % 8 == 0 or pieces < 8 else 4  # slices of a tile finish equally many pieces
        while parts < most and rows * columns * parts * 2 <= sms * tile.waves and steps >= 2 * parts * _LEAST_STEPS:
            parts *= 2
        live = m if m < 3 else 4 if m < 5 else -(-m // 8) * 8
        c = MixedConfig(
            *format, element=element, output=output, rows=tile.rows, columns=tile.columns, scaled=scaled,
            live=live if live < tile.columns <= 64 else 0, hint=columns == 1, bias=bias,
        )  # fmt: skip
        for count in (parts, 1):  # partial accumulators of wide tiles may not fit
            c = c._replace(parts=count)
            c = c._replace(stages=_stages(c, tile.blocks, -(-steps // count)))
            if c.smem_bytes + DEFAULT_TARGET.reserved_shared <= DEFAULT_TARGET.shared:
                break
        if c.columns >= 64 and c.parts == 1 and output != "f32" and n % 8 == 0:
            c = c._replace(staged=True)
        yield _predict(tile, c, m, n, k, format, sms), c


def exact_rows(group: int) -> int:
    """Return the rows of x up to which scales multiply accumulators of groups, and weights are not rounded."""
    return 64 if group == DEPTH else 32


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
    x, wide = COSTS, c.columns > 128
    step = tile.step
    for holds, factors in (
        (c.scaled, x.scaled),
        (c.scaled and c.scale != c.element, x.convert),
        (WEIGHTS[c.weight] == 8, x.wide),
        (c.zeros, x.zeros),
    ):
        step *= factors[wide] if holds else 1.0
    if not c.scaled:
        step *= {64: x.groups[0], 32: x.groups[1]}.get(c.group, 1.0)
    columns = -(-m // c.columns)
    blocks = -(-n // c.rows) * columns * c.parts
    step *= tile.alone if blocks <= sms else 1.0
    if c.columns <= 64:  # MMAs of more columns hide it
        step += x.outside * max(0, (columns * c.columns if columns > 1 else c.loaded) - m - 16)
    steps = -(-k // (DEPTH * c.parts))  # of a split-K slice, rounded up
    computed = -(-blocks // (sms * tile.waves)) * (x.wave[0] + x.wave[1 + c.staged] * c.columns + steps * step)
    sustained = 2 * m * n * k / x.operations
    computed = (computed**16 + sustained**16) ** (1 / 16)
    loaded = _bytes(n, k, format) / x.bytes
    parts = x.part[0] * (c.parts.bit_length() - 1) + x.part[1] * c.rows / 128 * c.columns * (1 - 1 / c.parts)
    return x.start + parts + (loaded**4 + computed**4) ** 0.25


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
    reserved = 2 * DEFAULT_TARGET.reserved_shared + c.exchange_bytes
    shared, alone = (
        (DEFAULT_TARGET.sm_shared // sharing - reserved) // (c.stage_bytes + 16) for sharing in (blocks, 1)
    )
    return max(2, min(max(shared, min(4, alone)), steps))
