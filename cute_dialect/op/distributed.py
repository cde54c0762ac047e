"""Operations of several GPUs: ``op.distributed.all_reduce(x)``, ``op.distributed.all_gather_matmul(a, b)`` …"""

from __future__ import annotations

from cute_dialect.op.execute.local_group import LocalGroup as LocalGroup
from cute_dialect.op.functions.all_reduce import NormedSum as NormedSum
from cute_dialect.op.functions.all_reduce import all_reduce as all_reduce
from cute_dialect.op.functions.all_reduce import check as check
from cute_dialect.op.functions.all_reduce import reset as reset
from cute_dialect.op.functions.rank_gemm import GatheredProduct as GatheredProduct
from cute_dialect.op.functions.rank_gemm import all_gather_matmul as all_gather_matmul
from cute_dialect.op.functions.rank_gemm import matmul_all_reduce as matmul_all_reduce
from cute_dialect.op.functions.rank_gemm import matmul_reduce_scatter as matmul_reduce_scatter
from cute_dialect.op.functions.symm_mem import install as install
from cute_dialect.op.functions.symm_mem import uninstall as uninstall

__all__ = [
    "GatheredProduct",
    "LocalGroup",
    "NormedSum",
    "all_gather_matmul",
    "all_reduce",
    "check",
    "install",
    "matmul_all_reduce",
    "matmul_reduce_scatter",
    "reset",
    "uninstall",
]
