"""Compute a convolution: arguments are read and checked, a kernel is chosen and launched."""

# torch is not there where the types are checked; arrays are of any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from cute_dialect.kernels.conv.config import DGRAD, FPROP, WGRAD, ConvConfig
from cute_dialect.kernels.gemm.epilogue import Epilogue
from cute_dialect.op.arrays import Library, Where, read_all
from cute_dialect.op.choosing.ways import epilogue_of, gpu_of, here
from cute_dialect.op.compiled import combiner
from cute_dialect.op.conv.choice import Asked, chosen, has_epilogue
from cute_dialect.op.conv.compiled import conv_runner
from cute_dialect.op.conv.depthwise import depthwise, depthwise_config
from cute_dialect.op.conv.geometry import Geometry, geometry
from cute_dialect.op.conv.order import (
    as_rows,
    channels_first,
    dense,
    first,
    last,
    lines_suit,
    merged,
    strides_of,
    turned,
    views_last,
)
from cute_dialect.op.conv.unfolded import finish, sums_for, unfolded
from cute_dialect.op.dtypes import arithmetic_of, both, can_mix, check_types, element_name, element_of, result_of
from cute_dialect.op.epilogue.bound import Bound, alone, bound, traced_of
from cute_dialect.op.epilogue.reducing import combining, memory_of
from cute_dialect.op.errors import DtypeError, EpilogueError, LayoutError, OpError, ShapeError
from cute_dialect.op.known import Extras
from cute_dialect.op.operands import check_activation, matrix
from cute_dialect.op.overlap import overlap
from cute_dialect.runtime.arrays import ArrayView, numpy_dtype, view_of
from cute_dialect.runtime.call_options import check_options

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.product import Interpreted
    from cute_dialect.runtime.launch import CallOptions

__all__ = ["Call", "Given", "Prepared", "convolution", "is_product", "prepared", "tf32_of_convolutions"]

NAMES = {FPROP: ("x", "f"), DGRAD: ("grad_y", "f"), WGRAD: ("x", "grad_y")}
"""The arrays that a kernel reads: the image, and the other one."""


class Call(NamedTuple):
    """A call that is being computed: its name, where, and how; ``first``: shapes have channels first."""

    name: str
    kind: str
    where: Where
    first: bool
    stream: object
    run: Interpreted

    @property
    def options(self) -> dict[str, Any]:
        """How a kernel is called."""
        if self.where.cpu:
            return {"device": "cpu", **{key: value for key, value in self.run.items() if key != "report"}}
        found: dict[str, Any] = {}
        library = self.where.library.name
        if library == "numpy" and self.where.device is not None:
            found["device"] = self.where.device
        if self.stream is not None and library not in ("torch", "cupy"):  # there it is the current one
            found["stream"] = self.stream
        return found

    def told(self, report: Any) -> None:
        """Pass on the interpreter's report of a launch."""
        if report is not None and "report" in self.run:
            self.run["report"](report)


class Given(NamedTuple):
    """What a call gives: window and groups as it says them, ``size`` of a result that is a gradient."""

    stride: object = 1
    padding: object = 0
    dilation: object = 1
    groups: object = 1
    size: object = None
    mode: str = "cross_correlation"
    data_format: object = None
    dtype: object = None
    split_k: int | None = None


class Prepared(NamedTuple):
    """What a call is of: its geometry, types, and the arrays with their channels last."""

    geometry: Geometry
    image: ArrayView
    other: ArrayView
    element: str
    output: str
    arithmetic: str
    bias: ArrayView | None
    c: ArrayView | None


def tf32_of_convolutions() -> bool:
    """Tell whether torch's own convolutions of f32 may be multiplied as tf32."""
    import torch

    cudnn = torch.backends.cudnn
    conv = getattr(cudnn, "conv", None)
    precision = getattr(conv, "fp32_precision", None)
    return bool(cudnn.allow_tf32) if precision is None else precision == "tf32"


def _size(call: str, name: str, value: object, rank: int, channels: bool) -> tuple[int, ...]:
    """Return the shape that a gradient was asked for, channels last."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        given = tuple(cast("Sequence[object]", value))
        if len(given) == rank and all(isinstance(n, int) and n >= 0 for n in given):
            return last(cast("tuple[int, ...]", given), channels)
    raise ShapeError(f"{call}: expected {name} of {rank} numbers, got {value!r}")


def prepared(
    name: str, kind: str, rank: int, views: Mapping[str, ArrayView], given: Given, extras: Extras, library: str
) -> tuple[Prepared, bool]:  # fmt: skip
    """Check a call; returns what it is of, and whether its shapes have channels first.

    Raises subclasses of OpError.
    """
    turn = channels_first(name, given.data_format, rank, library)
    names = NAMES[kind]
    for n in (*names, "out"):
        if n in views and len(views[n].shape) != rank + 2:
            raise ShapeError(f"{name}: expected {n} of rank {rank + 2}, got {tuple(views[n].shape)}")
    image, other = (views_last(views[n], turn) for n in names)
    if not can_mix(image.dtype, other.dtype):
        raise DtypeError(f"{name}: expected {names[1]} of {image.dtype}, as {names[0]}, got {other.dtype}")
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
            raise DtypeError(f"{name}: expected a number for {n}, got {value!r}")
    if "out" in views:
        out = views["out"]
        shape = first(found.output, turn)
        if tuple(out.shape) != shape:
            raise ShapeError(f"{name}: expected out of {shape}, got {tuple(out.shape)}")
        if wanted not in (None, out.dtype):
            raise DtypeError(f"{name}: expected dtype {out.dtype}, as out has, got {wanted}")
        for n in (*names, "bias"):
            if n in views and overlap(views[n], out):
                raise LayoutError(f"{name}: out shares memory with {n}; only c may be out")
    channels = found.output[-1]
    bias = views.get("bias")
    if bias is not None:
        ones = first((1,) * (rank + 1) + (channels,), turn)
        if tuple(bias.shape) not in ((channels,), (1, channels), ones):
            raise ShapeError(f"{name}: expected a bias of ({channels},), got {tuple(bias.shape)}")
        step = max(zip(bias.shape, bias.strides))[1] if channels > 1 else 1
        bias = bias._replace(shape=(channels,), strides=(step,))
    c = views.get("c") if extras.beta != 0.0 else None
    if c is not None:
        c = _expanded(name, c, found.output, turn)
    return Prepared(found, image, other, element_of(pair, arithmetic), output, arithmetic, bias, c), turn


def _check_gradient(name: str, grad: ArrayView, found: Geometry, turn: bool) -> None:
    if tuple(grad.shape) != found.result:
        wanted, got = first(found.result, turn), first(tuple(grad.shape), turn)
        raise ShapeError(f"{name}: expected grad_y of {wanted}, got {got}")


def _expanded(name: str, c: ArrayView, shape: tuple[int, ...], turn: bool) -> ArrayView:
    """Return ``c`` as it is when it expands to the result's shape, channels last."""
    missing = len(shape) - len(c.shape)
    wanted = first(shape, turn)
    old, steps = (1,) * missing + c.shape, (0,) * missing + c.strides
    if missing < 0 or any(n not in (1, m) for n, m in zip(old, wanted)):
        raise ShapeError(f"{name}: expected c of {wanted}, or what expands to it, got {tuple(c.shape)}")
    strides = tuple([0 if n == 1 and wide > 1 else step for n, step, wide in zip(old, steps, wanted)])
    return views_last(c._replace(shape=wanted, strides=strides), turn)


def convolution(
    name: str, kind: str, rank: int, arrays: Mapping[str, Any], given: Given, extras: Extras, device: object = None,
    stream: object = None, run: Interpreted | None = None, graph: Any = None,
    args: Mapping[str, Any] = MappingProxyType({}),
) -> Any:  # fmt: skip
    """Compute a convolution or a gradient of one.

    ``arrays``: by name, ``x``, ``f``, ``grad_y``, ``out``, ``c``, ``bias``, those that there are; ``graph``, ``args``:
    an epilogue and its arguments.  Raises subclasses of OpError, and what a kernel raises.
    """
    run = run or {}
    if graph is not None:
        alone(name, extras)
    options: dict[str, object] = {key: value for key, value in run.items() if key != "report"}
    check_options(cast("CallOptions", {"device": "gpu" if device is None else device, **options}))
    where, views = read_all(name, arrays, device, stream)
    on = nullcontext() if stream is None or where.cpu else where.library.on(stream, where.gpu)
    try:
        with on:
            ready, turn = prepared(name, kind, rank, views, given, extras, where.library.name)
            call = Call(name, kind, where, turn, stream, run)
            return _computed(call, ready, arrays.get("out"), arrays[NAMES[kind][0]], given, extras, graph, args)
    except OpError as e:
        if str(e).startswith((f"{name}: ", "epilogue ")):
            raise
        raise type(e)(f"{name}: {e}") from None  # of what does not know the call


def _computed(
    call: Call, ready: Prepared, out: Any, like: Any, given: Given, extras: Extras, graph: Any, args: Mapping[str, Any]
) -> Any:  # fmt: skip
    """Compute a convolution that was checked, and return the result as the caller wants it."""
    library, g = call.where.library, ready.geometry
    if out is None:
        made = library.empty(call.name, g.output, ready.output, like)
        rank = len(g.output)
        out = turned(made, first(tuple(range(rank)), True)) if call.first else made
    target = views_last(view_of(out), call.first)
    rows = _matrix(call, target)
    direct = rows is not None
    if rows is None:
        rows = _matrix(call, dense(library, target))
    assert rows is not None
    traced, found, shape = None, None, g.matrix
    if graph is not None:
        of_matrix = {n: _argument(call, n, t, g) for n, t in args.items()}
        if "D" in of_matrix:
            raise EpilogueError(f"{call.name}: expected out for the result, got D in args")
        traced = traced_of(call.name, graph, of_matrix, shape)
        if traced.shape_of(shape) != shape:
            raise EpilogueError(f"{call.name}: expected a result of as many columns as the sums: no pairs()")
        if traced.graph.whole_rows:
            raise EpilogueError(f"{call.name}: expected no whole_rows in an epilogue: op.mm and op.bmm have them")

        def another(shape: tuple[int, ...], kind: str) -> Any:
            return library.empty(call.name, shape, kind or ready.output, like)

        found = bound(traced, of_matrix, library.native(rows), shape, another)
    if 0 not in shape:
        _launch(call, ready, rows, given, extras, found)
    elif found is not None:
        found.nothing()
    if not direct:
        back = rows._replace(shape=target.shape, strides=strides_of(target.shape))
        library.native(target)[...] = library.native(back)
    if traced is None or found is None:
        return out
    results = {n: out if n == "D" else _result(call, t, g) for n, t in found.results.items()}
    return traced.formed(results)


def _matrix(call: Call, x: ArrayView) -> ArrayView | None:
    """Return what is computed as a matrix of rows; None where it is none."""
    if x.strides[-1] != 1 and x.shape[-1] != 1:
        return None
    if call.kind == WGRAD:
        step = merged(x, 1, len(x.shape))
        if step not in (1, None) or (step is None and prod(x.shape[1:]) != 1):
            return None
        return x._replace(shape=(x.shape[0], prod(x.shape[1:])), strides=(x.strides[0], 1))
    found = as_rows(x)
    return None if found is None else found._replace(strides=(found.strides[0], 1))


def _argument(call: Call, name: str, t: Any, g: Geometry) -> Any:
    """Return an epilogue's argument as that of a matrix with a row for each pixel."""
    if not hasattr(t, "shape") or len(t.shape) != len(g.output):
        return t
    rank = len(g.output)
    t = turned(t, last(tuple(range(rank)), True)) if call.first else t
    if all(n == 1 for n in t.shape[:-1]):
        return t.reshape(1, t.shape[-1])
    if tuple(t.shape) == g.output or tuple(t.shape) == (*g.output[:-1], 1):
        view = view_of(t)
        rows = as_rows(view)
        if rows is None:
            view = dense(call.where.library, view)
            rows = as_rows(view)
        assert rows is not None
        return call.where.library.native(rows)
    raise EpilogueError(
        f"{call.name}: expected {name} of {first(g.output, call.first)}, a value a channel or a number, got "
        f"{first(tuple(t.shape), call.first)}"
    )


def _result(call: Call, t: Any, g: Geometry) -> Any:
    """Return a result that is a matrix, or what rows or columns became, with an image's dimensions."""
    rows, columns = t.shape
    whole = g.output[:-1] if rows == g.matrix[0] else (1,) * (len(g.output) - 1)
    image = t.reshape(*whole, columns)
    return turned(image, first(tuple(range(len(g.output))), True)) if call.first else image


def _launch(
    call: Call, ready: Prepared, rows: ArrayView, given: Given, extras: Extras, found: Bound | None
) -> None:  # fmt: skip
    """Launch the kernel of a convolution, on copies of what it cannot read or write."""
    library, g = call.where.library, ready.geometry
    config, epilogue = None, _epilogue(call, ready, extras, found)
    alone = None if extras.alpha == 0.0 else depthwise_config(g, ready.element, ready.output)
    if alone is not None and matrix(rows).suits_tma():
        sums = rows if not epilogue.active else sums_for(library, ready, rows)
        depthwise(call, ready, sums, alone if sums is rows else alone._replace(output=sums.dtype))
        if sums is not rows:
            finish(library, ready, sums, rows, extras, found)
        return
    if extras.alpha != 0.0 and not is_product(g):
        gpu, sms = here() if call.where.cpu else gpu_of(call.where.gpu)
        apart = epilogue.active and not has_epilogue(g)
        asked = Asked(g, ready.element, ready.output, _sums(ready.arithmetic), epilogue, given.split_k or 0)
        if apart:
            asked = asked._replace(output=sums_for(library, ready, rows).dtype, epilogue=Epilogue())
        config = None if ready.arithmetic == "3xtf32" else chosen(asked, gpu, sms)
        if config is not None and apart:
            sums = sums_for(library, ready, rows)
            plain = ready._replace(output=sums.dtype, c=None, bias=None)
            _launch(call, plain, sums, given, extras.of_sums(), None)
            finish(library, ready, sums, rows, extras, found)
            return
    if config is None:
        unfolded(call, ready, rows, extras, found)
        return
    image, other = _read(library, ready, config)
    result = _stored(library, ready, rows)
    operands, parts = _operands(library, ready, extras, found, config, result)
    kernel = conv_runner(config, call.where.cpu)
    call.told(kernel(image, other, _as_taken(ready, result, config), *operands, **call.options))
    if parts and found is not None:
        for x in found.reduced:
            for step in combining(x, parts[x.place], lambda n: library.strided((n,), (1,), "f32", result)):
                call.told(combiner(step.config, call.where.cpu)(step.parts, step.results, **call.options))
    if result is not rows:
        library.native(rows)[...] = library.native(result).reshape(rows.shape)


def _stored(library: Library, ready: Prepared, rows: ArrayView) -> ArrayView:
    """Return where a kernel stores its result: memory of its own where lines are no multiples of 16 bytes."""
    item = numpy_dtype(rows.dtype).itemsize
    line = ready.geometry.output[-1]
    if matrix(rows).suits_tma() and line * item % 16 == 0:
        return rows
    wide = -(-line * item // 16) * 16 // item
    count = rows.shape[1] // line
    made = library.strided((*rows.shape[:-1], count * wide), (count * wide, 1), rows.dtype, rows)
    return made._replace(shape=(rows.shape[0], count, line), strides=(count * wide, wide, 1))


def _as_taken(ready: Prepared, x: ArrayView, config: ConvConfig) -> ArrayView:
    """Return a result as the kernel takes it."""
    g, step = ready.geometry, x.strides[0]
    line = g.output[-1]
    if config.kind == WGRAD:
        apart = x.strides[1] if len(x.shape) == 3 else line
        return x._replace(shape=(x.shape[0], line, g.taps), strides=(step, 1, apart))
    if config.strided:
        steps = strides_of(g.output)
        strides = (1, *[n // line * step for n in steps[-2::-1]])
        wide = x.strides[1] if len(x.shape) == 3 else line  # 16 bytes are stored at once, of memory of its own
        return x._replace(shape=(wide, *g.output[-2::-1]), strides=strides)
    if config.groups:
        per = line // g.groups
        return x._replace(shape=(x.shape[0], per, g.groups), strides=(step, 1, per))
    return x._replace(shape=(x.shape[0], line), strides=(step, 1))


def is_product(g: Geometry) -> bool:
    """Tell whether each pixel of the result is made of one of the image, so that it is a product of matrices."""
    w = g.window
    return g.taps == 1 and not any((*w.before, *w.after)) and set(w.strides) == {1}


def _sums(arithmetic: str) -> str:
    return "" if arithmetic in ("tf32", "exact") else arithmetic


def _epilogue(call: Call, ready: Prepared, extras: Extras, found: Bound | None) -> Epilogue:
    """Return what a kernel does with its sums."""
    if found is not None:
        return Epilogue(graph=found.graph)
    bias = ready.bias
    of_bias = (None, "") if bias is None else ((bias.shape[0],), bias.dtype)
    c = None if ready.c is None else cast(Any, ready.c)
    return epilogue_of(call.name, extras._replace(c=c), *ready.geometry.matrix, *of_bias, ready.output)


def _operands(
    library: Library, ready: Prepared, extras: Extras, found: Bound | None, config: ConvConfig, result: ArrayView
) -> tuple[list[Any], dict[int, ArrayView]]:  # fmt: skip
    """Return what the kernel takes behind the result, and memory for the parts of what is reduced."""
    if found is not None:
        parts: dict[int, ArrayView] = {}
        if found.graph.reduces:
            at_once = conv_runner_columns(config)
            for x in found.reduced:
                extents = x.extents(result.shape[0], result.shape[1], at_once, False)
                made = library.strided((prod(extents),), (1,), "f32", result)
                parts[x.place] = memory_of(made, extents, 1)
        operands = [parts.get(i, view_of(x) if hasattr(x, "shape") else x) for i, x in enumerate(found.operands)]
        return operands, parts
    epilogue, operands = config.base.epilogue, list[Any]()
    if epilogue.beta != 0.0:
        assert ready.c is not None
        rows = as_rows(ready.c)
        if rows is None or rows.dtype != result.dtype or rows.strides[-1] != 1 or not matrix(rows).suits_tma():
            unit = max(1, 16 // numpy_dtype(result.dtype).itemsize)
            rows = as_rows(dense(library, ready.c, unit, result.dtype))
        operands.append(rows)
    if ready.bias is not None:
        bias = ready.bias
        operands.append(bias if bias.strides[0] == 1 and bias.pointer % 16 == 0 else library.copied(bias, (1,)))
    operands += [getattr(extras, n) for n in ("alpha", "beta") if getattr(epilogue, n) == "arg"]
    return operands, {}


def conv_runner_columns(config: ConvConfig) -> int:
    """Return the columns whose rows an epilogue of the kernel is given at once."""
    from cute_dialect.op.conv.choice import choice_of

    return choice_of(config).columns_at_once


def _read(library: Library, ready: Prepared, config: ConvConfig) -> tuple[ArrayView, ArrayView]:
    """Return image and filter as the kernel takes them, the contiguous mode first; copies of what TMA cannot read."""
    g, item = ready.geometry, numpy_dtype(ready.image.dtype).itemsize
    unit = 16 // item
    image = ready.image if lines_suit(ready.image) else dense(library, ready.image, unit)
    image = _apart(image, unit)
    if config.kind == WGRAD:
        y = ready.other if lines_suit(ready.other) and as_rows(ready.other) else dense(library, ready.other, unit)
        rows = as_rows(y)
        assert rows is not None
        taken = rows._replace(shape=rows.shape[::-1], strides=(1, max(rows.strides[0], unit)))
        return image._replace(shape=image.shape[::-1], strides=image.strides[::-1]), taken
    shape, strides = image.shape[::-1], image.strides[::-1]
    return image._replace(shape=shape, strides=strides), _filter(library, ready, config, unit, g)


def _apart(x: ArrayView, unit: int) -> ArrayView:
    """Return an array whose dimensions of one element have strides that a tensor map may have."""
    strides, reach = list(x.strides), unit
    for i in reversed(range(len(x.shape) - 1)):
        if x.shape[i] == 1:
            strides[i] = reach
        reach = max(reach, -(-strides[i] * x.shape[i] // unit) * unit)
    return x._replace(strides=(*strides[:-1], 1))


def _filter(library: Library, ready: Prepared, config: ConvConfig, unit: int, g: Geometry) -> ArrayView:
    """Return the filter as the kernel takes it."""
    other = ready.other
    if config.flat:
        width = config.width
        channels = -(-other.shape[-1] // width) * width
        if channels != other.shape[-1]:  # zeros behind the channels: they are multiplied
            shape = (*other.shape[:-1], channels)
            wide = library.strided(shape, strides_of(shape), other.dtype, other)
            library.native(wide)[..., other.shape[-1] :] = 0
            library.native(wide)[..., : other.shape[-1]] = library.native(other)
            other = wide
        if merged(other, 1, len(other.shape)) != 1 or other.pointer % 16 or not lines_suit(other):
            other = dense(library, other, unit)
        columns = prod(other.shape[1:])
        rows, step = other.shape[0], other.strides[0] if other.shape[0] > 1 else columns
        if not config.groups:
            return other._replace(shape=(rows, columns), strides=(step, 1))
        per = rows // g.groups
        return other._replace(shape=(per, columns, g.groups), strides=(step, 1, per * step))
    along = 0 if config.kind == DGRAD and config.base.major_b == "k" else -1
    if along == 0:  # the channels of the result's gradient come last
        axes = (*range(1, len(other.shape)), 0)
        other = other._replace(
            shape=tuple([other.shape[i] for i in axes]), strides=tuple([other.strides[i] for i in axes])
        )
        other = dense(library, other, unit)  # (taps …, C, K)
        rank = len(other.shape) - 2
        axes = (rank, *range(rank), rank + 1)
        other = other._replace(
            shape=tuple([other.shape[i] for i in axes]), strides=tuple([other.strides[i] for i in axes])
        )
    tap = merged(other, 1, len(other.shape) - 1)
    if tap is None or not lines_suit(other):
        other = dense(library, other, unit)
        tap = merged(other, 1, len(other.shape) - 1)
    assert tap is not None
    rows, channels, taps = other.shape[0], other.shape[-1], g.taps
    tap = tap if taps > 1 else -(-channels // unit) * unit
    step = other.strides[0] if rows > 1 else tap * taps
    if config.kind == DGRAD and along == -1:  # (C, K, taps)
        return other._replace(shape=(channels, rows, taps), strides=(1, step, tap))
    return other._replace(shape=(rows, channels, taps), strides=(step, 1, tap))
