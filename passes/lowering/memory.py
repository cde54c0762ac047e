"""``cute-to-base`` of pointers, views and element access."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, VectorType, i1, i8, i32
from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.algebra.int_tuple import is_static, tuple_add
from cute_dialect.algebra.layout import Layout, cosize, evaluate
from cute_dialect.algebra.leaf import Dyn, Leaf
from cute_dialect.memory_types import CoordTensorType, MemRefType, PtrType, element_bits, natural_alignment
from cute_dialect.ops.kinds import dynamic_leaves
from cute_dialect.passes.lowering.build import BaseBuilder
from cute_dialect.passes.lowering.fragments import Fragment, FragmentView, Lane, NeedsMemory
from cute_dialect.passes.lowering.types import Path, leaf_paths, lowered
from cute_dialect.passes.lowering.walk import Handler, Lowering, memory_type
from cute_dialect.types import CuteType
from cute_dialect.upstream import llvm


def _get_iter(l: Lowering, op: Operation) -> None:
    _forward(l, op, (0,))


def _get_layout(l: Lowering, op: Operation) -> None:
    tensor = op.operands[0]
    if tensor in l.views:
        l.values[op.results[0]] = l.build.poison(lowered(op.results[0].type))
    else:
        _forward(l, op, (1,))


def _forward(l: Lowering, op: Operation, path: Path) -> None:
    source, result = op.operands[0], op.results[0]
    if source in l.views:
        l.views[result] = l.views[source]
        return
    l.values[result] = l.build.extract(l.value(source), path, lowered(result.type))


def _make_view(l: Lowering, op: Operation) -> None:
    it, result = op.operands[0], op.results[0]
    if it in l.views:
        if not is_static(result.type.layout):  # pyright: ignore
            raise NeedsMemory(l.views[it].fragment.op, "it is seen through a layout with run-time strides")
        l.views[result] = l.views[it]
        return
    t = lowered(result.type)
    layout = l.value(op.operands[1]) if len(op.operands) > 1 else l.build.poison(_part(t, 1))
    value = l.build.insert(l.value(it), l.build.poison(t), (0,))
    l.values[result] = l.build.insert(layout, value, (1,))


def _part(t: Attribute, i: int) -> Attribute:
    assert isinstance(t, llvm.LLVMStructType)
    return t.types[i]


def _add_offset(l: Lowering, op: Operation) -> None:
    it, offset_value = op.operands
    result = op.results[0]
    t = it.type
    offset = l.bound(offset_value)
    if it in l.views:
        view = l.views[it]
        if not isinstance(offset, int):
            raise NeedsMemory(view.fragment.op, "it is indexed by a value known only at run time")
        l.views[result] = FragmentView(view.fragment, view.offset + offset)
        return
    if isinstance(t, PtrType):
        l.values[result] = l.address(l.value(it), t.data, offset, small=False)  # pyright: ignore
        return
    total = tuple_add(l.bound(it), offset)
    l.values[result] = _packed(l, result.type, total)


def _packed(l: Lowering, t: Attribute, payload: object) -> SSAValue:
    """A value of cute type ``t`` whose dynamic leaves are those of ``payload`` at the same places."""
    assert isinstance(t, CuteType)
    values = [l.ssa(leaf, d.width) for leaf, d in zip(aligned_leaves(t.data, payload), dynamic_leaves(t.data))]
    paths = leaf_paths(t)
    if paths == ((),):
        return values[0]
    value = l.build.poison(lowered(t))
    for v, p in zip(values, paths):
        value = l.build.insert(v, value, p)
    return value


def aligned_leaves(declared: object, payload: object) -> list[Leaf]:
    """The leaves of ``payload`` that stand where ``declared`` has a dynamic leaf."""
    if isinstance(declared, Dyn):
        assert isinstance(payload, int | Dyn)
        return [payload]
    if isinstance(declared, tuple):
        assert isinstance(payload, tuple)
        return [x for d, p in zip(declared, payload) for x in aligned_leaves(d, p)]
    return []


def _same_value(l: Lowering, op: Operation) -> None:
    """assume, recast_iter: nothing happens at run time."""
    source, result = op.operands[0], op.results[0]
    if source in l.views:
        raise NeedsMemory(l.views[source].fragment.op, "its pointer is reinterpreted")
    l.values[result] = l.value(source)


# ----------------------------------------------------------------------------------------------------------- element access


def _small(t: MemRefType) -> bool:
    n = cosize(t.layout) if is_static(t.layout) and isinstance(t.layout, Layout) else None
    return isinstance(n, int) and n < 1 << 31


def _base(l: Lowering, tensor: SSAValue) -> SSAValue:
    return l.build.part(l.value(tensor), (0,), lowered(tensor.type).types[0])  # pyright: ignore


def _element_address(l: Lowering, tensor: SSAValue, coord: SSAValue) -> SSAValue:
    t = tensor.type
    assert isinstance(t, MemRefType)
    offset = evaluate(l.bound(coord), l.tensor_layout(tensor))  # pyright: ignore
    if isinstance(offset, tuple):  # an empty layout
        offset = 0
    return l.swizzled(l.address(_base(l, tensor), t.data.ptr, offset, small=_small(t)), t.data.ptr.swizzle)  # pyright: ignore


def _static_index(l: Lowering, tensor: SSAValue, coord: SSAValue) -> int:
    t = tensor.type
    assert isinstance(t, MemRefType)
    index = evaluate(l.bound(coord), t.layout)  # pyright: ignore
    if isinstance(index, tuple):
        return 0
    if not isinstance(index, int):
        raise NeedsMemory(l.views[tensor].fragment.op, "it is indexed by a value known only at run time")
    return index


def _load(l: Lowering, op: Operation) -> None:
    tensor, coord = op.operands
    t, result = tensor.type, op.results[0]
    if isinstance(t, CoordTensorType):
        found = evaluate(l.bound(coord), l.tensor_layout(tensor))  # pyright: ignore
        it = l.bound(tensor, t.data.iter, leaf_paths(t)[: len(dynamic_leaves(t.data.iter))])
        l.values[result] = _packed(l, result.type, tuple_add(it, found))
        return
    assert isinstance(t, MemRefType)
    if tensor in l.views:
        l.values[result] = l.registers.read(l.build, l.views[tensor], _static_index(l, tensor, coord))
        return
    l.values[result] = load_element(l.build, _element_address(l, tensor, coord), t.element)


def load_element(build: BaseBuilder, address: SSAValue, element: Attribute) -> SSAValue:
    """Load one element; ``i1`` is a byte in memory."""
    value = build.load(address, memory_type(element), natural_alignment(element))
    return build.emit(arith.TruncIOp(value, i1)) if element == i1 else value


def store_element(build: BaseBuilder, value: SSAValue, address: SSAValue, element: Attribute) -> None:
    """Store one element; ``i1`` is a byte in memory."""
    if element == i1:
        value = build.emit(arith.ExtUIOp(value, i8))
    build.store(value, address, natural_alignment(element))


def _store(l: Lowering, op: Operation) -> None:
    tensor, coord, value = op.operands
    t = tensor.type
    assert isinstance(t, MemRefType)
    if tensor in l.views:
        index = _static_index(l, tensor, coord)
        l.registers.write(l.views[tensor], index, l.value(value))
        return
    store_element(l.build, l.value(value), _element_address(l, tensor, coord), t.element)


def _offsets(l: Lowering, tensor: SSAValue, n: int) -> list[Leaf]:
    layout = l.tensor_layout(tensor)
    return [_scalar(evaluate(i, layout)) for i in range(n)]  # pyright: ignore


def _scalar(x: object) -> Leaf:
    return x if isinstance(x, int | Dyn) else 0


def _load_vec(l: Lowering, op: Operation) -> None:
    tensor, result = op.operands[0], op.results[0]
    t, v = tensor.type, result.type
    assert isinstance(t, MemRefType) and isinstance(v, VectorType)
    n = v.get_shape()[0]
    if tensor in l.views:
        indices = [_known(l, tensor, o) for o in _offsets_static(t, n)]
        l.values[result] = l.registers.read_vector(l.build, l.views[tensor], indices)
        return
    if _is_contiguous(t, n):
        address = l.swizzled(_base(l, tensor), t.data.ptr.swizzle)
        memory = VectorType(memory_type(t.element), [n])
        l.values[result] = l.build.load(address, memory, t.alignment)
        return
    base = _base(l, tensor)
    elements = [
        load_element(
            l.build, l.swizzled(l.address(base, t.data.ptr, o, small=_small(t)), t.data.ptr.swizzle), t.element
        )
        for o in _offsets(l, tensor, n)
    ]
    l.values[result] = l.build.vector(elements)


def _store_vec(l: Lowering, op: Operation) -> None:
    value, tensor = op.operands
    t, v = tensor.type, value.type
    assert isinstance(t, MemRefType) and isinstance(v, VectorType)
    n = v.get_shape()[0]
    new = l.value(value)
    if tensor in l.views:
        for i, o in enumerate(_offsets_static(t, n)):
            l.registers.write(l.views[tensor], _known(l, tensor, o), Lane(new, i))
        return
    if _is_contiguous(t, n):
        l.build.store(new, l.swizzled(_base(l, tensor), t.data.ptr.swizzle), t.alignment)
        return
    base = _base(l, tensor)
    for i, o in enumerate(_offsets(l, tensor, n)):
        address = l.swizzled(l.address(base, t.data.ptr, o, small=_small(t)), t.data.ptr.swizzle)
        store_element(l.build, l.build.lane(new, i), address, t.element)


def _offsets_static(t: MemRefType, n: int) -> list[Leaf]:
    return [_scalar(evaluate(i, t.layout)) for i in range(n)]  # pyright: ignore


def _known(l: Lowering, tensor: SSAValue, offset: Leaf) -> int:
    if isinstance(offset, int):
        return offset
    raise NeedsMemory(l.views[tensor].fragment.op, "it is seen through a layout with run-time strides")


def _is_contiguous(t: MemRefType, n: int) -> bool:
    if t.element == i1 or not isinstance(t.layout, Layout) or not is_static(t.layout):
        return False
    if t.data.ptr.swizzle is not None and t.alignment < n * element_bits(t.element) // 8:
        return False
    return all(evaluate(i, t.layout) == i for i in range(n))


def _alloca(l: Lowering, op: Operation) -> None:
    result = op.results[0]
    t = result.type
    assert isinstance(t, MemRefType)
    n = cosize(t.layout)
    assert isinstance(n, int)
    if op not in l.in_memory:
        fragment = Fragment(op, t.element, n)
        l.registers.cells[fragment] = [None] * n
        l.views[result] = FragmentView(fragment, 0)
        return
    assert l.entry is not None
    count = arith.ConstantOp(IntegerAttr(n, i32), i32)
    address = llvm.AllocaOp(count.results[0], memory_type(t.element), alignment=t.alignment)
    first = l.entry.first_op
    for new in (count, address):
        new.location = op.location
        if first is None:
            l.entry.add_op(new)
        else:
            l.entry.insert_op_before(new, first)
    value = l.build.insert(address.results[0], l.build.poison(lowered(t)), (0,))
    l.values[result] = l.build.insert(l.build.poison(_part(lowered(t), 1)), value, (1,))


HANDLERS: Mapping[str, Handler] = {
    "cute.get_iter": _get_iter,
    "cute.get_layout": _get_layout,
    "cute.make_view": _make_view,
    "cute.add_offset": _add_offset,
    "cute.recast_iter": _same_value,
    "cute.assume": _same_value,
    "cute.memref.load": _load,
    "cute.memref.store": _store,
    "cute.memref.load_vec": _load_vec,
    "cute.memref.store_vec": _store_vec,
    "cute.memref.alloca": _alloca,
}
