"""The operator ``torch.ops.cute.adamw_``.  Tensors in CPU memory run on the interpreter."""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportArgumentType=false

from __future__ import annotations

from torch import Tensor

from cute_dialect.kernels.elementwise.adamw import AdamwArrays
from cute_dialect.op.functions.optimizers import AdamwSettings, updated


def adamw(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    *more: Tensor | float | bool | None,
) -> None:
    """Update the parameters; ``more`` has the fields of AdamwArrays and AdamwSettings."""
    arrays, settings = AdamwArrays(*more[:4]), AdamwSettings(*more[4:])
    updated((params, grads, exp_avgs, exp_avg_sqs), arrays, settings, "cpu" if params[0].is_cpu else None)


def fake_adamw(*_: object) -> None:
    return None
