"""Explanations of functions of rows, which :func:`cute_dialect.op.explain` returns.

These are row functions, quantization, gated activations, and the loss of a linear layer in chunks of rows.

>>> print(explain_rows("softmax", (8192, 50257), element="bf16"))
softmax of 8192 rows of 50257 bf16
  kernel    rows-softmax-bf16-512x7x1x2x0x1: for rows of 49160 to 57351 elements
  a row     2 blocks of 512 threads, up to 7 vectors of 16 bytes per thread, in registers
  begins    anywhere: vectors from its first 16-byte boundary on, the elements around them one by one
  bound     402.4 us: 1.65 GB (DRAM, an H200)

>>> print(explain_quantize("quantize", (4096, 7168), None, "bf16", None, 128))
quantize of 4096 x 7168 bf16 to f8E4M3FN
  kernel    quantize-bf16-f8E4M3FN-quantize-16x1x4x1x0
  a scale   per block of 128 columns, by 16 threads
  bound     21.7 us: 0.089 GB (DRAM, an H200)

>>> round(explain_gated((16384, 7168), "silu", "bf16").bound, 1)     # in us
86.1
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# Arrays belong to any library.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from cute_dialect.kernels.elementwise.graph import elementwise_text
from cute_dialect.kernels.rows.config import BITS, RowConfig, width
from cute_dialect.kernels.rows.norm_quantize import choose_config as choose_norm_config
from cute_dialect.kernels.rows.packed import rows_per_thread
from cute_dialect.kernels.rows.quantize import BLOCK, quantize_text
from cute_dialect.kernels.rows.sample import choose_config as choose_sample_config
from cute_dialect.kernels.rows.sample import passes_of
from cute_dialect.kernels.rows.topk import longest_row
from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.epilogue.tracing import FakeTensor
from cute_dialect.op.errors import DtypeError, ShapeError, UnsupportedError
from cute_dialect.op.execute.array_call import RowKernel, is_contiguous
from cute_dialect.op.execute.rows import (
    choose_kernels,
    entropy_kernel,
    norm_quantize_kernel,
    sample_kernel,
    topk_kernel,
)
from cute_dialect.op.explanations.gemm import Explanation, Line, example_view
from cute_dialect.op.problems.linear_cross_entropy import CALL, accumulation, default_chunk, row_stride
from cute_dialect.op.problems.rows import (
    MAPS,
    QUANTIZED,
    WIDE,
    NormQuantization,
    QuantizeProblem,
    RowProblem,
    check_activation,
    check_topk,
    checked_plan,
    regions_of_block,
    regions_of_scales,
    shape_of_scales,
)
from cute_dialect.runtime.arrays import view_of

DRAM = 4.092
"""Sustained bandwidth of an H200 in TB/s, as in :mod:`cute_dialect.op.select.cost_model`."""


@dataclass(frozen=True, kw_only=True)
class RowExplanation(Explanation):
    """The kernels of a row function, and the distribution of a row over threads."""

    element: str
    rows: int
    n: int
    config: RowConfig  # distribution of a row over threads and blocks
    lengths: range | None  # row lengths that the kernel supports; None without an upper limit
    whole: bool  # True if rows are whole aligned vectors

    def _title(self) -> str:
        return f"{self.operation} of {self.rows} rows of {self.n} {self.element}"

    def _layout(self) -> Iterator[Line]:
        c = self.config
        who = f"{c.cluster} blocks of {c.threads} threads" if c.cluster > 1 else f"{c.threads} threads"
        where = f"{c.shared} of them in shared memory" if c.shared else "in registers"
        if self.lengths is None:
            vectors = f"{c.chunks} vector{'s'[: c.chunks > 1]} of 16 bytes per thread at once, nothing is kept"
        else:
            vectors = f"up to {c.chunks} vectors of 16 bytes per thread, {where}"
        begins = "at multiples of 16 bytes"
        if self.kernel.startswith("rows-packed"):
            if c.threads == 1:
                who, vectors = "1 thread", f"which has {rows_per_thread(self.n)} rows"
            begins = "anywhere: a warp loads consecutive vectors and exchanges them"
        elif not self.whole:
            begins = "anywhere: vectors from its first 16-byte boundary on, the elements around them one by one"
        yield "a row", f"{who}, {vectors}"
        yield "begins", begins

    def _limits(self) -> str:
        return f"{self.bytes / 1e9:.3g} GB (DRAM, an H200)"


def shape_and_type(call: str, name: str, x: Any, element: str, allowed: Sequence[str]) -> tuple[tuple[int, ...], str]:
    """Return the shape and the type of an array, or of a shape and a type.  Raises ShapeError, DtypeError."""
    is_shape = isinstance(x, tuple | list)
    if not is_shape and not hasattr(x, "shape"):
        raise ShapeError(f"{call}: explain needs {name}; pass an array or its shape")
    shape = tuple(x if is_shape else x.shape)
    element = element if is_shape else element_name(x.dtype)
    if not shape or 0 in shape:
        raise ShapeError(f"{call}: {name} has shape {shape}; it must not be empty")
    if element not in allowed:
        raise DtypeError(f"{call}: {name} has dtype {element}; it must have one of {', '.join(allowed)}")
    return shape, element


def explain_rows(
    call: str, x: Any, weight: Any = None, bias: Any = None, residual: Any = None, *, element: str = "f16"
) -> RowExplanation:
    """Explain how a row function is computed.

    Raises the errors of the function for lengths and types.

    Args:
        call: name of the row function, or of a gradient.
        x: an array, or a shape of contiguous rows of type ``element``; for a gradient, the array to differentiate by.
        weight, bias: operands of a norm; for a gradient, their presence means that they need gradients, too.
        residual: operand of a norm; for a gradient, its presence means that the gradient of the sum is added.
        element: type of the rows if ``x`` is a shape.
    """
    shape = tuple(x if isinstance(x, tuple | list) else x.shape)
    if not shape or 0 in shape:
        raise ShapeError(f"{call}: x has shape {shape}; it must not be empty")
    element = element if isinstance(x, tuple | list) else element_name(x.dtype)
    if element not in BITS:
        raise UnsupportedError(f"{call}: x has dtype {element}; it must have one of {', '.join(BITS)}")
    n, count = shape[-1], prod(shape[:-1])
    takes = "".join([k for k, t in (("w", weight), ("b", bias), ("r", residual)) if t is not None])
    takes = "d" if call.endswith("_backward") and call.removesuffix("_backward") in MAPS else takes
    p = RowProblem(call, element, count, n, takes, flat=True)
    if p.family == "packed" and not _is_flat(x):
        p = p._replace(flat=False)
    choice = choose_kernels(p)
    whole, lengths = n % width(element) == 0 and _aligned(x, width(element)), choice.lengths
    held = "any rows that are long enough"
    if lengths is not None:
        held = f"rows of {lengths.start} to {lengths.stop - 1} elements"
    return RowExplanation(
        operation=call, kernel=choice.kernels[0].name, why=f"for {held}", bytes=p.bytes, bound=p.bytes / DRAM / 1e6,
        kernels=choice.kernels, element=element, rows=count, n=n, config=choice.config, lengths=lengths, whole=whole,
    )  # fmt: skip


def _is_flat(x: Any) -> bool:
    """Return True if an array is contiguous and aligned to 16 bytes."""
    if isinstance(x, tuple | list):
        return True
    view = view_of(x)
    return view.pointer % 16 == 0 and is_contiguous(view)


def _aligned(x: Any, unit: int) -> bool:
    """Return True if the rows of an array are aligned to 16 bytes."""
    if isinstance(x, tuple | list):
        return True
    item = 16 // unit
    strides = tuple(x.stride()) if hasattr(x, "stride") else tuple([s // item for s in x.strides])
    address = x.data_ptr() if hasattr(x, "data_ptr") else x.ctypes.data
    return address % 16 == 0 and all(s % unit == 0 for s in strides[:-1])


_REGIONS = {"array": "for the array", "row": "per row", "block": "per block of 128 columns", "tile": "per 128 x 128"}


@dataclass(frozen=True, kw_only=True)
class QuantizeExplanation(Explanation):
    """The kernels of a quantization, and the elements that share a scale."""

    problem: QuantizeProblem
    regions: str  # "array", "row", "block" or "tile"

    def _title(self) -> str:
        p = self.problem
        source, target = (p.result, p.element) if p.task == "dequantize" else (p.element, p.result)
        return f"{self.operation} of {p.rows} x {p.n} {source} to {target}"

    def _layout(self) -> Iterator[Line]:
        c = self.problem.config
        by = f", by {c.threads} threads" if c.task == "quantize" else ""
        yield "a scale", _REGIONS[self.regions] + by + (", which read the row twice" if c.is_streamed else "")

    def _limits(self) -> str:
        return f"{self.bytes / 1e9:.3g} GB (DRAM, an H200)"


def explain_quantize(
    call: str, x: Any, scales: Any, element: str, dtype: object = None, block: object = None
) -> QuantizeExplanation:
    """Explain ``quantize`` or ``dequantize``.  Arrays are expected to be contiguous.

    Args:
        x: the array, or its shape.
        scales: given scales, or their shape; None to compute them.
        element: type of ``x`` if it is a shape.
        dtype, block: as in the function.

    Raises the errors of the function.
    """
    is_inverse = call == "dequantize"
    taken, made = (QUANTIZED, WIDE) if is_inverse else (WIDE, QUANTIZED)
    result = made[0] if dtype is None else element_name(dtype)
    shape, element = shape_and_type(call, "x", x, element, taken)
    if result not in made:
        raise DtypeError(f"{call}: the result has dtype {result}; it must have one of {', '.join(made)}")
    if is_inverse and scales is None:
        raise ShapeError("dequantize: explain needs the scales as b; pass them or their shape")
    if scales is not None:
        found = tuple(scales if isinstance(scales, tuple | list) else scales.shape)
        regions = regions_of_scales(call, "x", shape, "b", found)
    else:
        regions = regions_of_block(block)
        shape_of_scales(regions, shape)
    rows, n = prod(shape[:-1]), shape[-1]
    task = "dequantize" if is_inverse else "quantize" if scales is None and regions != "array" else "given"
    by = "block" if task != "quantize" and regions != "tile" else regions
    if by == "block" and n % BLOCK == 0 and regions != "row":
        rows_of_kernel, by = rows * n // BLOCK, "blocks"
        p = QuantizeProblem(task, by, element, result, rows_of_kernel, BLOCK)
    else:
        p = QuantizeProblem(task, by, element, result, rows, n)
    if is_inverse:
        p = p._replace(element=result, result=element)
    problems, size = [p], p.bytes
    if scales is None and regions == "array":
        first = QuantizeProblem("maximum", "part", element, "i8", 1, rows * n)
        problems = [first, QuantizeProblem("scale", "row", "f32", result, 1, prod(first.scales)), p]
        size += first.bytes - rows * n
    kernels = tuple([RowKernel(q.config.name, quantize_text, (q.config,)) for q in problems])
    return QuantizeExplanation(
        operation=call, kernel=kernels[-1].name, bytes=size, bound=size / DRAM / 1e6, kernels=kernels,
        problem=p._replace(rows=rows, n=n), regions=regions,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class GatedExplanation(Explanation):
    """The kernel of a gated activation."""

    element: str
    rows: int
    n: int  # length of a half

    def _title(self) -> str:
        return f"{self.operation} of {self.rows} rows of 2 x {self.n} {self.element}"

    def _limits(self) -> str:
        return f"{self.bytes / 1e9:.3g} GB (DRAM, an H200)"


def explain_gated(x: Any, activation: str, element: str) -> GatedExplanation:
    """Explain ``gated``.  Raises the errors of the function.

    Args:
        x: an array, or its shape.
        activation: the activation; empty for silu.
        element: type of ``x`` if it is a shape.
    """
    shape, activation = tuple(x if isinstance(x, tuple | list) else x.shape), activation or "silu"
    element = element if isinstance(x, tuple | list) else element_name(x.dtype)
    if not shape or 0 in shape or shape[-1] % 2:
        raise ShapeError(f"gated: x has shape {shape}; pass rows of two halves that are not empty")
    if element not in BITS:
        raise DtypeError(f"gated: x has dtype {element}; it must have one of {', '.join(BITS)}")
    check_activation(activation)
    rows, n = prod(shape[:-1]), shape[-1] // 2
    plan, size = checked_plan(activation, element, rows, n), rows * n * 3 * BITS[element] // 8
    kernel = RowKernel(plan.name, elementwise_text, (plan,))
    return GatedExplanation(
        operation=f"gated {activation}", kernel=kernel.name, bytes=size, bound=size / DRAM / 1e6, kernels=(kernel,),
        element=element, rows=rows, n=n,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LinearCrossEntropyExplanation(Explanation):
    """The kernels of one chunk of rows, in order, and the number of chunks."""

    element: str
    shape: tuple[int, int, int]  # rows, elements of a row of x, classes
    chunk: int  # rows of a chunk
    steps: tuple[tuple[str, Explanation], ...]  # label and kernel of each step

    @property
    def chunks(self) -> int:
        return -(-self.shape[0] // self.chunk)

    def _title(self) -> str:
        rows, k, classes = self.shape
        return f"{self.operation} of {rows} rows of {k} {self.element}, {classes} classes"

    def _lines(self) -> Iterable[Line]:
        size = self.chunk * row_stride(self.shape[2], self.element) * BITS[self.element] / 8e6
        yield "chunks", f"{self.chunks} of up to {self.chunk} rows; {size:.3g} MB for the logits of a chunk"
        for label, step in self.steps:
            yield label, f"{_time_of(step):.1f} us  {step.kernel}"
        yield "predicted", f"{self.microseconds:.1f} us, {self.flops / self.microseconds / 1e6:.3g} TFLOP/s"


def _time_of(step: Explanation) -> float:
    """Return the predicted time of a GEMM, or the lower bound of that of a row function."""
    return step.microseconds or step.bound


def explain_linear_cross_entropy(
    gemm: Callable[..., Explanation], x: Any, weight: Any, bias: Any = None, chunk: int | None = None, *,
    element: str = "f16",
) -> LinearCrossEntropyExplanation:  # fmt: skip
    """Explain the loss with the gradients of ``x`` and ``weight``.

    Args:
        gemm: explains ``op.mm`` of two operands, with its keywords.
        x, weight: arrays, or shapes of contiguous arrays.
        bias: an array or a shape.
        chunk: as in the function.
        element: type of operands that are given as shapes.

    Raises:
        OpError: if the arrays do not match.
    """
    views = [example_view(CALL, n, t, element) for n, t in (("x", x), ("weight", weight))]
    element = views[0].dtype
    if element not in BITS:
        raise UnsupportedError(f"{CALL}: x has dtype {element}; it must have one of {', '.join(BITS)}")
    *outer, k = views[0].shape
    rows, shape = prod(outer), views[1].shape
    if len(shape) != 2 or shape[1] != k or 0 in (*shape, rows):
        raise ShapeError(
            f"{CALL}: x has shape {views[0].shape} and weight has shape {shape}; pass (rows, K) and (classes, K) of at "
            "least one element"
        )
    classes = shape[0]
    chunk = chunk or default_chunk(rows, k, classes, BITS[element] // 8)
    count, stride = min(chunk, rows), row_stride(classes, element)
    logits = views[0]._replace(shape=(count, classes), strides=(stride, 1), pointer=0)
    part = views[0]._replace(shape=(count, k), strides=(k, 1), pointer=0)
    matrix = views[1]._replace(shape=(k, classes), strides=views[1].strides[::-1])
    transposed = logits._replace(shape=(classes, count), strides=(1, stride))
    of_weight: dict[str, Any] = {}
    if count < rows and element != "f32" and 1 not in shape:
        pair = ("D", "rounded", "rest", "remainder")
        of_weight["args"] = {n: FakeTensor(element, shape) for n in pair}
        of_weight["epilogue"] = accumulation(element, shape, False, False)
    gradient = explain_rows("cross_entropy_backward", (count, classes), element=element)
    steps = (
        ("logits", gemm(part, matrix, logits, bias=bias)),
        ("loss", explain_rows("cross_entropy", (count, classes), element=element)),
        ("gradient", replace(gradient, kernel=entropy_kernel(element, classes, "f32", True, count).name)),
        ("of x", gemm(logits, views[1])),
        ("of weight", gemm(transposed, part, **of_weight)),
    )
    chunks = -(-rows // count)
    return LinearCrossEntropyExplanation(
        operation=CALL, gpu=steps[0][1].gpu, kernel=steps[0][1].kernel, element=element, shape=(rows, k, classes),
        chunk=count, steps=steps, flops=6 * rows * k * classes, bound=chunks * sum([s.bound for _, s in steps]),
        microseconds=chunks * sum([_time_of(s) for _, s in steps]),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class NormQuantizeExplanation(Explanation):
    """The kernel of a norm with 8-bit results."""

    to: NormQuantization
    element: str
    rows: int
    n: int  # length of a row

    def _title(self) -> str:
        return f"{self.operation} of {self.rows} x {self.n} {self.element} to {self.to.element}"

    def _layout(self) -> Iterator[Line]:
        yield "a scale", _REGIONS[self.to.regions]

    def _limits(self) -> str:
        return f"{self.bytes / 1e9:.3g} GB (DRAM, an H200)"


def explain_norm_quantize(
    call: str, x: Any, takes: str, dtype: object, block: object, element: str
) -> NormQuantizeExplanation:
    """Explain a norm with 8-bit results.  Raises the errors of the function, and UnsupportedError for long rows.

    Args:
        x: the array, or its shape.
        takes: operands: w (weight), b (bias), r (residual).
        element: type of ``x`` if it is a shape.
    """
    shape, element = shape_and_type(call, "x", x, element, WIDE)
    to, rows, n = NormQuantization.of(call, dtype, block), prod(shape[:-1]), shape[-1]
    c = choose_norm_config(call, element, to.element, to.regions, n, takes)
    if c is None:
        raise UnsupportedError(
            f"{call}: rows of {n} elements are normalized and quantized by separate kernels; explain these calls"
        )
    vectors = len(takes.strip("r"))
    size = (rows * (3 if "r" in takes else 1) + vectors) * n * BITS[element] // 8
    size += rows * n + 4 * prod(shape_of_scales(to.regions, shape))
    kernel = norm_quantize_kernel(c)
    return NormQuantizeExplanation(
        operation=f"{call} with quantize", kernel=c.name, bytes=size, bound=size / DRAM / 1e6, kernels=(kernel,), to=to,
        element=element, rows=rows, n=n,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SampleExplanation(Explanation):
    """The kernel of ``sample`` or ``topk``."""

    element: str
    rows: int
    n: int  # length of a row
    passes: int  # over the rows, the first one from DRAM

    def _title(self) -> str:
        return f"{self.operation} of {self.rows} x {self.n} {self.element}"

    def _layout(self) -> Iterator[Line]:
        more = f", then {self.passes - 1} more passes for the filters" if self.passes > 1 else ""
        yield "a row", "by a block, in one pass" + more

    def _limits(self) -> str:
        return f"{self.bytes / 1e9:.3g} GB (DRAM, an H200)"


def _selected_rows(call: str, name: str, x: Any, element: str) -> tuple[int, int, str]:
    """Return the number of rows of an array or a shape, their length, and the element type.

    Raises ShapeError, DtypeError.
    """
    shape, element = shape_and_type(call, name, x, element, WIDE)
    return prod(shape[:-1]), shape[-1], element


def explain_sample(logits: object, filters: str, element: str) -> SampleExplanation:
    """Explain ``sample``.  Raises the errors of the function.

    Args:
        logits: the array, or its shape.
        filters: k (top-k), p (top-p), m (min-p).
        element: type of ``logits`` if it is a shape.
    """
    rows, n, element = _selected_rows("sample", "logits", logits, element)
    c = choose_sample_config(element, n, filters, (), rows)
    if c is None:
        raise UnsupportedError(f"sample: rows of {n} logits are too long; pass at most {longest_row(element)}")
    size, kernel = rows * (n * BITS[element] // 8 + 4), sample_kernel(c)
    return SampleExplanation(
        operation="sample", kernel=c.name, bytes=size, bound=size / DRAM / 1e6, kernels=(kernel,), element=element,
        rows=rows, n=n, passes=passes_of(c),
    )  # fmt: skip


def explain_topk(x: object, k: object, largest: bool, element: str) -> SampleExplanation:
    """Explain ``topk``.  Raises the errors of the function.

    Args:
        x: the array, or its shape.
        element: type of ``x`` if it is a shape.
    """
    rows, n, element = _selected_rows("topk", "x", x, element)
    count, c = check_topk(element, rows, n, k, largest)
    size, kernel = rows * (n * BITS[element] // 8 + count * (BITS[element] // 8 + 8)), topk_kernel(c)
    return SampleExplanation(
        operation="topk",
        kernel=c.name,
        bytes=size,
        bound=size / DRAM / 1e6,
        kernels=(kernel,),
        element=element,
        rows=rows,
        n=n,
        passes=1,
    )
