"""``cute-bench op --groups attention attention_8_bit attention_backward``: attention compared with torch.

Peers are the back ends FLASH and CUDNN of ``scaled_dot_product_attention``.  The cases are full and causal attention
with 1k to 16k keys and heads of 64, 128 and 256 elements.  Others have shared heads, packed sequences, windows, or few
queries of many keys.  FLOPs count only the keys that a query attends to.  Gradients are those of ``torch.autograd``.
Torch has no attention of 8-bit floats, so that its peers compute with the same numbers in bf16.

``cute-bench attention`` measures the default configurations, and with ``--tune`` also those of :func:`space`, tiles,
stages and schedules.  ``kernels.attention.config.default_config`` should return the fastest of each case.

    cute-bench attention --tune --build build/attention && cute-bench attention --tune --run build/attention
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from unittest.mock import patch

from cute_dialect import op
from cute_dialect.kernels.attention.config import AttentionConfig, default_config
from cute_dialect.kernels.attention.forward import attention_text
from cute_dialect.op.explanations.attention import AttentionBackwardExplanation, AttentionExplanation
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench import runner
from cute_dialect.tools.bench.runner import (
    BenchError,
    Benchmark,
    Row,
    Say,
    Text,
    Trial,
    build_kernels,
    check_limit,
    row,
    speeds,
)

if TYPE_CHECKING:  # pragma: no cover
    import torch


LIMITS = {"f16": 2.0**-9, "bf16": 2.0**-6}
"""Maximum error relative to the element and to the RMS of the result; weights and result are rounded."""

ROUNDING = {"f16": (2.0**-11, 2.0**-25), "bf16": (2.0**-8, 0.0)}
"""Largest relative rounding error of an element type, and largest error of f16 numbers below its normal range."""

BYTES = ("f8E4M3FN", "f8E5M2")
"""8-bit element types, whose results are bf16. Their probabilities are rounded to e4m3."""

ROUNDED_BYTE = 2.0**-4
"""Largest relative rounding error of e4m3."""

BYTE_ERROR = 0.04
"""Maximum error of attention of 8-bit floats, relative to the norm of the result."""

DEVIATIONS = 4
"""Errors of a gradient allowed by :meth:`Attention.check_gradient`, in units of its rounding error."""


class Attention(NamedTuple):
    """Attention of ``queries`` on ``keys`` for ``heads`` heads of ``head`` elements that share ``heads_k`` key heads.

    ``lengths`` are those of packed sequences, with as many queries as keys, else empty.  ``window`` is the number of
    keys before and after the query's own, or None.  ``backward`` computes the gradients of q, k and v.
    """

    element: str
    head: int
    batch: int
    heads: int
    heads_k: int
    queries: int
    keys: int
    causal: str
    window: tuple[int, int] | None
    layout: str
    lengths: tuple[int, ...]
    backward: bool

    @property
    def operation(self) -> str:
        """The kind: ``packed``, ``window``, ``decode``, ``causal`` or ``full``, followed by ``backward``."""
        if self.lengths:
            kind = "packed"
        else:
            kind = "window" if self.window else "decode" if self.queries <= 16 else "causal" if self.causal else "full"
        return kind + " backward" * self.backward

    @property
    def name(self) -> str:
        said = f"{self.operation} {self.element} d{self.head} h{self.heads}/{self.heads_k} {self.layout}"
        if self.lengths:
            return f"{said} {'causal ' * bool(self.causal)}{'+'.join(map(str, self.lengths))}"
        more = f" {self.causal}" * bool(self.causal) + (
            f" window {self.window[0]},{self.window[1]}" if self.window else ""
        )
        return f"{said} {self.batch}x{self.queries}x{self.keys}{more}"

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """The numbers of queries and keys of each sequence."""
        return [(n, n) for n in self.lengths] or [(self.queries, self.keys)] * self.batch

    @property
    def flops(self) -> float:
        """FLOPs, counting the keys that a query attends to; backward has 2.5 times those of forward."""
        pairs = 0.0
        for queries, keys in self.sizes:
            seen = queries * keys
            if self.causal:
                seen = queries * keys - queries * (queries - 1) / 2 if keys >= queries else keys * (keys + 1) / 2
                if self.causal == "top_left" and keys >= queries:
                    seen = queries * (queries + 1) / 2
            if self.window:
                seen = min(seen, queries * (sum(self.window) + 1))
            pairs += seen
        return 4.0 * pairs * self.heads * self.head * (2.5 if self.backward else 1)

    @property
    def traffic(self) -> int:
        """The bytes of q, k, v and the result, and of their gradients."""
        queries, keys = (sum(x) for x in zip(*self.sizes))
        size = 1 if self.element in BYTES else 2
        rows = (size + 2) * queries * self.heads + 2 * size * keys * self.heads_k
        return self.head * rows * (2 if self.backward else 1)

    def tiny(self) -> Attention:
        """Return a call with few rows and the same mask."""
        shared = self.heads // self.heads_k
        queries = min(self.queries, 40 + self.queries % 8)
        keys = self.keys if self.keys <= 64 else 64 + self.keys % 8
        keys = queries if self.keys == self.queries else max(keys, queries + 1)
        window = None if self.window is None else (min(self.window[0], 20), min(self.window[1], 20))
        return self._replace(
            batch=1, heads=shared, heads_k=1, queries=queries, keys=keys, window=window,
            lengths=tuple(min(n, 20 + n % 8) for n in self.lengths[:2]),
        )  # fmt: skip

    def seen(self, rows: torch.Tensor, queries: int, keys: int) -> torch.Tensor:
        """Return a mask of the keys that some queries of a sequence attend to."""
        import torch

        own = rows[:, None] + (keys - queries if self.causal == "bottom_right" else 0)
        at = torch.arange(keys, device=rows.device)[None]
        seen = torch.ones(len(rows), keys, dtype=torch.bool, device=rows.device)
        if self.causal:
            seen &= at <= own
        if self.window:
            seen &= (at >= own - self.window[0]) & (at <= own + self.window[1])
        return seen

    def explained(
        self, kernel: AttentionConfig | None = None
    ) -> tuple[AttentionExplanation, AttentionBackwardExplanation | None]:
        """Return the explanations of the call and, for ``backward``, of its gradients."""
        how: dict[str, Any] = {"causal": self.causal or False, "window": self.window, "element": self.element}
        if self.lengths:
            q, k = ((sum(self.lengths), heads, self.head) for heads in (self.heads, self.heads_k))
            ends = (len(self.lengths) + 1,)
            how |= {"cu_seqlens_q": ends, "cu_seqlens_k": ends, "max_seqlen_q": max(self.lengths)}
        else:
            q, k = (self.batch, self.heads, self.queries, self.head), (self.batch, self.heads_k, self.keys, self.head)
        forward = op.explain(op.attention, q, k, kernel=kernel, lse=self.backward, **how)
        return forward, op.explain(op.attention_backward, q, k, **how) if self.backward else None

    def operands(self, device: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Create q, k and v of normally distributed values, (B, H, S, D) or packed."""
        import torch

        torch.manual_seed(0)

        def normal(*shape: int) -> torch.Tensor:
            return runner.normal(self.element, *shape, device=device)

        if self.lengths:
            total = sum(self.lengths)
            q, k, v = (normal(total, h, self.head) for h in (self.heads, self.heads_k, self.heads_k))
            return q, k, v
        rows = ((self.heads, self.queries), (self.heads_k, self.keys), (self.heads_k, self.keys))
        if self.layout == "bhsd":
            q, k, v = (normal(self.batch, h, n, self.head) for h, n in rows)
        else:
            q, k, v = (normal(self.batch, n, h, self.head).transpose(1, 2) for h, n in rows)
        return q, k, v

    def trial(self, device: str = "cuda", compiled: bool = False, kernel: AttentionConfig | None = None) -> Trial:
        """Create the operands; ``kernel`` overrides the selected one.

        Gradients are computed by ``torch.autograd`` on the GPU, and by ``op.attention_backward`` on the interpreter.
        """
        import torch

        q, k, v = self.operands(device)
        how: dict[str, Any] = {"causal": self.causal or False, "window": self.window}
        ends = None
        if self.lengths:
            ends = torch.tensor([0, *self.lengths]).cumsum(0).to(device, torch.int32)
            how |= {"cu_seqlens_q": ends, "cu_seqlens_k": ends, "max_seqlen_q": max(self.lengths)}
        how |= {"device": "cpu"} if device == "cpu" else {}
        if self.backward:
            return self._backward_trial(device, q, k, v, ends, how)
        how |= {} if kernel is None else {"kernel": kernel}

        def forward() -> torch.Tensor:
            return op.attention(q, k, v, **how)

        wide = (q.bfloat16(), k.bfloat16(), v.bfloat16()) if self.element in BYTES else (q, k, v)
        others = peers_of(self, *wide, ends) if device == "cuda" else {}

        def check() -> float:
            found = forward()
            for peer in others.values():  # A peer must compute the same result.
                compare_with_peer(self.name, found, peer())
            return self.check(found, q, k, v)

        return Trial(check, forward, others, self.traffic, self.flops, "TFLOP/s")

    def _backward_trial(
        self, device: str, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, ends: Any, how: dict[str, Any]
    ) -> Trial:
        import torch

        peers: dict[str, Callable[[], object]] = {}
        if device == "cpu":
            out, lse = op.attention(q, k, v, lse=True, **how)
            grad = torch.randn_like(out)
            ours: Callable[[], Any] = partial(op.attention_backward, grad, q, k, v, out, lse, **how)
        else:
            result = op.attention(*[x.requires_grad_() for x in (q, k, v)], **how)
            grad = torch.randn_like(result)
            ours = partial(torch.autograd.grad, result, (q, k, v), grad, retain_graph=True)
            for name, peer in peers_of(self, q, k, v, ends).items():
                try:
                    run_peer = partial(torch.autograd.grad, peer(), (q, k, v), grad, retain_graph=True)
                    run_peer()
                except RuntimeError:  # The peer does not support this gradient.
                    continue
                peers[name] = run_peer

        def check() -> float:
            found, theirs = ours(), [cast("tuple[torch.Tensor, ...]", peer()) for peer in peers.values()]
            for each in theirs:
                for x, y in zip(found, each):
                    compare_with_peer(self.name, x, y)
            return self.check_gradient(found, q, k, v, grad, theirs)

        return Trial(check, ours, peers, self.traffic, self.flops, "TFLOP/s")

    def check(self, found: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> float:
        """Compare up to 64 rows of the first and last head of two sequences with float64."""
        import torch

        worst, shared = 0.0, self.heads // self.heads_k
        for b in dict.fromkeys((0, len(self.sizes) - 1)):
            queries, keys = self.sizes[b]
            rows = torch.arange(0, queries, max(1, queries // 64), device=q.device)
            for h in dict.fromkeys((0, self.heads - 1)):
                mine, theirs, values, result = (
                    self._heads_of(x, b)[i].detach()
                    for x, i in ((q, h), (k, h // shared), (v, h // shared), (found, h))
                )
                weights = self._weights(mine.double()[rows], theirs.double(), rows, queries, keys)
                worst = max(worst, self._share(result[rows], weights, values.double()))
        return worst

    def _heads_of(self, x: torch.Tensor, sequence: int) -> torch.Tensor:
        """Return the heads of a sequence, (H, S, D)."""
        if not self.lengths:
            return x[sequence]
        first = sum(self.lengths[:sequence])
        return x[first : first + self.lengths[sequence]].transpose(0, 1)

    def _weights(self, q: torch.Tensor, k: torch.Tensor, rows: torch.Tensor, queries: int, keys: int) -> torch.Tensor:
        scores = q @ k.T / math.sqrt(self.head)
        weights = scores.masked_fill(~self.seen(rows, queries, keys), -math.inf).softmax(-1)
        return weights.nan_to_num(0.0)  # Rows without keys are 0.

    def check_gradient(
        self, found: Sequence[torch.Tensor], q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, grad: torch.Tensor,
        peers: Sequence[Sequence[torch.Tensor]] = (),
    ) -> float:  # fmt: skip
        """Compare the gradients of the last key head of two sequences with float64.

        The limit of an element is a multiple of its rounding error, see :meth:`exact_gradients`.  A limit relative to
        the RMS of the tensor does not suit causal attention.  Queries of few keys have the largest errors, and
        gradients of the last keys are so small that errors of 10 % would pass.

        Args:
            peers: gradients of torch.  If their error exceeds half the limit, twice their largest error is allowed
                for that tensor, and at most four times the limit.
        """
        worst = 0.0
        for b in dict.fromkeys((0, len(self.sizes) - 1)):
            for i, (part, want, error) in enumerate(self.exact_gradients(b, q, k, v, grad)):
                limit = DEVIATIONS * error + ROUNDING[self.element][0] * want.abs() + 2.0**-24
                theirs = [float(((self._heads_of(p[i], b)[part] - want).abs() / limit).max()) for p in peers]
                allowed = min(max([1.0, *(2 * x for x in theirs)]), 4.0)
                worst = max(worst, check_limit(self.name, self._heads_of(found[i], b)[part], want, allowed * limit))
        return worst

    def exact_gradients(
        self, sequence: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, grad: torch.Tensor
    ) -> list[tuple[slice, torch.Tensor, torch.Tensor]]:
        """Compute gradients for the last key head of a sequence in float64.

        Returns the heads, the gradient and its rounding error for each of q, k and v.  A kernel rounds P and
        dS = P (dP - D) to 16 bits before the second GEMMs.  D, the row sum of dO O, has the error of the rounded O.
        The rounding errors of the terms are independent, so their squares are added.
        """
        import torch

        shared = self.heads // self.heads_k
        queries, keys = self.sizes[sequence]
        rows, scale = torch.arange(queries, device=q.device), self.head**-0.5
        several, last = slice(-shared, None), slice(-1, None)
        mine, (key,), (value,), of_result = (
            self._heads_of(x, sequence)[part].detach().double()
            for x, part in ((q, several), (k, last), (v, last), (grad, several))
        )
        unit, least = (x * x for x in ROUNDING[self.element])
        dq, dq_error = torch.empty_like(mine), torch.empty_like(mine)
        dk, dk_error = torch.zeros_like(key), torch.zeros_like(key)
        dv, dv_error = torch.zeros_like(value), torch.zeros_like(value)
        for i, (x, g) in enumerate(zip(mine, of_result)):
            p = self._weights(x, key, rows, queries, keys)
            out = p @ value
            ds = p * (g @ value.T - (g * out).sum(-1, keepdim=True))
            dq[i], dv = ds @ key * scale, dv + p.T @ g
            dk += ds.T @ x * scale
            squares = p.square()
            of_d = unit * (g.square() * (out.square() + squares @ value.square())).sum(-1, keepdim=True)
            of_ds = ds.square_().mul_(unit).add_(least)
            dq_error[i] = (of_ds @ key.square() + of_d * (p @ key).square()) * scale**2
            dk_error += (of_ds.addcmul_(squares, of_d)).T @ x.square() * scale**2
            dv_error += squares.mul_(unit).add_(least).T @ g.square()
        return [
            (several, dq, dq_error.sqrt()), (last, dk[None], dk_error.sqrt()[None]),
            (last, dv[None], dv_error.sqrt()[None]),
        ]  # fmt: skip

    def _share(self, found: torch.Tensor, weights: torch.Tensor, values: torch.Tensor) -> float:
        """Return the largest error of rows of the result as a share of its limit."""
        want = weights @ values
        if self.element in BYTES:
            share = float((found.double() - want).norm() / want.norm()) / BYTE_ERROR
            if not share <= 1:
                raise BenchError(f"{self.name}: an error of {share:.2f} of the limit for the norm of the result")
            limit = ROUNDING["bf16"][0] * want.abs() + ROUNDED_BYTE * (weights @ values.abs()) + 2.0**-24
            return max(share, check_limit(self.name, found, want, limit))
        # A row that sums few products is larger than the average row, and so is the rounding error of its products.
        squares = want.square()
        scale = squares.mean(-1, keepdim=True).maximum(squares.mean()).sqrt()
        return check_limit(self.name, found, want, LIMITS[self.element] * (want.abs() + scale) + 2.0**-24)


def compare_with_peer(name: str, ours: torch.Tensor, peer: Any) -> None:
    """Raise BenchError if the result of a peer differs, which would make its time meaningless."""
    error = float((ours.float() - peer.float()).norm() / ours.float().norm().clamp(min=1e-30))
    if not error < 0.05:
        raise BenchError(f"{name}: the result of a peer differs by {error:.2f} of the norm")


def peers_of(
    case: Attention, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, ends: Any
) -> dict[str, Callable[[], Any]]:
    """Return the back ends of torch that support the call.

    Flash and cuDNN are called through ``scaled_dot_product_attention`` if it can express the mask, and through ``aten``
    for windows and packed sequences.  If neither supports the call, torch with an explicit mask is the peer.
    """
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention as sdpa

    flash: Any = torch.ops.aten._flash_attention_forward
    square = case.queries == case.keys or bool(case.lengths)
    candidates: dict[str, Callable[[], Any]] = {}
    if case.lengths:
        most = max(case.lengths)
        candidates["flash"] = lambda: flash(q, k, v, ends, ends, most, most, 0.0, bool(case.causal), False)[0]
    else:
        shared = case.heads != case.heads_k
        if case.window is None and (not case.causal or square or case.causal == "top_left"):
            for name, backend in (("flash", SDPBackend.FLASH_ATTENTION), ("cudnn", SDPBackend.CUDNN_ATTENTION)):

                def peer(backend: Any = backend) -> Any:
                    with sdpa_kernel(backend):
                        return sdpa(q, k, v, is_causal=bool(case.causal), enable_gqa=shared)

                candidates[name] = peer
        if not case.causal or square or case.causal == "bottom_right":
            # Like flash, align the last query with the last key.
            left, right = case.window or (None, None)

            def by_aten() -> Any:
                result = flash(
                    *(x.transpose(1, 2) for x in (q, k, v)), None, None, case.queries, case.keys, 0.0,
                    bool(case.causal), False, window_size_left=left, window_size_right=0 if case.causal else right,
                )  # fmt: skip
                return result[0].transpose(1, 2)

            if case.window is None and not case.causal:
                pass  # It is the same kernel as flash of sdpa.
            elif case.window is None or square or case.causal == "bottom_right":
                candidates["flash, aten"] = by_aten
    found = {name: peer for name, peer in candidates.items() if _takes(peer)}
    if found:
        return found
    rows = torch.arange(case.queries, device=q.device)
    mask = case.seen(rows, case.queries, case.keys)
    return {"masked": lambda: sdpa(q, k, v, attn_mask=mask, enable_gqa=case.heads != case.heads_k)}


def _takes(peer: Callable[[], Any]) -> bool:
    try:
        peer()
    except RuntimeError:
        return False
    return True


class NamedAttention(NamedTuple):
    """A case of the tables; packed sequences are half and one and a half times ``length`` long alternately."""

    problem: Attention
    length: int

    @property
    def operation(self) -> str:
        """The mask and the head size, for example ``full 128``."""
        p = self.problem
        few = not p.lengths and p.queries < p.keys
        mask = f"{p.queries} queries" if few else "window" if p.window else "causal" if p.causal else "full"
        more = " shared" * (p.heads_k < p.heads) + " packed" * bool(p.lengths) + " backward" * p.backward
        return f"{mask} {p.head}{more}"

    @property
    def name(self) -> str:
        p = self.problem
        return f"{self.operation} {p.element} {p.batch}x{p.heads}x{self.length}"

    def explained(self, config: AttentionConfig | None = None) -> AttentionExplanation:
        """Return the explanation of the call."""
        return self.problem.explained(config)[0]

    def kernels(self) -> Mapping[str, Text]:
        found = [x for x in self.problem.explained() if x is not None]
        return {kernel.name: kernel.text for one in found for kernel in one.kernels or ()}

    def trial(self, config: AttentionConfig | None = None) -> Trial:
        """Create operands of normally distributed values; ``config`` overrides the selected kernel."""
        found, wanted = self.problem.trial(kernel=config), ("flash, aten",) if self.problem.window else PEERS
        return found._replace(peers={k: v for k, v in found.peers.items() if k in wanted})


PEERS = ("flash", "cudnn")
"""Back ends of ``scaled_dot_product_attention`` that are peers of named cases; windows have ``flash, aten``."""


def named(
    length: int, causal: bool = False, head: int = 128, batch: int = 4, heads: int = 16, heads_k: int = 16,
    element: str = "bf16", layout: str = "bshd", packed: bool = False, queries: int = 0,
    window: tuple[int, int] | None = None, backward: bool = False,
) -> NamedAttention:  # fmt: skip
    """Return a case: by default as many queries as keys."""
    lengths = [length // 2 if i % 2 else length * 3 // 2 for i in range(batch)] if packed else []
    rows, keys = (max(lengths), max(lengths)) if packed else (queries or length, length)
    problem = Attention(
        element,
        head,
        batch,
        heads,
        heads_k,
        rows,
        keys,
        "top_left" if causal else "",
        window,
        layout,
        tuple(lengths),
        backward,
    )
    return NamedAttention(problem, length)


LENGTHS = (1024, 2048, 4096, 8192, 16384)

CASES = (
    *(named(n, causal) for causal in (False, True) for n in LENGTHS),
    *(named(n, causal, element="f16", layout="bhsd") for causal in (False, True) for n in (1000, 4096)),
    *(named(n, causal, 64, heads=32, heads_k=32) for causal in (False, True) for n in (1024, 4096, 16384)),
    *(named(n, causal, 256, heads=8, heads_k=8) for causal in (False, True) for n in (1024, 4096, 16384)),
    *(named(n, True, heads=32, heads_k=8) for n in (2048, 8192)),
    *(named(n, True, packed=True, batch=8) for n in (1024, 4096)),
    *(named(n, batch=b, heads=32, heads_k=8, queries=1) for b in (1, 16) for n in (4096, 32768)),
    *(named(n, batch=1, heads=8, heads_k=8, queries=128) for n in (4096, 32768)),
)


BYTE_CASES = (
    *(named(n, causal, element="f8E4M3FN") for causal in (False, True) for n in LENGTHS),
    *(
        named(n, causal, 64, heads=32, heads_k=32, element="f8E4M3FN")
        for causal in (False, True)
        for n in (4096, 16384)
    ),
    *(named(n, causal, 256, heads=8, heads_k=8, element="f8E4M3FN") for causal in (False, True) for n in (4096, 16384)),
    *(named(n, True, heads=32, heads_k=8, element="f8E5M2") for n in (2048, 8192)),
    *(named(n, batch=16, heads=32, heads_k=8, queries=1, element="f8E4M3FN") for n in (4096, 32768)),
)


def gradients(length: int, head: int = 128, **more: Any) -> NamedAttention:
    """Return a case of gradients with 16,384 tokens and 2,048 elements per token."""
    heads = 2048 // head
    given: dict[str, Any] = {"batch": 16384 // length, "heads": heads, "heads_k": heads, **more}
    return named(length, head=head, backward=True, **given)


BACKWARD_CASES = (
    *(gradients(n, head, causal=causal) for head in (64, 128, 256) for causal in (False, True) for n in LENGTHS),
    *(gradients(4096, head, causal=True) for head in (96, 192)),
    *(gradients(n, causal=True, heads_k=4) for n in (2048, 8192)),
    *(gradients(n, causal=True, packed=True) for n in (1024, 4096)),
    *(gradients(n, window=window) for n, window in ((4096, (512, 512)), (16384, (1024, 0)))),
)


# --------------------------------------------------------------------------------------------------------------- tuning


TUNED = tuple(
    named(n, causal, head, heads=2048 // head, heads_k=2048 // head)
    for head in (128, 64, 256) for causal in (False, True) for n in (1024, 4096, 16384)
)  # fmt: skip
"""The cases to measure."""

_TILES = {
    64: ((192, 128), (192, 112), (192, 96), (128, 128), (128, 176), (128, 224)),
    128: ((128, 176), (128, 160), (128, 144), (128, 128), (128, 112), (192, 96), (192, 80)),
    256: ((128, 80), (128, 64), (128, 48)),
}
"""Map head sizes to the query and key extents of the tiles."""


def space(head: int, mask: str) -> list[AttentionConfig]:
    """Return the search space: all tiles with all numbers of stages that fit, and variants of the default with one
    optimization disabled.
    >>> len(space(128, "full")) > 12
    True
    """
    plain = default_config("bf16", head, mask)
    tiled = [plain._replace(tile_m=m, tile_n=n) for m, n in _TILES[head]]
    found = [c._replace(stages=stages, q_stages=q_stages) for c in tiled for stages in (2, 3) for q_stages in (1, 2)]
    found += [c._replace(overlap=False) for c in tiled[:2]]
    found += [plain._replace(**{name: not getattr(plain, name)}) for name in ("overlap", "pingpong", "lazy")]
    return [c for c in dict.fromkeys(found) if c != plain and _is_there(c)]


def configs(head: int, mask: str, tune: bool) -> list[AttentionConfig]:
    """Return the configurations to measure, the default first."""
    return [default_config("bf16", head, mask), *(space(head, mask) if tune else ())]


def _is_there(config: AttentionConfig) -> bool:
    try:
        config.check()
    except ValueError:
        return False
    return True


def build_attention(folder: str, chip: str, *, tune: bool = False) -> list[str]:
    kinds = dict.fromkeys((case.problem.head, case.explained().config.mask) for case in TUNED)
    found = [c for head, mask in kinds for c in configs(head, mask, tune)]
    return build_kernels({c.name: partial(attention_text, c) for c in found}, folder, chip)


def run_attention(folder: str, *, runs: int, large: bool, say: Say, tune: bool = False) -> dict[str, object]:
    """Check and measure the kernels of :func:`build_attention`; wrong kernels are reported and skipped."""
    rows: list[Row] = []
    wrong: list[str] = []
    with patch.dict(os.environ, {"CUTE_KERNELS": folder}):
        for case in track(TUNED, "measuring", "cases"):
            found = _measured(case, folder, runs, tune, wrong, say)
            if found is not None:
                rows.append(found)
    return {"rows": rows, "wrong": wrong}


def _measured(case: NamedAttention, folder: str, runs: int, tune: bool, wrong: list[str], say: Say) -> Row | None:
    """Measure the kernels of a case alternating with torch; return None if no kernel is correct."""
    import torch

    ours: dict[str, Callable[[], object]] = {}
    trial = case.trial()
    for c in configs(case.problem.head, case.explained().config.mask, tune):
        if not os.path.isdir(os.path.join(folder, c.name)):
            continue
        mine = case.trial(c)
        try:
            mine.check()
            ours[c.name] = mine.ours
        except Exception as e:  # The other cases are still measured.
            wrong.append(f"{case.name}, {c.name}: {type(e).__name__}: {e}")
            say(f"  WRONG {wrong[-1]}")
    if not ours:
        return None
    times, speed = speeds(trial, ours, runs)
    best = max(ours, key=lambda k: speed[k])
    peer = max((speed[k] for k in trial.peers), default=float("nan"))
    say(f"  {case.name}: " + ", ".join(f"{k} {x:.0f}" for k, x in sorted(speed.items(), key=lambda x: -x[1])))
    torch.cuda.empty_cache()
    first = next(iter(ours))
    more = {"best": best, "best speed": speed[best], "us": times[first], **speed}
    return row(case.name, trial.unit, speed[first], peer, **more)


BENCHMARKS = {"attention": Benchmark(build_attention, run_attention)}

GROUPS = {"attention": CASES, "attention_8_bit": BYTE_CASES, "attention_backward": BACKWARD_CASES}
