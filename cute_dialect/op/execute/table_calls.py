"""Calls on lists of tensors: replayed at other addresses and with other numbers.

The launches of such a call read a table of addresses, which is written when addresses are new.  Numbers such as the
step of an optimizer differ from call to call, so they are not part of the key of a cached call: a replay passes their
bits to the kernels (``Kernel.by_address(numbers=True)``).  The lists may have any length; the guard of a cached call
compares all their tensors.

    CALLS.call((len(params),), [*params, *grads], (step,), update)     # launches what `update` launched before
"""

# torch is not installed where types are checked.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import pack, unpack
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.op.execute.call_cache import AddressMismatch, KnownCalls
from cute_dialect.op.execute.launcher import CURRENT, Launch
from cute_dialect.op.execute.pointer_arrays import LaunchByTables, PlacedLaunch

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.signature_types import Array
    from cute_dialect.runtime.arrays import ArrayView


class TableLaunches(NamedTuple):
    """The launches of a call, at any addresses."""

    placed: Callable[[tuple[int, ...]], Sequence[PlacedLaunch] | None]
    """Returns the launches for addresses of ``arrays``, or None if arrays at them would be refused."""
    arrays: Sequence[ArrayView]
    others: Sequence[ArrayView]  # further arguments of each launch, after the numbers


class ListCalls:
    """Recorded calls of a function that updates tensors of lists and has no gradient."""

    def __init__(self) -> None:
        self.known = KnownCalls(tf32=False, gradients=False)

    def call(
        self,
        how: object,
        tensors: Sequence[Array],
        numbers: Sequence[float],
        compute: Callable[[], Callable[[], TableLaunches | None]],
        is_usual: bool = True,
    ) -> None:
        """Replay a call, or compute it and record its launches.

        Args:
            how: the other arguments; they determine the number of tensors.
            tensors: at least one.
            numbers: f32 arguments of the kernels, in order.
            compute: computes the call.  Its result returns the launches to replay, or None.
            is_usual: the call may be replayed.
        """
        bits = _bits(numbers)
        if not is_usual or bits is None or CURRENT.recording is not None:
            compute()
            if CURRENT.recording is not None:  # The numbers of a call within another one cannot be replayed.
                CURRENT.recording.launch(None)
            return
        CURRENT.numbers = bits
        if self.known.again(how, *tensors) is not None:
            return

        def computed() -> Array:
            launches = compute()
            if CURRENT.recording is not None:
                CURRENT.recording.launch(_launch_of(launches()))
            return tensors[0]

        self.known.recorded(how, tensors, computed, views=True)


def _launch_of(found: TableLaunches | None) -> Launch | None:
    if found is None:
        return None
    placed, like = found.placed, found.arrays[0]._replace(keep=None)

    def checked(addresses: tuple[int, ...]) -> Sequence[PlacedLaunch]:
        launches = placed(addresses)
        if launches is None:
            raise AddressMismatch
        return launches

    run = LaunchByTables(len(found.arrays), checked, like, is_numeric=True)
    return Launch(run, (*found.arrays, *found.others), 15)


def _bits(numbers: Sequence[float]) -> tuple[int, ...] | None:
    """Return numbers as the bits of f32, or None if one is too large for f32."""
    try:
        return unpack(f"{len(numbers)}I", pack(f"{len(numbers)}f", *numbers))
    except OverflowError:
        return None
