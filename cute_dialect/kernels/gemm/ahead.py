"""What an epilogue reads that is one a row or one a column, read by a warp at once, before the sums are there.

In the registers of ``wgmma`` (:mod:`cute_dialect.kernels.gemm.fused`) the eight lanes with one ``l % 4`` have the same
columns.  So each lane of a warp reads two neighbours of every 64 columns, lane ``l`` columns ``2 l`` and ``2 l + 1``,
and gives them to those that have these columns: of 256 columns a lane reads eight, not 64, and holds no more, so that a
kernel can read them before it multiplies.
"""

# Operators and attributes are those of values in a trace.
# pyright: basic, reportOptionalMemberAccess=false

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import cute_dialect.lang as cute
from cute_dialect.kernels.epilogue_graph import Input

__all__ = ["Ahead", "AnyColumns", "Columns", "OwnColumns", "element_of", "pair_of"]

_AT_ONCE = 64
"""Columns that a warp reads at once."""


class Ahead(NamedTuple):
    """What was read: ``columns`` of a tile, and for each of its instructions ``rows``, of each input the values in the
    two rows of a thread.
    """

    columns: "AnyColumns"
    rows: list[list[list[Any]]]


class Columns:
    """What is one a column, of ``count`` columns of the sums from ``first`` on, a multiple of 8.

    ``lines``: of each input its vector, or None; ``at``: gives where a column of the sums lies in D.
    """

    def __init__(
        self, inputs: Sequence[Input], lines: Sequence[Any], first: Any, count: int, compute: Any, at: Any = None
    ):  # fmt: skip
        self.inputs, self.lines, self.compute, self.lane = inputs, lines, compute, cute.arch.lane_idx()
        self.held: list[Any] = [None for _ in inputs]
        for n, (x, line) in enumerate(zip(inputs, lines)):
            if line is not None:
                found: list[Any] = []
                for start in range(0, count, _AT_ONCE):
                    place = first + (self.lane * 2 + start)
                    found += self._read(x, line, place if at is None else at(place))
                self.held[n] = cute.make_rmem_tensor(len(found), cute.Int32 if _is_word(x, line) else compute)
                for i in cute.range_constexpr(len(found)):
                    self.held[n][i] = found[i]

    def _read(self, x: Input, line: Any, place: Any) -> list[Any]:
        """Return what a lane holds of two neighbours: values, one where they are the same, or a word."""
        if x.half:
            return [element_of(line, place // 2, self.compute)]
        return [_neighbours(line, place, x).bitcast(cute.Int32)[0]] if _is_word(x, line) else two(
            line, place, x, self.compute
        )  # fmt: skip

    def pair(self, group: Any) -> list[Any]:
        """Return of each input its values in this thread's two columns of the ``group``-th eight; None of others."""
        found: list[Any] = []
        start, lane = group // (_AT_ONCE // 8), group % (_AT_ONCE // 8) * 4 + self.lane % 4
        for x, line, held in zip(self.inputs, self.lines, self.held):
            if line is None:
                found.append(None)
            elif _is_word(x, line):
                word = cute.make_rmem_tensor(1, cute.Int32)
                word[0] = cute.arch.shuffle_sync(held[start], lane)
                both = word.load().bitcast(line.element_type).to(self.compute)
                found.append([both[0], both[1]])
            elif x.half:
                found.append([cute.arch.shuffle_sync(held[start], lane)] * 2)
            else:
                found.append([cute.arch.shuffle_sync(held[start * 2 + i], lane) for i in range(2)])
        return found


class OwnColumns:
    """The same, which each thread reads for itself when it is asked for.

    Beside matrices that are loaded too, exchanges would be the first thing that ptxas lets a warp do, and their loads
    the last (gelu(sums + bias) + matrix, 4096 each, of an H200: 3 % more time).
    """

    def __init__(self, inputs: Sequence[Input], lines: Sequence[Any], first: Any, compute: Any, at: Any = None):
        self.inputs, self.lines, self.compute, self.at = inputs, lines, compute, at
        self.first = first + cute.arch.lane_idx() % 4 * 2

    def pair(self, group: Any) -> list[Any]:
        """Return of each input its values in this thread's two columns of the ``group``-th eight; None of others."""
        place = self.first + group * 8
        place = place if self.at is None else self.at(place)
        return [
            None if line is None else pair_of(line, place, x, self.compute) for x, line in zip(self.inputs, self.lines)
        ]


AnyColumns: TypeAlias = Columns | OwnColumns


def pair_of(line: Any, column: Any, x: Input, compute: Any) -> list[Any]:
    """Return two neighbours of a vector, or what stands for both."""
    return [element_of(line, column // 2, compute)] * 2 if x.half else two(line, column, x, compute)


def _is_word(x: Input, line: Any) -> bool:
    """Tell whether two neighbours of a vector are held as the word that they are."""
    return line.element_type.width == 16 and not x.half


def element_of(line: Any, at: Any, compute: Any) -> Any:
    """Return an element of a vector; of what lies behind it the last one."""
    return line[cute.min(at, cute.size(line) - 1)].to(compute)


def two(line: Any, column: Any, x: Input, compute: Any) -> Any:
    """Return two neighbours of a vector, the first in an even place."""
    if not x.pairs:
        return [element_of(line, column + i, compute) for i in range(2)]
    return _neighbours(line, column, x).to(compute)


def _neighbours(line: Any, column: Any, x: Input) -> Any:
    """Return two neighbours of a vector as they are in memory."""
    if not x.pairs:
        both = cute.make_rmem_tensor(2, line.element_type)
        for i in cute.range_constexpr(2):
            both[i] = line[cute.min(column + i, cute.size(line) - 1)]
        return both.load()
    first = cute.min(column, cute.size(line) - 2)
    at = line.iterator + (cute.crd2idx(first, line.layout) if x.split else first)
    return cute.make_tensor(at.align(2 * line.element_type.width // 8), cute.make_layout(2)).load()
