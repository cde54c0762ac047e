"""Tensor memory (``tcgen05``): allocation, tiled copies, commits and fences.

One warp allocates columns and writes their address to shared memory. After a barrier, other threads read it::

    if warp == 0:
        cute.arch.alloc_tmem(256, slot)
    cute.arch.sync_threads()
    pointer = cute.arch.retrieve_tmem_ptr(cute.Float32, 16, slot)

``cute.utils.TmemAllocator`` has these steps as methods.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.tiling import logical_divide
from cute_dialect.algebra.trees import leaves
from cute_dialect.algebra.values import ComposedLayout, Layout, layout_modes, raw_layout
from cute_dialect.arch.tmem import ALLOCATIONS, strides
from cute_dialect.lang.machine.atoms import CopyAtom, refuse
from cute_dialect.lang.machine.copies import TiledCopy
from cute_dialect.lang.machine.instructions import emit_machine, operand, pointer, tensor_operand
from cute_dialect.lang.machine.threads import issued_by_one
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.tracing.tracer import op_class
from cute_dialect.lang.values.layout_functions import tile_to_shape
from cute_dialect.lang.values.layouts import as_layout
from cute_dialect.lang.values.pointers import Pointer, recast_ptr
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from cute_dialect.lang.values.dtypes import Numeric
    from cute_dialect.lang.values.signature_types import Int, LayoutLike
    from cute_dialect.lang.values.tensors import Tensor

__all__ = [
    "alloc_tmem",
    "dealloc_tmem",
    "fence_view_async_tmem_load",
    "fence_view_async_tmem_store",
    "get_max_tmem_alloc_cols",
    "get_min_tmem_alloc_cols",
    "relinquish_tmem_alloc_permit",
    "retrieve_tmem_ptr",
]
"""The names of ``cute.arch``."""


def _slot(x: object, what: str) -> SSAValue:
    return pointer(x, f"'smem_ptr' of {what}", "i32", (AddressSpace.smem,))


def _columns(n: object, what: str) -> int:
    if n not in ALLOCATIONS:
        raise KernelTypeError(
            "F251", f"{what}: the number of columns must be one of {', '.join(map(str, ALLOCATIONS))}, got {n}"
        )
    assert isinstance(n, int)
    return n


class CtaGroup(Enum):
    """Blocks that execute an MMA together: ONE, or TWO for a pair, the blocks of ranks 2i and 2i + 1 of a cluster."""

    ONE = 1
    TWO = 2


def group_number(cta_group: object, what: str) -> int:
    """Return the number of blocks of a :class:`CtaGroup`. Raises F250 for other values."""
    if not isinstance(cta_group, CtaGroup):
        raise KernelTypeError("F250", f"{what}: cta_group must be CtaGroup.ONE or CtaGroup.TWO, got {cta_group!r}")
    return cta_group.value


def _pair(is_two_cta: bool) -> int | None:
    """Return the property ``cta_group`` of an op, or None for one block."""
    return 2 if is_two_cta else None


def alloc_tmem(num_columns: int, smem_ptr_to_write_address: Pointer, is_two_cta: bool = False) -> None:
    """Allocate columns of tensor memory, and write their address to shared memory. One whole warp calls it.

    The call waits until the columns are free. Every column must be freed by :func:`dealloc_tmem`.

    Args:
        num_columns: 32, 64, 128, 256 or 512.
        smem_ptr_to_write_address: a pointer to an Int32 in shared memory.
        is_two_cta: allocate the same columns in both blocks of a pair. One warp of each block calls it.
    """
    what = "cute.arch.alloc_tmem"
    where = _slot(smem_ptr_to_write_address, what)
    columns = _columns(num_columns, what)
    emit_machine("tmem_alloc", [where], what=what, columns=columns, cta_group=_pair(is_two_cta))


def relinquish_tmem_alloc_permit(is_two_cta: bool = False) -> None:
    """Declare that the block allocates no more tensor memory. The allocating warp calls it."""
    emit_machine("tmem_relinquish", what="cute.arch.relinquish_tmem_alloc_permit", cta_group=_pair(is_two_cta))


def retrieve_tmem_ptr(element_type: type[Numeric], alignment: int, ptr_to_buffer_holding_addr: Pointer) -> Pointer:
    """Return the pointer to tensor memory that :func:`alloc_tmem` has written, after a barrier.

    Args:
        element_type: the element type of the pointer.
        alignment: ignored; allocations are aligned to 32 columns.
        ptr_to_buffer_holding_addr: the pointer to the Int32 in shared memory.
    """
    del alignment
    what = "cute.arch.retrieve_tmem_ptr"
    made = emit_machine("tmem_pointer", [_slot(ptr_to_buffer_holding_addr, what)], what=what).results[0]
    return recast_ptr(Pointer.of(made), dtype=element_type)


def dealloc_tmem(tmem_ptr: Pointer, num_columns: int, is_two_cta: bool = False) -> None:
    """Free columns of tensor memory. One whole warp calls it, after a barrier that follows the last access.

    With ``is_two_cta`` one warp of each block of the pair calls it.
    """
    what = "cute.arch.dealloc_tmem"
    at = pointer(tmem_ptr, f"'tmem_ptr' of {what}", "", (AddressSpace.tmem,))
    emit_machine("tmem_dealloc", [at], what=what, columns=_columns(num_columns, what), cta_group=_pair(is_two_cta))


def fence_view_async_tmem_load() -> None:
    """Wait until the thread's earlier loads of tensor memory are complete.

    ``cute.copy`` waits for its loads, so this call is redundant after it.
    """
    emit_machine("tmem_wait", what="cute.arch.fence_view_async_tmem_load", kind="load")


def fence_view_async_tmem_store() -> None:
    """Wait until the thread's earlier stores to tensor memory are complete."""
    emit_machine("tmem_wait", what="cute.arch.fence_view_async_tmem_store", kind="store")


def get_max_tmem_alloc_cols(compute_capability: str = "sm_100") -> int:
    """Return the greatest number of columns of one allocation, 512."""
    del compute_capability
    return ALLOCATIONS[-1]


def get_min_tmem_alloc_cols(compute_capability: str = "sm_100") -> int:
    """Return the least number of columns of one allocation, 32."""
    del compute_capability
    return ALLOCATIONS[0]


# ------------------------------------------------------------------------------------------------- commits and fences


def commit(mbar_ptr: Pointer, mask: Int | None = None, cta_group: CtaGroup = CtaGroup.ONE) -> None:
    """Arrive at an mbarrier when the earlier MMAs are complete.

    One thread of the calling warp arrives: the one that has issued them. The commit includes
    :func:`fence_before_thread_sync`.

    Args:
        mbar_ptr: the mbarrier.
        mask: arrive at the same address in each block of the cluster whose bit is set. None means this block.
        cta_group: the blocks that execute the MMAs.
    """
    what = "cute.nvgpu.tcgen05.commit"
    operands = [operand("bar", mbar_ptr, f"'mbar_ptr' of {what}")]
    if mask is not None:
        operands.append(operand("mask", mask, f"'mask' of {what}"))
    group = group_number(cta_group, what)

    def emit() -> None:
        emit_machine("tcgen05_commit", operands, what=what, cta_group=_pair(group == 2))

    issued_by_one(emit)


def fence_before_thread_sync() -> None:
    """Order the thread's earlier accesses of tensor memory before a barrier, or an arrival at an mbarrier."""
    emit_machine("tcgen05_fence", what="cute.nvgpu.tcgen05.fence_before_thread_sync", kind="before")


def fence_after_thread_sync() -> None:
    """Order the thread's later accesses of tensor memory after a barrier, or a wait at an mbarrier."""
    emit_machine("tcgen05_fence", what="cute.nvgpu.tcgen05.fence_after_thread_sync", kind="after")


# ------------------------------------------------------------------------------------------------------- tiled copies


def _accesses_tmem(atom: CopyAtom, what: str) -> None:
    from cute_dialect.cute_nvgpu.tmem import TmemCopyType  # late: start-up

    if not isinstance(atom, CopyAtom) or not isinstance(atom.type, TmemCopyType):
        raise KernelTypeError(
            "F251",
            f"{what}: atom must be a load or store of tensor memory, got {atom!r}",
            hint="cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), cute.Float32)",
        )


def make_tmem_copy(atom: CopyAtom, tmem_tensor: Tensor) -> TiledCopy:
    """Create the tiled copy of four warps between registers and a tile in tensor memory.

    Each warp accesses the 32 lanes of its position in the warpgroup, ``warp % 4``. Pass the thread's index in the
    warpgroup to ``get_slice``.

    Args:
        atom: a load or a store of tensor memory.
        tmem_tensor: the tile, with a static layout.
    """
    what = "cute.nvgpu.tcgen05.make_tmem_copy"
    _accesses_tmem(atom, what)
    return _tiled_copy(atom, tmem_tensor, what)


def make_s2t_copy(atom: CopyAtom, tmem_tensor: Tensor) -> TiledCopy:
    """Create the tiled copy of one thread from shared memory to a tile in tensor memory.

    ``get_slice(0)`` partitions both sides. ``cute.copy`` issues the copies in one thread; later MMAs of this thread
    read the tile without a wait.

    Args:
        atom: a copy such as ``Cp4x32x128bOp``.
        tmem_tensor: the tile, with a static layout, and without modes of stride 0 (``cute.filter_zeros``).
    """
    what = "cute.nvgpu.tcgen05.make_s2t_copy"
    _copies_to_tmem(atom, what)
    return _tiled_copy(atom, tmem_tensor, what)


def get_s2t_smem_desc_tensor(tiled_copy: TiledCopy, smem_tensor: Tensor) -> Tensor:
    """Return the partition of shared memory unchanged: the compiler derives the descriptors of ``tcgen05.cp`` from it.

    Args:
        tiled_copy: a copy returned by :func:`make_s2t_copy`.
        smem_tensor: its partition of the source.
    """
    what = "cute.nvgpu.tcgen05.get_s2t_smem_desc_tensor"
    _copies_to_tmem(getattr(tiled_copy, "atom", tiled_copy), what)
    given = tensor_operand(smem_tensor, what, "tensor")
    if given.memspace != AddressSpace.smem:
        raise KernelTypeError("F251", f"{what}: the tensor must be in shared memory, got {given!r}")
    return given


def _copies_to_tmem(atom: object, what: str) -> None:
    from cute_dialect.cute_nvgpu.tmem_copy import SharedCopyType  # late: start-up

    if not isinstance(atom, CopyAtom) or not isinstance(atom.type, SharedCopyType):
        raise KernelTypeError(
            "F251",
            f"{what}: atom must be a copy from shared to tensor memory, got {atom!r}",
            hint="cute.make_copy_atom(tcgen05.Cp4x32x128bOp(), cute.Float8E8M0FNU)",
        )


def _tiled_copy(atom: CopyAtom, tmem_tensor: Tensor, what: str) -> TiledCopy:
    from cute_dialect.dialect.inference import infer_types_memo  # late: start-up

    tensor = tensor_operand(tmem_tensor, what, "tile")
    try:
        (made,) = infer_types_memo(op_class("cute.make_tmem_copy"), [atom.type, tensor.type], {})
    except AlgebraError as e:
        refuse("F251", what, e, hint=f"the tile is {tensor!r}")
    return TiledCopy(made, atom)


def tmem_columns(tensor: Tensor) -> int:
    """Return the number of columns from the first to the last element of a tensor with a static layout."""
    what = "find_tmem_tensor_col_offset"
    given = tensor_operand(tensor, what, "tensor")
    if given.memspace != AddressSpace.tmem or not isinstance(given.payload, Layout):
        raise KernelTypeError(
            "F251", f"{what}: the tensor must be in tensor memory, as the result of make_fragment_C; got {given!r}"
        )
    lane, column = strides(given.element_type.width)
    shape, stride = list(leaves(given.payload.shape)), list(leaves(given.payload.stride))
    last = 0
    for extent, step in zip(shape, stride):
        if not isinstance(extent, int) or not isinstance(step, int):
            raise KernelTypeError("F251", f"{what}: the layout must be static, got {given!r}")
        last += (extent - 1) * (step % lane)
    return -(-(last + 1) // column)


# ----------------------------------------------------------------------------------------------- layouts of operands


def tile_to_mma_shape(
    atom: LayoutLike, mma_tile_shape: tuple[object, ...], order: tuple[int, ...] | None = None
) -> LayoutLike:
    """Tile a layout atom of shared memory to the shape of an MMA's partition, ``((X,K), RestX, RestK, …)``.

    Args:
        atom: a layout atom, such as that of ``make_smem_layout_atom``.
        mma_tile_shape: the shape returned by ``partition_shape_A`` or ``partition_shape_B``, and more modes.
        order: the order in which the modes (X, K, …) are filled; by default column-major.
    """
    what = "cute.nvgpu.tcgen05.tile_to_mma_shape"
    first, rest_x, rest_k, *more = mma_tile_shape
    if not isinstance(first, tuple) or len(first) != 2:
        raise KernelTypeError("F251", f"{what}: mode 0 of the shape must be (X, K), got {mma_tile_shape}")
    x, k = first
    modes = (x * rest_x, k * rest_k, *more)
    whole = as_layout(tile_to_shape(atom, modes, order=tuple(range(len(modes))) if order is None else order))
    payload = whole.payload
    plain = payload.outer if isinstance(payload, ComposedLayout) else payload
    parts = layout_modes(plain)
    (x_in, x_out), (k_in, k_out) = (
        layout_modes(logical_divide(part, raw_layout(n, 1))) for part, n in zip(parts, (x, k))
    )
    rest = parts[2:]
    made = raw_layout(
        ((x_in.shape, k_in.shape), x_out.shape, k_out.shape, *(m.shape for m in rest)),
        ((x_in.stride, k_in.stride), x_out.stride, k_out.stride, *(m.stride for m in rest)),
    )
    if isinstance(payload, ComposedLayout):
        return as_layout(ComposedLayout(payload.inner, payload.offset, made))
    return as_layout(made)
