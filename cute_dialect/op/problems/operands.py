"""Checks of GEMM operands before a kernel is chosen: shapes, types, strides, addends."""

from __future__ import annotations

from collections.abc import Mapping

from cute_dialect.kernels.epilogue.activations import is_activation, unknown_activation
from cute_dialect.op.arrays.dtypes import can_mix
from cute_dialect.op.arrays.operand_views import Matrix, overlap, same_matrix
from cute_dialect.op.errors import DtypeError, EpilogueError, LayoutError, ShapeError
from cute_dialect.runtime.arrays import ArrayView, numpy_dtype

__all__ = [
    "bias_mode",
    "check_activation",
    "check_addends",
    "check_overlap",
    "check_product",
    "check_result",
    "matrix",
]


def matrix(x: ArrayView) -> Matrix:
    """Return the layout of a matrix, or of a batch."""
    item, address = numpy_dtype(x.dtype).itemsize, x.pointer % 16
    (*more, rows, columns), (*steps, row, column) = x.shape, x.strides
    one = Matrix((rows, columns), (row, column), item, address)
    return one._replace(matrices=more[0], step=steps[0] if more[0] > 1 else 0) if more else one


_OTHER = {
    (2, 1): "; use matmul for vectors",
    (3, 1): "; use matmul for vectors",
    (2, 3): "; use bmm or matmul for batches",
    (3, 2): "; use mm for matrices",
}
"""(Rank needed, rank found) -> the function that supports it."""


def check_product(call: str, rank: int, a: ArrayView, b: ArrayView) -> tuple[int, ...]:
    """Check the operands of a GEMM (``rank`` 2) or a batched GEMM (3), and return the result's shape.

    Raises ShapeError, DtypeError, LayoutError.
    """
    for name, x in (("a", a), ("b", b)):
        if len(x.shape) != rank:
            more = _OTHER.get((rank, len(x.shape)), "; use matmul for other ranks" if len(x.shape) > 3 else "")
            raise ShapeError(f"{call}: {name} has shape {tuple(x.shape)}, but rank {rank} is needed{more}")
    if a.shape[-1] != b.shape[-2]:
        wanted = f"({'L, ' if rank == 3 else ''}{a.shape[-1]}, N)"
        raise ShapeError(f"{call}: b has shape {tuple(b.shape)}, but a has shape {tuple(a.shape)}; pass b of {wanted}")
    matrices: tuple[int, ...] = ()
    if rank == 3:
        if a.shape[0] != b.shape[0] and 1 not in (a.shape[0], b.shape[0]):
            raise ShapeError(
                f"{call}: b has {b.shape[0]} matrices, but a has {a.shape[0]}; pass {a.shape[0]}, or one"
            )  # fmt: skip
        matrices = (b.shape[0] if a.shape[0] == 1 else a.shape[0],)
    if not can_mix(a.dtype, b.dtype):
        raise DtypeError(f"{call}: b has dtype {b.dtype}, but a has dtype {a.dtype}; pass operands of one dtype")
    for name, x in (("a", a), ("b", b)):
        _check_mode(call, name, x)
    return (*matrices, a.shape[-2], b.shape[-1])


def _check_mode(call: str, name: str, x: ArrayView) -> None:
    m = matrix(x)
    if not m.along(1) and not m.along(0) and 0 not in x.shape:
        raise LayoutError(
            f"{call}: {name} has strides {tuple(x.strides[-2:])}, but one must be 1; pass a contiguous copy"
        )


def check_result(
    call: str, out: ArrayView, shape: tuple[int, ...], dtype: str | None, *, arranged: bool = False
) -> None:  # fmt: skip
    """Check a given ``out``; ``arranged``: the epilogue reshapes or permutes it, so any strides are allowed.

    Raises ShapeError, DtypeError, LayoutError.
    """
    if tuple(out.shape) != shape:
        raise ShapeError(f"{call}: out has shape {tuple(out.shape)}; pass out of shape {shape}")
    if dtype is not None and dtype != out.dtype:
        raise DtypeError(f"{call}: dtype is {dtype}, but out has dtype {out.dtype}; omit dtype")
    if not arranged:
        _check_mode(call, "out", out)
    reach = 0
    for step, n in sorted((abs(step), n) for n, step in zip(out.shape, out.strides) if n > 1):
        if step <= reach and 0 not in shape:
            raise LayoutError(
                f"{call}: out has strides {tuple(out.strides)}, so its elements share memory; pass a contiguous out"
            )
        reach += step * (n - 1)


def check_overlap(call: str, views: Mapping[str, ArrayView]) -> None:
    """Check that a given ``out`` shares no memory with other arrays, unless it is ``c``.  Raises LayoutError."""
    out = views["out"]
    for name, view in views.items():
        if name not in ("out", "c") and overlap(view, out):
            raise LayoutError(f"{call}: out shares memory with {name}; pass a separate out (only c may be out)")
    c = views.get("c")
    if c is not None and not same_matrix(c, out) and overlap(c, out):
        raise LayoutError(f"{call}: out shares memory with c, but is not the same matrix; pass c itself or a copy")


def check_addends(
    call: str, views: Mapping[str, ArrayView], shape: tuple[int, ...], numbers: Mapping[str, object]
) -> None:
    """Check the given ones of ``c`` and ``bias``, and ``alpha`` and ``beta``.  Raises ShapeError, DtypeError."""
    for name, value in numbers.items():
        if not isinstance(value, int | float):
            raise DtypeError(f"{call}: {name} is {value!r}; pass a number")
    if "c" in views:
        found = tuple(views["c"].shape)
        if len(found) > len(shape) or any(n not in (1, m) for n, m in zip(found[::-1], shape[::-1])):
            raise ShapeError(f"{call}: c has shape {found}; pass an array that broadcasts to {shape}")
    if "bias" in views:
        bias_mode(call, tuple(views["bias"].shape), *shape[-2:])


def bias_mode(call: str, shape: tuple[int, ...], m: int, n: int) -> str:
    """Return ``n`` for a per-column bias, ``m`` for a per-row bias.  Raises ShapeError for other shapes."""
    if shape in ((n,), (1, n)):
        return "n"
    if shape == (m, 1):
        return "m"
    raise ShapeError(f"{call}: bias has shape {shape}; pass a bias of ({n},), (1, {n}) or ({m}, 1)")


def check_activation(call: str, activation: object, hook: object) -> None:
    """Check an activation and a hook.  Raises EpilogueError."""
    if activation != "" and not is_activation(activation):
        raise EpilogueError(f"{call}: {unknown_activation(activation)}")
    if hook is not None and not callable(hook):
        raise EpilogueError(f"{call}: hook is {hook!r}; pass a function")
