"""Argument checks of the public functions of ``cute_dialect.algebra``.

The functions inside the package do not check their arguments.  The public names wrap them with a check,
which converts a list to a tuple and the text of a layout to the layout.  It converts an object with ``__index__`` (a
numpy integer, but not a bool) to an ``int``.  Any other argument raises an AlgebraError that names the function, the
expected kind and the value.

>>> from cute_dialect.algebra import size
>>> size([4, 8]), size("(4,8):(1,4)")
(32, 32)
>>> size(None)
Traceback (most recent call last):
    ...
cute_dialect.algebra.leaf.AlgebraError: size: expected a layout, a tree of integers or a tile as argument 0, got None
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import unwrap
from operator import index
from types import CodeType, FunctionType
from typing import cast

from cute_dialect.algebra.leaf import AlgebraError, Dyn
from cute_dialect.algebra.text import parse_composed_layout
from cute_dialect.algebra.values import UNDERSCORE, Basis, ComposedLayout, Layout, Swizzle
from cute_dialect.algebra.verify import verify_composed_layout, verify_layout

_DEPTH = 100
"""Largest nesting depth of an argument."""


_RANK = 1 << 16
"""Largest rank to which a value may be padded."""


class _Refused(Exception):
    """An argument has the wrong kind."""


def _leaf(x: object) -> object:
    if type(x) is int or isinstance(x, Dyn):
        return x
    if isinstance(x, bool):
        raise _Refused
    try:
        return index(x)  # type: ignore[arg-type]
    except TypeError:
        raise _Refused from None


def _tree(x: object, allowed: tuple[type, ...], depth: int = 0) -> object:
    if isinstance(x, tuple | list):
        if depth >= _DEPTH:
            raise _Refused
        return tuple([_tree(y, allowed, depth + 1) for y in cast("Sequence[object]", x)])
    if isinstance(x, allowed):
        if isinstance(x, Layout | ComposedLayout):
            _legal(x)
        return x
    return _leaf(x)


def _legal(x: object) -> None:
    (verify_composed_layout if isinstance(x, ComposedLayout) else verify_layout)(x)  # type: ignore[arg-type]


def _text(x: object) -> object:
    """Parse text as a layout; return any other value unchanged."""
    if isinstance(x, str):
        return parse_composed_layout(x)
    return x


def _layout(x: object) -> object:
    x = _text(x)
    if not isinstance(x, Layout):
        raise _Refused
    _legal(x)
    return x


def _any_layout(x: object) -> object:
    x = _text(x)
    if not isinstance(x, Layout | ComposedLayout):
        raise _Refused
    _legal(x)
    return x


_UNDERSCORE = type(UNDERSCORE)


def _integers(x: object) -> object:
    return _tree(x, ())


def _coord(x: object) -> object:
    return _tree(x, (_UNDERSCORE,))


def _tiler(x: object) -> object:
    return _tree(_text(x), (_UNDERSCORE, Layout))


def _right(x: object) -> object:
    x = _text(x)
    return _any_layout(x) if isinstance(x, ComposedLayout) else _tiler(x)


def _value(x: object) -> object:
    x = _text(x)
    if isinstance(x, ComposedLayout):
        _legal(x)
        return x
    return x if isinstance(x, Swizzle) else _tree(x, (_UNDERSCORE, Layout, Basis))


def _shape_of(x: object) -> object:
    x = _text(x)
    return _any_layout(x) if isinstance(x, Layout | ComposedLayout) else _integers(x)


def _plain_shape_of(x: object) -> object:
    x = _text(x)
    return _layout(x) if isinstance(x, Layout | ComposedLayout) else _integers(x)


def _rank(x: object) -> object:
    n = _number(x)
    if not isinstance(n, int) or n > _RANK:
        raise _Refused
    return n


def _number(x: object) -> object:
    x = _leaf(x)
    if isinstance(x, Dyn):
        raise _Refused
    return x


def _source(x: object) -> object:
    if not isinstance(x, str):
        raise _Refused
    return x


def _flag(x: object) -> object:
    if not isinstance(x, bool):
        raise _Refused
    return x


def _numbers(x: object) -> object:
    if not isinstance(x, tuple | list | range):
        raise _Refused
    return tuple([_number(y) for y in cast("Sequence[object]", x)])


_KINDS: Mapping[str, tuple[str, Callable[[object], object]]] = {
    "L": ("a layout", _layout),
    "A": ("a layout or composed layout", _any_layout),
    "I": ("a tree of integers", _integers),
    "C": ("a coordinate (a tree of integers and '_')", _coord),
    "T": ("a layout, a tile or a shape", _tiler),
    "R": ("a layout, a composed layout, a tile or a shape", _right),
    "S": ("a shape or a layout", _shape_of),
    "V": ("a layout, a tree of integers or a tile", _value),
    "s": ("a shape or a plain layout", _plain_shape_of),
    "N": ("an integer", _number),
    "n": (f"a rank up to {_RANK}", _rank),
    "P": ("a sequence of integers", _numbers),
    "X": ("a string", _source),
    "b": ("True or False", _flag),
    "i": ("an integer or a dynamic leaf", _leaf),
}
"""Letter -> description of the kind, and the function that converts an argument to it."""

SIGNATURES: Mapping[str, str] = {
    "complement": "L s?", "composition": "A R", "left_inverse": "L", "right_inverse": "L",
    "coshape": "L", "cosize": "A", "crd2idx": "C S", "evaluate": "C A", "idx2crd": "I S", "increment_coord": "I I",
    "size": "V",
    "carries_divisor": "V", "column_major": "I i?", "compatible": "I I", "congruent": "V V", "depth": "V",
    "elem_less": "I I", "equal": "V V", "flatten": "V", "get": "V P?", "implies": "V V", "is_static": "V",
    "leaves": "V", "prefix_product": "I", "product": "I", "product_each": "I", "rank": "V", "row_major": "I",
    "select": "V P", "shape_div": "I I", "tracked": "V", "tree_flatten": "V", "tree_get": "V P", "tree_select": "V P",
    "tuple_add": "I I", "tuple_sub": "I I", "untracked": "V", "unwrap": "V", "weakly_congruent": "V V",
    "coalesce": "A C?", "group_modes": "A N N", "recast_layout": "A N N",
    "make_identity_layout": "I", "make_layout_like": "A", "make_ordered_layout": "I I",
    "layout_table": "A", "print_layout": "A", "thread_value_table": "L I",
    "local_partition": "A L i", "local_tile": "A T C C?", "make_layout_tv": "L L",
    "blocked_product": "A L", "ceil_div": "I T", "flat_divide": "A T", "flat_product": "A L", "logical_divide": "A T",
    "logical_product": "A L", "raked_product": "A L", "tile_to_shape": "A I I?", "tiled_divide": "A T",
    "tiled_product": "A L", "zipped_divide": "A T", "zipped_product": "A L",
    "max_common_vector": "L L", "nullspace": "L", "vector_bits": "L L N N N N?",
    "slice": "C V", "slice_": "C V", "slice_and_offset": "C V", "dice": "C V",
    "append_to_rank": "V V n", "prepend_to_rank": "V V n",
    "thread_slice": "L C", "retile": "L I L N?",
    "parse_composed_layout": "X b?", "parse_coord": "X b?", "parse_int_tuple": "X b?", "parse_layout": "X b?",
    "parse_shape": "X b?", "parse_stride": "X b?", "parse_swizzle": "X", "parse_tile": "X b?",
}  # fmt: skip
"""Function -> kind of each argument.  ``?`` marks an optional argument, which may also be None."""


def checked(name: str, value: object) -> object:
    """Wrap a function so that its arguments are checked.  A value without a signature is returned unchanged."""
    kinds = SIGNATURES.get(name, "").split()
    if not kinds:
        return value

    function = cast("Callable[..., object]", value)
    code, defaults = _written(function)
    names = code.co_varnames[: len(kinds)]
    least = sum(not kind.endswith("?") for kind in kinds)

    @wraps(function)
    def call(*arguments: object, **named: object) -> object:
        given = dict(zip(names, arguments))
        if (
            len(arguments) > len(kinds)
            or not named.keys() <= set(names) - set(given)
            or not {
                *given,
                *named,
            }.issuperset(names[:least])
        ):
            got = ", ".join([*map(repr, arguments), *[f"{key}={value!r}" for key, value in named.items()]])
            raise AlgebraError(f"{name}: expected the arguments ({', '.join(names)}), got ({got})")
        given |= named
        ready: list[object] = []
        for i, (key, kind) in enumerate(zip(names, kinds)):
            value = given.get(key)
            ready.append(_ready(name, i, kind, value) if value is not None or i < least else defaults[i - least])
        return function(*ready)

    return call


def _written(function: Callable[..., object]) -> tuple[CodeType, tuple[object, ...]]:
    """Return the code object and the positional defaults of a function, unwrapping decorators such as a cache."""
    function = unwrap(function)
    assert isinstance(function, FunctionType)
    return function.__code__, function.__defaults__ or ()


def _ready(name: str, at: int, kind: str, given: object) -> object:
    expected, convert = _KINDS[kind[0]]
    try:
        return convert(given)
    except _Refused:
        raise AlgebraError(f"{name}: expected {expected} as argument {at}, got {given!r}") from None


__all__ = ["SIGNATURES", "checked"]
