"""Explanation of calls of multi-head latent attention: the result of :func:`cute_dialect.op.explain`.

>>> print(explain_latent((64, 1, 128, 576), (64, 4096, 576), element="bf16"))
latent attention of 64 sequences, 128 heads, 1 query, 4096 keys, bf16
  kernel    mla-bf16-576-full-64x64
  tiles     128 of 64 queries and heads, 64 keys per step, 128 blocks of 384 threads
  memory    231936 bytes of shared memory
  bound     73.8 us: 73 GFLOP on tensor cores (73.8 us), 320 MB of memory (66.6 us) (an H200)
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from cute_dialect.kernels.attention.latent_config import LatentConfig
from cute_dialect.op.errors import ArgumentError, UnsupportedError
from cute_dialect.op.execute.mla import LatentDispatch, choose_latent
from cute_dialect.op.explanations.attention import BANDWIDTH, PEAK, multiplications, view_or_shape
from cute_dialect.op.explanations.gemm import Explanation, Line
from cute_dialect.op.problems.attention import Form, is_readable
from cute_dialect.op.problems.mla import MLA, latent_form

Shaped: TypeAlias = Any
"""An array, or the shape of a contiguous one."""


@dataclass(frozen=True, kw_only=True)
class LatentExplanation(Explanation):
    """Kernels of a call of latent attention and lower bounds of its time, in microseconds."""

    form: Form  # the call, checked
    way: LatentDispatch  # the kernels and their configurations
    compute_bound: float  # of the tensor cores
    memory_bound: float

    @property
    def config(self) -> LatentConfig:
        """The kernel's configuration."""
        return self.way.config

    def _title(self) -> str:
        f = self.form
        queries = f"{f.queries} {'query' if f.queries == 1 else 'queries'}"
        return f"latent attention of {f.batch} sequences, {f.heads} heads, {queries}, {f.keys} keys, {f.element}"

    def _layout(self) -> Iterator[Line]:
        c, tiles = self.config, self.way.tiles
        blocks = f"{min(c.sms, tiles * self.way.parts)} blocks of {c.threads} threads"
        yield "tiles", f"{tiles} of {c.tile_m} queries and heads, {c.tile_n} keys per step, {blocks}"
        if self.form.page:
            loads = "copied by cp.async" if c.gathers else "loaded by TMA"
            yield "pages", f"of {self.form.page} keys, {loads}"
        yield "memory", f"{c.smem_bytes} bytes of shared memory"

    def _limits(self) -> str:
        return (
            f"{self.flops / 1e9:.3g} GFLOP on tensor cores ({self.compute_bound:.1f} us), {self.bytes / 1e6:.3g} MB of "
            f"memory ({self.memory_bound:.1f} us) (an H200)"
        )

    def _after(self) -> Iterator[Line]:
        if self.way.parts > 1:
            yield "split", f"keys in {self.way.parts} slices, combined by {self.way.kernels[1].name}"
        for name in self.copies:
            yield "copied", f"{name[0]}: its rows are not contiguous and aligned to 16 bytes"


def explain_latent(
    q: Shaped,
    cache: Shaped,
    *,
    page_table: Shaped = None,
    seqused_k: Shaped = None,
    max_seqlen_k: int | None = None,
    causal: bool = False,
    scale: float | None = None,
    lse: bool = False,
    element: str = "f16",
    **chosen: Any,
) -> LatentExplanation:
    """Return the explanation of a call of :func:`cute_dialect.op.mla_decode`.

    Arrays may be replaced by shapes, for contiguous arrays of type ``element``.  All keys of the cache are counted, or
    ``max_seqlen_k`` keys of each sequence.

    Args:
        chosen: ``kernel`` and ``split_keys``.
    """
    for key in chosen:
        if key not in ("kernel", "split_keys"):
            raise ArgumentError(f"explain: {MLA} is not explained with {key}; omit it")
    given = {"q": (q, element), "cache": (cache, element), "page_table": (page_table, "i32")}
    given["seqused_k"] = seqused_k, "i32"
    views = {name: view_or_shape(MLA, x, kind) for name, (x, kind) in given.items() if x is not None}
    if views["q"].dtype not in ("bf16", "f16"):
        raise UnsupportedError(f"{MLA}: q has dtype {views['q'].dtype}; pass an array of bf16 or f16")
    form = latent_form(views, causal, scale, lse, max_seqlen_k)
    way = choose_latent(form, longest=max_seqlen_k, **chosen)
    seen = form if max_seqlen_k is None else form._replace(keys=min(form.keys, max_seqlen_k))
    flops = 2 * (form.size + form.values) * form.heads * form.batch * multiplications(seen)
    rows = form.batch * form.queries * form.heads
    moved = 2 * (form.batch * seen.keys * form.size + rows * (form.size + form.values)) + 4 * rows * lse
    bounds = flops / PEAK / 1e6, moved / BANDWIDTH / 1e6
    q_view = views["q"]
    copies = () if is_readable(q_view) else (("q", 2 * rows * form.size),)
    return LatentExplanation(
        operation=MLA,
        kernel=way.config.name,
        flops=flops,
        bytes=moved,
        bound=max(bounds),
        kernels=way.kernels,
        form=form,
        way=way,
        compute_bound=bounds[0],
        memory_bound=bounds[1],
        copies=copies,
    )
