"""Host program extraction: converts a lowered host function to the instructions in the manifest.

:mod:`cute_dialect.runtime.host_program` describes and evaluates the instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from cute_dialect.arch.tensor_map_codes import im2col_rank_of, rank_of
from cute_dialect.runtime import abi
from cute_dialect.runtime.host_program import (
    BINARY,
    CASTS,
    FLOAT_PREDICATES,
    FLOAT_STEPS,
    FLOATS,
    FROM_INTEGER,
    PREDICATES,
    HostError,
    Instruction,
    Program,
    signed,
)

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.ir import Attribute, Block, Operation, SSAValue

__all__ = ["extract_host_program", "op_name"]

_POISON = {"ub.poison", "llvm.mlir.undef", "llvm.mlir.poison", "llvm.mlir.zero"}
_SAME = {"builtin.unrealized_conversion_cast"}


def op_name(op: Operation) -> str:
    """Return the name of an operation, including unregistered ones."""
    if op.name == "builtin.unregistered":
        return str(getattr(op, "op_name").data)  # noqa: B009
    return op.name


class _Extractor:
    def __init__(self, name: str):
        self.name = name
        self.registers: dict[SSAValue, int] = {}
        self.launches: list[dict[str, object]] = []

    def new(self, value: SSAValue) -> int:
        return self.registers.setdefault(value, len(self.registers))

    def use(self, value: SSAValue) -> int:
        if value not in self.registers:
            raise HostError(f"host function @{self.name} uses a value that is defined outside the function")
        return self.registers[value]

    def block(self, block: Block, when: list[list[int]]) -> tuple[list[Instruction], list[int]]:
        """Translate a block that runs under the conditions ``when``; also return the registers that it yields."""
        code: list[Instruction] = []
        launched = False
        for op in block.ops:
            name = op_name(op)
            if name in ("func.return", "llvm.return", "scf.yield"):
                return code, [self.use(v) for v in op.operands] if name == "scf.yield" else []
            if name == "gpu.launch_func":
                self.launch_func(op, when, launched)
                launched = True
            else:
                before = len(self.launches)
                code.append(self.instruction(op, name, when))
                launched = launched and len(self.launches) == before
        return code, []

    def instruction(self, op: Operation, name: str, when: list[list[int]]) -> Instruction:
        attributes = _attributes(op)
        operands: list[object] = [self.use(v) for v in op.operands]
        if name == "scf.if":
            condition = self.use(op.operands[0])
            then, then_yield = self.block(op.regions[0].blocks[0], [*when, [condition, 1]])
            otherwise, else_yield = [], []
            if op.regions[1].blocks:
                otherwise, else_yield = self.block(op.regions[1].blocks[0], [*when, [condition, 0]])
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
            short, extra = "const", [signed(int(value), _width(kind)) if _is_int(kind) else float(value), _width(kind)]
        elif name.startswith("arith.") and short in BINARY:
            extra = _width(kind)
        elif name == "arith.cmpi":
            predicate = _plain(attributes.get("predicate"))
            assert isinstance(predicate, int)
            extra = [PREDICATES[predicate], _width_of(op.operands[0])]
        elif name == "arith.cmpf" and (compared := _type_text(op.operands[0].type)) in FLOATS:
            predicate = _plain(attributes.get("predicate"))
            assert isinstance(predicate, int)
            extra = [FLOAT_PREDICATES[predicate], compared]
        elif name.startswith("arith.") and short in CASTS:
            extra = [_width_of(op.operands[0]), _width(kind)]
        elif name.startswith("arith.") and short in FLOAT_STEPS and kind in FLOATS:
            extra = kind
        elif name.startswith("arith.") and short in FROM_INTEGER and kind in FLOATS:
            extra = [_width_of(op.operands[0]), kind]
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

    def launch_func(self, op: Operation, when: list[list[int]], launched: bool) -> None:
        """Record a launch; ``launched``: the previous op in the block is a launch, too.

        Raises :class:`HostError`.
        """
        attributes = _attributes(op)
        sizes = _plain(attributes.get("operandSegmentSizes"))
        assert isinstance(sizes, list) and len(sizes) >= 12
        kernel = _symbol(attributes["kernel"])
        if sizes[0]:
            raise HostError(
                f"host function @{self.name}: the launch of @{kernel} waits for tokens; launches of a host function "
                "run in order on the stream of the call, so leave them out"
            )
        registers = iter([self.use(v) for v in op.operands])
        groups = [[next(registers) for _ in range(int(n))] for n in sizes]
        flat = [g[0] if g else None for g in groups]
        fallback = "cute.fallback" in attributes
        if fallback and not launched:
            raise HostError(
                f"host function @{self.name}: the launch of @{kernel} has cute.fallback, but no launch precedes "
                "it in its block"
            )
        record: dict[str, object] = {
            "kernel": kernel,
            "variants": [_symbol(v) for v in getattr(attributes.get("cute.variants"), "data", ())],
            "when": when,
            "fallback": fallback,
            "cooperative": "cute.cooperative" in attributes,
            "pdl": "cute.pdl" in attributes,
            "grid": flat[1:4],
            "block": flat[4:7],
            "cluster": flat[7:10] if flat[7] is not None else None,
            "smem": flat[10],
            "args": groups[11],
        }
        types = getattr(attributes.get("cute.args"), "data", None)
        if types is not None:
            record["types"] = [str(t.data) for t in types]
        self.launches.append(record)

    def unsupported(self, name: str) -> HostError:
        return HostError(
            f"host function @{self.name}: {name} cannot be evaluated at launch (arith on integers and "
            "floats, scf.if, llvm aggregates and gpu.launch_func can)"
        )


def extract_host_program(function: Operation) -> Program | None:
    """Translate a lowered host function; ``None`` if it has no launch.  Raises :class:`HostError`."""
    if not _launches(function):
        return None
    name = str(_plain(_attributes(function)["sym_name"]))
    blocks = list(function.regions[0].blocks)
    if len(blocks) != 1:
        raise HostError(f"host function @{name} has branches; only scf.if is supported")
    extractor = _Extractor(name)
    for argument in blocks[0].args:
        extractor.new(argument)
    code, _ = extractor.block(blocks[0], [])
    return {"name": name, "arguments": len(blocks[0].args), "code": code, "launches": extractor.launches}


def _map_rank(attributes: Mapping[str, Attribute], rank_in: Callable[[str], int | None] = rank_of) -> int | None:
    """Return the rank of the tensor map that a call encodes; ``None`` for other calls."""
    callee = attributes.get("callee")
    return rank_in(_symbol(callee)) if callee is not None else None


def _launches(function: Operation) -> bool:
    return any(op_name(op) == "gpu.launch_func" for op in function.walk())


def _attributes(op: Operation) -> dict[str, Attribute]:
    return {**op.attributes, **op.properties}


def _plain(attribute: object) -> int | float | str | list[int] | None:
    """Return the Python value of a builtin attribute."""
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
    """Return the last component of a symbol: ``add`` for ``@kernels::@add``."""
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
