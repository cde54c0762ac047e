"""Manifest builder: converts a lowered module to the plain data that a launch reads.

The input is the output of ``cute-to-base``.  :mod:`cute_dialect.runtime.manifest` describes and checks the result:

- a parameter, :func:`describe`.  The cute type (``!cute.memref<f32, gmem, "(?,?):(?,1)">``) defines its constraints.
  The lowered type (``!llvm.struct<…>``) defines the offset of each dynamic leaf.  ``cute-to-base`` stores only the
  dynamic leaves, in one flat struct; a single leaf has no struct.
- a host program, :func:`extract_host_program`: the instructions of a lowered host function
  (:mod:`cute_dialect.runtime.host_program`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from cute_dialect.algebra.leaf import Dyn
from cute_dialect.algebra.values import UNDERSCORE, Layout
from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.arch.tensor_map_codes import im2col_rank_of, rank_of
from cute_dialect.dialect.memory_types import ConstrainedIntType, MemRefType, PtrType
from cute_dialect.dialect.types import CoordType, IntTupleType, LayoutType, ShapeType
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
from cute_dialect.runtime.manifest import (
    FORMAT,
    EqualNumbers,
    HostEntry,
    KernelEntry,
    Manifest,
    ManifestError,
    Param,
    SignatureError,
    Tree,
    check_manifest,
    dynamic_leaves,
    integer_slots,
)

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Block, Operation, SSAValue

    from cute_dialect.dialect.memory_types import Ptr

__all__ = ["build_manifest", "describe", "extract_host_program", "op_name", "parse_type"]


# ----------------------------------------------------------------------------------------------------------- parameters


def parse_type(text: str, context: Context) -> Attribute | None:
    """Parse one entry of ``cute.args``; ``None`` for a type of another dialect, whose lowered type is sufficient.

    Raises :class:`SignatureError`.
    """
    if not text.startswith(("!cute.", "!cute_nvgpu.")):
        return None
    from xdsl.parser import Parser
    from xdsl.utils.exceptions import ParseError

    parser = Parser(context, text)
    try:
        found = parser.parse_type()
    except ParseError as e:
        raise SignatureError(f"{e.msg} (in {text})") from None
    if parser.pos != len(text):
        raise SignatureError(f"expected one type, got {text}")
    return found


def describe(text: str, type_: Attribute | None, lowered_text: str, *, byval: bool = False) -> Param:
    """Describe a parameter of type ``type_``, whose source text is ``text``.  Raises :class:`SignatureError`.

    >>> from cute_dialect.ir.context import make_context
    >>> text = '!cute.memref<f16, gmem, align<16>, "(?,64):(?{div=8},1)">'
    >>> p = describe(text, parse_type(text, make_context()), "!llvm.struct<(ptr<1>, struct<(i32, i32)>)>")
    >>> p["size"], p["alignment"], p["shape"], p["stride"]
    (16, 16, [{'width': 32, 'div': 1, 'offset': 8}, 64], [{'width': 32, 'div': 8, 'offset': 12}, 1])
    """
    if byval:
        interleave = cast(int, getattr(getattr(type_, "data", None), "interleave", 0))
        return {
            "kind": "tensormap",
            "type": text,
            "lowered": lowered_text,
            "size": 128,
            "align": 64,
            "alignment": max(16, interleave),
        }
    try:
        lowered = abi.parse_type(lowered_text)
    except abi.AbiError as e:
        raise SignatureError(str(e)) from e
    param: Param = {
        "kind": "opaque",
        "type": text,
        "lowered": lowered_text,
        "size": lowered.size,
        "align": lowered.align,
    }
    if type_ is None or not type_.name.startswith("cute."):
        if isinstance(lowered, abi.Struct):
            return param
        if lowered.name == "ptr":
            param.update({"kind": "pointer", "element": "i8", "space": "gmem", "alignment": 1, "pointer": 0})
        else:
            param.update({"kind": "scalar", "element": lowered.name, "div": 1})
        return param
    return _describe_cute(param, type_, lowered)


def _describe_cute(param: Param, type_: Attribute, lowered: abi.Type) -> Param:
    """Complete the description of a parameter of cute type; types without a description stay opaque."""
    if isinstance(type_, MemRefType):
        layout = type_.data.layout
        if isinstance(layout, Layout) and type_.data.ptr.swizzle is None:
            _pointer(param, type_.data.ptr)
            param.update({"kind": "memref", "shape": _tree(layout.shape), "stride": _tree(layout.stride)})
            _place(param)
    elif isinstance(type_, PtrType):
        if isinstance(lowered, abi.Struct) or lowered.name != "ptr":
            raise SignatureError(f"{param['type']} does not lower to {param['lowered']}")
        _pointer(param, type_.data)
    elif isinstance(type_, ConstrainedIntType):
        if isinstance(lowered, abi.Struct):
            raise SignatureError(f"{param['type']} does not lower to {param['lowered']}")
        param.update({"kind": "scalar", "element": lowered.name, "div": type_.divisor})
    elif isinstance(type_, (IntTupleType, ShapeType, CoordType)):
        param.update({"kind": "tuple", "shape": _tree(type_.data)})
        _place(param)
    elif isinstance(type_, LayoutType) and isinstance(type_.data, Layout):
        param.update({"kind": "layout", "shape": _tree(type_.data.shape), "stride": _tree(type_.data.stride)})
        _place(param)
    return param


def _pointer(param: Param, ptr: Ptr) -> None:
    space = ptr.space.name
    param.update(
        {"kind": "pointer", "element": str(ptr.element), "space": space, "alignment": ptr.alignment, "pointer": 0}
    )


def _tree(payload: object) -> Tree:
    """Convert a shape, stride or coordinate to plain data; :func:`_place` fills in the offsets."""
    if isinstance(payload, tuple):
        return [_tree(p) for p in cast("tuple[object, ...]", payload)]
    if isinstance(payload, int):
        return payload
    if payload is UNDERSCORE:
        return None
    if isinstance(payload, Dyn):
        return {"width": payload.width, "div": payload.div or 1, "offset": -1}
    raise SignatureError(f"the stride {payload} cannot be passed to a kernel")


def _place(param: Param) -> None:
    """Set the offset of each dynamic leaf; the integers of the lowered type are the dynamic leaves in order."""
    for leaf, (_, offset) in zip(dynamic_leaves(param), integer_slots(param)):
        leaf["offset"] = offset


# -------------------------------------------------------------------------------------------------------- host programs


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
        kernel = _last_symbol(attributes["kernel"])
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
            "variants": [_last_symbol(v) for v in getattr(attributes.get("cute.variants"), "data", ())],
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
        if abi.PREFERRED_CLUSTER in attributes:
            record["preferred_cluster"] = _ints(attributes[abi.PREFERRED_CLUSTER])
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
    return rank_in(_last_symbol(callee)) if callee is not None else None


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


def _last_symbol(attribute: object) -> str:
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


# --------------------------------------------------------------------------------------------------------- the manifest


def build_manifest(module: ModuleOp, context: Context, *, chip: str, features: str, opt_level: int) -> Manifest:
    """Describe the kernels and host functions of a lowered module; ``context`` parses the types in ``cute.args``.

    Raises :class:`ManifestError`.
    """
    build = _Builder(context)
    kernels: list[KernelEntry] = []
    modules: list[str] = []
    hosts: list[HostEntry] = []
    for op in module.ops:
        name = op_name(op)
        if name == "gpu.module":
            module_name = _symbol(op)
            modules.append(module_name)
            for inner in op.regions[0].blocks[0].ops:
                if op_name(inner) in ("llvm.func", "gpu.func") and _is_kernel(inner):
                    kernels.append(build.kernel(inner, module_name))
        elif name in ("func.func", "llvm.func") and op.regions[0].blocks:
            try:
                program = extract_host_program(op)
            except HostError as e:
                raise ManifestError(str(e)) from e
            if program is not None:
                hosts.append(build.host(op, program))
    manifest: Manifest = {
        "format": FORMAT,
        "chip": chip,
        "features": features,
        "opt_level": opt_level,
        "modules": modules,
        "kernels": kernels,
        "hosts": hosts,
    }
    check_manifest(manifest)
    return manifest


class _Builder:
    """Builder of the entries; parses each type once."""

    def __init__(self, context: Context):
        self._context = context
        self._types: dict[str, Attribute | None] = {}

    def _type(self, text: str) -> Attribute | None:
        if text not in self._types:
            self._types[text] = parse_type(text, self._context)
        return self._types[text]

    def kernel(self, op: Operation, module: str) -> KernelEntry:
        name = _symbol(op)
        attributes = {**op.attributes, **op.properties}
        arguments = list(op.regions[0].blocks[0].args)
        byval = [_has_byval(attributes, i) for i in range(len(arguments))]
        lowered = [str(a.type) for a in arguments]
        for text in lowered:
            try:
                empty = not text.startswith("!llvm.ptr") and abi.parse_type(text).size == 0
            except abi.AbiError as e:
                raise ManifestError(f"kernel @{name} has a parameter whose type cannot be passed: {e}") from None
            if empty:
                raise ManifestError(
                    f"kernel @{name} has a parameter of the empty type {text}, which NVPTX does not support"
                )
        params = self._params(name, attributes, lowered, byval)
        required = _ints(attributes.get("nvvm.reqntid"))
        bound = required or _ints(attributes.get("nvvm.maxntid"))
        offset_bits = _ints(attributes.get("cute.offset_bits"))
        dynamic_smem = _ints(attributes.get("cute.dynamic_smem"))
        return {
            "name": name,
            "module": module,
            "params": params,
            "names": _names(name, arguments, attributes),
            "block": _three(required),
            "max_threads": _product(bound) if bound else DEFAULT_TARGET.threads,
            "cluster": _three(_ints(attributes.get("nvvm.cluster_dim"))),
            "offset_bits": offset_bits[0] if offset_bits else 64,
            "dynamic_smem": dynamic_smem[0] if dynamic_smem else 0,
        }

    def host(self, op: Operation, program: Program) -> HostEntry:
        attributes = {**op.attributes, **op.properties}
        arguments = list(op.regions[0].blocks[0].args)
        lowered = [str(a.type) for a in arguments]
        name = _symbol(op)
        entry: HostEntry = {
            "name": name,
            "params": self._params(name, attributes, lowered, [False] * len(lowered)),
            "names": _names(name, arguments, attributes),
            "program": program,
        }
        fallback = attributes.get("cute.fallback")
        if fallback is not None:
            entry["fallback"] = str(getattr(getattr(fallback, "root_reference", fallback), "data", fallback))
        if "cute.symbols" in attributes:
            entry["symbols"] = _equal_numbers(name, attributes["cute.symbols"])
        return entry

    def _params(
        self, name: str, attributes: dict[str, Attribute], lowered: Sequence[str], byval: Sequence[bool]
    ) -> list[Param]:
        given = attributes.get("cute.args")
        texts = list(lowered)
        if given is not None:
            types = [getattr(t, "data", None) for t in cast("Sequence[Attribute]", getattr(given, "data", (given,)))]
            texts = [t for t in types if isinstance(t, str)]
            if len(texts) != len(types):
                raise ManifestError(f"@{name}: cute.args must be an array of strings; got {given}")
        if len(texts) != len(lowered):
            raise ManifestError(
                f"@{name}: cute.args lists {len(texts)} types, the function takes {len(lowered)} arguments"
            )
        params: list[Param] = []
        for i, (text, low) in enumerate(zip(texts, lowered)):
            try:
                params.append(describe(text, self._type(text), low, byval=byval[i]))
            except (SignatureError, ValueError) as e:
                raise ManifestError(f"@{name}, argument {i}: {e}") from e
        return params


# ----------------------------------------------------------------------------------------------------------- helpers


def _symbol(op: Operation) -> str:
    return str({**op.attributes, **op.properties}["sym_name"].data)  # type: ignore[attr-defined]


def _is_kernel(op: Operation) -> bool:
    attributes = {**op.attributes, **op.properties}
    return "gpu.kernel" in attributes or "nvvm.kernel" in attributes


def _has_byval(attributes: dict[str, Attribute], index: int) -> bool:
    given = attributes.get("arg_attrs")
    if given is None:
        return False
    return "llvm.byval" in given.data[index].data  # type: ignore[attr-defined]


def _names(function: str, arguments: Sequence[object], attributes: dict[str, Attribute]) -> list[str]:
    """Return the names of the parameters: ``cute.names``, or else the name hints of the values.

    Raises :class:`ManifestError` unless ``cute.names`` names every parameter, without duplicates.
    """
    given = attributes.get("cute.names")
    if given is None:
        return [str(getattr(a, "name_hint", None) or f"arg{i}") for i, a in enumerate(arguments)]
    names = [getattr(n, "data", None) for n in cast("Sequence[object]", getattr(given, "data", ()))]
    if len(names) != len(arguments) or len(set(names)) != len(names) or not all(isinstance(n, str) for n in names):
        raise ManifestError(
            f"@{function}: cute.names needs {len(arguments)} different strings, one per argument, got {given}"
        )
    return [str(n) for n in names]


def _ints(attribute: Attribute | None) -> list[int]:
    if attribute is None:
        return []
    if hasattr(attribute, "get_values"):
        return [int(v) for v in attribute.get_values()]  # type: ignore[attr-defined]
    inner = getattr(attribute, "value", None)
    if inner is not None and hasattr(inner, "data"):
        return [int(inner.data)]
    return []


def _three(values: list[int]) -> list[int] | None:
    return (values + [1, 1])[:3] if values else None


def _product(values: Sequence[int]) -> int:
    out = 1
    for v in values:
        out *= v
    return out


def _equal_numbers(function: str, given: Attribute) -> list[EqualNumbers]:
    """Read ``cute.symbols``, groups of extents and strides that must be equal.

    Raises ManifestError on a syntax error.
    """
    found: list[EqualNumbers] = []
    for entry in cast("Sequence[object]", getattr(given, "data", (given,))):
        name, _, places = str(getattr(entry, "data", entry)).rpartition(": ")
        read = [re.fullmatch(r"(\d+)\.(shape|stride)\[(\d+)\]", place) for place in places.split(" = ")]
        if not name or len(read) < 2 or None in read:
            raise ManifestError(
                f'@{function}: cute.symbols needs strings like "n: 0.shape[0] = 1.shape[0]", got {entry}'
            )
        found.append({"name": name, "places": [[int(m[1]), m[2], int(m[3])] for m in read if m is not None]})
    return found
