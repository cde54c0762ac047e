"""The gpu dialect of upstream MLIR. Upstream parses gpu.func and gpu.launch in C++, and so do their classes."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.dialects.builtin import ModuleOp as BuiltinModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from cute_dialect.upstream.attrs import AsyncTokenType, at_punctuation, attrs, opaque_types
from cute_dialect.upstream.lazy import TableDialect
from cute_dialect.upstream.op import FormatOp, TableOp, make_ops
from cute_dialect.upstream.signature import dicts_of, parse_signature, print_inputs, print_outputs, verify_function
from cute_dialect.upstream.spec import SEGMENTS

_I32 = IntegerType(32)
_I64 = IntegerType(64)
Argument = Parser.Argument


def _parse_attribution(parser: Parser, word: str) -> tuple[list[Argument], list[dict[str, Attribute]]]:
    """Parse an optional attribution: `workgroup(%a : memref<32xf32, 3> {attrs}, …)`."""
    args, dicts = list[Argument](), list[dict[str, Attribute]]()
    if parser.parse_optional_keyword(word) is not None:

        def one() -> None:
            args.append(parser.parse_argument())
            dicts.append(parser.parse_optional_attr_dict())

        parser.parse_comma_separated_list(parser.Delimiter.PAREN, one)
    return args, dicts


def _print_attribution(printer: Printer, word: str, args: list[SSAValue], attrs: Attribute | None) -> None:
    if not args:
        return
    printer.print_string(f" {word}(")
    for i, (arg, dictionary) in enumerate(zip(args, dicts_of(attrs, len(args)))):
        printer.print_string(", " if i else "")
        printer.print_ssa_value(arg)
        printer.print_string(" : ")
        printer.print_attribute(arg.type)
        if dictionary:
            printer.print_string(" ")
            printer.print_attr_dict(dictionary)
    printer.print_string(")")


class GPUFuncOp(TableOp):
    """`gpu.func @k(%p: memref<?xf32>) workgroup(%s : memref<32xf32, 3>) kernel attributes {known_block_size = …} { … }`

    The entry block has the arguments, followed by the workgroup and the private attributions.
    """

    name = "gpu.func"
    WRITTEN_AS_ATTRIBUTES: ClassVar[tuple[str, ...]] = (
        "arg_attrs", "known_block_size", "known_cluster_size", "known_grid_size", "private_attrib_attrs", "res_attrs",
        "workgroup_attrib_attrs",
    )  # fmt: skip
    """Properties that the generic form writes in the attribute dictionary after the body.

    Upstream MLIR accepts them there as well. xDSL's `gpu.func` does not declare them as properties and reads them only
    there.
    """

    def __init__(
        self,
        sym_name: str,
        function_type: FunctionType,
        body: Region,
        *,
        kernel: bool = True,
        workgroup_attributions: int = 0,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> None:
        shown: dict[str, Attribute] = {**(attributes or {}), "sym_name": StringAttr(sym_name)}
        if kernel:
            shown["gpu.kernel"] = UnitAttr()
        shown["workgroup_attributions"] = IntegerAttr(workgroup_attributions, _I64)
        super().__init__(function_type=function_type, attributes=shown, regions=[body], result_types=[])

    def verify_itself(self) -> None:
        super().verify_itself()
        if not isinstance(self.get_attr_or_prop("sym_name"), StringAttr):
            raise VerifyException(f"'{self.name}' requires a string as attribute 'sym_name'")
        verify_function(self, FunctionType, self.workgroup_count)

    @property
    def symbol(self) -> str:
        """Name of the function."""
        return cast("StringAttr", self.get_attr_or_prop("sym_name")).data

    @property
    def is_kernel(self) -> bool:
        """True if the host can launch the function."""
        return "gpu.kernel" in self.attributes

    @property
    def type(self) -> FunctionType:
        """Type of the function without the attributions."""
        return cast("FunctionType", self.properties["function_type"])

    @property
    def workgroup_count(self) -> int:
        """Number of workgroup attributions, which follow the arguments in the entry block."""
        value = self.attributes.get("workgroup_attributions")
        return value.value.data if isinstance(value, IntegerAttr) else 0

    @property
    def body(self) -> Region:
        return self.regions[0]

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        signature = parse_signature(parser, allow_variadic=False)
        workgroup, workgroup_dicts = _parse_attribution(parser, "workgroup")
        private, private_dicts = _parse_attribution(parser, "private")
        kernel = parser.parse_optional_keyword("kernel")
        found = parser.parse_optional_attr_dict_with_keyword()
        properties: dict[str, Attribute] = {
            "function_type": FunctionType.from_lists(signature.inputs, signature.outputs),
            **signature.properties(),
        }
        for key, dicts in (("workgroup_attrib_attrs", workgroup_dicts), ("private_attrib_attrs", private_dicts)):
            if any(dicts):
                properties[key] = ArrayAttr([DictionaryAttr(d) for d in dicts])
        attributes: dict[str, Attribute] = dict(found.data) if found else {}
        attributes["sym_name"] = name
        attributes["workgroup_attributions"] = IntegerAttr(len(workgroup), _I64)
        if kernel is not None:
            attributes["gpu.kernel"] = UnitAttr()
        body = Region()
        if at_punctuation(parser, "{"):
            body = parser.parse_region([*signature.names, *workgroup, *private])
        return cls.create(properties=properties, attributes=attributes, regions=[body])

    def print(self, printer: Printer) -> None:
        props, type_ = self.properties, self.type
        printer.print_string(" ")
        printer.print_symbol_name(self.symbol)
        args = list(self.regions[0].blocks[0].args) if self.regions[0].blocks else []
        count = len(type_.inputs)
        print_inputs(printer, args[:count] if args else type_.inputs.data, props.get("arg_attrs"))
        print_outputs(printer, type_.outputs.data, props.get("res_attrs"))
        middle = count + self.workgroup_count
        _print_attribution(printer, "workgroup", list(args[count:middle]), props.get("workgroup_attrib_attrs"))
        _print_attribution(printer, "private", list(args[middle:]), props.get("private_attrib_attrs"))
        if self.is_kernel:
            printer.print_string(" kernel")
        elided = {
            "function_type", "arg_attrs", "res_attrs", "workgroup_attrib_attrs", "private_attrib_attrs", "sym_name",
            "gpu.kernel", "workgroup_attributions",
        }  # fmt: skip
        shown = {k: v for k, v in (props | self.attributes).items() if k not in elided}
        printer.print_op_attributes(dict(sorted(shown.items())), print_keyword=True)
        if self.regions[0].blocks:
            printer.print_string(" ")
            printer.print_region(self.regions[0], print_entry_block_args=False, print_empty_block=False)


class LaunchOp(TableOp):
    """`gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, …) threads(%tx, …) in (%sx = %c32, …) { … gpu.terminator }`

    The entry block has the ids (block, thread), the sizes (grid, block), the ids and sizes of clusters if there are
    clusters, and the attributions.
    """

    name = "gpu.launch"

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        results: list[Attribute] = []
        if parser.parse_optional_keyword("async") is not None:
            results.append(AsyncTokenType())
        tokens = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
        index = IndexType()
        ids: list[Argument] = []
        sizes: list[Argument] = []
        cluster_args: list[Argument] = []
        values: dict[str, list[UnresolvedOperand]] = {}
        for word in ("clusters", "blocks", "threads"):
            if word == "clusters" and parser.parse_optional_keyword(word) is None:
                continue
            if word != "clusters":
                parser.parse_keyword(word)
            found, given_sizes, given_values = _parse_dims(parser, index)
            values[word] = given_values
            if word == "clusters":
                cluster_args = found + given_sizes
            else:
                ids += found
                sizes += given_sizes
        properties: dict[str, Attribute] = {}
        smem: list[UnresolvedOperand] = []
        for word in ("module", "function"):
            if parser.parse_optional_keyword(word) is not None:
                with parser.in_parens():
                    properties[word] = parser.parse_attribute()
        if parser.parse_optional_keyword("dynamic_shared_memory_size") is not None:
            smem.append(parser.parse_unresolved_operand())
        workgroup, workgroup_dicts = _parse_attribution(parser, "workgroup")
        private, private_dicts = _parse_attribution(parser, "private")
        for key, dicts in (("workgroup_attrib_attrs", workgroup_dicts), ("private_attrib_attrs", private_dicts)):
            if any(dicts):
                properties[key] = ArrayAttr([DictionaryAttr(d) for d in dicts])
        body = parser.parse_region([*ids, *sizes, *cluster_args, *workgroup, *private])
        attributes = parser.parse_optional_attr_dict()
        attributes["workgroup_attributions"] = IntegerAttr(len(workgroup), _I64)
        operands: list[SSAValue] = [parser.resolve_operand(t, AsyncTokenType()) for t in tokens or ()]
        segments = [len(operands)]
        for word in ("blocks", "threads", "clusters"):
            operands += [parser.resolve_operand(v, index) for v in values.get(word, ())]
            segments += [1 if word in values else 0] * 3
        operands += [parser.resolve_operand(v, _I32) for v in smem]
        segments.append(len(smem))
        rest = len(cls.spec().operands) - len(segments)
        properties[SEGMENTS[0]] = DenseArrayBase.from_list(_I32, segments + [0] * rest)
        return cls.create(
            operands=operands, result_types=results, properties=properties, attributes=attributes, regions=[body]
        )

    def print(self, printer: Printer) -> None:
        args: list[SSAValue] = list(self.regions[0].blocks[0].args)
        if self.results:
            printer.print_string(" async")
        if tokens := self.group("asyncDependencies"):
            printer.print_string(" [")
            printer.print_list(tokens, printer.print_ssa_value)
            printer.print_string("]")
        start = 12
        if self.group("clusterSizeX"):
            start = 18
            values = [self.group(f"clusterSize{d}")[0] for d in "XYZ"]
            _print_dims(printer, "clusters", args[12:15], args[15:18], values)
        grid = [self.group(f"gridSize{d}")[0] for d in "XYZ"]
        block = [self.group(f"blockSize{d}")[0] for d in "XYZ"]
        _print_dims(printer, "blocks", args[0:3], args[6:9], grid)
        _print_dims(printer, "threads", args[3:6], args[9:12], block)
        for word in ("module", "function"):
            if word in self.properties:
                printer.print_string(f" {word}(")
                printer.print_attribute(self.properties[word])
                printer.print_string(")")
        if smem := self.group("dynamicSharedMemorySize"):
            printer.print_string(" dynamic_shared_memory_size ")
            printer.print_ssa_value(smem[0])
        count = self.attributes.get("workgroup_attributions")
        middle = start + (count.value.data if isinstance(count, IntegerAttr) else 0)
        _print_attribution(
            printer, "workgroup", list(args[start:middle]), self.properties.get("workgroup_attrib_attrs")
        )
        _print_attribution(printer, "private", list(args[middle:]), self.properties.get("private_attrib_attrs"))
        printer.print_string(" ")
        printer.print_region(self.regions[0], print_entry_block_args=False, print_empty_block=False)
        shown = {k: v for k, v in self.attributes.items() if k != "workgroup_attributions"}
        printer.print_op_attributes(shown)

    @property
    def entry(self) -> Block:
        return self.regions[0].blocks[0]


def _parse_dims(parser: Parser, index: Attribute) -> tuple[list[Argument], list[Argument], list[UnresolvedOperand]]:
    """Parse `(%x, %y, %z) in (%sx = %a, %sy = %b, %sz = %c)` and return the ids, the sizes and the values."""
    ids = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False).resolve(index)
    )
    parser.parse_keyword("in")
    sizes, values = list[Argument](), list[UnresolvedOperand]()

    def one() -> None:
        sizes.append(parser.parse_argument(expect_type=False).resolve(index))
        parser.parse_punctuation("=")
        values.append(parser.parse_unresolved_operand())

    pos = parser.pos
    parser.parse_comma_separated_list(parser.Delimiter.PAREN, one)
    if len(ids) != 3 or len(sizes) != 3:
        parser.raise_error(f"expected three dimensions, got {len(ids)} ids and {len(sizes)} sizes", pos)
    return ids, sizes, values


def _print_dims(
    printer: Printer, word: str, ids: list[SSAValue], sizes: list[SSAValue], values: list[SSAValue]
) -> None:
    printer.print_string(f" {word}(")
    printer.print_list(ids, printer.print_ssa_value)
    printer.print_string(") in (")
    for i, (size, value) in enumerate(zip(sizes, values)):
        printer.print_string(", " if i else "")
        printer.print_ssa_value(size)
        printer.print_string(" = ")
        printer.print_ssa_value(value)
    printer.print_string(")")


Value = SSAValue | Operation


class ModuleOp(FormatOp):
    """`gpu.module @m [#nvvm.target<chip = "sm_90a">] { … }`"""

    name = "gpu.module"
    WRITTEN_AS_ATTRIBUTES: ClassVar[tuple[str, ...]] = ("offloadingHandler", "targets")
    """Properties that xDSL's class lacks; see :class:`GPUFuncOp`."""

    def __init__(self, sym_name: str, body: Region, *, targets: Sequence[Attribute] = ()) -> None:
        super().__init__(sym_name=sym_name, targets=ArrayAttr(targets) if targets else None, regions=[body])

    @property
    def symbol(self) -> str:
        """Name of the module."""
        return cast("StringAttr", self.properties["sym_name"]).data

    @property
    def body(self) -> Region:
        """Region that contains the functions."""
        return self.regions[0]


def enclosing_module(op: Operation) -> BuiltinModuleOp | None:
    """Return the builtin.module that contains an op, or None if there is none."""
    at = op.parent_op()
    while at is not None and not isinstance(at, BuiltinModuleOp):
        at = at.parent_op()
    return at


def _symbols(region: Region) -> dict[str, Operation]:
    """Return the ops that a symbol table defines, by name."""
    found: dict[str, Operation] = {}
    for block in region.blocks:
        for op in block.ops:
            name = op.get_attr_or_prop("sym_name")
            if isinstance(name, StringAttr):
                found[name.data] = op
    return found


def _launched(module: BuiltinModuleOp, name: SymbolRefAttr, passed: int) -> GPUFuncOp | None:
    """Return the launched kernel, or None if its arguments are unknown (a binary, a function of another dialect).

    Raises VerifyException if there is no such kernel, or the number of arguments differs from `passed`.
    """
    path = [name.root_reference.data, *[part.data for part in name.nested_references]]
    shown = "::".join(f"@{part}" for part in path)
    container = _symbols(module.body).get(path[0])
    if container is None or container.name not in ("gpu.module", "gpu.binary"):
        raise VerifyException(f"expected a kernel of a gpu.module, got {shown}: no gpu.module is called @{path[0]}")
    if container.name == "gpu.binary":
        return None
    functions = _symbols(container.regions[0])
    kernel = functions.get(path[1]) if len(path) == 2 else None
    if kernel is None:
        known = ", ".join(f"@{known}" for known, op in functions.items() if "gpu.kernel" in op.attributes) or "none"
        raise VerifyException(f"expected a kernel of @{path[0]} ({known}), got {shown}")
    if "gpu.kernel" not in kernel.attributes:
        raise VerifyException(f"expected a kernel, got {shown}, a function without the attribute 'gpu.kernel'")
    if not isinstance(kernel, GPUFuncOp):
        return None
    if len(kernel.type.inputs) != passed:
        raise VerifyException(f"expected {len(kernel.type.inputs)} arguments for {shown}, got {passed}")
    return kernel


LAUNCH_FLAGS = ("cute.cooperative", "cute.pdl", "cute.fallback")
"""Attributes of a launch without a value.

`cute.cooperative`: all blocks are resident at the same time. `cute.pdl`: the launch may begin before the previous one
ends. `cute.fallback`: the launch replaces the previous one in its block if that one's arguments contradict its types.
"""


class LaunchFuncOp(FormatOp):
    """`gpu.launch_func @m::@k blocks in (%gx, %gy, %gz) threads in (%bx, %by, %bz) args(%a : T)`

    Grid and block sizes are in blocks and threads, all of one type. `cluster` is in blocks, `smem` in bytes (i32).
    """

    name = "gpu.launch_func"

    def __init__(
        self,
        kernel: SymbolRefAttr,
        grid: Sequence[Value],
        block: Sequence[Value],
        args: Sequence[Value] = (),
        *,
        cluster: Sequence[Value] = (),
        smem: Value | None = None,
        async_tokens: Sequence[Value] | None = None,
        async_object: Value | None = None,
    ) -> None:
        """Build a launch. If `async_tokens` is given, even empty, the launch is asynchronous and returns a token."""
        clusters = list(cluster) or [None] * 3
        super().__init__(
            list(async_tokens or ()), *grid, *block, *clusters, smem, list(args), async_object, kernel=kernel,
            result_types=[] if async_tokens is None else [AsyncTokenType()],
        )  # fmt: skip

    def verify_(self) -> None:
        """Verify the op, the launched kernel and its arguments, as upstream's gpu dialect does.

        Each kernel of ``cute.variants`` must be in the same module and have the same number of arguments.
        :data:`LAUNCH_FLAGS` must not have a value.
        """
        super().verify_()
        for flag in LAUNCH_FLAGS:
            given = self.attributes.get(flag, UnitAttr())
            if not isinstance(given, UnitAttr):
                raise VerifyException(f"expected '{flag}' without a value, got {given}")
        module = enclosing_module(self)
        if module is None:
            return
        if "gpu.container_module" not in module.attributes:
            raise VerifyException("the enclosing module must have the attribute 'gpu.container_module'")
        passed = [value.type for value in self.group("kernelOperands")]
        kernel = _launched(module, cast("SymbolRefAttr", self.properties["kernel"]), len(passed))
        if kernel is not None:
            for i, (got, expected) in enumerate(zip(passed, kernel.type.inputs)):
                if got != expected:
                    raise VerifyException(f"expected argument {i} of @{kernel.symbol} of type {expected}, got {got}")
        variants = self.attributes.get("cute.variants", ArrayAttr(()))
        if not isinstance(variants, ArrayAttr):
            raise VerifyException(f"attribute 'cute.variants' must be an array of symbols of kernels, got {variants}")
        for variant in cast("ArrayAttr[Attribute]", variants):
            if not isinstance(variant, SymbolRefAttr):
                raise VerifyException(f"attribute 'cute.variants' must contain symbols of kernels, got {variant}")
            _launched(module, variant, len(passed))
        types = self.attributes.get("cute.args", ArrayAttr(()))
        entries = cast("ArrayAttr[Attribute]", types).data if isinstance(types, ArrayAttr) else (types,)
        if not all(isinstance(entry, StringAttr) for entry in entries):
            raise VerifyException(f"'cute.args' must be an array of strings, one type for each argument; got {types}")


class _IdOp(FormatOp):
    """Thread or block index along a dimension: `gpu.thread_id x upper_bound 128`."""

    def __init__(self, dimension: str, *, upper_bound: int | None = None) -> None:
        super().__init__(dimension=dimension, upper_bound=upper_bound)


class ThreadIdOp(_IdOp):
    """`gpu.thread_id x`"""

    name = "gpu.thread_id"


class BlockIdOp(_IdOp):
    """`gpu.block_id x`"""

    name = "gpu.block_id"


class BlockDimOp(_IdOp):
    """`gpu.block_dim x`"""

    name = "gpu.block_dim"


class GridDimOp(_IdOp):
    """`gpu.grid_dim x`"""

    name = "gpu.grid_dim"


class ReturnOp(FormatOp):
    """`gpu.return %v : T`"""

    name = "gpu.return"

    def __init__(self, values: Sequence[Value] = ()) -> None:
        super().__init__(values)


class PrintfOp(FormatOp):
    """`gpu.printf "%d\\0A", %i : i32`"""

    name = "gpu.printf"

    def __init__(self, format: str, args: Sequence[Value] = ()) -> None:
        super().__init__(args, format=format)


OWN = (ModuleOp, GPUFuncOp, LaunchOp, LaunchFuncOp, ThreadIdOp, BlockIdOp, BlockDimOp, GridDimOp, ReturnOp, PrintfOp)
OPS = make_ops("gpu", OWN)
"""All ops of the dialect by name without prefix: `OPS["subgroup_reduce"]`."""

FuncOp = GPUFuncOp
GPU = TableDialect("gpu", OPS, attrs("gpu"), opaque_types("gpu"))


def __getattr__(name: str) -> type[TableOp]:
    """Return the op class `name`, for example `gpu.BarrierOp` or `gpu.SubgroupIdOp`."""
    found = OPS.by_class(name)
    if found is not None:
        return found
    raise AttributeError(f"module 'gpu' has no op class '{name}'")
