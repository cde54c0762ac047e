"""Convolutions and their gradients as functions."""

# Arrays are of any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.activations import Spelled, spelled
from cute_dialect.kernels.conv.config import DGRAD, FPROP, WGRAD
from cute_dialect.op.conv.arguments import NAMES, Given, tf32_of_convolutions
from cute_dialect.op.conv.compute import convolution
from cute_dialect.op.epilogue.tracing import Traced
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.gemm import graph_key
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.known import Extras, KnownCalls

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.op.product import Interpreted

__all__ = [
    "computed", "conv1d", "conv1d_input", "conv1d_weight", "conv2d", "conv2d_input", "conv2d_weight", "conv3d",
    "conv3d_input", "conv3d_weight",
]  # fmt: skip


def conv2d(
    x: Any,
    f: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    *,
    out: Any = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    c: Any = None,
    activation: Spelled = "",
    epilogue: Any = None,
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
) -> Any:
    """Return ``activation(alpha * conv(x, f) + beta * c + bias)`` of images and filters.

    ``x``: (N, C, H, W), ``f``: (K, C / groups, R, S), result: (N, K, P, Q) for tensors of torch, or where
    ``data_format`` is ``"NCHW"``; for others (``"NHWC"``) (N, H, W, C), (K, R, S, C / groups), (N, P, Q, K).  Results
    lie in memory with the channels last, and so should ``x`` and ``f``: others are copied.  ``stride``, ``dilation``:
    a number, or one for each dimension; ``padding``: the same, or pairs (before, after), ``"same"`` or ``"valid"``.
    ``mode``: ``"convolution"`` takes the filter backwards.  ``bias``: (K,); ``c``: what expands to the result, may be
    ``out``.  ``epilogue``: in place of it all a function of the sums and of ``args`` by name, for which all that has a
    value a pixel is a matrix with a row for each pixel and a column for each channel.

    By im2col TMA and wgmma for f16, bf16, f32 as tf32 and 8 bits; all else (channels in groups of odd sizes, f64, exact
    f32, wide windows) is written out as columns, a matrix that is multiplied: :func:`cute_dialect.op.explain` says
    which.  ``kernel``: the one with im2col loads to take, its name, or a tile.  The rest is as in
    :func:`cute_dialect.op.mm`.  Raises subclasses of OpError.
    """
    arrays = {"x": x, "f": f, "out": out, "c": c, "bias": bias}
    given = Given(stride, padding, dilation, groups, None, mode, data_format, dtype, split_k, kernel)
    extras = Extras(alpha, beta, c, bias, spelled(activation), None, math, accumulator)
    return computed(2, FPROP, arrays, given, extras, device, stream, run, epilogue, args)


def conv2d_input(
    input_size: Any,
    f: Any,
    grad_y: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    *,
    out: Any = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    c: Any = None,
    epilogue: Any = None,
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
) -> Any:
    """Return the gradient of the images of :func:`conv2d`, of shape ``input_size``, from that of its result.

    ``alpha``, ``beta``, ``c`` and ``epilogue``: as of :func:`conv2d`, of this result.
    """
    arrays = {"grad_y": grad_y, "f": f, "out": out, "c": c}
    given = Given(stride, padding, dilation, groups, input_size, mode, data_format, dtype, split_k, kernel)
    extras = Extras(alpha, beta, c, None, "", None, math, accumulator)
    return computed(2, DGRAD, arrays, given, extras, device, stream, run, epilogue, args)


def conv2d_weight(
    x: Any,
    weight_size: Any,
    grad_y: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    *,
    out: Any = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    c: Any = None,
    epilogue: Any = None,
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
) -> Any:
    """Return the gradient of the filters of :func:`conv2d`, of shape ``weight_size``, from that of its result.

    ``alpha``, ``beta``, ``c`` and ``epilogue``: as of :func:`conv2d`, of this result, for an epilogue a matrix with a
    row for each filter.
    """
    arrays = {"x": x, "grad_y": grad_y, "out": out, "c": c}
    given = Given(stride, padding, dilation, groups, weight_size, mode, data_format, dtype, split_k, kernel)
    extras = Extras(alpha, beta, c, None, "", None, math, accumulator)
    return computed(2, WGRAD, arrays, given, extras, device, stream, run, epilogue, args)


def conv1d(
    x: Any, f: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    **more: Any,
) -> Any:  # fmt: skip
    """Return what :func:`conv2d` does, of one dimension: ``x`` (N, C, W), ``f`` (K, C / groups, S) in torch's order."""
    return _of_rank(1, FPROP, x, f, None, (stride, padding, dilation, groups), bias=bias, **more)


def conv1d_input(
    input_size: Any, f: Any, grad_y: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    **more: Any,
) -> Any:  # fmt: skip
    """Return the gradient of the input of :func:`conv1d`, as :func:`conv2d_input` does."""
    return _of_rank(1, DGRAD, grad_y, f, input_size, (stride, padding, dilation, groups), **more)


def conv1d_weight(
    x: Any, weight_size: Any, grad_y: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    **more: Any,
) -> Any:  # fmt: skip
    """Return the gradient of the filters of :func:`conv1d`, as :func:`conv2d_weight` does."""
    return _of_rank(1, WGRAD, x, grad_y, weight_size, (stride, padding, dilation, groups), **more)


def conv3d(
    x: Any, f: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    **more: Any,
) -> Any:  # fmt: skip
    """Return what :func:`conv2d` does, of three dimensions: ``x`` (N, C, D, H, W), ``f`` (K, C / groups, T, R, S) in
    torch's order.
    """
    return _of_rank(3, FPROP, x, f, None, (stride, padding, dilation, groups), bias=bias, **more)


def conv3d_input(
    input_size: Any, f: Any, grad_y: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    **more: Any,
) -> Any:  # fmt: skip
    """Return the gradient of the input of :func:`conv3d`, as :func:`conv2d_input` does."""
    return _of_rank(3, DGRAD, grad_y, f, input_size, (stride, padding, dilation, groups), **more)


def conv3d_weight(
    x: Any, weight_size: Any, grad_y: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    **more: Any,
) -> Any:  # fmt: skip
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
    """Compute a convolution of some rank, with the options of :func:`conv2d`."""
    arrays = {**dict(zip(NAMES[kind], (image, other))), "out": out, "c": c, "bias": bias}
    given = Given(*how, size, mode, data_format, dtype, split_k, kernel)
    extras = Extras(alpha, beta, c, bias, spelled(activation), None, math, accumulator)
    return computed(rank, kind, arrays, given, extras, device, stream, run, epilogue, args)


KNOWN = KnownCalls()
"""Calls that were computed, of torch's tensors on a GPU."""


def computed(
    rank: int, kind: str, arrays: Mapping[str, Any], given: Given, extras: Extras, device: object, stream: object,
    run: Interpreted, epilogue: Any = None, args: Mapping[str, Any] | None = None,
) -> Any:  # fmt: skip
    """Compute a convolution of some rank as one that was before, or the long way, or let torch's dispatcher do it."""
    if args and epilogue is None:
        raise UnsupportedError(f"{name_of(rank, kind)}: expected args with an epilogue only, got {', '.join(args)}")
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
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(image, torch.Tensor):
        tensors = [t for t in (*arrays.values(), *(args or {}).values()) if isinstance(t, torch.Tensor)]
        plain = (torch.Tensor, torch.nn.Parameter)
        if (
            KNOWN.is_traced()
            or (torch.is_grad_enabled() and any([t.requires_grad for t in tensors]))
            or any([type(t) not in plain for t in tensors])
        ):
            from cute_dialect.op.conv.operators import by_operator

            others = {"epilogue": epilogue, "kernel": given.kernel, **run}
            return by_operator(name_of(rank, kind), rank, kind, arrays, given, extras, device, stream, others)
    name, more = name_of(rank, kind), args or {}

    def compute() -> Any:
        return convolution(name, kind, rank, arrays, given, extras, device, stream, run, epilogue, more)

    if key is None or (epilogue is not None and epilogue.is_random):  # each seed would be a call of its own
        return compute()
    return KNOWN.recorded(*key, compute)


def _multiplies(image: Any) -> bool:
    """Tell whether f32 may be multiplied as tf32, of tensors of f32."""
    torch = sys.modules.get("torch")
    return torch is not None and getattr(image, "dtype", None) is torch.float32 and tf32_of_convolutions()


def name_of(rank: int, kind: str) -> str:
    """Return the name of the function of a kind."""
    return f"conv{rank}d" + {FPROP: "", DGRAD: "_input", WGRAD: "_weight"}[kind]
