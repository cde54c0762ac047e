"""``convert-cute-algo-to-arch`` of copies by a shuffle."""

from __future__ import annotations

from cute_dialect.cute_nvgpu.instruction_copy.tile import copy_by
from cute_dialect.cute_nvgpu.shuffle.ops import ShuffleOp
from cute_dialect.memory_types import CopyAtomType
from cute_dialect.ops.tiled import CopyOp


def copy(op: CopyOp, atom: CopyAtomType) -> None:
    """Lower a ``cute.copy`` by shuffles: one op a shuffle."""
    copy_by(ShuffleOp, op, atom)
