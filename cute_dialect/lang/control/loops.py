"""``for`` and ``while`` loops: run by Python while static, compiled to ``scf.for`` or ``scf.while`` otherwise.

A ``for`` over a range becomes ``scf.for``, or ``scf.while`` if a jump may end it.  A kernel's loop over a static range
is traced once, as a run-time loop.  It is unrolled instead if its body needs the index as a Python number, or changes
values that a run-time loop cannot carry.

The body of a ``for`` over a generator that contains a run-time loop is traced into the generator's loop.  The generator
is suspended inside that loop while the consumer's body emits ops into it, and the loop carries the consumer's variables
as its own.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from types import GeneratorType
from typing import TYPE_CHECKING, Any, NoReturn

from cute_dialect.errors import CompileError
from cute_dialect.files import PACKAGE
from cute_dialect.lang.control.branches import both, check_iterator, consumers, inverted, regions, slots_of, truth_of
from cute_dialect.lang.control.counters import choose_counter
from cute_dialect.lang.control.mutable_state import Snapshot, U, holds_containers, put, same, shaped_like
from cute_dialect.lang.control.runtime_loops import Attached, Retrace, Rolled
from cute_dialect.lang.rewrite.convert import is_converted
from cute_dialect.lang.tracing.errors import LimitError, LoopError, StaticError, SyntaxErrorInKernel
from cute_dialect.lang.tracing.tracer import locate, remark
from cute_dialect.lang.values.dtypes import Boolean, Int32
from cute_dialect.lang.values.dynamic import Form, is_dynamic
from cute_dialect.lang.values.folding import literal
from cute_dialect.lang.values.forms import NumberForm, form_of
from cute_dialect.lang.values.numeric import as_number, promoted

if TYPE_CHECKING:
    from xdsl.ir import Block, SSAValue

    from cute_dialect.lang.rewrite.analysis import Site
    from cute_dialect.lang.tracing.tracer import Tracer


# --------------------------------------------------------------------------------------------------------------- ranges


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


# ----------------------------------------------------------------------------------------------------------- generators


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


# ---------------------------------------------------------------------------------------------------------------- loops


MOST_TURNS = 4096
"""Maximum number of iterations of a loop that is unrolled at compile time."""

_IMMUTABLE = (range, tuple, UnrolledRange)


class StaticFor:
    """A ``for`` loop that Python runs at compile time."""

    __slots__ = ("iterable", "iterated")
    __cute_iterates__ = True
    rolled = False
    enters = False
    caught = ()

    def __init__(self, iterable: Iterable[Any]):
        self.iterable = iterable
        self.iterated: tuple[Any, ...] = ()
        """The iterable, while the loop runs."""

    def __iter__(self) -> Iterator[Any]:
        return iter(self.iterable) if type(self.iterable) in _IMMUTABLE else self.elements()

    def elements(self) -> Iterator[Any]:
        """Iterate over an iterable that the loop body may change."""
        self.iterated = (self.iterable,)
        try:
            for element in self.iterable:  # noqa: UP028  ('yield from' closes a generator after a 'break')
                yield element
        finally:
            self.iterated = ()

    def over(self, flags: Sequence[Any]) -> bool:
        """Return True if a jump with a static condition has ended the loop."""
        return any(f is True for f in flags)


class For(Rolled):
    """A ``for`` over a run-time range, or over a static range that is traced once if possible."""

    def __init__(
        self, tracer: Tracer, numbers: LoopRange, site: Site, values: Mapping[str, Any], *, static: range | None
    ):
        self.begin(tracer, site, values)
        self.numbers = numbers
        self.static = static
        self.rolled = self.enters = True
        self.replaces = static is None or len(static) > MOST_TURNS  # Shorter loops are unrolled.
        self.caught: tuple[type[BaseException], ...] = (Exception,) if static is not None else ()
        self.bounds()
        self.last_op = tracer.block.last_op  # The bounds stay if the trace of the body is discarded.
        self.guess()

    def bounds(self) -> None:
        """Choose the type of the index and the loop counter."""
        start, stop, step = (as_number(x) for x in (self.numbers.start, self.numbers.stop, self.numbers.step))
        for x in (start, stop, step):
            if not type(x).is_integer:
                raise LoopError("F224", f"range bounds must be integers, got {x.describe()}", notes=self.note())
        if step.is_static and step.value == 0:
            raise LoopError("F223", "the step of range is 0", notes=self.note())
        bounds = (self.numbers.start, self.numbers.stop, self.numbers.step)
        written = [x for x, y in zip((start, stop, step), bounds) if not isinstance(y, int)]
        kind = Int32
        for n, x in enumerate(written or (start, stop, step)):
            kind = type(x) if n == 0 else promoted(kind.exactly(0), x, "add")
        if kind is Boolean:
            kind = Int32
        start, stop, step = (
            literal(kind, y) if isinstance(y, int) and (x is not step or y > 0) else x
            for x, y in zip((start, stop, step), bounds)
        )
        self.counter = choose_counter(
            self.tracer, kind, kind(start), kind(stop), step, bounded=self.site.path.startswith(PACKAGE)
        )

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        from xdsl.ir import Block

        if not self.rolled:
            return next(self.iterator)
        if self.ended:
            raise StopIteration
        self.body = Block()
        counter = self.counter
        self.index = self.body.insert_arg(counter.kind.attribute, 0)
        if counter.left is not None:
            self.body.insert_arg(counter.left.ssa.type, 1)
        self.open_round(self.body)
        self.tracer.block = self.body
        self.number_now = counter.index(self.index)
        return self.number_now

    def carry_flag(self, i: int, after: Any) -> bool:
        return False

    def over(self, flags: Sequence[Any]) -> bool:
        """Return True if a jump with a static condition has ended the loop."""
        return any(f is True for f in flags)

    def leave(self, values: Mapping[str, Any]) -> None:
        """End an iteration: compare the values, and emit the loop if all changes are carried."""
        tracer = self.tracer
        del regions(tracer)[self.depth + 1 :]
        out = self.ending(values)
        heap = self.snap.state()
        flags = [out[self.names.index(f)] for f in self.site.flags]
        if self.compare(out, heap) or self.settle():
            return
        if self.counter.left is not None or any(f is not False for f in flags):
            self.make_while(out, heap, flags)
        else:
            self.make_for(out, heap)
        if self.static is not None and not any(f is not False for f in flags):
            for i, name in enumerate(self.site.names):  # The last index is known.
                if (name,) == self.site.targets and same(out[i], self.number_now):
                    self.final[i] = self.static[-1]

    def enter(self) -> Sequence[Any]:
        if self.rolled:
            return super().enter()
        self.enters = False
        return [self.values[i] for i in self.site.entering]

    def make_for(self, out: Sequence[Any], heap: Mapping[int, Any]) -> None:
        """Emit the ``scf.for``."""
        from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i32
        from xdsl.ir import Region

        tracer = self.tracer
        tracer.op("scf.yield", self.outgoing(out, heap), ())
        self.forbid_copies()
        tracer.block = self.saved
        del regions(tracer)[self.depth :]
        counter = self.counter
        operands = [counter.start.ssa, counter.stop.ssa, counter.step.ssa, *self.initial()]
        types = [v.type for v in operands[3:]]
        properties = {} if counter.kind.signed else {"unsignedCmp": UnitAttr()}
        attributes = {"cute.unroll": IntegerAttr(self.numbers.unroll, i32)} if self.numbers.unroll > 1 else None
        op = tracer.op("scf.for", operands, types, properties, regions=[Region(self.body)], attributes=attributes)
        self.finished(op.results)

    def forbid_copies(self) -> None:
        """Prevent ptxas from unrolling the loop if the range was given ``unroll=1``."""
        if self.numbers.unroll != 1:
            return
        from xdsl.dialects.builtin import StringAttr

        code = {"ptxCode": StringAttr('.pragma "nounroll";')}
        pragma = self.tracer.op("nvvm.inline_ptx", [], [], code, segments=[0, 0, 0])
        pragma.detach()
        first = self.body.first_op
        assert first is not None
        self.body.insert_op_before(pragma, first)

    def make_while(self, out: Sequence[Any], heap: Mapping[int, Any], flags: Sequence[Any]) -> None:
        """Emit an ``scf.while`` with a counter, for loops that a jump may end or whose step has an unknown sign.

        With an unknown sign the last carried value is the continue flag.
        """
        from xdsl.ir import Block, Region

        tracer, counter = self.tracer, self.counter
        if any(f is not False for f in flags):
            text = "this loop is compiled as a while loop because a jump may end it early"
            remark("R1", text, self.site.place)
        else:
            self.forbid_copies()
        ends = [Boolean(f).ssa for f in flags]
        following = [(counter.kind.of(self.index) + counter.step).ssa]
        head: list[SSAValue] = [counter.start.ssa]
        goes: list[SSAValue] = []
        if counter.left is not None:
            left = type(counter.left).of(self.body.args[1])
            following.append((left - counter.size).ssa)
            goes = [Boolean(left >= counter.size).ssa]
            head.append(counter.left.ssa)
        tracer.op("scf.yield", [*following, *self.outgoing(out, heap), *ends, *goes], ())
        types = [*(a.type for a in self.body.args), *(v.type for v in (*ends, *goes))]
        for v in (*ends, *goes):
            self.body.insert_arg(v.type, len(self.body.args))
        before = Block(arg_types=types)
        tracer.block = before
        at = len(types) - len(goes)
        goes_on: Any = Boolean.of(before.args[at]) if goes else counter.kind.of(before.args[0]) < counter.stop
        for argument in before.args[at - len(ends) : at]:
            flag = inverted(Boolean.of(argument))
            goes_on = both(goes_on, lambda flag=flag: flag)
        tracer.op("scf.condition", [goes_on.ssa, *before.args], ())
        tracer.block = self.saved
        del regions(tracer)[self.depth :]
        false = [tracer.constant(False, v.type) for v in ends]
        first = [counter.runs.ssa] if goes else []
        op = tracer.op(
            "scf.while", [*head, *self.initial(), *false, *first], types, regions=[Region(before), Region(self.body)]
        )
        results = list(op.results)
        self.finished(results[len(head) : at - len(ends)])
        for name, value in zip(self.site.flags, results[at - len(ends) : at]):
            self.final[self.names.index(name)] = Boolean.of(value)

    def again(self, error: BaseException) -> bool:
        """Unroll the loop over a static range if tracing it once failed."""
        if self.static is None or not self.rolled or isinstance(error, RecursionError | LimitError):
            return False
        if isinstance(error, SyntaxErrorInKernel) and error.code in ("F150", "F158"):
            return False
        if len(self.static) > MOST_TURNS:
            if isinstance(error, StaticError) and error.code != "F141":
                locate(error)
                raise StaticError(
                    "F141", f"this loop of {len(self.static)} iterations cannot be a run-time loop: {error.message}",
                    hint=f"loops of at most {MOST_TURNS} iterations are unrolled at compile time",
                    notes=[("here", error.place)],
                ) from error  # fmt: skip
            return False
        if isinstance(error, CompileError):
            locate(error)
            why = f" ({error.place})" if error.place is not None else ""
            text = f"the {len(self.static)} iterations of this loop are unrolled: {error.message}{why}"
            remark("R2", text, self.site.place)
        self.walk()
        return True

    def walk(self) -> None:
        """Continue as a Python loop at compile time."""
        assert self.static is not None
        self.dropped()
        self.rolled = False
        self.enters = True
        self.caught = ()
        self.iterator = iter(self.static)


def loop_over(
    tracer: Tracer | None, iterable: Any, site: Site, values: Mapping[str, Any]
) -> For | StaticFor | GeneratorFor:
    """Return the loop over the iterable of a ``for``."""
    cls = type(iterable)
    if cls is range:
        if tracer is None or tracer.kind != "kernel" or len(iterable) < 2:
            return StaticFor(iterable)
        return For(tracer, LoopRange(iterable.start, iterable.stop, iterable.step), site, values, static=iterable)
    if cls is LoopRange:
        if tracer is None:
            return StaticFor(iterable.python())
        return For(tracer, iterable, site, values, static=None)
    if cls is GeneratorType and tracer is not None and is_converted(iterable.gi_code):
        check_iterator(tracer, iterable)
        return GeneratorFor(tracer, iterable, site, values)
    if cls is UnrolledRange:
        return StaticFor(iterable.numbers)
    if tracer is not None and isinstance(iterable, Iterator):
        check_iterator(tracer, iterable)
    return StaticFor(iterable)


MOST_STATIC_TESTS = 1 << 16


class While(Rolled):
    """A ``while`` loop. At the first run-time test it restarts as an ``scf.while`` from the first iteration."""

    rolled = enters = False

    def __init__(self, tracer: Tracer | None, site: Site, values: Mapping[str, Any]):
        self.turns = 0
        self.done = False
        self.yielded = False
        self.caught = ()
        if tracer is not None:
            self.caught = (Retrace,)
            self.begin(tracer, site, values)

    def __iter__(self) -> While:
        return self

    def __next__(self) -> int:
        from xdsl.ir import Block

        if not self.rolled:
            if self.done:
                raise StopIteration
            self.turns += 1
            if self.turns > MOST_STATIC_TESTS and self.caught:
                raise StaticError(
                    "F141", f"this loop ran for {MOST_STATIC_TESTS} iterations at compile time", notes=self.note()
                )
            return 1
        if self.ended:
            raise StopIteration
        self.before = Block()
        self.open_round(self.before)
        self.tracer.block = self.before
        return 3

    def test(self, condition: Any, values: Mapping[str, Any]) -> bool:
        """Return True if the body runs or, in a run-time loop, is traced."""
        truth = truth_of(condition)
        if not self.rolled:
            if truth is True or truth is False:
                self.done = not truth
                return truth
            raise Retrace(self)
        from xdsl.ir import Block

        if truth is True or truth is False:
            truth = Boolean.exactly(truth)
        self.condition = truth.ssa
        own = [values.get(n, U) for n in self.site.names]
        self.tested = own + list(self.entry[len(own) :])
        self.tested_heap = self.snap.state()
        self.take_replaced()
        self.after = Block()
        self.blocks.append(self.after)
        self.tracer.block = self.after
        return True

    def again(self, error: BaseException) -> bool:
        """Restart as a run-time loop if that is the exception raised."""
        if not isinstance(error, Retrace) or error.loop is not self:
            return False
        if self.yielded:
            raise LoopError(
                "F160", "the condition of this loop becomes a run-time value after the loop has yielded",
                notes=self.note(),
            )  # fmt: skip
        self.dropped()
        self.rolled = self.enters = True
        self.caught = ()
        self.guess()
        return True

    def guess(self) -> None:
        super().guess()
        for i, name in enumerate(self.names):
            if name in self.site.flags and name not in self.site.memory.get("settled", ()):
                self.locals[i] = NumberForm(Boolean)

    def joined(self, first: int, heap: Mapping[int, Any]) -> None:
        self.tested += self.entry[first:]
        self.tested_heap = {**heap, **self.tested_heap}

    def carry_flag(self, i: int, after: Any) -> bool:
        if self.owners[i] is self.site:
            self.locals[i] = NumberForm(Boolean)
        return self.owners[i] is self.site

    def open_round(self, block: Block) -> None:
        super().open_round(block)
        at = 0
        for i, form in self.locals.items():  # The test reads the flags itself.
            if self.owners[i] is self.site and self.names[i] in self.site.flags:
                self.entry[i] = form.make(self.args[at : at + 1])
            at += len(form.types)

    def leave(self, values: Mapping[str, Any]) -> None:
        """End an iteration: compare the values, and emit the loop if all changes are carried."""
        tracer = self.tracer
        del regions(tracer)[self.depth + 1 :]
        out = self.ending(values)
        heap = self.snap.state()
        if self.compare(out, heap) or self.settle() or self.loses_shared(self.tested, self.tested_heap):
            return
        tracer.op("scf.yield", self.outgoing(out, heap), ())
        tracer.block = self.before
        exits = self.exits()
        forwarded = self.forwarded(exits)
        tracer.op("scf.condition", [self.condition, *forwarded], ())
        self.make(forwarded, exits)

    def take_replaced(self) -> None:
        """Record the contents of the objects that an iteration replaces, because the body may change them."""
        values = {i: (form, self.tested[i]) for i, form in self.locals.items()}
        values |= {(key, slot): (form, self.tested_heap[key][slot]) for (key, slot), form in self.heap.items()}
        self.tested_parts: dict[Any, tuple[Form, list[SSAValue]]] = {}
        for at, (form, value) in values.items():
            if holds_containers(form) and value is not U:
                exact = shaped_like(form, value)
                self.tested_parts[at] = exact, exact.take(value)

    def exits(self) -> list[tuple[Any, Form, list[SSAValue]]]:
        """Return the carried values at the exit, after the failed test."""
        found: list[tuple[Any, Form, list[SSAValue]]] = []
        for i, (site, name) in enumerate(zip(self.owners, self.names)):
            value = self.tested[i]
            if i in self.lost or value is U or (name not in site.live and name not in site.flags):
                continue
            if i not in self.locals and same(value, self.values[i]):
                continue
            form = form_of(value)
            found.append((i, *self.tested_parts.get(i, (form, form.take(value)))))
        for key, (_, kept) in self.snap.objects.items():
            now = self.tested_heap[key]
            if isinstance(now, set):
                continue
            for slot in slots_of(now):
                if (key, slot) in self.heap or now[slot] is not kept[slot]:
                    form = form_of(now[slot])
                    taken = self.tested_parts.get((key, slot), (form, form.take(now[slot])))
                    found.append(((key, slot), *taken))
        return found

    def forwarded(self, exits: Sequence[tuple[Any, Form, list[SSAValue]]]) -> list[SSAValue]:
        """Return the first region's values used in the second region or after the loop; rewire the second region."""
        made = [*self.before.args, *(r for op in self.before.ops for r in op.results)]
        inside = set(made)
        needed: dict[SSAValue, None] = {}
        for _, _, leaves in exits:
            for leaf in leaves:
                if leaf in inside:
                    needed[leaf] = None
        for value in made:
            uses = [use for use in value.uses if _within(use.operation, self.after)]
            if uses:
                needed[value] = None
            if value in needed:
                argument = self.after.insert_arg(value.type, len(self.after.args))
                argument.name_hint = value.name_hint
                for use in uses:
                    use.operation.operands[use.index] = argument
        return [value for value in made if value in needed]

    def make(self, forwarded: list[SSAValue], exits: Sequence[tuple[Any, Form, list[SSAValue]]]) -> None:
        """Emit the ``scf.while``."""
        from xdsl.ir import Region

        tracer = self.tracer
        tracer.block = self.saved
        del regions(tracer)[self.depth :]
        op = tracer.op(
            "scf.while", self.initial(), [v.type for v in forwarded], regions=[Region(self.before), Region(self.after)]
        )
        results = dict(zip(forwarded, op.results))
        self.snap.restore()
        final: list[Any] = list(self.values)
        exited: set[int] = set()
        for place, form, leaves in exits:
            value = form.make([results.get(leaf, leaf) for leaf in leaves])
            if isinstance(place, int):
                final[place] = value
                exited.add(place)
            else:
                put(self.snap.objects[place[0]][0], place[1], value)
        for i in range(len(final)):
            if i in exited:
                continue
            if i in self.locals or i in self.dead or self.names[i] in self.owners[i].targets:
                final[i] = U
            self.left_without(final, i)
        self.conclude(final)


def _within(op: Any, block: Block) -> bool:
    """Return True if an op is nested in a block."""
    at = op.parent_block()
    while at is not None:
        if at is block:
            return True
        owner = at.parent_op()
        at = None if owner is None else owner.parent_block()
    return False
