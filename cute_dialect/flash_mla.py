"""Functions of the flash_mla package, on :func:`cute_dialect.op.mla_decode`.

The names and the order of arguments are those of FlashMLA::

    from cute_dialect.flash_mla import flash_mla_with_kvcache, get_mla_metadata

    metadata, num_splits = get_mla_metadata(cache_seqlens, s_q * h_q // h_kv, h_kv)
    out, lse = flash_mla_with_kvcache(q, kv_cache, block_table, cache_seqlens, 512, metadata, num_splits, causal=True)

Tensors in CPU memory are computed on the interpreter.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from torch import Tensor

from cute_dialect import op
from cute_dialect.kernels.attention.latent_config import LATENT
from cute_dialect.op.errors import DtypeError, OpError, UnsupportedError, renamed
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.problems.mla import MLA

__all__ = ["flash_mla_with_kvcache", "get_mla_metadata"]

_UNSUPPORTED = ("attn_sink", "extra_k_cache", "extra_indices_in_kvcache", "topk_length", "extra_topk_length")
"""Arguments of FlashMLA that are not supported. They must be None."""
_NAMES = {
    "page_table": "block_table",
    "seqused_k": "cache_seqlens",
    "scale": "softmax_scale",
    "cache": "k_cache",
}
"""Arguments of ``op.mla_decode`` -> those of FlashMLA."""


def get_mla_metadata(*args: object, **more: object) -> tuple[None, None]:
    """Return (None, None): :func:`flash_mla_with_kvcache` chooses its schedule itself.

    The arguments of FlashMLA are accepted and ignored.
    """
    return None, None


def flash_mla_with_kvcache(
    q: Tensor,
    k_cache: Tensor,
    block_table: Tensor | None,
    cache_seqlens: Tensor | None,
    head_dim_v: int,
    tile_scheduler_metadata: object = None,
    num_splits: object = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    is_fp8_kvcache: bool = False,
    indices: Tensor | None = None,
    **more: object,
) -> tuple[Tensor, Tensor]:
    """Return the result, (B, S, H, 512), and the log-sum-exps, (B, H, S), of multi-head latent attention.

    The number of slices of the keys is chosen for the longest sequence that fits ``block_table``.

    Args:
        q: (B, S, H, 576), f16 or bf16.
        k_cache: (pages, page size, 1, 576).
        block_table: pages of each sequence, i32 (B, P).
        cache_seqlens: number of keys of each sequence, i32 (B,).
        head_dim_v: 512.
        tile_scheduler_metadata, num_splits: ignored.
        softmax_scale: default: ``1 / sqrt(576)``.
        causal: the last query sees all keys.
        is_fp8_kvcache, indices: 8-bit and sparse caches are not supported.
        more: further arguments of FlashMLA, which must be None.
    """
    call = "flash_mla_with_kvcache"
    for name, tensor in (
        ("q", q),
        ("k_cache", k_cache),
        ("block_table", block_table),
        ("cache_seqlens", cache_seqlens),
    ):
        if not isinstance(tensor, Tensor) and (tensor is not None or name in ("q", "k_cache")):
            raise DtypeError(f"{call}: {name} is of type {type(tensor).__name__}; pass a torch tensor")
    for name in _UNSUPPORTED:
        if more.pop(name, None) is not None:
            raise UnsupportedError(f"{call}: {name} is not supported; omit it")
    if more:
        check_keywords(call, flash_mla_with_kvcache, more, interpreted=False)
    if head_dim_v != LATENT:
        raise UnsupportedError(f"{call}: head_dim_v is {head_dim_v!r}; pass {LATENT}")
    for name, given in (("is_fp8_kvcache", is_fp8_kvcache), ("indices", indices is not None)):
        if given:
            raise UnsupportedError(f"{call}: {name} is not supported; omit it")
    try:
        out, lse = op.mla_decode(
            q,
            k_cache,
            page_table=block_table,
            seqused_k=cache_seqlens,
            causal=causal,
            scale=softmax_scale,
            lse=True,
            device="cpu" if q.device.type == "cpu" else None,
        )
    except OpError as e:
        raise renamed(e, call, MLA, arguments=_NAMES) from None
    return out, lse
