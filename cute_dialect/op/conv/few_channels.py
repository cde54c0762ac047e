"""Kernels of convolutions with few channels per group, which an im2col GEMM would pad: one choice for all callers.

>>> from cute_dialect.op.problems.conv import geometry
>>> g = geometry("conv2d", "fprop", (32, 56, 56, 256), (256, 3, 3, 8), 1, 1, 1, 32)
>>> few_channels(ConvRequest(g, "f16", "f16")).name
'direct-fprop-f16-f16-3x3-p1x1-c8k8-8p1s1v8_8_8x8x28-w8x1m2hx2'
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from cute_dialect.kernels.conv.config import DGRAD, WGRAD
from cute_dialect.kernels.conv.depthwise import DepthwiseConfig
from cute_dialect.kernels.conv.depthwise_weights import DepthwiseWeightsConfig
from cute_dialect.kernels.conv.direct import DirectConfig
from cute_dialect.kernels.conv.direct_weights import DirectWeightsConfig
from cute_dialect.kernels.conv.few_results import FewResultsConfig
from cute_dialect.op.conv import direct, direct_weights, few_results
from cute_dialect.op.conv.channel_padding import narrow
from cute_dialect.op.conv.choice import ConvRequest, served
from cute_dialect.op.conv.depthwise import depthwise_config
from cute_dialect.op.conv.direct import direct_config
from cute_dialect.op.conv.gemm_time import MOST_LAUNCHES, gemm_microseconds
from cute_dialect.op.conv.partial_weights import PartialWeights, partial_weights_of
from cute_dialect.op.problems.conv import of_pixels

__all__ = ["FewChannels", "few_channels", "microseconds_of"]

FewChannels: TypeAlias = DepthwiseConfig | DirectConfig | FewResultsConfig | PartialWeights

_WIDE = 32
"""Channels per group above which an im2col GEMM may be faster, if it supports the problem."""
_FASTER, _FOLDED, _FEW = 0.95, 0.7, 1.8
"""Ratios of predicted times below which image tiles are preferred to a GEMM.

_FOLDED holds for a GEMM of folded filter columns, _FEW for groups of at most 8 channels or filters, whose GEMMs take
longer than predicted.
"""


@lru_cache(maxsize=4096)
def few_channels(asked: ConvRequest, sms: int = 132) -> FewChannels | None:
    """Return the kernel of a convolution with few channels per group.

    Return None if an im2col GEMM is the better choice, or if the call selects split-K.
    """
    g = asked.geometry
    if asked.parts:
        return None
    found: FewChannels | None = (
        partial_weights_of(g, asked.element, sms)
        if g.kind == WGRAD
        else depthwise_config(g, asked.element, asked.output)
        or direct_config(of_pixels(g), asked.element, asked.output, sms)
    )
    alone = isinstance(found, PartialWeights) and isinstance(found.config, DepthwiseWeightsConfig)
    if alone or isinstance(found, DepthwiseConfig):
        return found
    found = _few_results(asked, found, sms) or found
    if found is None or isinstance(found, FewResultsConfig):
        return found
    if g.groups == 1:
        return found if _is_faster(asked, found, sms) else None
    c, k = g.filter[-1], g.filter[0] // g.groups
    if max(c, k) <= _WIDE or g.is_product or not (served(asked) or g.groups <= MOST_LAUNCHES):
        return found
    margin = _FASTER if min(c, k) > 8 else _FEW
    return found if microseconds_of(asked, found, sms) < margin * gemm_microseconds(asked, sms=sms) else None


def _few_results(asked: ConvRequest, tiles: DirectConfig | PartialWeights | None, sms: int) -> FewResultsConfig | None:
    """Return the kernel of few results per pixel if it is predicted to be faster than image tiles and a GEMM."""
    found = few_results.few_results_config(asked.geometry, asked.element, asked.output, sms)
    if found is None:
        return None
    others = gemm_microseconds(asked, sms=sms)
    if tiles is not None:
        of_tiles = microseconds_of(asked, tiles, sms)
        others = min(others, of_tiles) if asked.geometry.groups == 1 else of_tiles
    return found if few_results.microseconds(asked.geometry, found, sms) < others else None


def _is_faster(asked: ConvRequest, found: DirectConfig | PartialWeights, sms: int) -> bool:
    """Return True if image tiles are faster than a GEMM for a convolution without groups."""
    g = asked.geometry
    folded = g.kind != DGRAD and not g.is_product and narrow(asked, sms=sms) is not None
    column = g.kind != DGRAD and g.window.taps[-1] == 1 and g.taps > 1 and g.filter[-1] in (8, 16, 32, 64)
    margin = _FOLDED if folded or column else _FASTER  # narrow() may have folded the window into a column
    return microseconds_of(asked, found, sms) < margin * gemm_microseconds(asked, sms=sms)


def microseconds_of(
    asked: ConvRequest, found: DirectConfig | FewResultsConfig | PartialWeights, sms: int = 132
) -> float:
    """Return the predicted time of image tiles, or of dot products."""
    g = of_pixels(asked.geometry)
    if isinstance(found, FewResultsConfig):
        return few_results.microseconds(asked.geometry, found, sms)
    if isinstance(found, DirectConfig):
        return direct.microseconds(g, found, sms)
    assert isinstance(found.config, DirectWeightsConfig)
    return direct_weights.microseconds(g, direct_weights.DirectWeights(found.config, found.rows), sms)
