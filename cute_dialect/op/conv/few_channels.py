"""Kernels of convolutions with few channels per group, which an im2col GEMM would pad: one choice for all callers.

>>> from cute_dialect.op.conv.geometry import geometry
>>> g = geometry("conv2d", "fprop", (32, 56, 56, 256), (256, 3, 3, 8), 1, 1, 1, 32)
>>> few_channels(ConvRequest(g, "f16", "f16")).name
'direct-fprop-f16-f16-3x3-p1x1-c8k8-8p1s1v8_8_8x8x28-w8x1m2hx2'
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TypeAlias

from cute_dialect.kernels.conv.config import DGRAD, WGRAD
from cute_dialect.kernels.conv.depthwise import DepthwiseConfig
from cute_dialect.kernels.conv.depthwise_weights import DepthwiseWeightsConfig
from cute_dialect.kernels.conv.direct import DirectConfig
from cute_dialect.op.conv.channel_padding import narrow
from cute_dialect.op.conv.choice import ConvRequest, served
from cute_dialect.op.conv.depthwise import depthwise_config
from cute_dialect.op.conv.direct import direct_config
from cute_dialect.op.conv.partial_weights import PartialWeights, partial_weights_of

__all__ = ["FewChannels", "few_channels"]

FewChannels: TypeAlias = DepthwiseConfig | DirectConfig | PartialWeights

_ALONE = 256
"""Maximum product of channels and filters of a convolution without groups: 16 by 16, or 8 by 32."""
_WIDE = 32
"""Channels per group above which an im2col GEMM is faster, if it supports the problem."""
_FEW = 16
"""Maximum number of filters of a dgrad without groups, for which an im2col GEMM would pad K to 64."""
_TAPS = 9
"""Minimum number of taps of such a dgrad; with fewer taps the padded K is short."""
_MANY = 128
"""Minimum number of channels of such a dgrad.

On an H200 224->8 5x5 takes 24 us and 528->16 takes 31 us; an im2col GEMM takes 83 and 57 us.
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
        else depthwise_config(g, asked.element, asked.output) or direct_config(g, asked.element, asked.output, sms)
    )
    alone = isinstance(found, DepthwiseConfig) or (
        isinstance(found, PartialWeights) and isinstance(found.config, DepthwiseWeightsConfig)
    )
    if found is None or alone:
        return found
    widest = max(g.filter[-1], g.filter[0] // g.groups)
    c, k = g.filter[-1], g.filter[0]
    if g.groups == 1 and g.kind == WGRAD and not served(asked) and narrow(asked, sms=sms) is None:
        return found  # an im2col GEMM would have to write columns
    if g.groups == 1:
        few = c * k <= _ALONE and c % 8 == 0 and k % 8 == 0
        # A window of one column may be what narrow() left, for an im2col GEMM.
        wide = max(c, k) > 16 and (g.window.taps[-1] == 1 or narrow(asked, sms=sms) is not None)
        padded = g.kind == DGRAD and k <= _FEW and c % 8 == 0 and k % 8 == 0 and math.prod(g.window.taps) >= _TAPS
        return found if (few and not wide) or (padded and c >= _MANY) else None
    narrowest = min(g.filter[-1], g.filter[0] // g.groups)
    return None if widest > _WIDE and narrowest > 8 and served(asked) and not g.is_product else found
