"""Random convolutions, forward and both gradients, compared with cuDNN in benchmark mode."""

from __future__ import annotations

import random

from cute_dialect.tools.bench.cases.op.conv import Conv
from cute_dialect.tools.bench.random import log_uniform

__all__ = ["draw"]

MOST_FLOPS, MOST_BYTES = 2e11, 1e9


def draw(rng: random.Random, number: int) -> Conv:
    """Draw a convolution.

    * Pass: forward, dgrad and wgrad alternately; f16 or bf16.
    * Groups: one in two of five problems, depthwise in one of four, else 2 to 64.
    * Channels: 3 to 1,024, log-uniform, three in four rounded to multiples of 8.
    * Filters: 1 to 7, one in five not square; stride 1, 2 or 3 in 14, 5 and 1 of 20 problems; dilation 1, 2 or 3 in 16,
      3 and 1 of 20 if the filter is larger than 1; padding that keeps the image size in three of four, else at most
      that.
    * Images: 7 to 256, log-uniform, one in five not square; 1 to 128 images, limited by 2e11 FLOPs and 1 GB.

    Data is normally distributed.  The tolerance is 2^-10 (bf16: 2^-7) of the element plus 2^-11 sqrt(terms), compared
    with a float64 result that does not use cuDNN.
    """
    kind = ("fprop", "dgrad", "wgrad")[number % 3]
    while True:
        element = rng.choice(("f16", "bf16"))
        style = rng.random()
        step = 8 if rng.random() < 0.75 else 1
        if style < 0.4:
            groups, c, k = 1, *(log_uniform(rng, 3, 1024, step) for _ in "ck")
        elif style < 0.65:
            groups = c = log_uniform(rng, 3, 1024, step)
            k = c * (2 if rng.random() < 0.1 else 1)
        else:
            groups = rng.choice((2, 4, 8, 16, 32, 32, 64))
            most = 1024 // groups
            c, k = (groups * log_uniform(rng, 1, most, min(step, most)) for _ in "ck")
        side = rng.randint(1, 7)
        taps = (side, rng.randint(1, 7)) if rng.random() < 0.2 else (side, side)
        stride = rng.choice((1,) * 14 + (2,) * 5 + (3,))
        dilation = rng.choice((1,) * 16 + (2,) * 3 + (3,)) if max(taps) > 1 else 1
        same = (dilation * (taps[0] - 1) // 2, dilation * (taps[1] - 1) // 2)
        padding = same if rng.random() < 0.75 else (rng.randint(0, same[0]), rng.randint(0, same[1]))
        size = log_uniform(rng, 7, 256)
        image = (size, log_uniform(rng, 7, 256)) if rng.random() < 0.2 else (size, size)
        found = Conv(
            kind,
            element,
            log_uniform(rng, 1, 128),
            image,
            c,
            k,
            taps,
            (stride, stride),
            padding,
            (dilation, dilation),
            groups,
        )
        while found.n > 1 and not _fits(found):
            found = found._replace(n=found.n // 2)
        if min(found.result) > 0 and _fits(found):
            return found


def _fits(one: Conv) -> bool:
    return min(one.result) < 1 or (one.flops <= MOST_FLOPS and 2 * one.elements <= MOST_BYTES)
