"""``cute-to-base`` lowering of tensor maps and TMA copies.

A tensor map is a pointer. On the host it points to 128 bytes that the runtime encoded. In a kernel it points to a
parameter that is passed by value (``llvm.byval``, ``nvvm.grid_constant``). ``arch.make_tensor_map`` becomes a call of
an external function of the runtime (:data:`cute_dialect.arch.tensor_map_codes.FUNCTION`)::

    %map = llvm.call @cute_tensor_map_tiled_2d(%address, %k, %m, %bytes, %c64, %c128, …) : (…) -> !llvm.ptr

Copies in a kernel become ``nvvm.cp.async.bulk.tensor.…`` (in the ``.shared::cluster`` form, which PTX 8.3 has), and
prefetches become ``nvvm.prefetch``.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp, StringAttr, i16, i32, i64
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from cute_dialect.arch.tensor_map_codes import (
    ELEMENT_CODES,
    FUNCTION,
    INTERLEAVES,
    L2_PROMOTIONS,
    OOB_FILLS,
    SWIZZLES,
)
from cute_dialect.cute_nvgpu.tma.types import TmaAtomType
from cute_dialect.ir.editing import make_op
from cute_dialect.passes.base import PassError
from cute_dialect.passes.lowering.types import pointer
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.spaces import AddressSpace
from cute_dialect.upstream import llvm
from cute_dialect.upstream.attrs import attr

# ---------------------------------------------------------------------------------------------------------- on the host


def _make_tensor_map(low: Lowering, op: Operation) -> None:
    if low.device:
        raise PassError("a tensor map is built on the host; move this op to the function that launches the kernel", op)
    atom = op.results[0].type
    assert isinstance(atom, TmaAtomType)
    m = atom.data
    codes = (
        ELEMENT_CODES[str(m.element)],
        INTERLEAVES.index(m.interleave),
        SWIZZLES.index(m.swizzle),
        L2_PROMOTIONS.index(m.l2),
        OOB_FILLS.index(m.oob),
    )
    operands = [low.value(o) for o in op.operands]
    operands += [low.build.constant(n, i32) for n in (*m.box, *m.strides, *codes)]
    name = FUNCTION.format(rank=m.rank)
    declare(op, name, [o.type for o in operands])
    low.values[op.results[0]] = low.build.emit(llvm.CallOp(name, operands, llvm.LLVMPointerType()))


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


def _parts(low: Lowering, op: Operation) -> tuple[list[SSAValue], SSAValue, SSAValue, list[SSAValue]]:
    """Return the coordinates, the tensor map, the shared memory and the other operands."""
    t = op.operands[0].type
    assert isinstance(t, TmaAtomType)
    tensor_map, *values = [low.value(o) for o in op.operands]
    rank = t.data.rank
    return values[:rank], tensor_map, values[rank], values[rank + 1 :]


def _of_type(values: list[SSAValue], t: Attribute) -> SSAValue | None:
    return next((v for v in values if v.type == t), None)


def _load(low: Lowering, op: Operation) -> None:
    from cute_dialect.upstream import nvvm

    coords, tensor_map, smem, rest = _parts(low, op)
    # The shared memory of the CTA is part of the shared memory of the cluster.
    cluster = low.build.once(
        ("shared::cluster", smem),
        lambda: make_op(llvm.OPS["addrspacecast"], [smem], [pointer(AddressSpace.dsmem)]),
    )
    instruction = nvvm.OPS["cp.async.bulk.tensor.shared.cluster.global"]
    mask, hint = _of_type(rest[1:], i16), _of_type(rest[1:], i64)
    mode = attr("nvvm.tma_load_mode", "tile")
    low.build.add(instruction(cluster, tensor_map, coords, rest[0], [], mask, hint, None, mode=mode, isCTAOnly=False))


def _store(low: Lowering, op: Operation) -> None:
    from cute_dialect.upstream import nvvm

    coords, tensor_map, smem, rest = _parts(low, op)
    instruction = nvvm.OPS["cp.async.bulk.tensor.global.shared.cta"]
    mode = attr("nvvm.tma_store_mode", "tile")
    low.build.add(instruction(tensor_map, smem, coords, _of_type(rest, i64), None, mode=mode))


def _reduce(low: Lowering, op: Operation) -> None:
    from cute_dialect.upstream import nvvm

    t = op.operands[0].type
    assert isinstance(t, TmaAtomType)
    coords, tensor_map, smem, rest = _parts(low, op)
    kind, mode = attr("nvvm.tma_redux_kind", t.data.reduction), attr("nvvm.tma_store_mode", "tile")
    instruction = nvvm.OPS["cp.async.bulk.tensor.reduce"]
    low.build.add(instruction(tensor_map, smem, coords, _of_type(rest, i64), redKind=kind, mode=mode))


def _prefetch_box(low: Lowering, op: Operation) -> None:
    from cute_dialect.upstream import nvvm

    t = op.operands[0].type
    assert isinstance(t, TmaAtomType)
    tensor_map, *values = [low.value(o) for o in op.operands]
    instruction, mode = nvvm.OPS["cp.async.bulk.tensor.prefetch"], attr("nvvm.tma_load_mode", "tile")
    low.build.add(instruction(tensor_map, values[: t.data.rank], [], _of_type(values, i64), mode=mode))


def _prefetch(low: Lowering, op: Operation) -> None:
    from cute_dialect.upstream import nvvm

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
    "cute_nvgpu.arch.tma_load": _load,
    "cute_nvgpu.arch.tma_store": _store,
    "cute_nvgpu.arch.tma_reduce": _reduce,
    "cute_nvgpu.arch.tma_prefetch": _prefetch_box,
    "cute_nvgpu.arch.prefetch_tensormap": _prefetch,
    "cute_nvgpu.arch.tensor_map_address": _map_address,
    "cute_nvgpu.arch.tensor_map_at": _map_at,
}
