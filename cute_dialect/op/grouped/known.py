"""Grouped products that were computed before, of torch's tensors on a GPU: one look-up finds what to launch, which only
takes addresses (:mod:`cute_dialect.op.known` does so for products of matrices).
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from cute_dialect.op.repeated import maker_of

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
    """A kind of call: its launches, each with the tensor and the offset of each address (None: a number); what tensors
    begin at, modulo 16; the result.
    """

    launches: Sequence[tuple[Callable[..., object], Sequence[tuple[int, int] | None]]]
    begins: Sequence[int]
    shape: Sequence[int]
    stride: Sequence[int]
    dtype: Any
    empty: Callable[..., Any]
    number: int


class KnownGroups:
    """The calls that were made: ``found = known.again(tensors, how)``, None where there was none like it."""

    def __init__(self, stream: Callable[[int], int] | None = None) -> None:
        self._found: dict[object, _Known] = {}
        self._stream = stream

    def __len__(self) -> int:
        return len(self._found)

    def clear(self) -> None:
        """Forget all."""
        self._found.clear()

    def again(self, tensors: Sequence[Any], how: object) -> Any:
        """Compute a call like an earlier one of such ``tensors``, those that are read; ``how``: all else that it says.
        Returns None, and does nothing, where there was none.
        """
        known = self._found.get(key_of(tensors, how))
        if known is None:
            return None
        try:
            addresses = [t.data_ptr() for t in tensors]
        except RuntimeError:  # what vmap makes of tensors has none
            return None
        assert self._stream is not None
        if [x % _UNIT for x in addresses] != known.begins:
            return None
        result = known.empty(known.shape, known.stride, known.dtype)
        addresses.append(result.data_ptr())
        if addresses[-1] % _UNIT:
            return None
        stream = self._stream(known.number)
        for launch, places in known.launches:
            launch(stream, *[0 if x is None else addresses[x[0]] + x[1] for x in places])
        return result

    def remember(self, tensors: Sequence[Any], how: object, result: Any, launches: Sequence[Launch]) -> bool:
        """Remember the launches of a call; tell whether it could be told which address is of which tensor."""
        given = [*tensors, result]
        begins = [t.data_ptr() for t in given]
        if len(set(begins)) < len(begins) or begins[-1] % _UNIT:  # of one tensor twice nobody knows which is meant
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
        if len(self._found) >= _LIMIT:
            self._found.clear()
        self._found[key_of(tensors, how)] = _Known(
            found, [x % _UNIT for x in begins[:-1]], tuple(result.shape), result.stride(), result.dtype,
            maker_of(result.device), result.device.index or 0,
        )  # fmt: skip
        return True


def key_of(tensors: Sequence[Any], how: object) -> object:
    """Return what tells one kind of call from another: all that checks and choices look at but addresses."""
    kinds = [(type(t), t.shape, t.stride(), t.dtype, t.is_cuda, t.get_device()) for t in tensors]
    return tuple(kinds), how


def _size(t: Any) -> int:
    """Return the bytes from the first to behind the last element."""
    if not t.numel():
        return 0
    return (sum([(n - 1) * step for n, step in zip(t.shape, t.stride())]) + 1) * t.element_size()
