"""Structures in shared memory: classes whose annotated fields have sizes, alignments and offsets.

::

    @cute.struct
    class Storage:
        barriers: cute.struct.MemRange[cute.Int64, 4]
        tile: cute.struct.Align[cute.struct.MemRange[cute.Float16, 64 * 64], 1024]

As in C, each field starts at the next multiple of its alignment.  ``Storage.size_in_bytes()`` and
``Storage.describe()`` also work outside kernels.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.lang.tracing.errors import KernelTypeError, MergeError
from cute_dialect.lang.values.dtypes import Numeric
from cute_dialect.lang.values.dynamic import Dynamic, Form
from cute_dialect.lang.values.forms import form_of
from cute_dialect.lang.values.layout_makers import as_layout
from cute_dialect.lang.values.pointers import Pointer, recast_ptr
from cute_dialect.lang.values.tensors import make_tensor
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from cute_dialect.lang.values.signature_types import LayoutLike

__all__ = ["Align", "Field", "MemRange", "Struct", "StructView", "TensorField", "struct"]


class Field:
    """Base class of struct fields, with a size and an alignment in bytes."""

    size: int
    alignment: int

    def at(self, start: Pointer) -> Any:
        """Return a view of the field that starts at ``start``."""
        raise NotImplementedError


def _bytes_of(dtype: type[Numeric], n: int) -> int:
    bits = n * (8 if dtype.width == 1 else dtype.width)
    if bits % 8:
        raise KernelTypeError("F263", f"{n} elements of {dtype!r} are not a whole number of bytes")
    return bits // 8


class Scalar(Field):
    """A field with one number. Its view is a pointer."""

    def __init__(self, dtype: type[Numeric]):
        self.dtype = dtype
        self.size = self.alignment = _bytes_of(dtype, 1)

    def at(self, start: Pointer) -> Pointer:
        return recast_ptr(start, dtype=self.dtype)

    def __repr__(self) -> str:
        return repr(self.dtype)


class MemRange(Field):
    """A field of ``n`` elements of one type: ``cute.struct.MemRange[T, n]``."""

    def __init__(self, dtype: type[Numeric], n: int):
        self.dtype = dtype
        self.n = n
        self.size = _bytes_of(dtype, n)
        self.alignment = max(1, dtype.width // 8)

    def __class_getitem__(cls, args: Any) -> MemRange:
        dtype, n = args if isinstance(args, tuple) and len(args) == 2 else (None, None)
        import operator

        if not (isinstance(dtype, type) and issubclass(dtype, Numeric)) or not hasattr(type(n), "__index__"):
            raise KernelTypeError("F263", f"MemRange takes a type and a number of elements, got MemRange[{args!r}]")
        count = operator.index(n)  # pyright: ignore[reportArgumentType]
        if count < 0:
            raise KernelTypeError("F263", f"MemRange: the number of elements is negative ({count})")
        return cls(dtype, count)

    def at(self, start: Pointer) -> MemRangeView:
        return MemRangeView(recast_ptr(start, dtype=self.dtype), self.n)

    def __repr__(self) -> str:
        return f"MemRange[{self.dtype!r}, {self.n}]"


class TensorField(Field):
    """A tensor field: ``cute.struct.Tensor[T, layout]``. The layout may be swizzled."""

    def __init__(self, dtype: type[Numeric], layout: LayoutLike):
        from cute_dialect.dialect.memory_types import MemRef, MemRefType, ptr  # late: start-up
        from cute_dialect.dialect.shared_memory import storage_bytes  # late: start-up

        self.dtype = dtype
        self.layout = as_layout(layout)
        if not self.layout.is_static:
            raise KernelTypeError("F263", f"a tensor field needs a static layout, got {self.layout}")
        self.size = storage_bytes(MemRefType(MemRef(ptr(dtype.attribute, AddressSpace.smem), self.layout.payload)))
        self.alignment = 16

    def __class_getitem__(cls, args: Any) -> TensorField:
        if not isinstance(args, tuple) or len(args) != 2:
            raise KernelTypeError("F263", f"Tensor takes a type and a layout, got Tensor[{args!r}]")
        return cls(*args)

    def at(self, start: Pointer) -> Any:
        return make_tensor(recast_ptr(start, dtype=self.dtype), self.layout)

    def __repr__(self) -> str:
        return f"Tensor[{self.dtype!r}, {self.layout}]"


class Align(Field):
    """A field with a larger alignment: ``cute.struct.Align[F, bytes]``."""

    def __init__(self, field: Any, alignment: int):
        self.field = as_field(field)
        if alignment < 1 or alignment & (alignment - 1):
            raise KernelTypeError("F262", f"Align: the alignment must be a power of two, got {alignment}")
        self.size = self.field.size
        self.alignment = max(alignment, self.field.alignment)

    def __class_getitem__(cls, args: Any) -> Align:
        if not isinstance(args, tuple) or len(args) != 2 or not isinstance(args[1], int):
            raise KernelTypeError("F263", f"Align takes a field and a number of bytes, got Align[{args!r}]")
        return cls(*args)

    def at(self, start: Pointer) -> Any:
        return self.field.at(start)

    def __repr__(self) -> str:
        return f"Align[{self.field!r}, {self.alignment}]"


def as_field(x: Any) -> Field:
    """Return the field for an annotation.  Raises F263 if it has no size."""
    if isinstance(x, Field):
        return x
    if isinstance(x, type) and issubclass(x, Numeric) and x.width:
        return Scalar(x)
    raise KernelTypeError(
        "F263", "a field must be a number type, MemRange[T, n], Tensor[T, layout], Align[field, bytes] or a "
        f"structure, got {x!r}",
    )  # fmt: skip


class Struct(Field):
    """A structure: its fields by name, with their offsets in bytes."""

    def __init__(self, name: str, fields: Mapping[str, Field], *, union: bool = False):
        self.name = self.__name__ = name
        self.fields = dict(fields)
        self.offsets: dict[str, int] = {}
        self.alignment = max([1, *(f.alignment for f in self.fields.values())])
        end = 0
        for key, field in self.fields.items():
            at = 0 if union else -(-end // field.alignment) * field.alignment
            self.offsets[key] = at
            end = max(end, at + field.size)
        self.size = -(-max(end, 1) // self.alignment) * self.alignment

    def size_in_bytes(self) -> int:
        """Return the size in bytes, a multiple of the alignment."""
        return self.size

    def __sizeof__(self) -> int:
        return self.size

    def describe(self) -> str:
        """Return a table of the fields: offset, bytes, alignment, name, type."""
        rows = [
            f"{self.offsets[key]:8} {field.size:8} {field.alignment:6}  {key}: {field!r}"
            for key, field in self.fields.items()
        ]
        head = f"{self.name}: {self.size} bytes, aligned to {self.alignment}\n  offset    bytes  align  field\n"
        return head + "\n".join(rows)

    def at(self, start: Pointer) -> StructView:
        return StructView(self, start)

    def __call__(self, start: Pointer) -> StructView:
        """Return a view of the structure at a pointer: ``Storage(smem.allocate(Storage.size_in_bytes(), 16))``."""
        return self.at(start)

    def __repr__(self) -> str:
        return self.name


class _View(Dynamic):
    """Base class of views: a field at a pointer."""

    __slots__ = ("_start",)
    _start: Pointer

    def moved_to(self, start: Pointer) -> _View:
        """Return the same view at another pointer."""
        raise NotImplementedError

    def data_ptr(self) -> Pointer:
        """Return the pointer to the first element."""
        return self._start

    @property
    def ptr(self) -> Pointer:
        """Pointer to the first element."""
        return self._start

    def __cute_form__(self) -> Form:
        return _ViewForm(self)


class MemRangeView(_View):
    """A view of a ``MemRange`` field in shared memory."""

    __slots__ = ("size",)

    def __init__(self, start: Pointer, n: int):
        self._start = start
        self.size = n

    def moved_to(self, start: Pointer) -> _View:
        return MemRangeView(start, self.size)

    def get_tensor(self, layout: Any, swizzle: Any = None, dtype: type[Numeric] | None = None) -> Any:
        """Return the elements as a tensor.

        Args:
            layout: the layout of the tensor. F263 is raised if it reaches past the end of the field.
            swizzle: a swizzle of the byte address.
            dtype: the element type; by default the field's.
        """
        from cute_dialect.dialect.shared_memory import storage_bytes  # late: start-up

        start = self._start if dtype is None else recast_ptr(self._start, dtype=dtype)
        made = make_tensor(start if swizzle is None else recast_ptr(start, swizzle), layout)
        room = _bytes_of(self._start.dtype, self.size)
        if made.layout.is_static and (reach := storage_bytes(made.type)) > room:
            raise KernelTypeError(
                "F263", f"the layout {made.layout} of {start.dtype!r} needs {reach} bytes, but the field has {room}",
                hint="a swizzled layout needs whole swizzle blocks" if swizzle is not None else "",
            )  # fmt: skip
        return made

    def __getitem__(self, index: Any) -> Any:
        return self._start[index]

    def __setitem__(self, index: Any, value: object) -> None:
        self._start[index] = value

    def __repr__(self) -> str:
        return f"MemRange[{self._start.dtype!r}, {self.size}] at {self._start!r}"


class StructView(_View):
    """A view of a structure in shared memory. Its fields are attributes."""

    __slots__ = ("_struct",)

    def __init__(self, struct: Struct, start: Pointer):
        self._struct = struct
        self._start = start

    def moved_to(self, start: Pointer) -> _View:
        return StructView(self._struct, start)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self._struct.fields:
            known = ", ".join(self._struct.fields)
            raise AttributeError(f"structure {self._struct.name} has no field {name!r}; fields: {known}")
        field = self._struct.fields[name]
        return field.at((self._start + self._struct.offsets[name]).align(field.alignment))

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_struct", "_start"):
            object.__setattr__(self, name, value)
            return
        place = getattr(self, name)
        if not isinstance(place, Pointer):
            raise KernelTypeError(
                "F263", f"field {name!r} of {self._struct.name} is not a number; assign to its elements instead"
            )
        place.store(value)

    def __repr__(self) -> str:
        return f"{self._struct.name} at {self._start!r}"


class _ViewForm(Form):
    """The form of a view, derived from its pointer."""

    __slots__ = ("pointer", "types", "view")

    def __init__(self, view: _View, pointer: Form | None = None):
        self.view = view
        self.pointer = form_of(view.ptr) if pointer is None else pointer
        self.types = self.pointer.types

    def _what(self) -> tuple[object, ...]:
        view = self.view
        return (view._struct,) if isinstance(view, StructView) else (type(view), getattr(view, "size", None))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ViewForm) and self._what() == other._what() and self.pointer == other.pointer

    def __hash__(self) -> int:
        return hash(self.pointer)

    def __repr__(self) -> str:
        return repr(self.view)

    def take(self, value: object) -> list[SSAValue]:
        assert isinstance(value, _View)
        return self.pointer.take(value.ptr)

    def make(self, leaves: Sequence[SSAValue]) -> object:
        start: Any = self.pointer.make(leaves)
        return self.view.moved_to(start)

    def join(self, other: Form) -> Form:
        if isinstance(other, _ViewForm) and self._what() == other._what():
            return _ViewForm(self.view, self.pointer.join(other.pointer))
        raise MergeError("F205", f"it is {self!r} or {other!r}")


class _StructDecorator:
    """The decorator ``@cute.struct`` and the field types ``MemRange``, ``Align``, ``Tensor`` and ``union``."""

    MemRange = MemRange
    Align = Align
    Tensor = TensorField

    def __call__(self, cls: type) -> Struct:
        """Return the structure defined by a class's annotations."""
        return Struct(cls.__name__, _fields(cls, sys._getframe(1).f_locals))

    def union(self, cls: type) -> Struct:
        """Return a union: a structure whose fields all start at offset 0."""
        return Struct(cls.__name__, _fields(cls, sys._getframe(1).f_locals), union=True)


def _fields(cls: type, names: Mapping[str, object]) -> dict[str, Field]:
    space = {**vars(sys.modules[cls.__module__]), **names} if cls.__module__ in sys.modules else dict(names)
    found: dict[str, Field] = {}
    for base in reversed(cls.__mro__):
        for name, said in vars(base).get("__annotations__", {}).items():
            # The annotation is the user's own.
            found[name] = as_field(eval(said, space) if isinstance(said, str) else said)
    if not found:
        raise KernelTypeError("F263", f"structure {cls.__name__} has no annotated fields")
    return found


struct = _StructDecorator()
