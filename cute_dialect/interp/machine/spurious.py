"""Instructions that may fail spuriously or choose a thread, and their behavior under each schedule.

`mbarrier.try_wait` waits for a limited time, and a weak compare-and-swap may fail although the values are equal.
`elect.sync` may elect any thread of its mask. Sources: PTX ISA 9.0, "mbarrier.try_wait", "elect.sync"; LLVM LangRef,
"cmpxchg". A kernel must be correct in every case:

| schedule | try_wait, weak compare-and-swap | elect.sync |
|---|---|---|
| `round-robin`, `reverse` | succeed; try_wait waits as long as needed | the first thread of the mask |
| `random` | fail half the time | one thread of the mask, chosen by the seed |
| `adversarial` | fail each time | the last thread of the mask |

In each warp an instruction fails at most `MAX_FAILURES` times in a row, so a loop around it ends. A try_wait whose
result is not read never waits, under any schedule.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from cute_dialect.interp.machine.group import Group
    from cute_dialect.interp.values import Array

MAX_FAILURES = 3


class Spurious:
    """Spurious failures and choices of one launch."""

    __slots__ = ("_rng", "_schedule", "_seed")

    def __init__(self, schedule: str = "round-robin", seed: int = 0) -> None:
        self._schedule = schedule
        self._seed = seed
        # separate from the scheduler's generator, whose sequence must not depend on this one
        self._rng = random.Random(seed)

    def fails(self, g: Group, op: int) -> bool:
        """Return True if the instruction `op` (any number that identifies it) fails this time in a warp."""
        if self._schedule not in ("random", "adversarial"):
            return False
        failed = g.failures.get(op, 0)
        if failed >= MAX_FAILURES or (self._schedule == "random" and self._rng.random() < 0.5):
            g.failures[op] = 0
            return False
        g.failures[op] = failed + 1
        return True

    def elect(self, members: Array) -> Array:
        """Return the number of the elected lane for each row of `members`, which holds a bool for each lane.

        The same mask elects the same lane each time.
        """
        if self._schedule == "adversarial":
            return members.shape[-1] - 1 - members[..., ::-1].argmax(axis=-1)
        if self._schedule == "random":
            rank = self._seed % np.maximum(members.sum(axis=-1), 1)
            return (members.cumsum(axis=-1) == rank[..., None] + 1).argmax(axis=-1)
        return members.argmax(axis=-1)


__all__ = ["MAX_FAILURES", "Spurious"]
