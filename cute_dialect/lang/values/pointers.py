"""Pointers: typed addresses in a memory space."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.lang.tracing.errors import KernelTypeError, MergeError
from cute_dialect.lang.tracing.tracer import current, parse_type
from cute_dialect.lang.values.annotations import subscripted
from cute_dialect.lang.values.dtypes import Int32, Int64, Numeric, type_of_mlir
from cute_dialect.lang.values.dynamic import Dynamic, Form, later_methods
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

    from cute_dialect.algebra.values import Swizzle
    from cute_dialect.lang.values.signature_types import Int


def element_class(element: Attribute) -> type[Numeric]:
    """Return the number type of an MLIR element type. Signless integers are signed."""
    text = str(element)
    if text.startswith("ui"):
        return type_of_mlir(text[1:], signed=False)
    return type_of_mlir(text.removeprefix("s") if text.startswith("si") else text.removeprefix("!cute."))


class Pointer(Dynamic):
    """A typed address in a memory space."""

    __slots__ = ("dtype", "ssa")

    ssa: SSAValue
    dtype: builtins.type[Numeric]

    def __class_getitem__(cls, element: object) -> object:
        """Return the annotation ``Pointer[element]``."""
        return subscripted(cls, element)

    @classmethod
    def of(cls, ssa: SSAValue, dtype: builtins.type[Numeric] | None = None) -> Pointer:
        """Return the pointer for a value of type ``!cute.ptr``."""
        made = object.__new__(cls)
        made.ssa = ssa
        made.dtype = element_class(made._type.element) if dtype is None else dtype
        return made

    @property
    def _type(self) -> Any:
        return self.ssa.type.data  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def type(self) -> Attribute:
        return self.ssa.type

    @property
    def memspace(self) -> AddressSpace:
        """The memory space."""
        return self._type.space

    @property
    def alignment(self) -> int:
        """The known alignment, in bytes."""
        return self._type.alignment

    @property
    def ptr(self) -> Pointer:
        """The pointer itself, as for other struct fields."""
        return self

    def data_ptr(self) -> Pointer:
        """Return the pointer itself, as for other struct fields."""
        return self

    @property
    def value_type(self) -> builtins.type[Numeric]:
        """The element type; same as ``dtype``."""
        return self.dtype

    @property
    def swizzle(self) -> Any:
        """The swizzle of the byte address, or None."""
        return self._type.swizzle

    # ---------------------------------------------------------------------------------------------------- arithmetic

    def __add__(self, offset: object) -> Pointer:
        from cute_dialect.lang.values.int_tuples import to_ssa  # late: start-up
        from cute_dialect.lang.values.numeric import as_number, is_number  # late: start-up

        if not is_number(offset):
            return NotImplemented
        number = as_number(offset)
        if not type(number).is_integer:
            raise KernelTypeError("F262", f"a pointer offset must be an integer, got {number.describe()}")
        if number.is_static and number.value == 0:
            return self
        step = to_ssa(number, "int_tuple")
        return Pointer.of(current().value("cute.add_offset", [self.ssa, step]), self.dtype)

    __radd__ = __add__

    def __sub__(self, offset: object) -> Pointer:
        from cute_dialect.lang.values.numeric import as_number, is_number, negated  # late: start-up

        return self + negated(as_number(offset)) if is_number(offset) else NotImplemented

    def align(self, min_align: int) -> Pointer:
        """Return the pointer with a promised alignment: a power of two, in bytes."""
        if min_align < 1 or min_align & (min_align - 1):
            raise KernelTypeError("F262", f"the alignment must be a power of two, got {min_align}")
        if min_align <= self.alignment:
            return self
        type = _pointer_type(self._type.element, self._type.space, min_align, self._type.swizzle)
        return Pointer.of(current().value("cute.assume", [self.ssa], [type]), self.dtype)

    @property
    def llvm_ptr(self) -> Pointer:
        """The pointer itself. CuTe DSL programs use this to pass pointers to ops."""
        return self

    def toint(self) -> Int64 | Int32:
        """Return the address as Int64. For shared memory it is an Int32, relative to the shared window."""
        kind = Int32 if self.memspace.shared else Int64
        t = current()
        address = t.value("builtin.unrealized_conversion_cast", [self.ssa], [_parse_llvm(self._type.space)])
        return kind.of(t.value("llvm.ptrtoint", [address], [kind.attribute]))

    # -------------------------------------------------------------------------------------------------------- access

    def load(self) -> Numeric:
        """Return the element at the pointer."""
        return self._first()[0]

    def store(self, value: object) -> None:
        """Store the element at the pointer, with the conversions of a store to a tensor."""
        self._first()[0] = value

    if TYPE_CHECKING:  # ``tensors`` defines it.

        def _first(self) -> Any: ...

    def __getitem__(self, offset: Any) -> Any:
        return (self + offset).load()

    def __setitem__(self, offset: Any, value: object) -> None:
        (self + offset).store(value)

    def describe(self) -> str:
        name = self.ssa.name_hint
        return f"pointer '{name}'" if name else "this pointer"

    def __repr__(self) -> str:
        return f"ptr<{pointer_text(self._type, self.dtype)}>"

    def __cute_form__(self) -> Form:
        return PointerForm(self.ssa.type, self.dtype)


later_methods(Pointer, tensors=("_first",))


def pointer_text(p: Any, dtype: builtins.type[Numeric] | None = None) -> str:
    """Return the parameters of a pointer type as text. ``dtype`` adds the signedness."""
    unsigned = dtype is not None and dtype.is_integer and not dtype.signed and dtype.width > 1
    parts = [f"u{str(p.element).removeprefix('u')}" if unsigned else str(p.element), p.space]
    if p.align:
        parts.append(f"align<{p.align}>")
    if p.swizzle is not None:
        parts.append(str(p.swizzle))
    return ", ".join(parts)


def _pointer_type(element: Attribute, space: AddressSpace, align: int, swizzle: Any = None) -> Attribute:
    from cute_dialect.dialect.memory_types import PtrType, ptr  # late: start-up

    return PtrType(ptr(element, space, align, swizzle))


def _llvm_pointer(space: AddressSpace) -> str:
    return f"!llvm.ptr<{space.llvm}>" if space.llvm else "!llvm.ptr"


def pointer_to(dtype: builtins.type[Numeric], value: Int, mem_space: str, assumed_align: int | None) -> Pointer:
    """Return the pointer with an address that may be a run-time value (``cute.make_ptr`` in a trace)."""
    from cute_dialect.dialect.memory_types import natural_alignment  # late: start-up
    from cute_dialect.lang.values.numeric import as_number  # late: start-up

    space = AddressSpace(mem_space)
    kind = Int32 if space.shared else Int64
    number = as_number(value)
    if not type(number).is_integer:
        raise KernelTypeError("F262", f"make_ptr: the address must be an integer, got {number.describe()}")
    natural = natural_alignment(dtype.attribute)
    align = natural if assumed_align is None else assumed_align
    if align < natural or align & (align - 1):
        raise KernelTypeError(
            "F262",
            f"make_ptr: the alignment for {dtype!r} must be a power of two of at least {natural} bytes, got {align}",
        )
    t = current()
    address = t.value("llvm.inttoptr", [kind(number).ssa], [_parse_llvm(space)])
    target = _pointer_type(dtype.attribute, space, align)
    return Pointer.of(t.value("builtin.unrealized_conversion_cast", [address], [target]), dtype)


def recast_ptr(ptr: Pointer, swizzle: Swizzle | None = None, dtype: builtins.type[Numeric] | None = None) -> Pointer:
    """Return a pointer to the same bytes with another element type or a swizzle of the byte address.

    A swizzle replaces an existing one, so the memory is then accessed in another order.  The alignment is kept if it is
    valid for the new elements.
    """
    from cute_dialect.dialect.memory_types import natural_alignment  # late: start-up

    kind = ptr.dtype if dtype is None else dtype
    old: Any = ptr.type.data  # pyright: ignore
    natural = natural_alignment(kind.attribute)
    if ptr.alignment < natural:
        raise KernelTypeError(
            "F262", f"{ptr!r} is aligned to {ptr.alignment} bytes, but {kind!r} needs {natural}",
            hint=f"promise the alignment with p.align({natural})",
        )  # fmt: skip
    t = current()
    if swizzle is not None:
        if not ptr.memspace.swizzled:
            spaces = " or ".join(space.words for space in AddressSpace if space.swizzled)
            raise KernelTypeError("F262", f"a swizzle needs a pointer to {spaces}, got {ptr!r}")
        block = 1 << swizzle.masks()[1].bit_length()
        if ptr.alignment < block:
            raise KernelTypeError(
                "F262", f"{swizzle} permutes blocks of {block} bytes, but {ptr!r} is aligned to {ptr.alignment} bytes",
                hint=f"allocate it aligned to {block} bytes or more with byte_alignment= or cute.struct.Align[…]",
            )  # fmt: skip
        plain = t.value("builtin.unrealized_conversion_cast", [ptr.ssa], [_parse_llvm(old.space)])
        target = _pointer_type(kind.attribute, old.space, ptr.alignment, swizzle)
        return Pointer.of(t.value("builtin.unrealized_conversion_cast", [plain], [target]), kind)
    target = _pointer_type(kind.attribute, old.space, ptr.alignment, old.swizzle)
    return Pointer.of(t.value("cute.recast_iter", [ptr.ssa], [target]), kind)


def _parse_llvm(space: AddressSpace) -> Attribute:
    return parse_type(_llvm_pointer(space))


# ---------------------------------------------------------------------------------------------------------------- form


class PointerForm(Form):
    """The form of pointers of one type. Pointers of different alignment join at the weaker one."""

    __slots__ = ("dtype", "type", "types")

    def __init__(self, type: Any, dtype: type[Numeric]):
        self.type = type
        self.dtype = dtype
        self.types = (type,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PointerForm) and self.type == other.type and self.dtype is other.dtype

    def __hash__(self) -> int:
        return hash((PointerForm, self.type))

    def __repr__(self) -> str:
        return f"ptr<{pointer_text(self.type.data)}>"

    def take(self, value: object) -> list[SSAValue]:
        assert isinstance(value, Pointer)
        if value.type == self.type:
            return [value.ssa]
        return [current().value("cute.recast_iter", [value.ssa], [self.type])]

    def make(self, leaves: Sequence[SSAValue]) -> Pointer:
        return Pointer.of(leaves[0], self.dtype)

    def join(self, other: Form) -> Form:
        if self == other:
            return self
        if isinstance(other, PointerForm) and self.dtype is other.dtype:
            from cute_dialect.dialect.memory_types import PtrType  # late: start-up

            weaker = weaker_pointer(self.type.data, other.type.data)
            if weaker is not None:
                return PointerForm(PtrType(weaker), self.dtype)
        raise unlike(self, other)


def weaker_pointer(a: Any, b: Any) -> Any:
    """Return the pointer type that both types satisfy, or None if they differ in more than alignment."""
    from cute_dialect.dialect.memory_types import ptr  # late: start-up

    if (a.element, a.space, a.swizzle) != (b.element, b.space, b.swizzle):
        return None
    return ptr(a.element, a.space, min(a.alignment, b.alignment), a.swizzle)


def unlike(form: Form, other: Form) -> MergeError:
    from cute_dialect.lang.values.forms import ConstForm  # late: start-up

    if isinstance(other, ConstForm):
        return MergeError("F208" if other.value is None else "F209", f"it is {form!r} or {other.value!r}")
    return MergeError("F205", f"it is {form!r} or {other!r}")
