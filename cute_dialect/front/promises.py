"""Promises about the arrays of a launch: a kernel for what they allow, and another one where they do not hold.

@cute.jit
def run(x, y):
    fast = (cute.promise(t, "(?,?):(?{div=4},1)", align=16) for t in (x, y))
    kernel_v(*fast).launch(grid=…, block=…, fallback=kernel(x, y))

The launcher looks at each call whether the promises hold; the first kernel may then move vectors without a test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.front.errors import KernelTypeError, LayoutError
from cute_dialect.front.values import Dynamic, Form

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

    from cute_dialect.front.tensors import Tensor

__all__ = ["Promised", "promise", "promise_vectors"]


class Promised(Dynamic):
    """A tensor of a host function of which a launch says more than its type does; a kernel gets it as a tensor."""

    __slots__ = ("tensor", "type")

    tensor: Tensor
    type: Attribute
    """The type that a kernel gets it by."""

    def __init__(self, tensor: Tensor, type: Attribute):
        self.tensor = tensor
        self.type = type

    @property
    def view(self) -> Tensor:
        """The tensor of that type on the host: for tensor maps, and for a kernel whose fallback takes other arguments.

        The launch checks what the kernel's parameters promise, as it does for any.
        """
        from cute_dialect.front.layouts import Layout
        from cute_dialect.front.tensors import make_tensor

        data: Any = self.type.data  # pyright: ignore[reportAttributeAccessIssue]
        numbers = [
            n for n, known in zip(self.tensor.layout.numbers, _leaves(self.tensor.payload, data.layout)) if known
        ]
        return make_tensor(self.tensor.iterator.align(data.ptr.alignment), Layout(data.layout, numbers=numbers))

    @property
    def element_type(self) -> Any:
        """The number type of its elements."""
        return self.tensor.element_type

    def describe(self) -> str:
        return "a promised tensor, which only a kernel can use"

    def __repr__(self) -> str:
        return f"<{self.tensor!r}, promised {self.type}>"

    def __cute_form__(self) -> Form:
        return PromisedForm(self)


class PromisedForm(Form):
    """The form of a tensor with a promise: its leaf has the type of the host's, the kernel's parameter the stronger."""

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
        from cute_dialect.front.tensors import Tensor

        return Tensor.of(leaves[0], self.element_type)

    def join(self, other: Form) -> Form:
        if self == other:
            return self
        raise KernelTypeError("F133", "a tensor with a promise does not depend on a branch", hint="promise it there")


def promise(tensor: Tensor, layout: Any, align: int | None = None) -> Promised:
    """Return a tensor of a host function, promised to a kernel by a layout that says more than its own does.

    ``layout``: the text of a layout of the same modes, each leaf as it is or stronger, such as
    ``"(?,?):(?{div=4},1)"``.  ``align``: what its address is a multiple of, in bytes.  The launch needs a ``fallback``,
    which is launched for arrays that do not keep the promise.
    """
    from cute_dialect.algebra.text import TextError, parse_layout
    from cute_dialect.front.tensors import Tensor
    from cute_dialect.front.trace import current

    if current().kind != "host":
        raise KernelTypeError("F133", "promises are made in host functions, and kept or not at the launch")
    if not isinstance(tensor, Tensor) or not tensor.is_memory:
        raise KernelTypeError("F133", f"a promise is about a tensor in memory, got {tensor!r}")
    try:
        strong = parse_layout(str(layout))
    except TextError as e:
        raise LayoutError("F240", f"no layout: '{layout}': {e}") from None
    weak: Any = tensor.payload
    if not _stronger(strong.shape, weak.shape) or not _stronger(strong.stride, weak.stride):
        raise KernelTypeError(
            "F133", f"the promise '{layout}' is not about a tensor of layout {weak}: it has other modes, "
            "or denies what is known",
        )  # fmt: skip
    return _promised(tensor, strong, align or 1)


def _promised(tensor: Tensor, strong: Any, align: int) -> Promised:
    from cute_dialect.memory_types import MemRef, MemRefType, ptr

    data: Any = tensor.type.data  # pyright: ignore[reportAttributeAccessIssue]
    old = data.ptr
    made = ptr(old.element, old.space, max(old.alignment, align), old.swizzle)
    return Promised(tensor, MemRefType(MemRef(made, strong)))


def promise_vectors(tensor: Tensor, elements: int) -> Tensor | Promised | None:
    """Return a tensor of a host function, promised to be made of whole vectors of so many elements.

    Its address, the extent of its contiguous mode and the strides of the others are multiples of a vector then, as in
    ``"(?,?{div=8}):(?{div=8},1)"``.  Gives the tensor itself where that is known, None where it is known to be wrong.
    """
    from cute_dialect.algebra.leaf import Dyn
    from cute_dialect.algebra.values import raw_layout

    if elements == 1:
        return tensor
    weak: Any = tensor.payload
    data: Any = tensor.type.data  # pyright: ignore[reportAttributeAccessIssue]
    contiguous = tensor.leading_dim
    if contiguous is None or any(isinstance(x, tuple) for x in (*weak.shape, *weak.stride)):
        return None

    def leaf(x: Any) -> Any:
        """Return a leaf with the promise in it, None if it contradicts that."""
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
    """Tell of each dynamic leaf of a layout whether it is dynamic in a stronger one, too."""
    from cute_dialect.algebra.leaf import Dyn

    def walk(w: Any, s: Any) -> list[bool]:
        if isinstance(w, tuple):
            return [found for x, y in zip(w, s) for found in walk(x, y)]
        return [isinstance(s, Dyn)] if isinstance(w, Dyn) else []

    return [*walk(weak.shape, strong.shape), *walk(weak.stride, strong.stride)]


def _stronger(strong: Any, weak: Any) -> bool:
    """Tell whether each leaf of a tree says as much as that of another one, or more."""
    from cute_dialect.algebra.leaf import Dyn

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
