"""The operators ``torch.ops.cute.flex_attention`` and ``flex_attention_backward``, of functions that have been traced.

``functions`` is the text of their graph (:class:`~cute_dialect.kernels.attention.score_graph.ScoreGraph`), or "" for
none.  ``lists`` are those of a block mask: none, those of key blocks, or also those of blocks of queries, which
gradients need.  ``blocks`` are the queries and keys of a block, and the lengths of the mask.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from cute_dialect.kernels.attention.score_graph import ScoreGraph
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.functions.flex_attention import FlexCall, attended
from cute_dialect.op.operators.attention import empty_results
from cute_dialect.op.problems.flex_attention import FLEX, KEY_LISTS, QUERY_LISTS
from cute_dialect.op.torch.registry import CUTE

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.torch.autograd import Context

_GRADIENTS = KnownCalls(tf32=False)
"""Cached calls of gradients."""


def _call_of(
    query: Tensor, captured: list[Tensor], functions: str, blocks: list[int], scale: float | None, *learned: list[int]
) -> FlexCall:
    graph = ScoreGraph.from_text(functions) if functions else None
    m, n, queries, keys = blocks
    device = "cpu" if query.device.type == "cpu" else None
    indices = tuple(learned[0]) if learned else None
    return FlexCall(graph, len(captured), (m, n), (queries, keys), scale, None, device, indices)


def forward(
    query: Tensor, key: Tensor, value: Tensor, captured: list[Tensor], lists: list[Tensor], *how: Any
) -> tuple[Tensor, Tensor]:
    """Return the result and ``lse``."""
    call = _call_of(query, captured, *how)
    return attended(call, (query, key, value, *captured, *lists[: len(KEY_LISTS)]), True)


def fake(query: Tensor, key: Tensor, value: Tensor, *_: object) -> tuple[Tensor, Tensor]:
    return empty_results(query, value, query.dtype, "bhsd", True)


def keep(ctx: Context, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    query, key, value, captured, lists, *ctx.how = inputs
    ctx.counts = len(captured), len(lists)
    ctx.save_for_backward(query, key, value, *captured, *lists, *output)
    ctx.set_materialize_grads(False)


def backward(ctx: Context, grad: Tensor | None, grad_lse: Tensor | None) -> tuple[object, ...]:
    count, lists = ctx.counts
    tensors, needs = ctx.saved_tensors, ctx.needs_input_grad
    if grad is None and grad_lse is None:
        return (*(None,) * 3, [None] * count, [None] * lists, *(None,) * len(ctx.how))
    q, k, v, captured, of_blocks = *tensors[:3], tensors[3 : 3 + count], tensors[3 + count : -2]
    learned = [i for i, need in enumerate(cast("Sequence[bool]", needs[3] or ())) if need]
    found = CUTE.flex_attention_backward(
        q, k, v, list(captured), list(of_blocks), *tensors[-2:], grad, grad_lse, *ctx.how, learned
    )
    of_captured = dict(zip(learned, found[3]))
    return (*found[:3], [of_captured.get(i) for i in range(count)], [None] * lists, *(None,) * len(ctx.how))


def forward_gradients(
    query: Tensor, key: Tensor, value: Tensor, captured: list[Tensor], lists: list[Tensor], *others: Any
) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
    """Return the gradients of query, key and value, and of the captured tensors with the indices ``learned``."""
    _check_lists(lists)
    out, lse, grad, grad_lse, *how = others
    call = _call_of(query, captured, *how)
    needs = [*[True] * 3, *[i in how[-1] for i in range(len(captured))], *[False] * len(lists)]
    tensors = (query, key, value, *captured, *lists, out, lse)
    given = [torch.zeros_like(out) if grad is None else grad, *([] if grad_lse is None else [grad_lse])]

    def compute() -> tuple[Tensor, ...]:
        found = call.gradients(tensors, given[0], grad_lse, needs)
        return tuple([x for x in found if x is not None])

    key_of = call, len(given), torch.are_deterministic_algorithms_enabled()
    dq, dk, dv, *of_captured = _GRADIENTS.call(key_of, (*tensors, *given), compute)
    return dq, dk, dv, of_captured


def fake_gradients(
    query: Tensor, key: Tensor, value: Tensor, captured: list[Tensor], lists: list[Tensor], *others: Any
) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
    _check_lists(lists)
    dq, dk, dv = (x.new_empty(x.shape) for x in (query, key, value))
    return dq, dk, dv, [captured[i].new_empty(captured[i].shape) for i in others[-1]]


def _check_lists(lists: list[Tensor]) -> None:
    if len(lists) == len(KEY_LISTS):
        raise UnsupportedError(
            f"{FLEX}: the block mask has no {QUERY_LISTS[0]}, which gradients need; create it with "
            "compute_q_blocks=True"
        )
