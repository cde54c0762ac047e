"""Grouped products that were computed before, of torch's tensors on a GPU: a guard of torch's own recognises a call
like the last one, a look-up others, and what launches again takes addresses alone (:mod:`cute_dialect.op.known` does
so for products of matrices).
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from cute_dialect.op.repeated import Repeated, maker_of, repeating
from cute_dialect.runtime.fast_call import guard_of

__all__ = ["KnownGroups", "Launch"]

_LIMIT = 1024
_UNIT = 16
"""Bytes: addresses are like those of the call that is remembered, modulo this."""


class Launch(NamedTuple):
    """A prepared launch, ``launch(stream, address, …)``, and the addresses of the call that it was prepared for, None
    for a number.
    """

    launch: Callable[..., object]
    addresses: Sequence[int | None]


class _Known(NamedTuple):
    """A kind of call: ``how``: what it says besides tensors; ``guard``: tells whether tensors are like its own;
    ``run``: launches again; ``watched``: some of its tensors get gradients, so no guard tells whether the result has.
    """

    how: object
    guard: Callable[..., bool]
    run: Callable[..., Any]
    watched: bool


def _never(*tensors: object) -> bool:
    """Return False: the look-up tells."""
    return False


_NONE = _Known((), _never, _never, False)


class KnownGroups:
    """The calls that were made: ``found = known.again(tensors, how)``, None where there was none like it."""

    def __init__(self, stream: Callable[[int], int] | None = None) -> None:
        self._found: dict[object, _Known] = {}
        self._last = _NONE
        self._stream = stream
        self._grad: Callable[[], bool] = _never

    def __len__(self) -> int:
        return len(self._found)

    def clear(self) -> None:
        """Forget all."""
        self._found.clear()
        self._last = _NONE

    def again(self, tensors: Sequence[Any], how: object) -> Any:
        """Compute a call like an earlier one of such ``tensors``, those that are read; ``how``: all else that it says,
        how many tensors there are, too.  Returns None, and does nothing, where there was none, or the result has
        gradients.
        """
        known = self._last
        if how != known.how or not known.guard(*tensors):
            if not self._found:
                return None
            try:
                found = self._found.get(key_of(tensors, how))
            except (AttributeError, TypeError, RuntimeError):  # no strided tensor: who computes says so
                return None
            if found is None or (self._grad() and any([t.requires_grad for t in tensors])):
                return None
            self._last = known = found
        elif known.watched and self._grad():
            return None
        try:
            return known.run(*tensors)
        except RuntimeError:  # what vmap makes of tensors has no address
            return None

    def remember(self, tensors: Sequence[Any], how: object, result: Any, launches: Sequence[Launch]) -> bool:
        """Remember the launches of a call; tell whether it could be told which address is of which tensor."""
        import torch

        given = [*tensors, result]
        begins = [t.data_ptr() for t in given]
        if len(set(begins)) < len(begins) or begins[-1] % _UNIT:  # of one tensor twice nobody knows which is meant
            return False
        if any([type(t) not in (torch.Tensor, torch.nn.Parameter) for t in tensors]):
            return False
        found: list[tuple[Callable[..., object], list[tuple[int, int] | None]]] = []
        for launch, addresses in launches:
            places: list[tuple[int, int] | None] = []
            for address in addresses:
                if address is None:
                    places.append(None)
                    continue
                of = [(i, address - begin) for i, begin in enumerate(begins) if 0 <= address - begin < _size(given[i])]
                if len(of) != 1:  # memory of its own, which the next call has not
                    return False
                places.append(of[0])
            found.append((launch, places))
        if self._stream is None:
            from cute_dialect.runtime.arrays import current_stream_of_torch

            self._stream = current_stream_of_torch()
        self._grad = torch.is_grad_enabled
        if len(self._found) >= _LIMIT:
            self._found.clear()
        plain = not any([x % _UNIT for x in begins]) and all([x is None or x[1] == 0 for _, y in found for x in y])
        run = (
            _straight(found, len(tensors), result, self._stream)
            if plain
            else _general(found, begins, result, self._stream)
        )
        watched = any([t.requires_grad for t in tensors])
        self._found[key_of(tensors, how)] = _Known(how, guard_of(tensors) or _never, run, watched)
        return True


def _straight(
    launches: Sequence[tuple[Callable[..., object], Sequence[tuple[int, int] | None]]], count: int, result: Any,
    stream: Callable[[int], int],
) -> Callable[..., Any]:  # fmt: skip
    """Return what launches again on tensors that begin at whole units, as kernels take them."""
    again = [Repeated(launch, tuple([-1 if x is None else x[0] for x in places])) for launch, places in launches]
    made = [(tuple(result.shape), result.stride(), result.dtype)]
    return repeating(count, again, made, result.device, _UNIT - 1, stream, count)


def _general(
    launches: Sequence[tuple[Callable[..., object], Sequence[tuple[int, int] | None]]], begins: Sequence[int],
    result: Any, stream: Callable[[int], int],
) -> Callable[..., Any]:  # fmt: skip
    """Return what launches again on tensors that begin where those did, modulo a unit, from any element on."""
    empty, number = maker_of(result.device), result.device.index or 0
    shape, stride, dtype = tuple(result.shape), result.stride(), result.dtype
    wanted = [x % _UNIT for x in begins]

    def run(*tensors: Any) -> Any:
        made = empty(shape, stride, dtype)
        addresses = [t.data_ptr() for t in (*tensors, made)]
        if [x % _UNIT for x in addresses] != wanted:
            return None
        raw = stream(number)
        for launch, places in launches:
            launch(raw, *[0 if x is None else addresses[x[0]] + x[1] for x in places])
        return made

    return run


def key_of(tensors: Sequence[Any], how: object) -> object:
    """Return what tells one kind of call from another: all that checks and choices look at but addresses."""
    kinds = [(type(t), t.shape, t.stride(), t.dtype, t.is_cuda, t.get_device()) for t in tensors]
    return tuple(kinds), how


def _size(t: Any) -> int:
    """Return the bytes from the first to behind the last element."""
    if not t.numel():
        return 0
    return (sum([(n - 1) * step for n, step in zip(t.shape, t.stride())]) + 1) * t.element_size()
