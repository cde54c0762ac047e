"""Launches of the kernels of row functions."""

from __future__ import annotations

from typing import Any

from cute_dialect.kernels.rows.gradients import part_columns
from cute_dialect.kernels.rows.streamed import MOST_SPLITS
from cute_dialect.op.execute.array_call import RowCall
from cute_dialect.op.problems.rows import RowProblem
from cute_dialect.op.rows.kernels import (
    PROCESSORS_ON_CPU,
    choose_kernels,
    streamed_kernels,
    streamed_plan,
    sum_groups,
    wanted_blocks,
)
from cute_dialect.op.select.gemm_dispatch import gpu_of
from cute_dialect.runtime.arrays import ArrayView, view_of

__all__ = ["launch_rows", "launch_streamed", "processors_of"]


def processors_of(one: RowCall) -> int | None:
    """Return the number of multiprocessors of the call's GPU, or None for the interpreter."""
    return None if one.cpu else gpu_of(one.gpu)[1]


def launch_rows(
    one: RowCall, takes: str, y: Any, *, g: ArrayView | None = None, w: ArrayView | None = None,
    b: ArrayView | None = None, s: Any = None, eps: float | None = None,
) -> None:  # fmt: skip
    """Launch the kernels of a function from rows to rows.

    Args:
        one: the call.  Its first array is ``x``; the arrays ``dy`` and ``residual`` are read as rows if ``takes`` has
            d and r.
        takes: operands, as in :class:`~cute_dialect.op.problems.rows.RowProblem`.
        y: the result.
        g: one number per row.
        w, b: weights and biases.
        s: the sum of ``x`` and the residual, to write.
        eps: added to the mean square or variance.
    """
    names = one.first, "dy" if "d" in takes else "", "residual" if "r" in takes else ""
    results = [None if t is None else view_of(t) for t in (y, s)]
    packed = one.packed_rows(*[one.views[name] if name else None for name in names], *results)
    p = RowProblem(one.name, one.element, one.count, one.x.shape[-1], takes, packed is not None)
    if packed is not None and p.family == "packed":
        of_x, of_d, of_r, of_y, of_s = packed
    else:
        of_x, of_d, of_r = (one.matrix(name) if name else None for name in names)
        of_y, of_s = (None if t is None else one.matrix_of(t) for t in (y, s))
    if p.family == "streamed":
        launch_streamed(one, takes, of_x, of_y, d=of_d, w=w, b=b, r=of_r, s=of_s, g=g, eps=eps)
    else:
        one.launch(choose_kernels(p).kernels[0], of_x, of_d, g, of_r, w, b, of_y, of_s, eps)


def launch_streamed(
    one: RowCall, takes: str, x: Any, y: Any, *, d: Any = None, w: Any = None, b: Any = None, r: Any = None,
    s: Any = None, g: Any = None, eps: float | None = None, sums: int = 0,
) -> tuple[Any, int]:  # fmt: skip
    """Launch the kernels of streamed rows, and return the partial gradients of weights and biases and their number.

    Args:
        one: the call.
        takes: operands, as in :class:`~cute_dialect.op.problems.rows.RowProblem`.
        x, y: matrices to read and to write.
        d: the gradient of the result.
        w, b: weights and biases.
        r: the residual, or the gradient of its sum.
        s: the sum of ``x`` and the residual, to write.
        g: one number per row.
        eps: added to the mean square or variance.
        sums: number of weights and biases that need gradients.
    """
    rows, n = x.shape
    processors = processors_of(one) or PROCESSORS_ON_CPU
    plan = streamed_plan(one.name, one.element, takes)
    splits = max(1, min(MOST_SPLITS, -(-wanted_blocks(plan, processors) // rows), -(-n // plan.columns)))
    parts = one.matrix_of(one.result((rows, plan.part_columns(splits)), "f32"))
    first, second = streamed_kernels(one.name, one.element, takes)
    is_forward = not plan.is_gradient
    one.launch(first, x, d, None if is_forward else w, r if is_forward else None, s, parts)
    groups, added = min(rows, 1 << 20), None
    if sums:
        groups = sum_groups(plan, rows, n, processors)
        added = one.result((groups, sums * part_columns(n)), "f32")
    x, of_sum = (x, r) if s is None else (s, None)
    of_added = None if added is None else one.matrix_of(added)
    one.launch(second, x, d, w, b, None if is_forward else of_sum, g, y, parts, of_added, groups, eps)
    return added, groups
