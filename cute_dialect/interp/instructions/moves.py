"""Ops that move values: constants, aggregates, select, casts and bit casts."""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.compiler.function_compiler import Builder, FnCompiler
from cute_dialect.interp.compiler.undefined import late_slot, only_selected, picked, promise, unwritten
from cute_dialect.interp.errors import Fault, InterpError, attr_of, op_name
from cute_dialect.interp.machine.group import Group
from cute_dialect.interp.types import Leaf, Type, type_of
from cute_dialect.interp.values import POISON, Array, Regs, Value, normalise, splat, truth, unsigned, wrap_int

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation


def ints_of(attr: Attribute | None) -> list[int]:
    """Return the integers of a dense array, an array of integer attributes, or a dense elements attribute."""
    if attr is None:
        return []
    get = getattr(attr, "get_values", None)
    if get is not None:
        return [int(v) for v in get()]
    return [int(a.value.data) for a in attr.data]  # type: ignore[attr-defined]


def literal(attr: Attribute, t: Type) -> list[Value]:
    """Return the leaf values of a constant attribute."""
    if attr.name == "string":
        data = attr.data.encode("latin-1", "replace")  # type: ignore[attr-defined]
        return [wrap_int(b, 8) for b in data]
    if attr.name == "bytes":
        return [wrap_int(b, 8) for b in attr.data]  # type: ignore[attr-defined]
    if attr.name == "array":
        out: list[Value] = []
        for a, child in zip(attr.data, t.children):  # type: ignore[attr-defined]
            out.extend(literal(a, child))
        return out
    get = getattr(attr, "get_values", None)
    if get is not None:
        return _dense(list(get()), t)
    value = getattr(attr, "value", None)
    data = getattr(value, "data", value)
    if isinstance(data, (int, float)):
        return [splat(data, leaf) for leaf in t.leaves]
    raise InterpError("unsupported", f"a constant must be a number or dense elements, got {attr}")


def _dense(values: Sequence[object], t: Type) -> list[Value]:
    numbers = [v if isinstance(v, (int, float)) else 0 for v in values]
    if len(t.leaves) == 1 and t.leaves[0].shape:
        leaf = t.leaves[0]
        if len(numbers) == 1:
            numbers = numbers * leaf.count
        if leaf.kind == "f":
            arr = np.array(numbers, np.float64).astype(leaf.dtype)
        else:
            arr = np.array([wrap_int(int(n), leaf.width) for n in numbers], leaf.dtype)
        return [arr.reshape(leaf.shape)]
    if len(numbers) == 1:
        numbers = numbers * len(t.leaves)
    return [splat(n, leaf) for n, leaf in zip(numbers, t.leaves)]


def _constant(c: FnCompiler, op: Operation) -> None:
    attr = attr_of(op, "value")
    if attr is None:
        raise InterpError("unsupported", "the constant has no value")
    result = op.results[0]
    c.constant(result, literal(attr, type_of(result.type)))


def _zero(c: FnCompiler, op: Operation) -> None:
    c.constant(op.results[0], [splat(0, leaf) for leaf in type_of(op.results[0].type).leaves])


def _poison(c: FnCompiler, op: Operation) -> None:
    leaves = type_of(op.results[0].type).leaves
    tracked = c.program.tracks
    c.constant(op.results[0], [unwritten(op, leaf, i) if tracked else POISON for i, leaf in enumerate(leaves)])


def _span(t: Type, path: Sequence[int]) -> tuple[int, int]:
    """Return the first leaf and the number of leaves of the field at `path`."""
    start = 0
    for p in path:
        if not 0 <= p < len(t.children):
            raise InterpError("unsupported", f"field index {p} is not in [0, {len(t.children)})")
        start += sum(len(f.leaves) for f in t.children[:p])
        t = t.children[p]
    return start, len(t.leaves)


def _extract_value(c: FnCompiler, op: Operation) -> None:
    src = op.operands[0]
    start, n = _span(c.type_of(src), ints_of(attr_of(op, "position")))
    c.alias(op.results[0], c.slots_of(src)[start : start + n])


def _insert_value(c: FnCompiler, op: Operation) -> None:
    container, value = op.operands[0], op.operands[1]
    start, n = _span(c.type_of(container), ints_of(attr_of(op, "position")))
    slots = list(c.slots_of(container))
    slots[start : start + n] = c.slots_of(value)
    c.alias(op.results[0], slots)


def _same(c: FnCompiler, op: Operation) -> None:
    """Compile an op whose result is its operand."""
    c.alias(op.results[0], c.slots_of(op.operands[0]))


def _unrealized(c: FnCompiler, op: Operation) -> None:
    """Compile builtin.unrealized_conversion_cast between types with the same leaves."""
    slots = c.flat_uses(op.operands)
    at = 0
    for r in op.results:
        leaves = type_of(r.type).leaves
        part = slots[at : at + len(leaves)]
        at += len(leaves)
        if len(part) != len(leaves) or any(
            c.leaf_of(s).dtype != leaf.dtype or c.leaf_of(s).shape != leaf.shape for s, leaf in zip(part, leaves)
        ):
            raise InterpError("unsupported", f"cannot cast to {r.type}, whose registers differ")
        c.alias(r, part)


def _select(c: FnCompiler, op: Operation) -> None:
    cond = c.use(op.operands[0])
    on_true, on_false = c.uses(op.operands[1]), c.uses(op.operands[2])
    outs = c.defines(op.results[0])
    rows = tuple((a, b, d, c.leaf_of(d)) for a, b, d in zip(on_true, on_false, outs))
    vector = bool(c.leaf_of(cond).shape)
    late = [
        (c.late[s], arm, len(c.leaf_of(s).shape))
        for arm, slots in ((True, on_true), (False, on_false))
        for s in slots
        if s in c.late
    ]
    if late:
        onwards = len(outs) == 1 and only_selected(op)
        told = late_slot(c, outs[0]) if onwards else -1

        def poison(R: Regs, g: Group) -> None:
            found = [picked(R, g, s, R[cond], arm, rank, onwards) for s, arm, rank in late]
            if onwards:
                R[told] = next((b for b in found if b is not None), False)  # type: ignore[call-overload]

        c.emit(op, poison)

    def step(R: Regs, g: Group) -> None:
        k = R[cond]
        if not isinstance(k, np.ndarray):
            flag = bool(k)
            for a, b, d, _ in rows:
                R[d] = R[a] if flag else R[b]
            return
        for a, b, d, leaf in rows:
            x, y = R[a], R[b]
            if x is POISON or y is POISON:
                R[d] = y if x is POISON else x
                continue
            if vector or not leaf.shape:
                bits = k
            else:
                bits = k.reshape((-1,) + (1,) * len(leaf.shape))
            R[d] = np.where(bits, np.asarray(x, leaf.dtype), np.asarray(y, leaf.dtype))

    c.emit(op, step)


def _extend(is_signed: bool) -> Builder:
    def build(c: FnCompiler, op: Operation) -> None:
        a = c.use(op.operands[0])
        d = c.define(op.results[0])
        src, leaf = c.leaf_of(a), c.leaf_of(d)

        def step(R: Regs, g: Group) -> None:
            v = R[a]
            if isinstance(v, np.ndarray):
                if src.width == 1:
                    r = v.astype(leaf.dtype)
                    R[d] = -r if is_signed else r
                else:
                    R[d] = (v if is_signed else unsigned(v, src)).astype(leaf.dtype)  # type: ignore[union-attr]
                return
            n = int(v)  # type: ignore[arg-type]
            if src.width == 1:
                R[d] = -n if is_signed else n
            else:
                R[d] = n if is_signed else n & ((1 << src.width) - 1)

        c.emit(op, step)
        if not is_signed:
            not_negative(c, op)

    return build


def not_negative(c: FnCompiler, op: Operation) -> None:
    """Report a negative operand of an op with `nneg` (LLVM LangRef, zext and uitofp)."""
    if not c.overflow_errors or attr_of(op, "nonNeg") is None:
        return
    a = c.use(op.operands[0])
    report = promise(c, op)
    one_bit = c.leaf_of(a).width == 1

    def step(R: Regs, g: Group) -> None:
        v = R[a]
        bad = v if one_bit else v < 0  # type: ignore[operator]
        report(R, g, bad, lambda at: f"{op_name(op)}: {at(v)} is negative, which nneg forbids")  # type: ignore[arg-type]

    c.emit(op, step)


def _no_wrap(c: FnCompiler, op: Operation) -> None:
    """Report a truncation that loses bits despite `nsw` or `nuw` (LLVM LangRef, trunc)."""
    flags = overflow_flags(op) if c.overflow_errors else (False, False)
    if not any(flags):
        return
    a = c.use(op.operands[0])
    d = c.slots_of(op.results[0])[0]
    src, leaf = c.leaf_of(a), c.leaf_of(d)
    report = promise(c, op, "overflow")
    kind = "nsw" if flags[0] else "nuw"

    def step(R: Regs, g: Group) -> None:
        v, r = R[a], R[d]
        bad = np.zeros((), np.bool_)
        if flags[0]:
            narrow = -np.asarray(r).astype(np.int8) if leaf.width == 1 else r
            bad = bad | np.asarray(narrow != v)
        if flags[1]:
            bad = bad | np.asarray(unsigned(r, leaf) != unsigned(v, src))
        report(R, g, bad, lambda at: f"{op_name(op)}: {at(v)} overflows {leaf!r}, which {kind} forbids")

    c.emit(op, step)


def overflow_flags(op: Operation) -> tuple[bool, bool]:
    """Return (nsw, nuw) of an op."""
    got = attr_of(op, "overflowFlags")
    if got is None:
        return False, False
    number = getattr(getattr(got, "value", None), "data", None)
    if isinstance(number, int):
        return bool(number & 1), bool(number & 2)
    names: object = getattr(got, "data", None)  # A set of flags; printing the attribute would be slow.
    flags = {str(f) for f in names} if isinstance(names, frozenset) else str(got)
    return "nsw" in flags, "nuw" in flags


def _truncate(c: FnCompiler, op: Operation) -> None:
    a = c.use(op.operands[0])
    d = c.define(op.results[0])
    leaf = c.leaf_of(d)

    def step(R: Regs, g: Group) -> None:
        v = R[a]
        R[d] = normalise(v, leaf) if isinstance(v, np.ndarray) else wrap_int(int(v), leaf.width)  # type: ignore[arg-type]

    c.emit(op, step)
    _no_wrap(c, op)


def _index_cast(is_signed: bool) -> Builder:
    def build(c: FnCompiler, op: Operation) -> None:
        src = type_of(op.operands[0].type).leaf
        dst = type_of(op.results[0].type).leaf
        if dst.width > src.width:
            _extend(is_signed)(c, op)
        elif dst.width < src.width:
            _truncate(c, op)
        else:
            _same(c, op)

    return build


def bits_of(v: Value, leaf: Leaf, lanes: int) -> Array:
    """Return the value's bytes, of shape `(lanes or 1, leaf.size)`."""
    _ = v == v  # Raises for poison.
    arr = np.asarray(v, leaf.dtype)
    if arr.ndim == len(leaf.shape):
        arr = arr[None]
    return np.ascontiguousarray(arr).reshape(len(arr), -1).view(np.uint8)


def from_bits(raw: Array, leaf: Leaf, uniform: bool) -> Value:
    """Invert `bits_of`."""
    arr = np.ascontiguousarray(raw).view(leaf.dtype).reshape(len(raw), *leaf.shape)
    if not uniform:
        return arr
    one = arr[0]
    if leaf.shape:
        return one
    if leaf.kind == "f":
        return one
    return bool(one) if leaf.width == 1 else int(one)


def _bitcast(c: FnCompiler, op: Operation) -> None:
    a = c.use(op.operands[0])
    d = c.define(op.results[0])
    src, leaf = c.leaf_of(a), c.leaf_of(d)
    if src.size != leaf.size:
        raise InterpError("unsupported", f"bit cast between types of different sizes, {src!r} to {leaf!r}")

    def step(R: Regs, g: Group) -> None:
        v = R[a]
        uniform = not isinstance(v, np.ndarray) or v.ndim == len(src.shape)
        raw = _packed(v, src) if _below_byte(src) else bits_of(v, src, g.lanes)
        R[d] = _unpacked(raw, leaf, uniform) if _below_byte(leaf) else from_bits(raw, leaf, uniform)

    c.emit(op, step)


def _below_byte(leaf: Leaf) -> bool:
    return bool(leaf.shape) and leaf.kind == "i" and leaf.width in (1, 4, 6)


def _packed(v: Value, leaf: Leaf) -> Array:
    """Pack a vector of elements smaller than a byte, first element lowest, to shape `(lanes or 1, leaf.size)`."""
    _ = v == v  # Raises for poison.
    arr = np.asarray(v)
    arr = (arr[None] if arr.ndim == len(leaf.shape) else arr).reshape(-1, leaf.count)
    if leaf.width == 1:
        return np.packbits(arr.astype(np.uint8) & 1, axis=-1, bitorder="little")
    bits = arr.astype(np.int8).view(np.uint8)[..., None] >> np.arange(leaf.width, dtype=np.uint8) & 1
    return np.packbits(bits.reshape(len(arr), -1), axis=-1, bitorder="little")


def _unpacked(raw: Array, leaf: Leaf, uniform: bool) -> Value:
    """Invert `_packed`."""
    if leaf.width == 1:
        arr = np.unpackbits(raw, axis=-1, bitorder="little", count=leaf.count).astype(leaf.dtype)
    else:
        w = leaf.width
        bits = np.unpackbits(raw, axis=-1, bitorder="little", count=leaf.count * w).reshape(len(raw), -1, w)
        arr = np.packbits(bits, axis=-1, bitorder="little")[..., 0].view(np.int8)
        arr = np.where(arr >> (w - 1), arr - (1 << w), arr).astype(leaf.dtype)
    arr = arr.reshape(len(raw), *leaf.shape)
    return arr[0] if uniform else arr


def enum_word(attr: Attribute | None) -> str:
    """Return the case of an enum attribute in any representation.

    `#nvvm<shfl_kind bfly>` gives `bfly`, and `#nvvm.mma_layout<row>` gives `row`.
    """
    if attr is None:
        return ""
    data = getattr(attr, "data", None)
    if isinstance(data, str):
        return str(getattr(data, "value", data))
    text = str(attr)
    inner = text[text.find("<") + 1 : text.rfind(">")] if "<" in text else text
    return inner.split()[-1].strip('"') if inner.split() else ""


def _freeze(c: FnCompiler, op: Operation) -> None:
    """Replace a poison operand by zero. The "uninit" check keeps it unchanged."""
    if c.program.tracks:
        _same(c, op)
        return
    ins = c.uses(op.operands[0])
    outs = c.defines(op.results[0])
    rows = tuple((a, d, splat(0, c.leaf_of(d))) for a, d in zip(ins, outs))

    def step(R: Regs, g: Group) -> None:
        for a, d, z in rows:
            R[d] = z if R[a] is POISON else R[a]

    c.emit(op, step, pure=False)


def _assume(c: FnCompiler, op: Operation) -> None:
    """Compile llvm.intr.assume, which is an error if the condition is false."""
    a = c.use(op.operands[0])

    def step(R: Regs, g: Group) -> None:
        v = truth(R[a], g.mask)
        bad = ~v if isinstance(v, np.ndarray) else np.asarray(not v)
        if bad.any() and g.mask.n and g.mask.any(bad if bad.ndim else np.broadcast_to(bad, (g.lanes,))):
            lane = g.mask.first(bad if bad.ndim else np.broadcast_to(bad, (g.lanes,)))
            raise Fault("assert", "llvm.intr.assume: the condition is false", lane)

    c.emit(op, step, pure=False)


OPS: dict[str, Builder] = {
    "arith.constant": _constant,
    "llvm.mlir.constant": _constant,
    "index.constant": _constant,
    "llvm.mlir.zero": _zero,
    "llvm.mlir.null": _zero,
    "llvm.mlir.undef": _poison,
    "llvm.mlir.poison": _poison,
    "ub.poison": _poison,
    "llvm.extractvalue": _extract_value,
    "llvm.insertvalue": _insert_value,
    "builtin.unrealized_conversion_cast": _unrealized,
    "llvm.freeze": _freeze,
    "ub.freeze": _freeze,
    "arith.select": _select,
    "llvm.select": _select,
    "arith.extsi": _extend(True),
    "arith.extui": _extend(False),
    "llvm.sext": _extend(True),
    "llvm.zext": _extend(False),
    "arith.trunci": _truncate,
    "llvm.trunc": _truncate,
    "arith.index_cast": _index_cast(True),
    "arith.index_castui": _index_cast(False),
    "arith.bitcast": _bitcast,
    "llvm.bitcast": _bitcast,
    "vector.bitcast": _bitcast,
    "llvm.intr.assume": _assume,
    "llvm.intr.expect": _same,
    "llvm.intr.ssa.copy": _same,
}
