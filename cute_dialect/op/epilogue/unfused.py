"""Layout properties of matrices, and epilogues computed by the array library where no kernel can."""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from cute_dialect.kernels.epilogue.activations import parsed
from cute_dialect.kernels.epilogue.functions import ACTIVATIONS, NUMPY, Arrays, arrays_of_torch
from cute_dialect.op.arrays.dtypes import element_name, torch_name
from cute_dialect.op.errors import LayoutError

__all__ = ["Matrix", "as_type", "folds", "functions_of", "store", "unfused"]


class Matrix(NamedTuple):
    """Layout of a matrix, or of a batch of matrices."""

    shape: tuple[int, int]
    stride: tuple[int, int]  # in elements
    item: int  # element size in bytes
    address: int  # modulo 16
    matrices: int = 1
    step: int = 0  # elements between matrices; 0 for one matrix, or one that is shared by the batch
    owned: bool = False  # stores may overwrite the padding between lines

    @property
    def contiguous(self) -> int:
        """The contiguous mode: 1 within rows, 0 within columns.  Raises LayoutError if there is none."""
        for mode in (1, 0):
            if self.along(mode):
                return mode
        raise LayoutError(f"a matrix has strides {self.stride}; one of them must be 1")

    def along(self, mode: int) -> bool:
        """Return True if a mode is contiguous."""
        return self.stride[mode] == 1 or self.shape[mode] == 1

    def suits_tma(self) -> bool:
        """Return True if TMA can read the matrix (PTX ISA, "Tensors").

        Its address, the stride between lines and the stride between matrices must be multiples of 16 bytes.
        """
        rows = self.stride[1 - self.contiguous] * self.item
        return (
            self.address % 16 == 0
            and rows % 16 == 0
            and rows > 0
            and min(self.shape) > 0
            and self.step * self.item % 16 == 0
        )

    def is_tma_storable(self) -> bool:
        """Return True if TMA can store the matrix without changing other memory.

        TMA stores write whole units of 16 bytes.  If the line ends inside a unit, the rest of it is overwritten.
        """
        line = self.shape[self.contiguous] * self.item
        return self.suits_tma() and (self.owned or line % 16 == 0)

    def copied(self, mode: int) -> Matrix:
        """Return the layout of a copy that TMA can read, contiguous along a mode."""
        unit = max(1, 16 // self.item)
        rows = -(-self.shape[mode] // unit) * unit
        stride = (rows, 1) if mode == 1 else (1, rows)
        step = rows * self.shape[1 - mode] if self.step else 0
        return Matrix(self.shape, stride, self.item, 0, self.matrices, step)


def folds(a: Matrix, b: Matrix, out: Matrix) -> bool:
    """Return True if a batched GEMM is one GEMM.

    ``b`` must be shared by the batch, and the matrices of ``a`` and of ``out`` must be stacked with one row stride.

    >>> a, out = Matrix((8, 64), (64, 1), 2, 0, 3, 512), Matrix((8, 16), (16, 1), 2, 0, 3, 128)
    >>> b = Matrix((64, 16), (16, 1), 2, 0)
    >>> folds(a, b, out), folds(a._replace(step=1024), b, out)
    (True, False)
    """
    if out.matrices == 1:
        return True
    on = [m.along(1) and m.step == m.stride[0] * m.shape[0] for m in (a, out) if m.shape[0] > 1]
    return b.step == 0 and a.step > 0 and all(on) and a.along(1) and out.along(1)


def unfused(
    product: Any, out: Any, alpha: float, beta: float, c: Any, bias: Any, activation: str
) -> Any:  # fmt: skip
    """Compute ``out = activation(alpha * product + beta * c + bias)`` with the array library.

    It computes in f32, in f64 if ``out`` is f64, and exactly if all arrays hold integers.
    """
    whole = alpha == 1.0 and beta in (0.0, 1.0) and activation in ("", "relu")
    whole = whole and not any(element_name(t.dtype)[:1] in "fb" for t in (product, c, bias, out) if t is not None)
    wide = partial(as_type, element="i64" if whole else "f64" if element_name(out.dtype) == "f64" else "f32")
    x = wide(product) if alpha == 1.0 else alpha * wide(product)
    if c is not None:
        x = x + (wide(c) if beta == 1.0 else beta * wide(c))
    if bias is not None:
        x = x + wide(bias)
    if activation:
        name, numbers = parsed(activation)
        x = ACTIVATIONS[name].of_arrays(functions_of(out), x, *numbers)
    store(out, x)
    return out


def functions_of(array: Any) -> Arrays:
    """Return the elementwise functions of an array's library."""
    name = type(array).__module__.partition(".")[0]
    if name == "torch":
        return arrays_of_torch()
    if name != "cupy":
        return NUMPY
    erf: Any = import_module("cupyx.scipy.special").erf
    return Arrays(*[erf if field == "erf" else getattr(NUMPY, field) for field in Arrays._fields])


def as_type(array: Any, element: str) -> Any:
    if hasattr(array, "astype"):
        return array.astype(torch_name(element))
    import torch

    return array.to(getattr(torch, torch_name(element)))


def store(out: Any, x: Any) -> None:
    """Write numbers to ``out``, rounded to nearest even; 8-bit types and integers saturate."""
    if not hasattr(out, "copy_"):
        _store_numpy(out, x)
        return
    import torch

    x = torch.as_tensor(x, device=out.device)
    if not out.dtype.is_floating_point:
        if x.is_floating_point():
            x = torch.round(torch.nan_to_num(x.double(), nan=0.0))
        x = x.clamp(torch.iinfo(out.dtype).min, torch.iinfo(out.dtype).max)
    elif out.dtype.itemsize == 1:
        x = x.clamp(torch.finfo(out.dtype).min, torch.finfo(out.dtype).max)
    out.copy_(x)


def _store_numpy(out: Any, x: Any) -> None:
    import numpy as np

    x = x if hasattr(x, "dtype") else np.asarray(x)
    if out.dtype.kind in "iu":
        if x.dtype.kind == "f":
            x = np.rint(np.nan_to_num(x.astype(np.float64), nan=0.0))
        x = x.clip(np.iinfo(out.dtype).min, np.iinfo(out.dtype).max)
    elif out.dtype.itemsize == 1:
        import ml_dtypes

        limit = float(ml_dtypes.finfo(out.dtype).max)
        x = x.clip(-limit, limit)
    out[...] = x
