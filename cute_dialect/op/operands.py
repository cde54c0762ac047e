"""The operands of ``mm``: torch tensors on one GPU whose shapes fit, checked before a kernel is chosen or compiled.

Usual calls pay for a few comparisons; who broke what is found out once something did.
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from cute_dialect.op.fused import Matrix

__all__ = ["check_addends", "check_product", "check_result", "import_torch", "matrix"]

NEEDS_TORCH = (
    "mm multiplies torch tensors on a GPU and needs torch (pip install torch); kernels alone take numpy arrays too: "
    "cute_dialect.pipelines.compile(…).kernel(…)"
)


def import_torch() -> ModuleType:
    """Return torch.  Raises ImportError, which says what to install."""
    try:
        import torch
    except ImportError as e:
        raise ImportError(NEEDS_TORCH) from e
    return torch


def matrix(name: str, t: Any) -> Matrix:
    """Return how an operand lies in memory.  Raises ValueError for what is no strided torch tensor."""
    try:
        return Matrix(t.shape, t.stride(), t.element_size(), t.data_ptr() % 16)
    except (AttributeError, TypeError, RuntimeError) as e:
        kind = type(t)
        what = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        cure = f"torch.as_tensor({name}, device='cuda') makes one" if what == "numpy.ndarray" else str(e)
        raise ValueError(f"mm: {name}: expected a strided torch tensor on a GPU, got {what}; {cure}") from None


def check_product(a: Any, b: Any, x: Matrix, y: Matrix) -> None:
    """Return ``a``, ``b`` and how they lie.  Raises ValueError."""
    if len(x.shape) == len(y.shape) == 2 and x.shape[1] == y.shape[0] and a.dtype == b.dtype and a.is_cuda:
        if a.device == b.device:
            return
        raise ValueError(f"mm: b: expected a tensor on {a.device}, as a is, got one on {b.device}")
    for name, m in (("a", x), ("b", y)):
        if len(m.shape) != 2:
            raise ValueError(f"mm: {name}: expected a matrix, got a tensor of shape {tuple(m.shape)}")
    if x.shape[1] != y.shape[0]:
        raise ValueError(
            f"mm: b: expected {x.shape[1]} rows, as a of shape {tuple(x.shape)} has columns, got shape {tuple(y.shape)}"
        )
    if a.dtype != b.dtype:
        raise ValueError(f"mm: b: expected elements of {a.dtype}, as in a, got {b.dtype}")
    raise ValueError(f"mm: a: expected a tensor on a GPU, got one on {a.device}: a.cuda() is there")


def check_result(a: Any, b: Any, out: Any, z: Matrix, shape: tuple[int, int], dtype: object) -> None:
    """Check ``out`` that was given.  Raises ValueError."""
    if tuple(z.shape) != shape:
        raise ValueError(f"mm: out: expected shape {shape}, got {tuple(z.shape)}")
    if out.device != a.device:
        raise ValueError(f"mm: out: expected a tensor on {a.device}, as a is, got one on {out.device}")
    if dtype is not None and dtype != out.dtype:
        raise ValueError(f"mm: dtype: expected that of out, {out.dtype}, got {dtype}")
    for name, t in (("a", a), ("b", b)):
        if 0 not in shape and out.data_ptr() == t.data_ptr():
            raise ValueError(f"mm: out: expected memory of its own, it begins where {name} does")
    if z.contiguous != 1:
        raise ValueError(f"mm: out: expected rows that are contiguous, got strides {tuple(z.stride)}")


def check_addends(a: Any, shape: tuple[int, int], tensors: Mapping[str, Any], numbers: Mapping[str, object]) -> None:
    """Check ``c`` and ``bias``, those that were given, and ``alpha`` and ``beta``.  Raises ValueError."""
    for name, value in numbers.items():
        if not isinstance(value, (int, float)):
            raise ValueError(f"mm: {name}: expected a number, got {value!r}")
    for name, t in tensors.items():
        if t is None:
            continue
        found = tuple(matrix(name, t).shape)
        if t.device != a.device:
            raise ValueError(f"mm: {name}: expected a tensor on {a.device}, as a is, got one on {t.device}")
        if name == "c" and (len(found) > 2 or any(n not in (1, m) for n, m in zip(found[::-1], shape[::-1]))):
            raise ValueError(f"mm: c: expected a shape that expands to {shape}, got {found}")
