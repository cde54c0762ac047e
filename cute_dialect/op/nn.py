"""Modules of torch, thin ones: parameters, and a call of an operation."""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

from typing import Any

import torch

from cute_dialect.op.functions import linear

__all__ = ["Linear"]


class Linear(torch.nn.Linear):
    """A layer ``activation(x @ weight.T + bias)``, as ``torch.nn.Linear`` with an activation in the same kernel.

    ``run_on``: ``"cpu"`` for the interpreter, of parameters on the CPU.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, *, activation: str = "",
        device: Any = None, dtype: Any = None, run_on: str | None = None,
    ):  # fmt: skip
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        self.activation, self.run_on = activation, run_on

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return the layer of (…, in_features): (…, out_features)."""
        return linear(input, self.weight, self.bias, self.activation, device=self.run_on)

    def extra_repr(self) -> str:
        """Return what is printed of it."""
        return super().extra_repr() + (f", activation={self.activation}" if self.activation else "")
