"""Calling convention of a compiled GEMM: order and form of its arguments, and the workspace of its blocks.

A recipe is plain data.  A saved plan stores it as JSON and runs without the compiler
(:mod:`~cute_dialect.op.execute.saved`).

>>> of_stream = Recipe("k", share=Share(0, 0, 4194304, 128))
>>> of_stream.share.of(1000, 1000), Recipe.from_json(of_stream.to_json()) == of_stream
((4194304, 128), True)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, cast

from cute_dialect.op.arrays.dtypes import SIZES
from cute_dialect.op.problems.plan_operands import Operands, transposed
from cute_dialect.runtime.arrays import ArrayView

__all__ = ["Recipe", "Share"]


class Share(NamedTuple):
    """The global workspace that the blocks of a launch share."""

    # The workspace is per tile of `rows` x `columns` of D, or for all of D if `rows` is 0.
    rows: int
    columns: int
    floats: int  # f32 elements
    counters: int  # i32 counters, which are zero before and after a launch

    def of(self, m: int, n: int) -> tuple[int, int]:
        """Return the numbers of floats and counters for D of shape (m, n) as the kernel sees it."""
        tiles = -(-m // self.rows) * -(-n // self.columns) if self.rows else 1
        return tiles * self.floats, tiles * self.counters


class Recipe(NamedTuple):
    """The calling convention of a kernel.

    Its arguments are, in order: A, B, D, the workspace of ``share``, C, the bias, the operands of a graph, and alpha
    and beta.  With ``array``, the table of positions comes last.
    """

    name: str  # name of the kernel
    transposed: bool = False  # the kernel computes D^T = B^T A^T
    b_by_k: bool = False  # it takes B as (K, N), not as (N, K)
    batch: bool = False  # matrices have a third mode
    share: Share | None = None
    source: bool = False  # it takes C
    bias: str = ""  # index of the bias, "m" or "n"
    numbers: tuple[str, ...] = ()  # "alpha", "beta", if they are arguments
    tma: bool = True  # addresses and row strides are multiples of 16 bytes
    sums: bool = False  # it adds up split-K slices: A has the slices in the kernel's layout, and there is no B
    array: bool = False  # matrices are at separate addresses
    interleaved: bool = False  # columns are in runs of 32
    operands: tuple[str, ...] = ()  # kinds of the graph's inputs and results, in place of C, bias and numbers
    at_once: int = 0  # columns of the kernel's result that are reduced together
    taken: bool = False  # operands are already in the kernel's layout, with the batch mode last
    scales: bool = False  # blocks of A and B have scales
    chunk: int = 0  # D has a third mode; for each of its indices, this many of the second mode are computed at a time

    def arguments(self, x: Operands, shared: Sequence[object] = ()) -> tuple[object, ...]:
        """Return the arguments of the kernel; ``shared`` is the workspace of :attr:`share`."""
        a, b, d, c = x.a, x.b, x.d, x.c
        if self.taken:
            numbers = [getattr(x, name) for name in self.numbers]
            behind = [v for v, there in ((c, self.source), (x.bias, bool(self.bias))) if there]
            return (a, b, d, *shared, *behind, *x.behind[: len(self.operands)], *numbers)
        if self.transposed:
            a, b, d = transposed(b), transposed(a), transposed(d)
            c = None if c is None else transposed(c)
        b = b if self.b_by_k else transposed(b)
        given: list[object] = [x.a, self._form(d)] if self.sums else [self._form(v) for v in (a, b, d)]
        given += [*shared, *(x.scales if self.scales else ())]
        if self.source:
            assert c is not None
            given.append(self._form(c))
        if self.bias:
            given.append(x.bias)
        splits = () if x.graph is None else [y.split for y in (*x.graph.inputs, *x.graph.outputs[1:])]
        for kind, operand, split in zip_longest(self.operands, x.behind[: len(self.operands)], splits, fillvalue=""):
            turned = self.transposed and kind == "aux" and isinstance(operand, ArrayView)
            given.append(_columns_first(operand, split) if turned else operand)  # type: ignore[arg-type]
        given += [getattr(x, name) for name in self.numbers]
        if self.array and x.places is not None:
            count, step = x.places.shape[1], 4 * SIZES["i32"] if self.transposed else 0
            given.append(x.places._replace(pointer=x.places.pointer + count * step, shape=(4, count)))
        return tuple(given)

    def arrays(self, x: Operands) -> list[ArrayView]:
        """Return the arrays of a call without a graph: A, B (unless A has split-K slices), D, C, the bias."""
        there = (x.a, None if self.sums else x.b, x.d, x.c if self.source else None, x.bias if self.bias else None)
        return [view for view in there if view is not None]

    def _form(self, view: ArrayView) -> ArrayView:
        """Return a matrix, or a batch with its mode last.  A matrix for all batch indices is a batch of one."""
        if self.interleaved:
            m, n = view.shape
            return view._replace(shape=(m, 32, n // 32), strides=(32, 1, 32 * m))
        if not self.batch:
            return view if len(view.shape) == 2 else view._replace(shape=view.shape[1:], strides=view.strides[1:])
        if len(view.shape) == 2:
            (m, n), (row, column) = view.shape, view.strides
            return view._replace(shape=(m, n, 1), strides=(row, column, max(m * row, n * column)))
        (matrices, m, n), (step, row, column) = view.shape, view.strides
        if (matrices == 1 or step == 0) and not self.array:
            return view._replace(shape=(m, n, 1), strides=(row, column, max(m * row, n * column)))
        return view._replace(shape=(m, n, matrices), strides=(row, column, step))

    def of_shared(self, x: Operands) -> tuple[int, int]:
        """Return the numbers of floats and counters in a call's workspace."""
        if self.share is None:
            return 0, 0
        *batch, m, n = x.d.shape
        if self.taken:
            m, n, *batch = x.d.shape
        if self.chunk:
            n, batch = -(-n // self.chunk) * self.chunk * batch[0], []
        floats, counters = self.share.of(n, m) if self.transposed else self.share.of(m, n)
        matrices = batch[0] if batch and self.share.rows else 1
        return floats * matrices, counters * matrices

    def to_json(self) -> dict[str, object]:
        """Return the recipe as data."""
        fields: dict[str, object] = self._asdict()
        return fields | {"share": None if self.share is None else list(self.share)}

    @classmethod
    def from_json(cls, fields: Mapping[str, object]) -> Recipe:
        """Return the recipe of :meth:`to_json`.  Raises TypeError for other fields."""
        values = cast("dict[str, Any]", dict(fields))
        share = values.get("share")
        values["share"] = None if share is None else Share(*share)
        values |= {name: tuple(values.get(name, ())) for name in ("numbers", "operands")}
        return cls(**values)


def _columns_first(view: ArrayView, split: str = "") -> ArrayView:
    """Transpose a matrix, or a batch with its mode last.  ``split`` lists rows or columns that are several modes."""
    if split:
        rows, columns = (len(part.split(",")) for part in split.split("/")[:2])
        order = [*range(rows, rows + columns), *range(rows), *range(rows + columns, len(view.shape))]
        return view._replace(
            shape=tuple([view.shape[i] for i in order]), strides=tuple([view.strides[i] for i in order])
        )
    (m, n, *more), (row, column, *step) = view.shape, view.strides
    return view._replace(shape=(n, m, *more), strides=(column, row, *step))
