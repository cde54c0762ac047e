"""Vector ops: insert, extract, shuffle, reshape, reduce."""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.compiler.function_compiler import Builder, FnCompiler
from cute_dialect.interp.errors import Fault, InterpError, attr_of
from cute_dialect.interp.machine.group import Group
from cute_dialect.interp.types import Leaf, type_of
from cute_dialect.interp.values import POISON, Array, Regs, Value, to_lanes

if TYPE_CHECKING:
    from xdsl.ir import Operation

from cute_dialect.interp.instructions.moves import enum_word, ints_of

DYNAMIC = -(1 << 63)


def _position(c: FnCompiler, op: Operation, first: int) -> tuple[list[int], list[int]]:
    """Return the static position with DYNAMIC placeholders, and the slots that fill them."""
    static = ints_of(attr_of(op, "static_position"))
    return static, [c.use(v) for v in op.operands[first:]]


def _put(vec: Value, value: Value, leaf: Leaf, index: Sequence[Value], lanes: int) -> Value:
    """Return `vec` with `value` inserted at `index`. A poison vector starts as zeros."""
    if value is POISON:
        return vec
    part_rank = len(leaf.shape) - len(index)
    varying = (
        (isinstance(value, np.ndarray) and value.ndim > part_rank)
        or (isinstance(vec, np.ndarray) and vec.ndim > len(leaf.shape))
        or any(isinstance(i, np.ndarray) for i in index)
    )
    if vec is POISON:
        out = np.zeros((lanes, *leaf.shape) if varying else leaf.shape, leaf.dtype)
    else:
        out = np.array(to_lanes(vec, leaf, lanes) if varying else vec)
    if any(isinstance(i, np.ndarray) for i in index):
        out[(np.arange(lanes), *index)] = value
    else:
        out[(Ellipsis, *index, *(slice(None),) * part_rank)] = value
    return out


def _get(vec: Value, leaf: Leaf, part: Leaf, index: Sequence[Value], lanes: int) -> Value:
    if vec is POISON:
        return POISON
    assert isinstance(vec, np.ndarray)
    part_rank = len(leaf.shape) - len(index)
    if any(isinstance(i, np.ndarray) for i in index):
        return to_lanes(vec, leaf, lanes)[(np.arange(lanes), *index)]
    got = vec[(Ellipsis, *index, *(slice(None),) * part_rank)]
    if got.ndim == 0:
        if part.kind == "f":
            return got[()]
        return bool(got) if part.width == 1 else int(got)
    return got


def _bounds(index: Sequence[Value], leaf: Leaf, g: Group) -> None:
    for i, extent in zip(index, leaf.shape):
        if isinstance(i, np.ndarray):
            bad = (i < 0) | (i >= extent)
            if g.mask.any(bad):
                raise Fault("oob", f"vector index is not in [0, {extent})", g.mask.first(bad))
        elif not 0 <= i < extent:  # type: ignore[operator]
            raise Fault("oob", f"vector index {i} is not in [0, {extent})")


def _insert_element(c: FnCompiler, op: Operation) -> None:
    """Compile llvm.insertelement(vector, value, index)."""
    vec, value, index = (c.use(v) for v in op.operands)
    d = c.define(op.results[0])
    leaf = c.leaf_of(d)

    def step(R: Regs, g: Group) -> None:
        i = R[index]
        _bounds((i,), leaf, g)
        R[d] = _put(R[vec], R[value], leaf, (i,), g.lanes)

    c.emit(op, step)


def _extract_element(c: FnCompiler, op: Operation) -> None:
    vec = c.use(op.operands[0])
    index = c.use(op.operands[1]) if len(op.operands) > 1 else -1
    d = c.define(op.results[0])
    leaf, part = c.leaf_of(vec), c.leaf_of(d)

    def step(R: Regs, g: Group) -> None:
        i: Value = R[index] if index >= 0 else 0
        _bounds((i,), leaf, g)
        R[d] = _get(R[vec], leaf, part, (i,), g.lanes)

    c.emit(op, step)


def _vector_extract(c: FnCompiler, op: Operation) -> None:
    vec = c.use(op.operands[0])
    static, dynamic = _position(c, op, 1)
    d = c.define(op.results[0])
    leaf, part = c.leaf_of(vec), c.leaf_of(d)

    def step(R: Regs, g: Group) -> None:
        fill = iter(dynamic)
        index = [R[next(fill)] if s == DYNAMIC else s for s in static]
        _bounds(index, leaf, g)
        R[d] = _get(R[vec], leaf, part, index, g.lanes)

    c.emit(op, step)


def _vector_insert(c: FnCompiler, op: Operation) -> None:
    value, vec = c.use(op.operands[0]), c.use(op.operands[1])
    static, dynamic = _position(c, op, 2)
    d = c.define(op.results[0])
    leaf = c.leaf_of(d)

    def step(R: Regs, g: Group) -> None:
        fill = iter(dynamic)
        index = [R[next(fill)] if s == DYNAMIC else s for s in static]
        _bounds(index, leaf, g)
        R[d] = _put(R[vec], R[value], leaf, index, g.lanes)

    c.emit(op, step)


def _broadcast(c: FnCompiler, op: Operation) -> None:
    a = c.use(op.operands[0])
    d = c.define(op.results[0])
    src, leaf = c.leaf_of(a), c.leaf_of(d)

    def step(R: Regs, g: Group) -> None:
        v = R[a]
        _ = v == v
        arr = np.asarray(v, leaf.dtype)
        if arr.ndim > len(src.shape):
            arr = arr.reshape(len(arr), *(1,) * (len(leaf.shape) - len(src.shape)), *src.shape)
            R[d] = np.array(np.broadcast_to(arr, (len(arr), *leaf.shape)))
        else:
            R[d] = np.array(np.broadcast_to(arr, leaf.shape))

    c.emit(op, step)


def _shuffle(c: FnCompiler, op: Operation) -> None:
    """Compile llvm.shufflevector and vector.shuffle of one-dimensional vectors. A mask of -1 gives 0."""
    a, b = c.use(op.operands[0]), c.use(op.operands[1])
    d = c.define(op.results[0])
    la, lb = c.leaf_of(a), c.leaf_of(b)
    mask = np.array([max(i, 0) for i in ints_of(attr_of(op, "mask"))], np.int64)
    n = la.shape[0]
    only_first = bool((mask < n).all())

    def step(R: Regs, g: Group) -> None:
        x, y = R[a], R[b]
        if only_first:
            if x is POISON:
                R[d] = POISON
                return
            assert isinstance(x, np.ndarray)
            R[d] = x[..., mask]
            return
        if x is POISON:
            x = np.zeros(la.shape, la.dtype)
        if y is POISON:
            y = np.zeros(lb.shape, lb.dtype)
        xs, ys = np.asarray(x), np.asarray(y)
        if xs.ndim != ys.ndim:
            xs, ys = to_lanes(xs, la, g.lanes), to_lanes(ys, lb, g.lanes)
        R[d] = np.concatenate([xs, ys], axis=-1)[..., mask]

    c.emit(op, step)


def _shape_cast(c: FnCompiler, op: Operation) -> None:
    a = c.use(op.operands[0])
    d = c.define(op.results[0])
    src, leaf = c.leaf_of(a), c.leaf_of(d)

    def step(R: Regs, g: Group) -> None:
        v = R[a]
        if v is POISON:
            R[d] = POISON
            return
        arr = np.asarray(v)
        r = arr.reshape(leaf.shape) if arr.ndim == len(src.shape) else arr.reshape(len(arr), *leaf.shape)
        R[d] = r if r.ndim else r[()]

    c.emit(op, step)


def _from_elements(c: FnCompiler, op: Operation) -> None:
    parts = [c.use(v) for v in op.operands]
    d = c.define(op.results[0])
    leaf = c.leaf_of(d)

    def step(R: Regs, g: Group) -> None:
        vals = [R[p] for p in parts]
        varying = any(isinstance(v, np.ndarray) for v in vals)
        flat = np.zeros((g.lanes, leaf.count) if varying else (leaf.count,), leaf.dtype)
        for i, v in enumerate(vals):
            if v is not POISON:
                flat[..., i] = v
        R[d] = flat.reshape(*flat.shape[:-1], *leaf.shape)

    c.emit(op, step, pure=False)


def _to_elements(c: FnCompiler, op: Operation) -> None:
    a = c.use(op.operands[0])
    leaf = c.leaf_of(a)
    outs = [c.define(r) for r in op.results]

    def step(R: Regs, g: Group) -> None:
        v = R[a]
        for i, d in enumerate(outs):
            index = np.unravel_index(i, leaf.shape)
            R[d] = _get(v, leaf, leaf.scalar(), [int(k) for k in index], g.lanes)

    c.emit(op, step)


def _slice_of(op: Operation) -> list[slice]:
    offsets, sizes = ints_of(attr_of(op, "offsets")), ints_of(attr_of(op, "sizes"))
    strides = ints_of(attr_of(op, "strides"))
    sizes = sizes or [0] * len(offsets)
    return [slice(o, o + (n - 1) * s + 1, s) for o, n, s in zip(offsets, sizes, strides)]


def _extract_slice(c: FnCompiler, op: Operation) -> None:
    a = c.use(op.operands[0])
    d = c.define(op.results[0])
    rank = len(c.leaf_of(a).shape)
    where = _slice_of(op)

    def step(R: Regs, g: Group) -> None:
        v = R[a]
        R[d] = POISON if v is POISON else v[(Ellipsis, *where, *(slice(None),) * (rank - len(where)))]  # type: ignore[index]

    c.emit(op, step)


def _insert_slice(c: FnCompiler, op: Operation) -> None:
    value, vec = c.use(op.operands[0]), c.use(op.operands[1])
    d = c.define(op.results[0])
    src, leaf = c.leaf_of(value), c.leaf_of(d)
    offsets, strides = ints_of(attr_of(op, "offsets")), ints_of(attr_of(op, "strides"))
    lead = len(leaf.shape) - len(src.shape)
    sizes = [1] * lead + list(src.shape)
    full = strides if len(strides) == len(offsets) else [1] * lead + strides
    where = [slice(o, o + (n - 1) * s + 1, s) for o, n, s in zip(offsets, sizes, full)]

    def step(R: Regs, g: Group) -> None:
        v, x = R[value], R[vec]
        if v is POISON:
            R[d] = x
            return
        varying = np.ndim(v) > len(src.shape) or (isinstance(x, np.ndarray) and x.ndim > len(leaf.shape))  # type: ignore[arg-type]
        if x is POISON:
            out = np.zeros((g.lanes, *leaf.shape) if varying else leaf.shape, leaf.dtype)
        else:
            out = np.array(to_lanes(x, leaf, g.lanes) if varying else x)
        arr = to_lanes(v, src, g.lanes) if varying else np.asarray(v)
        out[(Ellipsis, *where)] = arr.reshape(*arr.shape[: arr.ndim - len(src.shape)], *sizes)
        R[d] = out

    c.emit(op, step)


def _reduction(c: FnCompiler, op: Operation) -> None:
    """Compile vector.reduction <kind>: left to right in the element type, from the accumulator if given."""
    a = c.use(op.operands[0])
    acc = c.use(op.operands[1]) if len(op.operands) > 1 else -1
    d = c.define(op.results[0])
    leaf = c.leaf_of(d)
    kind = enum_word(attr_of(op, "kind"))
    fold(kind)

    def step(R: Regs, g: Group) -> None:
        v = R[a]
        _ = v == v
        arr = np.asarray(v)
        r = arr[..., 0] if acc < 0 else fold(kind)(np.asarray(R[acc]), arr[..., 0])
        for i in range(1, arr.shape[-1]):
            r = fold(kind)(r, arr[..., i])
        r = np.asarray(r, leaf.dtype)
        R[d] = r if r.ndim else (r[()] if leaf.kind == "f" else (bool(r) if leaf.width == 1 else int(r)))

    c.emit(op, step)


def fold(kind: str):
    """Return the numpy function of a reduction kind."""
    table = {
        "add": np.add,
        "mul": np.multiply,
        "minsi": np.minimum,
        "maxsi": np.maximum,
        "minimumf": np.minimum,
        "maximumf": np.maximum,
        "minnumf": np.fmin,
        "maxnumf": np.fmax,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }
    if kind not in table:
        raise InterpError("unsupported", f"reduction kind {kind} is not supported; use one of {', '.join(table)}")
    return table[kind]


def _step_op(c: FnCompiler, op: Operation) -> None:
    leaf = type_of(op.results[0].type).leaf
    c.constant(op.results[0], [np.arange(leaf.shape[0], dtype=leaf.dtype)])


def _create_mask(c: FnCompiler, op: Operation) -> None:
    sizes = [c.use(v) for v in op.operands]
    d = c.define(op.results[0])
    leaf = c.leaf_of(d)

    def step(R: Regs, g: Group) -> None:
        out: Array = np.ones((), np.bool_)
        for axis, s in enumerate(sizes):
            n = np.asarray(R[s])
            ids = np.arange(leaf.shape[axis]).reshape((-1,) + (1,) * (len(leaf.shape) - axis - 1))
            n = n.reshape(n.shape + (1,) * len(leaf.shape)) if n.ndim else n
            out = out & (ids < n)
        R[d] = np.array(
            np.broadcast_to(out, (out.shape[: -len(leaf.shape)] if out.ndim > len(leaf.shape) else ()) + leaf.shape)
        )

    c.emit(op, step)


OPS: dict[str, Builder] = {
    "llvm.insertelement": _insert_element,
    "llvm.extractelement": _extract_element,
    "vector.insertelement": _insert_element,
    "vector.extractelement": _extract_element,
    "vector.extract": _vector_extract,
    "vector.insert": _vector_insert,
    "vector.broadcast": _broadcast,
    "vector.splat": _broadcast,
    "llvm.shufflevector": _shuffle,
    "vector.shuffle": _shuffle,
    "vector.shape_cast": _shape_cast,
    "vector.from_elements": _from_elements,
    "vector.to_elements": _to_elements,
    "vector.extract_strided_slice": _extract_slice,
    "vector.insert_strided_slice": _insert_slice,
    "vector.reduction": _reduction,
    "vector.step": _step_op,
    "vector.create_mask": _create_mask,
}
