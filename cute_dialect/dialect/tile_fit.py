"""Bounds check: the tile of a tiled copy or tiled MMA must divide the copied tensors.

``partition_S`` of a tensor (24,128) by a tile (16,128) gives two tiles. The second ends 8 rows past the end of the
tensor, so an unpredicated copy accesses memory out of bounds. Only static extents are compared. A slice by a dynamic
index is assumed to be in bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.tiling import logical_divide
from cute_dialect.algebra.trees import leaves
from cute_dialect.algebra.values import UNDERSCORE, ComposedLayout, Layout, layout_modes, raw_layout
from cute_dialect.dialect.atom_types import CopyAtomType, TiledCopyType, TiledType
from cute_dialect.dialect.memory_types import MemRefType
from cute_dialect.dialect.typed_values import payload_text
from cute_dialect.dialect.types import CoordType

PARTIAL = "partial"
"""Attribute of a copy whose threads may access elements past the end of the tensor."""
_PARTITIONS = ("cute.tiled.copy.partition_", "cute.tiled.mma.partition_")


class TilePassed(AlgebraError):
    """Threads of an unpredicated copy access a tensor past its end; ``fact`` is the message without the advice."""

    def __init__(self, fact: str):
        super().__init__(f"{fact}; pass 'pred =', or set the attribute {{{PARTIAL}}} if this is intended")
        self.fact = fact


def _passed(tile: Sequence[int | Layout], tensor: MemRefType, sliced: Sequence[object]) -> list[int]:
    """Return the modes of a tensor that some thread accesses past the end.

    Args:
        tile: the tile's mode for each mode of the tensor.
        sliced: for each mode of the partition the index that a slice selects, an underscore for all indices, or
            None for an unknown index. Empty without slices.
    """
    layout = tensor.layout.outer if isinstance(tensor.layout, ComposedLayout) else tensor.layout
    modes = layout_modes(layout) if isinstance(layout.shape, tuple) else [layout]
    found: list[int] = []
    for i, (mode, part) in enumerate(zip(modes, tile)):
        extent, wide = size(mode), size(raw_layout(part, 1) if isinstance(part, int) else part)
        if not isinstance(extent, int) or all(stride == 0 for stride in leaves(mode.stride)):
            continue  # All elements of a mode of stride 0 are the same.
        covered = size(logical_divide(raw_layout(extent, 1), part))
        if covered == extent:
            continue
        assert isinstance(covered, int) and isinstance(wide, int)
        selected = sliced[i + 1] if i + 1 < len(sliced) else UNDERSCORE
        if selected is UNDERSCORE or covered == wide or selected == covered // wide - 1:
            found.append(i)
    return found


def check_whole(
    tiled: Attribute, tensor: Attribute, what: str, sliced: Sequence[object] = (), operand: str = "S"
) -> None:
    """Raise TilePassed if static extents show that an unpredicated copy accesses a tensor past its end.

    Args:
        tiled: the type of the tiled copy or tiled MMA that partitions the tensor.
        what: the tensor's role in the message.
        sliced: the selected index of each mode of the partition; see :func:`_passed`.
        operand: the operand of a tiled MMA.
    """
    if not isinstance(tiled, TiledType) or not isinstance(tensor, MemRefType) or tensor.space.per_thread:
        return
    if isinstance(tiled.atom, CopyAtomType) and tiled.atom.ONE_THREAD:
        return
    tile = tiled.tile_of(operand)
    passed = _passed(tile, tensor, sliced)
    if passed:
        layout = tensor.layout.outer if isinstance(tensor.layout, ComposedLayout) else tensor.layout
        extents = tuple([part if isinstance(part, int) else cast("int", size(part)) for part in tile])
        kind = "tiled copy" if isinstance(tiled, TiledCopyType) else "tiled MMA"
        raise TilePassed(
            f"the tile {payload_text(extents)} of the {kind} does not divide the {what} {payload_text(layout.shape)}, "
            f"so threads access elements past the end of mode {passed[0]}"
        )


def check_copied(op: Operation, sides: Sequence[tuple[SSAValue, str]]) -> None:
    """Raise TilePassed if a side of an unpredicated copy is a partition that fails :func:`check_whole`."""
    if PARTIAL in op.attributes:
        return
    for side, what in sides:
        sliced: list[object] = []
        value: SSAValue = side
        while isinstance(value.owner, Operation):
            if value.owner.name == "cute.slice":
                value, coord = value.owner.operands
                sliced = _before_slice(coord.type, sliced)
            elif value.owner.name == "cute.group_modes" and not sliced:
                value = value.owner.operands[0]
            else:
                break
        owner = value.owner
        if isinstance(owner, Operation) and owner.name.startswith(_PARTITIONS) and len(owner.operands) == 3:
            tiled, tensor, _ = owner.operands
            check_whole(tiled.type, tensor.type, what, sliced, owner.name[-1])


def _before_slice(coord: Attribute, sliced: Sequence[object]) -> list[object]:
    """Combine a slice by ``coord`` with a later slice ``sliced`` of its result.

    For example, slicing by ``(_,1,_)`` and then by ``(_,2)`` selects ``(_,1,2)``.
    """
    assert isinstance(coord, CoordType)
    data = coord.data if isinstance(coord.data, tuple) else (coord.data,)
    rest = iter(sliced)
    return [next(rest, UNDERSCORE) if part is UNDERSCORE else part if isinstance(part, int) else None for part in data]


__all__ = ["PARTIAL", "TilePassed", "check_copied", "check_whole"]
