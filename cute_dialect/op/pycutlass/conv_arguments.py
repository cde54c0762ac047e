"""Arguments of a call of a convolution plan: checked, launched and waited for.

A call is one launch with im2col loads, or one that writes columns and a GEMM.  Split-K slices of separate launches are
stored; a second kernel adds them and computes the epilogue.  The same holds for groups whose columns are written.
Operands are images and filters in place, with channels last.  D, C and the arrays of a traced epilogue are matrices
with a row per pixel or filter.
"""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.kernels.common.elements import BITS
from cute_dialect.kernels.conv.config import DGRAD, FPROP, WGRAD
from cute_dialect.kernels.conv.unfold import UnfoldConfig
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.op.arrays.dtypes import SIZES
from cute_dialect.op.arrays.library import Library
from cute_dialect.op.arrays.memory import new_memory
from cute_dialect.op.arrays.operand_views import as_rows, merged
from cute_dialect.op.conv.choice import has_epilogue
from cute_dialect.op.conv.compute import as_taken, read
from cute_dialect.op.conv.im2col_gemm import extents_of, writing
from cute_dialect.op.epilogue.bind import Bound, bound, refuse_arranged, traced_of
from cute_dialect.op.errors import EpilogueError, LayoutError, UnsupportedError
from cute_dialect.op.execute.arguments import Arguments, on_the_cpu
from cute_dialect.op.execute.gemm import Step, Workspace, combined_steps, operation_steps, reduction
from cute_dialect.op.execute.kernels import Variant, chip_here
from cute_dialect.op.problems.conv import (
    Checked,
    ConvOptions,
    Geometry,
    Prepared,
    as_image,
    as_matrix,
    check,
    check_in_place,
)
from cute_dialect.op.problems.operands import Kinds, Operands, Type, new_like
from cute_dialect.op.pycutlass.arguments import arguments_for
from cute_dialect.op.pycutlass.conv import Conv2dOperation, Conv2dProblemSize, called
from cute_dialect.op.pycutlass.functors import OutputOp, VisitorOutputOp
from cute_dialect.op.select.descriptions import ALONE, GemmCoord, Split, SplitKMode, known
from cute_dialect.runtime.arrays import ArrayView, view_of

if TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterator, Sequence
    from typing import Unpack

    from cute_dialect.op.execute.saved import Fields
    from cute_dialect.runtime.launch import CallOptions


# ------------------------------------------------------------------------------------------------------------- launches


class _InPlace(Library):
    """A library that raises an error instead of copying."""

    def strided(self, shape: Sequence[int], strides: Sequence[int], element: str, like: ArrayView) -> ArrayView:
        """Raise LayoutError."""
        raise LayoutError(
            "Conv2d: the kernel cannot read the filter in place: its taps and channels must be contiguous (and "
            "transposed for dgrad of 8 bits and tf32); use analytic"
        )


_THERE = _InPlace("planned")


def steps(operation: Conv2dOperation, g: Geometry, x: Operands, split: Split) -> list[Step]:
    """Return the launches that compute a call.  Raises UnsupportedError, EpilogueError."""
    inner = {FPROP: g.filter[-1], DGRAD: g.result[-1], WGRAD: g.image[0]}[g.kind]
    if 0 in g.matrix or inner == 0 or x.alpha == 0.0:
        return operation_steps(operation.product(), _nothing(x), split)
    if operation.im2col:
        return _by_im2col(operation, g, x, split)
    found, of = _columns(operation, g, x)
    product = operation.product()
    with called("Conv2d"):
        if g.groups == 1:
            return [*found, *operation_steps(product, of, split)]
        if x.graph is None and x.bias is None and split.parts == 1:
            each = _grouped(g, of)
            return [*found, *operation_steps(product, each, split)]
        _check_apart(x)
        return [*found, *_groups_apart(operation, g, of, split)]


def parts_of(operation: Conv2dOperation, g: Geometry, split: Split) -> int:
    """Return the number of split-K slices.

    One launch has at most as many as K has steps, several launches as many as there are blocks of channels (for wgrad,
    images).
    """
    if split.parts == 1 or not operation.im2col:
        return split.parts
    if split.mode == "serial":
        shared = _sharing(operation, g, split.parts)
        if shared is not None:
            return shared.plain_choice(False).parts
    return len(list(_pieces(g, split.parts, operation.config(g).width)))


# ------------------------------------------------------------------------------------------------------- im2col loads


def _by_im2col(operation: Conv2dOperation, g: Geometry, x: Operands, split: Split) -> list[Step]:
    if split.mode == "stream":
        raise UnsupportedError("split_k: im2col loads do not support stream; use serial or parallel, or analytic")
    alone = has_epilogue(g, _epilogue(operation, x))
    if split.parts == 1 and alone:
        return _launch(operation, g, x)
    if split.mode == "serial" and alone:
        shared = _sharing(operation, g, split.parts)
        if shared is not None:
            return _launch(shared, g, x)
    _check_apart(x)
    product, sums = operation.product(), operation.partial()
    pieces = list(_pieces(g, split.parts, operation.config(g).width))
    if len(pieces) == 1 and alone:
        return _launch(operation, g, x)
    workspace = _workspace(operation, x.d, len(pieces))
    found: list[Step] = []
    for i, (part, cut) in enumerate(pieces):
        a, b = cut(x)
        found += _launch(sums, part, Operands(a, b, _part(workspace.memory, x.d, i)))
    return [*found, reduction(product.reduction_variant(x), x, workspace)]


def _launch(operation: Conv2dOperation, g: Geometry, x: Operands) -> list[Step]:
    """Return the launch of a kernel with im2col loads, and the launches that combine its partial reductions."""
    variant = operation.conv_variant(g, _epilogue(operation, x))
    config = operation.config(g)
    image, other = (x.b, x.a) if g.kind == WGRAD else (x.a, x.b)
    ready = Prepared(g, image, other, x.a.dtype, x.d.dtype, "", None, None)
    first, second = read(_THERE, ready, config)
    taken = x._replace(a=first, b=second, d=as_taken(ready, x.d, config))
    return combined_steps(variant, taken)


def _epilogue(operation: Conv2dOperation, x: Operands) -> Epilogue:
    """Return the epilogue of a call."""
    with called("Conv2d"):
        return operation.epilogue_for(x.alpha, x.beta, x.along, "f32" if x.bias is None else x.bias.dtype, x.graph)


def _sharing(operation: Conv2dOperation, g: Geometry, parts: int) -> Conv2dOperation | None:
    """Return the operation with the same tile and split-K in a single launch.

    Return None if the convolution has groups, or if the blocks would not all be resident at once.
    """
    if g.groups > 1:
        return None
    choice = operation.plain_choice(False)
    c, (m, n) = choice.config, g.matrix
    k = prod(g.result[:-1]) if g.kind == WGRAD else g.taps * (g.result if g.kind == DGRAD else g.filter)[-1]
    columns = -(-g.filter[-1] // 64) * 64 * g.taps if g.kind == WGRAD else n
    parts = min(parts, -(-k // c.tile[2]))
    if parts < 2:
        return operation
    tiles = -(-m // (c.tile[0] * c.cluster_m)) * -(-columns // (c.tile[1] * c.cluster_n)) * c.cluster
    if tiles * parts > c.at_once:
        return None
    td = operation.tile_description.replace({**operation.alone(), "tile_scheduler": "split_k", "parts": parts})
    try:
        return operation.with_tile(td)
    except UnsupportedError:
        return None


class _Cut(NamedTuple):
    """A slice of K: elements ``first`` to before ``last`` of a mode of A and of B."""

    mode_a: int
    mode_b: int
    first: int
    last: int

    def __call__(self, x: Operands) -> tuple[ArrayView, ArrayView]:
        return _sliced(x.a, self.mode_a, self.first, self.last), _sliced(x.b, self.mode_b, self.first, self.last)


def _pieces(g: Geometry, parts: int, width: int) -> Iterator[tuple[Geometry, _Cut]]:
    """Yield slices of K with their geometry: blocks of channels, or images for wgrad; groups are not sliced."""
    extent, unit = {FPROP: (g.filter[-1], width), DGRAD: (g.result[-1], width), WGRAD: (g.image[0], 1)}[g.kind]
    if g.groups > 1:
        parts = 1
    blocks = -(-extent // unit)
    each = -(-blocks // min(parts, blocks)) * unit
    last = len(g.filter) - 1
    for first in range(0, extent, each):
        end = min(extent, first + each)
        n = end - first
        if each >= extent:
            yield g, _Cut(0, 0, 0, 0)
        elif g.kind == FPROP:
            part = g._replace(image=(*g.image[:-1], n), filter=(*g.filter[:-1], n))
            yield part, _Cut(last, last, first, end)
        elif g.kind == DGRAD:
            part = g._replace(result=(*g.result[:-1], n), filter=(n, *g.filter[1:]))
            yield part, _Cut(last, 0, first, end)
        else:
            part = g._replace(image=(n, *g.image[1:]), result=(n, *g.result[1:]))
            yield part, _Cut(0, 0, first, end)


def _sliced(view: ArrayView, mode: int, first: int, last: int) -> ArrayView:
    if last == 0:
        return view
    shape = tuple([last - first if i == mode else n for i, n in enumerate(view.shape)])
    return view._replace(pointer=view.pointer + first * view.strides[mode] * SIZES[view.dtype], shape=shape)


def _workspace(operation: Conv2dOperation, d: ArrayView, parts: int) -> Workspace:
    """Return memory for partial sums: (rows, columns, slices), with lines padded to 16 bytes."""
    m, n = d.shape
    wide, sums = -(-n // 4) * 4, operation.sums
    memory = new_memory(d, parts * m * wide, sums)
    return Workspace(memory._replace(shape=(m, wide, parts), strides=(wide, 1, m * wide)), sums, parts)


def _part(memory: ArrayView, d: ArrayView, part: int) -> ArrayView:
    """Return a slice of the workspace as a matrix like D."""
    row, column, step = memory.strides
    at = memory.pointer + part * step * SIZES[memory.dtype]
    return memory._replace(pointer=at, shape=d.shape, strides=(row, column))


def _check_apart(x: Operands) -> None:
    """Raise EpilogueError for an epilogue that a second kernel cannot evaluate."""
    if x.graph is not None and (x.graph.paired or x.graph.reduces or x.graph.whole_rows):
        raise EpilogueError(
            "Conv2d: a second kernel computes the epilogue (for groups, strided dgrad, wgrad and split_k), so "
            "reductions, pairs() and whole_rows are not supported; omit them"
        )


# ------------------------------------------------------------------------------------------------------------ columns


def _columns(operation: Conv2dOperation, g: Geometry, x: Operands) -> tuple[list[Step], Operands]:
    """Return the launches that write operands, and the operands of the GEMM, with all groups side by side."""
    image = x.b if g.kind == WGRAD else x.a
    found: list[Step] = []
    columns = as_rows(image) if g.is_product else None
    if columns is None:
        rows, line = extents_of(g, image)
        made = new_memory(x.d, rows * line, image.dtype)
        made = made._replace(shape=(rows, line), strides=(line, 1))
        w = writing(g, image, made)
        found.append(_unfold(w.config, w.image, w.columns, w.numbers))
        columns = made._replace(shape=(rows, g.taps * image.shape[-1]))
    if g.kind == WGRAD:
        y = as_rows(x.a)
        if y is None:
            raise LayoutError("Conv2d: A has gaps between its pixels; pass a contiguous A")
        turned = y._replace(shape=y.shape[::-1], strides=y.strides[::-1])
        return found, x._replace(a=turned, b=columns)
    return found, x._replace(a=columns, b=_factor(g, x, found))


def _factor(g: Geometry, x: Operands, found: list[Step]) -> ArrayView:
    """Return the filter as the second factor, (taps and channels, columns), with groups one below the other.

    If the filter must be written in that order, the launch is appended to ``found``.
    """
    f = x.b
    if g.kind == FPROP:
        step = merged(f, 1, len(f.shape))
        if step is None or (f.strides[-1] != 1 and f.shape[-1] != 1):
            raise LayoutError("Conv2d: B has gaps between its taps or channels; pass a contiguous B")
        return f._replace(shape=(g.taps * f.shape[-1], f.shape[0]), strides=(step, f.strides[0]))
    tap, per, channels = merged(f, 1, len(f.shape) - 1), f.shape[0] // g.groups, f.shape[-1]
    if tap is None:
        raise LayoutError("Conv2d: B has gaps between its taps; pass a contiguous B")
    row = f.strides[0]
    if g.taps == 1:
        return f._replace(shape=(f.shape[0], channels), strides=(row, f.strides[-1]))
    # Rows of channels, (groups, taps, filters of a group), are pixels (W, H, D) of one tap each.
    unit = max(1, 16 // SIZES[f.dtype])
    line = -(-channels // unit) * unit
    count = g.groups * g.taps * per
    made = new_memory(x.d, count * line, f.dtype)._replace(shape=(count, channels), strides=(line, 1))
    word = f"i{8 * SIZES[f.dtype]}"
    seen = f._replace(
        shape=(channels, per, g.taps, g.groups, 1), strides=(f.strides[-1], row, tap, per * row, 0), dtype=word
    )
    numbers = (channels, 1, *[n for extent in (per, g.taps, g.groups) for n in (1, extent, 0, 1, 1)])
    written = made._replace(dtype=word, shape=(count, line))
    found.append(_unfold(UnfoldConfig(8 * SIZES[f.dtype]), seen, written, numbers))
    return made


def _unfold(config: UnfoldConfig, image: ArrayView, columns: ArrayView, numbers: tuple[int, ...]) -> Step:
    return Step(Variant(config, chip=chip_here()), Operands(image, image, columns, behind=numbers))


def _grouped(g: Geometry, x: Operands) -> Operands:
    """Return the GEMMs of groups as a batch."""

    def rows(v: ArrayView) -> ArrayView:  # groups are one below the other
        n = v.shape[0] // g.groups
        return v._replace(shape=(g.groups, n, v.shape[1]), strides=(n * v.strides[0], *v.strides))

    def columns(v: ArrayView) -> ArrayView:  # groups are side by side
        n = v.shape[1] // g.groups
        return v._replace(shape=(g.groups, v.shape[0], n), strides=(n * v.strides[1], *v.strides))

    if g.kind == WGRAD:
        c = None if x.c is None else rows(x.c)
        return x._replace(a=rows(x.a), b=columns(x.b), d=rows(x.d), c=c)
    b = columns(x.b) if g.kind == FPROP else rows(x.b)
    return x._replace(a=columns(x.a), b=b, d=columns(x.d), c=None if x.c is None else columns(x.c))


def _groups_apart(operation: Conv2dOperation, g: Geometry, x: Operands, split: Split) -> list[Step]:
    """Return the GEMMs of groups, followed by a second kernel for their accumulators; split-K needs a launch per
    group.
    """
    product, workspace = operation.product(), _workspace(operation, x.d, 1)
    d = _part(workspace.memory, x.d, 0)
    found = operation_steps(product.partial(), _grouped(g, Operands(x.a, x.b, d)), split)
    return [*found, reduction(product.reduction_variant(x), x, workspace)]


def matrices_of(g: Geometry, x: Operands) -> Operands:
    """Return operands with the layouts of the GEMM of columns, for the kernel choice; the columns need not exist."""
    image = x.b if g.kind == WGRAD else x.a
    rows, line = extents_of(g, image)
    columns = image._replace(pointer=0, shape=(rows, g.taps * image.shape[-1]), strides=(line, 1))
    if g.is_product:
        columns = as_rows(image) or columns
    if g.kind == WGRAD:
        y = as_rows(x.a) or x.a._replace(shape=(prod(x.a.shape[:-1]), x.a.shape[-1]), strides=x.a.strides[-2:])
        x = x._replace(a=y._replace(shape=y.shape[::-1], strides=y.strides[::-1]), b=columns)
    else:
        f = x.b
        if g.kind == FPROP:
            b = f._replace(shape=(g.taps * f.shape[-1], f.shape[0]), strides=(1, f.strides[0]))
        else:
            count = g.taps * f.shape[0]
            unit = max(1, 128 // BITS.get(f.dtype, 32))
            b = f._replace(pointer=0, shape=(count, f.shape[-1]), strides=(-(-f.shape[-1] // unit) * unit, 1))
        x = x._replace(a=columns, b=b)
    return x if g.groups == 1 else _grouped(g, x)


def _nothing(x: Operands) -> Operands:
    """Return operands of a GEMM whose K is 0."""
    m, n = x.d.shape
    a = x.a._replace(pointer=x.a.pointer & -16, shape=(m, 0), strides=(16, 1))
    return x._replace(a=a, b=x.b._replace(pointer=x.b.pointer & -16, shape=(0, n), strides=(1, 16)))


# ------------------------------------------------------------------------------------------------------------ arguments


def visited(
    call: str, kind: str, kinds: Kinds, a: Any, b: Any, d: Any, visitor: Any, args: Mapping[str, Any], how: ConvOptions,
    on_cpu: bool,
) -> tuple[Checked, Bound]:  # fmt: skip
    """Return a checked call and its epilogue with arrays; a plain function is traced first.

    Args:
        args: arrays and numbers by name, and arrays for results.

    Raises OpError.
    """
    if "D" in args:
        raise EpilogueError(f"{call}: visitor_args has D; pass the array for the result as D")
    found = check(call, kind, kinds, (a, b, None, d), how, on_cpu=on_cpu)
    g, x = found.geometry, found.operands
    given = {n: as_matrix(call, n, t, g, found.turn) for n, t in args.items()}
    traced = traced_of(call, visitor, given, g.matrix)
    refuse_arranged(call, traced)
    if traced.shape_of(g.matrix) != g.matrix or traced.graph.whole_rows:
        raise EpilogueError(f"{call}: the epilogue has pairs() or whole_rows, which only op.mm and op.bmm support")

    def another(shape: tuple[int, ...], element: str) -> Any:
        return new_like(a, shape, Type(element or kinds.d.element, "row"))

    matrix = as_matrix(call, "D", found.D, g, found.turn)
    made = bound(traced, given, matrix, g.matrix, another)
    made.check_memory(call, view_of(matrix), {"A": x.a, "B": x.b})
    behind = tuple([view_of(t) if hasattr(t, "shape") else t for t in made.operands])
    x = x._replace(graph=made.graph, behind=behind, reduced=tuple(made.reduced))
    results = {n: t if n in traced.views else as_image(t, g, found.turn) for n, t in made.results.items() if n != "D"}
    return found._replace(operands=x), made._replace(results=results)


class ConvArguments(Arguments):
    """Checked operands of an operation: :meth:`launch` and :meth:`sync`."""

    def __init__(
        self, operation: Conv2dOperation, found: Checked, stream: object, options: CallOptions, split: Split = ALONE,
        call: str = "Conv2dArguments", results: Mapping[str, Any] | None = None,
    ):  # fmt: skip
        self.convolution, self.geometry = operation, found.geometry
        operation.check_problem(call, found.geometry)
        if operation.im2col:
            operation.config(found.geometry)
            check_in_place(call, found.geometry, found.operands)
        super().__init__(operation, found.operands, found.D, stream, options, split, call, results)

    @property
    def problem_size(self) -> GemmCoord:
        """Extents of the implicit GEMM; with groups, those of one group."""
        g = self.geometry
        window = g.window
        pads = (window.before[0], window.after[0], window.before[1], window.after[1])
        problem = Conv2dProblemSize(g.image, g.filter, pads, window.strides, window.dilations, groups=g.groups)
        return problem.implicit_gemm_size(g.kind)

    @property
    def problem(self) -> str:
        """The problem as text: kind, images, filters and window."""
        g, w = self.geometry, self.geometry.window
        image, filters = ("x".join(map(str, shape)) for shape in (g.image, g.filter))
        window = f"strides {w.strides}, padding {w.before} {w.after}, dilation {w.dilations}"
        return f"{g.kind} of {image} by {filters}, {window}, groups {g.groups}"

    def taken(self) -> Fields:
        """Return the chosen tile and the iterator algorithm as data."""
        return {**super().taken(), "algorithm": str(self.convolution.algorithm)}

    @property
    def parts(self) -> int:
        """Number of split-K slices, which may be smaller than the requested number."""
        return parts_of(self.convolution, self.geometry, self.split)

    def steps(self, x: Operands) -> list[Step]:
        """Return the launches for these operands."""
        return steps(self.convolution, self.geometry, x, self.split)


class Conv2dArguments(ConvArguments):
    """The operands of a call.

    Args:
        problem_size: a :class:`~cute_dialect.op.pycutlass.conv.Conv2dProblemSize`; arrays may be flat.
        A, B, C, D: as the operation's kind defines them.  ``D`` is allocated if it is None; ``C`` may have one value
            per channel.
        output_op: numbers of the epilogue, an instance of the operation's ``epilogue_type``.
        split_k_mode, split_k_slices: split-K; default: the slices of ``problem_size``.
        bias: (K,).
        options: call options of a kernel: ``device="cpu"`` and those of the interpreter.

    Raises OpError.
    """

    def __init__(
        self, operation: Conv2dOperation, problem_size: Conv2dProblemSize | Sequence[object], A: object, B: object,
        C: object = None, D: object = None, output_op: OutputOp | VisitorOutputOp | None = None,
        split_k_mode: str = SplitKMode.Serial, split_k_slices: int | None = None, *, bias: object = None,
        stream: object = None, **options: Unpack[CallOptions],
    ):  # fmt: skip
        call = "Conv2dArguments"
        problem = problem_size if isinstance(problem_size, Conv2dProblemSize) else Conv2dProblemSize(*problem_size)
        mode = known(SplitKMode, split_k_mode, "split_k_mode")
        slices = problem.split_k_slices if split_k_slices is None else split_k_slices
        split = Split.of((str(mode), slices))
        how, on_cpu = ConvOptions(data_format="NHWC", problem=problem), on_the_cpu(options)
        kinds, arrays = operation.kinds, (A, B, C, D)
        if operation.traced is not None or isinstance(output_op, VisitorOutputOp):
            if operation.traced is None or not isinstance(output_op, VisitorOutputOp):
                raise EpilogueError(
                    f"{call}: output_op does not match the operation's epilogue; pass operation.epilogue_type(…) with "
                    "the epilogue's arguments by name"
                )
            args = arguments_for(call, operation.traced, output_op.arguments, {"C": C, "bias": bias})
            found, results = visited(call, operation.kind, kinds, A, B, D, operation.traced, args, how, on_cpu)
            super().__init__(operation, found, stream, options, split, call, results.results)
            output_op.wait = self.sync
            return
        output_op = output_op or OutputOp()
        operation = operation.with_numbers(output_op.arguments)
        found = check(
            call, operation.kind, kinds, arrays, how, alpha=output_op.alpha, beta=output_op.beta, bias=bias,
            on_cpu=on_cpu,
        )  # fmt: skip
        super().__init__(operation, found, stream, options, split, call)
