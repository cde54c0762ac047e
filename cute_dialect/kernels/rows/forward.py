"""Row kernels: softmax, log-softmax, RMSNorm and LayerNorm over the rows of a matrix, and softmax gradients.

The number of rows, their length and their stride are dynamic. A kernel is compiled for a class of row lengths
(:mod:`.config`). A row is read and written once; in between it is in registers, in shared memory, or in both
(:mod:`.memory`). A row is shared by some lanes of a warp, a warp, a block, or a cluster (:mod:`.sharing`). An
operation of this module defines the reduction, how partial results are combined, and the resulting elements.

Each program has two kernels with one body: ``softmax_v`` for rows of whole aligned vectors, and ``softmax`` for rows
with any alignment.

    softmax = row_program("softmax", "f16", 1000)
    softmax(x, y)                       # torch tensors or others, of any number of rows of about 1000 elements
    layernorm = row_program("layernorm", "bf16", 4096)
    layernorm(x, w, b, y, 1e-5)         # w and b have as many elements as a row
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

import functools
from math import inf
from typing import Any, ClassVar

import cute_dialect.lang as cute
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.rows.config import Plan, RowConfig, capacity, check, has_two, row_class
from cute_dialect.kernels.rows.memory import Line, Place, RowMemory, combined, mapped, part
from cute_dialect.kernels.rows.sharing import Sharing
from cute_dialect.lang.values.dtypes import type_of_mlir

LOG2_E = 1.4426950408889634
LN_2 = 0.6931471805599453
LOWEST = -3.4028234663852886e38
"""The smallest finite ``f32``. Unlike minus infinity it can be subtracted from itself."""


def add(x: Any, y: Any) -> Any:
    return x + y


def tree(items: list[Any], combine: Any) -> Any:
    """Reduce a list of items as a balanced tree."""
    while len(items) > 1:
        pairs = [combine(x, y) for x, y in zip(items[::2], items[1::2])]
        items = [*pairs, *items[2 * len(pairs) :]]
    return items[0]


def wide(x: Any) -> Any:
    """Convert a number or a vector to ``f32``."""
    return x.to(cute.Float32)


def same(x: Any) -> Any:
    """Return the operand."""
    return x


def where_mine(mine: Any, x: Any) -> Any:
    """Return a number if ``mine``, else 0. ``mine`` is True at compile time if the thread always has it."""
    return x if isinstance(mine, bool) else cute.where(mine, x, 0.0)


def pivot_of(x: Any, most: float = -LOWEST) -> Any:
    """Return the pivot of a row: its first element, or 0 if that exceeds ``most``.

    Reductions use distances from the pivot. They are 0 for equal elements, whose mean is then exact. Infinities and
    NaNs propagate through the distances.
    """
    x = wide(x)
    return cute.where((x <= most) & (x >= -most), x, 0.0)


def deviations(squares: Any, of_mean: Any) -> Any:
    """Return squared deviations minus the part due to the mean. They are infinite if the squares overflow."""
    return cute.where(squares == inf, squares, squares - of_mean)


def power(x: Any, m: Any) -> Any:
    return cute.math.exp2((x - m) * LOG2_E, fastmath=True)


# ------------------------------------------------------------------------------------------------------ operations


class Sums:
    """Base class of operations: sums over the rows of a thread. Partial results are added.

    An operation also defines ``of_warp``, the partial results of this warp, and ``of_row``, which takes the results of
    the rows. ``over_lanes`` and ``merged`` combine partial results, and ``element`` computes elements of the result.
    """

    # Optional operands: weights (w) and a bias (b) of a row's length, a residual (r), which is added first, the
    # gradient of a result as rows (d) or as one number per row (g).
    OPERANDS: ClassVar[str] = ""
    PADDING: ClassVar[float] = 0.0  # value of elements past the end of a row

    def __init__(self, memory: RowMemory, lines: list[Line], eps: Any = None):
        self.memory, self.lines, self.eps = memory, lines, eps
        self.plan, self.lanes = memory.plan, memory.sharing.lanes

    def neutral(self, count: int) -> list[Any]:
        """Return identity elements of the reduction."""
        return [0.0] * count

    def over_lanes(self, numbers: list[Any], lanes: int, threads: int = 1) -> list[Any]:
        """Combine partial results over groups of lanes."""
        return [cute.arch.warp_reduction(x, add, lanes) for x in numbers]

    def merged(self, lists: list[list[Any]]) -> list[Any]:
        """Combine several lists of partial results."""
        return [tree(list(x), add) for x in zip(*lists)]

    def weighted(self, x: Any, w: list[Any]) -> Any:
        """Multiply elements by the weights and add the biases, as the operation takes them."""
        x = x * w[0] if "w" in self.plan.takes else x
        return x + w[-1] if "b" in self.plan.takes else x


class RmsNorm(Sums):
    """``x / sqrt(mean square + eps) * w``."""

    OPERANDS = "wr"

    def of_warp(self) -> list[Any]:
        """Return the sum of squares of each row."""

        def square(v: Any) -> Any:
            return wide(v) * wide(v)

        def total(line: Line) -> Any:
            parts = [self.memory.arrived(line, i) for i in range(len(self.plan.parts))]
            parts = parts if line.edges is None else [*parts, line.edges]
            return functools.reduce(add, [combined(x, add, square) for x in parts])

        return self.over_lanes([total(line) for line in self.lines], self.lanes)

    def of_row(self, numbers: list[Any]) -> None:
        """Set the statistics of the rows from their sums of squares."""
        share = 1.0 / wide(self.memory.n)
        self.by = [cute.arch.rsqrt_approx(x * share + self.eps) for x in numbers]

    def element(self, i: int, v: Any, w: list[Any]) -> Any:
        """Return normalized elements of row ``i``."""
        return self.weighted(v * self.by[i], w)


class Softmax(Sums):
    """``e^(x - m) / sum``. Each warp has its own maximum ``m`` until the exchange of (maximum, sum)."""

    PADDING = -inf

    keeps = True
    """Keep the exponentials if registers allow."""

    def of_warp(self) -> list[Any]:
        """Return the maximum and the sum of exponentials relative to it."""
        memory, (line,) = self.memory, self.lines
        parts, self.kept = len(self.plan.parts), False
        if self.plan.config.in_parts:
            # Online softmax: the running maximum and the sum relative to it, first per thread, then per warp.
            largest, total = cute.Float32(LOWEST), cute.Float32(0)
            for i in cute.range_constexpr(parts + (line.edges is not None)):
                x = memory.arrived(line, i) if i < parts else line.edges
                own = cute.max(largest, wide(combined(x, cute.max, same)))
                total = total * power(largest, own) + combined(x, add, lambda v, m=own: power(wide(v), m))
                largest = own
            self.largest = cute.arch.warp_reduction(largest, cute.max, self.lanes)
            total = total * power(largest, self.largest)
        else:
            own = wide(combined(memory.arrived(line, 0), cute.max, same))
            if line.edges is not None:
                own = cute.max(own, wide(combined(line.edges, cute.max, same)))
            # Clamp to a finite value, so that a warp of -inf does not produce NaN. A NaN stays one.
            self.largest = cute.max(cute.arch.warp_reduction(own, cute.max, self.lanes), LOWEST)
            x = memory.read(line, 0, self.plan.chunks)
            edges = line.edges
            if self.keeps and (line.shared == 0 or self.plan.spare):
                x = mapped(x, lambda v: power(v, self.largest))
                edges = None if edges is None else mapped(edges, lambda v: power(v, self.largest))
                self.lines, self.kept = [line._replace(values=x, edges=edges, shared=0)], True
                total = combined(x, add, same)
                total = total if edges is None else total + combined(edges, add, same)
            else:
                total = combined(x, add, lambda v: power(wide(v), self.largest))
                if edges is not None:
                    total = total + combined(edges, add, lambda v: power(wide(v), self.largest))
        return [self.largest, cute.arch.warp_reduction(total, add, self.lanes)]

    def neutral(self, count: int) -> list[Any]:
        """Return identity elements of the reduction."""
        return [LOWEST, 0.0]

    def over_lanes(self, numbers: list[Any], lanes: int, threads: int = 1) -> list[Any]:
        """Combine partial results over groups of lanes."""
        m = cute.arch.warp_reduction(numbers[0], cute.max, lanes)
        return [m, cute.arch.warp_reduction(numbers[1] * power(numbers[0], m), add, lanes)]

    def merged(self, lists: list[list[Any]]) -> list[Any]:
        """Combine several (maximum, sum) pairs."""
        m = tree([x[0] for x in lists], cute.max)
        return [m, tree([x[1] * power(x[0], m) for x in lists], add)]

    def of_row(self, numbers: list[Any]) -> None:
        """Set the statistics of the rows: maximum and sum."""
        self.m, self.by = numbers[0], cute.arch.rcp_approx(numbers[1])
        if self.kept and self.plan.config.warps > 1:
            self.by = power(self.largest, self.m) * self.by

    def element(self, i: int, v: Any, w: list[Any]) -> Any:
        """Return probabilities. Exponentials that were not kept are recomputed."""
        return (v if self.kept else power(v, self.m)) * self.by


class LogSoftmax(Softmax):
    """``x - m - log(sum of e^(x - m))``."""

    keeps = False

    def of_row(self, numbers: list[Any]) -> None:
        """Set the statistics of the rows: maximum and logarithm of the sum."""
        self.m, self.log = numbers[0], cute.arch.log2_approx(numbers[1]) * LN_2

    def element(self, i: int, v: Any, w: list[Any]) -> Any:
        """Return log-probabilities."""
        return v - self.m - self.log


class LayerNorm(Sums):
    """``(x - mean) / sqrt(variance + eps) * w + b``.

    Elements are relative to the row's pivot (:func:`pivot_of`). A thread accumulates the distances of its elements from
    the mean of its first vector, and their squares, which is accurate even for a large mean. A partial result is a sum
    and the squared deviations from its own mean (Chan, Golub, LeVeque 1979). The number of elements follows from the
    row length.
    """

    OPERANDS = "wbr"

    def __init__(self, memory: RowMemory, lines: list[Line], eps: Any = None):
        super().__init__(memory, lines, eps)
        self.pivots = [pivot_of(memory.first_element(line.place)) for line in lines]

    def of_warp(self) -> list[Any]:
        """Return the partial results of each row."""
        found: list[Any] = []
        for line, pivot in zip(self.lines, self.pivots):
            total, squares, elements = self.of_thread(line, pivot)
            found += self._over(line.place, [total, squares], elements, self.lanes, 1)
        return found

    def of_thread(self, line: Line, pivot: Any) -> list[Any]:
        """Return the partial results of this thread for a row, and the number of elements. Padding takes no part."""
        plan, memory, w = self.plan, self.memory, self.plan.width
        last, has = plan.chunks - 1, memory.has_last(line.place)
        near, base, from_near, squares = None, None, cute.Float32(0), cute.Float32(0)
        for i in range(len(plan.parts)):
            memory.arrived(line, i)  # wait for the part
            for start, count, mine in memory.pieces(line.place, *plan.parts[i]):
                x = memory.read(line, start, count)
                if near is None:
                    near = self.near(part(x, 0, w), mine, line, pivot)
                    base = pivot + near
                    near = base - pivot  # as rounded by the addition to the pivot
                one = combined(x, add, lambda v, base=base: wide(v) - base)
                two = combined(x, add, lambda v, base=base: (wide(v) - base) * (wide(v) - base))
                from_near += where_mine(mine, one)
                squares += where_mine(mine, two)
        elements = cute.where(has, float((last + 1) * w), float(last * w))
        for j, (_, mine) in enumerate(line.place.edges):
            far = wide(line.edges[j]) - base
            from_near += cute.where(mine, far, 0.0)
            squares += cute.where(mine, far * far, 0.0)
            elements += cute.where(mine, 1.0, 0.0)
        by = cute.arch.rcp_approx(cute.max(elements, 1.0))
        return [near * elements + from_near, deviations(squares, from_near * by * from_near), elements]

    def near(self, first: cute.Tensor, mine: Any, line: Line, pivot: Any) -> Any:
        """Return the mean of a thread's first vector minus the pivot; without a vector, that of its first edge, or
        0.
        """
        mean = combined(first, add, lambda v: wide(v) - pivot) * (1.0 / self.plan.width)
        if isinstance(mine, bool) or line.edges is None:
            return mean
        of_edge = cute.where(line.place.edges[0][1], wide(line.edges[0]) - pivot, 0.0)
        return cute.where(mine, mean, of_edge)

    def elements(self, place: Place, first: Any, threads: int) -> Any:
        """Return the number of row elements of ``threads`` threads from thread ``first`` on."""
        plan = self.plan
        last = plan.chunks - 1
        tail = place.vectors - last * plan.config.sharing - first
        vectors = last * threads + cute.max(cute.min(tail, threads), 0)
        count = vectors * plan.width
        if place.edges:  # the first threads have the edges
            count = count + cute.where(first == 0, self.memory.n - place.vectors * plan.width, 0)
        return wide(count)

    def over_lanes(self, numbers: list[Any], lanes: int, threads: int = 1) -> list[Any]:
        """Combine partial results over groups of lanes. Lane ``i`` has those of the ``i``-th group of ``threads``
        threads.
        """
        sharing, found = self.memory.sharing, []  # type: ignore[var-annotated]
        begin = 0 if threads == self.plan.config.threads else sharing.rank * self.plan.config.threads
        column = sharing.lane if lanes >= 32 else sharing.lane % lanes
        for i, line in enumerate(self.lines):
            count = self.elements(line.place, begin + column * threads, threads)
            if threads < self.plan.config.threads:  # lanes past the last warp have no elements
                count = cute.where(column * threads < self.plan.config.threads, count, 0.0)
            found += self._over(line.place, numbers[2 * i : 2 * i + 2], count, lanes, threads)
        return found

    def _over(self, place: Place, numbers: list[Any], count: Any, lanes: int, threads: int) -> list[Any]:
        """Combine partial results over groups of lanes. Each lane has those of ``count`` elements of ``threads``
        threads.
        """
        total, squares = numbers
        if lanes == 1:
            return numbers
        sharing, plan = self.memory.sharing, self.plan
        together = min(lanes * threads, plan.config.sharing)
        if threads == 1:
            first = sharing.thread // together * together
        else:
            together = plan.config.sharing if threads == plan.config.threads else plan.config.threads
            first = 0 if threads == plan.config.threads else sharing.rank * plan.config.threads
        own = total * cute.arch.rcp_approx(cute.max(count, 1.0))
        total = cute.arch.warp_reduction(total, add, lanes)
        elements = self.elements(place, first, together)
        far = own - total * cute.arch.rcp_approx(cute.max(elements, 1.0))
        return [total, cute.arch.warp_reduction(squares + far * count * far, add, lanes)]

    def of_row(self, numbers: list[Any]) -> None:
        """Set the statistics of the rows from the reduced results."""
        share = 1.0 / wide(self.memory.n)
        far = [x * share for x in numbers[::2]]
        self.means = [pivot + x for pivot, x in zip(self.pivots, far)]
        self.by = [cute.arch.rsqrt_approx(cute.max(x * share, 0.0) + self.eps) for x in numbers[1::2]]
        # The mean is rounded. If all elements are close to it, the rounding error is not small compared with their
        # deviations, so it is subtracted as well.
        errors = [x - (mean - pivot) for x, mean, pivot in zip(far, self.means, self.pivots)]
        self.shifts = [0.0 - error * by for error, by in zip(errors, self.by)]

    def element(self, i: int, v: Any, w: list[Any]) -> Any:
        """Return normalized elements of row ``i``."""
        return self.weighted(cute.math.fma(v - self.means[i], self.by[i], self.shifts[i]), w)


class SoftmaxBackward(Sums):
    """``y (dy - sum of y dy)``, from the result ``y`` of softmax and its gradient."""

    OPERANDS = "d"

    def of_warp(self) -> list[Any]:
        """Return the sum over the row."""
        (line,) = self.lines
        total = self.of_both(line.values, line.second)
        total = total if line.edges is None else total + self.of_both(line.edges, line.second_edges)
        return self.over_lanes([total], self.lanes)

    def of_both(self, y: cute.Tensor, d: cute.Tensor) -> Any:
        """Return the sum over some elements, in groups."""
        n = cute.size(y)
        group = min(4, n & -n)
        total = None
        for at in cute.range_constexpr(0, n, group):
            found = self.term(wide(part(y, at, group).load()), wide(part(d, at, group).load()))
            total = found if total is None else total + found
        return total.sum()

    def term(self, y: Any, d: Any) -> Any:
        """Return the term of the sum."""
        return y * d

    def of_row(self, numbers: list[Any]) -> None:
        """Set the sum of the row."""
        (self.total,) = numbers

    def element(self, i: int, v: Any, w: list[Any]) -> Any:
        """Return elements of the gradient."""
        return v * (w[-1] - self.total)


class LogSoftmaxBackward(SoftmaxBackward):
    """``dy - e^y sum of dy``, from the result ``y`` of log_softmax and its gradient."""

    def term(self, y: Any, d: Any) -> Any:
        """Return the term of the sum."""
        return d

    def element(self, i: int, v: Any, w: list[Any]) -> Any:
        """Return elements of the gradient."""
        return w[-1] - power(v, 0.0) * self.total


class LogSumBackward(Softmax):
    """``g softmax(x)``, the gradient of ``logsumexp``, from the gradient ``g`` of a row's result.

    If an element is plus infinity, the gradient is NaN there and 0 at finite elements, as in torch.
    """

    OPERANDS = "g"

    def of_row(self, numbers: list[Any]) -> None:
        """Set the statistics of the row: maximum, and gradient divided by the sum."""
        self.m, total = numbers
        g = self.memory.number(self.lines[0].place)
        self.by = cute.where(self.m == inf, g, cute.arch.rcp_approx(total) * g)
        if self.kept and self.plan.config.warps > 1:
            scaled = power(self.largest, self.m) * self.by
            self.by = cute.where(self.largest == self.m, self.by, scaled)


class MaxBackward(Sums):
    """``g / count`` at the maxima of a row and 0 at other elements, from the gradient ``g`` of the maximum.

    A partial result is a maximum and the number of elements that are equal to it. A row with NaN has NaN gradients.
    """

    OPERANDS, PADDING = "g", -inf

    def of_warp(self) -> list[Any]:
        """Return the maximum and its count, first per thread and part, then over the warp."""
        memory, (line,) = self.memory, self.lines
        largest, count = cute.Float32(-inf), cute.Float32(0)
        for i in range(len(self.plan.parts)):
            x = memory.arrived(line, i)
            own = cute.max(largest, wide(combined(x, cute.max, same)))
            count, largest = cute.where(largest == own, count, 0.0), own
            for start, chunks, mine in memory.pieces(line.place, *self.plan.parts[i]):
                x = memory.read(line, start, chunks)
                count += where_mine(mine, combined(x, add, lambda v, m=own: equal(wide(v), m)))
        for j, (_, mine) in enumerate(line.place.edges):
            x = wide(line.edges[j])
            own = cute.max(largest, x)  # edges that this thread lacks are -inf
            count = cute.where(largest == own, count, 0.0) + cute.where(mine & (x == own), 1.0, 0.0)
            largest = own
        return self.over_lanes([largest, count], self.lanes)

    def neutral(self, count: int) -> list[Any]:
        """Return identity elements of the reduction."""
        return [-inf, 0.0]

    def over_lanes(self, numbers: list[Any], lanes: int, threads: int = 1) -> list[Any]:
        """Combine partial results over groups of lanes."""
        m = cute.arch.warp_reduction(numbers[0], cute.max, lanes)
        return [m, cute.arch.warp_reduction(cute.where(numbers[0] == m, numbers[1], 0.0), add, lanes)]

    def merged(self, lists: list[list[Any]]) -> list[Any]:
        """Combine several (maximum, count) pairs."""
        m = tree([x[0] for x in lists], cute.max)
        return [m, tree([cute.where(x[0] == m, x[1], 0.0) for x in lists], add)]

    def of_row(self, numbers: list[Any]) -> None:
        """Set the statistics of the row: maximum, and gradient divided by the count."""
        self.m = numbers[0]
        self.share = self.memory.number(self.lines[0].place) / numbers[1]

    def element(self, i: int, v: Any, w: list[Any]) -> Any:
        """Return elements of the gradient. ``share`` is NaN for a row with NaN, and then so are all elements."""
        return equal(v, self.m) * self.share


def equal(x: Any, y: Any) -> Any:
    """Return 1 where elements are equal, else 0, in ``f32``."""
    return cute.where(x == y, 1.0, 0.0)


OPERATIONS = {"softmax": Softmax, "log_softmax": LogSoftmax, "rmsnorm": RmsNorm, "layernorm": LayerNorm}
OPERATIONS |= {"softmax_backward": SoftmaxBackward, "log_softmax_backward": LogSoftmaxBackward}
OPERATIONS |= {"max_backward": MaxBackward, "logsumexp_backward": LogSumBackward}


def operands_of(op: str) -> str:
    """Return the optional operands of an operation.  Raises ValueError for an unknown one."""
    if op not in OPERATIONS:
        raise ValueError(f"operation '{op}' is not supported; use one of {', '.join(OPERATIONS)}")
    return OPERATIONS[op].OPERANDS


# --------------------------------------------------------------------------------------------------------- kernels


def rows_kernel(x: cute.Tensor, r: Any, w: Any, b: Any, y: cute.Tensor, s: Any, eps: Any, plan: cute.Constexpr[Plan]):
    """Process the rows of this block. All loads of a row are in flight at once."""
    memory = RowMemory(plan, Sharing(plan.config, plan.messages), x, [v for v in (w, b) if v is not None], y)
    memory.neutral = OPERATIONS[plan.op].PADDING
    memory.added = r if "r" in plan.takes else None
    if "g" in plan.takes:
        memory.of_rows, r = r, None
    c, first = plan.config, memory.sharing.row
    places = [memory.place(first * c.together + i) for i in range(c.together)]
    slots = memory.make_slots(places) if plan.shared else [None] * c.together
    for place, slot in zip(places, slots):
        for start, count in plan.groups:
            memory.fetch(place, slot, start, count)
            cute.arch.cp_async_commit_group()
    lines: list[Line] = []
    for i, (place, slot) in enumerate(zip(places, slots)):
        near, coming = plan.chunks - plan.shared, (c.together - i) * len(plan.groups)
        values = memory.load(x, place, plan.shared, near) if near else None
        edges, more, more_edges = memory.load_edges(x, place), None, None
        if r is not None:
            more, more_edges = memory.load(r, place, 0, near, alike=memory.alike(r, place)), memory.load_edges(r, place)
        if "r" in plan.takes:
            add_to(values, more)
            memory.store(s, place, values, 0, near)
            if edges is not None:
                add_to(edges, more_edges)
                memory.store_edges(s, place, edges)
            more, more_edges = None, None
        lines.append(Line(place, slot, values, edges, plan.shared, coming, more, more_edges))
    operation = OPERATIONS[plan.op](memory, lines, eps)
    numbers = operation.of_warp()
    weights = [memory.weights_of(places[0], *span) for span in plan.spans[: plan.early]]
    operation.of_row(memory.sharing.exchange(operation, numbers))
    if plan.whole:
        memory.write(operation.lines, operation.element, weights)
    else:  # rows with different alignment need different weights
        for i, line in enumerate(operation.lines):
            memory.write([line], lambda _, v, w, i=i: operation.element(i, v, w), [])


def add_to(values: cute.Tensor, more: cute.Tensor) -> None:
    """Add registers in ``f32``."""
    values.store((wide(values.load()) + wide(more.load())).to(values.element_type))


# ------------------------------------------------------------------------------------------------------------ host


@cute.jit
def launch(
    x: cute.Tensor, r: Any, w: Any, b: Any, y: cute.Tensor, s: Any, eps: cute.Float32 | None, plan: cute.Constexpr[Plan]
):
    """Launch as many blocks as the rows need.

    Args:
        x, y: The matrix and the result.
        r: A second matrix: a residual, which is added to ``x`` into ``s`` first, or a gradient. For gradients of one
            number per row it is a vector.
        w, b: Weights and biases, or None if the operation does not take them.
        s: ``x + r``.
        eps: Added to the mean square or variance.
        plan: The plan.
    """
    c, (rows, n) = plan.config, x.shape
    held = capacity(plan.element, c)
    assert y.shape[0] == rows, "y must have as many rows as x"
    assert y.shape[1] == n, "y must have rows as long as those of x"
    assert n >= held.start, f"the kernel is for rows of {held.start} to {held.stop - 1} elements"
    assert n < held.stop, f"the kernel is for rows of {held.start} to {held.stop - 1} elements"
    sizes = {"grid": cute.ceil_div(rows, c.rows * c.together) * c.cluster, "block": c.block, "cluster": c.cluster}
    anywhere = Plan(plan.op, plan.element, c, plan.takes, whole=False)
    second = r if has_two(plan.takes) else None
    vx, vr, vy, vs = (None if m is None else cute.promise_vectors(m, plan.width) for m in (x, second, y, s))
    kernel_of(plan)(vx, r if second is None else vr, w, b, vy, vs, eps, plan).launch(
        **sizes, fallback=kernel_of(anywhere)(x, r, w, b, y, s, eps, anywhere)
    )


def kernel_of(plan: Plan) -> Any:
    """Return the kernel of a plan, with its register limit."""
    name = f"{plan.op}_v" if plan.whole else plan.op
    return cute.kernel(min_blocks=plan.resident, name=name)(rows_kernel)


def row_program(
    op: str, element: str = "f32", n: int = 1024, config: RowConfig | None = None, *, takes: str | None = None
) -> cute.Compiled:
    """Compile an operation of :data:`OPERATIONS` for the class of rows of ``n`` elements.

    The program is called as ``program(x, r, w, b, y, s, eps)`` without those that it does not take. ``w`` and ``b``
    have as many elements as a row, and 16-byte aligned addresses. With a residual ``r``, the norm is that of ``s = x +
    r``. All tensors have the same element type, and sums are ``f32``. Gradients are ``softmax_backward(y, dy, dx)``,
    ``log_softmax_backward``, ``max_backward(x, dy, dx)`` with a number of ``dy`` per row, and ``logsumexp_backward``.

    Args:
        op: The operation.
        element: The element type.
        n: A row length.
        config: The configuration, by default that of :func:`row_class`.
        takes: Optional arguments of a norm, of ``"wbr"``; by default all but the residual.

    Raises:
        ValueError: if the configuration does not fit.
    """
    takes = operands_of(op).replace("r", "") if takes is None else takes
    if not set(takes) <= set(operands_of(op)):
        raise ValueError(f"{op}: operands '{takes}' are not supported; use some of '{operands_of(op)}'")
    config = row_class(op, element, n, takes) if config is None else config
    check(op, element, config, takes)
    dtype = type_of_mlir(element)
    matrix, vector = cute.Tensor[dtype, "(?,?):(?,1)"], cute.Tensor[dtype, "(?):(1)", "align<16>"]
    w, b = (vector if x in takes else None for x in "wb")
    r, s = matrix if has_two(takes) else None, matrix if "r" in takes else None
    r = cute.Tensor[dtype, "(?):(?)"] if "g" in takes else r
    eps = cute.Float32 if "norm" in op else None
    return cute.trace(launch, matrix, r, w, b, matrix, s, eps, Plan(op, element, config, takes))


@printed
def row_text(
    op: str, element: str = "f32", n: int = 1024, config: RowConfig | None = None, *, takes: str | None = None
) -> cute.Compiled:
    """Trace the kernels and host function of :func:`row_program`.

    >>> text = row_text("softmax", "f16", 1000)
    >>> "gpu.func @softmax_v" in text      # rows of whole vectors; @softmax takes rows that begin anywhere
    True
    """
    return row_program(op, element, n, config, takes=takes)
