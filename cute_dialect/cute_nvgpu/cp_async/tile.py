"""``convert-cute-algo-to-arch`` of copies by ``cp.async``."""

from __future__ import annotations

from cute_dialect.cute_nvgpu.cp_async.ops import CpAsyncOp
from cute_dialect.cute_nvgpu.instruction_copy.tile import copy_by
from cute_dialect.memory_types import CopyAtomType
from cute_dialect.ops.tiled import CopyOp


def copy(op: CopyOp, atom: CopyAtomType) -> None:
    """Lower a ``cute.copy`` by ``cp.async``: one op an instruction."""
    copy_by(CpAsyncOp, op, atom)
