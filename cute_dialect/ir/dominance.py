"""Dominance between the blocks of a region.

Dominators are computed by the simple form of the algorithm of Lengauer and Tarjan, in O(n log n) steps for n branches
("A Fast Algorithm for Finding Dominators in a Flowgraph", 1979).  The iterative algorithm of Cooper, Harvey and
Kennedy is shorter, but quadratic for chains of blocks with back edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.ir import Block, Region

__all__ = ["dominators", "reverse_post_order"]


class _Walk(NamedTuple):
    """A depth-first traversal of the reachable blocks."""

    entered: dict[Block, int]
    """Preorder number of each block."""
    left: list[Block]
    """The blocks in postorder."""
    parents: list[int]
    """Preorder number of the parent of each block in the traversal."""
    predecessors: list[list[int]]
    """Preorder numbers of the predecessors of each block."""


def dominators(region: Region) -> dict[Block, tuple[int, int]]:
    """Return the times at which a traversal of the dominator tree enters and leaves each reachable block.

    A block dominates another if the traversal enters the other between the two times.
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
    """Return the reachable blocks of a region in reverse postorder, in which dominators come first."""
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
    """Return the immediate dominator of each block; blocks are numbered in preorder."""
    n = len(parents)
    semi, label, ancestor = list(range(n)), list(range(n)), [-1] * n
    waiting: list[list[int]] = [[] for _ in range(n)]
    found = [0] * n

    def least(v: int) -> int:
        """Return the block with the least semidominator on the path from ``v`` to its root, and compress the path."""
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
