"""Row kernels for short contiguous rows: a thread computes whole rows in registers.

Rows of ``n`` elements, where ``n`` is not a multiple of a 16-byte vector, begin at any address. A thread therefore has
the smallest number of rows that are whole vectors, which a :class:`~cute_dialect.kernels.packed_tile.PackedTile` loads
and stores. No reduction crosses threads. The row length is static, so a kernel is compiled for each.

    text = packed_text("softmax", "f16", 3)         # 8 rows of 3 elements are 3 vectors
    text = packed_text("layernorm", "bf16", 5, "wb")

Operations have the same definitions as in :mod:`.rows`, :mod:`.row_sums` and :mod:`.row_grads`.
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.front.dtypes import type_of_mlir
from cute_dialect.kernels.packed_tile import PackedTile, rows_per_thread
from cute_dialect.kernels.row_config import OPS, has_two, width
from cute_dialect.kernels.row_sums import SUMS
from cute_dialect.kernels.rows import LN_2, LOWEST, add, equal, pivot_of, power, tree, wide
from cute_dialect.kernels.traced_text import printed

__all__ = ["is_packed_length", "packed_entropy_text", "packed_text"]

THREADS = 128

MOST_VECTORS = 16
"""Largest number of vectors of a thread, which take 4 registers each."""


def is_packed_length(element: str, n: int) -> bool:
    """Return True if rows of ``n`` elements are computed in packed form.

    Rows of whole vectors need no packing.

    >>> [n for n in range(1, 40) if is_packed_length("f16", n)]
    [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 18, 20, 22, 26, 28, 30, 36]
    """
    w = width(element)
    return n % w != 0 and n <= 5 * w and n * rows_per_thread(w, n) // w <= MOST_VECTORS


class PackedPlan(NamedTuple):
    """Static parameters of a kernel: an operation, an element type, a row length, and the optional operands."""

    op: str
    element: str
    n: int
    takes: str = ""

    @property
    def rows(self) -> int:
        """Rows of a thread."""
        return rows_per_thread(width(self.element), self.n)

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return f"{self.op}_packed"


def total(x: list[Any]) -> Any:
    return tree(x, add)


# ------------------------------------------------------------------------------------------------------- row to row

Values = list[Any]


def softmax(x: Values) -> Values:
    """Return ``e^(x - m) / sum``."""
    m = cute.max(tree(x, cute.max), LOWEST)
    powers = [power(v, m) for v in x]
    by = cute.arch.rcp_approx(total(powers))
    return [v * by for v in powers]


def log_softmax(x: Values) -> Values:
    """Return ``x - m - log(sum of e^(x - m))``."""
    m = cute.max(tree(x, cute.max), LOWEST)
    log = cute.arch.log2_approx(total([power(v, m) for v in x])) * LN_2
    return [v - m - log for v in x]


def rms_norm(x: Values, eps: Any) -> Values:
    """Return ``x / sqrt(mean square + eps)``."""
    by = cute.arch.rsqrt_approx(total([v * v for v in x]) * (1.0 / len(x)) + eps)
    return [v * by for v in x]


def layer_norm(x: Values, eps: Any) -> Values:
    """Return ``(x - mean) / sqrt(variance + eps)``, computed from distances to the pivot."""
    pivot = pivot_of(x[0])
    x = [v - pivot for v in x]
    mean = total(x) * (1.0 / len(x))
    x = [v - mean for v in x]
    by = cute.arch.rsqrt_approx(total([v * v for v in x]) * (1.0 / len(x)) + eps)
    return [v * by for v in x]


def softmax_backward(y: Values, d: Values) -> Values:
    """Return ``y (dy - sum of y dy)``."""
    of_row = total([a * b for a, b in zip(y, d)])
    return [a * (b - of_row) for a, b in zip(y, d)]


def log_softmax_backward(y: Values, d: Values) -> Values:
    """Return ``dy - e^y sum of dy``."""
    of_row = total(d)
    return [b - power(a, 0.0) * of_row for a, b in zip(y, d)]


def max_backward(x: Values, g: Any) -> Values:
    """Return ``g / count`` at the maxima and 0 at other elements."""
    m = tree(x, cute.max)
    mine = [equal(v, m) for v in x]
    share = g / total(mine)
    return [v * share for v in mine]


def logsumexp_backward(x: Values, g: Any) -> Values:
    """Return ``g softmax(x)``; with plus infinity, NaN there and 0 at finite elements."""
    m = cute.max(tree(x, cute.max), LOWEST)
    powers = [power(v, m) for v in x]
    by = cute.where(m == inf, g, cute.arch.rcp_approx(total(powers)) * g)
    return [v * by for v in powers]


MAPPED: dict[str, Callable[..., Values]] = {
    "softmax": softmax, "log_softmax": log_softmax, "rmsnorm": rms_norm, "layernorm": layer_norm,
    "softmax_backward": softmax_backward, "log_softmax_backward": log_softmax_backward, "max_backward": max_backward,
    "logsumexp_backward": logsumexp_backward,
}  # fmt: skip


# ---------------------------------------------------------------------------------------------------- row to number


def mean(x: Values) -> Any:
    """Return the pivot plus the mean distance from it."""
    pivot = pivot_of(x[0], 2.0**100)
    return pivot + total([v - pivot for v in x]) / float(len(x))


def largest_and_log(x: Values) -> tuple[Any, Any]:
    """Return the maximum ``m`` and ``log(sum of e^(x - m))``."""
    m = cute.max(tree(x, cute.max), LOWEST)
    return m, cute.arch.log2_approx(total([power(v, m) for v in x])) * LN_2


def log_sum(x: Values) -> Any:
    """Return ``logsumexp``, which is plus infinity if an element is."""
    m, log = largest_and_log(x)
    return cute.where(m == inf, cute.Float32(inf), m + log)


NUMBERS: dict[str, Callable[..., Any]] = {
    "sum": total, "mean": mean, "max": lambda x: tree(x, cute.max), "logsumexp": log_sum,
}  # fmt: skip


# --------------------------------------------------------------------------------------------------------- kernels


def values_of(tensor: cute.Tensor, row: int, n: int) -> Values:
    """Return the elements of one of this thread's rows as ``f32``."""
    return [wide(tensor[row * n + i]) for i in range(n)]


def packed_kernel(
    x: cute.Tensor, r: Any, w: Any, b: Any, y: cute.Tensor, s: Any, eps: Any, plan: cute.Constexpr[PackedPlan]
):  # fmt: skip
    """Compute this thread's rows. The operands are those of :mod:`.rows`, with matrices as vectors."""
    n, dtype, two = plan.n, type_of_mlir(plan.element), has_two(plan.takes)
    tile = PackedTile(dtype, n, plan.rows, THREADS)
    loaded = tile.load([x, r] if two else [x], None)
    rows, first = cute.size(x) // n, tile.thread * plan.rows
    vectors = [[wide(v[i]) for i in range(n)] if v is not None else None for v in (w, b)]
    out = cute.make_rmem_tensor(tile.elements if plan.op in MAPPED else plan.rows, dtype)
    sums = cute.make_rmem_tensor(tile.elements, dtype) if "r" in plan.takes else None
    for row in cute.range_constexpr(plan.rows):
        values = values_of(loaded[0], row, n)
        if plan.op in NUMBERS:
            out[row] = NUMBERS[plan.op](values).to(dtype)
            continue
        given: list[Any] = [eps] if "norm" in plan.op else []
        if two:
            more = values_of(loaded[1], row, n)
            if sums is None:
                given = [more]
            else:
                for i in range(n):
                    sums[row * n + i] = (values[i] + more[i]).to(dtype)
                values = values_of(sums, row, n)
        if "g" in plan.takes:
            given = [wide(r[cute.min(first + row, rows - 1)])]
        found = MAPPED[plan.op](values, *given)
        if vectors[0] is not None:
            found = [v * f for v, f in zip(found, vectors[0])]
        if vectors[1] is not None:
            found = [v + f for v, f in zip(found, vectors[1])]
        for i in range(n):
            out[row * n + i] = found[i].to(dtype)
    if plan.op in NUMBERS:
        store_numbers(y, out, first, rows)
    else:
        if sums is not None:
            tile.store(s, sums, None)
        tile.store(y, out, None)


def store_numbers(y: cute.Tensor, numbers: cute.Tensor, first: Any, rows: Any) -> None:
    """Store a number for each of this thread's rows."""
    count = cute.size(numbers)
    if first + count <= rows:
        cute.autovec_copy(numbers, cute.make_tensor(y.iterator + first, cute.make_layout(count)))
    else:
        for i in cute.range_constexpr(count):
            if first + i < rows:
                y[first + i] = numbers[i]


@cute.jit
def launch(
    x: cute.Tensor, r: Any, w: Any, b: Any, y: cute.Tensor, s: Any, eps: cute.Float32 | None,
    plan: cute.Constexpr[PackedPlan],
):  # fmt: skip
    """Launch one thread per group of rows that are whole vectors."""
    n = plan.n
    count = cute.size(x) // n if plan.op in NUMBERS else cute.size(x)
    assert y.shape[0] == count, "y must have as many elements as x, or one per row"
    cute.kernel(name=plan.name)(packed_kernel)(x, r, w, b, y, s, eps, plan).launch(
        grid=cute.ceil_div(cute.size(x), n * plan.rows * THREADS), block=THREADS
    )


@printed
def packed_text(op: str, element: str, n: int, takes: str = "") -> cute.Compiled:
    """Trace the kernel and the host function of an operation for contiguous rows of ``n`` elements.

    Operations are those of :func:`~cute_dialect.kernels.rows.row_program`, with the same arguments, and ``sum``,
    ``mean``, ``max`` and ``logsumexp``. Matrices are passed as vectors of all their elements, aligned to 16 bytes.

    Raises:
        ValueError: if the operation or the length is not supported.
    """
    if op not in MAPPED and op not in NUMBERS:
        raise ValueError(f"operation '{op}' is not supported; use one of {', '.join([*MAPPED, *NUMBERS])}")
    check_length(element, n)
    unknown = [x for x in takes if x not in OPS.get(op, "")]
    if unknown:
        raise ValueError(f"{op}: operands '{takes}' are not supported; use some of '{OPS.get(op, '')}'")
    dtype = type_of_mlir(element)
    flat = cute.Tensor[dtype, "(?):(1)", "align<16>"]
    w, b = (flat if x in takes else None for x in "wb")
    r = cute.Tensor[dtype, "(?):(?)"] if "g" in takes else flat if has_two(takes) else None
    s = flat if "r" in takes else None
    eps = cute.Float32 if "norm" in op else None
    return cute.trace(launch, flat, r, w, b, flat, s, eps, PackedPlan(op, element, n, takes))


def check_length(element: str, n: int) -> None:
    """Raise ValueError if rows of ``n`` elements are not computed in packed form."""
    if not is_packed_length(element, n):
        raise ValueError(f"rows of {n} {element} elements are not packed; see is_packed_length")


# ------------------------------------------------------------------------------------------------------ cross entropy


def packed_entropy(
    x: cute.Tensor, t: cute.Tensor, y: cute.Tensor, z: cute.Tensor, ignored: Any, plan: cute.Constexpr[PackedPlan]
):  # fmt: skip
    """Compute the losses and the logsumexp of this thread's rows."""
    cute.arch.griddepcontrol_launch_dependents()  # The kernel that adds up the losses may start, and waits.
    n = plan.n
    tile = PackedTile(type_of_mlir(plan.element), n, plan.rows, THREADS)
    rows, first = t.shape[0], tile.thread * plan.rows
    targets = [t[cute.min(first + i, rows - 1)].to(cute.Int32) for i in range(plan.rows)]
    (loaded,) = tile.load([x], None)
    losses, logs = (cute.make_rmem_tensor(plan.rows, cute.Float32) for _ in range(2))
    for row in cute.range_constexpr(plan.rows):
        values, target = values_of(loaded, row, n), targets[row]
        m, log = largest_and_log(values)
        picked = values[0]
        for i in range(1, n):
            picked = cute.where(target == i, values[i], picked)
        logs[row] = m + log
        losses[row] = cute.where(target == ignored, 0.0, m - picked + log)
    store_numbers(y, losses, first, rows)
    store_numbers(z, logs, first, rows)


def packed_entropy_backward(
    x: cute.Tensor, t: cute.Tensor, lse: cute.Tensor, g: cute.Tensor, count: Any, y: cute.Tensor, ignored: Any,
    plan: cute.Constexpr[PackedPlan],
):  # fmt: skip
    """Compute the gradients of this thread's rows."""
    n, dtype = plan.n, type_of_mlir(plan.element)
    tile = PackedTile(dtype, n, plan.rows, THREADS)
    rows, first = t.shape[0], tile.thread * plan.rows
    places = [cute.min(first + i, rows - 1) for i in range(plan.rows)]
    targets, logs = [t[i].to(cute.Int32) for i in places], [lse[i] for i in places]
    factors = [wide(g[i]) for i in places]
    if count is not None:
        factors = [f / count[0] for f in factors]
    (loaded,) = tile.load([x], None)
    out = cute.make_rmem_tensor(tile.elements, dtype)
    for row in cute.range_constexpr(plan.rows):
        by = cute.where(targets[row] == ignored, 0.0, factors[row])
        for i, v in enumerate(values_of(loaded, row, n)):
            out[row * n + i] = (power(v, logs[row]) * by - cute.where(targets[row] == i, by, 0.0)).to(dtype)
    tile.store(y, out, None)


@cute.jit
def launch_entropy(
    x: cute.Tensor, t: cute.Tensor, y: cute.Tensor, z: cute.Tensor, ignored: cute.Int32,
    plan: cute.Constexpr[PackedPlan],
):  # fmt: skip
    """Launch one thread per group of rows that are whole vectors."""
    assert cute.size(x) == t.shape[0] * plan.n, "target must have an element for each row"
    cute.kernel(name=plan.name)(packed_entropy)(x, t, y, z, ignored, plan).launch(
        grid=cute.ceil_div(cute.size(x), plan.n * plan.rows * THREADS), block=THREADS
    )


@cute.jit
def launch_entropy_backward(
    x: cute.Tensor, t: cute.Tensor, lse: cute.Tensor, g: cute.Tensor, count: Any, y: cute.Tensor, ignored: cute.Int32,
    plan: cute.Constexpr[PackedPlan],
):  # fmt: skip
    """Launch one thread per group of rows that are whole vectors."""
    assert cute.size(x) == t.shape[0] * plan.n, "target must have an element for each row"
    cute.kernel(name=plan.name)(packed_entropy_backward)(x, t, lse, g, count, y, ignored, plan).launch(
        grid=cute.ceil_div(cute.size(x), plan.n * plan.rows * THREADS), block=THREADS
    )


@printed
def packed_entropy_text(element: str, n: int, of_loss: str = "", mean: bool = False) -> cute.Compiled:
    """Trace the kernel of cross entropy, or of its gradient, for contiguous rows of ``n`` elements.

    The launches take the arguments of :func:`~cute_dialect.kernels.row_sums.sum_program` and
    :func:`~cute_dialect.kernels.row_grads.entropy_backward_text`, with matrices as vectors of all their elements.

    Args:
        element: The element type.
        n: The row length.
        of_loss: The type of ``g`` for the gradient, empty for the forward pass.
        mean: Divide ``g`` by ``count``.
    """
    check_length(element, n)
    flat, targets = cute.Tensor[type_of_mlir(element), "(?):(1)", "align<16>"], cute.Tensor[cute.Int64, "(?):(1)"]
    if not of_loss:
        numbers = cute.Tensor[cute.Float32, "(?):(1)", "align<16>"]
        plan = PackedPlan("cross_entropy", element, n)
        return cute.trace(launch_entropy, flat, targets, numbers, numbers, cute.Int32, plan)
    numbers, plan = cute.Tensor[cute.Float32, "(?):(1)"], PackedPlan("cross_entropy_backward", element, n)
    g = cute.Tensor[type_of_mlir(of_loss), "(?):(?)"]
    count = numbers if mean else None
    return cute.trace(launch_entropy_backward, flat, targets, numbers, g, count, flat, cute.Int32, plan)


assert {*MAPPED} == {*OPS} and {*NUMBERS, "cross_entropy"} == {*SUMS}
