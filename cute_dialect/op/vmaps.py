"""What ``torch.vmap`` makes of products: a product of matrices becomes one of a batch, one of a batch a longer one.

    torch.vmap(lambda a, b: op.mm(a, b))(As, Bs)              # one bmm
    torch.vmap(op.linear, in_dims=(0, None))(xs, weight)      # the weights are read as one matrix

Operands that are not mapped are one for all; a bias of each, which no kernel takes, is a loop.
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

__all__ = ["differentiates", "maps_of", "wrapped"]


_FUNCTORCH: Any = getattr(torch, "_C")._functorch  # noqa: B009


def wrapped(*tensors: Any) -> bool:
    """Tell whether tensors are those of ``torch.vmap``, ``torch.func.grad`` or the like: they have no memory."""
    told: Callable[[Any], bool] | None = getattr(_FUNCTORCH, "is_functorch_wrapped_tensor", None)
    return told is not None and any([told(t) for t in tensors])


def differentiates(*tensors: Any) -> bool:
    """Tell whether ``torch.func.grad`` or the like wants gradients of tensors."""
    functorch = _FUNCTORCH
    kinds = functorch.TransformType.Grad, functorch.TransformType.Jvp
    if torch.compiler.is_compiling() or functorch.peek_interpreter_stack() is None:
        return False
    inside = any([i.key() in kinds for i in functorch.get_interpreter_stack()])
    return inside and torch.is_grad_enabled() and any([t is not None and t.requires_grad for t in tensors])


def maps_of(call: str, slope: bool = False) -> Callable[..., Any]:
    """Return the rule of ``mm`` or ``bmm``, or of their ``slope``, as ``torch.library`` takes it."""

    def rule(info: Any, in_dims: Sequence[int | None], *args: Any, **how: Any) -> tuple[torch.Tensor, int]:
        n = info.batch_size
        dims = (*in_dims, *(None,) * (len(args) - len(in_dims)))
        moved = [t if d is None else t.movedim(d, 0) for t, d in zip(args, dims)]
        mapped = [d is not None for d in dims]
        moved += [None] * (4 + slope - len(moved))
        mapped += [False] * (len(moved) - len(mapped))
        grad, a, b, c, bias = moved if slope else (None, *moved)
        of_grad, of_a, of_b, of_c, of_bias = mapped if slope else (False, *mapped)
        if of_bias or (call == "mm" and bias is not None and bias.dim() > 2):
            each = [[t[i] if m else t for t, m in zip(moved, mapped)] for i in range(n)]
            name = f"{call}_slope" if slope else call
            return torch.stack([getattr(torch.ops.cute, name)(*x, **how) for x in each]), 0
        several = call == "bmm"
        matrices = max(x.shape[1 if m else 0] for x, m in ((a, of_a), (b, of_b))) if several else 1
        rows, columns = a.shape[-2], b.shape[-1]

        def batch(x: Any, of_x: bool, shape: tuple[int, int], one: bool) -> torch.Tensor:
            """Return (n L, …), or (1, …) of what is ``one`` for all."""
            if not of_x and one:
                return x.reshape(1, *shape)
            full = x.reshape(n if of_x else 1, -1, *shape)
            return full.expand(n, matrices, *shape).reshape(n * matrices, *shape)

        def added(x: torch.Tensor | None, of_x: bool) -> torch.Tensor | None:
            """Return what expands to the result."""
            if x is None or not (of_x or several):
                return x
            own = x.shape[1:] if of_x else x.shape
            full = (*(1,) * (2 + several - len(own)), *own)
            lead = (n if of_x else 1, *full) if several else (n, 1, *full)
            shape = (n, matrices, rows, columns)
            return x.reshape(lead).expand(shape).reshape(n * matrices, rows, columns)

        one_a = (not several or a.shape[0] == 1) and (of_b or not of_a)
        one_b = (not several or b.shape[0] == 1) and of_a
        x = batch(a, of_a, (rows, a.shape[-1]), one_a)
        y = batch(b, of_b, (b.shape[-2], columns), one_b)
        if x.shape[0] == y.shape[0] == 1 and n * matrices > 1:  # only what is added is mapped
            x = x.expand(n * matrices, *x.shape[1:])
        if slope:
            g = batch(grad, of_grad, (rows, columns), False)
            found = torch.ops.cute.bmm_slope(g, x, y, added(c, of_c), bias, **how)
        else:
            found = torch.ops.cute.bmm(x, y, added(c, of_c), bias, **how)
        return found.reshape(n, *(matrices,) * several, rows, columns), 0

    return rule
