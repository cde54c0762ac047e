"""Flex attention in torch: its autograd node, and its calls in ``torch.compile``.

The functions of the node are those of the call: ``computed`` and ``gradients``.

Dynamo inlines the user's functions in the body of a higher-order operator: they compute with tensors of one element,
and their results are operands of ``torch.ops.cute.flex_attention``, whose ``functions`` are "" there::

    score, b, h, q_idx, kv_idx = query.new_empty(1), …
    flex_attention(query, key, value, [score + slopes[h] * (kv_idx - q_idx), score, b, h, q_idx, kv_idx], lists, "", …)

When the graph is lowered, the body runs with proxies in place of score and indices.  Its operator gets the graph of the
functions and the tensors that they capture; operations on captured tensors alone stay operations of torch.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, fx
from torch._higher_order_ops.base_hop import BaseHOP

from cute_dialect.op.epilogue.score_functions import GraphOf, trace_body
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.problems.flex_attention import FLEX, BlockMaskFields
from cute_dialect.op.torch.autograd import Context, apply_of, node_of
from cute_dialect.op.torch.registry import load_table

load_table()  # before torch.compile traces a call, because it cannot trace the import
_OPERATOR = torch.ops.cute.flex_attention.default


class Differentiable(Protocol):
    """A call: query, key, value, captured tensors and lists of blocks -> the result and ``lse``."""

    def computed(self, tensors: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Return the result and ``lse``."""
        ...

    def gradients(
        self, saved: Sequence[Tensor], grad: Tensor, grad_lse: Tensor | None, needs: Sequence[bool]
    ) -> Sequence[Tensor | None]:
        """Return the gradients of the tensors.

        Args:
            saved: the tensors, the result and ``lse``.
            grad, grad_lse: gradients of the results; None for zero.
            needs: for each tensor, whether its gradient is needed.
        """
        ...


def _forward(ctx: Context, call: Differentiable, *tensors: Tensor) -> tuple[Tensor, Tensor]:
    found = call.computed(tensors)
    ctx.call = call
    ctx.save_for_backward(*tensors, *found)
    ctx.set_materialize_grads(False)
    ctx.settings = torch.are_deterministic_algorithms_enabled
    return found


def _backward(ctx: Context, grad: Tensor | None, grad_lse: Tensor | None) -> tuple[Tensor | None, ...]:
    saved, needs = ctx.saved_tensors, ctx.needs_input_grad[1:]
    if grad is None and grad_lse is None:
        return (None,) * (1 + len(needs))
    if torch.is_grad_enabled():
        raise UnsupportedError("flex_attention: second derivatives are not supported; use create_graph=False")
    grad = torch.zeros_like(saved[-2]) if grad is None else grad
    return None, *ctx.call.gradients(saved, grad, grad_lse, needs)


attend = apply_of(node_of(_forward, _backward))
"""``attend(call, *tensors)`` returns the result and ``lse`` of a call, with gradients."""


# -------------------------------------------------------------------------------------------------------- torch.compile


class _Body(fx.Interpreter):
    """Runs the body of a call, and calls the operator with the graph of its functions."""

    def __init__(self, body: fx.GraphModule, graph_of: GraphOf) -> None:
        super().__init__(body)
        self.graph_of = graph_of

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, object]) -> object:
        """Call a function of the body."""
        if target is not _OPERATOR:
            return super().call_function(target, args, kwargs)
        query, key, value, found, lists, _, *how = args
        traced = self.graph_of(*found[: -len(_PLACES)])
        functions = "" if traced.graph is None else traced.graph.text
        return _OPERATOR(query, key, value, list(traced.captured), lists, functions, *how)


_PLACES = ("score", "b", "h", "q_idx", "kv_idx")
"""Tensors that stand for the score and the indices, the last captured ones of a body's operator."""


class _FlexAttention(BaseHOP):
    """The higher-order operator ``body(*operands)``, which is replaced by the operator in it."""

    def __init__(self) -> None:
        super().__init__("cute_flex_attention")

    def __call__(self, subgraph: fx.GraphModule, *operands: Any, **_: object) -> Any:
        """Run a body, at the lowering of its graph or in eager mode."""
        call = next(node for node in subgraph.graph.nodes if node.target is _OPERATOR)
        places, scale = call.args[3][-len(_PLACES) :], call.args[-1]
        operands = tuple([int(x) if isinstance(x, torch.SymInt) else x for x in operands])

        def body(proxies: Sequence[object], graph_of: GraphOf) -> object:
            return _Body(subgraph, graph_of).run(*operands, initial_env=dict(zip(places, proxies)))

        return trace_body(FLEX, body, keeps_score=scale is not None and scale <= 0)


_CALL = _FlexAttention()


def attend_traced(
    tensors: tuple[Tensor, Tensor, Tensor],
    score_mod: Callable[..., Any] | None,
    mask: BlockMaskFields,
    lists: tuple[Tensor, ...],
    scale: float | None,
) -> tuple[Tensor, Tensor]:
    """Return the result and ``lse`` of a call that ``torch.compile`` traces.

    Args:
        tensors: query, key and value.
        score_mod, mask: the functions.
        lists: lists of the block mask, as the operator takes them.
        scale: factor of the scores.
    """
    query, key, value = tensors

    def body() -> tuple[Tensor, Tensor]:
        score = query.new_empty(1, dtype=torch.float32)
        places = [query.new_empty(1, dtype=torch.int32) for _ in _PLACES[1:]]
        found = [score if score_mod is None else score_mod(score, *places)]
        if not isinstance(found[0], Tensor):  # the operator takes tensors only
            found = [score * 0 + found[0]]
        if mask.mask_mod is not None:
            visible = mask.mask_mod(*places)
            if not isinstance(visible, Tensor):
                visible = places[0].new_ones(1) if visible else places[0].new_zeros(1)
            found.append(visible)
        blocks = [*mask.sizes, *mask.lengths]
        return _OPERATOR(query, key, value, [*found, score, *places], list(lists), "", blocks, scale)

    return _CALL(body)  # pyright: ignore[reportArgumentType]
