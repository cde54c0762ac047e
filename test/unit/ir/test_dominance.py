"""The verifier's dominance matches the definition: a block dominates another if every path from the entry visits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import pytest
from steps_support import steps
from xdsl.dialects import test
from xdsl.ir import Block, Region

from cute_dialect.ir.dominance import dominators, reverse_post_order


def graph(edges: Mapping[int, Sequence[int]]) -> tuple[Region, list[Block]]:
    """Build a region whose blocks branch along `edges`."""
    blocks = [Block([test.TestOp()]) for _ in edges]
    for i, targets in edges.items():
        blocks[i].add_op(test.TestTermOp(successors=[blocks[t] for t in targets]))
    return Region(blocks), blocks


def reached(edges: Mapping[int, Sequence[int]], without: int | None = None) -> set[int]:
    """Return the blocks reachable from the entry on paths that avoid block `without`."""
    found: set[int] = set()
    work = [0]
    while work:
        at = work.pop()
        if at != without and at not in found:
            found.add(at)
            work += edges[at]
    return found


@pytest.mark.parametrize("seed", range(150))
def test_dominance_matches_its_definition(seed: int) -> None:
    random = Random(seed)
    n = random.randrange(1, 12)
    edges = {i: [random.randrange(n) for _ in range(random.randrange(4))] for i in range(n)}
    region, blocks = graph(edges)
    found = dominators(region)
    here = reached(edges)
    assert {blocks.index(b) for b in found} == here
    for a in here:
        dominated = {b for b in here if found[blocks[a]][0] <= found[blocks[b]][0] <= found[blocks[a]][1]}
        assert dominated == here - reached(edges, without=a)
    order = reverse_post_order(region)
    assert {blocks.index(b) for b in order} == here
    for a in here:
        assert all(order.index(blocks[a]) <= order.index(blocks[b]) for b in here - reached(edges, without=a))


@pytest.mark.slow
def test_ten_thousand_blocks_in_a_row_take_a_few_steps_each() -> None:
    n = 10_000
    region, blocks = graph({i: [i + 1] if i + 1 < n else [0] for i in range(n)})
    found = dominators(region)
    assert [found[b][0] for b in blocks] == list(range(1, n + 1))
    assert [found[b][1] for b in blocks] == list(range(2 * n, n, -1))


SHAPES = {
    "each back by one": lambda n: {-1: [0, n - 1], **{i: [min(i + 1, n - 1), max(i - 1, 0)] for i in range(n)}},
    "each to the end": lambda n: {-1: [0], **{i: [n - 1, min(i + 1, n - 1)] for i in range(n)}},
    "each to the start": lambda n: {-1: [0], **{i: [0, min(i + 1, n - 1)] for i in range(n)}},
}
"""Ways of ``n`` blocks to branch that take an iteration over all blocks many rounds, or long ways up."""


@pytest.mark.parametrize("shape", SHAPES)
def test_steps_grow_linearly_with_the_blocks(shape: str) -> None:
    counts: list[int] = []
    for n in (200, 400, 800):
        edges = {i + 1: [t + 1 for t in targets] for i, targets in SHAPES[shape](n).items()}
        region, _ = graph(dict(sorted(edges.items())))
        counts.append(steps(lambda region=region: dominators(region)))
    assert counts[1] < 2.2 * counts[0] and counts[2] < 2.2 * counts[1], counts
