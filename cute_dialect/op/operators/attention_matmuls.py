"""Attention and its gradients by matmuls in f32, for calls that no backward kernel supports.

Scores are computed for some queries and sequences at a time, at most ``MOST`` of them.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cute_dialect.kernels.attention.dropout import kept_at, kept_share
from cute_dialect.op.problems.attention import LAYOUTS, WINDOW_AT_END
from cute_dialect.op.signature_types import Window

MOST = 1 << 25
"""Maximum number of scores in memory at a time, in f32."""


class Mask(NamedTuple):
    """The mask, the scale, the soft cap and the dropout of scores: arguments of ``torch.ops.cute.attention``."""

    causal: str  # alignment, as returned by visible_keys
    left: int  # keys before a query's own; -1 for all
    right: int  # keys after it; -1 for all
    scale: float | None
    layout: str
    longest: int | None  # rows of the longest packed sequence, if known
    softcap: float = 0.0
    deterministic: bool | None = None  # None follows torch's setting
    longest_keys: int | None = None  # keys of the longest packed sequence, if known
    dropout_p: float = 0.0

    @property
    def window(self) -> Window | None:
        """The window as op.attention has it."""
        left, right = self.left if self.left >= 0 else None, self.right if self.right >= 0 else None
        if self.causal == WINDOW_AT_END:
            return left, right, "bottom_right"
        return None if left is None and right is None else (left, right)

    @property
    def direction(self) -> str:
        """The argument ``causal`` of op.attention."""
        return "" if self.causal == WINDOW_AT_END else self.causal

    @property
    def after(self) -> int:
        """Keys after a query's own that it sees; -1 for all."""
        return 0 if self.direction else self.right

    @property
    def is_full(self) -> bool:
        """True if every query sees every key."""
        return self.left < 0 and self.after < 0

    def factor(self, size: int) -> float:
        """Return the scale of scores of heads of ``size`` elements."""
        return 1 / math.sqrt(size) if self.scale is None else self.scale

    def shift(self, queries: int, keys: int) -> int:
        """Return the key that is query 0's own."""
        return keys - queries if self.causal in ("bottom_right", WINDOW_AT_END) else 0

    def hidden(self, first: int, rows: int, queries: int, keys: int, device: Any) -> Tensor | None:
        """Return the keys (rows, keys) that the queries from ``first`` on do not see; None if they see all."""
        if self.is_full:
            return None
        own = torch.arange(first, first + rows, device=device)[:, None] + self.shift(queries, keys)
        at = torch.arange(keys, device=device)[None]
        before = at < own - self.left if self.left >= 0 else None
        behind = at > own + self.after if self.after >= 0 else None
        return behind if before is None else before if behind is None else before | behind


class Saved(NamedTuple):
    """The tensors of a forward call; those that it does not have are None."""

    q: Tensor
    k: Tensor
    v: Tensor
    begins_q: Tensor | None  # offsets of packed sequences
    begins_k: Tensor | None
    out: Tensor
    lse: Tensor  # empty if it was not computed
    sinks: Tensor | None = None
    slopes: Tensor | None = None
    bias: Tensor | None = None
    state: Tensor | None = None  # seed and offset of dropout


class Gradients(NamedTuple):
    """Gradients; those of sinks and bias are None if the call has none or does not need them."""

    q: Tensor
    k: Tensor
    v: Tensor
    sinks: Tensor | None = None
    bias: Tensor | None = None


def empty_gradients(q: Tensor, k: Tensor, v: Tensor, layout: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return uninitialized gradients, contiguous as (B, S, H, D) in either layout."""
    turn = q.dim() == 4 and LAYOUTS[layout] == LAYOUTS["bhsd"]
    made = [x.transpose(1, 2) if turn else x for x in (q, k, v)]
    made = [x.new_empty(x.shape) for x in made]
    dq, dk, dv = [x.transpose(1, 2) if turn else x for x in made]
    return dq, dk, dv


def gradients_by_matmuls(
    saved: Saved, grad: Tensor | None, grad_lse: Tensor | None, mask: Mask, of_bias: bool = False
) -> Gradients:
    """Compute the gradients with matmuls in f32, and round them to the types of the tensors."""
    q, k, v = saved.q, saved.k, saved.v
    found = [x.zero_() for x in empty_gradients(q, k, v, mask.layout)]
    sinks = None if saved.sinks is None else torch.zeros_like(saved.sinks, dtype=torch.float32)
    bias = torch.zeros_like(saved.bias, dtype=torch.float32) if of_bias and saved.bias is not None else None
    for part in _sequences(saved, (*found, *(() if grad is None else (grad,))), grad_lse, mask):
        dq, dk, dv, *given = part.others
        _add_gradients(part, given[0] if given else None, mask, Gradients(dq, dk, dv, sinks, bias))
    if sinks is not None and saved.sinks is not None:
        sinks = sinks.to(saved.sinks.dtype)
    if bias is not None and saved.bias is not None:
        bias = bias.to(saved.bias.dtype)
    return Gradients(found[0], found[1], found[2], sinks, bias)


class _Part(NamedTuple):
    """A sequence, or a batch of sequences of one length: arrays as (B, H, S, D)."""

    q: Tensor
    k: Tensor
    v: Tensor
    grad_lse: Tensor | None
    others: tuple[Tensor, ...]
    sinks: Tensor | None  # (H,)
    slopes: Tensor | None  # (H,) or (B, H)
    bias: Tensor | None
    state: Tensor | None  # of dropout
    sequence: int = 0  # index of the first sequence

    def some(self, batch: slice, rows: slice) -> _Scored:
        """Slice the batch and query dimensions."""
        at = slice(None) if self.slopes is None or self.slopes.dim() == 1 else batch
        slopes = None if self.slopes is None else self.slopes[at]
        bias = self.bias
        if bias is not None:
            bias = bias.expand(*self.q.shape[:3], self.k.shape[2])[batch, :, rows]
        return _Scored(
            self.q[batch, :, rows],
            self.k[batch],
            rows.start,
            self.q.shape[2],
            self.sinks,
            slopes,
            bias,
            self.state,
            self.sequence + batch.start,
        )


def _sequences(saved: Saved, others: tuple[Tensor, ...], grad_lse: Tensor | None, mask: Mask) -> Iterator[_Part]:
    """Yield the sequences of a call; ``others``: gradients of q, k and v, and one like the result.

    Waits for packed offsets.
    """
    q, k, v, begins_q, begins_k = saved[:5]
    sinks, slopes, bias, state = saved.sinks, saved.slopes, saved.bias, saved.state
    if begins_q is None or begins_k is None:
        turn = LAYOUTS[mask.layout] != LAYOUTS["bhsd"]
        a, b, c, *rest = [x.transpose(1, 2) if turn else x for x in (q, k, v, *others)]
        yield _Part(a, b, c, grad_lse, tuple(rest), sinks, slopes, bias, state)
        return
    for n, ((i, j), (m, end)) in enumerate(zip(pairwise(begins_q.tolist()), pairwise(begins_k.tolist()))):
        rows, keys = slice(i, j), slice(m, end)
        rest = [x[at] for x, at in zip(others, (rows, keys, keys, rows))]
        a, b, c, *rest = [x.transpose(0, 1)[None] for x in (q[rows], k[keys], v[keys], *rest)]
        of_lse = None if grad_lse is None else grad_lse[None, :, rows]
        steep = slopes[n] if slopes is not None and slopes.dim() == 2 else slopes
        yield _Part(a, b, c, of_lse, tuple(rest), sinks, steep, bias, state, n)


class _Scored(NamedTuple):
    """Queries (B, H, S, D) from row ``first`` on, of ``queries``, and what their scores depend on."""

    q: Tensor
    k: Tensor
    first: int
    queries: int
    sinks: Tensor | None
    slopes: Tensor | None
    bias: Tensor | None
    state: Tensor | None
    sequence: int  # index of the first sequence

    def dropped(self, weights: Tensor, p: float) -> Tensor:
        """Apply dropout to the attention weights (B, H', G, S, S') or their gradients."""
        if not p or self.state is None:
            return weights
        batch, key_heads, group, rows, keys = weights.shape
        sequences, at, heads, row, column = (
            torch.arange(n, device=weights.device) for n in (batch, key_heads, group, rows, keys)
        )
        sequences = (sequences[:, None, None] + self.sequence) * (key_heads * group)
        matrix = (sequences + at[:, None] * group + heads)[..., None, None]
        kept = kept_at(self.state.view(torch.int64), p, matrix, row[:, None] + self.first, column)
        return weights * kept / kept_share(p)

    def scores(self, mask: Mask) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """Return queries, scores, derivatives of the soft cap, and the mask of hidden scores.

        The queries are (B, H', G, S, D) in f32, and the others (B, H', G, S, S').  The last two may be None.
        """
        group, keys = (self.k.shape[1], self.q.shape[1] // self.k.shape[1]), self.k.shape[2]
        x, rows = self.q.float().unflatten(1, group), self.q.shape[2]
        scores, slope = (x @ self.k.float()[:, :, None].mT) * mask.factor(self.q.shape[-1]), None
        if mask.softcap:
            capped = torch.tanh(scores / mask.softcap)
            scores, slope = capped * mask.softcap, 1 - capped * capped
        hidden = mask.hidden(self.first, rows, self.queries, keys, self.q.device)
        if self.slopes is not None:
            own = torch.arange(self.first, self.first + rows, device=self.q.device) + keys - self.queries
            away = (own[:, None] - torch.arange(keys, device=self.q.device)).abs()
            scores = scores - self.slopes.unflatten(-1, group)[..., None, None] * away
        if self.bias is not None:
            bias = self.bias.unflatten(1, group)
            if bias.dtype == torch.bool:
                hidden = ~bias if hidden is None else hidden | ~bias
            else:
                scores = scores + bias.float()
        return x, scores if hidden is None else scores.masked_fill(hidden, -math.inf), slope, hidden

    def normalized(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Return the attention weights, and the log-sum-exp of the scores."""
        logs = scores.logsumexp(-1)
        if self.sinks is not None:
            sinks = self.sinks.float().unflatten(0, (scores.shape[1], scores.shape[2]))
            logs = torch.logaddexp(logs, sinks[..., None])
        finite = torch.where(logs == -math.inf, 0.0, logs)  # rows without a visible key
        return (scores - finite[..., None]).exp(), logs


def _add_gradients(part: _Part, grad: Tensor | None, mask: Mask, results: Gradients) -> None:
    """Compute the gradients of arrays (B, H, S, D), some queries and sequences at a time."""
    q, k, v = part.q, part.k, part.v
    batch, heads, queries, size = q.shape
    keys = k.shape[2]
    if 0 in (q.numel(), k.numel()):
        return
    scale = mask.factor(size)
    some = max(1, min(batch, MOST // (heads * keys)))
    rows = max(1, min(queries, MOST // (some * heads * keys)))
    group = (k.shape[1], heads // k.shape[1])
    for b in range(0, batch, some):
        at = slice(b, min(batch, b + some))
        kf, vf = k[at].float(), v[at].float()
        dk, dv = torch.zeros_like(kf), torch.zeros_like(vf)
        for i in range(0, queries, rows):
            here = slice(i, min(queries, i + rows))
            scored = part.some(at, here)
            x, scores, slope, hidden = scored.scores(mask)
            weights, logs = scored.normalized(scores)
            delta = torch.zeros_like(logs)
            ds = torch.zeros_like(weights)
            if grad is not None:
                g = grad[at, :, here].float().unflatten(1, group)
                dp = scored.dropped(g @ vf[:, :, None].mT, mask.dropout_p)
                dp = dp if hidden is None else dp.masked_fill_(hidden, 0.0)
                delta = (weights * dp).sum(-1)
                ds = weights * dp
                dv += (scored.dropped(weights, mask.dropout_p).mT @ g).sum(2)
            if part.grad_lse is not None:
                delta = delta - part.grad_lse[at, :, here].float().unflatten(1, group)
            ds = ds - weights * delta[..., None]
            if hidden is not None:
                ds.masked_fill_(hidden, 0.0)
            if results.sinks is not None and part.sinks is not None:
                logit = part.sinks.float().unflatten(0, group)[..., None]
                results.sinks.sub_(((logit - logs).exp() * delta).sum((0, 3)).flatten())
            if results.bias is not None and part.bias is not None:
                _add_reduced(results.bias, ds.flatten(1, 2), at, here)
            ds = ds if slope is None else ds * slope
            results.q[at, :, here] = (ds @ kf[:, :, None] * scale).flatten(1, 2)
            dk += (ds.mT @ x).sum(2) * scale
        results.k[at], results.v[at] = dk, dv


def _add_reduced(result: Tensor, found: Tensor, batch: slice, rows: slice) -> None:
    """Add gradients of some sequences and queries to those of an array that expands to all of them."""
    while result.dim() < 4:
        result = result[None]
    over = [i for i in range(4) if result.shape[i] == 1 and found.shape[i] > 1]
    at = tuple([slice(None) if result.shape[i] == 1 else x for i, x in ((0, batch), (2, rows))])
    result[at[0], :, at[1]] += found.sum(over, keepdim=True) if over else found


def attention_of(saved: Saved, mask: Mask) -> tuple[Tensor, Tensor]:
    """Return the result and ``lse`` of a call by matmuls that torch can differentiate any number of times.

    All scores are in memory at once.
    """
    q = saved.q
    results: list[Tensor] = []
    logs: list[Tensor] = []
    for part in _sequences(saved, (), None, mask):
        scored = part.some(slice(0, part.q.shape[0]), slice(0, part.q.shape[2]))
        _, scores, _, _ = scored.scores(mask)
        weights, of_rows = scored.normalized(scores)
        weights = scored.dropped(weights, mask.dropout_p)
        results.append((weights @ part.v.float()[:, :, None]).flatten(1, 2).to(q.dtype))
        logs.append(of_rows.flatten(1, 2))
    if saved.begins_q is None:
        out = results[0]
        return (out.transpose(1, 2) if LAYOUTS[mask.layout] != LAYOUTS["bhsd"] else out), logs[0]
    # Rows past the last sequence do not depend on the inputs.
    missing = q.shape[0] - sum(x.shape[2] for x in results)
    heads, size = q.shape[1], saved.v.shape[-1]
    out = torch.cat([*[x[0].transpose(0, 1) for x in results], q.new_zeros(missing, heads, size)])
    return out, torch.cat([*[x[0] for x in logs], logs[0].new_full((heads, missing), -math.inf)], 1)
