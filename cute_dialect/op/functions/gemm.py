"""GEMMs with torch's signatures: ``mm`` and ``bmm``, and the functions that call them."""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.epilogue.activations import Spelled, spelled
from cute_dialect.kernels.epilogue.combination import Hook
from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.arrays.library import is_autocast
from cute_dialect.op.epilogue.bind import alone
from cute_dialect.op.epilogue.combination import LinearCombination, combination, is_per_matrix, operands_of
from cute_dialect.op.epilogue.tracing import Traced, current
from cute_dialect.op.errors import DtypeError, OpError, ShapeError, UnsupportedError, renamed
from cute_dialect.op.execute.autocast import recast
from cute_dialect.op.execute.call_cache import KnownCalls, key_and_arrays, number
from cute_dialect.op.execute.gemm import product
from cute_dialect.op.execute.recording import is_transformed, needs_gradients
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.select.gemm_dispatch import ANY, KernelOverride
from cute_dialect.op.signature_types import Interpreted

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.op.signature_types import Array, Epilogue, Factor

PLAIN, FUSED, GRAPHS = ({2: KnownCalls(), 3: KnownCalls()} for _ in range(3))
"""Recorded calls by operand rank: plain GEMMs, GEMMs with epilogue arguments, GEMMs with a traced epilogue."""
_MM, _BMM = PLAIN[2], PLAIN[3]


def mm(
    a: Array,
    b: Array,
    out: Array = None,
    *,
    alpha: Factor = 1.0,
    beta: Factor = 1.0,
    c: Array = None,
    bias: Array = None,
    activation: Spelled = "",
    hook: Hook | None = None,
    epilogue: Epilogue = None,
    args: Mapping[str, Any] | None = None,
    dtype: object = None,
    math: str = "default",
    accumulator: object = None,
    kernel: object = None,
    split_k: int | None = None,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> Array:
    """Return ``activation(alpha * a @ b + beta * c + bias)``.

    The GEMM runs on a GPU since sm_80 or on the interpreter.  Operands are f16, bf16, f32, f64, 8-bit floats or 8-bit
    integers.  The epilogue is computed in f32 from the accumulator and rounded once, to nearest even; 8-bit types and
    integers saturate.  Integer results are exact, also if integers are added to them.  If ``beta`` is 0, ``c`` is not
    read; if ``alpha`` is 0, ``a`` and ``b`` are not multiplied.

    TMA needs addresses and row strides that are multiples of 16 bytes.  Other f16 and bf16 matrices use a kernel
    without TMA.  With that kernel, column pairs, reductions and blocks of an epilogue are computed by the array
    library from the f32 accumulator.  Other f32 and 8-bit matrices are copied, as are those that are not contiguous
    along K (:func:`cute_dialect.op.explain` reports copies).

    Args:
        a: (M, K), with a contiguous mode.  Arrays belong to torch, numpy, cupy or a library with DLPack or the CUDA
            array interface.
        b: (K, N), with a contiguous mode.
        out: (M, N) array for the result; default: a new array.
        alpha, beta: numbers; they are kernel arguments, so another value needs no other kernel.
        c: an array that broadcasts to (M, N); may be ``out``.
        bias: a per-column vector (N,) or a per-row vector (M, 1).
        activation: relu, gelu or another of :data:`cute_dialect.op.epilogue.ACTIVATIONS`.
        hook: an element-wise function, :data:`cute_dialect.kernels.epilogue.combination.Hook`; each function, also an
            edited one, needs a kernel of its own.
        epilogue: a function of the accumulator and ``args``, plain or traced (:func:`cute_dialect.op.epilogue.trace`).
            It replaces ``alpha``, ``beta``, ``c``, ``bias``, ``activation`` and ``hook``; its return value is
            returned.
        args: arguments of ``epilogue`` by name, and optionally arrays for its results.
        dtype: type of the result without ``out``; default: that of ``a``, bf16 for 8-bit floats, int32 for integers.
        math: arithmetic of f32 operands (``tf32``, ``3xtf32``, ``exact``, ``fast_f16``, ``fast_bf16``), or ``promote``
            for two-level accumulation of other floats.
        accumulator: type of the accumulator.
        kernel: a ``Choice``, a kernel name as reported by :func:`cute_dialect.op.explain`, or a
            ``TileDescription``; default: chosen by the cost model.  On the interpreter, the name may be that of a
            kernel for another GPU.
        split_k: number of split-K slices; default: chosen by the cost model.
        device: ``"cpu"`` for the interpreter, with numpy arrays and CPU tensors, or a GPU number for numpy arrays.
        stream: a stream of torch, cupy or cuda-python; default: the library's current stream.
        run: options of the interpreter.

    Raises subclasses of OpError before anything is compiled or written.
    """
    if (
        device is None and stream is None and kernel is None and split_k is None and not run and epilogue is None
        and not args and c is None and bias is None and not activation and hook is None and math == "default"
        and accumulator is None and isinstance(alpha, int | float) and alpha == 1.0 and isinstance(beta, int | float)
        and not _MM.is_traced()
    ):  # fmt: skip
        done = _MM.again((dtype, True), a, b) if out is None else _MM.again((dtype, False), a, b, out)
        if done is not None:
            return done
    if out is None and is_autocast(a):
        return recast(
            "mm", mm, {"a": a, "b": b}, alpha=alpha, beta=beta, c=c, bias=bias, activation=activation, hook=hook,
            epilogue=epilogue, args=args, dtype=dtype, math=math, accumulator=accumulator, kernel=kernel,
            split_k=split_k, device=device, stream=stream, **run,
        )  # fmt: skip
    return _multiplied(
        2, a, b, out, alpha, beta, c, bias, activation, hook, epilogue, args, dtype, math, accumulator,
        KernelOverride(kernel, split_k), device, stream, run,
    )  # fmt: skip


def bmm(
    a: Array,
    b: Array,
    out: Array = None,
    *,
    alpha: Factor = 1.0,
    beta: Factor = 1.0,
    c: Array = None,
    bias: Array = None,
    activation: Spelled = "",
    hook: Hook | None = None,
    epilogue: Epilogue = None,
    args: Mapping[str, Any] | None = None,
    dtype: object = None,
    math: str = "default",
    accumulator: object = None,
    kernel: object = None,
    split_k: int | None = None,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> Array:
    """Return the product of each matrix of ``a``, (L, M, K), and of ``b``, (L, K, N), as (L, M, N).

    One of them may be shared by the batch: (1, M, K), (K, N) or stride 0.  If ``b`` is shared, and the matrices of
    ``a`` and of ``out`` are stacked with one row stride, the batch is computed as one GEMM, (L M, K) by (K, N).

    Other arguments are those of :func:`mm`, and shared by all matrices, except:

    Args:
        c: an array that broadcasts to (L, M, N).
        alpha, beta: also arrays of (L,), one factor per matrix, except with ``hook`` and ``epilogue``.
    """
    if (
        device is None and stream is None and kernel is None and split_k is None and not run and epilogue is None
        and not args and c is None and bias is None and not activation and hook is None and math == "default"
        and accumulator is None and isinstance(alpha, int | float) and alpha == 1.0 and isinstance(beta, int | float)
        and not _MM.is_traced()
    ):  # fmt: skip
        done = _BMM.again((dtype, True), a, b) if out is None else _BMM.again((dtype, False), a, b, out)
        if done is not None:
            return done
    if out is None and is_autocast(a):
        return recast(
            "bmm", bmm, {"a": a, "b": b}, alpha=alpha, beta=beta, c=c, bias=bias, activation=activation, hook=hook,
            epilogue=epilogue, args=args, dtype=dtype, math=math, accumulator=accumulator, kernel=kernel,
            split_k=split_k, device=device, stream=stream, **run,
        )  # fmt: skip
    if is_per_matrix(alpha) or is_per_matrix(beta):
        if run:
            check_keywords("bmm", bmm, run)
        given = LinearCombination(alpha, beta, c, bias, spelled(activation), hook)
        combined, factors = _with_factors(a, b, given, epilogue)
        return bmm(
            a, b, out, epilogue=combined, args=factors, dtype=dtype, math=math, accumulator=accumulator,
            kernel=kernel, split_k=split_k, device=device, stream=stream, **run,
        )  # fmt: skip
    return _multiplied(
        3, a, b, out, alpha, beta, c, bias, activation, hook, epilogue, args, dtype, math, accumulator,
        KernelOverride(kernel, split_k), device, stream, run,
    )  # fmt: skip


_NAMES = {2: "mm", 3: "bmm"}
"""Rank of the operands -> name of the function."""


def _multiplied(
    rank: int, a: Any, b: Any, out: Any, alpha: Any, beta: Any, c: Any, bias: Any, activation: Spelled,
    hook: Hook | None, epilogue: Any, args: Mapping[str, Any] | None, dtype: object, math: str, accumulator: object,
    wanted: KernelOverride, device: object, stream: object, run: Interpreted,
) -> Any:  # fmt: skip
    """Compute ``mm`` or ``bmm``, except cached calls without an epilogue: replay a cached call, or launch kernels."""
    call = _NAMES[rank]
    if run:
        check_keywords(call, mm if rank == 2 else bmm, run)
    if not isinstance(alpha, int | float):
        alpha = _factor(call, "alpha", alpha)
    if not isinstance(beta, int | float):
        beta = _factor(call, "beta", beta)
    if args and epilogue is None:
        raise UnsupportedError(f"{call}: args has {', '.join(args)}, but there is no epilogue; pass epilogue")
    applied: Any = spelled(activation) if activation else activation
    hook = hook if hook is None else current(hook)
    given = LinearCombination(alpha, beta, c, bias, applied, hook, math, accumulator)
    is_cached = device is None and stream is None and wanted == ANY and not run and not _MM.is_traced()
    key = None
    if epilogue is not None:
        if not given.plain:
            alone(call, given)
        given, args = given.of_sums(), args or {}
        if is_cached and isinstance(epilogue, Traced):  # a plain function is traced at each call
            key = graph_key(a, b, out, (epilogue, dtype, math, accumulator), args)
            done = GRAPHS[rank].again(key[0], *key[1])
            if done is not None:
                return done
            if epilogue.is_random:
                key = None  # each seed would be cached separately
    elif is_cached and not given.usual:
        done = FUSED[rank].again(_fused_key(dtype, out, given), *_given_of(a, b, out, c, bias))
        if done is not None:
            return done
    return _computed(rank, a, b, out, dtype, given, device, stream, run, epilogue, args or {}, wanted, key)


def _with_factors(a: Any, b: Any, given: LinearCombination, epilogue: object) -> tuple[Traced, dict[str, Any]]:
    """Return the epilogue of a batch with one ``alpha`` or ``beta`` per matrix, and its arguments."""
    for name, value in (("hook", given.hook), ("epilogue", epilogue)):
        if value is not None:
            raise UnsupportedError(
                f"bmm: one alpha or beta per matrix cannot be combined with {name}; multiply in an epilogue, with the "
                "factors as args of shape (L, 1, 1)"
            )
    _check_batches(a, b)
    shape = (max(a.shape[0], b.shape[0] if len(b.shape) == 3 else 1), a.shape[-2], b.shape[-1])
    operands: dict[str, Any] = {"C": given.c, "bias": given.bias}
    factors: dict[str, Any] = {"alpha": given.alpha} | ({} if given.c is None else {"beta": given.beta})
    for name, x in factors.items():
        if not is_per_matrix(x):
            operands[name] = x if isinstance(x, int | float) else _factor("bmm", name, x)
        elif x.shape[0] == shape[0]:
            operands[name] = x.reshape(x.shape[0], 1, 1)
        else:
            raise ShapeError(
                f"bmm: {name} has shape {tuple(x.shape)}; pass a number or {shape[0]} factors, one per matrix"
            )
    args = operands_of(operands)
    for name, x in args.items():
        if not isinstance(x, float) and not hasattr(x, "dtype"):
            raise DtypeError(f"bmm: {name} is of type {type(x).__name__}; pass an array")
    return combination(args, shape, given.activation), args


def _check_batches(*arrays: Any) -> None:
    for name, x in zip("ab", arrays):
        if len(getattr(x, "shape", ())) not in (2, 3):
            raise ShapeError(f"bmm: {name} has shape {getattr(x, 'shape', None)}; pass a batch of matrices")


def _factor(call: str, name: str, value: Any) -> float:
    """Return an array of one element as a number; an array on a GPU is waited for.

    Raises ShapeError for several elements, DtypeError if it is not a number.
    """
    if isinstance(value, str | bytes):
        raise DtypeError(f"{call}: {name} is a {type(value).__name__}; pass a number")
    shape = getattr(value, "shape", None)
    if shape is not None and prod(shape) != 1:
        more = ", or one factor per matrix, (L,)" if call == "bmm" else ""
        raise ShapeError(
            f"{call}: {name} has shape {tuple(shape)}; pass a number or an array of one element{more}; an epilogue "
            "takes factors of any shape as args"
        )
    if needs_gradients(value):
        raise UnsupportedError(f"{call}: {name} has no gradient; pass a number, or {name}.detach()")
    value = value.item() if hasattr(value, "item") else value
    if not isinstance(value, bool):
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
    raise DtypeError(f"{call}: {name} is a {type(value).__name__}; pass a number")


def _given_of(a: Any, b: Any, out: Any, c: Any, bias: Any) -> tuple[Any, ...]:
    """Return the arrays of a call that are not None."""
    found = (a, b) if out is None else (a, b, out)
    if c is not None:
        found += (c,)
    return found if bias is None else (*found, bias)


def _fused_key(dtype: object, out: object, given: LinearCombination) -> tuple[object, ...]:
    """Return the cache key of the arguments that are not arrays; zeros have a sign."""
    alpha, beta, c, bias, activation, hook, math, accumulator = given
    return (
        dtype, out is None, alpha or repr(alpha), beta or repr(beta), c is None, bias is None, activation, hook, math,
        accumulator,
    )  # fmt: skip


def graph_key(a: Any, b: Any, out: Any, how: tuple[object, ...], args: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """Return the cache key of a call with an epilogue, and its arrays."""
    key, arrays = key_and_arrays((*how, out is None, *args), args.values())
    return key, [a, b, *arrays] if out is None else [a, b, out, *arrays]


def _is_mapped(tensors: list[Any]) -> bool:
    """Return True if a tensor belongs to ``torch.vmap`` or a similar transform, and so has no memory."""
    if not is_transformed():
        return False
    from cute_dialect.op.torch.registry import wrapped  # late: torch

    return wrapped(*tensors)


def _computed(
    rank: int, a: Any, b: Any, out: Any, dtype: object, extras: LinearCombination, device: object, stream: object,
    run: Interpreted, graph: Any, args: Mapping[str, Any], wanted: KernelOverride,
    key: tuple[object, Sequence[Any]] | None,
) -> Any:  # fmt: skip
    """Compute a GEMM that is not cached, or let torch's dispatcher compute it.

    Args:
        key: cache key of a call with an epilogue; None if the call is not to be cached.
    """
    call = _NAMES[rank]
    cached: tuple[KnownCalls, object, Sequence[Any]] | None = None
    if device is None and stream is None and not run and wanted == ANY:
        if graph is not None:
            cached = None if key is None else (GRAPHS[rank], *key)
        elif extras.usual:
            cached = PLAIN[rank], (dtype, out is None), (a, b) if out is None else (a, b, out)
        else:
            how = _fused_key(dtype, out, extras)
            cached = FUSED[rank], how, _given_of(a, b, out, extras.c, extras.bias)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(a, torch.Tensor):
        given: list[Any] = [
            t for t in (a, b, out, extras.c, extras.bias, *args.values()) if isinstance(t, torch.Tensor)
        ]
        plain = (torch.Tensor, torch.nn.Parameter)
        learns = needs_gradients(*given)

        def by_torch() -> Any:
            mapped = _MM.is_traced() or _is_mapped(given)
            if graph is not None and not mapped and all([type(t) in plain for t in given]):
                from cute_dialect.op.torch.epilogue import product_with_gradients  # late: torch

                said = {"kernel": wanted.kernel, "split_k": wanted.split_k, **run}
                sums = extras.accumulator and element_name(extras.accumulator)
                how = {"math": extras.math, "accumulator": sums}
                more = (graph, args, how, {n: x for n, x in said.items() if x is not None})
                return product_with_gradients({2: mm, 3: bmm}[rank], a, b, out, dtype, device, stream, *more)
            from cute_dialect.op.torch import dispatch  # late: torch

            others = {"kernel": wanted.kernel, "split_k": wanted.split_k, "epilogue": graph, **run}
            return dispatch.product(call, a, b, out, dtype, extras, device, stream, others)

        if learns or _MM.is_traced() or any([type(t) not in plain for t in given]) or _is_mapped(given):
            if not learns or cached is None or _MM.is_traced():
                return by_torch()
            return cached[0].differentiable(*cached[1:], by_torch)
        _MM.is_traced = torch.compiler.is_dynamo_compiling

    def compute() -> Any:
        return product(call, rank, a, b, out, dtype, extras, device, stream, run, graph, args, wanted)

    return compute() if cached is None else cached[0].recorded(*cached[1:], compute)


# ---------------------------------------------------------------------------------------------- functions of mm and bmm


def addmm(
    c: Array, a: Array, b: Array, *, beta: Factor = 1.0, alpha: Factor = 1.0, out: Array = None, **more: Any
) -> Array:
    """Return ``beta * c + alpha * a @ b``.

    Args:
        c: an array that broadcasts to (M, N).
        a: (M, K).
        b: (K, N).
        more: further arguments of :func:`~cute_dialect.op.functions.gemm.mm`.
    """
    _check_source(addmm, mm, c, more)
    try:
        return mm(a, b, out, alpha=alpha, beta=beta, c=c, **more)
    except OpError as e:
        raise renamed(e, "addmm", "mm") from None


def baddbmm(
    c: Array, a: Array, b: Array, *, beta: Factor = 1.0, alpha: Factor = 1.0, out: Array = None, **more: Any
) -> Array:
    """Return ``beta * c + alpha * a @ b`` for each matrix of a batch.

    Args:
        c: an array that broadcasts to (L, M, N).
        a: (L, M, K).
        b: (L, K, N).
        more: further arguments of :func:`~cute_dialect.op.functions.gemm.bmm`.
    """
    _check_source(baddbmm, bmm, c, more)
    try:
        return bmm(a, b, out, alpha=alpha, beta=beta, c=c, **more)
    except OpError as e:
        raise renamed(e, "baddbmm", "bmm") from None


def _check_source(function: Callable[..., Any], product: Callable[..., Any], c: Any, more: Mapping[str, Any]) -> None:
    """Check the source of a function, and its arguments ``more`` that ``product`` has.

    Raises DtypeError, ArgumentError.
    """
    call = function.__name__
    if more:
        check_keywords(call, function, more, also=product)
    if c is None:
        raise DtypeError(f"{call}: c is None; pass an array, or call {product.__name__}")


def int_mm(a: Array, b: Array, **more: Any) -> Array:
    """Return the product of two matrices of 8-bit integers, signed or unsigned, as int32 or ``dtype``.

    Args:
        a: (M, K).
        b: (K, N).
        more: further arguments of :func:`~cute_dialect.op.functions.gemm.mm`.

    Raises DtypeError for other element types.
    """
    if more:
        check_keywords("int_mm", int_mm, more, also=mm)
    for name, x in (("a", a), ("b", b)):
        if element_name(getattr(x, "dtype", type(x))) not in ("i8", "ui8"):
            raise DtypeError(
                f"int_mm: {name} has dtype {element_name(getattr(x, 'dtype', type(x)))}; pass an array of i8 or ui8"
            )
    try:
        return mm(a, b, **more)
    except OpError as e:
        raise renamed(e, "int_mm", "mm") from None


def linear(x: Array, weight: Array, bias: Array = None, activation: Spelled = "", **more: Any) -> Array:
    """Return ``activation(x @ weight.T + bias)``.

    Args:
        x: (…, K).
        weight: (N, K).
        bias: (N,).
        more: further arguments of :func:`~cute_dialect.op.functions.gemm.mm`, except ``out`` and ``c``.

    Raises ShapeError, UnsupportedError.
    """
    if not more and not _LINEAR.is_traced():
        how = activation if isinstance(activation, str) else spelled(activation), bias is None
        done = _LINEAR.again(how, x, weight) if bias is None else _LINEAR.again(how, x, weight, bias)
        if done is not None:
            return done
    if is_autocast(x):
        return recast("linear", linear, {"x": x, "weight": weight}, bias=bias, activation=activation, **more)
    for name in ("out", "c"):
        if name in more:
            raise UnsupportedError(f"linear: {name} is not supported; use mm or addmm")
    if more:
        check_keywords("linear", linear, more, also=mm, without=("a", "b", "out", "c"))
    _check_arrays("linear", x=x, weight=weight)
    if len(weight.shape) != 2 or len(x.shape) < 1 or x.shape[-1] != weight.shape[1]:
        raise ShapeError(
            f"linear: x has shape {tuple(x.shape)} and weight has shape {tuple(weight.shape)}; "
            "pass x of (…, K) and weight of (N, K)"
        )
    given = [x, weight] if bias is None else [x, weight, bias]
    learns, device = _learns(given), more.get("device")

    def compute() -> Any:
        if learns and device in (None, "cpu") and len(more) <= ("device" in more):
            done = _layer(x, weight, bias, spelled(activation), device)
            if done is not None:
                return done
        rows = x if len(x.shape) == 2 else _rows(x)
        try:
            found = mm(rows, weight.T, bias=bias, activation=activation, **more)
        except OpError as e:
            raise renamed(e, "linear", "mm", arguments={"a": "x", "b": "weight.T"}) from None
        return found if len(x.shape) == 2 else found.reshape(*x.shape[:-1], weight.shape[0])

    if more or _LINEAR.is_traced():
        return compute()
    return _LINEAR.computed((spelled(activation), bias is None), given, compute)


def matmul(
    a: Array,
    b: Array,
    *,
    alpha: Factor = 1.0,
    dtype: object = None,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> Array:
    """Return ``alpha * a @ b`` by the rules of ``torch.matmul``.

    A vector is one row on the left and one column on the right; that mode is absent from the result.  Extents before
    the last two are those of a batch, and broadcast.  An operand that is shared by the whole batch is read once.

    Args:
        dtype, device, stream, run: as in :func:`~cute_dialect.op.functions.gemm.mm`.

    Raises ShapeError for shapes that do not match.
    """
    if run:
        check_keywords("matmul", matmul, run)
    usual = device is None and stream is None and not run and type(alpha) in (int, float)
    how = number(alpha) if usual else None, dtype
    if usual and not _MATMUL.is_traced():
        done = _MATMUL.again(how, a, b)
        if done is not None:
            return done
    if is_autocast(a):
        return recast("matmul", matmul, {"a": a, "b": b}, alpha=alpha, dtype=dtype, device=device, stream=stream, **run)
    _check_arrays("matmul", a=a, b=b)
    if 0 in (len(a.shape), len(b.shape)):
        raise ShapeError(
            f"matmul: a has shape {tuple(a.shape)} and b has shape {tuple(b.shape)}; pass arrays of rank 1 or more"
        )
    x, y = a[None] if len(a.shape) == 1 else a, b[:, None] if len(b.shape) == 1 else b
    batch = _broadcast(tuple(x.shape[:-2]), tuple(y.shape[:-2]))
    if batch is None or x.shape[-1] != y.shape[-2]:
        raise ShapeError(
            f"matmul: cannot multiply shapes {tuple(a.shape)} and {tuple(b.shape)}; pass a of (…, M, K) and b of "
            "(…, K, N), with batches that broadcast"
        )
    m, n = x.shape[-2], y.shape[-1]
    learns = _learns([a, b])

    def compute() -> Any:
        if learns and usual and alpha == 1 and dtype is None and len(a.shape) > 2 and len(b.shape) == 2:
            done = _layer(a, b, None, "", None, transposed=True)
            if done is not None:
                return done
        try:
            if len(y.shape) == 2:  # One GEMM over all rows.
                found = mm(_rows(x), y, alpha=alpha, dtype=dtype, device=device, stream=stream, **run)
            else:
                of = _flat(x, batch), _flat(y, batch)
                found = bmm(*of, alpha=alpha, dtype=dtype, device=device, stream=stream, **run)
        except OpError as e:
            raise renamed(e, "matmul", "mm", "bmm") from None
        return found.reshape((*batch, *((m,) if len(a.shape) > 1 else ()), *((n,) if len(b.shape) > 1 else ())))

    if not usual or _MATMUL.is_traced():
        return compute()
    return _MATMUL.computed(how, (a, b), compute)


_LINEAR, _MATMUL = KnownCalls(), KnownCalls()
"""Cached calls of ``linear`` and ``matmul``."""


def _layer(*given: Any, **more: Any) -> Any:
    """Return a layer with gradients, one autograd node, or None if it must be composed."""
    from cute_dialect.op.torch.dispatch import linear  # late: torch

    return linear(*given, **more)


def _learns(arrays: list[Any]) -> bool:
    """Return True if all arrays are torch tensors and the result needs gradients."""
    torch = sys.modules.get("torch")
    if torch is None or torch.compiler.is_compiling() or not needs_gradients(*arrays):
        return False
    return all([isinstance(t, torch.Tensor) for t in arrays])


def _check_arrays(call: str, **arrays: Any) -> None:
    """Raise DtypeError if an argument is not an array that can be reshaped."""
    for name, x in arrays.items():
        if not hasattr(x, "shape") or not hasattr(x, "reshape"):
            raise DtypeError(f"{call}: {name} is of type {type(x).__name__}; pass an array with a reshape method")


def _rows(x: Any) -> Any:
    """Return (…, K) as (rows, K), also if there are no rows."""
    return x.reshape(prod(x.shape[:-1]), x.shape[-1])


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape that both broadcast to, or None if they do not."""
    longer = max(len(a), len(b))
    pairs = list(zip((1,) * (longer - len(a)) + a, (1,) * (longer - len(b)) + b))
    if any(m != n and 1 not in (m, n) for m, n in pairs):
        return None
    return tuple([n if m == 1 else m for m, n in pairs])


def _flat(t: Any, batch: tuple[int, ...]) -> Any:
    """Return a batch as (L, rows, columns); L is 1 if one matrix is shared by the batch."""
    *more, rows, columns = t.shape
    if all(size == 1 for size in more):
        return t.reshape(1, rows, columns)
    if hasattr(t, "expand"):
        wide = t.expand(*batch, rows, columns)
    else:
        import numpy as np

        wide = np.broadcast_to(t, (*batch, rows, columns))  # dispatches to cupy for its arrays
    return wide.reshape(prod(batch), rows, columns)
