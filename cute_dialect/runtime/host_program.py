"""Host half of a launch as a small program that plain Python evaluates.

A host function computes grid, block, shared memory and kernel arguments from its own arguments.  It holds
``gpu.launch_func`` ops, also under ``scf.if``.  The compiler converts its lowered form (``arith``, ``scf.if``,
``llvm`` aggregates) to instructions and launch records in the JSON manifest.  A launch then needs neither xDSL nor
MLIR::

    {"name": "launch",
     "code": [["get", 3, [2], [1, 0, 1]], ["const", 4, [], [128, 32]], ["ceildivsi", 5, [3, 4], 32]],
     "launches": [{"kernel": "add", "variants": ["add_v"], "when": [], "fallback": false, "cooperative": false,
                   "pdl": false, "grid": [5, 6, 6], "block": [4, 6, 6], "cluster": null, "smem": null,
                   "args": [0, 1, 2]}]}

``when`` lists the conditions of the enclosing ``scf.if`` ops, outermost first, each as a register and its required
value.  ``[[7, 1], [9, 0]]`` is the else branch of ``%9`` inside the then branch of ``%7``.  A record with
``fallback`` launches only if the previous record, which has the same conditions, cannot launch.

An instruction is ``[name, result, operands, extra]``.  Registers are numbers, and the first ones are the function's
arguments.  Integers are exact: a result that does not fit its width is an error and never wraps.

Pointers are ``Pointer(argument, byte offset)``, so a launch can be repeated at other addresses without evaluating the
program again.  A call of ``cute_tensor_map_tiled_<rank>d`` returns a :class:`TensorMap`, a description that the
launcher encodes to 128 bytes.

Float arithmetic is rounded once to its type:

>>> evaluate_float("mulf", "f32", [0.1, 3.0]), evaluate_float("divf", "f16", [1.0, 0.0]), to_float(16777217, "f32")
(0.30000001192092896, inf, 16777216.0)
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, cast

from cute_dialect.arch.tensor_map_codes import ELEMENTS, INTERLEAVES, L2_PROMOTIONS, OOB_FILLS, SWIZZLES
from cute_dialect.runtime import abi

__all__ = [
    "BINARY",
    "CASTS",
    "FLOATS",
    "FLOAT_BINARY",
    "FLOAT_PREDICATES",
    "FLOAT_STEPS",
    "FROM_INTEGER",
    "PREDICATES",
    "Dim3",
    "HostError",
    "HostOverflow",
    "Launch",
    "LaunchShape",
    "Pointer",
    "Program",
    "TensorMap",
    "evaluate",
    "evaluate_float",
    "launch_records",
    "map_sizes",
    "rounded",
    "to_float",
]


Dim3: TypeAlias = tuple[int, int, int]
"""Extents along x, y and z."""


class LaunchShape(NamedTuple):
    """The shape and attributes of one launch.

    Args:
        grid: blocks along x, y and z.
        block: threads along x, y and z.
        smem: dynamic shared memory per block, in bytes.
        cluster: blocks per cluster along x, y and z; ``None`` uses the cluster of the kernel, by default one block.
        cooperative: all blocks are resident at once, so they may wait for each other.
        preferred_cluster: a larger size, of which ``cluster`` is a divisor. The GPU groups blocks into clusters of
            this size where they fit, and the other blocks into clusters of the smaller one. ``None`` for one size.
        pdl: programmatic dependent launch: may start before the previous launch on the stream ends, and waits for it
            with ``griddepcontrol.wait``.
    """

    grid: Dim3 = (1, 1, 1)
    block: Dim3 = (1, 1, 1)
    smem: int = 0
    cluster: Dim3 | None = None
    cooperative: bool = False
    pdl: bool = False
    preferred_cluster: Dim3 | None = None


# --------------------------------------------------------------------------------------------------------------- floats


FLOATS: Mapping[str, str] = {"f16": "<e", "f32": "<f", "f64": "<d"}
"""Float types of host programs, with their ``struct`` codes."""


def _divided(a: float, b: float) -> float:
    if b == 0.0:
        sign = math.copysign(1.0, a) * math.copysign(1.0, b)
        return math.nan if a == 0.0 or a != a else math.inf * sign
    return a / b


FLOAT_BINARY: Mapping[str, Callable[[float, float], float]] = {
    "addf": lambda a, b: a + b,
    "subf": lambda a, b: a - b,
    "mulf": lambda a, b: a * b,
    "divf": _divided,
}
"""Binary float instructions by their ``arith`` names.

For f16 and f32, a double has enough digits (2 p + 2) that rounding its result again equals rounding the exact result.
"""
FROM_INTEGER = ("sitofp", "uitofp")
"""Instructions that convert an integer to a float."""


def rounded(value: float, kind: str) -> float:
    """Round a float to its type."""
    try:
        return struct.unpack(FLOATS[kind], struct.pack(FLOATS[kind], value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def to_float(value: int, kind: str) -> float:
    """Convert an integer to a float, rounded once."""
    size = abs(value)
    lost = max(0, size.bit_length() - 52)
    kept = size >> lost
    if kept << lost != size:
        kept |= 1  # sticky bit: the discarded bits are not all zero, so the value is not a tie
    if kind == "f64":
        return float(value)
    return rounded(math.copysign(float(kept << lost), value), kind)


def evaluate_float(name: str, kind: str, operands: Sequence[float]) -> float:
    """Return the result of an instruction of :data:`FLOAT_BINARY`, or of ``negf``, ``extf`` or ``truncf``."""
    given = [float(x) for x in operands]
    if name == "negf":
        return -rounded(given[0], kind)
    if name in ("extf", "truncf"):
        return rounded(given[0], kind)
    return rounded(FLOAT_BINARY[name](*[rounded(x, kind) for x in given]), kind)


# ------------------------------------------------------------------------------------------------------------- programs


Instruction: TypeAlias = "list[object]"
Program: TypeAlias = "dict[str, object]"


class HostError(Exception):
    """The host function cannot be converted to a launch program, or its evaluation failed."""


class HostOverflow(HostError):
    """A number in the host function does not fit its type."""


class Pointer(NamedTuple):
    """The address of array argument number ``argument``, plus ``offset`` bytes."""

    argument: int
    offset: int


class TensorMap(NamedTuple):
    """Description of a tensor map: the arguments of ``cuTensorMapEncodeTiled``, innermost dimension first.

    Args:
        address: the array.
        extents: elements per dimension.
        strides: byte strides of dimensions 1 and up.
        box: elements of the box per dimension; for im2col, the channels alone.
        steps: element strides.
        element, interleave, swizzle, l2, oob: codes of the driver.
        pixels: pixels per column for ``cuTensorMapEncodeIm2col``; 0 for a tiled map.
        lower, upper: corners of the im2col box.
        wide: number of the mode in ``WIDE_MODES``, for ``cuTensorMapEncodeIm2colWide``; 0 for other maps.
    """

    address: Pointer
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    element: int
    interleave: int
    swizzle: int
    l2: int
    oob: int
    pixels: int = 0
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()
    wide: int = 0


Value: TypeAlias = "int | float | Pointer | TensorMap | tuple[Value, ...] | None"


class Launch(NamedTuple):
    """One launch of a call; ``number`` is its index among the launch records of the program."""

    kernel: str
    variants: tuple[str, ...]
    shape: LaunchShape
    args: tuple[Value, ...]
    number: int = 0
    fallback: bool = False
    """launch only if the previous launch cannot run"""


BINARY = (
    "addi",
    "subi",
    "muli",
    "divsi",
    "divui",
    "remsi",
    "remui",
    "ceildivsi",
    "ceildivui",
    "floordivsi",
    "maxsi",
    "minsi",
    "maxui",
    "minui",
    "andi",
    "ori",
    "xori",
    "shli",
    "shrsi",
    "shrui",
)
"""Binary integer instructions by their ``arith`` names."""
CASTS = ("extsi", "extui", "trunci", "index_cast", "index_castui")
"""Instructions that change the width of an integer."""
FLOAT_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"
)  # fmt: skip
"""Float comparisons, in the order of their ``arith`` codes."""
FLOAT_STEPS = (*FLOAT_BINARY, "negf", "extf", "truncf")
"""Float instructions with a float result."""
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


def signed(value: int, width: int) -> int:
    """Interpret the low ``width`` bits of ``value`` as a signed number; a 1-bit value is 0 or 1."""
    if width == 1:
        return value & 1
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


# --------------------------------------------------------------------------------------------------- evaluate


def _unsigned(value: int, width: int) -> int:
    return value & ((1 << width) - 1)


def _divsi(a: int, b: int) -> int:
    if b == 0:
        raise HostError("division by zero")
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def _need(b: int) -> int:
    if b == 0:
        raise HostError("division by zero")
    return b


def _shift(b: int) -> int:
    if not 0 <= b < 128:
        raise HostError(f"a shift by {b} bits")
    return b


_SIGNED: Mapping[str, Callable[[int, int], int]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "divsi": _divsi,
    "remsi": lambda a, b: a - b * _divsi(a, b),
    "ceildivsi": lambda a, b: -(-a // _need(b)),
    "floordivsi": lambda a, b: a // _need(b),
    "maxsi": max,
    "minsi": min,
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
    "shli": lambda a, b: a << _shift(b),
    "shrsi": lambda a, b: a >> _shift(b),
}
_UNSIGNED: Mapping[str, Callable[[int, int], int]] = {
    "divui": lambda a, b: a // _need(b),
    "remui": lambda a, b: a % _need(b),
    "ceildivui": lambda a, b: -(-a // _need(b)),
    "maxui": max,
    "minui": min,
    "shrui": lambda a, b: a >> _shift(b),
}
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
_SIGN = {
    "addi": "+",
    "subi": "-",
    "muli": "*",
    "shli": "<<",
    "divsi": "/",
}


MAP_CODES: Sequence[tuple[str, Sequence[int]]] = (
    ("element type", tuple(ELEMENTS)),
    ("interleave", range(len(INTERLEAVES))),
    ("swizzle", range(len(SWIZZLES))),
    ("L2 promotion", range(len(L2_PROMOTIONS))),
    ("out-of-bounds fill", range(len(OOB_FILLS))),
)
"""Allowed values of the driver codes at the end of a tensor map, in order."""


class _Evaluator:
    def __init__(self, name: str, values: dict[int, Value]):
        self.name = name
        self.values = values

    def run(self, code: Sequence[Instruction]) -> None:
        for name, result, operands, extra in code:
            given = [self.values[r] for r in cast("list[int]", operands)]
            if name == "if":
                then, then_yield, otherwise, else_yield = cast("list[list[object]]", extra)
                taken = (then, then_yield) if given[0] else (otherwise, else_yield)
                self.run(cast("list[Instruction]", taken[0]))
                for target, source in zip(cast("list[int]", result), cast("list[int]", taken[1])):
                    self.values[target] = self.values[source]
            elif name == "assert":
                if not given[0]:
                    raise HostError(f"host function @{self.name}: {extra}")
            else:
                self.values[cast(int, result)] = self.step(cast(str, name), given, extra)

    def step(self, name: str, given: list[Value], extra: object) -> Value:
        if name == "const":
            return cast("list[int]", extra)[0]
        if name == "same":
            return given[0]
        if name == "select":
            return given[1] if given[0] else given[2]
        if name in ("poison", "zero"):
            return _fill(abi.parse_type(cast(str, extra)), 0 if name == "zero" else None)
        if name == "get":
            value = given[0]
            for i in cast("list[int]", extra):
                assert isinstance(value, tuple)
                value = value[i]
            return value
        if name == "set":
            return _set(given[0], given[1], cast("list[int]", extra))
        if name == "gep":
            size, static = cast("list[int | None]", extra)
            pointer = given[0]
            if not isinstance(pointer, Pointer):
                raise HostError(
                    f"host function @{self.name}: cannot do pointer arithmetic on a value that is not a pointer"
                )
            step = static if static is not None else self.number(given[1])
            return Pointer(pointer.argument, pointer.offset + step * cast(int, size))
        if name == "tensor_map":
            return self.tensor_map(given, cast(int, extra))
        if name == "im2col_map":
            return self.im2col_map(given, cast(int, extra))
        if name == "cmpf":
            predicate, type_ = cast("tuple[str, str]", extra)
            # The caller may pass a double; the comparison must see the value rounded to the type.
            a, b = (rounded(cast(float, v), type_) for v in given)
            return int(_compare_floats(predicate, a, b))
        if name in FLOAT_STEPS:
            return evaluate_float(name, cast(str, extra), cast("list[float]", given))
        numbers = [self.number(v) for v in given]
        if name in FROM_INTEGER:
            width, type_ = cast("tuple[int, str]", extra)
            return to_float(numbers[0] if name == "sitofp" else _unsigned(numbers[0], width), type_)
        if name in _SIGNED:
            exact = _SIGNED[name](numbers[0], numbers[1])
            return self.fit(exact, cast(int, extra), name, numbers)
        if name in _UNSIGNED:
            width = cast(int, extra)
            a, b = (_unsigned(v, width) for v in numbers)
            return signed(_UNSIGNED[name](a, b), width)
        if name == "cmpi":
            predicate, width = cast("tuple[str, int]", extra)
            if predicate.startswith("u"):
                numbers = [_unsigned(v, width) for v in numbers]
            return int(_COMPARE[predicate[-2:]](numbers[0], numbers[1]))
        if name == "absi":
            return self.fit(abs(numbers[0]), cast(int, extra), name, numbers)
        source, target = cast("tuple[int, int]", extra)
        if name in ("extui", "index_castui"):
            return signed(_unsigned(numbers[0], source), target)
        if name == "extsi" and source == 1:
            return -numbers[0]
        return self.fit(numbers[0], target, name, numbers)

    def tensor_map(self, given: list[Value], rank: int) -> TensorMap:
        pointer, (extents, strides, box, steps), codes = self.map_parts(given, map_sizes("tensor_map", rank))
        element, interleave, swizzle, l2, oob = codes
        return TensorMap(pointer, extents, strides, box, steps, element, interleave, swizzle, l2, oob)

    def im2col_map(self, given: list[Value], rank: int) -> TensorMap:
        parts = self.map_parts(given, map_sizes("im2col_map", rank))
        pointer, (extents, strides, box, pixels, wide, lower, upper, steps), codes = parts
        element, interleave, swizzle, l2, oob = codes
        return TensorMap(
            pointer,
            extents,
            strides,
            box,
            steps,
            element,
            interleave,
            swizzle,
            l2,
            oob,
            pixels[0],
            lower,
            upper,
            wide[0],
        )

    def map_parts(self, given: list[Value], sizes: Sequence[int]) -> tuple[Pointer, list[tuple[int, ...]], list[int]]:
        pointer = given[0]
        if not isinstance(pointer, Pointer):
            raise HostError(f"host function @{self.name}: cannot encode a tensor map of a value that is not a pointer")
        numbers = [self.number(v) for v in given[1:]]
        parts: list[tuple[int, ...]] = []
        for n in sizes:
            parts.append(tuple(numbers[:n]))
            del numbers[:n]
        for (what, known), code in zip(MAP_CODES, numbers):
            if code not in known:
                codes = ", ".join(map(str, known))
                raise HostError(f"host function @{self.name}: expected a tensor map's {what} of {codes}, got {code}")
        return pointer, parts, numbers

    def holds(self, record: Mapping[str, object]) -> bool:
        """Return True if a launch's conditions hold.

        An inner ``scf.if`` is evaluated only if the outer branch was taken.
        """
        when = cast("list[list[int]]", record["when"])
        return all(bool(self.values[register]) == bool(side) for register, side in when)

    def launch(self, number: int, record: Mapping[str, object]) -> Launch:
        def three(key: str) -> tuple[int, int, int]:
            x, y, z = (self.number(self.values[r]) for r in cast("list[int]", record[key]))
            return x, y, z

        smem, preferred = record["smem"], cast("list[int] | None", record.get("preferred_cluster"))
        return Launch(
            kernel=cast(str, record["kernel"]),
            variants=tuple(cast("list[str]", record["variants"])),
            shape=LaunchShape(
                grid=three("grid"),
                block=three("block"),
                smem=self.number(self.values[cast(int, smem)]) if smem is not None else 0,
                cluster=three("cluster") if record["cluster"] is not None else None,
                cooperative=bool(record["cooperative"]),
                pdl=bool(record["pdl"]),
                preferred_cluster=cast("Dim3 | None", preferred and tuple(preferred)),
            ),
            args=tuple(self.values[r] for r in cast("list[int]", record["args"])),
            number=number,
            fallback=bool(record["fallback"]),
        )

    def number(self, value: Value) -> int:
        if not isinstance(value, int):
            raise HostError(f"host function @{self.name} computes with a value that is not an integer: {value!r}")
        return value

    def fit(self, exact: int, width: int, name: str, operands: Sequence[int]) -> int:
        if width == 1:
            return exact & 1
        if -(1 << (width - 1)) <= exact < (1 << (width - 1)):
            return exact
        shown = f" {_SIGN.get(name, name)} ".join(str(o) for o in operands)
        what = f"{shown} = {exact}" if len(operands) > 1 else f"{name} of {shown}"
        raise HostOverflow(
            f"host function @{self.name}: {what} does not fit i{width}; declare the leaves it comes from as ?{{i64}}"
        )


def _compare_floats(predicate: str, a: float, b: float) -> bool:
    """Compare as ``arith.cmpf`` does.

    >>> nan = float("nan")
    >>> [_compare_floats(p, 1.0, nan) for p in ("olt", "ult", "ord", "uno", "one", "une")]
    [False, True, False, True, False, True]
    """
    if predicate in ("false", "true"):
        return predicate == "true"
    if a != a or b != b:
        return predicate[0] == "u"  # "uno" starts with u and "ord" does not, as for the other predicates
    if predicate in ("ord", "uno"):
        return predicate == "ord"
    return _COMPARE[predicate[1:]](a, b)


def map_sizes(name: str, rank: int) -> tuple[int, ...]:
    """Return the number of operands in each part of a tensor map of this rank.

    The operands lie between the pointer and the five codes.  Tiled: extents, strides, box, steps.  Im2col: extents,
    strides, channels, pixels, mode, lower corner, upper corner, steps.
    """
    if name == "tensor_map":
        return rank, rank - 1, rank, rank
    return rank, rank - 1, 1, 1, 1, rank - 2, rank - 2, rank


def launch_records(program: Program) -> list[dict[str, object]]:
    """Return the launch records of a program, in order."""
    return cast("list[dict[str, object]]", program["launches"])


def evaluate(program: Program, arguments: Sequence[Value]) -> list[Launch]:
    """Run the program on lowered argument values (integers, :class:`Pointer`, nested tuples of them).

    Return the launches whose conditions hold, in order.

    Raises :class:`HostOverflow` for a number that does not fit its type, :class:`HostError` for anything else.
    """
    name = str(program["name"])
    if len(arguments) != program["arguments"]:
        raise HostError(f"host function @{name} takes {program['arguments']} arguments, got {len(arguments)}")
    run = _Evaluator(name, dict(enumerate(arguments)))
    try:
        run.run(cast("list[Instruction]", program["code"]))
    except RecursionError as e:
        raise HostError(f"host function @{name} is nested too deeply") from e
    return [run.launch(i, record) for i, record in enumerate(launch_records(program)) if run.holds(record)]


def _fill(type_: abi.Type, value: int | None) -> Value:
    if isinstance(type_, abi.Struct):
        return tuple(_fill(m, value) for m in type_.members)
    return value


def _set(container: Value, value: Value, path: Sequence[int]) -> Value:
    if not path:
        return value
    assert isinstance(container, tuple)
    i = path[0]
    return (*container[:i], _set(container[i], value, path[1:]), *container[i + 1 :])
