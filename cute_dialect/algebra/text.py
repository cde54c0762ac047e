"""Text form of algebra values: parsing and canonical printing.

``parse_*`` maps a string to a value, :func:`to_text` a value to its canonical string, and ``parse(to_text(x)) == x``.
All eight kinds of values share one grammar:

    leaf      = int | "?" [ "{" (width | "div=" int)* "}" ] ;  width = i1 | i8 | i16 | i32 | i64
    stride    = leaf [ "@" index … ]                            innermost index first
    tuple     = leaf | "(" [ tuple { "," tuple } [","] ] ")"
    layout    = shape [ ":" stride ]                            without a stride: compact column major
    tile      = layout | "_" | "[" [ tile { ";" tile } ] "]"
    composed  = layout | ( swizzle | layout ) "o" int_tuple "o" layout
    swizzle   = "S" "<" b "," m "," s ">"

White space between tokens is ignored.  Integers must fit in 64 bits.  Input is untrusted: nesting is limited to
:data:`MAX_NESTING`, length to :data:`MAX_LENGTH` and mode indices to :data:`MAX_MODE_INDEX`.  Parsing therefore takes
linear time and bounded stack.  Every failure is a :class:`TextError` with the offset of the offending character.

>>> to_text(parse_layout("( 6 ,?,5)"))
'(6,?,5):(1,6,?)'
>>> parse_stride("(1@0, 2@1@0)")
(Basis(1@0), Basis(2@1@0))
>>> parse_shape("(4,,4)")
Traceback (most recent call last):
    ...
cute_dialect.algebra.text.TextError: expected an integer, '?' or '(', got ',' at offset 3
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, TypeAlias

from cute_dialect.algebra.leaf import AlgebraError, Dyn
from cute_dialect.algebra.trees import column_major, shown, tile_text
from cute_dialect.algebra.values import (
    UNDERSCORE,
    Basis,
    ComposedLayout,
    Coord,
    IntTuple,
    Layout,
    Payload,
    Stride,
    Swizzle,
    Tile,
    raw_layout,
)

MAX_NESTING = 64
MAX_LENGTH = 1 << 16
"""Maximum number of characters."""
MAX_MODE_INDEX = 1 << 10
"""Bound on the index ``n`` of a basis element ``1@n``, which represents a tuple of ``n + 1`` elements."""

_INT_MAX = (1 << 63) - 1
_WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
_TOKEN = re.compile(r"[ \t\r\n]*(?:(-?[0-9]+)|(i(?:16|1|8|32|64)|div)|(.))", re.DOTALL)
_Kind: TypeAlias = Literal["shape", "coord", "stride"]
_EXPECTED = {
    "shape": "an integer, '?' or '('",
    "coord": "an integer, '?', '_' or '('",
    "stride": "an integer, '?', a basis element or '('",
}


class TextError(AlgebraError):
    """Text that does not match the grammar.  ``position`` is the offset of the offending character."""

    def __init__(self, message: str, position: int):
        super().__init__(f"{message} at offset {position}")
        self.position = position


class _Reader:
    """Token stream of one string, with one token of lookahead.  ``token`` is "" at the end."""

    __slots__ = ("core_only", "index", "is_int", "position", "text", "token", "tokens")

    def __init__(self, text: str, core_only: bool, start: int = 0, end: int | None = None):
        end = len(text) if end is None else end
        if len(text) > MAX_LENGTH:
            raise TextError(f"expected at most {MAX_LENGTH} characters, got {len(text)}", MAX_LENGTH)
        tokens: list[tuple[str, bool, int]] = []
        for m in _TOKEN.finditer(text, start, end):
            group = m.lastindex or 0
            # Trailing white space has no token after it, so the regex matches its last blank as a symbol.
            if group == 3 and m.group(3) in " \t\r\n":
                continue
            tokens.append((m.group(group), group == 1, m.start(group)))
        tokens.append(("", False, end))
        self.text = text
        self.core_only = core_only
        self.tokens = tokens
        self.index = 0
        self.token, self.is_int, self.position = tokens[0]

    def advance(self) -> None:
        if self.index + 1 < len(self.tokens):
            self.index += 1
            self.token, self.is_int, self.position = self.tokens[self.index]

    def fail(self, expected: str) -> TextError:
        got = f"'{self.token}'" if self.token else "the end"
        return TextError(f"expected {expected}, got {got}", self.position)

    def at(self, token: str) -> bool:
        return self.token == token

    def accept(self, token: str) -> bool:
        if self.token == token:
            self.advance()
            return True
        return False

    def expect(self, token: str) -> None:
        if self.token != token:
            raise self.fail(f"'{token}'")
        self.advance()

    def end(self) -> None:
        if self.token:
            raise self.fail("the end")

    def integer(self, what: str = "an integer") -> int:
        if not self.is_int:
            raise self.fail(what)
        digits = self.token
        # Python refuses to convert very long digit strings, so the length is checked first.
        magnitude = digits if len(digits) <= 19 else digits.lstrip("-").lstrip("0") or "0"
        if len(magnitude) > 19:
            raise TextError(f"expected an integer that fits in 64 bits, got {len(magnitude)} digits", self.position)
        value = int(magnitude)
        if magnitude is not digits and digits[0] == "-":
            value = -value
        if not -_INT_MAX - 1 <= value <= _INT_MAX:
            raise TextError(f"expected an integer that fits in 64 bits, got {value}", self.position)
        self.advance()
        return value

    def natural(self, what: str, least: int = 0, most: int = _INT_MAX) -> int:
        position = self.position
        value = self.integer(what)
        if not least <= value <= most:
            limit = f">= {least}" if most == _INT_MAX else f"in [{least}, {most}]"
            raise TextError(f"expected {what} {limit}, got {value}", position)
        return value

    def dynamic(self) -> Dyn:
        """Parse the attributes in braces after a "?"."""
        if self.token != "{":
            return _PLAIN
        self.advance()
        width, div, first = 32, 0, True
        while not self.at("}"):
            if not first and not self.core_only:
                self.accept(",")
            first = False
            if self.token in _WIDTHS:
                width = _WIDTHS[self.token]
                self.advance()
            elif self.at("div") and not self.core_only:
                self.advance()
                self.expect("=")
                div = self.natural("a divisor", 1)
            else:
                raise self.fail("a width (i1 i8 i16 i32 i64)" + ("" if self.core_only else ", 'div=' or '}'"))
        self.advance()
        return Dyn(width, div)

    def leaf(self, kind: _Kind) -> Coord | Stride:
        value: int | Dyn
        if self.is_int:
            value = self.integer()
        elif self.token == "?":
            self.advance()
            value = self.dynamic()
        elif self.token == "_" and kind == "coord":
            self.advance()
            return UNDERSCORE
        else:
            raise self.fail(_EXPECTED[kind])
        if kind == "stride" and self.token in ("@", "/"):
            if self.token == "/":
                raise self.fail("an integer scale (a ratio is never legal in a stride)")
            path: list[int] = []
            while self.accept("@"):
                path.append(self.natural("a mode index", 0, MAX_MODE_INDEX - 1))
                if len(path) > MAX_NESTING:
                    raise TextError(f"expected at most {MAX_NESTING} mode indices", self.position)
            return Basis(value, tuple(reversed(path)))
        return value

    def tree(self, kind: _Kind, depth: int = 0) -> Coord | Stride:
        if self.token != "(":
            return self.leaf(kind)
        if depth >= MAX_NESTING:
            raise TextError(f"expected at most {MAX_NESTING} nested tuples", self.position)
        self.advance()
        if self.accept(")"):
            return ()
        elements: list[Coord | Stride] = []
        while True:
            elements.append(self.tree(kind, depth + 1))
            if self.accept(","):
                if self.accept(")"):
                    break
            elif self.accept(")"):
                break
            else:
                raise self.fail("',' or ')'")
        return tuple(elements)  # type: ignore[return-value]

    def layout(self) -> Layout:
        position = self.position
        shape: IntTuple = self.tree("shape")  # type: ignore[assignment]
        if self.accept(":"):
            return raw_layout(shape, self.tree("stride"))  # type: ignore[arg-type]
        try:
            return raw_layout(shape, column_major(shape))
        except AlgebraError as e:
            raise TextError(str(e), position) from None

    def tile(self, depth: int = 0) -> Tile:
        if self.token != "[":
            return UNDERSCORE if self.accept("_") else self.layout()
        if depth >= MAX_NESTING:
            raise TextError(f"expected at most {MAX_NESTING} nested brackets", self.position)
        self.advance()
        if self.accept("]"):
            return ()
        elements = [self.tile(depth + 1)]
        while self.accept(";"):
            elements.append(self.tile(depth + 1))
        if not self.at("]"):
            raise self.fail("';' or ']'")
        self.advance()
        return tuple(elements)

    def swizzle(self) -> Swizzle:
        position = self.position
        self.expect("S")
        self.expect("<")
        bits = self.natural("the bits of a swizzle", 0)
        self.expect(",")
        base = self.natural("the base of a swizzle", 0)
        self.expect(",")
        shift = self.integer("the shift of a swizzle")
        self.expect(">")
        try:
            return Swizzle(bits, base, shift)
        except AlgebraError as e:
            raise TextError(str(e), position) from None


_PLAIN = Dyn()


@lru_cache(maxsize=4096)
def _parse_tree(text: str, kind: _Kind, core_only: bool) -> Coord | Stride:
    reader = _Reader(text, core_only)
    result = reader.tree(kind)
    reader.end()
    return result


def parse_int_tuple(text: str, core_only: bool = False) -> IntTuple:
    """Parse a tree of integers and dynamic leaves.  If ``core_only``, ``div`` is an error.  Raises TextError."""
    return _parse_tree(text, "shape", core_only)  # type: ignore[return-value]


def parse_shape(text: str, core_only: bool = False) -> IntTuple:
    """Parse a tree of extents.  The grammar is that of an int tuple.  Raises TextError."""
    return _parse_tree(text, "shape", core_only)  # type: ignore[return-value]


def parse_coord(text: str, core_only: bool = False) -> Coord:
    """Parse a tree of integers, dynamic leaves and ``_``.  Raises TextError."""
    return _parse_tree(text, "coord", core_only)  # type: ignore[return-value]


def parse_stride(text: str, core_only: bool = False) -> Stride:
    """Parse a tree of integers, dynamic leaves and scaled basis elements.  Raises TextError."""
    return _parse_tree(text, "stride", core_only)  # type: ignore[return-value]


@lru_cache(maxsize=4096)
def parse_layout(text: str, core_only: bool = False) -> Layout:
    """Parse ``shape[:stride]`` without verifying it; see :mod:`cute_dialect.algebra.verify`.  Raises TextError."""
    reader = _Reader(text, core_only)
    result = reader.layout()
    reader.end()
    return result


@lru_cache(maxsize=1024)
def parse_tile(text: str, core_only: bool = False) -> Tile:
    """Parse a tree whose leaves are layouts or ``_``.  Raises TextError."""
    reader = _Reader(text, core_only)
    result = reader.tile()
    reader.end()
    return result


@lru_cache(maxsize=256)
def parse_swizzle(text: str) -> Swizzle:
    """Parse ``S<b,m,s>``.  Raises TextError for a syntax error or an invalid swizzle."""
    reader = _Reader(text, False)
    result = reader.swizzle()
    reader.end()
    return result


@lru_cache(maxsize=1024)
def parse_composed_layout(text: str, core_only: bool = False) -> ComposedLayout | Layout:
    """Parse ``A o offset o B``.  Text without an ``o`` gives the plain layout ``B``, which verification rejects.

    The text is split at its first two letters ``o``, since no other token contains that letter.  Raises TextError.
    """
    first = text.find("o")
    if first < 0:
        return parse_layout(text, core_only)
    second = text.find("o", first + 1)
    if second < 0:
        raise TextError("expected a second 'o' before the outer layout, got the end", len(text))
    reader = _Reader(text, core_only, 0, first)
    inner = reader.swizzle() if reader.token == "S" else reader.layout()
    reader.end()
    reader = _Reader(text, core_only, first + 1, second)
    offset: IntTuple = reader.tree("shape")  # type: ignore[assignment]
    reader.end()
    reader = _Reader(text, core_only, second + 1)
    outer = reader.layout()
    reader.end()
    return ComposedLayout(inner, offset, outer)


def to_text(value: Payload, kind: str | None = None) -> str:
    """Return the canonical text of a value, which has no white space except around the ``o`` of a composed layout.

    ``kind`` ("tile", "coord", …) is needed for ``()`` and for tuples of ``_``, which are tiles as well as coordinates.
    The default prints them as coordinates.

    >>> to_text(((6,), (2, Dyn(64))))
    '((6),(2,?{i64}))'
    >>> to_text((Layout(6), UNDERSCORE)), to_text((UNDERSCORE,), "tile")
    ('[6:1;_]', '[_]')
    >>> to_text(ComposedLayout(Swizzle(2, 3, 3), 5, Layout((8, 8))))
    'S<2,3,3> o 5 o (8,8):(1,8)'
    """
    return tile_text(value) if kind == "tile" else shown(value)
