"""Random attention calls compared with the back ends of torch's ``scaled_dot_product_attention``."""

from __future__ import annotations

import random

from cute_dialect.tools.bench.cases.op.attention import LIMITS, Attention
from cute_dialect.tools.bench.random import log_uniform

__all__ = ["draw"]

MOST_FLOPS, MOST_BYTES = 5e11, 4e9


def draw(rng: random.Random, number: int) -> Attention:
    """Draw an attention call.

    * Elements: f16 or bf16.
    * Heads: 64 or 128 elements in two of three problems, else 32, 80, 96, 192 or 256; 1 to 32 query heads, which share
      key heads in groups of 1, 2, 4 or 8; either memory layout.
    * Lengths: a quarter is decoding (1 to 16 queries, 256 to 65,536 keys, 1 to 128 sequences), a fifth is packed (2 to
      16 sequences of 16 to 4,096), a fifth has a window.  The others have 64 to 8,192 queries and one to four times as
      many keys.
    * Half is causal, aligned at the first or last key.  A third of the problems without decoding, packing and windows
      is backward.
    * At most 5e11 FLOPs and 4 GB.

    Data is normally distributed.  64 rows of up to four heads are compared with float64.  The tolerance is 2^-9 (bf16:
    2^-6) of the element and of the RMS, and four times as much for gradients, which are checked for one key head.
    """
    while True:
        element, layout = rng.choice(tuple(LIMITS)), rng.choice(("bhsd", "bshd"))
        head = rng.choice((64, 128)) if rng.random() < 2 / 3 else rng.choice((32, 80, 96, 192, 256))
        shared = rng.choice((1, 1, 2, 4, 8))
        heads_k = max(1, log_uniform(rng, 1, 32) // shared)
        causal = rng.choice(("", "", "top_left", "bottom_right"))
        style, window, lengths, backward = rng.random(), None, tuple[int, ...](), False
        batch = log_uniform(rng, 1, 32)
        if style < 0.25:
            queries, keys = rng.choice((1, 1, 1, 2, 4, 16)), log_uniform(rng, 256, 65536)
            batch = log_uniform(rng, 1, 128)
            causal = "bottom_right" if causal and queries > 1 else ""
        elif style < 0.45:
            lengths = tuple(log_uniform(rng, 16, 4096) for _ in range(rng.randint(2, 16)))
            queries = keys = max(lengths)
            batch, layout = len(lengths), "packed"
            causal = "top_left" if causal else ""
        else:
            queries = log_uniform(rng, 64, 8192)
            keys = queries if rng.random() < 2 / 3 else log_uniform(rng, queries, 4 * queries)
            if style < 0.65:
                window = (log_uniform(rng, 16, 2048), 0 if causal else log_uniform(rng, 16, 2048))
            else:
                backward = rng.random() < 1 / 3
        found = Attention(
            element, head, batch, heads_k * shared, heads_k, queries, keys, causal, window, layout, lengths, backward
        )
        while found.batch > 1 and not lengths and not _fits(found):
            found = found._replace(batch=found.batch // 2)
        if _fits(found):
            return found


def _fits(case: Attention) -> bool:
    return case.flops <= MOST_FLOPS and case.traffic <= MOST_BYTES
