"""Text tables of layouts.

>>> print(layout_table(Layout("(2,4):(4,1)")))
(2,4):(4,1)
      0   1   2   3
    +---+---+---+---+
 0  | 0 | 1 | 2 | 3 |
    +---+---+---+---+
 1  | 4 | 5 | 6 | 7 |
    +---+---+---+---+
"""

from __future__ import annotations

from collections.abc import Callable

from cute_dialect.algebra.evaluation import evaluate
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.trees import is_static, product, product_each, shown
from cute_dialect.algebra.values import AnyLayout, ComposedLayout, IntTuple, Layout

MAX_CELLS = 1 << 16


def layout_table(layout: AnyLayout) -> str:
    """Return a text table of the index of every coordinate.  Mode 0 runs down and mode 1 to the right.

    A layout of rank 1 is drawn as one row.

    Raises:
        AlgebraError: the layout is dynamic, has rank above 2 or has more than 65536 elements.

    >>> print(layout_table(Layout("3:2")))
    3:2
          0   1   2
        +---+---+---+
        | 0 | 2 | 4 |
        +---+---+---+
    """
    rows, columns = _extents(layout)
    if rows is None:
        body = _grid([None], columns, lambda _, j: shown(evaluate(j, layout)))
    else:
        body = _grid(list(range(rows)), columns, lambda i, j: shown(evaluate((i, j), layout)))
    return f"{layout}\n{body}"


def thread_value_table(tv: Layout, tiler: IntTuple) -> str:
    """Return a text table of a tile ``(M, N)`` that shows the thread and value of each element.

    ``T3V1`` is value 1 of thread 3.  If several threads hold an element all of them are listed.

    Args:
        tv: thread-value layout, ``(thread, value)`` -> column-major index in the tile.
        tiler: shape ``(M, N)`` of the tile.

    Raises:
        AlgebraError: ``tv`` is dynamic, not of rank 2 or maps outside the tile.

    >>> print(thread_value_table(Layout("(2,2):(2,1)"), (2, 2)))
           0      1
        +------+------+
     0  | T0V0 | T1V0 |
        +------+------+
     1  | T0V1 | T1V1 |
        +------+------+
    """
    extents = product_each(tiler)
    threads, values = _extents(tv)
    if len(extents) != 2 or threads is None or not is_static(tiler):
        raise AlgebraError(f"expected a thread-value layout over a tile (M, N), got {shown(tv)} over {shown(tiler)}")
    rows, columns = extents
    assert type(rows) is int and type(columns) is int
    holders: list[list[str]] = [[] for _ in range(rows * columns)]
    for t in range(threads):
        for v in range(values):
            at = evaluate((t, v), tv)
            if type(at) is not int or not 0 <= at < len(holders):
                raise AlgebraError(f"expected indices in [0, {len(holders)}) of the tile, got {shown(at)}")
            holders[at].append(f"T{t}V{v}")
    return _grid(list(range(rows)), columns, lambda i, j: " ".join(holders[i + rows * j]) or "-")


def print_layout(layout: AnyLayout) -> None:
    """Print the table that :func:`layout_table` returns."""
    print(layout_table(layout))


def _extents(layout: AnyLayout) -> tuple[int | None, int]:
    if not is_static(layout):
        raise AlgebraError(f"expected a static layout to draw, got {shown(layout)}")
    shape = layout.outer.shape if isinstance(layout, ComposedLayout) else layout.shape
    sizes = product_each(shape)
    if len(sizes) > 2:
        raise AlgebraError(f"expected rank 1 or 2 to draw, got rank {len(sizes)}; group the modes first")
    cells = product(shape)
    if type(cells) is not int or cells > MAX_CELLS:
        raise AlgebraError(f"expected at most {MAX_CELLS} elements to draw, got {cells}")
    if len(sizes) == 2:
        assert type(sizes[0]) is int and type(sizes[1]) is int
        return sizes[0], sizes[1]
    return None, cells


def _grid(rows: list[int | None], columns: int, cell: Callable[[int, int], str]) -> str:
    cells = [[cell(i or 0, j) for j in range(columns)] for i in rows]
    width = max([len(str(columns - 1)), *[len(c) for row in cells for c in row]])
    rule = "    " + ("+" + "-" * (width + 2)) * columns + "+"
    lines = ["    " + "".join(["  " + str(j).center(width) + " " for j in range(columns)])]
    lines = [lines[0].rstrip(), rule]
    for i, row in zip(rows, cells):
        head = " " * 4 if i is None else f"{i:>2}".ljust(4)
        lines += [head + "".join([f"| {c:>{width}} " for c in row]) + "|", rule]
    return "\n".join(lines)


__all__ = ["layout_table", "print_layout", "thread_value_table"]
