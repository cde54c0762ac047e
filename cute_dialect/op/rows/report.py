"""Explanation of a row function, which :func:`cute_dialect.op.explain` returns.

>>> print(explained(rows.softmax, (8192, 50257), element="bf16"))
softmax of 8192 rows of 50257 bf16
  kernel    rows-softmax-bf16-512x7x1x2x0x1: for rows of 49160 to 57351 elements
  a row     2 blocks of 512 threads, up to 7 vectors of 16 bytes per thread, in registers
  begins    anywhere: vectors from its first 16-byte boundary on, the elements around them one by one
  bound     402.4 us: 1.65 GB (DRAM, an H200)
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from cute_dialect.kernels.packed_norm_grads import MOST_COLUMNS, SHARING, is_packed_norm_length, packed_norm_blocks
from cute_dialect.kernels.packed_rows import is_packed_length, rows_per_thread
from cute_dialect.kernels.row_config import BITS, RowConfig, capacity, row_class, width
from cute_dialect.kernels.row_grads import entropy_class, gradient_class
from cute_dialect.kernels.row_sums import SUMS, loss_parts, sum_class
from cute_dialect.kernels.streamed_rows import StreamedPlan
from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.errors import ShapeError, UnsupportedError
from cute_dialect.op.explanation import Explanation, Line
from cute_dialect.op.rows import functions as rows
from cute_dialect.op.rows import gradients, packed
from cute_dialect.op.rows.call import RowKernel, is_contiguous
from cute_dialect.op.rows.streamed import is_streamed, streamed_kernels, streamed_plan, sum_groups
from cute_dialect.runtime.arrays import view_of

__all__ = ["RowExplanation", "explained", "is_of_rows"]

_FUNCTIONS = (
    rows.softmax, rows.log_softmax, rows.rms_norm, rows.layer_norm, rows.sum, rows.mean, rows.max, rows.logsumexp,
    rows.cross_entropy,
)  # fmt: skip
_DRAM = 4.092
"""Sustained bandwidth of an H200 in TB/s, as in :mod:`cute_dialect.op.select.cost_model`."""


@dataclass(frozen=True, kw_only=True)
class RowExplanation(Explanation):
    """The kernels of a row function, and the distribution of a row over threads."""

    element: str
    rows: int
    n: int
    config: RowConfig  # distribution of a row over threads and blocks
    lengths: range | None  # row lengths that the kernel supports; None without an upper limit
    whole: bool  # True if rows are whole aligned vectors

    def _title(self) -> str:
        return f"{self.operation} of {self.rows} rows of {self.n} {self.element}"

    def _layout(self) -> Iterator[Line]:
        c = self.config
        who = f"{c.cluster} blocks of {c.threads} threads" if c.cluster > 1 else f"{c.threads} threads"
        where = f"{c.shared} of them in shared memory" if c.shared else "in registers"
        if self.lengths is None:
            vectors = f"{c.chunks} vector{'s'[: c.chunks > 1]} of 16 bytes per thread at once, nothing is kept"
        else:
            vectors = f"up to {c.chunks} vectors of 16 bytes per thread, {where}"
        begins = "at multiples of 16 bytes"
        if self.kernel.startswith("rows-packed"):
            if c.threads == 1:
                who, vectors = "1 thread", f"which has {rows_per_thread(self.n)} rows"
            begins = "anywhere: a warp loads consecutive vectors and exchanges them"
        elif not self.whole:
            begins = "anywhere: vectors from its first 16-byte boundary on, the elements around them one by one"
        yield "a row", f"{who}, {vectors}"
        yield "begins", begins

    def _limits(self) -> str:
        return f"{self.bytes / 1e9:.3g} GB (DRAM, an H200)"


_GRADIENTS = (
    gradients.softmax_backward, gradients.log_softmax_backward, gradients.rms_norm_backward,
    gradients.layer_norm_backward, gradients.cross_entropy_backward,
)  # fmt: skip


def is_of_rows(function: object) -> bool:
    """Return True for a row function or the gradient of one."""
    return function in _FUNCTIONS or function in _GRADIENTS


def explained(
    function: Callable[..., object], x: Any, weight: Any = None, bias: Any = None, residual: Any = None, *,
    element: str = "f16",
) -> RowExplanation:  # fmt: skip
    """Explain how a row function is computed.

    Raises the errors of the function for lengths and types.

    Args:
        function: the row function, or a gradient.
        x: an array, or a shape of contiguous rows of type ``element``; for a gradient, the array to differentiate by.
        weight, bias: operands of a norm; for a gradient, their presence means that they need gradients, too.
        residual: operand of a norm; for a gradient, its presence means that the gradient of the sum is added.
        element: type of the rows if ``x`` is a shape.
    """
    call = getattr(function, "__name__", "")
    shape = tuple(x if isinstance(x, tuple | list) else x.shape)
    if not shape or 0 in shape:
        raise ShapeError(f"{call}: x has shape {shape}; it must not be empty")
    element = element if isinstance(x, tuple | list) else element_name(x.dtype)
    if element not in BITS:
        raise UnsupportedError(f"{call}: x has dtype {element}; it must have one of {', '.join(BITS)}")
    n, count = shape[-1], prod(shape[:-1])
    takes = "".join([k for k, t in (("w", weight), ("b", bias), ("r", residual)) if t is not None])
    of_rows = "d" if "softmax_backward" in call else takes
    if "entropy" not in call and call not in SUMS and is_streamed(call, element, n, of_rows):
        plan = streamed_plan(call, element, of_rows, count, n, gradients.PROCESSORS)
        kernels, matrices = _streamed(call, plan, count, n)
        config, lengths = RowConfig(plan.threads, plan.at_once), None
    elif function in _GRADIENTS:
        kernels, config, lengths, matrices = _of_gradient(call, element, count, n, takes)
    elif call in SUMS:
        kernels, config, lengths = (rows.sum_kernel(call, element, n, count),), sum_class(element, n, call, count), None
        if call == "cross_entropy":
            steps = ("all",) if loss_parts(count) == 1 else ("first", "last")
            kernels = (*kernels, *[rows.loss_kernel(element, True, step) for step in steps])
        matrices = 1
    else:
        kernels = (rows.row_kernel(call, element, n, takes),)
        config = row_class(call.replace("_norm", "norm"), element, n, takes)
        lengths, matrices = capacity(element, config), 4 if residual is not None else 2
    packs = is_packed_norm_length if function in _GRADIENTS and "norm" in call else is_packed_length
    if packs(element, n) and _is_flat(x):
        kernels = (_packed_kernel(call, element, n, "d" if "softmax_backward" in call else takes), *kernels[1:])
        if len(kernels) == 2 and "norm" in call:
            blocks = packed_norm_blocks(element, n, count, gradients.PROCESSORS)
            kernels = (kernels[0], gradients.column_kernel(element, takes.strip("r"), blocks))
        threads = SHARING if n > MOST_COLUMNS and function in _GRADIENTS and "norm" in call else 1
        chunks = -(-n // (threads * width(element)))
        config, lengths = RowConfig(threads, chunks, 128 // threads), range(n, n + 1)
    moved = matrices * count * n * BITS[element] // 8
    whole = n % width(element) == 0 and _aligned(x, width(element))
    held = "any rows that are long enough"
    if lengths is not None:
        held = f"rows of {lengths.start} to {lengths.stop - 1} elements"
    return RowExplanation(
        operation=call, kernel=kernels[0].name, why=f"for {held}", bytes=moved, bound=moved / _DRAM / 1e6,
        element=element, rows=count, n=n, kernels=kernels, config=config, lengths=lengths, whole=whole,
    )  # fmt: skip


def _of_gradient(
    call: str, element: str, rows_there: int, n: int, takes: str
) -> tuple[tuple[RowKernel, ...], RowConfig, range | None, int]:
    """Return the kernels of a gradient, its row configuration, its supported lengths, and the number of matrices it
    moves.
    """
    if call == "cross_entropy_backward":
        kernel = gradients.entropy_kernel(element, n, element, True)
        return (kernel,), entropy_class(element, n), None, 2
    if "softmax" in call:
        config = row_class(call, element, n, "d")
        return (rows.row_kernel(call, element, n, "d"),), config, capacity(element, config), 3
    kernels = (gradients.norm_kernel(call.removesuffix("_backward"), element, n, takes),)
    if takes.strip("r"):
        blocks = gradients.norm_blocks(element, n, takes, rows_there)
        kernels += (gradients.column_kernel(element, takes.strip("r"), blocks),)
    config = gradient_class(element, n, takes)
    return kernels, config, capacity(element, config), 4 if "r" in takes else 3


def _streamed(call: str, plan: StreamedPlan, count: int, n: int) -> tuple[tuple[RowKernel, ...], int]:
    """Return the kernels for rows of any length, and the number of matrices that they move."""
    takes = plan.takes
    kernels: tuple[RowKernel, ...] = streamed_kernels(call, plan.element, takes, plan.few)
    if plan.sums:
        groups = sum_groups(plan, count, n, gradients.PROCESSORS)
        kernels += (gradients.column_kernel(plan.element, takes.strip("r"), groups),)
    return kernels, (3 if "backward" in call else 2) + (2 if "backward" not in call else 1) * ("r" in takes)


def _packed_kernel(call: str, element: str, n: int, takes: str) -> RowKernel:
    """Return the kernel for short contiguous rows."""
    if "entropy" in call:
        backward = "backward" in call
        return packed.entropy_kernel(element, n, element if backward else "", backward)
    if "norm" in call and "backward" in call:
        return packed.norm_gradient_kernel(call.removesuffix("_backward"), element, n, takes)
    return packed.packed_kernel(call, element, n, takes)


def _is_flat(x: Any) -> bool:
    """Return True if an array is contiguous and aligned to 16 bytes."""
    if isinstance(x, tuple | list):
        return True
    view = view_of(x)
    return view.pointer % 16 == 0 and is_contiguous(view)


def _aligned(x: Any, unit: int) -> bool:
    """Return True if the rows of an array are aligned to 16 bytes."""
    if isinstance(x, tuple | list):
        return True
    item = 16 // unit
    strides = tuple(x.stride()) if hasattr(x, "stride") else tuple([s // item for s in x.strides])
    address = x.data_ptr() if hasattr(x, "data_ptr") else x.ctypes.data
    return address % 16 == 0 and all(s % unit == 0 for s in strides[:-1])
