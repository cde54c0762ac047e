"""Shared memory: buffers of a block, allocated in the order of the trace, untyped or typed by structures.

A structure is a class whose annotated fields have sizes, alignments and offsets::

    @cute.struct
    class Storage:
        barriers: cute.struct.MemRange[cute.Int64, 4]
        tile: cute.struct.Align[cute.struct.MemRange[cute.Float16, 64 * 64], 1024]

As in C, each field starts at the next multiple of its alignment.  ``Storage.size_in_bytes()`` and
``Storage.describe()`` also work outside kernels.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cute_dialect.arch.targets import find_target
from cute_dialect.lang.tracing.errors import KernelTypeError, LayoutError, LimitError, MergeError
from cute_dialect.lang.tracing.tracer import current, parse_type
from cute_dialect.lang.values.dtypes import Int32, Numeric, Uint8
from cute_dialect.lang.values.dynamic import Dynamic, Form
from cute_dialect.lang.values.folding import Facts
from cute_dialect.lang.values.forms import form_of
from cute_dialect.lang.values.layouts import as_layout
from cute_dialect.lang.values.pointers import Pointer, recast_ptr
from cute_dialect.lang.values.tensors import Tensor, make_tensor
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

    from cute_dialect.algebra.values import Swizzle
    from cute_dialect.lang.values.dtypes import Numeric
    from cute_dialect.lang.values.signature_types import LayoutLike


def smem_tensor(
    element_type: type[Numeric], layout: LayoutLike, byte_alignment: int | None = None, swizzle: Swizzle | None = None
) -> Tensor:
    """Allocate a shared memory buffer with a static layout, plain or swizzled.

    Args:
        element_type: the element type.
        layout: a static layout.
        byte_alignment: the alignment in bytes; 16 by default.
        swizzle: a swizzle of the byte address; the buffer is aligned to its period.
    """
    from cute_dialect.dialect.memory_types import MemRef, MemRefType, ptr  # late: start-up
    from cute_dialect.dialect.shared_memory import storage_bytes, swizzle_period  # late: start-up

    payload = _static_layout(layout)
    least = max(16, -(-element_type.width // 8)) if byte_alignment is None else byte_alignment
    align = max(_power(least), 1 if swizzle is None else swizzle_period(swizzle), -(-element_type.width // 8))
    type = MemRefType(MemRef(ptr(element_type.attribute, AddressSpace.smem, align, swizzle), payload))
    n = storage_bytes(type)
    union = _open_union()
    if union is not None:
        start = recast_ptr(union.take(n, align), dtype=element_type)
        start = start if swizzle is None else recast_ptr(start, swizzle)
        return make_tensor(start, layout)
    return Tensor.of(_alloc(type, n), element_type)


def _static_layout(layout: Any) -> Any:
    made = as_layout(layout)
    if not made.is_static:
        raise LayoutError("F240", f"a shared memory buffer needs a static layout, got {made}")
    return made.payload


def _power(align: int) -> int:
    if align < 1 or align & (align - 1):
        raise KernelTypeError("F262", f"the alignment must be a power of two, got {align}")
    return align


def _bytes(n: int, align: int) -> Pointer:
    """Return a pointer to ``n`` new bytes of shared memory."""
    union = _open_union()
    if union is not None:
        return union.take(n, align)
    return Pointer.of(current().value("cute.get_iter", [_alloc(_byte_buffer(n, align), n)]), Uint8)


def _byte_buffer(n: int, align: int) -> Attribute:
    return parse_type(f'!cute.memref<i8, smem, align<{_power(align)}>, "{n}:1">')


def _alloc(type: Any, n: int) -> Any:
    """Emit the allocation.  Raises F261 with a list of all buffers if the target lacks the space."""
    t = current()
    if t.kind != "kernel":
        raise KernelTypeError("F260", "shared memory can only be allocated in a kernel")
    _check_room(type, n)
    return t.value("cute.memref.alloc_smem", (), [type])


def _check_room(type: Any, n: int) -> None:
    from cute_dialect.dialect.shared_memory import storage_bytes  # late: start-up

    t = current()
    room = find_target(t.chip).shared
    found = [op.results[0] for op in t.function.walk() if op.name == "cute.memref.alloc_smem"]
    sizes = [storage_bytes(v.type) for v in found] + [n]  # pyright: ignore
    if sum(sizes) <= room:
        return
    rows = [f"  {size:8} bytes  {v.name_hint or '_':12} {v.type}" for v, size in zip(found, sizes)]
    rows.append(f"  {n:8} bytes  {'this one':12} {type}")
    raise LimitError(
        "F261", f"the kernel's shared memory buffers need {sum(sizes)} bytes, but a block has {room} on {t.chip}:\n"
        + "\n".join(rows), hint="use fewer stages or smaller tiles, or reuse bytes with cute.union_smem()",
    )  # fmt: skip


def alloc_smem(element_type: type[Numeric], size: int, alignment: int | None = None) -> Pointer:
    """Allocate ``size`` elements of shared memory and return a pointer."""
    natural = max(1, element_type.width // 8)
    bits = size * (8 if element_type.width == 1 else element_type.width)
    start = _bytes(max(1, -(-bits // 8)), max(natural, 1 if alignment is None else alignment))
    return recast_ptr(start, dtype=element_type)


def get_dyn_smem(element_type: type[Numeric], alignment: int | None = None) -> Pointer:
    """Return a pointer to the dynamic shared memory that the launch requests with ``smem=``.

    It is separate from the kernel's own buffers.  The memory is aligned to 1024 bytes.  Raises F262 for a larger
    ``alignment``.
    """
    start = Pointer.of(current().value("cute.smem_base"), Uint8)
    if alignment is not None and _power(alignment) > start.alignment:
        raise KernelTypeError(
            "F262", f"get_dyn_smem: the alignment can be at most {start.alignment} bytes, got {alignment}"
        )
    return recast_ptr(start, dtype=element_type)


def dynamic_smem_size() -> Int32:
    """Return the size of the block's dynamic shared memory in bytes.

    It includes the kernel's own buffers if they exceed 48 KiB, because they are then dynamic too.
    """
    read = current().value("nvvm.read.ptx.sreg.dynamic.smem.size", (), [Int32.attribute])
    return Int32.of(read, Facts(0, 1 << 20))


class SmemAllocator:
    """Allocator of shared memory buffers, placed one after another in the order of the calls."""

    def allocate(self, size_or_type: int | type[Numeric] | Struct, byte_alignment: int = 1) -> Pointer | StructView:
        """Allocate shared memory: a number of bytes, one number of a type, or a structure (``cute.struct``)."""
        if isinstance(size_or_type, Struct):
            n = size_or_type.size_in_bytes()
            return size_or_type.at(_bytes(n, max(byte_alignment, size_or_type.alignment)))
        if isinstance(size_or_type, type):
            return alloc_smem(size_or_type, 1, byte_alignment)
        if not isinstance(size_or_type, int) or size_or_type < 1:
            raise KernelTypeError(
                "F263", f"allocate needs a number of bytes, a number type or a structure, got {size_or_type!r}"
            )
        # CuTe DSL aligns the first bytes to 1024. A swizzled layout that fits is complete at this alignment.
        return _bytes(size_or_type, max(byte_alignment, min(1024, 1 << size_or_type.bit_length() - 1)))

    def allocate_array(self, element_type: type[Numeric], num_elems: int = 1, byte_alignment: int = 1) -> Pointer:
        """Allocate ``num_elems`` elements and return a pointer."""
        return alloc_smem(element_type, num_elems, byte_alignment)

    def allocate_tensor(
        self, element_type: type[Numeric], layout: LayoutLike, byte_alignment: int = 16, swizzle: Swizzle | None = None
    ) -> Tensor:
        """Allocate a tensor in shared memory; see :func:`smem_tensor`."""
        return smem_tensor(element_type, layout, byte_alignment, swizzle)

    @staticmethod
    def capacity(chip: str) -> int:
        """Return the shared memory available to a block on an architecture, in bytes.

        >>> SmemAllocator.capacity("sm_90a")
        232448
        """
        return find_target(chip).shared


# --------------------------------------------------------------------------------------------------------------- unions


class UnionSmem:
    """Shared memory reused by the buffers of several phases; see :func:`union_smem`."""

    def __init__(self) -> None:
        self._buffer = _alloc(_byte_buffer(1, 1024), 1)
        self._start = Pointer.of(current().value("cute.get_iter", [self._buffer]), Uint8)
        self._at = 0
        self._size = 1

    def next(self) -> None:
        """Begin the next phase, whose buffers start at the first byte again."""
        self._at = 0

    def take(self, n: int, align: int) -> Pointer:
        """Return a pointer to the next bytes of the phase."""
        if align > 1024:
            raise KernelTypeError("F262", f"union_smem: the alignment can be at most 1024 bytes, got {align}")
        at = -(-self._at // align) * align
        self._at = at + n
        self._size = max(self._size, self._at)
        _check_room(_byte_buffer(self._size, 1024), self._size - 1)
        return self._start + at

    def close(self) -> None:
        """Set the size of the buffer."""
        from xdsl.rewriter import Rewriter

        self._buffer = Rewriter.replace_value_with_new_type(self._buffer, _byte_buffer(self._size, 1024))


@contextmanager
def union_smem() -> Generator[UnionSmem]:
    """Let buffers allocated in different phases share bytes. ``.next()`` begins the next phase.

    ::

        with cute.union_smem() as phases:
            sA = cute.smem_tensor(cute.Float16, (64, 64))
            phases.next()
            sC = cute.smem_tensor(cute.Float32, (64, 32))

    A barrier must separate the last use in one phase from the first use in the next.  The interpreter's race detector
    reports a missing one.
    """
    unions: list[UnionSmem] = current().state.setdefault("smem_unions", [])
    if unions:
        raise KernelTypeError("F263", "union_smem() cannot be nested")
    union = UnionSmem()
    unions.append(union)
    try:
        yield union
    finally:
        unions.pop()
        union.close()


def _open_union() -> UnionSmem | None:
    unions: Sequence[UnionSmem] = current().state.get("smem_unions", ())
    return unions[-1] if unions else None


# ----------------------------------------------------------------------------------------------------------- structures


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
