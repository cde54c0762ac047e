"""Cached grouped GEMMs of torch tensors on a GPU.

A torch guard recognizes a call like the last one, and a table finds other calls.  A replayed launch takes addresses
only.  :mod:`cute_dialect.op.known` is the same for plain GEMMs.
"""

# torch is not installed where the types are checked.
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
"""Bytes.  Addresses must equal those of the recorded call modulo this."""


class Launch(NamedTuple):
    """A prepared launch."""

    launch: Callable[..., object]  # launch(stream, address, …)
    addresses: Sequence[int | None]  # addresses in the recorded call, None for numbers


class CachedCall(NamedTuple):
    """A specialization."""

    how: object  # arguments other than tensors
    guard: Callable[..., bool]  # returns True for tensors of this specialization
    run: Callable[..., Any]  # replays the launches
    watched: bool  # True if a tensor requires gradients; the guard cannot tell whether the result does


def _never(*tensors: object) -> bool:
    """Return False, so that the table is searched."""
    return False


_NONE = CachedCall((), _never, _never, False)


class KnownGroups:
    """A cache of calls: ``found = known.again(tensors, how)``, None if there is no cached call."""

    def __init__(self, stream: Callable[[int], int] | None = None) -> None:
        self._found: dict[object, CachedCall] = {}
        self._last = _NONE
        self._stream = stream
        self._grad: Callable[[], bool] = _never

    def __len__(self) -> int:
        return len(self._found)

    def clear(self) -> None:
        """Remove all cached calls."""
        self._found.clear()
        self._last = _NONE

    def again(self, tensors: Sequence[Any], how: object) -> Any:
        """Replay a cached call, or return None if there is none or if the result requires gradients.

        Args:
            tensors: the tensors that the call reads.
            how: its other arguments, which also determine the number of tensors.
        """
        known = self._last
        if how != known.how or not known.guard(*tensors):
            if not self._found:
                return None
            try:
                found = self._found.get(key_of(tensors, how))
            except (AttributeError, TypeError, RuntimeError):  # Not a strided tensor; the uncached call reports it.
                return None
            if found is None or (self._grad() and any([t.requires_grad for t in tensors])):
                return None
            self._last = known = found
        elif known.watched and self._grad():
            return None
        try:
            return known.run(*tensors)
        except RuntimeError:  # Tensors inside vmap have no address.
            return None

    def remember(self, tensors: Sequence[Any], how: object, result: Any, launches: Sequence[Launch]) -> bool:
        """Record the launches of a call.  Returns False if an address does not belong to exactly one tensor."""
        import torch

        given = [*tensors, result]
        begins = [t.data_ptr() for t in given]
        # If a tensor is passed twice, its address is ambiguous.
        if len(set(begins)) < len(begins) or begins[-1] % _UNIT:
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
                if len(of) != 1:  # The call allocated this memory itself, so a replay could not reuse it.
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
        self._found[key_of(tensors, how)] = CachedCall(how, guard_of(tensors) or _never, run, watched)
        return True


def _straight(
    launches: Sequence[tuple[Callable[..., object], Sequence[tuple[int, int] | None]]], count: int, result: Any,
    stream: Callable[[int], int],
) -> Callable[..., Any]:  # fmt: skip
    """Return a replay that passes the address of each tensor, which must be aligned, to the kernels."""
    again = [Repeated(launch, tuple([-1 if x is None else x[0] for x in places])) for launch, places in launches]
    made = [(tuple(result.shape), result.stride(), result.dtype)]
    return repeating(count, again, made, result.device, _UNIT - 1, stream, count)


def _general(
    launches: Sequence[tuple[Callable[..., object], Sequence[tuple[int, int] | None]]], begins: Sequence[int],
    result: Any, stream: Callable[[int], int],
) -> Callable[..., Any]:  # fmt: skip
    """Return a replay that passes addresses at the recorded offsets inside the tensors.

    The tensors must have the alignment of the recorded ones.
    """
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
    """Return the key of a specialization: all properties that checks and choices use, except addresses."""
    kinds = [(type(t), t.shape, t.stride(), t.dtype, t.is_cuda, t.get_device()) for t in tensors]
    return tuple(kinds), how


def _size(t: Any) -> int:
    """Return the bytes from the first to the last element."""
    if not t.numel():
        return 0
    return (sum([(n - 1) * step for n, step in zip(t.shape, t.stride())]) + 1) * t.element_size()
