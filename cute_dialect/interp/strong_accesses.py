"""Strong accesses to a place, and which of them may meet without order.

Two accesses that nothing orders are no data race if they are morally strong: both strong, each with a scope that holds
the other's thread, through one proxy, and to exactly the same bytes.  Source: PTX ISA 9.0, 8.7.1 "Morally strong
operations", 8.7.2 "Conflict and Data-races", 8.7.3 "Limitations on Mixed-size Data-races".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cute_dialect.interp.flags import CLUSTER, CTA, GPU


class Sort(NamedTuple):
    """A sort of strong accesses: whether they write, their scope, first byte and size of the element."""

    store: bool
    scope: int
    start: int
    size: int


class By(NamedTuple):
    """The origin of a strong access: who made it, when, and where in the program."""

    cluster: int
    block: int
    actor: int
    time: int
    site: int


class Strong:
    """The strong accesses to a granule since its last weak write: the last by each thread, of each sort."""

    __slots__ = ("_sorts",)

    def __init__(self) -> None:
        self._sorts: dict[Sort, dict[tuple[int, int], By]] = {}

    def copy(self) -> Strong:
        """Return the same, to go on by itself."""
        out = Strong()
        out._sorts = {s: dict(all_) for s, all_ in self._sorts.items()}
        return out

    def add(self, sort: Sort, by: By) -> None:
        """Remember an access."""
        self._sorts.setdefault(sort, {})[by.cluster, by.actor] = by

    def written(self) -> By | None:
        """Return one of the writes."""
        return next((by for sort, all_ in self._sorts.items() if sort.store for by in all_.values()), None)

    def against(self, sort: Sort | None, cluster: int, block: int, store: bool) -> Iterator[tuple[Sort, list[By]]]:
        """Return what must be ordered before an access by a thread of a block: one of a sort, or a weak one (None)."""
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
