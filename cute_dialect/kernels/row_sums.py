"""One number of each row: sum, mean, maximum, logarithm of the sum of powers, cross entropy; rows of any length.

Nothing of a row is kept.  Threads go along it by several vectors at once (``chunks``), as often as there are whole
rounds of them, and then once more for what is left; so a class holds all lengths from some on.

    row_sum = sum_program("sum", "f32", 4096)
    row_sum(x, y)                       # y has an element for each row
    loss = sum_program("cross_entropy", "bf16", 50257)
    loss(x, target, y, lse, -100)       # y and lse are f32; rows with target -100 have loss 0
"""

# Operators and element types are those of values in a trace.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

from math import inf
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.front.dtypes import type_of_mlir
from cute_dialect.kernels.printed import printed
from cute_dialect.kernels.row_config import Plan, RowConfig, width
from cute_dialect.kernels.row_memory import Place, RowMemory, combined, part
from cute_dialect.kernels.row_sharing import Sharing
from cute_dialect.kernels.rows import LN_2, LOWEST, Softmax, Sums, add, power, same, wide

__all__ = ["SUMS", "loss_text", "sum_class", "sum_program", "sum_text"]

SUMS = ("sum", "mean", "max", "logsumexp", "cross_entropy")
"""The operations."""

MOST = 512
"""Threads that share a row at most."""


def sum_class(element: str, n: int) -> RowConfig:
    """Return the class of rows of ``n`` elements: threads, vectors under way at once, rows of a block.

    >>> [sum_class("f16", n)[:3] for n in (100, 1024, 4096, 32768, 50257, 10**7)]
    [(16, 1, 8), (32, 4, 4), (128, 4, 1), (512, 8, 1), (512, 8, 1), (512, 8, 1)]
    """
    w = width(element)
    if n < 1:
        raise ValueError(f"expected rows of at least one element, got {n}")
    vectors = max(1, n // w)
    if vectors <= 128:  # (a part of) a warp
        threads = min(32, max(2 * w, 1 << (-(-vectors // 4) - 1).bit_length()))
        return RowConfig(threads, -(-vectors // threads), 128 // threads)
    threads = min(MOST, 32 * -(-vectors // 128))
    return RowConfig(threads, 4 if vectors <= 4 * threads else 8)


class Total(Sums):
    """The sum of a row, or its mean."""

    def __init__(self, memory: RowMemory):
        self.memory, self.plan, self.lanes = memory, memory.plan, memory.sharing.lanes
        self.fours, self.rest = cute.full(4, 0.0, cute.Float32), cute.Float32(0)

    def see(self, values: cute.Tensor) -> None:
        """Add elements: each of four sums has every fourth one, so that no chain of steps is long."""
        n = cute.size(values)
        for at in cute.range_constexpr(0, n - n % 4, 4):
            self.fours = self.fours + wide(part(values, at, 4).load())
        for at in cute.range_constexpr(n - n % 4, n):
            self.rest = self.rest + wide(values[at])

    def of_warp(self) -> list[Any]:
        """Return the numbers of this warp."""
        return self.over_lanes([self.fours.sum() + self.rest], self.lanes)

    def result(self, numbers: list[Any]) -> Any:
        """Return the row's number."""
        return numbers[0] * (1.0 / wide(self.memory.n)) if self.plan.op == "mean" else numbers[0]


class Largest(Total):
    """The largest element of a row; NaN where there is one."""

    def __init__(self, memory: RowMemory):
        super().__init__(memory)
        self.largest = cute.Float32(-inf)

    def see(self, values: cute.Tensor) -> None:
        """Compare elements."""
        self.largest = cute.max(self.largest, wide(combined(values, cute.max, same)))

    def of_warp(self) -> list[Any]:
        """Return the numbers of this warp."""
        return self.over_lanes([self.largest], self.lanes)

    def neutral(self, count: int) -> list[Any]:
        """Return numbers that change nothing."""
        return [-inf]

    def over_lanes(self, numbers: list[Any], lanes: int, threads: int = 1) -> list[Any]:
        """Combine groups of lanes."""
        return [cute.arch.warp_reduction(numbers[0], cute.max, lanes)]

    def result(self, numbers: list[Any]) -> Any:
        """Return the row's number."""
        return numbers[0]


class LogSum(Total):
    """The logarithm of the sum of ``e^x``: the largest element so far, and the sum of powers beside it."""

    neutral, over_lanes, merged = Softmax.neutral, Softmax.over_lanes, Softmax.merged

    def __init__(self, memory: RowMemory):
        super().__init__(memory)
        self.largest, self.total = cute.Float32(LOWEST), cute.Float32(0)

    def see(self, values: cute.Tensor) -> None:
        """Add powers; a larger element makes those before smaller."""
        own = cute.max(self.largest, wide(combined(values, cute.max, same)))
        powers = combined(values, add, lambda v: power(wide(v), own))
        self.total = self.total * power(self.largest, own) + powers
        self.largest = own

    def of_warp(self) -> list[Any]:
        """Return the numbers of this warp."""
        return self.over_lanes([self.largest, self.total], self.lanes)

    def result(self, numbers: list[Any]) -> Any:
        """Return the row's number; plus infinity where that is an element, which is no power less another."""
        m, total = numbers
        return cute.where(m == inf, cute.Float32(inf), m + cute.arch.log2_approx(total) * LN_2)


OPERATIONS = {"sum": Total, "mean": Total, "max": Largest, "logsumexp": LogSum, "cross_entropy": LogSum}


def sums_kernel(x: cute.Tensor, t: Any, y: cute.Tensor, z: Any, ignored: Any, plan: cute.Constexpr[Plan]):
    """Find the number of each row of this block."""
    sharing = Sharing(plan.config)
    memory = RowMemory(plan, sharing, x, [], None)
    memory.neutral = -inf if plan.op in ("max", "logsumexp", "cross_entropy") else 0.0
    operation = OPERATIONS[plan.op](memory)
    place = memory.place(sharing.row)
    begin, at_once = memory.begin(x, place), plan.chunks * plan.step
    target = t[place.source] if plan.op == "cross_entropy" else None
    # What is left of a row after whole rounds is never nothing: a row of one round needs no loop.
    rounds = cute.max(place.vectors - 1, 0) // (plan.chunks * plan.config.sharing)
    for i in range(rounds):
        values = memory.registers(plan.chunks)
        cute.autovec_copy(
            memory.chunks(begin + i * at_once, 0, plan.chunks), memory.in_registers(values, 0, plan.chunks)
        )
        operation.see(values)
    rest, edges = rest_of(memory, place, begin, rounds), memory.load_edges(x, place)
    picked = None
    if target is not None:  # on its way while the rest is worked on
        target = target.to(cute.Int32)
        picked = wide(x[place.source, cute.where(target == ignored, 0, target)])
    first = rounds * (plan.chunks * plan.config.sharing)
    for i in range(plan.chunks):
        if first + i * plan.config.sharing < place.vectors:
            operation.see(part(rest, i * plan.width, plan.width))
    if edges is not None:
        operation.see(edges)
    found = operation.result(sharing.exchange(operation, operation.of_warp()))
    if sharing.thread == 0 and place.exists:
        if plan.op == "cross_entropy":
            z[place.row] = found
            y[place.row] = cute.where(target == ignored, 0.0, found - picked)
        else:
            y[place.row] = found.to(memory.dtype)


def rest_of(memory: RowMemory, place: Place, begin: Any, rounds: Any) -> cute.Tensor:
    """Load the vectors behind whole rounds, neutral ones where a thread has none."""
    plan = memory.plan
    values = memory.registers(plan.chunks)
    values.fill(memory.neutral)
    first = rounds * (plan.chunks * plan.config.sharing)
    for i in range(plan.chunks):
        if first + i * plan.config.sharing + memory.sharing.thread < place.vectors:
            source = memory.chunks(begin + first * plan.width, i, 1)
            cute.autovec_copy(source, memory.in_registers(values, i, 1))
    return values


@cute.jit
def launch(x: cute.Tensor, t: Any, y: cute.Tensor, z: Any, ignored: cute.Int32 | None, plan: cute.Constexpr[Plan]):
    """Launch as many blocks as the rows need."""
    c, rows = plan.config, x.shape[0]
    assert y.shape[0] == rows, "y must have as many elements as x has rows"
    sizes = {"grid": cute.ceil_div(rows, c.rows), "block": c.block}
    anywhere = Plan(plan.op, plan.element, c, whole=False)
    kernel_of(plan)(cute.promise_vectors(x, plan.width), t, y, z, ignored, plan).launch(
        **sizes, fallback=kernel_of(anywhere)(x, t, y, z, ignored, anywhere)
    )


def kernel_of(plan: Plan) -> Any:
    """Return the kernel of a plan, which says how many registers it may have."""
    name = f"{plan.op}_v" if plan.whole else plan.op
    return cute.kernel(min_blocks=plan.resident, name=name)(sums_kernel)


def sum_program(op: str, element: str = "f32", n: int = 1024, config: RowConfig | None = None) -> cute.Compiled:
    """Return ``sum``, ``mean``, ``max`` or ``logsumexp`` of rows, of the class of ``n``, to be called with ``(x, y)``;
    or ``cross_entropy`` with ``(x, target, losses, lse, ignored)``: ``logsumexp`` less the target's element, 0 where
    the target is ``ignored``.

    Sums are ``f32``; ``y`` has the elements of ``x``, losses and ``lse`` are ``f32``, targets i64.  Raises ValueError.
    """
    if op not in OPERATIONS:
        raise ValueError(f"expected an operation of {', '.join(SUMS)}, got '{op}'")
    config = sum_class(element, n) if config is None else config
    dtype = type_of_mlir(element)
    matrix, column = cute.Tensor[dtype, "(?,?):(?,1)"], cute.Tensor[dtype, "(?):(1)"]
    plan = Plan(op, element, config)
    if op != "cross_entropy":
        return cute.trace(launch, matrix, None, column, None, None, plan)
    numbers = cute.Tensor[cute.Float32, "(?):(1)"]
    return cute.trace(launch, matrix, cute.Tensor[cute.Int64, "(?):(1)"], numbers, numbers, cute.Int32, plan)


@printed
def sum_text(op: str, element: str = "f32", n: int = 1024, config: RowConfig | None = None) -> cute.Compiled:
    """Return the kernels and host function of :func:`sum_program` as text.

    >>> "gpu.func @sum_v" in sum_text("sum", "f32", 4096)
    True
    """
    return sum_program(op, element, n, config)


# -------------------------------------------------------------------------------------------------------- all losses

THREADS = 1024


@cute.kernel
def reduce_losses(
    losses: cute.Tensor, t: cute.Tensor, y: cute.Tensor, count: cute.Tensor, ignored: Any, mean: cute.Constexpr[bool]
):  # fmt: skip
    """Add up losses, always in the same order; ``mean``: over those whose target is not ``ignored``."""
    tid, warps = cute.arch.thread_idx().x, THREADS // 32
    total, targets = cute.Float32(0), cute.Float32(0)
    for i in range(tid, losses.shape[0], THREADS):
        total += losses[i]
        targets += cute.where(t[i].to(cute.Int32) == ignored, 0.0, 1.0)
    table = cute.smem_tensor(cute.Float32, cute.make_layout(2 * warps))
    warp, lane = tid // 32, cute.arch.lane_idx()
    total, targets = (cute.arch.warp_reduction(x, add, 32) for x in (total, targets))
    if lane == 0:
        table[warp] = total
        table[warps + warp] = targets
    cute.arch.sync_threads()
    if warp == 0:
        total, targets = (cute.arch.warp_reduction(table[i * warps + lane], add, 32) for i in range(2))
        if lane == 0:
            if mean:
                total = total / targets  # NaN where there is none, as torch has it
            y[0] = total.to(y.element_type)
            count[0] = targets


@cute.jit
def launch_losses(
    losses: cute.Tensor, t: cute.Tensor, y: cute.Tensor, count: cute.Tensor, ignored: cute.Int32,
    mean: cute.Constexpr[bool],
):  # fmt: skip
    """Launch one block."""
    reduce_losses(losses, t, y, count, ignored, mean).launch(grid=1, block=THREADS)


@printed
def loss_text(element: str, mean: bool) -> cute.Compiled:
    """Return the kernel that adds up the losses of ``cross_entropy``, to be called with ``(losses, target, y, count,
    ignored)``: ``y`` has one element of type ``element``, ``count`` one of f32, how many targets there are.
    """
    numbers, targets = (cute.Tensor[x, "(?):(1)"] for x in (cute.Float32, cute.Int64))
    one = cute.Tensor[type_of_mlir(element), "(?):(1)"]
    return cute.trace(launch_losses, numbers, targets, one, numbers, cute.Int32, mean)
