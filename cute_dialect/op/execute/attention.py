"""Attention: the choice of the configuration and of the number of key slices, and the launches.

>>> form = Form("bf16", "bhsd", False, 1, 32, 4, 1, 8192, 128, 0.1, "right", True, 0, 0, False, None)
>>> way = way_of(form)                            # one query: the heads that share keys are packed as queries
>>> way.form.queries, way.form.heads, way.form.mask, way.parts, way.config.name
(4, 8, 'full', 16, 'attention-bf16-128-full-lse-split-64x128-s3')
"""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from cute_dialect.kernels.attention import sm100
from cute_dialect.kernels.attention.combine import CombineConfig, combine_text
from cute_dialect.kernels.attention.config import (
    BYTES,
    COPIED_HEADS,
    HEADS,
    SMEM,
    AttentionConfig,
    config_named,
    default_config,
)
from cute_dialect.kernels.attention.dropout import kept_share, threshold_of
from cute_dialect.kernels.attention.forward import attention_text
from cute_dialect.kernels.attention.scores import LOG2_E
from cute_dialect.op.arrays.library import random_state
from cute_dialect.op.arrays.operand_views import overlap
from cute_dialect.op.errors import AlignmentError, LayoutError, ShapeError, UnsupportedError
from cute_dialect.op.execute.array_call import RowCall, RowKernel
from cute_dialect.op.execute.saved import Fields
from cute_dialect.op.problems.attention import (
    CALL,
    DESCALES,
    LAYOUTS,
    Form,
    check_longest,
    check_rising,
    dropout_of,
    element_unit,
    expanded_strides,
    is_readable,
    numbers_of,
)
from cute_dialect.op.problems.flex_attention import KEY_LISTS
from cute_dialect.op.select.backends import WGMMA, Backend, of_tensor_memory, unmeasured
from cute_dialect.runtime.arrays import ArrayView, numpy_dtype, view_of
from cute_dialect.runtime.settings import flag

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.kernels.attention.score_graph import ScoreGraph
    from cute_dialect.op.signature_types import Array

__all__ = [
    "OPTIONAL_ARRAYS", "AttentionDispatch", "CascadeDispatch", "Dispatch", "TensorMemoryDispatch", "block_lists",
    "call_way", "captured_array", "captured_operands", "cascade_of", "check_call", "computed", "computed_cascade",
    "dropout_operands", "expanded_mask", "expanded_slopes", "head_matrix", "log_matrix", "readable_matrix",
    "result_array", "state_of_call", "tensor_memory_way", "tiles_of", "way_of",
]  # fmt: skip

OPTIONAL_ARRAYS = (
    *("cu_seqlens_q", "cu_seqlens_k", "sinks", "alibi_slopes", "mask", "rng_state"),
    *("seqused_k", "page_table", "seqused_q", "leftpad_k"),
    *DESCALES,
)
"""Arrays that a call may have, in the order of the torch operator's arguments."""

_MOST = 64
"""Maximum number of key slices."""

_MOST_WAVES = 8
"""Waves of tiles from which keys are not divided."""

_TILE = 94
"""Time of a tile that does not depend on its queries, for heads of 64, in queries.

Measured with tiles of 64, 128 and 192 queries for 755 keys on an H200, 2026-11-28; 1k to 4k keys agree.
"""

_BESIDE, _COMBINED, _BYTES = 1, 3, 3.6e6
"""Cost model, in steps: overhead of a tile, cost of combining slices, and bytes of slices per step.

These bytes are written and read in 1.2 us at 3 TB/s.
"""


def kernels_of_slices(first: RowKernel, combine: CombineConfig | None) -> tuple[RowKernel, ...]:
    """Return a kernel of slices of the keys, and the one that combines them, if any."""
    return (first,) if combine is None else (first, RowKernel(combine.name, combine_text, (combine,)))


class AttentionDispatch(NamedTuple):
    """Kernels of an attention call."""

    form: Form  # the problem that the kernel computes
    first: int  # the first visible key
    config: AttentionConfig
    parts: int = 1  # slices of the keys, each computed by a block of its own
    combine: CombineConfig | None = None  # configuration of the kernel that combines the slices

    @property
    def problem(self) -> str:
        """Extents and the mask as text."""
        return _problem_text(self.form)

    def taken(self) -> Fields:
        """Return the kernel and the number of key slices as data."""
        return {"kernel": self.config.name, "split_keys": self.parts}

    def sources(self) -> tuple[RowKernel, ...]:
        """Return the kernels that are launched."""
        return self.kernels

    @property
    def kernels(self) -> tuple[RowKernel, ...]:
        """The kernels, in the order of their launches."""
        return kernels_of_slices(RowKernel(self.config.name, attention_text, (self.config,)), self.combine)


class TensorMemoryDispatch(NamedTuple):
    """The kernel of an attention call for a chip with tensor memory. ``first``, ``parts`` and ``combine`` are those of
    :class:`AttentionDispatch`: all keys are one slice.
    """

    form: Form
    config: sm100.Sm100Attention
    first: int = 0
    parts: int = 1
    combine: None = None

    @property
    def problem(self) -> str:
        """Extents and the mask as text."""
        return _problem_text(self.form)

    def taken(self) -> Fields:
        """Return the kernel and the number of key slices as data."""
        return {"kernel": self.config.name, "split_keys": self.parts}

    def sources(self) -> tuple[RowKernel, ...]:
        """Return the kernels that are launched."""
        return self.kernels

    @property
    def kernels(self) -> tuple[RowKernel, ...]:
        """The kernel."""
        return (RowKernel(self.config.name, sm100.sm100_attention_text, (self.config,), target=self.config.chip),)


Dispatch: TypeAlias = AttentionDispatch | TensorMemoryDispatch
"""The kernels of an attention call."""


def _problem_text(f: Form) -> str:
    """Return sequences, heads, queries, keys and elements per head, and the mask."""
    sizes = "x".join(map(str, (f.batch, f.heads, f.queries, f.keys, f.size)))
    return f"{sizes} {f.mask}{' packed' * f.packed}"


def way_of(form: Form, kernel: AttentionConfig | str | None = None, split_keys: int | None = None) -> AttentionDispatch:
    """Return the kernels of a call.

    Args:
        kernel: the name of a kernel, or a configuration whose tiles and schedule are used.
        split_keys: number of key slices, limited to the number of steps.

    Raises UnsupportedError.
    """
    if split_keys is not None and (type(split_keys) is not int or split_keys < 1):
        raise UnsupportedError(f"{CALL}: split_keys is {split_keys!r}; pass an int of 1 or more")
    asked, (form, first) = form, _one_query(form)
    try:
        config = _config(form, kernel)
        parts = _parts(form, config) if split_keys is None and kernel is None else split_keys or 1
        if config.split and split_keys is None:
            parts = max(2, _parts(form, config))
        parts = min(parts, _steps(form, config))
        split = parts > 1 or config.split
        config = config._replace(lse=form.lse or split, split=split)
        config.check()
        if isinstance(kernel, str) and config.name != kernel:
            raise ValueError(f'kernel "{kernel}" does not match this call; use "{config.name}" or a variant of it')
    except ValueError as e:
        raise UnsupportedError(f"{CALL}: {e}") from None
    combine = CombineConfig(form.result, config.value_head, asked.lse, parts >= 8) if split else None
    return AttentionDispatch(form, first, config, parts, combine)


def call_way(
    one: RowCall, form: Form, kernel: AttentionConfig | str | None = None, split_keys: int | None = None
) -> Dispatch:
    """Return the kernels of a call of a function for its GPU. On the interpreter, ``kernel`` may name any of them.

    Args:
        kernel, split_keys: as for :func:`way_of`.

    Raises UnsupportedError, also if the GPU runs no kernel of attention.
    """
    if one.cpu:
        named = re.search(r"-sm(\d+)\b", kernel) if isinstance(kernel, str) else None
        backend = None if named is None else unmeasured(int(named[1]))
    else:
        capability = one.capability()
        backend = of_tensor_memory(capability)
        if backend is None:
            WGMMA.check_gpu(capability, one.name)
    if backend is None:
        return way_of(form, kernel, split_keys)
    return tensor_memory_way(form, backend, kernel, split_keys, of_plan=False)


def tensor_memory_way(
    form: Form, backend: Backend, kernel: object = None, split_keys: int | None = None, *, of_plan: bool = True
) -> TensorMemoryDispatch:
    """Return the kernel of a call for a chip with tensor memory.

    Args:
        backend: the backend of the chip.
        kernel, split_keys: as for :func:`way_of`; None, or the name of the kernel and 1.
        of_plan: the call is of a plan, which may select another backend.

    Raises UnsupportedError.
    """
    refused = {
        f"{form.element} operands": form.element not in ("bf16", "f16"),
        f"heads of {form.size}": form.size > sm100.HEADS[-1],
        "v of another head size": form.values != form.size,
        "a window with a left side": form.mask not in ("full", "right"),
        "softcap": form.softcap,
        "scale <= 0": form.scale <= 0,
        "alibi_slopes": form.alibi,
        "mask": form.bias,
        "sinks": form.sinks,
        "seqused_k, page_table or leftpad_k": form.has_lengths,
        "dropout": form.dropout,
        "split_keys": (split_keys or 1) != 1,
    }
    found = [name for name, is_used in refused.items() if is_used]
    if found:
        where = f"kernel_cc={backend.chip}" if of_plan else f"the kernel for sm_{backend.chip}"
        cure = f"kernel_cc={WGMMA.chip}" if of_plan else 'device="cpu"'
        raise UnsupportedError(f"{CALL}: {where} does not support {', '.join(found)}; use {cure}")
    head = next(n for n in sm100.HEADS if n >= form.size)
    config = sm100.Sm100Attention(form.element, head, form.mask, form.lse, form.packed, backend.target)
    if kernel not in (None, config.name):
        raise UnsupportedError(
            f"{CALL}: kernel {kernel!r} does not match this call; omit kernel, or use {config.name!r}"
        )
    return TensorMemoryDispatch(form, config)


def _one_query(form: Form) -> tuple[Form, int]:
    """Return the problem that the kernel computes, and its first key.

    With one query, all heads that share keys see the same keys, so these heads are packed as queries without a mask.
    """
    if form.packed or form.queries != 1 or form.depends_on_head or form.has_lengths:
        return form, 0
    own = form.keys - 1 if form.from_end else 0
    low = max(0, own - form.left) if form.mask in ("left", "both") else 0
    high = min(form.keys, own + form.right + 1) if form.mask in ("right", "both") else form.keys
    found = form._replace(
        queries=form.sharing, heads=form.heads // form.sharing, sharing=1, keys=max(0, high - low), mask="full",
        from_end=False, left=0, right=0,
    )  # fmt: skip
    return found, min(low, form.keys)


def _config(form: Form, kernel: AttentionConfig | str | None) -> AttentionConfig:
    """Return the configuration of a call, without the split.  Raises ValueError."""
    if kernel is None:
        pack = packs(form)
        head, head_v = _heads(form, pack)
        rows = form.rows * form.sharing if pack else form.rows
        found = default_config(form.element, head, form.mask, few=rows <= 64)
        found = found._replace(**_fields(form), head_v=0 if head_v == head else head_v, pack=pack)
        found = _fitting(found)
        if found.transposes and head_v > 192 and (form.packed or found.reads_past_end):
            found = found._replace(tile_n=min(found.tile_n, 96))  # the producer needs registers
        if found.gathers:
            found = found._replace(pack=True)
            if form.rows == 1 and form.page % 8 and head <= 128 and head_v <= 128:
                # Measured for 16 x 16384 keys in pages of 1 on an H200, 2026-11-29: 281 us instead of 415 us.
                # Tiles of 128 keys are faster for 4 and 16 queries, and for pages of 24.
                found = found._replace(tile_n=64, stages=4)
        if found.tile_m > 128 and not found.block_n:
            tiles = [found, found._replace(tile_m=128)]
            if not form.packed and _parts(form, found) == 1 and not found.pack:
                tiles.append(found._replace(tile_m=64, q_stages=1))
            found = min(tiles, key=lambda c: _time(form, c))
        bounded = form.mask in ("right", "both") and not form.packed
        if bounded and form.rows > found.tile_m and tiles_of(form, found) <= found.sms:
            found = found._replace(pairs=False)
    elif isinstance(kernel, str):
        found = config_named(kernel)
    elif isinstance(kernel, AttentionConfig):  # pyright: ignore[reportUnnecessaryIsInstance]
        found = kernel
    else:
        raise ValueError(f"kernel is {kernel!r}; pass a kernel name or an AttentionConfig")
    head, head_v = _heads(form, found.pack)
    return found._replace(
        element=form.element, head=head, mask=form.mask, from_end=form.from_end, packed=form.packed, lse=form.lse,
        head_v=0 if head_v == head else head_v, **_fields(form),
    )  # fmt: skip


def _heads(form: Form, pack: bool) -> tuple[int, int]:
    """Return the head dimensions of a kernel: that of q and k, and that of v."""
    known, least = COPIED_HEADS if pack or form.page else HEADS, 64 if form.element in BYTES else 32
    head, head_v = (next(h for h in known if h >= max(n, least)) for n in (form.size, form.values))
    return head, head_v


def packs(form: Form) -> bool:
    """Return True if fewer tiles result from rows that are (query, head) pairs of the heads that share keys."""
    rows, share = form.rows, form.sharing
    if form.functions is not None or form.blocks[1] or form.dropout:
        return False
    return 0 < rows <= 64 and -(-rows * share // 64) < share


def _fields(form: Form) -> dict[str, Any]:
    """Return the fields of a configuration that the problem determines."""
    softcap = form.softcap > 0
    scaled = form.scale <= 0 and not (softcap or form.alibi or form.bias or form.functions is not None)
    functions = {"scaled": scaled, "softcap": softcap, "alibi": form.alibi, "bias": form.bias, "sinks": form.sinks}
    functions |= {"functions": form.functions, "block_m": form.blocks[0], "block_n": form.blocks[1]}
    of_sequences = {"used": form.used, "used_q": form.used_q, "padded": form.padded, "page": form.page}
    of_bytes = {"output": form.output, "descale": form.descale}
    of_sequences |= {"chunked": form.chunk > 0, "groups": form.each > 0, "dropout": form.dropout > 0}
    return {**functions, **of_sequences, **of_bytes}


def _fitting(config: AttentionConfig) -> AttentionConfig:
    """Return a default configuration with smaller tiles if functions of scores or the values' heads need the space."""
    found = config
    if (found.adjusts or found.functions is not None) and found.tile_m > 64:  # registers for addresses and slopes
        most = 64 if found.value_head > 128 else 96 if found.bias else 128
        found = found._replace(tile_m=128, tile_n=min(found.tile_n, most))
    if found.dropout and found.tile_m > 64:  # registers for random numbers
        most = 128 if found.value_head <= 128 else 80 if found.value_head == 192 else 64
        found = found._replace(tile_m=128, tile_n=min(found.tile_n, most))
    if found.value_head > found.head and found.tile_m > 64:
        wide = default_config(found.element, found.value_head, found.mask)
        found = found._replace(tile_m=wide.tile_m, tile_n=wide.tile_n, stages=wide.stages, q_stages=wide.q_stages)
    if found.page and not found._replace(tile_n=128).gathers:
        found = found._replace(tile_m=min(found.tile_m, 128), tile_n=128 if found.head + found.value_head < 512 else 64)
    if found.block_n:
        if found.head == found.value_head == 128 and found.tile_m > 64:
            found = found._replace(tile_n=128, q_stages=2)  # as for keys bounded on a side
        tile_n = 128 if found.tile_n >= 128 and found.block_n % 128 == 0 else 64
        tile_m = min(found.tile_m, 128 if found.block_m % 128 == 0 else 64)
        return found._replace(tile_m=tile_m, tile_n=tile_n)
    unit = 256 // found.bits
    while found.smem_bytes + 256 > SMEM and found.tile_n > unit:
        found = found._replace(tile_n=found.tile_n - unit if found.gathers or not found.page else found.tile_n // 2)
    return found


def tiles_of(form: Form, config: AttentionConfig) -> int:
    """Return the number of tiles of queries."""
    share = form.sharing if config.pack else 1
    return -(-max(1, form.rows * share) // config.tile_m) * (form.heads // share) * form.batch


def _time(form: Form, config: AttentionConfig) -> float:
    """Return the time of the multiprocessor that has most tiles, for heads of 64, in pairs of a query and a key."""
    tiles, longest = tiles_of(form, config), float(form.keys)
    mean = longest
    if form.mask != "full":  # a tile loads the keys that any of its rows sees
        wide = form.width if form.mask == "both" else form.keys / 2
        mean = min(mean, wide + (config.tile_m + config.tile_n) / 2)
    waves: float = -(-tiles // config.sms)
    if form.packed or _parts(form, config) > 1:  # the work is divided evenly
        waves = tiles / config.sms
    elif waves == 1 and form.mask != "both":
        mean = longest
    elif form.mask == "right":
        waves = 2 * -(-tiles // (2 * config.sms))
    return waves * (config.tile_m + _TILE) * mean


def _steps(form: Form, config: AttentionConfig) -> int:
    """Return the maximum number of key steps of a tile."""
    keys = -(-form.keys // form.batch) if form.packed and not form.page and not form.each else form.keys
    if form.mask == "both":
        keys = min(keys, form.width + config.tile_m)
    return max(1, -(-keys // config.tile_n))


def _parts(form: Form, config: AttentionConfig) -> int:
    """Return the number of key slices.

    The model selects the fastest number: it counts the steps of the multiprocessor that has most of them, and is not
    fitted to measurements.  Keys are not divided if there are many waves of tiles, because the last wave then takes
    little of the time.  Tiles that a mask shortens are divided only if there are fewer than multiprocessors.
    """
    tiles = tiles_of(form, config) if form.rows else 0
    most = _MOST_WAVES * config.sms if form.mask == "full" else config.sms
    if form.blocks[1]:  # the lists may have few of the blocks, so that slices gain less
        most = config.sms // 2
    if (form.packed and form.longest is None) or not 0 < tiles < most:
        return 1
    steps, part = _steps(form, config), form.rows * form.heads * form.batch * form.values * 8

    def time(parts: int) -> tuple[float, int]:
        turns = -(-tiles * parts // config.sms)
        combined = _COMBINED + parts * part / _BYTES if parts > 1 else 0.0
        return turns * (-(-steps // parts) + _BESIDE) + combined, parts

    return min(range(1, min(steps, _MOST) + 1), key=time)


# ------------------------------------------------------------------------------------------------------------- launches


def check_call(one: RowCall, form: Form, longest_keys: int | None = None) -> None:
    """Raise DeviceError if the call needs a GPU and there is none, and ShapeError if ``max_seqlen_k`` is too small.

    With ``CUTE_OP_CHECK=1`` also check the offsets of packed sequences in GPU memory, which waits for the GPU.

    Args:
        longest_keys: ``max_seqlen_k``.
    """
    one.check_gpu()
    is_used, on_gpu = "seqused_k" in one.views, one.x.device >= 0
    if not form.packed:
        if longest_keys is not None and longest_keys < form.keys and not form.page and not is_used:
            raise ShapeError(
                f"{one.name}: max_seqlen_k is {longest_keys}, but each sequence has {form.keys} keys; omit max_seqlen_k"
            )
        return
    if on_gpu and not flag("CUTE_OP_CHECK", False):
        return
    limits = ("q", form.queries, form.longest), ("k", form.keys, None if is_used else longest_keys)
    for letter, rows, longest in limits:
        key = f"cu_seqlens_{letter}"
        if key in one.views:
            found = one.on_host(key) if on_gpu else numbers_of(one.views[key])
            check_rising(key, found, rows)
            if longest is not None:
                check_longest(one.name, f"max_seqlen_{letter}", longest, found)


def computed(one: RowCall, form: Form, way: Dispatch) -> list[Any]:
    """Compute a call; return its results, followed by the memory of key slices."""
    result = result_array(one, form)
    logs = one.result(form.logs, "f32", "lse") if form.lse else None
    results = [result] if logs is None else [result, logs]
    if way.form.keys == 0:
        result[...] = 0
        if logs is not None:
            logs[...] = one.arrays["sinks"].reshape(-1, 1) if form.sinks else -math.inf
    elif form.rows and form.batch and form.heads:
        q, k, v = (readable_matrix(one, key, form) for key in ("q", "k", "v"))
        k, v = (_some_keys(x, way) for x in (k, v))
        out = head_matrix(view_of(result), form)
        lines = None if logs is None else log_matrix(logs, form)
        if way.form.queries != form.queries:
            q, out = (_heads_as_queries(x, form.sharing) for x in (q, out))
            lines = None if lines is None else _heads_as_queries(lines, form.sharing)
        f = way.form
        if way.combine is None:
            _launch(one, way, (q, k, v, out, lines))
            return results
        plain = f._replace(layout="bhsd", packed=False)
        batch, each = (1, f.queries) if f.packed else (f.batch, f.rows)
        sums = one.result((way.parts * batch, f.heads, each, f.values), "f32")
        ends = one.result((way.parts * batch, f.heads, each), "f32")
        results += [sums, ends]
        sums, ends, rows = view_of(sums), view_of(ends), batch * f.heads * each
        parts = head_matrix(sums, plain), log_matrix(ends, plain)
        _launch(one, way, (q, k, v, *parts))
        sums = sums._replace(shape=(f.values, rows, way.parts), strides=(1, f.values, rows * f.values))
        ends = ends._replace(shape=(rows, way.parts), strides=(1, rows))
        one.launch(way.kernels[1], sums, ends, out, lines)
    return results


class CascadeDispatch(NamedTuple):
    """Kernels of a cascade: attention to shared keys and to the sequences' own keys in slices, and the combination."""

    ways: tuple[AttentionDispatch | None, ...]  # for shared keys and for own keys; None if there are no such keys
    combine: CombineConfig


def cascade_of(form: Form, shared: Form) -> CascadeDispatch:
    """Return the kernels of a cascade.

    Args:
        form, shared: the problems of the sequences' own keys and of the shared keys.
    """
    ways: list[AttentionDispatch | None] = []
    for problem in (shared, form):
        if problem.keys:
            way = way_of(problem)
            ways.append(way._replace(config=way.config._replace(split=True, lse=True), combine=None))
        else:
            ways.append(None)
    parts = sum([way.parts for way in ways if way is not None])
    head = next(h for h in HEADS if h >= form.values)
    return CascadeDispatch(tuple(ways), CombineConfig(form.element, head, form.lse, parts >= 8))


def computed_cascade(one: RowCall, form: Form, shared: Form) -> list[object]:
    """Compute attention to shared keys, ``k_shared`` and ``v_shared``, and to each sequence's own keys.

    All slices of the keys have their partial results in one array (slices, B, S, H, D), which one kernel combines.  The
    kernel of shared keys has the queries of a group of sequences as rows, so it reads these keys once for a group.

    Returns the results, followed by the memory of the slices.
    """
    found = cascade_of(form, shared)
    result = result_array(one, form)
    logs = one.result(form.logs, "f32", "lse") if form.lse else None
    results: list[object] = [result] if logs is None else [result, logs]
    count = sum([way.parts for way in found.ways if way is not None])
    b, s, h, d = form.batch, form.queries, form.heads, form.values
    if b * s * h == 0:
        return results
    if count == 0:
        result[...] = 0
        if logs is not None:
            logs[...] = one.arrays["sinks"].reshape(-1, 1) if form.sinks else -math.inf
        return results
    sums, ends = (one.result((count, b, s, h, *more), "f32") for more in ((d,), ()))
    results += [sums, ends]
    sums, ends, rows = view_of(sums), view_of(ends), b * s * h
    first = 0
    for level, way in enumerate(found.ways):
        if way is None:
            continue
        is_shared = level == 0
        q = _rows_of_queries(one, form) if is_shared else readable_matrix(one, "q", form)
        k, v = (readable_matrix(one, f"{key}_shared" if is_shared else key, form) for key in ("k", "v"))
        lines, each, slices = (b * s, rows, way.parts) if is_shared else (s, s * h, way.parts * b)
        at = first * rows
        part = sums._replace(
            pointer=sums.pointer + 4 * at * d, shape=(lines, d, h, slices), strides=(h * d, 1, d, each * d)
        )
        log = ends._replace(pointer=ends.pointer + 4 * at, shape=(lines, h, slices), strides=(h, 1, each))
        if way.form.queries != lines:
            q, part, log = (_heads_as_queries(x, form.sharing) for x in (q, part, log))
        if first:  # A sink is a key of the first slice.
            way = way._replace(form=way.form._replace(sinks=""), config=way.config._replace(sinks=""))
        _launch(one, way, (q, k, v, part, log), is_shared)
        first += way.parts
    out, lines = (head_matrix(view_of(result), form), None if logs is None else log_matrix(logs, form))
    sums = sums._replace(shape=(d, rows, count), strides=(1, d, rows * d))
    ends = ends._replace(shape=(rows, count), strides=(1, rows))
    # The rows of the slices are ordered by head, then query, then sequence.
    out = out._replace(**{name: tuple([getattr(out, name)[i] for i in (2, 1, 0, 3)]) for name in ("shape", "strides")})
    if lines is not None:
        lines = lines._replace(
            **{name: tuple([getattr(lines, name)[i] for i in (1, 0, 2)]) for name in ("shape", "strides")}
        )
    c = found.combine
    one.launch(RowKernel(c.name, combine_text, (c,)), sums, ends, out, lines)
    return results


def _rows_of_queries(one: RowCall, form: Form) -> ArrayView:
    """Return the queries of all sequences as rows, (B S, D, H, 1), in place or copied."""
    q = readable_matrix(one, "q", form)
    (s, d, h, b), (row, _, head, sequence) = q.shape, q.strides
    if s > 1 and b > 1 and sequence != s * row:
        strides = (sequence, row, head, 1)
        q = head_matrix(one.contiguous(q._replace(shape=(b, s, h, d), strides=strides)), form._replace(layout="bshd"))
        row, head = q.strides[0], q.strides[2]
    return q._replace(shape=(b * s, d, h, 1), strides=(sequence if s == 1 and b > 1 else row, 1, head, 8))


def _launch(one: RowCall, way: Dispatch, matrices: Sequence[object], shared: bool = False) -> None:
    """Launch the kernel of attention.

    Args:
        matrices: q, k, v, the result and lse, or those of slices of the keys.
        shared: the keys are those that sequences of a cascade share.
    """
    f = way.form
    if isinstance(way, TensorMemoryDispatch):
        numbers = [f.scale * LOG2_E, f.right + (f.keys - f.queries) * f.from_end]
        if f.packed:
            sequences = one.views["cu_seqlens_q"], one.views["cu_seqlens_k"], f.rows, int(f.from_end)
            numbers = [f.scale * LOG2_E, f.right, *sequences]
        one.launch(way.kernels[0], *matrices, *numbers)
        return
    begins = [one.views.get(key) for key in (("cu_groups",) if shared else ("cu_seqlens_q", "cu_seqlens_k"))]
    # With a soft cap the kernel computes e^(2 x / cap).
    factor = LOG2_E * (2 * f.scale / f.softcap if f.softcap else f.scale)
    numbers = (f.rows, f.scale if way.config.has_score else factor, f.left, f.right)
    scores = [
        *_score_operands(one, f),
        *_lengths(one, f, *(("seqused_shared", "page_table_shared") if shared else ())),
        *captured_operands(one, f.functions),
        *block_lists(one, f, KEY_LISTS),
        *_descales(one, f),
        *dropout_operands(one, f),
    ]
    one.launch(way.kernels[0], *matrices, *begins, *numbers, way.parts if way.config.split else None, *scores)


def _descales(one: RowCall, form: Form) -> list[Any]:
    """Return the factors of 8-bit operands as (key heads, B).

    The problem of one query has the heads that share keys as queries, and thus as many heads as keys have.
    """
    shape = form.batch, form.heads // form.sharing
    found: list[Any] = []
    for key in DESCALES:
        if key[0] in form.descale:
            view = one.views[key]
            found.append(view._replace(shape=shape[::-1], strides=(expanded_strides(view, shape) or (0, 0))[::-1]))
    return found


def _lengths(one: RowCall, form: Form, used: str = "seqused_k", pages: str = "page_table") -> list[Any]:
    """Return the numbers of keys and queries, the keys before the first, the chunk, and the pages as (pages, B).

    Args:
        used, pages: names of the numbers of keys and of the page table.
    """
    found: list[Any] = [one.views[used]._replace(strides=(1,)), form.grown] if form.used else []
    for name, is_there in (("seqused_q", form.used_q), ("leftpad_k", form.padded)):
        found += [one.views[name]._replace(strides=(1,))] if is_there else []
    found += [n for n in (form.chunk, form.each) if n]
    if form.page:
        table = one.views[pages]
        found.append(table._replace(shape=table.shape[::-1], strides=table.strides[::-1]))
    return found


def _score_operands(one: RowCall, form: Form) -> list[Any]:
    """Return the operands of the functions of scores that the kernel takes."""
    found: list[Any] = [form.softcap * LOG2_E] if form.softcap else []
    if form.alibi:
        found.append(expanded_slopes(one.views["alibi_slopes"], form))
    if form.bias:
        found.append(expanded_mask(one.views["mask"], form))
    if form.sinks:
        found.append(one.flat("sinks"))
    return found


def state_of_call(call: str, q: Array, dropout_p: object, rng_state: Array) -> Array:
    """Return the seed and offset of dropout: those given, or new ones; None without dropout.  Raises OpError."""
    if not dropout_p or not dropout_of(call, dropout_p):
        return None
    return random_state(call, q) if rng_state is None else rng_state


def dropout_operands(one: RowCall, form: Form) -> list[Any]:
    """Return the seed and offset, the threshold of the random numbers, and the share of kept probabilities."""
    if not form.dropout:
        return []
    state = one.views["rng_state"]._replace(dtype="i64", strides=(1,))
    return [state, threshold_of(form.dropout), kept_share(form.dropout)]


def expanded_slopes(view: ArrayView, form: Form) -> ArrayView:
    """Return the slopes of ALiBi as (H, B)."""
    strides = expanded_strides(view, (form.batch, form.heads)) or (0, 0)
    return view._replace(shape=(form.heads, form.batch), strides=strides[::-1])


def expanded_mask(view: ArrayView, form: Form) -> ArrayView:
    """Return the mask, or an array of its shape, as (queries, keys, H, B)."""
    shape = (form.batch, form.heads, form.queries, form.keys)
    b, h, i, j = expanded_strides(view, shape) or (0, 0, 0, 0)
    element = "ui8" if view.dtype == "i1" else view.dtype
    return view._replace(shape=(*shape[2:], *shape[1::-1]), strides=(i, j, h, b), dtype=element)


def captured_operands(one: RowCall, functions: ScoreGraph | None) -> list[Any]:
    """Return the inputs of the functions of scores: the arrays ``captured 0``, ``captured 1``, …"""
    count = 0 if functions is None else len(functions.graph.inputs)
    return [captured_array(one.views[f"captured {i}"]) for i in range(count)]


def captured_array(view: ArrayView) -> ArrayView:
    """Return an array as an input of the functions of scores."""
    if not view.shape:
        view = view._replace(shape=(1,), strides=(1,))
    return view._replace(dtype="ui8") if view.dtype == "i1" else view


def block_lists(one: RowCall, form: Form, names: Sequence[str]) -> list[Any]:
    """Return the lists of a block mask: counts (blocks, H, B), and indices (listed blocks, blocks, H, B)."""
    found: list[Any] = []
    for name in names if form.blocks[1] else ():
        view = one.views[name]
        shape = (form.batch, form.heads, *view.shape[2:])
        strides = expanded_strides(view, shape) or ()
        found.append(view._replace(shape=shape[::-1], strides=strides[::-1]))
    return found


# ----------------------------------------------------------------------------------------------------------- matrices


def readable_matrix(one: RowCall, key: str, form: Form) -> ArrayView:
    """Return an array as (S, D, H, B), in place or copied."""
    view = one.views[key]
    form = form._replace(packed=form.packed and len(view.shape) == 3)
    return head_matrix(view if is_readable(view) else one.packed(key), form)


def _heads_as_queries(view: ArrayView, sharing: int) -> ArrayView:
    """Return an array of one query, (1, D, H, B) or (1, H, B), with the heads that share keys as queries."""
    (_, *element, heads, batch), (_, *one, step, steps) = view.shape, view.strides
    return view._replace(
        shape=(sharing, *element, heads // sharing, batch), strides=(step, *one, step * sharing, steps)
    )


def _some_keys(view: ArrayView, way: Dispatch) -> ArrayView:
    """Return keys or values, (S, D, H, B), from the first visible key on; pages are returned as they are."""
    if way.form.page:
        return view
    offset = way.first * view.strides[0] * numpy_dtype(view.dtype).itemsize
    return view._replace(pointer=view.pointer + offset, shape=(way.form.keys, *view.shape[1:]))


def head_matrix(view: ArrayView, form: Form) -> ArrayView:
    """Return an array as (S, D, H, B)."""
    if form.packed:
        rows, heads, size = view.shape
        shape, strides = (rows, size, heads, 1), (view.strides[0], 1, view.strides[1], 1)
    else:
        b, h, s, d = LAYOUTS[form.layout]
        shape, strides = (tuple([x[i] for i in (s, d, h, b)]) for x in (view.shape, view.strides))
    # The stride of a mode of extent 1 is arbitrary.
    unit = element_unit(view)
    steps = tuple(
        [unit if n == 1 and i != 1 else 1 if i == 1 else step for i, (n, step) in enumerate(zip(shape, strides))]
    )
    return view._replace(shape=tuple(shape), strides=steps)


def log_matrix(logs: Any, form: Form) -> ArrayView:
    """Return ``lse`` as (S, H, B)."""
    view = view_of(logs)
    shape, strides = view.shape, view.strides
    if form.packed:
        return view._replace(shape=(shape[1], shape[0], 1), strides=(strides[1], strides[0], 1))
    return view._replace(shape=shape[::-1], strides=strides[::-1])


def result_array(one: RowCall, form: Form) -> Any:
    """Return the given array for the result, or a new one with the order of rows and heads of q."""
    given, like = one.views.get("out"), one.views["q"]
    shape = (*like.shape[:-1], form.values)
    if given is None:
        if form.packed or like.strides[1] >= like.strides[2]:
            return one.result(shape, form.result)
        return one.ordered_result(shape, (0, 2, 1, 3), form.result)
    one.expect("out", shape)
    if 0 not in given.shape and not is_readable(given):
        if given.pointer % 16:
            raise AlignmentError(f"{one.name}: out has address {given.pointer:#x}; pass an out with 16-byte alignment")
        raise LayoutError(
            f"{one.name}: out has strides {given.strides}; pass an out with a last stride of 1 and others that are "
            f"multiples of {element_unit(given)}"
        )
    for key in [name for name in one.views if name != "out"]:
        if overlap(given, one.views[key]):
            raise LayoutError(f"{one.name}: out shares memory with {key}; pass a separate out")
    return one.arrays["out"]
