"""The verifier's dominance against its definition: a block dominates another if no way from the entry avoids it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import pytest
from xdsl.dialects import test
from xdsl.ir import Block, Region

from cute_dialect.verifier import _dominators  # pyright: ignore[reportPrivateUsage]


def graph(edges: Mapping[int, Sequence[int]]) -> tuple[Region, list[Block]]:
    """A region whose blocks branch so."""
    blocks = [Block([test.TestOp()]) for _ in edges]
    for i, targets in edges.items():
        blocks[i].add_op(test.TestTermOp(successors=[blocks[t] for t in targets]))
    return Region(blocks), blocks


def reached(edges: Mapping[int, Sequence[int]], without: int | None = None) -> set[int]:
    """The blocks to which a way leads that avoids one."""
    found: set[int] = set()
    work = [0]
    while work:
        at = work.pop()
        if at != without and at not in found:
            found.add(at)
            work += edges[at]
    return found


@pytest.mark.parametrize("seed", range(150))
def test_a_block_dominates_those_that_are_not_reached_without_it(seed: int) -> None:
    random = Random(seed)
    n = random.randrange(1, 12)
    edges = {i: [random.randrange(n) for _ in range(random.randrange(4))] for i in range(n)}
    region, blocks = graph(edges)
    found = _dominators(region)
    here = reached(edges)
    assert {blocks.index(b) for b in found} == here
    for a in here:
        dominated = {b for b in here if found[blocks[a]][0] <= found[blocks[b]][0] <= found[blocks[a]][1]}
        assert dominated == here - reached(edges, without=a)


def test_ten_thousand_blocks_in_a_row_take_a_few_steps_each() -> None:
    n = 10_000
    region, blocks = graph({i: [i + 1] if i + 1 < n else [0] for i in range(n)})
    found = _dominators(region)
    assert [found[b][0] for b in blocks] == list(range(1, n + 1))
    assert [found[b][1] for b in blocks] == list(range(2 * n, n, -1))
