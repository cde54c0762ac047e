"""Partial results of the reductions in an epilogue, and the launches that combine them."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

from cute_dialect.kernels.epilogue.finish_reduction import CombineConfig
from cute_dialect.kernels.epilogue.graph import STRIP
from cute_dialect.runtime.arrays import ArrayView

__all__ = ["Combining", "Reduced", "combining", "memory_of"]


class Reduced(NamedTuple):
    """A result that reduces the rows (``axes`` "n"), columns ("m") or all elements ("nm") of D."""

    place: int  # position among the launch arguments after the matrices
    operation: str  # "sum", "max" or "min"
    axes: str
    result: ArrayView  # (M, 1), (1, N) or (1, 1), with L in front for a batch
    half: bool = False  # True if the reduced value has half as many columns as the accumulator

    def extents(self, rows: int, columns: int, at_once: int, turned: bool) -> tuple[int, int]:
        """Return the shape of the partial results.

        Args:
            rows: rows of the kernel's result.
            columns: columns of the kernel's result.
            at_once: columns that are reduced together.
            turned: True if the kernel computes the transpose of D.
        """
        if (self.axes != "m") != turned:
            return -(-columns // at_once), rows
        return -(-rows // STRIP), columns // 2 if self.half else columns


class Combining(NamedTuple):
    """A launch that combines partial results."""

    config: CombineConfig
    parts: ArrayView  # (parts, results, matrices)
    results: ArrayView  # (results, matrices)


def memory_of(memory: ArrayView, extents: tuple[int, int], matrices: int) -> ArrayView:
    """Return memory for partial results in the kernel's layout, with a third mode if there are several matrices."""
    shape, strides = (*extents, matrices), (extents[1], 1, prod(extents))
    return memory._replace(shape=shape, strides=strides) if matrices > 1 else memory._replace(
        shape=shape[:2], strides=strides[:2]
    )  # fmt: skip


def combining(x: Reduced, parts: ArrayView, memory: Callable[[int], ArrayView]) -> list[Combining]:
    """Return the launches that combine partial results; ``memory(n)`` allocates n f32 for intermediate results."""
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
