"""Promises about the arrays of a launch, with a fallback kernel for arrays that do not satisfy them.

::

    @cute.jit
    def run(x, y):
        fast = (cute.promise(t, "(?,?):(?{div=4},1)", align=16) for t in (x, y))
        kernel_v(*fast).launch(grid=…, block=…, fallback=kernel(x, y))

The launcher checks the promises at each call.  The first kernel may therefore use vector accesses without run-time
checks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.algebra.leaf import Dyn
from cute_dialect.algebra.text import TextError, parse_layout
from cute_dialect.algebra.values import raw_layout
from cute_dialect.lang.tracing.errors import KernelTypeError, LayoutError
from cute_dialect.lang.tracing.tracer import current
from cute_dialect.lang.values.dynamic import Dynamic, Form
from cute_dialect.lang.values.layouts import Layout
from cute_dialect.lang.values.tensors import Tensor, make_tensor

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue


class Promised(Dynamic):
    """A tensor of a host function with a promised layout. The kernel receives it as an ordinary tensor."""

    __slots__ = ("tensor", "type")

    tensor: Tensor
    type: Attribute
    """The type of the kernel's parameter."""

    def __init__(self, tensor: Tensor, type: Attribute):
        self.tensor = tensor
        self.type = type

    @property
    def view(self) -> Tensor:
        """The tensor with the promised type on the host, for tensor maps and for fallbacks with different arguments.

        The launch checks the promises of the kernel's parameters as usual.
        """
        data: Any = self.type.data  # pyright: ignore[reportAttributeAccessIssue]
        numbers = [
            n for n, known in zip(self.tensor.layout.numbers, _leaves(self.tensor.payload, data.layout)) if known
        ]
        return make_tensor(self.tensor.iterator.align(data.ptr.alignment), Layout(data.layout, numbers=numbers))

    @property
    def element_type(self) -> Any:
        """The element type."""
        return self.tensor.element_type

    def describe(self) -> str:
        return "a tensor with a promise, which can only be passed to a kernel"

    def __repr__(self) -> str:
        return f"<{self.tensor!r}, promised {self.type}>"

    def __cute_form__(self) -> Form:
        return PromisedForm(self)


class PromisedForm(Form):
    """The form of a promised tensor: its leaf has the host's type, the kernel's parameter the stronger one."""

    __slots__ = ("element_type", "types")

    def __init__(self, promised: Promised):
        self.types = (promised.type,)
        self.element_type = promised.element_type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PromisedForm) and self.types == other.types

    def __hash__(self) -> int:
        return hash((PromisedForm, self.types))

    def __repr__(self) -> str:
        return "a tensor with a promise"

    def take(self, value: object) -> list[SSAValue]:
        assert isinstance(value, Promised)
        return [value.tensor.ssa]

    def make(self, leaves: Sequence[SSAValue]) -> Tensor:
        return Tensor.of(leaves[0], self.element_type)

    def join(self, other: Form) -> Form:
        if self == other:
            return self
        raise KernelTypeError(
            "F133", "a tensor with a promise cannot depend on a branch", hint="call cute.promise after the branch"
        )


def promise(tensor: Tensor, layout: str, align: int | None = None) -> Promised:
    """Return a tensor of a host function with a promise about its layout, to be passed to a kernel.

    The launch needs a ``fallback``, which is launched for arrays that do not satisfy the promise.

    Args:
        tensor: a tensor in memory.
        layout: the text of a layout with the same modes and equal or stronger leaves, such as ``"(?,?):(?{div=4},1)"``.
        align: the alignment of the address, in bytes.
    """
    if current().kind != "host":
        raise KernelTypeError("F133", "cute.promise can only be used in a host function")
    if not isinstance(tensor, Tensor) or not tensor.is_memory:
        raise KernelTypeError("F133", f"cute.promise needs a tensor in memory, got {tensor!r}")
    try:
        strong = parse_layout(str(layout))
    except TextError as e:
        raise LayoutError("F240", f"cute.promise: '{layout}' is not a layout: {e}") from None
    weak: Any = tensor.payload
    if not _stronger(strong.shape, weak.shape) or not _stronger(strong.stride, weak.stride):
        raise KernelTypeError(
            "F133", f"the promised layout '{layout}' is incompatible with the tensor's layout {weak}; it must have the "
            "same modes and agree with every known leaf",
        )  # fmt: skip
    return _promised(tensor, strong, align or 1)


def _promised(tensor: Tensor, strong: Any, align: int) -> Promised:
    from cute_dialect.dialect.memory_types import MemRef, MemRefType, ptr  # late: start-up

    data: Any = tensor.type.data  # pyright: ignore[reportAttributeAccessIssue]
    old = data.ptr
    made = ptr(old.element, old.space, max(old.alignment, align), old.swizzle)
    return Promised(tensor, MemRefType(MemRef(made, strong)))


def promise_vectors(tensor: Tensor, elements: int) -> Tensor | Promised | None:
    """Return a tensor of a host function, promised to consist of whole vectors of ``elements`` elements.

    Its address, the extent of its contiguous mode and the strides of its other modes are then multiples of a vector, as
    in ``"(?,?{div=8}):(?{div=8},1)"``.  The tensor itself is returned if this is already known, None if it is known to
    be false.
    """
    if elements == 1:
        return tensor
    weak: Any = tensor.payload
    data: Any = tensor.type.data  # pyright: ignore[reportAttributeAccessIssue]
    contiguous = tensor.leading_dim
    if contiguous is None or any(isinstance(x, tuple) for x in (*weak.shape, *weak.stride)):
        return None

    def leaf(x: Any) -> Any:
        """Return a leaf with the promise added, or None if it contradicts the promise."""
        if isinstance(x, Dyn):
            return Dyn(x.width, math.lcm(max(1, x.div), elements))
        return x if x % elements == 0 else None

    shape = [leaf(x) if i == contiguous else x for i, x in enumerate(weak.shape)]
    stride = [x if i == contiguous else leaf(x) for i, x in enumerate(weak.stride)]
    if None in (*shape, *stride):
        return None
    strong = raw_layout(tuple(shape), tuple(stride))
    element: Any = tensor.element_type
    align = element.width * elements // 8
    if strong == weak and data.ptr.alignment >= align:
        return tensor
    return _promised(tensor, strong, align)


def _leaves(weak: Any, strong: Any) -> list[bool]:
    """For each dynamic leaf of a layout, return True if it is dynamic in a stronger layout too."""

    def walk(w: Any, s: Any) -> list[bool]:
        if isinstance(w, tuple):
            return [found for x, y in zip(w, s) for found in walk(x, y)]
        return [isinstance(s, Dyn)] if isinstance(w, Dyn) else []

    return [*walk(weak.shape, strong.shape), *walk(weak.stride, strong.stride)]


def _stronger(strong: Any, weak: Any) -> bool:
    """Return True if each leaf of a tree is at least as specific as that of another."""
    if isinstance(strong, tuple) or isinstance(weak, tuple):
        return (
            isinstance(strong, tuple) and isinstance(weak, tuple) and len(strong) == len(weak)
            and all(_stronger(s, w) for s, w in zip(strong, weak))
        )  # fmt: skip
    if not isinstance(weak, Dyn):
        return strong == weak
    if isinstance(strong, Dyn):
        return strong.width == weak.width and max(1, strong.div) % max(1, weak.div) == 0
    return isinstance(strong, int) and strong % max(1, weak.div) == 0
