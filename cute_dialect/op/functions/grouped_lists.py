"""Pointer-array GEMMs of Python lists, each matrix of any size: ``op.grouped_mm([a0, a1], [b0, b1])``."""

# Arrays belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.op.arrays.dtypes import (
    both,
    can_mix,
    checked_arithmetic,
    element_name,
    result_of,
    tf32_allowed,
)
from cute_dialect.op.errors import DtypeError, EpilogueError, OpError, ShapeError, UnsupportedError, named
from cute_dialect.op.execute.arguments import on_the_cpu
from cute_dialect.op.execute.pointer_array_calls import PointerArrayCalls
from cute_dialect.op.explanations.gemm import Explanation
from cute_dialect.op.plans.grouped import GroupedGemm
from cute_dialect.op.plans.grouped_report import ListExplanation, explained_list
from cute_dialect.op.problems.grouped import GroupedArguments
from cute_dialect.op.problems.plan_operands import found_type, read
from cute_dialect.op.pycutlass.functors import number
from cute_dialect.op.pycutlass.grouped_arguments import GroupArguments, numbers_of, problems_of
from cute_dialect.op.select.descriptions import SchedulerMode, TileDescription

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.runtime.arrays import ArrayView

__all__ = ["ListsExplanation", "explained_lists", "is_list", "listed_mm"]

NAME = "grouped_mm"
_MATH = {
    "3xtf32": "multiply_add_fast_f32", "fast_f16": "multiply_add_fast_f16", "fast_bf16": "multiply_add_fast_bf16",
}  # fmt: skip


class _Kind(NamedTuple):
    """The parameters of a plan."""

    elements: tuple[str, str, str]  # of A, B and D
    layouts: tuple[str, str, str]  # of A, B and D
    accumulator: str | None
    math: str
    activation: str
    schedule: str  # SchedulerMode: the host or the device assigns tiles
    tile: TileDescription | None  # the requested tile


def is_list(a: object) -> bool:
    """Return True if an operand is a list of arrays."""
    return isinstance(a, list | tuple)


def listed_mm(
    g: GroupedArguments, device: object = None, stream: object = None, run: Mapping[str, Any] | None = None
) -> list[Any]:
    """Compute the GEMMs of lists, one launch for all whose operands are contiguous along the same modes.

    Raises subclasses of OpError before anything is compiled or written.
    """
    how = _how(g) if device is None and stream is None and not run else None
    torch = sys.modules.get("torch")
    if torch is not None and torch.is_grad_enabled():
        given = [t for x in (g.a, g.b, g.extras.c, g.extras.bias) for t in (x if is_list(x) else [x])]
        if any([isinstance(t, torch.Tensor) and t.requires_grad for t in given]):
            from cute_dialect.op.torch.pointer_arrays import lists_with_gradients  # late: torch

            _check(g)
            return lists_with_gradients(listed_mm, g, device, stream, run)
    if how is not None:
        done = KNOWN.again(g.a, g.b, how)
        if done is not None:
            return done
    others = dict(run or {})
    callback = others.pop("report", None)
    options: Any = others | ({} if device is None else {"device": device})
    results: list[Any] = [None] * len(g.a)
    # Check all GEMMs before the first launch.
    ready = [(which, _arguments(g, kind, which, stream, options)) for kind, which in _kinds(g).items()]
    for which, arguments in ready:
        report = arguments.launch()
        if callback is not None and report is not None:
            callback(report)
        if arguments.found[0].d.device < 0:
            arguments.sync()
        for i, d in zip(which, arguments.D):
            results[i] = d
    if how is not None and len(ready) == 1:
        _remember(g, how, ready[0][1], results)
    return results if g.out is None else g.out


KNOWN = PointerArrayCalls()
"""Cached calls."""


def _how(g: GroupedArguments) -> object:
    """Return the arguments other than operands for a call that can be cached, else None."""
    torch = sys.modules.get("torch")
    if torch is None or not g.a or not is_list(g.b) or not isinstance(g.a[0], torch.Tensor):
        return None
    usual = g._replace(
        a=None, b=None, dtype=None, extras=g.extras._replace(alpha=1.0, activation="", math="default", accumulator=None)
    )  # fmt: skip
    alpha = g.extras.alpha if isinstance(g.extras.alpha, int | float) else 0.0
    by_switch = g.a[0].dtype == torch.float32 and g.extras.math == "default"  # torch's global flag selects tf32 or f32.
    if usual != _USUAL or alpha == 0.0 or by_switch or torch.compiler.is_dynamo_compiling():
        return None
    return alpha, g.extras.activation, g.dtype, g.extras.math, g.extras.accumulator


_USUAL = GroupedArguments(None, None, {})


def _remember(g: GroupedArguments, how: object, done: GroupArguments, results: Sequence[Any]) -> None:
    """Record a call of plain tensors on a GPU."""
    torch: Any = sys.modules["torch"]
    plain = all([type(t) in (torch.Tensor, torch.nn.Parameter) and t.is_cuda for t in (*g.a, *g.b)])
    if not plain or any([t.data_ptr() % 16 for t in results]):
        return
    prepared = done.prepared()
    if prepared is not None:
        table, columns, parts, like, keep = prepared
        KNOWN.remember(g.a, g.b, how, results, table, columns, parts, like, keep)


def _arguments(g: GroupedArguments, kind: _Kind, which: Sequence[int], stream: object, options: Any) -> GroupArguments:
    """Return the checked arguments for the GEMMs at some positions of the lists."""
    on_cpu, plan = on_the_cpu(options), _plan(kind)
    beta = 0.0 if g.extras.c is None else number("beta", g.extras.beta)
    bias: Any = [g.extras.bias[i] for i in which] if is_list(g.extras.bias) else g.extras.bias
    lists = [None if x is None else [x[i] for i in which] for x in (g.a, g.b, g.extras.c, g.out)]
    found, results = problems_of(NAME, plan.kinds, *lists, beta=beta, bias=bias, on_cpu=on_cpu)
    alpha = g.extras.alpha
    if not isinstance(alpha, int | float) and len(which) < len(g.a):
        alpha = numbers_of(NAME, _on_host(alpha), beta, len(g.a), on_cpu).host
        alpha = [alpha[i] for i in which]
    numbers = numbers_of(NAME, alpha, beta, len(found), on_cpu)
    with named(NAME, "GroupedGemm"):
        return GroupArguments(plan.operation_for(found), found, results, numbers, stream, options, NAME)


def _on_host(alpha: Any) -> Any:
    """Copy alpha to the host, for several launches.  Raises UnsupportedError."""
    if not hasattr(alpha, "tolist") and hasattr(alpha, "__cuda_array_interface__"):
        raise UnsupportedError(
            f"{NAME}: alpha of type {type(alpha).__name__} has no tolist(), which matrices of different layouts need; "
            "pass a list of numbers"
        )
    return alpha.tolist() if hasattr(alpha, "tolist") and hasattr(alpha, "device") else alpha


def _kinds(g: GroupedArguments) -> dict[_Kind, list[int]]:
    """Return the positions of the GEMMs, grouped by the parameters of their plans.  Raises OpError."""
    _check(g)
    found: dict[_Kind, list[int]] = {}
    columns = [[None] * len(g.a) if x is None else [read(NAME, n, y) for y in x] for n, x in _named(g)]
    usual = [_layout(n, views) for (n, _), views in zip(_named(g), columns)]
    for i, views in enumerate(zip(*columns)):
        found.setdefault(_kind(g, i, views, usual), []).append(i)
    elements = {kind.elements for kind in found}
    if len(elements) > 1:
        one, other = sorted(elements)[:2]
        raise DtypeError(
            f"{NAME}: the lists mix {' and '.join(one[:2])} to {one[2]} with {' and '.join(other[:2])} to {other[2]}; "
            "all GEMMs of a call must have the same dtypes"
        )
    return found


def _check(g: GroupedArguments) -> None:
    """Raise an error for arguments that lists do not support."""
    if g.epilogue is not None or g.args:
        raise EpilogueError(f"{NAME}: epilogue is not supported for lists; use activation, bias and c")
    for name, x in (*g.groups.items(), ("gather", g.gather)):
        if x is not None:
            raise UnsupportedError(f"{NAME}: {name} is not supported for lists, whose matrices have their own sizes")
    if g.rest != "keep":
        raise UnsupportedError(
            f"{NAME}: rest={g.rest!r} is not supported for lists, because all elements of their results are written"
        )
    if g.kernel is not None and not isinstance(g.kernel, TileDescription):
        raise UnsupportedError(f"{NAME}: kernel={g.kernel!r} is not supported for lists; pass a TileDescription")
    others: Sequence[tuple[str, Any]] = (("b", g.b), ("out", g.out), ("c", g.extras.c))
    for name, x in others:
        got = len(x) if isinstance(x, list | tuple) else type(x).__name__
        if got != len(g.a) and (x is not None or name == "b"):
            raise ShapeError(f"{NAME}: {name} must be a list of {len(g.a)} matrices like a, got {got}")
    bias: Any = g.extras.bias
    if is_list(bias) and len(bias) != len(g.a):
        raise ShapeError(f"{NAME}: bias has {len(bias)} elements; pass one array for all, or {len(g.a)}")
    if not g.a:
        raise ShapeError(f"{NAME}: the lists are empty; pass at least one matrix")


def _named(g: GroupedArguments) -> Sequence[tuple[str, Any]]:
    return ("a", g.a), ("b", g.b), ("out", g.out)


def _layout(name: str, views: Sequence[ArrayView | None]) -> str:
    """Return the layout for matrices that suit any, such as a single column: that of the others if they agree, else
    "row".
    """
    found = {found_type(NAME, name, v).layout for v in views if v is not None and not _lies_anyhow(v)}
    return found.pop() if len(found) == 1 else "row"


def _lies_anyhow(view: ArrayView) -> bool:
    return any([n < 2 for n in view.shape])


def _kind(g: GroupedArguments, i: int, views: Sequence[ArrayView | None], usual: Sequence[str]) -> _Kind:
    """Return the plan parameters of one GEMM.  Raises OpError."""
    types = [
        None if v is None else found_type(NAME, n, v)._replace(**({"layout": x} if _lies_anyhow(v) else {}))
        for (n, _), v, x in zip(_named(g), views, usual)
    ]
    of_a, of_b, of_d = types
    assert of_a is not None and of_b is not None
    if not can_mix(of_a.element, of_b.element):
        raise DtypeError(
            f"{NAME}: a[{i}] has dtype {of_a.element} and b[{i}] has {of_b.element}; use the same dtype for both"
        )
    layout = "row" if of_d is None else of_d.layout
    if of_d is not None:
        result = of_d.element
    else:
        result = result_of(of_a.element) if g.dtype is None else element_name(g.dtype)
    kind = both(of_a.element, of_b.element)
    torch = sys.modules.get("torch")
    of_torch = torch is not None and isinstance(g.a[i], torch.Tensor)
    tf32 = of_torch and tf32_allowed()
    arithmetic = checked_arithmetic(NAME, kind, result, g.extras.math, g.extras.accumulator, tf32)
    if arithmetic in ("two", "f16"):
        option = "math='promote'" if arithmetic == "two" else "accumulator of f16"
        raise UnsupportedError(f"{NAME}: {option} is not supported for lists; use the default")
    elements = (of_a.element, of_b.element, result)
    if arithmetic == "tf32":
        elements = ("tf32", "tf32", result)
    # The host knows all sizes. Its tile schedule is cached and needs no extra launch.
    schedule = SchedulerMode.Device if g.schedule == "device" else SchedulerMode.Host
    math = _MATH.get(arithmetic, _MATH.get(g.extras.math, ""))
    return _Kind(elements, (of_a.layout, of_b.layout, layout), None, math, g.extras.activation, schedule, g.kernel)  # type: ignore[arg-type]


@lru_cache(maxsize=256)
def _plan(kind: _Kind) -> GroupedGemm:
    """Return the plan for operands of a kind."""
    a, b, d = kind.elements
    layouts = dict(zip(("layout_A", "layout_B", "layout_D"), kind.layouts))
    try:
        plan = GroupedGemm(
            element_A=a, element_B=b, element_C=d, element_D=d, layout_C=kind.layouts[2],
            precompute_mode=kind.schedule, **layouts,
        )  # fmt: skip
        if kind.math:
            plan.math_operation = kind.math
        plan.activation = kind.activation
        plan.tile_description = kind.tile
    except OpError as e:
        raise type(e)(str(e).replace("GroupedGemm:", f"{NAME}:", 1)) from None
    return plan


@dataclass(frozen=True, kw_only=True)
class ListsExplanation(Explanation):
    """An explanation of GEMMs over lists.  Each part has operands that are contiguous along the same modes."""

    parts: tuple[ListExplanation, ...]
    launches: int

    def __str__(self) -> str:
        return "\n".join(map(str, self.parts))


def explained_lists(g: GroupedArguments) -> ListsExplanation:
    """Explain how the GEMMs of lists are computed.  Raises OpError."""
    found: list[ListExplanation] = []
    for kind, which in _kinds(g).items():
        plan = _plan(kind)
        lists = [[x[i] for i in which] for x in (g.a, g.b)]
        found.append(
            explained_list(NAME, plan, problems_of(NAME, plan.kinds, lists[0], lists[1], None, None, on_cpu=None)[0])
        )
    return ListsExplanation(
        operation=NAME, flops=sum([x.flops for x in found]), parts=tuple(found),
        launches=sum([x.launches for x in found]),
    )  # fmt: skip
