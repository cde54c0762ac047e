"""``op.attention``: ``softmax(scale Q K^T) V`` of each head, as torch's ``scaled_dot_product_attention``.

Arrays are read where they are, in any order of dimensions, as long as heads' elements are contiguous and begin at whole
16 bytes; others are copied first.
"""

# torch is not there where the types are checked; arrays are of any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from cute_dialect.kernels.attention.config import HEADS, AttentionConfig, default_config
from cute_dialect.kernels.attention.forward import attention_text
from cute_dialect.op.errors import AlignmentError, DtypeError, LayoutError, ShapeError, UnsupportedError
from cute_dialect.op.overlap import overlap
from cute_dialect.op.rows.call import RowCall, RowKernel
from cute_dialect.op.rows.known import KnownRows
from cute_dialect.runtime.arrays import ArrayView, view_of

__all__ = ["CAUSAL", "LAYOUTS", "Form", "attended", "attention", "config_of", "form_of", "is_readable",
    "kernel_of",
]  # fmt: skip

LAYOUTS = {"bhsd": (0, 1, 2, 3), "bshd": (0, 2, 1, 3)}
"""Order of an array's dimensions -> where sequence, head, row, element are; packed sequences are (rows, heads,
elements)."""

CAUSAL = {False: "", True: "top_left", "": "", "top_left": "top_left", "bottom_right": "bottom_right"}
"""What ``causal`` may be."""

_LOG2_E = 1.4426950408889634
_UNBOUNDED = 1 << 30
_KNOWN = KnownRows()
"""Calls that were made."""


def attention(
    q: Any, k: Any, v: Any, *, causal: bool | str = False, scale: float | None = None,
    window: tuple[int | None, int | None] | None = None, lse: bool = False, layout: str = "bhsd",
    cu_seqlens_q: Any = None, cu_seqlens_k: Any = None, max_seqlen_q: int | None = None, out: Any = None,
    config: AttentionConfig | None = None, device: object = None,
) -> Any:  # fmt: skip
    """Return ``softmax(scale q k^T) v`` of each head, like ``q`` (B, H, S, D), of ``k`` and ``v`` (B, H', S', D).

    H is a multiple of H', whose heads are shared by as many of ``q``'s that follow each other.  ``causal``: a query
    sees the keys up to its own, query 0 opposite key 0 (``True``, ``"top_left"``, as torch has it) or the last query
    opposite the last key (``"bottom_right"``).  ``window``: so many keys before and after its own, None for all;
    opposite is what ``causal`` says.  ``scale``: by default ``1 / sqrt(D)``.  ``lse``: returns a pair, with the
    logarithm of the sum of the exponentials of each row, (B, H, S) of f32.  Rows that see no key are 0, with a
    logarithm of minus infinity.  ``layout="bshd"``: arrays are (B, S, H, D).

    ``cu_seqlens_q``, ``cu_seqlens_k``: arrays are sequences of different lengths, one behind the other, (rows, H, D),
    and these say where each begins, and the end: i32, (B + 1,), on the same device; nobody waits for them.
    ``max_seqlen_q``: the longest of ``q``'s, by default as many as all rows.  ``out``: where the result goes.
    ``config``: the kernel itself.  ``device="cpu"``: run it on the interpreter.  Raises subclasses of
    :class:`cute_dialect.op.OpError`.
    """
    operators = _operators(out, config, q, k, v)
    if operators is not None:
        left, right = (-1 if x is None else x for x in _window(window))
        result, logs = operators.attention(
            q, k, v, cu_seqlens_q, cu_seqlens_k, _causal(causal), left, right, scale, layout, max_seqlen_q, lse
        )  # fmt: skip
        return (result, logs) if lse else result
    return attended(
        q, k, v, causal, scale, window, lse, layout, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, out, config, device
    )  # fmt: skip


def attended(
    q: Any, k: Any, v: Any, causal: object, scale: object, window: Any, lse: bool, layout: str,
    begins_q: Any, begins_k: Any, longest: object, out: Any = None, config: Any = None, device: object = None,
) -> Any:  # fmt: skip
    """Compute :func:`attention`, without gradients."""
    plain = out is None and device is None and (begins_q is None) == (begins_k is None)
    read = (q, k, v) if begins_q is None else (q, k, v, begins_q, begins_k)
    window = tuple(window) if isinstance(window, list) else window
    numbers = (causal, scale, window, lse, layout, longest, config)
    if plain:
        done = _KNOWN.again(read, numbers)
        if done is not None:
            return done
    arrays = {"q": q, "k": k, "v": v, "cu_seqlens_q": begins_q, "cu_seqlens_k": begins_k, "out": out}
    one = RowCall(_CALL, arrays, device, others=("cu_seqlens_q", "cu_seqlens_k"), elements=("bf16", "f16"))
    form = form_of(one.views, causal, scale, window, lse, layout, longest, one.element)
    kernel = kernel_of(form, config)
    matrices = [_matrix(one, key, form) for key in ("q", "k", "v")]
    result = _result(one, form)
    logs = one.result(form.logs, "f32") if lse else None
    if form.keys == 0:
        result[...] = 0
        if logs is not None:
            logs[...] = -math.inf
    elif form.rows and form.batch and form.heads:
        begins = [one.views.get(key) for key in ("cu_seqlens_q", "cu_seqlens_k")]
        one.launch(
            kernel, *matrices, _turned(view_of(result), form), None if logs is None else _turned_logs(logs, form),
            *begins, form.rows, form.scale * _LOG2_E, form.left, form.right,
        )  # fmt: skip
        if plain:
            results = [result] if logs is None else [result, logs]
            one.remember(_KNOWN, read, numbers, results, tuple(range(len(results))))
    return result if logs is None else (result, logs)


# ------------------------------------------------------------------------------------------------------------- checks

_CALL = "attention"


class Form(NamedTuple):
    """What a call computes, checked.

    ``queries``, ``keys``: rows of a sequence, of all where they are ``packed``; ``sharing``: heads of q that have one
    head of k; ``longest``: rows of the longest packed sequence of q, as far as that is said.
    """

    element: str
    layout: str
    packed: bool
    batch: int
    heads: int
    sharing: int
    queries: int
    keys: int
    size: int
    scale: float
    mask: str
    from_end: bool
    left: int
    right: int
    lse: bool
    longest: int | None

    @property
    def rows(self) -> int:
        """Queries of the longest sequence."""
        return self.queries if self.longest is None else min(self.longest, self.queries)

    @property
    def logs(self) -> tuple[int, ...]:
        """The shape of the logarithms."""
        return (self.heads, self.queries) if self.packed else (self.batch, self.heads, self.queries)


def form_of(
    views: Mapping[str, ArrayView], causal: object, scale: object, window: Any, lse: bool, layout: str,
    longest: object, element: str,
) -> Form:  # fmt: skip
    """Return what a call computes; raises ShapeError, DtypeError, LayoutError and UnsupportedError."""
    begins = [key for key in ("cu_seqlens_q", "cu_seqlens_k") if key in views]
    if len(begins) == 1:
        raise ShapeError(f"{_CALL}: expected cu_seqlens_q and cu_seqlens_k, or none of them, got {begins[0]} alone")
    packed = bool(begins)
    if not packed and longest is not None:
        raise UnsupportedError(f"{_CALL}: expected max_seqlen_q only with cu_seqlens_q, got {longest}")
    if layout not in LAYOUTS:
        raise LayoutError(f'{_CALL}: expected a layout of {", ".join(LAYOUTS)}, got "{layout}"')
    rank, names = (
        (3, "(rows, heads, elements)") if packed else (4, "(B, H, S, D)" if layout == "bhsd" else "(B, S, H, D)")
    )
    for key in ("q", "k", "v"):
        if len(views[key].shape) != rank:
            raise ShapeError(f"{_CALL}: expected {key} of rank {rank}, {names}, got {views[key].shape}")
    batch, heads, queries, size = _extents(views["q"].shape, layout)
    batch_k, heads_k, keys, size_k = _extents(views["k"].shape, layout)
    if views["v"].shape != views["k"].shape:
        raise ShapeError(f"{_CALL}: expected v of {views['k'].shape}, as k, got {views['v'].shape}")
    if batch_k != batch or size_k != size:
        raise ShapeError(f"{_CALL}: expected k of {batch} sequences and heads of {size}, as q, got {views['k'].shape}")
    if heads_k == 0 or heads % heads_k:
        raise ShapeError(f"{_CALL}: expected heads of q in multiples of those of k, got {heads} and {heads_k}")
    if size % 8 or not 8 <= size <= HEADS[-1]:
        raise UnsupportedError(f"{_CALL}: expected heads of 8 to {HEADS[-1]} elements, a multiple of 8, got {size}")
    most = None
    if packed:
        batch, most = _check_begins(views, queries, keys, longest)
    if scale is None:
        scale = 1 / math.sqrt(size)
    if not (isinstance(scale, int | float) and 0 < scale < math.inf):
        raise UnsupportedError(f"{_CALL}: expected a scale above 0, got {scale!r}")
    direction = _causal(causal)
    left, right = _window(window)
    right = 0 if direction else right
    from_end = direction == "bottom_right" and (packed or queries != keys)
    mask = {(False, False): "full", (False, True): "right", (True, False): "left", (True, True): "both"}[
        left is not None, right is not None
    ]
    return Form(
        element, layout, packed, batch, heads, heads // heads_k, queries, keys, size, float(scale), mask, from_end,
        min(left or 0, _UNBOUNDED), min(right or 0, _UNBOUNDED), lse, most,
    )  # fmt: skip


def _extents(shape: Sequence[int], layout: str) -> tuple[int, int, int, int]:
    """Return sequences, heads, rows, elements."""
    if len(shape) == 3:
        return 1, shape[1], shape[0], shape[2]
    b, h, s, d = (shape[i] for i in LAYOUTS[layout])
    return b, h, s, d


def _causal(causal: object) -> str:
    """Return which key is opposite which query, "" where a query sees those after its own, too."""
    if not isinstance(causal, bool | str) or causal not in CAUSAL:
        raise UnsupportedError(f'{_CALL}: expected causal=True, False, "top_left" or "bottom_right", got {causal!r}')
    return CAUSAL[causal]


def _window(window: Any) -> tuple[int | None, int | None]:
    """Return how many keys are seen before and after a query's own."""
    if window is None:
        return None, None
    wanted = isinstance(window, tuple | list) and len(window) == 2
    if not wanted or any(x is not None and (not isinstance(x, int) or isinstance(x, bool) or x < 0) for x in window):
        raise UnsupportedError(
            f"{_CALL}: expected a window of two numbers of keys, 0 or more, or None for all, got {window!r}"
        )
    return window[0], window[1]


def _check_begins(views: Mapping[str, ArrayView], queries: int, keys: int, longest: object) -> tuple[int, int | None]:
    """Return how many packed sequences there are, and the longest, as far as that is said; what begins say is looked at
    where that needs no waiting.
    """
    q, k = views["cu_seqlens_q"], views["cu_seqlens_k"]
    for key, view in (("cu_seqlens_q", q), ("cu_seqlens_k", k)):
        if view.dtype != "i32":
            raise DtypeError(f"{_CALL}: expected {key} of i32, got {view.dtype}")
        if len(view.shape) != 1 or view.shape[0] < 2:
            raise ShapeError(f"{_CALL}: expected {key} of (B + 1,), got {view.shape}")
        if view.strides[0] != 1:
            raise LayoutError(f"{_CALL}: expected {key} without gaps, got strides {view.strides}")
    if q.shape != k.shape:
        raise ShapeError(f"{_CALL}: expected cu_seqlens_k of {q.shape}, as cu_seqlens_q, got {k.shape}")
    wanted = longest if isinstance(longest, int) and longest >= 0 else None
    if wanted is None and longest is not None:
        raise ShapeError(f"{_CALL}: expected a max_seqlen_q of 0 or more, got {longest!r}")
    for key, view, rows in (("cu_seqlens_q", q, queries), ("cu_seqlens_k", k, keys)):
        if view.device >= 0:
            continue
        found = _numbers(view)
        if found[0] != 0 or found[-1] > rows or any(x > y for x, y in pairwise(found)):
            raise ShapeError(f"{_CALL}: expected {key} that rises from 0 to at most {rows}, got {found}")
        if key == "cu_seqlens_q" and wanted is not None:
            most = max(y - x for x, y in pairwise(found))
            if most > wanted:
                raise ShapeError(f"{_CALL}: expected a max_seqlen_q of {most} at least, got {longest}")
    return q.shape[0] - 1, wanted


def _numbers(view: ArrayView) -> list[int]:
    """Return the elements of an i32 vector in the CPU's memory."""
    import ctypes

    return list((ctypes.c_int32 * view.shape[0]).from_address(view.pointer))


# ----------------------------------------------------------------------------------------------------------- matrices


def _matrix(one: RowCall, key: str, form: Form) -> ArrayView:
    """Return an array as (S, D, H, B), where it lies or a copy."""
    view = one.views[key]
    return _turned(view if is_readable(view) else one.packed(key), form)


def is_readable(view: ArrayView) -> bool:
    """Tell whether TMA reads an array: heads that are contiguous and begin at whole 16 bytes."""
    steps = [step for size, step in zip(view.shape[:-1], view.strides) if size > 1]
    return view.pointer % 16 == 0 and view.strides[-1] == 1 and all(step > 0 and step % 8 == 0 for step in steps)


def _turned(view: ArrayView, form: Form) -> ArrayView:
    """Return an array as (S, D, H, B)."""
    if form.packed:
        rows, heads, size = view.shape
        shape, strides = (rows, size, heads, 1), (view.strides[0], 1, view.strides[1], 8)
    else:
        b, h, s, d = LAYOUTS[form.layout]
        shape, strides = (tuple([x[i] for i in (s, d, h, b)]) for x in (view.shape, view.strides))
    # Where there is one of something its distance is free.
    steps = tuple(
        [8 if n == 1 and i != 1 else 1 if i == 1 else step for i, (n, step) in enumerate(zip(shape, strides))]
    )
    return view._replace(shape=tuple(shape), strides=steps)


def _turned_logs(logs: Any, form: Form) -> ArrayView:
    """Return the logarithms as (S, H, B)."""
    view = view_of(logs)
    shape, strides = view.shape, view.strides
    if form.packed:
        return view._replace(shape=(shape[1], shape[0], 1), strides=(strides[1], strides[0], 1))
    return view._replace(shape=shape[::-1], strides=strides[::-1])


def _result(one: RowCall, form: Form) -> Any:
    """Return the array that is given for the result, or a new one, whose rows and heads lie as those of q do."""
    given, like = one.views.get("out"), one.views["q"]
    if given is None:
        if form.packed or like.strides[1] >= like.strides[2]:
            return one.result(like.shape)
        return one.swapped_result(like.shape)
    one.expect("out", like.shape)
    if 0 not in given.shape and not is_readable(given):
        if given.pointer % 16:
            raise AlignmentError(f"{_CALL}: expected out at whole 16 bytes, got address {given.pointer:#x}")
        raise LayoutError(
            f"{_CALL}: expected out whose heads are contiguous, at distances in multiples of 8 elements, got strides "
            f"{given.strides}"
        )
    for key in ("q", "k", "v"):
        if overlap(given, one.views[key]):
            raise LayoutError(f"{_CALL}: expected out in memory of its own, got some of {key}")
    return one.arrays["out"]


# ------------------------------------------------------------------------------------------------------------ kernels


def config_of(form: Form, config: AttentionConfig | None = None) -> AttentionConfig:
    """Return the configuration that computes a call; tiles and schedule are those of ``config``, if given.  Raises
    UnsupportedError.
    """
    head = next(h for h in HEADS if h >= form.size)
    found = default_config(form.element, head, form.mask) if config is None else config
    found = found._replace(
        element=form.element, head=head, mask=form.mask, from_end=form.from_end, packed=form.packed, lse=form.lse
    )  # fmt: skip
    try:
        found.check()
    except ValueError as e:
        raise UnsupportedError(f"{_CALL}: {e}") from None
    return found


def kernel_of(form: Form, config: AttentionConfig | None = None) -> RowKernel:
    """Return the kernel that computes a call."""
    found = config_of(form, config)
    return RowKernel(found.name, attention_text, (found,))


# -------------------------------------------------------------------------------------------------------------- torch


def _operators(out: Any, config: Any, *arrays: Any) -> Any:
    """Return the operators of torch where they are to be called: for gradients, and in what torch compiles.  Raises
    UnsupportedError for what these do not take.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    if not torch.compiler.is_compiling():
        wanted = torch.is_grad_enabled() and any([getattr(x, "requires_grad", False) for x in arrays])
        if not wanted:
            return None
    for name, given in (("out", out), ("config", config)):
        if given is not None:
            raise UnsupportedError(f"{_CALL}: expected no {name} where gradients are wanted, or in torch.compile")
    from cute_dialect.op.attending import operators

    return operators
