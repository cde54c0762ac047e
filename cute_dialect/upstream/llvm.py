"""The llvm dialect of upstream MLIR.

Ops that the passes use have typed constructors. The others are accessed by name (`llvm.FpextOp`) and built with the
constructor of `TableOp`.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from cute_dialect.upstream.attrs import at_punctuation, attr, attrs
from cute_dialect.upstream.constraints import numbers
from cute_dialect.upstream.format_directives import GEP_DYNAMIC, LINKAGES
from cute_dialect.upstream.lazy import TableDialect
from cute_dialect.upstream.llvm_types import (
    TYPES,
    LLVMArrayType,
    LLVMFunctionType,
    LLVMPointerType,
    LLVMStructType,
    LLVMVoidType,
)
from cute_dialect.upstream.op import FormatOp, Operand, PropertyValue, TableOp, make_ops
from cute_dialect.upstream.signature import (
    dicts_of,
    parse_signature,
    parse_types,
    print_inputs,
    print_outputs,
    print_typed,
    verify_function,
)
from cute_dialect.upstream.spec import SEGMENTS, container_element, enum_cases

_I32 = IntegerType(32)
_I64 = IntegerType(64)
_VISIBILITY = ("default", "hidden", "protected")
_UNNAMED = {"unnamed_addr": 2, "local_unnamed_addr": 1}
_TAIL_CALLS = ("none", "tail", "musttail", "notail")
_CCONVS = (
    "ccc", "fastcc", "coldcc", "ghccc", "hipe_cc",
    "anyregcc", "preserve_mostcc", "preserve_allcc", "swiftcc", "cxx_fast_tlscc",
    "tailcc", "cfguard_checkcc", "swifttailcc", "x86_stdcallcc", "x86_fastcallcc", "arm_apcscc", "arm_aapcscc",
    "arm_aapcs_vfpcc", "msp430_intrcc", "x86_thiscallcc",
    "ptx_kernelcc", "ptx_devicecc", "spir_funccc", "spir_kernelcc",
    "intel_ocl_bicc", "x86_64_sysvcc", "win64cc", "x86_vectorcallcc", "hhvmcc", "hhvm_ccc", "x86_intrcc", "avr_intrcc",
    "avr_builtincc", "amdgpu_vscc", "amdgpu_gscc", "amdgpu_cscc", "amdgpu_kernelcc", "x86_regcallcc", "amdgpu_hscc",
    "msp430_builtincc", "amdgpu_lscc", "amdgpu_escc",
    "aarch64_vectorcallcc", "aarch64_sve_vectorcallcc", "wasm_emscripten_invokecc",
    "amdgpu_gfxcc", "m68k_intrcc",
)  # fmt: skip


def _number(value: Attribute | None) -> int:
    return value.value.data if isinstance(value, IntegerAttr) else 0


def _parse_visibility(parser: Parser, properties: dict[str, Attribute]) -> None:
    word = parser.parse_optional_keyword_in(_VISIBILITY)
    properties["visibility_"] = IntegerAttr(_VISIBILITY.index(word) if word else 0, _I64)


def _parse_unnamed(parser: Parser, properties: dict[str, Attribute]) -> None:
    word = parser.parse_optional_keyword_in(_UNNAMED)
    properties["unnamed_addr"] = IntegerAttr(_UNNAMED[word] if word else 0, _I64)


def _print_words(op: TableOp, printer: Printer) -> None:
    """Print the visibility and unnamed_addr, each after a space."""
    if visibility := _number(op.properties.get("visibility_")):
        printer.print_string(f" {_VISIBILITY[visibility]}")


def _print_unnamed(op: TableOp, printer: Printer) -> None:
    if unnamed := _number(op.properties.get("unnamed_addr")):
        printer.print_string(" " + next(word for word, n in _UNNAMED.items() if n == unnamed))


def _parse_comdat(parser: Parser, properties: dict[str, Attribute]) -> None:
    if parser.parse_optional_keyword("comdat") is not None:
        with parser.in_parens():
            properties["comdat"] = parser.parse_attribute()


def _print_comdat(op: TableOp, printer: Printer) -> None:
    if (comdat := op.properties.get("comdat")) is not None:
        printer.print_string(" comdat(")
        printer.print_attribute(comdat)
        printer.print_string(")")


class FuncOp(TableOp):
    """`llvm.func @k(%p: !llvm.ptr<1> {llvm.noalias}, ...) -> i32 attributes {gpu.kernel, nvvm.kernel} { … }`

    The default linkage is external, so that a kernel is not removed.
    """

    name = "llvm.func"

    def __init__(
        self,
        sym_name: str,
        function_type: LLVMFunctionType,
        *,
        linkage: str = "external",
        body: Region | None = None,
        attributes: Mapping[str, Attribute] | None = None,
        arg_attrs: Sequence[Mapping[str, Attribute]] | None = None,
        **properties: PropertyValue,
    ) -> None:
        """Build a function, or a declaration if `body` is None. `attributes` are discardable ones such as
        `nvvm.kernel`.
        """
        if arg_attrs is not None and any(arg_attrs):
            properties["arg_attrs"] = ArrayAttr([DictionaryAttr(dict(d)) for d in arg_attrs])
        super().__init__(
            sym_name=sym_name, function_type=function_type, linkage=attr("llvm.linkage", linkage),
            CConv=attr("llvm.cconv", "ccc"), visibility_=IntegerAttr(0, _I64), unnamed_addr=IntegerAttr(0, _I64),
            regions=[body or Region()], attributes=attributes, result_types=[],
            **properties,  # pyright: ignore[reportArgumentType]
        )  # fmt: skip

    def verify_itself(self) -> None:
        super().verify_itself()
        verify_function(self, LLVMFunctionType)

    @property
    def symbol(self) -> str:
        """Name of the function."""
        return cast("StringAttr", self.properties["sym_name"]).data

    @property
    def type(self) -> LLVMFunctionType:
        return cast("LLVMFunctionType", self.properties["function_type"])

    @property
    def body(self) -> Region:
        """Body of the function; it has no blocks for a declaration."""
        return self.regions[0]

    @property
    def entry(self) -> Block:
        """Entry block of a function with a body."""
        return self.regions[0].block if len(self.regions[0].blocks) == 1 else self.regions[0].blocks[0]

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties: dict[str, Attribute] = {}
        properties["linkage"] = attr("llvm.linkage", parser.parse_optional_keyword_in(LINKAGES) or "external")
        _parse_visibility(parser, properties)
        _parse_unnamed(parser, properties)
        properties["CConv"] = attr("llvm.cconv", parser.parse_optional_keyword_in(_CCONVS) or "ccc")
        properties["sym_name"] = parser.parse_symbol_name()
        pos = parser.pos
        signature = parse_signature(parser, allow_variadic=True)
        if len(signature.outputs) > 1:
            parser.raise_error(f"expected at most one result, got {len(signature.outputs)}", pos)
        output = signature.outputs[0] if signature.outputs else LLVMVoidType()
        properties["function_type"] = LLVMFunctionType(signature.inputs, output, is_variadic=signature.variadic)
        properties |= signature.properties()
        if parser.parse_optional_keyword("vscale_range") is not None:
            with parser.in_parens():
                least = parser.parse_integer()
                parser.parse_punctuation(",")
                most = parser.parse_integer()
            properties["vscale_range"] = attr("llvm.vscale_range", f"minRange = {least} : i32, maxRange = {most} : i32")
        _parse_comdat(parser, properties)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = Region()
        if at_punctuation(parser, "{"):
            body = parser.parse_region(signature.names)
        elif signature.names:
            parser.raise_error("expected '{' and the body of the function")
        return cls.create(properties=properties, attributes=attributes.data if attributes else {}, regions=[body])

    def print(self, printer: Printer) -> None:
        props = self.properties
        if (linkage := getattr(props.get("linkage"), "data", "external")) != "external":
            printer.print_string(f" {linkage}")
        _print_words(self, printer)
        _print_unnamed(self, printer)
        if (cconv := getattr(props.get("CConv"), "data", "ccc")) != "ccc":
            printer.print_string(f" {cconv}")
        printer.print_string(" ")
        printer.print_symbol_name(self.symbol)
        type_, body = self.type, self.regions[0]
        args = body.blocks[0].args if body.blocks else type_.inputs
        print_inputs(printer, args, props.get("arg_attrs"), type_.is_variadic)
        output = () if isinstance(type_.output, LLVMVoidType) else (type_.output,)
        print_outputs(printer, output, props.get("res_attrs"))
        if (scale := props.get("vscale_range")) is not None:
            numbers = [text.split(":")[0].strip() for text in scale.fields().values()]  # pyright: ignore
            printer.print_string(f" vscale_range({numbers[0]}, {numbers[1]})")
        _print_comdat(self, printer)
        elided = {
            "linkage", "visibility_", "unnamed_addr", "CConv", "sym_name", "function_type", "arg_attrs", "res_attrs",
            "vscale_range", "comdat",
        }  # fmt: skip
        shown = {k: v for k, v in props.items() if k not in elided} | self.attributes
        printer.print_op_attributes(dict(sorted(shown.items())), print_keyword=True)
        if body.blocks:
            printer.print_string(" ")
            printer.print_region(body, print_entry_block_args=False, print_empty_block=False)


class GlobalOp(TableOp):
    """`llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>`"""

    name = "llvm.mlir.global"

    def __init__(
        self,
        sym_name: str,
        global_type: Attribute,
        *,
        linkage: str = "internal",
        addr_space: int = 0,
        alignment: int | None = None,
        constant: bool = False,
        value: Attribute | None = None,
        body: Region | None = None,
    ) -> None:
        super().__init__(
            sym_name=sym_name, global_type=global_type, linkage=attr("llvm.linkage", linkage), addr_space=addr_space,
            alignment=alignment, constant=constant, value=value, regions=[body or Region()], result_types=[],
        )  # fmt: skip

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties: dict[str, Attribute] = {}
        properties["linkage"] = attr("llvm.linkage", parser.parse_optional_keyword_in(LINKAGES) or "external")
        _parse_visibility(parser, properties)
        for word, name in (("thread_local", "thread_local_"),):
            if parser.parse_optional_keyword(word) is not None:
                properties[name] = UnitAttr()
        _parse_unnamed(parser, properties)
        if parser.parse_optional_keyword("constant") is not None:
            properties["constant"] = UnitAttr()
        properties["sym_name"] = parser.parse_symbol_name()
        parser.parse_punctuation("(")
        if parser.parse_optional_punctuation(")") is None:
            properties["value"] = parser.parse_attribute()
            parser.parse_punctuation(")")
        _parse_comdat(parser, properties)
        attributes = parser.parse_optional_attr_dict()
        value = properties.get("value")
        if parser.parse_optional_punctuation(":") is not None:
            properties["global_type"] = parser.parse_type()
        elif isinstance(value, StringAttr):
            properties["global_type"] = LLVMArrayType(len(value.data.encode()), IntegerType(8))
        else:
            parser.raise_error("expected ':' and the type of the global")
        body = parser.parse_optional_region() or Region()
        return cls.create(properties=properties, attributes=attributes, regions=[body])

    def print(self, printer: Printer) -> None:
        props = self.properties
        printer.print_string(f" {getattr(props.get('linkage'), 'data', 'external')}")
        _print_words(self, printer)
        if "thread_local_" in props:
            printer.print_string(" thread_local")
        _print_unnamed(self, printer)
        if "constant" in props:
            printer.print_string(" constant")
        printer.print_string(" ")
        printer.print_symbol_name(cast("StringAttr", props["sym_name"]).data)
        printer.print_string("(")
        value = props.get("value")
        if value is not None:
            printer.print_attribute(value)
        printer.print_string(")")
        _print_comdat(self, printer)
        elided = {
            "linkage", "visibility_", "unnamed_addr", "thread_local_",
            "constant", "sym_name", "value", "global_type", "comdat",
        }  # fmt: skip
        shown = {k: v for k, v in props.items() if k not in elided} | self.attributes
        printer.print_op_attributes(dict(sorted(shown.items())))
        if not isinstance(value, StringAttr):
            printer.print_string(" : ")
            printer.print_attribute(props["global_type"])
        if self.regions[0].blocks:
            printer.print_string(" ")
            printer.print_region(self.regions[0])


class CallOp(TableOp):
    """`llvm.call @f(%a) vararg(!llvm.func<i32 (ptr, ...)>) : (!llvm.ptr) -> i32`; an indirect call is `llvm.call
    %fp(%a) : !llvm.ptr, (i32) -> ()`
    """

    name = "llvm.call"

    def __init__(
        self,
        callee: str | SymbolRefAttr | None,
        operands: Sequence[SSAValue | Operation] = (),
        result_type: Attribute | None = None,
        *,
        var_callee_type: LLVMFunctionType | None = None,
    ) -> None:
        """Build a call of `callee`. Without `callee`, the first operand is the function pointer.

        `var_callee_type` is required for a variadic callee.
        """
        super().__init__(
            operands, callee=callee, var_callee_type=var_callee_type, op_bundle_sizes=[],
            CConv=attr("llvm.cconv", "ccc"), TailCallKind=attr("llvm.tailcallkind", "none"),
            fastmathFlags=attr("llvm.fastmath", "none"),
            result_types=[] if result_type is None else [result_type],
        )  # fmt: skip

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties: dict[str, Attribute] = {}
        properties["CConv"] = attr("llvm.cconv", parser.parse_optional_keyword_in(_CCONVS) or "ccc")
        properties["TailCallKind"] = attr("llvm.tailcallkind", parser.parse_optional_keyword_in(_TAIL_CALLS) or "none")
        pointer = parser.parse_optional_unresolved_operand()
        if pointer is None:
            properties["callee"] = parser.parse_attribute()
        values = parser.parse_op_args_list()
        if parser.parse_optional_keyword("vararg") is not None:
            with parser.in_parens():
                properties["var_callee_type"] = parser.parse_type()
        if at_punctuation(parser, "["):
            parser.raise_error("operand bundles are not supported in the custom form, write the op in generic form")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        pos = parser.pos
        operands: list[SSAValue] = []
        if pointer is not None:
            operands.append(parser.resolve_operand(pointer, parser.parse_type()))
            parser.parse_punctuation(",")
            pos = parser.pos
        inputs, outputs = list[Attribute](), list[Attribute]()
        in_dicts, out_dicts = list[dict[str, Attribute]](), list[dict[str, Attribute]]()
        if not at_punctuation(parser, "("):
            parser.raise_error("expected '(' and the types of the operands")
        parse_types(parser, inputs, in_dicts)
        parser.parse_punctuation("->")
        parse_types(parser, outputs, out_dicts)
        for name, dicts in (("arg_attrs", in_dicts), ("res_attrs", out_dicts)):
            if any(dicts):
                properties[name] = ArrayAttr([DictionaryAttr(d) for d in dicts])
        operands += parser.resolve_operands(values, inputs, pos)
        outputs = [] if outputs == [LLVMVoidType()] else outputs
        if "fastmathFlags" not in attributes:
            properties["fastmathFlags"] = attr("llvm.fastmath", "none")
        properties["op_bundle_sizes"] = DenseArrayBase.from_list(_I32, [])
        properties[SEGMENTS[0]] = DenseArrayBase.from_list(_I32, [len(operands), 0])
        return cls.create(operands=operands, result_types=outputs, properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        props = self.properties
        if (cconv := getattr(props.get("CConv"), "data", "ccc")) != "ccc":
            printer.print_string(f" {cconv}")
        if (tail := getattr(props.get("TailCallKind"), "data", "none")) != "none":
            printer.print_string(f" {tail}")
        printer.print_string(" ")
        values = self.group(self.spec().operands[0].name)
        callee = props.get("callee")
        if callee is None:
            printer.print_ssa_value(values[0])
        else:
            printer.print_attribute(callee)
        args = values if callee is not None else values[1:]
        printer.print_operands(args)
        if (variadic := props.get("var_callee_type")) is not None:
            printer.print_string(" vararg(")
            printer.print_attribute(variadic)
            printer.print_string(")")
        elided = {
            "CConv", "TailCallKind", "callee", "var_callee_type", "op_bundle_sizes", "arg_attrs", "res_attrs", *SEGMENTS
        }  # fmt: skip
        none = attr("llvm.fastmath", "none")
        shown = {k: v for k, v in props.items() if k not in elided and not (k == "fastmathFlags" and v == none)}
        printer.print_op_attributes(dict(sorted((shown | self.attributes).items())))
        printer.print_string(" : ")
        if callee is None:
            printer.print_attribute(values[0].type)
            printer.print_string(", ")
        dicts = dicts_of(props.get("arg_attrs"), len(args))
        printer.print_string("(")
        printer.print_list(list(zip(args, dicts)), lambda pair: print_typed(printer, pair[0].type, pair[1]))
        printer.print_string(")")
        if self.results:
            print_outputs(printer, self.result_types, props.get("res_attrs"))
        else:
            printer.print_string(" -> ()")


class CallIntrinsicOp(TableOp):
    """`llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%x) : (f32) -> f32`"""

    name = "llvm.call_intrinsic"

    def __init__(self, intrin: str, args: Operand = (), result_type: Attribute | None = None) -> None:
        super().__init__(
            args, intrin=StringAttr(intrin), op_bundle_sizes=[], fastmathFlags=attr("llvm.fastmath", "none"),
            result_types=[] if result_type is None else [result_type],
        )  # fmt: skip

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties: dict[str, Attribute] = {"intrin": StringAttr(parser.parse_str_literal())}
        values = parser.parse_op_args_list()
        if at_punctuation(parser, "["):
            parser.raise_error("operand bundles are not supported in the custom form, write the op in generic form")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        pos = parser.pos
        signature = parser.parse_function_type()
        operands = parser.resolve_operands(values, signature.inputs.data, pos)
        if "fastmathFlags" not in attributes:
            properties["fastmathFlags"] = attr("llvm.fastmath", "none")
        properties["op_bundle_sizes"] = DenseArrayBase.from_list(_I32, [])
        properties[SEGMENTS[0]] = DenseArrayBase.from_list(_I32, [len(operands), 0])
        return cls.create(
            operands=operands, result_types=signature.outputs.data, properties=properties, attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.properties["intrin"])
        printer.print_operands(self.operands)
        none = attr("llvm.fastmath", "none")
        elided = {"intrin", "op_bundle_sizes", *SEGMENTS}
        shown = {
            k: v for k, v in self.properties.items() if k not in elided and not (k == "fastmathFlags" and v == none)
        }
        printer.print_op_attributes(shown | self.attributes)
        printer.print_string(" : ")
        printer.print_operation_type(self)


class CmpOp(TableOp):
    """Base of `llvm.icmp` and `llvm.fcmp`: `llvm.icmp "eq" %a, %b : i32`."""

    enum: ClassVar[str]

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation, predicate: str) -> None:
        super().__init__(lhs, rhs, predicate=IntegerAttr(self.cases()[predicate], _I64))

    @classmethod
    def cases(cls) -> dict[str, int]:
        """Return the predicates with their numbers."""
        return enum_cases("llvm", cls.enum)

    @property
    def predicate_word(self) -> str:
        """Predicate in upstream's spelling: `slt`, `oeq`."""
        number = cast("IntegerAttr", self.properties["predicate"]).value.data
        return next(word for word, value in self.cases().items() if value == number)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        pos = parser.pos
        word = parser.parse_optional_str_literal() or parser.parse_identifier()
        if word not in cls.cases():
            parser.raise_error(f"expected one of {', '.join(cls.cases())}, got '{word}'", pos)
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        rhs = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        operands = [parser.resolve_operand(lhs, type_), parser.resolve_operand(rhs, type_)]
        made = cls(operands[0], operands[1], word)
        return cls.create(
            operands=operands, result_types=made.result_types, properties=made.properties, attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f' "{self.predicate_word}" ')
        printer.print_list(self.operands, printer.print_ssa_value)
        shown = {k: v for k, v in self.properties.items() if k != "predicate" and v != attr("llvm.fastmath", "none")}
        printer.print_op_attributes(shown | self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operands[0].type)


class ICmpOp(CmpOp):
    """`llvm.icmp "slt" %a, %b : i32`"""

    name = "llvm.icmp"
    enum = "ICmpPredicate"


class FCmpOp(CmpOp):
    """`llvm.fcmp "olt" %a, %b : f32`"""

    name = "llvm.fcmp"
    enum = "FCmpPredicate"


class AllocaOp(TableOp):
    """`llvm.alloca %n x i32 {alignment = 8 : i64} : (i64) -> !llvm.ptr`"""

    name = "llvm.alloca"

    def __init__(
        self, size: SSAValue | Operation, elem_type: Attribute, *, alignment: int | None = None, addr_space: int = 0
    ) -> None:
        super().__init__(size, elem_type=elem_type, alignment=alignment, result_types=[LLVMPointerType(addr_space)])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        inalloca = parser.parse_optional_keyword("inalloca")
        size = parser.parse_unresolved_operand()
        parser.parse_keyword("x")
        element = parser.parse_type()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        pos = parser.pos
        signature = parser.parse_function_type()
        operands = parser.resolve_operands([size], signature.inputs.data, pos)
        properties: dict[str, Attribute] = {"elem_type": element}
        if inalloca is not None:
            properties["inalloca"] = cls.spec().attrs["inalloca"].convert(True)
        return cls.create(
            operands=operands, result_types=signature.outputs.data, properties=properties, attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" inalloca " if "inalloca" in self.properties else " ")
        printer.print_ssa_value(self.operands[0])
        printer.print_string(" x ")
        printer.print_attribute(self.properties["elem_type"])
        shown = {k: v for k, v in self.properties.items() if k not in ("elem_type", "inalloca")}
        printer.print_op_attributes(shown | self.attributes)
        printer.print_string(" : ")
        printer.print_operation_type(self)


class LoadOp(FormatOp):
    """`llvm.load %p {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>`"""

    name = "llvm.load"

    def __init__(
        self,
        addr: SSAValue | Operation,
        type: Attribute,
        *,
        alignment: int | None = None,
        volatile: bool = False,
        nontemporal: bool = False,
        invariant: bool = False,
        ordering: str | None = None,
        syncscope: str | None = None,
    ) -> None:
        super().__init__(
            addr, result_types=[type], alignment=alignment, volatile_=volatile, nontemporal=nontemporal,
            invariant=invariant, ordering=ordering, syncscope=syncscope,
        )  # fmt: skip


class StoreOp(FormatOp):
    """`llvm.store %v, %p {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>`"""

    name = "llvm.store"

    def __init__(
        self,
        value: SSAValue | Operation,
        addr: SSAValue | Operation,
        *,
        alignment: int | None = None,
        volatile: bool = False,
        nontemporal: bool = False,
        ordering: str | None = None,
        syncscope: str | None = None,
    ) -> None:
        super().__init__(
            value, addr, alignment=alignment, volatile_=volatile, nontemporal=nontemporal, ordering=ordering,
            syncscope=syncscope,
        )  # fmt: skip


class GEPOp(FormatOp):
    """`llvm.getelementptr %p[%i, 2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32`: the address of an element.

    `indices` are numbers or values. The first index is in units of `elem_type`; the others select elements in it.
    """

    name = "llvm.getelementptr"

    def __init__(
        self,
        base: SSAValue | Operation,
        indices: Sequence[int | SSAValue | Operation],
        elem_type: Attribute,
        *,
        inbounds: bool = False,
        result_type: Attribute | None = None,
    ) -> None:
        dynamic = [i for i in indices if not isinstance(i, int)]
        raw = [i if isinstance(i, int) else GEP_DYNAMIC for i in indices]
        super().__init__(
            base, dynamic, rawConstantIndices=raw, elem_type=elem_type, noWrapFlags=3 if inbounds else None,
            result_types=[result_type or SSAValue.get(base).type],
        )  # fmt: skip


class ExtractValueOp(FormatOp):
    """`llvm.extractvalue %s[0, 1] : !llvm.struct<…>`"""

    name = "llvm.extractvalue"

    def __init__(self, container: SSAValue | Operation, position: Sequence[int]) -> None:
        super().__init__(container, position=position)

    def verify_(self) -> None:
        super().verify_()
        _check_position(self, self.operands[0].type, self.results[0].type)


class InsertValueOp(FormatOp):
    """`llvm.insertvalue %v, %s[0, 1] : !llvm.struct<…>`"""

    name = "llvm.insertvalue"

    def __init__(self, container: SSAValue | Operation, value: SSAValue | Operation, position: Sequence[int]) -> None:
        super().__init__(container, value, position=position)

    def verify_(self) -> None:
        super().verify_()
        _check_position(self, self.operands[0].type, self.operands[1].type)


def _check_position(op: TableOp, container: Attribute, element: Attribute) -> None:
    position = numbers(op.properties["position"])
    inner = container_element(container, position)
    if inner != element:
        raise VerifyException(f"element {list(position)} of {container} is {inner}, got {element}")


class _ValueOp(FormatOp):
    """Base of the ops that return a value of their result type: poison, undef, zero."""

    def __init__(self, type: Attribute) -> None:
        super().__init__(result_types=[type])


class PoisonOp(_ValueOp):
    """`llvm.mlir.poison : T`"""

    name = "llvm.mlir.poison"


class UndefOp(_ValueOp):
    """`llvm.mlir.undef : T`"""

    name = "llvm.mlir.undef"


class ZeroOp(_ValueOp):
    """`llvm.mlir.zero : T`: all bits are zero."""

    name = "llvm.mlir.zero"


class ConstantOp(FormatOp):
    """`llvm.mlir.constant(42 : i32) : i32`"""

    name = "llvm.mlir.constant"

    def __init__(self, value: Attribute | int, type: Attribute) -> None:
        if isinstance(value, int):
            value = IntegerAttr(value, cast("IntegerType", type))
        super().__init__(value=value, result_types=[type])


class AddressOfOp(FormatOp):
    """`llvm.mlir.addressof @name : !llvm.ptr<3>`"""

    name = "llvm.mlir.addressof"

    def __init__(self, global_name: str | SymbolRefAttr, type: Attribute) -> None:
        super().__init__(global_name=global_name, result_types=[type])


class ReturnOp(FormatOp):
    """`llvm.return %v : T`"""

    name = "llvm.return"

    def __init__(self, value: SSAValue | Operation | None = None) -> None:
        super().__init__(value)


class InlineAsmOp(FormatOp):
    """`llvm.inline_asm has_side_effects "bar.sync 0;", "~{memory}" : () -> ()`"""

    name = "llvm.inline_asm"

    def __init__(
        self,
        asm_string: str,
        constraints: str,
        operands: Operand = (),
        result_type: Attribute | None = None,
        *,
        has_side_effects: bool = False,
        is_align_stack: bool = False,
    ) -> None:
        super().__init__(
            operands, asm_string=StringAttr(asm_string), constraints=StringAttr(constraints),
            has_side_effects=has_side_effects, is_align_stack=is_align_stack,
            asm_dialect=0, result_types=[] if result_type is None else [result_type],
        )  # fmt: skip


OWN = (
    ICmpOp, FCmpOp, AllocaOp, LoadOp, StoreOp, GEPOp,
    ExtractValueOp, InsertValueOp, PoisonOp, UndefOp, ZeroOp, ConstantOp,
    AddressOfOp, ReturnOp, InlineAsmOp, FuncOp, CallOp, CallIntrinsicOp, GlobalOp,
)  # fmt: skip
OPS = make_ops("llvm", OWN)
"""All ops of the dialect by name without prefix: `OPS["intr.fma"]`."""

LLVM = TableDialect("llvm", OPS, attrs("llvm"), TYPES)


def __getattr__(name: str) -> type[TableOp]:
    """Return the op class `name`, for example `llvm.AddrspacecastOp` or `llvm.IntrFmaOp`."""
    found = OPS.by_class(name)
    if found is not None:
        return found
    raise AttributeError(f"module 'llvm' has no op class '{name}'")


__all__ = [
    "LLVM", "OPS", "AddressOfOp", "AllocaOp", "CallIntrinsicOp",
    "CallOp", "ConstantOp", "ExtractValueOp", "FCmpOp", "FuncOp",
    "GEPOp", "GlobalOp", "ICmpOp", "InlineAsmOp",
    "InsertValueOp", "LLVMArrayType", "LLVMFunctionType", "LLVMPointerType",
    "LLVMStructType", "LLVMVoidType", "LoadOp", "PoisonOp",
    "ReturnOp", "StoreOp", "UndefOp", "ZeroOp",
]  # fmt: skip
