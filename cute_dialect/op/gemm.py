"""Matrix multiply on Hopper: ``mm`` and ``bmm`` as in torch."""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.gemm.epilogue import Epilogue, Hook
from cute_dialect.op.compiled import Runner, prepared_launch
from cute_dialect.op.dtypes import both, result_of
from cute_dialect.op.fused import Matrix, aligned_like, like, unfused
from cute_dialect.op.graphs import alone, bound, traced_of
from cute_dialect.op.known import Extras, KnownCalls
from cute_dialect.op.operands import check_addends, check_product, check_result, import_torch, matrix
from cute_dialect.op.ways import Way, epilogue_of, gpu_of, way_of

if TYPE_CHECKING:  # pragma: no cover
    import torch

    from cute_dialect.op.epilogue.tracing import Traced

__all__ = ["bmm", "mm"]

_MM, _BMM = KnownCalls(), KnownCalls()
"""Plain products that were computed."""


def mm(
    a: torch.Tensor,
    b: torch.Tensor,
    out: torch.Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    c: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    activation: str = "",
    hook: Hook | None = None,
    epilogue: Any = None,
    args: Mapping[str, Any] | None = None,
    dtype: torch.dtype | None = None,
) -> Any:
    """Return ``activation(alpha * a @ b + beta * c + bias)`` for f16, bf16, f32 (in tf32), 8-bit floats and 8-bit
    integers, on a Hopper GPU.

    ``a``: (M, K), ``b``: (K, N), each with a contiguous mode; ``out``: (M, N), row-major; ``dtype``: of the result
    where there is no ``out``, else that of ``a`` (bf16 for 8-bit floats, int32 for integers).  ``c``: like the
    result, may be ``out``, as in ``torch.addmm``; ``bias``: (N,), a value a column, or (M, 1), a value a row.
    ``activation``: relu, gelu, gelu_tanh or silu.  ``hook``: :data:`cute_dialect.kernels.gemm.epilogue.Hook`, always
    the same function for the same kernel.  All of that is in f32, on the sums; ``alpha`` and ``beta`` are arguments of
    the kernel.  Sums of integers are exact, also where integers are added to them.  Results are rounded once, to
    nearest even; as 8 bits, and as integers, they saturate.  ``epilogue``: in place of it all a function of the sums
    and of ``args`` by name, plain or traced (:func:`cute_dialect.op.epilogue.trace`); what is returned is what it
    returns; ``args`` may also have memory for its results.

    Matrices of f16 and bf16 whose rows or addresses are no multiples of 16 bytes go through a kernel without TMA, and
    torch does the rest; those of f32 and of 8 bits are copied, also where they are not contiguous along K
    (:func:`cute_dialect.op.explain` says so).  Raises ValueError for other types, shapes and devices, before anything
    is compiled; ImportError without torch.
    """
    if epilogue is not None:
        alone("mm", Extras(alpha, beta, c, bias, activation, hook))
        return _product("mm", 2, a, b, out, dtype, Extras(), epilogue, args or {})
    if alpha == 1.0 and c is None and bias is None and hook is None and not activation:
        done = _MM.again(a, b, out, dtype)
        return _product("mm", 2, a, b, out, dtype, Extras()) if done is None else done
    extras = Extras(alpha, beta, c, bias, activation, hook)
    done = _MM.again_with(a, b, out, dtype, extras)
    return _product("mm", 2, a, b, out, dtype, extras) if done is None else done


def bmm(
    a: torch.Tensor,
    b: torch.Tensor,
    out: torch.Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    c: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    activation: str = "",
    hook: Hook | None = None,
    epilogue: Any = None,
    args: Mapping[str, Any] | None = None,
    dtype: torch.dtype | None = None,
) -> Any:
    """Return the product of each matrix of ``a``, (L, M, K), with that of ``b``, (K, N) of (L, K, N): (L, M, N).

    One of them may be one for all, (1, M, K) or with stride 0.  The rest is as in :func:`mm`, the same for all
    matrices but ``c``, which expands to (L, M, N).  Where ``b`` is one for all, and the rows of ``a`` and ``out`` go on
    from matrix to matrix, it is the product of (L M, K) with (K, N).
    """
    if epilogue is not None:
        alone("bmm", Extras(alpha, beta, c, bias, activation, hook))
        return _product("bmm", 3, a, b, out, dtype, Extras(), epilogue, args or {})
    if alpha == 1.0 and c is None and bias is None and hook is None and not activation:
        done = _BMM.again(a, b, out, dtype)
        return _product("bmm", 3, a, b, out, dtype, Extras()) if done is None else done
    extras = Extras(alpha, beta, c, bias, activation, hook)
    done = _BMM.again_with(a, b, out, dtype, extras)
    return _product("bmm", 3, a, b, out, dtype, extras) if done is None else done


def _product(
    call: str, rank: int, a: Any, b: Any, out: Any, dtype: torch.dtype | None, extras: Extras, graph: Any = None,
    args: Mapping[str, Any] = MappingProxyType({}),
) -> Any:  # fmt: skip
    """Compute ``mm`` (``rank`` 2) or ``bmm`` (3); ``graph``, ``args``: an epilogue and its arguments."""
    torch = import_torch()
    call_of = (a, b, out, dtype)
    x, y = matrix(call, "a", a), matrix(call, "b", b)
    check_product(call, rank, a, b, x, y)
    shape = (y.matrices if x.matrices == 1 else x.matrices, x.shape[0], y.shape[1])[3 - rank :]
    traced = None if graph is None else traced_of(call, graph, args, shape)
    out = args.get("D") if out is None else out
    if out is None:
        if dtype is None:
            dtype = getattr(torch, result_of(a.dtype), a.dtype)
        d = torch.empty(shape, device=a.device, dtype=dtype)
        z = matrix(call, "out", d)
    else:
        d, z = out, matrix(call, "out", out)
        check_result(call, a, b, d, z, shape, dtype)
    alpha, beta, c, bias, activation, hook = extras
    if not extras.plain:
        check_addends(call, a, shape, {"c": c, "bias": bias}, {"alpha": alpha, "beta": beta})
        if hook is not None and not callable(hook):
            raise ValueError(f"{call}: hook: expected a function, got {hook!r}")
    c = None if beta == 0.0 else c
    if traced is not None:
        return _with_graph(call, rank, a, b, d, traced, args, x, y, z)
    if 0 in (*shape, x.shape[1]):  # nothing to multiply: sums of no terms
        if hook is not None:
            raise ValueError(f"{call}: expected matrices with elements for a hook")
        return unfused(torch.zeros(shape, device=a.device), d, alpha, beta, c, bias, activation)
    of_bias = (None, "") if bias is None else (tuple(bias.shape), str(bias.dtype))
    epilogue = epilogue_of(extras, *z.shape, *of_bias)
    way = _way(a.device, x, y, z, both(a.dtype, b.dtype), str(d.dtype), epilogue)
    if way.by_torch:
        if hook is not None:
            raise ValueError(
                f"{call}: expected matrices whose addresses and rows are multiples of 16 bytes, and an even number of "
                "columns, for a hook"
            )
        sums = torch.float32 if a.dtype.itemsize == 1 and a.dtype.is_floating_point else None
        return unfused(_product(call, rank, a, b, None, sums, Extras()), d, alpha, beta, c, bias, activation)
    result = d
    if c is not None and rank == 3 and way.folded:
        c = c.expand(shape).reshape(-1, shape[-1])
    given, d = _read(way, a, b, d, x, y)
    target = given[2] if given[2].dim() == 2 else given[2].permute(2, 0, 1)
    more: list[Any] = []
    if epilogue is not None:
        if c is not None:
            source = like(c, target)
            more.append(source if source.dim() == 2 else source.permute(1, 2, 0))
        if bias is not None:
            flat = bias.reshape(-1).contiguous()
            more.append(flat if flat.data_ptr() % 16 == 0 else flat.clone())
        more += [number for kind, number in ((epilogue.alpha, alpha), (epilogue.beta, beta)) if kind == "arg"]
    kernel = way.kernel()
    kernel(*given, *more)
    if "out" in way.copied:
        d.copy_(target)
    # What was copied would have to be copied again.
    read = [t for t in more if not isinstance(t, int | float)]
    in_place = all(t.data_ptr() == x.data_ptr() for t, x in zip(read, extras.tensors))
    if in_place and not way.copied and result.is_cuda:
        prepared = kernel.prepared(*given, *more) if isinstance(kernel, Runner) else prepared_launch(kernel, *given)
        if prepared is not None:
            (_MM if rank == 2 else _BMM).remember(*call_of, result, prepared, extras)
    return result


def _read(way: Way, a: Any, b: Any, d: Any, x: Matrix, y: Matrix) -> tuple[tuple[Any, Any, Any], Any]:
    """Return A, B and C as the kernel takes them, copied where it must be, and the result that C is (a copy) of."""
    if d.dim() == 3 and way.folded:
        a, b, d = a.reshape(-1, a.shape[-1]), b[0], d.view(-1, d.shape[-1])
    elif d.dim() == 3:  # one for all is one matrix to the kernel
        a, b = (t[:1] if m.step == 0 else t for t, m in ((a, x), (b, y)))
    a = aligned_like(a, 1).copy_(a) if "a" in way.copied else a
    b = aligned_like(b, 0).copy_(b) if "b" in way.copied else b
    target = aligned_like(d, 1) if "out" in way.copied else d
    if d.dim() == 2:
        return (a, b.t(), target), d
    return (a.permute(1, 2, 0), b.permute(2, 1, 0), target.permute(1, 2, 0)), d


def _with_graph(
    call: str, rank: int, a: Any, b: Any, d: Any, traced: Traced, args: Mapping[str, Any], x: Matrix, y: Matrix,
    z: Matrix,
) -> Any:  # fmt: skip
    """Compute a product and its epilogue; returns what the epilogue's function returns."""
    import torch

    def another(shape: tuple[int, ...]) -> Any:
        return torch.empty(shape, device=d.device, dtype=d.dtype)

    found = bound(traced, args, d, another)
    if 0 in (*d.shape, x.shape[1]):
        found.by_torch(torch.zeros(d.shape, device=d.device))
        return traced.formed(found.results)
    way = _way(a.device, x, y, z, both(a.dtype, b.dtype), str(d.dtype), Epilogue(graph=found.graph))
    if way.by_torch:
        wide = torch.float32 if a.dtype.itemsize == 1 and a.dtype.is_floating_point else None
        sums = _product(call, rank, a, b, None, wide, Extras())
        found.by_torch(sums.float())
        return traced.formed(found.results)
    given, target = _read(way, a, b, d, x, y)
    way.kernel()(*given, *found.operands)
    if "out" in way.copied:
        target.copy_(given[2] if target.dim() == 2 else given[2].permute(2, 0, 1))
    return traced.formed(found.results)


def _way(
    device: torch.device, a: Matrix, b: Matrix, out: Matrix, dtype: str, result: str, epilogue: Epilogue | None
) -> Way:  # fmt: skip
    return way_of(a, b, out, dtype, result, epilogue, *gpu_of(device))
