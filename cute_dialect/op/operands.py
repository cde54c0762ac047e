"""The operands of products, checked before a kernel is chosen or compiled: shapes, types, memory, what is added."""

from __future__ import annotations

from collections.abc import Mapping

from cute_dialect.kernels.activations import is_activation, unknown_activation
from cute_dialect.op.dtypes import can_mix
from cute_dialect.op.errors import DtypeError, EpilogueError, LayoutError, ShapeError
from cute_dialect.op.overlap import overlap, same_matrix
from cute_dialect.op.unfused import Matrix
from cute_dialect.runtime.arrays import ArrayView, numpy_dtype

__all__ = [
    "bias_mode",
    "check_activation",
    "check_addends",
    "check_product",
    "check_result",
    "matrix",
]


def matrix(x: ArrayView) -> Matrix:
    """Return how a matrix, or a batch of them, lies in memory."""
    item, address = numpy_dtype(x.dtype).itemsize, x.pointer % 16
    (*more, rows, columns), (*steps, row, column) = x.shape, x.strides
    one = Matrix((rows, columns), (row, column), item, address)
    return one._replace(matrices=more[0], step=steps[0] if more[0] > 1 else 0) if more else one


_OTHER = {
    (2, 1): "; matmul takes vectors",
    (3, 1): "; matmul takes vectors",
    (2, 3): "; bmm and matmul take batches",
    (3, 2): "; mm takes matrices",
}
"""(Rank wanted, rank given) -> which function takes that."""


def check_product(call: str, rank: int, a: ArrayView, b: ArrayView) -> tuple[int, ...]:
    """Check the factors of a product of matrices (``rank`` 2) or of batches of them (3); returns the result's shape.

    Raises ShapeError, DtypeError, LayoutError.
    """
    for name, x in (("a", a), ("b", b)):
        if len(x.shape) != rank:
            more = _OTHER.get((rank, len(x.shape)), "; matmul takes any rank" if len(x.shape) > 3 else "")
            raise ShapeError(f"{call}: expected {name} of rank {rank}, got {tuple(x.shape)}{more}")
    if a.shape[-1] != b.shape[-2]:
        wanted = f"({'L, ' if rank == 3 else ''}{a.shape[-1]}, N)"
        raise ShapeError(f"{call}: expected b of {wanted}, as a is {tuple(a.shape)}, got {tuple(b.shape)}")
    matrices: tuple[int, ...] = ()
    if rank == 3:
        if a.shape[0] != b.shape[0] and 1 not in (a.shape[0], b.shape[0]):
            raise ShapeError(
                f"{call}: expected as many matrices in b as in a ({a.shape[0]}) or one, got {b.shape[0]}"
            )  # fmt: skip
        matrices = (b.shape[0] if a.shape[0] == 1 else a.shape[0],)
    if not can_mix(a.dtype, b.dtype):
        raise DtypeError(f"{call}: expected b of {a.dtype}, as a, got {b.dtype}")
    for name, x in (("a", a), ("b", b)):
        _check_mode(call, name, x)
    return (*matrices, a.shape[-2], b.shape[-1])


def _check_mode(call: str, name: str, x: ArrayView) -> None:
    m = matrix(x)
    if not m.along(1) and not m.along(0) and 0 not in x.shape:
        raise LayoutError(f"{call}: expected {name} with a contiguous mode, got strides {tuple(x.strides[-2:])}")


def check_result(
    call: str, views: Mapping[str, ArrayView], shape: tuple[int, ...], dtype: str | None, *, arranged: bool = False
) -> None:  # fmt: skip
    """Check ``out`` that was given; ``arranged``: reshaped or permuted, by any strides.

    Raises ShapeError, DtypeError, LayoutError.
    """
    out = views["out"]
    if tuple(out.shape) != shape:
        raise ShapeError(f"{call}: expected out of {shape}, got {tuple(out.shape)}")
    if dtype is not None and dtype != out.dtype:
        raise DtypeError(f"{call}: expected dtype {out.dtype}, as out has, got {dtype}")
    if not arranged:
        _check_mode(call, "out", out)
    reach = 0
    for step, n in sorted((abs(step), n) for n, step in zip(out.shape, out.strides) if n > 1):
        if step <= reach and 0 not in shape:
            raise LayoutError(
                f"{call}: expected out with memory of its own for each element, got strides {tuple(out.strides)}"
            )
        reach += step * (n - 1)
    for name, view in views.items():
        if name not in ("out", "c") and overlap(view, out):
            raise LayoutError(f"{call}: out shares memory with {name}; only c may be out")
    c = views.get("c")
    if c is not None and not same_matrix(c, out) and overlap(c, out):
        raise LayoutError(f"{call}: out shares memory with c, which is not the same matrix")


def check_addends(
    call: str, views: Mapping[str, ArrayView], shape: tuple[int, ...], numbers: Mapping[str, object]
) -> None:
    """Check ``c`` and ``bias``, those that were given, and ``alpha`` and ``beta``.  Raises ShapeError, DtypeError."""
    for name, value in numbers.items():
        if not isinstance(value, int | float):
            raise DtypeError(f"{call}: expected a number for {name}, got {value!r}")
    if "c" in views:
        found = tuple(views["c"].shape)
        if len(found) > len(shape) or any(n not in (1, m) for n, m in zip(found[::-1], shape[::-1])):
            raise ShapeError(f"{call}: expected c of {shape}, or what expands to it, got {found}")
    if "bias" in views:
        bias_mode(call, tuple(views["bias"].shape), *shape[-2:])


def bias_mode(call: str, shape: tuple[int, ...], m: int, n: int) -> str:
    """Return ``n`` for a bias of a value a column, ``m`` for one a row.  Raises ShapeError for other shapes."""
    if shape in ((n,), (1, n)):
        return "n"
    if shape == (m, 1):
        return "m"
    raise ShapeError(f"{call}: expected a bias of ({n},), (1, {n}) or ({m}, 1), got {shape}")


def check_activation(call: str, activation: object, hook: object) -> None:
    """Check what becomes of the sums.  Raises EpilogueError."""
    if activation != "" and not is_activation(activation):
        raise EpilogueError(f"{call}: {unknown_activation(activation)}")
    if hook is not None and not callable(hook):
        raise EpilogueError(f"{call}: expected a function for hook, got {hook!r}")
