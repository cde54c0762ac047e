"""Value classes of the layout algebra: underscore, basis elements, layouts, swizzles, composed layouts.

An integer leaf is an ``int`` or a :class:`~cute_dialect.algebra.leaf.Dyn`, and a tuple is a Python ``tuple``.  All
values are immutable, hashable and compared structurally.  This module holds data only.  The package connects the
constructor of a layout to :mod:`.verify` and its call to :mod:`.evaluation`, so that neither is imported here.

>>> Layout((4, (2, 3)))
Layout("(4,(2,3)):(1,(4,8))")
>>> Layout("(3,(2,4)):(8,(4,1))")(1, 2)
9
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from cute_dialect.algebra.leaf import AlgebraError, Leaf, and_, mask_operand, mul, shl, shr, xor


class Underscore:
    """Type of :data:`UNDERSCORE`: "all of this mode" in a coordinate, "keep this mode" in a tile."""

    __slots__ = ()
    _instance: Underscore | None = None

    def __new__(cls) -> Underscore:
        if cls._instance is None:
            cls._instance = object.__new__(cls)
        return cls._instance

    def __repr__(self) -> str:
        return "_"

    def __reduce__(self) -> str:
        return "UNDERSCORE"


UNDERSCORE = Underscore()


class _Frozen:
    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")


class Basis(_Frozen):
    """A scaled basis element: a stride that steps along one mode of an arithmetic tuple.

    ``path`` lists mode indices from the outermost inwards.  The text form lists them from the innermost outwards:
    ``Basis(1, (0, 1))`` is ``1@1@0``, one step along mode 1 of mode 0.

    >>> 3 * Basis(2, (0, 1))
    Basis(6@1@0)
    """

    __slots__ = ("path", "value")
    value: Leaf
    path: tuple[int, ...]

    def __init__(self, value: Leaf, path: tuple[int, ...]):
        _set_value(self, value)
        _set_path(self, path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Basis) and self.path == other.path and self.value == other.value

    def __hash__(self) -> int:
        return hash((self.value, self.path))

    def __rmul__(self, n: Leaf) -> Basis:
        return Basis(mul(n, self.value), self.path)

    def __str__(self) -> str:
        return "@".join([str(self.value), *map(str, reversed(self.path))])

    def __repr__(self) -> str:
        return f"Basis({self})"

    def __reduce__(self) -> tuple[object, ...]:
        return (Basis, (self.value, self.path))


_set_value = Basis.value.__set__  # type: ignore[attr-defined]
_set_path = Basis.path.__set__  # type: ignore[attr-defined]

IntTuple: TypeAlias = "Leaf | tuple[IntTuple, ...]"
Coord: TypeAlias = "Leaf | Underscore | tuple[Coord, ...]"
Stride: TypeAlias = "Leaf | Basis | tuple[Stride, ...]"


class Layout(_Frozen):
    """A function from coordinates to indices: a ``shape`` and a congruent ``stride``.

    ``Layout(shape)`` is compact and column-major.  ``Layout("(4,8):(8,1)")`` parses the text form.

    Calling a layout evaluates it, at a linear index as in ``L(5)`` or at a coordinate as in ``L(1, 2)`` and
    ``L((1, 2))``.  ``L[i]`` is mode ``i``, and iteration yields the modes.

    Raises:
        AlgebraError: the trees are not congruent, a static extent is not positive, or the strides mix kinds.

    >>> L = Layout((4, 8), (8, 1))
    >>> L(5), L(1, 1), L[1]
    (9, 9, Layout("8:1"))
    """

    __slots__ = ("shape", "stride")
    shape: IntTuple
    stride: Stride

    def __new__(cls, shape: IntTuple | str, stride: Stride | str | None = None) -> Layout:
        return _make_layout(shape, stride)

    def __eq__(self, other: object) -> bool:
        return type(other) is Layout and self.shape == other.shape and self.stride == other.stride

    def __hash__(self) -> int:
        return hash((self.shape, self.stride))

    def __call__(self, *coord: Coord) -> IntTuple:
        return _evaluate(coord[0] if len(coord) == 1 else coord, self)

    def __getitem__(self, index: int) -> Layout:
        modes = layout_modes(self)
        if not 0 <= index < len(modes):
            raise IndexError(f"expected a mode index in [0, {len(modes)}), got {index}")
        return modes[index]

    def __iter__(self) -> Iterator[Layout]:
        return iter(layout_modes(self))

    def __str__(self) -> str:
        return f"{tree_text(self.shape)}:{tree_text(self.stride)}"

    def __repr__(self) -> str:
        return f'Layout("{self}")'

    def __reduce__(self) -> tuple[object, ...]:
        return (raw_layout, (self.shape, self.stride))


_set_shape = Layout.shape.__set__  # type: ignore[attr-defined]
_set_stride = Layout.stride.__set__  # type: ignore[attr-defined]
_new = object.__new__


def raw_layout(shape: IntTuple, stride: Stride) -> Layout:
    """Build a layout without checks.  The caller guarantees that the parts fit, or verifies the layout later."""
    layout = _new(Layout)
    _set_shape(layout, shape)
    _set_stride(layout, stride)
    return layout


def layout_modes(layout: Layout) -> list[Layout]:
    """Return the modes.  A scalar layout has one mode, the layout itself."""
    shape, stride = layout.shape, layout.stride
    if type(shape) is not tuple:
        return [layout]
    return [raw_layout(s, d) for s, d in zip(shape, stride)]  # type: ignore[arg-type]


class Swizzle(_Frozen):
    """``S<b,m,s>``: xor ``bits`` bits, starting at bit ``base``, with those ``shift`` bits above (below if negative).

    The swizzle of ``x`` is ``x ^ ((x & ymask) >> shift)``, with a left shift if ``shift`` is negative.  A dynamic leaf
    takes three instructions, or none if its divisibility proves that the bits read are 0.

    Source: the CuTe documentation of layouts, "Swizzle".

    Raises:
        AlgebraError: unless ``bits >= 0``, ``base >= 0``, ``|shift| >= bits`` and ``|shift| + bits + base <= 32``.

    >>> [Swizzle(3, 4, 3)(x) for x in (0, 128, 130, 1024)]
    [0, 144, 146, 1024]
    """

    __slots__ = ("base", "bits", "shift")
    bits: int
    base: int
    shift: int

    def __init__(self, bits: int, base: int, shift: int):
        if not type(bits) is type(base) is type(shift) is int:
            raise AlgebraError(f"expected three integers for a swizzle, got {bits!r}, {base!r}, {shift!r}")
        if bits < 0 or base < 0:
            raise AlgebraError(f"expected bits and base of a swizzle to be >= 0, got S<{bits},{base},{shift}>")
        if abs(shift) < bits:
            raise AlgebraError(f"expected |shift| >= bits in a swizzle, got S<{bits},{base},{shift}>")
        if abs(shift) + bits + base > 32:
            raise AlgebraError(f"expected |shift| + bits + base <= 32 in a swizzle, got S<{bits},{base},{shift}>")
        set_ = object.__setattr__
        set_(self, "bits", bits)
        set_(self, "base", base)
        set_(self, "shift", shift)

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is Swizzle and self.bits == other.bits and self.base == other.base and self.shift == other.shift
        )

    def __hash__(self) -> int:
        return hash((self.bits, self.base, self.shift, "S"))

    def __call__(self, x: Leaf) -> Leaf:
        ymask, _ = self.masks()
        s = self.shift
        if type(x) is int:
            return x ^ ((x & ymask) >> s if s >= 0 else (x & ymask) << -s)
        moved = and_(x, mask_operand(ymask, x))
        return xor(x, shr(moved, s) if s >= 0 else shl(moved, -s))

    def masks(self) -> tuple[int, int]:
        """Return the masks ``(ymask, zmask)`` of the bits that the swizzle reads and of the bits that it flips.

        >>> [bin(m) for m in Swizzle(2, 1, 3).masks()]
        ['0b110000', '0b110']
        """
        mask = (1 << self.bits) - 1
        return mask << (self.base + max(0, self.shift)), mask << (self.base - min(0, self.shift))

    def __str__(self) -> str:
        return f"S<{self.bits},{self.base},{self.shift}>"

    def __repr__(self) -> str:
        return f"Swizzle({self.bits}, {self.base}, {self.shift})"

    def __reduce__(self) -> tuple[object, ...]:
        return (Swizzle, (self.bits, self.base, self.shift))


class ComposedLayout(_Frozen):
    """``inner o offset o outer``: the function ``c -> inner(offset + outer(c))``.

    ``outer`` is the layout that defines the domain (``B`` in formulas).  ``inner`` is the swizzle or layout applied
    last.  The constructor checks nothing; see :func:`cute_dialect.algebra.verify.verify_composed_layout`.
    """

    __slots__ = ("inner", "offset", "outer")
    inner: Layout | Swizzle
    offset: IntTuple
    outer: Layout

    def __init__(self, inner: Layout | Swizzle, offset: IntTuple, outer: Layout):
        set_ = object.__setattr__
        set_(self, "inner", inner)
        set_(self, "offset", offset)
        set_(self, "outer", outer)

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is ComposedLayout
            and self.inner == other.inner
            and self.offset == other.offset
            and self.outer == other.outer
        )

    def __hash__(self) -> int:
        return hash((self.inner, self.offset, self.outer))

    def __call__(self, *coord: Coord) -> IntTuple:
        return _evaluate(coord[0] if len(coord) == 1 else coord, self)

    def __str__(self) -> str:
        inner, offset = self.inner, self.offset
        if type(inner) is Swizzle and inner.bits == 0 and type(offset) is int and offset == 0:
            return str(self.outer)
        return f"{inner} o {tree_text(offset)} o {self.outer}"

    def __repr__(self) -> str:
        return f'ComposedLayout("{self}")'

    def __reduce__(self) -> tuple[object, ...]:
        return (ComposedLayout, (self.inner, self.offset, self.outer))


Tile: TypeAlias = "Layout | Underscore | tuple[Tile, ...]"
AnyLayout: TypeAlias = Layout | ComposedLayout
Payload: TypeAlias = "IntTuple | Coord | Stride | Tile | Layout | ComposedLayout | Swizzle"

_make_layout: Callable[[IntTuple | str, Stride | str | None], Layout]
_evaluate: Callable[[Coord, AnyLayout], IntTuple]


def connect(
    make_layout: Callable[[IntTuple | str, Stride | str | None], Layout],
    evaluate: Callable[[Coord, AnyLayout], IntTuple],
) -> None:
    """Set the functions that ``Layout(…)`` and a call of a layout run."""
    global _make_layout, _evaluate
    _make_layout, _evaluate = make_layout, evaluate


def tree_text(tree: Payload) -> str:
    """Return the canonical text of a tree of leaves."""
    return "(" + ",".join([tree_text(t) for t in tree]) + ")" if type(tree) is tuple else str(tree)


__all__ = [
    "UNDERSCORE",
    "AnyLayout",
    "Basis",
    "ComposedLayout",
    "Coord",
    "IntTuple",
    "Layout",
    "Payload",
    "Stride",
    "Swizzle",
    "Tile",
    "Underscore",
    "connect",
    "layout_modes",
    "raw_layout",
    "tree_text",
]
