"""Errors of the operations, raised before anything is compiled or written.

A message names the function and the argument, and states the value found and what to pass instead.

>>> raise ShapeError("mm: out has shape (128, 255); pass out of shape (128, 256)")
Traceback (most recent call last):
    ...
cute_dialect.op.errors.ShapeError: mm: out has shape (128, 255); pass out of shape (128, 256)
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
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


class DistributedError(OpError):
    """Ranks of a group that made different calls, or a rank that made none."""


class EpilogueError(OpError):
    """Invalid activations, hooks, traced epilogues or arguments of an epilogue."""


@contextmanager
def named(call: str, *others: str, arguments: Mapping[str, str] | None = None) -> Generator[None]:
    """Report errors of the inner calls ``others`` under the name ``call``.

    Args:
        arguments: names of their arguments -> names that the caller used.
    """
    try:
        yield
    except OpError as e:
        raise renamed(e, call, *others, arguments=arguments) from None


def renamed(error: OpError, call: str, *others: str, arguments: Mapping[str, str] | None = None) -> OpError:
    """Return an error of the inner calls ``others`` as one of ``call``; other errors are returned unchanged.

    >>> print(renamed(ShapeError("mm: a has rank 3"), "matmul", "mm", arguments={"a": "input"}))
    matmul: input has rank 3
    """
    name, colon, said = str(error).partition(":")
    if not colon or name not in others:
        return error
    found = arguments or {}
    # In "64 x 32 weights" and "pass a list", x and a are no arguments.
    said = re.sub(
        r"(?<![\w.'])(?!x \d)(?!a (?!has|is|and|of)\w)[a-z]\w*(?!['\w])", lambda word: found.get(word[0], word[0]), said
    )
    return type(error)(f"{call}:{said}")
