"""Products of any sizes, of matrices that lie anywhere: ``op.grouped_mm([a0, a1], [b0, b1])``."""

# Arrays are of any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.op.dtypes import arithmetic_of, both, can_mix, check_types, element_name, result_of, tf32_allowed
from cute_dialect.op.errors import DtypeError, EpilogueError, OpError, ShapeError, UnsupportedError, named
from cute_dialect.op.grouped.call import Given
from cute_dialect.op.grouped.known_lists import KnownLists
from cute_dialect.op.plans.arguments import on_the_cpu
from cute_dialect.op.plans.describe import SchedulerMode, TileDescription
from cute_dialect.op.plans.functors import number
from cute_dialect.op.plans.grouped_arguments import GroupArguments, numbers_of, problems_of
from cute_dialect.op.plans.grouped_plan import GroupedGemm
from cute_dialect.op.plans.grouped_report import ListExplanation, explained_list
from cute_dialect.op.plans.operands import found_type, read

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.runtime.arrays import ArrayView

__all__ = ["ListsExplanation", "explained_lists", "is_list", "listed_mm"]

NAME = "grouped_mm"
_MATH = {
    "3xtf32": "multiply_add_fast_f32", "fast_f16": "multiply_add_fast_f16", "fast_bf16": "multiply_add_fast_bf16",
}  # fmt: skip


class _Kind(NamedTuple):
    """What a plan is made of: elements and layouts of A, B and D, sums, how is multiplied, the activation, who finds
    the tiles, the tile that is wanted.
    """

    elements: tuple[str, str, str]
    layouts: tuple[str, str, str]
    accumulator: str | None
    math: str
    activation: str
    schedule: str
    tile: TileDescription | None


def is_list(a: object) -> bool:
    """Tell whether an operand is a list of matrices."""
    return isinstance(a, list | tuple)


def listed_mm(
    g: Given, device: object = None, stream: object = None, run: Mapping[str, Any] | None = None
) -> list[Any]:
    """Return the products of lists, one launch for all whose operands lie along the same modes.

    Raises subclasses of OpError before anything is compiled or written.
    """
    how = _how(g) if device is None and stream is None and not run else None
    torch = sys.modules.get("torch")
    if torch is not None and torch.is_grad_enabled():
        given = [t for x in (g.a, g.b, g.c, g.bias) for t in (x if is_list(x) else [x])]
        if any([isinstance(t, torch.Tensor) and t.requires_grad for t in given]):
            from cute_dialect.op.grouped.list_gradients import with_gradients

            _check(g)
            return with_gradients(g, device, stream, run)
    if how is not None:
        done = KNOWN.again(g.a, g.b, how)
        if done is not None:
            return done
    others = dict(run or {})
    tell = others.pop("report", None)
    options: Any = others | ({} if device is None else {"device": device})
    results: list[Any] = [None] * len(g.a)
    # All is checked before anything is launched.
    ready = [(which, _arguments(g, kind, which, stream, options)) for kind, which in _kinds(g).items()]
    for which, arguments in ready:
        report = arguments.launch()
        if tell is not None and report is not None:
            tell(report)
        if arguments.found[0].d.device < 0:
            arguments.sync()
        for i, d in zip(which, arguments.D):
            results[i] = d
    if how is not None and len(ready) == 1:
        _remember(g, how, ready[0][1], results)
    return results if g.out is None else g.out


KNOWN = KnownLists()
"""The calls that were computed."""


def _how(g: Given) -> object:
    """Return what a call says besides its operands, of one that may be remembered; None of others."""
    torch = sys.modules.get("torch")
    if torch is None or not g.a or not is_list(g.b) or not isinstance(g.a[0], torch.Tensor):
        return None
    usual = g._replace(a=None, b=None, activation="", dtype=None, math="default", accumulator=None, alpha=1.0)
    alpha = g.alpha if isinstance(g.alpha, int | float) else 0.0
    by_switch = g.a[0].dtype == torch.float32 and g.math == "default"  # whether that is tf32 may change
    if usual != _USUAL or alpha == 0.0 or by_switch or torch.compiler.is_dynamo_compiling():
        return None
    return alpha, g.activation, g.dtype, g.math, g.accumulator


_USUAL = Given(None, None, {})


def _remember(g: Given, how: object, done: GroupArguments, results: Sequence[Any]) -> None:
    """Remember a call of plain tensors on a GPU."""
    torch: Any = sys.modules["torch"]
    plain = all([type(t) in (torch.Tensor, torch.nn.Parameter) and t.is_cuda for t in (*g.a, *g.b)])
    if not plain or any([t.data_ptr() % 16 for t in results]):
        return
    prepared = done.prepared()
    if prepared is not None:
        table, columns, parts, like, keep = prepared
        KNOWN.remember(g.a, g.b, how, results, table, columns, parts, like, keep)


def _arguments(g: Given, kind: _Kind, which: Sequence[int], stream: object, options: Any) -> GroupArguments:
    """Return the products of some places of the lists, checked."""
    on_cpu, plan = on_the_cpu(options), _plan(kind)
    beta = 0.0 if g.c is None else number("beta", g.beta)
    bias: Any = [g.bias[i] for i in which] if is_list(g.bias) else g.bias
    lists = [None if x is None else [x[i] for i in which] for x in (g.a, g.b, g.c, g.out)]
    found, results = problems_of(NAME, plan.kinds, *lists, beta=beta, bias=bias, on_cpu=on_cpu)
    alpha = g.alpha
    if not isinstance(alpha, int | float) and len(which) < len(g.a):
        alpha = numbers_of(NAME, _on_host(alpha), beta, len(g.a), on_cpu).host
        alpha = [alpha[i] for i in which]
    numbers = numbers_of(NAME, alpha, beta, len(found), on_cpu)
    with named(NAME, "GroupedGemm"):
        return GroupArguments(plan.operation_for(found), found, results, numbers, stream, options, NAME)


def _on_host(alpha: Any) -> Any:
    """Return numbers of several launches, fetched where they are on a GPU.  Raises UnsupportedError."""
    if not hasattr(alpha, "tolist") and hasattr(alpha, "__cuda_array_interface__"):
        raise UnsupportedError(
            f"{NAME}: expected alpha with tolist() where matrices that lie differently take several launches, got "
            f"{type(alpha).__name__}"
        )
    return alpha.tolist() if hasattr(alpha, "tolist") and hasattr(alpha, "device") else alpha


def _kinds(g: Given) -> dict[_Kind, list[int]]:
    """Return the places of products by what they are of.  Raises OpError."""
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
            f"{NAME}: expected products of the same types, got {' and '.join(one[:2])} to {one[2]}, and "
            f"{' and '.join(other[:2])} to {other[2]}"
        )
    return found


def _check(g: Given) -> None:
    """Raise an error for what lists have not."""
    if g.epilogue is not None or g.args:
        raise EpilogueError(f"{NAME}: expected no epilogue of lists of products: activation, bias and c are taken")
    for name, x in (*g.groups.items(), ("gather", g.gather)):
        if x is not None:
            raise UnsupportedError(f"{NAME}: expected no {name} with lists of products, which have their own extents")
    if g.rest != "keep":
        raise UnsupportedError(f"{NAME}: expected no rest of lists of products: all of each result is written")
    if g.kernel is not None and not isinstance(g.kernel, TileDescription):
        raise UnsupportedError(f"{NAME}: expected kernel as a TileDescription for lists of products, got {g.kernel!r}")
    others: Sequence[tuple[str, Any]] = (("b", g.b), ("out", g.out), ("c", g.c))
    for name, x in others:
        got = len(x) if isinstance(x, list | tuple) else type(x).__name__
        if got != len(g.a) and (x is not None or name == "b"):
            raise ShapeError(f"{NAME}: expected {name} as a list of {len(g.a)}, as a, got {got}")
    bias: Any = g.bias
    if is_list(bias) and len(bias) != len(g.a):
        raise ShapeError(f"{NAME}: expected {len(g.a)} biases, one each a problem, got {len(bias)}")
    if not g.a:
        raise ShapeError(f"{NAME}: expected at least one product, got none")


def _named(g: Given) -> Sequence[tuple[str, Any]]:
    return ("a", g.a), ("b", g.b), ("out", g.out)


def _layout(name: str, views: Sequence[ArrayView | None]) -> str:
    """Return the layout of matrices that have every one, such as a column: that of the others, where it is one."""
    found = {found_type(NAME, name, v).layout for v in views if v is not None and not _lies_anyhow(v)}
    return found.pop() if len(found) == 1 else "row"


def _lies_anyhow(view: ArrayView) -> bool:
    return any([n < 2 for n in view.shape])


def _kind(g: Given, i: int, views: Sequence[ArrayView | None], usual: Sequence[str]) -> _Kind:
    """Return what a product is of.  Raises OpError."""
    types = [
        None if v is None else found_type(NAME, n, v)._replace(**({"layout": x} if _lies_anyhow(v) else {}))
        for (n, _), v, x in zip(_named(g), views, usual)
    ]
    of_a, of_b, of_d = types
    assert of_a is not None and of_b is not None
    if not can_mix(of_a.element, of_b.element):
        raise DtypeError(f"{NAME}: expected b of {of_a.element}, as a, got {of_b.element} (problem {i})")
    layout = "row" if of_d is None else of_d.layout
    if of_d is not None:
        result = of_d.element
    else:
        result = result_of(of_a.element) if g.dtype is None else element_name(g.dtype)
    kind = both(of_a.element, of_b.element)
    torch = sys.modules.get("torch")
    of_torch = torch is not None and isinstance(g.a[i], torch.Tensor)
    try:
        allowed = kind == "f32" and g.math == "default" and of_torch and tf32_allowed()
        arithmetic = arithmetic_of(kind, g.math, g.accumulator, allowed)
        check_types(kind, result, arithmetic)
    except OpError as e:
        raise type(e)(f"{NAME}: {e}") from None
    if arithmetic in ("two", "f16"):
        raise UnsupportedError(f"{NAME}: expected sums as usual in lists of products, got {arithmetic}")
    elements = (of_a.element, of_b.element, result)
    if arithmetic == "tf32":
        elements = ("tf32", "tf32", result)
    # The host knows all sizes: what it says of the tiles is kept, and needs no launch of its own.
    schedule = SchedulerMode.Device if g.schedule == "device" else SchedulerMode.Host
    math = _MATH.get(arithmetic, _MATH.get(g.math, ""))
    return _Kind(elements, (of_a.layout, of_b.layout, layout), None, math, g.activation, schedule, g.kernel)  # type: ignore[arg-type]


@lru_cache(maxsize=256)
def _plan(kind: _Kind) -> GroupedGemm:
    """Return the plan for such operands."""
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


class ListsExplanation(NamedTuple):
    """How lists of products are computed: ``parts``, those whose operands lie along the same modes each."""

    parts: tuple[ListExplanation, ...]

    @property
    def launches(self) -> int:
        """How many launches there are."""
        return sum([x.launches for x in self.parts])

    @property
    def flops(self) -> int:
        """Of all products."""
        return sum([x.flops for x in self.parts])

    def __str__(self) -> str:
        return "\n".join(map(str, self.parts))


def explained_lists(g: Given) -> ListsExplanation:
    """Return how lists of products are computed.  Raises OpError."""
    found: list[ListExplanation] = []
    for kind, which in _kinds(g).items():
        plan = _plan(kind)
        lists = [[x[i] for i in which] for x in (g.a, g.b)]
        found.append(
            explained_list(NAME, plan, problems_of(NAME, plan.kinds, lists[0], lists[1], None, None, on_cpu=None)[0])
        )
    return ListsExplanation(tuple(found))
