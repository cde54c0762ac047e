"""All-reduce of several GPUs in one kernel, optionally with a residual and RMSNorm.

The vector is divided into rows; with a norm these are the rows of the matrix.  Blocks take rows in turn.

- *One-shot*: a block sends a row to all ranks, which all add the rows of all ranks.  One step, ``ranks`` rows out.
- *Two-shot*: a block has ``ranks`` rows at a time.  It sends each to the rank of its number, which adds the rows of all
  ranks, and sends the sum to all ranks.  Two steps, ``2 ranks`` rows out for ``ranks`` rows of the vector.

Rows are added in f32 in the order of the ranks, then the residual, and rounded once.  All ranks, and both algorithms,
therefore give the same bits.  The norm is that of the rounded sum.  A two-shot rank adds its own residual to the rows
that it sums, so residuals must be equal on all ranks.

    launch(Rows(x, residual, weight, total, normed, length, eps), memory, caller, blocks, config)
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

from typing import NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number, vector_width
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.distributed.exchange import (
    Caller,
    Exchange,
    RankMemory,
    begin,
    end,
    exchange_of,
    exchange_types,
    line,
    meet,
    vector_at,
)

__all__ = ["AllReduceConfig", "Rows", "all_reduce_text", "launch"]


class AllReduceConfig(NamedTuple):
    """Configuration of the kernel.

    >>> AllReduceConfig("f16", 4, units=3, two_shot=True, norm=True, residual=True).name
    'all-reduce-f16-r4-two-512x3-rn'
    """

    element: str = "bf16"
    ranks: int = 2
    threads: int = 512
    units: int = 2  # vectors of a row per thread
    two_shot: bool = False
    vectors: bool = True  # rows consist of whole aligned vectors of 16 bytes, except for the end of the last row
    residual: bool = False
    norm: bool = False
    cooperative: bool = True  # False if ranks share a GPU, whose cooperative launches may not overlap

    @property
    def width(self) -> int:
        """Elements of a vector."""
        return vector_width(self.element) if self.vectors else 1

    @property
    def is_whole(self) -> bool:
        """Return True if rows consist of whole vectors."""
        return self.norm or self.width == 1

    @property
    def capacity(self) -> int:
        """The greatest length of a row."""
        return self.threads * self.units * self.width

    @property
    def name(self) -> str:
        """Unique name of the kernel."""
        takes = "r" * self.residual + "n" * self.norm + "s" * (not self.cooperative)
        kind = f"{'two' if self.two_shot else 'one'}-{self.threads}x{self.units}{'' if self.vectors else 'e'}"
        return f"all-reduce-{self.element}-r{self.ranks}-{kind}{'-' * bool(takes)}{takes}"


class Rows(NamedTuple):
    """The vectors of a call, as rows of ``length`` elements; the last row may be shorter."""

    x: cute.Tensor
    residual: cute.Tensor | None
    weight: cute.Tensor | None
    total: cute.Tensor
    normed: cute.Tensor | None
    length: cute.Int32
    eps: cute.Float32 | None


def _span(v: Rows, row: cute.Int32) -> tuple[cute.Int32, cute.Int32]:
    """Return the first element and the length of a row."""
    first = row * v.length
    return first, cute.min(v.length, cute.size(v.x) - first)


def _unit(c: AllReduceConfig, i: int) -> cute.Int32:
    """Return the column of this thread's i-th vector."""
    return (i * c.threads + cute.arch.thread_idx().x) * c.width


def _fetch(t: cute.Tensor, at: cute.Int32, count: cute.Int32, c: AllReduceConfig) -> cute.Tensor:
    """Load a vector of which the first ``count`` elements exist, one at least. The others are 0."""
    held = cute.make_rmem_tensor(c.width, t.element_type)
    if c.is_whole or count >= c.width:
        cute.autovec_copy(vector_at(t, at, c.width), held)
    else:
        held.fill(0)
        held[0] = t[at]
        for i in cute.range_constexpr(1, c.width - 1):
            if i < count:
                held[i] = t[at + i]
    return held


def _put(held: cute.Tensor, t: cute.Tensor, at: cute.Int32, count: cute.Int32, c: AllReduceConfig) -> None:
    """Store the first ``count`` elements of a vector, one at least."""
    if c.is_whole or count >= c.width:
        cute.autovec_copy(held, vector_at(t, at, c.width))
    else:
        t[at] = held[0]
        for i in cute.range_constexpr(1, c.width - 1):
            if i < count:
                t[at + i] = held[i]


def _rounded(values: cute.Vector, t: cute.Tensor, c: AllReduceConfig) -> cute.Tensor:
    """Return a vector in the element type of a tensor."""
    held = cute.make_rmem_tensor(c.width, t.element_type)
    held.store(values.to(t.element_type))
    return held


def _sum(v: Rows, e: Exchange, step: cute.Int64, row: cute.Int32, i: int, c: AllReduceConfig) -> cute.Tensor:
    """Add the vectors of all ranks in staging memory, and the residual."""
    first, length = _span(v, row)
    column, here = _unit(c, i), e.staging.local
    total = cute.full(c.width, 0.0, cute.Float32)
    for rank in cute.range_constexpr(c.ranks):
        wide = _fetch(here[line(e, step, rank), None], column, length - column, c).load().to(cute.Float32)
        total = wide if rank == 0 else total + wide
    if v.residual is not None:
        total = total + _fetch(v.residual, first + column, length - column, c).load().to(cute.Float32)
    return _rounded(total, v.x, c)


def _send(held: cute.Tensor, e: Exchange, step: cute.Int64, to: cute.Int32, column: cute.Int32, c: AllReduceConfig):
    """Store a vector into the slot of this rank on a rank."""
    there = e.staging.peer(to)[line(e, step, e.staging.rank), None]
    cute.autovec_copy(held, vector_at(there, column, c.width))


def _send_to_all(held: cute.Tensor, e: Exchange, step: cute.Int64, column: cute.Int32, c: AllReduceConfig) -> None:
    """Store a vector into the slot of this rank on all ranks. Each rank begins with another one."""
    for distance in cute.range_constexpr(c.ranks):
        _send(held, e, step, (e.staging.rank + distance) % c.ranks, column, c)


def _finish(v: Rows, row: cute.Int32, sums: list[cute.Tensor], side: int, partials: cute.Tensor, c: AllReduceConfig):
    """Store this thread's sums of a row, and their norm.

    Args:
        sums: a vector of each unit.
        side: half of ``partials``; rows without a barrier in between use the halves in turn.
    """
    first, length = _span(v, row)
    square = cute.Float32(0.0)
    for i in cute.range_constexpr(c.units):
        column = _unit(c, i)
        if column < length:
            _put(sums[i], v.total, first + column, length - column, c)
            if c.norm:
                wide = sums[i].load().to(cute.Float32)
                square += (wide * wide).reduce(lambda x, y: x + y)
    if c.norm:
        warp, warps = cute.arch.thread_idx().x // 32, c.threads // 32
        square = cute.arch.warp_reduction_sum(square)
        if cute.arch.thread_idx().x % 32 == 0:
            partials[side * warps + warp] = square
        cute.arch.sync_threads()
        of_row = cute.Float32(0.0)
        for i in cute.range_constexpr(warps):
            of_row += partials[side * warps + i]
        by = cute.arch.rsqrt_approx(of_row / v.length.to(cute.Float32) + v.eps)
        for i in cute.range_constexpr(c.units):
            column = _unit(c, i)
            if column < length:
                found = sums[i].load().to(cute.Float32) * by
                found = found * _fetch(v.weight, column, length - column, c).load().to(cute.Float32)
                _put(_rounded(found, v.x, c), v.normed, first + column, length - column, c)


@cute.kernel(name="one_shot")
def one_shot(v: Rows, e: Exchange, config: cute.Constexpr[AllReduceConfig]):
    c, grid = config, cute.arch.grid_dim().x
    partials = cute.smem_tensor(cute.Float32, cute.make_layout(2 * c.threads // 32))
    step, is_usable, failed = begin(e)
    rows = cute.ceil_div(cute.size(v.x), v.length)
    for row in range(cute.arch.block_idx().x, rows, grid):
        if is_usable:
            step += 1
            first, length = _span(v, row)
            for i in cute.range_constexpr(c.units):
                column = _unit(c, i)
                if column < length:
                    _send_to_all(_fetch(v.x, first + column, length - column, c), e, step, column, c)
            is_usable = meet(e, step, failed)
        if is_usable:
            _, length = _span(v, row)
            sums = [cute.make_rmem_tensor(c.width, v.x.element_type) for _ in range(c.units)]
            for i in cute.range_constexpr(c.units):
                sums[i].fill(0)
                column = _unit(c, i)
                if column < length:
                    sums[i].store(_sum(v, e, step, row, i, c).load())
            _finish(v, row, sums, 0, partials, c)
    end(e, step, is_usable)


@cute.kernel(name="two_shot")
def two_shot(v: Rows, e: Exchange, config: cute.Constexpr[AllReduceConfig]):
    c, grid, me = config, cute.arch.grid_dim().x, e.staging.rank
    partials = cute.smem_tensor(cute.Float32, cute.make_layout(2 * c.threads // 32))
    step, is_usable, failed = begin(e)
    rows = cute.ceil_div(cute.size(v.x), v.length)
    groups = cute.ceil_div(rows, c.ranks)
    for turn in range(2 * cute.ceil_div(groups - cute.arch.block_idx().x, grid)):
        first_row = (cute.arch.block_idx().x + turn // 2 * grid) * c.ranks
        if is_usable:
            step += 1
            if turn % 2 == 0:
                for distance in cute.range_constexpr(c.ranks):
                    to = (me + distance) % c.ranks
                    first, length = _span(v, first_row + to)
                    for i in cute.range_constexpr(c.units):
                        column = _unit(c, i)
                        if column < length:
                            _send(_fetch(v.x, first + column, length - column, c), e, step, to, column, c)
            else:
                _, length = _span(v, first_row + me)
                for i in cute.range_constexpr(c.units):
                    column = _unit(c, i)
                    if column < length:
                        _send_to_all(_sum(v, e, step - 1, first_row + me, i, c), e, step, column, c)
            is_usable = meet(e, step, failed)
        if is_usable & (turn % 2 == 1):
            for rank in cute.range_constexpr(c.ranks):
                row = first_row + rank
                if row < rows:
                    _, length = _span(v, row)
                    here = e.staging.local[line(e, step, rank), None]
                    sums = [cute.make_rmem_tensor(c.width, v.x.element_type) for _ in range(c.units)]
                    for i in cute.range_constexpr(c.units):
                        sums[i].fill(0)
                        column = _unit(c, i)
                        if column < length:
                            sums[i].store(_fetch(here, column, length - column, c).load())
                    _finish(v, row, sums, rank % 2, partials, c)
    end(e, step, is_usable)


@cute.jit
def launch(
    vectors: Rows, memory: RankMemory, caller: Caller, blocks: cute.Int32, config: cute.Constexpr[AllReduceConfig]
):
    """Launch ``blocks`` blocks that are resident at once.

    Args:
        vectors: x, the residual, the weight, and the results, each one vector.
        memory: memory of this rank for the exchange.
        caller: the rank and its call.
    """
    c = config
    assert vectors.length <= c.capacity, "the row is longer than the capacity"
    assert vectors.length <= memory.staging.shape[1], "the row is longer than a slot of the staging memory"
    kernel = two_shot if c.two_shot else one_shot
    exchange = exchange_of(memory, caller, c.ranks)
    kernel(vectors, exchange, c).launch(grid=blocks, block=c.threads, cooperative=c.cooperative)


@printed
def all_reduce_text(config: AllReduceConfig) -> cute.Compiled:
    """Trace the kernel ``@one_shot`` or ``@two_shot``, and its host function ``@launch``."""
    c = config
    vector = cute.Tensor[number(c.element), "?:1"]
    v = Rows(
        vector,
        vector if c.residual else None,
        vector if c.norm else None,
        vector,
        vector if c.norm else None,
        cute.Int32,
        cute.Float32 if c.norm else None,
    )
    return cute.trace(launch, v, *exchange_types(number(c.element), c.ranks), cute.Int32, config=c)
