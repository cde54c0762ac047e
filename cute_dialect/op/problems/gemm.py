"""GEMM problems: the arguments of ``mm``, ``bmm`` and ``scaled_mm`` without memory, and their checks.

A problem is hashable.  Equal problems pass the same checks and have the same plan, so both are cached
(:func:`check_gemm`, :func:`cute_dialect.op.select.gemm_dispatch.plan_gemm`).  Only checks of addresses are left for a
call: :func:`~cute_dialect.op.problems.operands.check_overlap`.

>>> a, b = (ArrayView(0, shape, (shape[1], 1), "f16", -1, "numpy", None) for shape in ((8, 64), (64, 32)))
>>> found = check_gemm(GemmProblem.of("mm", 2, {"a": a, "b": b}, None, LinearCombination(), tf32=False))
>>> found.shape, found.result
((8, 32), 'f16')
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.op.arrays.dtypes import OUTPUTS, both, checked_arithmetic, element_name, listed, result_of
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.errors import DtypeError
from cute_dialect.op.problems.operands import bias_mode, check_activation, check_addends, check_product, check_result
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.epilogue.tracing import Traced

__all__ = ["CheckedGemm", "GemmProblem", "check_gemm", "epilogue_of", "without_memory"]

BIASES = tuple([x for x in OUTPUTS.values() if x != "f64"])
"""Types of biases; an f64 result also has f64 biases."""


_GIVEN: Any = "an array"
"""Placeholder of an array in the cache key of a problem."""


class GemmProblem(NamedTuple):
    """A GEMM as its caller specifies it, without memory."""

    call: str  # name of the function
    rank: int  # 2 for matrices, 3 for a batch
    operands: tuple[tuple[str, ArrayView], ...]  # a, b, and the given ones of out, c, bias, scale_a and scale_b
    dtype: str | None  # requested type of the result
    extras: LinearCombination  # with a placeholder for each of its arrays
    tf32: bool  # the default arithmetic of f32 is tf32

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
    call, rank, operands, dtype, extras, tf32 = problem
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
