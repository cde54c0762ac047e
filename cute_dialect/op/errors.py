"""Errors of the operations, raised before anything is compiled or written.

A message says which function, which argument, what was expected and what came.

>>> raise ShapeError("mm: expected out of (128, 256), got (128, 255)")
Traceback (most recent call last):
    ...
cute_dialect.op.errors.ShapeError: mm: expected out of (128, 256), got (128, 255)
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from cute_dialect.errors import OpError
from cute_dialect.runtime import binding

__all__ = [
    "AlignmentError",
    "ArgumentError",
    "DeviceError",
    "DtypeError",
    "EpilogueError",
    "LayoutError",
    "OpError",
    "ShapeError",
    "UnsupportedError",
    "named",
]


class ArgumentError(OpError, binding.ArgumentError, TypeError):
    """Report a keyword argument that a function does not have."""


class ShapeError(OpError, binding.ShapeError):
    """Report ranks and extents that do not fit."""


class DtypeError(OpError, binding.DtypeError):
    """Report types of elements that there is no kernel for, or that do not fit."""


class LayoutError(OpError):
    """Report strides that no kernel reads or writes, and memory that may not be shared."""


class AlignmentError(OpError, binding.AlignmentError):
    """Report addresses and strides that are no multiples of what a kernel needs."""


class UnsupportedError(OpError):
    """Report what there is no kernel for, or what this GPU cannot run."""


class DeviceError(OpError, binding.DeviceError):
    """Report arrays where no kernel can read them: on another device, of another library, or no GPU here."""


class EpilogueError(OpError):
    """Report what cannot become of the sums: activations, hooks, traced epilogues and their arguments."""


@contextmanager
def named(call: str, *others: str) -> Generator[None]:
    """Let errors that begin with the name of what a call is made of be those of the call."""
    try:
        yield
    except OpError as e:
        name, colon, said = str(e).partition(":")
        if colon and name in others:
            raise type(e)(f"{call}:{said}") from None
        raise
