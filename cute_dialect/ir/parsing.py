"""Parser for IR: xDSL's parser extended with locations and better error messages.

:class:`LocatedParser` differs from xDSL's parser in the following points only:

* Each op has the location of its name, and each block argument that of its ``%name``, as in upstream MLIR.  An explicit
  location (``loc("f":1:2)``) takes precedence, and its alias may be defined later.
* Errors for unknown ops, types, attributes and dialects suggest the most similar name.  Unknown ops of a registered
  dialect are errors even if the context allows unregistered dialects.
* A value that is used but never defined is reported at its first use, within the enclosing function.
* With ``core_only`` a divisibility (``?{div=8}``) is an error, because it is not part of the core dialect.

:func:`parse_module` reports all errors as diagnostics.

**Aliases.** A short text can denote a huge value.  Forty lines in which each alias uses the one before it twice
(``!a1 = tuple<!a0, !a0>``) denote a type with 2^40 parts, and ``dense<0> : vector<4294967296xi32>`` denotes 16 GiB.
Hashing and printing such values takes time in proportion to their expanded size.  :class:`AliasReader` therefore counts
the characters and elements after expansion.  The limit is a constant plus a multiple of the length of the text, so
parsing and printing take linear time.

**Locations.** Upstream prints location aliases after the ops that use them, so ``loc(#loc3)`` may come long before
``#loc3 = loc("f.mlir":1:2)``.  The parser records such a use as a placeholder, which
:meth:`LocationReader.resolve_locations` replaces at the end.  A range (``"f.mlir":1:2 to :9``) is reduced to its start,
and a fused location keeps its parts.

>>> meant_type("float32", ()), meant_type("cute.layout", ["cute.layout"]), meant_type("F16", ())
('f32', '!cute.layout', 'f16')
"""

from __future__ import annotations

import math
import re
import struct
from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, NoReturn, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    DenseArrayBase,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    NameLoc,
    NoneAttr,
    StringAttr,
    UnknownLoc,
    UnregisteredAttr,
    UnregisteredOp,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue, TypeAttribute
from xdsl.parser import UnresolvedOperand
from xdsl.parser.generic_parser import ParserState
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import (
    MultipleSpansParseError,
    ParseError,
    UnregisteredConstructException,
    VerifyException,
)
from xdsl.utils.hints import isa
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from cute_dialect.ir.diagnostics import (
    DiagnosticEngine,
    Source,
    did_you_mean,
    limit_message,
    location_position,
    nearest,
)
from cute_dialect.ir.editing import make_op
from cute_dialect.ir.lexing import QuickLexer, QuickParser, QuickToken
from cute_dialect.ir.text_limits import room, too_much

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, ShapedType
    from xdsl.ir import Attribute


# ---------------------------------------------------------------------------------------------------------- suggestions


_MEANT: Mapping[str, str] = {
    "float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16", "bfloat16": "bf16",
    "int": "i32", "uint": "i32", "integer": "i32", "unsigned": "i32", "long": "i64", "short": "i16", "char": "i8",
    "byte": "i8", "bool": "i1", "boolean": "i1", "size_t": "index", "idx": "index",
    "fp8": "f8E4M3FN", "float8": "f8E4M3FN", "e4m3": "f8E4M3FN", "e4m3fn": "f8E4M3FN", "f8e4m3fn": "f8E4M3FN",
    "e5m2": "f8E5M2", "f8e5m2": "f8E5M2", "tfloat32": "tf32", "ptr": "!llvm.ptr", "pointer": "!llvm.ptr",
    "array": "memref", "buffer": "memref", "vec": "vector",
}  # fmt: skip
"""Names of types in other languages -> types of MLIR."""
_SIZED: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"(?:float|fp|f)_?(16|32|64|128)(?:_t)?"), r"f\1"),
    (re.compile(r"(?:u?int|integer|[usi])_?(\d{1,4})(?:_t)?"), r"i\1"),
)
_WORDS = ("index", "bf16", "tf32", "f8E4M3FN", "f8E5M2", "vector", "memref", "tensor", "tuple", "complex", "none")
_EXAMPLES = 'i32, index, f16, bf16, f32, vector<4xf32>, memref<4xf32>, !llvm.ptr, !cute.layout<"4:1">, (i32) -> f32'


def meant_type(word: str, types: Collection[str]) -> str:
    """Return the type that ``word`` names in another language or resembles, or "".

    ``types`` lists the types of all dialects.
    """
    bare = word.lstrip("!")
    if bare in types:
        return f"!{bare}"
    small = bare.lower()
    if small in _MEANT:
        return _MEANT[small]
    for pattern, instead in _SIZED:
        if pattern.fullmatch(small):
            return pattern.sub(instead, small)
    if small in _WORDS:
        return small
    found = nearest(bare, [*_WORDS, *types])
    return f"!{found[0]}" if found and found[0] in types else found[0] if found else ""


def no_type(word: str, types: Collection[str]) -> str:
    """Return the message for a missing type: the token found, and a suggestion or examples.

    >>> no_type("half", ())
    "type expected, got 'half'; did you mean 'f16'?"
    """
    seen = f"'{word}'" if word else "the end of the input"
    meant = meant_type(word, types) if word[:1].isalpha() else ""
    hint = f"; did you mean '{meant}'?" if meant else f" (examples of types: {_EXAMPLES})"
    return f"type expected, got {seen}{hint}"


def meant_op(name: str, known: Iterable[str]) -> str:
    """Return the op that an unknown name most likely means, or "": a similar name, or the same name in another dialect.

    >>> meant_op("cute.addi", ["arith.addi", "cute.dice"]), meant_op("addi", ["arith.addi"])
    ('arith.addi', 'arith.addi')
    """
    names = sorted(set(known))
    dialect, _, rest = name.rpartition(".")
    near = nearest(name, [n for n in names if n.startswith(f"{name.partition('.')[0]}.")] if dialect else [])
    if near and _share(near[0], name) > 0.85:
        return near[0]
    alike = [n for n in names if n.endswith(f".{rest}")]
    if alike:
        return min(alike, key=lambda n: (n.count("."), len(n), n))
    if near:
        return near[0]
    by_end = {n.partition(".")[2]: n for n in reversed(names)}
    end = nearest(rest, by_end)
    return by_end[end[0]] if end else next(iter(nearest(name, names)), "")


def _share(one: str, other: str) -> float:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, one, other).ratio()


# -------------------------------------------------------------------------------------------------------------- aliases


class AliasReader(QuickParser):
    """xDSL's parser with a bound on the expanded size of aliases and dense constants."""

    alias_sizes: dict[str, int]
    """Alias -> its expanded size in characters."""
    expanded: int
    """Number of characters and elements expanded so far."""

    def stand_for(self, size: int, what: str, span: Span) -> None:
        """Add ``size`` expanded characters or elements of ``what``.  Raises ParseError if the limit is exceeded."""
        self.expanded += size
        if self.expanded > room(self.lexer.input.len):
            self.raise_error(too_much(what, self.expanded, self.lexer.input.len), span)

    def use_alias(self, name: str, span: Span) -> None:
        """Count a use of an alias; ``name`` includes its ``!`` or ``#``.  Raises ParseError."""
        size = self.alias_sizes.get(name)
        if size is not None:
            self.stand_for(size, f"the alias '{name}' of {size}", span)

    def parse_alias_def(self) -> None:
        """Parse the definition of an alias and record its expanded size."""
        name, before, start = self.current_token.text, self.expanded, self.pos
        super().parse_alias_def()
        self.alias_sizes[name] = self.expanded - before + self.pos - start

    def parse_extended_type_or_attribute(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, attr_or_dialect_name: str, is_type: bool
    ) -> Attribute:
        """Parse an alias, or a type or attribute of a dialect.  Uses of aliases are counted."""
        if "." not in attr_or_dialect_name:
            name = ("!" if is_type else "#") + attr_or_dialect_name
            at = self.lexer.input.content.rfind(name, 0, self.pos)
            self.use_alias(name, Span(max(at, 0), max(at, 0) + len(name), self.lexer.input))
        return super().parse_extended_type_or_attribute(attr_or_dialect_name, is_type)  # pyright: ignore

    # ------------------------------------------------------------------------------------------------ constants

    def parse_optional_builtin_int_or_float_attr(self) -> IntegerAttr | FloatAttr | None:
        """Parse a typed number if one is next.  Raises ParseError."""
        at = self.current_token
        try:
            return super().parse_optional_builtin_int_or_float_attr()
        except OverflowError:
            self.raise_error("hexadecimal float constant out of range for its type", at.start, max(self.pos, at.end))

    def parse_dense_literal_type(self):
        """Parse the type of a dense constant and count its elements."""
        start = self.current_token
        found = super().parse_dense_literal_type()
        self._check_dense(found, Span(start.start, max(self.pos, start.end), self.lexer.input))
        return found

    def parse_dense_int_or_fp_elements_attr(self, type: Attribute | None) -> DenseIntOrFPElementsAttr:  # pyright: ignore
        """Parse the elements of a dense constant whose type is given or follows.  Raises ParseError."""
        at = self.current_token
        if type is not None:
            self._check_dense(type, at.span)
        try:
            return super().parse_dense_int_or_fp_elements_attr(type)  # pyright: ignore[reportArgumentType]
        except (
            NotImplementedError,
            OverflowError,
            ValueError,
            struct.error,
        ):  # xDSL packs elements with Python's struct module, which has no format for other types.
            self.raise_error(
                "expected elements that fit their type, of at most 64 bits, in a dense constant", at.start, self.pos
            )

    def _check_dense(self, type: Attribute, span: Span) -> None:
        """Count the elements of a dense constant of a type.  Raises ParseError."""
        count = math.prod(cast("ShapedType", type).get_shape())
        if count > 0:
            self.stand_for(count, f"a dense constant of {count}", span)


# ------------------------------------------------------------------------------------------------------------ locations


_PLACEHOLDER = "\0alias "
"""Prefix of the name of a placeholder, which cannot occur in a text."""


class LocationReader(AliasReader):
    """xDSL's parser with support for all locations of upstream MLIR."""

    waiting: dict[str, Span]
    """Location aliases used before their definition, with the span of the first use."""

    def parse_location(self) -> LocationAttr:
        """Parse the content of ``loc(…)``."""
        token = self.current_token
        if token.kind is MLIRTokenKind.HASH_IDENT and token.text not in self.attribute_aliases:
            self.consume_token()
            self.waiting.setdefault(token.text, token.span)
            return NameLoc(StringAttr(_PLACEHOLDER + token.text), NoneAttr())
        if token.text == "fused":
            self.consume_token()
            if self.parse_optional_punctuation("<") is not None:
                self.parse_attribute()
                self.parse_punctuation(">")
            return FusedLoc(
                tuple(self.parse_comma_separated_list(self.Delimiter.SQUARE, self.parse_location)), NoneAttr()
            )
        location = super().parse_location()
        if isinstance(location, FileLineColLoc) and self.parse_optional_keyword("to") is not None:
            self.parse_optional_integer(False, False)
            self.parse_punctuation(":")
            self.parse_integer(False, False)
        return location

    def resolve_locations(self, op: Operation) -> None:
        """Replace the placeholders in the locations of ``op`` and all nested ops.  Raises ParseError."""
        if not self.waiting:
            return
        for name, span in self.waiting.items():
            if name not in self.attribute_aliases:
                self.raise_error(f"undefined symbol alias '{name}'", span)
            if not isa(self.attribute_aliases[name], LocationAttr):
                self.raise_error(f"expected a location, but the alias '{name}' is another kind of attribute", span)
        resolved: dict[str, LocationAttr | None] = {}
        for inner in op.walk():
            inner.location = self._known(inner.location, resolved)
            for region in inner.regions:
                for block in region.blocks:
                    for argument in block.args:
                        argument.location = self._known(argument.location, resolved)

    def _known(self, location: Attribute, resolved: dict[str, LocationAttr | None]) -> LocationAttr:
        """Return a location with placeholders replaced; ``resolved`` is the cache, with None for aliases in
        progress.
        """
        if isinstance(location, NameLoc):
            if location.desc.data.startswith(_PLACEHOLDER):
                return self._named(location.desc.data.removeprefix(_PLACEHOLDER), resolved)
            inner = location.location
            return location if isinstance(inner, NoneAttr) else NameLoc(location.desc, self._known(inner, resolved))
        if isinstance(location, CallSiteLoc):
            return CallSiteLoc(self._known(location.callee, resolved), self._known(location.caller, resolved))
        if isinstance(location, FusedLoc):
            parts = cast("ArrayAttr[Attribute]", location.locations)
            return FusedLoc(tuple(self._known(part, resolved) for part in parts), location.metadata)
        return cast("LocationAttr", location)

    def _named(self, name: str, resolved: dict[str, LocationAttr | None]) -> LocationAttr:
        """Return the location of an alias that was used before its definition.  Raises ParseError."""
        span = self.waiting[name]
        if name not in resolved:
            resolved[name] = None
            before = self.expanded
            resolved[name] = self._known(self.attribute_aliases[name], resolved)
            self.alias_sizes[name] += self.expanded - before
            self.expanded = before
        found = resolved[name]
        if found is None:
            self.raise_error(f"the alias '{name}' refers to itself", span)
        self.use_alias(name, span)
        return found


# ----------------------------------------------------------------------------------------------------------- the parser


MAX_INTEGER_WIDTH = (1 << 24) - 1
"""Largest width of an integer type, as in upstream MLIR.  xDSL itself has no limit."""

_SIMPLE_BODY = re.compile(r'<(?:[^<>"#!\\/]|"[^"\\]*+")*+>')
_INTEGER_TYPE = re.compile(r"[su]?i(\d+)")
_DIV = re.compile(r"\?\s*\{[^}]*?\b(div\s*=)")


_VALUE = re.compile(r"%([0-9]++|[a-zA-Z$._-][a-zA-Z0-9$._-]*+)")
_EQUALS = re.compile(r"\s*+=", re.ASCII)
_BLANK = re.compile(r"(?:\s++|//[^\n]*+)*+", re.ASCII)
_NEXT = re.compile(
    rf"{_BLANK.pattern}(?:[}}^]|\Z|[a-zA-Z_][a-zA-Z0-9_$]*+\.|"
    rf"{_VALUE.pattern}(?::[0-9]++)?(?:\s*+,\s*+{_VALUE.pattern}(?::[0-9]++)?)*+\s*+=)",
    re.ASCII,
)
"""Text that may follow an op that ends with its line: the end of the block, or the next op."""
_MAX_LINE = 2000
_NO_TYPE = ("type expected", "Expected shape type.", "Expected vector element type", "Expected argument or type")
"""Messages of xDSL for a missing type."""


class _Form(NamedTuple):
    """An op without its operands and location."""

    op_type: type[Operation]
    operand_types: tuple[Attribute, ...]
    result_types: tuple[Attribute, ...]
    properties: Mapping[str, Attribute]


class LocatedParser(LocationReader):
    """xDSL's parser with locations and better error messages, as described in the module's docstring.

    ``source`` is the text to parse.  Its name and line offset appear in the locations.
    """

    def __init__(self, ctx: Context, source: Source, *, core_only: bool = False):
        super().__init__(ParserState(QuickLexer(Input(source.text, source.name))), ctx)
        self.ssa_values = {}
        self.blocks = {}
        self.forward_block_references = defaultdict(list)
        self.forward_ssa_references = {}
        self._source = source
        self._file = StringAttr(source.name)
        self._core_only = core_only
        self._first_use: dict[str, Span] = {}
        self.waiting = {}
        self.alias_sizes = {}
        self.expanded = 0
        self._known_bodies: dict[tuple[str, bool, str], Attribute] = {}
        self._known_scalars: dict[str, TypeAttribute] = {}
        self._numbers: dict[int, IntAttr] = {}
        self._forms: dict[str, _Form] = {}

    def location(self, offset: int) -> FileLineColLoc:
        """Return the location of an offset in the text."""
        # The verifier is skipped because every op has a location, and this one is valid.
        found = object.__new__(FileLineColLoc)
        for name, value in zip(("line", "column"), self._source.line_col(offset)):
            number = self._numbers.get(value)
            if number is None:
                number = self._numbers[value] = IntAttr(value)
            object.__setattr__(found, name, number)
        object.__setattr__(found, "filename", self._file)
        return found

    # -------------------------------------------------------------------------------------------------------- modules

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """Parse the whole text: one ``builtin.module``, or any number of ops, which are wrapped in a module."""
        ops: list[Operation] = []
        while self.current_token.kind is not MLIRTokenKind.EOF:
            kind = self.current_token.kind
            if kind is MLIRTokenKind.HASH_IDENT or kind is MLIRTokenKind.EXCLAMATION_IDENT:
                start = self.current_token.span
                try:
                    self.parse_alias_def()
                except VerifyException as e:
                    self.raise_error(one_line(str(e)), start)
            elif kind is MLIRTokenKind.FILE_METADATA_BEGIN:
                self.parse_file_metadata_dictionary()
            else:
                op = self.parse_optional_operation()
                if op is None:
                    self.raise_error("expected operation name in quotes, or an alias definition")
                ops.append(op)
        self._check_all_defined()
        if len(ops) == 1 and isinstance(ops[0], ModuleOp):
            module = ops[0]
        else:
            module = ModuleOp(ops)
            module.location = self.location(0)
        self.resolve_locations(module)
        return module

    def _check_all_defined(self) -> None:
        """Raise a ParseError at the first use of a value that has no definition."""
        if self.forward_ssa_references:
            name = min(self.forward_ssa_references, key=lambda n: self._first_use[n].start)
            self.raise_error(f"use of undeclared SSA value name '%{name}'", self._first_use[name])

    # ------------------------------------------------------------------------------------------------------------ ops

    def parse_operation(self) -> Operation:
        """Parse an op in custom or generic form, and define its results."""
        start = self.current_token
        bound = self._results() if start.kind is MLIRTokenKind.PERCENT_IDENT else ()
        name = self.current_token
        line = self._line(name)
        op = self._from_form(*line) if line is not None else None
        if op is None:
            op, location = self._read_operation(name)
            if line is not None and location is None:
                self._keep_form(op, *line)
            op.location = self.location(name.start) if location is None else location
        else:
            op.location = self.location(name.start)
        if bound:
            self._bind(bound, op, start)
        return op

    def _read_operation(self, name: QuickToken) -> tuple[Operation, LocationAttr | None]:
        """Parse an op from its name on, and return it with its explicit location, if any."""
        stack = self.state.dialect_stack
        try:
            if self.parse_optional_token(MLIRTokenKind.BARE_IDENT) is not None:
                op_type = self._op_type(name, name.text, custom=True)
                stack.append(op_type.dialect_name())
                with self._isolated(op_type):
                    op = op_type.parse(self)
                location = self.parse_optional_location()
            else:
                generic = self.expect(self.parse_optional_str_literal, "expected an operation")
                op_type = self._op_type(name, generic, custom=False)
                stack.append(op_type.dialect_name())
                with self._isolated(op_type):
                    op = self.parse_generic_operation(op_type)
                location = None if isinstance(op.location, UnknownLoc) else op.location
        except VerifyException as e:
            self.raise_error(one_line(str(e)), name.span)
        except UnregisteredConstructException as e:
            # unreachable: only xDSL's own dialects raise this while parsing, not those registered here
            self.raise_error(one_line(str(e)), name.span)
        stack.pop()
        return op, location

    @contextmanager
    def _isolated(self, op_type: type[Operation]) -> Generator[None]:
        """Parse an op.  If it is isolated from above, its region has a separate scope of forward references."""
        if not op_type.has_trait(IsolatedFromAbove, value_if_unregistered=False):
            yield
            return
        outer, self.forward_ssa_references = self.forward_ssa_references, {}
        yield
        self._check_all_defined()
        self.forward_ssa_references = outer

    # Most lines of a file differ from another line only in the names of operands.  Such a line is not parsed again; its
    # op is built from the cached form.

    def _line(self, name: QuickToken) -> tuple[str, list[str], int] | None:
        """Return an op's line with value names removed, the removed names, and the offset of the end of the line.

        The result is None for a very long line, and for a name without dialect, such as ``return``, whose meaning
        depends on the enclosing op.
        """
        if "." not in name.text:
            return None
        end = self._source.text.find("\n", name.start, name.start + _MAX_LINE)
        if end < 0:
            return None
        parts = _VALUE.split(self._source.text[name.start : end])
        return "%".join(parts[::2]), parts[1::2], end

    def _from_form(self, text: str, names: Sequence[str], end: int) -> Operation | None:
        """Build an op from the cached form of an identical line, or return None."""
        form = self._forms.get(text)
        if form is None or _NEXT.match(self._source.text, end) is None:
            return None
        operands: list[SSAValue] = []
        for name, wanted in zip(names, form.operand_types):
            values = self.ssa_values.get(name)
            if values is None or values[0].type != wanted:
                return None
            operands.append(values[0])
        self.resume_from(end)
        return make_op(form.op_type, operands, form.result_types, form.properties)

    def _keep_form(self, op: Operation, text: str, names: Sequence[str], end: int) -> None:
        """Cache the form of an op if its line determines it.

        The line must contain the whole op, which may have only operands, types and properties, and the names must be
        the operands in order.
        """
        operands = op.operands
        if op.regions or op.successors or op.attributes or len(names) != len(operands) or "%#" in text:
            return
        if self.pos < end or _BLANK.fullmatch(self._source.text, end, self.pos) is None:
            return
        for value_name, operand in zip(names, operands):
            values = self.ssa_values.get(value_name)
            if values is None or values[0] is not operand:
                return
        types = tuple(operand.type for operand in operands)
        self._forms[text] = _Form(type(op), types, tuple(r.type for r in op.results), dict(op.properties))

    def _results(self) -> list[tuple[QuickToken, int]]:
        """Parse ``%a, %b:2 =`` and return the names with their numbers of results."""
        first = self.current_token
        found = _EQUALS.match(self._source.text, first.end)
        if found is not None:
            self.resume_from(found.end())
            return [(first, 1)]

        def one() -> tuple[QuickToken, int]:
            name = self.parse_token(MLIRTokenKind.PERCENT_IDENT, "Expected result SSA value!")
            if self.parse_optional_punctuation(":") is None:
                return name, 1
            size = self.parse_token(MLIRTokenKind.INTEGER_LIT, "Expected SSA value tuple size")
            count = size.kind.get_int_value(size.span)
            if count < 1:
                self.raise_error(f"expected at least 1 result per name, got {count}", size.span)
            return name, count

        bound = [one()]
        while self.parse_optional_punctuation(",") is not None:
            bound.append(one())
        self.parse_punctuation("=", " after operation result list")
        return bound

    def _bind(self, bound: Sequence[tuple[QuickToken, int]], op: Operation, start: QuickToken) -> None:
        """Assign the names before an op to its results."""
        values = op.results
        count = sum(size for _, size in bound)
        if count != len(values):
            results = "1 result" if len(values) == 1 else f"{len(values)} results"
            self.raise_error(
                f"'{op_name(op)}' has {results}, but {count} are named here", start.start, bound[-1][0].end
            )
        first = 0
        for token, size in bound:
            name = token.text[1:]
            if name in self.ssa_values or name in self.forward_ssa_references:
                self.register_ssa_definition(name, values[first : first + size], token.span)
            else:
                self.ssa_values[name] = mine = values[first : first + size]
                if not name[0].isdigit():
                    for value in mine:
                        value.name_hint = name
            first += size

    def _op_type(self, token: QuickToken, name: str, *, custom: bool) -> type[Operation]:
        """Return the class of an op by its name.  Raises ParseError with a suggestion if there is none."""
        stack = self.state.dialect_stack if custom else ()
        op_type = self.ctx.get_optional_op(name, dialect_stack=stack)
        if op_type is not None and op_type.name != UnregisteredOp.name:
            return op_type
        span = token.span
        dialect, _, rest = name.partition(".")
        if op_type is not None:
            if dialect in set(self.ctx.registered_dialect_names):  # As upstream: only unknown dialects are allowed.
                op_type = None
            elif custom:
                self.raise_error(f"unregistered operation '{name}' must be written in generic form", span)
        if op_type is not None:
            return op_type
        if rest and dialect not in set(self.ctx.registered_dialect_names):
            self.raise_error(self._unknown_dialect(dialect, f"operation '{name}'"), span)
        meant = meant_op(name, self._every_op())
        hint = f"; did you mean '{meant}'?" if meant else ""
        if rest or not custom:
            self.raise_error(f"unregistered operation '{name}'{hint}", span)
        self.raise_error(f"custom operation '{name}' is unknown{hint}", span)

    def _every_op(self) -> list[str]:
        """Return the names of all ops of the registered dialects."""
        self._load_all()
        return [op.name for op in self.ctx.loaded_ops]

    def _load_all(self) -> None:
        """Load all dialects, so that a message can list their names."""
        for dialect in self.ctx.registered_dialect_names:
            self.ctx.get_optional_op(f"{dialect}.there_is_none")

    def _unknown_dialect(self, dialect: str, what: str) -> str:
        names = sorted(self.ctx.registered_dialect_names)
        return f"{what} belongs to the unregistered dialect '{dialect}'{did_you_mean(dialect, names)} (known here: " + (
            ", ".join(names) + ")"
        )

    def register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        """Define a name.  Raises ParseError if it is already defined, or was used with another type or index."""
        if name in self.ssa_values:
            defined = self._definition(name, self.ssa_values[name])
            self._raise_with_note(f"redefinition of SSA value '%{name}'", span, defined, "previously defined here")
        for index, used in self.forward_ssa_references.get(name, {}).items():
            if index >= len(values):
                message = f"'%{name}' is used with result number {index}, but has {len(values)} here"
                self._raise_with_note(message, span, self._first_use[name], "previously used here")
            if used.type != values[index].type:
                message = f"definition of SSA value '%{name}#{index}' has type '{values[index].type}'"
                note = f"previously used here with type '{used.type}'"
                self._raise_with_note(message, span, self._first_use[name], note)
        super().register_ssa_definition(name, values, span)
        if values and isinstance(values[0], BlockArgument) and isinstance(values[0].location, UnknownLoc):
            values[0].location = self.location(span.start)

    def resolve_operand(self, operand: UnresolvedOperand, type: Attribute) -> SSAValue:  # pyright: ignore
        """Return the value of an operand.  The first use of an undefined name is recorded for a later error."""
        name = operand.operand_name
        values = self.ssa_values.get(name)
        if values is None:
            if name not in self.forward_ssa_references:
                self._first_use[name] = operand.span
        elif operand.index < len(values):
            if values[operand.index].type is type:
                return values[operand.index]
        else:
            count = "1 result" if len(values) == 1 else f"{len(values)} results"
            message = f"reference to invalid result number: '%{name}' has {count}, there is no #{operand.index}"
            self._raise_with_note(message, operand.span, self._definition(name, values), "defined here")
        prior = (
            values[operand.index]
            if values is not None
            else self.forward_ssa_references.get(name, {}).get(operand.index)
        )
        if prior is not None and prior.type != type:
            seen = self._first_use[name] if values is None else self._definition(name, values)
            message = f"use of value '%{name}' expects different type than prior uses: '{type}' vs '{prior.type}'"
            self._raise_with_note(message, operand.span, seen, "prior use here")
        return super().resolve_operand(operand, type)

    def raise_error(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, msg: str, at_position: Span | int | None = None, end_position: int | None = None
    ) -> NoReturn:
        """Raise a ParseError.  If a type is missing, the message shows the unexpected token and a suggestion."""
        if msg in _NO_TYPE:
            self._load_all()
            msg = no_type(self.current_token.text, [t.name for t in self.ctx.loaded_types])
        super().raise_error(msg, at_position, end_position)  # pyright: ignore[reportArgumentType, reportCallIssue]

    def _definition(self, name: str, values: Sequence[SSAValue]) -> Span:
        """Return the span of the name in the line that defines a value."""
        first = values[0]
        if isinstance(first, BlockArgument):
            position = location_position(first.location)
        else:
            assert isinstance(first.owner, Operation)
            position = location_position(first.owner.location)
        start = self._source.offset(position.line, 1) if position is not None else 0
        end = self._source.text.find("\n", start)
        found = re.compile(rf"%{re.escape(name)}(?![\w$.-])").search(
            self._source.text, start, len(self._source.text) if end < 0 else end
        )
        return Span(*(found.span() if found is not None else (start, start + 1)), self.lexer.input)

    def _raise_with_note(self, message: str, span: Span, noted: Span, note: str) -> NoReturn:
        raise MultipleSpansParseError(span, message, None, [(noted, note)])

    # ------------------------------------------------------------------------------------------- types and attributes

    def parse_block(self) -> Block:
        """Parse a block.  Its label is recorded as defined even if a branch has referred to it before."""
        label = self.current_token
        block = super().parse_block()
        self.blocks[label.text[1:]] = (block, label.span)
        return block

    def parse_optional_type(self) -> TypeAttribute | None:
        """Parse a type if one is next.  A type whose text was parsed before is taken from a cache."""
        token = self.current_token
        if token.kind is MLIRTokenKind.BARE_IDENT:
            known = self._known_scalars.get(token.text)
            if known is not None:
                self.consume_token()
                return known
        elif token.kind is MLIRTokenKind.EXCLAMATION_IDENT:
            body = self._body_text(token.text[1:], token.end)
            found = self._known_bodies.get((token.text[1:], True, body)) if body else None
            if found is not None:
                self.resume_from(token.end + len(body))
                return cast("TypeAttribute", found)
        return super().parse_optional_type()

    def parse_dialect_type_or_attribute_body(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, attr_name: str, is_type: bool, is_opaque: bool, starting_opaque_pos: int | None
    ):
        """Parse the body of a type or attribute.  One whose text was parsed before is taken from a cache."""
        whole = self._body_text(attr_name, self.pos)
        known = self._known_bodies.get((attr_name, is_type, whole)) if whole else None
        if known is not None:
            self.resume_from(self.pos + len(whole))
            return known
        if "." in attr_name:
            lookup = self.ctx.get_optional_type if is_type else self.ctx.get_optional_attr
            found = lookup(attr_name)
            if found is None or (issubclass(found, UnregisteredAttr) and self._is_cute(attr_name)):
                self._unknown_attribute(attr_name, is_type)
        start = self.current_token
        try:
            made = super().parse_dialect_type_or_attribute_body(attr_name, is_type, is_opaque, starting_opaque_pos)
            if whole:
                self._known_bodies[attr_name, is_type, whole] = made
            return made
        except VerifyException as e:
            # unreachable: only xDSL's own dialects raise this while parsing, not those registered here
            self.raise_error(one_line(str(e)), start.start, max(self.pos, start.end))

    def _body_text(self, name: str, at: int) -> str:
        """Return the body ``<…>`` of a type or attribute of this project at an offset, or an empty string.

        The text must determine the end and the meaning of the body: it contains no alias and nothing nested.
        """
        if not name.startswith(("cute.", "cute_nvgpu.")) or self._core_only:
            return ""
        found = _SIMPLE_BODY.match(self._source.text, at)
        return found.group() if found is not None else ""

    def _is_cute(self, name: str) -> bool:
        """Return True if a name belongs to a registered dialect of this project."""
        dialect = name.partition(".")[0]
        return dialect in ("cute", "cute_nvgpu") and dialect in set(self.ctx.registered_dialect_names)

    def _unknown_attribute(self, name: str, is_type: bool) -> None:
        what, mark = ("type", "!") if is_type else ("attribute", "#")
        at = self.lexer.input.content.rfind(name, 0, self.current_token.span.start)
        span = self.current_token.span if at < 0 else Span(max(at - 1, 0), at + len(name), self.lexer.input)
        dialect = name.partition(".")[0]
        if dialect not in set(self.ctx.registered_dialect_names):
            self.raise_error(self._unknown_dialect(dialect, f"{what} '{mark}{name}'"), span)
        loaded: Iterable[type[Attribute]] = self.ctx.loaded_types if is_type else self.ctx.loaded_attrs
        self.raise_error(f"unregistered {what} '{mark}{name}'{did_you_mean(name, [a.name for a in loaded])}", span)

    def parse_optional_integer_or_float_type(self) -> TypeAttribute | None:
        """Parse a scalar type if one is next."""
        token = self.current_token
        if token.kind is not MLIRTokenKind.BARE_IDENT:
            return None
        text = token.text
        known = self._known_scalars.get(text)
        if known is not None:
            self.consume_token()
            return known
        if len(text) > 6:
            found = _INTEGER_TYPE.fullmatch(text)
            if found is not None and (len(found.group(1)) > 8 or int(found.group(1)) > MAX_INTEGER_WIDTH):
                self.raise_error(f"integer bitwidth is limited to {MAX_INTEGER_WIDTH} bits", token.span)
        made = super().parse_optional_integer_or_float_type()
        if made is not None:
            self._known_scalars[text] = made
        return made

    def parse_builtin_densearray_attr(self) -> DenseArrayBase | None:
        """Parse the body ``<i32: 1, 2>`` of an array attribute."""
        at = self.pos
        try:
            return super().parse_builtin_densearray_attr()
        except ZeroDivisionError:  # xDSL divides by the size of the element.
            self.raise_error("dense array element type must have a size, got i0", at, self.pos)
        except NotImplementedError:  # xDSL cannot store wider elements.
            self.raise_error("dense array element type must have at most 64 bits", at, self.pos)

    def parse_optional_str_literal(self) -> str | None:
        """Parse a string literal.  With ``core_only``, a divisibility in it is an error."""
        token = self.current_token
        if self._core_only and token.kind is MLIRTokenKind.STRING_LIT:
            found = _DIV.search(token.text)
            if found is not None:
                start = token.span.start + found.start(1)
                end = token.span.start + found.end(1)
                self.raise_error("divisibility ('div=') is not part of the core dialect (--core-only)", start, end)
        return super().parse_optional_str_literal()


def op_name(op: Operation) -> str:
    """Return the name of an op.  An unregistered op has the name in its text."""
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def one_line(message: str) -> str:
    """Join the lines of a message of xDSL: with a space after a colon or comma, else with a semicolon."""
    lines = [line.strip() for line in message.strip().splitlines() if line.strip()]
    out = lines[0] if lines else "unknown error"
    for line in lines[1:]:
        out += (" " if out.endswith((":", ",")) else "; ") + line
    return out


def parse_module(ctx: Context, source: Source, engine: DiagnosticEngine, *, core_only: bool = False) -> ModuleOp | None:
    """Parse a text into a module.  On error report to ``engine`` and return None.

    The verifier is not run; see :func:`cute_dialect.ir.verifier.verify`.
    """
    parser = None
    try:
        parser = LocatedParser(ctx, source, core_only=core_only)
        return parser.parse_module()
    except ParseError as e:
        notes = []
        if isinstance(e, MultipleSpansParseError):
            notes = [
                engine.note(message or (e.ref_text or "see here").rstrip(":"), source.position(span.start, span.end))
                for span, message in e.refs
            ]
        engine.error(one_line(e.msg), source.position(e.span.start, e.span.end), notes)
    except Exception as e:
        message = limit_message(e)
        if message is None:
            raise
        engine.error(f"{message}, while parsing", source.position(parser.pos if parser is not None else 0))
    return None
