"""The host half of a launch as a small program that plain Python evaluates.

A host function computes grid, block, shared memory and kernel arguments from its own arguments and holds one
``gpu.launch_func``.  Its lowered form (``arith``, ``scf.if``, ``llvm`` aggregates) becomes a list of instructions that
goes into the manifest as JSON, so that a launch needs neither xDSL nor MLIR::

    {"name": "launch", "code": [["get", 3, [2], [1, 0, 1]], ["const", 4, [], [128, 32]], ["ceildivsi", 5, [3, 4], 32]],
     "launch": {"kernel": "add", "variants": ["add_v"], "grid": [5, 6, 6], "block": [4, 6, 6], "cluster": null,
                "smem": null, "args": [0, 1, 2]}}

An instruction is ``[name, result, operands, extra]``; registers are numbers, the first ones are the function's
arguments.  Integers are exact: a result that does not fit the width of its operation is an error, never a wrap.
Pointers are ``Pointer(argument, byte offset)``, so a launch can be repeated for other addresses without evaluating
the program again.  A call of ``cute_tensor_map_tiled_<rank>d`` gives a :class:`TensorMap`, which says what the
driver is to be told; the launcher makes the 128 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from cute_dialect.arch.tensor_map_codes import (
    ELEMENTS,
    INTERLEAVES,
    L2_PROMOTIONS,
    OOB_FILLS,
    SWIZZLES,
    im2col_rank_of,
    rank_of,
)
from cute_dialect.runtime import abi

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.ir import Attribute, Block, Operation, SSAValue

__all__ = [
    "BINARY",
    "CASTS",
    "PREDICATES",
    "HostError",
    "HostOverflow",
    "Launch",
    "Pointer",
    "Program",
    "TensorMap",
    "compile_host",
    "evaluate",
    "map_sizes",
    "op_name",
]

Instruction: TypeAlias = "list[object]"
Program: TypeAlias = "dict[str, object]"


class HostError(Exception):
    """The host function cannot be compiled to a launch program, or its evaluation failed."""


class HostOverflow(HostError):
    """A number in the host function does not fit its type."""


class Pointer(NamedTuple):
    """The address of array argument number ``argument``, plus ``offset`` bytes."""

    argument: int
    offset: int


class TensorMap(NamedTuple):
    """A tensor map to be made: the arguments of ``cuTensorMapEncodeTiled``, innermost dimension first.

    ``extents``: elements; ``strides``: bytes, of dimensions 1 and up; ``steps``: element strides; ``element``,
    ``interleave``, ``swizzle``, ``l2`` and ``oob``: the driver's codes.  With ``pixels`` those of
    ``cuTensorMapEncodeIm2col``: ``box`` is the channels alone, ``lower`` and ``upper`` the corners.
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


Value: TypeAlias = "int | float | Pointer | TensorMap | tuple[Value, ...] | None"


class Launch(NamedTuple):
    """What one call of the host function launches."""

    kernel: str
    variants: tuple[str, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] | None
    smem: int
    args: tuple[Value, ...]


# ---------------------------------------------------------------------------------------------------- compile

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
"""Instructions on two integers, by their names in ``arith``."""
CASTS = ("extsi", "extui", "trunci", "index_cast", "index_castui")
"""Instructions that change the width of an integer."""
_POISON = {"ub.poison", "llvm.mlir.undef", "llvm.mlir.poison", "llvm.mlir.zero"}
_SAME = {"builtin.unrealized_conversion_cast"}
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


def op_name(op: Operation) -> str:
    """Name of an operation, also when xDSL does not know it."""
    if op.name == "builtin.unregistered":
        return str(getattr(op, "op_name").data)  # noqa: B009
    return op.name


class _Compiler:
    def __init__(self, name: str):
        self.name = name
        self.registers: dict[SSAValue, int] = {}
        self.launch: dict[str, object] | None = None

    def new(self, value: SSAValue) -> int:
        return self.registers.setdefault(value, len(self.registers))

    def use(self, value: SSAValue) -> int:
        if value not in self.registers:
            raise HostError(f"host function @{self.name} uses a value that is defined outside of it")
        return self.registers[value]

    def block(self, block: Block, inner: bool) -> tuple[list[Instruction], list[int]]:
        code: list[Instruction] = []
        for op in block.ops:
            name = op_name(op)
            if name in ("func.return", "llvm.return", "scf.yield"):
                return code, [self.use(v) for v in op.operands] if name == "scf.yield" else []
            if name == "gpu.launch_func":
                if inner:
                    raise HostError(f"host function @{self.name}: gpu.launch_func inside scf.if is not supported")
                self.launch_func(op)
            else:
                code.append(self.instruction(op, name))
        return code, []

    def instruction(self, op: Operation, name: str) -> Instruction:
        attributes = _attributes(op)
        operands: list[object] = [self.use(v) for v in op.operands]
        if name == "scf.if":
            then, then_yield = self.block(op.regions[0].blocks[0], True)
            has_else = bool(op.regions[1].blocks)
            otherwise, else_yield = self.block(op.regions[1].blocks[0], True) if has_else else ([], [])
            return ["if", [self.new(r) for r in op.results], operands, [then, then_yield, otherwise, else_yield]]
        if name == "cf.assert":
            return ["assert", -1, operands, str(_plain(attributes.get("msg")) or "assertion failed")]
        if len(op.results) != 1:
            raise self.unsupported(name)
        result = op.results[0]
        kind = _type_text(result.type)
        extra: object = None
        short = name.split(".", 1)[1]
        if name in ("arith.constant", "llvm.mlir.constant"):
            value = _plain(attributes.get("value"))
            if not isinstance(value, (int, float)):
                raise self.unsupported(f"{name} of type {kind}")
            short, extra = "const", [_signed(int(value), _width(kind)) if _is_int(kind) else float(value), _width(kind)]
        elif name.startswith("arith.") and short in BINARY:
            extra = _width(kind)
        elif name == "arith.cmpi":
            predicate = _plain(attributes.get("predicate"))
            assert isinstance(predicate, int)
            extra = [PREDICATES[predicate], _width_of(op.operands[0])]
        elif name.startswith("arith.") and short in CASTS:
            extra = [_width_of(op.operands[0]), _width(kind)]
        elif name == "math.absi":
            extra = _width(kind)
        elif name == "arith.select":
            pass
        elif name in _POISON:
            short, extra = "poison" if name != "llvm.mlir.zero" else "zero", kind
        elif name in _SAME and len(operands) == 1:
            short = "same"
        elif name in ("llvm.extractvalue", "llvm.insertvalue"):
            short = "get" if name == "llvm.extractvalue" else "set"
            extra = _plain(attributes.get("position"))
            if name == "llvm.insertvalue":  # (container, value), as in xDSL and MLIR
                pass
        elif name == "llvm.getelementptr":
            short, extra = "gep", self.gep(attributes)
        elif name == "llvm.call" and (rank := _map_rank(attributes)) is not None:
            short, extra = "tensor_map", rank
        elif name == "llvm.call" and (rank := _map_rank(attributes, im2col_rank_of)) is not None:
            short, extra = "im2col_map", rank
        else:
            raise self.unsupported(name)
        return [short, self.new(result), operands, extra]

    def gep(self, attributes: Mapping[str, Attribute]) -> list[object]:
        indices = _plain(attributes.get("rawConstantIndices"))
        element = attributes.get("elem_type")
        if not isinstance(indices, list) or len(indices) != 1 or element is None:
            raise self.unsupported("llvm.getelementptr with several indices")
        dynamic = indices[0] == -(1 << 31)
        return [abi.parse_type(_type_text(element)).size, None if dynamic else indices[0]]

    def launch_func(self, op: Operation) -> None:
        if self.launch is not None:
            raise HostError(f"host function @{self.name} holds more than one gpu.launch_func; one is expected")
        attributes = _attributes(op)
        sizes = _plain(attributes.get("operandSegmentSizes"))
        assert isinstance(sizes, list) and len(sizes) >= 12
        registers = iter([self.use(v) for v in op.operands])
        groups = [[next(registers) for _ in range(int(n))] for n in sizes]
        flat = [g[0] if g else None for g in groups]
        self.launch = {
            "kernel": _symbol(attributes["kernel"]),
            "variants": [_symbol(v) for v in getattr(attributes.get("cute.variants"), "data", ())],
            "grid": flat[1:4],
            "block": flat[4:7],
            "cluster": flat[7:10] if flat[7] is not None else None,
            "smem": flat[10],
            "args": groups[11],
        }
        types = getattr(attributes.get("cute.args"), "data", None)
        if types is not None:
            self.launch["types"] = [str(t.data) for t in types]

    def unsupported(self, name: str) -> HostError:
        return HostError(
            f"host function @{self.name}: {name} cannot be evaluated at launch (arith on integers, scf.if, llvm "
            "aggregates and one gpu.launch_func can)"
        )


def compile_host(function: Operation) -> Program | None:
    """Compile a lowered host function; ``None`` when it launches nothing.  Raises :class:`HostError`."""
    if not _launches(function):
        return None
    name = str(_plain(_attributes(function)["sym_name"]))
    blocks = list(function.regions[0].blocks)
    if len(blocks) != 1:
        raise HostError(f"host function @{name} has branches; only scf.if is supported")
    compiler = _Compiler(name)
    for argument in blocks[0].args:
        compiler.new(argument)
    code, _ = compiler.block(blocks[0], False)
    if compiler.launch is None:
        raise HostError(f"host function @{name}: gpu.launch_func inside scf.if is not supported")
    return {"name": name, "arguments": len(blocks[0].args), "code": code, "launch": compiler.launch}


def _map_rank(attributes: Mapping[str, Attribute], rank_in: Callable[[str], int | None] = rank_of) -> int | None:
    """The rank of the tensor map that a call makes; ``None`` for other calls."""
    callee = attributes.get("callee")
    return rank_in(_symbol(callee)) if callee is not None else None


def _launches(function: Operation) -> bool:
    return any(op_name(op) == "gpu.launch_func" for op in function.walk())


def _attributes(op: Operation) -> dict[str, Attribute]:
    return {**op.attributes, **op.properties}


def _plain(attribute: object) -> int | float | str | list[int] | None:
    """The Python value of a builtin attribute."""
    if attribute is None:
        return None
    if hasattr(attribute, "get_values"):
        return [int(v) for v in getattr(attribute, "get_values")()]  # noqa: B009
    inner = getattr(attribute, "value", None)
    if inner is not None and hasattr(inner, "data"):
        return cast("int | float", inner.data)
    data = getattr(attribute, "data", None)
    if isinstance(data, (int, float, str)):
        return data
    return None


def _symbol(attribute: object) -> str:
    """The last name of a symbol: ``add`` of ``@kernels::@add``."""
    nested = getattr(attribute, "nested_references", None)
    last = nested.data[-1] if nested is not None and nested.data else getattr(attribute, "root_reference")  # noqa: B009
    return str(last.data)


def _type_text(type_: object) -> str:
    return str(type_)


def _is_int(kind: str) -> bool:
    return kind == "index" or (kind.startswith("i") and kind[1:].isdigit())


def _width(kind: str) -> int:
    return 64 if kind == "index" or not _is_int(kind) else int(kind[1:])


def _width_of(value: SSAValue) -> int:
    return _width(_type_text(value.type))


def _signed(value: int, width: int) -> int:
    """``value`` as a signed number of ``width`` bits; a bit is 0 or 1."""
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
_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
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


_CODES: Sequence[tuple[str, Sequence[int]]] = (
    ("element type", tuple(ELEMENTS)),
    ("interleave", range(len(INTERLEAVES))),
    ("swizzle", range(len(SWIZZLES))),
    ("L2 promotion", range(len(L2_PROMOTIONS))),
    ("out-of-bounds fill", range(len(OOB_FILLS))),
)
"""The driver's codes that a tensor map ends with, in order."""


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
                raise HostError(f"host function @{self.name}: pointer arithmetic on a value that is no pointer")
            step = static if static is not None else self.number(given[1])
            return Pointer(pointer.argument, pointer.offset + step * cast(int, size))
        if name == "tensor_map":
            return self.tensor_map(given, cast(int, extra))
        if name == "im2col_map":
            return self.im2col_map(given, cast(int, extra))
        numbers = [self.number(v) for v in given]
        if name in _SIGNED:
            exact = _SIGNED[name](numbers[0], numbers[1])
            return self.fit(exact, cast(int, extra), name, numbers)
        if name in _UNSIGNED:
            width = cast(int, extra)
            a, b = (_unsigned(v, width) for v in numbers)
            return _signed(_UNSIGNED[name](a, b), width)
        if name == "cmpi":
            predicate, width = cast("tuple[str, int]", extra)
            if predicate.startswith("u"):
                numbers = [_unsigned(v, width) for v in numbers]
            return int(_COMPARE[predicate[-2:]](numbers[0], numbers[1]))
        if name == "absi":
            return self.fit(abs(numbers[0]), cast(int, extra), name, numbers)
        source, target = cast("tuple[int, int]", extra)
        if name in ("extui", "index_castui"):
            return _signed(_unsigned(numbers[0], source), target)
        if name == "extsi" and source == 1:
            return -numbers[0]
        return self.fit(numbers[0], target, name, numbers)

    def tensor_map(self, given: list[Value], rank: int) -> TensorMap:
        pointer, (extents, strides, box, steps), codes = self.map_parts(given, map_sizes("tensor_map", rank))
        element, interleave, swizzle, l2, oob = codes
        return TensorMap(pointer, extents, strides, box, steps, element, interleave, swizzle, l2, oob)

    def im2col_map(self, given: list[Value], rank: int) -> TensorMap:
        parts = self.map_parts(given, map_sizes("im2col_map", rank))
        pointer, (extents, strides, box, pixels, lower, upper, steps), codes = parts
        element, interleave, swizzle, l2, oob = codes
        return TensorMap(
            pointer, extents, strides, box, steps, element, interleave, swizzle, l2, oob, pixels[0], lower, upper
        )

    def map_parts(self, given: list[Value], sizes: Sequence[int]) -> tuple[Pointer, list[tuple[int, ...]], list[int]]:
        pointer = given[0]
        if not isinstance(pointer, Pointer):
            raise HostError(f"host function @{self.name}: a tensor map of a value that is no pointer")
        numbers = [self.number(v) for v in given[1:]]
        parts: list[tuple[int, ...]] = []
        for n in sizes:
            parts.append(tuple(numbers[:n]))
            del numbers[:n]
        for (what, known), code in zip(_CODES, numbers):
            if code not in known:
                codes = ", ".join(map(str, known))
                raise HostError(f"host function @{self.name}: expected a tensor map's {what} of {codes}, got {code}")
        return pointer, parts, numbers

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


def map_sizes(name: str, rank: int) -> tuple[int, ...]:
    """How many numbers each part of a tensor map of this rank has, as its instruction takes them between the pointer
    and five codes: extents, strides, box, steps; or extents, strides, channels, pixels, lower and upper corner, steps.
    """
    if name == "tensor_map":
        return rank, rank - 1, rank, rank
    return rank, rank - 1, 1, 1, rank - 2, rank - 2, rank


def evaluate(program: Program, arguments: Sequence[Value]) -> Launch:
    """Run the program on lowered argument values (integers, :class:`Pointer`, nested tuples of them).

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
    launch = cast("dict[str, object]", program["launch"])

    def three(key: str) -> tuple[int, int, int]:
        x, y, z = (run.number(run.values[r]) for r in cast("list[int]", launch[key]))
        return x, y, z

    smem = launch["smem"]
    return Launch(
        kernel=cast(str, launch["kernel"]),
        variants=tuple(cast("list[str]", launch["variants"])),
        grid=three("grid"),
        block=three("block"),
        cluster=three("cluster") if launch["cluster"] is not None else None,
        smem=run.number(run.values[cast(int, smem)]) if smem is not None else 0,
        args=tuple(run.values[r] for r in cast("list[int]", launch["args"])),
    )


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
