"""The operator ``torch.ops.cute.mla_decode``, which has no gradients."""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import torch
from torch import Tensor

from cute_dialect.kernels.attention.latent_config import LATENT
from cute_dialect.op.functions.mla import decoded


def forward(
    q: Tensor,
    cache: Tensor,
    page_table: Tensor | None,
    seqused_k: Tensor | None,
    max_seqlen_k: int | None,
    causal: bool,
    scale: float | None,
    lse: bool,
) -> tuple[Tensor, Tensor]:
    """Return the result and ``lse``, which is empty if it is not needed."""
    found = decoded(
        q,
        cache,
        page_table,
        seqused_k,
        (causal, scale, lse, max_seqlen_k, None, None),
        device="cpu" if q.device.type == "cpu" else None,
    )
    return found if lse else (found, q.new_empty(0, dtype=torch.float32))


def fake(q: Tensor, cache: Tensor, *more: object) -> tuple[Tensor, Tensor]:
    """Return tensors without values, like the results."""
    b, s, h, _ = q.shape
    result = q.new_empty(b, s, h, LATENT)
    if q.stride(1) < q.stride(2):
        result = q.new_empty(b, h, s, LATENT).transpose(1, 2)
    return result, q.new_empty((b, h, s) if more[-1] else 0, dtype=torch.float32)
