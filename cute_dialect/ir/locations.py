"""Locations written in a text, read as upstream reads them.

Upstream prints the aliases of locations after the ops that use them, so ``loc(#loc3)`` may come long before
``#loc3 = loc("f.mlir":1:2)``.  Such a use is kept as a placeholder, and once the text is read,
:meth:`LocationReader.resolve_locations` puts in what it stands for.  Of a range (``"f.mlir":1:2 to :9``) the start is
kept, of a fused location the parts.
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
"""How the name of a placeholder begins; no text can hold it."""


class LocationReader(AliasReader):
    """What xDSL's parser lacks of locations."""

    waiting: dict[str, Span]
    """Aliases of locations that were used before they were defined, and where that was first."""

    def parse_location(self) -> LocationAttr:
        """Parse what stands in ``loc(…)``."""
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
        """Put the locations in place that ``op`` and what it holds only had by name.  Raises ParseError."""
        if not self.waiting:
            return
        for name, span in self.waiting.items():
            if name not in self.attribute_aliases:
                self.raise_error(f"undefined symbol alias '{name}'", span)
            if not isa(self.attribute_aliases[name], LocationAttr):
                self.raise_error(f"expected a location, got the alias '{name}' of something else", span)
        resolved: dict[str, LocationAttr | None] = {}
        for inner in op.walk():
            inner.location = self._known(inner.location, resolved)
            for region in inner.regions:
                for block in region.blocks:
                    for argument in block.args:
                        argument.location = self._known(argument.location, resolved)

    def _known(self, location: Attribute, resolved: dict[str, LocationAttr | None]) -> LocationAttr:
        """A location with placeholders replaced; ``resolved`` keeps what each stands for, None while that is made."""
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
        """The location that an alias stands for, which was used before it was defined.  Raises ParseError."""
        span = self.waiting[name]
        if name not in resolved:
            resolved[name] = None
            before = self.expanded
            resolved[name] = self._known(self.attribute_aliases[name], resolved)
            self.alias_sizes[name] += self.expanded - before
            self.expanded = before
        found = resolved[name]
        if found is None:
            self.raise_error(f"the alias '{name}' stands for itself", span)
        self.use_alias(name, span)
        return found
