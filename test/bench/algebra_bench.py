"""Time per call of the eager algebra, on inputs not seen before, beside the PyPI package ``tensor-layouts``.

    python test/bench/algebra_bench.py [--rounds N]

Every call gets another random layout; nothing is memoised.  Microseconds of processor time, best of N rounds
over the same inputs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from random import Random

import tensor_layouts as peer

from cute_dialect.algebra import compose, evaluation, layout, tiling
from cute_dialect.algebra.values import Layout, raw_layout

CASES = 1000


def random_nested(rng: Random) -> Layout:
    """Rank 2, depth 2, compact in a random order: as tiles and thread-value layouts look."""
    extents = [rng.choice([2, 4, 8]) for _ in range(4)]
    order = list(range(4))
    rng.shuffle(order)
    strides, p = [0] * 4, 1
    for i in order:
        strides[i] = p
        p *= extents[i]
    a, b, c, d = strides
    return raw_layout(((extents[0], extents[1]), (extents[2], extents[3])), ((a, b), (c, d)))


def rearranged(rng: Random, a: Layout) -> Layout:
    """A right operand of the same size that fits."""
    n = evaluation.size(a)
    assert type(n) is int
    extents = [2, 2, 4, n // 16]
    order = list(range(4))
    rng.shuffle(order)
    starts = [1, 2, 4, 16]
    s = [extents[i] for i in order]
    d = [starts[i] for i in order]
    return raw_layout(((s[0], s[1]), (s[2], s[3])), ((d[0], d[1]), (d[2], d[3])))


def measure(f: Callable[..., object], inputs: list[tuple[object, ...]], rounds: int) -> float:
    """Microseconds per call, the best round."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        for operands in inputs:
            f(*operands)
        best = min(best, time.process_time() - start)
    return best / len(inputs) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    rng = Random(0)
    layouts = [random_nested(rng) for _ in range(CASES)]
    pairs = [(a, rearranged(rng, a)) for a in layouts]
    tiles = [(a, (4, 8)) for a in (raw_layout((16, 32), rng.choice([(1, 16), (32, 1)])) for _ in range(CASES))]
    nested = [(a, (rng.choice([2, 4]), rng.choice([2, 4]))) for a in layouts]
    gaps = [
        (raw_layout((2, (2, 3)), (4 * k, (1, 24 * k))), 144 * k) for k in (rng.randrange(1, 50) for _ in range(CASES))
    ]
    indices = [(rng.randrange(200), a) for a in layouts]
    small = [(rng.randrange(24), Layout("(3,(2,4)):(8,(4,1))")) for _ in range(CASES)]
    coords = [((rng.randrange(4), rng.randrange(8)), a) for a in layouts]
    singles = [(a,) for a in layouts]
    rows: list[tuple[str, Callable[..., object], Callable[..., object] | None, list[tuple[object, ...]]]] = [
        ("composition", compose.composition, peer.compose, pairs),
        ("zipped_divide, flat modes", tiling.zipped_divide, peer.zipped_divide, tiles),
        ("zipped_divide, nested modes", tiling.zipped_divide, peer.zipped_divide, nested),
        ("complement", compose.complement, peer.complement, gaps),
        ("right_inverse", compose.right_inverse, peer.right_inverse, singles),
        ("left_inverse", compose.left_inverse, peer.left_inverse, singles),
        ("coalesce", layout.coalesce, peer.coalesce, singles),
        ("evaluate, index, 3 leaves", evaluation.evaluate, lambda c, a: a(c), small),
        ("evaluate, index, 4 leaves", evaluation.evaluate, lambda c, a: a(c), indices),
        ("evaluate, coordinate", evaluation.evaluate, lambda c, a: a(*c), coords),
        ("cosize", evaluation.cosize, peer.cosize, singles),
    ]
    print(f"{'us per call':30}{'ours':>9}{'peer':>9}{'ratio':>8}")
    for name, ours, other, inputs in rows:
        mine = measure(ours, inputs, rounds)
        theirs = [
            tuple([peer.Layout(x.shape, x.stride) if isinstance(x, Layout) else x for x in operands])
            for operands in inputs
        ]
        yours = measure(other, theirs, rounds) if other else float("nan")
        print(f"{name:30}{mine:9.2f}{yours:9.2f}{yours / mine:8.1f}")


if __name__ == "__main__":
    main()
