"""Construction of layouts from shapes and strides, orders, text, and thread and value layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.text import TextError, parse_composed_layout
from cute_dialect.algebra.tiled_copy import make_layout_tv as make
from cute_dialect.algebra.values import ComposedLayout as ComposedPayload
from cute_dialect.algebra.values import Layout as LayoutPayload
from cute_dialect.algebra.values import Swizzle, raw_layout
from cute_dialect.algebra.verify import verify_composed_layout, verify_layout
from cute_dialect.lang.tracing.errors import LayoutError
from cute_dialect.lang.tracing.tracer import active, op_class
from cute_dialect.lang.values.dtypes import Numeric
from cute_dialect.lang.values.int_tuples import Tree, dynamic_leaves_of, is_tree, tree_of
from cute_dialect.lang.values.layouts import (
    AnyLayout,
    ComposedLayout,
    Layout,
    apply,
    refused,
)

if TYPE_CHECKING:
    from cute_dialect.lang.values.signature_types import Int, IntTuple, LayoutLike, Shape, Stride


__all__ = [
    "layout", "make_composed_layout", "make_identity_layout", "make_layout", "make_layout_like", "make_layout_tv",
    "make_ordered_layout", "make_swizzle",
]  # fmt: skip


def layout(text: str, *numbers: Int) -> Layout | ComposedLayout:
    """Return the layout for the dialect's text. ``numbers`` replace each ``?`` from left to right.

    >>> layout("(8,4):(4,1)"), layout("S<2,3,3> o 0 o (8,8):(8,1)")
    ((8,4):(4,1), S<2,3,3> o 0 o (8,8):(8,1))
    """
    if not numbers:
        numbers = tuple(
            n for piece in getattr(text, "pieces", ()) if isinstance(piece, tuple) for n in _run_time(piece[0])
        )
    try:
        payload = parse_composed_layout(str(text))
        (verify_composed_layout if isinstance(payload, ComposedPayload) else verify_layout)(payload)  # pyright: ignore
    except (TextError, AlgebraError) as e:
        raise LayoutError("F240", f"layout: '{text}' is not a layout: {e}") from None
    slots = dynamic_leaves_of(payload)
    if len(slots) != len(numbers):
        raise LayoutError("F240", f"layout: '{text}' needs {len(slots)} numbers, one for each '?', got {len(numbers)}")
    if isinstance(payload, ComposedPayload):
        if slots:
            raise LayoutError(
                "F240", f"layout: a composed layout must be static, got '{text}'", hint="use make_composed_layout"
            )
        return ComposedLayout(payload)
    if not slots:
        return Layout(payload)
    given = iter(numbers)
    shape, stride = tree_of(payload.shape, given), tree_of(payload.stride, given)
    return make_layout(shape, stride)


def _run_time(value: Any) -> list[Any]:
    """Return the run-time numbers of a value formatted into a string, from left to right."""
    if isinstance(value, tuple | list):
        return [n for x in value for n in _run_time(x)]
    if isinstance(value, Layout):
        return list(value.numbers)
    return [value] if isinstance(value, Numeric) and not value.is_static else []


def make_layout(shape: Shape, stride: Stride = None, order: IntTuple = None) -> Layout:
    """Return the layout of a shape and strides. Without strides it is compact, first mode fastest or by ``order``.

    >>> make_layout((4, 8)), make_layout((4, 8), (8, 1)), make_layout((4, 8), order=(1, 0))
    ((4,8):(1,4), (4,8):(8,1), (4,8):(8,1))
    """
    if isinstance(shape, tuple | list) and shape and all(isinstance(x, Layout) for x in shape) and stride is None:
        modes = cast("Sequence[Layout]", shape)
        return make_layout(tuple(x.shape for x in modes), tuple(x.stride for x in modes))
    if stride is None:
        operands = Tree(shape, "shape"), Tree(0 if order is None else order, "int_tuple")
        text = operands[0].text + ("" if order is None else f", order={operands[1].text}")
        return apply("cute.make_ordered_layout", *operands, called=f"make_layout({text})")
    made_shape, made_stride = Tree(shape, "shape"), Tree(stride, "stride")
    if made_shape.is_static and made_stride.is_static:
        return apply("cute.make_layout", made_shape, made_stride)
    return _checked_layout(made_shape, made_stride)


def _checked_layout(shape: Tree, stride: Tree) -> Layout:
    """Return a layout that keeps its input numbers, so that its shape needs no op."""
    from cute_dialect.dialect.inference import infer_types_memo  # late: start-up

    try:
        infer_types_memo(op_class("cute.make_layout"), [shape.type, stride.type], {})
    except AlgebraError as e:
        raise refused("cute.make_layout", (shape, stride), e) from None
    return Layout(raw_layout(shape.payload, stride.payload), numbers=[*shape.numbers, *stride.numbers])


def make_ordered_layout(shape: Shape, order: IntTuple) -> Layout:
    """Return the compact layout in which the mode with the smallest order varies fastest.

    >>> make_ordered_layout((4, 8, 2), order=(2, 1, 0))
    (4,8,2):(16,2,1)
    """
    return apply("cute.make_ordered_layout", Tree(shape, "shape"), Tree(order, "int_tuple"))


def make_layout_like(x: LayoutLike) -> Layout:
    """Return the compact layout of the same shape, with modes in the order of the layout's strides.

    >>> make_layout_like(make_layout((6, 5), (20, 2)))
    (6,5):(5,1)
    """
    return apply("cute.make_layout_like", layout_of(x))


def make_identity_layout(shape: Shape) -> Layout:
    """Return the layout that maps each coordinate to itself.

    >>> make_identity_layout((4, 8))
    (4,8):(1@0,1@1)
    """
    return apply("cute.make_identity_layout", Tree(shape, "shape"))


def make_swizzle(b: int, m: int, s: int) -> Swizzle:
    """Return the swizzle that XORs ``b`` bits at bit ``m`` with the bits ``s`` above.  Raises F240.

    >>> make_swizzle(3, 4, 3)
    Swizzle(3, 4, 3)
    """
    try:
        return Swizzle(int(b), int(m), int(s))
    except AlgebraError as e:
        raise LayoutError("F240", str(e)) from None


@dataclass(frozen=True, repr=False)
class FunctionLayout:
    """The layout ``inner o offset o outer``, whose inner part is a function: ``inner(offset + outer(c))``.

    Attributes:
        inner: a function of an index, or of a coordinate if ``outer`` yields coordinates. It is traced at each call.
        offset: an index or coordinate that is added before.
        outer: the layout that is applied first and defines the domain.
    """

    inner: Callable[[Any], Any]
    offset: Any
    outer: AnyLayout

    def __call__(self, *coord: Any) -> Any:
        tracer = active()
        inner = self.inner if tracer is None else tracer.converted(self.inner)
        return inner(_sum(self.offset, self.outer(*coord)))

    @property
    def shape(self) -> Any:
        """The shape of the outer layout."""
        return self.outer.shape

    def __cute_size__(self, path: Any) -> Any:
        return apply("cute.size", self.outer, mode=path or None)

    def __repr__(self) -> str:
        return f"{getattr(self.inner, '__name__', self.inner)} o {self.offset} o {self.outer}"


def _sum(offset: Any, index: Any) -> Any:
    """Return the sum of two indices or coordinates. An offset of 0 fits any of them."""
    if isinstance(offset, tuple) and isinstance(index, tuple):
        return tuple(_sum(x, y) for x, y in zip(offset, index, strict=True))
    return index if isinstance(offset, int) and offset == 0 else offset + index


def make_composed_layout(
    inner: LayoutLike | Callable[[Any], Any], offset: IntTuple, outer: LayoutLike
) -> LayoutLike | FunctionLayout:
    """Return ``inner o offset o outer``. An identity swizzle without offset returns the outer layout.

    The inner part may be a function of an index, for instance one that reads a table. The result can then be applied to
    coordinates, but not be the layout of a tensor.

    >>> make_composed_layout(lambda i: i * i, 1, make_layout(8))(3)
    16
    >>> make_composed_layout(make_swizzle(2, 3, 3), 0, make_layout((8, 8), (8, 1)))
    S<2,3,3> o 0 o (8,8):(8,1)
    """
    if isinstance(inner, Swizzle) and inner.bits == 0 and isinstance(offset, int) and offset == 0:
        return as_layout(outer)
    if callable(inner) and not isinstance(inner, AnyLayout | Swizzle):
        if not isinstance(domain := as_layout(outer), AnyLayout):
            raise LayoutError("F240", f"make_composed_layout: outer must be a layout, got {domain!r}")
        return FunctionLayout(inner, offset, domain)
    first = inner if isinstance(inner, AnyLayout) else _swizzle(inner)
    return apply("cute.make_composed_layout", first, Tree(offset, "int_tuple"), as_layout(outer))


def _swizzle(x: Any) -> Any:
    if isinstance(x, Swizzle):
        return _Operand("swizzle", x)
    return as_layout(x)


class _Operand(Tree):
    """A static operand that is not a tree."""

    __slots__ = ()

    def __init__(self, kind: str, payload: Any):
        self.kind, self.payload, self.numbers = kind, payload, []


def make_layout_tv(thr_layout: LayoutLike, val_layout: LayoutLike) -> tuple[Shape, Layout]:
    """Return the tile covered by threads with several values each, and its thread-value layout.

    >>> make_layout_tv(layout("(4,32):(32,1)"), layout("(4,4):(4,1)"))
    ((16, 128), ((32,4),(4,4)):((64,4),(16,1)))
    """
    threads, values = static_layout("make_layout_tv", thr_layout), static_layout("make_layout_tv", val_layout)
    try:
        tiler, tv = make(threads, values)
    except AlgebraError as e:
        raise LayoutError("F240", f"make_layout_tv({threads}, {values}): {e}") from None
    return cast("tuple[Any, Layout]", (tiler, Layout(tv)))


def as_layout(x: Any) -> Any:
    """Return a layout for a layout, its text, or a shape (compact). Other values are returned unchanged."""
    if isinstance(x, str):
        return layout(x)
    if isinstance(x, LayoutPayload):
        return Layout(x)
    if isinstance(x, ComposedPayload):
        return ComposedLayout(x)
    if is_tree(x):
        return make_layout(x)
    return x


def layout_of(x: Any) -> Any:
    """Return the layout of a tensor, or the result of :func:`as_layout`."""
    return x.layout if not isinstance(x, AnyLayout) and hasattr(type(x), "layout") else as_layout(x)


def static_layout(function: str, x: Any) -> LayoutPayload:
    """Return the payload of a layout that must be static and plain."""
    made = as_layout(x)
    if not isinstance(made, Layout) or not made.is_static:
        raise LayoutError("F240", f"{function} needs a static layout, got {made}")
    return made.payload
