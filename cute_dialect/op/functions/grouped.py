"""``grouped_mm``: GEMMs over groups of rows, columns or steps of K, or over pointer arrays, in one launch.

The GEMMs of ``op.grouped_mm([a0, a1], [b0, b1])`` may have any sizes.  They are a plan,
:class:`cute_dialect.op.GroupedGemm`.
"""

# Arrays belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.kernels.epilogue.activations import Spelled, spelled
from cute_dialect.op.arrays.dtypes import both, can_mix, checked_arithmetic, element_name, result_of, tf32_allowed
from cute_dialect.op.arrays.library import is_autocast, stream_handle
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.errors import DtypeError, EpilogueError, OpError, ShapeError, UnsupportedError, named
from cute_dialect.op.execute.arguments import on_the_cpu
from cute_dialect.op.execute.autocast import recast
from cute_dialect.op.execute.call_cache import KnownCalls, is_traced
from cute_dialect.op.execute.grouped import SCHEDULES, computed
from cute_dialect.op.execute.launcher import CURRENT, unrecorded
from cute_dialect.op.explanations.gemm import Explanation
from cute_dialect.op.functions.gemm import bmm
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.plans.grouped import GroupedGemm
from cute_dialect.op.plans.report import ListExplanation, explained_list
from cute_dialect.op.problems.grouped import GROUPS, GroupedArguments
from cute_dialect.op.problems.operands import found_type, read
from cute_dialect.op.problems.pointer_arrays import numbers_of, problems_of
from cute_dialect.op.pycutlass.functors import number
from cute_dialect.op.pycutlass.grouped import GroupArguments
from cute_dialect.op.select.descriptions import SchedulerMode, TileDescription
from cute_dialect.runtime.settings import flag

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.signature_types import Array, Epilogue, Factor
    from cute_dialect.runtime.arrays import ArrayView


# ---------------------------------------------------------------------------------------------------------------- lists


NAME = "grouped_mm"
_MATH = {"3xtf32": "multiply_add_fast_f32", "fast_f16": "multiply_add_fast_f16", "fast_bf16": "multiply_add_fast_bf16"}


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
    if stream is not None:
        stream_handle(NAME, stream)
    how = _how(g) if device is None and stream is None and not run else None
    torch = sys.modules.get("torch")
    if torch is not None and torch.is_grad_enabled():
        given = [t for x in (g.a, g.b, g.extras.c, g.extras.bias) for t in (x if is_list(x) else [x])]
        if any([isinstance(t, torch.Tensor) and t.requires_grad for t in given]):
            from cute_dialect.op.torch.pointer_arrays import lists_with_gradients  # late: torch

            _check(g)
            return lists_with_gradients(listed_mm, g, device, stream, run)
    if how is not None:
        done = LISTS.again(how, *g.a, *g.b)
        if done is not None:
            return list(done)
        return list(LISTS.recorded(how, [*g.a, *g.b], lambda: _launched_lists(g, None, None, {})))
    found = _launched_lists(g, device, stream, run or {})
    return list(found) if g.out is None else g.out


def _launched_lists(g: GroupedArguments, device: object, stream: object, run: Mapping[str, Any]) -> tuple[Any, ...]:
    """Check the arguments of :func:`listed_mm`, launch its kernels and return the results.

    A recording gets one launch, whose table is written when it is replayed.
    """
    others = dict(run)
    callback = others.pop("report", None)
    options: Any = others | ({} if device is None else {"device": device})
    results: list[Any] = [None] * len(g.a)
    # Check all GEMMs before the first launch.
    ready = [(which, _arguments(g, kind, which, stream, options)) for kind, which in _kinds(g).items()]
    with unrecorded():
        for which, arguments in ready:
            report = arguments.launch()
            if callback is not None and report is not None:
                callback(report)
            if arguments.found[0].d.device < 0:
                arguments.sync()
            for i, d in zip(which, arguments.D):
                results[i] = d
        if CURRENT.recording is not None:
            is_single = len(ready) == 1 and not ready[0][1].on_cpu
            CURRENT.recording.launch(ready[0][1].prepared() if is_single else None)
    return tuple(results)


LISTS = KnownCalls(tf32=False)
"""Cached calls."""


def _how(g: GroupedArguments) -> object:
    """Return the arguments other than operands for a call that can be cached, else None."""
    torch = sys.modules.get("torch")
    if torch is None or not g.a or not is_list(g.b) or not isinstance(g.a[0], torch.Tensor):
        return None
    usual = g._replace(
        a=None, b=None, dtype=None, extras=g.extras._replace(alpha=1.0, activation="", math="default", accumulator=None)
    )
    alpha = g.extras.alpha if isinstance(g.extras.alpha, int | float) else 0.0
    by_switch = g.a[0].dtype == torch.float32 and g.extras.math == "default"  # torch's global flag selects tf32 or f32.
    if usual != _USUAL or alpha == 0.0 or by_switch or torch.compiler.is_dynamo_compiling():
        return None
    return len(g.a), alpha, g.extras.activation, g.dtype, g.extras.math, g.extras.accumulator


_USUAL = GroupedArguments(None, None, {})


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
        operation=NAME,
        flops=sum([x.flops for x in found]),
        parts=tuple(found),
        launches=sum([x.launches for x in found]),
    )


# --------------------------------------------------------------------------------------------------------------- groups


def grouped_mm(
    a: Array,
    b: Array,
    offs: Array = None,
    *,
    lengths: Array = None,
    row_groups: Array = None,
    out: Array = None,
    c: Array = None,
    bias: Array = None,
    alpha: Factor = 1.0,
    beta: float = 1.0,
    activation: Spelled = "",
    epilogue: Epilogue = None,
    args: Mapping[str, Any] | None = None,
    rest: str = "keep",
    schedule: str = "auto",
    gather: Array = None,
    dtype: object = None,
    math: str = "default",
    accumulator: object = None,
    kernel: object = None,
    device: object = None,
    stream: object = None,
    **run: Any,
) -> Array:
    """Compute the GEMMs of groups, ``activation(alpha * a_g @ b_g + beta * c + bias)``, in one launch.

    The ranks of ``a`` and ``b`` select the kind of grouping:

    * ``(T, K) @ (G, K, N)`` gives (T, N).  Each group is a range of rows of ``a`` with its own matrix of ``b``, as in a
      mixture of experts.
    * ``(G, M, K) @ (K, T)`` gives (M, T).  Each group is a range of columns of ``b`` with its own matrix of ``a``.
    * ``(M, T) @ (T, N)`` gives (G, M, N).  Each group is a range of steps of K.
    * ``(G, M, K) @ (G, K, N)`` with ``lengths`` gives (G, M, N).  Each group is the first rows of a matrix of ``a``.
    * ``[a0, a1] @ [b0, b1]`` gives a list.  Each GEMM has its own M, N, K and strides.  One launch computes all whose
      operands are contiguous along the same modes; :func:`cute_dialect.op.explain` lists the launches.

    The host never reads the group sizes, so nothing waits, and a CUDA graph can be replayed with other sizes.  Groups
    may be empty.  Values of ``a`` and ``b`` past the end of a group, even NaN, do not affect it.

    The interpreter reports group sizes that decrease or exceed the operands.  On a GPU they give undefined results
    unless ``CUTE_OP_CHECK=1`` is set before the first call, which waits for the GPU.

    Args:
        a: operand of rank 2 or 3, or a list of arrays.
        b: operand of rank 2 or 3, or a list of arrays.
        offs: end of each group, i32 of (G,), or of (G + 1,) beginning with 0, on the device of ``a``; must not
            decrease.
        lengths: number of rows that each matrix of ``a`` uses, i32 of (G,).
        row_groups: group of each row, i32 of (T,), sorted; -1 for rows of no group.
        out: memory for the result; a list for lists.
        c: matrix to add, times ``beta``; a list for lists.
        bias: (N,), (M, 1), or (G, N) for one bias per group; for lists one for all, or a list.
        alpha: a number, or f32 of one element or of (G,); for lists also a list.
        beta: factor of ``c``.
        activation: name of an activation, or "".
        epilogue: function of the accumulator; with groups of columns it has one result.
        args: arguments of ``epilogue``.
        rest: "keep" leaves rows of no group as they are, "zero" sets them to 0.
        schedule: "host" requires offs, lengths or row_groups as a list. For lists of arrays, "auto" assigns tiles
            to blocks on the host, "device" in the kernel. Other values are schedules of the interpreter.
        gather: row of ``a`` for each row to multiply, i32 of (M,); a kernel gathers the rows first.
        dtype, math, accumulator, kernel, device, stream, run: see :func:`cute_dialect.op.functions.gemm.mm`.

    Raises:
        OpError: if the arguments are not supported.
    """
    if run:
        check_keywords("grouped_mm", grouped_mm, run)
    applied = spelled(activation)
    plain = (
        out is None and c is None and epilogue is None and gather is None and kernel is None and device is None
        and stream is None and args is None and accumulator is None and not run and math == "default"
        and schedule == "auto" and beta == 1.0 and (type(alpha) is float or type(alpha) is int) and alpha != 0
    )  # fmt: skip
    tensors = [t for t in (a, b, bias, offs, lengths, row_groups) if t is not None] if plain else []
    how = (
        ()
        if not plain
        else (alpha, applied, rest, dtype, bias is None, offs is None, lengths is None, row_groups is None)
    )
    if plain and not is_traced():
        done = KNOWN.again(how, *tensors)
        if done is not None:
            return done
    first = a[0] if is_list(a) and len(a) else a
    if out is None and is_autocast(first):
        return recast(
            "grouped_mm", grouped_mm, {"a": a, "b": b}, offs=offs, lengths=lengths, row_groups=row_groups, c=c,
            bias=bias, alpha=alpha, beta=beta, activation=activation, epilogue=epilogue, args=args, rest=rest,
            schedule=schedule, gather=gather, dtype=dtype, math=math, accumulator=accumulator, kernel=kernel,
            device=device, stream=stream, **run,
        )  # fmt: skip
    if schedule not in SCHEDULES:  # Other values are schedules of the interpreter.
        schedule, run = "auto", {**run, "schedule": schedule}
    groups = {n: x for n, x in zip(GROUPS, (offs, lengths, row_groups)) if x is not None}
    extras = LinearCombination(alpha, beta, c, bias, applied, math=math, accumulator=accumulator)
    given = GroupedArguments(a, b, groups, out, extras, epilogue, args, rest, schedule, dtype, kernel, gather=gather)
    if isinstance(a, list | tuple):
        return listed_mm(given, device, stream, run)
    if not groups and len(getattr(a, "shape", ())) == 3 and len(getattr(b, "shape", ())) == 3:
        more: dict[str, Any] = {
            "alpha": alpha,
            "beta": beta,
            "c": c,
            "bias": bias,
            "activation": applied,
            "epilogue": epilogue,
        }
        more |= {"args": args, "dtype": dtype, "math": math, "accumulator": accumulator, "kernel": kernel}
        return bmm(a, b, out, device=device, stream=stream, **more, **run)
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(a, torch.Tensor):
        return computed("grouped_mm", given, device, stream, run)

    def compute() -> object:
        if _dispatched(torch, given):
            from cute_dialect.op.torch import dispatch  # late: torch

            return dispatch.grouped_product("grouped_mm", given, device, stream, run)
        return computed("grouped_mm", given, device, stream, run)

    if not plain or not all(torch.is_tensor(t) for t in tensors) or _checked() or is_traced():
        return compute()
    return KNOWN.computed(how, tensors, compute)


KNOWN = KnownCalls()
"""Cached calls."""


def _checked() -> bool:
    """Return True if the group sizes of each call are checked."""
    return flag("CUTE_OP_CHECK", False)


def _dispatched(torch: Any, g: GroupedArguments) -> bool:
    """Return True if torch's dispatcher must handle a call, because of gradients or tensors without memory."""
    of_groups = g.groups.values()
    arrays = g.a, g.b, g.out, g.extras.c, g.extras.bias, *of_groups, *(g.args or {}).values()
    given: list[Any] = [t for t in arrays if torch.is_tensor(t)]
    plain = (torch.Tensor, torch.nn.Parameter)
    return (
        torch.compiler.is_dynamo_compiling()
        or (torch.is_grad_enabled() and any([t.requires_grad for t in given]))
        or any([type(t) not in plain for t in given])
    )
