"""Explanations of calls: the selected kernels, their predicted time, and the text that ``print`` shows.

:class:`Explanation` has the fields that all problems share, and writes the text.  A subclass for each kind of problem
adds fields, and the lines that only it has::

    softmax of 8192 rows of 50257 bf16                      _title()
      kernel    rows-softmax-bf16-512x7x1x2x0x1: for ...    kernel and why
      a row     2 blocks of 512 threads, up to 7 ...        _layout()
      bound     402.4 us: 1.65 GB (DRAM, an H200)           bound and _limits()
"""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.errors import DtypeError
from cute_dialect.runtime.arrays import ArrayView, NotAnArray, view_of

__all__ = ["Explanation", "Line", "example_view", "is_of_torch"]

Line = tuple[str, str]
"""A label of at most 9 characters, and its text."""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The kernels of a call, their predicted time and the reason for the choice; ``print`` shows all of it."""

    operation: str
    gpu: str = ""
    kernel: str = ""  # name of the main kernel
    why: str = ""  # the reason for the choice
    microseconds: float = 0.0  # predicted time of the kernel; 0 without a prediction
    others: tuple[tuple[float, Any], ...] = ()  # the next candidates with their times
    copies: tuple[tuple[str, int], ...] = ()  # operands that are copied, and their bytes
    flops: int = 0
    bytes: int = 0  # with each operand read or written once
    bound: float = 0.0  # lower bound of the time in microseconds, from flops and bytes; 0 if there is none
    kernels: tuple[Any, ...] | None = None  # for `op.prefetch`; None if it does not support the call

    def _title(self) -> str:
        """Return the first line: the operation and its problem."""
        return self.operation

    def _before(self) -> Iterable[Line]:
        """Return lines about work before the kernel."""
        return ()

    def _layout(self) -> Iterable[Line]:
        """Return lines about the problem as the kernel sees it, after the line of the kernel."""
        return ()

    def _occupancy(self) -> Iterable[Line]:
        """Return lines about blocks and instructions, after the predicted time."""
        return ()

    def _limits(self) -> str:
        """Return the flops and bytes that determine the bound."""
        return ""

    def _after(self) -> Iterable[Line]:
        """Return lines about further kernels and operands."""
        return ()

    def _reason(self, operand: str) -> str:
        """Return the reason for the copy of an operand, or an empty string."""
        return ""

    def _finish(self) -> str:
        """Return the work of the array library after the kernels, or an empty string."""
        return ""

    def _lines(self) -> Iterable[Line]:
        """Return the lines below the title."""
        yield from self._before()
        yield "kernel", self.kernel + (f": {self.why}" if self.why else "")
        yield from self._layout()
        if self.microseconds:
            yield "predicted", f"{self.microseconds:.1f} us, {self.flops / self.microseconds / 1e6:.3g} TFLOP/s"
        yield from self._occupancy()
        if self._limits():
            yield "bound", f"{self.bound:.1f} us: {self._limits()}"
        yield from self._after()
        for name, size in self.copies:
            reason = self._reason(name)
            yield "copied", f"{name}, {size / 1e6:.3g} MB" + (f": {reason}" if reason else "")
        if self._finish():
            yield "then", self._finish()
        for time, other in self.others:
            yield "else", f"{time:.1f} us  {self._name_of(other)}"

    def _name_of(self, candidate: Any) -> str:
        """Return the name of the kernel of a candidate."""
        return candidate.name

    def __str__(self) -> str:
        return "\n".join([self._title(), *(f"  {label:<9} {text}" for label, text in self._lines())])


def is_of_torch(t: Any) -> bool:
    return type(t).__module__.partition(".")[0] == "torch"


def example_view(call: str, name: str, t: Any, element: str) -> ArrayView:
    """Return a view of an operand, or of an array of a shape with contiguous rows.  Raises DtypeError."""
    if isinstance(t, tuple | list):
        shape: tuple[int, ...] = tuple(t)
        strides = tuple([prod(shape[i + 1 :]) for i in range(len(shape))])
        return ArrayView(0, shape, strides, element_name(element), -1, "", None)
    if hasattr(t, "stride"):  # torch's, which may have no memory
        address = t.data_ptr() if t.device.type in ("cpu", "cuda") else 0
        return ArrayView(address, tuple(t.shape), tuple(t.stride()), element_name(t.dtype), -1, "", None)
    try:
        return view_of(t)
    except NotAnArray as e:
        raise DtypeError(f"{call}: {name} must be an array or a shape: {e}") from None
