"""Checked arguments of an attention call."""

# The type of a window is unknown until it is checked.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, cast

from cute_dialect.kernels.attention.config import BYTES, HEADS, OUTPUTS
from cute_dialect.op.arrays.dtypes import checked_element
from cute_dialect.op.errors import DtypeError, LayoutError, ShapeError, UnsupportedError
from cute_dialect.op.keywords import check_flag
from cute_dialect.runtime.arrays import ArrayView, numpy_dtype

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.kernels.attention.score_graph import ScoreGraph
    from cute_dialect.op.signature_types import Array

__all__ = [
    "CALL", "DESCALES", "LAYOUTS", "SPELLINGS", "WINDOW_AT_END", "Form", "Numbers", "check_layout",
    "check_lengths", "check_pages", "check_rising", "check_table", "dropout_of", "element_of", "element_unit",
    "expanded_strides", "factor_of", "form_of", "is_number", "is_readable", "numbers_of", "visible_keys",
]  # fmt: skip

CALL = "attention"
"""Name of the function in errors."""

LAYOUTS = {"bhsd": (0, 1, 2, 3), "bshd": (0, 2, 1, 3)}
"""Order of an array's dimensions -> indices of batch, head, row and element.

Packed sequences are (rows, heads, elements).
"""

_CAUSAL = {False: "", True: "top_left", "": "", "top_left": "top_left", "bottom_right": "bottom_right"}
"""Values of ``causal`` -> alignment of queries and keys; empty without a causal mask."""
WINDOW_AT_END = "window_at_end"
"""Alignment of a window without a causal mask that aligns the last query with the last key."""

DESCALES = ("q_descale", "k_descale", "v_descale")
"""Arrays of the factors of 8-bit operands."""

SPELLINGS = {
    "attn_mask": "use mask", "attn_bias": "use mask", "bias": "use mask", "is_causal": "use causal",
    "softmax_scale": "use scale", "sm_scale": "use scale", "window_size": "use window",
    "window_left": "use window=(left, None)", "sliding_window": "use window=(n, 0)",
    "logits_soft_cap": "use softcap", "soft_cap": "use softcap", "learnable_sink": "use sinks", "s_aux": "use sinks",
    "sink": "use sinks", "return_lse": "use lse=True", "return_softmax_lse": "use lse=True",
    "return_attn_probs": "use lse=True; probabilities are not stored", "num_splits": "use split_keys",
    "cu_seq_q": "use cu_seqlens_q", "cu_seq_k": "use cu_seqlens_k", "qo_indptr": "use cu_seqlens_q",
    "kv_indptr": "use cu_seqlens_k", "max_q": "use max_seqlen_q", "max_k": "use max_seqlen_k",
    "kv_layout": "use layout", "qkv_format": "use layout", "enable_gqa": "omit it: k and v may have fewer heads",
    "pack_gqa": "omit it: heads that share keys are packed automatically",
    "block_table": "use page_table", "cache_seqlens": "use seqused_k", "kv_indices": "use page_table",
    "kv_lens": "use seqused_k", "seq_lens": "use seqused_k", "cache_leftpad": "use leftpad_k",
    "dropout": "use dropout_p", "generator": "use rng_state", "query": "use q", "key": "use k", "value": "use v",
    "num_kv_groups": "omit it: k and v may have fewer heads", "descale_q": "use q_descale",
    "descale_k": "use k_descale", "descale_v": "use v_descale", "q_scale": "use q_descale",
    "k_scale": "use k_descale", "v_scale": "use v_descale", "out_dtype": "use dtype",
    "score_mod": "use op.flex_attention", "mask_mod": "use op.flex_attention with a block mask",
    "block_mask": "use op.flex_attention",
}  # fmt: skip
"""Arguments of torch, FlashAttention and FlashInfer -> what :func:`cute_dialect.op.attention` has instead."""

_UNBOUNDED = 1 << 30


class Form(NamedTuple):
    """An attention call with checked arguments."""

    element: str
    layout: str
    packed: bool
    batch: int
    heads: int
    sharing: int  # heads of q per head of k
    queries: int  # rows of a sequence of q; of all sequences if they are packed
    keys: int  # rows of a sequence of k; of all sequences if they are packed
    size: int  # elements per head
    scale: float
    mask: str  # sides on which keys may be hidden: full (none), left, right or both
    from_end: bool  # the last query is aligned with the last key, not the first with the first
    left: int
    right: int
    lse: bool
    longest: int | None  # rows of the longest packed sequence of q, if given
    size_v: int = 0  # elements per head of v and of the result; 0: those of q and k
    softcap: float = 0.0  # 0 for none
    bias: str = ""  # element type of the added bias; "i1" for a mask of visible keys, "" for none
    alibi: bool = False  # scores fall with the distance of query and key
    sinks: str = ""  # element type of the sinks, "" for none
    used: bool = False  # the number of keys of each sequence is an array
    grown: int = 0  # keys of each sequence in addition to those of that array
    used_q: bool = False  # the number of queries of each sequence is an array
    padded: bool = False  # the number of keys to skip at the beginning of each sequence is an array
    chunk: int = 0  # a query sees the keys of its own chunk of this many; 0: no chunks
    each: int = 0  # queries of each sequence of packed groups of sequences that share keys; 0: no groups
    page: int = 0  # keys of a page; 0: keys are contiguous.  ``keys`` then counts those of all pages of a sequence
    functions: ScoreGraph | None = None  # functions of scores and of visible keys
    blocks: tuple[int, int] = (0, 0)  # queries and keys of the blocks of a block mask
    output: str = ""  # element type of the result of 8-bit operands, "" for other operands
    descale: str = ""  # operands, of "qkv", that have factors
    dropout: float = 0.0  # probability with which an attention probability is set to 0

    @property
    def result(self) -> str:
        """Element type of the result."""
        return self.output or self.element

    @property
    def values(self) -> int:
        """Elements per head of v and of the result."""
        return self.size_v or self.size

    @property
    def depends_on_head(self) -> bool:
        """Return True if heads that share keys have different functions of scores or probabilities."""
        of_scores = self.alibi or bool(self.bias) or bool(self.sinks) or self.functions is not None
        return of_scores or self.blocks[1] > 0 or self.dropout > 0

    @property
    def has_lengths(self) -> bool:
        """Return True if arrays have the numbers or the places of the keys or queries of each sequence."""
        return self.used or self.used_q or self.padded or self.page > 0

    @property
    def width(self) -> int:
        """Largest number of keys of a query that are bounded on both sides."""
        return min(self.left + self.right, self.chunk or self.left + self.right)

    @property
    def rows(self) -> int:
        """Number of queries of the longest sequence."""
        return self.queries if self.longest is None else min(self.longest, self.queries)

    @property
    def logs(self) -> tuple[int, ...]:
        """Shape of ``lse``."""
        return (self.heads, self.queries) if self.packed else (self.batch, self.heads, self.queries)


class Numbers(NamedTuple):
    """Arguments of a call that are numbers, not checked."""

    softcap: object = 0.0
    seqused_k_offset: object = 0
    attention_chunk: object = 0
    dtype: object = None
    dropout_p: object = 0.0


def form_of(
    views: Mapping[str, ArrayView], causal: object, scale: object, window: Any, lse: bool, layout: str,
    longest: object, element: str, numbers: Numbers,
) -> Form:  # fmt: skip
    """Return the checked call.  Raises ShapeError, DtypeError, LayoutError, UnsupportedError."""
    check_flag(CALL, "lse", lse)
    begins = [key for key in ("cu_seqlens_q", "cu_seqlens_k") if key in views]
    table = views.get("page_table")
    if table is not None and "cu_seqlens_k" in views:
        raise UnsupportedError(f"{CALL}: cu_seqlens_k cannot be combined with page_table; pass seqused_k")
    if len(begins) == 1 and table is None:
        raise ShapeError(f"{CALL}: {begins[0]} is given alone; pass both cu_seqlens_q and cu_seqlens_k, or neither")
    packed = bool(begins)
    if not packed and longest is not None:
        raise UnsupportedError(f"{CALL}: max_seqlen_q is {longest}, but there is no cu_seqlens_q; omit max_seqlen_q")
    check_layout(CALL, layout)
    four = "(B, H, S, D)" if layout == "bhsd" else "(B, S, H, D)"
    for key in ("q", "k", "v"):
        is_paged = table is not None and key != "q"
        rank, names = (3, "(rows, heads, elements)") if packed and not is_paged else (4, four)
        if is_paged:
            names = names.replace("B", "pages").replace("S", "page size")
        if len(views[key].shape) != rank:
            raise ShapeError(f"{CALL}: {key} has shape {views[key].shape}; pass an array of rank {rank}, {names}")
    batch, heads, queries, size = _extents(views["q"].shape, layout)
    batch_k, heads_k, keys, size_k = _extents(views["k"].shape, layout)
    page = pages = 0
    if table is not None:
        sequences = views["cu_seqlens_q"].shape[0] - 1 if packed else batch
        pages, page = batch_k, check_table(CALL, table, sequences, keys)
        batch_k, keys = batch, keys * table.shape[-1]
    if views["v"].shape[:-1] != views["k"].shape[:-1]:
        raise ShapeError(
            f"{CALL}: v has shape {views['v'].shape}, but k has shape {views['k'].shape}; only the last extents, the "
            "head sizes, may differ"
        )
    if batch_k != batch or size_k != size:
        raise ShapeError(
            f"{CALL}: k has shape {views['k'].shape}, but q has {batch} sequences and head size {size}; "
            "pass k with the same values"
        )
    if heads_k == 0 or heads % heads_k:
        raise ShapeError(f"{CALL}: q has {heads} heads and k has {heads_k}; pass q with a multiple of the heads of k")
    size_v = views["v"].shape[-1]
    unit = element_unit(views["q"])
    for each in (size, size_v):
        if each % unit or not unit <= each <= HEADS[-1]:
            raise UnsupportedError(
                f"{CALL}: head size {each} is not supported for {element}; use a multiple of {unit} up to {HEADS[-1]}"
            )
    most = None
    if packed:
        batch, most = _check_begins(views, queries, keys, longest)
    softcap, grown, chunk, dtype, dropout = numbers
    grown, chunk = _count("seqused_k_offset", grown), _count("attention_chunk", chunk)
    used = views.get("seqused_k")
    if used is not None:
        check_lengths(CALL, "seqused_k", used, batch, keys, views.get("cu_seqlens_k"), grown)
    elif grown:
        raise UnsupportedError(f"{CALL}: seqused_k_offset is {grown}, but there is no seqused_k; omit seqused_k_offset")
    used_q, pad = views.get("seqused_q"), views.get("leftpad_k")
    if used_q is not None:
        check_lengths(CALL, "seqused_q", used_q, batch, queries, views.get("cu_seqlens_q"))
    if pad is not None:
        for name in ("page_table", "mask"):
            if name in views:
                raise UnsupportedError(f"{CALL}: leftpad_k cannot be combined with {name}; omit one of them")
        check_lengths(CALL, "leftpad_k", pad, batch, keys, views.get("cu_seqlens_k"))
    if scale is None:
        scale = 1 / math.sqrt(size)
    if not is_number(scale) or not math.isfinite(scale):
        raise UnsupportedError(f"{CALL}: scale is {scale!r}; pass a finite int or float")
    softcap = 0.0 if softcap is None else softcap
    if not is_number(softcap) or not 0 <= softcap < math.inf:
        raise UnsupportedError(f"{CALL}: softcap is {softcap!r}; pass a finite int or float above 0, or 0 for none")
    dropout = dropout_of(CALL, dropout)
    if dropout:
        _check_state(views, element)
    direction, left, right = visible_keys(causal, window)
    if chunk:
        left, right = (_UNBOUNDED if x is None else x for x in (left, right))
    is_known = table is not None and table.device < 0 and (used is None or used.device < 0)
    if table is not None and is_known and left is None:  # a window may leave the first pages unread
        lengths = [] if used is None else [length + grown for length in numbers_of(used)]
        ends = [table.shape[1]] * batch if used is None else [-(-length // page) for length in lengths]
        check_pages(CALL, table, pages, [range(end) for end in ends])
    varies = packed or used is not None or used_q is not None or pad is not None
    from_end = direction in ("bottom_right", WINDOW_AT_END) and (varies or queries != keys)
    if from_end and not packed and queries == 1 and not chunk:
        right = None  # The last query sees all keys.
    mask = {(False, False): "full", (False, True): "right", (True, False): "left", (True, True): "both"}[
        left is not None, right is not None
    ]
    form = Form(
        element, layout, packed, batch, heads, heads // heads_k, queries, keys, size, float(scale), mask, from_end,
        min(left or 0, _UNBOUNDED), min(right or 0, _UNBOUNDED), lse, most, size_v if size_v != size else 0,
        float(softcap), used=used is not None, grown=grown, used_q=used_q is not None, padded=pad is not None,
        chunk=chunk, page=page, output=_output_of(views, element, dtype), dropout=dropout,
    )  # fmt: skip
    form = form._replace(descale=_check_descales(views, form))
    return _with_score_arrays(form, views)


def _output_of(views: Mapping[str, ArrayView], element: str, dtype: object) -> str:
    """Return the element type of the result of 8-bit operands, or "" for other operands.  Raises DtypeError."""
    wanted, out = None if dtype is None else checked_element(dtype, f"{CALL}: dtype"), views.get("out")
    found = element
    if element in BYTES:
        found = wanted or (OUTPUTS[0] if out is None else out.dtype)
        if found not in OUTPUTS:
            raise DtypeError(f"{CALL}: the result has dtype {found}; use one of {', '.join(OUTPUTS)}")
    elif wanted not in (None, element):
        raise DtypeError(f"{CALL}: dtype is {wanted}, but q has dtype {element}; omit dtype, or pass 8-bit floats")
    if out is not None and out.dtype != found:
        raise DtypeError(f"{CALL}: out has dtype {out.dtype}; it must have {found}")
    return "" if found == element else found


def _check_descales(views: Mapping[str, ArrayView], form: Form) -> str:
    """Return the operands that have factors.  Raises ShapeError, DtypeError, UnsupportedError."""
    found, heads = "", form.heads // form.sharing
    for key in DESCALES:
        view = views.get(key)
        if view is None:
            continue
        if not form.output:
            raise UnsupportedError(
                f"{CALL}: {key} needs q, k and v of 8-bit floats, but q has dtype {form.element}; omit it"
            )
        if view.dtype != "f32":
            raise DtypeError(f"{CALL}: {key} has dtype {view.dtype}; pass an array of f32")
        strides = expanded_strides(view, (form.batch, heads))
        if strides is None:
            raise ShapeError(
                f"{CALL}: {key} has shape {view.shape}; pass one number, or an array of shape ({form.batch}, {heads}), "
                "sequences and heads of k"
            )
        if view.device < 0:
            for b in range(form.batch):
                for h in range(heads):
                    factor = _float_of(view, b * strides[0] + h * strides[1])
                    if not 0 < factor < math.inf:
                        raise UnsupportedError(f"{CALL}: {key} has an element {factor}; pass finite numbers above 0")
        found += key[0]
    return found


def factor_of(key: str, factor: Array) -> float | None:
    """Return a factor that is a number, or None if it is an array.  Raises UnsupportedError."""
    is_flag = isinstance(factor, bool)
    if not isinstance(factor, Real):
        return None
    if is_flag or not _RANGE[0] <= cast("float", factor) <= _RANGE[1]:
        raise UnsupportedError(f"{CALL}: {key} is {factor!r}; pass a number above 0 that is finite in f32, or an array")
    return float(factor)


_RANGE = 2.0**-149, (2 - 2**-23) * 2.0**127
"""The least and the largest f32 number above 0."""


def _float_of(view: ArrayView, offset: int) -> float:
    """Return an element of an f32 array in CPU memory."""
    return ctypes.c_float.from_address(view.pointer + 4 * offset).value


def dropout_of(call: str, p: object) -> float:
    """Return a checked dropout probability; None is 0."""
    p = 0.0 if p is None else p
    if not is_number(p) or not 0 <= p <= 1:
        raise UnsupportedError(f"{call}: dropout_p is {p!r}; pass a probability from 0 to 1")
    return float(p)


def _check_state(views: Mapping[str, ArrayView], element: str) -> None:
    """Check the seed and the offset of dropout.  Raises ShapeError, DtypeError, LayoutError, UnsupportedError."""
    state = views.get("rng_state")
    if "page_table" in views:
        raise UnsupportedError(f"{CALL}: dropout_p cannot be combined with page_table; pass dropout_p=0")
    if element in BYTES:
        raise UnsupportedError(
            f"{CALL}: dropout_p is not supported for q of {element}; pass dropout_p=0, or f16 or bf16"
        )
    if state is None:
        raise ShapeError(f"{CALL}: rng_state is None; pass that of the forward call, an i64 array of shape (2,)")
    if state.dtype not in ("i64", "ui64"):
        raise DtypeError(f"{CALL}: rng_state has dtype {state.dtype}; pass an i64 array")
    if state.shape != (2,):
        raise ShapeError(f"{CALL}: rng_state has shape {state.shape}; pass a seed and an offset, shape (2,)")
    if state.strides[0] != 1:
        raise LayoutError(f"{CALL}: rng_state has strides {state.strides}; pass a contiguous array")


def check_table(call: str, table: ArrayView, batch: int, page: int) -> int:
    """Return the checked page size.  Raises DtypeError, ShapeError, UnsupportedError."""
    if table.dtype != "i32":
        raise DtypeError(f"{call}: page_table has dtype {table.dtype}; pass an i32 array")
    if len(table.shape) != 2 or table.shape[0] != batch:
        raise ShapeError(f"{call}: page_table has shape {table.shape}; pass an array of shape ({batch}, pages)")
    if page < 1:
        raise ShapeError(f"{call}: k has pages of 0 keys; pass pages of 1 or more")
    return page


def check_pages(call: str, table: ArrayView, pages: int, used: Sequence[range], name: str = "page_table") -> None:
    """Raise ShapeError unless the entries of a page table in CPU memory are indices of pages.

    Args:
        pages: number of pages of the cache.
        used: columns of each sequence that are read.
        name: the argument.
    """
    for b, columns in enumerate(used):
        for i in columns:
            found = element_of(table, b, i)
            if not 0 <= found < pages:
                raise ShapeError(f"{call}: {name}[{b}, {i}] is {found}; pass pages from 0 to {pages - 1}")


def _count(name: str, x: object) -> int:
    """Return an argument that is an int of 0 or more, or None for 0.  Raises UnsupportedError."""
    found = 0 if x is None else x
    if type(found) is not int or not 0 <= found < _UNBOUNDED:
        raise UnsupportedError(f"{CALL}: {name} is {x!r}; pass an int of 0 or more")
    return found


def check_lengths(
    call: str, name: str, used: ArrayView, batch: int, rows: int, begins: ArrayView | None = None, grown: int = 0
) -> None:
    """Check a length of each sequence, its values in CPU memory too.  Raises DtypeError, ShapeError, LayoutError.

    Args:
        call, name: the function and the argument, for errors.
        rows: largest length.
        begins: offsets of packed sequences, or None.
        grown: rows of each sequence in addition to its length.
    """
    if used.dtype != "i32":
        raise DtypeError(f"{call}: {name} has dtype {used.dtype}; pass an i32 array")
    if used.shape != (batch,):
        raise ShapeError(f"{call}: {name} has shape {used.shape}; pass one length per sequence, ({batch},)")
    if used.strides[0] != 1 and batch > 1:
        raise LayoutError(f"{call}: {name} has strides {used.strides}; pass a contiguous array")
    if used.device < 0 and (begins is None or begins.device < 0):
        room = [rows] * batch if begins is None else [y - x for x, y in pairwise(numbers_of(begins))]
        for length, most in zip(numbers_of(used), room):
            if not 0 <= length <= most - grown:
                raise ShapeError(f"{call}: {name} has a length of {length}; pass lengths from 0 to {most - grown}")


def _with_score_arrays(form: Form, views: Mapping[str, ArrayView]) -> Form:
    """Add the sinks, the slopes of ALiBi and the mask.  Raises ShapeError, DtypeError, UnsupportedError."""
    sinks, slopes, mask = views.get("sinks"), views.get("alibi_slopes"), views.get("mask")
    if sinks is not None:
        if sinks.shape != (form.heads,):
            raise ShapeError(f"{CALL}: sinks has shape {sinks.shape}; pass one number per head, ({form.heads},)")
        if sinks.dtype not in ("f32", form.result):
            raise DtypeError(f"{CALL}: sinks has dtype {sinks.dtype}; pass an array of f32 or {form.result}")
        form = form._replace(sinks=sinks.dtype)
    if slopes is not None:
        wanted = (form.heads,), (form.batch, form.heads)
        if slopes.shape not in wanted:
            raise ShapeError(
                f"{CALL}: alibi_slopes has shape {slopes.shape}; pass an array of shape {wanted[0]} or {wanted[1]}"
            )
        if slopes.dtype != "f32":
            raise DtypeError(f"{CALL}: alibi_slopes has dtype {slopes.dtype}; pass an array of f32")
        form = form._replace(alibi=True)
    if mask is not None:
        if form.packed:
            raise UnsupportedError(f"{CALL}: mask is not supported with packed sequences; omit it")
        if mask.dtype not in ("i1", "f32", form.result):
            raise DtypeError(f"{CALL}: mask has dtype {mask.dtype}; pass an array of bool, f32 or {form.result}")
        wanted = (form.batch, form.heads, form.queries, form.keys)
        if expanded_strides(mask, wanted) is None:
            raise ShapeError(f"{CALL}: mask has shape {mask.shape}; pass an array that expands to {wanted}")
        form = form._replace(bias=mask.dtype)
    return form


def expanded_strides(view: ArrayView, shape: Sequence[int]) -> tuple[int, ...] | None:
    """Return the strides of an array expanded to a shape, or None if it does not expand to it."""
    missing = len(shape) - len(view.shape)
    if missing < 0:
        return None
    sizes, steps = (1,) * missing + view.shape, (0,) * missing + view.strides
    if any(size not in (1, wanted) for size, wanted in zip(sizes, shape)):
        return None
    return tuple([0 if size == 1 else step for size, step in zip(sizes, steps)])


def check_layout(call: str, layout: object) -> None:
    """Raise LayoutError unless a layout is known."""
    if not isinstance(layout, str) or layout not in LAYOUTS:
        raise LayoutError(f'{call}: layout is {layout!r}; use "bhsd" or "bshd"')


def is_number(x: object) -> TypeGuard[int | float]:
    """Return True for an int or a float, but not for a bool."""
    return isinstance(x, int | float) and not isinstance(x, bool)


def _extents(shape: Sequence[int], layout: str) -> tuple[int, int, int, int]:
    """Return the numbers of sequences, heads, rows and elements."""
    if len(shape) == 3:
        return 1, shape[1], shape[0], shape[2]
    b, h, s, d = (shape[i] for i in LAYOUTS[layout])
    return b, h, s, d


def _direction_of(causal: object) -> str:
    """Return the alignment of a causal mask, or "" if there is none."""
    if not isinstance(causal, bool | str) or causal not in _CAUSAL:
        raise UnsupportedError(f'{CALL}: causal is {causal!r}; use True, False, "top_left" or "bottom_right"')
    return _CAUSAL[causal]


def visible_keys(causal: object, window: Any) -> tuple[str, int | None, int | None]:
    """Return the alignment, and the numbers of keys before and after a query's own that it sees; None for no limit.

    >>> visible_keys(True, (5, None)), visible_keys(False, (5, 2, "bottom_right"))
    (('top_left', 5, 0), ('window_at_end', 5, 2))
    """
    direction = _direction_of(causal)
    if window is None:
        return direction, None, 0 if direction else None
    bounds: list[object] = list(window) if isinstance(window, tuple | list) else []
    alignment = window[2] if len(bounds) == 3 else direction or "top_left"
    wrong = any([x is not None and (not isinstance(x, int) or isinstance(x, bool) or x < 0) for x in bounds[:2]])
    if wrong or len(bounds) not in (2, 3) or alignment not in ("top_left", "bottom_right"):
        raise UnsupportedError(
            f"{CALL}: window is {window!r}; pass two ints, each 0 or more, or None for no limit, and "
            '"bottom_right" as the third element to align the last query with the last key'
        )
    if direction not in ("", alignment):
        raise UnsupportedError(
            f"{CALL}: window is {window!r}, but causal is {causal!r}; omit the third element, or pass "
            f'causal="{alignment}"'
        )
    at_end = not direction and alignment == "bottom_right"
    return WINDOW_AT_END if at_end else direction, window[0], 0 if direction else window[1]


def _check_begins(views: Mapping[str, ArrayView], queries: int, keys: int, longest: object) -> tuple[int, int | None]:
    """Return the number of packed sequences, and the rows of the longest one if it is given.

    Offsets in CPU memory are checked.
    """
    given = [(key, views[key]) for key in ("cu_seqlens_q", "cu_seqlens_k") if key in views]
    q, k = given[0][1], given[-1][1]
    for key, view in given:
        if view.dtype != "i32":
            raise DtypeError(f"{CALL}: {key} has dtype {view.dtype}; pass an i32 array")
        if len(view.shape) != 1 or view.shape[0] < 2:
            raise ShapeError(f"{CALL}: {key} has shape {view.shape}; pass an array of shape (B + 1,)")
        if view.strides[0] != 1:
            raise LayoutError(f"{CALL}: {key} has strides {view.strides}; pass a contiguous array")
    if q.shape != k.shape:
        raise ShapeError(
            f"{CALL}: cu_seqlens_k has shape {k.shape}, but cu_seqlens_q has shape {q.shape}; pass equal shapes"
        )
    wanted = longest if isinstance(longest, int) and longest >= 0 else None
    if wanted is None and longest is not None:
        raise ShapeError(f"{CALL}: max_seqlen_q is {longest!r}; pass an integer of 0 or more")
    for key, view in given:
        rows = queries if key == "cu_seqlens_q" else keys
        if view.device >= 0:
            continue
        found = numbers_of(view)
        check_rising(key, found, rows)
        if key == "cu_seqlens_q" and wanted is not None:
            check_longest(CALL, "max_seqlen_q", wanted, found)
    return q.shape[0] - 1, wanted


def check_longest(call: str, name: str, longest: int, begins: Sequence[int]) -> None:
    """Raise ShapeError if a packed sequence is longer than ``longest``, the argument ``name``.

    Args:
        begins: offsets of the sequences.
    """
    most = max(y - x for x, y in pairwise(begins))
    if most > longest:
        kind = "rows" if name == "max_seqlen_q" else "keys"
        raise ShapeError(f"{call}: {name} is {longest}, but a sequence has {most} {kind}; pass {most} or more")


def check_rising(key: str, begins: Sequence[int], rows: int) -> None:
    """Raise ShapeError unless the offsets of packed sequences rise from 0 to at most the number of rows."""
    if begins[0] != 0 or begins[-1] > rows or any(x > y for x, y in pairwise(begins)):
        raise ShapeError(f"{CALL}: {key} is {list(begins)}; pass offsets that rise from 0 to at most {rows}")


def numbers_of(view: ArrayView) -> list[int]:
    """Return the elements of an i32 vector in CPU memory."""
    return list((ctypes.c_int32 * view.shape[0]).from_address(view.pointer))


def element_of(view: ArrayView, *index: int) -> int:
    """Return an element of an i32 array in CPU memory."""
    offset = sum([i * step for i, step in zip(index, view.strides)])
    return ctypes.c_int32.from_address(view.pointer + 4 * offset).value


def is_readable(view: ArrayView) -> bool:
    """Return True if TMA can read an array: contiguous heads that begin at multiples of 16 bytes."""
    steps, unit = [step for size, step in zip(view.shape[:-1], view.strides) if size > 1], element_unit(view)
    return view.pointer % 16 == 0 and view.strides[-1] == 1 and all(step > 0 and step % unit == 0 for step in steps)


def element_unit(view: ArrayView) -> int:
    """Return the number of elements of 16 bytes."""
    return 16 // numpy_dtype(view.dtype).itemsize
