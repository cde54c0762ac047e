"""The operands of ``mm`` and ``bmm``: torch tensors on one GPU whose shapes fit, checked before a kernel is chosen or
compiled.

Usual calls pay for a few comparisons; who broke what is found out once something did.
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from cute_dialect.op.dtypes import can_mix
from cute_dialect.op.fused import Matrix

__all__ = ["check_addends", "check_product", "check_result", "import_torch", "matrix"]

NEEDS_TORCH = (
    "mm and bmm multiply torch tensors on a GPU and need torch (pip install torch); kernels alone take numpy arrays "
    "too: cute_dialect.pipelines.compile(…).kernel(…)"
)


def import_torch() -> ModuleType:
    """Return torch.  Raises ImportError, which says what to install."""
    try:
        import torch
    except ImportError as e:
        raise ImportError(NEEDS_TORCH) from e
    return torch


def matrix(call: str, name: str, t: Any) -> Matrix:
    """Return how an operand of ``call`` lies in memory.  Raises ValueError for what is no strided torch tensor."""
    try:
        shape, stride, item, address = t.shape, t.stride(), t.element_size(), t.data_ptr() % 16
    except (AttributeError, TypeError, RuntimeError) as e:
        kind = type(t)
        what = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        cure = f"torch.as_tensor({name}, device='cuda') makes one" if what == "numpy.ndarray" else str(e)
        raise ValueError(f"{call}: {name}: expected a strided torch tensor on a GPU, got {what}; {cure}") from None
    if len(shape) != 3:
        return Matrix(shape, stride, item, address)
    return Matrix(tuple(shape[1:]), stride[1:], item, address, shape[0], stride[0] if shape[0] > 1 else 0)


def check_product(call: str, rank: int, a: Any, b: Any, x: Matrix, y: Matrix) -> None:
    """Check the factors of a product of matrices (``rank`` 2) or of batches of them (3).  Raises ValueError."""
    for name, t in (("a", a), ("b", b)):
        if len(t.shape) != rank:
            what = "a matrix" if rank == 2 else "matrices, (L, rows, columns)"
            other = {(2, 3): "; bmm takes batches of them", (3, 2): "; mm takes one"}.get((rank, len(t.shape)), "")
            raise ValueError(f"{call}: {name}: expected {what}, got a tensor of shape {tuple(t.shape)}{other}")
    if x.shape[1] != y.shape[0]:
        raise ValueError(
            f"{call}: b: expected {x.shape[1]} rows, as a of shape {tuple(a.shape)} has columns, "
            f"got shape {tuple(b.shape)}"
        )
    if x.matrices != y.matrices and 1 not in (x.matrices, y.matrices):
        raise ValueError(f"{call}: b: expected as many matrices as in a, {x.matrices}, or one, got {y.matrices}")
    if not can_mix(a.dtype, b.dtype):
        raise ValueError(f"{call}: b: expected elements of {a.dtype}, as in a, got {b.dtype}")
    if a.device != b.device:
        raise ValueError(f"{call}: b: expected a tensor on {a.device}, as a is, got one on {b.device}")
    if not a.is_cuda:
        raise ValueError(f"{call}: a: expected a tensor on a GPU, got one on {a.device}: a.cuda() is there")


def check_result(
    call: str, a: Any, b: Any, out: Any, z: Matrix, shape: tuple[int, ...], dtype: object
) -> None:  # fmt: skip
    """Check ``out`` that was given.  Raises ValueError."""
    if tuple(out.shape) != shape:
        raise ValueError(f"{call}: out: expected shape {shape}, got {tuple(out.shape)}")
    if out.device != a.device:
        raise ValueError(f"{call}: out: expected a tensor on {a.device}, as a is, got one on {out.device}")
    if dtype is not None and dtype != out.dtype:
        raise ValueError(f"{call}: dtype: expected that of out, {out.dtype}, got {dtype}")
    for name, t in (("a", a), ("b", b)):
        if 0 not in shape and out.data_ptr() == t.data_ptr():
            raise ValueError(f"{call}: out: expected memory of its own, it begins where {name} does")
    if not z.along(1):
        raise ValueError(f"{call}: out: expected rows that are contiguous, got strides {tuple(z.stride)}")
    if z.matrices > 1 and z.step == 0:
        raise ValueError(f"{call}: out: expected memory for each of {z.matrices} matrices, got one for all (stride 0)")


def check_addends(
    call: str, a: Any, shape: tuple[int, ...], tensors: Mapping[str, Any], numbers: Mapping[str, object]
) -> None:
    """Check ``c`` and ``bias``, those that were given, and ``alpha`` and ``beta``.  Raises ValueError."""
    for name, value in numbers.items():
        if not isinstance(value, (int, float)):
            raise ValueError(f"{call}: {name}: expected a number, got {value!r}")
    for name, t in tensors.items():
        if t is None:
            continue
        matrix(call, name, t)
        found = tuple(t.shape)
        if t.device != a.device:
            raise ValueError(f"{call}: {name}: expected a tensor on {a.device}, as a is, got one on {t.device}")
        if name == "c" and (len(found) > len(shape) or any(n not in (1, m) for n, m in zip(found[::-1], shape[::-1]))):
            raise ValueError(f"{call}: c: expected a shape that expands to {shape}, got {found}")
