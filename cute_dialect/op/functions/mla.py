"""Multi-head latent attention (MLA) on a cache, ``op.mla_decode``."""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.attention.latent_config import LatentConfig
from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.arrays.library import call_operator
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.execute.array_call import RowCall, check_elements
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.execute.mla import choose_latent, computed_latent
from cute_dialect.op.execute.recording import needs_gradients
from cute_dialect.op.keywords import check_flag, check_keywords
from cute_dialect.op.problems.mla import LATENT_SPELLINGS, MLA, latent_form
from cute_dialect.op.select.backends import WGMMA

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.op.signature_types import Array, Interpreted

_KNOWN = KnownCalls(tf32=False)
"""Cached calls."""
_ELEMENTS = ("bf16", "f16")
_TABLES = ("page_table", "seqused_k")


def mla_decode(
    q: Array,
    cache: Array,
    *,
    page_table: Array = None,
    seqused_k: Array = None,
    max_seqlen_k: int | None = None,
    causal: bool = False,
    scale: float | None = None,
    lse: bool = False,
    out: Array = None,
    kernel: LatentConfig | str | None = None,
    split_keys: int | None = None,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> Array:
    """Return multi-head latent attention of DeepSeek models, (B, S, H, 512), on a cache of latent vectors.

    All heads share the cache: its rows are their keys, and the first 512 columns of the rows are their values.  A row
    of ``q`` that sees no key is 0, with an ``lse`` of minus infinity.

    Args:
        q: (B, S, H, 576), f16 or bf16: queries multiplied by the up-projection of the keys (512), and their rotary part
            (64).
        cache: (pages, page size, 576) or (pages, page size, 1, 576); without ``page_table`` (B, S', 576).  It is not
            copied: rows must be contiguous and begin at multiples of 16 bytes.
        page_table: pages of each sequence, i32 (B, P): key j is row ``j % page size`` of page
            ``page_table[b, j // page size]``.  Pages of 8, 16, 32 or a multiple of 64 keys are loaded by TMA, others by
            ``cp.async``.  Entries past the last key are not read.
        seqused_k: number of keys of each sequence, i32 (B,).  Rows of the cache past it may have any bits.
        max_seqlen_k: keys of the longest sequence, to choose ``split_keys``; default: the size of the cache.
        causal: the last of the S queries sees all keys, and each other query one key less than the next.
        scale: above 0; default: ``1 / sqrt(576)``.  Models use ``1 / sqrt(192)``, times a factor of their rotary
            embedding.
        lse: return a pair, with the logarithm of the sum of the exponentials of each row, (B, H, S) in f32.
        out: array for the result; default: a new array.
        kernel: a name as reported by :func:`cute_dialect.op.explain`, or a ``LatentConfig``.
        split_keys: number of slices of the keys, which blocks compute in parallel and a second kernel combines;
            default: the fastest one by a model.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Raises subclasses of :class:`cute_dialect.op.OpError` before anything is compiled or written.
    """
    if run:
        check_keywords(MLA, mla_decode, run, spellings=LATENT_SPELLINGS)
    numbers = causal, scale, lse, max_seqlen_k, kernel, split_keys
    torch = sys.modules.get("torch")
    if needs_gradients(q, cache):
        raise UnsupportedError(f"{MLA}: results have no gradients; call under torch.no_grad(), or detach q and cache")
    if torch is not None and torch.compiler.is_compiling():
        for name, given in (("out", out), ("kernel", kernel), ("split_keys", split_keys), *run.items()):
            if given is not None:
                raise UnsupportedError(f"{MLA}: {name} is not supported with torch.compile; omit it")
        check_flag(MLA, "lse", lse)
        # A compiled graph reports other errors when it runs, where flash_mla_with_kvcache cannot rename them.
        check_elements(MLA, {n: element_name(x.dtype) for n, x in (("q", q), ("cache", cache))}, _ELEMENTS)
        from cute_dialect.op.torch.dispatch import CUTE  # late: torch

        def compute() -> Any:
            found = CUTE.mla_decode(q, cache, page_table, seqused_k, max_seqlen_k, bool(causal), scale, lse)
            return found if lse else found[0]

        return call_operator(MLA, compute, q, device, stream, name="q")
    return decoded(q, cache, page_table, seqused_k, numbers, out, device, stream, run)


def decoded(
    q: Array,
    cache: Array,
    page_table: Array,
    seqused_k: Array,
    numbers: tuple[Any, ...],
    out: Array = None,
    device: object = None,
    stream: object = None,
    run: Interpreted | None = None,
) -> Array:
    """Compute :func:`mla_decode`.

    Args:
        numbers: causal, scale, lse, max_seqlen_k, kernel and split_keys.
    """

    def compute() -> object:
        causal, scale, lse, longest, kernel, split_keys = numbers
        arrays = {"q": q, "cache": cache, "page_table": page_table, "seqused_k": seqused_k, "out": out}
        one = RowCall(MLA, arrays, device, _TABLES, _ELEMENTS, stream=stream, run=run)
        form = latent_form(one.views, causal, scale, lse, longest)
        one.check_backend(WGMMA)
        way = choose_latent(form, kernel, split_keys, longest)
        with one.on():
            results = computed_latent(one, way)
        return tuple(results[:2]) if lse else results[0]

    if device is not None or stream is not None or run:
        return compute()
    tensors = tuple([x for x in (q, cache, page_table, seqused_k, out) if x is not None])
    return _KNOWN.call((*numbers, page_table is None, seqused_k is None, out is None), tensors, compute)
