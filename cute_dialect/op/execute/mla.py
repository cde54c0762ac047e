"""Multi-head latent attention: the choice of the configuration and of the number of key slices, and the launches.

>>> form = Form("bf16", "bshd", False, 4, 16, 16, 1, 4096, 576, 0.04, "full", True, 0, 0, False, None, 512)
>>> way = choose_latent(form)
>>> way.parts, way.config.name
(32, 'mla-bf16-576-full-lse-split-64x64')
"""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from typing import Any, NamedTuple

from cute_dialect.kernels.attention.combine import CombineConfig
from cute_dialect.kernels.attention.latent import latent_text
from cute_dialect.kernels.attention.latent_config import LatentConfig, latent_config_named
from cute_dialect.kernels.attention.scores import LOG2_E
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.execute.array_call import RowCall, RowKernel
from cute_dialect.op.execute.attention import (
    head_matrix,
    kernels_of_slices,
    log_matrix,
    readable_matrix,
    result_array,
)
from cute_dialect.op.problems.attention import Form
from cute_dialect.op.problems.mla import MLA, cache_view
from cute_dialect.runtime.arrays import view_of

__all__ = ["LatentDispatch", "choose_latent", "computed_latent"]

_MOST = 64
"""Maximum number of key slices."""

_STEP, _LOADED = 1.5, 2.0
"""Time of a step in us: of its matmuls, and of the load of its keys if all multiprocessors load other keys."""

_TILE, _COMBINED, _BANDWIDTH = 5.0, 4.0, 3e6
"""Time in us of a tile that does not depend on its keys, time of the kernel that combines slices, and bytes of slices
that are written or read per us."""


class LatentDispatch(NamedTuple):
    """Kernels of a call."""

    form: Form
    config: LatentConfig
    parts: int = 1  # slices of the keys, each computed by a block of its own
    combine: CombineConfig | None = None  # configuration of the kernel that combines the slices

    @property
    def tiles(self) -> int:
        """Number of tiles of rows."""
        return _tiles(self.form, self.config)

    @property
    def kernels(self) -> tuple[RowKernel, ...]:
        """The kernels, in the order of their launches."""
        return kernels_of_slices(RowKernel(self.config.name, latent_text, (self.config,)), self.combine)


def choose_latent(
    form: Form, kernel: LatentConfig | str | None = None, split_keys: int | None = None, longest: int | None = None
) -> LatentDispatch:
    """Return the kernels of a call.

    Args:
        form: the call.
        kernel: the name of a kernel, or a configuration whose schedule is used.
        split_keys: number of key slices, limited to the number of steps.
        longest: keys of the longest sequence, if known.

    Raises UnsupportedError.
    """
    if split_keys is not None and (type(split_keys) is not int or split_keys < 1):
        raise UnsupportedError(f"{MLA}: split_keys is {split_keys!r}; pass an int of 1 or more")
    try:
        found = latent_config_named(kernel) if isinstance(kernel, str) else kernel or LatentConfig()
        if not isinstance(found, LatentConfig):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"kernel is {kernel!r}; pass a kernel name or a LatentConfig")
        steps = -(-form.keys // found.tile_n)
        parts = _parts(form, found, longest) if split_keys is None else split_keys
        if found.split and split_keys is None:
            parts = max(2, parts)
        parts = max(1, min(parts, steps))
        split = parts > 1 or found.split
        config = found._replace(
            element=form.element, mask=form.mask, lse=form.lse or split, split=split, used=form.used, page=form.page
        )
        config.check()
        if isinstance(kernel, str) and config.name != kernel:
            raise ValueError(f'kernel "{kernel}" does not match this call; use "{config.name}" or a variant of it')
    except ValueError as e:
        raise UnsupportedError(f"{MLA}: {e}") from None
    combine = CombineConfig(form.element, form.values, form.lse, parts >= 8) if split else None
    return LatentDispatch(form, config, parts, combine)


def _tiles(form: Form, config: LatentConfig) -> int:
    """Return the number of tiles of (query, head) pairs."""
    return -(-form.queries * form.heads // config.tile_m) * form.batch


def _parts(form: Form, config: LatentConfig, longest: int | None) -> int:
    """Return the number of key slices for which the multiprocessor with most steps is done first."""
    tiles = _tiles(form, config)
    if tiles == 0:
        return 1
    keys = form.keys if longest is None else min(longest, form.keys)
    steps = max(1, -(-keys // config.tile_n))
    # Tiles of the same sequence load the same keys.
    step = max(_STEP, _LOADED * form.batch / tiles)
    part = 2 * 4 * form.batch * form.queries * form.heads * form.values

    def time(parts: int) -> float:
        waves = -(-tiles * parts // config.sms)
        combined = _COMBINED + parts * part / _BANDWIDTH if parts > 1 else 0.0
        return waves * (-(-steps // parts) * step + _TILE) + combined

    return min(range(1, min(steps, _MOST) + 1), key=time)


def computed_latent(one: RowCall, way: LatentDispatch) -> list[Any]:
    """Compute a call; return its results, followed by the memory of key slices."""
    f = way.form
    result = result_array(one, f)
    logs = one.result(f.logs, "f32", "lse") if f.lse else None
    results = [result] if logs is None else [result, logs]
    if not (f.queries and f.batch and f.heads):
        return results
    if f.keys == 0 or 0 in one.views["cache"].shape:
        result[...] = 0
        if logs is not None:
            logs[...] = -math.inf
        return results
    q, cache = readable_matrix(one, "q", f), head_matrix(cache_view(one.views["cache"]), f)
    out = head_matrix(view_of(result), f)
    lines = None if logs is None else log_matrix(logs, f)
    more = [one.views["seqused_k"]._replace(strides=(1,))] if f.used else []
    if f.page:
        table = one.views["page_table"]
        more.append(table._replace(shape=table.shape[::-1], strides=table.strides[::-1]))
    if way.combine is None:
        one.launch(way.kernels[0], q, cache, out, lines, f.scale * LOG2_E, *more)
        return results
    rows = f.batch * f.heads * f.queries
    sums = one.result((way.parts * f.batch, f.heads, f.queries, f.values), "f32")
    ends = one.result((way.parts * f.batch, f.heads, f.queries), "f32")
    results += [sums, ends]
    sums, ends, plain = view_of(sums), view_of(ends), f._replace(layout="bhsd")
    one.launch(
        way.kernels[0], q, cache, head_matrix(sums, plain), log_matrix(ends, plain), f.scale * LOG2_E, way.parts, *more
    )
    one.launch(
        way.kernels[1],
        sums._replace(shape=(f.values, rows, way.parts), strides=(1, f.values, rows * f.values)),
        ends._replace(shape=(rows, way.parts), strides=(1, rows)),
        out,
        lines,
    )
    return results
