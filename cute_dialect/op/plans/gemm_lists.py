"""Plans that are called with Python lists: GEMMs of equal shapes, computed by one launch if a kernel supports it.

plan.run([a1, a2], [b1, b2], D=[d1, d2])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from cute_dialect.op.epilogue.bind import Bound, bound, described, refuse_arranged
from cute_dialect.op.epilogue.tracing import FakeTensor, Traced
from cute_dialect.op.errors import LayoutError, ShapeError
from cute_dialect.op.execute.arguments import on_the_cpu
from cute_dialect.op.execute.launch_sequence import Split
from cute_dialect.op.execute.pointer_array_launch import PointerArrayArguments
from cute_dialect.op.problems.gemm import planned_operands
from cute_dialect.op.problems.operands import Kinds, Operands, Type, new_like
from cute_dialect.op.pycutlass.arguments import each_matrix
from cute_dialect.op.select.descriptions import GemmCoord
from cute_dialect.runtime.arrays import ArrayView, view_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.plans.gemm import Gemm
    from cute_dialect.runtime.launch import CallOptions

__all__ = ["as_batch", "is_several", "matrices_of", "products_of", "with_epilogue"]


def is_several(array: object) -> bool:
    """Return True if an operand is a Python list of arrays."""
    if not isinstance(array, list | tuple) or isinstance(array, ArrayView) or not array:
        return False
    kinds = ("shape", "__dlpack__", "__cuda_array_interface__")
    return all([any([hasattr(x, kind) for kind in kinds]) for x in cast("list[object]", array)])


def products_of(
    call: str, kinds: Kinds, A: object, B: object, C: object, D: object, *, alpha: float, beta: float,
    bias: object = None, problem: Sequence[int] | None = None, on_cpu: bool | None = False,
    traced: Traced | None = None,
) -> tuple[list[Operands], list[Any]]:  # fmt: skip
    """Return the checked operands of equal GEMMs, and their results, which are allocated if absent.

    Args:
        A, B, C, D: lists of arrays or of addresses; addresses may also be an i64 array, and need ``problem``.
        problem: (M, N, K).
        traced: an epilogue, which determines the shape of the results.

    Raises:
        OpError: if an operand does not fit.
    """

    def shape_of(sums: tuple[int, ...]) -> tuple[int, ...]:
        return sums if traced is None else traced.shape_of((len(cast("Sequence[object]", A)), *sums))[1:]

    count = len(cast("Sequence[object]", A))
    size = None if problem is None else GemmCoord(*problem)
    given = [each_matrix(call, n, x, count, size, kinds) for n, x in zip("ABCD", (A, B, C, D))]
    found: list[Operands] = []
    results: list[Any] = []
    for a, b, c, d in zip(*given):
        x, made = planned_operands(
            call, kinds, a, b, c, d, alpha=alpha, beta=beta, bias=bias, problem=problem, on_cpu=on_cpu,
            shape_of=shape_of,
        )  # fmt: skip
        if len(x.d.shape) != 2:
            raise ShapeError(f"{call}: a list must hold matrices, got a batch of shape {x.d.shape}")
        found.append(x)
        results.append(made)
    first = found[0]
    for i, x in enumerate(found):
        if (x.d.shape, x.a.shape) != (first.d.shape, first.a.shape):
            sizes = [(*y.d.shape, y.a.shape[1]) for y in (first, x)]
            raise ShapeError(
                f"{call}: (M, N, K) is {sizes[1]} at index {i}, but {sizes[0]} at index 0; all must be equal"
            )
    return found, results


def with_epilogue(
    call: str, found: Sequence[Operands], results: Sequence[Any], traced: Traced, args: Mapping[str, Any], kinds: Kinds
) -> tuple[list[Operands], Bound]:  # fmt: skip
    """Bind a traced epilogue to equal GEMMs; its arrays are those of a batch of them.

    Results other than D are allocated if absent.  Raises OpError.
    """
    first, like = found[0], results[0]
    sums = (len(found), first.a.shape[0], first.b.shape[1])
    if traced.views:
        refuse_arranged(call, traced)
    if (traced.graph.paired or traced.graph.whole_rows) and kinds.d.layout == "column":
        raise LayoutError(f"{call}: outs is column-major; pairs() and whole_rows=True need row-major results")
    shape = traced.shape_of(sums)
    d: Any = described(FakeTensor(kinds.d.element, shape, kinds.d.layout))
    if hasattr(like, "expand"):
        d = like.expand(*shape)
    elif type(like).__module__ == "numpy":
        import numpy as np

        d = np.broadcast_to(like, shape)

    def another(shape: tuple[int, ...], element: str) -> Any:
        return new_like(like, shape, Type(element or kinds.d.element, "row"))

    made = bound(traced, args, d, sums, another)
    behind = tuple([view_of(t) if hasattr(t, "shape") else t for t in made.operands])
    for i, x in enumerate(found):
        factors = {"A": x.a, "B": x.b} if i else {"A": x.a, "B": x.b, "D": x.d}
        made.check_memory(call, x.d, {f"{n} of matrix {i}": v for n, v in factors.items()})
    more = {"graph": made.graph, "behind": behind, "reduced": tuple(made.reduced)}
    return [x._replace(**more) for x in found], made


def as_batch(found: Sequence[Operands]) -> Operands:
    """Return a batch with the alignment of GEMMs at separate addresses, to choose a kernel.  It must not be read."""
    made: dict[str, ArrayView | None] = {}
    for name in "abcd":
        views: list[ArrayView] = [v for v in (getattr(x, name) for x in found) if v is not None]
        if not views:
            continue
        pointer, (m, n), (row, column) = 0, views[0].shape, views[0].strides
        for v in views:
            pointer |= v.pointer  # The result is aligned like the least aligned matrix.
            row, column = (_least_aligned(a, b) for a, b in zip((row, column), v.strides))
        step = -(-max(m * row, n * column, 1) // 16) * 16
        made[name] = views[0]._replace(
            pointer=pointer, shape=(len(found), m, n), strides=(step, row, column), keep=None
        )  # fmt: skip
    return found[0]._replace(**made)


def _least_aligned(a: int, b: int) -> int:
    """Return the stride that is divisible by the smaller power of two."""
    return a if (a & -a or 1 << 62) <= (b & -b or 1 << 62) else b


def matrices_of(
    plan: Gemm, call: str, A: object, B: object, C: object, D: object, alpha: float, beta: float, bias: object,
    stream: object, options: CallOptions, split: Split, problem: Sequence[int] | None = None,
) -> PointerArrayArguments:  # fmt: skip
    """Return the arguments of equal GEMMs of a plan, whose operands are lists.  Raises OpError."""
    found, results = products_of(
        call, plan.kinds, A, B, C, D, alpha=alpha, beta=beta, bias=bias, problem=problem, on_cpu=on_the_cpu(options)
    )
    several = len(found) > 1
    operation = plan.operation_for(as_batch(found) if several else found[0], array=several)
    return PointerArrayArguments(operation, found, results, stream, options, split, call)
