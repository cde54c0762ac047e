"""Planning of ``cute.copy``: number, width and predicates of the accesses.

Both sides are layouts over the same coordinates.  They are split into common modes ``(extent, strides)``, so that the
copy is a loop nest in any order of modes.  Modes that are contiguous on every memory side form the vector.  Its width
is limited by the atom (or 128 bits), by the alignment of the pointers, and by the divisibility of the other strides;
registers allow any order.

Worked example, a thread of the elementwise kernel: source ``((1,(4,4)),1,1):((0,(1,?{div=4})),0,0)`` of f32 aligned to
16 bytes, destination ``((1,(4,4)),1,1):((0,(1,4)),0,0)`` in registers.  Common modes: ``4:(1,1)`` and ``4:(?,4)``.  The
first is contiguous in memory, 4 elements are 16 bytes, the other stride is a multiple of 4: four accesses of 128 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import gcd, prod
from typing import NamedTuple

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf, add, divisibility, mul
from cute_dialect.algebra.values import ComposedLayout, Layout, Payload, Swizzle, layout_modes
from cute_dialect.algebra.vectors import Mode, common_modes
from cute_dialect.dialect.memory_types import MemRefType, element_bits

MAX_BITS = 128
"""Widest access of a thread (PTX ISA, "Vectors": up to 128 bits for ``ld``/``st`` before sm_100)."""

MAX_OPS = 1 << 15
"""Limit on the ops that one op may be unrolled to.  More would take minutes, and usually mean a missing loop."""


def too_many() -> AlgebraError:
    """Return the error for an op that would become more than :data:`MAX_OPS` ops."""
    return AlgebraError(
        f"it is unrolled to more than {MAX_OPS} ops per thread: write a loop over parts of its tensors, or use "
        "more threads"
    )


class Side(NamedTuple):
    """A side of the copy: its type, and its layout with bound leaves (of a composed layout, the coordinate part)."""

    type: MemRefType
    layout: Layout
    composed: ComposedLayout | None = None

    def place(self, offset: Leaf) -> Leaf:
        """Apply the swizzle of a composed layout to the offset of an element."""
        if self.composed is None:
            return offset
        swizzle, start = self.composed.inner, self.composed.offset
        assert isinstance(swizzle, Swizzle) and isinstance(start, int | Dyn)
        return swizzle(_plus(start, offset))

    @property
    def in_registers(self) -> bool:
        """True if the elements are registers, which need no address."""
        return self.type.space.per_thread


class Plan(NamedTuple):
    """A plan of a copy: ``vector`` are the modes of one access, ``loops`` the others, fastest first."""

    vector: tuple[Mode, ...]
    loops: tuple[Mode, ...]

    @property
    def width(self) -> int:
        """Number of elements per access."""
        return prod(m.extent for m in self.vector)

    def steps(self) -> Iterator[tuple[int, ...]]:
        """Yield the accesses as indices into ``loops``.  Raises AlgebraError if there are too many to unroll."""
        if prod(m.extent for m in self.loops) > MAX_OPS:
            raise too_many()
        for index in product(*[range(m.extent) for m in reversed(self.loops)]):
            yield index[::-1]

    def offset(self, step: Sequence[int], side: int) -> Leaf:
        """Return the offset of an access on a side, in elements."""
        return _dot(step, self.loops, side)

    def lanes(self, side: int) -> list[Leaf]:
        """Return the offsets of the elements of an access on a side, relative to its first element."""
        steps = product(*[range(m.extent) for m in reversed(self.vector)])
        return [_dot(step[::-1], self.vector, side) for step in steps]


def _dot(step: Sequence[int], modes: Sequence[Mode], side: int) -> Leaf:
    total: Leaf = 0
    for i, mode in zip(step, modes):
        total = _plus(total, mul(mode.strides[side], i))
    return total


def _plus(a: Leaf, b: Leaf) -> Leaf:
    if isinstance(a, int) and a == 0:
        return b
    if isinstance(b, int) and b == 0:
        return a
    return add(a, b)


def first_mode(layout: Layout) -> Layout:
    """Return mode 0 of a layout; a scalar layout is its own mode 0."""
    return layout_modes(layout)[0]


def plan(sides: Sequence[Side], limit_bits: int) -> Plan:
    """Plan the widest accesses that all memory sides allow.  Raises AlgebraError for incompatible layouts.

    An access has one offset per side, followed by the linear coordinate of its element.
    """
    layouts = [s.layout for s in sides] + [Layout(size(sides[0].layout.shape), 1)]
    # A repeating destination (stride 0) is written once.
    modes = [m for m in common_modes(layouts) if not _is(m.strides[1], 0)]
    memory = [i for i, s in enumerate(sides) if not s.in_registers]
    bits = element_bits(sides[0].type.element)
    if not memory or bits >= limit_bits:
        return Plan((), tuple(modes))
    vector: list[Mode] = []
    rest = list(modes)
    width, limit = 1, limit_bits // bits
    while width < limit:
        at = next((i for i, m in enumerate(rest) if all(_is(m.strides[k], width) for k in memory)), None)
        if at is None:
            break
        mode = rest.pop(at)
        take = _power_of_two(gcd(mode.extent, limit // width))
        take = _provable(sides, memory, [*rest, *_tail(mode, take)], bits, width, take)
        if take < mode.extent:
            rest[at:at] = _tail(mode, take)
        if take == 1:
            break
        vector.append(Mode(take, mode.strides))
        width *= take
        if take < mode.extent:
            break
    return Plan(tuple(vector), tuple(rest))


def _tail(mode: Mode, take: int) -> list[Mode]:
    if take == mode.extent:
        return []
    return [Mode(mode.extent // take, tuple(mul(d, take) for d in mode.strides))] if take > 1 else [mode]


def _provable(
    sides: Sequence[Side], memory: Sequence[int], rest: Sequence[Mode], bits: int, width: int, take: int
) -> int:
    """Return the largest power of two up to ``take`` for which all memory sides align ``width * take`` elements."""
    while take > 1:
        n = width * take
        n_bytes = n * bits // 8
        if all(
            sides[k].type.alignment % n_bytes == 0
            and _swizzle_allows(sides[k], n, n_bytes)
            and all(divisibility(m.strides[k]) % n == 0 for m in rest)
            for k in memory
        ):
            return take
        take //= 2
    return 1


def _swizzle_allows(side: Side, n: int, n_bytes: int) -> bool:
    # An access must lie within one group of elements that the swizzle keeps contiguous.
    if side.composed is not None:
        inner, start = side.composed.inner, side.composed.offset
        assert isinstance(inner, Swizzle) and isinstance(start, int | Dyn)
        if n > 1 << inner.base or divisibility(start) % n:
            return False
    swizzle = side.type.data.ptr.swizzle
    return swizzle is None or n_bytes <= 1 << swizzle.base


def _power_of_two(n: int) -> int:
    return n & -n


def _is(leaf: Leaf, n: int) -> bool:
    return isinstance(leaf, int) and leaf == n


def side_of(t: MemRefType, layout: Payload) -> Side:
    """Return a side of a copy with this layout.

    Raises AlgebraError for a composed layout other than a swizzle of integers.
    """
    if isinstance(layout, ComposedLayout):
        if not (isinstance(layout.inner, Swizzle) and isinstance(layout.offset, int | Dyn)):
            raise AlgebraError(f"expected a plain or swizzled layout, got the composed layout {layout}")
        return Side(t, layout.outer, layout)
    return Side(t, plain_layout(layout))


def plain_layout(layout: Payload) -> Layout:
    """Return a plain layout unchanged.  Raises AlgebraError for a composed one."""
    if isinstance(layout, ComposedLayout):
        raise AlgebraError(f"expected a plain layout, got the composed layout {layout}")
    assert isinstance(layout, Layout)
    return layout
