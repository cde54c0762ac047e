"""Straight-line code of closures: plain steps, steps that may wait, and recovery from exceptions.

A step is ``step(R, g)`` over registers and group; a step that may wait is a generator.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, TypeAlias

from cute_dialect.interp.errors import (
    Fault,
    InterpError,
    OpInfo,
)
from cute_dialect.interp.machine.group import Group, Wait
from cute_dialect.interp.values import POISON, Pending, Regs, Undefined, Value

if TYPE_CHECKING:
    from cute_dialect.interp.reports.run_report import FlopCount

Step: TypeAlias = Callable[[Regs, Group], None]
GenStep: TypeAlias = Callable[[Regs, Group], Generator[Wait, None, None]]
Run: TypeAlias = "Callable[[Regs, Group], Generator[Wait, None, None] | None]"


class Code:
    """Straight-line code under construction."""

    def __init__(self, lists: list[tuple[list[Step], list[OpInfo]]], flops: FlopCount | None = None) -> None:
        self.lists = lists
        self.flops = flops
        self.parts: list[Run] = []
        self.steps: list[Step] = []
        self.infos: list[OpInfo] = []
        self.blocking = False

    def add(self, step: Step, info: OpInfo) -> None:
        """Append a step that never waits."""
        self.steps.append(step if self.flops is None else self.flops.step(step, info.source))
        self.infos.append(info)

    def add_blocking(self, gen: GenStep, info: OpInfo) -> None:
        """Append a step that may wait."""
        self._flush()
        self.blocking = True
        self.parts.append(_guarded(gen if self.flops is None else self.flops.blocking(gen, info.source), info))

    def _flush(self) -> None:
        if self.steps:
            self.parts.append(_straight(self.steps, self.infos))
            self.lists.append((self.steps, self.infos))
            self.steps, self.infos = [], []

    def finish(self) -> Run:
        """Return one runner for all steps."""
        self._flush()
        if len(self.parts) == 1:
            return self.parts[0]
        parts = tuple(self.parts)
        if not self.blocking:

            def run_all(R: Regs, g: Group) -> None:
                for p in parts:
                    p(R, g)

            return run_all

        def run_parts(R: Regs, g: Group) -> Generator[Wait, None, None]:
            for p in parts:
                inner = p(R, g)
                if inner is not None:
                    yield from inner

        return run_parts


def _straight(steps: list[Step], infos: list[OpInfo]) -> Run:
    def run(R: Regs, g: Group) -> None:
        n = len(steps)
        k = g.count
        k.steps += n
        k.lane_ops += n * g.mask.n
        it: Iterator[Step] = iter(steps)
        while True:
            try:
                for s in it:
                    s(R, g)
                return
            except InterpError:
                raise
            except Exception as e:
                at: int = n - 1 - it.__length_hint__()  # type: ignore[attr-defined]
                held = None if isinstance(e, Fault) else settle(infos[at], R, g)
                if held is None:
                    recover(e, infos[at], R, g)
                    continue
                try:
                    steps[at](R, g)
                except InterpError:
                    raise
                except Exception as e2:
                    recover(e2, infos[at], R, g)
                for s, v in held.items():
                    R[s] = v

    return run


def _guarded(gen: GenStep, info: OpInfo) -> Run:
    def run(R: Regs, g: Group) -> Generator[Wait, None, None]:
        k = g.count
        k.steps += 1
        k.lane_ops += g.mask.n
        try:
            yield from gen(R, g)
        except InterpError:
            raise
        except Exception as e:
            recover(e, info, R, g)

    return run


def settle(info: OpInfo, R: Regs, g: Group) -> dict[int, Value] | None:
    """Resolve pending and undefined operands to plain values before an op acts on them. None if there are none.

    Registers whose asynchronous writer was waited for keep their value. Operands that are undefined only in other lanes
    are returned, to be restored after the op.
    """
    found = False
    held: dict[int, Value] = {}
    for s in info.operands:
        v = R[s]
        if not isinstance(v, (Pending, Undefined)):
            continue
        try:
            R[s] = v.result() if isinstance(v, Pending) else v.used(g.mask, info.name)
        except Fault as f:
            raise g.fail(f, info) from None
        found = True
        if isinstance(v, Undefined):
            held[s] = v
    return held if found else None


def recover(e: Exception, info: OpInfo, R: Regs, g: Group) -> None:
    """Handle an exception in an op: make its results poison if an operand was, else raise InterpError."""
    if isinstance(e, Fault):
        raise g.fail(e, info) from None
    for s in info.operands:
        v = R[s]
        if isinstance(v, Undefined):
            try:
                v.used(g.mask, info.name)
            except Fault as f:
                raise g.fail(f, info) from None
    poisoned = any(R[s] is POISON for s in info.operands)
    if poisoned and info.pure:
        for s in info.results:
            R[s] = POISON
        return
    if poisoned:
        raise g.fail(Fault("poison", f"{info.name} on a poison (undefined) value"), info) from e
    if isinstance(e, MemoryError):
        raise g.fail(Fault("limit", "out of memory"), info) from e
    raise g.fail(Fault("internal", f"internal error of the interpreter: {type(e).__name__}: {e}"), info) from e
