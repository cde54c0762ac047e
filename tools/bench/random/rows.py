"""Random row operations, forward and backward, compared with torch and, for every second problem, ``torch.compile``."""

from __future__ import annotations

import random

from cute_dialect.tools.bench.cases.op.rows import Rows
from cute_dialect.tools.bench.random import log_uniform

__all__ = ["BACKWARD", "FORWARD", "draw"]

FORWARD = (
    "softmax", "log_softmax", "logsumexp", "sum", "mean", "max", "rms_norm", "rms_norm + residual", "layer_norm",
    "layer_norm + residual", "cross_entropy", "transpose",
)  # fmt: skip
BACKWARD = tuple(f for f in FORWARD if f not in ("sum", "transpose"))
"""Without the sum: its gradient is a broadcast view, for which neither side launches a kernel."""


def draw(rng: random.Random, number: int) -> Rows:
    """Draw a row operation.

    * Pass: forward in three of five problems, else gradients of all arguments.  The gradient of a sum is not drawn: it
      is a broadcast view, for which neither side launches a kernel.  The transpose is a copy on both sides.
    * Elements: bf16, f16 or f32 in 5, 3 and 2 of 10 problems.
    * Sizes: 1 to 200,000 columns, log-uniform, half of them rounded to multiples of 8 if at least 8; 2^16 to 2^27
      elements in all, log-uniform.

    Data is normally distributed.  All elements are compared with float64.  The tolerance is 4e-6 (f32), 1.1e-3 (f16) or
    9e-3 (bf16) of the element and of the RMS of the result.  For sums, and for gradients whose terms cancel, it is
    relative to the magnitude of the terms.
    """
    backward = rng.random() >= 0.6
    function = rng.choice(BACKWARD if backward else FORWARD)
    element = rng.choice(("bf16",) * 5 + ("f16",) * 3 + ("f32",) * 2)
    n = log_uniform(rng, 1, 200_000)
    if n >= 8 and rng.random() < 0.5:
        n = n // 8 * 8
    rows = max(1, log_uniform(rng, 2**16, 2**27) // n)
    return Rows(function, backward, element, min(rows, 1 << 20), n)
