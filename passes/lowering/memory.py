"""``cute-to-base`` for pointers, views and element access."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    VectorType,
    f32,
    i1,
    i8,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.algebra.arithmetic import tuple_add
from cute_dialect.algebra.evaluation import cosize, evaluate
from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf, divisibility
from cute_dialect.algebra.trees import is_static, leaves
from cute_dialect.algebra.values import AnyLayout, ComposedLayout, Coord, IntTuple, Layout, Payload, Swizzle
from cute_dialect.dialect.memory_types import CoordTensorType, MemRefType, PtrType, element_bits, natural_alignment
from cute_dialect.dialect.typed_values import dynamic_leaves
from cute_dialect.dialect.types import CuteType
from cute_dialect.ir.editing import make_op
from cute_dialect.passes.lowering.build import BaseBuilder
from cute_dialect.passes.lowering.copying import MAX_BITS
from cute_dialect.passes.lowering.fragments import Fragment, FragmentView, Lane, NeedsMemory
from cute_dialect.passes.lowering.types import NARROW_FLOATS, Path, leaf_paths, lowered
from cute_dialect.passes.lowering.walk import Handler, Lowering, memory_type
from cute_dialect.upstream import llvm


def _get_iter(low: Lowering, op: Operation) -> None:
    _forward(low, op, (0,))


def _get_layout(low: Lowering, op: Operation) -> None:
    tensor = op.operands[0]
    if tensor in low.views:
        low.values[op.results[0]] = low.build.poison(lowered(op.results[0].type))
    else:
        _forward(low, op, (1,))


def _forward(low: Lowering, op: Operation, path: Path) -> None:
    source, result = op.operands[0], op.results[0]
    if source in low.views:
        low.views[result] = low.views[source]
        return
    low.values[result] = low.build.extract(low.value(source), path, lowered(result.type))


def _make_view(low: Lowering, op: Operation) -> None:
    it, result = op.operands[0], op.results[0]
    if it in low.views:
        assert isinstance(result.type, MemRefType)
        if not is_static(result.type.layout):
            raise NeedsMemory(low.views[it].fragment.op, "it is seen through a layout with run-time strides")
        low.views[result] = low.views[it]
        return
    t = lowered(result.type)
    layout = low.value(op.operands[1]) if len(op.operands) > 1 else low.build.poison(_part(t, 1))
    value = low.build.insert(low.value(it), low.build.poison(t), (0,))
    low.values[result] = low.build.insert(layout, value, (1,))


def _part(t: Attribute, i: int) -> Attribute:
    assert isinstance(t, llvm.LLVMStructType)
    return t.types[i]


def _add_offset(low: Lowering, op: Operation) -> None:
    it, offset_value = op.operands
    result = op.results[0]
    t = it.type
    offset = low.bound(offset_value)
    if it in low.views:
        view = low.views[it]
        if not isinstance(offset, int):
            raise NeedsMemory(view.fragment.op, "it is indexed by a value known only at run time")
        low.views[result] = FragmentView(view.fragment, view.offset + offset)
        return
    if isinstance(t, PtrType):
        assert isinstance(offset, int | Dyn)
        low.values[result] = low.address(low.value(it), t.data, offset, small=False)
        return
    total = tuple_add(cast("IntTuple", low.bound(it)), cast("IntTuple", offset))
    low.values[result] = _packed(low, result.type, total)


def _packed(low: Lowering, t: Attribute, payload: Payload) -> SSAValue:
    """Pack the leaves of ``payload`` into a value of cute type ``t``, whose dynamic leaves correspond to them."""
    assert isinstance(t, CuteType)
    values = [low.ssa(leaf, d.width) for leaf, d in zip(aligned_leaves(t.data, payload), dynamic_leaves(t.data))]
    paths = leaf_paths(t)
    if paths == ((),):
        return values[0]
    value = low.build.poison(lowered(t))
    for v, p in zip(values, paths):
        value = low.build.insert(v, value, p)
    return value


def aligned_leaves(declared: Payload, payload: Payload) -> list[Leaf]:
    """Return the leaves of ``payload`` at the positions where ``declared`` has dynamic leaves."""
    if isinstance(declared, Dyn):
        assert isinstance(payload, int | Dyn)
        return [payload]
    if isinstance(declared, tuple):
        assert isinstance(payload, tuple)
        return [x for d, p in zip(declared, payload) for x in aligned_leaves(d, p)]
    return []


def _same_value(low: Lowering, op: Operation) -> None:
    """Lower assume and recast_iter, which do nothing at run time."""
    source, result = op.operands[0], op.results[0]
    if source in low.views:
        raise NeedsMemory(low.views[source].fragment.op, "its pointer is reinterpreted")
    low.values[result] = low.value(source)


# ------------------------------------------------------------------------------------------------------- element access


def _small(t: MemRefType) -> bool:
    n = cosize(t.layout) if is_static(t.layout) and isinstance(t.layout, Layout) else None
    return isinstance(n, int) and n < 1 << 31


def _base(low: Lowering, tensor: SSAValue) -> SSAValue:
    return low.build.part(low.value(tensor), (0,), _part(lowered(tensor.type), 0))


def _coord(low: Lowering, coord: SSAValue) -> Coord:
    return cast("Coord", low.bound(coord))


def _element_address(low: Lowering, tensor: SSAValue, coord: SSAValue) -> SSAValue:
    t = tensor.type
    assert isinstance(t, MemRefType)
    offset = evaluate(_coord(low, coord), low.tensor_layout(tensor))
    if isinstance(offset, tuple):  # an empty layout
        offset = 0
    return low.swizzled(low.address(_base(low, tensor), t.data.ptr, offset, small=_small(t)), t.data.ptr.swizzle)


def _static_index(low: Lowering, tensor: SSAValue, coord: SSAValue) -> int:
    t = tensor.type
    assert isinstance(t, MemRefType)
    index = evaluate(_coord(low, coord), t.layout)
    if isinstance(index, tuple):
        return 0
    if not isinstance(index, int):
        raise NeedsMemory(low.views[tensor].fragment.op, "it is indexed by a value known only at run time")
    return index


def _load(low: Lowering, op: Operation) -> None:
    tensor, coord = op.operands
    t, result = tensor.type, op.results[0]
    if isinstance(t, CoordTensorType):
        found = evaluate(_coord(low, coord), low.tensor_layout(tensor))
        it = low.bound(tensor, t.data.iter, leaf_paths(t)[: len(dynamic_leaves(t.data.iter))])
        low.values[result] = _packed(low, result.type, tuple_add(cast("IntTuple", it), found))
        return
    assert isinstance(t, MemRefType)
    if tensor in low.views:
        low.values[result] = low.registers.read(low.build, low.views[tensor], _static_index(low, tensor, coord))
        return
    low.values[result] = load_element(low.build, _element_address(low, tensor, coord), t.element)


def load_element(build: BaseBuilder, address: SSAValue, element: Attribute) -> SSAValue:
    """Load one element; an ``i1`` occupies a byte."""
    value = build.load(address, memory_type(element), natural_alignment(element))
    return build.emit(arith.TruncIOp(value, i1)) if element == i1 else value


def store_element(build: BaseBuilder, value: SSAValue, address: SSAValue, element: Attribute) -> None:
    """Store one element; an ``i1`` occupies a byte."""
    if element == i1:
        value = build.emit(arith.ExtUIOp(value, i8))
    build.store(value, address, natural_alignment(element))


def _store(low: Lowering, op: Operation) -> None:
    tensor, coord, value = op.operands
    t = tensor.type
    assert isinstance(t, MemRefType)
    if tensor in low.views:
        index = _static_index(low, tensor, coord)
        low.registers.write(low.views[tensor], index, low.value(value))
        return
    store_element(low.build, low.value(value), _element_address(low, tensor, coord), t.element)


def _scalar(x: IntTuple) -> Leaf:
    return x if isinstance(x, int | Dyn) else 0


def _load_vec(low: Lowering, op: Operation) -> None:
    tensor, result = op.operands[0], op.results[0]
    t, v = tensor.type, result.type
    assert isinstance(t, MemRefType) and isinstance(v, VectorType)
    n = v.get_shape()[0]
    if tensor in low.views:
        indices = [_known(low, tensor, o) for o in _offsets_static(t, n)]
        low.values[result] = low.registers.read_vector(low.build, low.views[tensor], indices)
        return
    low.values[result] = load_elements(low, tensor, n)


def _store_vec(low: Lowering, op: Operation) -> None:
    value, tensor = op.operands
    t, v = tensor.type, value.type
    assert isinstance(t, MemRefType) and isinstance(v, VectorType)
    n = v.get_shape()[0]
    new = low.value(value)
    if tensor in low.views:
        for i, o in enumerate(_offsets_static(t, n)):
            low.registers.write(low.views[tensor], _known(low, tensor, o), Lane(new, i))
        return
    store_elements(low, tensor, new, n)


def load_elements(low: Lowering, tensor: SSAValue, n: int) -> SSAValue:
    """Load all ``n`` elements of a tensor in memory as a vector, with the widest accesses that its type allows."""
    t = tensor.type
    assert isinstance(t, MemRefType)
    width, align = vector_width(t, n)
    pieces = [_load_piece(low, a, t.element, width, align) for a in _piece_addresses(low, tensor, n, width)]
    if len(pieces) == 1 and width > 1:
        return pieces[0]
    if width == 1:
        return low.build.vector(pieces)
    return low.build.vector([low.build.lane(p, i) for p in pieces for i in range(width)])


def store_elements(low: Lowering, tensor: SSAValue, value: SSAValue, n: int) -> None:
    """Store a vector to all ``n`` elements of a tensor in memory, with the widest accesses that its type allows."""
    t = tensor.type
    assert isinstance(t, MemRefType)
    width, align = vector_width(t, n)
    for i, address in enumerate(_piece_addresses(low, tensor, n, width)):
        if width == n and n > 1:
            piece = value
        elif width == 1:
            store_element(low.build, low.build.lane(value, i), address, t.element)
            continue
        else:
            piece = low.build.vector([low.build.lane(value, i * width + k) for k in range(width)])
        if element_bits(t.element) < 8:
            piece = _bitcast(low, piece, VectorType(i8, [width * element_bits(t.element) // 8]))
        low.build.store(piece, address, align)


def _load_piece(low: Lowering, address: SSAValue, element: Attribute, width: int, align: int) -> SSAValue:
    bits = element_bits(element)
    if width == 1:
        return load_element(low.build, address, element)
    if bits < 8:
        packed = low.build.load(address, VectorType(i8, [width * bits // 8]), align)
        return _bitcast(low, packed, VectorType(lowered(element), [width]))
    return low.build.load(address, VectorType(memory_type(element), [width]), align)


def _bitcast(low: Lowering, value: SSAValue, to: Attribute) -> SSAValue:
    return low.build.emit(make_op(llvm.OPS["bitcast"], [value], [to]))


def _piece_addresses(low: Lowering, tensor: SSAValue, n: int, width: int) -> list[SSAValue]:
    t = tensor.type
    assert isinstance(t, MemRefType)
    base, layout = _base(low, tensor), low.tensor_layout(tensor)
    return [
        low.swizzled(low.address(base, t.data.ptr, _scalar(evaluate(i, layout)), small=_small(t)), t.data.ptr.swizzle)
        for i in range(0, n, width)
    ]


@lru_cache(maxsize=1024)
def vector_width(t: MemRefType, n: int) -> tuple[int, int]:
    """Return the elements per access to all ``n`` elements of a tensor in memory, and the alignment in bytes.

    The elements of an access are consecutive and aligned to their total size.  A contiguous tensor without a swizzle
    is one access, which LLVM splits according to its alignment.  Any other access has at most 128 bits, within the
    bytes that the swizzle keeps contiguous.  Raises AlgebraError for sub-byte elements that are not contiguous.

    >>> from xdsl.dialects.builtin import f16
    >>> from cute_dialect.algebra.values import Swizzle
    >>> from cute_dialect.dialect.memory_types import MemRef, ptr
    >>> vector_width(MemRefType(MemRef(ptr(f16, "smem", 1024, Swizzle(3, 4, 3)), Layout((32, 2), (1, 64)))), 64)
    (8, 16)
    """
    bits = element_bits(t.element)
    if t.element == i1:
        return 1, 1
    layout, p = t.layout, t.data.ptr
    offsets = [_scalar(evaluate(i, layout)) for i in range(n)] if is_static(layout) else None
    if offsets == list(range(n)) and p.swizzle is None and n > 1 and n * bits % 8 == 0:
        return n, p.alignment
    limit = MAX_BITS // bits
    for x, unit in ((layout.inner if isinstance(layout, ComposedLayout) else None, bits), (p.swizzle, 8)):
        if isinstance(x, Swizzle):
            limit = min(limit, (unit << x.base) // bits)
    width = min(limit, n & -n)
    while width > 1:
        n_bytes = width * bits // 8
        if n_bytes and n_bytes * 8 == width * bits and p.alignment % n_bytes == 0 and _runs(layout, offsets, width):
            return width, n_bytes
        width //= 2
    if bits < 8:
        raise AlgebraError(f"elements of {bits} bits must form whole contiguous bytes, got {t}")
    return 1, natural_alignment(t.element)


def _runs(layout: AnyLayout, offsets: list[Leaf] | None, width: int) -> bool:
    # True if the elements form aligned groups of ``width`` consecutive ones.
    if offsets is not None:
        return all(
            isinstance(o, int) and o == offsets[i - i % width] + i % width and offsets[i - i % width] % width == 0  # type: ignore[operator]
            for i, o in enumerate(offsets)
        )
    plain = layout
    if isinstance(layout, ComposedLayout):
        if divisibility(cast("Leaf", layout.offset)) % width:
            return False
        plain = layout.outer
    assert isinstance(plain, Layout)
    together = 1
    for s, d in zip(leaves(plain.shape), leaves(plain.stride)):
        assert isinstance(s, int) and isinstance(d, int | Dyn)
        if s == 1:
            continue
        if together < width and isinstance(d, int) and d == together:
            together *= s
        elif together % width or divisibility(d) % width:
            return False
    return together % width == 0


def _offsets_static(t: MemRefType, n: int) -> list[Leaf]:
    return [_scalar(evaluate(i, t.layout)) for i in range(n)]


def _known(low: Lowering, tensor: SSAValue, offset: Leaf) -> int:
    if isinstance(offset, int):
        return offset
    raise NeedsMemory(low.views[tensor].fragment.op, "it is seen through a layout with run-time strides")


def _constant(low: Lowering, op: Operation) -> None:
    """Lower a constant; a type that LLVM lacks is represented by its bits."""
    result = op.results[0]
    t = result.type
    scalar = cast("VectorType[Attribute]", t).element_type if isinstance(t, VectorType) else t
    if scalar.name not in NARROW_FLOATS:
        low.clone(op)
        return
    value = op.properties["value"]
    if isinstance(value, FloatAttr):
        numbers = [value.value.data]
    else:
        numbers = [float(x) for x in cast("Iterable[float]", cast("DenseIntOrFPElementsAttr", value).get_values())]
    if len(set(numbers)) != 1:
        raise AlgebraError(f"a constant of {scalar} must have equal elements, got {value}")
    new = low.build.emit(arith.ConstantOp(_bits(numbers[0], scalar.name)))
    low.values[result] = low.build.vector([new] * t.get_shape()[0]) if isinstance(t, VectorType) else new


def _bits(value: float, name: str) -> IntegerAttr | FloatAttr:
    if name == "tf32":
        return FloatAttr(value, f32)
    import ml_dtypes
    import numpy as np

    dtype = getattr(ml_dtypes, f"float{name[1]}_{name[2:].lower()}")
    return IntegerAttr(int(np.array(value).astype(dtype).view(np.int8)), cast("IntegerType", NARROW_FLOATS[name]))


def _alloca(low: Lowering, op: Operation) -> None:
    result = op.results[0]
    t = result.type
    assert isinstance(t, MemRefType)
    n = cosize(t.layout)
    assert isinstance(n, int)
    if op not in low.in_memory:
        fragment = Fragment(op, lowered(t.element), n)
        low.registers.cells[fragment] = [None] * n
        low.views[result] = FragmentView(fragment, 0)
        return
    assert low.entry is not None
    count = arith.ConstantOp(IntegerAttr(n, i32), i32)
    address = llvm.AllocaOp(count.results[0], memory_type(t.element), alignment=t.alignment)
    address.attributes["cute.tensor"] = StringAttr(str(t))  # for diagnostics
    address.results[0].name_hint = result.name_hint
    first = low.entry.first_op
    for new in (count, address):
        new.location = op.location
        if first is None:
            low.entry.add_op(new)
        else:
            low.entry.insert_op_before(new, first)
    value = low.build.insert(address.results[0], low.build.poison(lowered(t)), (0,))
    low.values[result] = low.build.insert(low.build.poison(_part(lowered(t), 1)), value, (1,))


TO_BASE: Mapping[str, Handler] = {
    "arith.constant": _constant,
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
