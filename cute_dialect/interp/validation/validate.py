"""Translation validation: checks that a pass preserves the behavior of a module.

:func:`validate` runs every function of the module before and after the pass on the same random numbers, and compares
results and output.  The check does not rely on the pass: remaining cute ops are evaluated by their own definition, base
ops one by one (:mod:`.evaluator`).  Inputs for which the original is undefined prove nothing and are redrawn.

>>> # before:  %r = cute.size(%s) : (!cute.shape<"(?,6)">) -> !cute.int_tuple<"?">      @f(7) -> 42
>>> # after:   %r = arith.addi %n, %c6 : i32                                           @f(7) -> 13
>>> # validate(before, after) -> function @f differs: result #0 is 13, expected 42, for %s = (7,6)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from xdsl.dialects.builtin import FunctionType, IndexType, IntegerType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation

from cute_dialect.algebra.leaf import AlgebraError, Dyn
from cute_dialect.algebra.values import Basis, ComposedLayout, Layout
from cute_dialect.dialect.memory_types import ConstrainedIntType, CoordTensorType, MemRefType, PtrType
from cute_dialect.dialect.types import CuteType, Payload
from cute_dialect.interp.validation.evaluator import (
    POISON,
    Evaluator,
    Number,
    OutOfSteps,
    Undefined,
    Unsupported,
    Value,
    arranged,
    flatten,
    printed,
)

RETRIES = 20
"""Number of times a sample is redrawn because the original is undefined on it or runs too long."""
STEPS = 20_000
"""Maximum number of ops that an original function may execute."""


LOWERED_STEPS = 5_000_000
"""Maximum number of ops that a lowered function may execute. One original op becomes many."""


@dataclass(frozen=True)
class ValidationFailure:
    """A function whose behavior has changed."""

    function: str
    arguments: tuple[str, ...]
    """The arguments in the format of ``cute.print``."""
    message: str
    """The difference: a result, a line of output, or the end of the run."""
    op: Operation | None = None
    """The original op that gives the wrong result; with ``rerun``, the first such op."""
    gives: str = ""
    """The wrong result of that op, such as ``4, expected 3``. Only known with ``rerun``."""

    def __str__(self) -> str:
        arguments = ", ".join(self.arguments) or "nothing"
        where = f" (computed by '{self.op.name}')" if self.op is not None else ""
        return f"function @{self.function} differs for {arguments}: {self.message}{where}"


@dataclass
class ValidationReport:
    """The functions that were checked, and those that were skipped with the reason."""

    checked: list[str] = field(default_factory=list[str])
    skipped: dict[str, str] = field(default_factory=dict[str, str])
    """Maps a skipped function to the reason."""
    samples: int = 0
    failure: ValidationFailure | None = None


def validate(
    before: ModuleOp, after: ModuleOp, samples: int = 20, seed: int = 0, rerun: Callable[[ModuleOp], None] | None = None
) -> ValidationFailure | None:
    """Return the first difference between two stages of a module, None if there is none.

    Args:
        samples: Number of argument sets per function.
        rerun: Applies the pass to a module in place. If given, the first op with different results is searched for.
    """
    return validation_report(before, after, samples, seed, rerun).failure


def validation_report(
    before: ModuleOp, after: ModuleOp, samples: int = 20, seed: int = 0, rerun: Callable[[ModuleOp], None] | None = None
) -> ValidationReport:
    """Validate like :func:`validate`, and report which functions were checked and which were skipped."""
    report = ValidationReport()
    old, new = Evaluator(before, STEPS), Evaluator(after, LOWERED_STEPS)
    for name, function in old.functions.items():
        if not isinstance(function, FuncOp) or not function.body.blocks:
            continue
        random = Random(f"{seed} {name}")
        try:
            for _ in range(samples):
                found = _sample(name, function, old, new, random)
                report.samples += 1
                if found is not None:
                    report.failure = _located(found, name, function, before, rerun)
                    return report
        except Unsupported as e:
            report.skipped[name] = str(e)
        else:
            report.checked.append(name)
    return report


@dataclass(frozen=True)
class _Difference:
    arguments: tuple[tuple[Number, ...], ...]
    message: str
    result: int | None = None
    gives: str = ""


def _sample(name: str, function: FuncOp, old: Evaluator, new: Evaluator, random: Random) -> _Difference | None:
    """Compare both stages on one set of arguments for which the original is defined.

    Raises Unsupported if none is found.
    """
    for _ in range(RETRIES):
        arguments = _arguments(function.function_type.inputs, random)
        expected = _outcome(name, old, function.function_type.inputs.data, arguments)
        if isinstance(expected, tuple):
            return _compare(name, function, new, arguments, expected)
    raise Unsupported("it is undefined, or runs for too long, on every sample")


def _arguments(types: Iterable[Attribute], random: Random) -> tuple[tuple[Number, ...], ...]:
    """Draw numbers for every argument.

    Equal types sometimes get equal numbers, since functions require equal shapes.
    """
    if random.random() < 0.7:
        return tuple(tuple(draw(t, random)) for t in types)
    drawn: dict[Attribute, tuple[Number, ...]] = {}
    return tuple(drawn.setdefault(t, tuple(draw(t, random))) for t in types)


_Outcome = tuple[list[list[Number | str]], list[str]]


def _outcome(
    name: str, evaluator: Evaluator, types: Sequence[Attribute], arguments: Sequence[Sequence[Number]]
) -> _Outcome | str:
    """Return the numbers in each result and the printed lines, or the reason why the run is undefined."""
    evaluator.output.clear()
    try:
        values: list[Value] = [arranged(t, a) for t, a in zip(types, arguments, strict=True)]
        results = evaluator.call(name, values)
    except (Undefined, OutOfSteps, AlgebraError) as e:
        return str(e)
    return [list(flatten(r)) for r in results], list(evaluator.output)


def _compare(
    name: str, function: FuncOp, new: Evaluator, arguments: tuple[tuple[Number, ...], ...], expected: _Outcome
) -> _Difference | None:
    lowered = new.functions.get(name)
    if lowered is None:
        return _Difference(arguments, "the function is missing")
    types = [a.type for a in lowered.regions[0].blocks[0].args] if lowered.regions[0].blocks else []
    if len(types) != len(arguments):
        return _Difference(arguments, f"it takes {len(types)} arguments, expected {len(arguments)}")
    got = _outcome(name, new, types, arguments)
    if isinstance(got, str):
        return _Difference(arguments, f"it no longer has a result: {got}")
    for i, (a, b) in enumerate(zip(expected[0], got[0], strict=True)):
        if len(a) != len(b) or any(x is not POISON and x != y for x, y in zip(a, b)):
            gives = f"{_text(b)}, expected {_text(a)}"
            return _Difference(arguments, f"result #{i} is {gives}", i, gives)
    if expected[1] != got[1]:
        shorter = min(len(expected[1]), len(got[1]))
        line = next((i for i, (a, b) in enumerate(zip(expected[1], got[1])) if a != b), shorter)
        want, have = ((o[1][line].rstrip("\n") if line < len(o[1]) else "nothing") for o in (expected, got))
        return _Difference(arguments, f"line {line + 1} of its output is '{have}', expected '{want}'")
    return None


def _text(numbers: Sequence[Number | str]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"({', '.join(map(str, numbers))})"


# --------------------------------------------------------------------------------------------------------- the first op


def _located(
    found: _Difference, name: str, function: FuncOp, before: ModuleOp, rerun: Callable[[ModuleOp], None] | None
) -> ValidationFailure:
    inputs = function.function_type.inputs.data
    arguments = tuple(
        printed(t, a).rstrip("\n") if isinstance(t, CuteType) else _text(a) for t, a in zip(inputs, found.arguments)
    )
    op: Operation | None = None
    if found.result is not None:
        end = function.body.blocks.last
        assert end is not None and end.last_op is not None
        owner = end.last_op.operands[found.result].owner
        op = owner if isinstance(owner, Operation) else None
    gives = ""
    if rerun is not None and len(function.body.blocks) == 1:
        op, gives = _first_wrong(name, function, before, found, rerun) or (op, gives)
    return ValidationFailure(name, arguments, found.message, op, gives)


def _first_wrong(
    name: str, function: FuncOp, before: ModuleOp, found: _Difference, rerun: Callable[[ModuleOp], None]
) -> tuple[Operation, str] | None:
    """Find, by bisection, the first op of the function's block with a wrong result, and that result."""
    ops = list(function.body.block.ops)[:-1]

    def wrong(count: int) -> _Difference | None:
        probe = before.clone()
        _cut(Evaluator(probe).functions[name], count)
        after = probe.clone()
        rerun(after)
        old = Evaluator(probe)
        expected = _outcome(name, old, function.function_type.inputs.data, found.arguments)
        if not isinstance(expected, tuple):
            return None
        probed = old.functions[name]
        assert isinstance(probed, FuncOp)
        return _compare(name, probed, Evaluator(after, LOWERED_STEPS), found.arguments, expected)

    difference = wrong(len(ops))
    if difference is None:
        return None
    low, high = 0, len(ops)  # wrong(high) is true; wrong(low) is not known to be.
    while low + 1 < high:
        middle = (low + high) // 2
        here = wrong(middle)
        if here is not None:
            high, difference = middle, here
        else:
            low = middle
    return ops[high - 1], difference.gives


def _cut(function: Operation, count: int) -> None:
    """Make a function return all values of its first ``count`` ops."""
    assert isinstance(function, FuncOp)
    block = function.body.block
    for op in reversed(list(block.ops)[count:]):
        block.erase_op(op, safe_erase=False)
    values = [r for op in block.ops for r in op.results]
    block.add_op(ReturnOp(*values))
    function.properties["function_type"] = FunctionType.from_lists(
        list(function.function_type.inputs), [v.type for v in values]
    )


# ------------------------------------------------------------------------------------------------------------- samples


def draw(t: Attribute, random: Random) -> Iterator[int]:
    """Draw random numbers for the dynamic leaves of an argument, in storage order.  Raises Unsupported for other types.

    Extents are positive and mostly small.  Strides and coordinates have any sign and are multiples of the declared
    divisor. Addresses are aligned.
    """
    if isinstance(t, CuteType):
        yield from _leaves(t.data, t.kind, random)
    elif isinstance(t, ConstrainedIntType):
        yield t.divisor * random.randint(0, 16)
    elif isinstance(t, PtrType):
        yield t.data.alignment * random.randint(0, 4096)
    elif isinstance(t, MemRefType):
        yield t.data.ptr.alignment * random.randint(0, 4096)
        yield from _leaves(t.layout, "layout", random)
    elif isinstance(t, CoordTensorType):
        yield from _leaves(t.data.iter, "coord", random)  # pyright: ignore[reportArgumentType]
        yield from _leaves(t.layout, "layout", random)
    elif isinstance(t, IntegerType) and t.bitwidth == 1:
        yield random.randint(0, 1)
    elif isinstance(t, IntegerType | IndexType):
        yield _number("int_tuple", Dyn(), random)
    else:
        raise Unsupported(f"an argument of type {t}")


def _leaves(payload: Payload, kind: str, random: Random) -> Iterator[int]:
    if isinstance(payload, Dyn):
        yield _number(kind, payload, random)
    elif isinstance(payload, tuple):
        for part in payload:
            yield from _leaves(part, kind, random)
    elif isinstance(payload, Basis):
        yield from _leaves(payload.value, "stride", random)
    elif isinstance(payload, Layout):
        yield from _leaves(payload.shape, "shape", random)
        yield from _leaves(payload.stride, "stride", random)
    elif isinstance(payload, ComposedLayout):
        yield from _leaves(payload.outer, "layout", random)
        yield from _leaves(payload.offset, "int_tuple", random)
        yield from _leaves(payload.inner, "layout", random)


def _number(kind: str, leaf: Dyn, random: Random) -> int:
    scale = leaf.div or 1
    if kind == "shape":
        n = random.choice((1, 2, 3, 4, 6, 8, 12, 16, 32, random.randint(1, 100)))
    elif kind == "stride":
        n = random.choice((0, 1, 2, 4, 8, 16, 64, -1, -2, random.randint(-20, 200)))
    else:
        n = random.choice((0, 1, 2, 3, 5, 7, 8, 31, random.randint(-5, 100), random.randint(0, 1000)))
    half = 1 << (leaf.width - 1)
    return n * scale if -half <= n * scale < half else 0
