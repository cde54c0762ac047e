"""``cute-bench op --groups attention``: attention compared with torch's ``scaled_dot_product_attention``.

Peers are its back ends FLASH and CUDNN.  The cases are full and causal attention, 1k to 16k keys, heads of 64, 128 and
256 elements, grouped-query attention, packed sequences, and few queries of many keys.  FLOPs count only the keys that a
query attends to.
"""

# torch may be missing when types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect import op
from cute_dialect.kernels.attention.config import AttentionConfig
from cute_dialect.op.attending.report import AttentionExplanation
from cute_dialect.op.attending.ways import way_of
from cute_dialect.tools.bench.cases.elementwise_add import BenchError
from cute_dialect.tools.bench.cases.op import Trial

if TYPE_CHECKING:  # pragma: no cover
    import torch

__all__ = ["CASES", "Attention"]

TYPES = {"f16": "float16", "bf16": "bfloat16"}
LIMITS = {"f16": 2.0**-9, "bf16": 2.0**-6}
"""Maximum error relative to the element and to the RMS of the result; weights and result are rounded."""


class Attention(NamedTuple):
    """Attention of ``batch`` sequences of ``length`` queries and keys.

    ``heads`` query heads of ``head`` elements share ``heads_k`` key heads.  ``layout`` is the order of dimensions in
    memory.  ``packed`` sequences have half and twice the length alternately.  ``queries``, if set, is the number of
    queries, all of which attend to all keys.
    """

    length: int
    causal: bool = False
    head: int = 128
    batch: int = 4
    heads: int = 16
    heads_k: int = 16
    element: str = "bf16"
    layout: str = "bshd"
    packed: bool = False
    queries: int = 0

    @property
    def rows(self) -> int:
        """The number of queries of a sequence."""
        return self.queries or self.length

    @property
    def operation(self) -> str:
        """The mask and the head size, for example ``full 128``."""
        shared = " shared" if self.heads_k < self.heads else ""
        return f"{self._mask} {self.head}{shared}{' packed' if self.packed else ''}"

    @property
    def _mask(self) -> str:
        return f"{self.queries} queries" if self.queries else "causal" if self.causal else "full"

    @property
    def name(self) -> str:
        return f"{self.operation} {self.element} {self.batch}x{self.heads}x{self.length}"

    def explained(self, config: AttentionConfig | None = None) -> AttentionExplanation:
        """Return the explanation of the call, without packing."""
        q, k = (
            (self.batch, h, n, self.head) for h, n in ((self.heads, self.rows), (self.heads_k, self.length))
        )  # fmt: skip
        return op.explain(op.attention, q, k, causal=self.causal, element=self.element, kernel=config)

    def kernels(self) -> Mapping[str, Callable[[], str]]:
        """Return the kernels by name, with functions that generate their texts."""
        found = way_of(self.explained().form._replace(packed=self.packed))
        return {kernel.name: kernel.text for kernel in found.kernels}

    def lengths(self) -> list[int]:
        """Return the lengths of the packed sequences."""
        return [self.length // 2 if i % 2 else self.length * 3 // 2 for i in range(self.batch)]

    def trial(self, config: AttentionConfig | None = None) -> Trial:
        """Create operands of normally distributed values; ``config`` overrides the selected kernel."""
        import torch

        if self.packed:
            return _packed_trial(self)
        torch.manual_seed(0)
        kind = getattr(torch, TYPES[self.element])
        bhsd = self.layout == "bhsd"
        q, k, v = (
            torch.randn(self.batch, *((h, n) if bhsd else (n, h)), self.head, device="cuda", dtype=kind)
            for h, n in ((self.heads, self.rows), *[(self.heads_k, self.length)] * 2)
        )
        q, k, v = (x if bhsd else x.transpose(1, 2) for x in (q, k, v))

        def ours() -> torch.Tensor:
            return op.attention(q, k, v, causal=self.causal, kernel=config)

        def check() -> float:
            found, worst = ours(), 0.0
            rows = torch.arange(0, self.rows, max(1, self.rows // 64), device="cuda")
            for b, h in ((0, 0), (self.batch - 1, self.heads - 1)):
                other = h * self.heads_k // self.heads
                want = _exact(q[b, h], k[b, other], v[b, other], rows, self.causal)
                worst = max(worst, _share(self, found[b, h, rows], want))
            return worst

        size = 2 * self.batch * self.head * 2 * (self.rows * self.heads + self.length * self.heads_k)
        return Trial(check, ours, _peers(q, k, v, self.causal), size, float(self.explained().flops), "TFLOP/s")


def _exact(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: torch.Tensor, causal: bool) -> torch.Tensor:
    """Return some rows of a head in float64."""
    import torch

    scores = q[rows].double() @ k.double().T / math.sqrt(q.shape[1])
    if causal:
        scores.masked_fill_(torch.arange(k.shape[0], device="cuda")[None] > rows[:, None], -math.inf)
    return scores.softmax(-1) @ v.double()


def _share(case: Attention, found: torch.Tensor, want: torch.Tensor) -> float:
    """Return the largest error relative to the limit.  Raises :class:`BenchError`."""
    scale = want.square().mean().sqrt()
    share = float(((found.double() - want).abs() / (LIMITS[case.element] * (want.abs() + scale))).max())
    if not share <= 1:
        raise BenchError(f"{case.name}: the error is {share:.2f} times the limit")
    return share


def _peers(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> dict[str, Callable[[], object]]:
    """Return the back ends of torch that support the call."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    found: dict[str, Callable[[], object]] = {}
    shared = q.shape[1] != k.shape[1]
    for name, backend in (("flash", SDPBackend.FLASH_ATTENTION), ("cudnn", SDPBackend.CUDNN_ATTENTION)):

        def peer(backend: Any = backend) -> object:
            with sdpa_kernel(backend):
                return scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=shared)

        try:
            peer()
        except RuntimeError:  # The back end does not support the call.
            continue
        found[name] = peer
    return found


def _packed_trial(case: Attention) -> Trial:
    """Create packed sequences; the peer is the function that torch's FLASH back end calls."""
    import torch

    torch.manual_seed(0)
    kind, lengths = getattr(torch, TYPES[case.element]), case.lengths()
    q, k, v = (
        torch.randn(sum(lengths), h, case.head, device="cuda", dtype=kind)
        for h in (case.heads, case.heads_k, case.heads_k)
    )
    begins = torch.tensor([0, *lengths]).cumsum(0).to("cuda", torch.int32)
    most = max(lengths)

    def ours() -> torch.Tensor:
        return op.attention(q, k, v, causal=case.causal, cu_seqlens_q=begins, cu_seqlens_k=begins, max_seqlen_q=most)

    def peer() -> object:
        flash = torch.ops.aten._flash_attention_forward
        return flash(q, k, v, begins, begins, most, most, 0.0, case.causal, False)

    def check() -> float:
        found, worst, start = ours(), 0.0, 0
        for length in lengths:
            rows = torch.arange(0, length, max(1, length // 64), device="cuda")
            part = slice(start, start + length)
            want = _exact(q[part, 0], k[part, 0], v[part, 0], rows, case.causal)
            worst = max(worst, _share(case, found[part, 0][rows], want))
            start += length
        return worst

    size = 2 * sum(lengths) * case.head * 2 * (case.heads + case.heads_k)
    flops = sum(case._replace(length=n, batch=1).explained().flops for n in lengths)
    return Trial(check, ours, {"flash": peer}, size, float(flops), "TFLOP/s")


LENGTHS = (1024, 2048, 4096, 8192, 16384)

CASES = (
    *(Attention(n, causal) for causal in (False, True) for n in LENGTHS),
    *(Attention(n, causal, element="f16", layout="bhsd") for causal in (False, True) for n in (1000, 4096)),
    *(Attention(n, causal, 64, heads=32, heads_k=32) for causal in (False, True) for n in (1024, 4096, 16384)),
    *(Attention(n, causal, 256, heads=8, heads_k=8) for causal in (False, True) for n in (1024, 4096, 16384)),
    *(Attention(n, True, heads=32, heads_k=8) for n in (2048, 8192)),
    *(Attention(n, True, packed=True, batch=8) for n in (1024, 4096)),
    *(Attention(n, batch=b, heads=32, heads_k=8, queries=1) for b in (1, 16) for n in (4096, 32768)),
    *(Attention(n, batch=1, heads=8, heads_k=8, queries=128) for n in (4096, 32768)),
)
