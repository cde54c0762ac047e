"""Matrix multiply on Hopper: ``mm`` and ``bmm`` as in torch."""

# Arrays are of any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.activations import Spelled, spelled
from cute_dialect.kernels.gemm.epilogue import Hook
from cute_dialect.op.choosing.wanted import ANY, Wanted
from cute_dialect.op.dtypes import element_name
from cute_dialect.op.epilogue.bound import alone
from cute_dialect.op.epilogue.known import KnownGraphs
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.known import Extras, KnownCalls
from cute_dialect.op.product import Interpreted, product

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

__all__ = ["bmm", "mm"]

MM, BMM = KnownCalls(), KnownCalls()
"""Plain products that were computed."""
GRAPHS: dict[object, KnownGraphs] = {2: KnownGraphs(), 3: KnownGraphs()}
"""Products with epilogues that were, by the rank of their operands; of sums that are not as usual, also by these."""


def mm(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
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
    (:data:`cute_dialect.op.epilogue.ACTIVATIONS`).  ``hook``: :data:`cute_dialect.kernels.gemm.epilogue.Hook`, always
    the same function for the same kernel.  All of that is in f32, on the sums; ``alpha`` and ``beta`` are arguments of
    the kernel.  Where ``beta`` is 0, ``c`` is not read; where ``alpha`` is 0, nothing is multiplied.  Sums of integers
    are exact, also where integers are added to them.  Results are rounded once, to nearest even; as 8 bits, and as
    integers, they saturate.  ``epilogue``: in place of it all a function of the sums and of ``args`` by name, plain or
    traced (:func:`cute_dialect.op.epilogue.trace`); what is returned is what it returns; ``args`` may also have memory
    for its results.

    Matrices of f16 and bf16 whose rows or addresses are no multiples of 16 bytes go through a kernel without TMA, and
    the arrays' library does the rest; those of f32 and of 8 bits are copied, also where they are not contiguous along K
    (:func:`cute_dialect.op.explain` says so).

    ``kernel``: the one to take, a :class:`Choice`, its name (as :func:`cute_dialect.op.explain` tells it) or a
    :class:`TileDescription`; ``split_k``: how many blocks share K, of a kernel that is chosen.  By default both are.

    ``device``: ``"cpu"`` for the interpreter, which takes numpy arrays and CPU tensors, and what ``run`` has; or a
    GPU's number, for numpy arrays.  ``stream``: of torch, cupy or cuda-python, by default the library's current one.
    Raises subclasses of OpError before anything is compiled or written.
    """
    if epilogue is not None:
        alone("mm", Extras(alpha, beta, c, bias, spelled(activation), hook))
        how = Extras(math=math, accumulator=accumulator), Wanted(kernel, split_k)
        return _graph("mm", 2, a, b, out, dtype, device, stream, run, epilogue, args or {}, *how)
    if args:
        raise UnsupportedError(f"mm: expected args with an epilogue only, got {', '.join(args)}")
    usual = math == "default" and accumulator is None
    if alpha == 1.0 and c is None and bias is None and hook is None and not activation and usual:
        if device is None and stream is None and kernel is None and split_k is None and not run and not _tracing():
            done = MM.again(a, b, out, dtype)
            if done is not None:
                return done
        return _computed("mm", 2, a, b, out, dtype, Extras(), device, stream, run, MM, wanted=Wanted(kernel, split_k))
    extras = Extras(alpha, beta, c, bias, spelled(activation), hook, math, accumulator)
    if device is None and stream is None and kernel is None and split_k is None and not run and not _tracing():
        done = MM.again_with(a, b, out, dtype, extras)
        if done is not None:
            return done
    return _computed("mm", 2, a, b, out, dtype, extras, device, stream, run, MM, wanted=Wanted(kernel, split_k))


def bmm(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
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
    matrices but ``c``, which expands to (L, M, N).  Where ``b`` is one for all, and the rows of ``a`` and ``out`` go on
    from matrix to matrix, it is the product of (L M, K) with (K, N).
    """
    if epilogue is not None:
        alone("bmm", Extras(alpha, beta, c, bias, spelled(activation), hook))
        how = Extras(math=math, accumulator=accumulator), Wanted(kernel, split_k)
        return _graph("bmm", 3, a, b, out, dtype, device, stream, run, epilogue, args or {}, *how)
    if args:
        raise UnsupportedError(f"bmm: expected args with an epilogue only, got {', '.join(args)}")
    usual = math == "default" and accumulator is None
    if alpha == 1.0 and c is None and bias is None and hook is None and not activation and usual:
        if device is None and stream is None and kernel is None and split_k is None and not run and not _tracing():
            done = BMM.again(a, b, out, dtype)
            if done is not None:
                return done
        return _computed("bmm", 3, a, b, out, dtype, Extras(), device, stream, run, BMM, wanted=Wanted(kernel, split_k))
    extras = Extras(alpha, beta, c, bias, spelled(activation), hook, math, accumulator)
    if device is None and stream is None and kernel is None and split_k is None and not run and not _tracing():
        done = BMM.again_with(a, b, out, dtype, extras)
        if done is not None:
            return done
    return _computed("bmm", 3, a, b, out, dtype, extras, device, stream, run, BMM, wanted=Wanted(kernel, split_k))


def _graph(
    call: str, rank: int, a: Any, b: Any, out: Any, dtype: object, device: object, stream: object, run: Interpreted,
    epilogue: Any, args: Mapping[str, Any], sums: Extras, wanted: Wanted,
) -> Any:  # fmt: skip
    """Compute a product with an epilogue; ``sums``: how they are made."""
    known = GRAPHS[rank] if sums.usual else None
    if device is None and stream is None and known is not None and wanted == ANY and not run and not _tracing():
        done = known.again(a, b, out, dtype, epilogue, args)
        if done is not None:
            return done
    given = (a, b, out, dtype, sums, device, stream, run, known, epilogue, args)
    return _computed(call, rank, *given, wanted=wanted)


def _ask_torch() -> bool:
    """Tell whether ``torch.compile`` traces this call, where torch is imported."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_dynamo_compiling()


def _is_mapped(torch: Any, tensors: list[Any]) -> bool:
    """Tell whether tensors are those of ``torch.vmap`` and the like, which have no memory."""
    if torch._C._functorch.peek_interpreter_stack() is None:
        return False
    from cute_dialect.op.vmaps import wrapped

    return wrapped(*tensors)


_tracing: Callable[[], bool] = _ask_torch
"""Tells whether ``torch.compile`` traces this call: torch's own function, once a tensor was met."""


def _computed(
    call: str, rank: int, a: Any, b: Any, out: Any, dtype: object, extras: Extras, device: object, stream: object,
    run: Interpreted, known: Any, graph: Any = None, args: Mapping[str, Any] | None = None, *, wanted: Wanted,
) -> Any:  # fmt: skip
    """Compute a product that no call before was like, or let torch's dispatcher do it."""
    global _tracing
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(a, torch.Tensor):
        given: list[Any] = [
            t for t in (a, b, out, extras.c, extras.bias, *(args or {}).values()) if isinstance(t, torch.Tensor)
        ]
        plain = (torch.Tensor, torch.nn.Parameter)
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
    return product(call, rank, a, b, out, dtype, extras, device, stream, run, known, graph, args or {}, wanted)
