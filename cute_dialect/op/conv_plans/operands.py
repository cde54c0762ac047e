"""Checked arrays of a convolution plan; they are never copied.

Arrays are images (N, H, W, C) or filters (K, R, S, C / groups), with channels last.  All checks precede compilation
and launches.
"""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple, cast

from cute_dialect.kernels.conv.config import DGRAD, FPROP, WGRAD
from cute_dialect.op.arrays.elements import SIZES
from cute_dialect.op.arrays.overlap import overlap
from cute_dialect.op.conv.geometry import Geometry, geometry, window_of
from cute_dialect.op.conv.layouts import as_rows, channels_first, first, last, lines_suit, merged, turned, views_last
from cute_dialect.op.conv_plans.describe import Conv2dProblemSize
from cute_dialect.op.errors import AlignmentError, DeviceError, DtypeError, LayoutError, ShapeError
from cute_dialect.op.problems.plan_operands import Kinds, Operands, Type, check_addends, new_like, read
from cute_dialect.runtime.arrays import ArrayView, accepts

__all__ = ["Checked", "ConvOptions", "check", "check_in_place", "laid_out"]


class ConvOptions(NamedTuple):
    """Window, groups and layout of a call."""

    stride: object = 1
    padding: object = 0
    dilation: object = 1
    groups: int = 1
    mode: str = "cross_correlation"
    size: object = None  # shape of a result that is a gradient, if no array has it
    data_format: str = "NHWC"
    problem: Conv2dProblemSize | None = None  # replaces the other fields; arrays may then be flat


class Checked(NamedTuple):
    """A checked call."""

    geometry: Geometry
    operands: Operands
    D: Any  # as the caller passed it
    turn: bool  # shapes have channels first


def laid_out(
    call: str, kind: str, shapes: tuple[tuple[int, ...], tuple[int, ...]], result: tuple[int, ...] | None,
    how: ConvOptions
) -> Geometry:  # fmt: skip
    """Return the geometry for operands of these shapes, with channels last.

    Args:
        result: the shape of D, if it is known.

    Raises ShapeError.
    """
    if how.problem is not None:
        return how.problem.geometry(kind, call)
    of_a, of_b = shapes
    given = (how.stride, how.padding, how.dilation, how.groups, how.mode)
    if kind == FPROP:
        return geometry(call, kind, of_a, of_b, *given)
    size = result or _size(call, kind, of_a, of_b, how)
    image, filters = (size, of_b) if kind == DGRAD else (of_b, size)
    found = geometry(call, kind, image, filters, *given)
    if tuple(of_a) != found.result:
        raise ShapeError(f"{call}: A has shape {tuple(of_a)}; pass the gradient of the result, of shape {found.result}")
    return found


def _size(call: str, kind: str, of_a: tuple[int, ...], of_b: tuple[int, ...], how: ConvOptions) -> tuple[int, ...]:
    """Return the shape of a gradient: ``size``, or with stride 1 the shape that the operands imply."""
    if how.size is not None:
        given = tuple(cast("Sequence[int]", how.size)) if isinstance(how.size, Sequence) else ()
        if len(given) != 4 or min(given) < 0:
            raise ShapeError(f"{call}: size is {how.size!r}; pass 4 numbers")
        return last(given, channels_first(call, how.data_format, 2, ""))
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
    g = laid_out(call, kind, (x.shape, y.shape), known, how)
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
            raise LayoutError(f"{call}: D shares memory with {name}; only C may share memory with D")
    check_addends(call, rows, w, v)
    return Checked(g, Operands(x, y, rows, w, v, alpha, beta, "n" if v is not None else ""), d, turn)


def _extents(kind: str, g: Geometry) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of A, B and D."""
    found = {FPROP: (g.image, g.filter), DGRAD: (g.result, g.filter), WGRAD: (g.result, g.image)}[kind]
    return (*found, g.output)


def _read(
    call: str, name: str, array: object, wanted: Type, shape: tuple[int, ...] | None, turn: bool, on_cpu: bool
) -> ArrayView:  # fmt: skip
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
    if kind == WGRAD:
        step = merged(x, 1, 4)
        if step == 1 or prod(x.shape[1:]) == 1:
            return x._replace(shape=(x.shape[0], prod(x.shape[1:])), strides=(x.strides[0], 1))
    else:
        found = as_rows(x)
        if found is not None:
            return found._replace(strides=(found.strides[0], 1))
    raise LayoutError(
        f"{call}: {name} has strides {tuple(x.strides)}, with gaps between pixels; pass a contiguous array"
    )


def _source(
    call: str, kind: str, g: Geometry, c: object, wanted: Type, how: ConvOptions, turn: bool, on_cpu: bool
) -> ArrayView:  # fmt: skip
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
