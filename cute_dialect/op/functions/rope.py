"""Rotary position embedding, ``op.rope``, and append of keys and values to a cache, ``op.append_kv``."""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.kernels.attention.config import BYTES, ELEMENTS
from cute_dialect.kernels.attention.rope import RopeConfig, rope_text
from cute_dialect.op.arrays.library import call_operator
from cute_dialect.op.errors import DtypeError, LayoutError, ShapeError, UnsupportedError
from cute_dialect.op.execute.array_call import RowCall, RowKernel
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.execute.recording import needs_gradients
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.problems.attention import (
    LAYOUTS,
    check_layout,
    check_pages,
    element_of,
    element_unit,
    expanded_strides,
    is_readable,
    numbers_of,
)
from cute_dialect.runtime.arrays import ArrayView, view_of

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.op.signature_types import Array, Interpreted

_KNOWN = KnownCalls(tf32=False)
"""Cached calls of ``rope``."""
_TABLES = ("cos", "sin", "positions", "offsets", "seqused_k", "page_table")


class Rotation(NamedTuple):
    """Arguments of :func:`rope`, and the direction."""

    cos: Array
    sin: Array
    positions: Array = None
    offsets: Array = None
    interleaved: bool = False
    layout: str = "bhsd"
    inverse: bool = False  # rotate by the negative angles


def rope(
    x: Array, cos: Array, sin: Array, *, positions: Array = None, offsets: Array = None, interleaved: bool = False,
    layout: str = "bhsd", out: Array = None, device: object = None, stream: object = None,
    **run: Unpack[Interpreted],
) -> Array:  # fmt: skip
    """Return rotary position embeddings of queries or keys.

    The pair (a, b) of a head at position p becomes (a c - b s, a s + b c) with c and s from row p of the tables.

    Args:
        x: (B, H, S, D), f16 or bf16, or (rows, H, D).  A pair of arrays, such as q and k, is computed in one launch
            (in two with gradients), and the result is a pair.
        cos, sin: (P, R / 2), f32 or the type of ``x``.  R is a multiple of 16 up to D; other elements are copied.
        positions: position of each row, i32, (S,) or (B, S); default: 0, 1, ….
        offsets: position of the first row of each sequence, i32 (B,).
        interleaved: pairs are the elements 2 d and 2 d + 1; default: d and d + R / 2.
        layout: ``"bhsd"``, or ``"bshd"`` for arrays (B, S, H, D).
        out: array or pair for the result; may be ``x``.
        device, stream, run: as in :func:`cute_dialect.op.mm`.
    """
    if run:
        check_keywords("rope", rope, run)
    if needs_gradients(cos, sin):
        raise UnsupportedError("rope: cos and sin have no gradients; pass cos.detach() and sin.detach()")
    given = x if isinstance(x, tuple | list) else (x,)
    if given is x and len(given) != 2:
        raise ShapeError(f"rope: x is a {type(x).__name__} of length {len(given)}; pass an array, or a pair of arrays")
    torch = sys.modules.get("torch")
    is_torch = torch is not None and all([isinstance(t, torch.Tensor) for t in given])
    if torch is not None and is_torch and (needs_gradients(*given) or torch.compiler.is_compiling()):
        if out is not None:
            raise UnsupportedError("rope: out is not supported with gradients or torch.compile; omit it")
        from cute_dialect.op.torch.dispatch import CUTE  # late: torch

        def compute() -> Any:
            found = [CUTE.rope(t, cos, sin, positions, offsets, interleaved, layout, False) for t in given]
            return tuple(found) if given is x else found[0]

        return call_operator("rope", compute, given[0], device, stream, run)
    return rotated(x, Rotation(cos, sin, positions, offsets, interleaved, layout), out, device, stream, run)


def rotated(
    x: Array, rotation: Rotation, out: Array = None, device: object = None, stream: object = None,
    run: Interpreted | None = None,
) -> Array:  # fmt: skip
    """Compute :func:`rope` without gradients."""
    cos, sin, positions, offsets, interleaved, layout, inverse = rotation
    is_pair = isinstance(x, tuple | list)
    given: tuple[Any, ...] = tuple(x) if is_pair else (x,)
    if is_pair and out is not None and (not isinstance(out, tuple | list) or len(out) != 2):
        raise ShapeError("rope: x is a pair of arrays, but out is not; pass a pair as out")
    outs: tuple[Any, ...] = (None,) * len(given) if out is None else tuple(out) if is_pair else (out,)
    how = (is_pair, interleaved, layout, inverse, positions is None, offsets is None, tuple(o is None for o in outs))
    tensors = tuple([t for t in (*given, cos, sin, positions, offsets, *outs) if t is not None])

    def compute() -> object:
        arrays = {"x": given[0], "y": given[1] if is_pair else None, "cos": cos, "sin": sin}
        arrays |= {"positions": positions, "offsets": offsets, "out": outs[0], "out_y": outs[1] if is_pair else None}
        one = RowCall("rope", arrays, device, _TABLES, ("bf16", "f16"), stream=stream, run=run)
        batch, rows = _check_rows(one, ("x", "y"), layout)
        _check_tables(one, ("x", "y"))
        if positions is not None and offsets is not None:
            raise UnsupportedError("rope: positions cannot be combined with offsets; pass one of them")
        with one.on():
            results = [_result(one, key, name) for key, name in (("x", "out"), ("y", "out_y")) if key in one.views]
            c = RopeConfig(
                one.element, one.views["cos"].dtype, "rotate" if is_pair else "", interleaved, positions is not None,
                offsets=offsets is not None,
            )  # fmt: skip
            if 0 not in one.views["x"].shape and (not is_pair or 0 not in one.views["y"].shape):
                matrices = [
                    (_matrix(one, key, layout), _as_matrix(view_of(r), layout)) for key, r in zip("xy", results)
                ]
                of_rows = _positions(one, batch, rows) if positions is not None else None
                begins = _starts(one, "offsets", batch)
                _check_positions(one, rows, of_rows, begins)
                flat = [m for pair in matrices for m in pair]
                sign = -1.0 if inverse else 1.0
                one.launch(RowKernel(c.name, rope_text, (c,)), *flat, *_angles(one), of_rows, begins, sign)
        return tuple(results) if is_pair else results[0]

    return _KNOWN.call(how, tensors, compute) if device is None and stream is None and not run else compute()


def append_kv(
    k_cache: Array, v_cache: Array, k: Array, v: Array, seqused_k: Array, *, page_table: Array = None,
    cos: Array = None, sin: Array = None, interleaved: bool = False, offsets: Array = None, layout: str = "bhsd",
    device: object = None, stream: object = None, **run: Unpack[Interpreted],
) -> None:  # fmt: skip
    """Append keys and values to a cache, in one launch.

    Row i of sequence b becomes row ``seqused_k[b] + i`` of its cache.  ``seqused_k`` is not changed.

    Args:
        k_cache, v_cache: (B, H, S', D), f16 or bf16, or 8-bit floats without ``cos`` and ``sin``; with ``page_table``
            pages in place of sequences.
        k, v: (B, H, S, D), new rows.  They get no gradient through the cache.
        seqused_k: keys of each sequence in the cache, i32 (B,).  The rows must fit into the cache.
        page_table: pages of each sequence, i32 (B, P), as in :func:`cute_dialect.op.attention`.
        cos, sin, interleaved: tables of :func:`cute_dialect.op.rope`, which is applied to ``k`` at its positions.
        offsets: position of the first new row of each sequence, i32 (B,); default: ``seqused_k``.
        layout: ``"bhsd"``, or ``"bshd"`` for arrays (B, S, H, D).
        device, stream, run: as in :func:`cute_dialect.op.mm`.
    """
    call = "append_kv"
    if run:
        check_keywords(call, append_kv, run)
    given = (k_cache, v_cache, k, v, seqused_k, page_table, cos, sin, offsets)
    how = (interleaved, layout, page_table is None, cos is None, offsets is None)
    tensors = tuple([t for t in given if t is not None])
    usual = device is None and stream is None and not run and not _APPENDED.is_traced()
    if usual and _APPENDED.again(how, *tensors) is not None:
        return
    torch = sys.modules.get("torch")
    if torch is not None and torch.compiler.is_compiling():
        from cute_dialect.op.torch.dispatch import CUTE  # late: torch

        def compute() -> None:
            CUTE.append_kv(*given, interleaved, layout)

        return call_operator(call, compute, k, device, stream, run, "k")
    if (cos is None) != (sin is None):
        raise UnsupportedError(
            f"{call}: {'sin' if cos is None else 'cos'} is given alone; pass cos and sin, or neither"
        )
    if offsets is not None and cos is None:
        raise UnsupportedError(f"{call}: offsets is given without cos and sin; omit it")

    def launch() -> Array:
        arrays = {"k": k, "v": v, "k_cache": k_cache, "v_cache": v_cache, "cos": cos, "sin": sin}
        arrays |= {"seqused_k": seqused_k, "page_table": page_table, "offsets": offsets}
        one = RowCall(call, arrays, device, _TABLES, ELEMENTS, stream=stream, run=run)
        if cos is not None and one.element in BYTES:
            raise UnsupportedError(
                f"{call}: cos needs k of bf16 or f16, got {one.element}; rotate k before rounding it"
            )
        batch, rows = _check_rows(one, ("k", "v"), layout)
        _check_cache(one, batch, layout)
        page = 0
        if page_table is not None:
            table = one.views["page_table"]
            if table.dtype != "i32" or len(table.shape) != 2 or table.shape[0] != batch:
                raise ShapeError(
                    f"{call}: page_table is {table.dtype} of shape {table.shape}; pass i32 of ({batch}, pages)"
                )
            page = one.views["k_cache"].shape[LAYOUTS[layout][2]]
        if cos is not None:
            _check_tables(one, ("k",))
        kind = "" if cos is None else one.views["cos"].dtype
        c = RopeConfig(
            "f16" if one.element in BYTES else one.element,
            kind,
            "copy",
            interleaved,
            begins=True,
            offsets=offsets is not None,
            page=page,
        )
        with one.on():
            if 0 not in one.views["k"].shape:
                flat = [x for key in "kv" for x in (_matrix(one, key, layout), _cache(one, f"{key}_cache", layout))]
                table = None
                if page:
                    view = one.views["page_table"]
                    table = view._replace(shape=view.shape[::-1], strides=view.strides[::-1])
                begins, first = _starts(one, "seqused_k", batch), _starts(one, "offsets", batch)
                _check_room(one, rows, layout, begins)
                if cos is not None:
                    _check_positions(one, rows, None, begins if first is None else first)
                sign = None if cos is None else 1.0
                angles = () if cos is None else _angles(one)
                one.launch(RowKernel(c.name, rope_text, (c,)), *flat, *angles, begins, first, table, sign)
        return k_cache

    if usual:
        _APPENDED.recorded(how, tensors, launch)
    else:
        launch()


_APPENDED = KnownCalls(tf32=False)
"""Cached calls of ``append_kv``, whose result is ``k_cache``."""


# -------------------------------------------------------------------------------------------------------------- checks


def _check_rows(one: RowCall, keys: tuple[str, str], layout: str) -> tuple[int, int]:
    """Return the numbers of sequences and rows of both arrays.  Raises LayoutError, ShapeError, UnsupportedError."""
    check_layout(one.name, layout)
    found: list[tuple[int, int]] = []
    for key in keys:
        if key not in one.views:
            continue
        shape = one.views[key].shape
        if len(shape) not in (3, 4):
            raise ShapeError(
                f"{one.name}: {key} has shape {shape}; pass an array of rank 4, or (rows, heads, elements)"
            )
        unit = element_unit(one.views[key])
        if shape[-1] % unit:
            raise UnsupportedError(f"{one.name}: {key} has head size {shape[-1]}; pass a multiple of {unit}")
        b, _, s, _ = LAYOUTS[layout]
        found.append((1, shape[0]) if len(shape) == 3 else (shape[b], shape[s]))
    if len(found) == 2 and found[0] != found[1]:
        raise ShapeError(
            f"{one.name}: the arrays have {found[0]} and {found[1]} sequences and rows; pass equal numbers"
        )
    return found[0]


def _check_tables(one: RowCall, keys: tuple[str, ...]) -> None:
    """Raise ShapeError or DtypeError unless the tables of angles fit the arrays."""
    cos, sin = one.views["cos"], one.views["sin"]
    sizes = [one.views[key].shape[-1] for key in keys if key in one.views]
    if len(cos.shape) != 2 or cos.shape != sin.shape:
        raise ShapeError(f"{one.name}: cos and sin have shapes {cos.shape} and {sin.shape}; pass two of (P, R / 2)")
    if cos.shape[1] % 8 or any(2 * cos.shape[1] > size for size in sizes):
        raise ShapeError(
            f"{one.name}: cos has {cos.shape[1]} columns; pass a multiple of 8 up to half the head size {min(sizes)}"
        )
    if cos.dtype != sin.dtype or cos.dtype not in ("f32", one.element):
        raise DtypeError(
            f"{one.name}: cos and sin have dtypes {cos.dtype} and {sin.dtype}; pass two of f32 or {one.element}"
        )


def _check_cache(one: RowCall, batch: int, layout: str) -> None:
    """Raise ShapeError or LayoutError unless the caches can take the new rows in place."""
    b, h, _, d = LAYOUTS[layout]
    caches = one.views["k_cache"], one.views["v_cache"]
    if caches[0].pointer == caches[1].pointer and 0 not in caches[0].shape:
        raise LayoutError(f"{one.name}: k_cache and v_cache are the same memory; pass two caches")
    for key in ("k", "v"):
        name = f"{key}_cache"
        new, cache = one.views[key], one.views[name]
        heads = new.shape[1] if len(new.shape) == 3 else new.shape[h]
        if len(cache.shape) != 4 or (cache.shape[h], cache.shape[d]) != (heads, new.shape[-1]):
            raise ShapeError(
                f"{one.name}: {name} has shape {cache.shape}; pass rank 4 with {heads} heads of {new.shape[-1]}, "
                f"like {key}"
            )
        if "page_table" not in one.views and cache.shape[b] != batch:
            raise ShapeError(
                f"{one.name}: {name} has {cache.shape[b]} sequences, but {key} has {batch}; pass equal numbers"
            )
        if not is_readable(cache):
            raise LayoutError(
                f"{one.name}: {name} has strides {cache.strides}; pass contiguous heads at multiples of 16 bytes"
            )


def _check_positions(one: RowCall, rows: int, positions: ArrayView | None, begins: ArrayView | None) -> None:
    """Raise ShapeError if the tables lack the row of a position.  Positions in GPU memory are not read.

    Args:
        rows: rows of a sequence.
        positions: (S, B).
        begins: position of the first row of each sequence.
    """
    known = one.views["cos"].shape[0]
    if positions is not None:
        if positions.device >= 0:
            return
        found = [element_of(positions, i, b) for b in range(positions.shape[1]) for i in range(rows)]
    elif begins is not None:
        if begins.device >= 0:
            return
        found = [x for begin in numbers_of(begins) for x in (begin, begin + rows - 1)]
    else:
        found = [rows - 1]
    for position in found:
        if not 0 <= position < known:
            raise ShapeError(f"{one.name}: cos has {known} rows, none for position {position}; pass longer cos and sin")


def _check_room(one: RowCall, rows: int, layout: str, begins: ArrayView | None) -> None:
    """Raise ShapeError if new rows do not fit into a cache.  Lengths in GPU memory are not read."""
    if begins is None or begins.device >= 0:
        return
    table, cache = one.views.get("page_table"), one.views["k_cache"].shape
    pages, _, page, _ = (cache[i] for i in LAYOUTS[layout])
    most = page if table is None else page * table.shape[1]
    lengths = numbers_of(begins)
    for length in lengths:
        if not 0 <= length <= most - rows:
            raise ShapeError(
                f"{one.name}: seqused_k has a length of {length}, and k has {rows} rows; the cache has room for {most} "
                "keys of a sequence"
            )
    if table is not None:
        check_pages(one.name, table, pages, [range(n // page, -(-(n + rows) // page)) for n in lengths])


# --------------------------------------------------------------------------------------------------------------- views


def _as_matrix(view: ArrayView, layout: str) -> ArrayView:
    """Return an array as (S, D, H, B)."""
    if len(view.shape) == 3:
        rows, heads, size = view.shape
        steps = view.strides[0], 1, view.strides[1], element_unit(view)
        return view._replace(shape=(rows, size, heads, 1), strides=steps)
    b, h, s, d = LAYOUTS[layout]
    shape, strides = ([x[i] for i in (s, d, h, b)] for x in (view.shape, view.strides))
    unit = element_unit(view)
    steps = [unit if n == 1 and i != 1 else 1 if i == 1 else step for i, (n, step) in enumerate(zip(shape, strides))]
    return view._replace(shape=tuple(shape), strides=tuple(steps))


def _in_pairs(view: ArrayView) -> ArrayView:
    """Return (S, D, H, B) of bytes as pairs, with the type f16, to copy them."""
    if view.dtype not in BYTES:
        return view
    (s, d, *more), strides = view.shape, [max(1, step // 2) for step in view.strides]
    return view._replace(shape=(s, d // 2, *more), strides=tuple(strides), dtype="f16")


def _matrix(one: RowCall, key: str, layout: str) -> ArrayView:
    view = one.views[key]
    return _in_pairs(_as_matrix(view if is_readable(view) else one.packed(key), layout))


def _cache(one: RowCall, key: str, layout: str) -> ArrayView:
    return _in_pairs(_as_matrix(one.views[key], layout))


def _result(one: RowCall, key: str, name: str) -> Any:
    """Return the array given for a result, or a new one."""
    given, shape = one.views.get(name), one.views[key].shape
    if given is None:
        return one.result(shape)
    one.expect(name, shape)
    if not is_readable(given):
        raise LayoutError(
            f"{one.name}: {name} has strides {given.strides}; pass contiguous heads at multiples of 16 bytes"
        )
    return one.arrays[name]


def _angles(one: RowCall) -> tuple[ArrayView, ArrayView]:
    cos, sin = (one.flat(key)._replace(shape=one.views[key].shape) for key in ("cos", "sin"))
    return cos._replace(strides=(cos.shape[1], 1)), sin._replace(strides=(sin.shape[1], 1))


def _positions(one: RowCall, batch: int, rows: int) -> ArrayView:
    """Return the positions as (S, B).  Raises DtypeError, ShapeError."""
    view = one.views["positions"]
    steps = expanded_strides(view, (batch, rows))
    if view.dtype != "i32":
        raise DtypeError(f"{one.name}: positions has dtype {view.dtype}; pass an i32 array")
    if steps is None:
        raise ShapeError(
            f"{one.name}: positions has shape {view.shape}; pass an array of ({rows},) or ({batch}, {rows})"
        )
    return view._replace(shape=(rows, batch), strides=steps[::-1])


def _starts(one: RowCall, key: str, batch: int) -> ArrayView | None:
    """Return the first position of each sequence, if it is given.  Raises DtypeError, ShapeError."""
    view = one.views.get(key)
    if view is None:
        return None
    if view.dtype != "i32":
        raise DtypeError(f"{one.name}: {key} has dtype {view.dtype}; pass an i32 array")
    if view.shape != (batch,):
        raise ShapeError(f"{one.name}: {key} has shape {view.shape}; pass one number per sequence, ({batch},)")
    return one.flat(key)
