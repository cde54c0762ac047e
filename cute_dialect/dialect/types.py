"""The eight value types of the dialect and their attributes.

A type and the attribute of the same name wrap one payload of :mod:`cute_dialect.algebra`.  Their syntax is
``!cute.layout<"(8,?):(?,1)">`` and ``#cute.layout<"(8,?):(?,1)">``.  The text holds everything known at compile time;
an SSA value of the type carries one integer per ``?`` and nothing else.

Memory types (pointers, memrefs, coordinate tensors) are in :mod:`cute_dialect.dialect.memory_types`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar

from xdsl.ir import Attribute, Data, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra import text, verify
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import Payload

_PARSE: dict[str, Callable[[str], Payload]] = {
    "int_tuple": text.parse_int_tuple,
    "shape": text.parse_shape,
    "coord": text.parse_coord,
    "stride": text.parse_stride,
    "layout": text.parse_layout,
    "tile": text.parse_tile,
    "composed_layout": text.parse_composed_layout,
    "swizzle": text.parse_swizzle,
}
_VERIFY: dict[str, Callable[..., None]] = {
    "int_tuple": verify.verify_int_tuple,
    "shape": verify.verify_shape,
    "coord": verify.verify_coord,
    "stride": verify.verify_stride,
    "layout": verify.verify_layout,
    "tile": verify.verify_tile,
    "composed_layout": verify.verify_composed_layout,
    "swizzle": verify.verify_swizzle,
}


@lru_cache(maxsize=4096)
def _static(payload: Payload) -> bool:
    return is_static(payload)


class _Wrapper(Data[Payload]):
    """One payload in quotes and angle brackets."""

    kind: ClassVar[str]
    verified: ClassVar[bool]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Payload:
        parser.parse_punctuation("<", f" in {cls.name}")
        start = parser.pos
        string = parser.parse_str_literal(f" in {cls.name}")
        end = parser.pos
        try:
            payload = _PARSE[cls.kind](string)
        except text.TextError as e:
            at = min(start + 1 + e.position, end)
            parser.raise_error(f"invalid {cls.kind} '{string}': {e}", at, min(at + 1, end))
        if cls.verified:
            try:
                _VERIFY[cls.kind](payload)
            except AlgebraError as e:
                parser.raise_error(f"invalid {cls.kind} '{string}': {e}", start, end)
        parser.parse_punctuation(">", f" in {cls.name}")
        return payload

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f'<"{text.to_text(self.data, self.kind)}">')

    def is_static(self) -> bool:
        """Return True if the type determines the value completely."""
        return _static(self.data)

    def __str__(self) -> str:
        return f'!{self.name}<"{text.to_text(self.data, self.kind)}">'


class CuteType(_Wrapper, TypeAttribute):
    """Base of the eight value types."""

    verified = True

    def verify(self) -> None:
        try:
            _VERIFY[self.kind](self.data)
        except AlgebraError as e:
            raise VerifyException(f"invalid {self.kind} '{text.to_text(self.data, self.kind)}': {e}") from None

    def value_attr(self) -> CuteAttr:
        """Build the attribute with the same payload; ``cute.static`` of this type folds to it."""
        return ATTRS[self.kind](self.data)


class CuteAttr(_Wrapper):
    """Base of the eight attributes, which only the parser checks."""

    verified = False

    def __str__(self) -> str:
        return f'#{self.name}<"{text.to_text(self.data, self.kind)}">'


@irdl_attr_definition
class IntTupleType(CuteType):
    """A tree of integers."""

    name = "cute.int_tuple"
    kind = "int_tuple"


@irdl_attr_definition
class ShapeType(CuteType):
    """A tree of extents."""

    name = "cute.shape"
    kind = "shape"


@irdl_attr_definition
class CoordType(CuteType):
    """A tree of integers and ``_``."""

    name = "cute.coord"
    kind = "coord"


@irdl_attr_definition
class StrideType(CuteType):
    """A tree of integers and scaled basis elements."""

    name = "cute.stride"
    kind = "stride"


@irdl_attr_definition
class LayoutType(CuteType):
    """A shape and a congruent stride."""

    name = "cute.layout"
    kind = "layout"


@irdl_attr_definition
class TileType(CuteType):
    """A tree of layouts and ``_``."""

    name = "cute.tile"
    kind = "tile"


@irdl_attr_definition
class ComposedLayoutType(CuteType):
    """``A o offset o B``."""

    name = "cute.composed_layout"
    kind = "composed_layout"


@irdl_attr_definition
class SwizzleType(CuteType):
    """``S<b,m,s>``; always static."""

    name = "cute.swizzle"
    kind = "swizzle"


TYPES: dict[str, type[CuteType]] = {
    t.kind: t
    for t in (
        IntTupleType, ShapeType, CoordType, StrideType, LayoutType, TileType, ComposedLayoutType, SwizzleType,
    )
}  # fmt: skip
"""Type classes by kind."""


def _attribute_of(type_: type[CuteType]) -> type[CuteAttr]:
    """Build the attribute class with the name and kind of a value type."""
    body = {"name": type_.name, "kind": type_.kind, "__doc__": f"``#{type_.name}``", "__module__": __name__}
    return irdl_attr_definition(type(type_.__name__.replace("Type", "Attr"), (CuteAttr,), body))


ATTRS: dict[str, type[CuteAttr]] = {kind: _attribute_of(type_) for kind, type_ in TYPES.items()}
"""Attribute classes by kind."""


def is_static_type(attribute: Attribute) -> bool:
    """Return True for a value type without dynamic leaves."""
    return isinstance(attribute, CuteType) and attribute.is_static()
