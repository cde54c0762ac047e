"""``cute-to-base`` for the ten core ops, which pack and unpack structs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import IntegerType, VectorType, bf16, f16
from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.dialect.access import scalar_payloads
from cute_dialect.dialect.typed_values import dynamic_leaves
from cute_dialect.dialect.types import CuteType, IntTupleType
from cute_dialect.passes.lowering import printing
from cute_dialect.passes.lowering.types import leaf_paths, lowered
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.upstream import llvm

_READS_TYPE_ONLY = frozenset({"cute.memref.load", "cute.memref.store"})


def _static(low: Lowering, op: Operation) -> None:
    # A static coordinate is used only through its type.
    if op.results[0].uses and all(u.operation.name in _READS_TYPE_ONLY for u in op.results[0].uses):
        return
    low.values[op.results[0]] = low.build.poison(lowered(op.results[0].type))


def _get_scalars(low: Lowering, op: Operation) -> None:
    operand = op.operands[0]
    t = operand.type
    assert isinstance(t, CuteType)
    new = low.value(operand)
    paths = iter(leaf_paths(t))
    for scalar, result in zip(scalar_payloads(t.data, "only_dynamic" in op.properties), op.results):
        if isinstance(scalar, int):
            low.values[result] = low.build.constant(scalar, result.type)
        else:
            low.values[result] = low.build.extract(new, next(paths), result.type)


def _make_leaves(low: Lowering, op: Operation) -> None:
    """Lower make_int_tuple, make_shape, make_stride, make_coord, make_tile."""
    result = op.results[0]
    t = result.type
    target = lowered(t)
    operands: list[SSAValue] = []
    assert isinstance(t, CuteType)
    for o, d in zip(op.operands, dynamic_leaves(t.data)):
        known = o.type.data if isinstance(o.type, IntTupleType) else None
        operands.append(low.build.constant(known, IntegerType(d.width)) if isinstance(known, int) else low.value(o))
    paths = leaf_paths(t)
    if paths == ((),):
        low.values[result] = operands[0]
        return
    value = low.build.poison(target)
    for o, p in zip(operands, paths):
        value = low.build.insert(o, value, p)
    low.values[result] = value


def _make_parts(order: Sequence[int]) -> Handler:
    """Return a handler for make_layout (shape, stride) or make_composed_layout (outer, offset, inner)."""

    def handler(low: Lowering, op: Operation) -> None:
        value = low.build.poison(lowered(op.results[0].type))
        for i, operand in enumerate(order):
            value = low.build.insert(low.value(op.operands[operand]), value, (i,))
        low.values[op.results[0]] = value

    return handler


def _print(low: Lowering, op: Operation) -> None:
    t = op.operands[0].type
    assert isinstance(t, CuteType)
    values = low.leaves(op.operands[0], t.data, leaf_paths(t))
    printing.lower_print(low.build, op, t, values, low.formats, device=low.device)


def _fma(low: Lowering, op: Operation) -> None:
    """Lower ``math.fma`` of 16-bit floats in a kernel to ``llvm.intr.fma``, which rounds once.

    Upstream computes it in f32 and rounds again: for bf16, 0x7494 * 0xc460 + 0x4e80 gave 0xf982 instead of 0xf981.
    """
    result = op.results[0].type
    element = cast("VectorType[Attribute]", result).element_type if isinstance(result, VectorType) else result
    if not low.device or element not in (f16, bf16):
        low.clone(op)
        return
    flags = op.properties.get("fastmath")
    text = ",".join(f.value for f in flags.data) if isinstance(flags, FastMathFlagsAttr) else ""
    fma = llvm.OPS["intr.fma"]
    operands = [low.value(o) for o in op.operands]
    new = low.build.emit(fma(*operands, fastmathFlags=text or "none", result_types=[lowered(op.results[0].type)]))
    new.name_hint = op.results[0].name_hint
    low.values[op.results[0]] = new


TO_BASE: Mapping[str, Handler] = {
    "cute.static": _static,
    "cute.get_scalars": _get_scalars,
    "cute.make_int_tuple": _make_leaves,
    "cute.make_shape": _make_leaves,
    "cute.make_stride": _make_leaves,
    "cute.make_coord": _make_leaves,
    "cute.make_tile": _make_leaves,
    "cute.make_layout": _make_parts((0, 1)),
    "cute.make_composed_layout": _make_parts((2, 1, 0)),
    "cute.print": _print,
    "math.fma": _fma,
}
