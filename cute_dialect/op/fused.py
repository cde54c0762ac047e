"""The work of ``mm`` and ``bmm`` around their kernels: how matrices can be read, and torch's operations where a kernel
has none.
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.kernels.epilogue_functions import ACTIVATIONS, arrays_of_torch
from cute_dialect.kernels.gemm.epilogue import PLAIN, unknown_activation
from cute_dialect.op.errors import EpilogueError

if TYPE_CHECKING:  # pragma: no cover
    import torch

__all__ = ["Matrix", "aligned_like", "bias_mode", "folds", "like", "unfused"]


class Matrix(NamedTuple):
    """A matrix as it may be read: extents, strides (elements), bytes of an element, address (mod 16); of a batch also
    how many there are, ``step`` elements apart (0 for one, and for one that stands for all).
    """

    shape: tuple[int, int]
    stride: tuple[int, int]
    item: int
    address: int
    matrices: int = 1
    step: int = 0

    @property
    def contiguous(self) -> int:
        """The mode that is contiguous: 1 for rows, 0 for columns.  Raises ValueError where neither is."""
        for mode in (1, 0):
            if self.along(mode):
                return mode
        raise ValueError(f"expected a matrix with a contiguous mode, got strides {self.stride}")

    def along(self, mode: int) -> bool:
        """Tell whether a mode is contiguous."""
        return self.stride[mode] == 1 or self.shape[mode] == 1

    def suits_tma(self) -> bool:
        """Tell whether TMA can describe it: an address, rows and matrices of whole 16 bytes (PTX ISA, "Tensors")."""
        rows = self.stride[1 - self.contiguous] * self.item
        return (
            self.address % 16 == 0
            and rows % 16 == 0
            and rows > 0
            and min(self.shape) > 0
            and self.step * self.item % 16 == 0
        )

    def copied(self, mode: int) -> Matrix:
        """Return how a copy of it lies that TMA reads, contiguous along a mode; see :func:`aligned_like`."""
        unit = max(1, 16 // self.item)
        rows = -(-self.shape[mode] // unit) * unit
        stride = (rows, 1) if mode == 1 else (1, rows)
        step = rows * self.shape[1 - mode] if self.step else 0
        return Matrix(self.shape, stride, self.item, 0, self.matrices, step)


def aligned_like(t: torch.Tensor, mode: int) -> torch.Tensor:
    """Return memory for a copy of a matrix (or batch) that TMA reads, contiguous along a mode (1: rows)."""
    import torch

    rows, columns = t.shape[-2:]
    batch = t.dim() == 3
    at = Matrix((rows, columns), (0, 0), t.element_size(), 0, t.shape[0] if batch else 1, int(batch)).copied(mode)
    strides = (at.step, *at.stride) if batch else at.stride
    return torch.empty_strided(t.shape, strides, device=t.device, dtype=t.dtype)


def folds(a: Matrix, b: Matrix, out: Matrix) -> bool:
    """Tell whether a batch is one product: B is shared, and rows of A and of the result go on in the next matrix.

    >>> a, out = Matrix((8, 64), (64, 1), 2, 0, 3, 512), Matrix((8, 16), (16, 1), 2, 0, 3, 128)
    >>> b = Matrix((64, 16), (16, 1), 2, 0)
    >>> folds(a, b, out), folds(a._replace(step=1024), b, out)
    (True, False)
    """
    if out.matrices == 1:
        return True
    on = [m.along(1) and m.step == m.stride[0] * m.shape[0] for m in (a, out) if m.shape[0] > 1]
    return b.step == 0 and a.step > 0 and all(on) and a.along(1) and out.along(1)


def bias_mode(shape: tuple[int, ...], m: int, n: int) -> str:
    """Return ``n`` for a bias of a value a column, ``m`` for one a row.  Raises ValueError for other shapes."""
    if shape in ((n,), (1, n)):
        return "n"
    if shape == (m, 1):
        return "m"
    raise ValueError(f"expected a bias of shape ({n},) or ({m}, 1), got {shape}")


def like(c: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """Return ``c`` as the kernel can read it: type and shape of the result, rows of whole 16 bytes; a copy where it is
    not.
    """
    import torch

    c = c.expand_as(out)
    (*_, rows, columns), (*steps, row_step, column_step) = c.shape, c.stride()
    at = Matrix((rows, columns), (row_step, column_step), c.element_size(), c.data_ptr() % 16, 1, sum(steps))
    if c.dtype == out.dtype and c.stride(-1) == 1 and at.suits_tma():
        return c
    return torch.empty_strided(out.shape, out.stride(), device=out.device, dtype=out.dtype).copy_(c)


def unfused(
    product: torch.Tensor,
    out: torch.Tensor,
    alpha: float,
    beta: float,
    c: torch.Tensor | None,
    bias: torch.Tensor | None,
    activation: str,
) -> torch.Tensor:
    """Compute ``out = activation(alpha * product + beta * c + bias)`` by torch, in f32, or exactly where all are
    integers.  Raises ValueError for activations that the kernels do not know.
    """
    if activation and activation not in PLAIN:
        raise EpilogueError(unknown_activation(activation))
    every = [t for t in (product, c, bias, out) if t is not None]
    whole = alpha == 1.0 and beta in (0.0, 1.0) and activation in ("", "relu")
    wide = torch.float32 if not whole or any(t.is_floating_point() for t in every) else torch.int64
    x = product.to(wide) if alpha == 1.0 else alpha * product.to(wide)
    if c is not None:
        x = x + (c.to(wide) if beta == 1.0 else beta * c.to(wide))
    if bias is not None:
        bias_mode(tuple(bias.shape), *out.shape[-2:])
        x = x + bias.to(wide)
    if activation:
        f = ACTIVATIONS[activation]
        x = f.of_arrays(arrays_of_torch(), x, *f.defaults)
    return out.copy_(_saturated(x, out.dtype))


def _saturated(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return numbers that a copy to another type only rounds, or need not round."""
    import torch

    if not dtype.is_floating_point:
        if x.is_floating_point():
            x = torch.round(torch.nan_to_num(x.double(), nan=0.0))
        return x.clamp(torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    return x.clamp(torch.finfo(dtype).min, torch.finfo(dtype).max) if dtype.itemsize == 1 else x
