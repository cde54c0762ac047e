"""Weights in the form that kernels read: packed to 4 or 8 bits, or 2:4 sparse.

The classes are tuples of arrays, so that they can be saved and moved.  Importing ``cute_dialect.op`` after torch, or
using one of its names, lets ``torch.load(weights_only=True)`` read them::

    torch.save({"w": op.compress_2_4(w)}, "w.pt")
    w = torch.load("w.pt", weights_only=True)["w"]
"""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from cute_dialect.op.errors import ArgumentError


class PackedWeight(NamedTuple):
    """Weights as :func:`cute_dialect.op.pack_weight` returns them, for :func:`cute_dialect.op.mm_packed`."""

    data: Any  # 32-bit words: weights, scales and zero points
    n: int  # rows of the weights, columns of the result
    k: int  # columns of the weights and of x
    format: str  # see cute_dialect.op.problems.packed_weights.Format

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the weights, (N, K)."""
        return self.n, self.k

    def to(self, device: object) -> PackedWeight:
        """Return the weights on a device of torch, as ``torch.Tensor.to``."""
        return self._replace(data=_moved("PackedWeight", self.data, device))

    def __repr__(self) -> str:
        return f"PackedWeight({self.n} x {self.k}, {self.format})"


class SparseWeight(NamedTuple):
    """Weights as :func:`cute_dialect.op.compress_2_4` returns them, for :func:`cute_dialect.op.mm_sparse`."""

    kept: Any  # (N, K / 2), the kept elements
    metadata: Any  # i32 words with their positions, 2 bits for each

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the weights, (N, K)."""
        n, half = self.kept.shape
        return n, 2 * half

    def to(self, device: object) -> SparseWeight:
        """Return the weights on a device of torch, as ``torch.Tensor.to``."""
        return SparseWeight(_moved("SparseWeight", self.kept, device), _moved("SparseWeight", self.metadata, device))

    def __repr__(self) -> str:
        n, k = self.shape
        return f"SparseWeight({n} x {k})"


def allow_loading() -> None:
    """Let ``torch.load(weights_only=True)`` read the weights."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.serialization.add_safe_globals([PackedWeight, SparseWeight])


def _moved(call: str, x: Any, device: object) -> Any:
    """Return a tensor on another device.  Raises ArgumentError for arrays of other libraries, and no device."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(x, torch.Tensor):
        raise ArgumentError(f"{call}.to: the weights are of type {type(x).__name__}; only torch tensors can be moved")
    if not isinstance(device, str | int | torch.device):
        raise ArgumentError(f"{call}.to: device is {device!r}; pass a device, such as 'cuda'")
    return x.to(device=device)
