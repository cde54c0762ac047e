"""Products that were computed before: one look-up finds what to launch, which only takes addresses.  A guard of torch's
own recognises a call like the last one without that.

A key is all that the checks and the choice of a kernel look at but the addresses: Python types, shapes, strides,
element types and devices.  What launches is prepared for addresses of whole 16 bytes (or what the kernel wants); other
calls go the long way, where they are checked, and computed or refused.

Costs on one core of a shared virtual machine with torch 2.13, in ns: the guard 270, the key and its look-up 1000,
``empty_strided`` 1000 (``empty`` 1700), ``data_ptr`` 90 each.
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import copysign
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.runtime.arrays import current_stream_of_torch
from cute_dialect.runtime.fast_call import guard_of

if TYPE_CHECKING:  # pragma: no cover
    import torch

__all__ = ["Extras", "KnownCalls", "Prepared"]

_LIMIT = 1024
"""Kinds of calls that are remembered."""


class Extras(NamedTuple):
    """What becomes of the sums of a call."""

    alpha: float = 1.0
    beta: float = 1.0
    c: torch.Tensor | None = None
    bias: torch.Tensor | None = None
    activation: str = ""
    hook: Callable[..., object] | None = None

    @property
    def plain(self) -> bool:
        """Tell whether they are the result."""
        return self.alpha == 1.0 and self.c is None and self.bias is None and not self.activation and self.hook is None

    @property
    def tensors(self) -> list[torch.Tensor]:
        """The tensors that are read."""
        found = [] if self.c is None or self.beta == 0.0 else [self.c]
        return found if self.bias is None else [*found, self.bias]


class Prepared(NamedTuple):
    """A prepared launch: ``launch(stream, address of a, of b, of the result, *more, *extras)``; ``mask``: bits that are
    0 in addresses; ``more``: gives the addresses of what blocks share, for a stream.  ``extras``: those of the tensors
    of :class:`Extras`, then ``numbers`` zeros, for the numbers that it was prepared with.
    """

    launch: Callable[..., None]
    mask: int
    more: Callable[[int], tuple[int, ...]] | None = None
    numbers: int = 0


class _Known(NamedTuple):
    """A kind of call: ``guard`` tells whether tensors are like those, if torch has such a thing; ``made``: the result
    was not given; ``given``: the type that was; what it launches, and the result that it makes.
    """

    guard: Callable[..., bool]
    made: bool
    given: object
    prepared: Prepared
    shape: Sequence[int]
    stride: Sequence[int]
    dtype: torch.dtype
    device: torch.device
    number: int


_NO_EXTRAS = Extras()


def _never(*tensors: object) -> bool:
    """Return False: the look-up tells."""
    return False


_NONE = _Known(_never, True, None, Prepared(_never, 0), (), (), None, None, 0)  # type: ignore[arg-type]


class KnownCalls:
    """The calls of an operation that were made: ``c = calls.again(a, b, out, dtype)``."""

    def __init__(self) -> None:
        self._found: dict[object, _Known] = {}
        self._last: _Known = _NONE
        self._empty: Callable[..., Any] | None = None
        self._stream: Callable[[int], int] | None = None

    def __len__(self) -> int:
        return len(self._found)

    def clear(self) -> None:
        """Forget all."""
        self._found.clear()
        self._last = _NONE

    def again(self, a: Any, b: Any, out: Any, dtype: object) -> Any:
        """Compute a product like an earlier one; None, and nothing is done, where there was none."""
        guard, made, given, prepared, shape, stride, kind, device, number = self._last
        if (out is None) is not made or dtype is not given or not (guard(a, b) if made else guard(a, b, out)):
            try:
                found = self._found.get(_key(a, b, out, dtype))
            except (AttributeError, TypeError, RuntimeError):  # no strided tensor: who computes says so
                return None
            if found is None:
                return None
            self._last = found
            _, _, _, prepared, shape, stride, kind, device, number = found
        launch, mask, more, _ = prepared
        d = self._empty(shape, stride, dtype=kind, device=device) if out is None else out  # type: ignore[misc]
        p, q, r = a.data_ptr(), b.data_ptr(), d.data_ptr()
        if (p | q | r) & mask or r in (p, q):
            return None
        stream = self._stream(number)  # type: ignore[misc]
        if more is None:
            launch(stream, p, q, r)
        else:
            launch(stream, p, q, r, *more(stream))
        return d

    def again_with(self, a: Any, b: Any, out: Any, dtype: object, extras: Extras) -> Any:
        """Do as :meth:`again`, of a call with :class:`Extras`."""
        try:
            found = self._found.get(_key_with(a, b, out, dtype, extras))
        except (AttributeError, TypeError, RuntimeError):
            return None
        if found is None:
            return None
        _, _, _, (launch, mask, more, numbers), shape, stride, kind, device, number = found
        d = self._empty(shape, stride, dtype=kind, device=device) if out is None else out  # type: ignore[misc]
        p, q, r = a.data_ptr(), b.data_ptr(), d.data_ptr()
        others = [t.data_ptr() for t in extras.tensors]
        bits = p | q | r
        for address in others:
            bits |= address
        if bits & mask or r in (p, q):
            return None
        stream = self._stream(number)  # type: ignore[misc]
        launch(stream, p, q, r, *(() if more is None else more(stream)), *others, *((0,) * numbers))
        return d

    def remember(
        self, a: Any, b: Any, out: Any, dtype: object, d: torch.Tensor, prepared: Prepared, extras: Extras = _NO_EXTRAS
    ) -> None:  # fmt: skip
        """Remember how a call was computed whose result is ``d``; only of plain tensors at addresses of whole units."""
        import torch

        plain = (torch.Tensor, torch.nn.Parameter)
        if any(type(t) not in plain or t.data_ptr() & prepared.mask for t in (a, b, d, *extras.tensors)):
            return
        if len(self._found) >= _LIMIT:
            self._found.clear()
        self._empty, self._stream = torch.empty_strided, current_stream_of_torch()
        guard = guard_of((a, b) if out is None else (a, b, out)) or _never
        known = _Known(
            guard, out is None, dtype, prepared, tuple(d.shape), d.stride(), d.dtype, d.device, d.device.index or 0
        )
        key = _key(a, b, out, dtype) if extras.plain else _key_with(a, b, out, dtype, extras)
        self._found[key] = known


def _key_with(a: Any, b: Any, out: Any, dtype: object, extras: Extras) -> tuple[object, ...]:
    """Return that of a call with extras, numbers with their types and signs (of zeros, too)."""
    alpha, beta, c, bias, activation, hook = extras
    of_c, of_bias = (
        None if t is None else (type(t), t.shape, t.stride(), t.dtype, t.is_cuda, t.get_device()) for t in (c, bias)
    )
    numbers = type(alpha), alpha, copysign(1.0, alpha), type(beta), beta
    return _key(a, b, out, dtype), of_c, of_bias, numbers, activation, hook


def _key(a: Any, b: Any, out: Any, dtype: object) -> tuple[object, ...]:
    """Return what tells one kind of call from another."""
    of_out = None if out is None else (type(out), out.shape, out.stride(), out.dtype, out.is_cuda, out.get_device())
    return (
        type(a), type(b), a.shape, b.shape, a.stride(), b.stride(), a.dtype, b.dtype, a.is_cuda, b.is_cuda,
        a.get_device(), b.get_device(), dtype, of_out,
    )  # fmt: skip
