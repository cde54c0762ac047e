"""How a call of attention is computed: what it is to the kernel, its configuration, in how many parts its keys are.

>>> form = Form("bf16", "bhsd", False, 1, 32, 4, 1, 8192, 128, 0.1, "right", True, 0, 0, False, None)
>>> way = way_of(form)                            # one query: the heads that share keys are queries to the kernel
>>> way.form.queries, way.form.heads, way.form.mask, way.parts, way.config.name
(4, 8, 'full', 16, 'attention-bf16-128-full-lse-split-64x128-s3')
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.kernels.attention.combine import CombineConfig, combine_text
from cute_dialect.kernels.attention.config import HEADS, AttentionConfig, config_named, default_config
from cute_dialect.kernels.attention.forward import attention_text
from cute_dialect.op.attending.form import CALL, Form
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.plans.saved import Fields
from cute_dialect.op.rows.call import RowKernel

__all__ = ["Way", "way_of"]

_MOST = 64
"""Parts of the keys at most."""

_OF_128 = 1.15
"""What a row takes in tiles of 128 queries, in times of one in tiles of 192, which read keys for more of them (heads of
64, 1k to 4k keys; an H200, 2026-11-27)."""

_BESIDE, _COMBINED, _BYTES = 1, 3, 3.6e6
"""What a tile takes beside its steps, and what combining parts takes, in times of a step; bytes of parts that are
written and read in that time (1.2 us of 3 TB/s)."""


class Way(NamedTuple):
    """``form``: what the kernel computes, of keys from ``first`` on; ``config``: its configuration; ``parts``: of the
    keys, each computed by a block of its own; ``combine``: the configuration of what combines them.
    """

    form: Form
    first: int
    config: AttentionConfig
    parts: int = 1
    combine: CombineConfig | None = None

    @property
    def problem(self) -> str:
        """The extents: sequences, heads, queries, keys, elements of a head, and which keys are seen."""
        f = self.form
        sizes = "x".join(map(str, (f.batch, f.heads, f.queries, f.keys, f.size)))
        return f"{sizes} {f.mask}{' packed' * f.packed}"

    def taken(self) -> Fields:
        """Return the kernel, and parts of the keys, as data."""
        return {"kernel": self.config.name, "split_keys": self.parts}

    def sources(self) -> tuple[RowKernel, ...]:
        """Return the kernels that are launched."""
        return self.kernels

    @property
    def kernels(self) -> tuple[RowKernel, ...]:
        """The kernels that are launched, one after the other."""
        found = (RowKernel(self.config.name, attention_text, (self.config,)),)
        if self.combine is None:
            return found
        return (*found, RowKernel(self.combine.name, combine_text, (self.combine,)))


def way_of(form: Form, kernel: AttentionConfig | str | None = None, split_keys: int | None = None) -> Way:
    """Return how a call is computed; ``kernel``: the name of one, or a configuration whose tiles and schedule are
    taken; ``split_keys``: parts of the keys, as many as there are steps at most.  Raises UnsupportedError.
    """
    if split_keys is not None and (isinstance(split_keys, bool) or split_keys < 1):
        raise UnsupportedError(f"{CALL}: expected split_keys of 1 or more, got {split_keys!r}")
    if form.packed and (split_keys or 1) > 1:
        raise UnsupportedError(f"{CALL}: expected no split_keys of packed sequences, got {split_keys}")
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
            raise ValueError(f'expected a kernel like "{config.name}" for this call, got "{kernel}"')
    except ValueError as e:
        raise UnsupportedError(f"{CALL}: {e}") from None
    combine = CombineConfig(form.element, config.head, asked.lse, parts >= 8) if split else None
    return Way(form, first, config, parts, combine)


def _one_query(form: Form) -> tuple[Form, int]:
    """Return what a call is to the kernel, and its first key: of one query all keys that it sees are seen by all heads
    that share them, which become queries.
    """
    if form.packed or form.queries != 1:
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
    """Return the configuration of a call but for its parts.  Raises ValueError."""
    head = next(h for h in HEADS if h >= form.size)
    if kernel is None:
        found = default_config(form.element, head, form.mask, few=not form.packed and form.queries <= 64)
        if found.tile_m > 128:
            found = min((found, found._replace(tile_m=128)), key=lambda c: _rows_taken(form, c))
    elif isinstance(kernel, str):
        found = config_named(kernel)
    elif isinstance(kernel, AttentionConfig):  # pyright: ignore[reportUnnecessaryIsInstance]
        found = kernel
    else:
        raise ValueError(f"expected a kernel's name or an AttentionConfig, got {kernel!r}")
    return found._replace(
        element=form.element, head=head, mask=form.mask, from_end=form.from_end, packed=form.packed, lse=form.lse
    )  # fmt: skip


def _rows_taken(form: Form, config: AttentionConfig) -> float:
    """Return what the rows of a head take, the empty ones of the last tile too: in rows that see all keys."""
    seen = float(form.keys)
    if form.mask != "full":  # all keys of a tile that some row of it sees
        wide = form.left + form.right if form.mask == "both" else form.keys / 2
        seen = min(seen, wide + (config.tile_m + config.tile_n) / 2)
    rows = -(-max(1, form.rows) // config.tile_m) * config.tile_m
    return rows * seen * (_OF_128 if config.tile_m == 128 else 1.0)


def _steps(form: Form, config: AttentionConfig) -> int:
    """Return the steps of keys of a tile, at most."""
    keys = form.keys
    if form.mask == "both":
        keys = min(keys, form.left + form.right + config.tile_m)
    return max(1, -(-keys // config.tile_n))


def _parts(form: Form, config: AttentionConfig) -> int:
    """Return in how many parts keys are: where there are fewer tiles than multiprocessors, as many as are done first.

    Time is counted in steps, those of the multiprocessor that has most of them: a model, nothing of it is measured.
    """
    tiles = -(-form.rows // config.tile_m) * form.heads * form.batch
    if form.packed or not 0 < tiles < config.sms:
        return 1
    steps, part = _steps(form, config), form.rows * form.heads * form.batch * form.size * 8

    def time(parts: int) -> tuple[float, int]:
        turns = -(-tiles * parts // config.sms)
        combined = _COMBINED + parts * part / _BYTES if parts > 1 else 0.0
        return turns * (-(-steps // parts) + _BESIDE) + combined, parts

    return min(range(1, min(steps, _MOST) + 1), key=time)
