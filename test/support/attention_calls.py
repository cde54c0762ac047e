"""Attention calls of ``test/gpu/test_attention_gpu.py``, and the kernels that they launch."""

from __future__ import annotations

from typing import Any, NamedTuple

from cute_dialect.kernels.attention.config import AttentionConfig
from cute_dialect.op.execute.array_call import RowKernel
from cute_dialect.op.execute.attention import way_of
from cute_dialect.op.problems.attention import Form, form_of
from cute_dialect.runtime.arrays import ArrayView

__all__ = ["CALLS", "PACKED", "Call", "kernels"]


class Call(NamedTuple):
    """A call of ``op.attention``: sizes, layouts, mask, kernel, and the number of key splits."""

    queries: int
    keys: int
    head: int = 128
    batch: int = 2
    heads: int = 4
    heads_k: int = 4
    element: str = "bf16"
    layout: str = "bhsd"
    causal: bool | str = False
    window: tuple[int | None, int | None] | None = None
    config: AttentionConfig | None = None
    split: int | None = None

    def form(self, packed: bool = False) -> Form:
        views: dict[str, ArrayView] = {}
        for name, rows, heads in (("q", self.queries, self.heads), ("k", self.keys, self.heads_k)):
            shape = (self.batch, heads, rows, self.head)
            views[name] = ArrayView(
                0, shape, (heads * rows * self.head, rows * self.head, self.head, 1), self.element, 0, "", None
            )
        views["v"] = views["k"]
        found = form_of(views, self.causal, None, self.window, True, "bhsd", None, self.element)
        from_end = self.causal == "bottom_right" and (packed or self.queries != self.keys)
        return found._replace(packed=packed, from_end=from_end)


CALLS = (
    Call(1024, 1024), Call(1000, 1000, layout="bshd"), Call(1, 777), Call(333, 1), Call(129, 2049, batch=1),
    Call(1024, 1024, causal=True, layout="bshd"), Call(515, 1030, causal=True), Call(515, 1030, causal="bottom_right"),
    Call(1030, 515, causal="bottom_right"), Call(4097, 4097, batch=1, heads=40, heads_k=8, causal=True),
    Call(1000, 1000, window=(100, 7)), Call(1000, 1300, window=(128, None), causal="bottom_right"),
    Call(700, 900, window=(None, 60)), Call(700, 900, window=(60, None)), Call(300, 300, 120),
    Call(300, 300, 96, causal=True),
    Call(1111, 999, 64), Call(1111, 999, 64, causal=True, heads=6, heads_k=2), Call(1000, 1000, 40, window=(64, 0)),
    Call(500, 700, 256), Call(700, 700, 256, causal=True), Call(700, 700, 200, window=(90, 30)),
    Call(1, 8192, heads=32, heads_k=4, causal="bottom_right"), Call(1, 6000, 64, heads=16, heads_k=2, layout="bshd"),
    Call(1, 5000, heads=8, heads_k=8, layout="bshd", window=(1000, None), causal="bottom_right"),
    Call(16, 4096, batch=1, causal="bottom_right"), Call(700, 700, causal=True, split=3), Call(1, 1, causal=True),
    Call(100, 3000, 256, batch=1, heads=2, heads_k=1, split=5), Call(515, 1030, window=(90, 7), split=20),
    Call(1024, 1000, element="f16"), Call(1024, 1024, element="f16", causal=True),
    *(
        Call(1030, 1030, config=config)
        for config in (
            AttentionConfig(overlap=False), AttentionConfig(pingpong=False), AttentionConfig(lazy=False),
            AttentionConfig(tile_n=128, stages=3), AttentionConfig(tile_m=192, tile_n=96), AttentionConfig(sms=3),
            AttentionConfig(tile_m=64, tile_n=128), AttentionConfig(tile_n=64, q_stages=2, stages=4),
        )
    ),
)  # fmt: skip

PACKED = (
    Call(0, 0), Call(0, 0, causal=True), Call(0, 0, causal="bottom_right", heads=6, heads_k=2),
    Call(0, 0, 64, causal="bottom_right"), Call(0, 0, 256), Call(0, 0, window=(50, 20)),
)  # fmt: skip
"""Calls on packed sequences of different lengths."""


def kernels() -> list[RowKernel]:
    """Return the kernels of all calls, with and without the log-sum-exp result."""
    found: dict[str, RowKernel] = {}
    for packed, calls in ((False, CALLS), (True, PACKED)):
        for call in calls:
            for lse in (False, True):
                form: Any = call.form(packed)._replace(lse=lse)
                for kernel in way_of(form, call.config, call.split).kernels:
                    found[kernel.name] = kernel
    return list(found.values())
