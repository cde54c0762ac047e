"""Selection of the blocks of a grid that run: all of them, or a sample.

Blocks are numbered like on the device, x first: block (x, y, z) of a grid (X, Y, Z) is x + X · (y + Y · z). A cluster
runs whole or not at all.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cute_dialect.interp.errors import InterpError

if TYPE_CHECKING:
    from cute_dialect.interp.machine.machine import Dim3

_SYNTAX = "numbers and ranges like 0,5,16:32 or sample:COUNT[:SEED]"


def clusters_of(grid: Dim3, cluster: Dim3) -> list[list[int]]:
    """Return the linear block numbers of each cluster of a grid.

    >>> clusters_of((4, 1, 1), (2, 1, 1))
    [[0, 1], [2, 3]]
    """
    total = grid[0] * grid[1] * grid[2]
    if cluster == (1, 1, 1):
        return [[b] for b in range(total)]
    out: dict[tuple[int, int, int], list[int]] = {}
    for b in range(total):
        at = (b % grid[0] // cluster[0], b // grid[0] % grid[1] // cluster[1], b // (grid[0] * grid[1]) // cluster[2])
        out.setdefault(at, []).append(b)
    return list(out.values())


def choose(wanted: Sequence[int] | str | None, grid: Dim3, cluster: Dim3) -> list[list[int]]:
    """Return the clusters to run, each as the list of its blocks.

    `wanted` is None for all blocks, a sequence of linear block numbers, or text:

    - `0,5,17`: block numbers; `0:8`: a half-open range, whose ends may be omitted; both may be mixed
    - `sample:16`, `sample:16:7`: a sample of that many blocks, namely the first, the last and random others. The second
      number is the seed (default 0)

    Raises InterpError ("argument") if the text cannot be parsed or a number is outside the grid.

    >>> choose("1,6:", (8, 1, 1), (2, 1, 1))
    [[0, 1], [6, 7]]
    """
    clusters = clusters_of(grid, cluster)
    if wanted is None:
        return clusters
    total = grid[0] * grid[1] * grid[2]
    if isinstance(wanted, str):
        word, _, rest = wanted.partition(":")
        if word.strip() == "sample":
            return _sample(clusters, rest, wanted)
        numbers = [n for part in wanted.split(",") for n in _part(part, total, wanted)]
    else:
        numbers = [int(b) for b in wanted]
    bad = [n for n in numbers if not 0 <= n < total]
    if bad:
        raise InterpError("argument", f"block {bad[0]} does not exist; the grid has {total} blocks")
    chosen = set(numbers)
    if not chosen:
        raise InterpError("argument", f"no block selected; select at least one of the {total} blocks")
    return [members for members in clusters if not chosen.isdisjoint(members)]


def _part(text: str, total: int, whole: str) -> Sequence[int]:
    low, colon, high = text.strip().partition(":")
    try:
        if not colon:
            return [int(low)]
        first, last = int(low or 0), int(high) if high else total
    except ValueError:
        raise InterpError("argument", f"invalid blocks {whole!r}; use {_SYNTAX}") from None
    if last > total or first < 0:
        raise InterpError("argument", f"blocks {text.strip()} do not all exist; the grid has {total} blocks")
    return range(first, last)


def _sample(clusters: list[list[int]], rest: str, whole: str) -> list[list[int]]:
    count_text, _, seed_text = rest.partition(":")
    try:
        count, seed = int(count_text), int(seed_text or 0)
    except ValueError:
        raise InterpError("argument", f"invalid blocks {whole!r}; use {_SYNTAX}") from None
    if count < 1:
        raise InterpError("argument", f"the sample has {count} blocks; it must have at least one")
    n = -(-count // len(clusters[0]))
    if n >= len(clusters):
        return clusters
    ends = [0, len(clusters) - 1][: min(n, 2)]
    middle = random.Random(seed).sample(range(1, len(clusters) - 1), n - len(ends)) if n > 2 else []
    return [clusters[i] for i in sorted([*ends, *middle])]


__all__ = ["choose", "clusters_of"]
