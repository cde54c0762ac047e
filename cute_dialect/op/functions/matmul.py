"""GEMMs with torch's signatures: ``addmm``, ``baddbmm``, ``int_mm``, ``linear`` and ``matmul``.

They call :func:`~cute_dialect.op.functions.gemm.mm` and :func:`~cute_dialect.op.functions.gemm.bmm`.
"""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.epilogue.activations import spelled
from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.errors import DtypeError, ShapeError, UnsupportedError
from cute_dialect.op.execute.call_cache import KnownCalls, number
from cute_dialect.op.functions.gemm import bmm, mm
from cute_dialect.op.keywords import check_keywords

if TYPE_CHECKING:
    from cute_dialect.op.signature_types import Array, Factor


if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.kernels.epilogue.activations import Spelled
    from cute_dialect.op.signature_types import Interpreted

__all__ = ["addmm", "baddbmm", "int_mm", "linear", "matmul"]


def addmm(
    c: Array,
    a: Array,
    b: Array,
    *,
    beta: Factor = 1.0,
    alpha: Factor = 1.0,
    out: Array = None,
    **more: Any,
) -> Array:
    """Return ``beta * c + alpha * a @ b``.

    Args:
        c: an array that broadcasts to (M, N).
        a: (M, K).
        b: (K, N).
        more: further arguments of :func:`~cute_dialect.op.functions.gemm.mm`.
    """
    if more:
        check_keywords("addmm", addmm, more, also=mm)
    if c is None:
        raise DtypeError("addmm: c is None; pass an array, or call mm")
    return mm(a, b, out, alpha=alpha, beta=beta, c=c, **more)


def baddbmm(
    c: Array,
    a: Array,
    b: Array,
    *,
    beta: Factor = 1.0,
    alpha: Factor = 1.0,
    out: Array = None,
    **more: Any,
) -> Array:
    """Return ``beta * c + alpha * a @ b`` for each matrix of a batch.

    Args:
        c: an array that broadcasts to (L, M, N).
        a: (L, M, K).
        b: (L, K, N).
        more: further arguments of :func:`~cute_dialect.op.functions.gemm.bmm`.
    """
    if more:
        check_keywords("baddbmm", baddbmm, more, also=bmm)
    if c is None:
        raise DtypeError("baddbmm: c is None; pass an array, or call bmm")
    return bmm(a, b, out, alpha=alpha, beta=beta, c=c, **more)


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
    return mm(a, b, **more)


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
        found = mm(rows, weight.T, bias=bias, activation=activation, **more)
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
        )  # fmt: skip
    m, n = x.shape[-2], y.shape[-1]
    learns = _learns([a, b])

    def compute() -> Any:
        if learns and usual and alpha == 1 and dtype is None and len(a.shape) > 2 and len(b.shape) == 2:
            done = _layer(a, b, None, "", None, transposed=True)
            if done is not None:
                return done
        if len(y.shape) == 2:  # One GEMM over all rows.
            found = mm(_rows(x), y, alpha=alpha, dtype=dtype, device=device, stream=stream, **run)
        else:
            of = _flat(x, batch), _flat(y, batch)
            found = bmm(*of, alpha=alpha, dtype=dtype, device=device, stream=stream, **run)
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
    if torch is None or not torch.is_grad_enabled() or torch.compiler.is_compiling():
        return False
    return all([isinstance(t, torch.Tensor) for t in arrays]) and any([t.requires_grad for t in arrays])


def _check_arrays(call: str, **arrays: Any) -> None:
    """Raise DtypeError if an argument is not an array that can be reshaped."""
    for name, x in arrays.items():
        if not hasattr(x, "shape") or not hasattr(x, "reshape"):
            raise DtypeError(f"{call}: {name} is of type {type(x).__name__}; pass an array with a reshape method")


def _rows(x: Any) -> Any:
    """Return (…, K) as (rows, K), also if there are no rows."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


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
    return wide.reshape(math.prod(batch), rows, columns)
