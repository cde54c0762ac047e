"""Checked arguments of a call of multi-head latent attention (MLA)."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cute_dialect.kernels.attention.latent_config import LATENT, ROPE
from cute_dialect.op.errors import LayoutError, ShapeError, UnsupportedError
from cute_dialect.op.keywords import check_flag
from cute_dialect.op.problems.attention import (
    SPELLINGS,
    Form,
    check_lengths,
    check_pages,
    check_table,
    is_number,
    is_readable,
    numbers_of,
)
from cute_dialect.runtime.arrays import ArrayView

__all__ = ["LATENT_SPELLINGS", "MLA", "cache_view", "latent_form"]

MLA = "mla_decode"
"""Name of the function in errors."""

LATENT_SPELLINGS = {
    **SPELLINGS,
    "k_cache": "use cache",
    "kv_cache": "use cache",
    "blocked_k": "use cache",
    "k": "use cache",
    "v": "omit it: values are the first columns of the cache",
    "window": "omit it: windows are not supported",
    "head_dim_v": f"omit it: values have {LATENT} columns",
    "tile_scheduler_metadata": "omit it; see split_keys",
    "layout": "omit it: q is (B, S, H, D)",
    "score_mod": "omit it: functions of scores are not supported",
    "mask_mod": "omit it: functions of scores are not supported",
    "block_mask": "omit it: block masks are not supported",
}
"""Arguments of other functions and libraries -> what :func:`cute_dialect.op.mla_decode` has instead."""

_ROW = LATENT + ROPE


def cache_view(view: ArrayView) -> ArrayView:
    """Return a cache, (pages, page size, columns) or (pages, page size, 1, columns), with one head.

    Raises ShapeError.
    """
    if len(view.shape) == 3:
        (pages, page, columns), (step, row, one) = view.shape, view.strides
        return view._replace(shape=(pages, page, 1, columns), strides=(step, row, 8, one))
    if len(view.shape) != 4 or view.shape[2] != 1:
        raise ShapeError(
            f"{MLA}: cache has shape {view.shape}; pass an array of shape (pages, page size, {_ROW}) or (pages, page "
            f"size, 1, {_ROW}), or (B, keys, {_ROW}) without page_table"
        )
    return view


def latent_form(views: Mapping[str, ArrayView], causal: object, scale: object, lse: bool, longest: object) -> Form:
    """Return the checked call.  Raises ShapeError, DtypeError, LayoutError, UnsupportedError.

    Args:
        views: ``q``, ``cache``, and ``page_table`` and ``seqused_k`` if they are given.
        causal, scale, lse: arguments of the function.
        longest: keys of the longest sequence, or None.
    """
    check_flag(MLA, "lse", lse)
    q, cache, table = views["q"], cache_view(views["cache"]), views.get("page_table")
    if len(q.shape) != 4 or q.shape[-1] != _ROW:
        raise ShapeError(f"{MLA}: q has shape {q.shape}; pass an array of shape (B, S, H, {_ROW})")
    (batch, queries, heads, _), (pages, keys, _, columns) = q.shape, cache.shape
    if columns != _ROW:
        raise ShapeError(f"{MLA}: cache has rows of {columns} columns; pass rows of {_ROW}")
    page = 0
    if table is not None:
        page = check_table(MLA, table, batch, keys)
        keys *= table.shape[1]
    elif pages != batch:
        raise ShapeError(
            f"{MLA}: cache has {pages} sequences, but q has {batch}; pass equal numbers, or page_table for a cache of "
            "pages"
        )
    if not is_readable(cache) and 0 not in cache.shape:
        raise LayoutError(
            f"{MLA}: cache has address {cache.pointer:#x} and strides {cache.strides}; pass contiguous rows at "
            "multiples of 16 bytes"
        )
    used = views.get("seqused_k")
    if used is not None:
        check_lengths(MLA, "seqused_k", used, batch, keys)
    if table is not None and table.device < 0:
        ends = [table.shape[1]] * batch if used is None else [-(-length // page) for length in numbers_of(used)]
        check_pages(MLA, table, pages, [range(end) for end in ends])
    if not isinstance(causal, bool | str) or causal not in (False, True, "bottom_right"):
        raise UnsupportedError(f"{MLA}: causal is {causal!r}; use True or False")
    if scale is None:
        scale = 1 / math.sqrt(_ROW)
    if not is_number(scale) or not 0 < scale < math.inf:
        raise UnsupportedError(f"{MLA}: scale is {scale!r}; pass a finite int or float above 0")
    if longest is not None and (not isinstance(longest, int) or isinstance(longest, bool) or longest < 0):
        raise ShapeError(f"{MLA}: max_seqlen_k is {longest!r}; pass an integer of 0 or more")
    return Form(
        q.dtype,
        "bshd",
        False,
        batch,
        heads,
        heads,
        queries,
        keys,
        _ROW,
        float(scale),
        "right" if causal and queries > 1 else "full",
        True,
        0,
        0,
        lse,
        None,
        LATENT,
        used=used is not None,
        page=page,
    )
