"""Forms of tensors and pointers, which pass them through branches, loops and function boundaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.lang.tracing.errors import MergeError
from cute_dialect.lang.tracing.tracer import current
from cute_dialect.lang.values.forms import ConstForm, Form
from cute_dialect.lang.values.int_tuples import filled
from cute_dialect.lang.values.layout_forms import LayoutForm, _DifferentProfile, _joined
from cute_dialect.lang.values.numeric import as_number
from cute_dialect.lang.values.pointers import Pointer, pointer_text
from cute_dialect.lang.values.tensors import Tensor

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from cute_dialect.lang.values.dtypes import Numeric

__all__ = ["PlaceForm", "PointerForm", "TensorForm"]


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
            from cute_dialect.dialect.memory_types import PtrType

            weaker = _weaker_pointer(self.type.data, other.type.data)
            if weaker is not None:
                return PointerForm(PtrType(weaker), self.dtype)
        raise _unlike(self, other)


def _weaker_pointer(a: Any, b: Any) -> Any:
    """Return the pointer type that both types satisfy, or None if they differ in more than alignment."""
    from cute_dialect.dialect.memory_types import ptr

    if (a.element, a.space, a.swizzle) != (b.element, b.space, b.swizzle):
        return None
    return ptr(a.element, a.space, min(a.alignment, b.alignment), a.swizzle)


def _unlike(form: Form, other: Form) -> MergeError:
    if isinstance(other, ConstForm):
        return MergeError("F208" if other.value is None else "F209", f"it is {form!r} or {other.value!r}")
    return MergeError("F205", f"it is {form!r} or {other!r}")


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
        if self == other:
            return self
        if not isinstance(other, TensorForm) or self.element_type is not other.element_type:
            raise _unlike(self, other)
        a, b = self.type.data, other.type.data
        try:
            layout = _joined(a.layout, b.layout)
            if self.element_type is not None:
                pointer = _weaker_pointer(a.ptr, b.ptr)
                if pointer is None:
                    raise _unlike(self, other)
                return TensorForm(type(self.type)(type(a)(pointer, layout)), self.element_type)
            return TensorForm(type(self.type)(type(a)(_joined(a.iter, b.iter), layout)), None)
        except _DifferentProfile:
            raise _unlike(self, other) from None


def _numbers(payload: Any, tree: Any) -> list[Numeric]:
    """Return the numbers of a tree at the dynamic leaves of a payload."""
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
