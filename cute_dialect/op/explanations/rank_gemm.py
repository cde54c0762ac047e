"""Explanations of GEMMs of several ranks, which :func:`cute_dialect.op.explain` returns.

>>> print(explain_rank_gemm("all_gather_matmul", (1024, 4096), (4096, 4096), "bf16", ranks=8))
all_gather_matmul of 1024 x 4096 bf16 per rank and 4096 x 4096 over 8 ranks
  kernel    gather-r8-bf16-kn-128x256x64-s4c2d-132: one kernel sends and multiplies
  predicted 367.3 us, 748 TFLOP/s
  blocks    128 of 384 threads, resident at once
  sends     58.7 MB to other ranks
  times     NCCL 262 us, GEMM 360 us, one after the other 622 us
  bound     360.1 us: the GEMM
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# Arrays belong to any library.

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cute_dialect.op.errors import ArgumentError, ShapeError
from cute_dialect.op.explanations.gemm import Explanation, Line
from cute_dialect.op.explanations.rows import shape_and_type
from cute_dialect.op.select.rank_gemm import TOPOLOGIES, RankGemmProblem, Times, choose_rank_gemm, predict
from cute_dialect.runtime.call_options import index_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.signature_types import Array

_MOST_RANKS = 1024
"""Largest number of ranks of a prediction."""

_ELEMENTS = ("f16", "bf16")


@dataclass(frozen=True, kw_only=True)
class RankGemmExplanation(Explanation):
    """The kernel of a GEMM of several ranks, what a rank sends, and predicted times."""

    problem: RankGemmProblem
    a: tuple[int, ...]  # shape on a rank
    b: tuple[int, ...]
    topology: str
    blocks: int
    threads: int
    times: Times

    def _title(self) -> str:
        p, (a, b) = self.problem, (" x ".join(map(str, shape)) for shape in (self.a, self.b))
        return f"{self.operation} of {a} {p.element} per rank and {b} over {p.ranks} rank{'s'[: p.ranks > 1]}"

    def _occupancy(self) -> Iterator[Line]:
        yield "blocks", f"{self.blocks} of {self.threads} threads, resident at once"
        yield "sends", f"{self.problem.sent / 1e6:.3g} MB to other ranks"
        t, gpus = self.times, TOPOLOGIES[self.topology]
        times = f"NCCL {t.transfer * 1e6:.0f} us, GEMM {t.gemm * 1e6:.0f} us, "
        yield "times", f"{times}one after the other {t.separate * 1e6:.0f} us"
        if self.problem.ranks > gpus:
            yield "note", f"ranks of several hosts: kernels reach {gpus} GPUs only, so this call is refused"

    def _limits(self) -> str:
        return "the GEMM" if self.times.ideal == self.times.gemm else "the transfer"


def explain_rank_gemm(
    call: str,
    a: Array,
    b: Array,
    element: str,
    *,
    ranks: object = None,
    topology: str = "h200-dgx",
    op: str = "sum",
    return_a: bool = False,
) -> RankGemmExplanation:
    """Return the explanation of a GEMM of several ranks.

    Args:
        call: the name of the function.
        a, b: arrays or shapes of a rank.
        element: type of operands that are given as shapes.
        ranks: the number of ranks.
        topology: a key of ``TOPOLOGIES``.
        op, return_a: as in the functions.

    Raises:
        OpError: if they are not supported.
    """
    n = index_of(ranks)
    if n is None or not 1 <= n <= _MOST_RANKS:
        raise ArgumentError(f"explain: {call} needs ranks, a number from 1 to {_MOST_RANKS}, such as ranks=8")
    if topology not in tuple(TOPOLOGIES):
        raise ArgumentError(f"explain: topology is {topology!r}; pass one of {', '.join(TOPOLOGIES)}")
    (shape, element), (other, _) = (shape_and_type(call, x, t, element, _ELEMENTS) for x, t in (("a", a), ("b", b)))
    if len(shape) != 2 or len(other) != 2 or shape[1] != other[0]:
        raise ShapeError(f"{call}: a has shape {shape} and b {other}; pass matrices (M, K) and (K, N)")
    gathers = call == "all_gather_matmul"
    if call == "matmul_reduce_scatter" and shape[0] % n:
        raise ShapeError(f"{call}: a has {shape[0]} rows; pass a multiple of {n}, the number of ranks")
    rows = shape[0] * n if gathers else shape[0]
    p = RankGemmProblem(call, element, n, rows, other[1], shape[1], average=op == "avg", returns_a=return_a)
    config, _, why = choose_rank_gemm(p)
    m, columns, _ = config.base.tile
    tiles = -(-rows // p.matrices // (m * config.base.cluster_m)) * -(-other[1] // columns) * p.matrices
    waves = -(-tiles * config.base.cluster // config.base.at_once)
    times = predict(p, TOPOLOGIES[topology])
    return RankGemmExplanation(
        operation=call,
        kernel=config.name,
        why=why,
        microseconds=times.fused * 1e6,
        flops=p.flops,
        bound=times.ideal * 1e6,
        problem=p,
        a=shape,
        b=other,
        topology=topology,
        blocks=-(-tiles // max(waves, 1)) * config.base.cluster,
        threads=config.base.threads,
        times=times,
    )
