"""Scalar evaluation of functions at any stage: cute ops as well as the ops that passes lower them to.

This is the reference for translation validation (:mod:`.validate`): a function with cute ops and its lowered form run
on the same numbers.  A value of a cute type is the tuple of the integers in its dynamic leaves, in
storage order.  A lowered struct is a nested tuple, which :func:`flatten` reduces to the same form.  A cute op is
evaluated by its own inference over leaves that carry numbers; no IR is built.

Integers are signed and wrap at their width; an ``i1`` is 0 or 1.  Signed overflow of an ``nsw`` op and ``ub.poison``
give :data:`POISON`, which propagates.  :class:`Undefined` is raised for undefined behavior (a division by zero, a
branch on poison, a broken ``cute.assume``).

>>> # %s = cute.make_shape(%n) : (i32) -> !cute.shape<"(?,6)">
>>> # Evaluator(module).call("f", [7])  ->  ((7,),)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from cute_dialect.dialect.base import CuteOp
from cute_dialect.dialect.memory_types import TensorType, element_bits
from cute_dialect.dialect.types import CuteType
from cute_dialect.interp.validation.cute_values import (
    POISON,
    Number,
    OutOfSteps,
    Undefined,
    Unsupported,
    Value,
    decided,
    evaluate_arith,
    evaluate_cute,
    flatten,
    formatted,
    printed,
)
from cute_dialect.upstream.llvm_types import LLVMStructType

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
