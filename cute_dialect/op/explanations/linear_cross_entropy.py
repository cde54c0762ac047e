"""Explanation of ``op.linear_cross_entropy``, which :func:`cute_dialect.op.explain` returns: the steps of a chunk."""

# Arrays belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from cute_dialect.kernels.rows.config import BITS
from cute_dialect.op.epilogue.tracing import FakeTensor
from cute_dialect.op.errors import ShapeError, UnsupportedError
from cute_dialect.op.explanations.gemm import Explanation, Line, example_view
from cute_dialect.op.explanations.rows import explain_rows
from cute_dialect.op.problems.linear_cross_entropy import CALL, accumulation, default_chunk, row_stride
from cute_dialect.op.rows.kernels import entropy_kernel


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
