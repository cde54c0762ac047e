"""Public names for the private parts of xDSL that this project uses.  No other module uses private names.

A subclass of one of the ``Open…`` classes overrides and calls a private method of xDSL by its name without the
underscore: ``def parse_block`` overrides ``_parse_block``, and ``super().parse_block()`` calls xDSL's method.  The
class has the same function under both names, so there is no extra call.  Private fields that are never reassigned have
public names as well.

``pyproject.toml`` pins the version of xDSL; ``test_xdsl_compat`` lists the names that a new version lacks.
``docs/upstream.md`` lists the features of xDSL that would make this module unnecessary.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import UNKNOWN_LOC
from xdsl.ir import Operation, OpResult
from xdsl.ir.core import SSAValues, Use
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.mlir_lexer import MLIRLexer

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from xdsl.dialects.builtin import LocationAttr
    from xdsl.ir import Attribute, Block, Dialect, SSAValue, TypeAttribute
    from xdsl.parser import AttrParser
    from xdsl.parser.generic_parser import ParserState
    from xdsl.utils.mlir_lexer import MLIRTokenKind


def _open(cls: type, base: type) -> None:
    """Alias the methods of ``cls`` that override ``base`` under the private names that xDSL calls."""
    for name in vars(cls).keys() & vars(base).keys():
        if hasattr(base, "_" + name):
            setattr(cls, "_" + name, vars(cls)[name])


class OpenLexer(MLIRLexer):
    """xDSL's lexer with public names."""

    unescaped_characters_regex: re.Pattern[str] = MLIRLexer._unescaped_characters_regex

    def __init_subclass__(cls) -> None:
        _open(cls, OpenLexer)


class OpenParser(Parser):
    """xDSL's parser with public names.  ``state`` holds the lexer, the next token and the stack of dialects."""

    current_token = Parser._current_token
    consume_token = Parser._consume_token
    parse_token = Parser._parse_token
    parse_optional_token = Parser._parse_optional_token
    resume_from = Parser._resume_from

    parse_alias_def = Parser._parse_alias_def
    parse_block = Parser._parse_block
    parse_builtin_densearray_attr = Parser._parse_builtin_densearray_attr
    parse_dense_literal_type = Parser._parse_dense_literal_type
    parse_dialect_type_or_attribute_body = Parser._parse_dialect_type_or_attribute_body
    parse_extended_type_or_attribute = Parser._parse_extended_type_or_attribute
    parse_file_metadata_dictionary = Parser._parse_file_metadata_dictionary
    parse_generic_operation = Parser._parse_generic_operation
    parse_location = Parser._parse_location
    parse_optional_integer_or_float_type = Parser._parse_optional_integer_or_float_type
    register_ssa_definition = Parser._register_ssa_definition

    def __init_subclass__(cls) -> None:
        _open(cls, OpenParser)

    def __init__(self, state: ParserState[MLIRTokenKind, str], context: Context):
        super(Parser, self).__init__(state, context)  # Parser.__init__ would create xDSL's own lexer.
        self.state = state


class OpenPrinter(Printer):
    """xDSL's printer with public names."""

    print_results = Printer._print_results

    def __init_subclass__(cls) -> None:
        _open(cls, OpenPrinter)


class OpenContext(Context):
    """xDSL's context with public names for its registered and loaded dialects and its loaded classes."""

    get_known_op = Context._get_known_op

    def __init_subclass__(cls) -> None:
        _open(cls, OpenContext)

    def __init__(self, allow_unregistered: bool = False):
        super().__init__(allow_unregistered)
        self.dialect_factories: dict[str, Callable[[], Dialect]] = self._registered_dialects
        self.dialects_by_name: dict[str, Dialect] = self._loaded_dialects
        self.ops_by_name: dict[str, type[Operation]] = self._loaded_ops
        self.attrs_by_name: dict[str, type[Attribute]] = self._loaded_attrs
        self.types_by_name: dict[str, type[TypeAttribute]] = self._loaded_types


# These functions take xDSL's own parser, which is used if xDSL's tools load this project as a plug-in.


def resume_from(parser: AttrParser, pos: int) -> None:
    """Continue parsing at an offset of the text."""
    parser._resume_from(pos)


def next_kind(parser: AttrParser) -> MLIRTokenKind:
    """Return the kind of the next token without consuming it."""
    return parser._current_token.kind


def parse_symbol_body(parser: AttrParser) -> str:
    """Parse ``<…>`` and return the text in between."""
    return parser._parse_dialect_symbol_body()


def scan_balanced(parser: AttrParser, pos: int) -> int:
    """Return the offset of the bracket that closes the one before an offset, without consuming tokens."""
    return parser._raw_scan_balanced(pos)


# Links between ops, and between values and their uses.  xDSL's methods first detach the old value, and its iterators
# are nested generators, which takes twice the time.

if TYPE_CHECKING:

    def stored_operands(op: Operation) -> SSAValues[SSAValue]:
        """Return the operands of an op.  The result cannot be assigned to."""
        raise NotImplementedError

    def following_op(op: Operation) -> Operation | None:
        """Return the next op of the block, or None."""
        raise NotImplementedError
else:
    stored_operands = attrgetter("_operands")
    following_op = attrgetter("_next_op")


def set_fields(
    op: Operation,
    operands: Sequence[SSAValue] = (),
    result_types: Iterable[Attribute] = (),
    properties: Mapping[str, Attribute] | None = None,
    location: LocationAttr = UNKNOWN_LOC,
) -> None:
    """Set all fields of a newly allocated op that has no attributes, successors and regions."""
    op._operands = values = SSAValues(operands)
    op._operand_uses = uses = tuple([Use(op, i) for i in range(len(values))])
    for value, use in zip(values, uses):
        first = value.first_use
        if first is not None:
            use._next_use = first
            first._prev_use = use
        value.first_use = use
    op.results = SSAValues([OpResult(t, op, i) for i, t in enumerate(result_types)])
    op.properties = {} if properties is None else dict(properties)
    op.attributes = {}
    op.location = location


def append_op(block: Block, op: Operation) -> None:
    """Append a new op, without regions, to a block."""
    last = block._last_op
    op.parent = block
    if last is None:
        block._first_op = op
    else:
        last._next_op = op
        op._prev_op = last
    block._last_op = op


def insert_op(op: Operation, before: Operation) -> None:
    """Insert a new op, without regions, before another op."""
    block, previous = before.parent, before._prev_op
    assert block is not None
    op.parent = block
    op._next_op = before
    before._prev_op = op
    op._prev_op = previous
    if previous is None:
        block._first_op = op
    else:
        previous._next_op = op
