"""Explanations of ``op.distributed.all_reduce``, which :func:`cute_dialect.op.explain` returns.

>>> print(explain_all_reduce((16, 8192), None, None, 8, "bf16"))
all_reduce of 16 x 8192 bf16 over 8 ranks
  kernel    all-reduce-bf16-r8-one-512x1: one-shot: 262,144 bytes are at most 262,144 bytes for 8 ranks
  rows      32 of 4096 elements
  blocks    32 of 512 threads, resident at once
  sends     1.84 MB to other ranks, in 1 step
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# Arrays belong to any library.

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from cute_dialect.kernels.common.elements import BITS
from cute_dialect.op.errors import ArgumentError
from cute_dialect.op.explanations.gemm import Explanation, Line
from cute_dialect.op.explanations.rows import shape_and_type
from cute_dialect.op.select.all_reduce import AllReduceProblem, choose_all_reduce
from cute_dialect.runtime.call_options import index_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.signature_types import Array

_CALL = "all_reduce"
_ELEMENTS = ("f16", "bf16", "f32")


@dataclass(frozen=True, kw_only=True)
class AllReduceExplanation(Explanation):
    """The kernel of an all-reduce, its rows and blocks, and the bytes that a rank sends."""

    shape: tuple[int, ...]
    element: str
    ranks: int
    length: int  # elements of a row
    blocks: int
    threads: int
    steps: int  # of a row: signals between its first store and its result
    sent: int  # bytes that a rank sends to other ranks

    def _title(self) -> str:
        shape = " x ".join(map(str, self.shape))
        return f"{self.operation} of {shape} {self.element} over {self.ranks} rank{'s'[: self.ranks > 1]}"

    def _layout(self) -> Iterator[Line]:
        yield "rows", f"{-(-prod(self.shape) // self.length)} of {self.length} elements"
        yield "blocks", f"{self.blocks} of {self.threads} threads, resident at once"
        yield "sends", f"{self.sent / 1e6:.3g} MB to other ranks, in {self.steps} step{'s'[: self.steps > 1]}"


def explain_all_reduce(x: Array, residual: Array, weight: Array, ranks: object, element: str) -> AllReduceExplanation:
    """Return the explanation of an all-reduce.

    Args:
        x, residual, weight: arrays or shapes; None if absent.
        ranks: the number of ranks.
        element: type of operands that are given as shapes.

    Raises:
        OpError: if they are not supported.
    """
    n = index_of(ranks)
    if n is None or n < 1:
        raise ArgumentError("explain: all_reduce needs ranks, the number of ranks of the group, such as ranks=8")
    shape, element = shape_and_type(_CALL, "x", x, element, _ELEMENTS)
    columns = shape[-1] if weight is not None else 0
    size = prod(shape)
    c, length, blocks, why = choose_all_reduce(AllReduceProblem(element, n, size, columns, residual is not None))
    sent = size * BITS[element] // 8 * (n - 1)
    return AllReduceExplanation(
        operation=_CALL,
        kernel=c.name,
        why=why,
        shape=shape,
        element=element,
        ranks=n,
        length=length,
        blocks=blocks,
        threads=c.threads,
        steps=1 + c.two_shot,
        sent=sent * 2 // n if c.two_shot else sent,
    )
