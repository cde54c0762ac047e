"""``cute.nvgpu.cpasync``: asynchronous copies with ``cp.async`` and TMA, and tensor maps that a kernel changes.

A kernel changes the map of a tensor whose address and extents only the GPU knows.  It copies the map of an atom to 128
bytes of global memory, aligned to 64.  One thread changes it there and releases it to the TMA unit.  Warps that use it
acquire it and pass its address to ``cute.copy``::

    if warp == 0:
        cpasync.copy_tensormap(atom, where)
        cpasync.update_tma_descriptor(atom, tensor, where)
        cute.arch.sync_warp()
        cpasync.fence_tma_desc_release()
        cpasync.fence_tma_desc_acquire(where)
        cute.copy(atom, coords, shared, tma_bar_ptr=bar, tma_desc_ptr=where)

:class:`TensorMapManager` has the same steps as methods, with the names of CuTe DSL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

import cute_dialect.lang as cute
from cute_dialect.arch.targets import TCGEN05
from cute_dialect.lang.machine.atoms import CopyOp
from cute_dialect.lang.machine.tensor_memory import CtaGroup, group_number
from cute_dialect.lang.machine.tma import MAP_BYTES, checked_map, map_of
from cute_dialect.lang.machine.tma import Im2colOp as Im2colOp
from cute_dialect.lang.machine.tma import TmaInfo as TmaInfo
from cute_dialect.lang.machine.tma import TmaOp as TmaOp
from cute_dialect.lang.machine.tma import create_tma_multicast_mask as create_tma_multicast_mask
from cute_dialect.lang.machine.tma import make_im2col_tma_atom as make_im2col_tma_atom
from cute_dialect.lang.machine.tma import make_tiled_tma_atom as make_tiled_tma_atom
from cute_dialect.lang.machine.tma import prefetch_descriptor as prefetch_descriptor
from cute_dialect.lang.machine.tma import tma_partition as tma_partition
from cute_dialect.lang.nvgpu.common import BulkCopyOp, BulkReduceOp
from cute_dialect.lang.nvgpu.common import LoadCacheMode as LoadCacheMode
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from cute_dialect.lang.machine.atoms import CopyAtom
    from cute_dialect.lang.values.pointers import Pointer
    from cute_dialect.lang.values.tensors import Tensor

__all__ = [
    "G2S",
    "S2G",
    "CopyBulkG2SOp",
    "CopyBulkS2GOp",
    "CopyBulkTensorIm2colG2SOp",
    "CopyBulkTensorIm2colS2GOp",
    "CopyBulkTensorIm2colW128G2SOp",
    "CopyBulkTensorIm2colWG2SOp",
    "CopyBulkTensorTileG2SMulticastOp",
    "CopyBulkTensorTileG2SOp",
    "CopyBulkTensorTileGather4G2SOp",
    "CopyBulkTensorTileS2GOp",
    "CopyBulkTensorTileScatter4S2GOp",
    "CopyG2SOp",
    "CopyReduceBulkS2GOp",
    "CopyReduceBulkTensorIm2colS2GOp",
    "CopyReduceBulkTensorTileS2GOp",
    "G2SMulticast",
    "LoadCacheMode",
    "TmaInfo",
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
    """TMA load of a tile of a global tensor to shared memory, completed on an mbarrier.

    With ``cta_group`` ``tcgen05.CtaGroup.TWO`` the bytes count at the barrier of the even block of the pair.
    """

    cta_group: CtaGroup = CtaGroup.ONE
    direction: ClassVar[str] = "load"
    multicast: ClassVar[bool | None] = False
    needs_barrier: ClassVar[bool] = True

    def __post_init__(self) -> None:
        group_number(self.cta_group, self.name)


@dataclass(frozen=True)
class CopyBulkTensorTileG2SMulticastOp(TmaOp):
    """TMA load of a tile of a global tensor to the shared memory of several blocks of the cluster.

    With ``cta_group`` ``tcgen05.CtaGroup.TWO`` the bytes count at the barrier of the even block of the pair.
    """

    cta_group: CtaGroup = CtaGroup.ONE
    direction: ClassVar[str] = "load"
    multicast: ClassVar[bool | None] = True
    needs_barrier: ClassVar[bool] = True

    def __post_init__(self) -> None:
        group_number(self.cta_group, self.name)


@dataclass(frozen=True)
class CopyBulkTensorTileS2GOp(TmaOp):
    """TMA store of a tile of shared memory to a global tensor, in a bulk group.

    The GPU writes whole units of 16 bytes.  If the extent of the contiguous mode is not a multiple of 16 bytes, the
    elements past its end are overwritten up to the next multiple.
    """

    direction: ClassVar[str] = "store"


@dataclass(frozen=True)
class CopyBulkTensorTileGather4G2SOp(TmaOp):
    """TMA load of four rows of a global matrix, by index, to shared memory, completed on an mbarrier.

    A tile has four rows, and ``cute.copy(…, rows=(i, j, k, l))`` takes their indices. Rows outside the matrix are
    filled. With ``cta_group`` ``tcgen05.CtaGroup.TWO`` the bytes count at the barrier of the even block of the pair.
    """

    cta_group: CtaGroup = CtaGroup.ONE
    chip: ClassVar[str] = "sm_100"
    direction: ClassVar[str] = "load"
    mode: ClassVar[str] = "gather4"
    multicast: ClassVar[bool | None] = False
    needs_barrier: ClassVar[bool] = True

    def __post_init__(self) -> None:
        group_number(self.cta_group, self.name)


@dataclass(frozen=True)
class CopyBulkTensorTileScatter4S2GOp(TmaOp):
    """TMA store of four rows of shared memory to rows of a global matrix, by index, in a bulk group.

    A tile has four rows, and ``cute.copy(…, rows=(i, j, k, l))`` takes their indices, which must differ. Rows past the
    end of the matrix are dropped, so an index of at least the number of rows skips a row. Indices must not be negative.
    """

    chip: ClassVar[str] = TCGEN05
    direction: ClassVar[str] = "store"
    mode: ClassVar[str] = "scatter4"


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
class CopyBulkTensorIm2colWG2SOp(Im2colOp):
    """TMA load of pixels along W and N of a global image, and of a halo after them, completed on an mbarrier.

    The rows H and D are those of the coordinates. ``im2col_offsets`` is one offset along W, from 0 to 31.
    """

    chip: ClassVar[str] = TCGEN05
    direction: ClassVar[str] = "load"
    needs_barrier: ClassVar[bool] = True
    wide: ClassVar[str] = "w"


@dataclass(frozen=True)
class CopyBulkTensorIm2colW128G2SOp(CopyBulkTensorIm2colWG2SOp):
    """TMA load of 128 pixels along W and N of a global image, with a halo after each 32; see
    :class:`CopyBulkTensorIm2colWG2SOp`.
    """

    wide: ClassVar[str] = "w_128"


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


_WORDS = MAP_BYTES // 8


def _words(pointer: Pointer) -> Tensor:
    return cute.make_tensor(cute.recast_ptr(pointer, dtype=cute.Int64), _WORDS)


def copy_tensormap(tma_atom: CopyAtom, tensormap_ptr: Pointer) -> None:
    """Copy the tensor map of an atom to global or shared memory. One thread of the warp copies it."""
    source, target = _words(map_of(tma_atom, "copy_tensormap")), _words(checked_map(tensormap_ptr, "copy_tensormap"))
    if cute.arch.issues():
        for i in cute.range_constexpr(_WORDS):
            target[i] = source[i]


def update_tma_descriptor(tma_atom: CopyAtom, gmem_tensor: Tensor, tma_desc_ptr: Pointer) -> None:
    """Set the address, extents and strides of a tensor map. One thread of the warp writes them.

    Args:
        tma_atom: the atom whose map was copied there.
        gmem_tensor: the new tensor in global memory, with the modes of the tensor for which the atom was created.
        tma_desc_ptr: the address of the map in global or shared memory.
    """
    what = "update_tma_descriptor"
    where = checked_map(tma_desc_ptr, what)
    modes = tma_atom.map_modes
    if not modes or len(modes) > len(gmem_tensor.shape):
        raise KernelTypeError(
            "F254", f"{what}: each dimension of the tensor map must be one mode of the tensor, got {gmem_tensor!r}",
            hint="create the atom for a tensor with the same modes, without nested ones",
        )  # fmt: skip
    space = "shared::cta" if where.memspace == AddressSpace.smem else "global"
    start = f"tensormap.replace.tile.{{}}.{space}.b1024."
    bits = gmem_tensor.element_type.width
    if cute.arch.issues():
        cute.arch.inline_ptx(f"{start.format('global_address')}b64 [$0], $1;", where, gmem_tensor.iterator.toint())
        for d in cute.range_constexpr(len(modes)):
            extent = cute.Int32(gmem_tensor.shape[modes[d]])
            cute.arch.inline_ptx(f"{start.format('global_dim')}b32 [$0], {d}, $1;", where, extent)
            if d > 0:
                stride = cute.Int64(gmem_tensor.stride[modes[d]])
                stride = stride * bits // 8 if cute.const_expr(bits < 8) else stride * (bits // 8)
                cute.arch.inline_ptx(f"{start.format('global_stride')}b64 [$0], {d - 1}, $1;", where, stride)


def fence_tma_desc_release() -> None:
    """Release earlier changes of tensor maps in global memory by this thread to the TMA unit of the GPU."""
    cute.arch.inline_ptx("fence.proxy.tensormap::generic.release.gpu;")


def fence_tma_desc_acquire(tma_desc_ptr: Pointer) -> None:
    """Acquire a tensor map in global memory before copies that use it."""
    where = checked_map(tma_desc_ptr, "fence_tma_desc_acquire")
    cute.arch.inline_ptx("fence.proxy.tensormap::generic.acquire.gpu [$0], 128;", where)


def cp_fence_tma_desc_release(gmem_desc_ptr: Pointer, smem_desc_ptr: Pointer) -> None:
    """Copy a tensor map from shared to global memory and release it to the TMA unit. The whole warp calls it."""
    source = _words(checked_map(smem_desc_ptr, "cp_fence_tma_desc_release"))
    target = _words(checked_map(gmem_desc_ptr, "cp_fence_tma_desc_release"))
    if cute.arch.issues():
        for i in cute.range_constexpr(_WORDS):
            target[i] = source[i]
    cute.arch.sync_warp()
    fence_tma_desc_release()


class TensorMapUpdateMode(Enum):
    """The memory in which a :class:`TensorMapManager` changes tensor maps."""

    GMEM = 1
    SMEM = 2


class TensorMapManager:
    """Tensor maps in global memory that a kernel changes, with a warp that changes them.

    Args:
        tensormap_update_mode: the memory in which they are changed.
        bytes_per_tensormap: the size of a map, 128.
    """

    def __init__(self, tensormap_update_mode: TensorMapUpdateMode, bytes_per_tensormap: int = MAP_BYTES):
        self.tensormap_update_mode = tensormap_update_mode
        self.bytes_per_tensormap = bytes_per_tensormap

    def get_tensormap_ptr(self, ptr: Pointer, address_space: AddressSpace | str = "gmem") -> Pointer:
        """Return the pointer to a map, in global or in generic memory."""
        space = str(getattr(address_space, "value", address_space))
        if space not in (AddressSpace.gmem, AddressSpace.generic):
            raise KernelTypeError(
                "F254", f"get_tensormap_ptr: address_space must be gmem or generic, got {address_space}"
            )
        return cute.make_ptr(cute.Int64, ptr.toint(), space, assumed_align=64)

    def init_tensormap_from_atom(self, copy_atom: CopyAtom, dst_ptr: Pointer, warp_id: int) -> None:
        """Copy the tensor map of an atom to memory. Warp ``warp_id`` of the block copies it."""
        if cute.arch.make_warp_uniform(cute.arch.warp_idx()) == warp_id:
            copy_tensormap(copy_atom, dst_ptr)
            cute.arch.sync_warp()

    def fence_tensormap_initialization(self) -> None:
        """Order the copies of :meth:`init_tensormap_from_atom` before later changes."""
        cute.arch.fence_acq_rel_cta()

    def fence_tensormap_update(self, tensormap_ptr: Pointer) -> None:
        """Acquire a changed map before copies that use it."""
        fence_tma_desc_acquire(tensormap_ptr)

    def update_tensormap(
        self,
        tensor_gmem: Sequence[Tensor],
        tma_copy_atom: Sequence[CopyAtom],
        tensormap_gmem_ptr: Sequence[Pointer],
        warp_id: int,
        tensormap_smem_ptr: Sequence[Pointer],
    ) -> None:
        """Set the addresses, extents and strides of several maps and release them to the TMA unit.

        Args:
            tensor_gmem: the new tensors.
            tma_copy_atom: their atoms.
            tensormap_gmem_ptr: the addresses of the maps in global memory.
            warp_id: the warp of the block that changes them.
            tensormap_smem_ptr: their addresses in shared memory, if the mode is SMEM.
        """
        in_shared = self.tensormap_update_mode == TensorMapUpdateMode.SMEM
        if cute.arch.make_warp_uniform(cute.arch.warp_idx()) == warp_id:
            # Copies that read shared memory may still use the maps.
            if cute.arch.issues():
                cute.arch.cp_async_bulk_commit_group()
                cute.arch.cp_async_bulk_wait_group(0, read=True)
            cute.arch.sync_warp()
            for atom, tensor, where in zip(
                tma_copy_atom, tensor_gmem, tensormap_smem_ptr if in_shared else tensormap_gmem_ptr
            ):
                update_tma_descriptor(atom, tensor, where)
            cute.arch.sync_warp()
            if in_shared:
                for where, source in zip(tensormap_gmem_ptr, tensormap_smem_ptr):
                    cp_fence_tma_desc_release(where, source)
            else:
                fence_tma_desc_release()


def __dir__() -> list[str]:
    return sorted(__all__)
