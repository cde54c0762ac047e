"""Division of a ``cute.copy`` with a bulk atom into contiguous runs of bytes, and its checks.

Both sides are tensors of static shape in memory, without a swizzle. Their modes are split until both sides have the
same modes. Adjacent modes that are contiguous on both sides form a run; the other modes iterate over instructions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import gcd
from typing import TYPE_CHECKING, NamedTuple, cast

from xdsl.ir import Attribute

from cute_dialect.algebra.common_modes import Mode, common_modes
from cute_dialect.algebra.leaf import AlgebraError, Leaf, add, divisibility, mul
from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import AnyLayout, ComposedLayout, Layout
from cute_dialect.dialect.memory_types import MemRefType, element_bits
from cute_dialect.dialect.typed_values import payload_text
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from cute_dialect.cute_nvgpu.bulk.types import BulkAtomType

__all__ = ["DESTINATIONS", "UNIT_BITS", "Runs", "check_copy", "needs_barrier", "runs"]

UNIT_BITS = 128
"""Granularity of size and address of a bulk copy in bits (16 bytes)."""

DESTINATIONS = {
    AddressSpace.gmem: (AddressSpace.smem,),
    AddressSpace.smem: (AddressSpace.gmem, AddressSpace.dsmem),
}
"""Memory space of the source of a bulk copy -> those of the destination."""


class Runs(NamedTuple):
    """The runs of a copy: each instruction moves ``elements`` elements; ``loops`` are the loops over instructions, with
    the strides of source and destination.
    """

    elements: int
    loops: tuple[Mode, ...]

    def offsets(self) -> Iterator[tuple[Leaf, Leaf]]:
        """Yield the offset of each instruction in the source and in the destination, in elements."""
        for step in product(*[range(m.extent) for m in reversed(self.loops)]):
            yield cast("tuple[Leaf, Leaf]", tuple([_dot(step[::-1], self.loops, side) for side in (0, 1)]))


def _dot(step: Sequence[int], modes: Sequence[Mode], side: int) -> Leaf:
    total: Leaf = 0
    for i, mode in zip(step, modes):
        if i:
            moved = mul(mode.strides[side], i)
            total = moved if isinstance(total, int) and total == 0 else add(total, moved)
    return total


def needs_barrier(destination: MemRefType) -> bool:
    """Return True if an mbarrier counts the bytes of copies to this destination, False if they join a bulk group."""
    return destination.space.shared


_SPACES = {False: DESTINATIONS, True: {AddressSpace.smem: (AddressSpace.gmem,)}}
"""Whether the atom reduces -> source space -> allowed destination spaces."""


def check_copy(atom: BulkAtomType, operand_types: Sequence[Attribute]) -> None:
    """Raise AlgebraError unless the atom can copy between tensors of the types ``(_, source, destination)``."""
    if len(operand_types) != 3:
        raise AlgebraError(
            "a copy with a bulk atom takes no predicate tensor; "
            "set one flag for all elements with cute.atom.set_value 'pred'"
        )
    source, destination = operand_types[1:]
    for i, t in enumerate((source, destination), 1):
        if not isinstance(t, MemRefType):
            raise AlgebraError(f"operand #{i} must be a !cute.memref, got {t}")
        if t.element != atom.element:
            raise AlgebraError(f"operand #{i} must have elements of the atom's {atom.element}, got {t.element}")
        if isinstance(t.layout, ComposedLayout) or t.data.ptr.swizzle is not None:
            raise AlgebraError(f"expected operand #{i} without swizzle: bulk copies move plain runs of bytes, got {t}")
    assert isinstance(source, MemRefType) and isinstance(destination, MemRefType)
    spaces = _SPACES[bool(atom.data.reduction)]
    if destination.space not in spaces.get(source.space, ()):
        pairs = ", ".join(f"{a} to {b}" for a, to in spaces.items() for b in to)
        raise AlgebraError(
            f"expected a copy that {atom.name} supports ({pairs}), got {source.space} to {destination.space}"
        )
    runs(atom, (source, destination), (source.layout, destination.layout))


def runs(atom: BulkAtomType, types: tuple[MemRefType, MemRefType], layouts: tuple[AnyLayout, AnyLayout]) -> Runs:
    """Return the runs of a copy. ``layouts`` may have leaves bound to run-time values.

    Raises AlgebraError that names the invalid side.
    """
    names = ("source", "destination")
    plain: list[Layout] = []
    for what, layout in zip(names, layouts):
        assert isinstance(layout, Layout)
        if not is_static(layout.shape):
            raise AlgebraError(f"expected a static shape of the {what}, got {payload_text(layout.shape)}")
        plain.append(layout)
    bits = element_bits(atom.element)
    rest = [m for m in common_modes(plain) if m.strides[1] != 0]  # Stride 0 in the destination: write once.
    limit, width = atom.data.bits // bits, 1
    while not limit or width < limit:
        at = next((i for i, m in enumerate(rest) if m.strides == (width, width)), None)
        if at is None:
            break
        mode = rest.pop(at)
        take = gcd(mode.extent, limit // width) if limit else mode.extent
        if take < mode.extent:
            rest.insert(at, Mode(mode.extent // take, (width * take, width * take)))
        width *= take
        if take < mode.extent:
            break
    shown = " and ".join(payload_text(layout) for layout in plain)
    if limit and width != limit:
        raise AlgebraError(
            f"expected runs of {limit} elements, the {atom.data.bits} bits of the atom, got {width} contiguous in both "
            f"{shown}"
        )
    if width * bits % UNIT_BITS:
        raise AlgebraError(
            f"expected runs of a multiple of 16 bytes, got {width} elements of {atom.element} that are contiguous in "
            f"both {shown}"
        )
    unit = UNIT_BITS // bits
    for side, (what, t, layout) in enumerate(zip(names, types, plain)):
        if t.alignment % 16:
            raise AlgebraError(f"expected a {what} aligned to 16 bytes for a bulk copy, got {t.alignment} bytes in {t}")
        if any(divisibility(m.strides[side]) % unit for m in rest):
            raise AlgebraError(
                f"expected runs of the {what} that begin at multiples of {unit} elements (16 bytes), got "
                f"{payload_text(layout)}"
            )
    return Runs(width, tuple(rest))
