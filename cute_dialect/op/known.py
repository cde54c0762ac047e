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

from cute_dialect.op.dtypes import tf32_allowed
from cute_dialect.runtime.arrays import current_stream_of_torch
from cute_dialect.runtime.fast_call import guard_of

if TYPE_CHECKING:  # pragma: no cover
    import torch

__all__ = ["Extras", "KnownCalls", "Prepared", "key_of"]

_LIMIT = 1024
"""Kinds of calls that are remembered."""


class Extras(NamedTuple):
    """What becomes of the sums of a call, and how they are made: ``math``, ``accumulator``."""

    alpha: float = 1.0
    beta: float = 1.0
    c: torch.Tensor | None = None
    bias: torch.Tensor | None = None
    activation: str = ""
    hook: Callable[..., object] | None = None
    math: str = "default"
    accumulator: object = None

    @property
    def usual(self) -> bool:
        """Tell whether nothing was said."""
        return self.plain and self.math == "default" and self.accumulator is None

    def of_sums(self) -> Extras:
        """Return what says how sums are made."""
        return Extras(math=self.math, accumulator=self.accumulator)

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
    reach: Sequence[int]
    """Bytes from the first to the last element of a, b, the result, and the tensors of the extras; negative of a c that
    may be the result."""
    watched: bool
    """Tensors that guards compare with get gradients: so no guard tells whether the result has."""
    allowed: bool | None
    """Of f32 by default: whether torch allowed tf32."""


_NO_EXTRAS = Extras()


def _never(*tensors: object) -> bool:
    """Return False: the look-up tells."""
    return False


_NONE = _Known(_never, True, None, Prepared(_never, 0), (), (), None, None, 0, (), False, None)  # type: ignore[arg-type]


class KnownCalls:
    """The calls of an operation that were made: ``c = calls.again(a, b, out, dtype)``."""

    def __init__(self) -> None:
        self._found: dict[object, _Known] = {}
        self._last: _Known = _NONE
        self._empty: Callable[..., Any] | None = None
        self._stream: Callable[[int], int] | None = None
        self._grad: Callable[[], bool] | None = None

    def __len__(self) -> int:
        return len(self._found)

    def clear(self) -> None:
        """Forget all."""
        self._found.clear()
        self._last = _NONE

    def again(self, a: Any, b: Any, out: Any, dtype: object) -> Any:
        """Compute a product like an earlier one; None, and nothing is done, where there was none."""
        guard, made, given, prepared, shape, stride, kind, device, number, reach, watched, allowed = self._last
        if (out is None) is not made or dtype is not given or not (guard(a, b) if made else guard(a, b, out)):
            try:
                found = self._found.get(key_of(a, b, out, dtype))
                if found is not None:
                    _ = a.data_ptr(), b.data_ptr()  # what vmap makes of tensors has none
            except (AttributeError, TypeError, RuntimeError):  # no strided tensor: who computes says so
                return None
            if found is None or self._learns(a, b, out):
                return None
            self._last = found
            _, made, _, prepared, shape, stride, kind, device, number, reach, _, allowed = found
        elif watched and self._grad():  # type: ignore[misc]
            return None
        if allowed is not None and allowed is not tf32_allowed():
            return None
        launch, mask, more, _ = prepared
        d = self._empty(shape, stride, dtype=kind, device=device) if made else out  # type: ignore[misc]
        p, q, r = a.data_ptr(), b.data_ptr(), d.data_ptr()
        if (p | q | r) & mask or (not made and _meet(r, reach[2], (p, q), reach)):
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
            if found is not None:
                _ = a.data_ptr(), b.data_ptr()
        except (AttributeError, TypeError, RuntimeError):
            return None
        if found is None or self._learns(a, b, out, extras.c, extras.bias):
            return None
        _, _, _, (launch, mask, more, numbers), shape, stride, kind, device, number, reach, _, allowed = found
        if allowed is not None and allowed is not tf32_allowed():
            return None
        d = self._empty(shape, stride, dtype=kind, device=device) if out is None else out  # type: ignore[misc]
        p, q, r = a.data_ptr(), b.data_ptr(), d.data_ptr()
        others = [t.data_ptr() for t in extras.tensors]
        bits = p | q | r
        for address in others:
            bits |= address
        if bits & mask:
            return None
        if out is not None and (
            _meet(r, reach[2], (p, q), reach) or _meet(r, reach[2], others, reach[3:])
        ):  # fmt: skip
            return None
        stream = self._stream(number)  # type: ignore[misc]
        launch(stream, p, q, r, *(() if more is None else more(stream)), *others, *((0,) * numbers))
        return d

    def _learns(self, *tensors: Any) -> bool:
        """Tell whether a result has gradients."""
        return self._grad() and any([t is not None and t.requires_grad for t in tensors])  # type: ignore[misc]

    def remember(
        self, a: Any, b: Any, out: Any, dtype: object, d: torch.Tensor, prepared: Prepared, extras: Extras = _NO_EXTRAS
    ) -> None:  # fmt: skip
        """Remember how a call was computed whose result is ``d``; only of plain tensors at addresses of whole units."""
        import torch

        plain = (torch.Tensor, torch.nn.Parameter)
        if any(type(t) not in plain or t.data_ptr() & prepared.mask for t in (a, b, d, *extras.tensors)):
            return
        self._grad = torch.is_grad_enabled
        if self._learns(a, b, out, *extras.tensors):
            return
        if len(self._found) >= _LIMIT:
            self._found.clear()
        self._empty, self._stream = torch.empty_strided, current_stream_of_torch()
        guard = guard_of((a, b) if out is None else (a, b, out)) or _never
        known = _Known(
            guard,
            out is None,
            dtype,
            prepared,
            tuple(d.shape),
            d.stride(),
            d.dtype,
            d.device,
            d.device.index or 0,
            _reach(a, b, d, extras),
            any([t is not None and t.requires_grad for t in (a, b, out)]),
            tf32_allowed() if a.dtype == torch.float32 and extras.math == "default" else None,
        )
        key = key_of(a, b, out, dtype) if extras.usual else _key_with(a, b, out, dtype, extras)
        self._found[key] = known


def _meet(address: int, size: int, others: Sequence[int], sizes: Sequence[int]) -> bool:
    """Tell whether memory may be that of others; a negative size tells that it may be the same."""
    for other, reach in zip(others, sizes):
        if reach < 0 and other == address:
            continue
        if other < address + size and address < other + abs(reach):
            return True
    return False


def _reach(a: torch.Tensor, b: torch.Tensor, d: torch.Tensor, extras: Extras) -> list[int]:
    """Return the bytes from the first to the last element of each tensor, negative for a c that is like the result."""
    sizes: list[int] = []
    for i, t in enumerate((a, b, d, *extras.tensors)):
        last = sum([(n - 1) * step for n, step in zip(t.shape, t.stride())])
        size = (last + 1) * t.element_size() if t.numel() else 0
        same = i == 3 and t is extras.c and (t.shape, t.stride(), t.dtype) == (d.shape, d.stride(), d.dtype)
        sizes.append(-size if same else size)
    return sizes


def _key_with(a: Any, b: Any, out: Any, dtype: object, extras: Extras) -> tuple[object, ...]:
    """Return that of a call with extras, numbers with their types and signs (of zeros, too)."""
    alpha, beta, c, bias, activation, hook, math, accumulator = extras
    of_c, of_bias = (
        None if t is None else (type(t), t.shape, t.stride(), t.dtype, t.is_cuda, t.get_device()) for t in (c, bias)
    )
    numbers = type(alpha), alpha, copysign(1.0, alpha), type(beta), beta
    return key_of(a, b, out, dtype), of_c, of_bias, numbers, activation, hook, math, accumulator


def key_of(a: Any, b: Any, out: Any, dtype: object) -> tuple[object, ...]:
    """Return what tells one kind of call from another."""
    of_out = None if out is None else (type(out), out.shape, out.stride(), out.dtype, out.is_cuda, out.get_device())
    return (
        type(a), type(b), a.shape, b.shape, a.stride(), b.stride(), a.dtype, b.dtype, a.is_cuda, b.is_cuda,
        a.get_device(), b.get_device(), dtype, of_out,
    )  # fmt: skip
