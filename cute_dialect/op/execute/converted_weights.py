"""Weights that ``torch.autocast`` converts once: a cache of conversions, emptied when the outermost context ends.

torch keeps its conversions of weights until the outermost ``torch.autocast`` ends, and does not offer them to other
functions.  This cache lives as long as torch's: torch converts a probe, a parameter of one element, and this cache is
emptied when torch frees the result.  With ``cache_enabled=False`` torch frees it at once, and nothing is cached::

    with torch.autocast("cuda", torch.bfloat16):
        op.linear(x, layer.weight)      # converts the weight
        op.linear(y, layer.weight)      # reads the converted weight

The conversion is a node of autograd, also under ``torch.no_grad()``, because a later call may need gradients.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeGuard
from weakref import ref

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cute_dialect.op.execute.recording import CURRENT, is_eager

__all__ = ["converted_weight", "is_weight"]


class _Converted(NamedTuple):
    """A cached conversion of a weight, with the address and version for which it is valid."""

    weight: ref[torch.Tensor]
    state: tuple[int, int]  # its address and version
    result: torch.Tensor


_CONVERTED: dict[tuple[int, torch.dtype], _Converted] = {}
_PROBES: dict[torch.device, torch.nn.Parameter] = {}
_ALIVE: dict[torch.device, ref[torch.Tensor]] = {}
"""The probe in the type of autocast, by device; torch keeps it until the outermost context ends."""


def is_weight(x: object) -> TypeGuard[torch.Tensor]:
    """Return True for tensors whose conversions torch caches: f32 leaves that require gradients, and no views."""
    return (
        isinstance(x, torch.Tensor) and x.requires_grad and x.dtype is torch.float32 and x.is_leaf and not x._is_view()
    )


def converted_weight(weight: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return a weight in the type of autocast, from the cache if it is there, or unchanged if torch caches nothing."""
    if not torch.is_autocast_cache_enabled() or CURRENT.recording is not None or not is_eager([weight]):
        return weight
    device = weight.device
    if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        return weight  # A CUDA graph converts its weights at each replay.
    alive = _ALIVE.get(device)
    if (alive is None or alive() is None) and not _begin(device):
        return weight
    key = id(weight), dtype
    found = _CONVERTED.get(key)
    state = weight.data_ptr(), weight._version
    if found is not None and found.weight() is weight and found.state == state:
        return found.result
    with torch.inference_mode(False), torch.enable_grad():
        result = weight.to(dtype)
    _CONVERTED[key] = _Converted(ref(weight), state, result)
    return result


class _Conversions(TorchDispatchMode):
    """Collects weak references to the results of conversions."""

    def __init__(self) -> None:
        super().__init__()
        self.results: list[ref[torch.Tensor]] = []

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        result = func(*args, **(kwargs or {}))
        if func is torch.ops.aten._to_copy.default and isinstance(result, torch.Tensor):
            self.results.append(ref(result, _forget))
        return result


def _forget(_: object) -> None:
    _CONVERTED.clear()


def _begin(device: torch.device) -> bool:
    """Let torch convert and keep the probe of a device.  Return False if torch does not keep it."""
    probe = _PROBES.get(device)
    if probe is None:
        with torch.inference_mode(False):
            probe = _PROBES[device] = torch.nn.Parameter(torch.ones(1, 1, device=device))
    with torch.inference_mode(False), torch.no_grad(), _Conversions() as seen:
        torch.mm(probe, probe.detach()[:, :0])
    kept = [x for x in seen.results if x() is not None]
    if not kept:
        return False
    _ALIVE[device] = kept[0]
    return True
