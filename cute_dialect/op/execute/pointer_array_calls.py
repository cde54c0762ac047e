"""Cached GEMMs over lists of torch tensors on a GPU.

Only addresses differ between calls.  A replay fills them into the recorded table of GEMMs, copies it to the GPU if
needed, allocates the results and launches.
"""

# torch is not installed where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cute_dialect.op.execute.pointer_arrays import table_like
from cute_dialect.op.execute.replay import maker_of
from cute_dialect.runtime.arrays import ArrayView, current_stream_of_torch

__all__ = ["PointerArrayCalls", "Slice"]

_LIMIT = 256
_UNIT = 16
"""Bytes.  Addresses must equal those of the recorded call modulo this."""


class Slice(NamedTuple):
    """A launch that computes some of the GEMMs: ``launch(stream, a, b, d, problems, turns, 0, *more)``."""

    launch: Callable[..., object]
    here: Any  # mask of the GEMMs that it computes
    turns: int  # address of the tile schedule
    more: tuple[int, ...]  # further fixed addresses


class _Operand(NamedTuple):
    """The address column of an operand in the table."""

    column: int
    live: Any  # indices of the GEMMs that access the operand
    item: int  # bytes per element


class CachedCall(NamedTuple):
    """A specialization."""

    table: Any  # the table, to be completed with addresses
    operands: tuple[_Operand, _Operand, _Operand]  # A, B and D
    begins: Any  # addresses of A and B modulo 16
    made: Sequence[tuple[Any, Any, Any]]  # shape, strides and dtype of each result
    empty: Callable[..., Any]
    parts: Sequence[Slice]
    like: ArrayView  # an array in the memory where tables are
    number: int  # device number
    keep: object  # objects whose memory the launches use


class PointerArrayCalls:
    """A cache of calls: ``results = known.again(a, b, how)``, None if there is no cached call."""

    def __init__(self, stream: Callable[[int], int] | None = None) -> None:
        self._found: dict[object, CachedCall] = {}
        self._stream = stream

    def __len__(self) -> int:
        return len(self._found)

    def clear(self) -> None:
        """Remove all cached calls."""
        self._found.clear()

    def again(self, a: Sequence[Any], b: Sequence[Any], how: object) -> list[Any] | None:
        """Replay a cached call, or return None if there is none.  ``how``: the other arguments of the call."""
        if not self._found:
            return None
        try:
            known = self._found.get(key_of(a, b, how))
            if known is None:
                return None
            addresses = np.array([t.data_ptr() for t in (*a, *b)], np.int64)
        except (AttributeError, TypeError, RuntimeError):  # Not strided tensors; the uncached call reports it.
            return None
        assert self._stream is not None
        if (addresses % _UNIT != known.begins).any():
            return None
        results = [known.empty(*kind) for kind in known.made]
        of_results = np.array([t.data_ptr() for t in results], np.int64)
        if (of_results % _UNIT).any():
            return None
        table, bases = known.table.copy(), list[int]()
        for x, pointers in zip(known.operands, (addresses[: len(a)], addresses[len(a) :], of_results)):
            there = pointers[x.live]
            base = int(there.min()) if len(there) else bases[0] if bases else int(of_results.max())
            table[x.live, x.column] = (there - base) // x.item
            bases.append(base)
        raw = self._stream(known.number)
        for part in known.parts:
            mine = table
            if not part.here.all():
                mine = table.copy()
                mine[~part.here, 0] = 0
            problems = table_like(mine, known.like)
            part.launch(raw, *bases, problems.pointer, part.turns, 0, *part.more)
        return results

    def remember(
        self, a: Sequence[Any], b: Sequence[Any], how: object, results: Sequence[Any], table: Any,
        columns: Sequence[int], parts: Sequence[Slice], like: ArrayView, keep: object = None,
    ) -> None:  # fmt: skip
        """Record a call.

        Args:
            table: its table of GEMMs.
            columns: columns of the table with the addresses of A, B and D.
            parts: its launches.
            like: an array in the memory where tables are.
            keep: objects to keep alive.
        """
        if self._stream is None:
            self._stream = current_stream_of_torch()
        if len(self._found) >= _LIMIT:
            self._found.clear()
        of_d = (table[:, 0] > 0) & (table[:, 1] > 0)
        of_ab = of_d & (table[:, 2] > 0)
        operands = [
            _Operand(column, np.flatnonzero(live), t[0].element_size())
            for column, live, t in zip(columns, (of_ab, of_ab, of_d), (a, b, results))
        ]
        begins = np.array([t.data_ptr() for t in (*a, *b)], np.int64) % _UNIT
        made = [(tuple(t.shape), t.stride(), t.dtype) for t in results]
        device = results[0].device
        self._found[key_of(a, b, how)] = CachedCall(
            table.copy(), (operands[0], operands[1], operands[2]), begins, made, maker_of(device), parts, like,
            device.index or 0, keep,
        )  # fmt: skip


def key_of(a: Sequence[Any], b: Sequence[Any], how: object) -> object:
    """Return the key of a specialization: all properties that checks and choices use, except addresses."""
    kinds = [(type(t), t.shape, t.stride(), t.dtype, t.is_cuda, t.get_device()) for t in (*a, *b)]
    return len(a), tuple(kinds), how
