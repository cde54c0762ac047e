"""Random epilogues of random GEMMs compared with torch and, for every second problem, ``torch.compile``."""

from __future__ import annotations

import random

from cute_dialect.tools.bench.cases.op.epilogues import ACTIVATIONS, TextEpilogue
from cute_dialect.tools.bench.cases.op.products import LIMITS
from cute_dialect.tools.bench.random import log_uniform

__all__ = ["draw"]

MOST_FLOPS = 3e11


def draw(rng: random.Random, number: int) -> TextEpilogue:
    """Draw a GEMM and an epilogue.

    * GEMM: f16 or bf16; M 16 to 16,384, N and K 64 to 16,384, log-uniform, N and K multiples of 8, at most 3e11 FLOPs;
      B is stored as (N, K) or as (K, N).
    * Epilogue: 1 to 5 steps on the last value or on two earlier values.  A step adds or multiplies a per-column,
      per-row or full array, applies one of ten activations, scales a value, or takes the maximum or (once) the product
      of two values.
    * Results: one in four returns an earlier value as a second result, one in eight a row sum or row sum of squares.

    Data is normally distributed, with accumulators of about 1.  64 rows are compared with float64.  The tolerance is
    2^-10 (bf16: 2^-7) of the element and of the RMS, plus 8 times the effect of accumulator errors of 2^-12.
    """
    element = rng.choice(tuple(LIMITS))
    while True:
        m, n, k = log_uniform(rng, 16, 16384), log_uniform(rng, 64, 16384, 8), log_uniform(rng, 64, 16384, 8)
        if 2.0 * m * n * k <= MOST_FLOPS:
            break
    linear = rng.random() < 0.5
    steps = rng.randint(1, 5)
    values, body = ["accum"], list[str]()
    while len(body) < steps:
        x = values[-1]
        other = rng.choice(values)
        kind = rng.choice(("bias", "bias", "array", "array", "activation", "activation", "scale", "two"))
        if kind == "bias" and not body:
            made = f"{x} + bias"
        elif kind in ("bias", "array"):
            made = f"{x} {rng.choice('+*')} {rng.choice(('bias', 'row', 'skip', 'skip'))}"
        elif kind == "activation":
            made = f"{rng.choice(ACTIVATIONS)}({x})"
        elif kind == "scale":
            made = f"{x} * {rng.choice((0.125, 0.5, 1.702))}"
        else:
            made = rng.choice((f"{x} * {other}", f"maximum({x}, {other})", f"{x} + {other}"))
            if "*" in made and any(f"{y} * {z}" in line for line in body for y in values for z in values):
                continue  # Only one product of values is drawn, because higher powers overflow f16.
        values.append(f"x{len(body)}")
        body.append(f"{values[-1]} = {made}")
    body.append(f"D = {values[-1]}")
    results = ["D"]
    chance = rng.random()
    if chance < 0.25 and len(values) > 2:
        results.append(rng.choice(values[1:-1]))
    elif chance < 0.375:
        body.append(f"reduced = {rng.choice(('sum', 'sum_squares'))}(D, -1)")
        results.append("reduced")
    return TextEpilogue(element, m, n, k, linear, tuple(body), tuple(results))
