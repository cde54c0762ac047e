"""Errors of the operations, raised before anything is compiled or written.

A message names the function and the argument, and states the value found and what to pass instead.

>>> raise ShapeError("mm: out has shape (128, 255); pass out of shape (128, 256)")
Traceback (most recent call last):
    ...
cute_dialect.op.errors.ShapeError: mm: out has shape (128, 255); pass out of shape (128, 256)
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from cute_dialect.errors import OpError
from cute_dialect.runtime import call_options, launch_plan


class ArgumentError(OpError, launch_plan.ArgumentError, TypeError):
    """A keyword argument that the function does not have."""


class ShapeError(OpError, launch_plan.ShapeError):
    """Ranks or extents that do not match."""


class DtypeError(OpError, launch_plan.DtypeError):
    """Element types that no kernel supports, or that do not match."""


class LayoutError(OpError):
    """Strides that no kernel reads or writes, or arrays that must not share memory."""


class AlignmentError(OpError, launch_plan.AlignmentError):
    """Addresses or strides that are not multiples of the alignment of a kernel."""


class UnsupportedError(OpError):
    """A combination of arguments that no kernel supports, or that this GPU cannot run."""


class DeviceError(OpError, launch_plan.DeviceError):
    """Arrays on the wrong device, arrays of several libraries, or no GPU."""


class OptionError(OpError, call_options.OptionError):
    """A device or an option of the interpreter that is unknown or has a wrong value."""


class EpilogueError(OpError):
    """Invalid activations, hooks, traced epilogues or arguments of an epilogue."""


@contextmanager
def named(call: str, *others: str) -> Generator[None]:
    """Report errors of the inner calls ``others`` under the name ``call``."""
    try:
        yield
    except OpError as e:
        name, colon, said = str(e).partition(":")
        if colon and name in others:
            raise type(e)(f"{call}:{said}") from None
        raise
