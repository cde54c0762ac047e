"""A ``for`` over a generator that contains a run-time loop: its body is traced into the generator's loop.

The generator is suspended inside its run-time loop while the consumer's body emits ops into it.  The loop carries the
consumer's variables as its own.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.lang.control.branches import consumers, regions
from cute_dialect.lang.control.mutable_state import Snapshot, U
from cute_dialect.lang.control.runtime_loops import Attached, Rolled
from cute_dialect.lang.tracing.errors import LoopError

if TYPE_CHECKING:
    from cute_dialect.lang.rewrite.analysis import Site
    from cute_dialect.lang.tracing.tracer import Tracer

__all__ = ["GeneratorFor", "consumers"]


class GeneratorFor(Attached):
    """A ``for`` over a converted generator."""

    enters = True
    __cute_iterates__ = True

    def __init__(self, tracer: Tracer, generator: Generator[Any, Any, Any], site: Site, values: Mapping[str, Any]):
        self.tracer = tracer
        self.generator = generator
        self.site = site
        self.values = self.given = [values.get(n, U) for n in site.names]
        self.roots = site.rooted(values)
        self.depth = len(regions(tracer))
        self.block = tracer.block
        self.region: Rolled | None = None
        self.ready: list[Any] = []
        self.enters = False
        self.caught: tuple[type[BaseException], ...] = ()

    @property
    def rolled(self) -> bool:
        """True if the body is traced into a loop of the generator, or if names receive their values after it."""
        return self.region is not None

    @property
    def iterated(self) -> tuple[Any, ...]:
        """The generator, while it is suspended."""
        return () if self.generator.gi_running or self.generator.gi_frame is None else (self.generator,)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.ready:
            return self.ready.pop()
        if self.region is not None:
            return self.taken(lambda: next(self.generator))
        frame = sys._getframe(1)  # The frame of the 'for' statement.
        values = frame.f_locals
        self.values = [values.get(n, U) for n in self.site.names]
        self.roots = self.site.rooted(values)
        code = frame.f_code
        captured = {*code.co_cellvars, *code.co_freevars}
        value = self.taken(lambda: next(self.generator))
        if self.region is None:
            return value
        now = frame.f_locals
        if (
            name := self.shared_variable({n: now[n] for n in self.site.names if n in captured and n in now})
        ) is not None:
            error = LoopError(
                "F160", f"the body of this 'for' changes '{name}', which the generator's run-time loop may also use",
                hint="keep it in a list or an object", notes=self.note(),
            )  # fmt: skip
            if not self.again(error):
                raise error
            self.enters = False  # The body has not run, so its names are as the generator left them.
            value = self.ready.pop()
        return value

    def shared_variable(self, captured: Mapping[str, Any]) -> str | None:
        """Return a variable changed by the body and captured by the generator, as far as the values show."""
        if not captured:
            return None
        reached = Snapshot([self.generator]).cells()
        return next((n for n, v in captured.items() if any(v is held for held in reached)), None)

    def taken(self, step: Any) -> Any:
        """Run the generator to its next ``yield``, and record the region in which it yields."""
        tracer = self.tracer
        waiting = consumers(tracer)
        count = len(waiting)
        waiting.append(self.generator.gi_frame)
        try:
            value = step()
        except StopIteration:
            self.after()
            raise
        finally:
            del waiting[count:]
        opened = regions(tracer)[self.depth :]
        if not opened:
            if self.region is not None and self.finals is None:  # The generator's loop is unrolled from now on.
                self.given, self.enters = self.values, True
            self.after()
            self.region = None
            self.caught = ()
            return value
        region = opened[-1]
        if len(opened) > 1 or not isinstance(region, Rolled):
            error = LoopError("F160", "a generator yields inside nested run-time branches or loops", notes=self.note())
            # Unrolling a static loop of the generator leaves fewer run-time loops.
            return self.taken(lambda: self.generator.throw(error))
        if region is not self.region:
            self.after()
        region.attach(self)
        self.region = region
        self.given = region.entry[self.first : self.first + len(self.site.names)]
        self.enters = True
        self.caught = region.caught
        return value

    def after(self) -> None:
        """Fetch the values of names after a loop of the generator that has ended."""
        if self.finals is not None:
            self.given = self.values = list(self.finals)
            self.roots += self.finals
            self.finals = None
            self.enters = True

    def enter(self) -> Sequence[Any]:
        """Return the initial values of the names that the body assigns."""
        self.enters = False
        return [self.given[i] for i in self.site.entering]

    def leave(self, values: Mapping[str, Any]) -> None:
        """Record the values of the names at the end of an iteration. The generator's loop compares them."""
        self.out = [values.get(n, U) for n in self.site.names]

    def over(self, flags: Sequence[Any]) -> bool:
        """Return True if a jump with a static condition has ended the loop."""
        return any(f is True for f in flags)

    def results(self) -> Sequence[Any]:
        """Return the values of the names after the loop."""
        return [self.given[i] for i in self.site.leaving]

    def again(self, error: BaseException) -> bool:
        """Unroll the generator's loop if the body requires it."""
        if self.region is None:
            return False
        try:
            self.ready.append(self.taken(lambda: self.generator.throw(error)))
        except BaseException as e:
            if e is error:
                return False
            raise
        return True
