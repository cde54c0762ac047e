"""Gradients of filters of few channels per group on tiles of the image."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cute_dialect.kernels.conv.config import WGRAD
from cute_dialect.kernels.conv.direct_weights import DirectWeightsConfig
from cute_dialect.op.conv.direct import MEMORY, direct_tiles, is_narrow, vector_of
from cute_dialect.op.conv.geometry import Geometry

__all__ = ["DirectWeights", "direct_weights_of", "direct_weights_of_all", "launch_of"]

_REGISTERS = 100
"""Accumulators and offsets of a thread."""


class DirectWeights(NamedTuple):
    """A kernel and the rows of partial sums that it writes."""

    config: DirectWeightsConfig
    rows: int


def direct_weights_of_all(g: Geometry, element: str, sms: int = 132) -> Iterator[DirectWeights]:
    """Yield kernels of the gradient of filters that differ in the tile and in what warps compute."""
    if g.kind != WGRAD or not is_narrow(g, element):
        return
    c, k = g.filter[-1], g.filter[0] // g.groups
    base = DirectWeightsConfig(element, g.window._replace(left=()), c, k, (vector_of(c), vector_of(k)))
    _, p, q, _ = g.result
    most = max(1, min(g.groups, 64 // max(base.deep, base.wide)))
    slab = next(n for n in (8, 4, 2, 1) if n <= most)
    parts = dict.fromkeys(((-(-c // 64), -(-k // 64)), (-(-c // 64), -(-k // 32)), (-(-c // 32), -(-k // 16))))
    for part in parts if slab == 1 else ((1, 1),):
        config = base._replace(parts=part)
        for rows, columns in direct_tiles((p, q)):
            for along in dict.fromkeys(_parts_of_taps(config, 8 // slab)):
                found = config._replace(tile=(rows, columns), warps=(slab, along, max(1, 8 // (slab * along))))
                if found.registers > _REGISTERS or found.bytes > MEMORY or found.threads > 512:
                    continue
                most = 3 if found.registers <= 30 and found.threads <= 256 else 2
                fit = min(most, MEMORY // (found.bytes + 1024), 512 // found.threads if found.registers > 60 else 9)
                yield launch_of(g, found._replace(blocks=max(1, fit)), sms)


def _parts_of_taps(config: DirectWeightsConfig, most: int) -> list[int]:
    """Return numbers of warps that share the taps, those first that leave no warp with less to do."""
    pairs = -(-config.chunks // 2)
    found = [n for n in range(1, max(5, most) + 1) if config._replace(warps=(1, n, 1)).registers <= _REGISTERS]
    return sorted(found, key=lambda n: (-(-pairs // n) * n - pairs, n)) or [16]


def launch_of(g: Geometry, config: DirectWeightsConfig, sms: int = 132) -> DirectWeights:
    """Return the launch of a kernel: as many blocks as the chip holds."""
    slabs = -(-g.groups // config.groups) * config.parts[0] * config.parts[1]
    n, p, q, _ = g.result
    tiles = n * -(-p // config.tile[0]) * -(-q // config.tile[1])
    blocks = max(1, min(sms * config.blocks // slabs, tiles))
    return DirectWeights(config, blocks * config.warps[2])


def direct_weights_of(g: Geometry, element: str, sms: int = 132) -> DirectWeights | None:
    """Return the kernel of the gradient of filters of few channels per group; None for others."""
    return next(direct_weights_of_all(g, element, sms), None)
