"""Lists of products that were computed before, of torch's tensors on a GPU: of a list like that only addresses are new,
so the table of products is filled in anew (and copied to the GPU, if it is not there), results are made, and launched.
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cute_dialect.op.plans.together import table_like
from cute_dialect.op.repeated import maker_of
from cute_dialect.runtime.arrays import ArrayView

__all__ = ["KnownLists", "Part"]

_LIMIT = 256
_UNIT = 16
"""Bytes: addresses are like those of the call that is remembered, modulo this."""


class Part(NamedTuple):
    """A launch of some of the products: ``launch(stream, a, b, d, problems, turns, 0, *more)``; ``here``: which
    products are its own; ``turns`` and ``more``: addresses that stay.
    """

    launch: Callable[..., object]
    here: Any
    turns: int
    more: tuple[int, ...]


class _Operand(NamedTuple):
    """A column of the table: its number, which products have elements of it, bytes of one."""

    column: int
    live: Any
    item: int


class _Known(NamedTuple):
    """A kind of call: the table, but for addresses; A, B and D in it; what A and B begin at, modulo 16; results;
    ``like``: an array where tables are; ``keep``: what must live.
    """

    table: Any
    operands: tuple[_Operand, _Operand, _Operand]
    begins: Any
    made: Sequence[tuple[Any, Any, Any]]
    empty: Callable[..., Any]
    parts: Sequence[Part]
    like: ArrayView
    number: int
    keep: object


class KnownLists:
    """The calls that were made: ``results = known.again(a, b, how)``, None where there was none like it."""

    def __init__(self, stream: Callable[[int], int] | None = None) -> None:
        self._found: dict[object, _Known] = {}
        self._stream = stream

    def __len__(self) -> int:
        return len(self._found)

    def clear(self) -> None:
        """Forget all."""
        self._found.clear()

    def again(self, a: Sequence[Any], b: Sequence[Any], how: object) -> list[Any] | None:
        """Compute lists like earlier ones; ``how``: all else that the call says.  Returns None, and does nothing, where
        there were none.
        """
        if not self._found:
            return None
        try:
            known = self._found.get(key_of(a, b, how))
            if known is None:
                return None
            addresses = np.array([t.data_ptr() for t in (*a, *b)], np.int64)
        except (AttributeError, TypeError, RuntimeError):  # no strided tensors: who computes says so
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
        columns: Sequence[int], parts: Sequence[Part], like: ArrayView, keep: object = None,
    ) -> None:  # fmt: skip
        """Remember a call whose table of products is ``table``; ``columns``: of A, of B and of D in it."""
        if self._stream is None:
            from cute_dialect.runtime.arrays import current_stream_of_torch

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
        self._found[key_of(a, b, how)] = _Known(
            table.copy(), (operands[0], operands[1], operands[2]), begins, made, maker_of(device), parts, like,
            device.index or 0, keep,
        )  # fmt: skip


def key_of(a: Sequence[Any], b: Sequence[Any], how: object) -> object:
    """Return what tells one kind of call from another: all that checks and choices look at but addresses."""
    kinds = [(type(t), t.shape, t.stride(), t.dtype, t.is_cuda, t.get_device()) for t in (*a, *b)]
    return len(a), tuple(kinds), how
