"""Reading IR: xDSL's parser, with the position of every op and block argument kept, and with messages that help.

:class:`LocatedParser` differs from xDSL's in what follows, and in nothing else:

* each op gets the location of its name (of the quoted name in generic form), each block argument that of its ``%name``,
  as upstream MLIR does; a location written in the text (``loc("f":1:2)``) wins, its alias may be defined later;
* unknown ops, types, attributes and dialects are named, with the nearest name that there is; that a context lets
  unregistered dialects through does not excuse unknown ops of a dialect that it knows;
* a value that is used and never defined is an error at its first use, within the function around it;
* with ``core_only`` a divisibility (``?{div=8}``) is a parse error: the dialect's core does not have it.

:func:`parse_module` turns whatever goes wrong into diagnostics.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DenseArrayBase,
    FileLineColLoc,
    IntAttr,
    ModuleOp,
    StringAttr,
    UnknownLoc,
    UnregisteredAttr,
    UnregisteredOp,
)
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue, TypeAttribute
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.parser.generic_parser import ParserState
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import (
    MultipleSpansParseError,
    ParseError,
    UnregisteredConstructException,
    VerifyException,
)
from xdsl.utils.lexer import Input, Span, Token
from xdsl.utils.mlir_lexer import KIND_BY_PUNCTUATION_SPELLING, MLIRLexer, MLIRToken, MLIRTokenKind

from cute_dialect.diagnostics import DiagnosticEngine, Position, Source, did_you_mean
from cute_dialect.locations import LocationReader

MAX_INTEGER_WIDTH = (1 << 24) - 1
"""The widest integer type, as in upstream MLIR; without a limit xDSL would compute with numbers of any size."""

_SIMPLE_BODY = re.compile(r'<(?:[^<>"#!\\/]|"[^"\\]*+")*+>')
_INTEGER_TYPE = re.compile(r"[su]?i(\d+)")
_DIV = re.compile(r"\?\s*\{[^}]*?\b(div\s*=)")


class _Lexer(MLIRLexer):
    """xDSL's lexer, with a pattern for strings that does not backtrack (xDSL's: exponential time on an open quote)."""

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')

    def lex(self) -> MLIRToken:
        """The next token: names and punctuation by one pattern, everything else as xDSL does."""
        found = _COMMON.match(self.input.content, self.pos)
        if found is None:
            token = super().lex()
            if token.kind is MLIRTokenKind.INTEGER_LIT and not token.text.isascii():  # xDSL takes digits of any script
                raise ParseError(token.span, f"expected digits 0 to 9 in a number, got '{token.text}'")
            return token
        group = cast("int", found.lastindex)
        start, end = found.span(group)
        self.pos = end
        kind = _KINDS[group] or KIND_BY_PUNCTUATION_SPELLING[found[group]]
        return Token(kind, Span(start, end, self.input))


_SUFFIX = r"(?:[0-9]++|[a-zA-Z$._-][a-zA-Z0-9$._-]*+)"
_COMMON = re.compile(
    r"(?:\s++|//[^\n]*+)*+"
    rf"(?:(%{_SUFFIX})|([a-zA-Z_][a-zA-Z0-9_$.]*+)|([:,()\]\[<>=}}?]|->|{{(?!-#))|(!{_SUFFIX})|(\^{_SUFFIX}))",
    re.ASCII,
)
"""White space and comments, then one of the tokens that files consist of.  Nothing in it backtracks."""
_KINDS = (
    None,
    MLIRTokenKind.PERCENT_IDENT,
    MLIRTokenKind.BARE_IDENT,
    None,
    MLIRTokenKind.EXCLAMATION_IDENT,
    MLIRTokenKind.CARET_IDENT,
)
"""Group of the pattern -> kind of token; ``None``: punctuation, which says it itself."""


class LocatedParser(LocationReader):
    """xDSL's parser that knows where things stand (see the module's docstring).

    ``source`` is what is parsed; its name and line offset go into the locations.
    """

    def __init__(self, ctx: Context, source: Source, *, core_only: bool = False):
        super(Parser, self).__init__(ParserState(_Lexer(Input(source.text, source.name))), ctx)
        self.ssa_values = {}
        self.blocks = {}
        self.forward_block_references = defaultdict(list)
        self.forward_ssa_references = {}
        self._source = source
        self._file = StringAttr(source.name)
        self._core_only = core_only
        self._first_use: dict[str, Span] = {}
        self.waiting = {}
        self._known_bodies: dict[tuple[str, bool, str], Attribute] = {}
        self._known_scalars: dict[str, TypeAttribute] = {}
        self._numbers: dict[int, IntAttr] = {}

    def location(self, offset: int) -> FileLineColLoc:
        """The location attribute of an offset into the text."""
        found = object.__new__(FileLineColLoc)  # without the verifier: every op has a location, and this one is right
        for name, value in zip(("line", "column"), self._source.line_col(offset)):
            number = self._numbers.get(value)
            if number is None:
                number = self._numbers[value] = IntAttr(value)
            object.__setattr__(found, name, number)
        object.__setattr__(found, "filename", self._file)
        return found

    # -------------------------------------------------------------------------------------------------------- modules

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """The whole text: one ``builtin.module``, or a list of ops that are then wrapped in one; may be empty."""
        ops: list[Operation] = []
        while self._current_token.kind is not MLIRTokenKind.EOF:
            kind = self._current_token.kind
            if kind is MLIRTokenKind.HASH_IDENT or kind is MLIRTokenKind.EXCLAMATION_IDENT:
                start = self._current_token.span
                try:
                    self._parse_alias_def()
                except VerifyException as e:
                    self.raise_error(one_line(str(e)), start)
            elif kind is MLIRTokenKind.FILE_METADATA_BEGIN:
                self._parse_file_metadata_dictionary()
            else:
                op = self.parse_optional_operation()
                if op is None:
                    self.raise_error("expected operation name in quotes, or an alias definition")
                ops.append(op)
        self._check_all_defined(())
        if len(ops) == 1 and isinstance(ops[0], ModuleOp):
            module = ops[0]
        else:
            module = ModuleOp(ops)
            module.location = self.location(0)
        self.resolve_locations(module)
        return module

    def _check_all_defined(self, outer: Iterable[str]) -> None:
        """Raise at the first use of a value that was never defined, those of ``outer`` aside."""
        missing = [name for name in self.forward_ssa_references if name not in outer]
        if missing:
            name = min(missing, key=lambda n: self._first_use[n].start)
            self.raise_error(f"use of undeclared SSA value name '%{name}'", self._first_use[name])

    # ------------------------------------------------------------------------------------------------------------ ops

    def parse_operation(self) -> Operation:
        """One op, custom or generic, with the names it binds."""
        start = self._current_token.span
        bound = self._parse_op_result_list()
        name = self._current_token
        waiting = tuple(self.forward_ssa_references)
        stack = self._parser_state.dialect_stack
        try:
            if self._parse_optional_token(MLIRTokenKind.BARE_IDENT) is not None:
                op_type = self._op_type(name.text, name.span, custom=True)
                stack.append(op_type.dialect_name())
                op = op_type.parse(self)
                location = self.parse_optional_location()
            else:
                generic = self.expect(self.parse_optional_str_literal, "expected an operation")
                op_type = self._op_type(generic, name.span, custom=False)
                stack.append(op_type.dialect_name())
                op = self._parse_generic_operation(op_type)
                location = None if isinstance(op.location, UnknownLoc) else op.location
        except VerifyException as e:
            self.raise_error(one_line(str(e)), name.span)
        except UnregisteredConstructException as e:
            self.raise_error(one_line(str(e)), name.span)
        stack.pop()
        op.location = self.location(name.span.start) if location is None else location
        if op.has_trait(IsolatedFromAbove, value_if_unregistered=False):
            self._check_all_defined(waiting)

        count = sum(size for _, size in bound)
        if count and count != len(op.results):
            results = "1 result" if len(op.results) == 1 else f"{len(op.results)} results"
            self.raise_error(
                f"'{op_name(op)}' has {results}, but {count} are named here", start.start, bound[-1][0].end
            )
        first = 0
        for span, size in bound:
            self._register_ssa_definition(span.text[1:], op.results[first : first + size], span)
            first += size
        return op

    def _op_type(self, name: str, span: Span, *, custom: bool) -> type[Operation]:
        """The class of an op by its name; without one, an error that says what is there instead."""
        stack = self._parser_state.dialect_stack if custom else ()
        op_type = self.ctx.get_optional_op(name, dialect_stack=stack)
        dialect, _, rest = name.partition(".")
        if op_type is not None and issubclass(op_type, UnregisteredOp):
            if dialect in set(self.ctx.registered_dialect_names):  # as upstream: only unknown dialects are let through
                op_type = None
            elif custom:
                self.raise_error(f"unregistered operation '{name}' must be written in generic form", span)
        if op_type is not None:
            return op_type
        if rest and dialect not in set(self.ctx.registered_dialect_names):
            self.raise_error(self._unknown_dialect(dialect, f"operation '{name}'"), span)
        known = [op.name for op in self.ctx.loaded_ops]
        if rest:
            self.raise_error(f"unregistered operation '{name}'{did_you_mean(name, known)}", span)
        known += [op.split(".", 1)[1] for op in known if "." in op]
        self.raise_error(f"custom operation '{name}' is unknown{did_you_mean(name, known)}", span)

    def _unknown_dialect(self, dialect: str, what: str) -> str:
        names = sorted(self.ctx.registered_dialect_names)
        return f"{what} belongs to the unregistered dialect '{dialect}'{did_you_mean(dialect, names)} (known here: " + (
            ", ".join(names) + ")"
        )

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        if name in self.ssa_values:
            self.raise_error(f"redefinition of SSA value '%{name}'", span)
        super()._register_ssa_definition(name, values, span)
        if values and isinstance(values[0], BlockArgument) and isinstance(values[0].location, UnknownLoc):
            values[0].location = self.location(span.start)

    def resolve_operand(self, operand: UnresolvedOperand, type: Attribute) -> SSAValue:  # pyright: ignore
        """The value of that name; its first use is remembered, in case that no definition follows."""
        name = operand.operand_name
        if name not in self.ssa_values and name not in self.forward_ssa_references:
            self._first_use[name] = operand.span
        return super().resolve_operand(operand, type)

    # ------------------------------------------------------------------------------------------- types and attributes

    def _parse_dialect_type_or_attribute_body(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, attr_name: str, is_type: bool, is_opaque: bool, starting_opaque_pos: int | None
    ):
        whole = self._body_text(attr_name)
        known = self._known_bodies.get((attr_name, is_type, whole)) if whole else None
        if known is not None:
            self._resume_from(self._current_token.span.start + len(whole))
            return known
        if "." in attr_name:
            lookup = self.ctx.get_optional_type if is_type else self.ctx.get_optional_attr
            found = lookup(attr_name)
            if found is None or (issubclass(found, UnregisteredAttr) and self._is_cute(attr_name)):
                self._unknown_attribute(attr_name, is_type)
        start = self._current_token.span
        try:
            made = super()._parse_dialect_type_or_attribute_body(attr_name, is_type, is_opaque, starting_opaque_pos)
            if whole:
                self._known_bodies[attr_name, is_type, whole] = made
            return made
        except VerifyException as e:
            self.raise_error(one_line(str(e)), start.start, max(self._current_token.span.start, start.end))

    def _body_text(self, name: str) -> str:
        """The text ``<…>`` of a type or attribute of this project that stands here, if it is simple enough to say where
        it ends and that its meaning is in the text alone (no alias, nothing nested); else nothing.
        """
        if not name.startswith(("cute.", "cute_nvgpu.")) or self._core_only:
            return ""
        found = _SIMPLE_BODY.match(self.lexer.input.content, self._current_token.span.start)
        return found.group() if found is not None else ""

    def _is_cute(self, name: str) -> bool:
        """Whether a name belongs to one of the dialects of this project, known here."""
        dialect = name.partition(".")[0]
        return dialect in ("cute", "cute_nvgpu") and dialect in set(self.ctx.registered_dialect_names)

    def _unknown_attribute(self, name: str, is_type: bool) -> None:
        what, mark = ("type", "!") if is_type else ("attribute", "#")
        at = self.lexer.input.content.rfind(name, 0, self._current_token.span.start)
        span = self._current_token.span if at < 0 else Span(max(at - 1, 0), at + len(name), self.lexer.input)
        dialect = name.partition(".")[0]
        if dialect not in set(self.ctx.registered_dialect_names):
            self.raise_error(self._unknown_dialect(dialect, f"{what} '{mark}{name}'"), span)
        loaded: Iterable[type[Attribute]] = self.ctx.loaded_types if is_type else self.ctx.loaded_attrs
        self.raise_error(f"unregistered {what} '{mark}{name}'{did_you_mean(name, [a.name for a in loaded])}", span)

    def _parse_optional_integer_or_float_type(self) -> TypeAttribute | None:
        token = self._current_token
        if token.kind is not MLIRTokenKind.BARE_IDENT:
            return None
        text = token.text
        known = self._known_scalars.get(text)
        if known is not None:
            self._consume_token()
            return known
        if len(text) > 6:
            found = _INTEGER_TYPE.fullmatch(text)
            if found is not None and (len(found.group(1)) > 8 or int(found.group(1)) > MAX_INTEGER_WIDTH):
                self.raise_error(f"integer bitwidth is limited to {MAX_INTEGER_WIDTH} bits", token.span)
        made = super()._parse_optional_integer_or_float_type()
        if made is not None:
            self._known_scalars[text] = made
        return made

    def _parse_builtin_densearray_attr(self) -> DenseArrayBase | None:
        at = self.pos
        try:
            return super()._parse_builtin_densearray_attr()
        except ZeroDivisionError:  # xDSL divides by the size of the element
            self.raise_error("dense array element type must have a size, got i0", at, self.pos)
        except NotImplementedError:  # nor does it store wider ones
            self.raise_error("dense array element type must have at most 64 bits", at, self.pos)

    def parse_optional_str_literal(self) -> str | None:
        """A string literal; under ``core_only`` one that holds a divisibility is an error."""
        token = self._current_token
        if self._core_only and token.kind is MLIRTokenKind.STRING_LIT:
            found = _DIV.search(token.text)
            if found is not None:
                start = token.span.start + found.start(1)
                end = token.span.start + found.end(1)
                self.raise_error("divisibility ('div=') is not part of the core dialect (--core-only)", start, end)
        return super().parse_optional_str_literal()


def op_name(op: Operation) -> str:
    """The name of an op, of an unregistered one the name it was written with."""
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def one_line(message: str) -> str:
    """A message of xDSL in one line: what follows a colon goes after it, other lines after a semicolon."""
    lines = [line.strip() for line in message.strip().splitlines() if line.strip()]
    out = lines[0] if lines else "unknown error"
    for line in lines[1:]:
        out += (" " if out.endswith((":", ",")) else "; ") + line
    return out


def parse_module(ctx: Context, source: Source, engine: DiagnosticEngine, *, core_only: bool = False) -> ModuleOp | None:
    """Parse a text into a module.  What is wrong is reported to ``engine``, and the result is then None.

    The verifier is not run (see :func:`cute_dialect.verifier.verify`).
    """
    try:
        return LocatedParser(ctx, source, core_only=core_only).parse_module()
    except ParseError as e:
        notes = []
        if isinstance(e, MultipleSpansParseError):
            notes = [
                engine.note(message or (e.ref_text or "see here").rstrip(":"), source.position(span.start, span.end))
                for span, message in e.refs
            ]
        engine.error(one_line(e.msg), source.position(e.span.start, e.span.end), notes)
    except RecursionError:
        engine.error("the IR is nested too deeply to be parsed", Position(source.name))
    return None
