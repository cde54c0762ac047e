"""Explanation of convolutions: the result of :func:`cute_dialect.op.explain`.

>>> print(explain_convolution("conv2d", ((8, 56, 56, 64), (64, 3, 3, 64)), {"padding": 1}))    # doctest: +ELLIPSIS
conv2d on NVIDIA H200: (8, 56, 56, 64) by 64 filters of 3x3, padding 1x1: (8, 56, 56, 64), f16 to f16
  kernel    fprop-f16-f16-3x3-p1x1-...: predicted to be the fastest
  product   M 25088, N 64, K 576: 1.85 GFLOP, 6.5 MB
  predicted ... us, ... TFLOP/s
"""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from cute_dialect.kernels.conv.config import DGRAD, FPROP, WGRAD, ConvConfig
from cute_dialect.kernels.conv.depthwise import DepthwiseConfig
from cute_dialect.kernels.conv.depthwise_weights import DepthwiseWeightsConfig
from cute_dialect.kernels.conv.direct import DirectConfig
from cute_dialect.kernels.conv.few_results import FewResultsConfig
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.arrays.operand_views import aligned_vector, lines_suit, strides_of, views_last
from cute_dialect.op.conv.channel_padding import written
from cute_dialect.op.conv.choice import ConvRequest, pads_channels, problem_of
from cute_dialect.op.conv.dispatch import ConvKind, choose_conv, task_of
from cute_dialect.op.conv.few_channels import PartialWeights
from cute_dialect.op.conv.im2col_gemm import extents_of, writing
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.execute.kernels import PlainKernel
from cute_dialect.op.explanations.gemm import Explanation, Line
from cute_dialect.op.problems.conv import NAMES, ConvOptions, Geometry, prepared
from cute_dialect.op.problems.gemm import epilogue_of
from cute_dialect.op.select.gemm_dispatch import here
from cute_dialect.op.select.kernel_choice import tuned
from cute_dialect.runtime.arrays import ArrayView, numpy_dtype, view_of

_KINDS = {"": FPROP, "_input": DGRAD, "_weight": WGRAD}


@dataclass(frozen=True, kw_only=True)
class ConvExplanation(Explanation):
    """The kernels of a convolution and the predicted time of the main one alone."""

    geometry: Geometry
    element: str
    output: str
    config: ConvConfig | None  # the kernel with im2col loads, if that is used
    apart: bool = False  # the array library computes the epilogue
    other: PlainKernel | None = None
    """The kernel without im2col loads: depthwise, for few channels per group, or one that writes columns."""

    def _title(self) -> str:
        g = self.geometry
        groups = f" in {g.groups} groups" if g.groups > 1 else ""
        return (
            f"{self.operation} on {self.gpu}: {g.image} by {g.filter[0]} filters{groups} of "
            + ", padding ".join(g.window.name.removesuffix("-f").split("-p", 1)).replace("-s", ", stride ", 1)
            + f": {g.result}, {self.element} to {self.output}"
        )

    def _layout(self) -> Iterator[Line]:
        p = problem_of(ConvRequest(self.geometry, self.element, self.output))
        yield (
            "product",
            (
                f"M {p.m}, N {p.n}, K {p.k}{f', {p.matrices} of them' if p.matrices > 1 else ''}: "
                f"{self.flops / 1e9:.3g} GFLOP, {self.bytes / 1e6:.2g} MB"
            ),
        )

    def _finish(self) -> str:
        return "the arrays' library computes the epilogue" if self.apart else ""


def explain_convolution(
    name: str, given: Sequence[Any], how: Mapping[str, Any], element: str = "f16", gpu: str = ""
) -> ConvExplanation:
    """Return the explanation of a call of ``op.conv2d`` or a similar function.

    Args:
        given: the first arguments, arrays or shapes with channels last.
        how: the options.
        element: type of the shapes.

    Raises the errors of the function.
    """
    rank, kind = int(name[4]), _KINDS[name[6:]]
    window = {n: how[n] for n in ("stride", "padding", "dilation", "groups", "mode", "dtype", "split_k") if n in how}
    library, arrays = "numpy", dict[str, Any]()
    order = {FPROP: ("x", "f"), DGRAD: ("size", "f", "grad_y"), WGRAD: ("x", "size", "grad_y")}[kind]
    if len(given) != len(order):
        raise UnsupportedError(f"explain: {name} needs {', '.join(order)}, got {len(given)} arguments; pass these")
    views: dict[str, ArrayView] = {}
    for n, value in zip(order, given):
        if n != "size":
            views[n] = _view(value, element)
            library = views[n].library if views[n].keep is not None else library
        arrays[n] = value
    for n in ("c", "bias", "out"):
        if how.get(n) is not None:
            views[n] = _view(how[n], "f32" if n == "bias" else element)
    options = ConvOptions(**window, size=arrays.get("size"), data_format=how.get("data_format"))
    fields = ("alpha", "beta", "c", "bias", "activation", "math", "accumulator")
    extras = LinearCombination(**{n: how[n] for n in fields if n in how})
    ready, turn = prepared(name, kind, rank, views, options, extras, library)
    gpu, sms = (gpu, 132) if gpu else here()
    g = ready.geometry
    made = Epilogue()
    if how.get("epilogue") is None:
        of_bias = (None, "") if ready.bias is None else (ready.bias.shape, ready.bias.dtype)
        added = None if ready.c is None else extras.c
        made = epilogue_of(name, extras._replace(c=added), *g.matrix, *of_bias, ready.output)
    way = choose_conv(task_of(ready, made, options, extras, gpu, sms, traced=how.get("epilogue") is not None))
    # Accumulators, folded arrays and groups are convolutions of their own.
    ways = [way]
    while ways[-1].inner is not None:
        ways.append(choose_conv(ways[-1].inner))
    last, apart = ways[-1], any(x.apart for x in ways)
    folded = next((x.inner.request.geometry for x in ways if x.kind is ConvKind.FOLDED and x.inner is not None), None)
    turned = next((x.inner for x in ways if x.kind is ConvKind.TRANSPOSED and x.inner is not None), None)
    copied = [n for n in NAMES[kind] if n in views and not lines_suit(views_last(views[n], turn))]
    sizes = {n: prod(v.shape) * numpy_dtype(v.dtype).itemsize for n, v in views.items()}
    item = numpy_dtype(ready.output).itemsize
    moved = sum(sizes[n] for n in NAMES[kind]) + prod(g.output) * item
    other: PlainKernel | None = None
    time, config = last.microseconds, last.config
    if last.kind is ConvKind.FEW_CHANNELS:
        few = last.few
        of_result = "f32" if last.apart else last.request.output
        other = few.kernel(of_result) if isinstance(few, PartialWeights) else few
        assert other is not None
        depthwise = isinstance(other, DepthwiseConfig | DepthwiseWeightsConfig)
        kernel = other.name
        why = "each channel has its own filter" if depthwise else "a group has few channels"
        if g.groups == 1:
            why = "tiles of the image are predicted to be the fastest"
        if isinstance(few, FewResultsConfig):
            why = "a pixel has few results, which are dot products"
        if isinstance(few, PartialWeights) and few.rows > 1:
            why += f"; a second kernel adds {few.rows} rows of partial sums"
        least = getattr(other, "given", 1) if depthwise else 1
        copied = [n for n in NAMES[kind][: 1 if kind != WGRAD else 2] if not _is_read(views, n, turn, least)]
        if isinstance(other, DirectConfig) and other.padded:
            copied = list(NAMES[kind][: 1 if other.gradient else 2])
    elif config is not None:
        kernel, why = config.name, "predicted to be the fastest"
        if last.request.key in tuned(gpu):
            why = "measured to be the fastest"
        if pads_channels(last.request.geometry, config.width):
            copied = list(NAMES[kind])
    elif g.is_product:
        kernel, why, copied = "a GEMM", "there is one tap, see op.mm", []
    else:
        kernel, copied = "columns, and a GEMM", ["columns"]
        rows = prod(g.result[:-1]) if kind != DGRAD else g.matrix[0]
        sizes["columns"] = rows * g.taps * ready.image.shape[-1] * numpy_dtype(ready.image.dtype).itemsize
        image = ready.image if lines_suit(ready.image) else ready.image._replace(strides=strides_of(ready.image.shape))
        matrix = image._replace(shape=(rows, 0), strides=(extents_of(g, image)[1], 1))
        other = writing(g, image, matrix).config
        why = "im2col loads and wgmma do not support its types, channels or window"
        why = why if folded is None else "the columns of the filter are folded into channels, and it has one row"
    if folded is not None and config is not None:
        shape = folded.result if kind == DGRAD else folded.image
        why, copied = f"the columns of the filter are folded into {shape[-1]} channels; {why}", ["columns"]
        sizes["columns"] = prod(shape) * numpy_dtype(ready.image.dtype).itemsize
        wide = ready.image._replace(shape=shape, strides=strides_of(shape))
        other = written(g, folded, ready.image, wide).config
    if turned is not None:
        copied = list(dict.fromkeys([*copied, "f"]))
        why = f"the gradient is an fprop of grad_y with a transposed copy of the filter; {why}"
    grouped = next((x.request.geometry for x in ways if x.kind in (ConvKind.GROUPS, ConvKind.PADDED_GROUPS)), None)
    if grouped is not None and grouped.groups > 1:
        channels = f"{grouped.filter[-1]} channels and {grouped.filter[0] // g.groups} filters"
        why = f"copies with {channels} per group are predicted to be the fastest"
        shapes = {"x": (g.image, grouped.image), "f": (g.filter, grouped.filter), "grad_y": (g.result, grouped.result)}
        copied = [n for n in NAMES[kind] if shapes[n][0] != shapes[n][1]]
    elif grouped is not None:
        time, why = g.groups * time, f"a launch for each of {g.groups} groups is predicted to be the fastest"
    return ConvExplanation(
        operation=name, gpu=gpu, kernel=kernel, why=why, microseconds=time,
        copies=tuple([(n, sizes[n]) for n in copied]), flops=g.flops, bytes=moved,
        kernels=tuple([x for x in (config, other) if x is not None]), geometry=g, element=ready.element,
        output=ready.output, config=config, apart=apart, other=other,
    )  # fmt: skip


def _is_read(views: Mapping[str, ArrayView], name: str, turn: bool, least: int) -> bool:
    """Return True if a kernel that loads ``least`` channels at once reads an array without a copy."""
    return name not in views or aligned_vector(views_last(views[name], turn)) >= least


def _view(value: Any, element: str) -> ArrayView:
    """Return a view of an array, or of a contiguous array of a shape."""
    if not isinstance(value, tuple | list):
        return view_of(value)
    shape = tuple(value)
    return ArrayView(0, shape, strides_of(shape), element_name(element), -1, "numpy", None)
