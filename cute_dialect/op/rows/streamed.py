"""Launches of :mod:`cute_dialect.kernels.streamed_rows`, for rows that are too long for the other kernels."""

from __future__ import annotations

from typing import Any

from cute_dialect.kernels.row_config import longest
from cute_dialect.kernels.row_grads import longest_gradient, part_columns
from cute_dialect.kernels.streamed_rows import MOST_SPLITS, StreamedPlan, elements_text, statistics_text
from cute_dialect.op.rows.call import RowCall, RowKernel
from cute_dialect.op.select.gemm_dispatch import gpu_of

__all__ = ["compute", "is_streamed", "streamed_kernels", "streamed_plan", "sum_groups"]

BLOCKS, FEW_BLOCKS = 4, 8
"""Blocks per multiprocessor that a launch should have; those for few rows are smaller."""

PROCESSORS_ON_CPU = 1
"""Multiprocessors that the interpreter stands for."""


def is_streamed(call: str, element: str, n: int, takes: str = "") -> bool:
    """Return True if rows of ``n`` elements are too long for registers and shared memory.

    >>> is_streamed("softmax", "f16", 1 << 19), is_streamed("layer_norm_backward", "bf16", 65552, "wb")
    (False, True)
    """
    op = call.replace("_norm", "norm")
    most = longest_gradient(element) if op.endswith("norm_backward") else longest(op, element, takes)
    return n > most


def streamed_kernels(call: str, element: str, takes: str = "", few: bool = False) -> tuple[RowKernel, RowKernel]:
    """Return the kernels of the statistics and of the elements, of small tiles for ``few`` rows.

    >>> [kernel.name for kernel in streamed_kernels("rms_norm", "f16", "w")]
    ['rows-streamed-statistics-rmsnorm-w-f16', 'rows-streamed-elements-rmsnorm-w-f16']
    """
    args = (call.replace("_norm", "norm"), element, takes, few)
    name = "-".join([x for x in (args[0], takes, element, "few" if few else "") if x])
    return (
        RowKernel(f"rows-streamed-statistics-{name}", statistics_text, args, "launch_statistics"),
        RowKernel(f"rows-streamed-elements-{name}", elements_text, args, "launch_elements"),
    )


def streamed_plan(call: str, element: str, takes: str, rows: int, n: int, processors: int) -> StreamedPlan:
    """Return the plan of a call: with small tiles if large ones are fewer than the blocks of a launch should be.

    >>> [streamed_plan("rms_norm", "bf16", "w", rows, 1 << 18, 132).few for rows in (16, 17)]
    [True, False]
    """
    args = call.replace("_norm", "norm"), element, takes
    plan = StreamedPlan(*args)
    few = rows * -(-n // plan.columns) < BLOCKS * processors
    return StreamedPlan(*args, few=True) if few else plan


def _wanted_blocks(plan: StreamedPlan, processors: int) -> int:
    """Return the number of blocks that a launch should have."""
    return (FEW_BLOCKS if plan.few else BLOCKS) * processors


def sum_groups(plan: StreamedPlan, rows: int, n: int, processors: int) -> int:
    """Return the number of groups of rows whose gradients of weights and biases are summed separately.

    >>> plan = streamed_plan("rms_norm_backward", "bf16", "w", 36, 71776, 132)
    >>> sum_groups(plan, 36, 71776, 132)
    14
    """
    return max(1, min(rows, _wanted_blocks(plan, processors) // -(-n // plan.columns)))


def compute(
    one: RowCall, call: str, takes: str, x: Any, y: Any, *, d: Any = None, w: Any = None, b: Any = None, r: Any = None,
    s: Any = None, g: Any = None, eps: float | None = None, sums: int = 0,
) -> tuple[Any, int]:  # fmt: skip
    """Launch the kernels of a call, and return the partial gradients of weights and biases and their number.

    Args:
        one: the call.
        call, takes: name of the function, and its operands as in :class:`StreamedPlan`.
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
    processors = PROCESSORS_ON_CPU if one.cpu else gpu_of(one.gpu)[1]
    plan = streamed_plan(call, one.element, takes, rows, n, processors)
    splits = max(1, min(MOST_SPLITS, -(-_wanted_blocks(plan, processors) // rows), -(-n // plan.columns)))
    parts = one.matrix_of(one.result((rows, plan.part_columns(splits)), "f32"))
    first, second = streamed_kernels(call, one.element, takes, plan.few)
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
