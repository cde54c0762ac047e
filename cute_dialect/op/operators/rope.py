"""The operators ``torch.ops.cute.rope``, whose gradient is the inverse rotation, and ``append_kv``."""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cute_dialect.op.functions.rope import Rotation, append_kv, rotated
from cute_dialect.op.torch.registry import CUTE

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.torch.autograd import Context


def forward(
    x: Tensor, cos: Tensor, sin: Tensor, positions: Tensor | None, offsets: Tensor | None, interleaved: bool,
    layout: str, inverse: bool,
) -> Tensor:  # fmt: skip
    device = "cpu" if x.device.type == "cpu" else None
    return rotated(x, Rotation(cos, sin, positions, offsets, interleaved, layout, inverse), device=device)


def fake(x: Tensor, *_: object) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def keep(ctx: Context, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[1:5])
    ctx.how = inputs[5:]


def backward(ctx: Context, grad: Tensor) -> tuple[Tensor | None, ...]:
    interleaved, layout, inverse = ctx.how
    return CUTE.rope(grad, *ctx.saved_tensors, interleaved, layout, not inverse), *(None,) * 7


def append(
    k_cache: Tensor, v_cache: Tensor, k: Tensor, v: Tensor, seqused_k: Tensor, page_table: Tensor | None,
    *rotation: Any,
) -> None:  # fmt: skip
    cos, sin, interleaved, layout = rotation
    append_kv(
        k_cache, v_cache, k, v, seqused_k, page_table=page_table, cos=cos, sin=sin, interleaved=interleaved,
        layout=layout, device="cpu" if k.device.type == "cpu" else None,
    )  # fmt: skip


def fake_append(*_: object) -> None:
    return None
