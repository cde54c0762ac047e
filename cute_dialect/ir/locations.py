"""Parsing of locations, as in upstream MLIR.

Upstream prints location aliases after the ops that use them, so ``loc(#loc3)`` may come long before
``#loc3 = loc("f.mlir":1:2)``.  The parser records such a use as a placeholder, which
:meth:`LocationReader.resolve_locations` replaces at the end.  A range (``"f.mlir":1:2 to :9``) is reduced to its start,
and a fused location keeps its parts.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    LocationAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
)
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from cute_dialect.ir.aliases import AliasReader

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
