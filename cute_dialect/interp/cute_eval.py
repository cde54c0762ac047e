"""Runs host functions of any stage on the CPU, one scalar at a time: cute ops themselves, and what passes make of them.

This is the yardstick of translation validation (:mod:`cute_dialect.interp.validate`): a function that still holds cute
ops and its lowered form are run on the same numbers.  A value of a cute type is the tuple of the integers in its
dynamic leaves, in storage order; a lowered struct is a nested tuple, so that :func:`flatten` makes both the same.  A
cute op is evaluated by its own inference over leaves that carry numbers: no instruction is emitted, no op rebuilt.

Integers are signed and wrap at their width, an ``i1`` is 0 or 1.  Signed overflow of an ``nsw`` op and the result of
``ub.poison`` is :data:`POISON`, which spreads; :class:`Undefined` is raised where behaviour is undefined (a division by
zero, a branch on poison, a broken ``cute.assume``).

>>> # %s = cute.make_shape(%n) : (i32) -> !cute.shape<"(?,6)">
>>> # Evaluator(module).call("f", [7])  ->  ((7,),)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from xdsl.dialects.builtin import IndexType, IntegerType, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from cute_dialect.algebra import text
from cute_dialect.algebra.leaf import Dyn, Emitter, Leaf, width_of
from cute_dialect.algebra.values import ComposedLayout
from cute_dialect.ops.access import GetScalarsOp, scalar_payloads
from cute_dialect.ops.arith import ComparisonOp
from cute_dialect.ops.base import CuteOp
from cute_dialect.ops.kinds import Typed, bind, dynamic_leaves, track
from cute_dialect.types import CuteType, IntTupleType, Payload
from cute_dialect.upstream.llvm_types import LLVMStructType

if TYPE_CHECKING:
    from collections.abc import Iterator


class Undefined(Exception):
    """The program did something whose behaviour is undefined; the message says what."""


class Unsupported(Exception):
    """The evaluator does not know an op or a type."""


class OutOfSteps(Exception):
    """The program ran for too long."""


class _Poison:
    __slots__ = ()

    def __repr__(self) -> str:
        return "poison"


POISON = _Poison()
"""What an operation gives whose result is not defined, but harmless until somebody depends on it."""

Number: TypeAlias = int | _Poison
Value: TypeAlias = "Number | str | tuple[Value, ...]"
"""A run-time value; ``str`` is the address of a global."""


def flatten(value: Value) -> Iterator[Number | str]:
    """The numbers in a value, in storage order."""
    if isinstance(value, tuple):
        for v in value:
            yield from flatten(v)
    else:
        yield value


def wrap(x: int, width: int) -> int:
    """``x`` as a signed integer of ``width`` bits; an ``i1`` is 0 or 1."""
    x &= (1 << width) - 1
    return x - (1 << width) if width > 1 and x >> (width - 1) else x


def width_of_type(t: Attribute) -> int:
    """Bits of an integer or index type.  Raises Unsupported."""
    if isinstance(t, IntegerType):
        return t.width.data
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
"""``arith`` op -> its result before wrapping, from two signed operands and the width."""

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
"""By the number of the ``arith.cmpi`` predicate."""


def step(name: str, a: Number, b: Number, width: int, *, nsw: bool = False) -> Number:
    """One binary instruction.  Raises Undefined for a division by zero or by poison."""
    if isinstance(b, _Poison) and ("div" in name or "rem" in name):
        raise Undefined("division by poison")
    if isinstance(a, _Poison) or isinstance(b, _Poison):
        return POISON
    exact = STEPS[name](a, b, width)
    if isinstance(exact, _Poison):
        return POISON
    wrapped = wrap(exact, width)
    return POISON if nsw and wrapped != exact else wrapped


_BY_ALGEBRA: Mapping[str, tuple[str, bool]] = {
    "add": ("addi", True), "sub": ("subi", True), "mul": ("muli", True), "div": ("divsi", False),
    "mod": ("remsi", False), "ceil_div": ("ceildivsi", False), "min": ("minsi", False), "max": ("maxsi", False),
    "and": ("andi", False), "or": ("ori", False), "xor": ("xori", False), "shr": ("shrui", False),
    "shl": ("shli", False),
}  # fmt: skip
_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge")


class ConcreteEmitter(Emitter):
    """Computes where another emitter emits: leaves carry numbers."""

    def binary(self, op: str, a: Leaf, b: Leaf, width: int) -> Number:
        name, nsw = _BY_ALGEBRA[op]
        return step(name, _number(a), _number(b), width, nsw=nsw)

    def unary(self, op: str, a: Leaf, width: int) -> Number:
        assert op == "abs", op
        x = _number(a)
        return x if isinstance(x, _Poison) else wrap(abs(x), width)

    def compare(self, predicate: str, a: Leaf, b: Leaf, width: int) -> Number:
        x, y = _number(a), _number(b)
        if isinstance(x, _Poison) or isinstance(y, _Poison):
            return POISON
        return int(TESTS[_PREDICATES.index(predicate)](x, y, width))

    def select(self, condition: object, a: Leaf, b: Leaf, width: int) -> Number:
        if isinstance(condition, _Poison):
            raise Undefined("a choice depends on poison")
        return _number(a if condition else b)


def _number(leaf: Leaf) -> Number:
    if isinstance(leaf, int):
        return leaf
    assert isinstance(leaf.value, int | _Poison)
    return leaf.value


_EMITTER = ConcreteEmitter()


def bound(t: CuteType, numbers: Value) -> Payload:
    """The payload of a type with its dynamic leaves carrying the numbers of a value."""
    assert isinstance(numbers, tuple)
    leaves = dynamic_leaves(t.data)
    return bind(t.data, [Dyn(d.width, d.div, x, _EMITTER) for d, x in zip(leaves, numbers, strict=True)])


def numbers_of(payload: Payload, declared: Payload) -> tuple[Number, ...]:
    """The value of a payload computed over numbers, as one of a declared type."""
    found = tuple(_number(d) for d in dynamic_leaves(payload))
    if len(found) != len(dynamic_leaves(declared)):
        raise Unsupported(f"a value {text.to_text(payload)} for the type {text.to_text(declared)}")
    return found


# ---------------------------------------------------------------------------------------------------------- evaluator


_Frame: TypeAlias = dict[SSAValue, Value]
"""The values of one call."""


class Evaluator:
    """Calls functions of a module by name.

    ``output`` collects what ``cute.print``, ``gpu.printf`` and ``printf`` write.  ``max_steps`` bounds the ops that one
    call executes.
    """

    def __init__(self, module: Operation, max_steps: int = 100_000):
        self.output: list[str] = []
        self.steps = self.max_steps = max_steps
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
        """The results of a function.  Raises Undefined, Unsupported or OutOfSteps."""
        self.steps = self.max_steps
        return self._call(name, arguments)

    def _call(self, name: str, arguments: Sequence[Value]) -> tuple[Value, ...]:
        function = self.functions.get(name)
        if name == "printf":
            self.output.append(_format(self._string(arguments[0]), arguments[1:]))
            return (0,)
        if function is None or not function.regions or not function.regions[0].blocks:
            raise Unsupported(f"a call of '{name}', which has no body")
        return self._region(function.regions[0], arguments, {})

    def _string(self, address: Value) -> str:
        if not isinstance(address, str):
            raise Unsupported("a format that is not a global")
        return self.globals[address].rstrip("\0")

    def _region(self, region: Region, arguments: Sequence[Value], frame: _Frame) -> tuple[Value, ...]:
        """Run the blocks of a region from the first; gives the operands of the terminator that leaves it."""
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
            return [_arith(op, name, operands)]
        if isinstance(op, CuteOp):
            if op.name == "cute.print":
                self.output.append(printed(op.operands[0].type, operands[0]))
                return []
            return _cute(op, operands)
        if dialect == "scf":
            return self._scf(op, name, operands, frame)
        if op.name in ("func.call", "llvm.call"):
            return self._call(_callee(op), operands)
        if op.name == "gpu.printf":
            form = op.properties.get("format", op.attributes.get("format"))
            assert isinstance(form, StringAttr)
            self.output.append(_format(form.data, operands))
            return []
        handler = _OTHER.get(op.name)
        if handler is None:
            raise Unsupported(f"the op {op.name}")
        return [handler(op, operands)]

    def _scf(self, op: Operation, name: str, operands: Sequence[Value], frame: _Frame) -> Sequence[Value]:
        if name == "if":
            taken = op.regions[0] if _decided(operands[0]) else op.regions[1]
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
                if not _decided(condition):
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


def _decided(condition: Value) -> bool:
    if isinstance(condition, _Poison):
        raise Undefined("a branch depends on poison")
    return bool(condition)


def _branch(op: Operation, operands: Sequence[Value]) -> tuple[Block, Sequence[Value]]:
    if op.name in ("cf.br", "llvm.br"):
        return op.successors[0], operands
    if op.name in ("cf.cond_br", "llvm.cond_br"):
        then, otherwise = op.successors
        n = len(then.args)
        return (then, operands[1 : 1 + n]) if _decided(operands[0]) else (otherwise, operands[1 + n :])
    raise Unsupported(f"the op {op.name}")


def _arith(op: Operation, name: str, operands: Sequence[Value]) -> Value:
    t = op.results[0].type
    if name == "constant":
        value = op.properties["value"]
        return wrap(value.value.data, width_of_type(t))  # pyright: ignore
    if name == "select":
        return operands[1] if _decided(operands[0]) else operands[2]
    width = width_of_type(op.operands[0].type)
    if any(isinstance(x, _Poison) for x in operands) and name not in ("divsi", "remsi", "ceildivsi", "floordivsi"):
        return POISON
    numbers = [x for x in operands if isinstance(x, int | _Poison)]
    if name == "cmpi":
        a, b = numbers
        assert isinstance(a, int) and isinstance(b, int)
        number = op.properties["predicate"].value.data  # pyright: ignore
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
    from cute_dialect.memory_types import ConstrainedIntType

    (value,) = operands
    t = op.results[0].type
    if isinstance(t, ConstrainedIntType):
        divisors = [t.divisor]
    elif isinstance(t, CuteType):
        divisors = [d.div or 1 for d in dynamic_leaves(t.data)]
    else:
        raise Unsupported(f"cute.assume of {t}")
    for x, n in zip(flatten(value), divisors, strict=True):
        if isinstance(x, _Poison):
            continue
        if not isinstance(x, int) or x % n:
            raise Undefined(f"cute.assume: {x} is not a multiple of {n}")
    return [value]


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
}


def _cute(op: CuteOp, operands: Sequence[Value]) -> Sequence[Value]:
    handler = _CUTE.get(op.name)
    if handler is not None:
        return handler(op, operands)
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
        raise Unsupported(f"{op.name} with results that are no values")
    results = op.infer(typed, op.properties)
    return [numbers_of(r.payload, t.data) for r, t in zip(results, op.result_types)]  # pyright: ignore


_DYNAMIC = re.compile(r"\?(\{[^}]*\})?")


def printed(t: Attribute, value: Value) -> str:
    """The line that ``cute.print`` writes: the type's text with every ``?`` replaced.  Raises Undefined for poison."""
    if not isinstance(t, CuteType):
        raise Unsupported(f"cute.print of {t}")
    numbers = list(flatten(value))
    payload = t.data
    if isinstance(payload, ComposedLayout):  # printed inner, offset, outer; stored outer, offset, inner
        a, b = len(dynamic_leaves(payload.outer)), len(dynamic_leaves(payload.offset))
        numbers = numbers[a + b :] + numbers[a : a + b] + numbers[:a]
    return _substitute(text.to_text(payload), _DYNAMIC, numbers) + "\n"


def _substitute(form: str, pattern: re.Pattern[str], numbers: Sequence[Value]) -> str:
    left = iter(numbers)

    def number(match: re.Match[str]) -> str:
        x = next(left)
        if not isinstance(x, int):
            raise Undefined("poison is printed")
        return str(x)

    return pattern.sub(number, form)


def _format(form: str, numbers: Sequence[Value]) -> str:
    return _substitute(form.replace("%%", "\0"), re.compile(r"%(?:lld|ld|d|i)"), numbers).replace("\0", "%")


# ----------------------------------------------------------------------------------------------------- lowered values


def poison_of(t: Attribute) -> Value:
    """A value of a lowered type with nothing in it yet."""
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


def _cast(op: Operation, operands: Sequence[Value]) -> Value:
    if len(operands) != 1:
        raise Unsupported("a cast of several values")
    return tuple(flatten(operands[0])) if isinstance(op.results[0].type, CuteType) else operands[0]


_OTHER: Mapping[str, Callable[[Operation, Sequence[Value]], Value]] = {
    "ub.poison": lambda op, operands: poison_of(op.results[0].type),
    "llvm.mlir.undef": lambda op, operands: poison_of(op.results[0].type),
    "llvm.mlir.poison": lambda op, operands: poison_of(op.results[0].type),
    "llvm.mlir.constant": lambda op, operands: op.properties["value"].value.data,  # pyright: ignore
    "llvm.mlir.addressof": lambda op, operands: op.properties["global_name"].root_reference.data,  # pyright: ignore
    "llvm.getelementptr": lambda op, operands: operands[0],
    "llvm.extractvalue": _extract,
    "llvm.insertvalue": _insert,
    "builtin.unrealized_conversion_cast": _cast,
}


def arranged(t: Attribute, numbers: Sequence[Number]) -> Value:
    """Numbers as one value of a type, cute or lowered: a struct is filled leaf by leaf.  Raises Unsupported."""
    left = iter(numbers)

    def fill(t: Attribute) -> Value:
        if isinstance(t, LLVMStructType):
            return tuple(fill(x) for x in t.types)
        return next(left)

    value: Value = tuple(left) if isinstance(t, CuteType) else fill(t)
    if next(left, None) is not None:
        raise Unsupported(f"{len(numbers)} numbers for a value of type {t}")
    return value
