"""What a kernel leaves of rows and columns, and the launches that combine it."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

from cute_dialect.kernels.epilogue_graph import STRIP
from cute_dialect.kernels.finish_reduction import CombineConfig
from cute_dialect.runtime.arrays import ArrayView

__all__ = ["Combining", "Reduced", "combining", "memory_of"]


class Reduced(NamedTuple):
    """A result of whole rows (``axes`` n), columns (m) or both of D: ``place``: its number among what stands behind the
    matrices of a launch; ``operation``: sum, max or min; ``result``: where it goes, (M, 1), (1, N) or (1, 1), L before.
    """

    place: int
    operation: str
    axes: str
    result: ArrayView
    half: bool = False
    """Of what has half of the columns of the sums."""

    def extents(self, rows: int, columns: int, at_once: int, turned: bool) -> tuple[int, int]:
        """Return the extents of its parts, of a kernel whose result has so many rows and columns, ``at_once`` of which
        are reduced at once; ``turned``: they are the columns and rows of D.
        """
        if (self.axes != "m") != turned:
            return -(-columns // at_once), rows
        return -(-rows // STRIP), columns // 2 if self.half else columns


class Combining(NamedTuple):
    """A launch: the parts, (parts, results, matrices), and where the results go, (results, matrices)."""

    config: CombineConfig
    parts: ArrayView
    results: ArrayView


def memory_of(memory: ArrayView, extents: tuple[int, int], matrices: int) -> ArrayView:
    """Return memory for parts as a kernel takes it: of several matrices with a third mode."""
    shape, strides = (*extents, matrices), (extents[1], 1, prod(extents))
    return memory._replace(shape=shape, strides=strides) if matrices > 1 else memory._replace(
        shape=shape[:2], strides=strides[:2]
    )  # fmt: skip


def combining(x: Reduced, parts: ArrayView, memory: Callable[[int], ArrayView]) -> list[Combining]:
    """Return the launches that combine parts; ``memory``: gives so many f32 for what comes between."""
    to = x.result
    if len(to.shape) == 2:
        to = to._replace(shape=(1, *to.shape), strides=(0, *to.strides))
    mode = 1 if to.shape[1] != 1 else 2
    results = to._replace(shape=(to.shape[mode], to.shape[0]), strides=(to.strides[mode], to.strides[0]))
    if len(parts.shape) == 2:
        parts = parts._replace(shape=(*parts.shape, 1), strides=(*parts.strides, prod(parts.shape)))
    if x.axes != "nm":
        return [Combining(CombineConfig(x.operation, to.dtype), parts, results)]
    _, rows, matrices = parts.shape
    between = memory(max(1, rows * matrices))._replace(shape=(rows, matrices), strides=(1, rows))
    lines = between._replace(shape=(rows, 1, matrices), strides=(1, rows, rows))
    return [
        Combining(CombineConfig(x.operation), parts, between),
        Combining(CombineConfig(x.operation, to.dtype, 1), lines, results),
    ]
