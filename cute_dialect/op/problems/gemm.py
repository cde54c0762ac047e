"""GEMM problems: the arguments of ``mm``, ``bmm`` and ``scaled_mm`` without memory, and their checks.

A problem is hashable.  Equal problems pass the same checks and have the same plan, so both are cached
(:func:`check_gemm`, :func:`cute_dialect.op.select.gemm_dispatch.make_plan`).  Only checks of addresses are left for a
call: :func:`~cute_dialect.op.problems.operands.check_overlap`.

>>> a, b = (ArrayView(0, shape, (shape[1], 1), "f16", -1, "numpy", None) for shape in ((8, 64), (64, 32)))
>>> found = check_gemm(GemmProblem.of("mm", 2, {"a": a, "b": b}, None, LinearCombination(), tf32=False))
>>> found.shape, found.result
((8, 32), 'f16')
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.op.arrays.dtypes import OUTPUTS, both, checked_arithmetic, element_name, listed, result_of
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.errors import DtypeError, LayoutError, ShapeError
from cute_dialect.op.problems.operands import (
    Kinds,
    Operands,
    as_planned,
    bias_mode,
    check_activation,
    check_addends,
    check_one_device,
    check_overlap,
    check_product,
    check_result,
    laid,
    new_like,
    of_shape,
    product_shape,
    read,
)
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.epilogue.tracing import Traced

BIASES = tuple([x for x in OUTPUTS.values() if x != "f64"])
"""Types of biases; an f64 result also has f64 biases."""


_GIVEN: Any = "an array"
"""Placeholder of an array in the cache key of a problem."""


class GemmProblem(NamedTuple):
    """A GEMM as its caller specifies it, without memory."""

    call: str  # name of the function, or of the plan's method
    rank: int | None  # 2 for matrices, 3 for a batch, None for either
    # a, b, and the given ones of out, c, bias, scale_a and scale_b; of a plan A, B, C, D and bias
    operands: tuple[tuple[str, ArrayView], ...]
    dtype: str | None  # requested type of the result
    extras: LinearCombination  # with a placeholder for each of its arrays
    tf32: bool = False  # the default arithmetic of f32 is tf32
    kinds: Kinds | None = None  # types and layouts that a plan needs

    @classmethod
    def of(
        cls, call: str, rank: int, views: Mapping[str, ArrayView], dtype: object, extras: LinearCombination, *,
        tf32: bool,
    ) -> GemmProblem:  # fmt: skip
        """Return the problem of a call."""
        wanted = None if dtype is None else element_name(dtype)
        c, bias = (None if x is None else _GIVEN for x in (extras.c, extras.bias))
        return cls(call, rank, without_memory(views), wanted, extras._replace(c=c, bias=bias), tf32)


class CheckedGemm(NamedTuple):
    """The result of :func:`check_gemm`."""

    sums: tuple[int, ...]  # shape of the accumulator
    shape: tuple[int, ...]  # shape of the result
    operands: str  # type of the operands, as returned by :func:`cute_dialect.op.arrays.dtypes.both`
    result: str  # type of the result
    arithmetic: str  # see :func:`cute_dialect.op.arrays.dtypes.arithmetic_of`
    # The epilogue of ``activation(alpha * a @ b + beta * c + bias)``; None for a plain GEMM.  Without terms alpha is 1.
    epilogue: Epilogue | None


def without_memory(views: Mapping[str, ArrayView]) -> tuple[tuple[str, ArrayView], ...]:
    """Return views that compare equal if kernels can access their arrays in the same way."""
    return tuple([(n, x._replace(pointer=x.pointer % 16, device=-1, library="", keep=None)) for n, x in views.items()])


def check_gemm(problem: GemmProblem, traced: Traced | None = None) -> CheckedGemm:
    """Check a problem: shapes, types, strides, and the epilogue's arguments.

    Args:
        traced: an epilogue, which determines the shape and the type of the result.

    Raises subclasses of OpError.
    """
    if traced is None:
        try:
            return _checked(problem)
        except TypeError:  # An argument that cannot be hashed; its check reports it.
            return _check(problem, None)
    return _check(problem, traced)


def _check(problem: GemmProblem, traced: Traced | None) -> CheckedGemm:
    call, rank, operands, dtype, extras, tf32, _ = problem
    assert rank is not None
    views = dict(operands)
    a, b = views["a"], views["b"]
    sums = check_product(call, rank, a, b)
    shape = sums if traced is None else traced.shape_of(sums)
    made = "" if traced is None else traced.graph.outputs[0].element
    result = views["out"].dtype if "out" in views else dtype or made or result_of(a.dtype)
    kind = both(a.dtype, b.dtype)
    arithmetic = checked_arithmetic(call, kind, result, extras.math, extras.accumulator, tf32)
    check_addends(call, views, shape, {"alpha": extras.alpha, "beta": extras.beta})
    check_activation(call, extras.activation, extras.hook)
    if "out" in views:
        check_result(call, views["out"], shape, dtype, arranged=traced is not None and "D" in traced.views)
    if extras.alpha == 0.0 or a.shape[-1] == 0:
        extras = extras._replace(alpha=1.0)
    epilogue = None
    if not extras.plain:
        bias = (None, "") if "bias" not in views else (tuple(views["bias"].shape), views["bias"].dtype)
        epilogue = epilogue_of(call, extras, shape[-2], shape[-1], *bias, result)
    return CheckedGemm(sums, shape, kind, result, arithmetic, epilogue)


@lru_cache(maxsize=4096)
def _checked(problem: GemmProblem) -> CheckedGemm:
    return _check(problem, None)


def epilogue_of(
    call: str, extras: LinearCombination, m: int, n: int, bias: tuple[int, ...] | None, bias_type: str, result: str = ""
) -> Epilogue:
    """Return the epilogue of a kernel for an (m, n) result.

    Args:
        bias: shape of the bias.
        bias_type: element of the bias.
        result: element of the result.

    Raises ShapeError, DtypeError.
    """
    none = extras.c is None or extras.beta == 0.0
    if bias is not None and bias_type not in BIASES and bias_type != result:
        raise DtypeError(f"{call}: bias has dtype {bias_type}; pass a bias of {listed(BIASES)}")
    return Epilogue(
        alpha=1.0 if extras.alpha == 1.0 else "arg",
        beta=0.0 if none else 1.0 if extras.beta == 1.0 else "arg",
        bias="" if bias is None else bias_mode(call, bias, m, n),
        bias_type="f32" if bias is None else bias_type,
        activation=extras.activation,
        hook=extras.hook,
    )


# --------------------------------------------------------------------------------------------------------------- plans


class CheckedPlan(NamedTuple):
    """The result of :func:`check_plan`."""

    shape: tuple[int, ...]  # shape of D
    operands: tuple[tuple[str, ArrayView], ...]  # those of the problem, in the planned layouts
    along: str  # index of the bias, "n" or "m"; "" without a bias


ShapeOf = Callable[[tuple[int, ...]], tuple[int, ...]]
"""Returns the shape of D for that of the accumulator."""


def check_plan(problem: GemmProblem, shape_of: ShapeOf | None = None) -> CheckedPlan:
    """Check the problem of a plan: shapes, and the planned types and layouts.

    Args:
        shape_of: for an epilogue that changes the shape.

    Raises subclasses of OpError.
    """
    return _checked_plan(problem) if shape_of is None else _check_plan(problem, shape_of)


def _check_plan(problem: GemmProblem, shape_of: ShapeOf | None = None) -> CheckedPlan:
    call, kinds, views, beta = problem.call, problem.kinds, dict(problem.operands), problem.extras.beta
    assert kinds is not None
    shape = product_shape(call, problem.rank, views["A"], views["B"], ("A", "B"))
    m, n = shape[-2:]
    found = {name: as_planned(call, name, views[name], kind) for name, kind in (("A", kinds.a), ("B", kinds.b))}
    if beta != 0.0 and (kinds.c is None or "C" not in views):
        raise ShapeError(f"{call}: beta is {beta}, but C is missing; pass C or beta=0")
    shape = shape if shape_of is None else shape_of(shape)
    for name, kind in (("D", kinds.d), ("C", kinds.c)):
        if kind is None or name not in views:
            continue
        view = of_shape(call, name, views[name], shape, kind.layout, "")
        if view.shape != shape:
            raise ShapeError(f"{call}: {name} has shape {view.shape}; it must have {shape}")
        found[name] = as_planned(call, name, view, kind)
    along = ""
    if "bias" in views:
        bias = views["bias"]
        along = bias_mode(call, bias.shape, m, n)
        extent, stride = (n, bias.strides[-1]) if along == "n" else (m, bias.strides[0])
        if stride != 1 and extent > 1:
            raise LayoutError(f"{call}: bias has strides {bias.strides}; it must be contiguous")
        found["bias"] = bias._replace(shape=(extent,), strides=(1,))
    return CheckedPlan(shape, tuple(found.items()), along)


_checked_plan = lru_cache(maxsize=4096)(_check_plan)


def planned_operands(
    call: str, kinds: Kinds, a: object, b: object, c: object = None, d: object = None, *, alpha: float = 1.0,
    beta: float = 0.0, bias: object = None, problem: Sequence[int] | None = None, batch: int = 0,
    on_cpu: bool | None = False, shape_of: ShapeOf | None = None,
) -> tuple[Operands, Any]:  # fmt: skip
    """Return the checked operands of a plan, and D, which is allocated if absent.

    Args:
        problem: (M, N, K), or None to derive it from A and B.
        batch: number of matrices, 0 to derive it from A and B.
        on_cpu: see :func:`~cute_dialect.op.problems.operands.read`.
        shape_of: see :func:`check_plan`.

    Raises:
        OpError: if an operand does not fit.
    """
    source = c if beta != 0.0 and kinds.c is not None else None
    given = {"A": a, "B": b, "C": source, "D": d, "bias": bias}
    views = {name: read(call, name, x, on_cpu) for name, x in given.items() if x is not None or name in "AB"}
    if problem is not None:
        m, n, k = problem
        many = (batch,) if batch else ()
        views["A"] = of_shape(call, "A", views["A"], (*many, m, k), kinds.a.layout, " for this problem_size")
        views["B"] = of_shape(call, "B", views["B"], (*many, k, n), kinds.b.layout, " for this problem_size")
    extras = LinearCombination(beta=beta)
    checked = check_plan(GemmProblem(call, None, without_memory(views), None, extras, kinds=kinds), shape_of)
    planned = {name: views[name]._replace(shape=x.shape, strides=x.strides) for name, x in checked.operands}
    if d is None:
        d = new_like(a, checked.shape, kinds.d)
        planned["D"] = laid(read(call, "D", d, on_cpu), kinds.d.layout, "D")
    check_one_device(call, planned)
    check_overlap(call, planned, "D", "C")
    x = Operands(planned["A"], planned["B"], planned["D"], planned.get("C"), planned.get("bias"), alpha, beta)
    return x._replace(along=checked.along), d
