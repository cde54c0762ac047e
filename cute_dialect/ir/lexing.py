"""Fast lexer and token-level parser methods, equivalent to those of xDSL.

A file of 600 ops has 8,000 tokens, and each is examined several times.  :class:`QuickLexer` recognizes the common
tokens with one pattern and returns :class:`QuickToken`.  :class:`QuickParser` implements the token methods of xDSL's
parser without intermediate calls.  Both return what xDSL returns, including errors.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar, cast

from xdsl.parser import Parser, UnresolvedOperand
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Span, Token
from xdsl.utils.mlir_lexer import (
    KIND_BY_PUNCTUATION_SPELLING,
    MLIRTokenKind,
    PunctuationSpelling,
)

from cute_dialect.ir.text_limits import MAX_DIGITS, too_long
from cute_dialect.ir.xdsl_compat import OpenLexer, OpenParser

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdsl.parser.generic_parser import ParserState

    class _State(ParserState[MLIRTokenKind, str]):
        lexer: QuickLexer  # pyright: ignore[reportIncompatibleVariableOverride]
        current_token: QuickToken  # pyright: ignore[reportIncompatibleVariableOverride]


T = TypeVar("T")

_SUFFIX = r"(?:[0-9]++|[a-zA-Z$._-][a-zA-Z0-9$._-]*+)"
_COMMON = re.compile(
    r"(?:\s++|//[^\n]*+)*+"
    rf"(?:(%{_SUFFIX})|([a-zA-Z_][a-zA-Z0-9_$.]*+)|([:,()\]\[<>=}}?]|->|{{(?!-#))|(!{_SUFFIX})|(\^{_SUFFIX})"
    rf'|("[^"\\\n\v\f]*+")|([0-9]{{1,{MAX_DIGITS}}}+(?![.x0-9]))|(@[a-zA-Z_][a-zA-Z0-9_$.]*+))',
    re.ASCII,
)
"""White space and comments, followed by one of the common tokens.  The pattern never backtracks."""
_KINDS = (
    None,
    MLIRTokenKind.PERCENT_IDENT,
    MLIRTokenKind.BARE_IDENT,
    None,
    MLIRTokenKind.EXCLAMATION_IDENT,
    MLIRTokenKind.CARET_IDENT,
    MLIRTokenKind.STRING_LIT,
    MLIRTokenKind.INTEGER_LIT,
    MLIRTokenKind.AT_IDENT,
)
"""Group of the pattern -> kind of token, or None for punctuation, whose text determines the kind."""


class QuickToken(Token[MLIRTokenKind, str]):
    """A token that stores its text.  The span is rarely needed and is created on demand."""

    __slots__ = ("_input", "end", "kind", "start", "text")

    def __init__(self, kind: MLIRTokenKind, text: str, start: int, end: int, input: Input[str]):
        self.kind = kind
        self.text = text  # pyright: ignore[reportAttributeAccessIssue, reportIncompatibleMethodOverride]
        self.start = start
        self.end = end
        self._input = input

    @property
    def span(self) -> Span[str]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The span of the token."""
        return Span(self.start, self.end, self._input)


class QuickOperand(UnresolvedOperand):
    """The name of a value with its token."""

    __slots__ = ("index", "operand_name", "token")

    def __init__(self, token: QuickToken, index: int):
        self.token = token
        self.index = index
        self.operand_name = token.text[1:]  # pyright: ignore[reportAttributeAccessIssue, reportIncompatibleMethodOverride]

    @property
    def span(self) -> Span[str]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The span of the name."""
        return self.token.span


class QuickLexer(OpenLexer):
    """xDSL's lexer with a string pattern that does not backtrack; xDSL's is exponential in an unterminated string."""

    unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')

    def __init__(self, input: Input[str]):
        super().__init__(input)
        self._content = input.content

    def lex(self) -> QuickToken:
        """Return the next token.  Uncommon tokens are lexed by xDSL."""
        found = _COMMON.match(self._content, self.pos)
        if found is None:
            token = super().lex()
            text, span = token.text, token.span
            if token.kind is MLIRTokenKind.INTEGER_LIT and not text.isascii():  # xDSL accepts digits of any script.
                raise ParseError(span, f"expected digits 0 to 9 in a number, got '{text}'")
            if token.kind is MLIRTokenKind.INTEGER_LIT and len(text) > MAX_DIGITS:
                raise ParseError(span, too_long(len(text)))
            return QuickToken(token.kind, text, span.start, span.end, self.input)
        group = cast("int", found.lastindex)
        text = found[group]
        self.pos = end = found.end()
        kind = _KINDS[group] or KIND_BY_PUNCTUATION_SPELLING[text]
        return QuickToken(kind, text, end - len(text), end, self.input)


class QuickParser(OpenParser):
    """xDSL's parser on tokens of :class:`QuickLexer`."""

    if TYPE_CHECKING:
        state: _State  # pyright: ignore[reportIncompatibleVariableOverride]

    @property
    def current_token(self) -> QuickToken:
        """The next token."""
        return self.state.current_token

    @property
    def pos(self) -> int:
        """Offset of the next token."""
        return self.current_token.start

    def consume_token(self, expected_kind: MLIRTokenKind | None = None) -> QuickToken:
        """Consume the next token."""
        state = self.state
        token = state.current_token
        assert expected_kind is None or token.kind is expected_kind
        state.current_token = state.lexer.lex()
        return token

    def parse_optional_token(self, expected_kind: MLIRTokenKind) -> QuickToken | None:
        """Consume the next token if it has this kind."""
        state = self.state
        token = state.current_token
        if token.kind is not expected_kind:
            return None
        state.current_token = state.lexer.lex()
        return token

    def parse_token(self, expected_kind: MLIRTokenKind, error_msg: str) -> QuickToken:
        """Consume the next token.  Raises ParseError if it has another kind."""
        token = self.parse_optional_token(expected_kind)
        if token is None:
            self.raise_error(error_msg, self.current_token.span)
        return token

    def parse_optional_characters(self, text: str) -> str | None:
        """Consume the token ``text`` if it is next."""
        state = self.state
        if state.current_token.text != text:
            return None
        state.current_token = state.lexer.lex()
        return text

    def parse_characters(self, text: str, context_msg: str = "") -> str:
        """Consume the token ``text``.  Raises ParseError if it is not next."""
        state = self.state
        if state.current_token.text != text:
            self.raise_error(f"'{text}' expected" + context_msg)
        state.current_token = state.lexer.lex()
        return text

    def parse_optional_punctuation(self, punctuation: PunctuationSpelling) -> PunctuationSpelling | None:
        """Consume a punctuation token if it is next.  Its text identifies it, as no other token has the same text."""
        assert punctuation in KIND_BY_PUNCTUATION_SPELLING
        state = self.state
        if state.current_token.text != punctuation:
            return None
        state.current_token = state.lexer.lex()
        return punctuation

    def parse_punctuation(self, punctuation: PunctuationSpelling, context_msg: str = "") -> PunctuationSpelling:
        """Consume a punctuation token.  Raises ParseError if it is not next."""
        assert punctuation in KIND_BY_PUNCTUATION_SPELLING
        state = self.state
        if state.current_token.text != punctuation:
            self.raise_error(f"Expected '{punctuation}'" + context_msg)
        state.current_token = state.lexer.lex()
        return punctuation

    def parse_optional_keyword(self, keyword: str) -> str | None:
        """Consume a keyword if it is next."""
        state = self.state
        token = state.current_token
        if token.text != keyword or token.kind is not MLIRTokenKind.BARE_IDENT:
            return None
        state.current_token = state.lexer.lex()
        return keyword

    def parse_list(
        self, delimiter: Parser.Delimiter, parse: Callable[[], T], separator: str = ",", context_msg: str = ""
    ) -> list[T]:
        """Parse a separated list, which may be empty only if it has delimiters.  Raises ParseError."""
        ends = delimiter._value_
        if ends is not None:
            self.parse_characters(ends[0], context_msg)
            if self.parse_optional_characters(ends[1]) is not None:
                return []
        found = [parse()]
        while self.parse_optional_characters(separator) is not None:
            found.append(parse())
        if ends is not None:
            self.parse_characters(ends[1], context_msg)
        return found

    def parse_optional_comma_separated_list(
        self, delimiter: Parser.Delimiter, parse: Callable[[], T], context_msg: str = ""
    ) -> list[T] | None:
        """Parse a delimited list if its opening delimiter is next.  Raises ParseError."""
        ends = delimiter._value_
        if ends is None or self.state.current_token.text == ends[0]:
            return super().parse_optional_comma_separated_list(delimiter, parse, context_msg)
        return None

    def parse_optional_str_literal(self) -> str | None:
        """Parse a string literal if one is next, and return its value without quotes and escapes."""
        token = self.current_token
        if token.kind is MLIRTokenKind.STRING_LIT and "\\" not in token.text:
            self.consume_token()
            return token.text[1:-1]
        return super().parse_optional_str_literal()

    def parse_optional_unresolved_operand(self) -> UnresolvedOperand | None:
        """Parse ``%name`` or ``%name#2`` if it is next."""
        token = self.parse_optional_token(MLIRTokenKind.PERCENT_IDENT)
        if token is None:
            return None
        index = 0
        number = self.parse_optional_token(MLIRTokenKind.HASH_IDENT)
        if number is not None:
            if not (number.text.isascii() and number.text[1:].isdigit()):
                self.raise_error("Expected integer as SSA value tuple index", number.span)
            if len(number.text) > MAX_DIGITS:
                self.raise_error(too_long(len(number.text) - 1), number.span)
            index = int(number.text[1:])
        return QuickOperand(token, index)
