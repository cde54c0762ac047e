"""Kernels of :mod:`cute_dialect.kernels.packed_rows` for short contiguous rows that are not whole vectors."""

from __future__ import annotations

from cute_dialect.kernels.packed_norm_grads import packed_norm_text
from cute_dialect.kernels.packed_rows import is_packed_length, packed_entropy_text, packed_text
from cute_dialect.op.rows.call import RowKernel

__all__ = ["entropy_kernel", "is_packed_length", "norm_gradient_kernel", "packed_kernel"]


def packed_kernel(call: str, element: str, n: int, takes: str = "") -> RowKernel:
    """Return the kernel of a row function for rows of ``n`` elements.

    >>> packed_kernel("rms_norm", "bf16", 3, "w").name
    'rows-packed-rmsnorm-w-bf16-3'
    """
    op = call.replace("_norm", "norm")
    name = f"rows-packed-{op}{'-' + takes if takes else ''}-{element}-{n}"
    return RowKernel(name, packed_text, (op, element, n, takes))


def norm_gradient_kernel(call: str, element: str, n: int, takes: str) -> RowKernel:
    """Return the kernel of the gradients of ``rms_norm`` or ``layer_norm``."""
    op = call.replace("_norm", "norm")
    name = f"rows-packed-{op}_backward{'-' + takes if takes else ''}-{element}-{n}"
    return RowKernel(name, packed_norm_text, (op, element, n, takes))


def entropy_kernel(element: str, n: int, of_loss: str = "", mean: bool = False) -> RowKernel:
    """Return the kernel of cross entropy or, with the type of the loss, of its gradient."""
    name = f"rows-packed-cross_entropy-{element}-{n}"
    if of_loss:
        name = f"rows-packed-cross_entropy_backward-{element}-{of_loss}{'-mean' if mean else ''}-{n}"
    host = "launch_entropy_backward" if of_loss else "launch_entropy"
    return RowKernel(name, packed_entropy_text, (element, n, of_loss, mean), host)
