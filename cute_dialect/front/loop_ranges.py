"""Ranges of loops: ``cute.range``, ``cute.range_constexpr``, and ``range`` with a bound of run time."""

from __future__ import annotations

from typing import Any, NoReturn

from cute_dialect.front.errors import StaticError
from cute_dialect.front.values import is_dynamic

__all__ = ["LoopRange", "UnrolledRange", "loop_range", "range_constexpr"]


class LoopRange:
    """The numbers from ``start`` to before ``stop``, which a ``for`` of run time walks."""

    __slots__ = ("start", "step", "stop", "unroll")

    def __init__(self, start: Any, stop: Any, step: Any = 1, unroll: int = 0):
        self.start = start
        self.stop = stop
        self.step = step
        self.unroll = unroll

    @property
    def is_static(self) -> bool:
        """Whether the bounds and the step are known."""
        return not any(is_dynamic(x) for x in (self.start, self.stop, self.step))

    def python(self) -> range:
        """Return Python's range of static bounds."""
        return range(int(self.start), int(self.stop), int(self.step))

    def reversed(self) -> LoopRange:
        """Return the same numbers, the last one first; the step must be static."""
        step = int(self.step)
        turns = (self.stop - self.start + (step - 1 if step > 0 else step + 1)) // step
        return LoopRange(self.start + (turns - 1) * step, self.start - step, -step, self.unroll)

    def __iter__(self) -> NoReturn:
        raise StaticError(
            "F145", "how many turns this range has is known only when the kernel runs",
            hint="write a 'for' statement, in a function that is converted",
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"range({self.start}, {self.stop}, {self.step})"


class UnrolledRange:
    """Python's range that is walked while compiling."""

    __slots__ = ("numbers",)

    def __init__(self, numbers: range):
        self.numbers = numbers

    def __iter__(self) -> Any:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)


def _bounds(args: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    if not 1 <= len(args) <= 3:
        raise TypeError(f"expected 1 to 3 arguments, got {len(args)}")
    return (0, args[0], 1) if len(args) == 1 else (*args, 1) if len(args) == 2 else args  # pyright: ignore


def loop_range(
    *args: Any, unroll: int = 0, unroll_full: bool = False, prefetch_stages: int | None = None, vectorize: Any = None
) -> LoopRange | UnrolledRange:
    """Return a range that becomes one loop when the kernel runs, static bounds or not.

    ``unroll``: copies of the body a turn, 1 for one only (else ``ptxas`` decides); ``unroll_full``: all of them, as
    Python's own loop (static bounds).
    Raises F142 for hints that nothing would follow.
    """
    start, stop, step = _bounds(args)
    for name, value in (("prefetch_stages", prefetch_stages), ("vectorize", vectorize)):
        if value:
            raise StaticError(
                "F142", f"'{name}={value!r}' would have no effect: loops have no such hint", hint=f"leave '{name}' out"
            )
    if unroll_full:
        return range_constexpr(*args)
    return LoopRange(start, stop, step, unroll)


def range_constexpr(*args: Any) -> UnrolledRange:
    """Return a range that is walked while compiling.  Raises F140 where a bound is known at run time only."""
    bounds = _bounds(args)
    for bound in bounds:
        if is_dynamic(bound):
            raise StaticError(
                "F140", f"a bound of 'range_constexpr' is known only when the kernel runs: {bound.describe()}",
                hint="use 'range', or pass the bound as cute.Constexpr",
            )  # fmt: skip
    return UnrolledRange(range(*(int(b) for b in bounds)))
