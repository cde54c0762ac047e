"""Layouts as values: the layout algebra runs at compile time on static operands, and emits ops otherwise.

All functions use :func:`apply`.  It infers the result type from the operand types with the op's own inference, which
runs the algebra on types.  If the type describes the result completely, no op is emitted.  Layouts keep their payload,
a tree of integers and dynamic leaves, so their size, shape, rank and text need no op.

>>> from cute_dialect.lang.values.layout_makers import make_layout
>>> apply("cute.zipped_divide", make_layout((12, 10), (10, 1)), Tree((4, 5), "tiler"))
((4,5),(3,2)):((10,1),(40,5))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from cute_dialect.algebra.leaf import AlgebraError, Dyn
from cute_dialect.algebra.text import to_text
from cute_dialect.algebra.trees import is_static as is_static_payload
from cute_dialect.algebra.trees import map_leaves
from cute_dialect.algebra.values import ComposedLayout as ComposedPayload
from cute_dialect.algebra.values import Layout as LayoutPayload
from cute_dialect.algebra.values import Swizzle
from cute_dialect.lang.tracing.errors import LayoutError
from cute_dialect.lang.values.dtypes import Boolean, Numeric
from cute_dialect.lang.values.forms import Dynamic, Form
from cute_dialect.lang.values.int_tuples import (
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

    from cute_dialect.lang.values.signature_types import Coord, Int

__all__ = [
    "AnyLayout", "ComposedLayout", "Layout", "Operand", "Swizzle", "apply", "as_layout", "from_value", "is_layout",
    "layout_of", "static_layout",
]  # fmt: skip


class Operand(Protocol):
    """An operand of an op: a layout, a tensor, or a :class:`Tree`."""

    @property
    def ssa(self) -> SSAValue:
        """Its SSA value."""
        ...


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
        from cute_dialect.lang.tracing.tracer import current

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
        from cute_dialect.lang.values.layout_forms import LayoutForm

        return LayoutForm(type(self), self.payload)

    def __cute_same__(self, other: AnyLayout) -> bool:
        return self.is_static and other.is_static and self.payload == other.payload

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, AnyLayout):
            return NotImplemented
        from cute_dialect.lang.values.tuple_arithmetic import equal

        return equal(self, other)

    def __ne__(self, other: object) -> Any:
        same = self.__eq__(other)
        return same if same is NotImplemented else (not same if isinstance(same, bool) else ~same)

    def __hash__(self) -> int:
        return hash(self.payload) if self.is_static else id(self)

    @property
    def rank(self) -> int:
        """The number of modes."""
        from cute_dialect.algebra.trees import rank

        return rank(self.payload)

    @property
    def depth(self) -> int:
        """The nesting depth of the shape."""
        from cute_dialect.algebra.trees import depth

        return depth(self.payload)

    @property
    def max_alignment(self) -> int:
        """The largest number known to divide every offset."""
        from cute_dialect.lang.values.layout_functions import max_alignment

        return max_alignment(self)

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

        >>> from cute_dialect.lang.values.layout_makers import make_layout
        >>> make_layout((4, (2, 3))).get_hier_coord(7), make_layout((4, 2), stride=(2, 1)).get_hier_coord(7)
        ((3, (1, 0)), (3, 1))
        """
        return map_tree(lambda s, d: _along(idx, s, d), self.shape, self.stride)  # pyright: ignore

    def get_flat_coord(self, idx: Int) -> Coord:
        """Return the coordinate with offset ``idx``, one number per mode; see :meth:`get_hier_coord`.

        >>> from cute_dialect.lang.values.layout_makers import make_layout
        >>> make_layout((4, (2, 3))).get_flat_coord(15)
        (3, 3)
        """
        from cute_dialect.lang.values.tuple_arithmetic import crd2idx

        coord, shape = self.get_hier_coord(idx), self.shape  # pyright: ignore
        if not isinstance(shape, tuple):
            return coord
        return tuple([crd2idx(c, s) if isinstance(s, tuple) else c for c, s in zip(coord, shape)])

    def get_1d_coord(self, idx: Int) -> Int:
        """Return the linear index of the element with offset ``idx``; see :meth:`get_hier_coord`.

        >>> from cute_dialect.lang.values.layout_makers import make_layout
        >>> make_layout((4, 2), stride=(2, 1)).get_1d_coord(3)
        5
        """
        from cute_dialect.lang.values.tuple_arithmetic import crd2idx

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

    >>> from cute_dialect.lang.values.layout_makers import make_layout
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

    >>> from cute_dialect.lang.values.layout_makers import make_layout
    >>> apply("cute.zipped_divide", make_layout(12), Tree(4, "tiler"))
    (4,3):(1,4)
    """
    from cute_dialect.dialect.inference import infer_types_memo
    from cute_dialect.lang.tracing.tracer import current, op_class

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

    from cute_dialect.dialect.asm import mode_attr

    if isinstance(x, int):
        return IntegerAttr(x, i32)
    return mode_attr([int(i) for i in x]) if isinstance(x, tuple | list) else x


def _of_static_type(type: Any) -> tuple[Any] | None:
    """Return the value that a type describes completely, in a tuple of one, or None."""
    from cute_dialect.dialect.memory_types import CoordTensorType
    from cute_dialect.dialect.types import CuteType

    if isinstance(type, CoordTensorType) and type.is_static():
        from cute_dialect.lang.values.tensors import Tensor

        return (Tensor.static(type),)
    if not isinstance(type, CuteType) or not type.is_static():
        return None
    return (of_payload(type.kind, type.data, ()),)


def _untracked(type: Any) -> Any:
    """Return the same type with divisors of 1 removed, as in a parsed type."""
    from cute_dialect.dialect.types import CuteType

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
    if name in ("cute.memref", "cute.coord_tensor"):
        from cute_dialect.lang.values.tensors import Tensor

        return Tensor.of(ssa, element_type)
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
    from cute_dialect.lang.values.tensors import make_tensor

    return make_tensor(tensor.iterator, f(tensor.layout))


def as_layout(x: Any) -> Any:
    """Return a layout for a layout, its text, or a shape (compact). Other values are returned unchanged."""
    from cute_dialect.lang.values.layout_makers import layout, make_layout

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
