"""Torch modules: linear, grouped linear and convolution layers with a fused activation."""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

from typing import Any

import torch

from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.functions.conv import conv2d
from cute_dialect.op.functions.gemm import linear
from cute_dialect.op.functions.grouped import grouped_mm
from cute_dialect.op.keywords import checks_keywords

__all__ = ["Conv2d", "GroupedLinear", "Linear"]


class Linear(torch.nn.Linear):
    """A layer ``activation(x @ weight.T + bias)``: ``torch.nn.Linear`` with a fused activation.

    Args:
        activation: as in :func:`cute_dialect.op.linear`.
        run_on: ``"cpu"`` runs on the interpreter, with parameters on the CPU.
    """

    @checks_keywords
    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, *, activation: str = "",
        device: Any = None, dtype: Any = None, run_on: str | None = None,
    ):  # fmt: skip
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        self.activation, self.run_on = activation, run_on

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return (…, out_features) for an input of (…, in_features)."""
        return linear(input, self.weight, self.bias, self.activation, device=self.run_on)

    def extra_repr(self) -> str:
        return super().extra_repr() + (f", activation={self.activation}" if self.activation else "")


class GroupedLinear(torch.nn.Module):
    """Layers of experts: ``activation(x_g @ weight[g].T + bias[g])`` for the rows of each group, in one launch.

    Args:
        groups: number of experts; ``weight`` is (groups, out_features, in_features).
        run_on: ``"cpu"`` runs on the interpreter.
    """

    @checks_keywords
    def __init__(
        self, groups: int, in_features: int, out_features: int, bias: bool = True, *, activation: str = "",
        device: Any = None, dtype: Any = None, run_on: str | None = None,
    ):  # fmt: skip
        super().__init__()
        self.groups, self.in_features, self.out_features = groups, in_features, out_features
        self.activation, self.run_on = activation, run_on
        kind = {"device": device, "dtype": dtype}
        self.weight = torch.nn.Parameter(torch.empty(groups, out_features, in_features, **kind))
        self.bias = torch.nn.Parameter(torch.empty(groups, out_features, **kind)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the parameters as ``torch.nn.Linear`` does."""
        bound = self.in_features**-0.5 if self.in_features else 0.0
        for parameter in self.parameters():
            torch.nn.init.uniform_(parameter, -bound, bound)

    def forward(self, input: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
        """Return (T, out_features) for rows (T, in_features).

        Group g ends before row ``offs[g]``.  Rows past the last group are zeros.
        """
        return grouped_mm(
            input, self.weight.mT, offs, bias=self.bias, activation=self.activation, rest="zero", device=self.run_on
        )

    def extra_repr(self) -> str:
        shown = f"{self.groups} groups, in_features={self.in_features}, out_features={self.out_features}"
        return f"{shown}, bias={self.bias is not None}" + (f", activation={self.activation}" if self.activation else "")


class Conv2d(torch.nn.Conv2d):
    """A layer ``activation(conv2d(x, weight) + bias)``: ``torch.nn.Conv2d`` with a fused activation.

    The weights have channels-last memory format.

    Args:
        padding_mode: ``"zeros"``; UnsupportedError is raised for others.
        run_on: ``"cpu"`` runs on the interpreter.
    """

    @checks_keywords
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", *, activation: str = "",
        device: Any = None, dtype: Any = None, run_on: str | None = None,
    ):  # fmt: skip
        if padding_mode != "zeros":
            raise UnsupportedError(f"Conv2d: padding_mode={padding_mode!r} is not supported; use 'zeros'")
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode,
            device=device, dtype=dtype,
        )  # fmt: skip
        self.activation, self.run_on = activation, run_on
        self.weight.data = self.weight.data.to(memory_format=torch.channels_last)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return (N, K, P, Q) for an input of (N, C, H, W)."""
        how = (self.stride, self.padding, self.dilation, self.groups)
        return conv2d(input, self.weight, self.bias, *how, activation=self.activation, device=self.run_on)

    def extra_repr(self) -> str:
        return super().extra_repr() + (f", activation={self.activation}" if self.activation else "")
