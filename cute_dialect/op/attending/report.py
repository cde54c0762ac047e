"""Say how attention is computed: what :func:`cute_dialect.op.explain` gives for ``op.attention``.

>>> print(explained_attention((4, 16, 4096, 128), (4, 4, 4096, 128), causal=True))
attention of 4 sequences, 16 heads of 128 on 4, 4096 queries, 4096 keys, f16
  kernel    attention-f16-128-right-128x128
  tiles     2048 of 128 queries, 128 keys a step, 132 blocks of 384 threads
  taken     one head after the other, in pairs of as many keys
  memory    2 stages of K and V, 2 of Q: 196608 bytes of shared memory
  bound     277.9 us: 275 GFLOP (tensor cores, an H200)
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from itertools import accumulate
from operator import mul
from typing import Any, NamedTuple

from cute_dialect.kernels.attention.config import AttentionConfig
from cute_dialect.op.attending.functions import Form, config_of, form_of, is_readable
from cute_dialect.op.dtypes import element_name
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.runtime.arrays import ArrayView

__all__ = ["AttentionExplanation", "explained_attention", "multiplications"]

_PEAK = 989.5
"""TFLOP/s of 16-bit products (NVIDIA H100 and H200 data sheets)."""


class AttentionExplanation(NamedTuple):
    """How attention is computed; printed, it says all of this.

    ``form``: what is asked for; ``config``: the kernel's; ``copied``: arrays that are copied first; ``flops``: of the
    products of queries with the keys that they see, and of their weights with values; ``bound``: microseconds that
    these take at the least.
    """

    form: Form
    config: AttentionConfig
    copied: tuple[str, ...]
    flops: int
    bound: float

    @property
    def tiles(self) -> int:
        """Tiles of queries."""
        form = self.form
        return -(-form.queries // self.config.tile_m) * form.heads * form.batch

    def __str__(self) -> str:
        f, c = self.form, self.config
        shared = f" on {f.heads // f.sharing}" if f.sharing > 1 else ""
        order = "one head after the other" + (", in pairs of as many keys" if c.bounded[1] else "")
        lines = [
            f"attention of {f.batch} sequences, {f.heads} heads of {f.size}{shared}, {f.queries} queries, {f.keys} "
            f"keys, {f.element}",
            f"  kernel    {c.name}",
            f"  tiles     {self.tiles} of {c.tile_m} queries, {c.tile_n} keys a step, {min(c.sms, self.tiles)} blocks "
            f"of {c.threads} threads",
            f"  taken     {order}",
            f"  memory    {c.stages} stages of K and V, {c.q_stages} of Q: {c.smem_bytes} bytes of shared memory",
            f"  bound     {self.bound:.1f} us: {self.flops / 1e9:.3g} GFLOP (tensor cores, an H200)",
        ]
        lines += [f"  copied    {name}: its heads are not contiguous at whole 16 bytes" for name in self.copied]
        return "\n".join(lines)


def explained_attention(
    q: Any, k: Any, v: Any = None, *, causal: bool | str = False, scale: float | None = None, window: Any = None,
    lse: bool = False, layout: str = "bhsd", element: str = "f16", config: AttentionConfig | None = None,
) -> AttentionExplanation:  # fmt: skip
    """Return how attention is computed; arrays, or shapes of contiguous arrays of type ``element``.

    Packed sequences are not told of: how long they are the GPU knows.  Raises what the function does.
    """
    views = {"q": _view(q, element), "k": _view(k, element), "v": _view(k if v is None else v, element)}
    if views["q"].dtype not in ("bf16", "f16"):
        raise UnsupportedError(f"attention: expected q of bf16, f16, got {views['q'].dtype}")
    form = form_of(views, causal, scale, window, lse, layout, None, views["q"].dtype)
    flops = 4 * form.size * form.heads * form.batch * multiplications(form)
    copied = tuple([name for name, view in views.items() if not is_readable(view)])
    return AttentionExplanation(form, config_of(form, config), copied, flops, flops / _PEAK / 1e6)


def multiplications(form: Form) -> int:
    """Return how many pairs of a query and a key that it sees a head has."""
    left, right = form.mask in ("left", "both"), form.mask in ("right", "both")
    if not left and not right:
        return form.queries * form.keys
    shift, total = form.keys - form.queries if form.from_end else 0, 0
    for row in range(form.queries):
        low = max(0, row + shift - form.left) if left else 0
        high = min(form.keys, row + shift + form.right + 1) if right else form.keys
        total += max(0, high - low)
    return total


def _view(x: Any, element: str) -> ArrayView:
    """Return an array, or a shape, as far as strides and type go."""
    if isinstance(x, tuple | list):
        shape = tuple(x)
        steps = list(accumulate(reversed(shape[1:]), mul, initial=1))
        return ArrayView(0, shape, tuple(reversed(steps)), element, 0, "cuda", None)
    shape = tuple(x.shape)
    if hasattr(x, "stride"):
        strides = tuple(x.stride())
    else:
        strides = tuple([step // x.dtype.itemsize for step in x.strides])
    return ArrayView(0, shape, strides, element_name(x.dtype), 0, "cuda", None)
