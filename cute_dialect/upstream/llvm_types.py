"""Types of the llvm dialect in upstream's spelling. The prefix `!llvm.` is omitted inside `!llvm<…>`:

    !llvm.struct<(ptr<1>, struct<(i32, array<4 x f32>)>)>
    LLVMStructType([LLVMPointerType(1), LLVMStructType([...])])

They replace the types of xDSL's llvm dialect, whose import takes 40 ms.
"""

from collections.abc import Sequence
from io import StringIO
from typing import ClassVar, NamedTuple, cast

from xdsl.ir import Attribute, Data, TypeAttribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from cute_dialect.ir.xdsl_compat import resume_from
from cute_dialect.upstream.attrs import at_punctuation, peek_body, raw_body


class LLVMPointerType(Data[int], TypeAttribute):
    """`!llvm.ptr<N>`, an opaque pointer to address space N.

    0 is generic, 1 global, 3 shared, 4 constant, 5 local, 7 cluster.
    """

    name = "llvm.ptr"

    def __init__(self, addr_space: int = 0) -> None:
        super().__init__(addr_space)

    @property
    def addr_space(self) -> int:
        """Address space; 0 if none is written."""
        return self.data

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> int:
        if parser.parse_optional_punctuation("<") is None:
            return 0
        space = parser.parse_integer(allow_boolean=False, allow_negative=False)
        parser.parse_punctuation(">")
        return space

    def print_parameter(self, printer: Printer) -> None:
        if self.data:
            printer.print_string(f"<{self.data}>")


class _PlainType(Data[str], TypeAttribute):
    """Type without parameters; `data` is empty."""

    def __init__(self, data: str = "") -> None:
        super().__init__(data)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        return ""

    def print_parameter(self, printer: Printer) -> None:
        pass


def _plain_type(mnemonic: str) -> type[_PlainType]:
    """Return the class of a type that only the parser names."""
    return type(f"LLVM{mnemonic.capitalize()}Type", (_PlainType,), {"name": f"llvm.{mnemonic}"})


class LLVMVoidType(_PlainType):
    """`!llvm.void`"""

    name = "llvm.void"


class LLVMTokenType(_PlainType):
    """`!llvm.token`"""

    name = "llvm.token"


class LLVMTargetExtType(Data[str], TypeAttribute):
    """`!llvm.target<"name", ...>`, stored as text."""

    name = "llvm.target"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        if not at_punctuation(parser, "<"):
            parser.raise_error("expected '<' after '!llvm.target'")
        return raw_body(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


class ArrayBody(NamedTuple):
    """Parameters of an array type."""

    size: int
    element_type: Attribute


class LLVMArrayType(Data[ArrayBody], TypeAttribute):
    """`!llvm.array<SIZE x TYPE>`"""

    name = "llvm.array"

    def __init__(self, size: int | ArrayBody, element_type: Attribute | None = None) -> None:
        if not isinstance(size, ArrayBody):
            if element_type is None:
                raise TypeError("LLVMArrayType: element_type is missing; pass a size and an element type")
            size = ArrayBody(size, element_type)
        super().__init__(size)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.data.size

    @property
    def element_type(self) -> Attribute:
        return self.data.element_type

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ArrayBody:
        parser.parse_punctuation("<")
        size = parser.parse_shape_dimension(allow_dynamic=False)
        parser.parse_shape_delimiter()
        element = parse_llvm_type(parser)
        parser.parse_punctuation(">")
        return ArrayBody(size, element)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.size} x ")
        print_llvm_type(self.element_type, printer)
        printer.print_string(">")


class StructBody(NamedTuple):
    """Parameters of a struct type.

    `types` is None for an opaque struct, and for a reference to an enclosing named struct.
    """

    types: tuple[Attribute, ...] | None
    packed: bool
    ident: str
    opaque: bool


class _Bodies:
    """Cache of struct parameters by text and of text by parameters, so that each is parsed and printed once."""

    by_text: ClassVar[dict[str, StructBody]] = {}
    texts: ClassVar[dict[int, tuple[StructBody, str]]] = {}


class LLVMStructType(Data[StructBody], TypeAttribute):
    """`!llvm.struct<(T, …)>`, `!llvm.struct<packed (T, …)>`, `!llvm.struct<"name", (T, …)>`, `!llvm.struct<"name",
    opaque>`
    """

    name = "llvm.struct"

    def __init__(
        self,
        types: Sequence[Attribute] | StructBody | None,
        *,
        packed: bool = False,
        ident: str = "",
        opaque: bool = False,
    ) -> None:
        if not isinstance(types, StructBody):
            types = StructBody(None if types is None else tuple(types), packed, ident, opaque)
        super().__init__(types)

    @property
    def types(self) -> tuple[Attribute, ...]:
        """Element types; empty for an opaque struct."""
        return self.data.types or ()

    @property
    def packed(self) -> bool:
        """True if the elements are stored without padding."""
        return self.data.packed

    @property
    def struct_name(self) -> str:
        """Name; empty for a literal struct."""
        return self.data.ident

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> StructBody:
        """Parse the parameters. The result is cached by text, because structs of accumulators have up to 128
        elements.
        """
        if not at_punctuation(parser, "<"):
            parser.raise_error("expected '<' after '!llvm.struct'")
        text, end = peek_body(parser)
        known = _Bodies.by_text.get(text)
        if known is not None:
            resume_from(parser, end)
            return known
        body = cls._parse_body(parser)
        if "!" not in text and "#" not in text:  # An alias can differ between files.
            _Bodies.by_text[text] = body
        return body

    @classmethod
    def _parse_body(cls, parser: AttrParser) -> StructBody:
        parser.parse_punctuation("<")
        ident = parser.parse_optional_str_literal()
        if ident is not None:
            if parser.parse_optional_punctuation(">") is not None:
                return StructBody(None, False, ident, False)
            parser.parse_punctuation(",")
            if parser.parse_optional_keyword("opaque") is not None:
                parser.parse_punctuation(">")
                return StructBody(None, False, ident, True)
        packed = parser.parse_optional_keyword("packed") is not None
        types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_llvm_type(parser))
        parser.parse_punctuation(">")
        return StructBody(tuple(types), packed, ident or "", False)

    def print_parameter(self, printer: Printer) -> None:
        text = _Bodies.texts.get(id(self.data))
        if text is None or text[0] is not self.data:
            out = StringIO()
            self._print_body(Printer(out))
            text = _Bodies.texts[id(self.data)] = (self.data, out.getvalue())
        printer.print_string(text[1])

    def _print_body(self, printer: Printer) -> None:
        body = self.data
        printer.print_string("<")
        if body.ident:
            printer.print_string_literal(body.ident)
            if body.types is not None or body.opaque:
                printer.print_string(", ")
        if body.opaque:
            printer.print_string("opaque")
        if body.types is not None:
            printer.print_string("packed (" if body.packed else "(")
            printer.print_list(body.types, lambda t: print_llvm_type(t, printer))
            printer.print_string(")")
        printer.print_string(">")


class FunctionBody(NamedTuple):
    """Parameters of a function type."""

    output: Attribute
    inputs: tuple[Attribute, ...]
    is_variadic: bool


class LLVMFunctionType(Data[FunctionBody], TypeAttribute):
    """`!llvm.func<OUT (IN, …)>`, with `...` at the end of the inputs when variadic."""

    name = "llvm.func"

    def __init__(
        self, inputs: Sequence[Attribute] | FunctionBody, output: Attribute | None = None, *, is_variadic: bool = False
    ) -> None:
        if not isinstance(inputs, FunctionBody):
            inputs = FunctionBody(output or LLVMVoidType(), tuple(inputs), is_variadic)
        super().__init__(inputs)

    @property
    def inputs(self) -> tuple[Attribute, ...]:
        """Types of the parameters, without `...`."""
        return self.data.inputs

    @property
    def output(self) -> Attribute:
        """Result type; `LLVMVoidType()` if there is no result."""
        return self.data.output

    @property
    def is_variadic(self) -> bool:
        """True if the function accepts more arguments after its parameters."""
        return self.data.is_variadic

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> FunctionBody:
        parser.parse_punctuation("<")
        output = parse_llvm_type(parser)
        parser.parse_punctuation("(")
        inputs: list[Attribute] = []
        variadic = False
        if parser.parse_optional_punctuation(")") is None:
            while not variadic:
                if parser.parse_optional_punctuation("...") is not None:
                    variadic = True
                    break
                inputs.append(parse_llvm_type(parser))
                if parser.parse_optional_punctuation(",") is None:
                    break
            parser.parse_punctuation(")")
        parser.parse_punctuation(">")
        return FunctionBody(output, tuple(inputs), variadic)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<")
        print_llvm_type(self.output, printer)
        printer.print_string(" (")
        printer.print_list(self.inputs, lambda t: print_llvm_type(t, printer))
        if self.is_variadic:
            printer.print_string(", ..." if self.inputs else "...")
        printer.print_string(")>")


class _Types:
    """Types of the dialect by mnemonic."""

    all: ClassVar[tuple[type[Data[object]], ...]] = cast(
        "tuple[type[Data[object]], ...]",
        (
            LLVMPointerType,
            LLVMVoidType,
            LLVMTokenType,
            *(_plain_type(name) for name in ("label", "metadata", "ppc_fp128", "x86_amx")),
            LLVMTargetExtType,
            LLVMArrayType,
            LLVMStructType,
            LLVMFunctionType,
        ),
    )
    by_mnemonic: ClassVar[dict[str, type[Data[object]]]] = {t.name.removeprefix("llvm."): t for t in all}


TYPES = _Types.all


def parse_llvm_type(parser: AttrParser) -> Attribute:
    """Parse a type as written in `!llvm<…>`: `ptr<3>`, `struct<(i32)>` or a type with its prefix."""
    mnemonic = parser.parse_optional_keyword_in(_Types.by_mnemonic)
    if mnemonic is None:
        return parser.parse_type()
    cls = _Types.by_mnemonic[mnemonic]
    return cls.new(cls.parse_parameter(parser))


def print_llvm_type(type_: Attribute, printer: Printer) -> None:
    """Print a type as written in `!llvm<…>`."""
    if isinstance(type_, _Types.all):
        printer.print_string(type_.name.removeprefix("llvm."))
        type_.print_parameter(printer)
    else:
        printer.print_attribute(type_)
