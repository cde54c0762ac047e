"""Scalar evaluation of functions at any stage: cute ops as well as the ops that passes lower them to.

This is the reference for translation validation (:mod:`.validate`): a function with cute ops and its lowered form run
on the same numbers.  A value of a cute type is the tuple of the integers in its dynamic leaves, in storage order.  The
value of a tensor is its iterator (the address in bytes, or the leaves of a coordinate) followed by the leaves of its
layout.  A lowered struct is a nested tuple, which :func:`flatten` reduces to the same form.  A cute op is evaluated by
its own inference over leaves that carry numbers; no IR is built.

Integers are signed and wrap at their width; an ``i1`` is 0 or 1.  Signed overflow of an ``nsw`` op and ``ub.poison``
give :data:`POISON`, which propagates.  :class:`Undefined` is raised for undefined behavior (a division by zero, a
branch on poison, a broken ``cute.assume``).

>>> # %s = cute.make_shape(%n) : (i32) -> !cute.shape<"(?,6)">
>>> # Evaluator(module).call("f", [7])  ->  ((7,),)
>>> # cute.layout_eval of (?,3) at 5 in (?,8):(8,1):  evaluate_cute(op, [(5,), (7,)])  ->  [(43,)]
>>> step("addi", 3, 4, 32), step("muli", 1 << 20, 1 << 20, 32), step("muli", 1 << 20, 1 << 20, 32, nsw=True)
(7, 0, poison)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import IndexType, IntegerType, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from cute_dialect.algebra import text
from cute_dialect.algebra.arithmetic import tuple_add
from cute_dialect.algebra.leaf import Dyn, Emitter, Leaf, width_of
from cute_dialect.algebra.trees import tracked
from cute_dialect.algebra.values import ComposedLayout
from cute_dialect.dialect.access import GetScalarsOp, scalar_payloads
from cute_dialect.dialect.arith import ComparisonOp
from cute_dialect.dialect.atom_types import TiledCopyType
from cute_dialect.dialect.base import CuteOp
from cute_dialect.dialect.memory_types import (
    ConstrainedIntType,
    CoordTensorType,
    MemRefType,
    Ptr,
    PtrType,
    TensorType,
    element_bits,
)
from cute_dialect.dialect.tensor_lifting import OFFSET_OPS, slice_offset
from cute_dialect.dialect.tensors import PlacedOp
from cute_dialect.dialect.tiled import partition, partition_side
from cute_dialect.dialect.typed_values import Typed, bind, dynamic_leaves, track
from cute_dialect.dialect.types import CuteType, IntTupleType, Payload
from cute_dialect.upstream.llvm_types import LLVMStructType


class Undefined(Exception):
    """The program has undefined behavior; the message describes it."""


class Unsupported(Exception):
    """The evaluator does not support an op or a type."""


class OutOfSteps(Exception):
    """The program exceeded its step limit."""


class Poison:
    """The type of :data:`POISON`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "poison"


POISON = Poison()
"""The result of an operation without a defined value. Harmless until something depends on it."""

Number: TypeAlias = int | Poison
Value: TypeAlias = "Number | str | tuple[Value, ...]"
"""A run-time value. A ``str`` is the address of a global."""


def flatten(value: Value) -> Iterator[Number | str]:
    """Yield the numbers in a value, in storage order."""
    if isinstance(value, tuple):
        for v in value:
            yield from flatten(v)
    else:
        yield value


def wrap(x: int, width: int) -> int:
    """Return ``x`` as a signed integer of ``width`` bits; an ``i1`` is 0 or 1."""
    x &= (1 << width) - 1
    return x - (1 << width) if width > 1 and x >> (width - 1) else x


def width_of_type(t: Attribute) -> int:
    """Return the width in bits of an integer or index type.  Raises Unsupported."""
    if isinstance(t, IntegerType):
        return t.bitwidth
    if isinstance(t, IndexType):
        return 64
    raise Unsupported(f"values of type {t}")


# ------------------------------------------------------------------------------------------------------- scalar steps


def _divide(a: int, b: int) -> int:
    if b == 0:
        raise Undefined("division by zero")
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def _unsigned(x: int, width: int) -> int:
    return x & ((1 << width) - 1)


def _shift(x: int, by: int, width: int, f: Callable[[int, int], int]) -> Number:
    by = _unsigned(by, width)
    return f(x, by) if by < width else POISON


def _nonzero(b: int) -> int:
    if b == 0:
        raise Undefined("division by zero")
    return b


STEPS: Mapping[str, Callable[[int, int, int], Number]] = {
    "addi": lambda a, b, w: a + b,
    "subi": lambda a, b, w: a - b,
    "muli": lambda a, b, w: a * b,
    "divsi": lambda a, b, w: _divide(a, b),
    "remsi": lambda a, b, w: a - _divide(a, b) * b,
    "divui": lambda a, b, w: _unsigned(a, w) // _unsigned(_nonzero(b), w),
    "remui": lambda a, b, w: _unsigned(a, w) % _unsigned(_nonzero(b), w),
    "ceildivsi": lambda a, b, w: -(-a // _nonzero(b)),
    "floordivsi": lambda a, b, w: a // _nonzero(b),
    "minsi": lambda a, b, w: min(a, b),
    "maxsi": lambda a, b, w: max(a, b),
    "minui": lambda a, b, w: min(_unsigned(a, w), _unsigned(b, w)),
    "maxui": lambda a, b, w: max(_unsigned(a, w), _unsigned(b, w)),
    "andi": lambda a, b, w: a & b,
    "ori": lambda a, b, w: a | b,
    "xori": lambda a, b, w: a ^ b,
    "shli": lambda a, b, w: _shift(a, b, w, lambda x, k: x << k),
    "shrui": lambda a, b, w: _shift(a, b, w, lambda x, k: _unsigned(x, w) >> k),
    "shrsi": lambda a, b, w: _shift(a, b, w, lambda x, k: x >> k),
}
"""Maps an ``arith`` op to its result before wrapping, from two signed operands and the width."""

TESTS: tuple[Callable[[int, int, int], bool], ...] = (
    lambda a, b, w: a == b,
    lambda a, b, w: a != b,
    lambda a, b, w: a < b,
    lambda a, b, w: a <= b,
    lambda a, b, w: a > b,
    lambda a, b, w: a >= b,
    lambda a, b, w: _unsigned(a, w) < _unsigned(b, w),
    lambda a, b, w: _unsigned(a, w) <= _unsigned(b, w),
    lambda a, b, w: _unsigned(a, w) > _unsigned(b, w),
    lambda a, b, w: _unsigned(a, w) >= _unsigned(b, w),
)
"""Comparisons, indexed by the ``arith.cmpi`` predicate."""


def step(name: str, a: Number, b: Number, width: int, *, nsw: bool = False) -> Number:
    """Execute one binary instruction.  Raises Undefined for a division by zero or by poison."""
    if isinstance(b, Poison) and ("div" in name or "rem" in name):
        raise Undefined("division by poison")
    if isinstance(a, Poison) or isinstance(b, Poison):
        return POISON
    exact = STEPS[name](a, b, width)
    if isinstance(exact, Poison):
        return POISON
    wrapped = wrap(exact, width)
    return POISON if nsw and wrapped != exact else wrapped


# ----------------------------------------------------------------------------------------------------------------- ops


def decided(condition: Value) -> bool:
    """Return True if a condition holds.  Raises Undefined for poison."""
    if isinstance(condition, Poison):
        raise Undefined("a branch depends on poison")
    return bool(condition)


def evaluate_arith(op: Operation, name: str, operands: Sequence[Value]) -> Value:
    """Return the result of an integer op of ``arith`` or ``math``.  Raises Undefined or Unsupported."""
    t = op.results[0].type
    if name == "constant":
        width = width_of_type(t)
        return wrap(op.properties["value"].value.data, width)  # pyright: ignore
    if name == "select":
        return operands[1] if decided(operands[0]) else operands[2]
    width = width_of_type(op.operands[0].type)
    if any(isinstance(x, Poison) for x in operands) and name not in ("divsi", "remsi", "ceildivsi", "floordivsi"):
        return POISON
    numbers = [x for x in operands if isinstance(x, int | Poison)]
    if name == "cmpi":
        a, b = numbers
        assert isinstance(a, int) and isinstance(b, int)
        number = int(op.properties["predicate"].value.data)  # pyright: ignore
        if width == 1 and number in range(2, 6):  # signed: true is -1
            a, b = -a, -b
        return int(TESTS[number](a, b, width))
    if name in ("extsi", "index_cast"):
        x = numbers[0]
        assert isinstance(x, int)
        return wrap(-x if width == 1 and name == "extsi" else x, width_of_type(t))
    if name in ("extui", "index_castui"):
        x = numbers[0]
        assert isinstance(x, int)
        return wrap(_unsigned(x, width), width_of_type(t))
    if name == "trunci":
        x = numbers[0]
        assert isinstance(x, int)
        return wrap(x, width_of_type(t))
    if name == "absi":
        x = numbers[0]
        assert isinstance(x, int)
        return wrap(abs(x), width)
    if name in STEPS:
        flags = op.properties.get("overflowFlags")
        nsw = flags is not None and any(f.value == "nsw" for f in flags.data)  # pyright: ignore
        return step(name, numbers[0], numbers[1], width, nsw=nsw)
    raise Unsupported(f"the op {op.name}")


_BY_ALGEBRA: Mapping[str, tuple[str, bool]] = {
    "add": ("addi", True), "sub": ("subi", True), "mul": ("muli", True), "div": ("divsi", False),
    "mod": ("remsi", False), "ceil_div": ("ceildivsi", False), "min": ("minsi", False), "max": ("maxsi", False),
    "and": ("andi", False), "or": ("ori", False), "xor": ("xori", False), "shr": ("shrui", False),
    "shl": ("shli", False),
}  # fmt: skip
_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge")


class ConcreteEmitter(Emitter):
    """An emitter that computes numbers instead of emitting ops."""

    def binary(self, op: str, a: Leaf, b: Leaf, width: int) -> Number:
        name, nsw = _BY_ALGEBRA[op]
        return step(name, _number(a), _number(b), width, nsw=nsw)

    def unary(self, op: str, a: Leaf, width: int) -> Number:
        assert op == "abs", op
        x = _number(a)
        return x if isinstance(x, Poison) else wrap(abs(x), width)

    def same(self, a: object, b: object) -> bool:
        return False  # Leaves have values only, so equal names prove nothing.

    def compare(self, predicate: str, a: Leaf, b: Leaf, width: int) -> Number:
        x, y = _number(a), _number(b)
        if isinstance(x, Poison) or isinstance(y, Poison):
            return POISON
        return int(TESTS[_PREDICATES.index(predicate)](x, y, width))

    def select(self, condition: object, a: Leaf, b: Leaf, width: int) -> Number:
        if isinstance(condition, Poison):
            raise Undefined("a choice depends on poison")
        return _number(a if condition else b)


def _number(leaf: Leaf) -> Number:
    if isinstance(leaf, int):
        return leaf
    assert isinstance(leaf.value, int | Poison)
    return leaf.value


_EMITTER = ConcreteEmitter()


def bound(t: CuteType, numbers: Value) -> Payload:
    """Return the payload of a type with its dynamic leaves bound to the numbers of a value."""
    assert isinstance(numbers, tuple)
    leaves = dynamic_leaves(t.data)
    return bind(t.data, [Dyn(d.width, d.div, x, _EMITTER) for d, x in zip(leaves, numbers, strict=True)])


def numbers_of(payload: Payload, declared: Payload) -> tuple[Number, ...]:
    """Return the value of a payload computed over numbers, for the declared type."""
    found = tuple(_number(d) for d in dynamic_leaves(payload))
    if len(found) != len(dynamic_leaves(declared)):
        raise Unsupported(f"a value {text.to_text(payload)} for the type {text.to_text(declared)}")
    return found


# ------------------------------------------------------------------------------------------------------------ cute ops


def _concatenate(*order: int) -> Callable[[Operation, Sequence[Value]], Sequence[Value]]:
    def make(op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
        parts = [operands[i] for i in order]
        return [tuple(x for part in parts if isinstance(part, tuple) for x in part)]

    return make


def _make_tree(op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    out: list[Value] = []
    for operand, value in zip(op.operands, operands):
        t = operand.type
        if isinstance(t, IntTupleType):
            out.append(t.data if isinstance(t.data, int) else value[0])  # pyright: ignore
        else:
            out.append(value)
    return [tuple(out)]


def _get_scalars(op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    assert isinstance(op, GetScalarsOp)
    (value,) = operands
    assert isinstance(value, tuple)
    if op.only_dynamic is not None:
        return value
    t = op.input.type
    assert isinstance(t, CuteType)
    dynamic = iter(value)
    return [next(dynamic) if isinstance(s, Dyn) else wrap(s, width_of(s)) for s in scalar_payloads(t.data)]


def _assume(op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    (value,) = operands
    t = op.results[0].type
    if isinstance(t, ConstrainedIntType):
        divisors = [t.divisor]
    elif isinstance(t, PtrType):
        divisors = [t.data.alignment]
    elif isinstance(t, CuteType):
        divisors = [d.div or 1 for d in dynamic_leaves(t.data)]
    else:
        raise Unsupported(f"cute.assume of {t}")
    for x, n in zip(flatten(value), divisors, strict=True):
        if isinstance(x, int) and x % n:
            raise Undefined(f"cute.assume: {x} is not a multiple of {n}")
    return [value]


def evaluate_cute(op: CuteOp, operands: Sequence[Value]) -> Sequence[Value]:
    """Return the results of a cute op.  Raises Undefined, Unsupported or AlgebraError."""
    handler = _CUTE.get(op.name)
    if handler is not None:
        return handler(op, operands)
    if op.operands and isinstance(op.operands[0].type, TensorType) and op.LIFT:
        return _lifted(op, operands)
    if isinstance(op, PlacedOp):
        return _placed(op, operands)
    typed: list[Typed] = []
    for operand, value in zip(op.operands, operands):
        if not isinstance(operand.type, CuteType):
            raise Unsupported(f"{op.name} of {operand.type}")
        typed.append(Typed(operand.type.kind, bound(operand.type, value)))
    typed = track(typed)
    if isinstance(op, ComparisonOp):
        answer = op.infer_condition(typed)
        return [int(answer) if isinstance(answer, bool) else _number(answer)]
    if not all(isinstance(t, CuteType) for t in op.result_types):
        raise Unsupported(f"{op.name} with results that are not values")
    results = op.infer(typed, op.properties)
    return [numbers_of(r.payload, t.data) for r, t in zip(results, op.result_types)]  # pyright: ignore


# ------------------------------------------------------------------------------------------------------------- tensors


def iterator_leaves(t: TensorType) -> int:
    """Return the number of leading values of a tensor that belong to its iterator."""
    return len(dynamic_leaves(t.data.iter)) if isinstance(t, CoordTensorType) else 1


def _parts(t: TensorType, value: Value) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    assert isinstance(value, tuple)
    n = iterator_leaves(t)
    return value[:n], value[n:]


def _numbered(payload: Payload, numbers: Sequence[Value]) -> Payload:
    """Return a payload with its leaves bound to numbers. Divisibility is tracked as for ops on tensors."""
    leaves = dynamic_leaves(payload)
    return bind(payload, [Dyn(d.width, d.div or 1, x, _EMITTER) for d, x in zip(leaves, numbers, strict=True)])


def moved(p: Ptr, address: Value, offset: Leaf) -> Value:
    """Advance an address by an offset in elements.  Raises Undefined if the result is inside a byte."""
    number = _number(offset)
    if isinstance(number, Poison) or isinstance(address, Poison):
        return POISON
    assert isinstance(address, int)
    bits = number * element_bits(p.element)
    if bits % 8:
        raise Undefined(f"an address inside a byte: element {number} of {p.element}")
    return address + bits // 8


def _lifted(op: CuteOp, operands: Sequence[Value]) -> Sequence[Value]:
    t = op.operands[0].type
    assert isinstance(t, TensorType)
    iterator, numbers = _parts(t, operands[0])
    layout = _numbered(t.layout, numbers)
    rest: list[Typed] = []
    for operand, value in zip(op.operands[1:], operands[1:]):
        assert isinstance(operand.type, CuteType)
        rest.append(Typed(operand.type.kind, tracked(bound(operand.type, value))))
    (result,) = op.infer([Typed("composed_layout" if isinstance(layout, ComposedLayout) else "layout", layout), *rest],
                         op.properties)  # fmt: skip
    declared = op.results[0].type
    if isinstance(declared, CuteType):
        return [numbers_of(result.payload, declared.data)]
    assert isinstance(declared, TensorType)
    if op.name in OFFSET_OPS:
        offset = slice_offset(layout, rest[0].payload)
        iterator = _advanced(t, declared, iterator, offset)  # pyright: ignore[reportArgumentType]
    return [(*iterator, *numbers_of(result.payload, declared.layout))]


def _advanced(t: TensorType, declared: TensorType, iterator: tuple[Value, ...], offset: Payload) -> tuple[Value, ...]:
    """Return a tensor's iterator advanced by an offset, for a result of the declared type."""
    if isinstance(t, CoordTensorType) and isinstance(declared, CoordTensorType):
        sum_ = tuple_add(_numbered(t.data.iter, iterator), offset)  # pyright: ignore[reportArgumentType]
        return numbers_of(sum_, declared.data.iter)  # pyright: ignore[reportArgumentType]
    assert isinstance(t, MemRefType) and isinstance(offset, int | Dyn)
    return (moved(t.data.ptr, iterator[0], offset),)


def _placed(op: PlacedOp, operands: Sequence[Value]) -> Sequence[Value]:
    t, declared = op.operands[0].type, op.results[0].type
    assert isinstance(t, TensorType) and isinstance(declared, TensorType)
    iterator, numbers = _parts(t, operands[0])
    rest: list[Payload] = []
    for operand, value in zip(op.operands[1:], operands[1:]):
        assert isinstance(operand.type, CuteType)
        rest.append(tracked(bound(operand.type, value)))
    layout, offset = op.place(_numbered(t.layout, numbers), rest)  # pyright: ignore[reportArgumentType]
    if offset is not None:
        iterator = _advanced(t, declared, iterator, offset)
    return [(*iterator, *numbers_of(layout, declared.layout))]


def _partition(op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    tiled_copy, t, coord = op.operand_types
    declared = op.results[0].type
    assert isinstance(tiled_copy, TiledCopyType) and isinstance(coord, CuteType)
    assert isinstance(t, TensorType) and isinstance(declared, TensorType)
    iterator, numbers = _parts(t, operands[1])
    thread = tracked(bound(coord, operands[2]))
    layout, offset = partition(tiled_copy, t, _numbered(t.layout, numbers), thread, partition_side(op))
    iterator = _advanced(t, declared, iterator, offset)  # pyright: ignore[reportArgumentType]
    return [(*iterator, *numbers_of(layout, declared.layout))]


def _get_iter(op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    t = op.operands[0].type
    assert isinstance(t, TensorType)
    iterator, _ = _parts(t, operands[0])
    return [iterator if isinstance(t, CoordTensorType) else iterator[0]]


def _get_layout(op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    t = op.operands[0].type
    assert isinstance(t, TensorType)
    return [_parts(t, operands[0])[1]]


def _make_view(op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    return [tuple(x for part in operands for x in flatten(part))]


def _add_offset(op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    it, offset = op.operands[0].type, op.operands[1].type
    assert isinstance(offset, IntTupleType)
    by = bound(offset, operands[1])
    if isinstance(it, PtrType):
        assert isinstance(by, int | Dyn)
        address = moved(it.data, operands[0], by)
        result = op.results[0].type
        assert isinstance(result, PtrType)
        if isinstance(address, int) and address % result.data.alignment:
            raise Undefined(f"address {address} is not a multiple of {result.data.alignment}")
        return [address]
    assert isinstance(it, IntTupleType)
    sum_ = tuple_add(bound(it, operands[0]), by)  # pyright: ignore[reportArgumentType]
    return [numbers_of(sum_, op.results[0].type.data)]  # pyright: ignore


_CUTE: Mapping[str, Callable[[Operation, Sequence[Value]], Sequence[Value]]] = {
    "cute.static": lambda op, operands: [()],
    "cute.get_scalars": _get_scalars,
    "cute.make_int_tuple": _make_tree,
    "cute.make_shape": _make_tree,
    "cute.make_stride": _make_tree,
    "cute.make_coord": _make_tree,
    "cute.make_tile": _make_tree,
    "cute.make_layout": _concatenate(0, 1),
    "cute.make_composed_layout": _concatenate(2, 1, 0),  # storage order: outer, offset, inner
    "cute.assume": _assume,
    "cute.get_iter": _get_iter,
    "cute.get_layout": _get_layout,
    "cute.make_view": _make_view,
    "cute.add_offset": _add_offset,
    "cute.atom": lambda op, operands: [()],
    "cute.make_tiled_copy": lambda op, operands: [()],
    **{f"cute.make_tiled_copy_{x}": lambda op, operands: [()] for x in ("A", "B", "C", "tv")},
    "cute.tiled.copy.partition_S": _partition,
    "cute.tiled.copy.partition_D": _partition,
    "cute.recast_iter": lambda op, operands: operands,
}


# ------------------------------------------------------------------------------------------------------------ printing


_DYNAMIC = re.compile(r"\?(\{[^}]*\})?")


def printed(t: Attribute, value: Value) -> str:
    """Return the line that ``cute.print`` writes: the type's text with every ``?`` replaced.

    Raises Undefined for poison.
    """
    if not isinstance(t, CuteType):
        raise Unsupported(f"cute.print of {t}")
    numbers = list(flatten(value))
    payload = t.data
    if isinstance(payload, ComposedLayout):  # printed inner, offset, outer; stored outer, offset, inner
        a, b = len(dynamic_leaves(payload.outer)), len(dynamic_leaves(payload.offset))
        numbers = numbers[a + b :] + numbers[a : a + b] + numbers[:a]
    return substitute(text.to_text(payload), _DYNAMIC, numbers) + "\n"


def substitute(form: str, pattern: re.Pattern[str], numbers: Sequence[Value]) -> str:
    """Replace each match of a pattern by the next number.  Raises Undefined for poison."""
    left = iter(numbers)

    def number(match: re.Match[str]) -> str:
        x = next(left)
        if not isinstance(x, int):
            raise Undefined("poison is printed")
        return str(x)

    return pattern.sub(number, form)


def formatted(form: str, numbers: Sequence[Value]) -> str:
    """Return the output of ``printf``."""
    return substitute(form.replace("%%", "\0"), re.compile(r"%(?:lld|ld|d|i)"), numbers).replace("\0", "%")


MAX_DEPTH = 64
"""Maximum nesting depth of calls."""

_Frame: TypeAlias = dict[SSAValue, Value]
"""The values of one call."""


class Evaluator:
    """Calls functions of a module by name.

    ``output`` collects the output of ``cute.print``, ``gpu.printf`` and ``printf``, and a line per kernel launch.
    ``max_steps`` limits the ops that one call executes.
    """

    def __init__(self, module: Operation, max_steps: int = 100_000):
        self.output: list[str] = []
        self.steps = self.max_steps = max_steps
        self.depth = 0
        self.functions: dict[str, Operation] = {}
        self.globals: dict[str, str] = {}
        self._collect(module)

    def _collect(self, op: Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                for child in block.ops:
                    name = _symbol(child)
                    if child.name in ("func.func", "llvm.func") and name is not None:
                        self.functions.setdefault(name, child)
                    elif child.name == "llvm.mlir.global" and name is not None:
                        value = child.properties.get("value", child.attributes.get("value"))
                        if isinstance(value, StringAttr):
                            self.globals[name] = value.data
                    elif child.name in ("builtin.module", "gpu.module"):
                        self._collect(child)

    def call(self, name: str, arguments: Sequence[Value]) -> tuple[Value, ...]:
        """Return the results of a function.  Raises Undefined, Unsupported or OutOfSteps."""
        self.steps = self.max_steps
        self.depth = 0
        return self._call(name, arguments)

    def _call(self, name: str, arguments: Sequence[Value]) -> tuple[Value, ...]:
        function = self.functions.get(name)
        if name == "printf":
            self.output.append(formatted(self._string(arguments[0]), arguments[1:]))
            return (0,)
        if function is None or not function.regions or not function.regions[0].blocks:
            raise Unsupported(f"a call of '{name}', which has no body")
        if self.depth == MAX_DEPTH:
            raise OutOfSteps(f"more than {MAX_DEPTH} nested calls")
        self.depth += 1
        try:
            return self._region(function.regions[0], arguments, {})
        finally:
            self.depth -= 1

    def _string(self, address: Value) -> str:
        if not isinstance(address, str):
            raise Unsupported("a format that is not a global")
        return self.globals[address].rstrip("\0")

    def _region(self, region: Region, arguments: Sequence[Value], frame: _Frame) -> tuple[Value, ...]:
        """Run the blocks of a region from the first. Returns the operands of the terminator that leaves it."""
        block: Block | None = region.first_block
        assert block is not None
        while True:
            for a, v in zip(block.args, arguments, strict=True):
                frame[a] = v
            target: tuple[Block, Sequence[Value]] | None = None
            for op in block.ops:
                self.steps -= 1
                if self.steps < 0:
                    raise OutOfSteps(f"more than {self.max_steps} ops were executed")
                operands = [frame[o] for o in op.operands]
                if op.name in _LEAVING:
                    return tuple(operands)
                if op.successors:
                    target = _branch(op, operands)
                    break
                results = self._op(op, operands, frame)
                for r, v in zip(op.results, results, strict=True):
                    frame[r] = v
            if target is None:
                return ()
            block, arguments = target

    def _op(self, op: Operation, operands: Sequence[Value], frame: _Frame) -> Sequence[Value]:
        dialect, _, name = op.name.partition(".")
        if dialect == "arith" or dialect == "math":
            return [evaluate_arith(op, name, operands)]
        if isinstance(op, CuteOp):
            if op.name == "cute.print":
                self.output.append(printed(op.operands[0].type, operands[0]))
                return []
            return evaluate_cute(op, operands)
        if dialect == "scf":
            return self._scf(op, name, operands, frame)
        if op.name in ("func.call", "llvm.call"):
            return self._call(_callee(op), operands)
        if op.name == "gpu.printf":
            form = op.properties.get("format", op.attributes.get("format"))
            assert isinstance(form, StringAttr)
            self.output.append(formatted(form.data, operands))
            return []
        if op.name == "cf.assert":
            if not decided(operands[0]):
                raise Undefined("an assertion does not hold")
            return []
        if op.name == "gpu.launch_func":  # The effect of a launch is unknown, but the launch must stay the same.
            numbers = ", ".join(str(x) for operand in operands for x in flatten(operand))
            self.output.append(f"launch {op.properties['kernel']} of {numbers}\n")
            return []
        handler = _OTHER.get(op.name)
        if handler is None:
            raise Unsupported(f"the op {op.name}")
        return [handler(op, operands)]

    def _scf(self, op: Operation, name: str, operands: Sequence[Value], frame: _Frame) -> Sequence[Value]:
        if name == "if":
            taken = op.regions[0] if decided(operands[0]) else op.regions[1]
            return self._region(taken, (), frame) if taken.blocks else ()
        if name == "for":
            at, end, by = operands[:3]
            if not (isinstance(at, int) and isinstance(end, int) and isinstance(by, int)):
                raise Undefined("the bounds of a loop are poison")
            if by <= 0:
                raise Undefined(f"a loop step of {by}")
            carried = tuple(operands[3:])
            while at < end:
                carried = self._region(op.regions[0], (at, *carried), frame)
                at += by
            return carried
        if name == "while":
            carried = tuple(operands)
            while True:
                condition, *rest = self._region(op.regions[0], carried, frame)
                if not decided(condition):
                    return rest
                carried = self._region(op.regions[1], rest, frame)
        if name == "execute_region":
            return self._region(op.regions[0], (), frame)
        raise Unsupported(f"the op {op.name}")


_LEAVING = frozenset(("func.return", "llvm.return", "scf.yield", "scf.condition", "gpu.return"))


def _symbol(op: Operation) -> str | None:
    name = op.properties.get("sym_name", op.attributes.get("sym_name"))
    return name.data if isinstance(name, StringAttr) else None


def _callee(op: Operation) -> str:
    callee = op.properties.get("callee")
    if callee is None:
        raise Unsupported("an indirect call")
    return callee.root_reference.data  # pyright: ignore


def _branch(op: Operation, operands: Sequence[Value]) -> tuple[Block, Sequence[Value]]:
    if op.name in ("cf.br", "llvm.br"):
        return op.successors[0], operands
    if op.name in ("cf.cond_br", "llvm.cond_br"):
        then, otherwise = op.successors
        n = len(then.args)
        return (then, operands[1 : 1 + n]) if decided(operands[0]) else (otherwise, operands[1 + n :])
    raise Unsupported(f"the op {op.name}")


# ----------------------------------------------------------------------------------------------------- lowered values


def poison_of(t: Attribute) -> Value:
    """Return an uninitialized value of a lowered type."""
    if isinstance(t, LLVMStructType):
        return tuple(poison_of(x) for x in t.types)
    return POISON


def _position(op: Operation) -> Sequence[int]:
    return op.properties["position"].get_values()  # pyright: ignore


def _extract(op: Operation, operands: Sequence[Value]) -> Value:
    value = operands[0]
    for i in _position(op):
        assert isinstance(value, tuple)
        value = value[i]
    return value


def _insert(op: Operation, operands: Sequence[Value]) -> Value:
    def put(container: Value, path: Sequence[int]) -> Value:
        if not path:
            return operands[1]
        assert isinstance(container, tuple)
        i = path[0]
        return (*container[:i], put(container[i], path[1:]), *container[i + 1 :])

    return put(operands[0], list(_position(op)))


def _element_address(op: Operation, operands: Sequence[Value]) -> Value:
    base, *dynamic = operands
    if isinstance(base, str):  # the first character of a format
        return base
    raw = [int(i) for i in op.properties["rawConstantIndices"].get_values()]  # pyright: ignore
    if len(raw) != 1:
        raise Unsupported("an address inside an aggregate")
    index: Value = dynamic[0] if dynamic else raw[0]
    if not isinstance(base, int) or not isinstance(index, int):
        return POISON
    return base + index * element_bits(op.properties["elem_type"]) // 8


def _cast(op: Operation, operands: Sequence[Value]) -> Value:
    if len(operands) != 1:
        raise Unsupported("a cast of several values")
    return tuple(flatten(operands[0])) if isinstance(op.results[0].type, CuteType | TensorType) else operands[0]


_OTHER: Mapping[str, Callable[[Operation, Sequence[Value]], Value]] = {
    "ub.poison": lambda op, operands: poison_of(op.results[0].type),
    "llvm.mlir.undef": lambda op, operands: poison_of(op.results[0].type),
    "llvm.mlir.poison": lambda op, operands: poison_of(op.results[0].type),
    "llvm.mlir.constant": lambda op, operands: op.properties["value"].value.data,  # pyright: ignore
    "llvm.mlir.addressof": lambda op, operands: op.properties["global_name"].root_reference.data,  # pyright: ignore
    "llvm.getelementptr": _element_address,
    "llvm.ptrtoint": lambda op, operands: operands[0],
    "llvm.inttoptr": lambda op, operands: operands[0],
    "llvm.extractvalue": _extract,
    "llvm.insertvalue": _insert,
    "builtin.unrealized_conversion_cast": _cast,
}


def arranged(t: Attribute, numbers: Sequence[Number]) -> Value:
    """Return numbers as one value of a type, cute or lowered: a struct is filled leaf by leaf.  Raises Unsupported."""
    left = iter(numbers)

    def fill(t: Attribute) -> Value:
        if isinstance(t, LLVMStructType):
            return tuple(fill(x) for x in t.types)
        return next(left)

    value: Value = tuple(left) if isinstance(t, CuteType | TensorType) else fill(t)
    if next(left, None) is not None:
        raise Unsupported(f"{len(numbers)} numbers for a value of type {t}")
    return value
