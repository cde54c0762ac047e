"""Convolution problems: geometry, types and arrays of a call, checked once for functions and for plans.

Functions name their arrays ``x`` (N, …, C), ``f`` (K, …, C / groups) and ``grad_y`` (N, …, K), and copy what a kernel
cannot read.  Plans name them A, B, C and D, and read them in place.  All checks precede compilation and launches.

>>> found = geometry("conv2d", "fprop", (8, 56, 56, 64), (128, 3, 3, 64), 2, 1, 1, 1)
>>> found.result, found.flops
((8, 28, 28, 128), 924844032)
"""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from cute_dialect.kernels.conv.config import DGRAD, FPROP, WGRAD, Window
from cute_dialect.op.arrays.dtypes import (
    SIZES,
    arithmetic_of,
    both,
    can_mix,
    check_types,
    element_name,
    element_of,
    result_of,
)
from cute_dialect.op.arrays.library import Library
from cute_dialect.op.arrays.operand_views import (
    as_rows,
    channels_first,
    dense,
    first,
    last,
    lines_suit,
    merged,
    overlap,
    turned,
    views_last,
)
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.errors import (
    AlignmentError,
    DeviceError,
    DtypeError,
    EpilogueError,
    LayoutError,
    ShapeError,
    UnsupportedError,
)
from cute_dialect.op.problems.operands import Kinds, Operands, Type, check_activation, check_overlap, new_like, read
from cute_dialect.runtime.arrays import ArrayView, accepts, view_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.pycutlass.conv import Conv2dProblemSize

MODES = ("cross_correlation", "convolution")


class Geometry(NamedTuple):
    """A convolution: ``image`` (N, …, C), ``filter`` (K, …, C / groups), ``result`` (N, …, K)."""

    kind: str
    image: tuple[int, ...]
    filter: tuple[int, ...]
    result: tuple[int, ...]
    window: Window
    groups: int

    @property
    def extents(self) -> tuple[int, ...]:
        """Spatial extents of the image."""
        return self.image[1:-1]

    @property
    def taps(self) -> int:
        """Number of taps of the filter."""
        return prod(self.window.taps)

    @property
    def output(self) -> tuple[int, ...]:
        """Shape of the computed array."""
        return {FPROP: self.result, DGRAD: self.image, WGRAD: self.filter}[self.kind]

    @property
    def matrix(self) -> tuple[int, int]:
        """Shape of the computed array as a matrix: a row per pixel, or per filter."""
        shape = self.output
        return (shape[0], prod(shape[1:])) if self.kind == WGRAD else (prod(shape[:-1]), shape[-1])

    @property
    def is_product(self) -> bool:
        """True if each pixel of the result depends on one pixel of the image, so the convolution is a GEMM."""
        w = self.window
        return self.taps == 1 and not any((*w.before, *w.after)) and set(w.strides) == {1}

    @property
    def flops(self) -> int:
        """Number of multiplications and additions."""
        return 2 * prod(self.result) * self.taps * self.filter[-1]


_MOST_ELEMENTS = 1 << 31
"""Number of elements from which on the pixels of all images are not addressed as one row."""


def of_pixels(g: Geometry) -> Geometry:
    """Return a convolution of one tap as one without a stride, of the pixels that it reads; others are unchanged.

    Without a stride, the pixels of all images are one row.

    >>> of_pixels(geometry("conv2d", "fprop", (8, 56, 56, 16), (32, 1, 1, 16), 1, 0, 1, 1)).result
    (1, 1, 25088, 32)
    >>> of_pixels(geometry("conv2d", "fprop", (8, 56, 56, 16), (32, 1, 1, 16), 2, 0, 1, 1)).image
    (8, 28, 28, 16)
    """
    w, pixels, c, k = g.window, prod(g.result[:-1]), g.image[-1], g.result[-1]
    if g.taps > 1 or any((*w.before, *w.after)) or (g.kind == DGRAD and not g.is_product):
        return g
    if not g.is_product:
        ones, zeros = (1,) * len(w.taps), (0,) * len(w.taps)
        return g._replace(image=(*g.result[:-1], c), window=Window(ones, zeros, zeros, flip=w.flip))
    if pixels * max(c, k) >= _MOST_ELEMENTS:
        return g
    shapes = (1, 1, pixels, c), (g.filter[0], 1, 1, g.filter[-1]), (1, 1, pixels, k)
    return Geometry(g.kind, *shapes, Window((1, 1), (0, 0), (0, 0)), g.groups)


def _numbers(call: str, name: str, value: object, rank: int, least: int) -> tuple[int, ...]:
    """Return a number per dimension, given one number or a sequence."""
    found = (value,) * rank if isinstance(value, int) else value
    if isinstance(found, Sequence) and not isinstance(found, str):
        given = tuple(cast("Sequence[object]", found))
        given = given * rank if len(given) == 1 else given
        if len(given) == rank and all(isinstance(x, int) and not isinstance(x, bool) and x >= least for x in given):
            return tuple([int(cast(int, x)) for x in given])
    raise ShapeError(f"{call}: {name} is {value!r}; pass one number or {rank} numbers, each {least} or more")


def _padding(
    call: str, value: object, taps: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the padding before and after, given numbers, pairs (before, after), "same" or "valid"."""
    rank = len(taps)
    if isinstance(value, str):
        if value == "valid":
            return (0,) * rank, (0,) * rank
        if value != "same":
            raise ShapeError(f'{call}: padding is {value!r}; pass numbers, pairs, "same" or "valid"')
        if set(stride) != {1}:
            raise ShapeError(f'{call}: stride is {tuple(stride)}, but padding "same" needs stride 1; pass numbers')
        whole = [d * (t - 1) for t, d in zip(taps, dilation)]
        return tuple([n // 2 for n in whole]), tuple([n - n // 2 for n in whole])
    given: object = value
    if isinstance(given, Sequence) and len(cast("Sequence[object]", given)) == rank:
        pairs = [cast("Sequence[object]", x) for x in cast("Sequence[object]", given) if isinstance(x, Sequence)]
        if len(pairs) == rank and all(len(x) == 2 for x in pairs):
            before, after = ([x[i] for x in pairs] for i in range(2))
            return _numbers(call, "padding", before, rank, 0), _numbers(call, "padding", after, rank, 0)
    both = _numbers(call, "padding", value, rank, 0)
    return both, both


def window_of(call: str, taps: tuple[int, ...], stride: object, padding: object, dilation: object, mode: str) -> Window:
    """Return the window of a filter.  Raises ShapeError, UnsupportedError."""
    rank = len(taps)
    strides, dilations = _numbers(call, "stride", stride, rank, 1), _numbers(call, "dilation", dilation, rank, 1)
    before, after = _padding(call, padding, taps, strides, dilations)
    if mode not in MODES:
        raise UnsupportedError(f"{call}: mode is {mode!r}; use {' or '.join(MODES)}")
    return Window(taps, before, after, strides, dilations, (), mode == "convolution")


def geometry(
    call: str, kind: str, image: tuple[int, ...], filter: tuple[int, ...], stride: object, padding: object,
    dilation: object, groups: object, mode: str = "cross_correlation",
) -> Geometry:  # fmt: skip
    """Return a convolution of an image (N, …, C) and a filter (K, …, C / groups).  Raises ShapeError."""
    taps = filter[1:-1]
    window = window_of(call, taps, stride, padding, dilation, mode)
    before, after = window.before, window.after
    if not isinstance(groups, int) or groups < 1:
        raise ShapeError(f"{call}: groups is {groups!r}; pass an integer of 1 or more")
    channels, filters = image[-1], filter[0]
    if channels % groups or filters % groups:
        raise ShapeError(
            f"{call}: {channels} channels and {filters} filters do not divide into {groups} groups; "
            "pass multiples of groups"
        )
    if filter[-1] != channels // groups:
        raise ShapeError(
            f"{call}: f has {filter[-1]} channels, but x has {channels} channels in {groups} groups; pass f with "
            f"{channels // groups} channels"
        )
    if 0 in taps:
        raise ShapeError(f"{call}: the filter has no taps ({_by(taps)}); pass a filter with at least one")
    extents = image[1:-1]
    found = window.result(extents)
    if any(n < 1 for n in found):
        pads = _by(before) if before == after else f"{_by(before)} before and {_by(after)} after"
        raise ShapeError(
            f"{call}: a filter of {_by(taps)}, dilation {_of_all(window.dilations)}, does not fit an input of "
            f"{_by(extents)} with padding {pads if len(set(before + after)) > 1 else before[0]}"
        )
    if kind == DGRAD and set(window.strides) != {1}:
        window = window._replace(left=tuple([n % u for n, u in zip(extents, window.strides)]))
    return Geometry(kind, image, filter, (image[0], *found, filters), window, groups)


def _by(numbers: Sequence[int]) -> str:
    return " x ".join(map(str, numbers))


def _of_all(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(set(numbers)) == 1 else _by(numbers)


NAMES = {FPROP: ("x", "f"), DGRAD: ("grad_y", "f"), WGRAD: ("x", "grad_y")}
"""Kind -> names of the arrays that a kernel reads: the image, and the other one."""


class ConvOptions(NamedTuple):
    """Arguments of a call that are not arrays."""

    stride: object = 1
    padding: object = 0
    dilation: object = 1
    groups: object = 1
    size: object = None  # shape of a result that is a gradient
    mode: str = "cross_correlation"
    data_format: object = None
    dtype: object = None  # of functions
    split_k: object = None  # of functions
    kernel: object = None  # of functions
    problem: Conv2dProblemSize | None = None  # of plans: replaces the other fields; arrays may then be flat


def geometry_of(
    call: str, kind: str, image: tuple[int, ...], other: tuple[int, ...], size: tuple[int, ...], given: ConvOptions,
    gradient: str, channels: bool,
) -> Geometry:  # fmt: skip
    """Return the geometry of two arrays in the order of :data:`NAMES`, with channels last.

    Args:
        size: shape of the result, if it is a gradient.
        gradient: name of the array that is a gradient of the result.
        channels: the caller's shapes have channels first.

    Raises ShapeError.
    """
    window = (given.stride, given.padding, given.dilation, given.groups, given.mode)
    if kind == FPROP:
        return geometry(call, kind, image, other, *window)
    of_image, of_filter, grad = (size, other, image) if kind == DGRAD else (image, size, other)
    found = geometry(call, kind, of_image, of_filter, *window)
    if tuple(grad) != found.result:
        got, wanted = (first(tuple(x), channels) for x in (grad, found.result))
        raise ShapeError(f"{call}: {gradient} has shape {got}; pass {gradient} of shape {wanted}")
    return found


def size_of(call: str, name: str, value: object, rank: int, channels: bool) -> tuple[int, ...]:
    """Return the shape of a requested gradient, with channels last.  Raises ShapeError."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        given = tuple(cast("Sequence[object]", value))
        if len(given) == rank and all(isinstance(n, int) and n >= 0 for n in given):
            return last(cast("tuple[int, ...]", given), channels)
    raise ShapeError(f"{call}: {name} is {value!r}; pass a shape of {rank} numbers")


def rows_of(kind: str, x: ArrayView) -> ArrayView | None:
    """Return an array like the result as a matrix, with a row per pixel or filter.

    Return None if its strides do not allow that.
    """
    if kind == WGRAD:
        step = merged(x, 1, len(x.shape))
        if step not in (1, None) or (step is None and prod(x.shape[1:]) != 1):
            return None
        return x._replace(shape=(x.shape[0], prod(x.shape[1:])), strides=(x.strides[0], 1))
    found = as_rows(x)
    if found is None or (found.strides[1] != 1 and found.shape[1] != 1):
        return found
    return found._replace(strides=(found.strides[0], 1))


def as_matrix(call: str, name: str, t: Any, g: Geometry, turn: bool, library: Library | None = None) -> Any:
    """Return an argument of an epilogue as a matrix with a row per pixel or filter; numbers and matrices as they are.

    Args:
        t: an array like the result, one with a value per channel, a matrix, or a number.
        turn: shapes have channels first.
        library: copies an array with gaps, and allows one with a value per pixel.

    Raises EpilogueError, LayoutError.
    """
    rank = len(g.output)
    if not hasattr(t, "shape") or len(t.shape) != rank:
        return t
    t = turned(t, last(tuple(range(rank)), True)) if turn else t
    shape = tuple(t.shape)
    if all(n == 1 for n in shape[:-1]):
        return t.reshape(1, shape[-1])
    if shape != g.output and (library is None or shape != (*g.output[:-1], 1)):
        raise EpilogueError(
            f"{call}: {name} has shape {first(shape, turn)}; pass an array of {first(g.output, turn)}, "
            "one value per channel, or a number"
        )
    view = view_of(t)
    rows = rows_of(g.kind, view)
    if library is None:
        if rows is None:
            raise LayoutError(f"{call}: {name} has gaps between its pixels; pass a contiguous array")
        return t.reshape(g.matrix)
    rows = rows_of(g.kind, dense(library, view)) if rows is None else rows
    assert rows is not None
    return library.native(rows)


def as_image(t: Any, g: Geometry, turn: bool) -> Any:
    """Return a matrix, or a reduction of its rows or columns, with the dimensions of the result.

    Args:
        turn: shapes have channels first.
    """
    rows, columns = t.shape
    ones = (1,) * (len(g.output) - 2)
    if g.kind == WGRAD:
        inner = g.output[1:] if columns == g.matrix[1] else (*ones, columns)
        image = t.reshape(rows, *inner)
    else:
        image = t.reshape(*(g.output[:-1] if rows == g.matrix[0] else (1, *ones)), columns)
    return turned(image, first(tuple(range(len(g.output))), True)) if turn else image


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


def wrong_rank(call: str, name: str, shape: tuple[int, ...], rank: int) -> ShapeError:
    """Return the error for an array that is not one of images with ``rank`` extents."""
    return ShapeError(f"{call}: {name} has shape {shape}; pass an array of rank {rank + 2}")


def prepared(
    name: str, kind: str, rank: int, views: Mapping[str, ArrayView], given: ConvOptions, extras: LinearCombination,
    library: str
) -> tuple[Prepared, bool]:  # fmt: skip
    """Check a call; return the convolution, and whether its shapes have channels first.

    Raises subclasses of OpError.
    """
    turn = channels_first(name, given.data_format, rank, library)
    names = NAMES[kind]
    for n in (*names, "out"):
        if n in views and len(views[n].shape) != rank + 2:
            raise wrong_rank(name, n, views[n].shape, rank)
    image, other = (views_last(views[n], turn) for n in names)
    if not can_mix(image.dtype, other.dtype):
        raise DtypeError(
            f"{name}: {names[1]} has dtype {other.dtype}, but {names[0]} has dtype {image.dtype}; "
            "pass operands of one dtype"
        )
    of_size = {DGRAD: "input_size", WGRAD: "weight_size"}.get(kind)
    size = () if of_size is None else size_of(name, of_size, given.size, rank + 2, turn)
    found = geometry_of(name, kind, image.shape, other.shape, size, given, "grad_y", turn)
    pair = both(image.dtype, other.dtype)
    default = pair == "f32" and extras.math == "default" and library == "torch" and tf32_of_convolutions()
    arithmetic = arithmetic_of(pair, extras.math, extras.accumulator, default)
    wanted = None if given.dtype is None else element_name(given.dtype)
    output = views["out"].dtype if "out" in views else wanted or result_of(image.dtype)
    check_types(pair, output, arithmetic)
    check_activation(name, extras.activation, None)
    for n, value in (("alpha", cast(object, extras.alpha)), ("beta", cast(object, extras.beta))):
        if isinstance(value, bool) or not isinstance(value, int | float):
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


def _expanded(name: str, c: ArrayView, shape: tuple[int, ...], turn: bool) -> ArrayView:
    """Return ``c`` broadcast to the result's shape, with channels last."""
    missing = len(shape) - len(c.shape)
    wanted = first(shape, turn)
    old, steps = (1,) * missing + c.shape, (0,) * missing + c.strides
    if missing < 0 or any(n not in (1, m) for n, m in zip(old, wanted)):
        raise ShapeError(f"{name}: c has shape {tuple(c.shape)}; pass an array that broadcasts to {wanted}")
    strides = tuple([0 if n == 1 and wide > 1 else step for n, step, wide in zip(old, steps, wanted)])
    return views_last(c._replace(shape=wanted, strides=strides), turn)


class Checked(NamedTuple):
    """A checked call."""

    geometry: Geometry
    operands: Operands
    D: Any  # as the caller passed it
    turn: bool  # shapes have channels first


def planned_geometry(
    call: str, kind: str, shapes: tuple[tuple[int, ...], tuple[int, ...]], result: tuple[int, ...] | None,
    given: ConvOptions
) -> Geometry:  # fmt: skip
    """Return the geometry of A and B of these shapes, with channels last.

    Args:
        result: the shape of D, if it is known.

    Raises ShapeError.
    """
    if given.problem is not None:
        return given.problem.geometry(kind, call)
    of_a, of_b = shapes
    size = () if kind == FPROP else result or _size(call, kind, of_a, of_b, given)
    image, other = (of_b, of_a) if kind == WGRAD else (of_a, of_b)
    turn = channels_first(call, given.data_format, 2, "")
    return geometry_of(call, kind, image, other, size, given, "A", turn)


def _size(call: str, kind: str, of_a: tuple[int, ...], of_b: tuple[int, ...], how: ConvOptions) -> tuple[int, ...]:
    """Return the shape of a gradient: ``size``, or with stride 1 the shape that the operands imply."""
    if how.size is not None:
        return size_of(call, "size", how.size, 4, channels_first(call, how.data_format, 2, ""))
    taps = of_b[1:-1] if kind == DGRAD else (1, 1)
    w = window_of(call, taps, how.stride, how.padding if kind == DGRAD else 0, how.dilation, how.mode)
    if set(w.strides) != {1}:
        raise ShapeError(f"{call}: the shape of D is ambiguous with a stride of {w.strides}; pass D or size=")
    if kind == DGRAD:
        of_each = zip(of_a[1:-1], w.taps, w.before, w.after, w.dilations)
        extents = [n + d * (t - 1) - before - after for n, t, before, after, d in of_each]
        return (of_a[0], *extents, of_b[-1] * how.groups)
    raise ShapeError(f"{call}: the shape of the filter is unknown; pass D or size=(K, R, S, C / groups)")


def check(
    call: str, kind: str, kinds: Kinds, arrays: Sequence[object], how: ConvOptions, *, alpha: float = 1.0,
    beta: float = 0.0,
    bias: object = None, on_cpu: bool = False,
) -> Checked:  # fmt: skip
    """Return the checked operands of a convolution.

    Args:
        arrays: A, B, C and D; D is allocated if it is None.

    Raises OpError.
    """
    turn = channels_first(call, how.data_format, 2, "")
    a, b, c, d = arrays
    extents = _extents(kind, how.problem.geometry(kind, call)) if how.problem is not None else (None, None, None)
    views: list[ArrayView] = []
    for name, array, wanted, shape in zip("AB", (a, b), (kinds.a, kinds.b), extents):
        views.append(_read(call, name, array, wanted, shape, turn, on_cpu))
    x, y = views
    known = None
    for array, name, used in ((d, "D", True), (c, "C", beta != 0.0)):
        if known is None and array is not None and used and how.problem is None:
            shape = tuple(read(call, name, array, on_cpu).shape)
            known = last(shape, turn) if len(shape) == 4 else None
    g = planned_geometry(call, kind, (x.shape, y.shape), known, how)
    if beta != 0.0 and (c is None or kinds.c is None):
        raise ShapeError(f"{call}: beta is {beta}, but there is no C; pass C, or beta=0")
    if d is None:
        made = new_like(a, g.output, Type(kinds.d.element, "row"))
        d = turned(made, first((0, 1, 2, 3), True)) if turn else made
    z = _read(call, "D", d, kinds.d, g.output if how.problem is not None else None, turn, on_cpu)
    if z.shape != g.output:
        raise ShapeError(f"{call}: D has shape {first(z.shape, turn)}; pass D of shape {first(g.output, turn)}")
    rows = _matrix(call, "D", kind, z)
    w = None
    if beta != 0.0 and kinds.c is not None:
        w = _source(call, kind, g, c, kinds.c, how, turn, on_cpu)
    v = None if bias is None else _bias(call, kind, g, read(call, "bias", bias, on_cpu))
    for name, view in (("B", y), ("C", w), ("D", z), ("bias", v)):
        if view is not None and (view.library, view.device) != (x.library, x.device):
            where = [f"{q.library}, {'the CPU' if q.device < 0 else f'GPU {q.device}'}" for q in (x, view)]
            raise DeviceError(
                f"{call}: {name} is an array of {where[1]}, but A is one of {where[0]}; "
                "pass arrays of one library and device"
            )
    for name, view in (("A", x), ("B", y)):
        if overlap(z, view):
            raise LayoutError(f"{call}: D shares memory with {name}; pass a separate D (only C may be D)")
    check_overlap(call, {"D": rows} | {n: t for n, t in (("C", w), ("bias", v)) if t is not None}, "D", "C")
    return Checked(g, Operands(x, y, rows, w, v, alpha, beta, "n" if v is not None else ""), d, turn)


def _extents(kind: str, g: Geometry) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of A, B and D."""
    found = {FPROP: (g.image, g.filter), DGRAD: (g.result, g.filter), WGRAD: (g.result, g.image)}[kind]
    return (*found, g.output)


def _read(
    call: str, name: str, array: object, wanted: Type, shape: tuple[int, ...] | None, turn: bool, on_cpu: bool
) -> ArrayView:
    """Return an array of the planned type with channels last; if its shape is known it may be flat."""
    if array is None:
        raise LayoutError(f"{call}: {name} is missing, and the plan has none; pass {name}")
    view = read(call, name, array, on_cpu)
    if not accepts(wanted.element, view.dtype):
        raise DtypeError(f"{call}: {name} has dtype {view.dtype}, but the plan has {wanted.element}; pass that type")
    if shape is not None and len(view.shape) == 1 and view.shape[0] == prod(shape) and view.strides[0] == 1:
        strides = tuple([prod(shape[i + 1 :]) for i in range(4)])
        return view._replace(shape=shape, strides=strides)
    if len(view.shape) != 4:
        raise ShapeError(f"{call}: {name} has shape {tuple(view.shape)}; pass an array of rank 4")
    found = views_last(view, turn)
    if shape is not None and tuple(found.shape) != shape:
        why = ", but problem_size needs"
        raise ShapeError(f"{call}: {name} has shape {tuple(view.shape)}{why} {first(shape, turn)}; pass that shape")
    if found.strides[-1] != 1 and found.shape[-1] != 1 and 0 not in found.shape:
        other = "" if turn or view.strides[1] != 1 else ', or data_format="NCHW" for shapes with channels first'
        raise LayoutError(
            f"{call}: {name} has strides {tuple(view.strides)}; pass channels-last memory, with strides "
            f"{'(…, 1, …)' if turn else '(…, 1)'}{other}, or use op.conv2d, which copies it"
        )
    return found._replace(strides=(*found.strides[:-1], 1))


def _matrix(call: str, name: str, kind: str, x: ArrayView) -> ArrayView:
    """Return the computed array as a matrix.  Raises LayoutError."""
    found = rows_of(kind, x)
    if found is None:
        raise LayoutError(
            f"{call}: {name} has strides {tuple(x.strides)}, with gaps between pixels; pass a contiguous array"
        )
    return found


def _source(
    call: str, kind: str, g: Geometry, c: object, wanted: Type, how: ConvOptions, turn: bool, on_cpu: bool
) -> ArrayView:
    """Return C as a matrix like D; one value per channel becomes a row that is repeated with stride 0."""
    view, (rows, columns) = read(call, "C", c, on_cpu), g.matrix
    channels = g.output[-1]
    if kind != WGRAD and tuple(view.shape) in ((channels,), first((1, 1, 1, channels), turn)) and rows != 1:
        if not accepts(wanted.element, view.dtype):
            raise DtypeError(f"{call}: C has dtype {view.dtype}, but the plan has {wanted.element}; pass that type")
        step = view.strides[0] if len(view.shape) == 1 else last(view.strides, turn)[-1]
        if step == 1 or channels == 1:
            return view._replace(shape=(rows, columns), strides=(0, 1))
    x = _read(call, "C", c, wanted, g.output if how.problem is not None else None, turn, on_cpu)
    if x.shape != g.output:
        raise ShapeError(
            f"{call}: C has shape {tuple(view.shape)}; pass C of {first(g.output, turn)}, or one value per channel"
        )
    return _matrix(call, "C", kind, x)


def _bias(call: str, kind: str, g: Geometry, view: ArrayView) -> ArrayView:
    channels = g.output[-1]
    if kind == WGRAD:
        raise ShapeError(f"{call}: wgrad does not support bias; omit it")
    if tuple(view.shape) not in ((channels,), (1, channels)):
        raise ShapeError(f"{call}: bias has shape {tuple(view.shape)}; pass a bias of ({channels},)")
    if view.strides[-1] != 1 and channels > 1:
        raise LayoutError(f"{call}: bias has strides {view.strides}; pass a contiguous bias")
    return view._replace(shape=(channels,), strides=(1,))


def check_in_place(call: str, g: Geometry, x: Operands) -> None:
    """Raise AlignmentError for an operand that TMA cannot read or write."""
    line = g.output[-1] * SIZES.get(x.d.dtype, 1)
    if line % 16:
        raise AlignmentError(
            f"{call}: the channels of D take {line} bytes, but TMA needs a multiple of 16; use iterator_algorithm "
            "analytic, or op.conv2d, which copies"
        )
    for name, view in (("A", x.a), ("B", x.b), ("C", x.c), ("D", x.d), ("bias", x.bias)):
        # C with one value per channel is a row that is repeated.
        if (
            view is None
            or 0 in view.shape
            or lines_suit(view)
            or (name == "C" and view.strides[0] == 0 == view.pointer % 16)
        ):
            continue
        item = SIZES.get(view.dtype, 1)
        if view.pointer % 16:
            what = f"has an address of {view.pointer % 16} mod 16, but TMA needs 16-byte alignment"
        else:
            steps = [s * item for s, n in zip(view.strides, view.shape) if s != 1 and n > 1 and s * item % 16]
            what = f"has a stride of {steps[-1] if steps else 0} bytes, but TMA needs multiples of 16"
        raise AlignmentError(f"{call}: {name} {what}; use iterator_algorithm analytic, or op.conv2d, which copies")
