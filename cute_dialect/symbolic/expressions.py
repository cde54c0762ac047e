"""Text of layout expressions with symbols: ``logical_divide((M,N):(1,M), [8:1;_])``.

Grammar, in the notation of :mod:`cute_dialect.algebra.text`:

    expression = operation "(" argument { "," argument } ")" | layout [ "o" tuple "o" layout ]
               | swizzle "o" tuple "o" layout
    argument   = expression | tile | tuple
    layout     = tuple [ ":" tuple ]              without a stride: compact column-major
    tuple      = sum | "(" [ tuple { "," tuple } ] ")"
    sum        = products of integers, symbols, "(" sum ")" and ceil_div(sum, sum) with + - * / %

Operations are those of ``cute.testing`` and :mod:`cute_dialect.algebra` that map layouts to layouts; see
:data:`OPERATIONS`.  A name followed by a parenthesis is an operation, any other name a symbol.

>>> find_symbols("composition((M,N):(N,1), 8*k:2)")
['M', 'N', 'k']
>>> evaluate_text("coalesce((M,N):(1,M))", {"M": 3, "N": 4})
Layout("12:1")
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

import cute_dialect.algebra as algebra
from cute_dialect.algebra import (
    UNDERSCORE,
    AlgebraError,
    AnyLayout,
    ComposedLayout,
    Dyn,
    IntTuple,
    Layout,
    Leaf,
    Stride,
    Swizzle,
    Tile,
    leaves,
)
from cute_dialect.algebra.leaf import add, ceil_div, div, mod, mul, sub
from cute_dialect.algebra.text import MAX_NESTING, TextError
from cute_dialect.algebra.trees import column_major
from cute_dialect.algebra.values import raw_layout
from cute_dialect.algebra.verify import verify_layout
from cute_dialect.symbolic.terms import Domain, Term

Value: TypeAlias = "AnyLayout | Tile | IntTuple"

OPERATIONS: dict[str, Callable[..., Value]] = {
    name: getattr(algebra, name)
    for name in [
        "append_to_rank",
        "blocked_product",
        "coalesce",
        "complement",
        "composition",
        "flat_divide",
        "flat_product",
        "group_modes",
        "left_inverse",
        "logical_divide",
        "logical_product",
        "make_layout",
        "make_layout_like",
        "make_ordered_layout",
        "prepend_to_rank",
        "raked_product",
        "recast_layout",
        "right_inverse",
        "tile_to_shape",
        "tiled_divide",
        "tiled_product",
        "zipped_divide",
        "zipped_product",
    ]
}

_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*)|(.))", re.DOTALL)


def find_symbols(text: str) -> list[str]:
    """Return the symbols of an expression or condition in the order of their first use."""
    names = re.findall(r"\b([A-Za-z_]\w*)\b(?!\s*[(<])", text)
    return [n for n in dict.fromkeys(names) if n not in ("o", "_")]


def evaluate_text(text: str, symbols: Mapping[str, Leaf]) -> Value:
    """Return the layout, tile or tuple of an expression.

    Args:
        text: the expression.
        symbols: value of each symbol, an integer or a leaf with a term.

    Raises:
        TextError: the text does not match the grammar, or names an unknown operation or symbol.
        AlgebraError: an operation refuses its operands.
    """
    reader = _Reader(text, symbols)
    value = reader.argument()
    reader.end()
    return value


def evaluate_sum(text: str, symbols: Mapping[str, Leaf]) -> Leaf:
    """Return the leaf of an integer expression such as ``8*m + 1``."""
    reader = _Reader(text, symbols)
    value = reader.sum()
    reader.end()
    return value


class _Reader:
    def __init__(self, text: str, symbols: Mapping[str, Leaf]):
        self.text = text
        self.symbols = symbols
        self.tokens = [(m.group(m.lastindex or 0), m.start(m.lastindex or 0)) for m in _TOKEN.finditer(text.rstrip())]
        self.tokens.append(("", len(text)))
        self.at = 0
        self.nesting = 0

    @property
    def token(self) -> str:
        return self.tokens[self.at][0]

    @property
    def following(self) -> str:
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)][0]

    def fail(self, expected: str) -> TextError:
        found = f"'{self.token}'" if self.token else "the end"
        return TextError(f"{self.text!r}: expected {expected}, found {found}", self.tokens[self.at][1])

    def accept(self, token: str) -> bool:
        if self.token == token:
            self.at += 1
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise self.fail(f"'{token}'")

    def end(self) -> None:
        if self.token:
            raise self.fail("the end")

    # ---------------------------------------------------------------------------------------------------- expressions

    def argument(self) -> Value:
        if self.token == "[":
            return self.tile()
        if self.token == "_":
            self.at += 1
            return UNDERSCORE
        if self.token == "S" and self.following == "<":
            return self.composed(self.swizzle())
        if self.following == "(" and (
            self.token in OPERATIONS or (self.token.isidentifier() and self.token != "ceil_div")
        ):
            value = self.call()
        else:
            value = self.tuple()
            if self.accept(":"):
                value = self.layout(value, self.tuple())
            elif self.token == "o":
                value = self.layout(value, column_major(value))
        return self.composed(value) if self.token == "o" else value

    def call(self) -> Value:
        name = self.token
        if name not in OPERATIONS:
            raise self.fail("a layout operation, one of " + ", ".join(OPERATIONS))
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise self.fail(f"at most {MAX_NESTING} nested operations")
        self.at += 2
        args = [self.argument()]
        while self.accept(","):
            args.append(self.argument())
        self.expect(")")
        self.nesting -= 1
        if name not in ("append_to_rank", "prepend_to_rank", "make_layout", "make_ordered_layout"):
            args[0] = as_layout(args[0])
        return OPERATIONS[name](*args)

    def composed(self, inner: Value | Swizzle) -> Value:
        self.expect("o")
        offset = self.tuple()
        self.expect("o")
        outer = as_layout(self.argument())
        if not isinstance(inner, Swizzle):
            inner = as_layout(inner)
        if isinstance(inner, ComposedLayout) or not isinstance(outer, Layout):
            raise self.fail("a plain layout on both sides of 'o'")
        return ComposedLayout(inner, offset, outer)

    def swizzle(self) -> Swizzle:
        self.at += 2
        numbers = [self.integer()]
        for _ in range(2):
            self.expect(",")
            numbers.append(self.integer())
        self.expect(">")
        return Swizzle(*numbers)

    def integer(self) -> int:
        sign = -1 if self.accept("-") else 1
        if not self.token.isdigit():
            raise self.fail("an integer")
        self.at += 1
        return sign * int(self.tokens[self.at - 1][0])

    def tile(self) -> Tile:
        self.expect("[")
        modes = [self.argument()]
        while self.accept(";"):
            modes.append(self.argument())
        self.expect("]")
        return cast(Tile, tuple(m if m is UNDERSCORE or isinstance(m, tuple) else as_layout(m) for m in modes))

    def tuple(self) -> IntTuple:
        """Parse a tuple or a sum.  Parentheses around one sum, without a comma, group it."""
        value = self.operand()
        return value if isinstance(value, tuple) else self.sum(value)

    def operand(self) -> IntTuple:
        if not self.accept("("):
            return self.factor()
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise self.fail(f"at most {MAX_NESTING} nested parentheses")
        items: list[IntTuple] = []
        has_comma = False
        while not self.accept(")"):
            if items and not has_comma:
                raise self.fail("',' or ')'")
            items.append(self.tuple())
            has_comma = self.accept(",")
        self.nesting -= 1
        return items[0] if len(items) == 1 and not has_comma and not isinstance(items[0], tuple) else tuple(items)

    # ----------------------------------------------------------------------------------------------------------- sums

    def number(self) -> Leaf:
        value = self.operand()
        if isinstance(value, tuple):
            raise self.fail("an integer expression instead of a tuple")
        return value

    def sum(self, left: Leaf | None = None) -> Leaf:
        value = self.product(left)
        while self.token in ("+", "-"):
            operation = add if self.token == "+" else sub
            self.at += 1
            value = operation(value, self.product())
        return value

    def product(self, left: Leaf | None = None) -> Leaf:
        value = self.number() if left is None else left
        while self.token in ("*", "/", "%"):
            operation = {"*": mul, "/": div, "%": mod}[self.token]
            self.at += 1
            value = operation(value, self.number())
        return value

    def factor(self) -> Leaf:
        if self.accept("-"):
            return sub(0, self.factor())
        if self.token == "ceil_div" and self.following == "(":
            self.at += 2
            a = self.sum()
            self.expect(",")
            b = self.sum()
            self.expect(")")
            return ceil_div(a, b)
        if self.token.isdigit():
            return self.integer()
        if self.token in self.symbols:
            self.at += 1
            return self.symbols[self.tokens[self.at - 1][0]]
        raise self.fail("an integer, a symbol or '('")

    def layout(self, shape: IntTuple, stride: Stride) -> Layout:
        """Return the verified layout of a shape and a stride.  Symbolic extents must be shown to be at least 1."""
        for extent in leaves(shape):
            if isinstance(extent, Dyn) and isinstance(extent.emitter, Domain):
                term = extent.emitter.term(extent)
                if not extent.emitter.is_nonnegative(term - 1):
                    raise AlgebraError(f"the extent {term} is not shown to be at least 1{_cure(term)}")
        layout = raw_layout(shape, stride)
        verify_layout(layout)
        return layout


def _cure(term: Term) -> str:
    """Return the advice to bound a symbol of an extent that may be 0 or negative."""
    for monomial, coefficient in term.monomials.items():
        if coefficient == 1 and len(monomial) == 1 and monomial[0].op == "symbol" and monomial[0].name.isidentifier():
            return f"; add the condition '{monomial[0].name} >= {Term.of(monomial[0]) - term + 1}'"
    return "; add conditions of its symbols"


def as_layout(value: Value) -> AnyLayout:
    """Return a value as a layout: a shape is compact and column-major.

    Raises:
        AlgebraError: the value is a tile or an underscore.
    """
    if isinstance(value, Layout | ComposedLayout):
        return value
    if value is UNDERSCORE or (isinstance(value, tuple) and any(isinstance(x, Layout) for x in value)):
        raise AlgebraError("expected a layout, found a tile; write shape:stride")
    shape = cast(IntTuple, value)
    return raw_layout(shape, column_major(shape))
