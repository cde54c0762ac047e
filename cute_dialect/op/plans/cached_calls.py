"""Cached calls of a plan: one look-up finds the launches, which take addresses only.

The other properties of the arguments (``operation``, ``operands``, …) are computed on first use.
"""

# torch is not installed where the types are checked.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from cute_dialect.op.execute.arguments import Arguments
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.runtime.arrays import current_stream_of_torch

__all__ = ["Again", "cached", "replayed"]


class Again(Arguments):
    """The arguments of a replayed call; ``make`` computes their properties from the same arrays."""

    def __init__(self, make: Callable[[], Arguments], D: Any):
        self._make, self.D, self.results = make, D, {"D": D}
        self._transfer, self.launched = None, []
        number = D.device.index or 0
        self._waits_for(number, current_stream_of_torch()(number))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        for key, value in vars(self._make()).items():
            self.__dict__.setdefault(key, value)
        return object.__getattribute__(self, name)


def replayed(
    known: KnownCalls, how: object, tensors: Sequence[Any], make: Callable[[Any], Arguments]
) -> Again | None:  # fmt: skip
    """Replay a cached call, or return None if there is none.

    Args:
        how, tensors: as in :class:`~cute_dialect.op.execute.call_cache.KnownCalls`.
        make: returns the arguments of the call for its D.
    """
    if "torch" not in sys.modules or len(known) == 0 or known.is_traced():
        return None
    found = known.again(how, *tensors)
    return None if found is None else Again(lambda: make(found), found)


def cached(known: KnownCalls, how: object, tensors: Sequence[Any], compute: Callable[[], Arguments]) -> Arguments:
    """Compute a call, and cache its launches if its tensors are torch tensors on a GPU."""
    done: list[Arguments] = []

    def result() -> Any:
        done.append(compute())
        return done[0].D

    known.recorded(how, tensors, result)
    return done[0]
