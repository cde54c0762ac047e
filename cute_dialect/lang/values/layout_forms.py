"""Forms of layouts. Their dynamic leaves are passed through branches, loops and calls."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import TYPE_CHECKING, Any

from cute_dialect.algebra.leaf import Dyn, width_of
from cute_dialect.algebra.values import Basis, ComposedLayout, Layout
from cute_dialect.lang.tracing.errors import MergeError
from cute_dialect.lang.values.dtypes import Int32, Int64
from cute_dialect.lang.values.forms import ConstForm, Form
from cute_dialect.lang.values.int_tuples import dynamic_leaves_of
from cute_dialect.lang.values.numeric import Facts

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from cute_dialect.lang.values.layouts import AnyLayout

__all__ = ["LayoutForm"]


class LayoutForm(Form):
    """The form of a layout: its payload. Its leaves are the integers at each ``?``."""

    __slots__ = ("kind", "payload", "types")

    def __init__(self, kind: type[AnyLayout], payload: Any):
        self.kind = kind
        self.payload = payload
        self.types = tuple(_number_type(leaf).attribute for leaf in dynamic_leaves_of(payload))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LayoutForm) and self.kind is other.kind and self.payload == other.payload

    def __hash__(self) -> int:
        return hash((self.kind, self.payload))

    def __repr__(self) -> str:
        return f"the layout {self.payload}"

    def take(self, value: Any) -> list[SSAValue]:
        numbers = iter(value.numbers)
        taken: list[SSAValue] = []
        for ours, theirs in zip(_integers(self.payload), _integers(value.payload), strict=True):
            number = next(numbers) if isinstance(theirs, Dyn) else theirs
            if isinstance(ours, Dyn):
                taken.append(_number_type(ours)(number).ssa)
        return taken

    def make(self, leaves: Sequence[SSAValue]) -> Any:
        slots = dynamic_leaves_of(self.payload)
        extents = len(dynamic_leaves_of(_shape(self.payload)))
        numbers = [
            _number_type(d).of(v, Facts(0 if i < extents else None, None, max(1, d.div)))
            for i, (d, v) in enumerate(zip(slots, leaves, strict=True))
        ]
        return self.kind(self.payload, numbers=numbers)

    def join(self, other: Form) -> Form:
        if isinstance(other, LayoutForm) and self.kind is other.kind:
            try:
                return LayoutForm(self.kind, _joined(self.payload, other.payload))
            except _DifferentProfile:
                raise MergeError("F204", f"it is the layout {self.payload} or {other.payload}") from None
        if isinstance(other, ConstForm) and other.value is None:
            raise MergeError("F208", f"it is the layout {self.payload} or None")
        raise MergeError("F204", f"it is the layout {self.payload} or {other!r}")


def _shape(payload: Any) -> Any:
    """Return the shape of a layout's payload, whose leaves come first in storage order."""
    return _shape(payload.outer) if isinstance(payload, ComposedLayout) else payload.shape


def _number_type(leaf: Dyn) -> Any:
    return Int32 if leaf.width == 32 else Int64


def _integers(payload: Any) -> list[Any]:
    """Return the integers of a payload, static and dynamic, in storage order."""
    from cute_dialect.algebra.trees import leaves

    return [x.value if isinstance(x, Basis) else x for x in leaves(payload)]


class _DifferentProfile(Exception):
    pass


def _joined(a: Any, b: Any) -> Any:
    """Return the payload that both fit. Leaves that differ become dynamic."""
    if isinstance(a, Layout) and isinstance(b, Layout):
        from cute_dialect.algebra.values import raw_layout

        return raw_layout(_joined(a.shape, b.shape), _joined(a.stride, b.stride))
    if isinstance(a, ComposedLayout) and isinstance(b, ComposedLayout):
        return ComposedLayout(_joined(a.inner, b.inner), _joined(a.offset, b.offset), _joined(a.outer, b.outer))
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return tuple([_joined(x, y) for x, y in zip(a, b)])
    if isinstance(a, Basis) and isinstance(b, Basis) and a.path == b.path:
        return Basis(_joined(a.value, b.value), a.path)
    if isinstance(a, int | Dyn) and isinstance(b, int | Dyn):
        if isinstance(a, int) and a == b:
            return a
        divisor = gcd(_divisor(a), _divisor(b))
        return Dyn(max(width_of(a), width_of(b)), divisor if divisor > 1 else 0)
    if a == b:
        return a
    raise _DifferentProfile


def _divisor(leaf: int | Dyn) -> int:
    return (leaf.div or 1) if isinstance(leaf, Dyn) else abs(leaf)
