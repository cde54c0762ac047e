"""Layouts as values, and the functions on them: the algebra where everything is known, ops where not.

One way for all functions: :func:`apply` takes the types of the operands, infers the type of the result (the op's own
inference, which is the algebra run over types), and if that says everything the result is made of it; no op appears.
Otherwise the op does.  Layouts keep their payload, a tree of integers and dynamic leaves, so their size, shape, rank
and text need no op.

>>> apply("cute.zipped_divide", make_layout((12, 10), (10, 1)), Tree((4, 5), "tiler"))
((4,5),(3,2)):((10,1),(40,5))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from cute_dialect.algebra.leaf import AlgebraError, Dyn
from cute_dialect.algebra.text import to_text
from cute_dialect.algebra.trees import is_static as is_static_payload
from cute_dialect.algebra.trees import map_leaves
from cute_dialect.algebra.values import ComposedLayout as ComposedPayload
from cute_dialect.algebra.values import Layout as LayoutPayload
from cute_dialect.algebra.values import Swizzle
from cute_dialect.front.dtypes import Boolean, Numeric
from cute_dialect.front.errors import LayoutError
from cute_dialect.front.tuples import (
    Tree,
    cute_type,
    dynamic_leaves_of,
    filled,
    from_ssa,
    is_tree,
    map_tree,
    numbers_of,
    tree_of,
)
from cute_dialect.front.values import Dynamic, Form

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

__all__ = [
    "AnyLayout", "ComposedLayout", "Layout", "Operand", "Swizzle", "apply", "as_layout", "from_value", "is_layout",
    "layout", "layout_of", "make_composed_layout", "make_identity_layout", "make_layout", "make_layout_like",
    "make_layout_tv", "make_ordered_layout", "make_swizzle", "static_layout",
]  # fmt: skip


class Operand(Protocol):
    """What an op can take: a layout, a tensor, a :class:`Tree`."""

    @property
    def ssa(self) -> SSAValue:
        """An SSA value of it."""
        ...


class AnyLayout(Dynamic):
    """The base of layouts: a payload, and numbers or an SSA value for its dynamic leaves."""

    __slots__ = ("_made", "_numbers", "_ssa", "is_static", "payload")
    kind = ""

    payload: Any
    is_static: bool

    def __init__(self, payload: Any, ssa: SSAValue | None = None, numbers: Sequence[Numeric] | None = None):
        self.payload = payload
        self.is_static = is_static_payload(payload)
        self._ssa = ssa
        self._made: SSAValue | None = None
        self._numbers: Sequence[Numeric] | None = () if self.is_static else numbers

    @property
    def type(self) -> Attribute:
        """Its type."""
        return cute_type(self.kind, self.payload)

    @property
    def ssa(self) -> SSAValue:
        """Its SSA value; a static layout becomes ``cute.static``, one of numbers is made once in each block."""
        if self._ssa is not None:
            return self._ssa
        if self.is_static:
            return filled(self.kind, self.payload, self.numbers)
        from cute_dialect.front.trace import current

        if self._made is None or self._made.owner.parent is not current().block:
            self._made = filled(self.kind, self.payload, self.numbers)
        return self._made

    @property
    def numbers(self) -> Sequence[Numeric]:
        """The dynamic leaves, in storage order."""
        if self._numbers is None:
            assert self._ssa is not None
            outer = self.payload.outer if isinstance(self.payload, ComposedPayload) else self.payload
            self._numbers = numbers_of(self._ssa, self.payload, shapes=len(dynamic_leaves_of(outer.shape)))
        return self._numbers

    def describe(self) -> str:
        return f"the layout {self}"

    def __str__(self) -> str:
        return to_text(self.payload)

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __cute_form__(self) -> Form:
        from cute_dialect.front.layout_forms import LayoutForm

        return LayoutForm(type(self), self.payload)

    def __cute_same__(self, other: AnyLayout) -> bool:
        return self.is_static and other.is_static and self.payload == other.payload

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, AnyLayout):
            return NotImplemented
        from cute_dialect.front.tuple_functions import equal

        return equal(self, other)

    def __ne__(self, other: object) -> Any:
        same = self.__eq__(other)
        return same if same is NotImplemented else (not same if isinstance(same, bool) else ~same)

    def __hash__(self) -> int:
        return hash(self.payload) if self.is_static else id(self)

    @property
    def rank(self) -> int:
        """The number of its modes."""
        from cute_dialect.algebra.trees import rank

        return rank(self.payload)

    @property
    def depth(self) -> int:
        """The levels of nesting of its shape."""
        from cute_dialect.algebra.trees import depth

        return depth(self.payload)

    @property
    def max_alignment(self) -> int:
        """The greatest number that is known to divide every offset."""
        from cute_dialect.front.layout_functions import max_alignment

        return max_alignment(self)

    def __call__(self, *coord: Any) -> Any:
        return apply("cute.layout_eval", Tree(coord[0] if len(coord) == 1 else coord, "coord"), self)

    def __getitem__(self, mode: int | Sequence[int]) -> Any:
        path = [mode] if isinstance(mode, int) else list(mode)
        if isinstance(mode, int) and mode < 0:
            path = [mode + self.rank]
        return apply("cute.get", self, mode=path)

    def __iter__(self) -> Iterator[Any]:
        for i in range(self.rank):
            yield self[i]

    def __len__(self) -> int:
        return self.rank

    def get_hier_coord(self, idx: Any) -> Any:
        """Return the coordinate, as nested as the shape, whose offset is ``idx``; the layout's image has no gaps.

        >>> make_layout((4, (2, 3))).get_hier_coord(7), make_layout((4, 2), stride=(2, 1)).get_hier_coord(7)
        ((3, (1, 0)), (3, 1))
        """
        return map_tree(lambda s, d: _along(idx, s, d), self.shape, self.stride)  # pyright: ignore

    def get_flat_coord(self, idx: Any) -> Any:
        """Return the coordinate whose offset is ``idx``, one number a mode; see :meth:`get_hier_coord`.

        >>> make_layout((4, (2, 3))).get_flat_coord(15)
        (3, 3)
        """
        from cute_dialect.front.tuple_functions import crd2idx

        coord, shape = self.get_hier_coord(idx), self.shape  # pyright: ignore
        if not isinstance(shape, tuple):
            return coord
        return tuple([crd2idx(c, s) if isinstance(s, tuple) else c for c, s in zip(coord, shape)])

    def get_1d_coord(self, idx: Any) -> Any:
        """Return the number of the element whose offset is ``idx``; see :meth:`get_hier_coord`.

        >>> make_layout((4, 2), stride=(2, 1)).get_1d_coord(3)
        5
        """
        from cute_dialect.front.tuple_functions import crd2idx

        return crd2idx(self.get_hier_coord(idx), self.shape)  # pyright: ignore


def _along(idx: Any, extent: Any, stride: Any) -> Any:
    """Return the coordinate along one mode of the element with this offset."""
    if isinstance(extent, int) and extent == 1:
        return 0
    if isinstance(stride, int) and stride == 0:
        return 0
    return (idx // stride) % extent


class Layout(AnyLayout):
    """A layout: a function from coordinates to offsets, ``shape:stride``.

    >>> make_layout((8, 4), stride=(4, 1))(1, 2)
    6
    """

    __slots__ = ()
    kind = "layout"

    @property
    def shape(self) -> Any:
        """Its shape."""
        return tree_of(self.payload.shape, iter(self.numbers))

    @property
    def stride(self) -> Any:
        """Its strides, a tree like the shape."""
        return tree_of(self.payload.stride, iter(self.numbers[len(dynamic_leaves_of(self.payload.shape)) :]))


class ComposedLayout(AnyLayout):
    """A composed layout ``inner o offset o outer``: ``inner(offset + outer(c))``; the inner part is often a swizzle."""

    __slots__ = ()
    kind = "composed_layout"

    def _part(self, payload: Any, skipped: int) -> Any:
        numbers = self.numbers[skipped : skipped + len(dynamic_leaves_of(payload))]
        return Layout(payload, numbers=numbers)

    @property
    def outer(self) -> Layout:
        """The layout whose domain counts."""
        return self._part(self.payload.outer, 0)

    @property
    def offset(self) -> Any:
        """What is added before the inner part."""
        skipped = len(dynamic_leaves_of(self.payload.outer))
        return tree_of(self.payload.offset, iter(self.numbers[skipped:]))

    @property
    def inner(self) -> Any:
        """The swizzle or layout that is applied last."""
        if isinstance(self.payload.inner, Swizzle):
            return self.payload.inner
        skipped = len(dynamic_leaves_of(self.payload.outer)) + len(dynamic_leaves_of(self.payload.offset))
        return self._part(self.payload.inner, skipped)

    @property
    def shape(self) -> Any:
        """The shape of the outer part."""
        return self.outer.shape

    @property
    def stride(self) -> Any:
        """The strides of the outer part."""
        return self.outer.stride


def is_layout(x: object) -> bool:
    """Tell whether a value is a layout, composed or not."""
    return isinstance(x, AnyLayout)


# ---------------------------------------------------------------------------------------------------------- applying


def operand_type(x: Any) -> Attribute:
    """Return the type that an operand of an op has."""
    return x.type if hasattr(x, "type") else x.ssa.type


def apply(name: str, *operands: Any, called: str = "", **properties: Any) -> Any:
    """Return what an op of the dialect gives for layouts, tensors and trees; nothing is emitted if its type says it.

    ``properties``: integers become ``i32``, sequences a mode path.  Raises F240 with the operands in it, in the words
    ``called`` if what the user called is not named as the op is.

    >>> apply("cute.zipped_divide", make_layout(12), Tree(4, "tiler"))
    (4,3):(1,4)
    """
    from cute_dialect.front.trace import current, op_class
    from cute_dialect.ops.inference import infer_types_memo

    attributes = {key: _attribute(x) for key, x in properties.items() if x is not None}
    types = [operand_type(x) for x in operands]
    try:
        (type,) = infer_types_memo(op_class(name), types, attributes)
    except AlgebraError as e:
        raise refused(name, operands, e, called) from None
    static = _of_static_type(type)
    if static is not None:
        return static[0]
    type = _untracked(type)
    elements = next((x.element_type for x in operands if hasattr(x, "element_type")), None)
    return from_value(current().value(name, [x.ssa for x in operands], [type], attributes), elements)


def refused(name: str, operands: Sequence[Any], error: AlgebraError, called: str = "") -> LayoutError:
    """Return the error of an op that its operands do not suit."""
    texts = [x.text if isinstance(x, Tree) else str(x) for x in operands]
    message = str(error).removeprefix(f"'{name}' op ")
    called = called or f"{name.removeprefix('cute.')}({', '.join(texts)})"
    return LayoutError("F240", f"{called}: {message.removeprefix('result: ')}")


def _attribute(x: Any) -> Attribute:
    from xdsl.dialects.builtin import IntegerAttr, i32

    from cute_dialect.ops.asm import mode_attr

    if isinstance(x, int):
        return IntegerAttr(x, i32)
    return mode_attr([int(i) for i in x]) if isinstance(x, tuple | list) else x


def _of_static_type(type: Any) -> tuple[Any] | None:
    """Return the value that a type describes completely (in a tuple of one), None if it does not."""
    from cute_dialect.memory_types import CoordTensorType
    from cute_dialect.types import CuteType

    if isinstance(type, CoordTensorType) and type.is_static():
        from cute_dialect.front.tensors import Tensor

        return (Tensor.static(type),)
    if not isinstance(type, CuteType) or not type.is_static():
        return None
    return (of_payload(type.kind, type.data, ()),)


def _untracked(type: Any) -> Any:
    """Return the same type; divisors of 1 are no divisors, as in a type that was read."""
    from cute_dialect.types import CuteType

    if not isinstance(type, CuteType):
        return type
    return cute_type(type.kind, map_leaves(_without_one, type.data))


def _without_one(leaf: Any) -> Any:
    return Dyn(leaf.width) if isinstance(leaf, Dyn) and leaf.div == 1 else leaf


def of_payload(kind: str, payload: Any, numbers: Sequence[Numeric]) -> Any:
    """Return the user's value of a payload with these numbers for its dynamic leaves."""
    if kind == "layout":
        return Layout(payload, numbers=numbers)
    if kind == "composed_layout":
        return ComposedLayout(payload, numbers=numbers)
    return tree_of(payload, iter(numbers))


def from_value(ssa: SSAValue, element_type: Any = None) -> Any:
    """Return the user's value of an SSA value: a layout, an int tuple, a tensor, a Boolean.

    ``element_type``: of tensors whose elements' MLIR type does not say their sign.
    """
    type: Any = ssa.type
    name = type.name
    if name == "cute.layout":
        return Layout(type.data, ssa)
    if name == "cute.composed_layout":
        return ComposedLayout(type.data, ssa)
    if name in ("cute.memref", "cute.coord_tensor"):
        from cute_dialect.front.tensors import Tensor

        return Tensor.of(ssa, element_type)
    if name == "cute.swizzle":
        return type.data
    if name == "integer_type":
        return Boolean.of(ssa)
    return from_ssa(ssa)


def is_tensor(x: object) -> bool:
    """Tell whether a value is a tensor: an iterator with a layout."""
    return hasattr(type(x), "iterator")


def over_layout(tensor: Any, f: Callable[[Any], Any]) -> Any:
    """Return the tensor of the same iterator whose layout is what a function makes of its layout."""
    from cute_dialect.front.tensors import make_tensor

    return make_tensor(tensor.iterator, f(tensor.layout))


def as_layout(x: Any) -> Any:
    """Return a layout for a layout, the text of one, or a shape, which is compact; other values stay."""
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
    """Return the layout of a tensor, or what :func:`as_layout` gives."""
    return x.layout if not isinstance(x, AnyLayout) and hasattr(type(x), "layout") else as_layout(x)


# ------------------------------------------------------------------------------------------------------------- makers


def layout(text: Any, *numbers: Any) -> Any:
    """Return the layout of the dialect's text; ``numbers`` stand at its ``?``, from left to right.

    >>> layout("(8,4):(4,1)"), layout("S<2,3,3> o 0 o (8,8):(8,1)")
    ((8,4):(4,1), S<2,3,3> o 0 o (8,8):(8,1))
    """
    from cute_dialect.algebra.text import TextError, parse_composed_layout
    from cute_dialect.algebra.verify import verify_composed_layout, verify_layout

    if not numbers:
        numbers = tuple(
            n for piece in getattr(text, "pieces", ()) if isinstance(piece, tuple) for n in _run_time(piece[0])
        )
    try:
        payload = parse_composed_layout(str(text))
        (verify_composed_layout if isinstance(payload, ComposedPayload) else verify_layout)(payload)  # pyright: ignore
    except (TextError, AlgebraError) as e:
        raise LayoutError("F240", f"no layout: '{text}': {e}") from None
    slots = dynamic_leaves_of(payload)
    if len(slots) != len(numbers):
        raise LayoutError("F240", f"expected {len(slots)} numbers, one a '?' of '{text}', got {len(numbers)}")
    if isinstance(payload, ComposedPayload):
        if slots:
            raise LayoutError("F240", f"expected a static composed layout, got '{text}'", hint="make_composed_layout")
        return ComposedLayout(payload)
    if not slots:
        return Layout(payload)
    given = iter(numbers)
    shape, stride = tree_of(payload.shape, given), tree_of(payload.stride, given)
    return make_layout(shape, stride)


def _run_time(value: Any) -> list[Any]:
    """Return the numbers of run time in a value that was written into a text, from left to right."""
    if isinstance(value, tuple | list):
        return [n for x in value for n in _run_time(x)]
    if isinstance(value, Layout):
        return list(value.numbers)
    return [value] if isinstance(value, Numeric) and not value.is_static else []


def make_layout(shape: Any, stride: Any = None, order: Any = None) -> Layout:
    """Return the layout of a shape and strides; compact without strides, first mode fastest or in an order.

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
    """Return a layout that keeps the numbers it was made of, so that its shape needs no op."""
    from cute_dialect.algebra.values import raw_layout
    from cute_dialect.front.trace import op_class
    from cute_dialect.ops.inference import infer_types_memo

    try:
        infer_types_memo(op_class("cute.make_layout"), [shape.type, stride.type], {})
    except AlgebraError as e:
        raise refused("cute.make_layout", (shape, stride), e) from None
    return Layout(raw_layout(shape.payload, stride.payload), numbers=[*shape.numbers, *stride.numbers])


def make_ordered_layout(shape: Any, order: Any) -> Layout:
    """Return the compact layout in which the mode of the least order varies fastest.

    >>> make_ordered_layout((4, 8, 2), order=(2, 1, 0))
    (4,8,2):(16,2,1)
    """
    return apply("cute.make_ordered_layout", Tree(shape, "shape"), Tree(order, "int_tuple"))


def make_layout_like(x: Any) -> Layout:
    """Return the compact layout of the same shape whose modes are ordered as those of a layout.

    >>> make_layout_like(make_layout((6, 5), (20, 2)))
    (6,5):(5,1)
    """
    return apply("cute.make_layout_like", layout_of(x))


def make_identity_layout(shape: Any) -> Layout:
    """Return the layout that maps each coordinate to itself.

    >>> make_identity_layout((4, 8))
    (4,8):(1@0,1@1)
    """
    return apply("cute.make_identity_layout", Tree(shape, "shape"))


def make_swizzle(b: int, m: int, s: int) -> Swizzle:
    """Return the swizzle that xors ``b`` bits at bit ``m`` with those ``s`` above.  Raises F240.

    >>> make_swizzle(3, 4, 3)
    Swizzle(3, 4, 3)
    """
    try:
        return Swizzle(int(b), int(m), int(s))
    except AlgebraError as e:
        raise LayoutError("F240", str(e)) from None


def make_composed_layout(inner: Any, offset: Any, outer: Any) -> Any:
    """Return ``inner o offset o outer``; an identity swizzle without offset gives the outer layout.

    >>> make_composed_layout(make_swizzle(2, 3, 3), 0, make_layout((8, 8), (8, 1)))
    S<2,3,3> o 0 o (8,8):(8,1)
    """
    if isinstance(inner, Swizzle) and inner.bits == 0 and isinstance(offset, int) and offset == 0:
        return as_layout(outer)
    first = inner if isinstance(inner, AnyLayout) else _swizzle(inner)
    return apply("cute.make_composed_layout", first, Tree(offset, "int_tuple"), as_layout(outer))


def _swizzle(x: Any) -> Any:
    if isinstance(x, Swizzle):
        return _Operand("swizzle", x)
    if callable(x):
        raise LayoutError("F240", "expected a layout or a swizzle as the inner part, got a function")
    return as_layout(x)


class _Operand(Tree):
    """A static operand that is no tree."""

    __slots__ = ()

    def __init__(self, kind: str, payload: Any):
        self.kind, self.payload, self.numbers = kind, payload, []


def make_layout_tv(thr_layout: Any, val_layout: Any) -> tuple[Any, Layout]:
    """Return the tile that threads with values each cover, and its thread-value layout.

    >>> make_layout_tv(layout("(4,32):(32,1)"), layout("(4,4):(4,1)"))
    ((16, 128), ((32,4),(4,4)):((64,4),(16,1)))
    """
    from cute_dialect.algebra.tiled_copy import make_layout_tv as make

    threads, values = static_layout("make_layout_tv", thr_layout), static_layout("make_layout_tv", val_layout)
    try:
        tiler, tv = make(threads, values)
    except AlgebraError as e:
        raise LayoutError("F240", f"make_layout_tv({threads}, {values}): {e}") from None
    return cast("tuple[Any, Layout]", (tiler, Layout(tv)))


def static_layout(function: str, x: Any) -> LayoutPayload:
    """Return the payload of a layout that must be static and plain."""
    made = as_layout(x)
    if not isinstance(made, Layout) or not made.is_static:
        raise LayoutError("F240", f"{function}: expected a static layout, got {made}")
    return made.payload
