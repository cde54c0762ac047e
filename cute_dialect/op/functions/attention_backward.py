"""Gradients of attention by the library's kernels, ``op.attention_backward``."""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cute_dialect.kernels.attention.backward_config import BackwardConfig
from cute_dialect.op.execute.array_call import RowCall
from cute_dialect.op.execute.attention_backward import (
    BACKWARD_CALL,
    BACKWARD_OTHERS,
    AttentionBackwardProblem,
    backward_form,
    choose_backward,
    computed_gradients,
)
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.keywords import check_keywords

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.op.signature_types import Array, Interpreted

__all__ = ["attention_backward"]

_KNOWN = KnownCalls(tf32=False)
"""Cached calls."""


def attention_backward(
    dout: Array, q: Array, k: Array, v: Array, out: Array, lse: Array, dlse: Array = None, *,
    causal: bool | str = False, scale: float | None = None, window: tuple[int | None, int | None] | None = None,
    layout: str = "bhsd", cu_seqlens_q: Array = None, cu_seqlens_k: Array = None, max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None, deterministic: bool | None = None, kernel: BackwardConfig | str | None = None,
    device: object = None, stream: object = None, **run: Unpack[Interpreted],
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return the gradients of q, k and v: ``dq``, ``dk`` and ``dv``, like these arrays.

    torch calls need not use this function: results of :func:`cute_dialect.op.attention` have gradients.

    Args:
        dout: gradient of the result.
        out, lse: results of :func:`cute_dialect.op.attention` with ``lse=True``.
        dlse: gradient of ``lse``, f32; None for zero.
        max_seqlen_k: keys of the longest packed sequence; default: all keys.  It only affects the speed.
        deterministic: add the parts of ``dq`` in a fixed order; None follows
            ``torch.are_deterministic_algorithms_enabled()``.
        kernel: a name as reported by :func:`cute_dialect.op.explain`, or a ``BackwardConfig``.
        q, k, v, causal, scale, window, layout, cu_seqlens_q, cu_seqlens_k, max_seqlen_q: as in the call.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Raises UnsupportedError for calls that the kernels do not support: heads of more than 128 elements, heads of v of
    another size, and functions of scores.
    """
    if run:
        check_keywords(BACKWARD_CALL, attention_backward, run)
    torch = sys.modules.get("torch")
    if deterministic is None:
        deterministic = torch is not None and torch.are_deterministic_algorithms_enabled()
    bounds: object = tuple(window) if isinstance(window, list) else window
    how = (causal, scale, bounds, layout, max_seqlen_q, max_seqlen_k, deterministic, kernel, dlse is None)
    offsets = () if cu_seqlens_q is None or cu_seqlens_k is None else (cu_seqlens_q, cu_seqlens_k)
    tensors = (dout, q, k, v, out, lse, *(() if dlse is None else (dlse,)), *offsets)
    usual = device is None and stream is None and not run
    if usual:
        done = _KNOWN.again((how, len(offsets)), *tensors)
        if done is not None:
            return done
    arrays = {"q": q, "k": k, "v": v, "out": out, "dout": dout, "lse": lse, "dlse": dlse}
    arrays |= {"cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k}
    one = RowCall(BACKWARD_CALL, arrays, device, BACKWARD_OTHERS, ("bf16", "f16"), stream=stream, run=run)
    form = backward_form(one.views, causal, scale, bounds, layout, max_seqlen_q)
    problem = AttentionBackwardProblem(form, dlse is not None, bool(deterministic), max_seqlen_k)
    results = computed_gradients(one, choose_backward(problem, kernel))
    if usual and not form.packed:
        one.remember(_KNOWN, (how, len(offsets)), tensors, results)
    return results
