"""Explanation of the kernel choice of a planned GEMM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, cast

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.op.arrays.dtypes import SIZES
from cute_dialect.op.arrays.operand_views import Matrix
from cute_dialect.op.epilogue.tracing import Traced
from cute_dialect.op.execute.kernels import splitting
from cute_dialect.op.execute.launch_sequence import ALONE, Split, parts_of
from cute_dialect.op.execute.pointer_array_launch import apart
from cute_dialect.op.explanations.gemm import GemmExplanation, explain_dispatch
from cute_dialect.op.plans.gemm_lists import as_batch, is_several, products_of
from cute_dialect.op.plans.gemm_lists import with_epilogue as bind_epilogue
from cute_dialect.op.plans.tile_candidates import chosen, problem_of
from cute_dialect.op.problems.operands import Operands, Type, fits_results, laid, product_shape, read
from cute_dialect.op.pycutlass.arguments import example_graph
from cute_dialect.op.select.gemm_dispatch import GemmDispatch, here, with_epilogue
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.plans.matrix_plan import MatrixPlan
    from cute_dialect.op.signature_types import Array

__all__ = ["explained", "explained_products"]


def explained(
    plan: MatrixPlan, A: Array, B: Array, others: int = 4, split: Split = ALONE, *, array: bool = False
) -> GemmExplanation:  # fmt: skip
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
    asked, where = plan.asked(batch=bool(batch)), plan.where()
    of = Operands(x, y, z, graph=graph)
    td = plan.tile_description or chosen(of, asked, **where, array=array, split=split)
    asked = asked.of_parts() if td.in_parts else asked
    problem = problem_of(asked, sums[-2], sums[-1], x.shape[-1], prod(batch))
    gpu, sms = here()
    matrices = {"a": _lies(x), "b": _lies(y), "out": _lies(z)}
    why = "set by the plan's tile_description" if plan.tile_description is not None else ""
    if array and not why and asked != asked.of_parts():
        why = "no kernel splits f32 in pointer arrays into tf32 parts"
    choice = td.kernel
    if choice is None:
        operation = plan.construct(td)
        choice = operation.choice
        name = operation.name
    else:
        name = choice.name
    if graph is not None and choice is not None:
        e = Epilogue(graph=graph)
        choice = with_epilogue(choice, e.transposed() if asked.flipped else e)
    way = GemmDispatch(problem, choice)
    if td.in_parts:
        copied = () if fits_results(of, flipped=asked.flipped) else ("out",)
        batches = [len(v.shape) == 3 and v.shape[0] > 1 and v.strides[0] != 0 for v in (x, y)]
        way = way._replace(parts=splitting(a.layout, b.layout, *batches), copied=copied)
        of = of._replace(a=x._replace(shape=(*x.shape[:-1], problem.k)))
    found = explain_dispatch(plan.call, way, gpu, sms, matrices, others, why=why, kernel=name)
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
        *batch, m, n = shape
        strides = (n, 1) if wanted.layout == "row" else (1, m)
        steps = [m * n] * len(batch)
        return ArrayView(0, shape, (*steps, *strides), wanted.element, -1, "numpy", None)
    return laid(read(f"{plan}.explain", name, array), wanted.layout, f"{plan}.explain: {name}")


def _lies(view: ArrayView) -> Matrix:
    item = SIZES[view.dtype]
    (*batch, m, n), (*step, row, column) = view.shape, view.strides
    return Matrix((m, n), (row, column), item, view.pointer % 16, prod(batch), sum(step) if batch else 0)
