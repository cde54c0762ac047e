"""Convolutions and their gradients of image and filter, in one to three dimensions."""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.conv.config import DGRAD, FPROP, WGRAD
from cute_dialect.kernels.epilogue.activations import Spelled, spelled
from cute_dialect.op.arrays.library import is_autocast
from cute_dialect.op.conv.compute import convolution
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.epilogue.tracing import Traced
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.execute.autocast import cast_arrays, disabled, with_weights
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.execute.recording import needs_gradients
from cute_dialect.op.functions.gemm import graph_key
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.problems.conv import NAMES, ConvOptions, tf32_of_convolutions

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.op.signature_types import Array, Epilogue, Interpreted, Sizes


def conv2d(
    x: Array,
    f: Array,
    bias: Array = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    *,
    out: Array = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    c: Array = None,
    activation: Spelled = "",
    epilogue: Epilogue = None,
    args: Mapping[str, Any] | None = None,
    mode: str = "cross_correlation",
    data_format: str | None = None,
    dtype: object = None,
    math: str = "default",
    accumulator: object = None,
    kernel: object = None,
    split_k: object = None,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> Array:
    """Return ``activation(alpha * conv(x, f) + beta * c + bias)``.

    Results have channels-last memory, and so should ``x`` and ``f``; other orders are copied.  Types f16, bf16, f32 as
    tf32 and 8-bit types use im2col TMA and wgmma.  Other convolutions (groups with odd numbers of channels, f64, exact
    f32, wide windows) write columns, which a GEMM multiplies; :func:`cute_dialect.op.explain` reports the kernels.

    Args:
        x: (N, C, H, W), or (N, H, W, C) with ``data_format="NHWC"``.
        f: (K, C / groups, R, S), or (K, R, S, C / groups) with ``data_format="NHWC"``.
        bias: (K,).
        stride, dilation: a number, or one per dimension.
        padding: a number, one per dimension, pairs (before, after), ``"same"`` or ``"valid"``.
        out: array for the result, (N, K, P, Q) or (N, P, Q, K); default: a new array.
        c: an array that broadcasts to the result; may be ``out``.
        epilogue, args: as in :func:`cute_dialect.op.mm`; arrays with a value per pixel are matrices with a row per
            pixel and a column per channel.
        mode: ``"convolution"`` flips the filter.
        data_format: default: ``"NCHW"`` for torch tensors, ``"NHWC"`` for other arrays.
        kernel: a kernel with im2col loads, its name, or a tile.
        split_k: number of split-K slices; default: chosen by the cost model.
        alpha, beta, activation, dtype, math, accumulator: as in :func:`cute_dialect.op.mm`.
        device, stream, run: as in :func:`cute_dialect.op.mm`.

    Raises subclasses of OpError.
    """
    usual = (
        out is None and c is None and epilogue is None and args is None and accumulator is None and kernel is None
        and split_k is None and device is None and stream is None and not run and alpha == 1.0
        and isinstance(activation, str) and not LAYERS.is_traced()
    )  # fmt: skip
    how = (stride, padding, dilation, groups, activation, mode, data_format, dtype, math, bias is None)
    if usual:
        how = (*how, _multiplies(x))
        done = LAYERS.again(how, x, f) if bias is None else LAYERS.again(how, x, f, bias)
        if done is not None:
            return done
    arrays = {"x": x, "f": f, "out": out, "c": c, "bias": bias}
    given = ConvOptions(stride, padding, dilation, groups, None, mode, data_format, dtype, split_k, kernel)
    extras = LinearCombination(alpha, beta, c, bias, spelled(activation), None, math, accumulator)

    def compute() -> Any:
        return computed(2, FPROP, arrays, given, extras, device, stream, run, epilogue, args)

    return LAYERS.computed(how, (x, f) if bias is None else (x, f, bias), compute) if usual else compute()


def conv2d_input(
    input_size: Sizes,
    f: Array,
    grad_y: Array,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    *,
    out: Array = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    c: Array = None,
    epilogue: Epilogue = None,
    args: Mapping[str, Any] | None = None,
    mode: str = "cross_correlation",
    data_format: str | None = None,
    dtype: object = None,
    math: str = "default",
    accumulator: object = None,
    kernel: object = None,
    split_k: object = None,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> Array:
    """Return the gradient of the images of :func:`conv2d`.

    Args:
        input_size: shape of the images.
        grad_y: gradient of the result of :func:`conv2d`.
        alpha, beta, c, epilogue, args: as in :func:`conv2d`, applied to this gradient.

    Other arguments are those of :func:`conv2d`.
    """
    arrays = {"grad_y": grad_y, "f": f, "out": out, "c": c}
    given = ConvOptions(stride, padding, dilation, groups, input_size, mode, data_format, dtype, split_k, kernel)
    extras = LinearCombination(alpha, beta, c, None, "", None, math, accumulator)
    return computed(2, DGRAD, arrays, given, extras, device, stream, run, epilogue, args)


def conv2d_weight(
    x: Array,
    weight_size: Sizes,
    grad_y: Array,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    *,
    out: Array = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    c: Array = None,
    epilogue: Epilogue = None,
    args: Mapping[str, Any] | None = None,
    mode: str = "cross_correlation",
    data_format: str | None = None,
    dtype: object = None,
    math: str = "default",
    accumulator: object = None,
    kernel: object = None,
    split_k: object = None,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> Array:
    """Return the gradient of the filters of :func:`conv2d`.

    Args:
        weight_size: shape of the filters.
        grad_y: gradient of the result of :func:`conv2d`.
        alpha, beta, c, epilogue, args: as in :func:`conv2d`, applied to this gradient; for an epilogue it is a matrix
            with a row per filter.

    Other arguments are those of :func:`conv2d`.
    """
    arrays = {"x": x, "grad_y": grad_y, "out": out, "c": c}
    given = ConvOptions(stride, padding, dilation, groups, weight_size, mode, data_format, dtype, split_k, kernel)
    extras = LinearCombination(alpha, beta, c, None, "", None, math, accumulator)
    return computed(2, WGRAD, arrays, given, extras, device, stream, run, epilogue, args)


def conv1d(
    x: Array, f: Array, bias: Array = None, stride: Sizes = 1, padding: Sizes = 0, dilation: Sizes = 1, groups: int = 1,
    **more: Any,
) -> Array:  # fmt: skip
    """Compute :func:`conv2d` in one dimension: ``x`` is (N, C, W) and ``f`` (K, C / groups, S) in torch's order."""
    return _of_rank(1, FPROP, x, f, None, (stride, padding, dilation, groups), bias=bias, **more)


def conv1d_input(
    input_size: Sizes,
    f: Array,
    grad_y: Array,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    **more: Any,
) -> Array:
    """Return the gradient of the input of :func:`conv1d`, as :func:`conv2d_input` does."""
    return _of_rank(1, DGRAD, grad_y, f, input_size, (stride, padding, dilation, groups), **more)


def conv1d_weight(
    x: Array,
    weight_size: Sizes,
    grad_y: Array,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    **more: Any,
) -> Array:
    """Return the gradient of the filters of :func:`conv1d`, as :func:`conv2d_weight` does."""
    return _of_rank(1, WGRAD, x, grad_y, weight_size, (stride, padding, dilation, groups), **more)


def conv3d(
    x: Array, f: Array, bias: Array = None, stride: Sizes = 1, padding: Sizes = 0, dilation: Sizes = 1, groups: int = 1,
    **more: Any,
) -> Array:  # fmt: skip
    """Compute :func:`conv2d` in three dimensions.

    In torch's order ``x`` is (N, C, D, H, W) and ``f`` (K, C / groups, T, R, S).
    """
    return _of_rank(3, FPROP, x, f, None, (stride, padding, dilation, groups), bias=bias, **more)


def conv3d_input(
    input_size: Sizes,
    f: Array,
    grad_y: Array,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    **more: Any,
) -> Array:
    """Return the gradient of the input of :func:`conv3d`, as :func:`conv2d_input` does."""
    return _of_rank(3, DGRAD, grad_y, f, input_size, (stride, padding, dilation, groups), **more)


def conv3d_weight(
    x: Array,
    weight_size: Sizes,
    grad_y: Array,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    **more: Any,
) -> Array:
    """Return the gradient of the filters of :func:`conv3d`, as :func:`conv2d_weight` does."""
    return _of_rank(3, WGRAD, x, grad_y, weight_size, (stride, padding, dilation, groups), **more)


def _of_rank(
    rank: int, kind: str, image: Any, other: Any, size: Any, how: tuple[Any, Any, Any, int], *, bias: Any = None,
    out: Any = None, alpha: float = 1.0, beta: float = 1.0, c: Any = None, activation: Spelled = "",
    epilogue: Any = None, args: Mapping[str, Any] | None = None, mode: str = "cross_correlation",
    data_format: str | None = None, dtype: object = None, math: str = "default", accumulator: object = None,
    kernel: object = None, split_k: object = None, device: object = None, stream: object = None,
    **run: Unpack[Interpreted],
) -> Any:  # fmt: skip
    """Compute a convolution in ``rank`` dimensions, with the options of :func:`conv2d`."""
    arrays = {**dict(zip(NAMES[kind], (image, other))), "out": out, "c": c, "bias": bias}
    given = ConvOptions(*how, size, mode, data_format, dtype, split_k, kernel)
    extras = LinearCombination(alpha, beta, c, bias, spelled(activation), None, math, accumulator)
    return computed(rank, kind, arrays, given, extras, device, stream, run, epilogue, args)


KNOWN = KnownCalls()
"""Recorded calls on torch tensors on a GPU."""
LAYERS = KnownCalls()
"""Recorded calls of ``conv2d`` with few arguments, whose keys take less time."""


def computed(
    rank: int, kind: str, arrays: Mapping[str, Any], given: ConvOptions, extras: LinearCombination, device: object,
    stream: object,
    run: Interpreted, epilogue: Epilogue = None, args: Mapping[str, Any] | None = None,
) -> Array:  # fmt: skip
    """Compute a convolution: replay a recorded call, launch kernels, or let torch's dispatcher compute it."""
    if args and epilogue is None:
        raise UnsupportedError(
            f"{name_of(rank, kind)}: args has {', '.join(args)}, but there is no epilogue; pass epilogue"
        )
    if run:
        of_two: Any = {FPROP: conv2d, DGRAD: conv2d_input, WGRAD: conv2d_weight}[kind]
        check_keywords(name_of(rank, kind), of_two, run)
    first, second = NAMES[kind]
    image, other, out = arrays[first], arrays[second], arrays["out"]
    key = None
    usual = device is None and stream is None and given.kernel is None and not run
    if usual and (epilogue is None or isinstance(epilogue, Traced)) and not KNOWN.is_traced():
        how = (rank, kind, *given, _multiplies(image), epilogue, extras.key)
        key = graph_key(image, other, out, how, args or {})
        key[1].extend(extras.tensors)
        done = KNOWN.again(key[0], *key[1])
        if done is not None:
            return done
    if kind == FPROP and out is None and is_autocast(image):
        cast = cast_arrays("conv", with_weights("conv", arrays, image), image)
        with disabled(image):
            return computed(rank, kind, cast, given, extras, device, stream, run, epilogue, args)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(image, torch.Tensor):
        tensors = [t for t in (*arrays.values(), *(args or {}).values()) if isinstance(t, torch.Tensor)]
        plain = (torch.Tensor, torch.nn.Parameter)
        if KNOWN.is_traced() or needs_gradients(*tensors) or any([type(t) not in plain for t in tensors]):
            from cute_dialect.op.torch import dispatch  # late: torch

            others = {"epilogue": epilogue, "kernel": given.kernel, **run}

            def by_torch() -> Any:
                name = name_of(rank, kind)
                return dispatch.convolution(name, rank, kind, arrays, given, extras, device, stream, others)

            return by_torch() if key is None or KNOWN.is_traced() else KNOWN.differentiable(*key, by_torch)
    name, more = name_of(rank, kind), args or {}

    def compute() -> Any:
        return convolution(name, kind, rank, arrays, given, extras, device, stream, run, epilogue, more)

    if key is None or (epilogue is not None and epilogue.is_random):  # each seed would be cached separately
        return compute()
    return KNOWN.recorded(*key, compute)


def _multiplies(image: Any) -> bool:
    """Return True if an image is an f32 torch tensor and torch allows TF32."""
    torch = sys.modules.get("torch")
    return torch is not None and getattr(image, "dtype", None) is torch.float32 and tf32_of_convolutions()


def is_convolution(function: Callable[..., object]) -> bool:
    """Return True for a convolution of this module."""
    return globals().get(getattr(function, "__name__", "")) is function


def name_of(rank: int, kind: str) -> str:
    """Return the name of the public function."""
    return f"conv{rank}d" + {FPROP: "", DGRAD: "_input", WGRAD: "_weight"}[kind]
