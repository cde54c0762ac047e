"""Row kernels for short contiguous rows: a thread computes whole rows in registers.

Rows of ``n`` elements, where ``n`` is not a multiple of a 16-byte vector, begin at any address. A
:class:`~cute_dialect.kernels.rows.packed_tile.RowTile` therefore loads and stores vectors of several rows. No reduction
crosses threads. The row length is static, so a kernel is compiled for each.

    text = packed_text("softmax", "f16", 3)         # a thread has 5 rows of 3 elements
    text = packed_text("layernorm", "bf16", 5, "wb")

Operations have the same definitions as in :mod:`.forward`, :mod:`.sums` and :mod:`.gradients`.
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.rows.config import has_two, width
from cute_dialect.kernels.rows.forward import LN_2, LOWEST, OPERATIONS, add, equal, pivot_of, power, tree, wide
from cute_dialect.kernels.rows.packed_tile import LANES, RowTile
from cute_dialect.kernels.rows.sums import SUMS
from cute_dialect.lang.values.dtypes import type_of_mlir

THREADS = 128

ELEMENTS = 16
"""Elements of a thread, unless a row has more."""

MOST_COLUMNS = 40
"""Largest row length. A thread has a register for each element."""


def is_packed_length(element: str, n: int) -> bool:
    """Return True if rows of ``n`` elements are computed in packed form.

    Rows of whole vectors need no packing.

    >>> is_packed_length("f16", 3), is_packed_length("f16", 16), is_packed_length("f16", 41)
    (True, False, False)
    """
    return n % width(element) != 0 and n <= MOST_COLUMNS


def rows_per_thread(n: int) -> int:
    """Return the number of rows of a thread.

    >>> [rows_per_thread(n) for n in (1, 3, 5, 9, 30)]
    [16, 5, 3, 1, 1]
    """
    return max(1, ELEMENTS // n)


class PackedPlan(NamedTuple):
    """Static parameters of a kernel: an operation, an element type, a row length, and the optional operands."""

    op: str
    element: str
    n: int
    takes: str = ""

    @property
    def rows(self) -> int:
        """Rows of a thread."""
        return rows_per_thread(self.n)

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
    """Return the mean, corrected by the mean distance from it. An infinite mean has no distances."""
    share = 1.0 / len(x)
    first = total(x) * share
    found = first + total([v - first for v in x]) * share
    return cute.where(cute.max(first, 0.0 - first) < inf, found, first)


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


def packed_kernel(
    x: cute.Tensor, r: Any, w: Any, b: Any, y: cute.Tensor, s: Any, eps: Any, plan: cute.Constexpr[PackedPlan]
):
    """Compute this thread's rows. The operands are those of :mod:`.forward`, with matrices as vectors."""
    n, two = plan.n, has_two(plan.takes)
    tile = RowTile(type_of_mlir(plan.element), n, plan.rows, THREADS, 2 if two else 1)
    places = row_places(tile, plan, cute.size(x) // n)
    gradients = [wide(r[place]) for place in places] if "g" in plan.takes else []
    vectors = [[wide(v[i]) for i in range(n)] if v is not None else None for v in (w, b)]
    tile.fetch([x, r] if two else [x])
    numbers: list[Any] = []
    for row in range(plan.rows):
        values = tile.values(0, row)
        if plan.op in NUMBERS:
            numbers.append(NUMBERS[plan.op](values))
            continue
        given: list[Any] = [eps] if "norm" in plan.op else []
        if "r" in plan.takes:
            tile.replace(1, row, [v + more for v, more in zip(values, tile.values(1, row))])
            values = tile.values(1, row)
        elif two:
            given = [tile.values(1, row)]
        elif gradients:
            given = [gradients[row]]
        found = MAPPED[plan.op](values, *given)
        if vectors[0] is not None:
            found = [v * f for v, f in zip(found, vectors[0])]
        if vectors[1] is not None:
            found = [v + f for v, f in zip(found, vectors[1])]
        tile.replace(0, row, found)
    if numbers:
        store_numbers(y, numbers, tile)
    else:
        tile.store([(y, 0)] if s is None else [(y, 0), (s, 1)])


def row_places(tile: RowTile, plan: PackedPlan, rows: Any) -> list[Any]:
    """Return the indices of this thread's rows, clamped to the last row."""
    return [cute.min(tile.first_row + i * LANES + tile.lane, rows - 1) for i in range(plan.rows)]


def store_numbers(y: cute.Tensor, numbers: list[Any], tile: RowTile) -> None:
    """Store a number for each of this thread's rows."""
    for i, number in enumerate(numbers):
        row = tile.first_row + i * LANES + tile.lane
        if row < y.shape[0]:
            y[row] = number.to(y.element_type)


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

    Operations are those of :func:`~cute_dialect.kernels.rows.forward.row_program`, with the same arguments, and
    ``sum``, ``mean``, ``max`` and ``logsumexp``. Matrices are passed as vectors of all their elements, aligned to 16
    bytes.

    Raises:
        ValueError: if the operation or the length is not supported.
    """
    if op not in MAPPED and op not in NUMBERS:
        raise ValueError(f"operation '{op}' is not supported; use one of {', '.join([*MAPPED, *NUMBERS])}")
    check_length(element, n)
    operands = OPERATIONS[op].OPERANDS if op in OPERATIONS else ""
    if not set(takes) <= set(operands):
        raise ValueError(f"{op}: operands '{takes}' are not supported; use some of '{operands}'")
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
):
    """Compute the losses and the logsumexp of this thread's rows."""
    cute.arch.griddepcontrol_launch_dependents()  # The kernel that adds up the losses may start, and waits.
    n = plan.n
    tile = RowTile(type_of_mlir(plan.element), n, plan.rows, THREADS)
    targets = [t[place].to(cute.Int32) for place in row_places(tile, plan, t.shape[0])]
    tile.fetch([x])
    losses, logs = [], []
    for row, target in enumerate(targets):
        values = tile.values(0, row)
        m, log = largest_and_log(values)
        picked = values[0]
        for i in range(1, n):
            picked = cute.where(target == i, values[i], picked)
        logs.append(m + log)
        losses.append(cute.where(target == ignored, 0.0, m - picked + log))
    store_numbers(y, losses, tile)
    store_numbers(z, logs, tile)


def packed_entropy_backward(
    x: cute.Tensor, t: cute.Tensor, lse: cute.Tensor, g: cute.Tensor, count: Any, y: cute.Tensor, ignored: Any,
    plan: cute.Constexpr[PackedPlan],
):  # fmt: skip
    """Compute the gradients of this thread's rows."""
    tile = RowTile(type_of_mlir(plan.element), plan.n, plan.rows, THREADS)
    places = row_places(tile, plan, t.shape[0])
    targets = [t[i].to(cute.Int32) for i in places]
    logs = [lse[i] for i in places] if plan.n > 1 else []
    factors = [wide(g[i]) for i in places]
    if count is not None:
        factors = [f / count[0] for f in factors]
    tile.fetch([x])
    for row in range(plan.rows):
        by, values = cute.where(targets[row] == ignored, 0.0, factors[row]), tile.values(0, row)
        log = logs[row] if logs else values[0]  # the logsumexp of one element is the element
        found = [power(v, log) * by - cute.where(targets[row] == i, by, 0.0) for i, v in enumerate(values)]
        tile.replace(0, row, found)
    tile.store([(y, 0)])


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

    The launches take the arguments of :func:`~cute_dialect.kernels.rows.sums.sum_program` and
    :func:`~cute_dialect.kernels.rows.gradients.entropy_backward_text`, with matrices as vectors of all their elements.

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


assert {*MAPPED} <= {*OPERATIONS} and {*NUMBERS, "cross_entropy"} == {*SUMS}
