"""Functions of the flash-attn package, on the kernels of :mod:`cute_dialect.op`.

The names and the order of arguments are those of FlashAttention-2; arguments of FlashAttention-3 are accepted by name.
Arrays are torch tensors (B, S, H, D), or (rows, H, D) for packed sequences.  Causal masks and windows align the last
query with the last key: of S queries and S' keys, query i sees the keys from ``i + S' - S - left`` to
``i + S' - S + right`` for ``window_size=(left, right)``::

    from cute_dialect.flash_attn import flash_attn_func

    out = flash_attn_func(q, k, v, causal=True)              # with gradients

Tensors in CPU memory are computed on the interpreter.

After this import, one line runs the models that call ``torch.nn.functional.scaled_dot_product_attention`` on these
kernels, in releases of torch that have the function::

    torch.nn.attention.activate_flash_attention_impl("CUTE")
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.attention
from torch import Tensor

from cute_dialect import op
from cute_dialect.op.errors import DtypeError, OpError, ShapeError, UnsupportedError, renamed
from cute_dialect.op.execute.attention import state_of_call
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.functions.attention import SDPA_ARGUMENTS
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.operators.attention import gradients
from cute_dialect.op.operators.attention_matmuls import Mask, Saved
from cute_dialect.op.problems.attention import CALL, DESCALES
from cute_dialect.runtime.settings import flag

__all__ = [
    "flash_attn_func", "flash_attn_kvpacked_func", "flash_attn_qkvpacked_func", "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func", "flash_attn_varlen_qkvpacked_func", "flash_attn_with_kvcache",
]  # fmt: skip

_SCHEDULE = ("pack_gqa", "sm_margin", "scheduler_metadata", "num_splits")
"""Arguments of FlashAttention that select a schedule; their values are ignored."""
_UNSUPPORTED = (
    "qv", "rotary_seqlens", "cu_seqlens_k_new", "score_mod", "mask_mod", "aux_tensors",
)  # fmt: skip
"""Arguments of FlashAttention that may be None or 0 only."""
_NAMES = {"scale": "softmax_scale", "window": "window_size", "sinks": "learnable_sink", "lse": "return_attn_probs"}
"""Arguments of ``op.attention`` -> those of FlashAttention."""
_CACHE_NAMES = {
    **_NAMES,
    "k": "k_cache",
    "v": "v_cache",
    "seqused_k": "cache_seqlens",
    "leftpad_k": "cache_leftpad",
    "lse": "return_softmax_lse",
    "split_keys": "num_splits",
}
_APPENDED_NAMES = {
    "seqused_k": "cache_seqlens",
    "cos": "rotary_cos",
    "sin": "rotary_sin",
    "interleaved": "rotary_interleaved",
    "offsets": "cache_seqlens",
    "positions": "cache_seqlens",
    "x": "q",
}
"""Arguments of ``op.append_kv`` and ``op.rope`` -> those of FlashAttention."""


def flash_attn_func(
    q: Tensor, k: Tensor, v: Tensor, dropout_p: float = 0.0, softmax_scale: float | None = None,
    causal: bool = False, window_size: tuple[int, int] = (-1, -1), softcap: float = 0.0,
    alibi_slopes: Tensor | None = None, deterministic: bool = False, return_attn_probs: bool = False, *,
    attention_chunk: int = 0, **more: Any,
) -> Any:  # fmt: skip
    """Return attention of (B, S, H, D).

    With ``return_attn_probs`` the result is (out, log-sum-exp, None); the probabilities are not stored.  ``q``, ``k``
    and ``v`` may be 8-bit floats, with ``q_descale``, ``k_descale`` and ``v_descale``, (B, heads of ``k``); the result
    is then bf16.  ``dropout_p`` is that of :func:`cute_dialect.op.attention`.
    """
    call = "flash_attn_func"
    _check_rank(call, "q", q, "(B, S, H, D)")
    _check_rank(call, "k", k, "(B, S, H, D)")
    others = _checked(flash_attn_func, more, softmax_scale)
    try:
        found = op.attention(
            q, k, v, scale=softmax_scale, softcap=softcap, alibi_slopes=alibi_slopes, dropout_p=dropout_p,
            lse=return_attn_probs, layout="bshd", deterministic=deterministic or None, device=_device(q),
            attention_chunk=attention_chunk, **others, **_mask(call, causal, window_size, attention_chunk),
        )  # fmt: skip
    except OpError as e:
        raise renamed(e, call, CALL, arguments=_NAMES) from None
    return (*found, None) if return_attn_probs else found


def flash_attn_qkvpacked_func(qkv: Tensor, *args: Any, **more: Any) -> Any:
    """Return :func:`flash_attn_func` of queries, keys and values in one tensor, (B, S, 3, H, D)."""
    call = "flash_attn_qkvpacked_func"
    q, k, v = _parts(call, "qkv", qkv, "(B, S, 3, H, D)")
    try:
        return flash_attn_func(q, k, v, *args, **more)
    except OpError as e:
        raise renamed(e, call, "flash_attn_func") from None


def flash_attn_kvpacked_func(q: Tensor, kv: Tensor, *args: Any, **more: Any) -> Any:
    """Return :func:`flash_attn_func` with keys and values in one tensor, (B, S, 2, H, D)."""
    call = "flash_attn_kvpacked_func"
    k, v = _parts(call, "kv", kv, "(B, S, 2, H, D)")
    try:
        return flash_attn_func(q, k, v, *args, **more)
    except OpError as e:
        raise renamed(e, call, "flash_attn_func") from None


def flash_attn_varlen_func(
    q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor | None = None,
    max_seqlen_q: int | None = None, max_seqlen_k: int | None = None, dropout_p: float = 0.0,
    softmax_scale: float | None = None, causal: bool = False, window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0, alibi_slopes: Tensor | None = None, deterministic: bool = False,
    return_attn_probs: bool = False, block_table: Tensor | None = None, *, seqused_q: Tensor | None = None,
    seqused_k: Tensor | None = None, page_table: Tensor | None = None, attention_chunk: int = 0, **more: Any,
) -> Any:  # fmt: skip
    """Return attention of packed sequences, (rows, H, D).

    Args:
        block_table, page_table: pages of the keys; ``k`` and ``v`` are then (pages, page size, H, D), and
            ``seqused_k``, or the differences of ``cu_seqlens_k``, are the numbers of keys.
        max_seqlen_q, max_seqlen_k: rows and keys of the longest sequence, or more; default: all, which is slower.
        q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_q, seqused_k: as in FlashAttention.
        dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic: as in FlashAttention.
        return_attn_probs, attention_chunk: as in FlashAttention.
    """
    call = "flash_attn_varlen_func"
    _check_rank(call, "q", q, "(rows, H, D)")
    others = _checked(flash_attn_varlen_func, more, softmax_scale)
    table = page_table if block_table is None else block_table
    if table is None and cu_seqlens_k is None:
        raise ShapeError(f"{call}: cu_seqlens_k is missing; pass the offsets of the keys, or block_table")
    if table is not None and cu_seqlens_k is not None:
        seqused_k = cu_seqlens_k.diff() if seqused_k is None else seqused_k
        cu_seqlens_k = None
    try:
        found = op.attention(
            q, k, v, scale=softmax_scale, softcap=softcap, alibi_slopes=alibi_slopes, dropout_p=dropout_p,
            lse=return_attn_probs, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, max_seqlen_q=max_seqlen_q,
            max_seqlen_k=max_seqlen_k, seqused_q=seqused_q, seqused_k=seqused_k, page_table=table, layout="bshd",
            deterministic=deterministic or None, device=_device(q),
            attention_chunk=attention_chunk, **others, **_mask(call, causal, window_size, attention_chunk),
        )  # fmt: skip
    except OpError as e:
        names = _NAMES if block_table is None else {**_NAMES, "page_table": "block_table"}
        raise renamed(e, call, CALL, arguments=names) from None
    return (*found, None) if return_attn_probs else found


def flash_attn_varlen_qkvpacked_func(
    qkv: Tensor, cu_seqlens: Tensor, max_seqlen: int | None = None, *args: Any, **more: Any
) -> Any:
    """Return :func:`flash_attn_varlen_func` of queries, keys and values in one tensor, (rows, 3, H, D)."""
    call = "flash_attn_varlen_qkvpacked_func"
    q, k, v = _parts(call, "qkv", qkv, "(rows, 3, H, D)")
    try:
        return flash_attn_varlen_func(q, k, v, cu_seqlens, cu_seqlens, max_seqlen, max_seqlen, *args, **more)
    except OpError as e:
        names = {f"{name}_{x}": name for name in ("cu_seqlens", "max_seqlen") for x in "qk"}
        raise renamed(e, call, "flash_attn_varlen_func", arguments=names) from None


def flash_attn_varlen_kvpacked_func(q: Tensor, kv: Tensor, *args: Any, **more: Any) -> Any:
    """Return :func:`flash_attn_varlen_func` with keys and values in one tensor, (rows, 2, H, D)."""
    call = "flash_attn_varlen_kvpacked_func"
    k, v = _parts(call, "kv", kv, "(rows, 2, H, D)")
    try:
        return flash_attn_varlen_func(q, k, v, *args, **more)
    except OpError as e:
        raise renamed(e, call, "flash_attn_varlen_func") from None


def flash_attn_with_kvcache(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, k: Tensor | None = None, v: Tensor | None = None,
    rotary_cos: Tensor | None = None, rotary_sin: Tensor | None = None, cache_seqlens: int | Tensor | None = None,
    cache_batch_idx: Tensor | None = None, cache_leftpad: Tensor | None = None, block_table: Tensor | None = None,
    softmax_scale: float | None = None, causal: bool = False, window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0, rotary_interleaved: bool = True, alibi_slopes: Tensor | None = None, num_splits: int = 0,
    return_softmax_lse: bool = False, *, page_table: Tensor | None = None, attention_chunk: int = 0, **more: Any,
) -> Any:  # fmt: skip
    """Return attention of new queries on a cache, after ``k`` and ``v`` are appended to it.

    ``cache_seqlens`` is not advanced.

    Args:
        k_cache, v_cache: (B, S, H, D), or with ``block_table`` or ``page_table`` (pages, page size, H, D).
        k, v: new keys and values, (B, S', H, D), which are appended to the cache.
        rotary_cos, rotary_sin, rotary_interleaved: tables of :func:`cute_dialect.op.rope`, for ``q`` and ``k``.
        cache_seqlens: keys of each sequence in the cache; default: all.
        cache_batch_idx: sequence of the cache of each sequence of ``q``.
        cache_leftpad: rows of the cache before the first key of each sequence; not with pages or ``cache_batch_idx``.
        num_splits: slices of the keys; 0 chooses them.
        q, softmax_scale, causal, window_size, softcap, alibi_slopes, return_softmax_lse, attention_chunk: as in
            FlashAttention.
    """
    numbers = (
        softmax_scale, causal, window_size, softcap, rotary_interleaved, num_splits, return_softmax_lse,
        block_table is not None, attention_chunk,
    )  # fmt: skip
    table = page_table if block_table is None else block_table
    arrays = (
        q, k_cache, v_cache, k, v, rotary_cos, rotary_sin, cache_seqlens, cache_batch_idx, cache_leftpad, table,
        alibi_slopes,
    )  # fmt: skip
    # A call with an int of keys is not cached, because the int differs at each step.
    plain = not more and type(q) is Tensor and isinstance(cache_seqlens, Tensor)
    if not plain or _device(q) or _CACHED.is_traced():
        return _with_kvcache(arrays, numbers, more)
    # The types come first: numbers of other types are not compared. The sign of a zero does not matter.
    types = (
        type(softmax_scale),
        type(causal),
        type(window_size),
        type(softcap),
        type(rotary_interleaved),
        type(num_splits),
        type(return_softmax_lse),
        type(attention_chunk),
    )
    missing = (
        k is None,
        v is None,
        rotary_cos is None,
        rotary_sin is None,
        cache_batch_idx is None,
        cache_leftpad is None,
        table is None,
        alibi_slopes is None,
    )
    how = (types, numbers, missing)
    if missing == _APPENDS:
        tensors = (q, k_cache, v_cache, k, v, cache_seqlens)
    else:
        tensors = tuple([t for t in arrays if t is not None])
    done = _CACHED.again(how, *tensors)
    if done is None:
        if not _PLAIN.issuperset(types) or flag("CUTE_OP_CHECK", False):  # Replays do not check data.
            return _with_kvcache(arrays, numbers, more)

        def compute() -> tuple[Any, ...]:
            found = _with_kvcache(arrays, numbers, more)
            return (*(found if return_softmax_lse else (found,)), k_cache, v_cache)

        done = _CACHED.recorded(how, tensors, compute)
    return done[:2] if return_softmax_lse else done[0]


_PLAIN = {bool, int, float, tuple, type(None)}
"""Types of the arguments of :func:`flash_attn_with_kvcache`, other than arrays, that identify a cached call."""
_APPENDS = (False, False, True, True, True, True, True, True)
"""Whether each optional array is missing, in calls that append keys and values without rotary tables."""
_CACHED = KnownCalls(tf32=False)
"""Cached calls of :func:`flash_attn_with_kvcache`.  The caches are among the results, because calls write them."""


def _with_kvcache(arrays: tuple[Any, ...], numbers: tuple[Any, ...], more: dict[str, Any]) -> Any:
    """Compute :func:`flash_attn_with_kvcache`."""
    call = "flash_attn_with_kvcache"
    (
        q, k_cache, v_cache, k, v, rotary_cos, rotary_sin, cache_seqlens, cache_batch_idx, cache_leftpad, table,
        alibi_slopes,
    ) = arrays  # fmt: skip
    (
        softmax_scale, causal, window_size, softcap, rotary_interleaved, num_splits, return_softmax_lse, is_block_table,
        chunk,
    ) = numbers  # fmt: skip
    _check_rank(call, "q", q, "(B, S, H, D)")
    _check_rank(call, "k_cache", k_cache, "(B, S, H, D)")
    others = _checked(flash_attn_with_kvcache, more, softmax_scale)
    tables = {"page_table": "block_table"} if is_block_table else {}
    window_size = _window(call, window_size)
    for one, other, names in ((k, v, ("k", "v")), (rotary_cos, rotary_sin, ("rotary_cos", "rotary_sin"))):
        if (one is None) != (other is None):
            given, missing = names if other is None else reversed(names)
            raise UnsupportedError(f"{call}: {given} is given without {missing}; pass both, or neither")
    if cache_leftpad is not None and (table is not None or cache_batch_idx is not None):
        name = "cache_batch_idx" if table is None else "a page table"
        raise UnsupportedError(f"{call}: cache_leftpad cannot be combined with {name}; omit one of them")
    batch = q.shape[0]
    if table is not None:
        _check_rank(call, "block_table" if is_block_table else "page_table", table, "(B, pages)")
    keys = k_cache.shape[1] if table is None else k_cache.shape[1] * table.shape[1]
    if cache_batch_idx is not None:
        if table is not None:
            raise UnsupportedError(f"{call}: cache_batch_idx cannot be combined with a page table; index the table")
        _check_rank(call, "cache_batch_idx", cache_batch_idx, "(B,)")
        if not cache_batch_idx.is_cuda and not all(0 <= i < k_cache.shape[0] for i in cache_batch_idx.tolist()):
            raise ShapeError(
                f"{call}: cache_batch_idx is {cache_batch_idx.tolist()}; pass sequences of the cache, from 0 to "
                f"{k_cache.shape[0] - 1}"
            )
        table = cache_batch_idx.to(torch.int32).unsqueeze(1)
    used = _lengths(call, cache_seqlens, batch, q, keys if k is None else 0)
    first = used  # position of the first new key
    if cache_leftpad is not None:
        cache_leftpad = _lengths(call, cache_leftpad, batch, q, 0, "cache_leftpad")
        first = used if rotary_cos is None else used - cache_leftpad
    if k is not None and v is not None:
        if cache_seqlens is None:
            raise UnsupportedError(f"{call}: k is given without cache_seqlens; pass the numbers of keys in the cache")
        try:
            op.append_kv(
                k_cache, v_cache, k, v, used, page_table=table, cos=rotary_cos, sin=rotary_sin,
                interleaved=rotary_interleaved, offsets=None if first is used else first, layout="bshd",
                device=_device(q),
            )  # fmt: skip
        except OpError as e:
            raise renamed(e, call, "append_kv", arguments=_APPENDED_NAMES | tables) from None
    if rotary_cos is not None and rotary_sin is not None:
        # Without a mask all queries have the position of the first new key, as in FlashAttention.
        moves = causal or window_size != (-1, -1)
        place: dict[str, Any] = {"offsets": first} if moves else {"positions": first[:, None].expand(batch, q.shape[1])}
        try:
            q = op.rope(
                q, rotary_cos, rotary_sin, interleaved=rotary_interleaved, layout="bshd", device=_device(q), **place
            )
        except OpError as e:
            raise renamed(e, call, "rope", arguments=_APPENDED_NAMES) from None
    try:
        return op.attention(
            q, k_cache, v_cache, scale=softmax_scale, softcap=softcap, alibi_slopes=alibi_slopes,
            seqused_k=used, seqused_k_offset=0 if k is None else k.shape[1], page_table=table, leftpad_k=cache_leftpad,
            layout="bshd", lse=return_softmax_lse, split_keys=num_splits or None, device=_device(q),
            attention_chunk=chunk, **others, **_mask(call, causal, window_size, chunk),
        )  # fmt: skip
    except OpError as e:
        raise renamed(e, call, CALL, arguments=_CACHE_NAMES | tables) from None


def _device(q: Tensor) -> str | None:
    return "cpu" if q.is_cpu else None


def _mask(call: str, causal: bool, window: Any, chunk: int) -> dict[str, Any]:
    """Return ``causal`` and ``window`` of ``op.attention`` for a mask that aligns the last query with the last key."""
    left, right = (None if x is None or x < 0 else x for x in _window(call, window))
    if causal or right == 0:
        return {"causal": "bottom_right", "window": None if left is None else (left, None)}
    if left is None and right is None and not chunk:
        return {"causal": False}
    return {"causal": False, "window": (left, right, "bottom_right")}


def _window(call: str, window: Any) -> tuple[Any, Any]:
    is_pair = isinstance(window, tuple | list) and len(window) == 2
    if not is_pair or not all(x is None or type(x) is int for x in window):
        raise UnsupportedError(f"{call}: window_size is {window!r}; pass two ints, each -1 for no limit")
    return window[0], window[1]


def _checked(function: Callable[..., Any], more: dict[str, Any], scale: object) -> dict[str, Any]:
    """Return further arguments of ``op.attention``: the sinks, and factors of 8-bit operands.

    Raises ArgumentError and UnsupportedError for arguments that are not supported.
    """
    call = function.__name__
    if isinstance(scale, bool):  # by position, in the order of FlashAttention-3
        raise UnsupportedError(
            f"{call}: softmax_scale is {scale}; pass a number, and causal by name: positions are those of "
            "FlashAttention-2"
        )
    found = {"sinks": more.pop("learnable_sink", None), **{name: more.pop(name, None) for name in DESCALES}}
    for name, value in more.items():
        if name in _UNSUPPORTED and value is not None and not (type(value) is int and value == 0):
            raise UnsupportedError(f"{call}: {name} is not supported; omit it")
    others = {name: value for name, value in more.items() if name not in (*_SCHEDULE, *_UNSUPPORTED)}
    check_keywords(call, function, others, interpreted=False)
    return found


def _lengths(call: str, given: Any, batch: int, like: Tensor, default: int, name: str = "cache_seqlens") -> Tensor:
    if isinstance(given, Tensor):
        if given.dtype != torch.int32 or tuple(given.shape) != (batch,):
            raise ShapeError(
                f"{call}: {name} is {given.dtype} of shape {tuple(given.shape)}; pass torch.int32 of shape ({batch},)"
            )
        return given
    if given is not None and type(given) is not int:
        raise DtypeError(f"{call}: {name} is {given!r}; pass an int or a torch.int32 tensor ({batch},)")
    return torch.full((batch,), default if given is None else given, dtype=torch.int32, device=like.device)


def _check_rank(call: str, name: str, x: Any, shape: str) -> None:
    """Raise DtypeError or ShapeError unless x is a tensor with as many dimensions as the shape."""
    if not isinstance(x, Tensor):
        raise DtypeError(f"{call}: {name} is of type {type(x).__name__}; pass a torch tensor {shape}")
    if x.dim() != shape.strip("(,)").count(",") + 1:
        raise ShapeError(f"{call}: {name} has shape {tuple(x.shape)}; pass a tensor {shape}")


def _parts(call: str, name: str, packed: Any, shape: str) -> tuple[Tensor, ...]:
    """Return the tensors that are packed along the third dimension from the end."""
    _check_rank(call, name, packed, shape)
    count = 3 if name == "qkv" else 2
    if packed.shape[-3] != count:
        raise ShapeError(f"{call}: {name} has shape {tuple(packed.shape)}; pass a tensor {shape}")
    return packed.unbind(-3)


# ------------------------------------------------------------------------------------------------- torch's dispatcher


class SdpaHandle:
    """Our kernels as torch's flash-attention backend, until :meth:`remove`."""

    def __init__(self) -> None:
        self._library: Any = torch.library.Library("aten", "IMPL", "CUDA")
        self._library.impl("_scaled_dot_product_flash_attention", sdpa_forward, "CUDA")
        self._library.impl("_scaled_dot_product_flash_attention_backward", sdpa_backward, "CUDA")

    def remove(self) -> None:
        """Restore torch's kernels."""
        library, self._library = self._library, None
        if library is not None:
            library._destroy()


def sdpa_forward(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float = 0.0, is_causal: bool = False,
    return_debug_mask: bool = False, *, scale: float | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    """Compute ``aten::_scaled_dot_product_flash_attention``."""
    call = "scaled_dot_product_attention"
    if return_debug_mask:
        raise UnsupportedError(f"{call}: return_debug_mask is not supported by the CUTE backend; pass False")
    state = state_of_call(call, query, dropout_p, None)
    try:
        with torch.no_grad():
            out, lse = op.attention(
                query,
                key,
                value,
                causal=is_causal,
                scale=scale,
                dropout_p=dropout_p,
                rng_state=state,
                lse=True,
                device=_device(query),
            )
    except OpError as e:
        raise renamed(e, call, CALL, arguments=SDPA_ARGUMENTS) from None
    if state is None:
        state = torch.zeros(2, dtype=torch.int64, device=query.device)
    offset = torch.zeros((), dtype=torch.uint64, device=query.device)
    return out, lse, None, None, query.shape[2], key.shape[2], state.view(torch.uint64), offset, query.new_empty(0)


def sdpa_backward(
    grad_out: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor,
    cum_seq_q: Tensor | None, cum_seq_k: Tensor | None, max_q: int, max_k: int, dropout_p: float, is_causal: bool,
    philox_seed: Tensor, philox_offset: Tensor, *, scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Compute ``aten::_scaled_dot_product_flash_attention_backward``."""
    saved = Saved(query, key, value, None, None, out, logsumexp, state=philox_seed if dropout_p else None)
    mask = Mask("top_left" if is_causal else "", -1, -1, scale, "bhsd", None, dropout_p=dropout_p)
    with torch.no_grad():
        found = gradients(saved, grad_out, None, mask)
    return found.q, found.k, found.v


if hasattr(torch.nn.attention, "register_flash_attention_impl"):
    torch.nn.attention.register_flash_attention_impl("CUTE", register_fn=SdpaHandle)
