"""``cute.nvgpu.cpasync``: asynchronous copies with ``cp.async`` and TMA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from cute_dialect.lang.lib.tensor_maps import copy_tensormap as copy_tensormap
from cute_dialect.lang.lib.tensor_maps import cp_fence_tma_desc_release as cp_fence_tma_desc_release
from cute_dialect.lang.lib.tensor_maps import fence_tma_desc_acquire as fence_tma_desc_acquire
from cute_dialect.lang.lib.tensor_maps import fence_tma_desc_release as fence_tma_desc_release
from cute_dialect.lang.lib.tensor_maps import update_tma_descriptor as update_tma_descriptor
from cute_dialect.lang.machine.atoms import CopyOp
from cute_dialect.lang.machine.tma import Im2colOp as Im2colOp
from cute_dialect.lang.machine.tma import TmaOp as TmaOp
from cute_dialect.lang.machine.tma import create_tma_multicast_mask as create_tma_multicast_mask
from cute_dialect.lang.machine.tma import make_im2col_tma_atom as make_im2col_tma_atom
from cute_dialect.lang.machine.tma import make_tiled_tma_atom as make_tiled_tma_atom
from cute_dialect.lang.machine.tma import prefetch_descriptor as prefetch_descriptor
from cute_dialect.lang.machine.tma import tma_partition as tma_partition
from cute_dialect.lang.nvgpu.common import BulkCopyOp, BulkReduceOp
from cute_dialect.lang.nvgpu.common import LoadCacheMode as LoadCacheMode
from cute_dialect.lang.tracing.errors import KernelTypeError

__all__ = [
    "G2S",
    "S2G",
    "CopyBulkG2SOp",
    "CopyBulkS2GOp",
    "CopyBulkTensorIm2colG2SOp",
    "CopyBulkTensorIm2colS2GOp",
    "CopyBulkTensorTileG2SMulticastOp",
    "CopyBulkTensorTileG2SOp",
    "CopyBulkTensorTileS2GOp",
    "CopyG2SOp",
    "CopyReduceBulkS2GOp",
    "CopyReduceBulkTensorIm2colS2GOp",
    "CopyReduceBulkTensorTileS2GOp",
    "G2SMulticast",
    "LoadCacheMode",
    "copy_tensormap",
    "cp_fence_tma_desc_release",
    "create_tma_multicast_mask",
    "fence_tma_desc_acquire",
    "fence_tma_desc_release",
    "make_im2col_tma_atom",
    "make_tiled_tma_atom",
    "prefetch_descriptor",
    "tma_partition",
    "update_tma_descriptor",
]


@dataclass(frozen=True)
class CopyG2SOp(CopyOp):
    """``cp.async``: global to shared memory, 32, 64 or 128 bits per thread. A false predicate writes zeros."""

    cache_mode: LoadCacheMode = LoadCacheMode.ALWAYS
    chip: ClassVar[str] = "sm_80"

    def atom_text(self, dtype: Any, bits: int | None) -> str:
        if bits is None:
            raise KernelTypeError(
                "F250", "cute.make_copy_atom(CopyG2SOp, …): num_bits_per_copy must be 32, 64 or 128",
                hint=f"num_bits_per_copy={128 if self.cache_mode == LoadCacheMode.GLOBAL else max(32, dtype.width)}",
            )  # fmt: skip
        mode = LoadCacheMode(self.cache_mode).value
        return f"!cute_nvgpu.atom.simt_async_copy<{dtype.mlir_type}, cache = {mode}, {bits} b>"


@dataclass(frozen=True)
class CopyBulkTensorTileG2SOp(TmaOp):
    """TMA load of a tile of a global tensor to shared memory, completed on an mbarrier."""

    direction: ClassVar[str] = "load"
    multicast: ClassVar[bool | None] = False
    needs_barrier: ClassVar[bool] = True


@dataclass(frozen=True)
class CopyBulkTensorTileG2SMulticastOp(TmaOp):
    """TMA load of a tile of a global tensor to the shared memory of several blocks of the cluster."""

    direction: ClassVar[str] = "load"
    multicast: ClassVar[bool | None] = True
    needs_barrier: ClassVar[bool] = True


@dataclass(frozen=True)
class CopyBulkTensorTileS2GOp(TmaOp):
    """TMA store of a tile of shared memory to a global tensor, in a bulk group.

    The GPU writes whole units of 16 bytes.  If the extent of the contiguous mode is not a multiple of 16 bytes, the
    elements past its end are overwritten up to the next multiple.
    """

    direction: ClassVar[str] = "store"


@dataclass(frozen=True)
class CopyReduceBulkTensorTileS2GOp(TmaOp):
    """TMA reduction of a tile of shared memory into a global tensor: add, min, max, inc, dec, and, or, xor."""

    reduction_kind: str = "add"
    direction: ClassVar[str] = "reduce"


@dataclass(frozen=True)
class CopyBulkTensorIm2colG2SOp(Im2colOp):
    """TMA im2col load of pixel columns of a global image to shared memory, completed on an mbarrier."""

    direction: ClassVar[str] = "load"
    needs_barrier: ClassVar[bool] = True


@dataclass(frozen=True)
class CopyBulkTensorIm2colS2GOp(Im2colOp):
    """TMA im2col store of pixel columns from shared memory to a global image, in a bulk group."""

    direction: ClassVar[str] = "store"


@dataclass(frozen=True)
class CopyReduceBulkTensorIm2colS2GOp(Im2colOp):
    """TMA im2col reduction of pixel columns of shared memory into a global image.

    The kinds are add, min, max, inc, dec, and, or, xor.
    """

    reduction_kind: str = "add"
    direction: ClassVar[str] = "reduce"


CopyBulkG2SOp = CopyBulkS2GOp = BulkCopyOp
"""Bulk copies without a descriptor. The memory spaces of the two tensors determine the direction."""
CopyReduceBulkS2GOp = BulkReduceOp
G2S = CopyBulkTensorTileG2SOp
G2SMulticast = CopyBulkTensorTileG2SMulticastOp
S2G = CopyBulkTensorTileS2GOp


def __dir__() -> list[str]:
    return sorted(__all__)
