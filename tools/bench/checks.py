"""Checks of results: errors compared with a reference, repeated runs, and writes outside the output.

All raise :class:`BenchError`, because the time of a wrong result is meaningless.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # pragma: no cover
    import torch

__all__ = ["BenchError", "check_close", "check_exact", "check_limit", "check_outside", "check_repeats", "guarded"]


class BenchError(Exception):
    """A wrong result."""


def check_limit(name: str, found: torch.Tensor, wanted: torch.Tensor, limit: torch.Tensor | float) -> float:
    """Return the largest error relative to ``limit``; an error above the limit or NaN raises :class:`BenchError`."""
    share = float(((found.double() - wanted).abs() / limit).max())
    if not share <= 1:
        raise BenchError(f"{name}: the error is {share:.2f} times the limit")
    return share


def check_close(
    name: str, found: torch.Tensor, wanted: torch.Tensor, unit: float, *, terms: Any = 0.0, least: float = 0.0
) -> float:
    """Return the largest error relative to a limit, like :func:`check_limit`.

    The limit is ``unit`` times the sum of the element, the RMS of the result and ``terms``, plus ``least``.
    """
    return check_limit(name, found, wanted, unit * (wanted.abs() + wanted.square().mean().sqrt() + terms) + least)


def check_exact(name: str, found: torch.Tensor, exact: torch.Tensor) -> None:
    """Compare results of small integers, which must be exact."""
    wrong = int((found != exact.to(found.dtype)).sum())
    if wrong:
        raise BenchError(f"{name}: {wrong} elements are wrong on integer data")


def check_repeats(name: str, run: Callable[[], object], out: torch.Tensor, count: int) -> None:
    """Call a function that overwrites ``out`` ``count`` times with equal bits; ``out`` is poisoned before each call."""
    import torch

    first = None
    for _ in range(count):
        out.fill_(float("nan"))
        run()
        if first is None:
            first = out.clone()
        elif not torch.equal(first, out):
            raise BenchError(f"{name}: runs on the same data differ")


def guarded(
    dtype: torch.dtype, shape: Sequence[int], strides: Sequence[int], offset: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return memory with all bits set (NaN for floats) as bytes, and a strided array inside it.

    Guards of 256 bytes surround the array; ``offset`` is its distance in elements from an aligned address.
    """
    import torch

    guard = 256 // dtype.itemsize
    last = sum((n - 1) * s for n, s in zip(shape, strides)) + 1
    storage = torch.full(((2 * guard + offset + last) * dtype.itemsize,), 0xFF, dtype=torch.uint8, device="cuda")
    return storage, torch.as_strided(storage.view(dtype), tuple(shape), tuple(strides), guard + offset)


def check_outside(name: str, storage: torch.Tensor, inside: torch.Tensor) -> None:
    """Check that a kernel wrote nothing to :func:`guarded` memory outside of the array, and poison the array again."""
    import torch

    inside.view(getattr(torch, f"int{8 * inside.dtype.itemsize}")).fill_(-1)
    if not bool((storage == 0xFF).all()):
        raise BenchError(f"{name}: bytes outside the matrix were written")
