"""Row functions and gradients for rows of any length: statistics of all rows first, then all elements.

Rows that fit the registers and shared memory of a cluster have faster kernels (:mod:`.forward`, :mod:`.gradients`).
Here no element is kept. The first launch reduces slices of rows to partial results, which it writes to ``parts``. The
second one combines the partial results of a row, reads the elements again and writes the results. Gradients of weights
and biases are summed over groups of rows, and added up by :mod:`cute_dialect.kernels.epilogue.reductions`.

    plan = StreamedPlan("softmax", "f16")
    columns = plan.part_columns(splits=4)        # parts: f32, (rows, columns)
    statistics(x, parts)
    elements(x, y, parts)

Rows of whole aligned vectors are read in vectors of 16 bytes, others element by element.
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalOperand=false
# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false

from math import inf
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.rows.config import RowConfig, width
from cute_dialect.kernels.rows.forward import LN_2, LOWEST, MaxBackward, Softmax, add, equal, pivot_of, power, wide
from cute_dialect.kernels.rows.gradients import LayerGradient, RmsGradient, as_matrix, part_stride
from cute_dialect.kernels.rows.memory import part
from cute_dialect.kernels.rows.sharing import Sharing
from cute_dialect.lang.values.dtypes import type_of_mlir

THREADS, AT_ONCE = 512, 2
"""Threads of a block, and vectors that each of them loads at once, or as many elements as these have."""

GRADIENT_THREADS = 128
"""Threads of a block for gradients of norms. Each of them loads one vector of each matrix at once, because it also has
the accumulators of the weights' gradients."""

MOST_SPLITS = 32
"""Largest number of slices of a row: one per lane of the warp that combines them."""


class StreamedPlan:
    """Static parameters of the kernels: an operation, an element type and optional operands.

    ``takes`` has w and b for weights and a bias of a row's length, or for the gradients of these; r for a residual or
    the gradient of its sum; d for the gradient of a result; g for one number per row. ``whole`` rows consist of aligned
    vectors in all matrices.
    """

    def __init__(self, op: str, element: str, takes: str = "", whole: bool = True):
        self.op, self.element, self.takes, self.whole = op, element, takes, whole
        self.width = width(element) if whole else 1
        self.is_gradient = op.endswith("norm_backward")
        self.sums = sum(x in takes for x in "wb") if self.is_gradient else 0
        self.threads = GRADIENT_THREADS if self.is_gradient else THREADS
        self.at_once = (1 if self.is_gradient else AT_ONCE) * width(element) // self.width
        self.tile = self.threads * self.at_once  # vectors that a block processes at once

    def other(self) -> "StreamedPlan":
        """Return the plan for rows of any alignment."""
        return StreamedPlan(self.op, self.element, self.takes, whole=False)

    @property
    def columns(self) -> int:
        """Columns that a block processes at once."""
        return self.tile * self.width

    def part_columns(self, splits: int) -> int:
        """Return the columns of ``parts``: the partial results of each slice, and the pivot of the row."""
        return splits * OPERATIONS[self.op].numbers + 1


# ------------------------------------------------------------------------------------------------------ operations


class Streamed:
    """Base class of operations: partial results of one thread, how they are combined, and the elements."""

    numbers = 1
    """Numbers of a partial result."""

    def __init__(self, plan: StreamedPlan, pivot: Any):
        self.plan, self.pivot, self.total = plan, pivot, cute.Float32(0)

    def see(self, x: Any, d: Any) -> None:
        """Add elements, and the elements of the second matrix if there is one."""
        raise NotImplementedError

    def partial(self) -> list[Any]:
        """Return the partial results of this thread."""
        return [self.total]

    def neutral(self, count: int) -> list[Any]:
        """Return identity elements of the reduction."""
        return [0.0] * count

    def over_lanes(self, numbers: list[Any], lanes: int, threads: int = 1) -> list[Any]:
        """Combine partial results over groups of lanes."""
        return [cute.arch.warp_reduction(x, add, lanes) for x in numbers]

    def of_row(self, numbers: list[Any], share: Any, eps: Any, g: Any) -> None:
        """Set the statistics of a row. ``share`` is the reciprocal of its length, ``g`` its number."""
        raise NotImplementedError

    def weighted(self, x: Any, w: list[Any]) -> Any:
        """Multiply elements by the weights and add the biases, as the operation takes them."""
        x = x * w[0] if "w" in self.plan.takes else x
        return x + w[-1] if "b" in self.plan.takes else x

    def element(self, x: Any, d: Any, w: list[Any]) -> Any:
        """Return elements of the result."""
        raise NotImplementedError


class StreamedSoftmax(Streamed):
    """``e^(x - m) / sum`` from the running maximum and the sum of exponentials relative to it."""

    numbers = 2
    neutral, over_lanes = Softmax.neutral, Softmax.over_lanes

    def __init__(self, plan: StreamedPlan, pivot: Any):
        super().__init__(plan, pivot)
        self.largest = cute.Float32(LOWEST)

    def see(self, x: Any, d: Any) -> None:
        """Add exponentials. A larger maximum scales the sum down."""
        own = cute.max(self.largest, x.reduce(cute.max))
        self.total = self.total * power(self.largest, own) + power(x, own).sum()
        self.largest = own

    def partial(self) -> list[Any]:
        """Return the maximum and the sum of exponentials relative to it."""
        return [self.largest, self.total]

    def of_row(self, numbers: list[Any], share: Any, eps: Any, g: Any) -> None:
        """Set the maximum, and the reciprocal of the sum."""
        self.m, self.by = numbers[0], cute.arch.rcp_approx(numbers[1])

    def element(self, x: Any, d: Any, w: list[Any]) -> Any:
        """Return probabilities."""
        return power(x, self.m) * self.by


class StreamedLogSoftmax(StreamedSoftmax):
    """``x - m - log(sum of e^(x - m))``."""

    def of_row(self, numbers: list[Any], share: Any, eps: Any, g: Any) -> None:
        """Set the maximum, and the logarithm of the sum."""
        self.m, self.log = numbers[0], cute.arch.log2_approx(numbers[1]) * LN_2

    def element(self, x: Any, d: Any, w: list[Any]) -> Any:
        """Return log-probabilities."""
        return x - self.m - self.log


class StreamedLogSumBackward(StreamedSoftmax):
    """``g softmax(x)``; with an infinite element as :class:`~cute_dialect.kernels.rows.forward.LogSumBackward`."""

    def of_row(self, numbers: list[Any], share: Any, eps: Any, g: Any) -> None:
        """Set the maximum, and the gradient divided by the sum."""
        self.m = numbers[0]
        self.by = cute.where(self.m == inf, g, cute.arch.rcp_approx(numbers[1]) * g)


class StreamedMaxBackward(Streamed):
    """``g / count`` at the maxima of a row and 0 at other elements."""

    numbers = 2
    neutral, over_lanes = MaxBackward.neutral, MaxBackward.over_lanes

    def __init__(self, plan: StreamedPlan, pivot: Any):
        super().__init__(plan, pivot)
        self.largest = cute.Float32(-inf)

    def see(self, x: Any, d: Any) -> None:
        """Count elements that are equal to the maximum."""
        own = cute.max(self.largest, x.reduce(cute.max))
        self.total = cute.where(self.largest == own, self.total, 0.0) + equal(x, own).sum()
        self.largest = own

    def partial(self) -> list[Any]:
        """Return the maximum and the number of elements that are equal to it."""
        return [self.largest, self.total]

    def of_row(self, numbers: list[Any], share: Any, eps: Any, g: Any) -> None:
        """Set the maximum, and the gradient divided by the count."""
        self.m, self.share = numbers[0], g / numbers[1]

    def element(self, x: Any, d: Any, w: list[Any]) -> Any:
        """Return elements of the gradient."""
        return equal(x, self.m) * self.share


class StreamedSoftmaxBackward(Streamed):
    """``y (dy - sum of y dy)``, from the result ``y`` of softmax and its gradient."""

    def see(self, x: Any, d: Any) -> None:
        """Add terms of the sum."""
        self.total = self.total + (x * d).sum()

    def of_row(self, numbers: list[Any], share: Any, eps: Any, g: Any) -> None:
        """Set the sum of the row."""
        self.of_d = numbers[0]

    def element(self, x: Any, d: Any, w: list[Any]) -> Any:
        """Return elements of the gradient."""
        return x * (d - self.of_d)


class StreamedLogSoftmaxBackward(StreamedSoftmaxBackward):
    """``dy - e^y sum of dy``, from the result ``y`` of log_softmax and its gradient."""

    def see(self, x: Any, d: Any) -> None:
        """Add terms of the sum."""
        self.total = self.total + d.sum()

    def element(self, x: Any, d: Any, w: list[Any]) -> Any:
        """Return elements of the gradient."""
        return d - power(x, 0.0) * self.of_d


class StreamedRms(Streamed):
    """RMSNorm and its gradient: the sum of squares and, for the gradient, of ``g x`` with ``g = dy w``."""

    numbers = 2

    def __init__(self, plan: StreamedPlan, pivot: Any):
        super().__init__(plan, pivot)
        self.products = cute.Float32(0)

    def see(self, x: Any, d: Any) -> None:
        """Add the terms of elements."""
        self.total = self.total + (x * x).sum()
        if d is not None:
            self.products = self.products + (x * d).sum()

    def partial(self) -> list[Any]:
        """Return both sums."""
        return [self.total, self.products]

    of_gradient = RmsGradient.of_row

    def of_row(self, numbers: list[Any], share: Any, eps: Any, g: Any) -> None:
        """Set the statistics of the row."""
        self.eps = eps
        self.of_gradient(numbers, share)

    normed = RmsGradient.normed

    def element(self, x: Any, d: Any, w: list[Any]) -> Any:
        """Return normalized elements, or their gradient."""
        return self.weighted(self.normed(x), w) if d is None else RmsGradient.element(self, x, d)


class StreamedLayer(Streamed):
    """LayerNorm and its gradient. Elements are distances from the pivot of the row.

    A partial result has the five numbers of :class:`~cute_dialect.kernels.rows.gradients.LayerGradient`.
    """

    numbers = 5
    over_lanes = LayerGradient.over_lanes

    def __init__(self, plan: StreamedPlan, pivot: Any):
        super().__init__(plan, pivot)
        self.near, self.far, self.squares, self.count, self.products = [cute.Float32(0)] * 5

    def see(self, x: Any, d: Any) -> None:
        """Add distances from the mean of the thread's first vector, their squares, and those of the gradient."""
        x = x - self.pivot
        self.near = cute.where(self.count > 0, self.near, x.sum() * (1.0 / x.size))
        x = x - self.near
        self.far, self.squares = self.far + x.sum(), self.squares + (x * x).sum()
        self.count = self.count + float(x.size)
        if d is not None:
            self.total, self.products = self.total + d.sum(), self.products + (d * x).sum()

    def partial(self) -> list[Any]:
        """Return sums, and sums of products with the deviations from the mean of the thread's elements."""
        away = self.far * cute.arch.rcp_approx(cute.max(self.count, 1.0))
        squares = cute.where(self.squares == inf, self.squares, self.squares - self.far * away)
        return [self.near * self.count + self.far, squares, self.count, self.total, self.products - self.total * away]

    of_gradient = LayerGradient.of_row

    def of_row(self, numbers: list[Any], share: Any, eps: Any, g: Any) -> None:
        """Set the statistics of the row."""
        self.eps = eps
        self.of_gradient(numbers, share)

    def normed(self, x: Any) -> Any:
        """Return normalized elements, before weights and biases."""
        return (x - self.pivot - self.mean) * self.by

    def element(self, x: Any, d: Any, w: list[Any]) -> Any:
        """Return normalized elements, or their gradient."""
        return self.weighted(self.normed(x), w) if d is None else LayerGradient.element(self, x - self.pivot, d)


OPERATIONS: dict[str, type[Streamed]] = {
    "softmax": StreamedSoftmax, "log_softmax": StreamedLogSoftmax, "rmsnorm": StreamedRms, "layernorm": StreamedLayer,
    "softmax_backward": StreamedSoftmaxBackward, "log_softmax_backward": StreamedLogSoftmaxBackward,
    "rmsnorm_backward": StreamedRms, "layernorm_backward": StreamedLayer, "max_backward": StreamedMaxBackward,
    "logsumexp_backward": StreamedLogSumBackward,
}  # fmt: skip


# --------------------------------------------------------------------------------------------------------- kernels


def vector(tensor: cute.Tensor, row: Any, number: Any, plan: StreamedPlan) -> cute.Tensor:
    """Return one vector of a row."""
    begin = tensor[row, None].iterator + number * plan.width
    return cute.make_tensor(begin, cute.make_layout(plan.width))


def loaded(tensor: Any, row: Any, numbers: list[Any], count: Any, plan: StreamedPlan) -> cute.Tensor | None:
    """Load vectors of a row, with all loads in flight together. Vectors past ``count`` are zeros."""
    if tensor is None:
        return None
    values = cute.make_rmem_tensor(len(numbers) * plan.width, type_of_mlir(plan.element))
    values.fill(0.0)
    for i, number in enumerate(numbers):
        if number < count:
            cute.autovec_copy(vector(tensor, row, number, plan), part(values, i * plan.width, plan.width))
    return values


def numbers_of(values: cute.Tensor, i: int, plan: StreamedPlan) -> Any:
    """Return the ``i``-th vector of registers as ``f32``."""
    return wide(part(values, i * plan.width, plan.width).load())


def statistics_kernel(
    x: cute.Tensor, d: Any, w: Any, r: Any, s: Any, parts: cute.Tensor, plan: cute.Constexpr[StreamedPlan]
):
    """Reduce one slice of a row to a partial result, and write ``s = x + r`` with a residual ``r``."""
    cute.arch.griddepcontrol_launch_dependents()  # The kernel of the elements may start, and waits.
    sharing = Sharing(RowConfig(plan.threads))
    made = OPERATIONS[plan.op]
    splits = (parts.shape[1] - 1) // made.numbers
    row, split = sharing.row // splits, sharing.row % splits
    vectors = x.shape[1] // plan.width
    each = cute.ceil_div(vectors, splits)
    begin, end = split * each, cute.min((split + 1) * each, vectors)
    pivot = x[row, 0]
    if r is not None:
        pivot = (wide(pivot) + wide(r[row, 0])).to(x.element_type)
    pivot = pivot_of(pivot)
    operation, w = made(plan, pivot), as_matrix(w)
    for first in range(begin + sharing.tid, end, plan.tile):
        numbers = [first + i * plan.threads for i in range(plan.at_once)]
        values, of_d = loaded(x, row, numbers, end, plan), loaded(d, row, numbers, end, plan)
        of_r, of_w = loaded(r, row, numbers, end, plan), loaded(w, 0, numbers, end, plan)
        if of_r is not None:
            values.store((wide(values.load()) + wide(of_r.load())).to(values.element_type))
        for i, number in enumerate(numbers):
            if number < end:
                if of_r is not None:
                    cute.autovec_copy(part(values, i * plan.width, plan.width), vector(s, row, number, plan))
                factors = None if of_d is None else numbers_of(of_d, i, plan)
                if of_w is not None:
                    factors = factors * numbers_of(of_w, i, plan)
                operation.see(numbers_of(values, i, plan), factors)
    found = sharing.exchange(operation, operation.over_lanes(operation.partial(), 32))
    if sharing.tid == 0:
        for i, x in enumerate(found):
            parts[row, split * made.numbers + i] = x
        if split == 0:
            parts[row, splits * made.numbers] = pivot


def elements_kernel(
    x: cute.Tensor, d: Any, w: Any, b: Any, r: Any, g: Any, y: cute.Tensor, parts: cute.Tensor, sums: Any, groups: Any,
    eps: Any, plan: cute.Constexpr[StreamedPlan],
):  # fmt: skip
    """Compute one tile of columns of the rows of a group."""
    made, lane, tid, block = (
        OPERATIONS[plan.op],
        cute.arch.lane_idx(),
        cute.arch.thread_idx().x,
        cute.arch.block_idx().x,
    )
    splits, n, share = (parts.shape[1] - 1) // made.numbers, x.shape[1], 1.0 / wide(x.shape[1])
    vectors = n // plan.width
    tiles = cute.ceil_div(n, plan.columns)
    tile, group = block % tiles, block // tiles
    numbers = [tile * plan.tile + i * plan.threads + tid for i in range(plan.at_once)]
    of_w, of_b = (loaded(as_matrix(t), 0, numbers, vectors, plan) for t in (w, b))
    added = [cute.make_rmem_tensor(plan.at_once * plan.width, cute.Float32) for _ in range(plan.sums)]
    for total in added:
        total.fill(0.0)
    cute.arch.griddepcontrol_wait()  # for the statistics
    if plan.sums:
        cute.arch.griddepcontrol_launch_dependents()  # The kernel that combines the groups may start, and waits.
    for row in range(group, x.shape[0], groups):
        operation = made(plan, parts[row, splits * made.numbers])
        values, of_d, of_r = (loaded(t, row, numbers, vectors, plan) for t in (x, d, r))
        of_split = [parts[row, cute.min(lane, splits - 1) * made.numbers + i] for i in range(made.numbers)]
        neutral = operation.neutral(made.numbers)
        of_split = [cute.where(lane < splits, v, none) for v, none in zip(of_split, neutral)]
        operation.of_row(operation.over_lanes(of_split, 32), share, eps, None if g is None else wide(g[row]))
        for i, number in enumerate(numbers):
            e = numbers_of(values, i, plan)
            of_vectors = [numbers_of(t, i, plan) for t in (of_w, of_b) if t is not None]
            grad = None if of_d is None else numbers_of(of_d, i, plan)
            scaled = grad * of_vectors[0] if plan.is_gradient and of_w is not None else grad
            found = operation.element(e, scaled, of_vectors)
            if of_r is not None:
                found = found + numbers_of(of_r, i, plan)
            if number < vectors:
                if plan.is_gradient:
                    terms = [operation.normed(e) * grad] * ("w" in plan.takes) + [grad] * ("b" in plan.takes)
                    for total, term in zip(added, terms):
                        at = part(total, i * plan.width, plan.width)
                        at.store(at.load() + term)
                result = cute.make_rmem_tensor(plan.width, y.element_type)
                result.store(found.to(y.element_type))
                cute.autovec_copy(result, vector(y, row, number, plan))
    for k, total in enumerate(added):
        for i, number in enumerate(numbers):
            if number < vectors:
                begin = sums[group, None].iterator + (k * part_stride(n) + number * plan.width)
                begin = begin.align(16) if plan.whole else begin
                to = cute.make_tensor(begin, cute.make_layout(plan.width))
                cute.autovec_copy(part(total, i * plan.width, plan.width), to)


# ------------------------------------------------------------------------------------------------------------ host


@cute.jit
def launch_statistics(
    x: cute.Tensor, d: Any, w: Any, r: Any, s: Any, parts: cute.Tensor, plan: cute.Constexpr[StreamedPlan]
):
    """Launch one block for each slice of a row."""
    splits = (parts.shape[1] - 1) // OPERATIONS[plan.op].numbers
    sizes = {"grid": x.shape[0] * splits, "block": plan.threads}
    vx, vd, vr, vs = (None if t is None else cute.promise_vectors(t, plan.width) for t in (x, d, r, s))
    other = plan.other()
    _kernel(statistics_kernel, plan)(vx, vd, w, vr, vs, parts, plan).launch(
        **sizes, fallback=_kernel(statistics_kernel, other)(x, d, w, r, s, parts, other)
    )


@cute.jit
def launch_elements(
    x: cute.Tensor, d: Any, w: Any, b: Any, r: Any, g: Any, y: cute.Tensor, parts: cute.Tensor, sums: Any,
    groups: cute.Int32, eps: cute.Float32 | None, plan: cute.Constexpr[StreamedPlan],
):  # fmt: skip
    """Launch ``groups`` blocks for each tile of columns."""
    vx, vd, vr, vy = (None if t is None else cute.promise_vectors(t, plan.width) for t in (x, d, r, y))
    other, n = plan.other(), x.shape[1]
    sizes = {"grid": cute.ceil_div(n, plan.columns) * groups, "block": plan.threads, "pdl": True}
    _kernel(elements_kernel, plan)(vx, vd, w, b, vr, g, vy, parts, sums, groups, eps, plan).launch(
        **sizes, fallback=_kernel(elements_kernel, other)(x, d, w, b, r, g, y, parts, sums, groups, eps, other)
    )


def _kernel(function: Any, plan: StreamedPlan) -> Any:
    """Return the kernel of a plan."""
    name = f"{plan.op}_{function.__name__.removesuffix('_kernel')}{'_v' if plan.whole else ''}"
    return cute.kernel(name=name)(function)


def _types(plan: StreamedPlan) -> tuple[Any, Any, Any]:
    """Return the types of matrices, of vectors and of ``parts``."""
    dtype = type_of_mlir(plan.element)
    vector = cute.Tensor[dtype, "(?):(1)", "align<16>"]
    return cute.Tensor[dtype, "(?,?):(?,1)"], vector, cute.Tensor[cute.Float32, "(?,?):(?,1)"]


@printed
def statistics_text(op: str, element: str, takes: str = "") -> cute.Compiled:
    """Trace the kernel of the statistics. It takes ``(x, dy, w, r, s, parts)``, without those that it does not use.

    >>> "gpu.func @softmax_statistics_v" in statistics_text("softmax", "f16")
    True
    """
    plan = StreamedPlan(op, element, takes)
    matrix, vector, numbers = _types(plan)
    d = matrix if plan.is_gradient or "d" in takes else None
    w = vector if plan.is_gradient and "w" in takes else None
    r = matrix if "r" in takes and not plan.is_gradient else None
    return cute.trace(launch_statistics, matrix, d, w, r, r, numbers, plan)


@printed
def elements_text(op: str, element: str, takes: str = "") -> cute.Compiled:
    """Trace the kernel of the elements.

    It takes ``(x, dy, w, b, ds, g, y, parts, sums, groups, eps)``, without those that it does not use. ``sums`` has a
    row for each group, with the gradients of weights and biases.
    """
    plan = StreamedPlan(op, element, takes)
    matrix, vector, numbers = _types(plan)
    d = matrix if plan.is_gradient or "d" in takes else None
    w = vector if "w" in takes else None
    b = vector if "b" in takes and not plan.is_gradient else None
    r = matrix if "r" in takes and plan.is_gradient else None
    g = cute.Tensor[type_of_mlir(element), "(?):(?)"] if "g" in takes else None
    sums = cute.Tensor[cute.Float32, "(?,?{div=4}):(?{div=4},1)", "align<16>"] if plan.sums else None
    eps = cute.Float32 if "norm" in op else None
    return cute.trace(launch_elements, matrix, d, w, b, r, g, matrix, numbers, sums, cute.Int32, eps, plan)
