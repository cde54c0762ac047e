"""Parsing of the objects to draw: layouts from text, the algebra, the language or arrays, with run-time sizes.

Objects of the language are recognized by their attributes, so that nothing of it is imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from cute_dialect.algebra.leaf import AlgebraError, Dyn
from cute_dialect.algebra.text import TextError, parse_composed_layout, parse_layout, parse_swizzle, to_text
from cute_dialect.algebra.trees import column_major, is_static, product, tree_leaves
from cute_dialect.algebra.values import AnyLayout, Basis, ComposedLayout, IntTuple, Layout, Swizzle
from cute_dialect.algebra.verify import verify_layout
from cute_dialect.viz.cells import DrawingError

Sizes = Mapping[str, int] | Sequence[int] | None
"""Numbers for dynamic leaves, by name or in the order of the layout."""

_NAME = re.compile(r"(?<![\w@])[A-Za-z_]\w*")


class Subject(NamedTuple):
    """A layout to draw.  ``names`` are those of its dynamic leaves, first of the shape, then of the stride."""

    layout: AnyLayout
    names: tuple[str, ...] = ()

    @property
    def outer(self) -> Layout:
        """The layout that defines the coordinates."""
        return self.layout.outer if isinstance(self.layout, ComposedLayout) else self.layout

    @property
    def is_static(self) -> bool:
        """True if all extents and strides are static."""
        return is_static(self.layout)

    @property
    def shape(self) -> IntTuple:
        """The extents of its coordinates."""
        return self.outer.shape

    @property
    def text(self) -> str:
        """The layout as text, with the names of its dynamic leaves."""
        names = iter(self.names)
        shown = to_text(self.layout)
        return re.sub(r"\?(\{[^}]*\})?", lambda _: next(names, "?"), shown)


def parsed(words: str) -> tuple[AnyLayout | Swizzle, tuple[str, ...]]:
    """Parse the text of a layout or of a swizzle. Extents and strides may be names, which are dynamic leaves.

    Raises DrawingError with the text, a caret below the error, and the expected input.

    >>> parsed("(m,8):(8,1)")
    (Layout("(?,8):(8,1)"), ('m',))
    """
    names: list[str] = []
    plain = re.sub(r"\bS<", "  ", words)  # The S of a swizzle and the o of a composition are not names.
    found = [
        m for m in _NAME.finditer(plain) if m[0] not in ("o", "div") and not re.fullmatch(r"i(1|8|16|32|64)", m[0])
    ]
    text, shift = words, 0
    moved: list[tuple[int, int]] = []
    for m in found:
        a, b = m.start() + shift, m.end() + shift
        text = f"{text[:a]}?{text[b:]}"
        moved.append((a, len(m[0]) - 1))
        shift -= len(m[0]) - 1
    unnamed = 0
    for at, c in enumerate(text):
        if c == "?":
            name = next((f[0] for f, (a, _) in zip(found, moved) if a == at), "")
            names.append(name or f"s{unnamed}")
            unnamed += not name
    stripped = text.strip()
    try:
        if re.fullmatch(r"S\s*<[^>]*>", stripped):
            return parse_swizzle(stripped), ()
        value = parse_composed_layout(text) if "o" in text or "S" in text else parse_layout(text)
    except TextError as e:
        at = e.position + sum(extra for a, extra in moved if a < e.position)
        message = str(e).rpartition(" at offset ")[0]
        for m in found:
            if m.start() == at:
                message = message.replace("got '?'", f"got '{m[0]}'")
        raise DrawingError(f"{message}\n  {words}\n  {' ' * at}^") from None
    except AlgebraError as e:
        raise DrawingError(f"{e}\n  {words}") from None
    return value, _in_order(value, text, names)


def _in_order(value: AnyLayout | Swizzle, text: str, names: list[str]) -> tuple[str, ...]:
    """Return the names of all dynamic leaves.

    If the text has no strides, their names are products of those of the shape.
    """
    if not isinstance(value, Layout):
        return tuple(names)
    if ":" in text:
        return tuple(names)
    shape = [x for x in tree_leaves(value.shape)]
    found = iter(names)
    known = [next(found) if isinstance(x, Dyn) else str(x) for x in shape]
    strides: list[str] = []
    for i, d in enumerate(tree_leaves(value.stride)):
        if isinstance(d, Dyn):
            strides.append("*".join(k for k in known[:i] if k != "1"))
    return (*names, *strides)


def given(x: Any) -> AnyLayout | Swizzle | tuple[AnyLayout | Swizzle, tuple[str, ...]]:
    """Convert text, a layout, a tensor, a shape or an array to a layout or swizzle."""
    if isinstance(x, str):
        return parsed(x)
    if isinstance(x, Layout | ComposedLayout | Swizzle):
        return x
    payload = getattr(x, "payload", None)
    if isinstance(payload, Layout | ComposedLayout):
        return payload
    of_memory = getattr(getattr(x, "layout", None), "payload", None)  # a tensor of the language
    if isinstance(of_memory, Layout | ComposedLayout):
        return of_memory
    if isinstance(x, int) and not isinstance(x, bool):
        return Layout(x, 1)
    if isinstance(x, tuple | list) and _is_shape(cast("object", x)):
        shape = _tree(cast("object", x))
        return Layout(shape, column_major(shape))
    made = _array(x)
    if made is not None:
        return made
    raise DrawingError(
        "cannot draw this object; draw a layout, its text such as '(4,8):(8,1)', a tensor, a shape or an array, "
        f"got {_shown(cast('object', x))}"
    )


def _shown(x: object) -> str:
    said = repr(x)
    return said if len(said) <= 80 else f"{said[:77]}..."


def _is_shape(x: object) -> bool:
    if isinstance(x, tuple | list):
        parts = cast("Sequence[object]", x)
        return bool(parts) and all(_is_shape(e) for e in parts)
    return isinstance(x, int | Dyn) and not isinstance(x, bool)


def _tree(x: Any) -> Any:
    return tuple(_tree(e) for e in cast("Sequence[Any]", x)) if isinstance(x, tuple | list) else x


def _array(x: Any) -> Layout | None:
    """Return the layout of a numpy or torch array, in elements."""
    shape, stride, size = getattr(x, "shape", None), getattr(x, "stride", None), getattr(x, "itemsize", None)
    if shape is None or not hasattr(x, "dtype"):
        return None
    extents = tuple(int(n) for n in shape)
    if callable(stride):
        steps = tuple(int(n) for n in cast("Callable[[], Sequence[int]]", stride)())
    else:
        strides = getattr(x, "strides", None)
        if strides is None or not isinstance(size, int):
            return None
        steps = tuple(int(n) // size for n in strides)
    return Layout(extents, steps) if extents else None


def layout_given(x: Any, sizes: Sizes = None) -> Subject:
    """Return the layout to draw, with ``sizes`` substituted for its dynamic leaves.

    Raises DrawingError if the object is not a layout, or if a size has no matching leaf.

    >>> layout_given("(m,8):(8,1)", {"m": 4}).text, layout_given("(m,8):(8,1)").text
    ('(4,8):(8,1)', '(m,8):(8,1)')
    """
    found = given(x)
    value, names = found if isinstance(found, tuple) else (found, ())
    if isinstance(value, Swizzle):
        raise DrawingError(f"{value} is a swizzle, not a layout; use draw_swizzle")
    if isinstance(x, str):
        try:
            verify_layout(value.outer if isinstance(value, ComposedLayout) else value)
        except AlgebraError as e:
            raise DrawingError(f"{x} is not a layout: {e}") from None
    count = len(_dynamic(value))
    if not count:
        if sizes:
            raise DrawingError(f"sizes= is not allowed, because {to_text(value)} is static")
        return Subject(value)
    names = names if len(names) == count else tuple(f"s{i}" for i in range(count))
    if not sizes:
        return Subject(value, names)
    return _filled(value, names, sizes)


def _dynamic(value: AnyLayout) -> list[Dyn]:
    return [x for x in _leaves(value) if isinstance(x, Dyn)]


def _leaves(value: AnyLayout) -> Iterator[object]:
    outer = value.outer if isinstance(value, ComposedLayout) else value
    yield from tree_leaves(outer.shape)
    for d in tree_leaves(outer.stride):
        yield d.value if isinstance(d, Basis) else d
    if isinstance(value, ComposedLayout):
        yield from tree_leaves(value.offset)


def _filled(value: AnyLayout, names: tuple[str, ...], sizes: Mapping[str, int] | Sequence[int]) -> Subject:
    numbers: dict[str, int]
    if isinstance(sizes, Mapping):
        numbers = dict(sizes)
        unknown = [n for n in numbers if n not in names]
        if unknown:
            raise DrawingError(f"sizes= has no dynamic leaf {unknown[0]!r}; leaves: {', '.join(dict.fromkeys(names))}")
    else:
        if len(sizes) > len(names):
            raise DrawingError(f"{len(sizes)} sizes given for {len(names)} dynamic leaves ({', '.join(names)})")
        numbers = dict(zip(names, sizes))
    left: list[str] = []
    order = iter(names)

    def put(leaf: Any) -> Any:
        if isinstance(leaf, tuple):
            return tuple(put(x) for x in cast("tuple[Any, ...]", leaf))
        if isinstance(leaf, Basis):
            return Basis(put(leaf.value), leaf.path)
        if not isinstance(leaf, Dyn):
            return leaf
        name = next(order)
        number = _number(name, numbers)
        if number is None:
            left.append(name)
            return leaf
        if number < 0 or (leaf.div > 1 and number % leaf.div):
            raise DrawingError(f"the size of {name} must be a multiple of {max(leaf.div, 1)}, got {number}")
        return number

    outer = value.outer if isinstance(value, ComposedLayout) else value
    made: AnyLayout = Layout(put(outer.shape), put(outer.stride))
    if isinstance(value, ComposedLayout):
        made = ComposedLayout(value.inner, put(value.offset), made)
    return Subject(made, tuple(left))


def _number(name: str, numbers: Mapping[str, int]) -> int | None:
    """Return the number of a name, or of a product of names."""
    if name in numbers:
        return int(numbers[name])
    parts = name.split("*")
    if len(parts) > 1 and all(p in numbers or p.isdigit() for p in parts):
        total = 1
        for p in parts:
            total *= numbers[p] if p in numbers else int(p)
        return total
    return None


def static_given(x: Any, sizes: Sizes, what: str) -> AnyLayout:
    """Return a static layout.  Raises DrawingError, with the sizes to give, if it is dynamic."""
    subject = layout_given(x, sizes)
    if not subject.is_static:
        names = ", ".join(f"{n!r}: 8" for n in dict.fromkeys(subject.names))
        raise DrawingError(f"{what}: the layout {subject.text} is dynamic; give sizes={{{names}}}")
    return subject.layout


def swizzle_given(x: Any) -> Swizzle | None:
    """Return the swizzle if the object is one, or its text. None for anything else."""
    if isinstance(x, str) and re.fullmatch(r"\s*S\s*<[^>]*>\s*", x):
        value, _ = parsed(x)
        assert isinstance(value, Swizzle)
        return value
    return x if isinstance(x, Swizzle) else None


def has(x: Any, name: str) -> bool:
    """Return True if the object's class has an attribute, without evaluating it."""
    return hasattr(cast("object", type(x)), name)


def element_bits(x: Any, given: int | None) -> int | None:
    """Return the bits of an element: ``given``, or those of the tensor or array."""
    if given is not None:
        return given
    width = getattr(getattr(x, "element_type", None), "width", None)
    if isinstance(width, int):
        return width
    size = getattr(x, "itemsize", None)
    return 8 * size if isinstance(size, int) else None


def extents(shape: IntTuple) -> list[int | None]:
    """Return the number of coordinates of each mode, None if dynamic. A layout of rank 1 has one mode."""
    modes = shape if isinstance(shape, tuple) else (shape,)
    out: list[int | None] = []
    for m in modes:
        n = product(m)
        out.append(n if isinstance(n, int) else None)
    return out
