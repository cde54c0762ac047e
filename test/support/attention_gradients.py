"""Random attention calls, and their gradients in float64."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from typing import Any, NamedTuple

import torch


class Call(NamedTuple):
    """An attention call. ``lengths``: (queries, keys) of each packed sequence, or () without packing."""

    batch: int
    heads: int
    shared: int
    queries: int
    keys: int
    size: int
    causal: bool | str
    window: tuple[int | None, int | None] | None
    scale: float | None
    layout: str
    of_lse: bool
    lengths: tuple[tuple[int, int], ...] = ()
    equal: bool = False
    """True if q, k and v are the same tensor."""
    size_v: int = 0
    """Elements per head of v, or 0 for those of q and k."""

    def options(self) -> dict[str, Any]:
        found = {"causal": self.causal, "window": self.window, "scale": self.scale}
        return found if self.lengths else {**found, "layout": self.layout}


def drawn(seed: int, most: int, sizes: tuple[int, ...] = (8, 40, 64)) -> Call:
    """Return a random call with at most ``most`` queries and keys."""
    r = random.Random(seed)
    shared, sharing = r.choice((1, 1, 2)), r.choice((1, 2, 3))
    causal = r.choice((False, True, "bottom_right"))
    sides = [r.choice((None, 0, 1, 5, most // 3, most)) for _ in range(2)]
    window = None if r.random() < 0.4 else (sides[0], sides[1])
    lengths: tuple[tuple[int, int], ...] = ()
    if r.random() < 0.3:
        some = (0, 1, 3, most // 4, most // 2)
        lengths = tuple([(r.choice(some), r.choice(some)) for _ in range(3)])
        if r.random() < 0.3:
            lengths = tuple([(m, m) for m, _ in lengths])
    equal = not lengths and sharing == 1 and r.random() < 0.3
    queries = r.randint(1, most)
    keys = queries if equal or r.random() < 0.3 else r.randint(1, most)
    return Call(
        r.choice((1, 2)), shared * sharing, shared, queries, keys, r.choice(sizes), causal, window,
        r.choice((None, None, 0.3)), r.choice(("bhsd", "bshd")), r.random() < 0.4, lengths, equal,
    )  # fmt: skip


def inputs(call: Call, dtype: torch.dtype, device: str, seed: int = 0) -> tuple[list[torch.Tensor], dict[str, Any]]:
    """Return q, k and v, and the offsets of packed sequences; padding rows follow the last sequence."""
    g = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=g).to(device, dtype).requires_grad_()

    if call.lengths:
        totals = [sum(x) + 2 for x in zip(*call.lengths)]
        begins = [torch.tensor([0, *x]).cumsum(0).to(device, torch.int32) for x in zip(*call.lengths)]
        same = torch.equal(*begins)
        kept = {"cu_seqlens_q": begins[0], "cu_seqlens_k": begins[0] if same else begins[1]}
        heads = (call.heads, call.shared, call.shared)
        sizes = call.size, call.size, call.size_v or call.size
        return [normal(totals[i > 0], n, size) for i, (n, size) in enumerate(zip(heads, sizes))], kept

    def at(heads: int, rows: int, size: int = call.size) -> torch.Tensor:
        return normal(*((call.batch, heads, rows) if call.layout == "bhsd" else (call.batch, rows, heads)), size)

    q = at(call.heads, call.queries)
    k, v = at(call.shared, call.keys), at(call.shared, call.keys, call.size_v or call.size)
    return ([q, q, q] if call.equal else [q, k, v]), {}


def exact(
    call: Call, given: list[torch.Tensor], grad: torch.Tensor, grad_lse: torch.Tensor | None
) -> list[torch.Tensor]:  # fmt: skip
    """Return the gradients of q, k and v in float64, computed on the CPU.

    If q, k and v are one tensor, the result is the single summed gradient.
    """
    twice: dict[int, torch.Tensor] = {}
    leaves = [twice.setdefault(id(x), x.detach().cpu().double().requires_grad_()) for x in given]
    g = grad.cpu().double()
    of_logs = None if grad_lse is None else grad_lse.cpu().double()
    total = leaves[0].new_zeros(())
    if call.lengths:
        begins = [[0, *torch.tensor(x).cumsum(0).tolist()] for x in zip(*call.lengths)]
        for (i, j), (m, n) in zip(pairwise(begins[0]), pairwise(begins[1])):
            parts = [x[at].transpose(0, 1)[None] for x, at in zip((*leaves, g), ((i, j), (m, n), (m, n), (i, j)))
                     for at in [slice(*at)]]  # fmt: skip
            total = total + _sum(call, *parts, None if of_logs is None else of_logs[None, :, i:j])
    else:
        turn = call.layout == "bshd"
        total = _sum(call, *[x.transpose(1, 2) if turn else x for x in (*leaves, g)], of_logs)
    wanted = list(twice.values())
    if not total.requires_grad:
        return [torch.zeros_like(x) for x in wanted]
    found = torch.autograd.grad(total, wanted, allow_unused=True)
    return [torch.zeros_like(x) if dx is None else dx for x, dx in zip(wanted, found)]


def _sum(call: Call, q: Any, k: Any, v: Any, g: Any, of_logs: Any) -> Any:
    """Return the dot product of the attention outputs, of shape (B, H, S, D), with their gradients."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    queries, keys = q.shape[2], k.shape[2]
    scale = call.size**-0.5 if call.scale is None else call.scale
    own = torch.arange(queries)[:, None] + (keys - queries if call.causal == "bottom_right" else 0)
    at = torch.arange(keys)[None]
    left, right = call.window or (None, None)
    right = 0 if call.causal else right
    seen = torch.ones(queries, keys, dtype=torch.bool)
    seen &= True if left is None else at >= own - left
    seen &= True if right is None else at <= own + right
    rows = seen.any(-1)  # Rows without visible keys give zeros.
    if not bool(rows.any()):
        return q.new_zeros(())
    scores = (q[:, :, rows] @ k.mT * scale).masked_fill(~seen[rows], -math.inf)
    total = (scores.softmax(-1) @ v * g[:, :, rows]).sum()
    return total if of_logs is None else total + (scores.logsumexp(-1) * of_logs[:, :, rows]).sum()
