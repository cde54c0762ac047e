"""Check that the tile of a tiled copy or tiled MMA divides the tensors that are copied.

``partition_S`` of a tensor (24,128) by a tile (16,128) gives two tiles, of which the second ends 8 rows past the
tensor: without flags, threads read and write there.  Only static extents are compared, and a slice by an index that is
known at run time only is taken to stay inside.
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
from cute_dialect.atom_types import CopyAtomType, TiledCopyType, TiledType
from cute_dialect.memory_types import MemRefType
from cute_dialect.ops.typed_values import payload_text
from cute_dialect.types import CoordType

PARTIAL = "partial"
"""The attribute of a copy that says that threads may pass the end of the tile."""
_PARTITIONS = ("cute.tiled.copy.partition_", "cute.tiled.mma.partition_")


class TilePassed(AlgebraError):
    """A copy without flags whose threads pass the end of a tensor; ``fact`` is the message without the cure."""

    def __init__(self, fact: str):
        super().__init__(f"{fact}; give 'pred =', or the attribute {{{PARTIAL}}} where this is intended")
        self.fact = fact


def _passed(tile: Sequence[int | Layout], tensor: MemRefType, sliced: Sequence[object]) -> list[int]:
    """Return the modes of a tensor whose end some thread passes.

    Args:
        tile: the tile's mode for each mode of the tensor.
        sliced: for each mode of the partition the index that a slice has selected, an underscore for all, and
            None where it is unknown; empty without slices.
    """
    layout = tensor.layout.outer if isinstance(tensor.layout, ComposedLayout) else tensor.layout
    modes = layout_modes(layout) if isinstance(layout.shape, tuple) else [layout]
    found: list[int] = []
    for i, (mode, part) in enumerate(zip(modes, tile)):
        extent, wide = size(mode), size(raw_layout(part, 1) if isinstance(part, int) else part)
        if not isinstance(extent, int) or all(stride == 0 for stride in leaves(mode.stride)):
            continue  # beyond a mode of stride 0 there is what is in it
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
    """Raise TilePassed if static extents show that threads without flags pass the end of a tensor.

    Args:
        tiled: the type of the tiled copy or tiled MMA that partitions the tensor.
        what: the tensor's role in the message.
        sliced: the selected index of each mode of the partition; see :func:`_passed`.
        operand: the operand of a tiled MMA.
    """
    if not isinstance(tiled, TiledType) or not isinstance(tensor, MemRefType) or tensor.space == "rmem":
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
            f"so threads pass the end of mode {passed[0]}"
        )


def check_copied(op: Operation, sides: Sequence[tuple[SSAValue, str]]) -> None:
    """Raise TilePassed if a side of a copy without flags is a partition of which :func:`check_whole` says so."""
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
    """Return the selected index of each mode of a tensor, whose slice by ``coord`` has the selected indices ``sliced``.

    ``(_,1,_)`` of which ``(_,2)`` is taken selects ``(_,1,2)``.
    """
    assert isinstance(coord, CoordType)
    data = coord.data if isinstance(coord.data, tuple) else (coord.data,)
    rest = iter(sliced)
    return [next(rest, UNDERSCORE) if part is UNDERSCORE else part if isinstance(part, int) else None for part in data]


__all__ = ["PARTIAL", "TilePassed", "check_copied", "check_whole"]
