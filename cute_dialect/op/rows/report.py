"""Say how a function on rows is computed: what :func:`cute_dialect.op.explain` gives for one.

>>> print(explained(rows.softmax, (8192, 50257), element="bf16"))
softmax of 8192 rows of 50257 bf16
  kernel    rows-softmax-bf16-512x7x1x2x0x1: for rows of 49160 to 57351 elements
  a row     2 blocks of 512 threads, up to 7 vectors of 16 bytes a thread, in registers
  begins    anywhere: vectors from its own first 16 bytes on, the elements around them one by one
  bound     402.4 us: 1.65 GB (DRAM, an H200)
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

from cute_dialect.kernels.row_config import BITS, RowConfig, capacity, row_class, width
from cute_dialect.kernels.row_grads import entropy_class, gradient_class
from cute_dialect.kernels.row_sums import SUMS, loss_parts, sum_class
from cute_dialect.op.dtypes import element_name
from cute_dialect.op.errors import ShapeError, UnsupportedError
from cute_dialect.op.rows import functions as rows
from cute_dialect.op.rows import gradients
from cute_dialect.op.rows.call import RowKernel

__all__ = ["RowExplanation", "explained", "is_of_rows"]

_FUNCTIONS = (
    rows.softmax, rows.log_softmax, rows.rms_norm, rows.layer_norm, rows.sum, rows.mean, rows.max, rows.logsumexp,
    rows.cross_entropy,
)  # fmt: skip
_DRAM = 4.092
"""TB/s that an H200 keeps up, as in :mod:`cute_dialect.op.select.cost_model`."""


class RowExplanation(NamedTuple):
    """How a function on rows is computed; printed, it says all of this.

    ``kernels``: what is compiled; ``config``: how a row is shared out; ``lengths``: those of the class, None where it
    has no end; ``whole``: rows are whole aligned vectors; ``bytes``: what is read and written once; ``bound``:
    microseconds that this takes at the least.
    """

    operation: str
    element: str
    rows: int
    n: int
    kernels: tuple[RowKernel, ...]
    config: RowConfig
    lengths: range | None
    whole: bool
    bytes: int
    bound: float

    def __str__(self) -> str:
        c, kernel = self.config, self.kernels[0].name
        held = "any rows that are long enough"
        if self.lengths is not None:
            held = f"rows of {self.lengths.start} to {self.lengths.stop - 1} elements"
        who = f"{c.cluster} blocks of {c.threads} threads" if c.cluster > 1 else f"{c.threads} threads"
        where = f"{c.shared} of them in shared memory" if c.shared else "in registers"
        if self.lengths is None:
            vectors = f"{c.chunks} vectors of 16 bytes a thread at once, nothing is kept"
        else:
            vectors = f"up to {c.chunks} vectors of 16 bytes a thread, {where}"
        begins = "at whole 16 bytes"
        if not self.whole:
            begins = "anywhere: vectors from its own first 16 bytes on, the elements around them one by one"
        return "\n".join([
            f"{self.operation} of {self.rows} rows of {self.n} {self.element}",
            f"  kernel    {kernel}: for {held}",
            f"  a row     {who}, {vectors}",
            f"  begins    {begins}",
            f"  bound     {self.bound:.1f} us: {self.bytes / 1e9:.3g} GB (DRAM, an H200)",
        ])  # fmt: skip


_GRADIENTS = (
    gradients.softmax_backward, gradients.log_softmax_backward, gradients.rms_norm_backward,
    gradients.layer_norm_backward, gradients.cross_entropy_backward,
)  # fmt: skip


def is_of_rows(function: object) -> bool:
    """Tell whether a function is one on rows, or the gradient of one."""
    return function in _FUNCTIONS or function in _GRADIENTS


def explained(
    function: Callable[..., object], x: Any, weight: Any = None, bias: Any = None, residual: Any = None, *,
    element: str = "f16",
) -> RowExplanation:  # fmt: skip
    """Return how a function on rows is computed; ``x`` is an array, or a shape of contiguous rows of type ``element``.

    Of gradients ``x`` is what they are of, and of norms ``weight`` and ``bias`` say that these have gradients, too; a
    loss is a mean.  Raises what the function does for lengths and types.
    """
    call = getattr(function, "__name__", "")
    shape = tuple(x if isinstance(x, tuple | list) else x.shape)
    if not shape or 0 in shape:
        raise ShapeError(f"{call}: expected x with elements, got shape {shape}")
    element = element if isinstance(x, tuple | list) else element_name(x.dtype)
    if element not in BITS:
        raise UnsupportedError(f"{call}: expected x of {', '.join(BITS)}, got {element}")
    n, count = shape[-1], prod(shape[:-1])
    takes = "".join([k for k, t in (("w", weight), ("b", bias), ("r", residual)) if t is not None])
    if function in _GRADIENTS:
        kernels, config, lengths, matrices = _of_gradient(call, element, count, n, takes.strip("r"))
    elif call in SUMS:
        kernels, config, lengths = (rows.sum_kernel(call, element, n),), sum_class(element, n, call), None
        if call == "cross_entropy":
            steps = ("all",) if loss_parts(count) == 1 else ("first", "last")
            kernels = (*kernels, *[rows.loss_kernel(element, True, step) for step in steps])
        matrices = 1
    else:
        kernels = (rows.row_kernel(call, element, n, takes),)
        config = row_class(call.replace("_norm", "norm"), element, n, takes)
        lengths, matrices = capacity(element, config), 4 if residual is not None else 2
    moved = matrices * count * n * BITS[element] // 8
    whole = n % width(element) == 0 and _aligned(x, width(element))
    return RowExplanation(call, element, count, n, kernels, config, lengths, whole, moved, moved / _DRAM / 1e6)


def _of_gradient(
    call: str, element: str, rows_there: int, n: int, takes: str
) -> tuple[tuple[RowKernel, ...], RowConfig, range | None, int]:
    """Return the kernels of a gradient, how a row is shared out, the lengths of the class, the matrices that move."""
    if call == "cross_entropy_backward":
        kernel = gradients.entropy_kernel(element, n, element, True)
        return (kernel,), entropy_class(element, n), None, 2
    if "softmax" in call:
        config = row_class(call, element, n, "d")
        return (rows.row_kernel(call, element, n, "d"),), config, capacity(element, config), 3
    kernels = (gradients.norm_kernel(call.removesuffix("_backward"), element, n, takes),)
    if takes:
        blocks = gradients.norm_blocks(element, n, takes, rows_there)
        kernels += (gradients.column_kernel(element, takes, blocks),)
    config = gradient_class(element, n, takes)
    return kernels, config, capacity(element, config), 3


def _aligned(x: Any, unit: int) -> bool:
    """Tell whether an array begins at whole 16 bytes, and its rows at whole vectors after that."""
    if isinstance(x, tuple | list):
        return True
    item = 16 // unit
    strides = tuple(x.stride()) if hasattr(x, "stride") else tuple([s // item for s in x.strides])
    address = x.data_ptr() if hasattr(x, "data_ptr") else x.ctypes.data
    return address % 16 == 0 and all(s % unit == 0 for s in strides[:-1])
