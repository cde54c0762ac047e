"""Loop ranges: ``cute.range``, ``cute.range_constexpr``, and ``range`` with a run-time bound."""

from __future__ import annotations

from typing import Any, NoReturn

from cute_dialect.lang.tracing.errors import StaticError
from cute_dialect.lang.values.dynamic import is_dynamic

__all__ = ["LoopRange", "UnrolledRange", "loop_range", "range_constexpr"]


class LoopRange:
    """The range of a run-time loop: ``start`` up to but excluding ``stop``."""

    __slots__ = ("start", "step", "stop", "unroll")

    def __init__(self, start: Any, stop: Any, step: Any = 1, unroll: int = 0):
        self.start = start
        self.stop = stop
        self.step = step
        self.unroll = unroll

    @property
    def is_static(self) -> bool:
        """True if the bounds and the step are known at compile time."""
        return not any(is_dynamic(x) for x in (self.start, self.stop, self.step))

    def python(self) -> range:
        """Return the equivalent Python range, for static bounds."""
        return range(int(self.start), int(self.stop), int(self.step))

    def reversed(self) -> LoopRange:
        """Return the range in reverse order. The step must be static."""
        step = int(self.step)
        turns = (self.stop - self.start + (step - 1 if step > 0 else step + 1)) // step
        return LoopRange(self.start + (turns - 1) * step, self.start - step, -step, self.unroll)

    def __iter__(self) -> NoReturn:
        raise StaticError(
            "F145", "the number of iterations of this range is known only at run time",
            hint="use a 'for' statement in kernel code",
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"range({self.start}, {self.stop}, {self.step})"


class UnrolledRange:
    """A range that is unrolled at compile time."""

    __slots__ = ("numbers",)

    def __init__(self, numbers: range):
        self.numbers = numbers

    def __iter__(self) -> Any:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)


def _bounds(args: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    if not 1 <= len(args) <= 3:
        raise TypeError(f"range takes 1 to 3 arguments, got {len(args)}")
    return (0, args[0], 1) if len(args) == 1 else (*args, 1) if len(args) == 2 else args  # pyright: ignore


def loop_range(
    *args: Any, unroll: int = 0, unroll_full: bool = False, prefetch_stages: int | None = None, vectorize: Any = None
) -> LoopRange | UnrolledRange:
    """Return a range for a run-time loop, even with static bounds.

    Args:
        args: ``stop``, ``start, stop`` or ``start, stop, step``, as for Python's ``range``.
        unroll: number of copies of the loop body; 1 prevents unrolling, 0 leaves the decision to ptxas.
        unroll_full: unroll completely at compile time; needs static bounds.
        prefetch_stages, vectorize: not supported; F142 is raised if given.
    """
    start, stop, step = _bounds(args)
    for name, value in (("prefetch_stages", prefetch_stages), ("vectorize", vectorize)):
        if value:
            raise StaticError("F142", f"range: {name}={value!r} is not supported", hint=f"remove {name}=")
    if unroll_full:
        return range_constexpr(*args)
    return LoopRange(start, stop, step, unroll)


def range_constexpr(*args: Any) -> UnrolledRange:
    """Return a range that is unrolled at compile time.  Raises F140 if a bound is known only at run time."""
    bounds = _bounds(args)
    for bound in bounds:
        if is_dynamic(bound):
            raise StaticError(
                "F140", f"range_constexpr needs bounds known at compile time, got {bound.describe()}",
                hint="use 'range', or pass the bound as cute.Constexpr",
            )  # fmt: skip
    return UnrolledRange(range(*(int(b) for b in bounds)))
