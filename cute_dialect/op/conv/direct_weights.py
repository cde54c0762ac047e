"""Gradients of filters of few channels per group on tiles of the image."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from cute_dialect.kernels.conv.config import WGRAD
from cute_dialect.kernels.conv.direct_weights import DirectWeightsConfig
from cute_dialect.op.conv.direct import CLOCK, MEMORY, NARROW, direct_tiles, is_narrow, vector_of
from cute_dialect.op.problems.conv import Geometry

__all__ = ["DirectWeights", "direct_weights_of", "direct_weights_of_all", "launch_of", "microseconds"]

_REGISTERS = 100
"""Maximum number of accumulators and offsets per thread."""
_THREADS = 512
"""Maximum number of threads per block."""
_MANY = 64
"""Number of accumulators and offsets above which more warps share the taps."""


class DirectWeights(NamedTuple):
    """A kernel and the rows of partial sums that it writes."""

    config: DirectWeightsConfig
    rows: int


def direct_weights_of_all(g: Geometry, element: str, sms: int = 132) -> Iterator[DirectWeights]:
    """Yield kernels of the gradient of filters that differ in the tile and in the work of a warp."""
    if g.kind != WGRAD or not is_narrow(g, element):
        return
    c, k = g.filter[-1], g.filter[0] // g.groups
    base = DirectWeightsConfig(element, g.window._replace(left=()), c, k, (vector_of(c), vector_of(k)))
    _, p, q, _ = g.result
    most = max(1, min(g.groups, 64 // max(base.deep, base.wide)))
    parts = dict.fromkeys(((-(-c // 64), -(-k // 64)), (-(-c // 64), -(-k // 32)), (-(-c // 32), -(-k // 16))))
    for slab in (n for n in (8, 4, 2, 1) if n <= most):
        fits = False
        for part in parts if slab == 1 else ((1, 1),):
            config = base._replace(parts=part)
            for rows, columns in direct_tiles((p, q)):
                for along in _parts_of_taps(config, slab):
                    found = config._replace(tile=(rows, columns), warps=(slab, along, max(1, 8 // (slab * along))))
                    if found.registers > _REGISTERS or found.bytes > MEMORY or found.threads > _THREADS:
                        continue
                    most = 3 if found.registers <= 30 and found.threads <= 256 else 2
                    fit = min(most, MEMORY // (found.bytes + 1024), 512 // found.threads if found.registers > 60 else 9)
                    fits = True
                    yield launch_of(g, found._replace(blocks=max(1, fit)), sms)
        if fits:
            return


def _parts_of_taps(config: DirectWeightsConfig, slab: int) -> list[int]:
    """Return the number of warps that share the taps; an even division of the work is preferred.

    The list is empty if the accumulators of ``slab`` groups do not fit the registers of a block.
    """
    pairs = -(-config.chunks // 2)
    most = max(6, 8 // slab) if slab == 1 else _THREADS // 32 // slab
    every = {n: config._replace(warps=(1, n, 1)).registers for n in range(1, most + 1)}
    found = [n for n in every if every[n] <= _REGISTERS]
    best = sorted(found, key=lambda n: (-(-pairs // n) * n - pairs, every[n] > _MANY, n))[:1]
    return best or [16] * (slab == 1)


def _cost(g: Geometry, found: DirectWeights, sms: int) -> float:
    """Return the cycles that a gradient takes, up to a factor."""
    c = found.config
    (h, w), (rows, columns) = c.tile, c.halo
    loaded = 2 * c.groups * (
        rows * columns * min(c.deep, c.channels) * (8 / c.vectors[0]) ** NARROW
        + h * w * min(c.wide, c.filters) * (8 / c.vectors[1]) ** NARROW
    )  # fmt: skip
    atoms = -(-h * w // (16 * c.warps[2])) * c.warps[2]
    cycles = 2 * atoms * c.groups * c.warps[1] * (c.pairs * max(6, 2.4 * c.wide // 8) + 4 * c.warps[1]) / 2
    cycles += loaded / 16 + 1000
    _, p, q, _ = g.result
    tiles = g.image[0] * -(-p // h) * -(-q // w)
    rounds = -(-tiles // (found.rows // c.warps[2]))
    slabs = -(-g.groups // c.groups) * prod(c.parts)
    blocks = slabs * (found.rows // c.warps[2])
    resident = min(c.blocks, max(1, -(-blocks // sms)))
    sums = found.rows * prod(g.filter) * 8 / 2000  # cycles to write partial sums and add them up
    cycles *= resident**0.85 * (1.35 if resident == 1 else 1.0) * max(1, blocks / (sms * c.blocks))
    return rounds * cycles + sums


def microseconds(g: Geometry, found: DirectWeights, sms: int) -> float:
    """Return the predicted time of both kernels. Fitted to the times of 20 random convolutions on an H200."""
    cost = _cost(g, found, sms) / CLOCK
    return 7.5 + cost * (0.72 + 0.4 / (1 + cost / 30))


def launch_of(g: Geometry, config: DirectWeightsConfig, sms: int = 132) -> DirectWeights:
    """Return the launch of a kernel: as many blocks as the chip holds."""
    slabs = -(-g.groups // config.groups) * config.parts[0] * config.parts[1]
    n, p, q, _ = g.result
    tiles = n * -(-p // config.tile[0]) * -(-q // config.tile[1])
    blocks = max(1, min(sms * config.blocks // slabs, tiles))
    return DirectWeights(config, blocks * config.warps[2])


def direct_weights_of(g: Geometry, element: str, sms: int = 132) -> DirectWeights | None:
    """Return the kernel of the gradient of filters of few channels per group; None for others."""
    return min(direct_weights_of_all(g, element, sms), key=lambda x: _cost(g, x, sms), default=None)
