"""Strong accesses to a granule, and which of them may race without being an error.

Two unordered accesses are not a data race if they are morally strong: both are strong, each has a scope that includes
the other thread, both use the same proxy, and both access exactly the same bytes. Source: PTX ISA 9.0, 8.7.1 "Morally
strong operations", 8.7.2 "Conflict and Data-races", 8.7.3 "Limitations on Mixed-size Data-races".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cute_dialect.interp.race.flags import CLUSTER, CTA, GPU


class Sort(NamedTuple):
    """A class of strong accesses: write or read, scope, first byte, and element size."""

    store: bool
    scope: int
    start: int
    size: int


class By(NamedTuple):
    """The origin of a strong access: cluster, block, actor, time and site."""

    cluster: int
    block: int
    actor: int
    time: int
    site: int


class Strong:
    """The strong accesses to a granule since its last weak write: the last one per thread and sort."""

    __slots__ = ("_sorts",)

    def __init__(self) -> None:
        self._sorts: dict[Sort, dict[tuple[int, int], By]] = {}

    def copy(self) -> Strong:
        """Return an independent copy."""
        out = Strong()
        out._sorts = {s: dict(all_) for s, all_ in self._sorts.items()}
        return out

    def add(self, sort: Sort, by: By) -> None:
        self._sorts.setdefault(sort, {})[by.cluster, by.actor] = by

    def written(self) -> By | None:
        """Return one of the writes, None if there is none."""
        return next((by for sort, all_ in self._sorts.items() if sort.store for by in all_.values()), None)

    def against(self, sort: Sort | None, cluster: int, block: int, store: bool) -> Iterator[tuple[Sort, list[By]]]:
        """Yield the accesses that must be ordered before an access of `sort` (None for a weak one) in a block."""
        for other, all_ in self._sorts.items():
            if not (store or other.store):
                continue
            found = list(all_.values())
            if sort is not None and (sort.start, sort.size) == (other.start, other.size):
                scope = min(sort.scope, other.scope)
                if scope == GPU:
                    continue
                found = [
                    by
                    for by in found
                    if scope < (CTA if by.block == block else CLUSTER if by.cluster == cluster else GPU)
                ]
            if found:
                yield other, found


__all__ = ["By", "Sort", "Strong"]
