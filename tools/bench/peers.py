"""The side of torch: types by the names of MLIR, random operands, and the calls that ours are compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from cute_dialect.op.arrays.dtypes import torch_name
from cute_dialect.runtime.arrays import numpy_dtype

if TYPE_CHECKING:  # pragma: no cover
    import torch

__all__ = ["can_compile", "compiled", "dtype", "normal", "operator", "tuned_compile", "unread"]


def dtype(element: str) -> torch.dtype:
    """Return torch's type of an element type such as ``bf16``; ``tf32`` is stored as ``f32``."""
    import torch

    return getattr(torch, torch_name("f32" if element == "tf32" else element))


def normal(element: str, *shape: int, device: str = "cuda", scale: float = 1.0) -> torch.Tensor:
    """Return normally distributed values."""
    import torch

    return (torch.randn(shape, device=device) * scale).to(dtype(element))


def unread(element: str, *shape: int) -> Any:
    """Return an uninitialized array of numpy; its memory is never touched and takes no pages."""
    return np.empty(shape, numpy_dtype(element))


def operator(name: str) -> Callable[..., Any]:
    """Return a function of torch without a public name, such as ``_scaled_mm``."""
    import torch

    return getattr(torch, name)


@cache
def can_compile() -> bool:
    """Return True if ``torch.compile`` works; it needs a C compiler."""
    import torch

    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    try:
        torch.compile(twice)(torch.ones(8, device="cuda"))
    except Exception:  # The kind of error depends on what is missing.
        return False
    return True


def tuned_compile(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function compiled by ``torch.compile`` for static shapes, with a graph that can be used repeatedly."""
    import torch

    config: Any = import_module("torch._functorch.config")
    config.donated_buffer = False  # Gradients are computed repeatedly from one retained graph.
    torch.compiler.reset()
    return torch.compile(function, dynamic=False)


def compiled(function: Callable[..., Any], *args: Any) -> Mapping[str, Callable[[], object]]:
    """Return the peers ``torch``, which calls a function with the arguments, and ``compiled``, which uses
    ``torch.compile`` for static shapes, if it works.
    """
    peers: dict[str, Callable[[], object]] = {"torch": lambda: function(*args)}
    if can_compile():
        fast = tuned_compile(function)
        fast(*args)
        peers["compiled"] = lambda: fast(*args)
    return peers
