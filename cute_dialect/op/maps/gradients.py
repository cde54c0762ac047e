"""Gradients of functions of elements: of the function itself, which torch runs on the arrays in f32."""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from cute_dialect.op.dtypes import element_name, torch_name

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.maps.calls import Elementwise

__all__ = ["learned"]


def learned(of: Elementwise, arrays: Sequence[Any], dtype: object, device: object) -> Any:
    """Compute a function with gradients; in what torch compiles, as torch does."""
    if torch.compiler.is_compiling():
        found = _by_torch(of, arrays)
        kinds = {x.dtype for x in arrays if isinstance(x, torch.Tensor)}
        kind = getattr(torch, torch_name(element_name(dtype))) if dtype is not None else None
        kind = kind or (kinds.pop() if len(kinds) == 1 else torch.float32)
        made = [x.to(kind) for x in found]
        return tuple(made) if len(made) > 1 else made[0]
    return _Learned.apply(of, dtype, device, *arrays)


def _by_torch(of: Elementwise, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Return the results of the function, in f32, of the shape of all arrays."""
    given = [x.float() if isinstance(x, torch.Tensor) else x for x in arrays]
    found = of.function(*given)
    shape = torch.broadcast_shapes(*[x.shape for x in arrays if isinstance(x, torch.Tensor)])
    results = found if isinstance(found, tuple | list) else (found,)
    return tuple([torch.as_tensor(x, dtype=torch.float32).expand(shape) for x in results])


class _Learned(torch.autograd.Function):
    """The kernel forward, and what torch makes of the function backward."""

    @staticmethod
    def forward(ctx: Any, of: Any, dtype: Any, device: Any, *arrays: Any) -> Any:
        """Run the kernel, as a cached call where there was one like it."""
        ctx.of, ctx.numbers = of, [None if isinstance(x, torch.Tensor) else x for x in arrays]
        ctx.save_for_backward(*[x for x in arrays if isinstance(x, torch.Tensor)])
        return of(*arrays, dtype=dtype, device=device)  # gradients are off here

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Return gradients of the arrays that want them."""
        saved = iter(ctx.saved_tensors)
        arrays = [next(saved) if x is None else x for x in ctx.numbers]
        again = torch.is_grad_enabled()  # create_graph=True: gradients that have gradients
        with torch.enable_grad():
            if again:
                wanted = [x.float() if need else x for x, need in zip(arrays, ctx.needs_input_grad[3:])]
            else:
                wanted = [
                    x.detach().float().requires_grad_() if need else x.detach() if isinstance(x, torch.Tensor) else x
                    for x, need in zip(arrays, ctx.needs_input_grad[3:])
                ]
            results = [(y, dy.float()) for y, dy in zip(_by_torch(ctx.of, wanted), gradients) if y.requires_grad]
            over = [x for x, need in zip(wanted, ctx.needs_input_grad[3:]) if need]
            found: Any = [None] * len(over)
            if results:
                ys, dys = zip(*results)
                found = torch.autograd.grad(ys, over, dys, allow_unused=True, create_graph=again)
        found = iter(found)
        made: list[Any] = []
        for x, need in zip(arrays, ctx.needs_input_grad[3:]):
            dx = next(found) if need else None
            made.append(None if dx is None else dx.to(x.dtype))
        return None, None, None, *made
