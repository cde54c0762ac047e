"""Execution of convolutions: check the arguments, choose a kernel, bring operands into its layouts and launch it."""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from cute_dialect.kernels.conv.config import DGRAD, WGRAD, ConvConfig
from cute_dialect.kernels.conv.depthwise import DepthwiseConfig
from cute_dialect.kernels.conv.few_results import FewResultsConfig
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.op.arrays.library import Library, Where, check_options, chosen_device, read_all
from cute_dialect.op.arrays.operand_views import (
    aligned_vector,
    as_rows,
    dense,
    first,
    lines_suit,
    merged,
    strides_of,
    turned,
    views_last,
)  # fmt: skip
from cute_dialect.op.conv.channel_padding import (
    copy_result,
    narrowed,
    of_taps,
    with_padded_groups,
    with_transposed_filter,
)
from cute_dialect.op.conv.choice import pads_channels
from cute_dialect.op.conv.depthwise import depthwise
from cute_dialect.op.conv.direct import direct
from cute_dialect.op.conv.dispatch import ConvDispatch, ConvKind, ConvTask, choose_conv, task_of
from cute_dialect.op.conv.few_channels import PartialWeights, few_results, partial_weights
from cute_dialect.op.conv.im2col_gemm import finish, sums_for, unfolded
from cute_dialect.op.epilogue.bind import (
    Apart,
    Bound,
    alone,
    bound,
    by_name,
    combining,
    is_arranged,
    memory_of,
    refuse_arranged,
    traced_of,
)
from cute_dialect.op.epilogue.combination import LinearCombination, combination, is_rounded, operands_of
from cute_dialect.op.epilogue.tracing import Traced
from cute_dialect.op.errors import EpilogueError, OpError
from cute_dialect.op.execute.kernels import kernel_of
from cute_dialect.op.execute.launcher import launched
from cute_dialect.op.execute.tma_copies import pads, with_padding, without_padding
from cute_dialect.op.problems.conv import NAMES, ConvOptions, Geometry, Prepared, as_image, as_matrix, prepared, rows_of
from cute_dialect.op.problems.gemm import epilogue_of
from cute_dialect.op.problems.operands import matrix
from cute_dialect.op.select.gemm_dispatch import MOST_BYTES, gpu_of, here
from cute_dialect.op.select.kernel_choice import choice_of
from cute_dialect.runtime.arrays import ArrayView, numpy_dtype, view_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.signature_types import Interpreted


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


def convolution(
    name: str, kind: str, rank: int, arrays: Mapping[str, Any], given: ConvOptions, extras: LinearCombination,
    device: object = None,
    stream: object = None, run: Interpreted | None = None, graph: Any = None,
    args: Mapping[str, Any] = MappingProxyType({}),
) -> Any:  # fmt: skip
    """Compute a convolution or a gradient of one.

    Args:
        arrays: the given ones of ``x``, ``f``, ``grad_y``, ``out``, ``c`` and ``bias``, by name.
        graph: an epilogue.
        args: its arguments.

    Raises subclasses of OpError, and exceptions of a launch.
    """
    run = run or {}
    if graph is not None:
        alone(name, extras)
    options: dict[str, object] = {key: value for key, value in run.items() if key != "report"}
    device = chosen_device(device)
    check_options(name, device, options)
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
        raise type(e)(f"{name}: {e}") from None  # raised by code that does not know the call


def _computed(
    call: Call, ready: Prepared, out: Any, like: Any, given: ConvOptions, extras: LinearCombination, graph: Any,
    args: Mapping[str, Any]
) -> Any:  # fmt: skip
    """Compute a checked convolution, and return the result in the order of the caller."""
    library, g = call.where.library, ready.geometry
    made_here = out is None
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
    of_matrix = {n: as_matrix(call.name, n, t, g, call.first, library) for n, t in args.items()}
    if graph is None and _widens(ready, extras):
        graph, of_matrix = _combination(call, ready, extras)
        extras = extras.of_sums()
        ready = ready._replace(c=None, bias=None)
    if graph is not None:
        if "D" in of_matrix:
            raise EpilogueError(f"{call.name}: args has D; pass the array for the result as out")
        traced = traced_of(call.name, graph, of_matrix, shape)
        if is_arranged(traced):
            return _as_matrices(call, ready, None if made_here else out, like, given, extras, traced, of_matrix)
        refuse_arranged(call.name, traced)
        if traced.shape_of(shape) != shape:
            raise EpilogueError(f"{call.name}: pairs() is not supported in an epilogue of a convolution; use op.mm")
        if traced.graph.whole_rows:
            raise EpilogueError(f"{call.name}: whole_rows is not supported in an epilogue of a convolution; use op.mm")

        def another(shape: tuple[int, ...], kind: str) -> Any:
            return library.empty(call.name, shape, kind or ready.output, like)

        found = bound(traced, of_matrix, library.native(rows), shape, another)
        found.check_memory(call.name, rows, dict(zip(NAMES[call.kind], (ready.image, ready.other))))
    if 0 not in shape:
        _launch(call, ready, rows, given, extras, found)
    elif found is not None:
        found.nothing()
    if not direct:
        back = rows._replace(shape=target.shape, strides=strides_of(target.shape))
        library.native(target)[...] = library.native(back)
    if traced is None or found is None:
        return out
    results = {n: out if n == "D" else as_image(t, g, call.first) for n, t in found.results.items()}
    return traced.formed(results)


def _widens(ready: Prepared, extras: LinearCombination) -> bool:
    """Return True if kernels would round ``c`` to the result's type before it is added."""
    if ready.c is None or extras.beta == 0.0 or extras.alpha == 0.0:
        return False
    return is_rounded(ready.c.dtype, ready.output)


def _combination(call: Call, ready: Prepared, extras: LinearCombination) -> tuple[Traced, dict[str, Any]]:
    """Return ``activation(alpha * accum + beta * c + bias)`` as a traced epilogue of matrices, and its arguments."""
    library, c = call.where.library, ready.c
    assert c is not None
    rows = rows_of(call.kind, c)
    rows = rows_of(call.kind, dense(library, c)) if rows is None else rows
    given = operands_of({"alpha": extras.alpha, "beta": extras.beta, "C": rows, "bias": ready.bias})
    args = {n: x if isinstance(x, float) else library.native(x) for n, x in given.items()}
    return combination(given, ready.geometry.matrix, extras.activation), args


def _as_matrices(
    call: Call, ready: Prepared, out: Any, like: Any, given: ConvOptions, extras: LinearCombination, traced: Traced,
    args: Mapping[str, Any],
) -> Any:  # fmt: skip
    """Compute a convolution whose epilogue reshapes or permutes arrays, on copies of them."""
    g = ready.geometry

    def make(shape: tuple[int, ...], kind: str) -> Any:
        return call.where.library.empty(call.name, shape, kind or ready.output, like)

    if out is not None and "D" in traced.views:
        raise EpilogueError(f"{call.name}: out is not supported if the epilogue reshapes or permutes D; omit out")
    apart, image = Apart.of(call.name, traced, args, out, g.matrix, make)
    found = by_name(apart.plain, _computed(call, ready, image, like, given, extras, apart.plain, apart.args))
    for n in traced.views:
        found[n] = as_matrix(call.name, n, found[n], g, call.first, call.where.library)
    return apart.arranged(found)


def _matrix(call: Call, x: ArrayView) -> ArrayView | None:
    """Return the computed array as a matrix of rows; None if its strides do not allow that."""
    return None if x.strides[-1] != 1 and x.shape[-1] != 1 else rows_of(call.kind, x)


def _launch(
    call: Call, ready: Prepared, rows: ArrayView, given: ConvOptions, extras: LinearCombination, found: Bound | None
) -> None:  # fmt: skip
    """Launch the kernels of a convolution, on copies of arrays that they cannot read or write."""
    library, g = call.where.library, ready.geometry
    if g.flops == 0:  # Without images or channels, kernels would not write the result.
        sums = sums_for(library, ready, rows)
        library.native(sums)[...] = 0
        finish(library, ready, sums, rows, extras, found)
        return
    target, epilogue = here() if call.where.cpu else gpu_of(call.where.gpu), _epilogue(call, ready, extras, found)
    task = task_of(ready, epilogue, given, extras, *target, traced=found is not None, vector=aligned_vector(rows))
    way = choose_conv(task)
    match way.kind:
        case ConvKind.FEW_CHANNELS:
            _few_channels(call, ready, rows, extras, found, way, task)
        case ConvKind.TRANSPOSED:
            assert way.inner is not None
            turned = with_transposed_filter(call, ready, way.inner.request.geometry)
            _launch(call, turned, rows, given, extras, found)
        case ConvKind.FOLDED:
            assert way.inner is not None
            _narrow(call, ready, rows, given, extras, found, way.inner.request.geometry, apart=way.apart)
        case ConvKind.APART:
            sums = sums_for(library, ready, rows)
            plain = ready._replace(output=sums.dtype, c=None, bias=None)
            _launch(call, plain, sums, given, extras.of_sums(), None)
            finish(library, ready, sums, rows, extras, found)
        case ConvKind.PADDED_GROUPS:
            _by_padded_groups(call, ready, rows, extras, way)
        case ConvKind.GROUPS:
            _by_group(call, ready, rows, given, extras, way.request.geometry)
        case ConvKind.IM2COL:
            assert way.config is not None
            _launch_gemm(call, ready, rows, extras, found, way.config)
        case ConvKind.COLUMNS:
            unfolded(call, ready, rows, extras, found, given.kernel, apart=way.apart)


def _launch_gemm(
    call: Call, ready: Prepared, rows: ArrayView, extras: LinearCombination, found: Bound | None, config: ConvConfig
) -> None:
    """Launch a GEMM with im2col loads, on copies of arrays that it cannot read or write."""
    library = call.where.library
    ready = _with_whole_chunks(call, ready, config)
    ready = _with_aligned_rows(call, ready)
    image, other = read(library, ready, config)
    result = stored(library, ready, rows)
    columns = choice_of(config).columns_at_once
    operands, parts = _operands(library, ready, extras, found, config.base.epilogue, columns, result)
    kernel = kernel_of(config, call.where.cpu)
    taken = as_taken(ready, result, config)
    call.told(launched(kernel, image, other, taken, *operands, **call.options))
    if parts and found is not None:
        for x in found.reduced:
            for step in combining(x, parts[x.place], lambda n: library.strided((n,), (1,), "f32", result)):
                combine = kernel_of(step.config, call.where.cpu)
                call.told(launched(combine, step.parts, step.results, **call.options))
    if result is not rows and rows.strides[0] == rows.shape[1]:  # a row per pixel or tap
        (count, per, line), (_, step, _) = result.shape, result.strides
        source, target = (
            x._replace(shape=(count * per, line), strides=(pitch, 1)) for x, pitch in ((result, step), (rows, line))
        )
        without_padding(library, source, target, call.told, call.options, call.where.cpu)
    elif result is not rows:
        library.native(rows)[...] = library.native(result).reshape(rows.shape)


def _with_whole_chunks(call: Call, ready: Prepared, config: ConvConfig) -> Prepared:
    """Return image and filter with zeros past the last channel, so that no load reads a part of its channels."""
    if not pads_channels(ready.geometry, config.width):
        return ready
    wanted = dict[str, tuple[ArrayView, int]]()
    for name, x in (("image", ready.image), ("other", ready.other)):
        rows = as_rows(x)
        if rows is None or not pads(rows, 1) or prod(x.shape) * numpy_dtype(x.dtype).itemsize >= MOST_BYTES:
            return ready
        wanted[name] = rows, 1
    made = with_padding(call.where.library, wanted, call.told, call.options, call.where.cpu, config.width)
    found = dict[str, ArrayView]()
    for name, x in (("image", ready.image), ("other", ready.other)):
        shape = (*x.shape[:-1], made[name].strides[0])
        found[name] = made[name]._replace(shape=shape, strides=strides_of(shape))
    return ready._replace(**found)


def _with_aligned_rows(call: Call, ready: Prepared) -> Prepared:
    """Return the arrays of pixels with padded rows, which TMA can read, copied by one launch if that is possible."""
    images = {"image": ready.image} | ({"other": ready.other} if ready.geometry.kind == WGRAD else {})
    wanted = dict[str, tuple[ArrayView, int]]()
    for name, x in images.items():
        rows = None if lines_suit(x) or prod(x.shape) * numpy_dtype(x.dtype).itemsize >= MOST_BYTES else as_rows(x)
        if rows is not None and pads(rows, 1):
            wanted[name] = rows, 1
    if not wanted:
        return ready
    made = with_padding(call.where.library, wanted, call.told, call.options, call.where.cpu)
    found = dict[str, ArrayView]()
    for name, rows in made.items():
        shape = images[name].shape
        found[name] = rows._replace(shape=shape, strides=strides_of(shape, rows.strides[0]))
    return ready._replace(**found)


def _by_padded_groups(
    call: Call, ready: Prepared, rows: ArrayView, extras: LinearCombination, way: ConvDispatch
) -> None:
    """Launch the kernel of all groups, on copies with padded groups."""
    library, g, padded, config = call.where.library, ready.geometry, way.request.geometry, way.config
    assert config is not None
    shape = padded.matrix
    wide = rows if padded.output == g.output else library.strided(shape, (shape[1], 1), rows.dtype, rows)
    _launch_gemm(call, with_padded_groups(call, ready, padded), wide, extras, None, config)
    if wide is not rows:
        copy_result(call, wide, rows, g, padded)


def _by_group(
    call: Call, ready: Prepared, rows: ArrayView, given: ConvOptions, extras: LinearCombination, one: Geometry
) -> None:  # fmt: skip
    """Launch the kernels of each group, on slices of the arrays; ``one`` is the convolution of a group."""
    g, native = ready.geometry, call.where.library.native
    weights = g.kind == WGRAD
    image, other, result = native(ready.image), native(ready.other), native(rows)

    def part(x: Any, i: int, mode: int) -> ArrayView:
        """Return the slice of group ``i``, along the first mode or the last one."""
        n = x.shape[mode] // g.groups
        return view_of(x[i * n : (i + 1) * n] if mode == 0 else x[..., i * n : (i + 1) * n])

    for i in range(g.groups):
        of = part(image, i, -1), part(other, i, -1 if weights else 0)
        group = ready._replace(geometry=one, image=of[0], other=of[1])
        _launch(call, group, part(result, i, 0 if weights else -1), given, extras, None)


def _few_channels(
    call: Call, ready: Prepared, rows: ArrayView, extras: LinearCombination, found: Bound | None, way: ConvDispatch,
    task: ConvTask,
) -> None:  # fmt: skip
    """Launch a kernel for few channels per group."""
    library, few, epilogue = call.where.library, way.few, task.request.epilogue
    sums = sums_for(library, ready, rows) if way.apart else rows
    if isinstance(few, PartialWeights):
        partial_weights(call, ready, sums, few)
    elif isinstance(few, FewResultsConfig):
        few_results(call, ready, sums, few, task.sms)
    else:
        assert few is not None
        operands = [] if way.apart else _operands(library, ready, extras, found, epilogue, 0, rows)[0]
        launch = depthwise if isinstance(few, DepthwiseConfig) else direct
        launch(call, ready, sums, cast(Any, few), operands)
    if way.apart:
        finish(library, ready, sums, rows, extras, found)


def _narrow(
    call: Call, ready: Prepared, rows: ArrayView, given: ConvOptions, extras: LinearCombination,
    found: Bound | None, left: Geometry, *, apart: bool
) -> None:  # fmt: skip
    """Launch the kernels of a convolution whose filter columns are folded into channels.

    Args:
        left: the folded convolution.
        apart: the array library computes the epilogue.
    """
    library, g = call.where.library, ready.geometry
    narrower = narrowed(call, ready, left)
    if g.kind != WGRAD:
        _launch(call, narrower, rows, given, extras, found)
        return
    # per filter a line of taps and channels, padded with zeros
    like = sums_for(library, ready, rows) if apart else rows
    wide = library.strided(left.matrix, (left.matrix[1], 1), like.dtype, like)
    plain = narrower._replace(output=wide.dtype, c=None, bias=None)
    _launch(call, plain, wide, given, extras.of_sums() if apart else extras, None)
    back = of_taps(wide._replace(shape=left.filter, strides=strides_of(left.filter)), g)
    library.native(like._replace(shape=g.filter, strides=(like.strides[0], *strides_of(g.filter)[1:])))[...] = (
        library.native(back)
    )
    if apart:
        finish(library, ready, like, rows, extras, found)


def _epilogue(call: Call, ready: Prepared, extras: LinearCombination, found: Bound | None) -> Epilogue:
    """Return the epilogue of a kernel."""
    if found is not None:
        return Epilogue(graph=found.graph)
    bias = ready.bias
    of_bias = (None, "") if bias is None else ((bias.shape[0],), bias.dtype)
    c = None if ready.c is None else cast(Any, ready.c)
    return epilogue_of(call.name, extras._replace(c=c), *ready.geometry.matrix, *of_bias, ready.output)


def _operands(
    library: Library, ready: Prepared, extras: LinearCombination, found: Bound | None, epilogue: Epilogue, columns: int,
    result: ArrayView,
) -> tuple[list[Any], dict[int, ArrayView]]:  # fmt: skip
    """Return the kernel's arguments after the result, and memory for partial reductions.

    Args:
        columns: number of columns per partial reduction.
    """
    if found is not None:
        parts: dict[int, ArrayView] = {}
        if found.graph.reduces:
            for x in found.reduced:
                extents = x.extents(result.shape[0], result.shape[1], columns, False)
                made = library.strided((prod(extents),), (1,), "f32", result)
                parts[x.place] = memory_of(made, extents, 1)
        operands = [parts.get(i, view_of(x) if hasattr(x, "shape") else x) for i, x in enumerate(found.operands)]
        return operands, parts
    operands = list[Any]()
    if epilogue.beta != 0.0:
        assert ready.c is not None
        rows = rows_of(ready.geometry.kind, ready.c)
        if rows is None or rows.dtype != result.dtype or rows.strides[-1] != 1 or not matrix(rows).suits_tma():
            unit = max(1, 16 // numpy_dtype(result.dtype).itemsize)
            rows = rows_of(ready.geometry.kind, dense(library, ready.c, unit, result.dtype))
        operands.append(rows)
    if ready.bias is not None:
        bias = ready.bias
        operands.append(bias if bias.strides[0] == 1 and bias.pointer % 16 == 0 else library.copied(bias, (1,)))
    operands += [getattr(extras, n) for n in ("alpha", "beta") if getattr(epilogue, n) == "arg"]
    return operands, {}


# ----------------------------------------------------------------------------------- operands in the layouts of kernels


def stored(library: Library, ready: Prepared, rows: ArrayView) -> ArrayView:
    """Return the memory to which a kernel stores: a padded copy if lines are not multiples of 16 bytes."""
    item = numpy_dtype(rows.dtype).itemsize
    line = ready.geometry.output[-1]
    if matrix(rows).suits_tma() and line * item % 16 == 0:
        return rows
    wide = -(-line * item // 16) * 16 // item
    count = rows.shape[1] // line
    made = library.strided((*rows.shape[:-1], count * wide), (count * wide, 1), rows.dtype, rows)
    return made._replace(shape=(rows.shape[0], count, line), strides=(count * wide, wide, 1))


def as_taken(ready: Prepared, x: ArrayView, config: ConvConfig) -> ArrayView:
    """Return the result in the layout that the kernel takes."""
    g, step = ready.geometry, x.strides[0]
    line = g.output[-1]
    if config.kind == WGRAD:
        apart = x.strides[1] if len(x.shape) == 3 else line
        per = x.shape[0] // g.groups
        more = ((g.groups,), (per * step,)) if config.groups else ((), ())
        return x._replace(shape=(per, line, g.taps, *more[0]), strides=(step, 1, apart, *more[1]))
    if config.strided:
        steps = strides_of(g.output)
        strides = (1, *[n // line * step for n in steps[-2::-1]])
        wide = x.strides[1] if len(x.shape) == 3 else line  # stores are 16 bytes wide, so a padded copy has wider lines
        return x._replace(shape=(wide, *g.output[-2::-1]), strides=strides)
    if config.groups:
        per = line // g.groups
        return x._replace(shape=(x.shape[0], per, g.groups), strides=(step, 1, per))
    return x._replace(shape=(x.shape[0], line), strides=(step, 1))


def read(library: Library, ready: Prepared, config: ConvConfig) -> tuple[ArrayView, ArrayView]:
    """Return image and filter in the layouts that the kernel takes, with the contiguous mode first."""
    g, item = ready.geometry, numpy_dtype(ready.image.dtype).itemsize
    unit = 16 // item
    image = ready.image if lines_suit(ready.image) else dense(library, ready.image, unit)
    image = _apart(image, unit)
    if config.kind == WGRAD:
        y = ready.other if lines_suit(ready.other) and as_rows(ready.other) else dense(library, ready.other, unit)
        rows = as_rows(y)
        assert rows is not None
        step, per = max(rows.strides[0], unit), rows.shape[1] // g.groups
        more = ((g.groups,), (per,)) if config.groups else ((), ())
        taken = rows._replace(shape=(per, rows.shape[0], *more[0]), strides=(1, step, *more[1]))
        return image._replace(shape=image.shape[::-1], strides=image.strides[::-1]), taken
    shape, strides = image.shape[::-1], image.strides[::-1]
    return image._replace(shape=shape, strides=strides), _filter(library, ready, config, unit, g)


def _apart(x: ArrayView, unit: int) -> ArrayView:
    """Return an array whose dimensions of extent 1 have strides that a tensor map allows."""
    strides, reach = list(x.strides), unit
    for i in reversed(range(len(x.shape) - 1)):
        if x.shape[i] == 1:
            strides[i] = reach
        reach = max(reach, -(-strides[i] * x.shape[i] // unit) * unit)
    return x._replace(strides=(*strides[:-1], 1))


def _filter(library: Library, ready: Prepared, config: ConvConfig, unit: int, g: Geometry) -> ArrayView:
    """Return the filter in the layout that the kernel takes."""
    other = ready.other
    if config.flat:
        width = config.width
        channels = -(-other.shape[-1] // width) * width
        if channels != other.shape[-1]:  # pad with zeros, because padding channels are multiplied
            shape = (*other.shape[:-1], channels)
            wide = library.strided(shape, strides_of(shape), other.dtype, other)
            library.clear(wide)
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
