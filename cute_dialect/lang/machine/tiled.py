"""Common parts of tiled copies and tiled MMAs: the base class, and operands of their partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import Layout as LayoutPayload
from cute_dialect.lang.machine.atoms import Record, refuse
from cute_dialect.lang.tracing.errors import KernelTypeError, LayoutError
from cute_dialect.lang.tracing.tracer import current
from cute_dialect.lang.values.dynamic import Dynamic
from cute_dialect.lang.values.int_tuples import to_ssa
from cute_dialect.lang.values.layouts import as_layout
from cute_dialect.lang.values.numeric import as_number
from cute_dialect.lang.values.tensors import Tensor

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

__all__ = ["Tiled", "partition_view", "static_payload", "tensor_operand", "thread_coord"]


class Tiled(Record):
    """Base of tiled copies and tiled MMAs: an atom, and a type that assigns the work to threads."""

    __slots__ = ("atom", "type")

    making: ClassVar[str]
    """The op that creates it from its atom."""
    atom: Any
    type: Attribute
    is_static = True

    @property
    def name(self) -> str:
        """Its name in messages."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """The number of threads."""
        raise NotImplementedError

    @property
    def ssa(self) -> SSAValue:
        """The SSA value, without the state of its atom."""
        return current().at_top(self.making, self.type, [self.atom.ssa])

    @property
    def op(self) -> Any:
        """The descriptor of its atom."""
        return self.atom.op

    def __cute_size__(self, path: Any) -> int:
        if path:
            raise KernelTypeError("F251", f"{self.name} has no modes; cute.size returns its number of threads")
        return self.size

    def __repr__(self) -> str:
        return str(self.type)


def thread_coord(thr_idx: Any) -> SSAValue:
    """Return a thread index as a coordinate.  Raises F254 if it is not an integer."""
    number = as_number(thr_idx)
    if not type(number).is_integer:
        raise KernelTypeError("F254", f"the thread index must be an integer, got {number.describe()}")
    return to_ssa(int(number.value) if number.is_static else number, "coord")


def tensor_operand(x: Any, what: str, role: str) -> Any:
    """Return ``x`` if it is a tensor.  Raises F254 otherwise."""
    if not isinstance(x, Tensor):
        shown = x.describe() if isinstance(x, Dynamic) else repr(x)
        hint = "store it in a register tensor first with r.store(v)" if hasattr(type(x), "__cute_store__") else ""
        raise KernelTypeError("F254", f"{what}: the {role} must be a tensor, got {shown}", hint=hint)
    return x


def partition_view(name: str, tiled: SSAValue, tensor: Any, more: Sequence[SSAValue], what: str, role: str) -> Any:
    t = tensor_operand(tensor, what, role)
    try:
        made = current().value(name, [tiled, t.ssa, *more])
    except LayoutError as e:
        refuse("F254", what, e, hint=f"the {role} is {t!r}")
    return Tensor.of(made, t.element_type)


# -------------------------------------------------------------------------------------------------- making tiled copies


def static_payload(x: Any, what: str) -> LayoutPayload:
    """Return the payload of a static plain layout, or of the compact layout of a shape.  Raises F251 for others."""
    if isinstance(x, LayoutPayload):
        return x
    found = as_layout(x)
    payload = getattr(found, "payload", None)
    if not isinstance(payload, LayoutPayload) or not is_static(payload):
        raise KernelTypeError("F251", f"{what} must be a static layout, got {found}")
    return payload
