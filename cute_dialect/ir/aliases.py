"""Aliases of types, attributes and locations, and dense constants: a few characters that stand for many.

Forty lines in which each alias names the one before it twice (``!a1 = tuple<!a0, !a0>``) stand for a type of 2^40
parts, ``dense<0> : vector<4294967296xi32>`` for 16 GiB.  Whoever hashes or prints these takes as long as they are, so
:class:`AliasReader` counts what is stood for, in characters and elements, and refuses more than a fixed amount and a
multiple of the text: reading and printing a file take a time that is linear in its length.
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
    """What xDSL's parser lacks of aliases and dense constants: a bound on what they stand for."""

    alias_sizes: dict[str, int]
    """Alias -> how many characters it stands for."""
    expanded: int
    """How many characters and elements were stood for so far."""

    def stand_for(self, size: int, what: str, span: Span) -> None:
        """Count ``size`` characters or elements that ``what`` stands for.  Raises ParseError where it is too much."""
        self.expanded += size
        if self.expanded > room(self.lexer.input.len):
            self.raise_error(too_much(what, self.expanded, self.lexer.input.len), span)

    def use_alias(self, name: str, span: Span) -> None:
        """Count a use of the alias ``name``, mark included.  Raises ParseError."""
        size = self.alias_sizes.get(name)
        if size is not None:
            self.stand_for(size, f"the alias '{name}' of {size}", span)

    def parse_alias_def(self) -> None:
        """Parse the definition of an alias and keep how much it stands for."""
        name, before, start = self.current_token.text, self.expanded, self.pos
        super().parse_alias_def()
        self.alias_sizes[name] = self.expanded - before + self.pos - start

    def parse_extended_type_or_attribute(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, attr_or_dialect_name: str, is_type: bool
    ) -> Attribute:
        """Parse an alias or a type or attribute of a dialect; a use of an alias is counted."""
        if "." not in attr_or_dialect_name:
            name = ("!" if is_type else "#") + attr_or_dialect_name
            at = self.lexer.input.content.rfind(name, 0, self.pos)
            self.use_alias(name, Span(max(at, 0), max(at, 0) + len(name), self.lexer.input))
        return super().parse_extended_type_or_attribute(attr_or_dialect_name, is_type)  # pyright: ignore

    # ------------------------------------------------------------------------------------------------ constants

    def parse_optional_builtin_int_or_float_attr(self) -> IntegerAttr | FloatAttr | None:
        """Parse a number with its type, if one is next.  Raises ParseError."""
        at = self.current_token
        try:
            return super().parse_optional_builtin_int_or_float_attr()
        except OverflowError:
            self.raise_error("hexadecimal float constant out of range for its type", at.start, max(self.pos, at.end))

    def parse_dense_literal_type(self):
        """Parse the type of a dense constant; its elements are counted."""
        start = self.current_token
        found = super().parse_dense_literal_type()
        self._check_dense(found, Span(start.start, max(self.pos, start.end), self.lexer.input))
        return found

    def parse_dense_int_or_fp_elements_attr(self, type: Attribute | None) -> DenseIntOrFPElementsAttr:  # pyright: ignore
        """Parse a dense constant from its elements on, of a type that is known or follows.  Raises ParseError."""
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
        ):  # xDSL packs what has a format in Python's struct
            self.raise_error(
                "expected elements that fit their type, of at most 64 bits, in a dense constant", at.start, self.pos
            )

    def _check_dense(self, type: Attribute, span: Span) -> None:
        """Count the elements of a dense constant of this type.  Raises ParseError."""
        count = math.prod(cast("ShapedType", type).get_shape())
        if count > 0:
            self.stand_for(count, f"a dense constant of {count}", span)
