"""Operations of several GPUs: ``op.distributed.all_reduce(x)``."""

from __future__ import annotations

from cute_dialect.op.execute.local_group import LocalGroup as LocalGroup
from cute_dialect.op.functions.all_reduce import NormedSum as NormedSum
from cute_dialect.op.functions.all_reduce import all_reduce as all_reduce
from cute_dialect.op.functions.all_reduce import check as check
from cute_dialect.op.functions.all_reduce import reset as reset

__all__ = ["LocalGroup", "NormedSum", "all_reduce", "check", "reset"]
