"""A ``for`` over a generator that has a loop of run time inside: its body is traced into the generator's loop.

Tracing is in frames, so the generator is suspended inside of its region while the consumer's body emits into it; the
region carries the consumer's names and places as its own.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.front.branches import regions
from cute_dialect.front.errors import LoopError
from cute_dialect.front.mutable_state import Snapshot, U
from cute_dialect.front.rolled import Attached, Rolled

if TYPE_CHECKING:
    from cute_dialect.front.analysis import Site
    from cute_dialect.front.trace import Tracer

__all__ = ["GeneratorFor", "consumers"]


def consumers(tracer: Tracer) -> list[Any]:
    """Return the frames of generators that ``for`` statements are taking values from, outermost first."""
    return tracer.state.setdefault("consumers", [])


class GeneratorFor(Attached):
    """A ``for`` over a generator of converted code."""

    enters = True

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
        """Whether the body is being traced into a loop of the generator, or names get what they are after it."""
        return self.region is not None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.ready:
            return self.ready.pop()
        if self.region is not None:
            return self.taken(lambda: next(self.generator))
        frame = sys._getframe(1)  # that of the 'for' statement
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
                "F160", f"the body of this 'for' changes '{name}', which the generator may read or change while its "
                "loop of run time goes on", hint="keep it in a list or an object", notes=self.note(),
            )  # fmt: skip
            if not self.again(error):
                raise error
            self.enters = False  # the body has not run: its names are as the generator left them
            value = self.ready.pop()
        return value

    def shared_variable(self, captured: Mapping[str, Any]) -> str | None:
        """Return a variable that the body changes and the generator's code captured, as far as the values tell."""
        if not captured:
            return None
        reached = Snapshot([self.generator]).cells()
        return next((n for n, v in captured.items() if any(v is held for held in reached)), None)

    def taken(self, step: Any) -> Any:
        """Run the generator to its next ``yield``, and find out where that is."""
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
            if self.region is not None and self.finals is None:  # its loop is walked from now on
                self.given, self.enters = self.values, True
            self.after()
            self.region = None
            self.caught = ()
            return value
        region = opened[-1]
        if len(opened) > 1 or not isinstance(region, Rolled):
            error = LoopError(
                "F160", "a generator yields in a branch or loop of run time inside of another", notes=self.note()
            )
            # A loop of the generator over a static range may be walked instead, which leaves fewer of run time.
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
        """Take what names are after a loop of the generator that ended."""
        if self.finals is not None:
            self.given = self.values = list(self.finals)
            self.roots += self.finals
            self.finals = None
            self.enters = True

    def enter(self) -> Sequence[Any]:
        """Return what the names that the body assigns are at its head."""
        self.enters = False
        return [self.given[i] for i in self.site.entering]

    def leave(self, values: Mapping[str, Any]) -> None:
        """Take what the names are at the end of a turn; the generator's loop compares."""
        self.out = [values.get(n, U) for n in self.site.names]

    def over(self, flags: Sequence[Any]) -> bool:
        """Tell whether a jump that is certain has ended the loop."""
        return any(f is True for f in flags)

    def results(self) -> Sequence[Any]:
        """Return what the names are after the loop."""
        return [self.given[i] for i in self.site.leaving]

    def again(self, error: BaseException) -> bool:
        """Let the generator's loop walk its range while compiling, if that is what the body needs."""
        if self.region is None:
            return False
        try:
            self.ready.append(self.taken(lambda: self.generator.throw(error)))
        except BaseException as e:
            if e is error:
                return False
            raise
        return True
