"""Explanation of a row function, which :func:`cute_dialect.op.explain` returns.

>>> print(explain_rows("softmax", (8192, 50257), element="bf16"))
softmax of 8192 rows of 50257 bf16
  kernel    rows-softmax-bf16-512x7x1x2x0x1: for rows of 49160 to 57351 elements
  a row     2 blocks of 512 threads, up to 7 vectors of 16 bytes per thread, in registers
  begins    anywhere: vectors from its first 16-byte boundary on, the elements around them one by one
  bound     402.4 us: 1.65 GB (DRAM, an H200)
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from cute_dialect.kernels.rows.config import BITS, RowConfig, width
from cute_dialect.kernels.rows.packed import rows_per_thread
from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.errors import ShapeError, UnsupportedError
from cute_dialect.op.execute.array_call import is_contiguous
from cute_dialect.op.explanations.gemm import Explanation, Line
from cute_dialect.op.problems.rows import MAPS, RowProblem
from cute_dialect.op.rows.kernels import choose_kernels
from cute_dialect.runtime.arrays import view_of

DRAM = 4.092
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


def explain_rows(
    call: str, x: Any, weight: Any = None, bias: Any = None, residual: Any = None, *, element: str = "f16"
) -> RowExplanation:
    """Explain how a row function is computed.

    Raises the errors of the function for lengths and types.

    Args:
        call: name of the row function, or of a gradient.
        x: an array, or a shape of contiguous rows of type ``element``; for a gradient, the array to differentiate by.
        weight, bias: operands of a norm; for a gradient, their presence means that they need gradients, too.
        residual: operand of a norm; for a gradient, its presence means that the gradient of the sum is added.
        element: type of the rows if ``x`` is a shape.
    """
    shape = tuple(x if isinstance(x, tuple | list) else x.shape)
    if not shape or 0 in shape:
        raise ShapeError(f"{call}: x has shape {shape}; it must not be empty")
    element = element if isinstance(x, tuple | list) else element_name(x.dtype)
    if element not in BITS:
        raise UnsupportedError(f"{call}: x has dtype {element}; it must have one of {', '.join(BITS)}")
    n, count = shape[-1], prod(shape[:-1])
    takes = "".join([k for k, t in (("w", weight), ("b", bias), ("r", residual)) if t is not None])
    takes = "d" if call.endswith("_backward") and call.removesuffix("_backward") in MAPS else takes
    p = RowProblem(call, element, count, n, takes, flat=True)
    if p.family == "packed" and not _is_flat(x):
        p = p._replace(flat=False)
    choice = choose_kernels(p)
    whole, lengths = n % width(element) == 0 and _aligned(x, width(element)), choice.lengths
    held = "any rows that are long enough"
    if lengths is not None:
        held = f"rows of {lengths.start} to {lengths.stop - 1} elements"
    return RowExplanation(
        operation=call, kernel=choice.kernels[0].name, why=f"for {held}", bytes=p.bytes, bound=p.bytes / DRAM / 1e6,
        kernels=choice.kernels, element=element, rows=count, n=n, config=choice.config, lengths=lengths, whole=whole,
    )  # fmt: skip


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
