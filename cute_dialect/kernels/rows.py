"""Row kernels in the language: sum, softmax, RMSNorm and LayerNorm of the rows of a matrix.

The number of rows and the distance from row to row are known at run time, the length ``n`` of a row is part of the
kernel.  A row is read once and written once; in between it stays in registers, in shared memory, or in both
(:mod:`.row_memory`).  How many threads share a row is the :class:`RowConfig`: some lanes of a warp, a warp, a block, or
the blocks of a cluster (:mod:`.row_sharing`).  An operation here says what is reduced, how partial results meet, and
what becomes of an element.  Two kernels, one body: ``softmax_v`` takes rows of whole aligned vectors, ``softmax`` any.

    softmax = row_program("softmax", "f16", 1000)
    softmax(x, y)                       # torch tensors or others; compiled at the first call
    layernorm = row_program("layernorm", "bf16", 4096)
    layernorm(x, w, b, y)               # w and b have n elements
"""

# Operators and element types are those of values in a trace.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

import functools
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.front.dtypes import type_of_mlir
from cute_dialect.kernels.row_config import (  # fmt: skip
    BITS,
    OPS,
    STREAM,
    WEIGHTS,
    Plan,
    RowConfig,
    check,
    default_config,
    vector_width,
)
from cute_dialect.kernels.row_memory import Line, RowMemory, combined, grouped, mapped, part
from cute_dialect.kernels.row_sharing import Sharing, Turn

__all__ = ["BITS", "OPS", "RowConfig", "default_config", "row_program", "row_text", "vector_width"]

LOG2_E = 1.4426950408889634
LOWEST = -3.4028234663852886e38
"""The smallest finite ``f32``; unlike minus infinity it can be subtracted from itself."""

GROUP = 8
"""Elements of a thread whose mean and deviations are found at once."""


def add(x: Any, y: Any) -> Any:
    """Return the sum."""
    return x + y


def tree(items: list[Any], combine: Any) -> Any:
    """Combine a power of two of items into one."""
    while len(items) > 1:
        items = [combine(x, y) for x, y in zip(items[::2], items[1::2])]
    return items[0]


def wide(x: Any) -> Any:
    """Return a number or a vector as ``f32``."""
    return x.to(cute.Float32)


def power(x: Any, m: Any) -> Any:
    """Return ``e^(x - m)``."""
    return cute.math.exp2((x - m) * LOG2_E, fastmath=True)


# ------------------------------------------------------------------------------------------------------ operations


class Sums:
    """Sums over the rows at hand, one a row: what threads, warps and blocks have is added.

    An operation says more: ``of_warp`` gives the numbers of this warp, ``over_lanes`` and ``merged`` combine those of
    several, ``of_row`` takes the numbers of the rows, and ``element`` makes elements of the result.
    """

    def __init__(self, memory: RowMemory, lines: list[Line]):
        self.memory, self.lines = memory, lines
        self.plan, self.lanes = memory.plan, memory.sharing.lanes

    def over_lanes(self, numbers: list[Any], lanes: int, threads: int = 1) -> list[Any]:
        """Combine groups of lanes; each has the numbers of so many threads."""
        return [cute.arch.warp_reduction(x, add, lanes) for x in numbers]

    def merged(self, lists: list[list[Any]], threads: int) -> list[Any]:
        """Combine lists of numbers; each is that of so many threads."""
        return [tree(list(x), add) for x in zip(*lists)]


class RmsNorm(Sums):
    """``x / sqrt(mean square + eps) * w``."""

    def of_warp(self) -> list[Any]:
        """Return the sum of squares of each row."""

        def square(v: Any) -> Any:
            return wide(v) * wide(v)

        def total(line: Line) -> Any:
            parts = [self.memory.arrived(line, i) for i in range(len(self.plan.parts))]
            return functools.reduce(add, [combined(x, add, square) for x in parts])

        return self.over_lanes([total(line) for line in self.lines], self.lanes)

    def of_row(self, numbers: list[Any]) -> None:
        """Take the sums of squares."""
        self.by = [cute.arch.rsqrt_approx(x * (1 / self.plan.n) + self.plan.eps) for x in numbers]

    def element(self, i: int, v: Any, w: list[Any]) -> Any:
        """Return what becomes of some elements of row ``i``."""
        return v * self.by[i] * w[0]


class Softmax(Sums):
    """``e^(x - m) / sum``; a warp has its own maximum ``m`` until the one exchange of (maximum, sum)."""

    def of_warp(self) -> list[Any]:
        """Return the largest element and the sum of powers beside it."""
        memory, (line,) = self.memory, self.lines
        parts, self.kept = len(self.plan.parts), False
        if self.plan.config.in_parts:
            # The largest element so far, and the sum of powers beside it; both of the thread, then of the warp.
            largest, total = cute.Float32(LOWEST), cute.Float32(0)
            for i in cute.range_constexpr(parts):
                x = memory.arrived(line, i)
                own = cute.max(largest, wide(combined(x, cute.max, lambda v: v)))
                total = total * power(largest, own) + combined(x, add, lambda v, m=own: power(wide(v), m))
                largest = own
            self.largest = cute.arch.warp_reduction(largest, cute.max, self.lanes)
            total = total * power(largest, self.largest)
        else:
            own = wide(combined(memory.arrived(line, 0), cute.max, lambda v: v))
            # Finite, so that a warp of infinities does not make NaN of it; a NaN stays one.
            self.largest = cute.max(cute.arch.warp_reduction(own, cute.max, self.lanes), LOWEST)
            x = memory.read(line, 0, self.plan.count)
            if line.far == 0 or self.plan.spare:
                powers = mapped(x, lambda v: power(v, self.largest))
                self.lines, self.kept = [line._replace(values=powers, far=0)], True
                total = combined(powers, add, lambda v: v)
            else:
                total = combined(x, add, lambda v: power(wide(v), self.largest))
        return [self.largest, cute.arch.warp_reduction(total, add, self.lanes)]

    def over_lanes(self, numbers: list[Any], lanes: int, threads: int = 1) -> list[Any]:
        """Combine groups of lanes."""
        m = cute.arch.warp_reduction(numbers[0], cute.max, lanes)
        return [m, cute.arch.warp_reduction(numbers[1] * power(numbers[0], m), add, lanes)]

    def merged(self, lists: list[list[Any]], threads: int) -> list[Any]:
        """Combine some pairs."""
        m = tree([x[0] for x in lists], cute.max)
        return [m, tree([x[1] * power(x[0], m) for x in lists], add)]

    def of_row(self, numbers: list[Any]) -> None:
        """Take the largest element and the sum."""
        self.m, self.by = numbers[0], cute.arch.rcp_approx(numbers[1])
        if self.kept and self.plan.config.warps > 1:
            self.by = power(self.largest, self.m) * self.by

    def element(self, i: int, v: Any, w: list[Any]) -> Any:
        """Return shares of the sum; powers are made again where there were no registers to keep them."""
        return (v if self.kept else power(v, self.m)) * self.by


class Moments(NamedTuple):
    """Means of some elements of each row and squared deviations from them; how many, a float where it is static."""

    means: list[Any]
    deviations: list[Any]
    elements: Any

    @property
    def numbers(self) -> list[Any]:
        """What of them is known at run time only."""
        return [*self.means, *self.deviations, *([] if isinstance(self.elements, float) else [self.elements])]


class LayerNorm(Sums):
    """``(x - mean) / sqrt(variance + eps) * w + b``.

    Mean and squared deviations are combined from groups of elements (Chan, Golub, LeVeque 1979).
    """

    def of_warp(self) -> list[Any]:
        """Return the moments of each row."""
        own = [self.of_thread(line) for line in self.lines]
        found = Moments([x.means[0] for x in own], [x.deviations[0] for x in own], own[0].elements)
        self.each = found.elements if isinstance(found.elements, float) else None
        return over(found, self.lanes).numbers

    def of_thread(self, line: Line) -> Moments:
        """Return those of this thread's elements of a row; nothing of the neutral ones where it has none."""
        w, groups, last = self.plan.width, [], None
        for i, (start, count) in enumerate(self.plan.parts):
            x = self.memory.arrived(line, i)
            end = min(count, self.plan.chunks - start) * w
            groups += [of_group(part(x, at, min(GROUP, end - at))) for at in range(0, end, GROUP)]
            last = of_group(part(x, end, w)) if end < count * w else None
        total = functools.reduce(merge, groups) if groups else Moments([cute.Float32(0)], [cute.Float32(0)], 0.0)
        if last is None:
            return total
        more, has = merge(total, last) if groups else last, self.memory.in_tail
        return Moments(
            [cute.where(has, more.means[0], total.means[0])],
            [cute.where(has, more.deviations[0], total.deviations[0])],
            cute.where(has, cute.Float32(more.elements), cute.Float32(total.elements)),
        )

    def moments(self, numbers: list[Any], threads: int) -> Moments:
        """Return the moments that are these numbers of so many threads."""
        rows = self.plan.config.together
        elements = numbers[-1] if self.each is None else self.each * threads
        return Moments(numbers[:rows], numbers[rows : 2 * rows], elements)

    def over_lanes(self, numbers: list[Any], lanes: int, threads: int = 1) -> list[Any]:
        """Combine groups of lanes."""
        return over(self.moments(numbers, threads), lanes).numbers

    def merged(self, lists: list[list[Any]], threads: int) -> list[Any]:
        """Combine some lists of numbers."""
        return tree([self.moments(x, threads) for x in lists], merge).numbers

    def of_row(self, numbers: list[Any]) -> None:
        """Take the moments of the rows."""
        self.means, deviations, _ = self.moments(numbers, self.plan.config.sharing)
        self.by = [cute.arch.rsqrt_approx(x * (1 / self.plan.n) + self.plan.eps) for x in deviations]

    def element(self, i: int, v: Any, w: list[Any]) -> Any:
        """Return what becomes of some elements of row ``i``."""
        mean, by = self.means[i], self.by[i]
        if BITS[self.plan.element] < 32:  # one multiply-add less: rounding the element was the larger error
            return (v * by - mean * by) * w[0] + w[1]
        return (v - mean) * by * w[0] + w[1]


def of_group(x: cute.Tensor) -> Moments:
    """Return the moments of a few elements: first their mean, then how far they are from it."""
    n = cute.size(x)
    mean = combined(x, add, wide) * (1 / n)

    def square(v: Any) -> Any:
        return (wide(v) - mean) * (wide(v) - mean)

    return Moments([mean], [combined(x, add, square)], float(n))


def merge(x: Moments, y: Moments) -> Moments:
    """Return the moments of the elements of both; the same, bit for bit, whichever is first."""
    m, n = x.elements, y.elements
    apart = [a - b for a, b in zip(x.means, y.means)]
    if not isinstance(m, float):
        by = cute.arch.rcp_approx(cute.max(m + n, 1.0))
        means, share = [(a * m + b * n) * by for a, b in zip(x.means, y.means)], m * n * by
    elif m == n:
        means, share = [(a + b) * 0.5 for a, b in zip(x.means, y.means)], m / 2
    else:
        means, share = [a - d * (n / (m + n)) for a, d in zip(x.means, apart)], m * n / (m + n)
    return Moments(means, [a + b + d * d * share for a, b, d in zip(x.deviations, y.deviations, apart)], m + n)


def over(x: Moments, lanes: int) -> Moments:
    """Combine groups of lanes; all of them get the result."""
    for i in cute.range_constexpr(lanes.bit_length() - 1):
        numbers = [cute.arch.shuffle_sync_bfly(v, lanes >> (i + 1)) for v in x.numbers]
        rows = len(x.means)
        elements = x.elements if isinstance(x.elements, float) else numbers[-1]
        x = merge(x, Moments(numbers[:rows], numbers[rows : 2 * rows], elements))
    return x


OPERATIONS = {"softmax": Softmax, "rmsnorm": RmsNorm, "layernorm": LayerNorm}

# --------------------------------------------------------------------------------------------------------- kernels


def rows_kernel(x: cute.Tensor, w: Any, b: Any, y: cute.Tensor, plan: cute.Constexpr[Plan]):
    """Work on the rows of this block."""
    memory = RowMemory(plan, Sharing(plan), x, [v for v in (w, b) if v is not None], y)
    if plan.op == "sum":
        sum_rows(memory)
    elif plan.config.stages > 1:
        in_turn(memory)
    else:
        at_once(memory)


def sum_rows(memory: RowMemory) -> None:
    """Write the sum of a row; nothing of it is kept."""
    plan, sharing = memory.plan, memory.sharing
    source, exists = memory.existing(sharing.row) if plan.config.rows > 1 else (sharing.row, True)
    begin, total = memory.begin(memory.x, source), None
    if plan.rounds:
        # Many vectors are under way at once; each of four sums has every fourth element.
        fours = cute.full(min(4, STREAM * plan.width), 0.0, cute.Float32)
        for i in range(plan.rounds):
            values = memory.registers(STREAM)
            under_way = memory.chunks(begin + i * (STREAM * plan.step), 0, STREAM)
            cute.autovec_copy(under_way, memory.in_registers(values, 0, STREAM))
            groups = grouped(values)
            for k in range(groups.shape[1]):
                fours = fours + wide(groups[None, k].load())
        total = fours.sum()
        begin = begin + plan.rounds * STREAM * plan.step
    if plan.count:
        rest = combined(memory.load(begin, 0, plan.count), add, wide)
        total = rest if total is None else total + rest
    # By shuffles: the sum of the warp, then of the row; all lanes have it.
    sums = Sums(memory, [])
    (total,) = sharing.exchange(sums, sums.over_lanes([total], sharing.lanes))
    if sharing.thread == 0 and exists:
        memory.y[sharing.row] = total.to(memory.dtype)


def at_once(memory: RowMemory) -> None:
    """Work on the rows of this block; all that is loaded of them is under way at once."""
    plan, c, first = memory.plan, memory.config, memory.sharing.row
    numbers = [first * c.together + i for i in range(c.together)]
    existing = [memory.existing(row) if c.rows * c.together > 1 else (row, True) for row in numbers]
    begins = [memory.begin(memory.x, source) for source, _ in existing]
    slots = memory.make_slots(c.together) if plan.far else [None] * c.together
    for begin, slot in zip(begins, slots):
        for start, count in plan.groups:
            memory.fetch(begin, slot, start, count)
            cute.arch.cp_async_commit_group()
    lines: list[Line] = []
    for i, (row, (_, exists), begin, slot) in enumerate(zip(numbers, existing, begins, slots)):
        near = plan.count - plan.far
        values = memory.load(begin, plan.far, near) if near else None
        lines.append(Line(row, exists, slot, values, plan.far, (c.together - i) * len(plan.groups)))
    work(memory, lines)


def in_turn(memory: RowMemory) -> None:
    """Work on this block's rows; while it works on one, the next ones come into other slots of shared memory."""
    plan, c, first, rows = memory.plan, memory.config, memory.sharing.row, memory.x.shape[0]
    memory.hold_weights()
    memory.make_slots(c.stages)
    step = cute.arch.grid_dim().x // c.cluster

    def fetch(row: Any, slot: Any) -> None:
        if row < rows:
            memory.fetch(memory.begin(memory.x, row), memory.slot(slot), 0, plan.count)
        cute.arch.cp_async_commit_group()

    for i in cute.range_constexpr(c.stages - 1):
        fetch(first + step * i, i)
    if c.cluster > 1:
        cute.arch.cluster_wait()
    slot, turn = cute.Int32(0), cute.Int32(0)
    for row in range(first, rows, step):
        last = slot + (c.stages - 1)
        fetch(row + step * (c.stages - 1), cute.where(last >= c.stages, last - c.stages, last))
        # All groups but the latest have arrived: this row is there, as far as this thread reads it.
        cute.arch.cp_async_wait_group(c.stages - 1)
        work(memory, [Line(row, True, memory.slot(slot), None, plan.far)], Turn(turn & 1, turn >> 1 & 1))
        slot, turn = cute.where(slot + 1 == c.stages, 0, slot + 1), turn + 1


def work(memory: RowMemory, lines: list[Line], turn: Turn | None = None) -> None:
    """Do the operation on the rows at hand: reduce, exchange, write."""
    plan = memory.plan
    operation = OPERATIONS[plan.op](memory, lines)
    numbers = operation.of_warp()
    weights = [memory.weights_of(*span) for span in plan.spans[: plan.early]]
    operation.of_row(memory.sharing.exchange(operation, numbers, turn))
    memory.write(operation.lines, operation.element, weights)


# ------------------------------------------------------------------------------------------------------------ host


@cute.jit
def launch(x: cute.Tensor, w: Any, b: Any, y: cute.Tensor, plan: cute.Constexpr[Plan], sms: cute.Constexpr[int]):
    """Launch as many blocks as the rows need, or as the GPU holds where they work on rows in turn.

    ``w`` and ``b``: weights, None where the operation has none.
    """
    c, rows = plan.config, x.shape[0]
    assert y.shape[0] == rows, "y must have as many rows as x"
    grid = cute.ceil_div(rows, c.rows * c.together)
    if c.stages > 1:
        grid = cute.min(grid, plan.clusters(sms))
    sizes = {"grid": grid * c.cluster, "block": c.block, "cluster": c.cluster}
    one = Plan(plan.op, plan.element, plan.n, c, 1, plan.eps)
    if plan.width == 1:
        kernel_of(one)(x, w, b, y, one).launch(**sizes)
        return
    matrix, vector, align = f"(?,{plan.n}):(?{{div={plan.width}}},1)", f"({plan.n}):(1)", plan.bits // 8
    vx = cute.promise(x, matrix, align)
    vw, vb = (None if v is None else cute.promise(v, vector, align) for v in (w, b))
    vy = y if plan.op == "sum" else cute.promise(y, matrix, align)
    kernel_of(plan)(vx, vw, vb, vy, plan).launch(**sizes, fallback=kernel_of(one)(x, w, b, y, one))


def kernel_of(plan: Plan) -> Any:
    """Return the kernel of a plan, which says how many registers it may have."""
    name = f"{plan.op}_v" if plan.width > 1 else plan.op
    return cute.kernel(min_blocks=plan.min_blocks, name=name)(rows_kernel)


def row_program(
    op: str, element: str = "f32", n: int = 1024, config: RowConfig | None = None, *, eps: float = 1e-5, sms: int = 132
) -> cute.Compiled:
    """Return ``sum``, ``softmax``, ``rmsnorm`` or ``layernorm`` over rows of ``n`` elements, to be called.

    ``sum(x, y)`` with ``y`` of one element a row; ``softmax(x, y)``; ``rmsnorm(x, w, y)``: ``x / rms(x) * w``;
    ``layernorm(x, w, b, y)``: ``(x - mean) / deviation * w + b``, where ``w`` and ``b`` have ``n`` elements.  ``eps``
    is added to the mean square and the variance.  All tensors have the same element type, sums are ``f32``.
    ``sms``: how many SMs the GPU has, where a block works on more than one row.
    Raises ValueError for a configuration that does not fit.
    """
    config = default_config(op, element, n) if config is None else config
    check(op, element, n, config)
    dtype = type_of_mlir(element)
    matrix, vector, column = (cute.Tensor[dtype, of] for of in (f"(?,{n}):(?,1)", f"({n}):(1)", "(?):(1)"))
    w, b = (vector if WEIGHTS[op] > i else None for i in range(2))
    plan = Plan(op, element, n, config, vector_width(element, n), eps)
    return cute.trace(launch, matrix, w, b, column if op == "sum" else matrix, plan, sms)


def row_text(
    op: str, element: str = "f32", n: int = 1024, config: RowConfig | None = None, *, eps: float = 1e-5, sms: int = 132
) -> str:
    """Return the kernels and host function of :func:`row_program` as text.

    >>> text = row_text("softmax", "f16", 1000)
    >>> "gpu.func @softmax_v" in text      # rows of whole vectors; @softmax takes any row stride
    True
    """
    return row_program(op, element, n, config, eps=eps, sms=sms).mlir(aliases=True, comments=True)
