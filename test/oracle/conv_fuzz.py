"""Random convolutions and both gradients on the interpreter, compared with a loop over the filter taps.

    python test/oracle/conv_fuzz.py --count 100 --seed 7

Convolutions have rank 1 to 3, 1 to 4 taps, uneven padding, strides and dilations of 1 to 3, 1 to 72 channels, groups,
and element types f16, f32, f64 and i8. The program prints wrong results. The exit status is 1 if there were any.
"""

# pyright: basic

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import numpy as np
from conv_reference import Array, How, extents, forward, gradients, small

from cute_dialect import op
from cute_dialect.op.conv import compute

CHECKS: Any = {"device": "cpu", "checks": ("race", "uninit", "oob", "sync")}


def case(rng: np.random.Generator) -> tuple[tuple[int, ...], tuple[int, ...], How, Any]:
    """Return a random small convolution with a nonempty output."""
    while True:
        rank = int(rng.choice([1, 2, 2, 2, 3]))

        def several(low: int, high: int, rank: int = rank) -> tuple[int, ...]:
            return tuple(int(n) for n in rng.integers(low, high + 1, rank))

        groups = int(rng.choice([1, 1, 1, 2, 8]))
        c, k = (int(rng.choice([1, 3, 8, 16, 24, 64, 72])) * (groups if groups < 8 else 1) for _ in "ck")
        if groups == 8:
            c = k = 8
        h = How(
            several(0, 3), several(0, 3), several(1, 3), several(1, 3), groups, bool(rng.integers(2))
        )  # fmt: skip
        x, f = (int(rng.integers(1, 3)), *several(1, 7), c), (k, *several(1, 4 if rank < 3 else 2), c // groups)
        dtype = rng.choice(np.array([np.float16, np.float16, np.float16, np.float32, np.float64, np.int8]))
        found = extents(x, f, h)
        if min(found) > 0 and np.prod(found) * np.prod(f[1:]) * x[0] < 40000 and np.prod(x) < 20000:
            return x, f, h, dtype


def wrong(of_x: tuple[int, ...], of_f: tuple[int, ...], h: How, dtype: Any, rng: np.random.Generator) -> list[str]:
    """Return a description of each wrong result of a convolution."""
    x, f = small(rng, *of_x, dtype=dtype), small(rng, *of_f, dtype=dtype)
    want = forward(x, f, h)
    y = small(rng, *want.shape, dtype=dtype)
    names = [f"conv{len(of_x) - 2}d{more}" for more in ("", "_input", "_weight")]
    given: list[tuple[Any, ...]] = [(x, f), (x.shape, f, y), (x, f.shape, y)]
    found: list[str] = []
    wanted: tuple[Array, ...] = (want, *gradients(x, f, y, h))
    for name, arguments, exact in zip(names, given, wanted):
        got = getattr(op, name)(*arguments, **h.arguments, **CHECKS)
        if got.shape != exact.shape or not (got == exact).all():
            found.append(name)
    return found


def main() -> int:
    """Run random convolutions and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    setattr(compute, "here", lambda: ("NVIDIA H200", 2))  # noqa: B010  (few blocks)
    failed = 0
    for i in range(options.count):
        rng = np.random.default_rng([options.seed, i])
        given = case(rng)
        try:
            found = wrong(*given, rng)
        except Exception as e:
            found = [f"{type(e).__name__}: {str(e)[:300]}"]
        if found:
            failed += 1
            print(f"seed {options.seed}, case {i}: {given}: {found}", flush=True)
    print(f"{options.count} convolutions, {failed} wrong")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
