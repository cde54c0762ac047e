"""Layouts as values, and their construction: the algebra runs at compile time on static operands, else emits ops.

All functions use :func:`apply`.  It infers the result type from the operand types with the op's own inference, which
runs the algebra on types.  If the type describes the result completely, no op is emitted.  Layouts keep their payload,
a tree of integers and dynamic leaves, so their size, shape, rank and text need no op.

>>> apply("cute.zipped_divide", make_layout((12, 10), (10, 1)), Tree((4, 5), "tiler"))
((4,5),(3,2)):((10,1),(40,5))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, Any, cast

from cute_dialect.algebra.leaf import AlgebraError, Dyn, divisibility, width_of
from cute_dialect.algebra.text import TextError, parse_composed_layout, to_text
from cute_dialect.algebra.tiled_copy import make_layout_tv as make
from cute_dialect.algebra.trees import depth, leaves, map_leaves, rank
from cute_dialect.algebra.trees import is_static as is_static_payload
from cute_dialect.algebra.trees import leaves as payload_leaves
from cute_dialect.algebra.values import Basis, Swizzle, raw_layout
from cute_dialect.algebra.values import ComposedLayout as ComposedPayload
from cute_dialect.algebra.values import Layout as LayoutPayload
from cute_dialect.algebra.verify import verify_composed_layout, verify_layout
from cute_dialect.lang.tracing.errors import LayoutError, MergeError
from cute_dialect.lang.tracing.tracer import active, current, op_class
from cute_dialect.lang.values.dtypes import Boolean, Int32, Int64, Numeric
from cute_dialect.lang.values.dynamic import VALUE_CLASSES, Dynamic, Form, later_methods
from cute_dialect.lang.values.folding import Facts
from cute_dialect.lang.values.forms import ConstForm
from cute_dialect.lang.values.int_tuples import (
    LAYOUT_CLASSES,
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

if TYPE_CHECKING:
    from types import EllipsisType

    from xdsl.ir import Attribute, SSAValue

    from cute_dialect.lang.values.signature_types import Coord, Int, IntTuple, LayoutLike, Shape, Stride


def _is_open(coord: Any) -> bool:
    """Return True if None leaves a mode of a coordinate open."""
    return coord is None or (isinstance(coord, tuple) and any(map(_is_open, coord)))


def _open_mode(index: Any) -> Any:
    """Return an index of ``layout[:, 0]`` as a coordinate of a slice. None selects a whole mode, as in CuTe."""
    if index is ...:
        raise LayoutError("F240", "layout[...]: an ellipsis is not supported", hint="write ':' for each whole mode")
    if not isinstance(index, slice):
        return index
    if index != slice(None):
        raise LayoutError("F240", f"layout[{index}]: only ':' selects a whole mode", hint="use cute.local_tile")
    return None


class AnyLayout(Dynamic):
    """Base of layouts: a payload, and numbers or an SSA value for its dynamic leaves."""

    __slots__ = ("_made", "_numbers", "_ssa", "is_static", "payload")
    kind = ""

    payload: Any
    is_static: bool
    factors_of = ""  # "SFA" or "SFB" for :class:`FactorLayout`

    def __init__(self, payload: Any, ssa: SSAValue | None = None, numbers: Sequence[Numeric] | None = None):
        self.payload = payload
        self.is_static = is_static_payload(payload)
        self._ssa = ssa
        self._made: SSAValue | None = None
        self._numbers: Sequence[Numeric] | None = () if self.is_static else numbers

    @property
    def type(self) -> Attribute:
        return cute_type(self.kind, self.payload)

    @property
    def ssa(self) -> SSAValue:
        """The SSA value. A static layout becomes ``cute.static``; one with numbers is built once per block."""
        if self._ssa is not None:
            return self._ssa
        if self.is_static:
            return filled(self.kind, self.payload, self.numbers)
        if self._made is None or self._made.owner.parent is not current().block:
            self._made = filled(self.kind, self.payload, self.numbers)
        return self._made

    @property
    def defined(self) -> SSAValue | None:
        """The SSA value that an op has defined, or None for a layout with numbers."""
        return self._ssa

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
        return LayoutForm(type(self), self.payload)

    def __cute_same__(self, other: AnyLayout) -> bool:
        return self.is_static and other.is_static and self.payload == other.payload

    if TYPE_CHECKING:  # ``tuple_arithmetic`` defines these methods.

        def __eq__(self, other: object) -> Any: ...
        def _flat_coord(self, idx: Int) -> Coord: ...
        def _1d_coord(self, idx: Int) -> Int: ...

    def __ne__(self, other: object) -> Any:
        same = self.__eq__(other)
        return same if same is NotImplemented else (not same if isinstance(same, bool) else ~same)

    def __hash__(self) -> int:
        return hash(self.payload) if self.is_static else id(self)

    @property
    def rank(self) -> int:
        """The number of modes."""
        return rank(self.payload)

    @property
    def depth(self) -> int:
        """The nesting depth of the shape."""
        return depth(self.payload)

    @property
    def max_alignment(self) -> int:
        """The largest number known to divide every offset."""
        return alignment_of("max_alignment", self)

    def __call__(self, *coord: Any) -> Any:
        at = coord[0] if len(coord) == 1 else coord
        if _is_open(at):  # As in CuTe, None keeps a mode.
            return apply("cute.slice", self, Tree(at, "coord"))
        return apply("cute.layout_eval", Tree(at, "coord"), self)

    def __getitem__(self, mode: int | slice | EllipsisType | Sequence[int | slice | EllipsisType | None] | None) -> Any:
        parts = (mode,) if mode is None or mode is ... or isinstance(mode, slice) else mode
        if isinstance(parts, tuple) and any(m is None or m is ... or isinstance(m, slice) for m in parts):
            return apply("cute.slice", self, Tree(tuple([_open_mode(m) for m in parts]), "coord"))
        path = [mode] if isinstance(mode, int) else list(mode)
        if isinstance(mode, int) and mode < 0:
            path = [mode + self.rank]
        return apply("cute.get", self, mode=path)

    def __iter__(self) -> Iterator[Any]:
        for i in range(self.rank):
            yield self[i]

    def __len__(self) -> int:
        return self.rank

    def get_hier_coord(self, idx: Int) -> Coord:
        """Return the coordinate with offset ``idx``, nested like the shape. The layout's image must have no gaps.

        >>> from cute_dialect.lang.values.layouts import make_layout
        >>> make_layout((4, (2, 3))).get_hier_coord(7), make_layout((4, 2), stride=(2, 1)).get_hier_coord(7)
        ((3, (1, 0)), (3, 1))
        """
        return map_tree(lambda s, d: _along(idx, s, d), self.shape, self.stride)  # pyright: ignore

    def get_flat_coord(self, idx: Int) -> Coord:
        """Return the coordinate with offset ``idx``, one number per mode; see :meth:`get_hier_coord`.

        >>> from cute_dialect.lang.values.layouts import make_layout
        >>> make_layout((4, (2, 3))).get_flat_coord(15)
        (3, 3)
        """
        return self._flat_coord(idx)

    def get_1d_coord(self, idx: Int) -> Int:
        """Return the linear index of the element with offset ``idx``; see :meth:`get_hier_coord`.

        >>> from cute_dialect.lang.values.layouts import make_layout
        >>> make_layout((4, 2), stride=(2, 1)).get_1d_coord(3)
        5
        """
        return self._1d_coord(idx)


later_methods(AnyLayout, tuple_arithmetic=("__eq__", "_flat_coord", "_1d_coord"))


def alignment_of(function: str, layout: Any) -> int:
    """Return the largest number known to divide every offset of a plain layout."""
    payload = plain_payload(function, layout)
    found = 0
    for extent, stride in zip(payload_leaves(payload.shape), payload_leaves(payload.stride)):
        if extent != 1:
            found = gcd(found, divisibility(stride))
    return found or 1


def plain_payload(function: str, layout: Any) -> LayoutPayload:
    """Return the payload of a plain layout.  Raises F240 for anything else."""
    if not isinstance(layout, Layout):
        raise LayoutError("F240", f"{function} needs a plain layout, got {layout}")
    return layout.payload


def _along(idx: Any, extent: Any, stride: Any) -> Any:
    """Return the coordinate along one mode of the element with this offset."""
    if isinstance(extent, int) and extent == 1:
        return 0
    if isinstance(stride, int) and stride == 0:
        return 0
    return (idx // stride) % extent


class Layout(AnyLayout):
    """A layout: a function from coordinates to offsets, ``shape:stride``.

    >>> from cute_dialect.lang.values.layouts import make_layout
    >>> make_layout((8, 4), stride=(4, 1))(1, 2)
    6
    """

    __slots__ = ()
    kind = "layout"

    @property
    def outer(self) -> Layout:
        """The layout itself, as :attr:`ComposedLayout.outer` is for a composed layout."""
        return self

    @property
    def inner(self) -> None:
        """Always None: a plain layout has no swizzle."""
        return None

    @property
    def shape(self) -> Any:
        return tree_of(self.payload.shape, iter(self.numbers))

    @property
    def stride(self) -> Any:
        """The strides, nested like the shape."""
        return tree_of(self.payload.stride, iter(self.numbers[len(dynamic_leaves_of(self.payload.shape)) :]))


class FactorLayout(Layout):
    """A static layout of scale factors in tensor memory that records their operand, "SFA" or "SFB".

    The layouts of both operands are often equal. ``make_tensor`` records the operand, so that ``cute.gemm`` can
    report swapped factors. Functions of layouts return plain layouts.
    """

    __slots__ = ("factors_of",)

    def __init__(self, payload: LayoutPayload, factors_of: str):
        super().__init__(payload)
        self.factors_of = factors_of

    def __cute_form__(self) -> Form:
        return LayoutForm(Layout, self.payload)


class ComposedLayout(AnyLayout):
    """A composed layout ``inner o offset o outer``: ``inner(offset + outer(c))``. The inner part is often a swizzle."""

    __slots__ = ()
    kind = "composed_layout"

    def _part(self, payload: Any, skipped: int) -> Any:
        numbers = self.numbers[skipped : skipped + len(dynamic_leaves_of(payload))]
        return Layout(payload, numbers=numbers)

    @property
    def outer(self) -> Layout:
        """The outer layout, which is applied first and defines the domain."""
        return self._part(self.payload.outer, 0)

    @property
    def offset(self) -> Any:
        """The offset added before the inner part is applied."""
        skipped = len(dynamic_leaves_of(self.payload.outer))
        return tree_of(self.payload.offset, iter(self.numbers[skipped:]))

    @property
    def inner(self) -> Any:
        """The swizzle or layout applied last."""
        if isinstance(self.payload.inner, Swizzle):
            return self.payload.inner
        skipped = len(dynamic_leaves_of(self.payload.outer)) + len(dynamic_leaves_of(self.payload.offset))
        return self._part(self.payload.inner, skipped)

    @property
    def shape(self) -> Any:
        """The shape of the outer layout."""
        return self.outer.shape

    @property
    def stride(self) -> Any:
        """The strides of the outer layout."""
        return self.outer.stride


def is_layout(x: object) -> bool:
    """Return True for a layout or a composed layout."""
    return isinstance(x, AnyLayout)


# ---------------------------------------------------------------------------------------------------------- applying


def operand_type(x: Any) -> Attribute:
    """Return the type of an op's operand."""
    return x.type if hasattr(x, "type") else x.ssa.type


def apply(name: str, *operands: Any, called: str = "", **properties: Any) -> Any:
    """Apply a dialect op to layouts, tensors and trees. Nothing is emitted if the result type is static.

    Args:
        name: the op.
        operands: its operands.
        called: the name of the called function for error messages, if it differs from the op's.
        properties: properties of the op; integers become ``i32``, sequences a mode path.

    Raises F240 with the operands.

    >>> from cute_dialect.lang.values.layouts import make_layout
    >>> apply("cute.zipped_divide", make_layout(12), Tree(4, "tiler"))
    (4,3):(1,4)
    """
    from cute_dialect.dialect.inference import infer_types_memo  # late: start-up

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
    """Return the error for operands that an op rejects."""
    texts = [x.text if isinstance(x, Tree) else str(x) for x in operands]
    message = str(error).removeprefix(f"'{name}' op ")
    called = called or f"{name.removeprefix('cute.')}({', '.join(texts)})"
    return LayoutError("F240", f"{called}: {message.removeprefix('result: ')}")


def _attribute(x: Any) -> Attribute:
    from xdsl.dialects.builtin import IntegerAttr, i32

    from cute_dialect.dialect.asm import mode_attr  # late: start-up

    if isinstance(x, int):
        return IntegerAttr(x, i32)
    return mode_attr([int(i) for i in x]) if isinstance(x, tuple | list) else x


def _of_static_type(type: Any) -> tuple[Any] | None:
    """Return the value that a type describes completely, in a tuple of one, or None."""
    from cute_dialect.dialect.memory_types import CoordTensorType  # late: start-up
    from cute_dialect.dialect.types import CuteType  # late: start-up

    if isinstance(type, CoordTensorType) and type.is_static():
        return (VALUE_CLASSES[type.name].static(type),)
    if not isinstance(type, CuteType) or not type.is_static():
        return None
    return (of_payload(type.kind, type.data, ()),)


def _untracked(type: Any) -> Any:
    """Return the same type with divisors of 1 removed, as in a parsed type."""
    from cute_dialect.dialect.types import CuteType  # late: start-up

    if not isinstance(type, CuteType):
        return type
    return cute_type(type.kind, map_leaves(_without_one, type.data))


def _without_one(leaf: Any) -> Any:
    return Dyn(leaf.width) if isinstance(leaf, Dyn) and leaf.div == 1 else leaf


def of_payload(kind: str, payload: Any, numbers: Sequence[Numeric]) -> Any:
    """Return the user-level value of a payload, with ``numbers`` for its dynamic leaves."""
    if kind == "layout":
        return Layout(payload, numbers=numbers)
    if kind == "composed_layout":
        return ComposedLayout(payload, numbers=numbers)
    return tree_of(payload, iter(numbers))


def from_value(ssa: SSAValue, element_type: Any = None) -> Any:
    """Return the user-level value of an SSA value: a layout, an int tuple, a tensor or a Boolean.

    ``element_type``: for tensors whose MLIR element type lacks the signedness.
    """
    type: Any = ssa.type
    name = type.name
    if name == "cute.layout":
        return Layout(type.data, ssa)
    if name == "cute.composed_layout":
        return ComposedLayout(type.data, ssa)
    if name in VALUE_CLASSES:
        return VALUE_CLASSES[name].of(ssa, element_type)
    if name == "cute.swizzle":
        return type.data
    if name == "integer_type":
        return Boolean.of(ssa)
    return from_ssa(ssa)


def is_tensor(x: object) -> bool:
    """Return True for a tensor, which is an iterator with a layout."""
    return hasattr(type(x), "iterator")


def over_layout(tensor: Any, f: Callable[[Any], Any]) -> Any:
    """Return the tensor with the same iterator and the layout ``f(tensor.layout)``."""
    return tensor.with_layout(f(tensor.layout))


# --------------------------------------------------------------------------------------------------------------- forms


class LayoutForm(Form):
    """The form of a layout: its payload. Its leaves are the integers at each ``?``."""

    __slots__ = ("kind", "payload", "types")

    def __init__(self, kind: type[AnyLayout], payload: Any):
        self.kind = kind
        self.payload = payload
        self.types = tuple(_number_type(leaf).attribute for leaf in dynamic_leaves_of(payload))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LayoutForm) and self.kind is other.kind and self.payload == other.payload

    def __hash__(self) -> int:
        return hash((self.kind, self.payload))

    def __repr__(self) -> str:
        return f"the layout {self.payload}"

    def take(self, value: Any) -> list[SSAValue]:
        numbers = iter(value.numbers)
        taken: list[SSAValue] = []
        for ours, theirs in zip(_integers(self.payload), _integers(value.payload), strict=True):
            number = next(numbers) if isinstance(theirs, Dyn) else theirs
            if isinstance(ours, Dyn):
                taken.append(_number_type(ours)(number).ssa)
        return taken

    def make(self, leaves: Sequence[SSAValue]) -> Any:
        slots = dynamic_leaves_of(self.payload)
        extents = len(dynamic_leaves_of(_shape(self.payload)))
        numbers = [
            _number_type(d).of(v, Facts(0 if i < extents else None, None, max(1, d.div)))
            for i, (d, v) in enumerate(zip(slots, leaves, strict=True))
        ]
        return self.kind(self.payload, numbers=numbers)

    def join(self, other: Form) -> Form:
        if isinstance(other, LayoutForm) and self.kind is other.kind:
            try:
                return LayoutForm(self.kind, _joined(self.payload, other.payload))
            except _DifferentProfile:
                raise MergeError("F204", f"it is the layout {self.payload} or {other.payload}") from None
        if isinstance(other, ConstForm) and other.value is None:
            raise MergeError("F208", f"it is the layout {self.payload} or None")
        raise MergeError("F204", f"it is the layout {self.payload} or {other!r}")


def _shape(payload: Any) -> Any:
    """Return the shape of a layout's payload, whose leaves come first in storage order."""
    return _shape(payload.outer) if isinstance(payload, ComposedPayload) else payload.shape


def _number_type(leaf: Dyn) -> Any:
    return Int32 if leaf.width == 32 else Int64


def _integers(payload: Any) -> list[Any]:
    """Return the integers of a payload, static and dynamic, in storage order."""
    return [x.value if isinstance(x, Basis) else x for x in leaves(payload)]


class _DifferentProfile(Exception):
    pass


def _joined(a: Any, b: Any) -> Any:
    """Return the payload that both fit. Leaves that differ become dynamic."""
    if isinstance(a, LayoutPayload) and isinstance(b, LayoutPayload):
        return raw_layout(_joined(a.shape, b.shape), _joined(a.stride, b.stride))
    if isinstance(a, ComposedPayload) and isinstance(b, ComposedPayload):
        return ComposedPayload(_joined(a.inner, b.inner), _joined(a.offset, b.offset), _joined(a.outer, b.outer))
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return tuple([_joined(x, y) for x, y in zip(a, b)])
    if isinstance(a, Basis) and isinstance(b, Basis) and a.path == b.path:
        return Basis(_joined(a.value, b.value), a.path)
    if isinstance(a, int | Dyn) and isinstance(b, int | Dyn):
        if isinstance(a, int) and a == b:
            return a
        divisor = gcd(_divisor(a), _divisor(b))
        return Dyn(max(width_of(a), width_of(b)), divisor if divisor > 1 else 0)
    if a == b:
        return a
    raise _DifferentProfile


def _divisor(leaf: int | Dyn) -> int:
    return (leaf.div or 1) if isinstance(leaf, Dyn) else abs(leaf)


LAYOUT_CLASSES[LayoutPayload] = lambda payload, numbers: Layout(payload, numbers=numbers)


# --------------------------------------------------------------------------------------------------------- construction


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
