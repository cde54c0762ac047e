"""Forms of tensors and pointers: how they cross branches, loops and the boundaries of functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cute_dialect.front.errors import MergeError
from cute_dialect.front.pointers import Pointer
from cute_dialect.front.tensors import Tensor
from cute_dialect.front.values import Form

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

    from cute_dialect.front.dtypes import Numeric

__all__ = ["PlaceForm", "PointerForm", "TensorForm"]


class PointerForm(Form):
    """The form of pointers of one type."""

    __slots__ = ("dtype", "type", "types")

    def __init__(self, type: Attribute, dtype: type[Numeric]):
        self.type = type
        self.dtype = dtype
        self.types = (type,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PointerForm) and self.type == other.type and self.dtype is other.dtype

    def __hash__(self) -> int:
        return hash((PointerForm, self.type))

    def __repr__(self) -> str:
        return f"PointerForm({self.type})"

    def take(self, value: object) -> list[SSAValue]:
        assert isinstance(value, Pointer)
        return [value.ssa]

    def make(self, leaves: Sequence[SSAValue]) -> Pointer:
        return Pointer.of(leaves[0], self.dtype)

    def join(self, other: Form) -> Form:
        if self == other:
            return self
        raise MergeError("F205", f"it is {self.type} or {getattr(other, 'type', 'something else')}")


class TensorForm(Form):
    """The form of tensors of one type."""

    __slots__ = ("element_type", "type", "types")

    def __init__(self, type: Attribute, element_type: type[Numeric] | None, *, is_static: bool):
        self.type = type
        self.element_type = element_type
        self.types = () if is_static else (type,)

    @staticmethod
    def of(tensor: Tensor) -> Form:
        """Return the form of a tensor: of one in registers that it is this very one."""
        if tensor.memspace == "rmem":
            return PlaceForm(tensor)
        return TensorForm(tensor.type, tensor.element_type, is_static=tensor.is_static)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TensorForm)
            and (self.type, self.types) == (other.type, other.types)
            and self.element_type is other.element_type
        )

    def __hash__(self) -> int:
        return hash((TensorForm, self.type))

    def __repr__(self) -> str:
        return f"TensorForm({self.type})"

    def take(self, value: object) -> list[SSAValue]:
        assert isinstance(value, Tensor)
        return [value.ssa] if self.types else []

    def make(self, leaves: Sequence[SSAValue]) -> Tensor:
        return Tensor.of(leaves[0], self.element_type) if leaves else Tensor.static(self.type)

    def join(self, other: Form) -> Form:
        if self == other:
            return self
        raise MergeError("F205", f"it is {self.type} or {getattr(other, 'type', 'something else')}")


class PlaceForm(Form):
    """The form of one register tensor: a place, which no other one can stand for."""

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
            "F206", "it is one register tensor or another one" if isinstance(other, PlaceForm) else
            "it is a register tensor or something else",
            hint="a register tensor is a place, not a value: make one before, and write into it on both sides",
        )  # fmt: skip
