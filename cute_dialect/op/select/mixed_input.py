"""Choice of the kernel of ``op.mm_packed``: packed or unpacked weights; the tile, split-K slices and stages.

With few rows of x the bytes of the weights bound the kernel. All SMs must load at once, hence the blocks of a cluster
share the K of a tile while the grid has fewer blocks than fit. The table of tiles is the fastest of 108 configurations
on an H200, for 1 to 2048 rows and weights of 8192 x 8192 and 14336 x 4096. More stages than these delay the first MMA:
with 16 instead of 6, a row takes 18.4 us instead of 17.1.

With many rows, or more than 64 and groups of 32, unpacking the weights first and an ordinary GEMM are often faster.
:func:`choose_plan` compares their predicted time with that of the kernel.

>>> choose_config(1, 8192, 8192, Format("ui4", 128, "bf16", False), "bf16", "bf16").name
'mixed-ui4-g128-bf16-bf16-bf16-128x8-q7-p2-h'
>>> plan = choose_plan(1028, 7424, 2752, Format("i8", 32, "bf16", False), "bf16", "bf16")
>>> plan.config is None, plan.microseconds < plan.other / 4
(True, True)
"""

from __future__ import annotations

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


class _Costs(NamedTuple):
    """Costs in microseconds, fitted to the times of 121 problems on an H200 (random ones and layers of models)."""

    start: float = 5.3
    part: float = 0.37  # per doubling of split-K slices
    wave: float = 2.5  # per wave of tiles of 128 rows of x; narrower tiles cost proportionally less
    wide_groups: tuple[float, float] = (1.17, 5.95)  # factors of a step with groups of 64 and 32, 128 rows of x
    narrow_groups: tuple[float, float] = (1.0, 1.2)  # likewise, fewer rows of x
    bytes: float = 2.8e6  # of packed weights, per microsecond
    unpack: float = 3.5  # start of the kernel that unpacks weights
    unpacked_bytes: float = 3.3e6  # that it reads and writes, per microsecond
    gemm: float = 5.0  # least time of a GEMM
    margin: float = 1.5  # least predicted gain of unpacking, for the host time of its second launch


_COSTS = _Costs()


class _Tile(NamedTuple):
    """Fastest tile for up to ``columns`` rows of x."""

    columns: int
    rows: int
    blocks: int  # blocks per SM, which determine the stages
    waves: int  # blocks per SM up to which K is split
    step: float  # microseconds per step of K and wave, fitted with _Costs


_TILES = (
    _Tile(8, 128, 3, 1, 0.32), _Tile(16, 128, 2, 1, 0.34), _Tile(32, 128, 2, 1, 0.40), _Tile(64, 64, 2, 2, 0.28),
    _Tile(128, 128, 1, 1, 0.78),
)  # fmt: skip

_LEAST_STEPS = 4
"""Steps of K, of 128 each, of a split-K slice."""


@lru_cache(maxsize=1024)
def choose_config(
    m: int, n: int, k: int, format: Format, element: str, output: str, bias: bool = False, sms: int = 132
) -> MixedConfig:
    """Return the configuration for ``m`` rows of x and ``n`` x ``k`` weights."""
    tile = _tile(m)
    steps = -(-k // DEPTH)
    tiles = -(-n // tile.rows) * -(-m // tile.columns)
    parts = 1
    while parts < 8 and tiles * parts * 2 <= sms * tile.waves and steps >= 2 * parts * _LEAST_STEPS:
        parts *= 2
    c = MixedConfig(
        *format, element=element, output=output, rows=tile.rows, columns=tile.columns, parts=parts,
        hint=m <= tile.columns, bias=bias,
    )  # fmt: skip
    return c._replace(stages=_stages(c, tile.blocks, -(-steps // parts)))


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
        m, n, k, format, element, output, bias, sms: as in :func:`choose_config`.
        exact: predict both times even if a lower bound decides; the choice is the same.
    """
    c = choose_config(m, n, k, format, element, output, bias, sms)
    packed = _predict_packed(c, m, n, k, format, sms)
    unpacked = _COSTS.unpack + (_bytes(n, k, format) + 2 * n * k) / _COSTS.unpacked_bytes
    if not exact and unpacked + _COSTS.gemm + _COSTS.margin >= packed:
        return PackedPlan(c, packed, unpacked + _COSTS.gemm)
    unpacked += max(_COSTS.gemm, _predict_gemm(Problem(m, n, k, element, output, "k", "k"), sms))
    if unpacked + _COSTS.margin < packed:
        return PackedPlan(None, unpacked, packed)
    return PackedPlan(c, packed, unpacked)


def _tile(m: int) -> _Tile:
    return next((t for t in _TILES if m <= t.columns), _TILES[-1])


def _predict_packed(c: MixedConfig, m: int, n: int, k: int, format: Format, sms: int) -> float:
    """Return the predicted time of the kernel that reads packed weights, in microseconds.

    With few rows of x the time is bound by the bytes of the weights, with many by the steps of all waves.
    """
    x, tile = _COSTS, _tile(m)
    factors = x.narrow_groups if tile.columns < 128 else x.wide_groups
    step = tile.step * {64: factors[0], 32: factors[1]}.get(c.group, 1.0)
    waves = -(-(-(-n // c.rows) * -(-m // c.columns) * c.parts) // sms)
    steps = -(-k // (DEPTH * c.parts))  # of a split-K slice, rounded up
    computed = waves * (x.wave * c.columns / 128 + steps * step)
    return x.start + x.part * (c.parts.bit_length() - 1) + max(_bytes(n, k, format) / x.bytes, computed)


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
