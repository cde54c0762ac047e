"""``cute-to-base`` lowering of tensor maps and TMA copies.

A tensor map is a pointer. On the host it points to 128 bytes that the runtime encoded. In a kernel it points to a
parameter that is passed by value (``llvm.byval``, ``nvvm.grid_constant``). ``arch.make_tensor_map`` becomes a call of
an external function of the runtime (:data:`cute_dialect.arch.tensor_map_codes.FUNCTION`)::

    %map = llvm.call @cute_tensor_map_tiled_2d(%address, %k, %m, %bytes, %c64, %c128, …) : (…) -> !llvm.ptr

Copies in a kernel become ``nvvm.cp.async.bulk.tensor.…`` (in the ``.shared::cluster`` form, which PTX 8.3 has), and
prefetches become ``nvvm.prefetch``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp, StringAttr, i16, i32, i64
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from cute_dialect.arch.tensor_map_codes import (
    ELEMENT_CODES,
    FUNCTION,
    IM2COL_FUNCTION,
    INTERLEAVES,
    L2_PROMOTIONS,
    OOB_FILLS,
    SWIZZLES,
)
from cute_dialect.cute_nvgpu.tma.maps import Im2colMap, TmaMap
from cute_dialect.cute_nvgpu.tma.types import Im2colAtomType, TmaAtomType
from cute_dialect.ir.editing import make_op
from cute_dialect.passes.base import PassError
from cute_dialect.passes.lowering.types import pointer
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.spaces import AddressSpace
from cute_dialect.upstream import llvm, nvvm
from cute_dialect.upstream.attrs import attr

# ---------------------------------------------------------------------------------------------------------- on the host


def _make_tensor_map(low: Lowering, op: Operation) -> None:
    """Lower ``arch.make_tensor_map`` or ``arch.make_im2col_map``."""
    if low.device:
        raise PassError("a tensor map is built on the host; move this op to the function that launches the kernel", op)
    m, function = _map_of(op.results[0].type), FUNCTION
    if isinstance(m, Im2colMap):
        function = IM2COL_FUNCTION
    codes = (
        ELEMENT_CODES[str(m.element)],
        INTERLEAVES.index(m.interleave),
        SWIZZLES.index(m.swizzle),
        L2_PROMOTIONS.index(m.l2),
        OOB_FILLS.index(m.oob),
    )
    operands = [low.value(o) for o in op.operands]
    operands += [low.build.constant(n, i32) for n in (*m.numbers, *codes)]
    name = function.format(rank=m.rank)
    declare(op, name, [o.type for o in operands])
    low.values[op.results[0]] = low.build.emit(llvm.CallOp(name, operands, llvm.LLVMPointerType()))


def _map_of(atom: Attribute) -> TmaMap | Im2colMap:
    assert isinstance(atom, TmaAtomType | Im2colAtomType)
    return atom.data


def declare(op: Operation, name: str, types: list[Attribute]) -> None:
    """Declare ``llvm.func @name(…) -> !llvm.ptr`` in the module of ``op``, once."""
    module: Operation | None = op
    while module is not None and not isinstance(module, ModuleOp):
        module = module.parent_op()
    assert module is not None, "a pass runs on a module"
    block = module.body.block
    for other in block.ops:
        symbol = other.properties.get("sym_name", other.attributes.get("sym_name"))
        if isinstance(symbol, StringAttr) and symbol.data == name:
            return
    function = llvm.FuncOp(name, llvm.LLVMFunctionType(types, llvm.LLVMPointerType()))
    assert block.first_op is not None
    block.insert_op_before(function, block.first_op)


# ---------------------------------------------------------------------------------------------------------- in a kernel


class _Parts(NamedTuple):
    """Lowered operands of an instruction: the map, its static part, the coordinates, and the others."""

    m: TmaMap | Im2colMap
    tensor_map: SSAValue
    coordinates: list[SSAValue]
    others: list[SSAValue]

    def mode(self, kind: str) -> Attribute:
        """Return the mode attribute of a "load" or a "store"."""
        return attr(f"nvvm.tma_{kind}_mode", "im2col" if isinstance(self.m, Im2colMap) else "tile")


def _parts(low: Lowering, op: Operation) -> _Parts:
    m = _map_of(op.operands[0].type)
    tensor_map, *values = [low.value(o) for o in op.operands]
    return _Parts(m, tensor_map, values[: m.rank], values[m.rank :])


def _load(low: Lowering, op: Operation) -> None:
    parts = _parts(low, op)
    smem, bar, *others = parts.others
    offsets, others = others[: parts.m.spatial], others[parts.m.spatial :]
    # The shared memory of the CTA is part of the shared memory of the cluster.
    cluster = low.build.once(
        ("shared::cluster", smem), lambda: make_op(llvm.OPS["addrspacecast"], [smem], [pointer(AddressSpace.dsmem)])
    )
    instruction = nvvm.OPS["cp.async.bulk.tensor.shared.cluster.global"]
    mask, hint, mode = _of_type(others, i16), _of_type(others, i64), parts.mode("load")
    made = instruction(
        cluster, parts.tensor_map, parts.coordinates, bar, offsets, mask, hint, None, mode=mode, isCTAOnly=False
    )
    low.build.add(made)


def _of_type(values: Sequence[SSAValue], t: Attribute) -> SSAValue | None:
    return next((v for v in values if v.type == t), None)


def _store(low: Lowering, op: Operation) -> None:
    """Lower a store or a reduction."""
    parts = _parts(low, op)
    smem, *others = parts.others
    hint, mode = _of_type(others, i64), parts.mode("store")
    if not parts.m.reduction:
        instruction = nvvm.OPS["cp.async.bulk.tensor.global.shared.cta"]
        low.build.add(instruction(parts.tensor_map, smem, parts.coordinates, hint, None, mode=mode))
        return
    kind = attr("nvvm.tma_redux_kind", parts.m.reduction)
    instruction = nvvm.OPS["cp.async.bulk.tensor.reduce"]
    low.build.add(instruction(parts.tensor_map, smem, parts.coordinates, hint, redKind=kind, mode=mode))


def _prefetch_box(low: Lowering, op: Operation) -> None:
    parts = _parts(low, op)
    offsets, hint = parts.others[: parts.m.spatial], _of_type(parts.others, i64)
    instruction = nvvm.OPS["cp.async.bulk.tensor.prefetch"]
    low.build.add(instruction(parts.tensor_map, parts.coordinates, offsets, hint, mode=parts.mode("load")))


def _prefetch(low: Lowering, op: Operation) -> None:
    tensor_map = low.value(op.operands[0])
    # For a generic pointer to a parameter LLVM emits two prefetches: in parameter space and in generic space.
    kernel = tensor_map.block.parent_op() if isinstance(tensor_map, BlockArgument) else None
    given = kernel is not None and "gpu.kernel" in kernel.attributes
    low.build.add(nvvm.OPS["prefetch"](tensor_map, None, tensormap=True, in_param_space=True if given else None))


def _map_address(low: Lowering, op: Operation) -> None:
    low.values[op.results[0]] = low.value(op.operands[0])


def _map_at(low: Lowering, op: Operation) -> None:
    address = low.value(op.operands[1])
    if address.type != llvm.LLVMPointerType():
        address = low.build.emit(make_op(llvm.OPS["addrspacecast"], [address], [llvm.LLVMPointerType()]))
    low.values[op.results[0]] = address


HANDLERS: Mapping[str, Handler] = {
    "cute_nvgpu.arch.make_tensor_map": _make_tensor_map,
    "cute_nvgpu.arch.make_im2col_map": _make_tensor_map,
    "cute_nvgpu.arch.tma_load": _load,
    "cute_nvgpu.arch.tma_store": _store,
    "cute_nvgpu.arch.tma_reduce": _store,
    "cute_nvgpu.arch.tma_prefetch": _prefetch_box,
    "cute_nvgpu.arch.tma_load_im2col": _load,
    "cute_nvgpu.arch.tma_store_im2col": _store,
    "cute_nvgpu.arch.tma_reduce_im2col": _store,
    "cute_nvgpu.arch.tma_prefetch_im2col": _prefetch_box,
    "cute_nvgpu.arch.prefetch_tensormap": _prefetch,
    "cute_nvgpu.arch.tensor_map_address": _map_address,
    "cute_nvgpu.arch.tensor_map_at": _map_at,
}
