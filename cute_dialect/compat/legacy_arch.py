"""``cute.arch`` with names from earlier versions of CuTe DSL, for older programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cute_dialect.lang import arch
from cute_dialect.lang.arch import mbarrier_arrive_and_expect_tx as mbarrier_init_tx_bytes
from cute_dialect.lang.arch import mbarrier_init as mbarrier_init_arrive_cnt
from cute_dialect.lang.values.dtypes import Int32

__all__ = ["calc_packed_f32x2_op", "mbarrier_init_arrive_cnt", "mbarrier_init_tx_bytes", "vote_ballot_sync"]


def calc_packed_f32x2_op(
    src_a: Any, src_b: Any, src_c: Any, calc_func: Callable[..., object], *, rnd: object = None, ftz: bool = False
) -> object:
    """Apply a function of :mod:`cute_dialect.compat.mlir.llvm` to pairs of Float32."""
    return calc_func(*(p for p in (src_a, src_b, src_c) if p is not None), rnd=rnd, ftz=ftz)


def vote_ballot_sync(pred: Any, mask: int = arch.FULL_MASK) -> Any:
    """Return one bit per thread of the warp, as an Int32 like in CuTe DSL."""
    return arch.vote_ballot_sync(pred, mask).bitcast(Int32)


def __getattr__(name: str) -> Any:
    return getattr(arch, name)
