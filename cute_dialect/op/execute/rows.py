"""Kernels of row functions: their names and texts, :func:`choose_kernels`, which selects those of a problem, launches.

>>> choose_kernels(RowProblem("softmax", "bf16", 8192, 50257)).kernels[0].name
'rows-softmax-bf16-512x7x1x2x0x1'
>>> [kernel.name for kernel in choose_kernels(RowProblem("rms_norm", "f16", 4, 1 << 20, "w")).kernels]
['rows-streamed-statistics-rmsnorm-w-f16', 'rows-streamed-elements-rmsnorm-w-f16']

:func:`choose_transpose` selects the kernel that transposes a matrix:

- Few columns or few rows: :mod:`cute_dialect.kernels.copies.transpose_narrow`.
- Rows of any alignment: :mod:`cute_dialect.kernels.copies.transpose_unaligned`.
- Whole aligned tiles, and strides other than 1: :mod:`cute_dialect.kernels.copies.transpose`.
"""

from __future__ import annotations

from math import gcd
from typing import Any, NamedTuple

from cute_dialect.kernels.copies.transpose import BYTES, transpose_text, whole_tile
from cute_dialect.kernels.copies.transpose_narrow import VECTOR_COLUMNS, most_columns, narrow_text
from cute_dialect.kernels.copies.transpose_unaligned import UnalignedPlan, unaligned_text
from cute_dialect.kernels.epilogue.reductions import CombineConfig, combine_parts_text
from cute_dialect.kernels.rows.config import MANY, PROCESSORS, RowConfig, capacity, row_class, width
from cute_dialect.kernels.rows.forward import row_text
from cute_dialect.kernels.rows.gradients import (
    entropy_backward_text,
    entropy_class,
    gradient_class,
    norm_backward_text,
    part_columns,
    resident,
)
from cute_dialect.kernels.rows.norm_quantize import NormQuantizeConfig, norm_quantize_text
from cute_dialect.kernels.rows.packed import packed_entropy_text, packed_text
from cute_dialect.kernels.rows.packed_norm_gradients import MOST_COLUMNS, SHARING, packed_norm_blocks, packed_norm_text
from cute_dialect.kernels.rows.sample import SampleConfig, sample_text
from cute_dialect.kernels.rows.streamed import MOST_SPLITS, StreamedPlan, elements_text, statistics_text
from cute_dialect.kernels.rows.sums import SUMS, loss_parts, loss_text, sum_class, sum_text
from cute_dialect.kernels.rows.topk import TopkConfig, topk_text
from cute_dialect.kernels.rows.topk import gradient_text as topk_gradient_text
from cute_dialect.op.execute.array_call import RowCall, RowKernel
from cute_dialect.op.problems.rows import LOSS, RowProblem
from cute_dialect.op.select.gemm_dispatch import gpu_of
from cute_dialect.runtime.arrays import ArrayView, view_of

MANY_BLOCKS = 256
"""Above this number of partial sums per column, more threads add them up and a block has fewer columns."""

SOME_BLOCKS = 16
"""Up to this number of partial sums per column, a thread adds up all of them."""

BLOCKS_ON_CPU = 2
"""Blocks on the interpreter: more than one, and few enough that each has several rows."""

BLOCKS, GRADIENT_BLOCKS = 4, 8
"""Blocks per multiprocessor that a launch of streamed rows should have; those of gradients of norms are smaller."""

PROCESSORS_ON_CPU = 1
"""Multiprocessors that the interpreter stands for."""


class RowChoice(NamedTuple):
    """The kernels of a row problem."""

    kernels: tuple[RowKernel, ...]
    config: RowConfig  # distribution of a row over threads and blocks
    lengths: range | None  # row lengths that the first kernel supports; None without an upper limit
    groups: int = 1  # partial sums per column of the gradients of weights and biases


def choose_kernels(p: RowProblem, processors: int | None = PROCESSORS) -> RowChoice:
    """Return the kernels of a problem.

    Args:
        processors: multiprocessors of the GPU; None for the interpreter.
    """
    element, n = p.element, p.n
    lengths, groups = None, 1
    match p.family:
        case "packed":
            threads = SHARING if p.is_norm_gradient and n > MOST_COLUMNS else 1
            config, lengths = RowConfig(threads, -(-n // (threads * width(element))), 128 // threads), range(n, n + 1)
            if p.is_norm_gradient:
                kernels = (packed_norm_kernel(p.call.removesuffix("_backward"), element, n, p.takes),)
                groups = packed_norm_blocks(element, n, p.rows, processors or PROCESSORS_ON_CPU)
            elif p.call.startswith(LOSS):
                kernels = (packed_entropy_kernel(element, n, element if p.is_gradient else "", p.is_gradient),)
            else:
                kernels = (packed_kernel(p.call, element, n, p.takes),)
        case "streamed":
            count = processors or PROCESSORS_ON_CPU
            plan = streamed_plan(p.call, element, p.takes)
            kernels = streamed_kernels(p.call, element, p.takes)
            config, groups = RowConfig(plan.threads, plan.at_once), sum_groups(plan, p.rows, n, count)
        case _ if p.call in SUMS:
            kernels, config = (sum_kernel(p.call, element, n, p.rows),), sum_class(element, n, p.call, p.rows)
        case _ if p.call.startswith(LOSS):
            kernels = (entropy_kernel(element, n, element, True, p.rows),)
            config = entropy_class(element, n, p.rows)
        case _ if p.is_norm_gradient:
            kernels = (norm_kernel(p.call.removesuffix("_backward"), element, n, p.takes),)
            config, groups = gradient_class(element, n, p.takes), norm_blocks(element, n, p.takes, p.rows, processors)
            lengths = capacity(element, config)
        case _:
            kernels = (row_kernel(p.call, element, n, p.takes, p.rows),)
            config = row_class(p.op, element, n, p.takes, p.rows)
            lengths = capacity(element, config)
    columns = p.takes.strip("r") if p.is_norm_gradient else ""
    if columns:
        kernels += (column_kernel(element, columns, groups),)
    if p.call == LOSS:
        steps = ("all",) if loss_parts(p.rows) == 1 else ("first", "last")
        kernels += tuple([loss_kernel(element, True, step) for step in steps])
    return RowChoice(kernels, config, lengths, groups)


# ------------------------------------------------------------------------------------------------ rows in registers


def row_kernel(call: str, element: str, n: int, takes: str = "", rows: int = MANY) -> RowKernel:
    """Return the kernel of softmax, log_softmax or a norm for ``rows`` rows of ``n`` elements.

    >>> row_kernel("rms_norm", "bf16", 5000, "w").name == row_kernel("rms_norm", "bf16", 5001, "w").name
    True
    """
    op = call.replace("_norm", "norm")
    config = row_class(op, element, n, takes, rows)
    name = f"rows-{op}{'-' + takes if takes else ''}-{element}-{config.name}"
    return RowKernel(name, _row_text, (op, element, n, takes, config))


def _row_text(op: str, element: str, n: int, takes: str, config: RowConfig) -> str:
    return row_text(op, element, n, config, takes=takes)


def sum_kernel(call: str, element: str, n: int, rows: int) -> RowKernel:
    """Return the kernel of a reduction or loss for ``rows`` rows of ``n`` elements."""
    config = sum_class(element, n, call, rows)
    return RowKernel(f"rows-{call}-{element}-{config.name}", sum_text, (call, element, n, config))


def loss_kernel(element: str, mean: bool, step: str = "all") -> RowKernel:
    """Return the kernel that sums the losses, or one of the two kernels that sum many losses in two steps."""
    kind = f"{'mean' if mean else 'sum'}{'' if step == 'all' else f'-{step}'}"
    return RowKernel(f"rows-losses-{element}-{kind}", loss_text, (element, mean, step), "launch_losses")


def entropy_kernel(element: str, n: int, of_loss: str, mean: bool, rows: int = MANY, smooth: bool = False) -> RowKernel:
    """Return the kernel of the cross entropy gradient for ``rows`` rows of ``n`` elements."""
    config = entropy_class(element, n, rows)
    kind = ("-mean" if mean else "") + ("-smooth" if smooth else "")
    name = f"rows-cross_entropy_backward-{element}-{of_loss}{kind}-{config.name}"
    return RowKernel(name, entropy_backward_text, (element, n, of_loss, mean, config, smooth), "launch_entropy")


def norm_kernel(call: str, element: str, n: int, takes: str) -> RowKernel:
    """Return the kernel of a norm's gradients for rows of ``n`` elements."""
    op = call.replace("_norm", "norm")
    config = gradient_class(element, n, takes)
    name = f"rows-{op}_backward{'-' + takes if takes else ''}-{element}-{config.name}"
    return RowKernel(name, norm_backward_text, (op, element, n, takes, config))


def sample_kernel(c: SampleConfig) -> RowKernel:
    """Return the kernel that draws tokens."""
    return RowKernel(c.name, sample_text, (c,))


def topk_kernel(c: TopkConfig) -> RowKernel:
    """Return the kernel that selects the greatest elements."""
    return RowKernel(c.name, topk_text, (c,))


def topk_gradient_kernel(element: str) -> RowKernel:
    """Return the kernel of the gradient of ``topk``."""
    return RowKernel(f"topk-gradient-{element}", topk_gradient_text, (element,), "launch_gradient")


def norm_quantize_kernel(c: NormQuantizeConfig) -> RowKernel:
    """Return the kernel of a norm with 8-bit results."""
    return RowKernel(c.name, norm_quantize_text, (c,))


def norm_blocks(element: str, n: int, takes: str, rows: int, processors: int | None = PROCESSORS) -> int:
    """Return the number of blocks that share the rows of a norm's gradients: as many as the GPU holds at once.

    Args:
        element, n: type and length of the rows.
        takes: the parameters that need gradients, and r, as in :func:`norm_kernel`.
        rows: the number of rows.
        processors: multiprocessors of the GPU; None for the interpreter.
    """
    config, w = gradient_class(element, n, takes), width(element)
    blocks = BLOCKS_ON_CPU
    if processors is not None:
        blocks = processors * resident(config)
        if config.cluster > 1:  # A cluster runs within one GPC, whose multiprocessors hold whole clusters.
            blocks = max(1, blocks // 8 * 8 // config.cluster)
    if n % w:  # This way all rows of a group of threads begin at the same element of a vector.
        unit = w // gcd(w, config.rows)
        blocks = max(unit, blocks // unit * unit)
    return min(blocks, -(-rows // config.rows))


def column_kernel(element: str, takes: str, blocks: int) -> RowKernel:
    """Return the kernel that adds up the partial gradients of weights and biases, one per block."""
    across = 8 if blocks > MANY_BLOCKS else 256 if blocks <= SOME_BLOCKS else CombineConfig().across
    config = CombineConfig(output=element, across=across, apart=len(takes) == 2, dependent=True)
    return RowKernel(config.name, combine_parts_text, (config,))


# ---------------------------------------------------------------------------------------------------- packed rows


def packed_kernel(call: str, element: str, n: int, takes: str = "") -> RowKernel:
    """Return the kernel of a row function for rows of ``n`` elements.

    >>> packed_kernel("rms_norm", "bf16", 3, "w").name
    'rows-packed-rmsnorm-w-bf16-3'
    """
    op = call.replace("_norm", "norm")
    name = f"rows-packed-{op}{'-' + takes if takes else ''}-{element}-{n}"
    return RowKernel(name, packed_text, (op, element, n, takes))


def packed_norm_kernel(call: str, element: str, n: int, takes: str) -> RowKernel:
    """Return the kernel of the gradients of ``rms_norm`` or ``layer_norm``."""
    op = call.replace("_norm", "norm")
    name = f"rows-packed-{op}_backward{'-' + takes if takes else ''}-{element}-{n}"
    return RowKernel(name, packed_norm_text, (op, element, n, takes))


def packed_entropy_kernel(element: str, n: int, of_loss: str = "", mean: bool = False) -> RowKernel:
    """Return the kernel of cross entropy or, with the type of the loss, of its gradient."""
    name = f"rows-packed-cross_entropy-{element}-{n}"
    if of_loss:
        name = f"rows-packed-cross_entropy_backward-{element}-{of_loss}{'-mean' if mean else ''}-{n}"
    host = "launch_entropy_backward" if of_loss else "launch_entropy"
    return RowKernel(name, packed_entropy_text, (element, n, of_loss, mean), host)


# --------------------------------------------------------------------------------------------------- streamed rows


def streamed_kernels(call: str, element: str, takes: str = "") -> tuple[RowKernel, RowKernel]:
    """Return the kernels of the statistics and of the elements.

    >>> [kernel.name for kernel in streamed_kernels("rms_norm", "f16", "w")]
    ['rows-streamed-statistics-rmsnorm-w-f16', 'rows-streamed-elements-rmsnorm-w-f16']
    """
    args = (call.replace("_norm", "norm"), element, takes)
    name = "-".join([x for x in (args[0], takes, element) if x])
    return (
        RowKernel(f"rows-streamed-statistics-{name}", statistics_text, args, "launch_statistics"),
        RowKernel(f"rows-streamed-elements-{name}", elements_text, args, "launch_elements"),
    )


def streamed_plan(call: str, element: str, takes: str) -> StreamedPlan:
    """Return the plan of a call."""
    return StreamedPlan(call.replace("_norm", "norm"), element, takes)


def wanted_blocks(plan: StreamedPlan, processors: int) -> int:
    """Return the number of blocks that a launch should have."""
    return (GRADIENT_BLOCKS if plan.is_gradient else BLOCKS) * processors


def sum_groups(plan: StreamedPlan, rows: int, n: int, processors: int) -> int:
    """Return the number of groups of rows whose gradients of weights and biases are summed separately.

    >>> plan = streamed_plan("rms_norm_backward", "bf16", "w")
    >>> sum_groups(plan, 36, 71776, 132)
    14
    """
    return max(1, min(rows, wanted_blocks(plan, processors) // -(-n // plan.columns)))


# ------------------------------------------------------------------------------------------------------------- launches


def processors_of(one: RowCall) -> int | None:
    """Return the number of multiprocessors of the call's GPU, or None for the interpreter."""
    return None if one.cpu else gpu_of(one.gpu)[1]


def launch_rows(
    one: RowCall, takes: str, y: Any, *, g: ArrayView | None = None, w: ArrayView | None = None,
    b: ArrayView | None = None, s: Any = None, eps: float | None = None,
) -> None:  # fmt: skip
    """Launch the kernels of a function from rows to rows.

    Args:
        one: the call.  Its first array is ``x``; the arrays ``dy`` and ``residual`` are read as rows if ``takes`` has
            d and r.
        takes: operands, as in :class:`~cute_dialect.op.problems.rows.RowProblem`.
        y: the result.
        g: one number per row.
        w, b: weights and biases.
        s: the sum of ``x`` and the residual, to write.
        eps: added to the mean square or variance.
    """
    names = one.first, "dy" if "d" in takes else "", "residual" if "r" in takes else ""
    results = [None if t is None else view_of(t) for t in (y, s)]
    packed = one.packed_rows(*[one.views[name] if name else None for name in names], *results)
    p = RowProblem(one.name, one.element, one.count, one.x.shape[-1], takes, packed is not None)
    if packed is not None and p.family == "packed":
        of_x, of_d, of_r, of_y, of_s = packed
    else:
        of_x, of_d, of_r = (one.matrix(name) if name else None for name in names)
        of_y, of_s = (None if t is None else one.matrix_of(t) for t in (y, s))
    if p.family == "streamed":
        launch_streamed(one, takes, of_x, of_y, d=of_d, w=w, b=b, r=of_r, s=of_s, g=g, eps=eps)
    else:
        one.launch(choose_kernels(p).kernels[0], of_x, of_d, g, of_r, w, b, of_y, of_s, eps)


def launch_streamed(
    one: RowCall, takes: str, x: Any, y: Any, *, d: Any = None, w: Any = None, b: Any = None, r: Any = None,
    s: Any = None, g: Any = None, eps: float | None = None, sums: int = 0,
) -> tuple[Any, int]:  # fmt: skip
    """Launch the kernels of streamed rows, and return the partial gradients of weights and biases and their number.

    Args:
        one: the call.
        takes: operands, as in :class:`~cute_dialect.op.problems.rows.RowProblem`.
        x, y: matrices to read and to write.
        d: the gradient of the result.
        w, b: weights and biases.
        r: the residual, or the gradient of its sum.
        s: the sum of ``x`` and the residual, to write.
        g: one number per row.
        eps: added to the mean square or variance.
        sums: number of weights and biases that need gradients.
    """
    rows, n = x.shape
    processors = processors_of(one) or PROCESSORS_ON_CPU
    plan = streamed_plan(one.name, one.element, takes)
    splits = max(1, min(MOST_SPLITS, -(-wanted_blocks(plan, processors) // rows), -(-n // plan.columns)))
    parts = one.matrix_of(one.result((rows, plan.part_columns(splits)), "f32"))
    first, second = streamed_kernels(one.name, one.element, takes)
    is_forward = not plan.is_gradient
    one.launch(first, x, d, None if is_forward else w, r if is_forward else None, s, parts)
    groups, added = min(rows, 1 << 20), None
    if sums:
        groups = sum_groups(plan, rows, n, processors)
        added = one.result((groups, sums * part_columns(n)), "f32")
    x, of_sum = (x, r) if s is None else (s, None)
    of_added = None if added is None else one.matrix_of(added)
    one.launch(second, x, d, w, b, None if is_forward else of_sum, g, y, parts, of_added, groups, eps)
    return added, groups


_MOST = 1 << 30
"""Elements below which kernels count in 32 bits."""

_SMALL, _LARGE = 1 << 20, 20 << 20
"""Bytes of a matrix up to which small tiles are faster on an H200, and from which large tiles are."""


def choose_transpose(x: ArrayView, y: ArrayView) -> tuple[RowKernel, ArrayView, ArrayView]:
    """Return the kernel that transposes ``x`` into ``y``, and its arguments."""
    plain = RowKernel(f"transpose-{x.dtype}", transpose_text, (x.dtype,))
    return _narrow(x, y) or _unaligned(x, y) or (plain, x, y)


def narrow_kernel(element: str, n: int, unit: int, tall: bool) -> RowKernel:
    """Return the kernel that transposes a matrix with ``n`` columns (``tall``) or to one.

    ``unit`` is the number of elements to whose multiples rows of the other matrix are aligned.
    """
    name = f"transpose-{element}-{'from' if tall else 'to'}-{n}-{unit}"
    return RowKernel(name, narrow_text, (element, n, unit, tall))


def _narrow(x: ArrayView, y: ArrayView) -> tuple[RowKernel, ArrayView, ArrayView] | None:
    """Return the transpose kernel for few columns or few rows, and its arguments, or None if it does not apply."""
    for tall, narrow, wide in ((True, x, y), (False, y, x)):
        (rows, n), (step, each) = narrow.shape, narrow.strides
        vector = 16 // BYTES[x.dtype]
        if n > most_columns(x.dtype) or rows * n >= _MOST or narrow.pointer % 16 or each != 1 or step != n:
            continue
        if wide.strides[1] != 1 or rows < vector:
            continue
        unit = gcd(vector, wide.strides[0] if n > 1 else vector, wide.pointer // BYTES[x.dtype])
        kernel = narrow_kernel(x.dtype, n, unit if n <= VECTOR_COLUMNS else 1, tall)
        flat = narrow._replace(shape=(rows * n,), strides=(1,))
        return kernel, flat, wide
    return None


def unaligned_kernel(element: str, size: int, aligned: bool = False) -> RowKernel:
    """Return the kernel that transposes matrices of ``size`` bytes with rows of any alignment.

    ``aligned``: the rows of one matrix begin at multiples of 16 bytes.
    """
    if BYTES[element] in (1, 8):
        plan = UnalignedPlan(threads=128 if BYTES[element] == 8 else 256)
    elif size >= _LARGE:
        plan = UnalignedPlan(groups=16)
    elif size <= _SMALL:
        plan = UnalignedPlan(groups=4, threads=128)
    else:
        plan = UnalignedPlan(threads=128 if aligned else 256)
    name = f"transpose-{element}-unaligned-{'x'.join(map(str, plan))}"
    return RowKernel(name, unaligned_text, (element, plan))


def _unaligned(x: ArrayView, y: ArrayView) -> tuple[RowKernel, ArrayView, ArrayView] | None:
    """Return the transpose kernel for rows of any alignment, and its arguments, or None if it does not apply."""
    if x.strides[1] != 1 or y.strides[1] != 1:
        return None
    if any(v.shape[0] * max(v.strides[0], v.shape[1]) >= _MOST or v.strides[0] < 0 for v in (x, y)):
        return None
    aligned = [v.pointer % 16 == 0 and v.strides[0] * BYTES[v.dtype] % 16 == 0 for v in (x, y)]
    rows, columns = whole_tile(x.dtype)
    if all(aligned) and x.shape[0] % rows == 0 and x.shape[1] % columns == 0:
        return None
    size = x.shape[0] * x.shape[1] * BYTES[x.dtype]
    return unaligned_kernel(x.dtype, size, any(aligned)), x, y
