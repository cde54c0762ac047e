"""Checked arguments of a convolution.

The arrays are ``x`` (N, …, C), ``f`` (K, …, C / groups) and ``grad_y`` (N, …, K), with the dimensions in the order of
the caller.
"""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from cute_dialect.kernels.conv.config import DGRAD, FPROP, WGRAD
from cute_dialect.op.arrays.dtypes import arithmetic_of, both, can_mix, check_types, element_name, element_of, result_of
from cute_dialect.op.arrays.library import Where
from cute_dialect.op.arrays.overlap import overlap
from cute_dialect.op.conv.geometry import Geometry, geometry
from cute_dialect.op.conv.layouts import channels_first, first, last, views_last
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.errors import DtypeError, LayoutError, ShapeError, UnsupportedError
from cute_dialect.op.problems.operands import check_activation
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.signature_types import Interpreted

__all__ = ["NAMES", "Call", "ConvArguments", "Prepared", "prepared", "tf32_of_convolutions"]

NAMES = {FPROP: ("x", "f"), DGRAD: ("grad_y", "f"), WGRAD: ("x", "grad_y")}
"""Kind -> names of the arrays that a kernel reads: the image, and the other one."""


class Call(NamedTuple):
    """A call in progress."""

    name: str
    kind: str
    where: Where
    first: bool  # shapes have channels first
    stream: object
    run: Interpreted

    @property
    def options(self) -> dict[str, Any]:
        """Call options of a kernel."""
        if self.where.cpu:
            return {"device": "cpu", **{key: value for key, value in self.run.items() if key != "report"}}
        found: dict[str, Any] = {}
        library = self.where.library.name
        if library == "numpy" and self.where.device is not None:
            found["device"] = self.where.device
        if self.stream is not None and library not in ("torch", "cupy"):  # their stream is the library's current one
            found["stream"] = self.stream
        return found

    def told(self, report: Any) -> None:
        """Pass on the interpreter's report of a launch."""
        if report is not None and "report" in self.run:
            self.run["report"](report)


class ConvArguments(NamedTuple):
    """Arguments of a call that are not arrays."""

    stride: object = 1
    padding: object = 0
    dilation: object = 1
    groups: object = 1
    size: object = None  # shape of a result that is a gradient
    mode: str = "cross_correlation"
    data_format: object = None
    dtype: object = None
    split_k: object = None
    kernel: object = None

    @property
    def parts(self) -> int:
        """Number of split-K slices; 0 for the fastest number.  Raises UnsupportedError."""
        if self.split_k is None:
            return 0
        from cute_dialect.op.execute.launch_sequence import Split

        found = Split.of(self.split_k)
        if found.mode != "serial":
            raise UnsupportedError(
                f"split_k: {self.split_k!r} is not supported; pass a number, ('serial', number), or use op.Conv2d"
            )
        return found.parts


class Prepared(NamedTuple):
    """The checked convolution: geometry, types, and arrays with channels last."""

    geometry: Geometry
    image: ArrayView
    other: ArrayView
    element: str
    output: str
    arithmetic: str
    bias: ArrayView | None
    c: ArrayView | None


def tf32_of_convolutions() -> bool:
    """Return True if torch allows TF32 in its f32 convolutions."""
    import torch

    cudnn = torch.backends.cudnn
    conv = getattr(cudnn, "conv", None)
    precision = getattr(conv, "fp32_precision", None)
    return bool(cudnn.allow_tf32) if precision is None else precision == "tf32"


def _size(call: str, name: str, value: object, rank: int, channels: bool) -> tuple[int, ...]:
    """Return the shape of a requested gradient, with channels last."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        given = tuple(cast("Sequence[object]", value))
        if len(given) == rank and all(isinstance(n, int) and n >= 0 for n in given):
            return last(cast("tuple[int, ...]", given), channels)
    raise ShapeError(f"{call}: {name} is {value!r}; pass a shape of {rank} numbers")


def prepared(
    name: str, kind: str, rank: int, views: Mapping[str, ArrayView], given: ConvArguments, extras: LinearCombination,
    library: str
) -> tuple[Prepared, bool]:  # fmt: skip
    """Check a call; return the convolution, and whether its shapes have channels first.

    Raises subclasses of OpError.
    """
    turn = channels_first(name, given.data_format, rank, library)
    names = NAMES[kind]
    for n in (*names, "out"):
        if n in views and len(views[n].shape) != rank + 2:
            raise ShapeError(f"{name}: {n} has shape {tuple(views[n].shape)}; pass an array of rank {rank + 2}")
    image, other = (views_last(views[n], turn) for n in names)
    if not can_mix(image.dtype, other.dtype):
        raise DtypeError(
            f"{name}: {names[1]} has dtype {other.dtype}, but {names[0]} has dtype {image.dtype}; "
            "pass operands of one dtype"
        )
    how = (given.stride, given.padding, given.dilation, given.groups, given.mode)
    if kind == FPROP:
        found = geometry(name, kind, image.shape, other.shape, *how)
    elif kind == DGRAD:
        size = _size(name, "input_size", given.size, rank + 2, turn)
        found = geometry(name, kind, size, other.shape, *how)
        _check_gradient(name, image, found, turn)
    else:
        size = _size(name, "weight_size", given.size, rank + 2, turn)
        found = geometry(name, kind, image.shape, size, *how)
        _check_gradient(name, other, found, turn)
    pair = both(image.dtype, other.dtype)
    default = pair == "f32" and extras.math == "default" and library == "torch" and tf32_of_convolutions()
    arithmetic = arithmetic_of(pair, extras.math, extras.accumulator, default)
    wanted = None if given.dtype is None else element_name(given.dtype)
    output = views["out"].dtype if "out" in views else wanted or result_of(image.dtype)
    check_types(pair, output, arithmetic)
    check_activation(name, extras.activation, None)
    for n, value in (("alpha", cast(object, extras.alpha)), ("beta", cast(object, extras.beta))):
        if not isinstance(value, int | float):
            raise DtypeError(f"{name}: {n} is {value!r}; pass a number")
    if "out" in views:
        out = views["out"]
        shape = first(found.output, turn)
        if tuple(out.shape) != shape:
            raise ShapeError(f"{name}: out has shape {tuple(out.shape)}; pass out of shape {shape}")
        if wanted not in (None, out.dtype):
            raise DtypeError(f"{name}: dtype is {wanted}, but out has dtype {out.dtype}; omit dtype")
        for n in (*names, "bias"):
            if n in views and overlap(views[n], out):
                raise LayoutError(f"{name}: out shares memory with {n}; pass a separate out (only c may be out)")
    channels = found.output[-1]
    bias = views.get("bias")
    if bias is not None:
        ones = first((1,) * (rank + 1) + (channels,), turn)
        if tuple(bias.shape) not in ((channels,), (1, channels), ones):
            raise ShapeError(f"{name}: bias has shape {tuple(bias.shape)}; pass a bias of ({channels},)")
        step = max(zip(bias.shape, bias.strides))[1] if channels > 1 else 1
        bias = bias._replace(shape=(channels,), strides=(step,))
    c = views.get("c") if extras.beta != 0.0 else None
    if c is not None:
        c = _expanded(name, c, found.output, turn)
    return Prepared(found, image, other, element_of(pair, arithmetic), output, arithmetic, bias, c), turn


def _check_gradient(name: str, grad: ArrayView, found: Geometry, turn: bool) -> None:
    if tuple(grad.shape) != found.result:
        wanted, got = first(found.result, turn), first(tuple(grad.shape), turn)
        raise ShapeError(f"{name}: grad_y has shape {got}; pass grad_y of shape {wanted}")


def _expanded(name: str, c: ArrayView, shape: tuple[int, ...], turn: bool) -> ArrayView:
    """Return ``c`` broadcast to the result's shape, with channels last."""
    missing = len(shape) - len(c.shape)
    wanted = first(shape, turn)
    old, steps = (1,) * missing + c.shape, (0,) * missing + c.strides
    if missing < 0 or any(n not in (1, m) for n, m in zip(old, wanted)):
        raise ShapeError(f"{name}: c has shape {tuple(c.shape)}; pass an array that broadcasts to {wanted}")
    strides = tuple([0 if n == 1 and wide > 1 else step for n, step, wide in zip(old, steps, wanted)])
    return views_last(c._replace(shape=wanted, strides=strides), turn)
