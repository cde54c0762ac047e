"""What a call of attention computes: its arguments checked."""

# A window is what a caller gives.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from cute_dialect.kernels.attention.config import HEADS
from cute_dialect.op.errors import DtypeError, LayoutError, ShapeError, UnsupportedError
from cute_dialect.runtime.arrays import ArrayView

__all__ = [
    "CALL", "CAUSAL", "LAYOUTS", "Form", "check_rising", "direction_of", "form_of", "is_readable", "numbers_of",
    "window_of",
]  # fmt: skip

CALL = "attention"
"""The function's name, in errors."""

LAYOUTS = {"bhsd": (0, 1, 2, 3), "bshd": (0, 2, 1, 3)}
"""Order of an array's dimensions -> where sequence, head, row, element are; packed sequences are (rows, heads,
elements)."""

CAUSAL = {False: "", True: "top_left", "": "", "top_left": "top_left", "bottom_right": "bottom_right"}
"""What ``causal`` may be."""

_UNBOUNDED = 1 << 30


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
        raise ShapeError(f"{CALL}: expected cu_seqlens_q and cu_seqlens_k, or none of them, got {begins[0]} alone")
    packed = bool(begins)
    if not packed and longest is not None:
        raise UnsupportedError(f"{CALL}: expected max_seqlen_q only with cu_seqlens_q, got {longest}")
    if layout not in LAYOUTS:
        raise LayoutError(f'{CALL}: expected a layout of {", ".join(LAYOUTS)}, got "{layout}"')
    rank, names = (
        (3, "(rows, heads, elements)") if packed else (4, "(B, H, S, D)" if layout == "bhsd" else "(B, S, H, D)")
    )
    for key in ("q", "k", "v"):
        if len(views[key].shape) != rank:
            raise ShapeError(f"{CALL}: expected {key} of rank {rank}, {names}, got {views[key].shape}")
    batch, heads, queries, size = _extents(views["q"].shape, layout)
    batch_k, heads_k, keys, size_k = _extents(views["k"].shape, layout)
    if views["v"].shape != views["k"].shape:
        raise ShapeError(f"{CALL}: expected v of {views['k'].shape}, as k, got {views['v'].shape}")
    if batch_k != batch or size_k != size:
        raise ShapeError(f"{CALL}: expected k of {batch} sequences and heads of {size}, as q, got {views['k'].shape}")
    if heads_k == 0 or heads % heads_k:
        raise ShapeError(f"{CALL}: expected heads of q in multiples of those of k, got {heads} and {heads_k}")
    if size % 8 or not 8 <= size <= HEADS[-1]:
        raise UnsupportedError(f"{CALL}: expected heads of 8 to {HEADS[-1]} elements, a multiple of 8, got {size}")
    most = None
    if packed:
        batch, most = _check_begins(views, queries, keys, longest)
    if scale is None:
        scale = 1 / math.sqrt(size)
    if not (isinstance(scale, int | float) and 0 < scale < math.inf):
        raise UnsupportedError(f"{CALL}: expected a scale above 0, got {scale!r}")
    direction = direction_of(causal)
    left, right = window_of(window)
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


def direction_of(causal: object) -> str:
    """Return which key is opposite which query, "" where a query sees those after its own, too."""
    if not isinstance(causal, bool | str) or causal not in CAUSAL:
        raise UnsupportedError(f'{CALL}: expected causal=True, False, "top_left" or "bottom_right", got {causal!r}')
    return CAUSAL[causal]


def window_of(window: Any) -> tuple[int | None, int | None]:
    """Return how many keys are seen before and after a query's own."""
    if window is None:
        return None, None
    wanted = isinstance(window, tuple | list) and len(window) == 2
    if not wanted or any(x is not None and (not isinstance(x, int) or isinstance(x, bool) or x < 0) for x in window):
        raise UnsupportedError(
            f"{CALL}: expected a window of two numbers of keys, 0 or more, or None for all, got {window!r}"
        )
    return window[0], window[1]


def _check_begins(views: Mapping[str, ArrayView], queries: int, keys: int, longest: object) -> tuple[int, int | None]:
    """Return how many packed sequences there are, and the longest, as far as that is said; what begins say is looked at
    where that needs no waiting.
    """
    q, k = views["cu_seqlens_q"], views["cu_seqlens_k"]
    for key, view in (("cu_seqlens_q", q), ("cu_seqlens_k", k)):
        if view.dtype != "i32":
            raise DtypeError(f"{CALL}: expected {key} of i32, got {view.dtype}")
        if len(view.shape) != 1 or view.shape[0] < 2:
            raise ShapeError(f"{CALL}: expected {key} of (B + 1,), got {view.shape}")
        if view.strides[0] != 1:
            raise LayoutError(f"{CALL}: expected {key} without gaps, got strides {view.strides}")
    if q.shape != k.shape:
        raise ShapeError(f"{CALL}: expected cu_seqlens_k of {q.shape}, as cu_seqlens_q, got {k.shape}")
    wanted = longest if isinstance(longest, int) and longest >= 0 else None
    if wanted is None and longest is not None:
        raise ShapeError(f"{CALL}: expected a max_seqlen_q of 0 or more, got {longest!r}")
    for key, view, rows in (("cu_seqlens_q", q, queries), ("cu_seqlens_k", k, keys)):
        if view.device >= 0:
            continue
        found = numbers_of(view)
        check_rising(key, found, rows)
        if key == "cu_seqlens_q" and wanted is not None:
            most = max(y - x for x, y in pairwise(found))
            if most > wanted:
                raise ShapeError(f"{CALL}: expected a max_seqlen_q of {most} at least, got {longest}")
    return q.shape[0] - 1, wanted


def check_rising(key: str, begins: Sequence[int], rows: int) -> None:
    """Raise ShapeError for beginnings of packed sequences that do not rise, or reach beyond the rows that there are."""
    if begins[0] != 0 or begins[-1] > rows or any(x > y for x, y in pairwise(begins)):
        raise ShapeError(f"{CALL}: expected {key} that rises from 0 to at most {rows}, got {list(begins)}")


def numbers_of(view: ArrayView) -> list[int]:
    """Return the elements of an i32 vector in the CPU's memory."""
    import ctypes

    return list((ctypes.c_int32 * view.shape[0]).from_address(view.pointer))


def is_readable(view: ArrayView) -> bool:
    """Tell whether TMA reads an array: heads that are contiguous and begin at whole 16 bytes."""
    steps = [step for size, step in zip(view.shape[:-1], view.strides) if size > 1]
    return view.pointer % 16 == 0 and view.strides[-1] == 1 and all(step > 0 and step % 8 == 0 for step in steps)
