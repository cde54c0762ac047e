"""Common refinement of the modes of several layouts of equal size.

>>> a, b = Layout((4, 8), (1, 16)), Layout(32, 1)
>>> common_modes([a, b])
[Mode(extent=4, strides=(1, 1)), Mode(extent=8, strides=(16, 4))]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf, mul
from cute_dialect.algebra.trees import leaves
from cute_dialect.algebra.values import Layout

__all__ = ["Mode", "common_modes"]


class Mode(NamedTuple):
    """A common mode of several layouts: one extent, and one stride per layout."""

    extent: int
    strides: tuple[Leaf, ...]


def common_modes(layouts: Sequence[Layout]) -> list[Mode]:
    """Split the modes of layouts of equal size until corresponding modes have equal extents.

    Raises:
        AlgebraError: the extents have no common refinement.
    """
    rows = [_flat(layout) for layout in layouts]
    modes: list[Mode] = []
    while any(rows):
        extent = min(row[0][0] for row in rows if row)
        if not all(rows) or any(row[0][0] % extent for row in rows):
            shapes = ", ".join(str(layout) for layout in layouts)
            raise AlgebraError(f"expected shapes that split into common modes, got {shapes}")
        modes.append(Mode(extent, tuple(row[0][1] for row in rows)))
        for row in rows:
            s, d = row[0]
            row[0:1] = [(s // extent, mul(d, extent))] if s != extent else []
    return modes


def _flat(layout: Layout) -> list[tuple[int, Leaf]]:
    pairs: list[tuple[int, Leaf]] = []
    for s, d in zip(leaves(layout.shape), leaves(layout.stride)):
        assert isinstance(s, int)
        if s != 1:
            assert isinstance(d, int | Dyn)
            pairs.append((s, d))
    return pairs
