"""The work of ``mm`` around its kernels: how matrices can be read, and torch's operations where a kernel has none."""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # pragma: no cover
    import torch

__all__ = ["Matrix", "bias_mode", "like", "unfused"]


class Matrix(NamedTuple):
    """A matrix as it may be read: extents, strides (elements), bytes of an element, address."""

    shape: tuple[int, int]
    stride: tuple[int, int]
    item: int
    address: int

    @property
    def contiguous(self) -> int:
        """The mode that is contiguous: 1 for rows, 0 for columns.  Raises ValueError where neither is."""
        for mode in (1, 0):
            if self.stride[mode] == 1 or self.shape[mode] == 1:
                return mode
        raise ValueError(f"expected a matrix with a contiguous mode, got strides {self.stride}")

    def suits_tma(self) -> bool:
        """Tell whether TMA can describe it: an address and rows of whole 16 bytes (PTX ISA, "Tensors")."""
        rows = self.stride[1 - self.contiguous] * self.item
        return self.address % 16 == 0 and rows % 16 == 0 and rows > 0 and min(self.shape) > 0


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
    (rows, columns), (row_step, column_step) = c.shape, c.stride()
    at = Matrix((rows, columns), (row_step, column_step), c.element_size(), c.data_ptr() % 16)
    if c.dtype == out.dtype and c.stride(1) == 1 and at.suits_tma():
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
    """Compute ``out = activation(alpha * product + beta * c + bias)`` by torch, in f32.  Raises ValueError for
    activations that the kernels do not know.
    """
    import torch

    def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(x, approximate="tanh")

    functions: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "relu": torch.relu,
        "gelu": torch.nn.functional.gelu,
        "gelu_tanh": gelu_tanh,
        "silu": torch.nn.functional.silu,
    }
    if activation and activation not in functions:
        raise ValueError(f"expected an activation of {', '.join(functions)}, got {activation!r}")
    x = alpha * product.float()
    if c is not None:
        x = x + beta * c.float()
    if bias is not None:
        bias_mode(tuple(bias.shape), *out.shape)
        x = x + bias.float()
    return out.copy_(functions[activation](x) if activation else x)
