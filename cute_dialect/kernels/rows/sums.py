"""Row reductions to one number: sum, mean, maximum, logsumexp and cross entropy, for rows of any length.

Elements are not kept. Threads iterate over the row with several vectors in flight (``chunks``), for as many full rounds
as it has, and then process the remainder. A class therefore covers all lengths from some minimum on.

    row_sum = sum_program("sum", "f32", 4096)
    row_sum(x, y)                       # y has an element for each row
    loss = sum_program("cross_entropy", "bf16", 50257)
    loss(x, target, y, lse, -100)       # y and lse are f32; rows with target -100 have loss 0
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

from math import ceil, inf
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.rows.config import BITS, HINTS, MANY, MAX_THREADS, PROCESSORS, Plan, RowConfig, width
from cute_dialect.kernels.rows.forward import LN_2, LOWEST, Softmax, Sums, add, pivot_of, power, same, wide
from cute_dialect.kernels.rows.memory import Place, RowMemory, combined, part
from cute_dialect.kernels.rows.sharing import Sharing
from cute_dialect.lang.values.dtypes import type_of_mlir

SUMS = ("sum", "mean", "max", "logsumexp", "cross_entropy")

POWERS = ("logsumexp", "cross_entropy")
"""Operations that sum exponentials."""

MOST, MOST_POWERS, LONG_POWERS = 512, 64, 8192
"""Largest numbers of threads that share a row: in general, and for rows of exponentials. The latter is doubled above
``LONG_POWERS`` vectors."""

MOST_BLOCKS, BLOCK_VECTORS = 8, 4
"""Largest number of blocks that share one of few long rows, and the fewest vectors of each of their threads."""


def sum_class(element: str, n: int, op: str = "sum", rows: int = MANY) -> RowConfig:
    """Return the class of ``rows`` rows of ``n`` elements: threads, vectors in flight, rows per block.

    Exponentials need more computation per byte, which many small blocks hide better than a few large ones. Few rows
    have more threads, until a multiprocessor has 1024 or a row is loaded at once, and then clusters of blocks.

    >>> [sum_class("f16", n)[:3] for n in (8, 100, 1000, 4096, 6144, 32768, 10**7)]
    [(1, 1, 128), (4, 3, 32), (32, 4, 4), (128, 4, 1), (128, 4, 1), (512, 4, 1), (512, 4, 1)]
    >>> [sum_class("f16", n, "cross_entropy")[:3] for n in (333, 1000, 32768)]
    [(8, 6, 16), (32, 4, 4), (64, 4, 1)]
    >>> [sum_class("f16", 539, "logsumexp", rows)[:3] for rows in (142, 10000)]
    [(96, 1, 1), (16, 5, 8)]
    >>> [sum_class("f16", 32768, "cross_entropy", rows)[:3] for rows in (132, 295, 2000)]
    [(1024, 4, 1), (256, 4, 1), (64, 4, 1)]
    >>> [sum_class("f16", 160_000, rows=rows)[:4] for rows in (1, 40, 100)]
    [(1024, 4, 1, 4), (1024, 4, 1, 2), (1024, 4, 1, 1)]
    """
    w = width(element)
    if n < 1:
        raise ValueError(f"rows must have at least one element, got {n}")
    vectors = max(1, n // w)
    powers = op in POWERS
    if vectors <= 128:  # rows of a warp or a part of one
        if vectors <= 2:
            threads, together = 1, 2 if powers or vectors == 1 else 1
        elif powers and vectors <= 32:
            threads = _up(vectors, 2)
            together = 4 if threads >= 16 else 1  # with few threads, the edges of four rows do not fit the registers
        elif powers and vectors <= 96:
            threads, together = _up(vectors, 6), 2
        else:
            threads, together = _up(vectors, 3.5), 1
        if powers and vectors > 32 and rows <= 8 * PROCESSORS:  # a block for each of few rows
            return RowConfig(32 * -(-vectors // 32))
        while powers and threads < min(32, vectors) and rows < PROCESSORS * (128 // threads) * together:
            threads, together = 2 * threads, 1
        return RowConfig(threads, -(-vectors // threads), 128 // threads, together=together)
    if powers:
        threads = MOST_POWERS * (2 if vectors > LONG_POWERS else 1)
    else:
        threads = min(128 if vectors <= 1024 else MOST, 32 * -(-vectors // 128))
    alone = MAX_THREADS >> (-(-rows // PROCESSORS) - 1).bit_length()
    threads = max(threads, min(alone, 32 * -(-vectors // 128)))
    cluster = 1
    while threads == MAX_THREADS and cluster < MOST_BLOCKS and rows * 2 * cluster <= PROCESSORS:
        if vectors < 2 * cluster * threads * BLOCK_VECTORS:
            break
        cluster *= 2
    hinted = powers or rows * n * BITS[element] // 8 <= MOST_HINTED
    return RowConfig(threads, 4, cluster=cluster, hint=HINT if hinted else 0)


def _up(vectors: int, each: float) -> int:
    """Return the smallest power of two of threads, up to a warp, with at most ``each`` vectors per thread."""
    return min(32, 1 << (ceil(vectors / each) - 1).bit_length())


HINT = HINTS.index("L1::evict_first")
"""Cache hint of long rows, which are read once. Short rows have none: several loads read one 32-byte sector, which must
stay in the L1 meanwhile."""

MOST_HINTED = 1 << 28
"""Most bytes of a matrix whose sums have the hint. On an H200, matrices of 140 to 190 MB are faster with it; those of
512 and 1024 MB take 4 % less time without."""


class Total(Sums):
    """The sum of a row."""

    def __init__(self, memory: RowMemory, place: Place):
        self.memory, self.plan, self.lanes = memory, memory.plan, memory.sharing.lanes
        self.fours, self.rest = cute.full(4, 0.0, cute.Float32), cute.Float32(0)

    def see(self, values: cute.Tensor) -> None:
        """Add elements to four interleaved sums, which shortens the dependency chains."""
        n = cute.size(values)
        for at in cute.range_constexpr(0, n - n % 4, 4):
            self.fours = self.fours + self.term(part(values, at, 4).load())
        for at in cute.range_constexpr(n - n % 4, n):
            self.rest = self.rest + self.term(values[at])

    def term(self, values: Any) -> Any:
        """Return the terms of the sum."""
        return wide(values)

    def see_edges(self, values: cute.Tensor, place: Place) -> None:
        """Add the edges, which may be identity elements."""
        self.see(values)

    def of_warp(self) -> list[Any]:
        """Return the partial result of this warp."""
        return self.over_lanes([self.fours.sum() + self.rest], self.lanes)

    def result(self, numbers: list[Any]) -> Any:
        """Return the result of the row."""
        return numbers[0]


class Mean(Total):
    """The mean of a row: the pivot (see :mod:`.forward`) plus the mean distance from it."""

    def __init__(self, memory: RowMemory, place: Place):
        super().__init__(memory, place)
        # the difference of any finite f32 and this does not overflow
        self.pivot = pivot_of(memory.first_element(place), 2.0**100)

    def term(self, values: Any) -> Any:
        """Return the terms of the sum."""
        return wide(values) - self.pivot

    def see_edges(self, values: cute.Tensor, place: Place) -> None:
        """Add the edges that this thread has. Distances from a pivot have no identity element."""
        for j, (_, mine) in enumerate(place.edges):
            if mine:
                self.see(part(values, j, 1))

    def result(self, numbers: list[Any]) -> Any:
        """Return the result of the row."""
        return self.pivot + numbers[0] / wide(self.memory.n)


class ExactMean(Total):
    """The mean of an f32 row, from a compensated sum.

    The sum is a pair of numbers: the rounded sum, and the sum of the rounding errors (Ogita, Rump, Oishi 2005). The
    mean is accurate to about one rounding, also if terms cancel, and exact for equal elements. Distances from a pivot
    would not do: the rounding error of the pivot exceeds that of the mean of a long row of random numbers.
    """

    def __init__(self, memory: RowMemory, place: Place):
        super().__init__(memory, place)
        self.four_errors, self.rest_error = cute.full(4, 0.0, cute.Float32), cute.Float32(0)

    def see(self, values: cute.Tensor) -> None:
        """Add elements to four interleaved sums, and their rounding errors to four others."""
        n = cute.size(values)
        for at in cute.range_constexpr(0, n - n % 4, 4):
            self.fours, error = two_sum(self.fours, part(values, at, 4).load())
            self.four_errors = self.four_errors + error
        for at in cute.range_constexpr(n - n % 4, n):
            self.rest, error = two_sum(self.rest, values[at])
            self.rest_error = self.rest_error + error

    def of_warp(self) -> list[Any]:
        """Return the sum and the error of this warp."""
        total, errors = self.rest, self.rest_error + self.four_errors.sum()
        for i in cute.range_constexpr(4):
            total, error = two_sum(total, self.fours[i])
            errors = errors + error
        return self.over_lanes([total, errors], self.lanes)

    def over_lanes(self, numbers: list[Any], lanes: int, threads: int = 1) -> list[Any]:
        """Combine partial results over groups of lanes."""
        total, errors = numbers
        distance = lanes // 2
        while distance:
            total, error = two_sum(total, cute.arch.shuffle_sync_bfly(total, distance))
            errors = errors + cute.arch.shuffle_sync_bfly(errors, distance) + error
            distance //= 2
        return [total, errors]

    def result(self, numbers: list[Any]) -> Any:
        """Return the quotient, corrected by the remainder of the division. An infinite sum has no correction."""
        total, errors = numbers
        n = wide(self.memory.n)
        low = wide(self.memory.n - n.to(cute.Int32))  # not 0 if n has more than 24 bits
        mean = total / n
        remainder = cute.math.fma(0.0 - mean, n, total) - mean * low + errors
        return cute.where((cute.max(total, 0.0 - total) < inf) & (errors == errors), mean + remainder / n, mean)


def two_sum(x: Any, y: Any) -> tuple[Any, Any]:
    """Return the rounded sum of two numbers or vectors and its rounding error (Knuth)."""
    total = x + y
    of_y = total - x
    return total, (x - (total - of_y)) + (y - of_y)


class Largest(Total):
    """The largest element of a row, or NaN if there is one."""

    def __init__(self, memory: RowMemory, place: Place):
        super().__init__(memory, place)
        self.largest = cute.Float32(-inf)

    def see(self, values: cute.Tensor) -> None:
        """Take the maximum of elements."""
        self.largest = cute.max(self.largest, wide(combined(values, cute.max, same)))

    def of_warp(self) -> list[Any]:
        """Return the partial result of this warp."""
        return self.over_lanes([self.largest], self.lanes)

    def neutral(self, count: int) -> list[Any]:
        """Return identity elements of the reduction."""
        return [-inf]

    def over_lanes(self, numbers: list[Any], lanes: int, threads: int = 1) -> list[Any]:
        """Combine partial results over groups of lanes."""
        return [cute.arch.warp_reduction(numbers[0], cute.max, lanes)]

    def result(self, numbers: list[Any]) -> Any:
        """Return the result of the row."""
        return numbers[0]


class LogSum(Total):
    """The logarithm of the sum of ``e^x``, from the running maximum and the sum of exponentials relative to it."""

    neutral, over_lanes, merged = Softmax.neutral, Softmax.over_lanes, Softmax.merged

    def __init__(self, memory: RowMemory, place: Place):
        super().__init__(memory, place)
        self.largest, self.total = cute.Float32(LOWEST), cute.Float32(0)

    def see(self, values: cute.Tensor) -> None:
        """Add exponentials. A larger maximum scales the sum down."""
        own = cute.max(self.largest, wide(combined(values, cute.max, same)))
        powers = combined(values, add, lambda v: power(wide(v), own))
        self.total = self.total * power(self.largest, own) + powers
        self.largest = own

    def of_warp(self) -> list[Any]:
        """Return the partial results of this warp."""
        return self.over_lanes([self.largest, self.total], self.lanes)

    def result(self, numbers: list[Any]) -> Any:
        """Return the result of the row. It is plus infinity if an element is, because inf - inf would be NaN."""
        m, total = numbers
        return cute.where(m == inf, cute.Float32(inf), m + cute.arch.log2_approx(total) * LN_2)


class Loss(LogSum):
    """Cross entropy: the maximum of a row, and the logarithm of the sum of exponentials relative to it.

    They are kept apart, because adding them would cancel a small loss of large logits. With plus infinity the logarithm
    is NaN, as in torch.
    """

    def result(self, numbers: list[Any]) -> Any:
        """Return both numbers."""
        return numbers[0], cute.arch.log2_approx(numbers[1]) * LN_2


OPERATIONS = {"sum": Total, "mean": Mean, "max": Largest, "logsumexp": LogSum, "cross_entropy": Loss}


def operation_of(plan: Plan) -> Any:
    """Return the class that reduces the rows of a plan. Means of 16-bit elements need no compensated sum."""
    return ExactMean if plan.op == "mean" and plan.element == "f32" else OPERATIONS[plan.op]


def sums_kernel(x: cute.Tensor, t: Any, y: cute.Tensor, z: Any, ignored: Any, plan: cute.Constexpr[Plan]):
    """Reduce each row of this block."""
    if t is not None:
        cute.arch.griddepcontrol_launch_dependents()  # The kernel that adds up the losses may start, and waits.
    sharing = Sharing(plan.config, plan.messages)
    memory = RowMemory(plan, sharing, x, [], None)
    memory.neutral = -inf if plan.op in ("max", "logsumexp", "cross_entropy") else 0.0
    places = [memory.place(sharing.row * plan.config.together + i) for i in range(plan.config.together)]
    begun = [begun_row(memory, place, t, ignored) for place in places]  # issue all loads before any row is processed
    found: list[Any] = []
    for place, (operation, rest, edges, first, _, _) in zip(places, begun):
        for i in range(plan.chunks):
            if first + i * plan.config.sharing + sharing.thread < place.vectors:
                operation.see(part(rest, i * plan.width, plan.width))
        if edges is not None:
            operation.see_edges(edges, place)
        found.append(operation.result(sharing.exchange(operation, operation.of_warp())))
    for place, number, (_, _, _, _, target, picked) in zip(places, found, begun):
        if sharing.thread == 0 and place.exists:
            if plan.op == "cross_entropy":
                largest, log = number
                z[place.row] = largest + log
                y[place.row] = cute.where(target == ignored, 0.0, largest - picked + log)
            else:
                y[place.row] = number.to(memory.dtype)


def begun_row(memory: RowMemory, place: Place, t: Any, ignored: Any) -> tuple[Any, ...]:
    """Process a row except for its last iteration, and issue the loads of that iteration.

    Returns the operation, the remaining vectors and edges, the index of the first remaining vector, the target and its
    element (None without targets).
    """
    plan = memory.plan
    operation, begin = operation_of(plan)(memory, place), memory.begin(memory.x, place)
    at_once = plan.chunks * plan.config.sharing
    target = None if t is None else t[place.source].to(cute.Int32)
    # The last iteration is never empty, so that a short row needs no loop.
    rounds = cute.max(place.vectors - 1, 0) // at_once
    for i in range(rounds):
        values = memory.registers(plan.chunks)
        memory.load_once(
            memory.chunks(begin + i * (at_once * plan.width), 0, plan.chunks),
            memory.in_registers(values, 0, plan.chunks),
        )
        operation.see(values)
    rest, edges = rest_of(memory, place, begin, rounds), memory.load_edges(memory.x, place)
    picked = None if t is None else wide(memory.x[place.source, cute.where(target == ignored, 0, target)])
    return operation, rest, edges, rounds * at_once, target, picked


def rest_of(memory: RowMemory, place: Place, begin: Any, rounds: Any) -> cute.Tensor:
    """Load the vectors of the last iteration. Missing vectors are identity elements."""
    plan = memory.plan
    values = memory.registers(plan.chunks)
    values.fill(memory.neutral)
    first = rounds * (plan.chunks * plan.config.sharing)
    for i in range(plan.chunks):
        if first + i * plan.config.sharing + memory.sharing.thread < place.vectors:
            source = memory.chunks(begin + first * plan.width, i, 1)
            memory.load_once(source, memory.in_registers(values, i, 1))
    return values


@cute.jit
def launch(x: cute.Tensor, t: Any, y: cute.Tensor, z: Any, ignored: cute.Int32 | None, plan: cute.Constexpr[Plan]):
    c, rows = plan.config, x.shape[0]
    assert y.shape[0] == rows, "y must have as many elements as x has rows"
    sizes = {"grid": cute.ceil_div(rows, c.rows * c.together) * c.cluster, "block": c.block}
    sizes |= {"cluster": c.cluster} if c.cluster > 1 else {}
    anywhere = Plan(plan.op, plan.element, c, whole=False)
    kernel_of(plan)(cute.promise_vectors(x, plan.width), t, y, z, ignored, plan).launch(
        **sizes, fallback=kernel_of(anywhere)(x, t, y, z, ignored, anywhere)
    )


def kernel_of(plan: Plan) -> Any:
    """Return the kernel of a plan, with its register limit."""
    name = f"{plan.op}_v" if plan.whole else plan.op
    return cute.kernel(min_blocks=plan.resident, name=name)(sums_kernel)


def sum_program(op: str, element: str = "f32", n: int = 1024, config: RowConfig | None = None) -> cute.Compiled:
    """Compile a row reduction for the class of rows of ``n`` elements.

    ``sum``, ``mean``, ``max`` and ``logsumexp`` are called with ``(x, y)``. ``cross_entropy`` is called with ``(x,
    target, losses, lse, ignored)``. The loss is ``logsumexp`` minus the target's element, or 0 if the target is
    ``ignored``. Sums are ``f32``; ``y`` has the type of ``x``, losses and ``lse`` are ``f32``, and targets i64.

    Raises:
        ValueError: if the operation or the configuration is not supported.
    """
    if op not in OPERATIONS:
        raise ValueError(f"operation '{op}' is not supported; use one of {', '.join(SUMS)}")
    config = sum_class(element, n, op) if config is None else config
    dtype = type_of_mlir(element)
    matrix, column = cute.Tensor[dtype, "(?,?):(?,1)"], cute.Tensor[dtype, "(?):(1)"]
    plan = Plan(op, element, config)
    if op != "cross_entropy":
        return cute.trace(launch, matrix, None, column, None, None, plan)
    numbers = cute.Tensor[cute.Float32, "(?):(1)"]
    return cute.trace(launch, matrix, cute.Tensor[cute.Int64, "(?):(1)"], numbers, numbers, cute.Int32, plan)


@printed
def sum_text(op: str, element: str = "f32", n: int = 1024, config: RowConfig | None = None) -> cute.Compiled:
    """Trace the kernels and host function of :func:`sum_program`.

    >>> "gpu.func @sum_v" in sum_text("sum", "f32", 4096)
    True
    """
    return sum_program(op, element, n, config)


# -------------------------------------------------------------------------------------------------------- all losses

THREADS, LOSSES = 1024, 4
"""Threads of a block that sums losses, and losses that each thread loads before it adds them."""

ONE_BLOCK, BLOCKS = 1 << 14, 128
"""Number of losses up to which one block sums all of them; largest number of blocks otherwise."""


def loss_parts(rows: int) -> int:
    """Return the number of partial sums of the losses of ``rows`` rows; 1 for a single pass.

    >>> [loss_parts(rows) for rows in (1, 16384, 16385, 10**6)]
    [1, 1, 5, 128]
    """
    return 1 if rows <= ONE_BLOCK else min(BLOCKS, -(-rows // (THREADS * LOSSES)))


@cute.kernel
def reduce_losses(
    losses: cute.Tensor, t: cute.Tensor, y: cute.Tensor, count: cute.Tensor, ignored: Any, mean: cute.Constexpr[bool]
):
    """Sum losses and count their targets ``t`` that are not ``ignored``, in a fixed order.

    Each block writes a sum or a ``mean``, and a count. If ``ignored`` is None, ``t`` holds counts already. The kernel
    uses programmatic dependent launch: it starts while the kernel that computes the losses ends, and waits for it.
    """
    cute.arch.griddepcontrol_wait()
    cute.arch.griddepcontrol_launch_dependents()
    tid, block, warps = cute.arch.thread_idx().x, cute.arch.block_idx().x, THREADS // 32
    total, targets = cute.Float32(0), cute.Float32(0)
    step, end = cute.arch.grid_dim().x * THREADS, losses.shape[0]
    for i in range(block * THREADS + tid, end, step * LOSSES):
        at = [cute.min(i + k * step, end - 1) for k in range(LOSSES)]
        own = [losses[j] for j in at]
        each = [t[j] for j in at]
        if ignored is not None:
            each = [cute.where(x.to(cute.Int32) == ignored, 0.0, 1.0) for x in each]
        for k in cute.range_constexpr(LOSSES):
            there = i + k * step < end
            total += cute.where(there, own[k], 0.0)
            targets += cute.where(there, each[k], 0.0)
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
                total = total / targets  # NaN without targets, as in torch
            y[block] = total.to(y.element_type)
            count[block] = targets


@cute.jit
def launch_losses(
    losses: cute.Tensor, t: cute.Tensor, y: cute.Tensor, count: cute.Tensor, ignored: cute.Int32 | None,
    mean: cute.Constexpr[bool],
):  # fmt: skip
    """Launch one block per result."""
    reduce_losses(losses, t, y, count, ignored, mean).launch(grid=y.shape[0], block=THREADS, pdl=True)


@printed
def loss_text(element: str, mean: bool, step: str = "all") -> cute.Compiled:
    """Trace the kernel that reduces the losses of ``cross_entropy``.

    The kernel takes ``(losses, target, y, count, ignored)``. It writes the result to ``y``, and the number of targets
    to ``count`` as f32.

    Args:
        element: type of the result.
        mean: compute the mean instead of the sum.
        step: "all" for one launch, or "first" and "last" for two. The first launch writes one partial sum (f32) per
            element of ``y`` and one partial count per element of ``count``. The last one takes ``(sums, counts, y,
            count)`` and adds them.
    """
    numbers, targets = (cute.Tensor[x, "(?):(1)"] for x in (cute.Float32, cute.Int64))
    result = numbers if step == "first" else cute.Tensor[type_of_mlir(element), "(?):(1)"]
    t, ignored = (numbers, None) if step == "last" else (targets, cute.Int32)
    return cute.trace(launch_losses, numbers, t, result, numbers, ignored, mean and step != "first")
