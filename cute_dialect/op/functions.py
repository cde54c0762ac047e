"""Products as torch spells them, by :func:`~cute_dialect.op.gemm.mm` and :func:`~cute_dialect.op.gemm.bmm`: what is
added comes first (``addmm``, ``baddbmm``), weights are (N, K) (``linear``), ranks are any (``matmul``).
"""

# Arrays are of any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.activations import spelled
from cute_dialect.op.dtypes import element_name
from cute_dialect.op.errors import DtypeError, ShapeError, UnsupportedError
from cute_dialect.op.gemm import bmm, mm
from cute_dialect.op.keywords import check_keywords

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.kernels.activations import Spelled
    from cute_dialect.op.product import Interpreted

__all__ = ["addmm", "baddbmm", "int_mm", "linear", "matmul"]


def addmm(
    c: Any,
    a: Any,
    b: Any,
    *,
    beta: Any = 1.0,
    alpha: Any = 1.0,
    out: Any = None,
    **more: Any,
) -> Any:
    """Return ``beta * c + alpha * a @ b``: (M, K) (K, N) -> (M, N), to which ``c`` expands; ``more``: as of
    :func:`~cute_dialect.op.gemm.mm`.
    """
    if more:
        check_keywords("addmm", addmm, more, also=mm)
    return mm(a, b, out, alpha=alpha, beta=beta, c=c, **more)


def baddbmm(
    c: Any,
    a: Any,
    b: Any,
    *,
    beta: Any = 1.0,
    alpha: Any = 1.0,
    out: Any = None,
    **more: Any,
) -> Any:
    """Return ``beta * c + alpha * a @ b`` of each matrix of a batch: (L, M, K) (L, K, N) -> (L, M, N), to which ``c``
    expands; ``more``: as of :func:`~cute_dialect.op.gemm.bmm`.
    """
    if more:
        check_keywords("baddbmm", baddbmm, more, also=bmm)
    return bmm(a, b, out, alpha=alpha, beta=beta, c=c, **more)


def int_mm(a: Any, b: Any, **more: Any) -> Any:
    """Return the product of matrices of 8-bit integers, signed or not, as int32 (or ``dtype``), (M, K) (K, N) ->
    (M, N); ``more``: as of :func:`~cute_dialect.op.gemm.mm`.  Raises DtypeError for other elements.
    """
    if more:
        check_keywords("int_mm", int_mm, more, also=mm)
    for name, x in (("a", a), ("b", b)):
        if element_name(getattr(x, "dtype", type(x))) not in ("i8", "ui8"):
            raise DtypeError(f"int_mm: expected {name} of i8 or ui8, got {element_name(getattr(x, 'dtype', type(x)))}")
    return mm(a, b, **more)


def linear(x: Any, weight: Any, bias: Any = None, activation: Spelled = "", **more: Any) -> Any:
    """Return ``activation(x @ weight.T + bias)``: (…, K) (N, K) -> (…, N); ``bias``: (N,); ``more``: as of
    :func:`~cute_dialect.op.gemm.mm`, but ``out`` and ``c``.  Raises ShapeError, UnsupportedError.
    """
    for name in ("out", "c"):
        if name in more:
            raise UnsupportedError(f"linear: expected no {name}: mm and addmm take it")
    if more:
        check_keywords("linear", linear, more, also=mm, without=("a", "b", "out", "c"))
    _check_arrays("linear", x=x, weight=weight)
    if len(weight.shape) != 2 or len(x.shape) < 1 or x.shape[-1] != weight.shape[1]:
        raise ShapeError(
            f"linear: expected x of (…, K) and weight of (N, K), got {tuple(x.shape)} and {tuple(weight.shape)}"
        )
    torch = sys.modules.get("torch")
    if torch is not None and torch.is_grad_enabled() and isinstance(x, torch.Tensor) and not _tracing(torch):
        others = [t for t in (weight, bias) if t is not None]
        learns = all([isinstance(t, torch.Tensor) for t in others]) and any([t.requires_grad for t in (x, *others)])
        device = more.get("device")
        if learns and device in (None, "cpu") and len(more) <= ("device" in more):
            from cute_dialect.op import operators

            done = operators.linear(x, weight, bias, spelled(activation), device)
            if done is not None:
                return done
    rows = x if len(x.shape) == 2 else _rows(x)
    found = mm(rows, weight.T, bias=bias, activation=activation, **more)
    return found if len(x.shape) == 2 else found.reshape(*x.shape[:-1], weight.shape[0])


def matmul(
    a: Any,
    b: Any,
    *,
    alpha: Any = 1.0,
    dtype: object = None,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> Any:
    """Return ``alpha * a @ b`` by the rules of ``torch.matmul``.

    A vector is one row on the left, one column on the right, and is gone from the result; extents before the last two
    are those of a batch, and broadcast.  A batch of which one operand is the same for all is read once.  ``dtype``,
    ``device``, ``stream`` and ``run`` are those of :func:`~cute_dialect.op.gemm.mm`.  Raises ShapeError for shapes that
    do not fit.
    """
    if run:
        check_keywords("matmul", matmul, run)
    _check_arrays("matmul", a=a, b=b)
    if 0 in (len(a.shape), len(b.shape)):
        raise ShapeError(f"matmul: expected vectors, matrices or batches, got {tuple(a.shape)} and {tuple(b.shape)}")
    x, y = a[None] if len(a.shape) == 1 else a, b[:, None] if len(b.shape) == 1 else b
    batch = _broadcast(tuple(x.shape[:-2]), tuple(y.shape[:-2]))
    if batch is None or x.shape[-1] != y.shape[-2]:
        raise ShapeError(
            f"matmul: expected shapes that can be multiplied, got {tuple(a.shape)} and {tuple(b.shape)}"
        )  # fmt: skip
    m, n = x.shape[-2], y.shape[-1]
    if len(y.shape) == 2:  # all rows at once
        found = mm(_rows(x), y, alpha=alpha, dtype=dtype, device=device, stream=stream, **run)
    else:
        x, y = _flat(x, batch), _flat(y, batch)
        found = bmm(x, y, alpha=alpha, dtype=dtype, device=device, stream=stream, **run)
    return found.reshape((*batch, *((m,) if len(a.shape) > 1 else ()), *((n,) if len(b.shape) > 1 else ())))


def _tracing(torch: Any) -> bool:
    """Return True while ``torch.compile`` or ``torch.export`` traces."""
    return torch.compiler.is_compiling()


def _check_arrays(call: str, **arrays: Any) -> None:
    """Check that arrays can be given other shapes.  Raises DtypeError."""
    for name, x in arrays.items():
        if not hasattr(x, "shape") or not hasattr(x, "reshape"):
            raise DtypeError(f"{call}: expected {name} as an array with reshape, got {type(x).__name__}")


def _rows(x: Any) -> Any:
    """Return (rows, K) of (…, K), without rows too."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape that both expand to, None where there is none."""
    longer = max(len(a), len(b))
    pairs = list(zip((1,) * (longer - len(a)) + a, (1,) * (longer - len(b)) + b))
    if any(m != n and 1 not in (m, n) for m, n in pairs):
        return None
    return tuple([n if m == 1 else m for m, n in pairs])


def _flat(t: Any, batch: tuple[int, ...]) -> Any:
    """Return (L, rows, columns) of a batch; L is 1 where one matrix is for all."""
    *more, rows, columns = t.shape
    if all(size == 1 for size in more):
        return t.reshape(1, rows, columns)
    if hasattr(t, "expand"):
        wide = t.expand(*batch, rows, columns)
    else:
        import numpy as np

        wide = np.broadcast_to(t, (*batch, rows, columns))  # cupy's arrays take it over
    return wide.reshape(math.prod(batch), rows, columns)
