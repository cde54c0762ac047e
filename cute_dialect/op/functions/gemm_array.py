"""Pointer-array GEMM: :func:`mm_array`."""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from cute_dialect.kernels.epilogue.activations import Spelled, spelled
from cute_dialect.op.arrays.dtypes import both, checked_arithmetic, element_name, layout_name, result_of, tf32_allowed
from cute_dialect.op.arrays.library import is_autocast, stream_handle
from cute_dialect.op.epilogue.bind import alone, traced_of
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.epilogue.tracing import Traced, current
from cute_dialect.op.errors import DtypeError, LayoutError, ShapeError, UnsupportedError
from cute_dialect.op.execute.arguments import PointerArrayArguments, apart, on_the_cpu
from cute_dialect.op.execute.autocast import recast
from cute_dialect.op.execute.pointer_arrays import check_results
from cute_dialect.op.explanations.gemm import Explanation
from cute_dialect.op.functions.gemm import mm
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.plans.gemm import Gemm
from cute_dialect.op.plans.report import explained_products
from cute_dialect.op.problems.operands import Operands, found_type, read
from cute_dialect.op.problems.pointer_arrays import as_batch, products_of, with_epilogue
from cute_dialect.op.pycutlass.functors import number
from cute_dialect.op.select.descriptions import Split
from cute_dialect.op.signature_types import Interpreted
from cute_dialect.runtime.arrays import view_of

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.kernels.epilogue.combination import Hook
    from cute_dialect.op.explanations.gemm import GemmExplanation
    from cute_dialect.op.signature_types import Array, Epilogue
    from cute_dialect.runtime.launch import CallOptions

_MATH = {"3xtf32": "multiply_add_fast_f32", "fast_f16": "multiply_add_fast_f16", "fast_bf16": "multiply_add_fast_bf16"}


class _Kind(NamedTuple):
    """Properties that a plan depends on."""

    elements: tuple[str, str, str]  # of A, B and D
    layouts: tuple[str, str, str]  # of A, B and D
    accumulator: str | None
    arithmetic: str
    activation: str
    hook: Hook | Traced | None


def mm_array(
    As: Array,
    Bs: Array,
    outs: Array = None,
    *,
    Cs: Array = None,
    shape: Sequence[int] | None = None,
    element: object = None,
    layouts: Sequence[object] = ("row", "row", "row"),
    alpha: float = 1.0,
    beta: float = 1.0,
    bias: Array = None,
    activation: Spelled = "",
    hook: Hook | None = None,
    epilogue: Epilogue = None,
    args: Mapping[str, Any] | None = None,
    dtype: object = None,
    math: str = "default",
    accumulator: object = None,
    split_k: object = None,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> Array:
    """Return ``activation(alpha * A @ B + beta * C + bias)`` for each A of ``As`` and its B of ``Bs``.

    The GEMMs have one shape, and run in one launch with arrays of pointers.  Matrices of different strides, layouts or
    alignments are grouped, with a launch for each group (see :func:`cute_dialect.op.explain`).  Matrices are not
    copied, except numpy arrays for a GPU.  Torch gradients are pointer-array GEMMs, too; with an epilogue the GEMMs are
    computed one by one.

    >>> import numpy as np
    >>> [d[0, 0] for d in mm_array([np.ones((8, 8), "f2")] * 2, [np.eye(8, dtype="f2")] * 2, device="cpu")]
    [np.float16(1.0), np.float16(1.0)]

    Args:
        As: (M, K) arrays, or addresses: integers in a list or in an i64 array.  An array may occur several times.  The
            call waits for addresses on a GPU.
        Bs: (K, N) arrays, or addresses.
        outs: (M, N) arrays, or addresses; default: new arrays.  Must be given if ``As`` has addresses.
        Cs: (M, N) arrays or addresses, of the type and layout of D.
        shape: (M, N, K), needed with addresses.
        element: type of A and B, needed with addresses.
        layouts: layouts of A, B and D without gaps, used with addresses.
        bias: (N,) or (M, 1), shared by all GEMMs.
        epilogue, args: as in :func:`~cute_dialect.op.functions.gemm.bmm`; arrays are (L, …), or shared by all GEMMs.
            The results are those of the function, D as a list and others as arrays (L, …).
        dtype: type of D, used with addresses.
        split_k: as in :meth:`Gemm.run <cute_dialect.op.plans.gemm.Gemm.run>`.
        alpha, beta, activation, hook: as in :func:`~cute_dialect.op.functions.gemm.mm`.
        math, accumulator, device, stream, run: as in :func:`~cute_dialect.op.functions.gemm.mm`.

    Raises subclasses of OpError before anything is compiled or written.
    """
    if run:
        check_keywords("mm_array", mm_array, run)
    first = As[0] if isinstance(As, list | tuple) and As else As
    if outs is None and is_autocast(first):
        return recast(
            "mm_array", mm_array, {"As": As, "Bs": Bs}, Cs=Cs, shape=shape, element=element, layouts=layouts,
            alpha=alpha, beta=beta, bias=bias, activation=activation, hook=hook, epilogue=epilogue, args=args,
            dtype=dtype, math=math, accumulator=accumulator, split_k=split_k, device=device, stream=stream, **run,
        )  # fmt: skip
    applied, tell = spelled(activation), run.pop("report", None)
    options = cast("CallOptions", dict(run) | ({} if device is None else {"device": device}))
    if stream is not None:
        stream_handle("mm_array", stream)
    given = _listed(As, Bs, outs, Cs)
    hook, traced = current(hook), None
    if args and epilogue is None:
        raise UnsupportedError(f"mm_array: args has {', '.join(args)}, but there is no epilogue; pass epilogue")
    if epilogue is not None:
        alone("mm_array", LinearCombination(alpha, beta, Cs, bias, applied, hook))
        traced = traced_of("mm_array", epilogue, args or {}, _sums(given, shape))
    how = {
        "dtype": dtype,
        "math": math,
        "accumulator": accumulator,
        "device": device,
        "stream": stream,
        **run,
        "report": tell,
    }
    if _learns(*given, bias, *(args or {}).values()):
        if outs is not None:
            raise UnsupportedError("mm_array: outs has no gradient; omit outs, or call under torch.no_grad()")
        if traced is not None:
            return _one_by_one(given, traced, args or {}, how)
        from cute_dialect.op.torch.pointer_arrays import array_with_gradients  # late: torch

        return array_with_gradients(mm_array, given, {"alpha": alpha, "beta": beta}, bias, applied, hook, how)
    split = Split.of(split_k)

    def checked(given: Any) -> tuple[Gemm, list[Operands], list[Any]]:
        """Return the plan, the checked operands and the results of matrices of one class."""
        plan, problem = _plan(given, shape, element, layouts, applied, traced or hook, dtype, math, accumulator)
        factors = number("alpha", alpha), 0.0 if Cs is None else number("beta", beta)
        found, results = products_of(
            "mm_array", plan.kinds, *given, alpha=factors[0], beta=factors[1], bias=bias, problem=problem,
            on_cpu=on_the_cpu(options), traced=traced,
        )  # fmt: skip
        return plan, found, results

    classes = _classes(given, by_address=traced is None)
    if traced is not None:
        if len({strides for strides, _ in classes}) > 1 and not isinstance(given[0][0], int) and split.parts == 1:
            return _one_by_one(given, traced, args or {}, how)
        plan, found, results = checked(given)
        found, made = with_epilogue("mm_array", found, results, traced, args or {}, plan.kinds)
        operation = plan.operation_for(as_batch(found), array=True)
        why = f"{split.parts} split-K slices" if split.parts > 1 else apart(operation, found)
        if why and (isinstance(given[0][0], int) or split.parts > 1):
            raise UnsupportedError(
                f"mm_array: an epilogue needs a single launch, which this call does not allow: {why}; "
                "use bmm, or omit epilogue"
            )
        if why:
            return _one_by_one((given[0], given[1], None, results), made.traced, made.results | dict(args or {}), how)
        done = PointerArrayArguments(operation, found, results, stream, options, split, "mm_array", made.results)
        _launch([done], tell)
        return made.traced.formed({**made.results, "D": list(done.D) if outs is None else outs})
    calls: list[PointerArrayArguments] = []
    everything: list[Operands] = []
    ds: dict[int, Any] = {}
    for which in classes.values():
        plan, found, own = checked([None if x is None else [x[i] for i in which] for x in given])
        operation = plan.operation_for(as_batch(found), array=True)
        calls.append(PointerArrayArguments(operation, found, own, stream, options, split, "mm_array"))
        everything += found
        ds |= dict(zip(which, own))
    if len(classes) > 1:
        check_results("mm_array", everything)
    _launch(calls, tell)
    return [ds[i] for i in range(len(ds))] if outs is None else outs


def _launch(calls: Sequence[PointerArrayArguments], tell: Any) -> None:
    """Launch calls, report those of the interpreter, and wait for those of host arrays."""
    for call in calls:
        report = call.launch()
        if tell is not None and report is not None:
            tell(report)
    for call in calls:
        if call.operands.d.device < 0:
            call.sync()


def _classes(given: Sequence[Any], *, by_address: bool = True) -> dict[tuple[object, object], list[int]]:
    """Return the indices of the matrices by class: equal strides, and addresses that are multiples of 16 bytes or not.

    One launch can compute the matrices of a class.  Addresses are of one class.  So are matrices of different shapes
    or types, which are refused.
    """
    columns: list[list[_Place]] = []
    for x in given:
        if x is None:
            continue
        shape, dtype = getattr(x[0], "shape", None), getattr(x[0], "dtype", None)
        if shape is None or len(shape) != 2 or any([getattr(m, "shape", None) != shape or m.dtype != dtype for m in x]):
            return {((), ()): list(range(len(given[0])))}
        columns.append([_place(m) for m in x])
    found: dict[tuple[object, object], list[int]] = {}
    for i, places in enumerate(zip(*columns)):
        strides, aligned = zip(*places)
        found.setdefault((strides, aligned if by_address else ()), []).append(i)
    return found


_Place: TypeAlias = tuple[tuple[int, ...], bool]


def _place(x: Any) -> _Place:
    """Return the strides of an array along modes of several elements, and True for a multiple of 16 bytes."""
    if hasattr(x, "data_ptr"):
        strides, address = x.stride(), x.data_ptr()
    elif hasattr(x, "__array_interface__"):
        strides, address = x.strides, x.__array_interface__["data"][0]
    else:
        view = view_of(x)
        strides, address = view.strides, view.pointer
    if 1 in x.shape:
        strides = [step for step, n in zip(strides, x.shape) if n > 1]
    return tuple(strides), address % 16 == 0


def _sums(given: Sequence[Any], shape: Sequence[int] | None) -> tuple[int, int, int]:
    """Return (L, M, N) of the results.  Raises ShapeError."""
    As, Bs = given[:2]
    if shape is not None:
        return len(As), shape[0], shape[1]
    sizes: list[tuple[int, ...]] = [tuple(getattr(x[0], "shape", ())) for x in (As, Bs)]
    if {len(x) for x in sizes} != {2}:
        raise ShapeError(f"mm_array: As has shape {sizes[0]} and Bs has shape {sizes[1]}; pass rank-2 arrays")
    return len(As), sizes[0][0], sizes[1][1]


def _learns(*given: Any) -> bool:
    """Return True if an array, or an array of a list, needs a gradient."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.is_grad_enabled():
        return False
    lists = [x if isinstance(x, list) else [x] for x in given]
    return any([isinstance(t, torch.Tensor) and t.requires_grad for x in lists for t in x])


def _one_by_one(given: Sequence[Any], traced: Traced, args: Mapping[str, Any], how: Mapping[str, Any]) -> Any:
    """Compute the GEMMs one by one, each with its part of the epilogue's arrays."""
    As, Bs, _, outs = given
    count, by_name = len(As), {x.name: x for x in traced.arguments}
    kept = {n: x for n, x in how.items() if x is not None}
    results: dict[str, list[Any]] = {n: [] for n in traced.results}
    for i, (a, b) in enumerate(zip(As, Bs)):
        own: dict[str, Any] = {}
        for n, t in args.items():
            each = n in by_name or n in traced.results
            batch = each and len(getattr(t, "shape", ())) == 3
            own[n] = (t[i if t.shape[0] == count else 0] if batch else t) if n != "D" else None
        own = {n: t for n, t in own.items() if t is not None}
        found = mm(a, b, None if outs is None else outs[i], epilogue=traced.function, args=own, **kept)
        named = found if traced.form != "one" else (found,)
        formed: Mapping[str, Any] = named if isinstance(named, dict) else dict(zip(traced.returned, named))
        for n in results:
            results[n].append(formed[n])
    stacked = {n: _stacked(x) if args.get(n) is None else args[n] for n, x in results.items() if n != "D"}
    return traced.formed({**stacked, "D": results["D"]})


def _stacked(arrays: Sequence[Any]) -> Any:
    """Return arrays stacked along a new first mode."""
    if type(arrays[0]).__module__.partition(".")[0] == "torch":
        return sys.modules["torch"].stack(list(arrays))
    import numpy as np

    return np.stack(list(arrays))  # dispatches to cupy for its arrays


@dataclass(frozen=True, kw_only=True)
class ArrayExplanation(Explanation):
    """An explanation of :func:`mm_array` for matrices of several classes of strides and alignment."""

    parts: tuple[tuple[tuple[int, ...], GemmExplanation], ...]  # indices of the matrices of a class, their explanation
    launches: tuple[int, str]  # their number, and the reason for several

    def __str__(self) -> str:
        lines = [f"{self.operation}: {self.launches[0]} launches, because {self.launches[1]}"]
        for which, explanation in self.parts:
            names = ("matrices " if len(which) > 1 else "matrix ") + ", ".join(map(str, which))
            lines.append(f"{names}: {explanation}")
        return "\n".join(lines)


def explained_array(As: Array, Bs: Array, others: int = 4, **call: Any) -> GemmExplanation | ArrayExplanation:
    """Return the kernels and the number of launches of an :func:`mm_array` call; ``call``: its arguments by name."""
    given = _listed(As, Bs, call.get("outs"), call.get("Cs"))
    classes = {} if call.get("epilogue") is not None else _classes(given)
    if len(classes) > 1:
        found: list[tuple[tuple[int, ...], GemmExplanation]] = []
        for which in classes.values():
            lists = [None if x is None else [x[i] for i in which] for x in given]
            by_name = {**call, "outs": lists[3], "Cs": lists[2]}
            found.append(
                (tuple(which), cast("GemmExplanation", explained_array(lists[0], lists[1], others, **by_name)))
            )
        return ArrayExplanation(
            operation="mm_array",
            flops=sum([x.flops for _, x in found]),
            parts=tuple(found),
            launches=(sum([x.launches[0] for _, x in found]), "the matrices have different strides or alignments"),
        )
    sums = None if call.get("epilogue") is None else _sums(given, call.get("shape"))
    traced = None if sums is None else traced_of("mm_array", call["epilogue"], call.get("args") or {}, sums)
    plan, problem = _plan(
        given, call.get("shape"), call.get("element"), call.get("layouts", ("row",) * 3), call.get("activation", ""),
        traced or call.get("hook"), call.get("dtype"), call.get("math", "default"), call.get("accumulator"),
    )  # fmt: skip
    visited = None if traced is None else (traced, call.get("args") or {})
    return explained_products(plan, "mm_array", *given, problem=problem, others=others, visited=visited)


def _listed(As: Any, Bs: Any, outs: Any, Cs: Any) -> tuple[Any, Any, Any, Any]:
    """Return A, B, C and D as lists of arrays or addresses.  Raises ShapeError, DtypeError, UnsupportedError."""
    found: list[Any] = []
    for name, x in (("As", As), ("Bs", Bs), ("Cs", Cs), ("outs", outs)):
        if x is None:
            if name in ("As", "Bs"):
                raise DtypeError(f"mm_array: {name} is None; pass a list of arrays or addresses")
            found.append(None)
            continue
        if not isinstance(x, list | tuple):
            kind = element_name(x.dtype) if "int64" not in str(getattr(x, "dtype", "")) else "i64"
            if kind != "i64" or len(x.shape) != 1:
                raise DtypeError(
                    f"mm_array: {name} is an array of {kind}; pass a list of arrays, or (L,) addresses as i64"
                )
            x = x.tolist()
        found.append(list(x))
    count = len(found[0])
    for name, x in zip(("As", "Bs", "Cs", "outs"), found):
        if x is not None and len(x) != count:
            raise ShapeError(f"mm_array: {name} has {len(x)} matrices, but As has {count}; pass {count}")
    if count == 0:
        raise ShapeError("mm_array: As is empty; pass at least one matrix")
    return found[0], found[1], found[2], found[3]


def _plan(
    given: tuple[Any, Any, Any, Any], shape: Sequence[int] | None, element: object, layouts: Sequence[object],
    activation: str, hook: Hook | Traced | None, dtype: object, math: str, accumulator: object,
) -> tuple[Gemm, Sequence[int] | None]:  # fmt: skip
    """Return the plan of a call, and (M, N, K) if operands are addresses.  Raises OpError."""
    As, Bs, _, outs = given
    addresses = [name for name, x in zip("ABCD", given) if x is not None and isinstance(x[0], int)]
    if addresses and (shape is None or element is None):
        raise ShapeError(f"mm_array: {addresses[0]} is given by addresses; pass shape=(M, N, K) and element")
    if addresses and outs is None:
        raise ShapeError("mm_array: A is given by addresses; pass outs")
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
    arithmetic = checked_arithmetic("mm_array", kind, d, math, accumulator, of_torch and tf32_allowed())
    if math == "promote":
        raise UnsupportedError("mm_array: math='promote' is not supported; use bmm")
    sums = None if accumulator is None else element_name(accumulator)
    plan = _made(_Kind((a, b, d), (of_a, of_b, of_d), sums, arithmetic or _MATH.get(math, ""), activation, hook))
    return plan, tuple(shape) if addresses and shape is not None else None


@lru_cache(maxsize=256)
def _made(kind: _Kind) -> Gemm:
    """Return the plan for these properties; without wgmma if it cannot read the layouts."""
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
