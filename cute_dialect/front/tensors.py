"""Tensors: memory with a layout over it, and coordinates with one.

A tensor is an iterator (a pointer, or an int tuple for a coordinate tensor) and a layout.  What of it is static stands
in the type of its SSA value; ``t.shape`` and ``t.stride`` are trees of Python integers and ``Int32``.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

from cute_dialect.front.errors import KernelTypeError, LayoutError, StaticError
from cute_dialect.front.pointers import AddressSpace, Pointer, element_class, pointer_text
from cute_dialect.front.values import Dynamic, Form

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

    from cute_dialect.algebra.values import AnyLayout, IntTuple
    from cute_dialect.front.dtypes import Numeric
    from cute_dialect.front.vectors import TensorSSA

__all__ = ["AddressSpace", "Pointer", "Tensor", "clear", "make_rmem_tensor", "make_rmem_tensor_like"]


class Tensor(Dynamic):
    """Memory, or coordinates, with a layout: ``t[c]`` reads, ``t[c] = x`` writes, ``t[None, i]`` slices."""

    __slots__ = ("_ssa", "element_type", "type")

    type: Attribute
    """Its MLIR type."""
    element_type: type[Numeric] | None
    """The number type of its elements; None for a coordinate tensor."""

    def __class_getitem__(cls, what: object) -> object:
        """Return the annotation of a tensor: its element type, and its extents or its layout as a text."""
        from cute_dialect.front.annotations import TensorAnnotation

        return TensorAnnotation.of(what)

    @classmethod
    def of(cls, ssa: SSAValue, element_type: type[Numeric] | None = None) -> Tensor:
        """Return the tensor that is this value of ``!cute.memref`` or ``!cute.coord_tensor``.

        ``element_type``: for elements whose MLIR type does not say their sign.
        """
        made = cls._of_type(ssa.type, element_type)
        made._ssa = ssa
        return made

    @classmethod
    def static(cls, type: Attribute) -> Tensor:
        """Return the coordinate tensor that a static type says."""
        return cls._of_type(type)

    @classmethod
    def _of_type(cls, type: Attribute, element_type: builtins.type[Numeric] | None = None) -> Tensor:
        made = object.__new__(cls)
        made._ssa = None
        made.type = type
        if element_type is None and made.is_memory:
            element_type = element_class(made._data.ptr.element)
        made.element_type = element_type
        return made

    @property
    def ssa(self) -> SSAValue:
        """Its SSA value."""
        if self._ssa is not None:
            return self._ssa
        from cute_dialect.front.trace import current

        return current().static(self.type)

    @property
    def _data(self) -> Any:
        return self.type.data  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def is_memory(self) -> bool:
        """Whether its elements lie in memory: false for a coordinate tensor."""
        return hasattr(self._data, "ptr")

    @property
    def is_static(self) -> bool:
        """Whether its type says all of it: a coordinate tensor without a dynamic leaf."""
        return self._ssa is None

    @property
    def payload(self) -> AnyLayout:
        """Its layout as its type says it, of :mod:`cute_dialect.algebra`."""
        return self._data.layout

    @property
    def shape_payload(self) -> IntTuple:
        """Its shape as its type says it."""
        layout: Any = self.payload
        return (layout.outer if hasattr(layout, "outer") else layout).shape

    @property
    def dtype(self) -> type[Numeric] | None:
        """The number type of its elements."""
        return self.element_type

    @property
    def width(self) -> int:
        """The bits of an element."""
        if self.element_type is None:
            raise KernelTypeError("F232", "a coordinate tensor has no elements in memory, and so no width")
        return self.element_type.width

    @property
    def memspace(self) -> AddressSpace | None:
        """The space of memory it lies in; None for a coordinate tensor."""
        return AddressSpace(self._data.ptr.space) if self.is_memory else None

    @property
    def shape(self) -> Any:
        """Its shape: a tree of integers."""
        return self._part("shape")

    @property
    def stride(self) -> Any:
        """Its strides, in elements: a tree of integers."""
        return self._part("stride")

    def _part(self, name: str) -> Any:
        from cute_dialect.algebra.trees import is_static

        layout: Any = self.payload
        found = getattr(layout.outer if hasattr(layout, "outer") else layout, name)
        if is_static(found):
            return found
        from cute_dialect.front.indexing import tree_of
        from cute_dialect.front.trace import current

        t = current()
        whole = t.value("cute.get_layout", [self.ssa])
        if hasattr(layout, "outer"):
            whole = t.value("cute.composed_get_outer", [whole])
        return tree_of(t.value(f"cute.get_{name}", [whole]))

    @property
    def iterator(self) -> Any:
        """Its pointer; the first coordinate of a coordinate tensor."""
        from cute_dialect.front.indexing import tree_of
        from cute_dialect.front.trace import current

        if self.is_static:
            return self._data.iter
        found = current().value("cute.get_iter", [self.ssa])
        return Pointer.of(found, self.element_type) if self.is_memory else tree_of(found)

    def __getitem__(self, coord: object) -> Any:
        from cute_dialect.front.indexing import read

        return read(self, coord)

    def __setitem__(self, coord: object, value: object) -> None:
        from cute_dialect.front.indexing import write

        write(self, coord, value)

    def load(self) -> TensorSSA:
        """Return all elements as a vector; the shape is static."""
        from cute_dialect.front.vectors import load

        return load(self)

    def store(self, vector: TensorSSA) -> None:
        """Write a vector of its shape and element type to all elements."""
        from cute_dialect.front.vectors import store

        store(self, vector)

    def fill(self, value: object) -> None:
        """Write a number to all elements; the shape is static."""
        from cute_dialect.front.indexing import fill

        fill(self, value)

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
        return f"'{name}', a tensor" if name else "this tensor"

    def __repr__(self) -> str:
        if self.is_memory:
            return f"tensor<ptr<{pointer_text(self._data.ptr)}> o {self._data.layout}>"
        return f"tensor<{_tuple_text(self._data.iter)} o {self._data.layout}>"

    def __cute_form__(self) -> Form:
        from cute_dialect.front.tensor_forms import TensorForm

        return TensorForm.of(self)


def _tuple_text(tree: object) -> str:
    from cute_dialect.algebra.text import to_text

    return to_text(tree)  # pyright: ignore[reportArgumentType]


def make_rmem_tensor(layout_or_shape: Any, dtype: builtins.type[Numeric]) -> Tensor:
    """Return a new register tensor: a place of the thread's own, whose elements are undefined at first.

    A shape gives a compact layout, first mode fastest.
    """
    from cute_dialect.algebra.values import Layout
    from cute_dialect.front.trace import current
    from cute_dialect.front.vectors import static_shape
    from cute_dialect.ops.memory import rmem_type

    payload = getattr(layout_or_shape, "payload", layout_or_shape)
    layout = payload if isinstance(payload, Layout) else Layout(static_shape(layout_or_shape))
    found = current().value("cute.memref.alloca", (), [rmem_type(dtype.attribute, layout)])
    return Tensor.of(found, dtype)


def make_rmem_tensor_like(like: Any, dtype: builtins.type[Numeric] | None = None) -> Tensor:
    """Return a new register tensor of the shape of a tensor or layout, compact in the order of its strides.

    ``dtype``: its element type, if not that of the tensor.
    """
    from cute_dialect.front.trace import current
    from cute_dialect.ops.memory import compact_like, fragment_like

    if isinstance(like, Tensor):
        element = like.element_type if dtype is None else dtype
        if element is None:
            raise KernelTypeError("F260", "a coordinate tensor has no element type to take", hint="give a dtype")
        _static_shape_of(like, "a register tensor")
        type = fragment_like(like.type, element.attribute)
        return Tensor.of(current().value("cute.make_fragment_like", [like.ssa], [type]), element)
    if dtype is None:
        raise KernelTypeError("F260", "a layout has no element type to take", hint="give a dtype")
    payload = getattr(like, "payload", like)
    return make_rmem_tensor(compact_like(payload.outer if hasattr(payload, "outer") else payload), dtype)


def _static_shape_of(tensor: Tensor, what: str) -> None:
    from cute_dialect.algebra.trees import is_static

    if not is_static(tensor.shape_payload):
        raise LayoutError(
            "F240", f"{what} needs a static shape, {tensor.describe()} has {_tuple_text(tensor.shape_payload)}",
            hint="take a tile or a slice of static shape",
        )  # fmt: skip


def clear(tensor: Tensor) -> None:
    """Write zero to all elements of a tensor of static shape."""
    from cute_dialect.front.trace import current

    _static_shape_of(tensor, "clearing")
    current().op("cute.clear", [tensor.ssa])
