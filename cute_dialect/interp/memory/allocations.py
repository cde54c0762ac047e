"""Tensors in shared and local memory: names and coordinates for diagnostics.

A kernel lowered from cute IR lists each `alloc_smem` in its attribute `cute.smem`, with offset and tensor type. An
`llvm.alloca` that holds a register tensor has the attribute `cute.tensor`. A byte offset is described as `element (3,
17) of %sA`. For that, the pointer's swizzle is undone on the byte and the layout's swizzle on the index, and the layout
is searched for the index. All this happens only when a report is made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from cute_dialect.interp.errors import attr_of, location_text, op_name, value_name

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from cute_dialect.algebra.values import IntTuple

_TYPE = re.compile(r'!cute\.memref<(!?[\w.]+), \w+(?:, align<\d+>)?(?:, (S<[-\d,]*>))?, "(.*)">')
MAX_SEARCHED = 1 << 22  # largest layout, in elements, that is searched for a coordinate


class Allocation(NamedTuple):
    """A tensor in shared or local memory: first byte, size in bytes, cute type as text (empty if unknown)."""

    name: str
    start: int
    size: int
    type: str = ""

    def element(self, offset: int) -> str:
        """Return `element (3, 17)` for a byte offset in the tensor, empty if unknown.

        >>> Allocation("sA", 0, 512, '!cute.memref<f16, smem, "(8,(4,8)):(1,(8,32))">').element(2 * 11)
        'element (3, (1, 0))'
        """
        found = _TYPE.fullmatch(self.type)
        bits = re.fullmatch(r"[a-z]+(\d+)\w*", found[1]) if found is not None else None
        if found is None or bits is None:
            return ""
        from cute_dialect.algebra import text  # late: start-up
        from cute_dialect.algebra.leaf import AlgebraError  # late: start-up
        from cute_dialect.algebra.values import ComposedLayout, Swizzle  # late: start-up

        try:
            layout = text.parse_composed_layout(found[3])
            byte = text.parse_swizzle(found[2])(offset) if found[2] else offset
            assert isinstance(byte, int)
            index = byte * 8 // int(bits[1])
            if isinstance(layout, ComposedLayout):
                if not isinstance(layout.inner, Swizzle) or not isinstance(layout.offset, int):
                    return ""
                plain = layout.inner(index)
                assert isinstance(plain, int)
                index, layout = plain - layout.offset, layout.outer
            linear = _search(_flat(layout.shape), _flat(layout.stride), index)
            if linear is not None and found[1] == "i8" and isinstance(layout.shape, int) and layout.stride == 1:
                return f"byte {linear}"  # Bytes that hold elements of any type.
            return "" if linear is None else f"element {_shown(_unravel(linear, layout.shape)[0])}"
        except (AlgebraError, TypeError):  # a layout with run-time values
            return ""


def _flat(tree: object) -> list[int]:
    if isinstance(tree, tuple):
        return [leaf for t in cast("tuple[object, ...]", tree) for leaf in _flat(t)]
    if type(tree) is not int:
        raise TypeError(tree)
    return [tree]


def _search(shape: Sequence[int], strides: Sequence[int], index: int) -> int | None:
    """Return the first coordinate, as a colexicographic number, that a layout maps to an index.

    None if there is none.
    """
    total = int(np.prod(shape, dtype=np.int64))
    if total > MAX_SEARCHED:
        return None
    at = np.zeros(1, np.int64)
    for n, d in zip(shape, strides):
        at = (np.arange(n, dtype=np.int64)[:, None] * d + at).reshape(-1)
    hits = np.flatnonzero(at == index)
    return int(hits[0]) if len(hits) else None


def _unravel(linear: int, shape: IntTuple) -> tuple[IntTuple, int]:
    """Return the coordinate in the shape's profile, and the remaining quotient."""
    if isinstance(shape, tuple):
        out: list[IntTuple] = []
        for s in shape:
            c, linear = _unravel(linear, s)
            out.append(c)
        return tuple(out), linear
    assert isinstance(shape, int)
    return linear % shape, linear // shape


def _shown(c: IntTuple) -> str:
    return f"({', '.join(map(_shown, c))})" if isinstance(c, tuple) else str(c)


class Allocations:
    """The tensors in one memory."""

    def __init__(self, known: Sequence[Allocation] = ()) -> None:
        self.known = tuple(sorted(known, key=lambda a: a.start))

    def at(self, offset: int) -> Allocation | None:
        """Return the tensor that contains the byte, None if there is none."""
        return next((a for a in self.known if a.start <= offset < a.start + a.size), None)

    def place(self, offset: int) -> str:
        """Return `, element (3, 17) of %sA` for a byte, or its distance past the preceding tensor.

        Empty if nothing is known.
        """
        found = self.at(offset)
        if found is not None:
            element = found.element(offset - found.start) or f"byte {offset - found.start}"
            return f", {element} of {found.name}"
        before = [a for a in self.known if a.start + a.size <= offset]
        if not before:
            return ""
        last = max(before, key=lambda a: a.start + a.size)
        return f", {offset - last.start - last.size} bytes past the end of {last.name}"

    def names(self, offset: int) -> str:
        """Return `element 2 of %barriers`, or the byte offset if the byte has no name."""
        return self.place(offset).removeprefix(", ") if self.at(offset) is not None else f"byte offset {offset}"


def shared_allocations(kernel: Operation, segments: Mapping[str, tuple[int, int]]) -> Allocations:
    """Return the tensors in shared memory, from the kernel's `cute.smem` and the `segments` (symbol → start, size)."""
    out: list[Allocation] = []
    described: set[str] = set()
    located = next((op for op in kernel.walk() if location_text(op)), kernel)  # Functions may have no location.
    listed: object = getattr(attr_of(kernel, "cute.smem"), "data", ())
    for number, entry in enumerate(cast("tuple[object, ...]", listed) if isinstance(listed, tuple) else ()):
        name, segment, text = (_field(entry, k, "data") for k in ("name", "segment", "type"))
        at, size = (_field(_field(entry, k, "value"), "", "data") for k in ("offset", "bytes"))
        if isinstance(segment, str) and isinstance(at, int) and isinstance(size, int) and segment in segments:
            described.add(segment)
            shown = value_name(str(name), located) if name else f"alloc_smem #{number}"
            out.append(Allocation(shown, segments[segment][0] + at, size, str(text)))
    plain = [Allocation(f"@{name}", *place) for name, place in segments.items() if name not in described]
    return Allocations(out + plain if len(segments) > 1 else out)


def _field(entry: object, key: str, what: str) -> object:
    """Return `entry.data[key].what`, or `entry.what` for an empty key. None if missing."""
    held: object = cast("Mapping[str, object]", getattr(entry, "data", {})).get(key) if key else entry
    return getattr(held, what, None)


def unwritten_cell(attribute: object, number: int, op: Operation) -> str:
    """Return `element (3, 0) of %acc` for register `number` of a `cute.unwritten` attribute, empty if unknown.

    ``op`` is an op that reads it.
    """
    name, text = _field(attribute, "name", "data"), _field(attribute, "type", "data")
    values = _field(attribute, "cells", "get_values")
    cells = list(cast("Sequence[int]", values())) if callable(values) else []
    if not isinstance(name, str) or not isinstance(text, str) or not number < len(cells):
        return ""
    found = _TYPE.fullmatch(text)
    bits = re.fullmatch(r"[a-z]+(\d+)\w*", found[1]) if found is not None else None
    shown = value_name(name, op) if name else "a register tensor"
    element = Allocation(shown, 0, 0, text).element(cells[number] * int(bits[1]) // 8) if bits is not None else ""
    return f"{element or f'register {cells[number]}'} of {shown}"


def local_allocation(op: Operation, start: int, size: int) -> Allocation:
    """Return the tensor in an `llvm.alloca`."""
    assert op_name(op) == "llvm.alloca"
    hint = op.results[0].name_hint
    text = getattr(attr_of(op, "cute.tensor"), "data", "")
    return Allocation(value_name(hint, op) if hint else "an alloca", start, size, text if isinstance(text, str) else "")


__all__ = ["Allocation", "Allocations", "local_allocation", "shared_allocations", "unwritten_cell"]
