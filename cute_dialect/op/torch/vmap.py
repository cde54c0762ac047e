"""Rules of ``torch.vmap`` for GEMMs: a mapped GEMM is a batched GEMM, a mapped batch a longer batch.

::

    torch.vmap(lambda a, b: op.mm(a, b))(As, Bs)              # one bmm
    torch.vmap(op.linear, in_dims=(0, None))(xs, weight)      # the weights are read as one matrix

An operand that is not mapped is shared by the batch.  No kernel supports a bias per matrix, so a mapped bias is a
loop.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

__all__ = ["batched_product", "batched_slope", "differentiates", "wrapped"]


_FUNCTORCH: Any = getattr(torch, "_C")._functorch  # noqa: B009


def wrapped(*tensors: Any) -> bool:
    """Return True if a tensor belongs to ``torch.vmap``, ``torch.func.grad`` or the like, and so has no memory."""
    told: Callable[[Any], bool] | None = getattr(_FUNCTORCH, "is_functorch_wrapped_tensor", None)
    return told is not None and any([told(t) for t in tensors])


def differentiates(*tensors: Any) -> bool:
    """Return True if ``torch.func.grad`` or a similar transform needs gradients of the tensors."""
    functorch = _FUNCTORCH
    kinds = functorch.TransformType.Grad, functorch.TransformType.Jvp
    if torch.compiler.is_compiling() or functorch.peek_interpreter_stack() is None:
        return False
    inside = any([i.key() in kinds for i in functorch.get_interpreter_stack()])
    return inside and torch.is_grad_enabled() and any([t is not None and t.requires_grad for t in tensors])


def batched_slope(
    info: Any, in_dims: Sequence[int | None], grad: torch.Tensor, sums: torch.Tensor, activation: str, device: str = ""
) -> tuple[tuple[torch.Tensor, torch.Tensor], tuple[int, int]]:  # fmt: skip
    """Compute the derivative of an activation under ``torch.vmap``, for a longer batch; a rule of ``torch.library``."""
    one = [t.unsqueeze(0) if d is None else t.movedim(d, 0) for t, d in zip((grad, sums), in_dims)]
    shape = (info.batch_size, *one[0].shape[1:])
    g, z = (t.expand(shape).reshape(-1, *shape[-2:]) for t in one)
    found, columns = torch.ops.cute.bmm_slope(g, z, activation, device)
    return (found.reshape(shape), columns.reshape(*shape[:-2], 1, shape[-1])), (0, 0)


def batched_product(call: str, kept: bool = False) -> Callable[..., Any]:
    """Return the rule of ``mm`` or ``bmm`` for ``torch.library``; ``kept``: of the variant that saves an operand."""
    last = "_kept" if kept else ""

    def rule(info: Any, in_dims: Sequence[int | None], *args: Any, **how: Any) -> tuple[Any, Any]:
        n = info.batch_size
        dims = (*in_dims, *(None,) * (len(args) - len(in_dims)))
        moved = [t if d is None else t.movedim(d, 0) for t, d in zip(args, dims)]
        mapped = [d is not None for d in dims]
        moved += [None] * (4 - len(moved))
        mapped += [False] * (4 - len(mapped))
        a, b, c, bias = moved
        of_a, of_b, of_c, of_bias = mapped
        if of_bias or (call == "mm" and bias is not None and bias.dim() > 2):
            each = [[t[i] if m else t for t, m in zip(moved, mapped)] for i in range(n)]
            found = [getattr(torch.ops.cute, call + last)(*x, **how) for x in each]
            return (tuple([torch.stack(x) for x in zip(*found)]), (0, 0)) if kept else (torch.stack(found), 0)
        several = call == "bmm"
        matrices = max(x.shape[1 if m else 0] for x, m in ((a, of_a), (b, of_b))) if several else 1
        rows, columns = a.shape[-2], b.shape[-1]

        def batch(x: Any, of_x: bool, shape: tuple[int, int], one: bool) -> torch.Tensor:
            """Return (n L, …), or (1, …) for a matrix that is shared by the batch (``one``)."""
            if not of_x and one:
                return x.reshape(1, *shape)
            full = x.reshape(n if of_x else 1, -1, *shape)
            return full.expand(n, matrices, *shape).reshape(n * matrices, *shape)

        def added(x: torch.Tensor | None, of_x: bool) -> torch.Tensor | None:
            """Return an addend in a shape that broadcasts to the result."""
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
        if x.shape[0] == y.shape[0] == 1 and n * matrices > 1:  # only addends are mapped
            x = x.expand(n * matrices, *x.shape[1:])
        shape = (n, *(matrices,) * several, rows, columns)
        found = getattr(torch.ops.cute, f"bmm{last}")(x, y, added(c, of_c), bias, **how)
        return (tuple([t.reshape(shape) for t in found]), (0, 0)) if kept else (found.reshape(shape), 0)

    return rule
