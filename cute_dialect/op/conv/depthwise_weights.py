"""Gradients of the filters of depthwise convolutions, with a filter per channel."""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.kernels.conv.config import WGRAD
from cute_dialect.kernels.conv.depthwise_weights import DepthwiseWeightsConfig
from cute_dialect.op.problems.conv import Geometry

__all__ = ["DepthwiseWeights", "depthwise_weights_of", "launch_of"]

_TYPES = ("f16", "bf16", "f32")
_LANES = 32
_REGISTERS = 200
"""Registers per thread above which more threads share the rows of taps."""
_FEW = 128
"""Threads per multiprocessor, with a row of the result each, below which threads share the rows of taps."""
_LATENCY = 2
"""Latency before the first line of a band arrives, in lines."""
_SHORT = 280
"""Maximum number of multiplications of an iteration that covers more rows than are prefetched."""
_ACCUMULATORS = 160
"""Maximum number of accumulators per thread; wider filters use other kernels."""


class DepthwiseWeights(NamedTuple):
    """A kernel and its launch."""

    config: DepthwiseWeightsConfig
    blocks: int  # along the pixels
    rows: int  # rows of the result per tile


def depthwise_weights_of(g: Geometry, element: str, sms: int = 132) -> DepthwiseWeights | None:
    """Return the kernel of the gradient of depthwise filters of two dimensions; None for other convolutions.

    >>> from cute_dialect.op.problems.conv import geometry
    >>> g = geometry("conv2d_weight", "wgrad", (8, 56, 56, 96), (96, 3, 3, 1), 1, 1, 1, 96)
    >>> depthwise_weights_of(g, "f16").config.name
    'depthwise-wgrad-f16-3x3-p1x1-c2q4r3a2wso-l24t256x2'
    """
    element = "f32" if element == "tf32" else element
    w = g.window
    multiplier = g.filter[0] // g.groups
    one = g.filter[-1] == 1 and g.groups == g.image[-1] and len(w.taps) == 2 and multiplier in (1, 2, 4)
    if not one or g.kind != WGRAD or element not in _TYPES or 0 in g.result or 0 in g.image:
        return None
    channels = max(multiplier, 2 if g.groups % 2 == 0 else 1)
    columns = _columns(g.result[2])
    config = DepthwiseWeightsConfig(element, w._replace(left=()), channels, columns, w.taps[0], ahead=2, shift=True)
    config = config._replace(multiplier=multiplier, whole=g.result[2] % columns == 0)
    vectors = g.filter[0] // channels
    chunks = -(-vectors // _LANES)
    config = config._replace(lanes=-(-vectors // chunks))
    if config.registers > _REGISTERS:
        config = config._replace(ahead=1)
    # Threads of a small problem, with one row each, have few taps: the code is shorter, and more threads share it.
    threads = g.result[0] * -(-g.result[2] // columns) * g.result[1] * vectors
    slices = max(1, min(w.taps[0], _FEW * sms // threads))
    config = config._replace(taps=-(-w.taps[0] // slices))
    while config.registers > _REGISTERS and config.taps > 1:
        slices += 1
        config = config._replace(taps=-(-w.taps[0] // slices))
    if config.channels * config.taps * w.taps[1] > _ACCUMULATORS or config.lanes * config.slices > config.threads:
        return None
    rotated = config._replace(rotate=True)
    if rotated.rows * config.taps * w.taps[1] * columns * channels <= _SHORT:
        config = rotated
    config = config._replace(blocks=3 if config.registers <= 64 else 2 if config.registers <= 100 else 1)
    return launch_of(g, config, sms)


def launch_of(g: Geometry, config: DepthwiseWeightsConfig, sms: int = 132) -> DepthwiseWeights:
    """Return the launch of a kernel: as many blocks as fit the GPU, and tiles that give each thread work."""
    vectors = -(-g.filter[0] // config.channels)
    chunks = -(-vectors // config.lanes)
    lanes = -(-vectors // chunks)
    groups = config.threads // (lanes * config.slices)
    blocks = max(1, sms * config.blocks // chunks)
    n, p, q, _ = g.result
    strips, slots = n * -(-q // config.columns), blocks * groups

    def cost(rows: int) -> tuple[int, int]:
        """Return a sort key: the image rows that the busiest thread reads, then taller bands first.

        Each band reads the rows of the window's span again.
        """
        rounds = -(-strips * -(-p // rows) // slots)
        return rounds * (rows * config.unit + config.span + _LATENCY), -rows

    rows = min({-(-p // bands) for bands in range(1, p + 1)}, key=cost)
    return DepthwiseWeights(config, min(blocks, -(-strips * -(-p // rows) // groups)), rows)


def _columns(q: int) -> int:
    """Return the width of strips: a divisor of the width of the result, if there is one near four."""
    return next((n for n in (4, 5, 3) if q % n == 0), 4 if q > 2 else q)
