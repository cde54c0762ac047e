"""Bounded expansion of aliases and dense constants in the parser.

A short text can denote a huge value.  Forty lines in which each alias uses the one before it twice
(``!a1 = tuple<!a0, !a0>``) denote a type with 2^40 parts, and ``dense<0> : vector<4294967296xi32>`` denotes 16 GiB.
Hashing and printing such values takes time in proportion to their expanded size.  :class:`AliasReader` therefore counts
the characters and elements after expansion.  The limit is a constant plus a multiple of the length of the text, so
parsing and printing take linear time.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, cast

from xdsl.utils.lexer import Span

from cute_dialect.ir.lexing import QuickParser
from cute_dialect.ir.text_limits import room, too_much

if TYPE_CHECKING:
    from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, ShapedType
    from xdsl.ir import Attribute


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
