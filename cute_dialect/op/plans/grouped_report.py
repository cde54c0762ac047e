"""Explanation of a pointer-array GEMM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cute_dialect.op.explanations.gemm import Explanation, Line
from cute_dialect.op.problems.operands import Operands
from cute_dialect.op.problems.pointer_table import extents_of, sizes_of, tiles_of
from cute_dialect.op.select.descriptions import SchedulerMode
from cute_dialect.op.select.gemm_dispatch import here

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.plans.grouped import GroupedGemm

__all__ = ["ListExplanation", "explained_list"]


@dataclass(frozen=True, kw_only=True)
class ListExplanation(Explanation):
    """The kernel of GEMMs over lists."""

    products: int  # number of GEMMs
    smallest: tuple[int, int, int]  # minimum of each of M, N and K
    largest: tuple[int, int, int]  # maximum of each of M, N and K
    copied_at_once: tuple[int, ...]  # bytes per copy, one launch each; 1 for element-by-element copies
    tiles: int  # tiles of all GEMMs
    waves: float  # tiles per multiprocessor
    schedule: str  # scheduler of tiles, "host" or "device"
    launches: int  # launches, including the one that schedules tiles

    def _title(self) -> str:
        m, n, k = (f"{x}" if x == y else f"{x} to {y}" for x, y in zip(self.smallest, self.largest))
        return f"{self.operation} on {self.gpu}: {self.products} products, M {m}, N {n}, K {k}"

    def _layout(self) -> Iterator[Line]:
        schedulers = {
            "host": "the host, longest K first",
            "device": "the kernel, from prefix sums of tiles that a first one computes",
        }
        size = ", others ".join([f"{x} bytes at once" if x > 1 else "element by element" for x in self.copied_at_once])
        yield "copies", size or "none"
        yield "tiles", f"{self.tiles}, {self.waves:.3g} for each multiprocessor, found by {schedulers[self.schedule]}"
        yield "launches", f"{self.launches}"


def explained_list(operation: str, plan: GroupedGemm, found: Sequence[Operands]) -> ListExplanation:
    """Explain how a plan computes GEMMs over lists."""
    made = plan.operation_for(found)
    flipped = made.flipped
    extents = [extents_of(x) for x in found]
    sizes: list[Any] = list(zip(*extents))
    tiles = tiles_of([extents_of(x, flipped=flipped) for x in found], made.listed.tile)
    each = sizes_of(operation, made.listed, found, flipped=flipped, most=made.at_once)
    at_once = tuple(sorted({*each} - {0}, reverse=True))
    gpu, sms = here()
    host = made.precompute_mode is SchedulerMode.Host
    total = int(tiles.sum())
    why = "predicted to be the fastest pointer-array kernel"
    if plan.tile_description is not None:
        why = "set by the plan's tile_description"
    name = made.variant(size=(*at_once, 16)[0]).name
    return ListExplanation(
        operation=operation, gpu=gpu, kernel=name, why=why, flops=sum([2 * m * n * k for m, n, k in extents]),
        products=len(found), smallest=(min(sizes[0]), min(sizes[1]), min(sizes[2])),
        largest=(max(sizes[0]), max(sizes[1]), max(sizes[2])), copied_at_once=at_once, tiles=total, waves=total / sms,
        schedule=str(made.precompute_mode), launches=len(at_once) * (1 if host else 2),
    )  # fmt: skip
