"""Tensors: memory or coordinates with a layout.

A tensor is an iterator (a pointer, or an int tuple for a coordinate tensor) and a layout.  Its static part is in the
type of its SSA value.  ``t.shape`` and ``t.stride`` are trees of Python integers and ``Int32``.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.text import to_text
from cute_dialect.algebra.trees import is_static
from cute_dialect.lang.tracing.errors import KernelTypeError, LayoutError, MergeError, StaticError
from cute_dialect.lang.tracing.tracer import current
from cute_dialect.lang.values.annotations import TensorAnnotation
from cute_dialect.lang.values.dynamic import VALUE_CLASSES, Dynamic, Form, later_methods, method_of
from cute_dialect.lang.values.pointers import Pointer, element_class, pointer_text, unlike, weaker_pointer
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

    from cute_dialect.algebra.values import AnyLayout as LayoutPayload
    from cute_dialect.algebra.values import IntTuple
    from cute_dialect.lang.values.dtypes import Numeric
    from cute_dialect.lang.values.signature_types import Coord, LayoutLike, Shape
    from cute_dialect.lang.values.vectors import TensorSSA


class Tensor(Dynamic):
    """Memory or coordinates with a layout: ``t[c]`` reads, ``t[c] = x`` writes, ``t[None, i]`` slices."""

    __slots__ = ("_layout", "_ssa", "element_type", "type")

    type: Attribute
    """Its MLIR type."""
    _layout: Any
    _ssa: SSAValue | None
    element_type: Any  # a number type; None for a coordinate tensor (typed Any so that code on memory need not check)
    """The element type; None for a coordinate tensor."""

    def __class_getitem__(cls, what: object) -> object:
        """Return the annotation of a tensor: its element type, followed by its extents or its layout as text."""
        return TensorAnnotation.of(what)

    @classmethod
    def of(cls, ssa: SSAValue, element_type: type[Numeric] | None = None) -> Tensor:
        """Return the tensor for a value of type ``!cute.memref`` or ``!cute.coord_tensor``.

        ``element_type``: for elements whose MLIR type lacks the signedness.
        """
        made = cls._of_type(ssa.type, element_type)
        made._ssa = ssa
        return made

    @classmethod
    def static(cls, type: Attribute) -> Tensor:
        """Return the coordinate tensor described by a static type."""
        return cls._of_type(type)

    @classmethod
    def _of_type(cls, type: Attribute, element_type: builtins.type[Numeric] | None = None) -> Tensor:
        made = object.__new__(cls)
        made._ssa = None
        made._layout = None
        made.type = type
        if element_type is None and made.is_memory:
            element_type = element_class(made._data.ptr.element)
        made.element_type = element_type
        return made

    @property
    def ssa(self) -> SSAValue:
        if self._ssa is not None:
            return self._ssa
        return current().static(self.type)

    @property
    def _data(self) -> Any:
        return self.type.data  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def is_memory(self) -> bool:
        """True if the elements are in memory, False for a coordinate tensor."""
        return hasattr(self._data, "ptr")

    @property
    def is_per_thread(self) -> bool:
        """True if each thread has its own elements, in registers."""
        return self.is_memory and self._data.ptr.space.per_thread

    @property
    def is_static(self) -> bool:
        """True for a coordinate tensor without dynamic leaves, which its type describes completely."""
        return not self.is_memory and is_static(self._data.iter) and is_static(self._data.layout)

    @property
    def payload(self) -> LayoutPayload:
        """The layout of its type, as a value of :mod:`cute_dialect.algebra`."""
        return self._data.layout

    @property
    def shape_payload(self) -> IntTuple:
        """The shape of its type."""
        layout: Any = self.payload
        return (layout.outer if hasattr(layout, "outer") else layout).shape

    @property
    def dtype(self) -> type[Numeric] | None:
        """The element type; None for a coordinate tensor."""
        return self.element_type

    _dtype = dtype  # CuTe DSL programs use this name.

    @property
    def width(self) -> int:
        """The width of an element in bits."""
        if self.element_type is None:
            raise KernelTypeError("F260", "a coordinate tensor has no element width")
        return self.element_type.width

    @property
    def memspace(self) -> AddressSpace | None:
        """The memory space; None for a coordinate tensor."""
        return self._data.ptr.space if self.is_memory else None

    @property
    def shape(self) -> Any:
        """The shape: a tree of integers."""
        return self.layout.shape

    @property
    def stride(self) -> Any:
        """The strides in elements: a tree of integers."""
        return self.layout.stride

    @property
    def layout(self) -> Any:
        from cute_dialect.lang.values.layouts import ComposedLayout, Layout  # late: start-up

        if self._layout is None:
            payload = self.payload
            kind = ComposedLayout if hasattr(payload, "outer") else Layout
            self._layout = kind(payload, None if is_static(payload) else _behind("cute.get_layout", self.ssa))
        return self._layout

    @property
    def leading_dim(self) -> int | None:
        """The mode of stride 1, or None. A mode with more than one element comes first."""
        shape, stride = self.shape, self.stride
        modes = list(zip(shape, stride)) if isinstance(shape, tuple) else [(shape, stride)]
        units = [i for i, (_, d) in enumerate(modes) if type(d) is int and d == 1]
        longer = [i for i in units if not (type(modes[i][0]) is int and modes[i][0] == 1)]
        return (longer or units[-1:] or [None])[0]

    @property
    def size(self) -> Any:
        """The number of elements."""
        from cute_dialect.lang.values.tuple_arithmetic import product  # late: start-up

        return product(self.shape)

    @property
    def iterator(self) -> Any:
        """The pointer, or the first coordinate of a coordinate tensor."""
        from cute_dialect.lang.values.int_tuples import from_ssa  # late: start-up

        if self.is_static:
            return self._data.iter
        found = _behind("cute.get_iter", self.ssa)
        return Pointer.of(found, self.element_type) if self.is_memory else from_ssa(found)

    def with_layout(self, layout: LayoutLike) -> Tensor:
        """Return the tensor with the same iterator and another layout."""
        return make_tensor(self.iterator, layout)

    def load(self) -> TensorSSA:
        """Return all elements as a vector. The shape must be static."""
        return self._load()

    def store(self, vector: TensorSSA) -> None:
        """Store a vector with the same shape and element type."""
        self._store(vector)

    def fill(self, value: object) -> None:
        """Set all elements to a number. The shape must be static."""
        self._fill(value)

    if TYPE_CHECKING:  # Later modules define these methods; see later_methods() below.

        def __getitem__(self, coord: object) -> Any: ...
        def __setitem__(self, coord: object, value: object) -> None: ...
        def _load(self) -> TensorSSA: ...
        def _store(self, vector: TensorSSA) -> None: ...
        def _fill(self, value: object) -> None: ...

    def __iter__(self) -> NoReturn:
        raise StaticError(
            "F145", f"{self.describe()} cannot be iterated", hint="write 'for i in range(cute.size(t))' and use t[i]"
        )

    def __len__(self) -> int:
        shape = self.shape_payload
        if isinstance(shape, tuple) and len(shape) == 1:
            shape = shape[0]
        if isinstance(shape, int):
            return shape
        if isinstance(shape, tuple):
            raise StaticError("F146", f"{self.describe()} of rank {len(shape)} has no length", hint="use cute.size")
        return Dynamic.__len__(self)

    def describe(self) -> str:
        name = self._ssa.name_hint if self._ssa is not None else None
        return f"tensor '{name}'" if name else "this tensor"

    def __repr__(self) -> str:
        if self.is_memory:
            return f"tensor<ptr<{pointer_text(self._data.ptr, self.element_type)}> o {self._data.layout}>"
        return f"tensor<{_tuple_text(self._data.iter)} o {self._data.layout}>"

    def __cute_form__(self) -> Form:
        return TensorForm.of(self)


def _behind(name: str, value: SSAValue) -> SSAValue:
    """Return a part of a value, computed at the value's definition so that it dominates all uses."""
    return current().after(value, name, [value]).results[0]


def _tuple_text(tree: object) -> str:
    return to_text(tree)  # pyright: ignore[reportArgumentType]


def make_tensor(iterator: Pointer | Coord, layout: LayoutLike) -> Tensor:
    """Return a tensor with a layout (or a compact shape) over memory at a pointer, or coordinates from an int tuple."""
    from xdsl.utils.exceptions import VerifyException

    from cute_dialect.lang.values.int_tuples import Tree, is_tree  # late: start-up
    from cute_dialect.lang.values.layouts import (
        AnyLayout,  # late: start-up
        as_layout,  # late: start-up
    )

    over = as_layout(layout)
    if isinstance(iterator, Pointer):
        dtype = iterator.dtype
    elif is_tree(iterator):
        dtype = None
        iterator = Tree(iterator, "int_tuple")
    else:
        raise KernelTypeError("F262", f"make_tensor needs a pointer or an int tuple, got {iterator!r}")
    if not isinstance(over, AnyLayout):
        raise LayoutError(
            "F240", f"make_tensor needs a layout or a shape, got {layout!r}",
            hint="pass its layout, x.layout" if isinstance(layout, Tensor) else "",
        )  # fmt: skip
    try:
        if dtype is None and iterator.is_static and over.is_static:
            from cute_dialect.dialect.memory_types import CoordTensor, CoordTensorType  # late: start-up

            return Tensor.static(CoordTensorType(CoordTensor(iterator.payload, over.payload)))
        made = Tensor.of(current().value("cute.make_view", [iterator.ssa, over.ssa]), dtype)
        if over.factors_of:
            current().state.setdefault("factors", {})[made.ssa] = over.factors_of
        return made
    except VerifyException as e:
        raise LayoutError("F240", f"make_tensor({_named(iterator)}, {over}): {e}") from None


def _named(iterator: Any) -> str:
    return repr(iterator) if isinstance(iterator, Pointer) else iterator.text


def make_identity_tensor(shape: Shape) -> Tensor:
    """Return the coordinate tensor whose element at each coordinate is that coordinate.

    >>> make_identity_tensor((4, 8))[1, 2]
    (1, 2)
    """
    from cute_dialect.lang.values.int_tuples import map_tree  # late: start-up
    from cute_dialect.lang.values.layouts import make_identity_layout  # late: start-up

    return make_tensor(map_tree(lambda _: 0, shape), make_identity_layout(shape))


def recast_tensor(tensor: Tensor, dtype: builtins.type[Numeric]) -> Tensor:
    """Return a tensor over the same bytes with another element type. Extents and strides are rescaled.

    For example, eight contiguous f16 become four i32.
    """
    from cute_dialect.dialect.tensors import recast_type  # late: start-up

    if not tensor.is_memory:
        raise KernelTypeError("F260", "recast_tensor: a coordinate tensor has no memory and cannot be recast")
    try:
        target = recast_type(tensor.type, dtype.attribute)
    except AlgebraError as e:
        raise LayoutError("F240", f"recast_tensor({tensor}, {dtype!r}): {e}") from None
    return Tensor.of(current().value("cute.recast_tensor", [tensor.ssa], [target]), dtype)


def make_rmem_tensor(layout_or_shape: LayoutLike, dtype: builtins.type[Numeric]) -> Tensor:
    """Create a register tensor, private to the thread, with undefined elements.

    A shape gives a compact layout, first mode fastest.
    """
    from cute_dialect.dialect.memory import rmem_type  # late: start-up
    from cute_dialect.lang.values.layouts import static_layout  # late: start-up

    layout = static_layout("make_rmem_tensor", layout_or_shape)
    found = current().value("cute.memref.alloca", (), [rmem_type(dtype.attribute, layout)])
    return Tensor.of(found, dtype)


def make_rmem_tensor_like(like: LayoutLike, dtype: builtins.type[Numeric] | None = None) -> Tensor:
    """Create a register tensor with the shape of a tensor or layout, compact in the order of its strides.

    ``dtype`` is the element type; by default the tensor's.
    """
    from cute_dialect.dialect.memory import compact_like, fragment_like  # late: start-up

    if isinstance(like, Tensor):
        element = like.element_type if dtype is None else dtype
        if element is None:
            raise KernelTypeError(
                "F260", "make_rmem_tensor_like: a coordinate tensor has no element type", hint="pass dtype="
            )
        _static_shape_of(like, "a register tensor")
        type = fragment_like(like.type, element.attribute)
        return Tensor.of(current().value("cute.make_fragment_like", [like.ssa], [type]), element)
    if dtype is None:
        raise KernelTypeError("F260", "make_rmem_tensor_like: a layout has no element type", hint="pass dtype=")
    payload = getattr(like, "payload", like)
    return make_rmem_tensor(compact_like(payload.outer if hasattr(payload, "outer") else payload), dtype)


def _static_shape_of(tensor: Tensor, what: str) -> None:
    if not is_static(tensor.shape_payload):
        raise LayoutError(
            "F240", f"{what} needs a static shape, but {tensor.describe()} has {_tuple_text(tensor.shape_payload)}",
            hint="use a tile or a slice of static shape",
        )  # fmt: skip


def clear(tensor: Tensor) -> None:
    """Set all elements of a tensor of static shape to zero."""
    if not tensor.is_memory:
        raise KernelTypeError("F260", "a coordinate tensor has no memory and cannot be written")
    _static_shape_of(tensor, "clear")
    current().op("cute.clear", [tensor.ssa])


# --------------------------------------------------------------------------------------------------------------- forms


class TensorForm(Form):
    """The form of tensors of one type. Differing leaves become dynamic when two are joined."""

    __slots__ = ("element_type", "type", "types")

    def __init__(self, type: Any, element_type: type[Numeric] | None):
        self.type = type
        self.element_type = element_type
        self.types = () if Tensor.static(type).is_static else (type,)

    @staticmethod
    def of(tensor: Tensor) -> Form:
        """Return the form of a tensor. For a register tensor it is the form of this very tensor."""
        return PlaceForm(tensor) if tensor.is_per_thread else TensorForm(tensor.type, tensor.element_type)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorForm) and self.type == other.type and self.element_type is other.element_type

    def __hash__(self) -> int:
        return hash((TensorForm, self.type))

    def __repr__(self) -> str:
        return repr(Tensor.static(self.type))

    def take(self, value: object) -> list[SSAValue]:
        from cute_dialect.lang.values.int_tuples import filled  # late: start-up
        from cute_dialect.lang.values.layouts import LayoutForm  # late: start-up

        assert isinstance(value, Tensor)
        if not self.types:
            return []
        if value.type == self.type:
            return [value.ssa]
        layout_form = LayoutForm(type(value.layout), self.type.data.layout)
        layout = layout_form.make(layout_form.take(value.layout))
        if value.is_memory:
            iterator = value.iterator.ssa
        else:
            payload = self.type.data.iter
            numbers = _numbers(payload, value.iterator)
            iterator = filled("int_tuple", payload, numbers)
        return [current().value("cute.make_view", [iterator, layout.ssa], [self.type])]

    def make(self, leaves: Sequence[SSAValue]) -> Tensor:
        return Tensor.of(leaves[0], self.element_type) if leaves else Tensor.static(self.type)

    def join(self, other: Form) -> Form:
        from cute_dialect.lang.values.layouts import _DifferentProfile, _joined  # late: start-up

        if self == other:
            return self
        if not isinstance(other, TensorForm) or self.element_type is not other.element_type:
            raise unlike(self, other)
        a, b = self.type.data, other.type.data
        try:
            layout = _joined(a.layout, b.layout)
            if self.element_type is not None:
                pointer = weaker_pointer(a.ptr, b.ptr)
                if pointer is None:
                    raise unlike(self, other)
                return TensorForm(type(self.type)(type(a)(pointer, layout)), self.element_type)
            return TensorForm(type(self.type)(type(a)(_joined(a.iter, b.iter), layout)), None)
        except _DifferentProfile:
            raise unlike(self, other) from None


def _numbers(payload: Any, tree: Any) -> list[Numeric]:
    """Return the numbers of a tree at the dynamic leaves of a payload."""
    from cute_dialect.lang.values.numeric import as_number  # late: start-up

    if isinstance(payload, tuple):
        return [n for p, t in zip(payload, tree) for n in _numbers(p, t)]
    return [] if isinstance(payload, int) else [as_number(tree)]


class PlaceForm(Form):
    """The form of one register tensor, which no other tensor can replace."""

    __slots__ = ("tensor",)
    types = ()

    def __init__(self, tensor: Tensor):
        self.tensor = tensor

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, PlaceForm)
            and self.tensor.ssa is other.tensor.ssa
            and self.tensor.element_type is other.tensor.element_type
        )

    def __hash__(self) -> int:
        return hash(self.tensor.ssa)

    def __repr__(self) -> str:
        return f"PlaceForm({self.tensor})"

    def take(self, value: object) -> list[SSAValue]:
        return []

    def make(self, leaves: Sequence[SSAValue]) -> Tensor:
        return self.tensor

    def join(self, other: Form) -> Form:
        if self == other:
            return self
        raise MergeError(
            "F206", "it is one of two register tensors" if isinstance(other, PlaceForm) else
            "it is a register tensor or another value",
            hint="register tensors cannot be selected at run time: create one before, and write to it on both sides",
        )  # fmt: skip


later_methods(Tensor, indexing=("__getitem__", "__setitem__", "_fill"), vectors=("_load", "_store"))


@method_of(Pointer)
def _first(self: Pointer) -> Tensor:
    """Return the tensor of the element at the pointer."""
    return Tensor.of(current().value("cute.make_view", [self.ssa]), self.dtype)


VALUE_CLASSES.update(dict.fromkeys(("cute.memref", "cute.coord_tensor"), Tensor))
