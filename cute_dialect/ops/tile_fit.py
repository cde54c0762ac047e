"""Check that the tile of a tiled copy divides the tensors that it copies.

``partition_S`` of a tensor (24,128) by a tile (16,128) gives two tiles, of which the second ends 8 rows beyond the
tensor: without flags, threads read and write there.  Only what static extents show is told; a partition that was
sliced is judged by the modes that the slice left whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.tiling import logical_divide
from cute_dialect.algebra.trees import leaves
from cute_dialect.algebra.values import UNDERSCORE, ComposedLayout, layout_modes, raw_layout
from cute_dialect.atom_types import CopyAtomType, TiledCopyType
from cute_dialect.memory_types import MemRefType
from cute_dialect.ops.typed_values import payload_text
from cute_dialect.types import CoordType

PARTIAL = "partial"
"""The attribute of a copy that says that threads may pass the end of the tile."""


def _passed(tc: TiledCopyType, tensor: MemRefType, kept: Sequence[int] | None) -> list[int]:
    """The modes of a tensor whose end some thread passes; ``kept``: modes of the partition that a slice left whole."""
    layout = tensor.layout.outer if isinstance(tensor.layout, ComposedLayout) else tensor.layout
    modes = layout_modes(layout) if isinstance(layout.shape, tuple) else [layout]
    tiler = tc.data.tiler if isinstance(tc.data.tiler, tuple) else (tc.data.tiler,)
    found: list[int] = []
    for i, (mode, tile) in enumerate(zip(modes, tiler)):
        extent, wide = size(mode), size(raw_layout(tile, 1) if isinstance(tile, int) else tile)
        if not isinstance(extent, int) or all(stride == 0 for stride in leaves(mode.stride)):
            continue  # beyond a mode of stride 0 there is what is in it
        covered = size(logical_divide(raw_layout(extent, 1), tile))
        sliced = kept is not None and i + 1 not in kept and covered != wide
        if covered != extent and not sliced:
            found.append(i)
    return found


def check_whole(tc: Attribute, tensor: Attribute, what: str, kept: Sequence[int] | None = None) -> None:
    """Raise AlgebraError if static extents show that threads of a tiled copy without flags pass the tensor's end."""
    if not isinstance(tc, TiledCopyType) or not isinstance(tensor, MemRefType) or tensor.space == "rmem":
        return
    assert isinstance(tc.data.atom, CopyAtomType)
    if tc.data.atom.ONE_THREAD:
        return
    passed = _passed(tc, tensor, kept)
    if passed:
        from cute_dialect.ops.tile_copies import tile_extents

        layout = tensor.layout.outer if isinstance(tensor.layout, ComposedLayout) else tensor.layout
        raise AlgebraError(
            f"expected a {what} of which the tile {payload_text(tile_extents(tc.data.tiler))} of the tiled copy is a "
            f"whole part, got {payload_text(layout.shape)}: threads would pass the end of mode {passed[0]}; "
            f"'pred =' guards elements, {{{PARTIAL}}} says that this is wanted"
        )


def check_copied(op: Operation, sides: Sequence[tuple[SSAValue, str]]) -> None:
    """Raise AlgebraError if a side of a copy without flags is a partition of which :func:`check_whole` says so."""
    if PARTIAL in op.attributes:
        return
    for side, what in sides:
        kept: list[int] | None = None
        value: SSAValue = side
        while isinstance(value.owner, Operation) and value.owner.name == "cute.slice":
            value, coord = value.owner.operands
            now = _whole_modes(coord.type)
            kept = now if kept is None else [now[k] for k in kept if k < len(now)]
        owner = value.owner
        if isinstance(owner, Operation) and owner.name.startswith("cute.tiled.copy.partition_"):
            tc, tensor, _ = owner.operands
            check_whole(tc.type, tensor.type, what, kept)


def _whole_modes(coord: Attribute) -> list[int]:
    """The modes that a slice by such a coordinate leaves whole, in order."""
    assert isinstance(coord, CoordType)
    data = coord.data if isinstance(coord.data, tuple) else (coord.data,)
    return [i for i, part in enumerate(data) if part is UNDERSCORE]


__all__ = ["PARTIAL", "check_copied", "check_whole"]
