"""Products that were computed before: one look-up finds what to launch, which only takes addresses.  A guard of torch's
own recognises a call like the last one without that.

A key is all that the checks and the choice of a kernel look at but the addresses: Python types, shapes, strides,
element types and devices.  What launches is prepared for addresses of whole 16 bytes (or what the kernel wants); other
calls go the long way, where they are checked, and computed or refused.

Costs on one core of a shared virtual machine with torch 2.13, in ns: the guard 270, the key and its look-up 1000,
``empty_strided`` 1000 (``empty`` 1700, what :mod:`cute_dialect.op.repeated` calls 470), ``data_ptr`` 90 each.
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable
from math import copysign
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.op.dtypes import tf32_allowed
from cute_dialect.op.repeated import Repeated, repeating
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
    was not given; ``given``: the type that was; ``run``: launches again; ``extras``: those of the call.
    """

    guard: Callable[..., bool]
    made: bool
    given: object
    run: Callable[..., Any]
    extras: Extras
    watched: bool
    """Tensors that guards compare with get gradients: so no guard tells whether the result has."""
    allowed: bool | None
    """Of f32 by default: whether torch allowed tf32."""


_NO_EXTRAS = Extras()


def _never(*tensors: object) -> bool:
    """Return False: the look-up tells."""
    return False


_NONE = _Known(_never, True, None, _never, _NO_EXTRAS, False, None)


class KnownCalls:
    """The calls of an operation that were made: ``c = calls.again(a, b, out, dtype)``."""

    def __init__(self) -> None:
        self._found: dict[object, _Known] = {}
        self._last: _Known = _NONE
        self._last_with: _Known = _NONE
        self._grad: Callable[[], bool] | None = None

    def __len__(self) -> int:
        return len(self._found)

    def clear(self) -> None:
        """Forget all."""
        self._found.clear()
        self._last = self._last_with = _NONE

    def again(self, a: Any, b: Any, out: Any, dtype: object) -> Any:
        """Compute a product like an earlier one; None, and nothing is done, where there was none."""
        known = self._last
        guard, made, given, run, _, watched, allowed = known
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
            _, made, _, run, _, _, allowed = found
        elif watched and self._grad():  # type: ignore[misc]
            return None
        if allowed is not None and allowed is not tf32_allowed():
            return None
        return run(a, b) if made else run(a, b, out)

    def again_with(self, a: Any, b: Any, out: Any, dtype: object, extras: Extras) -> Any:
        """Do as :meth:`again`, of a call with :class:`Extras`."""
        alpha, beta, c, bias, activation, hook, math, accumulator = extras
        given = [t for t in (a, b, out, c, bias) if t is not None]
        known = self._last_with
        x = known.extras
        # Constants of the caller's code are the same objects at the next call; what is equal only is looked up.
        like = (
            (out is None) is known.made and dtype is known.given and alpha is x.alpha and beta is x.beta
            and (c is None) is (x.c is None) and (bias is None) is (x.bias is None) and activation is x.activation
            and hook is x.hook and math is x.math and accumulator is x.accumulator
        )  # fmt: skip
        if not like or known.watched or not known.guard(*given):
            try:
                found = self._found.get(_key_with(a, b, out, dtype, extras))
                if found is not None:
                    _ = a.data_ptr(), b.data_ptr()
            except (AttributeError, TypeError, RuntimeError):
                return None
            if found is None or self._learns(a, b, out, c, bias):
                return None
            self._last_with = known = found
        if known.allowed is not None and known.allowed is not tf32_allowed():
            return None
        return known.run(*given)

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
        given = [t for t in (a, b, out, extras.c, extras.bias) if t is not None]
        known = _Known(
            guard_of(given) or _never,
            out is None,
            dtype,
            _run_of(a, b, out, d, prepared, extras),
            _alike(extras),
            any([t.requires_grad for t in given]),
            tf32_allowed() if a.dtype == torch.float32 and extras.math == "default" else None,
        )
        key = key_of(a, b, out, dtype) if extras.usual else _key_with(a, b, out, dtype, extras)
        self._found[key] = known


def _alike(extras: Extras) -> Extras:
    """Return extras with which later ones are compared, which keep no tensor alive."""
    there: Any = ()
    return extras._replace(c=None if extras.c is None else there, bias=None if extras.bias is None else there)


def _run_of(
    a: torch.Tensor, b: torch.Tensor, out: Any, d: torch.Tensor, prepared: Prepared, extras: Extras
) -> Callable[..., Any]:  # fmt: skip
    """Return what launches again: ``run(a, b[, out][, c][, bias])``."""
    launch, mask, more, numbers = prepared
    given = [t for t in (a, b, out, extras.c, extras.bias) if t is not None]
    names = ["a", "b", *["d"] * (out is not None), *["c"] * (extras.c is not None)]
    names += [*["bias"] * (extras.bias is not None), *["d"] * (out is None)]
    read = [*["c"] * (extras.c is not None and extras.beta != 0.0), *["bias"] * (extras.bias is not None)]
    order = tuple([names.index(n) for n in ("a", "b", "d", *read)])
    made = [(tuple(d.shape), d.stride(), d.dtype)] if out is None else []
    sizes = dict(zip(("a", "b", "d", *read), _reach(a, b, d, extras)))
    reach = [] if out is None else [sizes.get(n, 0) for n in names]
    again = Repeated(launch, (*order, *(-1,) * numbers), more, 3)
    stream = current_stream_of_torch()
    place = names.index("d")
    return repeating(
        len(given), [again], made, d.device, mask, stream, [place], reach=reach, out=-1 if out is None else place
    )


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
