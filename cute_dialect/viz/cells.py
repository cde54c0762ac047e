"""Cells, grids of cells, and their lines; :mod:`.panels` draws them and :mod:`.drawing` typesets them in LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from cute_dialect.errors import CuteError


class DrawingError(CuteError, ValueError):
    """The object cannot be drawn. The message names the problem and the accepted input."""


MAX_CELLS = 1 << 16
"""Maximum number of cells of a drawing, which is a 256 x 256 layout."""


class Cell(NamedTuple):
    """A cell: its lines of text, the hover text, the class of its color, and a key shared by related cells."""

    lines: tuple[str, ...]
    hover: str
    fill: str
    key: str = ""


class Border(NamedTuple):
    """A line around a set of cells, given by (row, column)."""

    cells: Collection[tuple[int, int]]
    weight: int


@dataclass(frozen=True)
class Panel:
    """A grid of cells.

    - cells: by row and column
    - row_breaks, column_breaks: (span, weight) of the lines after every ``span`` rows or columns, where a nested mode
      wraps
    - row_starts: (row, weight) of lines before single rows
    - more: whether there are more rows and more columns than are drawn
    """

    title: str
    cells: Sequence[Sequence[Cell]]
    row_breaks: Sequence[tuple[int, int]] = ()
    column_breaks: Sequence[tuple[int, int]] = ()
    borders: Sequence[Border] = ()
    more: tuple[bool, bool] = (False, False)
    numbered: tuple[bool, bool] = (True, True)
    names: tuple[str, str] = ("", "")
    row_labels: Sequence[str] = ()
    row_starts: Sequence[tuple[int, int]] = ()

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.cells)

    @property
    def columns(self) -> int:
        """Number of columns."""
        return len(self.cells[0]) if self.cells else 0

    @property
    def left(self) -> float:
        """Pixels to the left of the first column."""
        widest = max((len(x) for x in self.row_labels), default=len(str(max(self.rows - 1, 0))))
        return (16 if self.names[0] else 0) + (8 + 7 * widest if self.numbered[0] else 2)

    @property
    def top(self) -> float:
        """Pixels above the first row."""
        return (20 if self.title else 2) + (14 if self.names[1] else 0) + (16 if self.numbered[1] else 2)


def few(cells: int) -> int:
    """Return the number of cells.  Raises DrawingError if it exceeds ``MAX_CELLS``."""
    if cells > MAX_CELLS:
        raise DrawingError(f"the drawing would have {cells} cells; at most {MAX_CELLS} are drawn, so draw a part of it")
    return cells


def grid(rows: int, columns: int, cell: Callable[[int, int], Cell]) -> list[list[Cell]]:
    """Return the cells of a grid.  Raises DrawingError if there are too many."""
    few(rows * columns)
    return [[cell(i, j) for j in range(columns)] for i in range(rows)]


def breaks(extents: Sequence[int]) -> list[tuple[int, int]]:
    """Return the (span, weight) of the lines in a nested mode: after how many cells each inner mode wraps around.

    >>> breaks((2, 4, 2)), breaks((8,))
    ([(2, 1), (8, 2)], [])
    """
    real = [e for e in extents if e != 1]
    out: list[tuple[int, int]] = []
    span = 1
    for n, extent in enumerate(real[:-1]):
        span *= extent
        out.append((span, min(n + 1, 3)))
    return out


def edges(cells: Collection[tuple[int, int]]) -> list[tuple[int, int, int, int]]:
    """Return the edges of a set of cells, merged into straight lines: (row, column) from and to.

    >>> edges([(0, 0), (0, 1)])
    [(0, 0, 0, 2), (1, 0, 1, 2), (0, 0, 1, 0), (0, 2, 1, 2)]
    """
    inside = set(cells)
    flat: dict[int, list[int]] = {}
    steep: dict[int, list[int]] = {}
    for i, j in sorted(inside):
        for di in (0, 1):
            if (i - 1 + 2 * di, j) not in inside:
                flat.setdefault(i + di, []).append(j)
        for dj in (0, 1):
            if (i, j - 1 + 2 * dj) not in inside:
                steep.setdefault(j + dj, []).append(i)
    out = [(i, a, i, b) for i, js in sorted(flat.items()) for a, b in _runs(js)]
    return out + [(a, j, b, j) for j, is_ in sorted(steep.items()) for a, b in _runs(is_)]


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Return the contiguous ranges of a set of numbers.

    >>> _runs([3, 1, 2, 7])
    [(1, 4), (7, 8)]
    """
    found = sorted(numbers)
    cuts = [0, *[k + 1 for k, (a, b) in enumerate(pairwise(found)) if b != a + 1], len(found)]
    return [(found[a], found[b - 1] + 1) for a, b in pairwise(cuts)]
