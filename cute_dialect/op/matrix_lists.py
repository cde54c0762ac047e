"""Equal products of matrices that lie anywhere: :func:`mm_array`."""

# Arrays are of any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from cute_dialect.op.dtypes import arithmetic_of, both, check_types, element_name, result_of, tf32_allowed
from cute_dialect.op.elements import layout_name
from cute_dialect.op.errors import DtypeError, LayoutError, OpError, ShapeError, UnsupportedError
from cute_dialect.op.plans.arguments import on_the_cpu
from cute_dialect.op.plans.arrays_of import as_batch, explained_products, products_of
from cute_dialect.op.plans.functors import number
from cute_dialect.op.plans.plan import Gemm
from cute_dialect.op.plans.planned import found_type, read
from cute_dialect.op.plans.steps import Split
from cute_dialect.op.plans.together import Matrices
from cute_dialect.op.product import Interpreted

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.kernels.gemm.epilogue import Hook
    from cute_dialect.op.choosing.report import Explanation
    from cute_dialect.runtime.launch import CallOptions

__all__ = ["explained_array", "mm_array"]

_MATH = {
    "3xtf32": "multiply_add_fast_f32", "fast_f16": "multiply_add_fast_f16", "fast_bf16": "multiply_add_fast_bf16",
}  # fmt: skip


class _Kind(NamedTuple):
    """What a plan is made of: elements and layouts of A, B and D, sums, how is multiplied, what becomes of the sums."""

    elements: tuple[str, str, str]
    layouts: tuple[str, str, str]
    accumulator: str | None
    arithmetic: str
    activation: str
    hook: Hook | None


def mm_array(
    As: Any,
    Bs: Any,
    outs: Any = None,
    *,
    Cs: Any = None,
    shape: Sequence[int] | None = None,
    element: object = None,
    layouts: Sequence[object] = ("row", "row", "row"),
    alpha: float = 1.0,
    beta: float = 1.0,
    bias: Any = None,
    activation: str = "",
    hook: Hook | None = None,
    dtype: object = None,
    math: str = "default",
    accumulator: object = None,
    split_k: object = None,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> list[Any]:
    """Return ``activation(alpha * A @ B + beta * C + bias)`` of each A of ``As`` with the B of ``Bs`` in its place:
    equal products, of matrices that lie anywhere, by one launch (:func:`cute_dialect.op.explain` says where by more).

    ``As``, ``Bs``, ``outs``, ``Cs``: lists of arrays, (M, K), (K, N), (M, N); the same array may stand in several
    places of ``As`` and ``Bs``; or addresses, lists or arrays of i64: then ``shape`` says (M, N, K), ``element`` what A
    and B are of, ``dtype`` what D is of, ``layouts`` how A, B and D lie, without gaps, and ``outs`` must be given.
    Addresses in an array on a GPU are fetched, for which the call waits.  ``Cs`` are of the type and layout of D.
    ``alpha``, ``beta``, ``bias`` ((N,) or (M, 1), one for all), ``activation``, ``hook``, ``dtype``, ``math``,
    ``accumulator``: as of :func:`~cute_dialect.op.gemm.mm`; ``split_k``: as of :meth:`Gemm.run
    <cute_dialect.op.plans.plan.Gemm.run>`.  Matrices are not copied, but numpy arrays for a GPU.

    >>> import numpy as np
    >>> [d[0, 0] for d in mm_array([np.ones((8, 8), "f2")] * 2, [np.eye(8, dtype="f2")] * 2, device="cpu")]
    [np.float16(1.0), np.float16(1.0)]

    Raises subclasses of OpError before anything is compiled or written.
    """
    tell = run.pop("report", None)
    options = cast("CallOptions", dict(run) | ({} if device is None else {"device": device}))
    given = _listed(As, Bs, outs, Cs)
    plan, problem = _plan(given, shape, element, layouts, activation, hook, dtype, math, accumulator)
    found, results = products_of(
        "mm_array", plan.kinds, *given, alpha=number("alpha", alpha),
        beta=0.0 if Cs is None else number("beta", beta), bias=bias, problem=problem, on_cpu=on_the_cpu(options),
    )  # fmt: skip
    operation = plan.operation_for(as_batch(found))
    done = Matrices(operation, found, results, stream, options, Split.of(split_k), "mm_array")
    report = done.launch()
    if tell is not None and report is not None:
        tell(report)
    if found[0].d.device < 0:
        done.sync()
    return list(done.D) if outs is None else outs


def explained_array(As: Any, Bs: Any, others: int = 4, **call: Any) -> Explanation:
    """Return how :func:`mm_array` computes a call, and by how many launches; ``call``: its arguments by name."""
    given = _listed(As, Bs, call.get("outs"), call.get("Cs"))
    plan, problem = _plan(
        given, call.get("shape"), call.get("element"), call.get("layouts", ("row",) * 3), call.get("activation", ""),
        call.get("hook"), call.get("dtype"), call.get("math", "default"), call.get("accumulator"),
    )  # fmt: skip
    return explained_products(plan, "mm_array", *given, problem=problem, others=others)


def _listed(As: Any, Bs: Any, outs: Any, Cs: Any) -> tuple[Any, Any, Any, Any]:
    """Return A, B, C and D as lists, of arrays or of addresses.  Raises ShapeError, DtypeError, UnsupportedError."""
    found: list[Any] = []
    for name, x in (("As", As), ("Bs", Bs), ("Cs", Cs), ("outs", outs)):
        if x is None:
            if name in ("As", "Bs"):
                raise DtypeError(f"mm_array: expected {name}, a list of arrays or addresses, got None")
            found.append(None)
            continue
        if not isinstance(x, list | tuple):
            kind = element_name(x.dtype) if "int64" not in str(getattr(x, "dtype", "")) else "i64"
            if kind != "i64" or len(x.shape) != 1:
                raise DtypeError(f"mm_array: expected {name} as a list of arrays, or (L,) addresses of i64, got {kind}")
            x = x.tolist()
        found.append(list(x))
    count = len(found[0])
    for name, x in zip(("As", "Bs", "Cs", "outs"), found):
        if x is not None and len(x) != count:
            raise ShapeError(f"mm_array: expected as many {name} as As ({count}), got {len(x)}")
    if count == 0:
        raise ShapeError("mm_array: expected at least one matrix, got none")
    torch = sys.modules.get("torch")
    if torch is not None and torch.is_grad_enabled():
        for name, x in zip(("As", "Bs", "Cs"), found):
            if any([isinstance(t, torch.Tensor) and t.requires_grad for t in x or ()]):
                raise UnsupportedError(f"mm_array: expected {name} that get no gradients: bmm has them")
    return found[0], found[1], found[2], found[3]


def _plan(
    given: tuple[Any, Any, Any, Any], shape: Sequence[int] | None, element: object, layouts: Sequence[object],
    activation: str, hook: Hook | None, dtype: object, math: str, accumulator: object,
) -> tuple[Gemm, Sequence[int] | None]:  # fmt: skip
    """Return the plan of a call, and (M, N, K) where operands are addresses.  Raises OpError."""
    As, Bs, _, outs = given
    addresses = [name for name, x in zip("ABCD", given) if x is not None and isinstance(x[0], int)]
    if addresses and (shape is None or element is None):
        raise ShapeError(f"mm_array: expected shape=(M, N, K) and element, as {addresses[0]} are addresses")
    if addresses and outs is None:
        raise ShapeError("mm_array: expected outs, as A are addresses")
    kinds: list[tuple[str, str]] = []
    wanted = None if dtype is None else element_name(dtype)
    for name, x, layout in (("A", As, layouts[0]), ("B", Bs, layouts[1]), ("D", outs, layouts[2])):
        if x is not None and not isinstance(x[0], int):
            found = found_type("mm_array", name, read("mm_array", name, x[0]))
            kinds.append((found.element, found.layout))
            continue
        kind = wanted or result_of(kinds[0][0]) if name == "D" else element_name(element)
        kinds.append((kind, layout_name(layout, "mm_array: layouts")))
    (a, of_a), (b, of_b), (d, of_d) = kinds
    kind = both(a, b)
    torch = sys.modules.get("torch")
    of_torch = torch is not None and isinstance(As[0], torch.Tensor)
    try:
        allowed = kind == "f32" and math == "default" and of_torch and tf32_allowed()
        arithmetic = arithmetic_of(kind, math, accumulator, allowed)
        check_types(kind, d, arithmetic)
    except OpError as e:
        raise type(e)(f"mm_array: {e}") from None
    if math == "promote":
        raise UnsupportedError("mm_array: there is no kernel of two-level sums of matrices that lie anywhere yet")
    sums = None if accumulator is None else element_name(accumulator)
    plan = _made(_Kind((a, b, d), (of_a, of_b, of_d), sums, arithmetic or _MATH.get(math, ""), activation, hook))
    return plan, tuple(shape) if addresses and shape is not None else None


@lru_cache(maxsize=256)
def _made(kind: _Kind) -> Gemm:
    """Return the plan for such operands; of kernels without wgmma where that does not read them where they are."""
    names = {f"layout_{n}": layout for n, layout in zip("ABD", kind.layouts)}
    a, b, d = kind.elements
    if kind.arithmetic == "tf32":
        a = b = "tf32"
    sums = kind.accumulator
    given: dict[str, Any] = {"element_A": a, "element_B": b, "element_C": d, "element_D": d, **names}
    given["layout_C"] = kind.layouts[2]
    operation = _MATH.get(kind.arithmetic, kind.arithmetic)
    try:
        plan = Gemm(**given, element_accumulator=sums)
    except LayoutError:
        plan = Gemm(**given, element_accumulator=sums, kernel_cc=80)
    if operation.startswith("multiply_add"):
        plan.math_operation = operation
    plan.activation = kind.activation
    plan.epilogue_visitor = kind.hook
    return plan
