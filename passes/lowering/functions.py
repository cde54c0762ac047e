"""``cute-to-base`` for functions and launches.

``func.func`` stays, with lowered types; a device ``gpu.func`` becomes an ``llvm.func``.  A kernel gets ``gpu.kernel``,
``nvvm.kernel``, ``nvvm.reqntid`` (from ``known_block_size``), and ``cute.args`` with the original argument types, which
the launcher checks.  The NVPTX back end does not accept empty structs.  Empty kernel arguments are therefore removed,
with their entries in ``cute.args`` and ``cute.names`` and the operands of launches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region

from cute_dialect.dialect.atom_types import is_tensor_map
from cute_dialect.ir.editing import all_ops
from cute_dialect.passes.base import PassError
from cute_dialect.passes.lowering.types import is_cute, is_empty, lowered, struct
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.upstream import llvm
from cute_dialect.upstream.gpu import LaunchFuncOp

_KEPT_ELSEWHERE = frozenset(
    {"sym_name", "function_type", "kernel", "gpu.kernel", "arg_attrs", "res_attrs", "known_block_size",
     "known_grid_size", "known_cluster_size", "workgroup_attributions", "sym_visibility"}
)  # fmt: skip


def _function_type(op: Operation) -> FunctionType:
    t = op.properties["function_type"]
    assert isinstance(t, FunctionType)
    return t


def _name(op: Operation) -> str:
    name = op.properties.get("sym_name", op.attributes.get("sym_name"))
    assert isinstance(name, StringAttr)
    return name.data


def _cute_args(types: tuple[Attribute, ...]) -> ArrayAttr[StringAttr]:
    return ArrayAttr([StringAttr(str(t)) for t in types])


def _func(low: Lowering, op: Operation) -> None:
    """Lower ``func.func`` and declarations."""
    t = _function_type(op)
    properties = {**op.properties, "function_type": lowered(t)}
    attributes = dict(op.attributes)
    if any(o.name == "gpu.launch_func" for o in all_ops(op)):
        attributes["cute.args"] = _cute_args(t.inputs.data)
    new = type(op).create(properties=properties, attributes=attributes, regions=[Region()])
    low.build.add(new)
    _body(low, op.regions[0], new.regions[0], dropped=())


def _body(low: Lowering, old: Region, new: Region, dropped: tuple[int, ...]) -> None:
    if not old.blocks:
        return
    first = old.blocks[0]
    kept = [a for i, a in enumerate(first.args) if i not in dropped]
    entry = Block(arg_types=[lowered(a.type) for a in kept])
    for a, b in zip(kept, entry.args):
        b.name_hint = a.name_hint
        low.values[a] = b
    low.entry = entry
    new.add_block(entry)
    low.blocks[first] = entry
    if dropped:
        with low.build.inside(entry):
            for i in dropped:
                a = first.args[i]
                low.values[a] = low.build.poison(lowered(a.type))
    low.rest_of_region(old, new, entry)


def _gpu_func(low: Lowering, op: Operation) -> None:
    """Lower ``gpu.func`` to ``llvm.func``."""
    t = _function_type(op)
    kernel = "gpu.kernel" in op.attributes or "kernel" in op.properties or "gpu.kernel" in op.properties
    if len(op.regions[0].blocks) and len(op.regions[0].blocks[0].args) != len(t.inputs.data):
        raise PassError(
            "workgroup and private attributions are not supported; use cute.memref.alloc_smem and alloca", op
        )
    types = [lowered(x) for x in t.inputs]
    dropped = tuple(i for i, x in enumerate(types) if kernel and is_empty(x))
    kept = [x for i, x in enumerate(types) if i not in dropped]
    outputs = [lowered(x) for x in t.outputs]
    if kernel and outputs:
        raise PassError(f"expected a kernel without results, got {len(outputs)}", op)
    result = llvm.LLVMVoidType() if not outputs else outputs[0] if len(outputs) == 1 else struct(outputs)
    attributes: dict[str, Attribute] = {
        k: v for k, v in {**op.attributes, **op.properties}.items() if k not in _KEPT_ELSEWHERE
    }
    for old, new_name in (("known_block_size", "nvvm.reqntid"), ("known_cluster_size", "nvvm.cluster_dim")):
        size = op.properties.get(old, op.attributes.get(old))
        if isinstance(size, DenseArrayBase):
            attributes[new_name] = size
            if old == "known_block_size":
                low.bits.block_size([int(n) for n in size.get_values()])
    if kernel:
        attributes["gpu.kernel"] = UnitAttr()
        attributes["nvvm.kernel"] = UnitAttr()
        attributes["cute.args"] = _cute_args(tuple([x for i, x in enumerate(t.inputs) if i not in dropped]))
        names = attributes.get("cute.names")
        if isinstance(names, ArrayAttr):
            of_all_names = cast("ArrayAttr[Attribute]", names)
            attributes["cute.names"] = ArrayAttr([n for i, n in enumerate(of_all_names) if i not in dropped])
    arg_attrs = op.properties.get("arg_attrs", op.attributes.get("arg_attrs"))
    of_kept: list[Mapping[str, Attribute]] = []
    if isinstance(arg_attrs, ArrayAttr):
        of_all = cast("ArrayAttr[DictionaryAttr]", arg_attrs)
        of_kept = [a.data for i, a in enumerate(of_all.data) if i not in dropped]
    maps = [is_tensor_map(x) for i, x in enumerate(t.inputs) if i not in dropped]
    if kernel and any(maps):
        of_kept = of_kept or [{} for _ in kept]
        of_kept = [{**a, **_map_attributes()} if m else a for a, m in zip(of_kept, maps)]
    new = llvm.FuncOp(_name(op), llvm.LLVMFunctionType(kept, result), attributes=attributes, arg_attrs=of_kept)
    low.build.add(new)
    _body(low, op.regions[0], new.regions[0], dropped)


def _map_attributes() -> Mapping[str, Attribute]:
    """Return the attributes of a tensor map parameter: 128 bytes by value, aligned to 64."""
    return {
        "llvm.byval": llvm.LLVMArrayType(128, i8),
        "llvm.align": IntegerAttr(64, i64),
        "nvvm.grid_constant": UnitAttr(),
    }


def _gpu_return(low: Lowering, op: Operation) -> None:
    values = [low.value(o) for o in op.operands]
    if len(values) > 1:
        packed = low.build.poison(struct([v.type for v in values]))
        for i, v in enumerate(values):
            packed = low.build.insert(v, packed, (i,))
        values = [packed]
    low.build.add(llvm.ReturnOp(values[0] if values else None))


def _launch_func(low: Lowering, op: Operation) -> None:
    """Lower ``gpu.launch_func``, including xDSL's own op; empty arguments are not passed."""
    segments = cast("DenseArrayBase[IntegerType]", op.properties["operandSegmentSizes"])
    sizes = list(segments.get_values())
    names = [o.name for o in LaunchFuncOp.spec().operands]
    at = names.index("kernelOperands")
    start = sum(sizes[:at])
    arguments = op.operands[start : start + sizes[at]]
    kept = [a for a in arguments if not (is_cute(a.type) and is_empty(lowered(a.type)))]
    operands = [*op.operands[:start], *kept, *op.operands[start + sizes[at] :]]
    sizes[at] = len(kept)
    attributes = dict(op.attributes)
    if any(is_tensor_map(a.type) for a in kept):
        # Records the tensor map types for the check of the manifest.
        attributes["cute.args"] = _cute_args(tuple(a.type for a in kept))
    new = type(op).create(
        operands=[low.value(o) for o in operands],
        result_types=list(op.result_types),
        properties={**op.properties, "operandSegmentSizes": DenseArrayBase.from_list(i32, sizes)},
        attributes=attributes,
    )
    low.build.add(new)
    for a, b in zip(op.results, new.results):
        low.values[a] = b


TO_BASE: Mapping[str, Handler] = {
    "func.func": _func,
    "gpu.func": _gpu_func,
    "gpu.return": _gpu_return,
    "gpu.launch_func": _launch_func,
}
