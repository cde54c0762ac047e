"""Products as torch spells them, by :func:`~cute_dialect.op.gemm.mm` and :func:`~cute_dialect.op.gemm.bmm`: what is
added comes first (``addmm``, ``baddbmm``), weights are (N, K) (``linear``), ranks are any (``matmul``).
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cute_dialect.op.errors import DtypeError
from cute_dialect.op.gemm import bmm, mm
from cute_dialect.op.operands import import_torch

if TYPE_CHECKING:  # pragma: no cover
    import torch

__all__ = ["addmm", "baddbmm", "int_mm", "linear", "matmul"]


def addmm(
    c: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    beta: float = 1.0,
    alpha: float = 1.0,
    out: torch.Tensor | None = None,
    **more: Any,
) -> torch.Tensor:
    """Return ``beta * c + alpha * a @ b``: (M, K) (K, N) -> (M, N), to which ``c`` expands; ``more``: as of
    :func:`~cute_dialect.op.gemm.mm`.
    """
    return mm(a, b, out, alpha=alpha, beta=beta, c=c, **more)


def baddbmm(
    c: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    beta: float = 1.0,
    alpha: float = 1.0,
    out: torch.Tensor | None = None,
    **more: Any,
) -> torch.Tensor:
    """Return ``beta * c + alpha * a @ b`` of each matrix of a batch: (L, M, K) (L, K, N) -> (L, M, N), to which ``c``
    expands; ``more``: as of :func:`~cute_dialect.op.gemm.bmm`.
    """
    return bmm(a, b, out, alpha=alpha, beta=beta, c=c, **more)


def int_mm(a: torch.Tensor, b: torch.Tensor, **more: Any) -> torch.Tensor:
    """Return the product of matrices of 8-bit integers, signed or not, as int32 (or ``dtype``), (M, K) (K, N) ->
    (M, N); ``more``: as of :func:`~cute_dialect.op.gemm.mm`.  Raises DtypeError for other elements.
    """
    for name, t in (("a", a), ("b", b)):
        if str(t.dtype) not in ("torch.int8", "torch.uint8"):
            raise DtypeError(f"int_mm: expected {name} of i8 or ui8, got {t.dtype}")
    return mm(a, b, **more)


def linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    activation: str = "",
    **more: Any,
) -> torch.Tensor:
    """Return ``activation(x @ weight.T + bias)``: (…, K) (N, K) -> (…, N); ``bias``: (N,); ``more``: as of
    :func:`~cute_dialect.op.gemm.mm`, but ``out`` and ``c``.  Raises ValueError.
    """
    for name in ("out", "c"):
        if name in more:
            raise ValueError(f"linear: expected no {name}: mm and addmm take it")
    if weight.dim() != 2 or x.dim() < 1 or x.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"linear: expected x of (…, K) and weight of (N, K), got {tuple(x.shape)} and {tuple(weight.shape)}"
        )
    rows = x.reshape(-1, x.shape[-1])
    return mm(rows, weight.t(), bias=bias, activation=activation, **more).view(*x.shape[:-1], weight.shape[0])


def matmul(
    a: torch.Tensor, b: torch.Tensor, *, alpha: float = 1.0, dtype: torch.dtype | None = None
) -> torch.Tensor:  # fmt: skip
    """Return ``alpha * a @ b`` by the rules of ``torch.matmul``.

    A vector is one row on the left, one column on the right, and is gone from the result; extents before the last two
    are those of a batch, and broadcast.  A batch of which one operand is the same for all is read once.  Raises
    ValueError for shapes that do not fit.
    """
    torch = import_torch()
    if 0 in (a.dim(), b.dim()):
        raise ValueError(f"matmul: expected vectors, matrices or batches, got {tuple(a.shape)} and {tuple(b.shape)}")
    x, y = a[None] if a.dim() == 1 else a, b[:, None] if b.dim() == 1 else b
    try:
        batch = tuple(torch.broadcast_shapes(x.shape[:-2], y.shape[:-2]))
    except RuntimeError:
        batch = None
    if batch is None or x.shape[-1] != y.shape[-2]:
        raise ValueError(
            f"matmul: expected shapes that can be multiplied, got {tuple(a.shape)} and {tuple(b.shape)}"
        )  # fmt: skip
    m, n = x.shape[-2], y.shape[-1]
    if y.dim() == 2:  # all rows at once
        found = mm(x.reshape(-1, x.shape[-1]), y, alpha=alpha, dtype=dtype)
    else:
        found = bmm(_flat(x, batch), _flat(y, batch), alpha=alpha, dtype=dtype)
    return found.view((*batch, *((m,) if a.dim() > 1 else ()), *((n,) if b.dim() > 1 else ())))


def _flat(t: torch.Tensor, batch: tuple[int, ...]) -> torch.Tensor:
    """Return (L, rows, columns) of a batch; L is 1 where one matrix is for all."""
    rows, columns = t.shape[-2:]
    if all(size == 1 for size in t.shape[:-2]):
        return t.reshape(1, rows, columns)
    return t.expand(*batch, rows, columns).reshape(-1, rows, columns)
