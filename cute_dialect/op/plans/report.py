"""Explanations of plans of GEMMs, of lists of GEMMs, and of convolutions."""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, cast

from cute_dialect.kernels.conv.config import WGRAD
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.op.arrays.dtypes import SIZES
from cute_dialect.op.arrays.operand_views import Matrix, channels_first, is_batch, last, strides_of, views_last
from cute_dialect.op.conv.choice import chosen_with_time
from cute_dialect.op.epilogue.tracing import Traced
from cute_dialect.op.errors import ShapeError
from cute_dialect.op.execute.arguments import apart
from cute_dialect.op.execute.gemm import parts_of
from cute_dialect.op.execute.kernels import splitting
from cute_dialect.op.explanations.conv import ConvExplanation
from cute_dialect.op.explanations.gemm import Explanation, GemmExplanation, Line, explain_plan, on_chip
from cute_dialect.op.problems.conv import ConvOptions, planned_geometry
from cute_dialect.op.problems.operands import Operands, Type, fits_results, laid, product_shape, read
from cute_dialect.op.problems.pointer_arrays import as_batch, extents_of, is_several, products_of, sizes_of, tiles_of
from cute_dialect.op.problems.pointer_arrays import with_epilogue as bind_epilogue
from cute_dialect.op.pycutlass.arguments import example_graph
from cute_dialect.op.pycutlass.conv_arguments import parts_of as slices_of
from cute_dialect.op.select.backends import LATEST, unmeasured
from cute_dialect.op.select.configurations import Configured
from cute_dialect.op.select.cost_model import NO_WORK, work_of
from cute_dialect.op.select.descriptions import ALONE, OpcodeClass, SchedulerMode, Split
from cute_dialect.op.select.gemm_dispatch import Plan, here, with_epilogue
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.op.select.plan_tiles import chosen, problem_of
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.plans.conv import Conv2d
    from cute_dialect.op.plans.gemm import MatrixPlan
    from cute_dialect.op.plans.grouped import GroupedGemm
    from cute_dialect.op.signature_types import Array


def explained(
    plan: MatrixPlan, A: Array, B: Array, others: int = 4, split: Split = ALONE, *, array: bool = False
) -> GemmExplanation:
    """Explain which kernel a plan uses for matrices or shapes, and its predicted time.

    ``array`` is True for pointer arrays.
    """
    a, b, _, d = plan.kinds
    if is_several(A):
        return explained_products(plan, plan.call, A, B, others=others)
    x, y = _matrix(plan.call, "A", A, a), _matrix(plan.call, "B", B, b)
    sums, traced = product_shape(f"{plan.call}.explain", None, x, y, ("A", "B")), plan.traced
    batch = sums[:-2]
    graph = None if traced is None else example_graph(traced, plan.kinds)
    z = _matrix(plan.call, "D", sums if traced is None else traced.shape_of(sums), d)
    if 0 in (*sums, x.shape[-1]):
        raise ShapeError(
            f"{plan.call}.explain: A has shape {x.shape} and B has shape {y.shape}; "
            "explain does not support empty matrices"
        )
    asked, where = plan.asked(batch=bool(batch)), plan.where()
    of = Operands(x, y, z, graph=graph)
    td = plan.tile_description or chosen(of, asked, **where, call=f"{plan.call}.explain", array=array, split=split)
    asked = asked.of_parts() if td.in_parts else asked
    problem = problem_of(asked, sums[-2], sums[-1], x.shape[-1], prod(batch))
    gpu, sms = here()
    matrices = {"a": _lies(x, asked.packed, -1), "b": _lies(y, asked.packed, -2), "out": _lies(z)}
    why = "set by the plan's tile_description" if plan.tile_description is not None else ""
    backend = unmeasured(plan.chip)
    if not why and backend is not None and array:
        why = f"kernels of sm_{backend.chip} do not read pointer arrays"
    elif not why and plan.chip < LATEST.chip and td.kernel is None and plan.opclass == OpcodeClass.TensorOp:
        why = f"kernel_cc={plan.chip} selects kernels with mma.sync"
    elif array and not why and asked != asked.of_parts():
        why = "no kernel splits f32 in pointer arrays into tf32 parts"
    kernel: Configured | None = td.kernel
    if kernel is None:
        operation = plan.construct(td)
        kernel, name = operation.choice or operation.first().configured, operation.name
    else:
        name = kernel.name
    if graph is not None and isinstance(kernel, Choice):
        e = Epilogue(graph=graph)
        kernel = with_epilogue(kernel, e.transposed() if asked.flipped else e)
    planned = Plan(problem, kernel, None if graph is None else Epilogue(graph=graph), asked.flipped)
    if td.in_parts:
        copied = () if fits_results(of, flipped=asked.flipped) else ("out",)
        splitters = splitting(a.layout, b.layout, is_batch(x), is_batch(y))
        planned = planned._replace(splitters=splitters, copied=copied)
        of = of._replace(a=x._replace(shape=(*x.shape[:-1], problem.k)))
    found = explain_plan(plan.call, planned, gpu, sms, matrices, others, why=why, kernel=name)
    if backend is not None:
        parts, work = parts_of(of, split)[0], work_of(Epilogue(graph=graph) if graph is not None else None, d.element)
        if parts > 1:  # Each slice is a matrix of f32 sums.  The kernel that adds them takes time, too.
            work = NO_WORK
            problem = problem._replace(k=-(-problem.k // parts), matrices=problem.matrices * parts, output="f32")
        found = replace(on_chip(found, kernel, problem, work, backend, why), gpu=backend.target)
    return found if split.parts == 1 else replace(found, split=(split.parts, *parts_of(of, split)))


def explained_products(
    plan: MatrixPlan, call: str, A: object, B: object, C: object = None, D: object = None, *,
    problem: Sequence[int] | None = None, others: int = 4, visited: tuple[Traced, Mapping[str, Any]] | None = None,
) -> GemmExplanation:  # fmt: skip
    """Explain which kernel computes equal GEMMs of a plan, and in how many launches.

    ``visited`` is an epilogue with its arguments.
    """
    with_c = 0.0 if C is None else 1.0
    traced = None if visited is None else visited[0]
    found, results = products_of(
        call, plan.kinds, A, B, C, D, alpha=1.0, beta=with_c, problem=problem, on_cpu=None, traced=traced
    )
    if visited is not None:
        found, _ = bind_epilogue(call, found, results, *visited, plan.kinds)
    many = as_batch(found)
    why = apart(plan.operation_for(many, array=True), found)
    explanation = explained(plan, many.a, many.b, others, array=True)
    return replace(explanation, operation=call, launches=(len(found) if why else 1, why))


def _matrix(plan: str, name: str, array: Any, wanted: Type) -> ArrayView:
    """Return the view of an operand; a shape is that of a contiguous array."""
    if isinstance(array, tuple | list) and not isinstance(array, ArrayView):
        shape = tuple(cast("tuple[int, ...]", array))
        if len(shape) not in (2, 3):
            raise ShapeError(f"{plan}.explain: {name} has shape {shape}; it must have rank 2, or 3 for a batch")
        *batch, m, n = shape
        strides = (n, 1) if wanted.layout == "row" else (1, m)
        steps = [m * n] * len(batch)
        return ArrayView(0, shape, (*steps, *strides), wanted.element, -1, "numpy", None)
    return laid(read(f"{plan}.explain", name, array), wanted.layout, f"{plan}.explain: {name}")


def _lies(view: ArrayView, packed: int = 1, along: int = -1) -> Matrix:
    """Return the layout of a matrix. An element of its array is ``packed`` numbers along K, mode ``along``."""
    item, shape = SIZES[view.dtype], list(view.shape)
    shape[along] *= packed
    view = view._replace(shape=tuple(shape))
    (*batch, m, n), (*step, row, column) = view.shape, view.strides
    return Matrix((m, n), (row, column), item, view.pointer % 16, prod(batch), sum(step) if batch else 0)


@dataclass(frozen=True, kw_only=True)
class ListExplanation(Explanation):
    """The kernel of GEMMs over lists."""

    products: int  # number of GEMMs
    smallest: tuple[int, int, int]  # minimum of each of M, N and K
    largest: tuple[int, int, int]  # maximum of each of M, N and K
    copied_at_once: tuple[int, ...]  # bytes per copy, one launch each; 1 for element-by-element copies
    tiles: int  # tiles of all GEMMs
    waves: float  # tiles per multiprocessor
    schedule: str  # scheduler of tiles, "host" or "device"
    launches: int  # launches, including the one that schedules tiles

    def _title(self) -> str:
        m, n, k = (f"{x}" if x == y else f"{x} to {y}" for x, y in zip(self.smallest, self.largest))
        return f"{self.operation} on {self.gpu}: {self.products} products, M {m}, N {n}, K {k}"

    def _layout(self) -> Iterator[Line]:
        schedulers = {
            "host": "the host, longest K first",
            "device": "the kernel, from prefix sums of tiles that a first one computes",
        }
        size = ", others ".join([f"{x} bytes at once" if x > 1 else "element by element" for x in self.copied_at_once])
        yield "copies", size or "none"
        yield "tiles", f"{self.tiles}, {self.waves:.3g} for each multiprocessor, found by {schedulers[self.schedule]}"
        yield "launches", f"{self.launches}"


def explained_list(operation: str, plan: GroupedGemm, found: Sequence[Operands]) -> ListExplanation:
    """Explain how a plan computes GEMMs over lists."""
    made = plan.operation_for(found)
    flipped = made.flipped
    extents = [extents_of(x) for x in found]
    sizes: list[Any] = list(zip(*extents))
    tiles = tiles_of([extents_of(x, flipped=flipped) for x in found], made.listed.tile)
    each = sizes_of(operation, made.listed, found, flipped=flipped, most=made.at_once)
    at_once = tuple(sorted({*each} - {0}, reverse=True))
    gpu, sms = here()
    host = made.precompute_mode is SchedulerMode.Host
    total = int(tiles.sum())
    why = "predicted to be the fastest pointer-array kernel"
    if plan.tile_description is not None:
        why = "set by the plan's tile_description"
    name = made.variant(size=(*at_once, 16)[0]).name
    return ListExplanation(
        operation=operation, gpu=gpu, kernel=name, why=why, flops=sum([2 * m * n * k for m, n, k in extents]),
        products=len(found), smallest=(min(sizes[0]), min(sizes[1]), min(sizes[2])),
        largest=(max(sizes[0]), max(sizes[1]), max(sizes[2])), copied_at_once=at_once, tiles=total, waves=total / sms,
        schedule=str(made.precompute_mode), launches=len(at_once) * (1 if host else 2),
    )  # fmt: skip


def explained_conv(plan: Conv2d, A: Array, B: Array, D: Array, how: ConvOptions, split: Split) -> ConvExplanation:
    """Return the kernel of a plan for arrays or shapes, with its predicted time."""
    turn = channels_first("Conv2d.explain", how.data_format, 2, "")
    x, y = (_view(n, t, kind.element, turn) for n, t, kind in zip("AB", (A, B), (plan.kinds.a, plan.kinds.b)))
    shape = None if D is None else last(tuple(D.shape), turn)
    g = planned_geometry("Conv2d.explain", plan.kind, (x.shape, y.shape), shape, how)
    z = _view("D", g.output, plan.kinds.d.element, False)
    rows = z._replace(shape=g.matrix, strides=(g.matrix[1], 1))
    td, algorithm = plan.way_of(g, Operands(x, y, rows))
    operation = plan.operation_of(td, algorithm)
    operation.check_problem("Conv2d.explain", g)
    asked = plan.asked_of(g, algorithm)
    gpu, sms = here()
    config = operation.config(g) if operation.im2col else None
    time = 0.0
    if config is not None and asked is not None and plan.tile_description is None:
        found = chosen_with_time(asked, gpu, sms)
        time = 0.0 if found is None else found[0]
    name = config.name if config is not None else operation.product().name
    why = f"{algorithm}, " + ("set by the plan" if plan.iterator_algorithm else "chosen for its operands")
    why += ", its tile_description" * (plan.tile_description is not None)
    copies: tuple[tuple[str, int], ...] = ()
    if config is None and not g.is_product:
        image = y if g.kind == WGRAD else x
        size = (g.matrix[0] if g.kind == "dgrad" else prod(g.result[:-1])) * g.taps * image.shape[-1]
        copies = (("columns", size * SIZES[image.dtype]),)
    if split.parts > 1:
        parts = slices_of(operation, g, split)
        why += f"; {parts} split-K slices" + (f" ({split.parts} requested)" if parts < split.parts else "")
    moved = sum(prod(v.shape) * SIZES[v.dtype] for v in (x, y, z))
    element = plan.kinds.a.element
    return ConvExplanation(
        operation=f"Conv2d {plan.kind}", gpu=gpu, kernel=name, why=why, microseconds=time, copies=copies, flops=g.flops,
        bytes=moved, kernels=() if config is None else (config,), geometry=g, element=element,
        output=plan.kinds.d.element, config=config,
    )  # fmt: skip


def _view(name: str, array: Any, element: str, turn: bool) -> ArrayView:
    """Return a view of an operand, or of a contiguous array of a shape."""
    if isinstance(array, tuple | list) and not isinstance(array, ArrayView):
        shape = last(tuple(array), turn)
        element = "f32" if element == "tf32" else element
        return ArrayView(0, shape, strides_of(shape), element, -1, "numpy", None)
    return views_last(read("Conv2d.explain", name, array), turn)
