"""Bridge between the layout algebra and instructions: emit scalar steps, bind leaves, rebuild values.

Lowering runs the same algebra as type inference, over payloads whose dynamic leaves carry SSA values:

* :class:`ArithEmitter` emits one instruction for a scalar step that cannot be simplified;
* :func:`bind` attaches the scalars of a value (as listed by ``cute.get_scalars``) to the dynamic leaves of its payload;
* :func:`rebuild` creates a value of a declared type from a payload whose leaves carry SSA values.

Worked example, ``layout_eval`` of the coordinate ``(?,3)`` in ``(?,8):(8,1)``: the payloads are bound to ``%0`` and
``%1``, the algebra computes ``%0 * 8 + 3``, and rebuilding creates::

    %c8 = arith.constant 8 : i32
    %2 = arith.muli %0, %c8 overflow<nsw> : i32
    %c3 = arith.constant 3 : i32
    %3 = arith.addi %2, %c3 overflow<nsw> : i32
    %4 = cute.make_int_tuple(%3) : (i32) -> !cute.int_tuple<"?">

Coordinates and extents are signed, and overflow is undefined behaviour (hence ``nsw``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import cast

from xdsl.dialects import arith, scf
from xdsl.dialects.arith import IntegerOverflowAttr, IntegerOverflowFlag
from xdsl.dialects.builtin import IntegerAttr, IntegerType, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from cute_dialect.algebra.leaf import AlgebraError, Dyn, Emitter, Leaf
from cute_dialect.algebra.values import UNDERSCORE, Basis, ComposedLayout, Layout, Swizzle
from cute_dialect.dialect import make
from cute_dialect.dialect.memory_types import constrained_int
from cute_dialect.dialect.typed_values import bind as bind_leaves
from cute_dialect.dialect.typed_values import dynamic_leaves
from cute_dialect.dialect.types import TYPES, CuteType, Payload
from cute_dialect.dialect.views import AssumeOp
from cute_dialect.ir.editing import make_op

NSW = {"overflowFlags": IntegerOverflowAttr([IntegerOverflowFlag.NSW])}
"""Properties of an instruction whose signed overflow is undefined."""

BINARY: Mapping[str, tuple[type[Operation], Mapping[str, Attribute]]] = {
    "add": (arith.AddiOp, NSW),
    "sub": (arith.SubiOp, NSW),
    "mul": (arith.MuliOp, NSW),
    "div": (arith.DivSIOp, {}),
    "mod": (arith.RemSIOp, {}),
    "ceil_div": (arith.CeilDivSIOp, {}),
    "min": (arith.MinSIOp, {}),
    "max": (arith.MaxSIOp, {}),
    "and": (arith.AndIOp, {}),
    "or": (arith.OrIOp, {}),
    "xor": (arith.XOrIOp, {}),
    "shr": (arith.ShRUIOp, {}),
    "shl": (arith.ShLIOp, {"overflowFlags": IntegerOverflowAttr("none")}),
}
"""Scalar step of the algebra -> instruction and its properties."""

PREDICATES: Mapping[str, IntegerAttr[IntegerType]] = {
    name: IntegerAttr(number, i64)
    for name, number in (("eq", 0), ("ne", 1), ("slt", 2), ("sle", 3), ("sgt", 4), ("sge", 5))
}
"""Comparison of the algebra -> ``predicate`` of ``arith.cmpi``."""


@lru_cache(maxsize=8)
def integer(width: int) -> IntegerType:
    """Return the signless integer type of ``width`` bits."""
    return IntegerType(width)


def constant(value: int, width: int) -> arith.ConstantOp:
    """Create ``arith.constant`` of ``width`` bits."""
    return make_op(arith.ConstantOp, (), [integer(width)], {"value": integer_attr(value, width)})


@lru_cache(maxsize=4096)
def integer_attr(value: int, width: int) -> IntegerAttr[IntegerType]:
    """Return the attribute of a signless integer of ``width`` bits."""
    return IntegerAttr(value, integer(width))


def ssa_value(leaf: Dyn) -> SSAValue:
    """Return the SSA value that a bound leaf carries."""
    value = leaf.value
    assert isinstance(value, SSAValue), f"leaf {leaf} carries no SSA value"
    return value  # pyright: ignore[reportUnknownVariableType]


class ArithEmitter(Emitter):
    """Emits ``arith``, ``math`` and ``scf`` ops.

    Args:
        add: inserts an op, sets its location, and returns it.
        make_constant: returns a constant (value, type) that may be shared; None creates a new constant for every use.
    """

    def __init__(
        self, add: Callable[[Operation], Operation], make_constant: Callable[[int, Attribute], SSAValue] | None = None
    ):
        self.add = add
        self._make_constant = make_constant

    def emit(self, op: Operation) -> SSAValue:
        """Insert an op and return its first result."""
        self.add(op)
        return op.results[0]

    def constant(self, value: int, width: int) -> SSAValue:
        """Create an integer constant of ``width`` bits."""
        if self._make_constant is not None:
            return self._make_constant(value, integer(width))
        return self.emit(constant(value, width))

    def value(self, leaf: Leaf, width: int) -> SSAValue:
        """Return a leaf as an SSA value of ``width`` bits, sign-extended if narrower."""
        if isinstance(leaf, int):
            return self.constant(leaf, width)
        value = ssa_value(leaf)
        if leaf.width == width:
            return value
        assert leaf.width < width, f"{leaf} does not fit in {width} bits"
        return self.emit(make_op(arith.ExtSIOp, [value], [integer(width)]))

    def binary(self, op: str, a: Leaf, b: Leaf, width: int) -> SSAValue:
        op_class, properties = BINARY[op]
        operands = [self.value(a, width), self.value(b, width)]
        return self.emit(make_op(op_class, operands, [integer(width)], properties))

    def unary(self, op: str, a: Leaf, width: int) -> SSAValue:
        assert op == "abs", op
        from xdsl.dialects import math  # costly to import, seldom used

        return self.emit(make_op(math.AbsIOp, [self.value(a, width)], [integer(width)]))

    def compare(self, predicate: str, a: Leaf, b: Leaf, width: int) -> SSAValue:
        operands = [self.value(a, width), self.value(b, width)]
        return self.emit(make_op(arith.CmpiOp, operands, [i1], {"predicate": PREDICATES[predicate]}))

    def select(self, condition: object, a: Leaf, b: Leaf, width: int) -> SSAValue:
        assert isinstance(condition, SSAValue)
        # The branches contain only their yields; upstream's canonicalizer converts the op to arith.select.
        chosen = [self.value(a, width), self.value(b, width)]
        blocks = [Block([make_op(scf.YieldOp, [x])]) for x in chosen]
        regions = [Region(block) for block in blocks]
        op = scf.IfOp.create(
            operands=[condition],  # pyright: ignore[reportUnknownArgumentType]
            result_types=[integer(width)],
            regions=regions,
        )
        value = self.emit(op)
        for block in blocks:
            assert block.last_op is not None
            block.last_op.location = op.location
        return value

    def same(self, a: object, b: object) -> bool:
        return _origin(cast("SSAValue", a)) is _origin(cast("SSAValue", b))


def _origin(value: SSAValue) -> SSAValue:
    """Return the scalar that was packed into the cute value from which ``value`` was extracted, if visible."""
    op = value.owner
    if not isinstance(op, Operation) or op.name != "cute.get_scalars" or "only_dynamic" not in op.properties:
        return value
    source, index = op.operands[0], op.results.index(value)
    while isinstance(maker := source.owner, Operation):
        if maker.name == "cute.make_layout":
            shape, stride = maker.operands
            count = _dynamic(shape)
            source, index = (shape, index) if index < count else (stride, index - count)
        elif maker.name in ("cute.make_shape", "cute.make_stride", "cute.make_int_tuple"):
            scalar = maker.operands[index]
            return scalar if isinstance(scalar.type, IntegerType) else value
        elif maker.name in ("cute.get_shape", "cute.get_stride"):
            layout = maker.operands[0]
            if maker.name == "cute.get_stride":
                index += _dynamic(layout) - _dynamic(source)
            source = layout
        else:
            break
    return value


def _dynamic(value: SSAValue) -> int:
    t = value.type
    return len(dynamic_leaves(t.data)) if isinstance(t, CuteType) else 0


# ----------------------------------------------------------------------------------------------------- bind and rebuild


def bind(payload: Payload, scalars: Sequence[SSAValue], emitter: Emitter) -> Payload:
    """Attach ``scalars``, the results of ``cute.get_scalars<{only_dynamic}>``, to the dynamic leaves of a payload.

    The order is storage order: depth first, shape before stride; for ``A o off o B`` first ``B``, then the offset, then
    ``A``.  Raises ValueError if the numbers of scalars and dynamic leaves differ.
    """
    found = dynamic_leaves(payload)
    return bind_leaves(payload, [Dyn(d.width, d.div, v, emitter) for d, v in zip(found, scalars, strict=True)])


MAKE: Mapping[str, type[make.MakeTreeOp]] = {
    "int_tuple": make.MakeIntTupleOp,
    "shape": make.MakeShapeOp,
    "stride": make.MakeStrideOp,
    "coord": make.MakeCoordOp,
    "tile": make.MakeTileOp,
}
"""Kind of a tree -> the op that creates it from scalars."""


@lru_cache(maxsize=4096)
def value_type(kind: str, payload: Payload) -> CuteType:
    """Return the type of a kind and payload.

    Parts of a verified type are valid, so the type is built only once.
    """
    return TYPES[kind](payload)


def static(declared: CuteType, emitter: ArithEmitter) -> SSAValue:
    """Create ``cute.static`` of a type."""
    return emitter.emit(make_op(make.StaticOp, (), [declared]))


def rebuild(declared: CuteType, payload: Payload, emitter: ArithEmitter) -> SSAValue:
    """Create a value of exactly the declared type, with the dynamic leaves of ``payload``.

    The payload has the structure of the type.  A leaf with a declared divisibility is wrapped in ``cute.assume``.  A
    number in the place of a dynamic leaf becomes a constant.
    """
    if declared.is_static():
        return static(declared, emitter)
    kind, written = declared.kind, declared.data
    if kind == "layout":
        assert isinstance(written, Layout) and isinstance(payload, Layout)
        return _layout(declared, written, payload, emitter)
    if kind == "composed_layout":
        assert isinstance(written, ComposedLayout) and isinstance(payload, ComposedLayout)
        outer = rebuild(value_type("layout", written.outer), payload.outer, emitter)
        offset = _tree("int_tuple", written.offset, payload.offset, emitter)
        inner_kind = "swizzle" if isinstance(written.inner, Swizzle) else "layout"
        inner = rebuild(value_type(inner_kind, written.inner), payload.inner, emitter)
        return emitter.emit(make_op(make.MakeComposedLayoutOp, [inner, offset, outer], [declared]))
    return _tree(kind, written, payload, emitter, declared)


def _layout(declared: CuteType, written: Layout, payload: Layout, emitter: ArithEmitter) -> SSAValue:
    shape = _tree("shape", written.shape, payload.shape, emitter)
    stride = _tree("stride", written.stride, payload.stride, emitter)
    return emitter.emit(make_op(make.MakeLayoutOp, [shape, stride], [declared]))


def _tree(
    kind: str, written: Payload, payload: Payload, emitter: ArithEmitter, declared: CuteType | None = None
) -> SSAValue:
    scalars: list[SSAValue] = []
    _fill(written, payload, emitter, scalars)
    return emitter.emit(make_op(MAKE[kind], scalars, [declared or value_type(kind, written)]))


def _fill(written: Payload, payload: Payload, emitter: ArithEmitter, scalars: list[SSAValue]) -> None:
    """Append the scalar of each dynamic leaf of ``written``; all other leaves of the trees must be equal."""
    if isinstance(written, Dyn):
        assert isinstance(payload, int | Dyn), f"expected a leaf for {written}, got {payload}"
        scalars.append(_slot(written, payload, emitter))
    elif isinstance(written, tuple):
        assert isinstance(payload, tuple) and len(written) == len(payload), f"expected {written}, got {payload}"
        for w, p in zip(written, payload):
            _fill(w, p, emitter, scalars)
    elif isinstance(written, Basis):
        assert isinstance(payload, Basis) and written.path == payload.path, f"expected {written}, got {payload}"
        _fill(written.value, payload.value, emitter, scalars)
    elif isinstance(written, Layout):
        assert isinstance(payload, Layout), f"expected {written}, got {payload}"
        _fill(written.shape, payload.shape, emitter, scalars)
        _fill(written.stride, payload.stride, emitter, scalars)
    else:
        assert written is UNDERSCORE or written == payload, f"expected {written}, got {payload}"


def _slot(slot: Dyn, leaf: Leaf, emitter: ArithEmitter) -> SSAValue:
    if slot.width not in (32, 64):
        raise AlgebraError(f"expected dynamic leaves of 32 or 64 bits, got '{slot}'")
    value = emitter.value(leaf, slot.width)
    if slot.div <= 1:
        return value
    return emitter.emit(make_op(AssumeOp, [value], [constrained_int(slot.width, slot.div)]))
