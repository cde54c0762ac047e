"""Scaled dot-product attention, ``op.attention``, with torch's conventions; its gradients, and merges of results.

Arrays are read in place, in any order of dimensions.  The elements of a head must be contiguous and begin at a
multiple of 16 bytes; other arrays are copied first.  ``op.merge_attention`` merges results over disjoint keys.
"""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.attention.backward_config import BackwardConfig
from cute_dialect.kernels.attention.combine import CombineConfig, combine_text, merge_text
from cute_dialect.kernels.attention.config import ELEMENTS, AttentionConfig
from cute_dialect.kernels.attention.dropout import kept_of_arrays
from cute_dialect.op.arrays.dtypes import checked_element, element_name, torch_name
from cute_dialect.op.arrays.library import call_operator, is_autocast, scalar
from cute_dialect.op.arrays.operand_views import overlap
from cute_dialect.op.errors import DtypeError, LayoutError, OpError, ShapeError, UnsupportedError, renamed
from cute_dialect.op.execute.array_call import RowCall, RowKernel, check_elements, is_contiguous
from cute_dialect.op.execute.attention import OPTIONAL_ARRAYS, call_way, check_call, computed, state_of_call
from cute_dialect.op.execute.attention_backward import (
    BACKWARD_CALL,
    BACKWARD_OTHERS,
    AttentionBackwardProblem,
    backward_form,
    choose_backward,
    computed_gradients,
)
from cute_dialect.op.execute.autocast import recast
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.execute.recording import needs_gradients
from cute_dialect.op.keywords import check_flag, check_keywords
from cute_dialect.op.problems.attention import (
    CALL,
    DESCALES,
    SPELLINGS,
    Numbers,
    dropout_of,
    factor_of,
    form_of,
    visible_keys,
)
from cute_dialect.runtime.settings import flag

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.op.signature_types import Array, Interpreted, Window

_KNOWN = KnownCalls()
"""Cached calls."""


def attention(
    q: Array, k: Array, v: Array, *, causal: bool | str = False, scale: float | None = None,
    window: Window | None = None, softcap: float = 0.0, sinks: Array = None,
    alibi_slopes: Array = None, mask: Array = None, dropout_p: float = 0.0, rng_state: Array = None, lse: bool = False,
    layout: str = "bhsd", cu_seqlens_q: Array = None, cu_seqlens_k: Array = None, max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None, seqused_k: Array = None, page_table: Array = None, seqused_q: Array = None,
    leftpad_k: Array = None, seqused_k_offset: int = 0, attention_chunk: int = 0,
    q_descale: float | Array = None, k_descale: float | Array = None, v_descale: float | Array = None,
    dtype: object = None, deterministic: bool | None = None, out: Array = None,
    kernel: AttentionConfig | str | None = None, split_keys: int | None = None, device: object = None,
    stream: object = None, **run: Unpack[Interpreted],
) -> Array:  # fmt: skip
    """Return ``softmax(scale q k^T) v`` per head, an array like ``q`` with the head size of ``v``.

    ``q``, ``k`` and ``v`` may be 8-bit floats, with factors ``q_descale``, ``k_descale`` and ``v_descale``.  The
    probabilities are then rounded to e4m3, and there are no gradients.

    Scores are scaled, capped, biased and masked in this order.  A row that sees no key is 0, with an ``lse`` of minus
    infinity, or of its sink.

    Args:
        q: (B, H, S, D), f16, bf16, e4m3 or e5m2.
        k: (B, H', S', D).  H is a multiple of H': consecutive heads of ``q`` share a head of ``k`` and ``v``.
        v: (B, H', S', D'); D' may differ from D.
        causal: a query sees the keys up to its own.  ``True`` and ``"top_left"`` align query 0 with key 0, as torch
            does; ``"bottom_right"`` aligns the last query with the last key.
        scale: any finite number; default: ``1 / sqrt(D)``.
        window: numbers of visible keys before and after the key that is aligned with the query, None for no limit.
            ``causal`` selects the alignment.  Without it query 0 is aligned with key 0, or with ``"bottom_right"`` as
            the third element the last query with the last key.
        softcap: replace scores by ``softcap * tanh(score / softcap)``; 0 for none.
        sinks: (H,), f32 or the type of the result: the score of a further key of each head, whose value is zero.
        alibi_slopes: (H,) or (B, H), f32: subtract ``slope * |i + S' - S - j|`` from the score of query i and key j.
            Slopes that require gradients are refused.
        mask: an array that expands to (B, H, S, S'): bool, True for visible keys, or f32 or the type of the
            result, added to the scores.
        dropout_p: probability with which each attention probability is set to 0, rounded to a multiple of 2^-15; the
            others are divided by the probability of being kept.
        rng_state: seed and offset of dropout, an i64 array (2,).  Equal states drop the same elements, those of
            :func:`attention_dropout_mask`.  None: a new state per call, from the default generator of torch for the
            device of ``q``, so that ``torch.manual_seed`` determines it, or from ``numpy.random``.
        lse: return a pair, with the logarithm of the sum of the exponentials of each row, (B, H, S) in f32.
        layout: ``"bhsd"``, or ``"bshd"`` for arrays (B, S, H, D).
        cu_seqlens_q, cu_seqlens_k: offsets of packed sequences, i32 arrays (B + 1,) on the device of the other arrays,
            which are then (rows, H, D).  The call does not wait for them.
        max_seqlen_q: rows of the longest sequence of ``q``, or more; default: all rows.
        max_seqlen_k: keys of the longest packed sequence, or more, for the speed of gradients; default: that of ``q``
            if both have the same offsets, or all keys.  A longer sequence is refused if the offsets are in CPU memory,
            or with ``CUTE_OP_CHECK=1``; otherwise its last rows or keys may be skipped.
        seqused_k: number of keys of each sequence, i32 (B,).  Keys and values past it may have any bits.
        page_table: pages of each sequence, i32 (B, P): key j is row ``j % S'`` of page ``page_table[b, j // S']``.
            ``k`` and ``v`` have pages in place of sequences; ``layout`` orders their dimensions.  Pages of 8, 16, 32,
            64 or a multiple of 128 keys are loaded by TMA, others by ``cp.async``.  Entries past the last key are not
            read.  ``q`` may be packed, with ``cu_seqlens_q`` alone.
        seqused_q: number of queries of each sequence, i32 (B,).  Results of queries past it are unspecified.
        leftpad_k: rows of ``k`` and ``v`` before the first key of each sequence, i32 (B,).  The key in row
            ``leftpad_k[b]`` is key 0, and ``seqused_k`` counts the rows before it, too.  Not with ``page_table``.
        seqused_k_offset: a number to add to each of ``seqused_k``, such as that of the keys just appended.
        attention_chunk: a query sees keys in its own chunk of this many keys only; 0 for no chunks.  The key aligned
            with the query determines the chunk.
        q_descale, k_descale, v_descale: factors of 8-bit ``q``, ``k`` and ``v``, above 0: a number, an f32 array (), or
            (B, H'), one for each sequence and head of ``k``; default: 1.
        dtype: type of the result of 8-bit operands: bf16 (default), f16 or f32.
        deterministic: compute gradients with the same bits in each run; None follows
            ``torch.are_deterministic_algorithms_enabled()``.
        out: array for the result; default: a new array.
        kernel: a name as reported by :func:`cute_dialect.op.explain`, or an ``AttentionConfig``, whose tiles and
            schedule are used.
        split_keys: number of slices of the keys, which blocks compute in parallel and a second kernel combines;
            default: 1, or more for few queries.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Raises subclasses of :class:`cute_dialect.op.OpError` before anything is compiled or written.
    """
    if run:
        check_keywords("attention", attention, run, spellings=SPELLINGS)
    bounds: object = tuple(window) if isinstance(window, list) else window
    numbers = (
        causal,
        scale,
        bounds,
        softcap,
        lse,
        layout,
        max_seqlen_q,
        kernel,
        split_keys,
        seqused_k_offset,
        attention_chunk,
        dtype,
        dropout_p,
        deterministic,
        max_seqlen_k,
    )
    if mask is not None and hasattr(mask, "kv_num_blocks"):
        raise UnsupportedError(f"{CALL}: mask is a BlockMask; use op.flex_attention(q, k, v, block_mask=mask)")
    rng_state = state_of_call(CALL, q, dropout_p, rng_state)
    descales = q_descale, k_descale, v_descale
    if not (q_descale is k_descale is v_descale is None):
        q_descale, k_descale, v_descale = (_factor(name, x, q) for name, x in zip(DESCALES, descales))
    more = (
        *(cu_seqlens_q, cu_seqlens_k, sinks, alibi_slopes, mask, rng_state),
        *(seqused_k, page_table, seqused_q, leftpad_k, q_descale, k_descale, v_descale),
    )
    if device is None and stream is None and not run and not _KNOWN.is_traced():
        how, tensors = _key(q, k, v, more, out, numbers)
        done = _KNOWN.again(how, *tensors)
        if done is not None:
            return done
    if out is None and is_autocast(q):
        return recast(
            CALL, attention, {"q": q, "k": k, "v": v, "mask": mask}, causal=causal, scale=scale, window=window,
            softcap=softcap, sinks=sinks, alibi_slopes=alibi_slopes, dropout_p=dropout_p, rng_state=rng_state, lse=lse,
            layout=layout, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, max_seqlen_q=max_seqlen_q,
            max_seqlen_k=max_seqlen_k, seqused_k=seqused_k, page_table=page_table, seqused_q=seqused_q,
            leftpad_k=leftpad_k, seqused_k_offset=seqused_k_offset, attention_chunk=attention_chunk,
            q_descale=q_descale, k_descale=k_descale, v_descale=v_descale, dtype=dtype, deterministic=deterministic,
            kernel=kernel, split_keys=split_keys, device=device, stream=stream, **run,
        )  # fmt: skip
    check_flag(CALL, "lse", lse)
    if max_seqlen_k is not None and (type(max_seqlen_k) is not int or max_seqlen_k < 0):
        raise ShapeError(f"{CALL}: max_seqlen_k is {max_seqlen_k!r}; pass an integer of 0 or more, or None")
    if deterministic is not None:
        check_flag(CALL, "deterministic", deterministic)
    constant = {"alibi_slopes": alibi_slopes, "q_descale": q_descale, "k_descale": k_descale, "v_descale": v_descale}
    for name, array in constant.items():
        if needs_gradients(array):
            raise UnsupportedError(f"{CALL}: {name} has no gradient; pass {name}.detach()")
    others = {"out": out, "kernel": kernel, "split_keys": split_keys, "device": device, **run}
    constants = dict(zip(OPTIONAL_ARRAYS[6:], more[6:])) | {"attention_chunk": attention_chunk or None}
    operators = _operators((q, k, v, sinks, mask), others, constants)
    if operators is not None:
        # A compiled graph reports other errors when it runs, where callers such as flash_attn_func cannot rename them.
        check_elements(CALL, {n: element_name(x.dtype) for n, x in (("q", q), ("k", k), ("v", v))}, ELEMENTS)
        direction, *bounds = visible_keys(causal, window)
        left, right = (-1 if x is None else x for x in bounds)
        logs = lse or q.is_cuda  # the kernel of the gradients reads them

        def compute() -> object:
            result, found = operators.attention(
                q, k, v, *more, direction, left, right, scale, layout, max_seqlen_q, softcap or 0.0,
                deterministic, max_seqlen_k, dropout_p, logs, seqused_k_offset, attention_chunk, _torch_type(dtype),
            )  # fmt: skip
            return (result, found) if lse else result

        def checked() -> object:
            return call_operator(CALL, compute, q, device, stream, name="q")

        if (
            device is None
            and stream is None
            and not run
            and not _KNOWN.is_traced()
            and not flag("CUTE_OP_CHECK", False)
        ):
            how, tensors = _key(q, k, v, more, out, numbers)
            return _KNOWN.differentiable(how, tensors, checked)
        return checked()
    return attended(q, k, v, numbers, more, out, device, stream, run)


def attended(
    q: Array, k: Array, v: Array, numbers: tuple[Any, ...], more: tuple[Any, ...] = (), out: Array = None,
    device: object = None, stream: object = None, run: Interpreted | None = None,
) -> Array:  # fmt: skip
    """Compute :func:`attention` without gradients.

    Args:
        numbers: causal, scale, window, softcap, lse, layout, max_seqlen_q, kernel, split_keys, seqused_k_offset,
            attention_chunk, dtype, dropout_p and, if there are more, deterministic and max_seqlen_k.
        more: the arrays of ``OPTIONAL_ARRAYS``, or None.
    """

    def compute() -> object:
        return _launched(q, k, v, numbers, more, out, device, stream, run)

    if device is not None or stream is not None or run or flag("CUTE_OP_CHECK", False):
        return compute()
    how, tensors = _key(q, k, v, more, out, numbers)
    return _KNOWN.call(how, tensors, compute)


def _factor(name: str, given: float | Array, q: Array) -> Array:
    """Return a factor of 8-bit operands as an array.  Raises OpError."""
    number = factor_of(name, given)
    return given if number is None else scalar(CALL, name, number, q)


def _launched(
    q: Array, k: Array, v: Array, numbers: tuple[Any, ...], more: tuple[Any, ...], out: Array, device: object,
    stream: object, run: Interpreted | None,
) -> Array:  # fmt: skip
    """Check the arguments of :func:`attended`, and launch its kernels."""
    causal, scale, window, softcap, lse, layout, longest, kernel, split_keys, *given = numbers
    arrays = {"q": q, "k": k, "v": v, **dict(zip(OPTIONAL_ARRAYS, more)), "out": out}
    one = RowCall(CALL, arrays, device, (*OPTIONAL_ARRAYS, "out"), ELEMENTS, stream=stream, run=run)
    longest_keys = given[5] if len(given) > 5 else None
    given = Numbers(softcap, *given[:4])
    form = form_of(one.views, causal, scale, window, lse, layout, longest, one.element, given)
    check_call(one, form, longest_keys)
    way = call_way(one, form, kernel, split_keys)
    with one.on():
        results = computed(one, form, way)
    return tuple(results[:2]) if lse else results[0]


def attention_dropout_mask(rng_state: Array, dropout_p: float, shape: Sequence[int]) -> Array:
    """Return the attention probabilities that dropout keeps, a bool array (B, H, S, S').

    It is computed with array operations, for tests.  For packed sequences, B is the number of sequences, and queries
    and keys are counted from the start of each.

    Args:
        rng_state: seed and offset, as in :func:`attention`: a torch or numpy array (2,) of i64.
        dropout_p: as in :func:`attention`.
        shape: number of sequences, heads of ``q``, queries and keys.

    >>> import numpy as np
    >>> attention_dropout_mask(np.array([7, 0]), 0.5, (1, 1, 2, 8)).astype(int).tolist()
    [[[[1, 1, 1, 1, 0, 1, 0, 1], [0, 0, 1, 1, 1, 0, 1, 1]]]]
    """
    call = "attention_dropout_mask"
    if not hasattr(rng_state, "shape") or not str(getattr(rng_state, "dtype", "")).endswith("int64"):
        kind = getattr(rng_state, "dtype", type(rng_state).__name__)
        raise DtypeError(f"{call}: rng_state is of type {kind}; pass a torch or numpy array (2,) of i64")
    extents: Array = shape
    is_shape = isinstance(extents, Sequence) and all([type(n) is int and n >= 0 for n in extents])
    if not is_shape or len(shape) != 4 or tuple(rng_state.shape) != (2,):
        raise ShapeError(
            f"{call}: rng_state has shape {tuple(rng_state.shape)} and shape is {shape}; pass (2,), and four extents "
            "(B, H, S, S') of 0 or more"
        )
    p = dropout_of(call, dropout_p)
    b, h, s, t = shape
    # Operators of torch and numpy do not support mixed signs.
    signed = sys.modules["torch"].int64 if hasattr(rng_state, "data_ptr") else "int64"
    return kept_of_arrays(rng_state.view(signed), p, (b, h, s, t))


def _key(
    q: Any, k: Any, v: Any, more: tuple[Any, ...], out: Any, numbers: tuple[Any, ...]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the cache key of a call and its arrays; offsets shared by ``q`` and ``k`` are listed once."""
    tensors, given = (q, k, v) if out is None else (q, k, v, out), ()
    found = [x for x in more if x is not None]
    if found:
        same = more[0] is more[1]
        given = (same, *[x is None for x in more])
        tensors += tuple(found[1:] if same and more[0] is not None else found)
    return (*numbers, given, out is None), tensors


# -------------------------------------------------------------------------------------------------------------- torch


def _torch_type(dtype: object) -> Any:
    """Return the torch dtype of the result, or None.  Raises DtypeError."""
    return None if dtype is None else getattr(sys.modules["torch"], torch_name(checked_element(dtype, "dtype")))


def _operators(arrays: tuple[Any, ...], others: dict[str, Any], constants: dict[str, Any]) -> Any:
    """Return the torch operators if gradients are needed or torch compiles the call, otherwise None.

    Raises UnsupportedError for arguments that the operators do not support.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    learns = needs_gradients(*arrays)
    if not learns and not torch.compiler.is_compiling():
        return None
    if learns:
        if arrays[0].dtype.itemsize == 1:
            raise UnsupportedError(
                f"{CALL}: q has dtype {element_name(arrays[0].dtype)}, which has no gradients; call it under "
                "torch.no_grad()"
            )
        for name, given in constants.items():
            if given is not None:
                raise UnsupportedError(f"{CALL}: {name} is not supported with gradients; use torch.no_grad()")
    for name, given in others.items():
        if given is not None and name != "device":
            raise UnsupportedError(
                f"{CALL}: {name} is not supported with gradients or torch.compile; omit it, or use torch.no_grad()"
            )
    from cute_dialect.op.torch.dispatch import CUTE, differentiates  # late: torch

    if differentiates(*arrays):
        raise UnsupportedError(
            f"{CALL}: torch.func.grad does not support operators of torch.library; use backward() or "
            "torch.autograd.grad"
        )
    return CUTE


SDPA_ARGUMENTS = {"q": "query", "k": "key", "v": "value", "mask": "attn_mask", "causal": "is_causal"}
"""Arguments of :func:`attention` -> those of torch."""


def scaled_dot_product_attention(
    query: Array, key: Array, value: Array, attn_mask: Array = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False, *, device: object = None, stream: object = None,
    **run: Unpack[Interpreted],
) -> Array:  # fmt: skip
    """Return :func:`attention` by the arguments of ``torch.nn.functional.scaled_dot_product_attention``.

    Args:
        query, key, value: (B, H, S, D), or (B, S, D) for one head.
        attn_mask: bool, True for visible keys, or added to the scores; not with ``is_causal``.
        dropout_p: as in :func:`attention`.
        is_causal: query i sees keys 0 to i.
        scale: default: ``1 / sqrt(D)``.
        enable_gqa: key and value may have fewer heads than query.
        device, stream, run: as in :func:`attention`.
    """
    call = "scaled_dot_product_attention"
    if run:
        check_keywords(call, scaled_dot_product_attention, run)
    if attn_mask is not None and is_causal:
        raise UnsupportedError(f"{call}: attn_mask cannot be combined with is_causal=True; pass one of them")
    rank = len(query.shape)
    if rank == 3:
        query, key, value = query[:, None], key[:, None], value[:, None]
        attn_mask = attn_mask[:, None] if attn_mask is not None and len(attn_mask.shape) == 3 else attn_mask
    elif rank == 4 and not enable_gqa and query.shape[1] != key.shape[1]:
        raise ShapeError(
            f"{call}: query has {query.shape[1]} heads and key has {key.shape[1]}; pass equal numbers, or "
            "enable_gqa=True"
        )
    try:
        found = attention(
            query,
            key,
            value,
            causal=is_causal,
            scale=scale,
            mask=attn_mask,
            dropout_p=dropout_p,
            device=device,
            stream=stream,
            **run,
        )
    except OpError as e:
        raise renamed(e, call, CALL, arguments=SDPA_ARGUMENTS) from None
    return found[:, 0] if rank == 3 else found


# ------------------------------------------------------------------------------------------------------------ gradients


_GRADIENTS = KnownCalls(tf32=False)
"""Cached calls."""


def attention_backward(
    dout: Array, q: Array, k: Array, v: Array, out: Array, lse: Array, dlse: Array = None, *,
    causal: bool | str = False, scale: float | None = None, window: Window | None = None,
    softcap: float = 0.0, alibi_slopes: Array = None, mask: Array = None, dropout_p: float = 0.0,
    rng_state: Array = None, layout: str = "bhsd", cu_seqlens_q: Array = None, cu_seqlens_k: Array = None,
    max_seqlen_q: int | None = None, max_seqlen_k: int | None = None, deterministic: bool | None = None,
    kernel: BackwardConfig | str | None = None, device: object = None, stream: object = None,
    **run: Unpack[Interpreted],
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return the gradients of q, k and v: ``dq``, ``dk`` and ``dv``, like these arrays.

    torch calls need not use this function: results of :func:`cute_dialect.op.attention` have gradients.

    Args:
        dout: gradient of the result.
        out, lse: results of :func:`cute_dialect.op.attention` with ``lse=True``.
        dlse: gradient of ``lse``, f32; None for zero.
        max_seqlen_k: keys of the longest packed sequence, or more; default: all keys, which is slower.  Smaller
            numbers are refused as in :func:`attention`.
        deterministic: add the parts of ``dq`` in a fixed order; None follows
            ``torch.are_deterministic_algorithms_enabled()``.
        kernel: a name as reported by :func:`cute_dialect.op.explain`, or a ``BackwardConfig``.
        q, k, v, causal, scale, window, softcap, alibi_slopes, mask, dropout_p, rng_state, layout: as in the call.
        cu_seqlens_q, cu_seqlens_k, max_seqlen_q: as in the call.  Calls with sinks need no argument, because ``lse``
            includes them.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Raises subclasses of :class:`cute_dialect.op.OpError` before anything is compiled or written.
    """
    if run:
        check_keywords(BACKWARD_CALL, attention_backward, run)
    torch = sys.modules.get("torch")
    if deterministic is not None:
        check_flag(BACKWARD_CALL, "deterministic", deterministic)
    else:
        deterministic = torch is not None and torch.are_deterministic_algorithms_enabled()
    bounds: object = tuple(window) if isinstance(window, list) else window
    rng_state = rng_state if dropout_of(BACKWARD_CALL, dropout_p) else None
    how = (causal, scale, bounds, softcap, dropout_p, layout, max_seqlen_q, max_seqlen_k, deterministic, kernel)
    offsets = () if cu_seqlens_q is None or cu_seqlens_k is None else (cu_seqlens_q, cu_seqlens_k)
    given = (dlse, alibi_slopes, mask, rng_state)
    how += tuple([x is None for x in given])
    tensors = (dout, q, k, v, out, lse, *[x for x in given if x is not None], *offsets)

    def compute() -> tuple[Array, Array, Array]:
        arrays = {"q": q, "k": k, "v": v, "out": out, "dout": dout, "lse": lse, "dlse": dlse}
        arrays |= {"cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k}
        arrays |= {"alibi_slopes": alibi_slopes, "mask": mask, "rng_state": rng_state}
        one = RowCall(BACKWARD_CALL, arrays, device, BACKWARD_OTHERS, ("bf16", "f16"), stream=stream, run=run)
        form = backward_form(one.views, causal, scale, bounds, layout, max_seqlen_q, softcap, dropout_p)
        problem = AttentionBackwardProblem(form, dlse is not None, bool(deterministic), max_seqlen_k)
        return computed_gradients(one, choose_backward(problem, kernel))

    usual = device is None and stream is None and not run
    return _GRADIENTS.call((how, len(offsets)), tensors, compute) if usual else compute()


# --------------------------------------------------------------------------------------------------------------- merges


_MERGE = "merge_attention"
_MOST = 256
"""Largest head size."""
_MERGES = KnownCalls(tf32=False)
"""Cached calls."""


def merge_attention(
    outs: Array, lses: Array, *, device: object = None, stream: object = None, **run: Unpack[Interpreted]
) -> Array:
    """Return the attention over all keys, and its ``lse``, from results over P disjoint slices of the keys.

    ``lse = log(sum over p of e^lses[p])`` and ``out = sum over p of e^(lses[p] - lse) outs[p]``, added in rising order
    of p.  A slice without keys has an ``lse`` of minus infinity; its result must be finite.

    Args:
        outs: (P, …, D), f32, f16 or bf16; D is a multiple of 8 up to 256.
        lses: (P, …), f32, with the same leading extents.
        device, stream, run: as in :func:`cute_dialect.op.mm`.
    """
    if run:
        check_keywords(_MERGE, merge_attention, run)
    usual = device is None and stream is None and not run and not _MERGES.is_traced()
    if usual:
        done = _MERGES.again((), outs, lses)
        if done is not None:
            return done
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(outs, torch.Tensor):
        learns = torch.is_grad_enabled() and (outs.requires_grad or lses.requires_grad)
        if learns or torch.compiler.is_compiling():
            from cute_dialect.op.torch.dispatch import CUTE  # late: torch

            def compute() -> object:
                return call_operator(
                    _MERGE, lambda: CUTE.merge_attention(outs, lses), outs, device, stream, run, "outs"
                )

            return _MERGES.differentiable((), (outs, lses), compute) if usual and learns else compute()
    return merged(outs, lses, device, stream, run)


def merged(
    outs: Array, lses: Array, device: object = None, stream: object = None, run: Interpreted | None = None
) -> Array:
    """Compute :func:`merge_attention` without gradients."""
    if device is None and stream is None and not run:
        return _MERGES.call((), (outs, lses), lambda: _merged(outs, lses, None, None, None))
    return _merged(outs, lses, device, stream, run)


def _merged(outs: Array, lses: Array, device: object, stream: object, run: Interpreted | None) -> Array:
    """Check the arguments of :func:`merged`, and launch its kernel."""
    one = RowCall(
        _MERGE, {"outs": outs, "lses": lses}, device, ("lses",), ("f32", "f16", "bf16"), stream=stream, run=run
    )
    shape, logs = one.x.shape, one.views["lses"]
    if len(shape) < 2 or logs.shape != shape[:-1]:
        raise ShapeError(
            f"{_MERGE}: outs has shape {shape} and lses {logs.shape}; pass arrays of shapes (P, …, D) and (P, …)"
        )
    if logs.dtype != "f32":
        raise DtypeError(f"{_MERGE}: lses has dtype {logs.dtype}; pass an array of f32")
    parts, size, rows = shape[0], shape[-1], prod(shape[1:-1])
    if size % 8 or not 8 <= size <= _MOST:
        raise UnsupportedError(f"{_MERGE}: head size {size} is not supported; use a multiple of 8 up to {_MOST}")
    with one.on():
        out, lse = one.result(shape[1:]), one.result(shape[1:-1], "f32")
        if parts == 0:
            out[...], lse[...] = 0, -math.inf
        elif rows:
            c = CombineConfig(one.element, 128 if size <= 128 else 256, True, parts >= 8, one.element)
            result, of_lse = one.numbers(out), one.numbers(lse)
            matrix, of_parts = one.flat("outs"), one.flat("lses")
            if matrix.pointer % 16:
                matrix = one.contiguous(one.views["outs"])
            one.launch(
                RowKernel(c.name, combine_text, (c,)),
                matrix._replace(shape=(size, rows, parts), strides=(1, size, rows * size)),
                of_parts._replace(shape=(rows, parts), strides=(1, rows)),
                result._replace(shape=(rows, size, 1, 1), strides=(size, 1, 8, 8)),
                of_lse._replace(shape=(rows, 1, 1), strides=(1, 1, 1)),
            )
    return out, lse


_IN_PLACE = "merge_attention_"
_MERGES_IN_PLACE = KnownCalls(tf32=False)
"""Cached calls."""


def merge_attention_(
    out: Array, lse: Array, other: Array, other_lse: Array, *, device: object = None, stream: object = None,
    **run: Unpack[Interpreted],
) -> Array:  # fmt: skip
    """Merge another result over disjoint keys into ``out`` and ``lse``, in place, and return the two.

    Args:
        out, other: (…, D), f32, f16 or bf16; D is a multiple of 8 up to 256.  ``out`` is contiguous.
        lse, other_lse: (…), f32, as in :func:`merge_attention`.  ``lse`` is contiguous.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Raises UnsupportedError for tensors that need gradients.
    """
    if run:
        check_keywords(_IN_PLACE, merge_attention_, run)
    tensors = (out, lse, other, other_lse)
    if needs_gradients(*tensors):
        raise UnsupportedError(f"{_IN_PLACE}: gradients are not supported; use merge_attention, or torch.no_grad()")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(out, torch.Tensor) and torch.compiler.is_compiling():
        from cute_dialect.op.torch.dispatch import CUTE  # late: torch

        def traced() -> object:
            CUTE.merge_attention_(*tensors)
            return out, lse

        return call_operator(_IN_PLACE, traced, out, device, stream, run, "out")

    def compute() -> object:
        return _merged_in_place(tensors, device, stream, run)

    if device is not None or stream is not None or run:
        return compute()
    return _MERGES_IN_PLACE.call((), tensors, compute)


def _merged_in_place(tensors: tuple[Array, ...], device: object, stream: object, run: Interpreted) -> Array:
    """Check the arguments of :func:`merge_attention_`, and launch its kernel."""
    names: tuple[str, ...] = ("out", "lse", "other", "other_lse")
    arrays: dict[str, Array] = dict(zip(names, tensors))
    one = RowCall(_IN_PLACE, arrays, device, ("lse", "other_lse"), ("f32", "f16", "bf16"), stream=stream, run=run)
    shape = one.x.shape
    for name, wanted in (("lse", shape[:-1]), ("other", shape), ("other_lse", shape[:-1])):
        if not shape or one.views[name].shape != wanted:
            raise ShapeError(
                f"{_IN_PLACE}: out has shape {shape} and {name} {one.views[name].shape}; pass out and other (…, D), "
                "and lse and other_lse (…)"
            )
        if wanted != shape and one.views[name].dtype != "f32":
            raise DtypeError(f"{_IN_PLACE}: {name} has dtype {one.views[name].dtype}; pass an array of f32")
    size, rows = shape[-1], prod(shape[:-1])
    if size % 8 or not 8 <= size <= _MOST:
        raise UnsupportedError(f"{_IN_PLACE}: head size {size} is not supported; use a multiple of 8 up to {_MOST}")
    for name in ("out", "lse"):
        view = one.views[name]
        if not is_contiguous(view) or (name == "out" and view.pointer % 16):
            raise LayoutError(f"{_IN_PLACE}: {name} is not a contiguous array at a multiple of 16 bytes; copy it first")
        if any(overlap(view, one.views[key]) for key in arrays if key != name):
            raise LayoutError(f"{_IN_PLACE}: {name} shares memory with another array; pass separate arrays")
    with one.on():
        if rows:
            c = CombineConfig(one.element, 128 if size <= 128 else 256)
            other = one.flat("other")
            if other.pointer % 16:
                other = one.numbers(one.native(one.contiguous(one.views["other"])))
            out, other = (x._replace(shape=(rows, size), strides=(size, 1)) for x in (one.flat("out"), other))
            kernel = RowKernel(f"attention-merge-{c.element}-{c.head}", merge_text, (c,), "launch_pair")
            one.launch(kernel, out, one.flat("lse"), other, one.flat("other_lse"))
    return tensors[:2]
