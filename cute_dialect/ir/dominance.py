"""Which blocks of a region come before which, whatever way control takes.

Dominators are those of Lengauer and Tarjan, "A Fast Algorithm for Finding Dominators in a Flowgraph" (1979), in its
simple form: n log n steps for n branches, whatever they look like.  (The iteration of Cooper, Harvey and Kennedy is
shorter, but quadratic in chains of blocks that branch back.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.ir import Block, Region

__all__ = ["dominators", "reverse_post_order"]


class _Walk(NamedTuple):
    """A walk over the blocks that can be reached, depth first."""

    entered: dict[Block, int]
    """When the walk entered each block: 0, 1, 2 …"""
    left: list[Block]
    """The blocks in the order in which it left them."""
    parents: list[int]
    """From which block it entered each."""
    predecessors: list[list[int]]
    """Which blocks branch to each."""


def dominators(region: Region) -> dict[Block, tuple[int, int]]:
    """Return when a walk over the tree of dominators enters and leaves each block of the region that can be reached.

    A block dominates another if the walk is in it when it enters the other.
    """
    entry = region.first_block
    assert entry is not None
    walk = _walk(entry)
    below: list[list[int]] = [[] for _ in walk.parents]
    for i, above in enumerate(_immediate(walk.parents, walk.predecessors)[1:], 1):
        below[above].append(i)
    entered, left = [0] * len(below), [0] * len(below)
    clock, stack = 0, [(0, False)]
    while stack:
        i, done = stack.pop()
        clock += 1
        if done:
            left[i] = clock
            continue
        entered[i] = clock
        stack.append((i, True))
        stack += [(inner, False) for inner in below[i]]
    return {block: (entered[i], left[i]) for block, i in walk.entered.items()}


def reverse_post_order(region: Region) -> list[Block]:
    """Return the blocks of a region that can be reached, each after those that dominate it."""
    return _walk(region.first_block).left[::-1] if region.first_block is not None else []


def _walk(entry: Block) -> _Walk:
    entered = {entry: 0}
    left: list[Block] = []
    parents, predecessors = [0], [list[int]()]
    stack = [(entry, 0, iter(_successors(entry)))]
    while stack:
        block, number, rest = stack[-1]
        successor = next(rest, None)
        if successor is None:
            left.append(block)
            stack.pop()
            continue
        if successor not in entered:
            entered[successor] = len(parents)
            stack.append((successor, len(parents), iter(_successors(successor))))
            parents.append(number)
            predecessors.append([])
        predecessors[entered[successor]].append(number)
    return _Walk(entered, left, parents, predecessors)


def _immediate(parents: Sequence[int], predecessors: Sequence[Sequence[int]]) -> list[int]:
    """The nearest dominator of each block; blocks are numbered as a walk depth first enters them."""
    n = len(parents)
    semi, label, ancestor = list(range(n)), list(range(n)), [-1] * n
    waiting: list[list[int]] = [[] for _ in range(n)]
    found = [0] * n

    def least(v: int) -> int:
        """The block with the least semidominator on the way up from ``v`` in the forest so far; shortens the way."""
        if ancestor[v] < 0:
            return v
        path: list[int] = []
        u = v
        while ancestor[ancestor[u]] >= 0:
            path.append(u)
            u = ancestor[u]
        for u in reversed(path):
            above = ancestor[u]
            if semi[label[above]] < semi[label[u]]:
                label[u] = label[above]
            ancestor[u] = ancestor[above]
        return label[v]

    for w in range(n - 1, 0, -1):
        for v in predecessors[w]:
            semi[w] = min(semi[w], semi[least(v)])
        waiting[semi[w]].append(w)
        above = ancestor[w] = parents[w]
        for v in waiting[above]:
            u = least(v)
            found[v] = u if semi[u] < semi[v] else above
        waiting[above].clear()
    for w in range(1, n):
        if found[w] != semi[w]:
            found[w] = found[found[w]]
    return found


def _successors(block: Block) -> Sequence[Block]:
    return block.last_op.successors if block.last_op is not None else ()
