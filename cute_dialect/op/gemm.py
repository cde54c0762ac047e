"""Matrix multiply on Hopper: ``mm`` and ``bmm`` as in torch."""

# Arrays are of any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.activations import Spelled, spelled
from cute_dialect.kernels.gemm.epilogue import Hook
from cute_dialect.op.dtypes import element_name
from cute_dialect.op.epilogue.bind import alone
from cute_dialect.op.epilogue.tracing import Traced
from cute_dialect.op.errors import DtypeError, ShapeError, UnsupportedError
from cute_dialect.op.function_versions import current
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.known import Extras, KnownCalls, number
from cute_dialect.op.product import Interpreted, product
from cute_dialect.op.select.kernel_override import ANY, Wanted

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

__all__ = ["bmm", "mm"]

PLAIN, FUSED, GRAPHS = ({2: KnownCalls(), 3: KnownCalls()} for _ in range(3))
"""Products that were computed, by the rank of their operands: the sums alone, what becomes of them, with epilogues."""
_MM, _BMM = PLAIN[2], PLAIN[3]


def mm(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    alpha: Any = 1.0,
    beta: Any = 1.0,
    c: Any = None,
    bias: Any = None,
    activation: Spelled = "",
    hook: Hook | None = None,
    epilogue: Any = None,
    args: Mapping[str, Any] | None = None,
    dtype: object = None,
    math: str = "default",
    accumulator: object = None,
    kernel: object = None,
    split_k: int | None = None,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> Any:
    """Return ``activation(alpha * a @ b + beta * c + bias)`` for f16, bf16, f32 (in tf32), 8-bit floats and 8-bit
    integers, on a Hopper GPU or on the interpreter.

    ``a``: (M, K), ``b``: (K, N), ``out``: (M, N), each with a contiguous mode, arrays of torch, numpy, cupy or of
    another library that has DLPack or the CUDA array interface; ``dtype``: of the result where there is no ``out``,
    else that of ``a`` (bf16 for 8-bit floats, int32 for integers).  ``c``: what expands to the result, may be ``out``,
    as in ``torch.addmm``; ``bias``: (N,), a value a column, or (M, 1), a value a row.  ``activation``: relu, gelu, …
    (:data:`cute_dialect.op.epilogue.ACTIVATIONS`).  ``hook``: :data:`cute_dialect.kernels.gemm.epilogue.Hook`; another
    function, or one that was edited, is another kernel.  All of that is in f32, on the sums; ``alpha`` and ``beta`` are
    arguments of the kernel.  Where ``beta`` is 0, ``c`` is not read; where ``alpha`` is 0, nothing is multiplied.  Sums
    of integers are exact, also where integers are added to them.  Results are rounded once, to nearest even; as 8 bits,
    and as integers, they saturate. ``epilogue``: in place of it all a function of the sums and of ``args`` by name,
    plain or traced (:func:`cute_dialect.op.epilogue.trace`); what is returned is what it returns; ``args`` may also
    have memory for its results.

    Matrices of f16 and bf16 whose rows or addresses are not multiples of 16 bytes are multiplied by a kernel without
    TMA, which has the epilogue, too.  Pairs of columns, reductions and blocks of an epilogue are left to the arrays'
    library there, which is given the accumulator in f32.  Matrices of f32 and of 8 bits are copied, also where they are
    not contiguous along K (:func:`cute_dialect.op.explain` says so).

    ``kernel``: the one to take, a :class:`Choice`, its name (as :func:`cute_dialect.op.explain` tells it) or a
    :class:`TileDescription`; ``split_k``: how many blocks share K, of a kernel that is chosen.  By default both are.

    ``device``: ``"cpu"`` for the interpreter, which takes numpy arrays and CPU tensors, and what ``run`` has; or a
    GPU's number, for numpy arrays.  ``stream``: of torch, cupy or cuda-python, by default the library's current one.
    Raises subclasses of OpError before anything is compiled or written.
    """
    if run:
        check_keywords("mm", mm, run)
    if not isinstance(alpha, int | float):
        alpha = _factor("mm", "alpha", alpha)
    if not isinstance(beta, int | float):
        beta = _factor("mm", "beta", beta)
    plain = alpha == 1.0 and c is None and bias is None and hook is None and not activation
    if hook is not None:
        hook = current(hook)
    again = device is None and stream is None and kernel is None and split_k is None and not run and not _tracing()
    if epilogue is not None:
        if not plain:
            alone("mm", Extras(alpha, beta, c, bias, spelled(activation), hook))
        how = Extras(math=math, accumulator=accumulator), Wanted(kernel, split_k)
        return _graph("mm", 2, a, b, out, dtype, device, stream, run, epilogue, args or {}, *how, again)
    if args:
        raise UnsupportedError(f"mm: expected args with an epilogue only, got {', '.join(args)}")
    if plain and math == "default" and accumulator is None:
        if again:
            done = _MM.again((dtype, True), a, b) if out is None else _MM.again((dtype, False), a, b, out)
            if done is not None:
                return done
        extras = Extras()
        return _computed("mm", 2, a, b, out, dtype, extras, device, stream, run, wanted=Wanted(kernel, split_k))
    extras = Extras(alpha, beta, c, bias, spelled(activation), hook, math, accumulator)
    if again:
        done = FUSED[2].again((dtype, out is None, extras.key), *given_of(a, b, out, extras))
        if done is not None:
            return done
    return _computed("mm", 2, a, b, out, dtype, extras, device, stream, run, wanted=Wanted(kernel, split_k))


def bmm(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    alpha: Any = 1.0,
    beta: Any = 1.0,
    c: Any = None,
    bias: Any = None,
    activation: Spelled = "",
    hook: Hook | None = None,
    epilogue: Any = None,
    args: Mapping[str, Any] | None = None,
    dtype: object = None,
    math: str = "default",
    accumulator: object = None,
    kernel: object = None,
    split_k: int | None = None,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> Any:
    """Return the product of each matrix of ``a``, (L, M, K), with that of ``b``, (K, N) of (L, K, N): (L, M, N).

    One of them may be one for all, (1, M, K) or with stride 0.  The rest is as in :func:`mm`, the same for all
    matrices but ``c``, which expands to (L, M, N), and ``alpha``, which without other parts of an epilogue may be (L,),
    one factor for each matrix.  Where ``b`` is one for all, and the rows of ``a`` and ``out`` go on
    from matrix to matrix, it is the product of (L M, K) with (K, N).
    """
    if run:
        check_keywords("bmm", bmm, run)
    if not isinstance(alpha, int | float):
        if (
            getattr(alpha, "shape", None)
            and len(alpha.shape) == 1
            and alpha.shape[0] > 1
            and _is_alone(c, bias, activation, hook, epilogue)
        ):
            factors = {"alpha": alpha.reshape(alpha.shape[0], 1, 1)}
            return bmm(
                a, b, out, epilogue=_scaled, args=factors, dtype=dtype, math=math, accumulator=accumulator,
                kernel=kernel, split_k=split_k, device=device, stream=stream, **run,
            )  # fmt: skip
        alpha = _factor("bmm", "alpha", alpha)
    if not isinstance(beta, int | float):
        beta = _factor("bmm", "beta", beta)
    plain = alpha == 1.0 and c is None and bias is None and hook is None and not activation
    if hook is not None:
        hook = current(hook)
    again = device is None and stream is None and kernel is None and split_k is None and not run and not _tracing()
    if epilogue is not None:
        if not plain:
            alone("bmm", Extras(alpha, beta, c, bias, spelled(activation), hook))
        how = Extras(math=math, accumulator=accumulator), Wanted(kernel, split_k)
        return _graph("bmm", 3, a, b, out, dtype, device, stream, run, epilogue, args or {}, *how, again)
    if args:
        raise UnsupportedError(f"bmm: expected args with an epilogue only, got {', '.join(args)}")
    if plain and math == "default" and accumulator is None:
        if again:
            done = _BMM.again((dtype, True), a, b) if out is None else _BMM.again((dtype, False), a, b, out)
            if done is not None:
                return done
        extras = Extras()
        return _computed("bmm", 3, a, b, out, dtype, extras, device, stream, run, wanted=Wanted(kernel, split_k))
    extras = Extras(alpha, beta, c, bias, spelled(activation), hook, math, accumulator)
    if again:
        done = FUSED[3].again((dtype, out is None, extras.key), *given_of(a, b, out, extras))
        if done is not None:
            return done
    return _computed("bmm", 3, a, b, out, dtype, extras, device, stream, run, wanted=Wanted(kernel, split_k))


def _scaled(accum: Any, alpha: Any) -> Any:
    """Return the accumulators times a factor for each matrix."""
    return accum * alpha


def _is_alone(
    c: object, bias: object, activation: object, hook: object, epilogue: object
) -> bool:  # fmt: skip
    """Return True if a call has no epilogue besides ``alpha``."""
    return c is None and bias is None and not activation and hook is None and epilogue is None


def _factor(call: str, name: str, value: Any) -> float:
    """Return a factor given as an array of one element as a number; waits for it if it is on a GPU.

    Raises ShapeError for several elements, DtypeError for no number.
    """
    if isinstance(value, str | bytes):
        raise DtypeError(f"{call}: {name} is a {type(value).__name__}; pass a number")
    shape = getattr(value, "shape", None)
    if shape is not None and prod(shape) != 1:
        more = ""
        if call == "bmm" and name == "alpha":
            more = "; one for each matrix, (L,), is allowed without c, bias, activation, hook and epilogue"
        raise ShapeError(
            f"{call}: {name} has shape {tuple(shape)}; pass a number or an array of one element{more}; an epilogue "
            "takes factors of any shape as args"
        )
    if getattr(value, "requires_grad", False) and sys.modules["torch"].is_grad_enabled():
        raise UnsupportedError(f"{call}: {name} has no gradient; pass a number, or {name}.detach()")
    try:
        return float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError):
        raise DtypeError(f"{call}: {name} is a {type(value).__name__}; pass a number") from None


def given_of(a: Any, b: Any, out: Any, extras: Extras) -> tuple[Any, ...]:
    """Return the arrays of a call, those that there are."""
    return (a, b, *extras.tensors) if out is None else (a, b, out, *extras.tensors)


def _graph(
    call: str, rank: int, a: Any, b: Any, out: Any, dtype: object, device: object, stream: object, run: Interpreted,
    epilogue: Any, args: Mapping[str, Any], sums: Extras, wanted: Wanted, again: bool,
) -> Any:  # fmt: skip
    """Compute a product with an epilogue; ``sums``: how they are made; ``again``: it may be as one before."""
    key = None
    if again and isinstance(epilogue, Traced):  # a plain function is traced at each call
        key = graph_key(a, b, out, (epilogue, dtype, sums.math, sums.accumulator), args)
        done = GRAPHS[rank].again(key[0], *key[1])
        if done is not None:
            return done
        if epilogue.is_random:
            key = None  # each seed would be a call of its own
    return _computed(call, rank, a, b, out, dtype, sums, device, stream, run, epilogue, args, wanted=wanted, key=key)


def graph_key(a: Any, b: Any, out: Any, how: tuple[object, ...], args: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """Return what tells a call with an epilogue from others, and its arrays."""
    tensors = [a, b] if out is None else [a, b, out]
    said: list[object] = [*how, out is None]
    for name, x in args.items():
        if isinstance(x, bool | int | float):
            said += (name, number(x))
        else:
            said.append(name)
            tensors.append(x)
    return tuple(said), tensors


def _ask_torch() -> bool:
    """Tell whether ``torch.compile`` traces this call, where torch is imported."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_dynamo_compiling()


def _is_mapped(torch: Any, tensors: list[Any]) -> bool:
    """Tell whether tensors are those of ``torch.vmap`` and the like, which have no memory."""
    if torch._C._functorch.peek_interpreter_stack() is None:
        return False
    from cute_dialect.op.torch_vmap import wrapped

    return wrapped(*tensors)


_tracing: Callable[[], bool] = _ask_torch
"""Tells whether ``torch.compile`` traces this call: torch's own function, once a tensor was met."""


def _computed(
    call: str, rank: int, a: Any, b: Any, out: Any, dtype: object, extras: Extras, device: object, stream: object,
    run: Interpreted, graph: Any = None, args: Mapping[str, Any] | None = None, *, wanted: Wanted,
    key: tuple[object, Sequence[Any]] | None = None,
) -> Any:  # fmt: skip
    """Compute a product that no call before was like, or let torch's dispatcher do it; ``key``: what tells one with an
    epilogue from others, where it is to be remembered.
    """
    global _tracing
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(a, torch.Tensor):
        given: list[Any] = [
            t for t in (a, b, out, extras.c, extras.bias, *(args or {}).values()) if isinstance(t, torch.Tensor)
        ]
        plain = (torch.Tensor, torch.nn.Parameter)
        usual = device is None and stream is None and not run and wanted == ANY and extras.usual
        factors = usual and out is None and graph is None and isinstance(b, torch.Tensor)
        if factors and torch.is_grad_enabled() and (a.requires_grad or b.requires_grad):
            from cute_dialect.op.operators import plain_product

            done = plain_product(call, a, b, dtype)
            if done is not None:
                return done
        if (
            _tracing()
            or (torch.is_grad_enabled() and any([t.requires_grad for t in given]))
            or any([type(t) not in plain for t in given])
            or _is_mapped(torch, given)
        ):
            mapped = _tracing() or _is_mapped(torch, given)
            if graph is not None and not mapped and all([type(t) in plain for t in given]):
                from cute_dialect.op.epilogue.autograd import product_with_gradients

                said = {"kernel": wanted.kernel, "split_k": wanted.split_k, **run}
                sums = extras.accumulator and element_name(extras.accumulator)
                how = {"math": extras.math, "accumulator": sums}
                more = (graph, args or {}, how, {n: x for n, x in said.items() if x is not None})
                return product_with_gradients(call, a, b, out, dtype, device, stream, *more)
            from cute_dialect.op.operators import by_operator

            others = {"kernel": wanted.kernel, "split_k": wanted.split_k, "epilogue": graph, **run}
            return by_operator(call, a, b, out, dtype, extras, device, stream, others)
        _tracing = torch.compiler.is_dynamo_compiling

    def compute() -> Any:
        return product(call, rank, a, b, out, dtype, extras, device, stream, run, graph, args or {}, wanted)

    if device is not None or stream is not None or run or wanted != ANY:
        return compute()
    if graph is not None:
        return compute() if key is None else GRAPHS[rank].recorded(*key, compute)
    if extras.usual:
        return PLAIN[rank].recorded((dtype, out is None), (a, b) if out is None else (a, b, out), compute)
    return FUSED[rank].recorded((dtype, out is None, extras.key), given_of(a, b, out, extras), compute)
